"""What stands between an entry and Python: of vectors given as lists or tuples of numbers, arrays are made, and
the entry is called again with these. The same code for all functions; of anything else Python takes care.
"""

from __future__ import annotations

from .ir import F64, I1, I32, I64, PTR, VOID, Module, Value
from .llvm_objects import SLOW, PythonEntry
from .objects import LISTED, MOST, ObjectLayout

EXACT = 2.0**53  # below it whole numbers are floats; beyond it NumPy may have no number for them at all
FAILED = -1.0  # what is given where there is an exception; and for this number


class _Lists(PythonEntry):
    """@table: LISTED, then the arrays that are filled, one for each input."""

    def __init__(self, m: Module, size: int, layout: ObjectLayout) -> None:
        super().__init__(m, LISTED, len(LISTED) + MOST, 0, layout)
        self.size, self.element = size, F64 if size == 8 else "float"

    def write(self) -> None:
        """The references of a call are its caller's, so all the arguments of the one made here are held."""
        f, line, none = self.f, self.f.alloca(PTR, MOST + 1), self.f.zero(PTR)
        count = self.table("count").cast("ptrtoint", I64)
        self.need(f.names.equals("null") & (f.nargs.equals(count) | f.nargs.equals(count + 1)))
        last = f.choose(f.nargs.equals(count), lambda: none, lambda: f.args.at(count, PTR).load(PTR))
        line.at(count, PTR).store(last)
        with f.loop(count, some=True, found=0) as loop:
            x = f.args.at(loop.i, PTR).load(PTR)
            array = self.array_of(x, loop.i)
            made = array.differs("null")
            line.at(loop.i, PTR).store(f.choose(made, lambda: array, lambda: self.held(x)))
            loop.found = loop.found + made.cast("zext", I64)
        some = loop.found.differs(0)
        result = f.choose(some, lambda: self.entered(self.table("fast"), line, f.nargs), lambda: none)
        with f.loop(count, some=True) as loop:
            self.release([line.at(loop.i, PTR).load(PTR)])
        self.need(some)
        f.ret(result)
        f.label(SLOW)
        f.ret(self.call("PyObject_Vectorcall", PTR, self.table("slow"), f.args, f.nargs, f.names))

    def array_of(self, x: Value, k: Value) -> Value:
        """The numbers of a list as an array; null of anything else."""
        f, none, kind = self.f, self.f.zero(PTR), self.type_of(x)
        listed, size = kind.equals(self.table("list")), self.table("sizes").at(k, I64).load(I64)

        def length() -> Value:
            return f.choose(
                listed, lambda: self.call("PyList_Size", I64, x), lambda: self.call("PyTuple_Size", I64, x)
            )

        either = listed | kind.equals(self.table("tuple"))
        fits = f.choose(either, lambda: length().equals(size), lambda: f.const(I1, "false"))
        return f.choose(fits, lambda: self.filled(x, listed, size, k), lambda: none)

    def filled(self, x: Value, listed: Value, size: Value, k: Value) -> Value:
        f, dims = self.f, self.f.alloca(I64)
        dims.store(size)
        kept = f.const(PTR, "@table").at(k + len(LISTED), PTR).load(PTR)
        array = f.choose(
            self.unheld(kept, [size]), lambda: self.held(kept), lambda: self.new_array(f.const(I32, 1), dims)
        )

        def without_memory() -> Value:
            self.call("PyErr_Clear", VOID)
            return array

        return f.choose(array.differs("null"), lambda: self.read(x, listed, size, array), without_memory)

    def read(self, x: Value, listed: Value, size: Value, array: Value) -> Value:
        """The array, if all of them are numbers, which are put there."""
        f, data = self.f, self.field(array, self.layout.base)
        with f.loop(size, carry={"good": f.const(I1, "true")}) as loop:

            def item(name: str) -> Value:
                return self.call(name, PTR, x, loop.i)

            number = f.choose(listed, lambda: item("PyList_GetItem"), lambda: item("PyTuple_GetItem"))
            kind = self.type_of(number)
            real = kind.equals(self.table("float"))
            loop.good = real | kind.equals(self.table("int"))
            loop.leave(~loop.good)
            value = self.call("PyFloat_AsDouble", F64, number)
            loop.good = real | self.exact(value)
            loop.leave(~loop.good)
            told = value if self.element == F64 else value.cast("fptrunc", self.element)
            data.at(loop.i, self.element).store(told)

        def given_back() -> Value:
            self.release([array])
            return f.zero(PTR)

        return f.choose(loop.good, lambda: array, given_back)

    def exact(self, x: Value) -> Value:
        """Of a whole number: it is one that floats hold. One too large for any leaves an exception."""
        f, none = self.f, self.f.zero(PTR)
        error = f.choose(x.equals(FAILED), lambda: self.call("PyErr_Occurred", PTR), lambda: none)
        with f.when(error.differs("null")):
            self.call("PyErr_Clear", VOID)
        return (x < EXACT) & (x > -EXACT) & error.equals("null")


def lists_text(size: int, layout: ObjectLayout) -> str:
    """The module, for numbers of so many bytes."""
    m = Module()
    _Lists(m, size, layout).write()
    return m.text()
