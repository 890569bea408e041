"""The regressor: against inverse dynamics on random trees, Pinocchio's, and a rotor's torque."""

from dataclasses import replace

import numpy as np
import pinocchio
import pytest
from oracles import pinocchio_of
from strategies import robot as random_tree
from strategies import seeds, state

import drevo
from drevo.model.description import JointDynamics


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_torques_are_linear_in_the_inertial_parameters(seed: int) -> None:
    robot = drevo.Robot(random_tree(seed))
    q, v, a = state(robot.model, seed)
    tau = robot.inverse_dynamics(q, v, a)
    Y = robot.regressor(q, v, a)
    assert Y.shape == (robot.nv, len(robot.moving_links), 10)
    off = np.einsum("jlk,lk->j", Y, robot.inertial_parameters) - tau
    assert np.abs(off).max() <= 1e-12 * max(1.0, np.abs(tau).max())


@pytest.mark.parametrize("name", ["puma560", "stanford", "rx90"])
def test_every_column_is_pinocchios(name: str) -> None:
    robot, rng = drevo.load(name), np.random.default_rng(1)
    q = robot.random(rng)
    v, a = rng.normal(size=(2, robot.nv))
    model = pinocchio_of(robot.model).model
    expected = pinocchio.computeJointTorqueRegressor(model, model.createData(), q, v, a)
    assert np.abs(robot.regressor(q, v, a).reshape(robot.nv, -1) - expected).max() < 1e-12


def test_a_rotor_is_apart() -> None:
    model = drevo.load("three-link").model
    heavy = replace(model.joints[1], dynamics=JointDynamics(armature=0.3))
    robot = drevo.Robot(replace(model, joints=(model.joints[0], heavy, *model.joints[2:])))
    q, v, a = np.random.default_rng(2).normal(size=(3, 3))
    off = robot.inverse_dynamics(q, v, a) - np.einsum(
        "jlk,lk->j", robot.regressor(q, v, a), robot.inertial_parameters
    )
    assert np.abs(off - [0.0, 0.3 * a[1], 0.0]).max() < 1e-13
