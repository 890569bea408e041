"""Trajectory optimisation: by laws, by Riccati's recursion, and by motions stepped with other functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import drevo
from drevo.control import optimise
from drevo.control.shooting.given import limits_given
from drevo.errors import InputError, NumericsError
from drevo.simulate import simulate

Array = np.ndarray[Any, Any]
DT = 0.05
FOOT = {"link": "leg2", "point": (0, 0, -0.3), "rows": 3}  # of `leg`


def table() -> drevo.Robot:
    """Two slides at right angles, without weight: a linear system."""
    b = drevo.Builder("table", gravity=(0, 0, 0))
    b.body("x", "world", joint="prismatic", axis=(1, 0, 0), mass=2.0)
    b.body("y", "x", joint="prismatic", axis=(0, 1, 0), mass=0.5)
    return b.robot()


def arm(n: int = 2) -> drevo.Robot:
    b, parent = drevo.Builder("arm"), "world"
    for k in range(n):
        axis, place = ((0, 1, 0), (0, 0, 1))[k % 2], (0, 0, 0.4 if k else 0)
        b.body(f"link{k}", parent, axis=axis, origin=place, mass=1.0 + k, com=(0.1, 0, 0.2),
               inertia=np.diag([0.02, 0.03, 0.01]))  # fmt: skip
        parent = f"link{k}"
    return b.robot()


@pytest.fixture(scope="module")
def pendulum() -> drevo.Robot:
    return arm(2)


@pytest.fixture(scope="module")
def leg() -> drevo.Robot:
    """A floating trunk with one leg of three joints."""
    b = drevo.Builder("leg")
    b.body("trunk", "world", joint="free", mass=5.0, com=(0.01, 0.02, 0.03), inertia=np.diag([0.1, 0.2, 0.15]))
    parent = "trunk"
    for k, axis in enumerate(((1, 0, 0), (0, 1, 0), (0, 1, 0))):
        b.body(f"leg{k}", parent, axis=axis, origin=(0, 0, -0.3 * (k > 1)), mass=0.5, com=(0, 0.01, -0.12),
               inertia=np.diag([0.004, 0.005, 0.002]))  # fmt: skip
        parent = f"leg{k}"
    return b.robot()


def small(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    """A cost of the efforts alone."""
    return 1e-4 * sum(x * x for x in tau)


def stepped(robot: drevo.Robot, s: Any, tau: Array, accelerations: Any = None) -> tuple[Array, Array]:
    """The motion of efforts by the robot's own functions."""
    move = accelerations or (lambda k, q, v, u: robot.forward_dynamics(q, v, u))
    q, v = [s.q[0]], [s.v[0]]
    for k, u in enumerate(tau):
        v.append(v[-1] + s.dt * move(k, q[-1], v[-1], u))
        q.append(robot.integrate(q[-1], s.dt * v[-1]))
    return np.array(q), np.array(v)


def test_a_linear_quadratic_problem_takes_one_step_and_gives_riccatis_gains() -> None:
    robot, N, w, r = table(), 40, np.array([3.0, 1.0, 0.2, 0.4]), np.array([0.1, 0.3])
    s = optimise(
        robot,
        lambda pose, q, v, tau, t: 0.5 * sum(a * x * x for a, x in zip([*w, *r], [*q, *v, *tau])),
        [1.0, -2.0], [0.5, 0.0], N, DT, terminal=lambda pose, q, v: sum(5.0 * x * x for x in (*q, *v)),
    )  # fmt: skip
    assert s.converged and s.iterations == 1 and list(s.lengths) == [1.0]
    M = np.linalg.inv(robot.mass_matrix(np.zeros(2)))
    A = np.block([[np.eye(2), DT * np.eye(2)], [np.zeros((2, 2)), np.eye(2)]])
    B = np.vstack([DT * DT * M, DT * M])
    Q, R, P = DT * np.diag(w), DT * np.diag(r), 10.0 * np.eye(4)
    x0 = np.array([1.0, -2.0, 0.5, 0.0])
    for k in range(N - 1, -1, -1):
        K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        assert np.abs(s.gains[k] - K).max() <= 1e-6 * np.abs(K).max()  # the least regularisation is 1e-9
    assert abs(s.cost - 0.5 * x0 @ P @ x0) <= 1e-9 * s.cost


