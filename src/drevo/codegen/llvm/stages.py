"""Stages, straight-line code over blocks of memory, and a tile that is computed by them.

What calls stages is written with the builder: loops until every lane has what it wants, branches round what no
lane needs, sweeps over the bodies of a tree. A stage stands in line in a loop, or is a function of the module.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from ..graph.program import Program
from ..lower.loops import CHOSEN_BLOCK, BlockLayout, port_place
from ..lower.lower import Lowered, lower
from ..lower.split import SplitSteps, split_functions
from ..lower.steps import operands, step_results
from .ir import F64, I8, I64, PTR, VOID, IRFunction, Module, Value, literal
from .kernel import FunctionBody, Kernel
from .math import Lanes
from .ports import ALONE, Address, Arena, Ports, Target, arena_of, tile_ports


class Stages(NamedTuple):
    """blocks: sizes of the working memory's parts, in values. parts: the stages by name. drive: writes the calls.
    tested: stages whose results are tested though they are none of the whole.

    Ports of a stage are named by blocks, or are a Place; CHOSEN_BLOCK is what each call chooses. rows: results
    that the calls write themselves into the caller's rows, at `row`; no stage does.
    """

    blocks: Mapping[str, int]
    parts: Mapping[str, Program]
    drive: Callable[[StageCalls], None]
    tested: Sequence[str] = ()
    rows: Sequence[str] = ()

    @property
    def steps(self) -> int:
        """About how many one sample takes: every stage once."""
        return sum(len(part.order()) for part in self.parts.values())


class StageCalls:
    """The function of a tile under construction, or a routine of it. `f`: its builder, `l`: lanes of a value.
    checked: whether results are tested. fma: whether the machine multiplies and adds at once."""

    def __init__(
        self, f: IRFunction, l: Lanes, places: Mapping[str, tuple[str, int]], work: Value, checked: bool, fma: bool
    ) -> None:
        self.f, self.l, self.places, self.work, self.checked, self.fma = f, l, places, work, checked, fma

    def _given(self) -> list[Value]:
        f = self.f
        return [f.arguments["in"], f.arguments["out"], self.work]

    def call(self, stage: str, here: str | Value = "") -> None:
        """A stage; here: the block that it calls so, or an address."""
        place = here if isinstance(here, Value) else self.at(here) if here else self.work
        self.f.call(VOID, self._known(f"stage_{stage}"), *self._given(), place, self.f.scratch, self.f.status)

    def routine(self, name: str, write: Callable[[StageCalls], None]) -> None:
        """Calls of their own, to be made by `run` from several places."""
        f = self.f.module.function(f"routine_{name}", VOID, {x: y.type for x, y in self.f.arguments.items()})
        write(StageCalls(f, self.l, self.places, f.scratch, self.checked, self.fma))
        f.ret()

    def run(self, name: str) -> None:
        self.f.call(VOID, self._known(f"routine_{name}"), *self.f.arguments.values())

    def _known(self, function: str) -> str:
        """The name of a function of the module; KeyError where there is none."""
        if function not in self.f.module.functions:
            raise KeyError(function)
        return function

    def at(self, block: str, k: int = 0) -> Value:
        """The address of a value of a block, or of an argument or result of the whole."""
        name, offset = self.places[block]
        base = self.work if name == "work" else self.f.arguments[name]
        return base.at(offset + k * self.l.bytes, I8)

    def load(self, block: str, k: int = 0) -> Value:
        return self.at(block, k).load(self.l.type, self.l.bytes)

    def fill(self, x: float, block: str, first: int, count: int) -> None:
        """Stores one number in `count` values of a block, from its value `first` on."""
        for k in range(first, first + count):
            self.at(block, k).store(self.f.const(self.l.type, x), self.l.bytes)

    def table(self, kind: str, values: Sequence[float]) -> Value:
        """The address of a table of constants; equal ones are one."""
        name = f"table_{kind}_{sha256(array('d' if kind == F64 else 'q', values)).hexdigest()[:16]}"
        if name not in self.f.module.data:
            self.f.module.constant(name, kind, [literal(x) if kind == F64 else str(x) for x in values])
        return Value(self.f, PTR, f"@{name}")

    def row(self, result: str, sample: Value) -> Value:
        """The address of a sample's row of a result of `rows`; sample: its lane."""
        given = self.f.arguments
        return given[f"rows_{result}"].at((given["b"] + sample) * given[f"stride_{result}"], I8)

    def any(self, where: Value) -> Value:
        """True if a condition holds in some lane."""
        if self.l.lanes == 1:
            return where
        return where.cast("bitcast", f"i{self.l.lanes}").differs(0)

    def some_below(self, block: str, k: int = 0) -> Value:
        """True if a value is negative in some lane."""
        return self.any(self.load(block, k) < 0.0)

    def some_above(self, block: str) -> Value:
        return self.any(self.load(block, 0) > 0.0)


