"""drevo compute: the value of a quantity at a state. drevo robots: the robots that have a name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .common import Base, Json, RobotName, guarded, load_robot, numbers_in, option, print_json, print_table

if TYPE_CHECKING:
    import numpy as np

    from ..model.quantities import Quantity
    from ..robot.face import Robot

    Array = np.ndarray[Any, Any]

TASK_AXES = ("x", "y", "z", "rx", "ry", "rz")
STATE = "joint=value, ... (name[k] of a joint with several), or all numbers; by default "


@guarded
def compute(
    robot: RobotName,
    quantity: Annotated[
        str, typer.Argument(metavar="QUANTITY", help="Its name, such as mass_matrix, gravity or pose.")
    ],
    q: Annotated[str | None, option(f"Coordinates, rad or m: {STATE}neutral.")] = None,
    v: Annotated[str | None, option(f"Velocities: {STATE}0.")] = None,
    a: Annotated[str | None, option(f"Accelerations: {STATE}0.")] = None,
    tau: Annotated[str | None, option(f"Torques and forces of the joints: {STATE}0.")] = None,
    x: Annotated[str | None, option(f"The vector of inertia_product: {STATE}0.")] = None,
    link: Annotated[str | None, option("The link, of quantities of one; by default the last.")] = None,
    relative_to: Annotated[str | None, option("The link from which the other is observed.")] = None,
    frame: Annotated[str | None, option("local_world_aligned, local or world.")] = None,
    axes: Annotated[str | None, option("Axes of operational_space and manipulability, such as 'x y z'.")] = None,
    gravity: Annotated[str | None, option("Three numbers, m/s^2, in place of the file's.")] = None,
    passive: Annotated[bool, option("With dampers, springs and dry friction.")] = False,
    csv: Annotated[bool, option("Print comma-separated values instead of tables.", "--csv")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Compute a quantity at a state: torques, mass matrix, pose, Jacobian, energies and all others."""
    import numpy as np

    from ..model.quantities import quantity as row_of
    from ..robot.compiling import compile as compiled

    made = load_robot(robot, base)
    if gravity is not None:
        made = _under(made, numbers_in("--gravity", gravity, 3) or [])
    row = row_of(quantity)
    given = {"q": q, "v": v, "a": a, "tau": tau, "x": x}
    _refuse_unused(row.name, {name: text for name, text in given.items() if name not in row.state})
    state = {name: _state(made, name, given[name]) for name in row.state}
    wanted = {"link": link, "relative_to": relative_to, "frame": frame, "axes": axes, "passive": passive or None}
    options: dict[str, Any] = {name: text for name, text in wanted.items() if text is not None}
    if "link" in row.options:
        options.setdefault("link", made.link_names[-1])
    found = compiled(made, row.name, **options)(*state.values())
    results = found if isinstance(found, tuple) else (found,)
    values = {name: np.asarray(value) for (name, _), value in zip(row.outputs, results)}
    if as_json:
        numbers, at = ({name: x.tolist() for name, x in part.items()} for part in (values, state))
        print_json({"robot": made.name, "quantity": row.name, **options, "state": at, **numbers})
        return
    _print_all(made, row, values, options, csv)


def _print_all(robot: Robot, row: Quantity, values: dict[str, Array], options: dict[str, Any], csv: bool) -> None:
    """All results of a quantity, under its name, its options and what it is."""
    if not csv:
        about = ", ".join(f"{key} {value}" for key, value in options.items())
        print(f"{row.name} of {robot.name}{about and ': ' + about}")
        print(row.about)
    for name, shape in row.outputs:
        _print(robot, name, values[name], shape, options.get("axes"), csv)


def _under(robot: Robot, gravity: Sequence[float]) -> Robot:
    """The robot under another gravity."""
    from dataclasses import replace

    from ..robot.face import Robot as RobotClass

    g = (gravity[0], gravity[1], gravity[2])
    return RobotClass(replace(robot.model, gravity=g))


def _refuse_unused(quantity: str, given: dict[str, str | None]) -> None:
    from ..errors import InputError

    for name, text in given.items():
        if text is not None:
            raise InputError(f"{quantity} takes no --{name}; leave it out")


def _state(robot: Robot, name: str, text: str | None) -> Array:
    """A vector of the state from its text."""
    import numpy as np

    from ..errors import InputError, one_of

    kind = "q" if name == "q" else "v"
    vector = robot.neutral() if kind == "q" else np.zeros(robot.nv)
    if text is None:
        return vector
    if "=" not in text:
        return np.array(numbers_in(f"--{name}", text, len(vector)))
    places = {joint + index: k for k, (joint, index) in enumerate(robot.model.freedoms(kind))}
    for part in filter(None, re.split(r"[,\s]+", text)):
        joint, _, number = part.partition("=")
        one_of(f"--{name}: coordinate", joint, places, InputError)
        vector[places[joint]] = (numbers_in(f"--{name} {joint}", number, 1) or [0.0])[0]
    return vector


def _print(robot: Robot, name: str, value: Array, shape: Sequence[int | str], axes: str | None, csv: bool) -> None:
    """A result as a table, or as lines of comma-separated values, with the names of rows and columns."""
    if len(shape) == 3:
        for label, part in zip(_labels(robot, shape[0], axes), value):
            _print(robot, f"{name} {label}", part, shape[1:], axes, csv)
        return
    rows = _labels(robot, shape[0], axes) if shape else [""]
    columns = _labels(robot, shape[1], axes) if len(shape) == 2 else [name]
    if shape[-1:] == (4,):
        columns = [*columns[:3], "p"]  # of a pose
    grid = value.reshape(len(rows), len(columns)) + 0.0  # no -0
    lines = [[str(row), *(f"{x:.17g}" if csv else f"{x:.6g}" for x in line)] for row, line in zip(rows, grid)]
    head = ["" if len(shape) < 2 else name, *map(str, columns)]
    if csv:
        print("\n".join(",".join(line) for line in [head, *lines]))
    else:
        print_table("", head, lines)


def _labels(robot: Robot, size: int | str, axes: str | None) -> Sequence[object]:
    """Names of rows or columns."""
    if size == "nv":
        return ["".join(x) for x in robot.model.freedoms("v")]
    if size == "links":
        return robot.moving_links
    if size == "axes":
        return (axes or " ".join(TASK_AXES)).replace(",", " ").split()
    return {3: TASK_AXES[:3], 4: (*TASK_AXES[:3], ""), 6: TASK_AXES}.get(int(size), range(int(size)))


@guarded
def robots(as_json: Json = False) -> None:
    """List the robots that can be named: those inside Drevo, and those of installed packages."""
    from ..io import installed
    from ..robots import EMBEDDED

    packaged = sorted(set(installed.names()) - set(EMBEDDED))
    if as_json:
        print_json({"embedded": list(EMBEDDED), "installed": packaged})
        return
    print("embedded:", ", ".join(EMBEDDED))
    print("installed:", ", ".join(packaged) if packaged else installed.GET)
