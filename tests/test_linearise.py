"""Linear models with constraints against differences of the dynamics; regulators and laws in simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import Array, worst
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from strategies import all_kinds, state

import drevo
from drevo import constraint
from drevo.constrained import constrained_dynamics, hold
from drevo.control.linearise import linearise, lqr, tracking_lqr
from drevo.control.stabilise import stabilise
from drevo.robot import Robot

DIFFERENCE = 1e-6  # the mark of the linearisation; central differences of step 1e-6 reach 1e-8


def slopes(f: Callable[[Array], Array], n: int, h: float = 1e-6) -> Array:
    """Central differences, columns by direction."""
    return np.stack([(f(e) - f(-e)) / (2 * h) for e in np.eye(n) * h], -1)


def held_sets(r: Robot) -> dict[str, list[Any]]:
    """Sets of constraints on a robot of every joint; the last is dependent."""
    a, b = r.link_names[-1], r.link_names[-2]
    plane = constraint.point_on_plane(a, (0.1, 0, 0.2), (0.3, 0.5, 1), (0.1, -0.4, 0.2), 0.3, -0.2, 0.7)
    near = constraint.distance(a, (0.1, 0.2, 0), b, (0.4, 0.3, 0.1), 0.5)
    W = ((1, 2, 0), (0, 1, -1), (1, 3, -1))
    return {
        "free": [],
        "moving plane, rod": [plane, near],
        "weld": [constraint.weld(a, (0.1, 0.2, 0), b, (0, 0.3, 0.1))],
        "dependent": [constraint.point_to_point(a, (0.1, 0.2, 0), "world", (0, 0.3, 0.1), rows=W)],
    }


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_differences(base: str) -> None:
    """A, B and the reactions' share, in motion, against differences of the constrained dynamics."""
    r = Robot(all_kinds(base, 1))
    q, v, tau = state(r.model, 3)
    n, o = r.nv, np.zeros(r.nv)
    for name, held in held_sets(r).items():

        def run(dq: Array, dv: Array, dt: Array, held: list[Any] = held) -> Array:
            got = constrained_dynamics(r, r.integrate(q, dq), v + dv, tau + dt, constraints=held, t=0.3)
            return np.concatenate([got.a, got.reactions])

        L = linearise(r, q, v, tau, constraints=held, t=0.3)
        by_q, by_v = slopes(lambda e: run(e, o, o), n), slopes(lambda e: run(o, e, o), n)
        by_tau = slopes(lambda e: run(o, o, e), n)[:, n - L.B.shape[1] :]
        assert worst(L.A[n:], np.hstack([by_q, by_v])[:n]) <= DIFFERENCE, name
        assert worst(L.B[n:], by_tau[:n]) <= DIFFERENCE and not L.B[:n].any()
        if name != "dependent":  # there N is a choice that turns with q
            assert worst(L.reactions_state, np.hstack([by_q, by_v])[n:]) <= DIFFERENCE, name
            assert worst(L.reactions_input, by_tau[n:]) <= DIFFERENCE, name


