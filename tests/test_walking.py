"""Walking: the plan by its equations; walks by the laws of contact and of momentum, and replayed in MuJoCo."""

from __future__ import annotations

import math
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from oracles import pinocchio_of
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import drevo
from drevo.errors import InputError, NumericsError
from drevo.model.description import Limit
from drevo.robot.face import Robot
from drevo.walking import DYNAMIC, GAITS, STATIC, Gait, Walk, draw, follow, hop, plan, walk
from drevo.walking.control import Follower
from drevo.walking.feet import hull, inside, legs, margin, off_stops, refuse_limits, soles_at, stand
from drevo.walking.gait import footholds, quintic, swing, yawed
from drevo.walking.ground import (
    least_friction,
    most_friction,
    needed,
    share,
    standing_point,
    total_wrench,
    zero_moment_point,
)
from drevo.walking.phase import GaitPlan
from drevo.walking.plan import pattern

Array = np.ndarray[Any, Any]
DOCS = Path(__file__).parent.parent / "docs"
BRISK = replace(DYNAMIC, name="brisk", length=0.2, single=0.4, double=0.1, settle=0.6)
HOLD, FRICTION = BRISK.dt / 2, 0.7


@cache
def robot() -> drevo.Robot:
    return drevo.load("biped", base="floating")


def mass() -> float:
    return float(sum(x.inertial.mass for x in robot().model.links if x.inertial))


def footless() -> drevo.Robot:
    b = drevo.Builder("ball")
    b.body("body", joint="free", mass=1.0, inertia=np.eye(3))
    return b.robot()


@cache
def planned() -> GaitPlan:
    return plan(robot(), 2, BRISK)


@cache
def walked() -> Walk:
    return walk(robot(), 2, BRISK)


@cache
def hopped() -> Walk:
    return follow(hop(robot()), gain=8.0)


# -- parts --------------------------------------------------------------------------------------------------


def test_quintic_meets_its_ends() -> None:
    start, end = (0.3, -0.2, 1.0), (-0.1, 0.5, -2.0)
    x = quintic(start, end, 0.7, np.array([0.0, 0.7]))
    np.testing.assert_allclose(x.T, [start, end], atol=1e-13)


def test_pattern_is_a_spline_of_the_pendulum() -> None:
    """c - pole c'' = p, and c, c', c'' are those of one cubic between any two ticks."""
    p = np.random.default_rng(1).normal(size=(60, 2))
    tick, pole = 0.01, 0.08
    c, v, a = pattern(p, tick, pole)
    np.testing.assert_allclose(c - pole * a, p, atol=1e-12)
    np.testing.assert_allclose(v[1:], v[:-1] + tick / 2 * (a[1:] + a[:-1]), atol=1e-9)
    np.testing.assert_allclose(c[1:], c[:-1] + tick * v[:-1] + tick**2 / 6 * (2 * a[:-1] + a[1:]), atol=1e-12)


