"""f, f', Gamma and gamma of a set of constraints, compiled once for a robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..compiler.request import requested
from ..compiler.tracer import Tracer
from ..errors import NumericsError
from ..mechanics.algorithms.constraints import Kinematics, orientation
from ..mechanics.algorithms.kinematics import pose
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.tree import build_tree
from ..model.description import Model
from ..model.dynamics import Dynamics
from .collection import all_rows, is_lasting, labels
from .constraint import Constraint, Contact, Weld

if TYPE_CHECKING:
    from ..codegen.runtime.function import Function

Array = np.ndarray[Any, Any]


class ConstraintTerms(NamedTuple):
    """f, f', Gamma and gamma of a set at a state."""

    value: Array
    rate: Array
    jacobian: Array
    gamma: Array


def constraint_terms(
    robot: Dynamics,
    found: tuple[Constraint, ...],
    q: ArrayLike,
    v: ArrayLike,
    t: ArrayLike = 0.0,
    held: Array | None = None,
) -> ConstraintTerms:
    """f, f', Gamma (..., m, nv) and gamma (..., m) of constraints that `collection.collect` has checked.

    held (..., anchors): `held_at` of the configuration whose places and orientations hold where the constraints
    leave them open; without it they are taken as met.
    """
    if not found:
        lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
        none = np.zeros((*lead, 0))
        return ConstraintTerms(none, none, np.zeros((*lead, 0, robot.nv)), none)
    given = [q, v, np.asarray(t, float)[..., None]]
    placed = held is not None and held.shape[-1] > 0
    try:
        return ConstraintTerms(*constraint_function(robot, found, placed)(*given, *([held] if placed else [])))
    except NumericsError as error:
        if not placed and "is as large as" not in str(error):  # or it names the input that is to blame
            x, u, time = (np.asarray(y, float) for y in given)
            lead = np.broadcast_shapes(x.shape[:-1], u.shape[:-1], time.shape[:-1])
            states = [np.broadcast_to(y, (*lead, y.shape[-1])).reshape(-1, y.shape[-1]) for y in (x, u, time)]
            numeric_terms(robot.model, found, states[0], states[1], states[2][:, 0])  # names the row
        raise


def numeric_terms(model: Model, found: tuple[Constraint, ...], q: Array, v: Array, t: Array) -> ConstraintTerms:
    """The same without compiling; the numbers of the constraints may be arrays over the samples (n,) too.

    q (n, nq), v (n, nv), t (n,).
    """
    if not found:
        none = np.zeros((len(q), 0))
        return ConstraintTerms(none, none, np.zeros((len(q), 0, model.nv)), none)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        rows = all_rows(found, Kinematics(build_tree(model), list(q.T), list(v.T)), t)

    def filled(values: Sequence[Any]) -> Array:
        return np.stack([np.broadcast_to(np.asarray(x, float), (len(q),)) for x in values], -1)

    jacobian = np.stack([filled(row) for row in rows.jacobian], -2)
    terms = ConstraintTerms(filled(rows.value), filled(rows.rate), jacobian, filled(rows.bias))
    sides = np.stack([terms.value, terms.rate, terms.gamma, *np.moveaxis(jacobian, -1, 0)])
    if not np.isfinite(sides).all():
        row = int((~np.isfinite(sides)).any((0, 1)).argmax())
        raise NumericsError(f"{labels(found)[row]} or a rate of it is not finite at this state")
    return terms


def constraint_function(robot: Dynamics, found: tuple[Constraint, ...], placed: bool = False) -> Function:
    """The compiled function of a set, made once per robot; placed: with the numbers left open as an input."""
    program = partial(constraint_program, robot.model, found, placed)
    return requested(robot, ("constraints", found, placed), program, lasting=all(map(is_lasting, found)))


def constraint_program(model: Model, found: tuple[Constraint, ...], placed: bool = False) -> Program:
    """The program of f, f', Gamma and gamma with inputs q, v, t and, if placed, the numbers left open."""
    t = Tracer("constraints", model)
    (q, v), (time,) = t.state("q", "v"), t.input("t", 1)
    there = anchored(found, t.input("held", anchors(found))) if placed else found
    rows = all_rows(there, Kinematics(t.tree, q, v), time)
    t.output("f", rows.value)
    t.output("rate", rows.rate)
    t.output("jacobian", rows.jacobian, (len(rows.value), model.nv))
    t.output("gamma", rows.bias)
    return t.program(quantity="constraints", formalism="newton_euler")


# -- what a configuration decides ---------------------------------------------------------------------------


def anchors(constraints: Sequence[Constraint]) -> int:
    """How many numbers say what is left open: places and orientations of contacts, orientations of welds."""
    return sum(3 * _placeless(c) + 9 * _turnless(c) for c in constraints)


def anchored(constraints: Sequence[Constraint], numbers: Vector) -> tuple[Constraint, ...]:
    """The same with these numbers in place of what they leave open; scalars of any kind."""
    rest, out = list(numbers), list(constraints)
    for k, c in enumerate(out):
        if isinstance(c, Contact) and _placeless(c):
            c, rest = replace(c, anchor=(rest[0], rest[1], rest[2])), rest[3:]
        if isinstance(c, (Contact, Weld)) and _turnless(c):
            turn = tuple((rest[i], rest[i + 1], rest[i + 2]) for i in (0, 3, 6))
            c, rest = replace(c, rotation=turn), rest[9:]  # type: ignore[arg-type]
        out[k] = c
    return tuple(out)


def held_at(model: Model, constraints: Sequence[Constraint], q: Array) -> Array:
    """The numbers for `anchored` where q (..., nq) says what is left open, (..., anchors)."""
    if not anchors(constraints):
        return np.zeros((*q.shape[:-1], 0))
    tree, x, out = build_tree(model), list(np.moveaxis(q, -1, 0)), list[Scalar]()
    for c in constraints:
        if isinstance(c, Contact) and (_placeless(c) or _turnless(c)):
            T = pose(tree, x, c.link)[:3]
            if _placeless(c):
                out += [row[3] + sum(a * b for a, b in zip(row, c.point)) for row in T]
            if _turnless(c):
                out += [a for row in T for a in row[:3]]
        elif isinstance(c, Weld) and _turnless(c):
            out += [a for row in orientation(tree, x, *c.links) for a in row]
    return np.stack([np.broadcast_to(a, q.shape[:-1]) for a in out], -1)


def _placeless(c: Constraint) -> bool:
    return isinstance(c, Contact) and c.anchor is None


def _turnless(c: Constraint) -> bool:
    if isinstance(c, Weld):
        return c.rotation is None and c.at is None
    return isinstance(c, Contact) and c.size == 6 and c.rotation is None


__all__ = [
    "ConstraintTerms",
    "anchored",
    "anchors",
    "constraint_function",
    "constraint_program",
    "constraint_terms",
    "held_at",
    "numeric_terms",
]
