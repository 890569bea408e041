"""A step under the soft law with many pairs of solids: code by kind of pair, and loops over the pairs of a kind.

With few pairs these are constants of straight-line code; here they are data: where both geoms stand, their sizes,
and the motion that each rate gives to points. So code grows with the kinds of pairs, not with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from ....codegen.graph.program import Program
from ....codegen.llvm.ir import F64, I8, I64, Value
from ....codegen.llvm.stages import StageCalls, Stages
from ....compiler.tracer import Tracer
from ....mechanics.algorithms.boxes import PlacedGeom, frame_of
from ....mechanics.algorithms.colliders import between
from ....mechanics.scalar import Vector
from ....mechanics.spatial import Mat, Vec
from ....model.contact import GEOM_SIZES
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import PLACE, placed_numbers
from ...packing import Packed
from .factor_loops import FactorLoops, minus_product, plus_product
from .kernel import LAST_EVALUATION, STEP_ARGUMENTS, STEP_RESULTS, Loops, declare, evaluation
from .stages import (
    Columns,
    Evaluation,
    PackedRows,
    Poses,
    Slot,
    SlotLayout,
    SoftProblem,
    StageTracer,
    declare_dynamics,
    slot_layout,
)

RATE_NUMBERS = 9  # numbers of a rate: how it turns and moves, and the point of which that is said
MAX_GEOM_SIZES = 3  # of a geom, or a corner of a hull
PAIR_NUMBERS = 2 * MAX_GEOM_SIZES + 2  # with the inverse weight and the margin
MAX_STRAIGHT_PAIRS = 48  # of places of contact; more are looped over
PAIR_FIELDS = ("block", "stride", "rates", "first", "entries", "slot", "a", "b", "numbers", "forces", "crosses")


def step_program(problem: SoftProblem) -> Program:
    """(q, v, tau) -> (q1, v1, forces, residual), and on request of the last evaluation Q, V and r, what holds."""
    looped = takes_loops(problem)
    e = evaluation(problem, LoopedEvaluation if looped else Evaluation)
    loops = PairLoops(e) if looped else Loops(e)
    t = Tracer("step", problem.model)
    t.state(*STEP_ARGUMENTS)
    declare(t, e.sizes, results := (*STEP_RESULTS, *(LAST_EVALUATION if problem.last else ())))
    symbols = (x._replace(node=t.graph.parameter(x.name).edge >> 1) for x in e.symbols)
    blocks = {name: size for name, size in e.sizes.items() if name not in (*STEP_ARGUMENTS, *results)}
    return replace(t.program(), parameters=tuple(symbols), stages=Stages(blocks, e.parts, loops.write))


def takes_loops(problem: SoftProblem) -> bool:
    """True where a step has many places of contact, and they need nothing that only straight lines know."""
    stepping = problem.model.stepping
    plain = not (problem.parameters or stepping.noslip or "diagexact" in stepping.enabled)
    still = all(s.held and not any(any(x.geom.surface) for x in s.held) for s in problem.slots)
    return len(problem.slots) > MAX_STRAIGHT_PAIRS and plain and still


class PairKind(NamedTuple):
    """Pairs that have code in common: by the kinds of both geoms, the place, the law of their rows."""

    kinds: tuple[str, str]
    place: int
    searched: bool
    law: int


class LoopedEvaluation(Evaluation):
    """The first stages of a step that loops over its pairs."""

    looped = True

    def _slots(self, poses: Poses, columns: Columns, v: Vector) -> None:
        slots, graph = self.problem.slots, self.t.graph
        used = dict.fromkeys(x for s in slots for x in s.held or ())
        self.placed = {x: k for k, x in enumerate(used)}
        self.contacts, self.records, self.kinds = list[PackedRows](), list[SlotLayout](), list[int]()
        self.alike: dict[PairKind, list[int]] = {}
        self.signs: list[list[float]] = []
        laws: list[Any] = []
        near = []
        for k, s in enumerate(slots):
            near.append(s.near(poses) if s.near else s.touch(poses).dist - s.soft.margin)
            law = s.group, s.soft._replace(margin=0.0)
            if law not in laws:
                laws.append(law)
                self.kinds.append(k)
            self._add_slot(s, columns, self.kinds[laws.index(law)])
        self.places = [sum(s.most for s in slots[:k]) for k in range(len(slots) + 1)]
        placed = [graph.edge(y) for x in used for y in placed_numbers(x.at(poses))]
        by_rate = {r: (*m.w, *m.v, *p) for part in columns.parts for r, m, p in part}
        motions = [graph.edge(x) for r in range(self.nv) for x in by_rate[r]]
        self.sizes["pair"] = 2 * PLACE + PAIR_NUMBERS
        declare_dynamics(self, {"gap": [graph.edge(x) for x in near], "placed": placed, "columns": motions})
        for kind, alike in self.alike.items():
            self._add(f"place_{self.name_of(kind)}", kind, alike[0])
        for k in self.kinds:
            self._rows_of(k)

    def _add_slot(self, s: Slot, columns: Columns, law: int) -> None:
        assert s.held
        m, k = s.group.size, len(self.contacts)
        a, b = columns.chain(s.bodies[0]), columns.chain(s.bodies[1])
        signs = {r: 1.0 if i in b else -1.0 for i in sorted(a ^ b) for r, _, _ in columns.parts[i]}
        stiff = len(s.group.stiffness(0.5, 1.0, self.problem.impratio))
        places: list[Packed] = [(i, 0) for i in range(m + stiff + 9)]
        ref, D, axes = places[:m], places[m : m + stiff], places[m + stiff :]
        rates = tuple(sorted(signs))
        self.contacts.append(PackedRows(s.group, rates, [], ref, D, axes))
        self.signs.append([signs[r] for r in rates])
        self.records.append(slot_layout(law, m + stiff + 9, m))
        self.sizes[f"slot_{k}"] = rows_at(self.records[k]) + m * len(rates)
        kind = PairKind((s.held[0].geom.kind, s.held[1].geom.kind), self.place_of(s), bool(s.solids), law)
        self.alike.setdefault(kind, []).append(k)

    @staticmethod
    def place_of(s: Slot) -> int:
        """The place among those of the pair; corners of a hull are told by their numbers."""
        assert s.held
        return 0 if s.held[1].geom.kind == "hull" else s.place

    def name_of(self, kind: PairKind) -> str:
        """A name for the stages of a kind."""
        return str(list(self.alike).index(kind))

    def _add(self, name: str, kind: PairKind, k: int) -> None:
        """The stage that takes two placed geoms and gives distance, point and frame."""
        s, at = StageTracer(name, self.sizes), self.records[k]
        if kind.searched:
            frame = frame_of(Vec(*s.here(place_at(at), PLACE_NUMBERS)[4:]))
            s.write_here({axes_at(self.contacts[k]): [x for row in frame for x in row]})
        else:
            numbers = s.read("pair")
            a, b = (self._geom(numbers, kind, i) for i in (0, 1))
            proximity = between(a, b)[kind.place]
            s.write_here({
                place_at(at): [proximity.dist, *proximity.point],
                axes_at(self.contacts[k]): [x for row in proximity.frame for x in row],
            })  # fmt: skip
        self.parts[name] = s.t.program()

    @staticmethod
    def _geom(numbers: Vector, kind: PairKind, i: int) -> PlacedGeom:
        at, size = numbers[PLACE * i : PLACE * (i + 1)], numbers[2 * PLACE + MAX_GEOM_SIZES * i :][:MAX_GEOM_SIZES]
        R, p = Mat.of([at[0:3], at[3:6], at[6:9]]), Vec(*at[9:])
        if kind.kinds[i] == "hull":
            return PlacedGeom("hull", (), R, p, (Vec(*size),))
        return PlacedGeom(kind.kinds[i], tuple(size[: GEOM_SIZES[kind.kinds[i]]]), R, p)

    def _rows_of(self, k: int) -> None:
        """The stage that says what the rows of a law want at their velocities, and how firm they are."""
        s, at, slot = StageTracer("rows", self.sizes), self.records[k], self.problem.slots[k]
        weight, margin = s.read("pair")[-2:]
        gap = s.here(place_at(at), 1)[0] - margin
        ref, D = self.wanted(slot._replace(weight=(weight, weight)), gap, s.here(at.y, slot.group.size))  # type: ignore[arg-type]
        s.write_here({0: [*ref, *D], at.gap: gap})
        self.parts[f"rows_{k}"] = s.t.program()

    def numbers_of(self, k: int) -> list[float]:
        """Sizes of both geoms of a slot, its inverse weight and its margin."""
        s, out = self.problem.slots[k], list[float]()
        for x in s.held or ():
            size = x.geom.points[s.place] if x.geom.kind == "hull" and not s.solids else x.geom.size
            out += [*size, *[0.0] * MAX_GEOM_SIZES][:MAX_GEOM_SIZES]
        return [*out, s.weight[0], s.soft.margin]


def place_at(at: SlotLayout) -> int:
    """The offset in a slot's block of distance and point of a place, and as it is searched for of its normal."""
    return at.size + 3


