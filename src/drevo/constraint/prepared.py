"""Sets of constraints made ready for a robot: taken apart into a form, checked once, which has the functions, and
numbers, checked each time, so that a set with other numbers costs little more than the reading of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..codegen.call.function import Function
from ..codegen.graph.program import Program
from ..codegen.store.memo import memoised
from ..compiler.trace import requested
from ..compiler.ways.rolled import is_large
from ..errors import InputError
from ..io.given import FLOAT_DTYPE, finite
from ..io.xml import MAX_LENGTH
from ..mechanics.acting import has_passive
from ..mechanics.reframe import trunk_pitch
from ..model.dynamics import Array, Dynamics, of_model
from . import kernels
from .collection import gathered, labels, made
from .kinds import Constraint, Contact
from .numbers import Numbered, anchored, anchors, pattern_of, places_of, settled, with_numbers
from .terms import ConstraintTerms, by_loops, constraint_function
from .values import ContactFields

SolvedMotion = tuple[Array, Array]
Contacts = Sequence[Contact | Mapping[str, Any]] | None
MAX_WRITTEN_PRODUCTS = 40_000  # products of rates and pairs of rows: beyond it the solve is not written out
CLOSINGS_ON_ARRAYS = 100  # calls that put states on constraints: then it is worth a second or two of compiling
vdot = np.vdot
TIME_ZERO = np.zeros(1)  # the time, unless it is told
TIME_ZERO.setflags(write=False)


class SetForm:
    """The form of sets of constraints of a robot that differ in numbers only: rows, functions made at first use.

    compiled: there are such functions; plain: they take calls as they come. acts: something acts in the joints.
    closings: how often states were moved onto the constraints. resettled: numbers of a set depend on its own.
    """

    def __init__(self, robot: Dynamics, constraints: tuple[Constraint, ...]) -> None:
        self.robot, settled_set = robot, settled(robot.model, constraints)
        self.pattern, self.resettled = pattern_of(settled_set), settled_set != constraints
        self.names, self.size = labels(constraints), sum(c.size for c in constraints)
        small = (
            not is_large(robot.model)
            and not by_loops(robot, constraints)
            and robot.nv * self.size**2 <= MAX_WRITTEN_PRODUCTS
        )
        self.compiled = small and of_model(robot)
        self.plain = self.compiled and trunk_pitch(robot.model) is None
        self.acts = has_passive(robot.model)
        self.turns: dict[Any, Any] = {}
        self.closings = 0

    def _requested(self, name: str, program: Callable[..., Program], *how: str) -> Function:
        make = partial(program, self.robot.model, self.pattern, *how)
        return requested(self.robot, (name, *how, self.pattern), make)

    @cached_property
    def places(self) -> dict[str, Array]:
        """The indices of points, normals and offsets of contacts and constraints among the numbers of a set."""
        return places_of(self.pattern[: len(self.pattern) - self.robot.model.closures])

    @cached_property
    def terms(self) -> Function:
        return constraint_function(self.robot, self.pattern)

    @cached_property
    def motion(self) -> Callable[..., SolvedMotion]:
        """Accelerations of (q, v, tau, t, *numbers): a and [N, rank, q, v]."""
        f = self._requested("constrained_dynamics", kernels.accelerations_program)
        return f.fast or f

    @cached_property
    def impact(self) -> Callable[..., SolvedMotion]:
        """Velocities of (q, v, t, *numbers, restitution): v and [impulses, rank, q, v]."""
        f = self._requested("impact", kernels.impact_program)
        return f.fast or f

    @cached_property
    def correction(self) -> Callable[..., SolvedMotion]:
        """The least steps to f = 0 of (q, v, t, *numbers), whatever v: dq and [N, rank, f]."""
        f = self._requested("correction", kernels.correction_program)
        return f.fast or f

    def fed(self, how: str) -> Callable[..., SolvedMotion]:
        """`motion` with gains of a feedback, "rows" or "matrices", or with "passive" forces of the joints."""
        name = "constrained_dynamics"
        f = memoised(self, (name, how), lambda: self._requested(name, kernels.accelerations_program, how))
        return f.fast or f


class PreparedSet:
    """Constraints of a robot; numbers: what follows the time in calls of the functions of their form, if any."""

    def __init__(
        self, form: SetForm, parts: Sequence[Constraint | ContactFields] | None, numbers: Sequence[float] | Array
    ) -> None:
        self.form, self._parts, self.robot, self.size = form, parts, form.robot, form.size
        self.numbers = [np.array(numbers, float)] if len(numbers) else []

    @cached_property
    def found(self) -> tuple[Constraint, ...]:
        if self._parts is None:
            return with_numbers(self.form.pattern, self.numbers[0].tolist() if self.numbers else ())
        return tuple([Contact(*c) if isinstance(c, tuple) else c for c in self._parts])

    def moved(self, points: Any = None, normals: Any = None, offsets: Any = None) -> PreparedSet:
        """A set of the same form with other points (n, 3), normals (n, 3) and offsets (n,), see `Held.moved`."""
        other, places = PreparedSet(self.form, None, self.numbers[0] if self.numbers else ()), self.form.places
        for name, x in (("points", points), ("normals", normals), ("offsets", offsets)):
            if x is not None:
                at = places[name]
                numbers = _moved(name, x, at.shape)
                if numbers.size:
                    other.numbers[0][at] = numbers
        return other

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rows."""
        return self.form.names

    @cached_property
    def placed(self) -> tuple[SetForm, Array]:
        """The form with what it leaves open as numbers, and these: NaN, as others say what they are."""
        settled_set = settled(self.robot.model, self.found, self.form.turns)
        settled_set = anchored(settled_set, [math.nan] * anchors(settled_set))
        apart = Numbered.of(settled_set)
        form = memoised(self.robot, ("form", apart.signature), lambda: SetForm(self.robot, settled_set))
        return form, np.array(apart.numbers, float)

    def closing(self, held: Array) -> Closing | None:
        """The machine code that puts states on the constraints, held: the places of `held_at`; None where there is
        none, or a few times are sooner done than compiled."""
        self.form.closings += 1
        if self.form.closings <= CLOSINGS_ON_ARRAYS or not (self.form.plain and self.size):
            return None
        form, numbers = self.placed
        if held.shape[-1]:
            numbers = np.array(np.broadcast_to(numbers, (*held.shape[:-1], len(numbers))))
            numbers[..., np.isnan(self.placed[1])] = held
        return Closing(form, [numbers] if len(self.placed[1]) else []) if form.plain else None

    def state_in(self, held: Array) -> tuple[Array, Array]:
        """q and v of what a kernel gave."""
        q, v = self.size + 1, self.size + 1 + self.robot.nq
        return held[..., q:v], held[..., v:]

    def terms(self, q: Array, v: Array, t: Array) -> ConstraintTerms:
        """f, f', Gamma and gamma; t (1,) or (..., 1)."""
        if not self.size or not self.form.compiled:
            lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
            none = np.zeros((*lead, 0))
            return ConstraintTerms(none, none, np.zeros((*lead, 0, self.robot.nv)), none)
        return ConstraintTerms(*self.form.terms(q, v, t, *(self.numbers or [np.zeros(0)])))