def test_polygon() -> None:
    """Corners as SciPy's hull; the margin is the distance to the nearest edge, by sampling the edges."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(40, 2))
    corners = hull(points)
    assert {tuple(x) for x in corners} == {tuple(x) for x in points[ConvexHull(points).vertices]}
    inside = corners.mean(axis=0) + 0.1 * rng.normal(size=(20, 2))
    s = np.linspace(0.0, 1.0, 2001)[:, None]
    border = np.concatenate([a + s * (b - a) for a, b in zip(corners, np.roll(corners, -1, axis=0))])
    nearest = np.linalg.norm(inside[:, None] - border, axis=-1).min(axis=1)
    np.testing.assert_allclose(margin(corners, inside), nearest, atol=1e-5)
    assert margin(corners, np.array([50.0, 0.0])) < 0.0


def test_a_point_is_moved_into_a_polygon() -> None:
    """So far from the edges; one that is inside stays, and beside an edge the nearest is found."""
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    given = np.array([[0.3, -0.2], [3.0, 0.5], [-2.0, 7.0]])
    np.testing.assert_allclose(inside(square, given, 0.1), [[0.3, -0.2], [0.9, 0.5], [-0.9, 0.9]], atol=1e-15)


@pytest.mark.parametrize("rise", [0.0, 0.05])
def test_swing_lands_with_its_speed(rise: float) -> None:
    start, end = np.array([0.0, 0.1, 0.0, 0.1]), np.array([0.4, 0.1, rise, 0.3])
    x, v, a = swing(DYNAMIC, start, end, 50)
    np.testing.assert_allclose(x[[0, -1]], [start, end], atol=1e-15)
    np.testing.assert_allclose(v[-1], [0.0, 0.0, -DYNAMIC.landing, 0.0], atol=1e-12)
    assert np.abs(a[[0, -1]]).max() <= 1e-10 and np.isclose(x[:, 2].max(), rise + DYNAMIC.lift)
    assert x[1:-1, 2].min() > 0.0


def test_footholds() -> None:
    """Right, left, right: each ahead of the other, the last one beside it."""
    start = np.array([[0.0, -0.1, 0.0, 0.0], [0.0, 0.1, 0.0, 0.0]])
    found = footholds(start, 4, replace(DYNAMIC, rise=0.05))
    assert [(i, *x[[0, 2]]) for i, x in found] == [
        (0, 0.25, 0.0),
        (1, 0.5, 0.05),
        (0, 0.75, 0.05),
        (1, 0.75, 0.05),
    ]
    found = footholds(start, 4, replace(DYNAMIC, turn=0.3))
    np.testing.assert_allclose([x[3] for _, x in found], [0.3, 0.6, 0.9, 0.9])
    between = (found[2][1] - found[3][1])[:2]  # they end side by side, at a right angle to their heading
    np.testing.assert_allclose(between, 0.2 * np.array([math.sin(0.9), -math.cos(0.9)]), atol=1e-12)


def test_shares_add_up_and_do_not_pull() -> None:
    """Weights split over two feet give the wrench back; each part pushes while the whole does."""
    rng = np.random.default_rng(3)
    middles = np.array([[0.0, -0.1, 0.0], [0.2, 0.1, 0.0]])
    wrench = rng.normal(size=(50, 6)) * 30.0 + np.array([0.0, 0.0, 600.0, 0.0, 0.0, 0.0])
    parts = share(wrench, middles)
    np.testing.assert_allclose(total_wrench(parts, middles), wrench, atol=1e-11)
    assert parts[..., 2].min() >= 0.0
    np.testing.assert_allclose(total_wrench(share(wrench, middles[:1]), middles[:1]), wrench, atol=1e-11)
    stairs = middles + np.array([[0.0], [0.05]]) * [0.0, 0.0, 1.0]
    np.testing.assert_allclose(total_wrench(share(wrench, stairs), stairs), wrench, atol=1e-11)
    p, part = standing_point(wrench, stairs)
    np.testing.assert_allclose(p, zero_moment_point(wrench, part @ stairs[:, 2]), atol=1e-12)


def test_stand_puts_the_soles_down() -> None:
    """Level soles at their places by Pinocchio's kinematics, for feet that are not turned like the pelvis."""
    two = legs(robot())
    pelvis = np.array([[0.02, 0.03, 0.72, 0.0], [0.0, -0.05, 0.7, 0.4]])
    places = np.zeros((2, 2, 4))
    places[..., :3] = [[[0.1, -0.11, 0.0], [-0.1, 0.11, 0.03]], [[0.0, -0.1, 0.0], [0.2, 0.1, 0.0]]]
    places[1, :, 3] = 0.2, 0.5
    oracle = pinocchio_of(robot().model)
    for q, where, base in zip(stand(robot(), two, pelvis, places), places, pelvis):
        for leg, place in zip(two, where):
            T = oracle.pose(q, link=leg.link)
            np.testing.assert_allclose(T[:3, :3] @ leg.middle + T[:3, 3], place[:3], atol=1e-11)
            np.testing.assert_allclose(T[:3, :3], yawed(place[3]) @ leg.upright, atol=1e-11)
            assert np.ptp(leg.sole(T)[:, 2]) <= 1e-11
        half = base[3] / 2
        np.testing.assert_array_equal(q[3:7], [0.0, 0.0, np.sin(half), np.cos(half)])


