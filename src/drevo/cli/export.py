"""drevo export: a quantity, a derivative, a linear model or a controller for another processor, or as C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load_robot, numbers_in, option, print_json, words_in

if TYPE_CHECKING:
    from ..robot import Robot

CONTROLLERS = ("linear_model", "lqr", "kalman", "lqg", "schedule")
_WHAT = f"inverse_dynamics, mass_matrix, constrained_dynamics, ...; or {', '.join(CONTROLLERS)}."


@guarded
def export(
    robot: RobotName,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help=_WHAT)] = "inverse_dynamics",
    target: Annotated[
        str, option("c, cortex-m4f, cortex-m7, aarch64, riscv64, wasm, windows, macos or ptx.", "-t", "--target")
    ] = "",
    dtype: Annotated[str, option("float64 or float32.")] = "float64",
    output: Annotated[Path, option("The folder to write to.", "-o", "--output")] = Path(),
    name: Annotated[str, option("The name of the function; by default robot_quantity.")] = "",
    parameters: Annotated[str, option("Parameters to keep as an argument, with commas between them.")] = "",
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    frame: Annotated[str, option("The frame of velocity, jacobian, ...")] = "",
    wrt: Annotated[str, option("A derivative by q, v, a, tau or t, such as q or q,v.")] = "",
    q: Annotated[str | None, option("Of controllers: about the equilibrium near this configuration.")] = None,
    actuated: Annotated[str, option("Of controllers: driven joints; by default all but a free base.")] = "",
    dt: Annotated[float | None, option("Of controllers: seconds between steps; by default continuous.")] = None,
    state_weights: Annotated[str, option("Of controllers: Q (of a filter W), one number or the diagonal.")] = "1",
    effort_weights: Annotated[str, option("Of controllers: R (of a filter V), one number or the diagonal.")] = "1",
    grid: Annotated[str, option("Of a schedule: JOINT=0,0.1,0.2, several with semicolons between them.")] = "",
    ros2: Annotated[bool, option("A ROS 2 package for the robot instead: a plug-in in C++.", "--ros2")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Write a quantity or a controller for another processor: an object file or module, a header, an example.

    Nothing but Drevo is needed to make it; what a call costs and the line that links it are printed. Target c is
    one C file without allocation.
    """
    from ..robot.writing import export as exported

    if ros2:
        from ..ros2 import ros2_package

        return print(*ros2_package(load_robot(robot, base), output, link=link), sep="\n")
    options: dict[str, Any] = {k: x for k, x in (("link", link), ("frame", frame)) if x}
    what: Any = load_robot(robot, base)
    called = name or f"{what.name}_{quantity}"
    if quantity in CONTROLLERS:
        weights = {"--state-weights": state_weights, "--effort-weights": effort_weights}
        what, quantity = _controller(what, quantity, q, words_in(actuated), dt, weights, grid), called
    elif wrt:
        options["wrt"] = words_in(wrt)
    if target == "c":
        return _write_c(what, quantity, called, output, options, as_json)
    options |= {"parameters": kept} if (kept := words_in(parameters)) else {}
    made = exported(what, quantity, target, dtype=dtype, folder=output, name=name, **options)
    _tell(made, as_json)


def _tell(made: Any, as_json: bool) -> None:
    """Prints what was written and what a call of it costs, as text or as JSON."""
    if not as_json:
        print(made)
        return
    told = {k: getattr(made, k) for k in ("name", "target", "dtype", "size", "instructions", "cycles", "link")}
    print_json(told | {"files": [str(f) for f in made.files]})


def _controller(
    robot: Robot,
    what: str,
    q: str | None,
    actuated: list[str],
    dt: float | None,
    weights: dict[str, str],
    grid: str,
) -> Any:
    """Designs the object to export: a linear model, a control law, a filter, a compensator or a schedule."""
    import numpy as np

    from .. import control

    driven, given = actuated or None, [numbers_in(name, x) or [] for name, x in weights.items()]
    Q, R = (x[0] if len(x) == 1 else x for x in given)
    start = robot.neutral() if q is None else np.array(numbers_in("--q", q, robot.nq))
    if what == "schedule":
        axes = [part.partition("=") for part in grid.split(";") if part.strip()]
        nodes = {joint.strip(): numbers_in("--grid", x) or [] for joint, _, x in axes}
        return control.schedule(robot, nodes, Q, R, start, driven, dt)
    held = control.trim(robot, start, actuated=driven)
    L: Any = robot.linearise(held.q, np.zeros(robot.nv), held.tau, actuated=driven, outputs=["q"])
    L = L if dt is None else L.discretised(dt)
    if what == "linear_model":
        return L
    if what == "kalman":
        return control.kalman(L, Q, R).estimator
    return control.lqr(L, Q, R) if what == "lqr" else control.lqg(L, Q, R, 1.0, 1.0)


def _write_c(what: Any, quantity: str, name: str, folder: Path, options: dict[str, Any], as_json: bool) -> None:
    """One C file, and what a call of its function takes at most."""
    from ..compiler.pages.derivation import write_out_program
    from ..documents.sequence.names import identifier
    from ..io.files import write_whole
    from ..robot.writing import write_out

    name = identifier(name).lower()
    own = hasattr(what, "program")
    d = write_out_program(what.program(name)) if own else write_out(what, quantity, **options)
    file = write_whole("export", folder / f"{name}.c", d.c())
    if as_json:
        print_json({"name": d.program.name, "target": "c", "counts": d.counts, "files": [str(file)]})
    else:
        print(f"{file}: {d.program.name}, at every call {d.about.totals}")
