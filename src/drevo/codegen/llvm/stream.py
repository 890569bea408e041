"""The loop that feeds a batch driver from a counter-based generator and keeps sums: no array of samples anywhere.

SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): the k-th 64 bits are
mix(seed + (k + 1) GAMMA), so any sample can be made without those before it, on any thread. One text serves all
functions: sizes, addresses and ranges come with its state.

Random numbers inside a tile of stages: by counter, each lane from its own key.
"""

from __future__ import annotations

import math

from .ir import I32, I64, PTR, VOID, Module, Value
from .math import Lanes, add_sincos
from .stages import StageCalls

GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SHIFTS = (30, 27, 31)
SAMPLES_AT_A_TIME = 64  # samples made, computed and summed at a time: they stay in the nearest cache
SUMS = 4  # kept of every result: sum, sum of squares, minimum, maximum
FIELDS = ("drive", "seed", "inputs", "outputs", "ranges", "quaternions", "columns", "in", "out", "pointers",
       "strides", "arena", "sums")  # fmt: skip
_ADDRESSES = ("drive", "ranges", "columns", "in", "out", "pointers", "strides", "arena", "sums")


def stream_text(l: Lanes, fma: bool) -> str:
    """i32 @stream(state, first, count): not 0 if a check failed. float64 only.

    state: the fields of `FIELDS`; ranges: least value and width of every input; columns: where quaternions begin,
    whose first three numbers come as [0, 1). in and out: rows of STEP samples; sums: SUMS vectors a result.
    """
    m = Module()
    _fill(m, l)
    _quaternion(m, l, fma)
    _quaternions(m, l)
    _sums(m, l, False)
    _sums(m, l, True)
    _loop(m)
    return m.text()


def signed(k: int) -> int:
    return k - (1 << 64) if k >> 63 else k


def _fill(m: Module, l: Lanes) -> None:
    """STEP samples of every input; number k of sample s is the (s n + k)-th of the generator."""
    f = m.function("fill", into=PTR, first=I64, seed=I64, n=I64, ranges=PTR)
    sample = f.first.splat(l.lanes) + f.counting(l.many(I64))
    start = (sample * f.n.splat(l.lanes) + 1) * signed(GAMMA) + f.seed.splat(l.lanes)
    tile = (f.n * signed(GAMMA * l.lanes % 2**64)).splat(l.lanes)
    with f.loop(f.n, some=True, counter=start) as s:
        ends = f.ranges.at(s.i * 2)
        least, width = (ends.at(k).load().splat(l.lanes) for k in range(2))
        row, counter = f.into.at(s.i * SAMPLES_AT_A_TIME), s.counter
        for k in range(0, SAMPLES_AT_A_TIME, l.lanes):
            row.at(k).store(unit_interval(counter, l) * width + least, l.bytes)
            counter = counter + tile
        s.counter = s.counter + signed(GAMMA)
    f.ret()


def unit_interval(z: Value, l: Lanes) -> Value:
    """The mix of a counter, its upper 52 bits as a number of [0, 1)."""
    for shift, factor in zip(SHIFTS, (FIRST, SECOND, 1)):
        z = z ^ (z >> shift)
        if factor != 1:
            z = z * signed(factor)
    return (z >> 12 | 0x3FF0000000000000).cast("bitcast", l.type) - 1.0


def _quaternion(m: Module, l: Lanes, fma: bool) -> None:
    """Three numbers of [0, 1) to a uniform unit quaternion (Shoemake, Graphics Gems III, 1992), in place."""
    f = m.function("quaternion", at=PTR)
    t, pair = l.type, f"{{{l.type}, {l.type}}}"
    u = [f.at.at(k * SAMPLES_AT_A_TIME).load(t, l.bytes) for k in range(3)]
    for k, x in enumerate((f.const(t, 1.0) - u[0], u[0])):
        radius = f.call(t, f"llvm.sqrt.{l.suffix}", x)
        both = f.call(pair, add_sincos(m, l, fma), u[k + 1] * (2 * math.pi))
        for e in range(2):
            part = both.part(e)
            f.at.at((2 * k + e) * SAMPLES_AT_A_TIME).store(radius * part, l.bytes)
    f.ret()


