"""Whole-body inverse dynamics: matrices by Pinocchio, conditions of optimality, humanoids that stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import drevo
from drevo.tasks import ComTask, FrameTask, ManipulabilityTask, PostureTask, solve_id

pytestmark = pytest.mark.needs("qpsolvers", "daqp")


BRICK = """<mujoco><worldbody><body name="brick"><freejoint/><geom type="box" size="1 1 1"/></body>
</worldbody></mujoco>"""


def standing() -> tuple[drevo.Robot, Any, list[dict[str, Any]]]:
    """The biped on bent knees, and the corners of its soles."""
    robot = drevo.load("biped", base="floating")
    bent = {f"{side}_{joint}": x for side in ("right", "left")
            for joint, x in (("hip_pitch", 0.3), ("knee", -0.6), ("ankle_pitch", 0.3))}  # fmt: skip
    q = robot.q_of(**bent)
    corners: dict[str, list[Any]] = {}
    for c in robot.model.contacts:
        corners.setdefault(c.link, []).append(c.point)
    return robot, q, [{"link": link, "point": points, "friction": 0.6} for link, points in corners.items()]


def weight(robot: drevo.Robot) -> float:
    """The weight of all links, N."""
    return 9.81 * sum(link.inertial.mass for link in robot.model.links if link.inertial)


def com_task(robot: drevo.Robot, q: Any) -> tuple[list[Any], dict[str, Any]]:
    """The centre of mass is held, then the posture."""
    tasks = [ComTask(10.0), PostureTask(1.0, priority=1)]
    return tasks, {"center_of_mass": robot.center_of_mass(q), "posture": q}


def test_an_arm_follows_computed_torque() -> None:
    """Without contacts and limits the posture's errors follow e'' + kd e' + kp e = 0."""
    robot, rng = drevo.load("puma560"), np.random.default_rng(0)
    q, v, goal = robot.random(rng, 3), rng.normal(size=(3, 6)), np.full(6, 0.1)
    step = solve_id(robot, q, v, [PostureTask()], targets=goal, stiffness=30.0, damping=7.0, regularisation=1e-11)
    a = -30.0 * (q - goal) - 7.0 * v
    np.testing.assert_allclose(step.a, a, atol=1e-8)
    np.testing.assert_allclose(step.tau, robot.inverse_dynamics(q, v, a), atol=1e-6)
    law = drevo.control.computed_torque(robot, goal, 30.0, 7.0)
    np.testing.assert_allclose(step.tau[1], law(0.0, q[1], v[1]), atol=1e-6)


def test_a_frame_gets_the_acceleration_and_lower_levels_do_not_disturb_it() -> None:
    """J a + J' v of Pinocchio is what the error asks for."""
    pin = pytest.importorskip("pinocchio")
    robot, rng = drevo.load("puma560"), np.random.default_rng(3)
    q, v = robot.random(rng), rng.normal(size=6)
    goal = robot.pose(q + 0.1 * rng.normal(size=6), "link6")
    frame = FrameTask("link6", orientation_cost=0.0)
    tasks, targets = [frame, PostureTask(priority=1)], {"link6": goal, "posture": np.zeros(6)}
    step = solve_id(robot, q, v, tasks, targets=targets, stiffness={"link6": 40.0}, regularisation=1e-12)
    model = robot.to_pinocchio()
    data, k = model.createData(), model.getFrameId("link6")
    pin.forwardKinematics(model, data, q, v, step.a)
    pin.updateFramePlacements(model, data)
    got = pin.getFrameAcceleration(model, data, k, pin.LOCAL).linear
    rate = pin.getFrameVelocity(model, data, k, pin.LOCAL).linear
    error = pin.log6(pin.SE3(goal).inverse() * data.oMf[k]).linear
    np.testing.assert_allclose(got, -40.0 * error - 2.0 * np.sqrt(40.0) * rate, atol=1e-6)
    assert step.kkt.max() < 1e-8
    alone = solve_id(robot, q, v, [frame], targets=goal, stiffness=40.0, regularisation=1e-12)
    assert np.linalg.norm(alone.a) < np.linalg.norm(step.a)  # the posture moves what the frame leaves free


