"""Constraints that are refused: links, joints, motions and numbers that do not fit, one sentence each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.constraint import values as constraint
from drevo.constraint.dynamics import ConstrainedMotion, constrained_dynamics
from drevo.constraint.inverse import constrained_inverse_dynamics


def test_refused_at_use() -> None:
    """Links, joints and motions that do not fit: one sentence each."""
    r = drevo.load("biped", base="floating")
    q, v = r.neutral(), np.zeros(r.nv)

    def run(**kw: Any) -> ConstrainedMotion:
        return constrained_dynamics(r, q, v, v, **kw)

    with pytest.raises(drevo.InputError, match=r"contact: link 'right_fot' is not in robot.*'right_foot'"):
        run(contacts=[{"link": "right_fot", "point": (0, 0, 0), "rows": 3}])
    with pytest.raises(drevo.InputError, match="'row' is not known"):
        run(contacts=[{"link": "right_foot", "point": (0, 0, 0), "row": 3}])
    with pytest.raises(drevo.InputError, match=r'give \{"link"'):
        run(contacts=[{"link": "right_foot"}])
    with pytest.raises(drevo.InputError, match="joint 'knee' is not in robot"):
        run(constraints=[constraint.gear("knee", "right_knee", 1.0)])
    with pytest.raises(drevo.InputError, match="'root_joint' has 6 freedoms"):
        run(constraints=[constraint.gear("root_joint", "right_knee", 1.0)])
    with pytest.raises(drevo.InputError, match="make it with drevo"):
        run(constraints=[{"link": "right_foot"}])
    with pytest.raises(drevo.InputError, match="gave 1 values, size is 2"):
        run(constraints=[constraint.function(lambda pose, q, t: [q[0]], 2)])
    with pytest.raises(drevo.InputError, match="tau has shape"):
        constrained_dynamics(r, q, v, v[:3])
    with pytest.raises(drevo.NumericsError, match="v holds a value that is not finite"):
        constrained_dynamics(r, q, v * np.nan, v)
    with pytest.raises(drevo.InputError, match="actuated: 'right_knee' is named twice"):
        constrained_inverse_dynamics(r, q, v, v, actuated=["right_knee", "left_knee", "right_knee"])
    with pytest.raises(drevo.InputError, match=r"actuated: array\(\[1., 0.\]\) is no moving joint"):
        constrained_inverse_dynamics(r, q, v, v, actuated=np.eye(2))
    with pytest.raises(drevo.InputError, match="'ankle' is no moving joint"):
        constrained_inverse_dynamics(r, q, v, v, actuated=["ankle"])
    with pytest.raises(drevo.NumericsError, match="joint 'root_joint' is not actuated"):
        constrained_inverse_dynamics(r, q, v, v)
    foot = [{"link": "right_foot", "point": (0, 0, 0), "rows": 3}]
    with pytest.raises(
        drevo.NumericsError,
        match=r"violates the constraints: contact\(right_foot\)\[0\] gets the acceleration 1 ",
    ):
        constrained_inverse_dynamics(r, q, v, np.eye(r.nv)[0], contacts=foot)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: constraint.contact("a", (0, 0, 0), 4), "rows is 4; it must be 3"),
        (lambda: constraint.contact("a", (0, 0)), "point .* 3 needed"),
        (lambda: constraint.point_on_plane("a", (0, 0, 0), (0, 0, 0)), "normal is zero"),
        (lambda: constraint.point_on_plane("a", (0, 0, math.nan), (0, 0, 1)), "not finite"),
        (lambda: constraint.point_to_point("a", (0, 0, 0), "a", (0, 0, 0)), "same link"),
        (lambda: constraint.point_to_point("a", (0, 0, 0), "b", (0, 0, 0), rows=[]), "rows is empty"),
        (lambda: constraint.point_to_point("a", (0, 0, 0), "b", (0, 0, 0), rows=[(1, 2)]), r"rows\[0\]"),
        (lambda: constraint.weld("a", (0, 0, 0), "b", (0, 0, 0), rotation=np.ones((3, 3))), "rotation"),
        (lambda: constraint.distance("a", (0, 0, 0), "b", (0, 0, 0), 0.0), "must be positive"),
        (lambda: constraint.gear("a", "a", 1.0), "geared to itself"),
        (lambda: constraint.function(3, 1), "callable"),
        (lambda: constraint.pose_tracking("a", None), "callable"),
        (lambda: constraint.function(lambda p, q, t: [], 0), "1 or more"),
    ],
)
def test_refused_when_made(make: Any, words: str) -> None:
    """Constructors check their numbers."""
    with pytest.raises(drevo.InputError, match=words):
        make()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("speed", [9e153, 2e160, 1e300])
def test_speeds_beyond_all_numbers_are_refused(speed: float) -> None:
    """Products of rates that overflow behind the factors of M, one state and a batch with one such state."""
    robot = drevo.load("three-link")
    held = {"contacts": [{"link": "link2", "point": (-0.5, -1.2, 0.9)}]}
    q, zero = np.array([0.86, -1.45, -2.88]), np.zeros(3)
    v = np.array([1.0, -0.5, 0.7]) * speed
    with np.errstate(all="raise"):
        for x, u in ((q, v), (np.tile(q, (5, 1)), np.vstack([np.zeros((4, 3)), v]))):
            for call in (robot.constrained_dynamics, robot.constrained_inverse_dynamics):
                with pytest.raises(drevo.NumericsError):
                    call(x, u, np.broadcast_to(zero, u.shape), **held)
        with pytest.raises(drevo.NumericsError):
            robot.linearise(q, v, zero, **held)
