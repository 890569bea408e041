"""One sample across the lanes: what is alike of many freedoms, or of many columns, is computed side by side.

The numbers of freedom r stand in row r: number k of all rows lies together, `pitch` bytes after number k - 1. What
moves along the tree goes body by body; all else takes as many rows at once as a vector has lanes, whichever bodies
they are of. Entries of matrices pair a row with those of its ancestors or descendants, by blocks of columns; masks
say what there is.

Derivatives of forward dynamics of one sample: M factorised, and its inverse times the columns side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from ...graph.program import FLOOR
from ...lower.loops import ROW_INTEGERS, Across, RowSweep, homes
from ...lower.lower import Lowered
from ..dense.inverse import solve_columns, times_inverse
from ..dense.tile import DenseCode
from ..ir import I32, I64, PTR, VOID, Module, Value, literal
from ..ir_scalar import IRScalar, StoredScalar
from ..math import add_sincos
from ..ports import ALONE, LINE, Target
from ..stages import MemoryBlock, write_stage

UNROLLED = 4  # vectors that are cleared or tested at a time


def scratch_of(plan: Across, low: Lowered, target: Target) -> int:
    """Bytes of working memory."""
    l = target.of(target.lanes)
    return LINE + l.size * plan.layout(l.lanes, low.inputs[0].size).end


class RowKernel:
    """@one, as a kernel of one sample: what inverse dynamics needs of it."""

    def __init__(self, m: Module, plan: Across, low: Lowered, target: Target) -> None:
        self.plan, self.target, self.one, self.l = plan, target, target.of(1), target.of(target.lanes)
        self.n, self.size, self.blocks = plan.padded(self.l.lanes), plan.rows, -(-plan.rows // self.l.lanes)
        names = [f"in{i}" for i in range(len(low.inputs))] + [f"out{i}" for i in range(len(low.outputs))]
        given = {**dict.fromkeys(names, ALONE), "scratch": ALONE, "status": ALONE}
        self.f = f = m.function("one", VOID, given, attributes=' "stackrealign"')
        self._constants(m)
        start = ((f.scratch.cast("ptrtoint", I64) + (LINE - 1)) & -LINE).cast("inttoptr", PTR)
        starts = plan.layout(self.l.lanes, low.inputs[0].size).starts
        self.at = {name: start.at(k, self.l.scalar) if k else start for name, k in starts.items()}
        self.rowed, self.more, self.gain = (self.at[name] for name in ("rowed", "more", "gain"))
        self.angles(m, low.inputs[0].size)
        for k, x in plan.ground.items():
            self.number(k, self.size).store(f.const(self.l.scalar, x), self.one.size)
        self.phases()
        self.test([x for x in f.arguments if x.startswith("out")])
        f.ret()

    def phases(self) -> None:
        """Writes the code between the angles and the test of the results."""
        self.run(self.plan.sweeps)
        self.entries([self.f.out0, self.f.out1, self.f.out2], self.size)

    # -- memory ---------------------------------------------------------------------------------------------

    def _constants(self, m: Module) -> None:
        p, l = self.plan, self.l
        m.constant("numbers", l.scalar, [literal(x, l.scalar) for x in p.numbers])
        rows = [x for number in p.solids for x in (*number, *[0.0] * (self.n - self.size))]
        m.constant("solids", l.scalar, [literal(x, l.scalar) for x in rows])
        m.constant("bodies", I32, [str(x) for body in p.bodies for x in body])
        everything = range(self.size)
        above = [set(x) for x in p.ancestors]
        self.lists = {"ancestors": _ragged(p.ancestors)}
        below = [[i for i in everything if r in above[i]] for r in everything]
        self.last = [max(x, default=r) for r, x in enumerate(below)]
        near = [[i for i in everything if i in above[r] or p.own[i] == p.own[r]] for r in everything]
        far = [[i for i in below[r] if p.own[i] != p.own[r]] for r in everything]
        lists = {
            "lower": self._blocks(near, [[i for i in x if i <= r] for r, x in enumerate(near)]),
            "upper": self._blocks(far, below),
        }
        self.lists.update({k: _ragged(x) for k, x in lists.items()})
        for name, (starts, items) in self.lists.items():
            m.constant(f"{name}_starts", I32, [str(x) for x in starts])
            m.constant(name, I32, [str(x) for x in items] or ["0"])
        m.constant("lasts", I32, [str(x) for x in self.last])
        if any(p.rotors):
            m.constant("rotors", l.scalar, [literal(x, l.scalar) for x in p.rotors])

    def _blocks(self, first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]) -> list[list[int]]:
        """By blocks of columns: rows, and the masks of what two sets have there of each, as triples."""
        w = self.l.lanes
        found: list[list[int]] = []
        for at in range(0, self.blocks * w, w):
            masks = (
                [sum(1 << c - at for c in x[row] if at <= c < at + w) for x in (first, second)]
                for row in range(self.size)
            )
            found.append([y for row, x in enumerate(masks) if any(x) for y in (row, *x)])
        return found

    def word(self, table: str, index: Value | int) -> Value:
        """An integer of a table."""
        x = self.f.const(PTR, f"@{table}").at(index, I32).load(I32)
        return x.cast("sext", I64)

    def number(self, k: int, row: Value | int) -> Value:
        """The address of a number of a row."""
        return self.rowed.at(k * self.n, self.l.scalar).at(row, self.l.scalar)

    def vectors(self, k: int, count: int, row: Value) -> list[Value]:
        """Numbers of as many rows as there are lanes."""
        return [self.number(k + i, row).load(self.l.type, self.l.bytes) for i in range(count)]

    def shared(self, k: int, count: int, row: Value) -> list[Value]:
        """Numbers of one row, in every lane."""
        return [self.splat(self.number(k + i, row)) for i in range(count)]

    def splat(self, place: Value) -> Value:
        return place.load(self.l.scalar, self.l.size).splat(self.l.lanes)

    def matrix(self, base: Value, row: Value, column: Value | int, pitch: int) -> Value:
        return base.at(row * pitch, self.l.scalar).at(column, self.l.scalar)

    def plus(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c."""
        size = self.l if a.type == self.l.type else self.one
        if self.target.fma:
            return self.f.call(a.type, f"llvm.fma.{size.suffix}", a, b, c)
        return a * b + c

    def minus(self, x: Value) -> Value:
        return self.f.let(x.type, f"fneg {x.type} {x.text}")

    def dot(self, *pairs: tuple[Sequence[Value], Sequence[Value]]) -> Value:
        both = [xy for x, y in pairs for xy in zip(x, y)]
        total = both[0][0] * both[0][1]
        for x, y in both[1:]:
            total = self.plus(x, y, total)
        return total

    # -- sweeps ---------------------------------------------------------------------------------------------

    def angles(self, m: Module, nq: int) -> None:
        """Sines and cosines of all coordinates."""
        f, l, pair = self.f, self.l, f"{{{self.l.type}, {self.l.type}}}"
        name = add_sincos(m, l, self.target.fma)
        for at in range(0, nq, l.lanes):
            mask = self._first(min(l.lanes, nq - at))
            x = self.loaded(f.in0.at(at, l.scalar), mask)
            both = f.call(pair, name, x)
            for k, to in enumerate(("sines", "cosines")):
                self.at[to].at(at, l.scalar).store(both.part(k), l.bytes)

    def run(self, sweeps: Sequence[RowSweep]) -> None:
        f, lanes = self.f, self.l.lanes
        count = len(self.plan.bodies)
        for sweep in sweeps:
            if sweep.wide:
                with f.loop(self.blocks * lanes, step=lanes, some=True) as s:
                    row, more = (self.at[name].at(s.i, self.l.scalar) for name in ("rowed", "more"))
                    solid, pitch = f.const(PTR, "@solids").at(s.i, self.l.scalar), self.n * self.l.size
                    blocks = {
                        "row": MemoryBlock(row, pitch),
                        "more": MemoryBlock(more),
                        "solid": MemoryBlock(solid, pitch),
                    }
                    wide = {(name, 0): x for name, x in (*blocks.items(), ("table", MemoryBlock(self.rowed)))}
                    write_stage(f, sweep.steps[0], self.target, self.l, wide, self.l.size)
                continue
            ends = {"stop": -1, "start": count - 1, "step": -1} if sweep.backward else {"stop": count}
            with f.loop(some=True, **ends) as s:  # type: ignore[arg-type]
                at = {x: self.word("bodies", s.i * len(ROW_INTEGERS) + k) for k, x in enumerate(ROW_INTEGERS)}
                branches = [
                    partial(write_stage, f, x, self.target, self.one, self._blocks_of(x, s.i, at))
                    for x in sweep.steps
                ]
                if len(branches) > 1:
                    f.switch(at["kind"], branches)
                else:
                    branches[0]()

    def _blocks_of(self, step: Lowered, body: Value, at: dict[str, Value]) -> dict[tuple[str, int], MemoryBlock]:
        """The blocks of a step of one body."""
        f, scalar, blocks = self.f, self.l.scalar, dict[tuple[str, int], MemoryBlock]()
        for name, number in homes([step]):
            if name == "table":
                block = MemoryBlock(f.const(PTR, "@numbers").at(body * self.plan.width, scalar))
            elif name == "arg":
                first = at["q"] if self.plan.arguments[number] == "q" else at["v"]
                block = MemoryBlock(f.arguments[f"in{number}"].at(first, scalar))
            elif name in ("sines", "cosines", "more"):
                block = MemoryBlock(self.at[name].at(at["v" if name == "more" else "q"], scalar))
            else:
                row = at["v"] + number if name == "row" else at[{"own": "last"}.get(name, name)]
                block = MemoryBlock(self.rowed.at(row, scalar), self.n * self.one.size)
            blocks[name, number] = block
        return blocks

    # -- masks ----------------------------------------------------------------------------------------------

    def mask(self, bits: Value) -> Value:
        """Lanes by the bits of an integer."""
        w = self.l.lanes
        return bits.cast("trunc", f"i{w}").cast("bitcast", f"<{w} x i1>")

    def _first(self, count: int) -> Value:
        bits = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(self.l.lanes))
        return self.f.const(f"<{self.l.lanes} x i1>", f"<{bits}>")

    def loaded(self, place: Value, mask: Value) -> Value:
        l, f = self.l, self.f
        align = f.const(I32, l.size)
        return f.call(l.type, f"llvm.masked.load.{l.suffix}.p0", place, align, mask, f.zero(l.type))

    def stored(self, x: Value, place: Value, mask: Value) -> None:
        align = self.f.const(I32, self.l.size)
        self.f.call(VOID, f"llvm.masked.store.{self.l.suffix}.p0", x, place, align, mask)

    # -- entries --------------------------------------------------------------------------------------------

    def clear(self, place: Value, count: int) -> None:
        """So many numbers, wherever they begin."""
        f, l = self.f, self.l
        zero, each = f.zero(l.type), UNROLLED * l.lanes
        whole = count // each * each
        with f.loop(whole, step=each) as s:
            for k in range(0, each, l.lanes):
                place.at(s.i + k, l.scalar).store(zero, l.size)
        for at in range(whole, count, l.lanes):
            self.stored(zero, place.at(at, l.scalar), self._first(min(l.lanes, count - at)))

    @contextmanager
    def in_block(self, name: str, first: int) -> Iterator[tuple[Value, list[Value]]]:
        """The rows that have something in a block of columns, each with the masks of what."""
        start, end = (self.word(f"{name}_starts", first // self.l.lanes + k) for k in (0, 1))
        with self.f.loop(end, start=start, step=3) as s:
            row, *masks = (self.word(name, s.i + k) for k in range(3))
            yield row, masks

    def entries(self, results: Sequence[Value], pitch: int) -> None:
        """All pairs of rows; what is not coupled is 0. Without a third result M is left out."""
        p = self.plan.places
        for x in results:
            self.clear(x, pitch * self.size)

        def put(row: Value, masks: list[Value], *found: Value) -> None:
            for x, to, bits in zip(found, results, (masks[0], *masks)):
                self.stored(x, self.matrix(to, row, column, pitch), self.mask(bits))

        for at in range(0, self.blocks * self.l.lanes, self.l.lanes):
            column = self.f.const(I64, at)
            psi1, psi2, both, S = (
                self.vectors(k, n, column) for k, n in ((p.psi1, 3), (p.psi2, 6), (p.both, 6), (p.S, 6))
            )
            with self.in_block("lower", at) as (row, masks):
                u1, u2 = (self.shared(k, n, row) for k, n in ((p.u1, 3), (p.u2, 6)))
                by_q, by_v = self.dot((u1, psi1), (psi2, u2)), self.dot((u1, S), (both, u2))
                put(row, masks, by_q, by_v, self.dot((S, u2)))
            far = [self.vectors(k, 6, column) for k in (p.up_q, p.up_v, p.u2)]
            with self.in_block("upper", at) as (row, masks):
                own = self.shared(p.S, 6, row)
                put(row, masks, *(self.dot((own, x)) for x in far))
        if len(results) > 2 and any(self.plan.rotors):
            with self.f.loop(self.size, some=True) as s:
                self.add_rotor(results[2], s.i, pitch)

    def add_rotor(self, M: Value, row: Value, pitch: int) -> None:
        if any(self.plan.rotors):
            place = self.matrix(M, row, row, pitch)
            rotor = self.f.const(PTR, "@rotors").at(row, self.l.scalar).load(self.l.scalar)
            place.store(place.load(self.l.scalar) + rotor)

    def test(self, names: Sequence[str]) -> None:
        """Fails if a result is not finite: sums 0 times all results and tests for NaN."""
        if not self.target.check:
            return
        f, l, count = self.f, self.l, self.size**2
        zero, each = f.zero(l.type), UNROLLED * l.lanes
        whole, sums = count // each * each, {f"s{k}": zero for k in range(UNROLLED)}
        for place in (f.arguments[name] for name in names):
            with f.loop(whole, step=each, carry=sums) as s:
                for k in range(UNROLLED):
                    x = place.at(s.i + k * l.lanes, l.scalar).load(l.type, l.size)
                    setattr(s, f"s{k}", self.plus(x, zero, getattr(s, f"s{k}")))
            sums = {k: getattr(s, k) for k in sums}
            for at in range(whole, count, l.lanes):
                x = self.loaded(place.at(at, l.scalar), self._first(min(l.lanes, count - at)))
                sums["s0"] = self.plus(x, zero, sums["s0"])
        total, *more = sums.values()
        for x in more:
            total = total + x
        bad = total.is_nan().cast("bitcast", f"i{l.lanes}").differs(0)
        with f.when(bad):
            self.fail()

    def fail(self) -> None:
        self.f.status.store(self.f.const(self.l.scalar, math.nan))


def _ragged(rows: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Lists of any length as one: where each begins, and all items; one more, so that a reader may look ahead."""
    starts = [0]
    for x in rows:
        starts.append(starts[-1] + len(x))
    return starts, [*(i for x in rows for i in x), 0]


def add_across(m: Module, plan: Across, low: Lowered, target: Target) -> None:
    """@one, as a kernel of one sample."""
    (ForwardKernel if plan.first else RowKernel)(m, plan, low, target)


class ForwardKernel(RowKernel):
    """-M^-1 dtau/dq, -M^-1 dtau/dv and M^-1, with dtau at the accelerations a = M^-1 (tau - h)."""

    def phases(self) -> None:
        self.H, self.L = self.at["H"], self.at["L"]
        self.run(self.plan.first)
        self.factorise()
        self.accelerations()
        self.run(self.plan.sweeps)
        self.answers([self.f.arguments[f"out{k}"] for k in range(3)])

    @contextmanager
    def above(self, row: Value) -> Iterator[Value]:
        """The ancestors of a row, the nearest first."""
        first, end = (self.word("ancestors_starts", row + k) for k in (0, 1))
        with self.f.loop(end, start=first) as s:
            yield self.word("ancestors", s.i)

    def subtract(self, x: Value, matrix: Value, source: Value, to: Value) -> None:
        """x times a row from another, by blocks up to the diagonal."""
        rows = (self.matrix(matrix, k, 0, self.n) for k in (to, source))
        DenseCode(self.f.module, self.l).axpy(next(rows), self.minus(x), next(rows), to + 1)

    def scalar(self, base: Value, row: Value, column: Value) -> Value:
        return self.matrix(base, row, column, self.n).load(self.l.scalar)

    def factorise(self) -> None:
        """M = L^T E^-1 L from the last row to the first; L by rows, -E in place of the gains."""
        self.inertias()
        with self.f.loop(-1, start=self.size - 1, step=-1) as s:
            self.eliminate(s.i)
        p, fma = self.plan, self.target.fma
        scalar = self.l.scalar

        def entry(row: int, column: int) -> IRScalar:
            return StoredScalar(self.L.at(row * self.n + column, scalar), scalar, fma)

        self.rows = [{i: entry(k, i) for i in above} for k, above in enumerate(p.ancestors)]
        self.E = [StoredScalar(self.gain.at(k, scalar), scalar, fma) for k in range(self.size)]

    def inertias(self) -> None:
        """The lower triangle of M, and what of it the pivots are compared with."""
        p, scalar = self.plan.places, self.l.scalar
        self.clear(self.H, self.n * self.n)
        for at in range(0, self.blocks * self.l.lanes, self.l.lanes):
            column = self.f.const(I64, at)
            S = self.vectors(p.S, 6, column)
            with self.in_block("lower", at) as (row, masks):
                x = self.dot((S, self.shared(p.u2, 6, row)))
                self.stored(x, self.matrix(self.H, row, column, self.n), self.mask(masks[1]))
        with self.f.loop(self.size, some=True) as s:
            self.add_rotor(self.H, s.i, self.n)
            self.gain.at(s.i, scalar).store(self.scalar(self.H, s.i, s.i))

    def eliminate(self, k: Value) -> None:
        """Row k of L, and -E_k."""
        f, scalar = self.f, self.l.scalar
        pivot, scale = self.scalar(self.H, k, k), self.gain.at(k, scalar)
        if self.target.check:
            floor = scale.load(scalar) * FLOOR[self.l.size]
            with f.when(~(pivot > floor)):
                self.fail()
        inverse = self.f.const(scalar, 1.0) / pivot
        scale.store(self.minus(inverse))
        with self.above(k) as i:
            x = self.scalar(self.H, k, i) * inverse
            self.matrix(self.L, k, i, self.n).store(x)
            self.subtract(x, self.H, k, i)

    def accelerations(self) -> None:
        """a = -M^-1 (h - tau)."""
        scalar, h = self.l.scalar, self.plan.places.h
        force = (self.number(h, k).load(scalar) - self.f.in2.at(k, scalar).load(scalar) for k in range(self.size))
        for k, x in enumerate(times_inverse(self.rows, self.E, [IRScalar(y, self.target.fma) for y in force])):
            self.more.at(k, scalar).store(x.x)

    def answers(self, results: list[Value]) -> None:
        """dtau/dq, dtau/dv and -1 in the results, and over them -M^-1 times what is there."""
        self.entries(results[:2], self.size)
        self.clear(results[2], self.size**2)
        with self.f.loop(self.size, some=True) as s:
            self.matrix(results[2], s.i, s.i, self.size).store(self.f.const(self.l.scalar, -1.0))
        self.rest = solve_columns(self.f, self.l, results, range(self.size), self.rows, self.E, self.target.fma)

    def test(self, names: Sequence[str]) -> None:
        """The solve has summed up 0 times all results."""
        if self.target.check:
            with self.f.when(self.rest.is_nan()):
                self.fail()
