"""Linear models as values, continuous and discrete, and the regulators of each; dead points; refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from kovalchuk_cases import worst
from scipy.linalg import expm, solve_discrete_are
from strategies import EVERY, robot
from test_control import acrobot
from test_linearise import at_rest, four_bar

import drevo
from drevo.constraint import values as constraint
from drevo.control import Linearisation, LinearModel, linearise, lqr, track, tracking_lqr
from drevo.robot.face import Robot


def puma() -> Linearisation:
    r = drevo.load("puma560")
    q = np.array([0.3, -0.6, 0.4, 0.2, 0.7, 0.1])
    return r.linearise(q, np.zeros(6), r.gravity(q))


@pytest.mark.parametrize("dt", [1e-3, 0.01, 0.1])
def test_lqr_of_a_discrete_model(dt: float) -> None:
    """The discrete equation: gains and cost of SciPy's, poles within the unit circle, the least sum of costs."""
    L = puma()
    Ld = L.discretised(dt)
    assert L.dt is None and Ld.dt == dt and Ld.states == L.states and Ld.rank == L.rank == 0
    Q, R = np.diag(np.linspace(1, 12, 12)), np.diag(np.linspace(0.1, 0.6, 6))
    got = lqr(Ld, Q, R)
    P = solve_discrete_are(Ld.A, Ld.B, Q, R)
    assert worst(got.P, P) <= 1e-9
    assert worst(got.K, np.linalg.solve(R + Ld.B.T @ P @ Ld.B, Ld.B.T @ P @ Ld.A)) <= 1e-9
    z = np.linalg.eigvals(Ld.A - Ld.B @ got.K)
    assert np.abs(z).max() < 1.0 and worst(np.sort(np.abs(z)), np.sort(np.abs(got.poles))) <= 1e-9
    assert lqr(L, Q, R).poles.real.max() < 0.0


def test_discrete_lqr_under_constraints() -> None:
    """The four-bar in steps: the gain of the reduced model, on the full one."""
    r, held = four_bar()
    q, v = at_rest(r, held)
    tau = r.constrained_inverse_dynamics(q, v, np.zeros(3), constraints=held, actuated=[r.joint_names[0]]).tau
    L = linearise(r, q, v, tau, constraints=held, actuated=[r.joint_names[0]])
    Ld = L.discretised(0.01)
    made = lqr(Ld, np.ones(6), 0.1)
    small = Ld.reduced
    assert (Ld.rank, small.dt, small.basis.shape) == (2, 0.01, (6, 2))
    assert worst(small.A, L.reduced.discretised(0.01).A) <= 1e-9
    assert np.abs(np.linalg.eigvals(small.A - small.B @ made.K @ small.basis)).max() < 1.0
    assert worst(small.C @ np.ones(2), small.basis @ np.ones(2)) == 0.0  # the output is the full state


def test_modes_of_a_discrete_model() -> None:
    """The same frequencies and damping as of the continuous one."""
    A = np.array([[0, 1, 0], [-9.0, -0.6, 0], [0, 0, -2.0]])
    model = LinearModel(A, np.ones((3, 1)))
    now, sampled = model.modes(), model.discretised(0.05).modes()
    assert worst(now.frequencies, sampled.frequencies) <= 1e-9 and worst(now.damping, sampled.damping) <= 1e-9
    gone = LinearModel(np.zeros((2, 2)), np.eye(2), dt=0.1).modes()
    assert np.isinf(gone.frequencies).all() and (gone.damping == 1.0).all()
    assert worst(model.discretised(0.05).A, expm(A * 0.05)) <= 1e-15


def test_names_and_values() -> None:
    """A free body that carries others: names of states and inputs; arrays that cannot be written to; outputs."""
    r = Robot(robot(3, EVERY, 4, "floating", welds=0.0))
    L = linearise(r, r.neutral(), np.zeros(r.nv), np.zeros(r.nv))
    assert len(set(L.states)) == 2 * r.nv and len(L.inputs) == L.B.shape[1] == L.driven.sum()
    assert L.states[0].endswith(".q[0]") and L.states[r.nv].endswith(".v[0]") and L.inputs[0].endswith("tau")
    assert (np.eye(2 * r.nv) == L.C).all() and not L.D.any() and L.outputs == L.states
    with pytest.raises(ValueError, match="read-only"):
        L.A[0, 0] = 1.0
    with pytest.raises(FrozenInstanceError):
        L.dt = 1.0  # type: ignore[misc]
    seen = LinearModel([[0, 1], [0, 0]], [[0], [1]], C=[[1, 0]], states=("x", "v"), outputs=("x",))
    assert seen.discretised(0.1).outputs == ("x",) and seen.discretised(0.1).C.shape == (1, 2)


