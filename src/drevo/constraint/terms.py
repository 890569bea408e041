"""f, f', Gamma and gamma of a set of constraints, compiled once for a robot and all sets of its form.

Kinematics for the constraints of large trees: of the links that are asked for, by loops over the bodies.

Written out, terms grow by the path of every link, times the rates; here a link costs O(n) and nothing is compiled
but once for all links. The columns of a track are one, an array over the rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function
from ..codegen.graph.program import Program
from ..codegen.store.build import Spec
from ..codegen.store.memo import memoised
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..compiler.ways.rolled import is_large, rolled_function
from ..errors import NumericsError
from ..mechanics.algorithms.constraints import Kinematics, Track
from ..mechanics.algorithms.kinematics import Pose
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import ZERO, Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..model.description import Model
from ..model.dynamics import Dynamics, of_model
from .collection import all_rows, labels
from .kinds import Constraint
from .numbers import Numbered, anchored, anchors, pattern_of, settled, with_numbers, with_places

if TYPE_CHECKING:
    from ..codegen.call.function import Function

MAX_TRACED_BODIES = 100  # bodies; up to here terms compile in a second or two and are computed in microseconds
_WORLD_FRAME = "local_world_aligned"
_OPTIONS = {
    "pose": {}, "jacobian": {"frame": _WORLD_FRAME}, "velocity": {"frame": _WORLD_FRAME},
    "acceleration": {"frame": _WORLD_FRAME, "kind": "classical"},
}  # fmt: skip


def by_loops(robot: Dynamics, constraints: tuple[Constraint, ...]) -> bool:
    """True if the terms are computed by loops over the bodies; functions of the user's own are traced."""
    return is_large(robot.model, MAX_TRACED_BODIES) and all(c.on_arrays for c in constraints)


class LinkKinematics(Kinematics):
    """At states q (n, nq), v (n, nv): vectors are arrays over n, columns over (nv, n)."""

    def __init__(self, robot: Dynamics, q: Array, v: Array) -> None:
        self.robot, self.states = robot, (q, v, np.zeros_like(v))
        self.q, self.v = list(q.T), list(v.T)

    @cached_property
    def tree(self) -> Tree:  # type: ignore[override]
        return build_tree(self.robot.model)

    def pose(self, link: str) -> Pose:
        T = np.moveaxis(self._asked("pose", link), 0, -1)
        return Pose(Mat.of(T[:3, :3]), Vec(*T[:3, 3]))

    def point(self, link: str, r: Any) -> Track:
        pose, (v, w), (a, e) = self.pose(link), self._halves("velocity", link), self._halves("acceleration", link)
        arm = pose.R @ Vec(*r)
        linear, angular = self._columns_of(link)
        dd = a + e.cross(arm) + w.cross(w.cross(arm))
        return Track(pose.p + arm, v + w.cross(arm), dd, [linear + angular.cross(arm)])

    def turning(self, link: str) -> Track:
        _, w = self._halves("velocity", link)
        _, e = self._halves("acceleration", link)
        return Track(ZERO, w, e, [self._columns_of(link)[1]])

    def _halves(self, quantity: str, link: str) -> tuple[Vec, Vec]:
        x = self._asked(quantity, link).T
        return Vec(*x[:3]), Vec(*x[3:])

    def _columns_of(self, link: str) -> tuple[Vec, Vec]:
        J = self._asked("jacobian", link).transpose(1, 2, 0)
        return Vec(*J[:3]), Vec(*J[3:])

    def _asked(self, quantity: str, link: str) -> Array:
        """A quantity of a link by its loop, (n, ...)."""
        model, options = self.robot.model, {"link": link, **_OPTIONS[quantity]}

        def make() -> Function:
            function = rolled_function(model, quantity, Spec(), options=options, smallest=MAX_TRACED_BODIES)
            assert function is not None  # `by_loops`
            return function

        f = memoised(self.robot, ("of a link", quantity, link), make)
        return np.asarray(f(*self.states[: len(f.inputs)]))


Array = np.ndarray[Any, Any]


