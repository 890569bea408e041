"""Loops over bodies as LLVM text: the step of one body is emitted once per kind, whatever the number of bodies.

M^-1 times the columns of an array, in place: two sweeps over the freedoms, many columns side by side.

What a freedom is stands in its slot, the same for all columns; what moves along the tree lies in an area of its
own, six numbers of every freedom and of the ground for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...lower.loops import BLOCK_BODIES, BodyLoop, Rolled, TreeSolve, homes, port_place
from ...lower.lower import Lowered
from ..fields import row_of, word
from ..ir import I64, PTR, VOID, IRFunction, Module, Value
from ..math import Lanes, add_sincos
from ..ports import Target
from ..stages import MemoryBlock, write_stage

_ARRAY_ARGUMENTS = {"array": PTR, "across": I64, "rows": I64, "status": PTR}


def clear_memory(f: IRFunction, at: Value, count: Value, l: Lanes) -> None:
    """So many scalars become 0; a call of memset would want a function from outside of the object."""
    whole = count & -l.lanes
    with f.loop(whole, step=l.lanes) as s:
        at.at(s.i, l.scalar).store(f.zero(l.type), l.size)
    with f.loop(count, start=whole) as s:
        at.at(s.i, l.scalar).store(f.zero(l.scalar))


def solve_vector(f: IRFunction, l: Lanes) -> Value:
    """The vector, after slots, sines and cosines."""
    return f.state.at(word(f, "slots") + word(f, "nq") * 2, l.scalar)


def add_solve(m: Module, solve: TreeSolve, target: Target, k: int) -> None:
    """@solve_<k>_<lanes> for one column, and for as many as a vector has lanes."""
    for l in [target.of(1), target.of(target.lanes)] if solve.matrix else [target.of(1)]:
        _Sweeps(m, solve, target, l, k)
        if solve.unit:
            _add_mirror(m, l, k)


class _Sweeps:
    """void @solve_<k>_<lanes>(model, state, array, across, rows, status): `rows` freedoms from the first on.

    array: the first of the columns; across: from row to row.
    """

    def __init__(self, m: Module, solve: TreeSolve, target: Target, l: Lanes, k: int) -> None:
        align = "" if l.lanes == 1 else ' "stackrealign"'
        names = {"model": PTR, "state": PTR} | _ARRAY_ARGUMENTS
        self.f = f = m.function(f"solve_{k}_{l.lanes}", VOID, names, attributes=align)
        self.target, self.l = target, l
        self.integers, self.bodies = word(f, "integers", PTR), word(f, "bodies")
        self.area = solve_vector(f, l).at(word(f, "nv"), l.scalar)
        if solve.inwards:
            clear_memory(f, self.area, (f.rows + 1) * (6 * l.lanes), l)
            with f.loop(-1, start=f.rows - 1, step=-1) as s:
                self.step(solve.inwards, s.i)
        if solve.outwards:
            clear_memory(f, self.area, f.const(I64, 6 * l.lanes), l)  # the ground stands still
            with f.loop(f.rows) as s:
                self.step(solve.outwards, s.i)
        f.ret()

    def step(self, step: Lowered, i: Value) -> None:
        f, l = self.f, self.l
        row = row_of(f, self.integers, i + self.bodies)
        above = f.call(I64, "llvm.smax.i64", row["up"] - self.bodies + 1, f.zero(I64))
        blocks = {
            "shared": MemoryBlock(f.state.at(row["own"], l.scalar), shared=True),
            "here": MemoryBlock(self.area.at((i + 1) * 6, l.type)),
            "above": MemoryBlock(self.area.at(above * 6, l.type)),
            "entry": MemoryBlock(f.array.at(row["v"] * f.across, l.scalar), result=True),
            "table": MemoryBlock(f.model),  # every step may read it, these do not
        }  # fmt: skip
        # a row of any length begins at any number
        write_stage(f, step, self.target, l, {(name, 0): x for name, x in blocks.items()}, l.size)


def _add_mirror(m: Module, l: Lanes, k: int) -> None:
    """@mirror_<k>_<lanes>(matrix, n, c): entries (i, c + lane) to (c + lane, i) for i below c + lanes."""
    f = m.function(f"mirror_{k}_{l.lanes}", VOID, {"matrix": PTR, "n": I64, "c": I64})
    rows = [f.matrix.at((f.c + lane) * f.n, l.scalar) for lane in range(l.lanes)]
    with f.loop(f.c + l.lanes, some=True) as s:
        x = f.matrix.at(s.i * f.n + f.c, l.scalar).load(l.type, l.size)
        for lane, to in enumerate(rows):
            to.at(s.i, l.scalar).store(x.lane(lane))
    f.ret()


def call_solve(f: IRFunction, solve: TreeSolve, target: Target, k: int, integers: Value) -> None:
    """From the function of all sweeps, of one sample."""
    one, n = target.of(1), word(f, "nv")
    array = solve_vector(f, one) if solve.array == "more" else f.arguments[solve.array]
    if not solve.matrix:
        f.call(VOID, f"solve_{k}_1", f.model, f.state, array, f.const(I64, 1), n, f.status)
        return
    many = target.of(target.lanes)
    status = f.alloca(many.type)
    status.store(f.zero(many.type), many.size)
    whole = n & -many.lanes

    def block(c: Value, l: Lanes, status: Value) -> None:
        rows = n
        if solve.unit:  # beyond them no column of the block has an entry above the diagonal
            rows = row_of(f, integers, word(f, "bodies") + c + (l.lanes - 1))["q"]
        f.call(VOID, f"solve_{k}_{l.lanes}", f.model, f.state, array.at(c, l.scalar), n, rows, status)
        if solve.unit:
            f.call(VOID, f"mirror_{k}_{l.lanes}", array, n, c)

    with f.loop(whole, step=many.lanes) as s:
        block(s.i, many, status)
    with f.loop(n, start=whole) as s:
        block(s.i, one, f.status)
    lost = status.load(many.type, many.size)
    total = f.call(one.type, f"llvm.vector.reduce.fadd.{many.suffix}", f.const(one.type, 0.0), lost)
    f.status.store(f.status.load(one.type) + total)


_TESTED_BLOCKS = ("own", "parent", "ground")  # blocks whose values reach results, which are tested


# -- the kernel of one width ----------------------------------------------------------------------------------


class _Bodies:
    """The function @bodies_<lanes>(model, state, arguments, results, status): all sweeps."""

    def __init__(self, m: Module, rolled: Rolled, target: Target, l: Lanes) -> None:
        self.rolled, self.target, self.l = rolled, target, l
        names = ("model", "state", *rolled.given, *rolled.outs, "status")
        wide = l.lanes > 1 or any(isinstance(x, TreeSolve) and x.matrix for x in rolled.loops)
        align = ' "stackrealign"' if wide else ""
        self.f = f = m.function(f"bodies_{l.lanes}", VOID, dict.fromkeys(names, PTR), attributes=align)
        self.ground, self.table, self.integers = (word(f, x, PTR) for x in ("ground", "table", "integers"))
        self.bodies, rows, self.nv, self.first = (word(f, x) for x in ("bodies", "rows", "nv", "first"))
        self.way = word(f, "way")
        self.rows = self.bodies + rows
        nq, slots = word(f, "nq"), word(f, "slots")
        if rolled.slot:
            slots = (word(f, "kept") + (BLOCK_BODIES + 1)) * rolled.slot
        sines = f.state.at(slots, l.type)
        cosines = sines.at(nq, l.type)
        self.at = {"sines": sines, "cosines": cosines, "more": cosines.at(nq, l.type)}
        if rolled.turning:
            q = f.arguments[f"arg{rolled.arguments.index('q')}"]
            f.call(VOID, f"angles_{l.lanes}", q, sines, cosines, nq)
        for i, name in enumerate(rolled.outs if rolled.zeroed and l.lanes == 1 else ()):
            clear_memory(f, f.arguments[name], word(f, f"size{i}"), target.of(target.lanes))
        for k, loop in enumerate(rolled.loops):
            if isinstance(loop, TreeSolve):
                call_solve(f, loop, target, k, self.integers)
                continue
            if loop.fresh:
                f.call(VOID, f"ground_{l.lanes}", self.ground, f.state)
            if rolled.slot and k:
                self.by_blocks(rolled.loops[0], loop)
            else:
                self.sweep(loop)
        f.ret()

    def by_blocks(self, first: BodyLoop | TreeSolve, loop: BodyLoop) -> None:
        """A sweep block by block, each after the first sweep once more: the slots of a block stay in the cache and
        serve the next block as well. Bodies with a child in a later block keep theirs."""
        assert isinstance(first, BodyLoop)
        f, last = self.f, (self.bodies - 1) & -BLOCK_BODIES
        ends = (-1, last, -BLOCK_BODIES) if loop.backward else (self.bodies, 0, BLOCK_BODIES)
        with f.loop(ends[0], start=ends[1], step=ends[2], some=True) as block:
            start, stop = block.i, f.smaller(block.i + BLOCK_BODIES, self.bodies)
            with f.loop(stop, start=start, some=True) as s, f.when(self.row(s.i)["kept"] < 0):
                self.visit(first, s.i)
            inner = (start - 1, stop - 1, -1) if loop.backward else (stop, start, 1)
            with f.loop(inner[0], start=inner[1], step=inner[2], some=True) as s:
                self.visit(loop, s.i)

    def slot(self, i: Value, kept: Value) -> Value:
        """Offset at which the slot of body i begins, after the ground's: one of its own, or one of the block's."""
        number = self.f.select(kept < 0, (i & (BLOCK_BODIES - 1)) + word(self.f, "kept"), kept)
        return (number + 1) * self.rolled.slot

    def sweep(self, loop: BodyLoop) -> None:
        f = self.f
        if loop.over == "once":
            self.visit(loop, f.zero(I64))
        elif loop.over == "first":
            with f.when(self.first >= 0):
                self.visit(loop, self.first)
        elif loop.over in ("path", "way"):
            start = self.first if loop.over == "path" else self.way
            with f.when(start >= 0), f.loop(at=start) as s:
                s.at = self.visit(loop, s.at)["up"]
                s.leave(s.at < 0)
        elif loop.over == "bodies" and loop.backward:
            with f.loop(-1, start=self.bodies - 1, step=-1) as s:
                self.visit(loop, s.i)
        else:
            start, stop = (self.bodies, self.rows) if loop.over == "rows" else (f.zero(I64), self.bodies)
            with f.loop(stop, start=start) as s:
                self.visit(loop, s.i)

    def visit(self, loop: BodyLoop, i: Value) -> dict[str, Value]:
        """The step of row i by its kind, then the inner one with every row from it up; gives its integers."""
        f, row = self.f, self.row(i)
        blocks = self.blocks(loop.steps, i, row, row)
        branches = [partial(write_stage, f, step, self.target, self.l, blocks) for step in loop.steps]
        if len(branches) > 1:
            f.switch(row["kind"], branches)
        else:
            branches[0]()
        if loop.inner:
            self.walk(loop.inner, i, row)
        return row

    def walk(self, step: Lowered, i: Value, row: dict[str, Value]) -> None:
        """The step of a pair, from row i up; what moves with it, in the ground's slot, stays in registers."""
        f, t = self.f, self.l.type
        moved = ((port_place(port.name), port.size) for port in step.inputs)
        places = [x.first + k for x, size in moved if x.block == "ground" for k in range(size)]
        moving = {f"g{k}": f.state.at(k, t).load(t, self.l.bytes) for k in places}
        with f.loop(at=i, carry=moving) as s:
            upper = self.row(s.at)
            now = {k: getattr(s, f"g{k}").text for k in places}
            blocks = self.blocks([step], s.at, upper, row)
            write_stage(f, step, self.target, self.l, blocks, registers=("ground", now))
            for k in places:
                setattr(s, f"g{k}", Value(f, t, now[k]))
            s.at = upper["up"]
            s.leave(s.at < 0)

    def row(self, i: Value) -> dict[str, Value]:
        row = row_of(self.f, self.integers, i)
        if self.rolled.slot:
            up = row["up"]
            above = row_of(self.f, self.integers, self.f.select(up < 0, i, up))["kept"]
            parent = self.f.select(up < 0, self.f.const(I64, 0), self.slot(up, above))
            row |= {"own": self.slot(i, row["kept"]), "parent": parent}
        return row

    def blocks(
        self, steps: Sequence[Lowered], i: Value, row: dict[str, Value], lower: dict[str, Value]
    ) -> dict[tuple[str, int], MemoryBlock]:
        """The blocks of some steps for row i; for a pair, i is the upper row."""
        return {
            (name, k): MemoryBlock(
                self.base(name, k, i, row, lower), shared=name == "table", result=name not in _TESTED_BLOCKS
            )
            for name, k in homes(steps)
        }

    def base(self, name: str, number: int, i: Value, row: dict[str, Value], lower: dict[str, Value]) -> Value:
        """The address at which a block begins."""
        f, t, v = self.f, self.l.type, row["v"]
        if name == "table":
            return self.table.at(i, f"[{self.rolled.table} x {self.l.scalar}]")
        if name == "arg":
            first = row["q"] if [*self.rolled.arguments, ""][number] == "q" else v
            return f.arguments[f"arg{number}"].at(first, t)
        if name == "row":  # of a matrix with nv columns
            return f.out0.at(self.nv * number + v, t)
        if name in ("pair", "mirror"):
            below, right = (lower["v"], v) if name == "pair" else (v, lower["v"])
            return f.arguments[f"out{number}"].at(below * self.nv + right, t)
        places: dict[str, tuple[Value, Value | int]] = {
            "own": (f.state, row["own"]), "upper": (f.state, row["own"]), "parent": (f.state, row["parent"]),
            "ground": (f.state, 0), "sines": (self.at["sines"], row["q"]),
            "cosines": (self.at["cosines"], row["q"]), "more": (self.at["more"], v),
            "gains": (self.at["more"], v * 7), "result": (f.arguments[self.rolled.outs[-1]], v),
            "rates": (f.out0, row["q"]), "out": (f.arguments[f"out{number}"], 0),
        }  # fmt: skip
        base, index = places[name]
        return base.at(index, t)


def add_bodies(m: Module, rolled: Rolled, target: Target, l: Lanes) -> None:
    """@bodies_<lanes>, and what it calls."""
    if rolled.turning:
        _add_angles(m, l, target)
    _add_ground(m, l, rolled.ground)
    for k, x in enumerate(rolled.loops):
        if isinstance(x, TreeSolve):
            add_solve(m, x, target, k)
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
        both = f.call(pair, add_sincos(m, wide, target.fma), x)
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
