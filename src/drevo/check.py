"""What parsing cannot see: an inertia matrix that is singular for every configuration, by its pivots."""

from __future__ import annotations

import numpy as np

from .algorithms.inertia_matrix import factors
from .errors import ModelError
from .mechanics.configuration import random
from .mechanics.tree import build_tree
from .model.description import Model

# Pivots are Schur complements: relative to the diagonal entry of M, rounding leaves about n eps of it.
SINGULAR = 1e-13
TRIES = 3  # random configurations; a robot that is regular is so almost everywhere


def smallest_pivot(model: Model, seed: int = 0) -> tuple[float, str]:
    """The smallest pivot of M relative to its diagonal, at the best of some random q; and its joint."""
    from .algorithms.inertia_matrix import mass_matrix_rows

    tree, rng = build_tree(model), np.random.default_rng(seed)
    best, name = -1.0, ""
    for _ in range(TRIES):
        q = [float(x) for x in random(model, rng)]
        try:
            f = factors(tree, q)
        except ZeroDivisionError:
            continue
        M = mass_matrix_rows(tree, q)
        ratio = [float(p) / float(M[v][v]) for v, p in zip(f.order, f.pivots)]
        worst = min(range(len(ratio)), key=ratio.__getitem__)
        if ratio[worst] > best:
            best, name = ratio[worst], tree.joint_names[f.order[worst]]
    return best, name


def require_regular(model: Model) -> None:
    """Raises ModelError where M has no inverse at any configuration."""
    if model.nv == 0:
        return
    ratio, joint = smallest_pivot(model)
    if ratio <= SINGULAR:
        at = f" at joint {joint!r} (pivot {ratio:.1e} of its diagonal entry)" if joint else ""
        raise ModelError(
            f"robot {model.name!r}: the mass matrix is singular for every configuration{at}: two joints move "
            "the same inertia in the same way; give the bodies between them mass, or weld one of the joints"
        )
