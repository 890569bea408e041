"""Plain functions of Python as machine code: the loops and branches of an algorithm, as they are written.

A function is of floats, integers, truth values, arrays of numbers, and named tuples of floats with their operators
and methods, such as vectors; all have annotations. It may call others alike, and runs in Python too. Of Python it
has: assignments, if, while, for over range, break, continue, return, + - * / @ and comparisons, and, or, not,
x if c else y, and the functions of BUILTINS.
"""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections.abc import Callable
from typing import Any

from ...errors import EmitError
from ..lower.plain_values import Floats, Integers, count_floats, floats_of, is_named_tuple, tuple_of_floats
from .ir import F64, I1, I64, PTR, VOID, IRFunction, Module, Value
from .ir_scalar import DualScalar, IRScalar

MAX_INLINE_STATEMENTS = 12  # of a function without loops that stands where it is called


class _Array:
    """The address of an array, and the type of its elements."""

    def __init__(self, at: Value, kind: str) -> None:
        self.at, self.kind = at, kind


_BINARY_METHODS = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__", ast.Div: "__truediv__",
           ast.MatMult: "__matmul__"}  # fmt: skip
_NUMBER_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_REFLECTED = {"__add__": "__radd__", "__sub__": "__rsub__", "__mul__": "__rmul__", "__truediv__": "__rtruediv__"}
_NUMBER_TYPES: dict[Any, str] = {float: F64, int: I64, bool: I1}
_DIVIDED = {ast.FloorDiv: "sdiv", ast.Mod: "srem"}  # of integers that are not negative
_ORDER = {ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__", ast.GtE: "__ge__", ast.Eq: "equals",
          ast.NotEq: "differs"}  # fmt: skip


def add_plain(m: Module, function: Callable[..., Any], fused: bool = True, number: str = F64) -> str:
    """Adds a function, and all that it calls, to a module; gives its name. fused: with multiply-adds of one
    rounding. number: the type of its floats; a vector of doubles is a number and its derivatives (`DualScalar`).
    EmitError for what machine code has no way for."""
    name = f"plain_{function.__name__}{'' if number == F64 else '_dual'}"
    if name not in m.functions:
        _Translation(m, function, name, fused, number).write()
    return name


