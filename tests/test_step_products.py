"""Derivatives of steps that touch, times a vector: against central differences, and one against the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from contact_cases import HOPPER

import drevo
from drevo.contact.pairs import contact_candidates
from drevo.mechanics.algorithms.kinematics import placed_bodies
from drevo.mechanics.tree import build_tree

Array = np.ndarray[Any, Any]
E = 1e-6  # of differences: E^2 of third derivatives, and 1e-16 / E of values up to 100
GOOD = 1e-6  # where nothing opens, closes or begins to slide between them
COUNT = 24
LEG = """<mujoco><worldbody><body name="trunk" pos="0 0 .4"><freejoint/><geom type="box" size=".2 .1 .05"/>
 <body name="leg" pos=".1 0 0"><joint name="hip" axis="0 1 0" damping=".2" armature=".01"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/></body></body></worldbody></mujoco>"""
ROUND = LEG.replace('type="box" size=".2 .1 .05"', 'type="sphere" size=".15"')
ELLIPTIC = LEG.replace("<mujoco>", '<mujoco><option cone="elliptic"/><default><geom condim="4"/></default>')
HELD = LEG.replace("damping", 'range="-10 10" frictionloss=".05" stiffness="2" armature')
BOUND = LEG.replace(
    "</mujoco>",
    """<equality><connect body1="leg" body2="trunk" anchor=".1 0 -.3" solref=".1 1"/>
 <weld body1="leg" body2="trunk" relpose="-.1 .1 0 .9 .1 .2 0" solref=".2 1"/></equality></mujoco>""",
)
BELT = LEG.replace('size=".03"', 'size=".03" surfacevel=".3 .5 -.4 1 -2 3"')
EXACT = '<mujoco><option><flag diagexact="enable"/></option>'
PRISM = """<mujoco><asset><mesh name="prism" vertex=".1 0 .06 .05 .09 .06 -.05 .09 .06 -.1 0 .06 -.05 -.09 .06
  .05 -.09 .06 .1 0 -.06 .05 .09 -.06 -.05 .09 -.06 -.1 0 -.06 -.05 -.09 -.06 .05 -.09 -.06"/></asset>
 <worldbody><body name="trunk" pos="0 0 .2"><freejoint/><geom type="mesh" mesh="prism"/>
  <body name="leg"><joint name="hip" axis="0 1 0" damping=".2"/>
   <geom type="capsule" fromto="0 0 0 0 0 .4" size=".03"/></body></body></worldbody></mujoco>"""
CASES = {
    "prism, which has four of its corners on the ground": (PRISM, "euler"),
    "leg with a belt": (BELT, "euler"),
    "leg, firm by its inertia": (LEG.replace("<mujoco>", EXACT), "euler"),
    "hopper": (HOPPER.format(option="", condim=3, floor=""), "euler"),
    "leg": (LEG, "euler"),
    "leg without dampers, held in its joint": (HELD.replace(' armature=".01"', ""), "euler"),
    "leg bound to its trunk": (BOUND, "euler"),
    "leg on elliptic cones": (ELLIPTIC, "implicitfast"),
}


def states(robot: Any) -> list[Array]:
    """q, v, tau with the lowest point 2 mm in the ground."""
    rng, tree = np.random.default_rng(0), build_tree(robot.model)
    q = robot.integrate(robot.neutral(), rng.normal(0.0, 0.2, (COUNT, robot.nv)))
    places = contact_candidates(robot.model, "plane")
    for row in q:
        poses = placed_bodies(tree, list(row))
        row[1 if robot.nq == robot.nv else 2] -= min(float(x.touch(poses).dist) for x in places) + 2e-3
    return [q, *rng.normal(0.0, 0.5, (2, COUNT, robot.nv))]


def differences(robot: Any, step: Callable[..., Sequence[Array]], at: list[Array], way: Sequence[Array]) -> Array:
    """Of q1 and v1 along a way of q, v and tau, and whatever follows."""
    ends = [
        step(robot.integrate(at[0], s * way[0]), *(x + s * w for x, w in zip(at[1:], way[1:]))) for s in (E, -E)
    ]
    (q, v, *_), (p, u, *_) = ends
    return np.concatenate((robot.difference(p, q), v - u), 1) / (2.0 * E)


@pytest.mark.parametrize("name", CASES)
def test_products_are_those_of_differences(name: str) -> None:
    """J x beside central differences, w J x = x J' w, and J."""
    text, method = CASES[name]
    robot, rng = drevo.load(text, hulls=64), np.random.default_rng(1)
    how = {"dt": 2e-3, "ground": "plane", "method": method}
    jvp, vjp, jacobian = (
        drevo.compile(robot, "step", product=x, **how) for x in ("value_and_jvp", "vjp", "jacobian")
    )
    at = states(robot)
    way, back = rng.normal(size=(3, COUNT, robot.nv)), rng.normal(size=(2, COUNT, robot.nv))
    values = jvp(*at, *way)
    forward, reverse = np.concatenate(values[4:], 1), np.concatenate(vjp(*at, *back), 1)
    exact = differences(robot, lambda *given: jvp(*given, *way), at, way)
    errors = np.abs(forward - exact).max(1) / np.abs(exact).max(1)
    touching = np.abs(values[2]).reshape(COUNT, -1).max(1) > 1.0
    assert touching.sum() > COUNT // 2 and errors.max() < GOOD
    ends = (forward * np.concatenate(back, 1)).sum(1), (reverse * np.concatenate(way, 1)).sum(1)
    assert np.abs(ends[0] - ends[1]).max() < 1e-10 * np.abs(ends[0]).max()
    assert np.abs(along(jacobian(*at), way) - forward).max() < 1e-9 * np.abs(forward).max()


