"""Lowered steps -> textual LLVM IR: a kernel per width, its driver over a batch, its Python entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .cut import cut
from .llvm_driver import driver
from .llvm_kernel import UNIT_TOLERANCE, Kernel
from .llvm_math import sines
from .llvm_target import Arena, Target, arena
from .lower import Lowered
from .repeat import repeats

REPEATED = 5_000  # steps: below it code that is called for several sections gains nothing
SINGLE = 12_000  # steps: beyond it a kernel for one sample takes seconds to make and saves less than half its time


class Text(NamedTuple):
    """The IR of a module and what its callers must know."""

    ir: str
    arena: Arena
    scalar_scratch: int  # bytes that one sample needs besides its arguments
    slots: int


def emit(low: Lowered, target: Target, layout: str, entry: Callable[[Arena, int], str] | None = None) -> Text:
    """The whole module. `entry` adds the Python entry point, given the arena and the scalar scratch."""
    pieces = cut(low, target.chunk, repeats(low) if len(low.steps) > REPEATED else ())
    room = arena(low, target, pieces.slots, layout)
    scratch = pieces.slots * target.of(1).size
    one = Kernel(low, target, 1, pieces, room)
    many = Kernel(low, target, target.lanes, pieces, room, layout != "rows")
    kernels = "".join(kernel.text() for kernel in ((one, many) if target.single else (many,)))
    parts = [_declarations(target), sines(kernels, (one.l, many.l), target.fma), kernels]
    parts.append(driver(low, target, room, layout))
    if entry is not None:
        parts.append(entry(room, scratch))
    return Text("\n".join(parts), room, scratch, pieces.slots)


def _declarations(target: Target) -> str:
    out = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "declare i64 @llvm.smin.i64(i64, i64)"]
    for l in (target.of(1), target.of(target.lanes)):
        t = l.type
        out.append(f"declare {t} @llvm.fma.{l.suffix}({t}, {t}, {t})")
        if l.lanes > 1:
            out.append(f"declare i1 @llvm.vector.reduce.and.v{l.lanes}i1({l.many('i1')})")
        out += [f"declare {t} @llvm.{f}.{l.suffix}({t})" for f in ("fabs", "sqrt")]
    return "\n".join(out) + "\n"


__all__ = ["SINGLE", "UNIT_TOLERANCE", "Arena", "Target", "Text", "arena", "cut", "emit"]
