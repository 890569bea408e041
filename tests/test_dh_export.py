"""Robots as Denavit-Hartenberg tables: what is read back has the same dynamics, coordinate by coordinate."""

from __future__ import annotations

import re
from math import pi
from typing import Any

import numpy as np
import pytest
import strategies
from reference import Reference
from test_khalil import published
from tolerances import DYNAMICS, KINEMATICS

import drevo
from drevo.dh import Table, table
from drevo.errors import ModelError
from drevo.model.description import Limit, Model, Shape
from drevo.robot.face import Robot

CONVENTIONS = ("standard", "modified")
EMBEDDED = ("three-link", "two-arm-planar", "two-arm-spatial", "puma560", "stanford", "rx90", "scara", "screw-arm",
            "biped", "rod-chain")  # fmt: skip


def matrix(row: dict[str, object], convention: str, q: float) -> np.ndarray:
    """M, then the four elementary motions in the order of the convention; textbook 4x4 matrices."""
    turn, shift = q * (row["joint"] in ("revolute", "helical")), q * (row["joint"] == "prismatic")
    if row["joint"] == "helical":
        shift = row["lead"] * q / (2 * pi)  # type: ignore[operator]
    steps = {
        "theta": pose(2, row["theta"] + turn, 0), "d": pose(2, 0, row["d"] + shift),  # type: ignore[operator]
        "a": pose(0, 0, row["a"]), "alpha": pose(0, row["alpha"], 0),
    }  # fmt: skip
    order = ("theta", "d", "a", "alpha") if convention == "standard" else ("alpha", "a", "theta", "d")
    T = np.array(row.get("M", np.eye(4)), float)
    for name in order:
        T = T @ steps[name]
    return T


def pose(k: int, angle: float, along: float) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[k, 3] = strategies.about(k, angle), along
    return T


def same_dynamics(robot: Robot, convention: str, seed: int = 0) -> Table:
    """tau of the robot and of its table read back at random states, and where every link is; on numbers."""
    made = table(robot, convention)
    back = drevo.from_dh(made)
    assert (back.nq, back.nv) == (robot.nq, robot.nv) and back.name == robot.name
    rng = np.random.default_rng(seed)
    one, two = Reference(robot.model), Reference(back.model)
    for q in robot.random(rng, 5):
        v, a = rng.normal(size=(2, robot.nv))
        right, found = one.inverse_dynamics(q, v, a), two.inverse_dynamics(q, v, a)
        assert np.abs(found - right).max() <= DYNAMICS * np.abs(right).max()
    assert sorted(back.link_names) == sorted({*robot.link_names, *(row["name"] for row in made)})
    assert back.link_names[0] == robot.link_names[0]
    for link in robot.link_names:
        assert np.abs(two.pose(q, link=link) - one.pose(q, link=link)).max() <= 1e-12, link
    return made


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
def test_embedded_robots_come_back(name: str, convention: str) -> None:
    same_dynamics(drevo.load(name), convention)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(
    ("name", "rows"),
    [("panda.urdf", 9), ("go2.urdf", 12), pytest.param("talos_reduced.urdf", 32, marks=pytest.mark.nightly)],
)
@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
def test_published_robots_come_back(name: str, rows: int, convention: str) -> None:
    """Arms, legs, branches, welds and mimic joints, on a fixed base."""
    robot = Robot(published(name, "fixed"))
    made = same_dynamics(robot, convention)
    assert len(made) == sum(j.kind != "fixed" for j in robot.model.joints) >= rows


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("seed", strategies.seeds(4, 12))
@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
def test_random_trees_come_back(seed: int, convention: str) -> None:
    """Every kind of joint, welds, mimics, axes that are parallel, almost parallel, skew; on both bases."""
    base = "floating" if seed % 3 == 0 else "fixed"
    model = strategies.robot(seed, strategies.EVERY, 12, base, 0.2, 0.2)
    made = same_dynamics(Robot(model), convention, seed)
    if base == "floating":
        assert made[0]["joint"] == "free" and [made[0][k] for k in ("theta", "d", "a", "alpha")] == [0.0] * 4


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", ["puma560", "biped", "screw-arm"])
@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
def test_rows_are_the_matrices_of_the_books(name: str, convention: str) -> None:
    """Products of 4x4 matrices, multiplied out here, are the poses of the links."""
    robot = drevo.load(name)
    made, q = table(robot, convention), robot.random(np.random.default_rng(1))
    T = [np.eye(4)]
    for row, x in zip(made, q):
        T.append(T[row["parent"]] @ matrix(row, convention, float(x)))
    of = {row["name"]: k for k, row in enumerate(made, 1)}
    for link in robot.link_names[1::4]:
        k, inside = made.frames.get(link, (of.get(link, 0), np.eye(4)))
        assert np.abs(T[k] @ inside - robot.pose(q, link)).max() <= 10 * KINEMATICS