def along(whole: Sequence[Array], way: Sequence[Array]) -> Array:
    """J x."""
    return sum((x @ w[..., None])[..., 0] for x, w in zip(whole, way))  # type: ignore[return-value]


def test_compiled_products_by_parameters_too() -> None:
    """Of masses, damping, places and friction, by sample: rows of the Jacobian, beside central differences."""
    robot, rng = drevo.load(ROUND), np.random.default_rng(2)
    state = states(robot)
    names = ("leg.mass", "hip.damping", "hip.origin", "friction")
    f, jacobian = (
        drevo.compile(robot, "step", dt=2e-3, parameters=names, product=x) for x in ("value_and_vjp", "jacobian")
    )
    assert f.parameters[-1] == ("friction", 1.0)
    own = np.array([x for _, x in f.parameters]) * rng.uniform(0.8, 1.2, (COUNT, len(f.parameters)))
    at, back = [*state, own], rng.normal(size=(2, COUNT, robot.nv))

    def step(*given: Array) -> tuple[Array, ...]:
        return f(*given, *back)[:4]

    whole, bars = jacobian(*at), f(*at, *back)[4:]
    for x, y in zip(whole, bars):
        assert np.allclose(np.concatenate(back, 1)[:, None] @ x, y[:, None], rtol=1e-9, atol=1e-9)
    for way in (rng.normal(size=(3, COUNT, robot.nv)), np.zeros((3, COUNT, robot.nv))):
        way = [*way, rng.normal(size=own.shape)]
        exact = differences(robot, step, at, way)
        assert np.abs(along(whole, way) - exact).max() < GOOD * np.abs(exact).max()


def test_rows_of_a_jacobian_are_the_same_in_any_batch() -> None:
    """Of fewer states than lanes, of one, beyond what a cache holds, and into rows that lie apart."""
    robot = drevo.load(ROUND)
    f, at = drevo.compile(robot, "step", dt=2e-3, product="jacobian"), states(robot)
    whole = f(*at)
    for some in (slice(0, 5), slice(3, 4), slice(1, 18)):
        for x, y in zip(f(*(z[some] for z in at)), whole):
            assert np.array_equal(x, y[some])
    many = 9000 // COUNT  # 7 MB of each result
    for x, y in zip(f(*(np.tile(z, (many, 1)) for z in at)), whole):
        assert np.array_equal(x.reshape(many, *y.shape), np.broadcast_to(y, (many, *y.shape)))
    room = [np.full((2 * COUNT, *x.shape[1:]), 7.0) for x in whole]
    f(*at, out=tuple(x[::2] for x in room))
    assert all(np.array_equal(x[::2], y) and (x[1::2] == 7.0).all() for x, y in zip(room, whole))
    at[0][2, 3] = np.nan
    with pytest.raises(drevo.DrevoError):
        f(*at)