def test_hessian_matters() -> None:
    """Without the Hessian term of the reactions, as (4.1) is printed, the stiffness is wrong: errata Z28."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = np.array([1.0, -2.0, 0.5])
    L = linearise(r, q, v, tau, constraints=held)
    G = constrained_dynamics(r, q, v, tau, constraints=held)
    h = slopes(lambda e: constrained_dynamics(r, q + e, v, tau, constraints=held).jacobian.T @ G.reactions, 3)
    lost = np.linalg.solve(r.mass_matrix(q), h)
    assert np.abs(lost).max() > 1.0 and worst(h, h.T) <= 1e-6
    assert L.reduced.A.shape == (2, 2)


def four_bar() -> tuple[Robot, list[Any]]:
    """A four-bar linkage as an open chain whose end is held."""
    b, parent = drevo.Builder("four-bar", gravity=(0, 0, -9.81)), "world"
    for i, length in enumerate((0.3, 0.7, 0.5)):
        x = (0, 0, 0) if i == 0 else ((0.3, 0.7)[i - 1], 0, 0)
        b.body(f"bar{i}", parent, axis=(0, 1, 0), origin=x, mass=1.0 + i, com=(length / 2, 0, 0),
               inertia=np.eye(3) * 0.02 * (i + 1))  # fmt: skip
        parent = f"bar{i}"
    return b.robot(), [constraint.point_to_point(parent, (0.5, 0, 0), "world", (0.6, 0, 0),
                                                 rows=((1, 0, 0), (0, 0, 1)))]  # fmt: skip


def at_rest(r: Robot, held: list[Any]) -> tuple[Array, Array]:
    return hold(r, [-1.2, 1.0, 1.6], np.zeros(3), constraints=held)


def test_reduced() -> None:
    """About rest the motions that the constraints leave are an invariant subspace; a pendulum's frequency."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = constrained_statics(r, q, held)
    L = linearise(r, q, v, tau, constraints=held)
    T = L.reduced.basis
    assert worst(L.a, np.zeros(3)) <= 1e-10 and worst(L.A @ T, T @ L.reduced.A) <= 1e-10
    assert worst(L.B, T @ L.reduced.B) <= 1e-10
    b = drevo.Builder("pendulum")
    b.body("rod", "world", axis=(0, 1, 0), mass=2.0, com=(0, 0, -0.5), inertia=np.diag([1 / 6, 1 / 6, 1e-3]))
    modes = linearise(b.robot(), [0.0], [0.0], [0.0]).modes()
    assert worst(modes.frequencies, [np.sqrt(2.0 * 9.81 * 0.5 / (1 / 6 + 0.5))]) <= 1e-12
    assert worst(modes.damping, [0.0]) <= 1e-12 and modes.shapes.shape == (2, 1)


def constrained_statics(r: Robot, q: Array, held: list[Any]) -> Array:
    return drevo.constrained.constrained_inverse_dynamics(r, q, np.zeros(3), np.zeros(3), constraints=held).tau


def test_discretised() -> None:
    """The exact step is the response of the linear model to a constant input."""
    r = drevo.load("puma560")
    q, v, tau = state(r.model, 1)
    L = linearise(r, q, 0.1 * v, tau)
    step = L.discretised(0.01)
    x, u = np.linspace(-1, 1, 12), np.linspace(1, 2, 6)
    run = solve_ivp(lambda _, y: L.A @ y + L.B @ u, (0, 0.01), x, rtol=1e-12, atol=1e-12).y[:, -1]
    assert worst(step.A @ x + step.B @ u, run) <= 1e-9
    assert L.C.shape == (12, 12) and L.D.shape == (12, 6)


# -- regulators --------------------------------------------------------------------------------------------


def acrobot() -> Robot:
    """Two rods, upright at zero; only the second joint is driven."""
    b = drevo.Builder("acrobot")
    for name, parent, z, length in (("upper", "world", 0.0, 1.0), ("lower", "upper", 1.0, 2.0)):
        b.body(name, parent, axis=(0, 1, 0), origin=(0, 0, z), mass=1.0, com=(0, 0, length / 2),
               inertia=np.diag([length**2 / 12, length**2 / 12, 1e-3]))  # fmt: skip
    return b.robot()


def test_lqr_of_an_acrobot() -> None:
    """From 5 degrees it stands still after 10 s, one motor, the full equations."""
    r = acrobot()
    L = linearise(r, np.zeros(2), np.zeros(2), np.zeros(2), actuated=["lower_joint"])
    assert L.B.shape == (4, 1)
    with_gain = lqr(L, [10.0, 10.0, 1.0, 1.0], [1.0])
    assert with_gain.poles.real.max() < 0.0

    def rate(_: float, x: Array) -> Array:
        tau = np.concatenate([[0.0], -with_gain.K @ x])
        return np.concatenate([x[2:], r.forward_dynamics(x[:2], x[2:], tau)])

    run = solve_ivp(rate, (0, 10), [np.deg2rad(5), 0, 0, 0], rtol=1e-9, atol=1e-10)
    assert np.abs(run.y[:, -1]).max() < 1e-3


