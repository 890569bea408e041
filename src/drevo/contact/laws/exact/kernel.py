"""A step under the exact law as one compiled function of a tile: the loops that call the stages.

Joint limits have rows only where a step without them leaves a joint beyond its bounds, in some lane: such tiles
are done again with all rows, and lanes that need none of them keep what they have.

The residual of a step under the exact law, as sweeps, by which the derivatives of the step go.

Velocities u and impulses lam after a step are a zero of momentum and of the natural map F of the laws,

    R(x, u, lam) = M (u - v) - h (tau + p - bias) - J^T lam,      F(w, lam) = 0,  w = J u + closing speeds

over x = q, v, tau. With F_w and F_lam by blocks and G = J M^-1 J^T, d lam solves

    (F_w G + F_lam) d lam = -F_w (dw - J M^-1 dR)

in least squares, for impulses need not be unique, and M du = J^T d lam - dR. The transpose gives multipliers of R
and w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from ....codegen.graph.node import Expr
from ....codegen.graph.program import Parameter, Program
from ....codegen.llvm.dense.tile import DenseCode, MatrixTile
from ....codegen.llvm.ir import I8, Value
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.tracer import Tracer
from ....mechanics.algorithms.coulomb import JointLaw
from ....mechanics.algorithms.coulomb_newton import block_slopes, linearised
from ....mechanics.algorithms.delassus import (
    closing_speed,
    contact_rows,
    damped_mass_matrix,
    fixed_axes_bias,
    joint_law,
    moved,
    without_friction,
)
from ....mechanics.algorithms.kinematics import placed_bodies
from ....mechanics.scalar import Scalar, Vector, dot, maximum, sqrt, where
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import PLACED_GEOM_NUMBERS, PairSearch
from ...packing import of
from ...sweeps import StepSweep, argument_chart, result_chart
from ..soft.kernel import STEP_ARGUMENTS, STEP_RESULTS, declare
from ..soft.stages import StageTracer
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
    t, sizes = Tracer("step", robot.model), {k: x for s in sets for k, x in s.sizes.items()}
    t.state(*STEP_ARGUMENTS)
    declare(t, sizes, STEP_RESULTS)
    parts = {k: x for s in sets for k, x in s.parts.items()}
    blocks = {k: x for k, x in sizes.items() if k not in (*STEP_ARGUMENTS, *STEP_RESULTS)}
    symbols = tuple(x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in sets[0].symbols)
    stages = Stages(blocks, parts, partial(_write, sets, repeat))
    about: dict[str, Any] = {"undefined": NO_FRICTION} if robot.floor.friction else {}
    return replace(t.program(**about), parameters=symbols, stages=stages)


def _without_limits(robot: TouchingRobot) -> TouchingRobot:
    """The robot with joint limits that are looked at in the end, and have no rows."""
    limited = tuple(x for x in robot.joints if x.lower > -inf or x.upper < inf)
    held = tuple(x._replace(lower=-inf, upper=inf) for x in robot.joints if x.friction)
    return replace(robot, joints=held, checked=limited)


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
    """The calls of one set of stages, on blocks whose names begin with a prefix."""

    def __init__(self, stages: MoreauStages, prefix: str = "") -> None:
        self.s, self.prefix = stages, prefix

    def name(self, block: str) -> str:
        return self.prefix + self.s.named(block)

    def routines(self, c: StageCalls) -> None:
        written = {
            "normal": self._normal, "side": self.side, "factorise": self._factorise, "substitute": self.substitute,
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
        with c.f.when(c.some_above(self.name("going"))):
            c.call(self.name("ease"))
            c.run(self.name("attempts"))
            c.call(self.name("begin_parting"))
            with c.f.loop(MAX_PARTING_SWEEPS, some=True) as loop:
                c.call(self.name("part"))
                loop.leave(~c.some_above(self.name("parting")))
            c.call(self.name("tell"))
        c.call(self.name("end"))

    def _search(self, c: StageCalls) -> None:
        """Finds the places of contact that are searched for."""
        pairs = self.s.robot.searched
        if not pairs:
            return
        search = PairSearch([(x.solids[0].geom, x.solids[1].geom) for x in pairs], [x.reach for x in pairs])
        c.call("placing")
        c.fill(-1.0, "near", 0, 1)
        for k, first in enumerate(self.s.found):
            a, b = (c.at("placed", PLACED_GEOM_NUMBERS * (2 * k + end)) for end in (0, 1))
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

    def _normal(self, c: StageCalls) -> None:
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
        f, n = c.f, self.s.rows
        J, F, way = (c.at(self.name(x)) for x in ("J", "F", "way"))
        with f.loop(n, some=True) as i:
            with f.loop(n, some=True, carry={"left": f.zero(c.l.type)}) as k:
                k.left = k.left - load_at(c, J, i.i * n + k.i) * load_at(c, F, k.i)
            store_at(c, k.left, way, i.i)

    def _matrix(self, c: StageCalls) -> MatrixTile:
        return MatrixTile(c.at(self.name("A")), self.s.rows, self.s.rows, self.s.padded)

    def _factorise(self, c: StageCalls) -> None:
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


NEAR_BOUND = 1e-8  # m/s: as near to a bound a joint is at it
LEAST_PART = 1e-14  # of the scale of J' J: added where impulses are not unique
UNDEFINED = (
    "a step has no derivatives where it has not converged, or parts what friction holds (docs/contact.md): leave "
    "this state, or see by the residual of the step alone which it is"
)


class ExactDerivative:
    """The sweeps of a step under the exact law, its calls, and what solves for the velocities."""

    symbols: tuple[Parameter, ...] = ()
    solid: tuple[str, ...] = ("J", "A", "inverse")
    undefined = UNDEFINED

    def __init__(self, robot: TouchingRobot, mark: str, numbers: bool, prefix: str = "") -> None:
        """prefix: of the blocks on which the solution works."""
        s = self.s = MoreauStages(robot, RESIDUAL_TOLERANCE)
        self.model, self.sizes, self.parts, self.numbers = robot.model, s.sizes, s.parts, numbers
        self.slot_blocks = list[str]()
        self.n, self.nv, self.by_rows = s.rows, s.tree.nv, mark == "bar"
        self.solver, self.prefix, self.solvers = ImpulseSolver(s), prefix, [f"first_{mark}", f"second_{mark}"]
        blocks = {"ended": self.nv, "by_u": sum(len(x.rows) ** 2 for x in s.laws), "at": 2 * len(s.laws)}
        blocks |= {
            "R": self.nv,
            "w": self.n,
            f"{prefix}half": self.nv,
            f"{prefix}F": self.n,
            f"{prefix}way": s.padded,
        }
        blocks |= {f"{x}_{mark}": n for x, n in (("R", self.nv), ("w", self.n), ("ended", self.nv))}
        self.sizes |= {k: max(1, n) for k, n in blocks.items()}
        self._add("slopes", self._slopes)
        ways = {"dot": (self._first_dot, self._second_dot), "bar": (self._first_bar, self._second_bar)}
        for name, write in zip(self.solvers, ways[mark]):
            self._add(name, write)
        self.sweeps, self.end = [self._dynamics()], self._end()

    def _add(self, name: str, write: Callable[[StageTracer], None]) -> None:
        s = StageTracer(name, self.sizes)
        write(s)
        self.parts[name] = s.t.program()

    # -- what follows a step --------------------------------------------------------------------------------

    def step(self, c: StageCalls) -> list[Value]:
        self.solver.routines(c)
        c.call("begin")
        self.solver.write(c)
        if self.prefix:
            solver = ImpulseSolver(self.s, self.prefix)
            c.routine(f"{self.prefix}side", solver.side)
            c.routine(f"{self.prefix}substitute", solver.substitute)
        c.call("slopes")
        c.run("normal")
        c.run("factorise")
        return []

    def solution(self, c: StageCalls, mark: str) -> None:
        c.call(f"first_{mark}")
        c.run(f"{self.prefix}side")
        c.run(f"{self.prefix}substitute")
        c.call(f"second_{mark}")

    def _slopes(self, s: StageTracer) -> None:
        """Writes F_w G + F_lam by columns or rows, F_w, the rates of the end, and at which bounds joints are.

        Where impulses are no zero of the natural map all derivatives are NaN, see UNDEFINED.
        """
        stages, n = self.s, self.n
        free, lam, p = s.read("free"), s.read("best")[:n], stages.problem(s)
        M = stages.factors.mapped(lambda x: of(free, x))
        y = [dot([of(free, row[k]) for row in stages.Y], lam) for k in range(self.nv)]
        _, J = linearised(p, lam)
        entries = [J[i][k] if self.by_rows else J[k][i] for i in range(n) for k in range(n)]
        by_u, at, more = list[Scalar](), list[Scalar](), list[Scalar]()
        least, eased = (stages.number(s, x) for x in ("least", "eased"))
        undefined = sqrt(where(maximum(least - stages.tolerance, eased) > 0.0, -1.0, 1.0)) - 1.0  # NaN, else 0
        for law in p.laws:
            by_u += [x for row in block_slopes(p, law, lam)[0] for x in row]
            size, w = p.trace(law), p.velocity(lam, law.rows)[0]
            more += [size * size * LEAST_PART + undefined] * len(law.rows)
            bounds = (law.lower, law.upper) if isinstance(law, JointLaw) else (0.0, 0.0)
            at += [where(abs(w - x) < NEAR_BOUND, 1.0, 0.0) if isinstance(x, Expr) else 0.0 for x in bounds]
        ended = [of(free, a) + b for a, b in zip(stages.vf, M.solve_lower(y))]
        s.write(ended=ended, by_u=by_u or [0.0], at=at or [0.0])
        s.write(J=[*entries, *[0.0] * ((stages.padded - n) * n)] or [0.0], changes=more or [0.0])

    # -- the linear system ----------------------------------------------------------------------------------

    def _blocks(self, s: StageTracer) -> list[tuple[range, list[list[Expr]]]]:
        """F_w by blocks."""
        flat, out = iter(s.read("by_u")), []
        for law in self.s.laws:
            m = len(law.rows)
            out.append((law.rows, [[next(flat) for _ in range(m)] for _ in range(m)]))
        return out

    def _across(self, s: StageTracer, half: Vector) -> list[Scalar]:
        """J M^-1 of what is half solved."""
        free = s.read("free")
        M = self.s.factors.mapped(lambda x: of(free, x))
        weighted = [x * y for x, y in zip(half, M.inverse)]
        return [dot([of(free, y) for y in row], weighted) for row in self.s.Y]

    def _solved(self, s: StageTracer, half: Vector, lam: Vector) -> list[Scalar]:
        """M^-1 of J^T lam less what is half solved."""
        free = s.read("free")
        M = self.s.factors.mapped(lambda x: of(free, x))
        y = [dot([of(free, row[k]) for row in self.s.Y], lam) for k in range(self.nv)]
        return M.solve_lower([b - a for a, b in zip(half, y)])

    def _half(self, s: StageTracer, x: Vector) -> list[Scalar]:
        free = s.read("free")
        return self.s.factors.mapped(lambda y: of(free, y)).solve_transposed(x)

    def _write(self, s: StageTracer, half: Vector, F: Vector) -> None:
        s.write(**{f"{self.prefix}half": half, f"{self.prefix}F": F or [0.0]})

    def _first_dot(self, s: StageTracer) -> None:
        half = self._half(s, s.read("R_dot"))
        w = [x - y for x, y in zip(s.read("w_dot"), self._across(s, half))]
        F = [dot(row, [w[r] for r in rows]) for rows, block in self._blocks(s) for row in block]
        self._write(s, half, F)

    def _second_dot(self, s: StageTracer) -> None:
        s.write(ended_dot=self._solved(s, s.read(f"{self.prefix}half"), s.read(f"{self.prefix}way")[: self.n]))

    def _first_bar(self, s: StageTracer) -> None:
        half = self._half(s, s.read("ended_bar"))
        self._write(s, half, [-x for x in self._across(s, half)])

    def _second_bar(self, s: StageTracer) -> None:
        way, nu = s.read(f"{self.prefix}way"), [0.0] * self.n
        for rows, block in self._blocks(s):
            for k, r in enumerate(rows):
                nu[r] = dot([row[k] for row in block], [way[i] for i in rows])
        s.write(R_bar=self._solved(s, s.read(f"{self.prefix}half"), nu), w_bar=[-x for x in nu] or [0.0])

    # -- sweeps ---------------------------------------------------------------------------------------------

    def _dynamics(self) -> StepSweep:
        """R and w."""
        t = Tracer("dynamics", self.model, acting=True)
        given = {x: t.input(x, self.sizes[x]) for x in ("Q", "V", "tau", "ended", "best", "at")}
        left, speeds = self._remainders(t, given)
        values = {"R": left, "w": speeds or [0.0], "Q": given["Q"]}
        ends = {name: dict(enumerate(x)) for name, x in values.items()}
        charts = {"q": argument_chart(t.tree, given["Q"], self.numbers)}
        leaves = {"q": given["Q"], "v": given["V"], "tau": given["tau"]}
        return StepSweep("dynamics", t.graph, t.inputs, leaves, ends, charts)

    def _remainders(self, t: Tracer, given: dict[str, list[Expr]]) -> tuple[list[Scalar], list[Scalar]]:
        tree, r = t.tree, self.s.robot
        q, v, tau, u, lam, at = (given[x] for x in ("Q", "V", "tau", "ended", "best", "at"))
        step, poses = r.stepping, placed_bodies(tree, q)
        left = [-step.h * (x - y + z) for x, y, z in
                zip(tau, fixed_axes_bias(tree, q, v), without_friction(tree, q, v))]  # fmt: skip
        way = [x - y for x, y in zip(u, v)]
        for i, entries in enumerate(damped_mass_matrix(tree, q, step.h)):
            for j, m in entries.items():
                left[i] = left[i] + m * way[j]
                if i != j:
                    left[j] = left[j] + m * way[i]
        speeds: list[Scalar] = []
        for slot in r.slots:
            a = slot.touch(poses)
            rows = contact_rows(tree, poses, slot.bodies, a)
            for row, x in zip(rows, lam[len(speeds) :]):
                left = [y - z * x for y, z in zip(left, row)]
            w = a.slipping([dot(row, u) for row in rows])
            speeds += [w[0] + closing_speed(a.dist, dot(rows[0], v), step), *w[1:]]
        for k, joint in enumerate(r.joints, len(r.slots)):
            law, turns = joint_law(joint, 0, q, v, step), joint.coordinate(q)[1]
            for rate, x in turns.items():
                left[rate] = left[rate] - x * lam[len(speeds)]
            bounds = [y * z for y, z in zip(at[2 * k : 2 * k + 2], (law.lower, law.upper)) if isinstance(z, Expr)]
            speeds.append(dot(list(turns.values()), [u[rate] for rate in turns]) - sum(bounds, 0.0))
        return left, speeds

    def _end(self) -> StepSweep:
        """From Q and the velocities to q1 and v1."""
        s, tree = StageTracer("end", self.sizes), self.s.tree
        q, u = s.read("Q"), s.read("ended")
        q1, v1 = moved(tree, q, u, self.s.robot.stepping.h)
        ends = {"q1": dict(enumerate(q1)), "v1": dict(enumerate(v1))}
        chart = result_chart(tree, q1, self.numbers)
        return StepSweep("end", s.t.graph, s.t.inputs, {"Q": q, "ended": u}, ends, {"q1": chart})
