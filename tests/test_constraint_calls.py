"""Calls with constraints as people make them: odd states, gains, lists, functions; one sentence for each."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.constraint import values as constraint
from drevo.constraint.closing import assemble, hold
from drevo.constraint.dynamics import constrained_dynamics, impact
from drevo.constraint.inverse import constrained_inverse_dynamics
from drevo.constraint.terms import constraint_terms
from drevo.robot.face import Robot

Array = Any
CORNERS = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]


@pytest.fixture(scope="module")
def biped() -> Robot:
    return drevo.load("biped", base="floating")


def corners(r: Robot, q: Array) -> list[dict[str, Any]]:
    """Four points of a foot, anchored where they are: 12 rows, rank 6."""
    T = r.pose(q, "right_foot")
    return [{"link": "right_foot", "point": p, "rows": 3, "anchor": T[:3, :3] @ p + T[:3, 3]} for p in CORNERS]


def refused(words: str, call: Any) -> str:
    """The sentence of a call that is refused."""
    with pytest.raises(drevo.DrevoError, match=words) as found:
        call()
    assert "\n" not in str(found.value) and len(str(found.value)) < 420
    return str(found.value)


# -- one door for arrays -----------------------------------------------------------------------------------


def interpreted(r: Robot) -> dict[str, Any]:
    """Every method that is not compiled, as a function of a configuration and of rates."""
    q, v, names = r.neutral(), np.zeros(r.nv), r.joint_names
    return {
        "integrate": (lambda x: r.integrate(x, v), lambda u: r.integrate(q, u)),
        "difference": (lambda x: r.difference(x, q), lambda u: r.integrate(q, u)),
        "assemble": (lambda x: assemble(r, x), lambda u: r.integrate(q, u)),
        "hold": (lambda x: hold(r, x, v), lambda u: hold(r, q, u)),
        "impact": (lambda x: impact(r, x, v), lambda u: impact(r, q, u)),
        "dynamics": (lambda x: constrained_dynamics(r, x, v, v), lambda u: constrained_dynamics(r, q, v, u)),
        "inverse": (
            lambda x: constrained_inverse_dynamics(r, x, v, v, actuated=names),
            lambda u: constrained_inverse_dynamics(r, q, v, u, actuated=names),
        ),
        "linearise": (lambda x: r.linearise(x, v, v), lambda u: r.linearise(q, v, u)),
    }


@pytest.mark.parametrize("name", interpreted(drevo.load("four-bar")))
def test_arrays_that_are_no_states(biped: Robot, name: str) -> None:
    """NaN, infinities, complex and other kinds, text, objects, sizes, quaternions: nothing passes in silence."""
    of_q, of_v = interpreted(biped)[name]
    q, v = biped.neutral(), np.zeros(biped.nv)
    for call, x, rates in ((of_q, q, False), (of_v, v, True)):
        for bad in (math.nan, math.inf, -math.inf):
            y = x.copy()
            y[1] = bad
            refused("holds a value that is not finite", lambda: call(y))  # noqa: B023
        for kind in (x + 0j, x.astype(object), x.astype(str), "x", None, object(), {}, [x, [1.0]]):
            refused("must hold real numbers|no array of numbers", lambda: call(kind))  # noqa: B023
        for shape in (x[:-1], np.float64(1.0), np.zeros((3, 0))):
            refused("has shape|must be", lambda: call(shape))  # noqa: B023
        call(x.astype(np.float32)), call(x.astype(int)), call(x.tolist())
        if not rates:
            for size in (0.0, 2.0, -1.01, 1e200):
                y = x.copy()
                y[3:7] *= size
                refused("quaternion of joint 'root_joint' has length", lambda: call(y))  # noqa: B023


def test_motions_beyond_the_largest_number(biped: Robot) -> None:
    q = biped.neutral()
    refused("beyond the largest number", lambda: biped.integrate(q, np.full(biped.nv, 1e200)))
    refused("beyond the largest number", lambda: biped.integrate(np.r_[1e308, q[1:]], np.r_[1e308, np.zeros(18)]))
    refused(r"row 1 has length 0", lambda: biped.difference(q, np.stack([q, 0.0 * q])))
    refused(r"dimensions do not agree: q \(2,\), dv \(3,\)", lambda: biped.integrate([q] * 2, np.zeros((3, 19))))


@pytest.mark.parametrize("robot", [None, "puma560", 3])
def test_a_robot_is_needed(robot: Any) -> None:
    for call in (constrained_dynamics, constrained_inverse_dynamics):
        refused(r"dynamics takes a robot", partial(call, robot, [0.0], [0.0], [0.0]))
    for call in (impact, hold):
        refused(r"takes a robot", partial(call, robot, [0.0], [0.0]))
    refused(r"takes a robot", partial(assemble, robot, [0.0]))


def test_what_is_too_large_is_named() -> None:
    """Overflow is laid at the input that is large; angles at angles."""
    r = drevo.load("puma560")
    z = np.zeros(6)
    refused(r"v\[2\] is as large as 1e\+200, and what is computed", lambda: r.bias(z, z + 1e200 * np.eye(6)[2]))
    refused(r"tau\[0\] is as large as 1e\+308", lambda: r.forward_dynamics(z, z, z + 1e308))
    refused(r"q\[0\] is as large as 1e\+200, and angles", lambda: r.gravity(z + 1e200))
    foot = [constraint.point_on_plane("link6", (0, 0, 0), (0, 0, 1))]
    refused(r"v\[0\] is as large as 1e\+200", lambda: r.constrained_dynamics(z, z + 1e200, z, constraints=foot))


# -- redundant sets and gains ------------------------------------------------------------------------------


def test_redundant_contacts_return_to_their_places(biped: Robot) -> None:
    """Four anchored corners, a centimetre and some degrees off, are closed by feedback; 12 rows, rank 6."""
    q, v = biped.neutral(), np.zeros(biped.nv)
    held = corners(biped, q)
    x = biped.integrate(q, np.r_[0.01, 0.005, 0.01, 0.05, 0.03, 0.02, np.zeros(biped.nv - 6)])
    got = constrained_dynamics(biped, x, v, v, contacts=held, stabilise=(20.0, 100.0))
    assert got.rank == 6
    one = {"link": "right_foot", "point": (0, 0, 0), "rows": 6}
    M = biped.mass_matrix(x)
    L = np.linalg.cholesky(M)
    free = np.linalg.solve(M, -biped.bias(x, v))
    G, wanted = got.jacobian, -(got.gamma + 20.0 * got.rate + 100.0 * got.value)
    least = free + np.linalg.solve(L.T, np.linalg.pinv(G @ np.linalg.inv(L.T), rcond=1e-10) @ (wanted - G @ free))
    assert np.abs(got.a - least).max() <= 1e-9 * np.abs(least).max()
    assert constrained_dynamics(biped, x, v, v, contacts=[one]).rank == 6
    constrained_dynamics(biped, x, v, v, contacts=held)  # its value is not used: no contradiction either
    for _ in range(250):  # half a second by semi-implicit steps
        v = (
            v
            + 2e-3 * constrained_dynamics(biped, x, v, biped.gravity(x), contacts=held, stabilise=(40.0, 400.0)).a
        )
        x = biped.integrate(x, 2e-3 * v)
    left = constrained_dynamics(biped, x, v, v, contacts=held, stabilise=(40.0, 400.0)).value
    assert np.abs(left).max() <= 1e-2 * np.abs(got.value).max()


def test_rates_that_break_redundant_contacts(biped: Robot) -> None:
    """J v is not 0: said as such, not as a contradiction; feedback takes them, and so does what hold gives."""
    q, v = biped.neutral(), np.full(biped.nv, 0.1)
    held = corners(biped, q)
    told = r"state does not keep its constraints: contact\(right_foot\)#\d\[1\] moves at 0.282 m/s or rad/s"
    refused(told, lambda: constrained_dynamics(biped, q, v, v, contacts=held))
    many = [np.stack([q, q]), np.stack([0 * v, v])]
    refused("constraints in row 1 of the batch", lambda: constrained_dynamics(biped, *many, v, contacts=held))
    constrained_dynamics(biped, q, v, v, contacts=held, stabilise=(20.0, 100.0))
    constrained_dynamics(biped, *hold(biped, q, v, contacts=held), v, contacts=held)


def test_contradictions_are_still_refused(biped: Robot) -> None:
    """Corners whose places do not fit the foot, with and without feedback, alone and in a batch."""
    q, v = biped.neutral(), np.zeros(biped.nv)
    held = corners(biped, q)
    held[2]["anchor"] = held[2]["anchor"] + [0.01, 0.0, 0.0]
    for gains in (None, (20.0, 100.0)):
        call = partial(constrained_dynamics, biped, q, v, v, contacts=held, stabilise=gains)
        refused("contradict each other: no motion meets", call)
    moving = partial(constrained_dynamics, biped, q, v + 0.1, v, contacts=held)  # the rates are not what is wrong
    refused(r"contradict each other: no motion meets contact\(right_foot\)\[0\] by 0.0025 m,", moving)
    refused("contradict each other in row 0", lambda: constrained_dynamics(biped, [q, q], v, v, contacts=held))


def test_rank_that_is_lost_at_a_configuration() -> None:
    tip = [constraint.point_to_point("b", (1, 0, 0), "world", (1.99, 0, 0))]
    zero = np.zeros(2)
    told = "lose rank at this configuration, 1 for 2 beside it: .*point_to_point\\(b, world\\)\\[0\\] by 0.01 m"
    refused(told, lambda: constrained_dynamics(stretched(), zero, zero, zero, constraints=tip))


def stretched() -> Robot:
    b = drevo.Builder("stretched", gravity=(0, 0, 0))
    b.body("a", axis=(0, 0, 1), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3) * 0.1)
    b.body("b", "a", axis=(0, 0, 1), origin=(1, 0, 0), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3) * 0.1)
    return b.robot()


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        (10.0, r"stabilise is 10.0; it must be a pair \(damping, stiffness\)"),
        ((1.0,), "must be a pair"),
        ((1.0, 2.0, 3.0), "must be a pair"),
        ("ab", "must hold real numbers"),
        ((np.nan, 1.0), "not finite"),
        ((1j, 1.0), "real numbers"),
        (([1.0, 2.0], 1.0), r"damping has shape \(2,\); .* one for each of the 3 rows"),
        ((1.0, np.eye(2)), r"stiffness has shape \(2, 2\)"),
        ((-1.0, 1.0), "which does not decay"),
        ((1.0, -1.0), "which does not decay"),
        (([1.0, 1.0, -1.0], 1.0), "which does not decay"),
        ((np.diag([1.0, 1.0, -1.0]), 1.0), "which does not decay"),
        ((np.array([[1.0, 9.0, 0.0], [9.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.eye(3)), "which does not decay"),
        *((gains, "which does not decay") for gains in ((0, 0), (1.0, 0.0), (0.0, 1.0), ([1, 0, 1], np.eye(3)))),
    ],
)
def test_gains_that_are_refused(biped: Robot, gains: Any, words: str) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    foot = [{"link": "right_foot", "point": (0, 0, 0), "rows": 3}]
    refused(words, lambda: constrained_dynamics(biped, q, v, v, contacts=foot, stabilise=gains))


@pytest.mark.parametrize("gains", [(1, 1), (np.eye(3), 1.0), ([1, 2, 3], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])])
def test_gains_that_decay(biped: Robot, gains: Any) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    foot = [{"link": "right_foot", "point": (0, 0, 0), "rows": 3}]
    assert np.isfinite(constrained_dynamics(biped, q, v, v, contacts=foot, stabilise=gains).a).all()


@pytest.mark.parametrize("e", [np.nan, 1.5, 2, -1, np.inf, "a", None, [0.5], 1j, True])
def test_restitution_is_a_number_from_0_to_1(biped: Robot, e: Any) -> None:
    q, v = biped.neutral(), np.full(biped.nv, 0.1)
    foot = [{"link": "right_foot", "point": (0, 0, 0), "rows": 6}]
    refused(
        "restitution is .*; it must be a number from 0", lambda: impact(biped, q, v, contacts=foot, restitution=e)
    )
    for good in (0, 1, np.float32(0.5)):
        after = impact(biped, q, v, contacts=foot, restitution=good)
        assert np.abs(after.jacobian @ after.v + float(good) * after.jacobian @ v).max() <= 1e-12


# -- lists, names ------------------------------------------------------------------------------------------


def test_each_row_has_a_name_of_its_own(biped: Robot) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    rows = constrained_dynamics(biped, q, v, v, contacts=corners(biped, q)).rows
    assert len(set(rows)) == 12 and rows[0] == "contact(right_foot)[0]" and rows[-1] == "contact(right_foot)#4[2]"


ONE = constraint.point_on_plane("right_foot", (0, 0, 0), (0, 0, 1))


FOOT = constraint.contact("right_foot", (0, 0, 0))


@pytest.mark.parametrize(
    "given", [{"constraints": ONE}, {"contacts": FOOT}, {"contacts": {"link": "right_foot", "point": (0, 0, 0)}}]
)
def test_one_is_taken_for_a_list_of_one(biped: Robot, given: dict[str, Any]) -> None:
    q, v = biped.random(np.random.default_rng(1)), np.zeros(biped.nv)
    listed = {key: [one] for key, one in given.items()}
    for call in (
        lambda given: constrained_dynamics(biped, q, v, v, **given).reactions,
        lambda given: impact(biped, q, v + 1.0, **given).v,
        lambda given: biped.linearise(q, v, v, **given).A,
    ):
        assert (call(given) == call(listed)).all()


@pytest.mark.parametrize(
    "given", [{"constraints": 5}, {"constraints": "plane"}, {"contacts": 5}, {"contacts": "right_foot"}]
)
def test_what_is_no_list_of_constraints(biped: Robot, given: Any) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    words = r"it must be a list: (constraints|contacts)=\["
    for call in (
        lambda: constrained_dynamics(biped, q, v, v, **given),
        lambda: constrained_inverse_dynamics(biped, q, v, v, **given),
        lambda: impact(biped, q, v, **given),
        lambda: hold(biped, q, v, **given),
        lambda: assemble(biped, q, **given),
        lambda: biped.linearise(q, v, v, **given),
        lambda: biped.simulate(q, duration=0.1, **given),
    ):
        refused(words, call)


def test_ends_that_are_none() -> None:
    """Joints that are no names, rows that are no list, points that cannot part."""
    r, z = drevo.load("puma560"), np.zeros(6)
    ends: Any = ("link1", (0, 0, 0), "link2", (0, 0, 0))
    for name in (None, 5, [], np.zeros(2)):
        gear = partial(constraint.gear, name, "joint1", 1.0)
        refused("gear: joint .* is not a name", lambda: constrained_dynamics(r, z, z, z, constraints=[gear()]))  # noqa: B023
    refused("rows is 5; it must be a list", partial(constraint.point_to_point, *ends, rows=5))
    rod = [constraint.distance(*ends, 1.0)]
    refused("points are at one place whatever", lambda: constrained_dynamics(r, z, z, z, constraints=rod))


def test_names_of_driven_joints() -> None:
    r = drevo.load("puma560")
    z = np.zeros(6)
    for call in (
        lambda x: constrained_inverse_dynamics(r, z, z, z, actuated=x),
        lambda x: r.linearise(z, z, z, actuated=x),
    ):
        refused(r"actuated is 'joint1'; it must be a list: actuated=\['joint1', ...\]", lambda: call("joint1"))  # noqa: B023
        refused("actuated is 5; it must be a list", lambda: call(5))  # noqa: B023
        refused(r"'joint' is no moving joint \(did you mean 'joint\d'", lambda: call(["joint"]))  # noqa: B023
    refused("keep is 'joint1'; it must be a list", lambda: assemble(r, z, keep="joint1"))
    refused("joint 'joint2' is not actuated", lambda: constrained_inverse_dynamics(r, z, z, z, actuated=[]))


@pytest.mark.parametrize(("name", "given"), [("tolerance", -1), ("tolerance", "a"), ("steps", 0), ("steps", 2.5)])
def test_limits_of_an_iteration(name: str, given: Any) -> None:
    r = drevo.load("four-bar")
    q = np.array([0.1, 0.0, 0.0])
    refused(f"assemble: {name} is", lambda: assemble(r, q, **{name: given}))
    refused(f"hold: {name} is", lambda: hold(r, q, q, **{name: given}))


def test_a_target_out_of_reach() -> None:
    r = drevo.load("puma560")
    far = [constraint.point_to_point("link6", (0, 0, 0), "world", (9, 9, 9))]
    refused(
        r"cannot be assembled .*point_to_point\(link6, world\)\[\d\] is still off by 8",
        lambda: assemble(r, np.zeros(6), constraints=far),
    )


# -- functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda pose, q, t: [q[0] if q[0] > 0 else 0.0], "no truth and no order"),
        (lambda pose, q, t: [q[0] if q[0] else 0.0], "no truth and no order"),
        (lambda pose, q, t: [max(q[0], 0)], "no truth and no order"),
        (lambda pose, q, t: [1.0 if q[0] == 0.0 else q[0]], "no truth and no order"),
        (lambda pose, q, t: [np.clip(q[0], 0, 1)], "no truth and no order"),
        (lambda pose, q, t: [math.sin(q[0])], "function of Python's math"),
        (lambda pose, q, t: [np.exp(q[0])], "without a branch on a value"),
        (lambda pose, q, t: [q[0] ** 0.5], "whole powers only"),
        (lambda pose, q, t: q[0], r"gave one traced number, not a list of 1; return \[value"),
        (lambda pose, q, t: 3.0, "gave 3.0, not a list of 1"),
        (lambda pose, q, t: None, "gave None, not a list of 1"),
        (lambda pose, q, t: [[q[0]]], "among its values; each must be a finite number"),
        (lambda pose, q, t: ["a"], "among its values"),
        (lambda pose, q, t: [math.nan], "among its values"),
        (lambda pose, q, t: [q[0] / 0.0], "structural zero|is not finite"),
        (lambda pose, q, t: pose("right_fot")[0][3:], r"is not in the robot \(did you mean 'right_foot'"),
        (lambda pose, q, t: [q[99]], "raised IndexError"),
        (lambda pose, q: [q[0]], "positional arguments"),
    ],
)  # fmt: skip
def test_functions_that_cannot_be_traced(biped: Robot, f: Any, words: str) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    held = [constraint.function(f, 1)]
    refused(
        f"function constraint '<lambda>'.*({words})",
        lambda: constrained_dynamics(biped, q, v, v, constraints=held),
    )
    refused(words, lambda: biped.simulate(q, duration=0.1, constraints=held))


def test_entries_of_a_pose_are_named_as_numpy_names_them() -> None:
    """x[i][j], x[i, j] and ranges; of a constraint and of a cost."""
    r = drevo.load("three-link")
    q, v, last = np.array([0.3, -0.5, 0.8]), np.array([0.1, 0.2, -0.3]), r.link_names[-1]

    def by_lists(pose: Any, q: Any, t: Any) -> Any:
        return [pose(last)[0][3] + 2 * pose(last)[1][0]]

    def by_pairs(pose: Any, q: Any, t: Any) -> Any:
        return [pose(last)[:3, 3][0] + 2 * pose(last)[1, 0]]

    one, two = (
        r.constrained_dynamics(q, v, v, constraints=constraint.function(f, 1)) for f in (by_lists, by_pairs)
    )
    assert (one.a == two.a).all() and (one.reactions == two.reactions).all()


def test_powers_of_functions(biped: Robot) -> None:
    """Negative powers too: 1 / x^2 and its rates."""
    q, v = biped.neutral(), np.zeros(biped.nv)
    q[0], v[0] = 2.0, 3.0
    pair = (constraint.function(lambda pose, q, t: [q[0] ** -2, 1.0 / (q[0] * q[0])], 2),)
    c = constraint_terms(biped, pair, q, v)
    assert c.value[0] == pytest.approx(0.25) and c.rate[0] == pytest.approx(c.rate[1])
    assert c.gamma[0] == pytest.approx(c.gamma[1]) and np.allclose(c.jacobian[0], c.jacobian[1])


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda t: np.eye(3), "four rows of four numbers"),
        (lambda t: None, "four rows of four numbers"),
        (lambda t: [[1, 0, 0]] * 4, "row 0 of the pose gave 3 values"),
        (lambda t: [[math.sin(t), 0, 0, 0]] * 4, "function of Python's math"),
        (lambda t: 2.0 * np.eye(4), "rotation at t = 0 .* is not a rotation"),
    ],
)
def test_programs_that_give_no_pose(biped: Robot, program: Any, words: str) -> None:
    q, v = biped.neutral(), np.zeros(biped.nv)
    told = f"pose_tracking of 'right_foot'.*{words}"
    refused(
        told,
        lambda: constrained_dynamics(
            biped, q, v, v, constraints=[constraint.pose_tracking("right_foot", program)]
        ),
    )


def test_orientation_of_a_weld_is_said_once(biped: Robot) -> None:
    ends: Any = ("right_foot", (0, 0, 0), "left_foot", (0, 0, 0))
    refused("rotation and at say the same", lambda: constraint.weld(*ends, rotation=np.eye(3), at=[0.0]))
    q, v = biped.neutral(), np.zeros(biped.nv)
    short = [constraint.weld(*ends, at=[0.0, 1.0])]
    refused(
        r"weld\(right_foot, left_foot\): at: q has shape",
        lambda: constrained_dynamics(biped, q, v, v, constraints=short),
    )
    twice = [constraint.weld(*ends, at=2.0 * q)]
    refused("quaternion of joint", lambda: constrained_dynamics(biped, q, v, v, constraints=twice))
