"""Robots from Denavit-Hartenberg tables, standard or modified, with auxiliary frames where bodies branch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import cos, sin
from typing import TYPE_CHECKING, Any

from ..builder import WORLD, Builder
from ..errors import ModelError
from ..model import values
from ..model.description import IDENTITY, ORIGIN, Mat, Vec
from ..model.rotations import add, apply, from_rpy, matmul, turn_tensor
from ..model.validation import GRAVITY
from .reading import Table

if TYPE_CHECKING:
    from ..robot import Robot

Row = Mapping[str, Any] | Sequence[Any]
Frame = tuple[Mat, Vec]

CONVENTIONS = ("standard", "modified")
COLUMNS = ("parent", "theta", "d", "a", "alpha", "joint", "mass", "com", "inertia", "M")
LEAST = 5  # columns of a row without names: to alpha
EXTRAS = ("name", "joint_name", "lead", "limit", "mimic")
SHORT = {"R": "revolute", "P": "prismatic", "H": "helical", "F": "fixed"}
BALLS = ("spherical", "free")
ALLOWED = ("revolute", "continuous", "prismatic", "helical", "fixed", *BALLS)
ROUNDING = 1e-15


@dataclass(frozen=True, slots=True)
class Constants:
    """The four constants of a row: theta and alpha in radians, d and a in metres."""

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0


def from_dh(
    table: Sequence[Row],
    convention: str | None = None,
    *,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Robot:
    """A Robot from the rows of a Denavit-Hartenberg table; SI units, radians.

    The convention is "standard" if nothing is said; a `Table`, as `drevo.dh.table` makes them of robots, brings
    its own, and its name and gravity.

    A row is a mapping with any of `parent theta d a alpha joint mass com inertia M`, or a list in this order,
    and of `name joint_name lead limit mimic`. `parent` is the number of a row counted from 1, 0 for the
    base, or a name; by default the row before. `joint` is "revolute", "prismatic", "helical" (with `lead`,
    metres per revolution) or "fixed", or R, P, H, F; theta and d are where it stands at q = 0. A floating base
    is a row with the joint "free", a ball one with "spherical"; its four constants are 0.

    standard (distal):   A = Rz(theta) Tz(d) Tx(a) Rx(alpha); the row's frame is past the joint, on its body
    modified (proximal): A = Rx(alpha) Tx(a) Rz(theta) Tz(d); the row's frame is at the joint

    `com` and `inertia` (3x3, about the centre of mass) are in the row's frame. `M` is an auxiliary frame of
    the parent, from which the row starts instead of the parent's own: {"xyz": ..., "rpy": ...}, a 4x4 matrix
    or a pair (rotation, xyz). Links of the Robot have the frames of their joints: with the modified
    convention the row's own, with the standard one the row's frame less Tx(a) Rx(alpha).
    """
    return builder(table, convention, name=name, gravity=gravity).robot(strict)


def builder(
    table: Sequence[Row],
    convention: str | None = None,
    *,
    name: str | None = None,
    gravity: Sequence[float] | None = None,
) -> Builder:
    """The same as a Builder, for contacts, loops and further bodies."""
    if isinstance(table, Table):
        convention, name = convention or table.convention, name or table.name
        gravity = table.gravity if gravity is None else gravity
    convention = "standard" if convention is None else convention
    if convention not in CONVENTIONS:
        raise ModelError(f"the convention is 'standard' or 'modified', not {convention!r}")
    b = Builder(name or "robot", GRAVITY if gravity is None else gravity)
    done: dict[str, Constants] = {WORLD: Constants()}
    for k, row in enumerate(table, 1):
        _add(b, done, k, _columns(row, k), convention)
    return b


def place_standard(row: Constants, parent: Constants, frame: Frame = (IDENTITY, ORIGIN)) -> Frame:
    """Rotation and origin of the joint's frame in the joint frame of the parent, standard convention."""
    turn, at = frame
    twist = rx(parent.alpha)
    to_joint = add(at, apply(turn, (0.0, 0.0, row.d)))
    return matmul(matmul(twist, turn), rz(row.theta)), add((parent.a, 0.0, 0.0), apply(twist, to_joint))


def place_modified(row: Constants, frame: Frame = (IDENTITY, ORIGIN)) -> Frame:
    """Rotation and origin of the row's frame in the parent's, modified convention."""
    turn, at = frame
    s, c = sin_cos(row.alpha)
    turned = matmul(turn, matmul(rx(row.alpha), rz(row.theta)))
    return turned, add(at, apply(turn, (row.a, -row.d * s, row.d * c)))


def body_standard(row: Constants, com: Vec, inertia: Mat) -> tuple[Vec, Mat]:
    """Centre of mass and central tensor, from the row's frame to the frame of its joint."""
    twist = rx(row.alpha)
    return add((row.a, 0.0, 0.0), apply(twist, com)), turn_tensor(twist, inertia)


