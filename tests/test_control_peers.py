"""Regulators, filters and responses against python-control and SciPy, on twenty robots; laws in motion."""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import worst
from scipy.linalg import solve_continuous_are, solve_discrete_are
from strategies import EVERY, robot
from test_control import acrobot
from test_linearise import at_rest, constrained_statics, four_bar

import drevo
from drevo.control import LinearModel, controllability, kalman, linearise, lqg, lqr, observability, observer, trim
from drevo.model.description import Limit
from drevo.robot.face import Robot
from drevo.simulate import Control

SAME = 1e-9
EMBEDDED = ("three-link", "two-arm-planar", "stanford", "scara", "screw-arm", "rod")
TREES = range(14)
EVERY_ROBOT = (*EMBEDDED, *map(str, TREES))


def by_day(*names: str) -> list[Any]:
    """These by day, the others at night."""
    return [n if n in names else pytest.param(n, marks=pytest.mark.nightly) for n in EVERY_ROBOT]


def same(got: Any, expected: Any) -> float:
    """The worst difference, relative to the largest, of complex numbers in any order."""
    a, b = np.sort_complex(np.ravel(got)), np.sort_complex(np.ravel(expected))
    nearest = np.abs(a[:, None] - b)
    assert a.shape == b.shape
    return float(max(nearest.min(0).max(), nearest.min(1).max()) / np.abs(b).max())


@cache
def robot_of(name: str) -> Robot:
    if name == "rod":
        return drevo.robots.rod_chain(4)
    if not name.isdigit():
        return drevo.load(name)
    kinds = EVERY if int(name) % 4 == 0 else ("revolute", "prismatic", "helical")
    return Robot(robot(int(name), kinds, 2, "floating" if int(name) % 5 == 4 else "fixed", welds=0.0, mimics=0.0))


@cache
def model_of(name: str) -> Any:
    """About rest, held up by all drives, a free base too; the positions are seen."""
    r = robot_of(name)
    q = 0.3 * r.random(np.random.default_rng(1)) if r.nq == r.nv else r.random(np.random.default_rng(1))
    return r.linearise(q, np.zeros(r.nv), r.gravity(q) - r.passive(q, np.zeros(r.nv)), actuated=r.joint_names,
                       outputs=["q"])  # fmt: skip


def weighed(name: str) -> tuple[Any, Any]:
    """Weights of comparable size: efforts by what they move."""
    M = robot_of(name).mass_matrix(model_of(name).q)
    return np.eye(len(model_of(name).A)), np.diag(1.0 / np.diagonal(M) ** 2)


@pytest.mark.parametrize("name", by_day("three-link", "scara", "0", "4"))
def test_python_control_agrees(name: str) -> None:
    """K, poles and Kalman's gains, continuous and discrete."""
    control = pytest.importorskip("control")
    L = model_of(name)
    Q, R = weighed(name)
    W, V = 0.1 * np.eye(len(L.A)), 0.02 * np.eye(len(L.C))
    for model, regulator, filtering in (
        (L, control.lqr, control.lqe),
        (L.discretised(0.01), control.dlqr, control.dlqe),
    ):
        theirs = model.to_control()
        K, P, E = regulator(theirs, Q, R)
        ours = lqr(model, Q, R)
        assert worst(ours.K, K) <= SAME and worst(ours.P, P) <= SAME
        assert same(ours.poles, E) <= SAME
        G, P, E = filtering(model.A, np.eye(len(model.A)), model.C, W, V)
        seen = kalman(model, W, V)
        assert worst(seen.L, G) <= SAME and worst(seen.P, P) <= SAME
        assert same(seen.poles, E) <= SAME
        back = LinearModel.of(theirs)
        assert all((getattr(back, x) == getattr(model, x)).all() for x in "ABCD") and back.dt == model.dt
        held = LinearModel.of(model.to_scipy())
        assert all((getattr(held, x) == getattr(model, x)).all() for x in "ABCD") and held.dt == model.dt


