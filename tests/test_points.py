"""A point of a link in the place of its origin: one rule in all calls, against a frame that is welded there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import control, tasks
from drevo.model.description import Joint, Link

POINT = (0.04, -0.02, 0.15)
Q = np.array([0.3, -0.8, 0.5, 0.4, 0.7, -0.2])
V = np.array([0.5, -0.2, 0.7, 0.3, -0.6, 0.1])
LAWS = {
    "operational_space": {},
    "impedance": {},
    "admittance": {"inertia": 2.0},
    "hybrid": {"force_axes": "z", "force": [3.0], "axes": "x y rx ry rz"},
}


def arm() -> tuple[drevo.Robot, drevo.Robot]:
    """A Puma, and the same with a frame "tip" at the point."""
    robot = drevo.load("puma560")
    weld = Joint("weld", "fixed", "link6", "tip", origin=POINT)
    model = replace(robot.model, links=(*robot.model.links, Link("tip")), joints=(*robot.model.joints, weld))
    return robot, drevo.Robot(model)


def test_the_rule_is_that_of_pose() -> None:
    robot, welded = arm()
    assert np.abs(robot.pose(Q, "link6", point=POINT) - welded.pose(Q, "tip")).max() < 1e-15


@pytest.mark.parametrize("name", ["pose", "velocity", "acceleration", "jacobian", "jacobian_bias"])
def test_a_point_and_an_array_for_the_result_that_do_not_fit_are_refused(name: str) -> None:
    robot, q, v = arm()[0], np.stack([Q, Q + 0.1]), 9.0 * np.stack([V, V])
    moving = {"velocity": (q, v), "acceleration": (q, v, v), "jacobian_bias": (q, v)}
    ask = partial(getattr(robot, name), *moving.get(name, (q,)))
    with pytest.raises(drevo.InputError, match="point holds a value that is not finite"):
        ask("link6", point=(0.0, np.nan, 0.0))
    with pytest.raises(drevo.InputError, match="do not agree"):
        ask("link6", point=np.zeros((4, 3)))
    for wrong in (np.zeros(3), np.zeros((7, *ask("link6").shape)), [0.0]):
        with pytest.raises(drevo.InputError, match="out"):
            ask("link6", point=POINT, out=wrong)
    if name in moving:
        with pytest.raises(drevo.NumericsError, match="beyond the largest number"):
            ask("link6", point=(1e308, -1e308, 1e308))


def test_inverse_kinematics_reaches_with_the_point() -> None:
    robot, welded = arm()
    poses = welded.pose(np.array([Q, Q + 0.1]), "tip")
    reached = robot.inverse_kinematics("link6", poses, point=POINT, limits=False)
    assert reached.success.all() and np.abs(welded.pose(reached.q, "tip") - poses).max() < 1e-8
    branches = robot.closed_form("link6", point=POINT)(poses)
    assert np.array_equal(branches, welded.closed_form("tip")(poses), equal_nan=True)
    assert np.nanmin(np.abs(branches[0] - Q).max(-1)) < 1e-9
    path = robot.inverse_kinematics_path("link6", poses, Q, point=POINT)
    assert np.abs(path - [Q, Q + 0.1]).max() < 1e-9


@pytest.mark.parametrize("name", ["manipulability", "operational_inertia", "inverse_operational_inertia"])
@pytest.mark.parametrize("frame", ["local", "local_world_aligned"])
def test_inertia_and_manipulability_at_the_point(name: str, frame: str) -> None:
    robot, welded = arm()
    ours, theirs = getattr(robot, name)(Q, "link6", frame, point=POINT), getattr(welded, name)(Q, "tip", frame)
    assert np.abs(ours - theirs).max() < 1e-9 * np.abs(theirs).max()
    J = robot.jacobian(Q, "link6", frame, point=POINT)
    K = J @ robot.inverse_mass_matrix(Q) @ J.T
    by_definition = {
        "manipulability": np.sqrt(np.linalg.det(J @ J.T)),
        "operational_inertia": np.linalg.inv(K),
        "inverse_operational_inertia": K,
    }[name]
    assert np.abs(ours - by_definition).max() < 1e-9 * np.abs(by_definition).max()


def test_operational_space_at_the_point() -> None:
    robot, welded = arm()
    ours = robot.operational_space("link6", Q, V, point=POINT)
    for x, y in zip(ours, welded.operational_space("tip", Q, V)):
        assert np.abs(x - y).max() < 1e-9 * max(1.0, np.abs(y).max())
    J = robot.jacobian(Q, "link6", point=POINT)
    inertia = np.linalg.inv(J @ np.linalg.solve(robot.mass_matrix(Q), J.T))
    assert np.abs(ours.Lambda - inertia).max() < 1e-9 * np.abs(inertia).max()


@pytest.mark.parametrize("name", LAWS)
def test_laws_of_a_link_at_the_point(name: str) -> None:
    robot, welded = arm()
    make, wrench = getattr(control, name), [np.arange(6.0)] if name == "admittance" else []
    goal = welded.pose(Q + 0.01, "tip")
    ours = make(robot, "link6", 40.0, 9.0, reference=goal, point=POINT, **LAWS[name])
    theirs = make(welded, "tip", 40.0, 9.0, reference=goal, **LAWS[name])
    assert np.abs(ours(0.1, Q, V, *wrench) - theirs(0.1, Q, V, *wrench)).max() < 1e-9
    if name == "operational_space":
        motion = robot.simulate(Q, V, tau=ours, duration=0.02)
        assert np.abs(motion.q[-1] - welded.simulate(Q, V, tau=theirs, duration=0.02).q[-1]).max() < 1e-12


def test_tasks_of_frames_at_the_point() -> None:
    robot, welded = arm()
    goal = welded.pose(Q + 0.05, "tip")
    posture = tasks.PostureTask(1e-3)
    mine = tasks.FrameTask("link6", position_cost=2.0, point=POINT)
    its = tasks.FrameTask("tip", position_cost=2.0)
    ours = tasks.solve_ik(robot, Q, [mine, posture], 0.01, targets=[goal, Q])
    theirs = tasks.solve_ik(welded, Q, [its, posture], 0.01, targets=[goal, Q])
    assert np.abs(ours.v - theirs.v).max() < 1e-8 and np.abs(ours.v).max() > 0.1
    elsewhere = tasks.FrameTask("link6", position_cost=2.0, point=(0.0, 0.0, 0.0))
    assert np.abs(tasks.solve_ik(robot, Q, [elsewhere, posture], 0.01, targets=[goal, Q]).v - ours.v).max() > 0.1


def test_relative_tasks_of_frames_at_the_point() -> None:
    robot, welded = arm()
    goal = np.linalg.inv(robot.pose(Q, "link2")) @ welded.pose(Q + 0.05, "tip")
    posture = tasks.PostureTask(1e-3)
    mine = tasks.RelativeFrameTask("link6", "link2", point=POINT)
    its = tasks.RelativeFrameTask("tip", "link2")
    ours = tasks.solve_ik(robot, Q, [mine, posture], 0.01, targets=[goal, Q])
    theirs = tasks.solve_ik(welded, Q, [its, posture], 0.01, targets=[goal, Q])
    assert np.abs(ours.v - theirs.v).max() < 1e-8 and np.abs(ours.v).max() > 0.1


def test_accelerations_of_frames_at_the_point() -> None:
    pytest.importorskip("qpsolvers")
    pytest.importorskip("daqp")
    robot, welded = arm()
    goal = welded.pose(Q + 0.05, "tip")
    ours = tasks.solve_id(robot, Q, V, [tasks.FrameTask("link6", point=POINT)], targets=[goal], limits=False)
    theirs = tasks.solve_id(welded, Q, V, [tasks.FrameTask("tip")], targets=[goal], limits=False)
    assert np.abs(ours.a - theirs.a).max() < 1e-6 * np.abs(theirs.a).max()
    goal = np.linalg.inv(robot.pose(Q, "link2")) @ goal
    relative = [tasks.RelativeFrameTask("link6", "link2", point=POINT)], [tasks.RelativeFrameTask("tip", "link2")]
    ours, theirs = (
        tasks.solve_id(r, Q, V, task, targets=[goal], limits=False) for r, task in zip((robot, welded), relative)
    )
    assert np.abs(ours.a - theirs.a).max() < 1e-6 * np.abs(theirs.a).max()


@pytest.mark.parametrize("wrong", [(0.0, 1.0), "x", (0.0, 0.0, np.nan)])
def test_points_that_are_none_are_refused(wrong: Any) -> None:
    robot = drevo.load("puma560")
    for ask in (
        lambda: robot.inverse_kinematics("link6", np.eye(4), point=wrong),
        lambda: robot.operational_space("link6", Q, V, point=wrong),
        lambda: control.impedance(robot, "link6", 1.0, 1.0, point=wrong),
        lambda: robot.manipulability(Q, "link6", point=wrong),
        lambda: tasks.FrameTask("link6", point=wrong),
        lambda: tasks.RelativeFrameTask("link6", "link2", point=wrong),
    ):
        with pytest.raises(drevo.InputError, match="point"):
            ask()
    with pytest.raises(drevo.InputError, match="single link"):
        robot.inverse_kinematics(["link6", "link5"], np.zeros((2, 4, 4)), point=POINT)
    with pytest.raises(drevo.DrevoError, match="nowhere"):
        robot.inverse_kinematics("nowhere", np.eye(4), point=POINT)
