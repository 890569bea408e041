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


def emit(low: Lowered, target: Target, layout: str, entry: Entry | None = None) -> Text:
    """The whole module. `entry` adds what calls the kernels, given the arena and the scalar scratch."""
    m, one, many = Module(), target.of(1), target.of(target.lanes)
    split = split_functions(low, target.chunk, outline(low) if len(low.steps) > OUTLINED else ())
    arena = arena_of(low, target, split.slots, layout)
    scratch = split.slots * one.size
    if low.across is not None:
        add_across(m, low.across, low, target)
        scratch = scratch_of(low.across, low, target)
        arena = arena._replace(total=max(arena.total, scratch))
    elif target.single:
        Kernel(low, target, split, sample_ports(low, one)).add(m)
    ports = tile_ports(many, arena) if layout == "rows" else column_ports(low, many)
    Kernel(low, target, split, ports).add(m)
    add_driver(m, low, target, arena, layout)
    if entry is not None:
        entry(m, low, target, arena, scratch)
    return Text(m.text(), arena, scratch)
