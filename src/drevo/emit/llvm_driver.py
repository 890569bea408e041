"""Drivers over a batch: rows are transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from .llvm_math import Lanes
from .llvm_target import Arena, Target
from .lower import Lowered

_MOVED = "ptr %p, i64 %stride, i64 %b, i64 %last, ptr %tile, i64 %n"  # of every function that moves a tile

_ALIGNED_FROM = 8  # tiles: one more of them pays if the others write whole cache lines
_TILES_AHEAD = 4  # of the prefetch of rows; 1 to 4 differ by 3 %


def driver(low: Lowered, target: Target, room: Arena, layout: str) -> str:
    """i32 @drive(pointers, strides, count, arena): 1 if a check failed. Inputs come first, then outputs."""
    l = target.of(target.lanes)
    rows = layout == "rows"
    widths = sorted({_width(p.size, l.lanes) for p in (*low.inputs, *low.outputs) if p.size})
    helpers = "".join(Rows(l, w).text() for w in widths) if rows else _columns(l) + _fills(low, l)
    return helpers + _zero(l) + _loop(low, target, room, rows)


# -- row-major ----------------------------------------------------------------------------------------------


class Rows:
    """@load_<w> and @store_<w>: W rows of n columns from or to a tile, in blocks of w <= min(n, W) columns.

    A block is W / w square transpositions side by side. The last block is moved back to n - w: it writes some
    columns twice, with the same bits, instead of masking.
    """

    def __init__(self, lanes: Lanes, width: int) -> None:
        self.l, self.rows, self.w, self.t = lanes, lanes.lanes, width, lanes.type
        self.part = f"<{width} x {lanes.scalar}>"
        self.groups = lanes.lanes // width

    def text(self) -> str:
        return self.function("load") + self.function("store")

    def function(self, way: str) -> str:
        body = [*self.row_pointers(), "  br label %loop", "loop:", "  %j = phi i64 [0, %0], [%j2, %loop]"]
        body += [f"  %end = sub i64 %n, {self.w}", "  %jj = call i64 @llvm.smin.i64(i64 %j, i64 %end)"]
        body += [f"  %at = mul i64 %jj, {self.l.bytes}", "  %base = getelementptr i8, ptr %tile, i64 %at"]
        body += [f"  %f = mul i64 %jj, {self.l.size}", *(self.load() if way == "load" else self.store())]
        body += [f"  %j2 = add i64 %j, {self.w}", "  %more = icmp slt i64 %j2, %n"]
        body += ["  br i1 %more, label %loop, label %done", "done:"]
        head = f"define internal void @{way}_{self.w}({_MOVED}) noinline"
        return head + " {\n" + "\n".join(body) + "\n  ret void\n}\n"

    def row_pointers(self) -> list[str]:
        out = []
        for r in range(self.rows):
            out += [f"  %k{r} = add i64 %b, {r}", f"  %m{r} = call i64 @llvm.smin.i64(i64 %k{r}, i64 %last)"]
            out += [f"  %o{r} = mul i64 %m{r}, %stride", f"  %p{r} = getelementptr i8, ptr %p, i64 %o{r}"]
        return [*out, f"  %ahead = mul i64 %stride, {_TILES_AHEAD * self.rows}"]

    def load(self) -> list[str]:
        """Rows in, and a prefetch of rows that a later tile will read."""
        out = []
        for r in range(self.rows):
            out += [f"  %a{r} = getelementptr i8, ptr %p{r}, i64 %f"]
            out += [f"  %v1_{r} = load {self.part}, ptr %a{r}, align {self.l.size}"]
            out += [f"  %h{r} = getelementptr i8, ptr %a{r}, i64 %ahead"]
            out += [f"  call void @llvm.prefetch.p0(ptr %h{r}, i32 0, i32 2, i32 1)"]
        out += self.transpose()
        for c in range(self.w):
            name, lines = self.joined(c)
            out += [*lines, f"  %c{c} = getelementptr i8, ptr %base, i64 {c * self.l.bytes}"]
            out.append(f"  store {self.t} {name}, ptr %c{c}, align {self.l.bytes}")
        return out

    def store(self) -> list[str]:
        out = []
        for c in range(self.w):
            out += [f"  %c{c} = getelementptr i8, ptr %base, i64 {c * self.l.bytes}"]
            out += [f"  %x{c} = load {self.t}, ptr %c{c}, align {self.l.bytes}"]
            for g in range(self.groups):
                mask = _mask(range(g * self.w, (g + 1) * self.w))
                out.append(f"  %v1_{g * self.w + c} = shufflevector {self.t} %x{c}, {self.t} undef, {mask}")
        out += self.transpose()
        for r in range(self.rows):
            out += [f"  %a{r} = getelementptr i8, ptr %p{r}, i64 %f"]
            out += [f"  store {self.part} %v{self.w}_{r}, ptr %a{r}, align {self.l.size}"]
        return out

    def joined(self, c: int) -> tuple[str, list[str]]:
        """Column c of all groups as one vector."""
        names = [f"%v{self.w}_{g * self.w + c}" for g in range(self.groups)]
        size, out = self.w, []
        while len(names) > 1:
            kind, mask, new = f"<{size} x {self.l.scalar}>", _mask(range(2 * size)), []
            for k in range(0, len(names), 2):
                new.append(f"%y{c}_{size}_{k}")
                out.append(f"  {new[-1]} = shufflevector {kind} {names[k]}, {kind} {names[k + 1]}, {mask}")
            names, size = new, 2 * size
        return names[0], out

    def transpose(self) -> list[str]:
        """w log2 w shuffles per group, %v1_* to %v<w>_*: lane l of row i goes to lane i of row l."""
        w, d, out = self.w, 1, []
        while d < w:
            low = _mask(w + k - d if k & d else k for k in range(w))
            high = _mask(w + k if k & d else k + d for k in range(w))
            for i in (i for i in range(self.rows) if not i & d):
                pair = f"{self.part} %v{d}_{i}, {self.part} %v{d}_{i + d}"
                out.append(f"  %v{2 * d}_{i} = shufflevector {pair}, {low}")
                out.append(f"  %v{2 * d}_{i + d} = shufflevector {pair}, {high}")
            d *= 2
        return out


def _mask(lanes: Iterable[int]) -> str:
    items = [f"i32 {k}" for k in lanes]
    return f"<{len(items)} x i32> <{', '.join(items)}>"


def _width(size: int, lanes: int) -> int:
    """The widest block of a port: a power of two."""
    return min(lanes, 1 << size.bit_length() - 1)


# -- batch-last ---------------------------------------------------------------------------------------------


def _columns(l: Lanes) -> str:
    """For batches below W: copies of single scalars with the last sample repeated."""
    return _copy_few(l, "load") + _copy_few(l, "store")


def _copy_few(l: Lanes, way: str) -> str:
    source, target = ("%u", "%c") if way == "load" else ("%c", "%u")
    return f"""define internal void @{way}_narrow({_MOVED}) noinline {{
  br label %loop
loop:
  %j = phi i64 [0, %0], [%j2, %next]
  br label %lane
lane:
  %r = phi i64 [0, %loop], [%r2, %lane]
  %m = call i64 @llvm.smin.i64(i64 %r, i64 %last)
  %row = mul i64 %j, %stride
  %byte = mul i64 %m, {l.size}
  %at = add i64 %row, %byte
  %u = getelementptr i8, ptr %p, i64 %at
  %block = mul i64 %j, {l.bytes}
  %lanes = mul i64 %r, {l.size}
  %off = add i64 %block, %lanes
  %c = getelementptr i8, ptr %tile, i64 %off
  %v = load {l.scalar}, ptr {source}, align {l.size}
  store {l.scalar} %v, ptr {target}, align {l.size}
  %r2 = add i64 %r, 1
  %again = icmp slt i64 %r2, {l.lanes}
  br i1 %again, label %lane, label %next
next:
  %j2 = add i64 %j, 1
  %more = icmp slt i64 %j2, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


# -- the loop over tiles ------------------------------------------------------------------------------------


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


def _loop(low: Lowered, target: Target, room: Arena, rows: bool) -> str:
    """Load, compute, store per tile. Rows: a tile of outputs, cleared once, so that structural zeros stay.

    Batch-last: the kernel reads and writes the caller's arrays, and constants are filled in; fewer samples than
    lanes take the way over a tile.
    """
    l, w = target.of(target.lanes), target.lanes
    first = room.outputs[0] if room.outputs else room.status
    lines = [f"  %{n} = getelementptr i8, ptr %arena, i64 {k}" for n, k in
             (("out", first), ("status", room.status), ("scratch", room.scratch))]  # fmt: skip
    clear = [f"  call void @clear(ptr %out, i64 {(room.status - first) // l.bytes})", *_constants(low, l, room)]
    lines.append("  call void @clear(ptr %status, i64 1)")
    ports = [*low.inputs, *low.outputs]
    for i in range(len(ports)):
        lines += [f"  %pp{i} = getelementptr ptr, ptr %pointers, i64 {i}", f"  %p{i} = load ptr, ptr %pp{i}"]
        lines += [f"  %ss{i} = getelementptr i64, ptr %strides, i64 {i}", f"  %s{i} = load i64, ptr %ss{i}"]
        at = (*room.inputs, *room.outputs)[i]
        lines.append(f"  %tile{i} = getelementptr i8, ptr %arena, i64 {at}")
    lines += ["  %last = sub i64 %count, 1", f"  %tail = sub i64 %count, {w}"]
    if rows:
        lines += [*clear, "  br label %body"]
    else:
        lines += [*_first_tile(low, l), f"  %few = icmp slt i64 %count, {w}"]
        lines.append("  br i1 %few, label %small, label %body")
        lines += ["small:", *clear, *_tile(low, l, rows, True), "  br label %exit"]
    lines += ["body:", "  %b0 = phi i64 [0, %0], [%next, %body]"]
    clamp = "  %b = add i64 %b0, 0" if rows else "  %b = call i64 @llvm.smin.i64(i64 %b0, i64 %tail)"
    lines += [clamp, *_tile(low, l, rows, False), "  %begun = icmp ne i64 %b0, 0"]
    lines += [f"  %done = select i1 %begun, i64 {w}, i64 {w if rows else '%lead'}", "  %next = add i64 %b0, %done"]
    lines += ["  %more = icmp slt i64 %next, %count", "  br i1 %more, label %body, label %exit", "exit:"]
    bits = f"i{w}"
    lines += [f"  %bad = load {l.type}, ptr %status, align {l.bytes}", f"  %nan = fcmp uno {l.type} %bad, %bad"]
    lines += [f"  %word = bitcast {l.many('i1')} %nan to {bits}", f"  %any = icmp ne {bits} %word, 0"]
    lines += ["  %code = zext i1 %any to i32", "  ret i32 %code"]
    head = 'define i32 @drive(ptr %pointers, ptr %strides, i64 %count, ptr %arena) "stackrealign"'
    return head + " {\n" + "\n".join(lines) + "\n}\n"


def _first_tile(low: Lowered, l: Lanes) -> list[str]:
    """%lead: where the second tile begins, so that the largest result is written in whole cache lines from there.

    NumPy's arrays begin 16 bytes into a line. What both tiles hold is computed twice, to the same bits.
    """
    sizes = [p.size for p in low.outputs]
    if not sizes:
        return [f"  %lead = add i64 0, {l.lanes}"]
    i = len(low.inputs) + sizes.index(max(sizes))
    return [
        f"  %address = ptrtoint ptr %p{i} to i64",
        "  %before = sub i64 0, %address",
        f"  %within = and i64 %before, {l.bytes - 1}",
        f"  %whole = and i64 %s{i}, {l.bytes - 1}",
        f"  %samples = udiv i64 %within, {l.size}",
        "  %even = icmp eq i64 %whole, 0",
        f"  %long = icmp sge i64 %count, {_ALIGNED_FROM * l.lanes}",
        "  %apart = icmp ne i64 %samples, 0",
        "  %pays = and i1 %even, %long",
        "  %turn = and i1 %pays, %apart",
        f"  %lead = select i1 %turn, i64 %samples, i64 {l.lanes}",
    ]


def _tile(low: Lowered, l: Lanes, rows: bool, few: bool) -> list[str]:
    """One tile; few: of a batch-last array with fewer samples than lanes."""

    def move(way: str, i: int, size: int) -> str:
        kind = _width(size, l.lanes) if rows else "narrow"
        given = f"ptr %p{i}, i64 %s{i}, i64 {'%b' if rows else 0}, i64 %last, ptr %tile{i}, i64 {size}"
        return f"  call void @{way}_{kind}({given})"

    n = len(low.inputs)
    out = [move("load", i, p.size) for i, p in enumerate(low.inputs) if p.size]
    back = [move("store", n + i, p.size) for i, p in enumerate(low.outputs) if p.size]
    if rows:
        return [*out, "  call void @many(ptr %arena, ptr %out, ptr %scratch, ptr %status)", *back]
    ports = range(n + len(low.outputs))
    places = [f"ptr %tile{i}, i64 {l.bytes}" if few else f"ptr %u{i}, i64 %s{i}" for i in ports]
    call = f"  call void @many({', '.join([*places, 'ptr %scratch', 'ptr %status'])})"
    if few:
        return [*out, call, *back]
    out = [f"  %at = mul i64 %b, {l.size}"]
    out += [f"  %u{i} = getelementptr i8, ptr %p{i}, i64 %at" for i in ports]
    fixed = [i for i in range(len(low.outputs)) if _fixed(low, i)]
    return [*out, call, *(f"  call void @fill{i}(ptr %u{n + i}, i64 %s{n + i})" for i in fixed)]


def _fixed(low: Lowered, i: int) -> list[tuple[int, float]]:
    """Constant entries of an output: position, value."""
    found = ((k, e, low.constants.get(e >> 1)) for k, e in enumerate(low.stores[i]))
    return [(k, -x if e & 1 else x) for k, e, x in found if x is not None]


def _fills(low: Lowered, l: Lanes) -> str:
    """@fill<i>(out, step): the constant entries of output i, from a table."""
    return "".join(_fill(i, fixed, l) for i in range(len(low.stores)) if (fixed := _fixed(low, i)))


def _fill(i: int, fixed: list[tuple[int, float]], l: Lanes) -> str:
    n = len(fixed)
    places = ", ".join(f"i64 {k}" for k, _ in fixed)
    values = ", ".join(f"{l.scalar} {l.literal(x)}" for _, x in fixed)
    lane = f"<{l.lanes} x i32> zeroinitializer"
    return f"""@places{i} = private constant [{n} x i64] [{places}]
@values{i} = private constant [{n} x {l.scalar}] [{values}]
define internal void @fill{i}(ptr %p, i64 %step) noinline {{
  br label %loop
loop:
  %j = phi i64 [0, %0], [%j2, %loop]
  %c = getelementptr i64, ptr @places{i}, i64 %j
  %k = load i64, ptr %c
  %row = mul i64 %k, %step
  %to = getelementptr i8, ptr %p, i64 %row
  %d = getelementptr {l.scalar}, ptr @values{i}, i64 %j
  %x = load {l.scalar}, ptr %d
  %one = insertelement {l.type} poison, {l.scalar} %x, i32 0
  %all = shufflevector {l.type} %one, {l.type} poison, {lane}
  store {l.type} %all, ptr %to, align {l.size}
  %j2 = add i64 %j, 1
  %more = icmp slt i64 %j2, {n}
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def _constants(low: Lowered, l: Lanes, room: Arena) -> list[str]:
    out = []
    for i, edges in enumerate(low.stores):
        for k, e in enumerate(edges):
            x = low.constants.get(e >> 1)
            if x:
                offset, value = room.outputs[i] + k * l.bytes, l.const(-x if e & 1 else x)
                out.append(f"  %k{i}_{k} = getelementptr i8, ptr %arena, i64 {offset}")
                out.append(f"  store {l.type} {value}, ptr %k{i}_{k}, align {l.bytes}")
    return out


__all__ = ["Rows", "driver"]
