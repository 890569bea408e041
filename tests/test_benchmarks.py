"""The reports of the benchmarks, without measuring anything."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ROW = {
    "drevo batch": 30.0, "drevo cached": 15.0, "drevo call": 200.0, "pin call": 1200.0, "pin loop": 1300.0,
    "pin corrected": 900.0, "mujoco call": 1500.0, "mujoco corrected": 800.0,
}  # fmt: skip


def module(path: str) -> ModuleType:
    """A script of the repository, imported by path under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"script_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def document() -> dict[str, Any]:
    quantities = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
    return {
        "machine": {"cpu": "some processor", "drevo": "0"},
        "results": {"panda": {"nv": 7, "base": "fixed", "ns": dict.fromkeys(quantities, ROW)}},
    }


def test_reports(document: dict[str, Any]) -> None:
    report = module("benchmarks/report.py")
    text = report.markdown(document)
    assert "| panda (fixed, 7) | mass matrix | 30.0 | 15.0 | 900 | 800 | 30.0 | 26.7 |" in text
    assert "| panda | inverse dynamics | 200 | 1200 | 6.0 |" in text
    assert "| panda | mass matrix | **30** | 900 | 800 | **200** | 1200 |" in report.summary(document)


def test_plot_is_an_svg(document: dict[str, Any]) -> None:
    root = ET.fromstring(module("benchmarks/report.py").svg(document))
    bars = [x for x in root.iter("{http://www.w3.org/2000/svg}rect") if x.get("y")]
    assert len(bars) >= 9
    assert all(float(str(bar.get("width"))) > 0 for bar in bars)


def test_insert_replaces_what_stands_between_the_markers(tmp_path: Path) -> None:
    page, report = tmp_path / "page.md", module("benchmarks/report.py")
    page.write_text("a\n<!-- x -->\nold\nold\n<!-- /x -->\nb\n")
    for text in ("new", "newer"):
        report.insert(page, "x", text)
    assert page.read_text() == "a\n<!-- x -->\nnewer\n<!-- /x -->\nb\n"


def test_readme_has_the_markers() -> None:
    text = (ROOT / "README.md").read_text()
    for marker in ("bench", "counts"):
        assert text.index(f"<!-- {marker} -->\n") < text.index(f"\n<!-- /{marker} -->")


def test_picture_is_an_svg() -> None:
    render = module("docs/render.py")
    import numpy as np

    points = render.joints(np.linspace(0, 1, 5)[:, None] * np.ones(render.RODS))
    assert points.shape == (5, render.RODS + 1, 2)
    ET.fromstring(render.picture(points, 1e-9))


def test_peers_describe_the_same_robot() -> None:
    pytest.importorskip("mujoco")
    pin = pytest.importorskip("pinocchio")
    subjects = module("benchmarks/robots.py")
    import mujoco

    sizes = {"panda": 7, "go2": 18, "talos": 38}
    for subject in subjects.SUBJECTS:
        model = mujoco.MjModel.from_xml_string(subjects.plain_urdf(subject, mujoco=True))
        free = (pin.JointModelFreeFlyer(),) if subject.base == "floating" else ()
        assert model.nv == sizes[subject.name]
        assert pin.buildModelFromXML(subjects.plain_urdf(subject), *free).nv == sizes[subject.name]