def test_soles_move_as_their_terms_say() -> None:
    """Rates and accelerations of the middles, by differences of their places along a motion."""
    rng, two, h = np.random.default_rng(4), legs(robot()), 1e-4
    q, v, a = robot().random(rng), rng.normal(size=robot().nv), rng.normal(size=robot().nv)
    ways = [robot().integrate(q, s * h * v + 0.5 * (s * h) ** 2 * a) for s in (-1.0, 1.0)]
    back, here, on = (soles_at(robot(), two, x, v) for x in (ways[0], q, ways[1]))
    np.testing.assert_allclose((on.places - back.places) / (2 * h), here.rate[..., :3], atol=1e-5)
    bend = (on.places - 2.0 * here.places + back.places) / h**2
    np.testing.assert_allclose(bend, (here.J @ a + here.gamma)[..., :3], atol=1e-3)


# -- the plan -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [{}, {"turn": 0.3}, {"rise": 0.05, "length": 0.25}])
def test_planned_rates_are_derivatives(way: dict[str, float]) -> None:
    """v and a of the ticks are the slopes of q between them, to the order of central differences."""
    for phase in plan(robot(), 3, replace(BRISK, **way)).phases:
        h = phase.tick
        slope = (phase.step[1:] + phase.step[:-1]) / (2 * h)
        bend = (phase.step[1:] - phase.step[:-1]) / h**2
        third = np.abs(np.diff(phase.a, axis=0)).max() / h
        assert np.abs(slope - phase.v[1:-1]).max() <= h**2 * third
        assert np.abs(bend - phase.a[1:-1]).max() <= h * third


def test_between_ticks_the_plan_is_smooth() -> None:
    """The polynomials meet the ticks and their own slopes."""
    phase = planned().phases[1]
    k, h = 7, phase.tick
    near, way, rate, a = phase.at(np.array(k * h + 1e-12))
    np.testing.assert_allclose(robot().integrate(near, way), phase.q[k], atol=1e-10)
    np.testing.assert_allclose(rate, phase.v[k], atol=1e-7)
    t, eps = 7.4 * h, 1e-5
    (_, x0, v0, _), (_, x1, v1, _) = phase.at(np.array(t - eps)), phase.at(np.array(t + eps))
    _, _, v, a = phase.at(np.array(t))
    np.testing.assert_allclose((x1 - x0) / (2 * eps), v, atol=1e-7)
    np.testing.assert_allclose((v1 - v0) / (2 * eps), a, atol=1e-4)


def test_plan_of_single_support_is_centred() -> None:
    """The corrections bring the robot's own zero-moment point below the middle of the sole, away from the ends."""
    for phase in planned().phases[1:-1:2]:
        tau = robot().inverse_dynamics(phase.q, phase.v, phase.a)
        p = zero_moment_point(needed(robot(), phase.q, tau))
        assert np.abs(p - planned().support(phase).middles[0, :2]).max() <= 2e-3


def test_plans_on_a_slope_lean_uphill() -> None:
    """The centre of mass is above the soles along gravity, and the wrench of the ground holds it there."""
    slope = 0.14
    made = plan(robot(), 2, replace(STATIC, slope=slope))
    assert made.margin > 0.04 and made.balance > 0.02
    first = made.robot.center_of_mass(made.phases[0].q[0])
    assert first[0] == pytest.approx(first[2] * math.tan(slope), abs=1e-3)
    force = made.reactions(made.phases[0])[0].sum(axis=0)[:3]
    assert np.linalg.norm(force) == pytest.approx(-mass() * robot().model.gravity[2], rel=1e-3)
    assert force[0] / force[2] == pytest.approx(math.tan(slope), rel=1e-3)


# -- a walk -------------------------------------------------------------------------------------------------


def test_a_walk_obeys_the_law_of_its_contacts() -> None:
    """Forces push and are in their cones, corners do not sink, the residual is small; nothing on the base."""
    w = walked()
    normal, along = w.forces[..., 2], np.linalg.norm(w.forces[..., :2], axis=-1)
    assert w.fell is None and normal.min() >= -1e-6 and (along - FRICTION * normal).max() <= 1e-4
    assert min(at[..., 2].min() for at, _ in w.soles) >= -1e-4 and w.residual.max() <= 1e-5
    before = np.concatenate([at[:-1, :, 2] for at, _ in w.soles], axis=1)  # a hold
    assert np.abs(w.forces[1:][np.minimum(before, np.roll(before, -1, 0)) > 1e-3]).max() <= 1e-6
    assert np.all(w.tau[:, :6] == 0.0) and np.allclose(np.diff(w.t), HOLD)


