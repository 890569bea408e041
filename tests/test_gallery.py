"""The gallery of the docs: a picture and a live page of every robot that is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "gallery.py"


def gallery() -> Any:
    spec = importlib.util.spec_from_file_location("gallery", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_robot_has_a_picture_that_leads_to_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = gallery()
    known = {x.name: x for x in made.ROBOTS}
    assert {"two-link", "puma560", "panda", "go2", "talos", "four-bar"} <= set(known)
    absent = known["panda"]._replace(make=lambda: made.installed("no-such-robot.urdf"))
    monkeypatch.setattr(made, "ROBOTS", (known["two-link"], known["four-bar"], absent))
    assert made.write(tmp_path) == ["two-link", "four-bar"]
    assert "without Franka Panda" in capsys.readouterr().err
    text = (tmp_path / "index.md").read_text()
    assert text.count("<img") == 2
    for name in ("two-link", "four-bar"):
        assert f'href="../live-{name}.html"' in text
        assert (tmp_path / "live" / f"live-{name}.png").stat().st_size > 1000
    page = tmp_path / "live" / "live-two-link.html"
    assert 'id="load-rows"' in page.read_text()
    assert 'id="load-rows"' not in (tmp_path / "live" / "live-four-bar.html").read_text()
    before = page.stat().st_mtime
    made.write(tmp_path)
    assert page.stat().st_mtime == before
