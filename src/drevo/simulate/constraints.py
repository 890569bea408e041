"""Motions under contacts and constraints: where they begin, which rows are held, why they stop.

Checks of `simulate` before it begins: it refuses work without bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.lower.loops import DEPENDENT, NOT_FINITE, OPEN, TOO_SMALL, UNSETTLED
from ..constraint.checks import feedback
from ..constraint.closing import out_of_reach, project_state
from ..constraint.collection import collect, labels
from ..constraint.dynamics import ConstrainedMotion, Contacts, accelerations
from ..constraint.kinds import Constraint
from ..constraint.numbers import anchored
from ..constraint.solve import factor_of, factors_of, independent_rows, spanned_by_rows
from ..constraint.terms import ConstraintTerms, TermsAt, constraint_terms, held_at, numeric_terms
from ..errors import InputError, NumericsError
from ..io.given import lent
from ..model.dynamics import Dynamics
from .motion import DEPENDENT_ROW_MISS, PIVOT, Rule, owners
from .state import EngineState

MAX_FIXED_STEPS, ADAPTIVE_STEPS = 10_000_000, 100_000  # what `max_steps` is unless it is given
WILD = 1e4  # rad, m, or their rates: what a motion that has left all bounds is beyond
FINEST = 1e-14  # rtol: doubles hold little more than 15 digits


def is_tame(x: np.ndarray[Any, Any]) -> bool:
    """True if coordinates or rates are those of a motion that has not left all bounds."""
    return bool(np.abs(x).max(initial=0.0) < WILD)  # false of NaN


# -- a bound on the work ------------------------------------------------------------------------------------


def bounded(end: float, dt: float, most: int, title: str) -> None:
    """InputError where a motion would have more steps (or records) than `max_steps`."""
    if end / dt > most:
        raise InputError(
            f"a duration of {end:g} s in {title} of {dt:g} s makes {end / dt:.3g} of them, more than "
            f"max_steps={most}: take a longer step or a shorter duration, or give max_steps="
        )


def require_memory(records: float, shape: Sequence[int]) -> None:
    """InputError where records of so many numbers each would not fit in memory."""
    size, available = 8.0 * records * math.prod(shape), lent()
    if 8.0 * records * math.prod(max(1, n) for n in shape) >= 2.0**63:  # of an empty batch too, by NumPy's rule
        raise InputError(f"simulate: there is no memory for this batch, {tuple(shape[:-1])}: take fewer rows")
    if size > available:
        raise InputError(
            f"{records:.3g} records of {math.prod(shape)} numbers need {size / 1e9:.3g} GB, and this machine "
            f"lends {available / 1e9:.3g} GB: take fewer records (every=, dt=) or fewer rows"
        )


Array = np.ndarray[Any, Any]
BEGIN = 1e-6  # m, rad, or their rates: how far from its constraints a motion may begin
CLEAR_PIVOT = 10.0  # times PIVOT: what the rows of a rule must have at the start
MAX_RATE = 1e12  # rad/s or m/s: what is faster has no motion in double precision
NEAR_PIVOT = 1e-2  # of a pivot over its diagonal: a motion that fails there fails because of it


@dataclass(frozen=True)
class HeldConstraints:
    """Contacts and constraints of one simulation, the robot's own loops among them.

    places (count, anchors): where contacts, and how welds, of each row of the batch are held. rule: which rows
    machine code holds; None where no choice does for the whole batch. given (count, n): what it reads of the
    start, the diagonal of D last. feedback: (damping, stiffness) of every row in place of projection.
    """

    robot: Dynamics
    found: tuple[Constraint, ...]
    places: Array
    feedback: tuple[Array, Array] | None = None
    rule: Rule | None = None
    given: Array | None = None

    @staticmethod
    def of(
        robot: Dynamics, contacts: Contacts, constraints: Sequence[Constraint] | None, stabilise: Any, q: Array
    ) -> HeldConstraints | None:
        """None if nothing is held. What contacts and welds leave open is as it stands at the start."""
        empty = all(x is None or (isinstance(x, (list, tuple)) and not x) for x in (contacts, constraints))
        if empty and not robot.model.closed:
            if stabilise is not None:
                raise InputError("stabilise is given, but there are no contacts, constraints or loops")
            return None
        collected = collect(robot.model, contacts, constraints)
        return HeldConstraints(
            robot, collected, held_at(robot, collected, q), _feedback(stabilise, labels(collected))
        )

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each row."""
        return labels(self.found)

    @property
    def sizes(self) -> Array:
        """The diagonal of D at the start."""
        assert self.rule is not None and self.given is not None
        return self.given[:, self.given.shape[-1] - len(self.rule.kept) :]

    def terms(self, t: ArrayLike, q: Array, v: Array) -> ConstraintTerms:
        """f, f', Gamma and gamma; q (..., count, nq), t a number or (..., 1)."""
        lead = q.shape[:-1]
        count, n = math.prod(lead), self.places.shape[-1]
        numbers = np.broadcast_to(self.places, (*lead, n)).reshape(count, n)
        times = np.broadcast_to(np.asarray(t, float), lead).reshape(-1)
        held = anchored(self.found, list(numbers.T))
        c = numeric_terms(self.robot, held, q.reshape(count, q.shape[-1]), v.reshape(count, v.shape[-1]), times)
        return ConstraintTerms(*(x.reshape(*lead, *x.shape[1:]) for x in c))

    def terms_in_flight(self, t: float, q: Array, v: Array) -> ConstraintTerms:
        """Constraint terms f, f', Gamma and gamma by compiled code."""
        return constraint_terms(self.robot, self.found, q, v, t, self.places)

    # -- the start ------------------------------------------------------------------------------------------

    def start(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state put right within BEGIN; refused beyond it.

        With feedback the state stays as it is: closing its gaps is what feedback is for.
        """
        c = self.terms(0.0, q, v)
        one = 0 if len(q) == 1 else slice(None)  # a single motion is told of no batch
        if not len(q):
            return q, v
        first = replace(self, places=self.places[one])
        self.solved(partial(first.terms, 0.0), q[one], v[one], np.zeros_like(v[one]))  # refuses contradictions
        if self.feedback is None:
            self._refuse_distance(
                "q0", c.value, "robot.assemble(q0) finds one that does, or says why there is none"
            )
            self._refuse_distance("v0", c.rate, "drevo.constraint.hold(robot, q0, v0) gives the nearest that does")
            q, v = project_state(self.robot, q, v, partial(self.terms, 0.0), self.names)
        return q, v

    def _refuse_distance(self, fault: str, x: Array, remedy: str) -> None:
        if (np.abs(x) > BEGIN).any():
            row, i = np.unravel_index(int(np.abs(x).argmax()), x.shape)
            where = f" in row {int(row)}" if len(x) > 1 else ""
            raise InputError(
                f"{fault} is {np.abs(x).max():.3g} away from {self.names[int(i)]}{where}; a motion begins on its "
                f"constraints: {remedy}"
            )

    def parted(self, q: Array, v: Array, together: bool) -> list[tuple[Array, HeldConstraints]]:
        """The rows of the batch that hold the same rows of constraints, each with its part of this and its rule.

        together: all in one part, under the rule of the first where that may be held everywhere.
        """
        if not len(q):
            return [(np.arange(0), self)]
        weighted = factor_of(self.robot, q).inwards(self.terms(0.0, q, v).jacobian)
        chosen, parts = independent_rows(weighted[:1] if together else weighted, PIVOT), []
        for flags in np.unique(chosen, axis=0):
            kept = tuple(np.flatnonzero(flags).tolist())
            fine = _may_hold(weighted, kept)
            if together:
                return [(np.arange(len(q)), self._ruled(weighted, kept) if fine.all() else self)]
            same = (chosen == flags).all(-1)
            for held, rows in ((True, np.flatnonzero(same & fine)), (False, np.flatnonzero(same & ~fine))):
                part = replace(self, places=self.places[rows])
                if len(rows):
                    parts.append((rows, part._ruled(weighted[rows], kept) if held else part))
        return parts

    def part(self, k: int) -> HeldConstraints:
        """This of one row of the batch."""
        given = None if self.given is None else self.given[k : k + 1]
        return replace(self, places=self.places[k : k + 1], given=given)

    def _ruled(self, weighted: Array, kept: tuple[int, ...]) -> HeldConstraints:
        """This with the rule that these rows are held."""
        diagonal = _pivots(weighted[:, kept])[1]
        patterns, numbers = Rule.numbered(self.robot.model, self.found, self.places)
        gains = [np.broadcast_to(g[list(kept)], diagonal.shape) for g in self.feedback or ()]
        rule = Rule(patterns, kept, self.robot.model.closures, self.feedback is not None)
        return replace(self, rule=rule, given=np.concatenate([numbers, *gains, diagonal], -1))

    # -- in Python ------------------------------------------------------------------------------------------

    def accelerations(self, t: float, q: Array, v: Array, tau: Array) -> Array:
        """a of every row, the constraints' reactions in."""
        try:
            return self.solved(partial(self.terms_in_flight, t), q, v, tau).a
        except NumericsError as error:
            raise NumericsError(f"simulate: at t = {t:.6g} s: {error}") from None

    def solved(self, terms: TermsAt, q: Array, v: Array, tau: Array) -> ConstrainedMotion:
        """Accelerations and reactions of any states."""
        return accelerations(self.robot, q, v, tau, terms, self.names, None, self.feedback)

    def project(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """The nearest state that keeps the constraints; with feedback the state as it is."""
        if self.feedback is not None:
            return q, v
        try:
            return project_state(self.robot, q, v, partial(self.terms_in_flight, t), self.names)
        except NumericsError as error:
            raise NumericsError(f"simulate: at t = {t:.6g} s: {error}") from None

    # -- why it stopped -------------------------------------------------------------------------------------

    def explain(self, code: int, t: float, q: Array, v: Array, first: int) -> str | None:
        """A sentence for a motion that constraints ended at a state, which is the last before them; or None.

        first: where in the batch these rows begin.
        """
        if self.rule is None or not (is_tame(q) and np.isfinite(v).all()):
            return None
        rows, kept, dropped = slice(first, first + len(q)), self.rule.kept, self.rule.dropped
        c = replace(self, places=self.places[rows]).terms(t, q, v)
        pivots, diagonal = _pivots(factor_of(self.robot, q).inwards(c.jacobian[:, kept]))
        hold = np.sqrt(np.maximum(0.0, pivots / (diagonal + self.sizes[rows])))
        when, weak, least = self._largest(t, -hold, kept, first)
        lost = f"{weak} has lost all but {-least:.1e} of its hold"
        near = NEAR_PIVOT if code in (NOT_FINITE, UNSETTLED, TOO_SMALL) else CLEAR_PIVOT * PIVOT
        if kept and least * least <= near:
            return f"{when} the constraints lose rank: {lost}; keep away from this configuration, or drop the row"
        if code == OPEN:
            when, name, gap = self._largest(t, np.abs(c.value[:, kept]), kept, first)
            return (
                f"{when} the constraints cannot be met: {name} is off by {gap:.3g} and Newton's steps do not "
                f"close it ({lost}); the motion has reached the end of what they allow, or the step is too long"
            )
        when, name, gap = self._largest(t, np.abs(c.value[:, dropped]), dropped, first)
        if code != DEPENDENT or not gap > DEPENDENT_ROW_MISS:
            return None
        return (
            f"{when} the constraints gain rank: {name} followed from the others at the start and is now off by "
            f"{gap:.3g}; begin at a configuration where no row follows from the others"
        )

    def out_of_reach(self, t: float, q: Array, row: int) -> str:
        """The gap that feedback is to close and no configuration does, as far as is found from q (nq,), or ""."""
        if self.feedback is None:
            return ""
        held = replace(self, places=self.places[row])
        return out_of_reach(self.robot, self.names, partial(held.terms_in_flight, t), q)

    def _largest(self, t: float, x: Array, which: Sequence[int], first: int) -> tuple[str, str, float]:
        """When and in which row of the batch, the name of the constraint's row, the largest of x (count, rows)."""
        if not which:
            return f"simulate: at t = {t:.6g} s", "", 0.0
        at, i = np.unravel_index(int(x.argmax()), x.shape)
        where = f" in row {first + int(at)} of the batch" if len(self.places) > 1 else ""
        return f"simulate: at t = {t:.6g} s{where}", self.names[which[int(i)]], float(x[at, i])


def _may_hold(weighted: Array, kept: tuple[int, ...]) -> Array:
    """True (count,) where rows are independent enough for machine code, and all others follow from them."""
    pivots, diagonal = _pivots(weighted[:, kept])
    clear: Array = np.array((pivots > CLEAR_PIVOT * PIVOT * diagonal).all(-1))
    clear[clear] = spanned_by_rows(weighted[clear], kept, PIVOT)
    return clear


def _pivots(weighted: Array) -> tuple[Array, Array]:
    """Pivots of D = Gamma M^-1 Gamma^T, eliminated from the last row to the first, and its diagonal.

    weighted: Gamma F^T with M^-1 = F^T F.
    """
    D = weighted @ np.swapaxes(weighted, -1, -2)
    return factors_of(D)[0], np.diagonal(D, axis1=-2, axis2=-1)


def _feedback(stabilise: Any, names: Sequence[str]) -> tuple[Array, Array] | None:
    """Gains (damping, stiffness), a number for each row."""
    if stabilise is None:
        return None
    gains = feedback(stabilise, len(names))
    if any(g.ndim == 2 for g in gains):
        raise InputError(
            f"stabilise: a motion takes a number, or one for each of the {len(names)} rows, no matrix"
        )
    return gains


# -- why a motion stopped, constraints or none ----------------------------------------------------------------


def stopped(robot: Dynamics, state: EngineState, rows: slice, under: HeldConstraints | None) -> str:
    """Why a motion ended early, when, and at which joint."""
    when = state.t0 + state.k * state.h
    guilty = under.explain(state.code, when, state.q, state.v, rows.start) if under else None
    if guilty:
        return guilty
    if state.code != UNSETTLED and (lost := _lost_pivot(robot, state.q, rows.start)):
        return f"simulate: at t = {when:.6g} s {lost}"
    with np.errstate(all="ignore"):
        size = np.abs(state.k_v).max(axis=0) + np.abs(state.v)
    size = np.where(np.isfinite(size), size, np.inf)
    row, column = np.unravel_index(int(size.argmax()), size.shape)
    name = next(n for n, _, sv in owners(robot.model) if sv.start <= column < sv.stop)
    where = f" of row {rows.start + int(row)}" if len(state.q) > 1 else ""
    if state.code == UNSETTLED:
        return (
            f"simulate: {state.method.name} did not settle at t = {when:.6g} s "
            f"(joint {name!r}{where} is fastest): the step {state.h:g} s is too long; take a shorter one"
        )
    if state.code == TOO_SMALL:
        return (
            f"{state.method.name}: the step shrank to nothing at t = {when:.6g} s; joint {name!r}{where} is the "
            "fastest; the motion is singular there, the efforts jump, or rtol is below what doubles can hold"
        )
    fastest = float(np.abs(state.v).max(initial=0.0))
    if not fastest < MAX_RATE:
        return f"simulate: the motion overflows at t = {when:.6g} s: joint {name!r}{where} moves at {fastest:.3g}"
    return (
        f"simulate: the motion is not finite after t = {when:.6g} s at joint {name!r}{where}: "
        f"the step {state.h:g} s is too long for {state.method.name}, the efforts are too large, "
        "or the mass matrix is singular there"
    )


def _lost_pivot(robot: Dynamics, q: Array, first: int) -> str | None:
    """The sentence on the first row where M is singular."""
    rest = np.zeros(robot.nv)
    for r, row in enumerate(q):
        if not is_tame(row):  # what has left all bounds has done so for another reason
            continue
        try:
            robot.forward_dynamics(row, rest, rest)
        except NumericsError as error:
            where = f"in row {first + r} " if len(q) > 1 else ""
            return where + str(error).removeprefix("forward_dynamics: ")
    return None