def reach(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    """Squares, a term that is none, and weights that depend on the time."""
    return 0.01 * sum(x * x for x in tau) + 0.1 * (1.0 + t) * sum(x * x for x in v) + 0.3 * (1.0 - drevo.cos(q[0]))


def touch(pose: Any, q: Any, v: Any) -> Any:
    place = pose("link1")
    return 50.0 * sum((place[k][3] - x) ** 2 for k, x in enumerate((0.2, 0.0, 0.3))) + sum(x * x for x in v)


def total(robot: drevo.Robot, s: Any, tau: Array) -> float:
    """The cost of efforts, by poses and motions of the robot's functions."""
    q, v = stepped(robot, s, tau)

    def pose(link: str, x: Array) -> Any:
        return robot.pose(x, link)

    run = sum(s.dt * reach(None, *x, k * s.dt) for k, x in enumerate(zip(q, v, tau)))
    return float(run + touch(lambda link: pose(link, q[-1]), q[-1], v[-1]))


def gradient(robot: drevo.Robot, s: Any) -> Array:
    out = np.zeros_like(s.tau)
    for at in np.ndindex(*s.tau.shape):
        e = np.zeros_like(s.tau)
        e[at] = 1e-4
        out[at] = (total(robot, s, s.tau + e) - total(robot, s, s.tau - e)) / 2e-4
    return out


@pytest.mark.parametrize("hessian", ["gauss-newton", "exact"])
def test_nothing_is_left_to_gain(pendulum: drevo.Robot, hessian: str) -> None:
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, hessian=hessian)
    assert s.converged and s.gaps[-1] == 0.0 and (np.diff(s.history) <= 0.0).all()
    q, v = stepped(pendulum, s, s.tau)
    assert np.abs(q - s.q).max() <= 1e-12 and np.abs(v - s.v).max() <= 1e-11
    assert abs(total(pendulum, s, s.tau) - s.cost) <= 1e-10 * s.cost
    assert np.abs(gradient(pendulum, s)).max() <= 1e-5


def test_gaps_of_a_guess_are_closed(pendulum: drevo.Robot) -> None:
    guess = np.linspace([0.3, 0.4], [1.5, -1.0], 13)
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, guess={"q": guess})
    t = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch)
    assert s.gaps[0] > 1.0 and s.gaps[-1] == 0.0 and s.converged
    assert abs(s.cost - t.cost) <= 1e-6 * t.cost


def test_limits_of_efforts_hold_and_the_rest_is_least(pendulum: drevo.Robot) -> None:
    """At a bound the cost would fall beyond it; elsewhere its slope is zero (Karush, Kuhn, Tucker)."""
    low, high = np.array([-1.0, -2.0]), np.array([2.5, 0.3])
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, {"tau": (low, high)}, touch, tolerance=1e-13)
    assert s.converged and (s.tau >= low).all() and (s.tau <= high).all()
    slope, tight = gradient(pendulum, s), (s.tau == low) | (s.tau == high)
    assert 0 < tight.sum() < tight.size
    assert np.abs(slope[~tight]).max() <= 1e-5
    assert (np.where(s.tau == high, -slope, slope)[tight] >= -1e-6).all()
    assert (s.gains[(s.tau == low) | (s.tau == high)] == 0.0).all()


def test_a_list_of_two_limits_is_one_for_each_joint(pendulum: drevo.Robot) -> None:
    """As an array is; a tuple is a pair, and so are two rows."""
    low, high = limits_given(pendulum, {"tau": [3.0, 6.0]}).tau
    assert low.tolist() == [-3.0, -6.0] and high.tolist() == [3.0, 6.0]
    for pair in ((-1.0, 6.0), (-1.0, [6.0, 6.0]), np.array([[-1.0, -1.0], [6.0, 6.0]])):
        low, high = limits_given(pendulum, {"tau": pair}).tau
        assert low.tolist() == [-1.0, -1.0] and high.tolist() == [6.0, 6.0]


