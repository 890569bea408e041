"""The Python entry point as LLVM IR: conforming arrays go straight to the kernel, everything else, unchanged,
to a Python function. The fast path raises nothing and holds no message, so odd cases have one implementation.

Nothing from outside is compiled in: pointers come through @table, which is filled after loading.
"""

from __future__ import annotations

from .llvm_target import Arena, Target
from .lower import Lowered, Port
from .objects import TABLE, Layout

ALIGNED, WRITEABLE = 0x100, 0x400
TYPE_NUMBER = {"double": 12, "float": 11}


class _Entry:
    """Writes the blocks of @entry."""

    def __init__(
        self, low: Lowered, target: Target, room: Arena, scratch: int, rows: bool, layout: Layout
    ) -> None:
        self.low, self.target, self.room, self.scratch, self.rows = low, target, room, scratch, rows
        self.layout, self.size = layout, target.of(1).size
        self.inputs, self.outputs = low.inputs, low.outputs
        if not rows:
            self.inputs, self.outputs = (
                tuple(Port(p.name, (p.size,)) for p in x) for x in (low.inputs, low.outputs)
            )
        self.lines: list[str] = []
        self.count = 0
        self.block = "start"

    # -- small words ----------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        self.count += 1
        self.put(f"%e{self.count} = {text}")
        return f"%e{self.count}"

    def label(self, name: str) -> None:
        self.lines.append(name + ":")
        self.block = name

    def new(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def field(self, base: str, offset: int, kind: str) -> str:
        address = self.let(f"getelementptr i8, ptr {base}, i64 {offset}")
        return self.let(f"load {kind}, ptr {address}")

    def table(self, name: str) -> str:
        return self.field("@table", 8 * TABLE.index(name), "ptr")

    def call(self, name: str, kind: str, *given: str) -> str:
        text = f"call {kind} {self.table(name)}({', '.join(given)})"
        if kind == "void":
            self.put(text)
            return ""
        return self.let(text)

    def need(self, *flags: str, other: str = "slow") -> None:
        """Goes on if all flags hold, to the slow function otherwise."""
        flag = flags[0] if flags else "true"
        for f in flags[1:]:
            flag = self.let(f"and i1 {flag}, {f}")
        after = self.new()
        self.put(f"br i1 {flag}, label %{after}, label %{other}")
        self.label(after)

    def equal(self, kind: str, a: str, b: str | int) -> str:
        return self.let(f"icmp eq {kind} {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.let(f"or i1 {a}, {b}")

    # -- arguments ------------------------------------------------------------------------------------------

    def arguments(self) -> str:
        """Positional arguments with an optional out, last or by name; gives the out or null."""
        n = len(self.inputs)
        self.put("%plain = icmp eq ptr %names, null")
        self.put("br i1 %plain, label %positional, label %named")
        self.label("positional")
        self.put(f"%exact = icmp eq i64 %nargs, {n}")
        self.put(f"%more = icmp eq i64 %nargs, {n + 1}")
        self.put("br i1 %exact, label %arrays, label %extra")
        self.label("extra")
        self.put("br i1 %more, label %given, label %slow")
        self.label("named")
        self.need(self.equal("i64", "%nargs", n))
        self.need(self.equal("i64", self.call("PyTuple_Size", "i64", "ptr %names"), 1))
        name = self.call("PyTuple_GetItem", "ptr", "ptr %names", "i64 0")
        self.need(self.equal("ptr", name, self.table("out")))
        self.put("br label %given")
        self.label("given")
        out = self.field("%args", 8 * n, "ptr")
        out = self.let(f"select i1 {self.equal('ptr', out, self.table('none'))}, ptr null, ptr {out}")
        self.put("br label %arrays")
        self.label("arrays")
        self.put(f"%user = phi ptr [null, %positional], [{out}, %given]")
        return "%user"

    def array(self, x: str, port: Port, flags: int) -> tuple[str, str, str, str]:
        """Checks one array; gives data, whether it is a batch, its size (1 if none) and its row stride."""
        base, k = self.layout.base, len(port.shape)
        self.need(self.equal("ptr", self.field(x, self.layout.type, "ptr"), self.table("ndarray")))
        have = self.let(f"and i32 {self.field(x, base + 48, 'i32')}, {flags}")
        rank = self.field(x, base + 8, "i32")
        batched = self.equal("i32", rank, k + 1)
        single = self.equal("i32", rank, k) if k else "false"  # 0-d arrays: their dims may be null
        good = self.equal("ptr", self.field(x, base + 40, "ptr"), self.table("dtype"))
        self.need(good, self.equal("i32", have, flags), self.either(batched, single))
        dims, strides = self.field(x, base + 16, "ptr"), self.field(x, base + 24, "ptr")
        wide = self.let(f"zext i1 {batched} to i64")
        self.tail(dims, strides, wide, port)
        # batch-last: the batch axis is the last one (index 1) and the row stride that of axis 0
        axis = 0 if self.rows else self.let(f"select i1 {batched}, i64 1, i64 0")
        size = self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr {dims}, i64 {axis}')}")
        step = self.field(strides, 0, "i64")
        size = self.let(f"select i1 {batched}, i64 {size}, i64 1")
        step = self.let(f"select i1 {batched}, i64 {step}, i64 0")
        return self.field(x, base, "ptr"), batched, size, step

    def tail(self, dims: str, strides: str, wide: str, port: Port) -> None:
        """The trailing dimensions are those of the port, packed; batch-last: (size, B) with unit last stride."""
        if not port.shape and self.rows:
            return
        if not self.rows:
            first = self.field(dims, 0, "i64")
            last = self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr {strides}, i64 {wide}')}")
            self.need(self.equal("i64", first, port.size), self.equal("i64", last, self.size))
            return
        flags, packed = [], self.size
        for axis in reversed(range(len(port.shape))):
            at = self.let(f"add i64 {wide}, {axis}")
            extent = self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr {dims}, i64 {at}')}")
            flags.append(self.equal("i64", extent, port.shape[axis]))
            if port.shape[axis] > 1:
                step = self.let(f"load i64, ptr {self.let(f'getelementptr i64, ptr {strides}, i64 {at}')}")
                flags.append(self.equal("i64", step, packed))
            packed *= max(1, port.shape[axis])
        self.need(*flags)

    def batch(self, arrays: list[tuple[str, str, str, str]]) -> tuple[str, str]:
        """Whether any input is a batch, and the common size. Batch-last: all or none."""
        any_, total = "false", "1"
        for k, (_, batched, size, _) in enumerate(arrays):
            if not k:
                any_, total = batched, size
                continue
            if self.rows:
                same = self.equal("i64", size, total)
                fresh = self.let(f"xor i1 {self.let(f'and i1 {batched}, {any_}')}, true")
                self.need(self.either(fresh, same))
                total = self.let(f"select i1 {batched}, i64 {size}, i64 {total}")
                any_ = self.either(any_, batched)
            else:
                self.need(self.equal("i1", batched, any_), self.equal("i64", size, total))
        return any_, total

    # -- results --------------------------------------------------------------------------------------------

    def user_outs(
        self, user: str, batched: str, total: str, arrays: list[tuple[str, str, str, str]]
    ) -> tuple[list[str], list[tuple[str, str]]]:
        """The caller's arrays, one or a tuple of them: the objects, and their data and row strides."""
        objects = [user]
        if len(self.outputs) > 1:
            plain = self.equal("ptr", self.field(user, self.layout.type, "ptr"), self.table("tuple"))
            self.need(self.either(plain, self.own_kind(user)))
            size = self.call("PyTuple_Size", "i64", f"ptr {user}")
            self.need(self.equal("i64", size, len(self.outputs)))
            objects = [
                self.call("PyTuple_GetItem", "ptr", f"ptr {user}", f"i64 {i}") for i in range(len(self.outputs))
            ]
        outs, spans = [], [self.span(x[0], p, x[1], total, x[3]) for x, p in zip(arrays, self.inputs)]
        self.need(*(self.let(f"icmp sge i64 {x[3]}, 0") for x in arrays))
        for x, port in zip(objects, self.outputs):
            out, span = self.user_out(x, port, batched, total)
            for other in spans:
                self.apart(span, other)
            outs.append(out)
            spans.append(span)
        return objects, outs

    def user_out(self, x: str, port: Port, batched: str, total: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """Checks one array: shape, packed rows that do not overlap; gives its data and row stride, its bytes."""
        data, wide, size, step = self.array(x, port, ALIGNED | WRITEABLE)
        self.need(self.equal("i1", wide, batched), self.equal("i64", size, total))
        single = self.let(f"icmp sle i64 {total}, 1")
        row = port.size * self.size if self.rows else f"{self.let(f'mul i64 {total}, {self.size}')}"
        apart = self.let(f"icmp sge i64 {step}, {row}")
        self.need(self.either(apart, single) if self.rows else self.either(apart, self.equal("i1", wide, "false")))
        return (data, self.step(wide, step)), self.span(data, port, wide, total, step)

    def apart(self, a: tuple[str, str], b: tuple[str, str]) -> None:
        """Two arrays share no memory."""
        self.need(self.either(self.let(f"icmp ule i64 {b[1]}, {a[0]}"), self.let(f"icmp ule i64 {a[1]}, {b[0]}")))

    def span(self, data: str, port: Port, batched: str, total: str, step: str) -> tuple[str, str]:
        """The bytes of an array, as integers."""
        first = self.let(f"ptrtoint ptr {data} to i64")
        if self.rows:
            many, row = self.let(f"sub i64 {total}, 1"), str(port.size * self.size)
        else:
            many, row = str(max(0, port.size - 1)), self.let(f"mul i64 {total}, {self.size}")
            # a single sample lies along the columns
            row = self.let(f"select i1 {batched}, i64 {row}, i64 {port.size * self.size}")
        length = self.let(f"add i64 {self.let(f'mul i64 {step}, {many}')}, {row}")
        return first, self.let(f"add i64 {first}, {length}")

    def allocate(self, batched: str, total: str) -> list[str]:
        """New arrays for all outputs; gives the objects."""
        made: list[str] = []
        number = TYPE_NUMBER[self.target.scalar]
        for i, port in enumerate(self.outputs):
            axes = [total, *map(str, port.shape)] if self.rows else [str(port.size), total]
            for k, extent in enumerate(axes):
                self.put(f"store i64 {extent}, ptr {self.let(f'getelementptr i64, ptr %dims{i}, i64 {k}')}")
            begin = f"%dims{i}"
            if self.rows:
                begin = self.let(
                    f"select i1 {batched}, ptr %dims{i}, ptr {self.let(f'getelementptr i64, ptr %dims{i}, i64 1')}"
                )
            rank = self.let(f"select i1 {batched}, i32 {len(axes)}, i32 {len(axes) - 1}")
            x = self.call("PyArray_New", "ptr", f"ptr {self.table('ndarray')}", f"i32 {rank}", f"ptr {begin}",
                          f"i32 {number}", "ptr null", "ptr null", "i32 0", "i32 0", "ptr null")  # fmt: skip
            self.out_of_memory(x, made)
            made.append(x)
        return made

    def release(self, made: list[str]) -> None:
        for x in made:
            self.call("Py_DecRef", "void", f"ptr {x}")

    # -- the work -------------------------------------------------------------------------------------------

    def compute(
        self, arrays: list[tuple[str, str, str, str]], outs: list[tuple[str, str]], total: str, fail: str
    ) -> str:
        """Runs the kernel; gives an i32 that is not 0 if a check failed."""
        if not self.target.single:
            return self.tiles(arrays, outs, total, fail)[0]
        one, many, after = self.new(), self.new(), self.new()
        unbatched = self.let(f"icmp eq i64 {total}, 1")
        if not self.rows:  # a batch of one has its columns apart
            flat = [self.equal("i1", a[1], "false") for a in arrays[:1]]
            unbatched = flat[0] if flat else unbatched
        self.put(f"br i1 {unbatched}, label %{one}, label %{many}")
        self.label(one)
        first, one = self.single(arrays, outs, fail)
        self.put(f"br label %{after}")
        self.label(many)
        second, many = self.tiles(arrays, outs, total, fail)
        self.put(f"br label %{after}")
        self.label(after)
        return self.let(f"phi i32 [{first}, %{one}], [{second}, %{many}]")

    def single(
        self, arrays: list[tuple[str, str, str, str]], outs: list[tuple[str, str]], fail: str
    ) -> tuple[str, str]:
        t = self.target.scalar
        scratch = self.memory(self.scratch, fail) if self.scratch else "null"
        self.put(f"store {t} 0.0, ptr %status")
        given = [f"ptr {x[0]}" for x in (*arrays, *outs)] + [f"ptr {scratch}", "ptr %status"]
        self.put(f"call void @one({', '.join(given)})")
        if self.scratch:
            self.call("PyMem_RawFree", "void", f"ptr {scratch}")
        bad = self.let(f"load {t}, ptr %status")
        flag = self.let(f"fcmp uno {t} {bad}, {bad}")
        return self.let(f"zext i1 {flag} to i32"), self.block

    def tiles(
        self, arrays: list[tuple[str, str, str, str]], outs: list[tuple[str, str]], total: str, fail: str
    ) -> tuple[str, str]:
        pairs = [(a[0], self.step(a[1], a[3])) for a in arrays] + outs
        for k, (data, step) in enumerate(pairs):
            self.put(f"store ptr {data}, ptr {self.let(f'getelementptr ptr, ptr %pointers, i64 {k}')}")
            self.put(f"store i64 {step}, ptr {self.let(f'getelementptr i64, ptr %strides, i64 {k}')}")
        raw = self.memory(self.room.total + 64, fail)
        up = self.let(f"add i64 {self.let(f'ptrtoint ptr {raw} to i64')}, 63")
        arena = self.let(f"inttoptr i64 {self.let(f'and i64 {up}, -64')} to ptr")
        limit = self.let(f"ptrtoint ptr {self.table('threshold')} to i64")
        big = self.let(f"icmp uge i64 {total}, {limit}")
        given = f"(ptr %pointers, ptr %strides, i64 {total}, ptr {arena}, i64 {total})"
        long, short, after = self.new(), self.new(), self.new()
        self.put(f"br i1 {big}, label %{long}, label %{short}")
        self.label(long)
        thread = self.call("PyEval_SaveThread", "ptr")
        first = self.let(f"call i32 @drive{given}")
        self.call("PyEval_RestoreThread", "void", f"ptr {thread}")
        self.put(f"br label %{after}")
        self.label(short)
        second = self.let(f"call i32 @drive{given}")
        self.put(f"br label %{after}")
        self.label(after)
        code = self.let(f"phi i32 [{first}, %{long}], [{second}, %{short}]")
        self.call("PyMem_RawFree", "void", f"ptr {raw}")
        return code, self.block

    def step(self, batched: str, step: str) -> str:
        """Of a single batch-last sample the columns lie side by side."""
        return step if self.rows else self.let(f"select i1 {batched}, i64 {step}, i64 {self.size}")

    def memory(self, size: int, fail: str) -> str:
        raw = self.call("PyMem_RawMalloc", "ptr", f"i64 {size}")
        self.need(self.let(f"icmp ne ptr {raw}, null"), other=fail)
        return raw

    def finish(self, made: list[str], code: str) -> None:
        """The result of new arrays: one array, or all in a named tuple."""
        good = self.equal("i32", code, 0)
        self.put(f"br i1 {good}, label %finished, label %failed")
        self.label("failed")
        self.release(made)
        self.put("br label %slow")
        self.label("finished")
        self.put(
            f"ret ptr {self.bundle([self.scalar(x) if not p.shape else x for x, p in zip(made, self.outputs)])}"
        )

    def bundle(self, made: list[str]) -> str:
        """One result, or all in a named tuple; takes the references over."""
        if len(made) == 1:
            return made[0]
        plain = self.call("PyTuple_New", "ptr", f"i64 {len(made)}")
        self.out_of_memory(plain, made)
        for k, x in enumerate(made):
            self.call("PyTuple_SetItem", "i32", f"ptr {plain}", f"i64 {k}", f"ptr {x}")
        self.put(f"store ptr {plain}, ptr %pointers")
        given = (f"ptr {self.table('results')}", "ptr %pointers", "i64 1", "ptr null")
        named = self.call("PyObject_Vectorcall", "ptr", *given)
        self.call("Py_DecRef", "void", f"ptr {plain}")
        return named

    def out_of_memory(self, x: str, made: list[str]) -> None:
        """Without x there is an exception set: give back what was made; `slow` has a sentence for it."""
        missing, after = self.new(), self.new()
        self.put(f"br i1 {self.equal('ptr', x, 'null')}, label %{missing}, label %{after}")
        self.label(missing)
        self.release(made)
        self.call("PyErr_Clear", "void")
        self.put("br label %slow")
        self.label(after)

    def scalar(self, x: str) -> str:
        """A 0-d array becomes a NumPy scalar, as everywhere in NumPy; the reference is taken over."""
        return self.call("PyArray_Return", "ptr", f"ptr {x}")

    # -- the whole ------------------------------------------------------------------------------------------

    def text(self) -> str:
        ports = len(self.inputs) + len(self.outputs)
        self.put(f"%pointers = alloca [{ports} x ptr]")
        self.put(f"%strides = alloca [{ports} x i64]")
        self.put(f"%status = alloca {self.target.scalar}")
        for i, p in enumerate(self.outputs):
            self.put(f"%dims{i} = alloca [{len(p.shape) + 1} x i64]")
        user = self.arguments()
        arrays = [self.array(self.field("%args", 8 * i, "ptr"), p, ALIGNED) for i, p in enumerate(self.inputs)]
        batched, total = self.batch(arrays)
        self.need(self.let(f"icmp ne i64 {total}, 0"))
        self.put(f"br i1 {self.equal('ptr', user, 'null')}, label %fresh, label %own")
        self.label("own")
        self.with_out(user, batched, total, arrays)
        self.label("fresh")
        made = self.allocate(batched, total)
        outs = [self.place(x, i, total) for i, x in enumerate(made)]
        self.finish(made, self.compute(arrays, outs, total, "failed"))
        self.label("slow")
        self.put(f"ret ptr {self.slow()}")
        head = "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %names) {\nstart:\n"
        table = f"@table = global [{len(TABLE)} x ptr] zeroinitializer, align 64\n"
        return table + head + "\n".join(self.lines) + "\n}\n"

    def with_out(self, user: str, batched: str, total: str, arrays: list[tuple[str, str, str, str]]) -> None:
        objects, outs = self.user_outs(user, batched, total, arrays)
        code = self.compute(arrays, outs, total, "slow")
        self.need(self.equal("i32", code, 0))
        if len(objects) > 1:
            own, other = self.new(), self.new()
            self.put(f"br i1 {self.own_kind(user)}, label %{own}, label %{other}")
            self.label(own)
            self.call("Py_IncRef", "void", f"ptr {user}")
            self.put(f"ret ptr {user}")
            self.label(other)
        for x in objects:
            self.call("Py_IncRef", "void", f"ptr {x}")
        self.put(f"ret ptr {self.bundle(objects)}")

    def own_kind(self, x: str) -> str:
        """Whether an object is what an earlier call has returned."""
        return self.equal("ptr", self.field(x, self.layout.type, "ptr"), self.table("results"))

    def place(self, x: str, i: int, total: str) -> tuple[str, str]:
        """Data and row stride of a fresh array."""
        step = str(self.outputs[i].size * self.size)
        if not self.rows:
            step = self.let(f"mul i64 {total}, {self.size}")
        return self.field(x, self.layout.base, "ptr"), step

    def slow(self) -> str:
        given = (f"ptr {self.table('slow')}", "ptr %args", "i64 %nargs", "ptr %names")
        return self.call("PyObject_Vectorcall", "ptr", *given)


def entry(low: Lowered, target: Target, room: Arena, scratch: int, layout: str, objects: Layout) -> str:
    """The text of @table and @entry. `layout`: "rows" or "batch_last"; `objects`: the interpreter's offsets."""
    return _Entry(low, target, room, scratch, layout == "rows", objects).text()


__all__ = ["entry"]
