"""Scenes of things that touch: dominoes, a cube on its edge, a bowl of balls, piles and stacks."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours
from scipy.integrate import solve_ivp

import drevo

Array = np.ndarray[Any, Any]
GRAVITY = 9.81
RESIDUAL = 1e-9  # m/s, up to which a step of the exact law has converged
LAWS = {"coulomb": {"law": "coulomb"}, "soft": {"law": "soft", "method": "euler"}}
FLOOR = '<geom type="plane" size="9 9 1"/>'


def scene(bodies: str, dt: float, floor: str = FLOOR) -> str:
    return f'<mujoco><option timestep="{dt}"/><worldbody>{floor}{bodies}</worldbody></mujoco>'


def motion(robot: drevo.Robot, law: str, dt: float, seconds: float, q: Array, v: Array) -> Iterator[Any]:
    """Yields the results of steps, of one state or a batch."""
    step = drevo.compile(robot, "step", dt=dt, ground=None, **LAWS[law])
    for _ in range(round(seconds / dt)):
        yield (found := step(q, v, np.zeros(v.shape)))
        q, v = found.q1, found.v1


def energy(robot: drevo.Robot, q: Array, v: Array) -> Array:
    states = zip(q.reshape(-1, robot.nq), v.reshape(-1, robot.nv))
    return np.array([robot.kinetic_energy(*x) + robot.potential_energy(x[0]) for x in states])


# --- dominoes ----------------------------------------------------------------------------------------------------

HEIGHT, THICKNESS, GAP = 0.1, 0.015, 0.03  # m, of dominoes and between them
PITCH = THICKNESS + GAP
START = 0.16  # rad: how far the first has fallen, beyond its balance at 0.149
HIT = np.arcsin(GAP / HEIGHT)


def dominoes(count: int, dt: float) -> str:
    """A row without friction among the dominoes, on a floor on which none slides."""
    geom = f'<geom type="box" size="{THICKNESS / 2} .03 {HEIGHT / 2}" mass="1" friction="0" condim="1"/>'
    bodies = (f'<body pos="{k * PITCH} 0 {HEIGHT / 2}"><freejoint/>{geom}</body>' for k in range(count))
    return scene("".join(bodies), dt, '<geom type="plane" size="9 9 1" friction="3" priority="1"/>')


def hits_of_theory(count: int) -> Array:
    """The times at which each domino meets the next, of a train that leans, each on the one before it.

    Heads move as all do that lean on them, h sin(a - b) = (s + d) cos b - d of angles a, b of neighbours; a hit
    leaves of the motion what lets both go on together, in the metric of the masses. van Leeuwen 2004, The domino
    effect, arXiv:physics/0401018, without friction.
    """
    inertia, hits, time = (HEIGHT**2 + THICKNESS**2) / 3, list[float](), 0.0

    def train(head: float, many: int) -> tuple[Array, Array]:
        """Angles of all, and their rates by that of the head."""
        angle, rate = np.array([head] * many), np.ones(many)
        for i in range(many - 2, -1, -1):
            lean = np.arcsin((PITCH * cos(angle[i + 1]) - THICKNESS) / HEIGHT)
            angle[i] = angle[i + 1] + lean
            rate[i] = rate[i + 1] * (1.0 - PITCH * sin(angle[i + 1]) / HEIGHT / cos(lean))
        return angle, rate

    def parts(head: float, many: int) -> tuple[float, float]:
        """The inertia felt at the head, and the potential energy, of a mass of 1 kg each."""
        angle, rate = train(head, many)
        return inertia * rate @ rate, GRAVITY / 2 * (HEIGHT * np.cos(angle) + THICKNESS * np.sin(angle)).sum()

    def falls(_: float, y: Array, many: int) -> list[float]:
        e = 1e-6
        (m, _), (m1, V1), (m2, V2) = (parts(y[0] + x, many) for x in (0.0, -e, e))
        return [y[1], -((V2 - V1) + (m2 - m1) / 2 * y[1] ** 2) / (2 * e * m)]

    def arrives(_: float, y: Array, many: int) -> float:
        return float(y[0] - HIT)

    arrives.terminal = True  # type: ignore[attr-defined]
    head = [START, 0.0]
    for many in range(1, count):
        found = solve_ivp(falls, (0.0, 5.0), head, args=(many,), events=arrives, rtol=1e-8, atol=1e-10)
        time += found.t[-1]
        hits.append(time)
        before, after = train(HIT, many)[1], train(0.0, many + 1)[1]
        head = [0.0, float(after[:-1] @ before / (after @ after) * found.y[1, -1])]
    return np.array(hits)


def falling(count: int) -> Array:
    """The row, its first domino turned about its front edge."""
    q = np.array([[k * PITCH, 0, HEIGHT / 2, 0, 0, 0, 1.0] for k in range(count)])
    d, h = THICKNESS / 2, HEIGHT / 2
    q[0, 0], q[0, 2] = d - d * cos(START) + h * sin(START), h * cos(START) + d * sin(START)
    q[0, 3:] = 0.0, sin(START / 2), 0.0, cos(START / 2)
    return q.ravel()


def angles(q: Array) -> Array:
    poses = q.reshape(-1, 7)
    return 2.0 * np.arctan2(poses[:, 4], poses[:, 6])


def hits_of(motion: Iterator[Array], q: Array, dt: float) -> Array:
    """The times at which all but the last pass the angle of a hit, between steps by a straight line."""
    before = angles(q)
    hits = np.full(len(before) - 1, np.nan)
    for k, q1 in enumerate(motion):
        now = angles(q1)
        for i in np.flatnonzero(np.isnan(hits) & (now[:-1] >= HIT)):
            hits[i] = dt * (k + (HIT - before[i]) / (now[i] - before[i]))
        before = now
        if not np.isnan(hits).any():
            break
    return hits


@pytest.mark.parametrize("count, dt", [(8, 2e-3), pytest.param(16, 5e-4, marks=pytest.mark.nightly)])
def test_dominoes_fall_as_fast_as_theory_says(count: int, dt: float) -> None:
    """A step is late by up to one h for each of the hits, of which one falls in 0.02 s and more."""
    robot, q = drevo.load(dominoes(count, dt)), falling(count)
    left = list[float]()

    def falls() -> Iterator[Array]:
        for found in motion(robot, "coulomb", dt, 2.0, q, np.zeros(robot.nv)):
            left.append(found.residual)
            yield found.q1

    ours, theirs = hits_of(falls(), q, dt), hits_of_theory(count)
    assert np.mean(np.array(left) <= RESIDUAL) > 0.99  # until the last is hit
    assert np.abs(np.diff(ours) / np.diff(theirs) - 1.0).max() < dt / np.diff(theirs).min() / 4
    speed = PITCH / np.diff(theirs) / sqrt(GRAVITY * HEIGHT)
    assert (np.diff(speed) > 0.0).all() and 1.0 < speed[-1] < 2.2  # times sqrt(g h)


@pytest.mark.needs("mujoco")
def test_dominoes_under_the_soft_law_fall_as_in_mujoco() -> None:
    """Whose step is a fifth: hits are as late as a step of the first order is."""
    import mujoco

    count, dt = 6, 1e-3
    robot, q = drevo.load(dominoes(count, dt)), falling(count)
    ours = hits_of((x.q1 for x in motion(robot, "soft", dt, 0.8, q, np.zeros(robot.nv))), q, dt)
    m: Any = mujoco.MjModel.from_xml_string(dominoes(count, dt / 5))
    d = mujoco.MjData(m)
    d.qpos[:] = q.reshape(-1, 7)[:, [0, 1, 2, 6, 3, 4, 5]].ravel()

    def fine() -> Iterator[Array]:
        for _ in range(800):
            mujoco.mj_step(m, d, nstep=5)
            yield np.array(as_ours(m, d.qpos, d.qvel)[0])

    theirs = hits_of(fine(), q, dt)
    assert np.abs(np.diff(ours) - np.diff(theirs)).max() < dt


# --- a cube on its edge ------------------------------------------------------------------------------------------

SIDE = 0.2  # m
CUBE = f"""<body pos="0 0 {SIDE / sqrt(2)}"><freejoint/><geom type="box" size="{SIDE / 2} {SIDE / 2} {SIDE / 2}"
  mass="1" friction="2"/></body>"""


def on_its_edge(tilt: float) -> Array:
    angle = pi / 4 + tilt
    height = SIDE / 2 * (cos(angle) + sin(angle))
    return np.array([0, 0, height, 0, sin(angle / 2), 0, cos(angle / 2)])


@pytest.mark.parametrize("law", LAWS)
def test_a_cube_balances_on_its_edge(law: str) -> None:
    """Rounding grows by exp(7.2 / s), to 1e-11 in 1.5 s."""
    robot = drevo.load(scene(CUBE, 1e-3))
    *_, last = motion(robot, law, 1e-3, 1.5, on_its_edge(0.0), np.zeros(6))
    assert abs(angles(last.q1)[0] - pi / 4) < 1e-11


@pytest.mark.parametrize("tilt", [1e-3, 0.02, 0.1])
def test_a_cube_falls_from_its_edge(tilt: float) -> None:
    """As the pendulum that it is, within a step in time; then it lies, and nothing moves any more."""
    dt = 1e-3
    robot = drevo.load(scene(CUBE, dt))
    found = [*motion(robot, "coulomb", dt, 1.3, on_its_edge(tilt), np.zeros(6))]
    fallen = np.array([angles(x.q1)[0] - pi / 4 for x in found])
    rate = GRAVITY / sqrt(2) / (2 / 3 * SIDE)  # m g r / I about the edge
    exact = solve_ivp(
        lambda _, y: [y[1], rate * sin(y[0])], (0, 1.3), [tilt, 0.0], rtol=1e-10, atol=1e-12, dense_output=True
    ).sol
    times = dt * np.arange(1, len(found) + 1)
    in_the_air = int(np.argmax(fallen > pi / 4 - 0.05))
    ours, theirs = fallen[:in_the_air], exact(times[:in_the_air])
    assert np.abs((ours - theirs[0]) / theirs[1]).max() < dt
    assert abs(fallen[-1] - pi / 4) < 1e-9 and np.abs(found[-1].v1).max() < 1e-9


# --- a bowl, piles -----------------------------------------------------------------------------------------------


def bowl(balls: int, dt: float) -> str:
    """Six planes about a floor, and balls that fall among them."""
    sides = "".join(
        f'<geom type="plane" size="2 2 .1" zaxis="{-cos(a)} {-sin(a)} 1" pos="{0.1 * cos(a)} {0.1 * sin(a)} 0"'
        ' friction=".3"/>'
        for a in np.arange(6) * pi / 3
    )
    bodies = "".join(
        f'<body pos="{0.12 * cos(2 * k + 0.3)} {0.12 * sin(2 * k + 0.3)} {0.25 + 0.12 * k}"><freejoint/>'
        '<geom type="sphere" size=".05" mass=".5" friction=".3"/></body>'
        for k in range(balls)
    )
    return scene(bodies, dt, FLOOR + sides)


@pytest.mark.parametrize("law", LAWS)
def test_balls_come_to_rest_in_a_bowl(law: str) -> None:
    """Under the exact law energy grows in no step; springs of the soft law give some of it back."""
    robot, dt = drevo.load(bowl(4, 2e-3)), 2e-3
    start, rest = np.array(robot.model.initial), np.zeros(robot.nv)
    last, left = (first := energy(robot, start, rest)[0]), list[float]()
    for found in motion(robot, law, dt, 3.0, start, rest):
        now = energy(robot, found.q1, found.v1)[0]
        assert now < (first if law == "soft" else last + 1e-12 * first)
        last = now
        left.append(found.residual)
    assert last < 0.13 * first  # 0.116 of it is left on the floor
    assert np.mean(np.array(left) <= RESIDUAL) > 0.99
    weight = 4 * 0.5 * GRAVITY
    assert np.abs(found.forces.sum(0) - [0, 0, weight]).max() < 1e-3 * weight
    assert robot.distance(found.q1).distance.min() > -1e-3


GEOMS = {
    "box": 'type="box" size=".1 .08 .05"',
    "capsule": 'type="capsule" size=".06 .08"',
    "cylinder": 'type="cylinder" size=".07 .08"',
    "ball": 'type="sphere" size=".08"',
}


def pile(kinds: tuple[str, ...], dt: float) -> str:
    bodies = (
        f'<body pos="{0.03 * (k % 3)} {0.02 * (k % 2)} {0.2 + 0.25 * k}"><freejoint/>'
        f'<geom {GEOMS[kind]} friction=".5"/></body>'
        for k, kind in enumerate(kinds)
    )
    return scene("".join(bodies), dt)


@pytest.mark.parametrize(
    "kinds",
    [
        ("box", "capsule", "cylinder", "box"),
        pytest.param(("box", "capsule", "cylinder") * 2, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("law", LAWS)
def test_piles_lose_energy(kinds: tuple[str, ...], law: str) -> None:
    """Under the exact law energy grows by what lifts bodies out of each other, z1 - z - h vz of the mass centre,
    and by nothing else: what turns within a step goes into what it rolls on."""
    dt = 2e-3
    robot = drevo.load(pile(kinds, dt))
    q = np.tile(np.array(robot.model.initial), (8, 1))
    v = np.random.default_rng(0).normal(size=(8, robot.nv)) * 0.5
    first = energy(robot, q, v)
    for k, found in enumerate(motion(robot, law, dt, 2.0, q, v)):
        if k % 5 == 4:
            now = energy(robot, found.q1, found.v1)
            assert (now < first).all()
            if law == "coulomb":
                states = [*zip(q, found.q1, found.v1)]
                fallen = [GRAVITY * dt * robot.momentum(q1, v1)[2] for _, q1, v1 in states]
                raised = [robot.potential_energy(q1) - robot.potential_energy(q0) for q0, q1, _ in states]
                assert (now - raised + fallen <= energy(robot, q, v) + 1e-12 * first).all()
        q, v = found.q1, found.v1
    assert (now < 0.3 * first).all()


@pytest.mark.nightly
def test_ten_boxes_stand_for_a_hundred_seconds() -> None:
    box = '<geom type="box" size=".1 .08 .05" mass="2"/>'
    bodies = (f'<body pos="{0.01 * (k % 2)} 0 {0.05 + 0.1 * k}"><freejoint/>{box}</body>' for k in range(10))
    robot = drevo.load(scene("".join(bodies), 0.01))
    start = np.array(robot.model.initial)
    step = drevo.compile(robot, "step", dt=0.01, ground=None, law="coulomb", repeat=100)
    q, v = start, np.zeros(robot.nv)
    for _ in range(100):
        found = step(q, v, np.zeros(robot.nv))
        q, v = found.q1, found.v1
        assert found.residual <= RESIDUAL
    assert np.abs(q - start).max() < 1e-6
