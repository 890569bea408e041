"""drevo export: a quantity, a derivative, a linear model or a controller for another processor, or as C."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DrevoWarning
from .common import (
    STATE,
    Base,
    Json,
    RobotName,
    given_in,
    guarded,
    load_robot,
    numbers_in,
    option,
    print_json,
    vector_in,
    words_in,
)

if TYPE_CHECKING:
    from ..robot import Robot

REST_TOLERANCE = 1e-6  # rad or m, of where a controller holds and where it was wanted
OF_JOINTS = ("pd", "computed_torque", "gravity_compensation")
TASK_SPACE_LAWS = ("operational_space", "impedance", "admittance")
CONTROL_LAWS = (*OF_JOINTS, *TASK_SPACE_LAWS)
CONTROLLERS = ("linear_model", "lqr", "kalman", "lqg", "schedule", *CONTROL_LAWS)
_HELP = f"inverse_dynamics (the default), mass_matrix, constrained_dynamics, ...; or {', '.join(CONTROLLERS)}."
TARGET_NAMES = (
    "c, cortex-m4f, cortex-m7, aarch64, riscv64, wasm, windows, macos or ptx; fmu or simulink for simulators."
)


@guarded
def export(
    robot: RobotName,
    quantity: Annotated[str, typer.Argument(metavar="QUANTITY", help=_HELP)] = "",
    target: Annotated[str, option(TARGET_NAMES, "-t", "--target")] = "c",
    dtype: Annotated[str, option("float64 or float32.")] = "float64",
    output: Annotated[Path, option("The folder to write to.", "-o", "--output")] = Path(),
    name: Annotated[str, option("The name of the function; by default robot_quantity.")] = "",
    parameters: Annotated[str, option("Parameters to keep as an argument, with commas between them.")] = "",
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    frame: Annotated[str, option("The frame of velocity, jacobian, ...")] = "",
    given: Annotated[str, option("Of inverse_kinematics: joints that are given, joint7=0.4, or joint7.")] = "",
    wrt: Annotated[str, option("A derivative by q, v, a, tau or t, such as q or q,v.")] = "",
    q: Annotated[str | None, option(f"Where fmu and simulink start, a controller holds: {STATE}neutral.")] = None,
    actuated: Annotated[str, option("Of controllers: driven joints; by default all but a free base.")] = "",
    dt: Annotated[float | None, option("Of controllers: seconds between steps; by default continuous.")] = None,
    state_weights: Annotated[str, option("Of controllers: Q (of a filter W), one number or the diagonal.")] = "1",
    effort_weights: Annotated[str, option("Of controllers: R (of a filter V), one number or the diagonal.")] = "1",
    kp: Annotated[float, option("Stiffness of laws: computed_torque, operational_space 1/s², else N/m.")] = 100.0,
    kd: Annotated[float, option("Damping of laws: of computed_torque, operational_space 1/s, else N s/m.")] = 20.0,
    inertia: Annotated[float, option("Of admittance, kg and kg m².")] = 1.0,
    axes: Annotated[str, option("Of laws of a link, such as 'x y z'; by default all six.")] = "",
    grid: Annotated[str, option("Of a schedule: JOINT=0,0.1,0.2, several with semicolons between them.")] = "",
    ros2: Annotated[bool, option("A ROS 2 package; of a law a controller of ros2_control.", "--ros2")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Write a quantity or a controller for another processor: an object file or module, a header, an example.

    Nothing but Drevo is needed to make it; what a call costs and the line that links it are printed. Target c is
    one C file without allocation; fmu is an FMU of FMI 3.0 and simulink an S-function in C: both hold the robot
    under torques, with the controller inside where one is named.
    """
    from ..robot.writing import export as exported

    held: Any = load_robot(robot, base)
    law = _law(held, quantity, q, kp, kd, inertia, link, axes) if quantity in CONTROL_LAWS else None
    if ros2:
        return _write_ros2(held, output, link, law, name or f"{held.name}_{quantity}")
    moves = target in ("fmu", "simulink")
    quantity = quantity or ("forward_dynamics" if moves else "inverse_dynamics")
    of_link, joints = "" if law else link, given_in(given)
    named = {"link": of_link, "frame": frame, "parameters": words_in(parameters), "wrt": words_in(wrt)}
    options: dict[str, Any] = {k: x for k, x in {**named, "given": joints}.items() if x}
    options |= {"q0": vector_in(held, "q", q)} if moves and q is not None else {}
    name = name or (f"{held.name}_{quantity}" if quantity in CONTROLLERS and not moves else "")
    if law:
        held = law
    elif quantity in CONTROLLERS:
        weights = {"--state-weights": state_weights, "--effort-weights": effort_weights}
        held = _controller(held, quantity, q, words_in(actuated), dt, weights, grid)
    _tell(exported(held, quantity, target, dtype=dtype, folder=output, name=name, **options), as_json)


def _write_ros2(robot: Robot, folder: Path, link: str, law: Any, name: str) -> None:
    from ..ros2 import ros2_controller, ros2_package

    *files, guide = ros2_controller(law, folder, name=name) if law else ros2_package(robot, folder, link=link)
    print(*files, f"{guide}: how to build it with colcon", sep="\n")


def _tell(exported: Any, as_json: bool) -> None:
    """Prints what was written and what a call of it costs, as text or as JSON."""
    if not as_json:
        print(exported)
        return
    fields = ["name", "target", "dtype"] + ["size", "instructions", "cycles"] * (exported.target != "c")
    facts = {k: getattr(exported, k) for k in fields} | {
        "counts" if exported.target == "c" else "link": exported.link
    }
    print_json(facts | {"files": [str(f) for f in exported.files]})


def _controller(
    robot: Robot,
    kind: str,
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
    start = vector_in(robot, "q", q)
    if kind == "schedule":
        axes = [part.partition("=") for part in grid.split(";") if part.strip()]
        nodes = {joint.strip(): numbers_in("--grid", x) or [] for joint, _, x in axes}
        return control.schedule(robot, nodes, Q, R, start, driven, dt)
    held = control.trim(robot, start, actuated=driven)
    if np.abs(held.q - start).max() > REST_TOLERANCE:
        at = ", ".join(f"{name}={x:.6g}" for name, x in robot.names_of(held.q).items())
        warnings.warn(
            f"{robot.name!r} cannot rest at --q with these drives: held is {at}", DrevoWarning, stacklevel=2
        )
    L: Any = robot.linearise(held.q, np.zeros(robot.nv), held.tau, actuated=driven, outputs=["q"])
    L = L if dt is None else L.discretised(dt)
    if kind == "linear_model":
        return L
    if kind == "kalman":
        return control.kalman(L, Q, R).estimator
    return control.lqr(L, Q, R) if kind == "lqr" else control.lqg(L, Q, R, 1.0, 1.0)


def _law(
    robot: Robot, name: str, q: str | None, kp: float, kd: float, inertia: float, link: str, axes: str
) -> Any:
    """A law that holds a configuration, or the pose that a link has there."""
    from .. import control
    from ..errors import InputError

    if name == "gravity_compensation":
        return control.gravity_compensation(robot, kd)
    at = vector_in(robot, "q", q)
    if name in OF_JOINTS:
        return getattr(control, name)(robot, at, kp, kd)
    if not link:
        raise InputError(f"export: {name} is a law of a link; give --link")
    more = {"inertia": inertia} if name == "admittance" else {}
    return getattr(control, name)(robot, link, kp, kd, reference=robot.pose(at, link), axes=axes or None, **more)
