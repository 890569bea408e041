"""Laws of control on one-sided ground, and motions without the forces of the file."""

import numpy as np
import pytest

import drevo
from drevo import control
from drevo.simulate import Control

BALL = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 .3"><joint name="x" type="slide" axis="1 0 0" damping="3"/>
<joint name="z" type="slide" axis="0 0 1"/>
<geom type="sphere" size=".1" mass="2" friction="0.5"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_a_law_drives_a_robot_on_a_ground(law: str) -> None:
    robot = drevo.load(BALL)
    goal = [0.4, 0.3]
    drive = control.pd(robot, goal, 80.0, 30.0)
    seen = []

    def watched(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        seen.append(t)
        return drive(t, q, v)

    motion = robot.simulate([0.0, 0.0], [0.0, 0.0], tau=watched, duration=3.0, dt=0.002, ground=None, law=law)
    same = robot.simulate([0.0, 0.0], [0.0, 0.0], tau=Control(drive), duration=3.0, dt=0.002, ground=None, law=law)
    assert np.abs(motion.q - same.q).max() < 1e-12 and len(seen) == 1501 and abs(seen[1] - 0.002) < 1e-12
    assert np.abs(motion.q[-1] - goal).max() < 1e-3
    assert np.abs(motion.efforts[-1] - drive(3.0, motion.q[-1], motion.v[-1])).max() < 1e-9
    batch = robot.simulate(
        np.zeros((3, 2)), np.zeros((3, 2)), tau=watched, duration=0.1, dt=0.002, ground=None, law=law
    )
    assert np.abs(batch.q[-1, 1] - motion.q[50]).max() < 1e-12


def test_a_law_of_ones_own_is_made_of_others() -> None:
    """Laws are called on traced values: the sum in a motion is the sum of their arrays."""
    arm = drevo.load("three-link")
    start, rest = np.array([0.3, -0.2, 0.1]), np.zeros(3)
    held = control.lqr(arm.linearise(start, rest, arm.gravity(start)), Q=10.0, R=0.1)
    point = control.stabilise(
        arm, drevo.constraint.function(lambda pose, q, t: [q[0]], 1), damping=4.0, stiffness=4.0
    )

    def both(t: object, q: object, v: object) -> np.ndarray:
        return held(t, q, v) + 0.1 * point(t, q, v)  # type: ignore[arg-type]

    traced, plain = (arm.simulate(start + 0.2, rest, law, duration=0.2, dt=1e-3) for law in (Control(both), both))
    assert np.abs(traced.q - plain.q).max() < 1e-12 and np.abs(traced.q[-1] - start).max() > 1e-3


def test_a_quadruped_stands_under_a_push() -> None:
    robot = drevo.load("go1", base="floating")
    stance = robot.q_of({name: (0.0, 0.8, -1.6)[k % 3] for k, name in enumerate(robot.joint_names[1:])})
    stance[2] = 0.32
    law = control.pd(robot, stance, [0.0] * 6 + [60.0] * 12, [0.0] * 6 + [3.0] * 12, gravity=False)
    push = np.r_[0.4, 0.2, 0.0, np.zeros(robot.nv - 3)]
    motion = robot.simulate(stance, push, tau=law, duration=1.0, dt=0.002, ground="plane", law="soft")
    assert 0.2 < motion.q[-1, 2] < 0.4 and np.abs(motion.v[-1]).max() < 0.2
    weight = 9.81 * sum(link.inertial.mass for link in robot.model.links if link.inertial)
    assert abs(motion.contact_forces[-1][:, 2].sum()) == pytest.approx(weight, rel=0.05)


def test_passive_forces_are_left_out_where_that_is_said() -> None:
    robot = drevo.load(BALL)
    q, v = [0.0, 1.0], [1.0, 0.0]
    for law in ("soft", "coulomb"):
        free = robot.simulate(q, v, duration=0.1, dt=0.002, ground=None, law=law, passive=False)
        damped = robot.simulate(q, v, duration=0.1, dt=0.002, ground=None, law=law)
        assert free.v[-1, 0] == pytest.approx(1.0, abs=1e-12) and damped.v[-1, 0] < 0.9
    step = drevo.compile(robot, "step", dt=0.002, ground=None, passive=False)
    assert step(np.array(q), np.array(v), np.zeros(2))[1][0] == pytest.approx(1.0, abs=1e-12)
    with_them = drevo.compile(robot, "step", dt=0.002, ground=None)
    assert with_them(np.array(q), np.array(v), np.zeros(2))[1][0] < 0.998

    def cost(pose, q, v, tau, t):
        return 1e-3 * tau[0] * tau[0] + tau[1] * tau[1] + (v[0] - 1.0) * (v[0] - 1.0)

    plan = control.optimise(robot, cost, q, v, 20, 0.01, passive=False)
    assert np.abs(plan.tau[:, 0]).max() < 1e-4
    assert np.abs(control.optimise(robot, cost, q, v, 20, 0.01).tau[:, 0]).max() > 1.0


TABLE = """<mujoco><worldbody><geom name="table" type="box" size="1 1 .1"/>
<body name="arm"><joint type="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 .5 .3 0 .5" size=".02"/></body>
<body name="cube" pos="0 0 .2"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


def test_what_passes_through_is_warned_of_without_a_law() -> None:
    """A free body over a table without any plane; not where the law is named, nor one body alone."""
    robot = drevo.load(TABLE)
    with pytest.warns(drevo.DrevoWarning, match="'world' and 'cube' of .* pass through each other"):
        robot.simulate(robot.initial, duration=0.01)
    robot.simulate(robot.initial, duration=0.01, law="soft", ground=None)
    drevo.load("go1", base="floating").simulate(drevo.load("go1", base="floating").neutral(), duration=0.002)


@pytest.mark.parametrize("name", ["rtol", "max_steps", "events"])
def test_options_of_free_motions_are_refused_under_a_law_by_name(name: str) -> None:
    robot = drevo.load(BALL)
    with pytest.raises(drevo.InputError, match=f"simulate: {name} is of a motion without contact"):
        robot.simulate(robot.neutral(), duration=0.1, law="soft", **{name: 1})


@pytest.mark.parametrize(
    ("law", "told"),
    [
        (lambda t, q, v: [np.sin(q[0])] * 2, "NumPy met a traced value.*a plain function"),
        (lambda t, q, v: [q[0] + "a"] * 2, "unsupported operand.*a plain function"),
        (lambda t, q, v: [t[0], 1 / 0], "cannot be traced"),
        (lambda t, q, v: [0.0, 1 / 0], "divides by zero whatever the state is; correct it$"),
        (lambda t, q, v: missing, "NameError"),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_a_law_that_fails_is_told_why(law: object, told: str) -> None:
    robot = drevo.load(BALL)
    with pytest.raises(drevo.InputError, match=f"the control law .*{told}"):
        robot.simulate(robot.neutral(), tau=Control(law), duration=0.1)  # type: ignore[arg-type]


def test_a_ground_that_fails_without_numpy_does_not_speak_of_it() -> None:
    with pytest.raises(drevo.InputError, match="unsupported operand"):
        drevo.ground.function(lambda x, y: x + "a")
    with pytest.raises(drevo.InputError, match="cannot be traced"):
        drevo.ground.function(lambda x, y: None)