class _Translation:
    """One function in the making. `names`: by local variable its kind, and the places of its values."""

    def __init__(self, m: Module, function: Callable[..., Any], name: str, fused: bool, number: str) -> None:
        self.m, self.function, self.name, self.fused, self.number = m, function, name, fused, number
        self.space = function.__globals__
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        self.tree = tree
        self.names: dict[str, tuple[Any, list[Value]]] = {}
        self.loops: list[tuple[str, str]] = []  # labels of continue and of break

    def fault(self, node: ast.AST, what: str) -> EmitError:
        line = getattr(node, "lineno", 0)
        return EmitError(f"{self.function.__name__}, line {line}: {what}; write it otherwise")

    def write(self) -> None:
        given: dict[str, str] = {}
        kinds = {a.arg: self.kind_of(a.annotation) for a in self.tree.args.args}
        for name, kind in kinds.items():
            if is_named_tuple(kind):
                given |= {f"{name}_{k}": self.number for k in range(count_floats(kind))}
            else:
                given[name] = self.number if kind is float else _NUMBER_TYPES.get(kind, PTR)
        self.result = self.kind_of(self.tree.returns)
        loops = any(isinstance(x, (ast.While, ast.For)) for x in ast.walk(self.tree))
        small = not loops and sum(isinstance(x, ast.stmt) for x in ast.walk(self.tree)) <= MAX_INLINE_STATEMENTS
        how = " alwaysinline" if small else " noinline"
        f = self.f = IRFunction(self.m, self.name, self._type(self.result), given, "internal ", how)
        self.m.functions[self.name] = f
        for name, kind in kinds.items():
            if is_named_tuple(kind):
                values = [self.scalar(f.arguments[f"{name}_{k}"]) for k in range(count_floats(kind))]
                self.assign(name, tuple_of_floats(kind, values))
            elif kind in (Floats, Integers):
                self.names[name] = (kind, [f.arguments[name]])
            else:
                x = f.arguments[name]
                self.assign(name, self.scalar(x) if kind is float else x)
        self.body(self.tree.body)
        if f.block:
            if self.result is None:
                f.ret()
            else:
                f.put("unreachable")

    def kind_of(self, note: ast.expr | None) -> Any:
        name = ast.unparse(note) if note else "None"
        kind = _known(self.function, name)
        if kind is None and name != "None":
            raise self.fault(note or self.tree, f"the annotation {name} is not known")
        return kind

    def _type(self, kind: Any) -> str:
        if is_named_tuple(kind):
            return f"{{{', '.join([self.number] * count_floats(kind))}}}"
        return {float: self.number, int: I64, bool: I1, None: VOID}[kind]

    def scalar(self, x: Value) -> IRScalar:
        return IRScalar(x, self.fused) if self.number == F64 else DualScalar(x.lane(0), self.fused, d=x)

    # -- statements -----------------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            if not self.f.block:  # nothing comes here
                return
            write = getattr(self, f"do_{type(s).__name__}", None)
            if write is None:
                raise self.fault(s, f"there is no {type(s).__name__} in machine code")
            write(s)

    def do_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):
            self.value(s.value)

    def do_Pass(self, s: ast.Pass) -> None:
        pass

    def do_Assign(self, s: ast.Assign) -> None:
        target = s.targets[0]
        if isinstance(target, ast.Tuple) and isinstance(s.value, ast.Tuple):
            values = [self.settled(self.value(x)) for x in s.value.elts]
        elif isinstance(target, ast.Tuple):
            values = [self.settled(x) for x in self.value(s.value)]
        else:
            self.store(target, self.value(s.value))
            return
        for place, x in zip(target.elts, values):
            self.store(place, x)

    def do_AnnAssign(self, s: ast.AnnAssign) -> None:
        assert s.value is not None
        self.store(s.target, self.value(s.value))

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        read = ast.parse(ast.unparse(s.target), mode="eval").body
        self.store(s.target, self.value(ast.BinOp(read, s.op, s.value)))

    def settled(self, x: Any) -> Any:
        """Computed now."""
        for y in floats_of(x):
            if isinstance(y, IRScalar):
                y.x  # noqa: B018
        return x

    def store(self, target: ast.expr, x: Any) -> None:
        if isinstance(target, ast.Name):
            self.assign(target.id, x)
        elif isinstance(target, ast.Subscript):
            array = self.value(target.value)
            at = array.at.at(self.value_of(target.slice, I64), array.kind)
            at.store(self.as_value(x, array.kind), 8)
        else:
            raise self.fault(target, "this cannot be assigned to")

    def assign(self, name: str, x: Any) -> None:
        if isinstance(x, _Array):
            self.names[name] = (Integers if x.kind == I64 else Floats, [x.at])
            return
        kind: Any = type(x) if isinstance(x, tuple) else self.type_of(x)
        if name not in self.names:
            of = self.number if isinstance(x, tuple) else kind
            self.names[name] = (kind, [self.f.alloca(of) for _ in floats_of(x)])
        known, places = self.names[name]
        if known != kind and not (known == self.number and kind == I64):
            raise self.fault(self.tree, f"{name} is {known} and then {kind}")
        values = [self.as_value(y, self.number if isinstance(x, tuple) else known) for y in floats_of(x)]
        for place, y in zip(places, values):
            place.store(y, 8 if y.type == self.number else 0)

    def type_of(self, x: Any) -> str:
        if isinstance(x, IRScalar) or type(x) is float:
            return self.number
        if isinstance(x, Value):
            return x.type
        return I1 if type(x) is bool else I64

    def as_value(self, x: Any, kind: str) -> Value:
        """A value of a type; whole numbers become floats where these are wanted."""
        if isinstance(x, DualScalar) and kind != F64:
            return x.whole
        if kind not in (F64, I64, I1):
            return self.f.zero(kind).put_lane(0, self.as_value(x, F64))
        if isinstance(x, IRScalar):
            x = x.x
        if isinstance(x, Value):
            if x.type == I64 and kind == F64:
                return x.cast("sitofp", F64)
            return x
        return self.f.const(kind, float(x) if kind == F64 else int(x))

    def value_of(self, node: ast.expr, kind: str) -> Value:
        return self.as_value(self.value(node), kind)

    def truth(self, node: ast.expr) -> Value:
        return self.value_of(node, I1)

    def branch(self, test: Value, yes: str, no: str) -> None:
        self.f.put(f"br i1 {test.text}, label %{yes}, label %{no}")

    def do_If(self, s: ast.If) -> None:
        f, then, otherwise, after = self.f, *(self.f.fresh(x) for x in ("then", "else", "after"))
        self.branch(self.truth(s.test), then, otherwise if s.orelse else after)
        reached = not s.orelse
        for label, part in ((then, s.body), (otherwise, s.orelse)):
            if part:
                f.label(label)
                self.body(part)
                if f.block:
                    f.put(f"br label %{after}")
                    reached = True
        f.block = ""
        if reached:
            f.label(after)

    def do_While(self, s: ast.While) -> None:
        f, test, inside, after = self.f, *(self.f.fresh(x) for x in ("test", "inside", "after"))
        f.put(f"br label %{test}")
        f.label(test)
        self.branch(self.truth(s.test), inside, after)
        f.label(inside)
        self.repeated(s.body, test, after)
        f.label(after)

    def repeated(self, body: list[ast.stmt], again: str, after: str) -> None:
        """The body of a loop, which goes on at one label and is left for another."""
        self.loops.append((again, after))
        self.body(body)
        self.loops.pop()
        if self.f.block:
            self.f.put(f"br label %{again}")

    def do_For(self, s: ast.For) -> None:
        f = self.f
        assert isinstance(s.target, ast.Name) and isinstance(s.iter, ast.Call)
        given = [self.value_of(x, I64) for x in s.iter.args]
        first, stop = (f.const(I64, 0), given[0]) if len(given) == 1 else given[:2]
        test, inside, more, after = (f.fresh(x) for x in ("test", "inside", "more", "after"))
        place = f.alloca(I64)
        place.store(first)
        f.put(f"br label %{test}")
        f.label(test)
        i = place.load(I64)
        self.branch(i < stop, inside, after)
        f.label(inside)
        self.assign(s.target.id, i)
        self.repeated(s.body, more, after)
        f.label(more)
        place.store(place.load(I64) + 1)
        f.put(f"br label %{test}")
        f.label(after)

    def do_Continue(self, s: ast.Continue) -> None:
        self.f.jump(self.loops[-1][0])

    def do_Break(self, s: ast.Break) -> None:
        self.f.jump(self.loops[-1][1])

    def do_Return(self, s: ast.Return) -> None:
        f = self.f
        if s.value is None:
            f.ret()
            return
        x = self.value(s.value)
        if isinstance(x, tuple):
            f.ret(f.struct(*(self.as_value(y, self.number) for y in floats_of(x))))
        else:
            f.ret(self.as_value(x, self._type(self.result)))

    # -- expressions ----------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """A number, an IRScalar of a float, a Value of an integer or truth, an array, or a named tuple."""
        read = getattr(self, f"of_{type(node).__name__}", None)
        if read is None:
            raise self.fault(node, f"there is no {type(node).__name__} in machine code")
        return read(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def of_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.value(x) for x in node.elts)

    def of_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            if node.id not in self.space:
                raise self.fault(node, f"{node.id} is not known")
            return self.space[node.id]
        kind, places = self.names[node.id]
        if kind in (Floats, Integers):
            return _Array(places[0], self.number if kind is Floats else I64)
        if is_named_tuple(kind):
            return tuple_of_floats(kind, [self.scalar(x.load(self.number, 8)) for x in places])
        x = places[0].load(kind, 8 if kind == self.number else 0)
        return self.scalar(x) if kind == self.number else x

    def of_Attribute(self, node: ast.Attribute) -> Any:
        return getattr(self.value(node.value), node.attr)

    def of_Subscript(self, node: ast.Subscript) -> Any:
        array = self.value(node.value)
        x = array.at.at(self.value_of(node.slice, I64), array.kind).load(array.kind, 8)
        return self.scalar(x) if array.kind == self.number else x

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        x = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not x if isinstance(x, bool) else ~x
        return -x

    def of_BinOp(self, node: ast.BinOp) -> Any:
        a, b = self.value(node.left), self.value(node.right)
        if isinstance(a, Value) or isinstance(b, Value):
            return self.integers(node, a, b)
        if isinstance(a, (IRScalar, tuple)) or isinstance(b, (IRScalar, tuple)):
            way = _BINARY_METHODS[type(node.op)]
            x = getattr(a, way)(b) if isinstance(a, (IRScalar, tuple)) else NotImplemented
            return getattr(b, _REFLECTED[way])(a) if x is NotImplemented else x
        return _NUMBER_OPERATORS[type(node.op)](a, b)

    def integers(self, node: ast.BinOp, a: Any, b: Any) -> Any:
        if isinstance(a, IRScalar) or isinstance(b, IRScalar) or isinstance(a, float) or isinstance(b, float):
            raise self.fault(node, "a float and an integer meet: take float(..)")
        x, y = self.as_value(a, I64), self.as_value(b, I64)
        if type(node.op) in _DIVIDED:
            return self.f.let(I64, f"{_DIVIDED[type(node.op)]} i64 {x.text}, {y.text}")
        return getattr(x, _BINARY_METHODS[type(node.op)])(y)

    def of_Compare(self, node: ast.Compare) -> Any:
        a, b = self.value(node.left), self.value(node.comparators[0])
        kind = F64 if self.number in (self.type_of(a), self.type_of(b)) else self.type_of(a)
        return getattr(self.as_value(a, kind), _ORDER[type(node.ops[0])])(self.as_value(b, kind))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        """True if all hold, or one does; those after the one that decides are not looked at."""
        f, place, after = self.f, self.f.alloca(I1), self.f.fresh("after")
        for k, part in enumerate(node.values):
            x = self.truth(part)
            place.store(x)
            if k + 1 < len(node.values):
                more = f.fresh("more")
                self.branch(x, *((more, after) if isinstance(node.op, ast.And) else (after, more)))
                f.label(more)
        f.put(f"br label %{after}")
        f.label(after)
        return place.load(I1)

    def of_IfExp(self, node: ast.IfExp) -> Any:
        f, then, otherwise, after = self.f, *(self.f.fresh(x) for x in ("then", "else", "after"))
        name = f.fresh("choice ")
        self.branch(self.truth(node.test), then, otherwise)
        for label, part in ((then, node.body), (otherwise, node.orelse)):
            f.label(label)
            self.assign(name, self.value(part))
            f.put(f"br label %{after}")
        f.label(after)
        return self.of_Name(ast.Name(name))

    def of_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            method = getattr(self.value(node.func.value), node.func.attr)
            return method(*(self.value(x) for x in node.args))
        assert isinstance(node.func, ast.Name)
        name, given = node.func.id, [self.value(x) for x in node.args]
        if name in BUILTINS:
            return BUILTINS[name](self, *given)
        called = self.space.get(name)
        if isinstance(called, type):
            return called(*given)
        if not inspect.isfunction(called):
            raise self.fault(node, f"{name} is no function")
        if node.keywords or len(given) != len(inspect.signature(called).parameters):
            raise self.fault(node, f"{name} takes each of its arguments in its place")
        return self.called(called, given)

    def called(self, function: Callable[..., Any], given: list[Any]) -> Any:
        name = add_plain(self.m, function, self.fused, self.number)
        notes = inspect.get_annotations(function, eval_str=False)
        kinds = [_known(function, notes[x]) for x in inspect.signature(function).parameters]
        passed: list[Value] = []
        for x, kind in zip(given, kinds):
            if isinstance(x, _Array):
                passed.append(x.at)
            else:
                passed += [self.as_value(y, {int: I64, bool: I1}.get(kind, self.number)) for y in floats_of(x)]
        result = _known(function, notes["return"])
        x = self.f.call(self._type(result), name, *passed)
        if is_named_tuple(result):
            return tuple_of_floats(result, [self.scalar(x.part(k)) for k in range(count_floats(result))])
        return self.scalar(x) if result is float else x


