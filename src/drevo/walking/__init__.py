"""Walking: a planned gait, drives that follow it, and a simulation on soles that push, slip and lift."""

from ..io.given import asked_all
from .feet import soles
from .gait import DYNAMIC, GAITS, STATIC, Gait
from .hop import hop
from .plan import plan
from .sensing import OrientationSensor
from .walk import Walk, adapt, draw, follow, walk

__all__ = [
    "DYNAMIC",
    "GAITS",
    "STATIC",
    "Gait",
    "OrientationSensor",
    "Walk",
    "adapt",
    "draw",
    "follow",
    "hop",
    "plan",
    "soles",
    "walk",
]

asked_all(__name__)
