"""The command `drevo`: each verb, what it refuses, and how fast it starts."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo import robots
from drevo.cli import write_out as write_out_verb
from drevo.cli.main import VERBS, app
from drevo.documents.languages.table import LANGUAGES

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


def test_remedies_name_options_of_the_command_line(tmp_path: Path) -> None:
    robot = drevo.Builder("r").body("a", mass=1, inertia=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], gravcomp=0.5).robot()
    robot.save(tmp_path / "r.json")
    said = refused("convert", tmp_path / "r.json", tmp_path / "r.urdf")
    assert "--lossy" in said and "lossy=True" not in said
    assert run("convert", tmp_path / "r.json", tmp_path / "r.urdf", "--lossy").exit_code == 0


def test_version_and_help() -> None:
    assert run("--version").output.startswith("drevo 0.")
    text = run("--help").output
    assert all(verb in text for verb in ("info", "check", "counts", "write-out", "bench", "demo"))


@pytest.mark.parametrize("name", robots.EMBEDDED)
def test_info_of_the_embedded(name: str) -> None:
    result = run("info", name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{name}: ")


def test_convert(pendulum: Path, tmp_path: Path) -> None:
    assert "pendulum, nq 1, nv 1" in run("convert", str(pendulum), str(tmp_path / "r.sdf")).stdout
    assert "<sdf" in (tmp_path / "r.sdf").read_text()
    assert "MJCF or SDF or TOML or JSON (drevo convert ROBOT NEW.xml)" in refused(
        "convert", "four-bar", str(tmp_path / "r.urdf")
    )
    assert run("convert", "four-bar", str(tmp_path / "r.urdf"), "--lossy").exit_code == 0
    assert run("convert", "scara", str(tmp_path / "new" / "r.urdf")).exit_code == 0  # folders are made
    assert "a robot is saved as" in refused("convert", "scara", str(tmp_path / "r.step"))


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
    strict = run("check", str(path), "--strict", "--states", "4")
    assert strict.exit_code == 1 and "triangle inequality" in strict.stdout


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


def test_a_new_language_is_a_row_and_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """As docs/extending.md says: the command knows no language by itself."""
    made = ModuleType("drevo.documents.languages.plain")
    vars(made)["plain"] = lambda sequence, facts: f"{len(sequence.main)} lines"
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setitem(LANGUAGES, "plain", (".txt",))
    monkeypatch.setattr(write_out_verb, "TEXT_TARGETS", (*LANGUAGES, "sympy"))
    assert run("write-out", "three-link", "gravity", "--to", "plain").output.strip().endswith(" lines")


def test_latex_in_two_columns() -> None:
    result = run("write-out", "three-link", "mass_matrix", "--to", "latex", "--columns", "2")
    assert result.exit_code == 0 and "twocolumn" in result.stdout
    assert run("write-out", "three-link", "gravity", "--to", "latex", "--columns", "3").exit_code == 2


def test_write_out_to_a_file_by_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    result = run("write-out", "three-link", "mass_matrix", "-o", str(path))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    compile(path.read_text(), "m.py", "exec")


def test_write_out_of_a_link_seen_from_another() -> None:
    links = ("--link", "link4", "--relative-to", "link7", "--sequence", "paper", "--formalism", "zaremba")
    result = run("write-out", "two-arm-spatial", "velocity", *links, "--to", "markdown")
    assert "V_{4}^{7,4}" in result.stdout and result.exit_code == 0


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


@pytest.mark.slow
def test_demo_leaves_pages(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    result = run("demo", "-o", str(folder), "--states", "500")
    assert result.exit_code == 0, result.output
    index = (folder / "index.html").read_text()
    pages = [p.name for p in folder.glob("*.html") if p.name != "index.html"]
    assert len(pages) == 7
    assert all(f'href="{page}"' in index for page in pages)
    assert "<b>failed" not in index and "openCore" in index
    assert str(folder / "index.html") in result.stdout.splitlines()[-1]
    assert "throughput" in result.stdout or "million states" in result.stdout


def test_wrong_names_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    assert "did you mean 'puma560'" in refused("info", "pumma560")
    assert "did you mean 'mass_matrix'" in refused("write-out", "three-link", "mass_matrx")
    assert "did you mean 'latex'" in refused("write-out", "three-link", "mass_matrix", "--to", "latx")
    assert "did you mean 'gravity'" in refused("counts", "three-link", "gravty")
    assert "fixed, floating, trunk" in refused("info", "biped", "--base", "flying")
    assert "no such file" in refused("info", str(tmp_path / "none.urdf"))
    assert "has 0 feet" in refused("walk", "puma560")  # not what a free base would do to an arm
    assert "or --feet on the command line" in refused("walk", "puma560")
    assert "--feet 'left_foot' is not LINK=" in refused("walk", "biped", "--feet", "left_foot")
    one = ["--feet", "left_foot=0,0,0;1,0,0;0,1,0"]
    assert "has 1 feet" in refused("walk", "biped", *one)
    assert "foot 'shoe' is not a link" in refused("walk", "biped", *one, "--feet", "shoe=0,0,0;1,0,0;0,1,0")
    assert "gait 'x' is not known" in refused("walk", "biped", "--gait", "x")
    assert "--push 'left' is no list of numbers" in refused("walk", "biped", "--push", "left")
    assert "rise is 0.5; it must be a number from 0 to 0.2" in refused("walk", "biped", "--rise", "0.5")
    assert "swing-up: the kind" in refused("swing-up", "--kind", "rope")
    assert 'limits of "tau" are reversed' in refused("swing-up", "--limit=-1")


def test_swing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("swing-up", "--horizon", "60", "-o", "swing-up.svg", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["converged"] and facts["effort"] <= facts["limit"] and facts["off"] < 0.02
    assert (tmp_path / "swing-up.svg").read_text().startswith("<svg")


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
    if verb != "check":  # which says so among its findings
        assert "negative mass" in refused(verb, str(path))


EXAMPLES = {name: example for name, _, example in VERBS}
STOPS = "t,q:joint1,q:joint2,q:joint3\n0,0,0,0\n1,1,0.5,0.2\n"


@pytest.mark.parametrize("verb", EXAMPLES)
@pytest.mark.slow
def test_help_has_an_example_that_runs(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text(URDF.format(mass=1.0, izz=0.001))
    Path("stops.csv").write_text(STOPS)
    Path("formulas.txt").write_text("H_33 = I_3^d\n")
    text = " ".join(run(verb, "--help").stdout.split())
    assert f"Example: {EXAMPLES[verb]}" in text
    result = run(*EXAMPLES[verb].split()[1:])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("words", [[], *([verb] for verb in EXAMPLES)])
@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_fits_the_terminal(words: list[str], columns: str) -> None:
    env = {"COLUMNS": columns, "TERMINAL_WIDTH": columns, "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [*words, "--help"], env=env)
    assert result.exit_code == 0 and max(map(len, result.stdout.splitlines())) <= int(columns)
    assert "\x1b" not in result.stdout


USAGE = [
    (["inf"], "Did you mean 'info'"),
    (["info"], "Missing argument 'ROBOT' (see drevo info --help)"),
    (["info", "puma560", "more"], "unexpected extra argument"),
    (["info", "--fast"], "No such option: --fast"),
    (["simulate", "puma560", "--every", "x"], "'--every'"),
    (["simulate", "puma560", "--duration", "1", "--max-steps", "99"], "more than max_steps=99"),
    (["bench", "--states", "0"], "'--states'"),
    (["check", "puma560", "--states", "1" + 20 * "0"], "'--states'"),
    (["accuracy", "puma560", "--link", "link6", "--seed", "-1"], "'--seed'"),
    (["info", "5"], "'5' is neither a file nor"),
    (["info", ""], "file"),
    (["compute", "three-link", "gravity", "--csv", "--json"], "give one of them"),
    (
        ["write-out", "three-link", "gravity", "-o", "x.xyz"],
        "saved as .tex, .md, .html, .htm, .py, .c, .h, .cu or .m",
    ),
    (["write-out", "three-link", "gravity", "-o", "."], "not as '.'"),
    (["linearise", "puma560", "-o", "x.txt"], "a linear model is saved as .npz"),
    (["simulate", "puma560", "-o", "x"], "a motion is saved as .npz, .csv, .parquet, .svg, .png or .pdf"),
    (["simulate", "puma560", "--n", "3"], "--n is the number of bodies of rod-chain"),
    (["check-formulas", "puma560", "none.txt"], "none.txt: no such file or directory"),
    (["check-formulas", "puma560", "."], "is a directory"),
]


@pytest.mark.needs("matplotlib")
def test_pictures_and_folders(tmp_path: Path) -> None:
    """By the ending of the file; folders are made."""
    starts = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".csv": b"t,"}
    for ending, begin in starts.items():
        file = tmp_path / ending[1:] / f"a{ending}"
        words = ["simulate", "rod-chain", "--n", "2", "--duration", "0.1", "--output", str(file)]
        assert run(*words).exit_code == 0
        assert file.read_bytes().startswith(begin)


@pytest.mark.needs("sympy", "scipy")
def test_conditions_are_realised(tmp_path: Path) -> None:
    """Counterweights on a file that meets the conditions: its mass matrix is constant."""
    file = tmp_path / "new" / "balanced.urdf"
    result = run("conditions", "three-link", "--constant", "mass_matrix", "--realise", "-o", str(file))
    assert "m_i: mass of body i" in result.stdout and "after, kg" in result.stdout
    M = drevo.load(str(file)).mass_matrix(np.array([[0.0, 0.0, 0.0], [0.3, -1.0, 2.0]]))
    assert np.abs(M[0] - M[1]).max() < 1e-9 * np.abs(M).max()
    free = run("conditions", "three-link", "--constant", "mass_matrix", "--free", "L_2", "--realise")
    assert "after, kg" in free.stdout
    assert "--constant mass_matrix" in refused("conditions", "three-link", "--realise")


@pytest.mark.parametrize("words, sentence", USAGE, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_wrong_usage_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(*words)
    assert not [*tmp_path.iterdir()]


def test_a_named_format_allows_any_ending(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    assert run("write-out", "three-link", "gravity", "--to", "c", "-o", str(path)).exit_code == 0
    assert "void gravity" in path.read_text()


def test_a_verb_alone_prints_help() -> None:
    result = run()
    assert result.exit_code == 0 and "Usage: drevo" in result.stdout


def test_fifty_problems_stay_readable(tmp_path: Path) -> None:
    bodies = "".join(f'<link name="a{k}"><inertial><mass value="-1"/></inertial></link>' for k in range(50))
    path = tmp_path / "many.urdf"
    path.write_text(f'<robot name="many">{bodies}</robot>')
    result = run("info", str(path))
    lines = result.stderr.splitlines()
    assert result.exit_code == 2 and 3 <= len(lines) <= 12 and all(len(line) < 240 for line in lines)


def shell(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = command.replace("drevo", f"{shlex.quote(sys.executable)} -m drevo")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env={**os.environ, **env})
    assert "Traceback" not in done.stderr and "Errno" not in done.stderr
    return done


@pytest.mark.parametrize(
    "command", ["write-out puma560 inverse_dynamics", "info puma560", "--help", "info --help"]
)
def test_a_reader_may_go_away(command: str) -> None:
    done = shell(f"drevo {command} | head -c 1")
    assert done.stderr == "" and len(done.stdout) == 1


def test_any_locale_will_do() -> None:
    done = shell("drevo write-out three-link bias --to python", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0 and "rad/s" in done.stdout
    done = shell("drevo info --help", PYTHONIOENCODING="latin-1", COLUMNS="40")
    assert done.returncode == 0 and "Example" in done.stdout


def test_starts_without_numpy_and_llvm() -> None:
    """Help must not wait for the compiler."""
    heavy = "('numpy', 'llvmlite', 'rich.table')"
    code = f"import sys, drevo.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tables_stay_whole_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows may wrap; names in cells are not cut into pieces."""
    from drevo.cli.common import print_table

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(
        "", ("quantity", "formalism", *"abcdefgh"), [("inverse_dynamics", "newton_euler", *range(8))], left=2
    )
    assert "newton_euler" in capsys.readouterr().out
