"""Hash-consed scalar expressions.

A value is an *edge*: an int `2 * node + sign`, so negation never makes a node and signs are free inside sums.
Nodes live in flat lists of a Graph. `Expr` is an edge with operators; whatever folds to a number is returned
as a Python float, so constants never enter the graph before an operation needs them.

Levels: 0 constant, 1 parameters only (work that is hoisted), 2 state.
"""

from __future__ import annotations

import math
from typing import Union

from ...errors import TraceError
from . import levers
from .nodes import Nodes
from .ops import ADD, ATAN2, BY_NAME, CONST, COS, DIV, INPUT, MUL, OPS, PARAMETER, SIN, SQRT, UNLESS, WHEN

FloatOrExpr = Union[float, "Expr"]
ROUNDED_OFF = 4.5e-16  # of the terms of a sum of numbers


class Graph(Nodes):
    """The node table with the rules of arithmetic: what folds, cancels or shares a factor makes no node."""

    def __init__(self) -> None:
        super().__init__()
        self.below_zero: set[int] = set()  # parameters whose own values are
        off = levers.off()
        self._factors, self._cancels = "factor" not in off, "cancel" not in off

    # -- leaves ---------------------------------------------------------------------------------------------

    def input(self, name: str) -> Expr:
        """A state scalar, read at every evaluation."""
        return self._leaf(INPUT, name, 2)

    def parameter(self, name: str, negative: bool = False) -> Expr:
        """A scalar of the model; work on parameters alone is hoisted. negative: its own value is below 0."""
        made = self._leaf(PARAMETER, name, 1)
        if negative:
            self.below_zero.add(made.edge >> 1)
        return made

    def _leaf(self, op: int, name: str, level: int) -> Expr:
        with self._lock:
            self.names.append(name)
            return Expr(self, 2 * self._append(op, len(self.names) - 1, 0, level))

    def edge(self, x: FloatOrExpr) -> int:
        """The edge of a scalar; a number is interned as a constant node."""
        if isinstance(x, Expr):
            if x.graph is not self:
                raise TraceError("two expressions of different graphs met in one operation")
            return x.edge
        value = float(x)
        if not math.isfinite(value):
            raise TraceError(f"a constant became {value} while tracing: check the robot's numbers")
        return self.constant(value)

    def expr(self, edge: int) -> FloatOrExpr:
        """The scalar of an edge; a float if the node is a constant."""
        node = edge >> 1
        if self.op[node] == CONST:
            value = self.constants[self.a[node]]
            return -value if edge & 1 else value
        return Expr(self, edge)

    # -- rules on construction ------------------------------------------------------------------------------

    def add(self, x: int, y: int) -> int | float:
        """x + y on edges; a float means that it folded."""
        level, op = self.level, self.op
        i, j = x >> 1, y >> 1
        if i == j:
            return self.mul(self.edge(2.0), x) if x == y else 0.0
        if level[i] <= 1 or level[j] <= 1:
            merged = self._add_parameter(x, y)
            if merged is not None:
                return merged
        if self._factors and (op[i] == MUL or op[j] == MUL):
            common = self._common_factor(x, y)
            if common is not None:
                return common
        if self._cancels and (op[i] == ADD or op[j] == ADD):
            short = self._cancel(x, y)
            if short is not None:
                return short
        if i > j:
            x, y = y, x
        sign = x & 1
        return 2 * self.node(ADD, x ^ sign, y ^ sign) + sign

    def _add_parameter(self, x: int, y: int) -> int | float | None:
        """Folds constants; gathers parameter-only terms of a sum: p + (r + x) -> (p + r) + x."""
        level, op = self.level, self.op
        if op[x >> 1] == CONST and op[y >> 1] == CONST:
            return self._value(x) + self._value(y)
        if self._is_zero(x):
            return y
        if self._is_zero(y):
            return x
        for p, s in ((x, y), (y, x)):
            n = s >> 1
            if level[p >> 1] <= 1 and level[n] == 2 and op[n] == ADD:
                sign = s & 1
                a, b = self.a[n] ^ sign, self.b[n] ^ sign
                for r, rest in ((a, b), (b, a)):
                    if level[r >> 1] <= 1:
                        total = self.add(p, r)
                        return self.add(self._edge(total), rest)
        return None

    def _split(self, x: int) -> tuple[int | None, int]:
        """x as p * rest with p of level <= 1 (None: 1)."""
        n = x >> 1
        if self.op[n] == MUL and self.level[n] == 2:
            a, b = self.a[n], self.b[n]
            if self.level[a >> 1] <= 1:
                return a ^ (x & 1), b
            if self.level[b >> 1] <= 1:
                return b ^ (x & 1), a
        return None, x

    def _common_factor(self, x: int, y: int) -> int | float | None:
        """p x + r x -> (p + r) x for parameter-only p, r; x + p x -> (1 + p) x."""
        p, u = self._split(x)
        r, v = self._split(y)
        if u >> 1 != v >> 1 or self.level[u >> 1] < 2:
            return None
        one = self.edge(1.0)
        p = one ^ (u & 1) if p is None else p ^ (u & 1)
        r = one ^ (v & 1) if r is None else r ^ (v & 1)
        total = self.add(p, r)
        if self.op[p >> 1] == CONST == self.op[r >> 1] and isinstance(total, float) and abs(total) < 1.5:
            whole = float(round(total))  # 0 or +-1 but for rounding
            total = whole if abs(total - whole) <= ROUNDED_OFF * abs(self._value(p)) else total
        return self.mul(self._edge(total), u & ~1)

    def _cancel(self, x: int, y: int) -> int | float | None:
        """(u + v) - v -> u and (u + v) + (w - v) -> u + w, one level deep."""
        xs, ys = self._terms(x), self._terms(y)
        for t in xs:
            if t ^ 1 in ys:
                rest = [e for e in xs if e != t] + [e for e in ys if e != t ^ 1]
                if not rest:
                    return 0.0
                return rest[0] if len(rest) == 1 else self.add(rest[0], rest[1])
        return None

    def _terms(self, x: int) -> tuple[int, ...]:
        n = x >> 1
        if self.op[n] == ADD:
            sign = x & 1
            return self.a[n] ^ sign, self.b[n] ^ sign
        return (x,)

    def mul(self, x: int, y: int) -> int | float:
        """x * y on edges; a float means that it folded."""
        sign = (x ^ y) & 1
        x &= ~1
        y &= ~1
        i, j = x >> 1, y >> 1
        level, op = self.level, self.op
        if level[i] <= 1 or level[j] <= 1:
            if level[i] > level[j] or (level[i] == level[j] and op[j] == CONST):
                x, y, i, j = y, x, j, i
            if op[i] == CONST:
                value = self.constants[self.a[i]]
                if value == 0.0:
                    return 0.0
                if value == 1.0:
                    return y | sign
                if op[j] == CONST:
                    value *= self.constants[self.a[j]]
                    return -value if sign else value
            if op[j] == MUL:  # p (r z) -> (p r) z
                a, b = self.a[j], self.b[j]
                for r, z in ((a, b), (b, a)):
                    hoistable = level[r >> 1] <= 1 and level[z >> 1] == 2
                    if hoistable or (op[i] == CONST and op[r >> 1] == CONST):
                        result = self.mul(self._edge(self.mul(x, r)), z)
                        return self._flip(result, sign)
        if i > j:
            x, y = y, x
        return 2 * self.node(MUL, x, y) + sign

    def div(self, x: int, y: int) -> int | float:
        """x / y on edges; division by a parameter is a product with its hoisted reciprocal."""
        i, j = x >> 1, y >> 1
        if self.op[j] == CONST:
            value = self._value(y)
            if value == 0.0:
                raise TraceError("division by a structural zero while tracing: a singular robot")
            return self.mul(x, self.edge(1.0 / value))
        if self._is_zero(x):
            return 0.0
        if i == j:
            return 1.0 if x == y else -1.0
        sign = (x ^ y) & 1
        if self.level[j] == 1 and self.level[i] == 2:
            reciprocal = 2 * self.node(DIV, self.edge(1.0), y & ~1)
            result = self.mul(x & ~1, reciprocal)
            return self._flip(result, sign)
        return 2 * self.node(DIV, x & ~1, y & ~1) + sign

    def unary(self, op: int, x: int) -> int | float:
        """A function of one edge; sin is odd and cos even, so signs leave the argument."""
        n = x >> 1
        if self.op[n] == CONST:
            value = self._value(x)
            if op == SQRT and value < 0.0:
                raise TraceError(f"square root of {value} while tracing")
            return float(getattr(math, OPS[op].name)(value))
        if op == SIN:
            return 2 * self.node(SIN, x & ~1) + (x & 1)
        if op == COS:
            return 2 * self.node(COS, x & ~1)
        return 2 * self.node(op, x)

    def atan2(self, y: int, x: int) -> int | float:
        """The angle of the vector (x, y)."""
        if self.op[y >> 1] == CONST and self.op[x >> 1] == CONST:
            return math.atan2(self._value(y), self._value(x))
        return 2 * self.node(ATAN2, y & ~1, x) + (y & 1)  # odd in y

    def choice(self, op: int, c: int, x: int) -> int | float:
        """x where c > 0 (WHEN) or where it is not (UNLESS), else 0; the sign of x goes out."""
        if self.op[c >> 1] == CONST:
            return x if (self._value(c) > 0.0) == (op == WHEN) else 0.0
        if self._is_zero(x):
            return 0.0
        return 2 * self.node(op, c, x & ~1) + (x & 1)

    # -- small helpers --------------------------------------------------------------------------------------

    def _edge(self, x: int | float) -> int:
        return self.edge(x) if isinstance(x, float) else x

    @staticmethod
    def _flip(x: int | float, sign: int) -> int | float:
        if isinstance(x, float):
            return -x if sign else x
        return x ^ sign