def test_a_walk_goes_where_it_was_planned() -> None:
    """The centre of mass within millimetres, the soles where they were to be put, at rest in the end."""
    w = walked()
    assert w.away <= 5e-3 and w.slip <= 1e-3
    for at, _ in w.soles:
        assert at[-1, :, 0].mean() == pytest.approx(BRISK.length, abs=2e-3)
    assert np.abs(w.v[-1]).max() <= 1e-3 and w.series("reactions").shape == (len(w.t), 2, 6)


def test_ground_gives_what_the_momentum_gains() -> None:
    """Pinocchio's momentum over swings: gravity and the forces at the corners, held from record to record."""
    w, oracle = walked(), pinocchio_of(robot().model)
    for phase in (x for x in w.plan.phases if len(x.stands) == 1):
        k = np.flatnonzero((w.t > phase.start + 0.1) & (w.t < phase.start + phase.duration - 0.05))
        first, last = (oracle.momentum(w.q[i], w.v[i])[:3] for i in (k[0], k[-1]))
        weight = mass() * np.array(robot().model.gravity)
        gained = HOLD * (w.forces[k[:-1]].sum(axis=(0, 1)) + (len(k) - 1) * weight)
        # what is recorded is the force of the last of five steps of a hold
        np.testing.assert_allclose(last - first, gained, atol=0.25)


def test_contacts_give_no_energy() -> None:
    """What the robot gains is at most what its drives do, but for the first order of the steps."""
    w = walked()
    energy = robot().kinetic_energy(w.q, w.v) + robot().potential_energy(w.q)
    done = HOLD * np.sum(w.tau[:-1] * (w.v[1:] + w.v[:-1]) / 2, axis=-1)
    assert np.cumsum(np.diff(energy) - done).max() <= 0.05


def test_errors_die_out() -> None:
    """After a push the capture point comes back like exp(-k w t) while the ground can push there."""
    w = follow(planned(), push=(0.0, 3.0))
    assert w.fell is None
    start = planned().middle.start + planned().middle.duration / 2
    most = np.abs(w.aside[:, 1]).max()
    after = np.abs(w.aside[w.t > start + 1.5, 1]).max()
    assert 5e-3 <= most <= 0.05 and after <= 0.1 * most


@pytest.mark.parametrize(("asked", "stands"), [
    ({"push": (0.0, 30.0)}, False),
    pytest.param({"patch": 0.0}, False, marks=pytest.mark.nightly),  # a compiled step each
    pytest.param({"patch": 0.5}, True, marks=pytest.mark.nightly),
    pytest.param({"law": "soft"}, True, marks=pytest.mark.nightly),
])  # fmt: skip
def test_a_walk_tells_whether_it_stands(asked: dict[str, Any], stands: bool) -> None:
    """Too strong a push and ice let it fall: the moment is told, what is recorded ends there, and is finite."""
    w = follow(planned(), **asked)
    assert (w.fell is None) == stands
    assert all(np.isfinite(w.series(x)).all() for x in ("q", "v", "tau", "reactions", "residual"))
    if not stands:
        assert w.fell == pytest.approx(w.t[-1] + HOLD) and w.fell > planned().phases[1].start
        with pytest.raises(NumericsError, match=r"the robot falls at t = .* s, its centre of mass"):
            w.refuse()


@pytest.mark.parametrize(("steps", "way"), [
    (2, {"turn": 0.3}),
    (3, {"rise": 0.05, "length": 0.25}),
    pytest.param(2, {"slope": -0.14}, marks=pytest.mark.nightly),  # another gravity: all is compiled anew
])  # fmt: skip
@pytest.mark.slow
def test_other_ways_are_walked(steps: int, way: dict[str, float]) -> None:
    """Turning, down eight degrees, up a step: on the plan within millimetres."""
    w = walk(robot(), steps, replace(BRISK, **way))
    assert w.fell is None and w.away <= 6e-3 and np.abs(w.v[-1]).max() <= 1e-3
    high = [at[-1, :, 2].mean() for at, _ in w.soles]
    np.testing.assert_allclose(high, way.get("rise", 0.0), atol=1e-3)
    q = w.q[-1]
    assert 2.0 * math.atan2(q[5], q[6]) == pytest.approx(way.get("turn", 0.0), abs=5e-3)


