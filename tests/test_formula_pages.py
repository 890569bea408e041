"""Lines of written pages go through check_formulas as they are printed: one letter for one thing on both sides."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import strategies
from telegin_cases import hinged
from test_read_back import PAGES, equal_numbers

import drevo
from drevo import robots as embedded
from drevo.design.truth import NOTATIONS
from drevo.errors import TraceError
from drevo.model.description import Model

ROBOTS = tuple(n for n in embedded.EMBEDDED if n not in ("biped", "stewart", "two-arm"))
PATHS = [(q, f, path) for q, f in PAGES if f in NOTATIONS for path in (None, "paper")]
EQUATIONS = re.compile(r"\\begin\{(aligned|align\*)\}(.*?)\\end\{\1\}", re.DOTALL)


def judged(model: Model, quantity: str, notation: str, path: str | None, language: str) -> None:
    """Every line of a page is right, and all that the page is about is judged, not taken as a name of its own."""
    try:
        page = drevo.write_out(model, quantity, symbols="all", formalism=notation, sequence=path)
    except TraceError:
        return  # a paper that does not cover the robot, or has no path of its own
    text = page.text(language)
    if notation == "telegin" and "^{l}" in text:
        return  # links turned against their joints: their own parameters are not among Telegin's letters
    try:
        made = drevo.check_formulas(model, "\n".join(x for _, x in EQUATIONS.findall(text)), notation)
    except TraceError as not_covered:
        assert "hinged trees only" in str(not_covered) or "one degree of freedom" in str(not_covered)
        return
    assert not made.wrong, (model.name, quantity, notation, path, made.wrong[0])
    if notation != "telegin" and quantity in ("mass_matrix", "bias", "gravity", "inverse_dynamics"):
        own = {n for r in page.sequence.results for t in r.entries for n in names(t)}
        assert not own & {*made.defined}, own & {*made.defined}


def names(term: Any) -> set[str]:
    return {f.text for f in term.factors if hasattr(f, "text") and re.match(r"[A-Za-z]+_\d", f.text)}


@pytest.mark.parametrize(("quantity", "notation", "path"), PATHS)
def test_lines_of_pages(quantity: str, notation: str, path: str | None) -> None:
    language = ("markdown", "latex")[PATHS.index((quantity, notation, path)) % 3 % 2]
    judged(embedded.model("three-link"), quantity, notation, path, language)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(("quantity", "notation", "path"), PATHS)
def test_lines_of_every_page(name: str, quantity: str, notation: str, path: str | None) -> None:
    for language in ("markdown", "latex"):
        judged(embedded.model(name), quantity, notation, path, language)


@pytest.mark.parametrize("seed", strategies.seeds(2, 20))
def test_lines_of_pages_of_random_trees(seed: int) -> None:
    """Welds, turned placements, axes backwards, equal numbers: four pages by day."""
    rng = np.random.default_rng(seed)
    model = hinged(rng, 2, planar=seed % 4 == 3)
    model = strategies.robot(seed, strategies.SIMPLE, n=2, mimics=0.0) if seed % 2 == 0 else model
    model = equal_numbers(model, seed) if seed % 3 == 0 else model
    for quantity, notation, path in PATHS[seed % len(PATHS) :: 1 if seed >= 2 else 11]:
        judged(model, quantity, notation, path, ("markdown", "latex")[seed % 2])


@pytest.mark.parametrize("notation", NOTATIONS[1:])
def test_lengths_have_the_number_of_their_body(notation: str) -> None:
    """One length has no axis, several say which; the page and the check have the same letters."""
    quantity = {"vereshchagin": "forward_dynamics", "alyushin": "kinetic_energy"}.get(notation, "mass_matrix")
    page = drevo.write_out(drevo.load("three-link"), quantity, symbols="all", formalism=notation)
    letters = {s.parameter.name: s.name for s in page.sequence.symbols if ".origin." in s.parameter.name}
    assert letters == {"joint2.origin.y": "L_2", "joint3.origin.x": "L_3x", "joint3.origin.y": "L_3y"}


def test_lines_of_a_page_that_are_changed_are_refuted() -> None:
    """A wrong sign, one length for another: the page's other lines stand as they are."""
    robot = drevo.load("three-link")
    text = drevo.write_out(robot, "bias", symbols="all", formalism="kovalchuk").markdown()
    lines = EQUATIONS.findall(text)[-1][1]
    assert not drevo.check_formulas(robot, lines, "kovalchuk").wrong
    for old, new in ((r"\omega_{3z} &= \omega_{2z} + v_{3}", r"\omega_{3z} &= \omega_{2z} - v_{3}"),
                     (r"a_{2x} &= -L_{2}", r"a_{2x} &= -L_{3x}")):  # fmt: skip
        assert old in lines
        assert [w.name for w in drevo.check_formulas(robot, lines.replace(old, new), "kovalchuk").wrong]


def test_digits_that_are_printed_are_taken_as_such() -> None:
    """0.159155 ell_3 is the lead by a radian to six digits, and 0.16 ell_3 is not."""
    robot = drevo.load("screw-arm")
    good, bad = drevo.check_formulas(robot, "kappa_3 = 0.159155*ell_3; kappa_3 = 0.16*ell_3", "kovalchuk")
    assert good.verdict == "sampled" and "digits" in good.proof and bad.verdict == "wrong"
