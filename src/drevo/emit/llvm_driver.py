"""The loop over the tiles of a batch.

Row-major arrays are transposed into a tile of the arena and back. In batch-last layout the kernel reads and
writes the caller's own arrays, but for what `llvm_columns` sends over a stage.
"""

from __future__ import annotations

from .llvm_columns import Columns
from .llvm_math import Lanes
from .llvm_rows import Rows, flush, width_of
from .llvm_target import BEYOND, Arena, Target
from .lower import Lowered


def driver(low: Lowered, target: Target, room: Arena, layout: str) -> str:
    """i32 @drive(pointers, strides, count, arena, all): 1 if a check failed. Inputs come first, then outputs.

    all: samples of the whole batch, of which these are a part.
    """
    l = target.of(target.lanes)
    if layout == "rows":
        widths = sorted({width_of(p.size, l.lanes) for p in (*low.inputs, *low.outputs) if p.size})
        helpers, body = "".join(Rows(l, w).text() for w in widths) + flush(l), _rows(low, l, room)
    else:
        columns = Columns(low, l, room)
        helpers, body = columns.functions(), [*_cleared(low, l, room, columns.small()), *columns.loop()]
    head = 'define i32 @drive(ptr %pointers, ptr %strides, i64 %count, ptr %arena, i64 %all) "stackrealign"'
    lines = [*_places(low, l, room), *body, *_verdict(l)]
    return helpers + _zero(l) + head + " {\n" + "\n".join(lines) + "\n}\n"


def _places(low: Lowered, l: Lanes, room: Arena) -> list[str]:
    """Names of all that lies in the arena, and of the caller's pointers and strides."""
    first = room.outputs[0] if room.outputs else room.status
    lines = [f"  %{n} = getelementptr i8, ptr %arena, i64 {k}" for n, k in
             (("out", first), ("status", room.status), ("scratch", room.scratch))]  # fmt: skip
    lines.append("  call void @clear(ptr %status, i64 1)")
    for i, at in enumerate((*room.inputs, *room.outputs)):
        lines += [f"  %pp{i} = getelementptr ptr, ptr %pointers, i64 {i}", f"  %p{i} = load ptr, ptr %pp{i}"]
        lines += [f"  %ss{i} = getelementptr i64, ptr %strides, i64 {i}", f"  %s{i} = load i64, ptr %ss{i}"]
        lines.append(f"  %tile{i} = getelementptr i8, ptr %arena, i64 {at}")
    return [*lines, "  %last = sub i64 %count, 1", f"  %tail = sub i64 %count, {l.lanes}"]


def _rows(low: Lowered, l: Lanes, room: Arena) -> list[str]:
    """Load, compute, store per tile; the tile of outputs is cleared once, so that structural zeros stay.

    Results that no cache holds go past the caches, some tiles at a time by way of a stage: half the traffic, as
    their lines are not fetched before they are written. What is left over at the end goes straight.
    """
    n, run = len(low.inputs), room.run * l.lanes
    outputs = {i: p.size for i, p in enumerate(low.outputs, n) if p.size}
    return [
        *_tile_cleared(low, l, room),
        *(line for i, size in outputs.items() for line in _stage(i, size * l.size, room.stages[i - n])),
        f"  %whole = sub i64 %count, {run}",
        "  br label %block",
        "block:",
        "  %b0 = phi i64 [0, %0], [%b1, %spilled]",
        f"  %most = add i64 %b0, {run}",
        "  %b1 = call i64 @llvm.smin.i64(i64 %most, i64 %count)",
        "  %full = icmp sle i64 %b0, %whole",
        *(line for i in outputs for line in _target(i)),
        "  br label %tile",
        "tile:",
        "  %b = phi i64 [%b0, %block], [%next, %tile]",
        *(_moved("load", i, f"%p{i}", p.size, l) for i, p in enumerate(low.inputs) if p.size),
        "  call void @many(ptr %arena, ptr %out, ptr %scratch, ptr %status)",
        *(_moved("store", i, f"%to{i}", size, l) for i, size in outputs.items()),
        f"  %next = add i64 %b, {l.lanes}",
        "  %again = icmp slt i64 %next, %b1",
        "  br i1 %again, label %tile, label %made",
        "made:",
        *(line for i, size in outputs.items() for line in _flushed(i, size * l.size * run)),
        "  br label %spilled",
        "spilled:",
        "  %more = icmp slt i64 %b1, %count",
        "  br i1 %more, label %block, label %exit",
    ]


