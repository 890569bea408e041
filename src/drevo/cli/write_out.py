"""drevo write-out: the equations of a quantity, as text."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .common import Base, RobotName, guarded, load, progress

TARGETS = ("latex", "markdown", "html", "python", "c", "cuda", "matlab", "sympy")
SUFFIXES = {
    ".tex": "latex", ".md": "markdown", ".html": "html", ".htm": "html", ".py": "python", ".c": "c",
    ".h": "c", ".cu": "cuda", ".m": "matlab",
}  # fmt: skip


@guarded
def write_out(
    robot: RobotName,
    quantity: Annotated[str, typer.Argument(help="mass_matrix, inverse_dynamics, pose, ...")],
    formalism: Annotated[str, typer.Option(help="auto takes the one with the fewest operations.")] = "auto",
    symbols: Annotated[str, typer.Option(help="Parameters to keep: all, or names by commas.")] = "",
    to: Annotated[str, typer.Option(help=f"{', '.join(TARGETS)}; by default what the file's name says.")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="A file, not the terminal.")] = None,
    link: Annotated[str, typer.Option(help="The link, for pose, jacobian, velocity, acceleration.")] = "",
    frame: Annotated[str, typer.Option(help="local_world_aligned, local or world, likewise.")] = "",
    sequence: Annotated[str, typer.Option(help="Of Telegin's mass matrix: paper, reuse or merged.")] = "",
    mode: Annotated[str, typer.Option(help="Of Alyushin's kinetic energy, not exact: A, B or C.")] = "",
    base: Base = "fixed",
) -> None:
    """Write out the equations of a quantity, with operation counts and a numeric check."""
    from ..written import write_out as derive

    target = _target(to, output)
    given = (("link", link), ("frame", frame), ("sequence", sequence), ("mode", mode))
    options: dict[str, Any] = {key: value for key, value in given if value}
    with progress(2, "writing out") as step:
        step(quantity)
        d = derive(load(robot, base), quantity, formalism=formalism, symbols=_symbols(symbols), **options)
        step(target)
        text = str(getattr(d, target)())
    if output is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    output.write_text(text, encoding="utf-8")
    print(f"{output}: {target}, {d.counts['mul']} mul, {d.counts['add']} add, by {d.formalism}", file=sys.stderr)


def _symbols(given: str) -> str | list[str] | None:
    if not given:
        return None
    return "all" if given == "all" else [name.strip() for name in given.split(",") if name.strip()]


def _target(to: str, output: Path | None) -> str:
    from ..errors import EmitError

    target = to or (SUFFIXES.get(output.suffix.lower(), "markdown") if output else "markdown")
    if target not in TARGETS:
        near = difflib.get_close_matches(target, TARGETS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise EmitError(f"there is no target {target!r}{hint}; there are {', '.join(TARGETS)}")
    return target
