"""Linear models in machine code beside the same solved on arrays: joints of every kind, contacts, batches."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from strategies import EVERY, all_kinds, robot, state
from test_constraints import every_constraint
from tolerances import DYNAMICS

import drevo
from drevo import constraint
from drevo.control import stabilise
from drevo.robot.face import Robot

Array = np.ndarray[Any, Any]
module = import_module("drevo.control.linearise")
FIELDS = ("A", "B", "C", "D", "a", "reactions", "reactions_state", "reactions_input", "rank", "q", "v", "tau")
RARE = ("basis", "condition", "off", "states", "inputs", "outputs", "units", "driven")


def on_arrays(r: Robot, *state: Array, **given: Any) -> Any:
    """The same without the kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Problem, "kernels", property(lambda _: None))
        return module.linearise(Robot(r.model), *state, **given)


def assert_same(mine: Any, right: Any) -> None:
    assert hasattr(mine, "_source") and not hasattr(right, "_source")
    for name in FIELDS:
        x, y = (np.asarray(getattr(z, name)) for z in (mine, right))
        assert x.shape == y.shape and x.dtype == y.dtype, name
        assert np.abs(x - y).max(initial=0.0) <= DYNAMICS * max(1.0, np.abs(y).max(initial=0.0)), name
        assert isinstance(getattr(mine, name), np.ndarray) == isinstance(getattr(right, name), np.ndarray)
    for name in RARE:
        np.testing.assert_equal(getattr(mine, name), getattr(right, name))


def feet(r: Robot) -> list[dict[str, Any]]:
    return [{"link": r.link_names[-3], "point": (0.1, 0.2, 0.3)}]


@pytest.fixture(scope="module")
def walker() -> Robot:
    """A body that floats on two legs of two hinges each."""
    b = drevo.Builder("walker")
    b.body("trunk", joint="free", mass=5.0, com=(0.02, 0, 0.1), inertia=np.diag([0.2, 0.15, 0.1]))
    for side, y in (("left", 0.1), ("right", -0.1)):
        b.body(f"{side}_leg", "trunk", axis=(1, 0, 0), origin=(0, y, -0.1), mass=1.0, com=(0, 0, -0.2),
               inertia=np.diag([0.02, 0.02, 0.003]))  # fmt: skip
        b.body(f"{side}_foot", f"{side}_leg", axis=(0, 1, 0), origin=(0, 0, -0.4), mass=0.5, com=(0.03, 0, -0.02),
               inertia=np.diag([0.002, 0.003, 0.003]))  # fmt: skip
    return b.robot()


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_as_on_arrays(base: str, held: bool) -> None:
    """One state, and a batch of 11, which is more than a tile: joints of every kind, and fewer on a free one."""
    r = Robot(all_kinds("fixed") if base == "fixed" else robot(3, EVERY, 4, "floating", welds=0.0))
    given: dict[str, Any] = {"outputs": ["q", "a", f"velocity:{r.link_names[-1]}"]}
    if held:
        given |= {"contacts": feet(r), "constraints": [every_constraint(r)[k] for k in (1, 2)], "t": 0.4}
    x = [np.array(y) for y in zip(*(state(r.model, k) for k in range(11)))]
    right = on_arrays(r, *x, **given)
    for _ in range(2):
        mine = r.linearise(*x, **given)
        assert_same(mine, right)
    one = r.linearise(*(y[9] for y in x), **given)
    assert_same(one, on_arrays(r, *(y[9] for y in x), **given))


def test_contacts_beside_the_columns() -> None:
    """A point and a foot, which are written beside the recursion of the derivatives."""
    b = drevo.Builder("two legs")
    b.body("trunk", "world", joint="free", mass=3.0, inertia=np.eye(3))
    for leg in (("spherical", "helical"), ("prismatic", "revolute")):
        above = "trunk"
        for joint in leg:
            more: dict[str, Any] = {} if joint == "spherical" else {"axis": (0.0, 0.6, 0.8)}
            more |= {"lead": 0.1} if joint == "helical" else {}
            more |= {"origin": (0.1, 0.5, 0.2), "mass": 1.0, "com": (0.1, 0.0, 0.2), "inertia": np.eye(3)}
            b.body(joint, above, joint=joint, **more)
            above = joint
    r = b.robot()
    contacts = [
        {"link": "helical", "point": (0.1, 0.2, 0.3)},
        {"link": "revolute", "point": (0.0, 0.1, 0.2), "rows": 6},
    ]
    for x in (state(r.model, 3), [np.array(y) for y in zip(*(state(r.model, k) for k in range(9)))]):
        assert_same(r.linearise(*x, contacts=contacts), on_arrays(r, *x, contacts=contacts))


