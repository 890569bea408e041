"""Robots from Denavit-Hartenberg tables, standard or modified, with auxiliary frames where bodies branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import cos, sin
from typing import Any

import numpy as np

from ..errors import ModelError, shown
from ..model import values
from ..model.description import IDENTITY, ORIGIN, Mat3, Vec3
from ..model.draft import STANDARD_GRAVITY, did_you_mean
from ..model.rotations import add_vectors, apply, from_rpy, matmul, transpose, turn_tensor
from ..robot.builder import Builder
from ..robot.face import Robot
from .reading import Table, convention_of

_read = partial(values.checked, ModelError)
GivenRow = Mapping[str, Any] | Sequence[Any]
Frame = tuple[Mat3, Vec3]

DH_COLUMNS = ("parent", "theta", "d", "a", "alpha", "joint", "mass", "com", "inertia", "M")
LEAST_COLUMNS = 5  # columns of a row without names: to alpha
EXTRAS = ("name", "joint_name", "lead", "limit", "mimic", "dynamics")
KIND_BY_SHORT_NAME = {"R": "revolute", "P": "prismatic", "H": "helical", "F": "fixed"}
BALLS = ("spherical", "free")
ALLOWED = ("revolute", "continuous", "prismatic", "helical", "fixed", *BALLS)
ROW_ROUNDING = 1e-15  # rad, by each radian of an angle beyond the first
IDENTITY_FRAME: Frame = (IDENTITY, ORIGIN)


@dataclass(frozen=True, slots=True)
class Constants:
    """The four constants of a row: theta and alpha in radians, d and a in metres."""

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0


def from_dh(
    table: Sequence[GivenRow],
    convention: str | None = None,
    *,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Robot:
    """A Robot from the rows of a Denavit-Hartenberg table; SI units, radians.

    The convention is "standard" if nothing is said; a `Table`, as `drevo.dh.table` makes them of robots, brings
    its own, and its name, gravity, loops and contacts; every link of that robot gets its own frame again, and what
    was welded is welded.

    A row is a mapping with any of `parent theta d a alpha joint mass com inertia M`, or a list in this order,
    and of `name joint_name lead limit mimic` and `dynamics`, a JointDynamics. `parent` is the number of a row
    counted from 1, 0 for the base, or a name; by default the row before. `joint` is "revolute", "prismatic",
    "helical" (with `lead`, metres per revolution) or "fixed", or R, P, H, F; theta and d are where it stands at
    q = 0. A floating base is a row with the joint "free", a ball one with "spherical"; its four constants are 0.

    standard (distal):   A = Rz(theta) Tz(d) Tx(a) Rx(alpha); the row's frame is past the joint, on its body
    modified (proximal): A = Rx(alpha) Tx(a) Rz(theta) Tz(d); the row's frame is at the joint

    The link of a row has the row's frame, the product of the A from the base on: poses, velocities, wrenches
    and points of the Robot's link are of that frame or in it, `com` and `inertia` (3x3, about the centre of mass)
    too. `M` is an auxiliary frame of the parent, from which the row starts instead of the parent's own:
    {"xyz": ..., "rpy": ...}, a 4x4 matrix or a pair (rotation, xyz). Raises ModelError for what is no such
    table, with the row and the column.
    """
    return builder(table, convention, name=name, gravity=gravity).robot(strict)


def builder(
    table: Sequence[GivenRow],
    convention: str | None = None,
    *,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
) -> Builder:
    """A Builder of the robot of a Denavit-Hartenberg table, for contacts, loops and further bodies."""
    convention = None if convention is None else convention_of(convention)
    given = (
        table
        if isinstance(table, Table)
        else Table(_rows(table), convention or "standard", "robot", STANDARD_GRAVITY)
    )
    convention = convention or given.convention
    if convention != given.convention:
        raise ModelError(
            f"the table is in the {given.convention} convention, not the {convention} one; leave the convention "
            f"out, or ask for drevo.dh.table(robot, {convention!r})"
        )
    b = Builder(given.name if name is None else name, given.gravity if gravity is None else gravity, given.root)
    done: dict[str, Frame] = {given.root: IDENTITY_FRAME}
    _weld(b, given, done, 0)
    for k, row in enumerate(given.rows, 1):
        _add(b, done, k, _columns(row, k), convention, given.frames)
        _weld(b, given, done, k)
    for link, shapes in given.shapes.items():
        b.shaped(link, shapes)
    for c in given.couplings:
        b.couple(c.joint, c.driver, c.coefficients)
    for contact in given.contacts:
        b.contact(contact.link, contact.point)
    for x in given.loops:
        b.loop(x.kind, x.link_a, x.point_a, x.link_b, x.point_b, x.rotation, x.axis_a, x.axis_b, x.length)
    return b


def place_standard(row: Constants, parent: Constants, frame: Frame = (IDENTITY, ORIGIN)) -> Frame:
    """Rotation and origin of the joint's frame in the joint frame of the parent, standard convention."""
    turn, at = frame
    twist = rx(parent.alpha)
    to_joint = add_vectors(at, apply(turn, (0.0, 0.0, row.d)))
    return matmul(matmul(twist, turn), rz(row.theta)), add_vectors((parent.a, 0.0, 0.0), apply(twist, to_joint))


