"""Walking: a planned gait, computed torque along it, and a simulation in which contacts come and go."""

from .feet import soles
from .gait import DYNAMIC, GAITS, STATIC, Gait
from .hop import hop
from .plan import plan
from .walk import Landing, Stage, Walk, draw, follow, walk

__all__ = [
    "DYNAMIC",
    "GAITS",
    "STATIC",
    "Gait",
    "Landing",
    "Stage",
    "Walk",
    "draw",
    "follow",
    "hop",
    "plan",
    "soles",
    "walk",
]