# -- MuJoCo -------------------------------------------------------------------------------------------------


def in_mujoco(made: GaitPlan, dt: float) -> tuple[Any, list[Any]]:
    """The robot on a plane, its soles as boxes, elliptic cones; (q, v, joint) by joint."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        spec = made.robot.to_mujoco()
    spec.option.timestep, spec.option.cone, spec.option.impratio = dt, mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    sliding = {"friction": [FRICTION, 0.0, 0.0], "condim": 3}
    plane, box = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_BOX
    spec.worldbody.add_geom(type=plane, size=[0, 0, 1], contype=1, conaffinity=2, **sliding)
    for leg in made.legs:
        up, thin = leg.upright[2], 0.005
        half = np.ptp(leg.corners, axis=0) / 2 + np.abs(up) * thin
        spec.body(leg.link).add_geom(
            type=box, size=half, pos=leg.middle + thin * up, mass=0.0,
            contype=2, conaffinity=1, solref=[0.005, 1.0], **sliding,
        )  # fmt: skip
    m = spec.compile()
    slots = made.robot.model.slices()
    return m, [(sq, sv, m.joint(0) if sv.start == 0 else m.joint(j.name)) for j, sq, sv in slots]


def mujoco_state(d: Any, slots: list[Any], nq: int, nv: int) -> tuple[Array, Array]:
    q, v, R = np.zeros(nq), np.zeros(nv), np.zeros(9)
    for sq, sv, joint in slots:
        a, b = joint.qposadr[0], joint.dofadr[0]
        q[sq], v[sv] = d.qpos[a : a + sq.stop - sq.start], d.qvel[b : b + sv.stop - sv.start]
    mujoco.mju_quat2Mat(R, q[3:7].copy())
    v[:3] = R.reshape(3, 3).T @ v[:3]
    q[3:7] = np.roll(q[3:7], -1)
    return q, v


@pytest.mark.parametrize("feedback", [True, False])
def test_the_same_walk_in_mujoco(feedback: bool) -> None:
    """Under the law it walks as far there, one-sided contact and all; the plan's drives alone let it fall."""
    made, r = planned(), robot()
    m, slots = in_mujoco(made, HOLD / 5)
    law, d = Follower(made, 20.0, HOLD, 1.0), mujoco.MjData(m)
    for sq, _, joint in slots:
        start = made.phases[0].q[0][sq]
        d.qpos[joint.qposadr[0] :][: len(start)] = start if len(start) == 1 else [*start[:3], 1.0, 0.0, 0.0, 0.0]
    lowest = np.inf
    for k, wish in enumerate(law.wishes):
        q, v = mujoco_state(d, slots, r.nq, r.nv)
        tau = law.efforts(k, q, v) if feedback else law.efforts(k, wish.motion.q, wish.motion.v)
        for _, sv, joint in slots[1:]:
            d.qfrc_applied[joint.dofadr[0]] = tau[sv.start]
        mujoco.mj_step(m, d, 5)
        lowest = min(lowest, q[2])
        if lowest < 0.5:
            break
    assert (lowest > 0.7) == feedback
    if feedback:
        np.testing.assert_allclose(q[:3], walked().q[-1, :3], atol=2e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("gait", GAITS)
def test_six_steps(gait: str) -> None:
    w = walk(robot(), 6, GAITS[gait])
    assert w.away <= 6e-3 and w.slip <= 1e-3 and w.plan.margin >= 0.045
    assert (w.plan.balance > 0.02) == (gait == STATIC.name)
    page = ET.parse(DOCS / f"biped-{gait}.svg").getroot()
    drawn = ET.fromstring(draw(w, f"biped: 6 steps, {gait} gait"))
    texts = [[x.text for x in root.iter() if x.text] for root in (page, drawn)]
    assert texts[0] == texts[1]


@pytest.mark.nightly
@pytest.mark.parametrize("gait", GAITS)
@pytest.mark.parametrize("way", [{}, {"turn": 0.26}, {"slope": 0.14}, {"rise": 0.05, "length": 0.25}])
def test_ten_steps(gait: str, way: dict[str, float]) -> None:
    w = walk(robot(), 10, replace(GAITS[gait], **way))
    assert w.fell is None and w.away <= 8e-3 and np.abs(w.v[-1]).max() <= 1e-3


@pytest.mark.nightly
def test_talos_walks() -> None:
    """A published robot, without contact points of its own."""
    found = next(f for f in metadata.files("example-robot-data") or () if f.name == "talos_reduced.urdf")
    sole = [(x, y, -0.107) for x in (-0.1, 0.12) for y in (-0.06, 0.06)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        talos = drevo.load(str(found.locate()), base="floating")
    w = walk(talos, 2, feet={"leg_right_6_link": sole, "leg_left_6_link": sole})
    assert w.fell is None and w.away <= 1e-2 and w.plan.margin >= 0.055


# -- flight -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_hop_flies_and_stands_again() -> None:
    """Push, flight, landing, standing: nothing carries in the air, the pelvis is upright in the end."""
    w = hopped()
    assert w.fell is None and w.away <= 1e-2 and w.plan.margin > 0.04
    flight = w.plan.phases[1]
    air = (w.t > flight.start + 0.02) & (w.t < flight.start + flight.duration - 0.02)
    assert np.all(w.forces[air] == 0.0) and np.isnan(w.series("zmp")[air]).all()
    assert (
        max(at[air, :, 2].min() for at, _ in w.soles) >= 0.0
        and max(at[air, :, 2].max() for at, _ in w.soles) > 0.02
    )
    assert 1.0 - w.q[-1, 6] <= 1e-4 and np.abs(w.v[-1]).max() <= 1e-2
    # both momenta are those of free fall, to the first order of the steps
    p = robot().momentum(w.q[air], w.v[air])
    lasted = np.ptp(w.t[air])
    np.testing.assert_allclose(
        p[-1] - p[0], [0.0, 0.0, mass() * robot().model.gravity[2] * lasted, 0.0, 0.0, 0.0], atol=0.05
    )


# -- refusals -----------------------------------------------------------------------------------------------


def test_refusals_of_plans() -> None:
    """Which leg and by how much; which foot pulls, at which sample; how far the zero-moment point is outside."""
    long = r"too long: the leg of 'right_foot' would have to be 0\.\d+ m .* 0\.\d+ m more than its 0\.7604 m"
    with pytest.raises(drevo.NumericsError, match=long):
        plan(robot(), 2, replace(DYNAMIC, length=0.5))
    with pytest.raises(
        drevo.NumericsError, match=r"foot '\w+' would pull the ground with .* N at t = .* \(sample"
    ):
        plan(robot(), 1, replace(DYNAMIC, single=0.1, lift=0.08))
    made = planned()
    support, reactions = made.support(made.phases[1]), made.reactions(made.phases[1])
    with pytest.raises(
        drevo.NumericsError, match=r"the test: the zero-moment point is 0\.\d+ m outside the soles"
    ):
        support.refuse(made.phases[1].t, reactions + np.array([0.0, 0.0, 0.0, 60.0, 0.0, 0.0]), "the test")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (lambda: walk(drevo.load("biped")), "has no free base to walk with; load it with base='floating'"),
        (lambda: walk(footless()), "has 0 feet with three or more"),
        (lambda: plan(robot(), 2, feet={"right_fot": [], "left_foot": []}), "did you mean 'right_foot'"),
        (lambda: plan(robot(), 2, feet={"torso": [(0, 0, 0)] * 3, "left_foot": [(0, 0, 0)] * 3}), "has 1 joints"),
        (lambda: plan(robot(), 2, feet={"right_foot": [(0, 0)] * 3, "left_foot": []}), "three finite numbers"),
        (lambda: plan(robot(), 0), "steps is 0"),
        (lambda: replace(DYNAMIC, lift=-0.1), "lift is -0.1; it must be a positive number"),
        (lambda: replace(DYNAMIC, single=0.505), "whole number of ticks"),
        (lambda: hop(robot(), 3.0), "0.02 to 0.5 s in the air"),
    ],
)  # fmt: skip
def test_refusals_of_input(asked: Any, told: str) -> None:
    with pytest.raises(drevo.DrevoError, match=told):
        asked()


