"""Batch-last arrays: the kernel reads and writes the caller's own rows.

Where that would be slow, some tiles are computed into a stage in the arena, and every row of it is then copied
in one run: results whose rows lie a multiple of FOLD apart, as all rows then compete for the same few lines of
the first cache; and results that no cache holds, which then go past the caches. Measured on the poses of the
Panda: 93 ns a sample became 19 at 1,024 samples, 88 became 25 at 100,000.
"""

from __future__ import annotations

from .llvm_math import Lanes
from .llvm_rows import MOVED
from .llvm_target import BEYOND, LINE, Arena
from .lower import Lowered

ALIGNED_FROM = 8  # tiles: one more of them pays if the others write whole cache lines
FOLD = 2048  # bytes between rows: 64 lines of 64 bytes in the first cache of most processors, so two are used


class Columns:
    """The text of the batch-last loop: a first tile that reaches a cache line, staged runs of tiles, tiles."""

    def __init__(self, low: Lowered, l: Lanes, room: Arena) -> None:
        self.low, self.l, self.room = low, l, room
        self.n = len(low.inputs)
        self.ports = range(self.n + len(low.outputs))
        sizes = [p.size for p in low.outputs]
        self.widest = sizes.index(max(sizes)) if sizes else None
        self.fixed = [i for i in range(len(sizes)) if constants(low, i)]

    def functions(self) -> str:
        """What the loop calls."""
        fills = "".join(_fill(i, constants(self.low, i), self.l) for i in self.fixed)
        copies = _copy_few(self.l, "load") + _copy_few(self.l, "store")
        return copies + fills + (_spill(self.l, self.room) if self.room.run else "")

    def small(self) -> list[str]:
        """One tile over the arena, for fewer samples than lanes."""
        every = [*self.low.inputs, *self.low.outputs]

        def move(way: str, i: int) -> str:
            given = f"ptr %p{i}, i64 %s{i}, i64 0, i64 %last, ptr %tile{i}, i64 {every[i].size}"
            return f"  call void @{way}_narrow({given})"

        tiles = [(f"%tile{i}", f"{self.l.bytes}") for i in self.ports]
        moves = [[move(way, i) for i in part if every[i].size] for way, part in
                 (("load", self.ports[: self.n]), ("store", self.ports[self.n :]))]  # fmt: skip
        return [*moves[0], self.many(tiles), *moves[1]]

    def many(self, places: list[tuple[str, str]]) -> str:
        """The call of the kernel with a pointer and the step of the rows per port."""
        given = [f"ptr {p}, i64 {s}" for p, s in places]
        return f"  call void @many({', '.join([*given, 'ptr %scratch', 'ptr %status'])})"

    def at(self, names: str, index: str, ports: range) -> list[str]:
        """%<names><i>: where sample `index` stands in each port."""
        out = [f"  %{names}_at = mul i64 {index}, {self.l.size}"]
        return out + [f"  %{names}{i} = getelementptr i8, ptr %p{i}, i64 %{names}_at" for i in ports]

    def loop(self) -> list[str]:
        """From %wide to %exit."""
        run, w = self.room.run, self.l.lanes
        staged = self.room.run > 0
        out = ["wide:", *self.first_tile(), *(self.prepare() if staged else [])]
        out += ["  br label %body", "body:"]
        sources = ["[0, %ready]" if staged else "[0, %wide]", "[%next, %tile]"]
        out.append(f"  %b0 = phi i64 {', '.join([*sources, '[%after, %spill]'] if staged else sources)}")
        if staged:
            out += ["  %whole_run = icmp sle i64 %b0, %limit", "  %begun0 = icmp ne i64 %b0, 0"]
            out += ["  %go = and i1 %whole_run, %begun0", "  br i1 %go, label %block, label %tile"]
            out += [*self.block(run), "tile:"]
        else:
            out += ["  br label %tile", "tile:"]
        out += ["  %b = call i64 @llvm.smin.i64(i64 %b0, i64 %tail)", *self.at("u", "%b", self.ports)]
        out.append(self.many([(f"%u{i}", f"%s{i}") for i in self.ports]))
        out += [f"  call void @fill{i}(ptr %u{self.n + i}, i64 %s{self.n + i})" for i in self.fixed]
        out += ["  %begun = icmp ne i64 %b0, 0", f"  %done = select i1 %begun, i64 {w}, i64 %lead"]
        out += ["  %next = add i64 %b0, %done", "  %more = icmp slt i64 %next, %count"]
        return [*out, "  br i1 %more, label %body, label %exit"]

    def first_tile(self) -> list[str]:
        """%lead: where the second tile begins: from there the largest result is written in whole cache lines.

        NumPy's arrays begin 16 bytes into a line. What both tiles hold is computed twice, to the same bits.
        """
        l = self.l
        if self.widest is None:
            return [f"  %lead = add i64 0, {l.lanes}"]
        i = self.n + self.widest
        return [
            f"  %address = ptrtoint ptr %p{i} to i64",
            "  %before = sub i64 0, %address",
            f"  %within = and i64 %before, {l.bytes - 1}",
            f"  %whole = and i64 %s{i}, {l.bytes - 1}",
            f"  %samples = udiv i64 %within, {l.size}",
            "  %even = icmp eq i64 %whole, 0",
            f"  %long = icmp sge i64 %count, {ALIGNED_FROM * l.lanes}",
            "  %apart = icmp ne i64 %samples, 0",
            "  %pays = and i1 %even, %long",
            "  %turn = and i1 %pays, %apart",
            f"  %lead = select i1 %turn, i64 %samples, i64 {l.lanes}",
        ]

    # -- the stage ------------------------------------------------------------------------------------------

    def prepare(self) -> list[str]:
        """%limit: the last sample at which a staged run may begin, -1 without any. Constants go in once."""
        assert self.widest is not None
        room, l, n = self.room, self.l, self.n
        i, rows = n + self.widest, self.low.outputs[self.widest].size
        out = [f"  %stage{n + k} = getelementptr i8, ptr %arena, i64 {at}" for k, at in enumerate(room.stages)]
        out += [
            f"  %folded = and i64 %s{i}, {FOLD - 1}",
            "  %folds = icmp eq i64 %folded, 0",
            f"  %bytes = mul i64 %s{i}, {rows}",
            f"  %past = icmp ugt i64 %bytes, {BEYOND}",
            "  %staged = or i1 %folds, %past",
            f"  %room = sub i64 %count, {room.run * l.lanes}",
            "  %limit = select i1 %staged, i64 %room, i64 -1",
            "  br i1 %staged, label %constants, label %ready",
            "constants:",
        ]
        for k in self.fixed:
            for tile in range(room.run):
                name = f"%stage{n + k}_{tile}"
                out.append(f"  {name} = getelementptr i8, ptr %stage{n + k}, i64 {tile * l.bytes}")
                out.append(f"  call void @fill{k}(ptr {name}, i64 {room.step(l)})")
        return [*out, "  br label %ready", "ready:"]

    def block(self, run: int) -> list[str]:
        """`run` tiles into the stage, then its rows to the caller's."""
        l, inputs, outputs = self.l, self.ports[: self.n], self.ports[self.n :]
        out = ["block:", "  br label %staging", "staging:", "  %k = phi i64 [0, %block], [%k2, %staging]"]
        out += [f"  %k_samples = mul i64 %k, {l.lanes}", "  %bk = add i64 %b0, %k_samples"]
        out += [*self.at("v", "%bk", inputs), f"  %k_bytes = mul i64 %k, {l.bytes}"]
        out += [f"  %v{i} = getelementptr i8, ptr %stage{i}, i64 %k_bytes" for i in outputs]
        steps = [f"%s{i}" if i < self.n else f"{self.room.step(l)}" for i in self.ports]
        out.append(self.many([(f"%v{i}", s) for i, s in zip(self.ports, steps)]))
        out += ["  %k2 = add i64 %k, 1", f"  %k_more = icmp slt i64 %k2, {run}"]
        out += ["  br i1 %k_more, label %staging, label %spill", "spill:", *self.at("w", "%b0", outputs)]
        for i in outputs:
            given = f"ptr %stage{i}, ptr %w{i}, i64 %s{i}, i64 {self.low.outputs[i - self.n].size}, i1 %past"
            out.append(f"  call void @spill({given})")
        out += [f"  %after = add i64 %b0, {run * l.lanes}", "  %after_more = icmp slt i64 %after, %count"]
        return [*out, "  br i1 %after_more, label %body, label %exit"]


