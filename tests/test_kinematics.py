"""Global inverse kinematics: reached within limits, all branches, several targets, and reasons where it fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import drevo

TOLERANCE = 1e-9
ARM = """<mujoco model="arm"><compiler autolimits="true"/><worldbody>
 <geom name="wall" type="box" pos=".35 0 0" size=".05 .3 .3"/>
 <body name="upper"><joint name="a" axis="0 1 0" range="-100 100"/>
  <geom type="capsule" fromto="0 0 0 0 0 .4" size=".02"/>
 <body name="lower" pos="0 0 .4"><joint name="b" axis="0 1 0" range="-150 150"/>
  <geom name="tip" type="sphere" pos="0 0 .3" size=".03"/>
 <body name="hand" pos="0 0 .3"><joint name="c" axis="0 1 0" range="-90 90"/><geom type="sphere" size=".01"/>
 </body></body></body></worldbody></mujoco>"""


def reachable(robot: Any, link: str, count: int, seed: int = 0) -> tuple[Any, Any]:
    """Configurations within the limits, and the poses of a link there."""
    rng = np.random.default_rng(seed)
    q = robot.random(rng, count)
    low, high = np.maximum(robot.lower, -3.0), np.minimum(robot.upper, 3.0)
    inside = rng.uniform(low, high, (count, robot.nq))
    q = np.where((q < robot.lower) | (q > robot.upper), inside, q)
    return q, robot.pose(q, link)


def twist_between(A: Any, B: Any) -> tuple[Any, Any]:
    """Distance, m, and angle, rad, between poses, without the solver's own logarithm."""
    R = np.swapaxes(A[..., :3, :3], -1, -2) @ B[..., :3, :3]
    skew = np.stack([R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]], -1)
    angle = np.arctan2(np.linalg.norm(skew, axis=-1), np.trace(R, axis1=-2, axis2=-1) - 1.0)
    return np.linalg.norm(A[..., :3, 3] - B[..., :3, 3], axis=-1), angle


@pytest.mark.parametrize(
    "name, link", [("puma560", None), ("ur5", "tool0"), ("panda", "panda_link8"), ("kinova", None), ("rx90", None)]
)
def test_reachable_poses_are_reached_within_limits(name: str, link: str | None) -> None:
    robot = drevo.load(name)
    link = link or robot.moving_links[-1]
    _, poses = reachable(robot, link, 500)
    x = robot.inverse_kinematics(link, poses)
    assert x.success.mean() >= 0.998
    far, turned = twist_between(robot.pose(x.q, link), poses)
    assert far[x.success].max() < TOLERANCE and turned[x.success].max() < TOLERANCE + 1e-15 / TOLERANCE
    assert (x.q >= robot.lower).all() and (x.q <= robot.upper).all()
    assert (x.residual[x.success] <= TOLERANCE).all() and all(x.reason[k] for k in np.flatnonzero(~x.success))


@pytest.mark.parametrize("name, link", [("puma560", "link6"), ("panda", "panda_hand")])
def test_arms_with_a_closed_form_begin_at_its_branches(name: str, link: str) -> None:
    robot = drevo.load(name)
    _, poses = reachable(robot, link, 300)
    x = robot.inverse_kinematics(link, poses)
    y = robot.inverse_kinematics(link, poses, seeds=0)
    assert x.success.all() and np.median(x.iterations) == 0 < y.iterations.min()
    alone = robot.inverse_kinematics(link, poses[7])
    assert np.abs(alone.q - x.q[7]).max() < 1e-12


def test_the_solution_near_the_start_is_found() -> None:
    robot = drevo.load("puma560")
    q, poses = reachable(robot, robot.moving_links[-1], 200)
    rng = np.random.default_rng(1)
    x = robot.inverse_kinematics(
        robot.moving_links[-1], poses, np.clip(q + 0.01 * rng.normal(size=q.shape), robot.lower, robot.upper)
    )
    assert (np.abs(x.q - q).max(-1) < 0.2).mean() > 0.9  # not all: some are near a singular posture
    one = robot.inverse_kinematics(robot.moving_links[-1], poses[0], q[0])
    assert one.success and one.q.shape == (6,) and one.reason == "" and np.allclose(one.q, q[0], atol=1e-12)


