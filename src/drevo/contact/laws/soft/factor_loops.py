"""The solution of H x = b by H = L^T D L in loops over the rows of H and what is not zero in them.

So bodies that do not touch cost one another nothing, whatever might touch.

  Featherstone 2005, Efficient factorization of the joint-space inertia matrix for branched kinematic trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ....codegen.llvm.ir import I8, I64, Value
from ....codegen.llvm.stages import StageCalls


def triangle(n: int) -> int:
    """Numbers of a lower triangle of n rows, and where row n begins."""
    return n * (n + 1) // 2


def plus_product(c: StageCalls, z: Value, x: Value, y: Value) -> Value:
    """z + x y, by one instruction where the machine has it."""
    return c.f.call(c.l.type, f"llvm.fma.{c.l.suffix}", x, y, z) if c.fma else z + x * y


def minus_product(c: StageCalls, z: Value, x: Value, y: Value) -> Value:
    """z - x y."""
    return plus_product(c, z, c.f.let(x.type, f"fneg {x.type} {x.text}"), y)


def sum_of_values(terms: Iterable[Value]) -> Value:
    """The sum of values of the code."""
    first, *rest = terms
    for x in rest:
        first = first + x
    return first


class RowPattern(NamedTuple):
    """Addresses of what says which entries beside the diagonal are not zero: by row where its columns begin and
    how many they are; the columns, ascending."""

    starts: Value
    counts: Value
    columns: Value


def fixed_shape(c: StageCalls, rows: Sequence[Sequence[int]]) -> RowPattern:
    """The shape of constant columns by row, in the order of elimination."""
    beside = [[j for j in row if j < k] for k, row in enumerate(rows)]
    counts = [len(row) for row in beside]
    starts = list(accumulate(counts, initial=0))[:-1]
    return RowPattern(*(c.table(I64, x or [0]) for x in (starts, counts, [j for row in beside for j in row])))


def filled_shape(c: StageCalls, n: int, flags: Value) -> RowPattern:
    """The shape that elimination leaves of a triangle of flags, by rows: what is beside the diagonal of a row
    fills the row of the last of its columns."""
    f = c.f
    shape = RowPattern(f.alloca(I64, n), f.alloca(I64, n), f.alloca(I64, triangle(n)))
    with f.loop(n, some=True, many=0) as i:
        k = f.value(n - 1) - i.i
        row = k * (k + 1) >> 1
        shape.starts.at(k, I64).store(i.many)
        with f.loop(k, many=i.many) as j:
            shape.columns.at(j.many, I64).store(j.i)
            j.many = j.many + flags.at(row + j.i, I64).load(I64)
        count = j.many - i.many
        shape.counts.at(k, I64).store(count)
        with f.when(count > 0):
            last = shape.columns.at(j.many - 1, I64).load(I64)
            with f.loop(count, some=True) as a:
                column = shape.columns.at(i.many + a.i, I64).load(I64)
                flags.at((last * (last + 1) >> 1) + column, I64).store(f.const(I64, 1))
        i.many = j.many
    return shape


class FactorLoops:
    """The loops for one shape; order: the rates by row, in the order of elimination.

    Blocks: "H", a lower triangle by rows, which its factors replace; "x", of a number for each row.
    """

    def __init__(self, c: StageCalls, shape: RowPattern, order: Sequence[int]) -> None:
        self.c, self.f, self.shape = c, c.f, shape
        self.n, self.order = len(order), list(order)

    @property
    def F(self) -> Value:
        """The address of the matrix, which is made where it is used."""
        return self.c.at("H")

    @property
    def x(self) -> Value:
        """The address of the numbers of the rows."""
        return self.c.at("x")

    def write(self, right: str, out: str) -> None:
        """out = -H^-1 right, over rates."""
        self.factorise()
        self.solve(self.c.at(right), self.c.at(out), minus=True)

    def clear(self) -> None:
        """H = 0, beside the diagonal."""
        with self.f.loop(self.n, some=True) as i:
            start, count, row = self._row(i.i)
            with self.f.loop(count) as a:
                self._put(self.F, row + self._column(start + a.i), self.f.zero(self.c.l.type))

    def factorise(self) -> None:
        """From the last row on: 1 / D to the diagonal, L beside it, which round as `Newton` does."""
        c, f, F = self.c, self.f, self.F
        with f.loop(self.n, some=True) as i:
            k = f.value(self.n - 1) - i.i
            start, count, row = self._row(k)
            inverse = f.const(c.l.type, 1.0) / self._load(F, row + k)
            self._put(F, row + k, inverse)
            with f.loop(count) as a:
                last = count - 1 - a.i
                at = self._column(start + last)
                share, other = self._load(F, row + at) * inverse, at * (at + 1) >> 1
                with f.loop(last + 1, some=True) as b:
                    j = self._column(start + b.i)
                    less = minus_product(c, self._load(F, other + j), share, self._load(F, row + j))
                    self._put(F, other + j, less)
                self._put(F, row + at, share)

    def solve(self, right: Value, out: Value, minus: bool = False) -> None:
        """out = H^-1 right, or less it, at addresses of vectors over rates."""
        f = self.f
        with f.loop(self.n, some=True) as i:
            self._put(self.x, i.i, self._load(right, self._item(self.order, i.i)))
        self._inwards()
        with f.loop(self.n, some=True) as i:
            p, rate = self._solved(i.i), self._item(self.order, i.i)
            self._put(out, rate, -p if minus else p)

    def _inwards(self) -> None:
        """x becomes L^-T x, from the last row on."""
        c, f, F, x = self.c, self.f, self.F, self.x
        with f.loop(self.n, some=True) as i:
            k = f.value(self.n - 1) - i.i
            start, count, row = self._row(k)
            y = self._load(x, k)
            with f.loop(count) as a:
                j = self._column(start + a.i)
                self._put(x, j, minus_product(c, self._load(x, j), self._load(F, row + j), y))

    def _solved(self, k: Value) -> Value:
        """x of row k by those before it."""
        start, count, row = self._row(k)
        first = self._load(self.x, k) * self._load(self.F, row + k)
        with self.f.loop(count, carry={"y": first}) as a:
            j = self._column(start + (count - 1 - a.i))
            a.y = minus_product(self.c, a.y, self._load(self.F, row + j), self._load(self.x, j))
        self._put(self.x, k, a.y)
        return a.y

    def _row(self, k: Value) -> tuple[Value, Value, Value]:
        """Beginning and number of the columns of a row beside the diagonal, and its beginning in "H"."""
        starts, counts, _ = self.shape
        return starts.at(k, I64).load(I64), counts.at(k, I64).load(I64), k * (k + 1) >> 1

    def _column(self, k: Value) -> Value:
        return self.shape.columns.at(k, I64).load(I64)

    def _load(self, base: Value, k: Value) -> Value:
        return base.at(k * self.c.l.bytes, I8).load(self.c.l.type, self.c.l.bytes)

    def _put(self, base: Value, k: Value, y: Value) -> None:
        base.at(k * self.c.l.bytes, I8).store(y, self.c.l.bytes)

    def _item(self, values: Sequence[int], k: Value) -> Value:
        return self.c.table(I64, list(values) or [0]).at(k, I64).load(I64)
