"""Constraints: Zaremba's vectors, Pinocchio, differences of f, dependent and contradictory sets."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from kovalchuk_cases import Array, rx, ry, rz, worst
from oracles import Pinocchio, pinocchio_of
from strategies import all_kinds, robot, seeds, state

import drevo
from drevo.constraint import collection
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.constraint.dynamics import constrained_dynamics, impact
from drevo.constraint.inverse import constrained_inverse_dynamics
from drevo.constraint.terms import constraint_terms
from drevo.mechanics.algorithms.constraints import Kinematics
from drevo.mechanics.reframe import refuse_gimbal_lock
from drevo.mechanics.tree import build_tree
from drevo.robot.face import Robot

MECHANISMS = json.loads((Path(__file__).parent / "data" / "zaremba.json").read_text())["mechanisms"]
PAIRS = [(m, c) for m in MECHANISMS for c in m["constraints"]]
ORIENTED = {0: 3, 7: 3, 11: 2}  # kinds that hold an orientation, which is no function of q -> rows before it
OPEN, CLOSED, REACTION = 1e-12, 1e-11, 1e-10
DIFFERENCE = 1e-8  # central differences of step 1e-5 to 1e-6 on numbers of order one


def mechanism(m: dict[str, Any]) -> Robot:
    """A mechanism of the file as a Robot."""
    b = drevo.Builder(m["name"], gravity=m["gravity"])
    for i, x in enumerate(m["bodies"]):
        t, parent = x["theta"], x["parent"]
        b.body(
            f"b{i}", "world" if parent < 0 else f"b{parent}", {"R": "revolute", "P": "prismatic"}[x["type"]],
            np.eye(3)[x["axis"]], x["offset"], rx(t[0]) @ ry(t[1]) @ rz(t[2]), mass=x["mass"], com=x["com"],
            inertia=x["inertia_com"] if x["mass"] else None,
        )  # fmt: skip
    return b.robot()


def constraint_of(c: dict[str, Any]) -> Any:
    """A constraint of the file."""
    if "plane" in c["kind"]:
        planes = {
            "normal_rate": c["n1"],
            "offset": c["d0"],
            "offset_rate": c["d1"],
            "offset_acceleration": c["d2"],
        }
        return constraint.point_on_plane(f"b{c['body']}", c["point"], c["n0"], **planes)
    ends = (f"b{c['body_a']}", c["point_a"], f"b{c['body_b']}", c["point_b"])
    return constraint.weld(*ends) if c["kind"] == "weld" else constraint.point_to_point(*ends, rows=c.get("W"))


@pytest.mark.parametrize(("m", "c"), PAIRS, ids=lambda x: str(x.get("name", x.get("kind"))))
def test_zaremba(m: dict[str, Any], c: dict[str, Any]) -> None:
    """Gamma, gamma, accelerations, reactions; the constraint holds; inverse dynamics closes the loop."""
    r, q, v, tau = mechanism(m), m["q"], m["qd"], np.array(m["tau"])
    held = [constraint_of(c)]
    got = constrained_dynamics(r, q, v, tau, constraints=held)
    assert worst(got.jacobian, c["Gamma"]) <= OPEN and worst(got.gamma, c["gamma"]) <= OPEN
    assert worst(got.a, c["qdd"]) <= CLOSED and worst(got.reactions, c["N"]) <= REACTION
    assert worst(got.jacobian.T @ got.reactions, c["GammaT_N"]) <= REACTION
    assert got.rank == (3 if c["kind"] == "redundant" else len(c["gamma"]))
    assert max(abs(got.value).max(), abs(got.rate).max()) <= 1e-14
    back = constrained_inverse_dynamics(r, q, v, got.a, constraints=held)
    residual = r.inverse_dynamics(q, v, got.a) - back.tau - got.jacobian.T @ back.reactions
    assert abs(residual).max() <= REACTION and np.linalg.norm(back.tau) <= np.linalg.norm(tau) + REACTION


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: str(m["name"]))
def test_zaremba_open(m: dict[str, Any]) -> None:
    """M, bias, gravity, efforts, accelerations, energies of the same mechanisms."""
    r, q, v = mechanism(m), m["q"], m["qd"]
    assert worst(r.mass_matrix(q), m["M"]) <= OPEN and worst(r.bias(q, v), m["bias"]) <= OPEN
    assert worst(r.gravity(q), m["gravity_torque"]) <= OPEN
    assert worst(r.inverse_dynamics(q, v, m["qdd"]), m["tau_inverse"]) <= OPEN
    assert worst(r.forward_dynamics(q, v, m["tau"]), m["qdd_forward"]) <= OPEN
    assert worst(r.kinetic_energy(q, v), m["kinetic_energy"]) <= OPEN
    assert worst(r.potential_energy(q), m["potential_energy"]) <= OPEN


# -- every kind against differences of f -------------------------------------------------------------------


def every_constraint(r: Robot) -> list[Any]:
    """One of each kind on a robot with joints of every kind."""
    a, b = r.link_names[-1], r.link_names[-2]
    single = [j.name for j in r.model.moving_joints if j.nv == 1]
    W = ((1, 2, 0), (0, 1, -1), (1, 3, -1))

    def given(pose: Any, q: Any, t: Any) -> list[Any]:
        T, S = pose(a), pose(b)
        return [T[0][3] * drevo.sin(t) + q[0] * q[0], (T[1][2] + 2.0) / (3.0 + np.cos(S[2][1])) - t * t]

    return [
        constraint.contact(a, (0.1, 0.2, 0.3), 6, anchor=(0.3, 0.1, 0)),
        constraint.point_on_plane(a, (0.1, 0, 0.2), (0.3, 0.5, 1), (0.1, -0.4, 0.2), 0.3, -0.2, 0.7),
        constraint.point_to_point(a, (0.1, 0.2, 0), b, (0, 0.3, 0.1)),
        constraint.point_to_point(a, (0.1, 0.2, 0), "world", (0, 0.3, 0.1), rows=W),
        constraint.distance(a, (0.1, 0.2, 0), b, (0.4, 0.3, 0.1), 0.5),
        constraint.gear(single[0], single[1], -2.5, 0.1),
        constraint.function(given, 2),
        constraint.pose_tracking(a, program, (0.1, 0.2, 0.3)),
        *(constraint.joint_closure(kind, a, (0.1, 0.2, 0), (1, 2, 3), b, (0.4, 0.3, 0.1), (2, -1, 0.3))
          for kind in ("revolute", "cylindrical", "universal")),
        constraint.joint_closure("prismatic", a, (0.1, 0.2, 0), (1, 2, 3), b, (0.4, 0.3, 0.1), None, TURN),
    ]  # fmt: skip


TURN = rx(0.3) @ ry(-0.4)


def program(t: Any) -> list[list[Any]]:
    """A turn about a fixed axis with a rising speed, on a parabola."""
    s, c = drevo.sin(t * t + 0.3), drevo.cos(t * t + 0.3)
    return [[c, -s, 0.0, 0.1 * t], [0.0, 0.0, -1.0, 0.2 * t * t], [s, c, 0.0, 0.3], [0.0, 0.0, 0.0, 1.0]]


@cache
def differences(base: str) -> tuple[list[slice], Any, Array, Array, Array]:
    """Of one constraint of every kind: the rows of each, their terms; by differences Gamma, f' and f''."""
    r = Robot(all_kinds(base))
    q, v, _ = state(r.model, 5)
    t, h = 0.4, 1e-6
    found = collection.collect(r.model, None, every_constraint(r))
    ends = np.cumsum([0, *(c.size for c in found)])
    steps = np.concatenate([np.eye(r.nv), -np.eye(r.nv)]) * h
    f = constraint_terms(r, found, r.integrate(q, steps), np.zeros(r.nv), t).value
    times = np.array([h, -h])
    path = constraint_terms(r, found, r.integrate(q, times[:, None] * v), v, t + times)
    rates = ((y[0] - y[1]) / (2 * h) for y in (path.value, path.rate))
    rows = list(map(slice, ends[:-1], ends[1:]))
    return rows, constraint_terms(r, found, q, v, t), (f[: r.nv] - f[r.nv :]).T / (2 * h), *rates


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", range(12))
def test_against_differences(base: str, kind: int) -> None:
    """Gamma = df/dq on the tangent space, f' = Gamma v + f_t, gamma = f'' at a = 0."""
    rows, x, jacobian, rate, gamma = differences(base)
    at = rows[kind]
    held = slice(at.start, at.start + ORIENTED[kind]) if kind in ORIENTED else at  # at the rate only: orientation
    assert worst(x.jacobian[held], jacobian[held]) <= DIFFERENCE
    assert worst(x.rate[held], rate[held]) <= DIFFERENCE
    assert worst(x.gamma[at], gamma[at]) <= DIFFERENCE