def test_tracking_in_steps() -> None:
    """Discrete models give the gains of the continuous ones that they come from; the two never mix."""
    L = puma()
    Ld = L.discretised(0.01)
    assert worst(tracking_lqr([L] * 5, 0.01, 1.0, 1.0), tracking_lqr([Ld] * 5, 0.01, 1.0, 1.0)) <= 1e-12
    for models in ([L, Ld], [Ld] * 2):
        with pytest.raises(drevo.InputError, match="give continuous"):
            tracking_lqr(models, 0.02 if models[0] is Ld else 0.01, 1.0, 1.0)
    with pytest.raises(drevo.InputError, match="discretise the continuous one"):
        Ld.discretised(0.01)


# -- dead points -------------------------------------------------------------------------------------------


def linkage(*lengths: float) -> tuple[Robot, Any]:
    """A four-bar of these bars, the last is the ground."""
    b, parent = drevo.Builder("linkage"), "world"
    for i, x in enumerate(lengths[:3]):
        b.body(f"bar{i}", parent, axis=(0, 1, 0), origin=(lengths[i - 1] if i else 0, 0, 0), mass=1.0,
               com=(x / 2, 0, 0), inertia=np.eye(3) * 0.02)  # fmt: skip
        parent = f"bar{i}"
    return b.robot(), constraint.point_to_point("bar2", (lengths[2], 0, 0), "world", (lengths[3], 0, 0))


def test_dead_point() -> None:
    """A parallelogram laid flat may go on as one or as the other linkage; beside it there is one linear model."""
    r, pin = linkage(0.3, 0.6, 0.3, 0.6)
    with pytest.raises(drevo.NumericsError, match=r"dead point.* 1 of 3 rows.*point_to_point\(bar2, world\)\[0\]"):
        r.linearise([0, 0, -np.pi], np.zeros(3), np.zeros(3), constraints=[pin])
    q, v = drevo.constraint.hold(r, [0.4, -0.4, -np.pi + 0.4], np.zeros(3), constraints=[pin])
    L = r.linearise(q, v, np.zeros(3), constraints=[pin])
    assert L.rank == 2 and L.reduced.A.shape == (2, 2)
    near, v = drevo.constraint.hold(r, [1e-8, -1e-8, -np.pi + 1e-8], np.zeros(3), constraints=[pin])
    with pytest.raises(drevo.NumericsError, match="dead point"):
        r.linearise(near, v, np.zeros(3), constraints=[pin])


def test_rows_that_always_depend() -> None:
    """A planar loop closed by a weld, three pins at two points, a spatial linkage with one freedom too many: no
    dead points."""
    r, pin = linkage(0.3, 0.6, 0.3, 0.6)
    q, v = drevo.constraint.hold(r, [0.4, -0.4, -np.pi + 0.4], np.zeros(3), constraints=[pin])
    assert r.linearise(q, v, np.zeros(3), constraints=[pin, pin]).reduced.A.shape == (2, 2)
    r, pins, q = bennett()
    L = r.linearise(q, np.zeros(3), np.zeros(3), constraints=pins)
    assert (L.rank, L.reduced.A.shape) == (2, (2, 2))


def bennett() -> tuple[Robot, list[Any], Any]:
    """Bennett's linkage of four skew axes, a / sin(alpha) = b / sin(beta): it moves, against its count of rows."""
    alpha, beta, a = 0.5, 1.1, 0.4
    size, twist = (a, a * np.sin(beta) / np.sin(alpha)), (alpha, beta)
    b, parent, place, turn = drevo.Builder("bennett"), "world", (0.0, 0.0, 0.0), np.eye(3)
    for i in range(3):
        b.body(f"bar{i}", parent, axis=(0, 0, 1), origin=place, rotation=turn, mass=1.0, com=(0.1, 0.02, 0.03),
               inertia=np.eye(3) * 0.02)  # fmt: skip
        parent, place, turn = f"bar{i}", (size[i % 2], 0.0, 0.0), about_x(twist[i % 2])
    r = b.robot()
    ends = [(np.array(place) + k * turn[:, 2], (-size[1], 0, 0) + k * about_x(-beta)[:, 2]) for k in (0, 1)]
    pins = [constraint.point_to_point("bar2", mine, "world", theirs) for mine, theirs in ends]
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    first = 0.8
    q = np.array([first, 2 * np.arctan(ratio / np.tan(first / 2)), -first])
    return r, pins, q


