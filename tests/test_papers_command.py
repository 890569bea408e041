"""drevo papers: pages, figures and a table whose errors are computed."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.compiler.formalisms import PAPERS
from drevo.errors import InputError
from drevo.papers import make_paper
from drevo.papers.figure import index_figure, joint_frames

NUMBERED = {  # the formulas that each paper numbers
    "telegin": [str(k) for k in range(1, 23)],
    "vereshchagin": [str(k) for k in range(1, 29)],
    "kovalchuk": [str(k) for k in range(1, 6)],
    "alyushin": [str(k) for k in range(1, 48)],
    "zaremba": [
        *(f"1.{k}" for k in range(1, 24)),  # in print 1.40 to 1.47 stand for 1.10 to 1.17
        *(f"2.{k}" for k in range(1, 20) if k != 2),  # there is no (2.2)
        *(f"3.{k}" for k in range(1, 6)),
        *(f"4.{k}" for k in range(1, 3)),
    ],
}
TELLS = {  # what else the papers tell, by words of its row
    "telegin": ("single support", "inclined", "seven linear", "Lagrange", "crosses", "letters", "held", "flight",
                "lengths among"),
    "vereshchagin": ("body 0", "R_k", "ten rods", "printed, with a plus", "all other joints"),
    "kovalchuk": ("s, ns", "dg+", "nan, an", "Dnum_k", "L:", "sigma", "T = T M A", "trunk", "singular", "rank 12",
                  "forecast", "servos", "unit accelerations", "velocity", "jacobian"),
    "alyushin": ("det", "W_e", "mode A", "mode B", "mode C", "accelerations"),
    "zaremba": ("contradict", "repeat", "n = 3", "linear model", "sections", "section", "accuracy", "order 3",
                "pose"),
}  # fmt: skip
DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", PAPERS)
def test_papers(tmp_path: Path, name: str) -> None:
    rows = make_paper(name, tmp_path)
    assert len(rows) >= 4 and {r.verdict for r in rows} <= {"agrees", "misprint"}
    assert (tmp_path / "table.md").read_text().count("\n| ") >= len(rows)
    assert list(tmp_path.glob("*.tex")) and list(tmp_path.glob("*.html"))
    agreed = set().union(*(numbers_in(r.formula) for r in rows if r.verdict == "agrees"))
    assert [n for n in NUMBERED[name] if n not in agreed] == []
    said = " ".join(f"{r.says}:" for r in rows)
    assert [words for words in TELLS[name] if words not in said] == [] and all(r.says for r in rows)
    assert (tmp_path / "figure-1.svg").exists() == (name == "kovalchuk")
    slips = [r for r in rows if r.verdict == "misprint"]
    assert len(slips) >= 3 and all(r.error > 0.005 for r in slips)


def numbers_in(formula: str) -> set[str]:
    """ "(1.2), (2.9)-(2.11)" is 1.2, 2.9, 2.10, 2.11."""
    out = set()
    for first, last in re.findall(r"\((\d[\d.]*)\)(?:-\((\d[\d.]*)\))?", formula):
        chapter, _, start = first.rpartition(".")
        end = int((last or first).rpartition(".")[2])
        out |= {f"{chapter}.{k}".lstrip(".") for k in range(int(start), end + 1)}
    return out


def test_the_five_side_by_side(tmp_path: Path) -> None:
    checked = make_paper("together", tmp_path)
    assert {r.verdict for r in checked} == {"agrees"} and len(checked) == 16
    text = (tmp_path / "together.md").read_text()
    assert all(f"| {name} |" in text for name in PAPERS) and "slide-and-screw" in text
    drawing = (tmp_path / "growth.svg").read_text()
    assert drawing == (DOCS / "together-growth.svg").read_text()
    page = (DOCS / "together.md").read_text()
    tables = [text.split("## Accuracy")[0], text.split("## Growth")[1]]
    rows = [line for part in tables for line in part.splitlines() if line.startswith("|")]
    assert len(rows) > 30 and set(rows) <= set(page.splitlines())


def test_figure_1_of_kovalchuk() -> None:
    """The committed figure is current; z of a frame (f(i), ns(i)) is the axis of the joint, through its origin."""
    robot = drevo.load("biped", base="trunk")
    figure = index_figure(robot, "pelvis")
    assert figure == (DOCS / "kovalchuk-figure-1.svg").read_text(encoding="utf-8")
    said = {"".join(x.itertext()) for x in ET.fromstring(figure)}
    frames = {"i,1", "i,2", "i,3", "f(i),ns(i)"}
    assert {f"{x}{k}" for x in "xyzO" for k in frames} | {"f(i)", "s(i,1)", "s(i,3)", "li,2", "qs(i,3)"} <= said
    for shown in (robot, drevo.load("stanford"), drevo.load("two-arm-spatial")):
        q = shown.neutral()
        for i, (frame, link) in enumerate(zip(joint_frames(shown)[1:], shown.model.links[1:])):
            twist = shown.jacobian(q, link.name, point=shown.pose(q, link.name)[:3, :3].T
                                   @ (frame[:3, 3] - shown.pose(q, link.name)[:3, 3]))[:, i]  # fmt: skip
            turns = shown.topology.sigma(i + 1)
            np.testing.assert_allclose(twist, np.r_[frame[:3, 2] * (1 - turns), frame[:3, 2] * turns], atol=1e-12)


def test_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["papers", "alyushin", "-o", str(tmp_path), "--json"])
    rows = json.loads(result.stdout)
    assert result.exit_code == 0 and rows[0].keys() == {"formula", "call", "against", "error", "verdict", "says"}


def test_a_paper_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="telegin"):
        make_paper("newton", tmp_path)
