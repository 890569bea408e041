"""Pages by the papers' own paths: vectors and matrices first, components that read back, LaTeX that compiles."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import strategies
from test_read_back import read_back, robots

import drevo
from drevo import robots as embedded
from drevo.compiler.formalisms import PAGES
from drevo.errors import TraceError

ROWS = [(f, q) for f, names in PAGES.items() for q in names.split()]
LETTERS = {
    "vereshchagin": (
        r"M_{1}^{\star }",
        r"Q_{1}^{\star }",
        "U_{3}",
        r"a_{2}^{\prime }",
        "(17)",
        "(18)",
        "(20)",
        "(5)",
    ),
    "kovalchuk": (r"\mathrm{ns}(2)", "f(3)", r"\epsilon_{2}", r"\phi_{3}", "M_{2}", r"\omega_{2}", "(4)", "(5)"),
    "zaremba": (r"\Theta_{1}^{1\star }", "l_{3}^{1}", "f^{2}", "a_{3,1}", r"d_{1,2}^{1}", "(2.9)", "(2.14)"),
    "alyushin": ("R_{3}", "v_{2}^{C}", "J_{3}", "E_{1}", "(7)", "(40)"),
}


@pytest.mark.parametrize(("formalism", "quantity"), ROWS)
@pytest.mark.parametrize("name", ["three-link", "screw-arm"])
def test_components_read_back(name: str, formalism: str, quantity: str) -> None:
    """Every format, each parameter at a value of its own."""
    read_back(embedded.model(name), quantity, formalism=formalism, sequence="paper")


@pytest.mark.parametrize("seed", strategies.seeds(5, 30))
def test_random_trees_read_back(seed: int) -> None:
    for model in robots(seed):
        for formalism, quantity in ROWS:
            read_back(model, quantity, ("markdown",), formalism=formalism, sequence="paper")


@pytest.mark.parametrize("formalism", LETTERS)
def test_letters_of_the_paper(formalism: str) -> None:
    """Lines by vectors stand before the components, with the paper's letters and numbers of equations."""
    quantity = PAGES[formalism].split()[0]
    d = drevo.write_out(drevo.load("three-link"), quantity, symbols="all", formalism=formalism, sequence="paper")
    text = d.markdown()
    vectors = text[text.index("## Vectors and matrices") : text.index("## Components")]
    assert [x for x in LETTERS[formalism] if x not in vectors] == []
    assert "<details><summary>components</summary>" in d.html() and 'class="vec"' in d.html()
    defined = set(re.findall(r"^([^&\n]+?) &=", vectors, re.MULTILINE))
    legend = text[text.index("## Symbols") : text.index("## Inputs")]
    assert all(row.split("|")[2].strip() for row in legend.splitlines()[4:] if row)
    assert len(defined) > 10


def test_paper_of_a_quantity_that_none_gives() -> None:
    with pytest.raises(TraceError, match="none of the five papers"):
        drevo.write_out(drevo.load("three-link"), "pose", link="link3", sequence="paper")
    with pytest.raises(TraceError, match="vereshchagin"):
        drevo.write_out(drevo.load("three-link"), "forward_dynamics", formalism="zaremba", sequence="paper")


def test_parameters_of_the_page_are_arguments_of_the_program() -> None:
    """By name in the main function and its prologue."""
    robot, space = drevo.load("three-link"), dict[str, object]()
    d = drevo.write_out(robot, "forward_dynamics", symbols="all", formalism="vereshchagin", sequence="paper")
    exec(d.python(), space)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 3))
    main, prologue = space["forward_dynamics"], space["prologue"]
    want = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(main(q, v, tau, prologue(dict(d.parameters))), want, rtol=1e-11)  # type: ignore[operator]
    changed = main(q, v, tau, **{"link3.mass": 2 * d.parameters["link3.mass"]})  # type: ignore[operator]
    assert np.max(np.abs(np.asarray(changed) - want)) > 1e-6


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="LaTeX is not installed")
@pytest.mark.parametrize("formalism", LETTERS)
def test_latex_has_no_overfull_box(tmp_path: Path, formalism: str) -> None:
    robot = drevo.load("two-arm-spatial" if formalism != "alyushin" else "screw-arm")
    quantity = PAGES[formalism].split()[0]
    d = drevo.write_out(robot, quantity, symbols="all", formalism=formalism, sequence="paper")
    d.save(tmp_path / "page.tex")
    for engine in ("pdflatex", "lualatex")[: 1 + (formalism == "kovalchuk" and bool(shutil.which("lualatex")))]:
        run = [engine, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        log = subprocess.run(run, cwd=tmp_path, capture_output=True, check=False).stdout.decode(errors="replace")
        assert "Output written" in log and "Overfull" not in log, re.findall(
            r"^(?:!|Overfull).*", log, re.MULTILINE
        )
