"""The residual of a step under the exact law, as sweeps, by which the derivatives of the step go.

Velocities u and impulses lam after a step are a zero of momentum and of the natural map F of the laws,

    R(x, u, lam) = M (u - v) - h (tau + p - bias) - J^T lam,      F(w, lam) = 0,  w = J u + closing speeds

over x = q, v, tau. With F_w and F_lam by blocks and G = J M^-1 J^T, d lam solves

    (F_w G + F_lam) d lam = -F_w (dw - J M^-1 dR)

in least squares, for impulses need not be unique, and M du = J^T d lam - dR. The transpose gives multipliers of R
and w.
"""

from __future__ import annotations

from collections.abc import Callable

from ....codegen.graph.node import Expr
from ....codegen.graph.program import Parameter
from ....codegen.llvm.ir import Value
from ....codegen.llvm.stages import StageCalls
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
from ....mechanics.algorithms.kinematics import WORLD_POSE, body_poses
from ....mechanics.scalar import Scalar, Vector, dot, maximum, sqrt, where
from ...packing import of
from ...sweeps import StepSweep, argument_chart, result_chart
from ..soft.stages import StageTracer
from .kernel import ImpulseSolver
from .problem import TouchingRobot
from .solve import RESIDUAL_TOLERANCE
from .stages import MoreauStages

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
        step, poses = r.stepping, dict(enumerate(body_poses(tree, q))) | {-1: WORLD_POSE}
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
