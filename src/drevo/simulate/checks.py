"""What `simulate` refuses before it begins: work without bound."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from ..errors import InputError

STEPS, ADAPTIVE_STEPS = 10_000_000, 100_000  # what `max_steps` is unless it is given
FINEST = 1e-14  # rtol: doubles hold little more than 15 digits
SHARE = 0.5  # of the machine's memory: what records may fill
_CGROUP = "/sys/fs/cgroup/memory.max"


# -- a bound on the work ------------------------------------------------------------------------------------


def bounded(end: float, step: float, most: int, what: str) -> None:
    """InputError where a motion would have more steps (or records) than `max_steps`."""
    if end / step > most:
        raise InputError(
            f"a duration of {end:g} s in {what} of {step:g} s makes {end / step:.3g} of them, more than "
            f"max_steps={most}: take a longer step or a shorter duration, or give max_steps="
        )


def require_memory(records: float, shape: Sequence[int]) -> None:
    """InputError where records of so many numbers each would not fit in memory."""
    size, room = 8.0 * records * math.prod(shape), SHARE * memory()
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
    "require_memory",
]