def test_driven_rates_and_passive_forces() -> None:
    r = drevo.load("puma560")
    q, v, tau = np.random.default_rng(0).normal(size=(3, 3, 6))
    for given in ({"actuated": list(r.joint_names[1::2])}, {"passive": False}, {}):
        assert_same(r.linearise(q, v, tau, **given), on_arrays(r, q, v, tau, **given))
        assert_same(r.linearise(q[0], v[0], tau[0], **given), on_arrays(r, q[0], v[0], tau[0], **given))


def test_arguments_may_change_between_calls(walker: Robot) -> None:
    """Arrays of a state that are written to afterwards, contacts that change, what is refused."""
    r = walker
    q, v, tau = r.neutral(), np.zeros(r.nv), np.zeros(r.nv)
    contacts = [{"link": "right_foot", "point": (0, 0, 0)}]
    first, before = r.linearise(q, v, tau, contacts=contacts), on_arrays(r, q, v, tau, contacts=contacts)
    q[2] += 1.0
    q[7:] += 0.3
    assert_same(first, before)
    contacts[0]["link"] = "left_foot"
    for _ in range(2):
        assert_same(r.linearise(q, v, tau, contacts=contacts), on_arrays(r, q, v, tau, contacts=contacts))
    again = pickle.loads(pickle.dumps(first))  # noqa: S301
    assert np.array_equal(again.A, first.A) and again.states == first.states
    with pytest.raises(ValueError, match="read-only"):
        first.A[0, 0] = 1.0
    with pytest.raises(drevo.InputError, match="linearise: q"):
        r.linearise(q[1:], v, tau, contacts=contacts)
    with pytest.raises(drevo.InputError, match="passive"):
        r.linearise(q, v, tau, contacts=contacts, passive=1)
    with pytest.raises(drevo.NumericsError, match="quaternion"):
        r.linearise(2.0 * q, v, tau, contacts=contacts)


def test_rows_that_depend_are_solved_on_arrays(walker: Robot) -> None:
    """Four corners of a foot: the model is that of before, and says how many rows count."""
    r = walker
    q, v, tau = r.neutral(), np.zeros(r.nv), np.zeros(r.nv)
    contacts = [{"link": "right_foot", "point": (x, y, 0)} for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    found = r.linearise(q, v, tau, contacts=contacts)
    assert found.rank == 6 and np.array_equal(found.A, on_arrays(r, q, v, tau, contacts=contacts).A)


def test_numbers_of_constraints_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another point, normal, offset or length compiles nothing; results are those of a new robot."""
    arm = drevo.load("three-link")
    hand, rng = arm.link_names[-1], np.random.default_rng(5)
    q, v, tau = rng.normal(size=(3, arm.nv))

    def answers(r: Robot, x: float) -> list[Any]:
        plane = constraint.point_on_plane(hand, (0.1, x, 0.2), (x, 0.3, 1.0), offset=x)
        held = [plane, constraint.distance(hand, (x, 0.0, 0.1), "world", (0.3, x, 2.0), 0.5 + x)]
        L, now = (f(q, v, tau, constraints=held) for f in (r.linearise, r.constrained_dynamics))
        out = [L.A, L.basis, r.linearise(q, v, tau, constraints=held, stabilise=(4.0, 3.0)).A, now.a]
        out += [
            r.constrained_inverse_dynamics(q, v, now.a, constraints=held).tau,
            r.impact(q, v, constraints=held).v,
        ]
        return [*out, *(stabilise(r, held, stiffness=g, damping=5.0)(0.3, q, v) for g in (4, x + 3))]

    answers(arm, 0.1)
    right = answers(drevo.load("three-link"), 0.25)

    def none(*_: Any, **__: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr("drevo.compiler.trace.obtain", none)
    for mine, other in zip(answers(arm, 0.25), right):
        assert np.abs(mine - other).max() <= 1e-11 * max(1.0, np.abs(other).max())