def _quaternions(m: Module, l: Lanes) -> None:
    f = m.function("quaternions", into=PTR, columns=PTR, n=I64)
    with f.loop(f.n) as s:
        first = f.into.at(f.columns.at(s.i, I64).load(I64) * SAMPLES_AT_A_TIME)
        for k in range(0, SAMPLES_AT_A_TIME, l.lanes):
            f.call(VOID, "quaternion", first.at(k))
    f.ret()


def _sums(m: Module, l: Lanes, part: bool) -> None:
    """Adds STEP samples, or the first `count` of them, to what is kept of every result."""
    f = m.function(f"sum_{'part' if part else 'all'}", out=PTR, sums=PTR, n=I64, count=I64)
    neutral = [f.const(l.type, x) for x in (0.0, 0.0, math.inf, -math.inf)]
    count = f.count.splat(l.lanes)
    with f.loop(f.n, some=True) as s:
        row, kept = f.out.at(s.i * SAMPLES_AT_A_TIME), f.sums.at(s.i * (SUMS * l.lanes))
        now = [kept.at(e * l.lanes).load(l.type, l.bytes) for e in range(SUMS)]
        for k in range(0, SAMPLES_AT_A_TIME, l.lanes):
            x = row.at(k).load(l.type, l.bytes)
            new = [x, x * x, x, x]
            if part:
                counted = f.counting(l.many(I64), k) < count
                new = [f.select(counted, *pair) for pair in zip(new, neutral)]
            flags = (new[2] < now[2], new[3] > now[3])
            now = [now[0] + new[0], now[1] + new[1], *map(f.select, flags, new[2:], now[2:])]
        for e, x in enumerate(now):
            kept.at(e * l.lanes).store(x, l.bytes)
    f.ret()


def _loop(m: Module) -> None:
    """Make, compute and sum STEP samples at a time."""
    f = m.function("stream", I32, public=True, state=PTR, first=I64, count=I64)
    state = {x: f.state.at(k, I64).load(PTR if x in _ADDRESSES else I64) for k, x in enumerate(FIELDS)}
    with f.loop(f.count, step=SAMPLES_AT_A_TIME, some=True, bad=f.zero(I32)) as s:
        left = f.count - s.i
        whole = left >= SAMPLES_AT_A_TIME
        size = f.select(whole, SAMPLES_AT_A_TIME, left)
        f.call(VOID, "fill", state["in"], f.first + s.i, state["seed"], state["inputs"], state["ranges"])
        f.call(VOID, "quaternions", state["in"], state["columns"], state["quaternions"])
        s.bad = s.bad | f.call(
            I32, state["drive"], state["pointers"], state["strides"], size, state["arena"], size
        )
        for name, flag in (("sum_all", whole), ("sum_part", ~whole)):
            with f.when(flag):
                f.call(VOID, name, state["out"], state["sums"], state["outputs"], size)
    f.ret(s.bad)


_ONE_AS_BITS, _MANTISSA, _EXPONENT_BIAS, _MANTISSA_BITS = 0x3FF0000000000000, (1 << 52) - 1, 1023, 52
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
    power = (bits >> _MANTISSA_BITS).cast("sitofp", l.type) - float(_EXPONENT_BIAS)
    m = (bits & _MANTISSA | _ONE_AS_BITS).cast("bitcast", l.type)
    high = m > math.sqrt(2.0)
    m, power = f.select(high, m * 0.5, m), f.select(high, power + 1.0, power)
    s = (m - 1.0) / (m + 1.0)
    z, series = s * s, f.const(l.type, _ATANH[-1])
    for a in reversed(_ATANH[:-1]):
        series = series * z + a
    return (power * math.log(2.0) + s * 2.0 * series) * -2.0
