"""Accuracy of the tool: columns against robots with displaced frames, sag against textbooks, Monte Carlo."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo import loads
from drevo.cli.main import app
from drevo.errors import DrevoError
from drevo.model.rotations import from_rpy

Array = np.ndarray[Any, Any]
G = 9.81


def arm() -> drevo.Robot:
    """Four joints of three kinds, frames that are turned, and a tool welded on."""
    b = drevo.Builder("arm")
    b.body("a", axis=(0, 0, 1), origin=(0, 0, 0.4), rpy=(0.1, 0.2, 0), mass=2.0, com=(0.1, 0, 0.1),
           inertia=0.02 * np.eye(3))  # fmt: skip
    b.body("b", "a", axis=(0, 1, 0), origin=(0.1, 0, 0.3), mass=1.5, com=(0.2, 0, 0), inertia=0.02 * np.eye(3))
    b.body("slide", "b", "prismatic", (1, 0, 0), (0.4, 0, 0), mass=0.5, com=(0.1, 0, 0), inertia=0.01 * np.eye(3))
    b.body("wrist", "slide", "spherical", origin=(0.2, 0.05, 0), rpy=(0, 0.4, 0), mass=0.4, com=(0, 0, 0.05),
           inertia=0.01 * np.eye(3))  # fmt: skip
    b.body("tool", "wrist", "fixed", origin=(0, 0, 0.1), rpy=(0.3, 0, 0), mass=0.3, inertia=0.001 * np.eye(3))
    return b.robot()


POINT = np.array([0.02, -0.03, 0.12])


def configuration(robot: drevo.Robot) -> Array:
    return robot.random(np.random.default_rng(3))


def reached(robot: drevo.Robot, q: Array) -> tuple[Array, Array]:
    T = robot.pose(q, "tool")
    return T[:3, :3] @ POINT + T[:3, 3], T[:3, :3]


def displaced(robot: drevo.Robot, joint: str, k: int, h: float) -> drevo.Robot:
    """The robot whose joint stands a small step away on its parent, by the axes of the joint's frame."""

    def step(j: Any) -> Any:
        if j.name != joint:
            return j
        R, e = np.array(j.rotation), h * np.eye(6)[k]
        p = np.array(j.origin) + R @ e[:3]
        R = R @ np.array(from_rpy(*e[3:]))
        return replace(j, origin=tuple(p.tolist()), rotation=tuple(tuple(row) for row in R.tolist()))

    return drevo.Robot(replace(robot.model, joints=tuple(step(j) for j in robot.model.joints)))


def test_columns_are_those_of_displaced_robots() -> None:
    """Differences over 2e-4 err by h^2 / 6 and by rounding / h: 1e-8 and 1e-12."""
    robot = arm()
    q, h = configuration(robot), 2e-4
    found = loads.accuracy(robot, q, "tool", point=POINT, joint_errors=1.0, frame_errors=(1.0, 1.0))
    assert found.jacobian.shape == (6, 6 + 5 * 6)
    for c, name in enumerate(found.sources):
        kind, joint = name.split(":")
        if kind == "q":
            low, high = (reached(robot, robot.integrate(q, s * h * np.eye(robot.nv)[c])) for s in (-1, 1))
        elif joint.split(".")[0] in ("slide_joint", "wrist_joint", "tool_joint"):
            k = loads.tool.TASK_AXES.index(joint.split(".")[1])
            low, high = (_pose(displaced(robot, joint.split(".")[0], k, s * h), q) for s in (-1, 1))
        else:
            continue
        linear = (high[0] - low[0]) / (2 * h)
        turn = (high[1] @ low[1].T - np.eye(3)) / (2 * h)
        angular = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
        assert np.abs(found.jacobian[:, c] - np.hstack([linear, angular])).max() < 1e-7, name


def _pose(robot: drevo.Robot, q: Array) -> tuple[Array, Array]:
    """The tool by the algorithm itself on floats: nothing is compiled for a robot of one use."""
    from drevo.mechanics.algorithms.kinematics import pose
    from drevo.mechanics.tree import build_tree

    T = np.array(pose(build_tree(robot.model), q.tolist(), "tool"), float)
    return T[:3, :3] @ POINT + T[:3, 3], T[:3, :3]


