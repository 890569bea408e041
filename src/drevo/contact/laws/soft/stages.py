"""The stages of a step under the soft law run once an evaluation: dynamics, distances, constraint rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate as accumulated
from typing import Any, NamedTuple

from ....codegen.graph.node import Expr, Graph
from ....codegen.graph.ops import INPUT
from ....codegen.graph.program import Input, Parameter, Program
from ....codegen.graph.rebuild import part_of_graph
from ....codegen.lower.loops import CHOSEN_BLOCK, Place
from ....compiler.tracer import Tracer
from ....ground import LEVEL, Deciding, Uneven
from ....mechanics.algorithms.boxes import Proximity
from ....mechanics.algorithms.constraints import Kinematics
from ....mechanics.algorithms.delassus import MoreauStep
from ....mechanics.algorithms.inertia_matrix import (
    Factors,
    SparseRows,
    elimination_order,
    mass_matrix_rows,
    touched_last,
)
from ....mechanics.algorithms.inverse_dynamics import inverse_dynamics
from ....mechanics.algorithms.kinematics import Poses, placed_bodies
from ....mechanics.algorithms.passive import passive
from ....mechanics.scalar import Scalar, Vector, accumulate, dot, is_zero, maximum, sqrt, where
from ....mechanics.spatial import Vec
from ....mechanics.tree import Tree
from ....model.contact import Sensor
from ....model.description import Joint, Model, Tendon
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import placed_block
from ...packing import Pack, of
from ...pairs import LEAST_FRICTION, HeldGeom
from ...parameters import Frictions, judged, numbers_of_model, with_sizes
from ...signals import SensorStages, driven_by
from .couplings import Columns, LoopRow, Moves, SoftRow, closure, with_limits_paired
from .damping import DampingSlopes, dampers, damping_slopes
from .law import Equality, RowGroup, Softness
from .layout import PackedRows, SlotLayout, slip_numbers, slot_layout

PLACE_INPUT = "place"  # of a slot: what has been found of a place
FOUND_PREFIX = "found_"  # before the number of a pair's first slot: of that, where each place is a slot
LEAST_GAP_SQUARE = 1e-30  # of how far a loop is from closed, where its root is taken


class Slot(NamedTuple):
    """A place where two bodies may touch, -1 the ground, or some that are searched for.

    weight: inverse, of both bodies: of translations, of rotations. near: negative where they may touch, and
    cheaper than the distance. by: the geoms whose friction it has. most: of places. solids: those between which
    they are searched for; `touch` then takes what has been found too. held, place: both
    geoms, but of uneven ground, and the place among those of the pair.
    """

    bodies: tuple[int, int]
    touch: Callable[..., Proximity]
    group: RowGroup
    soft: Softness
    weight: tuple[Scalar, Scalar]
    near: Callable[[Poses], Scalar] | None = None
    by: Deciding = ()
    links: tuple[str, ...] = ()
    most: int = 1
    solids: tuple[HeldGeom, HeldGeom] | None = None
    held: tuple[HeldGeom, HeldGeom] | None = None
    place: int = 0

    def found(self, k: int) -> Place:
        """A port: what has been found of the place of slot k, in the block of its pair."""
        return Place(f"{FOUND_PREFIX}{k - self.place}", PLACE_NUMBERS * self.place)


@dataclass(frozen=True)
class SoftProblem:
    """The problem of a step under the soft law. step: s. method: "euler", "implicitfast" or "rk4". repeat: steps
    of one call, the efforts held. parameters: patterns of numbers that stay symbols. again: states the slots and
    rows of a model with symbols of a program in the making."""

    model: Model
    step: float
    slots: tuple[Slot, ...]
    rows: tuple[SoftRow | LoopRow, ...] = ()
    impratio: float = 1.0
    method: str = "euler"
    repeat: int = 1
    last: bool = False  # the results tell of the last evaluation too
    controls: bool = False  # of the actuators, in the place of efforts
    sensors: tuple[Sensor, ...] = ()  # that are read
    touches: bool = False  # the points and normals of places are told
    apart: bool = False  # each place that is searched for is a slot, as derivatives want it
    parameters: tuple[str, ...] = ()
    medium: Callable[..., list[Scalar]] | None = None  # what it exerts on the rates
    floor: Uneven = LEVEL
    moreau: MoreauStep | None = None  # of a step under the exact law
    again: Callable[..., SoftProblem] | None = None

    @property
    def safe(self) -> float:
        """The step that bounds the time constants of rows, unless the model's steps leave that out."""
        return 0.0 if "refsafe" in self.model.stepping.disabled else self.step


