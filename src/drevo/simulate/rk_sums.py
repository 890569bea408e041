"""Weighted sums over the stages of a Runge-Kutta method, in machine code: vectors of the state, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.llvm.ir import F64, I64, PTR, IRFunction, Module, Value
from ..codegen.llvm.math import Lanes


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