def _stage(i: int, row: int, at: int) -> list[str]:
    """%past<i>: the rows of an output lie one after the other, and are more than a cache holds."""
    return [
        f"  %stage{i} = getelementptr i8, ptr %arena, i64 {at}",
        f"  %bytes{i} = mul i64 %s{i}, %all",
        f"  %large{i} = icmp ugt i64 %bytes{i}, {BEYOND}",
        f"  %dense{i} = icmp eq i64 %s{i}, {row}",
        f"  %past{i} = and i1 %large{i}, %dense{i}",
    ]


def _target(i: int) -> list[str]:
    """%to<i>: where sample 0 would stand for the samples of this run to be written to the stage, or home."""
    return [
        f"  %goes{i} = and i1 %past{i}, %full",
        f"  %at{i} = mul i64 %b0, %s{i}",
        f"  %back{i} = sub i64 0, %at{i}",
        f"  %shifted{i} = getelementptr i8, ptr %stage{i}, i64 %back{i}",
        f"  %to{i} = select i1 %goes{i}, ptr %shifted{i}, ptr %p{i}",
    ]


def _flushed(i: int, size: int) -> list[str]:
    return [
        f"  br i1 %goes{i}, label %flush{i}, label %flushed{i}",
        f"flush{i}:",
        f"  %home{i} = getelementptr i8, ptr %p{i}, i64 %at{i}",
        f"  call void @flush(ptr %stage{i}, ptr %home{i}, i64 {size})",
        f"  br label %flushed{i}",
        f"flushed{i}:",
    ]


def _moved(way: str, i: int, place: str, size: int, l: Lanes) -> str:
    given = f"ptr {place}, i64 %s{i}, i64 %b, i64 %last, ptr %tile{i}, i64 {size}"
    return f"  call void @{way}_{width_of(size, l.lanes)}({given})"


def _cleared(low: Lowered, l: Lanes, room: Arena, small: list[str]) -> list[str]:
    """Fewer samples than lanes take the way over a tile."""
    return [
        f"  %few = icmp slt i64 %count, {l.lanes}",
        "  br i1 %few, label %small, label %wide",
        "small:",
        *_tile_cleared(low, l, room),
        *small,
        "  br label %exit",
    ]


def _tile_cleared(low: Lowered, l: Lanes, room: Arena) -> list[str]:
    """The tile of outputs: zeros, and the constants that no kernel writes."""
    first = room.outputs[0] if room.outputs else room.status
    out = [f"  call void @clear(ptr %out, i64 {(room.status - first) // l.bytes})"]
    for i, edges in enumerate(low.stores):
        for k, e in enumerate(edges):
            x = low.constants.get(e >> 1)
            if x:
                offset, value = room.outputs[i] + k * l.bytes, l.const(-x if e & 1 else x)
                out.append(f"  %k{i}_{k} = getelementptr i8, ptr %arena, i64 {offset}")
                out.append(f"  store {l.type} {value}, ptr %k{i}_{k}, align {l.bytes}")
    return out


def _verdict(l: Lanes) -> list[str]:
    """1 if the status of any lane became NaN."""
    bits = f"i{l.lanes}"
    return [
        "exit:",
        f"  %bad = load {l.type}, ptr %status, align {l.bytes}",
        f"  %nan = fcmp uno {l.type} %bad, %bad",
        f"  %word = bitcast {l.many('i1')} %nan to {bits}",
        f"  %any = icmp ne {bits} %word, 0",
        "  %code = zext i1 %any to i32",
        "  ret i32 %code",
    ]


def _zero(l: Lanes) -> str:
    return f"""define internal void @clear(ptr %p, i64 %n) noinline {{
  br label %loop
loop:
  %j = phi i64 [0, %0], [%j2, %loop]
  %at = getelementptr {l.type}, ptr %p, i64 %j
  store {l.type} zeroinitializer, ptr %at, align {l.bytes}
  %j2 = add i64 %j, 1
  %more = icmp slt i64 %j2, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


__all__ = ["driver"]
