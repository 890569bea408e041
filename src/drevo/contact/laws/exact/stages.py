"""The stages of a step under the exact law: its problem, a sweep, the residual, Newton's method, the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate as accumulated
from typing import Any, NamedTuple

from ....codegen.graph.node import Expr
from ....codegen.graph.program import Program
from ....codegen.graph.rebuild import part_of_graph
from ....compiler.tracer import Tracer
from ....mechanics.algorithms.actuators import next_activations
from ....mechanics.algorithms.coulomb import (
    Block,
    Carriers,
    ContactLaw,
    ImpulseProblem,
    RowLaw,
    blocks,
    gauss_seidel,
    natural_map,
    parted,
    residual,
)
from ....mechanics.algorithms.coulomb_interior import (
    TOLD,
    BlockBarrier,
    aimed,
    barriers,
    begun,
    impulses_at,
    kind,
    stepped,
)
from ....mechanics.algorithms.coulomb_newton import (
    MIN_DECREASE,
    CarrierFactors,
    carried_step,
    carrier_factors,
    few_carriers,
    linearised,
    stabiliser,
)
from ....mechanics.algorithms.delassus import ContactSlot, free_motion, moved
from ....mechanics.algorithms.kinematics import Poses, placed_bodies
from ....mechanics.scalar import Scalar, dot, maximum, minimum, where
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import placed_block
from ...packing import Pack, Packed, of
from ...parameters import Frictions, judged, numbers_of_model, with_sizes
from ...signals import ACTIVATION, TOUCH_NUMBERS, driven_by
from ..soft.stages import StageTracer
from .problem import TouchingRobot, found_slots
from .solve import DAMPING_FALL, DAMPING_RISE

NO_RESIDUAL = 1e300  # of a residual: there is none yet
PackedBlock = tuple[type[Any], list[Any]]
SCALAR_NAMES = ("aim", "moving", "left", "least", "damping", "share", "taken", "open", "square", "beyond", "stiff",
           "eased", "failed", "first", "parting", "change")  # fmt: skip


class PackedCarriers(NamedTuple):
    """Those of a problem; S: its lower triangle."""

    rows: list[dict[int, Packed]]
    S: list[list[Packed]]


class MoreauStages:
    """`parts` by name and `sizes` of the blocks between them; of several sets in one function by a prefix.

    "free": the problem and what the end needs of the dynamics; "lam": impulses, "best": the best of them so far,
    "pushing": those that move bodies, with what parts them.
    only: the end writes those rows of the batch alone for which a set before this one has found joints beyond the
    bounds that it looks at in the end; the name of that number.
    """

    def __init__(self, robot: TouchingRobot, tolerance: float, prefix: str = "", only: str = "") -> None:
        self.robot, self.tolerance, self.prefix, self.only = robot, tolerance, prefix, only
        self.parts: dict[str, Program] = {}
        self.sizes: dict[str, int] = {}
        t = self.t = Tracer("free", robot.model, parameters=numbers_of_model(robot.parameters), acting=True)
        q, v, self.efforts, self.drives = driven_by(t, robot.model, self.sizes, robot.controls, robot.stepping.h)
        self.tree = t.tree
        self._declare_free(t, q, v, self.efforts)
        n, laws = len(self.b), len(self.laws)
        self.rows, self.padded = n, -(-n // 4) * 4
        self.state = [len(kind(x).start(x, 1.0, 1.0)) for x in self.laws]  # numbers of its blocks on the path
        self.told = [TOLD[kind(x)] for x in self.laws]
        made = {"lam": n, "u": n, "du": n, "L": len(self.carriers.S) ** 2, "E": len(self.carriers.S), "best": n,
               "pushing": n, "search": laws, "going": 1, "way": self.padded, "J": self.padded * n, "F": n,
               "A": self.padded * self.padded, "inverse": n, "changes": n, "row": self.padded, "curved": 3 * laws,
               "path": sum(self.state), "told": sum(self.told)} | dict.fromkeys(SCALAR_NAMES, 1)  # fmt: skip
        self.sizes |= {self.named(k): max(1, size) for k, size in made.items()}
        self.sizes |= dict.fromkeys(("q", "Q", "q1"), t.tree.nq)
        self.sizes |= dict.fromkeys(("v", "V", "v1", "tau"), t.tree.nv)
        self.sizes |= {"forces": 3 * len(robot.slots), "residual": 1, "now": 1} | ({only: 1} if only else {})
        self.sizes |= {"touches": TOUCH_NUMBERS * len(robot.slots)} if robot.sensors else {}
        if not prefix:
            self._add("begin", self.begin)
            self._add("next", self.next)
        stages = {
            "path_begin": self.path_begin, "barrier": self.barrier, "predict": self.predict, "follow": self.follow,
            "path_end": self.path_end, "sweep": self.sweep, "judge": self.judge, "trial": self.trial,
            "advance": self.advance, "keep": self.keep, "ease": self.ease, "begin_parting": self.begin_parting,
            "part": self.part, "tell": self.tell, "end": self.end,
        }  # fmt: skip
        few = {"carry": self.carry, "carried": self.carried}  # where few freedoms carry the contacts
        for name, write in (stages | (few if self.few else {"linear": self.linear, "moves": self.moves})).items():
            self._add(name, write)

    def named(self, block: str) -> str:
        return self.prefix + block

    def _add(self, name: str, write: Any) -> None:
        s = StageTracer(name, self.sizes)
        write(s)
        self.parts[self.named(name)] = s.t.program()

    # -- the problem ----------------------------------------------------------------------------------------

    def _declare_free(self, t: Tracer, q: Sequence[Expr], v: Sequence[Expr], tau: Sequence[Scalar]) -> None:
        self.sized, sizes = with_sizes(self.robot.model, t, self.robot.parameters)
        if sizes:
            self.robot = self.robot.sized({x.name: x for x in self.sized.geoms})
        r, pack, drives = self.robot, Pack(), self.drives
        self.act_rates = pack.put_all(drives.rates_over_step if drives else ())
        with r.floor.traced(t, r.parameters):
            slots, frictions = self._slots(t)
            acting = judged(frictions.made.values(), tau, sizes)
            found = free_motion(t.tree, q, v, acting, slots, r.joints, r.stepping, r.checked)
        t.listed = r.parameters
        self.symbols = t.parameters
        if r.searched:
            self.parts["placing"] = self._placing(t, placed_bodies(t.tree, q))
        put, p = pack.put_all, found.problem
        self.G, self.b = [put(row[: i + 1]) for i, row in enumerate(p.G)], put(p.b)
        assert p.carriers
        self.few = few_carriers(p)
        S = [put(row[: i + 1]) for i, row in enumerate(p.carriers.S)] if self.few else []
        self.carriers = PackedCarriers([{k: pack.put(x) for k, x in row.items()} for row in p.carriers.rows], S)
        self.laws = [type(x)(x.at, *put(x[1:])) for x in p.laws]
        self.push = {k: pack.put(x) for k, x in p.push.items()}
        self.prepared = [_packed(x, pack) for x in blocks(p)]
        by_place = [law.bound for x, law in zip(slots, p.laws) if callable(x.mu) and isinstance(law, ContactLaw)]
        self.vf, self.Y = put(judged(by_place, found.vf)), [put(row) for row in found.rows]
        self.factors = found.factors.mapped(pack.put)
        self.frames = [put(x for axis in a.frame for x in axis) for a in found.touches]
        self.points = [put(a.point) if r.sensors else [] for a in found.touches]
        self.checked = [(list(row), put(row.values()), put(bounds)) for row, *bounds in found.bounds]
        t.output(self.named("free"), pack.values(t.graph))
        self.sizes[self.named("free")] = len(pack)
        self.parts[self.named("free")] = t.program()

    def _slots(self, t: Tracer) -> tuple[Sequence[ContactSlot], Frictions]:
        """With places that are searched for, and symbols for friction that is a parameter; that by place stays."""
        pairs, slots = self.robot.searched, found_slots(t, self.robot)
        self.found = list(accumulated((pair.most for pair in pairs), initial=0))  # where each pair's places begin
        self.sizes |= {"places": PLACE_NUMBERS * self.found[-1], "near": 1} if pairs else {}
        plain = [(0.0 if callable(x.mu) else x.mu, x.by) for x in slots]
        made = Frictions(t, self.robot.parameters, plain)
        return [x if callable(x.mu) else x._replace(mu=made.of(x.mu, x.by)) for x in slots], made

    def _placing(self, t: Tracer, poses: Poses) -> Program:
        """The stage before the search, which places the solids."""
        ends = [solid for pair in self.robot.searched for solid in pair.solids]
        numbers, self.geom_numbers = placed_block(ends, poses)
        self.sizes["placed"], placed = len(numbers), [t.graph.edge(x) for x in numbers]
        return part_of_graph("placing", t.graph, tuple(t.inputs[:1]), {"placed": placed}, self.symbols)

    def read(self, s: StageTracer, block: str) -> list[Expr]:
        return s.read(self.named(block))

    def number(self, s: StageTracer, block: str) -> Expr:
        return self.read(s, block)[0]

    def write(self, s: StageTracer, **values: Any) -> None:
        s.write(**{self.named(k): x for k, x in values.items()})

    def problem(self, s: StageTracer) -> ImpulseProblem:
        """As it is asked, or eased."""
        p, eased = self.asked(s), self.number(s, "eased")
        other = p.eased()
        b = [where(eased > 0.0, x, y) for x, y in zip(other.b, p.b)]
        laws = [
            x
            if isinstance(x, ContactLaw)
            else x._replace(
                **{
                    k: where(eased > 0.0, getattr(y, k), z)
                    for k in ("lower", "upper")
                    if isinstance(z := getattr(x, k), Expr)
                }
            )
            for x, y in zip(p.laws, other.laws)
        ]
        return p._replace(b=b, laws=laws)

    def asked(self, s: StageTracer) -> ImpulseProblem:
        free = self.read(s, "free")
        n = range(len(self.b))
        G = [[of(free, self.G[max(i, j)][min(i, j)]) for j in n] for i in n]
        laws: list[RowLaw] = [type(x)(x.at, *(of(free, y) for y in x[1:])) for x in self.laws]
        push = {k: of(free, x) for k, x in self.push.items()}
        return ImpulseProblem(G, [of(free, x) for x in self.b], laws, push=push)

    def begin(self, s: StageTracer) -> None:
        """Q and V, the state of the step at hand."""
        q = s.read("q")
        for o in self.tree.owners():
            if o.nq > o.nv:
                s.t.require_unit(q[o.q + o.nq - 4 : o.q + o.nq])
        acts = {ACTIVATION: s.read("act")} if self.act_rates else {}
        s.write(Q=q, V=s.read("v"), residual=0.0, **acts)

    def next(self, s: StageTracer) -> None:
        """On from the state after a step; the residual is the largest."""
        acts, r = dict[str, list[Scalar]](), self.robot
        if self.act_rates:
            rates = [of(self.read(s, "free"), x) for x in self.act_rates]
            acts["act1"] = acts[ACTIVATION] = next_activations(r.model, s.read(ACTIVATION), rates, r.stepping.h)
        residual = maximum(s.number("residual"), s.number("now"))
        s.write(Q=s.read("q1"), V=s.read("v1"), residual=residual, **acts)

    # -- the solver -----------------------------------------------------------------------------------------

    def sweep(self, s: StageTracer) -> None:
        """Does one Gauss-Seidel sweep over the impulses, of the lanes that go on."""
        free, lam, search = self.read(s, "free"), self.read(s, "lam"), self.read(s, "search")
        going = self.number(s, "going") > 0.0
        prepared = [_unpacked(x, free) for x in self.prepared]
        new, after, change = gauss_seidel(self.problem(s), prepared, lam, search)
        self.write(s, lam=[where(going, x, y) for x, y in zip(new, lam)])
        kept = [
            where(going, x, y) if isinstance(law, ContactLaw) else y for x, y, law in zip(after, search, self.laws)
        ]
        self.write(s, search=kept, going=where(going, where(change > self.tolerance, 1.0, 0.0), 0.0))

    def path_begin(self, s: StageTracer) -> None:
        """Writes the numbers from which the path of the interior-point method starts."""
        self.write(s, path=[y for x in begun(self.problem(s)) for y in x])

    def path_end(self, s: StageTracer) -> None:
        self.write(s, lam=impulses_at(self.problem(s), self._blocks(s, "path", self.state)))

    def barrier(self, s: StageTracer) -> None:
        """Begins a step of the interior-point method: A and the side of the prediction; the lanes that go on."""
        p, path = self.problem(s), self._blocks(s, "path", self.state)
        found = barriers(p, path)
        for law, x in zip(p.laws, found):
            for i, row in enumerate(x.firmness(p.trace(law)), law.at):
                for j, y in enumerate(row, law.at):
                    p.G[i][j] = p.G[i][j] + y
        A = {i * self.padded + j: p.G[i][j] for i in range(self.rows) for j in range(i + 1)}
        s.write_some(self.named("A"), A)
        self.write(
            s, told=[y for x in found for y in x.numbers()], way=self._side(y for x in found for y in x.side())
        )
        left = residual(self.problem(s), impulses_at(p, path))
        self.write(s, moving=where(left > self.tolerance, self.number(s, "moving"), 0.0))

    def _side(self, values: Iterable[Scalar]) -> list[Scalar]:
        return [*values, *[0.0] * (self.padded - self.rows)]

    def _blocks(self, s: StageTracer, block: str, sizes: Sequence[int]) -> list[list[Expr]]:
        """A block by laws."""
        values = iter(self.read(s, block))
        return [[next(values) for _ in range(n)] for n in sizes]

    def _found(self, s: StageTracer) -> tuple[ImpulseProblem, list[list[Expr]], list[BlockBarrier]]:
        p, path = self.problem(s), self._blocks(s, "path", self.state)
        told = self._blocks(s, "told", self.told)
        return p, path, [kind(law).known(law, x, y) for law, x, y in zip(p.laws, path, told)]

    def predict(self, s: StageTracer) -> None:
        """From the step that aims at the end to the side of that which is gone."""
        p, _, found = self._found(s)
        aim, curved = aimed(p, found, self.read(s, "way"))
        side = [y for x, c in zip(found, curved) for y in x.side(aim, c)]
        self.write(s, aim=aim, way=self._side(side), curved=[y for c in curved for y in (*c, 0.0, 0.0, 0.0)[:3]])

    def follow(self, s: StageTracer) -> None:
        """A step of the lanes that go on."""
        p, path, found = self._found(s)
        curved = self._blocks(s, "curved", [3] * len(found))
        new, inside = stepped(p, path, found, self.read(s, "way"), self.number(s, "aim"), curved)
        moving = where(inside > 0.0, self.number(s, "moving"), 0.0)
        self.write(s, moving=moving,
                   path=[where(moving > 0.0, a, b) for x, y in zip(new, path) for a, b in zip(x, y)])  # fmt: skip

    def judge(self, s: StageTracer) -> None:
        """The velocities and the residual; going: lanes for which it is too large, and was in all attempts."""
        p, lam, least = self.problem(s), self.read(s, "lam"), self.number(s, "least")
        u = p.velocity(lam, range(self.rows))
        left = residual(p._replace(u=u), lam)
        going = where(least > self.tolerance, where(left > self.tolerance, 1.0, 0.0), 0.0)
        self.write(s, left=left, going=going, u=u)

    def carry(self, s: StageTracer) -> None:
        """The factors of S."""
        free = self.read(s, "free")
        n = range(len(self.carriers.S))
        S = [[of(free, self.carriers.S[max(i, j)][min(i, j)]) for j in n] for i in n]
        found = carrier_factors(Carriers([], S))
        self.write(s, L=[found.L[i][j] if j < i else 0.0 for i in n for j in n], E=found.E)

    def carried(self, s: StageTracer) -> None:
        """A step in the freedoms of what carries the contacts."""
        free, E = self.read(s, "free"), self.read(s, "E")
        n, values = len(E), self.read(s, "L")
        L = [[*values[n * i : n * i + i], 1.0] for i in range(n)]
        rows = [{k: of(free, x) for k, x in row.items()} for row in self.carriers.rows]
        way, du, square = carried_step(
            self._known(s), CarrierFactors(rows, L, E), self.read(s, "lam"), self.number(s, "damping"),
            self.number(s, "stiff"),
        )  # fmt: skip
        self.write(s, way=self._side(way), du=du, square=square)
        self._open(s)

    def _known(self, s: StageTracer) -> ImpulseProblem:
        """The problem at the impulses that have been judged."""
        return self.problem(s)._replace(u=self.read(s, "u"))

    def _open(self, s: StageTracer) -> None:
        """A whole step is tried by the lanes that go on."""
        self.write(s, open=self.number(s, "going"), share=1.0, taken=0.0)

    def linear(self, s: StageTracer) -> None:
        """F, its Jacobian by columns, what is added to the diagonal, and which lanes want a step."""
        p, lam = self._known(s), self.read(s, "lam")
        F, J = linearised(p, lam, self.number(s, "stiff"))
        square = dot(F, F)
        columns = [row[k] for k in range(self.rows) for row in J]
        columns += [0.0] * ((self.padded - self.rows) * self.rows)
        self.write(s, F=F, J=columns, square=square, changes=stabiliser(p, self.number(s, "damping"), square))
        self._open(s)

    def moves(self, s: StageTracer) -> None:
        """Writes du, the change of u in a whole step."""
        way = self.read(s, "way")[: self.rows]
        self.write(s, du=[dot(row, way) for row in self.problem(s).G])

    def trial(self, s: StageTracer) -> None:
        """Tests if the present share of a step lowers |F|^2 enough, then halves the share."""
        lam, way, u, du = (self.read(s, x) for x in ("lam", "way", "u", "du"))
        share, opened = self.number(s, "share"), self.number(s, "open")
        there = self.problem(s)._replace(u=[x + share * y for x, y in zip(u, du)])
        found = natural_map(there, [x + share * y for x, y in zip(lam, way)], self.number(s, "stiff"))
        enough = dot(found, found) < self.number(s, "square") * (1.0 - MIN_DECREASE * share)
        good = where(opened > 0.0, where(enough, 1.0, 0.0), 0.0)
        self.write(
            s, taken=where(good > 0.0, share, self.number(s, "taken")), open=opened - good, share=0.5 * share
        )

    def advance(self, s: StageTracer) -> None:
        lam, way, taken = self.read(s, "lam"), self.read(s, "way"), self.number(s, "taken")
        damping = self.number(s, "damping")
        whole = where(taken < 1.0, where(taken > 0.0, 1.0, DAMPING_RISE), DAMPING_FALL)
        moved = [where(taken > 0.0, x + taken * y, x) for x, y in zip(lam, way)]
        self.write(s, damping=damping * whole, lam=moved)

    def keep(self, s: StageTracer) -> None:
        """The best so far, where lanes go on from; going: those that have not yet converged."""
        lam, best, left, least = (self.read(s, k) for k in ("lam", "best", "left", "least"))
        better = where(least[0] > self.tolerance, where(left[0] < least[0], 1.0, 0.0), 0.0) > 0.0
        kept = [where(better, x, y) for x, y in zip(lam, best)]
        now = where(better, left[0], least[0])
        self.write(s, best=kept, lam=kept, least=now, going=where(now > self.tolerance, 1.0, 0.0))

    def ease(self, s: StageTracer) -> None:
        """Lanes in which something has to part, or that have not converged, begin again without that."""
        going, least, p = self.number(s, "going"), self.number(s, "least"), self.asked(s)
        again = maximum(going, where(p.parts() > 0.0, 1.0, 0.0)) if self.robot.stepping.splits else going
        self.write(s, pushing=self.read(s, "best"), failed=going, first=where(going > 0.0, 0.0, least))
        self.write(s, eased=again, going=again, least=where(again > 0.0, NO_RESIDUAL, least))

    def begin_parting(self, s: StageTracer) -> None:
        """Begins the sweeps of what parts without friction, which is added to the best."""
        self.write(s, lam=self.read(s, "best"), parting=self.number(s, "failed"), change=0.0)

    def part(self, s: StageTracer) -> None:
        """A sweep of the lanes that go on."""
        lam, parting = self.read(s, "lam"), self.number(s, "parting")
        new, change = parted(self.asked(s), self.read(s, "best"), lam)
        self.write(
            s, lam=[where(parting > 0.0, x, y) for x, y in zip(new, lam)],
            change=where(parting > 0.0, change, self.number(s, "change")),
            parting=where(parting > 0.0, where(change > self.tolerance, 1.0, 0.0), 0.0),
        )  # fmt: skip

    def tell(self, s: StageTracer) -> None:
        """The residual, and of lanes that had not converged what moves them: where they could not part, they rest,
        and the residual is of what was asked."""
        best, failed, least = self.read(s, "best"), self.number(s, "failed") > 0.0, self.number(s, "least")
        apart = where(self.number(s, "parting") > 0.0, 0.0, 1.0) > 0.0
        parted = where(apart, maximum(least, self.number(s, "change")), residual(self.asked(s), best))
        moves = [where(apart, x, y) for x, y in zip(self.read(s, "lam"), best)]
        pushing = [where(failed, x, y) for x, y in zip(moves, self.read(s, "pushing"))]
        kept = best if self.robot.stepping.splits else pushing
        told = where(failed, parted, maximum(least, self.number(s, "first")))
        self.write(s, best=kept, pushing=pushing, least=told)

    # -- the end --------------------------------------------------------------------------------------------

    def rates(self, s: StageTracer, impulses: str) -> list[Scalar]:
        """v+ of the impulses in a block."""
        free, lam = self.read(s, "free"), self.read(s, impulses)
        y = [dot([of(free, row[k]) for row in self.Y], lam) for k in range(self.tree.nv)]
        return [
            of(free, a) + b for a, b in zip(self.vf, self.factors.mapped(lambda x: of(free, x)).solve_lower(y))
        ]

    def end(self, s: StageTracer) -> None:
        """q1, v1, the forces and the residual."""
        free, lam, h = self.read(s, "free"), self.read(s, "best"), self.robot.stepping.h
        w, u = (self.rates(s, impulses) for impulses in ("pushing", "best"))
        q1, v1 = moved(self.tree, s.read("Q"), w, h, u)
        over, forces = 1.0 / h, list[Scalar]()
        for k, frame in enumerate(self.frames):
            axes = [of(free, x) for x in frame]
            forces += [over * dot(axes[i::3], lam[3 * k : 3 * k + 3]) for i in range(3)]
        beyond: Scalar = -1.0
        for rates, row, bounds in self.checked:
            factors = [of(free, x) for x in row]
            moves, speed = (dot(factors, [x[k] for k in rates]) for x in (w, u))
            for sign, bound in zip((1.0, -1.0), bounds):
                if isinstance(limit := of(free, bound), Expr):  # an infinite one is no node
                    eased = minimum(sign * limit, 0.0) if self.robot.stepping.splits else sign * limit
                    beyond = maximum(beyond, maximum(sign * (limit - moves), eased - sign * speed))
        made: dict[str, list[Scalar]] = {"q1": q1, "v1": v1, "forces": forces, "now": [self.number(s, "least")]}
        if self.robot.sensors:
            places = zip(self.points, self.frames)
            made["touches"] = [of(free, x) for point, frame in places for x in (*point, *frame[:3])]
        if self.only:
            flagged = s.number(self.only) > 0.0
            made = {k: [where(flagged, a, b) for a, b in zip(x, s.read(k))] for k, x in made.items() if x}
        else:
            self.write(s, beyond=beyond)
        s.write(**{k: x for k, x in made.items() if x})


def _packed(x: Block, pack: Pack) -> PackedBlock:
    return type(x), [pack.put_all(y) if isinstance(y, tuple) else pack.put(y) for y in x]


def _unpacked(x: PackedBlock, block: Sequence[Expr]) -> Block:
    kind, parts = x
    found: Block = kind(*(tuple(of(block, z) for z in y) if isinstance(y, list) else of(block, y) for y in parts))
    return found
