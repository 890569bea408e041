"""Sums regrouped: common factors taken out, and what several sums have in common added once.

A sum is flat: its terms may be added in any order. First, of the products in a sum the factor that most of them
have is taken out, a b + a c = a (b + c). Then, of all pairs of terms the one that most sums contain becomes a term
of its own. Each step saves at least one operation, and both go on until nothing more is found. Sums and products
with a name keep it; sums of angles, and work on parameters alone, stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import combinations

from . import levers
from .ops import ADD, MUL
from .program import Program
from .rebuild import rebuilt

MAX_REGROUPED_TERMS = 40  # terms: pairs grow with the square
FRESH = 1 << 40  # beyond the nodes of any graph, constants that are still to come among them
EdgePair = tuple[int, int]


def regrouped(program: Program, early: bool = False, names: bool = True) -> Program:
    """Rewrites a program with regrouped sums; returns the program itself where nothing is saved.

    early: see `rebuilt`. names: what has one stays as it is.
    """
    if "regroup" in levers.off():
        return program
    sums = _Sums(program, names)
    sums.factor()
    sums.share()
    sums.gather_constants()
    return rebuilt(program, sums.terms, sums.products, early) if sums.changed or early else program


def _used_once(program: Program, nodes: Sequence[int], kept: set[int]) -> set[int]:
    """Selects the nodes that one operation alone reads, and nobody else. kept: nodes that are left out."""
    uses = program.graph.uses(program.order())
    return {n for n in nodes if uses[n] == 1} - kept


class _Sums:
    """terms: sum -> the edges that it adds. products: new node -> the edges that it multiplies. New nodes have
    numbers beyond those of the graph."""

    def __init__(self, program: Program, names: bool) -> None:
        g = self.graph = program.graph
        moving = [n for n in program.order() if g.level[n] == 2]
        self.program, self.next, self.changed = program, FRESH, False
        self.kept = {e >> 1 for e in program.ends} | program.angle_sums
        self.kept |= program.labels.keys() if names else set()
        self.once = _used_once(program, moving, self.kept)
        flat = {n for n in moving if g.op[n] == ADD} - program.angle_sums
        inner = {e >> 1 for n in flat for e in g.operands(n)} & flat & self.once
        outer = flat - inner
        self.terms = {n: list(self._flat(n, inner)) for n in moving if n in outer}
        self.products: dict[int, tuple[int, ...]] = {}

    def _flat(self, n: int, inner: set[int]) -> Iterator[int]:
        stack = [2 * n]
        while stack:
            e = stack.pop()
            if e >> 1 == n or e >> 1 in inner:
                stack += [x ^ (e & 1) for x in reversed(self.graph.operands(e >> 1))]
            else:
                yield e

    def fresh(self) -> int:
        self.next, self.changed = self.next + 1, True
        return self.next - 1

    # -- a b + a c = a (b + c) ------------------------------------------------------------------------------

    def factor(self) -> None:
        todo = list(self.terms)
        while todo:
            n = todo.pop()
            common = self._common(self.terms[n]) if n in self.terms else None  # it may have been opened
            if common is not None:
                todo += [n, self._take_out(n, common)]

    def _common(self, terms: list[int]) -> int | None:
        """The factor of the most products that nothing else uses, if there are two."""
        often = dict[int, int]()
        for e in terms:
            for f in set(self._factors(e)):
                often[f] = often.get(f, 0) + 1
        most = max(often.values(), default=0)
        return min(f for f, count in often.items() if count == most) if most > 1 else None

    def _factors(self, e: int) -> list[int]:
        """The nodes of a product that may be taken apart; none of anything else."""
        n = e >> 1
        return self._apart(e)[1] if n in self.once and self.graph.op[n] == MUL else []

    def _apart(self, e: int) -> tuple[int, list[int]]:
        """The sign of a product and its factors, those of products in it that only it uses among them."""
        g, sign, out, stack = self.graph, e & 1, list[int](), [e >> 1]
        while stack:
            n = stack.pop()
            if n in self.once and g.op[n] == MUL:
                sign ^= (g.a[n] ^ g.b[n]) & 1
                stack += (g.b[n] >> 1, g.a[n] >> 1)
            else:
                out.append(n)
        return sign, out if len(out) > 1 else []

    def _take_out(self, n: int, factor: int) -> int:
        """Replaces the products with the factor in the sum n by one; gives the sum of the others."""
        terms, inside = self.terms[n], self.fresh()
        mine = [e for e in terms if factor in self._factors(e)]
        others: list[int] = []
        for e in mine:
            sign, left = self._apart(e)
            left.remove(factor)
            others += self._opened(2 * self._product(left) + sign)
        self.terms[inside] = others
        product = self.fresh()
        self.products[product] = (2 * factor, 2 * inside)
        at = terms.index(mine[0])
        rest = [e for e in terms if e not in mine]
        self.terms[n] = [*rest[:at], 2 * product, *rest[at:]]
        return inside

    def _product(self, factors: list[int]) -> int:
        if len(factors) == 1:
            return factors[0]
        node = self.fresh()
        self.products[node] = tuple(2 * n for n in factors)
        return node

    def _opened(self, e: int) -> list[int]:
        """The terms of a sum that only the dissolved product used; other edges as they are."""
        n = e >> 1
        return [x ^ (e & 1) for x in self.terms.pop(n)] if n in self.once and n in self.terms else [e]

    # -- pairs of terms -------------------------------------------------------------------------------------

    def share(self) -> None:
        """The pair that the most sums have becomes a sum of its own, until no two share one."""
        users: dict[EdgePair, set[int]] = defaultdict(set)
        heap: list[tuple[int, EdgePair]] = []  # (minus the number of sums, pair); outdated ones stay in it

        def enter(n: int) -> None:
            for pair in _pairs(self.terms[n]):
                users[pair].add(n)
                if len(users[pair]) > 1:
                    heappush(heap, (-len(users[pair]), pair))

        for n in self.terms:
            enter(n)
        while heap:
            often, pair = heappop(heap)
            if len(users[pair]) < 2:
                continue
            if len(users[pair]) != -often:  # others took terms of its sums: back in line
                heappush(heap, (-len(users[pair]), pair))
                continue
            node = self.fresh()
            for n in sorted(users[pair]):
                for p in _pairs(self.terms[n]):
                    users[p].discard(n)
                self._replace(n, pair, node)
                enter(n)
            self.terms[node] = list(pair)

    def _replace(self, n: int, pair: EdgePair, node: int) -> None:
        terms = self.terms[n]
        sign = 0 if pair[0] in terms else 1
        at = min(terms.index(e ^ sign) for e in pair)
        rest = [e for e in terms if e ^ sign not in pair]
        self.terms[n] = [*rest[:at], 2 * node + sign, *rest[at:]]

    # -- what does not move ---------------------------------------------------------------------------------

    def gather_constants(self) -> None:
        """A sum adds one constant; one that only sums read leaves it to them where no more of them do then."""
        g = self.graph
        moving = {n: [e for e in terms if not self._is_still(e)] for n, terms in self.terms.items()}
        still = {n: sum((g.expr(e) for e in terms if self._is_still(e)), 0.0) for n, terms in self.terms.items()}
        readers, free = self._readers()
        todo, changed = sorted(free), set[int]()
        while todo:
            n = todo.pop()
            after = {
                u: still[u] + (moving[u].count(2 * n) - moving[u].count(2 * n + 1)) * still[n] for u in readers[n]
            }
            more = sum(bool(x != 0.0) - bool(still[u] != 0.0) for u, x in after.items())
            if still[n] != 0.0 and (more < 1 or (more == 1 and free & after.keys())):
                changed.add(n)
                still |= {**after, n: 0.0}
                todo += sorted(free & after.keys())
        bare = {n: self.fresh() for n in sorted(changed)}  # they have other values now
        for n in list(moving):
            terms = [2 * bare.get(e >> 1, e >> 1) + (e & 1) for e in moving[n]]
            terms += [g.edge(still[n])] if still[n] != 0.0 or not terms else []
            self.changed |= len(terms) != len(self.terms[n])
            self.terms[bare.get(n, n)] = terms

    def _is_still(self, e: int) -> bool:
        return e >> 1 < FRESH and self.graph.level[e >> 1] < 2

    def _readers(self) -> tuple[dict[int, list[int]], set[int]]:
        """By node the sums that add it, and the nameless sums that nothing else reads."""
        readers: dict[int, list[int]] = defaultdict(list)
        stack = [e >> 1 for e in self.program.ends]
        seen, others = set[int](), {*stack, *self.kept}
        while stack:
            n = stack.pop()
            if n in seen:
                continue
            seen.add(n)
            terms = self.terms.get(n)
            parts = [e >> 1 for e in terms or self.products.get(n) or self.graph.operands(n)]
            stack += parts
            if terms is None:
                others.update(parts)
                continue
            for x in parts:
                readers[x].append(n)
        return readers, (readers.keys() & self.terms.keys()) - others


def _pairs(terms: Iterable[int]) -> list[EdgePair]:
    """Pairs of the terms as edges of which the first is positive: a - b and b - a are one."""
    listed = sorted(terms)
    if len(listed) > MAX_REGROUPED_TERMS or len({e >> 1 for e in listed}) < len(listed):
        return []
    return [(a & ~1, b ^ (a & 1)) for a, b in combinations(listed, 2)]
