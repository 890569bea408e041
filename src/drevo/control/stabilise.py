"""Control that makes a robot keep f(q, t) = 0 and return to it: Zaremba (3.1)-(3.5), corrected.

    tau = h - M { Gamma^+ (gamma + G1 f' + G0 f) - (1 - Gamma^+ Gamma) w }                                  (3.1)

Gamma^+ is the Moore-Penrose inverse, so any number of rows is allowed. Where Gamma has full row rank the outputs
obey f'' + G1 f' + G0 f = 0 (3.5); redundant rows need scalar gains for it, and the free motion is that of w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..codegen.call.method import graph_among
from ..codegen.graph.program import Program
from ..codegen.store.memo import memoised
from ..compiler.formalisms import common_algorithm
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..constraint.checks import gain, refuse_unstable, square
from ..constraint.closing import out_of_reach
from ..constraint.collection import all_rows, collect, labels
from ..constraint.kinds import Constraint
from ..constraint.numbers import Numbered, pattern_of, settled, with_numbers
from ..constraint.solve import RANK_TOLERANCE, matvec
from ..constraint.terms import constraint_terms, terms_at
from ..errors import DrevoError, InputError, NumericsError
from ..io.given import Array, finite, leading, number, within_reach
from ..io.reprs import result
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.inertia_matrix import Factors, SingularError
from ..mechanics.configuration import random
from ..mechanics.scalar import Matrix, Scalar, Vector, dot
from ..mechanics.tree import Tree, build_tree
from ..model.description import Model
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from .law import Law
from .model import real_matrix

THIN_PIVOT = (
    1e-4  # a pivot this far below its diagonal leaves 12 digits of a Gram matrix: singular values take over
)
WEAK_DIRECTION = 1e-3  # of the largest singular value, well below where pivots are THIN_PIVOT
RANK_STATES, LEAST_ROW_NORM = 32, 1e-300  # at which rows are looked at; no row is shorter
LOST_RANK_CONDITION = 10.0  # the condition from which on a motion that fails does so for want of rank
Wish = Callable[[Any, Any, Any], Any]


@result
class Stabiliser(Law):
    """The law (3.1): efforts from (t, q, v), leading batch dimensions allowed; one compiled kernel.

    Where Gamma has lost rank, or nearly, the kernel's factors have no digits: there singular values take over, and
    directions below WEAK of the largest are followed the less the weaker they are, so that efforts stay bounded.
    drevo.simulate.Control(law) compiles the law into the motion, and c() writes it out: these need full rank all
    the way, or a regularisation r: Gamma^T (Gamma Gamma^T + r^2)^-1 in place of Gamma^+, which has efforts
    everywhere and follows singular values s less, by s^2 / (s^2 + r^2).
    """

    robot: Dynamics
    constraints: tuple[Constraint, ...]
    stiffness: Array
    damping: Array
    wish: ArrayLike | Wish | None = None
    regularisation: float = 0.0

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        if graph_among((q, v)):
            return super().__call__(t, q, v)
        if not callable(self.wish) and type(t) in (float, int):
            with suppress(DrevoError):  # said below
                if (plain := self._plain(t, q, v)) is not None:
                    return plain
        time = number("stabilise: t", t)
        x, u = finite("stabilise: q", q, (..., self.robot.nq)), finite("stabilise: v", v, (..., self.robot.nv))
        w = finite("stabilise: v(t, q, v)", self.wished(time, x, u), (..., self.robot.nv))
        lead = leading("stabilise", q=x, v=u, wish=w)
        x, u, w = (np.broadcast_to(y, (*lead, y.shape[-1])) for y in (x, u, w))
        if self.compiled is None:
            return self.by_singular_values(time, x, u, w)
        try:
            tau, pivots, diagonal = self.compiled(x, u, w, np.array([time]), self._numbers)
        except NumericsError:
            constraint_terms(self.robot, self.constraints, x, u, time)  # has a better sentence
            raise
        thin = ~np.isfinite(tau).all(axis=-1)
        if not self.regularisation:
            thin |= ~np.all(pivots > THIN_PIVOT * diagonal, axis=-1)
        if np.any(thin):
            tau[thin] = self.by_singular_values(time, x[thin], u[thin], w[thin])
        return np.asarray(tau)

    def _plain(self, t: float, q: ArrayLike, v: ArrayLike) -> Array | None:
        """tau straight from the kernel, if there is one and it has digits."""
        if self.compiled is None:
            return None
        tau, pivots, diagonal = self.compiled(q, v, self._held, np.array([t], float), self._numbers)
        good = np.isfinite(tau).all() and (self.regularisation or (pivots > THIN_PIVOT * diagonal).all())
        return np.asarray(tau) if good else None

    @cached_property
    def _held(self) -> Array:
        """The wish, where it is no function."""
        return np.zeros(self.robot.nv) if self.wish is None else np.asarray(self.wish, float)

    def wished(self, t: Any, q: Any, v: Any) -> Any:
        """The accelerations w of (3.1) for the motion that the constraint leaves."""
        return self.wish(t, q, v) if callable(self.wish) else self._held

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        """tau over scalars; the wish, if it is a function, is given arrays of them."""
        w = list(self.wished(t, np.array(q, object), np.array(v, object)))
        if len(w) != self.robot.nv:
            raise InputError(f"stabilise: v(t, q, v) gives {len(w)} accelerations for {self.robot.nv} freedoms")
        terms = LawTerms(self.constraints, self.stiffness.tolist(), self.damping.tolist(), self.regularisation)
        return law(build_tree(self.robot.model), terms, t, q, v, w)[0]

    def by_singular_values(self, t: float, q: Array, v: Array, w: Array) -> Array:
        """tau where Gamma may have any rank."""
        c = constraint_terms(self.robot, self.constraints, q, v, t)
        back = self._inverse(c.jacobian)
        with np.errstate(all="ignore"):
            feedback = c.gamma + matvec(self.damping, c.rate) + matvec(self.stiffness, c.value)
            a = w - matvec(back, feedback + matvec(c.jacobian, w))  # (3.3)
        within_reach("stabilise", a, v=v, w=w)
        return np.asarray(self.robot.inverse_dynamics(q, v, a))

    def _inverse(self, G: Array) -> Array:
        """Moore-Penrose of strong directions; 1 / s is s / limit^2 below a limit, which has no jump there.

        With a regularisation r it is s / (s^2 + r^2)."""
        U, s, Vt = np.linalg.svd(G, full_matrices=False)
        limit = np.maximum(s, WEAK_DIRECTION * s.max(axis=-1, keepdims=True, initial=0.0))
        square = s**2 + self.regularisation**2 if self.regularisation else limit**2
        share = np.divide(s, square, out=np.zeros_like(s), where=square > 0.0)
        return np.asarray((np.swapaxes(Vt, -1, -2) * share[..., None, :]) @ np.swapaxes(U, -1, -2))

    def rank(self, t: float, q: ArrayLike, v: ArrayLike) -> tuple[int, float]:
        """The rank of the law's rows at a state, and their condition as rows of unit length; inf without rank."""
        time = number("stabilise: t", t)
        x, u = finite("stabilise: q", q, (self.robot.nq,)), finite("stabilise: v", v, (self.robot.nv,))
        return _rank(_even_rows(constraint_terms(self.robot, self.constraints, x, u, time).jacobian)[1])

    def reason(self, t: float, q: Array, v: Array) -> str:
        """Why the compiled law fails about a state, if rank is what it wants; a part of a sentence, or ""."""
        try:
            c = constraint_terms(self.robot, self.constraints, q, v, t)
        except NumericsError as error:
            return f"the law has no efforts: {error}"
        U, s = _even_rows(c.jacobian)
        rank, condition = _rank(s)
        weakness, faded = (
            U[:, len(s) - 1],
            self._usual / np.maximum(np.linalg.norm(c.jacobian, axis=-1), LEAST_ROW_NORM),
        )
        if faded.max() > condition:  # a row by itself has no condition
            weakness, condition = faded, float(faded.max())
        if condition < LOST_RANK_CONDITION:
            return ""
        names = labels(self.constraints)
        weak, far = (names[int(np.abs(x).argmax())] for x in (weakness, c.value))
        return (
            f"the rows of the law lose rank (rank {rank} of {len(s)}, condition {condition:.1e}): {weak} loses "
            f"its hold, {far} is off by {np.abs(c.value).max():.3g}; the target is out of reach, or the robot "
            "singular there: begin elsewhere, drop rows that repeat others, give stabilise a regularisation, or "
            "the law as it is, tau=law, which takes singular values"
        )

    def out_of_reach(self, t: float, q: Array) -> str:
        """The part of the target that no configuration meets, as found from q; part of a sentence, or ""."""
        terms = terms_at(self.robot, self.constraints, t)
        return out_of_reach(self.robot, labels(self.constraints), terms, q)

    @cached_property
    def _usual(self) -> Array:
        """The approximate largest norm of each row of Gamma, over random configurations."""
        q = random(self.robot.model, np.random.default_rng(0), (RANK_STATES,))
        rows = constraint_terms(
            self.robot, self.constraints, q, np.zeros((RANK_STATES, self.robot.nv)), 0.0
        ).jacobian
        return np.asarray(np.linalg.norm(rows, axis=-1).max(axis=0))

    @cached_property
    def compiled(self) -> Function | None:
        """(q, v, w, t, numbers) -> tau, and the pivots of Gamma Gamma^T or Gamma^T Gamma with its diagonal, of
        all laws of this form; None where they are structurally singular."""
        model, form = self.robot.model, self._form

        def make() -> Function | None:
            pattern = pattern_of(settled(model, self.constraints))
            try:
                program = law_program(model, pattern, form)
            except SingularError:
                return None
            asked = ("stabilise", pattern, *form[1:])
            unchecked = Spec(check=False)  # singular rows are seen to above
            return requested(model, asked, lambda: program, spec=unchecked)

        return memoised(self.robot, form, make)

    @property
    def _form(self) -> LawForm:
        return self._apart[0]

    @property
    def _numbers(self) -> Array:
        """Numbers of the constraints, gains and regularisation, in the order of `law_program`."""
        return self._apart[1]

    @cached_property
    def _apart(self) -> tuple[LawForm, Array]:
        """The form of the law, and its numbers: those of the constraints, the gains, the regularisation."""
        numbered, gains = Numbered.of(settled(self.robot.model, self.constraints)), (self.stiffness, self.damping)
        sides = [g.diagonal() for g in gains]
        if joined := any(np.count_nonzero(g) > np.count_nonzero(d) for g, d in zip(gains, sides)):
            sides = [g.ravel() for g in gains]
        numbers = np.concatenate([numbered.numbers, *sides, [self.regularisation]])
        return LawForm(numbered.signature, joined, self.regularisation > 0.0), numbers


