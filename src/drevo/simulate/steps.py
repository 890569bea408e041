"""What every integration is made of, in machine code over the words of a job: rates, stages, the end of a step,
records, and the return of a state to its constraints.
"""

from __future__ import annotations

from ..codegen.emit.ir import F64, I1, I32, I64, PTR, VOID, Function, Module, Value
from ..codegen.emit.llvm_math import Lanes
from .words import DEPENDENT, NOT_FINITE, OPEN, Words

NEWTON = 12  # steps of Newton's iteration at most; each doubles the digits
PORTS = (("Y_q", "Y_v", "tau", "t"), ("given",), ("to_q", "to_v"), ("P_q", "P_v", "gap", "watch"))


def add_steps(m: Module, l: Lanes, timed: bool, constrained: bool) -> None:
    """The functions. timed: the derivative reads the time; constrained: it has constraints."""
    _distance(m, l)
    _normalise(m)
    _copy(m)
    _rates(m, timed, constrained)
    _stage(m)
    _finish_step(m)
    _record(m)
    if constrained:
        _largest(m)
    _project(m, constrained)


def _larger(f: Function, x: Value, y: Value) -> Value:
    return f.select(x > y, x, y)


def _distance(m: Module, l: Lanes) -> None:
    """K = Z; best[0], best[1] grow to the largest change and the largest rate."""
    f = m.function("distance", K=PTR, Z=PTR, pad=I64, best=PTR)
    t, size = l.type, f"llvm.fabs.{l.suffix}"
    with f.loop(f.pad, step=l.lanes, some=True, change=f.zero(t), rate=f.zero(t)) as s:
        at_k, z = f.K.at(s.i), f.Z.at(s.i).load(t, l.bytes)
        s.change = _larger(f, f.call(t, size, z - at_k.load(t, l.bytes)), s.change)
        s.rate = _larger(f, f.call(t, size, z), s.rate)
        at_k.store(z, l.bytes)
    for k, x in enumerate((s.change, s.rate)):
        place = f.best.at(k)
        place.store(_larger(f, f.call(F64, f"llvm.vector.reduce.fmax.{l.suffix}", x), place.load()))
    f.ret()


def _normalise(m: Module) -> None:
    """The n quaternions of each row of q, which begin at `starts`, get unit length."""
    f = m.function("normalise", q=PTR, rows=I64, size=I64, starts=PTR, n=I64)
    four, reduce = "<4 x double>", "llvm.vector.reduce.fadd.v4f64"
    with f.loop(f.rows) as row, f.loop(f.n) as k:
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
    f = m.function("rates", I1, job=PTR, now=F64, Y_q=PTR, Y_v=PTR, to_q=PTR, to_v=PTR)
    job = Words(f)
    names = [n for k, part in enumerate(PORTS) if constrained or k % 2 == 0 for n in part]
    ports = [f.arguments[n] if n in f.arguments else getattr(job, n) for n in names]
    if timed:
        job.t.store(f.now)
    with f.when(job.count.equals(1)):
        job.status.store(f.zero(F64))
        f.call(VOID, "one", *ports, job.scratch, job.status)
        f.ret(job.status.load().is_nan())
    for k, x in enumerate(ports):
        job.pointers.at(k, PTR).store(x)
    f.ret(f.call(I32, "drive", job.pointers, job.strides, job.count, job.arena, job.count).differs(0))


def _stage(m: Module) -> None:
    """The rates of stage s, made of the first `upto` rates; true if a check failed."""
    f = m.function("stage", I1, job=PTR, s=I64, upto=I64, now=F64, h=F64, to_q=PTR, to_v=PTR)
    job = Words(f)
    row = f.s * job.stages
    f.call(VOID, "combine", job.Y_q, job.q, job.K_q, job.a_q.at(row), f.upto, job.pad_q, f.h)
    f.call(VOID, "combine", job.Y_v, job.v, job.K_v, job.a_v.at(row), f.upto, job.pad_v, f.h)
    then = f.now + job.c.at(f.s).load() * f.h
    f.ret(f.call(I1, "rates", f.job, then, job.Y_q, job.Y_v, f.to_q, f.to_v))


def _finish_step(m: Module) -> None:
    """The state at the end of a step, at the time `then`; 0, or why the job stops there."""
    f = m.function("finish_step", I64, job=PTR, h=F64, then=F64)
    job = Words(f)
    f.call(VOID, "update", job.q, job.e_q, job.K_q, job.b_q, job.stages, job.pad_q, f.h)
    f.call(VOID, "update", job.v, job.e_v, job.K_v, job.b_v, job.stages, job.pad_v, f.h)
    _unit_quaternions(f, job)
    f.ret(f.call(I64, "project", f.job, f.then))


def _unit_quaternions(f: Function, job: Words) -> None:
    f.call(VOID, "normalise", job.q, job.count, job.size_q, job.quaternions, job.quaternion_count)


def _record(m: Module) -> None:
    """The state as record r."""
    f = m.function("record", job=PTR, r=I64)
    job = Words(f)
    f.call(VOID, "copy", job.to_q.at(f.r * job.to_q_step, "i8"), job.q, job.n_q)
    f.call(VOID, "copy", job.to_v.at(f.r * job.to_v_step, "i8"), job.v, job.n_v)
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
    f = m.function("project", I64, job=PTR, now=F64)
    if constrained:
        job = Words(f)
        _move(f, job, "q", "Y_q")
        _move(f, job, "v", "Y_v")
        with f.loop(NEWTON, some=True):
            with f.when(f.call(I1, "rates", f.job, f.now, job.q, job.v, job.Z_q, job.Z_v)):
                _give_up(f, job, NOT_FINITE)
            gaps = f.call(F64, "largest", job.gap, job.n_gap)
            _move(f, job, "P_q", "q")
            _move(f, job, "P_v", "v")
            _unit_quaternions(f, job)
            with f.when(gaps <= 1.0):
                with f.when(f.call(F64, "largest", job.watch, job.n_watch) <= 1.0):
                    f.ret(f.zero(I64))
                _give_up(f, job, DEPENDENT)
        _give_up(f, job, OPEN)
    else:
        f.ret(f.zero(I64))


def _move(f: Function, job: Words, source: str, to: str) -> None:
    f.call(VOID, "copy", getattr(job, to), getattr(job, source), getattr(job, f"n_{source[-1]}"))


def _give_up(f: Function, job: Words, code: int) -> None:
    _move(f, job, "Y_q", "q")
    _move(f, job, "Y_v", "v")
    f.ret(f.const(I64, code))


__all__ = ["PORTS", "add_steps"]
