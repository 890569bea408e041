"""The engine of every Runge-Kutta method, as LLVM text beside the kernel of the derivative.

`i64 @march(job)` runs many steps without leaving machine code: stages, the iteration of implicit ones, a
compensated update, unit quaternions, records. The tableau is data, so one module serves every method.
"""

from __future__ import annotations

from ..emit.llvm import Target
from ..emit.llvm_math import Lanes
from ..emit.lower import Lowered
from .pursuit import pursuit

# what a job holds, eight bytes each; y, e: state and what its update rounded off; Y, K, Z: stage, rates, new rates
WORDS = (
    "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "Z_q", "Z_v", "a_q", "a_v", "b_q", "b_v", "c",
    "tau", "tau_step", "t", "t0", "h", "k", "stages", "sweeps", "count", "every", "records",
    "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions", "quaternion_count",
    "size_q", "arena", "strides", "pointers", "scratch", "status", "best", "code",
    "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
)  # fmt: skip
DOUBLES = ("t0", "h", "rtol", "atol", "t_end")
INTEGERS = (
    "tau_step", "k", "stages", "sweeps", "count", "every", "records", "to_q_step", "to_v_step", "pad_q", "pad_v",
    "n_q", "n_v", "quaternion_count", "size_q", "code", "rejected",
)  # fmt: skip
NOT_FINITE, UNSETTLED = 1, 2  # codes of a march that stopped
SETTLED = 1e-10  # of the largest rate: below it an iteration that no longer gains has converged


def march(low: Lowered, target: Target) -> str:
    """Everything the engine adds to a module."""
    l = target.of(target.lanes)
    size = 0 if low.inputs[3].size == 0 else 1
    return "".join(
        (_combine(l), _update(l), _distance(l), _NORMALISE, _COPY, _rates(size), _march(), pursuit(l, _get))
    )


def _type(word: str) -> str:
    return "double" if word in DOUBLES else "i64" if word in INTEGERS else "ptr"


def _get(word: str) -> str:
    """%word from the job."""
    at = f"  %at_{word} = getelementptr i64, ptr %job, i64 {WORDS.index(word)}\n"
    return at + f"  %{word} = load {_type(word)}, ptr %at_{word}\n"


def _sum(l: Lanes, name: str, given: str, before: str, after: str) -> str:
    """A function over vectors of the state: %sum = h sum_j row_j K_j at every place %i."""
    t = l.type
    spread = f"<{l.lanes} x i32> zeroinitializer"
    return f"""define internal void @{name}({given}, ptr %K, ptr %row, i64 %n, i64 %pad, double %h) noinline {{
entry:
  %h1 = insertelement {t} undef, double %h, i32 0
  %hv = shufflevector {t} %h1, {t} undef, {spread}
  %some = icmp sgt i64 %n, 0
  br label %outer
outer:
  %i = phi i64 [0, %entry], [%i2, %done]
{before}  br i1 %some, label %inner, label %done
inner:
  %j = phi i64 [0, %outer], [%j2, %inner]
  %acc = phi {t} [zeroinitializer, %outer], [%acc2, %inner]
  %at0 = mul i64 %j, %pad
  %at1 = add i64 %at0, %i
  %kp = getelementptr double, ptr %K, i64 %at1
  %kv = load {t}, ptr %kp, align {l.bytes}
  %cp = getelementptr double, ptr %row, i64 %j
  %c = load double, ptr %cp
  %c1 = insertelement {t} undef, double %c, i32 0
  %cv = shufflevector {t} %c1, {t} undef, {spread}
  %ck = fmul {t} %cv, %kv
  %acc2 = fadd {t} %acc, %ck
  %j2 = add i64 %j, 1
  %again = icmp slt i64 %j2, %n
  br i1 %again, label %inner, label %done
done:
  %all = phi {t} [zeroinitializer, %outer], [%acc2, %inner]
  %sum = fmul {t} %hv, %all
{after}  %i2 = add i64 %i, {l.lanes}
  %more = icmp slt i64 %i2, %pad
  br i1 %more, label %outer, label %exit
exit:
  ret void
}}
"""


def _load(l: Lanes, name: str, base: str) -> str:
    at = f"  %{name}_p = getelementptr double, ptr %{base}, i64 %i\n"
    return at + f"  %{name} = load {l.type}, ptr %{name}_p, align {l.bytes}\n"


def _combine(l: Lanes) -> str:
    """out = y + sum: the argument of a stage."""
    after = f"""  %o = fadd {l.type} %y0, %sum
  %op = getelementptr double, ptr %out, i64 %i
  store {l.type} %o, ptr %op, align {l.bytes}
"""
    return _sum(l, "combine", "ptr %out, ptr %y", _load(l, "y0", "y"), after)


