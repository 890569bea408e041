"""Lowered steps -> textual LLVM IR: a kernel per width, its driver over a batch, its Python entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .ir import Module
from .llvm_across import scratch_of
from .llvm_across_forward import add_across
from .llvm_driver import add_driver
from .llvm_kernel import Kernel
from .llvm_ports import column_ports, sample_ports, tile_ports
from .llvm_stages import emit_stages
from .llvm_tail import NO_ROOM, Tail, add_with_tail, whole_lines
from .llvm_target import Arena as Arena
from .llvm_target import Target as Target
from .llvm_target import arena_of
from .lower import Lowered
from .outline import outline
from .split import split_functions

OUTLINED = 5_000  # steps: below it code that is called for several sections gains nothing
SINGLE = 12_000  # steps: beyond it a kernel for one sample takes seconds to make and saves less than half its time


class Text(NamedTuple):
    """The IR of a module and what its callers must know."""

    ir: str
    arena: Arena
    scalar_scratch: int  # bytes that one sample needs besides its arguments


Entry = Callable[[Module, Lowered, Target, Arena, int], None]


def emit(low: Lowered, target: Target, layout: str, entry: Entry | None = None, tail: Tail | None = None) -> Text:
    """The whole module. `entry` adds what calls the kernels, given the arena and the scalar scratch; `tail` goes
    on where the steps end."""
    if low.stages is not None and entry is not None:
        return Text(*emit_stages(low, target, layout, entry, add_driver), 0)
    m, one, many = Module(), target.of(1), target.of(target.lanes)
    seen = low if tail is None else tail.seen(low)
    split = split_functions(low, target.chunk, outline(low) if len(low.steps) > OUTLINED else ())
    rooms = [tail.room(low, l) if tail else NO_ROOM for l in (one, many)]
    arena = arena_of(seen, target, split.slots + rooms[1].values(many), layout)
    scratch = (whole_lines(split.slots, one) + rooms[0].values(one)) * one.size
    ports = [tile_ports(many, arena) if layout == "rows" else column_ports(seen, many)]
    if low.across is not None:
        add_across(m, low.across, low, target)
        scratch = scratch_of(low.across, low, target)
        arena = arena._replace(total=max(arena.total, scratch))
    elif target.single:
        ports.insert(0, sample_ports(seen, one))
    for p in ports:
        if tail is None:
            Kernel(low, target, split, p).add(m)
        else:
            add_with_tail(m, Kernel(low, target, split, p), tail)
    add_driver(m, seen, target, arena, layout)
    if entry is not None:
        entry(m, seen, target, arena, scratch)
    return Text(m.text(), arena, scratch)
