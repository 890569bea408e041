"""The interpreter's objects in a function that it calls: their fields, arguments by name, new arrays."""

from __future__ import annotations

from collections.abc import Sequence

from ..llvm.ir import I8, I32, I64, PTR, VOID, Module, Value
from ..lower.lower import Port
from .layout import ENTRY_TABLE, ObjectLayout, names_after

SLOW_LABEL, FAILED_LABEL = (
    "slow",
    "failed",
)  # labels: leave it to Python; the same, after giving back what was made
LOADS = 8  # links with a wrench; of more Python takes care
TYPE_NUMBERS = {8: 12, 4: 11}  # NumPy's, by the bytes of a number
CARRAY = 0x501


class Builtin:
    """@entry(self, args, nargs, names), METH_FASTCALL | METH_KEYWORDS, of a kernel, under construction.

    size: bytes of a number. @table: by the names of TABLE; behind these the names of the inputs and of f_ext.
    slots: where arguments are put in order.
    """

    def __init__(
        self, m: Module, inputs: Sequence[Port], outputs: Sequence[Port], size: int, layout: ObjectLayout
    ) -> None:
        self.inputs, self.outputs, self.size, self.layout = inputs, outputs, size, layout
        m.words("table", len(ENTRY_TABLE) + len(names_after(p.name for p in inputs)))
        self.f = m.function("entry", PTR, {"self": PTR, "args": PTR, "nargs": I64, "names": PTR}, public=True)
        self.places = len(inputs) + 2
        self.slots = self.f.alloca(PTR, self.places)

    # -- objects --------------------------------------------------------------------------------------------

    def field(self, base: Value, offset: int, kind: str = PTR) -> Value:
        return base.at(offset, I8).load(kind)

    def word(self, k: int) -> Value:
        return self.field(self.f.const(PTR, "@table"), 8 * k)

    def table(self, name: str) -> Value:
        return self.word(ENTRY_TABLE.index(name))

    def call(self, name: str, kind: str, *given: Value | int) -> Value:
        return self.f.call(kind, self.table(name), *given)

    def type_of(self, x: Value) -> Value:
        return self.field(x, self.layout.type)

    def held(self, x: Value) -> Value:
        self.call("Py_IncRef", VOID, x)
        return x

    def release(self, made: Sequence[Value]) -> None:
        for x in made:
            self.call("Py_DecRef", VOID, x)

    def need(self, *flags: Value, otherwise: str = SLOW_LABEL) -> None:
        """Goes on if all flags hold, to the slow function otherwise."""
        every = flags[0]
        for flag in flags[1:]:
            every = every & flag
        self.f.require(every, otherwise)

    def out_of_memory(self, x: Value, made: Sequence[Value]) -> None:
        """Without x there is an exception set: give back what was made; `slow` has a sentence for it."""
        with self.f.when(x.equals("null")):
            self.release(made)
            self.call("PyErr_Clear", VOID)
            self.f.jump(SLOW_LABEL)

    def entered(self, builtin: Value, args: Value, count: Value) -> Value:
        """Calls another entry with arguments by place and gives its result."""
        f = self.f
        method = self.field(self.field(builtin, self.layout.base), 8)
        return f.call(PTR, method, builtin, args, count, f.zero(PTR))

    def put_in_order(self, words: Sequence[Value]) -> None:
        """Arguments by position and by name into the slots, null what is not given; words: the names."""
        f = self.f
        for k in range(self.places):
            self.slots.at(k, PTR).store(f.zero(PTR))
        with f.loop(f.nargs) as loop:
            self.slots.at(loop.i, PTR).store(f.args.at(loop.i, PTR).load(PTR))
        with f.when(f.names.differs("null")), f.loop(self.call("PyTuple_Size", I64, f.names)) as loop:
            name, at = self.call("PyTuple_GetItem", PTR, f.names, loop.i), f.const(I64, -1)
            for k, word in enumerate(words):
                at = f.select(name.equals(word), k, at)
            self.need(at >= 0)
            place = self.slots.at(at, PTR)
            self.need(place.load(PTR).equals("null"))
            place.store(f.args.at(f.nargs + loop.i, PTR).load(PTR))

    def need_given(self, count: int) -> None:
        """The first arguments are there."""
        for k in range(count):
            self.need(self.slots.at(k, PTR).load(PTR).differs("null"))

    # -- arrays -------------------------------------------------------------------------------------------

    def new_array(self, rank: Value, dims: Value, number: int = 0, data: Value | None = None) -> Value:
        """A new array of numbers as results have them, or of type `number`; in its own memory or in `data`."""
        f, none = self.f, self.f.zero(PTR)
        kind = f.const(I32, number or TYPE_NUMBERS[self.size])
        size, flags = f.zero(I32), f.const(I32, CARRAY if data else 0)
        return self.call(
            "PyArray_New", PTR, self.table("ndarray"), rank, dims, kind, none, data or none, size, flags, none
        )

    # -- arguments ------------------------------------------------------------------------------------------

    def arguments(self) -> tuple[Value, Value]:
        """Pointer to the addresses of the inputs, and `out`, last or by name, or null."""
        f, n = self.f, len(self.inputs)
        plain = f.names.equals("null")

        def last() -> Value:
            self.need(f.nargs.equals(n) | f.nargs.equals(n + 1))
            return f.choose(f.nargs.equals(n), lambda: f.zero(PTR), lambda: self.field(f.args, 8 * n))

        given = f.choose(plain, lambda: f.args, self.by_name)
        out = f.choose(plain, last, lambda: self.field(self.slots, 8 * (n + 1)))
        return given, f.select(out.equals(self.table("none")), f.zero(PTR), out)

    def by_name(self) -> Value:
        """Arguments by position and by name, put in their order: inputs, f_ext, out; null what is not given."""
        f, n = self.f, len(self.inputs)
        self.need(f.nargs <= n)
        self.put_in_order([*(self.word(len(ENTRY_TABLE) + k) for k in range(n + 1)), self.table("out")])
        self.need_given(n)
        forces = self.slots.at(n, PTR).load(PTR)
        with f.when(forces.differs("null")):
            self.loaded(forces)
        return self.slots

    def loaded(self, forces: Value) -> None:
        """Calls the builtin of these links, in their order, with the wrenches between the inputs and `out`.

        What is read of the dictionary is held: others may change it while the interpreter is not locked.
        """
        f, n = self.f, len(self.inputs)
        self.need(self.type_of(forces).equals(self.table("dict")))
        count = self.call("PyDict_Size", I64, forces)
        self.need(count <= LOADS)
        one, line = count.equals(1), f.alloca(PTR, n + LOADS + 1)
        links = f.choose(one, lambda: f.names, lambda: self.call("PyTuple_New", PTR, count))
        self.out_of_memory(links, [])
        pair, place = f.alloca(PTR, 2), f.alloca(I64)
        place.store(f.const(I64, 0))
        with f.loop(count) as loop:
            self.call("PyDict_Next", I32, forces, place, pair, pair.at(1, PTR))
            link = self.held(pair.load(PTR))
            line.at(loop.i + n, PTR).store(self.held(pair.at(1, PTR).load(PTR)))
            with f.when(~one):
                self.call("PyTuple_SetItem", I32, links, loop.i, link)
        key = f.choose(one, lambda: pair.load(PTR), lambda: links)  # one link stands for itself
        found = self.call("PyDict_GetItem", PTR, self.table("loaded"), key)
        self.release([key])
        known = found.differs("null")
        known = f.choose(known, lambda: self.type_of(found).equals(self.table("builtin")), lambda: known)
        result = f.choose(known, lambda: self.passed_on(self.held(found), line, count), lambda: f.zero(PTR))
        with f.when(known):
            self.release([found])  # which others may have taken out of the dictionary meanwhile
        with f.loop(count) as loop:
            self.release([line.at(loop.i + n, PTR).load(PTR)])
        self.need(known)
        f.ret(result)

    def passed_on(self, builtin: Value, line: Value, count: Value) -> Value:
        """Calls another entry and gives its result; `line` has `count` arguments behind the inputs already."""
        f, n = self.f, len(self.inputs)
        for k in range(n):
            line.at(k, PTR).store(self.slots.at(k, PTR).load(PTR))
        out = self.slots.at(n + 1, PTR).load(PTR)
        line.at(count + n, PTR).store(out)
        return self.entered(builtin, line, f.select(out.equals("null"), count + n, count + (n + 1)))
