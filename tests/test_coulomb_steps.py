"""Compiled steps under Coulomb's law: as the reference on arrays, and over times that it is too slow for."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from coulomb_cases import on_plane, touching_robot
from coulomb_on_arrays import step
from test_coulomb import G, block, boxes, closed, resting

import drevo
from drevo.codegen.call.function import Function
from drevo.compiler.trace import requested
from drevo.contact.laws.exact.derivative import ExactDerivative
from drevo.contact.laws.exact.kernel import moreau_program
from drevo.contact.laws.exact.problem import TouchingRobot, exact_robot
from drevo.contact.products import SPREAD_PREFIX, step_product_program
from drevo.mechanics.algorithms.delassus import ContactSlot, MoreauStep
from drevo.mechanics.spatial import Vec
from drevo.mechanics.tree import build_tree
from drevo.model.description import ContactPoint
from drevo.simulate.bouncing import simulate_bouncing

Array = np.ndarray[Any, Any]


def compiled(m: TouchingRobot, tolerance: float = 1e-9) -> Function:
    """Not kept on disk: its slots have functions that no key tells apart."""
    return requested(m.model, ("test",), lambda: moreau_program(m, tolerance), lasting=False)


def run(f: Function, q: Array, v: Array, steps: int) -> tuple[Array, Array, list[Array]]:
    """The last state, and the residuals of all steps."""
    worst = []
    tau = np.zeros_like(v)
    for _ in range(steps):
        q, v, _, r = f(q, v, tau)
        worst.append(r)
    return q, v, worst


@cache
def standing(name: str, limits: bool) -> tuple[drevo.Robot, TouchingRobot, Function]:
    """A quadruped on its feet, and its step, compiled once for all that ask."""
    robot = drevo.load(name, base="floating")
    tree = build_tree(robot.model)
    slots = [on_plane(tree, f, (0.0, 0.0, 0.0), 0.6) for f in FEET]
    m = touching_robot(robot.model, slots, MoreauStep(1e-3), limits)
    return robot, m, compiled(m)


FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")


def states(robot: drevo.Robot, home: list[float], count: int, knees: float = 0.0) -> tuple[Array, Array, Array]:
    """Feet near the ground, knees partly near their limits."""
    rng = np.random.default_rng(5)
    q0 = robot.neutral()
    q0[7:] = home
    dq = rng.uniform(-0.1, 0.1, (count, robot.nv))
    dq[:, :3] = 0.0
    q = robot.integrate(q0, dq)
    low = np.sort([robot.pose(q, link=f)[:, 2, 3] for f in FEET], 0)
    q[:, 2] -= low[rng.integers(0, 4, count), np.arange(count)]
    if knees:
        q[::3, 9::3] = knees + rng.uniform(0.0, 1e-3, (len(q[::3]), 4))
    tau = rng.normal(size=(count, robot.nv)) * 3.0 * (np.arange(robot.nv) > 5)
    return q, 0.5 * rng.normal(size=(count, robot.nv)), tau


@pytest.mark.parametrize(("name", "limits"), [("go2", True), ("go1", False)])
def test_a_compiled_step_is_the_reference(name: str, limits: bool) -> None:
    """Go2 with its limits, some of them reached; Go1 with dry friction in every joint."""
    robot, m, f = standing(name, limits)
    q, v, tau = states(robot, [0.0, 0.9, -1.8] * 4, 61, -2.7227 if limits else 0.0)
    found, wanted = f(q, v, tau), step(m, q, v, tau)
    for x, y, scale in zip(found, (wanted.q, wanted.v, wanted.forces, wanted.residual), (1.0, 10.0, 1e4, 1.0)):
        assert np.abs(x - y).max() < 3e-8 * scale
    assert found[3].max() <= 1e-9
    touching = (found[2][:, :, 2] > 0.0).sum(1)
    assert touching.min() < 2 and touching.max() == 4
    if limits:
        held = np.abs(np.asarray(wanted.solution.lam)[12:]).max(0) > 0.0
        assert 5 < held.sum() < 61


def test_the_rows_of_a_batch_do_not_know_each_other() -> None:
    robot, _, f = standing("go2", True)
    q, v, tau = states(robot, [0.0, 0.9, -1.8] * 4, 24, -2.7227)
    every = f(q, v, tau)
    for k in (0, 5, 21):
        for x, y in zip(f(q[k], v[k], tau[k]), every):
            assert np.array_equal(x, y[k])


def test_two_boxes_stand_for_ten_seconds() -> None:
    robot, slots = boxes(2, 0.1)
    f = compiled(touching_robot(robot.model, slots, MoreauStep(2e-3)))
    q = np.concatenate([[0.0, 0.0, 0.1 + 0.2 * k, 0.0, 0.0, 0.0, 1.0] for k in range(2)])
    last, _, residuals = run(f, q, np.zeros(12), 5000)
    assert np.abs(last - q).max() < 1e-6 and max(residuals) <= 1e-9


@pytest.mark.parametrize(("excess", "speed"), [(-1e-9, 8.774330595e-9), (1e-9, 0.0), (-0.2, 1.7548661487418353)])
def test_a_block_slides_at_exactly_the_tangent_for_a_second(excess: float, speed: float) -> None:
    a = math.atan(0.5)
    robot = block((G * math.sin(a), 0.0, -G * math.cos(a)))
    f = compiled(resting(robot, 0.5 + excess, 0.0, MoreauStep(1e-3)), 1e-15)
    _, v, _ = run(f, np.zeros(2), np.zeros(2), 1000)
    assert abs(v[0] - speed) < 1e-12 and abs(v[1]) < 1e-15


def test_a_bouncing_ball_comes_nearer_with_the_step() -> None:
    """The heights of its first two returns, 0.64 and 0.4096 m, to first order."""
    errors = []
    for h in (1e-3, 1e-4):
        f = compiled(resting(block((0.0, 0.0, -G)), 0.5, 0.0, MoreauStep(h, restitution=0.8)))
        q, v, z = np.array([0.0, 1.0]), np.zeros(2), [1.0]
        for _ in range(round(1.6 / h)):
            q, v, _, _ = f(q, v, np.zeros(2))
            z.append(q[1])
        up = np.array(z)
        errors.append(np.abs(up[1:-1][(up[1:-1] > up[:-2]) & (up[1:-1] >= up[2:])][:2] - [0.64, 0.4096]))
    assert (errors[0] < 2e-3).all() and (errors[1] < 2e-4).all()


def test_feet_of_four_points_each_by_newtons_method() -> None:
    """Talos on eight points, rank 12 of 24: 1000 wild states, all points on the ground."""
    robot = drevo.load("talos", base="floating")
    tree = build_tree(robot.model)
    soles = [tree.frames[f"{side}_sole_link"] for side in ("left", "right")]
    corners = [(f.body, f.p + f.R @ Vec(x, y, 0.0)) for f in soles for x in (0.1, -0.1) for y in (0.06, -0.06)]
    slots = [ContactSlot((-1, at[0]), partial(closed, *at), 0.6) for at in corners]
    f = compiled(TouchingRobot(robot.model, tuple(slots), (), MoreauStep(1e-3)))
    rng = np.random.default_rng(6)
    dq = rng.uniform(-0.3, 0.3, (1000, robot.nv))
    tau = 20.0 * rng.normal(size=(1000, robot.nv)) * (np.arange(robot.nv) > 5)
    *_, forces, residual = f(robot.integrate(robot.neutral(), dq), rng.normal(size=(1000, robot.nv)), tau)
    assert ((forces[:, :, 2] > 0.0).sum(1) >= 3).mean() > 0.3
    assert (residual <= 1e-9).mean() >= 0.999
    assert (np.hypot(forces[..., 0], forces[..., 1]) <= 0.6 * forces[..., 2] * (1.0 + 1e-6) + 1e-5).all()


BALL = """<mujoco><worldbody><body name="ball" pos="0 0 1"><freejoint/>
  <geom type="sphere" size="0.1" mass="1" friction="0.2 0 0"/></body></worldbody></mujoco>"""


def test_steps_of_a_model_by_its_own_geoms() -> None:
    """A ball with a sphere as collision shape: it rolls at 5/7, it bounces, it rolls on a slope."""
    robot, q = drevo.load(BALL), np.array([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    f = drevo.compile(robot, "step", dt=1e-3, law="coulomb", method="moreau")
    _, v, residuals = run(f, q, np.eye(6)[0], 200)
    assert abs(np.linalg.norm(v[:3]) - 5.0 / 7.0) < 1e-9 and max(residuals) <= 1e-9
    bounced = drevo.compile(robot, "step", dt=1e-3, law="coulomb", restitution=0.5)
    assert bounced(q - [0, 0, 1e-4, 0, 0, 0, 0], -np.eye(6)[2], np.zeros(6)).v1[2] == 0.5
    ramp = drevo.ground.function(lambda x, y: 0.1 * x)
    table = robot.simulate(q + np.eye(7)[2] * 5e-4, duration=0.5, ground=ramp, law="coulomb", friction=0.9)
    slope = math.atan(0.1)
    speed = np.linalg.norm(table.v[-1, :3])
    assert math.isclose(speed, G * math.sin(slope) * 0.5 / 1.4, rel_tol=2e-3)
    assert table.contact_forces is not None and table.residual is not None
    assert math.isclose(table.contact_forces[-1, 0, 2], G * math.cos(slope) ** 2, rel_tol=0.05)
    assert table.residual.max() <= 1e-9 and table.method == "moreau under the coulomb law"


def test_friction_by_place() -> None:
    """A point slides onto ice at x = 0.1; before it v^2 = v0^2 - 2 mu g s, to the order of the step."""
    b = drevo.Builder("point")
    b.body("body", joint="free", mass=1.0, inertia=np.eye(3))
    model = replace(b.robot().model, contacts=(ContactPoint("body", (0.0, 0.0, 0.0)),))
    ice = drevo.ground.function(lambda x, y: 0.0 * x, friction=lambda x, y: drevo.where(x > 0.1, 0.0, 0.5))
    robot, q, v = drevo.Robot(model), np.array([0, 0, 0, 0, 0, 0, 1.0]), np.array([2.0, 0, 0, 0, 0, 0])
    table = robot.simulate(q, v, duration=0.3, law="coulomb", ground=ice, friction=0.9)
    speed = math.sqrt(4.0 - 2.0 * 0.5 * 9.81 * 0.1)
    np.testing.assert_allclose(table.v[table.q[:, 0] > 0.11, 0], speed, atol=0.5 * 9.81e-3)
    with pytest.raises(drevo.InputError, match="the soft law has no friction by place"):
        robot.simulate(q, v, duration=0.1, law="soft", ground=ice)
    for mu, words in ((lambda x, y: -1.0, "is -1.0 at the origin"), (0.5, "is a function of \\(x, y\\), not 0.5")):
        with pytest.raises(drevo.InputError, match=words):
            drevo.ground.function(lambda x, y: 0.0, friction=mu)


def test_a_quadruped_of_a_file_stands_on_the_spheres_of_its_feet() -> None:
    """Go1 in URDF has 140 places; a warning says which of them touch. A stool steps with all of its own."""
    model = drevo.load("go1", base="floating").model
    with pytest.warns(drevo.DrevoWarning, match="140 places .* only the spheres of FR_foot, FL_foot, RR_foot, RL"):
        feet = exact_robot(model, 1e-3, "plane")
    assert (
        len(feet.slots) == 4 and len(exact_robot(model, 1e-3, "plane", touching=["FL_foot", "trunk"]).slots) == 5
    )
    box = '<collision><origin xyz="0 0 {}"/><geometry><box size=".1 .1 .1"/></geometry></collision>'
    ball = '<collision><origin xyz="{} {} -.2"/><geometry><sphere radius=".02"/></geometry></collision>'
    shapes = [box.format(0.1 * k) for k in range(6)] + [
        ball.format(x, y) for x in (-0.2, 0.2) for y in (-0.2, 0.2)
    ]
    stool = drevo.load(
        '<robot name="stool"><link name="seat"><inertial><mass value="2"/><inertia ixx=".1" iyy=".1" izz=".1" '
        f'ixy="0" ixz="0" iyz="0"/></inertial>{"".join(shapes)}</link></robot>', base="floating"
    )  # fmt: skip
    f = drevo.compile(stool, "step", dt=1e-3, law="coulomb")  # all 28 places: nothing limits a joint
    rng = np.random.default_rng(5)
    q, (v, tau) = np.tile(stool.neutral(), (16, 1)), rng.normal(size=(2, 16, 6))
    q[:, 2] = 0.22 - 1e-4
    _, _, forces, residual = f(q, v, tau)
    assert forces.shape == (16, 28, 3) and residual.max() <= 1e-9 and (forces[..., 2] > 0.0).any()


def test_a_bounce_by_events_through_simulate() -> None:
    q = [0.0, 0.0, 1.1, 0.0, 0.0, 0.0, 1.0]
    table = drevo.load(BALL).simulate(q, duration=1.0, law="coulomb", method="dop853", restitution=0.8)
    assert abs(table.events[0].t - math.sqrt(2.0 / G)) < 1e-12


def test_what_has_not_converged_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drevo.simulate.bouncing.LARGE_RESIDUAL", -1.0)
    with pytest.warns(drevo.DrevoWarning, match="velocities of a step have a residual of"):
        table = drevo.load(BALL).simulate([0, 0, 0.1, 0, 0, 0, 1.0], duration=0.01, law="coulomb")
    assert table.residual is not None and table.residual.max() <= 1e-9


PINCHED = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><geom type="box" size="1 1 .1" pos="0 0 .25"/>
<body pos="0 0 .075"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""


def test_what_cannot_part_rests_and_is_told() -> None:
    """A ball between a floor and a ceiling that are too near: each asks it to leave at 1 m/s."""
    robot, dt = drevo.load(PINCHED), 1e-3
    q, v = np.array([0, 0, 0.075, 0, 0, 0, 1.0]), np.array([[0.0] * 6, [0.3, 0, 0.2, 0, 1.0, 0]])
    compiled = drevo.compile(robot, "step", dt=dt, law="coulomb")(np.array([q, q]), v, np.zeros((2, 6)))
    model = exact_robot(robot.model, dt, None)
    reference = step(model, np.array([q, q]), v, np.zeros((2, 6)))
    assert np.allclose(compiled.v1, reference.v, atol=1e-8)
    assert np.allclose(compiled.forces, reference.forces, rtol=1e-6, atol=1e-6)
    assert np.allclose(compiled.residual, 1.0, atol=1e-6)
    assert np.abs(compiled.v1[0]).max() < 1e-12
    before, after = robot.kinetic_energy(q, v), robot.kinetic_energy(compiled.q1, compiled.v1)
    assert (after < before + 1e-9).all()
    assert np.abs(compiled.forces[0].sum(axis=0) - (0, 0, 9.81)).max() < 1e-9  # its weight
    assert np.abs(compiled.forces).max() < 1e3


def test_impulses_beyond_all_digits_fulfil_no_law() -> None:
    """Between that floor and ceiling, at impulses of 1e16 N s, the law seems to hold: no digit of u is left."""
    robot, q = drevo.load(PINCHED), np.array([0, 0, 0.0751, 0, 0, 0, 1.0])
    for mu in (0.5, 1.0, 2.0, 3.0, 10.0):
        f = drevo.compile(robot, "step", dt=1e-3, law="coulomb", friction=mu)
        reference = step(exact_robot(robot.model, 1e-3, None, mu), q[None], np.zeros((1, 6)), np.zeros((1, 6)))
        for forces, residual in ((f(q, np.zeros(6), np.zeros(6))[2:]), (reference.forces, reference.residual)):
            assert np.abs(forces).max() < 10.0 and np.allclose(residual, 1.0, atol=1e-6)


CORNER = """<mujoco><option gravity="0 0 {g}"/><worldbody><geom type="plane" size="1 1 1" euler="{tilt} 0 0"/>
<geom type="plane" size="1 1 1" euler="{wall} 0 0"/>{more}</worldbody></mujoco>"""
WALL = '<geom type="plane" size="1 1 1" euler="0 90 0"/>'
CORNER_BALL = '<body name="{}"><freejoint/><geom size=".1" mass="1"/></body>'


def deep(count: int, balls: int) -> tuple[Any, Any]:
    """States in the corner of three planes: one ball 0.2 to 1 mm in all, two a millimetre about touch."""
    rng = np.random.default_rng(balls)
    low, high = (2e-4, 1e-3) if balls == 1 else (-1e-3, 1e-3)
    q = np.zeros((count, 7 * balls))
    for k in range(balls):
        q[:, 7 * k : 7 * k + 3] = (0.1 + 0.2 * k, 0.1, 0.1) - rng.uniform(low, high, (count, 3))
        turn = rng.normal(size=(count, 4))
        q[:, 7 * k + 3 : 7 * k + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    return q, 0.5 * rng.normal(size=(count, 6 * balls))


@pytest.mark.parametrize(("balls", "mu"), [(1, 0.6), (1, 0.8), (1, 1.5), (2, 0.3), (2, 1.0)])
def test_balls_deep_in_a_corner_part_from_it(balls: int, mu: float) -> None:
    """By a fifth of the depth beyond 0.1 mm, however rough: the law is fulfilled, and nothing goes deeper."""
    more = WALL + "".join(CORNER_BALL.format(k) for k in range(balls))
    robot, dt = drevo.load(CORNER.format(g=-9.81, tilt=0, wall=-90, more=more)), 1e-3
    q, v = deep(800, balls)
    found = drevo.compile(robot, "step", dt=dt, law="coulomb", friction=mu, ground=None)(q, v, np.zeros_like(v))
    good = found.residual <= 1e-9
    assert good.mean() >= 0.998
    for k in range(balls):
        for axis in range(3):
            depth = 0.1 - q[:, 7 * k + axis]
            if k and not axis:
                continue  # the second ball is beside the first
            speed = (found.q1 - q)[:, 7 * k + axis] / dt
            wanted = np.where(depth > 0.0, np.clip(0.2 * (depth - 1e-4) / dt, 0.0, 1.0), depth / dt)
            assert (speed - wanted)[good].min() > -1e-8


def test_a_rough_groove_lets_go_of_a_point_though_no_impulses_with_friction_do() -> None:
    """Two planes at a right angle, a millimetre deep, at rest, mu above 1: see docs/contact.md."""
    slides = '<joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/><geom size=".1" mass="1"/>'
    robot = drevo.load(CORNER.format(g=0, tilt=45, wall=-45, more=f"<body>{slides}</body>"))
    q = np.array([0.0, 0.099 * math.sqrt(2.0)])
    for mu in (0.5, 1.2, 3.0):
        found = drevo.compile(robot, "step", dt=1e-3, law="coulomb", friction=mu, ground=None)(q, 0.0 * q, 0.0 * q)
        assert found.residual <= 1e-9
        assert np.allclose(found.q1 - q, [0.0, 1.8e-4 * math.sqrt(2.0)], atol=1e-12)  # 0.2 (1 - 0.1) mm from each
        assert np.abs(found.v1).max() < 1e-9


def test_bad_input_is_one_sentence() -> None:
    robot = drevo.load(BALL)
    for given, part in (
        ({"friction": -0.1}, "friction is -0.1"),
        ({"restitution": 1.5}, "restitution is 1.5"),
        ({"dt": 0.0}, "dt is 0.0"),
        ({"ground": "floor"}, "the ground is 'plane'"),
        ({"law": "colomb"}, "did you mean 'coulomb'"),
        ({"method": "rk4"}, "'rk4' is not known"),
        ({"touching": ["foot"]}, "'foot' is not known"),
        ({"law": "soft", "touching": ["ball"]}, "touching is for law='coulomb'"),
    ):
        with pytest.raises(drevo.DrevoError, match=part):
            drevo.compile(robot, "step", **{"dt": 1e-3, "law": "coulomb", **given})
    many = drevo.load(BALL.replace('type="sphere" size="0.1"', 'type="box" size="1 1 1"').replace(
        "</body>", '<geom type="box" size="1 1 1" mass="1"/>' * 6 + "</body>"))  # fmt: skip
    with pytest.raises(drevo.DrevoError, match="28 places of contact"):
        drevo.compile(many, "step", dt=1e-3, law="coulomb", product="vjp")


# -- derivatives ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["vjp", "value_and_jvp", "jacobian"])
@pytest.mark.parametrize("case", ["pinched", "held by friction"])
def test_where_a_step_has_no_derivatives_none_are_given(case: str, product: str) -> None:
    """In a batch the row is named; unchecked it alone is NaN, and others are what they are without it."""
    text, q = PINCHED, np.array([0, 0, 0.0751, 0, 0, 0, 1.0])
    if case != "pinched":
        text = CORNER.format(g=-9.81, tilt=45, wall=-45, more=CORNER_BALL.format("ball"))
        q[2] = 0.0991 * math.sqrt(2.0)
    robot, how = drevo.load(text), {"dt": 1e-3, "law": "coulomb", "friction": 3.0, "ground": None}
    qs = np.repeat(q[None], 10, 0)
    qs[:, 2] += 0.2
    qs[6] = q
    f = drevo.compile(robot, "step", product=product, **how)
    given = [qs, *(np.full((10, *shape), 0.1) for _, shape in f.inputs[1:])]
    for x in given[1:3]:
        x[...] = 0.0
    with pytest.raises(drevo.NumericsError, match=r"in row 6 is nan: a step has no derivatives where it has not"):
        f(*given)
    loose = drevo.compile(robot, "step", product=product, check=False, **how)
    results = {
        name: x for (name, _), x in zip(f.outputs, loose(*given)) if name not in ("q1", "v1", "forces", "residual")
    }
    rest = [np.delete(x, 6, 0) for x in given]
    assert all(np.isnan(x[6]).any() for x in results.values())
    for name, x in zip((name for name, _ in f.outputs), f(*rest)):
        assert name not in results or np.array_equal(np.delete(results[name], 6, 0), x)


@pytest.mark.parametrize(
    ("name", "limits", "height", "knees"),
    [
        ("go2", True, 3e-5, 0.0),
        ("go1", False, 3e-5, 0.0),
        ("go2", True, -3e-4, -2.728),
        ("go1", False, -3e-4, 0.0),
    ],
)
def test_derivatives_of_a_step_are_those_of_differences(
    name: str, limits: bool, height: float, knees: float
) -> None:
    """Feet a little above the ground, or knees and feet so deep that they are pushed out, where no contact changes
    what it does: errors of differences alone."""
    robot, m, _ = standing(name, limits)
    q, v, tau = states(robot, [0.0, 0.9, -1.8] * 4, 4, knees)
    q[:, 2] += height
    whole = ExactDerivative(m, "dot", False, SPREAD_PREFIX)
    jacobian = requested(m.model, ("test",), lambda: step_product_program(whole, "jacobian"), lasting=False)
    found, eps, nv = jacobian(q, v, tau), 1e-6, robot.nv
    count, unit = len(q), eps * np.eye(nv)
    for k, exact in enumerate(found):
        ends = []
        for side in (unit, -unit):
            given = [np.repeat(x, nv, 0) for x in (q, v, tau)]
            way = np.tile(side, (count, 1))
            given[k] = robot.integrate(given[k], way) if k == 0 else given[k] + way
            ends.append(step(m, *given, tolerance=1e-14))
        rates = np.concatenate([robot.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v], -1) / (2.0 * eps)
        wanted = rates.reshape(count, nv, 2 * nv).transpose(0, 2, 1)
        size = np.maximum(np.abs(wanted).max((1, 2)), 1.0)
        assert (np.abs(exact - wanted).max((1, 2)) < 1e-6 * size).all()
    lam = step(m, q, v, tau).solution.lam
    assert (lam[:12:3] > 0.0).any() and (lam[:12:3] == 0.0).any()


def test_a_push_on_a_ball_at_rest_lets_it_roll() -> None:
    xml = """<mujoco><worldbody><body name="ball" pos="0 0 1"><freejoint/>
      <geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>"""
    q, v = np.array([0.0, 0.0, 0.1 - 1e-9, 0.0, 0.0, 0.0, 1.0]), np.zeros(6)
    jacobian = drevo.compile(drevo.load(xml), "step", dt=1e-3, law="coulomb", product="jacobian")
    found = jacobian(q, v, np.zeros(6))
    assert found.by_q.shape == (12, 6)
    assert math.isclose(found.by_tau[1 + 6, 1], 1e-3 / 1.4, rel_tol=1e-7)  # M + I / r^2
    assert np.abs(found.by_tau[:, 2]).max() < 1e-15  # the ground takes it


# -- several steps at once, and the moments of impacts ----------------------------------------------------------


def test_several_steps_in_one_call_are_those_steps() -> None:
    robot, slots = boxes(1, 0.1)
    m = touching_robot(robot.model, slots, MoreauStep(1e-3))
    f, rng = compiled(m), np.random.default_rng(5)
    q = np.tile([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], (9, 1))
    v, tau = rng.normal(size=(2, 9, 6))
    three = requested(m.model, ("test",), lambda: moreau_program(m, repeat=3), lasting=False)(q, v, tau)
    worst = np.zeros(9)
    for _ in range(3):
        q, v, forces, residual = f(q, v, tau)
        worst = np.maximum(worst, residual)
    for x, y in zip(three, (q, v, forces, worst)):
        assert np.array_equal(x, y)


def test_a_bouncing_ball_by_its_impacts_is_right_to_rounding() -> None:
    """Moments and speeds of six impacts in closed form."""
    fall, e = math.sqrt(2.0 / G), 0.8
    robot = with_point(block((0.0, 0.0, -G)))
    table = simulate_bouncing(robot, [0.0, 1.0], [0.3, 0.0], duration=3.0, restitution=e, friction=0.0, dt=0.01)
    moments = np.concatenate([[fall], fall + 2.0 * fall * np.cumsum([e**k for k in range(1, 6)])])
    assert len(table.events) == 6
    for k, (event, t) in enumerate(zip(table.events, moments)):
        assert abs(event.t - t) < 1e-12
        assert np.abs(event.v - [0.3, G * fall * e ** (k + 1)]).max() < 1e-12
        assert abs(event.q[0] - 0.3 * t) < 1e-12
    assert table.t[-1] == 3.0 and (np.diff(table.t) >= 0.0).all()


def with_point(robot: drevo.Robot) -> drevo.Robot:
    """Its last link touches the ground by its origin."""
    point = ContactPoint(robot.model.links[-1].name, (0.0, 0.0, 0.0))
    return drevo.Robot(replace(robot.model, contacts=(point,)))


def test_an_impact_with_friction_takes_energy_and_keeps_the_law() -> None:
    """A rod that falls on an end while it turns and slides."""
    b = drevo.Builder("rod")
    b.body("rod", joint="free", mass=1.0, inertia=np.diag([1e-3, 1.0 / 12.0, 1.0 / 12.0]))
    robot = b.contact("rod", (0.5, 0.0, 0.0)).contact("rod", (-0.5, 0.0, 0.0)).robot()
    half = math.radians(10.0)
    q = [0.0, 0.0, 0.6, 0.0, math.sin(half), 0.0, math.cos(half)]
    given = {"duration": 0.7, "restitution": 0.6, "friction": 0.3, "dt": 1e-3}
    table = simulate_bouncing(robot, q, [0.5, 0.0, 0.0, 0.0, -1.0, 0.0], **given)
    energy = robot.kinetic_energy(table.q, table.v) + robot.potential_energy(table.q)
    assert len(table.events) >= 2 and np.diff(energy).max() < 1e-9 and energy[-1] < energy[0] - 0.1
    ends = [robot.pose(table.q, link="rod") @ [x, 0.0, 0.0, 1.0] for x in (0.5, -0.5)]
    assert min(end[:, 2].min() for end in ends) > -1e-12


def test_what_does_not_part_is_told() -> None:
    with pytest.raises(drevo.DrevoError, match="does not part again"):
        simulate_bouncing(with_point(block((0.0, 0.0, -G))), [0.0, 1.0], duration=1.0, restitution=0.0)
    with pytest.raises(drevo.DrevoError, match="3 impacts"):
        simulate_bouncing(with_point(block((0.0, 0.0, -G))), [0.0, 1.0], duration=4.0, restitution=0.5, impacts=3)


def test_parameters_by_sample() -> None:
    """A mass, damping and the friction of all places: the model's own give its step, others another robot's."""
    xml = """<mujoco><worldbody><body name="ball" pos="0 0 .1"><freejoint/><geom type="sphere" size=".1" mass="2"/>
      <body name="leg" pos=".1 0 0"><joint name="hip" axis="0 1 0" damping=".2"/>
       <geom type="sphere" size=".05" pos=".1 0 0" mass="1"/></body></body></worldbody></mujoco>"""
    robot, rng, how = drevo.load(xml), np.random.default_rng(0), {"dt": 1e-3, "law": "coulomb"}
    q, (v, tau) = np.tile(robot.neutral(), (6, 1)), rng.normal(size=(2, 6, robot.nv))
    q[:, 2], v[:, 2] = 0.1, -0.1
    f = drevo.compile(robot, "step", **how, friction=0.5, parameters=("friction", "leg.mass", "hip.damping"))
    own = dict(f.parameters)
    assert own == {"leg.mass": 1.0, "hip.damping": 0.2, "friction": 0.5}
    for x, y in zip(
        f(q, v, tau, list(own.values())), drevo.compile(robot, "step", **how, friction=0.5)(q, v, tau)
    ):
        assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
    mu = np.array([0.05, 0.9])[np.arange(6) % 2]
    found = f(q, v, tau, np.stack([mu, np.full(6, 1.0), np.full(6, 0.2)], 1))
    for k in (0, 1):
        alone = drevo.compile(robot, "step", **how, friction=mu[k])(q[k], v[k], tau[k])
        for x, y in zip(found, alone):
            assert np.allclose(x[k], y, rtol=1e-9, atol=1e-9)
    with pytest.raises(drevo.InputError, match="products by parameters are for law='soft'"):
        drevo.compile(robot, "step", **how, parameters="friction", product="vjp")