def test_pose_tracking() -> None:
    """A free box on a programmed pose: its twist and rates are met, small gaps are seen."""
    r, t = block(), 0.7
    q = np.concatenate([[0.07, 0.2 * t * t, 0.3], quaternion(np.array(program(t))[:3, :3].astype(float))])
    held = [constraint.pose_tracking("box", program)]
    v = np.zeros(6)
    c = constraint_terms(r, tuple(held), q, v, t)
    assert abs(c.value).max() <= 1e-15
    v = -np.linalg.solve(c.jacobian, c.rate)
    got = constrained_dynamics(r, q, v, np.zeros(6), constraints=held, t=t, stabilise=(4.0, 4.0))
    assert worst(r.velocity(q, v, "box"), [0.1, 0.4 * t, 0, 0, -2 * t, 0]) <= 1e-14
    assert worst(r.acceleration(q, v, got.a, "box"), [0, 0.4, 0, 0, -2, 0]) <= 1e-14
    dv = 1e-5 * np.arange(1.0, 7.0)
    moved = constraint_terms(r, tuple(held), r.integrate(q, dv), v, t)
    assert worst(1e5 * moved.value, 1e5 * c.jacobian @ dv) <= 1e-3


def quaternion(R: Array) -> Array:
    return np.array(pin.Quaternion(R).coeffs())


