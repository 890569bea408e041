"""drevo write-out: the equations of a quantity, as text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..documents.languages.table import BY_ENDING, LANGUAGES
from .common import Base, Json, RobotName, given_in, guarded, load_robot, option, print_json, progress, words_in

if TYPE_CHECKING:
    from ..compiler.pages.derivation import Derivation

TEXT_TARGETS = (*LANGUAGES, "sympy")


@guarded
def write_out(
    robot: RobotName,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help="mass_matrix, inverse_dynamics, pose, ...")],
    formalism: Annotated[
        str, option("A formalism by name; auto takes the one with the fewest operations.")
    ] = "auto",
    symbols: Annotated[str, option("Parameters to keep as symbols: all, or names separated by commas.")] = "",
    to: Annotated[str, option(f"Format: {', '.join(TEXT_TARGETS)}; by default what the file's ending says.")] = "",
    output: Annotated[Path | None, option(f"Write to a file: {', '.join(BY_ENDING)}.", "-o", "--output")] = None,
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    relative_to: Annotated[str, option("The link from which the other is observed.")] = "",
    frame: Annotated[
        str, option("The frame of velocity, jacobian, ...: local_world_aligned, local or world.")
    ] = "",
    sequence: Annotated[str, option("paper: its own path; Telegin's mass matrix: reuse, merged.")] = "",
    mode: Annotated[str, option("Approximation in Alyushin's kinetic energy: A, B or C (not exact).")] = "",
    given: Annotated[str, option("Of inverse_kinematics: joints that are given, joint7=0.4, or joint7.")] = "",
    wrt: Annotated[str, option("A derivative by q, v, a, tau or t, such as q or q,v.")] = "",
    columns: Annotated[int, option("Of LaTeX: lines for a page of one column, or of two.", min=1, max=2)] = 1,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Write out the equations of a quantity, with operation counts and a numeric check."""
    from ..io.files import ready, saving
    from ..robot.writing import write_out as derive

    target = _target(to, output)
    endings = (output.suffix.lower(),) if output and to else tuple(BY_ENDING)
    if output is not None:
        ready("a derivation", output, endings)
    named = {"link": link, "relative_to": relative_to, "frame": frame, "sequence": sequence, "mode": mode}
    options: dict[str, Any] = {key: value for key, value in named.items() if value}
    if wrt:
        options["wrt"] = words_in(wrt)
    if given:
        options["given"] = given_in(given)
    with progress(2, "writing out") as step:
        step(quantity)
        d = derive(load_robot(robot, base), quantity, formalism=formalism, symbols=_symbols(symbols), **options)
        step(target)
        text = _text(d, target, columns)
    if output is not None:
        with saving("a derivation", output, endings) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
    about = {"robot": robot, "quantity": quantity, "format": target, "formalism": d.formalism, "counts": d.counts}
    _tell(about, text, output, as_json)


def _text(d: Derivation, target: str, columns: int) -> str:
    if target == "latex":
        return d.latex(columns)
    return d.html() if target == "html" else str(d.sympy()) if target == "sympy" else d.text(target)


def _tell(about: dict[str, Any], text: str, output: Path | None, as_json: bool) -> None:
    """The text itself, or what was saved where; as JSON all that is known of it."""
    if as_json:
        print_json({**about, **({"text": text} if output is None else {"file": str(output)})})
    elif output is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        cost = f"{about['counts']['mul']} mul, {about['counts']['add']} add"
        by = f", by {about['formalism']}" * bool(about["formalism"])
        print(f"{output}: {about['format']}, {cost}{by}", file=sys.stderr)


def _symbols(given: str) -> str | list[str] | None:
    """The option --symbols as `drevo.write_out` takes it."""
    return "all" if given == "all" else words_in(given) or None


def _target(to: str, output: Path | None) -> str:
    """The language of the equations: that of --to, else of the ending of the file."""
    from ..errors import EmitError, one_of

    by_ending = BY_ENDING.get(output.suffix.lower()) if output else None
    return one_of("format", to or by_ending or "markdown", TEXT_TARGETS, EmitError)
