"""The functions of a kernel of one width, one run of steps each, as LLVM text.

Values are SSA names %t<value>; an output is stored as soon as it exists and an input loaded at its first use,
so the order of the steps is the register allocation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.ops import ADD, ATAN2, CHOICE, DIV, MUL, SQRT, WHEN
from ..graph.program import FLOOR
from .cut import Cut, Run
from .llvm_math import NEAR, Lanes
from .llvm_target import Arena, Target
from .lower import FMA, GUARD, SINCOS, TURN, Lowered, Step, ends, operands, results
from .repeat import sinks_of

AHEAD = 512  # bytes along a batch-last array: more streams than the hardware follows
TESTS = 8  # of results in a row, before their sum goes to the status
UNIT_TOLERANCE = 2e-6  # of |q|^2, which is 1e-6 of |q|
_NAME = {ADD: "fadd", MUL: "fmul", DIV: "fdiv"}


class Kernel:
    """The functions of one width. Batch: pointers in, out, scratch, status into the arena; scalar: one
    pointer per port. Every pointer is an argument of every run, so a run loads what it needs.

    direct: a batch kernel that reads and writes the caller's own arrays: per port a pointer and the step of its
    rows.
    """

    def __init__(
        self, low: Lowered, target: Target, lanes: int, pieces: Cut, room: Arena, direct: bool = False
    ) -> None:
        self.low, self.target, self.l, self.pieces, self.room = low, target, target.of(lanes), pieces, room
        self.direct = direct
        self.scalar = lanes == 1
        self.name = "one" if self.scalar else "many"
        self.sinks = sinks_of(low)
        self.ends = ends(low)

    @property
    def arguments(self) -> list[str]:
        """Arguments in order, with their types."""
        ports = ["ptr %in", "ptr %out"]
        if self.scalar:
            ports = [f"ptr %in{i}" for i in range(len(self.low.inputs))]
            ports += [f"ptr %out{i}" for i in range(len(self.low.outputs))]
        elif self.direct:
            ports = [f"{x}{i}" for i in range(len(self.low.inputs)) for x in ("ptr %in", "i64 %pace")]
            ports += [f"{x}{i}" for i in range(len(self.low.outputs)) for x in ("ptr %out", "i64 %step")]
        return [*ports, "ptr %scratch", "ptr %status"]

    def text(self) -> str:
        """All functions of the kernel; `@one` or `@many` is what a driver calls."""
        signature = ", ".join(a.replace("ptr", "ptr noalias") for a in self.arguments)
        align = "" if self.scalar else ' "stackrealign"'
        runs, parts, calls = self.pieces.runs, [], []
        for k, run in enumerate(runs):
            name = self.name if len(runs) == 1 else f"{self.name}_{run.code}"
            calls.append(self.call(name, k, run))
            if run.code == k:
                body = "\n".join(Body(self, k).lines(run.steps))
                given = f"{signature}, ptr noalias %frame" if run.values else signature
                parts.append(f"define internal void @{name}({given}) noinline{align} {{\n{body}\n  ret void\n}}\n")
        if len(runs) > 1:
            lines = "\n".join(calls)
            parts.append(f"define internal void @{self.name}({signature}) noinline {{\n{lines}\n  ret void\n}}\n")
        return "".join(parts)

    def call(self, name: str, k: int, run: Run) -> str:
        """The call of a run; of a repeated one with its own frame and the outputs moved on."""
        lines, given = [], list(self.arguments)
        if run.values:
            if run.shift:
                for i in range(len(self.low.outputs) if self.scalar or self.direct else 1):
                    port = f"out{i}" if self.scalar or self.direct else "out"
                    lines += self.moved(port, f"m{k}_{port}", i, run.shift)
                    given = [a.replace(f"ptr %{port}", f"ptr %m{k}_{port}") for a in given]
            offset = run.frame * self.l.bytes
            lines.append(f"  %f{k} = getelementptr i8, ptr %scratch, i64 {offset}")
            given.append(f"ptr %f{k}")
        return "\n".join([*lines, f"  call void @{name}({', '.join(given)})"])

    def moved(self, port: str, name: str, i: int, columns: int) -> list[str]:
        """An output pointer, moved on by some columns."""
        if not self.direct or self.scalar:
            return [f"  %{name} = getelementptr i8, ptr %{port}, i64 {columns * self.l.bytes}"]
        return [
            f"  %{name}_o = mul i64 %step{i}, {columns}",
            f"  %{name} = getelementptr i8, ptr %{port}, i64 %{name}_o",
        ]


class Body:
    """The text of one run of steps."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        self.k, self.index, self.l = kernel, index, kernel.l
        self.made: set[int] = set()
        self.frame = {v: i for i, v in enumerate(kernel.pieces.runs[index].values)}
        self.out: list[str] = []
        self.count = 0
        self.bad: str | None = None
        self.part: str | None = None  # tests that are not in `bad` yet
        self.parts = 0
        self.least: str | None = None  # of what the pivots are above their floors

    def lines(self, run: Sequence[Step]) -> list[str]:
        if self.index == 0:
            self.first()
        self.turns([s for s in run if s[0] == TURN])
        run = [s for s in run if s[0] != TURN]
        for step in self.sines(run) if self.k.scalar and self.l.lanes == 1 else self.paired(run):
            self.step(step)
        self.gather()
        self.hold()
        if self.bad is not None:
            self.out.append(f"  store {self.l.type} {self.bad}, ptr %status, align {self.l.bytes}")
        return self.out

    def first(self) -> None:
        """What has no step of its own: quaternion checks, outputs that are inputs or (one sample) constants."""
        k = self.k
        if k.target.check:
            for unit in k.low.units:
                self.unit(unit)
        for v in k.sinks:
            if v in k.low.where:
                self.operand(2 * v)
                self.sink(v)
        if k.scalar:
            self.constants()

    def constants(self) -> None:
        """Constant outputs of one sample, runs of them as one vector store."""
        for i, edges in enumerate(self.k.low.stores):
            for start, values in _constant_runs(edges, self.k.low.constants):
                self.constant_run(f"%out{i}", start, values)

    def constant_run(self, base: str, start: int, values: list[float]) -> None:
        l, at = self.l, 0
        while at < len(values):
            n = next(w for w in (8, 4, 2, 1) if w <= len(values) - at)
            items = ", ".join(f"{l.scalar} {l.literal(x)}" for x in values[at : at + n])
            kind, text = (f"<{n} x {l.scalar}>", f"<{items}>") if n > 1 else (l.scalar, items.split()[1])
            address = self.address(base, (start + at) * l.size)
            self.out.append(f"  store {kind} {text}, ptr {address}, align {l.size}")
            at += n

    # -- names ----------------------------------------------------------------------------------------------

    def fresh(self, text: str) -> str:
        self.count += 1
        name = f"%n{self.count}"
        self.out.append(f"  {name} = {text}")
        return name

    def address(self, base: str, offset: int) -> str:
        return self.fresh(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, value: int, base: str, offset: int) -> None:
        address = self.address(base, offset)
        self.out.append(f"  %t{value} = load {self.l.type}, ptr {address}, align {self.l.bytes}")

    def operand(self, edge: int) -> str:
        """The text of an operand; inputs and crossing values are loaded at their first use here."""
        v, k = edge >> 1, self.k
        constant = k.low.constants.get(v)
        if constant is not None and v not in self.made:
            return self.l.const(-constant if edge & 1 else constant)
        if v not in self.made:
            self.made.add(v)
            if v in k.low.where:
                self.load_input(v, *k.low.where[v])
            elif v in self.frame:
                self.load(v, "%frame", self.frame[v] * self.l.bytes)
            else:
                self.load(v, "%scratch", k.pieces.slot[v] * self.l.bytes)
        return self.fresh(f"fneg {self.l.type} %t{v}") if edge & 1 else f"%t{v}"

    def load_input(self, v: int, port: int, column: int) -> None:
        """Of the caller's own array with a prefetch of what a later tile reads."""
        k, l = self.k, self.l
        if k.scalar:
            self.load(v, f"%in{port}", column * l.bytes)
        elif not k.direct:
            self.load(v, "%in", k.room.inputs[port] + column * l.bytes)
        else:
            at = self.row(f"%in{port}", f"%pace{port}", column)
            self.out.append(f"  %t{v} = load {l.type}, ptr {at}, align {l.size}")
            self.out.append(f"  call void @llvm.prefetch.p0(ptr {self.address(at, AHEAD)}, i32 0, i32 2, i32 1)")

    def row(self, base: str, step: str, column: int) -> str:
        """The address of a row of a batch-last array."""
        if not column:
            return base
        offset = self.fresh(f"mul i64 {step}, {column}")
        return self.fresh(f"getelementptr i8, ptr {base}, i64 {offset}")

    def turns(self, steps: Sequence[Step]) -> None:
        """Angles less whole turns, one test for all of them: that any is large is rare."""
        t, l, out = self.l.type, self.l, self.out
        square, plain, lost = l.const(0.0), list[str](), list[str]()
        for _, _, a, b, _ in steps:
            x, factor = self.operand(a), self.operand(b)
            one = self.k.low.constants[b >> 1] == 1.0 and not b & 1
            plain.append(x if one else self.fresh(f"fmul {t} {x}, {factor}"))
            lost.append(l.const(0.0) if one else self.rest(x, factor, plain[-1]))
            square = self.multiply_add(plain[-1], plain[-1], square)
        if not steps:
            return
        near = self.fresh(f"fcmp ole {t} {square}, {l.const(NEAR**2)}")
        if l.lanes > 1:
            near = self.fresh(f"call i1 @llvm.vector.reduce.and.v{l.lanes}i1({l.many('i1')} {near})")
        out += ["  br label %before", "before:", f"  br i1 {near}, label %turned, label %far", "far:"]
        given = [f"{t} {x}, {t} {rest}" for x, rest in zip(plain, lost)]
        far = [self.fresh(f"call {t} @turned_{l.lanes}({x})") for x in given]
        out += ["  br label %turned", "turned:"]
        for (_, to, _, _, _), x, y in zip(steps, plain, far):
            out.append(f"  %t{to} = phi {t} [{x}, %before], [{y}, %far]")
            self.made.add(to)
        for step in steps:  # what other runs need is stored, after the last phi
            self.sink(step[1])

    def rest(self, x: str, factor: str, product: str) -> str:
        """What rounding took from a product."""
        if not self.k.target.fma:
            return self.l.const(0.0)
        return self.multiply_add(x, factor, self.fresh(f"fneg {self.l.type} {product}"))

    def multiply_add(self, x: str, y: str, z: str) -> str:
        t = self.l.type
        if self.k.target.fma:
            return self.fresh(f"call {t} @llvm.fma.{self.l.suffix}({t} {x}, {t} {y}, {t} {z})")
        return self.fresh(f"fadd {t} {self.fresh(f'fmul {t} {x}, {y}')}, {z}")

    # -- steps ----------------------------------------------------------------------------------------------

    def sines(self, run: Sequence[Step]) -> Sequence[Step]:
        """One sample: as many sines and cosines at once as a vector holds, then the steps that are left."""
        trig = [s for s in run if s[0] == SINCOS]
        head = run[: run.index(trig[-1])] if trig else []
        made = {v for s in trig for v in results(s)}
        if len(trig) < 2 or any(e >> 1 in made for s in head for e in operands(s)):
            return run
        for step in (s for s in head if s[0] != SINCOS):
            self.step(step)
        wide = self.k.target.of(self.k.target.lanes)
        for k in range(0, len(trig), wide.lanes):
            self.sines_at_once(trig[k : k + wide.lanes], wide)
        return run[len(head) + 1 :]

    def paired(self, run: Sequence[Step]) -> Iterator[Step]:
        """Two sines and cosines that follow one another are one call."""
        t, k = self.l.type, 0
        while k < len(run):
            pair = run[k : k + 2]
            if len(pair) < 2 or any(s[0] != SINCOS for s in pair) or pair[1][2] >> 1 in results(pair[0]):
                yield run[k]
                k += 1
                continue
            kind = f"{{{', '.join([t] * 4)}}}"
            given = ", ".join(f"{t} {self.operand(s[2])}" for s in pair)
            both = self.fresh(f"call {kind} @sincos_{self.l.lanes}_2({given})")
            for place, v in enumerate(v for s in pair for v in results(s)):
                self.out.append(f"  %t{v} = extractvalue {kind} {both}, {place}")
                self.made.add(v)
                self.sink(v)
            k += 2

    def sines_at_once(self, steps: Sequence[Step], wide: Lanes) -> None:
        t, kind, x = self.l.type, wide.type, "zeroinitializer"
        for lane, step in enumerate(steps):
            x = self.fresh(f"insertelement {kind} {x}, {t} {self.operand(step[2])}, i32 {lane}")
        both = self.fresh(f"call {{{kind}, {kind}}} @sincos_{wide.lanes}({kind} {x})")
        for half in (0, 1):
            values = self.fresh(f"extractvalue {{{kind}, {kind}}} {both}, {half}")
            for lane, step in enumerate(steps):
                self.out.append(f"  %t{results(step)[half]} = extractelement {kind} {values}, i32 {lane}")
        for v in (v for step in steps for v in results(step)):
            self.made.add(v)
            self.sink(v)

    def step(self, step: Step) -> None:
        op, to, a, b, c = step
        t, l = self.l.type, self.l
        if op == GUARD:
            self.guard(a, b)
        elif op == SINCOS:
            pair = f"{{{t}, {t}}}"
            both = self.fresh(f"call {pair} @sincos_{l.lanes}({t} {self.operand(a)})")
            self.out.append(f"  %t{to} = extractvalue {pair} {both}, 0")
            self.out.append(f"  %t{b} = extractvalue {pair} {both}, 1")
        elif op == FMA:
            x, y, z = self.operand(a), self.operand(b), self.operand(c)
            self.out.append(f"  %t{to} = call {t} @llvm.fma.{l.suffix}({t} {x}, {t} {y}, {t} {z})")
        elif op in CHOICE:
            x, y, zero = self.operand(a), self.operand(b), l.const(0.0)
            yes = self.fresh(f"fcmp ogt {t} {x}, {zero}")
            either = f"{t} {y}, {t} {zero}" if op == WHEN else f"{t} {zero}, {t} {y}"
            self.out.append(f"  %t{to} = select {l.many('i1')} {yes}, {either}")
        elif op == ATAN2:
            x, y = self.operand(a), self.operand(b)
            self.out.append(f"  %t{to} = call {t} @atan2_{l.lanes}({t} {x}, {t} {y})")
        elif op == SQRT:
            self.out.append(f"  %t{to} = call {t} @llvm.sqrt.{l.suffix}({t} {self.operand(a)})")
        else:
            minus = op == ADD and b & 1 and b >> 1 not in self.k.low.constants
            x, y = self.operand(a), self.operand(b ^ 1 if minus else b)
            self.out.append(f"  %t{to} = {'fsub' if minus else _NAME[op]} {t} {x}, {y}")
        for v in results(step):
            self.made.add(v)
            self.sink(v)

    def sink(self, v: int) -> None:
        """Stores a value to every output that is it, and to its crossing slot; tests it once."""
        l, k = self.l, self.k
        names: dict[int, str] = {}
        for port, column, sign in k.sinks.get(v, ()):
            if sign not in names:
                names[sign] = self.operand(2 * v + sign)
            align = l.size if k.direct else l.bytes
            self.out.append(f"  store {l.type} {names[sign]}, ptr {self.place(port, column)}, align {align}")
        if names and k.target.check and (v in k.ends or self.frame):
            self.test(f"%t{v}")  # a repeated run is tested throughout: its copies have other ends
        places = [(k.pieces.slot[v], 0)] if v in k.pieces.slot else []
        for slot, sign in [*places, *k.pieces.framed.get(v, ())]:
            address = self.address("%scratch", slot * l.bytes)
            self.out.append(f"  store {l.type} {self.operand(2 * v + sign)}, ptr {address}, align {l.bytes}")

    def place(self, port: int, column: int) -> str:
        """The address of an output."""
        k, l = self.k, self.l
        if k.scalar:
            return self.address(f"%out{port}", column * l.bytes)
        if k.direct:
            return self.row(f"%out{port}", f"%step{port}", column)
        return self.address("%out", k.room.outputs[port] - k.room.outputs[0] + column * l.bytes)

    # -- status: 0 as long as all is well, then NaN for good ---------------------------------------------------

    def status(self) -> str:
        if self.bad is None:
            self.bad = self.fresh(f"load {self.l.type}, ptr %status, align {self.l.bytes}")
        return self.bad

    def test(self, value: str) -> None:
        """bad += 0 * value: NaN and infinities stick. A few at a time, as each sum waits for the one before."""
        t, zero = self.l.type, self.l.const(0.0)
        if self.part is None:
            self.part = self.fresh(f"fmul {t} {value}, {zero}")
        else:
            self.part = self.multiply_add(value, zero, self.part)
        self.parts += 1
        if self.parts == TESTS:
            self.gather()

    def gather(self) -> None:
        """Adds the latest tests to the status."""
        if self.part is not None:
            self.bad = self.fresh(f"fadd {self.l.type} {self.part}, {self.status()}")
            self.part, self.parts = None, 0

    def guard(self, pivot: int, scale: int) -> None:
        """The least of pivot - FLOOR * scale."""
        if not self.k.target.check:
            return
        t, l = self.l.type, self.l
        x, y, floor = self.operand(pivot), self.operand(scale), l.const(-FLOOR[l.size])
        above = self.multiply_add(y, floor, x)
        if self.least is not None:
            less = self.fresh(f"fcmp olt {t} {above}, {self.least}")
            above = self.fresh(f"select {l.many('i1')} {less}, {t} {above}, {t} {self.least}")
        self.least = above

    def hold(self) -> None:
        """A pivot that is not above its floor spoils the status."""
        if self.least is not None:
            self.spoil(self.fresh(f"fcmp ogt {self.l.type} {self.least}, {self.l.const(0.0)}"))

    def spoil(self, good: str) -> None:
        """Where a flag does not hold the status becomes NaN."""
        t, l = self.l.type, self.l
        flag = self.fresh(f"select {l.many('i1')} {good}, {t} {l.const(0.0)}, {t} {l.const(float('nan'))}")
        self.bad = self.fresh(f"fadd {t} {flag}, {self.status()}")

    def unit(self, values: Sequence[int]) -> None:
        """A quaternion that is not of unit length spoils the status."""
        t, l = self.l.type, self.l
        total = l.const(-1.0)
        for v in values:
            x = self.operand(2 * v)
            total = self.fresh(f"fadd {t} {self.fresh(f'fmul {t} {x}, {x}')}, {total}")
        size = self.fresh(f"call {t} @llvm.fabs.{l.suffix}({t} {total})")
        self.spoil(self.fresh(f"fcmp ole {t} {size}, {l.const(UNIT_TOLERANCE)}"))


def _constant_runs(edges: Sequence[int], constants: dict[int, float]) -> Iterator[tuple[int, list[float]]]:
    values: list[float] = []
    for k, e in enumerate((*edges, -1)):
        x = constants.get(e >> 1) if e >= 0 else None
        if x is not None:
            values.append(-x if e & 1 else x)
        elif values:
            yield k - len(values), values
            values = []


__all__ = ["AHEAD", "UNIT_TOLERANCE", "Body", "Kernel"]
