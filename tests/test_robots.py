"""The embedded robots: what their sources say, and tables of Denavit and Hartenberg."""

from __future__ import annotations

import json
import warnings
from math import pi
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo import robots
from drevo.compiler.compile_cost import smallest_pivot
from drevo.model.base import with_base
from drevo.model.description import Model
from drevo.robots import arms

DATA = Path(__file__).parent / "data"
TELEGIN = json.loads((DATA / "telegin.json").read_text())
EXAMPLES = {"three-link": "ex1_3link", "two-arm-planar": "ex2_5dof", "two-arm-spatial": "ex3_7dof"}
ARMS = {"puma560": robots.puma560, "stanford": robots.stanford, "rx90": robots.rx90}
MASS_OF_PUMA_LINK_1 = 25.214853232868073  # kg, "general"


def pseudo_inertia(model: Model, link: str) -> np.ndarray:
    """The 4x4 second moments about the link's origin."""
    body = next(x for x in model.links if x.name == link).inertial
    assert body is not None
    tensor, c = np.array(body.tensor), np.array(body.com)
    second = np.trace(tensor) / 2 * np.eye(3) - tensor + body.mass * np.outer(c, c)
    h = body.mass * c
    return np.block([[second, h[:, None]], [h[None, :], np.array([[body.mass]])]])


