"""sin and cos as one branch-free LLVM function, and atan2; the same bits for every width.

Each function of this file adds what it names to the module at its first use, and gives its name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ..lower.steps import ANGLE_BITS, largest_angle
from .ir import IRFunction, Module, Value, literal

# sin r = r + r z S(z), cos r = 1 + z C(z), z = r^2, |r| <= pi/16 (1 + 2^-10): own minimax fits, rounded one by one
_S64 = (-0.16666666666666277, 0.008333333332353901, -0.0001984126218573154, 2.753373517799968e-06)
_C64 = (-0.5, 0.041666666666665984, -0.0013888888887614223, 2.480157912168726e-05, -2.7535446113229365e-07)
_S32 = (-0.16666653752326965, 0.008322597481310368)
_C32 = (-0.5, 0.04166664555668831, -0.0013874033465983481)
_RISING_SINES = (0.0, math.sin(math.pi / 8), math.sqrt(0.5), math.cos(math.pi / 8))  # sines of eighths of pi
_FALL = (1.0, *_RISING_SINES[:0:-1])
_SINES = (*_RISING_SINES, *_FALL, *(-x for x in _RISING_SINES + _FALL))
# atan x = x + x z P(z) / Q(z), z = x^2, |x| < 0.66: the Cephes library
_ATAN_P = (-64.85021904942025, -122.88666844901362, -75.00855792314705, -16.157537187333652, -0.8750608600031904)
_ATAN_Q = (194.5506571482614, 485.3903996359137, 432.88106049129027, 165.02700983169885, 24.858464901423062, 1.0)
_TAN_PI_8 = 0.4142135623730951

# pi/2 in parts: with fma two or three roundings suffice; without it n * part must be exact
_HALF_PI_PARTS = {
    ("double", True): (1.5707963267948966, 6.123233995736766e-17),
    ("float", True): (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    ("double", False): (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
    ("float", False): (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12),
}
_TOP = {"double": 1024, "float": 128}  # 2 to this power is infinite
WIDEST = 64  # bytes of a register of AVX-512
MAX_SUMMED_RADIANS = 16.0  # rad: up to here sums of angles are as right as the angles
_TWO_OVER_PI = {"double": 0.6366197723675814, "float": 0.6366197466850281}
_ROUNDING_MAGIC = {
    "double": 1.5 * 2.0**52,
    "float": 1.5 * 2.0**23,
}  # rounds, and leaves the integer in the low bits


class Lanes(NamedTuple):
    """Type of the values in the text: `lanes` scalars of type "double" or "float" side by side."""

    scalar: str
    lanes: int
    splat: bool = True  # LLVM 19 and newer have splat constants
    permutes: bool = False  # AVX-512 picks the lanes of constants by an index each

    @property
    def size(self) -> int:
        return 8 if self.scalar == "double" else 4

    @property
    def bytes(self) -> int:
        return self.size * self.lanes

    @property
    def align(self) -> int:
        """The alignment of a vector in memory of its own: that of a register, of which it may take two."""
        return min(self.bytes, WIDEST)

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

    def minus(self, x: Value) -> Value:
        return self.f.let(x.type, f"fneg {x.type} {x.text}")

    def size(self, x: Value) -> Value:
        return self.f.call(self.l.type, f"llvm.fabs.{self.l.suffix}", x)

    def rounded(self, x: Value, factor: float) -> tuple[Value, Value]:
        """x factor to the nearest integer, and that plus the magic number, whose low bits hold it."""
        magic = _ROUNDING_MAGIC[self.l.scalar]
        sum_ = self.multiply_add(x, factor, magic)
        return sum_ - magic, sum_

    def less(self, x: Value, n: Value, factor: float) -> Value:
        """x - n factor pi / 2, part by part."""
        for part in _HALF_PI_PARTS[self.l.scalar, self.fused]:
            x = self.multiply_add(n, -factor * part, x)
        return x


def _new(m: Module, name: str, l: Lanes, fma: bool, result: str, *given: str, cold: bool = False) -> _Math | None:
    """The function of that name on values, to be written; None if it is in the module."""
    if name in m.functions:
        return None
    f = m.function(name, result, dict.fromkeys(given, l.type), attributes=" cold" if cold else "")
    return _Math(f, l, fma)


def add_sincos(m: Module, l: Lanes, fma: bool) -> str:
    """@sincos_<lanes>: value -> {sin, cos}."""
    name = f"sincos_{l.lanes}"
    if t := _new(m, name, l, fma, f"{{{l.type}, {l.type}}}", "angle"):
        t.f.ret(t.f.struct(*_sin_and_cos(t, t.f.angle)))
    return name


def _sin_and_cos(t: _Math, x: Value) -> tuple[Value, Value]:
    """sin (a + r) = (sin a + sin a (cos r - 1)) + cos a sin r and the like; a: the nearest of 16 directions."""
    wide, too_far = t.l.scalar == "double", _TOP[t.l.scalar] - ANGLE_BITS[t.l.scalar, t.fused]
    n, sum_ = t.rounded(x, 4.0 * _TWO_OVER_PI[t.l.scalar])
    r = t.less(x, n, 0.25)
    z = t.multiply_add(x * 2.0**too_far, 0.0, r * r)  # NaN where that is infinite
    s = t.multiply_add(t.polynomial(z, _S64 if wide else _S32), r * z, r)
    c = z * t.polynomial(z, _C64 if wide else _C32)
    a, b = (_permuted if t.l.permutes and t.l.bytes >= WIDEST else _selected)(t, sum_.cast("bitcast", t.integers))
    return t.multiply_add(b, s, t.multiply_add(a, c, a)), t.multiply_add(t.minus(a), s, t.multiply_add(b, c, b))


def _permuted(t: _Math, k: Value) -> tuple[Value, Value]:
    """sin and cos of k pi / 8 by the lanes of constants, in registers of 64 bytes."""
    f, one = t.f, t.l._replace(lanes=WIDEST // t.l.size)  # a register

    def found(shift: int) -> Value:
        items = [f"{one.scalar} {literal(_SINES[(i + shift) % 16], one.scalar)}" for i in range(16)]
        parts = [f.const(one.type, f"<{', '.join(items[i : i + one.lanes])}>") for i in range(0, 16, one.lanes)]

        def picked(k: Value) -> Value:
            if len(parts) == 1:
                return f.call(one.type, "llvm.x86.avx512.permvar.sf.512", parts[0], k)
            return f.call(one.type, "llvm.x86.avx512.vpermi2var.pd.512", parts[0], k, parts[1])

        if t.l.lanes == one.lanes:
            return picked(k)
        halves = (picked(k.shuffle(None, range(at, at + one.lanes))) for at in (0, one.lanes))
        return next(halves).shuffle(next(halves), range(t.l.lanes))

    return found(0), found(4)


def _selected(t: _Math, k: Value) -> tuple[Value, Value]:
    """sin and cos of k pi / 8 by selects: from the sines of 0, 1, 2 eighths of pi, which 3 and more exchange."""
    odd, half, exchanged = ((x & y).differs(0) for x, y in ((k, 1), (k, 2), (k + 1, 4)))

    def nearest(of: Sequence[float]) -> Value:
        first, second, third = (t.const(x) for x in of[:3])
        return t.f.select(odd, second, t.f.select(half, third, first))

    a, b = nearest(_RISING_SINES), nearest(_FALL)
    return _signed(t, t.f.select(exchanged, b, a), t.f.select(exchanged, a, b), k >> 2)


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
        r = t.f.select(size <= largest_angle(l.scalar, fma), r + t.f.rest, t.const(math.nan))
        t.f.ret(t.f.select(size <= MAX_SUMMED_RADIANS, x, r))
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
