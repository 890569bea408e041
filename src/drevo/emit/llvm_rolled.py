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
from .llvm_math import Lanes, sines
from .llvm_rows import moves, width_of
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


def _field(name: str, word: str, kind: str = "ptr") -> list[str]:
    return [
        f"  %at_{name} = getelementptr i64, ptr %model, i64 {MODEL.index(word)}",
        f"  %{name} = load {kind}, ptr %at_{name}",
    ]


def kernel(rolled: Rolled, target: Target, lanes: int) -> str:
    """void @bodies_<lanes>(model, state, arguments, result, status)."""
    l = target.of(lanes)
    names = ("model", "state", *_pointers(rolled), *rolled.outs, "status")
    out = [f"define internal void @bodies_{lanes}({_given(names)}) noinline{_aligned(lanes)} {{", "start:"]
    out += [*_field("ground", "ground"), *_field("numbers", "table"), *_field("integers", "integers")]
    out += [*_field("n", "bodies", "i64"), *_field("more", "rows", "i64"), "  %rows = add i64 %n, %more"]
    out += [*_field("nv", "nv", "i64"), *_field("first", "first", "i64"), *_angles(rolled, l)]
    for i, name in enumerate(rolled.outs if rolled.zeroed else ()):
        out += [*_field(f"size{i}", f"size{i}", "i64"), f"  %bytes{i} = mul i64 %size{i}, {l.bytes}"]
        out.append(f"  call void @llvm.memset.p0.i64(ptr %{name}, i8 0, i64 %bytes{i}, i1 false)")
    out += ["  %last = sub i64 %n, 1", "  br label %g0"]
    for k, loop in enumerate(rolled.loops):
        out += [f"g{k}:"]
        if loop.fresh:
            out.append(f"  call void @ground_{lanes}(ptr %ground, ptr %state)")
        out += _loop(rolled, loop, k, target, lanes)
    return "\n".join([*out, f"g{len(rolled.loops)}:", "  ret void", "}\n"])


def _given(names: Iterable[str]) -> str:
    return ", ".join(f"ptr %{name}" for name in names)


def _angles(rolled: Rolled, l: Lanes) -> list[str]:
    """Room for the sines and the cosines of q, and the call that fills it."""
    out = [*_field("slots", "slots", "i64"), *_field("nq", "nq", "i64")]
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


def _pointers(rolled: Rolled) -> list[str]:
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


# -- the module ---------------------------------------------------------------------------------------------


def emit(rolled: Rolled, target: Target) -> str:
    """Exports @single (one sample) and @batch (rows, a tile of lanes at a time)."""
    one, many = target.of(1), target.of(target.lanes)
    parts = []
    for l in (one, many) if rolled.tiled else (one,):
        parts += [angles(l, many), ground(rolled, l), kernel(rolled, target, l.lanes)]
    if rolled.loaded:
        parts += [_room(one), _room(many), _gather(one), moves(many, [4]), _load_wrenches(many)]
    if rolled.tiled:
        widths = {many.lanes, *(_width(n, many) for n in rolled.results)} - ({4} if rolled.loaded else set())
        parts += [moves(many, widths)]
    text = "\n".join([*parts, _single(rolled, one), _batch(rolled, target)])
    return "\n".join([declarations(target), sines(text, (one, many), target.fma), text])


def declarations(target: Target) -> str:
    """What every module of loops calls."""
    out = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "declare i64 @llvm.smin.i64(i64, i64)"]
    out.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    for l in (target.of(1), target.of(target.lanes)):
        t = l.type
        out.append(f"declare {t} @llvm.fma.{l.suffix}({t}, {t}, {t})")
        out += [f"declare {t} @llvm.{f}.{l.suffix}({t})" for f in ("fabs", "sqrt")]
    return "\n".join(out) + "\n"


def _width(size: int, l: Lanes) -> int:
    """Of the blocks that a result is stored in."""
    return width_of(size, l.lanes) if size else l.lanes