def test_limits_of_efforts_are_by_drive_too(leg: drevo.Robot) -> None:
    """As many numbers as there are drives, either side; the others are without."""
    n, driven = leg.nv, [leg.nv - 2, leg.nv - 1]
    for given, wanted in (
        ([3.0, 6.0], ([-3.0, -6.0], [3.0, 6.0])),
        (([-1.0, -2.0], 5.0), ([-1.0, -2.0], [5.0, 5.0])),
    ):
        low, high = limits_given(leg, {"tau": given}, driven).tau
        assert low.shape == high.shape == (n,)
        assert np.array_equal(low[driven], wanted[0]) and np.array_equal(high[driven], wanted[1])
    assert np.isinf(np.delete(low, driven)).all()
    with pytest.raises(drevo.InputError, match=rf"one number or \({n},\) or \(2,\)"):
        limits_given(leg, {"tau": [1.0] * (n + 1)}, driven)


def test_limits_of_states_hold(pendulum: drevo.Robot) -> None:
    """And the cost is the least that SciPy finds under them; from outside and from gaps too."""
    free = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch)
    most = 0.5 * np.abs(free.v).max()
    limits = {"v": most, "q": (-9.0, 0.4001)}
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, limits, touch)
    assert s.converged and np.abs(s.v).max() <= most + 1e-9 and s.q.max() <= 0.4001 + 1e-9

    def inside(tau: Array) -> Array:
        q, v = stepped(pendulum, s, tau.reshape(s.tau.shape))
        return np.concatenate([most - v[1:].ravel(), most + v[1:].ravel(), 0.4001 - q[1:].ravel()])

    found = minimize(lambda x: total(pendulum, s, x.reshape(s.tau.shape)), free.tau.ravel(), method="SLSQP",
                     constraints={"type": "ineq", "fun": inside}, options={"ftol": 1e-9})  # fmt: skip
    assert found.success and abs(found.fun - s.cost) <= 1e-5 * s.cost and s.cost > free.cost
    gaps = {"q": np.linspace([0.3, 0.4], [1.5, -1.0], 13)}
    far = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, limits, touch, guess=gaps)
    assert far.converged and abs(far.cost - s.cost) <= 1e-6 * s.cost
    outside = optimise(pendulum, reach, [0.3, 0.4], [0.0, 2.0 * most], 12, DT, {"v": most}, touch)
    assert outside.converged and np.abs(outside.v[1:]).max() <= most + 1e-9
    again = s.again([0.301, 0.399], [0.0, 0.1], iterations=20)
    assert again.converged and np.abs(again.v).max() <= most + 1e-9
    lost = optimise(
        pendulum, reach, [0.3, 0.4], [0.0, 9.0], 12, DT, {"v": most, "tau": 1e-3}, touch, iterations=20
    )
    assert not lost.converged and "the gaps between knots are" in lost.reason


def test_limits_of_a_floating_base(leg: drevo.Robot) -> None:
    """Its place is in world axes, its rates in its own."""
    q0 = leg.integrate(leg.neutral(), [0, 0, 0.55, 0, 0, 0.4, 0.0, 0.5, -0.9])

    def up(pose: Any, q: Any, v: Any) -> Any:
        return 5.0 * (q[2] - 0.7) ** 2 + 0.1 * sum(x * x for x in v)

    free = np.full(10, np.inf)
    high, low = free.copy(), -free
    high[2], low[0] = 0.56, -0.002
    s = optimise(leg, small, q0, np.zeros(9), 9, 0.02, {"q": (low, high)}, up, contacts=[FOOT])
    assert s.converged and s.iterations < 40 and 0.559 < s.q[:, 2].max() <= 0.56 + 1e-9
    assert -0.002 - 1e-9 <= s.q[:, 0].min() < -0.0015