def _moved(name: str, x: Any, shape: tuple[int, ...]) -> Array:
    """The numbers that replace the points, normals or offsets of a set, checked."""
    given = np.array(x) if type(x) is list or type(x) is tuple else x
    plain = type(given) is np.ndarray and given.dtype is FLOAT_DTYPE and given.shape == shape
    if not plain or not vdot(given, given) <= MAX_LENGTH**2:
        if shape[0] == np.size(x) == 0:
            return np.zeros(shape)
        given = finite(f"moved: {name}", x, shape if shape[0] != 1 or np.ndim(x) == len(shape) else shape[1:])
        if not np.abs(given).max(initial=0.0) <= MAX_LENGTH:
            raise InputError(f"moved: {name} must be numbers of at most {MAX_LENGTH:g}")
        given = given.reshape(shape)
    if name == "normals" and not given.any(axis=1).all():
        raise InputError("moved: a normal is zero; give directions")
    return given


GapsAt = Callable[[Array], tuple[Array, Callable[[], Array]]]  # q -> the gaps there, the step that closes them


class Closing(NamedTuple):
    """Machine code that puts states on constraints."""

    form: SetForm
    numbers: list[Array]

    def looks(self, t: Array) -> GapsAt:
        rest, time, size = np.zeros(self.form.robot.nv), t[..., None], self.form.size + 1

        def look(q: Array) -> tuple[Array, Callable[[], Array]]:
            dq, errors = self.form.correction(q, rest, time, *self.numbers)
            return errors[..., size:], lambda: dq

        return look

    def rates(self, q: Array, v: Array, t: Array) -> Array:
        """Those nearest to v that keep the constraints at q."""
        return self.form.impact(q, v, t[..., None], *self.numbers, TIME_ZERO)[0]


# -- what is asked for --------------------------------------------------------------------------------------


def prepared_set(robot: Dynamics, contacts: Any, constraints: Any) -> PreparedSet:
    """The set of a call, checked. Raises InputError."""
    if contacts is None and constraints is None:  # the robot's own loops
        return memoised(robot, ("form", None), lambda: _prepared(robot, None, None))
    return _prepared(robot, contacts, constraints)


def _prepared(robot: Dynamics, contacts: Any, constraints: Any) -> PreparedSet:
    parts = gathered(robot.model, contacts, constraints)
    apart = Numbered.of(parts)
    form: SetForm = memoised(robot, ("form", apart.signature), lambda: SetForm(robot, made(robot.model, parts)))
    numbers: Sequence[float] = apart.numbers
    if form.resettled:
        unseen = any(isinstance(c, Constraint) and c.turn and c.turn not in form.turns for c in parts)
        settled_set = settled(
            robot.model, made(robot.model, parts) if unseen else parts, form.turns
        )  # `at` is checked
        numbers = Numbered.of(settled_set).numbers
    return PreparedSet(form, parts, numbers)
