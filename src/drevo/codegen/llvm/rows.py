"""Row-major arrays: W rows transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .ir import I8, I64, PTR, VOID, Module, Value
from .math import Lanes
from .target import LINE

MOVED = {"p": PTR, "stride": I64, "b": I64, "last": I64, "tile": PTR, "n": I64}  # of whatever moves a tile
_TILES_AHEAD = 4  # of the prefetch of rows; 1 to 4 differ by 3 %


def width_of(op: str, size: int, lanes: int) -> int:
    """Columns of a block of a port, a power of two: joined rows are shuffled less, whole ones written at once."""
    return min(max(2, lanes // 2) if op == "load" else lanes, 1 << size.bit_length() - 1)


def add_moves(m: Module, l: Lanes, op: str, sizes: Iterable[int]) -> None:
    """@load_<w> and @store_<w>: W rows of n columns from or to a tile, in blocks of w <= n columns.

    A block is W / w square transpositions side by side. The last block is moved back to n - w: it writes some
    columns twice, with the same bits, instead of masking.
    """
    for w in sorted({width_of(op, n, l.lanes) for n in sizes}):
        f = m.function(f"{op}_{w}", VOID, MOVED)
        starts = [f.p.at(f.smaller(f.b + r, f.last) * f.stride, I8) for r in range(l.lanes)]
        ahead = f.stride * (_TILES_AHEAD * l.lanes)
        with f.loop(f.n, step=w, some=True) as s:
            j = f.smaller(s.i, f.n - w)
            rows = [row.at(j * l.size, I8) for row in starts]
            _BLOCKS[op](l, w, rows, f.tile.at(j * l.bytes, I8))
            for row in rows if op == "load" else ():
                row.at(ahead, I8).prefetch()
        f.ret()


def add_dense_moves(m: Module, l: Lanes, op: str, sizes: Iterable[tuple[int, int]]) -> None:
    """@load_dense_<n>_<p> and @store_dense_<n>_<p>(p, tile): the first n columns of W rows of p columns, which lie
    one after the other."""
    for n, pitch in sorted(set(sizes)):
        w, ahead = width_of(op, n, l.lanes), _TILES_AHEAD * n * l.bytes
        f = m.function(f"{op}_dense_{n}_{pitch}", p=PTR, tile=PTR)
        with f.loop(n, step=w, some=True) as s:
            j = f.smaller(s.i, n - w) if n % w else s.i
            first = f.p.at(j * l.size, I8)
            rows = [first.at(r * pitch * l.size, I8) for r in range(l.lanes)]
            _BLOCKS[op](l, w, rows, f.tile.at(j * l.bytes, I8))
            for line in range(0, w * l.bytes, LINE) if op == "load" else ():
                f.p.at(j * l.bytes + (ahead + line), I8).prefetch()
        f.ret()


def add_copies(m: Module, l: Lanes, counts: Iterable[int]) -> None:
    """@copy_<n>(to, to_stride, p, stride, b, last): n columns of W rows from other rows."""
    for n in sorted(set(counts)):
        w = width_of("store", n, l.lanes)
        f = m.function(f"copy_{n}", VOID, to=PTR, to_stride=I64, p=PTR, stride=I64, b=I64, last=I64)
        with f.loop(l.lanes, some=True) as s:
            row = f.smaller(f.b + s.i, f.last)
            here, there = f.p.at(row * f.stride, I8), f.to.at(row * f.to_stride, I8)
            for k in range(0, n, w):
                at = min(k, n - w) * l.size
                there.at(at, I8).store(here.at(at, I8).load(f"<{w} x {l.scalar}>", l.size), l.size)
        f.ret()


def _load(l: Lanes, w: int, rows: Sequence[Value], tile: Value) -> None:
    """Rows k, w + k, 2 w + k, .. side by side, before anything is shuffled."""
    values = [row.load(f"<{w} x {l.scalar}>", l.size) for row in rows]
    joined = [_side_by_side(values[k::w], w) for k in range(w)]
    for c, column in enumerate(transposed(joined, w, l.lanes)):
        tile.at(c * l.bytes, I8).store(column, l.bytes)


def _store(l: Lanes, w: int, rows: Sequence[Value], tile: Value) -> None:
    for at, joined in _joined_rows(l, w, tile):
        _part(l, w, [rows[k] for k in at], joined)


def _joined_rows(l: Lanes, w: int, tile: Value) -> Iterable[tuple[range, Value]]:
    """W rows of w columns, some side by side in each value."""
    columns = [tile.at(c * l.bytes, I8).load(l.type, l.bytes) for c in range(w)]
    return ((range(k, l.lanes, w), x) for k, x in enumerate(transposed(columns, w, l.lanes)))


def _part(l: Lanes, w: int, rows: Sequence[Value], joined: Value) -> None:
    """To their rows."""
    for at, row in enumerate(rows):
        row.store(joined.shuffle(None, range(at * w, at * w + w)), l.size)


_BLOCKS = {"load": _load, "store": _store}


def _side_by_side(values: list[Value], size: int) -> Value:
    """Vectors of `size` lanes as one."""
    while len(values) > 1:
        values = [x.shuffle(y, range(2 * size)) for x, y in zip(values[::2], values[1::2])]
        size *= 2
    return values[0]


def transposed(values: list[Value], w: int, lanes: int) -> list[Value]:
    """w vectors of groups of w lanes: lane l of a group in vector i goes to lane i of it in vector l."""
    values, d = list(values), 1
    while d < w:
        low = [lanes + k - d if k & d else k for k in range(lanes)]
        high = [lanes + k if k & d else k + d for k in range(lanes)]
        for i in (i for i in range(w) if not i & d):
            x, y = values[i], values[i + d]
            values[i], values[i + d] = x.shuffle(y, low), x.shuffle(y, high)
        d *= 2
    return values


def add_flush(m: Module, l: Lanes) -> None:
    """@flush(source, to, n): n bytes, whole cache lines past the caches; the fence is the caller's."""
    few = m.function("few", source="ptr noalias", to="ptr noalias", first=I64, end=I64)
    with few.loop(few.end, start=few.first, step=l.size) as s:
        few.to.at(s.i, I8).store(few.source.at(s.i, I8).load(l.scalar, l.size), l.size)
    few.ret()
    f = m.function("flush", source="ptr noalias", to="ptr noalias", n=I64)
    head = f.smaller(-f.to.cast("ptrtoint", I64) & (LINE - 1), f.n)  # a run of a narrow result is less than a line
    whole = (f.n - head) & -LINE
    f.call(VOID, "few", f.source, f.to, 0, head)
    with f.loop(whole, step=LINE) as s:
        line = head + s.i
        for k in range(0, LINE, l.bytes):
            x = f.source.at(line + k, I8).load(l.type, l.size)
            f.to.at(line + k, I8).store(x, l.bytes, m.past_caches())
    f.call(VOID, "few", f.source, f.to, head + whole, f.n)
    f.ret()
