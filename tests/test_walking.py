"""Walking: the plan by its equations, reactions against Pinocchio, and what a walk and a hop promise."""

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

import numpy as np
import pinocchio as pin
import pytest
from oracles import pinocchio_of
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import drevo
from drevo.apps.walking import DYNAMIC, GAITS, STATIC, Gait, Walk, draw, follow, hop, plan, walk
from drevo.apps.walking.control import computed_torque
from drevo.apps.walking.feet import hull, legs, margin, stand
from drevo.apps.walking.friction import least_friction, most_friction
from drevo.apps.walking.gait import footholds, quintic, swing
from drevo.apps.walking.ground import needed, share, total_wrench, zero_moment_point
from drevo.apps.walking.limits import off_stops, refuse_limits
from drevo.apps.walking.phase import GaitPlan
from drevo.apps.walking.plan import pattern
from drevo.apps.walking.stepper import Stepper
from drevo.constrained.terms import constraint_terms
from drevo.errors import InputError, NumericsError
from drevo.model.description import Limit
from drevo.robot.face import Robot

Array = np.ndarray[Any, Any]
DOCS = Path(__file__).parent.parent / "docs"
BRISK = replace(DYNAMIC, name="brisk", length=0.2, single=0.4, double=0.1, settle=0.6)
TILL = 1e-9  # m: how far a standing sole may be from where it was put down


@cache
def robot() -> drevo.Robot:
    return drevo.load("biped", base="floating")


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


def test_swing_lands_with_its_speed() -> None:
    start, end = np.array([0.0, 0.1, 0.0]), np.array([0.4, 0.1, 0.0])
    x, v, a = swing(DYNAMIC, start, end, 50)
    np.testing.assert_allclose(x[[0, -1]], [start, end], atol=1e-15)
    np.testing.assert_allclose(v[-1], [0.0, 0.0, -DYNAMIC.landing], atol=1e-12)
    assert np.abs(a[[0, -1]]).max() <= 1e-10 and np.isclose(x[:, 2].max(), DYNAMIC.lift)
    assert x[1:-1, 2].min() > 0.0


def test_footholds() -> None:
    """Right, left, right: each ahead of the other, the last one beside it."""
    start = np.array([[0.0, -0.1, 0.0], [0.0, 0.1, 0.0]])
    assert [(i, x[0]) for i, x in footholds(start, 4, 0.25)] == [(0, 0.25), (1, 0.5), (0, 0.75), (1, 0.75)]


def test_shares_add_up_and_do_not_pull() -> None:
    """Weights split over two feet give the wrench back; each part pushes while the whole does."""
    rng = np.random.default_rng(3)
    middles = np.array([[0.0, -0.1, 0.0], [0.2, 0.1, 0.0]])
    wrench = rng.normal(size=(50, 6)) * 30.0 + np.array([0.0, 0.0, 600.0, 0.0, 0.0, 0.0])
    parts = share(wrench, middles)
    np.testing.assert_allclose(total_wrench(parts, middles), wrench, atol=1e-11)
    assert parts[..., 2].min() >= 0.0
    np.testing.assert_allclose(total_wrench(share(wrench, middles[:1]), middles[:1]), wrench, atol=1e-11)


def test_stand_puts_the_soles_down() -> None:
    """Level soles at their places by Pinocchio's kinematics, for feet that are not turned like the pelvis."""
    two = legs(robot())
    pelvis = np.array([[0.02, 0.03, 0.72], [0.0, -0.05, 0.7]])
    places = np.array([[[0.1, -0.11, 0.0], [-0.1, 0.11, 0.03]], [[0.0, -0.1, 0.0], [0.2, 0.1, 0.0]]])
    oracle = pinocchio_of(robot().model)
    for q, where in zip(stand(robot(), two, pelvis, places), places):
        for leg, place in zip(two, where):
            T = oracle.pose(q, link=leg.link)
            np.testing.assert_allclose(T[:3, :3] @ leg.middle + T[:3, 3], place, atol=1e-11)
            np.testing.assert_allclose(T[:3, :3], leg.upright, atol=1e-11)
            assert np.ptp(leg.sole(T)[:, 2]) <= 1e-11
        np.testing.assert_array_equal(q[3:7], [0.0, 0.0, 0.0, 1.0])


# -- the plan -----------------------------------------------------------------------------------------------


def test_planned_rates_are_derivatives() -> None:
    """v and a of the ticks are the slopes of q between them, to the order of central differences."""
    for phase in planned().phases:
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


# -- a walk -------------------------------------------------------------------------------------------------


def test_walk_keeps_its_promises() -> None:
    """Soles held, no foot pulls, the zero-moment point inside, feet where they were to go, nothing on the base."""
    w = walked()
    assert w.slip <= TILL and w.margin > 0.02 and w.least_push >= -1e-6 and w.friction < 0.5
    assert [x.foot for x in w.landings] == [0, 1] and len(w.stages) == 5
    assert np.all(w.series("tau")[:, :6] == 0.0)
    np.testing.assert_allclose(w.stages[-1].support.middles[:, 0], 0.2, atol=1e-4)
    assert np.abs(w.stages[-1].v[-1]).max() <= 1e-2
    t = w.series("t")
    assert np.all(np.diff(t) >= 0.0) and w.series("reactions").shape == (len(t), 2, 6)


