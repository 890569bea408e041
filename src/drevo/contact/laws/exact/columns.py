"""The whole Jacobian of a step under the exact law, by columns.

With momentum R(x, u) = M (u - v) - h (tau + p - bias) and velocities w = J u + closing speeds, as in
`implicit_moreau`, impulses change by d lam = P (dw - J M^-1 dR), P one matrix for all columns: in least squares
-(F_w G + F_lam)^+ F_w; and M du = J^T d lam - dR. dR is that of ID at the accelerations (u - v) / h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....codegen.graph.derivative import tangents
from ....codegen.graph.node import Expr
from ....codegen.graph.program import Program
from ....codegen.llvm.dense.products import Summand, Tile, block_sizes, write_product
from ....codegen.llvm.ir import Value
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.differentiate import put
from ....compiler.tracer import Tracer
from ....mechanics.algorithms.delassus import closing_speed, joint_law
from ....mechanics.algorithms.kinematics import WORLD_POSE, body_poses
from ....mechanics.joints import Force
from ....mechanics.scalar import Matrix, Scalar, dot
from ....mechanics.spatial import ZERO
from ...inverse import InverseBlocks
from ...packing import of
from ...response import RESULTS, ResponseRows
from ...runs import equals
from ...touched import (
    Chain,
    Pole,
    chain_of,
    ground_body,
    pole_values,
    six_numbers,
    touch_of,
    unit_wrenches,
    wrench_slopes,
)
from ..soft.columns import BodyMap, state_slopes
from ..soft.jacobian import TESTED, with_rows
from ..soft.kernel import STATE
from ..soft.stages import StageTracer
from .implicit import blocks_of, slope_sizes, tell_slopes
from .kernel import BLOCK, ImpulseSolver, load_at, store_at
from .stages import MoreauStages

MOST_ROWS = 30  # of impulses, which are solved for without loops


def exact_by_columns(stages: MoreauStages) -> bool:
    """True if the Jacobian comes by columns: few enough places, on the ground alone, no limits of balls."""
    tree, robot = stages.tree, stages.robot
    grounded = all(min(x.bodies) < 0 for x in robot.slots) and not any(x.ball for x in robot.joints)
    return grounded and not tree.formulas and stages.rows <= MOST_ROWS


def exact_jacobian_program(stages: MoreauStages, fill: Callable[..., None]) -> Program:
    """(q, v, tau) -> (by_q, by_v, by_tau), (2 nv, nv) each. fill: the same on arrays."""
    own, solver = ImpulseColumns(stages), ImpulseSolver(stages)
    t = Tracer("step_jacobian", stages.robot.model)
    t.state(*STATE)

    def write(c: StageCalls) -> None:
        solver.routines(c)
        c.call("begin")
        solver.write(c)
        c.call("slopes")
        own.respond(c)
        for stage in ("columns", "turns"):
            c.call(stage)
        own.rows.write(c)

    return with_rows(t, stages.sizes, lambda blocks: Stages(blocks, stages.parts, write, fill, TESTED, RESULTS))


class TouchSlopes(NamedTuple):
    """Derivatives at a contact: what it does to its body, and the rows of its velocities: by six ways of the
    body's place, and B over motions of the body; bounce: by the normal velocity before the step."""

    wrench: BodyMap
    by_place: Matrix
    B: Matrix
    bounce: Scalar

    def rows(self, chain: Chain, nv: int) -> tuple[Matrix, Matrix]:
        """By q and by v."""
        by_q, by_v = ([[0.0] * nv for _ in range(3)] for _ in range(2))
        for c, column in chain.columns.items():
            S, (turned, turned_before) = six_numbers(column.S), map(six_numbers, column.carried)
            for r, own in enumerate(self.B):
                by_q[r][c] = dot([x[r] for x in self.by_place], S) + dot(own, turned)
                by_v[r][c] = dot(own, S)
            by_q[0][c] = by_q[0][c] + self.bounce * dot(self.B[0], turned_before)
            by_v[0][c] = by_v[0][c] + self.bounce * dot(self.B[0], S)
        return by_q, by_v


