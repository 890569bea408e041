"""Dense algebra in LLVM IR, in two layouts: products, factors, substitution, and what goes with them.

In one a row of the matrix of one sample lies in whole vectors, as many columns in each as there are lanes; what
stands behind the last column may be anything. In the other, of `samples`, every lane has a matrix of its own, and
each entry is a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as pairs
from typing import NamedTuple

from ..ir import F64, I64, PTR, VOID, IRFunction, Module, Value
from ..math import Lanes

TILE_ROWS = 4  # rows of a product, and entries of a factor's row, that are computed at a time
MAX_STRAIGHT_TERMS = 8  # of a sum of products: more are a loop
_TILE_VECTORS = {8: 3}  # vectors in a row of a product's tile, by lanes; with few registers 2


class MatrixTile(NamedTuple):
    """A matrix in memory: entries from row to row and from column to column."""

    base: Value
    rows: int
    cols: int
    pitch: int
    step: int = 1

    @property
    def T(self) -> MatrixTile:
        """The transpose, in the same memory."""
        return MatrixTile(self.base, self.cols, self.rows, self.step, self.pitch)

    @property
    def shape(self) -> tuple[int, ...]:
        """All but the place."""
        return self[1:]


class DenseCode:
    """Matrix operations in a module, on values of one layout; functions are made at their first use."""

    def __init__(self, m: Module, l: Lanes, samples: bool = False) -> None:
        self.m, self.l, self.samples = m, l, samples
        self.entry, self.align = (l.type, l.bytes) if samples else (l.scalar, l.size)
        self.width = 1 if samples else l.lanes  # columns of a vector

    # -- access ---------------------------------------------------------------------------------------------

    def padded(self, n: int) -> int:
        """n in whole vectors."""
        return -(-n // self.width) * self.width

    def vectors(self, n: int) -> range:
        """The indices at which the vectors of a row begin."""
        return range(0, n, self.width)

    def load(self, p: Value, k: int | Value = 0) -> Value:
        """The vector from entry k on."""
        return p.at(k, self.entry).load(self.l.type, self.align)

    def store(self, x: Value, p: Value, k: int | Value = 0) -> None:
        p.at(k, self.entry).store(x, self.align)

    def splat(self, p: Value, k: int | Value = 0) -> Value:
        """Entry k, in all columns of a vector."""
        return self.load(p, k) if self.samples else p.at(k, self.entry).load(self.l.scalar).splat(self.l.lanes)

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """a b + c, in one rounding where the processor can."""
        return a.f.call(a.type, f"llvm.fmuladd.{self.l.suffix}", a, b, c)

    def first(self, f: IRFunction, count: int) -> Value:
        """1 in so many lanes, 0 in the others."""
        values = ", ".join(f"{self.l.scalar} {float(k < count):.1f}" for k in range(self.l.lanes))
        return f.const(self.l.type, f"<{values}>")

    # -- vectors of one sample --------------------------------------------------------------------------------

    def total(self, x: Value) -> Value:
        """The sum of the lanes, by halves: one order on every machine."""
        half = self.l.lanes
        while half > 1:
            half //= 2
            x = x.shuffle(None, range(half)) + x.shuffle(None, range(half, 2 * half))
        return x.f.let(F64, f"extractelement <1 x {F64}> {x.text}, i32 0")

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

    def inner(self, x: Value, y: Value, n: Value) -> Value:
        """The sum of products of n numbers, whole vectors."""

        def write(g: IRFunction) -> Value:
            with g.loop(g.n, step=self.width, some=True, total=g.zero(self.l.type)) as s:
                s.total = self.fused(self.load(g.x, s.i), self.load(g.y, s.i), s.total)
            return self.total(s.total)

        return x.f.call(F64, self.once("inner", write, F64, x=PTR, y=PTR, n=I64), x, y, n)

    def axpy(self, y: Value, c: Value, x: Value, n: Value | int) -> None:
        """y += c x, whole vectors."""
        by = c.splat(self.l.lanes)
        with y.f.loop(n, step=self.width, some=True) as s:
            self.store(self.fused(by, self.load(x, s.i), self.load(y, s.i)), y, s.i)

    def call_axpy(self, y: Value, c: Value, x: Value, n: Value) -> None:
        """Calls a function of the sum, which stands in many places."""
        name = self.once("axpy", lambda g: self.axpy(g.y, g.c, g.x, g.n), y=PTR, c=F64, x=PTR, n=I64)
        y.f.call(VOID, name, y, c, x, n)

    def scale(self, y: Value, c: Value, x: Value, n: Value) -> None:
        """y = c x, whole vectors."""
        by = c.splat(self.l.lanes)
        with y.f.loop(n, step=self.width, some=True) as s:
            self.store(self.load(x, s.i) * by, y, s.i)

    def clear(self, y: Value, n: Value | int) -> None:
        """Zeros, in whole vectors."""
        with y.f.loop(n, step=self.width) as s:
            self.store(y.f.zero(self.l.type), y, s.i)

    # -- matrices -------------------------------------------------------------------------------------------

    def once(
        self, name: str, write: Callable[[IRFunction], Value | None], result: str = VOID, **arguments: str
    ) -> str:
        """The name of a function, which is written where there is none."""
        name = f"{name}_{self.l.lanes}"
        if name not in self.m.functions:
            g = self.m.function(name, result, arguments)
            g.ret(write(g))
        return name

    def gemm(
        self, f: IRFunction, C: MatrixTile, A: MatrixTile, B: MatrixTile, sign: float = 1.0, fresh: bool = False
    ) -> None:
        """C +- A B, or C = A B where `fresh`; C is none of the others."""
        shape = "_".join(map(str, (*C.shape, *A.shape, *B.shape, int(sign), int(fresh))))

        def write(g: IRFunction) -> None:
            to, left, right = (x._replace(base=g.arguments[name]) for name, x in zip("CAB", (C, A, B)))
            self._product(g, to, left, right, sign, fresh)

        f.call(VOID, self.once(f"gemm_{shape}", write, C=PTR, A=PTR, B=PTR), C.base, A.base, B.base)

    def _product(
        self, g: IRFunction, C: MatrixTile, A: MatrixTile, B: MatrixTile, sign: float, fresh: bool
    ) -> None:
        starts, count = list(self.vectors(C.cols)), _TILE_VECTORS.get(self.l.lanes, 2)
        whole = C.rows // TILE_ROWS * TILE_ROWS
        for k in range(0, len(starts), count):
            group = starts[k : k + count]
            if whole:
                with g.loop(whole, step=TILE_ROWS, some=True) as s:
                    self._block(g, C, A, B, s.i, list(pairs(range(TILE_ROWS), group)), sign, fresh)
            if C.rows > whole:
                rest = list(pairs(range(C.rows - whole), group))
                self._block(g, C, A, B, g.const(I64, whole), rest, sign, fresh)

    def _block(
        self, g: IRFunction, C: MatrixTile, A: MatrixTile, B: MatrixTile, row: Value,
        places: Sequence[tuple[int, int]], sign: float, fresh: bool,
    ) -> None:  # fmt: skip
        """Vectors of C, at these rows from one on and these columns."""
        to, left = C.base.at(row * C.pitch, self.entry), A.base.at(row * A.pitch, self.entry)
        rows, cols = dict.fromkeys(r for r, _ in places), dict.fromkeys(c for _, c in places)
        sums = [g.zero(self.l.type) if fresh else self.load(to, r * C.pitch + c) for r, c in places]

        def term(sums: Sequence[Value], a: Value, b: Value, k: int) -> list[Value]:
            right = {c: self.load(b, k * B.pitch + c) for c in cols}
            factors = {r: self.splat(a, r * A.pitch + k * A.step) for r in rows}
            factors = {r: -x for r, x in factors.items()} if sign < 0 else factors
            return [self.fused(factors[r], right[c], x) for (r, c), x in zip(places, sums)]

        if A.cols <= MAX_STRAIGHT_TERMS:
            for k in range(A.cols):
                sums = term(sums, left, B.base, k)
        else:
            names = [f"sum{k}_" for k in range(len(sums))]
            with g.loop(A.cols, some=True, carry=dict(zip(names, sums))) as s:
                a, b = left.at(s.i * A.step, self.entry), B.base.at(s.i * B.pitch, self.entry)
                for name, x in zip(names, term([getattr(s, x) for x in names], a, b, 0)):
                    setattr(s, name, x)
            sums = [getattr(s, x) for x in names]
        for (r, c), x in zip(places, sums):
            self.store(x, to, r * C.pitch + c)

    def copy(self, f: IRFunction, to: Value, source: Value, count: int) -> None:
        """So many numbers, in whole vectors."""
        size = self.padded(count)

        def write(g: IRFunction) -> None:
            with g.loop(size, step=self.width, some=True) as s:
                self.store(self.load(g.B, s.i), g.C, s.i)

        f.call(VOID, self.once(f"copy_{size}", write, C=PTR, B=PTR), to, source)

    def transpose(self, f: IRFunction, A: MatrixTile, mean: bool = False) -> None:
        """The square part, in place; mean: the mean of it and its transpose."""

        def write(g: IRFunction) -> None:
            with g.loop(A.rows) as row, g.loop(row.i) as s:
                p, r = g.A.at(row.i * A.pitch + s.i), g.A.at(s.i * A.pitch + row.i)
                x, y = p.load(), r.load()
                x, y = ((x + y) * 0.5,) * 2 if mean else (y, x)
                p.store(x)
                r.store(y)

        f.call(VOID, self.once(f"{'mean' if mean else 'transpose'}_{A.rows}_{A.pitch}", write, A=PTR), A.base)

    # -- solves ---------------------------------------------------------------------------------------------

    def eliminate(self, f: IRFunction, A: MatrixTile, B: MatrixTile) -> Value:
        """B becomes A^-1 B, A the unit matrix, by Gauss and Jordan without a choice of pivots: A is symmetric and
        positive definite. Gives its least pivot, negative or none where it is not."""

        def write(g: IRFunction) -> Value:
            parts = [
                (x._replace(base=g.arguments[n]), c) for n, x in zip("AB", (A, B)) for c in self.vectors(x.cols)
            ]
            with g.loop(A.rows, some=True, least=g.const(F64, 1e300)) as s:
                pivot = g.A.at(s.i * (A.pitch + 1)).load()
                s.least = g.select(pivot < s.least, pivot, s.least)
                with g.when(~(pivot > 0.0)):
                    g.ret(g.const(F64, -1.0))
                share = (g.const(F64, 1.0) / pivot).splat(self.l.lanes)
                mine = [self.load(x.base, s.i * x.pitch + c) * share for x, c in parts]
                for (x, c), y in zip(parts, mine):
                    self.store(y, x.base, s.i * x.pitch + c)
                for start, stop in ((g.const(I64, 0), s.i), (s.i + 1, g.const(I64, A.rows))):
                    with g.loop(stop, start=start) as r:
                        by = -self.splat(g.A, r.i * A.pitch + s.i)
                        for (x, c), y in zip(parts, mine):
                            at = r.i * x.pitch + c
                            self.store(self.fused(by, y, self.load(x.base, at)), x.base, at)
            return s.least

        name = f"eliminate_{'_'.join(map(str, (*A.shape, *B.shape)))}"
        return f.call(F64, self.once(name, write, F64, A=PTR, B=PTR), A.base, B.base)

    def ldl(self, f: IRFunction, A: MatrixTile, row: Value, inverse: Value) -> None:
        """A becomes L D of A = L D L^T by columns of the lower triangle, `inverse` those of D; `row` is room for a
        row of L in the making."""

        def less(sums: Sequence[Value], k: Value, rows: Sequence[Value]) -> list[Value]:
            x = self.load(row, k)
            return [y - x * self.load(A.base, r * A.pitch + k) for y, r in zip(sums, rows)]

        def put(x: Value, i: Value, j: Value) -> None:
            self.store(x, A.base, i * A.pitch + j)
            self.store(x * self.load(inverse, j), row, j)

        names = [f"sum{m}" for m in range(TILE_ROWS)]
        with f.loop(A.rows, some=True) as i:
            start, whole = i.i * A.pitch, i.i & -TILE_ROWS
            with f.loop(whole, step=TILE_ROWS) as j:
                rows = [j.i + m for m in range(TILE_ROWS)]
                with f.loop(j.i, carry={x: self.load(A.base, start + r) for x, r in zip(names, rows)}) as k:
                    for name, x in zip(names, less([getattr(k, x) for x in names], k.i, rows)):
                        setattr(k, name, x)
                sums = [getattr(k, x) for x in names]
                for m, r in enumerate(rows):
                    put(sums[m], i.i, r)
                    sums[m + 1 :] = less(sums[m + 1 :], r, rows[m + 1 :])
            with f.loop(i.i + 1, start=whole, some=True) as j:
                with f.loop(j.i, carry={"left": self.load(A.base, start + j.i)}) as k:
                    (k.left,) = less([k.left], k.i, [j.i])
                put(k.left, i.i, j.i)
            self.store(f.const(self.l.type, 1.0) / self.load(A.base, start + i.i), inverse, i.i)

    def substitute(self, f: IRFunction, A: MatrixTile, inverse: Value, x: Value) -> None:
        """x becomes A^-1 x, by what `ldl` left."""

        def take(at: Value, k: Value, factor: Value) -> None:
            self.store(self.load(x, k) - factor * self.load(A.base, at), x, k)

        with f.loop(A.rows, some=True) as k:
            factor = self.load(x, k.i) * self.load(inverse, k.i)
            with f.loop(A.rows, start=k.i + 1) as i:
                take(i.i * A.pitch + k.i, i.i, factor)
        with f.loop(-1, start=A.rows - 1, step=-1, some=True) as i:
            y = self.load(x, i.i) * self.load(inverse, i.i)
            self.store(y, x, i.i)
            with f.loop(i.i) as k:
                take(i.i * A.pitch + k.i, k.i, y)
