"""The poses of all moving links at once: those of one link at a time, and Pinocchio's."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracles
import pytest

import drevo
from drevo.mechanics.algorithms.kinematics import moving_links, poses
from drevo.mechanics.tree import build_tree
from drevo.model.description import Joint, Link, Mimic, Model
from drevo.robot.face import Robot

NAMES = (("puma560", "fixed"), ("stanford", "fixed"), ("biped", "floating"), ("screw-arm", "fixed"))


def mixed() -> Robot:
    """Tilted axes, joints of several steps, a weld and a mimic joint; the order of links is not that of q."""
    turned = ((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))
    joints = (
        Joint("m", "revolute", "base", "follows", (0.1, 0.0, 0.2), turned, mimic=Mimic("r", -2.0, 0.3)),
        Joint("u", "universal", "follows", "cross", axis=(0.0, 0.6, 0.8), axis2=(1.0, 0.0, 0.0)),
        Joint("w", "fixed", "cross", "tool", (0.0, 0.0, 0.1)),
        Joint("c", "cylindrical", "tool", "slide", (0.2, 0.0, 0.0), turned, (0.0, 0.0, -1.0)),
        Joint("r", "revolute", "slide", "hand", (0.0, 0.1, 0.0)),
    )  # fmt: skip
    links = tuple(Link(n) for n in ("base", "follows", "cross", "tool", "slide", "hand"))
    return Robot(Model("mixed", links, joints))


def robots() -> list[Any]:
    return [*(pytest.param(lambda n=n, b=b: drevo.load(n, base=b), id=n) for n, b in NAMES), pytest.param(mixed)]


@pytest.mark.parametrize("robot_of", robots())
def test_one_link_at_a_time(robot_of: Any) -> None:
    robot = robot_of()
    q = robot.random(np.random.default_rng(0), 5)
    found = robot.poses(q)
    assert found.shape == (5, len(robot.moving_links), 4, 4)
    assert list(robot.moving_links) == moving_links(build_tree(robot.model))
    for k, link in enumerate(robot.moving_links):
        want = robot.pose(q, link)
        assert np.abs(found[:, k] - want).max() <= 1e-14 * max(1.0, np.abs(want).max())
    theirs = oracles.pinocchio_of(robot.model).poses(q[0])
    for T, link in zip(found[0], robot.moving_links, strict=True):
        assert np.abs(T - theirs[link]).max() <= 1e-13 * max(1.0, np.abs(T).max())
    plain = np.array(poses(build_tree(robot.model), q[0].tolist()))
    assert np.abs(plain - found[0]).max() <= 1e-13 * max(1.0, np.abs(plain).max())


def test_a_joint_that_follows_stands_last() -> None:
    assert mixed().moving_links == ("cross", "slide", "hand", "follows")
