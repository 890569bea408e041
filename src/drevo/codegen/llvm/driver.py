"""The loop over the tiles of a batch.

Row-major arrays are transposed into a tile of the arena and back. In batch-last layout the kernel reads and
writes the caller's own arrays, but for rows whose places in the cache collide, which go over a stage.

The call for one sample, with the interface that all kernels share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..lower.lower import Lowered
from .ir import I8, I32, I64, PTR, VOID, IRFunction, Module, Value
from .math import Lanes
from .ports import BEYOND, Arena, Target, flush_subnormals
from .rows import (
    ColumnLoop,
    ColumnPointers,
    add_columns,
    add_dense_moves,
    add_flush,
    add_moves,
    constants,
    width_of,
)


def add_driver(m: Module, low: Lowered, target: Target, arena: Arena, layout: str) -> None:
    """i32 @drive(pointers, strides, count, arena, all): 1 if a check failed. Inputs come first, then outputs.

    all: samples of the whole batch, of which these are a part.
    """
    l, rows = target.of(target.lanes), layout == "rows"
    _add_clear(m, l)
    if rows:
        own = [i for i, p in enumerate(low.outputs) if p.name not in _direct(low)]
        loads = [(p.size, p.size) for p in low.inputs if p.size]
        stores = [(low.outputs[i].size, low.outputs[i].size) for i in own if low.outputs[i].size]
        for op, sizes in (("load", loads), ("store", stores)):
            add_moves(m, l, op, [n for n, _ in sizes])
            add_dense_moves(m, l, op, sizes)
        add_flush(m, l)
    else:
        add_columns(m, low, l, arena)
    f = m.function("drive", I32, public=True, attributes=' "stackrealign"',
                   pointers=PTR, strides=PTR, count=I64, arena=PTR, all=I64)  # fmt: skip
    f.leaving = flush_subnormals(f, target)
    ports = _ports(f, arena)
    f.call(VOID, "clear", ports.status, 1)
    if rows:
        _clear_tile(f, low, l, arena)
        _rows(f, low, l, arena, ports)
    else:
        columns = ColumnLoop(f, low, l, arena, ports)
        with f.when(f.count < l.lanes):
            _clear_tile(f, low, l, arena)
            columns.small()
            add_end(f, l, ports.status)
        columns.loop()
    add_end(f, l, ports.status)


def _ports(f: IRFunction, arena: Arena) -> ColumnPointers:
    starts = (*arena.inputs, *arena.outputs)
    arrays = [f.pointers.at(i, PTR).load(PTR) for i in range(len(starts))]
    strides = [f.strides.at(i, I64).load(I64) for i in range(len(starts))]
    tiles = [f.arena.at(k, I8) for k in starts]
    return ColumnPointers(
        arrays, strides, tiles, f.arena.at(arena.scratch, I8), f.arena.at(arena.status, I8), f.count - 1
    )


def add_end(f: IRFunction, l: Lanes, status: Value) -> None:
    """1 if the status of any lane became NaN."""
    bits = status.load(l.type, l.align).is_nan().cast("bitcast", f"i{l.lanes}")
    f.ret(bits.differs(0).cast("zext", I32))


def _direct(low: Lowered) -> Sequence[str]:
    """Results that @many writes into the caller's rows; it gets their places and strides, the sample, the last."""
    found: Sequence[str] = low.stages.rows if low.stages else ()
    return found


def _first(arena: Arena) -> int:
    return arena.outputs[0] if arena.outputs else arena.status


