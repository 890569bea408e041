"""Object code put into memory without LLVM, whose import would take most of a warm start.

Relocatable ELF of x86-64 on Linux, as LLVM emits it with the small code model: all sections in one piece, so that
every 32-bit distance fits, with jumps to the functions of C that LLVM calls of itself. Whatever else is in an
object is refused with ValueError.

Parts of object files that LLVM omits: exports of WebAssembly, an attribute that ARM's linkers want, sizes.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import EmitError

Array = np.ndarray[Any, Any]
_ELF_HEAD = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_SECTION = np.dtype([
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("address", "<u8"), ("offset", "<u8"), ("size", "<u8"),
    ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("each", "<u8"),
])  # fmt: skip
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                    ("size", "<u8")])  # fmt: skip
_RELOCATION = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS, _UNWIND = 1, 2, 4, 8, 0x70000001
_ALLOCATED, _EXECUTABLE = 2, 4
_ABSOLUTE, _NEAR, _BY_TABLE = (1,), (2, 4), (9, 41, 42)  # kinds: 64; PC32, PLT32; the GOTPCREL family
_LARGEST = 1 << 30
_OUTSIDE = ("memset", "memcpy", "memmove")  # for loops that fill and copy
_JUMP, _STUB_BYTES = b"\xff\x25\0\0\0\0", 16  # through the address that follows it; bytes of both


@lru_cache(maxsize=1)
def supported() -> bool:
    """True if this module loads objects here, and so they are made for it; with DREVO_LOADER=llvm LLVM does."""
    if os.environ.get("DREVO_LOADER") == "llvm":
        return False
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.byteorder == "little"


class Image:
    """An object in memory, which lives as long as this. ValueError, OSError where it cannot be loaded."""

    def __init__(self, obj: bytes) -> None:
        try:
            self._load(obj)
        except (IndexError, MemoryError, OverflowError) as error:  # numbers that no object has
            raise ValueError(f"no object: {error}") from None

    def _load(self, obj: bytes) -> None:
        self.obj, self.sections = obj, _sections(obj)
        self.symbols, names = self._symbols()
        called = [k for k, name in enumerate(names) if name in _OUTSIDE and not self.symbols["section"][k]]
        place, stubs, code, size = self._places(_STUB_BYTES * len(called))
        table = size  # a pointer for every symbol that is reached through one
        self.memory = mmap.mmap(
            -1,
            size + 8 * len(self.symbols),
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            mmap.PROT_READ | mmap.PROT_WRITE,
        )
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.bytes = np.frombuffer(self.memory, np.uint8)
        for i in np.flatnonzero((place >= 0) & (self.sections["type"] != _NOBITS)):
            data = np.frombuffer(obj, np.uint8, int(self.sections["size"][i]), int(self.sections["offset"][i]))
            self.bytes[place[i] : place[i] + len(data)] = data
        section = self.symbols["section"]
        inside = section < len(place)
        home = np.where(inside, place[np.where(inside, section, 0)], -1)
        self.at = np.where(home >= 0, home + self.symbols["value"].astype(np.int64), -1)
        for at, k in zip(range(stubs, code, _STUB_BYTES), called):
            address = ctypes.cast(getattr(ctypes.CDLL(None), names[k]), ctypes.c_void_p).value or 0
            stub = _JUMP + address.to_bytes(8, "little")
            self.bytes[at : at + len(stub)] = np.frombuffer(stub, np.uint8)
            self.at[k] = at
        pointers = np.where(self.at >= 0, self.at + self.base, 0).astype("<i8")
        self.bytes[table:] = pointers.view(np.uint8)
        for s in self.sections[self.sections["type"] == _RELA]:
            if place[s["info"]] >= 0:
                self._relocate(s, int(place[s["info"]]), table)
        _protect(self.base, code)
        self.names = {n: int(a) for n, a in zip(names, self.at) if n and a >= 0}
        del self.obj, self.sections, self.symbols, self.bytes, self.at

    def address(self, name: str) -> int:
        """The address of a function or a variable; 0 if there is none."""
        at = self.names.get(name)
        return 0 if at is None else self.base + at

    def _symbols(self) -> tuple[Array, list[str]]:
        (tables,) = np.nonzero(self.sections["type"] == _SYMTAB)
        if len(tables) != 1:
            raise ValueError("not one table of symbols")
        s = self.sections[tables[0]]
        symbols = np.frombuffer(self.obj, _SYMBOL, int(s["size"]) // _SYMBOL.itemsize, int(s["offset"]))
        text = self.sections[s["link"]]
        start, end = int(text["offset"]), int(text["offset"] + text["size"])
        ends = [self.obj.index(b"\0", start + int(k), end) for k in symbols["name"]]
        return symbols, [self.obj[start + int(k) : e].decode() for k, e in zip(symbols["name"], ends)]

    def _places(self, jumps: int) -> tuple[Array, int, int, int]:
        """Offsets of the sections in memory (-1: not loaded) and of the jumps, bytes of code and bytes in all."""
        s = self.sections
        loaded = (s["flags"] & _ALLOCATED != 0) & (s["size"] > 0) & (s["type"] != _UNWIND)
        if (
            not np.isin(s["type"][loaded], (_PROGBITS, _NOBITS)).all()
            or s["size"][loaded].max(initial=0) > _LARGEST
        ):
            raise ValueError("a section of an unknown kind")
        runs = loaded & (s["flags"] & _EXECUTABLE != 0)
        place, at = np.full(len(s), -1, np.int64), 0
        for group in (runs, loaded & ~runs):
            if group is not runs:
                stubs = -(-at // _STUB_BYTES) * _STUB_BYTES
                at = code = -(-(stubs + jumps) // mmap.PAGESIZE) * mmap.PAGESIZE
            for i in np.flatnonzero(group):
                align = max(1, int(s["align"][i]))
                place[i] = -(-at // align) * align
                at = int(place[i] + s["size"][i])
        return place, stubs, code, -(-at // 64) * 64

    def _relocate(self, s: Any, home: int, table: int) -> None:
        r = np.frombuffer(self.obj, _RELOCATION, int(s["size"]) // _RELOCATION.itemsize, int(s["offset"]))
        size = int(self.sections["size"][s["info"]])
        if not len(r):
            return
        target = self.at[r["symbol"]]
        if (target < 0).any() or int(r["offset"].max()) > size - 4:
            raise ValueError("a symbol from outside, or a place beyond its section")
        place = home + r["offset"].astype(np.int64)
        by_table = np.isin(r["kind"], _BY_TABLE)
        target = np.where(by_table, table + 8 * r["symbol"].astype(np.int64), target)
        near = by_table | np.isin(r["kind"], _NEAR)
        absolute = np.isin(r["kind"], _ABSOLUTE)
        if not (near | absolute).all() or (absolute & (r["offset"] > max(0, size - 8))).any():
            raise ValueError("a relocation of an unknown kind")
        self._put(place[near], (target + r["addend"] - place)[near], "<i4")
        self._put(place[absolute], (self.base + target + r["addend"])[absolute], "<i8")

    def _put(self, place: Array, value: Array, kind: str) -> None:
        word = value.astype(kind)
        if (word != value).any():
            raise ValueError("a distance that does not fit")
        size = word.dtype.itemsize
        self.bytes[place[:, None] + np.arange(size)] = word.view(np.uint8).reshape(-1, size)


def _sections(obj: bytes) -> Array:
    try:
        magic, bits, order, kind, machine, _, _, _, at, _, _, _, _, each, count, _ = _ELF_HEAD.unpack_from(obj)
    except struct.error:
        raise ValueError("no object") from None
    if (magic, bits, order, kind, machine, each) != (b"\x7fELF", 2, 1, _RELOCATABLE, _X86_64, _SECTION.itemsize):
        raise ValueError("no relocatable object of x86-64")
    sections = np.frombuffer(obj, _SECTION, count, at)
    if (sections["link"] >= count).any() or (sections["info"][sections["type"] == _RELA] >= count).any():
        raise ValueError("a section that is not there")
    return sections


def _protect(base: int, size: int) -> None:
    """Code may run and no longer be written."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if size and protect(base, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), "memory cannot be made executable")


