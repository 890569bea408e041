"""The bodies of a tree as columns of numbers: what a loop over the bodies of a large robot reads.

A plain robot (no welds, one-step joints about coordinate axes, links in the frames of their joints) goes there
at once, by arrays; any other by way of its Tree. The arithmetic of inertias is that of `spatial`, whose scalars
may be arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..model.description import JOINT_SIZES, Inertial, Model
from .joints import SIZES
from .rotation import TINY, snap_rotation
from .spatial import IDENTITY, ZERO, Mat, Sym, Vec, inertia_of
from .tree import LinkFrame, Tree, build_tree

Array = np.ndarray[Any, Any]
KINDS = tuple(sorted(SIZES.keys() & JOINT_SIZES.keys()))
TURN = np.array([x for row in IDENTITY for x in row])
WIDTH = 24  # numbers of a body
MORE = 32  # with the inertia of the rotor and weights of `loose_rates`; a multiple of a cache line
SYM_PLACES = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # in the six numbers of a symmetric matrix
_NUMBER = {**{k: i for i, k in enumerate(KINDS)}, "continuous": KINDS.index("revolute")}


@dataclass(frozen=True, slots=True)
class BodyTable:
    """Bodies, a parent before its children; (n,) each.

    kind: index in KINDS. parallel: the body's frame at q = 0 is parallel to the parent's. parent: -1 is the
    ground. q, v: first coordinate and rate. numbers (n, 24): R 9, p 3, m, h 3, S 6, pitch, factor; (n, 32) with
    rotors or runs of loose rates: the inertia of the rotor, then a weight for each rate and nothing. loose: the
    bodies of such runs.
    links: those that the joints carry. frames: of links that do not stand just so in their bodies; if there are
    none, places: the body that each link is.
    """

    kind: Array
    axis: Array
    parallel: Array
    parent: Array
    q: Array
    v: Array
    numbers: Array
    gravity: tuple[float, ...]
    nq: int
    nv: int
    links: tuple[str, ...]
    frames: Mapping[str, LinkFrame] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)
    loose: Array | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def geared(self) -> bool:
        """Some joint has a rotor."""
        return bool(self.numbers[:, WIDTH : WIDTH + 1].any())

    @property
    def widths(self) -> tuple[Array, Array]:
        """Coordinates and rates of every body."""
        sizes = np.array([SIZES[k] for k in KINDS])
        return sizes[self.kind, 0], sizes[self.kind, 1]

    def frame(self, link: str) -> LinkFrame:
        """Where a link stands in the body that holds it; body -1 is the ground."""
        if self.frames:
            return self.frames[link]
        return LinkFrame(self.places[link], IDENTITY, ZERO)


def body_table(model: Model) -> BodyTable:
    """The columns of a robot without mimic joints."""
    kinds = [_NUMBER.get(j.kind, -1) for j in model.joints]
    simple = min(kinds, default=0) >= 0 and not any(j.apart for j in model.joints)
    found = _plain(model, np.array(kinds, np.int64)) if simple else None
    return found or table_of(build_tree(model))


def _plain(model: Model, kind: Array) -> BodyTable | None:
    """All bodies at once, or None where an axis is no coordinate axis: that takes a turn of the body's frame."""
    joints, n = model.joints, len(model.joints)
    direction = np.array([j.axis for j in joints]).reshape(n, 3)
    turned = np.isin(kind, [KINDS.index("spherical"), KINDS.index("free")])
    axis = np.where(turned, 0, np.abs(direction).argmax(1))
    along = np.take_along_axis(direction, axis[:, None], 1)[:, 0]
    if np.any((np.abs(direction).sum(1) - np.abs(along) > TINY) & ~turned):
        return None
    rotors = [j.dynamics.armature if j.dynamics else 0.0 for j in joints]
    numbers = np.zeros((n, MORE if any(rotors) else WIDTH))
    numbers[:, WIDTH:] = np.array(rotors)[:, None]
    numbers[:, :9] = _turns([j.rotation for j in joints])
    numbers[:, 9:12] = [j.origin for j in joints]
    numbers[:, 12:22] = _inertias([l.inertial for l in model.links], _places(model))
    numbers[:, 22] = np.array([j.lead for j in joints]) * (0.5 / math.pi)
    numbers[:, 23] = np.where(turned, 1.0, np.copysign(1.0, along))
    number = {model.root: -1}
    number.update((j.child, i) for i, j in enumerate(joints))
    sizes = np.array([JOINT_SIZES[k] for k in KINDS])[kind]
    before = np.cumsum(sizes, axis=0) - sizes
    return BodyTable(
        kind, axis, (numbers[:, :9] == TURN).all(1), np.array([number[j.parent] for j in joints], np.int64),
        before[:, 0], before[:, 1], numbers, model.gravity, int(sizes[:, 0].sum()),
        int(sizes[:, 1].sum()), tuple(number)[1:], places=number,
    )  # fmt: skip


