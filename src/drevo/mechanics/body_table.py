"""The bodies of a tree as columns of numbers: what a loop over the bodies of a large robot reads.

A robot of welds and joints of one step goes there at once, by arrays; any other by way of its Tree. The arithmetic
of inertias is that of `spatial`, whose scalars may be arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..model.description import JOINT_SIZES, Inertial, Model
from .joints import NQ_NV
from .rotation import ZERO_DIFFERENCE, snap_rotation
from .spatial import EYE, Mat, Sym, Vec, inertia_of
from .tree import LinkFrame, Tree, build_tree

Array = np.ndarray[Any, Any]
BODY_KINDS = tuple(sorted(NQ_NV.keys() & JOINT_SIZES.keys()))
UNTURNED = np.array([x for row in EYE for x in row])
BODY_NUMBERS = 24  # numbers of a body
ALL_BODY_NUMBERS = 32  # with the inertia of the rotor and weights of `loose_rates`; a multiple of a cache line
SYM_PLACES = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])  # in the six numbers of a symmetric matrix
_SPHERICAL_NUMBER, _FREE_NUMBER = BODY_KINDS.index("spherical"), BODY_KINDS.index("free")
_KIND_NUMBERS = {**{k: i for i, k in enumerate(BODY_KINDS)}, "continuous": BODY_KINDS.index("revolute")}


class LinkFrames(NamedTuple):
    """Poses of links in the bodies that hold them, by arrays; body -1 is the ground."""

    body: Array
    R: Array  # (n, 3, 3)
    p: Array
    number: Mapping[str, int]

    def of(self, link: str) -> LinkFrame:
        i = self.number[link]
        return LinkFrame(int(self.body[i]), Mat.of(self.R[i].tolist()), Vec(*self.p[i].tolist()))

    def composed(self, up: Array, R: Array, p: Array) -> tuple[Array, Array]:
        """Poses given as (R, p) in the links `up`, in the bodies that hold these links."""
        Q = self.R[up]
        return Q @ R, self.p[up] + (Q @ p[:, :, None])[:, :, 0]


@dataclass(frozen=True, slots=True)
class BodyTable:
    """Bodies, a parent before its children; (n,) each.

    kind: index in KINDS. parallel: the body's frame at q = 0 is parallel to the parent's. parent: -1 is the
    ground. q, v: first coordinate and rate. numbers (n, 24): R 9, p 3, m, h 3, S 6, pitch, factor; (n, 32) with
    rotors or runs of loose rates: the inertia of the rotor, then a weight for each rate and nothing. loose: the
    bodies of such runs.
    links: those that the joints carry.
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
    frames: LinkFrames
    loose: Array | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def geared(self) -> bool:
        """Some joint has a rotor."""
        return bool(self.numbers[:, BODY_NUMBERS : BODY_NUMBERS + 1].any())

    @property
    def widths(self) -> tuple[Array, Array]:
        """Coordinates and rates of every body."""
        sizes = np.array([NQ_NV[k] for k in BODY_KINDS])
        return sizes[self.kind, 0], sizes[self.kind, 1]

    def frame(self, link: str) -> LinkFrame:
        """The pose of a link in the body that holds it; body -1 is the ground."""
        return self.frames.of(link)


def body_table(model: Model) -> BodyTable:
    """The columns of a robot without mimic joints."""
    kinds = np.array([_KIND_NUMBERS.get(j.kind, -1) for j in model.joints], np.int64)
    fixed = np.array([j.kind == "fixed" for j in model.joints], bool)
    simple = not any(j.formula for j in model.joints) and bool((fixed | (kinds >= 0)).all())
    return _by_arrays(model, kinds, fixed) if simple else table_of(build_tree(model))