@pytest.mark.parametrize("facets", [4, 16])
def test_a_biped_stands_by_its_forces(facets: int) -> None:
    robot, q, contacts = standing()
    tasks, targets = com_task(robot, q)
    v = np.zeros(robot.nv)
    step = solve_id(robot, q, v, tasks, contacts, targets, facets=facets, limits=False)
    f = step.forces
    assert f.shape == (8, 3) and step.kkt.max() < 1e-7 and np.abs(step.a).max() < 1e-3
    np.testing.assert_allclose(f.sum(0), [0.0, 0.0, weight(robot)], atol=1e-3)
    assert (f[:, 2] >= -1e-9).all() and (np.hypot(f[:, 0], f[:, 1]) <= 0.6 * f[:, 2] + 1e-8).all()
    assert (step.tau[:6] == 0.0).all()
    points = robot.pose(q, "right_foot")[:3, :3] @ np.transpose(contacts[0]["point"])
    assert np.ptp(points[2]) < 1e-6  # level soles


def test_a_biped_that_is_pushed_returns_on_the_ground_of_coulomb() -> None:
    """Its torques alone, in the exact law of contact: forces are those foreseen but for J' v in a step, the feet
    stay, and the centre of mass follows e'' + 2 w e' + w^2 e = 0, in steps of velocity and then position."""
    robot, q, contacts = standing()
    tasks, targets = com_task(robot, q)
    w, dt, soles = np.sqrt(60.0), 2e-3, [(c["link"], np.array(c["point"])) for c in contacts]

    def places(q: Any) -> Any:
        poses = [(robot.pose(q, link), points) for link, points in soles]
        return np.concatenate([points @ T[:3, :3].T + T[:3, 3] for T, points in poses])

    q[2] -= places(q)[:, 2].min()
    targets = {"center_of_mass": robot.center_of_mass(q), "posture": q}
    J = np.vstack([robot.jacobian(q, link, "local_world_aligned") for link, _ in soles])
    push = np.array([0.15, 0.1] + [0.0] * (robot.nv - 2))
    v = push - np.linalg.pinv(J) @ (J @ push)  # the feet rest
    step = drevo.compile(robot, "step", dt=dt, ground="plane", law="coulomb", friction=0.6)
    began, e, rate, farthest = places(q), np.zeros(3), robot.center_of_mass_jacobian(q) @ v, 0.0
    for _ in range(100):
        wanted = solve_id(robot, q, v, tasks, contacts, targets, stiffness=w * w)
        q, v, forces, residual = step(q, v, wanted.tau)
        rate = rate - dt * (w * w * e + 2.0 * w * rate)
        e = e + dt * rate
        farthest = max(farthest, np.abs(e).max())
        assert residual < 1e-9 and wanted.kkt.max() < 1e-9
        assert np.abs(forces.sum(0) - wanted.forces.sum(0)).max() < 2e-4 * weight(robot)
        assert np.abs(robot.center_of_mass(q) - targets["center_of_mass"] - e).max() < 0.02 * farthest
    assert np.abs(places(q) - began).max() < 1e-7 and farthest > 1e-3


