"""symmetric=: which bodies count as symmetric about their hinge, and what it changes to take them for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError, UnknownNameError, warn_caller
from ...io.given import number
from ...mechanics.configuration import random
from ...mechanics.spatial import Mat, RigidInertia, Sym, Vec, inertia_of
from ...mechanics.tree import LinkFrame, Tree, TreeBody, build_tree
from ...mechanics.wheels import ASYMMETRY_TOLERANCE, asymmetry, missing_symmetry
from ...model.description import Inertial, Link, Model
from ...model.draft import did_you_mean, names_in, shorten
from ..formalisms import common_algorithm

ASKED = 1e-6  # asymmetry that symmetric=True takes for none
NEARLY = 1e-2  # and what is told of
SYMMETRY_STATES = 16


class Symmetrised(NamedTuple):
    """The robot whose equations are made, whether bodies need not turn, and what changed, as a row of checks."""

    model: Model
    allowed: bool = True
    change: tuple[str, float, int] | None = None


def symmetrised(model: Model, symmetric: Any) -> Symmetrised:
    """The robot with the bodies that are asked for symmetric about their hinges.

    "auto": those that are, up to 1e-12 of their size; nothing changes. False: none. True: up to 1e-6 of what their
    parents feel of them; a number: up to that; names of links: these too, however far they are from it. What is
    changed is warned about.
    """
    if isinstance(symmetric, str) and symmetric == "auto":
        return Symmetrised(model)
    if isinstance(symmetric, (bool, np.bool_)) and not symmetric:
        return Symmetrised(model, False)
    tree = build_tree(model)
    missing = {i: x for i, x in _missing(tree, symmetric).items() if any((*x.h, *x.S))}
    if not missing:
        return Symmetrised(model)
    pairs = {i: _changed(model, tree.frames, i, x) for i, x in missing.items()}
    made = {before.name: after for before, after in pairs.values()}
    changed = replace(model, links=tuple(made.get(l.name, l) for l in model.links))
    q = random(model, np.random.default_rng(0), (SYMMETRY_STATES,))
    before, after = (_mass_matrix(m, list(np.ascontiguousarray(q.T))) for m in (model, changed))
    worst = float(np.max(np.abs(after - before)) / np.max(np.abs(before)))
    told = f"{shorten([repr(tree.bodies[i].link) for i in sorted(missing)])} taken as symmetric about the joint"
    off, moved = (max(x) for x in zip(*((asymmetry(tree.bodies[i], True), _distance(*pairs[i])) for i in missing)))
    warn_caller(
        f"robot {model.name!r}: {told}, as asked: off by {off:.1e} of what is felt of it, its centre of mass by "
        f"{moved:.1e} m, the mass matrix changes by {worst:.1e} of its largest entry"
    )
    return Symmetrised(changed, True, (f"M with {told}, against the robot's own", worst, SYMMETRY_STATES))


def _missing(tree: Tree, symmetric: Any) -> dict[int, RigidInertia]:
    """By body the change of its inertia."""
    if isinstance(symmetric, (bool, np.bool_)):
        return missing_symmetry(tree, lambda _, b: asymmetry(b, True) <= ASKED)
    if not isinstance(symmetric, (str, list, tuple, set, frozenset)):
        rule = "'auto', True, False, names of links or an asymmetry from 1e-12 to 1"
        tolerance = number("symmetric", symmetric, rule, lambda x: ASYMMETRY_TOLERANCE <= x <= 1.0)
        return missing_symmetry(tree, lambda _, b: asymmetry(b, True) <= tolerance)
    names = names_in(symmetric, "symmetric")
    for name in names:
        if name not in tree.frames:
            raise UnknownNameError(f"symmetric: there is no link {name!r}{did_you_mean(name, tree.frames)}")
    asked = {tree.frames[name].body: name for name in names}
    found = missing_symmetry(tree, lambda i, b: i in asked or asymmetry(b) <= ASYMMETRY_TOLERANCE)
    for i, name in asked.items():
        if i not in found:
            raise InputError(
                f"symmetric: link {name!r} cannot be: it must turn on a hinge, have inertia about it and carry "
                "nothing but what is symmetric about it too; name last links on hinges"
            )
    return found


def _changed(model: Model, frames: Mapping[str, LinkFrame], body: int, change: RigidInertia) -> tuple[Link, Link]:
    """The heaviest link of a body, before and after a change of the body's inertia, in the body's axes."""
    weights = {l.name: l.inertial.mass for l in model.links if l.inertial and frames[l.name].body == body}
    link = next(l for l in model.links if l.name == max(weights, key=lambda name: weights[name]))
    own, at = link.inertial or Inertial(), frames[link.name]
    P = inertia_of(own.mass, Vec(*own.com), Sym.of(Mat.of(own.tensor))) + change.shifted(-at.p).turned(at.R.T)
    c = P.h * (1.0 / P.m) if P.m else Vec(0.0, 0.0, 0.0)
    tensor = P.shifted(-c).S.turned().mat
    return link, replace(link, inertial=Inertial(P.m, c, tuple(tensor)))  # type: ignore[arg-type]


def _distance(before: Link, after: Link) -> float:
    """Between the centres of mass."""
    assert before.inertial and after.inertial
    return float(np.linalg.norm(np.subtract(before.inertial.com, after.inertial.com)))


def _mass_matrix(model: Model, q: list[Any]) -> np.ndarray[Any, Any]:
    rows = common_algorithm("mass_matrix")(build_tree(model), q)
    return np.array([[np.broadcast_to(x, (SYMMETRY_STATES,)) for x in row] for row in rows])


def nearly_symmetric(model: Model) -> dict[str, float]:
    """Links of bodies that symmetric= could take for symmetric about their hinge, with their asymmetry."""
    tree, found = build_tree(model), dict[str, float]()

    def near(_: int, b: TreeBody) -> bool:
        off = asymmetry(b, True)
        if off <= NEARLY and asymmetry(b) > ASYMMETRY_TOLERANCE:
            found[b.link] = off
        return off <= NEARLY

    missing_symmetry(tree, near)
    return found
