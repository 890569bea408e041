"""Commands in their other forms: as JSON, saved, of controllers, of robots with what few of them have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from drevo.cli import envs
from drevo.cli.main import app
from drevo.cli.swing_up import swings

ODD = """<robot name="odd"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><link name="b"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.10000001" ixy="0" ixz="0" iyz="0"/>
</inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/><dynamics damping="0.5"/>
<limit upper="1" lower="-inf" effort="1" velocity="1"/></joint>
<joint name="k" type="revolute">
<parent link="a"/><child link="b"/><axis xyz="1 0 0"/><mimic joint="j" multiplier="2"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>
"""
PLAN = 'robot = "three-link"\nquantity = "gravity"\nsamples = 64\nshard = 32\n'


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "odd.urdf").write_text(ODD)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAID = {
    "info odd.urdf": "of j",
    "export three-link lqr -t c --dt 0.01 -o .": "three_link_lqr",
    "export three-link kalman -t c -o .": "three_link_kalman",
    "export three-link lqg -t c -o .": "three_link_lqg",
    "export three-link linear_model -t c -o .": "linear_model",
    "export three-link schedule -t c -o . --grid joint2=0,0.5 --q 0,0,0": "schedule",
    "export three-link --ros2 -o .": "package.xml",
    "write-out three-link gravity --wrt q --to c": "void",
    "linearise three-link --tau 0": "unstable motions",
    "linearise three-link --tau 1,2,3 -o m.npz": "saved m.npz",
    "simulate three-link --duration 0.01 --q 0,0,0 -o m.csv": "saved m.csv",
    "simulate four-bar --duration 0.01": "constraints are met to",
    "compute four-bar mass_matrix": "Of the open tree, without the loops",
    "sweep plan.toml -o out": "spread",
    "envs list": "HalfCheetah-v5",
}


@pytest.mark.parametrize("words", SAID)
def test_says(words: str) -> None:
    found = run(*words.split())
    assert found.exit_code == 0, found.output
    assert SAID[words] in found.output


TOLD = {
    "export three-link gravity -t cortex-m4f -o . --json": "cycles",
    "export three-link gravity -t c -o . --json": "files",
    "linearise three-link --json": "eigenvalues",
    "simulate three-link --duration 0.01 --json": "energy_drift",
    "sweep plan.toml -o out --json": "mean",
    "accuracy three-link --link link3 --json": "shares",
    "convert three-link r.json --json": "nq",
    "loads odd.urdf --json": "links",
}


@pytest.mark.parametrize("words", TOLD)
def test_tells_as_json(words: str) -> None:
    found = run(*words.split())
    assert found.exit_code == 0, found.output
    assert TOLD[words] in json.loads(found.stdout)


def test_swings() -> None:
    assert [swings(kind).robot.nv for kind in ("pendulum", "cart-pole", "double-pendulum")] == [1, 2, 2]


def test_environments_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one batch of few, in few windows, as a table and as JSON."""
    monkeypatch.setattr(envs, "TASK_WINDOWS", 1)
    words = ("envs", "bench", "InvertedPendulum-v5", "--num-envs", "4")
    found = run(*words)
    assert found.exit_code == 0 and "million steps a s" in found.output, found.output
    (row,) = json.loads(run(*words, "--json").stdout)["rows"]
    assert row["steps_per_s"] > 0.0 and 0.0 <= row["wrapper"] <= 1.0
