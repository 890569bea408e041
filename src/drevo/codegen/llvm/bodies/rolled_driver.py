"""Rolled code as a module: one sample or a batch of rows through the loops, and the entry that passes on to it."""

from __future__ import annotations

from collections.abc import Sequence

from ...lower.loops import MODEL_WORDS, Rolled
from ..driver import add_end
from ..fields import word
from ..ir import I8, I32, I64, PTR, VOID, IRFunction, Module, Value
from ..math import Lanes
from ..ports import BEYOND, Target, flush_subnormals
from ..rows import add_flush, add_moves, width_of
from .rolled import add_bodies, clear_memory

WRENCH_NUMBERS = 6  # numbers


def emit_rolled(rolled: Rolled, target: Target, blocked: Rolled | None = None) -> str:
    """Exports @single (one sample) and @batch (rows, a tile of lanes at a time)."""
    m, one, many = Module(), target.of(1), target.of(target.lanes)
    add_bodies(m, rolled, target, one)
    if rolled.tiled:
        add_bodies(m, blocked or rolled, target, many)
    if rolled.loaded:
        _add_gather(m, one)
        if rolled.tiled:
            _add_load_wrenches(m, many)
    if rolled.tiled:
        add_moves(m, many, "load", [many.lanes, *[WRENCH_NUMBERS] * rolled.loaded])
        add_moves(m, many, "store", [n or many.lanes for n in rolled.results])
        add_flush(m, many)
    _add_single(m, rolled, one)
    _Batch(m, rolled, target)
    return m.text()


def _move(op: str, size: int, l: Lanes) -> str:
    """Name of the mover of rows of that size; 0: the model knows the size, at least that of a vector."""
    return f"{op}_{width_of(op, size or l.lanes, l.lanes)}"


def _wrenches(f: IRFunction, l: Lanes, state: Value) -> Value:
    """Address at which the wrenches are gathered: after the slots, the sines and the cosines."""
    return state.at(word(f, "slots") + word(f, "nq") * 2, l.type)


def _port(f: IRFunction, index: Value) -> tuple[Value, Value]:
    return f.pointers.at(index, PTR).load(PTR), f.strides.at(index, I64).load(I64)


def _add_gather(m: Module, l: Lanes) -> None:
    """@gather: the wrenches of sample k, one after the other."""
    f = m.function("gather", pointers=PTR, strides=PTR, k=I64, loads=I64, to=PTR)
    with f.loop(f.loads, some=True) as s:
        array, stride = _port(f, s.i)
        row, to = array.at(f.k * stride, I8), f.to.at(s.i * WRENCH_NUMBERS, l.type)
        for i in range(WRENCH_NUMBERS):
            to.at(i, l.type).store(row.at(i, l.type).load(l.type))
    f.ret()


def _add_load_wrenches(m: Module, l: Lanes) -> None:
    """@load_wrenches: a tile of every wrench."""
    f = m.function("load_wrenches", pointers=PTR, strides=PTR, b=I64, last=I64, loads=I64, to=PTR)
    with f.loop(f.loads, some=True) as s:
        array, stride = _port(f, s.i)
        to = f.to.at(s.i * WRENCH_NUMBERS, l.type)
        f.call(VOID, _move("load", WRENCH_NUMBERS, l), array, stride, f.b, f.last, to, WRENCH_NUMBERS)
    f.ret()


def _add_single(m: Module, rolled: Rolled, l: Lanes) -> None:
    """void @single(model, arguments, results, status): in the model's own state, one caller at a time.

    Wrenches come as one argument, an array of pointers to them.
    """
    names = ("model", *rolled.given, *rolled.outs, "status")
    f = m.function("single", VOID, dict.fromkeys(names, PTR), public=True)
    lock, state, given = f.model.at(MODEL_WORDS.index("lock"), I64), word(f, "state", PTR), dict(f.arguments)
    with f.loop() as wait:
        wait.leave(f.let(I64, f"atomicrmw xchg ptr {lock.text}, i64 1 acquire").equals(0))
    if rolled.loaded:
        name = rolled.given[-1]
        pointers, given[name] = given[name], _wrenches(f, l, state)
        # of sample 0 the strides do not matter
        f.call(VOID, "gather", pointers, pointers, 0, word(f, "loads"), given[name])
    f.call(VOID, "bodies_1", given.pop("model"), state, *given.values())
    f.put(f"store atomic i64 0, ptr {lock.text} release, align 8")
    f.ret()


