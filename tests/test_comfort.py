"""Comfort: numbers by the names of joints, equality, pickles, pictures, tables, completion."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo import loads, walking
from drevo.cli import common
from drevo.cli.main import app
from drevo.documents.pictures.picture import Pictured
from drevo.errors import DrevoError, InputError
from drevo.mechanics.configuration import random

ROBOTS = [("scara", "fixed"), ("biped", "floating"), ("four-bar", "fixed")]


# --- by name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_names_there_and_back(name: str, base: str) -> None:
    robot, rng = drevo.load(name, base=base), np.random.default_rng(0)
    for shape in ((), (3,), (2, 4)):
        q = random(robot.model, rng, shape)
        v = rng.normal(size=(*shape, robot.nv))
        assert (robot.q_of(robot.names_of(q)) == q).all()
        assert (robot.v_of(robot.names_of(v)) == v).all()
    assert (robot.q_of() == robot.neutral()).all() and not robot.v_of().any()
    assert list(robot.names_of(robot.neutral())) == list(robot.joint_names)


def test_a_state_by_keywords() -> None:
    robot = drevo.load("scara")
    first, second = robot.joint_names[:2]
    q = robot.q_of(**{first: 0.3, second: [1.0, 2.0]})
    assert q.shape == (2, robot.nq) and q[:, 0].tolist() == [0.3, 0.3] and q[:, 1].tolist() == [1.0, 2.0]
    q[:] = 0.0  # its own memory
    assert robot.neutral()[0] == 0.0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"joint_1": 0.3}, "did you mean 'joint1'"),
        ({"joint1": "x"}, "joint1"),
        ({"joint1": np.nan}, "not finite"),
        ({"joint1": [1.0, 2.0], "joint2": [1.0, 2.0, 3.0]}, "do not broadcast"),
    ],
)
def test_wrong_states_are_one_sentence(given: dict[str, Any], sentence: str) -> None:
    robot = drevo.load("puma560")
    with pytest.raises(DrevoError, match=sentence):
        robot.q_of(given)
    with pytest.raises(InputError, match="takes"):
        robot.names_of(np.zeros(robot.nq + 1))
    with pytest.raises(InputError, match="values by joint"):
        robot.q_of([0.3])  # type: ignore[arg-type]


@pytest.mark.parametrize(("former", "name"), [("state", "q_of"), ("rates", "v_of")])
def test_former_names_are_refused_with_the_new_one(former: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{name}'"):
        getattr(drevo.load("puma560"), former)


# --- robots ---------------------------------------------------------------------------------------------------


def test_robots_are_equal_where_their_descriptions_are(tmp_path: Path) -> None:
    robot = drevo.load("puma560")
    robot.to_toml(tmp_path / "p.toml")
    again = drevo.load(tmp_path / "p.toml")
    assert robot == again and hash(robot) == hash(again) and robot != drevo.load("scara") and robot != 3
    heavier = (tmp_path / "p.toml").read_text().replace("mass = 17.4", "mass = 17.5")
    (tmp_path / "h.toml").write_text(heavier)
    assert robot != drevo.load(tmp_path / "h.toml")
    assert robot == pickle.loads(pickle.dumps(robot))  # noqa: S301


def test_the_tree_is_its_repr() -> None:
    text = str(drevo.load("biped", base="floating"))
    assert text.startswith("<Robot 'biped'") and all(link in text for link in drevo.load("biped").link_names)
    long = str(drevo.robots.rod_chain(100))
    assert "more links" in long and len(long.splitlines()) < 50
    page = drevo.load("scara")._repr_html_()
    assert "<svg" in page and all(joint in page for joint in drevo.load("scara").joint_names)


def test_a_name_that_the_package_lacks() -> None:
    with pytest.raises(AttributeError, match="did you mean 'load'"):
        drevo.laod  # type: ignore[attr-defined]  # noqa: B018


MEANT: dict[str, Callable[[Any], Any]] = {
    "link6.mass": lambda r: drevo.compile(r, "mass_matrix", parameters=["link6.mas"]),
    "link6": lambda r: r.inverse_dynamics(*np.zeros((3, 6)), f_ext={"lnk6": np.zeros(6)}),
    "layout": lambda r: drevo.compile(r, "mass_matrix", layot="rows"),
    "floating": lambda r: drevo.load("puma560", base="floatng"),
    "triangle": lambda r: drevo.check(r).of("triangel"),
    "joint1": lambda r: r.linearise(*np.zeros((3, 6)), actuated=["jont1"]),
    "khalil": lambda r: drevo.write_out(r, "mass_matrix", formalism="kalil"),
    "cortex-m7": lambda r: drevo.export(r, "gravity", "cortexm7"),
}


@pytest.mark.parametrize("meant", MEANT)
def test_a_slip_is_answered_with_what_was_meant(meant: str) -> None:
    with pytest.raises(DrevoError, match=f"did you mean '{meant}'"):
        MEANT[meant](drevo.load("puma560"))


# --- results --------------------------------------------------------------------------------------------------


def swing() -> Any:
    robot = drevo.load("three-link")
    return robot.simulate(np.full(robot.nq, 0.3), duration=0.05)


def closed() -> Any:
    robot = drevo.load("four-bar")
    return robot.simulate(robot.assemble(robot.neutral()), duration=0.05)


def moved() -> loads.Trajectory:
    robot = drevo.load("scara")
    t = np.linspace(0.0, 1.0, 20)
    q = 0.1 * np.sin(t)[:, None] * np.ones(robot.nq)
    v, a = 0.1 * np.cos(t)[:, None] * np.ones(robot.nq), -0.1 * np.sin(t)[:, None] * np.ones(robot.nq)
    return loads.Trajectory(robot, t, q, v, a)


def linear() -> Any:
    robot = drevo.load("three-link")
    q, zero = robot.q_of(), robot.v_of()
    return robot.linearise(q, zero, robot.gravity(q))


def tool() -> Any:
    robot = drevo.load("scara")
    return loads.accuracy(robot, robot.neutral(), robot.link_names[-1], joint_errors=1e-3)


RESULTS: dict[str, Callable[[], Any]] = {
    "motion": swing,
    "motion of a closed loop": closed,
    "trajectory": moved,
    "drives": lambda: loads.drives(moved().robot, moved()),
    "envelope": lambda: loads.envelope(moved().robot, moved(), moved().robot.link_names[1]),
    "loads of sections": lambda: loads.envelope(moved().robot, moved(), moved().robot.link_names[1]).loads,
    "accuracy": tool,
    "drawn errors": lambda: tool().monte_carlo(200, np.random.default_rng(0)),
    "linear model": linear,
    "frequency response": lambda: linear().frequency_response([1.0, 2.0, 5.0]),
    "walk": lambda: walking.walk(drevo.load("biped", base="floating"), steps=1),
}


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("what", RESULTS)
def test_every_result_has_a_picture(what: str) -> None:
    result = RESULTS[what]()
    assert isinstance(result, Pictured)
    ET.fromstring(result.svg())
    assert "<svg" in result._repr_html_()
    made = result.plot()
    assert made.axes and all(axes.get_title() for axes in made.axes)
    labels = [axes.get_ylabel() for axes in made.axes]
    assert all(labels) or what == "frequency response", labels
    made.savefig(io.BytesIO(), format="png")


def test_a_picture_is_saved_where_a_path_is_given(tmp_path: Path) -> None:
    motion = moved()
    for name, start in (("m.svg", b"<svg"), ("m.PNG", b"\x89PNG"), ("m.pdf", b"%PDF")):
        assert motion.plot(tmp_path / name) is None
        assert (tmp_path / name).read_bytes().startswith(start)
    assert (tmp_path / "m.svg").read_text(encoding="utf-8") == motion.svg()
    with pytest.raises(InputError, match=r"a picture is saved as .svg, .png or .pdf, not as '.*m.jpg'"):
        motion.plot(tmp_path / "m.jpg")


def test_a_motion_beside_a_reference() -> None:
    """Columns, panels and errors; the errors of a driven arm are those of its coordinates."""
    arm = drevo.load("three-link")
    law = drevo.control.pd(arm, [0.0, 0.0, 0.0], kp=40.0, kd=8.0)
    motion = arm.simulate([0.3, 0.0, 0.1], tau=drevo.simulate.Control(law), duration=0.2, every=20)
    beside = motion.beside(lambda t: [0.1 * t, 0.0, -0.2 * t])
    columns = beside.columns()
    rows = motion.t[:, None] * [0.1, 0.0, -0.2]
    assert np.allclose(beside.errors, rows - motion.q, rtol=0, atol=1e-15)
    for k, joint in enumerate(arm.joint_names):
        assert np.array_equal(columns[f"reference:{joint}"], rows[:, k])
        assert np.array_equal(columns[f"error:{joint}"], beside.errors[:, k])
        assert np.array_equal(columns[f"tau:{joint}"], motion.efforts[:, k])
    titles = [p.title for p in beside.figure().panels]
    assert [x.split(",")[0] for x in titles] == ["coordinates", "rates", "efforts", "errors", "energy"]
    assert [len(p.curves) for p in beside.figure().panels][:2] == [6, 3]
    assert "tau:joint1" not in arm.simulate([0.3, 0.0, 0.1], duration=0.1).columns()
    with pytest.raises(InputError, match=r"reference has shape \(2,\)|it must be|last dimension"):
        motion.beside([0.0, 1.0])
    with pytest.raises(InputError, match="has no reference"):
        str(motion.errors)


def test_mathematics_is_written_for_notebooks() -> None:
    text = linear()._repr_latex_()
    assert text.startswith("$$") and text.count("bmatrix") == 4 and "&" in text
    d = drevo.write_out(drevo.load("three-link"), "gravity")
    text = d._repr_latex_() or ""
    assert text.count("$$") % 2 == 0 and text.count("&=") == d.markdown().count("&=") and "#" not in text
    table = drevo.dh.table(drevo.load("puma560"))
    assert ET.fromstring(f"<p>{table._repr_html_()}</p>").find("table") is not None
    assert r"\begin{tabular}" in table._repr_latex_()


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("what", ["motion", "trajectory", "drives", "envelope"])
def test_results_are_tables_of_pandas(what: str) -> None:
    table = RESULTS[what]().to_pandas()
    assert len(table) and len(table.columns) > 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib.figure", "pandas"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        moved().plot()
    with pytest.raises(InputError, match="pip install pandas"):
        moved().to_pandas()


@pytest.mark.parametrize("what", [*RESULTS, "findings", "derivation", "conditions"])
def test_results_are_pickled(what: str) -> None:
    more: dict[str, Callable[[], Any]] = {
        "findings": lambda: drevo.check("scara"),
        "derivation": lambda: drevo.write_out(drevo.load("three-link"), "gravity"),
        "conditions": lambda: drevo.conditions(drevo.load("three-link"), constant="mass_matrix"),
    }
    result = {**RESULTS, **more}[what]()
    again = pickle.loads(pickle.dumps(result))  # noqa: S301
    assert repr(again) == repr(result)
    assert again == result or type(result).__eq__ is object.__eq__


def test_results_with_names_keep_them_in_pickles() -> None:
    robot = drevo.load("scara")
    found = robot.inverse_dynamics_derivatives(*np.ones((3, 4)))
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert type(again) is type(found) and (again.dtau_dq == found.dtau_dq).all()


# --- the command line -----------------------------------------------------------------------------------------


def test_the_shell_completes_robots_and_commands(tmp_path: Path) -> None:
    (tmp_path / "pupil.urdf").touch()

    def completed(words: str) -> str:
        env = {**os.environ, "_DREVO_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env["COMP_CWORD"] = str(len(words.split(" ")) - 1)
        command = [sys.executable, "-m", "drevo"]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True).stdout

    assert {"puma560", "pupil.urdf"} <= set(completed("drevo info pu").split())
    assert "simulate" in completed("drevo sim").split()


def test_commands_that_write_files_tell_it_as_json(tmp_path: Path) -> None:
    run = CliRunner().invoke
    found = json.loads(run(app, ["convert", "scara", str(tmp_path / "s.urdf"), "--json"]).stdout)
    assert found["nq"] == 4 and Path(found["file"]).exists()
    found = json.loads(run(app, ["write-out", "three-link", "gravity", "--json"]).stdout)
    assert found["counts"]["mul"] > 0 and found["text"]
    found = json.loads(run(app, ["view", "scara", "-e", str(tmp_path / "s.svg"), "--json"]).stdout)
    assert found["bytes"] == Path(found["file"]).stat().st_size


def test_patience_is_shown_to_people_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    for screens in (True, False):
        out, err = (Screen(), Screen()) if screens else (io.StringIO(), io.StringIO())
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        with common._patience():
            time.sleep(1.2)
            print("found")
            time.sleep(1.2)
        assert sys.stdout is out and out.getvalue() == "found\n"
        assert err.getvalue() == ("\rworking, 1 s\r\x1b[K" if screens else "")
