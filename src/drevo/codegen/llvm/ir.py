"""LLVM text by typed values, operators and structured loops: a function is written as the loops that it is.

Straight-line kernels, where the cost of an instruction counts, stay f-strings (`kernel`); whatever has
control flow is written with this. Values are in SSA form; a loop carries what is given to it by name.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

PTR, I1, I8, I32, I64, F64 = "ptr", "i1", "i8", "i32", "i64", "double"
VOID = "void"
_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "lshr"}


def floating(kind: str) -> bool:
    """True for a floating-point type, or a vector of floats."""
    return "double" in kind or "float" in kind


def lanes_of(kind: str) -> tuple[int, str]:
    """Number of elements that a type has side by side, and their type."""
    if not kind.startswith("<"):
        return 1, kind
    count, _, element = kind.strip("<>").split()
    return int(count), element


def like(kind: str, element: str) -> str:
    """The type with as many lanes as `kind`, of another element."""
    count = lanes_of(kind)[0]
    return element if count == 1 else f"<{count} x {element}>"


def literal(x: float, kind: str = F64) -> str:
    """A float of a type, exactly; rounded once for "float"."""
    if kind == "float":
        x = struct.unpack("f", struct.pack("f", x))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"


def _operator(sign: str) -> Callable[[Value, Operand], Value]:
    """Two operands of one type."""

    def applied(x: Value, y: Operand) -> Value:
        name = _FLOAT[sign] if floating(x.type) else _INT[sign]
        return x.f.let(x.type, f"{name} {x.type} {x.text}, {x.f.text_of(y, x.type)}")

    return applied


def _comparison(order: str) -> Callable[[Value, Operand], Value]:
    """Lane by lane; a NaN differs from all, and is in no other order to anything."""
    ordered = f"fcmp {'une' if order == 'ne' else 'o' + order}"
    signed = f"icmp {order if order in ('eq', 'ne') else 's' + order}"

    def compared(x: Value, y: Operand) -> Value:
        name = ordered if floating(x.type) else signed
        return x.f.let(like(x.type, I1), f"{name} {x.type} {x.text}, {x.f.text_of(y, x.type)}")

    return compared


class Value:
    """An SSA value of a function. Operators emit the instruction of its type; integers are signed.

    x >> n shifts zeros in from the left. `equals` and `differs` compare: == is Python's own.
    """

    __slots__ = ("f", "text", "type")

    def __init__(self, f: IRFunction, kind: str, text: str) -> None:
        self.f, self.type, self.text = f, kind, text

    __add__, __sub__, __mul__, __truediv__ = map(_operator, "+-*/")
    __and__, __or__, __xor__, __lshift__, __rshift__ = map(_operator, ("&", "|", "^", "<<", ">>"))
    __lt__, __le__, __gt__, __ge__, equals, differs = map(_comparison, ("lt", "le", "gt", "ge", "eq", "ne"))

    def __neg__(self) -> Value:
        return self.f.zero(self.type) - self

    def __invert__(self) -> Value:
        return self ^ (1 if self.type == I1 else -1)

    def is_nan(self) -> Value:
        """Lane by lane."""
        return self.f.let(like(self.type, I1), f"fcmp uno {self.type} {self.text}, {self.text}")

    def at(self, index: Operand, kind: str = F64) -> Value:
        """The address of an element of this pointer; `kind` I8 counts in bytes."""
        return self.f.let(PTR, f"getelementptr {kind}, ptr {self.text}, i64 {self.f.text_of(index, I64)}")

    def load(self, kind: str = F64, align: int = 0) -> Value:
        """Loads the value that this pointer points to."""
        return self.f.let(kind, f"load {kind}, ptr {self.text}{_aligned(align)}")

    def store(self, x: Value, align: int = 0, hint: str = "") -> None:
        """Puts a value where this pointer points to."""
        self.f.put(f"store {x.type} {x.text}, ptr {self.text}{_aligned(align)}{hint}")

    def prefetch(self) -> None:
        """Into the caches, to be read soon."""
        hints = (self.f.const(I32, k) for k in (0, 2, 1))  # kept for a while, data
        self.f.call(VOID, "llvm.prefetch.p0", self, *hints)

    def shuffle(self, other: Value | None, lanes: Iterable[int]) -> Value:
        """The named lanes of this vector, and of another, whose lanes count on."""
        items = [f"i32 {k}" for k in lanes]
        kind = f"<{len(items)} x {lanes_of(self.type)[1]}>"
        second = other.text if other else "poison"
        mask = f"<{len(items)} x i32> <{', '.join(items)}>"
        return self.f.let(kind, f"shufflevector {self.type} {self.text}, {self.type} {second}, {mask}")

    def lane(self, k: int) -> Value:
        """One element; a scalar is its own."""
        count, element = lanes_of(self.type)
        return self if count == 1 else self.f.let(element, f"extractelement {self.type} {self.text}, i32 {k}")

    def put_lane(self, k: int, x: Value) -> Value:
        """With another value in a lane."""
        return self.f.let(self.type, f"insertelement {self.type} {self.text}, {x.type} {x.text}, i32 {k}")

    def cast(self, how: str, kind: str) -> Value:
        """sitofp, zext, bitcast, ptrtoint, .. to another type."""
        return self.f.let(kind, f"{how} {self.type} {self.text} to {kind}")

    def part(self, k: int) -> Value:
        """Member k of a structure."""
        return self.f.let(self.type.strip("{}").split(", ")[k], f"extractvalue {self.type} {self.text}, {k}")

    def splat(self, lanes: int) -> Value:
        """The scalar in every lane."""
        if lanes == 1:
            return self
        kind = f"<{lanes} x {self.type}>"
        one = self.f.let(kind, f"insertelement {kind} poison, {self.type} {self.text}, i32 0")
        return self.f.let(kind, f"shufflevector {kind} {one.text}, {kind} poison, <{lanes} x i32> zeroinitializer")


Operand = Value | int | float | str


def _aligned(align: int) -> str:
    return f", align {align}" if align else ""


class IRLoop:
    """A loop under construction. Attributes are what it carries: read the present value, assign the next one.

    After the loop they are the last values; `i` is the counter of a loop with a stop.
    """

    _f: IRFunction
    _end: str  # the label after the loop
    _now: dict[str, Value]
    _exits: list[tuple[str, dict[str, Value]]]  # the blocks that lead there, with the values at their ends

    def __init__(self, f: IRFunction, end: str, carried: Mapping[str, Value]) -> None:
        self.__dict__.update(_f=f, _end=end, _now=dict(carried), _exits=[])

    def __getattr__(self, name: str) -> Value:
        found: Value = self.__dict__["_now"][name]
        return found

    def __setattr__(self, name: str, x: Value) -> None:
        if name not in self._now:
            raise AttributeError(f"the loop does not carry {name}")
        self._now[name] = x

    def leave(self, where: Value) -> None:
        """Ends the loop here if `where` holds, with the values of now."""
        f, label = self._f, self._f.fresh("go")
        self._exits.append((f.block, dict(self._now)))
        f.put(f"br i1 {where.text}, label %{self._end}, label %{label}")
        f.label(label)


class IRFunction:
    """A function under construction: `f.x` is its argument x.

    lines: the text so far; straight-line code may be appended without the builder. block: the label of now.
    leaving: what is written before every return.
    """

    arguments: dict[str, Value]

    def __init__(
        self, module: Module, name: str, result: str, arguments: dict[str, str], linkage: str, attributes: str
    ) -> None:
        self.module = module
        given = ", ".join(f"{kind} %{x}" for x, kind in arguments.items())
        # nothing here is unwound: without the word objects carry tables for it, those for ARM ask for an unwinder
        self._head = f"define {linkage}{result} @{name}({given}){attributes} nounwind"
        self.result, self.lines, self._entry = result, list[str](), list[str]()
        self.block, self._count = "entry", 0
        self.leaving: Callable[[], object] | None = None
        self.arguments = {x: Value(self, kind.removesuffix(" noalias"), f"%{x}") for x, kind in arguments.items()}

    def __getattr__(self, name: str) -> Value:
        try:
            found: Value = self.__dict__["arguments"][name]
        except KeyError:
            raise AttributeError(name) from None
        return found

    # -- instructions ---------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        """A name that this function has not used."""
        self._count += 1
        return f"{stem}{self._count}"

    def put(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def let(self, kind: str, text: str, first: bool = False) -> Value:
        """The value of an instruction. first: it stands in the entry block, before everything else."""
        name = f"%{self.fresh('x')}"
        (self._entry if first else self.lines).append(f"  {name} = {text}")
        return Value(self, kind, name)

    def text_of(self, x: Operand, kind: str) -> str:
        """An operand as text: a value, a number (in every lane), or a literal as it stands."""
        if isinstance(x, (Value, str)):
            return x.text if isinstance(x, Value) else x
        count, element = lanes_of(kind)
        text = literal(float(x), element) if floating(kind) else str(x)
        return text if count == 1 else f"<{', '.join([f'{element} {text}'] * count)}>"

    def const(self, kind: str, x: Operand) -> Value:
        """A number (in every lane), or a literal."""
        return Value(self, kind, self.text_of(x, kind))

    def value(self, x: Value | int) -> Value:
        """A number is I64."""
        return x if isinstance(x, Value) else self.const(I64, x)

    def zero(self, kind: str) -> Value:
        return self.const(kind, "zeroinitializer" if "<" in kind else "null" if kind == PTR else 0)

    def counting(self, kind: str, first: int = 0) -> Value:
        """first, first + 1, .. in the lanes of an integer type."""
        count, element = lanes_of(kind)
        return self.const(kind, f"<{', '.join(f'{element} {first + k}' for k in range(count))}>")

    def select(self, where: Value, x: Operand, y: Operand) -> Value:
        """x where it holds, else y; lane by lane. One of them has a type."""
        kind = next(v.type for v in (x, y) if isinstance(v, Value))
        either = ", ".join(f"{kind} {self.text_of(v, kind)}" for v in (x, y))
        return self.let(kind, f"select {where.type} {where.text}, {either}")

    def struct(self, *members: Value) -> Value:
        """Several values as one."""
        found = self.const(f"{{{', '.join(x.type for x in members)}}}", "undef")
        for k, x in enumerate(members):
            found = self.let(found.type, f"insertvalue {found.type} {found.text}, {x.type} {x.text}, {k}")
        return found

    def call(self, result: str, callee: str | Value, *given: Value | int, flags: str = "") -> Value:
        """A call by name or address, LLVM's own functions declared; numbers are I64.

        Of a void function the value is of no use.
        """
        passed = [self.value(x) for x in given]
        if isinstance(callee, str) and callee.startswith("llvm."):
            self.module.declare(result, callee, *(x.type for x in passed))
        name = callee.text if isinstance(callee, Value) else f"@{callee}"
        text = f"call {flags}{result} {name}({', '.join(f'{x.type} {x.text}' for x in passed)})"
        if result != VOID:
            return self.let(result, text)
        self.put(text)
        return self.const(VOID, "")

    def smaller(self, x: Value, y: Operand) -> Value:
        """The smaller of two signed integers."""
        return self.call(x.type, f"llvm.smin.{x.type}", x, self.const(x.type, y))

    def alloca(self, kind: str, count: int = 1) -> Value:
        """The address of room on the stack for some values of a type."""
        return self.let(PTR, f"alloca [{count} x {kind}]", first=True)

    def ret(self, x: Operand | None = None) -> None:
        if self.leaving is not None:
            self.leaving()
        self.put("ret void" if x is None else f"ret {self.result} {self.text_of(x, self.result)}")
        self.block = ""  # nothing follows

    # -- control flow ---------------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    @contextmanager
    def when(self, where: Value) -> Iterator[None]:
        """The body only where it holds; values made in it end with it."""
        then, after = self.fresh("then"), self.fresh("after")
        self.put(f"br i1 {where.text}, label %{then}, label %{after}")
        self.label(then)
        yield
        if self.block:
            self.put(f"br label %{after}")
        self.label(after)

    def fence_if(self, where: Value) -> None:
        """Puts a fence: stores past the caches are seen before what follows; once, for it waits for all."""
        with self.when(where):
            self.put("fence seq_cst")

    def require(self, where: Value, otherwise: str) -> None:
        """Goes on where it holds, else to a label that stands later."""
        after = self.fresh("held")
        self.put(f"br i1 {where.text}, label %{after}, label %{otherwise}")
        self.label(after)

    def jump(self, label: str) -> None:
        """On to a label that stands later."""
        self.put(f"br label %{label}")
        self.block = ""  # nothing follows

    def choose(self, where: Value, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        """The value of one of two branches; only that one is run."""
        labels, after, sources = (self.fresh("then"), self.fresh("else")), self.fresh("after"), []
        self.put(f"br i1 {where.text}, label %{labels[0]}, label %{labels[1]}")
        for label, branch in zip(labels, (then, otherwise)):
            self.label(label)
            x = branch()
            sources.append((self.block, x))
            self.put(f"br label %{after}")
        self.label(after)
        return self._joined(sources)

    def switch(self, index: Value, branches: Sequence[Callable[[], None]]) -> None:
        """Runs the branch of that number, the first one for any other number; a branch that returns ends there."""
        labels, after = [self.fresh("case") for _ in branches], self.fresh("after")
        cases = " ".join(f"{index.type} {k}, label %{x}" for k, x in enumerate(labels) if k)
        self.put(f"switch {index.type} {index.text}, label %{labels[0]} [{cases}]")
        for label, branch in zip(labels, branches):
            self.label(label)
            branch()
            if self.block:
                self.put(f"br label %{after}")
        self.label(after)

    @contextmanager
    def loop(
        self, stop: Operand | None = None, *, start: Operand = 0, step: int = 1, some: bool = False,
        carry: Mapping[str, Value] | None = None, **numbers: Value | int,
    ) -> Iterator[IRLoop]:  # fmt: skip
        """The body for i = start, start + step, .. below `stop`, above it with a negative step; without `stop`
        until it leaves.

        some: it is known to run once at least, which saves a test. numbers, carry: values from pass to pass.
        """
        carried = {name: self.value(x) for name, x in numbers.items()} | dict(carry or {})
        below = _comparison("lt" if step > 0 else "gt")
        body, loop = self.fresh("loop"), IRLoop(self, self.fresh("done"), carried)
        if stop is None or some:
            self.put(f"br label %{body}")
        else:
            any_ = below(self.const(I64, start), stop)
            self.put(f"br i1 {any_.text}, label %{body}, label %{loop._end}")
            loop._exits.append((self.block, dict(carried)))
        before = self.block
        self.label(body)
        here = len(self.lines)
        first = {**carried, **({} if stop is None else {"i": self.const(I64, start)})}
        phis = {name: Value(self, x.type, f"%{self.fresh(name)}") for name, x in first.items()}
        loop._now.update(phis)
        yield loop
        if self.block:
            if stop is not None:
                loop._now["i"] = phis["i"] + step
            self.lines[here:here] = [
                f"  {phis[n].text} = phi {x.type} [{x.text}, %{before}], [{loop._now[n].text}, %{self.block}]"
                for n, x in first.items()
            ]
            if stop is None:
                self.put(f"br label %{body}")
            else:
                loop._exits.append((self.block, dict(loop._now)))
                more = below(loop._now["i"], stop)
                self.put(f"br i1 {more.text}, label %{body}, label %{loop._end}")
        self.label(loop._end)
        for name in carried:
            loop._now[name] = self._joined([(block, now[name]) for block, now in loop._exits])

    def _joined(self, sources: Sequence[tuple[str, Value]]) -> Value:
        kind = sources[0][1].type
        return self.let(kind, f"phi {kind} " + ", ".join(f"[{x.text}, %{block}]" for block, x in sources))

    def text(self) -> str:
        return "\n".join([f"{self._head} {{", "entry:", *self._entry, *self.lines, "}", ""])


class Module:
    """Functions by name, and the declarations of what they call from outside, each once.

    internal: whether functions that are not public are "noinline" or "alwaysinline".
    """

    def __init__(self, internal: str = "noinline") -> None:
        self.internal = internal
        self.functions: dict[str, IRFunction] = {}
        self.declared: dict[str, str] = {}
        self.data: dict[str, str] = {}
        self.numbers: dict[str, int] = {}

    def function(
        self, name: str, result: str = VOID, given: Mapping[str, str] | None = None, *,
        public: bool = False, attributes: str = "", **arguments: str,
    ) -> IRFunction:  # fmt: skip
        """A new function with typed arguments; internal, unless it is public."""
        head, tail = ("", "") if public else ("internal ", f" {self.internal}")
        found = IRFunction(self, name, result, {**(given or {}), **arguments}, head, tail + attributes)
        self.functions[name] = found
        return found

    def declare(self, result: str, name: str, *kinds: str) -> None:
        """A function of LLVM's."""
        self.declared[name] = f"declare {result} @{name}({', '.join(kinds)})"

    def words(self, name: str, count: int) -> None:
        """Room for addresses @name, filled after loading."""
        self.data[name] = f"@{name} = global [{count} x ptr] zeroinitializer, align 64"

    def constant(self, name: str, kind: str, values: Sequence[str]) -> None:
        """A table of constants @name."""
        items = ", ".join(f"{kind} {x}" for x in values)
        self.data[name] = f"@{name} = private constant [{len(values)} x {kind}] [{items}]"

    def number(self, kind: str, text: str) -> int:
        """The place of a number in a table of constants @numbers, all of one kind."""
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            self.constant("numbers", kind, list(self.numbers))
        return self.numbers[text]

    def past_caches(self) -> str:
        """The hint of a store that no cache shall keep."""
        self.data["!0"] = "!0 = !{i32 1}"
        return ", !nontemporal !0"

    def text(self) -> str:
        parts = [*self.declared.values(), *(f.text() for f in self.functions.values()), *self.data.values(), ""]
        return "\n".join(parts)
