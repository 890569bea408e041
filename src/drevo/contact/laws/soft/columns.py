"""The whole Jacobian of a step under the soft law: the columns of dR/dx beside the recursion of the derivatives.

At the accelerations a of a step R(x, a) = ID(x, a) - tau - p - J^T F - joints is zero, and a changes by
-H^-1 dR/dx, with the matrix H of Newton's method, inverted once for all columns. ID changes by the pairs of
columns of `mechanics.formalisms.khalil_derivatives`, contacts by what `touched` says of their bodies. Where
dampers are in the matrix of the step, (M + h B) c = M a, and c changes by that of M a: so does the step itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ....codegen.graph.derivative import tangents
from ....codegen.graph.node import Expr, Graph
from ....codegen.graph.program import Input
from ....codegen.graph.rebuild import part_of_graph
from ....codegen.llvm.dense.products import Summand, Tile, write_product
from ....codegen.llvm.stages import StageCalls
from ....compiler.tracer import nodes_of, unknowns
from ....mechanics.algorithms.inertia_matrix import Factors, SparseRows
from ....mechanics.algorithms.kinematics import WORLD_POSE, body_poses
from ....mechanics.algorithms.passive import passive_slopes
from ....mechanics.formalisms.khalil_derivatives import Derivatives, body_sweep, columnwise, empty
from ....mechanics.joints import Force
from ....mechanics.scalar import Matrix, Scalar, Vector, dot
from ....mechanics.spatial import ZERO, Vec, skew
from ....mechanics.tree import Tree
from ...inverse import InverseBlocks
from ...packing import of
from ...response import ResponseRows
from ...runs import stretches
from ...touched import (
    Chain,
    Pole,
    Poses,
    chain_of,
    ground_body,
    pole_values,
    six_numbers,
    squared_by,
    touch_of,
    unit_wrenches,
    wrench_slopes,
)
from .newton import symmetric_of
from .stages import HERE, Evaluation, StageTracer, carried_rates, free_joints

MAP = 6 + 3 * 36  # of a body: the wrench of its contacts; by its place, its rate and its acceleration, by columns


def block_of(graph: Graph, name: str, size: int) -> tuple[Input, list[Expr]]:
    """A block as an input of a program."""
    x = unknowns(graph, name, size)
    return Input(name, (size,), nodes_of(x)), x


class BodyMap(NamedTuple):
    """The wrench of a body's contacts, about its pole along the world's axes, and how it changes, by columns of
    six numbers: with its place and with motions, of which the first is its rate."""

    wrench: Force
    by_place: Matrix
    by_motion: tuple[Matrix, ...] = ()

    @classmethod
    def of(cls, x: Sequence[Scalar]) -> BodyMap:
        six = [list(x[k : k + 6]) for k in range(6, len(x), 6)]
        motions = tuple(six[k : k + 6] for k in range(6, len(six), 6))
        return cls(Force(Vec(*x[:3]), Vec(*x[3:6])), six[:6], motions)


class StepColumns:
    """Adds to an evaluation the stages of its Jacobian; every slot is of one body with the ground."""

    def __init__(self, e: Evaluation) -> None:
        self.e, self.tree, self.nv, self.graph = e, e.tree, e.nv, e.t.graph
        self.damped = bool(e.damping)
        self.bodies = sorted({ground_body(x.bodies)[0] for x in e.problem.slots})
        given = {p.name: p.nodes for p in e.t.inputs}
        self.q, self.v = ([Expr(self.graph, 2 * n) for n in given[k]] for k in ("Q", "V"))
        self.poses = dict(enumerate(body_poses(self.tree, self.q))) | {-1: WORLD_POSE}
        e.sizes |= {f"map_{b}": MAP for b in self.bodies} | {f"pole_{b}": 24 for b in self.bodies}
        e.sizes["c"] = e.nv
        self.rows = ResponseRows(self.tree, e.sizes, e.problem.step, e.nv * self.damped)
        a = block_of(self.graph, "a", e.nv)
        self.chains = {b: chain_of(self.tree, self.poses, b, (self.v, a[1])) for b in self.bodies}
        self._poles(a[0])
        for k in range(len(e.contacts)):
            self._slot(k)
        e.sizes |= dict.fromkeys(("held", "taken"), e.nv**2 if self.damped else 1)
        self.inverses = [InverseBlocks(x, e.sizes, e.nv) for x in ("H", "D")[: 1 + self.damped]]
        self.add("response", self._response)
        if self.damped:
            self.add("dampers", self._dampers)
        self._columns(*a)
        self.add("turns", self._turns)

    def add(self, name: str, write: Callable[[StageTracer], None]) -> None:
        s = StageTracer(name, self.e.sizes)
        write(s)
        self.e.parts[name] = s.t.program()

    def put(self, name: str, inputs: Sequence[Input], outputs: Mapping[str, Sequence[Scalar]]) -> None:
        """A stage over the graph of the dynamics."""
        state = [p for p in self.e.t.inputs if p.name in ("Q", "V")]
        edges = {k: [self.graph.edge(x) for x in values] for k, values in outputs.items()}
        self.e.parts[name] = part_of_graph(name, self.graph, (*state, *inputs), edges, ())

    # -- contacts -------------------------------------------------------------------------------------------

    def _poles(self, a: Input) -> None:
        found = {f"pole_{b}": pole_values(self.poses[b], x.motions) for b, x in self.chains.items()}
        if found:
            self.put("poles", [a], found)

    def _slot(self, k: int) -> None:
        """Makes the stage in which a slot adds its wrench and its derivatives to the map of its body."""
        e, x, at, slot = self.e, self.e.contacts[k], self.e.records[k], self.e.problem.slots[k]
        (body, sign), m, graph = ground_body(slot.bodies), x.group.size, Graph()
        pole = Pole.of(graph, f"pole_{body}", 2)
        touch = touch_of(slot.touch, body, pole)
        rows = unit_wrenches(touch, pole.pose, m, sign)
        y0, packed = unknowns(graph, "y", m), unknowns(graph, "S", m * (m + 1) // 2)
        here = [Input(f"{HERE}[{i}]", (len(z),), nodes_of(z)) for i, z in ((at.y, y0), (at.S, packed))]
        S, (V, A) = symmetric_of(x, iter(packed)), pole.motions
        ref, D = e.wanted(slot, touch.dist - slot.soft.margin, touch.slipping([V.dot(row) for row in rows]))
        far = [A.dot(row) - r - y for row, r, y in zip(rows, ref, y0)]
        f = [held - dot(row, far) for held, row in zip(x.group.answer(y0, D).force, S)]
        W = Force(ZERO, ZERO)
        for row, y in zip(rows, f):
            W = W + row * y
        gains = [e.wanted(slot, 0.0, [float(i == j) for j in range(m)])[0][i] for i in range(m)]
        still = e.wanted(slot, 0.0, [0.0] * m)[0]
        by_rate = [[-(row[j] * (still[j] - gains[j])) for j in range(m)] for row in S]
        values = [*six_numbers(W), *(y for force in wrench_slopes(pole, W)[0] for y in six_numbers(force))]
        for part in (by_rate, [[-y for y in row] for row in S]):
            values += [y for column in squared_by(rows, part, rows) for y in column]
        old = block_of(graph, f"map_{body}", MAP)
        added = {f"map_{body}[{i}]": [graph.edge(o + y)] for i, (o, y) in enumerate(zip(old[1], values))
                 if isinstance(y, Expr) or y != 0.0}  # fmt: skip
        inputs = (pole.port, *here, old[0])
        e.parts[f"slopes_{k}"] = part_of_graph(f"slopes_{k}", graph, inputs, added, ())

    # -- the dynamics ---------------------------------------------------------------------------------------

    def _columns(self, port: Input, a: list[Expr]) -> None:
        """-dR/dq and -dR/dv by columns, and dM/dq times what dampers take off the accelerations."""
        tree, maps = self.tree, {b: block_of(self.graph, f"map_{b}", MAP) for b in self.bodies}
        told = {b: BodyMap.of(x) for b, (_, x) in maps.items()}
        found = state_slopes(tree, self.q, self.v, a, self.poses, self.chains, told)
        self._rows(found, a)
        inputs, nv = [port, *(p for p, _ in maps.values())], self.nv
        more: Matrix = [[0.0] * nv for _ in range(nv)]
        if self.damped:
            held, kept = block_of(self.graph, "c", nv)
            inputs.append(held)
            rest, still = [x - y for x, y in zip(a, kept)], [0.0] * nv
            more = swept(tree.replace(gravity=ZERO), self.q, still, rest, {}).dq
        by_q = [[-row[k] for row in found.dq] + [row[k] for row in more] for k in range(nv)]
        by_v = [[-row[k] for row in found.dv] for k in range(nv)]
        self.put("columns", inputs, {"columns": self.rows.packed(by_q, by_v)})

    def _rows(self, found: Derivatives, a: Vector) -> None:
        """Subtracts the derivatives of the forces of limits, dry friction and couplings of joints."""
        main = self.e.main.values(self.graph)
        places = {o.v + k: o.q + k for o in self.tree.owners() if o.nq == o.nv for k in range(o.nv)}
        for x in self.e.rows:
            B = [[of(main, y) for y in row] for row in x.B]
            y = [dot(row, [a[r] for r in x.rates]) - of(main, z) for row, z in zip(B, x.ref)]
            f = x.group.answer(y, [of(main, d) for d in x.D]).force
            push = [dot([row[i] for row in B], f) for i in range(len(x.rates))]
            for c in x.rates:
                leaves = [(self.v[c], found.dv)]
                leaves += [(self.q[places[c]], found.dq)] if c in places else []
                for at, out in leaves:
                    for r, d in zip(x.rates, tangents(push, {at.edge: 1.0})):
                        out[r][c] = out[r][c] - d

    # -- the solve ------------------------------------------------------------------------------------------

    def _response(self, s: StageTracer) -> None:
        """Writes the parts of h H^-1, with dampers h (M + h B)^-1 too; and c, how rates change over h."""
        e, h = self.e, self.e.problem.step
        self.inverses[0].tell(s, e.newton.factors(s, e.newton.within), h)
        if self.damped:
            M = e.inertia(s)
            for (r, c), b in e.damping.items():
                M[r][c] = M[r].get(c, 0.0) + h * of(s.read("main"), b)
            damped = Factors(M, e.order)
            s.write(c=damped.solve(e.times(e.inertia(s), s.read("a"))))
            self.inverses[1].tell(s, damped, h)

    def _dampers(self, s: StageTracer) -> None:
        """-B h H^-1."""
        held, main, nv = s.read("held"), s.read("main"), self.nv
        own = {k: of(main, b) for (k, _), b in self.e.damping.items()}
        s.write_some("taken", {k * nv + c: -(b * held[k * nv + c]) for k, b in own.items() for c in range(nv)})

    def respond(self, c: StageCalls) -> None:
        """T, what tau does: of M in M + h B the share 1 - h (M + h B)^-1 B."""
        c.call("response")
        T, K, held, taken = (Tile(c.at(x), self.nv) for x in ("T", "K", "held", "taken"))
        if not self.damped:
            self.inverses[0].write(c, T)
            return
        for x, out in zip(self.inverses, (held, K)):
            x.write(c, out)
        c.call("dampers")
        own = stretches((k, k) for k in sorted(k for k, _ in self.e.damping))
        write_product(c, T, self.nv, self.nv, [Summand(K, taken, own)], held)

    def _turns(self, s: StageTracer) -> None:
        h, c = self.e.problem.step, s.read("c" if self.damped else "a")
        self.rows.turn(s, s.read("Q"), [x + h * y for x, y in zip(s.read("V"), c)])


def state_slopes(
    tree: Tree,
    q: Vector,
    v: Vector,
    a: Vector,
    poses: Poses,
    chains: Mapping[int, Chain],
    maps: Mapping[int, BodyMap],
) -> Derivatives:
    """Derivatives of ID(q, v, a) - p - J^T F by q and v, accelerations a of free joints along axes that stand."""
    wrenches = {}
    for b, x in maps.items():
        R = poses[b].R.T
        wrenches[b] = Force(R @ x.wrench.n, R @ x.wrench.f)
    found = swept(tree, q, v, [x - y for x, y in zip(a, carried_rates(tree, v))], wrenches)
    turned_rates(tree, v, found)
    for r, c, by_q, by_v in passive_slopes(tree, q, v):
        found.dq[r][c], found.dv[r][c] = found.dq[r][c] - by_q, found.dv[r][c] - by_v
    for b, x in maps.items():
        pushed(found, chains[b], x)
    return found


def swept(tree: Tree, q: Vector, v: Vector, a: Vector, wrenches: Mapping[int, Force]) -> Derivatives:
    """Derivatives of ID less the efforts of wrenches that go along with their bodies, in those bodies' axes."""
    out = empty(tree)
    for _ in columnwise(body_sweep(tree, q, v, a, wrenches), out):
        pass
    return out


