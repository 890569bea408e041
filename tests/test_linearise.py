"""Linear models with constraints against differences of the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import Array, worst
from scipy.integrate import solve_ivp
from strategies import EVERY, all_kinds, robot, state

import drevo
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.constraint.dynamics import constrained_dynamics
from drevo.control import linearise
from drevo.robot.face import Robot

DIFFERENCE = 1e-6  # the mark of the linearisation; central differences of step 1e-6 reach 1e-8


def slopes(f: Callable[[Array], Array], n: int, h: float = 1e-6) -> Array:
    """Central differences, columns by direction; f is asked for all directions at once."""
    return ((f(np.eye(n) * h) - f(-np.eye(n) * h)) / (2 * h)).T


def held_sets(r: Robot, b: str) -> dict[str, list[Any]]:
    """Sets of constraints on a robot; the last is dependent."""
    a = r.link_names[-1]
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
    """A, B and the reactions' share, in motion, against differences of the constrained dynamics: every set on a
    free base, those that hold links on joints of every kind."""
    r = Robot(all_kinds("fixed", 1) if base == "fixed" else robot(3, EVERY, 4, "floating", welds=0.0))
    q, v, tau = state(r.model, 3)
    n, o = r.nv, np.zeros(r.nv)
    for name, held in held_sets(r, r.link_names[-2] if base == "fixed" else "world").items():
        if base == "fixed" and name in ("free", "dependent"):
            continue

        def run(dq: Array, dv: Array, dt: Array, held: list[Any] = held) -> Array:
            got = constrained_dynamics(r, r.integrate(q, dq), v + dv, tau + dt, constraints=held, t=0.3)
            return np.concatenate([got.a, got.reactions], -1)

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
    h = slopes(lambda e: G.reactions @ constrained_dynamics(r, q + e, v, tau, constraints=held).jacobian, 3)
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
    return drevo.constraint.constrained_inverse_dynamics(r, q, np.zeros(3), np.zeros(3), constraints=held).tau


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


def test_drift_says_by_how_much_a_state_is_not_at_rest() -> None:
    """The rate of the state where the model is made: the velocity, then the acceleration."""
    r = drevo.load("puma560")
    q, v, tau = state(r.model, 2)
    L = linearise(r, [q, q], [v, 0 * v], [tau, r.inverse_dynamics(q, 0 * v, 0 * v)])
    assert worst(L.drift[0], np.concatenate([v, r.forward_dynamics(q, v, tau)])) <= 1e-12
    assert np.abs(L.drift[1]).max() <= 1e-12


# -- all that may be given, and given out --------------------------------------------------------------------


def test_wrenches_feedback_outputs_in_a_batch() -> None:
    """External wrenches, feedback of the constraint, every part of the output, three states at once."""
    r = Robot(robot(3, EVERY, 4, "floating", welds=0.0))
    n, link, k = r.nv, r.link_names[-1], 1
    rng = np.random.default_rng(5)
    q, v, tau, t = r.random(rng, 3), rng.normal(size=(3, n)), rng.normal(size=(3, n)), np.array([0.1, 0.2, 0.3])
    held = [constraint.point_on_plane(link, (0.1, 0, 0.2), (0.3, 0.5, 1), (0.1, -0.4, 0.2), 0.3, -0.2, 0.7)]
    given: dict[str, Any] = {"constraints": held, "f_ext": {link: [1, 2, 3, 0.3, 0.2, 0.1]},
                             "stabilise": (7.0, 20.0), "passive": False}  # fmt: skip
    parts = ("velocity:" + link, "v", "a", "reactions", "pose:" + link)
    L = linearise(r, q, v, tau, t=t, outputs=parts, **given)
    assert L.lead == (3,) and len(L) == 3 and (L.rank == 1).all() and (L.condition == 1.0).all()
    one = linearise(r, q[k], v[k], tau[k], t=t[k], outputs=parts, **given)
    for name in ("A", "B", "C", "D", "a", "reactions", "basis", "q"):
        assert (getattr(L[k], name) == getattr(one, name)).all(), name
    assert L.discretised(0.01)[k].A.shape == one.A.shape
    assert (one.units[one.outputs[0]], one.units[one.inputs[-1]], one.units[one.states[0]]) == ("m/s", "N m", "m")

    def y(dq: Array, dv: Array, dtau: Array) -> Array:
        at = r.integrate(q[k], dq)
        got = constrained_dynamics(r, at, v[k] + dv, tau[k] + dtau, t=t[k],
                                   **{x: g for x, g in given.items() if x != "passive"})  # fmt: skip
        own = np.broadcast_to(v[k] + dv, got.a.shape)
        return np.concatenate([r.velocity(at, own, link), own, got.a, got.reactions], -1)

    o = np.zeros(n)
    by_q, by_v, by_tau = (slopes(lambda e, i=i: y(*(e if j == i else o for j in range(3))), n) for i in range(3))
    m = len(by_q)
    assert worst(one.C[:m], np.hstack([by_q, by_v])) <= DIFFERENCE
    assert worst(one.D[:m], by_tau[:, one.driven]) <= DIFFERENCE
    J = r.jacobian(q[k], link)
    assert worst(one.C[m:, :n], J) <= 1e-14 and not one.C[m:, n:].any()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"outputs": "speed"}, "outputs holds 'speed'; parts are"),
        ({"outputs": ["pose:hand"]}, "link 'hand' is not in robot"),
        ({"outputs": []}, "name one part or more"),
        ({"outputs": ["q", "q"]}, "each once"),
        ({"f_ext": {"hand": np.ones(6)}}, "f_ext: link 'hand' is not in robot"),
        ({"f_ext": {"bar0": np.ones(3)}}, "f_ext of 'bar0' has shape"),
        ({"f_ext": 5}, "f_ext must be"),
        ({"stabilise": 5}, "stabilise is 5; it must be a pair"),
        ({"stabilise": (-1.0, 1.0)}, "does not decay"),
        ({"q": np.zeros((0, 3))}, "the batch .0,. is empty"),
        ({"q": np.zeros((2, 3)), "v": np.zeros((3, 3))}, "leading .batch. dimensions do not agree"),
        ({"q": np.full((2, 3), np.nan)}, "not finite"),
    ],
)  # fmt: skip
def test_what_linearise_refuses(given: dict[str, Any], told: str) -> None:
    r, held = four_bar()
    call = {"q": np.zeros(3), "v": np.zeros(3), "tau": np.zeros(3), "constraints": held, **given}
    with pytest.raises(drevo.DrevoError, match=told):
        r.linearise(**call)