@pytest.mark.parametrize("name", by_day("4"))
def test_regulated_robots_come_to_rest(name: str) -> None:
    """The nonlinear motion from beside the state, under efforts that the regulator sets every 20 ms."""
    r, L = robot_of(name), model_of(name)
    law = lqr(L.discretised(0.02), *weighed(name))
    q, v = r.integrate(L.q, 1e-3 * np.random.default_rng(2).normal(size=r.nv)), np.zeros(r.nv)
    for _ in range(round(9.0 / -np.log(np.abs(law.poles).max()))):
        tau = L.tau - law.K @ np.r_[r.difference(L.q, q), v]
        table = r.simulate(q, v, tau, duration=0.02, dt=2e-3, every=10)
        q, v = table.q[-1], table.v[-1]
    assert np.abs(r.difference(L.q, q)).max() <= 1e-5


@pytest.mark.parametrize("name", ["three-link", "4"])
def test_a_regulator_is_a_law(name: str) -> None:
    """Compiled into the motion, with a free base and its quaternion too; the same called and written out."""
    r, L = robot_of(name), model_of(name)
    law = lqr(L, *weighed(name))
    start = r.integrate(L.q, 1e-2 * np.random.default_rng(2).normal(size=r.nv))
    table = r.simulate(start, np.zeros(r.nv), Control(law), duration=15.0, method="dop853", dt=1.0)
    assert np.abs(r.difference(L.q, table.q[-1])).max() <= 1e-5
    v = np.linspace(-1, 1, r.nv)
    d = law.write_out()
    assert worst(law(0.0, start, v), L.tau - law.K @ np.r_[r.difference(L.q, start), v]) <= 1e-4  # of second order
    assert worst(d.evaluate(t=[0.0], q=start, v=v), law(0.0, start, v)) <= 1e-13
    assert law(0.0, np.stack([start, start]), v).shape == (2, r.nv) and d.counts["mul"] >= r.nv * r.nv


def test_discrete_regulators_hold_their_efforts() -> None:
    """An acrobot upright under efforts that change every 20 ms, from 2 degrees."""
    r = acrobot()
    rest = np.zeros(2)
    law = lqr(r.linearise(rest, rest, rest, actuated=["lower_joint"]).discretised(0.02), 1.0, 0.01)
    q, v = np.deg2rad([2.0, 0.0]), rest
    for _ in range(500):
        table = r.simulate(q, v, law(0.0, q, v), duration=0.02, dt=1e-3, every=20)
        q, v = table.q[-1], table.v[-1]
    assert np.abs(q).max() < 1e-3 and np.abs(v).max() < 1e-3


def test_horizons() -> None:
    """Gains of a finite horizon by their definition, a least squares problem of all efforts at once."""
    L = model_of("three-link").discretised(0.05)
    n, m, N = len(L.A), L.B.shape[1], 6
    Q, R, F = np.diag(np.linspace(1, 2, n)), 0.3 * np.eye(m), 5.0 * np.eye(n)
    made = lqr(L, Q, R, horizon=N, final=F)
    assert made.K.shape == (N, m, n) and made.P.shape == (N + 1, n, n)
    x0 = np.linspace(-1, 1, n)
    powers = [np.linalg.matrix_power(L.A, k) for k in range(N + 1)]
    G = np.block(
        [[powers[k - j - 1] @ L.B if j < k else np.zeros((n, m)) for j in range(N)] for k in range(N + 1)]
    )
    weight = np.kron(np.diag([1.0] * N + [0.0]), Q) + np.kron(np.diag([0.0] * N + [1.0]), F)
    free = np.concatenate([p @ x0 for p in powers])
    u = -np.linalg.solve(G.T @ weight @ G + np.kron(np.eye(N), R), G.T @ weight @ free)
    assert worst(-made.K[0] @ x0, u[:m]) <= 1e-9
    x = free + G @ u
    assert abs(x0 @ made.P[0] @ x0 - (x @ weight @ x + u @ np.kron(np.eye(N), R) @ u)) <= 1e-9 * abs(
        x @ weight @ x
    )
    assert worst(lqr(L, Q, R, horizon=3000).K[0], lqr(L, Q, R).K) <= 1e-9
    with pytest.raises(drevo.InputError, match="horizon counts the knots of a discrete model"):
        lqr(model_of("three-link"), Q, R, horizon=5)


