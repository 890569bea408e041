"""Scalars that emit code: algorithms that are written over scalars run on values of a function under construction.

A value may be a vector: of samples, of columns, of whatever goes side by side; a single number beside it is in all
lanes. A product waits for the sum that it is fused with.
"""

from __future__ import annotations

from typing import Any

from .ir import F64, Value, lanes_of


class IRScalar:
    """x, or x * by, or -x * by where `minus`; fused: the machine has multiply-adds of one rounding."""

    __slots__ = ("_x", "by", "fused", "minus")

    def __init__(self, x: Value, fused: bool, by: Value | None = None, minus: bool = False) -> None:
        self._x, self.fused, self.by, self.minus = x, fused, by, minus

    @property
    def x(self) -> Value:
        """The value, computed."""
        if self.by is not None:
            self._x, self.by = self._x * self.by, None
        if self.minus:
            self._x, self.minus = _negative(self._x), False
        return self._x

    def _of(self, x: Value) -> IRScalar:
        return IRScalar(x, self.fused)

    def _beside(self, o: Any) -> tuple[Value, Value]:
        """Both values with as many lanes."""
        mine, other = self.x, o.x if isinstance(o, IRScalar) else self.x.f.const(self.x.type, float(o))
        lanes = max(lanes_of(mine.type)[0], lanes_of(other.type)[0])
        a, b = (v if lanes_of(v.type)[0] == lanes else v.splat(lanes) for v in (mine, other))
        return a, b

    def __mul__(self, o: Any) -> Any:
        if not isinstance(o, IRScalar) and o in (0.0, 1.0, -1.0):
            return 0.0 if o == 0.0 else self if o == 1.0 else -self
        a, b = self._beside(o)
        return IRScalar(a, self.fused, b)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> IRScalar:
        a, b = self._beside(o)
        return self._of(a / b)

    def __rtruediv__(self, o: float) -> IRScalar:
        return self._of(self.x.f.const(self.x.type, o) / self.x)

    def __neg__(self) -> IRScalar:
        if self.by is not None:
            return IRScalar(self._x, self.fused, self.by, not self.minus)
        return self._of(_negative(self.x))

    def __add__(self, o: Any) -> IRScalar:
        if not isinstance(o, IRScalar):
            return self if o == 0.0 else self._of(self.x + self.x.f.const(self.x.type, o))
        if self.fused and o.by is not None:
            return self._fused(o, self)
        if self.fused and self.by is not None:
            return self._fused(self, o)
        a, b = self._beside(o)
        return self._of(a + b)

    __radd__ = __add__

    def __sub__(self, o: Any) -> IRScalar:
        if not isinstance(o, IRScalar) or o.by is not None or (self.fused and self.by is not None):
            return self.__add__(-o)
        a, b = self._beside(o)
        return self._of(a - b)

    def __rsub__(self, o: float) -> IRScalar:
        return -self + o

    def _fused(self, product: IRScalar, rest: IRScalar) -> IRScalar:
        """product + rest in one rounding."""
        assert product.by is not None
        y, z = product._of(product.by)._beside(rest)
        x, z = product._of(product._x)._beside(self._of(z))
        y = y if y.type == x.type else y.splat(lanes_of(x.type)[0])
        if product.minus:
            x = _negative(x)
        lanes, element = lanes_of(x.type)
        suffix = ("" if lanes == 1 else f"v{lanes}") + ("f64" if element == F64 else "f32")
        return self._of(x.f.call(x.type, f"llvm.fma.{suffix}", x, y, z))


class DualScalar(IRScalar):
    """A number and its derivatives, in all lanes of a vector but the first, which is any."""

    __slots__ = ("d",)

    def __init__(self, x: Value, fused: bool, by: Value | None = None, minus: bool = False,
                 d: Value | None = None) -> None:  # fmt: skip
        super().__init__(x, fused, by, minus)
        assert d is not None
        self.d = d

    @property
    def whole(self) -> Value:
        """With the number in the first lane."""
        return self.d.put_lane(0, self.x)

    def _made(self, y: IRScalar, d: Value) -> DualScalar:
        return DualScalar(y._x, y.fused, y.by, y.minus, d)

    def _times(self, o: Any) -> Value:
        """The derivatives times a number."""
        if not isinstance(o, IRScalar):
            return self.d * float(o)
        return self.d * o.x.splat(lanes_of(self.d.type)[0])

    def of_root(self, y: IRScalar) -> DualScalar:
        """The number y, a root of this one, with its derivatives."""
        half = IRScalar(self.x.f.const(F64, 0.5) / y.x, False)
        return self._made(y, self._times(half))

    def __mul__(self, o: Any) -> Any:
        if not isinstance(o, IRScalar) and o in (0.0, 1.0, -1.0):
            return 0.0 if o == 0.0 else self if o == 1.0 else -self
        y = IRScalar.__mul__(self, o)
        return self._made(y, self._times(o) + o._times(self) if isinstance(o, DualScalar) else self._times(o))

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> IRScalar:
        y = IRScalar.__truediv__(self, o)
        d = self.d - o._times(y) if isinstance(o, DualScalar) else self.d
        a = o.x if isinstance(o, IRScalar) else self.x.f.const(F64, float(o))
        return self._made(y, d / a.splat(lanes_of(d.type)[0]))

    def __rtruediv__(self, o: float) -> IRScalar:
        y = IRScalar.__rtruediv__(self, o)
        return self._made(y, self._times(-(y / IRScalar(self.x, False))))

    def __neg__(self) -> IRScalar:
        return self._made(IRScalar.__neg__(self), _negative(self.d))

    def __add__(self, o: Any) -> IRScalar:
        if not isinstance(o, IRScalar) and o == 0.0:
            return self
        y = IRScalar.__add__(self, o)
        return self._made(y, self.d + o.d if isinstance(o, DualScalar) else self.d)

    __radd__ = __add__

    def __sub__(self, o: Any) -> IRScalar:
        if not isinstance(o, DualScalar):
            return self.__add__(-o)
        a, b = (IRScalar(x._x, x.fused, x.by, x.minus) for x in (self, o))
        return self._made(IRScalar.__sub__(a, b), self.d - o.d)


def _negative(x: Value) -> Value:
    return x.f.let(x.type, f"fneg {x.type} {x.text}")


class StoredScalar(IRScalar):
    """A scalar in memory: loaded wherever it is used, which is part of the instruction that uses it."""

    __slots__ = ("at", "kind")

    def __init__(self, at: Value, kind: str, fused: bool) -> None:
        self.at, self.kind, self.fused, self.by, self.minus = at, kind, fused, None, False

    @property
    def x(self) -> Value:
        return self.at.load(self.kind, 8 if lanes_of(self.kind)[1] == F64 else 4)

    def __neg__(self) -> IRScalar:
        return self._of(_negative(self.x))
