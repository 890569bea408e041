"""Motions: against a reference in 113 bits, conserved quantities, orders, the compiled engine and its twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import G, free_body, released

import drevo
from drevo.control import pd
from drevo.errors import InputError
from drevo.mechanics.scalar import sin
from drevo.robot.face import Robot
from drevo.robots import rod_chain
from drevo.simulate import METHODS, Control, Integrator, Table, damping, simulate
from drevo.simulate.arguments import machine_motion
from drevo.simulate.integrators import DOP853
from drevo.simulate.motion import numeric_rates
from drevo.simulate.state import EngineState

REFERENCE = json.loads((Path(__file__).parent / "data" / "yudintsev-chain.json").read_text())
FIXED = [m for m in METHODS.values() if not m.adaptive]


# -- against the reference ----------------------------------------------------------------------------------


def test_rod_chain_by_dop853(chain: Robot) -> None:
    table = simulate(chain, released(chain), duration=10.0, dt=0.1, method="dop853", rtol=1e-12)
    t = np.array(REFERENCE["t"])
    assert np.abs(table.t - t).max() < 1e-12
    q, v = (np.abs(x - np.array(REFERENCE[n])).max(axis=1) for n, x in (("q", table.q), ("qd", table.v)))
    for until, limit in ((1.0, 1e-10), (2.0, 2e-10), (5.0, 5e-10), (10.0, 1e-9)):
        assert q[t <= until].max() <= limit
        assert v[t <= until].max() <= 100.0 * limit
    assert table.energy_drift <= 1e-10
    assert table.energy[0] == pytest.approx(REFERENCE["E0"], rel=1e-13)


def test_rod_chain_at_a_looser_tolerance(chain: Robot) -> None:
    table = simulate(chain, released(chain), duration=10.0, dt=0.1, method="dop853", rtol=1e-9)
    assert np.abs(table.q - np.array(REFERENCE["q"])).max() <= 1e-7


def _numpy_chain(n: int, steps: int) -> Any:
    """Absolute angles: a_ij [theta'' cos + theta'^2 sin] = -mu g l (n - i + 1/2) cos theta_i, stepped by RK4."""
    l, mu, h = 1.0 / n, 10.0 / n, 1e-3
    i = np.arange(1, n + 1)
    a = mu * l * l * (n - np.maximum.outer(i, i) + np.where(np.equal.outer(i, i), 1.0 / 3.0, 0.5))
    load = mu * G * l * (n - i + 0.5)

    def rates(y: Any) -> Any:
        theta, omega = y[:n], y[n:]
        apart = theta[:, None] - theta[None, :]
        right = -load * np.cos(theta) - (a * np.sin(apart)) @ (omega * omega)
        return np.concatenate([omega, np.linalg.solve(a * np.cos(apart), right)])

    y = np.concatenate([-np.ones(n), np.zeros(n)])
    for _ in range(steps):
        k1 = rates(y)
        k2 = rates(y + 0.5 * h * k1)
        k3 = rates(y + 0.5 * h * k2)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rates(y + h * k3))
    return y


def test_rk4_of_the_chain_equals_numpy(chain: Robot) -> None:
    table = simulate(chain, released(chain), duration=0.2, every=200)
    assert np.abs(np.cumsum(table.q[-1]) - _numpy_chain(10, 200)[:10]).max() < 1e-12


# -- conserved quantities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [20.0, pytest.param(1000.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("method", ["gauss4", "gauss6"])
def test_energy_of_a_double_pendulum(pendulum: Robot, method: str, seconds: float) -> None:
    table = simulate(pendulum, [0.1, 0.0], duration=seconds, dt=0.005, every=40, method=method)
    swing = 3.0 * G * (1.0 - np.cos(0.1))
    away, tenth = np.abs(table.drift) / swing, len(table) // 10
    assert away.max() <= 2e-12
    assert away[-tenth:].max() <= 1.5 * away[:tenth].max() + 1e-13  # no trend