@pytest.mark.parametrize("text", [ROUND, BELT.replace('type="box" size=".2 .1 .05"', 'size=".15"'), PRISM])
def test_products_under_the_exact_law(text: str) -> None:
    """Feet that stick and slide, a joint at its limit and one that dry friction holds."""
    robot = drevo.load(text.replace("<joint ", '<joint range="-10 10" frictionloss=".01" '), hulls=64)
    rng = np.random.default_rng(3)
    at = states(robot)
    at[0][::3, -1], at[1][::3, -1] = math.radians(-10.0) - 1e-3, -0.5
    how = {"dt": 2e-3, "law": "coulomb", "friction": 0.6}
    f, jacobian = (drevo.compile(robot, "step", **how, product=x) for x in ("value_and_jvp", "jacobian"))
    way = rng.normal(size=(3, COUNT, robot.nv))
    forward, whole = np.concatenate(f(*at, *way)[4:], 1), jacobian(*at)
    assert np.abs(along(whole, way) - forward).max() < 1e-9 * np.abs(forward).max()
    exact = differences(robot, lambda *given: f(*given, *way), at, way)
    errors = np.abs(forward - exact).max(1) / np.abs(exact).max(1)
    assert np.median(errors) < 0.1 * GOOD and (errors < GOOD).mean() > 0.9  # one or two begin to slide


@pytest.mark.parametrize("how", [{"parameters": ("leg.mass", "friction")}, {"law": "coulomb"}], ids=["soft", ""])
def test_products_by_the_numbers_of_quaternions(how: dict[str, Any]) -> None:
    """Tangents of four numbers a quaternion, of a free base and a ball joint, as systems with derivatives have
    them: beside differences of the quaternions made unit, and w J x = x J' w."""
    robot = drevo.load(ROUND.replace('"hip" axis="0 1 0"', '"hip" type="ball"'))
    rng, given = np.random.default_rng(5), {"dt": 2e-3, "tangents": "numbers", **how}
    ahead, back = (drevo.compile(robot, "step", product=f"value_and_{x}", **given) for x in ("jvp", "vjp"))
    at = [*states(robot), *([np.tile([x for _, x in ahead.parameters], (COUNT, 1))] if ahead.parameters else [])]
    way, w = [rng.normal(size=x.shape) for x in at], [rng.normal(size=(COUNT, n)) for n in (robot.nq, robot.nv)]

    def step(sign: float) -> Array:
        q, *more = (x + sign * E * d for x, d in zip(at, way))
        for k in (3, 7):
            q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=1)[:, None]
        return np.concatenate(back(q, *more, *w)[:2], 1)

    forward, reverse = np.concatenate(ahead(*at, *way)[4:], 1), back(*at, *w)[4:]
    exact = (step(1.0) - step(-1.0)) / (2.0 * E)
    errors = np.abs(forward - exact).max(1) / np.abs(exact).max(1)
    assert np.median(errors) < 0.1 * GOOD and (errors < GOOD).mean() > 0.9  # one or two begin to slide
    ends = (forward * np.concatenate(w, 1)).sum(1), sum((x * d).sum(1) for x, d in zip(reverse, way))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9 * np.abs(ends[0]).max()


def test_more_rows_than_rates() -> None:
    """A box that slides on its corners: how it goes on is one, the rest of its impulses is not."""
    robot = drevo.load("""<mujoco><worldbody><body name="box"><freejoint/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/></body></worldbody></mujoco>""")
    at = np.array([[0, 0, 0.05, 0, 0, 0, 1.0]]), np.array([[1.0, 0.3, 0, 0, 0, 0]]), np.zeros((1, 6))
    how = {"dt": 1e-3, "law": "coulomb", "friction": 0.5}
    way = np.zeros((3, 1, 6))
    way[:, 0, :2] = np.random.default_rng(4).normal(size=(3, 2))
    exact = differences(robot, drevo.compile(robot, "step", **how), list(at), way)
    whole = along(drevo.compile(robot, "step", product="jacobian", **how)(*at), way)
    forward = np.concatenate(drevo.compile(robot, "step", product="jvp", **how)(*at, *way), 1)
    for found in (whole, forward):
        assert np.abs(found - exact)[:, [0, 1, 2, 6, 7, 8]].max() < GOOD * np.abs(exact).max()


