"""Walking on ground that the plan does not know, felt by the soles, by a sensor that errs; in MuJoCo too."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import mujoco
import numpy as np
import pytest
from test_walking import mujoco_state

import drevo
from drevo.errors import InputError
from drevo.walking import Gait, OrientationSensor, adapt, plan
from drevo.walking.phase import GaitPlan
from drevo.walking.sensing import OrientationObserver, quaternion_of_turn
from drevo.walking.touch import TouchFollower

Array = np.ndarray[Any, Any]
CAREFUL = Gait("careful", length=0.2, lift=0.07, single=1.2, double=0.9, settle=1.6, dt=0.02, height=0.86)
LEVEL, SLOPE = 0.03, math.radians(5.0)  # m, rad: of steps and slopes that nobody tells
BIAS = math.radians(0.3)
Piece = tuple[float, float, float]  # where it begins, m, its height there, its slope


def sensor(seed: int) -> OrientationSensor:
    return OrientationSensor(bias=(BIAS, -BIAS, 0.0), rate_bias=(0.01, -0.01, 0.005), seed=seed)


def pieces(seed: int, length: float = 4.6) -> list[Piece]:
    """Ground along x: pieces of 0.3 to 0.8 m, with steps between them and slopes, from 0.22 m on."""
    rng = np.random.default_rng(seed)
    x, z, out = 0.22, 0.0, [(-10.0, 0.0, 0.0)]
    while x < length:
        z += rng.uniform(-LEVEL, LEVEL) if rng.random() < 0.6 else 0.0
        slope = rng.uniform(-SLOPE, SLOPE) if rng.random() < 0.6 else 0.0
        wide = rng.uniform(0.3, 0.8)
        out.append((x, float(z), float(slope)))
        x, z = x + wide, z + math.tan(slope) * wide
    return [*out, (x, float(z), 0.0)]


def height(ground: list[Piece]) -> Callable[[Any, Any], Any]:
    def z(x: Any, y: Any) -> Any:
        out = 0.0 * x
        for begin, low, slope in ground[1:]:
            out = drevo.where(x > begin, low + math.tan(slope) * (x - begin), out)
        return out

    return z


@cache
def planned(steps: int) -> GaitPlan:
    return plan(drevo.load("biped", base="floating"), steps, CAREFUL)


def test_a_step_down_and_a_slope_that_nobody_tells() -> None:
    ground = [(-10.0, 0.0, 0.0), (0.22, -0.02, math.radians(3.0))]
    w = adapt(planned(2), drevo.ground.function(height(ground)), sensor(1))
    assert w.fell is None and w.slip < 0.02
    assert w.clock[-1] < w.t[-1] and np.all(np.diff(w.clock) >= 0.0)
    assert w.q[-1, 0] == pytest.approx(planned(2).phases[-1].q[-1, 0], abs=0.02)
    assert "<svg" in drevo.walking.draw(w, "two steps")


def test_a_heel_that_comes_down_beside_a_step() -> None:
    """The first sole comes down with its heel 4 mm before the wall of a step up."""
    made = planned(1)
    lands = next(phase for phase in made.phases[1:] if len(phase.stands) == 2)
    heel = max(leg.sole(made.robot.pose(lands.q[0], leg.link))[:, 0].min() for leg in made.legs)
    w = adapt(made, drevo.ground.function(height([(-10.0, 0.0, 0.0), (heel + 0.004, 0.03, 0.0)])), sensor(1))
    assert w.fell is None


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2, 3, 7])
def test_twenty_steps(seed: int) -> None:
    """Steps of 3 cm, slopes of 5 degrees, a sensor with noise, bias and delay."""
    w = adapt(planned(20), drevo.ground.function(height(pieces(seed))), sensor(seed))
    assert w.fell is None and w.q[-1, 0] == pytest.approx(planned(20).phases[-1].q[-1, 0], abs=0.05)


def uneven_in_mujoco(made: GaitPlan, ground: list[Piece], dt: float) -> tuple[Any, list[Any]]:
    """The robot on boxes, one a piece of ground; its soles are balls of 2 mm at their corners, leg by leg."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        spec = made.robot.to_mujoco()
    spec.option.timestep, spec.option.cone, spec.option.impratio = dt, mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    sliding = {"friction": [0.7, 0.0, 0.0], "condim": 3, "solref": [0.005, 1.0]}
    box, ball, thick = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE, 0.5
    for (begin, low, slope), (end, _, _) in zip(ground, [*ground[1:], (20.0, 0.0, 0.0)]):
        half = 0.5 * (end - begin) / math.cos(slope)
        x, z = 0.5 * (begin + end) + thick * math.sin(slope), low + math.tan(slope) * 0.5 * (end - begin)
        spec.worldbody.add_geom(
            type=box, size=[half, 3.0, thick], pos=[x, 0.0, z - thick * math.cos(slope)], contype=1, conaffinity=2,
            quat=[math.cos(slope / 2), 0.0, -math.sin(slope / 2), 0.0], **sliding,
        )  # fmt: skip
    for leg in made.legs:
        for k, corner in enumerate(leg.corners):
            at = corner + 0.002 * leg.upright[2]
            spec.body(leg.link).add_geom(
                name=f"{leg.link}{k}", type=ball, size=[0.002, 0, 0], pos=at, mass=0.0, contype=2, conaffinity=1,
                **sliding,
            )  # fmt: skip
    m = spec.compile()
    joints = [
        (sq, sv, m.joint(0) if sv.start == 0 else m.joint(j.name)) for j, sq, sv in made.robot.model.slices()
    ]
    return m, joints


