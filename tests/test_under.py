"""A robot under constraints as a value: what its calls give, other numbers in it, what is refused."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import constraint
from drevo.constraint.closing import assemble, hold
from drevo.constraint.dynamics import constrained_dynamics, impact
from drevo.constraint.inverse import constrained_inverse_dynamics
from drevo.control import linearise

ROBOT = drevo.load("puma560")
Q, V, TAU = np.random.default_rng(2).normal(0.0, 0.4, (3, 6))
TOUCH = [{"link": "link6", "point": (0.1, 0.02, 0.3)}]
SLIDE = [constraint.point_on_plane("link6", (0.1, 0.0, 0.2), (0.0, 0.6, 0.8), offset=0.1)]


def same(x: Any, y: Any) -> None:
    for name in ("a", "reactions", "rank", "jacobian", "gamma", "v", "impulses", "tau", "A", "B"):
        if hasattr(x, name):
            assert np.array_equal(getattr(x, name), getattr(y, name)), name


@pytest.mark.parametrize("under", [{"contacts": TOUCH}, {"constraints": SLIDE}, {}])
def test_calls_give_what_the_functions_give(under: dict[str, Any]) -> None:
    held = ROBOT.under(**under)
    push = {"link3": np.ones(6)}
    same(held.dynamics(Q, V, TAU), constrained_dynamics(ROBOT, Q, V, TAU, **under))
    same(held.dynamics(Q, V, TAU, push), constrained_dynamics(ROBOT, Q, V, TAU, f_ext=push, **under))
    same(held.impact(Q, V, 0.4), impact(ROBOT, Q, V, restitution=0.4, **under))
    same(held.linearise(Q, V, TAU), linearise(ROBOT, Q, V, TAU, **under))
    a = held.dynamics(Q, V, TAU).a
    same(held.inverse_dynamics(Q, V, a), constrained_inverse_dynamics(ROBOT, Q, V, a, **under))
    q, v = held.hold(Q, V)
    want = hold(ROBOT, Q, V, **under)
    assert np.array_equal(q, want[0]) and np.array_equal(v, want[1])
    assert np.array_equal(held.assemble(Q), assemble(ROBOT, Q, **under))
    assert np.array_equal(held.assemble(Q, V)[1], held.hold(held.assemble(Q), V)[1])
    table, other = (f(q, v, duration=0.02, **x) for f, x in ((held.simulate, {}), (ROBOT.simulate, under)))
    assert np.array_equal(table.q, other.q)
    again = pickle.loads(pickle.dumps(held))  # noqa: S301
    same(again.dynamics(Q, V, TAU), held.dynamics(Q, V, TAU))
    assert again.rows == held.rows and repr(held).startswith("<Held 'puma560'")


def test_feedback_and_drives_are_those_of_the_value() -> None:
    gains, drives = (20.0, 100.0), ["joint1", "joint2", "joint3", "joint4", "joint5"]
    held = ROBOT.under(constraints=SLIDE, actuated=drives, stabilise=gains)
    same(held.dynamics(Q, V, TAU), ROBOT.constrained_dynamics(Q, V, TAU, constraints=SLIDE, stabilise=gains))
    assert held.linearise(Q, V, TAU).B.shape == (12, 5)
    a = ROBOT.under(constraints=SLIDE).dynamics(Q, V, 0 * TAU).a
    want = ROBOT.constrained_inverse_dynamics(Q, V, a, constraints=SLIDE, actuated=drives)
    same(held.inverse_dynamics(Q, V, a), want)


def test_other_numbers_are_those_of_a_set_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points, normals and offsets, of contacts and constraints; nothing is compiled for them."""
    ends = "link6", "link2"
    points, normal, offset = np.random.default_rng(3).normal(0.0, 0.2, (4, 3)), (0.0, 1.0, 0.0), 0.7

    def made(p: Any, n: Any, d: float) -> drevo.robot.under.Held:
        rod = constraint.distance(ends[0], p[2], ends[1], p[3], 0.4)
        plane = constraint.point_on_plane("link5", p[1], n, (0.1, 0.0, 0.0), d, 0.2)
        return ROBOT.under([{"link": "link6", "point": p[0]}], [plane, rod])

    first, right = made(np.zeros((4, 3)) + np.eye(4, 3), (1.0, 0.0, 0.0), 0.1), made(points, normal, offset)
    first.dynamics(Q, V, TAU)
    moved = first.moved(points=points, normals=[normal], offsets=[offset])
    same(moved.dynamics(Q, V, TAU), right.dynamics(Q, V, TAU))
    assert moved.constraints == right.constraints and moved.rows == right.rows
    same(moved.linearise(Q, V, TAU), right.linearise(Q, V, TAU))
    same(first.moved(points.tolist(), normal, offset).impact(Q, V), right.impact(Q, V))
    part = moved.moved(offsets=0.1).constraints[1]
    assert part.normal[0] == normal and part.offset == (0.1, 0.2, 0.0)  # type: ignore[union-attr]
    one = ROBOT.under(TOUCH).moved((0.0, 0.1, 0.2))
    same(one.dynamics(Q, V, TAU), ROBOT.under([TOUCH[0] | {"point": (0.0, 0.1, 0.2)}]).dynamics(Q, V, TAU))
    none = ROBOT.under().moved(points=[])
    assert none.rows == () == none.constraints
    same(none.dynamics(Q, V, TAU), ROBOT.constrained_dynamics(Q, V, TAU))