class LawForm(NamedTuple):
    """The form shared by laws of one code: constraints but for numbers, gains as matrices, a regularisation."""

    signature: tuple[Any, ...]
    matrices: bool
    damped: bool


class LawTerms(NamedTuple):
    """Constraints, gains and regularisation, over scalars."""

    constraints: Sequence[Constraint]
    stiffness: Matrix
    damping: Matrix
    regularisation: Scalar = 0.0

    def wanted(self, rows: ConstraintRows) -> list[Scalar]:
        """gamma + G1 f' + G0 f."""
        gains = zip(rows.bias, self.damping, self.stiffness)
        return [b + dot(g1, rows.rate) + dot(g0, rows.value) for b, g1, g0 in gains]


def law(
    tree: Tree, s: LawTerms, t: Scalar, q: Vector, v: Vector, w: Vector
) -> tuple[list[Scalar], Factors, list[Scalar]]:
    """tau of (3.1), and the factors of Gamma Gamma^T (m <= n) or Gamma^T Gamma with its diagonal."""
    rows = all_rows(s.constraints, Kinematics(tree, q, v), t)
    G, columns = rows.jacobian, [list(c) for c in zip(*rows.jacobian)]
    error = [dot(row, w) + x for row, x in zip(G, s.wanted(rows))]
    wide = len(G) <= tree.nv
    shift, sides = s.regularisation * s.regularisation, G if wide else columns
    product = [
        [dot(x, y) + (shift if i == j else 0.0) for j, y in enumerate(sides[: i + 1])] for i, x in enumerate(sides)
    ]
    factors = Factors([dict(enumerate(row)) for row in product], range(len(product)))
    if wide:  # Gamma^+ = Gamma^T (Gamma Gamma^T)^-1
        y = factors.solve(error)
        back = [dot(c, y) for c in columns]
    else:  # Gamma^+ = (Gamma^T Gamma)^-1 Gamma^T
        back = factors.solve([dot(c, error) for c in columns])
    a = [x - y for x, y in zip(w, back)]  # (3.3)
    return common_algorithm("inverse_dynamics")(tree, q, v, a), factors, [row[-1] for row in product]


