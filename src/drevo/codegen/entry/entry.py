"""The Python entry point: conforming arrays go straight to the kernels, everything else, unchanged, to a Python
function. The fast path raises nothing and holds no message, so odd cases have one implementation.

Nothing from outside is compiled in: pointers come through @table, which is filled after loading.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from ..llvm.driver import STACK
from ..llvm.ir import I1, I32, I64, PTR, VOID, Module, Value
from ..llvm.ports import CACHE_LINE_BYTES
from ..lower.lower import Port
from .layout import ObjectLayout
from .objects import FAILED_LABEL, SLOW_LABEL, Builtin

ALIGNED_FLAG, WRITEABLE_FLAG = 0x100, 0x400
BYTE = 1  # NumPy's number of it
ALIGNED_RESULT_BYTES = (
    4096  # bytes of a batch's result that begins with a line of the cache: what crosses one is written twice
)


class EntryShape(NamedTuple):
    """All that an entry depends on: the shapes of arguments and results, and what it calls.

    single: there is a call for one sample. apart: this wants memory of its own.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    scalar: str
    rows: bool
    single: bool
    apart: bool


class ArrayView(NamedTuple):
    """An array that conforms: its data, whether it is a batch, of how many samples, bytes from row to row."""

    data: Value
    batched: Value
    size: Value
    step: Value


RowPointers = tuple[Value, Value]  # data, bytes from row to row
ByteSpan = tuple[Value, Value]  # first byte, first byte after


def on_a_line(room: Value) -> Value:
    """The first address in it where a line of the cache begins."""
    return ((room.cast("ptrtoint", I64) + (CACHE_LINE_BYTES - 1)) & -CACHE_LINE_BYTES).cast("inttoptr", PTR)