def _known(function: Callable[..., Any], note: Any) -> Any:
    return {"float": float, "int": int, "bool": bool, "None": None}.get(note, function.__globals__.get(note))


def _sqrt(t: _Translation, x: Any) -> Any:
    y = IRScalar(t.f.call(F64, "llvm.sqrt.f64", t.as_value(x, F64)), t.fused)
    return x.of_root(y) if isinstance(x, DualScalar) else y


def _abs(t: _Translation, x: Any) -> Any:
    if t.type_of(x) == I64:
        y = t.as_value(x, I64)
        return t.f.select(y < 0, -y, y)
    if isinstance(x, DualScalar):
        return t.scalar(t.f.select(x.x < 0.0, t.as_value(-x, t.number), x.whole))
    return t.scalar(t.f.call(F64, "llvm.fabs.f64", t.as_value(x, F64)))


def _least(order: str) -> Callable[..., Any]:
    def chosen(t: _Translation, x: Any, y: Any) -> Any:
        kind = F64 if t.number in (t.type_of(x), t.type_of(y)) else I64
        a, b = t.as_value(x, kind), t.as_value(y, kind)
        second = b < a if order == "min" else b > a
        if kind == I64:
            return t.f.select(second, b, a)
        return t.scalar(t.f.select(second, t.as_value(y, t.number), t.as_value(x, t.number)))

    return chosen


BUILTINS: dict[str, Callable[..., Any]] = {
    "sqrt": _sqrt,
    "abs": _abs,
    "min": _least("min"),
    "max": _least("max"),
    "float": lambda t, x: t.scalar(t.as_value(x, t.number)),
    "int": lambda t, x: t.as_value(x, F64).cast("fptosi", I64),
    "floats": lambda t, n: _Array(t.f.alloca(t.number, n), t.number),
    "integers": lambda t, n: _Array(t.f.alloca(I64, n), I64),
    "Part": lambda t, x, k: _Array(x.at.at(t.as_value(k, I64), x.kind), x.kind),
}
