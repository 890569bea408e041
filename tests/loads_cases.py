"""Robots, motions and refusals that the tests of loads share."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.errors import InputError

Array = np.ndarray[Any, Any]
TEXTBOOK = 1e-12  # some ten numbers of size 1 to 30, summed: 30 * 10 * eps = 7e-14

LENGTH, MASS, G = 0.8, 3.0, 9.81
AT = np.linspace(0.0, LENGTH, 9)
PART = AT / LENGTH


def rod(axis: tuple[float, ...] = (0.0, 1.0, 0.0), joint: str = "revolute") -> drevo.Robot:
    """A uniform thin rod along x, held at its end; gravity along -z."""
    J = MASS * LENGTH**2 / 12
    b = drevo.Builder("rod")
    b.body("rod", joint=joint, axis=axis, mass=MASS, com=(LENGTH / 2, 0, 0), inertia=np.diag([0.0, J, J]))
    return b.robot()


def panda() -> drevo.Robot:
    found = [f for f in metadata.files("example-robot-data") or () if f.name == "panda_collision.urdf"]
    return drevo.load(str(found[0].locate()))


def states(robot: drevo.Robot, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    return robot.random(rng, count), rng.normal(size=(count, robot.nv)), rng.normal(size=(count, robot.nv))


def refused(call: Any) -> str:
    with pytest.raises(InputError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text