@pytest.mark.parametrize("name", robots.EMBEDDED)
def test_loads_without_a_warning_and_is_regular(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = drevo.load(name)
    assert robot.name == name
    ratio, _ = smallest_pivot(robot.model)
    assert ratio > 1e-6


@pytest.mark.parametrize("name", robots.EMBEDDED)
def test_function_of_the_same_name(name: str) -> None:
    make = getattr(robots, name.replace("-", "_"))
    assert make().model == robots.model(name)
    assert make.__doc__


@pytest.mark.parametrize("name", EXAMPLES)
def test_telegin_mass_matrix(name: str) -> None:
    case = TELEGIN["examples"][EXAMPLES[name]][0]
    robot, expected = drevo.load(name), np.array(case["H"])
    n = len(expected)
    assert robot.joint_names == tuple(f"joint{k}" for k in range(1, n + 1))
    assert np.max(np.abs(robot.mass_matrix(case["q"]) - expected)) <= 1e-12 * np.max(np.abs(expected))


def test_telegin_gravity_directions() -> None:
    directions = [drevo.load(name).model.gravity for name in EXAMPLES]
    assert directions == [(0, -9.81, 0), (0, 0, -9.81), (0, -9.81, 0)]


def test_rod_chain_is_one_metre_and_ten_kilograms() -> None:
    robot = robots.rod_chain(7)
    q = np.zeros(7)
    assert robot.center_of_mass(q) == pytest.approx([0.5, 0, 0])
    q[0] = -1.0
    assert robots.rod_chain().potential_energy([-1.0, *[0.0] * 9]) == pytest.approx(-41.274151804827326, rel=1e-14)
    assert sum(x.inertial.mass for x in robot.model.links if x.inertial) == pytest.approx(10.0)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_rod_chain_of_no_rods_is_refused(n: int) -> None:
    with pytest.raises(drevo.ModelError, match="one rod or more"):
        robots.rod_chain(n)


def test_screw_arm_statics_and_energy() -> None:
    """The worked example at rest, and the advance of the screw."""
    robot = robots.screw_arm()
    assert robot.potential_energy(np.zeros(3)) == pytest.approx(116.395650, abs=1e-5)
    assert robot.gravity(np.zeros(3)) == pytest.approx([0, -81.3249, 1.70694], abs=1e-4)
    moved = robot.pose([0, 0, 2 * pi], "link3") - robot.pose([0, 0, 0.0], "link3")
    assert moved[:3, 3] == pytest.approx([0.1, 0, 0])


def test_biped_stands_level_on_its_soles() -> None:
    robot = drevo.load("biped", base="trunk")
    assert robot.nv == 19
    q = robot.neutral()
    contacts = robot.model.contacts
    assert len(contacts) == 8
    points = np.array([(robot.pose(q, c.link) @ [*c.point, 1.0])[:3] for c in contacts])
    assert np.ptp(points[:, 2]) < 1e-15
    for sole in (points[:4], points[4:]):
        assert np.ptp(sole[:, 0]) == pytest.approx(0.22)
        assert np.ptp(sole[:, 1]) == pytest.approx(0.10)


@pytest.mark.parametrize("base,nv", [("fixed", 13), ("floating", 19), ("trunk", 19)])
def test_biped_bases(base: str, nv: int) -> None:
    assert robots.model("biped", base).nv == nv


@pytest.mark.parametrize("arm", ARMS)
def test_general_inertias_are_full_and_physical(arm: str) -> None:
    model = ARMS[arm]("general").model
    entries = []
    for k in range(1, 7):
        P = pseudo_inertia(model, f"link{k}")
        assert np.all(np.linalg.eigvalsh(P) > 0)
        assert np.all(np.abs(P) > 1e-6)
        entries += list(np.abs(P[np.triu_indices(4)]))
    assert len(set(np.round(entries, 12))) == 60  # unrelated: no two are equal


@pytest.mark.parametrize("arm", ARMS)
def test_symmetric_inertias_have_the_pattern(arm: str) -> None:
    model = ARMS[arm]("symmetric").model
    patterns = getattr(arms, f"{arm.upper()}_SYMMETRY")
    for k, pattern in enumerate(patterns, 1):
        P = pseudo_inertia(model, f"link{k}")
        assert np.all(np.linalg.eigvalsh(P) > 0)
        full = {(i, i) for i in range(4)} | {("xyz".index(axis), 3) for axis in pattern}
        if len(pattern) == 2:
            full.add(("xyz".index(pattern[0]), "xyz".index(pattern[1])))
        assert {(i, j) for i in range(4) for j in range(i, 4) if abs(P[i, j]) > 1e-12} == full


def test_a_puma_of_bodies_that_can_exist_moves_as_the_published_one() -> None:
    published, physical = robots.puma560(), robots.puma560(inertia="physical")
    physical.to_mujoco()  # which refuses the published numbers
    rng = np.random.default_rng(560)
    q, v, a = rng.normal(size=(3, 6))
    less = np.zeros(6)
    less[2] = 0.086 - 0.0785  # of link 3 about its joint
    M = published.mass_matrix(q) - physical.mass_matrix(q)
    assert np.abs(M).max() < 0.0076 and abs(M[2, 2] - less[2]) < 1e-15
    tau = published.inverse_dynamics(q, v, a) - physical.inverse_dynamics(q, v, a)
    assert np.abs(tau).max() < 0.0076 * 3.0 * (1.0 + np.abs(v).max() ** 2 + np.abs(a).max())


def test_inertias_are_the_same_everywhere() -> None:
    """Drawn from Python's own generator, whose numbers are kept for ever."""
    body = robots.puma560("general").model.links[1].inertial
    assert body is not None
    assert body.mass == pytest.approx(MASS_OF_PUMA_LINK_1, rel=1e-15)


def test_a_robot_that_floats_already_is_told_so() -> None:
    free = drevo.Builder("ball").body("ball", joint="free", mass=1.0, inertia=np.eye(3)).model()
    with pytest.raises(drevo.ModelError, match="has a free joint already, 'ball_joint'"):
        with_base(free, "floating")


def test_dir_names_what_is_public() -> None:
    assert set(dir(robots)) == {*(name.replace("-", "_") for name in robots.EMBEDDED), "EMBEDDED", "model"}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(drevo.ModelError, match="general, symmetric, published"):
        robots.puma560("Published")
    with pytest.raises(drevo.ModelError, match="did you mean 'rx90'"):
        drevo.load("rx-90")
    with pytest.raises(drevo.ModelError, match="embedded robot"):
        robots.model("puma")


# --- from_dh ------------------------------------------------------------------


def turn_x(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def turn_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def shift(x: float, y: float, z: float) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


ROWS = [(0.3, 0.1, 0.4, 0.7), (-0.2, 0.2, 0.3, -1.1), (0.9, -0.3, 0.2, 0.4), (0.1, 0.05, 0.1, 2.0)]
KINDS = ("revolute", "prismatic", "helical", "revolute")
LEAD = 0.2


def table(**more: object) -> list[dict[str, object]]:
    keys = ("theta", "d", "a", "alpha")
    return [
        {**dict(zip(keys, row)), "joint": kind, "lead": LEAD if kind == "helical" else None, "mass": 1.0,
         "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.15]), **more}
        for row, kind in zip(ROWS, KINDS)
    ]  # fmt: skip


def moved(row: tuple[float, ...], kind: str, q: float) -> tuple[float, float]:
    theta, d = row[0], row[1]
    theta += 0.0 if kind == "prismatic" else q
    d += {"revolute": 0.0, "prismatic": q, "helical": LEAD / (2 * pi) * q}[kind]
    return theta, d


def test_standard_dh_against_the_product_of_its_matrices() -> None:
    robot, q, T = drevo.from_dh(table()), [0.5, 0.6, 0.7, 0.8], np.eye(4)
    for k, (row, kind) in enumerate(zip(ROWS, KINDS)):
        theta, d = moved(row, kind, q[k])
        T = T @ turn_z(theta) @ shift(0, 0, d) @ shift(row[2], 0, 0) @ turn_x(row[3])
        assert robot.pose(q, f"link{k + 1}") == pytest.approx(T, abs=1e-14)
    body = robot.model.links[-1].inertial
    assert body is not None and body.com == (0.1, 0.2, 0.3)


def test_modified_dh_against_the_product_of_its_matrices() -> None:
    robot, q, T = drevo.from_dh(table(), "modified"), [0.5, 0.6, 0.7, 0.8], np.eye(4)
    for k, (row, kind) in enumerate(zip(ROWS, KINDS)):
        theta, d = moved(row, kind, q[k])
        T = T @ turn_x(row[3]) @ shift(row[2], 0, 0) @ turn_z(theta) @ shift(0, 0, d)
        assert robot.pose(q, f"link{k + 1}") == pytest.approx(T, abs=1e-14)


def test_branches_with_auxiliary_frames() -> None:
    M = turn_z(0.4) @ shift(0.1, 0.2, 0.3) @ turn_x(0.5)
    for frame in (M, (M[:3, :3], M[:3, 3]), M.tolist()):
        rows = table()
        rows[2] = {**rows[2], "parent": 1, "M": frame}
        robot = drevo.from_dh(rows)
        assert [j.parent for j in robot.model.joints] == ["world", "link1", "link1", "link3"]
        row = ROWS[0]
        main = turn_z(row[0]) @ shift(0, 0, row[1]) @ shift(row[2], 0, 0) @ turn_x(row[3])
        row = ROWS[2]
        expected = main @ M @ turn_z(row[0]) @ shift(0, 0, row[1]) @ shift(row[2], 0, 0) @ turn_x(row[3])
        assert robot.pose(np.zeros(4), "link3") == pytest.approx(expected, abs=1e-14)


def test_rows_may_be_lists_and_parents_names() -> None:
    body = [1.0, (0.1, 0.0, 0.0), np.eye(3)]
    robot = drevo.from_dh([[0, 0, 0.1, 0.2, pi / 2, "R", *body], ["link1", 0, 0, 0.3, 0, "P", *body]])
    assert [j.kind for j in robot.model.joints] == ["revolute", "prismatic"]


@pytest.mark.parametrize(
    "row,words",
    [
        ({"tetha": 1.0}, "did you mean 'theta'"),
        ({"parent": 5}, "row 1 has the parent 5"),
        ({"parent": "nobody"}, "row 1 has the parent 'nobody'"),
        ({"joint": "ball"}, "row 1 has the joint 'ball'"),
        ({"a": float("nan")}, "row 1: a nan is not finite"),
        ({"M": [1, 2, 3]}, "row 1: the frame M"),
        ({"com": (1, 2)}, "row 1: com"),
    ],
)
def test_wrong_rows_are_refused(row: dict[str, object], words: str) -> None:
    with pytest.raises(drevo.ModelError, match=words.replace("(", r"\(")):
        drevo.from_dh([{"mass": 1.0, "inertia": np.eye(3), **row}])


@pytest.mark.parametrize("row", [(0, 0), (0, 0, 0, 0), range(11)])
def test_a_row_of_the_wrong_length_is_refused(row: list[float]) -> None:
    with pytest.raises(drevo.ModelError, match=f"row 1 has {len(row)} columns; a list has 5 to 10"):
        drevo.from_dh([row])


def test_unknown_convention_is_refused() -> None:
    with pytest.raises(drevo.ModelError, match="'standard' or 'modified'"):
        drevo.from_dh([], "craig")


BODY = {"mass": 1.0, "inertia": np.eye(3)}


@pytest.mark.parametrize(
    "table,words",
    [
        ("puma560", "a DH table is a list of rows.*not .puma560.; a robot is read by"),
        (None, "a DH table is a list of rows"),
        (5, "a DH table is a list of rows"),
        ({"a": 1.0}, "a DH table is a list of rows"),
        ([], "the DH table has no rows"),
        ([5], "row 1 is 5; a row is a mapping of columns or a list of them"),
        ([BODY, None], "row 2 is None; a row"),
        (["R"], "row 1 is 'R'; a row"),
        ([{**BODY, 3: 1}], "row 1 has the unknown column 3; columns are parent"),
        ([{**BODY, "name": 5}], "row 1: name 5 is not a name"),
        ([{**BODY, "parent": 0.0}], "row 1 has the parent 0.0"),
        ([{**BODY, "parent": [1]}], r"row 1 has the parent \[1\]"),
        ([{**BODY, "joint": None}], "row 1 has the joint None"),
        ([{**BODY, "mass": "x"}], "row 1: mass 'x' is not a number"),
        ([{**BODY, "M": {"xyz": (0, 0, 0), "rot": 1}}], "row 1: the frame M has the unknown key 'rot'"),
        ([{**BODY, "M": np.diag([1, 1, 1, 2.0])}], "row 1: the frame M is not"),
        ([{**BODY, "mimic": 5}], "mimic is a joint's name"),
        ([{**BODY, "limit": "ab"}], "limit"),
        ([BODY, {**BODY, "name": "link1"}], "'link1' already exists"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(table: object, words: str) -> None:
    with pytest.raises(drevo.ModelError, match=words):
        drevo.from_dh(table)


@pytest.mark.parametrize("robot", ["puma560", None, 5])
def test_a_table_is_of_a_robot(robot: object) -> None:
    with pytest.raises(drevo.DrevoError, match=r"takes a robot, as .* gives it"):
        drevo.dh.table(robot)
    with pytest.raises(drevo.ModelError, match="the table is in the standard convention, not the modified one"):
        drevo.from_dh(drevo.dh.table(drevo.load("scara")), "modified")
