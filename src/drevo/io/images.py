"""Heights of fields out of files: PNG images, and MuJoCo's own format. Bounded; nothing is executed."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from ..errors import ModelError

Array = np.ndarray[Any, Any]
SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by PNG's number of a colour type
PALETTE = 3  # the colour type whose pixels are numbers of colours


def read_heights(data: bytes, most: int) -> Array:
    """Rows of heights, (rows, columns), the upper first: grey or red of a PNG image, the high bytes where it has
    16 bits, or the numbers of MuJoCo's format. ModelError for what is neither, and for more than `most` heights.

    W3C 2003, Portable Network Graphics (PNG) Specification, second edition, sections 9 and 11.
    """
    try:
        return _png(data, most) if data.startswith(SIGNATURE) else _field(data, most)
    except (struct.error, zlib.error, KeyError, IndexError, ValueError) as error:
        raise ModelError(f"no PNG image or field of MuJoCo, or cut off ({error}); export it again") from None


def _bounded(rows: int, columns: int, most: int) -> None:
    if min(rows, columns) < 2 or rows * columns > most:
        raise ModelError(f"it has {rows} x {columns} heights; at least 2 x 2 and up to {most} are read")


def _field(data: bytes, most: int) -> Array:
    rows, columns = struct.unpack_from("<ii", data)
    _bounded(rows, columns, most)
    heights = np.frombuffer(data, "<f4", rows * columns, 8).reshape(rows, columns)[::-1]
    if not np.isfinite(heights).all():
        raise ModelError("it has heights that are not finite; export it again")
    return heights


def _png(data: bytes, most: int) -> Array:
    chunks, at = dict[bytes, bytearray](), len(SIGNATURE)
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        chunks.setdefault(kind, bytearray()).extend(data[at + 8 : at + 8 + size])
        at += size + 12
    columns, rows, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    _bounded(rows, columns, most)
    if depth not in (8, 16) or interlaced:
        raise ModelError("a PNG image of less than 8 bits, or interlaced, is not read; save it as a plain one")
    pixel = CHANNELS[colours] * depth // 8
    line = 1 + columns * pixel
    packed = zlib.decompressobj().decompress(chunks[b"IDAT"], rows * line)
    lines = np.frombuffer(packed, np.uint8, rows * line).reshape(rows, line)
    above, out = [0] * columns, np.empty((rows, columns), np.uint8)
    for k, (rule, given) in enumerate(zip(lines[:, 0].tolist(), lines[:, 1::pixel].tolist())):
        out[k] = above = _unfiltered(rule, given, above)
    return np.frombuffer(chunks[b"PLTE"], np.uint8)[3 * out.astype(int)] if colours == PALETTE else out


def _unfiltered(rule: int, given: list[int], above: list[int]) -> list[int]:
    """A row of one channel, of which differences from what is left, above and between these two are given."""
    row, left, corner = list[int](), 0, 0
    for x, up in zip(given, above):
        ahead = (0, left, up, (left + up) // 2, _nearest(left, up, corner))[rule]
        left, corner = (x + ahead) % 256, up
        row.append(left)
    return row


def _nearest(left: int, up: int, corner: int) -> int:
    """Paeth's: which of three is nearest to left + up - corner."""
    at = left + up - corner
    return min((left, up, corner), key=lambda x: abs(at - x))