def _update(l: Lanes) -> str:
    """y += sum with compensated summation (Kahan 1965): what rounding drops is added by the next step."""
    t = l.type
    after = f"""  %inc = fadd {t} %sum, %e0
  %new = fadd {t} %y0, %inc
  %moved = fsub {t} %new, %y0
  %rest = fsub {t} %inc, %moved
  store {t} %new, ptr %y0_p, align {l.bytes}
  store {t} %rest, ptr %e0_p, align {l.bytes}
"""
    return _sum(l, "update", "ptr %y, ptr %e", _load(l, "y0", "y") + _load(l, "e0", "e"), after)


def _distance(l: Lanes) -> str:
    """K = Z; best[0], best[1] grow to the largest change and the largest rate."""
    t, many = l.type, l.many("i1")
    lines = []
    for k, (name, value) in enumerate((("d", "%change"), ("s", "%z"))):
        lines.append(f"  %{name}_abs = call {t} @llvm.fabs.{l.suffix}({t} {value})\n")
        lines.append(f"  %{name}_more = fcmp ogt {t} %{name}_abs, %m{k}\n")
        lines.append(f"  %{name}_max = select {many} %{name}_more, {t} %{name}_abs, {t} %m{k}\n")
    ends = []
    for k, name in enumerate("ds"):
        ends.append(f"""  %{name}_at = getelementptr double, ptr %best, i64 {k}
  %{name}_old = load double, ptr %{name}_at
  %{name}_top = call double @llvm.vector.reduce.fmax.{l.suffix}({t} %{name}_max)
  %{name}_up = fcmp ogt double %{name}_top, %{name}_old
  %{name}_new = select i1 %{name}_up, double %{name}_top, double %{name}_old
  store double %{name}_new, ptr %{name}_at
""")
    return f"""declare double @llvm.vector.reduce.fmax.{l.suffix}({t})
define internal void @distance(ptr %K, ptr %Z, i64 %pad, ptr %best) noinline {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  %m0 = phi {t} [zeroinitializer, %entry], [%d_max, %loop]
  %m1 = phi {t} [zeroinitializer, %entry], [%s_max, %loop]
{_load(l, "k", "K")}{_load(l, "z", "Z")}  %change = fsub {t} %z, %k
{"".join(lines)}  store {t} %z, ptr %k_p, align {l.bytes}
  %i2 = add i64 %i, {l.lanes}
  %more = icmp slt i64 %i2, %pad
  br i1 %more, label %loop, label %exit
exit:
{"".join(ends)}  ret void
}}
"""


_NORMALISE = """define internal void @normalise(ptr %q, i64 %rows, i64 %size, ptr %starts, i64 %n) noinline {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %row, label %exit
row:
  %r = phi i64 [0, %entry], [%r2, %next]
  %base = mul i64 %r, %size
  br label %one
one:
  %k = phi i64 [0, %row], [%k2, %one]
  %sp = getelementptr i64, ptr %starts, i64 %k
  %s = load i64, ptr %sp
  %at = add i64 %base, %s
  %p = getelementptr double, ptr %q, i64 %at
  %x = load <4 x double>, ptr %p, align 8
  %x2 = fmul <4 x double> %x, %x
  %n2 = call reassoc double @llvm.vector.reduce.fadd.v4f64(double 0.0, <4 x double> %x2)
  %len = call double @llvm.sqrt.f64(double %n2)
  %l1 = insertelement <4 x double> undef, double %len, i32 0
  %lv = shufflevector <4 x double> %l1, <4 x double> undef, <4 x i32> zeroinitializer
  %u = fdiv <4 x double> %x, %lv
  store <4 x double> %u, ptr %p, align 8
  %k2 = add i64 %k, 1
  %again = icmp slt i64 %k2, %n
  br i1 %again, label %one, label %next
next:
  %r2 = add i64 %r, 1
  %more = icmp slt i64 %r2, %rows
  br i1 %more, label %row, label %exit
exit:
  ret void
}
declare double @llvm.vector.reduce.fadd.v4f64(double, <4 x double>)
"""