def test_products_agree_where_velocities_are_not_unique() -> None:
    """A box that spins as it slides on four corners: how they share its weight decides how friction turns it.

    Products take the least change of impulses, jvp, vjp and Jacobian the same. On three and fewer it is one, and
    differences have it.
    """
    robot = drevo.load("""<mujoco><worldbody><body name="box"><freejoint/>
      <geom type="box" size="0.1 0.1 0.05" mass="1"/></body></worldbody></mujoco>""")
    rng, count, how = np.random.default_rng(6), 200, {"dt": 1e-3, "law": "coulomb", "friction": 0.5}
    q, v = np.tile([0, 0, 0.05 - 1e-5, 0, 0, 0, 1.0], (count, 1)), rng.normal(0.0, 0.5, (count, 6))
    v[:, 2:5] *= 0.02
    at = [q, v, rng.normal(0.0, 3.0, (count, 6))]
    way, back = rng.normal(size=(3, count, 6)), rng.normal(size=(2, count, 6))
    step, jvp, vjp, jacobian = (drevo.compile(robot, "step", **how, **x) for x in
                                ({}, {"product": "jvp"}, {"product": "vjp"}, {"product": "jacobian"}))  # fmt: skip
    whole, forward = jacobian(*at), np.concatenate(jvp(*at, *way), 1)
    size, J = np.abs(forward).max(1), np.concatenate(whole, 2)
    assert (np.abs(along(whole, way) - forward).max(1) < 1e-9 * size).all()
    reverse, rows = np.concatenate(vjp(*at, *back), 1), (np.concatenate(back, 1)[:, None] @ J)[:, 0]
    assert (np.abs(reverse - rows).max(1) < 1e-9 * np.abs(rows).max(1)).all()
    pressing = (np.abs(step(*at)[2]).max(2) > 0.0).sum(1)
    errors = np.abs(differences(robot, step, at, way) - forward).max(1) / size
    assert (pressing > 3).sum() > 5 and (errors[pressing < 4] < GOOD).mean() > 0.97


@pytest.mark.parametrize("law", ["soft", "coulomb"])
def test_the_jacobian_of_a_robot_that_touches_nothing(law: str) -> None:
    """No part of its step stands still while tangents change."""
    robot, rng = drevo.load("three-link"), np.random.default_rng(0)
    at, way = (list(rng.normal(size=(3, 5, robot.nv))) for _ in "ab")
    how: dict[str, Any] = {"dt": 1e-3, "law": law, "ground": None}
    whole = drevo.compile(robot, "step", product="jacobian", **how)(*at)
    forward = np.concatenate(drevo.compile(robot, "step", product="jvp", **how)(*at, *way), 1)
    assert np.allclose(sum(np.einsum("bij,bj->bi", x, y) for x, y in zip(whole, way)), forward, atol=1e-12)


def test_products_that_are_none() -> None:
    robot = drevo.load(LEG)
    with pytest.raises(drevo.InputError, match="a product is one, of one step of euler, implicitfast or moreau"):
        drevo.compile(robot, "step", dt=2e-3, repeat=2, product="vjp")
    with pytest.raises(drevo.InputError, match="product 'hessian' is not known"):
        drevo.compile(robot, "step", dt=2e-3, product="hessian")
    with pytest.raises(drevo.InputError, match="derivatives of a step are of first order"):
        drevo.compile(robot, "step", dt=2e-3, product=("vjp", "jvp"))
    with pytest.raises(drevo.InputError, match='rows of product="jacobian" are by tangents="joints"'):
        drevo.compile(robot, "step", dt=2e-3, product="jacobian", tangents="numbers")


