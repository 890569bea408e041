"""Derivatives of forward dynamics of one state: -M^-1 times the columns that the recursion leaves, eight of them
side by side.

The factors of M stand in memory, so that each multiply-add takes its entry from there, in all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.emit.ir import F64, I32, I64, VOID, IRFunction
from ..codegen.emit.ir_scalar import IRScalar
from ..codegen.emit.llvm_math import Lanes
from ..codegen.emit.llvm_ranked import SIDE, padded
from ..codegen.emit.llvm_tail import Room, Tail, TailPlace
from ..codegen.emit.lower import Lowered
from ..codegen.graph.program import Program
from ..mechanics.algorithms.inertia_matrix import Factors
from ..model.description import Model
from .formalisms import unsolved_derivatives
from .tracer import Tracer

FEWEST = 5  # rates: below it the equations of a batch are as fast
Array = np.ndarray[Any, Any]
_MANY = f"<{SIDE} x {F64}>"


@dataclass(frozen=True, eq=False)
class InverseTail(Tail):
    """Outputs (n, n) hold right-hand sides B, and -M^-1 B is written over them; hidden are L and -E, of
    M = L^T E^-1 L.

    order: rates in the order of elimination. lower: where L has entries, by its rows.
    """

    order: tuple[int, ...]
    lower: tuple[tuple[int, ...], ...]
    hidden: int = 2

    def room(self, low: Lowered, l: Lanes) -> Room:
        starts = (0, padded(sum(map(len, self.lower))))
        return Room(starts, starts[1] + padded(len(self.order)), 0, frozenset(range(self.hidden)))

    def begin(self, f: IRFunction, place: TailPlace) -> None:
        """The steps write all that it reads."""

    def factors(self, L: Sequence[Any], E: Sequence[Any]) -> Factors:
        entries = iter(L)
        return Factors.known([{j: next(entries) for j in row} for row in self.lower], E, self.order)

    def write(self, f: IRFunction, place: TailPlace) -> None:
        """One loop over all blocks of columns: decoded once."""
        n, fma = len(self.order), place.fma
        L, E = (
            [x.scalar(k, fma) for k in range(count)]
            for x, count in zip(place.hidden, (sum(map(len, self.lower)), n))
        )
        M, blocks, align = self.factors(L, E), padded(n) // SIDE, f.const(I32, 8)
        first, *others = [x.base for x in place.outputs]
        with f.loop(blocks * (1 + len(others)), some=True, rest=f.zero(_MANY)) as s:
            base, at = first, s.i * SIDE
            for k, x in enumerate(others, 1):
                here = s.i >= k * blocks
                base, at = f.select(here, x, base), f.select(here, (s.i - k * blocks) * SIDE, at)
            some = f.counting(f"<{SIDE} x {I64}>") < (f.const(I64, n) - at).splat(SIDE)
            rows = [base.at(at + v * n) for v in range(n)]
            kind = f"llvm.masked.load.v{SIDE}f64.p0"
            given = [IRScalar(f.call(_MANY, kind, x, align, some, f.zero(_MANY)), fma) for x in rows]
            for to, y in zip(rows, M.solve(given)):
                f.call(VOID, f"llvm.masked.store.v{SIDE}f64.p0", y.x, to, align, some)
                s.rest = (
                    IRScalar(y.x, fma, f.zero(_MANY)) + IRScalar(s.rest, fma)
                ).x  # NaN for what is not finite
        total = f.call(F64, f"llvm.vector.reduce.fadd.v{SIDE}f64", f.const(F64, 0.0), s.rest, flags="reassoc ")
        place.status.store(place.status.load(F64) + total)

    def fill(self, outputs: Sequence[Array], hidden: Sequence[Array]) -> None:
        M = self.factors(*(list(x.T[:, :, None]) for x in hidden))
        for x in outputs:
            rows = x.reshape(len(x), len(self.order), -1)
            rows[:] = np.stack(M.solve(list(np.moveaxis(rows, 1, 0))), axis=1)


def solved_program(model: Model) -> Program | None:
    """dtau/dq and dtau/dv at the accelerations, -1, and the factors of M; None for small robots."""
    if model.nv < FEWEST:
        return None
    t = Tracer("forward_dynamics_derivatives", model)
    _, dq, dv, f = unsolved_derivatives(t.tree, *t.state("q", "v", "tau"))
    lower = tuple(tuple(sorted(row)) for row in f.L)
    one = [[-float(r == c) for c in range(model.nv)] for r in range(model.nv)]
    for name, x in (("dq", dq), ("dv", dv), ("one", one)):
        t.output(name, x)
    t.output("L", [row[j] for row, at in zip(f.L, lower) for j in at])
    t.output("E", [-x for x in f.inverse])
    return t.program(named=True, tail=InverseTail(tuple(f.order), lower))
