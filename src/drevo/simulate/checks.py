"""Checks of `simulate` before it begins: it refuses work without bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..io.memory import lent

STEPS, ADAPTIVE_STEPS = 10_000_000, 100_000  # what `max_steps` is unless it is given
WILD = 1e4  # rad, m, or their rates: what a motion that has left all bounds is beyond
FINEST = 1e-14  # rtol: doubles hold little more than 15 digits


def is_tame(x: np.ndarray[Any, Any]) -> bool:
    """True if coordinates or rates are those of a motion that has not left all bounds."""
    return bool(np.abs(x).max(initial=0.0) < WILD)  # false of NaN


# -- a bound on the work ------------------------------------------------------------------------------------


def bounded(end: float, dt: float, most: int, what: str) -> None:
    """InputError where a motion would have more steps (or records) than `max_steps`."""
    if end / dt > most:
        raise InputError(
            f"a duration of {end:g} s in {what} of {dt:g} s makes {end / dt:.3g} of them, more than "
            f"max_steps={most}: take a longer step or a shorter duration, or give max_steps="
        )


def require_memory(records: float, shape: Sequence[int]) -> None:
    """InputError where records of so many numbers each would not fit in memory."""
    size, available = 8.0 * records * math.prod(shape), lent()
    if 8.0 * records * math.prod(max(1, n) for n in shape) >= 2.0**63:  # of an empty batch too, by NumPy's rule
        raise InputError(f"simulate: there is no memory for this batch, {tuple(shape[:-1])}: take fewer rows")
    if size > available:
        raise InputError(
            f"{records:.3g} records of {math.prod(shape)} numbers need {size / 1e9:.3g} GB, and this machine "
            f"lends {available / 1e9:.3g} GB: take fewer records (every=, dt=) or fewer rows"
        )
