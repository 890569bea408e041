"""A trajectory's numbers and the machine code that works on them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...codegen.call.function import Function
from ...codegen.graph.program import Program
from ...codegen.store.build import Spec, machine_code
from ...codegen.store.key import request
from ...codegen.store.memo import memoised
from ...compiler.trace import requested
from ...constraint.prepared import PreparedSet
from ...io.given import Array
from ...mechanics.acting import has_passive
from ...model.dynamics import Dynamics
from ..columns import short_size
from ..linear_kernels import LinearKernels
from .cost import Cost, CostShape, expansion_program, value_program
from .steps import HeldBy, StruckKnot, knot_program, through_impact, turning_program
from .sweep import KNOT_STATE, Areas, KnotRecord, KnotSizes, add_rollout, sweep_code

LANES = 8  # lengths of a step that are tried at once


class ShootingTask(NamedTuple):
    """The task of a shooting problem: phases as (knots, constraints), driven rates, whether inputs are bounded."""

    robot: Dynamics
    phases: tuple[tuple[int, PreparedSet], ...]
    cost: Cost
    terminal: Cost
    shape: CostShape
    boxed: bool

    @property
    def knots(self) -> int:
        return sum(count for count, _ in self.phases)


class StepCode:
    """The machine code of the knots of a phase: `drive` for batches of knots, and the engine."""

    def __init__(self, task: ShootingTask, given: PreparedSet, struck: bool) -> None:
        model, spec = task.robot.model, Spec(check=False, single=False)
        phase = HeldBy(given.found, has_passive(model), struck)
        program = knot_program(model, phase, task.cost, task.shape, task.boxed)
        asked = request(model, "knot", program)
        sizes = sweep_shape(task), record_of(task)
        manifest, self.code = memoised(
            task.robot, asked, lambda: machine_code(asked, lambda: program, spec, True, add_rollout)
        )
        self.sweep = memoised(task.robot, ("sweep", *sizes), lambda: sweep_code(*sizes))
        self.arena = manifest.arena
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self.rollout = kind(self.code.address("rollout"))
        self.backward, self.predict = (kind(self.sweep.address(x)) for x in ("backward", "predict"))


def record_of(task: ShootingTask) -> KnotRecord:
    return KnotRecord(task.robot.nq, task.robot.nv, len(task.shape.driven))


def sweep_shape(task: ShootingTask) -> KnotSizes:
    model = task.robot.model
    turning = tuple((sv.start, sv.stop - sv.start) for j, _, sv in model.slices() if j.turns)
    return KnotSizes(model.nv, len(task.shape.driven), turning, task.boxed)


def _zeros(*shape: int) -> Array:
    """Zeros on a cache line, with room behind them for a whole vector."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 24)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip : skip + size].reshape(shape)


class KnotArrays:
    """The numbers: states q (N + 1, nq), v (N + 1, nv), inputs u (N, m) and all efforts tau (N, nv); records.

    Everything that the machine code reads stands here, and stays where it is.
    """

    def __init__(self, task: ShootingTask, dt: float, q0: Array) -> None:
        robot, N, shape, record = task.robot, task.knots, task.shape, record_of(task)
        nq, n, m = robot.nq, robot.nv, len(shape.driven)
        wide, narrow = shape.padded(2 * n + 1), shape.padded(m)
        self.task, self.parts, self.driven = task, record.parts, np.array(shape.driven, np.intp)
        self.q, self.v, self.u, self.tau = _zeros(N + 1, nq), _zeros(N + 1, n), _zeros(N, m), _zeros(N, n)
        self.records, self.time, self.path = _zeros(N, record.size), _zeros(N, 2), _zeros(N + 1, 2 * n)
        self.xx, self.ux, self.uu = _zeros(N, 2 * n, wide), _zeros(N, m, wide), _zeros(N, m, narrow)
        self.final = _zeros(2 * n, wide)
        self.work = _zeros(Areas(sweep_shape(task), shape.lanes).total)
        self.turn = tuple(_zeros(N, sweep_shape(task).turns) for _ in range(2))
        self.tried = [_zeros(N + 1, LANES, nq), _zeros(N + 1, LANES, n), _zeros(N, LANES, m), _zeros(N, LANES)]
        self.alpha, self.gap = _zeros(LANES, 1), _zeros(N, 2 * n)
        self.alpha[:, 0] = 0.5 ** np.arange(LANES)
        self.q[...] = q0
        self.dt = dt
        self.set_time(0.0)

    def part(self, name: str) -> Array:
        """A part of all records."""
        return self.records[:, self.parts[name]]

    def set_time(self, start: float) -> None:
        """The time of the first knot."""
        self.time[:, 0] = start + self.dt * np.arange(len(self.time))
        self.time[:, 1] = self.dt
        self.part("time")[:, 0], self.part("dt")[:, 0] = self.time[:, 0], self.dt

    def refer(self) -> None:
        """The records' reference is the trajectory of now."""
        self.part("q")[...], self.part("v")[...], self.part("u")[...] = self.q[:-1], self.v[:-1], self.u
        self.tau[:, self.driven] = self.u

    def close(self) -> None:
        """There are no gaps."""
        self.gap[...] = 0.0
        self.part("gap")[...] = 0.0

    def take(self, lane: int) -> None:
        """The trajectory of a lane becomes that of now."""
        for to, source in zip((self.q, self.v, self.u), self.tried):
            to[...] = source[:, lane]
        self.refer()


