"""Taylor coefficients of second order, x + x' s + x'' s^2 / 2, over any scalar.

Whatever passes through the algorithms is differentiated along a path by them: floats and graph nodes alike.

Truncated Taylor series x(t) = c0 + c1 t + .. + cp t^p over any scalar: derivatives by time of any order.

Whatever passes through the algorithms is differentiated along a motion by them: floats and graph nodes alike.
Griewank and Walther 2008, table 13.1 and 13.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TraceError
from .rotation import from_quaternion
from .scalar import NO_FLOAT, UNTRUE, Scalar, Vector, atan2, cos, named_function, rate_of, sin, sqrt, where
from .spatial import Vec


class Jet:
    """A scalar with its first and second derivative along a path."""

    __slots__ = ("d", "dd", "x")
    __array_priority__ = 1.0  # an array times a jet is a jet

    def __init__(self, x: Scalar, d: Scalar = 0.0, dd: Scalar = 0.0) -> None:
        self.x, self.d, self.dd = x, d, dd

    def __add__(self, o: Scalar) -> Jet:
        o = jet(o)
        return Jet(self.x + o.x, self.d + o.d, self.dd + o.dd)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return Jet(-self.x, -self.d, -self.dd)

    def __sub__(self, o: Scalar) -> Jet:
        o = jet(o)
        return Jet(self.x - o.x, self.d - o.d, self.dd - o.dd)

    def __rsub__(self, o: Scalar) -> Jet:
        return Jet(o) - self

    def __mul__(self, o: Scalar) -> Jet:
        o = jet(o)
        mixed = 2.0 * (self.d * o.d)
        return Jet(self.x * o.x, self.d * o.x + self.x * o.d, self.dd * o.x + mixed + self.x * o.dd)

    __rmul__ = __mul__

    def __truediv__(self, o: Scalar) -> Jet:
        o = jet(o)
        u = self.x / o.x
        du = (self.d - u * o.d) / o.x
        return Jet(u, du, (self.dd - 2.0 * (du * o.d) - u * o.dd) / o.x)

    def __rtruediv__(self, o: Scalar) -> Jet:
        return Jet(o) / self

    def __pow__(self, n: int) -> Jet:
        if n != int(n):
            raise TraceError(f"a traced value is raised to whole powers only, not to {n!r}; sqrt is a function")
        out = Jet(1.0)
        for _ in range(abs(int(n))):
            out = out * self
        return out if n >= 0 else 1.0 / out

    def __bool__(self) -> bool:
        raise TraceError(UNTRUE)

    def __float__(self) -> float:
        raise TraceError(NO_FLOAT)

    def __eq__(self, o: object) -> bool:
        if o is not self:
            raise TraceError(UNTRUE)
        return True

    __hash__ = object.__hash__

    def __gt__(self, o: Scalar) -> Any:
        return self.x > jet(o).x

    def __lt__(self, o: Scalar) -> Any:
        return self.x < jet(o).x

    def __ge__(self, o: Scalar) -> Any:
        return self.x >= jet(o).x

    def __le__(self, o: Scalar) -> Any:
        return self.x <= jet(o).x

    def __abs__(self) -> Scalar:
        return where(self > 0.0, self, -self)

    @staticmethod
    def by_parts(f: Callable[[Scalar, Scalar], Scalar], a: Scalar, b: Scalar) -> Jet:
        """f of every coefficient of two jets."""
        a, b = jet(a), jet(b)
        return Jet(f(a.x, b.x), f(a.d, b.d), f(a.dd, b.dd))

    def sin(self) -> Jet:
        s, c = sin(self.x), cos(self.x)
        return Jet(s, c * self.d, c * self.dd - s * (self.d * self.d))

    def cos(self) -> Jet:
        s, c = sin(self.x), cos(self.x)
        return Jet(c, -(s * self.d), -(s * self.dd) - c * (self.d * self.d))

    def sqrt(self) -> Jet:
        r = sqrt(self.x)
        d = self.d / (2.0 * r)
        return Jet(r, d, (self.dd - 2.0 * (d * d)) / (2.0 * r))

    def function(self, name: str) -> Jet:
        """A function of the table of operations: its slope is taken along the path too."""
        y = named_function(name)(self.x)
        rate = rate_of(name)
        slope = jet(rate(Jet(self.x, self.d), Jet(y, rate(self.x, y, self.d)), 1.0))
        return Jet(y, slope.x * self.d, slope.d * self.d + slope.x * self.dd)

    @staticmethod
    def by_angle(y: Scalar, x: Scalar) -> Jet:
        """The angle of the vector (x, y): its rate is that of the table, taken along the path too."""
        y, x = jet(y), jet(x)
        angle, rate = atan2(y.x, x.x), rate_of("atan2")
        slope = rate(Jet(y.x, y.d), Jet(x.x, x.d), None, Jet(y.d, y.dd), Jet(x.d, x.dd))
        return Jet(angle, slope.x, slope.d)


def jet(x: Scalar) -> Jet:
    """A scalar as a jet; a constant one has no rates."""
    return x if isinstance(x, Jet) else Jet(x)


def jet_along(q: Vector, kind: str, v: Vector) -> list[Jet]:
    """Coordinates of a joint that moves with constant rates v, as jets.

    Quaternion: q' = q (w, 0) / 2, q'' = -|w|^2 q / 4. Position of a free joint: p' = R v, p'' = R (w x v).
    """
    if kind not in ("spherical", "free"):
        return [Jet(x, rate) for x, rate in zip(q, v)]
    w = Vec(*v[-3:])
    x, y, z, s = q[-4:]
    d = Vec(s * w.x, s * w.y, s * w.z) + Vec(x, y, z).cross(w)
    rate = [0.5 * d.x, 0.5 * d.y, 0.5 * d.z, -0.5 * Vec(x, y, z).dot(w)]
    square = -0.25 * w.dot(w)
    turn = [Jet(a, b, square * a) for a, b in zip((x, y, z, s), rate)]
    if kind == "spherical":
        return turn
    R, u = from_quaternion(x, y, z, s), Vec(*v[:3])
    return [Jet(a, b, c) for a, b, c in zip(q[:3], R @ u, R @ w.cross(u))] + turn


class Series:
    """The coefficients c0, .., cp of a scalar's Taylor series; both sides of an operation have the same order."""

    __slots__ = ("c",)

    def __init__(self, c: Vector) -> None:
        self.c = list(c)

    def _of(self, x: Scalar) -> list[Scalar]:
        """The coefficients of the other operand; a constant has one."""
        return x.c if isinstance(x, Series) else [x] + [0.0] * (len(self.c) - 1)

    def __add__(self, o: Scalar) -> Series:
        return Series([a + b for a, b in zip(self.c, self._of(o))])

    __radd__ = __add__

    def __neg__(self) -> Series:
        return Series([-a for a in self.c])

    def __sub__(self, o: Scalar) -> Series:
        return Series([a - b for a, b in zip(self.c, self._of(o))])

    def __rsub__(self, o: Scalar) -> Series:
        return (-self).__add__(o)

    def __mul__(self, o: Scalar) -> Series:
        if not isinstance(o, Series):
            return Series([a * o for a in self.c])
        return Series([convolved(self.c, o.c, k) for k in range(len(self.c))])

    __rmul__ = __mul__

    def __truediv__(self, o: Scalar) -> Series:
        if not isinstance(o, Series):
            return Series([a / o for a in self.c])
        out: list[Scalar] = []
        for k, a in enumerate(self.c):
            out.append((a - convolved(o.c[1:], out, k - 1)) / o.c[0])
        return Series(out)

    def __rtruediv__(self, o: Scalar) -> Series:
        return Series(self._of(o)) / self

    def __pow__(self, n: int) -> Scalar:
        out: Scalar = 1.0
        for _ in range(n):
            out = out * self
        return out

    def _turn(self) -> tuple[list[Scalar], list[Scalar]]:
        """Sine and cosine: s' = c x', c' = -s x'."""
        s, c = [sin(self.c[0])], [cos(self.c[0])]
        rate = [i * x for i, x in enumerate(self.c) if i]
        for k in range(1, len(self.c)):
            ds, dc = convolved(rate, c, k - 1), -convolved(rate, s, k - 1)
            s.append(ds * (1.0 / k))
            c.append(dc * (1.0 / k))
        return s, c

    def sin(self) -> Series:
        return Series(self._turn()[0])

    def cos(self) -> Series:
        return Series(self._turn()[1])

    def sqrt(self) -> Series:
        r: list[Scalar] = [sqrt(self.c[0])]
        for k in range(1, len(self.c)):
            r.append((self.c[k] - convolved(r[1:], r[1:], k - 2)) / (2.0 * r[0]))
        return Series(r)

    def function(self, name: str) -> Series:
        """A function of the table of operations, by its rate: coefficient k from those before it."""
        y: list[Scalar] = [named_function(name)(self.c[0])]
        rate = rate_of(name)
        for k in range(1, len(self.c)):
            speed = Series([(j + 1) * x for j, x in enumerate(self.c[1 : k + 1])])
            y.append(coefficient(rate(Series(self.c[:k]), Series(y), speed), k - 1) * (1.0 / k))
        return Series(y)

    def by_angle(self, y: Scalar, x: Scalar) -> Series:
        """The angle of the vector (x, y), by its rate."""
        y, x = self._of(y), self._of(x)
        n = len(y) - 1
        dy, dx = (Series([(j + 1) * z for j, z in enumerate(c[1:])]) for c in (y, x))
        rate = rate_of("atan2")(Series(y[:n]), Series(x[:n]), None, dy, dx) if n else Series([])
        return Series([atan2(y[0], x[0]), *(z * (1.0 / (k + 1)) for k, z in enumerate(rate.c))])


def convolved(a: Vector, b: Vector, k: int) -> Scalar:
    """sum of a_i b_(k-i) over what is there."""
    total: Scalar = 0.0
    for i in range(min(k + 1, len(a))):
        if k - i < len(b):
            total = total + a[i] * b[k - i]
    return total


def coefficient(x: Scalar, k: int) -> Scalar:
    """c_k; a scalar that is no series is constant."""
    if isinstance(x, Series):
        return x.c[k]
    return 0.0 if k else x
