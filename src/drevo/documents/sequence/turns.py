"""Whole turns that large angles lose before they are summed: a sum of large angles would keep few digits.

y = x - n P with P = 2 pi / factor in parts of few bits, whose products by n are exact (W. J. Cody, W. Waite,
Software Manual for the Elementary Functions, Prentice-Hall, 1980). An angle by itself, of which the
sine alone is taken, needs none of it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

PI = Fraction(
    314159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534, 10**92
)
BITS, PARTS = 15, 5  # of a part, so that its product by n up to 2^38 is exact; and how many
FEW = 2.0  # turns: angles that have no more stay as they are
MOST = 2.0**38  # turns
NOTE = "an angle less whole turns, where it has many: a sum of large angles would keep few of its digits"


class Turn(NamedTuple):
    """name: a scalar of an input less whole turns, which is the scalar itself where nothing else reads it.

    place: of the scalar in its input. factor: what it is multiplied by before it is an angle, 1 for whole numbers.
    """

    name: str
    scalar: str
    source: str
    place: int
    factor: float


@lru_cache(maxsize=256)
def period(factor: float) -> tuple[float, tuple[float, ...]]:
    """1 / P and the parts of P."""
    left = 2 * PI / abs(Fraction(factor))
    rate, parts = float(1 / left), []
    for _ in range(PARTS - 1):
        unit = Fraction(2.0 ** (math.frexp(left)[1] - BITS))
        parts.append(float(left // unit * unit))
        left -= Fraction(parts[-1])
    return rate, (*parts, float(left))


def period_texts(factor: float) -> tuple[str, list[str]]:
    """x / P, and the products that x loses one by one, as every language writes them."""
    rate, parts = period(factor)
    return f"x * {rate!r}", [f"n * {part!r}" for part in parts]


def less_turns(x: Any, factor: float) -> Any:
    """Numbers less whole turns; NaN beyond 2^38 of them, where an angle has no digit."""
    rate, parts = period(factor)
    n = np.round(np.asarray(x, float) * rate)
    y = x
    for part in parts:
        y = y - n * part
    return np.where(np.abs(n) > FEW, np.where(np.abs(n) <= MOST, y, np.nan), x)
