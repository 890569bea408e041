"""Derivatives of forward dynamics of one state: -M^-1 times the columns that the recursion leaves, eight of them
side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...codegen.graph.program import Program
from ...codegen.llvm.dense.inverse import solve_columns, times_inverse
from ...codegen.llvm.dense.ranked import SIDE, padded
from ...codegen.llvm.ir import F64, IRFunction
from ...codegen.llvm.math import Lanes
from ...codegen.llvm.tail import Room, Tail, TailPlace
from ...codegen.lower.lower import Lowered
from ...mechanics.algorithms.inertia_matrix import Factors
from ...model.description import Model
from ..formalisms import unsolved_derivatives
from ..tracer import Tracer
from . import MIN_SOLVED_FREEDOMS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class InverseTail(Tail):
    """Outputs (n, n) hold right-hand sides B, the last -1, and -M^-1 B is written over them; hidden are L and -E,
    of M = L^T E^-1 L.

    order: rates in the order of elimination. lower: where L has entries, by its rows.
    """

    order: tuple[int, ...]
    lower: tuple[tuple[int, ...], ...]
    hidden: int = 2

    @classmethod
    def of(cls, t: Any, f: Factors) -> InverseTail:
        """The factors as hidden results, and the solve that reads them."""
        lower = tuple(tuple(sorted(row)) for row in f.L)
        t.output("L", [row[j] for row, at in zip(f.L, lower) for j in at])
        t.output("E", [-x for x in f.inverse])
        return cls(tuple(f.order), lower)

    def room(self, low: Lowered, l: Lanes) -> Room:
        starts = (0, padded(sum(map(len, self.lower))))
        return Room(starts, starts[1] + padded(len(self.order)), 0, frozenset(range(self.hidden)))

    def begin(self, f: IRFunction, place: TailPlace) -> None:
        """The steps write all that it reads."""

    def write(self, f: IRFunction, place: TailPlace) -> None:
        L, E = (
            [x.scalar(k, place.fma) for k in range(count)]
            for x, count in zip(place.hidden, (sum(map(len, self.lower)), len(self.order)))
        )
        bases, l = [x.base for x in place.outputs], Lanes(F64, SIDE, place.l.splat)
        rest = solve_columns(f, l, bases, self.order, self.rows(L), E, place.fma)
        place.status.store(place.status.load(F64) + rest)

    def rows(self, L: Sequence[Any]) -> list[dict[int, Any]]:
        entries = iter(L)
        return [{j: next(entries) for j in row} for row in self.lower]

    def fill(self, outputs: Sequence[Array], hidden: Sequence[Array]) -> None:
        L, E = (list(x.T[:, :, None]) for x in hidden)
        for x in outputs:
            rows = x.reshape(len(x), len(self.order), -1)
            rows[:, self.order] = np.stack(
                times_inverse(self.rows(L), E, list(np.moveaxis(rows[:, self.order], 1, 0))), axis=1
            )
        rows[:] = np.tril(rows) + np.swapaxes(np.tril(rows, -1), 1, 2)


def solved_program(model: Model) -> Program | None:
    """dtau/dq and dtau/dv at the accelerations, -1, and the factors of M; None for small robots."""
    if model.nv < MIN_SOLVED_FREEDOMS:
        return None
    t = Tracer("forward_dynamics_derivatives", model)
    _, dq, dv, f = unsolved_derivatives(t.tree, *t.state("q", "v", "tau"))
    one = [[-float(r == c) for c in range(model.nv)] for r in range(model.nv)]
    for name, x in (("dq", dq), ("dv", dv), ("one", one)):
        t.output(name, x)
    return t.program(named=True, tail=InverseTail.of(t, f))
