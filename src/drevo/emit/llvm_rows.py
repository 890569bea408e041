"""Row-major arrays: W rows transposed in registers, one tile of W samples at a time.

Surplus lanes of the last tile recompute the last sample and store the same bits to the same row, so there is
no remainder loop, no mask over samples and no write outside the caller's rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from .llvm_math import Lanes

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


__all__ = ["MOVED", "Rows", "width_of"]
