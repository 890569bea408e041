"""Compiled functions as custom calls of XLA, the compiler behind JAX.

The handlers by which XLA calls a batch driver on the processor: custom calls of its foreign function interface, no
Python in them.

Offsets are those of `xla/ffi/api/c_api.h`, version 0, on machines of 64 bits; `codegen.gpu.xla` compares that
file with what stands here, and the handler refuses smaller frames than it reads.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from ...errors import EmitError, InputError
from ..call.function import Function
from ..llvm.ir import I8, I32, I64, PTR, IRFunction, Module, Value
from ..store import native
from ..store.build import DTYPES, Spec
from ..store.key import key
from ..store.memo import persisted

# struct -> the fields that are read, or stand before those ("": of any name)
FRAME_FIELDS = {
    "XLA_FFI_CallFrame": ("struct_size", "extension_start", "api", "ctx", "stage", "args", "rets", "attrs"),
    "XLA_FFI_Args": ("struct_size", "extension_start", "size", "types", "args"),
    "XLA_FFI_Rets": ("struct_size", "extension_start", "size", "types", "rets"),
    "XLA_FFI_Buffer": ("struct_size", "extension_start", "dtype", "data", "rank", "dims"),
    "XLA_FFI_Metadata": ("struct_size", "api_version", "traits", "state_type_id"),
    "XLA_FFI_Error_Create_Args": ("struct_size", "extension_start", "message", "errc"),
    "XLA_FFI_Api": ("struct_size", "extension_start", "api_version", "internal_api", "XLA_FFI_Error_Create"),
}  # fmt: skip
XLA_API_VERSION = (0, 3)  # of the interface whose header was read
API, ARGS, RETS = 16, 72, 112  # in a call frame: the arrays of buffers lie 32 bytes into args (40) and rets (80)
FRAME_BYTES = 168  # bytes up to the attributes
DTYPE, DATA, RANK, DIMS = 16, 24, 32, 40  # in a buffer
METADATA, API_VERSION, TRAITS = 24, 8, 32  # in the extension, in the metadata
ERROR_CREATE, ERROR, INVALID = 48, 28, 3  # in the api, whose version has 24 bytes; its argument; INVALID_ARGUMENT
XLA_NUMBER = {"float": 11, "double": 12}
ADDRESS_TABLE = ("single", "drive", "malloc", "free")  # addresses, filled after loading; single may be 0
CACHE_LINE_BYTES = 64  # bytes of a cache line, where working memory begins
WRONG = "the arrays are not of the type and the sizes that the function takes"


def xla_text(
    inputs: Sequence[int], outputs: Sequence[tuple[int, ...]], scalar: str, memory: tuple[int, int], failed: str
) -> str:
    """ptr @handler(frame). inputs: sizes; outputs: shapes; memory: bytes that one sample and a batch work in;
    failed: what is said of a failed check."""
    f, data, n = _begun(inputs, outputs, scalar, len(ADDRESS_TABLE))
    m, sizes = f.module, [*inputs, *map(prod, outputs)]
    pointers, strides = _stored(data), f.alloca(I64, len(sizes))
    for k, size in enumerate(sizes):
        strides.at(k, I64).store(f.const(I64, size * (8 if scalar == "double" else 4)))
    single, drive, malloc, free = (
        f.const(PTR, "@addresses").at(k, PTR).load(PTR) for k in range(len(ADDRESS_TABLE))
    )
    with f.when(n.equals(1) & single.differs("null")):
        room, raw = _room(m, f.frame, malloc, memory[0])
        _finish(m, f.frame, f.call(I32, single, pointers, room), free, raw, failed)
    room, raw = _room(m, f.frame, malloc, memory[1])
    _finish(m, f.frame, f.call(I32, drive, pointers, strides, n, room, n), free, raw, failed)
    return m.text()


def _stored(values: Sequence[Value]) -> Value:
    """Addresses side by side, in memory."""
    f = values[0].f
    found = f.alloca(PTR, len(values))
    for k, x in enumerate(values):
        found.at(k, PTR).store(x)
    return found


def _begun(
    inputs: Sequence[int], outputs: Sequence[tuple[int, ...]], scalar: str, words: int
) -> tuple[IRFunction, list[Value], Value]:
    """@handler up to where it has checked its buffers: itself, where they lie, how many samples there are, at
    least one. words: addresses, filled after loading."""
    m = Module()
    m.words("addresses", words)
    _add_refuse(m)
    sizes = [*inputs, *map(prod, outputs)]
    f = m.function("handler", PTR, public=True, attributes=' "stackrealign"', frame=PTR)
    extension = f.frame.at(8, I8).load(PTR)
    with f.when(extension.differs("null")):
        _describe(extension)
    _require(m, f.frame.load(I64) >= FRAME_BYTES, f.frame, WRONG)
    args, rets = f.frame.at(ARGS, I8).load(PTR), f.frame.at(RETS, I8).load(PTR)
    buffers = [args.at(k, PTR).load(PTR) for k in range(len(inputs))]
    buffers += [rets.at(k, PTR).load(PTR) for k in range(len(outputs))]
    lead = buffers[len(inputs)].at(RANK, I8).load(I64) - len(outputs[0])
    n = _product(f.frame, buffers[len(inputs)], lead)
    fits = f.const("i1", "true")
    for b, size in zip(buffers, sizes):
        rank = b.at(RANK, I8).load(I64)
        fits = fits & b.at(DTYPE, I8).load(I32).equals(XLA_NUMBER[scalar]) & (rank >= 0)
        fits = fits & _product(f.frame, b, rank).equals(n * size)
    _require(m, fits, f.frame, WRONG)
    with f.when(n.equals(0)):
        f.ret("null")
    return f, [b.at(DATA, I8).load(PTR) for b in buffers], n


def _room(m: Module, frame: Value, malloc: Value, size: int) -> tuple[Value, Value]:
    """Working memory from the beginning of a cache line on, and what is to be freed."""
    raw = frame.f.call(PTR, malloc, size + CACHE_LINE_BYTES)
    _require(m, raw.differs("null"), frame, "there is not enough memory")
    return ((raw.cast("ptrtoint", I64) + (CACHE_LINE_BYTES - 1)) & -CACHE_LINE_BYTES).cast("inttoptr", PTR), raw


def _finish(m: Module, frame: Value, bad: Value, free: Value, raw: Value, failed: str) -> None:
    frame.f.call("void", free, raw)
    _require(m, bad.equals(0), frame, failed)
    frame.f.ret("null")


def _describe(extension: Value) -> None:
    """Answers XLA when a handler is registered: the version it was written for, and that it has no traits."""
    f = extension.f
    metadata = extension.at(METADATA, I8).load(PTR)
    version = metadata.at(API_VERSION, I8)
    for place, x in ((16, XLA_API_VERSION[0]), (20, XLA_API_VERSION[1])):
        version.at(place, I8).store(f.const(I32, x))
    metadata.at(TRAITS, I8).store(f.const(I32, 0))
    f.ret("null")


def _product(frame: Value, buffer: Value, axes: Value) -> Value:
    """The product of the first dimensions of a buffer."""
    f = frame.f
    dims = buffer.at(DIMS, I8).load(PTR)
    with f.loop(axes, total=f.const(I64, 1)) as s:
        s.total = s.total * dims.at(s.i, I64).load(I64)
    return s.total


def _require(m: Module, holds: Value, frame: Value, sentence: str) -> None:
    """Returns the error with this sentence where it does not hold."""
    f, name = frame.f, f"said{len(m.data)}"
    bytes_ = sentence.encode() + b"\0"
    m.constant(name, I8, [str(b) for b in bytes_])
    with f.when(~holds):
        f.ret(f.call(PTR, "refuse", frame, f.const(PTR, f"@{name}")))


def _add_refuse(m: Module) -> None:
    """An error of XLA's; it copies the message."""
    f = m.function("refuse", PTR, frame=PTR, message=PTR)
    create = f.frame.at(API, I8).load(PTR).at(ERROR_CREATE, I8).load(PTR)
    given = f.alloca(I64, 4)
    given.store(f.const(I64, ERROR))
    given.at(1, I64).store(f.const(I64, 0))
    given.at(2, PTR).store(f.message)
    given.at(3, I64).store(f.const(I64, INVALID))
    f.ret(f.call(PTR, create, given))


