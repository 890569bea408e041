"""Steps of adaptive length in machine code: the error estimate and the choice of the next step, as LLVM text.

`i64 @pursue(job)` goes on until the end or until all records, one an accepted step, are full.
"""

from __future__ import annotations

from collections.abc import Callable

from ..emit.llvm_math import Lanes

TOO_SMALL = 3  # the code of a pursuit whose step shrank to nothing
SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0
FIRST = 1e-3  # s: the first guess of a step
TINY = 64.0  # units of the last place of t: below it a step is none
ORDER = 8  # the exponent 1/8 is three square roots; methods of other orders go on in Python


def pursuit(l: Lanes, get: Callable[[str], str]) -> str:
    """The functions; get: the text that loads a word of the job."""
    words = (
        "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "a_q", "a_v", "b_q", "b_v", "c", "t0", "h", "stages",
        "records", "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions",
        "quaternion_count", "size_q", "best", "code", "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
    )  # fmt: skip
    head = "define i64 @pursue(ptr %job) {\nentry:\n" + "".join(get(w) for w in words)
    numbers = {"SAFETY": SAFETY, "SHRINK": SHRINK, "GROW": GROW, "FIRST": FIRST, "EDGE": TINY * 2.0**-52}
    text = _PURSUE
    for name, x in numbers.items():
        text = text.replace(f"<{name}>", l.literal(x))
    return _estimate(l) + head + text


def _estimate(l: Lanes) -> str:
    """Adds the sums of squares of two error estimates over their tolerance to best[0] and best[1]."""
    t, spread = l.type, f"<{l.lanes} x i32> zeroinitializer"
    # LLVM refuses a second declaration; the engine declares the sum of four for its quaternions
    declare = "" if l.lanes == 4 else f"declare double @llvm.vector.reduce.fadd.{l.suffix}(double, {t})\n"

    def splat(name: str) -> str:
        one = f"  %{name}_one = insertelement {t} undef, double %{name}, i32 0\n"
        return one + f"  %{name}_v = shufflevector {t} %{name}_one, {t} undef, {spread}\n"

    def term(row: str) -> str:
        return f"""  %{row}_p = getelementptr double, ptr %{row}, i64 %j
  %{row}_c = load double, ptr %{row}_p
{splat(f"{row}_c")}  %{row}_x = fmul {t} %{row}_c_v, %k
  %{row}_next = fadd {t} %{row}_sum, %{row}_x
"""

    rows = ("b", "e5", "e3")
    zero = "zeroinitializer"
    phis = "".join(f"  %{r}_sum = phi {t} [{zero}, %outer], [%{r}_next, %inner]\n" for r in rows)
    ends = "".join(
        f"""  %at{k} = getelementptr double, ptr %best, i64 {k}
  %old{k} = load double, ptr %at{k}
  %new{k} = call reassoc double @llvm.vector.reduce.fadd.{l.suffix}(double %old{k}, {t} %{r}_total)
  store double %new{k}, ptr %at{k}
"""
        for k, r in enumerate(("e5", "e3"))
    )
    squares = "".join(
        f"""  %{r}_ratio = fdiv {t} %{r}_next, %scale
  %{r}_square = fmul {t} %{r}_ratio, %{r}_ratio
  %{r}_total = fadd {t} %{r}_before, %{r}_square
"""
        for r in ("e5", "e3")
    )
    given = "ptr %y, ptr %K, ptr %b, ptr %e5, ptr %e3, i64 %n, i64 %pad, double %h, double %rtol, double %atol"
    return f"""{declare}define internal void @estimate({given}, ptr %best) noinline {{
entry:
{splat("h")}{splat("rtol")}{splat("atol")}  br label %outer
outer:
  %i = phi i64 [0, %entry], [%i2, %done]
  %e5_before = phi {t} [{zero}, %entry], [%e5_total, %done]
  %e3_before = phi {t} [{zero}, %entry], [%e3_total, %done]
  %yp = getelementptr double, ptr %y, i64 %i
  %y0 = load {t}, ptr %yp, align {l.bytes}
  br label %inner
inner:
  %j = phi i64 [0, %outer], [%j2, %inner]
{phis}  %row = mul i64 %j, %pad
  %at = add i64 %row, %i
  %kp = getelementptr double, ptr %K, i64 %at
  %k = load {t}, ptr %kp, align {l.bytes}
{"".join(term(r) for r in rows)}  %j2 = add i64 %j, 1
  %again = icmp slt i64 %j2, %n
  br i1 %again, label %inner, label %done
done:
  %step = fmul {t} %h_v, %b_next
  %y1 = fadd {t} %y0, %step
  %size0 = call {t} @llvm.fabs.{l.suffix}({t} %y0)
  %size1 = call {t} @llvm.fabs.{l.suffix}({t} %y1)
  %larger = fcmp ogt {t} %size1, %size0
  %size = select {l.many("i1")} %larger, {t} %size1, {t} %size0
  %relative = fmul {t} %rtol_v, %size
  %scale = fadd {t} %atol_v, %relative
{squares}  %i2 = add i64 %i, {l.lanes}
  %more = icmp slt i64 %i2, %pad
  br i1 %more, label %outer, label %exit
exit:
{ends}  ret void
}}
"""


