"""The inverse of a matrix with the zeros of the tree, by products in lanes: M^-1 = N D^-1 N', N = L^-1.

Rows of N reach from a rate to what carries it. Two limbs meet over what carries both, so that most sums are short.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.llvm.dense.products import Summand, Tile, write_product
from ..codegen.llvm.stages import StageCalls
from ..mechanics.algorithms.inertia_matrix import Factors
from ..mechanics.formalisms.khalil_derivatives import Inverse
from ..mechanics.scalar import Scalar
from .laws.soft.stages import StageTracer
from .runs import equals, line_runs, stretches


class InverseBlocks:
    """ "N" and "W" = N D^-1, both dense, of which only the entries of runs of rows are ever written and read."""

    def __init__(self, name: str, sizes: dict[str, int], nv: int) -> None:
        self.names, self.nv = (f"N_{name}", f"W_{name}"), nv
        sizes |= dict.fromkeys(self.names, nv * nv)
        self.entries: list[tuple[int, ...]] = []  # by row

    def tell(self, s: StageTracer, f: Factors, h: float) -> None:
        """Writes both; of h M^-1."""
        nv, found = self.nv, Inverse(f)
        rows: list[dict[int, Scalar]] = [{} for _ in range(nv)]
        for i, v in enumerate(f.order):
            rows[v] = {v: 1.0} | {f.order[j]: x for j, x in found.N[i].items()}
        self.entries = [x.entries for x in line_runs(rows) for _ in range(x.wide)]
        places = [(r, k) for r in range(nv) for k in self.entries[r]]
        over = {v: h * x for v, x in zip(f.order, f.inverse)}
        s.write_some(self.names[0], {r * nv + k: rows[r].get(k, 0.0) for r, k in places})
        s.write_some(self.names[1], {r * nv + k: rows[r].get(k, 0.0) * over[k] for r, k in places})

    def write(self, c: StageCalls, out: Tile) -> None:
        """All of it."""
        N = Tile(c.at(self.names[0]), self.nv)
        for first, count, own in equals(self.entries):
            self.multiply(c, out.part(c.l, first, 0), N.part(c.l, first, 0), count, [(k, k) for k in own])

    def multiply(
        self, c: StageCalls, out: Tile, left: Tile, rows: int, entries: Sequence[tuple[int, int]]
    ) -> None:
        """Left times W', where left has these columns, with the rates that they are of: the others are zero."""
        W = Tile(c.at(self.names[1]), 1, self.nv)
        met = [tuple(n for n, (_, k) in enumerate(entries) if k in own) for own in map(set, self.entries)]
        for first, count, common in equals(met):
            runs = stretches(entries[n] for n in common)
            write_product(c, out.part(c.l, 0, first), rows, count, [Summand(left, W.part(c.l, 0, first), runs)])
