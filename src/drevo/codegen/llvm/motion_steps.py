"""The parts of every integration, in machine code over the fields of its state: rates, stages, a step's end,
records, the return of a state to its constraints, weighted sums over the stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..lower.loops import DEPENDENT, MOTION_STATE, NOT_FINITE, OPEN, SAMPLE_DONE, SAMPLE_NUMBERS
from .fields import Fields
from .ir import F64, I1, I32, I64, PTR, VOID, IRFunction, Module, Value
from .math import Lanes

NEWTON_STEPS = 12  # steps of Newton's iteration at most; each doubles the digits
PORTS = (("Y_q", "Y_v", "tau", "t"), ("given",), ("to_q", "to_v"), ("P_q", "P_v", "gap", "watch"))


def add_steps(m: Module, timed: bool, constrained: bool) -> None:
    """The functions. timed: the derivative reads the time; constrained: it has constraints."""
    _adopt(m)
    _largest(m)
    _normalise(m)
    _copy(m)
    _rates(m, timed, constrained)
    _stage(m)
    _finish_step(m)
    _record(m)
    _project(m, constrained)


def _larger(f: IRFunction, x: Value, y: Value) -> Value:
    return f.select(x > y, x, y)


# -- iterations over a batch: a sample that is done keeps what it has, so no other one changes its bits ---------


def open_samples(f: IRFunction, state: Fields) -> None:
    """Before an iteration, in which no sample is done yet."""
    with f.loop(state.count) as s:
        state.rows.at(s.i * SAMPLE_NUMBERS).store(f.zero(F64))


@contextmanager
def each_open(f: IRFunction, state: Fields) -> Iterator[tuple[Value, Value]]:
    """A loop over the samples that are not done: the number of each, and its numbers in `rows`."""
    with f.loop(state.count) as s:
        numbers = state.rows.at(s.i * SAMPLE_NUMBERS)
        with f.when(numbers.load() >= 0.0):
            yield s.i, numbers


def all_done(f: IRFunction, state: Fields) -> Value:
    with f.loop(state.count, left=0) as s:
        s.left = s.left + (state.rows.at(s.i * SAMPLE_NUMBERS).load() >= 0.0).cast("zext", I64)
    return s.left.equals(0)


def _adopt(m: Module) -> None:
    """K = Z of the samples that are not done; their change grows to the largest."""
    f = m.function("adopt", state=PTR, K=PTR, Z=PTR, size=I64)
    with each_open(f, Fields(f, MOTION_STATE)) as (sample, numbers):
        first, four, l = sample * f.size, f.size & -4, Lanes("double", 4)
        with f.loop(four, step=4, wide=f.zero(l.type)) as w:
            w.wide = _larger(f, _moved(f, first + w.i, l), w.wide)
        reduced = f.call(F64, f"llvm.vector.reduce.fmax.{l.suffix}", w.wide, flags="nnan ")
        with f.loop(f.size, start=four, change=_larger(f, reduced, numbers.at(1).load())) as s:
            s.change = _larger(f, _moved(f, first + s.i, Lanes("double", 1)), s.change)
        numbers.at(1).store(s.change)
    f.ret()


def _moved(f: IRFunction, i: Value, l: Lanes) -> Value:
    """K = Z of some numbers; how far they went."""
    k, z = (x.at(i).load(l.type, 8) for x in (f.K, f.Z))
    f.K.at(i).store(z, 8)
    return f.call(l.type, f"llvm.fabs.{l.suffix}", z - k)


def _normalise(m: Module) -> None:
    """The n quaternions of each row of q, which begin at `starts`, get unit length."""
    f = m.function("normalise", q=PTR, count=I64, size=I64, starts=PTR, n=I64)
    four, reduce = "<4 x double>", "llvm.vector.reduce.fadd.v4f64"
    with f.loop(f.count) as row, f.loop(f.n) as k:
        place = f.q.at(row.i * f.size + f.starts.at(k.i, I64).load(I64))
        x = place.load(four, 8)
        square = f.call(F64, reduce, f.zero(F64), x * x, flags="reassoc ")
        place.store(x / f.call(F64, "llvm.sqrt.f64", square).splat(4), 8)
    f.ret()


def _copy(m: Module) -> None:
    f = m.function("copy", to=PTR, source=PTR, n=I64)
    with f.loop(f.n) as s:
        f.to.at(s.i).store(f.source.at(s.i).load())
    f.ret()


def _rates(m: Module, timed: bool, constrained: bool) -> None:
    """The derivative of one sample by the scalar kernel, of several by the driver; true if a check failed."""
    f = m.function("rates", I1, state=PTR, now=F64, Y_q=PTR, Y_v=PTR, to_q=PTR, to_v=PTR)
    state = Fields(f, MOTION_STATE)
    names = [n for k, part in enumerate(PORTS) if constrained or k % 2 == 0 for n in part]
    ports = [f.arguments[n] if n in f.arguments else getattr(state, n) for n in names]
    if timed:
        state.t.store(f.now)
    with f.when(state.count.equals(1)):
        state.status.store(f.zero(F64))
        f.call(VOID, "one", *ports, state.scratch, state.status)
        f.ret(state.status.load().is_nan())
    for k, x in enumerate(ports):
        state.pointers.at(k, PTR).store(x)
    f.ret(f.call(I32, "drive", state.pointers, state.strides, state.count, state.arena, state.count).differs(0))


def _stage(m: Module) -> None:
    """The rates of stage s, made of the first `upto` rates; true if a check failed."""
    f = m.function("stage", I1, state=PTR, s=I64, upto=I64, now=F64, h=F64, to_q=PTR, to_v=PTR)
    state = Fields(f, MOTION_STATE)
    row = f.s * state.stages
    f.call(VOID, "combine", state.Y_q, state.q, state.K_q, state.a_q.at(row), f.upto, state.pad_q, f.h)
    f.call(VOID, "combine", state.Y_v, state.v, state.K_v, state.a_v.at(row), f.upto, state.pad_v, f.h)
    then = f.now + state.c.at(f.s).load() * f.h
    f.ret(f.call(I1, "rates", f.state, then, state.Y_q, state.Y_v, f.to_q, f.to_v))


def _finish_step(m: Module) -> None:
    """The state at the end of a step, at the time `then`; 0, or why the motion stops there."""
    f = m.function("finish_step", I64, state=PTR, h=F64, then=F64)
    state = Fields(f, MOTION_STATE)
    f.call(VOID, "update", state.q, state.e_q, state.K_q, state.b_q, state.stages, state.pad_q, f.h)
    f.call(VOID, "update", state.v, state.e_v, state.K_v, state.b_v, state.stages, state.pad_v, f.h)
    _unit_quaternions(f, state)
    f.ret(f.call(I64, "project", f.state, f.then))


def _unit_quaternions(f: IRFunction, state: Fields) -> None:
    f.call(VOID, "normalise", state.q, state.count, state.size_q, state.quaternions, state.quaternion_count)


def _record(m: Module) -> None:
    """The state as record r."""
    f = m.function("record", state=PTR, r=I64)
    state = Fields(f, MOTION_STATE)
    f.call(VOID, "copy", state.to_q.at(f.r * state.to_q_step, "i8"), state.q, state.n_q)
    f.call(VOID, "copy", state.to_v.at(f.r * state.to_v_step, "i8"), state.v, state.n_v)
    f.ret()


def _largest(m: Module) -> None:
    """The largest magnitude, 0 of none."""
    f = m.function("largest", F64, x=PTR, n=I64)
    with f.loop(f.n, top=f.zero(F64)) as s:
        s.top = _larger(f, f.call(F64, "llvm.fabs.f64", f.x.at(s.i).load()), s.top)
    f.ret(s.top)


def _project(m: Module, constrained: bool) -> None:
    """Newton's steps of least dq by M until the gaps are closed, the velocity projected with each.

    A state that cannot be put on its constraints is left as it came, for the message.
    """
    f = m.function("project", I64, state=PTR, now=F64)
    if constrained:
        state = Fields(f, MOTION_STATE)
        _move(f, state, "q", "Y_q")
        _move(f, state, "v", "Y_v")
        open_samples(f, state)
        with f.loop(NEWTON_STEPS, some=True):
            with f.when(f.call(I1, "rates", f.state, f.now, state.q, state.v, state.Z_q, state.Z_v)):
                _give_up(f, state, NOT_FINITE)
            with each_open(f, state) as (sample, numbers):
                q = _put_back(f, state, sample, "q")
                _put_back(f, state, sample, "v")
                f.call(VOID, "normalise", q, 1, state.size_q, state.quaternions, state.quaternion_count)
                with f.when(_largest_of(f, state, sample, "gap") <= 1.0):
                    numbers.store(f.const(F64, SAMPLE_DONE))
                    with f.when(~(_largest_of(f, state, sample, "watch") <= 1.0)):
                        _give_up(f, state, DEPENDENT)
            with f.when(all_done(f, state)):
                f.ret(0)
        _give_up(f, state, OPEN)
    else:
        f.ret(0)


def _put_back(f: IRFunction, state: Fields, sample: Value, part: str) -> Value:
    """A sample's coordinates or rates as they are on its constraints; where they stand."""
    size = getattr(state, f"size_{part}")
    to: Value = getattr(state, part).at(sample * size)
    f.call(VOID, "copy", to, getattr(state, f"P_{part}").at(sample * size), size)
    return to


