"""Closed-form inverse kinematics by forward kinematics and the numeric solver; poses singular and out of reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closed_cases import ARMS, EVERY, GIVEN, arm, link_of

import drevo

SIX = [name for name in EVERY if name not in GIVEN]
SEVEN = [(name, joint) for name, joints in GIVEN.items() for joint in joints]


def apart(a: Any, b: Any, robot: drevo.Robot) -> Any:
    """The largest difference of coordinates, whole turns aside, (...)."""
    d = np.asarray(a) - b
    slides = [j.kind == "prismatic" for j in robot.model.moving_joints]
    return np.abs(np.where(slides, d, (d + np.pi) % (2.0 * np.pi) - np.pi)).max(-1)


def states(robot: drevo.Robot, count: int, seed: int = 0, **given: float) -> tuple[Any, Any]:
    """Random configurations, and the poses of the link there."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2.5, 2.5, (count, robot.nq))
    for name, x in given.items():
        q[:, robot.joint_names.index(name)] = x
    for k, j in enumerate(robot.model.moving_joints):
        if "finger" in j.name:
            q[:, k] = 0.0
    return q, robot.pose(q, link_of(robot))


def left(robot: drevo.Robot, branches: Any, poses: Any) -> Any:
    """What real branches leave of their poses, and how many of each pose are real."""
    real = np.isfinite(branches).all(-1)
    assert (np.isnan(branches).all(-1) | real).all()
    wanted = np.broadcast_to(poses[..., None, :, :], (*branches.shape[:-1], 4, 4))
    return np.abs(robot.pose(branches[real], link_of(robot)) - wanted[real]).max(initial=0.0), real.sum(-1)


@pytest.mark.parametrize("name", SIX)
def test_branches_reach_the_pose_and_the_configuration_is_among_them(name: str) -> None:
    robot = arm(name)
    q, poses = states(robot, 300)
    branches = robot.closed_form(link_of(robot))(poses)
    rest, _ = left(robot, branches, poses)
    assert rest < (1e-13 if name in ARMS else 1e-10)  # ur5: its file has quarter turns of nine digits
    nearest = np.nanmin(apart(branches, q[:, None], robot), -1)
    assert np.quantile(nearest, 0.97) < 1e-6 and nearest.max() < 1e-3  # some are near a singular one


@pytest.mark.parametrize("name, joint", SEVEN)
def test_seven_joints_of_which_one_is_given(name: str, joint: str) -> None:
    robot = arm(name)
    q, poses = states(robot, 100, **{joint: 0.83})
    branches = robot.closed_form(link_of(robot), **{joint: 0.83})(poses)
    rest, _ = left(robot, branches, poses)
    assert rest < 1e-10 and np.quantile(np.nanmin(apart(branches, q[:, None], robot), -1), 0.95) < 1e-6
    assert (branches[..., robot.joint_names.index(joint)][np.isfinite(branches[..., 0])] == 0.83).all()


@pytest.mark.parametrize("name", ["puma560", "ur10e", "abb", "shoulder", "turned", "stanford", "scara", "polar"])
def test_the_branches_are_what_the_numeric_solver_finds(name: str) -> None:
    robot = arm(name)
    _, poses = states(robot, 4, seed=3)
    branches = robot.closed_form(link_of(robot))(poses)
    for pose, rows in zip(poses, branches):
        real = rows[np.isfinite(rows).all(-1)]
        x = robot.inverse_kinematics(link_of(robot), pose, limits=False, attempts=200, all=True)[0].q
        assert apart(x[:, None], real, robot).min(1).max() < 1e-6
        assert apart(real[:, None], x, robot).min(1).max() < 1e-6


@pytest.mark.parametrize("name", SIX)
def test_singular_poses_have_the_branches_of_the_limit(name: str) -> None:
    """Angles of whole quarter turns: wrists in line, arms stretched and folded, the tool above the base."""
    robot = arm(name)
    rng = np.random.default_rng(1)
    q = rng.integers(-2, 3, (300, robot.nq)) * (np.pi / 2.0)
    q[:, 0] = rng.uniform(-2.0, 2.0, 300)
    poses = robot.pose(q, link_of(robot))
    rest, count = left(robot, robot.closed_form(link_of(robot))(poses), poses)
    assert rest < 1e-9 and count.min() >= 1


@pytest.mark.parametrize("name", ["puma560", "ur10e", "abb", "stanford", "scara"])
def test_what_is_out_of_reach_is_not_a_number_and_no_error(name: str) -> None:
    robot = arm(name)
    _, poses = states(robot, 20)
    poses[:10, 0, 3] += 1e6 if name == "stanford" else 10.0
    branches = robot.closed_form(link_of(robot))(poses)
    if name != "stanford":  # it slides as far as one likes
        assert np.isnan(branches[:10]).all()
    assert np.isfinite(branches[10:]).any((1, 2)).all()
    assert np.array_equal(robot.closed_form(link_of(robot))(poses[15]), branches[15], equal_nan=True)