def test_a_floating_base_is_expanded_on_its_tangent_space(leg: drevo.Robot) -> None:
    """The gains and the gradient see turns of the base: at the least, no effort's slope is left."""

    def cost(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        return 1e-3 * sum(x * x for x in tau) + 0.01 * sum(x * x for x in v)

    def end(pose: Any, q: Any, v: Any) -> Any:
        here = pose("trunk")
        return 20.0 * (here[0][2] ** 2 + here[1][2] ** 2) + 5.0 * sum(
            (x - y) ** 2 for x, y in zip(q[7:], (0, 1, -1))
        )

    q0 = leg.integrate(leg.neutral(), [0, 0, 1, 0.4, -0.3, 0.2, 0.1, 0.5, -0.8])
    s = optimise(leg, cost, q0, np.zeros(9), 8, DT, terminal=end)
    assert s.converged and s.tau[:, :6].any() == 0 and s.gains.shape == (8, 3, 18)

    def whole(tau: Array) -> float:
        q, v = stepped(leg, s, tau)
        run = sum(s.dt * cost(None, *x, 0.0) for x in zip(q, v, tau))
        return float(run + end(lambda link: leg.pose(q[-1], link), q[-1], v[-1]))

    assert abs(whole(s.tau) - s.cost) <= 1e-9 * s.cost
    for k in (0, 3, 7):
        for j in (6, 7, 8):
            e = np.zeros_like(s.tau)
            e[k, j] = 1e-4
            assert abs(whole(s.tau + e) - whole(s.tau - e)) / 2e-4 <= 1e-5


def test_phases_of_contact(leg: drevo.Robot) -> None:
    """Held where a phase says so: the motion is that of constrained dynamics, then of free flight."""
    q0 = leg.integrate(leg.neutral(), [0, 0, 0.55, 0, 0, 0, 0.0, 0.5, -0.9])

    def up(pose: Any, q: Any, v: Any) -> Any:
        return 5.0 * (v[2] - 1.0) ** 2 + 0.1 * sum(x * x for x in v[3:])

    s = optimise(leg, small, q0, np.zeros(9), 14, 0.02, terminal=up, contacts=[(9, [FOOT]), (5, [])])
    assert s.converged and s.v[9, 2] > 0.5

    def move(k: int, q: Array, v: Array, u: Array) -> Array:
        return leg.constrained_dynamics(q, v, u, contacts=[FOOT]).a if k < 9 else leg.forward_dynamics(q, v, u)

    q, v = stepped(leg, s, s.tau, move)
    assert np.abs(q - s.q).max() <= 1e-9 and np.abs(v - s.v).max() <= 1e-8


def test_again_from_other_states_and_as_a_law(pendulum: drevo.Robot) -> None:
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch)
    now = s
    for _ in range(3):
        now = now.shifted()
        assert np.allclose(now.t[0], now.t0)
        now = now.again(now.q[0] + 1e-3, now.v[0], iterations=5)
        assert now.gaps[-1] == 0.0
    moved = simulate(pendulum, s.q[0] + 1e-2, s.v[0], s.law(), duration=0.6, every=10)
    plain = simulate(
        pendulum, s.q[0] + 1e-2, s.v[0], lambda t, q, v: s.tau[min(int(t / DT), 11)], duration=0.6, every=10
    )
    assert np.abs(moved.q[-1] - s.q[-1]).max() < np.abs(plain.q[-1] - s.q[-1]).max()
    assert "least cost" in s.svg() and "converged" in repr(s)


def test_of_several_starts_the_best_is_given(pendulum: drevo.Robot) -> None:
    rng = np.random.default_rng(1)
    starts = [None, {"q": np.cumsum(rng.normal(size=(13, 2)), 0)}, rng.normal(size=(12, 2))]
    s = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, starts=starts)
    alone = [optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, guess=x) for x in starts]
    assert s.converged and s.cost <= min(x.cost for x in alone if x.converged) * (1.0 + 1e-9)
    side_by_side = optimise(
        pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, starts=starts, threads=2
    )
    assert np.array_equal(side_by_side.tau, s.tau)
    costs = sorted(x.cost for x in alone)
    assert np.allclose([x.cost for x in (s, *s.others)], costs) and len(side_by_side.others) == 2