def test_a_table_comes_back_as_it_was() -> None:
    """The puma's own rows: constants, and bodies in the rows' frames; parallel axes keep d where it was put."""
    rows = [
        {"theta": 0.0, "d": 0.3, "a": 0.2, "alpha": pi / 2},
        {"theta": 0.4, "d": 0.1, "a": 0.5, "alpha": -pi / 3},
        {"theta": 0.0, "d": 0.0, "a": 0.0, "alpha": 0.0, "joint": "prismatic"},
    ]
    body = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    made = table(drevo.from_dh([{**row, **body} for row in rows]))
    for row, right in zip(made, rows):
        assert all(abs(row[k] - right[k]) <= 1e-15 for k in ("theta", "d", "a", "alpha")) and "M" not in row
        assert np.abs(row["com"] - body["com"]).max() <= 1e-15
        assert np.abs(row["inertia"] - body["inertia"]).max() <= 1e-15
    assert made[2]["joint"] == "prismatic"


@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_table_keeps_what_acts_in_joints_and_what_links_look_like(convention: str) -> None:
    """Rotors, dampers, springs; limits of speed and effort; shapes; of joints of several steps too."""
    b = drevo.Builder("kept")
    full: Any = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    acts = {"armature": 0.3, "damping": 0.2, "stiffness": 5.0, "reference": 0.4}
    b.body("a", axis=(0, 1, 0), limit=Limit(-1.0, 1.0, 2.0, 3.0), **acts, **full)
    b.body(
        "b", "a", "universal", axis=(1, 0, 0), axis2=(0, 1, 0), origin=(0.3, 0, 0), friction=0.1, **acts, **full
    )
    b.body("tool", "b", "fixed", origin=(0, 0, 0.1), **full)
    b.shaped("tool", [Shape("box", (0.1, 0.2, 0.3))]).shaped("a", [Shape("sphere", (0.1,))])
    b.body("c", "a", **full).couple("c_joint", "a_joint", (0.1, 2.0))
    robot = b.robot()
    again = drevo.from_dh(table(robot, convention))
    assert again.model.couplings == robot.model.couplings
    q, v = robot.random(np.random.default_rng(0)), np.array([0.3, 0.2, 0.1, 0.4])
    for ask in (lambda r: r.mass_matrix(q), lambda r: r.passive(q, v), lambda r: r.max_effort, lambda r: r.upper):
        assert np.allclose(ask(again), ask(robot), rtol=0.0, atol=1e-14)
    kept = {x.name: x.shapes for x in again.model.links}
    assert all(kept[x.name] == x.shapes for x in robot.model.links)


def test_branches_start_from_auxiliary_frames() -> None:
    """Kovalchuk's M_{i,k}: of every child but the first; a first child needs none past an ordinary joint."""
    made = table(drevo.load("two-arm-spatial"))
    children: dict[int, list[int]] = {}
    for k, row in enumerate(made, 1):
        children.setdefault(row["parent"], []).append(k)
    for parent, listed in children.items():
        assert parent == 0 or "M" not in made[listed[0] - 1]
        assert all("M" in made[k - 1] for k in listed[1:])


def test_text_markdown_latex() -> None:
    """Every row once in each, angles by name, names escaped."""
    b = drevo.Builder("arm_1")
    b.body("upper_arm", mass=1.0, inertia=np.eye(3), rotation=strategies.about(0, pi / 2))
    b.body("fore_arm", "upper_arm", "helical", (1, 0, 0), (0.5, 0, 0), lead=0.02, mass=1.0, inertia=np.eye(3))
    made = table(b.robot())
    assert str(made) == made.text() and made.text().count("\n") >= 5
    assert re.search(r"^1 +upper_arm +0 by M +revolute +q1 \+ pi/2 +0 +0 +pi/2$", made.text(), re.M)
    assert "0.02 q2/2pi" in made.text()
    assert "| 2 | fore_arm | 1 | helical | q2 | 0.02 q2/2pi | 0 | 0 |" in made.markdown()
    assert "M of row 1 in the frame of row 0: [1 0 0; 0 0 -1; 0 1 0], origin (0 0 0)" in made.text()
    tex = made.latex()
    assert r"upper\_arm" in tex and r"$q_{1}$ + $\pi/2$" in tex and tex.count(r"\begin{bmatrix}") == 1
    assert tex.count(r" \\" + "\n") == 1 + len(made)


def test_refused() -> None:
    """One sentence each."""
    with pytest.raises(ModelError, match="'standard' or 'modified', not 'craig'"):
        table(drevo.load("puma560"), "craig")
    with pytest.raises(ModelError, match="row 1 has the joint 'free' and a constant that is not 0"):
        drevo.from_dh([{"joint": "free", "d": 0.5, "mass": 1.0, "inertia": np.eye(3)}])


def test_frames_of_welded_links() -> None:
    """Where a tool stands in the row of the body that holds it."""
    robot = drevo.load("screw-arm")
    made = table(robot)
    model: Model = robot.model
    welded = [j.child for j in model.joints if j.kind == "fixed"]
    for link in welded:
        row, T = made.frames[link]
        assert 1 <= row <= len(made) and np.abs(T[:3, :3] @ T[:3, :3].T - np.eye(3)).max() <= 1e-15
