"""The command `drevo`: each verb, what it refuses, and how fast it starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from drevo import robots
from drevo.cli import write_out as write_out_verb
from drevo.cli.main import app

URDF = """<robot name="pendulum">
  <link name="base"/>
  <link name="rod"><inertial><mass value="{mass}"/><origin xyz="0 0 -0.5"/>
    <inertia ixx="0.1" iyy="0.1" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def run(*words: str) -> Any:
    return CliRunner().invoke(app, [str(w) for w in words])


def refused(*words: str) -> str:
    """The one line on stderr of a call that ends with the code 2, without a traceback."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("drevo: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr)


@pytest.fixture
def pendulum(tmp_path: Path) -> Path:
    path = tmp_path / "pendulum.urdf"
    path.write_text(URDF.format(mass=1.0, izz=0.001))
    return path


def test_version_and_help() -> None:
    assert run("--version").output.startswith("drevo 0.")
    text = run("--help").output
    assert all(verb in text for verb in ("info", "check", "counts", "write-out", "bench", "demo"))


@pytest.mark.parametrize("name", robots.EMBEDDED)
def test_info_of_the_embedded(name: str) -> None:
    result = run("info", name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{name}: ")


def test_info_json(pendulum: Path) -> None:
    data = json.loads(run("info", str(pendulum), "--json").stdout)
    assert (data["nq"], data["nv"], data["mass"]) == (1, 1, 1.0)
    data = json.loads(run("info", "biped", "--json", "--base", "floating").stdout)
    assert [j["q"] for j in data["joints"]][:3] == [[0, 7], [7, 8], [8, 9]]


def test_info_shows_limits_mimic_and_notes() -> None:
    text = run("info", "puma560").stdout
    assert "note: link1 has an inertia tensor but no mass" in text


def test_check(pendulum: Path) -> None:
    result = run("check", str(pendulum), "--states", "16")
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.stdout
    data = json.loads(run("check", "biped", "--base", "floating", "--states", "16", "--json").stdout)
    assert data["ok"]
    assert len(data["checks"]) == 6


def test_check_that_fails_has_the_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.cli import check

    bad = [{"check": "of nothing", "worst": 1.0, "limit": 0.0, "ok": False}]
    monkeypatch.setattr(check, "examine", lambda robot, states: bad)
    result = run("check", "puma560")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


def test_doubts_are_one_line_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "doubtful.urdf"
    path.write_text(URDF.format(mass=1.0, izz=0.9))
    result = run("check", str(path), "--states", "4")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: ")
    assert result.stderr.count("\n") == 1
    assert "triangle inequality" in refused("check", str(path), "--strict")


def test_counts() -> None:
    result = run("counts", "three-link", "mass_matrix", "crba")
    assert result.exit_code == 0, result.output
    assert "mass_matrix" in result.stdout
    data = json.loads(run("counts", "three-link", "mass_matrix", "--json").stdout)
    row = data["counts"]["mass_matrix"]
    assert row["mul"] > 0
    assert row["add"] > 0
    assert row["formalism"]
    assert "mul" in data["convention"]


@pytest.mark.parametrize("target", ["latex", "markdown", "html", "python", "c"])
def test_write_out(target: str) -> None:
    result = run("write-out", "three-link", "mass_matrix", "--to", target, "--symbols", "all")
    assert result.exit_code == 0, result.output
    assert len(result.stdout) > 200


def test_write_out_to_a_file_by_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    result = run("write-out", "three-link", "mass_matrix", "-o", str(path))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    compile(path.read_text(), "m.py", "exec")


def test_write_out_of_a_link() -> None:
    result = run("write-out", "puma560", "pose", "--link", "link6", "--to", "python")
    assert result.exit_code == 0, result.output


def test_symbols_by_name() -> None:
    assert write_out_verb._symbols("link1.mass, *.com") == ["link1.mass", "*.com"]
    assert write_out_verb._symbols("all") == "all"
    assert write_out_verb._symbols("") is None


def test_bench() -> None:
    result = run("bench", "three-link", "--states", "200", "--json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert all(row["state_ns"] > 0 and row["call_ns"] > 0 for row in rows)


def test_demo_leaves_pages(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    result = run("demo", "-o", str(folder), "--states", "500")
    assert result.exit_code == 0, result.output
    index = (folder / "index.html").read_text()
    pages = [p.name for p in folder.glob("*.html") if p.name != "index.html"]
    assert len(pages) == 7
    assert all(f'href="{page}"' in index for page in pages)
    assert "failed" not in index
    assert "throughput" in result.stdout or "million states" in result.stdout


def test_wrong_names_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    assert "did you mean 'puma560'" in refused("info", "pumma560")
    assert "did you mean 'mass_matrix'" in refused("write-out", "three-link", "mass_matrx")
    assert "did you mean 'latex'" in refused("write-out", "three-link", "mass_matrix", "--to", "latx")
    assert "did you mean 'gravity'" in refused("counts", "three-link", "gravty")
    assert "fixed, floating, trunk" in refused("info", "biped", "--base", "flying")
    assert "no such file" in refused("info", str(tmp_path / "none.urdf"))
    assert "has 0 feet" in refused("walk", "puma560")  # not what a free base would do to an arm


def test_unknown_verb_is_refused_with_a_suggestion() -> None:
    result = run("inf")
    assert result.exit_code == 2
    assert "info" in result.output


@pytest.mark.parametrize("verb", ["info", "check", "counts"])
def test_broken_files_are_refused(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.urdf"
    path.write_text("<robot><link")
    assert "broken.urdf" in refused(verb, str(path))
    path.write_text(URDF.format(mass=-1.0, izz=0.001))
    assert "negative mass" in refused(verb, str(path))


def test_starts_without_numpy_and_llvm() -> None:
    """Help must not wait for the compiler."""
    heavy = "('numpy', 'llvmlite', 'rich.table')"
    code = f"import sys, drevo.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
