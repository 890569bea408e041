"""The functions of a kernel of one width, one run of steps each, as LLVM text.

Values are SSA names %t<value>; an output is stored as soon as it exists and an input loaded at its first use,
so the order of the steps is the register allocation. The body stays f-strings: the cost per instruction counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

from ..graph.ops import ADD, ATAN2, CHOICE, DIV, FUNCTIONS, MUL, UNLESS
from ..graph.program import PIVOT_FLOOR
from ..lower.lower import Lowered, ends
from ..lower.split import SplitSteps
from ..lower.steps import CHOOSE, FMA, GUARD, SINCOS, TURN, Step, step_results
from .ir import I1, I32, PTR, VOID, IRFunction, Module, Value, literal
from .math import MAX_SUMMED_RADIANS, WIDEST, add_atan2, add_sincos, add_turned
from .ports import ALONE, Address, Ports, Target

TESTS = 8  # of results in a row, before their sum goes to the status
ANGLES_PER_TEST = 64  # of angles with one test: each lives until the last is turned
PREFETCH_BYTES = 512  # bytes along a batch-last array: more streams than the hardware follows
UNIT_TOLERANCE = 2e-6  # of |q|^2, which is 1e-6 of |q|
_NAME = {ADD: "fadd", MUL: "fmul", DIV: "fdiv"}


class Kernel:
    """The functions of one width. Every pointer is an argument of every run, so a run loads what it needs."""

    def __init__(self, low: Lowered, target: Target, split: SplitSteps, ports: Ports) -> None:
        self.low, self.target, self.l, self.split, self.ports = low, target, ports.l, split, ports
        self.sinks = _sinks_of(low)
        self.ends = ends(low)
        self.early: Sequence[int] = ()  # inputs that outputs are stored over: read before all else

    @property
    def name(self) -> str:
        """Name of the function that a driver calls."""
        return "one" if self.l.lanes == 1 else "many"

    def add(self, m: Module, name: str = "") -> None:
        """Adds all of them; `@<name>` calls them."""
        runs, align, name = self.split.runs, ' "stackrealign"' if self.l.lanes > 1 else "", name or self.name
        given = self.ports.arguments | {"scratch": ALONE, "status": ALONE}
        for k, run in enumerate(runs):
            f = m.function(name if len(runs) == 1 else f"{name}_{k}", VOID, given, attributes=align)
            FunctionBody(self, f, k).write(run)
            f.ret()
        if len(runs) > 1:
            f = m.function(name, VOID, given)
            for k in range(len(runs)):
                f.call(VOID, f"{name}_{k}", *f.arguments.values())
            f.ret()


Sinks = dict[int, list[tuple[int, int, int]]]  # value -> (port, column, sign)


def _sinks_of(low: Lowered) -> Sinks:
    """Maps each stored value to its places: port, column and sign."""
    out: Sinks = {}
    for port, edges in enumerate(low.stores):
        for column, e in enumerate(edges):
            out.setdefault(e >> 1, []).append((port, column, e & 1))
    return out


class FunctionBody:
    """The straight-line code of one run of steps, appended to a function.

    stem: of its names, where a function has several bodies. status: of a sample, not written yet.
    """

    def __init__(self, kernel: Kernel, f: IRFunction, index: int = 0, stem: str = "") -> None:
        self.k, self.f, self.index, self.l = kernel, f, index, kernel.l
        self.value, self.name = f"%{stem}t", f"%{stem}n"
        self.out = f.lines
        self.made: set[int] = set()
        self.count = 0
        self.status: str | None = None
        self.tests: str | None = None  # that are not in the status yet
        self.test_count = 0
        self.least_pivot: str | None = None  # of what the pivots are above their floors
        self.declare()
        if kernel.target.prefetch:
            f.module.declare(VOID, "llvm.prefetch.p0", PTR, I32, I32, I32)

    def declare(self) -> None:
        """Declares the intrinsics that steps call on values of this type."""
        t, size = self.l.type, self.l.suffix
        for name, n in (("fma", 3), ("fabs", 1), *((name, 1) for name in FUNCTIONS.values())):
            self.f.module.declare(t, f"llvm.{name}.{size}", *[t] * n)

    def write(self, run: Sequence[Step]) -> None:
        if self.index == 0:
            self.first()
        self.go_on(run)

    def go_on(self, run: Sequence[Step]) -> None:
        """Steps after those that are written."""
        turns = [s for s in run if s[0] == TURN]
        for k in range(0, len(turns), ANGLES_PER_TEST):
            self.turns(turns[k : k + ANGLES_PER_TEST])
        self.steps([s for s in run if s[0] != TURN])
        self.add_tests()
        self.test_pivots()
        if self.status is not None:
            self.out.append(f"  store {self.l.type} {self.status}, ptr %status, align {self.l.align}")

    def first(self) -> None:
        """Writes what has no step: quaternion checks, outputs that are inputs or (one sample) constants."""
        k = self.k
        for v in k.early:
            self.operand(2 * v)
        if k.target.check:
            for unit in k.low.units:
                self.unit(unit)
        for v in k.sinks:
            if v in k.low.where:
                self.operand(2 * v)
                self.sink(v)
        self.constants()

    def constants(self) -> None:
        """Constant outputs; of one sample runs of them as one vector store."""
        l = self.l
        for edges, port in zip(self.k.low.stores, self.k.ports.outputs):
            if not (self.k.ports.fixed or port.own):
                continue
            widths = (8, 4, 2, 1) if l.lanes == 1 and not (port.step or port.pitch) else (1,)
            for start, values in _constant_runs(edges, self.k.low.constants, widths, port.left):
                if port.registers is not None:
                    port.registers.update({port.offset + start + k: l.const(x) for k, x in enumerate(values)})
                    continue
                items = [f"{l.scalar} {literal(x, l.scalar)}" for x in values]
                text = f"<{len(items)} x {l.scalar}> <{', '.join(items)}>" if len(items) > 1 else items[0]
                if l.lanes > 1:
                    text = f"{l.type} {l.const(values[0])}"
                self.out.append(f"  store {text}, ptr {self.place(port, start)}, align {self.k.ports.align}")

    # -- names ----------------------------------------------------------------------------------------------

    def fresh(self, text: str) -> str:
        self.count += 1
        name = f"{self.name}{self.count}"
        self.out.append(f"  {name} = {text}")
        return name

    def address(self, base: str, offset: int) -> str:
        return self.fresh(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def place(self, port: Address, column: int) -> str:
        """The address of a column."""
        if not port.step:
            width = port.pitch or (self.l.size if port.shared else self.l.bytes)
            return self.address(port.base, port.offset + column * width)
        if not column:
            return port.base
        offset = self.fresh(f"mul i64 {port.step}, {column}")
        return self.fresh(f"getelementptr i8, ptr {port.base}, i64 {offset}")

    def load(self, v: int, port: Address, column: int = 0, align: int = 0) -> None:
        """A value, or the number that all lanes share; of a batch with a prefetch of what a later tile reads."""
        if port.registers is not None:
            name = port.registers[port.offset + column]
            self.out.append(f"  {self.value}{v} = bitcast {self.l.type} {name} to {self.l.type}")
            return
        l, at = self.l, self.place(port, column)
        if port.shared:
            number = self.fresh(f"load {l.scalar}, ptr {at}, align {l.size}")
            first = self.fresh(f"insertelement {l.type} poison, {l.scalar} {number}, i64 0")
            text = f"shufflevector {l.type} {first}, {l.type} poison, <{l.lanes} x i32> zeroinitializer"
        else:
            text = f"load {l.type}, ptr {at}, align {align or l.bytes}"
        self.out.append(f"  {self.value}{v} = {text}")
        if port.step and self.k.target.prefetch:
            for k in range(0, self.l.bytes, WIDEST):
                ahead = self.address(at, PREFETCH_BYTES + k)
                self.out.append(f"  call void @llvm.prefetch.p0(ptr {ahead}, i32 0, i32 2, i32 1)")

    def operand(self, edge: int) -> str:
        """The text of an operand; inputs and crossing values are loaded at their first use here."""
        v, k = edge >> 1, self.k
        constant = k.low.constants.get(v)
        if constant is not None and v not in self.made:
            return self.l.const(-constant if edge & 1 else constant)
        if v not in self.made:
            self.made.add(v)
            if v in k.low.where:
                port, column = k.low.where[v]
                self.load(v, k.ports.inputs[port], column, k.ports.align)
            else:
                self.load(v, self.crossing(v))
        name = f"{self.value}{v}"
        return self.fresh(f"fneg {self.l.type} {name}") if edge & 1 else name

    def crossing(self, v: int) -> Address:
        """Address of a value that another run makes, or reads."""
        return Address("%scratch", self.k.split.slot[v] * self.l.bytes)

    def turns(self, steps: Sequence[Step]) -> None:
        """Angles less whole turns, one test for many of them: that any is large is rare."""
        t, l, f = self.l.type, self.l, self.f
        square, plain, lost = l.const(0.0), list[str](), list[str]()
        for _, _, a, b, _ in steps:
            x, factor = self.operand(a), self.operand(b)
            one = self.k.low.constants[b >> 1] == 1.0 and not b & 1
            plain.append(x if one else self.fresh(f"fmul {t} {x}, {factor}"))
            lost.append(l.const(0.0) if one else self.rest(x, factor, plain[-1]))
            square = self.multiply_add(plain[-1], plain[-1], square)
        near = Value(f, t, square) <= MAX_SUMMED_RADIANS**2
        if l.lanes > 1:
            near = f.call(I1, f"llvm.vector.reduce.and.v{l.lanes}i1", near)
        before, far, after = f.block, f.fresh("far"), f.fresh("near")
        f.put(f"br i1 {near.text}, label %{after}, label %{far}")
        f.label(far)
        name = add_turned(f.module, l, self.k.target.fma)
        reduced = [f.call(t, name, Value(f, t, x), Value(f, t, rest)) for x, rest in zip(plain, lost)]
        f.put(f"br label %{after}")
        f.label(after)
        for (_, to, _, _, _), x, y in zip(steps, plain, reduced):
            self.out.append(f"  {self.value}{to} = phi {t} [{x}, %{before}], [{y.text}, %{far}]")
            self.made.add(to)
        for step in steps:  # what other runs need is stored, after the last phi
            self.sink(step[1])

    def rest(self, x: str, factor: str, product: str) -> str:
        """Rounding error of a product: the exact product minus the rounded one; 0 without multiply-adds."""
        if not self.k.target.fma:
            return self.l.const(0.0)
        return self.multiply_add(x, factor, self.fresh(f"fneg {self.l.type} {product}"))

    def multiply_add(self, x: str, y: str, z: str) -> str:
        t = self.l.type
        if self.k.target.fma:
            return self.fresh(f"call {t} @llvm.fma.{self.l.suffix}({t} {x}, {t} {y}, {t} {z})")
        return self.fresh(f"fadd {t} {self.fresh(f'fmul {t} {x}, {y}')}, {z}")

    # -- steps ----------------------------------------------------------------------------------------------

    def steps(self, run: Sequence[Step]) -> None:
        for step in run:
            self.step(step)

    def step(self, step: Step) -> None:
        op, to, a, b, c = step
        t, l, operand, put = self.l.type, self.l, self.operand, self.out.append
        result = f"  {self.value}{to} ="
        if op == GUARD:
            self.guard(a, b)
        elif op == SINCOS:
            pair, name = f"{{{t}, {t}}}", add_sincos(self.f.module, l, self.k.target.fma)
            both = self.fresh(f"call {pair} @{name}({t} {operand(a)})")
            put(f"{result} extractvalue {pair} {both}, 0")
            put(f"  {self.value}{b} = extractvalue {pair} {both}, 1")
        elif op == FMA:
            x, y, z = operand(a), operand(b), operand(c)
            put(f"{result} call {t} @llvm.fma.{l.suffix}({t} {x}, {t} {y}, {t} {z})")
        elif op in CHOICE or op == CHOOSE:
            x, y, zero = operand(a), operand(b), l.const(0.0)
            yes = self.fresh(f"fcmp ogt {t} {x}, {zero}")
            other = operand(c) if op == CHOOSE else zero
            either = f"{t} {zero}, {t} {y}" if op == UNLESS else f"{t} {y}, {t} {other}"
            put(f"{result} select {l.many('i1')} {yes}, {either}")
        elif op == ATAN2:
            x, y = operand(a), operand(b)
            put(f"{result} call {t} @{add_atan2(self.f.module, l, self.k.target.fma)}({t} {x}, {t} {y})")
        elif op in FUNCTIONS:
            put(f"{result} call {t} @llvm.{FUNCTIONS[op]}.{l.suffix}({t} {operand(a)})")
        else:
            minus = op == ADD and b & 1 and b >> 1 not in self.k.low.constants
            x, y = operand(a), operand(b ^ 1 if minus else b)
            put(f"{result} {'fsub' if minus else _NAME[op]} {t} {x}, {y}")
        for v in step_results(step):
            self.made.add(v)
            self.sink(v)

    def sink(self, v: int) -> None:
        """Stores a value to every output that is it, and to its crossing slot; tests it once."""
        l, k = self.l, self.k
        names: dict[int, str] = {}
        for port, column, sign in k.sinks.get(v, ()):
            if sign not in names:
                names[sign] = self.operand(2 * v + sign)
            to = k.ports.outputs[port]
            if column in to.left:
                continue
            if to.registers is not None:
                to.registers[to.offset + column] = names[sign]
                continue
            place = self.place(to, column)
            self.out.append(f"  store {l.type} {names[sign]}, ptr {place}, align {k.ports.align}")
        if names and k.target.check and v in k.ends:
            self.test(f"{self.value}{v}")
        if v in k.split.slot:
            address = self.address("%scratch", k.split.slot[v] * l.bytes)
            self.out.append(f"  store {l.type} {self.operand(2 * v)}, ptr {address}, align {l.bytes}")

    # -- status: 0 as long as all is well, then NaN for good ---------------------------------------------------

    def add_to_status(self, x: str) -> None:
        t = self.l.type
        if self.status is None:
            self.status = self.fresh(f"load {t}, ptr %status, align {self.l.align}")
        self.status = self.fresh(f"fadd {t} {x}, {self.status}")

    def test(self, value: str) -> None:
        """status += 0 * value: NaN and infinities stick. A few at a time, as each sum waits for the one before."""
        t, zero = self.l.type, self.l.const(0.0)
        if self.tests is None:
            self.tests = self.fresh(f"fmul {t} {value}, {zero}")
        else:
            self.tests = self.multiply_add(value, zero, self.tests)
        self.test_count += 1
        if self.test_count == TESTS:
            self.add_tests()

    def add_tests(self) -> None:
        if self.tests is not None:
            self.add_to_status(self.tests)
            self.tests, self.test_count = None, 0

    def guard(self, pivot: int, scale: int) -> None:
        """The least of pivot - FLOOR * scale."""
        if not self.k.target.check:
            return
        t, l = self.l.type, self.l
        x, y, floor = self.operand(pivot), self.operand(scale), l.const(-PIVOT_FLOOR[l.size])
        above = self.multiply_add(y, floor, x)
        if self.least_pivot is not None:
            less = self.fresh(f"fcmp olt {t} {above}, {self.least_pivot}")
            above = self.fresh(f"select {l.many('i1')} {less}, {t} {above}, {t} {self.least_pivot}")
        self.least_pivot = above

    def test_pivots(self) -> None:
        """A pivot that is not above its floor fails."""
        if self.least_pivot is not None:
            self.fail_unless(self.fresh(f"fcmp ogt {self.l.type} {self.least_pivot}, {self.l.const(0.0)}"))

    def fail_unless(self, good: str) -> None:
        """Sets the status to NaN where a flag does not hold."""
        t, l = self.l.type, self.l
        zero, nan = l.const(0.0), l.const(math.nan)
        self.add_to_status(self.fresh(f"select {l.many('i1')} {good}, {t} {zero}, {t} {nan}"))

    def unit(self, values: Sequence[int]) -> None:
        """A quaternion that is not of unit length fails."""
        t, l = self.l.type, self.l
        total = l.const(-1.0)
        for v in values:
            x = self.operand(2 * v)
            total = self.fresh(f"fadd {t} {self.fresh(f'fmul {t} {x}, {x}')}, {total}")
        size = self.fresh(f"call {t} @llvm.fabs.{l.suffix}({t} {total})")
        self.fail_unless(self.fresh(f"fcmp ole {t} {size}, {l.const(UNIT_TOLERANCE)}"))


def _constant_runs(
    edges: Sequence[int], constants: dict[int, float], widths: Sequence[int], left: Collection[int]
) -> Iterator[tuple[int, list[float]]]:
    """Constants side by side but for those left, by the widths in their order: where they begin, their values."""
    at = ((k, e & 1, constants.get(e >> 1)) for k, e in enumerate(edges) if k not in left)
    signed = {k: -x if minus else x for k, minus, x in at if x is not None}
    while signed:
        k = next(iter(signed))
        n = next(w for w in widths if all(k + i in signed for i in range(w)))
        yield k, [signed.pop(k + i) for i in range(n)]
