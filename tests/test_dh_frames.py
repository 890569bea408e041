"""Links of Denavit-Hartenberg rows have the frames of the rows: every quantity of a link is of T_1 ... T_i."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from reference import Reference
from tolerances import DYNAMICS, KINEMATICS

import drevo
from drevo import dh
from drevo.mechanics.configuration import random
from drevo.model.description import Joint, Model
from drevo.robot.face import Robot

CONVENTIONS = ("standard", "modified")


def rows(n: int, seed: int = 0, quarter: bool = False) -> list[dict[str, Any]]:
    """A chain with branches, every constant non-zero, or its angles quarter turns."""
    rng, out = np.random.default_rng(seed), []
    for k in range(n):
        theta, d, a, alpha = rng.normal(size=4) * (1.0, 0.2, 0.3, 1.0)
        if quarter:
            theta, alpha = (np.pi / 2 * x for x in rng.integers(-1, 3, 2))
        row = {"theta": theta, "d": d, "a": a, "alpha": alpha, "joint": "RRPR"[k % 4]}
        row |= {"mass": rng.uniform(0.5, 2.0), "com": rng.normal(size=3) * 0.1}
        row |= {"inertia": np.diag(rng.uniform(0.1, 0.15, 3))}
        if k == 3:
            row |= {"parent": 2, "M": (strategies.rotation(rng), rng.normal(size=3) * 0.1)}
        out.append(row)
    return out


def frames(table: list[dict[str, Any]], convention: str, q: np.ndarray) -> list[np.ndarray]:
    """T_1 ... T_i of the textbook, one for every row."""
    made = [np.eye(4)]
    for k, (row, x) in enumerate(zip(table, q), 1):
        theta, d = row["theta"] + x * (row["joint"] == "R"), row["d"] + x * (row["joint"] == "P")
        steps = [elementary(2, theta, d), elementary(0, row["alpha"], row["a"])]
        M = np.eye(4)
        if "M" in row:
            M[:3, :3], M[:3, 3] = row["M"]
        first, second = steps if convention == "standard" else steps[::-1]
        made.append(made[row.get("parent", k - 1)] @ M @ first @ second)
    return made[1:]


def elementary(k: int, angle: float, along: float) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[k, 3] = strategies.about(k, angle), along
    return T


def apart(model: Model, seed: int) -> Model:
    """The same bodies, told by frames that stand apart from their joints."""
    rng, at = np.random.default_rng(seed), {model.root: np.eye(4)}
    joints: list[Joint] = []
    for j in model.joints:
        own = np.eye(4)
        if j.kind not in ("fixed", "free", "spherical"):
            own[:3, :3], own[:3, 3] = strategies.rotation(rng), rng.normal(size=3) * 0.2
        at[j.child] = own
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = j.rotation, j.origin
        placed = np.linalg.inv(at[j.parent]) @ placed
        joints.append(
            replace(
                j,
                origin=strategies.vec(placed[:3, 3]),
                rotation=strategies.mat(placed[:3, :3]),
                child_origin=strategies.vec(own[:3, 3]),
                child_rotation=strategies.mat(own[:3, :3]),
            )
        )
    links = []
    for link in model.links:
        R, p, body = at[link.name][:3, :3], at[link.name][:3, 3], link.inertial
        if body:
            com = strategies.vec(R.T @ (np.array(body.com) - p))
            body = replace(body, com=com, tensor=strategies.mat(R.T @ np.array(body.tensor) @ R))
        links.append(replace(link, inertial=body))
    return replace(model, links=tuple(links), joints=tuple(joints))


def test_two_links_of_a_metre() -> None:
    row = {"a": 1.0, "mass": 1.0, "com": (-0.5, 0, 0), "inertia": 0.1 * np.eye(3)}
    robot = drevo.from_dh([row, row], "standard")
    assert robot.pose([0.0, 0.0], "link2")[:3, 3].tolist() == [2.0, 0.0, 0.0]
    assert robot.center_of_mass([0.0, 0.0]) == pytest.approx([1.0, 0.0, 0.0])
    assert robot.velocity([0.0, 0.0], [1.0, 0.0], "link2")[1] == 2.0


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("quarter", [False, True])
def test_every_quantity_of_a_link_is_of_its_rows_frame(convention: str, quarter: bool) -> None:
    """Poses and Jacobians by the product of the matrices, efforts by J^T f, wrenches by the power theorem."""
    table = rows(6, 3, quarter)
    made, rng = drevo.from_dh(table, convention), np.random.default_rng(1)
    robot = Reference(made.model)
    q, v, a = rng.normal(size=(3, 6))
    T, h = frames(table, convention, q), 1e-6
    ahead, behind = ([frames(table, convention, q + s * h * e) for e in np.eye(6)] for s in (1.0, -1.0))
    wrenches = robot.joint_wrenches(q, v, a, frame="local_world_aligned")
    for k, link in enumerate(made.moving_links):
        assert np.abs(robot.pose(q, link=link) - T[k]).max() <= KINEMATICS
        turn = [(x[k] - y[k])[:3, :3] @ T[k][:3, :3].T / (2 * h) for x, y in zip(ahead, behind)]
        angular = np.array([[W[2, 1], W[0, 2], W[1, 0]] for W in turn]).T
        linear = np.array([(x[k] - y[k])[:3, 3] / (2 * h) for x, y in zip(ahead, behind)]).T
        J = np.vstack([linear, angular])
        assert np.abs(robot.jacobian(q, link=link) - J).max() <= 1e-8
        assert np.abs(robot.velocity(q, v, link=link) - J @ v).max() <= 1e-7
        w = rng.normal(size=6)
        held = robot.inverse_dynamics(q, v, a, f_ext={link: w})
        assert np.abs(held - (robot.inverse_dynamics(q, v, a) - J.T @ w)).max() <= 1e-7
        # what the joint's own motion, seen at the link's frame, takes of the wrench is the joint's effort
        parent = table[k].get("parent", k)
        before = robot.jacobian(q, link=made.moving_links[parent - 1]) if parent else np.zeros((6, 6))
        own = robot.jacobian(q, link=link)[:, k] - before[:, k]
        assert own @ wrenches[k] == pytest.approx(robot.inverse_dynamics(q, v, a)[k], abs=1e-10)


@pytest.mark.parametrize("seed", range(16))
def test_trees_told_by_other_frames_move_alike(seed: int) -> None:
    """Every kind of joint: the same equations, and frames of links that stand where they were said to."""
    model = strategies.robot(seed, strategies.EVERY, 8)
    one, two = Reference(model), Reference(apart(model, seed))
    rng = np.random.default_rng(seed)
    for q in random(model, rng, (3,)):
        v, a = rng.normal(size=(2, model.nv))
        tau = one.inverse_dynamics(q, v, a)
        assert np.abs(two.inverse_dynamics(q, v, a) - tau).max() <= DYNAMICS * np.abs(tau).max()
        for j in two.model.joints:
            own = np.eye(4)
            own[:3, :3], own[:3, 3] = j.child_rotation, j.child_origin
            assert np.abs(two.pose(q, link=j.child) - one.pose(q, link=j.child) @ own).max() <= 1e-13
    if seed < 2 and model.nv:
        tau = Robot(model).inverse_dynamics(q, v, a)
        assert np.abs(Robot(two.model).inverse_dynamics(q, v, a) - tau).max() <= DYNAMICS * np.abs(tau).max()


def test_parameters_are_those_of_the_rows() -> None:
    """A compiled function with the rows' numbers as inputs, given others, is the function of the other rows."""
    table, rng = rows(4, 5), np.random.default_rng(2)
    robot = drevo.from_dh(table)
    names = ["link2.mass", "link2.com.*", "link4.inertia.xx", "joint1.origin.z", "joint2.child.origin.x"]
    f = drevo.compile(robot, "inverse_dynamics", parameters=names)
    new = {"link2.mass": 2.5, "link2.com.x": 0.1, "link2.com.y": -0.2, "link2.com.z": 0.3,
           "link4.inertia.xx": 0.14, "joint1.origin.z": 0.4, "joint2.child.origin.x": 0.7}  # fmt: skip
    table[0]["d"], table[1]["a"], table[1]["mass"], table[1]["com"] = 0.4, 0.7, 2.5, (0.1, -0.2, 0.3)
    table[3]["inertia"][0, 0] = 0.14
    state = rng.normal(size=(3, 4))
    right = drevo.from_dh(table).inverse_dynamics(*state)
    given = [name for name, _ in f.parameters]
    assert sorted(given) == sorted(new)
    found = f(*state, [new[name] for name in given])
    assert np.abs(found - right).max() <= DYNAMICS * np.abs(right).max()


