"""Weighted sums over the stages of a Runge-Kutta method, as LLVM text: vectors of the state, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from ..emit.llvm_math import Lanes


def sums(l: Lanes) -> str:
    """@combine, @update and @estimate."""
    return _combine(l) + _update(l) + _estimate(l)


def load(l: Lanes, name: str, base: str) -> str:
    """%name = base[%i], and where it is."""
    at = f"  %{name}_p = getelementptr double, ptr %{base}, i64 %i\n"
    return at + f"  %{name} = load {l.type}, ptr %{name}_p, align {l.bytes}\n"


def splat(l: Lanes, name: str) -> str:
    """%name_v: the double %name in every lane."""
    spread = f"<{l.lanes} x i32> zeroinitializer"
    one = f"  %{name}_1 = insertelement {l.type} undef, double %{name}, i32 0\n"
    return one + f"  %{name}_v = shufflevector {l.type} %{name}_1, {l.type} undef, {spread}\n"


def _loop(
    l: Lanes, name: str, given: str, rows: Sequence[str], before: str, after: str,
    entry: str = "", carried: Sequence[str] = (), end: str = "",
) -> str:  # fmt: skip
    """At every place %i of a state: %<row>_sum = sum_j row_j K_j for each row, between `before` and `after`.

    carried: values that go from place to place, %x_old to %x_new; end: what is done with the last of them.
    """
    t = l.type
    zero = "zeroinitializer"
    old = "".join(f"  %{x}_old = phi {t} [{zero}, %entry], [%{x}_new, %done]\n" for x in carried)
    phis = "".join(f"  %{r}_acc = phi {t} [{zero}, %outer], [%{r}_next, %inner]\n" for r in rows)
    terms = "".join(_term(l, r) for r in rows)
    totals = "".join(f"  %{r}_sum = phi {t} [{zero}, %outer], [%{r}_next, %inner]\n" for r in rows)
    pointers = "".join(f", ptr %{r}" for r in rows)
    return f"""define internal void @{name}({given}, ptr %K{pointers}, i64 %n, i64 %pad, double %h) noinline {{
entry:
{splat(l, "h")}{entry}  %some = icmp sgt i64 %n, 0
  br label %outer
outer:
  %i = phi i64 [0, %entry], [%i2, %done]
{old}{before}  br i1 %some, label %inner, label %done
inner:
  %j = phi i64 [0, %outer], [%j2, %inner]
{phis}  %at0 = mul i64 %j, %pad
  %at1 = add i64 %at0, %i
  %kp = getelementptr double, ptr %K, i64 %at1
  %k = load {t}, ptr %kp, align {l.bytes}
{terms}  %j2 = add i64 %j, 1
  %again = icmp slt i64 %j2, %n
  br i1 %again, label %inner, label %done
done:
{totals}{after}  %i2 = add i64 %i, {l.lanes}
  %more = icmp slt i64 %i2, %pad
  br i1 %more, label %outer, label %exit
exit:
{end}  ret void
}}
"""


def _term(l: Lanes, row: str) -> str:
    """%row_next = %row_acc + row_j K_j."""
    return f"""  %{row}_p = getelementptr double, ptr %{row}, i64 %j
  %{row}_c = load double, ptr %{row}_p
{splat(l, f"{row}_c")}  %{row}_x = fmul {l.type} %{row}_c_v, %k
  %{row}_next = fadd {l.type} %{row}_acc, %{row}_x
"""


def _combine(l: Lanes) -> str:
    """out = y + h sum: the argument of a stage."""
    after = f"""  %sum = fmul {l.type} %h_v, %row_sum
  %o = fadd {l.type} %y0, %sum
  %op = getelementptr double, ptr %out, i64 %i
  store {l.type} %o, ptr %op, align {l.bytes}
"""
    return _loop(l, "combine", "ptr %out, ptr %y", ["row"], load(l, "y0", "y"), after)


def _update(l: Lanes) -> str:
    """y += h sum with compensated summation (Kahan 1965): what rounding drops is added by the next step."""
    t = l.type
    after = f"""  %sum = fmul {t} %h_v, %row_sum
  %inc = fadd {t} %sum, %e0
  %new = fadd {t} %y0, %inc
  %moved = fsub {t} %new, %y0
  %rest = fsub {t} %inc, %moved
  store {t} %new, ptr %y0_p, align {l.bytes}
  store {t} %rest, ptr %e0_p, align {l.bytes}
"""
    return _loop(l, "update", "ptr %y, ptr %e", ["row"], load(l, "y0", "y") + load(l, "e0", "e"), after)


def _estimate(l: Lanes) -> str:
    """Adds the sums of squares of two error estimates over their tolerance to best[0] and best[1]."""
    t = l.type
    errors = ("e5", "e3")
    squares = "".join(
        f"""  %{r}_ratio = fdiv {t} %{r}_sum, %scale
  %{r}_square = fmul {t} %{r}_ratio, %{r}_ratio
  %{r}_new = fadd {t} %{r}_old, %{r}_square
"""
        for r in errors
    )
    after = f"""  %step = fmul {t} %h_v, %b_sum
  %y1 = fadd {t} %y0, %step
  %size0 = call {t} @llvm.fabs.{l.suffix}({t} %y0)
  %size1 = call {t} @llvm.fabs.{l.suffix}({t} %y1)
  %larger = fcmp ogt {t} %size1, %size0
  %size = select {l.many("i1")} %larger, {t} %size1, {t} %size0
  %relative = fmul {t} %rtol_v, %size
  %scale = fadd {t} %atol_v, %relative
{squares}"""
    end = "".join(
        f"""  %to{k} = getelementptr double, ptr %best, i64 {k}
  %was{k} = load double, ptr %to{k}
  %all{k} = call reassoc double @llvm.vector.reduce.fadd.{l.suffix}(double %was{k}, {t} %{r}_new)
  store double %all{k}, ptr %to{k}
"""
        for k, r in enumerate(errors)
    )
    # LLVM refuses a second declaration; the sum of four is declared for quaternions
    declare = "" if l.lanes == 4 else f"declare double @llvm.vector.reduce.fadd.{l.suffix}(double, {t})\n"
    given = "ptr %best, double %rtol, double %atol, ptr %y"
    entry = splat(l, "rtol") + splat(l, "atol")
    return declare + _loop(l, "estimate", given, ["b", *errors], load(l, "y0", "y"), after, entry, errors, end)


__all__ = ["load", "splat", "sums"]
