"""The memory that this machine lends to results: what would need more is refused beforehand, in a sentence."""

from __future__ import annotations

import math
import os

_CGROUP = "/sys/fs/cgroup/memory.max"


def lent() -> float:
    """Bytes that results may fill: half of this machine's, or of what the process may have of it."""
    try:
        total = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):  # not everywhere
        return math.inf
    try:
        with open(_CGROUP, encoding="ascii") as file:
            return 0.5 * min(total, float(file.read()))
    except (OSError, ValueError):  # no limit: "max"
        return 0.5 * total