@pytest.mark.parametrize("seconds", [2.0, pytest.param(1000.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("method", ["rk4", "gauss6"])
def test_tumbling_body(tumbling: Robot, method: str, seconds: float) -> None:
    v0 = np.array([0.0, 0.0, 0.0, 0.01, 1.0, 0.0])  # about the middle axis of its moments
    table = simulate(tumbling, tumbling.neutral(), v0, duration=seconds, dt=1e-3, every=100, method=method)
    l = tumbling.momentum(table.q, table.v)
    assert np.abs(l - l[0]).max() <= 1e-12 * np.abs(l[0]).max()
    assert table.energy_drift <= 1e-12 * abs(table.energy[0])
    assert np.abs(np.linalg.norm(table.q[:, 3:], axis=1) - 1.0).max() <= 4 * np.finfo(float).eps


def test_a_thrown_body_follows_the_parabola() -> None:
    robot = free_body("thrown", gravity=(0.0, 0.0, -G))
    v0 = np.array([1.0, 2.0, 3.0, 0.5, -1.0, 2.0])
    q0 = robot.random(np.random.default_rng(5))
    table = simulate(robot, q0, v0, duration=1.0, every=1000)
    c0, speed = robot.center_of_mass(q0), robot.momentum(q0, v0)[:3] / 1.5
    assert np.abs(robot.center_of_mass(table.q[-1]) - (c0 + speed - [0.0, 0.0, G / 2.0])).max() < 1e-11


@pytest.mark.nightly
def test_momentum_of_a_floating_biped() -> None:
    robot = drevo.load("biped", base="floating", gravity=(0.0, 0.0, 0.0))
    rng = np.random.default_rng(2)
    v0 = 0.3 * rng.normal(size=robot.nv)
    table = simulate(robot, robot.neutral(), v0, duration=100.0, dt=1e-3, every=1000, method="gauss6")
    l = robot.momentum(table.q, table.v)
    for part in (slice(0, 3), slice(3, 6)):
        assert np.abs(l[:, part] - l[0, part]).max() <= 1e-9 * np.linalg.norm(l[0, part])


# -- orders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED, ids=lambda m: m.name)
@pytest.mark.parametrize("kind", ["pendulum", "tumbling"])
def test_order_by_halving(method: Integrator, kind: str, pendulum: Robot, tumbling: Robot) -> None:
    robot = pendulum if kind == "pendulum" else tumbling
    q0 = np.array([1.0, 0.5]) if kind == "pendulum" else robot.neutral()
    v0 = np.zeros(2) if kind == "pendulum" else np.array([0.3, 0.2, 0.1, 0.4, 2.0, 1.0])
    h = {6: 0.1, 4: 0.04, 2: 0.02, 1: 2e-3}[method.order]

    def end(step: float) -> Any:
        return state(simulate(robot, q0, v0, duration=0.8, dt=step, method=method, every=10_000))

    def state(table: Table) -> Any:
        return np.concatenate([table.q[-1], table.v[-1]])

    exact = state(simulate(robot, q0, v0, duration=0.8, method="dop853", rtol=1e-13))
    errors = [np.abs(end(x) - exact).max() for x in (h, h / 2.0, h / 4.0)]
    order = np.log2(errors[-2] / errors[-1])
    assert order == pytest.approx(method.order, abs=0.25), errors


def test_tableaus_are_consistent() -> None:
    for m in METHODS.values():
        c = np.array(m.nodes)
        for power in range(min(m.order, 8)):
            assert np.dot(m.weights, c**power) == pytest.approx(1.0 / (power + 1), abs=1e-13), m.name
        assert all(abs(sum(e)) < 1e-13 for e in m.errors)
        assert m.reference


def test_rk4_as_dop853_without_errors_is_a_fixed_step_method(pendulum: Robot) -> None:
    fixed = Integrator("dop8", 8, DOP853.rows, DOP853.weights, "the same without its error estimate")
    exact = simulate(pendulum, [1.0, 0.5], duration=1.0, method="dop853", rtol=1e-13).q[-1]
    assert np.abs(simulate(pendulum, [1.0, 0.5], duration=1.0, dt=0.01, method=fixed).q[-1] - exact).max() < 1e-12


# -- machine code and its twin ------------------------------------------------------------------------------


def _unforced(robot: Robot) -> Any:
    return lambda t, q, v, tau: robot.forward_dynamics(q, v, tau)


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda m: m.name)
@pytest.mark.parametrize("count", [1, 5])
def test_engine_equals_its_twin(method: Integrator, count: int, tumbling: Robot) -> None:
    rng = np.random.default_rng(7)
    chain, free = rod_chain(3), tumbling
    for robot in (chain, free):
        native = machine_motion(robot, None, False)
        assert native is not None
        slow = numeric_rates(robot.model, lambda t, q, v: np.zeros_like(v), _unforced(robot))
        q0, v0 = robot.random(rng, (count,)), rng.normal(size=(count, robot.nv))
        ends = []
        for moves in (native, slow):
            state = EngineState(robot.model, moves, method, count, 1e-2)
            state.q[...], state.v[...] = q0, v0
            q, v = np.empty((3, *q0.shape)), np.empty((3, *v0.shape))
            assert state.integrate(q, v, 2) == 3
            ends.append((q, v))
        for a, b in zip(*ends):
            assert np.abs(a - b).max() <= 1e-11 * max(1.0, np.abs(b).max())


def test_a_batch_is_its_rows(pendulum: Robot) -> None:
    q0 = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 500, 2))
    table = simulate(pendulum, q0, duration=0.1, every=50)
    assert table.q.shape == (3, 3, 500, 2)
    assert table.energy.shape == (3, 3, 500)
    for k in ((0, 0), (1, 130), (2, 499)):
        alone = simulate(pendulum, q0[k], duration=0.1, every=50)
        assert np.abs(alone.q - table.q[(slice(None), *k)]).max() < 1e-12
    assert np.array_equal(simulate(pendulum, q0, duration=0.1, every=50).q, table.q)


