"""How a kernel reaches its inputs and outputs: of one sample, in a tile, in the caller's own columns."""

from __future__ import annotations

from typing import Protocol

from .ir import I8, I64, IRFunction, Value
from .llvm_math import Lanes
from .llvm_target import Arena
from .lower import Lowered

ALONE = "ptr noalias"
AHEAD = 512  # bytes along a batch-last array: more streams than the hardware follows


class StraightLine(Protocol):
    """What the ports write into: straight-line code."""

    out: list[str]
    value: str

    def fresh(self, text: str) -> str: ...

    def address(self, base: str, offset: int) -> str: ...

    def row(self, base: str, step: str, column: int) -> str: ...

    def load(self, v: int, base: str, offset: int, align: int = 0) -> None: ...


class Ports:
    """Of one sample: a pointer to each port, values side by side. align: of stores.

    fixed: constant outputs are the kernel's to write; no driver does it.
    """

    fixed = True

    def __init__(self, low: Lowered, l: Lanes) -> None:
        self.l, self.inputs, self.outputs = l, len(low.inputs), len(low.outputs)
        self.align = l.bytes

    @property
    def arguments(self) -> dict[str, str]:
        """Of every function of a kernel, but for the scratch and the status."""
        names = [f"in{i}" for i in range(self.inputs)] + [f"out{i}" for i in range(self.outputs)]
        return dict.fromkeys(names, ALONE)

    def load(self, body: StraightLine, v: int, port: int, column: int) -> None:
        """Value v is an input."""
        body.load(v, f"%in{port}", column * self.l.bytes)

    def place(self, body: StraightLine, port: int, column: int) -> str:
        """The address of an output."""
        return body.address(f"%out{port}", column * self.l.bytes)

    def shifted(self, f: IRFunction, columns: int) -> dict[str, Value]:
        """The arguments for outputs, moved on by some columns."""
        return {f"out{i}": f.arguments[f"out{i}"].at(self.step(f, i, columns), I8) for i in range(self.outputs)}

    def step(self, f: IRFunction, port: int, columns: int) -> Value:
        """Bytes from one output to that some columns on."""
        return f.const(I64, columns * self.l.bytes)


class TilePorts(Ports):
    """Of a tile: one pointer to all inputs and one to all outputs, at fixed places in the arena."""

    fixed = False

    def __init__(self, low: Lowered, l: Lanes, arena: Arena) -> None:
        super().__init__(low, l)
        self.arena = arena

    @property
    def arguments(self) -> dict[str, str]:
        return {"in": ALONE, "out": ALONE}

    def load(self, body: StraightLine, v: int, port: int, column: int) -> None:
        body.load(v, "%in", self.arena.inputs[port] + column * self.l.bytes)

    def place(self, body: StraightLine, port: int, column: int) -> str:
        first = self.arena.outputs[port] - self.arena.outputs[0]
        return body.address("%out", first + column * self.l.bytes)

    def shifted(self, f: IRFunction, columns: int) -> dict[str, Value]:
        return {"out": f.arguments["out"].at(columns * self.l.bytes, I8)}


class ColumnPorts(Ports):
    """Of the caller's own batch-last arrays: per port a pointer and the bytes from row to row."""

    fixed = False

    def __init__(self, low: Lowered, l: Lanes) -> None:
        super().__init__(low, l)
        self.align = l.size

    @property
    def arguments(self) -> dict[str, str]:
        inputs = {x: kind for i in range(self.inputs) for x, kind in ((f"in{i}", ALONE), (f"in_step{i}", I64))}
        return inputs | {
            x: kind for i in range(self.outputs) for x, kind in ((f"out{i}", ALONE), (f"out_step{i}", I64))
        }

    def load(self, body: StraightLine, v: int, port: int, column: int) -> None:
        """With a prefetch of what a later tile reads."""
        at = body.row(f"%in{port}", f"%in_step{port}", column)
        body.load(v, at, 0, self.l.size)
        body.out.append(f"  call void @llvm.prefetch.p0(ptr {body.address(at, AHEAD)}, i32 0, i32 2, i32 1)")

    def place(self, body: StraightLine, port: int, column: int) -> str:
        return body.row(f"%out{port}", f"%out_step{port}", column)

    def step(self, f: IRFunction, port: int, columns: int) -> Value:
        return f.arguments[f"out_step{port}"] * columns
