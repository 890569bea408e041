"""Regulators and the law (3.1) in simulation, on the full equations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import Array, worst
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from test_khalil import published
from test_linearise import at_rest, four_bar

import drevo
from drevo.constraint import values as constraint
from drevo.control import linearise, lqr, stabilise, track
from drevo.mechanics.scalar import dot
from drevo.robot.face import Robot
from drevo.simulate import Control, simulate

# -- regulators --------------------------------------------------------------------------------------------


def acrobot(lower: float = 2.0) -> Robot:
    """Two rods, upright at zero; only the second joint is driven."""
    b = drevo.Builder("acrobot")
    for name, parent, z, length in (("upper", "world", 0.0, 1.0), ("lower", "upper", 1.0, lower)):
        b.body(name, parent, axis=(0, 1, 0), origin=(0, 0, z), mass=1.0, com=(0, 0, length / 2),
               inertia=np.diag([length**2 / 12, length**2 / 12, 1e-3]))  # fmt: skip
    return b.robot()


@pytest.mark.parametrize(("lower", "start"), [(2.0, [5.0, 0.0]), (1.0, [0.0, 5.0])])
def test_lqr_of_an_acrobot(lower: float, start: list[float]) -> None:
    """From 5 degrees it stands still after 10 s, one motor, the full equations.

    With equal rods no linear law lifts a lean of the whole by more than 2 degrees; the elbow's is within reach.
    """
    r = acrobot(lower)
    L = linearise(r, np.zeros(2), np.zeros(2), np.zeros(2), actuated=["lower_joint"])
    assert L.B.shape == (4, 1)
    with_gain = lqr(L, [1.0, 1.0, 1.0, 1.0], [0.01])
    assert with_gain.poles.real.max() < 0.0
    table = simulate(r, np.deg2rad(start), tau=Control(lambda t, q, v: [0.0, -dot(with_gain.K[0], [*q, *v])]),
                     duration=10.0, dt=1e-3, every=100)  # fmt: skip
    assert np.abs(table.q[-1]).max() < 1e-3 and np.abs(table.v[-1]).max() < 1e-3


def test_lqr_under_constraints() -> None:
    """A four-bar held up by one drive: the gain of the reduced model steadies the constrained dynamics."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = drevo.constraint.constrained_inverse_dynamics(
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


def swing(n: int, seconds: float, dt: float) -> tuple[Array, Array, Array]:
    """A smooth motion of n joints there and back, at rest at both ends."""
    t = np.linspace(0.0, seconds, round(seconds / dt) + 1)[:, None]
    far, w = np.resize([0.8, -0.5, 0.6, 0.4, -0.3, 0.5, 0.7], n), 2 * np.pi / seconds
    return far * (1 - np.cos(w * t)) / 2, far * w * np.sin(w * t) / 2, far * w * w * np.cos(w * t) / 2


def test_tracking_a_panda() -> None:
    """3 s of a Panda whose true masses are 10 % more than its model's, steps of 2 ms: at most 10 mrad rms."""
    r = drevo.Robot(published("panda.urdf", "fixed"))
    n, dt, middle = r.nv, 0.02, np.resize([0.0, -0.4, 0.0, -1.8, 0.0, 1.5, 0.0], r.nv)
    q, v, a = swing(n, 3.0, dt)
    law = track(r, dt, q + middle, v, a, [1e5] * n + [1e2] * n, np.full(n, 1e-3))
    table = simulate(heavier(r, 1.1), q[0] + middle, v[0], law, duration=3.0, dt=2e-3, every=10)
    assert np.sqrt(np.mean(np.square(table.q - middle - q))) <= 0.010
    exact = simulate(r, q[0] + middle, v[0], law, duration=1.0, dt=2e-3, every=10)
    assert np.abs(exact.q - middle - q[:51]).max() <= 1e-3  # what interpolation between the samples leaves
    batch = law(0.5, np.stack([q[50], q[51]]) + middle, np.stack([v[50], v[51]]))
    assert batch.shape == (2, n) and worst(batch[0], law(0.5, q[50] + middle, v[50])) <= 1e-12


def test_track_refusals() -> None:
    """Samples of the wrong shape, and a motion that asks effort of a joint without a drive."""
    r = acrobot()
    q = np.linspace(0.0, 0.5, 5)[:, None] * [1.0, 1.0]
    with pytest.raises(drevo.InputError, match="v has shape"):
        track(r, 0.1, q, q[:, :1], q, 1.0, 1.0)
    with pytest.raises(drevo.InputError, match="joint without a drive"):
        track(r, 0.1, q, 0 * q, 0 * q, 1.0, 1.0, actuated=["lower_joint"])