def constants(low: Lowered, i: int) -> list[tuple[int, float]]:
    """Constant entries of an output: position, value."""
    found = ((k, e, low.constants.get(e >> 1)) for k, e in enumerate(low.stores[i]))
    return [(k, -x if e & 1 else x) for k, e, x in found if x is not None]


def _spill(l: Lanes, room: Arena) -> str:
    """@spill(stage, out, stride, n, past): n rows of the stage; past the caches if they are whole lines."""

    def rows(name: str, hint: str, align: int, then: str) -> list[str]:
        at = [f"{name}:", f"  %j{name} = phi i64 [0, %0], [%n{name}, %{name}]"]
        at += [f"  %f{name} = mul i64 %j{name}, {room.step(l)}", f"  %g{name} = mul i64 %j{name}, %stride"]
        at += [f"  %a{name} = getelementptr i8, ptr %stage, i64 %f{name}"]
        at += [f"  %b{name} = getelementptr i8, ptr %out, i64 %g{name}"]
        for k in range(room.run):
            at += [f"  %c{name}{k} = getelementptr i8, ptr %a{name}, i64 {k * l.bytes}"]
            at += [f"  %d{name}{k} = getelementptr i8, ptr %b{name}, i64 {k * l.bytes}"]
            at += [f"  %x{name}{k} = load {l.type}, ptr %c{name}{k}, align {l.bytes}"]
            at += [f"  store {l.type} %x{name}{k}, ptr %d{name}{k}, align {align}{hint}"]
        at += [f"  %n{name} = add i64 %j{name}, 1", f"  %m{name} = icmp slt i64 %n{name}, %n"]
        return [*at, f"  br i1 %m{name}, label %{name}, label %{then}"]

    body = [
        "  %address = ptrtoint ptr %out to i64",
        "  %either = or i64 %address, %stride",
        f"  %within = and i64 %either, {LINE - 1}",
        "  %lines = icmp eq i64 %within, 0",
        "  %stream = and i1 %lines, %past",
        "  br i1 %stream, label %away, label %near",
        *rows("away", ", !nontemporal !0", l.bytes, "seen"),
        *rows("near", "", l.size, "done"),
        "seen:",
        "  fence seq_cst",  # what went past the caches is seen before anything that follows
        "  br label %done",
        "done:",
        "  ret void",
    ]
    head = (
        "define internal void @spill(ptr noalias %stage, ptr noalias %out, i64 %stride, i64 %n, i1 %past) noinline"
    )
    return f"{head} {{\n" + "\n".join(body) + "\n}\n!0 = !{i32 1}\n"


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


def _copy_few(l: Lanes, way: str) -> str:
    source, target = ("%u", "%c") if way == "load" else ("%c", "%u")
    return f"""define internal void @{way}_narrow({MOVED}) noinline {{
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


__all__ = ["ALIGNED_FROM", "FOLD", "Columns", "constants"]