def _largest_of(f: IRFunction, state: Fields, sample: Value, field: str) -> Value:
    size = getattr(state, f"size_{field}")
    return f.call(F64, "largest", getattr(state, field).at(sample * size), size)


def _move(f: IRFunction, state: Fields, source: str, to: str) -> None:
    f.call(VOID, "copy", getattr(state, to), getattr(state, source), getattr(state, f"n_{source[-1]}"))


def _give_up(f: IRFunction, state: Fields, code: int) -> None:
    _move(f, state, "Y_q", "q")
    _move(f, state, "Y_v", "v")
    f.ret(code)


# -- weighted sums over the stages of a Runge-Kutta method, vectors of the state lane by lane -------------------


def add_sums(m: Module, l: Lanes) -> None:
    """@combine, @update and @estimate. K: rates of the stages, rows of `pad` numbers; n: how many; h: the step."""
    _combine(m, l)
    _update(m, l)
    _estimate(m, l)


def _weighted(f: IRFunction, l: Lanes, i: Value, weights: Sequence[Value]) -> list[Value]:
    """sum_j w_j K_j at place i of the state, for each row w of weights."""
    names = [f"sum{k}" for k in range(len(weights))]
    with f.loop(f.n, carry=dict.fromkeys(names, f.zero(l.type))) as s:
        rate = f.K.at(s.i * f.pad + i).load(l.type, l.bytes)
        for name, w in zip(names, weights):
            setattr(s, name, getattr(s, name) + w.at(s.i).load().splat(l.lanes) * rate)
    return [getattr(s, name) for name in names]


