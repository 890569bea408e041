"""Khatib's terms of published robots, fixed and floating, against products of Pinocchio's M^-1 and J."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import pinocchio_of
from test_example_robots import BASES, BY_NIGHT, LOADED, load

DIGITS = 1e-11  # of the largest entry
AXES = ("x", "y", "z", "rx", "ry", "rz")
INDEPENDENT = 0.05  # of the largest singular value of J's rows: axes that are less so are left out
DAILY = ("panda.urdf", "go1.urdf", "iris_simple.urdf", "double_pendulum.urdf")
NO_BODY = "icub"  # has an inertia that Pinocchio refuses
CASES = [
    pytest.param(name, base, marks=[] if name.endswith(DAILY) else pytest.mark.nightly)
    for name in LOADED
    for base in BASES
    if not name.startswith((*BY_NIGHT, NO_BODY))
]


def chosen_axes(J: np.ndarray) -> list[int]:
    """The axes, one after the other, along which the link moves whatever the earlier ones do."""
    rows: list[int] = []
    largest = np.linalg.norm(J, 2)
    for k in range(6):
        if len(rows) < J.shape[1] and np.linalg.svd(J[[*rows, k]], compute_uv=False)[-1] > INDEPENDENT * largest:
            rows.append(k)
    return rows


def test_thirty_robots_are_among_them() -> None:
    assert len({x.values[0] for x in CASES}) >= 30


@pytest.mark.parametrize(("name", "base"), CASES)
def test_terms_are_products_of_pinocchio(name: str, base: str) -> None:
    robot = load(name, base)
    if not robot.nv:
        return
    link = max(robot.moving_links, key=lambda x: len(robot.topology.ancestors[robot.link_names.index(x)]))
    oracle, rng = pinocchio_of(robot.model), np.random.default_rng(11)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    M, J = oracle.mass_matrix(q), oracle.jacobian(q, link)
    rows = chosen_axes(J)
    h, g = oracle.bias(q, v), oracle.gravity(q)
    rate = oracle.acceleration(q, v, np.zeros(robot.nv), link)[rows]
    moved = np.linalg.solve(M, J[rows].T)  # M^-1 J^T
    Lambda = np.linalg.inv(J[rows] @ moved)
    expected = {
        "J": J[rows], "Jdot_v": rate, "Lambda": Lambda, "p": Lambda @ moved.T @ g, "Jbar": moved @ Lambda,
        "mu": Lambda @ (moved.T @ (h - g) - rate), "N": np.eye(robot.nv) - moved @ Lambda @ J[rows],
    }  # fmt: skip
    x = robot.operational_space(link, q, v, axes=[AXES[k] for k in rows])
    lost = np.linalg.cond(M) * np.linalg.cond(J[rows] @ moved) * np.finfo(float).eps
    for key, value in expected.items():
        error = np.abs(getattr(x, key) - value).max() / max(1.0, np.abs(value).max())
        assert error < max(DIGITS, lost), (key, error, lost)
