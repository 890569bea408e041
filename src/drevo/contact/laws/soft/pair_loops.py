"""A step under the soft law with many pairs of solids: code by kind of pair, and loops over the pairs of a kind.

With few pairs these are constants of straight-line code; here they are data: where both geoms stand, their sizes,
and the motion that each rate gives to points. So code grows with the kinds of pairs, not with their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ....codegen.graph.program import Program
from ....codegen.llvm.ir import F64, I8, I64, Value
from ....codegen.llvm.stages import StageCalls
from ....mechanics.spatial import Vec
from ...convex.solids import PLACED_GEOM_NUMBERS, boxes_parted
from .factor_loops import (
    FactorLoops,
    filled_shape,
    fixed_shape,
    minus_product,
    plus_product,
    sum_of_values,
    triangle,
)
from .kernel import Loops
from .layout import SlotLayout
from .pair_rows import PAIR_FIELDS, PAIR_NUMBERS, LoopedEvaluation, PairKind, PairRow, axes_at

RATE_NUMBERS = 9  # numbers of a rate: how it turns and moves, and the point of which that is said


class Touching(NamedTuple):
    """Arrays of what touches: by slot at how many places; the rows of pairs that may touch, kind after kind and at
    last in the order of the pass against slip; how many these are of each."""

    counts: Value
    found: Value
    many: Value


class PairLoops(Loops):
    """The calls of a tile that loops over its pairs. Which touch is an array: by slot, at how many places."""

    e: LoopedEvaluation

    def write(self, c: StageCalls) -> None:
        self._tables(c)
        super().write(c)

    def _tables(self, c: StageCalls) -> None:
        """Rows of all kinds of pairs, and what these refer to."""
        e, rates, signs, begins = self.e, [0], [0.0], dict[Any, int]()
        numbers, self.rows = list[Any](), dict[Any, list[int]]()
        for kind, alike in e.alike.items():
            rows = self.rows[kind] = []
            for k in alike:
                x, held, bytes_ = e.contacts[k], e.problem.slots[k].held, c.l.bytes
                assert held
                a, b = (e.geom_numbers * e.placed[y] * bytes_ for y in held)
                moved = x.rates, tuple(e.signs[k])
                if moved not in begins:
                    begins[moved] = len(rates)
                    rates += x.rates
                    signs += e.signs[k]
                rows += [
                    c.places[f"slot_{k}"][1], e.strides[k] * bytes_, len(x.rates), begins[moved], k, a, b,
                    len(numbers), 3 * e.places[k] * bytes_, int(e.crossing[k]), self.pair_of.get(k, 0), kind.law,
                ]  # fmt: skip
                numbers += e.numbers_of(k)
        at = [e.newton.place[r] for r in range(e.nv)]
        entries = [e.newton.pattern[max(i, j)].get(min(i, j), 0) for i in at for j in at]
        if e.noslip:
            by_slot = {row[PAIR_FIELDS.index("slot")]: row for rows in self.rows.values() for row in _rows(rows)}
            self.rows[None] = [x for k in e.noslip.order for x in by_slot[k]]
        self.listed, first = dict[Any, tuple[int, int]](), 0
        for n, (kind, rows) in enumerate(self.rows.items()):
            self.listed[kind] = n, first
            first += len(rows) // len(PAIR_FIELDS)
        self.data = {"rates": rates, "entries": entries}, {"signs": signs, "numbers": numbers}

    def table(self, c: StageCalls, name: str) -> Value:
        integers, floats = self.data
        return c.table(I64, integers[name]) if name in integers else c.table(F64, floats[name] or [0.0])

    # -- loops ----------------------------------------------------------------------------------------------

    @contextmanager
    def pairs(self, c: StageCalls, rows: Sequence[int]) -> Iterator[PairRow]:
        """Once for every pair of a table."""
        table = c.table(I64, rows)
        with c.f.loop(len(rows) // len(PAIR_FIELDS), some=True) as i:
            yield PairRow(table.at(i.i * len(PAIR_FIELDS), I64), i.i)

    @contextmanager
    def places(
        self, c: StageCalls, kind: PairKind | None, touching: Touching
    ) -> Iterator[tuple[PairRow, Value, Value]]:
        """Once for every place where pairs of a kind touch, or all in order: the pair, its block, its number."""
        n, first = self.listed[kind]
        table = c.table(I64, self.rows[kind])
        with c.f.loop(touching.many.at(n, I64).load(I64)) as i:
            k = touching.found.at(i.i + first, I64).load(I64)
            pair = PairRow(table.at(k * len(PAIR_FIELDS), I64), k)
            with c.f.loop(touching.counts.at(pair.slot, I64).load(I64)) as place:
                yield pair, c.work.at(pair.block + place.i * pair.stride, I8), place.i

    def _list(self, c: StageCalls, kind: PairKind | None, touching: Touching, k: Value) -> None:
        """Adds a pair to those that may touch."""
        n, first = self.listed[kind]
        many = touching.many.at(n, I64)
        touching.found.at(many.load(I64) + first, I64).store(k)
        many.store(many.load(I64) + 1)

    def part(self, c: StageCalls, base: Value, k: Value | int) -> Value:
        """The address of value k from an address on."""
        return base.at(k * c.l.bytes, I8)

    def load(self, c: StageCalls, base: Value, k: Value | int) -> Value:
        return self.part(c, base, k).load(c.l.type, c.l.bytes)

    def put(self, c: StageCalls, base: Value, k: Value | int, x: Value) -> None:
        self.part(c, base, k).store(x, c.l.bytes)

    def numbers(self, c: StageCalls, pair: PairRow) -> Callable[[Value | int], Value]:
        """The numbers of a pair by their places, of all lanes or of each."""
        if self.e.by_lane:
            block = self.part(c, c.at("numbers"), pair.numbers)
            return lambda k: self.load(c, block, k)
        table = self.table(c, "numbers").at(pair.numbers)
        return lambda k: self.splat(c, table.at(k))

    def splat(self, c: StageCalls, address: Value) -> Value:
        """A number of a table in all lanes."""
        x = address.load(F64)
        return (x if c.l.scalar == F64 else x.cast("fptrunc", c.l.scalar)).splat(c.l.lanes)

    # -- which touch ----------------------------------------------------------------------------------------

    def all_touching(self, c: StageCalls) -> Touching:  # type: ignore[override]
        f = c.f
        touching = self.room(c)
        counts = touching.counts
        for kind in self.e.alike:
            at = self.e.records[kind.law]
            touching.many.at(self.listed[kind][0], I64).store(f.const(I64, 0))
            with self.pairs(c, self.rows[kind]) as pair:
                counts.at(pair.slot, I64).store(f.const(I64, 0))
                c.at("near").store(self._near(c, kind, pair), c.l.bytes)
                if kind.searched and "plane" not in kind.kinds and "hfield" not in kind.kinds:
                    with f.when(c.some_below("near")):
                        c.at("near").store(self._boxes_near(c, pair), c.l.bytes)
                with f.when(c.some_below("near")):
                    some: Value = f.const(I64, 1)
                    if kind.searched:
                        a, b = (c.at("placed").at(x, I8) for x in (pair.a, pair.b))
                        out = self.part(c, c.work.at(pair.block, I8), at.place)
                        some = self.search.places(c, pair.search, a, b, c.at("near"), out, pair.stride)
                    counts.at(pair.slot, I64).store(some)
                    self._list(c, kind, touching, pair.index)
            with self.places(c, kind, touching) as (pair, block, _):
                self._make_place(c, kind, pair, block)
                if kind.searched:
                    self._make_rows(c, kind, pair, block)
                    continue
                some = c.any(self.load(c, block, at.gap) < 0.0)
                counts.at(pair.slot, I64).store(some.cast("zext", I64))
                with f.when(some):
                    self._make_rows(c, kind, pair, block)
        return touching

    def _near(self, c: StageCalls, kind: PairKind, pair: PairRow) -> Value:
        """Negative where a sphere about the second geom is near one about the first, a plane, or a capsule's axis:
        so near that they may touch."""
        first, second = self._placed(c, pair)
        number = self.numbers(c, pair)
        reach = number(PAIR_NUMBERS)
        way, axis = Vec(*second[9:]) - Vec(*first[9:]), Vec(first[2], first[5], first[8])
        if kind.kinds[0] == "plane":
            return way.dot(axis) - reach  # type: ignore[no-any-return]
        if kind.kinds[0] == "capsule":
            half, along = number(1), way.dot(axis)
            along = c.f.select(along > half, half, along)
            along = c.f.select(along < -half, -half, along)
            way, reach = way - axis * along, reach - half
        return way.dot(way) - reach * reach  # type: ignore[no-any-return]

    def _boxes_near(self, c: StageCalls, pair: PairRow) -> Value:
        """`near`, or positive where boxes about both geoms are parted."""
        number, (first, second) = self.numbers(c, pair), self._placed(c, pair)
        margin, *sides = (number(PAIR_NUMBERS + k) for k in (-1, *range(1, 7)))
        parted = boxes_parted(c, first, second, sides, margin)
        return c.f.select(parted, c.f.const(c.l.type, 1.0), c.load("near"))

    def _placed(self, c: StageCalls, pair: PairRow) -> Iterator[list[Value]]:
        """The numbers of both geoms of a pair."""
        for x in (pair.a, pair.b):
            yield [self.load(c, c.at("placed").at(x, I8), k) for k in range(PLACED_GEOM_NUMBERS)]

    def _make_place(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """Distance, point and frame of a place."""
        name, number = f"place_{self.e.name_of(kind)}", self.numbers(c, pair)
        parts = self.e.parts[name], self.e.parts[f"rows_{kind.law}"]
        for k in sorted({k for part in parts for k in read_of(part, "pair")}):
            i, j = divmod(k, PLACED_GEOM_NUMBERS)
            x = self.load(c, c.at("placed").at((pair.a, pair.b)[i], I8), j) if i < 2 else number(j)
            self.put(c, c.at("pair"), k, x)
        c.call(name, block)

    def _make_rows(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """The rows of a place, what these want and how firm they are."""
        at, x = self.e.records[kind.law], self.e.contacts[kind.law]
        self._columns(c, pair, block, [self.load(c, block, axes_at(x) + j) for j in range(9)], x.group.size, at)
        self.gather(c, kind, pair, block, "V", at.y)
        c.call(f"rows_{kind.law}", block)
        self.put(c, block, at.piece, c.f.const(c.l.type, -1.0))

    def _columns(
        self, c: StageCalls, pair: PairRow, block: Value, axes: Sequence[Value], m: int, at: SlotLayout
    ) -> None:
        """The rows of a place, rate by rate: how the second body moves and turns along its axes as the first sees
        it."""
        frame = [Vec(*axes[3 * j : 3 * j + 3]) for j in range(3)]
        point = Vec(*(self.load(c, block, at.place + 1 + j) for j in range(3)))
        rates, signs = self.table(c, "rates").at(pair.first, I64), self.table(c, "signs").at(pair.first)
        with c.f.loop(pair.rates) as i:
            column = self.part(c, c.at("columns"), rates.at(i.i, I64).load(I64) * RATE_NUMBERS)
            w, v, p = (Vec(*(self.load(c, column, 3 * j + k) for k in range(3))) for j in range(3))
            sign = self.splat(c, signs.at(i.i))
            moved = v + w.cross(point - p)
            for j in range(m):
                y: Any = frame[j % 3].dot(moved if j < 3 else w)
                self.put(c, block, i.i * m + (at.end + j), y * sign)

    # -- rows -----------------------------------------------------------------------------------------------

    def gather(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value, vector: str, to: int) -> None:
        """The rows of a place times a vector over all rates."""
        m, first, base = self.e.contacts[kind.law].group.size, self.e.records[kind.law].end, c.at(vector)
        rates, none = self.table(c, "rates").at(pair.first, I64), c.f.zero(c.l.type)
        with c.f.loop(pair.rates, carry={f"s{j}": none for j in range(m)}) as i:
            x = self.load(c, base, rates.at(i.i, I64).load(I64))
            for j in range(m):
                y = self.load(c, block, i.i * m + (first + j))
                setattr(i, f"s{j}", plus_product(c, getattr(i, f"s{j}"), y, x))
        for j in range(m):
            self.put(c, block, to + j, getattr(i, f"s{j}"))

    def scatter(
        self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value, vector: str = "g", of: int | None = None
    ) -> None:
        """g -= B^T f, or another vector over all rates less what is kept elsewhere in the block."""
        m, at = self.e.contacts[kind.law].group.size, self.e.records[kind.law]
        rates, force = (
            self.table(c, "rates").at(pair.first, I64),
            [self.load(c, block, (at.f if of is None else of) + j) for j in range(m)],
        )
        with c.f.loop(pair.rates) as i:
            entry = self.part(c, c.at(vector), rates.at(i.i, I64).load(I64))
            g = entry.load(c.l.type, c.l.bytes)
            for j in range(m):
                g = minus_product(c, g, self.load(c, block, i.i * m + (at.end + j)), force[j])
            entry.store(g, c.l.bytes)

    def each(self, c: StageCalls, stage: str, touching: Any) -> None:
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

    def room(self, c: StageCalls) -> Touching:  # type: ignore[override]
        n = len(self.e.contacts)
        return Touching(*(c.f.alloca(I64, count) for count in (n, 2 * n, len(self.listed))))

    def keep(self, c: StageCalls, touching: Any, living: Any) -> None:
        f, live = c.f, c.load("live") > 0.0
        for kind in self.e.alike:
            (n, first), at = self.listed[kind], self.e.records[kind.law]
            table = c.table(I64, self.rows[kind])
            living.many.at(n, I64).store(f.const(I64, 0))
            with f.loop(touching.many.at(n, I64).load(I64)) as i:
                k = touching.found.at(i.i + first, I64).load(I64)
                pair = PairRow(table.at(k * len(PAIR_FIELDS), I64), k)
                count = touching.counts.at(pair.slot, I64).load(I64)
                with f.loop(count, carry={"least": f.zero(c.l.type)}) as place:
                    gap = self.load(c, c.work.at(pair.block + place.i * pair.stride, I8), at.gap)
                    place.least = f.select(gap < place.least, gap, place.least)
                with f.when(c.any((place.least < 0.0) & live)):
                    living.counts.at(pair.slot, I64).store(count)
                    self._list(c, kind, living, k)

    def solve(self, c: StageCalls, touching: Any, lanes: str) -> None:
        if any(self.e.crossing):
            with c.f.when(c.some_above("crosses")):
                self.crossing.clear()
        super().solve(c, touching, lanes)

    def solve_once(self, c: StageCalls, stage: str) -> None:
        if stage in self.e.parts:
            c.call(stage)
        else:
            (self.within(c) if stage == "solve" else self.crossing).write("g", "p")

    def within(self, c: StageCalls) -> FactorLoops:
        """The loops over what M has."""
        return FactorLoops(c, fixed_shape(c, self.e.newton.within), self.e.order)

    def start(self, c: StageCalls) -> None:
        newton = self.e.newton
        if newton.solves_in_loops:
            self.mass(c)
        c.call("start")
        if newton.solves_in_loops:
            self.within(c).write("g", "a")

    def finish(self, c: StageCalls, stage: str) -> None:
        if "damp" in self.e.parts:
            self.mass(c)
            c.call("damp")
            self.solve_once(c, "solve")
        c.call(stage)

    def each_in_order(self, c: StageCalls, touching: Any, write: Callable[[int, Value], None]) -> None:
        with self.places(c, None, touching) as (pair, block, _):
            for law in self.e.kinds:
                with c.f.when(pair.law.equals(law)):
                    write(law, block)

    def tangents(self, c: StageCalls, touching: Any) -> None:
        """Writes the tangents of all that touches over all rates, and lists it in order."""
        none, nv = c.f.zero(c.l.type), self.e.nv
        touching.many.at(self.listed[None][0], I64).store(c.f.const(I64, 0))
        with self.pairs(c, self.rows[None]) as pair, c.f.when(touching.counts.at(pair.slot, I64).load(I64) > 0):
            self._list(c, None, touching, pair.index)
        for kind in self.e.alike:
            at, m = self.e.records[kind.law], self.e.contacts[kind.law].group.size
            with self.places(c, kind, touching) as (pair, block, _):
                with c.f.loop((m - 1) * nv) as k:
                    self.put(c, block, k.i + at.slip, none)
                rates = self.table(c, "rates").at(pair.first, I64)
                with c.f.loop(pair.rates) as i:
                    rate = rates.at(i.i, I64).load(I64)
                    for j in range(m - 1):
                        x = self.load(c, block, i.i * m + (at.end + j + 1))
                        self.put(c, block, rate + (at.slip + j * nv), x)

    def _hessian(self, c: StageCalls, kind: PairKind, pair: PairRow, block: Value) -> None:
        """H += B^T S B."""
        at, group = self.e.records[kind.law], self.e.contacts[kind.law].group
        m, first, H = group.size, at.end, c.at("H")
        S: dict[tuple[int, int], Value] = {}
        for k, (r, q) in enumerate((i, j) for i in range(m) for j in range(i + 1)):
            if group.coupled or q in (0, r):
                S[r, q] = S[q, r] = self.load(c, block, at.S + k)
        with self.entries(c, pair) as (i, row):
            column = [self.load(c, block, i * m + (first + j)) for j in range(m)]
            turned = [sum_of_values(S[r, q] * column[q] for q in range(m) if (r, q) in S) for r in range(m)]
            with row as (j, at_entry):
                entry = self.part(c, H, at_entry)
                products = (self.load(c, block, j * m + (first + r)) * turned[r] for r in range(m))
                entry.store(entry.load(c.l.type, c.l.bytes) + sum_of_values(products), c.l.bytes)

    @contextmanager
    def entries(self, c: StageCalls, pair: PairRow) -> Iterator[tuple[Value, Any]]:
        """Once for every rate of a pair, with a loop over those up to it and where in H both meet."""
        entries, rates = self.table(c, "entries"), self.table(c, "rates").at(pair.first, I64)
        with c.f.loop(pair.rates) as i:
            at = entries.at(rates.at(i.i, I64).load(I64) * self.e.nv, I64)

            @contextmanager
            def row() -> Iterator[tuple[Value, Value]]:
                with c.f.loop(i.i + 1, some=True) as j:
                    yield j.i, at.at(rates.at(j.i, I64).load(I64), I64).load(I64)

            yield i.i, row()

    def crosses(self, c: StageCalls, touching: Any) -> None:
        """Marks the lanes whose H has entries that M has not, and makes the loops over all entries."""
        f, newton = c.f, self.e.newton
        c.fill(-1.0, "crosses", 0, 1)
        if not any(self.e.crossing):
            return
        one, to = f.const(c.l.type, 1.0), c.at("crosses")
        for kind in self.e.alike:
            with self.places(c, kind, touching) as (pair, block, _), f.when(pair.crosses.differs(0)):
                touches = self.load(c, block, self.e.records[kind.law].gap) < 0.0
                to.store(f.select(touches, one, to.load(c.l.type, c.l.bytes)), c.l.bytes)
        flags, size = f.alloca(I64, triangle(self.e.nv)), triangle(self.e.nv)
        own = c.table(I64, [int(j in row) for k, row in enumerate(newton.within) for j in range(k + 1)])
        with f.when(c.some_above("crosses")):
            with f.loop(size, some=True) as i:
                flags.at(i.i, I64).store(own.at(i.i, I64).load(I64))
            for kind in self.e.alike:
                with self.places(c, kind, touching) as (pair, _, place):
                    joins = pair.crosses.differs(0) & place.equals(0)
                    with f.when(joins), self.entries(c, pair) as (_, row), row as (_, entry):
                        flags.at(entry, I64).store(f.const(I64, 1))
            self.crossing = FactorLoops(c, filled_shape(c, self.e.nv, flags), self.e.order)

    def forces(self, c: StageCalls, touching: Any) -> None:
        f, none = c.f, c.f.zero(c.l.type)
        told = [name for name in ("forces", "touches") if name in self.e.sizes]
        for name in told:
            with f.loop(self.e.sizes[name], some=True) as k:
                self.put(c, c.at(name), k.i, none)
        for kind in self.e.alike:
            at, axes = self.e.records[kind.law], axes_at(self.e.contacts[kind.law])
            with self.places(c, kind, touching) as (pair, block, place):
                c.call(f"force_{kind.law}", block)
                touches = self.load(c, block, at.gap) < 0.0
                out = self.part(c, c.at("forces").at(pair.forces, I8), place * 3)
                for j in range(3):
                    self.put(c, out, j, f.select(touches, self.load(c, block, at.size + j), none))
                if "touches" in told:
                    out = self.part(c, c.at("touches").at(pair.forces * 2, I8), place * 6)
                    for j, x in enumerate((*range(at.place + 1, at.place + 4), *range(axes, axes + 3))):
                        self.put(c, out, j, self.load(c, block, x))


def read_of(part: Program, block: str) -> list[int]:
    """The numbers of a block that a stage reads."""
    live = set(part.order())
    return [k for x in part.inputs if x.name == block for k, node in enumerate(x.nodes) if node in live]


def _rows(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Rows of a table of pairs."""
    n = len(PAIR_FIELDS)
    return (numbers[k : k + n] for k in range(0, len(numbers), n))