def turned_rates(tree: Tree, v: Vector, found: Derivatives) -> None:
    """Accelerations of free joints along axes that stand lack w x v, which their rotors do not feel."""
    for _, k in free_joints(tree):
        M: SparseRows = found.M
        lin, ang = skew(Vec(*v[k : k + 3])), skew(Vec(*v[k + 3 : k + 6]))
        for r in range(tree.nv):
            row = [M[max(r, k + i)].get(min(r, k + i), 0.0) for i in range(3)]
            row = [x - tree.armature.get(r, 0.0) if r == k + i else x for i, x in enumerate(row)]
            for c in range(3):
                found.dv[r][k + c] = found.dv[r][k + c] - dot(row, [ang[i][c] for i in range(3)])
                found.dv[r][k + 3 + c] = found.dv[r][k + 3 + c] + dot(row, [lin[i][c] for i in range(3)])


def pushed(found: Derivatives, chain: Chain, x: BodyMap) -> None:
    """Subtracts the derivatives of the contact wrench of a body from dR/dq and dR/dv."""
    for c, column in chain.columns.items():
        S, carried = six_numbers(column.S), [six_numbers(y) for y in column.carried]
        pairs = [(x.by_place, S), *zip(x.by_motion, carried)]
        by_q = [sum((dot([m[k][r] for k in range(6)], y) for m, y in pairs), 0.0) for r in range(6)]
        by_v = [dot([m[k][r] for k in range(6)], S) for m in x.by_motion[:1] for r in range(6)]
        for r, row in chain.columns.items():
            s = six_numbers(row.S)
            found.dq[r][c] = found.dq[r][c] - dot(s, by_q)
            found.dv[r][c] = found.dv[r][c] - dot(s[: len(by_v)], by_v)
