"""Derivatives of any order by Zaremba's theorems: every derivative inserts one ad before a column.

Zaremba 1990, (1.16), (2.9)-(2.15), (4.2), corrected, for trees. All columns of a tree stand in one frame, that of
its root body, where (l_k^i)^{t1..tp} is the same for every body k: no frame ever changes. g_k^i is then the same
column, so Theorem 2 is Theorem 1 with the signs of the unified rule, and Theorem 3 is Leibniz' rule over both
columns. Several columns of one body (ball and free joints) are averaged over their order: the derivative of
exp(d) in one d, so that repeated q are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, permutations
from typing import NamedTuple

from ..algorithms.inertia_matrix import wrench_of
from ..algorithms.kinematics import WORLD, Pose
from ..errors import TraceError
from ..mechanics.joints import Force, Motion
from ..mechanics.scalar import Scalar, is_zero
from ..mechanics.spatial import ZERO, Body
from ..mechanics.topology import ancestors
from ..mechanics.tree import Tree

Entries = dict[tuple[int, ...], Scalar]  # by index, structural zeros absent
GROUND = -1  # the base as a body; as a column ~root is -g, the base's fictitious acceleration, in the root's frame


class Freedom(NamedTuple):
    """One column: the body that it moves, the rate that drives it, and l in the frame of its root."""

    body: int
    rate: int
    l: Motion


@dataclass(slots=True)
class Columns:
    """Columns l, composite inertias Theta* and the products of ad's at one q, each formed once."""

    tree: Tree
    freedoms: list[Freedom]
    inertia: list[Body]  # (2.10), in the frame of the root
    path: list[set[int]]  # kappa: the ancestors of a body, itself included
    ground: dict[int, Motion]  # by root
    _chains: dict[tuple[int, tuple[int, ...]], Motion] = field(default_factory=dict)
    _wrenches: dict[tuple[int, int, tuple[int, ...]], Force] = field(default_factory=dict)

    @classmethod
    def at(cls, tree: Tree, q: Sequence[Scalar]) -> Columns:
        """The columns at q."""
        X, freedoms = tree.placements(q), []
        poses: list[Pose] = []
        for b, x in zip(tree.bodies, X):
            poses.append(poses[b.parent].then(x) if b.parent >= 0 else WORLD)
        ground = {
            i: X[i].down_motion(Motion(ZERO, -tree.gravity)) for i, b in enumerate(tree.bodies) if b.parent < 0
        }
        for i, b in enumerate(tree.bodies):
            for k, s in enumerate(tree.columns(b)):
                freedoms.append(Freedom(i, b.v + k, poses[i].motion(s * b.factor)))
        path = [set(ancestors(tree.parents, i)) for i in range(len(tree))]
        return cls(tree, freedoms, composites(tree, poses), path, ground)

    def root(self, i: int) -> int:
        """The root body of a column."""
        return ~i if i < 0 else min(self.path[self.freedoms[i].body])

    def body(self, i: int) -> int:
        return GROUND if i < 0 else self.freedoms[i].body

    def above(self, i: int, t: int) -> bool:
        """i strictly above t in the tree."""
        a, b = self.body(i), self.body(t)
        return a != b and (~i in self.path[b] if i < 0 else a in self.path[b])

    def column(self, i: int, ts: tuple[int, ...] = ()) -> Motion:
        """Theorem 1, (1.16): (l^i)^{t1..tp} = <l^tp>^T ... <l^t1>^T l^i, i above t1, the t's from the root out."""
        key = (i, ts)
        if key not in self._chains:
            self._chains[key] = self._chain(i, ts)
        return self._chains[key]

    def _chain(self, i: int, ts: tuple[int, ...]) -> Motion:
        if not ts:
            return self.ground[~i] if i < 0 else self.freedoms[i].l
        own = [t for t in ts if self.body(t) == self.body(ts[-1])]
        if len(set(own)) == 1:
            return self.column(i, ts[:-1]).cross(self.freedoms[ts[-1]].l)  # <a>^T b = b x a
        total, orders = Motion(ZERO, ZERO), sorted(set(permutations(own)))
        for order in orders:
            x = self.column(i, ts[: len(ts) - len(own)])
            for t in order:
                x = x.cross(self.freedoms[t].l)
            total = total + x
        return total * (1.0 / len(orders))

    def wrench(self, m: int, j: int, ts: tuple[int, ...] = ()) -> Force:
        """Theta_m* (l^j)^{ts}."""
        key = (m, j, ts)
        if key not in self._wrenches:
            self._wrenches[key] = wrench_of(self.inertia[m], self.column(j, ts))
        return self._wrenches[key]

    def entry(self, i: int, j: int, ts: tuple[int, ...]) -> Scalar:
        """a_ij^{t1..tp} of (2.9), i above or beside j: what lies between them turns l^i, what lies below both.

        With m the deepest of all: sum over the parts B of the t's below j of (l^i)^{rest} . Theta_m* (l^j)^B,
        which is (2.13) with the operators <g> moved over to the columns.
        """
        m = max(self.body(t) for t in (j, *ts))
        low = sum(self.above(j, t) for t in ts)
        high, below = ts[: len(ts) - low], ts[len(ts) - low :]
        total: Scalar = 0.0
        for mine, other in shares(below):
            total = total + self.column(i, high + other).dot(self.wrench(m, j, mine))
        return total

    def indices(self, i: int, j: int, order: int) -> Iterator[tuple[int, ...]]:
        """The t's, from the root out, for which a_ij^{t1..tp} is no structural zero: on one path below i."""
        own = self.body(j)
        near = [
            t
            for t, f in enumerate(self.freedoms)
            if self.above(i, t) and (f.body in self.path[own] or own in self.path[f.body])
        ]
        for ts in combinations_with_replacement(near, order):
            m = max(self.body(t) for t in (j, *ts))
            if all(self.body(t) in self.path[m] for t in (j, *ts)):
                yield ts