def felt(m: Any, d: Any, made: GaitPlan) -> Array:
    """Normal forces at the corners of the soles, N."""
    ids = [m.geom(f"{leg.link}{k}").id for leg in made.legs for k in range(len(leg.corners))]
    out, force = np.zeros(len(ids)), np.zeros(6)
    for k, contact in enumerate(d.contact):
        mujoco.mj_contactForce(m, d, k, force)
        out[ids.index(max(contact.geom))] += force[0]
    return out


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2, 7])
def test_twenty_steps_in_mujoco(seed: int) -> None:
    """The same law, ground and sensor under MuJoCo's contact."""
    made, hold, ground = planned(20), 0.005, pieces(seed)
    r = made.robot
    m, slots = uneven_in_mujoco(made, ground, hold / 5)
    law, d, q0 = TouchFollower(made, 20.0, hold, 1.0), mujoco.MjData(m), made.phases[0].q[0]
    for sq, _, joint in slots:
        start = q0[sq]
        d.qpos[joint.qposadr[0] :][: len(start)] = start if len(start) == 1 else [*start[:3], 1.0, 0.0, 0.0, 0.0]
    observer, loads = OrientationObserver(r, made.legs, sensor(seed), q0, hold), law.felt.copy()
    while not law.done:
        q, v = mujoco_state(d, slots, r.nq, r.nv)
        tau, _ = law.efforts_by_touch(*observer.estimate(q, v, loads), loads)
        for _, sv, joint in slots[1:]:
            d.qfrc_applied[joint.dofadr[0]] = tau[sv.start]
        mujoco.mj_step(m, d, 5)
        loads = felt(m, d, made)
        under = [low + math.tan(slope) * (q[0] - begin) for begin, low, slope in ground if q[0] > begin][-1]
        assert q[2] - under > 0.5, (law.k, q)
    assert q[0] == pytest.approx(made.phases[-1].q[-1, 0], abs=0.05)


def test_the_observer_finds_a_state() -> None:
    """With no errors it says the true state; a bias of the gyroscope is found within seconds."""
    made = planned(2)
    r, legs, hold = made.robot, made.legs, 0.005
    phase = made.phases[1]
    perfect = OrientationObserver(
        r, legs, OrientationSensor(0.0, delay=0.0, rate_noise=0.0), made.phases[0].q[0], hold
    )
    assert np.allclose(quaternion_of_turn(np.eye(3)), [0.0, 0.0, 0.0, 1.0])
    loads = np.array([0.0] * 4 + [150.0] * 4)
    t = hold * np.arange(60)
    near, way, rate, _ = phase.at(t)
    for q, v in zip(r.integrate(near, way), rate):
        x, u = perfect.estimate(q, v, loads)
    np.testing.assert_allclose(r.difference(q, x)[3:], 0.0, atol=1e-9)
    np.testing.assert_allclose(u, v, atol=1e-3)
    biased = OrientationObserver(
        r, legs, OrientationSensor(0.0, rate_noise=0.0, rate_bias=(0.01, 0.0, -0.02)), q, hold
    )
    for _ in range(4000):
        biased.estimate(q, 0.0 * v, loads)
    np.testing.assert_allclose(biased.rate_bias, (0.01, 0.0, -0.02), atol=1e-4)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: OrientationSensor(noise=-1.0),
        lambda: OrientationSensor(delay=2.0),
        lambda: OrientationSensor(bias=(1.0,)),
        lambda: OrientationSensor(seed=-1),
        lambda: adapt(planned(2), "plane"),
        lambda: adapt(planned(2), drevo.ground.function(lambda x, y: 0.0 * x), gain=0.0),
    ],
)
def test_what_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        ask()