class ConstraintTerms(NamedTuple):
    """f, f', Gamma and gamma of a set at a state."""

    value: Array
    rate: Array
    jacobian: Array
    gamma: Array


TermsAt = Callable[..., ConstraintTerms]  # q, v -> the terms there


def constraint_terms(
    robot: Dynamics, constraints: tuple[Constraint, ...], q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0,
    held: Array | None = None,
) -> ConstraintTerms:  # fmt: skip
    """f, f', Gamma (..., m, nv) and gamma (..., m) of constraints that `collection.collect` has checked.

    held (..., anchors): `held_at` of the configuration whose places and orientations hold where the constraints
    leave them open; without it they are taken as met.
    """
    return terms_at(robot, constraints, t, held)(q, v)


def terms_at(
    robot: Dynamics, constraints: tuple[Constraint, ...], t: ArrayLike = 0.0, held: Array | None = None
) -> TermsAt:
    """`constraint_terms` as a function of q and v: what does not depend on these is done once."""
    if not constraints:
        return partial(_no_terms, robot.nv)
    time = np.asarray(t, float)[..., None]
    places = held if held is not None and held.shape[-1] else None
    if by_loops(robot, constraints):
        rest = [time] if places is None else [time, places]
        return lambda q, v: _by_loops(robot, constraints, q, v, *rest)
    settled_set = settled(robot.model, constraints)
    if places is None:
        numbers = np.array(Numbered.of(settled_set).numbers)
    else:
        settled_set, numbers = with_places(settled_set, places)
    f = constraint_function(robot, settled_set)

    def terms(q: ArrayLike, v: ArrayLike) -> ConstraintTerms:
        try:
            return ConstraintTerms(*f(q, v, time, numbers))
        except NumericsError as error:
            if places is None and "is as large as" not in str(error):  # or it names the input that is to blame
                constraint_program(robot.model, settled_set, numbers.tolist())  # refuses what is nowhere
                _, states = _flat(q, v, time)
                numeric_terms(robot, constraints, states[0], states[1], states[2][:, 0])  # names the row
            raise

    return terms


def _no_terms(nv: int, q: ArrayLike, v: ArrayLike) -> ConstraintTerms:
    lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    none = np.zeros((*lead, 0))
    return ConstraintTerms(none, none, np.zeros((*lead, 0, nv)), none)


def _flat(*given: ArrayLike) -> tuple[tuple[int, ...], list[Array]]:
    """The common leading dimensions of arrays (..., n), and they as (count, n)."""
    arrays = [np.asarray(x, float) for x in given]
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return lead, [np.broadcast_to(x, (*lead, x.shape[-1])).reshape(prod(lead), x.shape[-1]) for x in arrays]


def _by_loops(robot: Dynamics, constraints: tuple[Constraint, ...], *given: ArrayLike) -> ConstraintTerms:
    lead, (x, u, time, *at) = _flat(*given)
    numbered = anchored(constraints, list(at[0].T)) if at else constraints
    return ConstraintTerms(
        *(y.reshape(*lead, *y.shape[1:]) for y in numeric_terms(robot, numbered, x, u, time[:, 0]))
    )


def numeric_terms(
    robot: Dynamics, constraints: tuple[Constraint, ...], q: Array, v: Array, t: Array
) -> ConstraintTerms:
    """Constraint terms without compiling; numbers of the constraints may be arrays over the samples (n,) too.

    q (n, nq), v (n, nv), t (n,).
    """
    if not constraints:
        return _no_terms(robot.nv, q, v)
    with np.errstate(all="ignore"):  # what is not finite is refused below
        rows = all_rows(constraints, _kinematics(robot, constraints, q, v), t)

    def filled(values: Sequence[Any]) -> Array:
        return np.stack([np.broadcast_to(np.asarray(x, float), (len(q),)) for x in values], -1)

    def over_rates(row: Sequence[Any]) -> Array:
        """(n, nv) of a row, whose columns may be one array over the rates."""
        if len(row) == robot.nv:
            return filled(row)
        return np.asarray(np.broadcast_to(row[0], (robot.nv, len(q))).T)

    jacobian = np.stack([over_rates(row) for row in rows.jacobian], -2)
    terms = ConstraintTerms(filled(rows.value), filled(rows.rate), jacobian, filled(rows.bias))
    sides = np.stack([terms.value, terms.rate, terms.gamma, *np.moveaxis(jacobian, -1, 0)])
    if not np.isfinite(sides).all():
        row = int((~np.isfinite(sides)).any((0, 1)).argmax())
        raise NumericsError(f"{labels(constraints)[row]} or a rate of it is not finite at this state")
    return terms


