"""A step under the exact law as one compiled function of a tile: the loops that call the stages.

Joint limits have rows only where a step without them leaves a joint beyond its bounds, in some lane: such tiles
are done again with all rows, and lanes that need none of them keep what they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from ...codegen.emit.ir import I8, Value
from ...codegen.emit.llvm_stages import StageCalls, Stages
from ...codegen.graph.program import Program
from ...compiler.tracer import Tracer
from ...errors import InputError
from .kernel import STATE, VALUES, declare
from .moreau import TouchingRobot, step
from .moreau_stages import MoreauStages
from .solve import ATTEMPTS, HALVES, STEPS, TOLERANCE, Attempt

Array = np.ndarray[Any, Any]
HUGE = 1e300
BLOCK = 4  # columns of a product at a time


def moreau_program(robot: TouchingRobot, tolerance: float = TOLERANCE, repeat: int = 1) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), after so many steps: the last forces, the largest residual."""
    sets = [MoreauStages(_without_limits(robot), tolerance)]
    if sets[0].checked:
        sets.append(MoreauStages(robot, tolerance, "all_", "beyond"))
    t, sizes = Tracer("step", robot.model), {k: x for s in sets for k, x in s.sizes.items()}
    t.state(*STATE)
    declare(t, sizes, VALUES)
    parts = {k: x for s in sets for k, x in s.parts.items()}
    blocks = {k: x for k, x in sizes.items() if k not in (*STATE, *VALUES)}
    fill = partial(fill_exactly, robot, tolerance, repeat)
    symbols = tuple(x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in sets[0].symbols)
    stages = Stages(blocks, parts, partial(_write, sets, repeat), fill)
    return replace(t.program(), parameters=symbols, stages=stages)


def _without_limits(robot: TouchingRobot) -> TouchingRobot:
    """The same with limits that are looked at in the end."""
    limited = tuple(x for x in robot.joints if x.lower > -inf or x.upper < inf)
    held = tuple(x._replace(lower=-inf, upper=inf) for x in robot.joints if x.friction)
    return replace(robot, joints=held, checked=limited)


def fill_exactly(
    robot: TouchingRobot, tolerance: float, repeat: int, inputs: Sequence[Array], outputs: Sequence[Array]
) -> None:
    """The same on arrays."""
    if robot.parameters:
        raise InputError("step: under law='coulomb' parameters need the compiler, which this machine has not")
    q, v, tau = inputs[:3]
    worst: Array = np.zeros(len(q))
    for _ in range(repeat):
        found = step(robot, q, v, tau, tolerance)
        q, v, worst = found.q, found.v, np.maximum(worst, found.residual)
    for target, x in zip(outputs, (q, v, found.forces, worst)):
        target[...] = np.reshape(x, target.shape)


def _write(sets: Sequence[MoreauStages], repeat: int, c: StageCalls) -> None:
    solvers = [ImpulseSolver(x) for x in sets]
    for solver in solvers:
        solver.routines(c)
    c.call("begin")
    with c.f.loop(repeat, some=True):
        solvers[0].write(c)
        for more in solvers[1:]:
            with c.f.when(c.some_above(more.s.only)):
                more.write(c)
        c.call("next")