# -- pictures -----------------------------------------------------------------------------------------------


def test_drawing_is_an_svg() -> None:
    root = ET.fromstring(draw(walked(), "two <brisk> steps"))
    space = "{http://www.w3.org/2000/svg}"
    texts = [x.text for x in root.iter(f"{space}text")]
    assert "two <brisk> steps" in texts and "right_knee" in texts and "normal force on the soles, N" in texts
    assert len(list(root.iter(f"{space}polyline"))) >= 2 + 4 + 2 + 3 + 12 + 2
    prints = len(list(root.iter(f"{space}polygon")))
    assert prints == 2 * 5 + 4  # the soles that stand, over time, forward and left; four places from above


def test_gaits_are_values() -> None:
    assert GAITS == {"static": STATIC, "dynamic": DYNAMIC} and isinstance(STATIC, Gait)


def test_friction_is_that_of_forces_at_the_corners() -> None:
    """Torsion asks for friction too: against linear programmes with cones of 48 sides, inside the true ones."""
    rng, way = np.random.default_rng(0), 2 * np.pi * np.arange(48) / 48
    for count in (3, 4, 4, 5, 6):
        corners = np.concatenate([0.1 * rng.normal(size=(count, 2)), np.zeros((count, 1))], 1)
        forces = np.concatenate([rng.normal(size=(count, 2)), rng.uniform(1.0, 4.0, (count, 1))], 1)
        wrench = np.concatenate([forces.sum(0), np.cross(corners, forces).sum(0)])
        found = float(least_friction(wrench[None], corners[None, :, :2])[0])
        assert found <= np.max(np.linalg.norm(forces[:, :2], axis=1) / forces[:, 2]) + 1e-6
        A = np.zeros((6, 3 * count))
        for k, c in enumerate(corners):
            A[:, 3 * k : 3 * k + 3] = np.vstack([np.eye(3), np.cross(c, np.eye(3)).T])

        def possible(mu: float, A: np.ndarray = A, b: np.ndarray = wrench, n: int = count) -> bool:
            rows = [np.eye(n)[k] for k in range(n)]
            G = np.array([np.kron(e, (np.cos(a), np.sin(a), -mu)) for e in rows for a in way])
            return bool(linprog(np.zeros(3 * n), G, np.zeros(len(G)), A, b, (None, None)).status == 0)

        assert possible(found * 1.0001) and not possible(found * 0.99)
    force = np.array([[3.0, 4.0, 50, 0, 0, 0], [0, 0, 50, 0, 0, 2], [0, 0, 5, 9, 0, 0]])
    square = np.tile([[-0.1, -0.1], [-0.1, 0.1], [0.1, 0.1], [0.1, -0.1]], (3, 1, 1))
    shear, turn, outside = least_friction(force, square)
    assert shear == pytest.approx(0.1) and turn == pytest.approx(2.0 / 50.0 / math.hypot(0.1, 0.1))
    assert outside == np.inf and most_friction(force[:2], square[:2]) == pytest.approx(turn)