def _clear_tile(f: IRFunction, low: Lowered, l: Lanes, arena: Arena) -> None:
    """The tile of outputs: zeros, and the constants that no kernel writes. Structural zeros stay."""
    f.call(VOID, "clear", f.arena.at(_first(arena), I8), (arena.status - _first(arena)) // l.bytes)
    for i, at in enumerate(arena.outputs):
        for k, x in constants(low, i):
            if x:
                f.arena.at(at + k * l.bytes, I8).store(f.const(l.type, x), l.bytes)


def _rows(f: IRFunction, low: Lowered, l: Lanes, arena: Arena, ports: ColumnPointers) -> None:
    """Load, compute, store per tile.

    Results that no cache holds go past the caches, some tiles at a time by way of a stage: half the traffic, as
    their lines are not fetched before they are written. What is left over at the end goes straight.
    """
    n, run = len(low.inputs), arena.run * l.lanes
    inputs = {i: p.size for i, p in enumerate(low.inputs) if p.size}
    outputs = {i: p.size for i, p in enumerate(low.outputs, n) if p.size}
    arrays, strides = ports.arrays, ports.strides
    stages = {i: f.arena.at(arena.stages[i - n], I8) for i in outputs}
    out = f.arena.at(_first(arena), I8)
    rows = _Rows(f, low, l, ports, {**inputs, **outputs})
    rows.load_shared()
    # rows that lie one after the other, and are more than a cache holds
    past = {i: (strides[i] * f.all > BEYOND) & rows.dense[i] for i in outputs}
    with f.loop(f.count, step=run, some=True) as block:
        start = block.i
        full = start <= f.count - run
        goes = {i: past[i] & full for i in outputs}
        begin = {i: start * strides[i] for i in outputs}
        # where sample 0 would stand for the samples of this run to be written to the stage, or home
        to = {i: f.select(goes[i], stages[i].at(-begin[i], I8), arrays[i]) for i in outputs}
        with f.loop(f.smaller(start + run, f.count), start=start, step=l.lanes, some=True) as tile:
            for i, size in inputs.items():
                rows.move("load", i, arrays[i], size, tile.i)
            direct = [n + [p.name for p in low.outputs].index(name) for name in _direct(low)]
            more = [x for i in direct for x in (to[i], strides[i])] + ([tile.i, ports.last] if direct else [])
            f.call(VOID, "many", f.arena, out, ports.scratch, ports.status, *more)
            for i in (i for i in outputs if i not in direct):
                rows.move("store", i, to[i], outputs[i], tile.i)
        for i, size in outputs.items():
            with f.when(goes[i]):
                home = arrays[i].at(begin[i], I8)
                f.call(VOID, "flush", stages[i], home, size * l.size * run)
    for goes_past in past.values():
        f.fence_if(goes_past)


class _Rows:
    """Rows to and from the tile. sizes: by port, inputs first."""

    def __init__(
        self, f: IRFunction, low: Lowered, l: Lanes, ports: ColumnPointers, sizes: Mapping[int, int]
    ) -> None:
        self.f, self.low, self.l, self.ports, self.sizes = f, low, l, ports, sizes
        self.dense = {i: ports.strides[i].equals(size * l.size) for i, size in sizes.items()}
        # one row for all samples goes into the tile once; stages may write over their arguments
        many = range(len(low.inputs) if low.stages is None else 0)
        self.shared = {i: ports.strides[i].equals(0) for i in sizes if i in many}

    def load_shared(self) -> None:
        for i, same in self.shared.items():
            with self.f.when(same):
                self._move_apart("load", i, self.ports.arrays[i], self.sizes[i], self.f.value(0))

    def _move_apart(self, op: str, i: int, place: Value, count: int, b: Value) -> None:
        """Rows that lie anywhere, or are fewer than a tile's."""
        given = (place, self.ports.strides[i], b, self.ports.last, self.ports.tiles[i], count)
        self.f.call(VOID, f"{op}_{width_of(op, count, self.l.lanes)}", *given)

    def move(self, op: str, i: int, place: Value, count: int, b: Value) -> None:
        """The first columns of the rows from b on."""
        f, size = self.f, self.sizes[i]
        whole = self.dense[i] & (b <= f.count - self.l.lanes)
        with f.when(whole):
            at = place.at(b * (size * self.l.size), I8)
            f.call(VOID, f"{op}_dense_{count}_{size}", at, self.ports.tiles[i])
        with f.when(~(whole | self.shared[i]) if i in self.shared else ~whole):
            self._move_apart(op, i, place, count, b)


def _add_clear(m: Module, l: Lanes) -> None:
    """@clear(p, n): n vectors of zeros, at least one."""
    f = m.function("clear", p=PTR, n=I64)
    with f.loop(f.n, some=True) as s:
        f.p.at(s.i, l.type).store(f.zero(l.type), l.bytes)
    f.ret()


STACK = 1 << 15  # bytes of scratch that one sample may take from the stack


def add_single(m: Module, ports: int, target: Target, scratch: int) -> None:
    """i32 @single(pointers, room): 1 if a check failed. Pointers to inputs, then outputs; room: of `scratch` bytes
    on a cache line, where they are more than STACK."""
    f = m.function("single", I32, public=True, pointers=PTR, room=PTR)
    room = f.room if scratch > STACK else f.alloca("<8 x i64>", -(-scratch // 64))
    status = f.alloca(target.scalar)
    status.store(f.zero(target.scalar))
    restore = flush_subnormals(f, target)
    f.call(VOID, "one", *(f.pointers.at(k, PTR).load(PTR) for k in range(ports)), room, status)
    restore()
    f.ret(status.load(target.scalar).is_nan().cast("zext", I32))
