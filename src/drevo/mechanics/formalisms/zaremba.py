"""Derivatives of any order by Zaremba's theorems, and the equations of motion over them.

Zaremba 1990, (1.16), (2.9)-(2.15), (4.2), corrected, for trees. What the theorems differentiate, columns, wrenches
and composite inertias, is in `zaremba_terms`; here are the quantities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement

from ...errors import TraceError
from ..scalar import Matrix, Scalar, Vector, accumulate, is_zero
from ..spatial import ZERO, Mat, Vec
from ..tree import Tree
from ..tree_indices import ancestors
from .zaremba_terms import (
    BASE_COLUMN,
    MOTION_RULES,
    SIGHT,
    Indices,
    PoseSight,
    ZarembaTerms,
    distinct_orders,
    leibniz_splits,
)

Entries = dict[tuple[int, ...], Scalar]  # by index, structural zeros absent


def _put(out: Entries, heads: Iterable[tuple[int, ...]], ts: Indices, x: Scalar, once: bool) -> None:
    """An entry at every place that the symmetry of repeated q gives it; once: where the indices rise."""
    if not is_zero(x):
        for head in heads:
            out.update({(*head, *order): x for order in ([ts] if once else distinct_orders(ts))})


# -- mass matrix and gravity -------------------------------------------------------------------------------


def _indices(c: ZarembaTerms, related: list[set[int]], heads: tuple[int, ...], order: int) -> Iterator[Indices]:
    """The t's for which an entry is no structural zero by its place: below a head's body, related in pairs."""
    near = set().union(*(c.lower(r) for r in heads)).intersection(*(related[r] for r in heads if r >= 0))
    for ts in combinations_with_replacement(sorted(near), order):
        if all(b in related[a] for k, a in enumerate(ts) for b in ts[k + 1 :]):
            yield ts


def mass_matrix_derivatives(tree: Tree, q: Vector, order: int, meeting: int = 0, once: bool = False) -> Entries:
    """d^p M / dq^p by (2.9) and Theorems 1 and 3: keys (row, column, t1, .., tp), rates of v.

    meeting: see `Terms`; it changes the number of operations only. once: of the orders of t1, .., tp the one that
    rises.
    """
    c, out = ZarembaTerms.at(tree, q, meeting), Entries()
    related = c.related()
    for b in range(tree.nv):
        for a in sorted(related[b]):
            if a <= b:
                for ts in _indices(c, related, (a, b), order):
                    _put(out, {(a, b), (b, a)}, ts, c.entry(a, b, ts), once)
    for k, x in tree.armature.items() if order == 0 else ():
        accumulate(out, (k, k), x)
    return out


def gravity_derivatives(tree: Tree, q: Vector, order: int, meeting: int = 0, once: bool = False) -> Entries:
    """d^p g / dq^p: (2.8) as the entry of (2.9) between the ground's column -g and every other."""
    c, out = ZarembaTerms.at(tree, q, meeting), Entries()
    related = c.related()
    for b in range(tree.nv):
        for ts in _indices(c, related, (BASE_COLUMN, b), order):
            _put(out, ((b,),), ts, c.entry(BASE_COLUMN, b, ts), once)
    return out


def composite_derivatives(tree: Tree, q: Vector, body: int, order: int) -> dict[Indices, list[Scalar]]:
    """d^p Theta_i* / dq^p, Theorem 3 and (2.13): mass, first moments, second moments (xx, xy, xz, yy, yz, zz).

    Of body i with all that it carries, about its origin in its own axes; by (t1, .., tp), zeros absent.
    """
    c, out = ZarembaTerms.at(tree, q), {}
    for ts in combinations_with_replacement(sorted(c.under[body]), order):
        m, h, S = c.inertia(body, ts)
        values = [m, *h, *S]
        if not all(map(is_zero, values)):
            out.update({key: values for key in distinct_orders(ts)})
    return out


# -- the equations of motion -------------------------------------------------------------------------------