def test_floats_and_nodes_agree() -> None:
    """The same source on plain floats is the reference of the compiled function."""
    r = Robot(all_kinds("floating"))
    q, v, _ = state(r.model, 1)
    found = collection.collect(r.model, None, every_constraint(r))
    x = constraint_terms(r, found, q, v, 0.3)
    rows = collection.all_rows(found, Kinematics(build_tree(r.model), q.tolist(), v.tolist()), 0.3)
    for compiled, plain in zip(x, rows):
        assert worst(compiled, np.array(plain, float)) <= 1e-13


# -- random robots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(3, 8))
def test_dense_kkt(seed: int) -> None:
    """Random robots with contacts, against the dense block equations and frame Jacobians."""
    r = Robot(robot(seed, n=5, base="floating"))
    q, v, tau = state(r.model, seed)
    link = r.link_names[-1]
    got = constrained_dynamics(r, q, v, tau, contacts=[{"link": link, "point": (0, 0, 0), "rows": 3}])
    J = r.jacobian(q, link)[:3]
    assert worst(got.jacobian, J) <= 1e-12
    assert worst(got.gamma, r.acceleration(q, v, np.zeros(r.nv), link)[:3]) <= 1e-12
    kkt = np.block([[r.mass_matrix(q), -J.T], [J, np.zeros((3, 3))]])
    solution = np.linalg.solve(kkt, np.concatenate([tau - r.bias(q, v), -got.gamma]))
    tolerance = 1e-15 * float(np.linalg.cond(kkt)) + 1e-11
    assert worst(got.a, solution[: r.nv]) <= tolerance and worst(got.reactions, solution[r.nv :]) <= tolerance


@pytest.mark.parametrize(("seed", "rows"), [(k, 3 + 3 * (k % 2)) for k in range(4)])
def test_pinocchio(seed: int, rows: int) -> None:
    """pin.constraintDynamics on robots standing on a link, at velocities that keep the contact."""
    r = Robot(robot(seed, kinds=("revolute", "prismatic"), n=7, base="floating", mimics=0.0))
    q, v, tau = state(r.model, seed)
    point = np.array([0.1, -0.2, 0.3])
    contact = [{"link": r.link_names[-1], "point": point, "rows": rows}]
    v = impact(r, q, v, contacts=contact).v
    got = constrained_dynamics(r, q, v, tau, contacts=contact)
    a = of_pinocchio(pinocchio_of(r.model), r.link_names[-1], point, rows, q, v, tau)
    assert worst(got.a, a) <= 1e-9


