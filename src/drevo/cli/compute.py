"""drevo compute: a quantity at a state. drevo ik: configurations that reach poses. drevo workspace: points that a
link reaches. drevo robots: names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..io.files import PICTURES
from .common import (
    PLOT,
    STATE,
    Base,
    Gravity,
    Json,
    RobotName,
    guarded,
    load_robot,
    numbers_in,
    option,
    print_json,
    print_picture,
    print_table,
    ready_for,
    save_result,
    under_gravity,
    vector_in,
)

if TYPE_CHECKING:
    import numpy as np

    from ..model.quantities import Quantity
    from ..robot.face import Robot

    Array = np.ndarray[Any, Any]

FAILED = 1  # the exit code where a pose is not reached
QUATERNION_TOLERANCE = 1e-3  # of the length 1: what numbers of three digits leave
POSE = "x y z qw qx qy qz"
POINT_OF_LINK = "A point of the link, x,y,z in m, in its frame, in the place of its origin."


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
    point: Annotated[str | None, option(POINT_OF_LINK)] = None,
    frame: Annotated[str | None, option("local_world_aligned, local or world.")] = None,
    axes: Annotated[str | None, option("Axes of operational_space and manipulability, such as 'x y z'.")] = None,
    gravity: Gravity = None,
    passive: Annotated[bool, option("With dampers, springs and dry friction.")] = False,
    csv: Annotated[bool, option("Print comma-separated values instead of tables.", "--csv")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Compute a quantity at a state: torques, mass matrix, pose, Jacobian, energies and all others."""
    from ..model.quantities import quantity as row_of

    if csv and as_json:
        raise InputError("compute: --csv and --json are two forms of one result; give one of them")
    machine = under_gravity(load_robot(robot, base), gravity)
    row = row_of(quantity)
    given = {"q": q, "v": v, "a": a, "tau": tau, "x": x}
    _refuse_unused(row.name, {name: text for name, text in given.items() if name not in row.state})
    state = {name: vector_in(machine, name, given[name]) for name in row.state}
    wanted = {"link": link, "relative_to": relative_to, "frame": frame, "axes": axes, "passive": passive or None}
    options: dict[str, Any] = {name: text for name, text in wanted.items() if text is not None}
    if "link" in row.options:
        options.setdefault("link", machine.link_names[-1])
    values = _results(machine, row, state, options, point)
    if as_json:
        numbers, at = ({name: x.tolist() for name, x in part.items()} for part in (values, state))
        print_json({"robot": machine.name, "quantity": row.name, **options, "state": at, **numbers})
        return
    _print_all(machine, row, values, options, csv)


def _results(
    robot: Robot, row: Quantity, state: dict[str, Array], options: dict[str, Any], point: str | None
) -> dict[str, Array]:
    """The results of a quantity by name; a point of the link is entered in the options."""
    import numpy as np

    from ..kinematics.points import at_point
    from ..robot.compiling import compile as compiled

    at_options = options
    if point is not None:
        if "link" not in options:
            raise InputError(f"{row.name} takes no --point; leave it out")
        place = numbers_in("--point", point, 3)
        robot, link = at_point("compute", robot, options["link"], place)
        at_options = {**options, "link": link}
        options["point"] = place
    result = compiled(robot, row.name, **at_options)(*state.values())
    results = result if isinstance(result, tuple) else (result,)
    return {name: np.asarray(value) for (name, _), value in zip(row.outputs, results)}


def _print_all(robot: Robot, row: Quantity, values: dict[str, Array], options: dict[str, Any], csv: bool) -> None:
    """All results of a quantity, under its name, its options and what it is."""
    if not csv:
        about = ", ".join(f"{key} {value}" for key, value in options.items())
        print(f"{row.name} of {robot.name}{about and ': ' + about}")
        print(row.about)
        if robot.model.closed:
            print(
                "Of the open tree, without the loops and couplings of the robot: robot.under() in Python has them."
            )
    for name, shape in row.outputs:
        _print(robot, name, values[name], shape, options.get("axes"), csv)