def heavier(r: Robot, factor: float) -> Robot:
    """The same robot with every mass and inertia scaled."""
    links = []
    for link in r.model.links:
        i = link.inertial
        if i is not None:
            tensor = tuple(tuple(x * factor for x in row) for row in i.tensor)
            i = replace(i, mass=i.mass * factor, tensor=tensor)
        links.append(replace(link, inertial=i))
    return Robot(replace(r.model, links=tuple(links)))


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
    return [T[0][3] - 0.5 - 0.05 * drevo.sin(2.0 * t), T[1][3] - 0.2, T[2][3] - 0.3 - 0.1 * t]


def outputs(r: Robot, held: Any, q: Array, v: Array, t: Array) -> Array:
    from drevo.constraint.terms import constraint_terms

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
    law = stabilise(r, held, stiffness=G0, damping=G1, v=lambda t, q, v: -2.0 * v)
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
    qs, vs = closed(r, stabilise(r, held, stiffness=4.0, damping=5.0, v=lambda t, q, v: -2.0 * v), q, v, times)
    y = outputs(r, held, qs, vs, times)
    block = np.kron(np.array([[0, 1], [-4.0, -5.0]]), np.eye(3))
    assert worst(y, np.array([expm(block * t) @ y[0] for t in times])) <= 1e-9

    def path(pose: Any, q: Any, t: Any) -> list[Any]:
        return [x - 0.3 * drevo.sin(t) for x in q]

    law, t, speed = stabilise(r, constraint.function(path, 6), stiffness=4.0, damping=5.0), 0.7, np.full(6, 0.2)
    wish = -0.3 * np.sin(t) - 5.0 * (speed - 0.3 * np.cos(t)) - 4.0 * (q - 0.3 * np.sin(t))
    assert worst(law(t, q, speed), r.inverse_dynamics(q, speed, wish)) <= 1e-12


def test_compiled_into_the_motion() -> None:
    """The law over scalars gives the same efforts, and the closed loop runs in machine code."""
    r = drevo.load("puma560")
    held = constraint.point_on_plane(r.link_names[-1], (0, 0, 0), (0.2, 0.1, 1), offset=0.2)
    q, v = np.array([0.3, -0.6, 0.4, 0.2, 0.7, 0.1]), np.zeros(6)
    law = stabilise(r, held, stiffness=4.0, damping=5.0, v=lambda t, q, v: -2.0 * v)
    assert worst(np.array(law.over_scalars(0.0, list(q), list(v))), law(0.0, q, v)) <= 1e-12
    table = simulate(r, q, v, Control(law.over_scalars), duration=3.0, dt=1e-3, every=1000)
    y = outputs(r, held, table.q, table.v, table.t)
    block = np.array([[0.0, 1.0], [-4.0, -5.0]])
    assert worst(y, np.array([expm(block * t) @ y[0] for t in table.t])) <= 1e-9


def test_lost_rank() -> None:
    """Singular values take over where the rows become dependent, in a batch beside a regular state; m > n."""
    r = two_bars()
    tip = constraint.point_to_point("lower", (0, 0, -1), "world", (0.2, 0, -1.5), rows=((1, 0, 0), (0, 0, 1)))
    law = stabilise(r, tip, stiffness=4.0, damping=5.0)
    q, v = np.array([[0.3, 0.8], [0.3, 0.0]]), np.array([[0.1, -0.2], [0.1, -0.2]])  # the second is stretched out
    tau = law(0.0, q, v)
    assert worst(tau, law.by_singular_values(0.0, q, v, np.zeros((2, 2)))) <= 1e-9 and np.all(np.isfinite(tau))
    over = constraint.function(lambda pose, q, t: [q[0] - 0.1, q[1] - 0.2, q[0] + q[1] - 0.3], 3)
    a = r.forward_dynamics(q[0], v[0], stabilise(r, over, stiffness=4.0, damping=5.0)(0.0, q[0], v[0]))
    assert worst(a, -4.0 * (q[0] - [0.1, 0.2]) - 5.0 * v[0]) <= 1e-9


