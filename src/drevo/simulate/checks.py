"""What `simulate` refuses before it begins: arguments that are no numbers, and work without bound."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.runtime.arguments import number_array
from ..errors import InputError

Array = np.ndarray[Any, Any]
STEPS, ADAPTIVE_STEPS = 10_000_000, 100_000  # what `max_steps` is unless it is given
FINEST = 1e-14  # rtol: doubles hold little more than 15 digits
ROOM = 0.5  # of the machine's memory: what records may fill
_CGROUP = "/sys/fs/cgroup/memory.max"


def number(name: str, value: Any, least: float = 0.0, unit: str = "") -> float:
    """A finite number above `least`, or at it where that is not 0."""
    found = np.empty(0) if isinstance(value, (list, tuple)) else np.asarray(value)
    x = float(found) if found.ndim == 0 and found.dtype.kind in "iuf" else math.nan
    if not (least <= x < math.inf and x > 0.0):
        more = f" from {least:g}" if least else ""
        raise InputError(f"{name} is {_shown(value)}; it must be a positive number{unit}{more}")
    return x


def seconds(name: str, value: Any) -> float:
    return number(name, value, unit=" of seconds")


def whole(name: str, value: Any, use: str) -> int:
    """A whole number from 1."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {_shown(value)}; it must be a whole number from 1: {use}")
    return int(value)


def sized(name: str, x: ArrayLike, size: int) -> Array:
    """Real numbers, (..., size)."""
    array = number_array(x, name, np.dtype(float))
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has shape {array.shape}; its last dimension must be {size}")
    return array


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# -- a bound on the work ------------------------------------------------------------------------------------


def bounded(end: float, step: float, most: int, what: str) -> None:
    """InputError where a motion would have more steps (or records) than `max_steps`."""
    if end / step > most:
        raise InputError(
            f"a duration of {end:g} s in {what} of {step:g} s makes {end / step:.3g} of them, more than "
            f"max_steps={most}: take a longer step or a shorter duration, or give max_steps="
        )


def require_room(records: float, shape: Sequence[int]) -> None:
    """InputError where records of so many numbers each would not fit in memory."""
    size, room = 8.0 * records * math.prod(shape), ROOM * memory()
    if size > room:
        raise InputError(
            f"{records:.3g} records of {math.prod(shape)} numbers need {size / 1e9:.3g} GB, and this machine "
            f"lends {room / 1e9:.3g} GB: take fewer records (every=, step=) or fewer rows"
        )


def memory() -> float:
    """Bytes of this machine, or of what the process may have of it."""
    try:
        total = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not everywhere
        return math.inf
    try:
        with open(_CGROUP, encoding="ascii") as file:
            return min(total, float(file.read()))
    except (OSError, ValueError):  # no limit: "max"
        return total


__all__ = [
    "ADAPTIVE_STEPS",
    "FINEST",
    "STEPS",
    "bounded",
    "memory",
    "number",
    "require_room",
    "seconds",
    "sized",
    "whole",
]
