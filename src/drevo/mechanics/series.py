"""Truncated Taylor series x(t) = c0 + c1 t + .. + cp t^p over any scalar: derivatives by time of any order.

Whatever passes through the algorithms is differentiated along a motion by them: floats and graph nodes alike.
Griewank and Walther 2008, table 13.1 and 13.2.
"""

from __future__ import annotations

from .scalar import Scalar, Vector, atan2, cos, named_function, rate_of, sin, sqrt


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
