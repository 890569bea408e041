"""Lowered steps -> textual LLVM IR: a kernel per width, its driver over a batch, its call for one sample.

One function of pointers, everything inlined, no call and no table left: what any processor's linker takes.

NAME(inputs.., outputs..) computes one sample; NAME_batch(.., n) samples one after another, row by row. With
lanes NAME_columns(.., step, n) computes as many samples at once, whose values lie side by side in rows `step`
bytes apart.
Nothing is checked: what is not finite stays so, and angles beyond the limit of `llvm.math` become NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..lower.lower import Lowered
from ..lower.split import split_functions
from .driver import add_driver, add_single
from .ir import I8, I32, I64, PTR, VOID, Module, Value
from .kernel import Kernel
from .ports import ALONE, Arena, Ports, Target, arena_of, column_ports, sample_ports, tile_ports
from .stages import emit_stages
from .tail import NO_ROOM, Tail, add_with_tail, whole_lines

SINGLE = (
    24_000  # steps: beyond it a kernel for one sample takes ten seconds to make and saves less than half its time
)


class Text(NamedTuple):
    """The IR of a module and what its callers must know."""

    ir: str
    arena: Arena
    scalar_scratch: int  # bytes that one sample needs besides its arguments


class KernelTexts(NamedTuple):
    """Writers of the IR of a module for @single and for @drive, as far as there is one, and what their callers
    know."""

    texts: dict[str, Callable[[], str]]
    arena: Arena
    scalar_scratch: int


Entry = Callable[[Module, Lowered, Target, Arena, int], None]


class _Kernels:
    """The kernels of a program that is no sequence of stages, to be written into modules."""

    def __init__(self, low: Lowered, target: Target, layout: str, tail: Tail | None) -> None:
        one, many = target.of(1), target.of(target.lanes)
        self.low, self.target, self.layout, self.tail = low, target, layout, tail
        self.seen = low if tail is None else tail.seen(low)
        self.split = split_functions(low, target.chunk)
        rooms = [tail.room(low, l) if tail else NO_ROOM for l in (one, many)]
        slots = self.split.slots + rooms[1].values(many)
        self.arena = arena_of(self.seen, target, slots, layout)
        self.scratch = (whole_lines(self.split.slots, one) + rooms[0].values(one)) * one.size

    def add_one(self, m: Module) -> None:
        """@one: one sample."""
        self._add(m, sample_ports(self.seen, self.target.of(1)))

    def add_drive(self, m: Module) -> None:
        """@drive: a batch, by @many."""
        many = self.target.of(self.target.lanes)
        self._add(
            m, tile_ports(self.seen, many, self.arena) if self.layout == "rows" else column_ports(self.seen, many)
        )
        add_driver(m, self.seen, self.target, self.arena, self.layout)

    def single_text(self) -> str:
        """A module with @single."""
        m = Module()
        self.add_one(m)
        add_single(m, len(self.low.inputs) + len(self.seen.outputs), self.target, self.scratch)
        return m.text()

    def drive_text(self) -> str:
        """A module with @drive."""
        m = Module()
        self.add_drive(m)
        return m.text()

    def _add(self, m: Module, ports: Ports) -> None:
        kernel = Kernel(self.low, self.target, self.split, ports)
        if self.tail is None:
            kernel.add(m)
        else:
            add_with_tail(m, kernel, self.tail)


def emit(low: Lowered, target: Target, layout: str, entry: Entry | None = None, tail: Tail | None = None) -> Text:
    """All in one module. `entry` adds what calls the kernels, given the arena and the scalar scratch; `tail` goes
    on where the steps end."""
    if low.stages is not None and entry is not None:
        return Text(*emit_stages(low, target, layout, entry, add_driver), 0)
    m, kernels = Module(), _Kernels(low, target, layout, tail)
    if target.single:
        kernels.add_one(m)
    kernels.add_drive(m)
    if entry is not None:
        entry(m, kernels.seen, target, kernels.arena, kernels.scratch)
    return Text(m.text(), kernels.arena, kernels.scratch)


def emit_parts(low: Lowered, target: Target, layout: str, tail: Tail | None = None) -> KernelTexts:
    """Emits the code for one sample and for a batch in modules of their own: many a user needs but one."""
    if low.stages is not None:
        text, arena = emit_stages(low, target, layout, lambda *_: None, add_driver)
        return KernelTexts({"drive": lambda: text}, arena, 0)
    kernels = _Kernels(low, target, layout, tail)
    texts = {"single": kernels.single_text} if target.single else {}
    return KernelTexts({**texts, "drive": kernels.drive_text}, kernels.arena, kernels.scratch)


INLINED_STEPS = 10**9  # steps: one function, which is inlined
THREAD = "llvm.nvvm.read.ptx.sreg"


def portable_text(low: Lowered, target: Target, name: str, index: str = I64, alone: bool = False) -> str:
    """LLVM text. index: the type of n and of step. alone: NAME without the others."""
    m, one = Module("alwaysinline"), target.of(1)
    split = split_functions(low, INLINED_STEPS)
    Kernel(low, target._replace(lanes=1), split, sample_ports(low, one)).add(m)
    ports = _ports(low)
    f = m.function(name, VOID, ports, public=True)
    f.call(VOID, "one", *f.arguments.values(), f.zero(PTR), f.zero(PTR))
    f.ret()
    if alone:
        return m.text()
    f = m.function(f"{name}_batch", VOID, ports | {"n": index}, public=True)
    with f.loop(_wide(f.n)) as s:
        rows = (f.arguments[x].at(s.i * p.size, one.type) for x, p in zip(ports, (*low.inputs, *low.outputs)))
        f.call(VOID, name, *rows)
    f.ret()
    if target.lanes > 1:
        _add_columns(m, low, target, name, index)
    return m.text()


def _add_columns(m: Module, low: Lowered, target: Target, name: str, index: str) -> None:
    """The last samples are computed with those before them, so rows have at least as many as there are lanes."""
    many = target.of(target.lanes)
    Kernel(low, target, split_functions(low, INLINED_STEPS), column_ports(low, many)._replace(fixed=True)).add(m)
    ports = _ports(low)
    given = ports | {"step": index, "n": index}
    f = m.function(f"{name}_columns", VOID, given, public=True)
    step, n = _wide(f.step), _wide(f.n)
    with f.loop(n, step=many.lanes) as s:
        last = n - many.lanes
        at = f.smaller(s.i, last)
        at = f.select(at < 0, f.const(I64, 0), at) * many.size
        pairs = [y for x in ports for y in (f.arguments[x].at(at, I8), step)]
        f.call(VOID, "many", *pairs, f.zero(PTR), f.zero(PTR))
    f.ret()


def ptx_text(low: Lowered, target: Target, name: str, rows: bool = False) -> str:
    """A kernel of NVIDIA's: thread i computes sample i; arrays (size, n), the samples side by side, or rows."""
    m, one = Module("alwaysinline"), target.of(1)
    Kernel(
        low,
        target._replace(lanes=1),
        split_functions(low, INLINED_STEPS),
        column_ports(low, one)._replace(fixed=True),
    ).add(m)
    ports = _ports(low)
    f = m.function(name, "ptx_kernel void", ports | {"n": I64}, public=True)
    block, size, thread = (f.call(I32, f"{THREAD}.{x}.x").cast("zext", I64) for x in ("ctaid", "ntid", "tid"))
    i = block * size + thread
    with f.when(i < f.n):
        step = f.const(I64, one.size) if rows else f.n * one.size
        sizes = [p.size if rows else 1 for p in (*low.inputs, *low.outputs)]
        pairs = [y for x, n in zip(ports, sizes) for y in (f.arguments[x].at(i * n, one.type), step)]
        f.call(VOID, "one", *pairs, f.zero(PTR), f.zero(PTR))
    f.put("ret void")
    return m.text()


def _ports(low: Lowered) -> dict[str, str]:
    names = [f"in{i}" for i in range(len(low.inputs))] + [f"out{i}" for i in range(len(low.outputs))]
    return dict.fromkeys(names, ALONE)


def _wide(n: Value) -> Value:
    return n if n.type == I64 else n.cast("sext", I64)
