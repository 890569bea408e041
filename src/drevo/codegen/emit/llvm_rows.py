"""Row-major arrays: W rows transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir import I8, I64, PTR, VOID, IRFunction, Module, Value
from .llvm_math import Lanes
from .llvm_target import LINE

MOVED = {"p": PTR, "stride": I64, "b": I64, "last": I64, "tile": PTR, "n": I64}  # of whatever moves a tile
_TILES_AHEAD = 4  # of the prefetch of rows; 1 to 4 differ by 3 %


def width_of(size: int, lanes: int) -> int:
    """The widest block of a port: a power of two."""
    return min(lanes, 1 << size.bit_length() - 1)


def add_moves(m: Module, l: Lanes, w: int) -> None:
    """@load_<w> and @store_<w>: W rows of n columns from or to a tile, in blocks of w <= min(n, W) columns.

    A block is W / w square transpositions side by side. The last block is moved back to n - w: it writes some
    columns twice, with the same bits, instead of masking.
    """
    for op, block in (("load", _load), ("store", _store)):
        f = m.function(f"{op}_{w}", VOID, MOVED)
        rows = [f.p.at(f.smaller(f.b + r, f.last) * f.stride, I8) for r in range(l.lanes)]
        with f.loop(f.n, step=w, some=True) as s:
            j = f.smaller(s.i, f.n - w)
            block(f, l, w, rows, j * l.size, f.tile.at(j * l.bytes, I8))
        f.ret()


def _load(f: IRFunction, l: Lanes, w: int, rows: Sequence[Value], first: Value, tile: Value) -> None:
    """Rows in, and a prefetch of rows that a later tile will read."""
    ahead, values = f.stride * (_TILES_AHEAD * l.lanes), []
    for row in rows:
        place = row.at(first, I8)
        values.append(place.load(f"<{w} x {l.scalar}>", l.size))
        place.at(ahead, I8).prefetch()
    values = _transposed(values, w)
    for c in range(w):
        column = _side_by_side(values[c::w], w)
        tile.at(c * l.bytes, I8).store(column, l.bytes)


def _store(f: IRFunction, l: Lanes, w: int, rows: Sequence[Value], first: Value, tile: Value) -> None:
    parts: list[Value] = [tile] * l.lanes
    for c in range(w):
        column = tile.at(c * l.bytes, I8).load(l.type, l.bytes)
        for k in range(0, l.lanes, w):
            parts[k + c] = column.shuffle(None, range(k, k + w))
    for row, x in zip(rows, _transposed(parts, w)):
        row.at(first, I8).store(x, l.size)


def _side_by_side(values: list[Value], size: int) -> Value:
    """Vectors of `size` lanes as one."""
    while len(values) > 1:
        values = [x.shuffle(y, range(2 * size)) for x, y in zip(values[::2], values[1::2])]
        size *= 2
    return values[0]


def _transposed(values: list[Value], w: int) -> list[Value]:
    """Groups of w vectors of w lanes: lane l of vector i goes to lane i of vector l, by w log2 w shuffles."""
    d = 1
    while d < w:
        low = [w + k - d if k & d else k for k in range(w)]
        high = [w + k if k & d else k + d for k in range(w)]
        for i in (i for i in range(len(values)) if not i & d):
            x, y = values[i], values[i + d]
            values[i], values[i + d] = x.shuffle(y, low), x.shuffle(y, high)
        d *= 2
    return values


def add_flush(m: Module, l: Lanes) -> None:
    """@flush(source, to, n): n bytes, whole cache lines past the caches."""
    few = m.function("few", source="ptr noalias", to="ptr noalias", first=I64, end=I64)
    with few.loop(few.end, start=few.first, step=l.size) as s:
        few.to.at(s.i, I8).store(few.source.at(s.i, I8).load(l.scalar, l.size), l.size)
    few.ret()
    f = m.function("flush", source="ptr noalias", to="ptr noalias", n=I64)
    head = -f.to.cast("ptrtoint", I64) & (LINE - 1)
    whole = (f.n - head) & -LINE
    f.call(VOID, "few", f.source, f.to, 0, head)
    with f.loop(whole, step=LINE) as s:
        line = head + s.i
        for k in range(0, LINE, l.bytes):
            x = f.source.at(line + k, I8).load(l.type, l.size)
            f.to.at(line + k, I8).store(x, l.bytes, m.past_caches())
    f.call(VOID, "few", f.source, f.to, head + whole, f.n)
    f.put("fence seq_cst")  # what went past the caches is seen before anything that follows
    f.ret()