def _by_arrays(model: Model, kind: Array, fixed: Array) -> BodyTable:
    """All bodies at once; joints of one step, and welds."""
    joints, n, moving = model.joints, len(model.joints), ~fixed
    plain = fixed | (kind == _SPHERICAL_NUMBER) | (kind == _FREE_NUMBER)
    axis, sign, A = _axes(np.array([j.axis for j in joints]).reshape(n, 3), plain)
    number = {j.child: i for i, j in enumerate(joints)} | {model.root: -1}
    up = np.array([number[j.parent] for j in joints], np.int64)
    at, links = _link_frames(model, up, fixed, A, number)
    body = np.append(np.cumsum(moving) - 1, -1)[links.body]  # so far joints, of which the last is none
    links = links._replace(body=body)
    R, p = links.composed(up, *at)
    numbers = np.zeros((int(moving.sum()), BODY_NUMBERS))
    numbers[:, :9] = _turns(_turns(R)[moving].reshape(-1, 3, 3) @ A[moving])
    numbers[:, 9:12], numbers[:, 23] = p[moving], sign[moving]
    numbers[:, 12:22] = _inertias([l.inertial for l in model.links], _places(model), links, len(numbers))
    numbers[:, 22] = np.array([j.lead for j in joints])[moving] * (0.5 / math.pi)
    rotors = np.array([j.dynamics.armature if j.dynamics else 0.0 for j in joints])[moving]
    if rotors.any():
        numbers = np.hstack([numbers, np.repeat(rotors[:, None], ALL_BODY_NUMBERS - BODY_NUMBERS, 1)])
    sizes = np.array([JOINT_SIZES[k] for k in BODY_KINDS])[kind[moving]]
    before, parallel = np.cumsum(sizes, axis=0) - sizes, (numbers[:, :9] == UNTURNED).all(1)
    return BodyTable(
        kind[moving], axis[moving], parallel, body[up][moving], before[:, 0], before[:, 1], numbers, model.gravity,
        int(sizes[:, 0].sum()), int(sizes[:, 1].sum()), tuple(j.child for j, m in zip(joints, moving) if m), links,
    )  # fmt: skip


def _axes(direction: Array, plain: Array) -> tuple[Array, Array, Array]:
    """The nearest coordinate axis, its sign, and the shortest rotation that takes it to the joint's axis."""
    axis = np.where(plain, 0, np.abs(direction).argmax(1))
    along = np.take_along_axis(direction, axis[:, None], 1)[:, 0]
    sign = np.where(plain, 1.0, np.copysign(1.0, along))
    A = np.tile(np.eye(3), (len(axis), 1, 1))
    some = np.flatnonzero((np.abs(direction).sum(1) - np.abs(along) > ZERO_DIFFERENCE) & ~plain)
    to = sign[some, None] * direction[some]
    n = np.cross(np.eye(3)[axis[some]], to)
    across = np.cross(np.eye(3)[None], n[:, None])  # [n]x, by columns e x n turned: its rows are e_i x n
    across = -np.swapaxes(across, 1, 2)
    A[some] += across + across @ across / (1.0 + np.take_along_axis(to, axis[some, None], 1))[:, :, None]
    return axis, sign, A


def _link_frames(
    model: Model, up: Array, fixed: Array, A: Array, number: Mapping[str, int]
) -> tuple[tuple[Array, Array], LinkFrames]:
    """Placements of the joints in their parent links, and the frames of all links, the root's last: in place of a
    body each has the joint that moves it. Welds come after those that they hang on."""
    joints, n = model.joints, len(up)
    R, p = (
        _turns([j.rotation for j in joints]).reshape(n, 3, 3),
        np.array([j.origin for j in joints]).reshape(n, 3),
    )
    turned = np.concatenate([np.swapaxes(A, 1, 2), np.eye(3)[None]])
    found = LinkFrames(np.append(np.arange(n), -1), turned, np.zeros((n + 1, 3)), number)
    for i in (i for i, j in enumerate(joints) if j.apart and not fixed[i]):
        found.p[i] = found.R[i] @ joints[i].child_origin
        found.R[i] = _turns(found.R[i] @ _turns(joints[i].child_rotation).reshape(3, 3)).reshape(3, 3)
    welds = np.zeros(n + 1, np.int64)  # one after the other, up to what moves or to the root
    for k in np.flatnonzero(fixed):
        welds[k] = welds[up[k]] + 1
    for depth in range(1, int(welds.max()) + 1):
        some = np.flatnonzero(welds == depth)
        Q, found.p[some] = found.composed(up[some], R[some], p[some])
        found.R[some], found.body[some] = _turns(Q).reshape(-1, 3, 3), found.body[up[some]]
    return (R, p), found


