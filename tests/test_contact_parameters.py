"""Terrain and friction as numbers of each sample: heights of a grid, the friction of geoms by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours

import drevo

SLED = """<mujoco><option timestep="0.004"/><worldbody><geom name="floor" type="plane" size="9 9 1" friction=".3"/>
 <body name="sled" pos="0 0 .1"><freejoint/><geom name="front" type="sphere" size=".1" pos=".2 0 0" friction=".5"/>
  <geom name="left" type="sphere" size=".1" pos="-.2 .15 0" friction=".6" condim="4"/>
  <geom name="right" type="sphere" size=".1" pos="-.2 -.15 0" friction=".7" priority="1"/>
 </body></worldbody></mujoco>"""
BALL = """<mujoco><worldbody><body name="ball"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
 </worldbody></mujoco>"""


def sliding(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    q, v = np.zeros((count, 7)), rng.uniform(-1.0, 1.0, (count, 6))
    q[:, 2], q[:, 6], v[:, 2:5] = 0.099, 1.0, 0.0
    return q, v


def test_friction_of_geoms_is_mujocos_by_sample() -> None:
    """Of two geoms the larger one's, of the one of higher priority its own: each sample with its own three."""
    mujoco = pytest.importorskip("mujoco")
    robot, m = drevo.load(SLED), mujoco.MjModel.from_xml_string(SLED)
    m.opt.solver, m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations = 2, 0.0, 100, 100
    f = drevo.compile(robot, "step", dt=0.004, ground=None, parameters=("friction.floor", "friction.[lr]*"))
    assert dict(f.parameters) == {"friction.floor": 0.3, "friction.left": 0.6, "friction.right": 0.7}
    (q, v), numbers = sliding(12), np.random.default_rng(1).uniform(0.05, 1.2, (12, 3))
    found, names = f(q, v, np.zeros(6), numbers), [x.rpartition(".")[2] for x, _ in f.parameters]
    data = mujoco.MjData(m)
    for k in range(12):
        for name, mu in zip(names, numbers[k]):
            m.geom(name).friction[0] = mu
        mujoco.mj_resetData(m, data)
        data.qpos[:], data.qvel[:] = [*q[k, :3], 1.0, 0.0, 0.0, 0.0], v[k]
        mujoco.mj_step(m, data)
        q1, v1 = as_ours(m, data.qpos, data.qvel)
        assert np.abs(found.q1[k] - q1).max() < 1e-12 and np.abs(found.v1[k] - v1).max() < 1e-11


def test_friction_of_geoms_under_the_exact_law() -> None:
    """A sled on geoms of other friction, and the numbers of `friction=` where it is given."""
    how, (q, v) = {"dt": 0.004, "law": "coulomb"}, sliding(6)
    f = drevo.compile(drevo.load(SLED), "step", **how, parameters="friction.*")
    assert dict(f.parameters) == {f"friction.{x}": y for x, y in zip(("floor", "front", "left", "right"),
                                                                     (0.3, 0.5, 0.6, 0.7))}  # fmt: skip
    other = drevo.load(SLED.replace('".3"', '".8"').replace('".7"', '".2"'))
    for x, y in zip(
        f(q, v, np.zeros(6), [0.8, 0.5, 0.6, 0.2]), drevo.compile(other, "step", **how)(q, v, np.zeros(6))
    ):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    told = drevo.compile(drevo.load(SLED), "step", **how, friction=0.4, parameters="friction.left").parameters
    assert dict(told) == {"friction.left": 0.4}
    for wrong in ("friction.back", ("friction", "friction.left")):
        with pytest.raises(drevo.InputError, match="names no friction that could be a parameter"):
            drevo.compile(drevo.load(SLED), "step", **how, parameters=wrong)


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_heights_of_a_grid_by_sample(law: str) -> None:
    """Each sample on its own terrain is the step on a grid that has its heights for good."""
    rng, robot = np.random.default_rng(2), drevo.load(BALL)
    heights = rng.uniform(0.0, 0.1, (5, 3, 4))
    f = drevo.compile(
        robot, "step", dt=2e-3, law=law, ground=drevo.ground.grid(heights[0], 0.5), parameters="ground"
    )
    assert [x for x, _ in f.parameters[:5]] == [f"ground.{x}" for x in ("0.0", "0.1", "0.2", "0.3", "1.0")]
    assert [x for _, x in f.parameters] == heights[0].ravel().tolist()
    q, v, tau = np.zeros((5, 7)), rng.normal(size=(5, 6)), np.zeros(6)
    q[:, :2], q[:, 6] = rng.uniform(-0.4, 0.4, (5, 2)), 1.0
    grids = [drevo.ground.grid(x, 0.5) for x in heights]
    q[:, 2] = [0.1 + grid.surface(x, y)[0] for grid, (x, y, *_) in zip(grids, q.tolist())]
    found = f(q, v, tau, heights.reshape(5, -1))
    assert (found.forces[:, 0, 2] > 0.0).any()
    for k in (0, 4):
        alone = drevo.compile(robot, "step", dt=2e-3, law=law, ground=grids[k])(q[k], v[k], tau)
        for x, y in zip(found, alone):
            assert np.allclose(x[k], y, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("law", ["soft", "coulomb"])
@pytest.mark.parametrize("wrong", [-0.5, -1e-9, np.nan, np.inf])
def test_what_is_no_friction_is_refused_by_sample(law: str, wrong: float) -> None:
    """Whether a place touches or not; a ground's own friction(x, y) where the robot is."""
    robot, (q, v) = drevo.load(SLED), sliding(3)
    q[2, 2] = 5.0
    f = drevo.compile(robot, "step", dt=0.004, law=law, ground=None, parameters="friction")
    mu = np.full((3, 1), 0.5)
    assert np.isfinite(f(q, v, np.zeros(6), mu).v1).all()
    mu[2] = wrong
    told = r"friction, parameters\[0\] in row 2, is -" if wrong < 0.0 else r"parameters\[0\] in row 2 is (nan|inf)"
    with pytest.raises(drevo.NumericsError, match=told):
        f(q, v, np.zeros(6), mu)


@pytest.mark.parametrize("product", ["jvp", "vjp"])
def test_derivatives_refuse_what_is_no_friction(product: str) -> None:
    robot, (q, v) = drevo.load(SLED), sliding(1)
    f = drevo.compile(robot, "step", dt=0.004, ground=None, parameters="friction", product=product)
    w = [np.ones(6)] * 3 + [np.ones(1)] if product == "jvp" else [np.ones(6)] * 2
    assert all(np.isfinite(x).all() for x in f(q[0], v[0], np.zeros(6), [0.5], *w))
    with pytest.raises(drevo.NumericsError, match="a coefficient of friction is 0 or more"):
        f(q[0], v[0], np.zeros(6), [-0.5], *w)


def test_friction_of_a_ground_that_falls_below_zero_is_refused_there() -> None:
    ground = drevo.ground.function(lambda x, y: 0.0 * x, friction=lambda x, y: 0.5 - x)
    f, (q, v) = drevo.compile(drevo.load(BALL), "step", dt=1e-3, law="coulomb", ground=ground), sliding(1)
    assert np.isfinite(f(q[0], v[0], np.zeros(6)).v1).all()
    q[0, 0] = 1.0
    with pytest.raises(drevo.NumericsError, match=r"the ground's friction\(x, y\) is below zero"):
        f(q[0], v[0], np.zeros(6))