def test_the_equations_of_motion_hold_by_pinocchio() -> None:
    """tau + J_c^T f = M a + h in motion, contacts do not accelerate, and the friction cone bounds a push."""
    pin = pytest.importorskip("pinocchio")
    robot, rng = drevo.load("solo12", base="floating"), np.random.default_rng(0)
    legs = {f"{leg}_{j}": x for leg in ("FL", "FR", "HL", "HR") for j, x in (("HFE", 0.7), ("KFE", -1.4))}
    q = robot.q_of(**legs)
    contacts = [{"link": f"{leg}_FOOT", "point": [(0, 0, 0)], "friction": 0.6} for leg in ("FL", "FR", "HL", "HR")]
    tasks, targets = com_task(robot, q)
    targets["center_of_mass"] = targets["center_of_mass"] + [0.1, 0.04, 0.0]  # the cones are active
    model = robot.to_pinocchio()
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    frames = [model.getFrameId(c["link"]) for c in contacts]
    still = np.vstack([pin.getFrameJacobian(model, data, k, pin.LOCAL_WORLD_ALIGNED) for k in frames])[
        [i for k in range(4) for i in range(6 * k, 6 * k + 3)]
    ]
    v = 0.3 * rng.normal(size=robot.nv)
    v -= np.linalg.pinv(still) @ (still @ v)  # the feet rest
    step = solve_id(robot, q, v, tasks, contacts, targets, limits=False, contact_damping=0.0)
    left = pin.rnea(model, data, q, v, step.a)
    pin.forwardKinematics(model, data, q, v, step.a)
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobians(model, data, q)
    k, pushed = 0, np.zeros(robot.nv)
    for c, frame in zip(contacts, frames):
        J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        A = pin.getFrameClassicalAcceleration(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        V = pin.getFrameVelocity(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
        for point in c["point"]:
            r = data.oMf[frame].rotation @ np.array(point)
            pushed += J[:3].T @ step.forces[k] + J[3:].T @ np.cross(r, step.forces[k])
            w = V.angular
            assert np.abs(A.linear + np.cross(A.angular, r) + np.cross(w, np.cross(w, r))).max() < 1e-6
            k += 1
    np.testing.assert_allclose(left, step.tau + pushed, atol=1e-6)
    f, side = step.forces, np.hypot(*step.forces[:, :2].T)
    assert (
        (side <= 0.6 * f[:, 2] + 1e-7).all()
        and (side > 0.6 * np.cos(np.pi / 4) * f[:, 2] - 1e-6).any()
        and step.kkt.max() < 1e-6
    )


def test_torque_limits_bind() -> None:
    robot, rng = drevo.load("panda"), np.random.default_rng(1)
    q = robot.neutral()
    far = q + 0.5 * rng.normal(size=robot.nq)
    step = solve_id(robot, q, np.zeros(robot.nv), [PostureTask()], targets=far, stiffness=400.0)
    effort = robot.max_effort
    assert (np.abs(step.tau) <= effort * (1 + 1e-9)).all() and step.kkt.max() < 1e-7
    assert (np.abs(step.tau) > 0.999 * effort).any()


def test_what_cannot_be_held_is_said() -> None:
    robot, q, contacts = standing()
    tasks, targets = com_task(robot, q)
    v = np.zeros(robot.nv)
    with pytest.raises(drevo.NumericsError, match="no forces within the friction pyramids"):
        solve_id(drevo.load(BRICK), drevo.load(BRICK).neutral(), np.zeros(6), [PostureTask(np.ones(6))],
                 [{"link": "brick", "point": [(1, 0, 0), (-1, 1, 0), (-1, -1, 0)], "normal": (0.3, 0.0, 1.0),
                   "friction": 0.1}])  # fmt: skip
    for more, said in (
        ({"contacts": [{"link": "foot"}]}, "did you mean|there is"),
        ({"contacts": [{"lnk": 1}]}, "give a mapping"),
        ({"contacts": [{"link": "right_foot", "normal": (0, 0, 0)}]}, "normal has no length"),
        ({"contacts": [{"link": "right_foot", "friction": -1.0}]}, "friction is"), ({"facets": 2}, "facets"),
        ({"facets": 10**30}, "facets"), ({"contacts": 2.0}, "give a mapping"), ({"solver": []}, "is not known"),
        ({"stiffness": {"hand": 1.0}}, "hand"), ({"solver": "nothing"}, "nothing"), ({"targets": ()}, "has none"),
    ):  # fmt: skip
        with pytest.raises(drevo.DrevoError, match=said):
            solve_id(robot, q, v, tasks, **{"contacts": contacts, "targets": targets, **more})
    with pytest.raises(drevo.DrevoError, match="ManipulabilityTask has no acceleration"):
        solve_id(robot, q, v, [ManipulabilityTask("right_foot")])


@pytest.mark.nightly
def test_g1_stands() -> None:
    robot = drevo.load("g1_29dof_rev_1_0", base="floating")
    q = robot.neutral()
    sole = [(x, y, -0.03) for x in (-0.05, 0.12) for y in (-0.025, 0.025)]
    feet = [{"link": f"{side}_ankle_roll_link", "point": sole} for side in ("left", "right")]
    tasks = [ComTask(10.0), PostureTask(1.0)]
    targets = {"center_of_mass": robot.center_of_mass(q), "posture": q}
    step = solve_id(robot, q, np.zeros(robot.nv), tasks, feet, targets)
    np.testing.assert_allclose(step.forces.sum(0), [0.0, 0.0, weight(robot)], atol=1e-2)
    assert step.kkt.max() < 1e-6 and (np.abs(step.tau[6:]) <= robot.max_effort[6:]).all()