def _room(l: Lanes) -> str:
    """ptr @room_<lanes>(model, state): where the wrenches are gathered, after the sines and cosines."""
    out = [f"define internal ptr @room_{l.lanes}(ptr %model, ptr %state) {{"]
    out += [*_field("slots", "slots", "i64"), *_field("nq", "nq", "i64"), "  %angles = mul i64 %nq, 2"]
    out += ["  %used = add i64 %slots, %angles", f"  %room = getelementptr {l.type}, ptr %state, i64 %used"]
    return "\n".join([*out, "  ret ptr %room", "}\n"])


def _gather(l: Lanes) -> str:
    """void @gather: the wrenches of sample k, one after the other."""
    given = "ptr %pointers, ptr %strides, i64 %k, i64 %loads, ptr %room"
    out = [f"define internal void @gather({given}) noinline {{", "start:", "  br label %loop", "loop:"]
    out += ["  %j = phi i64 [0, %start], [%next, %loop]", *_port("%j"), "  %o = mul i64 %k, %s"]
    out += ["  %row = getelementptr i8, ptr %p, i64 %o", "  %six = mul i64 %j, 6"]
    out.append(f"  %to = getelementptr {l.type}, ptr %room, i64 %six")
    for i in range(6):
        out += [f"  %a{i} = getelementptr {l.type}, ptr %row, i64 {i}", f"  %x{i} = load {l.type}, ptr %a{i}"]
        out += [f"  %b{i} = getelementptr {l.type}, ptr %to, i64 {i}", f"  store {l.type} %x{i}, ptr %b{i}"]
    return "\n".join([*out, *_again("%loads")])


def _load_wrenches(l: Lanes) -> str:
    """void @wrenches: a tile of every wrench."""
    given = "ptr %pointers, ptr %strides, i64 %b, i64 %end, i64 %loads, ptr %room"
    out = [f"define internal void @wrenches({given}) noinline {{", "start:", "  br label %loop", "loop:"]
    out += ["  %j = phi i64 [0, %start], [%next, %loop]", *_port("%j"), "  %six = mul i64 %j, 6"]
    out.append(f"  %to = getelementptr {l.type}, ptr %room, i64 %six")
    out.append("  call void @load_4(ptr %p, i64 %s, i64 %b, i64 %end, ptr %to, i64 6)")
    return "\n".join([*out, *_again("%loads")])


def _port(index: str) -> list[str]:
    """%p and %s: pointer and stride of a port."""
    out = [f"  %pp = getelementptr ptr, ptr %pointers, i64 {index}", "  %p = load ptr, ptr %pp"]
    return [*out, f"  %ss = getelementptr i64, ptr %strides, i64 {index}", "  %s = load i64, ptr %ss"]


def _again(count: str) -> list[str]:
    out = ["  %next = add i64 %j, 1", f"  %more = icmp slt i64 %next, {count}"]
    return [*out, "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}\n"]


def _single(rolled: Rolled, l: Lanes) -> str:
    """void @single(model, arguments, result, status): in the model's own state, one caller at a time.

    Wrenches come as one argument, an array of pointers to them.
    """
    names = _pointers(rolled)
    given = _given(("model", *names, *rolled.outs, "status"))
    if rolled.loaded:
        names = [*names[:-1], "room"]
    passed = _given(("model", "state", *names, *rolled.outs, "status"))
    lock = f"  %lock = getelementptr i64, ptr %model, i64 {MODEL.index('lock')}"
    out = [f"define void @single({given}) {{", "start:", lock, *_field("state", "state"), "  br label %wait"]
    out += ["wait:", "  %taken = atomicrmw xchg ptr %lock, i64 1 acquire", "  %busy = icmp ne i64 %taken, 0"]
    out += ["  br i1 %busy, label %wait, label %run", "run:"]
    if rolled.loaded:
        where = f"%arg{len(rolled.arguments)}"  # of sample 0 the strides do not matter
        out += [*_field("loads", "loads", "i64"), "  %room = call ptr @room_1(ptr %model, ptr %state)"]
        out.append(f"  call void @gather(ptr {where}, ptr {where}, i64 0, i64 %loads, ptr %room)")
    out.append(f"  call void @bodies_1({passed})")
    return "\n".join([*out, "  store atomic i64 0, ptr %lock release, align 8", "  ret void", "}\n"])