def test_worst_case_is_reached_by_a_corner() -> None:
    """Of a plane arm of two links by hand: columns (-y, x) of the tool from each joint."""
    b = drevo.Builder("plane")
    b.body("one", axis=(0, 0, 1), mass=1.0, inertia=np.eye(3))
    b.body("two", "one", axis=(0, 0, 1), origin=(0.5, 0, 0), mass=1.0, inertia=np.eye(3))
    q, tol = np.array([0.3, 0.8]), np.array([1e-3, 2e-3])
    found = loads.accuracy(b.robot(), q, "two", point=(0.4, 0, 0), joint_errors=tol)
    elbow = 0.5 * np.array([np.cos(0.3), np.sin(0.3)])
    fore = 0.4 * np.array([np.cos(1.1), np.sin(1.1)])
    columns = np.array([[-(elbow + fore)[1], -fore[1]], [(elbow + fore)[0], fore[0]]])
    assert np.abs(found.worst[:2] - np.abs(columns) @ tol).max() < 1e-17
    assert found.worst[5] == pytest.approx(3e-3, rel=1e-15)
    assert np.abs(found.covariance[:2, :2] - columns @ np.diag(tol**2 / 3) @ columns.T).max() < 1e-20
    shares = found.shares()
    assert sum(shares.values()) == pytest.approx(1.0, rel=1e-15)
    assert next(iter(shares.values())) == max(shares.values())
    batch = loads.accuracy(b.robot(), np.stack([q, q + 1.0]), "two", point=(0.4, 0, 0), joint_errors=tol)
    assert np.array_equal(batch.worst[0], found.worst)


def cantilever(length: float = 0.8, mass: float = 3.0) -> drevo.Robot:
    b = drevo.Builder("cantilever")
    J = mass * length**2 / 12
    b.body("beam", axis=(0, 1, 0), mass=mass, com=(length / 2, 0, 0), inertia=np.diag([0.0, J, J]))
    return b.robot()


def test_sag_of_an_elastic_beam() -> None:
    """w l^4 / 8 EI and P l^3 / 3 EI down, w l^3 / 6 EI and P l^2 / 2 EI about y; shear w l^2 / 2 GA and P l / GA;
    torsion T l / GJ; tension N l / EA."""
    l, m, EI, GA, GJ, EA = 0.8, 3.0, 500.0, 2e4, 300.0, 1e6
    robot, P, T, N = cantilever(l, m), 40.0, 5.0, 70.0
    springs = loads.beam(robot, "beam", EA=EA, GA=GA, GJ=GJ, EIy=EI, EIz=EI)
    force = {"beam": np.array([N, 0.0, -P, T, l * P, 0.0])}  # at the tip, so P turns about the origin by l P
    found = loads.accuracy(robot, [0.0], "beam", point=(l, 0, 0), springs=springs, f_ext=force)
    w = m * G / l
    down = w * l**4 / (8 * EI) + P * l**3 / (3 * EI) + w * l**2 / (2 * GA) + P * l / GA
    turn = w * l**3 / (6 * EI) + P * l**2 / (2 * EI)
    wanted = np.array([N * l / EA, 0.0, -down, T * l / GJ, turn, 0.0])
    assert np.abs(found.sag - wanted).max() < 1e-12 * down
    half = loads.accuracy(robot, [0.0], "beam", point=(l / 2, 0, 0), springs=springs, f_ext=force)
    assert 0.0 < half.sag[4] < found.sag[4]  # what lies beyond the point does not move it


def test_sag_of_a_drive() -> None:
    """q gives way by m g l / 2 k; the tip goes down by l times that."""
    with pytest.raises(drevo.InputError, match="link 'beem' is not in robot"):  # with rigid drives too
        loads.accuracy(cantilever(), [0.0], "beam", f_ext={"beem": np.zeros(6)})
    found = loads.accuracy(cantilever(), [0.0], "beam", point=(0.8, 0, 0), stiffness=1000.0)
    give = 3.0 * G * 0.4 / 1000.0
    assert np.abs(found.sag - [0, 0, -0.8 * give, 0, give, 0]).max() < 1e-15
    named = loads.accuracy(cantilever(), [0.0], "beam", point=(0.8, 0, 0), stiffness={"beam_joint": 1000.0})
    assert np.array_equal(named.sag, found.sag)


