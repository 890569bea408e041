"""M^-1 times the columns of an array, in place: two sweeps over the freedoms, many columns side by side.

What a freedom is stands in its slot, the same for all columns; what moves along the tree lies in an area of its
own, six numbers of every freedom and of the ground for each column.
"""

from __future__ import annotations

from ...lower.loops import TreeSolve
from ...lower.lower import Lowered
from ..fields import row_of, word
from ..ir import I8, I64, PTR, VOID, IRFunction, Module, Value
from ..math import Lanes
from ..stages import MemoryBlock, write_stage
from ..target import Target

_COLUMNS = {"array": PTR, "across": I64, "rows": I64, "status": PTR}


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
        names = {"model": PTR, "state": PTR} | _COLUMNS
        self.f = f = m.function(f"solve_{k}_{l.lanes}", VOID, names, attributes=align)
        self.target, self.l = target, l
        self.integers, self.bodies = word(f, "integers", PTR), word(f, "bodies")
        self.area = solve_vector(f, l).at(word(f, "nv"), l.scalar)
        if solve.inwards:
            self.clear((f.rows + 1) * (6 * l.bytes))
            with f.loop(-1, start=f.rows - 1, step=-1) as s:
                self.step(solve.inwards, s.i)
        if solve.outwards:
            self.clear(f.const(I64, 6 * l.bytes))  # the ground stands still
            with f.loop(f.rows) as s:
                self.step(solve.outwards, s.i)
        f.ret()

    def clear(self, size: Value) -> None:
        f = self.f
        f.call(VOID, "llvm.memset.p0.i64", self.area, f.zero(I8), size, f.const("i1", "false"))

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
