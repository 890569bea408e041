"""sin and cos as one branch-free LLVM function, and atan2; the same bits for every width."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

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
        return self._spread(self.scalar, self.literal(x))

    def literal(self, x: float) -> str:
        if self.scalar == "float":
            x = struct.unpack("f", struct.pack("f", x))[0]
        return f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"

    def integer(self, k: int) -> str:
        return self._spread(f"i{8 * self.size}", str(k))

    def _spread(self, kind: str, text: str) -> str:
        if self.lanes == 1:
            return text
        if self.splat:
            return f"splat ({kind} {text})"
        return "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">"


class _Text:
    """Lines with fresh names; the few operations that sin and cos need."""

    def __init__(self, lanes: Lanes, fma: bool) -> None:
        self.l, self.fused, self.count = lanes, fma, 0
        self.lines: list[str] = []

    def let(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %x{self.count} = {text}")
        return f"%x{self.count}"

    def op(self, name: str, a: str, b: str) -> str:
        return self.let(f"{name} {self.l.type} {a}, {b}")

    def iop(self, name: str, a: str, b: str) -> str:
        return self.let(f"{name} {self.l.many(f'i{8 * self.l.size}')} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        if not self.fused:
            return self.op("fadd", self.op("fmul", a, b), c)
        t = self.l.type
        return self.let(f"call {t} @llvm.fma.{self.l.suffix}({t} {a}, {t} {b}, {t} {c})")

    def horner(self, z: str, coefficients: tuple[float, ...]) -> str:
        value = self.l.const(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, z, self.l.const(c))
        return value

    def cast(self, x: str, back: bool = False) -> str:
        f, i = self.l.type, self.l.many(f"i{8 * self.l.size}")
        return self.let(f"bitcast {i} {x} to {f}" if back else f"bitcast {f} {x} to {i}")

    def size(self, x: str) -> str:
        return self.let(f"call {self.l.type} @llvm.fabs.{self.l.suffix}({self.l.type} {x})")

    def compare(self, how: str, a: str, b: str) -> str:
        return self.let(f"fcmp {how} {self.l.type} {a}, {b}")

    def select(self, flag: str, a: str, b: str) -> str:
        t = self.l.type
        return self.let(f"select {self.l.many('i1')} {flag}, {t} {a}, {t} {b}")


def sines(text: str, widths: Iterable[Lanes], fma: bool) -> str:
    """The functions of this file that a text calls."""
    lanes = {l.lanes: l for l in widths}.values()
    pairs = "".join(sincos(l, fma, k) for l, k in product(lanes, (1, 2)) if f"@{_name(l, k)}(" in text)
    others = {"atan2": atan2, "turned": turned}
    return pairs + "".join(f(l, fma) for l in lanes for name, f in others.items() if f"@{name}_{l.lanes}(" in text)


def _name(lanes: Lanes, angles: int) -> str:
    return f"sincos_{lanes.lanes}" + (f"_{angles}" if angles > 1 else "")


def sincos(lanes: Lanes, fma: bool, angles: int = 1) -> str:
    """The text of @sincos_<lanes>: value -> {sin, cos}; of @sincos_<lanes>_2: of two values."""
    t = _Text(lanes, fma)
    made = [x for k in range(angles) for x in _one(t, f"%x_{k}")]
    kind, value = f"{{{', '.join([lanes.type] * len(made))}}}", "undef"
    for k, x in enumerate(made):
        value = t.let(f"insertvalue {kind} {value}, {lanes.type} {x}, {k}")
    given = ", ".join(f"{lanes.type} %x_{k}" for k in range(angles))
    body = "\n".join([*t.lines, f"  ret {kind} {value}"])
    return f"define internal {kind} @{_name(lanes, angles)}({given}) noinline {{\n{body}\n}}\n"


def _one(t: _Text, x: str) -> tuple[str, str]:
    """sin and cos of one value."""
    lanes, fma, c = t.l, t.fused, t.l.const
    turn = t.fma(x, c(_TWO_OVER_PI[lanes.scalar]), c(_MAGIC[lanes.scalar]))
    n = t.op("fsub", turn, c(_MAGIC[lanes.scalar]))
    r = x
    for part in _PARTS[lanes.scalar, fma]:
        r = t.fma(n, c(-part), r)
    good = t.compare("ole", t.size(x), c(limit(lanes.scalar, fma)))
    s, k = _polynomials(t, t.select(good, r, c(float("nan")))), t.cast(turn)
    swap = t.let(f"icmp ne {lanes.many(f'i{8 * lanes.size}')} {t.iop('and', k, lanes.integer(1))}, {_zero(lanes)}")
    sin, cos = t.select(swap, s[1], s[0]), t.select(swap, s[0], s[1])
    return _signed(t, sin, cos, k)


def _polynomials(t: _Text, r: str) -> tuple[str, str]:
    """sin and cos on |r| <= pi/4."""
    wide = t.l.scalar == "double"
    z = t.op("fmul", r, r)
    s = t.fma(t.horner(z, _S64 if wide else _S32), t.op("fmul", r, z), r)
    return s, t.horner(z, (1.0, -0.5, *(_C64 if wide else _C32)))


def _signed(t: _Text, sin: str, cos: str, quadrant: str) -> tuple[str, str]:
    """sin changes its sign with bit 1 of the quadrant, cos with the sum of bits 0 and 1."""
    top = 8 * t.l.size - 1
    high = t.iop("and", t.iop("shl", quadrant, t.l.integer(top - 1)), t.l.integer(1 << top))
    low = t.iop("shl", quadrant, t.l.integer(top))
    sin, cos = t.iop("xor", t.cast(sin), high), t.iop("xor", t.iop("xor", t.cast(cos), high), low)
    return t.cast(sin, back=True), t.cast(cos, back=True)


def turned(lanes: Lanes, fma: bool) -> str:
    """The text of @turned_<lanes>: of an angle and what it lacks, less whole turns where it is beyond NEAR."""
    t, c = _Text(lanes, fma), lanes.const
    magic = c(_MAGIC[lanes.scalar])
    n = t.op("fsub", t.fma("%x", c(0.25 * _TWO_OVER_PI[lanes.scalar]), magic), magic)
    r = "%x"
    for part in _PARTS[lanes.scalar, fma]:
        r = t.fma(n, c(-4.0 * part), r)
    size = t.size("%x")
    r = t.select(t.compare("ole", size, c(limit(lanes.scalar, fma))), t.op("fadd", r, "%rest"), c(float("nan")))
    r = t.select(t.compare("ole", size, c(NEAR)), "%x", r)
    body = "\n".join([*t.lines, f"  ret {lanes.type} {r}"])
    given = f"{lanes.type} %x, {lanes.type} %rest"
    return f"define internal {lanes.type} @turned_{lanes.lanes}({given}) noinline cold {{\n{body}\n}}\n"


def atan2(lanes: Lanes, fma: bool) -> str:
    """The text of @atan2_<lanes>: of (y, x); 0 where both are."""
    t = _Text(lanes, fma)
    value = _signed_angle(t, _first_octant(t, *(t.size(x) for x in ("%y", "%x"))))
    body = "\n".join([*t.lines, f"  ret {lanes.type} {value}"])
    given = f"{lanes.type} %y, {lanes.type} %x"
    return f"define internal {lanes.type} @atan2_{lanes.lanes}({given}) noinline {{\n{body}\n}}\n"


def _first_octant(t: _Text, y: str, x: str) -> str:
    """The angle of (x, y), both at least 0: by the smaller over the larger, and beyond tan(pi/8) from pi/4 on."""
    c, one = t.l.const, t.l.const(1.0)
    steep = t.compare("ogt", y, x)
    low, high = t.select(steep, x, y), t.select(steep, y, x)
    high = t.select(t.compare("oeq", high, c(0.0)), one, high)
    far = t.compare("ogt", low, t.op("fmul", high, c(_TAN_PI_8)))
    above, below = (t.select(far, t.op(f, low, high), z) for f, z in (("fsub", low), ("fadd", high)))
    r = t.op("fdiv", above, below)
    z = t.op("fmul", r, r)
    ratio = t.op("fdiv", t.op("fmul", z, t.horner(z, _ATAN_P)), t.horner(z, _ATAN_Q))
    angle = t.op("fadd", t.select(far, c(0.7853981633974483), c(0.0)), t.fma(r, ratio, r))
    return t.select(steep, t.op("fsub", c(1.5707963267948966), angle), angle)


def _signed_angle(t: _Text, angle: str) -> str:
    """The angle of (%x, %y) from that of their sizes."""
    left = t.compare("olt", "%x", t.l.const(0.0))
    angle = t.select(left, t.op("fsub", t.l.const(3.141592653589793), angle), angle)
    top = t.l.integer(1 << 8 * t.l.size - 1)
    return t.cast(t.iop("xor", t.cast(angle), t.iop("and", t.cast("%y"), top)), back=True)


def _zero(lanes: Lanes) -> str:
    return "0" if lanes.lanes == 1 else "zeroinitializer"