def test_what_is_no_pose_is_refused_in_a_sentence() -> None:
    robot = drevo.load("puma560")
    f = robot.closed_form(robot.moving_links[-1])
    poses = np.tile(np.eye(4), (5, 1, 1))
    poses[3, 0, 0] = 1.001
    with pytest.raises(drevo.DrevoError, match=r"in row 3 is no pose: its rotation is more than 1e-06 from"):
        f(poses)
    poses[3, 0, 0] = -1.0
    with pytest.raises(drevo.DrevoError, match="no pose"):
        f(poses)
    poses[3, 0, 0] = np.nan
    with pytest.raises(drevo.DrevoError, match="inputs must be finite"):
        f(poses[3])
    rounded = robot.pose(np.full(6, 0.3), robot.moving_links[-1]).round(7)
    assert left(robot, f(rounded), rounded)[0] < 1e-6


def test_joints_that_are_arguments_and_limits() -> None:
    robot = drevo.load("panda")
    link, at = "panda_link8", 0.4
    poses = robot.pose(robot.random(np.random.default_rng(0), 50), link)
    fixed, swept = robot.closed_form(link, panda_joint7=at), robot.closed_form(link, panda_joint7=None)
    np.testing.assert_allclose(swept(poses, at), fixed(poses), atol=1e-9)
    assert swept(poses[0], np.linspace(-2.0, 2.0, 9)).shape == (9, 8, robot.nq)
    q = robot.closed_form(link, limits=True, panda_joint7=at)(poses)
    real = np.isfinite(q).all(-1)
    assert 0 < real.sum() < np.isfinite(fixed(poses)).all(-1).sum()
    assert (q[real] >= robot.lower).all() and (q[real] <= robot.upper).all()


@pytest.mark.parametrize("tilt", [1e-9, 2e-6])
@pytest.mark.parametrize("name", ["scara", "plane", pytest.param("ur10e", marks=pytest.mark.nightly)])
def test_files_with_few_digits_have_branches_of_the_robot_as_it_is(name: str, tilt: float) -> None:
    """Axes that are parallel or meet but nearly: Newton's steps follow. Few are lost."""
    robot = arm(name, tilt)
    q, poses = states(robot, 300)
    branches = robot.closed_form("tool")(poses)
    rest, _ = left(robot, branches, poses)
    distances = np.where(np.isnan(branches[..., 0]), 9.0, apart(branches, q[:, None], robot)).min(-1)
    assert rest < 1e-9 and np.quantile(distances, 0.98) < 1e-6


def test_an_arm_angle_closes_shoulder_elbow_and_wrist() -> None:
    """Shimizu et al. 2008: the angle about the line to the wrist, from the first axis to the elbow."""
    robot = arm("iiwa")
    f = robot.closed_form("tool", arm_angle=None)
    q, poses = states(robot, 300)
    S, E, W = (robot.pose(q, link)[..., :3, 3] for link in ("l2", "l4", "l6"))
    u = (W - S) / np.linalg.norm(W - S, axis=-1, keepdims=True)
    side, up = E - S, np.array([0.0, 0.0, 1.0]) - u * u[:, 2:]
    angle = np.arctan2((u * np.cross(up, side)).sum(-1), (up * side).sum(-1))
    branches = f(poses, angle)
    rest, count = left(robot, branches, poses)
    assert rest < 1e-13 and count.min() == 8
    assert np.quantile(np.nanmin(apart(branches, q[:, None], robot), -1), 0.97) < 1e-6
    quarters = np.random.default_rng(1).integers(-2, 3, (300, 7)) * (np.pi / 2.0)
    poses = robot.pose(quarters, "tool")
    rest, count = left(robot, f(poses, 0.3), poses)
    assert rest < 1e-9 and count.min() >= 1
    with pytest.raises(drevo.DrevoError, match="an arm angle closes seven joints"):
        drevo.load("panda").closed_form("panda_link8", arm_angle=0.3)


@pytest.mark.parametrize(
    "name, link, given, sentence",
    [
        ("panda", "panda_link8", {}, "7 joints move link .*'panda_joint4', 'panda_joint6', 'panda_joint7'"),
        ("panda", "panda_link8", {"panda_joint1": 0.0}, "no closed form is known.*robot.inverse_kinematics"),
        ("panda", "panda_link8", {"panda_joint": 0.0}, "no joint 'panda_joint'.*did you mean"),
        ("puma560", "base", {}, "does not move|link"),
        ("rod-chain", None, {}, "10 joints.*all but six"),
        ("screw-arm", None, {}, "helical"),
    ],
)  # fmt: skip
def test_an_arm_without_one_is_told_why(name: str, link: Any, given: Any, sentence: str) -> None:
    robot = drevo.load(name)
    with pytest.raises(drevo.DrevoError, match=sentence):
        robot.closed_form(link or robot.moving_links[-1], **given)
