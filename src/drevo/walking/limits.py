"""Limits of the joints in the file: a motion that leaves them is none for this robot."""

from __future__ import annotations

import numpy as np

from ..errors import NumericsError
from ..io.given import Array
from ..robot.face import Robot

SLACK = 1e-9  # of a limit: what rounding of a motion to its edge leaves
ROOM = 1e-3  # rad, m: from a limit, of joints that are held; landings throw them some 1e-5
HEED = "move slower, take shorter steps, or correct the limit"


def refuse_limits(robot: Robot, t: Array, what: str, q: Array, v: Array, tau: Array | None = None) -> None:
    """NumericsError where a joint leaves its range, or its speed or effort exceeds what the file allows.

    t (n,), q (n, nq), v and tau (n, nv). A speed or an effort of 0 in a file says nothing, and is no limit.
    """
    for joint, sq, sv in robot.model.slices():
        limit = joint.limit
        if limit is None or joint.nq != 1:
            continue
        unit, force = ("m", "N") if joint.kind == "prismatic" else ("rad", "N m")
        rows = [
            ("stand at", unit, SLACK, q[:, sq.start], limit.lower, limit.upper),
            ("move at", f"{unit}/s", SLACK, v[:, sv.start], *_both(limit.velocity)),
        ]
        if tau is not None:
            rows.append(("need", force, SLACK, tau[:, sv.start], *_both(limit.effort)))
        for verb, of, slack, x, low, high in rows:
            _refuse(f"{what}: joint {joint.name!r} would {verb}", of, slack, t, x, low, high)


def off_stops(robot: Robot) -> Array:
    """The neutral configuration (nq,), joints inside their ranges by ROOM, or by a tenth of narrow ones."""
    q = np.array(robot.neutral())
    for joint, sq, _ in robot.model.slices():
        limit = joint.limit
        if limit is None or joint.nq != 1 or limit.lower is None or limit.upper is None:
            continue
        room = min(ROOM, 0.1 * max(0.0, limit.upper - limit.lower))
        q[sq.start] = min(max(q[sq.start], limit.lower + room), limit.upper - room)
    return q


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
