"""Row-major arrays: W rows transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from .llvm_math import Lanes
from .llvm_target import LINE

MOVED = "ptr %p, i64 %stride, i64 %b, i64 %last, ptr %tile, i64 %n"  # of every function that moves a tile
_TILES_AHEAD = 4  # of the prefetch of rows; 1 to 4 differ by 3 %


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
        head = f"define internal void @{way}_{self.w}({MOVED}) noinline"
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


def width_of(size: int, lanes: int) -> int:
    """The widest block of a port: a power of two."""
    return min(lanes, 1 << size.bit_length() - 1)


def flush(l: Lanes) -> str:
    """@flush(from, to, n): n bytes, whole cache lines past the caches."""
    vectors = []
    for k in range(LINE // l.bytes):
        vectors += [
            f"  %r{k} = add i64 %i, {k * l.bytes}",
            f"  %a{k} = getelementptr i8, ptr %from, i64 %r{k}",
            f"  %b{k} = getelementptr i8, ptr %to, i64 %r{k}",
            f"  %x{k} = load {l.type}, ptr %a{k}, align {l.size}",
            f"  store {l.type} %x{k}, ptr %b{k}, align {l.bytes}, !nontemporal !0",
        ]
    body = [
        "  %address = ptrtoint ptr %to to i64",
        "  %minus = sub i64 0, %address",
        f"  %head = and i64 %minus, {LINE - 1}",
        "  call void @few(ptr %from, ptr %to, i64 0, i64 %head)",
        "  br label %test",
        "test:",
        "  %i = phi i64 [%head, %0], [%i2, %lines]",
        f"  %i2 = add i64 %i, {LINE}",
        "  %fits = icmp ule i64 %i2, %n",
        "  br i1 %fits, label %lines, label %rest",
        "lines:",
        *vectors,
        "  br label %test",
        "rest:",
        "  call void @few(ptr %from, ptr %to, i64 %i, i64 %n)",
        "  fence seq_cst",  # what went past the caches is seen before anything that follows
        "  ret void",
    ]
    few = f"""define internal void @few(ptr noalias %from, ptr noalias %to, i64 %first, i64 %end) noinline {{
  br label %test
test:
  %i = phi i64 [%first, %0], [%i2, %item]
  %go = icmp ult i64 %i, %end
  br i1 %go, label %item, label %done
item:
  %a = getelementptr i8, ptr %from, i64 %i
  %b = getelementptr i8, ptr %to, i64 %i
  %x = load {l.scalar}, ptr %a, align {l.size}
  store {l.scalar} %x, ptr %b, align {l.size}
  %i2 = add i64 %i, {l.size}
  br label %test
done:
  ret void
}}
"""
    head = "define internal void @flush(ptr noalias %from, ptr noalias %to, i64 %n) noinline"
    return few + head + " {\n" + "\n".join(body) + "\n}\n!0 = !{i32 1}\n"


__all__ = ["MOVED", "Rows", "flush", "width_of"]