def sin_cos(angle: float) -> tuple[float, float]:
    """Sine and cosine with exact zeros at quarter turns: structural zeros are worth operations."""
    s, c = sin(angle), cos(angle)
    if abs(c) < ROUNDING:
        return (1.0 if s > 0 else -1.0), 0.0
    return (0.0, 1.0 if c > 0 else -1.0) if abs(s) < ROUNDING else (s, c)


def rx(angle: float) -> Mat:
    """Turn about x."""
    s, c = sin_cos(angle)
    return ((1.0, 0.0, 0.0), (0.0, c, 0.0 - s), (0.0, s, c))


def rz(angle: float) -> Mat:
    """Turn about z."""
    s, c = sin_cos(angle)
    return ((c, 0.0 - s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))


# --- reading rows ----------------------------------------------------------


def _add(b: Builder, done: dict[str, Constants], k: int, row: Mapping[str, Any], convention: str) -> None:
    who, name = f"row {k}", str(row.get("name", f"link{k}"))
    parent = _parent(row.get("parent", k - 1), k, done)
    row_constants = Constants(*(_number(who, key, row.get(key, 0.0)) for key in ("theta", "d", "a", "alpha")))
    kind = _joint(who, row.get("joint", "revolute"))
    if kind in BALLS and row_constants != Constants():
        raise ModelError(f"{who} has the joint {kind!r} and a constant that is not 0; place it by M instead")
    frame = _frame(who, row.get("M"))
    com = _vector(who, "com", row.get("com", ORIGIN))
    inertia = _tensor(who, row.get("inertia"))
    if convention == "standard":
        rotation, origin = place_standard(row_constants, done[parent], frame)
        com, inertia = body_standard(row_constants, com, inertia)
    else:
        rotation, origin = place_modified(row_constants, frame)
    b.body(
        name,
        parent,
        kind,
        (0.0, 0.0, 1.0),
        origin,
        rotation,
        mass=_number(who, "mass", row.get("mass", 0.0)),
        com=com,
        inertia=inertia,
        lead=row.get("lead"),
        limit=row.get("limit"),
        mimic=row.get("mimic"),
        joint_name=row.get("joint_name", f"joint{k}"),
    )
    done[name] = row_constants


def _columns(row: Row, k: int) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        if not LEAST <= len(row) <= len(COLUMNS):
            raise ModelError(
                f"row {k} has {len(row)} columns; a list has {LEAST} to {len(COLUMNS)} of them, in this order: "
                f"{', '.join(COLUMNS)}"
            )
        return dict(zip(COLUMNS, row))
    known = (*COLUMNS, *EXTRAS)
    for key in row:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; columns are {', '.join(known)}"
            raise ModelError(f"row {k} has the unknown column {key!r}{hint}")
    return row


def _parent(parent: object, k: int, done: Mapping[str, Constants]) -> str:
    """The name of the parent; `done` holds the world and the rows before, in order."""
    if isinstance(parent, str) and parent in done:
        return parent
    number = -1 if isinstance(parent, (str, bool)) or not hasattr(parent, "__index__") else parent.__index__()
    if not 0 <= number < k:
        raise ModelError(f"row {k} has the parent {parent!r}; give 0 for the base, or a row before this one")
    return list(done)[number]


def _joint(who: str, joint: object) -> str:
    kind = SHORT.get(str(joint), str(joint))
    kind = "helical" if kind == "screw" else kind
    if kind not in ALLOWED:
        raise ModelError(f"{who} has the joint {joint!r}; a DH row takes {', '.join(ALLOWED)}")
    return kind


def _frame(who: str, given: Any) -> Frame:
    """The auxiliary frame of the parent: rotation and origin."""
    if given is None:
        return IDENTITY, ORIGIN
    try:
        if isinstance(given, Mapping):
            return from_rpy(*values.vector(given.get("rpy", ORIGIN))), values.vector(given.get("xyz", ORIGIN))
        rows = list(given)
        if len(rows) == 2:
            return values.rotation(rows[0]), values.vector(rows[1])
        if len(rows) == 4:
            turn, at = [list(r)[:3] for r in rows[:3]], [list(r)[3] for r in rows[:3]]
            return values.rotation(turn), values.vector(at)
    except (ValueError, TypeError, IndexError) as error:
        raise ModelError(f"{who}: the frame M {error}; correct it") from None
    raise ModelError(f'{who}: the frame M is {{"xyz", "rpy"}}, a 4x4 matrix or a pair (rotation, xyz)')


def _number(who: str, key: str, value: object) -> float:
    try:
        return values.scalar(value)
    except ValueError as error:
        raise ModelError(f"{who}: {key} {error}; correct it") from None


def _vector(who: str, key: str, value: object) -> Vec:
    try:
        return values.vector(value)
    except ValueError as error:
        raise ModelError(f"{who}: {key} {error}; correct it") from None


def _tensor(who: str, value: object) -> Mat:
    if value is None:
        return (ORIGIN, ORIGIN, ORIGIN)
    try:
        return values.tensor(value)
    except ValueError as error:
        raise ModelError(f"{who}: inertia {error}; correct it") from None


__all__ = ["CONVENTIONS", "Constants", "builder", "from_dh", "place_modified", "place_standard"]
