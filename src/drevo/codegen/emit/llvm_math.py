"""sin and cos as one branch-free LLVM function, and atan2; the same bits for every width.

Each function of this file adds what it names to the module at its first use, and gives its name.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .ir import IRFunction, Module, Value, literal

_S64 = (-0.1666666666666663, 0.00833333333332184, -0.00019841269829358525,
        2.755731353851212e-06, -2.5050734388737e-08, 1.589543324825544e-10)  # fmt: skip
_C64 = (0.041666666666666595, -0.0013888888888873325, 2.4801587288983675e-05,
        -2.755731421007175e-07, 2.0875704270305578e-09, -1.1358683284375575e-11)  # fmt: skip
_S32 = (-0.16666655242443085, 0.008332188241183758, -0.0001951809535967186)
_C32 = (0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05)
# atan x = x + x z P(z) / Q(z), z = x^2, |x| < 0.66: the Cephes library
_ATAN_P = (-64.85021904942025, -122.88666844901362, -75.00855792314705, -16.157537187333652, -0.8750608600031904)
_ATAN_Q = (194.5506571482614, 485.3903996359137, 432.88106049129027, 165.02700983169885, 24.858464901423062, 1.0)
_TAN_PI_8 = 0.4142135623730951

# pi/2 in parts: with fma two or three roundings suffice; without it n * part must be exact
_PARTS = {
    ("double", True): (1.5707963267948966, 6.123233995736766e-17),
    ("float", True): (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    ("double", False): (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    ("float", False): (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
}
_LIMIT = {("double", True): 2.0**40, ("float", True): 2.0**20, ("double", False): 2.0**20, ("float", False): 1.2e4}
NEAR = 16.0  # rad: up to here sums of angles are as right as the angles
_TWO_OVER_PI = {"double": 0.6366197723675814, "float": 0.6366197466850281}
_MAGIC = {"double": 1.5 * 2.0**52, "float": 1.5 * 2.0**23}  # rounds, and leaves the quadrant in the low bits


def limit(scalar: str, fma: bool) -> float:
    """The largest angle whose sine is still right; above it the result is NaN, never garbage."""
    return _LIMIT[scalar, fma]


class Lanes(NamedTuple):
    """How values look in the text: `lanes` scalars of type "double" or "float" side by side."""

    scalar: str
    lanes: int
    splat: bool = True  # LLVM 19 and newer have splat constants

    @property
    def size(self) -> int:
        return 8 if self.scalar == "double" else 4

    @property
    def bytes(self) -> int:
        return self.size * self.lanes

    @property
    def type(self) -> str:
        return self.many(self.scalar)

    @property
    def suffix(self) -> str:
        kind = f"f{8 * self.size}"
        return kind if self.lanes == 1 else f"v{self.lanes}{kind}"

    def many(self, scalar: str) -> str:
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def const(self, x: float) -> str:
        """A constant of the value type, rounded once for float."""
        text = literal(x, self.scalar)
        if self.lanes == 1:
            return text
        if self.splat:
            return f"splat ({self.scalar} {text})"
        return "<" + ", ".join([f"{self.scalar} {text}"] * self.lanes) + ">"


class _Math(NamedTuple):
    """A function under construction on values of one type; fused: with multiply-adds of one rounding."""

    f: IRFunction
    l: Lanes
    fused: bool

    @property
    def integers(self) -> str:
        return self.l.many(f"i{8 * self.l.size}")

    def const(self, x: float) -> Value:
        return self.f.const(self.l.type, x)

    def multiply_add(self, a: Value, b: Value | float, c: Value | float) -> Value:
        b, c = (x if isinstance(x, Value) else self.const(x) for x in (b, c))
        return self.f.call(self.l.type, f"llvm.fma.{self.l.suffix}", a, b, c) if self.fused else a * b + c

    def polynomial(self, z: Value, coefficients: tuple[float, ...]) -> Value:
        value = self.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.multiply_add(value, z, c)
        return value

    def size(self, x: Value) -> Value:
        return self.f.call(self.l.type, f"llvm.fabs.{self.l.suffix}", x)

    def rounded(self, x: Value, factor: float) -> tuple[Value, Value]:
        """x factor to the nearest integer, and that plus the magic number, whose low bits hold it."""
        magic = _MAGIC[self.l.scalar]
        sum_ = self.multiply_add(x, factor, magic)
        return sum_ - magic, sum_

    def less(self, x: Value, n: Value, factor: float) -> Value:
        """x - n factor pi / 2, part by part."""
        for part in _PARTS[self.l.scalar, self.fused]:
            x = self.multiply_add(n, -factor * part, x)
        return x

    def within(self, size: Value) -> Value:
        """Whether an angle of that size can be reduced."""
        return size <= limit(self.l.scalar, self.fused)


def _new(m: Module, name: str, l: Lanes, fma: bool, result: str, *given: str, cold: bool = False) -> _Math | None:
    """The function of that name on values, to be written; None if it is in the module."""
    if name in m.functions:
        return None
    f = m.function(name, result, dict.fromkeys(given, l.type), attributes=" cold" if cold else "")
    return _Math(f, l, fma)


def add_sincos(m: Module, l: Lanes, fma: bool, angles: int = 1) -> str:
    """@sincos_<lanes>: value -> {sin, cos}; @sincos_<lanes>_2: of two values."""
    name = f"sincos_{l.lanes}" + (f"_{angles}" if angles > 1 else "")
    given = [f"angle{k}" for k in range(angles)]
    if t := _new(m, name, l, fma, f"{{{', '.join([l.type] * (2 * angles))}}}", *given):
        t.f.ret(t.f.struct(*(x for angle in t.f.arguments.values() for x in _sin_and_cos(t, angle))))
    return name


def _sin_and_cos(t: _Math, x: Value) -> tuple[Value, Value]:
    n, sum_ = t.rounded(x, _TWO_OVER_PI[t.l.scalar])
    r = t.less(x, n, 1.0)
    s, c = _polynomials(t, t.f.select(t.within(t.size(x)), r, t.const(math.nan)))
    quadrant = sum_.cast("bitcast", t.integers)
    swap = (quadrant & 1).differs(0)
    return _signed(t, t.f.select(swap, c, s), t.f.select(swap, s, c), quadrant)


def _polynomials(t: _Math, r: Value) -> tuple[Value, Value]:
    """sin and cos on |r| <= pi/4."""
    wide = t.l.scalar == "double"
    z = r * r
    s = t.polynomial(z, _S64 if wide else _S32)
    return t.multiply_add(s, r * z, r), t.polynomial(z, (1.0, -0.5, *(_C64 if wide else _C32)))


def _signed(t: _Math, sin: Value, cos: Value, quadrant: Value) -> tuple[Value, Value]:
    """sin changes its sign with bit 1 of the quadrant, cos with the sum of bits 0 and 1."""
    top = 8 * t.l.size - 1
    high = (quadrant << (top - 1)) & (1 << top)
    low = quadrant << top
    sin, cos = sin.cast("bitcast", t.integers) ^ high, cos.cast("bitcast", t.integers) ^ high ^ low
    return sin.cast("bitcast", t.l.type), cos.cast("bitcast", t.l.type)


def add_turned(m: Module, l: Lanes, fma: bool) -> str:
    """@turned_<lanes>: of an angle and what it lacks, less whole turns where it is beyond NEAR."""
    name = f"turned_{l.lanes}"
    if t := _new(m, name, l, fma, l.type, "x", "rest", cold=True):
        x = t.f.x
        n, _ = t.rounded(x, 0.25 * _TWO_OVER_PI[l.scalar])
        r = t.less(x, n, 4.0)
        size = t.size(x)
        r = t.f.select(t.within(size), r + t.f.rest, t.const(math.nan))
        t.f.ret(t.f.select(size <= NEAR, x, r))
    return name


def add_atan2(m: Module, l: Lanes, fma: bool) -> str:
    """@atan2_<lanes>: of (y, x); 0 where both are."""
    name = f"atan2_{l.lanes}"
    if t := _new(m, name, l, fma, l.type, "y", "x"):
        f, integers = t.f, t.integers
        angle = _first_octant(t, t.size(f.y), t.size(f.x))
        angle = f.select(f.x < 0.0, t.const(math.pi) - angle, angle)
        sign = f.y.cast("bitcast", integers) & (1 << (8 * l.size - 1))
        f.ret((angle.cast("bitcast", integers) ^ sign).cast("bitcast", l.type))
    return name


def _first_octant(t: _Math, y: Value, x: Value) -> Value:
    """The angle of (x, y), both at least 0: by the smaller over the larger, and beyond tan(pi/8) from pi/4 on."""
    select = t.f.select
    steep = y > x
    low, high = select(steep, x, y), select(steep, y, x)
    high = select(high.equals(0.0), t.const(1.0), high)
    far = low > high * _TAN_PI_8
    r = select(far, low - high, low) / select(far, low + high, high)
    z = r * r
    ratio = z * t.polynomial(z, _ATAN_P) / t.polynomial(z, _ATAN_Q)
    angle = select(far, t.const(math.pi / 4), t.const(0.0)) + t.multiply_add(r, ratio, r)
    return select(steep, t.const(math.pi / 2) - angle, angle)