def _even_rows(G: Array) -> tuple[Array, Array]:
    """Left singular vectors and singular values of rows of unit length."""
    size = np.linalg.norm(G, axis=-1, keepdims=True)
    U, s, _ = np.linalg.svd(G / np.where(size > 0.0, size, 1.0))
    return U, s


def _rank(s: Array) -> tuple[int, float]:
    """Rank and condition."""
    rank = int(np.count_nonzero(s > RANK_TOLERANCE * s.max(initial=0.0)))
    return rank, float(s[0] / s[-1]) if len(s) and s[-1] > 0.0 else np.inf


def law_program(model: Model, pattern: tuple[Constraint, ...], form: LawForm) -> Program:
    """The laws of a form with inputs q, v, w, t and numbers: constraints, stiffness, damping, regularisation."""
    t, m = Tracer("stabilise", model), sum(c.size for c in pattern)
    (q, v, w), (time,) = t.state("q", "v", "w"), t.input("t", 1)
    count, each = len(Numbered.of(pattern).numbers), m * m if form.matrices else m
    numbers = t.input("numbers", count + 2 * each + 1)
    gains: list[Matrix] = []
    for first in (count, count + each):
        g = numbers[first : first + each]
        rows = range(m)
        gains.append(
            [g[r * m : r * m + m] if form.matrices else [g[r] if r == c else 0.0 for c in rows] for r in rows]
        )
    terms = LawTerms(with_numbers(pattern, numbers), gains[0], gains[1], numbers[-1] if form.damped else 0.0)
    tau, factors, diagonal = law(t.tree, terms, time, q, v, w)
    t.output("tau", tau)
    t.output("pivots", factors.pivots)
    t.output("diagonal", diagonal)
    return t.program(quantity="stabilising control", formalism="newton_euler")


