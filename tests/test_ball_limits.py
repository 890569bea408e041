"""Limits of ball joints under the exact law; under the soft one MuJoCo's crawler has one, in test_soft_law.py."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coulomb_on_arrays import step

import drevo
from drevo.codegen.call.function import Function
from drevo.contact.laws.exact.problem import exact_robot

Array = np.ndarray[Any, Any]
LIMIT, DT = math.radians(40.0), 1e-3
SWING = """<mujoco><option gravity="0 0 {gravity}"/><worldbody><body name="arm" pos="0 0 1">
  <joint name="socket" type="ball" range="0 40"/><inertial pos="0 0 -.3" mass="2" diaginertia=".1 .1 .04"/>
  <geom type="sphere" pos="0 0 -.5" size=".1"/></body></worldbody></mujoco>"""


@cache
def swing(gravity: float, restitution: float) -> tuple[drevo.Robot, Function]:
    robot = drevo.load(SWING.format(gravity=gravity))
    return robot, drevo.compile(robot, "step", dt=DT, law="coulomb", restitution=restitution)


def near(count: int) -> tuple[Array, Array]:
    """Turned about any axis by nearly the limit, some a little beyond, at any rates."""
    rng = np.random.default_rng(3)
    axis = rng.normal(size=(count, 3))
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    half = 0.5 * (LIMIT + rng.uniform(-2e-3, 2e-4, (count, 1)))
    return np.hstack([axis * np.sin(half), np.cos(half)]), 3.0 * rng.normal(size=(count, 3))


def test_a_ball_is_read_and_written_with_its_limit(tmp_path: Path) -> None:
    robot = drevo.load(SWING.format(gravity=0))
    assert robot.model.softness[0].limit_angle == pytest.approx(LIMIT)
    for form in ("xml", "sdf", "json", "toml"):
        robot.save(tmp_path / f"swing.{form}")
        assert drevo.load(tmp_path / f"swing.{form}").model.softness == robot.model.softness
    with pytest.raises(drevo.ModelError, match="limit_angle 0; it is an angle above 0"):
        drevo.load(SWING.format(gravity=0).replace("0 40", "0 0"))


def test_a_compiled_step_is_the_reference() -> None:
    """Impulses are about the axis of the turn alone, inward, and leave no speed outward where nothing bounces."""
    robot, f = swing(-9.81, 0.0)
    q, v = near(64)
    found, m = f(q, v, np.zeros((64, 3))), exact_robot(robot.model, DT, "plane")
    wanted = step(m, q, v, np.zeros((64, 3)))
    for x, y in zip(found, (wanted.q, wanted.v, wanted.forces, wanted.residual)):
        assert np.abs(x - y).max() < 1e-9
    assert found.residual.max() < 1e-9
    axis = q[:, :3] / np.linalg.norm(q[:, :3], axis=1)[:, None]
    held = wanted.solution.lam[-1] != 0.0
    outward = (axis * found.v1).sum(1)
    assert 8 < held.sum() < 56
    gap = LIMIT - 2.0 * np.arctan2(np.linalg.norm(q[:, :3], axis=1), q[:, 3])
    assert (outward[held] <= np.maximum(gap[held], 0.0) / DT + 1e-9).all()
    loose = drevo.load(SWING.format(gravity=-9.81).replace(' range="0 40"', ""))
    free = step(exact_robot(loose.model, DT, "plane"), q, v, np.zeros((64, 3)))
    push = np.einsum("nij,nj->ni", robot.mass_matrix(q), found.v1 - free.v)
    assert np.abs(np.cross(push, axis)).max() < 1e-12 and (push * axis).sum(1).max() < 1e-12


def test_a_swing_bounces_at_its_limit_or_is_held() -> None:
    """About a principal axis at 1 rad/s, where half of it comes back; under gravity it neither passes nor gains.

    A turn across its axis at w goes h^2 w^2 / (2 tan) beyond, of which a fifth is taken back each step."""
    _, f = swing(0, 0.5)
    q, v = np.array([0.0, 0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    for _ in range(800):
        q, v, *_ = f(q, v, np.zeros(3))
    assert np.abs(v - [-0.5, 0.0, 0.0]).max() < 1e-9
    robot, f = swing(-9.81, 0.0)
    (q, v), turned, most = near(16), [], 0.0
    before = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    for _ in range(300):
        q, v, *_ = f(q, v, np.zeros((16, 3)))
        most = max(most, np.abs(v).max())
        turned.append(2.0 * np.arctan2(np.linalg.norm(q[:, :3], axis=1), np.abs(q[:, 3])))
    beyond = 5.0 * (DT * most) ** 2 / (2.0 * math.tan(LIMIT / 2.0))
    assert np.max(turned) < LIMIT + 3e-4 + beyond
    assert (robot.kinetic_energy(q, v) + robot.potential_energy(q) < before + 20.0 * DT).all()


def test_derivatives_are_those_of_differences() -> None:
    """Where what holds stays so."""
    robot, _ = swing(-9.81, 0.0)
    q, v = near(40)
    m, eps = exact_robot(robot.model, DT, "plane"), 1e-6
    tau = np.zeros_like(v)
    found = drevo.compile(robot, "step", dt=DT, law="coulomb", product="jacobian")(q, v, tau)
    lam = step(m, q, v, tau, 1e-12).solution.lam[-1]
    held = np.abs(lam) > 1e-6
    sure = held | (lam == 0.0)
    assert sure.sum() > 30 and 5 < held.sum() < 35
    for k, x in enumerate(found):
        ends = []
        for side in (eps, -eps):
            rows = []
            for way in np.eye(3) * side:
                given = [q, v, tau]
                given[k] = robot.integrate(q, np.tile(way, (len(q), 1))) if k == 0 else given[k] + way
                rows.append(step(m, *given, tolerance=1e-14))
            ends.append(rows)
        rates = [np.hstack([robot.difference(b.q, a.q), a.v - b.v]) / (2.0 * eps) for a, b in zip(*ends)]
        wanted = np.stack(rates, -1)[sure]
        size = max(1.0, np.abs(wanted).max())
        assert np.abs(x[sure] - wanted).max() < 1e-6 * size