def mass_matrix(tree: Tree, q: Vector, meeting: int = 0) -> Matrix:
    """M(q) by (2.9): a_ij = f_i^T Theta_i* l_i^j."""
    M = mass_matrix_derivatives(tree, q, 0, meeting)
    return [[M.get((i, j), 0.0) for j in range(tree.nv)] for i in range(tree.nv)]


def gravity(tree: Tree, q: Vector, meeting: int = 0) -> list[Scalar]:
    """g(q) = -f_g by (2.8)."""
    g = gravity_derivatives(tree, q, 0, meeting)
    return [-tree.named(-g.get((i,), 0.0), f"f_g{i + 1}") for i in range(tree.nv)]


def christoffel(tree: Tree, q: Vector, meeting: int = 0) -> Entries:
    """d^i_sj, keys (i, s, j): 2 d^i_sj = (a_ij)^s + (a_is)^j - (a_sj)^i, (2.14).

    Its compact form: of a triple a above b above c the third of x = (a_ac)^b, y = (a_ab)^c and (a_bc)^a is zero,
    so 2 d^a_bc = x + y and 2 d^b_ac = y - x = -2 d^c_ab. Two inserted ad's and two sums give all six.
    """
    refuse_quaternions(tree)
    out: Entries = {}
    for (i, j, s), x in mass_matrix_derivatives(tree, q, 1, meeting).items():
        half = 0.5 * x
        accumulate(out, (i, s, j), half)
        accumulate(out, (i, j, s), half)
        accumulate(out, (s, i, j), -half)
    return out


def coriolis_matrix(tree: Tree, q: Vector, v: Vector, meeting: int = 0) -> Matrix:
    """C_ij = sum d^i_sj v_s."""
    C: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for (i, s, j), d in christoffel(tree, q, meeting).items():
        C[i][j] = C[i][j] + d * v[s]
    return C


def bias(tree: Tree, q: Vector, v: Vector, meeting: int = 0) -> list[Scalar]:
    """b_i = sum d^i_sj v_s v_j - f_gi, (2.15)."""
    out = gravity(tree, q, meeting)
    for (i, s, j), d in christoffel(tree, q, meeting).items():
        if s <= j:
            tree.named(d, f"d_{s + 1}{j + 1}^{i + 1}")
            out[i] = out[i] + (d if s == j else d + d) * (v[s] * v[j])
    return out


def inverse_dynamics(tree: Tree, q: Vector, v: Vector, a: Vector, meeting: int = 0) -> list[Scalar]:
    """A a + b, (2.15)."""
    out = bias(tree, q, v, meeting)
    for (i, j), x in mass_matrix_derivatives(tree, q, 0, meeting).items():
        out[i] = out[i] + x * a[j]
    return out


def bias_derivatives(tree: Tree, q: Vector, v: Vector, order_q: int, order_v: int, meeting: int = 0) -> Entries:
    """Partial derivatives of b: keys (i, rising q-indices, v-indices); (4.2) with its factor 1, to any order.

    b_i = sum (a_ij^s - a_sj^i / 2) v_s v_j + g_i, so every order of b is one of M more.
    """
    refuse_quaternions(tree)
    if order_v > 2:
        return {}
    out = gravity_derivatives(tree, q, order_q, meeting, once=True) if order_v == 0 else {}
    M = mass_matrix_derivatives(tree, q, order_q + 1, meeting, once=True)
    for i, j, s, t, x in ((i, j, s, _without(ts, s), x) for (i, j, *ts), x in M.items() for s in set(ts)):
        if order_v == 0:
            accumulate(out, (i, *t), x * (v[j] * v[s]))
            if i <= j:
                accumulate(out, (s, *t), (-0.5 if i == j else -1.0) * (x * (v[i] * v[j])))
        elif order_v == 1:
            accumulate(out, (i, *t, j), x * v[s])
            accumulate(out, (i, *t, s), x * v[j])
            accumulate(out, (s, *t, j), -(x * v[i]))
        else:
            accumulate(out, (i, *t, s, j), x)
            accumulate(out, (i, *t, j, s), x)
            accumulate(out, (s, *t, i, j), -x)
    return out


