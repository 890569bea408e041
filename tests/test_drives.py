"""Drives with dynamics of their own: balances of energy, steady states, limits, linear models, SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import drevo
from drevo.control import DrivenRobot, ElectricDrive, HydraulicServo
from drevo.errors import InputError, NumericsError

MOTOR = ElectricDrive(resistance=0.8, inductance=2e-3, constant=0.06, gear=50.0)
SERVO = HydraulicServo(flow=2e-4, supply=1.5e7, displacement=2e-5, volume=1e-4, leak=1e-13)


def robot() -> drevo.Robot:
    return drevo.load("three-link")


def driven(**other: Any) -> DrivenRobot:
    return DrivenRobot(robot(), {"joint1": MOTOR, "joint3": SERVO, **other})


def test_work_of_the_supply_goes_into_heat_coils_and_the_robot() -> None:
    """Of a motor u i, of a servo p Q: power that is put in, the effort's power, and what is lost and stored."""
    d = driven()
    m = d.simulate(
        [0.1, 0.2, 0.3], command=lambda t, q, v, z: [3.0 * np.cos(9 * t), 0.02 * np.sin(20 * t)], duration=0.4
    )
    h = m.t[1] - m.t[0]
    i, p, w = m.z[:, 0], m.z[:, 2], m.v
    put_in = m.u[:, 0] * i + np.array([SERVO.passed(z[1:]) for z in m.z]) * p
    lost = MOTOR.resistance * i**2 + SERVO.leak * p**2 + m.tau[:, 0] * w[:, 0] + m.tau[:, 2] * w[:, 2]
    stored = 0.5 * MOTOR.inductance * i**2 + 0.5 * p**2 / SERVO.stiffness
    energy = np.array([d.robot.kinetic_energy(q, v) + d.robot.potential_energy(q) for q, v in zip(m.q, m.v)])
    work = np.trapezoid(m.tau[:, 0] * w[:, 0] + m.tau[:, 2] * w[:, 2], dx=h)
    assert stored[-1] - stored[0] == pytest.approx(np.trapezoid(put_in - lost, dx=h), abs=1e-3 * np.ptp(energy))
    assert energy[-1] - energy[0] == pytest.approx(work, abs=1e-3 * np.ptp(energy))


def test_against_scipy() -> None:
    d, u = driven(), np.array([2.0, 0.01])
    y0 = np.array([0.1, 0.2, 0.3, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0])

    def slope(t: float, y: Any) -> Any:
        tau = d.efforts(y[6:])
        a = d.robot.forward_dynamics(y[:3], y[3:6], np.array(tau, float))
        return np.concatenate([y[3:6], a, d.changes(y[3:6], y[6:], u)])

    want = solve_ivp(slope, (0.0, 0.2), y0, method="LSODA", rtol=1e-10, atol=1e-10).y[:, -1]
    m = d.simulate(y0[:3], y0[3:6], u, duration=0.2, dt=2e-5, every=10_000)
    np.testing.assert_allclose(np.concatenate([m.q[-1], m.v[-1], m.z[-1]]), want, rtol=1e-6, atol=1e-8)


def one_joint(drive: Any) -> DrivenRobot:
    b = drevo.Builder("wheel", gravity=(0.0, 0.0, 0.0))
    b.body("wheel", joint_name="axle", mass=1.0, inertia=((0.05, 0.0, 0.0), (0.0, 0.05, 0.0), (0.0, 0.0, 0.05)))
    return DrivenRobot(b.robot(), {"axle": drive})


def test_steady_states_and_limits() -> None:
    kn = MOTOR.constant * MOTOR.gear
    m = one_joint(MOTOR).simulate([0.0], command=[6.0], duration=1.0)
    assert m.v[-1, 0] == pytest.approx(6.0 / kn, rel=1e-6)
    limited = ElectricDrive(0.8, 2e-3, 0.06, 50.0, voltage=24.0, current=5.0, speed=4.0)
    m = one_joint(limited).simulate([0.0], command=[99.0], duration=1.0)
    assert np.abs(m.z).max() <= 5.0 * (1 + 1e-9) and m.z.max() > 4.9
    assert m.v[-1, 0] == pytest.approx(4.0, rel=1e-6)
    free = HydraulicServo(flow=2e-4, supply=1.5e7, displacement=2e-5, volume=1e-4)
    m = one_joint(free).simulate([0.0], command=[0.5], duration=1.5, dt=5e-5)
    assert m.v[-1, 0] == pytest.approx(0.5 * free.flow / free.displacement, rel=1e-3)  # all flow, no load
    blocked = HydraulicServo(2e-4, 1.5e7, 2e-5, 1e-4, leak=1e-13, relief=9e6)
    z = np.zeros(2)
    for _ in range(4000):  # the joint held: stall
        z = z + 2e-5 * np.array(blocked.rates(z, 1.0, 0.0), float)
    assert 9e6 < z[1] < 9e6 + 0.02 * 1.5e7


