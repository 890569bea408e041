"""One knot of a trajectory as a program: the reference and its gains, the motion, the cost of the knot.

The impact of new contacts at the first knot of a phase: the velocity is projected by M, all at once.

    M (v+ - v) = Gamma^T N,   Gamma v+ = 0                                     Zaremba (2.17), without restitution

and its derivatives, from the same equations: dv+ by v is the projection, by q it solves them for the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...codegen.graph.program import Program
from ...compiler.formalisms import fastest
from ...compiler.tracer import Tracer
from ...constraint.collection import all_rows
from ...constraint.kinds import Constraint
from ...constraint.prepared import PreparedSet
from ...io.given import Array
from ...mechanics.algorithms.constraints import Kinematics
from ...mechanics.algorithms.inertia_matrix import factorised, lower_rows
from ...mechanics.algorithms.passive import passive
from ...mechanics.algorithms.schur import Schur
from ...mechanics.manifold import exponential, exponential_rates, logarithm
from ...mechanics.scalar import Scalar, Vector, clip, dot
from ...mechanics.tree import Tree
from ...model.description import Model
from ..linear_kernels import derivatives_of_constraints
from .cost import Cost, CostShape
from .sweep import KnotRecord


class HeldBy(NamedTuple):
    """The constraints that hold in a run of knots; acts: passive forces of the joints are in; struck: constraints
    begin to hold there."""

    found: tuple[Constraint, ...]
    acts: bool
    struck: bool = False


def knot_program(model: Model, phase: HeldBy, cost: Cost, shape: CostShape, boxed: bool) -> Program:
    """(q, v, alpha, record) -> q1, v1, u, cost: u = u_r + alpha k - K (x - x_r) in its bounds, and the next state
    moved by (alpha - 1) gap."""
    t = Tracer("step", model, acting=phase.acts)
    tree, n, m = t.tree, model.nv, len(shape.driven)
    q, v, (alpha,) = t.input("q", model.nq), t.input("v", n), t.input("alpha", 1)
    record = KnotRecord(model.nq, n, m)
    numbers = t.input("record", record.size)
    at = {name: numbers[part] for name, part in record.parts.items()}
    off = [*logarithm(model.runs, at["q"], q), *(x - y for x, y in zip(v, at["v"]))]
    u: list[Scalar] = [
        x + alpha * k - dot(at["K"][2 * n * i : 2 * n * (i + 1)], off)
        for i, (x, k) in enumerate(zip(at["u"], at["k"]))
    ]
    if boxed:
        u = [clip(x, low, high) for x, low, high in zip(u, at["low"], at["high"])]
    tau: list[Scalar] = [0.0] * n
    for i, x in zip(shape.driven, u):
        tau[i] = x
    (time,), (dt,) = at["time"], at["dt"]
    before = v
    if phase.struck:
        v = velocity_after(tree, phase.found, q, v, time)
    force = [x + p for x, p in zip(tau, passive(tree, q, v))] if phase.acts else tau
    v1 = [x + dt * y for x, y in zip(v, held_accelerations(tree, phase.found, q, v, force, time))]
    q1 = exponential(model.runs, q, [dt * x for x in v1])
    gap = [(alpha - 1.0) * x for x in at["gap"]]
    t.output("q1", exponential(model.runs, q1, gap[:n]))
    t.output("v1", [x + y for x, y in zip(v1, gap[n:])])
    t.output("u", u)
    t.output("cost", [cost.value(tree, q, before, tau, time) * dt])
    return t.program(quantity="step")


def turning_program(model: Model, turning: Sequence[tuple[int, int]]) -> Program:
    """dq -> the Jacobians of q (+) dq, by q and by dq: the blocks of joints with a quaternion, the rest is 1; they
    are the same at every q."""
    t = Tracer("turning", model)
    rates = exponential_rates(model.runs, [0.0] * model.nq, t.input("dq", model.nv))
    for name, entries in zip(("by_q", "by_dq"), rates):
        blocks = [entries.get((s + r, s + c), 0.0) for s, b in turning for r in range(b) for c in range(b)]
        t.output(name, blocks)
    return t.program(quantity="turning")


def held_accelerations(
    tree: Tree, constraints: Sequence[Constraint], q: Vector, v: Vector, force: Vector, time: Scalar
) -> list[Scalar]:
    """Joint accelerations under joint forces, without constraints or held by them."""
    if not constraints:
        accelerations: list[Scalar] = fastest(tree, ["forward_dynamics"])["forward_dynamics"](tree, q, v, force)
        return accelerations
    rows = all_rows(constraints, Kinematics(tree, q, v), time)
    compute = fastest(tree, ["mass_matrix", "bias"])
    matrix, h = compute["mass_matrix"](tree, q), compute["bias"](tree, q, v)
    schur = Schur(factorised(tree, lower_rows(matrix)), rows.jacobian)
    return list(schur.accelerations([x - y for x, y in zip(force, h)], rows.bias)[0])


def velocity_after(
    tree: Tree, constraints: Sequence[Constraint], q: Vector, v: Vector, time: Scalar
) -> list[Scalar]:
    """v of an impact, which projects it by M."""
    rows = all_rows(constraints, Kinematics(tree, q, v), time)
    matrix = fastest(tree, ["mass_matrix", "bias"])["mass_matrix"](tree, q)
    schur = Schur(factorised(tree, lower_rows(matrix)), rows.jacobian)
    return [x + y for x, y in zip(v, schur.accelerations([0.0] * tree.nv, rows.rate)[0])]


class StruckKnot:
    """The impact of a set of constraints at one state."""

    def __init__(self, given: PreparedSet) -> None:
        n, m, robot = given.robot.nv, given.size, given.robot
        self.given, self.curved = given, derivatives_of_constraints(robot, given.found)
        self.system, self.sides = np.zeros((n + m, n + m)), np.zeros((n + m, 2 * n))
        self.twice, self.still = np.zeros((2, n)), np.zeros(n)

    def slopes(self, q: Array, v: Array, t: Array) -> tuple[Array, Array, Array]:
        """v+ and its derivatives by q (on the tangent space) and by v."""
        given, robot, n = self.given, self.given.robot, self.given.robot.nv
        after, held = given.form.impact(q, v, t, *given.numbers, self.still[:1])
        hessian, _, _, rate = self.curved(q, after, self.still, held[: given.size], t)
        self.twice[0] = after - v  # with the weight, and below it the weight alone
        both, _, M = robot.inverse_dynamics_derivatives(q, self.still, self.twice)
        jacobian = given.terms(q, after, t).jacobian
        self.system[:n, :n], self.system[:n, n:], self.system[n:, :n] = M[0], -jacobian.T, jacobian
        self.sides[:n, :n], self.sides[:n, n:] = hessian - (both[0] - both[1]), M[0]
        self.sides[n:, :n] = -rate
        out = np.linalg.solve(self.system, self.sides)[:n]
        return after, out[:, :n], out[:, n:]


def through_impact(model: Array, n: int, dt: float, by_q: Array, by_v: Array) -> None:
    """A knot's linear model [A, B, ..], in place, by the state before an impact: v + dt a' comes out."""
    A = model[: 2 * n * n].reshape(n, 2 * n)
    a_v = A[:, n:].copy()
    A[:, :n] += by_q / dt + a_v @ by_q
    A[:, n:] = a_v @ by_v + by_v / dt
    A.reshape(-1)[n :: 2 * n + 1] -= 1.0 / dt