def limited(robot: Robot, name: str, **limit: float) -> Robot:
    joints = tuple(replace(j, limit=Limit(**limit)) if j.name == name else j for j in robot.model.joints)
    return Robot(replace(robot.model, joints=joints))


@pytest.mark.parametrize(("limit", "words"), [
    ({"upper": 0.2}, "the brisk gait: joint {!r} would stand at .* rad at t = .* limit is 0.2 rad; move"),
    ({"lower": 1.9, "upper": 3.0}, "joint {!r} would stand at .* and its limit is 1.9 rad"),
    ({"velocity": 0.1}, "joint {!r} would move at .* rad/s at t = .*, and its limit is -?0.1 rad/s"),
])  # fmt: skip
def test_a_plan_keeps_the_limits_of_the_file(limit: dict[str, float], words: str) -> None:
    knee = robot().joint_names[int(legs(robot())[0].pitch[1]) - 5]
    with pytest.raises(NumericsError, match=words.format(knee)):
        replace(planned(), robot=limited(robot(), knee, **limit)).refuse()


def test_joints_that_are_held_stand_inside_their_range() -> None:
    """Landings shake an arm at its stop, and no walk may leave a range: the plan holds it off the stop."""
    biped = drevo.load("biped", base="floating")
    knee = biped.joint_names[3]
    at = next(sq.start for j, sq, _ in biped.model.slices() if j.name == knee)
    for lower, upper, right in ((0.0, 1.0, 1e-3), (-1.0, 0.0, -1e-3), (-1.0, 1.0, 0.0), (0.0, 1e-3, 1e-4)):
        assert off_stops(limited(biped, knee, lower=lower, upper=upper))[at] == pytest.approx(right)
    assert np.array_equal(off_stops(biped), biped.neutral())


