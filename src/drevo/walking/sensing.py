"""Orientation of the pelvis by a sensor with noise, bias and delay, and an observer that walks by it.

Rates of the gyroscope turn the estimate at once; what the sensor says of an earlier time corrects the estimate of
that time, and the gyroscope's bias: a complementary filter, Mahony, Hamel, Pflimlin 2008, "Nonlinear complementary
filters on the special orthogonal group". Place and velocity follow from the soles that carry, which do not move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError, shown
from ..io.given import Array, finite, number
from ..robot.face import Robot
from .feet import BASE, Leg, rotation_by_vector, soles_at, turn_between

CORRECTED, BIAS_CORRECTED = 2.0, 0.5  # 1/s, 1/s^2: of the estimate by the sensor
CARRIES = 0.3  # of the load: a sole with less does not say where the robot is
SLOWEST_SENSOR = 0.5  # s of delay


@dataclass(frozen=True)
class OrientationSensor:
    """A sensor of orientation on the pelvis with a gyroscope, both in its axes.

    noise: standard deviation of each reading, rad. bias (3,): rad. delay: s, of the orientation. rate_noise,
    rate_bias (3,): of the gyroscope, rad/s. seed: of the noise. Raises InputError.
    """

    noise: float = 0.005
    bias: Sequence[float] = (0.0, 0.0, 0.0)
    delay: float = 0.02
    rate_noise: float = 0.01
    rate_bias: Sequence[float] = (0.0, 0.0, 0.0)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("noise", "delay", "rate_noise"):
            most = SLOWEST_SENSOR if name == "delay" else 1.0
            rule, fit = f"a number from 0 to {most:g}", partial(_between, most)
            number(f"OrientationSensor: {name}", getattr(self, name), rule, fit)
        for name in ("bias", "rate_bias"):
            finite(f"OrientationSensor: {name}", getattr(self, name), (3,))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"OrientationSensor: seed is a whole number from 0, not {shown(self.seed)}")


def _between(most: float, x: float) -> bool:
    return 0.0 <= x <= most


class OrientationObserver:
    """States (nq,), (nv,) of a robot that walks, from its joints, a sensor and the loads of its soles."""

    def __init__(
        self, robot: Robot, legs: Sequence[Leg], sensor: OrientationSensor, q: Array, hold: float
    ) -> None:
        """q (nq,): where the robot stands at the start, known. hold: s between readings."""
        self.robot, self.legs, self.sensor, self.hold = robot, legs, sensor, hold
        self.base = robot.model.joints[0].child
        self.rng = np.random.default_rng(sensor.seed)
        self.R = self._turn(q)
        late = round(sensor.delay / hold) + 1
        self.said = deque([self.R @ rotation_by_vector(np.array(sensor.bias))] * late, late)
        self.past = deque([self.R] * late, late)
        self.rate_bias = np.zeros(3)
        self.corners = np.cumsum([len(leg.corners) for leg in legs])[:-1]
        self.place, self.anchors = q[:3].copy(), soles_at(robot, legs, q).places

    def _turn(self, q: Array) -> Array:
        return np.asarray(self.robot.pose(q, self.base)[:3, :3])

    def estimate(self, q: Array, v: Array, loads: Array) -> tuple[Array, Array]:
        """The state that the robot takes itself to be in; of q and v only the joints' part is read directly."""
        spin = self._orientation(q, v)
        x, u = q.copy(), v.copy()
        x[:3], x[3:7] = 0.0, quaternion_of_turn(self.R)
        u[:3], u[3:6] = 0.0, spin
        soles = soles_at(self.robot, self.legs, x, u)
        carried = np.array([max(part.sum(), 0.0) for part in np.split(loads, self.corners)])
        part = carried / carried.sum() if carried.sum() > 0.0 else np.full(len(self.legs), 1.0 / len(self.legs))
        part = np.where(part >= min(CARRIES, part.max()), part, 0.0)
        part /= part.sum()
        self.place = part @ (self.anchors - soles.places)
        rises = part == 0.0
        self.anchors[rises] = self.place + soles.places[rises]
        x[:3] = self.place
        u[:3] = -self.R.T @ (part @ soles.rate[:, :3])
        return x, u

    def _orientation(self, q: Array, v: Array) -> Array:
        """Angular velocity (3,) as estimated; the estimate of the orientation goes on by one reading."""
        s, rng, h = self.sensor, self.rng, self.hold
        true = self._turn(q)
        reading = v[BASE][3:] + np.array(s.rate_bias) + s.rate_noise * rng.normal(size=3)
        self.said.append(
            true @ rotation_by_vector(np.array(s.bias)) @ rotation_by_vector(s.noise * rng.normal(size=3))
        )
        spin = reading - self.rate_bias
        self.R = self.R @ rotation_by_vector(h * spin)
        self.past.append(self.R)
        earlier = self.past[0]
        error = earlier.T @ turn_between(earlier, self.said[0])
        self.R = self.R @ rotation_by_vector(h * CORRECTED * error)
        self.rate_bias = self.rate_bias - h * BIAS_CORRECTED * error
        self.past[-1] = self.R
        return np.asarray(spin)


def quaternion_of_turn(R: Array) -> Array:
    """(x, y, z, w) of a rotation of less than half a turn."""
    w = 0.5 * float(np.sqrt(max(1.0 + float(np.trace(R)), 1e-12)))
    turned = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 4.0 * w * w
    return np.array(turned) / (4.0 * w)
