"""The quadratic program of a level: its terms, packed or as scalars of a stage, and the factors of its matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..contact.packing import Packed
from ..mechanics.scalar import Scalar, Vector, accumulate, maximum, where

PROXIMAL = 1e-8  # of rows, in squares of their coefficients

PackedMatrix = Mapping[tuple[int, int], Packed]
MatrixEntries = dict[tuple[int, int], Scalar]  # of a matrix, those that are not zero


class LevelData(NamedTuple):
    """The terms of a level, packed in the block "terms": lower triangle of H, c, rows with their right sides.

    sides: None where they are in "sides", for what earlier levels have found. equal: whether a row is an equality.
    damping: of the whole level, in H.
    """

    H: PackedMatrix
    c: Sequence[Packed]
    rows: Sequence[Mapping[int, Packed]]
    sides: Sequence[Packed | None]
    equal: Sequence[bool]
    damping: Packed


class LevelReader(NamedTuple):
    """The scalars of a level in a stage. w: 0 where a row's side is zero of itself."""

    H: MatrixEntries
    c: list[Scalar]
    rows: list[dict[int, Scalar]]
    sides: list[Scalar]

    def times(self, x: Vector) -> list[Scalar]:
        """H x."""
        out: list[Scalar] = [0.0] * len(x)
        for (i, j), value in self.H.items():
            out[i] = out[i] + value * x[j]
            if i != j:
                out[j] = out[j] + value * x[i]
        return out

    def pushed(self, out: list[Scalar], multipliers: Vector) -> list[Scalar]:
        """Adds G^T times multipliers."""
        for row, y in zip(self.rows, multipliers):
            for j, value in row.items():
                out[j] = out[j] + value * y
        return out


def products_of(H: set[tuple[int, int]], rows: Sequence[Mapping[int, Packed]], n: int) -> int:
    """The products of a factorisation, by its structure."""
    pattern = {k: 1.0 for k in H} | {(i, i): 1.0 for i in range(n)}
    count = [0]

    def multiply(x: Scalar, y: Scalar) -> Scalar:
        count[0] += 1
        return 1.0

    factorised_entries(
        pattern | {(n + r, j): 1.0 for r, row in enumerate(rows) for j in row}, n, len(rows), multiply
    )
    return count[0]


def factorised_entries(
    A: MatrixEntries, n: int, m: int, times: object = None
) -> tuple[MatrixEntries, list[Scalar], list[int]]:
    """L, 1 / D and the order of A = L D L^T: freedoms from the leaves to the root, then rows; A has a triangle.

    times: what stands for products, to count them.
    """
    order = [*reversed(range(n)), *range(n, n + m)]
    rank = {k: r for r, k in enumerate(order)}
    left: MatrixEntries = {}
    for (i, j), x in A.items():
        left[max(i, j, key=rank.__getitem__), min(i, j, key=rank.__getitem__)] = x
    below: dict[int, list[int]] = {k: [] for k in order}
    for i, j in left:
        if i != j:
            below[j].append(i)
    L: MatrixEntries = {}
    inverse: list[Scalar] = [0.0] * (n + m)
    for k in order:
        counting = callable(times)
        inverse[k] = 1.0 if counting else 1.0 / left.get((k, k), -PROXIMAL)
        rows = sorted(set(below[k]), key=rank.__getitem__)
        shares = {i: 1.0 if counting else left[i, k] * inverse[k] for i in rows}
        for a, i in enumerate(rows):
            L[i, k] = shares[i]
            for j in rows[: a + 1]:
                product = times(1.0, 1.0) if callable(times) else -(shares[i] * left[j, k])
                if i != j and (i, j) not in left:
                    below[j].append(i)
                accumulate(left, (i, j), product)
    return L, inverse, order


def substituted(L: MatrixEntries, inverse: Vector, order: Sequence[int], b: Vector) -> list[Scalar]:
    """A^-1 b, by the factors of A."""
    x = list(b)
    columns: dict[int, list[tuple[int, Scalar]]] = {k: [] for k in order}
    for (i, k), value in L.items():
        columns[k].append((i, value))
    for k in order:
        for i, value in columns[k]:
            x[i] = x[i] - value * x[k]
    for k in reversed(order):
        x[k] = x[k] * inverse[k]
        for i, value in columns[k]:
            x[k] = x[k] - value * x[i]
    return x


def swept(
    level: LevelReader, slope: Vector, x: Vector, state: Vector, ends: Sequence[tuple[Any, Any]]
) -> tuple[list[Scalar], list[Scalar]]:
    """Entry by entry the least of the objective within bounds, None where there is none, and the state there."""
    x, state = list(x), list(state)
    for k, pair in enumerate(ends):
        row = {i if j == k else j: y for (i, j), y in level.H.items() if k in (i, j)}
        if k in row:
            x[k], state[k] = x[k] - (slope[k] + along(row, x)) / row[k], 0.0
            for end, sign in zip(pair, (-1.0, 1.0)):
                if end is not None:
                    beyond = sign * (x[k] - end) > 0.0
                    x[k], state[k] = where(beyond, end, x[k]), where(beyond, sign, state[k])
    return x, state


def along(row: Mapping[int, Scalar], x: Vector) -> Scalar:
    """The product of a row and x."""
    total: Scalar = 0.0
    for j, value in row.items():
        total = total + value * x[j]
    return total


def weighted_sum_of_rows(weights: Mapping[int, Scalar], rows: Sequence[Mapping[int, Scalar]]) -> dict[int, Scalar]:
    """The sum of rows with weights."""
    out: dict[int, Scalar] = {}
    for r, weight in weights.items():
        for j, value in rows[r].items():
            out[j] = out.get(j, 0.0) + weight * value
    return out


def largest_of(values: Sequence[Scalar]) -> Scalar:
    """The largest absolute value."""
    out: Scalar = 0.0
    for x in values:
        out = maximum(out, abs(x))
    return out


def is_for_good(state: Scalar) -> Any:
    """True where an entry or a row holds by what an earlier level has found: its state is twice as large then."""
    return state * state > 2.0
