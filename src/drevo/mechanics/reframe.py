"""Better body frames: a hinge's frame may turn about its axis and slide along it, and its zero may be moved.

The frame of body i is replaced by the one turned by an angle about e_k and moved by t in it; for a hinge t
lies on its axis, for a sliding joint anywhere. Every such choice gives the same equations; they differ in how
many entries of placements and inertias are zero. A `Move` names a choice by what it makes vanish: so axes
that meet get a common pole, a constant turn about an own or a parent's axis goes into a joint's zero, a
tilted placement becomes a turn about one coordinate axis. With that a chain gets Denavit-Hartenberg frames.
`reframed` takes, body by body, the move of least estimated cost; formalisms.search goes on by true counts.

The trunk: six massless joints for a base that floats, z, y, x, yaw, pitch, roll. Kovalchuk and co-authors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import NumericsError
from ..model.base import TRUNK
from ..model.description import Model
from .rotation import axis_rotation
from .scalar import Scalar, atan2, cos, is_zero, sin
from .spatial import EYE, UNIT_VECS, ZERO, Mat, RigidInertia, Vec
from .tree import LinkFrame, Tree, TreeBody
from .tree_indices import children_of

FRAME_SWEEPS = 3
ZERO_BELOW = 1e-14  # of a placement's largest entry
MIN_SLOPE = 0.25  # slope under which a slide goes too far: a pole 1/slope away costs 1/slope^2 in rounding
HINGES = ("revolute", "helical")


def renames(R: Iterable[Vec]) -> bool:
    """R only renames axes, up to sign."""
    return all(isinstance(x, (int, float)) and abs(x) in (0.0, 1.0) for row in R for x in row)


def settled_rotation(R: Mat) -> Mat:
    """Entries that are 0 or +-1 within rounding become so."""
    return Mat.of(
        (float(round(x)) if isinstance(x, float) and abs(x - round(x)) <= ZERO_BELOW else x for x in row)
        for row in R
    )


def settled_offset(p: Vec, *terms: Vec) -> Vec:
    """Sums of numbers that cancelled become zero."""
    size = max((abs(x) for t in terms for x in t if isinstance(x, float)), default=0.0)
    return Vec(*(0.0 if isinstance(x, float) and abs(x) <= ZERO_BELOW * size else x for x in p))


# -- the joint's own zero -----------------------------------------------------------------------------------


def sparsest(k: int, a: Vec) -> Mat:
    """A rotation with few entries that takes e_k to the unit vector a."""
    x, y = (k + 1) % 3, (k + 2) % 3
    if a == UNIT_VECS[k]:
        return EYE
    m = min(range(3), key=lambda i: (not is_zero(a[i]), i == k, abs(a[i])))
    across = UNIT_VECS[m].cross(a)  # normal to a to the last bit, even when a is nearly e_m
    side = UNIT_VECS[m] if is_zero(a[m]) else across * (1.0 / math.sqrt(across.dot(across)))
    columns = [ZERO, ZERO, ZERO]
    columns[x], columns[y], columns[k] = side, a.cross(side), a
    return settled_rotation(Mat(*columns).T)


def own_zero(b: TreeBody) -> TreeBody:
    """R = R' Q(phase) with the sparsest R'."""
    if b.kind not in (*HINGES, "wheel") or (renames(b.R) and b.R @ UNIT_VECS[b.axis] != UNIT_VECS[b.axis]):
        return b
    R = sparsest(b.axis, b.R @ UNIT_VECS[b.axis])
    x, y = (b.axis + 1) % 3, (b.axis + 2) % 3
    turn = R.T.mul(b.R)
    return b._replace(R=R, phase=b.phase + math.atan2(turn[y][x], turn[x][x]))


# -- one move -----------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """A change of a body's frame, named by what it makes vanish, so that it holds for numbers and symbols alike.

    how: "own" slides until component `which` of the body's own offset is zero; "child" until the component of
    child `which`'s offset along the axis is. "axis", "offset" (children `which`) and "moment" turn until the
    y component of a child's axis, a child's offset or the body's h is zero; with "+" the x component.
    """

    body: int
    how: str
    which: int = 0


def turn(b: TreeBody, angle: Scalar) -> Mat:
    """Rotation about the body's axis."""
    return settled_rotation(axis_rotation(b.axis, sin(angle), cos(angle)))


