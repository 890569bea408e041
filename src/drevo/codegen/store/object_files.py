"""Parts of object files that LLVM leaves out: exports of WebAssembly, an attribute for ARM's linkers, sizes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from ...errors import EmitError

CUSTOM, EXPORT, DATA_SECTION, DATA_COUNT = 0, 7, 11, 12  # sections of WebAssembly, 5.5 of its specification
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