_COPY = """define internal void @copy(ptr %to, ptr %from, i64 %n) noinline {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  %a = getelementptr double, ptr %from, i64 %i
  %b = getelementptr double, ptr %to, i64 %i
  %x = load double, ptr %a
  store double %x, ptr %b
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %n
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


def _rates(timed: int) -> str:
    """The derivative of one sample by the scalar kernel, of several by the driver; true if a check failed."""
    words = "".join(_get(w) for w in ("tau", "t", "arena", "strides", "pointers", "scratch", "status", "count"))
    names = ("Y_q", "Y_v", "tau", "t", "to_q", "to_v")
    slots = "".join(
        f"  %slot{k} = getelementptr ptr, ptr %pointers, i64 {k}\n  store ptr %{n}, ptr %slot{k}\n"
        for k, n in enumerate(names)
    )
    clock = "  store double %now, ptr %t\n" if timed else ""
    given = ", ".join(f"ptr %{n}" for n in (*names, "scratch", "status"))
    taken = "ptr %job, double %now, ptr %Y_q, ptr %Y_v, ptr %to_q, ptr %to_v"
    return f"""define internal i1 @rates({taken}) noinline {{
{words}{clock}  %alone = icmp eq i64 %count, 1
  br i1 %alone, label %single, label %batch
single:
  store double 0.0, ptr %status
  call void @one({given})
  %flag = load double, ptr %status
  %nan = fcmp uno double %flag, %flag
  ret i1 %nan
batch:
{slots}  %failed = call i32 @drive(ptr %pointers, ptr %strides, i64 %count, ptr %arena)
  %any = icmp ne i32 %failed, 0
  ret i1 %any
}}
"""


def _march() -> str:
    head = "".join(_get(w) for w in WORDS if w not in ("arena", "strides", "pointers", "scratch", "status", "t"))
    return "define i64 @march(ptr %job) {\nentry:\n" + head + _MARCH.replace("SETTLED", f"{SETTLED:.1e}")


_MARCH = """  %rv = alloca i64
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
  %row = mul i64 %s, %stages
  %row_q = getelementptr double, ptr %a_q, i64 %row
  %row_v = getelementptr double, ptr %a_v, i64 %row
  call void @combine(ptr %Y_q, ptr %q, ptr %K_q, ptr %row_q, i64 %upto, i64 %pad_q, double %h)
  call void @combine(ptr %Y_v, ptr %v, ptr %K_v, ptr %row_v, i64 %upto, i64 %pad_v, double %h)
  %cp = getelementptr double, ptr %c, i64 %s
  %cs = load double, ptr %cp
  %ahead = fmul double %cs, %h
  %then = fadd double %now, %ahead
  %kq_at = mul i64 %s, %pad_q
  %kv_at = mul i64 %s, %pad_v
  %kq = getelementptr double, ptr %K_q, i64 %kq_at
  %kv = getelementptr double, ptr %K_v, i64 %kv_at
  %new_q = select i1 %explicit, ptr %kq, ptr %Z_q
  %new_v = select i1 %explicit, ptr %kv, ptr %Z_v
  %bad = call i1 @rates(ptr %job, double %then, ptr %Y_q, ptr %Y_v, ptr %new_q, ptr %new_v)
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
  %limit = fmul double %size, SETTLED
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
  br i1 %late, label %unsettled, label %sweep
advance:
  call void @update(ptr %q, ptr %e_q, ptr %K_q, ptr %b_q, i64 %stages, i64 %pad_q, double %h)
  call void @update(ptr %v, ptr %e_v, ptr %K_v, ptr %b_v, i64 %stages, i64 %pad_v, double %h)
  call void @normalise(ptr %q, i64 %count, i64 %size_q, ptr %quaternions, i64 %quaternion_count)
  %k_next = add i64 %k_now, 1
  store i64 %k_next, ptr %at_k
  %tau_now = load ptr, ptr %at_tau
  %tau_next = getelementptr i8, ptr %tau_now, i64 %tau_step
  store ptr %tau_next, ptr %at_tau
  %e2 = add i64 %e, 1
  store i64 %e2, ptr %ev
  br label %step
keep:
  %rq_at = mul i64 %r, %to_q_step
  %rv_at = mul i64 %r, %to_v_step
  %rq = getelementptr i8, ptr %to_q, i64 %rq_at
  %rvp = getelementptr i8, ptr %to_v, i64 %rv_at
  call void @copy(ptr %rq, ptr %q, i64 %n_q)
  call void @copy(ptr %rvp, ptr %v, i64 %n_v)
  %r2 = add i64 %r, 1
  store i64 %r2, ptr %rv
  br label %record
fail:
  store i64 1, ptr %at_code
  ret i64 %r
unsettled:
  store i64 2, ptr %at_code
  ret i64 %r
end:
  ret i64 %r
}
"""

__all__ = ["DOUBLES", "INTEGERS", "NOT_FINITE", "UNSETTLED", "WORDS", "march"]