CUSTOM, EXPORT, DATA_SECTION, DATA_COUNT = (
    0,
    7,
    11,
    12,
)  # sections of WebAssembly, section 5.5 of its specification
ELF, ELF_ARM = b"\x7fELF", 40
ARM_ATTRIBUTES, ALLOCATED, NO_BITS = 0x70000003, 2, 8
ANY_FLOATS = b"\x1c\x03"  # Tag_ABI_VFP_args = 3: arguments are in no float registers, so both conventions agree


def wasm_module(obj: bytes, names: Sequence[str]) -> bytes:
    """The object as a module that exports its first functions under these names; it imports a memory.

    What is inlined and has no data needs no linker: in one object all indices are final.
    """
    table = _leb(len(names)) + b"".join(_text(x) + b"\0" + _leb(k) for k, x in enumerate(names))
    section = bytes([EXPORT]) + _leb(len(table)) + table
    out, put = obj[:8], False
    for kind, body in _wasm_sections(obj):
        if kind in (DATA_SECTION, DATA_COUNT):
            raise EmitError("the WebAssembly object has data, which would need a linker")
        if kind == CUSTOM:  # the linker's own
            continue
        if kind > EXPORT and not put:
            out, put = out + section, True
        out += bytes([kind]) + _leb(len(body)) + body
    return out