def test_gains() -> None:
    """Gains that do not decay, of the wrong size, and loops: one sentence each."""
    r = drevo.load("puma560")
    held = constraint.point_on_plane(r.link_names[-1], (0, 0, 0), (0, 0, 1))
    with pytest.raises(drevo.InputError, match="does not decay"):
        stabilise(r, held, stiffness=-1.0, damping=2.0)
    with pytest.raises(drevo.InputError, match="does not decay"):
        stabilise(r, held, stiffness=1.0, damping=0.0)
    with pytest.raises(drevo.InputError, match="damping has shape"):
        stabilise(r, held, stiffness=1.0, damping=np.ones((2, 2)))
    with pytest.raises(drevo.InputError, match="no constraint"):
        stabilise(r, [], stiffness=1.0, damping=1.0)
    with pytest.raises(drevo.InputError, match="no rotation to keep"):
        stabilise(r, constraint.weld(r.link_names[-1], (0, 0, 0), "world", (0, 0, 0)), stiffness=1.0, damping=1.0)


def two_bars() -> Robot:
    b = drevo.Builder("two bars")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        b.body(name, parent, axis=(0, 1, 0), origin=(0, 0, 0 if parent == "world" else -1.0), mass=1.0,
               com=(0, 0, -0.5), inertia=np.eye(3) * 0.1)  # fmt: skip
    return b.robot()


def held_at(x: float, z: float, *rows: Any) -> Any:
    """The tip of the lower bar at a point of the plane."""
    return constraint.point_to_point("lower", (0, 0, -1), "world", (x, 0, z), rows=rows or ((1, 0, 0), (0, 0, 1)))


def test_regularisation() -> None:
    """Rows that repeat others under a compiled law; the rank that is said; what leaves."""
    r = drevo.load("puma560")
    q, rest = np.array([0.3, -0.6, 0.4, 0.2, 0.7, 0.1]), np.zeros(6)
    plane = constraint.point_on_plane("link6", (0, 0, 0), (0, 0, 1), offset=0.2)
    twice = stabilise(r, [plane, plane], stiffness=100.0, damping=20.0, regularisation=1e-3)
    rank, condition = twice.rank(0.0, q, rest)
    once = stabilise(r, plane, stiffness=100.0, damping=20.0)
    assert rank == 1 and condition == np.inf and once.rank(0.0, q, rest) == (1, 1.0)
    table = simulate(r, q, tau=Control(twice), duration=4.0, every=100)
    assert abs(r.pose(table.q[-1], "link6")[2, 3] - 0.2) <= 1e-3
    assert worst(twice(0.0, q, rest), twice.by_singular_values(0.0, q, rest, rest)) <= 1e-9
    assert worst(twice.write_out().evaluate(t=[0.0], q=q, v=rest), twice(0.0, q, rest)) <= 1e-9
    with pytest.raises(drevo.InputError, match="regularisation is -1; it must be a number from 0"):
        stabilise(r, plane, stiffness=100.0, damping=20.0, regularisation=-1)


@pytest.mark.parametrize("method", ["rk4", "gauss4", "dop853"])
def test_an_unreachable_target(method: str) -> None:
    """The motion under a compiled law ends where the arm is stretched: rank, condition, row, how far it is off.

    So does one that begins there; the law on arrays goes on.
    """
    r = two_bars()
    far, near = (stabilise(r, held_at(*at), stiffness=4.0, damping=5.0) for at in ((3.0, 0.0), (0.2, -1.5)))
    starts = ((far, [0.3, 0.8]), (far, [[0.3, 0.8], [-1.0, -0.5]]), (near, [0.3, 0.0]), (near, [0.3, 1e-9]))
    told = r"at t = .*lose rank \(rank . of 2, condition .*lower, world"
    for law, start in starts:
        with pytest.raises(drevo.NumericsError, match=told):
            simulate(r, start, tau=Control(law), duration=3.0, method=method)
    if method == "rk4":
        assert np.abs(simulate(r, [0.3, 0.0], tau=near, duration=0.3).q).max() < 10.0


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [0.3, 0.2, -0.4]])
def test_a_plane_out_of_reach(start: list[float]) -> None:
    """One row, which has no condition: that it has all but vanished is what is said."""
    r = drevo.load("three-link")
    law = stabilise(
        r, constraint.point_on_plane("link3", (0, 0, 0), (1, 0, 0), offset=10.0), stiffness=4.0, damping=4.0
    )
    with pytest.raises(
        drevo.NumericsError, match=r"lose rank .*link3.* loses its hold.* is off by .*out of reach"
    ):
        simulate(r, start, tau=Control(law), duration=3.0)


