"""Access of a kernel to its inputs and outputs: of one sample, in a tile, in the caller's own columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..lower.lower import Lowered
from .ir import I8, I64, IRFunction, Value
from .math import Lanes
from .target import Arena

PASSED = 8  # columns: fewer go with the tile
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

    def shifted(self, f: IRFunction, columns: int) -> dict[str, Value]:
        """The arguments for outputs, moved on by some columns."""
        found = {}
        for name, step in {x.base[1:]: x.step[1:] for x in self.outputs}.items():
            size = f.arguments[step] * columns if step else columns * self.l.bytes
            found[name] = f.arguments[name].at(size, I8)
        return found


def sample_ports(low: Lowered, l: Lanes) -> Ports:
    """The ports for one sample: a pointer to each port, values side by side."""
    inputs = [Address(f"%in{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}") for i in range(len(low.outputs))]
    return Ports(l, inputs, outputs, {x.base[1:]: ALONE for x in inputs + outputs}, l.bytes, True)


class Passed(NamedTuple):
    """Columns of a result, from `to` on, that are those of an argument from `first` on."""

    to: int
    port: int
    first: int
    width: int


def passed_columns(low: Lowered, port: int) -> list[Passed]:
    """The end of a result that is only passed on, where it has at least PASSED columns: rows go as they are."""
    found, end = list[Passed](), len(low.stores[port])
    for k in range(end - 1 if low.stages is None else -1, -1, -1):
        edge = low.stores[port][k]
        at = None if edge & 1 else low.where.get(edge >> 1)
        if at is None:
            break
        last = found.pop() if found and at == (found[-1].port, found[-1].first - 1) else Passed(k, *at, 0)
        found.append(Passed(k, *at, last.width + 1))
    return found if found and end - found[-1].to >= PASSED else []


def computed_columns(low: Lowered, port: int) -> int:
    """Number of columns of a result before those that are only passed on."""
    return min((x.to for x in passed_columns(low, port)), default=low.outputs[port].size)


def tile_ports(low: Lowered, l: Lanes, arena: Arena) -> Ports:
    """The ports for a tile: one pointer to all inputs and one to all outputs, at fixed places in the arena."""
    inputs = [Address("%in", at) for at in arena.inputs]
    outputs = [
        Address("%out", at - arena.outputs[0], left=range(computed_columns(low, i), low.outputs[i].size))
        for i, at in enumerate(arena.outputs)
    ]
    return Ports(l, inputs, outputs, {"in": ALONE, "out": ALONE}, l.bytes)


def column_ports(low: Lowered, l: Lanes) -> Ports:
    """The ports for the caller's own batch-last arrays: per port a pointer and the bytes from row to row."""
    inputs = [Address(f"%in{i}", 0, f"%in_step{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}", 0, f"%out_step{i}") for i in range(len(low.outputs))]
    arguments = {name[1:]: kind for x in inputs + outputs for name, kind in ((x.base, ALONE), (x.step, I64))}
    return Ports(l, inputs, outputs, arguments, l.size)
