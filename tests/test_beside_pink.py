"""Steps of task stacks beside pink's: its own quadratic programs of arms and humanoids judge both solutions."""

from __future__ import annotations

from importlib import metadata

import numpy as np
import pytest

import drevo
from drevo.tasks import ComTask, ConfigurationLimit, FrameTask, PostureTask, VelocityLimit, compile_ik

pink = pytest.importorskip("pink")
pin = pytest.importorskip("pinocchio")
pytest.importorskip("daqp")

DT = 0.01  # s
# Where the tasks leave a free base loose, the damping of 1e-12 alone holds it: terms that differ by rounding have
# minima that are up to 1e-6 apart there, and objectives up to 1e-12.
OBJECTIVE, LIMITS, KKT = 1e-11, 1e-15, 1e-14
ROBOTS = [
    ("xarm7.urdf", "link7", "fixed"),
    ("ur5_robot.urdf", "tool0", "fixed"),
    ("talos_reduced.urdf", "gripper_right_base_link", "floating"),
    ("g1_29dof_rev_1_0.urdf", "left_wrist_yaw_link", "floating"),
]


def both_worst(file, link, base, count, gain=0.5):
    """The largest excess of the objective, violation of limits, and KKT residual."""
    from pink import limits, tasks

    (path,) = [str(f.locate()) for f in metadata.files("example-robot-data") or () if f.name == file]
    robot = drevo.load(path, base=base)
    model = pin.buildModelFromUrdf(path, *([pin.JointModelFreeFlyer()] if base == "floating" else []))
    free = 6 if base == "floating" else 0
    hinges = [model.joints[model.getJointId(j.name)].idx_v for j, _, _ in robot.model.slices() if j.kind != "free"]
    rates = np.array([*range(free), *hinges])  # Pinocchio orders brothers by their names
    places = np.array([*range(free and 7), *(k + bool(free) for k in hinges)])
    rng = np.random.default_rng(3)
    q = np.array([robot.random(rng) for _ in range(count)])
    goals = np.array([robot.integrate(x, 0.5 * rng.normal(size=robot.nv)) for x in q])
    poses, centres, home = robot.pose(goals, link), robot.center_of_mass(goals), robot.neutral()
    step = compile_ik(
        robot, [FrameTask(link, 1.0, 0.5, gain=0.8, lm_damping=1.0), PostureTask(1e-2), ComTask(0.1)], DT,
        limits=[ConfigurationLimit(gain=gain), VelocityLimit()],
    )  # fmt: skip
    frame = tasks.FrameTask(link, 1.0, 0.5, lm_damping=1.0, gain=0.8)
    posture, centre = tasks.PostureTask(1e-2), tasks.ComTask(0.1)
    bounds, data = [limits.ConfigurationLimit(model, gain), limits.VelocityLimit(model)], model.createData()

    def theirs(x, places):
        y = np.empty(len(x))
        y[places] = x
        return y

    posture.set_target(theirs(home, places))
    steps, worst = step(q, [poses, np.tile(home, (count, 1)), centres]), np.zeros(3)
    for k in range(count):
        at = pink.Configuration(model, data, theirs(q[k], places))
        frame.set_target(pin.SE3(poses[k]))
        centre.set_target(centres[k])
        program = pink.build_ik(at, [frame, posture, centre], DT, limits=bounds)
        best = pink.solve_ik(at, [frame, posture, centre], DT, "daqp", limits=bounds) * DT
        dq = theirs(steps.v[k] * DT, rates)
        value, least = (0.5 * x @ program.P @ x + program.q @ x for x in (dq, best))
        beyond = (program.G @ dq - program.h).max()
        worst = np.maximum(worst, [(value - least) / abs(least), beyond, steps.kkt[k].max()])
    return worst


@pytest.mark.parametrize("file, link, base", ROBOTS, ids=[file for file, _, _ in ROBOTS])
def test_the_step_of_pink(file, link, base):
    assert (both_worst(file, link, base, 50) <= (OBJECTIVE, LIMITS, KKT)).all()


@pytest.mark.nightly
@pytest.mark.parametrize("file, link, base", ROBOTS, ids=[file for file, _, _ in ROBOTS])
def test_ten_thousand_steps_of_pink(file, link, base):
    assert (both_worst(file, link, base, 2500) <= (OBJECTIVE, LIMITS, KKT)).all()