def body_standard(row: Constants, com: Vec3, inertia: Mat3) -> tuple[Vec3, Mat3]:
    """Centre of mass and central tensor, from the row's frame to the frame of its joint."""
    twist = rx(row.alpha)
    return add_vectors((row.a, 0.0, 0.0), apply(twist, com)), turn_tensor(twist, inertia)


def sin_cos(angle: float) -> tuple[float, float]:
    """Sine and cosine, exact at quarter turns however many: structural zeros are worth operations.

    An angle that is a rounded multiple of pi/2 stands off it by its own rounding, which grows with it.
    """
    s, c = sin(angle), cos(angle)
    rounding = ROW_ROUNDING * max(1.0, abs(angle))
    if abs(c) < rounding:
        return (1.0 if s > 0 else -1.0), 0.0
    return (0.0, 1.0 if c > 0 else -1.0) if abs(s) < rounding else (s, c)


def rx(angle: float) -> Mat3:
    """Turn about x."""
    s, c = sin_cos(angle)
    return ((1.0, 0.0, 0.0), (0.0, c, 0.0 - s), (0.0, s, c))


def rz(angle: float) -> Mat3:
    """Turn about z."""
    s, c = sin_cos(angle)
    return ((c, 0.0 - s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))


# --- reading rows ----------------------------------------------------------


def _rows(table: object) -> tuple[GivenRow, ...]:
    """The rows of what should be a table: a list of them, or an array."""
    table = table.tolist() if isinstance(table, memoryview) else table  # one of several axes does not iterate
    if isinstance(table, (str, bytes, Mapping)) or not np.iterable(table):
        raise ModelError(
            f"a DH table is a list of rows, or what drevo.dh.table gives, not {shown(table)}; a robot is "
            "read by drevo.load"
        )
    rows = tuple(
        table.tolist() if isinstance(table, memoryview) else table
    )  # one of several axes does not iterate
    if not rows:
        raise ModelError("the DH table has no rows; give one for every joint")
    return rows


def _add(
    b: Builder,
    done: dict[str, Frame],
    k: int,
    row: Mapping[str, Any],
    convention: str,
    frames: Mapping[str, tuple[int, Any]],
) -> None:
    """The body of a row. `done`: where the row's frame stands in its link's own."""
    label = f"row {k}"
    name = _read(label, "name", values.name, row.get("name", f"link{k}"))
    parent = _parent(row.get("parent", k - 1), k, done)
    theta, d, a, alpha = (
        _read(label, key, values.scalar, row.get(key, 0.0)) for key in ("theta", "d", "a", "alpha")
    )
    kind = _joint(label, row.get("joint", "revolute"))
    if kind in BALLS and (theta, d, a, alpha) != (0.0, 0.0, 0.0, 0.0):
        raise ModelError(f"{label} has the joint {kind!r} and a constant that is not 0; place it by M instead")
    turn, shift = (rz(theta), (0.0, 0.0, d)), (rx(alpha), (a, 0.0, 0.0))
    start = _after(done[parent], _frame(label, row.get("M")))
    auxiliary = _frame(label, frames[name][1]) if name in frames else IDENTITY_FRAME
    back = _inverse(auxiliary)
    rotation, origin = _after(start, turn if convention == "standard" else _after(shift, turn))
    child_rotation, child_origin = _after(shift, auxiliary) if convention == "standard" else auxiliary
    b.body(
        name,
        parent,
        kind,
        (0.0, 0.0, 1.0),
        origin,
        rotation,
        mass=_read(label, "mass", values.scalar, row.get("mass", 0.0)),
        com=_after(back, (IDENTITY, _read(label, "com", values.vector, row.get("com", ORIGIN))))[1],
        inertia=turn_tensor(back[0], _read(label, "inertia", _tensor, row.get("inertia"))),
        lead=row.get("lead"),
        limit=row.get("limit"),
        mimic=row.get("mimic"),
        dynamics=row.get("dynamics"),
        joint_name=row.get("joint_name", f"joint{k}"),
        child_origin=child_origin,
        child_rotation=child_rotation,
    )
    done[name] = back


