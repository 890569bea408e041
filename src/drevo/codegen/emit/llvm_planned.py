"""Tiles whose registers are planned: what leaves them is stored, and loaded again, where the plan says so.

Loads and stores of the plan are volatile: LLVM would undo them, as it keeps one value of a constant.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from .ir import IRFunction, Value, literal
from .llvm_kernel import FunctionBody, Kernel
from .llvm_ports import ALONE, Address
from .registers import Departures, departures, grouped
from .steps import Step

LONG = 600  # steps; the registers of shorter code are soon found


class PlannedKernel(Kernel):
    """Of a target whose registers are known."""

    def body(self, f: IRFunction, index: int = 0) -> FunctionBody:
        return PlannedBody(self, f, index)


class PlannedBody(FunctionBody):
    """homes: where values are that leave the registers. gone: those that have once. again: names of what was
    loaded again, and of constants."""

    def __init__(self, kernel: Kernel, f: IRFunction, index: int = 0) -> None:
        super().__init__(kernel, f, index)
        self.plan: Departures | None = None
        self.homes: dict[int, Address] = {}
        self.gone: set[int] = set()
        self.again: dict[int, str] = {}

    def steps(self, run: Sequence[Step]) -> None:
        if len(run) <= LONG:
            super().steps(run)
            return
        groups = list(grouped(run))
        self.homes = self.in_memory()
        self.plan = departures(groups, self.k.target.registers, {*self.k.low.constants, *self.homes})
        room = self.f.alloca(self.l.type, self.plan.slots).text
        self.homes |= {v: Address(room, n * self.l.bytes) for v, n in self.plan.slot.items()}
        for group, values in zip(groups, self.plan.after):
            if len(group) > 1:
                self.sines_of_two(group)
            else:
                self.step(group[0])
            for v in values:
                self.leave(v, self.plan.slot)

    def in_memory(self) -> dict[int, Address]:
        """Values that stay where they are read from: of inputs those that no output is stored over."""
        k, size = self.k, self.l.bytes
        found = {v: Address("%scratch", n * size) for v, n in k.split.slot.items()}
        found |= {v: Address("%frame", n * size) for v, n in self.frame.items()}
        for v, (port, column) in k.low.where.items():
            x = k.ports.inputs[port]
            if k.ports.arguments.get(x.base[1:]) == ALONE and not (x.step or x.shared or x.pitch):
                found[v] = x._replace(offset=x.offset + column * size)
        return found

    def leave(self, v: int, slot: Container[int]) -> None:
        if v not in self.made:
            return  # a guard alone reads it, and nothing is tested
        if v in slot and v not in self.gone:
            self.out.append(f"  store volatile {self.l.type} {self.value}{v}, {self.home(v)}")
        self.gone.add(v)
        self.made.remove(v)
        self.again.pop(v, None)

    def home(self, v: int) -> str:
        x = self.homes[v]
        return f"ptr {self.address(x.base, x.offset)}, align {self.l.bytes}"

    def operand(self, edge: int) -> str:
        v = edge >> 1
        constant = self.k.low.constants.get(v) if self.plan else None
        if v not in self.made and (constant is not None or v in self.gone):
            self.made.add(v)
            if constant is not None:
                self.again[v] = self.number(constant)
            else:
                self.again[v] = self.fresh(f"load volatile {self.l.type}, {self.home(v)}")
        name = self.again.get(v)
        if name is None:
            return super().operand(edge)
        return self.fresh(f"fneg {self.l.type} {name}") if edge & 1 else name

    def number(self, x: float) -> str:
        """A constant out of memory, which one instruction reads into all lanes."""
        kind, size = self.l.scalar, self.l.size
        at = self.address("@numbers", size * self.f.module.number(kind, literal(x, kind)))
        one = self.fresh(f"load volatile {kind}, ptr {at}, align {size}")
        return Value(self.f, kind, one).splat(self.l.lanes).text
