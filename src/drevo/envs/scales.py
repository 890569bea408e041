"""Functions of rewards and of sensors over scalars, out of sums, products and roots, as compiled code has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf, log
from math import sqrt as root

from ..mechanics.scalar import Scalar, expm1, maximum, sqrt, where

LOG_ROOTS, LOG_TERMS = 7, 6  # of logarithms


def decay(x: Scalar) -> Scalar:
    """Computes exp(-x) for x >= 0 to a few roundings of 1."""
    return 1.0 + expm1(-x)


def log_of(x: Scalar) -> Scalar:
    """Computes log x for x >= 1 to 1e-13 up to 1e6: 2 artanh((r - 1) / (r + 1)) of a root r near 1."""
    for _ in range(LOG_ROOTS):
        x = sqrt(x)
    s = (x - 1.0) / (x + 1.0)
    series = reduce(lambda rest, k: rest * (s * s) + 1.0 / (2 * k + 1), range(LOG_TERMS, -1, -1), 0.0)
    return s * series * 2.0 ** (LOG_ROOTS + 1)


# by name what is left of a reward at a distance x, in margins, where `least` is left at 1
FALLS: dict[str, Callable[[Scalar, float], Scalar]] = {
    "gaussian": lambda x, least: decay(x * x * -log(least)),
    "linear": lambda x, least: maximum(1.0 - x * (1.0 - least), 0.0),
    "quadratic": lambda x, least: maximum(1.0 - (x * root(1.0 - least)) * (x * root(1.0 - least)), 0.0),
    "long_tail": lambda x, least: 1.0 / (x * x * (1.0 / least - 1.0) + 1.0),
    "reciprocal": lambda x, least: 1.0 / (x * (1.0 / least - 1.0) + 1.0),
}


def tolerance(
    x: Scalar, low: float, high: float, margin: float = 0.0, fall: str = "gaussian", least: float = 0.1
) -> Scalar:
    """A reward of 1 from low to high, else what the distance leaves of it: `least` at a margin, 0 without one."""
    away = maximum(low - x if high == inf else maximum(low - x, x - high), 0.0)
    return FALLS[fall](away * (1.0 / margin), least) if margin else where(away > 0.0, 0.0, 1.0)
