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

from ....codegen.graph.program import Input, Program
from ....codegen.llvm.dense.tile import DenseCode, MatrixTile
from ....codegen.llvm.ir import I8, Value
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.tracer import Tracer, nodes_of, unknowns
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import DUAL_NUMBERS, PairSearch
from ...place_derivatives import derivatives_block
from ...signals import SensorStages
from ..soft.integrate import in_body, in_world
from ..soft.kernel import STEP_RESULTS
from ..soft.program import step_ports
from ..soft.stages import carried_rates
from .problem import TouchingRobot
from .solve import MAX_HALVINGS, MAX_PARTING_SWEEPS, RESIDUAL_TOLERANCE, SOLVER_ATTEMPTS, Attempt
from .stages import NO_RESIDUAL, MoreauStages

Array = np.ndarray[Any, Any]
NO_FRICTION = (
    "the ground's friction(x, y) is below zero or not finite at a place, or the mass matrix is singular there"
)
COLUMNS_AT_ONCE = 4  # columns of a product, and of factors, at a time


def moreau_program(robot: TouchingRobot, tolerance: float = RESIDUAL_TOLERANCE, repeat: int = 1) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), after so many steps: the last forces, the largest residual."""
    sets = [MoreauStages(_without_limits(robot), tolerance)]
    if sets[0].checked:
        sets.append(MoreauStages(robot, tolerance, "all_", "beyond"))
    sensing = _sensing(sets[0])
    t, sizes = Tracer("step", robot.model), {k: x for s in sets for k, x in s.sizes.items()}
    ports = step_ports(t, sizes, STEP_RESULTS, robot.controls)
    parts = {k: x for s in sets for k, x in s.parts.items()}
    blocks = {k: x for k, x in sizes.items() if k not in ports}
    symbols = tuple(x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in sets[0].symbols)
    stages = Stages(blocks, parts, partial(_write, sets, repeat, sensing))
    about: dict[str, Any] = {"undefined": NO_FRICTION} if robot.floor.friction else {}
    return replace(t.program(**about), parameters=symbols, stages=stages)


def _without_limits(robot: TouchingRobot) -> TouchingRobot:
    """The robot with joint limits that are looked at in the end, and have no rows."""
    limited = tuple(x for x in robot.joints if x.lower > -inf or x.upper < inf)
    held = tuple(x._replace(lower=-inf, upper=inf) for x in robot.joints if x.friction)
    return replace(robot, joints=held, checked=limited)


def _sensing(x: MoreauStages) -> SensorStages | None:
    """The stages that read sensors, of the accelerations over the step."""
    r, t, tree = x.robot, x.t, x.tree
    if not r.sensors:
        return None
    q, v = ([t.graph.expr(2 * n) for n in port.nodes] for port in t.inputs if port.name in ("Q", "V"))
    after = {"q1": unknowns(t.graph, "q1", tree.nq), "v1": unknowns(t.graph, "v1", tree.nv)}
    gained = zip(in_world(tree, after["q1"], after["v1"]), in_world(tree, q, v))
    along = in_body(tree, q, [(a - b) * (1.0 / r.stepping.h) for a, b in gained])
    a = [a - b for a, b in zip(along, carried_rates(tree, v))]
    ends = [(place.geoms[0].link, place.geoms[1].link) for place in r.places]
    more = [Input(name, (len(y),), nodes_of(y)) for name, y in after.items()]
    return SensorStages(t, x.sized, r.sensors, x.sizes, x.parts, ends, (q, v, a), more, x.efforts, x.symbols)


def _write(sets: Sequence[MoreauStages], repeat: int, sensing: SensorStages | None, c: StageCalls) -> None:
    solvers = [ImpulseSolver(x) for x in sets]
    for solver in solvers:
        solver.routines(c)
    c.call("begin")
    with c.f.loop(repeat, some=True):
        solvers[0].write(c)
        for more in solvers[1:]:
            with c.f.when(c.some_above(more.s.only)):
                more.write(c)
        if sensing:
            sensing.write(c)
        c.call("next")


class ImpulseSolver:
    """The calls of one set of stages, on blocks whose names begin with a prefix."""

    def __init__(self, stages: MoreauStages, prefix: str = "") -> None:
        self.s, self.prefix = stages, prefix

    def name(self, block: str) -> str:
        return self.prefix + self.s.named(block)

    def routines(self, c: StageCalls) -> None:
        written = {
            "normal": self.normal, "side": self.side, "factorise": self.factorise, "substitute": self.substitute,
            "interior": self._interior, "newton": self._newton, "attempts": self._attempts,
        }  # fmt: skip
        for name, write in written.items():
            c.routine(self.name(name), write)

    def write(self, c: StageCalls) -> None:
        if not self.s.prefix:
            self._search(c)
        c.call(self.name("free"))
        rows = self.s.rows
        c.fill(0.0, self.name("best"), 0, rows)
        c.fill(NO_RESIDUAL if rows else 0.0, self.name("least"), 0, 1)
        c.fill(0.0, self.name("way"), 0, self.s.padded)
        c.fill(1.0 if rows else 0.0, self.name("going"), 0, 1)
        c.fill(0.0, self.name("eased"), 0, 1)
        c.run(self.name("attempts"))
        c.call(self.name("ease"))
        with c.f.when(c.some_above(self.name("going"))):
            c.run(self.name("attempts"))
            c.call(self.name("begin_parting"))
            with c.f.loop(MAX_PARTING_SWEEPS, some=True) as loop:
                loop.leave(~c.some_above(self.name("parting")))
                c.call(self.name("part"))
            c.call(self.name("tell"))
        c.call(self.name("end"))

    def derivatives(self, c: StageCalls) -> None:
        """Finds how the places move."""
        pairs = self.s.robot.searched
        search = PairSearch([(x.solids[0].geom, x.solids[1].geom) for x in pairs], [x.reach for x in pairs])
        for k, (pair, first) in enumerate(zip(pairs, self.s.found)):
            a, b = (c.at("placed", self.s.geom_numbers * (2 * k + end)) for end in (0, 1))
            if pair.solids[0].geom.kind != "plane":
                search.derivatives(
                    c,
                    k,
                    a,
                    b,
                    c.at("near"),
                    c.at(derivatives_block("places"), PLACE_NUMBERS * DUAL_NUMBERS * first),
                )

    def _search(self, c: StageCalls) -> None:
        """Finds the places of contact that are searched for."""
        pairs = self.s.robot.searched
        if not pairs:
            return
        search = PairSearch([(x.solids[0].geom, x.solids[1].geom) for x in pairs], [x.reach for x in pairs])
        c.call("placing")
        c.fill(-1.0, "near", 0, 1)
        for k, first in enumerate(self.s.found[:-1]):
            a, b = (c.at("placed", self.s.geom_numbers * (2 * k + end)) for end in (0, 1))
            search.places(
                c, k, a, b, c.at("near"), c.at("places", PLACE_NUMBERS * first), PLACE_NUMBERS * c.l.bytes
            )

    def _attempts(self, c: StageCalls) -> None:
        for attempt in SOLVER_ATTEMPTS:
            with c.f.when(c.some_above(self.name("going"))):
                self._attempt(c, attempt)

    def _attempt(self, c: StageCalls, attempt: Attempt) -> None:
        going = self.name("going")
        if attempt.sweeps:
            c.fill(0.0, self.name("lam"), 0, self.s.rows)
            c.fill(0.5, self.name("search"), 0, max(1, len(self.s.laws)))
            with c.f.loop(attempt.sweeps, some=True) as loop:
                c.call(self.name("sweep"))
                loop.leave(~c.some_above(going))
        else:
            if attempt.cold:
                c.call(self.name("path_begin"))
            c.at(self.name("moving")).store(c.load(going), c.l.bytes)
            with c.f.loop(attempt.interior, some=True) as loop:
                c.call(self.name("barrier"))
                loop.leave(~c.some_above(self.name("moving")))
                c.run(self.name("interior"))
            c.call(self.name("path_end"))
        c.fill(1.0 / attempt.rho, self.name("stiff"), 0, 1)
        c.fill(1.0, self.name("damping"), 0, 1)
        c.call(self.name("judge"))
        with c.f.when(c.some_above(going)):
            if self.s.few:
                c.call(self.name("carry"))
            with c.f.loop(attempt.steps, some=True) as loop:
                c.run(self.name("newton"))
                loop.leave(~c.some_above(going))
        c.call(self.name("keep"))

    def _interior(self, c: StageCalls) -> None:
        """A step along the path."""
        c.run(self.name("factorise"))
        for stage in ("predict", "follow"):
            c.run(self.name("substitute"))
            c.call(self.name(stage))

    def _newton(self, c: StageCalls) -> None:
        """A step, in few unknowns or by least squares, of which goes as much as is good."""
        if self.s.few:
            c.call(self.name("carried"))
        else:
            c.call(self.name("linear"))
            for routine in ("normal", "side", "factorise", "substitute"):
                c.run(self.name(routine))
            c.call(self.name("moves"))
        with c.f.loop(MAX_HALVINGS + 1, some=True) as halves:
            c.call(self.name("trial"))
            halves.leave(~c.some_above(self.name("open")))
        for stage in ("advance", "judge"):
            c.call(self.name(stage))

    def normal(self, c: StageCalls) -> None:
        """A = J' J and what is added to its diagonal (lower triangle)."""
        f, l, n, wide = c.f, c.l, self.s.rows, self.s.padded
        J, A, more = (c.at(self.name(x)) for x in ("J", "A", "changes"))
        fma = f"llvm.fmuladd.{l.suffix}"
        sums = {f"sum{k}": f.zero(l.type) for k in range(COLUMNS_AT_ONCE)}
        with f.loop(n, some=True) as i:
            with f.loop(i.i + 1, step=COLUMNS_AT_ONCE, some=True) as j:
                with f.loop(n, some=True, carry=sums) as k:
                    x = load_at(c, J, i.i * n + k.i)
                    for m, name in enumerate(sums):
                        y = load_at(c, J, (j.i + m) * n + k.i)
                        setattr(k, name, f.call(l.type, fma, x, y, getattr(k, name)))
                for m, name in enumerate(sums):
                    store_at(c, getattr(k, name), A, i.i * wide + (j.i + m))
            diagonal = i.i * wide + i.i
            store_at(c, load_at(c, A, diagonal) + load_at(c, more, i.i), A, diagonal)

    def side(self, c: StageCalls) -> None:
        """way = -J' F."""
        self._less(c, "F", "way", self.s.rows, 1)

    def back(self, c: StageCalls) -> None:
        """F = -J way, of the transpose that `normal` takes."""
        self._less(c, "way", "F", 1, self.s.rows)

    def _less(self, c: StageCalls, of: str, to: str, row: int, column: int) -> None:
        f, n = c.f, self.s.rows
        J, x, y = (c.at(self.name(name)) for name in ("J", of, to))
        with f.loop(n, some=True) as i:
            with f.loop(n, some=True, carry={"left": f.zero(c.l.type)}) as k:
                k.left = k.left - load_at(c, J, i.i * row + k.i * column) * load_at(c, x, k.i)
            store_at(c, k.left, y, i.i)

    def _matrix(self, c: StageCalls) -> MatrixTile:
        return MatrixTile(c.at(self.name("A")), self.s.rows, self.s.rows, self.s.padded)

    def factorise(self, c: StageCalls) -> None:
        row, inverse = (c.at(self.name(x)) for x in ("row", "inverse"))
        DenseCode(c.f.module, c.l, samples=True).ldl(c.f, self._matrix(c), row, inverse)

    def substitute(self, c: StageCalls) -> None:
        """way = A^-1 way."""
        way, inverse = (c.at(self.name(x)) for x in ("way", "inverse"))
        DenseCode(c.f.module, c.l, samples=True).substitute(c.f, self._matrix(c), inverse, way)


def load_at(c: StageCalls, base: Value, k: Value | int) -> Value:
    return base.at(k * c.l.bytes, I8).load(c.l.type, c.l.bytes)


def store_at(c: StageCalls, x: Value, base: Value, k: Value | int) -> None:
    base.at(k * c.l.bytes, I8).store(x, c.l.bytes)