_LIVING_PROGRAMS: list[object] = []  # programs of XLA point to handlers for as long as the process lives


@lru_cache(maxsize=1)
def require_known(folder: str, version: str) -> None:
    """Raises InputError unless the interface of a jaxlib, by the headers in a folder, is the one we speak."""
    try:
        text = (Path(folder) / "xla/ffi/api/c_api.h").read_text()
    except OSError:
        raise InputError(f"jaxlib {version} has no header of its interface for foreign functions") from None
    number = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", text)
    unknown = [] if number and int(number[1]) == XLA_API_VERSION[0] else ["the version"]
    for name, fields in FRAME_FIELDS.items():
        body = re.search(rf"struct {name} {{(.*?)\n}};", text, re.S)
        found = re.findall(r"(\w+)\)?;", re.sub(r"//.*", "", body[1])) if body else []
        if len(found) < len(fields) or any(x not in ("", y) for x, y in zip(fields, found)):
            unknown.append(name)
    if unknown:
        raise InputError(
            f"jaxlib {version} has another interface for foreign functions than the one this version of drevo "
            f"knows ({', '.join(unknown)}); install an older jaxlib or a newer drevo"
        )


class Handler:
    """The function of C that XLA calls; results are those of the Function to the bit."""

    def __init__(self, function: Function) -> None:
        m, code = function.manifest, function.code
        if code is None:
            raise EmitError(f"{function.name} has no machine code on this machine, so XLA cannot call it")
        sizes = [prod(shape) for _, shape in function.inputs]
        failed = (
            f"{function.name}: a result is not finite or a quaternion not of unit length; the same call with "
            "NumPy arrays says which"
        )
        scalar, outputs = DTYPES[function.spec.dtype], [shape for _, shape in function.outputs]
        ir = xla_text(sizes, outputs, scalar, (m.scratch, m.arena), failed)
        self.code, (self.function, self.table) = code, _loaded(ir, len(ADDRESS_TABLE))
        memory = map(native.symbol_address, ("PyMem_RawMalloc", "PyMem_RawFree"))
        self.table[:] = [None, code.drive_address, *memory]
        _LIVING_PROGRAMS.append(self)

    def prepare_single(self) -> None:
        """Calls with one sample go to the code for one from now on, which is made at its first need."""
        if self.table[0] is None and self.code.has("single"):
            self.table[0] = self.code.find("single")


def _loaded(ir: str, words: int) -> tuple[Any, Any]:
    """The handler of a text, and its table of addresses."""
    loaded = native.Loaded(persisted(key(ir, Spec()), True, lambda: native.compile_text(ir)))
    table = (ctypes.c_void_p * words).from_address(loaded.address("addresses", data=True))
    _LIVING_PROGRAMS.append(loaded)
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(loaded.address("handler")), table
