"""The residual of a step under the exact law, as sweeps, by which the derivatives of the step go.

Velocities u and impulses lam after a step are a zero of momentum and of the natural map F of the laws,

    R(x, u, lam) = M (u - v) - h (tau + p - bias) - J^T lam,      F(w, lam) = 0,  w = J u + closing speeds

over x = q, v, tau. With F_w and F_lam by blocks and G = J M^-1 J^T, d lam solves

    (F_w G + F_lam) d lam = -F_w (dw - J M^-1 dR)

with the least d lam, for impulses need not be unique: with A of the left, d lam = A^T (A A^T)^-1 times the right,
which is free of what A does not feel. M du = J^T d lam - dR. The transpose gives multipliers of R and w. Rates
that are kept and rates that move bodies are two such systems; where nothing has to part they are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from ....codegen.graph.node import Expr
from ....codegen.graph.program import Parameter
from ....codegen.llvm.ir import Value
from ....codegen.llvm.stages import StageCalls
from ....compiler.tracer import Tracer
from ....mechanics.algorithms.actuators import next_activations
from ....mechanics.algorithms.coulomb import JointLaw
from ....mechanics.algorithms.coulomb_newton import block_slopes, linearised
from ....mechanics.algorithms.delassus import (
    ContactSlot,
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
from ...convex.solids import placed_block
from ...packing import of
from ...place_derivatives import derivatives_block, place_sweep
from ...signals import ACTIVATION, driven_by, drives_of
from ...sweeps import StepSweep, argument_chart, result_chart
from ..soft.stages import StageTracer
from .kernel import ImpulseSolver
from .problem import TouchingRobot, found_slots
from .solve import RESIDUAL_TOLERANCE
from .stages import MoreauStages

PUSHED_PREFIX = "pushed_"  # before blocks of rates that move bodies, where these are not kept
NEAR_BOUND = 1e-8  # m/s: as near to a bound a joint is at it
LEAST_PART = 1e-14  # of the scale of A A': added where impulses are not unique
UNDEFINED = (
    "a step has no derivatives where it has not converged, or parts what friction holds (docs/contact.md): leave "
    "this state, or see by the residual of the step alone which it is"
)


class ExactDerivative:
    """The sweeps of a step under the exact law, its calls, and what solves for the velocities."""

    symbols: tuple[Parameter, ...] = ()
    undefined = UNDEFINED

    def __init__(self, robot: TouchingRobot, mark: str, numbers: bool, prefix: str = "") -> None:
        """prefix: of the blocks on which the solution works."""
        s = self.s = MoreauStages(robot, RESIDUAL_TOLERANCE)
        self.model, self.sizes, self.parts, self.numbers = robot.model, s.sizes, s.parts, numbers
        self.slot_blocks, self.drives = list[str](), drives_of(robot.controls, s.sizes)
        self.n, self.nv, self.by_rows = s.rows, s.tree.nv, mark == "bar"
        self.solver, self.prefix = ImpulseSolver(s), prefix
        self.systems = ["", PUSHED_PREFIX] if robot.stepping.splits else [""]
        self.solvers = [f"{k}{order}_{mark}" for k in self.systems for order in ("first", "second")]
        self.solid = tuple(k + name for k in self.systems for name in ("J", "A", "inverse"))
        ways = {"dot": (self._first_dot, self._second_dot), "bar": (self._first_bar, self._second_bar)}
        for k in self.systems:
            self.sizes |= {k + name: self.sizes[name] for name in ("J", "A", "inverse", "changes", "row")}
            blocks = {"ended": self.nv, "R": self.nv, "w": self.n, "at": 2 * len(s.laws)}
            blocks |= {"by_u": sum(len(x.rows) ** 2 for x in s.laws)}
            blocks |= {f"{x}_{mark}": n for x, n in (("R", self.nv), ("w", self.n), ("ended", self.nv))}
            self.sizes |= {k + name: max(1, n) for name, n in blocks.items()}
            work = {"half": self.nv, "F": self.n, "way": s.padded}
            self.sizes |= {prefix + k + name: max(1, n) for name, n in work.items()}
            self._add(f"{k}slopes", partial(self._slopes, k=k))
            for order, write in zip(("first", "second"), ways[mark]):
                self._add(f"{k}{order}_{mark}", partial(write, k=k))
        if PUSHED_PREFIX in self.systems:
            self.solid += ("eased",)
            self.sizes[f"{prefix}eased"] = 1
            self._add("same", self._same)
        self.sweeps, self.end = [*self._driving(), *self._placing(), self._dynamics()], self._end()

    def _add(self, name: str, write: Callable[[StageTracer], None]) -> None:
        s = StageTracer(name, self.sizes)
        write(s)
        self.parts[name] = s.t.program()

    # -- what follows a step --------------------------------------------------------------------------------

    def step(self, c: StageCalls) -> list[Value]:
        self.solver.routines(c)
        c.call("begin")
        self.solver.write(c)
        self.solver.derivatives(c)
        for k in self.systems:
            solver = ImpulseSolver(self.s, self.prefix + k)
            c.routine(solver.name("back"), solver.back)
            if self.prefix or k:
                c.routine(solver.name("side"), solver.side)
                c.routine(solver.name("substitute"), solver.substitute)
            c.call(f"{k}slopes")
            with self._apart(c, k, "eased"):
                solver = ImpulseSolver(self.s, k)
                solver.normal(c)
                solver.factorise(c)
        return []

    def _apart(self, c: StageCalls, k: str, eased: str) -> AbstractContextManager[None]:
        """Encloses the calls of a system that some lane has beside that of the rates that are kept."""
        return c.f.when(c.some_above(eased)) if k else nullcontext()

    def solution(self, c: StageCalls, mark: str) -> None:
        if PUSHED_PREFIX in self.systems and self.by_rows:
            c.call("same")
        for k in self.systems[::-1] if self.by_rows else self.systems:
            with self._apart(c, k, f"{self.prefix}eased"):
                c.call(f"{k}first_{mark}")
                for routine in ("side", "substitute") if self.by_rows else ("substitute", "back"):
                    c.run(f"{self.prefix}{k}{routine}")
                c.call(f"{k}second_{mark}")
        if PUSHED_PREFIX in self.systems and not self.by_rows:
            c.call("same")

    def _same(self, s: StageTracer) -> None:
        """Takes rates that move bodies from those that are kept in lanes where nothing has to part."""
        eased, mark = s.number(f"{self.prefix}eased") > 0.0, "bar" if self.by_rows else "dot"
        both = [*zip(s.read(f"ended_{mark}"), s.read(f"{PUSHED_PREFIX}ended_{mark}"))]
        if self.by_rows:
            s.write(ended_bar=[where(eased, x, x + y) for x, y in both])
            s.write(**{f"{PUSHED_PREFIX}{name}_bar": [0.0] * self.sizes[name] for name in ("R", "w")})
            s.write(**{f"{PUSHED_PREFIX}ended_bar": [where(eased, y, 0.0) for _, y in both]})
        else:
            s.write(**{f"{PUSHED_PREFIX}ended_dot": [where(eased, y, x) for x, y in both]})

    def _law_of(self, k: str) -> str:
        """The impulses of a system."""
        return "pushing" if k else "best"

    def _slopes(self, s: StageTracer, k: str) -> None:
        """Writes F_w G + F_lam by rows, F_w, the rates of the end, and at which bounds joints are.

        Where impulses are no zero of the natural map all derivatives are NaN, see UNDEFINED.
        """
        stages, n = self.s, self.n
        lam, p = s.read(self._law_of(k))[:n], stages.asked(s)
        p = p if k or PUSHED_PREFIX not in self.systems else p.eased()
        _, J = linearised(p, lam)
        entries = [x for row in J for x in row]
        by_u, at, more = list[Scalar](), list[Scalar](), list[Scalar]()
        least, failed = (stages.number(s, x) for x in ("least", "failed"))
        undefined = sqrt(where(maximum(least - stages.tolerance, failed) > 0.0, -1.0, 1.0)) - 1.0  # NaN, else 0
        for law in p.laws:
            by_u += [x for row in block_slopes(p, law, lam)[0] for x in row]
            size, w = p.trace(law), p.velocity(lam, law.rows)[0]
            more += [size * size * LEAST_PART + undefined] * len(law.rows)
            bounds = (law.lower, law.upper) if isinstance(law, JointLaw) else (0.0, 0.0)
            at += [where(abs(w - x) < NEAR_BOUND, 1.0, 0.0) if isinstance(x, Expr) else 0.0 for x in bounds]
        made = {
            "ended": stages.rates(s, self._law_of(k)), "by_u": by_u or [0.0], "at": at or [0.0],
            "J": [*entries, *[0.0] * ((stages.padded - n) * n)] or [0.0], "changes": more or [0.0],
        }  # fmt: skip
        s.write(**{k + name: x for name, x in made.items()})

    # -- the linear system ----------------------------------------------------------------------------------

    def _blocks(self, s: StageTracer, k: str) -> list[tuple[range, list[list[Expr]]]]:
        """F_w by blocks."""
        flat, out = iter(s.read(f"{k}by_u")), []
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

    def _write(self, s: StageTracer, k: str, half: Vector, to: str, x: Vector) -> None:
        s.write(**{f"{self.prefix}{k}half": half, f"{self.prefix}{k}{to}": x or [0.0]})

    def _first_dot(self, s: StageTracer, k: str) -> None:
        half = self._half(s, s.read(f"{k}R_dot"))
        w = [x - y for x, y in zip(s.read(f"{k}w_dot"), self._across(s, half))]
        F = [dot(row, [w[r] for r in rows]) for rows, block in self._blocks(s, k) for row in block]
        self._write(s, k, half, "way", [*F, *[0.0] * (self.s.padded - self.n)])

    def _second_dot(self, s: StageTracer, k: str) -> None:
        half, lam = (s.read(f"{self.prefix}{k}{name}") for name in ("half", "F"))
        s.write(**{f"{k}ended_dot": self._solved(s, half, lam[: self.n])})

    def _first_bar(self, s: StageTracer, k: str) -> None:
        half = self._half(s, s.read(f"{k}ended_bar"))
        self._write(s, k, half, "F", [-x for x in self._across(s, half)])

    def _second_bar(self, s: StageTracer, k: str) -> None:
        (half, way), nu = (s.read(f"{self.prefix}{k}{name}") for name in ("half", "way")), [0.0] * self.n
        for rows, block in self._blocks(s, k):
            for j, r in enumerate(rows):
                nu[r] = dot([row[j] for row in block], [way[i] for i in rows])
        s.write(**{f"{k}R_bar": self._solved(s, half, nu), f"{k}w_bar": [-x for x in nu] or [0.0]})

    # -- sweeps ---------------------------------------------------------------------------------------------

    def _driving(self) -> list[StepSweep]:
        """From q, v, controls and activations to efforts, and to the activations after the step."""
        r, t = self.s.robot, Tracer("driving", self.model, acting=True)
        q, v, efforts, drives = driven_by(t, self.model, self.sizes, r.controls, r.stepping.h)
        if not drives:
            return []
        read = {x.name: [Expr(t.graph, 2 * n) for n in x.nodes] for x in t.inputs}
        leaves, ends = {"q": q, "v": v, "ctrl": read["ctrl"]}, {"tau": dict(enumerate(efforts))}
        if "act" in self.drives:
            leaves["act"] = read[ACTIVATION]
            after = next_activations(self.model, read[ACTIVATION], drives.rates_over_step, r.stepping.h)
            ends["act1"] = dict(enumerate(after))
        charts = {"q": argument_chart(t.tree, q, self.numbers)}
        return [StepSweep("driving", t.graph, t.inputs, leaves, ends, charts)]

    def _placing(self) -> list[StepSweep]:
        """From q to where solids are, and to the places between them that have been searched for."""
        s, places = self.s, dict[int, tuple[int, int]]()
        if not s.robot.searched:
            return []
        t = Tracer("placing", self.model)
        q = t.input("Q", self.sizes["Q"])
        solids = [x for pair in s.robot.searched for x in pair.solids]
        numbers, many = placed_block(solids, placed_bodies(t.tree, q))
        for i, (pair, first) in enumerate(zip(s.robot.searched, s.found)):
            if pair.solids[0].geom.kind != "plane":
                places |= {first + k: (2 * i * many, (2 * i + 1) * many) for k in range(pair.most)}
        if not places:
            return []
        charts, ends = {"q": argument_chart(t.tree, q, self.numbers)}, {"placed": dict(enumerate(numbers))}
        placing = StepSweep("placing", t.graph, t.inputs, {"q": q}, ends, charts)
        return [placing, place_sweep("places", places, "places", self.sizes)]

    def _dynamics(self) -> StepSweep:
        """R and w."""
        t = Tracer("dynamics", self.model, acting=True)
        blocks = [k + x if x != "lam" else self._law_of(k) for k in self.systems for x in ("ended", "lam", "at")]
        given = {x: t.input(x, self.sizes[x]) for x in ("Q", "V", "tau", *blocks)}
        values: dict[str, list[Any]] = {"Q": given["Q"]}
        slots = found_slots(t, self.s.robot)
        for k in self.systems:
            left, speeds = self._remainders(t, slots, given, k)
            values |= {f"{k}R": left, f"{k}w": speeds or [0.0]}
        ends = {name: dict(enumerate(x)) for name, x in values.items()}
        charts = {"q": argument_chart(t.tree, given["Q"], self.numbers)}
        leaves = {"q": given["Q"], "v": given["V"], "tau": given["tau"]}
        leaves |= {
            x.name: [Expr(t.graph, 2 * n) for n in x.nodes]
            for x in t.inputs
            if x.name == "places" and derivatives_block(x.name) in self.sizes
        }
        return StepSweep("dynamics", t.graph, t.inputs, leaves, ends, charts)

    def _remainders(
        self, t: Tracer, slots: Sequence[ContactSlot], given: dict[str, list[Expr]], k: str
    ) -> tuple[list[Scalar], list[Scalar]]:
        tree, r, eased = t.tree, self.s.robot, not k and PUSHED_PREFIX in self.systems
        names = ("Q", "V", "tau", f"{k}ended", self._law_of(k), f"{k}at")
        q, v, tau, u, lam, at = (given[x] for x in names)
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
        for slot in slots:
            a = slot.touch(poses)
            rows = contact_rows(tree, poses, slot.bodies, a)
            for row, x in zip(rows, lam[len(speeds) :]):
                left = [y - z * x for y, z in zip(left, row)]
            w, closing = a.slipping([dot(row, u) for row in rows]), closing_speed(a.dist, dot(rows[0], v), step)
            speeds += [w[0] + (maximum(closing, 0.0) if eased else closing), *w[1:]]
        for i, joint in enumerate(r.joints, len(r.slots)):
            law, turns = joint_law(joint, 0, q, v, step), joint.coordinate(q)[1]
            law = law.eased() if eased else law
            for rate, x in turns.items():
                left[rate] = left[rate] - x * lam[len(speeds)]
            bounds = [y * z for y, z in zip(at[2 * i : 2 * i + 2], (law.lower, law.upper)) if isinstance(z, Expr)]
            speeds.append(dot(list(turns.values()), [u[rate] for rate in turns]) - sum(bounds, 0.0))
        return left, speeds

    def _end(self) -> StepSweep:
        """From Q and the velocities to q1 and v1."""
        s, tree = StageTracer("end", self.sizes), self.s.tree
        q, rates = s.read("Q"), {f"{k}ended": s.read(f"{k}ended") for k in self.systems}
        q1, v1 = moved(tree, q, rates[f"{self.systems[-1]}ended"], self.s.robot.stepping.h, rates["ended"])
        ends = {"q1": dict(enumerate(q1)), "v1": dict(enumerate(v1))}
        chart = result_chart(tree, q1, self.numbers)
        return StepSweep("end", s.t.graph, s.t.inputs, {"Q": q, **rates}, ends, {"q1": chart})
