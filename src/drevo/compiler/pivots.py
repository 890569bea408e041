"""Checks that parsing cannot make: an inertia matrix singular for every configuration, found by its pivots."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from ..errors import ModelError
from ..mechanics.algorithms.explicit import Explicit
from ..mechanics.algorithms.inertia_matrix import factorised, lower_rows, mass_matrix_rows
from ..mechanics.configuration import random
from ..mechanics.tree import Tree, build_tree
from ..model.description import Model
from ..model.regularity import require_masses
from .formalisms import common_algorithm

# Pivots are Schur complements: relative to the diagonal entry of M, rounding leaves about n eps of it.
SINGULAR = 1e-13
TRIES = 3  # random configurations; a robot that is regular is so almost everywhere


def smallest_pivot(model: Model, seed: int = 0) -> tuple[float, str]:
    """The smallest pivot of M relative to what its coordinate moves, at the best of some q; and its joint."""
    tree, rng = build_tree(model), np.random.default_rng(seed)
    best, name = -1.0, ""
    for _ in range(TRIES):
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
    if ratio <= SINGULAR:
        refuse_singular(model, ratio, joint)


def refuse_singular(model: Model, ratio: float, joint: str) -> NoReturn:
    """Says that M is singular, where its smallest pivot shows it."""
    at = f" at joint {joint!r} (pivot {ratio:.1e} of the inertia that it moves)" if joint else ""
    raise ModelError(
        f"robot {model.name!r}: the mass matrix is singular for every configuration{at}: two joints move "
        "the same inertia in the same way; give the bodies between them mass, or weld one of the joints"
    )
