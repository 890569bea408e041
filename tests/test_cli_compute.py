"""drevo compute and drevo robots: numbers on the command line are those of Python."""

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
