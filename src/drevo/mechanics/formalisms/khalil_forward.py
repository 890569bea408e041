"""Bias, gravity and accelerations from the U-form recursion.

M a + h = tau is solved as well by a = a0 + da with M da = tau - ID(q, v, a0), for any a0 at all. So the
recursion may choose the acceleration of each hinge as it passes: one that makes an entry of U vanish, with every
product by it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..algorithms.articulated_body import solve_with_inertia
from ..algorithms.inertia_matrix import factorised
from ..algorithms.inverse_dynamics import External
from ..scalar import Scalar, Vector, is_zero
from ..spatial import UNIT_VECS, ZERO, Vec
from ..tree import Tree, TreeBody
from ..tree_indices import ancestors, children_of
from ..wheels import last_wheels
from .khalil import efforts, inverse_dynamics
from .khalil_matrix import Meeting, direction_rows, parallel_runs

MAX_MEAN_SQUARE_RATES = (
    50  # mean square of the rates above one: beyond it articulated bodies win by a sixth and more
)


def bias(
    tree: Tree, q: Vector, v: Vector, external: External | None = None, parallel: bool = True
) -> list[Scalar]:
    """h = C v + g, (nv,)."""
    return inverse_dynamics(tree, q, v, [0.0] * tree.nv, external, parallel)


def gravity(tree: Tree, q: Vector, parallel: bool = True) -> list[Scalar]:
    """g(q), (nv,): the joint forces that hold the robot at rest."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, [0.0] * tree.nv, parallel=parallel)


def empty_entries(tree: Tree) -> list[str]:
    """By body, what the acceleration of its joint should empty: the entry of U with more products by it."""
    below = children_of(tree.parents)
    drivers = [b.v for b in tree.bodies]
    return [_emptied(tree, i, below[i], drivers.count(b.v) == 1) for i, b in enumerate(tree.bodies)]


def _emptied(tree: Tree, i: int, children: Sequence[int], alone: bool) -> str:
    b = tree.bodies[i]
    if b.kind == "free" and b.parent < 0:
        return _emptied_base(tree, b, children)
    if b.kind not in ("revolute", "prismatic") or not alone or abs(b.factor) != 1.0 or b.parent < 0:
        return ""
    if b.kind == "prismatic":
        return "a"
    k, S, h = b.axis, b.inertia.S.mat, b.inertia.h
    x, y = (k + 1) % 3, (k + 2) % 3
    worth = {"xy": _worth(tree, children, h[y], S[y][k], y), "yx": _worth(tree, children, h[x], S[x][k], x)}
    best = max(worth, key=lambda e: worth[e])
    return best if worth[best] >= 3 else "k"


def _emptied_base(tree: Tree, b: TreeBody, children: Sequence[int]) -> str:
    """One entry of each pair U_ab, U_ba."""
    worth = [_worth(tree, children, h, 0.0, a) for a, h in enumerate(b.inertia.h)]
    pairs = ((0, 1), (1, 2), (2, 0))
    return " ".join("xyz"[p] + "xyz"[c] for p, c in (sorted(pair, key=lambda a: worth[a]) for pair in pairs))


def _worth(tree: Tree, children: Sequence[int], h: Scalar, S: Scalar, a: int) -> int:
    """Operations on the transverse entry of column a of U: by the body, its children's poles and axes."""
    total = 2 * (not is_zero(h)) + 2 * (not is_zero(S))
    for j in children:
        c = tree.bodies[j]
        total += 2 * (not is_zero(c.p[a])) + 4 * (abs((c.R @ UNIT_VECS[c.axis])[a]) == 1.0)
    return total


def remaining_efforts(
    tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None, parallel: bool = True
) -> tuple[list[Scalar], dict[int, Scalar]]:
    """(tau - ID(q, v, a0), a0): what is left to accelerate, and what was chosen."""
    wheels = last_wheels(tree)
    felt = {w.body: (tau[tree.bodies[w.body].v], w) for w in wheels}
    h, chosen = efforts(tree, q, v, [0.0] * tree.nv, external, parallel, empty_entries(tree), felt)
    met = {tree.bodies[w.body].v for w in wheels}
    return [0.0 if k in met else t - x for k, (t, x) in enumerate(zip(tau, h))], chosen


def with_last_wheels(tree: Tree, q: Vector, a: Vector, light: Tree) -> list[Scalar]:
    """Accelerations with those of the wheels that the tree of M leaves out: -rho J / (rho^2 J + I) e . w'.

    w' is the angular acceleration of the body that carries the wheel.
    """
    kept, out = {b.v for b in light.bodies}, list(a)
    gone = [w for w in last_wheels(tree) if tree.bodies[w.body].v not in kept]
    if not gone:
        return out
    X, rates = tree.placements(q), tree.rates(a)
    turning: dict[int, Vec] = {-1: ZERO}
    for w in gone:
        b = tree.bodies[w.body]
        for i in reversed([i for i in ancestors(tree.parents, b.parent) if i not in turning]):
            turning[i] = X[i].to_child(turning[tree.bodies[i].parent]) + rates[i].w
        out[b.v] = -(b.factor * w.J / w.resistance) * (b.R @ UNIT_VECS[b.axis]).dot(turning[b.parent])
    return out


def forward_dynamics(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    external: External | None = None,
    parallel: bool = True,
    carried: bool = False,
    meeting: Meeting = 0,
    sums: bool = True,
    matrix: Tree | None = None,
    absolute: Sequence[int] = (),
) -> list[Scalar]:
    """Accelerations, (nv,) rad/s^2 or m/s^2: efforts, M, branch-sparse L^T D L. matrix: the tree of M."""
    rest, chosen = remaining_efforts(tree, q, v, tau, external, parallel)
    light = matrix or tree
    runs = parallel_runs(light, absolute)
    rows = runs.with_rotors(direction_rows(runs, q, carried, meeting, sums))
    solved = runs.rates(factorised(light, rows).solve(runs.efforts(rest)))
    a = with_last_wheels(tree, q, solved, light)
    return [x + chosen.get(i, 0.0) for i, x in enumerate(a)]


def by_articulated_bodies(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    external: External | None = None,
    parallel: bool = True,
    light: Tree | None = None,
) -> list[Scalar]:
    """Accelerations, (nv,), of deep trees: M da = rest solved by articulated bodies. light: the tree of these."""
    rest, chosen = remaining_efforts(tree, q, v, tau, external, parallel)
    light = light or tree
    a = with_last_wheels(tree, q, solve_with_inertia(light, q, rest), light)
    return [x + chosen.get(i, 0.0) for i, x in enumerate(a)]


def deep(tree: Tree) -> bool:
    """Rates with many others above them, each of one joint alone: the factors of M cost the square of that."""
    above, total = [0] * len(tree), 0
    for i, b in enumerate(tree.bodies):
        above[i] = (above[b.parent] if b.parent >= 0 else 0) + b.nv
        total += sum(d * d for d in range(above[i] - b.nv + 1, above[i] + 1))
    return not shared_rates(tree) and total > MAX_MEAN_SQUARE_RATES * tree.nv


def shared_rates(tree: Tree) -> bool:
    """A rate moves several bodies' joints."""
    return len({b.v for b in tree.bodies}) < len(tree)
