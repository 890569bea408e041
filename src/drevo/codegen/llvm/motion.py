"""The engine of every Runge-Kutta method, in machine code beside the kernel of the derivative.

`i64 @integrate(state)` runs many steps of one length, `i64 @integrate_adaptive(state)` steps whose length follows
their error estimate, without leaving machine code: stages, the iteration of implicit ones, a compensated update,
unit quaternions, constraints, records. The tableau is data, so one module serves every method.
"""

from __future__ import annotations

import math

from ..lower.loops import (
    FIRST_STEP,
    GROW,
    MIN_STEP_ULPS,
    MOTION_STATE,
    NOT_FINITE,
    SAFETY,
    SAMPLE_DONE,
    SETTLED,
    SHRINK,
    TOO_SMALL,
    UNSETTLED,
)
from ..lower.lower import Lowered, Port
from .bodies.rolled_driver import loaded
from .fields import Fields
from .ir import F64, I1, I32, I64, PTR, VOID, IRFunction, Module, Value
from .motion_steps import add_steps, add_sums, all_done, each_open, open_samples
from .ports import Target, flush_subnormals


def add_engine(m: Module, low: Lowered, target: Target, *_: object) -> None:
    """Everything the engine adds to a module; an entry of `module.emit`."""
    l = target.of(target.lanes)
    add_sums(m, l)
    add_steps(m, timed=low.inputs[3].size > 0, constrained=len(low.inputs) > 4)
    _settle(m)
    _step(m)
    _integrate(m, target)
    _attempt(m)
    _integrate_adaptive(m, target)


def _rates_of(state: Fields, s: Value) -> tuple[Value, Value]:
    """The addresses of the rates of stage s: of q and of v."""
    return state.K_q.at(s * state.pad_q), state.K_v.at(s * state.pad_v)


def _clear_best(f: IRFunction, state: Fields) -> None:
    for k in range(2):
        state.best.at(k).store(f.zero(F64))


def _explicit_stages(f: IRFunction, state: Fields, now: Value, h: Value, failed: Value) -> None:
    """Every stage once, each from those before it; returns `failed` where a rate is not finite."""
    with (
        f.loop(state.stages, some=True) as s,
        f.when(f.call(I1, "stage", f.state, s.i, s.i, now, h, *_rates_of(state, s.i))),
    ):
        f.ret(failed)


def _settle(m: Module) -> None:
    """The stages of an implicit method, by fixed-point iteration until they no longer change; 0, or why not.

    Of a sample `rows` holds the change of the sweep before, SAMPLE_DONE once it has settled and keeps its rates,
    then the change of the present sweep.
    """
    f = m.function("settle", I64, state=PTR, now=F64)
    state = Fields(f, MOTION_STATE)
    open_samples(f, state)
    with f.loop(state.sweeps, some=True) as sweep:
        with each_open(f, state) as (_, numbers):
            numbers.at(1).store(f.zero(F64))
        with f.loop(state.stages, some=True) as s:
            with f.when(f.call(I1, "stage", f.state, s.i, state.stages, f.now, state.h, state.Z_q, state.Z_v)):
                f.ret(NOT_FINITE)
            at_q, at_v = _rates_of(state, s.i)
            f.call(VOID, "adopt", f.state, at_q, state.Z_q, state.size_q)
            f.call(VOID, "adopt", f.state, at_v, state.Z_v, state.size_v)
        done = sweep.i + 1
        with each_open(f, state) as (sample, numbers):
            last, change = numbers.load(), numbers.at(1).load()
            numbers.store(change)
            with f.when(((change >= last) | (done >= state.sweeps)) & (done >= 3)):
                settled = change <= _largest_rate(f, state, sample) * SETTLED
                numbers.store(f.select(settled, f.const(F64, SAMPLE_DONE), change))
            with f.when(change.equals(0.0)):
                numbers.store(f.const(F64, SAMPLE_DONE))
        with f.when(all_done(f, state)):
            f.ret(0)
    f.ret(UNSETTLED)


def _largest_rate(f: IRFunction, state: Fields, sample: Value) -> Value:
    """The largest rate of a sample over all stages."""
    with f.loop(state.stages, some=True, top=f.zero(F64)) as s:
        for rates, size in zip(_rates_of(state, s.i), (state.size_q, state.size_v)):
            largest = f.call(F64, "largest", rates.at(sample * size), size)
            s.top = f.select(largest > s.top, largest, s.top)
    return s.top


def _step(m: Module) -> None:
    """One step of the length h; 0, or why the motion stops."""
    f = m.function("step", I64, state=PTR)
    state = Fields(f, MOTION_STATE)
    at_k, at_tau = state.at("k"), state.at("tau")
    k = at_k.load(I64)
    now = state.t0 + k.cast("sitofp", F64) * state.h
    with f.when(state.sweeps.equals(0)):
        _explicit_stages(f, state, now, state.h, f.const(I64, NOT_FINITE))
    with f.when(state.sweeps.differs(0)):
        unsettled = f.call(I64, "settle", f.state, now)
        with f.when(unsettled.differs(0)):
            f.ret(unsettled)
    following = k + 1
    lost = f.call(I64, "finish_step", f.state, state.h, state.t0 + following.cast("sitofp", F64) * state.h)
    at_k.store(following)
    at_tau.store(at_tau.load(PTR).at(state.tau_step, "i8"))
    f.ret(lost)