def of_pinocchio(p: Pinocchio, link: str, point: Array, rows: int, q: Array, v: Array, tau: Array) -> Array:
    frame = p.model.frames[p.model.getFrameId(link)]
    kind = pin.ContactType.CONTACT_3D if rows == 3 else pin.ContactType.CONTACT_6D
    at = frame.placement * pin.SE3(np.eye(3), point)
    held, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    held.append(pin.RigidConstraintModel(kind, p.model, frame.parentJoint, at, pin.LOCAL))
    data.append(held[0].createData())
    pin.initConstraintDynamics(p.model, p.data, held, data)
    full = np.linalg.solve(p.G.T, tau)
    settings = pin.ProximalSettings(1e-14, 1e-14, 20)
    a = pin.constraintDynamics(p.model, p.data, p.configuration(q), p.G @ v, full, held, data, settings)
    return np.asarray(p.G.T @ a)


def test_batches() -> None:
    """Leading dimensions broadcast over q, v, tau and t."""
    r = Robot(all_kinds("floating"))
    q, v, tau = state(r.model, 3)
    held = every_constraint(r)[1:3]
    shift = np.random.default_rng(0).normal(size=(4, 1, r.nv))
    many = constrained_dynamics(r, q, v + 0 * shift, tau + shift, constraints=held, t=np.array([0.0, 0.1]))
    assert many.a.shape == (4, 2, r.nv) and many.reactions.shape == (4, 2, 4) and many.rank.shape == (4, 2)
    one = constrained_dynamics(r, q, v, tau + shift[2, 0], constraints=held, t=0.1)
    assert worst(many.a[2, 1], one.a) <= 1e-12 and worst(many.reactions[2, 1], one.reactions) <= 1e-12


# -- what reactions mean, dependent and contradictory sets -------------------------------------------------


def block() -> Robot:
    """A free box of 2 kg."""
    b = drevo.Builder("box")
    b.body("box", joint="free", mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]))
    return b.robot()


def on_floor(**extra: Any) -> Any:
    return constraint.point_on_plane("box", (0, 0, 0), (0, 0, 1), **extra)


def still(r: Robot) -> tuple[Array, Array]:
    return r.neutral(), np.zeros(r.nv)


def test_weight_on_the_floor() -> None:
    """N is positive along the gradient: a mass on a floor gets +m g; a foot carries a moment too."""
    r = block()
    q, v = still(r)
    assert worst(constrained_dynamics(r, q, v, v, constraints=[on_floor()]).reactions, [2 * 9.81]) <= 1e-14
    got = constrained_dynamics(r, q, v, v, contacts=[{"link": "box", "point": (0.5, 0, 0), "rows": 6}])
    assert worst(got.reactions, [0, 0, 2 * 9.81, 0, 2 * 9.81 * 0.5, 0]) <= 1e-14 and abs(got.a).max() <= 1e-14
    pushed = constrained_dynamics(r, q, v, v, constraints=[on_floor()], f_ext={"box": [0, 0, 5, 0, 0, 0]})
    assert worst(pushed.reactions, [2 * 9.81 - 5]) <= 1e-14


def test_redundant_contacts() -> None:
    """The same foot twice: rank 6 of 12, halves of the reaction, the same acceleration."""
    r = block()
    q, v = still(r)
    v = np.arange(6.0)
    foot = {"link": "box", "point": (0.1, 0.2, 0.3), "rows": 6}
    one, two = (constrained_dynamics(r, q, v, np.ones(6), contacts=[foot] * n) for n in (1, 2))
    assert one.rank == two.rank == 6 and worst(one.a, two.a) <= 1e-12
    assert worst(two.reactions, np.tile(one.reactions / 2, 2)) <= 1e-12