def about_x(angle: float) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


@pytest.mark.parametrize(
    ("name", "freedoms"), [("four-bar", 1), ("two-arm", 6), pytest.param("stewart", 6, marks=pytest.mark.nightly)]
)
def test_loops_of_the_documentation(name: str, freedoms: int) -> None:
    """As many motions as freedoms beside dead points."""
    r = drevo.load(name)
    L = r.linearise(r.neutral(), np.zeros(r.nv), np.zeros(r.nv))
    assert L.reduced.A.shape == (2 * freedoms,) * 2


def test_equal_bars() -> None:
    """A slider-crank of equal bars, folded, is at a dead point."""
    r = slider_crank(0.3, 0.3)
    q = r.assemble([0.7, -1.4, 0.0])
    assert r.linearise(q, np.zeros(3), np.zeros(3)).reduced.A.shape == (2, 2)
    with pytest.raises(drevo.NumericsError, match=r"dead point.*pointtopoint|dead point.*point_to_point"):
        r.linearise([np.pi / 2, -np.pi, -0.6], np.zeros(3), np.zeros(3))


def slider_crank(crank: float, rod: float) -> Robot:
    b = drevo.Builder("slider-crank")
    turn = {"axis": (0, 1, 0), "mass": 1.0, "inertia": np.eye(3) * 0.03}
    b.body("crank", com=(crank / 2, 0, 0), **turn)
    b.body("rod", "crank", origin=(crank, 0, 0), com=(rod / 2, 0, 0), **turn)
    b.body("piston", joint="prismatic", axis=(1, 0, 0), origin=(crank + rod, 0, 0), mass=2.0)
    b.loop("point", "rod", (rod, 0, 0), "piston", (0, 0, 0))
    return b.robot()


def test_drives_without_leverage() -> None:
    """The piston cannot turn a crank that points at it: the regulator says which motion it does not reach."""
    r = slider_crank(0.2, 0.6)
    L = r.linearise(np.zeros(3), np.zeros(3), np.zeros(3), actuated=["piston_joint"])
    with pytest.raises(drevo.NumericsError, match=r"do not reach the motion of (crank|rod)_joint"):
        lqr(L, 1.0, 1.0)
    q = r.assemble([0.3, -0.3, 0.0], keep=["crank_joint"])
    assert lqr(r.linearise(q, np.zeros(3), np.zeros(3), actuated=["piston_joint"]), 1.0, 1.0).K.shape == (1, 6)


def test_off_the_constraints() -> None:
    """A and B are those of the equations anywhere; motions are left at a state that keeps the constraints only."""
    r, pin = linkage(0.3, 0.7, 0.5, 0.6)
    L = r.linearise([1.2, -1.0, -1.6], [0.1, 0.2, 0.3], np.zeros(3), constraints=[pin])
    for what in (lambda: L.reduced, lambda: lqr(L, 1.0, 1.0), lambda: L.discretised(0.1).reduced):
        with pytest.raises(drevo.NumericsError, match=r"is off by .*drevo\.constraint\.hold"):
            what()
    q, _ = drevo.constraint.hold(r, [1.2, -1.0, -1.6], np.zeros(3), constraints=[pin])
    with pytest.raises(drevo.NumericsError, match="moves at"):
        _ = r.linearise(q, [0.1, 0.2, 0.3], np.zeros(3), constraints=[pin]).reduced


# -- refusals ----------------------------------------------------------------------------------------------