class ImpulseColumns:
    """Adds the stages."""

    def __init__(self, s: MoreauStages) -> None:
        self.s, self.h, self.n, self.nv = s, s.robot.stepping.h, s.rows, s.tree.nv
        n, nv = self.n, self.nv
        s.sizes |= slope_sizes(s) | {"free_T": nv * nv} | dict.fromkeys(("pushed", "Y"), max(1, n * nv))
        s.sizes["P"] = max(1, n * n)
        self.inverse = InverseBlocks("M", s.sizes, nv)
        self.rows = ResponseRows(s.tree, s.sizes, self.h, n)
        self.add("slopes", lambda x: tell_slopes(x, s, False))
        self.add("response", self._response)
        if n:
            self.add("sides", self._sides)
        self._columns()
        self.add("turns", lambda x: self.rows.turn(x, x.read("Q"), x.read("ended")))

    def add(self, name: str, write: Callable[[StageTracer], None]) -> None:
        s = StageTracer(name, self.s.sizes)
        write(s)
        self.s.parts[name] = s.t.program()

    def _sides(self, s: StageTracer) -> None:
        """-J' F_w / h by rows: what P / h is after the division by J' J."""
        n, J, out = self.n, s.read("J"), dict[int, Scalar]()
        for rows, block in blocks_of(s, self.s):
            for i in range(n):
                for k, column in zip(rows, zip(*block)):
                    out[i * n + k] = dot(column, [J[i * n + r] for r in rows]) * (-1.0 / self.h)
        s.write_some("P", out)

    def _divide(self, c: StageCalls) -> None:
        """P = A^-1 P by the factors of A, some columns at a time."""
        f, n, wide = c.f, self.n, self.s.padded
        A, inverse, P = (c.at(x) for x in ("A", "inverse", "P"))
        for left, end, width in block_sizes(n, BLOCK):
            with f.loop(end, start=left, step=width, some=True) as j:
                names = [f"sum{m}" for m in range(width)]

                def row(i: Value, first: Value = j.i, names: Sequence[str] = names) -> dict[str, Value]:
                    return {name: load_at(c, P, i * n + (first + m)) for m, name in enumerate(names)}

                with f.loop(n, some=True) as i:
                    with f.loop(i.i, carry=row(i.i)) as k:
                        x = load_at(c, A, i.i * wide + k.i)
                        for name, y in row(k.i).items():
                            setattr(k, name, getattr(k, name) - x * y)
                    over = load_at(c, inverse, i.i)
                    for m, name in enumerate(names):
                        store_at(c, getattr(k, name) * over, P, i.i * n + (j.i + m))
                with f.loop(-1, start=n - 1, step=-1, some=True) as i:
                    over = load_at(c, inverse, i.i)
                    with f.loop(n, start=i.i + 1, carry=row(i.i)) as k:
                        x = load_at(c, A, k.i * wide + i.i) * over
                        for name, y in row(k.i).items():
                            setattr(k, name, getattr(k, name) - x * y)
                    for m, name in enumerate(names):
                        store_at(c, getattr(k, name), P, i.i * n + (j.i + m))

    # -- how momentum and velocities change -------------------------------------------------------------------

    def _columns(self) -> None:
        """-dR / h and dw, by columns, of q and then of v."""
        t, sizes, nv, robot = (
            Tracer("columns", self.s.robot.model, acting=True),
            self.s.sizes,
            self.nv,
            self.s.robot,
        )
        tree = t.tree.replace(acting=tuple(a._replace(friction=0.0) for a in t.tree.acting))
        q, v, u, lam, at = (t.input(name, sizes[name]) for name in ("Q", "V", "ended", "best", "at"))
        poses = dict(enumerate(body_poses(tree, q))) | {-1: WORLD_POSE}
        chains = {b: chain_of(tree, poses, b, (u, v)) for b in {ground_body(x.bodies)[0] for x in robot.slots}}
        maps: dict[int, BodyMap] = {}
        speeds: tuple[Matrix, Matrix] = ([], [])
        for k, slot in enumerate(robot.slots):
            body, _ = ground_body(slot.bodies)
            found = self._slot(k, pole_values(poses[body], chains[body].motions), lam)
            maps[body] = _added(maps[body], found.wrench) if body in maps else found.wrench
            for part, rows in zip(speeds, found.rows(chains[body], nv)):
                part.extend(rows)
        for k, joint in enumerate(robot.joints, len(robot.slots)):
            law = joint_law(joint, 0, q, v, robot.stepping)
            both = zip(at[2 * k : 2 * k + 2], (law.lower, law.upper))
            bounds = sum([y * z for y, z in both if isinstance(z, Expr)], 0.0)
            for part, leaf, unit in ((speeds[0], q[joint.q], 0.0), (speeds[1], v[joint.rate], 1.0)):
                slope = tangents([bounds], {leaf.edge: 1.0})[0]
                part.append([unit - slope if c == joint.rate else 0.0 for c in range(nv)])
        a = [(x - y) * (1.0 / self.h) for x, y in zip(u, v)]
        momentum = state_slopes(tree, q, v, a, poses, chains, maps)
        parts = [
            [[-row[c] for row in own] + [row[c] for row in rows] for c in range(nv)]
            for own, rows in zip((momentum.dq, momentum.dv), speeds)
        ]
        t.output("columns", self.rows.packed(*parts))
        self.s.parts["columns"] = t.program()

    def _slot(self, k: int, pole_is: list[Scalar], lam: list[Expr]) -> TouchSlopes:
        """The derivatives at contact k under its impulses lam."""
        slot, graph, step = self.s.robot.slots[k], lam[0].graph, self.s.robot.stepping
        body, sign = ground_body(slot.bodies)
        pole = Pole.of(graph, f"pole_{k}", 2)
        touch = touch_of(slot.touch, body, pole)
        rows, (U, V) = unit_wrenches(touch, pole.pose, 3, sign), pole.motions
        W = Force(ZERO, ZERO)
        for row, x in zip(rows, lam[3 * k : 3 * k + 3]):
            W = W + row * (x * (1.0 / self.h))
        w, before = [U.dot(row) for row in rows], graph.edge(V.dot(rows[0]))
        w[0] = w[0] + closing_speed(touch.dist, graph.expr(before), step)
        w = touch.slipping(w)
        by_place, others = wrench_slopes(pole, W, w)
        told_of = [
            *six_numbers(W),
            *(y for f in by_place for y in six_numbers(f)),
            *(y for row in others for y in row),
        ]
        told_of += [*(y for row in rows for y in six_numbers(row)), *tangents([w[0]], {before: 1.0})]
        told = put(graph, dict(enumerate(told_of)), dict(zip(pole.port.nodes, pole_is)))
        known = [told.get(i, 0.0) for i in range(len(told_of))]
        thirds = [known[i : i + 3] for i in range(42, 60, 3)]
        sixes = [known[i : i + 6] for i in range(60, 78, 6)]
        return TouchSlopes(BodyMap.of(known[:42]), thirds, sixes, known[78])

    # -- the solve ------------------------------------------------------------------------------------------

    def _response(self, s: StageTracer) -> None:
        """Writes the parts of h M^-1, and J L^-1."""
        free, nv = s.read("free"), self.nv
        M = self.s.factors.mapped(lambda x: of(free, x))
        self.inverse.tell(s, M, self.h)
        Y = [{M.order[k]: y for k, y in enumerate(row) if y != 0.0} for row in self.s.Y]
        self.met = [tuple(sorted(row)) for row in Y]
        s.write_some("Y", {r * nv + k: of(free, y) for r, row in enumerate(Y) for k, y in row.items()})

    def respond(self, c: StageCalls) -> None:
        """K = M^-1 J' P, and T = h M^-1 + h K J M^-1: what tau does."""
        n, nv = self.n, self.nv
        K, T, free, P, Y, pushed = (Tile(c.at(x), m) for x, m in (("K", n), ("T", nv), ("free_T", nv), ("P", n),
                                                                  ("Y", nv), ("pushed", nv)))  # fmt: skip
        c.call("response")
        self.inverse.write(c, free if n else T)
        if n == 0:
            return
        for first, count, own in equals(self.met):
            out, left = (x.part(c.l, first, 0) for x in (pushed, Y))
            self.inverse.multiply(c, out, left, count, [(k, k) for k in own])
        for routine in ("normal", "factorise"):
            c.run(routine)
        c.call("sides")
        self._divide(c)
        write_product(c, K, nv, n, [Summand(Tile(pushed.base, 1, nv), P, [(0, 0, n)])])
        write_product(c, T, nv, nv, [Summand(K, pushed, [(0, 0, n)])], free)


def _added(a: BodyMap, b: BodyMap) -> BodyMap:
    """The sum of the wrenches of two contacts of a body, and of their derivatives by place."""
    both = [[x + y for x, y in zip(c, d)] for c, d in zip(a.by_place, b.by_place)]
    return BodyMap(a.wrench + b.wrench, both)
