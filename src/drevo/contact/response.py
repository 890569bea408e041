"""Rows of the Jacobian of a step from its response to momentum, by products in lanes.

The rates u of a step change by du = T b + K w, T what momentum does, K what else changes does; b and w by the
columns of q and of v, of which few entries are not zero: a joint changes the momentum of what it carries and of
what carries it. T is du by tau. Positions change by dq + h du, but for joints that turn freely.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.graph.derivative import tangents
from ..codegen.graph.node import Expr
from ..codegen.llvm.dense.products import Summand, Tile, write_product
from ..codegen.llvm.stages import StageCalls
from ..compiler.products import number_rates
from ..mechanics.scalar import Scalar, Vector, is_zero
from ..mechanics.tree import Tree
from .laws.soft.implicit import tangents_of
from .laws.soft.integrate import in_body, in_world, moved_along
from .laws.soft.stages import StageTracer
from .runs import LineRun, line_runs, stretches

STATE = ("q", "v", "tau")
RESULTS = tuple(f"by_{x}" for x in STATE)


class ResponseRows:
    """The blocks between the stages of a law and the rows of its Jacobian, and the calls that fill these.

    "columns": b and w packed, "T" and "K" by rows, to be filled; "turn": how joints that turn freely end, by
    their coordinates and rates.
    """

    def __init__(self, tree: Tree, sizes: dict[str, int], h: float, extras: int) -> None:
        self.tree, self.sizes, self.h, self.nv, self.extras = tree, sizes, h, tree.nv, extras
        self.turning = [o for o in tree.owners() if o.nq > o.nv]
        self.runs: list[list[LineRun]] = []
        widest = max((o.nv for o in self.turning), default=0)
        sizes |= {"T": self.nv**2, "K": max(1, self.nv * extras), "X": self.nv**2}
        sizes |= {"turn": max(1, sum(4 * o.nv**2 for o in self.turning)), "turned": max(1, 2 * widest * self.nv)}

    def packed(self, *parts: Sequence[Vector]) -> list[Scalar]:
        """The block of the columns by q and by v: of each b and w."""
        flat: list[Scalar] = []
        for columns in parts:
            supports = [[r for r, x in enumerate(column) if not is_zero(x)] for column in columns]
            self.runs.append(line_runs(supports, len(flat)))
            flat += [
                columns[k][r] for x in self.runs[-1] for k in range(x.first, x.first + x.wide) for r in x.entries
            ]
        self.sizes["columns"] = max(1, len(flat))
        return flat or [0.0]

    def turn(self, s: StageTracer, q: Sequence[Expr], u: Sequence[Scalar]) -> None:
        """By joint the entries of q1 and v1 by rows, those by u before those by q."""
        tree, nv, h, flat = self.tree, self.nv, self.h, list[Scalar]()
        u = [s.t.graph.expr(s.t.graph.edge(x)) for x in u]
        w = in_world(tree, q, u)
        q1 = moved_along(tree, q, [h * x for x in w])
        ends = [*q1, *in_body(tree, q1, w)]
        for o in self.turning:
            own = range(o.v, o.v + o.nv)
            by_u = [{u[k].edge: 1.0} for k in own]
            by_q = [_rates(tree, q, k) for k in own]
            for ways in (by_u, by_q):
                columns = []
                for rates in ways:
                    found = tangents(ends, rates)
                    columns.append([*tangents_of(tree, q1, found[: tree.nq]), *found[tree.nq :]])
                flat += [column[r] for r in (*own, *(nv + k for k in own)) for column in columns]
        s.write(turn=flat or [0.0])

    def write(self, c: StageCalls) -> None:
        """All rows."""
        one = c.f.const(c.l.type, 1.0)
        for part, x in enumerate(STATE):
            tile = Tile(c.at("X" if part < 2 else "T"), self.nv)
            if part < 2:
                self._multiply(c, tile, self.runs[part])
            if x == "v":
                with c.f.loop(self.nv, some=True) as i:
                    place = tile.place(c.l, i.i, i.i)
                    place.store(place.load(c.l.type, c.l.bytes) + one, c.l.bytes)
            self._turned(c, tile, x)
            self._plain(c, tile, x)

    def _multiply(self, c: StageCalls, out: Tile, runs: Sequence[LineRun]) -> None:
        """T b + K w."""
        nv, extras = self.nv, self.extras
        for x in runs:
            right = Tile(c.at("columns", x.at), 1, len(x.entries))
            terms = [Summand(Tile(c.at("T"), nv), right, x.stretches(0, nv))]
            if extras:
                terms.append(Summand(Tile(c.at("K"), extras), right, x.stretches(nv, nv + extras)))
            write_product(c, out.part(c.l, 0, x.first), nv, x.wide, terms)

    def _turned(self, c: StageCalls, tile: Tile, x: str) -> None:
        """The rows of joints that turn freely."""
        nv, at = self.nv, 0
        for o in self.turning:
            n, out = o.nv, Tile(c.at("turned"), nv)
            left = Tile(c.at("turn", at), n)
            right = tile.part(c.l, o.v, 0)
            write_product(c, out, 2 * n, nv, [Summand(left, right, [(0, 0, n)])])
            if x == "q":
                for i in range(2 * n):
                    for k in range(n):
                        place = out.place(c.l, i, o.v + k)
                        own = c.load("turn", at + 2 * n * n + i * n + k)
                        place.store(place.load(c.l.type, c.l.bytes) + own, c.l.bytes)
            for k, first in enumerate((o.v, nv + o.v)):
                c.put(f"by_{x}", first * nv, out.place(c.l, k * n, 0), n * nv)
            at += 4 * n * n

    def _plain(self, c: StageCalls, tile: Tile, x: str) -> None:
        """The rows of all others: q1 goes along with h v1."""
        nv, h = self.nv, self.h
        for first, count in self._between():
            here = tile.place(c.l, first, 0)
            c.put(f"by_{x}", (nv + first) * nv, here, count * nv, nv * nv, h)
            if x == "q":
                with c.f.loop(first + count, start=first, some=True) as i:
                    y = tile.place(c.l, i.i, i.i).load(c.l.type, c.l.bytes) * h
                    c.put_one(f"by_{x}", i.i * (nv + 1), y + 1.0)

    def _between(self) -> list[tuple[int, int]]:
        """Rates of all other joints: where adjacent ones begin, and how many."""
        free = {k for o in self.turning for k in range(o.v, o.v + o.nv)}
        return [(k, n) for k, _, n in stretches((k, k) for k in range(self.nv) if k not in free)]


def _rates(tree: Tree, q: Sequence[Expr], k: int) -> dict[int, Scalar]:
    """Derivatives of the coordinates q along a unit rate k, by edge of the graph; constant zeros are left out."""
    way = number_rates(tree, q, [float(i == k) for i in range(tree.nv)])
    return {x.edge: d for x, d in zip(q, way) if isinstance(d, Expr) or d != 0.0}