def _combine(m: Module, l: Lanes) -> None:
    """out = y + h sum: the argument of a stage."""
    f = m.function("combine", out=PTR, y=PTR, K=PTR, row=PTR, n=I64, pad=I64, h=F64)
    h = f.h.splat(l.lanes)
    with f.loop(f.pad, step=l.lanes, some=True) as s:
        y = f.y.at(s.i).load(l.type, l.bytes)
        (total,) = _weighted(f, l, s.i, [f.row])
        f.out.at(s.i).store(y + h * total, l.bytes)
    f.ret()


def _update(m: Module, l: Lanes) -> None:
    """y += h sum with compensated summation (Kahan 1965): what rounding drops is added by the next step."""
    f = m.function("update", y=PTR, e=PTR, K=PTR, row=PTR, n=I64, pad=I64, h=F64)
    h = f.h.splat(l.lanes)
    with f.loop(f.pad, step=l.lanes, some=True) as s:
        at_y, at_e = f.y.at(s.i), f.e.at(s.i)
        y, lost = (p.load(l.type, l.bytes) for p in (at_y, at_e))
        (total,) = _weighted(f, l, s.i, [f.row])
        increment = h * total + lost
        new = y + increment
        at_y.store(new, l.bytes)
        at_e.store(increment - (new - y), l.bytes)
    f.ret()


def _estimate(m: Module, l: Lanes) -> None:
    """Adds the sums of squares of two error estimates over their tolerance to best[0] and best[1]."""
    f = m.function(
        "estimate", best=PTR, y=PTR, K=PTR, b=PTR, e5=PTR, e3=PTR, n=I64, pad=I64, h=F64, rtol=F64, atol=F64
    )
    t, reduce = l.type, f"llvm.vector.reduce.fadd.{l.suffix}"
    h, rtol, atol = (x.splat(l.lanes) for x in (f.h, f.rtol, f.atol))
    with f.loop(f.pad, step=l.lanes, some=True, fifth=f.zero(t), third=f.zero(t)) as s:
        y = f.y.at(s.i).load(t, l.bytes)
        step, fifth, third = _weighted(f, l, s.i, [f.b, f.e5, f.e3])
        old, new = (f.call(t, f"llvm.fabs.{l.suffix}", x) for x in (y, y + h * step))
        scale = atol + rtol * f.select(new > old, new, old)
        fifth, third = fifth / scale, third / scale
        s.fifth, s.third = s.fifth + fifth * fifth, s.third + third * third
    for k, x in enumerate((s.fifth, s.third)):
        place = f.best.at(k)
        place.store(f.call(F64, reduce, place.load(), x, flags="reassoc "))
    f.ret()
