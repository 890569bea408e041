"""For which machine the LLVM text is, and where a batch kernel keeps what it works on."""

from __future__ import annotations

from typing import NamedTuple

from .llvm_math import Lanes
from .lower import Lowered

LINE = 64  # bytes of a cache line
RUN = 512  # bytes of a row that are staged at a time
STAGED = 12  # rows: up to it the ways of a first cache hold one line of each
NARROW = 512  # rows: beyond it a run is half as long, for the stage to stay in the second cache


class Target(NamedTuple):
    """What the text depends on besides the program."""

    scalar: str = "double"  # or "float"
    lanes: int = 8
    fma: bool = True
    splat: bool = True
    check: bool = True
    chunk: int | None = None  # steps per function; None: one function up to ONE_FUNCTION steps
    single: bool = True  # a kernel for one sample too; without it one sample takes a tile

    def of(self, lanes: int) -> Lanes:
        return Lanes(self.scalar, lanes, self.splat)


class Arena(NamedTuple):
    """Byte offsets of the batch kernel's working memory: tiles of inputs and outputs, status, crossing values.

    stages: of batch-last outputs with many rows, room for `run` tiles; their rows are `step` bytes apart.
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


def arena(low: Lowered, target: Target, slots: int, layout: str = "rows") -> Arena:
    """Every port is a block of its own; columns of W lanes."""
    at, starts = 0, []
    width = target.of(target.lanes).bytes
    for port in (*low.inputs, *low.outputs):
        starts.append(at)
        at += port.size * width
    n = len(low.inputs)
    room = Arena(tuple(starts[:n]), tuple(starts[n:]), at, at + width, at + width * (1 + slots))
    rows = [p.size for p in low.outputs]
    return room if layout == "rows" or sum(rows) <= STAGED else _staged(room, rows, target.of(target.lanes))


def _staged(room: Arena, rows: list[int], lanes: Lanes) -> Arena:
    """The arena with a stage at its end."""
    run = RUN // lanes.bytes // (2 if sum(rows) > NARROW else 1)
    room = room._replace(run=run)
    at, stages = -(-room.total // LINE) * LINE, []
    for n in rows:
        stages.append(at)
        at += n * room.step(lanes)
    return room._replace(stages=tuple(stages), total=at)


__all__ = ["LINE", "Arena", "Target", "arena"]