@pytest.mark.parametrize("way", ["compiled law", "law", "feedback"])
def test_a_plane_a_hundred_metres_away(way: str) -> None:
    """The motion runs wild long before the arm is stretched: it is the target that is at fault, not the step."""
    r = drevo.load("three-link")
    plane = constraint.point_on_plane("link3", (0.1, 0.2, 0.0), (1, 0, 0), offset=100.0)
    law = stabilise(r, plane, stiffness=25.0, damping=10.0)
    given: dict[str, Any] = {"compiled law": {"tau": Control(law)}, "law": {"tau": law}}.get(way) or {
        "constraints": [plane], "stabilise": (10.0, 25.0)
    }  # fmt: skip
    for method in ("rk4",) if way == "law" else ("rk4", "gauss4", "dop853"):  # Python's law is slow
        with pytest.raises(drevo.NumericsError, match=r"^simulate: at t = .*out of reach") as e:
            simulate(r, [0.1, 0.2, 0.3], duration=0.5, method=method, **given)
        assert "off by 98" in str(e.value) and "too long" not in str(e.value)


def test_weak_directions() -> None:
    """Efforts are bounded and without a jump on the way to lost rank, where a direction is no longer followed."""
    r = two_bars()
    law = stabilise(r, held_at(0.2, -1.5), stiffness=4.0, damping=5.0)
    bends = np.geomspace(1e-9, 1e-1, 400)
    q = np.stack([np.full(400, 0.3), bends], -1)
    tau = law(0.0, q, np.zeros((400, 2)))
    assert np.abs(tau).max() < 1e4 and np.abs(np.diff(tau, axis=0)).max() < 0.1 * np.abs(tau).max()


def test_efforts_that_are_no_numbers_are_refused_in_a_batch_too() -> None:
    law = stabilise(
        drevo.load("three-link"),
        constraint.point_on_plane("link3", (0.1, 0.2, 0), (1, 0, 0)),
        stiffness=4.0,
        damping=5.0,
    )
    q, v = np.full((5, 3), 0.3), np.zeros((5, 3))
    v[2, 2] = 1e200
    for state in ((q, v), (q[2], v[2])):
        with pytest.raises(drevo.NumericsError, match=r"as large as 1e.200, and what is computed from it"):
            law(0.0, *state)


def test_a_function_without_a_value() -> None:
    """A root of what is negative: the row, by the law on arrays and in the motion."""
    r = two_bars()
    law = stabilise(
        r, constraint.function(lambda pose, q, t: [drevo.sqrt(q[0] - 1.0) - 0.3], 1), stiffness=4.0, damping=5.0
    )
    run = lambda: simulate(r, [0.3, 0.2], tau=Control(law), duration=1.0)  # noqa: E731
    for call in (lambda: law(0.0, [0.3, 0.2], [0, 0]), run):
        with pytest.raises(drevo.NumericsError, match=r"function\(<lambda>\)\[0\].* not finite"):
            call()


STABILISE = [
    ({"stiffness": np.nan}, "stiffness holds a value that is not finite"),
    ({"stiffness": 1j}, "stiffness must hold real numbers"),
    ({"damping": "stiff"}, "damping must hold real numbers"),
    ({"damping": [1.0, 2.0]}, r"damping has shape \(2,\)"),
    ({"stiffness": 0.0}, "does not decay"),
    ({"damping": -5.0}, "does not decay"),
    ({"v": np.zeros(3)}, r"v has shape \(3,\)"),
    ({"v": np.nan * np.zeros(6)}, "v holds a value that is not finite"),
    ({"constraints": 3}, "it is none|is none"),
    ({"constraints": []}, "no constraint"),
    ({"robot": "puma560"}, "takes a robot"),
]


@pytest.mark.parametrize(("given", "told"), STABILISE)
def test_what_stabilise_refuses(given: dict[str, Any], told: str) -> None:
    r = drevo.load("puma560")
    right = {"robot": r, "stiffness": 4.0, "damping": 5.0,
             "constraints": constraint.point_on_plane(r.link_names[-1], (0, 0, 0), (0, 0, 1))}  # fmt: skip
    with pytest.raises(drevo.DrevoError, match=told):
        stabilise(**{**right, **given})
    law = stabilise(**right)
    state = {"t": 0.0, "q": np.zeros(6), "v": np.zeros(6)}
    none = np.full(6, np.nan)
    for wrong in ({"t": np.nan}, {"q": np.zeros(5)}, {"q": none}, {"v": ["a"] * 6}, {"v": np.zeros((2, 3, 5))}):
        with pytest.raises(drevo.DrevoError, match=f"stabilise: {next(iter(wrong))} "):
            law(**{**state, **wrong})
    assert law(0.0, np.zeros(6), np.zeros((3, 6))).shape == (3, 6)
