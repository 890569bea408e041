"""drevo workspace: points that a link reaches, against an arm whose reach is known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.kinematics.workspace import reachable_points


def two_links() -> drevo.Robot:
    """Two hinges about z with rods of 0.5 m and 0.3 m."""
    b = drevo.Builder("two")
    more = {"mass": 1.0, "inertia": np.eye(3), "axis": (0, 0, 1)}
    b.body("upper", parent="world", joint="continuous", **more)
    b.body("lower", parent="upper", joint="continuous", origin=(0.5, 0, 0), **more)
    return b.robot()


def test_points_fill_the_ring_of_two_rods() -> None:
    space = reachable_points(two_links(), "lower", 20_000, point=(0.3, 0, 0))
    ranges = space.ranges()
    np.testing.assert_allclose(ranges["from the z axis"], [0.2, 0.8], atol=1e-3)
    np.testing.assert_allclose(ranges["x"], [-0.8, 0.8], atol=5e-3)
    assert ranges["z"] == (0.0, 0.0) and "two" in space.svg()


def test_points_are_those_of_configurations_within_the_limits() -> None:
    robot = drevo.load("panda")
    space = reachable_points(robot, "panda_link8", 3000)
    assert (space.q >= robot.lower).all() and (space.q <= robot.upper).all()
    np.testing.assert_array_equal(space.points, robot.pose(space.q, "panda_link8")[:, :3, 3])


def test_the_command_line_prints_and_saves(tmp_path) -> None:
    words = ["workspace", "puma560", "--link", "link6", "--samples", "2000"]
    for name in ("points.csv", "reach.svg"):
        result = CliRunner().invoke(app, [*words, "-o", str(tmp_path / name)])
        assert result.exit_code == 0 and "from the origin" in result.output, result.output
    points = np.loadtxt(tmp_path / "points.csv", delimiter=",", skiprows=1)
    ranges = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)["ranges"]
    np.testing.assert_allclose(ranges["z"], [points[:, 2].min(), points[:, 2].max()], rtol=1e-8)
    assert (tmp_path / "reach.svg").read_text().startswith("<svg")


def test_what_does_not_fit_is_said() -> None:
    robot = drevo.load("puma560")
    with pytest.raises(drevo.DrevoError, match="did you mean"):
        reachable_points(robot, "link9")
    with pytest.raises(drevo.DrevoError, match="does not move"):
        reachable_points(robot, robot.link_names[0], 10)
    with pytest.raises(drevo.DrevoError, match="samples"):
        reachable_points(robot, "link6", 0)