_PURSUE = """  %tv = alloca double
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
  %row = mul i64 %s, %stages
  %row_q = getelementptr double, ptr %a_q, i64 %row
  %row_v = getelementptr double, ptr %a_v, i64 %row
  call void @combine(ptr %Y_q, ptr %q, ptr %K_q, ptr %row_q, i64 %s, i64 %pad_q, double %hs)
  call void @combine(ptr %Y_v, ptr %v, ptr %K_v, ptr %row_v, i64 %s, i64 %pad_v, double %hs)
  %cp = getelementptr double, ptr %c, i64 %s
  %cs = load double, ptr %cp
  %ahead = fmul double %cs, %hs
  %then = fadd double %t, %ahead
  %kq_at = mul i64 %s, %pad_q
  %kv_at = mul i64 %s, %pad_v
  %kq = getelementptr double, ptr %K_q, i64 %kq_at
  %kv = getelementptr double, ptr %K_v, i64 %kv_at
  %bad = call i1 @rates(ptr %job, double %then, ptr %Y_q, ptr %Y_v, ptr %kq, ptr %kv)
  %s2 = add i64 %s, 1
  store i64 %s2, ptr %sv
  br i1 %bad, label %refuse, label %stage
judge:
  store double 0.0, ptr %best
  store double 0.0, ptr %best1
  call void @estimate(ptr %q, ptr %K_q, ptr %b_q, ptr %e_5, ptr %e_3, i64 %stages, i64 %pad_q, double %hs,
    double %rtol, double %atol, ptr %best)
  call void @estimate(ptr %v, ptr %K_v, ptr %b_v, ptr %e_5, ptr %e_3, i64 %stages, i64 %pad_v, double %hs,
    double %rtol, double %atol, ptr %best)
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
  call void @update(ptr %q, ptr %e_q, ptr %K_q, ptr %b_q, i64 %stages, i64 %pad_q, double %hs)
  call void @update(ptr %v, ptr %e_v, ptr %K_v, ptr %b_v, i64 %stages, i64 %pad_v, double %hs)
  call void @normalise(ptr %q, i64 1, i64 %size_q, ptr %quaternions, i64 %quaternion_count)
  %moved = fadd double %t, %hs
  %t_next = select i1 %whole, double %t_end, double %moved
  store double %t_next, ptr %tv
  store double %h_next, ptr %hv
  %to = getelementptr double, ptr %to_t, i64 %r
  store double %t_next, ptr %to
  %rq_at = mul i64 %r, %to_q_step
  %rv_at = mul i64 %r, %to_v_step
  %rq = getelementptr i8, ptr %to_q, i64 %rq_at
  %rvp = getelementptr i8, ptr %to_v, i64 %rv_at
  call void @copy(ptr %rq, ptr %q, i64 %n_q)
  call void @copy(ptr %rvp, ptr %v, i64 %n_v)
  %r2 = add i64 %r, 1
  store i64 %r2, ptr %rv
  br label %next
refuse:
  %h_bad = fmul double %hs, <SHRINK>
  br label %reject
reject:
  %h_less = phi double [%h_bad, %refuse], [%h_next, %judge]
  store double %h_less, ptr %hv
  %lost = load i64, ptr %at_rejected
  %lost2 = add i64 %lost, 1
  store i64 %lost2, ptr %at_rejected
  %late = fcmp ogt double %t, <FIRST>
  %clock = select i1 %late, double %t, double <FIRST>
  %edge = fmul double %clock, <EDGE>
  %vanished = fcmp ole double %hs, %edge
  br i1 %vanished, label %fail, label %next
fail:
  store i64 3, ptr %at_code
  br label %leave
leave:
  %t_last = load double, ptr %tv
  %h_last = load double, ptr %hv
  store double %t_last, ptr %at_t0
  store double %h_last, ptr %at_h
  %made = load i64, ptr %rv
  ret i64 %made
}
"""

__all__ = ["FIRST", "GROW", "ORDER", "SAFETY", "SHRINK", "TINY", "TOO_SMALL", "pursuit"]