def emit_stages(
    low: Lowered, target: Target, layout: str, entry: Callable[..., None], driver: Callable[..., None]
) -> tuple[str, Arena]:
    """The module of a program in stages, of tiles alone; and its memory."""
    stages: Stages = low.stages
    m, l = Module(), target.of(target.lanes)
    symbols = any(p.name == "parameters" for p in low.inputs)
    made = {name: _lowered(part, target, symbols) for name, part in stages.parts.items()}
    blocks = BlockLayout(stages.blocks, max(split.slots for _, split in made.values()))
    at = {CHOSEN_BLOCK: (CHOSEN_BLOCK, 0)} | {x: ("work", k * l.bytes) for x, k in blocks.starts.items()}
    arena = arena_of(low, target, blocks.end, layout)
    whole = tile_ports(low, l, arena)
    assert not {p.name for p in low.inputs} & {p.name for p in low.outputs}  # stages find memory by name alone
    for ports, found in ((low.inputs, whole.inputs), (low.outputs, whole.outputs)):
        at |= {p.name: (x.base[1:], x.offset) for p, x in zip(ports, found)}
    for name, (part, split) in made.items():
        tested = target._replace(
            prefetch=False, check=target.check and (_makes(part, at) or name in stages.tested)
        )
        _add_stage(m, name, part, split, tested, l, at)
    own = {f"{x}_{name}": kind for name in stages.rows for x, kind in (("rows", PTR), ("stride", I64))}
    given = whole.arguments | {"scratch": ALONE, "status": ALONE} | own | ({"b": I64, "last": I64} if own else {})
    f = m.function("many", VOID, given, attributes=' "stackrealign"')
    stages.drive(StageCalls(f, l, at, f.scratch, target.check, target.fma))
    f.ret()
    driver(m, low, target, arena, layout)
    entry(m, low, target, arena, 0)
    return m.text(), arena


def _lowered(part: Program, target: Target, symbols: bool) -> tuple[Lowered, SplitSteps]:
    """One function where it writes over what it reads, for then a value is read but once."""
    low = lower(part, parameters=symbols, fma=target.fma)
    return low, split_functions(low, max(1, len(low.steps)) if _in_place(low) else target.chunk)


def _place(port: str, k: int) -> tuple[str, int]:
    """The block and the value in it that entry k of a port is."""
    place = port_place(port)
    return place.block, place.first + k


def _in_place(low: Lowered) -> dict[int, int]:
    """Inputs that outputs are stored over, each with the value that is."""
    over = {_place(p.name, k): e >> 1 for p, edges in zip(low.outputs, low.stores) for k, e in enumerate(edges)}
    read = {e >> 1 for step in low.steps for e in operands(step)} | set(over.values())
    at = {v: _place(low.inputs[i].name, k) for v, (i, k) in low.where.items() if v in read}
    return {v: over[x] for v, x in at.items() if x in over}


def _early(low: Lowered) -> list[int]:
    """Those of them that need not have been read when they are stored over."""
    over = _in_place(low)
    bits = {v: 1 << k for k, v in enumerate(over)}
    reads = dict(bits)  # by value, the bits of those that it is made of, and its own
    for step in low.steps:
        bits_read = 0
        for e in operands(step):
            bits_read |= reads.get(e >> 1, 0)
        for v in step_results(step):
            reads[v] = bits_read | bits.get(v, 0)
    return [v for v, new in over.items() if not reads.get(new, 0) & bits[v]]


def _makes(low: Lowered, at: Mapping[str, tuple[str, int]]) -> bool:
    """True if a stage writes results, or tests quaternions."""
    return bool(low.units) or any(at[port_place(p.name).block][0] == "out" for p in low.outputs)


def _add_stage(
    m: Module,
    name: str,
    low: Lowered,
    split: SplitSteps,
    target: Target,
    l: Lanes,
    at: Mapping[str, tuple[str, int]],
) -> None:
    def address(port: str, _: bool) -> Address:
        block, k = _place(port, 0)
        base, offset = at[block]
        return Address(f"%{base}", offset + k * l.bytes)

    arguments = dict.fromkeys(("in", "out", "work", CHOSEN_BLOCK), "ptr")
    kernel = Kernel(low, target, split, _ports(low, l, address)._replace(arguments=arguments))
    kernel.early = _early(low)
    kernel.add(m, f"stage_{name}")


def _ports(low: Lowered, l: Lanes, address: Callable[[str, bool], Address]) -> Ports:
    """The ports of a stage by the addresses of their names, where they are read or (True) written."""
    inputs = [address(p.name, False) for p in low.inputs]
    return Ports(l, inputs, [address(p.name, True) for p in low.outputs], {}, l.bytes, True)


# -- in line --------------------------------------------------------------------------------------------------


class MemoryBlock(NamedTuple):
    """A block under a stage. base: the address of its first entry; stride: bytes from entry to entry, 0 where they
    are side by side; shared: one number each for all lanes; result: what is stored there is tested."""

    base: Value
    stride: int = 0
    shared: bool = False
    result: bool = False

    def address(self, first: int, l: Lanes) -> Address:
        """The address of the entries from `first` on."""
        each = self.stride or (l.size if self.shared else l.bytes)
        shared = self.shared and l.lanes > 1
        return Address(self.base.at(first * each, I8).text, shared=shared, pitch=self.stride)


def write_stage(
    f: IRFunction,
    low: Lowered,
    target: Target,
    l: Lanes,
    blocks: Mapping[tuple[str, int], MemoryBlock],
    align: int = 0,
    registers: tuple[str, dict[int, str]] | None = None,
) -> None:
    """A stage in line, over blocks by name and number.

    registers: a block that is not in memory, and the names of its values by place, before it and then after.
    """
    before = dict(registers[1]) if registers else {}

    def address(port: str, written: bool) -> Address:
        place = port_place(port)
        if registers and place.block == registers[0]:
            return Address("", place.first, registers=registers[1] if written else before)
        return blocks[place.home].address(place.first, l)

    ports = _ports(low, l, address)
    kernel = Kernel(low, target, split_functions(low, len(low.steps)), ports._replace(align=align or l.bytes))
    kept = registers[0] if registers else None
    tested = [x.block != kept and blocks[x.home].result for x in map(port_place, (p.name for p in low.outputs))]
    kernel.ends = {v for v, sinks in kernel.sinks.items() if any(tested[i] for i, _, _ in sinks)}
    FunctionBody(kernel, f, stem=f.fresh("step") + "_").write(low.steps)