def test_loops_of_the_robot_stay() -> None:
    """Their points are not those that move."""
    b = drevo.Builder("bars")
    for k, parent in enumerate(("world", "bar0", "bar1")):
        b.body(f"bar{k}", parent, origin=(0.5 * (k > 0), 0, 0), mass=1.0, com=(0.2, 0, 0), inertia=np.eye(3) * 0.1)
    b.loop("point", "bar2", (0.5, 0, 0), "world", (0.5, 0.1, 0))
    robot, x = b.robot(), np.array([0.3, 0.5, 0.4])
    point = [{"link": "bar1", "point": (0.1, 0.2, 0.0)}]
    moved = robot.under([point[0] | {"point": (0.0, 0.0, 0.0)}]).moved([(0.1, 0.2, 0.0)])
    assert len(moved.constraints) == 1 and len(moved.rows) == 6
    assert robot.under().moved(points=[]).rows == robot.under().rows
    same(moved.impact(x, x), robot.under(point).impact(x, x))


@pytest.mark.parametrize(("call", "words"), [
    (lambda: ROBOT.under([{"link": "link66", "point": (0, 0, 0)}]), "did you mean 'link6'"),
    (lambda: ROBOT.under(TOUCH, stabilise=(1.0, -1.0)), "does not decay"),
    (lambda: ROBOT.under(TOUCH, actuated=["elbow"]), "is no moving joint"),
    (lambda: ROBOT.under(TOUCH).moved([(0.0, 0.0)]), r"moved: points has shape \(1, 2\)"),
    (lambda: ROBOT.under(TOUCH).moved(np.zeros((2, 3))), r"moved: points has shape \(2, 3\)"),
    (lambda: ROBOT.under(TOUCH).moved([(0.0, np.nan, 0.0)]), "moved: points holds a value that is not finite"),
    (lambda: ROBOT.under(TOUCH).moved([("a", 0.0, 0.0)]), "moved: points"),
    (lambda: ROBOT.under(TOUCH).moved([(1e9, 0.0, 0.0)]), "at most"),
    (lambda: ROBOT.under(TOUCH).moved(offsets=[1.0]), "moved: offsets has shape"),
    (lambda: ROBOT.under(constraints=SLIDE).moved(normals=[(0.0, 0.0, 0.0)]), "a normal is zero"),
    (lambda: ROBOT.under(TOUCH).dynamics(Q, V), "is missing 'tau'"),
    (lambda: ROBOT.constrained_dynamics(Q, V, TAU, TOUCH), "3 arguments by position, 4 are given; "),
    (lambda: ROBOT.impact(Q, V, TOUCH), "goes by name"),
    (lambda: ROBOT.linearise(Q, V, TAU, TOUCH), "goes by name"),
    (lambda: hold(ROBOT, Q, V, TOUCH), "goes by name"), (lambda: assemble(ROBOT, Q, TOUCH), "goes by name"),
])  # fmt: skip
def test_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(drevo.DrevoError, match=words):
        call()


@pytest.mark.parametrize("ask", [
    lambda r: r.gravity(r.neutral()),
    lambda r: r.mass_matrix(r.neutral()),
    lambda r: drevo.compile(r, ["pose", "forward_dynamics"], link=r.link_names[-1]),
    lambda r: r.derivative("gravity", "q"),
    lambda r: r.manipulability(r.neutral(), r.link_names[-1], axes="x z"),
])  # fmt: skip
def test_a_quantity_of_the_open_tree_says_so_once(ask: Any) -> None:
    robot = drevo.load("four-bar")
    q, rest = robot.neutral(), np.zeros(robot.nv)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        robot.under().dynamics(q, rest, rest)  # which computes with the open tree, and closes it
        robot.poses(q), robot.potential_energy(q)  # true of every posture that the robot can have
        assert seen == []
        ask(robot), ask(robot), robot.bias(q, rest)
    (told,) = seen
    assert "open tree" in str(told.message) and "robot.under()" in str(told.message)
    assert told.filename == __file__


def test_a_tree_has_nothing_to_say() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drevo.load("puma560").gravity(np.zeros(6))