def test_observers_and_lqg() -> None:
    """Poles that were given; the poles of LQG's loop are those of its two halves (separation)."""
    for L in (model_of("three-link"), model_of("three-link").discretised(0.01)):
        n, m = len(L.A), L.B.shape[1]
        wanted = -np.linspace(5.0, 9.0, n) if L.dt is None else np.exp(-np.linspace(5.0, 9.0, n) * 0.01)
        placed = observer(L, wanted)
        assert worst(np.sort(placed.poles.real), np.sort(wanted)) <= 1e-6 and placed.P is None
        Q, R = weighed("three-link")
        W, V = np.eye(n), 0.1 * np.eye(len(L.C))
        c, made, seen = lqg(L, Q, R, W, V), lqr(L, Q, R), kalman(L, W, V)
        assert c.inputs == L.outputs and c.outputs == L.inputs and c.dt == L.dt
        loop = np.block([[L.A, L.B @ c.C], [c.B @ L.C, c.A]])
        both = np.concatenate([made.poles, seen.poles])
        assert same(np.linalg.eigvals(loop), both) <= 1e-6
        e = seen.estimator  # about a fixed state the estimate is right
        x, u = np.linspace(-1, 1, n), np.linspace(1, 2, m)
        y = L.C @ x + L.D @ u
        assert worst(e.A @ x + e.B @ np.r_[u, y], L.A @ x + L.B @ u) <= 1e-9
        assert (e.C @ x == x).all()
    are = solve_continuous_are(model_of("three-link").A.T, model_of("three-link").C.T, W, V)
    assert worst(kalman(model_of("three-link"), W, V).P, are) <= SAME
    are = solve_discrete_are(L.A.T, L.C.T, W, V)
    assert worst(kalman(L, W, V).P, are) <= SAME


