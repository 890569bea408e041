"""drevo papers: pages, figures and a table whose errors are computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from drevo.cli.main import app
from drevo.compiler.formalisms import PAPERS
from drevo.errors import InputError
from drevo.papers import make_paper

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", PAPERS)
def test_papers(tmp_path: Path, name: str) -> None:
    rows = make_paper(name, tmp_path)
    assert len(rows) >= 4 and {r.verdict for r in rows} <= {"agrees", "misprint"}
    assert (tmp_path / "table.md").read_text().count("\n| ") >= len(rows)
    assert list(tmp_path.glob("*.tex")) and list(tmp_path.glob("*.html"))
    slips = [r for r in rows if r.verdict == "misprint"]
    assert len(slips) >= 3 - (name == "zaremba") and all(r.error > 0.005 for r in slips)


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


def test_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["papers", "alyushin", "-o", str(tmp_path), "--json"])
    rows = json.loads(result.stdout)
    assert result.exit_code == 0 and rows[0].keys() == {"formula", "call", "against", "error", "verdict"}


def test_a_paper_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="telegin"):
        make_paper("newton", tmp_path)
