"""What `compile` takes: the recursion of Khalil after the plain preparations, without a search.

Compiled code is chosen by time, not by the count shown to people: a sine and cosine pair costs about as much
as 40 other operations, so no angle sums are made; and a cold start may not wait for a search. Quantities of one
list run on the same prepared trees, so what they have in common is one node of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..mechanics.algorithms.inertia_matrix import factorised
from ..mechanics.algorithms.inverse_dynamics import External
from ..mechanics.formalisms import khalil_forward, khalil_matrix
from ..mechanics.reduce import linear_rates
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.tree import Tree
from ..model.quantities import CATALOGUE
from .search import COMPUTE as RECURSIONS
from .search import Preparation, by_articulated_form, by_inertia_matrix
from .trace import COMPUTE, Compute

OPERATIONAL = ("operational_inertia", "inverse_operational_inertia")


def quick(tree: Tree, names: Sequence[str], external: bool) -> Mapping[str, Compute]:
    """The algorithm of every quantity that has a better one than the common algorithm."""
    plan = Preparation(frames=True, unit=not external, parallel=False, sums=False, hoisted=False)
    common = Preparation(frames=True, unit=False, hoisted=False)
    made: dict[Preparation, Tree] = {}
    found: dict[str, Compute] = {}
    for name in names:
        if name == "forward_dynamics" and "forward_dynamics_derivatives" not in names:
            found[name] = _forward(tree, names, plan, made)
        elif name in OPERATIONAL:
            found[name] = _operational(name, plan, made)
        elif name in RECURSIONS:
            found[name] = _on(made, plan, RECURSIONS[name], plan.options(name))
        elif name.endswith("_derivatives"):
            from ..mechanics.formalisms import khalil_derivatives  # not what a cold start waits for

            in_metres = plan._replace(unit=plan.unit and not linear_rates(tree))
            found[name] = _on(made, in_metres, khalil_derivatives.COMPUTE[name], {})
        elif CATALOGUE[name].invariant:
            found[name] = _on(made, common, COMPUTE[name], {})
    return found


def _forward(tree: Tree, names: Sequence[str], plan: Preparation, made: dict[Preparation, Tree]) -> Compute:
    """Accelerations, from what the list has for them."""
    if khalil_forward.deep(tree) and "mass_matrix" not in names:
        return by_articulated_form(plan)
    if "bias" in names:
        return _on(made, plan, _from_bias, plan.options("mass_matrix"))
    return by_inertia_matrix(plan, plan)


def _from_bias(
    tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None, **how: Any
) -> list[Scalar]:
    h = khalil_forward.bias(tree, q, v, external, parallel=False)
    factors = factorised(tree, khalil_matrix.mass_matrix_rows(tree, q, **how))
    return factors.solve([t - x for t, x in zip(tau, h)])


def _operational(name: str, plan: Preparation, made: dict[Preparation, Tree]) -> Compute:
    """Inertia of a link in its own place, by the inertia matrix of the prepared tree."""
    rows = _on(made, plan, khalil_matrix.mass_matrix_rows, plan.options("mass_matrix"))
    return lambda tree, q, link, frame: COMPUTE[name](tree, q, link, frame, rows(tree, q))


def _on(made: dict[Preparation, Tree], plan: Preparation, compute: Compute, options: Mapping[str, Any]) -> Compute:
    """An algorithm on the tree that a plan prepares, once for a trace."""

    def run(tree: Tree, *state: Any, **extra: Any) -> Any:
        if plan not in made:
            made[plan] = plan.prepare(tree)
        return compute(made[plan], *state, **extra, **options)

    return run
