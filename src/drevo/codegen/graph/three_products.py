"""A rotation in a plane by three products: c x - s y and s x + c y through c (x + y).

c x - s y = c (x + y) - (c + s) y and s x + c y = c (x + y) + (s - c) x: three products and three sums where there
were four and two; c + s and s - c are formed once for an angle. It pays where products alone count.
"""

from __future__ import annotations

from . import levers
from .plane import PlaneSum, partners, plane_sums
from .program import Program
from .rebuild import rebuilt
from .regroup import FRESH


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