def resolve(tree: Tree, m: Move) -> tuple[Scalar, Vec] | None:
    """(angle, shift of the frame in its own axes), or None where the move means nothing here."""
    b = tree.bodies[m.body]
    if m.how in ("own", "child"):
        shift = _shift(tree, b, m)
        return None if shift is None or shift.zero else (0.0, shift)
    if b.kind not in HINGES:
        return None
    v = b.inertia.h if m.how.startswith("moment") else tree.bodies[m.which].p
    if m.how.startswith("axis"):
        v = tree.bodies[m.which].R @ UNIT_VECS[tree.bodies[m.which].axis]
    x, y = v[(b.axis + 1) % 3], v[(b.axis + 2) % 3]
    if not (isinstance(x, float) and isinstance(y, float) and x and y):
        return None
    return atan2(y, x) - (0.5 * math.pi if m.how.endswith("+") else 0.0), ZERO


def _shift(tree: Tree, b: TreeBody, m: Move) -> Vec | None:
    """Along the axis for a hinge; for a sliding joint along any of its parent's or its own axes."""
    k = b.axis
    if m.how == "child":
        p = tree.bodies[m.which].p
        along: Scalar = p[k]
    elif b.kind == "prismatic":
        p = b.R.T @ (UNIT_VECS[m.which] * -b.p[m.which])
        if not renames(b.R):
            return None
    else:
        a = (b.R @ UNIT_VECS[k])[m.which]
        if is_zero(a) or (isinstance(a, float) and abs(a) < MIN_SLOPE):
            return None
        along = -b.p[m.which] * a if abs(a) == 1.0 else -b.p[m.which] / a
    if b.kind == "prismatic":
        return p
    return UNIT_VECS[k] * along if b.kind in HINGES else None


def moves_at(tree: Tree, i: int, children: Sequence[int]) -> Iterator[Move]:
    """Everything that could be made to vanish at body i."""
    for c in range(3):
        yield Move(i, "own", c)
    for j in children:
        yield Move(i, "child", j)
        for how in ("axis", "axis+", "offset", "offset+"):
            yield Move(i, how, j)
    yield Move(i, "moment")
    yield Move(i, "moment+")


def own_part(b: TreeBody, angle: Scalar, shift: Vec) -> TreeBody:
    """The body itself after its frame has turned and moved."""
    along = b.R @ shift
    P = b.inertia.shifted(-shift).turned(turn(b, angle).T)
    P = RigidInertia(P.m, settled_offset(P.h, b.inertia.h), P.S)
    return own_zero(b._replace(p=settled_offset(b.p + along, b.p, along), phase=b.phase + angle, inertia=P))


def child_part(b: TreeBody, c: TreeBody, angle: Scalar, shift: Vec) -> TreeBody:
    """A child of the body after that."""
    A = turn(b, angle).T
    p = A @ settled_offset(c.p - shift, c.p, shift)
    return own_zero(c._replace(R=settled_rotation(A.mul(c.R)), p=settled_offset(p, c.p)))


def apply_move(tree: Tree, m: Move) -> Tree:
    """The tree after a move; itself where the move means nothing."""
    found = resolve(tree, m)
    if found is None:
        return tree
    angle, shift = found
    b = tree.bodies[m.body]
    A, bodies, frames = turn(b, angle).T, list(tree.bodies), dict(tree.frames)
    bodies[m.body] = own_part(b, angle, shift)
    for j, c in enumerate(bodies):
        if c.parent == m.body:
            bodies[j] = child_part(b, c, angle, shift)
    for name, f in tree.frames.items():
        if f.body == m.body:
            frames[name] = LinkFrame(f.body, A.mul(f.R), A @ (f.p - shift))
    return tree.replace(bodies=tuple(bodies), frames=frames)


# -- what a choice costs ------------------------------------------------------------------------------------


