"""What `compile` takes: the recursion of Khalil after the plain preparations, without a search.

Compiled code is chosen by time, not by the count shown to people: a sine and cosine pair costs about as much
as 40 other operations, so no angle sums are made; and a cold start may not wait for a search.
"""

from __future__ import annotations

from ..algorithms import articulated_body
from ..mechanics.tree import Tree
from ..quantities import CATALOGUE
from ..trace import COMPUTE
from .registry import Compute, Prepare, accelerations
from .search import COMPUTE as RECURSIONS
from .search import Plan

DEEP = 15  # mean number of ancestors: beyond it articulated bodies beat the factors of M


def quick(tree: Tree, name: str, external: bool) -> tuple[Compute | None, Prepare | None]:
    """Algorithm and preparation for a quantity; (None, None) where the common algorithm is the one."""
    plan = Plan(frames=True, unit=not external, parallel=False, sums=False)
    if name == "forward_dynamics":
        if deep(tree):
            return articulated_body.forward_dynamics, None
        return accelerations(plan, plan), None
    if name in RECURSIONS:
        return lambda t, *state, **extra: RECURSIONS[name](t, *state, **extra, **plan.options(name)), plan.prepare
    if CATALOGUE[name].invariant:
        return COMPUTE[name], Plan(frames=True, unit=False).prepare
    return None, None


def deep(tree: Tree) -> bool:
    """Long chains, whose coordinates each move one joint."""
    depth: list[int] = []
    for b in tree.bodies:
        depth.append(depth[b.parent] + 1 if b.parent >= 0 else 1)
    alone = len({b.v for b in tree.bodies}) == len(tree.bodies)
    return alone and sum(depth) > DEEP * len(tree)