def _without(ts: Sequence[int], s: int) -> Indices:
    """Indices less one of them."""
    k = ts.index(s)
    return (*ts[:k], *ts[k + 1 :])


def refuse_quaternions(tree: Tree) -> None:
    """The Lagrange form holds for coordinates whose rates are v."""
    for b in tree.bodies:
        if b.nv > 1:
            raise TraceError(
                f"joint {b.joint!r} is {b.kind}: its rates are no derivatives of coordinates, so Christoffel "
                "symbols do not give the bias; use the recursion"
            )


# -- poses and Jacobians -----------------------------------------------------------------------------------


def pose_derivatives(tree: Tree, q: Vector, link: str, order: int, once: bool = False) -> Entries:
    """d^p T / dq^p of a link's pose, world from link: keys (row, column, t1, .., tp)."""
    c, at, out = ZarembaTerms.at(tree, q), tree.frames[link], Entries()
    for ts in combinations_with_replacement(_rates_of(c, at.body), order):
        x = c.carried("link", at.body, BASE_COLUMN, PoseSight(at.R.T, at.p, 1.0), ts, SIGHT)
        if x is not None:
            for k, column in enumerate((*x.axes, x.p)):
                for row, value in enumerate(column):
                    _put(out, ((row, k),), ts, value, once)
            _put(out, ((3, 3),), ts, x.one, once)
    return out


def jacobian_derivatives(tree: Tree, q: Vector, link: str, frame: str, order: int, once: bool = False) -> Entries:
    """d^p J / dq^p of a link's Jacobian in one of the three frames: keys (row, column, t1, .., tp)."""
    c, at, out = ZarembaTerms.at(tree, q), tree.frames[link], Entries()
    column = {"local": _local_column, "world": _world_column}.get(frame, _aligned_column)
    rates = _rates_of(c, at.body)
    for r in rates:
        for ts in combinations_with_replacement(rates, order):
            linear, angular = column(c, link, r, ts)
            for row, x in enumerate((*linear, *angular)):
                _put(out, ((row, r),), ts, x, once)
    return out


def _rates_of(c: ZarembaTerms, body: int) -> list[int]:
    return sorted(c.over[body] | set(c.own[body])) if body >= 0 else []


def _local_column(c: ZarembaTerms, link: str, r: int, ts: Indices) -> tuple[Vec, Vec]:
    """Theorem 1 at the link's frame."""
    at = c.tree.frames[link]
    m = c.column(r, at.body, ts)
    return at.R.T @ (m.v + m.w.cross(at.p)), at.R.T @ m.w


def _world_column(c: ZarembaTerms, link: str, r: int, ts: Indices) -> tuple[Vec, Vec]:
    """A column carried up to the ground: the joints above it turn it, those below do not matter."""
    linear, angular = ZERO, ZERO
    for j in ancestors(c.tree.parents, c.tree.frames[link].body):
        if r in c.own[j]:
            x = c.carried(("f", r), j, BASE_COLUMN, c.own[j][r], ts, MOTION_RULES)
            if x is not None:
                linear, angular = linear + x.v, angular + x.w
    return linear, angular


def _aligned_column(c: ZarembaTerms, link: str, r: int, ts: Indices) -> tuple[Vec, Vec]:
    """The link's origin carried up to the column's body, its rate there, and this, a direction, to the ground."""
    at, linear, angular = c.tree.frames[link], ZERO, ZERO
    for j in ancestors(c.tree.parents, at.body):
        for high, low in leibniz_splits(ts, c.over[j] | set(c.own[j]), c.under[j]) if r in c.own[j] else ():
            origin = c.carried("link", at.body, j, PoseSight(at.R.T, at.p, 1.0), low, SIGHT)
            if origin is not None:
                f = c.own[j][r]
                rate = f.w.cross(origin.p) + f.v * origin.one
                x = PoseSight(Mat(rate, ZERO if low else f.w, ZERO), ZERO, 0.0)
                y = c.carried(("rate", r, low), j, BASE_COLUMN, x, high, SIGHT)
                if y is not None:
                    linear, angular = linear + y.axes.x, angular + y.axes.y
    return linear, angular