def test_written_files_keep_the_frames(tmp_path: Path) -> None:
    """Also URDF, where every link has the frame of its joint: there a massless link carries it."""
    robot, q = drevo.from_dh(rows(5, 7)), np.linspace(-1.0, 1.0, 5)
    for suffix in (".json", ".toml", ".urdf", ".sdf", ".xml"):
        path = tmp_path / f"arm{suffix}"
        robot.save(path)
        back = drevo.load(path)
        assert np.abs(back.mass_matrix(q) - robot.mass_matrix(q)).max() <= 1e-13
        for link in robot.link_names:
            assert np.abs(back.pose(q, link) - robot.pose(q, link)).max() <= 1e-13


def test_long_chains_have_them_too() -> None:
    """Loops over the bodies place links apart from their joints as well."""
    table = rows(70, 11)
    robot, q = drevo.from_dh(table, "standard"), np.linspace(-1.0, 1.0, 70)
    T = frames(table, "standard", q)
    assert np.abs(robot.pose(q, "link70") - T[-1]).max() <= 1e-11
    assert np.abs(robot.poses(q)[40] - T[40]).max() <= 1e-11


def test_loads_in_a_link_do_not_depend_on_its_frame() -> None:
    """The same sections of the same bodies, told in the frames of the joints and in those of the rows."""
    robot = drevo.from_dh(rows(3, 13), "standard")
    plain, before = drevo.Builder("plain"), np.eye(4)
    own: dict[str, np.ndarray] = {}
    for j, link in zip(robot.model.joints, robot.model.links[1:]):
        body, T = link.inertial, np.eye(4)
        assert body is not None
        T[:3, :3], T[:3, 3] = j.rotation, j.origin
        T, own[link.name] = before @ T, np.eye(4)
        own[link.name][:3, :3], own[link.name][:3, 3] = j.child_rotation, j.child_origin
        before = own[link.name]
        R = before[:3, :3]
        plain.body(link.name, j.parent, j.kind, j.axis, T[:3, 3], T[:3, :3], mass=body.mass,
                   com=(before @ [*body.com, 1.0])[:3], inertia=R @ np.array(body.tensor) @ R.T)  # fmt: skip
    q, v, a = np.random.default_rng(0).normal(size=(3, 3))
    ends = np.array([[0.05, 0.1, -0.1, 1.0], [0.2, -0.1, 0.3, 1.0]])
    loads = drevo.loads
    for link, T in own.items():
        y = np.array([0.3, 0.1, 1.0])
        moved = loads.Span.between(*(ends @ T.T)[:, :3], T[:3, :3] @ y)
        one = loads.section_loads(plain.robot(), q, v, a, link, 0.1, span=moved)
        two = loads.section_loads(robot, q, v, a, link, 0.1, span=loads.Span.between(*ends[:, :3], y))
        assert np.abs(one.total - two.total).max() <= 1e-12
        one, two = (loads.section_loads(r, q, v, a, link, 0.0) for r in (plain.robot(), robot))
        if link != "link3":  # a last link's span is along one of its own axes
            assert two.span.length == pytest.approx(one.span.length, abs=1e-14)
            assert (T @ [*two.span.start, 1.0])[:3] == pytest.approx(one.span.start, abs=1e-14)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_tools_loops_and_contacts_come_back(convention: str) -> None:
    b = drevo.Builder("tool", root="floor")
    b.body("pillar", "floor", "fixed", origin=(0.1, 0.2, 0.3), mass=1.0)
    b.body("arm", "pillar", axis=(0, 1, 0), origin=(0, 0, 1), mass=1.0, com=(0.2, 0, 0), inertia=0.1 * np.eye(3))
    b.body("tool", "arm", "fixed", origin=(0.5, 0, 0), rpy=(0.1, 0.2, 0.3), mass=0.2, inertia=0.01 * np.eye(3))
    b.body("tip", "tool", "fixed", origin=(0.0, 0, 0.1))
    b.body("hand", "tool", "revolute", (1, 1, 0), (0, 0, 0.1), mass=0.3, inertia=0.01 * np.eye(3))
    b.contact("tip", (0, 0, 0.01)).loop("point", "hand", (0.1, 0, 0), "floor", (0.7, 0.2, 1.2))
    robot = b.robot()
    back = drevo.from_dh(dh.table(robot, convention))
    q = [0.3, -0.7]
    assert set(back.link_names) == set(robot.link_names) and back.link_names[0] == "floor"
    for link in robot.link_names:
        assert np.abs(back.pose(q, link) - robot.pose(q, link)).max() <= 1e-14
    assert back.model.contacts == robot.model.contacts and back.model.loops == robot.model.loops
    assert np.abs(back.mass_matrix(q) - robot.mass_matrix(q)).max() <= 1e-14


