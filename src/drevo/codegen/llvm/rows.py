"""Row-major arrays: W rows transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.

Batch-last arrays: the kernel reads and writes the caller's own rows.

Where that would be slow, some tiles are computed into a stage in the arena, and every row of it is then copied
in one run: results whose rows lie a multiple of FOLD apart, as all rows then compete for the same few lines of
the first cache; and results that no cache holds, which then go past the caches. Measured on the poses of the
Panda: 93 ns a sample became 19 at 1,024 samples, 88 became 25 at 100,000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..lower.lower import Lowered
from .ir import I1, I8, I64, PTR, VOID, IRFunction, Module, Value, literal
from .math import Lanes
from .ports import BEYOND, CACHE_LINE_BYTES, Arena

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
            for line in range(0, w * l.bytes, CACHE_LINE_BYTES) if op == "load" else ():
                f.p.at(j * l.bytes + (ahead + line), I8).prefetch()
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
    head = f.smaller(
        -f.to.cast("ptrtoint", I64) & (CACHE_LINE_BYTES - 1), f.n
    )  # a run of a narrow result is less than a line
    whole = (f.n - head) & -CACHE_LINE_BYTES
    f.call(VOID, "few", f.source, f.to, 0, head)
    with f.loop(whole, step=CACHE_LINE_BYTES) as s:
        line = head + s.i
        for k in range(0, CACHE_LINE_BYTES, l.bytes):
            x = f.source.at(line + k, I8).load(l.type, l.size)
            f.to.at(line + k, I8).store(x, l.bytes, m.past_caches())
    f.call(VOID, "few", f.source, f.to, head + whole, f.n)
    f.ret()


SPLIT_LINE_STEPS = 3  # steps, about, of what it costs to write a row of a tile across two lines in place of one
FOLD = 2048  # bytes between rows: 64 lines of 64 bytes in the first cache of most processors, so two are used


class ColumnPointers(NamedTuple):
    """Pointers to a batch: the caller's arrays with the bytes between their rows, and what lies in the arena."""

    arrays: Sequence[Value]
    strides: Sequence[Value]
    tiles: Sequence[Value]
    scratch: Value
    status: Value
    last: Value  # the number of the last sample


class ColumnLoop:
    """The batch-last loop: a first tile that reaches a cache line, staged runs of tiles, tiles."""

    def __init__(self, f: IRFunction, low: Lowered, l: Lanes, arena: Arena, ports: ColumnPointers) -> None:
        self.f, self.low, self.l, self.arena, self.ports = f, low, l, arena, ports
        self.n = len(low.inputs)
        sizes = [p.size for p in low.outputs]
        self.widest = sizes.index(max(sizes)) if sizes else None
        self.fixed = [i for i in range(len(sizes)) if constants(low, i)]

    def small(self) -> None:
        """One tile over the arena, for fewer samples than lanes."""
        self._narrow("load", range(self.n))
        self.many(self.ports.tiles, [self.f.const(I64, self.l.bytes)] * len(self.ports.tiles))
        self._narrow("store", range(self.n, len(self.ports.arrays)))

    def _narrow(self, op: str, ports: range) -> None:
        f, p, every = self.f, self.ports, [*self.low.inputs, *self.low.outputs]
        for i in (i for i in ports if every[i].size):
            given = (p.arrays[i], p.strides[i], 0, p.last, p.tiles[i], every[i].size)
            f.call(VOID, f"{op}_narrow", *given)

    def many(self, places: Sequence[Value], steps: Sequence[Value]) -> None:
        """The call of the kernel with a pointer and the step of the rows per port."""
        given = [x for each in zip(places, steps) for x in each]
        self.f.call(VOID, "many", *given, self.ports.scratch, self.ports.status)

    def at(self, sample: Value, ports: slice = slice(None)) -> list[Value]:
        """Address of a sample in each port."""
        offset = sample * self.l.size
        return [p.at(offset, I8) for p in self.ports.arrays[ports]]

    def loop(self) -> None:
        """All samples, at least as many as lanes."""
        f, w = self.f, self.l.lanes
        lead, staged = self.first_tile(), self.arena.run > 0
        stages, limit, past = self.prepare() if staged else ([], lead, lead)
        with f.loop(b=0) as on:
            begun = on.b.differs(0)
            step = f.select(begun, w, lead)
            if staged:
                runs = begun & (on.b <= limit)
                with f.when(runs):
                    self.run_of_tiles(on.b, stages, past)
                with f.when(~runs):
                    self.tile(on.b)
                step = f.select(runs, self.arena.run * w, step)
            else:
                self.tile(on.b)
            on.b = on.b + step
            on.leave(on.b >= f.count)
        if staged:
            f.fence_if(past)

    def tile(self, first: Value) -> None:
        """W samples from `first` on, or the last W; what both hold is computed twice, to the same bits."""
        f, places = self.f, self.at(self.f.smaller(first, self.f.count - self.l.lanes))
        self.many(places, self.ports.strides)
        for i in self.fixed:
            f.call(VOID, f"fill{i}", places[self.n + i], self.ports.strides[self.n + i])

    def first_tile(self) -> Value:
        """Sample at which the second tile begins: from there the largest result is written in whole cache lines.

        NumPy's arrays begin 16 bytes into a line. One more tile pays where it costs less than all the others lose.
        """
        f, l = self.f, self.l
        lanes = f.const(I64, l.lanes)
        if self.widest is None:
            return lanes
        p, stride = (x[self.n + self.widest] for x in (self.ports.arrays, self.ports.strides))
        within = -p.cast("ptrtoint", I64) & (l.bytes - 1)
        samples = within >> (l.size.bit_length() - 1)
        even = (stride & (l.bytes - 1)).equals(0)
        lost = SPLIT_LINE_STEPS * sum(p.size for p in self.low.outputs) or 1
        tiles = 3 - -len(self.low.steps) // lost  # the first and the last cross lines all the same
        pays = even & (f.count >= tiles * l.lanes) & samples.differs(0)
        return f.select(pays, samples, lanes)

    # -- the stage ------------------------------------------------------------------------------------------

    def prepare(self) -> tuple[list[Value], Value, Value]:
        """The stages; the last sample at which a staged run may begin, -1 without any; whether results go past
        the caches. Constants go in once."""
        assert self.widest is not None
        f, l, arena = self.f, self.l, self.arena
        stages = [f.arena.at(at, I8) for at in arena.stages]
        stride = self.ports.strides[self.n + self.widest]
        past = stride * self.low.outputs[self.widest].size > BEYOND
        staged = (stride & (FOLD - 1)).equals(0) | past
        limit = f.select(staged, f.count - arena.run * l.lanes, -1)
        with f.when(staged):
            for i in self.fixed:
                for tile in range(arena.run):
                    f.call(VOID, f"fill{i}", stages[i].at(tile * l.bytes, I8), arena.step(l))
        return stages, limit, past

    def run_of_tiles(self, first: Value, stages: Sequence[Value], past: Value) -> None:
        """`run` tiles into the stage, then its rows to the caller's."""
        f, l, n, arena = self.f, self.l, self.n, self.arena
        steps = [*self.ports.strides[:n], *[f.const(I64, arena.step(l))] * len(stages)]
        with f.loop(arena.run, some=True) as k:
            places = self.at(first + k.i * l.lanes, slice(n))
            self.many([*places, *(x.at(k.i * l.bytes, I8) for x in stages)], steps)
        homes = self.at(first, slice(n, None))
        for stage, home, stride, port in zip(stages, homes, self.ports.strides[n:], self.low.outputs):
            f.call(VOID, "spill", stage, home, stride, port.size, past)


