"""Documents in the paper's notation: one name for a value, all defined, nothing unused, every display true."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.codegen.emit.expression import FunctionCall, Group, Name, Number, Terms
from drevo.codegen.emit.paper import as_printed, names_in_terms

ROBOTS = ("three-link", "two-arm-planar", "two-arm-spatial")
SEQUENCES = ("paper", "reuse", "merged")
GENERATED = re.compile(r"(?:K|t)_?\d+|phi_?\d+|[sc]_phi_?\d+")


def value(terms: Terms, known: dict[str, float]) -> float:
    """A right side by the numbers of the names before it."""
    total = 0.0
    for t in terms:
        x = -1.0 if t.negative else 1.0
        for f in t.factors:
            x *= factor(f, known)
        for f in t.over:
            x /= factor(f, known)
        total += x
    return total


def factor(f: Any, known: dict[str, float]) -> float:
    if isinstance(f, Name):
        return known[f.text]
    if isinstance(f, Number):
        return f.value
    if isinstance(f, Group):
        return value(f.terms, known)
    assert isinstance(f, FunctionCall)
    given = [value(x, known) for x in (f.terms, f.second) if x]
    return float(getattr(math, f.function)(*given))


def cosines(name: str, terms: Terms) -> dict[str, float]:
    """x_23^e and y_23^e of e_3 = a x_2 + b y_2."""
    out = {}
    for t in terms:
        *size, axis = t.factors
        letter, base = axis.text.split("_")
        x = (-1.0 if t.negative else 1.0) * (size[0].value if size else 1.0)
        out[f"{letter}_{base}{name[2:]}^e"] = x
    return out


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", ROBOTS)
def test_the_page_defines_all_that_it_reads_once_and_is_right(name: str, sequence: str) -> None:
    robot = drevo.load(name)
    d = drevo.write_out(robot, "mass_matrix", sequence=sequence, symbols="all")
    page, facts = as_printed(d.sequence, d.about)
    assert facts.inputs is not None
    q = np.random.default_rng(0).uniform(-3, 3, robot.nq)
    known = dict(zip(page.inputs[0].scalars, q))
    known |= {s.name: s.parameter.value for s, used in zip(page.symbols, page.used) if used}
    given = {"L", "e", "q", "x", "y", "z"}
    defined: list[str] = []
    for section in facts.inputs.sections:
        for s in section.statements:
            letter = s.name.split("_")[0]
            if letter == "e":
                known |= cosines(s.name, s.terms)
            elif s.name not in facts.inputs.values and not any(names_in_terms(s.terms)):
                known[s.name] = value(s.terms, known)
    order = [s for section in facts.inputs.sections for s in section.statements if s.name in facts.inputs.values]
    for s in (*order, *page.statements()):
        assert not s.also
        known[s.name] = value(s.terms, known)
        defined.append(s.name)
        if s.name in facts.inputs.values:
            assert known[s.name] == pytest.approx(facts.inputs.values[s.name], rel=1e-13)
    assert len(defined) == len(set(defined)) and not given & set(defined)
    (H,) = page.results
    read = {n for s in (*order, *page.statements()) for n in names_in_terms(s.terms)}
    read |= {n for t in H.entries for n in names_in_terms((t,))}
    assert set(defined) <= read
    got = np.array([value((t,), known) for t in H.entries]).reshape(H.shape)
    np.testing.assert_allclose(got, robot.mass_matrix(q), rtol=0, atol=1e-13 * np.abs(got).max())
    raw = (name, sequence) == ("two-arm-spatial", "merged")  # its augmented inertias have no letters in the paper
    assert raw or not any(page.used)
    assert not re.search(r"M_\d", d.markdown())


def test_the_page_of_the_first_example_has_no_name_of_its_own() -> None:
    """Paper's sequence of three links: H_22 = I_2 + 2 L_3 m_33^e and the rest, as it is printed."""
    d = drevo.write_out(drevo.load("three-link"), "mass_matrix", sequence="paper", symbols="all")
    page, _ = as_printed(d.sequence, d.about)
    assert not [s.name for s in page.statements() if GENERATED.fullmatch(s.name)]
    text = d.latex()
    for line in (r"H_{33} &= I_{3}^{q}", r"H_{32} &= H_{33} + L_{3}\,m_{33}^{e}", r"I_{2} &= H_{33} + I_{2}^{d}",
                 r"H_{11} &= I_{1}^{d} + H_{22} + 2\,L_{2}\,m_{22}^{e}", r"B_{32} &= L_{2}\,d_{x3}"):  # fmt: skip
        assert line in text, line
    assert text.index("H_{11} &=") < text.index("m_{o3}")  # the equations first, then what they stand on


def test_planar_pages_have_hardly_a_name_of_their_own() -> None:
    for name in ROBOTS[:2]:
        for sequence in SEQUENCES:
            d = drevo.write_out(drevo.load(name), "mass_matrix", sequence=sequence, symbols="all")
            page, _ = as_printed(d.sequence, d.about)
            own = [s.name for s in page.statements() if re.fullmatch(r"(?:K|t)_?\d+", s.name)]
            assert len(own) <= 2, (name, sequence, own)
