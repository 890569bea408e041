"""The passive forces of any robot, in the place of efforts: dampers, dry friction, springs, tendons."""

from __future__ import annotations

from ..codegen.runtime.memo import memoised
from ..io.given import Array
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.passive import passive_on_arrays
from ..model.dynamics import Dynamics


def acting_in(robot: Dynamics, q: Array, v: Array, wanted: bool = True) -> Array | float:
    """What acts in joints and tendons, (..., nv), or 0 where nothing does or it is not wanted."""
    if not wanted or not has_passive(robot.model):
        return 0.0
    return memoised(robot, "acting_in", lambda: passive_on_arrays(robot.model))(q, v)
