"""Derivatives of forward dynamics of one sample: M factorised, and its inverse times the columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..graph.program import FLOOR
from .ir import I64, IRLoop, Module, Value
from .llvm_across import Across, RowKernel
from .llvm_target import Target
from .lower import Lowered

PANEL = 5  # blocks of columns whose sums are kept in registers


def add_across(m: Module, plan: Across, low: Lowered, target: Target) -> None:
    """@one, as a kernel of one sample."""
    (ForwardKernel if plan.first else RowKernel)(m, plan, low, target)


class ForwardKernel(RowKernel):
    """-M^-1 dtau/dq, -M^-1 dtau/dv and M^-1, with dtau at the accelerations a = M^-1 (tau - h)."""

    def phases(self) -> None:
        self.H, self.F, self.FT, self.Aq, self.Av, self.Yq, self.Yv = self.matrices
        self.run(self.plan.first)
        self.accelerations()
        self.run(self.plan.sweeps)
        self.entries([self.Aq, self.Av], self.n)
        self.answers()

    @contextmanager
    def above(self, row: Value) -> Iterator[Value]:
        """The ancestors of a row, the nearest first."""
        first, end = (self.word("ancestors_starts", row + k) for k in (0, 1))
        with self.f.loop(end, start=first) as s:
            yield self.word("ancestors", s.i)

    def subtract(self, x: Value, matrix: Value, source: Value, to: Value, end: Value | None = None) -> None:
        """x times a row from another, by blocks up to a column, that of the other's number if none is given."""
        f, l = self.f, self.l
        wide = self.minus(x).splat(l.lanes)
        with f.loop((end or to) + 1, step=l.lanes, some=True) as s:
            place = self.matrix(matrix, to, s.i, self.n)
            right = self.matrix(matrix, source, s.i, self.n).load(l.type, l.bytes)
            place.store(self.plus(wide, right, place.load(l.type, l.bytes)), l.bytes)

    def scalar(self, base: Value, row: Value, column: Value) -> Value:
        return self.matrix(base, row, column, self.n).load(self.l.scalar)

    def accelerations(self) -> None:
        """M = L^T D L from the last row to the first; F = L^-1 D^-1/2, so that M^-1 = F F^T; a."""
        self.inertias()
        with self.f.loop(-1, start=self.size - 1, step=-1) as s:
            self.eliminate(s.i)
        with self.f.loop(self.size, some=True) as s:
            self.invert(s.i)
        self.scale()
        self.solve()

    def inertias(self) -> None:
        """The lower triangle of M, and what of it the pivots are compared with."""
        p, scalar = self.plan.places, self.l.scalar
        for x in (self.H, self.F, self.FT):
            self.clear(x, self.n * self.n)
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
        """Row k of L stands in that of FT, D_k^-1/2 with the gains."""
        f, scalar = self.f, self.l.scalar
        pivot, scale = self.scalar(self.H, k, k), self.gain.at(k, scalar)
        if self.target.check:
            floor = scale.load(scalar) * FLOOR[self.l.size]
            with f.when(~(pivot > floor)):
                self.fail()
        inverse = self.f.const(scalar, 1.0) / pivot
        scale.store(f.call(scalar, f"llvm.sqrt.{self.one.suffix}", inverse))
        with self.above(k) as i:
            x = self.scalar(self.H, k, i) * inverse
            self.matrix(self.FT, k, i, self.n).store(x)
            self.subtract(x, self.H, k, i)

    def invert(self, k: Value) -> None:
        """Row k of L^-1 in that of F."""
        with self.above(k) as i:
            self.subtract(self.scalar(self.FT, k, i), self.F, i, k, i)
        self.matrix(self.F, k, k, self.n).store(self.f.const(self.l.scalar, 1.0))

    def scale(self) -> None:
        """The columns of F by the gains; F^T."""
        f, l = self.f, self.l
        self.clear(self.FT, self.n * self.n)
        with f.loop(self.size, some=True) as s:
            with f.loop(s.i + 1, step=l.lanes, some=True) as b:
                place, root = self.matrix(self.F, s.i, b.i, self.n), self.gain.at(b.i, l.scalar)
                place.store(place.load(l.type, l.bytes) * root.load(l.type, l.bytes), l.bytes)
            self.matrix(self.FT, s.i, s.i, self.n).store(self.scalar(self.F, s.i, s.i))
            with self.above(s.i) as i:
                self.matrix(self.FT, i, s.i, self.n).store(self.scalar(self.F, s.i, i))

    def solve(self) -> None:
        """a = F F^T (tau - h)."""
        f, scalar, h = self.f, self.l.scalar, self.plan.places.h
        with f.loop(self.size, some=True) as s:
            k = s.i
            with f.loop(self.word("lasts", k) + 1, start=k, some=True, total=self.f.zero(scalar)) as t:
                rest = f.in2.at(t.i, scalar).load(scalar) - self.number(h, t.i).load(scalar)
                t.total = self.plus(self.scalar(self.FT, k, t.i), rest, t.total)
            self.gain.at(k, scalar).store(t.total)
        with f.loop(self.size, some=True) as s:
            k = s.i
            own = self.scalar(self.F, k, k) * self.gain.at(k, scalar).load(scalar)
            first, end = (self.word("ancestors_starts", k + j) for j in (0, 1))
            with f.loop(end, start=first, total=own) as t:
                i = self.word("ancestors", t.i)
                t.total = self.plus(self.scalar(self.F, k, i), self.gain.at(i, scalar).load(scalar), t.total)
            self.more.at(k, scalar).store(t.total)

    def panels(self) -> Iterator[list[int]]:
        """Columns of all blocks, as many at once as there are registers for sums."""
        each = -(-self.blocks // -(-self.blocks // PANEL))
        for first in range(0, self.blocks, each):
            yield [b * self.l.lanes for b in range(first, min(first + each, self.blocks))]

    def answers(self) -> None:
        """-F (F^T dtau) by columns side by side, and F F^T."""
        f, outs = self.f, (self.f.out0, self.f.out1)
        with f.loop(self.size, some=True) as s:
            for A, Y in ((self.Aq, self.Yq), (self.Av, self.Yv)):
                for panel in self.panels():
                    self.keep(Y, s.i, panel, self.further(A, s.i, panel))
        with f.loop(self.size, some=True) as s:
            for source, to in (*zip((self.Yq, self.Yv), outs), (self.FT, f.out2)):
                for panel in self.panels():
                    found = self.nearer(source, s.i, panel)
                    self.put(to, s.i, panel, found if to is f.out2 else [self.minus(x) for x in found])

    def further(self, A: Value, k: Value, panel: list[int]) -> list[Value]:
        """Row k of F^T A."""
        zero = {f"p{c}": self.f.zero(self.l.type) for c in panel}
        with self.f.loop(self.word("lasts", k) + 1, start=k, some=True, carry=zero) as s:
            self.added(s, self.splat(self.matrix(self.FT, k, s.i, self.n)), A, s.i, panel)
        return [getattr(s, f"p{c}") for c in panel]

    def nearer(self, Y: Value, i: Value, panel: list[int]) -> list[Value]:
        """Row i of F Y."""
        zero = {f"p{c}": self.f.zero(self.l.type) for c in panel}
        first, end = (self.word("ancestors_starts", i + j) for j in (0, 1))
        with self.f.loop(end + 1, start=first, some=True, k=i, carry=zero) as s:
            self.added(s, self.splat(self.matrix(self.F, i, s.k, self.n)), Y, s.k, panel)
            s.k = self.word("ancestors", s.i)  # of the last one's follower nothing is read
        return [getattr(s, f"p{c}") for c in panel]

    def added(self, s: IRLoop, x: Value, rows: Value, k: Value, panel: list[int]) -> None:
        for c in panel:
            y = self.matrix(rows, k, c, self.n).load(self.l.type, self.l.bytes)
            setattr(s, f"p{c}", self.plus(x, y, getattr(s, f"p{c}")))

    def keep(self, to: Value, row: Value, panel: list[int], found: Sequence[Value]) -> None:
        for c, x in zip(panel, found):
            self.matrix(to, row, c, self.n).store(x, self.l.bytes)

    def put(self, to: Value, row: Value, panel: list[int], found: Sequence[Value]) -> None:
        """Into a result, whose rows are not padded."""
        for c, x in zip(panel, found):
            place, left = self.matrix(to, row, c, self.size), self.size - c
            if left >= self.l.lanes:
                place.store(x, self.l.size)
            else:
                self.stored(x, place, self._first(left))