def test_reactions_are_pinocchios() -> None:
    """Accelerations under the feet's six rows each, and what they carry: Pinocchio's constrained dynamics."""
    oracle = pinocchio_of(robot().model)
    for stage in walked().stages:
        k = len(stage.t) // 2
        q, v, tau = stage.q[k], stage.v[k], stage.tau[k]
        held = tuple(leg.held for leg in stage.support.legs)
        terms = constraint_terms(robot(), held, q, v)
        # the mass matrix and the bias are Pinocchio's; the rows have their own tests in test_constraints.py
        M, h, G = oracle.mass_matrix(q), oracle.bias(q, v), terms.jacobian
        n, m = len(v), len(G)
        system = np.block([[M, -G.T], [G, np.zeros((m, m))]])
        x = np.linalg.solve(system, np.concatenate([tau - h, -terms.gamma]))
        np.testing.assert_allclose(stage.reactions[k].ravel(), x[n:], atol=1e-6)


def test_ground_takes_what_the_momentum_changes() -> None:
    """The force and moment of all soles are the rate of Pinocchio's momentum, less the weight."""
    oracle, mass = pinocchio_of(robot().model), pin.computeTotalMass(pinocchio_of(robot().model).model)
    for stage in walked().stages[1:4]:
        k = len(stage.t) // 3
        q, v = stage.q[k], stage.v[k]
        a = robot().constrained_dynamics(q, v, stage.tau[k], contacts=[x.held for x in stage.support.legs]).a
        eps = 1e-5
        p = [
            oracle.momentum(robot().integrate(q, s * eps * v + 0.5 * eps**2 * a), v + s * eps * a) for s in (-1, 1)
        ]
        rate, c = (p[1] - p[0]) / (2 * eps), robot().center_of_mass(q)
        wrench = total_wrench(stage.reactions[k], stage.support.middles)
        weight = mass * np.array(robot().model.gravity)
        np.testing.assert_allclose(wrench[:3] + weight, rate[:3], atol=1e-3)
        np.testing.assert_allclose(wrench[3:] - np.cross(c, wrench[:3]), rate[3:], atol=1e-3)


def test_landing_is_an_impact() -> None:
    """M (v+ - v) = Gamma^T I, the sole stays, and energy is lost."""
    w = walked()
    for before, after, landing in zip(w.stages[1::2], w.stages[2::2], w.landings):
        q, v0, v1 = after.q[0], before.v[-1], after.v[0]
        terms = constraint_terms(robot(), tuple(leg.held for leg in w.legs), q, v1)
        assert np.abs(terms.rate).max() <= 1e-12
        change = robot().mass_matrix(q) @ (v1 - v0)
        np.testing.assert_allclose(change, terms.jacobian.T @ landing.impulses.ravel(), atol=1e-9)
        assert robot().kinetic_energy(q, v1) < robot().kinetic_energy(q, v0)
        assert landing.speed == pytest.approx(BRISK.landing, abs=1e-3)
        heights = w.legs[landing.foot].sole(robot().pose(q, w.legs[landing.foot].link))[:, 2]
        assert abs(heights.min()) <= 1e-12 and heights.max() <= 1e-6


def test_errors_die_out() -> None:
    """A robot that stands 1 cm beside its plan and moves: the gap shrinks like (1 + G t) exp(-G t)."""
    made, gain = planned(), 20.0
    phase = made.phases[0]
    support = made.support(phase)
    q0 = stand(robot(), made.legs, phase.q[0, :3] + np.array([0.01, -0.01, 0.0]), support.middles)
    put = np.array([robot().pose(q0, leg.link) for leg in made.legs])
    stepper = Stepper(robot(), made.legs, put, computed_torque(robot(), support, phase, gain))
    q, v, T = q0, np.zeros(robot().nv), 0.3
    for k in range(30):
        q, v = stepper.step(k * 0.01, q, v, 0.01)
    near, way, *_ = phase.at(np.array(T))
    left = np.linalg.norm(q[:3] - robot().integrate(near, way)[:3]) / np.hypot(0.01, 0.01)
    assert left <= 2.0 * (1 + gain * T) * np.exp(-gain * T)
    assert max(np.abs(g).max() for g in stepper.gaps(q)) <= 1e-11


@pytest.mark.nightly
@pytest.mark.parametrize("gait", GAITS)
def test_six_steps(gait: str) -> None:
    w = walk(robot(), 6, GAITS[gait])
    assert w.slip <= TILL and w.margin >= 0.045 and w.least_push >= -1e-6
    assert len(w.landings) == 6 and (w.balance > 0.02) == (gait == STATIC.name)
    page = ET.parse(DOCS / f"biped-{gait}.svg").getroot()
    drawn = ET.fromstring(draw(w, f"biped: 6 steps, {gait} gait"))
    texts = [[x.text for x in root.iter() if x.text] for root in (page, drawn)]
    assert texts[0] == texts[1]


