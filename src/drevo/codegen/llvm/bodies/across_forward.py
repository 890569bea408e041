"""Derivatives of forward dynamics of one sample: M factorised, and its inverse times the columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...graph.program import FLOOR
from ...lower.loops import Across
from ...lower.lower import Lowered
from ..dense.inverse import solve_columns, times_inverse
from ..dense.tile import DenseCode
from ..ir import I64, Module, Value
from ..ir_scalar import IRScalar, StoredScalar
from ..target import Target
from .across import RowKernel


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
