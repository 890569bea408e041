"""Products of small matrices in lanes: of each lane its own, blocks of the result in registers.

A block of four rows and four columns multiplies sixteen times for eight numbers that it reads, so that multiplying
and not reading bounds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ir import I8, Value
from ..math import Lanes
from ..stages import StageCalls

STRAIGHT = 16  # terms of a sum that are written out
SIDES = {64: (4, 4)}  # rows and columns of a block by the bytes of a register; sixteen registers have room for
NARROW = (2, 4)


class Tile(NamedTuple):
    """A matrix in lanes: the address of its first entry, entries from row to row and from column to column."""

    base: Value
    row: int
    column: int = 1

    def place(self, l: Lanes, row: Value | int, column: Value | int) -> Value:
        """The address of an entry."""
        f = self.base.f
        at = f.value(row) * (self.row * l.bytes) + f.value(column) * (self.column * l.bytes)
        return self.base.at(at, I8)

    def part(self, l: Lanes, row: int, column: int) -> Tile:
        """From that entry on."""
        return self._replace(base=self.base.at((row * self.row + column * self.column) * l.bytes, I8))


class Summand(NamedTuple):
    """A product to be added up; runs: columns of `left` and rows of `right` that meet, and how many each."""

    left: Tile
    right: Tile
    runs: Sequence[tuple[int, int, int]]


def write_product(
    c: StageCalls, out: Tile, rows: int, columns: int, terms: Sequence[Summand], start: Tile | None = None
) -> None:
    """out = start + sum of the terms, which are other memory; what is not finite goes to the status."""
    most = SIDES.get(c.l.bytes, NARROW)
    for top, end, height in block_sizes(rows, most[0]):
        with c.f.loop(end, start=top, step=height, some=True) as i:
            for left, stop, width in block_sizes(columns, most[1]):
                with c.f.loop(stop, start=left, step=width, some=True) as j:
                    _Block(c, i.i, j.i, height, width).write(out, terms, start)


def block_sizes(n: int, most: int) -> list[tuple[int, int, int]]:
    """From where to where blocks of which size: whole ones of about the same, then what is left."""
    size = -(-n // -(-n // most))
    whole = n - n % size
    return [(0, whole, size), *([(whole, n, n - whole)] if whole < n else [])]


class _Block:
    """From entry (row, column) of the result on."""

    def __init__(self, c: StageCalls, row: Value, column: Value, height: int, width: int) -> None:
        self.c, self.f, self.l = c, c.f, c.l
        self.row, self.column, self.size = row, column, (height, width)
        self.every = [(i, j) for i in range(height) for j in range(width)]

    def near(self, x: Tile, here: Value, i: int, j: int) -> Value:
        """The address of one some rows and columns on."""
        return here.at((i * x.row + j * x.column) * self.l.bytes, I8)

    def write(self, out: Tile, terms: Sequence[Summand], start: Tile | None) -> None:
        l = self.l
        sums = [self.f.zero(l.type) for _ in self.every]
        if start is not None:
            here = start.place(l, self.row, self.column)
            sums = [self.near(start, here, i, j).load(l.type, l.bytes) for i, j in self.every]
        for term in terms:
            for first, second, count in term.runs:
                left = term.left.place(l, self.row, first)
                right = term.right.place(l, second, self.column)
                sums = self.run(term, left, right, count, sums)
        here, status = out.place(l, self.row, self.column), self.f.arguments["status"]
        tests = status.load(l.type, l.bytes)
        for (i, j), x in zip(self.every, sums):
            self.near(out, here, i, j).store(x, l.bytes)
            tests = self.added(x, self.f.const(l.type, 0.0), tests)
        if self.c.checked:
            status.store(tests, l.bytes)

    def run(self, term: Summand, left: Value, right: Value, count: int, sums: list[Value]) -> list[Value]:
        """With the products of adjacent columns and rows."""
        if count <= STRAIGHT:
            for n in range(count):
                sums = self.step(term, self.near(term.left, left, 0, n), self.near(term.right, right, n, 0), sums)
            return sums
        with self.f.loop(count, some=True, carry={f"sum{n}": x for n, x in enumerate(sums)}) as k:
            here = left.at(k.i * (term.left.column * self.l.bytes), I8)
            there = right.at(k.i * (term.right.row * self.l.bytes), I8)
            now = self.step(term, here, there, [getattr(k, f"sum{n}") for n in range(len(sums))])
            for n, x in enumerate(now):
                setattr(k, f"sum{n}", x)
        return [getattr(k, f"sum{n}") for n in range(len(sums))]

    def step(self, term: Summand, left: Value, right: Value, sums: list[Value]) -> list[Value]:
        l, (height, width) = self.l, self.size
        a = [self.near(term.left, left, i, 0).load(l.type, l.bytes) for i in range(height)]
        b = [self.near(term.right, right, 0, j).load(l.type, l.bytes) for j in range(width)]
        return [self.added(a[i], b[j], x) for (i, j), x in zip(self.every, sums)]

    def added(self, x: Value, y: Value, z: Value) -> Value:
        return self.f.call(self.l.type, f"llvm.fmuladd.{self.l.suffix}", x, y, z)
