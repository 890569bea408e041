"""A kernel of one sample in which limbs that are alike lie side by side in the lanes of vectors.

What each limb has its own is a vector, what they share a scalar; a scalar that limbs read goes into all lanes, and
where they meet TOTAL sums the lanes. So the code of one limb serves all, and fits into the nearest cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .ir import I1, IRFunction, literal
from .llvm_kernel import FunctionBody, Kernel
from .llvm_math import Lanes
from .lower import Lowered
from .steps import GUARD, SINCOS, TOTAL, Step, operands, step_results

SUMS = 4  # of tests, side by side: each waits for the one before
LimbPlace = tuple[int, tuple[tuple[int, int], ...]]  # a sign, and of every limb the port and the column


@dataclass(frozen=True, slots=True)
class LimbValues:
    """What the values of a program are, by node; numbers and places stand for one limb after the other.

    count: of the limbs. table: numbers of the robot. spread: where inputs stand in their arguments. lanes: by
    output and place, whose value of several it is. totals: of edges, over the limbs.
    """

    count: int
    table: Mapping[int, tuple[float, ...]]
    spread: Mapping[int, tuple[int, ...]]
    lanes: Sequence[Mapping[int, int]]
    totals: Mapping[int, int]

    def wide(self, low: Lowered) -> set[int]:
        """Values of which every limb has its own."""
        found = {*self.table, *self.spread}
        for s in low.steps:
            if s[0] != TOTAL and any(e >> 1 in found for e in operands(s)):
                found.update(step_results(s))
        return found

    def places(self, v: int, sinks: Sequence[tuple[int, int, int]]) -> list[LimbPlace]:
        """Where a value of all limbs is stored."""
        found: dict[int, list[list[tuple[int, int]]]] = {}
        for port, column, sign in sinks:
            of_limbs = found.setdefault(sign, [[] for _ in range(self.count)])
            of_limbs[self.lanes[port].get(column, 0)].append((port, column))
        return [(sign, at) for sign, x in found.items() for at in zip(*map(sorted, x), strict=True)]


class LimbKernel(Kernel):
    """@one of a program with limbs, whose steps are one run."""

    def body(self, f: IRFunction, index: int = 0) -> FunctionBody:
        return LimbBody(self, f, index)


class LimbBody(FunctionBody):
    """Its straight-line code; `l` is how the value at hand looks."""

    def __init__(self, kernel: Kernel, f: IRFunction, index: int = 0) -> None:
        super().__init__(kernel, f, index)
        self.limbs: LimbValues = kernel.low.limbs
        self.one = self.l
        self.many = self.l._replace(lanes=1 << (self.limbs.count - 1).bit_length())
        self.wide = self.limbs.wide(kernel.low)
        self.splats: dict[int, str] = {}
        self.sums: dict[Lanes, list[str]] = {self.one: [], self.many: []}
        self.least: dict[Lanes, str | None] = {self.one: None, self.many: None}
        self.places = {v: self.limbs.places(v, x) for v, x in kernel.sinks.items() if v in self.wide}
        self.partner = _partners([p for places in self.places.values() for p in places])
        self.waiting: dict[LimbPlace, str] = {}
        self.l = self.many
        self.declare()
        for how in ("fadd", "and"):
            kind = self.l.many(I1) if how == "and" else self.l.type
            given = [kind] if how == "and" else [self.l.scalar, kind]
            f.module.declare(given[0] if how == "fadd" else I1, self.reduction(how), *given)
        self.l = self.one

    def reduction(self, how: str) -> str:
        """The intrinsic that makes one of the lanes."""
        return f"llvm.vector.reduce.{how}.{f'v{self.many.lanes}i1' if how == 'and' else self.many.suffix}"

    def of(self, values: Sequence[int]) -> Lanes:
        """How values look that are computed of these, or are these."""
        return self.many if any(v in self.wide for v in values) else self.one

    # -- operands -------------------------------------------------------------------------------------------

    def first(self) -> None:
        for v in self.k.sinks:
            if v in self.limbs.table:
                self.sink(v)
        super().first()

    def constants(self) -> None:
        self.l = self.one
        super().constants()

    def operand(self, edge: int) -> str:
        v = edge >> 1
        if v in self.limbs.table:
            return self.vector([-x if edge & 1 else x for x in self.limbs.table[v]])
        if v in self.limbs.spread and v not in self.made:
            self.made.add(v)
            self.gather(v)
        if self.l is self.one or v in self.wide or v in self.k.low.constants:
            return super().operand(edge)
        if v not in self.splats:
            self.l = self.one
            name, self.l = super().operand(2 * v), self.many
            kind, scalar = self.l.type, self.l.scalar
            one = self.fresh(f"insertelement {kind} poison, {scalar} {name}, i64 0")
            zeros = f"<{self.l.lanes} x i32> zeroinitializer"
            self.splats[v] = self.fresh(f"shufflevector {kind} {one}, {kind} poison, {zeros}")
        return self.fresh(f"fneg {self.l.type} {self.splats[v]}") if edge & 1 else self.splats[v]

    def vector(self, values: Sequence[float]) -> str:
        """A number of each limb; lanes that are left have that of the first."""
        items = [*values, *[values[0]] * (self.many.lanes - len(values))]
        return f"<{', '.join(f'{self.l.scalar} {literal(x, self.l.scalar)}' for x in items)}>"

    def gather(self, v: int) -> None:
        """An input of every limb; lanes that are left have that of the first."""
        l, places = self.many, self.limbs.spread[v]
        port, x = self.k.ports.inputs[self.k.low.where[v][0]], "poison"
        for lane in range(l.lanes):
            at = self.address(port.base, places[lane if lane < len(places) else 0] * l.size)
            number = self.fresh(f"load {l.scalar}, ptr {at}, align {l.size}")
            x = self.fresh(f"insertelement {l.type} {x}, {l.scalar} {number}, i32 {lane}")
        self.out.append(f"  {self.value}{v} = bitcast {l.type} {x} to {l.type}")

    # -- steps ----------------------------------------------------------------------------------------------

    def sines(self, run: Sequence[Step]) -> Iterator[Step]:
        """Two of limbs that follow one another are one call."""
        k = 0
        while k < len(run):
            pair = run[k : k + 2]
            if len(pair) == 2 and all(x[0] == SINCOS and x[2] >> 1 in self.wide for x in pair):
                self.l = self.many
                yield from self.paired(pair)
            else:
                yield from pair[:1]
                pair = pair[:1]
            k += len(pair)

    def turns(self, steps: Sequence[Step]) -> None:
        for l in (self.one, self.many):
            own = [s for s in steps if self.of([s[2] >> 1, s[3] >> 1]) is l]
            self.l = l
            if own:
                super().turns(own)
        self.l = self.one

    def step(self, step: Step) -> None:
        self.l = self.of([*step_results(step), *(e >> 1 for e in operands(step) if step[0] == GUARD)])
        if step[0] == TOTAL:
            self.total(step[1], step[2])
        else:
            super().step(step)

    def total(self, to: int, edge: int) -> None:
        self.l, count = self.many, self.limbs.count
        x, l = self.operand(edge), self.l
        if l.lanes > count:
            mask = ", ".join(f"i32 {k if k < count else l.lanes}" for k in range(l.lanes))
            x = self.fresh(f"shufflevector {l.type} {x}, {l.type} zeroinitializer, <{l.lanes} x i32> <{mask}>")
        self.out.append(f"  {self.value}{to} = {self.sum(x)}")
        self.made.add(to)
        self.sink(to)

    def sum(self, x: str) -> str:
        """Over the lanes."""
        l = self.many
        zero = literal(-0.0, l.scalar)
        return f"call reassoc {l.scalar} @{self.reduction('fadd')}({l.scalar} {zero}, {l.type} {x})"

    # -- results --------------------------------------------------------------------------------------------

    def sink(self, v: int) -> None:
        self.l = self.of([v])
        if self.l is self.one:
            super().sink(v)
            return
        for place in self.places.get(v, ()):
            name, other = self.operand(2 * v + place[0]), self.partner.get(place)
            if other is None:
                self.scatter(place, name)
            elif other not in self.waiting:
                self.waiting[place] = name
            elif other[1] > place[1]:
                self.scatter_pair(place, name, self.waiting.pop(other))
            else:
                self.scatter_pair(other, self.waiting.pop(other), name)
        if v in self.places and self.k.target.check and v in self.k.ends:
            self.test(self.operand(2 * v))

    def stored(self, kind: str, name: str, port: int, column: int) -> None:
        to = self.k.ports.outputs[port]
        at = self.address(to.base, to.offset + column * self.l.size)
        self.out.append(f"  store {kind} {name}, ptr {at}, align {self.l.size}")

    def scatter(self, place: LimbPlace, name: str) -> None:
        """One number of each limb."""
        for lane, at in enumerate(place[1]):
            x = self.fresh(f"extractelement {self.l.type} {name}, i32 {lane}")
            self.stored(self.l.scalar, x, *at)

    def scatter_pair(self, place: LimbPlace, x: str, y: str) -> None:
        """Two numbers of each limb, side by side."""
        kind, n = self.l.type, self.l.lanes
        halves = []
        for odd in (0, 1):
            mask = ", ".join(f"i32 {k}, i32 {n + k}" for k in range(odd, n, 2))
            halves.append(self.fresh(f"shufflevector {kind} {x}, {kind} {y}, <{n} x i32> <{mask}>"))
        for lane, at in enumerate(place[1]):
            first, half = lane & ~1, halves[lane & 1]
            both = f"<2 x i32> <i32 {first}, i32 {first + 1}>"
            two = self.fresh(f"shufflevector {kind} {half}, {kind} poison, {both}")
            self.stored(f"<2 x {self.l.scalar}>", two, *at)

    # -- status ---------------------------------------------------------------------------------------------

    def test(self, value: str) -> None:
        sums = self.sums[self.l]
        before = sums.pop(0) if len(sums) == SUMS else self.l.const(0.0)
        sums.append(self.multiply_add(value, self.l.const(0.0), before))

    def add_tests(self) -> None:
        for l, sums in self.sums.items():
            while len(sums) > 1:
                sums.append(self.fresh(f"fadd {l.type} {sums.pop(0)}, {sums.pop(0)}"))
            self.l = self.one
            for x in sums:
                self.add_to_status(self.fresh(self.sum(x)) if l is self.many else x)

    def guard(self, pivot: int, scale: int) -> None:
        self.least_pivot = self.least[self.l]
        super().guard(pivot, scale)
        self.least[self.l] = self.least_pivot

    def test_pivots(self) -> None:
        for l, least in self.least.items():
            self.l, self.least_pivot = l, least
            super().test_pivots()
        self.l = self.one

    def unit(self, values: Sequence[int]) -> None:
        self.l = self.of(values)
        super().unit(values)
        self.l = self.one

    def fail_unless(self, good: str) -> None:
        l, self.l = self.l, self.one
        if l is self.many:
            good = self.fresh(f"call i1 @{self.reduction('and')}({l.many(I1)} {good})")
        super().fail_unless(good)
        self.l = l


def _partners(places: Sequence[LimbPlace]) -> dict[LimbPlace, LimbPlace]:
    """Of places that are next to one another for every limb, two and two."""
    found: dict[LimbPlace, LimbPlace] = {}
    for x, y in pairwise(sorted(places, key=lambda p: p[1])):
        beside = all(p == r and b - a == 1 for (p, a), (r, b) in zip(x[1], y[1]))
        if beside and x not in found:
            found[x], found[y] = y, x
    return found
