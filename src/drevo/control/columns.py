"""The solve for all columns of a linear model in machine code, behind the steps that make its terms.

    M X = F + Gamma^T N,   Gamma X + g = 0,   M = L^T E^-1 L

The columns are taken side by side. Rows of Gamma must be independent for certain: else the status says so, and the
answer is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..codegen.graph.program import Program
from ..codegen.llvm.dense.ranked import RANKED_LANES, padded
from ..codegen.llvm.ir import F64, I8, I32, I64, PTR, VOID, IRFunction, Value, literal
from ..codegen.llvm.ir_scalar import IRScalar
from ..codegen.llvm.math import Lanes
from ..codegen.llvm.tail import TailPlace
from ..compiler.tracer import Tracer
from ..constraint.kernels import touched_entries, touched_rows
from ..constraint.tail import SolveTail, TailSolve
from ..mechanics.algorithms.inertia_matrix import Factors
from ..mechanics.algorithms.schur import Schur
from ..mechanics.formalisms.khalil_held import HeldSlopes
from ..mechanics.scalar import Matrix, Scalar, Vector, dot
from ..mechanics.spatial import Vec, skew
from ..model.description import Model

Array = np.ndarray[Any, Any]
_RANKED_VECTOR = f"<{RANKED_LANES} x {F64}>"
CERTAIN = 1e8  # of the square of the rows' condition: a bound below it leaves no doubt of their rank


class ColumnHome(NamedTuple):
    """Places of the columns from `first` to `last`: the first rows of X and of N, and how far apart rows are."""

    X: int
    N: int
    pitch: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class ColumnsTail(SolveTail):
    """The first output is [[A B], [R S], ...], by rows: the lower halves of A (2 n, 2 n) and B (2 n, k) become X,
    and R (m, 2 n), S (m, k) become N. Of A and R the columns F and g are hidden outputs; those of B are 1 at the
    rates that are `driven`, by their places in the order, and 0 else. sizes: by row of Gamma no less than the
    square of its unit."""

    first: ClassVar[tuple[str, ...]] = ("L", "E", "F", "g", "sizes", "rows")
    driven: tuple[int, ...]

    def stays(self, l: Lanes) -> frozenset[int]:
        """The hidden outputs that stay in memory for the loops: all."""
        return frozenset(range(self.hidden))

    def beside(self, l: Lanes) -> int:
        return 0

    def write(self, f: IRFunction, place: TailPlace) -> None:
        _Columns(self, f, place).write()

    @property
    def count(self) -> int:
        """Columns."""
        return 2 * len(self.order) + len(self.driven)

    @property
    def written(self) -> Sequence[range]:
        n, w = len(self.order), self.count
        return (range(n * w, (2 * n + self.rows) * w),)

    @property
    def targets(self) -> list[ColumnHome]:
        n, w = len(self.order), self.count
        return [ColumnHome(n * w, 2 * n * w, w, 0, w)]

    @property
    def kept(self) -> Sequence[int]:
        """In which of their rows those of N stand."""
        return range(self.rows)

    def places(self) -> tuple[list[int], list[int]]:
        """The indices at which the rows of X and N begin, in the order of elimination: of A and R, of B and S."""

        def from_column(c: int) -> list[int]:
            x, y, pitch, first, _ = next(t for t in reversed(self.targets) if t.first <= c)
            rows = [x + pitch * i for i in self.order] + [y + pitch * r for r in self.kept]
            return [at + c - first for at in rows]

        return from_column(0), from_column(2 * len(self.order))

    @property
    def units(self) -> Array:
        """The columns of B, (n, k)."""
        return np.equal.outer(range(len(self.order)), self.driven).astype(float)


def short_size(n: int, k: int) -> int:
    """Numbers of what a ShortTail writes."""
    return 2 * n * n + n * k + 2 * n + k


class ShortTail(ColumnsTail):
    """The first output is [da (n, 2 n), da (n, k)] alone, by the state and by the drives, and behind them room
    that the changes of all reactions are written over."""

    @property
    def written(self) -> Sequence[range]:
        return ()

    @property
    def targets(self) -> list[ColumnHome]:
        n, k, w = len(self.order), len(self.driven), self.count
        return [ColumnHome(0, n * w, 2 * n, 0, 2 * n), ColumnHome(2 * n * n, n * w + 2 * n, k, 2 * n, w)]

    @property
    def kept(self) -> Sequence[int]:
        return [0] * self.rows


class _Columns(TailSolve):
    """The solve of one sample or of a tile."""

    tail: ColumnsTail

    def write(self) -> None:
        tail, f, l, n, m = self.tail, self.f, self.l, self.n, self.m
        M = tail.factors(self.vector("L", sum(map(len, tail.lower))), self.vector("E", n))
        self.schur = Schur(M, self.rows())
        if l.lanes == 1:
            self.blocks()
        else:
            for k, (width, source) in enumerate(((2 * n, self.columns), (len(tail.driven), self.unit_columns))):
                if width:
                    with f.loop(width, some=True) as s:
                        x, N = self.solved(source(s.i))
                        base = self.place.outputs[0].base.at(s.i * l.bytes, I8)
                        for at, y in zip(tail.places()[k], (*x, *N)):
                            base.at(at * l.bytes, I8).store(self.wide(y), l.bytes)
        if m:
            lost = f.select(self.sound(self.schur) & self.certain(), f.zero(l.type), f.const(l.type, math.nan))
            for place in (self.place.outputs[0].at(0), self.place.status):
                place.store(place.load(l.type, l.bytes) + lost, l.bytes)

    def certain(self) -> Value:
        """Tells if the condition of the rows, each in its own unit, leaves no doubt of their rank.

        With K = Gamma Gamma^T and s_r the unit of row r, S^-1 K S^-1 has a trace of at most m, and its inverse
        that of S^2 K^-1: no less than the square of the condition is m sum s_r^2 (K^-1)_rr.
        """
        shares = Schur.of_rows(self.rows(), self.n).inverse_diagonal()
        return self.number(dot(shares, self.vector("sizes", self.m))) < CERTAIN / self.m

    def solved(self, given: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """X and N of columns."""
        return self.schur.solved(self.schur.needed(given[: self.n], given[self.n :]))

    def columns(self, at: Value) -> list[Any]:
        """A column of F and g, of a tile."""
        l, out = self.l, []
        for name, rows in (("F", self.n), ("g", self.m)):
            base = self.hidden[name].base.at(at * l.bytes, I8)
            out += [base.at(r * padded(2 * self.n) * l.bytes, I8).load(l.type, l.bytes) for r in range(rows)]
        return [IRScalar(x, self.place.fma) for x in out]

    def unit_columns(self, at: Value) -> list[Any]:
        """A column of B, equal in all lanes, and zeros for the rows of the constraints."""
        base = self.units().at(at + 2 * self.n)
        columns = [base.at(r * padded(self.tail.count)).load(F64, 8) for r in range(self.n)]
        return [IRScalar(x.splat(self.l.lanes), self.place.fma) for x in columns] + [0.0] * self.m

    def units(self) -> Value:
        """The columns of B in memory where they stand among all, and one row of zeros more."""
        table = np.zeros((self.n + 1, padded(self.tail.count)))
        table[:-1, 2 * self.n : self.tail.count] = self.tail.units
        self.f.module.constant("units", F64, [literal(x) for x in table.ravel().tolist()])
        return self.f.const(PTR, "@units")

    def blocks(self) -> None:
        """All columns of one sample, eight at a time, those of A, then those of B: one loop, decoded once."""
        f, n, m, w, out = self.f, self.n, self.m, self.tail.count, self.place.outputs[0].base
        state_columns, units = padded(2 * n), self.units()
        with f.loop(padded(w) // RANKED_LANES, some=True) as s:
            at, first = s.i * RANKED_LANES, s.i < state_columns // RANKED_LANES
            pitch = f.select(first, state_columns, f.value(0))
            F, g = (
                self.rows_from(
                    f.select(first, self.hidden[name].base.at(at), units.at(n * padded(w))), pitch, count
                )
                for name, count in (("F", n), ("g", m))
            )
            drives = self.rows_from(units.at(at), f.value(padded(w)), n)
            x, N = self.solved([*(y + z for y, z in zip(F, drives)), *g])
            columns = f.counting(f"<{RANKED_LANES} x {I64}>") + at.splat(RANKED_LANES)
            for t in self.tail.targets:
                places = [(t.X, i) for i in self.tail.order] + [(t.N, r) for r in self.tail.kept]
                some = (columns < t.last) & (columns >= t.first)
                for (base, row), y in zip(places, (*x, *N)):
                    to = out.at(at + (base + t.pitch * row - t.first))
                    if t.first == 0 and t.last % RANKED_LANES == 0:
                        to.store(self.wide(y), 8)
                    else:
                        how = to, f.const(I32, 8), some
                        f.call(VOID, f"llvm.masked.store.v{RANKED_LANES}f64.p0", self.wide(y), *how)

    def rows_from(self, place: Value, pitch: Value, count: int) -> list[Any]:
        """Eight entries of so many rows."""
        return [IRScalar(place.at(pitch * r).load(_RANKED_VECTOR, 8), self.place.fma) for r in range(count)]

    def wide(self, y: Any) -> Value:
        kind = _RANKED_VECTOR if self.l.lanes == 1 else self.l.type
        return y.x if isinstance(y, IRScalar) else self.f.const(kind, float(y))


def carried(model: Model, v: Vector) -> Matrix:
    """d(dq')/dq at fixed dv: -v x on ball and free joints, else 0."""
    out: Matrix = [[0.0] * model.nv for _ in range(model.nv)]
    for j, _, sv in model.slices():
        if not j.turns:
            continue
        blocks = [(sv.stop - 3, sv.stop - 3, v[sv.stop - 3 : sv.stop])]
        if j.nq == 7:
            blocks += [(sv.start, sv.start, v[sv.stop - 3 : sv.stop]), (sv.start, sv.start + 3, v[sv][:3])]
        for r, c, w in blocks:
            for i, row in enumerate(skew(Vec(*w))):
                out[r + i][c : c + 3] = [-x for x in row]
    return out


class ModelColumns:
    """A linear model in the making, from its state on."""

    def __init__(self, t: Tracer, driven: Sequence[int], short: bool) -> None:
        self.t, self.driven, self.short = t, driven, short

    def program(
        self,
        model: Model,
        v: Vector,
        slopes: Sequence[Matrix],
        f: Factors,
        point: Vector,
        held: HeldSlopes | None = None,
    ) -> Program:
        """The program. slopes: of what acts in the joints, by dq and dv."""
        rows = held.jacobian if held else []
        t, n, m, k = self.t, model.nv, len(rows), len(self.driven)
        one = [[float(i == j) for j in range(n)] for i in range(n)]
        top = [[*x, *y, *[0.0] * k] for x, y in zip(carried(model, v), one)]
        rest = [0.0] * ((n + m) * (2 * n + k))
        lower, driven = tuple(tuple(sorted(row)) for row in f.L), tuple(f.order.index(j) for j in self.driven)
        columns = [[row[i] for row in rows] for i in f.order]
        touched = touched_rows(columns, lower)
        kind = ShortTail if self.short else ColumnsTail
        tail = kind(tuple(f.order), lower, touched, m, False, 0, False, True, {}, driven)
        t.output("model", [0.0] * short_size(n, k) if self.short else [top, rest, point])
        t.output("L", [row[j] for row, at in zip(f.L, lower) for j in at])
        t.output("E", f.inverse)
        beyond = [0.0] * (padded(2 * n) - 2 * n)
        t.output("F", [[*slopes[0][i], *slopes[1][i], *beyond] for i in f.order])
        t.output("g", [[*x, *y, *beyond] for x, y in zip(*held.slopes)] if held else [])
        t.output("sizes", held.sizes if held else [])
        t.output("rows", touched_entries(columns, tail.touched))
        return t.program(tail=tail, quantity="linear_model")


def beyond_motion(
    acting: Iterable[tuple[int, int, Scalar, Scalar]], dq: Matrix, dv: Matrix
) -> tuple[Matrix, Matrix]:
    """Derivatives of the efforts in the joints less those that the motion takes; acting: see `passive_slopes`."""
    out = [[-x for x in row] for row in dq], [[-x for x in row] for row in dv]
    for r, c, *by in acting:
        for rows, x in zip(out, by):
            rows[r][c] = rows[r][c] + x
    return out