def test_a_memoryview_of_several_axes_is_a_table_of_rows_that_are_none() -> None:
    with pytest.raises(drevo.ModelError, match="row"):
        drevo.from_dh(memoryview(np.zeros((3, 4))))


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("degrees", [(90, -90, 180), (270, -450, 810), (4500, 9090, -3780)])
def test_quarter_turns_leave_no_rounding(convention: str, degrees: tuple[int, ...]) -> None:
    """However many: every placement is of zeros, ones and lengths, and no page has a number of rounding's size."""
    table = [
        row
        | {"theta": np.deg2rad(degrees[k % 3]), "alpha": np.deg2rad(degrees[(k + 1) % 3]), "joint": "R", "M": None}
        for k, row in enumerate(rows(3))
    ]
    robot = drevo.from_dh(table, convention)
    turns = {x for j in robot.model.joints for r in (*j.rotation, *j.child_rotation) for x in r}
    assert turns <= {0.0, 1.0, -1.0}
    origins = {abs(x) for j in robot.model.joints for x in (*j.origin, *j.child_origin)}
    assert min(origins - {0.0}) > 1e-3
    for formalism in ("kovalchuk", "zaremba"):
        text = drevo.write_out(robot, "inverse_dynamics", formalism=formalism, sequence="paper").markdown()
        assert not re.search(r"cdot 10\^\{-[1-9]\d", text[: text.index("## Checks")])
