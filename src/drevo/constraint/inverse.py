"""Efforts and reactions of a motion under constraints, by compiled code, or on arrays what that refuses.

    idle:   Gamma_i^T N = b_i,   driven: |b_d - Gamma_d^T N| least, then |N|;   tau = b - Gamma^T N

By two orthogonal decompositions: of the idle rates' columns, then of what the driven ones do without moving those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function
from ..codegen.graph.program import Program
from ..codegen.llvm.dense.ranked import RANKED_LANES, Ranked, padded, ranked_room
from ..codegen.llvm.ir import F64, PTR, VOID, IRFunction, Value
from ..codegen.llvm.math import Lanes
from ..codegen.llvm.tail import Room, Tail, TailPlace
from ..codegen.lower.lower import Lowered
from ..codegen.store.memo import memoised
from ..compiler.formalisms import fastest
from ..compiler.trace import requested
from ..errors import DrevoError, NumericsError
from ..io.given import Array, asked, flag
from ..mechanics.configuration import state
from ..mechanics.scalar import dot
from ..model.description import Model
from ..model.dynamics import START_TIME, Dynamics
from .checks import driven_rates, refuse_undriven, refuse_violation
from .collection import acting_in
from .dynamics import Contacts, asked_set, pushed_by
from .kernels import MotionTerms
from .kinds import Constraint
from .prepared import TIME_ZERO, PreparedSet
from .results import ConstrainedEfforts
from .solve import CONSISTENT_SHARE, RANK_TOLERANCE, matvec, pseudoinverse, require_finite
from .terms import constraint_terms


@asked
def constrained_inverse_dynamics(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, actuated: Sequence[str] | None = None,
    t: ArrayLike = START_TIME, f_ext: Mapping[str, ArrayLike] | None = None, passive: bool = False,
) -> ConstrainedEfforts:  # fmt: skip
    """Efforts and reactions of a motion that keeps the constraints; gravity is in (`passive`: joint forces too).

    actuated: names of the driven joints; by default all but a floating base or trunk. Where drives and
    constraints share the load in many ways, the efforts are the least (2-norm), and among equal ones N is.
    Raises NumericsError where the motion violates the constraints or cannot be driven.
    """
    given = asked_set(robot, "constrained_inverse_dynamics", contacts, constraints)
    return efforts_under(given, driven_of(robot, actuated), q, v, a, f_ext, t, passive)


def driven_of(robot: Dynamics, actuated: Sequence[str] | None) -> Array:
    """`driven_rates`, which for the default are found once."""

    def find() -> Array:
        driven = driven_rates(robot.model, actuated)
        driven.setflags(write=False)  # it is that of many results
        return driven

    return memoised(robot, "driven", find) if actuated is None else find()


def efforts_under(
    given: PreparedSet, driven: Array, q: ArrayLike, v: ArrayLike, a: ArrayLike,
    f_ext: Mapping[str, ArrayLike] | None, t: ArrayLike, passive: bool,
) -> ConstrainedEfforts:  # fmt: skip
    """`constrained_inverse_dynamics` under a set that is checked."""
    name, robot = "constrained_inverse_dynamics", given.robot
    f = memoised(given.form, ("efforts", driven.tobytes()), lambda: _fast(efforts_function(given, driven)))
    if f is not None and t is START_TIME and f_ext is None and passive is False:
        with suppress(ValueError, DrevoError):  # said below
            return ConstrainedEfforts(given.names, *f(q, v, a, TIME_ZERO, *given.numbers))
    x, v, a, time = state(robot.model, name, q=q, v=v, a=a, t=t)
    pushed, acts = pushed_by(f_ext), flag(f"{name}: passive", passive)
    if f is not None and not pushed and not (acts and given.form.acts):
        with suppress(NumericsError):  # which is said below
            return ConstrainedEfforts(given.names, *f(x, v, a, time[..., None], *given.numbers))
    c = constraint_terms(robot, given.found, x, v, time)
    with np.errstate(over="ignore", invalid="ignore"):
        reached = matvec(c.jacobian, a)
    refuse_violation(reached, c.gamma, given.names)
    b = robot.inverse_dynamics(x, v, a, **pushed) - acting_in(robot, x, v, acts)
    GT = np.swapaxes(c.jacobian, -1, -2)
    with np.errstate(over="ignore", invalid="ignore"):  # refused below
        N, left = least_reactions(GT, b, driven)
        tau, _ = require_finite(b - matvec(GT, N), N)
    refuse_undriven(robot.model, ~driven, left, b)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=given.names, jacobian=c.jacobian, gamma=c.gamma)


def _fast(f: Function | None) -> Callable[..., Any] | None:
    """The C-level entry of a compiled function, where it has one."""
    return f and (f.fast or f)


@dataclass(frozen=True, eq=False)
class EffortsTail(Tail):
    """The first outputs are tau and N; tau is not finite where the motion violates the constraints or cannot be
    driven.

    Hidden are b, Gamma^T by rates, Gamma a + gamma, gamma. driven: which of the n rates have a drive; rows: m.
    """

    driven: tuple[bool, ...]
    rows: int
    hidden = 4

    @property
    def idle(self) -> list[int]:
        """Indices of the rates that nothing drives."""
        return [i for i, x in enumerate(self.driven) if not x]

    @property
    def moved(self) -> list[int]:
        """Indices of the rates that drives move."""
        return [i for i, x in enumerate(self.driven) if x]

    def room(self, low: Lowered, l: Lanes) -> Room:
        """Working memory of the solve, by name, with the starts of the hidden outputs."""
        sizes = [port.size for port in low.outputs[-self.hidden :]]
        starts = [sum(sizes[:k]) for k in range(self.hidden)]
        m, parts = padded(self.rows), [len(self.idle), len(self.moved)]
        work = sum(ranked_room(k, self.rows) + 2 * padded(k) for k in parts) + 2 * m
        return Room(tuple(starts), sum(sizes), work, frozenset(range(self.hidden)))

    def write(self, f: IRFunction, place: TailPlace) -> None:
        name = f"efforts_{place.l.lanes}"
        ports = ("tau", "N", "b", "G", "gap", "gamma", "status")
        g = f.module.function(name, VOID, {**dict.fromkeys(ports, PTR), "room": PTR})
        _Efforts(self, g, place).write()
        g.ret()
        given = [*(x.base for x in (*place.outputs[:2], *place.hidden)), place.status]
        with f.loop(place.l.lanes, some=True) as s:
            f.call(VOID, name, *(x.at(s.i) for x in given), place.work)


def least_reactions(GT: Array, b: Array, driven: Array) -> tuple[Array, Array]:
    """N on arrays, and what it leaves of b at the idle rates."""
    idle, free = GT[..., ~driven, :], GT[..., driven, :]
    size = np.linalg.norm(GT, axis=(-1, -2))
    back = pseudoinverse(idle, size)
    N = matvec(back, b[..., ~driven])
    left = b[..., ~driven] - matvec(idle, N)
    rest = np.eye(GT.shape[-1]) - back @ idle  # what may still change without moving the idle joints
    N = N + matvec(pseudoinverse(free @ rest, size), b[..., driven] - matvec(free, N))
    return N, left


class _Efforts:
    """void @efforts_<lanes>(tau, N, b, G, gap, gamma, status, room): one sample of a tile."""

    def __init__(self, tail: EffortsTail, f: IRFunction, place: TailPlace) -> None:
        self.tail, self.f, self.step, self.m = tail, f, place.l.lanes, tail.rows
        at, self.parts = f.room, list[tuple[list[int], Ranked, Value, Value]]()
        for rates in (tail.idle, tail.moved):
            k = len(rates)
            ranked = Ranked(f, k, self.m, at) if k else None
            vectors = at.at(ranked_room(k, self.m))
            if ranked is not None:
                self.parts.append((rates, ranked, vectors, vectors.at(padded(k))))
            at = vectors.at(2 * padded(k))
        self.N, self.x = at, at.at(padded(self.m))

    def value(self, base: Value, k: Value | int) -> Value:
        return base.at(self.f.value(k) * self.step).load()

    def put(self, base: Value, k: int, x: Value) -> None:
        base.at(k * self.step).store(x)

    def clear(self, at: Value, count: int) -> None:
        with self.f.loop(count, step=RANKED_LANES, some=True) as s:
            at.at(s.i).store(self.f.zero(f"<{RANKED_LANES} x {F64}>"), 8)

    def left(self, i: int) -> Value:
        """b - Gamma^T N of a rate."""
        f = self.f
        with f.loop(self.m, some=True, total=self.value(f.b, i)) as s:
            s.total = s.total - self.value(f.G, s.i + i * self.m) * self.N.at(s.i).load()
        return s.total

    def largest(self, base: Value, count: int) -> Value:
        f = self.f
        with f.loop(count, some=True, top=f.zero(F64)) as s:
            x = f.call(F64, "llvm.fabs.f64", self.value(base, s.i))
            s.top = f.select(x > s.top, x, s.top)
        return s.top

    def write(self) -> None:
        """Writes the solve for the efforts of one sample."""
        f, m, n = self.f, self.m, len(self.tail.driven)
        with f.loop(n * m, some=True, total=f.zero(F64)) as s:
            x = self.value(f.G, s.i)
            s.total = s.total + x * x
        size = f.call(F64, "llvm.sqrt.f64", s.total)
        self.clear(self.N, padded(m))
        before: list[tuple[Ranked, Value]] = []
        for rates, ranked, b, other in self.parts:
            self.rows_without(rates, ranked, b, before)
            rank = ranked.decompose(RANK_TOLERANCE, size)
            ranked.solve(rank, b, self.x, other)
            with f.loop(padded(m), some=True) as s:
                self.N.at(s.i).store(self.N.at(s.i).load() + self.x.at(s.i).load())
            before.append((ranked, rank))
        self.finish()

    def rows_without(
        self, rates: Sequence[int], ranked: Ranked, b: Value, before: Sequence[tuple[Ranked, Value]]
    ) -> None:
        """W of some rates, without the directions of the part before, and what they need."""
        f, m = self.f, self.m
        self.clear(ranked.W, len(rates) * padded(m))
        self.clear(b, padded(len(rates)))
        for r, i in enumerate(rates):
            row = ranked.W.at(r * padded(m))
            with f.loop(m, some=True) as s:
                row.at(s.i).store(self.value(f.G, s.i + i * m))
            for other, rank in before:
                with f.loop(rank) as s:
                    f.call(F64, "without", row, other.Q.at(s.i * padded(m)), padded(m))
            b.at(r).store(self.left(i))

    def finish(self) -> None:
        """tau and N; NaN where something is left."""
        f, tail, n, m = self.f, self.tail, len(self.tail.driven), self.m
        one, worst = f.const(F64, 1.0), f.zero(F64)
        sizes = [self.largest(f.b, n), self.largest(f.gamma, m)]
        most = [f.select(x > one, x, one) * CONSISTENT_SHARE for x in sizes]
        good = self.largest(f.gap, m) <= most[1]
        for i in range(n):
            x = self.left(i)
            if not tail.driven[i]:
                size = f.call(F64, "llvm.fabs.f64", x)
                worst, x = f.select(size > worst, size, worst), f.zero(F64)
            self.put(f.tau, i, x)
        for r in range(m):
            self.put(f.N, r, self.N.at(r).load())
        lost = f.select(good & (worst <= most[0]), f.zero(F64), f.const(F64, math.nan))
        for place in (f.tau, f.status):
            place.store(place.load() + lost)


def efforts_program(model: Model, pattern: tuple[Constraint, ...], driven: tuple[bool, ...]) -> Program:
    """tau, N, Gamma and gamma, with inputs q, v, a, the time and the numbers of the set."""
    x = MotionTerms("constrained_inverse_dynamics", model, pattern, "a")
    a, rows = x.given["a"], x.rows()
    b = fastest(x.t.tree, ["inverse_dynamics"])["inverse_dynamics"](x.t.tree, x.q, x.v, a)
    n, m = model.nv, len(rows.value)
    x.t.output("efforts", [0.0] * n)
    x.t.output("reactions", [0.0] * m)
    x.t.output("jacobian", rows.jacobian, (m, n))
    x.t.output("gamma", rows.bias)
    x.t.output("b", b)
    x.t.output("G", list(zip(*rows.jacobian)))
    x.t.output("gap", [dot(row, a) + y for row, y in zip(rows.jacobian, rows.bias)])
    x.t.output("held", rows.bias)
    return x.t.program(tail=EffortsTail(driven, m), quantity="constrained_inverse_dynamics")


def efforts_function(s: PreparedSet, driven: Array) -> Function | None:
    """The compiled constrained inverse dynamics, of (q, v, a, t, *numbers); None where there is none."""
    if not s.form.plain or not s.size:
        return None
    pattern, which = s.form.pattern, tuple(driven.tolist())
    make = partial(efforts_program, s.robot.model, pattern, which)
    asked = ("constrained_inverse_dynamics", pattern, which)
    return memoised(s.robot, ("efforts", *asked), lambda: requested(s.robot, asked, make))
