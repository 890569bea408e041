"""Closed forms beside the numeric solver, and singular poses; by night at many poses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closed_cases import GIVEN, arm, link_of

import drevo
from drevo.kinematics.closed.first_branch import sweep_of

# rows of the makers' tables in modified Denavit-Hartenberg form: a, alpha, d of the joint, m and rad
FR3 = [(0.0, 0.0, 0.333), (0.0, -90.0, 0.0), (0.0, 90.0, 0.316), (0.0825, 90.0, 0.0), (-0.0825, -90.0, 0.384),
       (0.0, 90.0, 0.0), (0.088, 90.0, 0.107)]  # fmt: skip
GIVEN_JOINTS = {**{k: v[0] for k, v in GIVEN.items()}, "fr3": "joint7"}


def robot_of(name: str) -> drevo.Robot:
    """An arm of the table of arms, or FR3 by its published lengths."""
    if name != "fr3":
        return arm(name)
    rows = [{"parent": k, "theta": 0.0, "a": a, "alpha": np.radians(alpha), "d": d, "joint": "revolute",
             "mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia": np.eye(3) * 0.1}
            for k, (a, alpha, d) in enumerate(FR3)]  # fmt: skip
    return drevo.from_dh(rows, convention="modified")


def apart(a: Any, b: Any) -> Any:
    """The largest difference of coordinates of turning joints, whole turns aside."""
    return np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi).max(-1)


def against_restarts(name: str, count: int, restarts: int) -> None:
    """Regular configurations of the numeric solver from many starts are branches of the closed form.

    A seventh joint is given as the solver has it. The distance of a configuration from a singular one is the least
    singular value of the Jacobian of the joints that are solved for. 200 restarts meet every branch of six joints.
    """
    robot = robot_of(name)
    link, joint, rng = link_of(robot), GIVEN_JOINTS.get(name), np.random.default_rng(7)
    f = robot.closed_form(link, **({joint: None} if joint else {}))
    column = robot.joint_names.index(joint) if joint else None
    moving = [k for k, x in enumerate(robot.joint_names) if "finger" not in x]
    free = [k for k in moving if k != column]
    poses = robot.pose(rng.uniform(-2.5, 2.5, (count, robot.nq)), link)
    met = regular = 0
    missed = np.isfinite(f(poses)).all(-1) if joint is None else np.zeros(0, bool)
    for _ in range(restarts):
        q0 = rng.uniform(-3.0, 3.0, (count, robot.nq))
        x = robot.inverse_kinematics(link, poses, q0=q0, limits=False, attempts=1)
        q = x.q[x.success]
        branches = f(poses[x.success], *([q[:, column]] if joint else []))
        every = np.where(
            np.isnan(branches[..., :1]).any(-1), 9.0, apart(branches[..., moving], q[:, None, moving])
        )
        far = every.min(-1)
        if joint is None:
            missed[x.success] &= every > 1e-5
        apart_from_singular = np.linalg.svd(robot.jacobian(q, link)[..., free], compute_uv=False)[..., -1] > 1e-3
        met, regular = met + len(q), regular + int(apart_from_singular.sum())
        assert far[apart_from_singular].max() < 1e-5, (
            f"{name}: a configuration is {far.max():.2g} from all branches"
        )
    assert regular > 0.9 * met > 0.3 * count * restarts and not (restarts >= 200 and missed.any())


@pytest.mark.parametrize("name", ["panda", "fr3", "iiwa", "ur10e", "puma560"])
def test_the_numeric_solver_finds_no_other_configurations(name: str) -> None:
    against_restarts(name, 50, 10)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["panda", "fr3", "iiwa", "ur10e", "ur5", "puma560", "abb", "kuka", "fanuc"])
def test_the_numeric_solver_finds_no_other_configurations_at_2000_poses(name: str) -> None:
    against_restarts(name, 2000, 200)


@pytest.mark.parametrize("name", ["ur5", "puma560", "iiwa", "panda", "fr3"])
def test_500_singular_poses_have_branches(name: str) -> None:
    """Quarter turns of all joints but the first and the one that is given: aligned wrists, elbows, shoulders."""
    robot = robot_of(name)
    link, joint, rng = link_of(robot), GIVEN_JOINTS.get(name), np.random.default_rng(2)
    q = rng.integers(-2, 3, (500, robot.nq)) * (np.pi / 2.0)
    q[:, 0] = rng.uniform(-2.0, 2.0, 500)
    f, more = robot.closed_form(link, **({joint: None} if joint else {})), list[Any]()
    if joint:
        more = [q[:, robot.joint_names.index(joint)]]
    poses = robot.pose(q, link)
    branches = f(poses, *more)
    real = np.isfinite(branches).all(-1)
    wanted = np.broadcast_to(poses[:, None], (*branches.shape[:-1], 4, 4))
    assert np.abs(robot.pose(branches[real], link) - wanted[real]).max() < 1e-9
    J = robot.jacobian(q, link)
    least = np.linalg.svd(
        J[..., [k for k in range(robot.nq) if "finger" not in robot.joint_names[k]]], compute_uv=False
    )
    assert real.any(-1).all() and (least[..., 5] < 1e-9).mean() > 0.3


@pytest.mark.parametrize("name", ["puma560", "stanford", "kinova", "iiwa", "panda", "fr3"])
def test_the_first_branch_is_within_the_limits_where_some_branch_is(name: str) -> None:
    """The kernel that computes the angles of one branch, beside the one that computes and judges those of all."""
    robot = robot_of(name)
    link = link_of(robot)
    sweep = sweep_of(robot, link, True)
    assert sweep is not None
    q = robot.random(np.random.default_rng(5), 400)
    poses = robot.pose(q, link)
    given = dict.fromkeys((joint for joint, _ in sweep.function.inputs[1:]), None)
    assert len(given) == (name in GIVEN_JOINTS)
    drawn = dict(zip((j.name for j in robot.model.moving_joints), q.T))
    values = [np.where(np.arange(400) % 2, drawn[joint], 0.3) for joint in given]
    some = ~np.isnan(robot.closed_form(link, True, **given)(poses, *values)[..., 0]).all(-1)
    x, left = sweep.function(poses, *values)
    np.testing.assert_array_equal(~np.isnan(left).any(-1), some)
    x, left = x[some], left[some]
    assert some.mean() > 0.5 and left.max() < 1e-9
    assert (x >= robot.lower).all() and (x <= robot.upper).all()
    assert np.abs(robot.pose(x, link) - poses[some]).max() < 2e-9
