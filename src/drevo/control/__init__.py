"""Linear models, regulators and control laws."""

from __future__ import annotations

from .linearise import Linearisation, Reduced, linearise
from .model import LinearModel, Modes
from .regulate import Regulator, Tracker, lqr, track, tracking_lqr
from .stabilise import Stabiliser, stabilise

__all__ = [
    "LinearModel",
    "Linearisation",
    "Modes",
    "Reduced",
    "Regulator",
    "Stabiliser",
    "Tracker",
    "linearise",
    "lqr",
    "stabilise",
    "track",
    "tracking_lqr",
]