def without_rows(model: Model) -> Model:
    """A copy of the robot without the dry friction, and the limits of tendons, for which the law has rows."""

    def slippery(joint: Joint) -> Joint:
        d = joint.dynamics
        return replace(joint, dynamics=replace(d, friction=0.0)) if d and d.friction else joint

    def loose(x: Tendon) -> Tendon:
        x = replace(x, friction=0.0)
        return replace(x, lower=None, upper=None) if x.limit_solref else x

    return replace(model, joints=tuple(map(slippery, model.joints)), tendons=tuple(map(loose, model.tendons)))


# -- free joints: their rates are those of body axes, those of the law are of the world's ------------------


def free_joints(tree: Tree) -> list[tuple[int, int]]:
    """First coordinate and rate of free joints."""
    return [(o.q, o.v) for o in tree.owners() if o.kind == "free"]


def carried_rates(tree: Tree, v: Vector) -> list[Scalar]:
    """w x v of free joints: what accelerations in body axes lack to be those along the world's."""
    out: list[Scalar] = [0.0] * tree.nv
    for _, at in free_joints(tree):
        out[at : at + 3] = Vec(*v[at + 3 : at + 6]).cross(Vec(*v[at : at + 3]))
    return out


# -- rows --------------------------------------------------------------------------------------------------


def basis(s: Slot, touch: Proximity, columns: Columns) -> tuple[tuple[int, ...], list[list[Scalar]]]:
    """The rates that move a contact, and its rows over them: normal, tangents, spin, rolling."""
    found = columns.relative(*s.bodies, touch.point)
    directions = [(f, part) for part in ("v", "w") for f in touch.frame][: s.group.size]
    return tuple(sorted(found)), [
        [f.dot(getattr(found[r], part)) for r in sorted(found)] for f, part in directions
    ]


class StageTracer:
    """A program in the making over blocks."""

    def __init__(self, name: str, sizes: Mapping[str, int]) -> None:
        self.t, self.sizes, self.blocks = Tracer(name), sizes, dict[str, list[Expr]]()

    def read(self, block: str) -> list[Expr]:
        if block not in self.blocks:
            self.blocks[block] = self.t.input(block, self.sizes[block])
        return self.blocks[block]

    def here(self, first: int, count: int) -> list[Expr]:
        """Some values of the slot's block."""
        name = Place(CHOSEN_BLOCK, first)
        if name not in self.blocks:
            self.blocks[name] = self.t.input(name, count)
        return self.blocks[name]

    def number(self, block: str) -> Expr:
        return self.read(block)[0]

    def write(self, **values: Any) -> None:
        """Values of blocks; KeyError where there is no such block."""
        for block, x in values.items():
            if block not in self.sizes:
                raise KeyError(block)
            self.t.output(block, x if isinstance(x, (list, tuple)) else [x])

    def write_here(self, values: Mapping[int, Any]) -> None:
        """Parts of the slot's block, by where they begin."""
        for first, x in values.items():
            self.t.output(Place(CHOSEN_BLOCK, first), x if isinstance(x, (list, tuple)) else [x])

    def write_some(self, block: str, values: Mapping[int, Scalar]) -> None:
        """Some values of a block, by their places."""
        for k, x in values.items():
            self.t.output(Place(block, k), [x])