def test_lost_rank_is_reported() -> None:
    """A stretched two-link arm cannot move its tip outwards: rank 1 of 2, finite numbers."""
    b = drevo.Builder("stretched", gravity=(0, 0, 0))
    b.body("a", axis=(0, 0, 1), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3) * 0.1)
    b.body("b", "a", axis=(0, 0, 1), origin=(1, 0, 0), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3) * 0.1)
    r = b.robot()
    tip = constraint.point_to_point("b", (1, 0, 0), "world", (2, 0, 0))
    got = constrained_dynamics(r, [0.0, 0.0], [0.0, 0.0], [1.0, -1.0], constraints=[tip])
    assert got.rank == 1 and np.all(np.isfinite(got.reactions)) and abs(got.jacobian @ got.a).max() <= 1e-14
    with pytest.raises(drevo.NumericsError, match=r"point_to_point\(b, world\)\[0\] by .* m/s\^2"):
        constrained_dynamics(r, [0.0, 0.0], [1.0, -2.0], [0.0, 0.0], constraints=[tip])


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"offset": 0.0}, {"offset": 0.25}, r"point_on_plane\(box\)\[0\] by 0.125 m,"),
        ({"offset_rate": 1.0}, {"offset_rate": 3.0}, "by 1 m/s,"),
        ({"offset_acceleration": 0.0}, {"offset_acceleration": 4.0}, r"by 2 m/s\^2"),
    ],
)
def test_contradictions(one: dict[str, float], other: dict[str, float], words: str) -> None:
    """Two floors at different heights, speeds or accelerations: which rows, by how much."""
    r = block()
    q, v = still(r)
    with pytest.raises(drevo.NumericsError, match=words):
        constrained_dynamics(r, q, v, v, constraints=[on_floor(**one), on_floor(**other)])
    with pytest.raises(drevo.NumericsError, match="in row 1 of the batch"):
        late = [on_floor(), on_floor(normal_rate=(0, 0, 1e-3), offset_rate=2e-3)]
        q = np.stack([q, q])
        q[1, 2] = 1.0
        constrained_dynamics(r, q, v, v, constraints=late, t=np.array([0.0, 1.0]))


@pytest.mark.parametrize("gains", [(3.0, 2.0), ([[3.0]], [[2.0]]), ([3.0], [2.0])])
def test_stabilisation(gains: Any) -> None:
    """f'' + damping f' + stiffness f = 0 for gains as numbers, per row, or matrices."""
    r = block()
    q, v = still(r)
    q[2], v = 0.4, np.arange(6.0)
    held = [constraint.point_on_plane("box", (0.1, 0.2, 0.3), (0, 0.6, 0.8), offset=0.1)]
    got = constrained_dynamics(r, q, v, v, constraints=held, stabilise=gains)
    f2 = got.jacobian @ got.a + got.gamma
    assert worst(f2 + 3.0 * got.rate + 2.0 * got.value, [0.0]) <= 1e-13 and abs(got.value[0]) > 0.1


