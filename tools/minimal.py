"""How few operations an inertia matrix can have: exhaustive search over linear straight-line programs.

With the sines and cosines of the angle sums as inputs, each element of the inertia matrix of a plane chain is a
form with constant coefficients and a constant term. A linear program makes it by sums and differences of two
values and by products of a value and any constant. What it has beside its targets are `extra` values. Two of them
at most can be searched through: where they do not suffice, three are needed.

* Exact numbers modulo a prime, at one random choice of the robot's constants: a program whose constants are
  functions of the robot's would be one there too, so finding none rules out all (but for chances of 1e-15).
* A product by any constant is searched as a line: its constant is set by the target that it leads to, directly or
  through a sum. So the search is over all constants.
* Additive constants are counted apart: without them a program makes the linear parts alone, and the constant terms
  of the targets, independent of each other, need a sum each.

Run it: python tools/minimal.py. Its table stands in docs/operations.md.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

P = (1 << 61) - 1
Row = tuple[int, ...]


class Problem(NamedTuple):
    """inputs: how many; targets: rows over them; constants: independent constant terms; known: what Drevo takes.

    scaled: whether products are searched too; else the inputs are amplitudes times sines or cosines, made by so
    many products.
    """

    name: str
    inputs: int
    targets: tuple[Row, ...]
    constants: int
    known: int
    scaled: bool
    products: int = 0


def scaled(row: Row, k: int) -> Row:
    return tuple(x * k % P for x in row)


def added(x: Row, y: Row, sign: int = 1) -> Row:
    return tuple((a + sign * b) % P for a, b in zip(x, y))


def normal(row: Row) -> Row:
    """The same up to its sign, which costs nothing."""
    return min(row, scaled(row, -1))


def ratio(x: Row, y: Row) -> int | None:
    """k with x = k y, if there is one."""
    at = next(k for k, b in enumerate(y) if b)
    k = x[at] * pow(y[at], -1, P) % P
    return k if k and scaled(y, k) == x else None


def sums(nodes: Sequence[Row]) -> set[Row]:
    """All sums and differences of two, and doubles."""
    found = {normal(added(x, y, s)) for i, x in enumerate(nodes) for y in nodes[: i + 1] for s in (1, -1)}
    return {x for x in found if any(x)} - set(nodes)


class Search:
    """Whether all targets can be made with so many values beside them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.targets = {normal(t) for t in problem.targets}
        self.tried = 0

    def closed(self, nodes: list[Row]) -> list[Row]:
        """With every target that one operation makes: each must be made sometime, so none is worth putting off."""
        nodes, left = [*nodes], self.targets - {*nodes}
        while left:
            near = left & sums(nodes)
            if self.problem.scaled:
                near |= {t for t in left if any(ratio(t, x) for x in nodes)}
            if not near:
                break
            nodes += sorted(near)
            left -= near
        return nodes

    def possible(self, nodes: list[Row], extra: int) -> bool:
        self.tried += 1
        nodes = self.closed(nodes)
        left = self.targets - {*nodes}
        if not left or not extra:
            return not left
        return any(self.possible([*nodes, x], extra - 1) for x in self.candidates(nodes, left, extra))

    def candidates(self, nodes: list[Row], left: set[Row], extra: int) -> Iterator[Row]:
        """A value that is no target: a sum, or a product whose constant some target sets."""
        found = sums(nodes)
        yield from sorted(found)
        if not self.problem.scaled:
            return
        seen: set[Row] = set()
        # k x = t - z for a value z there; where one more value may follow, z may be a sum, or t a half
        others = [*nodes, *(found if extra > 1 else ())]
        goals = [added(t, z, s) for t in left for z in others for s in (1, -1)]
        if extra > 1:  # the value that follows is a double
            half = pow(2, -1, P)
            doubled = [scaled(t, half) for t in left]
            goals += doubled + [scaled(g, half) for g in goals]
            goals += [added(t, z, s) for t in doubled for z in nodes for s in (1, -1)]
        for x, goal in product(nodes, goals):
            if any(goal) and (k := ratio(goal, x)) is not None:
                value = normal(scaled(x, k))
                if value not in seen and value not in nodes:
                    seen.add(value)
                    yield value
        if (
            extra > 1
        ):  # a product of which a second product, of this or of another value, makes a target: two lines
            for t, x, y in product(left, nodes, nodes):
                if x < y and (pair := plane(t, x, y)):  # t = a x + b y = b ((a / b) x + y)
                    a, b = pair
                    over = a * pow(b, -1, P) % P
                    yield from (normal(scaled(x, k)) for k in (a, over))
                    yield from (normal(scaled(y, k)) for k in (b, pow(over, -1, P)))


def plane(t: Row, x: Row, y: Row) -> tuple[int, int] | None:
    """a and b, neither 0, with t = a x + b y, if there are such."""
    for i in range(len(t)):
        for j in range(i):
            det = (x[i] * y[j] - x[j] * y[i]) % P
            if det:
                inverse = pow(det, -1, P)
                a, b = (t[i] * y[j] - t[j] * y[i]) * inverse % P, (x[i] * t[j] - x[j] * t[i]) * inverse % P
                return (a, b) if a and b and added(scaled(x, a), scaled(y, b)) == t else None
    return None


def unit(n: int, k: int) -> Row:
    return tuple(int(i == k) for i in range(n))


def problems() -> list[Problem]:
    """Plane chains of two and three links, Telegin's first and second example."""
    rng = random.Random(0)
    a, b, c = (rng.randrange(2, P) for _ in range(3))
    chain = ((a, 0, 0), (2 * a % P, 0, 0), (a, b, 0), (2 * a % P, b, c), (2 * a % P, 2 * b % P, 2 * c % P))
    n = 6
    arms: list[Row] = []
    for first in (0, 3):
        u, v, w = (unit(n, first + k) for k in range(3))
        arms += [scaled(u, 2), added(u, v), added(scaled(u, 2), added(v, w))]
    arms.append(tuple([2] * n))
    return [
        Problem("plane chain of two links", 1, ((a,), (2 * a % P,)), 2, 4, True),
        Problem("plane chain of three links; three-link (example 1)", 3, chain, 3, 11, True),
        Problem("two-arm-planar (example 2)", n, tuple(arms), 5, 21, False, 6),
    ]


def bound(problem: Problem) -> tuple[int, int]:
    """The linear operations that are necessary, and how many programs were tried in vain."""
    search = Search(problem)
    start = [unit(problem.inputs, k) for k in range(problem.inputs)]
    distinct = len(search.targets - {normal(x) for x in start})
    for extra in range(3):
        if search.possible([normal(x) for x in start], extra):
            return distinct + extra, search.tried
    return distinct + 3, search.tried


def table() -> list[str]:
    """What is proved, and what Drevo takes."""
    lines = [
        "| matrix | linear part | constants | at least | Drevo | programs tried |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for p in problems():
        least, tried = bound(p)
        linear = least + p.products
        lines.append(f"| {p.name} | {linear} | {p.constants} | {linear + p.constants} | {p.known} | {tried:,} |")
    return lines


def main() -> int:
    """Print it."""
    print("\n".join(table()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