def rows_at(at: SlotLayout) -> int:
    """The offset in a slot's block of its rows, rate by rate."""
    return at.size + 3 + PLACE_NUMBERS


def axes_at(x: PackedRows) -> int:
    """The offset in a slot's block of the axes of its contact."""
    first = x.axes[0]
    assert not isinstance(first, float)
    return first[0]


class PairRow:
    """The numbers of a pair in a loop over those of its kind."""

    def __init__(self, row: Value) -> None:
        self.row = row

    def __getattr__(self, field: str) -> Value:
        return self.row.at(PAIR_FIELDS.index(field), I64).load(I64)


class PairLoops(Loops):
    """The calls of a tile that loops over its pairs. Which touch is an array: by slot, at how many places."""

    e: LoopedEvaluation

    def write(self, c: StageCalls) -> None:
        self._tables(c)
        super().write(c)

    def _tables(self, c: StageCalls) -> None:
        """Rows of all kinds of pairs, and what these refer to."""
        e, rates, signs, entries = self.e, list[int](), list[float](), list[int]()
        numbers, self.rows = list[float](), dict[Any, list[int]]()
        for kind, alike in e.alike.items():
            rows = self.rows[kind] = []
            for k in alike:
                x, held, bytes_ = e.contacts[k], e.problem.slots[k].held, c.l.bytes
                assert held
                a, b = (PLACE * e.placed[y] * bytes_ for y in held)
                rows += [
                    c.places[f"slot_{k}"][1], e.strides[k] * bytes_, len(x.rates), len(rates), len(entries), k,
                    a, b, len(numbers), 3 * e.places[k] * bytes_, int(e.crossing[k]),
                ]  # fmt: skip
                rates += x.rates
                signs += e.signs[k]
                numbers += e.numbers_of(k)
                entries += [e.newton.entry(r, q) for i, r in enumerate(x.rates) for q in x.rates[: i + 1]]
        self.data = {"rates": rates or [0], "entries": entries or [0]}, {"signs": signs, "numbers": numbers}

    def table(self, c: StageCalls, name: str) -> Value:
        integers, floats = self.data
        return c.table(I64, integers[name]) if name in integers else c.table(F64, floats[name] or [0.0])

    # -- loops ----------------------------------------------------------------------------------------------

    @contextmanager
    def pairs(self, c: StageCalls, kind: PairKind) -> Iterator[PairRow]:
        """Once for every pair of a kind."""
        table = c.table(I64, self.rows[kind])
        with c.f.loop(len(self.e.alike[kind]), some=True) as i:
            yield PairRow(table.at(i.i * len(PAIR_FIELDS), I64))

    @contextmanager
    def places(self, c: StageCalls, kind: PairKind, counts: Value) -> Iterator[tuple[PairRow, Value, Value]]:
        """Once for every place where pairs of a kind touch: the pair, the address of its block, its number."""
        with self.pairs(c, kind) as pair, c.f.loop(counts.at(pair.slot, I64).load(I64)) as place:
            yield pair, c.work.at(pair.block + place.i * pair.stride, I8), place.i

    def part(self, c: StageCalls, base: Value, k: Value | int) -> Value:
        """The address of value k from an address on."""
        return base.at(k * c.l.bytes, I8)

    def load(self, c: StageCalls, base: Value, k: Value | int) -> Value:
        return self.part(c, base, k).load(c.l.type, c.l.bytes)

    def put(self, c: StageCalls, base: Value, k: Value | int, x: Value) -> None:
        self.part(c, base, k).store(x, c.l.bytes)

    def splat(self, c: StageCalls, address: Value) -> Value:
        """A number of a table in all lanes."""
        x = address.load(F64)
        return (x if c.l.scalar == F64 else x.cast("fptrunc", c.l.scalar)).splat(c.l.lanes)

    # -- which touch ----------------------------------------------------------------------------------------

    def all_touching(self, c: StageCalls) -> Value:  # type: ignore[override]
        f = c.f
        counts = f.alloca(I64, len(self.e.contacts))
        for kind, alike in self.e.alike.items():
            if kind.searched:
                for k in alike:
                    counts.at(k, I64).store(self.searched(c, k).load(I64))
            else:
                with self.pairs(c, kind) as pair:
                    some = c.any(self.load(c, c.at("gap"), pair.slot) < 0.0)
                    counts.at(pair.slot, I64).store(some.cast("zext", I64))
            with self.places(c, kind, counts) as (pair, block, _):
                self._make_rows(c, kind, pair, block)
                if not kind.searched:
                    gap = self.load(c, block, self.e.records[kind.law].gap)
                    counts.at(pair.slot, I64).store(c.any(gap < 0.0).cast("zext", I64))
        return counts

    def _make_rows(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """Distance, point and frame of a place, its rows, what these want and how firm they are."""
        f, at, x = c.f, self.e.records[kind.law], self.e.contacts[kind.law]
        both, placed = c.at("pair"), c.at("placed")
        for i, start in enumerate((pair.a, pair.b)):
            with f.loop(PLACE, some=True) as k:
                self.put(c, both, k.i + PLACE * i, self.load(c, placed.at(start, I8), k.i))
        numbers = self.table(c, "numbers").at(pair.numbers)
        with f.loop(PAIR_NUMBERS, some=True) as k:
            self.put(c, both, k.i + 2 * PLACE, self.splat(c, numbers.at(k.i)))
        c.call(f"place_{self.e.name_of(kind)}", block)
        self._columns(c, pair, block, [self.load(c, block, axes_at(x) + j) for j in range(9)], x.group.size, at)
        self.gather(c, kind, pair, block, "V", at.y)
        c.call(f"rows_{kind.law}", block)
        self.put(c, block, at.piece, f.const(c.l.type, -1.0))

    def _columns(
        self, c: StageCalls, pair: PairRow, block: Value, axes: Sequence[Value], m: int, at: SlotLayout
    ) -> None:
        """The rows of a place, rate by rate: how the second body moves and turns along its axes as the first sees
        it."""
        frame = [Vec(*axes[3 * j : 3 * j + 3]) for j in range(3)]
        point = Vec(*(self.load(c, block, place_at(at) + 1 + j) for j in range(3)))
        rates, signs = self.table(c, "rates").at(pair.first, I64), self.table(c, "signs").at(pair.first)
        with c.f.loop(pair.rates) as i:
            column = self.part(c, c.at("columns"), rates.at(i.i, I64).load(I64) * RATE_NUMBERS)
            w, v, p = (Vec(*(self.load(c, column, 3 * j + k) for k in range(3))) for j in range(3))
            sign = self.splat(c, signs.at(i.i))
            moved = v + w.cross(point - p)
            for j in range(m):
                y: Any = frame[j % 3].dot(moved if j < 3 else w)
                self.put(c, block, i.i * m + (rows_at(at) + j), y * sign)

    # -- rows -----------------------------------------------------------------------------------------------

    def gather(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value, vector: str, to: int) -> None:
        """The rows of a place times a vector over all rates."""
        m, first, base = self.e.contacts[kind.law].group.size, rows_at(self.e.records[kind.law]), c.at(vector)
        rates, none = self.table(c, "rates").at(pair.first, I64), c.f.zero(c.l.type)
        with c.f.loop(pair.rates, carry={f"s{j}": none for j in range(m)}) as i:
            x = self.load(c, base, rates.at(i.i, I64).load(I64))
            for j in range(m):
                y = self.load(c, block, i.i * m + (first + j))
                setattr(i, f"s{j}", plus_product(c, getattr(i, f"s{j}"), y, x))
        for j in range(m):
            self.put(c, block, to + j, getattr(i, f"s{j}"))

    def scatter(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """g -= B^T f."""
        m, at = self.e.contacts[kind.law].group.size, self.e.records[kind.law]
        rates, force = (
            self.table(c, "rates").at(pair.first, I64),
            [self.load(c, block, at.f + j) for j in range(m)],
        )
        with c.f.loop(pair.rates) as i:
            entry = self.part(c, c.at("g"), rates.at(i.i, I64).load(I64))
            g = entry.load(c.l.type, c.l.bytes)
            for j in range(m):
                g = minus_product(c, g, self.load(c, block, i.i * m + (rows_at(at) + j)), force[j])
            entry.store(g, c.l.bytes)

    def each(self, c: StageCalls, stage: str, touching: Any, order: Sequence[int] = ()) -> None:
        for kind in self.e.alike:
            at = self.e.records[kind.law]
            with self.places(c, kind, touching) as (pair, block, _):
                if stage == "touch":
                    self.gather(c, kind, pair, block, "a", at.y)
                elif stage == "along":
                    self.gather(c, kind, pair, block, "p", at.z)
                if stage == "hessian":
                    self._hessian(c, kind, pair, block)
                elif stage != "along":
                    c.call(f"{stage}_{kind.law}", block)
                if stage == "touch":
                    self.scatter(c, kind, pair, block)

    def solve_once(self, c: StageCalls, stage: str) -> None:
        newton = self.e.newton
        if stage in self.e.parts:
            c.call(stage)
        elif stage == "solve":
            FactorLoops(newton.within, newton.pattern, self.e.order).write(c, "g", "p")
        else:
            FactorLoops(newton.every, newton.pattern, self.e.order).write(c, "g", "p", "crosses")

    def _hessian(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """H += B^T S B."""
        at, group = self.e.records[kind.law], self.e.contacts[kind.law].group
        m, first, H = group.size, rows_at(at), c.at("H")
        S: dict[tuple[int, int], Value] = {}
        for k, (r, q) in enumerate((i, j) for i in range(m) for j in range(i + 1)):
            if group.coupled or q in (0, r):
                S[r, q] = S[q, r] = self.load(c, block, at.S + k)
        entries = self.table(c, "entries").at(pair.entries, I64)
        with c.f.loop(pair.rates, n=0) as i:
            column = [self.load(c, block, i.i * m + (first + j)) for j in range(m)]
            turned = [_sum(S[r, q] * column[q] for q in range(m) if (r, q) in S) for r in range(m)]
            with c.f.loop(i.i + 1, some=True) as j:
                entry = self.part(c, H, entries.at(i.n + j.i, I64).load(I64))
                products = (self.load(c, block, j.i * m + (first + r)) * turned[r] for r in range(m))
                entry.store(entry.load(c.l.type, c.l.bytes) + _sum(products), c.l.bytes)
            i.n = i.n + i.i + 1

    def crosses(self, c: StageCalls, touching: Any) -> None:
        c.fill(-1.0, "crosses", 0, 1)
        one, to = c.f.const(c.l.type, 1.0), c.at("crosses")
        for kind in self.e.alike if any(self.e.crossing) else ():
            with self.places(c, kind, touching) as (pair, block, _):
                touches = self.load(c, block, self.e.records[kind.law].gap) < 0.0
                with c.f.when(pair.crosses.differs(0)):
                    to.store(c.f.select(touches, one, to.load(c.l.type, c.l.bytes)), c.l.bytes)

    def forces(self, c: StageCalls, touching: Any) -> None:
        f, none, count = c.f, c.f.zero(c.l.type), self.e.sizes["forces"]
        with f.loop(count, some=True) as k:
            self.put(c, c.at("forces"), k.i, none)
        for kind in self.e.alike:
            at = self.e.records[kind.law]
            with self.places(c, kind, touching) as (pair, block, place):
                c.call(f"force_{kind.law}", block)
                touches = self.load(c, block, at.gap) < 0.0
                out = self.part(c, c.at("forces").at(pair.forces, I8), place * 3)
                for j in range(3):
                    self.put(c, out, j, f.select(touches, self.load(c, block, at.size + j), none))


def _sum(terms: Iterator[Value] | Any) -> Value:
    first, *rest = terms
    for x in rest:
        first = first + x
    return first
