"""The same robot from another link: energies, mass matrices, bias and motion after the map of states."""

import copy

import numpy as np
import pytest
from strategies import robot as random_tree
from strategies import seeds

import drevo
from drevo.mechanics.reframe import trunk_pitch
from drevo.robot.face import RerootedRobot

RNG = np.random.default_rng(20)


def rates_map(other: RerootedRobot, q):
    """T with v' = T v, a column for each rate."""
    nv = len(other.map_back(other.neutral())[1])
    return np.stack([other.map(q, e)[1] for e in np.eye(nv)], -1)


def agree(robot: drevo.Robot, other: RerootedRobot, tolerance: float = 1e-12) -> None:
    q, v, a = robot.random(RNG), RNG.normal(size=robot.nv), RNG.normal(size=robot.nv)
    if trunk_pitch(robot.model) is not None:  # other angles stand for the same pose beyond +-90 degrees
        q[3:6] *= 0.4
    p, u = other.map(q, v)
    T = rates_map(other, q)
    M = T.T @ other.mass_matrix(p) @ T
    scale = np.abs(M).max()
    assert np.abs(M - robot.mass_matrix(q)).max() < tolerance * scale
    back = other.map_back(p, u)
    assert np.abs(robot.difference(q, back[0])).max() < 1e-11 and np.abs(back[1] - v).max() < 1e-11
    for link in (link.name for link in robot.model.links if link.inertial):
        assert np.abs(robot.pose(q, link) - other.pose(p, link)).max() < 1e-11, link
        assert np.abs(robot.velocity(q, v, link) - other.velocity(p, u, link)).max() < 1e-10, link
    # motion: accelerations a map to T a + T' v, and torques back by T^T
    h = 1e-5
    ahead, behind = (robot.integrate(q, s * h * v) for s in (1.0, -1.0))
    rate = (other.map(ahead, v)[1] - other.map(behind, v)[1]) / (2.0 * h)
    tau = T.T @ other.inverse_dynamics(p, u, T @ a + rate)
    expected = robot.inverse_dynamics(q, v, a)
    assert np.abs(tau - expected).max() < 1e-6 * max(np.abs(expected).max(), scale)  # of the difference quotient
    if robot.model.joints[0].kind == "free":
        agree_exactly(robot, other, q, v, a, tolerance)
    # the same exactly: bias where nothing moves is gravity, and power of gravity
    assert np.abs(T.T @ other.gravity(p) - robot.gravity(q)).max() < 1e-11 * max(1.0, np.abs(expected).max())


def agree_exactly(robot: drevo.Robot, other: RerootedRobot, q, v, a, tolerance: float) -> None:
    """Bias and motion after the map, without differences: rates and accelerations of joints are carried alike, and
    those of the base are the link's own in its axes."""
    p, u = other.map(q, v)
    link = next(j.child for j in other.model.joints if j.kind == "free")
    T = rates_map(other, q)
    size = np.abs(robot.mass_matrix(q)).max() * (1.0 + np.abs(a).max() + np.abs(v).max() ** 2)

    def accelerations(a):
        carried = other.map(q, a)[1]
        carried[:6] = robot.acceleration(q, v, a, link, frame="local", kind="spatial")
        return carried

    for x in (0.0 * a, a):  # bias, then any motion
        expected, tau = robot.inverse_dynamics(q, v, x), other.inverse_dynamics(p, u, accelerations(x))
        assert np.abs(T.T @ tau - expected).max() < tolerance * max(np.abs(expected).max(), size)
    h = other.bias(p, u)
    back = np.linalg.solve(T.T, robot.inverse_dynamics(q, v, a)) - h
    moved = other.mass_matrix(p) @ accelerations(a)
    assert np.abs(back - moved).max() < 10.0 * tolerance * np.linalg.cond(T) * max(np.abs(back).max(), size)


@pytest.mark.parametrize("base", ["floating", "trunk"])
@pytest.mark.parametrize("link", ["right_foot", "torso", "left_shin"])
def test_a_biped_from_another_link(base: str, link: str) -> None:
    robot = drevo.load("biped", base=base)
    agree(robot, robot.rerooted(link))


def test_it_can_be_copied() -> None:
    other = drevo.load("biped").rerooted("right_foot")
    again = copy.deepcopy(other)
    q = RNG.normal(size=other.nq)
    assert np.array_equal(again.mass_matrix(q), other.mass_matrix(q))
    assert np.array_equal(again.map(q)[0], other.map(q)[0])


KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "fixed")


@pytest.mark.parametrize("seed", seeds(6, 50))
def test_random_trees_from_a_random_link(seed: int) -> None:
    model = random_tree(seed, KINDS, base="floating")
    robot = drevo.Robot(model)
    carried = [j.child for j in model.joints if j.kind != "fixed"]
    agree(robot, robot.rerooted(carried[seed % len(carried)]))


def test_single_support_by_telegin_takes_fewer_operations_than_the_trunk() -> None:
    biped = drevo.load("biped")
    trunk, foot = (
        drevo.write_out(robot, "mass_matrix", formalism="telegin").counts
        for robot in (drevo.load("biped", base="trunk"), biped.rerooted("right_foot"))
    )
    assert foot["add"] + foot["mul"] < 0.7 * (trunk["add"] + trunk["mul"])
