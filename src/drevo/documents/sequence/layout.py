"""Layout of statements: nodes of a program with a statement of their own, and those inside their only user.

Whole turns that large angles lose before they are summed: a sum of large angles would keep few digits.

y = x - n P with P = 2 pi / factor in parts of few bits, whose products by n are exact (W. J. Cody, W. Waite,
Software Manual for the Elementary Functions, Prentice-Hall, 1980). An angle by itself, of which the
sine alone is taken, needs none of it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...codegen.graph.ops import ADD, CONST, COS, DIV, INPUT, MUL, SIN
from ...codegen.graph.program import Program

MAX_SPELLED_ANGLES = 9  # angles beyond which a sum of them is not spelled out in its name


class StatementLayout:
    """The place where each node is written. Nothing here changes what is computed; one pass over the nodes each.

    wanted: output nodes with the name and sign of their output. angle: sums used in sines and cosines only.
    inner: nodes written inside their user. turns: (user, input) -> the factor that the user, an angle, takes the
    input by, so that whole periods of 2 pi / factor change nothing. straight: inputs that others read as well.
    read: inputs that anything reads by their own name.
    """

    def __init__(self, program: Program, longest: int) -> None:
        self.program, self.graph, self.longest = program, program.graph, max(2, longest)
        self.symbolic = bool(program.parameters)
        self.two = None if program.doubling_is_mul else self.graph.known(2.0)
        self.order = program.order()
        self.written = {n: self._operands(n) for n in self.order}
        self.uses, self.user = self._usage()
        self.angle = {n for n in program.angle_sums if self.graph.op[n] == ADD}
        self.turns = self._turns()
        self.straight = self._straight()
        self.read = self._read()
        self.wanted = self._wanted()
        self.inner = self._inner()

    def operands(self, n: int) -> tuple[int, ...]:
        """Operand edges as written: 2 x is x + x."""
        return self.written[n]

    def doubled(self, n: int) -> int | None:
        """The edge x of a node 2 x; None where the program takes doubling for a product, as the paper does."""
        edges = self.written[n]
        return edges[0] if self.graph.op[n] == MUL and edges[0] == edges[1] and self._twice(n) else None

    def _operands(self, n: int) -> tuple[int, ...]:
        edges = self.graph.operands(n)
        if self.two is not None and self.graph.op[n] == MUL and self._twice(n):
            for two, x in (edges, edges[::-1]):
                if two & ~1 == self.two:
                    return (x ^ (two & 1),) * 2
        return edges

    def _twice(self, n: int) -> bool:
        """A product by 2 that is written as a sum."""
        return self.two in (self.graph.a[n] & ~1, self.graph.b[n] & ~1) and not self.hoisted(n)

    def hoisted(self, n: int) -> bool:
        """Work on parameters alone; without parameters there is nobody to do it before."""
        return self.graph.level[n] < 2 and self.symbolic

    def angles_of(self, n: int) -> list[int] | None:
        """The inputs that a sum of angles adds up; None if it is anything else."""
        found: list[int] = []
        stack = [2 * n]
        while stack:
            e = stack.pop()
            if e & 1 or len(found) > MAX_SPELLED_ANGLES:
                return None
            if self.graph.op[e >> 1] == INPUT:
                found.append(e >> 1)
            elif e >> 1 in self.angle:
                stack += reversed(self.graph.operands(e >> 1))
            else:
                return None
        return found

    def _usage(self) -> tuple[dict[int, int], dict[int, int]]:
        """Counts the uses of each node as written, and finds its last user."""
        uses, user = dict.fromkeys(self.order, 0), {}
        for n, edges in self.written.items():
            for e in edges:
                uses[e >> 1] += 1
                user[e >> 1] = n
        return uses, user

    def _turns(self) -> dict[tuple[int, int], float]:
        """Whole factors are as good as 1; of others the constant ones, such as ratios of joints that follow."""
        op, states = self.graph.op, {n for p in self.program.inputs for n in p.nodes}
        found: dict[tuple[int, int], float] = {}
        for n in self.program.angle_sums:
            edges = self.written[n]
            factors = [self.graph.constants[self.graph.a[e >> 1]] for e in edges if op[e >> 1] == CONST]
            for e in edges:
                if e >> 1 in states and (op[n] == ADD or edges[0] == edges[1]):
                    found[n, e >> 1] = 1.0
                elif e >> 1 in states and factors:
                    found[n, e >> 1] = 1.0 if factors[0].is_integer() else factors[0]
        return found

    def _straight(self) -> set[int]:
        """The nodes that anything but an angle, a sine and a cosine reads, and the output nodes."""
        op = self.graph.op
        read = {
            e >> 1
            for n, edges in self.written.items()
            for e in edges
            if op[n] not in (SIN, COS) and (n, e >> 1) not in self.turns
        }
        return read.union(e >> 1 for e in self.program.output_edges)

    def _read(self) -> set[int]:
        pairs = ((n, e >> 1) for n, edges in self.written.items() for e in edges)
        return self.straight | {leaf for n, leaf in pairs if not self.apart(leaf, self.turns.get((n, leaf), 0.0))}

    def apart(self, leaf: int, factor: float) -> bool:
        """True if an input less whole periods gets a name of its own."""
        return factor not in (0.0, 1.0) or (factor == 1.0 and leaf in self.straight)

    def _wanted(self) -> dict[int, tuple[str, bool]]:
        """By output node its name and sign; of a symmetric pair, the entry below the diagonal names the node."""
        found: dict[int, tuple[bool, str, bool]] = {}
        for o in self.program.outputs:
            square = len(o.shape) == 2 and o.shape[0] == o.shape[1]
            for k, e in enumerate(o.edges):
                above = square and k % o.shape[1] > k // o.shape[1]
                known = found.get(e >> 1)
                if known is None or (known[0] and not above):
                    found[e >> 1] = (above, entry_name(o.name, o.shape, k), bool(e & 1))
        return {n: (name, sign) for n, (_, name, sign) in found.items()}

    def _inner(self) -> set[int]:
        """The heaviest operands of a statement that grew too long get one of their own after all."""
        inner: set[int] = set()
        weight: dict[int, int] = {}
        for n, edges in self.written.items():
            inside = [e >> 1 for e in edges if e >> 1 in inner]
            total = len(edges) - len(inside) + sum([weight[i] for i in inside])
            if total > self.longest:
                for i in sorted(inside, key=lambda i: -weight[i]):
                    if total > self.longest:
                        inner.discard(i)
                        total += 1 - weight[i]
            weight[n] = total
            if self.uses[n] == 1 and self._may_be_inner(n):
                inner.add(n)
        return inner

    def _may_be_inner(self, n: int) -> bool:
        op, user = self.graph.op, self.user[n]
        if op[n] not in (ADD, MUL) or n in self.wanted or self.program.labels.get(n):
            return False
        if self.hoisted(n) != self.hoisted(user):
            return False
        if op[user] in (SIN, COS):
            return n in self.angle and self.angles_of(n) is not None
        if user in self.angle:  # a product stands apart, so that what is left is a plain sum of angles
            return n in self.angle
        if op[user] == DIV:
            return op[n] == ADD or self.graph.b[user] >> 1 != n
        return op[user] in (ADD, MUL)


def entry_name(name: str, shape: tuple[int, ...], k: int) -> str:
    """M, 1 -> M_12: entries are counted from 1."""
    index: list[int] = []
    for size in reversed(shape):
        index.insert(0, k % size + 1)
        k //= size
    mark = "" if all(size < 10 for size in shape) else "_"
    return f"{name}_{mark.join(map(str, index))}" if shape else name


PI = Fraction(
    314159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534, 10**92
)
PART_BITS, TURN_PARTS = 15, 5  # of a part, so that its product by n up to 2^38 is exact; and how many
FEW_TURNS = 2.0  # turns: angles that have no more stay as they are
MAX_TURNS = 2.0**38  # turns
NOTE = "an angle less whole turns, where it has many: a sum of large angles would keep few of its digits"


class Turn(NamedTuple):
    """name: a scalar of an input less whole turns, which is the scalar itself where nothing else reads it.

    place: of the scalar in its input. factor: what it is multiplied by before it is an angle, 1 for whole numbers.
    """

    name: str
    scalar: str
    source: str
    place: int
    factor: float


@lru_cache(maxsize=256)
def period(factor: float) -> tuple[float, tuple[float, ...]]:
    """1 / P and the parts of P."""
    left = 2 * PI / abs(Fraction(factor))
    rate, parts = float(1 / left), []
    for _ in range(TURN_PARTS - 1):
        unit = Fraction(2.0 ** (math.frexp(left)[1] - PART_BITS))
        parts.append(float(left // unit * unit))
        left -= Fraction(parts[-1])
    return rate, (*parts, float(left))


def period_texts(factor: float) -> tuple[str, list[str]]:
    """x / P, and the products that x loses one by one, as every language writes them."""
    rate, parts = period(factor)
    return f"x * {rate!r}", [f"n * {part!r}" for part in parts]


def less_turns(x: Any, factor: float) -> Any:
    """Numbers less whole turns; NaN beyond 2^38 of them, where an angle has no digit."""
    rate, parts = period(factor)
    n = np.round(np.asarray(x, float) * rate)
    y = x
    for part in parts:
        y = y - n * part
    return np.where(np.abs(n) > FEW_TURNS, np.where(np.abs(n) <= MAX_TURNS, y, np.nan), x)