class _Entry(Builtin):
    """The whole of it."""

    def __init__(self, m: Module, shape: EntryShape, layout: ObjectLayout) -> None:
        inputs, outputs = ([Port("", x) for x in ports] for ports in (shape.inputs, shape.outputs))
        super().__init__(m, inputs, outputs, 8 if shape.scalar == "double" else 4, layout)
        self.known, self.rows = shape, shape.rows
        ports = len(inputs) + len(outputs)
        self.pointers, self.strides = self.f.alloca(PTR, ports), self.f.alloca(I64, ports)
        self.dims = [self.f.alloca(I64, len(p.shape) + 1) for p in self.outputs]

    # -- arguments ------------------------------------------------------------------------------------------

    def array(self, x: Value, port: Port, flags: int) -> ArrayView:
        """Checks one array: NumPy's own type, dtype, flags, rank, shape."""
        f, base, rank = self.f, self.layout.base, len(port.shape)
        self.need(self.type_of(x).equals(self.table("ndarray")))
        have = self.field(x, base + 48, I32) & flags
        axes = self.field(x, base + 8, I32)
        batched = axes.equals(rank + 1)
        single = axes.equals(rank) if rank else f.const(I1, "false")  # 0-d arrays: their dims may be null
        good = self.field(x, base + 40).equals(self.table("dtype"))
        self.need(good, have.equals(flags), batched | single)
        dims, strides = self.field(x, base + 16), self.field(x, base + 24)
        wide = batched.cast("zext", I64)
        if port.shape or not self.rows:
            self.need(*self.shape(dims, strides, wide, port))
        # batch-last: the batch axis is the last one (index 1) and the row stride that of axis 0
        axis = 0 if self.rows else wide
        size = f.select(batched, dims.at(axis, I64).load(I64), 1)
        step = f.select(batched, strides.load(I64), 0)
        return ArrayView(self.field(x, base), batched, size, step)

    def shape(self, dims: Value, strides: Value, wide: Value, port: Port) -> list[Value]:
        """The trailing dimensions are those of the port, packed; batch-last: (size, B) with unit last stride."""
        if not self.rows:
            return [dims.load(I64).equals(port.size), strides.at(wide, I64).load(I64).equals(self.size)]
        flags, packed = [], self.size
        for axis in reversed(range(len(port.shape))):
            at = wide + axis
            flags.append(dims.at(at, I64).load(I64).equals(port.shape[axis]))
            if port.shape[axis] > 1 and port.size:  # NumPy's strides of nothing are 0
                flags.append(strides.at(at, I64).load(I64).equals(packed))
            packed *= max(1, port.shape[axis])
        return flags

    def batch(self, arrays: Sequence[ArrayView]) -> tuple[Value, Value]:
        """A flag, true if any input is a batch, and the common batch size. Batch-last: all or none."""
        f = self.f
        if not arrays:
            return f.const(I1, "false"), f.const(I64, 1)
        _, batched, total, _ = arrays[0]
        for x in arrays[1:]:
            if self.rows:
                self.need(~(x.batched & batched) | x.size.equals(total))
                total = f.select(x.batched, x.size, total)
                batched = batched | x.batched
            else:
                self.need(x.batched.equals(batched), x.size.equals(total))
        return batched, total

    # -- results --------------------------------------------------------------------------------------------

    def objects(self, user: Value) -> list[Value]:
        """The caller's results, one or a tuple of them."""
        if len(self.outputs) == 1:
            return [user]
        self.need(self.type_of(user).equals(self.table("tuple")) | self.is_ours(user))
        self.need(self.call("PyTuple_Size", I64, user).equals(len(self.outputs)))
        items = range(len(self.outputs))
        return [self.call("PyTuple_GetItem", PTR, user, i) for i in items]

    def is_ours(self, x: Value) -> Value:
        """True if an object is a result that an earlier call has returned."""
        return self.type_of(x).equals(self.table("results"))

    def user_rows(
        self, objects: Sequence[Value], arrays: Sequence[ArrayView], batched: Value, total: Value
    ) -> list[RowPointers]:
        """The caller's arrays, checked: shapes, packed rows that overlap neither each other nor an argument."""
        outs: list[RowPointers] = []
        spans = [self.span(x, p, total) for x, p in zip(arrays, self.inputs)]
        if arrays:
            self.need(*(x.step >= 0 for x in arrays))
        for x, port in zip(objects, self.outputs):
            found = self.array(x, port, ALIGNED_FLAG | WRITEABLE_FLAG)
            self.need(found.batched.equals(batched), found.size.equals(total))
            row = self.packed(port, total)
            alone = total <= 1 if self.rows else found.batched.equals("false")
            self.need((found.step >= row) | alone)
            span = self.span(found._replace(batched=batched), port, total)
            for other in spans:
                self.need(self.before(other, span) | self.before(span, other))
            outs.append((found.data, self.step(found)))
            spans.append(span)
        return outs

    def before(self, a: ByteSpan, b: ByteSpan) -> Value:
        """The bytes of a end before those of b begin; addresses are unsigned."""
        return self.f.let(I1, f"icmp ule i64 {a[1].text}, {b[0].text}")

    def span(self, x: ArrayView, port: Port, total: Value) -> ByteSpan:
        """The bytes of an array, as integers."""
        first = x.data.cast("ptrtoint", I64)
        whole = port.size * self.size
        if self.rows:
            return first, first + (x.step * (total - 1) + whole)
        # a single sample lies along the columns
        row = self.f.select(x.batched, total * self.size, whole)
        return first, first + (x.step * max(0, port.size - 1) + row)

    def packed(self, port: Port, total: Value) -> Value:
        """Bytes from row to row where nothing lies between."""
        return self.f.const(I64, port.size * self.size) if self.rows else total * self.size

    def step(self, x: ArrayView) -> Value:
        """The bytes from row to row of an array; the columns of a single batch-last sample lie side by side."""
        return x.step if self.rows else self.f.select(x.batched, x.step, self.size)

    def allocate(self, batched: Value, total: Value) -> list[Value]:
        made = list[Value]()
        for dims, port in zip(self.dims, self.outputs):
            x = self.new(dims, port, batched, total)
            self.out_of_memory(x, made)
            made.append(x)
        return made

    def new(self, dims: Value, port: Port, batched: Value, total: Value) -> Value:
        f = self.f
        axes: list[Value | int] = [total, *port.shape] if self.rows else [port.size, total]
        for k, extent in enumerate(axes):
            dims.at(k, I64).store(f.value(extent))
        begin = f.select(batched, dims, dims.at(1, I64)) if self.rows else dims
        rank = f.select(batched, f.const(I32, len(axes)), len(axes) - 1)
        size = total * (port.size * self.size)
        return f.choose(
            batched & (size >= ALIGNED_RESULT_BYTES),
            lambda: self.new_on_a_line(size, rank, begin),
            lambda: self.new_array(rank, begin),
        )

    def new_on_a_line(self, size: Value, rank: Value, dims: Value) -> Value:
        """One that begins where a line does, within the memory of another; null where there is none."""
        f = self.f
        self.strides.store(size + CACHE_LINE_BYTES)
        home = self.new_array(f.const(I32, 1), self.strides, BYTE)

        def within() -> Value:
            x = self.new_array(rank, dims, data=on_a_line(self.field(home, self.layout.base)))
            return f.choose(x.differs("null"), lambda: x, lambda: self.given_up(home))

        def based() -> Value:
            failed = self.call("PyArray_SetBaseObject", I32, x, home)  # which has it from now on
            return f.choose(failed.equals(0), lambda: x, lambda: self.given_up(x))

        x = f.choose(home.differs("null"), within, lambda: home)
        return f.choose(x.differs("null"), based, lambda: x)

    def given_up(self, x: Value) -> Value:
        self.release([x])
        return self.f.zero(PTR)

    # -- the work -------------------------------------------------------------------------------------------

    def compute(
        self, arrays: Sequence[ArrayView], outs: Sequence[RowPointers], total: Value, otherwise: str
    ) -> Value:
        """Runs the kernel; gives an i32 that is not 0 if a check failed."""
        for k, data in enumerate([*(x.data for x in arrays), *(data for data, _ in outs)]):
            self.pointers.at(k, PTR).store(data)
        if not self.known.single:
            return self.tiles(arrays, outs, total, otherwise)
        alone = total.equals(1)
        if not self.rows and arrays:  # a batch of one has its columns apart
            alone = arrays[0].batched.equals("false")
        return self.f.choose(
            alone, lambda: self.single(otherwise), lambda: self.tiles(arrays, outs, total, otherwise)
        )

    def made(self, name: str, otherwise: str) -> Value:
        """Address of a callee: there is none before Python has made it, at the first call that needs it."""
        x = self.table(name)
        self.need(x.differs("null"), otherwise=otherwise)
        return x

    def single(self, otherwise: str) -> Value:
        """One sample, where its arrays stand."""
        f, single = self.f, self.made("single", otherwise)
        if not self.known.apart:
            return f.call(I32, single, self.pointers, f.zero(PTR))
        raw = self.memory("room", otherwise)
        code = f.call(I32, single, self.pointers, on_a_line(raw))
        self.call("PyMem_RawFree", VOID, raw)
        return code

    def tiles(
        self, arrays: Sequence[ArrayView], outs: Sequence[RowPointers], total: Value, otherwise: str
    ) -> Value:
        """A batch, without the interpreter's lock where it takes long."""
        f, made = self.f, self.made("drive", otherwise)
        for k, step in enumerate([*(self.step(x) for x in arrays), *(step for _, step in outs)]):
            self.strides.at(k, I64).store(step)
        raw = self.memory("arena", otherwise)
        arena = on_a_line(raw)
        threshold = self.table("threshold").cast("ptrtoint", I64)

        def drive() -> Value:
            return f.call(I32, made, self.pointers, self.strides, total, arena, total)

        def unlocked() -> Value:
            thread = self.call("PyEval_SaveThread", PTR)
            code = drive()
            self.call("PyEval_RestoreThread", VOID, thread)
            return code

        code = f.choose(total >= threshold, unlocked, drive)
        self.call("PyMem_RawFree", VOID, raw)
        return code

    def memory(self, size: str, otherwise: str) -> Value:
        """As many bytes as the table says."""
        raw = self.call("PyMem_RawMalloc", PTR, self.table(size).cast("ptrtoint", I64))
        self.need(raw.differs("null"), otherwise=otherwise)
        return raw

    def bundle(self, made: Sequence[Value]) -> Value:
        """One result, or all in a named tuple; takes the references over."""
        if len(made) == 1:
            return made[0]
        n, results = len(made), self.table("results")
        make = ("PyType_GenericAlloc", PTR, results) if self.layout.bare else ("PyTuple_New", PTR)
        found = self.call(*make, n)
        self.out_of_memory(found, made)
        for k, x in enumerate(made):
            self.call("PyTuple_SetItem", I32, found, k, x)
        if self.layout.bare:
            return found
        self.pointers.store(found)
        # what stands in for PyObject_Vectorcall under CPython 3.10 calls plain functions only, and this is a type
        named = self.call("PyObject_VectorcallDict", PTR, results, self.pointers, 1, self.f.zero(PTR))
        self.call("Py_DecRef", VOID, found)
        return named

    # -- the whole ------------------------------------------------------------------------------------------

    def write(self) -> None:
        f = self.f
        given, user = self.arguments()
        arrays = [self.array(self.field(given, 8 * i), p, ALIGNED_FLAG) for i, p in enumerate(self.inputs)]
        batched, total = self.batch(arrays)
        self.need(total.differs(0))
        with f.when(user.differs("null")):
            self.into_theirs(user, arrays, batched, total)
        self.into_ours(arrays, batched, total)
        f.label(SLOW_LABEL)
        f.ret(self.call("PyObject_Vectorcall", PTR, self.table("slow"), f.args, f.nargs, f.names))

    def into_ours(self, arrays: Sequence[ArrayView], batched: Value, total: Value) -> None:
        """New arrays; 0-d ones become NumPy scalars, as everywhere in NumPy."""
        f = self.f
        made = self.allocate(batched, total)
        steps = ((x, self.packed(p, total)) for x, p in zip(made, self.outputs))
        outs = [(self.field(x, self.layout.base), step) for x, step in steps]
        code = self.compute(arrays, outs, total, FAILED_LABEL)
        self.need(code.equals(0), otherwise=FAILED_LABEL)
        f.ret(
            self.bundle(
                [x if p.shape else self.call("PyArray_Return", PTR, x) for x, p in zip(made, self.outputs)]
            )
        )
        f.label(FAILED_LABEL)
        self.release(made)
        f.jump(SLOW_LABEL)

    def into_theirs(self, user: Value, arrays: Sequence[ArrayView], batched: Value, total: Value) -> None:
        """The caller's arrays; what an earlier call has returned is returned again as it is."""
        f = self.f
        objects = self.objects(user)
        outs = self.user_rows(objects, arrays, batched, total)
        self.need(self.compute(arrays, outs, total, SLOW_LABEL).equals(0))
        if len(objects) > 1:
            with f.when(self.is_ours(user)):
                self.call("Py_IncRef", VOID, user)
                f.ret(user)
        for x in objects:
            self.call("Py_IncRef", VOID, x)
        f.ret(self.bundle(objects))


NamedShapes = Sequence[tuple[str, tuple[int, ...]]]


def entry_shape(
    inputs: NamedShapes, outputs: NamedShapes, scalar: str, rows: bool, single: bool, scratch: int
) -> EntryShape:
    """Makes an EntryShape of arguments and results as a caller sees them. scratch: bytes that one sample needs."""
    ins, outs = (tuple(s if rows else (prod(s),) for _, s, *_ in x) for x in (inputs, outputs))
    return EntryShape(ins, outs, scalar, rows, single, scratch > STACK)


def add_python_entry(m: Module, shape: EntryShape, objects: ObjectLayout) -> None:
    """@table and @entry. `objects`: the interpreter's offsets."""
    _Entry(m, shape, objects).write()


def entry_text(shape: EntryShape, objects: ObjectLayout) -> str:
    """The LLVM text of a module with @table and @entry. `objects`: the interpreter's offsets."""
    m = Module()
    add_python_entry(m, shape, objects)
    return m.text()