class _Batch:
    """i32 @batch(model, pointers, strides, count, arena, all): 1 if a check failed."""

    def __init__(self, m: Module, rolled: Rolled, target: Target) -> None:
        self.rolled, self.one, self.many = rolled, target.of(1), target.of(target.lanes)
        self.f = f = m.function("batch", I32, public=True,
                                model=PTR, pointers=PTR, strides=PTR, count=I64, arena=PTR, all=I64)  # fmt: skip
        f.leaving = flush_subnormals(f, target)
        self.n, self.loads = len(rolled.arguments), word(f, "loads")
        places = [f.const(I64, i) for i in range(self.n)]
        places += [self.loads + (self.n + i) for i in range(len(rolled.results))]
        self.arrays, self.strides = zip(*(_port(f, i) for i in places))
        self.wrenches = f.pointers.at(self.n, PTR), f.strides.at(self.n, I64)
        self.status, self.state = f.arena, f.arena.at(64, I8)
        self.status.store(f.zero(f"<{64 // self.one.size} x {self.one.scalar}>"), 64)
        if rolled.tiled:
            with f.when(word(f, "alone").equals(0) & f.count.differs(1)):
                self.tiles()
                add_end(f, self.many, self.status)
        self.samples()
        add_end(f, self.many, self.status)

    def bodies(self, l: Lanes, state: Value, ports: Sequence[Value], wrenches: list[Value]) -> None:
        ports = [*ports[: self.n], *wrenches, *ports[self.n :]]
        self.f.call(VOID, f"bodies_{l.lanes}", self.f.model, state, *ports, self.status)

    def samples(self) -> None:
        """Sample by sample, where they stand."""
        f, wrenches = self.f, list[Value]()
        with f.loop(f.count, some=True) as s:
            if self.rolled.loaded:
                wrenches = [_wrenches(f, self.one, self.state)]
                f.call(VOID, "gather", *self.wrenches, s.i, self.loads, *wrenches)
            rows = [x.at(s.i * stride, I8) for x, stride in zip(self.arrays, self.strides)]
            self.bodies(self.one, self.state, rows, wrenches)

    def tiles(self) -> None:
        """Rows into tiles, the loops over the bodies, the tiles of results back into rows.

        What no step writes is cleared once; results that no cache holds go past the caches, as in `llvm.driver`.
        """
        f, l, wrenches, tiles, state = self.f, self.many, list[Value](), list[Value](), self.state
        sizes = [word(f, "nq" if x == "q" else "nv") for x in self.rolled.arguments]
        sizes += [word(f, f"size{i}") for i in range(len(self.rolled.results))]
        for size in sizes:
            tiles.append(state)
            state = state.at(size, l.type)
        if self.rolled.loaded:
            wrenches = [_wrenches(f, l, state)]
        ports, last = list(zip(self.arrays, self.strides, tiles, sizes)), f.count - 1
        stage = state.at(word(f, "slots") + word(f, "nq") * 2 + self.loads * WRENCH_NUMBERS, l.type)
        for _, _, tile, size in ports[self.n :] if self.rolled.zeroed else ():
            clear_memory(f, tile, size * l.lanes, l)
        with f.loop(f.count, step=l.lanes, some=True) as s:
            for array, stride, tile, size in ports[: self.n]:
                f.call(VOID, _move("load", 0, l), array, stride, s.i, last, tile, size)
            if self.rolled.loaded:
                f.call(VOID, "load_wrenches", *self.wrenches, s.i, last, self.loads, *wrenches)
            self.bodies(l, state, tiles, wrenches)
            for (array, stride, tile, size), known in zip(ports[self.n :], self.rolled.results):
                begin = s.i * stride
                past = (stride * f.all > BEYOND) & stride.equals(size * l.size) & (s.i <= f.count - l.lanes)
                to = f.select(past, stage.at(-begin, I8), array)
                f.call(VOID, _move("store", known, l), to, stride, s.i, last, tile, size)
                with f.when(past):
                    f.call(VOID, "flush", stage, array.at(begin, I8), size * l.bytes)


def add_forwards(m: Module, arguments: int, loads: int, results: int = 1) -> None:
    """@one and @drive, as the Python entry calls them, passed on to loaded code by the addresses in @rolled.

    loads: how many external wrenches follow the arguments; @one passes on one array of pointers to them.
    """
    m.words("rolled", 3)  # @single, @batch, the model
    ports = [f"arg{i}" for i in range(arguments)]
    wrenches, outs = [f"wrench{i}" for i in range(loads)], [f"out{i}" for i in range(results)]
    f = m.function("one", VOID, dict.fromkeys([*ports, *wrenches, *outs, "scratch", "status"], PTR))
    given = [f.arguments[x] for x in ports]
    if loads:
        given.append(f.alloca(PTR, loads))
        for i, x in enumerate(wrenches):
            given[-1].at(i, PTR).store(f.arguments[x])
    f.call(VOID, loaded(f, 0), loaded(f, 2), *given, *(f.arguments[x] for x in outs), f.status)
    f.ret()
    f = m.function("drive", I32, public=True, pointers=PTR, strides=PTR, count=I64, arena=PTR, all=I64)
    f.ret(f.call(I32, loaded(f, 1), loaded(f, 2), f.pointers, f.strides, f.count, f.arena, f.all))


def loaded(f: IRFunction, k: int) -> Value:
    """A word of @rolled."""
    return f.const(PTR, "@rolled").at(k, PTR).load(PTR)