def test_without_tolerances_nothing_has_a_share() -> None:
    robot = drevo.load("three-link")
    assert loads.accuracy(robot, robot.neutral(), "link3").shares() == {}
    assert loads.accuracy(robot, np.zeros((4, 3)), "link3").shares() == {}


@pytest.mark.parametrize("law", ["uniform", "normal"])
def test_monte_carlo_agrees(law: str) -> None:
    """Five standard errors of a sample covariance, C_ii C_jj + C_ij^2 over n of normal errors (fewer of uniform
    ones), and what is not linear: errors of e = 1e-3 over 1.5 m make 3 e^2 m, to C at most 2 sqrt(C) 3 e^2."""
    robot, n = arm(), 20_000
    q = configuration(robot)
    springs = [loads.Spring("b", 0.2, 1e-6 * np.eye(6), ((0, 0, 0), (0.4, 0, 0)))]
    found = loads.accuracy(
        robot, q, "tool", point=POINT, joint_errors=1e-3, frame_errors=(2e-4, (1e-4, 2e-4, 3e-4)), stiffness=1e4,
        springs=springs, error_distribution=law,
    )  # fmt: skip
    drawn = found.monte_carlo(n, np.random.default_rng(1))
    C, D, e = found.covariance, found.deviation, 3e-6
    error = np.sqrt((np.outer(D, D) ** 2 + C**2) / n)
    assert (np.abs(drawn.covariance - C) < 5 * error + 2 * e * np.maximum.outer(D, D) + e * e).all()
    assert np.abs(drawn.covariance - C).max() < 0.1 * np.abs(C).max()
    assert (np.abs(drawn.mean - found.sag) < 5 * D / np.sqrt(n) + e).all()
    if law == "uniform":
        assert (drawn.worst < found.worst + e).all()
    assert np.abs(found.sag).max() > 1e-5  # gives way, and in full the same
    still = loads.accuracy(robot, q, "tool", point=POINT, stiffness=1e4, springs=springs)
    assert np.abs(still.monte_carlo(2).mean - still.sag).max() < e


def refused(**given: Any) -> str:
    robot = cantilever()
    with pytest.raises(DrevoError) as caught:
        loads.accuracy(robot, given.pop("q", [0.0]), given.pop("link", "beam"), **given)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_refusals() -> None:
    assert "did you mean 'beam'" in refused(link="beem")
    assert "did you mean 'beam_joint'" in refused(joint_errors={"beam_join": 1e-3})
    assert "give (translation, rotation)" in refused(frame_errors={"beam_joint": 1e-3})
    assert "finite and not negative" in refused(joint_errors=-1.0)
    assert "stiffness is positive" in refused(stiffness=0.0)
    assert "there are uniform, normal" in refused(error_distribution="flat")
    assert "last dimension must be 1" in refused(q=[0.0, 0.0])
    assert "joint_errors has shape (2,)" in refused(joint_errors=[1.0, 2.0])
    spring = loads.Spring("beam", 2.0, np.eye(6))
    assert "outside link 'beam'" in refused(springs=[spring])
    assert "must be (6, 6)" in refused(springs=[loads.Spring("beam", 0.1, np.eye(3))])


def test_command() -> None:
    words = ["accuracy", "puma560", "--link", "link6", "--q", "0,-1,1,0,0.5,0", "--joint-error", "1e-4",
             "--frame-error", "1e-4,1e-4", "--stiffness", "2e4", "--monte-carlo", "500", "--json"]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    found = loads.accuracy(drevo.load("puma560"), [0, -1, 1, 0, 0.5, 0], "link6", joint_errors=1e-4,
                           frame_errors=(1e-4, 1e-4), stiffness=2e4)  # fmt: skip
    assert facts["worst"] == found.worst.tolist()
    assert facts["monte_carlo"]["count"] == 500
    assert "drawn worst" in CliRunner().invoke(app, words[:-1]).stdout
    result = CliRunner().invoke(app, ["accuracy", "puma560", "--link", "link6", "--frame-error", "1e-4"])
    assert result.exit_code == 2
    assert "give (translation, rotation)" in result.stderr
