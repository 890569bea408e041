"""Rolled code as a module: one sample or a batch of rows through the loops, and the entry that passes on to it."""

from __future__ import annotations

from .llvm_math import Lanes, sines
from .llvm_rolled import (
    LONG,
    MODEL,
    Rolled,
    angles,
    argument_names,
    field_of,
    ground,
    kernel,
    pointers_text,
)
from .llvm_rows import moves, width_of
from .llvm_target import Target


def emit(rolled: Rolled, target: Target) -> str:
    """Exports @single (one sample) and @batch (rows, a tile of lanes at a time)."""
    one, many = target.of(1), target.of(target.lanes)
    parts = []
    for l in (one, many) if rolled.tiled else (one,):
        parts += [angles(l, many), ground(rolled, l), kernel(rolled, target, l.lanes)]
    if rolled.loaded:
        parts += [_room(one), _room(many), _gather(one), moves(many, [4]), _load_wrenches(many)]
    if rolled.tiled:
        widths = {many.lanes, *(_width(n, many) for n in rolled.results)} - ({4} if rolled.loaded else set())
        parts += [moves(many, widths)]
    text = "\n".join([*parts, _single(rolled, one), _batch(rolled, target)])
    return "\n".join([declarations(target), sines(text, (one, many), target.fma), text])