def _batch(rolled: Rolled, target: Target) -> str:
    """i32 @batch(model, pointers, strides, count, arena): 1 if a check failed."""
    one, many = target.of(1), target.of(target.lanes)
    n = len(rolled.arguments)
    out = ["define i32 @batch(ptr %model, ptr %pointers, ptr %strides, i64 %count, ptr %arena) {", "start:"]
    out += _field("loads", "loads", "i64")
    out += [f"  %at_out{i} = add i64 %loads, {n + i}" for i in range(len(rolled.results))]
    for i, at in enumerate([*range(n), *(f"%at_{x}" for x in rolled.outs)]):
        out += [f"  %a{i} = getelementptr ptr, ptr %pointers, i64 {at}", f"  %p{i} = load ptr, ptr %a{i}"]
        out += [f"  %b{i} = getelementptr i64, ptr %strides, i64 {at}", f"  %s{i} = load i64, ptr %b{i}"]
    out += [f"  %w_pointers = getelementptr ptr, ptr %pointers, i64 {n}"]
    out += [f"  %w_strides = getelementptr i64, ptr %strides, i64 {n}"]
    out += [*_field("n", "bodies", "i64"), *_field("nq", "nq", "i64"), *_field("nv", "nv", "i64")]
    for i in range(len(rolled.results)):
        out += _field(f"size{i}", f"size{i}", "i64")
    out += [
        f"  %status = getelementptr {many.type}, ptr %arena, i64 0",
        "  %from = getelementptr i8, ptr %arena, i64 64",
    ]
    out += [f"  store <{64 // one.size} x {one.scalar}> zeroinitializer, ptr %status, align 64"]
    out += [f"  %long = icmp sge i64 %n, {LONG}", "  %alone = icmp eq i64 %count, 1"]
    out += ["  %scalar = or i1 %long, %alone"]
    out += ["  br i1 %scalar, label %samples, label %tiles" if rolled.tiled else "  br label %samples"]
    out += [*_samples(rolled), *(_tiles(rolled, many) if rolled.tiled else ()), "done:"]
    out += [f"  %seen = load {many.type}, ptr %status, align {many.bytes}"]
    out += [
        f"  %flags = fcmp uno {many.type} %seen, %seen",
        f"  %bits = bitcast <{many.lanes} x i1> %flags to i{many.lanes}",
    ]
    out += [f"  %bad = icmp ne i{many.lanes} %bits, 0", "  %code = zext i1 %bad to i32", "  ret i32 %code", "}\n"]
    return "\n".join(out)


def _samples(rolled: Rolled) -> list[str]:
    """Sample by sample, in the arena's state."""
    n, room = len(rolled.arguments), []
    out = ["samples:", "  %k = phi i64 [0, %start], [%k2, %samples]"]
    if rolled.loaded:
        room = ["ptr %row"]
        out.append("  %row = call ptr @room_1(ptr %model, ptr %from)")
        out.append("  call void @gather(ptr %w_pointers, ptr %w_strides, i64 %k, i64 %loads, ptr %row)")
    every = range(n + len(rolled.results))
    for i in every:
        out += [f"  %o{i} = mul i64 %k, %s{i}", f"  %r{i} = getelementptr i8, ptr %p{i}, i64 %o{i}"]
    rows = [f"ptr %r{i}" for i in every]
    given = ", ".join(["ptr %model", "ptr %from", *rows[:n], *room, *rows[n:], "ptr %status"])
    out += [f"  call void @bodies_1({given})", "  %k2 = add i64 %k, 1"]
    return [*out, "  %on = icmp slt i64 %k2, %count", "  br i1 %on, label %samples, label %done"]


