"""The loop that feeds a batch driver from a counter-based generator and keeps sums: no array of samples anywhere.

SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): the k-th 64 bits are
mix(seed + (k + 1) GAMMA), so any sample can be made without those before it, on any thread. One text serves all
functions: sizes, addresses and ranges come with the job.
"""

from __future__ import annotations

import math

from .llvm_math import Lanes, sincos

GAMMA, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SHIFTS = (30, 27, 31)
STEP = 64  # samples made, computed and summed at a time: they stay in the nearest cache
SUMS = 4  # kept of every result: sum, sum of squares, minimum, maximum
JOB = ("drive", "seed", "inputs", "outputs", "ranges", "quaternions", "columns", "in", "out", "pointers",
       "strides", "arena", "sums")  # fmt: skip
_ADDRESSES = ("drive", "ranges", "columns", "in", "out", "pointers", "strides", "arena", "sums")


def stream(l: Lanes, fma: bool) -> str:
    """i32 @stream(job, first, count): not 0 if a check failed. float64 only.

    job: the words of `JOB`; ranges: least value and width of every input scalar; columns: where quaternions begin,
    whose first three numbers come as [0, 1). in and out: rows of STEP samples; sums: SUMS vectors a result.
    """
    t = l.type
    declared = "".join(
        f"declare {t} @llvm.{name}.{l.suffix}({', '.join([t] * n)})\n"
        for name, n in (("fma", 3), ("fabs", 1), ("sqrt", 1))
    )
    parts = [
        declared,
        sincos(l, fma),
        _fill(l),
        _quaternion(l),
        _turns(l),
        _sums(l, False),
        _sums(l, True),
        _loop(),
    ]
    return "\n".join(parts)


def _lanes(l: Lanes) -> str:
    return "<" + ", ".join(f"i64 {k}" for k in range(l.lanes)) + ">"


def _spread(l: Lanes, kind: str, name: str, to: str) -> list[str]:
    """A scalar in all lanes."""
    many = l.many(kind)
    return [
        f"  {to}.1 = insertelement {many} poison, {kind} {name}, i64 0",
        f"  {to} = shufflevector {many} {to}.1, {many} poison, <{l.lanes} x i32> zeroinitializer",
    ]


def _signed(k: int) -> int:
    return k - (1 << 64) if k >> 63 else k


