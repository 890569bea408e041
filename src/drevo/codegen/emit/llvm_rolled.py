"""Loops over bodies as LLVM text: the step of one body is emitted once per kind, whatever the number of bodies.

A model is data: a table of numbers and a table of integers per body. State lies body by body in slots of any
size; slot 0 is the ground, set afresh before every loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from .ir import I1, I8, I32, I64, PTR, VOID, Function, Module, Value
from .llvm_kernel import Body, Kernel
from .llvm_math import Lanes, sincos
from .llvm_ports import Ports, StraightLine
from .llvm_target import Target
from .lower import Lowered
from .split import split_functions

# per body, i32; parent and own: first scalar of the slot; up: number of the parent, or -1
INTEGERS = ("kind", "parent", "own", "q", "v", "up")
MODEL = (  # words behind the model pointer; sizes of the results; first: where a walk up a path begins; alone: 1
    # where a batch runs sample by sample
    "ground", "table", "integers", "bodies", "rows", "nq", "nv", "state", "lock", "slots", "loads", "first",
    "alone", "size0", "size1", "size2",
)  # fmt: skip
LONG = 2048  # bodies from which a batch runs sample by sample: the state of a tile would leave the cache
BROAD = 2**16  # scalars of the results from which it does: matrices of 256 freedoms
_STATE = ("own", "parent", "ground")


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


def word(f: Function, name: str, kind: str = I64) -> Value:
    """A word behind the pointer `model` of a function."""
    return f.model.at(MODEL.index(name), I64).load(kind)


def argument_names(rolled: Rolled) -> list[str]:
    """The arguments of a kernel; the wrenches, one after the other, are the last."""
    return [f"arg{i}" for i in range(len(rolled.arguments) + rolled.loaded)]


# -- the work on one body -------------------------------------------------------------------------------------


class _StepPorts(Ports):
    """Of a step: addresses that its places stand for."""

    def __init__(self, step: Step, l: Lanes, bases: dict[str, Value]) -> None:
        super().__init__(step.low, l)
        self.shared = [place.base == "table" and l.lanes > 1 for place in step.inputs]  # by all lanes
        self.sources, self.targets = (
            [bases[p.base].at(p.offset * (l.size if p.base == "table" else l.bytes), I8).text for p in places]
            for places in (step.inputs, step.outputs)
        )

    def load(self, body: StraightLine, v: int, port: int, column: int) -> None:
        l, source = self.l, self.sources[port]
        if not self.shared[port]:
            return body.load(v, source, column * l.bytes)
        number = body.fresh(f"load {l.scalar}, ptr {body.address(source, column * l.size)}, align {l.size}")
        first = body.fresh(f"insertelement {l.type} poison, {l.scalar} {number}, i64 0")
        lanes = f"{l.type} {first}, {l.type} poison, <{l.lanes} x i32> zeroinitializer"
        body.out.append(f"  {body.value}{v} = shufflevector {lanes}")
        return None

    def place(self, body: StraightLine, port: int, column: int) -> str:
        return body.address(self.targets[port], column * self.l.bytes)


# -- the kernel of one width ----------------------------------------------------------------------------------


class _Bodies:
    """The function @bodies_<lanes>(model, state, arguments, results, status): all sweeps."""

    def __init__(self, m: Module, rolled: Rolled, target: Target, l: Lanes) -> None:
        self.rolled, self.target, self.l = rolled, target, l
        names = ("model", "state", *argument_names(rolled), *rolled.outs, "status")
        align = "" if l.lanes == 1 else ' "stackrealign"'
        self.f = f = m.function(f"bodies_{l.lanes}", VOID, dict.fromkeys(names, PTR), attributes=align)
        self.ground, self.table, self.integers = (word(f, x, PTR) for x in ("ground", "table", "integers"))
        self.bodies, rows, self.nv, self.first = (word(f, x) for x in ("bodies", "rows", "nv", "first"))
        self.rows = self.bodies + rows
        nq = word(f, "nq")
        self.sines = f.state.at(word(f, "slots"), l.type)
        self.cosines = self.sines.at(nq, l.type)
        if rolled.turning:
            q = f.arguments[f"arg{rolled.arguments.index('q')}"]
            f.call(VOID, f"angles_{l.lanes}", q, self.sines, self.cosines, nq)
        for i, name in enumerate(rolled.outs if rolled.zeroed else ()):
            size = word(f, f"size{i}") * l.bytes
            f.call(VOID, "llvm.memset.p0.i64", f.arguments[name], f.zero(I8), size, f.const(I1, "false"))
        for loop in rolled.loops:
            if loop.fresh:
                f.call(VOID, f"ground_{l.lanes}", self.ground, f.state)
            self.sweep(loop)
        f.ret()

    def sweep(self, loop: Loop) -> None:
        f = self.f
        if loop.over == "once":
            self.visit(loop, f.zero(I64))
        elif loop.over == "path":
            with f.when(self.first >= 0), f.loop(at=self.first) as s:
                s.at = self.visit(loop, s.at)["up"]
                s.leave(s.at < 0)
        elif loop.over == "bodies" and loop.backward:
            with f.loop(-1, start=self.bodies - 1, step=-1) as s:
                self.visit(loop, s.i)
        else:
            start, stop = (self.bodies, self.rows) if loop.over == "rows" else (f.zero(I64), self.bodies)
            with f.loop(stop, start=start) as s:
                self.visit(loop, s.i)

    def visit(self, loop: Loop, i: Value) -> dict[str, Value]:
        """The step of row i by its kind, then the inner one with every row from it up; gives its integers."""
        f, row = self.f, self.row(i)
        bases = self.bases(loop.steps, i, row, row)
        branches = [partial(self.step, step, bases) for step in loop.steps]
        if len(branches) > 1:
            f.switch(row["kind"], branches)
        else:
            branches[0]()
        if loop.inner:
            with f.loop(at=i) as s:
                upper = self.row(s.at)
                self.step(loop.inner, self.bases([loop.inner], s.at, upper, row))
                s.at = upper["up"]
                s.leave(s.at < 0)
        return row

    def row(self, i: Value) -> dict[str, Value]:
        """The integers of a row of the tables."""
        at = self.integers.at(i, f"[{len(INTEGERS)} x i32]")
        casts = {name: "sext" if name == "up" else "zext" for name in INTEGERS}
        return {name: at.at(k, I32).load(I32).cast(cast, I64) for k, (name, cast) in enumerate(casts.items())}

    def step(self, step: Step, bases: dict[str, Value]) -> None:
        """Only results are tested: what is not finite in a state reaches them."""
        low = step.low
        kernel = Kernel(low, self.target, split_functions(low, len(low.steps)), _StepPorts(step, self.l, bases))
        kernel.ends = {
            v for v, ports in kernel.sinks.items() if any(step.outputs[i].base not in _STATE for i, _, _ in ports)
        }
        Body(kernel, self.f, stem=self.f.fresh("step") + "_").write(low.steps)

    def bases(
        self, steps: Sequence[Step], i: Value, row: dict[str, Value], lower: dict[str, Value]
    ) -> dict[str, Value]:
        """The addresses that the places of some steps count from."""
        names = dict.fromkeys(place.base for s in steps for place in (*s.inputs, *s.outputs))
        return {name: self.base(name, i, row, lower) for name in names}

    def base(self, name: str, i: Value, row: dict[str, Value], lower: dict[str, Value]) -> Value:
        """Of row i; of pairs it is the upper one."""
        f, t, v = self.f, self.l.type, row["v"]
        kind = name.rstrip("0123456789")
        number = int(name[len(kind) :] or 0)
        if kind == "table":
            return self.table.at(i, f"[{self.rolled.table} x {self.l.scalar}]")
        if kind == "arg":
            return f.arguments[name].at(row["q"] if [*self.rolled.arguments, ""][number] == "q" else v, t)
        if kind == "row":  # of a matrix with nv columns
            return f.out0.at(self.nv * number + v, t)
        if kind in ("pair", "mirror"):
            below, right = (lower["v"], v) if kind == "pair" else (v, lower["v"])
            return f.arguments[f"out{number}"].at(below * self.nv + right, t)
        places: dict[str, tuple[Value, Value | int]] = {
            "own": (f.state, row["own"]), "upper": (f.state, row["own"]), "parent": (f.state, row["parent"]),
            "ground": (f.state, 0), "sines": (self.sines, row["q"]), "cosines": (self.cosines, row["q"]),
            "result": (f.arguments[self.rolled.outs[-1]], v), "rates": (f.out0, row["q"]),
        }  # fmt: skip
        base, index = places.get(name) or (f.arguments[name], 0)
        return base.at(index, t)


def add_bodies(m: Module, rolled: Rolled, target: Target, l: Lanes) -> None:
    """@bodies_<lanes>, and what it calls."""
    if rolled.turning:
        _add_angles(m, l, target)
    _add_ground(m, l, rolled.ground)
    _Bodies(m, rolled, target, l)


def _add_angles(m: Module, l: Lanes, target: Target) -> None:
    """@angles_<lanes>: sines and cosines of n values, as many at once as a vector holds.

    One sample: the last block is moved back to the end and writes some values twice, with the same bits.
    """
    wide = target.of(target.lanes)
    step, pair = wide.lanes // l.lanes, f"{{{wide.type}, {wide.type}}}"
    f = m.function(f"angles_{l.lanes}", q=PTR, sines=PTR, cosines=PTR, n=I64)
    last = f.n - step
    with f.loop(f.n, step=step, some=True) as s:
        i = f.smaller(s.i, last)
        x = f.q.at(i, l.type).load(wide.type, l.bytes)
        both = f.call(pair, sincos(m, wide, target.fma), x)
        for k, to in enumerate((f.sines, f.cosines)):
            to.at(i, l.type).store(both.part(k), l.bytes)
    f.ret()


def _add_ground(m: Module, l: Lanes, size: int) -> None:
    """@ground_<lanes>: the numbers of slot 0, the same for every lane."""
    f = m.function(f"ground_{l.lanes}", numbers=PTR, state=PTR)
    for k in range(size):
        x = f.numbers.at(k, l.scalar).load(l.scalar, l.size)
        f.state.at(k, l.type).store(x.splat(l.lanes), l.bytes)
    f.ret()
