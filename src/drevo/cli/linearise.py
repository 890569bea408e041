"""drevo linearise: the linear model of a robot about a state."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load, numbers, say, table

ROUNDING = 1e-12  # of the largest eigenvalue: a real part below it is none


@guarded
def linearise(
    robot: RobotName,
    q: Annotated[str | None, typer.Option("--q", help="Configuration, numbers with commas; neutral.")] = None,
    v: Annotated[str | None, typer.Option("--v", help="Rates, numbers with commas; rest.")] = None,
    tau: Annotated[
        str | None, typer.Option("--tau", help="Efforts with commas, or one for all; what keeps the rates.")
    ] = None,
    actuated: Annotated[str | None, typer.Option(help="Driven joints, with commas; all but a free base.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", help="Save A, B, eigenvalues and the state as .npz.")
    ] = None,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Print the natural frequencies of a robot about a state; with --json or -o also A and B of (dq, dv)."""
    import numpy as np

    from ..errors import InputError

    made = load(robot, base)
    driven = [x.strip() for x in actuated.split(",")] if actuated else None
    at = made.neutral() if q is None else np.array(numbers("--q", q))
    rates = np.zeros(made.nv) if v is None else np.array(numbers("--v", v))
    force = numbers("--tau", tau)
    if force is None:
        efforts = made.constrained_inverse_dynamics(at, rates, np.zeros(made.nv), actuated=driven).tau
    else:
        efforts = np.array(force * made.nv if len(force) == 1 else force)
    found = made.linearise(at, rates, efforts, actuated=driven)
    values = np.linalg.eigvals(found.reduced.A)
    noise = ROUNDING * float(np.abs(values).max(initial=0.0))
    values = np.where(np.abs(values.real) > noise, values.real, 0.0) + 1j * values.imag
    values = values[np.lexsort((-values.imag, np.abs(values)))]
    facts = {"q": at, "v": rates, "tau": efforts, "a": found.a, "A": found.A, "B": found.B}
    if output is not None:
        if output.suffix.lower() != ".npz":
            raise InputError(f"a linear model is saved as .npz, not {str(output)!r}")
        np.savez(output, **facts, eigenvalues=values)  # type: ignore[arg-type]
    if as_json:
        pairs = [[float(x.real), float(x.imag)] for x in values]
        say({"robot": made.name, **{k: x.tolist() for k, x in facts.items()}, "eigenvalues": pairs})
        return
    print(f"{made.name}: motions about the state")
    table("", ("rad/s", "Hz", "damping", "eigenvalue"), _rows(values), left=0)
    growing = int((values.real > 0.0).sum())
    still = float(np.abs(found.a).max(initial=0.0))
    print(f"A {found.A.shape}, B {found.B.shape}; {growing} motions grow; accelerations here up to {still:.3g}")
    if output is not None:
        print(f"saved {output}")


def _rows(values: Any) -> list[tuple[str, ...]]:
    """One row for each real eigenvalue and each pair."""
    rows: list[tuple[str, ...]] = []
    for x in values:
        if x.imag < 0.0:
            continue
        size = abs(x)
        damping = f"{-x.real / size:.3g}" if size > 0.0 else ""
        text = f"{x.real:.5g}" if x.imag == 0.0 else f"{x.real:.5g} +- {x.imag:.5g}i"
        rows.append((f"{size:.5g}", f"{size / 6.283185307179586:.5g}", damping, text))
    return rows