def _kinematics(robot: Dynamics, constraints: tuple[Constraint, ...], q: Array, v: Array) -> Kinematics:
    if by_loops(robot, constraints):
        return LinkKinematics(robot, q, v)
    return Kinematics(build_tree(robot.model), list(q.T), list(v.T))


def constraint_function(robot: Dynamics, constraints: tuple[Constraint, ...]) -> Function:
    """The compiled terms of all sets that differ from a settled one in numbers only."""
    return compiled_set("constraints", constraint_program, robot, constraints)


def compiled_set(
    name: str, program: Callable[..., Program], robot: Dynamics, constraints: tuple[Constraint, ...]
) -> Function:
    """The compiled `program` of a model and a set, a function of all sets of this form; made once per robot."""

    def make() -> Function:
        pattern = pattern_of(constraints)
        return requested(robot, (name, pattern), partial(program, robot.model, pattern))

    return memoised(robot, (name, "compiled", Numbered.of(constraints).signature), make)


def constraint_program(
    model: Model, pattern: tuple[Constraint, ...], numbers: Sequence[Scalar] | Array | None = None
) -> Program:
    """The program of f, f', Gamma and gamma with inputs q, v, t and, where not given, the numbers of the set."""
    t = Tracer("constraints", model)
    (q, v), (time,) = t.state("q", "v"), t.input("t", 1)
    if numbers is None:
        numbers = t.input("numbers", len(Numbered.of(pattern).numbers))
    rows = all_rows(with_numbers(pattern, numbers), Kinematics(t.tree, q, v), time)
    t.output("f", rows.value)
    t.output("rate", rows.rate)
    t.output("jacobian", rows.jacobian, (len(rows.value), model.nv))
    t.output("gamma", rows.bias)
    return t.program(quantity="constraints", formalism="newton_euler")


def held_at(robot: Dynamics, constraints: Sequence[Constraint], q: Array) -> Array:
    """The numbers for `anchored` where q (..., nq) says what is left open, (..., anchors)."""
    if not anchors(constraints):
        return np.zeros((*q.shape[:-1], 0))
    every = tuple(constraints)
    if of_model(robot) and not by_loops(robot, every):
        with suppress(NumericsError):
            places: Array = compiled_set("held places", places_program, robot, every)(
                q, np.array(Numbered.of(every).numbers, float)
            )
            return places
    flat = q.reshape(prod(q.shape[:-1]), q.shape[-1])
    out = _places(_kinematics(robot, every, flat, np.zeros((len(flat), robot.nv))), every)
    return np.stack([np.broadcast_to(x, len(flat)) for x in out], -1).reshape(*q.shape[:-1], len(out))


def _places(k: Kinematics, constraints: tuple[Constraint, ...]) -> list[Scalar]:
    """The numbers that `held_at` gives for what the constraints leave open, at one state."""
    return [x for c in constraints for x in c.opened(k)]


def places_program(model: Model, pattern: tuple[Constraint, ...]) -> Program:
    """The program of what `held_at` gives, with inputs q and the numbers of the set."""
    t = Tracer("held_places", model)
    (q,), numbers = t.state("q"), t.input("numbers", len(Numbered.of(pattern).numbers))
    k = Kinematics(t.tree, q, [0.0] * model.nv)
    t.output("places", _places(k, with_numbers(pattern, numbers)))
    return t.program(quantity="held_places", formalism="newton_euler")
