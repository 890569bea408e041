"""Robots whose motions are known: for the tests of `simulate`."""

from __future__ import annotations

from typing import Any

import numpy as np

import drevo
from drevo.robot.face import Robot

G = 9.81


def double_pendulum() -> Robot:
    """Two point masses of 1 kg on rods of 1 m."""
    b = drevo.Builder("double", gravity=(0.0, 0.0, -G))
    for name, parent, z in (("upper", "world", 0.0), ("lower", "upper", -1.0)):
        b.body(name, parent=parent, joint="revolute", axis=(0, 1, 0), origin=(0, 0, z), mass=1.0,
               com=(0, 0, -1.0), inertia=np.zeros((3, 3)))  # fmt: skip
    return b.robot()


def free_body(name: str, gravity: tuple[float, float, float]) -> Robot:
    """A free body with the moments 1, 2, 2.9."""
    b = drevo.Builder(name, gravity=gravity)
    b.body("body", parent="world", joint="free", mass=1.5, com=(0.1, -0.2, 0.05), inertia=np.diag([1.0, 2.0, 2.9]))
    return b.robot()


def released(robot: Robot) -> Any:
    """The chain as its source lets it go."""
    q = np.zeros(robot.nq)
    q[0] = -1.0
    return q
