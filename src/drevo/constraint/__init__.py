"""Constraints f(q, t) = 0 and contacts of robots: values that calls take, and states put on constraints.

Points are in link axes, results in world axes; reactions act on the robot.
"""

from ..io.given import asked_all
from .closing import assemble, hold
from .dynamics import constrained_dynamics, impact
from .inverse import constrained_inverse_dynamics
from .kinds import Constraint
from .terms import constraint_terms
from .values import (
    contact,
    distance,
    function,
    gear,
    joint_closure,
    point_on_plane,
    point_to_point,
    pose_tracking,
    weld,
)

__all__ = [
    "Constraint",
    "assemble",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "constraint_terms",
    "contact",
    "distance",
    "function",
    "gear",
    "hold",
    "impact",
    "joint_closure",
    "point_on_plane",
    "point_to_point",
    "pose_tracking",
    "weld",
]

asked_all(__name__)
