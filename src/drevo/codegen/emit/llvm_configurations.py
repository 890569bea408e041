"""The Python entries of `neutral` and `random`: a configuration that is copied, or drawn by NumPy's own functions
in the order in which its Generator would be asked for the same numbers. The same code for all robots.

Of a call with anything but one plain Generator Python takes care.
"""

from __future__ import annotations

from .ir import F64, I32, I64, PTR, VOID, Module, Value
from .llvm_objects import SLOW, PythonEntry
from .objects import DRAWN, ObjectLayout, spares_after

QUATERNION = 4  # numbers


class _Configurations(PythonEntry):
    def __init__(self, m: Module, layout: ObjectLayout) -> None:
        (self.spares,), words = spares_after(len(DRAWN), [self.size], layout)
        super().__init__(m, DRAWN, words, 0, layout)

    def number(self, name: str) -> Value:
        return self.table(name).cast("ptrtoint", I64)

    def made(self) -> tuple[Value, Value]:
        """An array (nq,) that nobody holds, and its data."""
        f, size = self.f, self.f.alloca(I64)
        size.store(self.number("nq"))
        x = self.spare(self.spares, [self.number("nq")], lambda: self.new_array(f.const(I32, 1), size))
        self.out_of_memory(x, [])
        return x, self.field(x, self.layout.base)

    def write_neutral(self) -> None:
        f = self.f
        self.need(f.names.equals("null") & f.nargs.equals(0))
        x, data = self.made()
        low = self.table("low")
        with f.loop(self.number("nq")) as loop:
            data.at(loop.i).store(low.at(loop.i).load())
        f.ret(x)
        self.leave_to_python()

    def write_random(self) -> None:
        f = self.f
        self.need(f.names.equals("null") & f.nargs.equals(1))
        rng = f.args.load(PTR)
        self.need(self.type_of(rng).equals(self.table("generator")))
        x, data = self.made()
        held = [x]
        for name in ("bit_generator", "lock", "capsule"):  # of the first the others
            owner = rng if len(held) == 1 else held[1]
            found = self.call("PyObject_GetAttr", PTR, owner, self.table(name))
            self.out_of_memory(found, held)
            held.append(found)
        _, _, lock, capsule = held
        bits = self.call("PyCapsule_GetPointer", PTR, capsule, self.table("kind"))
        self.out_of_memory(bits, held)
        place = f.alloca(PTR)
        place.store(lock)
        self.out_of_memory(taken := self.asked(place, "acquire"), held)
        self.release([taken])
        self.draw(bits, data)
        self.out_of_memory(freed := self.asked(place, "release"), held)
        self.release([freed, *held[1:]])
        self.into_ranges(data)
        f.ret(x)
        self.leave_to_python()

    def asked(self, place: Value, method: str) -> Value:
        """What a method of the object that stands there gives."""
        f, none = self.f, self.f.zero(PTR)
        return f.call(PTR, self.table("PyObject_VectorcallMethod"), self.table(method), place, 1, none)

    def draw(self, bits: Value, data: Value) -> None:
        """Of each run of coordinates, numbers of [0, 1); then of its quaternion, if it has one, another four."""
        f, runs = self.f, self.table("runs")
        with f.loop(self.number("count"), at=0) as loop:
            size, turns = (runs.at(loop.i * 2 + k, I64).load(I64) for k in range(2))
            self.call("random_standard_uniform_fill", VOID, bits, size, data.at(loop.at))
            loop.at = loop.at + size
            with f.when(turns.differs(0)):
                self.turn(bits, data.at(loop.at - QUATERNION))

    def turn(self, bits: Value, place: Value) -> None:
        """A rotation, all alike likely: normal numbers made a unit quaternion."""
        f = self.f
        self.call("random_standard_normal_fill", VOID, bits, QUATERNION, place)
        parts = [place.at(k).load() for k in range(QUATERNION)]
        square = f.const(F64, 0.0)
        for x in parts:
            square = square + x * x
        length = f.call(F64, "llvm.sqrt.f64", square)
        for k, x in enumerate(parts):
            place.at(k).store(x / length)

    def into_ranges(self, data: Value) -> None:
        f, low, width = self.f, self.table("low"), self.table("width")
        with f.loop(self.number("nq")) as loop:
            at = data.at(loop.i)
            at.store(at.load() * width.at(loop.i).load() + low.at(loop.i).load())

    def leave_to_python(self) -> None:
        f = self.f
        f.label(SLOW)
        f.ret(self.call("PyObject_Vectorcall", PTR, self.table("slow"), f.args, f.nargs, f.names))


def configurations_text(name: str, layout: ObjectLayout) -> str:
    """The module of one of the two."""
    m = Module()
    entry = _Configurations(m, layout)
    (entry.write_random if name == "random" else entry.write_neutral)()
    return m.text()
