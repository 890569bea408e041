"""The solve for all columns of a linear model in machine code, behind the steps that make its terms.

    M X = F + Gamma^T N,   Gamma X + g = 0,   M = L^T E^-1 L

The columns are taken side by side. Rows of Gamma must be independent for certain: else the status says so, and the
answer is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..codegen.emit.ir import F64, I8, I32, I64, PTR, VOID, IRFunction, Value, literal
from ..codegen.emit.ir_scalar import IRScalar
from ..codegen.emit.llvm_math import Lanes
from ..codegen.emit.llvm_ranked import SIDE
from ..codegen.emit.llvm_tail import TailPlace
from ..constrained.tail import SLIGHT, THIN, SolveTail, TailSolve
from ..mechanics.algorithms.inertia_matrix import Factors
from ..mechanics.algorithms.schur import Schur

Array = np.ndarray[Any, Any]
_MANY = f"<{SIDE} x {F64}>"


@dataclass(frozen=True, eq=False)
class ColumnsTail(SolveTail):
    """The first output is [A, B, R, S, ...]: the lower halves of A (2 n, 2 n) and B (2 n, k) become X, and
    R (m, 2 n), S (m, k) become N. Of A and R the columns F and g are hidden outputs; those of B are 1 at the rates
    that are `driven`, by their places in the order, and 0 else."""

    first: ClassVar[tuple[str, ...]] = ("L", "E", "F", "g")
    blocks: ClassVar[list[tuple[int, int, int]]] = []
    driven: tuple[int, ...]

    def stays(self, l: Lanes) -> frozenset[int]:
        return frozenset(range(self.hidden))

    def beside(self, l: Lanes) -> int:
        return 0

    def write(self, f: IRFunction, place: TailPlace) -> None:
        _Columns(self, f, place).write()

    def places(self) -> tuple[list[int], list[int]]:
        """Where the rows of X and N begin, in the order of elimination: of A and R, of B and S."""
        n, m, k = len(self.order), self.rows, len(self.driven)
        below = 2 * n * (2 * n + k)
        left = [2 * n * (n + i) for i in self.order] + [below + 2 * n * r for r in range(m)]
        right = [4 * n * n + k * (n + i) for i in self.order] + [below + 2 * n * m + k * r for r in range(m)]
        return left, right

    def factors(self, L: Sequence[Any], E: Sequence[Any]) -> Factors:
        entries = iter(L)
        return Factors.known([{j: next(entries) for j in row} for row in self.lower], E, range(len(self.order)))

    @property
    def units(self) -> Array:
        """The columns of B, (n, k)."""
        return np.equal.outer(range(len(self.order)), self.driven).astype(float)

    def fill(self, outputs: Sequence[Array], hidden: Sequence[Array]) -> None:
        L, E, F, g, *rows = hidden
        n, m, out = len(self.order), self.rows, outputs[0]
        parts: list[list[Any]] = [[0.0] * n for _ in range(m)]
        for i, x in zip(self.moving, rows):
            for r in range(*self.touched[i]):
                parts[r][i] = x[:, r - self.touched[i][0], None]
        M = self.factors([x[:, None] for x in L.T], [x[:, None] for x in E.T])
        columns = [F[:, 2 * n * i : 2 * n * (i + 1)] for i in range(n)] + [
            g[:, 2 * n * r : 2 * n * (r + 1)] for r in range(m)
        ]
        units = [*self.units, *np.zeros((m, len(self.driven)))]
        with np.errstate(all="ignore"):
            schur = Schur(M, parts, None, self.touched, m)
            for starts, given in zip(self.places(), (columns, units)):
                found = schur.solved(schur.needed(given[:n], given[n:]))
                for at, y in zip(starts, [*found[0], *found[1]]):
                    out[:, at : at + given[0].shape[-1]] = y
            slight = sum(schur.diagonal) * SLIGHT
            for pivot, size in zip(schur.pivots, schur.diagonal):
                out[~((pivot > THIN * size) & (size > slight))[:, 0], 0] = np.nan


class _Columns(TailSolve):
    """The solve of one sample or of a tile."""

    tail: ColumnsTail

    def write(self) -> None:
        tail, f, l, n, m = self.tail, self.f, self.l, self.n, self.m
        M = tail.factors(self.vector("L", sum(map(len, tail.lower))), self.vector("E", n))
        self.schur = Schur(M, self.parts(), self.by, tail.touched, m)
        side = SIDE if l.lanes == 1 else 1
        widths, sources = (2 * n, len(tail.driven)), (self.columns, self.unit_columns)
        for starts, width, source in zip(tail.places(), widths, sources):
            whole = width // side * side
            if whole:
                with f.loop(whole, step=side, some=True) as s:
                    self.block(starts, source(s.i, side), s.i, side)
            if width > whole:
                first = f.const(I64, whole)
                self.block(starts, source(first, width - whole), first, width - whole)
        if m:
            lost = f.select(self.sound(self.schur), f.zero(l.type), f.const(l.type, math.nan))
            for place in (self.place.outputs[0].at(0), self.place.status):
                place.store(place.load(l.type, l.bytes) + lost, l.bytes)

    def columns(self, first: Value, count: int) -> list[Any]:
        """So many columns of F and g from the first on."""
        width, out = 2 * self.n, []
        for name, rows in (("F", self.n), ("g", self.m)):
            base = self.hidden[name].base.at(first * self.l.bytes, I8)
            out += [self.loaded(base.at(r * width * self.l.bytes, I8), count) for r in range(rows)]
        return out

    def unit_columns(self, first: Value, count: int) -> list[Any]:
        """The same of the columns of B."""
        f, k = self.f, -(-len(self.tail.driven) // SIDE) * SIDE
        table = np.zeros((self.n, k))
        table[:, : len(self.tail.driven)] = self.tail.units
        f.module.constant("units", F64, [literal(x) for x in table.ravel().tolist()])
        base, kind = f.const(PTR, "@units").at(first), _MANY if self.l.lanes == 1 else F64
        found = [base.at(r * k).load(kind, 8) for r in range(self.n)]
        lanes = self.l.lanes
        return [IRScalar(x.splat(lanes), self.place.fma) for x in found] + [0.0] * self.m

    def block(self, starts: Sequence[int], given: Sequence[Any], first: Value, count: int) -> None:
        """So many columns from the first on."""
        x, N = self.schur.solved(self.schur.needed(given[: self.n], given[self.n :]))
        base = self.place.outputs[0].base.at(first * self.l.bytes, I8)
        for at, y in zip(starts, (*x, *N)):
            place = base.at(at * self.l.bytes, I8)
            if count < SIDE and self.l.lanes == 1:
                given_to = place, self.f.const(I32, 8), self.some(count)
                self.f.call(VOID, f"llvm.masked.store.v{SIDE}f64.p0", self.wide(y), *given_to)
            else:
                place.store(self.wide(y), self.l.bytes if self.l.lanes > 1 else 8)

    def wide(self, y: Any) -> Value:
        kind = _MANY if self.l.lanes == 1 else self.l.type
        return y.x if isinstance(y, IRScalar) else self.f.const(kind, float(y))

    def loaded(self, place: Value, count: int) -> IRScalar:
        if self.l.lanes > 1:
            x = place.load(self.l.type, self.l.bytes)
        elif count == SIDE:
            x = place.load(_MANY, 8)
        else:
            given = place, self.f.const(I32, 8), self.some(count), self.f.zero(_MANY)
            x = self.f.call(_MANY, f"llvm.masked.load.v{SIDE}f64.p0", *given)
        return IRScalar(x, self.place.fma)

    def some(self, count: int) -> Value:
        """The first lanes."""
        bits = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(SIDE))
        return self.f.const(f"<{SIDE} x i1>", f"<{bits}>")