class ImpulseSolver:
    """The calls of one set of stages."""

    def __init__(self, stages: MoreauStages) -> None:
        self.s, self.name = stages, stages.named

    def routines(self, c: StageCalls) -> None:
        for routine in ("newton", "normal", "eliminate"):
            c.routine(self.name(routine), getattr(self, f"_{routine}"))

    def write(self, c: StageCalls) -> None:
        c.call(self.name("free"))
        rows = self.s.rows
        c.fill(0.0, self.name("best"), 0, rows)
        c.fill(HUGE, self.name("least"), 0, 1)
        c.fill(0.0, self.name("way"), 0, self.s.padded)
        c.fill(1.0, self.name("going"), 0, 1)
        for attempt in ATTEMPTS:
            with c.f.when(c.some_above(self.name("going"))):
                self._attempt(c, attempt)
        c.call(self.name("end"))

    def _attempt(self, c: StageCalls, attempt: Attempt) -> None:
        if attempt.cold:
            c.fill(0.0, self.name("lam"), 0, self.s.rows)
        c.fill(1.0 / attempt.rho, self.name("stiff"), 0, 1)
        c.fill(0.5, self.name("search"), 0, max(1, len(self.s.laws)))
        with c.f.loop(attempt.sweeps, some=True) as loop:
            c.call(self.name("sweep"))
            loop.leave(~c.some_above(self.name("going")))
        c.call(self.name("judge"))
        with c.f.when(c.some_above(self.name("going"))):
            c.run(self.name("newton"))
        c.call(self.name("keep"))

    def _newton(self, c: StageCalls) -> None:
        c.fill(1.0, self.name("damping"), 0, 1)
        with c.f.loop(STEPS, some=True) as loop:
            c.call(self.name("linear"))
            c.run(self.name("normal"))
            c.run(self.name("eliminate"))
            with c.f.loop(HALVES + 1, some=True) as halves:
                c.call(self.name("trial"))
                halves.leave(~c.some_above(self.name("open")))
            c.call(self.name("advance"))
            c.call(self.name("judge"))
            loop.leave(~c.some_above(self.name("going")))

    def _normal(self, c: StageCalls) -> None:
        """A = J' J and what is added to its diagonal (lower triangle), way = -J' F."""
        f, l, n, wide = c.f, c.l, self.s.rows, self.s.padded
        J, F, A, way, more = (c.at(self.name(x)) for x in ("J", "F", "A", "way", "changes"))
        fma = f"llvm.fmuladd.{l.suffix}"
        sums = {f"sum{k}": f.zero(l.type) for k in range(BLOCK)}
        with f.loop(n, some=True) as i:
            with f.loop(i.i + 1, step=BLOCK, some=True) as j:
                with f.loop(n, some=True, carry=sums) as k:
                    x = load_at(c, J, i.i * n + k.i)
                    for m, name in enumerate(sums):
                        y = load_at(c, J, (j.i + m) * n + k.i)
                        setattr(k, name, f.call(l.type, fma, x, y, getattr(k, name)))
                for m, name in enumerate(sums):
                    store_at(c, getattr(k, name), A, i.i * wide + (j.i + m))
            with f.loop(n, some=True, carry={"left": f.zero(l.type)}) as k:
                k.left = k.left - load_at(c, J, i.i * n + k.i) * load_at(c, F, k.i)
            store_at(c, k.left, way, i.i)
            diagonal = i.i * wide + i.i
            store_at(c, load_at(c, A, diagonal) + load_at(c, more, i.i), A, diagonal)

    def _eliminate(self, c: StageCalls) -> None:
        """way = A^-1 way; A becomes L D by columns."""
        f, n, wide = c.f, self.s.rows, self.s.padded
        A, way, inverse = (c.at(self.name(x)) for x in ("A", "way", "inverse"))
        with f.loop(n, some=True) as k:
            over = f.const(c.l.type, 1.0) / load_at(c, A, k.i * wide + k.i)
            store_at(c, over, inverse, k.i)
            with f.loop(n, start=k.i + 1) as i:
                factor = load_at(c, A, i.i * wide + k.i) * over
                with f.loop(i.i + 1, start=k.i + 1, some=True) as j:
                    at = i.i * wide + j.i
                    store_at(c, load_at(c, A, at) - factor * load_at(c, A, j.i * wide + k.i), A, at)
                store_at(c, load_at(c, way, i.i) - factor * load_at(c, way, k.i), way, i.i)
        with f.loop(-1, start=n - 1, step=-1, some=True) as k:
            with f.loop(n, start=k.i + 1, carry={"left": load_at(c, way, k.i)}) as i:
                i.left = i.left - load_at(c, A, i.i * wide + k.i) * load_at(c, way, i.i)
            store_at(c, i.left * load_at(c, inverse, k.i), way, k.i)


def load_at(c: StageCalls, base: Value, k: Value | int) -> Value:
    return base.at(k * c.l.bytes, I8).load(c.l.type, c.l.bytes)


def store_at(c: StageCalls, x: Value, base: Value, k: Value | int) -> None:
    base.at(k * c.l.bytes, I8).store(x, c.l.bytes)