def declarations(target: Target) -> str:
    """What every module of loops calls."""
    out = ["declare void @llvm.prefetch.p0(ptr, i32, i32, i32)", "declare i64 @llvm.smin.i64(i64, i64)"]
    out.append("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    for l in (target.of(1), target.of(target.lanes)):
        t = l.type
        out.append(f"declare {t} @llvm.fma.{l.suffix}({t}, {t}, {t})")
        out += [f"declare {t} @llvm.{f}.{l.suffix}({t})" for f in ("fabs", "sqrt")]
    return "\n".join(out) + "\n"


def _width(size: int, l: Lanes) -> int:
    """Of the blocks that a result is stored in."""
    return width_of(size, l.lanes) if size else l.lanes


def _room(l: Lanes) -> str:
    """ptr @room_<lanes>(model, state): where the wrenches are gathered, after the sines and cosines."""
    out = [f"define internal ptr @room_{l.lanes}(ptr %model, ptr %state) {{"]
    out += [*field_of("slots", "slots", "i64"), *field_of("nq", "nq", "i64"), "  %angles = mul i64 %nq, 2"]
    out += ["  %used = add i64 %slots, %angles", f"  %room = getelementptr {l.type}, ptr %state, i64 %used"]
    return "\n".join([*out, "  ret ptr %room", "}\n"])


def _gather(l: Lanes) -> str:
    """void @gather: the wrenches of sample k, one after the other."""
    given = "ptr %pointers, ptr %strides, i64 %k, i64 %loads, ptr %room"
    out = [f"define internal void @gather({given}) noinline {{", "start:", "  br label %loop", "loop:"]
    out += ["  %j = phi i64 [0, %start], [%next, %loop]", *_port("%j"), "  %o = mul i64 %k, %s"]
    out += ["  %row = getelementptr i8, ptr %p, i64 %o", "  %six = mul i64 %j, 6"]
    out.append(f"  %to = getelementptr {l.type}, ptr %room, i64 %six")
    for i in range(6):
        out += [f"  %a{i} = getelementptr {l.type}, ptr %row, i64 {i}", f"  %x{i} = load {l.type}, ptr %a{i}"]
        out += [f"  %b{i} = getelementptr {l.type}, ptr %to, i64 {i}", f"  store {l.type} %x{i}, ptr %b{i}"]
    return "\n".join([*out, *_again("%loads")])


def _load_wrenches(l: Lanes) -> str:
    """void @wrenches: a tile of every wrench."""
    given = "ptr %pointers, ptr %strides, i64 %b, i64 %end, i64 %loads, ptr %room"
    out = [f"define internal void @wrenches({given}) noinline {{", "start:", "  br label %loop", "loop:"]
    out += ["  %j = phi i64 [0, %start], [%next, %loop]", *_port("%j"), "  %six = mul i64 %j, 6"]
    out.append(f"  %to = getelementptr {l.type}, ptr %room, i64 %six")
    out.append("  call void @load_4(ptr %p, i64 %s, i64 %b, i64 %end, ptr %to, i64 6)")
    return "\n".join([*out, *_again("%loads")])


def _port(index: str) -> list[str]:
    """%p and %s: pointer and stride of a port."""
    out = [f"  %pp = getelementptr ptr, ptr %pointers, i64 {index}", "  %p = load ptr, ptr %pp"]
    return [*out, f"  %ss = getelementptr i64, ptr %strides, i64 {index}", "  %s = load i64, ptr %ss"]


def _again(count: str) -> list[str]:
    out = ["  %next = add i64 %j, 1", f"  %more = icmp slt i64 %next, {count}"]
    return [*out, "  br i1 %more, label %loop, label %done", "done:", "  ret void", "}\n"]


def _single(rolled: Rolled, l: Lanes) -> str:
    """void @single(model, arguments, result, status): in the model's own state, one caller at a time.

    Wrenches come as one argument, an array of pointers to them.
    """
    names = argument_names(rolled)
    given = pointers_text(("model", *names, *rolled.outs, "status"))
    if rolled.loaded:
        names = [*names[:-1], "room"]
    passed = pointers_text(("model", "state", *names, *rolled.outs, "status"))
    lock = f"  %lock = getelementptr i64, ptr %model, i64 {MODEL.index('lock')}"
    out = [f"define void @single({given}) {{", "start:", lock, *field_of("state", "state"), "  br label %wait"]
    out += ["wait:", "  %taken = atomicrmw xchg ptr %lock, i64 1 acquire", "  %busy = icmp ne i64 %taken, 0"]
    out += ["  br i1 %busy, label %wait, label %run", "run:"]
    if rolled.loaded:
        where = f"%arg{len(rolled.arguments)}"  # of sample 0 the strides do not matter
        out += [*field_of("loads", "loads", "i64"), "  %room = call ptr @room_1(ptr %model, ptr %state)"]
        out.append(f"  call void @gather(ptr {where}, ptr {where}, i64 0, i64 %loads, ptr %room)")
    out.append(f"  call void @bodies_1({passed})")
    return "\n".join([*out, "  store atomic i64 0, ptr %lock release, align 8", "  ret void", "}\n"])


def _batch(rolled: Rolled, target: Target) -> str:
    """i32 @batch(model, pointers, strides, count, arena): 1 if a check failed."""
    one, many = target.of(1), target.of(target.lanes)
    n = len(rolled.arguments)
    out = ["define i32 @batch(ptr %model, ptr %pointers, ptr %strides, i64 %count, ptr %arena) {", "start:"]
    out += field_of("loads", "loads", "i64")
    out += [f"  %at_out{i} = add i64 %loads, {n + i}" for i in range(len(rolled.results))]
    for i, at in enumerate([*range(n), *(f"%at_{x}" for x in rolled.outs)]):
        out += [f"  %a{i} = getelementptr ptr, ptr %pointers, i64 {at}", f"  %p{i} = load ptr, ptr %a{i}"]
        out += [f"  %b{i} = getelementptr i64, ptr %strides, i64 {at}", f"  %s{i} = load i64, ptr %b{i}"]
    out += [f"  %w_pointers = getelementptr ptr, ptr %pointers, i64 {n}"]
    out += [f"  %w_strides = getelementptr i64, ptr %strides, i64 {n}"]
    out += [*field_of("n", "bodies", "i64"), *field_of("nq", "nq", "i64"), *field_of("nv", "nv", "i64")]
    for i in range(len(rolled.results)):
        out += field_of(f"size{i}", f"size{i}", "i64")
    out += [
        f"  %status = getelementptr {many.type}, ptr %arena, i64 0",
        "  %from = getelementptr i8, ptr %arena, i64 64",
    ]
    out += [f"  store <{64 // one.size} x {one.scalar}> zeroinitializer, ptr %status, align 64"]
    out += [f"  %long = icmp sge i64 %n, {LONG}", "  %alone = icmp eq i64 %count, 1"]
    out += ["  %scalar = or i1 %long, %alone"]
    out += ["  br i1 %scalar, label %samples, label %tiles" if rolled.tiled else "  br label %samples"]
    out += [*_samples(rolled), *(_tiles(rolled, many) if rolled.tiled else ()), "done:"]
    out += [f"  %seen = load {many.type}, ptr %status, align {many.bytes}"]
    out += [
        f"  %flags = fcmp uno {many.type} %seen, %seen",
        f"  %bits = bitcast <{many.lanes} x i1> %flags to i{many.lanes}",
    ]
    out += [f"  %bad = icmp ne i{many.lanes} %bits, 0", "  %code = zext i1 %bad to i32", "  ret i32 %code", "}\n"]
    return "\n".join(out)


def _samples(rolled: Rolled) -> list[str]:
    """Sample by sample, in the arena's state."""
    n, room = len(rolled.arguments), []
    out = ["samples:", "  %k = phi i64 [0, %start], [%k2, %samples]"]
    if rolled.loaded:
        room = ["ptr %row"]
        out.append("  %row = call ptr @room_1(ptr %model, ptr %from)")
        out.append("  call void @gather(ptr %w_pointers, ptr %w_strides, i64 %k, i64 %loads, ptr %row)")
    every = range(n + len(rolled.results))
    for i in every:
        out += [f"  %o{i} = mul i64 %k, %s{i}", f"  %r{i} = getelementptr i8, ptr %p{i}, i64 %o{i}"]
    rows = [f"ptr %r{i}" for i in every]
    given = ", ".join(["ptr %model", "ptr %from", *rows[:n], *room, *rows[n:], "ptr %status"])
    out += [f"  call void @bodies_1({given})", "  %k2 = add i64 %k, 1"]
    return [*out, "  %on = icmp slt i64 %k2, %count", "  br i1 %on, label %samples, label %done"]


def _tiles(rolled: Rolled, l: Lanes) -> list[str]:
    """Rows into tiles, the loops over the bodies, the tile of results back into rows."""
    n, room = len(rolled.arguments), []
    sizes = ["%nq" if a == "q" else "%nv" for a in rolled.arguments]
    sizes += [f"%size{i}" for i in range(len(rolled.results))]
    out, at = ["tiles:", "  %end = sub i64 %count, 1"], "%from"
    for i, size in enumerate(sizes):
        out += [
            f"  %t{i} = getelementptr i8, ptr {at}, i64 0",
            f"  %next{i} = getelementptr {l.type}, ptr %t{i}, i64 {size}",
        ]
        at = f"%next{i}"
    out += ["  br label %tile", "tile:", "  %b = phi i64 [0, %tiles], [%c, %tile]"]
    for i in range(n):
        out.append(
            f"  call void @load_{l.lanes}(ptr %p{i}, i64 %s{i}, i64 %b, i64 %end, ptr %t{i}, i64 {sizes[i]})"
        )
    if rolled.loaded:
        room = ["ptr %tiled"]
        out.append(f"  %tiled = call ptr @room_{l.lanes}(ptr %model, ptr {at})")
        moved = "ptr %w_pointers, ptr %w_strides, i64 %b, i64 %end, i64 %loads, ptr %tiled"
        out.append(f"  call void @wrenches({moved})")
    tiles = [f"ptr %t{i}" for i in range(len(sizes))]
    given = ["ptr %model", f"ptr {at}", *tiles[:n], *room, *tiles[n:], "ptr %status"]
    out.append(f"  call void @bodies_{l.lanes}({', '.join(given)})")
    for i, fixed in enumerate(rolled.results, n):
        moved = f"ptr %p{i}, i64 %s{i}, i64 %b, i64 %end, ptr %t{i}, i64 {sizes[i]}"
        out.append(f"  call void @store_{_width(fixed, l)}({moved})")
    out += [f"  %c = add i64 %b, {l.lanes}", "  %left = icmp slt i64 %c, %count"]
    return [*out, "  br i1 %left, label %tile, label %done"]


def forward_text(arguments: int, loads: int, results: int = 1) -> str:
    """@one and @drive, as the Python entry calls them, passed on to loaded code by the addresses in @rolled.

    loads: how many external wrenches follow the arguments; @one passes on one array of pointers to them.
    """
    ports, outs = [f"arg{i}" for i in range(arguments)], [f"out{i}" for i in range(results)]
    given = pointers_text([*ports, *(f"w{i}" for i in range(loads)), *outs, "scratch", "status"])
    out = ["@rolled = global [3 x ptr] zeroinitializer", f"define internal void @one({given}) {{"]
    if loads:
        ports.append("wrenches")
        out.append(f"  %wrenches = alloca ptr, i64 {loads}")
        for i in range(loads):
            out += [f"  %to{i} = getelementptr ptr, ptr %wrenches, i64 {i}", f"  store ptr %w{i}, ptr %to{i}"]
    out += [*_loaded("0"), f"  call void %f({pointers_text(['model', *ports, *outs, 'status'])})"]
    out += ["  ret void", "}"]
    moved = "ptr %pointers, ptr %strides, i64 %count, ptr %arena"
    out += [f"define i32 @drive({moved}, i64 %all) {{", *_loaded("1"), f"  %r = call i32 %f(ptr %model, {moved})"]
    return "\n".join([*out, "  ret i32 %r", "}\n"])


def _loaded(slot: str) -> list[str]:
    out = [f"  %a = getelementptr ptr, ptr @rolled, i64 {slot}", "  %f = load ptr, ptr %a"]
    return [*out, "  %b = getelementptr ptr, ptr @rolled, i64 2", "  %model = load ptr, ptr %b"]


__all__ = ["declarations", "emit", "forward_text"]
