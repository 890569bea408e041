"""The reports of the benchmarks, without measuring anything."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest

ROOT = Path(__file__).parent.parent


def module(path: str) -> ModuleType:
    """A script of the repository, imported by path under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"script_{Path(path).stem}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look there
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def scripts() -> Iterator[None]:
    """The scripts find each other, as they do when one is run."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))


def _cell(section: str, quantity: str, who: str, ns: float) -> dict[str, Any]:
    return {"section": section, "robot": "panda", "quantity": quantity, "who": who, "ns": ns, "median": ns}


@pytest.fixture
def document() -> dict[str, Any]:
    cells = []
    for q in ("inverse_dynamics", "mass_matrix", "forward_dynamics"):
        figures = {
            "drevo": 10.0,
            "drevo float32": 5.0,
            "pin shipped": 900.0,
            "pin native": 450.0,
            "mujoco C": 600.0,
        }
        cells += [_cell("cache", q, who, ns) for who, ns in figures.items()]
        cells += [_cell("scalar", q, "drevo", 120.0), _cell("scalar", q, "nothing", 30.0)]
        cells += [_cell("memory", q, who, ns) for who, ns in (("drevo 1", 20.0), ("drevo 2", 10.0))]
        cells += [_cell("memory", q, who, ns) for who, ns in (("pin 1", 900.0), ("pin 2", 500.0))]
        cells += [
            _cell("call", q, who, ns) for who, ns in (("drevo", 200.0), ("drevo out=", 150.0), ("pin", 1200.0))
        ]
    costs = [{"robot": "panda", "quantities": ["inverse_dynamics"], "seconds": 0.5, "MB": 150.0}]
    frax = {"who": "frax 0.1", "robot": "panda", "quantity": "bias", "ns": 800.0, "drevo": 10.0}
    return {
        "machine": {"cpu": "some processor", "drevo": "0"}, "date": "2026-01-01", "rounds": 3, "cores": 2,
        "missing": {"pin shipped": "no C++ compiler"}, "peak": 60.0, "flops": {"panda": 300}, "cells": cells,
        "costs": costs, "starts": {"numpy": 0.09},
        "others": {"cells": [frax], "missing": {"drake": "ImportError no wheel"}},
    }  # fmt: skip


def test_ratios_are_peer_over_drevo(document: dict[str, Any]) -> None:
    found = module("benchmarks/report.py").ratios(document)
    assert found["cache panda inverse_dynamics"] == 45.0  # the better of the two builds
    assert found["scalar panda inverse_dynamics"] == 450.0 / 90.0  # less what a call costs
    assert found["mujoco cache panda inverse_dynamics"] == 60.0
    assert found["float32 panda inverse_dynamics"] == 2.0
    assert found["threads panda inverse_dynamics"] == 2.0
    assert found["memory panda inverse_dynamics"] == 45.0
    assert found["memory threads panda inverse_dynamics"] == 50.0
    assert found["call out= panda inverse_dynamics"] == 8.0


def test_tables(document: dict[str, Any]) -> None:
    report = module("benchmarks/report.py")
    text = report.markdown(document)
    for words in ("| panda: inverse dynamics | 0.50 | 150 |", "| frax 0.1, panda, bias | 800 | 10.0 | 80 |",
                  "drake is missing: ImportError no wheel.", "pin shipped is missing: no C++ compiler.",
                  "| panda, inverse dynamics | 600 | 10.0 (60.0) | 90.0 (6.7) |"):  # fmt: skip
        assert words in text


def test_summary_for_the_readme(document: dict[str, Any]) -> None:
    report = module("benchmarks/report.py")
    for robot in ("go2", "talos"):
        document["cells"] += [{**c, "robot": robot} for c in document["cells"] if c["robot"] == "panda"]
    row = "| panda, mass matrix | **10** | **20** | 450 | 600 | **200** | 1200 |"
    assert row in report.summary(document)


def test_plot_is_an_svg(scripts: None, document: dict[str, Any]) -> None:
    root = ET.fromstring(importlib.import_module("plot").svg(document))
    bars = [x for x in root.iter("{http://www.w3.org/2000/svg}rect") if x.get("y")]
    assert len(bars) == 3 + 3 * 3  # the key, and three contenders at three quantities
    assert all(float(str(bar.get("width"))) > 0 for bar in bars)


def test_check_compares_with_what_is_recorded(scripts: None, capsys: pytest.CaptureFixture[str]) -> None:
    peers = importlib.import_module("peers")
    then = {"a": 10.0, "b": 10.0, "gone": 1.0}
    assert peers.check({"a": 9.0, "b": 30.0}, then) == 0
    assert peers.check({"a": 7.0, "b": 30.0}, then) == 1
    assert "a: 7.00 times its peer, recorded 10.00: SLOWER" in capsys.readouterr().out
    assert peers.check({}, then) == 1  # nothing was compared


def test_poses_of_all_links(scripts: None) -> None:
    cases, robots = importlib.import_module("cases"), importlib.import_module("robots")
    case = cases.prepare(robots.SUBJECTS[0])
    data = case.model.createData()
    pin.forwardKinematics(case.model, data, case.pin_state["q"][0])
    got = cases.function(case, "pose")(case.state["q"][0])
    want = [data.oMi[k].homogeneous for k in range(1, 8)]
    assert np.allclose(got[:7], want, atol=1e-14)


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
    points = render.joints(np.linspace(0, 1, 5)[:, None] * np.ones(render.RODS))
    assert points.shape == (5, render.RODS + 1, 2)
    ET.fromstring(render.picture(points, 1e-9))


def test_peers_describe_the_same_robot() -> None:
    subjects = module("benchmarks/robots.py")
    sizes = {"panda": 7, "go2": 18, "talos": 38}
    for subject in subjects.SUBJECTS:
        model = mujoco.MjModel.from_xml_string(subjects.plain_urdf(subject, mujoco=True))
        free = (pin.JointModelFreeFlyer(),) if subject.base == "floating" else ()
        assert model.nv == sizes[subject.name]
        assert pin.buildModelFromXML(subjects.plain_urdf(subject), *free).nv == sizes[subject.name]


def test_lines_of_one_call_give_the_same_numbers(scripts: None) -> None:
    """Every row of the table runs on either side; those that are alike are compared before they are timed."""
    found = module("benchmarks/one_call.py").measured("tree with balls", 1)
    assert len(found) > 10 and all(ours > 0.0 and theirs > 0.0 for ours, theirs in found.values())