class Evaluation:
    """The first stages of a problem: `parts` by name and `sizes` of the blocks between them, which others add to.

    "main" holds M, the efforts that are left and the rows of joints; "gap" by slot what must be negative for it to
    be looked at; a slot's own block its rows.
    """

    looped = False  # over pairs of a kind

    def __init__(self, problem: SoftProblem) -> None:
        self.problem = problem
        self.parts: dict[str, Program] = {}
        self.opening: list[str] = []  # what a step begins with, at Q, V
        self.stages: list[str] = []  # what follows each evaluation of a step
        self.end: Callable[[StageTracer], None] | None = None  # writes the one that ends a step, of one evaluation
        self.newton: Any = None  # whose matrix is asked for
        self.noslip: Any = None  # the pass that follows, if there is one
        self.sensing: SensorStages | None = None  # what reads sensors
        self.strides: list[int] = []  # by slot, the values of a place in its block
        self.crossing: list[bool] = []  # by slot, whether it joins rates that M does not
        numbers = numbers_of_model(problem.parameters)
        t = self.t = Tracer("dynamics", without_rows(problem.model), acting=True, parameters=numbers)
        t.listed = problem.parameters
        sizes, problem = self._state_again(t), self.problem
        places = [(s.group.mu[0] if s.group.mu else 0.0, s.by) for s in problem.slots]
        self.frictions = Frictions(t, problem.parameters, places)
        tree = self.tree = t.tree
        self.nv, self.main = tree.nv, Pack()
        self.sizes = {"Q": tree.nq, "V": tree.nv, "tau": tree.nv}
        q, v, tau, self.drives = driven_by(t, problem.model, self.sizes, problem.controls, problem.step)
        self.rates = self.main.put_all(self.drives.rates if self.drives else ())
        self.mean_rates = {i: self.main.put(x) for i, x in (self.drives.mean_rates if self.drives else {}).items()}
        poses = placed_bodies(tree, q)
        columns = Columns(tree, poses)
        self.touched = Counter(r for s in problem.slots for r in columns.moving(*s.bodies))
        drag = problem.medium(columns, poses, v, t.symbols.own) if problem.medium else [0.0] * tree.nv
        self._dynamics(q, v, [x + y for x, y in zip(judged(self.frictions.made.values(), tau, sizes), drag)])
        moving = Kinematics(tree, q, v)
        rows = problem.rows if problem.moreau else with_limits_paired(problem.rows)  # in time both may be near
        self.rows = [self._row(r, *r.place(moving), v) for r in rows if not isinstance(r, LoopRow)]
        self.rows += [x for r in rows if isinstance(r, LoopRow) for x in self._loop(r, moving)]
        with problem.floor.traced(t, problem.parameters):
            self._slots(poses, columns, v)

    def _state_again(self, t: Tracer) -> list[Scalar]:
        """States the problem with its symbols: sizes of geoms, which it gives, and inverse weights."""
        self.sized, sizes = with_sizes(self.problem.model, t, self.problem.parameters)
        if t.symbols.made and (stated := self.problem.again and self.problem.again(self.sized, t=t)):
            self.problem = replace(self.problem, slots=stated.slots, rows=stated.rows)
        return sizes

    @property
    def symbols(self) -> tuple[Parameter, ...]:
        """The parameters."""
        return self.t.parameters

    def add(self, stages: Mapping[str, Callable[[StageTracer], object]]) -> None:
        """Adds stages, by name what writes each."""
        for name, write in stages.items():
            write(s := StageTracer(name, self.sizes))
            self.parts[name] = s.t.program()

    def add_by_slot(self, stages: Mapping[str, Callable[..., object]]) -> None:
        """Adds stages for each kind of slot, over the rows x of one and where its numbers stand."""
        for k in self.kinds:
            given = {"x": self.contacts[k], "at": self.records[k]}
            self.add({f"{name}_{k}": partial(write, **given) for name, write in stages.items()})

    def _law(self, s: Slot) -> RowGroup:
        group = s.group
        mu = self.frictions.of(group.mu[0], s.by) if group.mu else 0.0
        if not isinstance(mu, Expr):
            return group
        mu = maximum(mu, LEAST_FRICTION)
        return replace(group, mu=(mu, mu, *group.mu[2:]), mu0=mu * (1.0 / self.problem.impratio**0.5))

    def _dynamics(self, q: Vector, v: Vector, tau: Vector) -> None:
        """M a = rhs without contact, a of free joints along the world's axes as the body sees them."""
        tree = self.tree
        M = mass_matrix_rows(tree, q)
        self.order = touched_last(elimination_order(tree), M, self.touched)
        exact = "diagexact" in self.problem.model.stepping.enabled
        self.factors = Factors([dict(row) for row in M], self.order) if exact else None
        h = inverse_dynamics(tree.replace(armature={}), q, v, [-x for x in carried_rates(tree, v)])  # rotors coast
        slopes: DampingSlopes = {}
        if self.problem.method == "implicitfast":
            slopes = damping_slopes(tree, q, v, self.drives.slopes if self.drives else {})
        elif self.problem.method == "euler" and "eulerdamp" not in self.problem.model.stepping.disabled:
            slopes = dampers(tree, q, v)
        if self.problem.moreau:  # whose impulses are of an implicit step
            for (r, k), b in slopes.items():
                accumulate(M[r], k, self.problem.step * b)
            slopes = {}
        self.M = [{c: self.main.put(x) for c, x in row.items()} for row in M]
        self.slopes = {at: self.main.put(b) for at, b in slopes.items()}
        self.rhs = self.main.put_all(x - y + z for x, y, z in zip(tau, h, passive(tree, q, v)))

    def _diagonal(self, moves: Moves, weight: Scalar) -> Scalar:
        """J M^-1 J' of a row where the model's steps take that, else its weight."""
        if not self.factors:
            return weight
        half = self.factors.solve_transposed([moves.get(k, 0.0) for k in range(self.nv)])
        return dot([x * x for x in half], self.factors.inverse)

    def _row(self, r: SoftRow, gap: Scalar, moves: Moves, v: Vector) -> PackedRows:
        """gap: how far it is from where it holds, or counts; friction has none."""
        (K, damp), put = r.soft.gains(self.problem.safe), self.main.put
        d = r.soft.impedance(gap)
        D = r.group.stiffness(d, self._diagonal(moves, r.weight), 1.0)[0]
        ref = -(damp * dot(list(moves.values()), [v[k] for k in moves]))
        if not r.group.at_rates:
            ref = ref - K * (d * gap)
        if r.group.one_sided:
            D = where(gap < 0.0, D, 0.0)
        return PackedRows(r.group, tuple(moves), [[put(x) for x in moves.values()]], [put(ref)], [put(D)])

    def _loop(self, r: LoopRow, moving: Kinematics) -> list[PackedRows]:
        """Packed rows of a loop: three of a point, six of a weld, with one impedance by their common distance."""
        (K, damp), put, group = r.soft.gains(self.problem.safe), self.main.put, Equality()
        at = closure(r, moving)
        d = r.soft.impedance(sqrt(maximum(dot(at.place, at.place), LEAST_GAP_SQUARE)))
        rates = tuple(k for k in range(self.nv) if not all(is_zero(row[k]) for row in at.rows))
        carried, out = carried_rates(self.tree, moving.v), []
        for x, row, bias, weight in zip(at.place, at.rows, at.bias, (*r.weight[:1] * 3, *r.weight[1:] * 3)):
            more = bias - dot(row, carried)
            ref = -(damp * dot(row, moving.v)) - K * (d * x) - more
            D = group.stiffness(d, self._diagonal({k: row[k] for k in rates}, weight), 1.0)[0]
            out.append(PackedRows(group, rates, [[put(row[k]) for k in rates]], [put(ref)], [put(D)]))
        return out

    # -- slots ----------------------------------------------------------------------------------------------

    def _slots(self, poses: Poses, columns: Columns, v: Vector) -> None:
        slots, graph = self.problem.slots, self.t.graph
        used = dict.fromkeys(x for s in slots for x in s.solids or ())
        if self.problem.apart:
            ports = (x.found(k) for k, x in enumerate(slots) if x.solids)
            self.sizes |= {at.block: at.first + PLACE_NUMBERS for at in ports}
        self.placed = {x: k for k, x in enumerate(used)}
        self.places = list(accumulated([s.most for s in slots], initial=0))
        self._place = self.t.input(PLACE_INPUT, PLACE_NUMBERS) if used else []
        touches = [s.touch(poses, self._place) if s.solids else s.touch(poses) for s in slots]
        gaps = [x.dist - s.soft.margin for x, s in zip(touches, slots)]
        near = [s.near(poses) if s.near else gap for s, gap in zip(slots, gaps)]
        self.contacts: list[PackedRows] = []
        self.records: list[SlotLayout] = []
        self.kinds: list[int] = []  # a slot of each kind
        packs = [self._slot(s, x, gap, columns, v) for s, x, gap in zip(slots, touches, gaps)]
        numbers, self.geom_numbers = placed_block(used, poses)
        placed = list(map(graph.edge, numbers))
        early = (graph.edge(x) for x in (*near, *(x for s in slots for x in s.weight)))
        firsts = [*self.main.edges(), *placed, *early]
        handed = _handed(graph, set(graph.live(firsts)), packs, [graph.edge(x) for x in gaps])
        self._declare(packs, gaps, [graph.edge(x) for x in near], handed, placed)

    def wanted(
        self, s: Slot, gap: Scalar, u: Vector, first: Moves | None = None
    ) -> tuple[list[Scalar], list[Scalar]]:
        """The accelerations that a contact's rows want at their velocities u, and their D. first: the row by which
        they are firm."""
        step = self.problem.safe
        (K, damp), d = s.soft.gains(step), s.soft.impedance(gap)
        tangent = s.soft.gains(step, True)[1] if s.group.rolls_apart else damp
        ref = [-(damp * u[0]) - K * (d * gap), *(-(tangent * x) for x in u[1:])]
        law = self._law(s)
        diagonal = self._diagonal(first or {}, law.diagonal(s.weight[0]))
        stiff = law.stiffness(d, diagonal, self.problem.impratio)
        return ref, [where(gap < 0.0, x, 0.0) for x in stiff]

    def _slot(self, s: Slot, touch: Proximity, gap: Scalar, columns: Columns, v: Vector) -> Pack:
        (rates, B), pack = basis(s, touch, columns), Pack()
        law, u = self._law(s), touch.slipping([dot(row, [v[r] for r in rates]) for row in B])
        ref, D = self.wanted(s, gap, u, dict(zip(rates, law.firm_row(B))))
        put = pack.put_all
        axes = put(x for f in touch.frame for x in f)
        point = put(touch.point) if self.problem.touches else []
        mu = put((law.mu0, *law.mu)) if law is not s.group else []
        rows = [put(row) for row in B]
        self.contacts.append(PackedRows(s.group, rates, rows, put(ref), put(D), axes, mu, point))
        alike = (k for k in self.kinds if self.contacts[k] == self.contacts[-1])
        first = next(alike, None)
        if first is None:
            first = len(self.contacts) - 1
            self.kinds.append(first)
        self.records.append(self._layout(first, len(pack), s.group.size))
        return pack

    def _layout(self, kind: int, pack: int, m: int) -> SlotLayout:
        slips = slip_numbers(m - 1, self.nv) if self.problem.model.stepping.noslip else 0
        return slot_layout(kind, pack, m, slips)

    def _declare(
        self,
        packs: Sequence[Pack],
        gaps: Sequence[Scalar],
        near: Sequence[int],
        handed: Pack,
        placed: Sequence[int],
    ) -> None:
        """The programs of the dynamics and of every slot, over one graph."""
        graph, zero = self.t.graph, [self.t.graph.edge(0.0)]
        blocks = {"gap": near or zero, "handed": handed.edges() or zero} | ({"placed": placed} if placed else {})
        inputs = declare_dynamics(self, blocks)
        given = (*inputs, Input("handed", (len(handed),), tuple(handed.places)))
        for k, (pack, at, gap) in enumerate(zip(packs, self.records, gaps)):
            results: dict[str, tuple[int, ...]] = {Place(CHOSEN_BLOCK, 0): pack.edges()}
            results[Place(CHOSEN_BLOCK, at.gap)] = (graph.edge(gap),)
            more = given
            slot = self.problem.slots[k]
            if slot.solids:
                nodes, own = tuple(x.edge >> 1 for x in self._place), Place(CHOSEN_BLOCK, at.place)
                found = slot.found(k) if self.problem.apart else own
                more = (*given, Input(found, (PLACE_NUMBERS,), nodes))
            self.parts[f"slot_{k}"] = part_of_graph(f"slot_{k}", graph, more, results, self.symbols)
            self.sizes[f"slot_{k}"] = at.end  # of one place

    # -- what later stages read -----------------------------------------------------------------------------

    def inertia(self, s: StageTracer) -> SparseRows:
        return [{c: of(s.read("main"), x) for c, x in row.items()} for row in self.M]

    def efforts(self, s: StageTracer) -> list[Scalar]:
        return [of(s.read("main"), x) for x in self.rhs]

    def wanted_of(self, s: StageTracer, k: int) -> list[Scalar]:
        """The accelerations that row k, of a joint or the like, wants."""
        return [of(s.read("main"), x) for x in self.rows[k].ref]

    def times(self, M: SparseRows, x: Vector) -> list[Scalar]:
        """M x."""
        out: list[Scalar] = [0.0] * self.nv
        for r, row in enumerate(M):
            for c, m in row.items():
                out[r] = out[r] + m * x[c]
                if c != r:
                    out[c] = out[c] + m * x[r]
        return out


def declare_dynamics(e: Evaluation, more: Mapping[str, Sequence[int]]) -> tuple[Input, ...]:
    """The stage that begins an evaluation, with these blocks beside "main"; gives its inputs."""
    first = {"main": e.main.edges(), **more}
    inputs = tuple(x for x in e.t.inputs if x.name != PLACE_INPUT)
    e.sizes |= {name: len(edges) for name, edges in first.items()}
    e.parts["dynamics"] = part_of_graph("dynamics", e.t.graph, inputs, first, e.symbols)
    return inputs


def _handed(graph: Graph, first: set[int], packs: Sequence[Pack], gaps: Sequence[int]) -> Pack:
    """The values of the first stage that slots need."""
    out = Pack()
    for pack, gap in zip(packs, gaps):
        ends = [*pack.edges(), gap]
        read = [e for n in graph.live(ends) if n not in first for e in graph.operands(n)]
        for e in (*read, *ends):
            if e >> 1 in first and graph.op[e >> 1] > INPUT:
                out.places.setdefault(e >> 1, len(out))
    return out
