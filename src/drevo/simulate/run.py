"""simulate: from a state and efforts to a Table."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.dynamics import Contacts
from ..constraint.kinds import Constraint
from ..errors import InputError, NumericsError
from ..io.given import Array, callable_given, flag, positive, seconds, short_text, whole
from ..model.dynamics import Dynamics
from .arguments import Efforts, RightHandSide, by_step, right_hand_side, start
from .constraints import ADAPTIVE_STEPS, FINEST, MAX_FIXED_STEPS, HeldConstraints, bounded, is_tame, stopped
from .control import Control, beyond_law
from .integrators import Integrator, integrator
from .motion import CompiledMotion
from .state import Adaptive, EngineState, TimedState
from .table import Occurrence, Table

BLOCK_NUMBERS = 2048  # numbers of one array of a block of a batch: all arrays of a block stay in the first cache
CHUNKS = 100  # of a long motion: between them interrupts and the progress bar have their turn
RECENT = 20  # records that may tell why a motion ended
LEAST_STEP = 1e-290  # s: a step below it divides by zero
WHOLE_STEPS_SLACK = 1e-9  # of a step: durations within it of a whole number of steps are whole


@dataclass(frozen=True)
class Event:
    """An event: function(t, q, v) passes through 0; direction: +1 rising only, -1 falling only, 0 both."""

    function: Callable[[float, Array, Array], float]
    terminal: bool = False
    direction: int = 0
    name: str = "event"

    def __post_init__(self) -> None:
        title = f"event {short_text('event: name', self.name)!r}"
        callable_given(f"{title}: function", self.function, "(t, q, v)")
        whole(f"{title}: direction", self.direction, -1, 1, ": rising, both or falling")
        flag(f"{title}: terminal", self.terminal)


def simulate(
    robot: Dynamics,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    tau: ArrayLike | Efforts | Control | None = None,
    *,
    duration: float,
    dt: float | None = None,
    method: str | Integrator = "rk4",
    every: int = 1,
    rtol: float = 1e-9,
    atol: float | None = None,
    max_steps: int | None = None,
    events: Sequence[Event] = (),
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    passive: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Table:
    """The motion from (q0, v0) for `duration` seconds; leading dimensions are a batch.

    tau: nothing; constant efforts (..., nv); efforts held over each step (steps, ..., nv); a Control, compiled
    into the motion; or any function (t, q, v) of Python's, called at every stage and some hundred times slower.
    dt: step of a fixed-step method (1 ms), with a record every `every` steps; of an adaptive one (dop853) the
    distance of the records, None for its own steps. rtol, atol (None: rtol): of an adaptive method.
    max_steps: how many steps a motion may take; None: 10,000,000 of a fixed step, 100,000 that a method chooses.
    contacts, constraints: as constrained_dynamics takes them, and the robot's own loops: compiled into the motion,
    the state put back on them after every step. Contacts hold their point where it is at the start.
    stabilise: (damping, stiffness), each a number or one per row: f'' + damping f' + stiffness f = 0 (Baumgarte)
    in place of that.
    events: of a single motion, looked for between records and found by shorter steps of the same method.
    passive: with the damping, dry friction and springs of the joints.
    progress: told the part that is done. Raises InputError, NumericsError (time and joint).
    """
    chosen = integrator(method)
    interval = None if dt is None and chosen.adaptive else seconds("dt", 1e-3 if dt is None else dt)
    end = seconds("duration", duration)
    every = whole("every", every, use=": a record is kept every 1, 2, ... steps")
    usual = ADAPTIVE_STEPS if chosen.adaptive else MAX_FIXED_STEPS
    most = whole("max_steps", usual if max_steps is None else max_steps, use=": the most steps of a motion")
    if interval is not None:
        bounded(end, interval, most, "records" if chosen.adaptive else "steps")
    if progress is not None:
        callable_given("progress", progress, "that is told the part that is done")
    finest = positive("rtol", rtol, least=FINEST)
    tolerances = finest, finest if atol is None else positive("atol", atol)
    # of an adaptive method without a distance of records nobody knows yet how many there will be
    records = 1.0 if interval is None else end / interval / (1 if chosen.adaptive else every) + 1.0
    lead, q, v = start(robot, q0, v0, records)
    run = _Run(robot, chosen, lead, q, v, end, interval, every, most, _events(events, lead), progress)
    run.prepare(HeldConstraints.of(robot, contacts, constraints, stabilise, q), tau, flag("passive", passive))
    return run.adaptive(*tolerances) if chosen.adaptive else run.fixed()


def _events(events: Sequence[Event], lead: tuple[int, ...]) -> tuple[Event, ...]:
    listed = tuple(events) if isinstance(events, (list, tuple)) else (events,)
    for x in listed:
        if not isinstance(x, Event):
            raise InputError(
                f"events holds {type(x).__name__}; it is a list of Event, as in "
                "events=[drevo.simulate.Event(function, terminal=True)]"
            )
    if listed and lead:
        raise InputError("events are of one motion; of a batch simulate each row by itself")
    return listed


# -- running ------------------------------------------------------------------------------------------------


@dataclass
class _Run:
    """One simulation on its way."""

    robot: Dynamics
    method: Integrator
    lead: tuple[int, ...]
    q: Array
    v: Array
    end: float
    step: float | None
    every: int
    most: int
    events: tuple[Event, ...]
    progress: Callable[[float], None] | None
    rhs: RightHandSide = field(init=False)
    under: HeldConstraints | None = None
    passive: bool = True
    tau: Any = None
    parts: list[tuple[Array, HeldConstraints]] = field(default_factory=list)  # rows that hold the same constraints
    found: list[Occurrence] = field(default_factory=list)

    def prepare(self, under: HeldConstraints | None, tau: Any, passive: bool) -> None:
        """The right-hand side, and the state put on its constraints."""
        self.under, self.passive, self.tau = under, passive, tau
        if under is not None:
            self.q, self.v = under.start(self.q, self.v)
            together = self.method.adaptive or (callable(tau) and not isinstance(tau, Control))
            self.parts = under.parted(self.q, self.v, together)
            if len(self.parts) == 1:
                ((_, self.under),) = self.parts
            under = self.parts[0][1]  # of several it tells the efforts alone
        self.rhs = right_hand_side(self.robot, tau, self.lead, under, passive)

    def state(self, rows: slice, step: float) -> EngineState:
        """The state of some rows at the start."""
        state = EngineState(self.robot.model, self.rhs.rates, self.method, len(self.q[rows]), step)
        state.q[...], state.v[...] = self.q[rows], self.v[rows]
        if self.held is not None:
            state.tau = np.ascontiguousarray(self.held[:, rows])
        if self.under is not None and self.under.given is not None and isinstance(self.rhs.rates, CompiledMotion):
            state.given = self.under.given[rows]
        elif self.under is not None:
            state.after = self.under.project
        return state

    @property
    def held(self) -> Array | None:
        return self.rhs.held

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Those of any moment, (count, nv); held over steps, those of the step that begins there."""
        if self.held is None or self.step is None:
            return self.rhs.law(t, q, v)
        return np.asarray(self.held[min(math.floor(t / self.step + WHOLE_STEPS_SLACK), len(self.held) - 1)])

    def fixed(self) -> Table:
        """Equal steps, and a shorter last one if the duration asks for it."""
        assert self.step is not None
        whole = math.floor(self.end / self.step + WHOLE_STEPS_SLACK)
        rest = self.end - whole * self.step
        rest = rest if rest > WHOLE_STEPS_SLACK * self.step else 0.0
        steps = whole + (rest > 0.0)
        if self.held is not None and 1 < len(self.held) < steps:
            raise InputError(f"tau has {len(self.held)} rows; {steps} steps need as many")
        parts = [
            (whole // self.every, self.every, self.step),
            (min(1, whole % self.every), whole % self.every, self.step),
        ]
        parts += [(1, 1, rest)] if rest else []
        t = np.array([0.0, *self._times(parts)])
        if len(self.parts) > 1:
            return self._by_parts(t, steps)
        q, v = np.empty((len(t), *self.q.shape)), np.empty((len(t), *self.v.shape))
        q[0], v[0] = self.q, self.v
        kept = len(t)
        for rows, part in self._blocks():
            kept = self._integrate(self.state(rows, self.step), parts, t, q[:, rows], v[:, rows], part, rows)
        return self._table(t[:kept], q[:kept], v[:kept], steps)

    def _by_parts(self, t: Array, steps: int) -> Table:
        """Rows of the batch that hold the same constraints are moved together: none changes another's bits."""
        q, v, tables = np.empty((len(t), *self.q.shape)), np.empty((len(t), *self.v.shape)), list[Table]()
        for rows, under in self.parts:
            try:
                table = self._part(rows, under).fixed()
            except NumericsError:
                for k, row in enumerate(rows):  # that of the first by itself
                    try:
                        self._part(rows[k : k + 1], under.part(k)).fixed()
                    except NumericsError as error:
                        raise NumericsError(f"row {row} of the batch: {error}") from None
                raise
            q[:, rows], v[:, rows] = table.q, table.v
            tables.append(table)

        def dense(moment: float) -> tuple[Array, Array]:
            out = np.empty_like(self.q), np.empty_like(self.v)
            for (rows, _), table in zip(self.parts, tables):
                out[0][rows], out[1][rows] = table.at(moment)
            return out

        return replace(self._table(t, q, v, steps), dense=dense)

    def _part(self, rows: Array, under: HeldConstraints) -> _Run:
        """A run of some rows of the batch, under their rule."""
        tau = self.tau
        if not (tau is None or isinstance(tau, Control)):
            given, stepped = by_step(self.robot, tau, self.lead)
            tau = given.reshape(len(given), len(self.q), -1)[:, rows]
            tau = tau if stepped else tau[0]
        part = replace(self, lead=(len(rows),), q=self.q[rows], v=self.v[rows], tau=tau, under=under, parts=[])
        part.rhs = right_hand_side(self.robot, tau, part.lead, under, self.passive)
        return part

    @staticmethod
    def _times(parts: Sequence[tuple[int, int, float]]) -> Iterator[float]:
        start, k = 0.0, 0
        for records, every, h in parts:
            if records and h != parts[0][2]:
                start, k = start + k * parts[0][2], 0
            for _ in range(records):
                k += every
                yield start + k * h

    def _blocks(self) -> Iterator[tuple[slice, tuple[float, float]]]:
        """Rows of a batch that are integrated together, and the part of the work before and after them."""
        count = len(self.q)
        size = max(1, count)
        if isinstance(self.rhs.rates, CompiledMotion):
            size = max(8, BLOCK_NUMBERS // max(1, self.robot.nq) // 8 * 8)
        for k in range(0, count, size):
            stop = min(count, k + size)
            yield slice(k, stop), (k / count, stop / count)

    def _integrate(
        self, state: EngineState, parts: Sequence[tuple[int, int, float]], t: Array, q: Array, v: Array,
        share: tuple[float, float], rows: slice
    ) -> int:  # fmt: skip
        """Fills records 1.. of some rows; how many records there are in the end."""
        done, total = 1, len(t)
        for records, every, h in parts:
            if records and h != state.h:
                state.t0, state.h = state.t0 + state.k * state.h, h
                if state.tau is not None and len(state.tau) > 1:
                    state.tau = state.tau[state.k :]
                state.k = 0
            stop = done + records
            while done < stop:
                n = min(stop - done, max(1, total // CHUNKS))
                done_steps = state.integrate(q[done : done + n], v[done : done + n], every)
                if done_steps < n:
                    ends = range(done + done_steps - 1, max(done + done_steps - 1 - RECENT, -1), -1)
                    raise NumericsError(self.explain(state, rows, [(t[k], q[k], v[k]) for k in ends]))
                for k in range(done, done + n) if self.events else ():
                    if self._look((t[k - 1], q[k - 1], v[k - 1]), (t[k], q[k], v[k]), every):
                        return self._cut(t, q, v, k)
                done += n
                if self.progress:
                    self.progress(share[0] + (share[1] - share[0]) * done / total)
        return total

    def adaptive(self, rtol: float, atol: float) -> Table:
        """Steps as long as the tolerance lets them be; records between them by shorter steps of the method."""
        if self.held is not None and len(self.held) > 1:
            raise InputError(
                f"{self.method.name} chooses its steps: give tau as a function of time, or a constant"
            )
        if not len(self.q):  # nothing moves, so nothing chooses a step
            return self._table(np.array([0.0, self.end]), np.stack([self.q] * 2), np.stack([self.v] * 2), 0)
        state = self.state(slice(0, len(self.q)), 0.0)
        nodes = [(0.0, self.q, self.v)]
        stopped = partial(self.explain, state, slice(0, len(self.q)), nodes)
        control = Adaptive(state, self.end, rtol, atol, stopped)
        out = [nodes[0]]
        ahead = 1
        for node in control.nodes():
            t = node[0]
            if control.steps + control.rejected > self.most:
                raise NumericsError(
                    self.lost([node])
                    or f"simulate: {self.method.name} has used up max_steps={self.most} at t = {t:.6g} s of "
                    f"{self.end:g} s: loosen rtol={rtol:g} or atol={atol:g}, or give more of max_steps"
                )
            ended = bool(self.events) and self._look(nodes[-1], node, 1)
            if ended:
                last = self.found[-1]
                node = (last.t, last.q[None], last.v[None])
            while self.step is not None and ahead * self.step < node[0] - WHOLE_STEPS_SLACK * self.step:
                out.append(self._between(nodes[-1], ahead * self.step, 1))
                ahead += 1
            if (
                self.step is None
                or ended
                or t >= self.end
                or abs(ahead * self.step - t) <= WHOLE_STEPS_SLACK * self.step
            ):
                out.append(node)
                ahead += 1
            nodes.append(node)
            if self.progress:
                self.progress(t / self.end)
            if ended:
                break
        t_out, q_out, v_out = (np.array([x[k] for x in out]) for k in range(3))
        return self._table(t_out, q_out, v_out, control.steps, control.rejected, nodes)

    def _table(
        self,
        t: Array,
        q: Array,
        v: Array,
        steps: int,
        rejected: int = 0,
        nodes: Sequence[TimedState] | None = None,
    ) -> Table:
        """The records as a Table, between which a shorter step gives any time."""
        states = nodes or list(zip(t.tolist(), q, v))
        times = [x[0] for x in states]

        def dense(moment: float) -> tuple[Array, Array]:
            node = states[bisect_right(times, moment) - 1]
            after = moment - node[0]
            if after <= LEAST_STEP:
                return node[1], node[2]
            steps = 1 if nodes or self.step is None else max(1, math.ceil(after / self.step - WHOLE_STEPS_SLACK))
            return self._between(node, moment, steps)[1:]

        shape = (len(t), *self.lead)
        return Table(
            self.robot, t, q.reshape(*shape, self.robot.nq), v.reshape(*shape, self.robot.nv), self.method.name,
            steps, rejected, tuple(self.found), self.under, self.passive, self.efforts, dense=dense,
        )  # fmt: skip

    # -- between records ------------------------------------------------------------------------------------

    def _between(self, node: TimedState, t: float, steps: int) -> TimedState:
        """The state at t, a little after a node, by `steps` shorter steps."""
        state = self.state(slice(0, len(self.q)), (t - node[0]) / steps)
        state.t0 = node[0]
        state.q[...], state.v[...] = node[1], node[2]
        if state.tau is not None and len(state.tau) > 1 and self.step is not None:
            state.tau = state.tau[round(node[0] / self.step) :]
        q, v = np.empty((1, *state.q.shape)), np.empty((1, *state.v.shape))
        if state.integrate(q, v, steps) < 1:
            raise NumericsError(self.explain(state, slice(0, 1), [node]))
        return t, q[0], v[0]

    def explain(self, state: EngineState, rows: slice, before: Sequence[TimedState]) -> str:
        """Why a motion has ended; before: states that it passed."""
        now = state.t0 + state.k * state.h, state.q, state.v
        return (
            self.lost([now, *before])
            or self.out_of_reach(now[0], rows.start)
            or stopped(self.robot, state, rows, self.under)
        )

    def out_of_reach(self, t: float, row: int) -> str:
        """The target that feedback or a law cannot reach at that time, as far as is found from the start."""
        off = self.under.out_of_reach(t, self.q[row], row) if self.under else ""
        off = off or beyond_law(self.tau, t, self.q[row])
        return f"simulate: at t = {t:.6g} s {off}" if off else ""

    def lost(self, nodes: Sequence[TimedState]) -> str:
        """The fault that the control law finds in states near the end; those of a motion run wild say nothing."""
        control = self.rhs.control
        for t, q, v in nodes if control else ():
            for row in range(len(q)):
                tame = is_tame(q[row]) and is_tame(v[row])
                reason = control.reason(t, q[row], v[row]) if control and tame else ""
                if reason:
                    where = f" in row {row} of the batch" if len(q) > 1 else ""
                    return f"simulate: at t = {t:.6g} s{where} {reason}"
        return ""

    def _look(self, a: TimedState, b: TimedState, steps: int) -> bool:
        """Adds the events between two nodes in order of time; true if one of them ends the motion."""
        seen: list[tuple[float, Occurrence, bool]] = []
        for event in self.events:
            low, high = _value(event, a), _value(event, b)
            rising = high > low
            if low == 0.0 or low * high > 0.0 or event.direction * (1 if rising else -1) < 0:
                continue
            t, q, v = self._root(event, a, b, low, high, steps)
            seen.append((t, Occurrence(event.name, t, q[0].copy(), v[0].copy()), event.terminal))
        for _, occurrence, terminal in sorted(seen, key=lambda x: x[0]):
            self.found.append(occurrence)
            if terminal:
                return True
        return False

    def _root(
        self, event: Event, a: TimedState, b: TimedState, low: float, high: float,
        steps: int
    ) -> TimedState:  # fmt: skip
        """Illinois: a secant that keeps the root between its ends."""
        start, left, right, best = a, a[0], b[0], b
        for _ in range(100):
            if high == 0.0 or right - left <= 4.0 * np.spacing(right):
                break
            t = right - high * (right - left) / (high - low)
            t = min(max(t, left + np.spacing(left)), right - np.spacing(right))
            middle = self._between(start, t, steps)
            value = _value(event, middle)
            if value * high > 0.0 or value == 0.0:
                right, high, best, low = t, value, middle, 0.5 * low
            else:
                left, low, high = t, value, 0.5 * high
        return best

    def _cut(self, t: Array, q: Array, v: Array, k: int) -> int:
        """Record k becomes the last event; the number of records that are left."""
        last = self.found[-1]
        t[k], q[k, 0], v[k, 0] = last.t, last.q, last.v
        return k + 1


def _value(event: Event, node: TimedState) -> float:
    given = np.asarray(event.function(node[0], node[1][0], node[2][0]))
    if given.size != 1 or given.dtype.kind not in "iufb":
        raise InputError(f"event {event.name!r}: its function(t, q, v) must give one number")
    value = float(given.reshape(()))
    if not math.isfinite(value):
        raise NumericsError(f"simulate: event {event.name!r} gave {value} at t = {node[0]:.6g} s")
    return value