def _fill(l: Lanes) -> str:
    """@fill: STEP samples of every input; number k of sample s is the (s n + k)-th of the generator."""
    i, t, groups = l.many("i64"), l.type, range(STEP // l.lanes)
    body = [*_spread(l, "i64", "%first", "%f"), *_spread(l, "i64", "%n", "%ns"), *_spread(l, "i64", "%seed", "%s")]
    body += [f"  %sample = add {i} %f, {_lanes(l)}", f"  %k = mul {i} %sample, %ns"]
    body += [f"  %k1 = add {i} %k, {l.integer(1)}", f"  %weyl = mul {i} %k1, {l.integer(_signed(GAMMA))}"]
    body += [f"  %z0 = add {i} %weyl, %s", f"  %tile = mul i64 %n, {_signed(GAMMA * l.lanes % 2**64)}"]
    body += [*_spread(l, "i64", "%tile", "%next"), "  br label %loop", "loop:"]
    body += ["  %j = phi i64 [0, %0], [%j2, %loop]", f"  %c0 = phi {i} [%z0, %0], [%c.on, %loop]"]
    body += ["  %r = getelementptr [2 x double], ptr %ranges, i64 %j", "  %least = load double, ptr %r"]
    body += ["  %w = getelementptr i8, ptr %r, i64 8", "  %width = load double, ptr %w"]
    body += [*_spread(l, "double", "%least", "%lo"), *_spread(l, "double", "%width", "%wide")]
    body += [f"  %row = getelementptr [{STEP} x double], ptr %in, i64 %j"]
    for g in groups:
        body += [*_mixed(l, g), f"  %c{g + 1} = add {i} %c{g}, %next"]
        body += [f"  %u{g} = fsub {t} %one{g}, {l.const(1.0)}", f"  %m{g} = fmul {t} %u{g}, %wide"]
        body += [f"  %x{g} = fadd {t} %m{g}, %lo", f"  %at{g} = getelementptr {t}, ptr %row, i64 {g}"]
        body += [f"  store {t} %x{g}, ptr %at{g}, align {l.bytes}"]
    body += [f"  %c.on = add {i} %c0, {l.integer(_signed(GAMMA))}", "  %j2 = add i64 %j, 1"]
    body += ["  %more = icmp slt i64 %j2, %n", "  br i1 %more, label %loop, label %done", "done:", "  ret void"]
    head = "define internal void @fill(ptr %in, i64 %first, i64 %seed, i64 %n, ptr %ranges) noinline"
    return head + " {\n" + "\n".join(body) + "\n}\n"


def _mixed(l: Lanes, g: int) -> list[str]:
    """The mix of counter %c<g>, and its upper 52 bits as %one<g> in [1, 2)."""
    i, z, out = l.many("i64"), f"%c{g}", []
    for k, (shift, factor) in enumerate(zip(SHIFTS, (FIRST, SECOND, None))):
        a, b = f"%a{g}_{k}", f"%b{g}_{k}"
        out += [f"  {a} = lshr {i} {z}, {l.integer(shift)}", f"  {b} = xor {i} {z}, {a}"]
        z = b
        if factor is not None:
            z = f"%f{g}_{k}"
            out.append(f"  {z} = mul {i} {b}, {l.integer(_signed(factor))}")
    out += [f"  %h{g} = lshr {i} {z}, {l.integer(12)}"]
    out += [f"  %o{g} = or {i} %h{g}, {l.integer(0x3FF0000000000000)}"]
    return [*out, f"  %one{g} = bitcast {i} %o{g} to {l.type}"]


def _quaternion(l: Lanes) -> str:
    """@turn: three numbers of [0, 1) to a uniform unit quaternion (Shoemake, Graphics Gems III, 1992)."""
    t, pair, body = l.type, f"{{{l.type}, {l.type}}}", []
    for k in range(3):
        body += [f"  %p{k} = getelementptr i8, ptr %at, i64 {k * STEP * l.size}"]
        body += [f"  %u{k} = load {t}, ptr %p{k}, align {l.bytes}"]
    body += [f"  %left = fsub {t} {l.const(1.0)}, %u0"]
    for k, x in enumerate(("%left", "%u0")):
        body += [f"  %r{k} = call {t} @llvm.sqrt.{l.suffix}({t} {x})"]
        body += [f"  %angle{k} = fmul {t} %u{k + 1}, {l.const(2 * math.pi)}"]
        body += [f"  %both{k} = call {pair} @sincos_{l.lanes}({t} %angle{k})"]
        for e, name in enumerate(("sin", "cos")):
            body += [f"  %{name}{k} = extractvalue {pair} %both{k}, {e}"]
            body += [f"  %q{k}{e} = fmul {t} %r{k}, %{name}{k}"]
            body += [f"  %to{k}{e} = getelementptr i8, ptr %at, i64 {(2 * k + e) * STEP * l.size}"]
            body += [f"  store {t} %q{k}{e}, ptr %to{k}{e}, align {l.bytes}"]
    return "define internal void @turn(ptr %at) noinline {\n" + "\n".join(body) + "\n  ret void\n}\n"


def _sums(l: Lanes, part: bool) -> str:
    """@sum_all, @sum_part: adds STEP samples, or the first %count of them, to what is kept of every result."""
    t, flags, neutral = l.type, l.many("i1"), [0.0, 0.0, math.inf, -math.inf]
    body = _spread(l, "i64", "%count", "%size") if part else []
    body += ["  br label %loop", "loop:", "  %j = phi i64 [0, %0], [%j2, %loop]"]
    body += [f"  %row = getelementptr [{STEP} x double], ptr %out, i64 %j"]
    body += [f"  %kept = getelementptr [{SUMS} x {t}], ptr %sums, i64 %j"]
    for e in range(SUMS):
        body += [f"  %k{e} = getelementptr {t}, ptr %kept, i64 {e}"]
        body += [f"  %s{e}_0 = load {t}, ptr %k{e}, align {l.bytes}"]
    for g in range(STEP // l.lanes):
        body += [f"  %at{g} = getelementptr {t}, ptr %row, i64 {g}", f"  %x{g} = load {t}, ptr %at{g}"]
        body += [f"  %sq{g} = fmul {t} %x{g}, %x{g}"]
        given = [f"%x{g}", f"%sq{g}", f"%x{g}", f"%x{g}"]
        if part:
            counted = "<" + ", ".join(f"i64 {g * l.lanes + k}" for k in range(l.lanes)) + ">"
            body += [f"  %in{g} = icmp slt {l.many('i64')} {counted}, %size"]
            for e, x in enumerate(given):
                body += [f"  %v{g}_{e} = select {flags} %in{g}, {t} {x}, {t} {l.const(neutral[e])}"]
            given = [f"%v{g}_{e}" for e in range(SUMS)]
        body += [f"  %s{e}_{g + 1} = fadd {t} %s{e}_{g}, {given[e]}" for e in (0, 1)]
        for e, less in ((2, "olt"), (3, "ogt")):
            body += [f"  %c{g}_{e} = fcmp {less} {t} {given[e]}, %s{e}_{g}"]
            body += [f"  %s{e}_{g + 1} = select {flags} %c{g}_{e}, {t} {given[e]}, {t} %s{e}_{g}"]
    body += [f"  store {t} %s{e}_{STEP // l.lanes}, ptr %k{e}, align {l.bytes}" for e in range(SUMS)]
    body += ["  %j2 = add i64 %j, 1", "  %more = icmp slt i64 %j2, %n"]
    body += ["  br i1 %more, label %loop, label %done", "done:", "  ret void"]
    head = (
        f"define internal void @sum_{'part' if part else 'all'}(ptr %out, ptr %sums, i64 %n, i64 %count) noinline"
    )
    return head + " {\n" + "\n".join(body) + "\n}\n"


def _turns(l: Lanes) -> str:
    """@turns: all quaternions of STEP samples."""
    calls = "\n".join(
        f"  %p{g} = getelementptr double, ptr %q, i64 {g * l.lanes}\n  call void @turn(ptr %p{g})"
        for g in range(STEP // l.lanes)
    )
    return f"""define internal void @turns(ptr %in, ptr %columns, i64 %n) noinline {{
  br label %next
next:
  %j = phi i64 [0, %0], [%j2, %one]
  %more = icmp slt i64 %j, %n
  br i1 %more, label %one, label %done
one:
  %at = getelementptr i64, ptr %columns, i64 %j
  %column = load i64, ptr %at
  %q = getelementptr [{STEP} x double], ptr %in, i64 %column
{calls}
  %j2 = add i64 %j, 1
  br label %next
done:
  ret void
}}
"""


def _loop() -> str:
    """@stream: make, compute and sum STEP samples at a time."""
    words = []
    for k, name in enumerate(JOB):
        kind = "ptr" if name in _ADDRESSES else "i64"
        words += [
            f"  %{name}.at = getelementptr i64, ptr %job, i64 {k}",
            f"  %{name} = load {kind}, ptr %{name}.at",
        ]
    lines = "\n".join(words)
    return f"""define i32 @stream(ptr %job, i64 %first, i64 %count) {{
start:
{lines}
  br label %step
step:
  %done = phi i64 [0, %start], [%on, %summed]
  %bad = phi i32 [0, %start], [%worse, %summed]
  %sample = add i64 %first, %done
  %left = sub i64 %count, %done
  %whole = icmp sge i64 %left, {STEP}
  %size = select i1 %whole, i64 {STEP}, i64 %left
  call void @fill(ptr %in, i64 %sample, i64 %seed, i64 %inputs, ptr %ranges)
  call void @turns(ptr %in, ptr %columns, i64 %quaternions)
  %code = call i32 %drive(ptr %pointers, ptr %strides, i64 %size, ptr %arena, i64 %size)
  %worse = or i32 %bad, %code
  br i1 %whole, label %all, label %part
all:
  call void @sum_all(ptr %out, ptr %sums, i64 %outputs, i64 %size)
  br label %summed
part:
  call void @sum_part(ptr %out, ptr %sums, i64 %outputs, i64 %size)
  br label %summed
summed:
  %on = add i64 %done, {STEP}
  %again = icmp slt i64 %on, %count
  br i1 %again, label %step, label %end
end:
  ret i32 %worse
}}
"""


__all__ = ["FIRST", "GAMMA", "JOB", "SECOND", "SHIFTS", "STEP", "SUMS", "stream"]
