"""One sample across the lanes: what is alike of many freedoms, or of many columns, is computed side by side.

The numbers of freedom r stand in row r: number k of all rows lies together, `pitch` bytes after number k - 1. What
moves along the tree goes body by body; all else takes as many rows at once as a vector has lanes, whichever bodies
they are of. Entries of matrices pair a row with those of its ancestors or descendants, by blocks of columns; masks
say what there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from ...lower.lower import Lowered
from ...lower.split import split_functions
from ..ir import I8, I32, I64, PTR, VOID, Module, Value, literal
from ..kernel import FunctionBody, Kernel
from ..math import Lanes, add_sincos
from ..ports import ALONE, Address, Ports
from ..target import LINE, Target
from .steps import BodyStep

UNROLLED = 4  # vectors that are cleared or tested at a time
INTEGERS = ("kind", "parent", "last", "q", "v")  # of a body: rows of the parent and of itself, first coordinates


class RowSweep(NamedTuple):
    """One step for every body, by its kind, inwards or outwards; or, wide, one step for all rows."""

    steps: tuple[BodyStep, ...]
    backward: bool = False
    wide: bool = False


class RowPairs(NamedTuple):
    """Positions of the numbers that entries are made of, 6 each but for u1 and psi1: see `Across`."""

    S: int
    psi1: int
    psi2: int
    both: int
    u1: int
    u2: int
    up_q: int
    up_v: int
    h: int


class Across(NamedTuple):
    """dtau/dq, dtau/dv, M of one sample: for j at or above i, in the rows of both,

        dq_ij = u1_i . psi1_j + psi2_j . u2_i,   dv_ij = u1_i . S_j + both_j . u2_i,   M_ij = S_j . u2_i

    and for i below j, in another body, dq_ji = S_j . up_q_i, dv_ji = S_j . up_v_i. first: sweeps before these, for
    M and the bias h; then come accelerations, and the results are those of forward dynamics.

    numbers: a table, `width` for each body, and after them by rows what wide steps read. bodies: by INTEGERS.
    ancestors: of every row, the nearest first. own: the first row of its body. ground: its row's.
    """

    first: tuple[RowSweep, ...]
    sweeps: tuple[RowSweep, ...]
    places: RowPairs
    arguments: tuple[str, ...]
    depth: int  # numbers of a row
    width: int
    numbers: tuple[float, ...]
    solids: tuple[tuple[float, ...], ...]
    bodies: tuple[tuple[int, ...], ...]
    ancestors: tuple[tuple[int, ...], ...]
    own: tuple[int, ...]
    ground: dict[int, float]
    rotors: tuple[float, ...]

    @property
    def rows(self) -> int:
        return len(self.ancestors)

    def padded(self, l: Lanes) -> int:
        """Rows with that of the ground, in whole vectors."""
        return -(-(self.rows + 1) // l.lanes) * l.lanes


def scratch_of(plan: Across, low: Lowered, target: Target) -> int:
    """Bytes of working memory."""
    l = target.of(target.lanes)
    n = plan.padded(l)
    angles = -(-low.inputs[0].size // l.lanes) * l.lanes
    return LINE + l.size * (plan.depth * n + 2 * angles + 2 * n + (2 * n * n if plan.first else 0))


class RowKernel:
    """@one, as a kernel of one sample: what inverse dynamics needs of it."""

    def __init__(self, m: Module, plan: Across, low: Lowered, target: Target) -> None:
        self.plan, self.target, self.one, self.l = plan, target, target.of(1), target.of(target.lanes)
        self.n, self.size, self.blocks = plan.padded(self.l), plan.rows, -(-plan.rows // self.l.lanes)
        names = [f"in{i}" for i in range(len(low.inputs))] + [f"out{i}" for i in range(len(low.outputs))]
        given = {**dict.fromkeys(names, ALONE), "scratch": ALONE, "status": ALONE}
        self.f = f = m.function("one", VOID, given, attributes=' "stackrealign"')
        self._constants(m)
        start = ((f.scratch.cast("ptrtoint", I64) + (LINE - 1)) & -LINE).cast("inttoptr", PTR)
        room = self._rooms(start, low.inputs[0].size)
        self.rowed, self.sines, self.cosines, self.more, self.gain = (next(room) for _ in range(5))
        self.angles(m, low.inputs[0].size)
        for k, x in plan.ground.items():
            self.number(k, self.size).store(f.const(self.l.scalar, x), self.one.size)
        self.matrices = list(room)
        self.phases()
        self.test([x for x in f.arguments if x.startswith("out")])
        f.ret()

    def phases(self) -> None:
        """Writes the code between the angles and the test of the results."""
        self.run(self.plan.sweeps)
        self.entries([self.f.out0, self.f.out1, self.f.out2], self.size)

    # -- memory ---------------------------------------------------------------------------------------------

    def _rooms(self, at: Value, nq: int) -> Iterator[Value]:
        """Numbers by rows, sines, cosines, two vectors, matrices."""
        angles = -(-nq // self.l.lanes) * self.l.lanes
        sizes = [self.plan.depth * self.n, angles, angles, self.n, self.n, *[self.n * self.n] * 2]
        for size in sizes:
            yield at
            at = at.at(size, self.l.scalar)

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
            for k, to in enumerate((self.sines, self.cosines)):
                to.at(at, l.scalar).store(both.part(k), l.bytes)

    def run(self, sweeps: Sequence[RowSweep]) -> None:
        f, lanes = self.f, self.l.lanes
        count = len(self.plan.bodies)
        for sweep in sweeps:
            if sweep.wide:
                with f.loop(self.blocks * lanes, step=lanes, some=True) as s:
                    bases = {"row": self.rowed.at(s.i, self.l.scalar), "more": self.more.at(s.i, self.l.scalar)}
                    bases |= {"solid": f.const(PTR, "@solids").at(s.i, self.l.scalar), "table": self.rowed}
                    self.write(sweep.steps[0], self.l, bases)
                continue
            ends = {"stop": -1, "start": count - 1, "step": -1} if sweep.backward else {"stop": count}
            with f.loop(some=True, **ends) as s:  # type: ignore[arg-type]
                at = {x: self.word("bodies", s.i * len(INTEGERS) + k) for k, x in enumerate(INTEGERS)}
                branches = [partial(self.write, x, self.one, self._bases(x, s.i, at)) for x in sweep.steps]
                if len(branches) > 1:
                    f.switch(at["kind"], branches)
                else:
                    branches[0]()

    def _bases(self, step: BodyStep, body: Value, at: dict[str, Value]) -> dict[str, Value]:
        f, scalar, found = self.f, self.l.scalar, dict[str, Value]()
        for name in dict.fromkeys(p.base for p in (*step.inputs, *step.outputs)):
            kind = name.rstrip("0123456789")
            number = int(name[len(kind) :] or 0)
            if kind == "table":
                found[name] = f.const(PTR, "@numbers").at(body * self.plan.width, scalar)
            elif kind == "arg":
                first = at["q"] if self.plan.arguments[number] == "q" else at["v"]
                found[name] = f.arguments[f"in{number}"].at(first, scalar)
            elif kind in ("sines", "cosines"):
                found[name] = getattr(self, kind).at(at["q"], scalar)
            elif kind == "more":
                found[name] = self.more.at(at["v"], scalar)
            else:
                row = at["v"] + number if kind == "row" else at[{"own": "last"}.get(kind, kind)]
                found[name] = self.rowed.at(row, scalar)
        return found

    def write(self, step: BodyStep, l: Lanes, bases: dict[str, Value]) -> None:
        """A step of one body or of many rows."""
        pitch = self.n * l.size

        def address(base: str, offset: int) -> Address:
            apart = base.rstrip("0123456789") in ("row", "own", "parent", "solid")
            return Address(bases[base].at(offset * (pitch if apart else l.size), I8).text, pitch=pitch * apart)

        inputs, outputs = ([address(*p) for p in x] for x in (step.inputs, step.outputs))
        ports = Ports(l, inputs, outputs, {}, l.size, True)
        kernel = Kernel(step.low, self.target, split_functions(step.low, len(step.low.steps)), ports)
        kernel.ends = set()  # results are tested
        FunctionBody(kernel, self.f, stem=self.f.fresh("step") + "_").write(step.low.steps)

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
