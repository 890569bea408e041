"""The solve of constrained motion in machine code, behind the steps that make its terms.

    x = x0 + M^-1 Gamma^T N,   Gamma x + gamma = 0,   M = L^T E^-1 L

Independent rows are solved by the Schur complement. Where a pivot is thin, the sample's rows
W = Gamma L^-1 E^(1/2) are decomposed orthogonally: directions below RANK of the largest are lost, and N has the
least norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..codegen.graph.program import PIVOT_FLOOR
from ..codegen.llvm.dense.ranked import RANKED_LANES, Ranked, padded, ranked_room
from ..codegen.llvm.ir import F64, I1, I64, PTR, VOID, IRFunction, Value
from ..codegen.llvm.ir_scalar import IRScalar, StoredScalar
from ..codegen.llvm.math import Lanes
from ..codegen.llvm.tail import Room, Tail, TailPlace
from ..codegen.lower.lower import Lowered
from ..mechanics.algorithms.inertia_matrix import Factors, guard_pivots
from ..mechanics.algorithms.schur import Schur
from ..mechanics.scalar import Scalar
from ..mechanics.tree import Loose
from .solve import CONSISTENT_SHARE, RANK_TOLERANCE

Array = np.ndarray[Any, Any]
LEAST_PIVOT_SHARE = 1e-3  # of its diagonal entry: a smaller pivot leaves less than 13 digits, and is decomposed
LEAST_TRACE_SHARE = 1e-13  # of the trace: a row that is so much smaller than the others may be one that is lost
_RANKED_VECTOR = f"<{RANKED_LANES} x {F64}>"


@dataclass(frozen=True, eq=False)
class SolveTail(Tail):
    """The first outputs are x and [N, rank, ...]; rank is NaN where dependent rows ask for what no motion has.

    order: rates in the order of elimination, in which the steps leave vectors and matrices. lower: where L has
    entries, by rows. touched: by rate, the first and one past the last row of Gamma that it moves. rows: m. M
    is its lower triangle by rows, where L has entries and on the diagonal; rows: those touched, by rate.
    starting: `start` is added to x. sides: vectors that dependent rows must agree on, beside what the rows need,
    where `agree`. forced: whether there is a force. loose: rates by whose runs pivots are tested, see
    `guard_pivots`.
    """

    first: ClassVar[tuple[str, ...]] = ("force", "gamma", "start", "sides", "M", "rows")  # hidden outputs
    order: tuple[int, ...]
    lower: tuple[tuple[int, ...], ...]
    touched: tuple[tuple[int, int], ...]
    rows: int
    starting: bool
    sides: int
    agree: bool
    forced: bool
    loose: Mapping[int, Loose]

    @property
    def written(self) -> Sequence[range]:
        return range(len(self.order)), range(self.rows + 1)

    @property
    def hidden(self) -> int:  # type: ignore[override]
        return len(self.first)

    def room(self, low: Lowered, l: Lanes) -> Room:
        """Working memory of the solve, by name, with the starts of the hidden outputs."""
        starts, at = list[int](), 0
        for port in low.outputs[-self.hidden :]:
            starts.append(at)
            at += port.size
        return Room(tuple(starts), at, self.beside(l), self.stays(l))

    def stays(self, l: Lanes) -> frozenset[int]:
        """Hidden outputs that are wanted in memory."""
        return frozenset()

    def beside(self, l: Lanes) -> int:
        """Scalars for samples that are decomposed one by one."""
        return self.told * l.lanes + _Weak.room(self)

    @cached_property
    def told(self) -> int:
        """Numbers that the decomposition of a sample starts from."""
        n, m = len(self.order), self.rows
        moved = sum(last - first for first, last in self.touched)
        return sum(map(len, self.lower)) + (2 + self.starting) * n + m * (1 + self.sides) + moved

    def factors(self, L: Sequence[Any], E: Sequence[Any]) -> Factors:
        entries = iter(L)
        return Factors.known([{j: next(entries) for j in row} for row in self.lower], E, range(len(self.order)))

    def jacobian(self, entries: Iterable[Any]) -> list[list[Any]]:
        """Gamma, (rows, rates), from its touched entries by rate; 0.0 elsewhere."""
        out, rest = [[0.0] * len(self.order) for _ in range(self.rows)], iter(entries)
        for i, (first, last) in enumerate(self.touched):
            for r in range(first, last):
                out[r][i] = next(rest)
        return out

    def inertia(self, entries: Iterable[Any]) -> list[dict[int, Any]]:
        """M's lower triangle by rows, from its entries."""
        rest = iter(entries)
        return [{j: next(rest) for j in (*row, k)} for k, row in enumerate(self.lower)]

    def write(self, f: IRFunction, place: TailPlace) -> None:
        TailSolve(self, f, place).write()