def _integrate(m: Module, target: Target) -> None:
    """Records, one each `every` steps; how many were made."""
    f = m.function("integrate", I64, public=True, state=PTR)
    f.leaving = flush_subnormals(f, target)
    state = Fields(f, MOTION_STATE)
    with f.loop(state.records) as record:
        with f.loop(state.every):
            code = f.call(I64, "step", f.state)
            with f.when(code.differs(0)):
                state.at("code").store(code)
                f.ret(record.i)
        f.call(VOID, "record", f.state, record.i)
    f.ret(state.records)


def _attempt(m: Module) -> None:
    """A step of h from t: its error over its tolerance, 1 is just right, inf where a rate is not finite.

    Hairer, Norsett, Wanner 1993, II.10: the estimates of orders 5 and 3 together.
    """
    f = m.function("attempt", F64, state=PTR, t=F64, h=F64)
    state = Fields(f, MOTION_STATE)
    _explicit_stages(f, state, f.t, f.h, f.const(F64, math.inf))
    _clear_best(f, state)
    parts = [[getattr(state, f"{name}{part}") for name in ("", "K_", "b_", "pad_")] for part in "qv"]
    for y, rates, b, pad in parts:
        errors, counts = (state.e_5, state.e_3), (state.stages, pad)
        f.call(VOID, "estimate", state.best, y, rates, b, *errors, *counts, f.h, state.rtol, state.atol)
    fifth, third = state.best.load(), state.best.at(1).load()
    numbers = (state.n_q + state.n_v).cast("sitofp", F64)
    below = f.call(F64, "llvm.sqrt.f64", (fifth + third * 0.01) * numbers)
    f.ret(f.select(below.equals(0.0), f.zero(F64), f.h * fifth / below))


def _integrate_adaptive(m: Module, target: Target) -> None:
    """On until the end or until all records, one an accepted step, are full; how many were made."""
    f = m.function("integrate_adaptive", I64, public=True, state=PTR)
    f.leaving = flush_subnormals(f, target)
    state = Fields(f, MOTION_STATE)
    with f.loop(t=state.t0, h=state.h, r=0) as on:
        t, wanted, r = on.t, on.h, on.r
        on.leave((t >= state.t_end) | (r >= state.records))
        rest = state.t_end - t
        last = wanted >= rest
        half = rest * 0.5  # two equal steps rather than a tiny last one
        h = f.select(last, rest, f.select(wanted > half, half, wanted))
        error = f.call(F64, "attempt", f.state, t, h)
        following, fine = h * _factor(f, error), error <= 1.0
        then = f.select(last, state.t_end, t + h)
        with f.when(fine):
            lost = f.call(I64, "finish_step", f.state, h, then)
            state.at("code").store(lost)
            on.leave(lost.differs(0))
            state.to_t.at(r).store(then)
            f.call(VOID, "record", f.state, r)
        on.h = following
        with f.when(~fine):
            state.at("rejected").store(state.at("rejected").load(I64) + 1)
            clock = f.select(t > FIRST_STEP, t, f.const(F64, FIRST_STEP))
            vanished = h <= clock * (MIN_STEP_ULPS * 2.0**-52)
            state.at("code").store(f.select(vanished, f.const(I64, TOO_SMALL), f.zero(I64)))
            on.leave(vanished)
        on.t = f.select(fine, then, t)
        on.r = r + fine.cast("zext", I64)
    state.at("t0").store(on.t)
    state.at("h").store(on.h)
    f.ret(on.r)


def _factor(f: IRFunction, error: Value) -> Value:
    """The factor of the next step size: SAFETY / error^(1/8), between SHRINK and GROW; of a NaN SHRINK."""
    root = error
    for _ in range(3):
        root = f.call(F64, "llvm.sqrt.f64", root)
    raw = f.const(F64, SAFETY) / root
    grow, shrink = f.const(F64, GROW), f.const(F64, SHRINK)
    capped = f.select(raw >= grow, grow, raw)
    return f.select(capped > shrink, capped, shrink)


# -- over loops over the bodies ---------------------------------------------------------------------------------

_LOOP_PORTS = ("q", "v", "tau", "t", "to_q", "to_v")  # of the engine; the loops have no t
_TAKEN = (0, 1, 2, 4, 5)


def rolled_motion_text(target: Target) -> str:
    """The engine over a right-hand side that is a loop over the bodies, as loaded code that is called.

    Sizes are fields of the state, so one module serves all large robots.
    """
    m = Module()
    ports = tuple(Port(name, (int(name != "t"),)) for name in _LOOP_PORTS)
    low = Lowered((), ports[:4], ports[4:], {}, {}, ((), ()), (), None)
    f = m.function("one", q=PTR, v=PTR, tau=PTR, t=PTR, to_q=PTR, to_v=PTR, scratch=PTR, status=PTR)
    m.words("rolled", 3)  # as RolledCode fills it
    f.call(VOID, loaded(f, 0), loaded(f, 2), *(getattr(f, _LOOP_PORTS[k]) for k in _TAKEN), f.status)
    f.ret()
    f = m.function("drive", I32, pointers=PTR, strides=PTR, count=I64, arena=PTR, all=I64)
    taken = [_without_t(f, f.pointers, PTR), _without_t(f, f.strides, I64)]
    f.ret(f.call(I32, loaded(f, 1), loaded(f, 2), *taken, f.count, f.arena, f.all))
    add_engine(m, low, target)
    return m.text()


def _without_t(f: IRFunction, entries: Value, kind: str) -> Value:
    taken = f.alloca(kind, len(_TAKEN))
    for to, k in enumerate(_TAKEN):
        taken.at(to, kind).store(entries.at(k, kind).load(kind))
    return taken