@pytest.mark.nightly
def test_talos_walks() -> None:
    """A published robot, without contact points of its own."""
    found = next(f for f in metadata.files("example-robot-data") or () if f.name == "talos_reduced.urdf")
    sole = [(x, y, -0.107) for x in (-0.1, 0.12) for y in (-0.06, 0.06)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        talos = drevo.load(str(found.locate()), base="floating")
    w = walk(talos, 2, feet={"leg_right_6_link": sole, "leg_left_6_link": sole})
    assert w.slip <= TILL and w.margin >= 0.055 and w.least_push >= -1e-6 and len(w.landings) == 2


# -- flight -------------------------------------------------------------------------------------------------


def test_hop_flies_and_stands_again() -> None:
    """Push, flight, landing, standing: nothing pulls, nothing slips, the pelvis is upright in the end."""
    w = hopped()
    assert [s.stands for s in w.stages] == [(0, 1), (), (0, 1), (0, 1)]
    grounded = [s for s in w.stages if s.stands]
    assert min(s.reactions[..., 2].min() for s in grounded) > 0.0 and w.margin > 0.05 and w.slip <= TILL
    flight = w.stages[1]
    soles = [leg.sole(robot().pose(flight.q, leg.link))[..., 2].min(axis=-1) for leg in w.legs]
    assert np.min(soles) >= -1e-9 and np.max(soles) >= 0.02
    assert flight.reactions.shape[1] == 0 and np.isnan(flight.zmp).all()
    assert 1.0 - w.stages[-1].q[-1, 6] <= 1e-4 and {x.foot for x in w.landings} == {0, 1}


def test_free_fall_keeps_momentum() -> None:
    """p = p0 + m g t and L = L0 in flight: what is missing falls like the fourth power of the step."""
    w = hopped()
    flight, phase = w.stages[1], w.plan.phases[1]
    from drevo.apps.walking.control import leaning

    law = leaning(robot(), w.legs, flight.support, phase, 8.0)
    stepper = Stepper(robot(), (), np.zeros((0, 4, 4)), law)
    mass, T = sum(x.inertial.mass for x in robot().model.links if x.inertial), 0.1
    wrong = []
    for h in (5e-3, 2.5e-3, 1.25e-3):
        q, v = flight.q[0], flight.v[0]
        for k in range(round(T / h)):
            q, v = stepper.step(k * h, q, v, h)
        gained = robot().momentum(q, v) - robot().momentum(flight.q[0], flight.v[0])
        gained[:3] -= mass * T * np.array(robot().model.gravity)
        wrong.append(np.abs(gained).max())
    assert wrong[-1] <= 1e-4 and wrong[0] > 10 * wrong[1] > 100 * wrong[2]


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


def test_a_foot_that_does_not_land_is_named() -> None:
    """A plan whose foot ends 2 cm above the ground."""
    made = planned()
    high = made.phases[1]
    lifted = replace(made, phases=(replace(high, q=high.q + np.eye(20)[2] * 0.02), made.phases[2]))
    with pytest.raises(drevo.NumericsError, match=r"foot 'right_foot' has not touched the ground 0\.1 s after"):
        follow(lifted)


# -- pictures -----------------------------------------------------------------------------------------------


def test_drawing_is_an_svg() -> None:
    root = ET.fromstring(draw(walked(), "two <brisk> steps"))
    space = "{http://www.w3.org/2000/svg}"
    texts = [x.text for x in root.iter(f"{space}text")]
    assert "two <brisk> steps" in texts and "right_knee" in texts and "normal force on the soles, N" in texts
    assert len(list(root.iter(f"{space}polyline"))) >= 2 + 4 + 2 + 12 + 2
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
    ({"upper": 0.2}, "the dynamic gait: joint {!r} would stand at .* rad at t = .* limit is 0.2 rad; move"),
    ({"lower": 1.9, "upper": 3.0}, "joint {!r} would stand at .* and its limit is 1.9 rad"),
    ({"velocity": 0.1}, "joint {!r} would move at .* rad/s at t = .*, and its limit is -?0.1 rad/s"),
])  # fmt: skip
def test_a_plan_keeps_the_limits_of_the_file(limit: dict[str, float], words: str) -> None:
    biped = drevo.load("biped", base="floating")
    knee = biped.joint_names[int(legs(biped)[0].pitch[1]) - 5]
    with pytest.raises(NumericsError, match=words.format(knee)):
        plan(limited(biped, knee, **limit), 1)


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
    (lambda r: replace(DYNAMIC, tick=1e-320), "single is 0.5 s; it must be a whole number of ticks .* from 4 to"),
    (lambda r: draw(None, "title"), "draw takes a walk and a title, not None"),
])  # fmt: skip
def test_wrong_arguments_of_walking(ask: Callable[[Robot], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(drevo.load("biped", base="floating"))


def test_a_gait_by_its_name() -> None:
    biped = drevo.load("biped", base="floating")
    assert plan(biped, 1, "dynamic").name == "the dynamic gait" == plan(biped, 1).name
