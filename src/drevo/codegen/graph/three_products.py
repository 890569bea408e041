"""A rotation in a plane by three products: c x - s y and s x + c y through c (x + y).

c x - s y = c (x + y) - (c + s) y and s x + c y = c (x + y) + (s - c) x: three products and three sums where there
were four and two; c + s and s - c are formed once for an angle. It pays where products alone count.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from . import levers
from .ops import ADD, COS, MUL, SIN
from .program import Program
from .rebuild import rebuilt
from .regroup import FRESH


class _Half(NamedTuple):
    """c x + s y, c and s the cosine and sine of one angle: edges, those of x and y with their signs."""

    c: int
    s: int
    x: int
    y: int


def with_three_products(program: Program) -> Program:
    """The same program, its plane rotations by three products each; the program itself where there are none."""
    if "three" in levers.off():
        return program
    halves = _halves(program)
    partners = {(h.c, h.x, h.y): n for n, h in halves.items()}
    made = _Made()
    for n, h in halves.items():
        for minus in (0, 1):
            m = partners.get((h.c, h.y ^ minus, h.x ^ 1 ^ minus), n)
            if m != n and not made.sums.keys() & {n, m}:
                made.rotation(n, m, minus, h)
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

    def rotation(self, n: int, m: int, minus: int, h: _Half) -> None:
        """n = c x + s y = c (x + y) + (s - c) y; m = c y - s x, or minus that, = c (x + y) - (c + s) x."""
        if h.c not in self.angles:
            self.angles[h.c] = self.fresh(self.sums, h.s, h.c ^ 1), self.fresh(self.sums, h.s, h.c)
        less, more = self.angles[h.c]
        whole = self.fresh(self.products, h.c, self.fresh(self.sums, h.x, h.y))
        self.sums[n] = whole, self.fresh(self.products, less, h.y)
        self.sums[m] = whole ^ minus, self.fresh(self.products, more, h.x) ^ 1 ^ minus


def _halves(program: Program) -> dict[int, _Half]:
    """Sums of a product with a cosine and one with the sine of the same angle, which nothing else reads."""
    g, order, out = program.graph, program.order(), dict[int, _Half]()
    uses = Counter(e >> 1 for n in order for e in g.operands(n))
    uses.update(e >> 1 for e in program.ends)
    for n in order:
        if g.op[n] != ADD or n in program.angle_sums:
            continue
        found: dict[int, tuple[int, int]] = {}
        for e in g.operands(n):
            factors = g.operands(e >> 1) if g.op[e >> 1] == MUL and uses[e >> 1] == 1 else ()
            turning = [f for f in factors if g.op[f >> 1] in (SIN, COS)]
            if len(turning) == 1:
                (other,) = (f for f in factors if f != turning[0])
                found[g.op[turning[0] >> 1]] = turning[0], other ^ (e & 1)
        if len(found) == 2:
            (c, x), (s, y) = found[COS], found[SIN]
            if g.a[c >> 1] == g.a[s >> 1]:
                out[n] = _Half(c, s, x, y)
    return out
