"""Files, names, streams and windows that are not as they should be."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from public_calls import robot
from test_sweep import PLAN
from typer.testing import CliRunner

import drevo
from drevo.cli import common
from drevo.cli.main import app
from drevo.errors import InputError, ModelError
from drevo.io import installed, meshes
from drevo.io.given import asked, whole
from drevo.io.xml import parse
from drevo.robot import saving
from drevo.sweep import run as sweep


def arm() -> drevo.Robot:
    return robot("three-link")


def test_meshes_are_found_by_every_way_of_naming_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ws" / "share" / "pack").mkdir(parents=True)
    file = tmp_path / "ws" / "share" / "pack" / "a b.stl"
    file.touch()
    monkeypatch.setenv(meshes.VARIABLES[0], str(tmp_path / "ws"))
    assert meshes.find_mesh("package://pack/a b.stl", "") == str(file)
    assert meshes.find_mesh(f"file://{str(file).replace(' ', '%20')}", "") == str(file)
    assert meshes.find_mesh("file://a%20b.stl", str(file.parent)) == str(file)
    assert meshes.find_mesh("a\0b.stl", "") is None and meshes.find_mesh(" ", "") is None


def test_a_name_of_several_robots(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [Path(f"/x/robots/{folder}/urdf/bot.urdf") for folder in ("a_description", "b_description")]
    monkeypatch.setattr(installed, "_example_robot_data", lambda: files)
    with pytest.raises(ModelError, match="is several robots of example-robot-data; name one of a, b"):
        installed.find("bot")


def test_tables_of_repositories_that_are_silent(tmp_path: Path) -> None:
    table = tmp_path / "t.py"
    table.write_text('A = {"x": R(url="u"), "y": 3, **B}\nC = {"z": R(cache_path=path)}')
    assert [installed._repository(table, name) for name in "xyzw"] == list("xyzw")


def test_what_is_written_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = arm().model
    other = replace(model, joints=(replace(model.joints[0], name="other"), *model.joints[1:]))
    with pytest.raises(ModelError, match="has other joints when it is read again"):
        saving._difference(model, model, other, True)
    light = replace(model, gravity=(0.0, 0.0, -1.0))
    with pytest.raises(ModelError, match="differs in its dynamics by"):
        saving._difference(model, model, light, True)
    loop = robot("four-bar").model
    with pytest.raises(ModelError, match="has other loops when it is read again"):
        saving._difference(loop, loop, replace(loop, loops=()), True)
    with pytest.raises(ModelError, match="what was written is not read again"):
        saving._loaded("<robot/>", ".urdf")


def test_loops_beside_a_name() -> None:
    with pytest.raises(ModelError, match="loops stand beside a file, and 'scara' is embedded"):
        drevo.load("scara", loops="a.toml")
    with pytest.raises(ModelError, match="knows one of this name"):
        drevo.load("scara.urdf")


def test_what_comes_from_within_is_no_fault_of_the_call() -> None:
    def inner(x: int, **more: Any) -> Any:
        return len(x)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len"):
        asked(inner)(3)
    with pytest.raises(InputError, match=r"inner\(x, \.\.\.\) is missing 'x'"):
        asked(inner)(y=3)

    def few(x: int, *, y: int = 0) -> None:
        pass

    with pytest.raises(
        InputError, match="takes 1 argument by position, 2 are given; what else it takes goes by name"
    ):
        asked(few)(1, 2)
    with pytest.raises(InputError, match="was given 'x' twice, by place and by name"):
        asked(few)(1, x=2)
    assert whole("x", np.array(3)) == 3


def test_xml_without_an_end() -> None:
    for text in (b"", b"<a>" * 300, b"<!-- nothing -->"):
        with pytest.raises(ModelError):
            parse(text)


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    """A line of the manifest that was cut, and what a worker left half written."""
    sweep(PLAN, tmp_path / "a")
    whole_one = (tmp_path / "a" / "result.npz").read_bytes()
    (manifest,) = (tmp_path / "a").glob("manifest*")
    data = manifest.read_bytes()
    manifest.write_bytes(data[:-20])
    (tmp_path / "a" / "shards" / ".0123456789abcdef.npz").touch()
    (tmp_path / "a" / "result.npz").unlink()
    sweep(PLAN, tmp_path / "a", resume=True)
    assert (tmp_path / "a" / "result.npz").read_bytes() == whole_one
    assert not list((tmp_path / "a" / "shards").glob(".*"))


class Screen:
    """A stream that says that a person looks."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def write(self, text: str) -> int:
        self.texts.append(text)
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_who_waits_is_told_so_until_the_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    err = Screen()
    monkeypatch.setattr(sys, "stdout", Screen())
    monkeypatch.setattr(sys, "stderr", err)
    with common._patience():
        sys.stdout.write("word")
        assert sys.stdout.isatty()
    assert err.texts == []
    with common.progress(2, "work") as told:
        told("one")
        told("two")
    assert any("work" in text or "one" in text for text in err.texts)


def test_view_waits_for_who_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    window = SimpleNamespace(address="http://here", wait=lambda: opened.append("waited"))
    monkeypatch.setattr(drevo.Robot, "view", lambda *_, **__: window)
    monkeypatch.setattr("webbrowser.open", opened.append)
    run = CliRunner().invoke
    assert "scara is shown at http://here" in run(app, ["view", "scara"]).output
    assert json.loads(run(app, ["view", "scara", "--json", "--open"]).output) == {"address": "http://here"}
    assert opened == ["waited", "http://here", "waited"]
