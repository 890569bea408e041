"""Access of a kernel to its inputs and outputs: of one sample, in a tile, in the caller's own columns.

For which machine the LLVM text is, and where a batch kernel keeps what it works on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from ..lower.lower import Lowered
from .ir import I32, I64, VOID, IRFunction
from .math import Lanes

CACHE_LINE_BYTES = 64  # bytes of a cache line
BEYOND = 6 << 20  # bytes of a result: no second cache holds it, and a third has others to serve
RUN = 512  # bytes of a batch-last row that are staged at a time
LEAST_BLOCK_BYTES = 4096  # bytes of row-major results that are, at least
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
        return self.run * lanes.bytes + CACHE_LINE_BYTES


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
        arena = arena._replace(run=-(-LEAST_BLOCK_BYTES // (max(1, total) * width)))
        return _staged(arena, [n * arena.run * width for n in sizes])
    if total <= STAGED:
        return arena
    arena = arena._replace(run=RUN // width // (2 if total > NARROW else 1))
    return _staged(arena, [n * arena.step(lanes) for n in sizes])


def _staged(arena: Arena, sizes: list[int]) -> Arena:
    """The arena with stages at its end, each from a cache line on."""
    at, stages = -(-arena.total // CACHE_LINE_BYTES) * CACHE_LINE_BYTES, []
    for size in sizes:
        stages.append(at)
        at += -(-size // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
    return arena._replace(stages=tuple(stages), total=at)


ALONE = "ptr noalias"


class Address(NamedTuple):
    """The address of a port's first column: some bytes after a pointer. The other columns follow by their size.

    step: they are rows of a batch, that many bytes apart. pitch: so many bytes lie between columns, where they are
    not side by side. shared: one number for all lanes. registers: values by their names, by `offset` plus column,
    in place of memory. own: no driver knows it. left: entries that others write.
    """

    base: str
    offset: int = 0
    step: str = ""
    shared: bool = False
    registers: dict[int, str] | None = None
    pitch: int = 0
    own: bool = False
    left: Collection[int] = range(0)


class Ports(NamedTuple):
    """arguments: of every function of a kernel, but for the scratch and the status. align: of loads, stores.

    fixed: constant outputs are the kernel's to write, as of its own ports; no driver does it.
    """

    l: Lanes
    inputs: list[Address]
    outputs: list[Address]
    arguments: dict[str, str]
    align: int
    fixed: bool = False


def sample_ports(low: Lowered, l: Lanes) -> Ports:
    """The ports for one sample: a pointer to each port, values side by side."""
    inputs = [Address(f"%in{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}") for i in range(len(low.outputs))]
    return Ports(l, inputs, outputs, {x.base[1:]: ALONE for x in inputs + outputs}, l.bytes, True)


def tile_ports(low: Lowered, l: Lanes, arena: Arena) -> Ports:
    """The ports for a tile: one pointer to all inputs and one to all outputs, at fixed places in the arena."""
    inputs = [Address("%in", at) for at in arena.inputs]
    outputs = [Address("%out", at - arena.outputs[0]) for at in arena.outputs]
    return Ports(l, inputs, outputs, {"in": ALONE, "out": ALONE}, l.bytes)


def column_ports(low: Lowered, l: Lanes) -> Ports:
    """The ports for the caller's own batch-last arrays: per port a pointer and the bytes from row to row."""
    inputs = [Address(f"%in{i}", 0, f"%in_step{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}", 0, f"%out_step{i}") for i in range(len(low.outputs))]
    arguments = {name[1:]: kind for x in inputs + outputs for name, kind in ((x.base, ALONE), (x.step, I64))}
    return Ports(l, inputs, outputs, arguments, l.size)
