"""More of the public face as a table: ground, steps on it, trajectories, pages and drawings, closed platforms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from public_calls import Call, Rng, call, folder, robot, state

import drevo
from drevo import control, ground
from drevo.constraint.closing import hold

BALL = """<mujoco><option timestep="0.002"/><worldbody>
 <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".1" mass="2"/></body></worldbody></mujoco>"""
DOWN = (0.0, 0.0, 0.0999, 0.0, 0.0, 0.0, 1.0)  # on the ground


@cache
def ball() -> drevo.Robot:
    return drevo.load(BALL)


def effort(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    """A cost along the way."""
    return 1e-2 * sum(x * x for x in tau)


def rest(pose: Any, q: Any, v: Any) -> Any:
    """A cost at the end."""
    return (pose("link2")[0][3] - 0.3) ** 2 + sum(x * x for x in v)


def steps(rng: Rng) -> Iterator[Call]:
    """Ground, a step on it under either law, its derivatives, motions of steps."""
    r, heights = ball(), 0.01 * rng.normal(size=(3, 4))
    yield call(ground.grid, heights, (0.5, 0.4), origin=(-0.5, -0.6))
    yield call(ground.grid, heights, 0.5)
    yield call(ground.function, lambda x, y: 0.1 * drevo.sin(x) + 0.0 * y, lambda x, y: 0.5 + 0.0 * x)
    q, v = np.array([DOWN, DOWN]), 0.1 * rng.normal(size=(2, 6))
    tau = np.zeros((2, 6))
    yield Call("Function of a step", soft(), (q, v, tau), {"threads": 1})
    yield Call("Function of a hard step", hard(), (q, v, tau), {})
    yield Call("Function of a step's cotangents", product(), (q, v, tau, v, v), {})
    given = {"dt": 0.002, "ground": "plane"}
    yield call(drevo.compile, r, "step", **given, law="soft", method="euler", repeat=2, last=False)
    yield call(drevo.compile, r, "step", **given, law="coulomb", friction=0.5, restitution=0.1, touching=["ball"])
    yield call(drevo.compile, r, "step", **given, parameters=("*.mass",), product="jvp")
    yield call(r.simulate, q, v, duration=0.01, dt=0.002, ground="plane", law="soft", every=2)
    yield call(r.simulate, q[0], v[0], tau[0], duration=0.004, dt=0.002, ground="plane", law="coulomb")
    if rng.random() < 0.2:
        yield call(r.simulate, q[0], v[0], duration=0.004, dt=0.002, ground=ground.grid(heights, 0.5))


@cache
def soft() -> Any:
    return drevo.compile(ball(), "step", dt=0.002)


@cache
def hard() -> Any:
    return drevo.compile(ball(), "step", dt=0.002, law="coulomb", friction=0.5)


@cache
def product() -> Any:
    return drevo.compile(ball(), "step", dt=0.002, product="vjp")


def plans(rng: Rng) -> Iterator[Call]:
    """Motions of least cost, and what is asked of one."""
    r = robot("three-link")
    q, v = 0.1 * rng.normal(size=(2, 3))
    given = {"horizon": 4, "dt": 0.05, "terminal": rest, "iterations": 9}
    if rng.random() < 0.5:
        yield call(control.optimise, r, effort, q, v, **given)
    else:
        yield call(
            control.optimise, r, effort, q, v, 4, 0.05, {"tau": 50.0, "v": (-np.ones(3), np.ones(3))}, rest,
            actuated=r.joint_names, guess={"tau": np.zeros((4, 3))}, hessian="exact",
            iterations=3, tolerance=1e-8, t=0.1,
        )  # fmt: skip
    made = motion()
    yield call(made.again, q, v, 2)
    yield call(made.shifted, 1)
    yield call(made.law)
    yield call(made.figure)
    yield Call("Tracker of a plan", made.law(), (0.01, q, v), {})


@cache
def motion() -> Any:
    return control.optimise(robot("three-link"), effort, np.zeros(3), np.zeros(3), 4, 0.05, terminal=rest)


def looks(rng: Rng) -> Iterator[Call]:
    """Drawings, and now and then a live page, which takes a second."""
    r = robot("three-link")
    q = r.random(rng)
    yield call(r.draw, q)
    yield call(r.draw(q).save, folder() / "r.svg")
    if rng.random() < 0.2:
        yield call(r.view, folder() / "r.html", "gravity", q=q)


def platforms(rng: Rng) -> Iterator[Call]:
    """Closed loops in space: a Stewart platform."""
    yield call(drevo.robots.stewart)
    yield call(drevo.robots.four_bar)
    r = robot("stewart")
    q = standing()
    yield call(r.assemble, r.integrate(q, 1e-3 * rng.normal(size=r.nv)))
    yield call(hold, r, q, np.zeros(r.nv))
    now = state(r, rng, False)
    yield call(r.constrained_dynamics, q, np.zeros(r.nv), now["tau"])
    yield call(r.constrained_inverse_dynamics, q, np.zeros(r.nv), np.zeros(r.nv))
    yield call(r.simulate, q, duration=0.002, dt=1e-3)


@cache
def standing() -> np.ndarray:
    r = robot("stewart")
    return r.assemble(r.neutral())


MORE = (steps, plans, looks, platforms)
