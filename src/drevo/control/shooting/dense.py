"""Dense matrices of known sizes in machine code: products in tiles of registers, and what a sweep does with rows.

Matrices are in memory row by row, `width` apart, which is a whole number of vectors; what stands behind the last
column may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as pairs
from typing import NamedTuple

from ...codegen.llvm.ir import F64, PTR, VOID, IRFunction, Module, Value
from ...codegen.llvm.math import Lanes

ROWS = 4  # of a tile
UNROLLED = 8  # products of a tile that are written one after the other
_WIDE = {8: 3}  # vectors in a row of a tile, by lanes; with few registers 2


class MatrixProduct(NamedTuple):
    """C +- A B. left: of A, from row to row and from column to column; B and C: from row to row."""

    rows: int
    depth: int
    cols: int
    left: tuple[int, int]
    b: int
    c: int
    sign: float = 1.0
    fresh: bool = False  # C is A B


class DenseCode:
    """Matrix operations of a module of machine code; each function is made at its first use."""

    def __init__(self, m: Module, l: Lanes, fma: bool) -> None:
        self.m, self.l, self.fma = m, l, fma

    def padded(self, n: int) -> int:
        """n in whole vectors."""
        return -(-n // self.l.lanes) * self.l.lanes

    def vectors(self, n: int) -> range:
        """The indices at which the vectors of a row begin."""
        return range(0, n, self.l.lanes)

    def load(self, p: Value, k: int | Value = 0) -> Value:
        return p.at(k).load(self.l.type, 8)

    def store(self, x: Value, p: Value, k: int | Value = 0) -> None:
        p.at(k).store(x, 8)

    def splat(self, p: Value, k: int | Value = 0) -> Value:
        """One number in all lanes."""
        return p.at(k).load(F64).splat(self.l.lanes)

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c."""
        return a.f.call(a.type, f"llvm.fma.{self.l.suffix}", a, b, c) if self.fma else a * b + c

    def total(self, x: Value) -> Value:
        """The sum of the lanes."""
        f = x.f
        return f.call(F64, f"llvm.vector.reduce.fadd.{self.l.suffix}", f.zero(F64), x, flags="reassoc ")

    def dot(self, a: Value, b: Value, count: int) -> Value:
        """The sum of products of so many numbers."""
        f = a.f
        total = f.zero(self.l.type)
        for c in self.vectors(count):
            x = self.load(a, c), self.load(b, c)
            if count - c < self.l.lanes:  # what stands behind may be no number
                y = tuple(f.select(self.first(f, count - c) > 0.0, z, f.zero(self.l.type)) for z in x)
                x = y[0], y[1]
            total = self.fused(*x, total)
        return self.total(total)

    def first(self, f: IRFunction, count: int) -> Value:
        """1 in so many lanes, 0 in the others."""
        values = ", ".join(f"double {float(k < count):.1f}" for k in range(self.l.lanes))
        return f.const(self.l.type, f"<{values}>")

    # -- functions ------------------------------------------------------------------------------------------

    def made(self, name: str, arguments: Sequence[str], write: Callable[[IRFunction], None]) -> str:
        """A function by its name."""
        if name not in self.m.functions:
            g = self.m.function(name, VOID, dict.fromkeys(arguments, PTR))
            write(g)
            g.ret()
        return name

    def multiply(self, f: IRFunction, p: MatrixProduct, C: Value, A: Value, B: Value) -> None:
        """C +- A B, or C = A B; C is none of the others."""
        signs = {1.0: "p", -1.0: "m"}
        name = f"product_{'_'.join(map(str, (*p[:3], *p.left, p.b, p.c)))}{signs[p.sign]}{'f' if p.fresh else ''}"
        f.call(VOID, self.made(name, "CAB", lambda g: self._product(g, p)), C, A, B)

    def _product(self, g: IRFunction, p: MatrixProduct) -> None:
        starts, wide = list(self.vectors(p.cols)), _WIDE.get(self.l.lanes, 2)
        whole = p.rows // ROWS * ROWS
        for k in range(0, len(starts), wide):
            group = starts[k : k + wide]
            if whole:
                with g.loop(whole, step=ROWS, some=True) as s:
                    self._tile(g, p, s.i, ROWS, group)
            if p.rows > whole:
                self._tile(g, p, g.const("i64", whole), p.rows - whole, group)

    def _tile(self, g: IRFunction, p: MatrixProduct, row: Value, rows: int, cols: Sequence[int]) -> None:
        """So many rows of C from one on, in some vectors of columns."""
        C, A = g.C.at(row * p.c), g.A.at(row * p.left[0])
        places = list(pairs(range(rows), cols))
        zero = g.zero(self.l.type)
        sums = [zero if p.fresh else self.load(C, r * p.c + c) for r, c in places]

        def step(sums: Sequence[Value], A: Value, B: Value, k: int) -> list[Value]:
            right = {c: self.load(B, k * p.b + c) for c in cols}
            left = [self.splat(A, r * p.left[0] + k * p.left[1]) for r in range(rows)]
            left = [-x for x in left] if p.sign < 0 else left
            return [self.fused(left[r], right[c], x) for (r, c), x in zip(places, sums)]

        if p.depth <= UNROLLED:
            for k in range(p.depth):
                sums = step(sums, A, g.B, k)
        else:
            names = [f"sum{k}_" for k in range(len(sums))]
            with g.loop(p.depth, some=True, carry=dict(zip(names, sums))) as s:
                now = step([getattr(s, x) for x in names], A.at(s.i * p.left[1]), g.B.at(s.i * p.b), 0)
                for name, x in zip(names, now):
                    setattr(s, name, x)
            sums = [getattr(s, x) for x in names]
        for (r, c), x in zip(places, sums):
            self.store(x, C, r * p.c + c)

    def copy(self, f: IRFunction, to: Value, source: Value, count: int) -> None:
        """So many numbers, in whole vectors."""
        size = self.padded(count)

        def write(g: IRFunction) -> None:
            with g.loop(size, step=self.l.lanes, some=True) as s:
                self.store(self.load(g.B, s.i), g.C, s.i)

        f.call(VOID, self.made(f"copy_{size}", "CB", write), to, source)

    def transpose(self, f: IRFunction, A: Value, n: int, width: int, mean: bool = False) -> None:
        """The square part, in place; mean: the mean of it and its transpose."""

        def write(g: IRFunction) -> None:
            with g.loop(n) as row, g.loop(row.i) as s:
                p, r = g.A.at(row.i * width + s.i), g.A.at(s.i * width + row.i)
                x, y = p.load(), r.load()
                x, y = ((x + y) * 0.5,) * 2 if mean else (y, x)
                p.store(x)
                r.store(y)

        f.call(VOID, self.made(f"{'mean' if mean else 'transpose'}_{n}_{width}", "A", write), A)

    def solve(self, f: IRFunction, A: Value, B: Value, n: int, widths: tuple[int, int]) -> Value:
        """B becomes A^-1 B, A the unit matrix, by Gauss and Jordan without a choice of pivots: A is symmetric and
        positive definite. Gives its least pivot, negative or none where it is not."""
        name, wa, wb = f"solve_{n}_{'_'.join(map(str, widths))}", *widths
        if name not in self.m.functions:
            g = self.m.function(name, F64, {"A": PTR, "B": PTR})
            self._eliminate(g, n, wa, wb)
        return f.call(F64, name, A, B)

    def _eliminate(self, g: IRFunction, n: int, wa: int, wb: int) -> None:
        parts = [("A", wa, c) for c in self.vectors(n)] + [("B", wb, c) for c in self.vectors(wb)]
        with g.loop(n, some=True, least=g.const(F64, 1e300)) as s:
            pivot = g.A.at(s.i * (wa + 1)).load()
            s.least = g.select(pivot < s.least, pivot, s.least)
            with g.when(~(pivot > 0.0)):
                g.ret(g.const(F64, -1.0))
            share = (g.const(F64, 1.0) / pivot).splat(self.l.lanes)
            mine = {}
            for name, w, c in parts:
                place = g.arguments[name].at(s.i * w)
                mine[name, c] = self.load(place, c) * share
                self.store(mine[name, c], place, c)

            def others(first: Value | int, stop: Value | int) -> None:
                with g.loop(stop, start=first) as r:
                    by = -self.splat(g.A, r.i * wa + s.i)
                    for name, w, c in parts:
                        place = g.arguments[name].at(r.i * w)
                        self.store(self.fused(by, mine[name, c], self.load(place, c)), place, c)

            others(0, s.i)
            others(s.i + 1, n)
        g.ret(s.least)
