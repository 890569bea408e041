"""Steps of adaptive length in machine code: the error estimate and the choice of the next step, as LLVM text.

`i64 @pursue(job)` goes on until the end or until all records, one an accepted step, are full.
"""

from __future__ import annotations

from ..emit.llvm_math import Lanes
from .words import TOO_SMALL, get

SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0
FIRST = 1e-3  # s: the first guess of a step
TINY = 64.0  # units of the last place of t: below it a step is none
ORDER = 8  # the exponent 1/8 is three square roots; methods of other orders go on in Python


def pursuit(l: Lanes) -> str:
    """The function."""
    numbers = {"SAFETY": SAFETY, "SHRINK": SHRINK, "GROW": GROW, "FIRST": FIRST, "EDGE": TINY * 2.0**-52}
    text = _PURSUE
    for name, x in numbers.items():
        text = text.replace(f"<{name}>", l.literal(x))
    return text


_PURSUE = f"""define i64 @pursue(ptr %job) {{
entry:
{get("q", "v", "K_q", "K_v", "b_q", "b_v", "t0", "h", "stages", "records", "pad_q", "pad_v", "n_q", "n_v")}\
{get("best", "code", "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected")}\
  %tv = alloca double
  %hv = alloca double
  %rv = alloca i64
  %sv = alloca i64
  %best1 = getelementptr double, ptr %best, i64 1
  %n_all = add i64 %n_q, %n_v
  %n_real = sitofp i64 %n_all to double
  store double %t0, ptr %tv
  store double %h, ptr %hv
  store i64 0, ptr %rv
  br label %next
next:
  %r = load i64, ptr %rv
  %t = load double, ptr %tv
  %before_end = fcmp olt double %t, %t_end
  %room = icmp slt i64 %r, %records
  %go = and i1 %before_end, %room
  br i1 %go, label %choose, label %leave
choose:
  %wanted = load double, ptr %hv
  %rest = fsub double %t_end, %t
  %half = fmul double %rest, 0.5
  %near = fcmp ogt double %wanted, %half
  %halved = select i1 %near, double %half, double %wanted
  %whole = fcmp oge double %wanted, %rest
  %hs = select i1 %whole, double %rest, double %halved
  store i64 0, ptr %sv
  br label %stage
stage:
  %s = load i64, ptr %sv
  %more_stages = icmp slt i64 %s, %stages
  br i1 %more_stages, label %work, label %judge
work:
  %kq_at = mul i64 %s, %pad_q
  %kv_at = mul i64 %s, %pad_v
  %kq = getelementptr double, ptr %K_q, i64 %kq_at
  %kv = getelementptr double, ptr %K_v, i64 %kv_at
  %bad = call i1 @stage(ptr %job, i64 %s, i64 %s, double %t, double %hs, ptr %kq, ptr %kv)
  %s2 = add i64 %s, 1
  store i64 %s2, ptr %sv
  br i1 %bad, label %refuse, label %stage
judge:
  store double 0.0, ptr %best
  store double 0.0, ptr %best1
  call void @estimate(ptr %best, double %rtol, double %atol, ptr %q, ptr %K_q, ptr %b_q, ptr %e_5, ptr %e_3,
    i64 %stages, i64 %pad_q, double %hs)
  call void @estimate(ptr %best, double %rtol, double %atol, ptr %v, ptr %K_v, ptr %b_v, ptr %e_5, ptr %e_3,
    i64 %stages, i64 %pad_v, double %hs)
  %fifth = load double, ptr %best
  %third = load double, ptr %best1
  %tenth = fmul double %third, 0x3F847AE147AE147B
  %both = fadd double %fifth, %tenth
  %scaled = fmul double %both, %n_real
  %below = call double @llvm.sqrt.f64(double %scaled)
  %above = fmul double %hs, %fifth
  %ratio = fdiv double %above, %below
  %none = fcmp oeq double %below, 0.0
  %error = select i1 %none, double 0.0, double %ratio
  %root2 = call double @llvm.sqrt.f64(double %error)
  %root4 = call double @llvm.sqrt.f64(double %root2)
  %root8 = call double @llvm.sqrt.f64(double %root4)
  %raw = fdiv double <SAFETY>, %root8
  %grows = fcmp ult double %raw, <GROW>
  %capped = select i1 %grows, double %raw, double <GROW>
  %shrinks = fcmp ogt double %capped, <SHRINK>
  %factor = select i1 %shrinks, double %capped, double <SHRINK>
  %h_next = fmul double %hs, %factor
  %fine = fcmp ole double %error, 1.0
  br i1 %fine, label %accept, label %reject
accept:
  %moved = fadd double %t, %hs
  %t_next = select i1 %whole, double %t_end, double %moved
  %lost = call i64 @land(ptr %job, double %hs, double %t_next)
  %held = icmp eq i64 %lost, 0
  br i1 %held, label %keep, label %fail
keep:
  store double %t_next, ptr %tv
  store double %h_next, ptr %hv
  %to = getelementptr double, ptr %to_t, i64 %r
  store double %t_next, ptr %to
  call void @keep(ptr %job, i64 %r)
  %r2 = add i64 %r, 1
  store i64 %r2, ptr %rv
  br label %next
refuse:
  %h_bad = fmul double %hs, <SHRINK>
  br label %reject
reject:
  %h_less = phi double [%h_bad, %refuse], [%h_next, %judge]
  store double %h_less, ptr %hv
  %refused = load i64, ptr %at_rejected
  %refused2 = add i64 %refused, 1
  store i64 %refused2, ptr %at_rejected
  %late = fcmp ogt double %t, <FIRST>
  %clock = select i1 %late, double %t, double <FIRST>
  %edge = fmul double %clock, <EDGE>
  %vanished = fcmp ole double %hs, %edge
  br i1 %vanished, label %fail, label %next
fail:
  %why = phi i64 [%lost, %accept], [{TOO_SMALL}, %reject]
  store i64 %why, ptr %at_code
  br label %leave
leave:
  %t_last = load double, ptr %tv
  %h_last = load double, ptr %hv
  store double %t_last, ptr %at_t0
  store double %h_last, ptr %at_h
  %made = load i64, ptr %rv
  ret i64 %made
}}
"""

__all__ = ["FIRST", "GROW", "ORDER", "SAFETY", "SHRINK", "TINY", "pursuit"]
