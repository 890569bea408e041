"""For which machine the LLVM text is, and where a batch kernel keeps what it works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..lower.lower import Lowered
from .ir import I32, I64, VOID, IRFunction
from .math import Lanes

LINE = 64  # bytes of a cache line
BEYOND = 6 << 20  # bytes of a result: no second cache holds it, and a third has others to serve
RUN = 512  # bytes of a batch-last row that are staged at a time
BLOCK = 4096  # bytes of row-major results that are, at least
STAGED = 12  # rows: up to it the ways of a first cache hold one line of each
_MXCSR, _FPCR = 0x8040, 1 << 24  # flush to zero and denormals are zero; flush to zero
NARROW = 512  # rows: beyond it a run is half as long, for the stage to stay in the second cache


class Target(NamedTuple):
    """Properties of the target on which the text depends, besides the program."""

    scalar: str = "double"  # or "float"
    lanes: int = 8
    fma: bool = True
    splat: bool = True
    check: bool = True
    chunk: int | None = None  # steps per function; None: one function up to ONE_FUNCTION steps
    prefetch: bool = True  # of what a later tile of a batch reads
    single: bool = True  # a kernel for one sample too; without it one sample takes a tile
    registers: int = 0  # of vectors, where known
    control: str = ""  # the register that says how floats are rounded: "mxcsr", "fpcr", or not known
    permutes: bool = False  # see Lanes

    def of(self, lanes: int) -> Lanes:
        return Lanes(self.scalar, lanes, self.splat, self.permutes)


def flush_subnormals(f: IRFunction, target: Target) -> Callable[[], object]:
    """From here on numbers below the least normal one, 2e-308, are zero, as operands and as results: they cost a
    hundred cycles an operation. Gives what writes the end of it."""
    if target.control == "mxcsr":
        old, new = f.alloca(I32), f.alloca(I32)
        f.call(VOID, "llvm.x86.sse.stmxcsr", old)
        new.store(old.load(I32) | _MXCSR)
        f.call(VOID, "llvm.x86.sse.ldmxcsr", new)
        return lambda: f.call(VOID, "llvm.x86.sse.ldmxcsr", old)
    if target.control == "fpcr":
        before = f.call(I64, "llvm.aarch64.get.fpcr")
        f.call(VOID, "llvm.aarch64.set.fpcr", before | _FPCR)
        return lambda: f.call(VOID, "llvm.aarch64.set.fpcr", before)
    return lambda: None


class Arena(NamedTuple):
    """Byte offsets of the batch kernel's working memory: tiles of inputs and outputs, status, crossing values.

    stages: places for `run` tiles of every output, of batch-last ones only where there are many rows, which are
    then `step` bytes apart.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    status: int
    scratch: int
    total: int
    stages: tuple[int, ...] = ()
    run: int = 0

    def step(self, lanes: Lanes) -> int:
        """Bytes from row to row of a stage: one line more than it holds, so that rows do not fold."""
        return self.run * lanes.bytes + LINE


def arena_of(low: Lowered, target: Target, slots: int, layout: str = "rows") -> Arena:
    """Every port is a block of its own; columns of W lanes. Results that stages write into rows have none."""
    at, starts = 0, []
    lanes, own = target.of(target.lanes), low.stages.rows if low.stages else ()
    for port in (*low.inputs, *low.outputs):
        starts.append(at)
        at += 0 if port.name in own else port.size * lanes.bytes
    n, width = len(low.inputs), lanes.bytes
    scratch = at + width
    arena = Arena(tuple(starts[:n]), tuple(starts[n:]), at, scratch, scratch + width * slots)
    sizes = [p.size for p in low.outputs]
    total = sum(sizes)
    if layout == "rows":
        arena = arena._replace(run=-(-BLOCK // (max(1, total) * width)))
        return _staged(arena, [n * arena.run * width for n in sizes])
    if total <= STAGED:
        return arena
    arena = arena._replace(run=RUN // width // (2 if total > NARROW else 1))
    return _staged(arena, [n * arena.step(lanes) for n in sizes])


def _staged(arena: Arena, sizes: list[int]) -> Arena:
    """The arena with stages at its end, each from a cache line on."""
    at, stages = -(-arena.total // LINE) * LINE, []
    for size in sizes:
        stages.append(at)
        at += -(-size // LINE) * LINE
    return arena._replace(stages=tuple(stages), total=at)