class TailSolve:
    """The solve of one sample or of a tile."""

    def __init__(self, tail: SolveTail, f: IRFunction, place: TailPlace) -> None:
        self.tail, self.f, self.place, self.l = tail, f, place, place.l
        self.n, self.m = len(tail.order), tail.rows
        self.hidden = dict(zip(tail.first, place.hidden))

    def vector(self, name: str, count: int) -> list[Any]:
        """A hidden output."""
        return [self.hidden[name].scalar(k, self.place.fma) for k in range(count)]

    def number(self, x: Any) -> Value:
        return x.x if isinstance(x, IRScalar) else self.f.const(self.l.type, float(x))

    def rows(self) -> list[list[Any]]:
        """Gamma over the rates."""
        count = sum(last - first for first, last in self.tail.touched)
        return self.tail.jacobian(self.vector("rows", count))

    def write(self) -> None:
        tail, (moved, held, *_), n, m = self.tail, self.place.outputs, self.n, self.m
        M = Factors(tail.inertia(self.vector("M", n + sum(map(len, tail.lower)))), range(n))
        schur = Schur(M, self.rows())
        force = self.vector("force", n) if tail.forced else [0.0] * n
        needed = schur.needed(force, self.vector("gamma", m))
        x, N = schur.solved(needed)
        start = self.vector("start", n * tail.starting)
        x = [y + z for y, z in zip(x, start)] if start else x
        for i, y in zip(tail.order, x):
            moved.store(i, self.number(y))
        for r, y in enumerate((*N, m)):
            held.store(r, self.number(y))
        if m:
            L = [M.L[k][j] for k, row in enumerate(tail.lower) for j in row]
            Y = [schur.columns[i][r] for i, (first, last) in enumerate(tail.touched) for r in range(first, last)]
            sides, told = self.vector("sides", m * tail.sides), [*needed.free, *needed.rates]
            self.where_thin(self.sound(schur), [*L, *M.inverse, *told, *start, *sides, *Y])
        self.guard(M)

    def guard(self, M: Factors) -> None:
        """No rank, and a status, for samples where a pivot of M is all rounding or a result is no number."""
        f, l, tail = self.f, self.l, self.tail
        guards = _Guards(self, tail.loose)
        guard_pivots(guards, M, tail.order, M.diagonal, [0.0] * self.n)
        lost, zero = f.select(guards.good, f.zero(l.type), f.const(l.type, math.nan)), f.zero(l.type)
        for output, count in zip(self.place.outputs, (self.n, self.m)):
            for k in range(count):
                lost = lost + output.at(k).load(l.type, l.bytes) * zero
        for at in (self.place.outputs[1].at(self.m), self.place.status):
            at.store(at.load(l.type, l.bytes) + lost, l.bytes)

    def sound(self, schur: Schur) -> Value:
        """Tells if the rows are independent for certain."""
        slight = self.number(sum(schur.diagonal) * LEAST_TRACE_SHARE)
        all_sound = self.f.const(self.l.many(I1), -1)
        for pivot, x in zip(schur.pivots, schur.diagonal):
            size = self.number(x)
            all_sound = all_sound & (self.number(pivot) > size * LEAST_PIVOT_SHARE) & (size > slight)
        return all_sound

    def where_thin(self, sound: Value, told: Sequence[Any]) -> None:
        """The samples whose rows are not independent for certain, one by one."""
        f, l, place = self.f, self.l, self.place
        block, thin = place.work, sound ^ -1
        if l.lanes > 1:
            thin = thin.cast("bitcast", f"i{l.lanes}").cast("zext", I64)
        with f.when(thin if l.lanes == 1 else thin.differs(0)):
            for k, x in enumerate(told):
                block.at(k * l.lanes).store(self.number(x), 8)
            room = block.at(len(told) * l.lanes)
            with self.each(thin) as lane:
                given = (p.at(lane) for p in (*(x.base for x in place.outputs[:2]), block, place.status))
                f.call(VOID, _Weak.add(self.tail, f, l, place.fma), *given, room)

    @contextmanager
    def each(self, bits: Value) -> Iterator[Value]:
        """The places of the bits that are set."""
        if self.l.lanes == 1:
            yield self.f.const(I64, 0)
            return
        with self.f.loop(self.l.lanes, some=True) as s, self.f.when(((bits >> s.i) & 1).differs(0)):
            yield s.i


