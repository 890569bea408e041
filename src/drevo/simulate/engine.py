"""The engine of every Runge-Kutta method, as LLVM text beside the kernel of the derivative.

`i64 @march(job)` runs many steps without leaving machine code: stages, the iteration of implicit ones, a
compensated update, unit quaternions, constraints, records. The tableau is data, so one module serves every method.
"""

from __future__ import annotations

from ..emit.llvm_target import Target
from ..emit.lower import Lowered
from .pieces import pieces
from .pursuit import pursuit
from .sums import sums
from .words import UNSETTLED, get

SETTLED = 1e-10  # of the largest rate: below it an iteration that no longer gains has converged


def machine(low: Lowered, target: Target) -> str:
    """Everything the engine adds to a module."""
    l = target.of(target.lanes)
    timed = low.inputs[3].size > 0
    return "".join((sums(l), pieces(l, timed, held=len(low.inputs) > 4), _MARCH, pursuit(l)))


_MARCH = f"""define i64 @march(ptr %job) {{
entry:
{get("K_q", "K_v", "Z_q", "Z_v", "tau", "tau_step", "t0", "h", "k", "stages", "sweeps", "every", "records")}\
{get("pad_q", "pad_v", "best", "code")}\
  %rv = alloca i64
  %ev = alloca i64
  %sv = alloca i64
  %wv = alloca i64
  %last = alloca double
  %best1 = getelementptr double, ptr %best, i64 1
  %explicit = icmp eq i64 %sweeps, 0
  store i64 0, ptr %rv
  br label %record
record:
  %r = load i64, ptr %rv
  %more_records = icmp slt i64 %r, %records
  store i64 0, ptr %ev
  br i1 %more_records, label %step, label %end
step:
  %e = load i64, ptr %ev
  %more_steps = icmp slt i64 %e, %every
  br i1 %more_steps, label %begin, label %keep
begin:
  %k_now = load i64, ptr %at_k
  %k_real = sitofp i64 %k_now to double
  %elapsed = fmul double %k_real, %h
  %now = fadd double %t0, %elapsed
  store i64 0, ptr %wv
  store double 0.0, ptr %last
  br label %sweep
sweep:
  store double 0.0, ptr %best
  store double 0.0, ptr %best1
  store i64 0, ptr %sv
  br label %stage
stage:
  %s = load i64, ptr %sv
  %more_stages = icmp slt i64 %s, %stages
  br i1 %more_stages, label %work, label %swept
work:
  %upto = select i1 %explicit, i64 %s, i64 %stages
  %kq_at = mul i64 %s, %pad_q
  %kv_at = mul i64 %s, %pad_v
  %kq = getelementptr double, ptr %K_q, i64 %kq_at
  %kv = getelementptr double, ptr %K_v, i64 %kv_at
  %new_q = select i1 %explicit, ptr %kq, ptr %Z_q
  %new_v = select i1 %explicit, ptr %kv, ptr %Z_v
  %bad = call i1 @stage(ptr %job, i64 %s, i64 %upto, double %now, double %h, ptr %new_q, ptr %new_v)
  br i1 %bad, label %fail, label %good
good:
  %s2 = add i64 %s, 1
  store i64 %s2, ptr %sv
  br i1 %explicit, label %stage, label %compare
compare:
  call void @distance(ptr %kq, ptr %Z_q, i64 %pad_q, ptr %best)
  call void @distance(ptr %kv, ptr %Z_v, i64 %pad_v, ptr %best)
  br label %stage
swept:
  br i1 %explicit, label %advance, label %judge
judge:
  %w0 = load i64, ptr %wv
  %w = add i64 %w0, 1
  store i64 %w, ptr %wv
  %delta = load double, ptr %best
  %size = load double, ptr %best1
  %before = load double, ptr %last
  store double %delta, ptr %last
  %limit = fmul double %size, {SETTLED:.1e}
  %small = fcmp ole double %delta, %limit
  %stuck = fcmp oge double %delta, %before
  %still = fcmp oeq double %delta, 0.0
  %late = icmp sge i64 %w, %sweeps
  %enough = icmp sge i64 %w, 3
  %ended = or i1 %stuck, %late
  %stop0 = and i1 %ended, %small
  %stop1 = and i1 %stop0, %enough
  %stop = or i1 %stop1, %still
  br i1 %stop, label %advance, label %unsure
unsure:
  br i1 %late, label %fail, label %sweep
advance:
  %k_next = add i64 %k_now, 1
  %k_real2 = sitofp i64 %k_next to double
  %elapsed2 = fmul double %k_real2, %h
  %then = fadd double %t0, %elapsed2
  %lost = call i64 @land(ptr %job, double %h, double %then)
  store i64 %k_next, ptr %at_k
  %tau_now = load ptr, ptr %at_tau
  %tau_next = getelementptr i8, ptr %tau_now, i64 %tau_step
  store ptr %tau_next, ptr %at_tau
  %e2 = add i64 %e, 1
  store i64 %e2, ptr %ev
  %held = icmp eq i64 %lost, 0
  br i1 %held, label %step, label %fail
keep:
  call void @keep(ptr %job, i64 %r)
  %r2 = add i64 %r, 1
  store i64 %r2, ptr %rv
  br label %record
fail:
  %why = phi i64 [1, %work], [{UNSETTLED}, %unsure], [%lost, %advance]
  store i64 %why, ptr %at_code
  ret i64 %r
end:
  ret i64 %r
}}
"""

__all__ = ["SETTLED", "machine"]
