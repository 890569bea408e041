"""drevo compute, drevo ik and drevo robots: numbers on the command line are those of Python."""

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.model.quantities import CATALOGUE


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["compute", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_json_has_the_numbers_of_python() -> None:
    robot = drevo.load("puma560")
    q = robot.q_of(joint2=-0.8, joint3=0.6)
    found = json.loads(run("puma560", "gravity", "--q", "joint2=-0.8,joint3=0.6", "--json"))
    assert found["quantity"] == "gravity" and found["g"] == robot.gravity(q).tolist()
    assert found["state"]["q"] == q.tolist()
    found = json.loads(run("puma560", "pose", "--link", "link3", "--q", "0,1,0,0,0,0", "--json"))
    assert found["T"] == robot.pose(np.array([0.0, 1, 0, 0, 0, 0]), "link3").tolist()


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_quantity_has_a_table(name: str) -> None:
    words = ["puma560", name, "--q", "joint1=0.3,joint2=0.5,joint3=-0.4,joint5=0.7", "--link", "link6"]
    row = CATALOGUE[name]
    words = words if "link" in row.options else words[:-2]
    given = [x for s in row.state[1:] for x in (f"--{s}", "joint2=1.5")]
    lines = list(csv.reader(io.StringIO(run(*words, *given, "--csv"))))
    numbers = [float(x) for line in lines for x in line[1:] if x.lstrip("-")[:1].isdigit()]
    assert len(numbers) > 0 and np.isfinite(numbers).all()
    assert run(*words, *given).startswith(f"{name} of puma560")


def test_gravity_of_the_moon_and_a_floating_base() -> None:
    robot = drevo.load("puma560", gravity=(0.0, 0.0, -1.62))
    found = json.loads(run("puma560", "gravity", "--gravity", "0,0,-1.62", "--json"))
    assert np.allclose(found["g"], robot.gravity(robot.neutral()))
    found = json.loads(
        run("biped", "pose", "--base", "floating", "--q", "root_joint[2]=0.25", "--link", "pelvis", "--json")
    )
    assert found["T"][2][3] == 0.25


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["puma560", "gravity", "--q", "joit2=1"], "did you mean 'joint2'"),
        (["puma560", "gravity", "--v", "joint2=1"], "gravity takes no --v"),
        (["puma560", "gravity", "--q", "1,2"], "this robot needs 6"),
        (["puma560", "gravity", "--q", "joint2=1,joint2=2"], "joint2 is given twice"),
        (["puma560", "gravity", "--q", "joint2=one"], "is no list of numbers"),
        (["puma560", "inertia_matrix"], "did you mean 'mass_matrix'"),
        (["puma560", "pose", "--link", "nothing"], "'nothing' is not known"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: list[str], said: str) -> None:
    assert said in " ".join(run(*words, code=2).split())


def test_robots_are_listed() -> None:
    result = CliRunner().invoke(app, ["robots", "--json"])
    assert "puma560" in json.loads(result.output)["embedded"]


POSE = "0.5 0.1 0.4 0.7071 0 0.7071 0"


def reached(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["ik", "puma560", "--link", "link6", *words])
    assert result.exit_code == code, result.output
    return result.output


def test_ik_reaches_a_pose_and_lists_all_solutions(tmp_path) -> None:
    robot = drevo.load("puma560")
    (pose,) = json.loads(reached("--pose", POSE, "--json"))["poses"]
    (solution,) = pose["solutions"]
    T = robot.pose(np.array(solution["q"]), "link6")
    assert pose["success"] and np.allclose(T[:3, 3], [0.5, 0.1, 0.4], atol=1e-8)
    assert np.allclose(T[:3, :3], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-8)
    assert solution["joints"] == robot.names_of(np.array(solution["q"]))
    (pose,) = json.loads(reached("--pose", POSE, "--no-limits", "--all", "--attempts", "300", "--json"))["poses"]
    assert len(pose["solutions"]) == 8
    table = reached("--pose", POSE, "--q0", "joint2=-0.5").split("\n")
    assert "joint6" in table[0] and len(table[1].split()) == 9
    file = tmp_path / "poses.csv"
    file.write_text("x,y,z\n0.5,0.1,0.4\n0.4,0.2,0.3\n")
    rows = json.loads(reached("--poses", str(file), "--json"))["poses"]
    points = [robot.pose(np.array(x["solutions"][0]["q"]), "link6")[:3, 3] for x in rows]
    assert np.allclose(points, [[0.5, 0.1, 0.4], [0.4, 0.2, 0.3]], atol=1e-8)


def test_ik_says_what_is_wrong(tmp_path) -> None:
    assert "pose 1: not reached from 5 starts" in reached("--pose", "9 0 0", "--attempts", "5", code=1)
    (pose,) = json.loads(reached("--pose", "9 0 0", "--attempts", "5", "--all", "--json", code=1))["poses"]
    assert not pose["success"] and "out of reach" in pose["reason"] and pose["solutions"][0]["residual"][0] > 1.0
    empty, mixed = tmp_path / "empty.csv", tmp_path / "mixed.csv"
    empty.write_text("x,y,z\n")
    mixed.write_text(f"{POSE}\n1 2 3\n")
    for words, said in (
        (["--pose", "1 2"], "a pose is 'x y z qw qx qy qz'"), (["--pose", "0 0 0 1 1 0 0"], "has length 1.41421"),
        (["--pose", "0 0 0 0 0 0 0"], "has length 0"), (["--pose", "0 0 nan"], "not finite"), ([], "one of them"),
        (["--pose", POSE, "--q0", "joit=1"], "joit"), (["--pose", "a b c"], "is no list of numbers"),
        (["--poses", str(empty)], "no poses"), (["--poses", str(mixed)], "of 3 and of 7"),
        (["--poses", "nothing.csv"], "no such file"), (["--pose", POSE, "--link", "link9"], "did you mean"),
    ):  # fmt: skip
        assert said in reached(*words, code=2), words
