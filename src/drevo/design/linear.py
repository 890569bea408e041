"""Exact linear algebra on sparse rows of fractions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

Row = dict[int, Fraction]


class Space:
    """A row space in reduced echelon form; `rank_of(column)` says which column a row is solved for first."""

    def __init__(self, key: Callable[[int], object] = lambda c: c) -> None:
        self.key = key
        self.rows: dict[int, Row] = {}  # by pivot, each with 1 there

    def __len__(self) -> int:
        return len(self.rows)

    def reduced(self, row: Row) -> Row:
        """The row modulo the space."""
        out = dict(row)
        for pivot in [c for c in row if c in self.rows]:
            add(out, self.rows[pivot], -out[pivot])
        return out

    def add(self, row: Row) -> int | None:
        """Takes a row in; its pivot, or None where the space holds it already."""
        rest = self.reduced(row)
        if not rest:
            return None
        pivot = min(rest, key=self.key)  # type: ignore[arg-type]
        scale = rest[pivot]
        rest = {c: x / scale for c, x in rest.items()}
        for other in self.rows.values():
            if pivot in other:
                add(other, rest, -other[pivot])
        self.rows[pivot] = rest
        return pivot

    def holds(self, row: Row) -> bool:
        return not self.reduced(row)


def add(into: Row, row: Row, factor: Fraction) -> None:
    """into += factor * row; zeros leave."""
    for c, x in row.items():
        value = into.get(c, Fraction(0)) + factor * x
        if value:
            into[c] = value
        else:
            into.pop(c, None)


def space(rows: Iterable[Row], key: Callable[[int], object] = lambda c: c) -> Space:
    """The row space of rows."""
    out = Space(key)
    for row in rows:
        out.add(row)
    return out


def rank(rows: Sequence[Row]) -> int:
    """Number of independent rows."""
    return len(space(rows))


__all__ = ["Row", "Space", "add", "rank", "space"]