@pytest.mark.parametrize("u", [[1.5, 0.02], [-2.0, -0.3]])
def test_linear_model_against_differences(u: list[float]) -> None:
    d = driven()
    n, z = d.robot.nv, np.array([1.0, 0.1, 2e6])
    x = np.array([0.1, 0.2, 0.3, 0.4, -0.2, 0.1, *z])
    L = d.linearise(x[:3], x[3:6], z, u)

    def f(y: Any, c: Any) -> Any:
        tau = np.array(d.efforts(y[6:]), float)
        a = d.robot.forward_dynamics(y[:n], y[n : 2 * n], tau)
        return np.concatenate([y[n : 2 * n], a, d.changes(y[n : 2 * n], y[6:], c)])

    scale = np.maximum(np.abs(x), 0.1)
    for k in range(len(x)):
        e = np.zeros(len(x))
        e[k] = 1e-5 * scale[k]
        slope = (f(x + e, u) - f(x - e, u)) / (2 * e[k])
        np.testing.assert_allclose(L.A[:, k], slope, rtol=1e-6, atol=1e-8 * np.abs(slope).max())
    for k in range(2):
        e2 = np.zeros(2)
        e2[k] = 1e-4
        slope = (np.array(f(x, np.array(u) + e2)) - f(x, np.array(u) - e2)) / 2e-4
        np.testing.assert_allclose(L.B[:, k], slope, rtol=1e-6, atol=1e-8 * max(np.abs(slope).max(), 1.0))
    assert L.states[6:] == ("joint1.current", "joint3.spool", "joint3.pressure") and L.inputs[0] == "joint1.u"


def test_commands_bring_the_efforts_of_a_law_about() -> None:
    d = driven()
    law = drevo.control.pd(d.robot, reference=[0.3, 0.0, -0.2], kp=40.0, kd=8.0)
    m = d.simulate(
        [0.2, 0.0, -0.1], command=lambda t, q, v, z: d.commands(v, z, law(t, q, v)), duration=0.2, dt=2e-5
    )
    wanted = np.array([law(t, q, v) for t, q, v in zip(m.t, m.q, m.v)])[:, [0, 2]]
    late = m.t > 0.1
    assert np.abs(m.tau[late][:, [0, 2]] - wanted[late]).max() < 0.1 * np.abs(wanted).max()


def test_a_free_base_and_batches_of_drives() -> None:
    r = drevo.load("biped", base="floating")
    d = DrivenRobot(r, {name: MOTOR for name in r.joint_names[1:]})
    m = d.simulate(r.neutral(), duration=0.01)
    assert d.nz == r.nv - 6 and np.isfinite(m.q).all()
    assert np.linalg.norm(m.q[-1, 3:7]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ElectricDrive(0.0, 1e-3, 0.1),
        lambda: HydraulicServo(1e-4, math.nan, 1e-5, 1e-4),
        lambda: HydraulicServo(1e-4, 1e7, 1e-5, 1e-4, leak=-1.0),
        lambda: DrivenRobot(robot(), {}),
        lambda: DrivenRobot(robot(), {"joint9": MOTOR}),
        lambda: DrivenRobot(robot(), {"joint1": 3.0}),  # type: ignore[dict-item]
        lambda: driven().simulate([0.0] * 3, command=[1.0, 2.0, 3.0], duration=0.1),
        lambda: driven().simulate([0.0] * 3, command="x", duration=0.1),
        lambda: driven().simulate([0.0] * 2, duration=0.1),
        lambda: driven().linearise([0.0] * 3, [0.0] * 3, [0.0], [0.0] * 2),
    ],
)
def test_what_is_refused(ask: Any) -> None:
    with pytest.raises(InputError):
        ask()


def test_a_step_that_is_too_long() -> None:
    with pytest.raises(NumericsError, match="shorter dt"):
        driven().simulate([0.1, 0.2, 0.3], command=[5.0, 0.5], duration=2.0, dt=0.02)


@pytest.mark.parametrize(("current", "falls"), [(25.0, False), (3.0, True)])
def test_a_biped_walks_by_electric_drives_that_are_strong_enough(current: float, falls: bool) -> None:
    biped = drevo.load("biped", base="floating")
    drive = ElectricDrive(resistance=0.3, inductance=3e-4, constant=0.1, gear=100.0, voltage=60.0, current=current)
    made = drevo.walking.plan(biped, 1)
    w = drevo.walking.follow(made, drives={name: drive for name in biped.joint_names[1:]})
    assert (w.fell is not None) == falls