class _Guards:
    """Pivots that hold, of all samples. loose: as of the tree."""

    def __init__(self, solve: TailSolve, loose: Mapping[int, Loose]) -> None:
        self.solve, self.loose, self.good = solve, loose, solve.f.const(solve.l.many(I1), -1)

    def guard(self, pivot: Scalar, scale: Scalar, v: int) -> None:
        """The pivot is more than rounding leaves."""
        number = self.solve.number
        self.good = self.good & (number(pivot) > number(scale) * PIVOT_FLOOR[8])


class _Weak:
    """void @weak_<lanes>(moved, held, told, status, room): one sample by the decomposition of its rows."""

    @staticmethod
    def room(tail: SolveTail) -> int:
        n, m = padded(len(tail.order)), padded(tail.rows)
        return ranked_room(tail.rows, len(tail.order)) + 2 * n + 3 * m

    @classmethod
    def add(cls, tail: SolveTail, caller: IRFunction, l: Lanes, fma: bool) -> str:
        """The function's name."""
        name = f"weak_{l.lanes}"
        f = caller.module.function(name, VOID, moved=PTR, held=PTR, told=PTR, status=PTR, room=PTR)
        cls(tail, f, l.lanes, fma).write()
        f.ret()
        return name

    def __init__(self, tail: SolveTail, f: IRFunction, step: int, fma: bool) -> None:
        self.tail, self.f, self.step, self.fma, self.used = tail, f, step, fma, 0
        self.n, self.m = len(tail.order), tail.rows
        self.ranked = Ranked(f, self.m, self.n, f.room)
        free = f.room.at(ranked_room(self.m, self.n))
        self.y0, self.x = free, free.at(padded(self.n))
        self.N, self.b, self.rest = (free.at(2 * padded(self.n) + k * padded(self.m)) for k in range(3))

    def next(self, count: int) -> list[Any]:
        """So many more of the numbers that were told."""
        first, self.used = self.used, self.used + count
        return [StoredScalar(self.f.told.at(k * self.step), F64, self.fma) for k in range(first, self.used)]

    def write(self) -> None:
        f, tail, n, m, ranked = self.f, self.tail, self.n, self.m, self.ranked
        M = tail.factors(self.next(sum(map(len, tail.lower))), self.next(n))
        free, rates = self.next(n), self.next(m)
        start, sides = self.next(n * tail.starting), self.next(m * tail.sides)
        for at, count in ((ranked.W, m * padded(n)), (self.b, padded(m))):
            with f.loop(count, step=RANKED_LANES, some=True) as s:
                at.at(s.i).store(f.zero(_RANKED_VECTOR), 8)
        root = [IRScalar(f.call(F64, "llvm.sqrt.f64", e.x), self.fma) for e in M.inverse]
        for i, (first, last) in enumerate(tail.touched):
            for r, y in zip(range(first, last), self.next(last - first)):
                ranked.W.at(r * padded(n) + i).store((y * root[i]).x)
        for r, b in enumerate(rates):
            self.b.at(r).store(b.x)
        rank = ranked.decompose(RANK_TOLERANCE)
        ranked.solve(rank, self.b, self.x, self.N)
        moved = M.solve_lower(
            [y + StoredScalar(self.x.at(i), F64, self.fma) / root[i] for i, y in enumerate(free)]
        )
        moved = [x + y for x, y in zip(moved, start)] if start else moved
        for i, value in zip(tail.order, moved):
            f.moved.at(i * self.step).store(value.x)
        for r in range(m):
            f.held.at(r * self.step).store(self.N.at(r).load())
        f.held.at(m * self.step).store(self.agreed(rank, [*sides, *(rates if tail.agree else [])]))

    def agreed(self, rank: Value, sides: Sequence[Any]) -> Value:
        """The rank, or NaN, which the status becomes too."""
        f, m, agreed_rank = self.f, self.m, rank.cast("sitofp", F64)
        for k in range(0, len(sides), m):
            size = f.const(F64, 1.0)
            for r, side in enumerate(sides[k : k + m]):
                x = side.x
                self.b.at(r).store(x)
                magnitude = f.call(F64, "llvm.fabs.f64", x)
                size = f.select(magnitude > size, magnitude, size)
            bad = self.ranked.lost(rank, self.b, self.rest) > size * CONSISTENT_SHARE
            agreed_rank = f.select(bad, f.const(F64, "0x7FF8000000000000"), agreed_rank)
        f.status.store(f.status.load() + agreed_rank * 0.0)
        return agreed_rank
