"""The trunk: six massless joints for a base that floats, z, y, x, yaw, pitch, roll. Kovalchuk and co-authors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import NumericsError
from ..model.base import TRUNK
from ..model.description import Model

Array = np.ndarray[Any, Any]
GIMBAL_LOCK_COSINE = 1e-6  # |cos pitch|: below it yaw and roll are the same axis to 6 digits


def trunk_pitch(model: Model) -> int | None:
    """Index in q of the pitch of a trunk, or None."""
    first = model.joints[:6]
    if tuple((j.kind, j.axis) for j in first) != TRUNK or not first[0].name.startswith("trunk_1"):
        return None
    return 4


def refuse_gimbal_lock(model: Model, q: Array) -> None:
    """NumericsError where a trunk's pitch is at +-90 degrees: yaw and roll are one axis, M is singular."""
    pitch = trunk_pitch(model)
    if pitch is None:
        return
    angle = np.asarray(q, float)[..., pitch]
    locked = np.abs(np.cos(angle)) < GIMBAL_LOCK_COSINE
    if np.any(locked):
        k = int(np.argmax(locked))
        where = f" in row {k} of the batch" if angle.ndim else ""
        raise NumericsError(
            f"the trunk of robot {model.name!r} is in gimbal lock{where}: joint {model.joints[pitch].name!r} "
            f"(pitch) is {float(angle.flat[k]):.9g} rad, where yaw and roll turn about the same axis; load "
            "with base='floating'"
        )