def two_bodies() -> Robot:
    b = drevo.Builder("two", gravity=(0, 0, 0))
    for name in ("a", "b"):
        b.body(name, joint="free", mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
    return b.robot()


def test_weld_holds_the_orientation_of_a_configuration() -> None:
    """at=q: the turn there is what stabilisation returns to."""
    r = two_bodies()
    rng = np.random.default_rng(0)
    q, v = r.random(rng), np.zeros(r.nv)
    held = [constraint.weld("a", (0.1, 0, 0), "b", (0, 0.2, 0), at=q)]
    first = constrained_dynamics(r, q, v, v, constraints=held, stabilise=(2.0, 1.0))
    assert abs(first.value[3:]).max() <= 1e-15
    d = 1e-4 * rng.normal(size=r.nv)
    moved = r.integrate(q, d)
    second = constrained_dynamics(r, moved, v, v, constraints=held, stabilise=(2.0, 1.0))
    turn = r.pose(q, "a")[:3, :3] @ d[3:6] - r.pose(q, "b")[:3, :3] @ d[9:12]
    assert worst(second.value[3:] * 1e4, turn * 1e4) <= 1e-3


def test_weld_without_an_orientation_remembers_nothing() -> None:
    """rotation=None: the same call gives the same, whatever was called before; each row keeps its own turn."""
    r = two_bodies()
    q = r.random(np.random.default_rng(1), 3)
    v = np.zeros((3, r.nv))
    held = [constraint.weld("a", (0.1, 0, 0), "b", (0, 0.2, 0))]
    given: Any = {"constraints": held, "stabilise": (2.0, 1.0)}
    many = constrained_dynamics(r, q, v, v, **given)
    assert abs(many.value[:, 3:]).max() <= 1e-15
    met = hold(r, q, v, constraints=held)[0]
    for k in (2, 0, 1):
        one, fresh = (constrained_dynamics(x, q[k], v[k], v[k], **given) for x in (r, two_bodies()))
        assert np.array_equal(one.a, fresh.a) and worst(many.a[k], one.a) <= 1e-12
        for found in (met[k], r.assemble(q[k], constraints=held), two_bodies().assemble(q[k], constraints=held)):
            assert worst(turned(r, found), turned(r, q[k])) <= 1e-11


def turned(r: Robot, q: Array) -> Array:
    return np.asarray(r.pose(q, "a")[:3, :3].T @ r.pose(q, "b")[:3, :3])


def test_contacts_stay_where_they_are_while_others_close() -> None:
    """hold and assemble keep the place of a contact and the orientation of a foot that have no anchor."""
    r = drevo.load("biped", base="floating")
    q, v = r.integrate(r.neutral(), 0.1 * np.random.default_rng(2).normal(size=r.nv)), np.zeros(r.nv)
    foot = [{"link": "left_foot", "point": (0.02, 0.03, 0), "rows": 6}]
    away = r.pose(q, "right_foot")[:3, 3] + (0.05, 0.03, 0.08)
    reach = [constraint.point_to_point("right_foot", (0, 0, 0), "world", away)]
    for x in (hold(r, q, v, contacts=foot, constraints=reach)[0], r.assemble(q, contacts=foot, constraints=reach)):
        assert worst(r.pose(x, "left_foot"), r.pose(q, "left_foot")) <= 1e-11
        assert worst(r.pose(x, "right_foot")[:3, 3], away) <= 1e-11


def test_loops_of_the_robot() -> None:
    """Loops of a Builder hold without being named; a four-bar moves with one freedom."""
    b = drevo.Builder("four-bar", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.eye(3) * 0.1}
    b.body("crank", axis=(0, 0, 1), **rod)
    b.body("coupler", "crank", axis=(0, 0, 1), origin=(1, 0, 0), **rod)
    b.body("rocker", axis=(0, 0, 1), origin=(1, 0, 0), **rod)
    b.loop("point", "coupler", (1, 0, 0), "rocker", (1, 0, 0))
    r = b.robot()
    q = np.array([math.pi / 2, -math.pi / 2, math.pi / 2])
    got = constrained_dynamics(r, q, np.array([0.3, -0.3, 0.3]), np.zeros(3))
    assert abs(got.value).max() <= 1e-15 and abs(got.rate).max() <= 1e-15
    assert got.rank == 2 and worst(got.a[0], got.a[2]) <= 1e-13 and worst(got.a[1], -got.a[0]) <= 1e-13
    back = constrained_inverse_dynamics(r, q, [0.3, -0.3, 0.3], got.a, actuated=["crank_joint"])
    assert (
        abs(back.tau).max() <= 1e-13
        and worst(back.jacobian.T @ back.reactions, got.jacobian.T @ got.reactions) <= 1e-12
    )


def test_hold() -> None:
    """A gap and a wrong velocity are projected away; what cannot be met is said."""
    r = Robot(all_kinds("floating"))
    q, v, _ = state(r.model, 5)
    a, b = r.link_names[-1], r.link_names[-2]
    T, S = r.pose(q, a), r.pose(q, b)
    gap = S[:3, :3].T @ (T[:3, 3] + [0.02, -0.01, 0.03] - S[:3, 3])
    held = [
        constraint.point_to_point(a, (0, 0, 0), b, gap),
        constraint.point_on_plane(a, (0.1, 0, 0), (0, 0, 1), offset=T[2, 3]),
    ]
    x, u = hold(r, q, v, constraints=held)
    c = constraint_terms(r, tuple(held), x, u)
    assert abs(c.value).max() <= 1e-12 and abs(c.rate).max() <= 1e-12 and abs(r.difference(q, x)).max() < 0.5
    with pytest.raises(drevo.NumericsError, match=r"distance\(world, box\)\[0\] is still off by"):
        far = [constraint.distance("world", (0, 0, 0), "box", (0, 0, 0), 1.0), on_floor(offset=3.0)]
        hold(block(), [0.1, 0.2, 2.0, 0, 0, 0, 1], np.zeros(6), constraints=far)


def test_no_constraints() -> None:
    """An empty set is plain dynamics."""
    r = Robot(all_kinds("floating"))
    q, v, tau = state(r.model, 2)
    got = constrained_dynamics(r, q, v, tau)
    assert worst(got.a, r.forward_dynamics(q, v, tau)) <= 1e-10 and got.reactions.shape == (0,) and got.rank == 0


# -- inverse dynamics and impacts --------------------------------------------------------------------------


def test_standing_biped() -> None:
    """Two feet on the ground at rest: base rows are free of drives, the feet carry the weight."""
    r = drevo.load("biped", base="floating")
    feet = [{"link": x, "point": (0, 0, 0), "rows": 6} for x in ("right_foot", "left_foot")]
    q, v = still(r)
    got = constrained_inverse_dynamics(r, q, v, v, contacts=feet)
    assert np.all(got.tau[:6] == 0.0)
    residual = r.gravity(q) - got.tau - got.jacobian.T @ got.reactions
    assert abs(residual).max() <= 1e-10
    weight = 9.81 * sum(l.inertial.mass for l in r.model.links if l.inertial)
    assert worst(got.reactions[2] + got.reactions[8], weight) <= 1e-12
    forward = constrained_dynamics(r, q, v, got.tau, contacts=feet)
    assert abs(forward.a).max() <= 1e-10 and forward.rank == 12


def test_impact() -> None:
    """A landing: the contact stops, energy falls by what the impulse takes, M (v+ - v) = Gamma^T impulse."""
    r = drevo.load("biped", base="floating")
    q, v, _ = state(r.model, 4)
    foot = [{"link": "right_foot", "point": (0, 0, 0), "rows": 6}]
    got = impact(r, q, v, contacts=foot)
    J = constrained_dynamics(r, q, v, v, contacts=foot).jacobian
    assert abs(J @ got.v).max() <= 1e-12
    M = r.mass_matrix(q)
    assert worst(M @ (got.v - v), J.T @ got.impulses) <= 1e-11
    lost = 0.5 * (v - got.v) @ M @ (v - got.v)
    assert worst(r.kinetic_energy(q, v) - r.kinetic_energy(q, got.v), lost) <= 1e-11
    back = impact(r, q, v, contacts=foot, restitution=1.0)
    assert (
        worst(J @ back.v, -J @ v) <= 1e-11 and worst(r.kinetic_energy(q, back.v), r.kinetic_energy(q, v)) <= 1e-11
    )


def test_trunk_in_gimbal_lock() -> None:
    """Pitch at a right angle is named; close to it the numbers still come."""
    r = drevo.load("biped", base="trunk")
    q, v = still(r)
    q[4] = 0.5 * math.pi
    for call in (
        lambda: constrained_dynamics(r, q, v, v),
        lambda: refuse_gimbal_lock(r.model, q),
        lambda: r.forward_dynamics(q, v, v),
        lambda: r.inverse_mass_matrix(q),
    ):
        with pytest.raises(drevo.NumericsError, match=r"gimbal lock: joint 'trunk_5' .* 1.57079633 rad.*floating"):
            call()
    with pytest.raises(drevo.NumericsError, match="in row 1 of the batch"):
        refuse_gimbal_lock(r.model, np.stack([0 * q, q]))
    q[4] = 1.5
    assert worst(constrained_dynamics(r, q, v, v).a, r.forward_dynamics(q, v, v)) <= 1e-9
    refuse_gimbal_lock(drevo.load("biped").model, q)