def _wasm_sections(obj: bytes) -> Iterator[tuple[int, bytes]]:
    at = 8
    while at < len(obj):
        kind, size, shift, at = obj[at], 0, 0, at + 1
        while True:
            byte, at = obj[at], at + 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield kind, obj[at : at + size]
        at += size


def _leb(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def _text(name: str) -> bytes:
    return _leb(len(name)) + name.encode()


def with_any_floats(obj: bytes) -> bytes:
    """An object whose functions take pointers only; for 32-bit ARM marked to link with either float convention.

    The changed attributes go to the end of the file, and their section header points there.
    """
    if obj[:4] != ELF or struct.unpack_from("<H", obj, 18)[0] != ELF_ARM:
        return obj
    out = bytearray(obj)
    for at, kind, _, offset, size in _elf_sections(obj):
        if kind == ARM_ATTRIBUTES:
            body = bytearray(obj[offset : offset + size]) + ANY_FLOATS
            vendor = body.index(0, 5) - 4  # its name, with the zero
            for place in (1, 1 + 4 + vendor + 1):  # the lengths of the vendor's part and of the file's
                struct.pack_into("<I", body, place, struct.unpack_from("<I", body, place)[0] + len(ANY_FLOATS))
            struct.pack_into("<II", out, at + 16, len(out), len(body))
            return bytes(out + body)
    return obj


def loaded_size(obj: bytes) -> int:
    """Bytes of code and constants that an ELF object puts into memory; of other files their length."""
    if obj[:4] != ELF:
        return len(obj)
    return sum(size for _, kind, flags, _, size in _elf_sections(obj) if flags & ALLOCATED and kind != NO_BITS)


def _elf_sections(obj: bytes) -> Iterator[tuple[int, int, int, int, int]]:
    """(place of the header, type, flags, offset, size)."""
    wide = obj[4] == 2
    start = struct.unpack_from("<Q" if wide else "<I", obj, 40 if wide else 32)[0]
    each, count = struct.unpack_from("<HH", obj, 58 if wide else 46)
    for at in range(start, start + each * count, each):
        kind = struct.unpack_from("<I", obj, at + 4)[0]
        flags, _, offset, size = struct.unpack_from("<QQQQ" if wide else "<IIII", obj, at + 8)
        yield at, kind, flags, offset, size
