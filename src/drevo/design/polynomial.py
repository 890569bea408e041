"""Linear forms in inertial parameters, and exact linear algebra on sparse rows of fractions.

An exact scalar has a form for each product of c_k^a s_k^b with b in {0, 1}, by s^2 = 1 - c^2; different products
are independent functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

Power = tuple[int, int, int]  # (coordinate, exponent of its cosine or of a slide itself, exponent of its sine)
Monomial = tuple[Power, ...]
Form = dict[int, Fraction]  # parameter -> coefficient; NUMBER is the part without parameters

UNIT_MONOMIAL: Monomial = ()
NUMBER = -1


def rational(x: float) -> Fraction:
    """The decimal that a person meant: 0.3 is 3/10, and so is 0.1 + 0.2."""
    short = float(f"{x:.12g}")
    return Fraction(repr(short if abs(x - short) <= 4e-16 * abs(x) else x))


SparseRow = dict[int, Fraction]
CANCELLED = Fraction(1, 10**8)


class Space:
    """A row space in reduced echelon form; a row is solved for one of the columns in `first` if it has any."""

    def __init__(self, first: Collection[int] = ()) -> None:
        self.first = first
        self.rows: dict[int, SparseRow] = {}  # by pivot, each with 1 there

    def __len__(self) -> int:
        return len(self.rows)

    def reduced(self, row: SparseRow) -> SparseRow:
        """The row modulo the space."""
        out = dict(row)
        for pivot in [c for c in row if c in self.rows]:
            add_multiple(out, self.rows[pivot], -out[pivot])
        return out

    def add(self, row: SparseRow) -> int | None:
        """Takes a row in; its pivot, or None where the space holds it already."""
        rest = self.reduced(row)
        if not rest:
            return None
        pivot = min(rest, key=lambda c: (c not in self.first, c))
        scale = rest[pivot]
        rest = {c: x / scale for c, x in rest.items()}
        for other in self.rows.values():
            if pivot in other:
                add_multiple(other, rest, -other[pivot])
        self.rows[pivot] = rest
        return pivot

    def holds(self, row: SparseRow) -> bool:
        return not self.reduced(row)


def add_multiple(into: SparseRow, row: SparseRow, factor: Fraction) -> None:
    """into += factor * row; zeros leave, and what cancels as far as rounding lets it.

    Skew axes and offsets are rational to some 1e-12 only: what depends on another row in truth leaves that much.
    """
    for c, x in row.items():
        old = into.get(c, Fraction(0))
        value = old + factor * x
        if value and abs(value) > CANCELLED * abs(old):
            into[c] = value
        else:
            into.pop(c, None)


def space(rows: Iterable[SparseRow]) -> Space:
    """The row space of rows."""
    out = Space()
    for row in rows:
        out.add(row)
    return out


def rank(rows: Sequence[SparseRow]) -> int:
    """Number of independent rows."""
    return len(space(rows))
