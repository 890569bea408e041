"""Tail of a program, which goes on where its steps end: a solve whose rank is decided while it runs.

The last outputs of the program are hidden: they are the tail's alone. It reads them where the steps left them, in
registers or in memory, and writes over the others, of one sample or of a tile of samples side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..lower.lower import Lowered
from .ir import I8, PTR, VOID, IRFunction, Module, Value
from .ir_scalar import IRScalar, StoredScalar
from .kernel import FunctionBody, Kernel
from .math import Lanes
from .ports import ALONE, Address

Array = np.ndarray[Any, Any]


class Room(NamedTuple):
    """Room of the hidden outputs: where each begins, in values; how many values they are, and how many scalars
    the tail needs beside. stays: those that it wants in memory."""

    starts: tuple[int, ...]
    size: int
    work: int
    stays: frozenset[int] = frozenset()

    def values(self, l: Lanes) -> int:
        """All of it, in values of these lanes."""
        return self.size + -(-self.work // l.lanes)


NO_ROOM = Room((), 0, 0)


def whole_lines(count: int, l: Lanes) -> int:
    """So many values in whole vectors, of one sample: a vector that is read in parts may not cross a line."""
    return count if l.lanes > 1 else -(-count // 8) * 8


class Column(NamedTuple):
    """A port of a sample, or of the samples of a tile: entry k is k values on, or a register."""

    base: Value
    l: Lanes
    registers: Mapping[int, str] | None = None

    def at(self, k: int) -> Value:
        """The address of an entry."""
        return self.base.at(k * self.l.bytes, I8)

    def store(self, k: int, x: Value) -> None:
        self.at(k).store(x, self.l.bytes)

    def scalar(self, k: int, fma: bool) -> IRScalar:
        """An entry, for algorithms."""
        if self.registers is None:
            return StoredScalar(self.at(k), self.l.type, fma)
        return IRScalar(Value(self.base.f, self.l.type, self.registers[k]), fma)


class TailPlace(NamedTuple):
    """Memory on which a tail works: the ports by their order in the program, the room of the hidden ones and of
    its own work, the status. fma: the machine has multiply-adds of one rounding."""

    l: Lanes
    outputs: tuple[Column, ...]
    hidden: tuple[Column, ...]
    room: Value
    work: Value
    status: Value
    fma: bool


class Tail(ABC):
    """A tail; `hidden` of the program's outputs are its own."""

    hidden: int

    @property
    def written(self) -> Sequence[range]:
        """Entries of the first outputs that it writes whatever the steps leave there."""
        return ()

    @abstractmethod
    def room(self, low: Lowered, l: Lanes) -> Room:
        """The room that the tail needs for samples of so many lanes."""

    @abstractmethod
    def write(self, f: IRFunction, place: TailPlace) -> None:
        """Writes the tail's code at the end of a function."""

    def seen(self, low: Lowered) -> Lowered:
        """The program as its callers see it."""
        n = len(low.outputs) - self.hidden
        pattern = low.pattern and low.pattern[:n]
        return low._replace(outputs=low.outputs[:n], stores=low.stores[:n], pattern=pattern)


def add_with_tail(m: Module, kernel: Kernel, tail: Tail) -> None:
    """@one or @many: the steps, then the tail. Short programs are one function, which has hidden outputs in
    registers."""
    ports, l, name, whole = kernel.ports, kernel.l, kernel.name, len(kernel.split.runs) == 1
    room, own = tail.room(kernel.low, l), {"scratch": ALONE, "status": ALONE}
    f = m.function(name, VOID, ports.arguments | own, attributes=' "stackrealign"')
    memory = f.scratch.at(whole_lines(kernel.split.slots, l) * l.bytes, I8)
    places = [Address("%hidden", k * l.bytes, own=True) for k in room.starts]
    if whole:
        places = [
            x._replace(base=memory.text) if k in room.stays else Address("", registers={}, own=True)
            for k, x in enumerate(places)
        ]
    outputs = [_column(f, x, l, memory) for x in ports.outputs]
    hidden = [_column(f, x, l, memory) for x in places]
    work = memory.at(room.size * l.bytes, I8)
    place = TailPlace(l, tuple(outputs), tuple(hidden), memory, work, f.status, kernel.target.fma)
    more = {} if whole else {"hidden": ALONE}
    left = [*tail.written, *[range(0)] * len(ports.outputs)]
    seen = [x._replace(left={*r, *x.left}) for x, r in zip(ports.outputs, left)]
    wider = ports._replace(outputs=seen + places, arguments=ports.arguments | more)
    steps = type(kernel)(kernel.low, kernel.target, kernel.split, wider)
    if whole:
        FunctionBody(steps, f).write(steps.split.runs[0])
    else:
        steps.add(m, f"{name}_steps")
        passed = f.arguments | {"hidden": memory}
        f.call(VOID, f"{name}_steps", *(passed[x] for x in (*wider.arguments, *own)))
    tail.write(f, place)
    f.ret()


def _column(f: IRFunction, x: Address, l: Lanes, memory: Value) -> Column:
    if x.registers is not None:
        return Column(f.status, l, x.registers)
    start = memory if x.base == "%hidden" else Value(f, PTR, x.base)
    return Column(start.at(x.offset, I8) if x.offset else start, l)