class PhaseCode:
    """Knots `first` to `last` of a trajectory: their linear models and what the machine code is given."""

    def __init__(self, x: KnotArrays, given: PreparedSet, first: int, last: int, struck: bool) -> None:
        """struck: of one knot, at which constraints begin to hold."""
        self.x, self.given, self.first, self.last = x, given, first, last
        task, part = x.task, slice(first, last)
        self.code, self.impact = StepCode(task, given, struck), StruckKnot(given) if struck else None
        driven = np.isin(np.arange(task.robot.nv), x.driven)
        self.kernels = LinearKernels.of(given, driven, has_passive(task.robot.model), short=True)
        self.state = x.q[part], x.v[part], x.tau[part]
        self.now = np.ascontiguousarray(x.time[part, :1])
        self.model = _zeros(last - first, short_size(task.robot.nv, len(x.driven)))
        self.fields = np.zeros(len(KNOT_STATE.names), np.int64)
        self._bind()

    def _models(self) -> None:
        """Linearises the accelerations at the knots, [A (n, 2 n), B (n, m), ..]."""
        if not self.given.found:
            self.kernels.free(*self.state, self.model)
            return
        self.now[...] = self.x.time[self.first : self.last, :1]
        motion = self.kernels.motion(*self.state, self.now, *self.given.numbers)
        self.kernels.held(*motion, self.state[2], self.now, *self.given.numbers, self.model)

    def derive(self) -> None:
        """Models of the states of now."""
        if self.impact is None:
            self._models()
            return
        (q,), (before,), _ = self.state
        after, by_q, by_v = self.impact.slopes(q, before, self.now[0])
        before, self.state[1][0] = before.copy(), after
        self._models()
        self.state[1][0] = before
        through_impact(self.model[0], len(before), self.x.dt, by_q, by_v)

    def set(self, **fields: Any) -> None:
        for name, value in fields.items():
            at = KNOT_STATE.place(name)
            if name in KNOT_STATE.doubles:
                self.fields.view(np.float64)[at] = value
            else:
                self.fields[at] = value.ctypes.data if isinstance(value, np.ndarray) else value

    def _bind(self) -> None:
        x, n, m = self.x, self.x.task.robot.nv, len(self.x.driven)
        nq, one = x.task.robot.nq, 8
        self.strides = np.array([nq, n, 1, 0, nq, n, m, 1], np.int64) * one
        self.held = [np.zeros(self.code.arena // 8 + 64), np.zeros(8, np.int64)]
        arena, pointers = self.held
        self.set(first=self.first, knots=self.last, lanes=LANES, dt=x.dt, work=x.work, arena=_aligned(arena))
        self.set(pointers=pointers, strides=self.strides, record=x.records, record_step=x.records.shape[1])
        width, before = self.model.shape[1], self.first * self.model.shape[1]
        base = self.model.ctypes.data - one * before
        self.set(A=base, B=base + one * 2 * n * n, A_step=width, B_step=width)
        for name, block in zip("HRU", (x.xx, x.ux, x.uu)):
            self.set(**{name: block, f"{name}_step": block[0].size})
        self.set(T_q=x.turn[0], T_v=x.turn[1], T_step=x.turn[0].shape[1], alpha=x.alpha, path=x.path)
        self.set(**dict(zip(("q", "v", "u", "cost"), x.tried)))

    def backward(self, reg: float, open_: bool, last: bool) -> int:
        """The sweep; -1, or the knot without a step. last: it begins with the terminal cost."""
        self.set(ureg=reg, xreg=reg, open=int(open_), final=self.x.final if last else 0)
        return int(self.code.backward(self.fields.ctypes.data))

    def predict(self) -> None:
        """The whole step through the linear models, from the displacement at the first knot on."""
        self.code.predict(self.fields.ctypes.data)

    def rollout(self) -> None:
        """All lanes, from where they are at the first knot."""
        self.code.rollout(self.fields.ctypes.data)

    def sum_of(self, name: str) -> float:
        return float(self.fields.view(np.float64)[KNOT_STATE.place(name)])

    def shoot(self, q1: Array, v1: Array, u: Array, cost: Array) -> None:
        """One step from every knot, of the inputs as they are."""
        x, part = self.x, slice(self.first, self.last)
        still = np.zeros(1)
        given = [x.q[part], x.v[part], still, x.records[part], q1[part], v1[part], u[part], cost[part]]
        size = x.records.shape[1]
        strides = self.strides.copy()
        strides[2:4] = 0, 8 * size
        count = self.last - self.first
        self.code.code.drive([y.ctypes.data for y in given], strides.tolist(), count, self._arena, count)

    @property
    def _arena(self) -> int:
        return int(self.fields[KNOT_STATE.place("arena")])


def runs_of(task: ShootingTask) -> list[tuple[PreparedSet, int, int, bool]]:
    """The phases as (constraints, first knot, one past the last, struck); one knot alone where contacts begin."""
    out: list[tuple[PreparedSet, int, int, bool]] = []
    at, held = 0, task.phases[0][1].found
    for count, given in task.phases:
        if struck := any(c not in held for c in given.found):
            out.append((given, at, at + 1, True))
        if count > struck:
            out.append((given, at + struck, at + count, False))
        at, held = at + count, given.found
    return out


def _aligned(x: Array) -> int:
    return -(-x.ctypes.data // 64) * 64


class Shooting:
    """A trajectory with everything that is compiled for it; q0: a configuration to begin with."""

    def __init__(self, task: ShootingTask, dt: float, q0: Array) -> None:
        self.task, self.x = task, KnotArrays(task, dt, q0)
        robot, model, shape, x = task.robot, task.robot.model, task.shape, self.x
        self.phases = [PhaseCode(x, *run) for run in runs_of(task)]
        self.expand = _compiled(robot, partial(expansion_program, model, task.cost, shape))
        self.expand_final = _compiled(robot, partial(expansion_program, model, task.terminal, shape))
        self.value = _compiled(robot, partial(value_program, model, task.terminal))
        turning = sweep_shape(task).turning
        self.turning = _compiled(robot, partial(turning_program, model, turning)) if turning else None

    def derive(self) -> None:
        """Linear models and expansions of the cost at the trajectory of now."""
        x = self.x
        for phase in self.phases:
            phase.derive()
        self.expand(x.q[:-1], x.v[:-1], x.tau, x.time, (x.xx, x.ux, x.uu))
        self.expand_final(x.q[-1], x.v[-1], x.final)
        if self.turning is not None:
            self.turning(x.dt * (x.v[1:] + x.gap[:, x.v.shape[1] :]), x.turn)

    def backward(self, reg: float, open_: bool) -> int:
        """The sweep over all knots; -1, or the knot without a step."""
        for phase in reversed(self.phases):
            knot = phase.backward(reg, open_, phase is self.phases[-1])
            if knot >= 0:
                return knot
        return -1

    @property
    def promised(self) -> tuple[float, float]:
        """Sums over the knots of Q_u . k and of k . (Q_u + Q_uu k), k the step of the inputs."""
        return sum(p.sum_of("gain") for p in self.phases), sum(p.sum_of("bend") for p in self.phases)

    def predicted(self) -> float:
        """The slope of the cost along the whole step, gaps and all; the displacements are in `path`."""
        x, n = self.x, self.task.robot.nv
        at = Areas(sweep_shape(self.task), self.task.shape.lanes).at["dx"]
        dx = x.work[at : at + 2 * n]
        dx[...] = 0.0
        for phase in self.phases:
            phase.predict()
        x.path[-1] = dx
        return sum(phase.sum_of("gain") for phase in self.phases) + float(x.final[:, 2 * n] @ dx)

    def rollout(self) -> Array:
        """The cost of every lane."""
        x = self.x
        x.tried[0][0], x.tried[1][0] = x.q[0], x.v[0]
        for phase in self.phases:
            phase.rollout()
        total: Array = x.tried[3].sum(0) + self._final(x.tried[0][-1], x.tried[1][-1])
        return total

    def _final(self, q: Array, v: Array) -> Array:
        costs: Array = self.value(q, v)
        return costs

    def shoot(self) -> float:
        """The cost of the trajectory of now; its gaps go into the records."""
        x, N = self.x, self.task.knots
        x.part("gap")[...] = 0.0
        q1, v1, u, cost = np.empty((N, x.q.shape[1])), np.empty((N, x.v.shape[1])), np.empty_like(x.u), np.empty(N)
        for phase in self.phases:
            phase.shoot(q1, v1, u, cost)
        n = x.v.shape[1]
        x.gap[:, :n], x.gap[:, n:] = self.task.robot.difference(x.q[1:], q1), v1 - x.v[1:]
        x.part("gap")[...] = x.gap
        return float(cost.sum() + self._final(x.q[-1], x.v[-1]))


def _compiled(robot: Dynamics, program: Callable[[], Program]) -> Function:
    """A program as a Function, known by what it computes."""
    compiled = program()
    spec = Spec(check=False)
    return requested(robot, ("shooting", compiled), lambda: compiled, spec=spec)
