"""For which machine the LLVM text is, and where a batch kernel keeps what it works on."""

from __future__ import annotations

from dataclasses import dataclass

from .llvm_math import Lanes
from .lower import Lowered


@dataclass(frozen=True, slots=True)
class Target:
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


@dataclass(frozen=True, slots=True)
class Arena:
    """Byte offsets of the batch kernel's working memory: tiles of inputs and outputs, status, crossing values."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    status: int
    scratch: int
    total: int


def arena(low: Lowered, target: Target, slots: int) -> Arena:
    """Every port is a block of its own; columns of W lanes."""
    at, starts = 0, []
    width = target.of(target.lanes).bytes
    for port in (*low.inputs, *low.outputs):
        starts.append(at)
        at += port.size * width
    n = len(low.inputs)
    return Arena(tuple(starts[:n]), tuple(starts[n:]), at, at + width, at + width * (1 + slots))


__all__ = ["Arena", "Target", "arena"]