def test_lqr_under_constraints() -> None:
    """A four-bar held up by one drive: the gain of the reduced model steadies the constrained dynamics."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = drevo.constrained.constrained_inverse_dynamics(
        r, q, v, np.zeros(3), constraints=held, actuated=[r.joint_names[0]]
    ).tau
    L = linearise(r, q, v, tau, constraints=held, actuated=[r.joint_names[0]])
    made = lqr(L, np.ones(6), 0.1)
    poles = np.linalg.eigvals(L.reduced.A - L.reduced.B @ made.K @ L.reduced.basis)
    assert made.K.shape == (1, 6) and poles.real.max() < 0.0 and worst(np.sort(poles), np.sort(made.poles)) <= 1e-8
    free = lqr(linearise(acrobot(), [0, 0], [0, 0], [0, 0]), 1.0, 1.0)
    assert free.poles.real.max() < 0.0


def test_beyond_the_drives() -> None:
    """A pendulum apart from the motor cannot be steadied; weights of the wrong size; states of the wrong size."""
    b = drevo.Builder("apart")
    for name in ("one", "two"):
        b.body(name, "world", axis=(0, 1, 0), mass=1.0, com=(0, 0, 0.5), inertia=np.eye(3) * 0.1)
    L = linearise(b.robot(), [0, 0], [0, 0], [0, 0], actuated=["one_joint"])
    with pytest.raises(drevo.NumericsError, match="no gain steadies"):
        lqr(L, np.ones(4), np.ones(1))
    with pytest.raises(drevo.InputError, match="Q has shape"):
        lqr(L, np.ones(3), np.ones(1))
    with pytest.raises(drevo.InputError, match="q has shape"):
        linearise(acrobot(), [0.0], [0, 0], [0, 0])


def test_tracking() -> None:
    """A PUMA along a swing of 1 s whose true masses are 10 % off, sampled at 5 ms: 10 mrad rms."""
    r, true = drevo.load("puma560"), heavier(drevo.load("puma560"), 1.1)
    dt, steps = 0.005, 200
    s = np.arange(steps + 1) * dt
    swing = np.array([0.8, -0.5, 0.6, 0.4, -0.3, 0.5])
    q = swing * (1 - np.cos(np.pi * s))[:, None] / 2
    v, a = swing * np.pi / 2 * np.sin(np.pi * s)[:, None], swing * np.pi**2 / 2 * np.cos(np.pi * s)[:, None]
    tau = r.inverse_dynamics(q, v, a)
    models = [linearise(r, *x) for x in zip(q[:steps], v[:steps], tau[:steps])]
    K = tracking_lqr(models, dt, [1e5] * 6 + [1e2] * 6, np.full(6, 1e-3))
    x, errors = np.concatenate([q[0], v[0]]), []
    for k in range(steps):
        u = tau[k] - K[k] @ (x - np.concatenate([q[k], v[k]]))
        x = runge_kutta(true, x, u, dt)
        errors.append(x[:6] - q[k + 1])
    assert np.sqrt(np.mean(np.square(errors))) <= 0.010


def heavier(r: Robot, factor: float) -> Robot:
    """The same robot with every mass and inertia scaled."""
    from dataclasses import replace

    links = []
    for link in r.model.links:
        i = link.inertial
        if i is not None:
            tensor = tuple(tuple(x * factor for x in row) for row in i.tensor)
            i = replace(i, mass=i.mass * factor, tensor=tensor)
        links.append(replace(link, inertial=i))
    return Robot(replace(r.model, links=tuple(links)))


def runge_kutta(r: Robot, x: Array, u: Array, dt: float, parts: int = 2) -> Array:
    """Classical fourth order at constant input."""

    def f(y: Array) -> Array:
        n = r.nv
        return np.concatenate([y[n:], r.forward_dynamics(y[:n], y[n:], u)])

    h = dt / parts
    for _ in range(parts):
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(x + h * k3))
    return x


# -- the law (3.1) -----------------------------------------------------------------------------------------

G1 = np.array([[4.0, 0.5, 0.0], [-0.3, 5.0, 0.2], [0.1, 0.0, 3.5]])
G0 = np.array([[6.0, 0.4, 0.1], [0.0, 8.0, -0.5], [0.2, 0.3, 5.0]])


def closed(r: Robot, law: Any, q: Array, v: Array, times: Array) -> Any:
    """The motion under a law."""
    n = r.nv

    def rate(t: float, x: Array) -> Array:
        return np.concatenate([x[n:], r.forward_dynamics(x[:n], x[n:], law(t, x[:n], x[n:]))])

    run = solve_ivp(rate, (0, times[-1]), np.r_[q, v], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times)
    return run.y.T[:, :n], run.y.T[:, n:]


def tip(pose: Any, q: Any, t: Any) -> list[Any]:
    """The tip of a PUMA on a moving path."""
    T = pose("link6")
    return [T[0][3] - 0.5 - 0.05 * constraint.sin(2.0 * t), T[1][3] - 0.2, T[2][3] - 0.3 - 0.1 * t]


def outputs(r: Robot, held: Any, q: Array, v: Array, t: Array) -> Array:
    from drevo.constrained import constraint_terms

    c = constraint_terms(r, (held,), q, v, t)
    return np.concatenate([c.value, c.rate], -1)


def test_closed_loop() -> None:
    """3 s of (3.1) with unsymmetric gains and free motion: f obeys f'' + G1 f' + G0 f = 0, matrix exponential."""
    r = drevo.load("puma560")
    tip_of = r.link_names[-1]

    def f(pose: Any, q: Any, t: Any) -> list[Any]:
        return tip(lambda _: pose(tip_of), q, t)

    held = constraint.function(f, 3)
    q, v = np.array([0.3, -0.6, 0.4, 0.2, 0.7, 0.1]), np.array([0.1, 0.2, -0.1, 0.1, 0.0, 0.2])
    law = stabilise(r, held, G0, G1, v=lambda t, q, v: -2.0 * v)
    times = np.linspace(0, 3, 7)
    qs, vs = closed(r, law, q, v, times)
    y = outputs(r, held, qs, vs, times)
    block = np.block([[np.zeros((3, 3)), np.eye(3)], [-G0, -G1]])
    assert worst(y, np.array([expm(block * t) @ y[0] for t in times])) <= 1e-9
    batch = law(times[3], qs, vs)
    assert batch.shape == (7, 6) and worst(batch[3], law(times[3], qs[3], vs[3])) <= 1e-12