def _gains(stiffness: ArrayLike, damping: ArrayLike, rows: int) -> tuple[Array, Array]:
    """Both as matrices, checked."""
    G0, G1 = (
        square(gain(f"stabilise: {x}", g, rows), rows) for x, g in (("stiffness", stiffness), ("damping", damping))
    )
    refuse_unstable(G1, G0)
    return G0, G1


_gains_known: Callable[..., tuple[Array, Array]] = lru_cache(typed=True)(_gains)


def stabilise(
    robot: Dynamics,
    constraints: Constraint | Sequence[Constraint],
    *,
    damping: ArrayLike,
    stiffness: ArrayLike,
    v: ArrayLike | Wish | None = None,
    regularisation: float = 0.0,
) -> Stabiliser:
    """The control law tau = law(t, q, v) of (3.1): all joints driven, leading batch dimensions allowed.

    damping, stiffness: numbers, one per row, or matrices; f'' + damping f' + stiffness f = 0 must die out.
    v: accelerations wished for, (nv,) or a callable (t, q, v); the constraint keeps what it needs of them.
    regularisation: of Gamma^+, in the unit of its singular values (m or rad); 0: none, see Stabiliser.
    f = q - q_p(t) gives the computed torque. Raises InputError.
    """
    expect_robot(robot, "stabilise")
    given: list[Any] = list(constraints) if isinstance(constraints, (list, tuple)) else [constraints]
    if not given:
        raise InputError("stabilise: there is no constraint; give at least one")
    if robot.model.closed:
        raise InputError(f"stabilise: robot {robot.name!r} has loops; the law (3.1) is for open trees")
    collected = collect(robot.model, None, given)
    for c in collected:
        if c.open_numbers and not c.held_point:
            raise InputError(f"stabilise: {c.label} has no rotation to keep; give rotation= or at=")
    m = sum(c.size for c in collected)
    if v is not None and not callable(v):
        v = real_matrix("stabilise: v", v, (robot.nv,))
    try:
        G0, G1 = _gains_known(stiffness, damping, m)
    except TypeError:  # arrays are not looked up
        G0, G1 = _gains(stiffness, damping, m)
    rule = "a number from 0, which damps nothing"
    return Stabiliser(
        robot,
        collected,
        G0,
        G1,
        v,
        number("stabilise: regularisation", regularisation, rule, lambda x: 0.0 <= x < np.inf),
    )