BAD: list[tuple[dict[str, Any], str]] = [
    ({"cost": lambda pose, q, v, tau, t: [q[0], q[1]]}, "not one scalar"),
    ({"cost": lambda pose, q, v, tau, t: float("nan") * q[0]}, "cost"),
    ({"cost": lambda pose, q, v, tau, t: pose("hand")[0][3]}, "link 'hand' is not in the robot"),
    ({"cost": lambda pose, q, v, tau, t: 1.0 if q[0] > 0 else 2.0}, "cannot"),
    ({"cost": "energy"}, "must be a function as cost"),
    ({"terminal": 3.0}, "must be a function as terminal"),
    ({"horizon": 0}, "horizon is 0"),
    ({"dt": -0.1}, "dt is -0.1"),
    ({"q0": [0.0]}, "q0"),
    ({"v0": [0.0, np.nan]}, "v0"),
    ({"limits": {"tau": (1.0, -1.0)}}, "reversed at index 0"),
    ({"limits": {"tau": [1.0, 2.0, 3.0]}}, "has shape"),
    ({"limits": {"tau": [-1.0, 2.0, 3.0]}}, "tuple (lower, upper)"),
    ({"limits": {"torque": 1.0}}, "are not known"),
    ({"limits": {"q": np.nan}}, "NaN"),
    ({"contacts": [{"link": "toe", "point": (0, 0, 0)}]}, "link 'toe' is not in robot"),
    ({"contacts": [(3, []), (4, [])]}, "take 7 knots, the horizon has 5"),
    ({"contacts": [{"link": "link1", "point": (0, 0, 0), "rows": 6}]}, "2 of 6 rows are independent"),
    ({"actuated": []}, "no joint has a drive"),
    ({"actuated": ["knee"]}, "no moving joint"),
    ({"guess": np.zeros((4, 2))}, "guess"),
    ({"guess": {"x": 1.0}}, "it may have"),
    ({"hessian": "none"}, "hessian"),
    ({"iterations": 0}, "iterations"),
]


@pytest.mark.parametrize("change,sentence", BAD, ids=[f"{k}-{'-'.join(c)}" for k, (c, _) in enumerate(BAD)])
def test_misuse_is_told_in_one_sentence(pendulum: drevo.Robot, change: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"cost": reach, "q0": [0.0, 0.0], "v0": [0.0, 0.0], "horizon": 5, "dt": DT}
    with pytest.raises((InputError, NumericsError, drevo.DrevoError)) as told:
        optimise(pendulum, **(given | change))
    assert sentence in str(told.value) and "\n" not in str(told.value)


def test_what_does_not_converge_says_so(pendulum: drevo.Robot) -> None:
    few = optimise(pendulum, reach, [0.3, 0.4], [0.0, 0.1], 12, DT, terminal=touch, iterations=1)
    assert not few.converged and few.reason == "stopped after 1 iterations"

    def endless(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        return -sum(x * x for x in tau)

    lost = optimise(pendulum, endless, [0.3, 0.4], [0.0, 0.1], 5, DT, iterations=20)
    assert not lost.converged and any(x in lost.reason for x in ("diverged", "not positive"))


def test_contacts_that_begin_strike(leg: drevo.Robot) -> None:
    """The velocity is projected where a phase adds a contact; nothing is left to gain there."""
    q0 = leg.integrate(leg.neutral(), [0, 0, 0.56, 0.05, 0, 0, 0.0, 0.5, -0.9])

    def cost(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        return 1e-2 * sum(x * x for x in tau) + 0.1 * sum(x * x for x in v)

    def end(pose: Any, q: Any, v: Any) -> Any:
        return 5.0 * (v[2] - 0.5) ** 2 + 0.1 * sum(x * x for x in v[3:])

    phases = [(4, []), (5, [FOOT])]
    s = optimise(leg, cost, q0, np.zeros(9), 9, 0.02, terminal=end, contacts=phases, tolerance=1e-13)
    assert s.converged

    def total_of(tau: Array) -> float:
        q, v, out = s.q[0], s.v[0], 0.0
        for k, u in enumerate(tau):
            out += s.dt * cost(None, q, v, u, 0.0)
            now = leg.impact(q, v, contacts=[FOOT]).v if k == 4 else v
            held = (
                leg.constrained_dynamics(q, now, u, contacts=[FOOT]).a
                if k >= 4
                else leg.forward_dynamics(q, now, u)
            )
            v = now + s.dt * held
            q = leg.integrate(q, s.dt * v)
        return float(out + end(None, q, v))

    assert abs(total_of(s.tau) - s.cost) <= 1e-9 * s.cost
    for k in (0, 3, 4, 8):
        for j in (6, 7, 8):
            e = np.zeros_like(s.tau)
            e[k, j] = 1e-5
            assert abs(total_of(s.tau + e) - total_of(s.tau - e)) / 2e-5 <= 1e-4