def test_all_branches_of_a_wrist() -> None:
    """A Puma without limits has eight postures; every one is distinct and reaches the pose."""
    robot = drevo.load("puma560")
    link = robot.moving_links[-1]
    _, poses = reachable(robot, link, 3, seed=5)
    for branch in robot.inverse_kinematics(link, poses, limits=False, attempts=400, all=True):
        assert len(branch.q) == 8 and branch.success.all()
        turns = np.exp(1j * branch.q)
        apart = np.abs(turns[:, None] - turns[None]).max(-1) + np.eye(8)
        assert apart.min() > 1e-4


@pytest.mark.parametrize("reach", ["position", "orientation", "pointing"])
def test_part_of_a_pose(reach: str) -> None:
    robot = drevo.load("ur5")
    _, poses = reachable(robot, "tool0", 100, seed=2)
    x = robot.inverse_kinematics("tool0", poses, reach=reach)
    T = robot.pose(x.q, "tool0")
    far, turned = twist_between(T, poses)
    pointed = np.linalg.norm(T[..., :3, 2] - poses[..., :3, 2], axis=-1)
    left = {"position": far, "orientation": turned, "pointing": pointed}[reach]
    assert x.success.all() and left.max() < 2e-9
    assert {"position": turned, "orientation": far, "pointing": far}[reach].max() > 0.1


def test_several_links_and_the_centre_of_mass() -> None:
    robot = drevo.load("go1", base="floating")
    feet = [name for name in robot.moving_links if name.endswith("foot")] or [
        name for name in robot.moving_links if name.endswith("calf")
    ]
    rng = np.random.default_rng(3)
    q = np.concatenate(([0.1, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], np.tile([0.05, 0.7, -1.5], 4))) + 0.0
    q[7:] += rng.uniform(-0.1, 0.1, 12)
    targets = np.stack([robot.pose(q, name) for name in feet])
    center = np.eye(4)
    center[:3, 3] = robot.center_of_mass(q)
    x = robot.inverse_kinematics(
        [*feet, "center_of_mass"], np.concatenate((targets, center[None])),
        reach=["position"] * len(feet) + ["position"], attempts=20,
    )  # fmt: skip
    assert x.success and np.abs(robot.center_of_mass(x.q) - center[:3, 3]).max() < 2e-9
    for name, T in zip(feet, targets):
        assert np.abs(robot.pose(x.q, name)[:3, 3] - T[:3, 3]).max() < 2e-9


def test_what_must_not_touch() -> None:
    robot = drevo.load(ARM)
    pose = robot.pose([-0.6, 2.2, -0.4], "hand")
    free = robot.inverse_kinematics("hand", pose, avoid=[("wall", "tip")])
    gap = robot.distance(free.q, [("wall", "tip")]).distance
    assert free.success and gap.min() >= 0.0
    inside = np.eye(4)
    inside[0, 3] = 0.35
    x = robot.inverse_kinematics("hand", inside, reach="position", avoid=[("wall", "tip")], attempts=20)
    assert not x.success and "touches" in x.reason and np.isfinite(x.residual).all()


def test_out_of_reach() -> None:
    robot = drevo.load("ur5")
    T = np.eye(4)
    T[0, 3] = 3.0
    x = robot.inverse_kinematics("tool0", T, attempts=5)
    assert not x.success and x.residual[0] > 1.0 and "not reached from 5 starts" in x.reason
    assert np.isfinite(x.q).all() and robot.inverse_kinematics("tool0", np.empty((0, 4, 4))).q.shape == (0, 6)


@pytest.mark.parametrize(
    "given, said",
    [
        ({"link": "tool9"}, "no link 'tool9'"),
        ({"link": "base_link"}, "'base_link' does not move"),
        ({"poses": np.eye(3)}, "shape"),
        ({"poses": 2.0 * np.eye(4)}, "is no rotation"),
        ({"poses": np.diag([1.0, 1.0, -1.0, 1.0])}, "is no rotation"),
        ({"poses": np.full((4, 4), np.nan)}, "poses"),
        ({"reach": "posture"}, "reach"),
        ({"reach": ["pose", "pose"]}, "2 words for 1 links"),
        ({"attempts": 0}, "attempts is 0"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"q0": np.zeros(5)}, "q0"),
        ({"avoid": "auto"}, "no pair of geoms"),
    ],
)
def test_what_does_not_fit_is_one_sentence(given: dict[str, Any], said: str) -> None:
    robot = drevo.load("ur5")
    call = {"link": "tool0", "poses": np.eye(4)} | given
    if "avoid" in given:
        robot = drevo.load("puma560")
        call["link"] = robot.moving_links[-1]
    with pytest.raises(drevo.DrevoError, match=said) as error:
        robot.inverse_kinematics(**call)
    assert "\n" not in str(error.value)