def _turns(rotations: Any) -> Array:
    """Placements with entries near 0 or 1 made exact, (n, 9)."""
    R = np.array(rotations, float).reshape(-1, 9)
    near = np.round(R)
    for i in np.flatnonzero(((near != R) & (np.abs(R - near) <= ZERO_DIFFERENCE)).any(1)):
        R[i] = [x for row in snap_rotation(Mat.of(R[i].reshape(3, 3).tolist()), ZERO_DIFFERENCE) for x in row]
    return R


def _places(model: Model) -> list[int]:
    """The link that each joint carries."""
    number = {l.name: i for i, l in enumerate(model.links)}
    return [number[j.child] for j in model.joints]


def _inertias(inertials: Sequence[Inertial | None], order: Sequence[int], frames: LinkFrames, count: int) -> Array:
    """m, h and S of the bodies, (count, 10): of links in the order of their joints, moved into their bodies."""
    links = [inertials[k] or Inertial() for k in order]
    com = np.array([b.com for b in links]).reshape(-1, 3)
    tensor = np.array([b.tensor for b in links]).reshape(-1, 3, 3)
    still = inertia_of(np.array([b.mass for b in links]), Vec(*com.T), Sym.of(Mat.of(tensor.transpose(1, 2, 0))))
    own = still.moved(Mat.of(frames.R[:-1].transpose(1, 2, 0)), Vec(*frames.p[:-1].T))
    found, held = np.zeros((count, 10)), np.flatnonzero(frames.body[:-1] >= 0)
    np.add.at(found, frames.body[held], np.vstack([own.m, *own.h, *own.S]).T[held])
    moments = found[:, 4:]
    scale = np.abs(moments[:, [0, 3, 5]]).sum(1, keepdims=True)
    moments[np.abs(moments) <= ZERO_DIFFERENCE * scale] = 0.0  # left over from rounding
    return found


def along_z(c: BodyTable) -> BodyTable:
    """Permutes bodies' axes until every joint's axis is z of its body: axes change places, numbers stay exact."""
    turning = np.isin(c.kind, [BODY_KINDS.index(k) for k in ("revolute", "prismatic", "helical")])
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
        c, axis=np.where(turning, 2, 0), parallel=(numbers[:, :9] == UNTURNED).all(1), numbers=numbers,
        frames=_in_order(c.frames, order),
    )  # fmt: skip


def _in_order(links: LinkFrames, order: Array) -> LinkFrames:
    """Frames in bodies whose axes are given in another order; the ground's stay."""
    rows = np.where(links.body[:, None] >= 0, order[links.body], np.arange(3))
    R = np.take_along_axis(links.R, rows[:, :, None], 1)
    return links._replace(R=R, p=np.take_along_axis(links.p, rows, 1))


def table_of(tree: Tree) -> BodyTable:
    """The columns of a tree with numbers."""
    bodies = tree.bodies
    rows = [
        (*b.R.x, *b.R.y, *b.R.z, *b.p, b.inertia.m, *b.inertia.h, *b.inertia.S, b.pitch, b.factor) for b in bodies
    ]
    integers = [(BODY_KINDS.index(b.kind), b.axis, b.R == EYE, b.parent, b.q, b.v) for b in bodies]
    kind, axis, parallel, parent, q, v = np.array(integers, np.int64).reshape(-1, 6).T
    numbers = np.array(rows, float).reshape(-1, BODY_NUMBERS)
    if tree.armature:
        rotors = np.array([tree.armature.get(b.v, 0.0) for b in bodies])
        numbers = np.hstack([numbers, np.repeat(rotors[:, None], ALL_BODY_NUMBERS - BODY_NUMBERS, 1)])
    return BodyTable(
        kind, axis, parallel.astype(bool), parent, q, v, numbers, tuple(tree.gravity), tree.nq, tree.nv,
        tuple(b.link for b in bodies), _frames_of(tree),
    )  # fmt: skip


def _frames_of(tree: Tree) -> LinkFrames:
    body, R, p = zip(*((f.body, f.R, f.p) for f in tree.frames.values()))
    return LinkFrames(np.array(body), np.array(R), np.array(p), {link: i for i, link in enumerate(tree.frames)})
