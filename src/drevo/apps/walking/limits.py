"""Limits of the joints in the file: a motion that leaves them is none for this robot."""

from __future__ import annotations

import numpy as np

from ...errors import NumericsError
from ...io.given import Array
from ...robot.face import Robot

SLACK = 1e-9  # of a limit: what rounding of a motion to its edge leaves
SHAKEN = 1e-4  # rad, m: how far landings throw a joint that the plan holds at its limit
HEED = "move slower, take shorter steps, or correct the limit"


def refuse_limits(robot: Robot, t: Array, what: str, q: Array, v: Array, tau: Array | None = None) -> None:
    """NumericsError where a joint leaves its range, or its speed or effort exceeds what the file allows.

    t (n,), q (n, nq), v and tau (n, nv). A motion with efforts is no plan: landings shake it, and it may leave a
    range by SHAKEN. A speed or an effort of 0 in a file says nothing, and is no limit.
    """
    range_slack = SLACK if tau is None else SHAKEN
    for joint, sq, sv in robot.model.slices():
        limit = joint.limit
        if limit is None or joint.nq != 1:
            continue
        unit, force = ("m", "N") if joint.kind == "prismatic" else ("rad", "N m")
        rows = [
            ("stand at", unit, range_slack, q[:, sq.start], limit.lower, limit.upper),
            ("move at", f"{unit}/s", SLACK, v[:, sv.start], *_both(limit.velocity)),
        ]
        if tau is not None:
            rows.append(("need", force, SLACK, tau[:, sv.start], *_both(limit.effort)))
        for verb, of, slack, x, low, high in rows:
            _refuse(f"{what}: joint {joint.name!r} would {verb}", of, slack, t, x, low, high)


def _both(bound: float | None) -> tuple[float | None, float | None]:
    return (-bound, bound) if bound else (None, None)


def _refuse(who: str, unit: str, slack: float, t: Array, x: Array, low: float | None, high: float | None) -> None:
    for bound, sign in ((low, -1.0), (high, 1.0)):
        if bound is None:
            continue
        beyond = sign * (x - bound)
        k = int(np.argmax(beyond))
        if beyond[k] > slack * max(abs(bound), 1.0):
            raise NumericsError(
                f"{who} {x[k]:.4g} {unit} at t = {t[k]:.4g} s (sample {k} of {len(t)}), and its limit is "
                f"{bound:.4g} {unit}; {HEED}"
            )
