"""What a caller gave as numbers, as an array of floats; InputError says what it is instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InputError
from ...model.values import short

Array = np.ndarray[Any, Any]


def floats(what: str, given: object) -> Array:
    """An array of floats; a complex number, text or a ragged list is none."""
    try:
        x = np.asarray(given)
        if x.dtype.kind not in "biufO":
            raise ValueError
        return np.asarray(x, float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} is {short(given)}; it must be numbers") from None


__all__ = ["floats"]