def _tiles(rolled: Rolled, l: Lanes) -> list[str]:
    """Rows into tiles, the loops over the bodies, the tile of results back into rows."""
    n, room = len(rolled.arguments), []
    sizes = ["%nq" if a == "q" else "%nv" for a in rolled.arguments]
    sizes += [f"%size{i}" for i in range(len(rolled.results))]
    out, at = ["tiles:", "  %end = sub i64 %count, 1"], "%from"
    for i, size in enumerate(sizes):
        out += [
            f"  %t{i} = getelementptr i8, ptr {at}, i64 0",
            f"  %next{i} = getelementptr {l.type}, ptr %t{i}, i64 {size}",
        ]
        at = f"%next{i}"
    out += ["  br label %tile", "tile:", "  %b = phi i64 [0, %tiles], [%c, %tile]"]
    for i in range(n):
        out.append(
            f"  call void @load_{l.lanes}(ptr %p{i}, i64 %s{i}, i64 %b, i64 %end, ptr %t{i}, i64 {sizes[i]})"
        )
    if rolled.loaded:
        room = ["ptr %tiled"]
        out.append(f"  %tiled = call ptr @room_{l.lanes}(ptr %model, ptr {at})")
        moved = "ptr %w_pointers, ptr %w_strides, i64 %b, i64 %end, i64 %loads, ptr %tiled"
        out.append(f"  call void @wrenches({moved})")
    tiles = [f"ptr %t{i}" for i in range(len(sizes))]
    given = ["ptr %model", f"ptr {at}", *tiles[:n], *room, *tiles[n:], "ptr %status"]
    out.append(f"  call void @bodies_{l.lanes}({', '.join(given)})")
    for i, fixed in enumerate(rolled.results, n):
        moved = f"ptr %p{i}, i64 %s{i}, i64 %b, i64 %end, ptr %t{i}, i64 {sizes[i]}"
        out.append(f"  call void @store_{_width(fixed, l)}({moved})")
    out += [f"  %c = add i64 %b, {l.lanes}", "  %left = icmp slt i64 %c, %count"]
    return [*out, "  br i1 %left, label %tile, label %done"]


def forward_text(arguments: int, loads: int, results: int = 1) -> str:
    """@one and @drive, as the Python entry calls them, passed on to loaded code by the addresses in @rolled.

    loads: how many external wrenches follow the arguments; @one passes on one array of pointers to them.
    """
    ports, outs = [f"arg{i}" for i in range(arguments)], [f"out{i}" for i in range(results)]
    given = _given([*ports, *(f"w{i}" for i in range(loads)), *outs, "scratch", "status"])
    out = ["@rolled = global [3 x ptr] zeroinitializer", f"define internal void @one({given}) {{"]
    if loads:
        ports.append("wrenches")
        out.append(f"  %wrenches = alloca ptr, i64 {loads}")
        for i in range(loads):
            out += [f"  %to{i} = getelementptr ptr, ptr %wrenches, i64 {i}", f"  store ptr %w{i}, ptr %to{i}"]
    out += [*_loaded("0"), f"  call void %f({_given(['model', *ports, *outs, 'status'])})"]
    out += ["  ret void", "}"]
    moved = "ptr %pointers, ptr %strides, i64 %count, ptr %arena"
    out += [f"define i32 @drive({moved}, i64 %all) {{", *_loaded("1"), f"  %r = call i32 %f(ptr %model, {moved})"]
    return "\n".join([*out, "  ret i32 %r", "}\n"])


def _loaded(slot: str) -> list[str]:
    out = [f"  %a = getelementptr ptr, ptr @rolled, i64 {slot}", "  %f = load ptr, ptr %a"]
    return [*out, "  %b = getelementptr ptr, ptr @rolled, i64 2", "  %model = load ptr, ptr %b"]


__all__ = [
    "INTEGERS",
    "LONG",
    "MODEL",
    "Loop",
    "Place",
    "Rolled",
    "Step",
    "declarations",
    "emit",
    "forward_text",
    "kernel",
]