def test_filters_under_constraints() -> None:
    """A four-bar of which the crank's angle is seen: the estimate of all states by the motions that are left."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = constrained_statics(r, q, held)
    L = linearise(r, q, v, tau, constraints=held, outputs=["reactions", "q"])
    made = kalman(L, 0.1, 0.01)
    assert made.L.shape == (6, 5) and made.estimator.A.shape == (2, 2) and made.estimator.C.shape == (6, 2)
    plain = kalman(L.reduced, np.linalg.pinv(L.basis) @ (0.1 * np.eye(6)) @ np.linalg.pinv(L.basis).T, 0.01)
    assert worst(made.L, L.basis @ plain.L) <= 1e-12


# -- what is lost, by joint ----------------------------------------------------------------------------------


def test_weights_too_far_apart_have_one_sentence() -> None:
    """Where Riccati's equation or recursion has no digits left: no traceback, no warning of SciPy's."""
    r, q = drevo.load("three-link"), np.full(3, 0.3)
    plain = r.linearise(q, 0 * q, r.gravity(q))
    model = plain.discretised(0.01)
    for seed in range(20):
        q = r.random(np.random.default_rng(seed))
        with warnings.catch_warnings(), suppress(drevo.NumericsError):
            warnings.simplefilter("error")
            found = kalman(r.linearise(q, 0 * q, r.gravity(q)).discretised(0.01), 1e300, 1.0)
            assert np.isfinite(found.L).all() and np.abs(found.poles).max() < 1.0
    for call in (
        lambda: lqr(model, 1e300, 1.0),
        lambda: lqr(plain, 1e300, 1.0),
        lambda: lqr(LinearModel([[1.0]], [[1.0, 1.0]], dt=0.1), 1.0, 1.0, horizon=5, final=1e200),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(drevo.NumericsError, match=r"closer together|nearer to one another"):
                call()


def apart() -> Robot:
    b = drevo.Builder("apart")
    for name in ("one", "two"):
        b.body(name, "world", axis=(0, 1, 0), mass=1.0, com=(0, 0, 0.5), inertia=np.eye(3) * 0.1)
    return b.robot()


def test_what_is_lost() -> None:
    """A pendulum apart from the motor, or from the sensor; a linkage; a chain that is whole."""
    r, o = apart(), np.zeros(2)
    L = r.linearise(o, o, o, actuated=["one_joint"])
    lost = controllability(L)
    assert (lost.rank, lost.size, lost.whole, lost.steadies) == (2, 4, False, False)
    assert [set(x.joints) for x in lost.lost] == [{"two_joint"}] * 2 and lost.lost[0].pole.real > 0.0
    assert lost.margin < 1e-12 and controllability(r.linearise(o, o, o)).whole
    seen = observability(LinearModel(L.A, L.B, C=np.eye(4)[[1, 3]], states=L.states))
    assert [set(x.joints) for x in seen.lost] == [{"one_joint"}] * 2
    r, held = four_bar()
    q, v = at_rest(r, held)
    L = linearise(r, q, v, constrained_statics(r, q, held), constraints=held, actuated=["bar0_joint"])
    assert controllability(L).whole and controllability(L).size == 2
    fixed = LinearModel(np.diag([-1.0, -2.0]), [[1.0], [0.0]])
    assert controllability(fixed).steadies and controllability(fixed).lost[0].joints == {"x1": 1.0}
    assert not controllability(LinearModel(np.eye(2), np.zeros((2, 0)))).steadies


@pytest.mark.parametrize("seed", range(8))
def test_reach_of_planted_models(seed: int) -> None:
    """So many states in other coordinates, of which some are out of reach; of a dual out of sight."""
    rng = np.random.default_rng(seed)
    n, kept, m = 7, int(rng.integers(1, 7)), int(rng.integers(1, 3))
    A = rng.normal(size=(n, n))
    A[kept:, :kept] = 0.0
    B = np.vstack([rng.normal(size=(kept, m)), np.zeros((n - kept, m))])
    T = np.linalg.qr(rng.normal(size=(n, n)))[0] @ np.diag(10.0 ** rng.uniform(-2, 2, n))
    back = np.linalg.inv(T)
    got = controllability(LinearModel(T @ A @ back, T @ B))
    assert got.rank == kept and len(got.lost) == n - kept
    poles = np.sort_complex(np.array([x.pole for x in got.lost]))
    assert same(poles, (np.linalg.eigvals(A[kept:, kept:]))) <= 1e-6
    dual = observability(LinearModel((T @ A @ back).T, np.zeros((n, 1)), C=(T @ B).T))
    assert dual.rank == kept


# -- responses ---------------------------------------------------------------------------------------------


def test_responses_agree_with_python_control() -> None:
    control = pytest.importorskip("control")
    L = LinearModel([[0, 1, 0], [-9, -0.6, 1], [0, 0, -2]], [[0], [1], [0.5]], C=[[1, 0.2, 0], [0, 1, 0]])
    w = np.logspace(-1, 1.5, 40)
    for model in (L, L.discretised(0.05)):
        theirs = model.to_control()
        points = 1j * w if model.dt is None else np.exp(1j * w * model.dt)
        response = model.frequency_response(w)
        assert same(response.values, np.moveaxis(theirs(points), -1, 0)) <= 1e-12
        assert same(response.magnitude * np.exp(1j * response.phase), response.values) <= 1e-12
        step = model.step_response(4.0, 81)
        _, y = control.step_response(theirs, step.times)
        assert worst(step.values[:, :, 0], y[:, 0].T) <= 1e-9
        channel = LinearModel(model.A, model.B, model.C[:1], model.D[:1], model.dt)
        zeros = control.zeros(channel.to_control())
        assert same(model.zeros("y0", "u0"), zeros) <= 1e-9
        drawn = (response.svg(), step.svg(), channel.pole_zero_map().svg())
        assert all(x.startswith("<svg") and "nan" not in x for x in drawn)
    poles = L.poles()
    assert same(poles, control.poles(L.to_control())) <= 1e-12


# -- equilibria --------------------------------------------------------------------------------------------


def test_trim() -> None:
    """With all drives where it is; with one the nearest lean that it can hold; under constraints; on feet."""
    r = acrobot()
    assert (trim(r, [0.3, 0.4]).q == [0.3, 0.4]).all()
    got = trim(r, [0.3, 0.4], actuated=["lower_joint"])
    assert np.abs(r.forward_dynamics(got.q, [0, 0], got.tau)).max() <= 1e-7 and got.tau[0] == 0.0
    hung = trim(r, [0.3, 0.4], actuated=["lower_joint"], keep=["lower_joint"])
    assert hung.q[1] == 0.4 and abs(r.gravity(hung.q)[0]) <= 1e-6
    r, held = four_bar()
    q, v = at_rest(r, held)
    got = trim(r, q, constraints=held, actuated=[])
    motion = r.constrained_dynamics(got.q, v, got.tau, constraints=held)
    assert not got.tau.any() and np.abs(motion.a).max() <= 1e-7 and np.abs(motion.value).max() <= 1e-9
    assert worst(got.reactions, motion.reactions) <= 1e-6 and len(got.rows) == 2


def test_trim_at_a_dead_point() -> None:
    """Two stretched rods whose tip is held: no linear model, and an equilibrium that bears the lower weights."""
    r, tip = acrobot(), [{"link": "lower", "point": (0.0, 0.0, 2.0), "rows": 3}]
    still = np.zeros(2)
    with pytest.raises(drevo.NumericsError, match="dead point"):
        linearise(r, still, still, still, contacts=tip)
    got = trim(r, still, contacts=tip, actuated=[])
    assert not got.q.any() and got.steps == 0 and got.residual <= 1e-13
    motion = r.constrained_dynamics(still, still, still, contacts=tip)
    assert np.array_equal(got.reactions, motion.reactions) and np.abs(motion.a).max() <= 1e-13


def test_why_there_is_no_equilibrium() -> None:
    b = drevo.Builder("lift")
    b.body("a", joint="prismatic", axis=(0, 0, 1), mass=1.0, limit=Limit(effort=5.0))
    lift = b.robot()
    with pytest.raises(drevo.NumericsError, match=r"9.81 N are left at joint 'a_joint', which neither drives"):
        trim(lift, [0.0], actuated=[])
    free = Robot(robot(1, ("revolute",), 2, "floating", welds=0.0))
    with pytest.raises(drevo.NumericsError, match=r"no equilibrium .* are left at joint 'j1'"):
        trim(free, free.neutral())
    with pytest.raises(drevo.NumericsError, match=r"would need 9.81 to hold the equilibrium, .*at most 5"):
        trim(lift, [0.0])
    assert trim(lift, [0.0], limits=False).tau[0] == pytest.approx(9.81)
    for given, told in (
        ({"q0": [[0.0]]}, "must be .1,., one configuration"),
        ({"q0": [np.nan]}, "not finite"),
        ({"keep": ["b"]}, "keep: 'b' is no moving joint"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"steps": 0}, "steps"),
        ({"limits": 1}, "limits"),
    ):
        with pytest.raises(drevo.DrevoError, match=told):
            trim(lift, **{"q0": [0.0], **given})