def test_efforts_keep_the_limits_of_the_file() -> None:
    biped = drevo.load("biped", base="floating")
    knee = biped.joint_names[3]
    at = next(sv.start for j, _, sv in biped.model.slices() if j.name == knee)
    state = np.zeros((3, biped.nq)), np.zeros((3, biped.nv)), np.zeros((3, biped.nv))
    state[2][1, at] = -80.0
    refuse_limits(limited(biped, knee, effort=80.0), np.arange(3.0), "the walk", *state)
    refuse_limits(limited(biped, knee, effort=0.0, velocity=0.0), np.arange(3.0), "the walk", *state)
    with pytest.raises(NumericsError, match=f"joint {knee!r} would stand at"):
        refuse_limits(limited(biped, knee, upper=-9e-5), np.arange(3.0), "the walk", *state)
    with pytest.raises(NumericsError, match=f"joint {knee!r} would need -80 N m at t = 1 s .*limit is -79 N m"):
        refuse_limits(limited(biped, knee, effort=79.0), np.arange(3.0), "the walk", *state)


@pytest.mark.parametrize(("ask", "words"), [
    (lambda r: plan(r, 2, "hopping"), "gait 'hopping' is not known; there are static, dynamic, or give a Gait"),
    (lambda r: plan(r, 2, None), "gait None is not known"),
    (lambda r: plan(r, 2.0), "steps is 2.0"),
    (lambda r: plan("biped"), "walking takes a robot, as drevo.load gives it, not 'biped'"),
    (lambda r: plan(r, feet=5), "feet is 5; give"),
    (lambda r: plan(r, feet=["left_foot", "right_foot"]), "feet is .*; give"),
    (lambda r: plan(r, feet={"left_foot": "abc", "right_foot": 1}), "foot 'left_foot': a sole is three or more"),
    (lambda r: hop(r, "long"), "flight is 'long'"),
    (lambda r: walk(r, gain="x"), "gain is 'x'"),
    (lambda r: walk(r, gain=-1.0), "gain is -1.0"),
    (lambda r: walk(r, gain=1e300), "gain is 1e\\+300; it must be a positive number up to 1e\\+06 1/s"),
    (lambda r: walk(r, progress=5), "progress is 5; it must be a function"),
    (lambda r: replace(DYNAMIC, dt=1e-320), "single is 0.5 s; it must be a whole number of ticks .* from 4 to"),
    (lambda r: walk(r, law="stiff"), "law 'stiff' is not known"),
    (lambda r: walk(r, push=1.0), "push: N s along x and y"),
    (lambda r: walk(r, patch=-0.1), "patch is -0.1; it must be a coefficient of friction from 0"),
    (lambda r: walk(r, friction=-1.0), "friction is -1"),
    (lambda r: follow(planned(), law="soft", patch=0.1), "the soft law has no friction by place"),
    (lambda r: replace(DYNAMIC, slope=1.0), "slope is 1.0; it must be a number from -0.35 to 0.35"),
    (lambda r: plan(r, 2, replace(DYNAMIC, rise=0.05)), "rise is 0.05 m, and 2 steps do not go up; take three"),
    (lambda r: replace(DYNAMIC, rise=-0.05), "rise is -0.05; it must be a number from 0 to 0.2"),
    (lambda r: draw(None, "title"), "draw takes a walk and a title, not None"),
])  # fmt: skip
def test_wrong_arguments_of_walking(ask: Callable[[Robot], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(drevo.load("biped", base="floating"))


def test_a_gait_by_its_name() -> None:
    biped = drevo.load("biped", base="floating")
    assert plan(biped, 1, "dynamic").name == "the dynamic gait" == plan(biped, 1).name