WEIGHTS = [
    ({"R": 0.0}, "R must be positive definite, its least eigenvalue is 0"),
    ({"R": -1.0}, "R must be positive definite, its least eigenvalue is -1"),
    ({"R": np.ones((2, 2))}, "R must be positive definite"),
    ({"R": [1.0, 0.0]}, "R must be positive definite"),
    ({"Q": -1.0}, "Q must not be negative"),
    ({"Q": np.diag([1.0, 1.0, 1.0, -1e-3])}, "Q must not be negative, its least eigenvalue is -0.001"),
    ({"Q": np.arange(16.0).reshape(4, 4)}, "Q is not symmetric, Q.0, 3. is 3 and Q.3, 0. 12"),
    ({"Q": np.ones(3)}, "Q has shape"),
    ({"R": np.ones((3, 3))}, "R has shape"),
    ({"Q": np.nan}, "Q holds a value that is not finite"),
    ({"R": np.inf}, "R holds a value that is not finite"),
    ({"Q": 1j}, "Q must hold real numbers"),
    ({"Q": "one"}, "Q must hold real numbers"),
    ({"Q": None}, "Q must hold real numbers"),
    ({"Q": [[1], [1, 2]]}, "Q is no array of numbers"),
]


@pytest.mark.parametrize(("given", "told"), WEIGHTS)
def test_weights(given: dict[str, Any], told: str) -> None:
    """Weights that are none: which, and why; of both kinds of model, and along a motion."""
    r = acrobot()
    L = r.linearise(np.zeros(2), np.zeros(2), np.zeros(2))
    for call in (lqr, lambda m, Q, R: tracking_lqr([m], 0.01, Q, R)):
        for model in (L, L.discretised(0.01)):
            with pytest.raises(drevo.DrevoError, match=told):
                call(model, **{"Q": 1.0, "R": 1.0, **given})


def test_what_is_no_model() -> None:
    """A robot in place of a model, a model without inputs, steps that are none, matrices that do not fit."""
    r = acrobot()
    rest = np.zeros(2)
    with pytest.raises(drevo.InputError, match=r"a linear model is needed, .*not Robot"):
        lqr(r, 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(drevo.InputError, match="no inputs"):
        lqr(r.linearise(rest, rest, rest, actuated=[]), 1.0, 1.0)
    with pytest.raises(drevo.InputError, match="takes a robot"):
        linearise("acrobot", rest, rest, rest)  # type: ignore[arg-type]
    L = r.linearise(rest, rest, rest)
    for dt in (np.nan, -1.0, 0.0, np.inf, None, "0.1", True, 1j, [0.1]):
        with pytest.raises(drevo.InputError, match="positive number of seconds"):
            L.discretised(dt)  # type: ignore[arg-type]
        with pytest.raises(drevo.InputError, match="positive number of seconds"):
            track(r, dt, np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((3, 2)), 1.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(drevo.NumericsError, match="grows beyond all numbers"):
        L.discretised(1e6)
    for x in (
        {"q": [np.nan, 0]},
        {"v": [1j, 0]},
        {"tau": ["a", 0]},
        {"t": np.inf},
        {"q": None},
    ):
        with pytest.raises(drevo.DrevoError, match=f"linearise: {next(iter(x))} "):
            r.linearise(**{"q": rest, "v": rest, "tau": rest, **x})
    for A, B in (
        (np.ones((2, 3)), np.ones((2, 1))),
        (np.eye(2), np.ones(2)),
        (np.eye(2) * np.nan, np.ones((2, 1))),
    ):
        with pytest.raises(drevo.DrevoError, match="linear model: "):
            LinearModel(A, B)
    with pytest.raises(drevo.InputError, match="inputs must be 1 different names"):
        LinearModel(np.eye(2), np.ones((2, 1)), inputs=("a", "a"))


def test_why_nothing_steadies() -> None:
    """The motion that is out of reach, or that is not weighted, by name."""
    A = np.diag([1.0, -2.0])
    with pytest.raises(drevo.NumericsError, match=r"do not reach the motion of x0 with the eigenvalue 1"):
        lqr(LinearModel(A, [[0.0], [1.0]]), 1.0, 1.0)
    with pytest.raises(drevo.NumericsError, match="do not reach the motion of x0"):
        lqr(LinearModel(A, [[0.0], [1.0]]).discretised(0.1), 1.0, 1.0)
    with pytest.raises(drevo.NumericsError, match="Q gives no weight to the motion of x0"):
        lqr(LinearModel(np.diag([0.0, -2.0]), [[1.0], [1.0]]), [0.0, 1.0], 1.0)