EXACTLY = """<mujoco><default><geom contype="0" conaffinity="0"/></default><worldbody>
<geom type="plane" size="5 5 1" contype="1"/><geom type="cylinder" size=".2 .1" pos="2 0 .1" contype="2"/>
<geom type="box" size=".3 .3 .2" pos="4 0 .2" contype="4"/>{bodies}</worldbody></mujoco>"""
PLACED = (  # each touches the ground and what it stands on
    ('type="capsule" size=".1 .2" conaffinity="1"', "0 0 .299"),
    ('type="cylinder" size=".1 .2" conaffinity="1"', "1 0 .199"),
    ('size=".1" conaffinity="3"', "2 0 .299"),  # on the axis of the cylinder
    ('type="capsule" size=".05 .1" conaffinity="5"', "4 0 .35"),  # sunk into the box
)
JOINTS = '<joint type="slide" axis="0 0 1"/><joint type="hinge" axis="1 0 0"/>'


def test_what_stands_exactly_upright_has_derivatives() -> None:
    """Where a direction is left open, as of tangents below an upright capsule, a length is zero, with no slope."""
    bodies = "".join(f'<body pos="{at}">{JOINTS}<geom {geom}/></body>' for geom, at in PLACED)
    robot = drevo.load(EXACTLY.format(bodies=bodies))
    n = robot.nv
    f = drevo.compile(robot, "step", dt=1e-3, law="soft", ground=None, product="vjp")
    by_q = f(robot.neutral(), *np.zeros((2, n)), *np.ones((2, n)))[0]  # not finite is refused
    assert (np.abs(by_q[::2] - 1.0) > 1.0).all()  # of every height: the ground is felt


DRIVEN = LEG.replace(
    "</mujoco>",
    """<actuator><position joint="hip" kp="20" kv="1"/><damper joint="hip" kv=".5" ctrlrange="0 1"/>
 <general joint="hip" dyntype="filter" dynprm=".02" gainprm="5" biastype="affine" biasprm="0 -2 -.1"/>
 <dcmotor joint="hip" motorconst=".5" resistance="2" inductance=".01 0" lugre="100 1 .2 .3 .05"/></actuator>
</mujoco>""",
)


@pytest.mark.parametrize("method", ["euler", "implicitfast", "moreau"])
def test_products_by_controls_and_activations(method: str) -> None:
    robot, rng = drevo.load(DRIVEN), np.random.default_rng(1)
    law = "coulomb" if method == "moreau" else "soft"
    how: dict[str, Any] = {"dt": 2e-3, "law": law, "method": method, "controls": True}
    f, vjp, jacobian = (
        drevo.compile(robot, "step", product=x, **how) for x in ("value_and_jvp", "vjp", "jacobian")
    )
    at = [*states(robot)[:2], *(rng.uniform(0.1, 0.9, (COUNT, n)) for n in (4, 3))]
    way = [rng.normal(size=x.shape) for x in (at[1], *at[1:])]
    back = [rng.normal(size=x.shape) for x in (at[1], at[1], at[3])]
    along = np.concatenate(f(*at, *way)[5:], 1)
    apart = np.abs(differences(robot, lambda *x: f(*x, *way)[:2], at, way) - along[:, :-3]).max(1)
    assert np.quantile(apart, 0.8) < GOOD * np.abs(along).max()
    ends = [
        f(robot.integrate(at[0], s * way[0]), *(x + s * w for x, w in zip(at[1:], way[1:])), *way).act1
        for s in (E, -E)
    ]
    assert np.abs((ends[0] - ends[1]) / (2.0 * E) - along[:, -3:]).max() < GOOD
    bars = vjp(*at, *back)
    given = sum((x * y).sum(1) for x, y in zip(way, bars))
    assert np.allclose((np.concatenate(back, 1) * along).sum(1), given, rtol=1e-9, atol=1e-9)
    whole = sum(np.einsum("ijk,ik->ij", J, x) for J, x in zip(jacobian(*at), way))
    assert np.allclose(whole, along, rtol=1e-9, atol=1e-9)
