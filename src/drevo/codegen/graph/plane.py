"""Plane rotations in a graph: sums c x + s y, and c y - s x, the rate of the first by the angle, beside them.

A rotation in a plane by three products: c x - s y and s x + c y through c (x + y).

c x - s y = c (x + y) - (c + s) y and s x + c y = c (x + y) + (s - c) x: three products and three sums where there
were four and two; c + s and s - c are formed once for an angle. It pays where products alone count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from . import levers
from .node import Graph
from .ops import ADD, COS, MUL, SIN
from .program import Program
from .rebuild import rebuilt
from .regroup import FRESH


class PlaneSum(NamedTuple):
    """c x + s y, c and s the cosine and sine of one angle: edges, those of x and y with their signs."""

    c: int
    s: int
    x: int
    y: int


def plane_sums(graph: Graph, nodes: Sequence[int], ends: Iterable[int]) -> dict[int, PlaneSum]:
    """Sums of a product with a cosine and one with the sine of the same angle, which nothing else reads."""
    out = dict[int, PlaneSum]()
    uses = Counter(e >> 1 for n in nodes for e in graph.operands(n))
    uses.update(e >> 1 for e in ends)
    for n in nodes:
        if graph.op[n] != ADD:
            continue
        found: dict[int, tuple[int, int]] = {}
        for e in graph.operands(n):
            factors = graph.operands(e >> 1) if graph.op[e >> 1] == MUL and uses[e >> 1] == 1 else ()
            turning = [f for f in factors if graph.op[f >> 1] in (SIN, COS)]
            if len(turning) == 1:
                (other,) = (f for f in factors if f != turning[0])
                found[graph.op[turning[0] >> 1]] = turning[0], other ^ (e & 1)
        if len(found) == 2:
            (c, x), (s, y) = found[COS], found[SIN]
            if graph.a[c >> 1] == graph.a[s >> 1]:
                out[n] = PlaneSum(c, s, x, y)
    return out


def partners(sums: dict[int, PlaneSum]) -> dict[int, int]:
    """Maps each sum c x + s y to the edge of c y - s x, where there is one."""
    known = {(h.c, h.x, h.y): n for n, h in sums.items()}
    found = {}
    for n, h in sums.items():
        for minus in (0, 1):
            m = known.get((h.c, h.y ^ minus, h.x ^ 1 ^ minus), n)
            if m != n:
                found[n] = 2 * m + minus
    return found


def with_three_products(program: Program) -> Program:
    """Rewrites plane rotations by three products each; returns the program itself where there are none."""
    if "three" in levers.off():
        return program
    halves, made = plane_sums(program.graph, program.order(), program.ends), _Made()
    for n, e in partners(halves).items():
        if not made.sums.keys() & {n, e >> 1}:
            made.rotation(n, e >> 1, e & 1, halves[n])
    return rebuilt(program, made.sums, made.products) if made.sums else program


class _Made:
    """sums and products as `rebuilt` takes them."""

    def __init__(self) -> None:
        self.sums: dict[int, tuple[int, ...]] = {}
        self.products: dict[int, tuple[int, ...]] = {}
        self.angles: dict[int, tuple[int, int]] = {}
        self.next = FRESH

    def fresh(self, parts: dict[int, tuple[int, ...]], *edges: int) -> int:
        self.next += 1
        parts[self.next] = edges
        return 2 * self.next

    def rotation(self, n: int, m: int, minus: int, h: PlaneSum) -> None:
        """n = c x + s y = c (x + y) + (s - c) y; m = c y - s x, or minus that, = c (x + y) - (c + s) x."""
        if h.c not in self.angles:
            self.angles[h.c] = self.fresh(self.sums, h.s, h.c ^ 1), self.fresh(self.sums, h.s, h.c)
        less, more = self.angles[h.c]
        whole = self.fresh(self.products, h.c, self.fresh(self.sums, h.x, h.y))
        self.sums[n] = whole, self.fresh(self.products, less, h.y)
        self.sums[m] = whole ^ minus, self.fresh(self.products, more, h.x) ^ 1 ^ minus
