"""Configurations along a path of poses: from branch to branch by the nearest one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError, NumericsError, TraceError
from ...io.given import Array, asked, finite, number
from ...mechanics.tree import build_tree
from .chain import REMEDY, chain_of
from .closed_form import closed_form

WHOLE_TURN = 2.0 * np.pi


@asked
def branch_path(
    robot: Any, link: str, poses: ArrayLike, q0: ArrayLike, limits: bool, jump: float, **given: float | None
) -> Array:
    """The branches nearest to one another along a path: see `Robot.inverse_kinematics_path`."""
    title = "inverse_kinematics_path"
    T, at = finite(f"{title}: poses", poses, (..., 4, 4)), finite(f"{title}: q0", q0, (robot.nq,))
    farthest = number(f"{title}: jump", jump, "a number above 0", lambda x: x > 0.0)
    try:
        f = closed_form(robot, link, limits, **given)
    except (InputError, TraceError) as error:
        raise type(error)(str(error).replace("closed_form:", f"{title}:", 1)) from None
    screws = chain_of(build_tree(robot.model), link).screws
    moving, turns = [s.q for s in screws], np.array([not s.slides for s in screws])
    lower, upper = robot.lower[moving], robot.upper[moving]
    path = np.empty((*T.shape[:-2], robot.nq))
    rows, branches = path.reshape(-1, robot.nq), f(T).reshape(-1, *f.outputs[0][1])
    rows[:] = at  # joints that do not move the link stay
    at = at[moving]
    for k, every in enumerate(branches[..., moving]):
        real = every[~np.isnan(every).any(-1)]
        if not len(real):
            raise NumericsError(f"{title}: no branch is real at pose {k}, which is out of reach or of the limits")
        near = at + _steps(real - at, turns)
        if limits:
            inside = (near >= lower) & (near <= upper)
            near = np.where(inside.all(-1, keepdims=True), near, real)
        moved = np.abs(near - at)
        nearest = moved[int(moved.max(-1).argmin())]
        if k == 0 and nearest.max() > farthest:
            raise NumericsError(
                f"{title}: q0 is not a configuration of poses[0]: of the nearest one joint "
                f"{screws[nearest.argmax()].joint!r} is {nearest.max():.3g} away, more than jump={farthest:g}; "
                "begin with robot.inverse_kinematics of poses[0]"
            )
        if nearest.max() > farthest:
            raise NumericsError(
                f"{title}: no branch is near at pose {k}: joint {screws[nearest.argmax()].joint!r} would move by "
                f"{nearest.max():.3g}, more than jump={farthest:g}; the path passes a singular pose there or its "
                f"poses are far apart; {REMEDY}"
            )
        rows[k, moving] = at = near[int(moved.max(-1).argmin())]
    return path


def _steps(difference: Array, turns: Array) -> Array:
    """Differences of coordinates, those of turning joints the shorter way round."""
    return np.where(turns, difference - WHOLE_TURN * np.round(difference / WHOLE_TURN), difference)
