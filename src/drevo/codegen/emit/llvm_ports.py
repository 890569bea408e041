"""How a kernel reaches its inputs and outputs: of one sample, in a tile, in the caller's own columns."""

from __future__ import annotations

from typing import NamedTuple

from .ir import I8, I64, IRFunction, Value
from .llvm_math import Lanes
from .llvm_target import Arena
from .lower import Lowered

ALONE = "ptr noalias"


class Address(NamedTuple):
    """Of the first column of a port: some bytes after a pointer. The others follow by their size.

    step: they are rows of a batch, that many bytes apart. pitch: so many bytes lie between columns, where they are
    not side by side. shared: one number for all lanes. registers: values by their names, by `offset` plus column,
    in place of memory. own: no driver knows it. left: entries that are written by others.
    """

    base: str
    offset: int = 0
    step: str = ""
    shared: bool = False
    registers: dict[int, str] | None = None
    pitch: int = 0
    own: bool = False
    left: range = range(0)


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
    """Of one sample: a pointer to each port, values side by side."""
    inputs = [Address(f"%in{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}") for i in range(len(low.outputs))]
    return Ports(l, inputs, outputs, {x.base[1:]: ALONE for x in inputs + outputs}, l.bytes, True)


def tile_ports(l: Lanes, arena: Arena) -> Ports:
    """Of a tile: one pointer to all inputs and one to all outputs, at fixed places in the arena."""
    inputs = [Address("%in", at) for at in arena.inputs]
    outputs = [Address("%out", at - arena.outputs[0]) for at in arena.outputs]
    return Ports(l, inputs, outputs, {"in": ALONE, "out": ALONE}, l.bytes)


def column_ports(low: Lowered, l: Lanes) -> Ports:
    """Of the caller's own batch-last arrays: per port a pointer and the bytes from row to row."""
    inputs = [Address(f"%in{i}", 0, f"%in_step{i}") for i in range(len(low.inputs))]
    outputs = [Address(f"%out{i}", 0, f"%out_step{i}") for i in range(len(low.outputs))]
    arguments = {name[1:]: kind for x in inputs + outputs for name, kind in ((x.base, ALONE), (x.step, I64))}
    return Ports(l, inputs, outputs, arguments, l.size)