def _weld(b: Builder, given: Table, done: Mapping[str, Frame], k: int) -> None:
    """Adds the links that the table welds to row k (0: the ground), each at its place in the table."""
    carrier = list(done)[k]
    moving = {row["name"] for row in given.rows if given.frames}
    taken = {row.get("joint_name") for row in given.rows if given.frames}
    for link, (row, where) in given.frames.items():
        if row != k or link in moving or link == given.root:
            continue
        joint = f"{link}_fixed"
        while joint in taken:
            joint += "_"
        turn, at = _after(done[carrier], _frame(f"link {link!r}", where))
        b.body(link, carrier, "fixed", origin=at, rotation=turn, joint_name=joint)


def _columns(row: object, k: int) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)) or not np.iterable(row):
            raise ModelError(f"row {k} is {shown(row)}; a row is a mapping of columns or a list of them")
        if not LEAST_COLUMNS <= len(row) <= len(DH_COLUMNS):
            raise ModelError(
                f"row {k} has {len(row)} columns; a list has {LEAST_COLUMNS} to {len(DH_COLUMNS)} of them, in "
                f"this order: {', '.join(DH_COLUMNS)}"
            )
        return dict(zip(DH_COLUMNS, row))
    known = (*DH_COLUMNS, *EXTRAS)
    for key in row:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"; columns are {', '.join(known)}"
            raise ModelError(f"row {k} has the unknown column {key!r}{hint}")
    return row


def _parent(parent: object, k: int, done: Mapping[str, object]) -> str:
    """The name of the parent; `done` holds the world and the rows before, in order."""
    if isinstance(parent, str) and parent in done:
        return parent
    number = int(parent) if isinstance(parent, (int, np.integer)) and not isinstance(parent, bool) else -1
    if not 0 <= number < k:
        raise ModelError(f"row {k} has the parent {parent!r}; give 0 for the base, or a row before this one")
    return list(done)[number]


def _joint(label: str, joint: object) -> str:
    """The kind of a joint by its name or short name, checked."""
    kind = KIND_BY_SHORT_NAME.get(str(joint), str(joint))
    kind = "helical" if kind == "screw" else kind
    if kind not in ALLOWED:
        raise ModelError(f"{label} has the joint {joint!r}; a DH row takes {', '.join(ALLOWED)}")
    return kind


def _frame(label: str, given: Any) -> Frame:
    """The auxiliary frame of the parent: rotation and origin."""
    return IDENTITY_FRAME if given is None else _read(label, "the frame M", _placed, given)


def _placed(given: Any) -> Frame:
    if isinstance(given, Mapping):
        if set(given) - {"xyz", "rpy"}:
            raise ValueError(f"has the unknown key {min(map(str, set(given) - {'xyz', 'rpy'}))!r}")
        return from_rpy(*values.vector(given.get("rpy", ORIGIN))), values.vector(given.get("xyz", ORIGIN))
    rows = [] if isinstance(given, str) or not hasattr(given, "__iter__") else list(given)
    if len(rows) == 2:
        return values.rotation(rows[0]), values.vector(rows[1])
    if len(rows) == 4:
        full = [values.sequence(row) for row in rows]
        if {len(row) for row in full} == {4} and full[3] == (0.0, 0.0, 0.0, 1.0):
            return values.rotation([row[:3] for row in full[:3]]), values.vector([row[3] for row in full[:3]])
    raise ValueError('is not {"xyz", "rpy"}, a 4x4 matrix with the last row 0 0 0 1 or a pair (rotation, xyz)')


def _tensor(value: object) -> Mat3:
    return (ORIGIN, ORIGIN, ORIGIN) if value is None else values.tensor(value)


def _after(a: Frame, b: Frame) -> Frame:
    """The frame b of the frame a."""
    if b == IDENTITY_FRAME:
        return a
    return (b[0] if a[0] == IDENTITY else matmul(a[0], b[0])), add_vectors(a[1], apply(a[0], b[1]))


def _inverse(a: Frame) -> Frame:
    back = transpose(a[0])
    x, y, z = apply(back, a[1])
    return back, (0.0 - x, 0.0 - y, 0.0 - z)