def placement_cost(tree: Tree, b: TreeBody) -> int:
    """Estimated operations of a placement in a recursion: 10 a component of p, 42 a turn about one axis."""
    if b.parent < 0:
        return 0
    up = tree.bodies[b.parent]
    first = up.parent < 0 and up.kind == "revolute"
    offset = sum(10 for a, x in enumerate(b.p) if not is_zero(x) and not (first and a == up.axis))
    if renames(b.R):
        return offset + (1 if b.R != EYE and b.axis == up.axis else 0)
    return offset + 12 * sum(not is_zero(x) for row in b.R for x in row) - 18


def inertia_cost(b: TreeBody, leaf: bool) -> int:
    """Estimated operations of a body's own wrench, by the entries that are not zero."""
    if b.parent < 0 and b.kind == "revolute":
        return 0
    off = sum(not is_zero(x) for x in (b.inertia.S.xy, b.inertia.S.xz, b.inertia.S.yz))
    return (14 if leaf else 10) * sum(not is_zero(x) for x in b.inertia.h) + 6 * off


def cost(tree: Tree, i: int, children: Sequence[int], angle: Scalar, shift: Vec) -> int:
    """Estimated operations that depend on the frame of body i."""
    b = tree.bodies[i]
    own = own_part(b, angle, shift)
    after = (child_part(b, tree.bodies[j], angle, shift) for j in children)
    return (
        placement_cost(tree, own) + inertia_cost(own, not children) + sum(placement_cost(tree, c) for c in after)
    )


def settle_frames(tree: Tree) -> Tree:
    """Every hinge's constant turn about its own axis goes into its zero."""
    return tree.replace(bodies=tuple(own_zero(b) for b in tree.bodies))


def reframed(tree: Tree) -> Tree:
    """The tree (gauged first) in better frames; coordinates and forces are the old ones."""
    tree = settle_frames(tree)
    for m in _paying(tree.bodies):
        tree = apply_move(tree, m)
    return tree


@lru_cache(maxsize=4)  # a search settles the same tree many times
def _paying(bodies: tuple[TreeBody, ...]) -> tuple[Move, ...]:
    """The moves that lower the estimated operations, one after another."""
    tree = Tree(bodies, {}, ZERO, 0, 0, ())
    below = children_of(tree.parents)
    moves: list[Move] = []
    for _ in range(FRAME_SWEEPS):
        before = len(moves)
        for i, children in enumerate(below):
            m = _best_at(tree, i, children)
            if m is not None:
                moves.append(m)
                tree = apply_move(tree, m)
        if len(moves) == before:
            break
    return tuple(moves)


def _best_at(tree: Tree, i: int, children: Sequence[int]) -> Move | None:
    """The move of body i that costs least, if that is less than to stay."""
    if tree.bodies[i].kind not in HINGES:
        return None
    best, least = None, cost(tree, i, children, 0.0, ZERO)
    for m in moves_at(tree, i, children):
        found = resolve(tree, m)
        price = least if found is None else cost(tree, i, children, *found)
        if price < least:
            best, least = m, price
    return best


Array = np.ndarray[Any, Any]
GIMBAL_LOCK_COSINE = 1e-6  # |cos pitch|: below it yaw and roll are the same axis to 6 digits


def trunk_pitch(model: Model) -> int | None:
    """Index in q of the pitch of a trunk, or None."""
    first = model.joints[:6]
    if tuple((j.kind, j.axis) for j in first) != TRUNK or not first[0].name.startswith("trunk_1"):
        return None
    return 4


def refuse_gimbal_lock(model: Model, q: Array) -> None:
    """NumericsError where a trunk's pitch is at +-90 degrees: yaw and roll are one axis, M is singular."""
    pitch = trunk_pitch(model)
    if pitch is None:
        return
    angle = np.asarray(q, float)[..., pitch]
    locked = np.abs(np.cos(angle)) < GIMBAL_LOCK_COSINE
    if np.any(locked):
        k = int(np.argmax(locked))
        where = f" in row {k} of the batch" if angle.ndim else ""
        raise NumericsError(
            f"the trunk of robot {model.name!r} is in gimbal lock{where}: joint {model.joints[pitch].name!r} "
            f"(pitch) is {float(angle.flat[k]):.9g} rad, where yaw and roll turn about the same axis; load "
            "with base='floating'"
        )
