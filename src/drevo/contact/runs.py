"""Adjacent rows or columns of a sparse matrix whose entries lie in the same places."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

WORTH = 0.25  # of the smaller of two runs: so much more work is less than that of a block of its own


class LineRun(NamedTuple):
    """So many lines from the first on, and the entries of each, one line after another from `at` on."""

    first: int
    wide: int
    entries: tuple[int, ...]
    at: int = 0

    @property
    def size(self) -> int:
        return self.wide * len(self.entries)

    def joined(self, o: LineRun) -> LineRun:
        return LineRun(self.first, self.wide + o.wide, tuple(sorted({*self.entries, *o.entries})))

    def stretches(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Adjacent entries from `first` to `end`: where they begin, in that part and in a line, and how many."""
        return stretches((k - first, n) for n, k in enumerate(self.entries) if first <= k < end)


def line_runs(supports: Sequence[Collection[int]], at: int = 0) -> list[LineRun]:
    """Joins adjacent lines with entries in these places to runs, packed from `at` on."""
    runs: list[LineRun] = []
    for k, places in enumerate(supports):
        one = LineRun(k, 1, tuple(sorted(places)))
        both = runs[-1].joined(one) if runs else one
        if runs and both.size - runs[-1].size - one.size <= WORTH * min(runs[-1].size, one.size):
            one = both
            runs.pop()
        runs.append(one)
    out = []
    for x in runs:
        out.append(x._replace(at=at))
        at += x.size
    return out


def equals(keys: Sequence[tuple[int, ...]]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Equal ones beside each other: the first, how many, and what they are."""
    groups = [(key, [n for n, _ in group]) for key, group in groupby(enumerate(keys), lambda x: x[1])]
    return [(places[0], len(places), key) for key, places in groups]


def stretches(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Pairs that follow each other by one in both: the first, and how many."""
    out: list[tuple[int, int, int]] = []
    for a, b in pairs:
        if out and (a, b) == (out[-1][0] + out[-1][2], out[-1][1] + out[-1][2]):
            out[-1] = (*out[-1][:2], out[-1][2] + 1)
        else:
            out.append((a, b, 1))
    return out
