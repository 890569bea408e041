"""drevo linearise: the linear model of a robot about a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .common import STATE, Base, Json, RobotName, guarded, load_robot, option, print_json, print_table, vector_in

if TYPE_CHECKING:
    from ..robot import Robot

EIGENVALUE_ROUNDING = 1e-12  # of the largest eigenvalue: a real part below it is none


@guarded
def linearise(
    robot: RobotName,
    q: Annotated[str | None, option(f"Coordinates, rad or m: {STATE}neutral.")] = None,
    v: Annotated[str | None, option(f"Velocities: {STATE}0.")] = None,
    tau: Annotated[
        str | None,
        option(f"Torques and forces of the joints, or one for all: {STATE}those of no acceleration."),
    ] = None,
    actuated: Annotated[
        str | None, option("Driven joints, separated by commas; by default all but a free base.")
    ] = None,
    output: Annotated[
        Path | None, option("Save A, B, the eigenvalues and the state as .npz.", "-o", "--output")
    ] = None,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Linearise a robot about a state and show its natural frequencies; --json and -o also give A and B."""
    import numpy as np

    from ..io.files import ready, saving

    if output is not None:
        ready("a linear model", output, (".npz",))
    machine = load_robot(robot, base)
    driven = [x.strip() for x in actuated.split(",")] if actuated else None
    at, rates, efforts = _state(machine, q, v, tau, driven)
    model = machine.linearise(at, rates, efforts, actuated=driven)
    values = _eigenvalues(model.reduced.A)
    facts = {"q": at, "v": rates, "tau": efforts, "a": model.a, "A": model.A, "B": model.B}
    if output is not None:
        with saving("a linear model", output, (".npz",)) as file:
            np.savez(file, **facts, eigenvalues=values)
    if as_json:
        pairs = [[float(x.real), float(x.imag)] for x in values]
        print_json({"robot": machine.name, **{k: x.tolist() for k, x in facts.items()}, "eigenvalues": pairs})
        return
    print(f"{machine.name}: natural motions about the state")
    print_table("", ("rad/s", "Hz", "damping", "eigenvalue"), _rows(values), left=0)
    growing = int((values.real > 0.0).sum())
    still = float(np.abs(model.a).max(initial=0.0))
    print(
        f"A {model.A.shape}, B {model.B.shape}; unstable motions: {growing}; largest acceleration here {still:.3g}"
    )
    if output is not None:
        print(f"saved {output}")


def _state(
    robot: Robot, q: str | None, v: str | None, tau: str | None, driven: list[str] | None
) -> tuple[Any, Any, Any]:
    """Configuration, rates and efforts as they are asked for: at rest, and held there, where nothing is said."""
    import numpy as np

    at = vector_in(robot, "q", q)
    rates = vector_in(robot, "v", v)
    if tau is None:
        return (
            at,
            rates,
            robot.constrained_inverse_dynamics(at, rates, np.zeros(robot.nv), actuated=driven, passive=True).tau,
        )
    one = "=" not in tau and "," not in tau  # for all
    return at, rates, vector_in(robot, "tau", ",".join([tau] * robot.nv) if one else tau)


def _eigenvalues(A: Any) -> Any:
    """In the order of their magnitudes; real parts that are rounding are 0."""
    import numpy as np

    values = np.linalg.eigvals(A)
    noise = EIGENVALUE_ROUNDING * float(np.abs(values).max(initial=0.0))
    values = np.where(np.abs(values.real) > noise, values.real, 0.0) + 1j * values.imag
    return values[np.lexsort((-values.imag, np.abs(values)))]


def _rows(values: Any) -> list[tuple[str, ...]]:
    """One row for each real eigenvalue and each pair."""
    rows: list[tuple[str, ...]] = []
    for x in values:
        if x.imag < 0.0:
            continue
        size = abs(x)
        damping = f"{0.0 - x.real / size:.3g}" if size > 0.0 else ""
        text = f"{x.real:.5g}" if x.imag == 0.0 else f"{x.real:.5g} +- {x.imag:.5g}i"
        rows.append((f"{size:.5g}", f"{size / 6.283185307179586:.5g}", damping, text))
    return rows
