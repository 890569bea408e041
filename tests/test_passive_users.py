"""Who counts what acts in joints: drives, sections, walks, constrained motions and their reactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import strategies

import drevo
from drevo import DrevoWarning, Robot, loads, walking
from drevo.mechanics.algorithms.passive import passive_on_arrays
from drevo.model.description import JointDynamics

Array = np.ndarray
ACTS = JointDynamics(damping=2.0, friction=0.3, stiffness=15.0, reference=0.2)


def equipped(robot: Robot, acts: JointDynamics = ACTS) -> Robot:
    """With the same in every joint of one rate."""
    joints = (replace(j, dynamics=acts) if j.nv == 1 else j for j in robot.model.joints)
    return Robot(replace(robot.model, joints=tuple(joints)))


def four_bar() -> tuple[Robot, Array, Array]:
    b = drevo.Builder("four-bar", gravity=(0, -9.81, 0))
    J = np.diag([0.0, 0.01, 0.01])
    b.body("crank", axis=(0, 0, 1), mass=1.0, com=(0.2, 0, 0), inertia=J, damping=1.0, stiffness=5.0)
    b.body("rod", "crank", axis=(0, 0, 1), origin=(0.4, 0, 0), mass=1.5, com=(0.5, 0, 0), inertia=J, friction=0.2)
    b.body("rocker", axis=(0, 0, 1), origin=(1, 0, 0), mass=1.2, com=(0.3, 0, 0), inertia=J, damping=0.4)
    robot = b.loop("point", "rod", (1.0, 0, 0), "rocker", (0.6, 0, 0)).robot()
    return robot, *drevo.constraint.hold(robot, np.array([1.2, -0.7, 1.5]), np.array([1.0, 0.0, 0.0]))


def test_drives_work_against_what_acts_in_joints() -> None:
    robot, rng = equipped(drevo.load("puma560")), np.random.default_rng(0)
    x = loads.Trajectory.through(robot, rng.normal(size=(2, 6)), [0.0, 1.0], rows=11)
    found, bare = loads.drives(robot, x), loads.drives(robot, x, passive=False)
    assert np.abs(bare.effort - found.effort - robot.passive(x.q, x.v)).max() < 1e-12
    assert np.abs(found.effort - robot.inverse_dynamics(x.q, x.v, x.a, passive=True)).max() < 1e-11
    assert np.abs(found.static - robot.inverse_dynamics(x.q, 0 * x.v, 0 * x.v, passive=True)).max() < 1e-11


def test_sections_bear_the_same_whoever_turns_the_joint() -> None:
    """The wrench in a joint is that of the motion; the part of a weight that is taken away is not borne."""
    b, rng, link = drevo.Builder("rods"), np.random.default_rng(1), "upper"
    rod: dict[str, Any] = {"mass": 1.0, "com": (0.15, 0, 0), "inertia": np.diag([1e-4, 0.0065, 0.0065])}
    b.body("upper", axis=(0, 1, 0), **rod)
    robot = b.body("lower", "upper", axis=(0, 0, 1), origin=(0.3, 0, 0), **rod).robot()
    q, v, a = (rng.normal(size=2) for _ in range(3))
    given: dict[str, Any] = {"s": [0.0], "span": ((0, 0, 0), (0.3, 0, 0)), "distribution": "box"}
    one, two = (loads.section_loads(r, q, v, a, link, **given).total for r in (robot, equipped(robot)))
    assert np.abs(one - two).max() == 0.0
    lifted = replace(robot.model, links=tuple(replace(x, gravcomp=1.0) for x in robot.model.links))
    floats = Robot(replace(robot.model, gravity=(0.0, 0.0, 0.0)))
    three, four = (loads.section_loads(r, q, v, a, link, **given).total for r in (Robot(lifted), floats))
    assert np.abs(three - four).max() < 1e-10 * np.abs(one).max()


def test_constrained_motions_and_their_reactions() -> None:
    robot, q, v = four_bar()
    p = robot.passive(q, v)
    tau = np.array([3.0, 0.0, 0.0])
    with_p = robot.constrained_dynamics(q, v, tau, passive=True)
    assert np.abs(with_p.a - robot.constrained_dynamics(q, v, tau + p).a).max() < 1e-11
    back = robot.constrained_inverse_dynamics(q, v, with_p.a, actuated=["crank_joint"], passive=True)
    assert np.abs(back.tau - tau).max() < 1e-9
    table = robot.simulate(q, v, tau=tau, duration=0.02, dt=1e-3)
    assert np.abs(table.reactions[0] - with_p.reactions).max() < 1e-9
    x = loads.Trajectory.simulated(table, tau)
    assert np.abs(x.a[0] - with_p.a).max() < 1e-9
    driven = loads.drives(robot, x, actuated=["crank_joint"])
    assert np.abs(driven.effort - tau).max() < 1e-6  # by the reactions of a motion that keeps its loop


def test_rotors_that_turn_in_space_are_not_passive() -> None:
    spun = JointDynamics(rotor=1e-3, gear=20.0, rotor_axis=(1.0, 0.0, 0.0), damping=2.0)
    assert spun.rotors == replace(spun, damping=0.0)
    assert spun.rotors.reflected == spun.reflected == pytest.approx(0.4)


@pytest.mark.parametrize("passive", [False, True])
def test_a_trajectory_that_was_simulated(passive: bool) -> None:
    robot = equipped(drevo.load("three-link"))
    table = robot.simulate([0.3, 0.2, 0.1], [1.0, 0.5, -1.0], duration=0.1, every=50, passive=passive)
    x = loads.Trajectory.simulated(table)
    assert np.abs(loads.drives(robot, x, passive=passive).effort).max() < 1e-9


def test_a_walk_counts_them() -> None:
    """Where both stand alike, drives give what dampers and springs do not."""
    bare = drevo.load("biped", base="floating")
    robot = equipped(bare, JointDynamics(damping=0.5, stiffness=4.0))
    quick = walking.Gait("quick", length=0.02, lift=0.01, single=0.2, double=0.2, settle=0.4, dt=0.04)
    one = walking.plan(bare, 1, quick)
    laws = [walking.control.Follower(made, 20.0, 0.02, 0.0) for made in (one, replace(one, robot=robot))]
    rng = np.random.default_rng(6)
    for law in laws:
        law.most[:] = np.inf  # what drives can give at most is another matter
    for k, q in enumerate(one.phases[1].q):
        v = 0.1 * rng.normal(size=bare.nv)
        alone, helped = (law.efforts(k + 20, q, v) for law in laws)
        np.testing.assert_allclose(alone - helped, robot.passive(q, v), atol=1e-9)


def test_a_damped_base_does_not_walk_in_silence() -> None:
    model = drevo.load("biped", base="floating").model
    damped = replace(model.joints[0], dynamics=JointDynamics(damping=1.0))
    held = Robot(replace(model, joints=(damped, *model.joints[1:])))
    with pytest.warns(DrevoWarning, match="walks without what acts in its free joint"):
        walking.feet.legs(held)


# -- large trees ------------------------------------------------------------------------------------------------

SORTS = (
    JointDynamics(armature=0.1, damping=0.3, stiffness=2.0, friction=0.05, reference=0.1),
    JointDynamics(quadratic=0.2, cubic=0.1, offset=0.3),
    None,
    JointDynamics(stiffness=1.0, stiffness2=0.2, stiffness3=0.1),
)


def large(kinds: tuple[str, ...], base: str = "fixed") -> Robot:
    model = strategies.robot(0, kinds, 90, base, welds=0.1, mimics=0.0)
    joints: list[Any] = [replace(j, dynamics=SORTS[i % 4]) for i, j in enumerate(model.joints)]
    rest = (0.1, 0.2, 0.3, 0.0, 0.6, 0.0, 0.8)
    if base == "floating":
        joints[0] = replace(joints[0], dynamics=JointDynamics(damping=0.3, stiffness=1.5, rest=rest))
    fixed = (replace(j, dynamics=None) if j.kind == "fixed" else j for j in joints)
    return Robot(replace(model, joints=tuple(fixed)))


@pytest.mark.parametrize(
    ("kinds", "base"),
    [(("revolute", "prismatic"), "floating"), (strategies.EVERY, "fixed")],
    ids=["axes", "every"],
)
def test_loops_over_bodies_have_what_acts_in_joints(kinds: tuple[str, ...], base: str) -> None:
    robot, rng = large(kinds, base), np.random.default_rng(0)
    q, v, a = np.stack([robot.random(rng=rng) for _ in range(9)]), *rng.normal(size=(2, 9, robot.nv))
    p = passive_on_arrays(robot.model)(q, v)

    def off(found: Array, wanted: Array) -> float:
        return float(np.abs(found - wanted).max() / np.abs(wanted).max())

    assert drevo.compile(robot, "passive").how == "bodies"
    assert off(robot.passive(q, v), p) < 1e-14
    tau = robot.inverse_dynamics(q, v, a, passive=True)
    assert off(tau, robot.inverse_dynamics(q, v, a) - p) < 1e-14
    assert off(robot.bias(q, v, passive=True), robot.bias(q, v) - p) < 1e-14
    assert off(robot.forward_dynamics(q, v, tau, passive=True), a) < 1e-10


def test_a_long_chain_comes_to_rest() -> None:
    """Thousands of joints with springs and dampers, in the compiled engine: energy goes, and not into nothing."""
    n, b = 1500, drevo.Builder("chain")
    for k in range(n):
        b.body(f"l{k}", f"l{k - 1}" if k else "world", axis=np.eye(3)[k % 2], origin=(0, 0, -0.1), mass=1.0,
               com=(0, 0, -0.05), inertia=np.eye(3) * 0.01, damping=5.0, stiffness=20.0)  # fmt: skip
    robot = b.robot()
    q = np.random.default_rng(0).normal(size=n) * 1e-3
    table = robot.simulate(q, duration=0.02, dt=2e-4, every=20)
    total = table.energy + 10.0 * (table.q**2).sum(-1)
    assert (np.diff(total) < 0.0).all()
    braked = 5.0 * (table.v**2).sum(-1)  # the power that dampers take
    spent = float(((braked[1:] + braked[:-1]) / 2 * np.diff(table.t)).sum())
    assert abs(total[0] - total[-1] - spent) < 0.1 * spent
