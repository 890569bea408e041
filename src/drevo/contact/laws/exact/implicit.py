"""Derivatives of a step under the exact law times a vector, by the implicit function theorem, in stages.

Velocities u and impulses lam after a step are a zero of momentum and of the natural map F of the laws,

    R(x, u, lam) = M (u - v) - h (tau + p - bias) - J^T lam,      F(w, lam) = 0,  w = J u + closing speeds

over x = q, v, tau. With F_w and F_lam by blocks and G = J M^-1 J^T, d lam solves

    (F_w G + F_lam) d lam = -F_w (dw - J M^-1 dR)

in least squares, for impulses need not be unique, and M du = J^T d lam - dR. "vjp" is the transpose: one reverse
sweep over R and w, with multipliers of both.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....codegen.graph.derivative import cotangents, tangents
from ....codegen.graph.node import Expr
from ....compiler.products import number_rates, tangent_size
from ....compiler.tracer import Tracer, unknowns
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
from ..soft.implicit import cotangents_of, tangents_of
from ..soft.stages import StageTracer
from .stages import MoreauStages

SOLVED = ("normal", "factorise", "substitute")  # routines
NEAR = 1e-8  # m/s: as near to a bound a joint is at it
LEAST_PART = 1e-14  # of the scale of J' J: added where impulses are not unique
UNDEFINED = (
    "a step has no derivatives where it has not converged, or parts what friction holds (docs/contact.md): leave "
    "this state, or see by the residual of the step alone which it is"
)


class MoreauLinear:
    """Adds to the stages of a step those of a product, "jvp" or "vjp". mark, numbers: as those of `Linear`."""

    def __init__(self, s: MoreauStages, mark: str, numbers: bool = False) -> None:
        self.numbers = numbers
        self.s, self.mark, self.n, self.nv = s, mark, s.rows, s.tree.nv
        nv = self.nv
        s.sizes |= slope_sizes(s) | {"half": nv}
        s.sizes |= {f"{k}_{mark}": nv for k in ("v", "tau", "v1", "u")} | {f"Q_{mark}": s.tree.nq}
        s.sizes |= {f"{k}_{mark}": tangent_size(s.tree, numbers) for k in ("q", "q1")}
        s.sizes |= {"momentum": nv, "speeds": max(1, self.n)}
        self.add("slopes", lambda x: tell_slopes(x, s, mark == "bar"))
        self.add(f"end_{mark}", self._end)
        for k in ("first", "second"):
            self.add(k, getattr(self, f"_{k}_{mark}"))
        self._dynamics()

    def add(self, name: str, write: object) -> None:
        s = StageTracer(name, self.s.sizes)
        write(s)  # type: ignore[operator]
        self.s.parts[name] = s.t.program()

    def _end(self, s: StageTracer) -> None:
        """Tangents of q1 and v1 from those of Q and u, or back."""
        tree, q, u = self.s.tree, s.read("Q"), s.read("ended")
        q1, v1 = moved(tree, q, u, self.s.robot.stepping.h)
        if self.mark == "dot":
            rates = {x.edge: d for x, d in zip([*q, *u], [*s.read("Q_dot"), *s.read("u_dot")])}
            found = tangents([*q1, *v1], rates)
            s.write(q1_dot=tangents_of(tree, q1, found[: tree.nq], self.numbers), v1_dot=found[tree.nq :])
            return
        bar = cotangents_of(tree, q1, s.read("q1_bar"), self.numbers)
        found = cotangents([*q1, *v1], [*bar, *s.read("v1_bar")], [*q, *u])
        s.write(Q_bar=found[: tree.nq], u_bar=found[tree.nq :])

    # -- the linear system ----------------------------------------------------------------------------------

    def _across(self, s: StageTracer, half: Vector) -> list[Scalar]:
        """J M^-1 of what is half solved."""
        free = s.read("free")
        M = self.s.factors.mapped(lambda x: of(free, x))
        weighted = [x * y for x, y in zip(half, M.inverse)]
        return [dot([of(free, y) for y in row], weighted) for row in self.s.Y]

    def _solved(self, s: StageTracer, half: Vector, lam: Vector, sign: float) -> list[Scalar]:
        """M^-1 of sign (half - J^T lam)."""
        free = s.read("free")
        M = self.s.factors.mapped(lambda x: of(free, x))
        y = [dot([of(free, row[k]) for row in self.s.Y], lam) for k in range(self.nv)]
        return M.solve_lower([sign * (a - b) for a, b in zip(half, y)])

    def _half(self, s: StageTracer, x: Vector) -> list[Scalar]:
        free = s.read("free")
        return self.s.factors.mapped(lambda y: of(free, y)).solve_transposed(x)

    def _first_dot(self, s: StageTracer) -> None:
        half = self._half(s, s.read("momentum"))
        w = [x - y for x, y in zip(s.read("speeds"), self._across(s, half))]
        F = [dot(row, [w[r] for r in rows]) for rows, block in blocks_of(s, self.s) for row in block]
        s.write(half=half, F=F or [0.0])

    def _second_dot(self, s: StageTracer) -> None:
        s.write(u_dot=self._solved(s, s.read("half"), s.read("way")[: self.n], -1.0))

    def _first_bar(self, s: StageTracer) -> None:
        half = self._half(s, s.read("u_bar"))
        s.write(half=half, F=[-x for x in self._across(s, half)] or [0.0])

    def _second_bar(self, s: StageTracer) -> None:
        """Multipliers of momentum and of w."""
        way, nu = s.read("way"), [0.0] * self.n
        for rows, block in blocks_of(s, self.s):
            for k, r in enumerate(rows):
                nu[r] = dot([row[k] for row in block], [way[i] for i in rows])
        s.write(momentum=self._solved(s, s.read("half"), nu, 1.0), speeds=nu or [0.0])

    # -- momentum and the velocities of contacts ------------------------------------------------------------

    def _remainders(self, t: Tracer, given: dict[str, list[Expr]]) -> tuple[list[Scalar], list[Scalar]]:
        """R and w."""
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

    def _dynamics(self) -> None:
        """Rates of R and w from tangents of the arguments, or cotangents of those from multipliers."""
        t, sizes = Tracer(f"dynamics_{self.mark}", self.s.robot.model, acting=True), self.s.sizes
        names = ["Q", "V", "tau", "ended", "best", "at"]
        names += ["q_dot", "v_dot", "tau_dot"] if self.mark == "dot" else ["Q_bar", "momentum", "speeds"]
        given = {name: t.input(name, sizes[name]) for name in names}
        left, speeds = self._remainders(t, given)
        q, state, n = given["Q"], [*given["Q"], *given["V"], *given["tau"]], t.tree.nq
        if self.mark == "dot":
            way = number_rates(t.tree, q, given["q_dot"], self.numbers)
            rates = {x.edge: d for x, d in zip(state, [*way, *given["v_dot"], *given["tau_dot"]])}
            found = tangents([*left, *speeds], rates)
            outputs = {"momentum": found[: self.nv], "speeds": found[self.nv :] or [0.0], "Q_dot": way}
        else:
            seeds = [-x for x in (*given["momentum"], *given["speeds"][: self.n])]
            found = cotangents([*left, *speeds], seeds, state)
            d = unknowns(t.graph, "d", tangent_size(t.tree, self.numbers))
            bars = [x + y for x, y in zip(found[:n], given["Q_bar"])]
            outputs = {"v_bar": found[n : n + self.nv], "tau_bar": found[n + self.nv :]}
            outputs["q_bar"] = cotangents(number_rates(t.tree, q, d, self.numbers), bars, d)
        for name, values in outputs.items():
            t.output(name, values)
        self.s.parts[f"dynamics_{self.mark}"] = t.program()


def slope_sizes(s: MoreauStages) -> dict[str, int]:
    """The sizes of the blocks that `tell_slopes` writes and a step has not."""
    blocks = {"ended": s.tree.nv, "by_u": sum(len(x.rows) ** 2 for x in s.laws), "at": 2 * len(s.laws)}
    return {k: max(1, n) for k, n in blocks.items()}


def tell_slopes(s: StageTracer, stages: MoreauStages, by_rows: bool) -> None:
    """The rates u that a step "ended" with; F_w; at which bounds joints are; F_w G + F_lam by columns or rows.

    Where impulses are no zero of the natural map all derivatives are NaN, see UNDEFINED.
    """
    free, lam, p, n = s.read("free"), s.read("best")[: stages.rows], stages.problem(s), stages.rows
    M = stages.factors.mapped(lambda x: of(free, x))
    y = [dot([of(free, row[k]) for row in stages.Y], lam) for k in range(stages.tree.nv)]
    _, J = linearised(p, lam)
    entries = [J[i][k] if by_rows else J[k][i] for i in range(n) for k in range(n)]
    by_u, at, more = list[Scalar](), list[Scalar](), list[Scalar]()
    least, eased = (stages.number(s, x) for x in ("least", "eased"))
    undefined = sqrt(where(maximum(least - stages.tolerance, eased) > 0.0, -1.0, 1.0)) - 1.0  # NaN, else 0
    for law in p.laws:
        by_u += [x for row in block_slopes(p, law, lam)[0] for x in row]
        size, w = p.trace(law), p.velocity(lam, law.rows)[0]
        more += [size * size * LEAST_PART + undefined] * len(law.rows)
        bounds = (law.lower, law.upper) if isinstance(law, JointLaw) else (0.0, 0.0)
        at += [where(abs(w - x) < NEAR, 1.0, 0.0) if isinstance(x, Expr) else 0.0 for x in bounds]
    s.write(
        ended=[of(free, a) + b for a, b in zip(stages.vf, M.solve_lower(y))], by_u=by_u or [0.0], at=at or [0.0]
    )
    s.write(J=[*entries, *[0.0] * ((stages.padded - n) * n)] or [0.0], changes=more or [0.0])


def blocks_of(s: StageTracer, stages: MoreauStages) -> list[tuple[range, list[list[Expr]]]]:
    """F_w by blocks."""
    flat, out = iter(s.read("by_u")), []
    for law in stages.laws:
        m = len(law.rows)
        out.append((law.rows, [[next(flat) for _ in range(m)] for _ in range(m)]))
    return out


def calls_of(mark: str) -> Sequence[str]:
    """Stages and routines that follow a step, in order."""
    if mark == "dot":
        return "slopes", "dynamics_dot", "first", *SOLVED, "second", "end_dot"
    return "slopes", "end_bar", "first", *SOLVED, "second", "dynamics_bar"