class Expr:
    """An edge with operators. Mixes with floats; gives NotImplemented to anything that is no scalar."""

    __array_ufunc__ = None  # NumPy leaves mixed operations to us
    __slots__ = ("edge", "graph")

    def __init__(self, graph: Graph, edge: int) -> None:
        self.graph = graph
        self.edge = edge

    def _wrap(self, x: int | float) -> FloatOrExpr:
        return x if isinstance(x, float) else self.graph.expr(x)

    def _met(self, other: Expr) -> int:
        return other.edge if other.graph is self.graph else self.graph.edge(other)

    def __add__(self, other: FloatOrExpr) -> FloatOrExpr:
        if isinstance(other, Expr):
            return self._wrap(self.graph.add(self.edge, self._met(other)))
        if isinstance(other, (float, int)):
            return self if other == 0 else self._wrap(self.graph.add(self.edge, self.graph.edge(other)))
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other: FloatOrExpr) -> FloatOrExpr:
        if isinstance(other, Expr):
            return self._wrap(self.graph.add(self.edge, self._met(other) ^ 1))
        if isinstance(other, (float, int)):
            return self + (-other)
        return NotImplemented

    def __rsub__(self, other: FloatOrExpr) -> FloatOrExpr:
        return (-self) + other

    def __mul__(self, other: FloatOrExpr) -> FloatOrExpr:
        if isinstance(other, Expr):
            return self._wrap(self.graph.mul(self.edge, self._met(other)))
        if isinstance(other, (float, int)):
            if other == 0:
                return 0.0
            if other == 1:
                return self
            return self._wrap(self.graph.mul(self.edge, self.graph.edge(other)))
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: FloatOrExpr) -> FloatOrExpr:
        if isinstance(other, (Expr, float, int)):
            return self._wrap(self.graph.div(self.edge, self.graph.edge(other)))
        return NotImplemented

    def __rtruediv__(self, other: FloatOrExpr) -> FloatOrExpr:
        return self._wrap(self.graph.div(self.graph.edge(other), self.edge))

    def __pow__(self, n: int) -> FloatOrExpr:
        if not isinstance(n, (int, float)) or n != int(n):
            return NotImplemented
        if n < 1:
            return 1.0 / self**-n if n else 1.0
        half = self ** (n // 2) if n > 1 else 1.0
        return half * half * (self if n % 2 else 1.0)

    def __neg__(self) -> Expr:
        return Expr(self.graph, self.edge ^ 1)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> FloatOrExpr:
        return Condition(self).choose(self, -self)

    def __gt__(self, other: FloatOrExpr) -> Condition | bool:
        """self > other, as a condition on self - other."""
        if isinstance(other, (float, int)) and not math.isfinite(other):
            return other < 0.0
        d = self - other
        return Condition(d) if isinstance(d, Expr) else d > 0.0

    def __lt__(self, other: FloatOrExpr) -> Condition | bool:
        return (-self) > (-other)

    def __ge__(self, other: FloatOrExpr) -> Condition | bool:
        return _inverse(self < other)

    def __le__(self, other: FloatOrExpr) -> Condition | bool:
        return _inverse(self > other)

    def __eq__(self, other: object) -> bool:
        """Tests for the same node; whether two values are equal, the trace does not know."""
        if isinstance(other, Expr) and other.graph is self.graph and other.edge == self.edge:
            return True
        if self.level == 2 and isinstance(other, (Expr, float, int)):
            raise TraceError(UNTRUE)
        return False

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TraceError(UNTRUE)

    def __float__(self) -> float:
        raise TraceError(NO_FLOAT)

    def __repr__(self) -> str:
        return f"Expr({self.edge})"

    def sin(self) -> FloatOrExpr:
        return self._wrap(self.graph.unary(SIN, self.edge))

    def cos(self) -> FloatOrExpr:
        return self._wrap(self.graph.unary(COS, self.edge))

    def sqrt(self) -> FloatOrExpr:
        return self._wrap(self.graph.unary(SQRT, self.edge))

    def function(self, name: str) -> FloatOrExpr:
        """A function of one argument, by its name in the table of operations."""
        return self._wrap(self.graph.unary(BY_NAME[name], self.edge))

    def atan2(self, x: FloatOrExpr) -> FloatOrExpr:
        return self._wrap(self.graph.atan2(self.edge, self.graph.edge(x)))

    def angle_from(self, y: float) -> FloatOrExpr:
        """atan2(y, self) of a number y."""
        return self._wrap(self.graph.atan2(self.graph.edge(y), self.edge))

    @property
    def level(self) -> int:
        """1: parameters only; 2: depends on the state."""
        return self.graph.level[self.edge >> 1]


class Condition:
    """Test of a traced value: above 0, or not; `drevo.where` chooses by it, & and | join two, ~ turns one."""

    __array_ufunc__ = None
    __slots__ = ("turned", "value")

    def __init__(self, value: Expr, turned: bool = False) -> None:
        self.value, self.turned = value, turned

    def choose(self, a: FloatOrExpr, b: FloatOrExpr) -> FloatOrExpr:
        """a where it holds, else b."""
        g = self.value.graph
        a, b = (b, a) if self.turned else (a, b)
        parts = [g.choice(op, self.value.edge, g.edge(x)) for op, x in ((WHEN, a), (UNLESS, b))]
        yes, no = (x if isinstance(x, float) else g.expr(x) for x in parts)
        return yes + no

    def __invert__(self) -> Condition:
        return Condition(self.value, not self.turned)

    def __and__(self, other: Condition | bool) -> Condition | bool:
        if not isinstance(other, Condition):
            return self if other else False
        return self.choose(other.choose(1.0, 0.0), 0.0) > 0.5

    def __or__(self, other: Condition | bool) -> Condition | bool:
        return _inverse(~self & _inverse(other))

    __rand__, __ror__ = __and__, __or__

    def __bool__(self) -> bool:
        raise TraceError(UNTRUE)


NO_FLOAT = (
    "a traced value is no float: a function of Python's math or an array of floats asked for one; take drevo.sin, "
    "drevo.cos and drevo.sqrt, and lists"
)
UNTRUE = (
    "a traced value has no truth and no order, the function branched on it: write drevo.where(condition, a, b), "
    "drevo.minimum, drevo.maximum or drevo.clip in place of if, and, or, min, max, np.where and np.clip"
)


def _inverse(condition: Condition | bool) -> Condition | bool:
    return not condition if isinstance(condition, bool) else ~condition
