"""The length of code written out body by body: what would take minutes to compile is refused beforehand.

Checks that parsing cannot make: an inertia matrix singular for every configuration, found by its pivots.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from math import comb, factorial, prod
from typing import NamedTuple, NoReturn

import numpy as np

from ..codegen.store.build import NODES_A_SECOND, STAGED_NODES_A_SECOND
from ..errors import ModelError, TraceError
from ..mechanics.algorithms.explicit import Explicit
from ..mechanics.algorithms.inertia_matrix import factorised, lower_rows, mass_matrix_rows
from ..mechanics.configuration import random
from ..mechanics.tree import Tree, build_tree
from ..model.description import Model
from ..model.regularity import require_masses
from .formalisms import common_algorithm

AFFORDABLE = 1_000_000  # operations
WRITTEN = 200_000  # the same for equations to be read: a thousand pages and more
A_LINE, A_PAGE = 3.0, 60.0  # operations, lines
A_SECOND = 5_000  # operations compiled in a second
PATIENCE = 60.0  # s: what would take longer is refused, unless the caller has a budget for it
MAX_DERIVED_OPERATIONS = (
    PATIENCE * A_SECOND
)  # the same for a derivative, which anybody may ask for by a slip of one index
OF_PRODUCT, OF_JACOBIAN = 2.5, 3.5  # times what they are derivatives of
NODES_OF_OPERATIONS = 0.7  # of a rough count, of large quantities
MAX_DENSE_ENTRIES = 20_000_000  # entries of full arrays
# by how much the rough count of derivatives is too high at least, measured on arms and a biped
_OVER = {
    "mass_matrix": 5.0,
    "coriolis_matrix": 1.0,
    "gravity": 10.0,
    "potential_energy": 50.0,
    "center_of_mass": 50.0,
}
A_SPLIT = 0.1  # operations, for every split of the indices of an entry of d^p M
A_RATE = 2.3  # times the operations for every derivative by time
A_CONSTRAINT = 0.5  # operations of d2f/dq2 and its like, times the cube of the freedoms on the path
_ROUGH = {  # operations per body, per pair of coupled freedoms, and per pair for each freedom of its branch
    "forward_dynamics": (240.0, 0.0, 0.0),
    "mass_matrix": (90.0, 8.0, 0.0),
    "inverse_mass_matrix": (90.0, 8.0, 2.0),
    "coriolis_matrix": (100.0, 50.0, 0.0),
    "operational_inertia": (120.0, 10.0, 1.5),
    "inverse_operational_inertia": (120.0, 10.0, 1.5),
    "inverse_dynamics_derivatives": (100.0, 75.0, 0.0),
    "forward_dynamics_derivatives": (100.0, 75.0, 10.0),
    "lagrange_equations": (90.0, 8.0, 3.0),
}
_LINEAR = (110.0, 0.0, 0.0)


class Branch(NamedTuple):
    """The size of the subtree on one joint of the ground: joints, freedoms, and pairs of freedoms on one path."""

    joints: int
    freedoms: int
    pairs: int


def branches(model: Model) -> list[Branch]:
    """Branches that do not meet."""
    depth, top = {model.root: 0}, {model.root: ""}
    found: dict[str, Branch] = {}
    for j in model.joints:  # parents before their children
        above, home = depth.get(j.parent, 0), top.get(j.parent) or j.name
        depth[j.child], top[j.child] = above + j.nv, home
        b = found.get(home, Branch(0, 0, 0))
        found[home] = Branch(b.joints + 1, b.freedoms + j.nv, b.pairs + j.nv * above + j.nv * (j.nv + 1) // 2)
    return list(found.values())


def operations(model: Model, quantity: str) -> float:
    """A rough count."""
    body, pair, column = _ROUGH.get(quantity, _LINEAR)
    return sum(b.joints * body + b.pairs * (pair + column * b.freedoms) for b in branches(model))


# -- estimates of the seconds that compiling will take, within a factor of 2 or so where these are many --------


def seconds_written(model: Model, quantities: Sequence[str], product: bool) -> float:
    """An estimate for quantities, or products of their derivatives; 0 where these are refused."""
    total = sum(operations(model, x) for x in quantities)
    nodes = NODES_OF_OPERATIONS * total * (OF_PRODUCT if product else 1.0)
    return nodes / NODES_A_SECOND if total <= AFFORDABLE else 0.0


def seconds_of_soft_step(model: Model, slots: Sequence[tuple[int, Sequence[str], bool]], product: str) -> float:
    """An estimate for a step under the soft law.

    slots: of each place of contact the number of its rows, its links, and whether it is looked at only if near.
    """
    depth = freedoms_above(model)
    nodes = 90.0 * sum(b.pairs for b in branches(model))
    for rows, links, near in slots:  # two links have much of their paths in common
        moving = sum(depth.get(x, 0) for x in links)
        nodes += 12.0 * rows * moving + 600.0 if near else 25.0 * rows * moving
    return _times_product(nodes, product) / STAGED_NODES_A_SECOND


def seconds_of_exact_step(model: Model, rows: Sequence[int], product: bool) -> float:
    """An estimate for a step under the exact law; rows: of impulses, of each problem that it may have to solve."""
    trees = branches(model)
    pairs, coupled = sum(b.pairs for b in trees), sum(b.freedoms**2 for b in trees) / max(1, model.nv) ** 2
    nodes = sum(coupled * (18.0 * n * n + 55.0 * n * model.nv) + 150.0 * pairs for n in rows)
    return nodes * (1.2 if product else 1.0) / STAGED_NODES_A_SECOND


def _times_product(nodes: float, product: str) -> float:
    return nodes * {"": 1.0, "jacobian": OF_JACOBIAN}.get(product, OF_PRODUCT)


# -- refusals ----------------------------------------------------------------------------------------------


def freedoms_above(model: Model) -> dict[str, int]:
    """The number of freedoms that move each link, by its name."""
    depth = {model.root: 0}
    for j in model.joints:
        depth[j.child] = depth[j.parent] + j.nv
    return depth


def require_affordable(model: Model, quantities: Sequence[str]) -> None:
    """Raises TraceError, with the cost, where code would take minutes to compile."""
    total = sum(operations(model, x) for x in quantities)
    if total > AFFORDABLE:
        raise TraceError(
            f"{', '.join(quantities)} of {model.name!r} would be about {total:.1e} operations written out, "
            f"{_duration(total / A_SECOND)} of compiling: large trees have every quantity by a loop over the "
            "bodies, each asked for alone, in rows, without parameters and mimic joints"
        )


def require_readable(model: Model, quantity: str) -> None:
    """Raises TraceError, with the cost, where written equations would fill a shelf."""
    total = operations(model, quantity)
    if total > WRITTEN:
        raise TraceError(
            f"{quantity} of {model.name!r} would be about {total:.1e} operations, "
            f"{total / A_LINE / A_PAGE:.3g} pages of equations; write out a smaller part of the robot, whose "
            "equations repeat, and compute the whole by compiled code, which loops over the bodies of a large tree"
        )


def require_derivable_by_time(model: Model, quantity: str, order: int) -> None:
    """Raises TraceError, with the cost, where a derivative along a motion would take minutes to compile."""
    total = operations(model, quantity) * A_RATE**order
    if total > MAX_DERIVED_OPERATIONS:
        raise TraceError(
            f"the derivative of {quantity} by t, {order} times, of {model.name!r} would be about {total:.1e} "
            f"operations written out, {_duration(total / A_SECOND)} of compiling; take differences of it along "
            "the motion, which a loop over the bodies computes at once"
        )


def require_linearisable(model: Model, links: Sequence[str]) -> None:
    """Raises TraceError, with the cost, where second derivatives of constraints on links would take minutes."""
    depth = freedoms_above(model)
    total = sum(A_CONSTRAINT * depth.get(link, 0) ** 3 for link in links)
    if total > MAX_DERIVED_OPERATIONS:
        deepest = max(links, key=lambda x: depth.get(x, 0))
        raise TraceError(
            f"linearise: the second derivatives of constraints on {deepest!r} of {model.name!r}, {depth[deepest]} "
            f"freedoms from the ground, would be about {total:.1e} operations, {_duration(total / A_SECOND)} of "
            "compiling; linearise without constraints, which loops over the bodies, or constrain links nearer to "
            "the ground"
        )


def derived(model: Model, quantity: str, wrt: Sequence[str], theorems: bool) -> float:
    """A rough count for a derivative of higher order: entries differ from zero along one path of the tree only.

    theorems: of the quantities that have them, at so much work an entry.
    """
    depth, above = {model.root: 0}, list[int]()
    for j in model.joints:
        depth[j.child] = depth[j.parent] + j.nv
        above += range(depth[j.parent], depth[j.child])
    k, deepest = len(wrt), max(above, default=0) + 1
    orders = factorial(k) // prod(factorial(n) for n in Counter(wrt).values())
    sets = orders * sum(comb(d + k - 1, k - 1) for d in above)
    if theorems and quantity == "mass_matrix":  # those whose deepest freedom has d above it
        return (25.0 + A_SPLIT * 2.0**k) * sum(_entries(d + 1, k) - _entries(d, k) for d in above)
    each = {"gravity": 60.0 * deepest, "pose": 80.0, "jacobian": 30.0 * deepest}
    if theorems and quantity in each:
        return each[quantity] * sets
    return operations(model, quantity) * deepest / max(1, len(above)) * sets


def _entries(n: int, k: int) -> int:
    """Counts the k-th derivatives of M of a chain: H_ij, i >= j, by multisets of the freedoms beyond j."""
    return sum((n - j) * comb(n - j - 2 + k, k) for j in range(n - 1))


def require_derivable(
    model: Model, quantity: str, wrt: Sequence[str], size: int, theorems: bool, budget: float = PATIENCE
) -> None:
    """Raises TraceError, with the cost, where a derivative of `size` entries would take longer to compile than the
    budget, seconds."""
    total = derived(model, quantity, wrt, theorems) / _OVER.get(quantity, 3.0)
    if total > budget * A_SECOND:
        raise TraceError(
            f"the derivative of {quantity} by {', '.join(wrt)} of {model.name!r} has {size:.3g} entries and would "
            f"take about {_duration(total / A_SECOND)} of compiling; take a lower order, differences of it, or "
            "give budget=, the seconds that you have"
        )


def require_prompt(what: str, operations: int, budget: float) -> None:
    """Raises TraceError where what is about to be compiled would take longer than the budget, seconds."""
    seconds = operations / A_SECOND
    if seconds > budget:
        raise TraceError(
            f"{what} has {operations} operations, about {seconds:.0f} s of compiling; give budget=, the seconds "
            "that you have, or take a lower order"
        )


def _duration(seconds: float) -> str:
    for name, size in (("years", 3.2e7), ("days", 86400.0), ("hours", 3600.0)):
        if seconds > size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds / 60.0:.3g} minutes" if seconds > 100.0 else f"{seconds:.3g} s"


# Pivots are Schur complements: relative to the diagonal entry of M, rounding leaves about n eps of it.
SINGULAR_PIVOT = 1e-13
REGULARITY_TRIES = 3  # random configurations; a robot that is regular is so almost everywhere


def smallest_pivot(model: Model) -> tuple[float, str]:
    """The smallest pivot of M relative to what its coordinate moves, at the best of some q; and its joint."""
    tree, rng = build_tree(model), np.random.default_rng(0)
    best, name = -1.0, ""
    for _ in range(REGULARITY_TRIES):
        q = [float(x) for x in random(model, rng)]
        try:
            f = factorised(tree, lower_rows(common_algorithm("mass_matrix")(tree, q)))
        except ZeroDivisionError:
            continue
        moved = inertia_moved(tree, q)
        ratio = [float(p) / moved[v] if moved[v] else 0.0 for v, p in zip(f.order, f.pivots)]
        worst = min(range(len(ratio)), key=ratio.__getitem__)
        if ratio[worst] > best:
            best, name = ratio[worst], tree.joint_names[f.order[worst]]
    return best, name


def inertia_moved(tree: Tree, q: list[float]) -> list[float]:
    """For every rate the inertia that its joints move, each by itself: (sum of the roots of their diagonals)^2.

    That is the diagonal of M, but where one coordinate moves several joints it cannot cancel.
    """
    e = Explicit(tree, q) if tree.formulas else None
    whole, at = (e.tree, e.expanded_q) if e else (tree, q)
    starts = np.cumsum([0, *(b.nv for b in whole.bodies)])
    bodies = tuple(b._replace(v=int(at)) for b, at in zip(whole.bodies, starts))
    M = mass_matrix_rows(whole.replace(bodies=bodies, nv=int(starts[-1]), armature={}), at)
    roots = [0.0] * whole.nv
    for k, rotor in whole.armature.items():
        roots[k] += math.sqrt(float(rotor))
    for b, start in zip(whole.bodies, starts):
        for k in range(b.nv):
            roots[b.v + k] += math.sqrt(max(0.0, float(M[start + k].get(start + k, 0.0))))
    for row, root in zip(e.G if e else (), roots[tree.nv :]):
        for k, x in row.items():
            roots[k] += abs(float(x)) * root
    return [r * r for r in roots[: tree.nv]]


def require_regular(model: Model) -> None:
    """Raises ModelError where M has no inverse at any configuration."""
    if model.nv == 0:
        return
    require_masses(model, "the inverse of the mass matrix")
    ratio, joint = smallest_pivot(model)
    if ratio <= SINGULAR_PIVOT:
        refuse_singular(model, ratio, joint)


def refuse_singular(model: Model, ratio: float, joint: str) -> NoReturn:
    """Says that M is singular, where its smallest pivot shows it."""
    at = f" at joint {joint!r} (pivot {ratio:.1e} of the inertia that it moves)" if joint else ""
    raise ModelError(
        f"robot {model.name!r}: the mass matrix is singular for every configuration{at}: two joints move "
        "the same inertia in the same way; give the bodies between them mass, or weld one of the joints"
    )