def constants(low: Lowered, i: int) -> list[tuple[int, float]]:
    """Constant entries of an output: position, value."""
    found = ((k, e, low.constants.get(e >> 1)) for k, e in enumerate(low.stores[i]))
    return [(k, -x if e & 1 else x) for k, e, x in found if x is not None]


def add_columns(m: Module, low: Lowered, l: Lanes, arena: Arena) -> None:
    """Adds the functions that the loop calls: @load_narrow, @store_narrow, @fill<i>, @spill."""
    for op in ("load", "store"):
        _add_narrow(m, l, op)
    for i in range(len(low.outputs)):
        if fixed := constants(low, i):
            _add_fill(m, i, fixed, l)
    if arena.run:
        _add_spill(m, l, arena)


def _add_spill(m: Module, l: Lanes, arena: Arena) -> None:
    """@spill(stage, out, stride, n, past): n rows of the stage; past the caches if they are whole lines."""
    f = m.function("spill", stage="ptr noalias", out="ptr noalias", stride=I64, n=I64, past=I1)

    def rows(hint: str, align: int) -> None:
        with f.loop(f.n, some=True) as j:
            source, to = f.stage.at(j.i * arena.step(l), I8), f.out.at(j.i * f.stride, I8)
            for k in range(0, arena.run * l.bytes, l.bytes):
                to.at(k, I8).store(source.at(k, I8).load(l.type, l.bytes), align, hint)

    lines = ((f.out.cast("ptrtoint", I64) | f.stride) & (CACHE_LINE_BYTES - 1)).equals(0)
    with f.when(lines & f.past):
        rows(m.past_caches(), l.bytes)
        f.ret()
    rows("", l.size)
    f.ret()


def _add_fill(m: Module, i: int, fixed: list[tuple[int, float]], l: Lanes) -> None:
    """@fill<i>(p, step): the constant rows of an output."""
    m.constant(f"places{i}", I64, [str(k) for k, _ in fixed])
    m.constant(f"values{i}", l.scalar, [literal(x, l.scalar) for _, x in fixed])
    f = m.function(f"fill{i}", p=PTR, step=I64)
    with f.loop(len(fixed), some=True) as j:
        row = f.const(PTR, f"@places{i}").at(j.i, I64).load(I64)
        x = f.const(PTR, f"@values{i}").at(j.i, l.scalar).load(l.scalar)
        f.p.at(row * f.step, I8).store(x.splat(l.lanes), l.size)
    f.ret()


def _add_narrow(m: Module, l: Lanes, op: str) -> None:
    """@load_narrow, @store_narrow: fewer samples than lanes, one number at a time."""
    f = m.function(f"{op}_narrow", VOID, MOVED)
    with f.loop(f.n, some=True) as j, f.loop(l.lanes, some=True) as r:
        user = f.p.at(j.i * f.stride + f.smaller(r.i, f.last) * l.size, I8)
        tile = f.tile.at(j.i * l.bytes + r.i * l.size, I8)
        source, to = (user, tile) if op == "load" else (tile, user)
        to.store(source.load(l.scalar, l.size), l.size)
    f.ret()