def composites(tree: Tree, poses: Sequence[Pose]) -> list[Body]:
    """(2.10): every body with its subtree."""
    total = [b.inertia.moved(x.R, x.p) for b, x in zip(tree.bodies, poses)]
    for i in range(len(tree) - 1, -1, -1):
        p = tree.bodies[i].parent
        if p >= 0:
            total[p] = total[p] + total[i]
    return total


def shares(ts: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Leibniz' rule: every way to deal the t's between two factors."""
    for mask in range(1 << len(ts)):
        yield (
            tuple(t for k, t in enumerate(ts) if mask >> k & 1),
            tuple(t for k, t in enumerate(ts) if not mask >> k & 1),
        )


def _add(out: Entries, key: tuple[int, ...], x: Scalar) -> None:
    if not is_zero(x):
        out[key] = out[key] + x if key in out else x


# -- quantities --------------------------------------------------------------------------------------------


def mass_matrix_derivatives(tree: Tree, q: Sequence[Scalar], order: int) -> Entries:
    """d^p M / dq^p by (2.9) and Theorems 1 and 3: keys (row, column, t1, .., tp), rates of v."""
    return _inertia_entries(Columns.at(tree, q), order)


def _inertia_entries(c: Columns, order: int) -> Entries:
    out: Entries = {}
    for j in range(len(c.freedoms)):
        for i in range(j + 1):
            if c.body(i) in c.path[c.body(j)]:
                _spread(c, out, i, j, order)
    return out


def _spread(c: Columns, out: Entries, i: int, j: int, order: int) -> None:
    """One pair of columns, at every place that symmetry gives it."""
    a, b = c.freedoms[i].rate, c.freedoms[j].rate
    pairs = ((a, b),) if i == j else ((a, b), (b, a))
    for ts in c.indices(i, j, order):
        x = c.entry(i, j, ts)
        for row in pairs:
            for order_of in set(permutations(ts)):
                _add(out, (*row, *(c.freedoms[t].rate for t in order_of)), x)


def gravity_derivatives(tree: Tree, q: Sequence[Scalar], order: int) -> Entries:
    """d^p g / dq^p: (2.8) as the entry of (2.9) between the ground's column -g and every other."""
    c, out = Columns.at(tree, q), Entries()
    for j, f in enumerate(c.freedoms):
        base = ~c.root(j)
        for ts in c.indices(base, j, order):
            x = c.entry(base, j, ts)
            for order_of in set(permutations(ts)):
                _add(out, (f.rate, *(c.freedoms[t].rate for t in order_of)), x)
    return out


def mass_matrix(tree: Tree, q: Sequence[Scalar]) -> list[list[Scalar]]:
    """M(q) by (2.9): a_ij = f_i^T Theta_i* l_i^j."""
    M = mass_matrix_derivatives(tree, q, 0)
    return [[M.get((i, j), 0.0) for j in range(tree.nv)] for i in range(tree.nv)]


def christoffel(tree: Tree, q: Sequence[Scalar]) -> Entries:
    """d^i_sj, keys (i, s, j), in the compact form of (2.14): at most three of its six terms are there."""
    refuse_quaternions(tree)
    c, out = Columns.at(tree, q), Entries()
    for i, s, j in combinations_with_replacement(range(len(c.freedoms)), 3):
        if {c.body(i), c.body(s)} <= c.path[c.body(j)]:
            for a, b, d in set(permutations((i, s, j))):
                key = (c.freedoms[a].rate, c.freedoms[b].rate, c.freedoms[d].rate)
                _add(out, key, 0.5 * _twice(c, a, b, d))
    return out


def _twice(c: Columns, i: int, s: int, j: int) -> Scalar:
    """2 d^i_sj = l^i.Th(l^j)^s + l^j.Th(l^i)^s + l^i.Th(l^s)^j + l^s.Th(l^i)^j - l^j.Th(l^s)^i - l^s.Th(l^j)^i."""
    m = max(c.body(i), c.body(s), c.body(j))

    def term(x: int, t: int, y: int) -> Scalar:
        return c.column(y, (t,)).dot(c.wrench(m, x)) if c.above(y, t) else 0.0

    return term(i, s, j) + term(j, s, i) + term(i, j, s) + term(s, j, i) - term(j, i, s) - term(s, i, j)


def bias(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """b_i = sum d^i_sj v_s v_j - f_gi, (2.15)."""
    out = [gravity_derivatives(tree, q, 0).get((i,), 0.0) for i in range(tree.nv)]
    for (i, s, j), d in christoffel(tree, q).items():
        out[i] = out[i] + d * (v[s] * v[j])
    return out


def bias_derivatives(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], order_q: int, order_v: int) -> Entries:
    """Partial derivatives of b: keys (i, q-indices, v-indices); (4.2) with its factor 1, to any order.

    b_i = sum (a_ij^s - a_sj^i / 2) v_s v_j + g_i, so every order of b is one of M more.
    """
    refuse_quaternions(tree)
    out = gravity_derivatives(tree, q, order_q) if order_v == 0 else {}
    if order_v > 2:
        return {}
    for (i, j, s, *rest), x in mass_matrix_derivatives(tree, q, order_q + 1).items():
        t = tuple(rest)
        if order_v == 0:
            _add(out, (i, *t), x * (v[j] * v[s]))
            _add(out, (s, *t), -0.5 * x * (v[i] * v[j]))
        elif order_v == 1:
            _add(out, (i, *t, j), x * v[s])
            _add(out, (i, *t, s), x * v[j])
            _add(out, (s, *t, j), -(x * v[i]))
        else:
            _add(out, (i, *t, s, j), x)
            _add(out, (i, *t, j, s), x)
            _add(out, (s, *t, i, j), -x)
    return out


def refuse_quaternions(tree: Tree) -> None:
    """The Lagrange form holds for coordinates whose rates are v."""
    for b in tree.bodies:
        if b.nv > 1:
            raise TraceError(
                f"joint {b.joint!r} is {b.kind}: its rates are no derivatives of coordinates, so Christoffel "
                "symbols do not give the bias; use the recursion"
            )


__all__ = [
    "GROUND",
    "Columns",
    "Entries",
    "Freedom",
    "bias",
    "bias_derivatives",
    "christoffel",
    "gravity_derivatives",
    "mass_matrix",
    "mass_matrix_derivatives",
    "refuse_quaternions",
]