def _turns(rotations: Sequence[Any]) -> Array:
    """Placements with entries near 0 or 1 made exact, (n, 9)."""
    R = np.array(rotations, float).reshape(-1, 9)
    near = np.round(R)
    for i in np.flatnonzero(((near != R) & (np.abs(R - near) <= TINY)).any(1)):
        R[i] = [x for row in snap_rotation(Mat.of(R[i].reshape(3, 3).tolist()), TINY) for x in row]
    return R


def _places(model: Model) -> list[int]:
    """The link that each joint carries."""
    number = {l.name: i for i, l in enumerate(model.links)}
    return [number[j.child] for j in model.joints]


def _inertias(inertials: Sequence[Inertial | None], order: Sequence[int]) -> Array:
    """m, h and S of the bodies, (n, 10)."""
    bodies = [inertials[k] or Inertial() for k in order]
    com = np.array([b.com for b in bodies]).reshape(-1, 3)
    tensor = np.array([b.tensor for b in bodies]).reshape(-1, 3, 3)
    m, h, S = inertia_of(
        np.array([b.mass for b in bodies]), Vec(*com.T), Sym.of(Mat.of(tensor.transpose(1, 2, 0)))
    )
    moments = np.array(S).reshape(6, -1)
    scale = np.abs(moments[[0, 3, 5]]).sum(0)
    moments[np.abs(moments) <= TINY * scale] = 0.0  # left over from rounding
    return np.vstack([m, *h, moments]).T


def along_z(c: BodyTable) -> BodyTable:
    """The same with the axis of every joint along z of its body: axes change places, numbers stay exact."""
    turning = np.isin(c.kind, [KINDS.index(k) for k in ("revolute", "prismatic", "helical")])
    order = (np.where(turning, c.axis + 1, 0)[:, None] + np.arange(3)) % 3  # of the old axes; z is the old axis
    above = np.where(c.parent[:, None] >= 0, order[c.parent], np.arange(3))
    rows, numbers = np.arange(len(c)), c.numbers.copy()
    R = c.numbers[:, :9].reshape(-1, 3, 3)
    numbers[:, :9] = R[rows[:, None, None], above[:, :, None], order[:, None, :]].reshape(-1, 9)
    numbers[:, 9:12] = np.take_along_axis(c.numbers[:, 9:12], above, 1)
    numbers[:, 13:16] = np.take_along_axis(c.numbers[:, 13:16], order, 1)
    moments = c.numbers[:, 16:22][:, SYM_PLACES]
    moments = moments[rows[:, None, None], order[:, :, None], order[:, None, :]]
    numbers[:, 16:22] = moments[(slice(None), *np.triu_indices(3))]
    return replace(
        c, axis=np.where(turning, 2, 0), parallel=(numbers[:, :9] == TURN).all(1), numbers=numbers,
        frames={link: _in_order(c.frame(link), order) for link in c.frames or c.places},
    )  # fmt: skip


def _in_order(at: LinkFrame, order: Array) -> LinkFrame:
    """A frame in a body whose axes are given in another order."""
    if at.body < 0:
        return at
    rows = order[at.body].tolist()
    return LinkFrame(at.body, Mat(*(at.R[k] for k in rows)), Vec(*(at.p[k] for k in rows)))


def table_of(tree: Tree) -> BodyTable:
    """The columns of a tree with numbers."""
    bodies = tree.bodies
    rows = [
        (*b.R.x, *b.R.y, *b.R.z, *b.p, b.inertia.m, *b.inertia.h, *b.inertia.S, b.pitch, b.factor) for b in bodies
    ]
    integers = [(KINDS.index(b.kind), b.axis, b.R == IDENTITY, b.parent, b.q, b.v) for b in bodies]
    kind, axis, parallel, parent, q, v = np.array(integers, np.int64).reshape(-1, 6).T
    numbers = np.array(rows, float).reshape(-1, WIDTH)
    if tree.armature:
        rotors = np.array([tree.armature.get(b.v, 0.0) for b in bodies])
        numbers = np.hstack([numbers, np.repeat(rotors[:, None], MORE - WIDTH, 1)])
    return BodyTable(
        kind, axis, parallel.astype(bool), parent, q, v, numbers, tuple(tree.gravity), tree.nq, tree.nv,
        tuple(b.link for b in bodies), tree.frames,
    )  # fmt: skip
