"""Loops over bodies as LLVM text: the step of one body is emitted once per kind, whatever the number of bodies.

A model is data: a table of numbers and a table of integers per body. State lies body by body in slots of any
size; slot 0 is the ground, set afresh before every loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .cut import cut
from .llvm_kernel import Body, Kernel
from .llvm_math import Lanes
from .llvm_target import Target, arena
from .lower import Lowered

# per body, i32; parent and own: first scalar of the slot; up: number of the parent, or -1
INTEGERS = ("kind", "parent", "own", "q", "v", "up")
MODEL = (  # words behind the model pointer; sizes of the results; first: where a walk up a path begins
    "ground", "table", "integers", "bodies", "rows", "nq", "nv", "state", "lock", "slots", "loads", "first",
    "size0", "size1", "size2",
)  # fmt: skip
LONG = 2048  # bodies from which a batch runs sample by sample: the state of a tile would leave the cache
_NAMES = re.compile(r"%(t|n|in|out)(\d)")


class Place(NamedTuple):
    """Where a port of a step lies, and its first scalar there.

    base: "table"; "own", "parent" or "ground", the slots; "sines", "cosines", of q; "arg0", ..; "out0", .. from
    its start; "result", the last at the body's v, "rates", the first at its q; "row0", .. of a matrix, at v; in a
    loop over pairs "upper", the slot of the other, and "pair0", "mirror0", .. of the results (v, v).
    """

    base: str
    offset: int = 0


class Step(NamedTuple):
    """The work on one body of one kind in one loop."""

    low: Lowered
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


class Loop(NamedTuple):
    """One sweep; `steps` by kind.

    over: "bodies"; "rows", which follow them in the tables (loads, links, freedoms); "path", from the body `first`
    up to the ground; "once". fresh: the ground's slot is set before it. inner: of every row with itself and those
    on its way up.
    """

    backward: bool
    steps: tuple[Step, ...]
    over: str = "bodies"
    fresh: bool = True
    inner: Step | None = None


class Rolled(NamedTuple):
    """All sweeps of a quantity. ground: scalars of slot 0; table: numbers per body.

    turning: sines and cosines of all q are formed before the sweeps, many at once, into the end of the state.
    loaded: external wrenches, six numbers each, are a last argument, gathered after the sines and cosines.
    tiled: batches go many lanes at a time; without, sample by sample, and half as much code is made.
    results: scalars of each, 0 where that depends on the model. zeroed: what no step writes is 0.
    """

    loops: tuple[Loop, ...]
    arguments: tuple[str, ...]
    ground: int
    table: int
    turning: bool = True
    loaded: bool = False
    tiled: bool = True
    results: tuple[int, ...] = (0,)
    zeroed: bool = False

    @property
    def outs(self) -> list[str]:
        return [f"out{i}" for i in range(len(self.results))]


class _Block(Body):
    """The text of a step inside a loop, its names made its own by a prefix."""

    def __init__(self, step: Step, target: Target, lanes: int, prefix: str) -> None:
        low = step.low
        kernel = Kernel(low, target, lanes, cut(low, max(1, len(low.steps))), arena(low, target, 0))
        kernel.scalar = True  # every port has its own pointer
        kernel.ends = set(kernel.sinks)  # a state is no end
        super().__init__(kernel, 0)
        self.at, self.prefix, self.checked = step, prefix, False

    def text(self, loop: str) -> list[str]:
        out = [self.pointer(f"in{i}", place, loop) for i, place in enumerate(self.at.inputs)]
        out += [self.pointer(f"out{i}", place, loop) for i, place in enumerate(self.at.outputs)]
        lines = self.lines(self.k.low.steps)
        return out + [_NAMES.sub(rf"%{self.prefix}\1\2", line) for line in lines]

    def pointer(self, name: str, place: Place, loop: str) -> str:
        size = self.l.size if place.base == "table" else self.l.bytes
        base = f"%{loop}_{place.base}"
        return f"  %{self.prefix}{name} = getelementptr i8, ptr {base}, i64 {place.offset * size}"

    def load(self, value: int, base: str, offset: int) -> None:
        """Numbers of the table are the same for every lane."""
        l = self.l
        if l.lanes == 1 or self.at.inputs[int(base[3:])].base != "table":
            return super().load(value, base, offset)
        number = self.fresh(f"load {l.scalar}, ptr {self.address(base, offset // l.lanes)}, align {l.size}")
        self.out += spread(l, number, f"%t{value}")
        return None

    def constants(self) -> None:
        if self.l.lanes == 1:
            return super().constants()
        for i, edges in enumerate(self.k.low.stores):
            for k, e in enumerate(edges):
                x = self.k.low.constants.get(e >> 1)
                if x is not None:
                    address = self.address(f"%out{i}", k * self.l.bytes)
                    text = self.l.const(-x if e & 1 else x)
                    self.out.append(f"  store {self.l.type} {text}, ptr {address}, align {self.l.bytes}")
        return None

    def sink(self, v: int) -> None:
        """Only results are tested: what is not finite in a state reaches them."""
        places = [self.at.outputs[i].base for i, _, _ in self.k.sinks.get(v, ())]
        self.checked = any(x not in ("own", "parent", "ground") for x in places)
        super().sink(v)

    def test(self, value: str) -> None:
        if self.checked:
            super().test(value)


def spread(l: Lanes, number: str, name: str) -> list[str]:
    """The lines that make a vector of one number."""
    first = f"{name}_first"
    return [
        f"  {first} = insertelement {l.type} poison, {l.scalar} {number}, i64 0",
        f"  {name} = shufflevector {l.type} {first}, {l.type} poison, <{l.lanes} x i32> zeroinitializer",
    ]


# -- the kernel of one width --------------------------------------------------------------------------------


def field_of(name: str, word: str, kind: str = "ptr") -> list[str]:
    return [
        f"  %at_{name} = getelementptr i64, ptr %model, i64 {MODEL.index(word)}",
        f"  %{name} = load {kind}, ptr %at_{name}",
    ]


def kernel(rolled: Rolled, target: Target, lanes: int) -> str:
    """void @bodies_<lanes>(model, state, arguments, result, status)."""
    l = target.of(lanes)
    names = ("model", "state", *argument_names(rolled), *rolled.outs, "status")
    out = [f"define internal void @bodies_{lanes}({pointers_text(names)}) noinline{_aligned(lanes)} {{", "start:"]
    out += [*field_of("ground", "ground"), *field_of("numbers", "table"), *field_of("integers", "integers")]
    out += [*field_of("n", "bodies", "i64"), *field_of("more", "rows", "i64"), "  %rows = add i64 %n, %more"]
    out += [*field_of("nv", "nv", "i64"), *field_of("first", "first", "i64"), *_angles(rolled, l)]
    for i, name in enumerate(rolled.outs if rolled.zeroed else ()):
        out += [*field_of(f"size{i}", f"size{i}", "i64"), f"  %bytes{i} = mul i64 %size{i}, {l.bytes}"]
        out.append(f"  call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 %bytes{i}, i1 false)")
    out += ["  %last = sub i64 %n, 1", "  br label %g0"]
    for k, loop in enumerate(rolled.loops):
        out += [f"g{k}:"]
        if loop.fresh:
            out.append(f"  call void @ground_{lanes}(ptr %ground, ptr %state)")
        out += _loop(rolled, loop, k, target, lanes)
    return "\n".join([*out, f"g{len(rolled.loops)}:", "  ret void", "}\n"])


def pointers_text(names: Iterable[str]) -> str:
    return ", ".join(f"ptr %{name}" for name in names)


def _angles(rolled: Rolled, l: Lanes) -> list[str]:
    """Room for the sines and the cosines of q, and the call that fills it."""
    out = [*field_of("slots", "slots", "i64"), *field_of("nq", "nq", "i64")]
    out += [f"  %sines = getelementptr {l.type}, ptr %state, i64 %slots"]
    out += [f"  %cosines = getelementptr {l.type}, ptr %sines, i64 %nq"]
    if rolled.turning:
        i = rolled.arguments.index("q")
        out.append(f"  call void @angles_{l.lanes}(ptr %arg{i}, ptr %sines, ptr %cosines, i64 %nq)")
    return out


def angles(kernel: Lanes, l: Lanes) -> str:
    """void @angles_<lanes>: values of the kernel's width from q, as many lanes of l at once.

    One sample: the last block is moved back to the end and writes some values twice, with the same bits.
    """
    step = l.lanes // kernel.lanes
    given = "ptr %q, ptr %sines, ptr %cosines, i64 %n"
    out = [f"define internal void @angles_{kernel.lanes}({given}) noinline {{", "start:"]
    out += [
        f"  %end = sub i64 %n, {step}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %start], [%next, %loop]",
    ]
    out += ["  %j = call i64 @llvm.smin.i64(i64 %i, i64 %end)"]
    out += [f"  %p{x} = getelementptr {kernel.type}, ptr %{x}, i64 %j" for x in ("q", "sines", "cosines")]
    out += [f"  %x = load {l.type}, ptr %pq, align {kernel.bytes}"]
    pair = f"{{{l.type}, {l.type}}}"
    out += [f"  %both = call {pair} @sincos_{l.lanes}({l.type} %x)"]
    for i, x in enumerate(("sines", "cosines")):
        out += [f"  %v{x} = extractvalue {pair} %both, {i}"]
        out += [f"  store {l.type} %v{x}, ptr %p{x}, align {kernel.bytes}"]
    out += [f"  %next = add i64 %i, {step}", "  %more = icmp slt i64 %next, %n"]
    return "\n".join([*out, "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}\n"])


def _aligned(lanes: int) -> str:
    return "" if lanes == 1 else ' "stackrealign"'


def argument_names(rolled: Rolled) -> list[str]:
    """The arguments of a kernel; the wrenches, one after the other, are the last."""
    return [f"arg{i}" for i in range(len(rolled.arguments) + rolled.loaded)]


def ground(rolled: Rolled, l: Lanes) -> str:
    """void @ground_<lanes>(numbers, state)."""
    out = [f"define internal void @ground_{l.lanes}(ptr %table, ptr %state) noinline {{"]
    for k in range(rolled.ground):
        out += [f"  %a{k} = getelementptr {l.scalar}, ptr %table, i64 {k}"]
        out += [f"  %x{k} = load {l.scalar}, ptr %a{k}, align {l.size}"]
        out += [f"  %b{k} = getelementptr {l.type}, ptr %state, i64 {k}"]
        name = f"%x{k}"
        if l.lanes > 1:
            name = f"%y{k}"
            out += spread(l, f"%x{k}", name)
        out.append(f"  store {l.type} {name}, ptr %b{k}, align {l.bytes}")
    return "\n".join([*out, "  ret void", "}\n"])


def _loop(rolled: Rolled, loop: Loop, k: int, target: Target, lanes: int) -> list[str]:
    """Head with the pointers of a body, a switch over the kinds, and the way to the next body."""
    x, l = f"l{k}", target.of(lanes)
    first, stop = {"rows": ("%n", "%rows"), "once": ("0", "1"), "path": ("%first", "-1")}.get(
        loop.over, ("%last", "-1") if loop.backward else ("0", "%n")
    )
    cases = " ".join(f"i64 {c}, label %{x}c{c}" for c in range(1, len(loop.steps)))
    jump = f"switch i64 %{x}_kind, label %{x}c0 [{cases}]" if cases else f"br label %{x}c0"
    out = [f"  %{x}_some = icmp ne i64 {first}, {stop}", f"  br i1 %{x}_some, label %{x}, label %g{k + 1}"]
    out += [f"{x}:", f"  %{x}_i = phi i64 [{first}, %g{k}], [%{x}_j, %{x}end]"]
    out += [*_integers(x, f"%{x}_i"), *_bases(rolled, x, loop.steps, l), f"  {jump}"]
    after = f"{x}in" if loop.inner else f"{x}end"
    for c, body in enumerate(loop.steps):
        out += [f"{x}c{c}:", *_Block(body, target, lanes, f"{x}c{c}_").text(x), f"  br label %{after}"]
    if loop.inner:
        out += _inner(rolled, loop.inner, x, target, lanes)
    following = (
        f"add i64 %{x}_at_up, 0" if loop.over == "path" else f"add i64 %{x}_i, {-1 if loop.backward else 1}"
    )
    out += [f"{x}end:", f"  %{x}_j = {following}", f"  %{x}_more = icmp ne i64 %{x}_j, {stop}"]
    return [*out, f"  br i1 %{x}_more, label %{x}, label %g{k + 1}"]


def _inner(rolled: Rolled, step: Step, x: str, target: Target, lanes: int) -> list[str]:
    """Of the row %<x>_i: the rows from itself up its way."""
    y = f"{x}in"
    out = [f"{y}:", f"  %{y}_i = phi i64 [%{x}_i, %{x}c0], [%{y}_j, %{y}]", *_integers(y, f"%{y}_i")]
    out += [f"  %{y}_line = mul i64 %{x}_at_v, %nv", f"  %{y}_entry = add i64 %{y}_line, %{y}_at_v"]
    out += [f"  %{y}_column = mul i64 %{y}_at_v, %nv", f"  %{y}_mirrored = add i64 %{y}_column, %{x}_at_v"]
    out += [*_bases(rolled, y, [step], target.of(lanes)), *_Block(step, target, lanes, f"{y}_").text(y)]
    out += [f"  %{y}_j = add i64 %{y}_at_up, 0", f"  %{y}_more = icmp ne i64 %{y}_j, -1"]
    return [*out, f"  br i1 %{y}_more, label %{y}, label %{x}end"]


def _integers(x: str, index: str) -> list[str]:
    out = [f"  %{x}_ints = getelementptr [{len(INTEGERS)} x i32], ptr %integers, i64 {index}"]
    for i, name in enumerate(INTEGERS):
        out += [
            f"  %{x}_p{i} = getelementptr i32, ptr %{x}_ints, i64 {i}",
            f"  %{x}_w{i} = load i32, ptr %{x}_p{i}",
        ]
        wider = "sext" if name == "up" else "zext"
        out += [f"  %{x}_{name if name == 'kind' else f'at_{name}'} = {wider} i32 %{x}_w{i} to i64"]
    return out


def _bases(rolled: Rolled, x: str, steps: Sequence[Step], l: Lanes) -> list[str]:
    """The pointers that some steps count their places from."""
    names = dict.fromkeys(place.base for s in steps for place in (*s.inputs, *s.outputs))
    return [line for name in names for line in _base(rolled, x, name, l)]


def _base(rolled: Rolled, x: str, name: str, l: Lanes) -> list[str]:
    if name == "table":
        return [f"  %{x}_table = getelementptr [{rolled.table} x {l.scalar}], ptr %numbers, i64 %{x}_i"]
    if name.startswith("row"):  # of a matrix with nv columns
        out = [f"  %{x}_{name}_o = mul i64 %nv, {name[3:]}", f"  %{x}_{name}_c = add i64 %{x}_{name}_o, %{x}_at_v"]
        return [*out, f"  %{x}_{name} = getelementptr {l.type}, ptr %out0, i64 %{x}_{name}_c"]
    at = f"%{x}_at_v"
    if name.startswith("arg"):
        given = [*rolled.arguments, "loads"][int(name[3:])]
        return [f"  %{x}_{name} = getelementptr {l.type}, ptr %{name}, i64 %{x}_at_{'q' if given == 'q' else 'v'}"]
    pointer, index = {
        "own": ("state", f"%{x}_at_own"), "parent": ("state", f"%{x}_at_parent"), "ground": ("state", "0"),
        "upper": ("state", f"%{x}_at_own"), "sines": ("sines", f"%{x}_at_q"), "cosines": ("cosines", f"%{x}_at_q"),
        "result": (rolled.outs[-1], at), "rates": ("out0", f"%{x}_at_q"),
    }.get(name, (name.replace("pair", "out").replace("mirror", "out"), "0"))  # fmt: skip
    index = {"pair": f"%{x}_entry", "mirr": f"%{x}_mirrored"}.get(name[:4], index)
    return [f"  %{x}_{name} = getelementptr {l.type}, ptr %{pointer}, i64 {index}"]


__all__ = ["INTEGERS", "LONG", "MODEL", "Loop", "Place", "Rolled", "Step", "kernel"]
