"""Pose, velocity, acceleration and Jacobian of a link as one observes them from another."""

from dataclasses import replace

import numpy as np
import pytest
from strategies import robot as random_tree
from strategies import seeds, state

import drevo
from drevo.model.description import Joint, Link


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_relative_motion_by_its_definition(seed: int) -> None:
    model = random_tree(seed)
    robot, rng = drevo.Robot(model), np.random.default_rng(seed)
    names = [link.name for link in model.links]
    link, other = (str(x) for x in rng.choice(names, 2))
    q, v, a = state(model, seed)
    T = np.linalg.solve(robot.pose(q, other), robot.pose(q, link))
    assert np.abs(robot.pose(q, link, relative_to=other) - T).max() < 1e-12 * (1.0 + np.abs(T).max())

    def pose(t: float) -> np.ndarray:
        return robot.pose(robot.integrate(q, t * v + 0.5 * t * t * a), link, relative_to=other)

    for frame in ("local_world_aligned", "local", "world"):
        J = robot.jacobian(q, link, frame, relative_to=other)
        V = robot.velocity(q, v, link, frame, relative_to=other)
        assert np.abs(J @ v - V).max() < 1e-12 * (1.0 + np.abs(V).max())
    h = 1e-5
    rate = (pose(h) - pose(-h)) / (2.0 * h)
    V = robot.velocity(q, v, link, relative_to=other)
    turning = rate[:3, :3] @ T[:3, :3].T
    expected = [*rate[:3, 3], turning[2, 1], turning[0, 2], turning[1, 0]]
    assert np.abs(V - expected).max() < 1e-7 * (1.0 + np.abs(V).max())
    simple = all(j.kind not in ("spherical", "free") for j in model.joints)
    if simple:  # there q + t v + t^2 a / 2 has the rate v + t a
        A = robot.acceleration(q, v, a, link, relative_to=other)
        second = (pose(1e-4) - 2.0 * pose(0.0) + pose(-1e-4)) / 1e-8
        assert np.abs(A[:3] - second[:3, 3]).max() < 1e-5 * (1.0 + np.abs(A).max())


def test_from_the_base_it_is_that_in_the_world() -> None:
    robot = drevo.load("go1", base="floating")
    rng = np.random.default_rng(1)
    q, v, a = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    for kind in ("classical", "spatial"):
        for frame in ("local_world_aligned", "local", "world"):
            plain = robot.acceleration(q, v, a, "FR_calf", frame, kind)
            seen = robot.acceleration(q, v, a, "FR_calf", frame, kind, relative_to="world")
            assert np.abs(plain - seen).max() < 1e-11 * np.abs(plain).max()


def test_joints_that_carry_both_are_not_in_it() -> None:
    f = drevo.compile(drevo.load("panda"), "pose", link="panda_link7", relative_to="panda_link5")
    assert f.counts["trig"] == 4  # of joints 6 and 7
    with pytest.raises(KeyError, match="nothing"):
        drevo.load("panda").pose(np.zeros(8), "panda_link7", relative_to="nothing")


@pytest.mark.parametrize("seed", seeds(6, 40))
def test_a_point_of_a_link_is_a_frame_welded_there(seed: int) -> None:
    model = random_tree(seed)
    rng = np.random.default_rng(seed)
    link, other = (str(x) for x in rng.choice([link.name for link in model.links], 2))
    point = rng.normal(size=3)
    weld = Joint("welded", "fixed", link, "tool", origin=tuple(point))
    robot = drevo.Robot(replace(model, links=(*model.links, Link("tool")), joints=(*model.joints, weld)))
    q, v, a = state(model, seed)
    for relative in ({}, {"relative_to": other}):
        same(robot.pose(q, link, point=point, **relative), robot.pose(q, "tool", **relative))
        for frame in ("local_world_aligned", "local", "world"):
            how = {"frame": frame, **relative}
            same(robot.jacobian(q, link, point=point, **how), robot.jacobian(q, "tool", **how))
            same(robot.velocity(q, v, link, point=point, **how), robot.velocity(q, v, "tool", **how))
            for kind in ("classical", "spatial"):
                A = robot.acceleration(q, v, a, "tool", kind=kind, **how)
                same(robot.acceleration(q, v, a, link, point=point, kind=kind, **how), A)
    for frame in ("local_world_aligned", "local", "world"):
        b = robot.jacobian_bias(q, v, "tool", frame)
        same(robot.jacobian_bias(q, v, link, frame, point=point), b)
    many = np.stack([q, q]), np.stack([point, 2.0 * point])
    J = robot.jacobian(many[0], link, point=many[1])
    same(J[0], robot.jacobian(q, "tool"))
    out = np.empty((2, 4, 4))
    assert robot.pose(q, link, out, point=many[1]) is out
    same(out[0], robot.pose(q, "tool"))


def same(given: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(given - expected).max() < 1e-12 * (1.0 + np.abs(expected).max())


def test_a_wrong_point_or_a_link_in_the_wrong_place_is_said() -> None:
    robot = drevo.load("scara")
    q = np.zeros(robot.nq)
    with pytest.raises(drevo.DrevoError, match="jacobian: point"):
        robot.jacobian(q, robot.link_names[-1], point=(1.0, 2.0))
    with pytest.raises(drevo.DrevoError, match=r"the name of a link.*the order is pose"):
        robot.pose(robot.link_names[-1], q)
    assert abs(robot.total_mass - sum(l.inertial.mass for l in robot.model.links if l.inertial)) < 1e-15