# -- efforts ------------------------------------------------------------------------------------------------


def test_every_way_to_give_efforts_agrees(pendulum: Robot) -> None:
    tau, q0 = np.array([0.3, -0.2]), [0.4, 0.1]
    want = simulate(pendulum, q0, tau=tau, duration=0.5).q
    ways = [np.tile(tau, (500, 1)), lambda t, q, v: tau, Control(lambda t, q, v: list(tau))]
    for way in ways:
        assert np.abs(simulate(pendulum, q0, tau=way, duration=0.5).q - want).max() < 1e-12
    batch = simulate(pendulum, np.tile(q0, (20, 1)), tau=np.tile(tau, (500, 20, 1)), duration=0.5).q
    assert np.abs(batch[:, 7] - want).max() < 1e-12


def test_laws_of_time_and_state(pendulum: Robot) -> None:
    def law(t: Any, q: Any, v: Any) -> Any:
        return [sin(3.0 * t) - 0.5 * v[0], -2.0 * q[1]]

    def by_numpy(t: float, q: Any, v: Any) -> Any:
        return np.array([np.sin(3.0 * t) - 0.5 * v[0], -2.0 * q[1]])

    for method in ("rk4", "gauss6", "dop853"):
        a = simulate(pendulum, [0.4, 0.1], tau=Control(law), duration=0.5, method=method, dt=0.01)
        b = simulate(pendulum, [0.4, 0.1], tau=by_numpy, duration=0.5, method=method, dt=0.01)
        assert np.abs(a.q - b.q).max() < 1e-11


def test_damping_and_pd(pendulum: Robot) -> None:
    energy = simulate(pendulum, [1.0, 0.0], tau=damping(0.5), duration=5.0, every=50).energy
    assert (np.diff(energy) < 0.0).all()
    law = pd(pendulum, [0.5, -0.3], 4000.0, [200.0, 100.0], gravity=False)
    held = simulate(pendulum, [0.0, 0.0], tau=Control(law), duration=4.0, every=4000)
    assert np.abs(held.q[-1] - [0.5, -0.3]).max() < 5e-3
    with pytest.raises(InputError, match="3 numbers for 2 freedoms"):
        simulate(pendulum, [0.0, 0.0], tau=damping([1.0, 2.0, 3.0]), duration=0.1)


def test_a_damped_oscillator_decays_as_known() -> None:
    b = drevo.Builder("mass", gravity=(0.0, 0.0, 0.0))
    b.body("m", parent="world", joint="prismatic", axis=(1, 0, 0), mass=2.0, com=(0, 0, 0), inertia=np.eye(3))
    robot, k, d = b.robot(), 8.0, 0.8
    decay, turn = d / 4.0, np.sqrt(k / 2.0 - (d / 4.0) ** 2)
    for method in ("rk4", "gauss4", "gauss6", "dop853"):
        table = simulate(
            robot,
            [1.0],
            tau=Control(pd(robot, [0.0], k, d, gravity=False)),
            duration=3.0,
            dt=0.01,
            method=method,
            rtol=1e-12,
        )
        phase = turn * table.t
        want = np.exp(-decay * table.t) * (np.cos(phase) + decay / turn * np.sin(phase))
        assert np.abs(table.q[:, 0] - want).max() < 1e-8


def test_compiled_step_lengths_equal_their_twin(pendulum: Robot, tumbling: Robot) -> None:
    """A batch of one kind of row goes the way through Python, one row that of the machine code."""
    for robot, v0 in ((pendulum, [0.5, -1.0]), (tumbling, [0.1, 0.2, 0.3, 0.4, 2.0, 1.0])):
        q0 = robot.neutral()
        alone = simulate(robot, q0, v0, duration=2.0, method="dop853", rtol=1e-9)
        twins = simulate(robot, np.tile(q0, (2, 1)), v0, duration=2.0, method="dop853", rtol=1e-9)
        assert (alone.steps, alone.rejected) == (twins.steps, twins.rejected)
        assert np.abs(alone.t - twins.t).max() < 1e-7
        assert np.abs(alone.q[-1] - twins.q[-1, 0]).max() < 1e-10
