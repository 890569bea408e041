"""The Python entry of a method whose calls are known again: where only the arrays differ from a call before, they
go straight to the kernels of that call, and what these find into a new object.

What is remembered of a call is a tuple: what was asked beside the arrays, the dictionaries in those lists that
need only be alike (or None), members of the object that are known, the kernel, one that goes on from its results
or None, and what kernels are given behind the arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .ir import I1, I8, I32, I64, PTR, VOID, Module, Value
from .llvm_objects import FAILED, SLOW, PythonEntry
from .objects import KEPT, RECALLED, ObjectLayout

EQUAL = 2  # Py_EQ
MORE = 8  # arguments of kernels behind the arrays, at most


class Recall(NamedTuple):
    """arguments: of the method, the first of which are `arrays`; alike: those that need only be equal to what was
    asked, where the others are the same objects; told, found: where members stand in the object, in bytes."""

    arguments: int
    arrays: int
    alike: tuple[int, ...]
    told: tuple[int, ...]
    found: tuple[int, ...]

    @property
    def asked(self) -> int:
        """Arguments beside the arrays."""
        return self.arguments - self.arrays

    @property
    def beside(self) -> int:
        """Of what is remembered that which calls are compared with."""
        return self.asked + len(self.alike)

    @property
    def words(self) -> tuple[int, int, int, int]:
        """Where in the table the names begin, the defaults, and what is remembered; and where it ends."""
        names = len(RECALLED)
        defaults = names + self.arguments
        return names, defaults, defaults + self.asked, defaults + self.asked + KEPT


class _Recall(PythonEntry):
    def __init__(self, m: Module, r: Recall, layout: ObjectLayout) -> None:
        super().__init__(m, RECALLED, r.words[-1], r.arguments, layout)
        self.r = r
        self.line, self.pair, self.place = (
            self.f.alloca(PTR, r.arrays + MORE),
            self.f.alloca(PTR, 2),
            self.f.alloca(I64),
        )

    def item(self, members: Value, k: Value | int) -> Value:
        """Of a tuple."""
        if not self.layout.bare:
            return self.call("PyTuple_GetItem", PTR, members, k)
        return members.at(self.layout.base + 8, I8).at(k, PTR).load(PTR)

    def write(self) -> None:
        f, r = self.f, self.r
        names, defaults, memory, _ = r.words
        self.need(f.nargs <= r.arguments)
        self.put_in_order([self.word(names + k) for k in range(r.arguments)])
        self.need_given(r.arrays)
        for k in range(r.asked):
            place, default = self.slots.at(r.arrays + k, PTR), self.word(defaults + k)
            given = place.load(PTR)
            place.store(f.select(given.equals("null"), default, given))
        known = self.remembered(memory)
        found = self.computed(known)
        with f.when(found.equals("null")):
            f.jump(FAILED)
        made = self.made(known, found)
        self.release([known])
        f.ret(made)
        f.label(FAILED)
        with f.when(self.call("PyErr_ExceptionMatches", I32, self.table("refusals")).equals(0)):
            self.release([known])
            f.ret("null")
        self.call("PyErr_Clear", VOID)
        self.release([known])
        f.jump(SLOW)
        f.label(SLOW)
        f.ret(self.call("PyObject_Vectorcall", PTR, self.table("slow"), f.args, f.nargs, f.names))

    def remembered(self, memory: int) -> Value:
        """What is known of a call that asked the same, held: others may forget it meanwhile."""
        f = self.f
        with f.loop(KEPT, some=True, carry={"known": f.zero(PTR)}) as s:
            known = f.const(PTR, "@table").at(s.i + memory, PTR).load(PTR)
            self.need(known.differs("null"))
            s.known = self.held(known)
            s.leave(self.asked_again(known))
            self.release([known])
            s.known = f.zero(PTR)
        self.need(s.known.differs("null"))
        return s.known

    def asked_again(self, known: Value) -> Value:
        f, yes, no = self.f, self.f.const(I1, "true"), self.f.const(I1, "false")
        good = yes
        for k in range(self.r.asked):
            mine, given = self.item(known, k), self.slots.at(self.r.arrays + k, PTR).load(PTR)
            same = mine.equals(given)
            if k + self.r.arrays not in self.r.alike:
                good = good & same
                continue

            def equal(mine: Value = mine, given: Value = given) -> Value:
                answer = self.call("PyObject_RichCompareBool", I32, mine, given, f.const(I32, EQUAL))
                with f.when(answer < 0):
                    self.call("PyErr_Clear", VOID)
                return answer.equals(1)

            shape = self.item(known, self.r.asked + self.r.alike.index(k + self.r.arrays))

            def alike(shape: Value = shape, given: Value = given, equal: Any = equal) -> Value:
                return f.choose(self.unchanged(shape, given), lambda: yes, equal)

            def test(same: Value = same, alike: Any = alike) -> Value:
                return f.choose(same, lambda: yes, alike)

            good = f.choose(good, test, lambda: no)
        return good

    def unchanged(self, shape: Value, given: Value) -> Value:
        """Whether a list has the same dictionaries as before, and these the same entries: told by addresses, where
        comparing takes twice as long. shape: each dictionary, and behind it a tuple of its keys and values."""
        f, no = self.f, self.f.const(I1, "false")

        def listed() -> Value:
            count = self.call("PyList_Size", I64, given)
            fits = (count + count).equals(self.call("PyTuple_Size", I64, shape))
            return f.choose(fits, lambda: self.same_members(shape, given, count), lambda: no)

        known = shape.differs(self.table("none")) & self.type_of(given).equals(self.table("list"))
        return f.choose(known, listed, lambda: no)

    def same_members(self, shape: Value, given: Value, count: Value) -> Value:
        f, pair = self.f, self.pair
        with f.loop(count, carry={"good": f.const(I1, "true")}) as s:
            member, entries = self.call("PyList_GetItem", PTR, given, s.i), self.item(shape, s.i * 2 + 1)
            s.good = member.equals(self.item(shape, s.i * 2))
            s.leave(~s.good)
            size = self.call("PyDict_Size", I64, member)
            s.good = (size + size).equals(self.call("PyTuple_Size", I64, entries))
            s.leave(~s.good)
            self.place.store(f.const(I64, 0))
            with f.loop(size, carry={"good": s.good}) as e:
                self.call("PyDict_Next", I32, member, self.place, pair, pair.at(1, PTR))
                key, value = (pair.at(k, PTR).load(PTR) for k in range(2))
                e.good = key.equals(self.item(entries, e.i * 2)) & value.equals(self.item(entries, e.i * 2 + 1))
                e.leave(~e.good)
            s.good = e.good
            s.leave(~s.good)
        return s.good

    def computed(self, known: Value) -> Value:
        """What the kernels find, or null."""
        f, arrays, first = self.f, self.r.arrays, self.r.beside + len(self.r.told)
        for k in range(arrays):
            self.line.at(k, PTR).store(self.slots.at(k, PTR).load(PTR))
        behind = self.call("PyTuple_Size", I64, known) - (first + 2)
        self.behind(known, first + 2, behind, arrays)
        found = self.entered(self.item(known, first), self.line, behind + arrays)
        after = self.item(known, first + 1)

        def going_on() -> Value:
            for k in range(2):
                self.line.at(k, PTR).store(self.call("PyTuple_GetItem", PTR, found, k))
            self.line.at(2, PTR).store(self.slots.at(arrays - 1, PTR).load(PTR))
            self.behind(known, first + 2, behind, 3)
            more = self.entered(after, self.line, behind + 3)
            self.release([found])
            return more

        ends = after.equals(self.table("none")) | found.equals("null")
        return f.choose(ends, lambda: found, going_on)

    def behind(self, known: Value, first: int, count: Value, at: int) -> None:
        """What kernels are given behind the arrays."""
        with self.f.loop(count) as s:
            self.line.at(s.i + at, PTR).store(self.item(known, s.i + first))

    def made(self, known: Value, found: Value) -> Value:
        """The object; takes the reference to what was found over."""
        r, made = self.r, self.call("PyType_GenericAlloc", PTR, self.table("kind"), 0)
        with self.f.when(made.equals("null")):
            self.release([found])
            self.f.jump(FAILED)
        for k, at in enumerate(r.told):
            made.at(at, I8).store(self.held(self.item(known, r.beside + k)))
        if len(r.found) == 1:
            made.at(r.found[0], I8).store(found)
            return made
        for k, at in enumerate(r.found):
            made.at(at, I8).store(self.held(self.call("PyTuple_GetItem", PTR, found, k)))
        self.release([found])
        return made


def recall_text(r: Recall, layout: ObjectLayout) -> str:
    """The module of an entry."""
    m = Module()
    _Recall(m, r, layout).write()
    return m.text()