def test_redundant_and_square() -> None:
    """Dependent rows with scalar gains; f = q - q_p gives the computed torque."""
    r = drevo.load("puma560")
    link = r.link_names[-1]
    held = constraint.point_to_point(link, (0, 0, 0), "world", (0.5, 0.2, 0.3),
                                     rows=((1, 0, 0), (0, 1, 0), (1, 1, 0)))  # fmt: skip
    q, v = np.array([0.3, -0.6, 0.4, 0.2, 0.7, 0.1]), np.zeros(6)
    times = np.linspace(0, 3, 4)
    qs, vs = closed(r, stabilise(r, held, 4.0, 5.0, v=lambda t, q, v: -2.0 * v), q, v, times)
    y = outputs(r, held, qs, vs, times)
    block = np.kron(np.array([[0, 1], [-4.0, -5.0]]), np.eye(3))
    assert worst(y, np.array([expm(block * t) @ y[0] for t in times])) <= 1e-9

    def path(pose: Any, q: Any, t: Any) -> list[Any]:
        return [x - 0.3 * constraint.sin(t) for x in q]

    law, t, speed = stabilise(r, constraint.function(path, 6), 4.0, 5.0), 0.7, np.full(6, 0.2)
    wish = -0.3 * np.sin(t) - 5.0 * (speed - 0.3 * np.cos(t)) - 4.0 * (q - 0.3 * np.sin(t))
    assert worst(law(t, q, speed), r.inverse_dynamics(q, speed, wish)) <= 1e-12


def test_gains() -> None:
    """Gains that do not decay, of the wrong size, and loops: one sentence each."""
    r = drevo.load("puma560")
    held = constraint.point_on_plane(r.link_names[-1], (0, 0, 0), (0, 0, 1))
    with pytest.raises(drevo.InputError, match="not Hurwitz"):
        stabilise(r, held, -1.0, 2.0)
    with pytest.raises(drevo.InputError, match="not Hurwitz"):
        stabilise(r, held, 1.0, 0.0)
    with pytest.raises(drevo.InputError, match="gamma1 has shape"):
        stabilise(r, held, 1.0, np.ones((2, 2)))
    with pytest.raises(drevo.InputError, match="no constraint"):
        stabilise(r, [], 1.0, 1.0)
