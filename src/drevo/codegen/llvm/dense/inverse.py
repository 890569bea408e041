"""-M^-1 times the columns of matrices in place, of one sample: as many columns side by side as there are lanes.

M = L^T E^-1 L by rows in the order of elimination. The factors stand in memory, so that each multiply-add takes
its entry from there, in all lanes; a block of columns stays in the nearest cache, and the loop over blocks is
decoded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...lower.lower import Lowered
from ..ir import F64, I32, I64, VOID, IRFunction, Value
from ..ir_scalar import IRScalar
from ..math import Lanes
from ..rows import transposed
from ..tail import Room, Tail, TailPlace
from .ranked import RANKED_LANES, padded

MIN_MIRRORED_ROWS = 12  # rows
MAX_GATHERED_ROWS = 32  # rows: more are many whole blocks
TRANSPOSED_SIDE = 4  # rows and columns that are transposed in registers
Array = np.ndarray[Any, Any]
FactorRows = Sequence[Mapping[int, Any]]


def times_inverse(L: FactorRows, E: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    """L^-1 E L^-T b, over scalars of any kind."""
    y = list(b)
    for k in range(len(y) - 1, -1, -1):
        for i, x in L[k].items():
            y[i] = y[i] - x * y[k]
    y = [x * e for x, e in zip(y, E)]
    for k, row in enumerate(L):
        for i, x in row.items():
            y[k] = y[k] - x * y[i]
    return y


def solve_columns(
    f: IRFunction,
    l: Lanes,
    bases: Sequence[Value],
    order: Sequence[int],
    L: FactorRows,
    E: Sequence[Any],
    fma: bool,
) -> Value:
    """`times_inverse` for all columns of square matrices at `bases`, the last of which becomes symmetric; their
    rows stand by `order`. 0, or NaN where not all is finite."""
    n, zero, align = len(order), f.zero(l.type), f.const(I32, l.size)
    last = _last_columns(f, l, bases, n)
    blocks, lanes = n // l.lanes if last else -(-n // l.lanes), f.counting(f"<{l.lanes} x {I64}>")
    room, every = [f.alloca(l.type) for _ in order], [*bases, *([last.room] if last else [])]
    with f.loop(blocks * len(bases) + bool(last), some=True, rest=zero) as s:
        base, block = bases[0], s.i
        for k, x in enumerate(every[1:], 1):
            here = s.i >= k * blocks
            base, block = f.select(here, x, base), f.select(here, s.i - k * blocks, block)
        at = block * l.lanes
        some = lanes < (f.const(I64, n) - at).splat(l.lanes)
        rows = [base.at(at + v * n, l.scalar) for v in order]

        def given(k: int, rows: Sequence[Value] = rows, some: Value = some) -> IRScalar:
            x = f.call(l.type, f"llvm.masked.load.{l.suffix}.p0", rows[k], align, some, zero)
            return IRScalar(x, fma)

        y = dict[int, Any]()  # of limbs that are begun: few are alive at a time
        for k in range(n - 1, -1, -1):
            own = y.pop(k) if k in y else given(k)
            for i, x in L[k].items():
                y[i] = (y[i] if i in y else given(i)) - x * own
            room[k].store((own * E[k]).x, l.bytes)
        for k in range(n):
            found = IRScalar(room[k].load(l.type, l.bytes), fma)
            for i, x in L[k].items():
                found = found - x * y[i]
            y[k] = IRScalar(found.x, fma)
            f.call(VOID, f"llvm.masked.store.{l.suffix}.p0", found.x, rows[k], align, some)
            s.rest = (IRScalar(found.x, fma, zero) + IRScalar(s.rest, fma)).x
    if last:
        last.put_back()
    _mirror(f, l, bases[-1], n)
    return f.call(
        l.scalar, f"llvm.vector.reduce.fadd.{l.suffix}", f.const(l.scalar, 0.0), s.rest, flags="reassoc "
    )


class _LastColumns(NamedTuple):
    """Columns of all matrices that fill no vector, in one block of a room like one of them."""

    room: Value
    places: tuple[tuple[Value, Value], ...]  # of each row of each matrix: there, and in the room
    kind: str

    def take(self) -> None:
        for there, here in self.places:
            here.store(there.load(self.kind, 8), 8)

    def put_back(self) -> None:
        for there, here in self.places:
            there.store(here.load(self.kind, 8), 8)


def _last_columns(f: IRFunction, l: Lanes, bases: Sequence[Value], n: int) -> _LastColumns | None:
    """Taken along, where they are few: a block of them alone takes as long as a whole one."""
    count, whole = n % l.lanes, n - n % l.lanes
    if not 0 < count * len(bases) <= l.lanes or not whole or n > MAX_GATHERED_ROWS:
        return None
    kind, room = f"<{count} x {l.scalar}>", f.alloca(l.scalar, n * n)
    for row in range(n):
        room.at(row * n, l.scalar).store(f.zero(l.type), l.size)
    places = tuple(
        (x.at(row * n + whole, l.scalar), room.at(row * n + k * count, l.scalar))
        for k, x in enumerate(bases)
        for row in range(n)
    )
    found = _LastColumns(room, places, kind)
    found.take()
    return found


def _mirror(f: IRFunction, l: Lanes, base: Value, n: int) -> None:
    """The lower triangle over the upper one, of large ones four rows and columns at a time."""
    whole = n // TRANSPOSED_SIDE * TRANSPOSED_SIDE if n > MIN_MIRRORED_ROWS else 0

    def place(r: Any, c: Any) -> Value:
        return base.at(r * n + c, l.scalar)

    if whole:
        with (
            f.loop(whole, start=TRANSPOSED_SIDE, step=TRANSPOSED_SIDE, some=True) as row,
            f.loop(row.i, step=TRANSPOSED_SIDE, some=True) as column,
        ):
            rows = [
                place(row.i + k, column.i).load(f"<{TRANSPOSED_SIDE} x {l.scalar}>", l.size)
                for k in range(TRANSPOSED_SIDE)
            ]
            for k, x in enumerate(transposed(rows, TRANSPOSED_SIDE, TRANSPOSED_SIDE)):
                place(column.i + k, row.i).store(x, l.size)
    for c, r in combinations(range(n), 2):
        if r >= whole or r // TRANSPOSED_SIDE == c // TRANSPOSED_SIDE:
            place(c, r).store(place(r, c).load(l.scalar))


@dataclass(frozen=True, eq=False)
class InverseTail(Tail):
    """Outputs (n, n) hold right-hand sides B, the last -1, and -M^-1 B is written over them; hidden are L and -E,
    of M = L^T E^-1 L.

    order: rates in the order of elimination. lower: where L has entries, by its rows.
    """

    order: tuple[int, ...]
    lower: tuple[tuple[int, ...], ...]
    hidden: int = 2

    def room(self, low: Lowered, l: Lanes) -> Room:
        starts = (0, padded(sum(map(len, self.lower))))
        return Room(starts, starts[1] + padded(len(self.order)), 0, frozenset(range(self.hidden)))

    def begin(self, f: IRFunction, place: TailPlace) -> None:
        """The steps write all that it reads."""

    def write(self, f: IRFunction, place: TailPlace) -> None:
        L, E = (
            [x.scalar(k, place.fma) for k in range(count)]
            for x, count in zip(place.hidden, (sum(map(len, self.lower)), len(self.order)))
        )
        bases, l = [x.base for x in place.outputs], Lanes(F64, RANKED_LANES, place.l.splat)
        rest = solve_columns(f, l, bases, self.order, self.rows(L), E, place.fma)
        place.status.store(place.status.load(F64) + rest)

    def rows(self, L: Sequence[Any]) -> list[dict[int, Any]]:
        entries = iter(L)
        return [{j: next(entries) for j in row} for row in self.lower]

    def fill(self, outputs: Sequence[Array], hidden: Sequence[Array]) -> None:
        L, E = (list(x.T[:, :, None]) for x in hidden)
        for x in outputs:
            rows = x.reshape(len(x), len(self.order), -1)
            rows[:, self.order] = np.stack(
                times_inverse(self.rows(L), E, list(np.moveaxis(rows[:, self.order], 1, 0))), axis=1
            )
        rows[:] = np.tril(rows) + np.swapaxes(np.tril(rows, -1), 1, 2)
