"""Random numbers inside a tile of stages: by counter, each lane from its own key."""

from __future__ import annotations

import math

from .ir import I64, Value
from .math import Lanes
from .stages import StageCalls
from .stream import GAMMA, signed, unit_interval

_ONE, _MANTISSA, _BIAS, _BITS = 0x3FF0000000000000, (1 << 52) - 1, 1023, 52
_ATANH = tuple(1.0 / (2 * k + 1) for k in range(11))  # of the square of its argument, which is below 0.03


def write_draws(c: StageCalls, block: str, stream: str, count: int, logs: int) -> None:
    """Numbers of SplitMix64 into a block: `count` of [0, 1), the first `logs` of which become -2 ln(1 - u).

    stream: a block of two whole numbers, the seed and how many have been drawn.
    """
    l = c.l
    seed, first = (c.load(stream, k).cast("fptosi", l.many(I64)) for k in range(2))
    start = (first + 1) * signed(GAMMA) + seed
    for k in range(count):
        x = unit_interval(start + signed(GAMMA * k % 2**64), l)
        c.at(block, k).store(_minus_twice_log(c, x, l) if k < logs else x, l.bytes)


def _minus_twice_log(c: StageCalls, x: Value, l: Lanes) -> Value:
    """-2 ln(1 - x): by the exponent and the mantissa about 1, whose logarithm is twice an inverse tangent."""
    f = c.f
    bits = (f.const(l.type, 1.0) - x).cast("bitcast", l.many(I64))
    power = (bits >> _BITS).cast("sitofp", l.type) - float(_BIAS)
    m = (bits & _MANTISSA | _ONE).cast("bitcast", l.type)
    high = m > math.sqrt(2.0)
    m, power = f.select(high, m * 0.5, m), f.select(high, power + 1.0, power)
    s = (m - 1.0) / (m + 1.0)
    z, series = s * s, f.const(l.type, _ATANH[-1])
    for a in reversed(_ATANH[:-1]):
        series = series * z + a
    return (power * math.log(2.0) + s * 2.0 * series) * -2.0
