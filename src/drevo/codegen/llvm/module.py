"""Lowered steps -> textual LLVM IR: a kernel per width, its driver over a batch, its call for one sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..lower.lower import Lowered
from ..lower.outline import outline
from ..lower.split import split_functions
from .bodies.across import scratch_of
from .bodies.across_forward import add_across
from .driver import add_driver
from .ir import Module
from .kernel import Kernel
from .ports import Ports, column_ports, sample_ports, tile_ports
from .single import add_single
from .stages import emit_stages
from .tail import NO_ROOM, Alone, Tail, add_with_tail, whole_lines
from .target import Arena as Arena
from .target import Target as Target
from .target import arena_of

OUTLINED = 5_000  # steps: below it code that is called for several sections gains nothing
SINGLE = 12_000  # steps: beyond it a kernel for one sample takes seconds to make and saves less than half its time


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
        self.split = split_functions(low, target.chunk, outline(low) if len(low.steps) > OUTLINED else ())
        rooms = [tail.room(low, l) if tail else NO_ROOM for l in (one, many)]
        slots = self.split.slots + rooms[1].values(many)
        self.arena = arena_of(self.seen, target, slots, layout)
        self.scratch = (whole_lines(self.split.slots, one) + rooms[0].values(one)) * one.size
        found = low.across
        self.alone = _Kernels(found.low, target, layout, found.tail) if isinstance(found, Alone) else None
        if found is not None:
            self.scratch = self.alone.scratch if self.alone else scratch_of(found, low, target)
            self.arena = self.arena._replace(total=max(self.arena.total, self.scratch))

    @property
    def single(self) -> bool:
        return self.low.across is not None or self.target.single

    def add_one(self, m: Module) -> None:
        """@one: one sample."""
        if self.alone is not None:
            self.alone.add_one(m)
        elif self.low.across is not None:
            add_across(m, self.low.across, self.low, self.target)
        else:
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
        if self.low.across is not None:
            self.add_one(m)  # the driver computes a batch of one as a single sample
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
    if kernels.single:
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
    texts = {"single": kernels.single_text} if kernels.single else {}
    return KernelTexts({**texts, "drive": kernels.drive_text}, kernels.arena, kernels.scratch)
