"""What every march of the engine is made of, as LLVM text over the words of a job: rates, stages, landings,
records, and the return of a state to its constraints.
"""

from __future__ import annotations

from ..emit.llvm_math import Lanes
from .sums import load
from .words import DEPENDENT, NOT_FINITE, OPEN, get

SWEEPS = 12  # of Newton's iteration, which doubles the digits each time
PORTS = (("Y_q", "Y_v", "tau", "t"), ("given",), ("to_q", "to_v"), ("P_q", "P_v", "gap", "watch"))


def pieces(l: Lanes, timed: bool, held: bool) -> str:
    """The functions. timed: the derivative reads the time; held: it has constraints."""
    hold = _LARGEST + _hold() if held else _FREE
    return "".join((_distance(l), _NORMALISE, _COPY, _rates(timed, held), _STAGE, _LAND, _KEEP, hold))


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
{load(l, "k", "K")}{load(l, "z", "Z")}  %change = fsub {t} %z, %k
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


def _rates(timed: bool, held: bool) -> str:
    """The derivative of one sample by the scalar kernel, of several by the driver; true if a check failed."""
    own = [w for k in (1, 3) for w in PORTS[k]] if held else []
    words = get("tau", "t", "arena", "strides", "pointers", "scratch", "status", "count", *own)
    names = [n for k, part in enumerate(PORTS) if held or k % 2 == 0 for n in part]
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
{slots}  %failed = call i32 @drive(ptr %pointers, ptr %strides, i64 %count, ptr %arena, i64 %count)
  %any = icmp ne i32 %failed, 0
  ret i1 %any
}}
"""


_STAGE = f"""; the rates of stage s, made of the first `upto` rates; true if a check failed
define internal i1 @stage(ptr %job, i64 %s, i64 %upto, double %now, double %h, ptr %to_q, ptr %to_v) {{
{get("Y_q", "Y_v", "q", "v", "K_q", "K_v", "a_q", "a_v", "c", "stages", "pad_q", "pad_v")}\
  %row = mul i64 %s, %stages
  %row_q = getelementptr double, ptr %a_q, i64 %row
  %row_v = getelementptr double, ptr %a_v, i64 %row
  call void @combine(ptr %Y_q, ptr %q, ptr %K_q, ptr %row_q, i64 %upto, i64 %pad_q, double %h)
  call void @combine(ptr %Y_v, ptr %v, ptr %K_v, ptr %row_v, i64 %upto, i64 %pad_v, double %h)
  %cp = getelementptr double, ptr %c, i64 %s
  %cs = load double, ptr %cp
  %ahead = fmul double %cs, %h
  %then = fadd double %now, %ahead
  %bad = call i1 @rates(ptr %job, double %then, ptr %Y_q, ptr %Y_v, ptr %to_q, ptr %to_v)
  ret i1 %bad
}}
"""

_LAND = f"""; the end of a step at the time `then`; 0, or why the job stops there
define internal i64 @land(ptr %job, double %h, double %then) {{
{get("q", "v", "e_q", "e_v", "K_q", "K_v", "b_q", "b_v", "stages", "pad_q", "pad_v", "count", "size_q")}\
{get("quaternions", "quaternion_count")}\
  call void @update(ptr %q, ptr %e_q, ptr %K_q, ptr %b_q, i64 %stages, i64 %pad_q, double %h)
  call void @update(ptr %v, ptr %e_v, ptr %K_v, ptr %b_v, i64 %stages, i64 %pad_v, double %h)
  call void @normalise(ptr %q, i64 %count, i64 %size_q, ptr %quaternions, i64 %quaternion_count)
  %code = call i64 @hold(ptr %job, double %then)
  ret i64 %code
}}
"""

_KEEP = f"""; the state as record r
define internal void @keep(ptr %job, i64 %r) {{
{get("q", "v", "to_q", "to_v", "to_q_step", "to_v_step", "n_q", "n_v")}\
  %rq_at = mul i64 %r, %to_q_step
  %rv_at = mul i64 %r, %to_v_step
  %rq = getelementptr i8, ptr %to_q, i64 %rq_at
  %rv = getelementptr i8, ptr %to_v, i64 %rv_at
  call void @copy(ptr %rq, ptr %q, i64 %n_q)
  call void @copy(ptr %rv, ptr %v, i64 %n_v)
  ret void
}}
"""

_FREE = """define internal i64 @hold(ptr %job, double %now) {
  ret i64 0
}
"""

_LARGEST = """define internal double @largest(ptr %x, i64 %n) noinline {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  %top = phi double [0.0, %entry], [%next, %loop]
  %p = getelementptr double, ptr %x, i64 %i
  %y = load double, ptr %p
  %size = call double @llvm.fabs.f64(double %y)
  %up = fcmp ogt double %size, %top
  %next = select i1 %up, double %size, double %top
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %n
  br i1 %more, label %loop, label %exit
exit:
  %all = phi double [0.0, %entry], [%next, %loop]
  ret double %all
}
"""


def _hold() -> str:
    """Newton's steps of least dq by M until the gaps are closed, the velocity projected with each.

    A state that cannot be put on its constraints is left as it came, for the message.
    """
    return f"""define internal i64 @hold(ptr %job, double %now) noinline {{
entry:
{get("q", "v", "Y_q", "Y_v", "Z_q", "Z_v", "P_q", "P_v", "gap", "watch", "n_gap", "n_watch", "n_q", "n_v")}\
{get("count", "size_q", "quaternions", "quaternion_count")}\
  call void @copy(ptr %Y_q, ptr %q, i64 %n_q)
  call void @copy(ptr %Y_v, ptr %v, i64 %n_v)
  br label %sweep
sweep:
  %w = phi i64 [0, %entry], [%w2, %open]
  %bad = call i1 @rates(ptr %job, double %now, ptr %q, ptr %v, ptr %Z_q, ptr %Z_v)
  br i1 %bad, label %fail, label %step
step:
  %gaps = call double @largest(ptr %gap, i64 %n_gap)
  call void @copy(ptr %q, ptr %P_q, i64 %n_q)
  call void @copy(ptr %v, ptr %P_v, i64 %n_v)
  call void @normalise(ptr %q, i64 %count, i64 %size_q, ptr %quaternions, i64 %quaternion_count)
  %closed = fcmp ole double %gaps, 1.0
  br i1 %closed, label %judge, label %open
open:
  %w2 = add i64 %w, 1
  %late = icmp sge i64 %w2, {SWEEPS}
  br i1 %late, label %fail, label %sweep
judge:
  %lost = call double @largest(ptr %watch, i64 %n_watch)
  %fine = fcmp ole double %lost, 1.0
  br i1 %fine, label %good, label %fail
good:
  ret i64 0
fail:
  %code = phi i64 [{NOT_FINITE}, %sweep], [{OPEN}, %open], [{DEPENDENT}, %judge]
  call void @copy(ptr %q, ptr %Y_q, i64 %n_q)
  call void @copy(ptr %v, ptr %Y_v, i64 %n_v)
  ret i64 %code
}}
"""


__all__ = ["PORTS", "pieces"]
