"""Controllers of joints: errors follow the equation that is promised; laws on traced values of a robot."""

import numpy as np
import pytest

import drevo
from drevo import control
from drevo.simulate import Control

ARM = drevo.load("puma560")
GOAL = np.array([0.2, 0.5, -0.3, 0.1, 0.4, 0.0])


def test_computed_torque_makes_the_error_follow_its_equation() -> None:
    law = control.computed_torque(ARM, lambda t: [0.3 * drevo.sin(t + k) for k in range(6)], kp=25.0, kd=10.0)
    t, (q, v) = 0.7, np.random.default_rng(0).normal(size=(2, 6))
    k = np.arange(6)
    e, de = 0.3 * np.sin(t + k) - q, 0.3 * np.cos(t + k) - v
    a = ARM.forward_dynamics(q, v, law(t, q, v))
    assert np.abs(a - (-0.3 * np.sin(t + k) + 10.0 * de + 25.0 * e)).max() < 1e-9
    waves = (drevo.sin, drevo.cos, lambda x: -drevo.sin(x))
    given = control.computed_torque(
        ARM, lambda t: tuple([0.3 * f(t + k) for k in range(6)] for f in waves), 25.0, 10.0
    )
    assert np.abs(given(t, q, v) - law(t, q, v)).max() < 1e-10


@pytest.mark.parametrize("compiled", [False, True])
def test_it_reaches_a_configuration(compiled: bool) -> None:
    law = control.computed_torque(ARM, GOAL, 100.0, 20.0)
    tau = Control(law) if compiled else law
    motion = ARM.simulate(np.zeros(6), np.zeros(6), tau=tau, duration=1.0, passive=False)
    s = 10.0 * motion.t
    expected = GOAL * (1.0 - (1.0 + s) * np.exp(-s))[:, None]  # critically damped
    assert np.abs(motion.q - expected).max() < 1e-7


def test_a_floating_robot_turns_the_shorter_way() -> None:
    robot = drevo.load("biped", base="floating")
    q = robot.integrate(robot.neutral(), np.r_[np.zeros(3), 0.2, -0.1, 0.3, np.zeros(robot.nv - 6)])
    law = control.computed_torque(robot, robot.neutral(), 100.0, 20.0)
    motion = robot.simulate(q, np.zeros(robot.nv), tau=law, duration=2.0)
    assert np.abs(robot.difference(motion.q[-1], robot.neutral())).max() < 1e-4
    with pytest.raises(drevo.InputError, match="give \\(q, v, a\\)"):
        control.computed_torque(robot, lambda t: robot.neutral(), 1.0, 1.0)


def test_pd_with_gravity_rests_at_its_goal_and_an_integral_finds_it_without() -> None:
    held = control.pd(ARM, GOAL, 100.0, 20.0)
    assert np.allclose(held(0.0, GOAL, np.zeros(6)), ARM.gravity(GOAL))
    assert np.allclose(control.pd(ARM, GOAL, 100.0, 20.0, gravity=False)(0.0, GOAL, np.zeros(6)), 0.0)
    one = drevo.load(PENDULUM)
    law = control.pid(one, [0.5], kp=60.0, ki=80.0, kd=12.0, gravity=False)
    motion = one.simulate([0.0], [0.0], tau=law, duration=8.0, dt=1e-3, method="rk4")
    assert abs(motion.q[-1, 0] - 0.5) < 1e-3
    still = control.gravity_compensation(ARM)
    assert np.allclose(still(0.0, GOAL, np.ones(6)), ARM.gravity(GOAL))


PENDULUM = """<mujoco><worldbody><body><joint name="j" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05" mass="2"/></body></worldbody></mujoco>"""


def test_the_integral_does_not_wind_up() -> None:
    one = drevo.load(PENDULUM)
    law = control.pid(one, [0.5], kp=10.0, ki=50.0, kd=5.0, limits=1.0, gravity=False)
    for k in range(1000):
        tau = law(0.01 * k, [0.0], [0.0])
        assert abs(tau[0]) <= 1.0
    assert law.integral[0] <= 1.0 / 50.0 + 0.01 * 0.5
    law.reset()
    assert law.integral[0] == 0.0


def test_a_law_calls_the_robot_itself() -> None:
    def law(t, q, v):
        a = [100.0 * (goal - x) - 20.0 * u for goal, x, u in zip(GOAL, q, v)]
        return ARM.inverse_dynamics(q, v, a)

    motion = ARM.simulate(np.zeros(6), np.zeros(6), tau=Control(law), duration=1.0, passive=False)
    other = ARM.simulate(np.zeros(6), np.zeros(6), tau=law, duration=1.0, passive=False)
    assert np.abs(motion.q - other.q).max() < 1e-9

    def reach(t, q, v):  # a spring at the hand, by pose and Jacobian
        J, T = ARM.jacobian(q, "link6"), ARM.pose(q, "link6")
        force = [50.0 * (goal - x) for goal, x in zip((0.3, 0.2, 0.5), T[:3, 3])]
        return J[:3].T @ np.array(force, object) + ARM.gravity(q) + np.array([-5.0 * x for x in v], object)

    q, v = np.full(6, 0.3), np.full(6, 0.1)
    from drevo.simulate.control import law_function

    compiled = law_function(ARM, Control(reach))
    assert np.abs(compiled(np.zeros(1), q, v) - reach(0.0, q, v).astype(float)).max() < 1e-12
    with pytest.raises(drevo.InputError, match="of traced values has shape"):
        ARM.simulate(q, v, tau=Control(lambda t, q, v: ARM.gravity(q[:3])), duration=0.1)


def test_what_is_wrong_is_said_at_once() -> None:
    for kp, said in (([1.0] * 3, "6 of them"), (-1.0, "from 0 on")):
        with pytest.raises(drevo.InputError, match=said):
            control.computed_torque(ARM, GOAL, kp, 1.0)
    with pytest.raises(drevo.InputError, match="shape"):
        control.pd(ARM, GOAL[:3], 1.0, 1.0)
    with pytest.raises(drevo.InputError, match="q has 2 values"):
        control.pd(ARM, lambda t: [t, t], 1.0, 1.0)
    text = control.computed_torque(ARM, GOAL, 100.0, 20.0).c("law")
    assert "void law(const double *t, const double *q, const double *v, double *out)" in text


def test_a_reference_by_numpy_is_told_how_to_write_it() -> None:
    """When the law is made, or at its first call where it passes on numbers."""
    robot = drevo.load("three-link")
    with pytest.raises(drevo.InputError, match=r"reference cannot be traced: .* NumPy .* drevo.sin"):
        control.computed_torque(robot, lambda t: np.sin(t) * np.ones(3), 1.0, 1.0)
    law = control.pd(robot, lambda t: [np.sin(t)] * 3, 1.0, 1.0)
    with pytest.raises(drevo.InputError, match=r"reference cannot be traced: .* NumPy .* drevo.sin"):
        law(0.0, np.zeros(3), np.zeros(3))


def test_a_controller_is_shown_on_one_line() -> None:
    robot = drevo.load("scara")
    for law in (
        drevo.control.pd(robot, robot.neutral(), 3.0, 2.0),
        drevo.control.pid(robot, robot.neutral(), 3.0, 1.0, 2.0),
    ):
        assert "\n" not in repr(law)
    assert "robot=<Robot 'scara'" in repr(drevo.control.computed_torque(robot, robot.neutral(), 3.0, 2.0))
