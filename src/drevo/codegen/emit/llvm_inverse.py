"""-M^-1 times the columns of matrices in place, of one sample: as many columns side by side as there are lanes.

M = L^T E^-1 L by rows in the order of elimination. The factors stand in memory, so that each multiply-add takes
its entry from there, in all lanes; a block of columns stays in the nearest cache, and the loop over blocks is
decoded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from .ir import I32, I64, VOID, IRFunction, Value
from .ir_scalar import IRScalar
from .llvm_math import Lanes

SMALL = 12  # rows
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
    blocks, lanes = -(-n // l.lanes), f.counting(f"<{l.lanes} x {I64}>")
    room = [f.alloca(l.type) for _ in order]
    with f.loop(blocks * len(bases), some=True, rest=zero) as s:
        base, block = bases[0], s.i
        for k, x in enumerate(bases[1:], 1):
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
    _mirror(f, l, bases[-1], n)
    return f.call(
        l.scalar, f"llvm.vector.reduce.fadd.{l.suffix}", f.const(l.scalar, 0.0), s.rest, flags="reassoc "
    )


def _mirror(f: IRFunction, l: Lanes, base: Value, n: int) -> None:
    """The lower triangle over the upper one; a small one without loops."""

    def copy(r: Any, c: Any) -> None:
        base.at(c * n + r, l.scalar).store(base.at(r * n + c, l.scalar).load(l.scalar))

    if n <= SMALL:
        for r, c in combinations(range(n), 2):
            copy(c, r)
    else:
        with f.loop(n, start=1, some=True) as row, f.loop(row.i, some=True) as column:
            copy(row.i, column.i)