def _refuse_unused(quantity: str, given: dict[str, str | None]) -> None:
    for name, text in given.items():
        if text is not None:
            raise InputError(f"{quantity} takes no --{name}; leave it out")


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
    from ..model.quantities import TASK_AXES, task_axes

    if size == "nv":
        return ["".join(x) for x in robot.model.freedoms("v")]
    if size == "links":
        return robot.moving_links
    if size == "axes":
        return task_axes("compute", axes or TASK_AXES)
    return {3: TASK_AXES[:3], 4: (*TASK_AXES[:3], ""), 6: TASK_AXES}.get(int(size), range(int(size)))


@guarded
def ik(
    robot: RobotName,
    link: Annotated[str, option("The link that is brought there.")],
    pose: Annotated[str | None, option(f"'{POSE}', m, the scalar of the quaternion first, or 'x y z'.")] = None,
    poses: Annotated[Path | None, option("A CSV file, a pose in every line; a line of names is left out.")] = None,
    every: Annotated[bool, option("All distinct solutions, not one.", "--all")] = False,
    point: Annotated[str | None, option(POINT_OF_LINK)] = None,
    q0: Annotated[str | None, option(f"Where the search begins: {STATE}neutral.")] = None,
    limits: Annotated[bool, option("Within the limits of the file, or not.", "--limits/--no-limits")] = True,
    attempts: Annotated[int, option("Starts for a pose.")] = 100,
    tolerance: Annotated[float, option("What may be left, m and rad.")] = 1e-9,
    avoid: Annotated[bool, option("Geoms of the file do not touch.", "--avoid")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Find configurations that bring a link to a pose, or to each of a file.

    The exit code is 1 where a pose is not reached; what is left and the reason are printed.
    """
    from ..kinematics.inverse import Reached

    arm = load_robot(robot, base)
    goals, reach = _goals(pose, poses)
    options: dict[str, Any] = {"limits": limits, "attempts": attempts, "tolerance": tolerance, "reach": reach}
    options |= {"avoid": "auto"} if avoid else {}
    options |= {} if q0 is None else {"q0": vector_in(arm, "q0", q0)}
    options["point"] = numbers_in("--point", point, 3)
    one = arm.inverse_kinematics(link, goals, **options)
    solutions = [Reached(*(x[k : k + 1] for x in one)) for k in range(len(goals))]
    if every:  # what one search has not reached is said by it
        listed = arm.inverse_kinematics(link, goals, **options, all=True)
        solutions = [several if len(several.q) else single for single, several in zip(solutions, listed)]
    branches = _closed_branches(arm, link)
    if as_json:
        rows = [_as_json(arm, x) for x in solutions]
        print_json({"robot": arm.name, "link": link, "poses": rows, "closed_form": branches})
    else:
        _print_solutions(arm, solutions)
        if branches:
            print(f"closed form: {branches} branches; drevo write-out {robot} inverse_kinematics --link {link}")
    if not all(x.success[0] for x in solutions):
        raise typer.Exit(FAILED)


def _closed_branches(arm: Robot, link: str) -> int:
    """The branches of the closed form of a link, 0 where none is known."""
    from ..errors import TraceError
    from ..kinematics.closed.closed_form import written_branches

    try:
        return written_branches(arm.model, link).outputs[0].shape[0]
    except TraceError:
        return 0


def _goals(pose: str | None, file: Path | None) -> tuple[Array, str]:
    """Poses (n, 4, 4) from the option or the file, and what of them is to be reached."""
    import numpy as np

    if (pose is None) == (file is None):
        raise InputError(f"ik: give --pose '{POSE}' or --poses FILE.csv, one of them")
    lines = [("--pose", pose)] if pose is not None else []
    if file is not None:
        text = file.read_text(encoding="utf-8").splitlines()
        lines = [(f"{file}, line {k + 1}", line) for k, line in enumerate(text) if line.strip()]
        lines = lines[1:] if lines and re.search(r"[a-df-z]", lines[0][1].lower()) else lines
    rows = [_pose_numbers(title, line or "") for title, line in lines]
    if not rows or len({len(x) for x in rows}) > 1:
        raise InputError(f"ik: {file} has no poses" if not rows else f"ik: {file} has lines of 3 and of 7 numbers")
    return np.array([_pose_matrix(title, x) for (title, _), x in zip(lines, rows)]), "pose" if len(
        rows[0]
    ) == 7 else "position"


def _pose_numbers(title: str, line: str) -> list[float]:
    numbers = numbers_in(title, ",".join(re.split(r"[,;\s]+", line.strip().strip("[]()")))) or []
    if len(numbers) not in (3, 7):
        raise InputError(f"{title} has {len(numbers)} numbers; a pose is '{POSE}', a point is 'x y z'")
    return numbers


def _pose_matrix(title: str, numbers: list[float]) -> Array:
    """A pose (4, 4)."""
    import numpy as np

    from ..mechanics.rotation import from_quaternion

    T = np.eye(4)
    T[:3, 3] = numbers[:3]
    if len(numbers) == 7:
        length = float(np.linalg.norm(numbers[3:]))
        if not abs(length - 1.0) <= QUATERNION_TOLERANCE:
            raise InputError(
                f"{title}: the quaternion (w x y z) has length {length:.6g}; a rotation has length 1, divide by it"
            )
        w, x, y, z = (c / length for c in numbers[3:])
        T[:3, :3] = from_quaternion(x, y, z, w)
    return T


def _as_json(robot: Robot, x: Any) -> dict[str, Any]:
    """The solutions of a pose; where there is none, the nearest configuration and what it lacks."""
    keys = ["".join(name) for name in robot.model.freedoms("q")]
    rows = [
        {"q": q.tolist(), "joints": dict(zip(keys, q.tolist())), "residual": residual.tolist()}
        for q, residual in zip(x.q, x.residual)
    ]
    return {"success": bool(x.success[0]), "reason": str(x.reason[0]), "solutions": rows}


def _print_solutions(robot: Robot, poses: list[Any]) -> None:
    """A row for every solution: coordinates by joint name, and what is left."""
    columns = ["pose", *("".join(name) for name in robot.model.freedoms("q")), "left, m", "left, rad"]
    rows = [
        [k + 1, *(f"{y + 0.0:.6f}" for y in q), *(f"{y:.1e}" for y in residual)]
        for k, x in enumerate(poses)
        for q, residual in zip(x.q, x.residual)
    ]
    print_table("", columns, rows)
    for k, x in enumerate(poses):
        if not x.success[0]:
            print(f"pose {k + 1}: {x.reason[0]}")


@guarded
def workspace(
    robot: RobotName,
    link: Annotated[str, option("The link whose points are asked for.")],
    point: Annotated[str | None, option(POINT_OF_LINK)] = None,
    samples: Annotated[int, option("Random configurations within the limits.")] = 100_000,
    seed: Annotated[int, option("Of the random numbers.")] = 0,
    plot: Annotated[bool, option(PLOT, "--plot")] = False,
    output: Annotated[
        Path | None, option(f"Save points as .csv, or a picture: {', '.join(PICTURES)}.", "-o", "--output")
    ] = None,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Find the points that a link reaches within the limits of its joints, by random configurations."""
    from ..kinematics.workspace import reachable_points

    ready_for("a workspace", output, (".csv", *PICTURES))
    arm = load_robot(robot, base)
    space = reachable_points(arm, link, samples, seed, numbers_in("--point", point, 3) or (0.0, 0.0, 0.0))
    save_result(space, output)
    ranges = space.ranges()
    if as_json:
        print_json({"robot": arm.name, "link": link, "samples": samples, "ranges": ranges})
        return
    print_table(
        "", ["m", "from", "to"], [[name, f"{a + 0.0:.4f}", f"{b + 0.0:.4f}"] for name, (a, b) in ranges.items()]
    )
    print_picture(space, plot, output)


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
