"""The Python entry of a method whose calls are known again: where only the arrays differ from a call before, they
go straight to the kernels of that call, and what these find into a new object.

What is remembered of a call is a tuple: what was asked beside the arrays, members of the object that are known,
the kernel, one that goes on from its results or None, and what kernels are given behind the arrays.
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
    def words(self) -> tuple[int, int, int, int]:
        """Where in the table the names begin, the defaults, and what is remembered; and where it ends."""
        names = len(RECALLED)
        defaults = names + self.arguments
        return names, defaults, defaults + self.asked, defaults + self.asked + KEPT


class _Recall(PythonEntry):
    def __init__(self, m: Module, r: Recall, layout: ObjectLayout) -> None:
        super().__init__(m, RECALLED, r.words[-1], r.arguments, layout)
        self.r = r
        self.line = self.f.alloca(PTR, r.arrays + MORE)

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

            def test(same: Value = same, equal: Any = equal) -> Value:
                return f.choose(same, lambda: yes, equal)

            good = f.choose(good, test, lambda: no)
        return good

    def computed(self, known: Value) -> Value:
        """What the kernels find, or null."""
        f, arrays, first = self.f, self.r.arrays, self.r.asked + len(self.r.told)
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
            made.at(at, I8).store(self.held(self.item(known, r.asked + k)))
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
