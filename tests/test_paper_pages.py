"""Documents in the paper's notation: one name for a value, all defined, nothing unused, every display true."""

from __future__ import annotations

import math
import re
import subprocess
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import needed
import numpy as np
import pytest

import drevo
from drevo.codegen.emit.about import About
from drevo.codegen.emit.expression import FunctionCall, Group, Name, Number, Terms
from drevo.codegen.emit.inline import GENERATED, names_in_terms
from drevo.codegen.emit.letters import meanings
from drevo.codegen.emit.paper import as_printed
from drevo.codegen.emit.tex_lines import COLUMN, PAGE, broken_sum, width
from drevo.compiler.derivation import Derivation

ROBOTS = ("three-link", "two-arm-planar", "two-arm-spatial")
SEQUENCES = ("paper", "reuse", "merged")


@cache
def written(name: str, sequence: str) -> Derivation:
    return drevo.write_out(drevo.load(name), "mass_matrix", sequence=sequence, symbols="all")


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
    d = written(name, sequence)
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
    assert not any(page.used) and not any(GENERATED.fullmatch(n) for n in defined)
    assert not re.search(r"M_\d", d.markdown())


def tabled(facts: About) -> dict[str, float]:
    """The numbers of the tables."""
    assert facts.inputs is not None
    rows = [s for section in facts.inputs.sections for s in section.statements if s.name[:2] not in ("e_", "q_")]
    return {s.name: value(s.terms, {}) for s in rows if not any(names_in_terms(s.terms))}


PAPERS = [
    ("three-link", "lagrange_equations", "telegin"),
    ("three-link", "inverse_dynamics", "kovalchuk"),
    ("two-arm-planar", "inverse_dynamics", "kovalchuk"),
    ("three-link", "forward_dynamics", "vereshchagin"),
    ("two-arm-planar", "kinetic_energy", "alyushin"),
    ("three-link", "bias", "zaremba"),
    ("two-arm-spatial", "mass_matrix", "zaremba"),
]


@pytest.mark.parametrize(("name", "quantity", "formalism"), PAPERS)
def test_pages_of_each_paper_explain_every_symbol(name: str, quantity: str, formalism: str) -> None:
    """Defined once, before it is read, by lines that are true; nothing unused; a meaning for each letter."""
    robot = drevo.load(name)
    d = drevo.write_out(robot, quantity, formalism=formalism, symbols="all")
    page, facts = as_printed(d.sequence, d.about)
    assert facts.inputs is not None
    rng = np.random.default_rng(1)
    state = {p.source: rng.uniform(-2, 2, len(p.scalars)) for p in page.inputs}
    known = {n: x for p in page.inputs for n, x in zip(p.scalars, state[p.source])}
    arguments = {*known}
    known |= {f"a_{k + 1}": x for k, x in enumerate(rng.uniform(-2, 2, robot.nv))} if "a" not in state else {}
    known |= {s.name: s.parameter.value for s, used in zip(page.symbols, page.used) if used}
    known |= facts.inputs.values
    known |= tabled(facts)
    given = {*known} - arguments
    made: list[str] = []
    for s in page.statements():
        assert s.name not in given or quantity == "forward_dynamics"
        known[s.name] = value(s.terms, known)
        made.append(s.name)
    read = {n for s in page.statements() for n in names_in_terms(s.terms)}
    read |= {n for r in page.results for n in names_in_terms(r.entries)} | {n for n in made if n[:4] == "tau_"}
    assert len(made) == len({*made}) and {*made} <= read
    explained = {n for names, _ in meanings(formalism, (*made, *read)) for n in names}
    assert sum(bool(GENERATED.fullmatch(n)) for n in made) <= len(made) / 3  # the rest has the paper's letters
    assert (read | {*made}) - explained <= arguments | {f"a_{k + 1}" for k in range(robot.nv)}
    for r in page.results:
        got = np.array([value((t,), known) for t in r.entries]).reshape(r.shape)
        want = d.evaluate(**state)
        want = (
            want
            if isinstance(want, np.ndarray)
            else dict(zip((x.source for x in d.sequence.results), want))[r.source]
        )
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * max(1.0, np.abs(want).max()))


def test_the_equations_of_lagrange_say_what_they_are() -> None:
    """H a + centrifugal + Coriolis + gravity terms = tau, line by line, each group by its name."""
    d = drevo.write_out(drevo.load("three-link"), "lagrange_equations", symbols="all")
    text = d.latex()
    assert (
        r"\tau_{3} &= H_{31}\,a_{1} + H_{32}\,a_{2} + H_{33}\,a_{3} + Q_{3}^{cf} + Q_{3}^{c} + Q_{3}^{g}" in text
    )
    for words in (
        "centrifugal terms: of squares",
        "Coriolis terms: of products",
        "terms of gravity",
        "gyroscopic part",
    ):
        assert words in text
    page, facts = as_printed(d.sequence, d.about)
    q, v, a = np.random.default_rng(2).uniform(-2, 2, (3, 3))
    known = dict(zip(("q_1", "q_2", "q_3", "v_1", "v_2", "v_3", "a_1", "a_2", "a_3"), (*q, *v, *a)))
    known |= {s.name: s.parameter.value for s in d.sequence.symbols}
    assert facts.inputs is not None
    known |= {**facts.inputs.values, **tabled(facts)}
    for s in page.statements():
        known[s.name] = value(s.terms, known)
    tau = drevo.load("three-link").inverse_dynamics(q, v, a)
    np.testing.assert_allclose([known[f"tau_{k}"] for k in (1, 2, 3)], tau, rtol=0, atol=1e-12 * np.abs(tau).max())


def test_the_page_of_the_first_example_is_as_printed() -> None:
    """Paper's sequence of three links: H_32 = H_33 + L_3 m_33^e and the rest; I_2 is the paper's merged I."""
    text = written("three-link", "paper").latex()
    printed = (
        r"H_{33} &= I_{3}^{q}", r"H_{32} &= H_{33} + L_{3}\,m_{33}^{e}", r"I_{2} &= I_{3}^{q} + I_{2}^{d}",
        r"H_{11} &= I_{1}^{d} + H_{22} + 2\,L_{2}\,m_{22}^{e}", r"B_{32} &= L_{2}\,d_{x3}",
    )  # fmt: skip
    for line in printed:
        assert line in text, line
    assert text.index("H_{11} &=") < text.index("m_{o3}")  # the equations first, then what they stand on


def test_constants_of_the_merged_spatial_page_have_the_values_of_their_bodies() -> None:
    """D_i, delta_i, ... of a table of bodies; the moments of inertia of an augmented body are I_i^dx."""
    d = written("two-arm-spatial", "merged")
    _, facts = as_printed(d.sequence, d.about)
    assert facts.inputs is not None
    x = facts.inputs.values
    assert x["D_7"] == pytest.approx(math.hypot(x["d_x7"], x["d_y7"]), rel=1e-14)
    assert x["delta_7"] == pytest.approx(math.atan2(x["d_y7"], x["d_x7"]), rel=1e-14)
    assert "$D$ | $\\delta$ |" in d.markdown() and r"I_{6}^{dx} &=" in d.latex()


# -- LaTeX ------------------------------------------------------------------------------------------------------


def test_equations_fit_their_column() -> None:
    """By Drevo's own measure, which the next test holds against TeX's."""
    room = {1: PAGE, 2: COLUMN}
    for name in ROBOTS:
        d = written(name, "merged")
        for columns, allowed in room.items():
            for block in re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end", d.latex(columns), re.DOTALL):
                rows = [re.sub(r" \\tag.*", "", row).split("&") for row in block.split(" \\\\\n")]
                widest = [max(width(x) for x in column) for column in zip_longest(*rows, fillvalue="")]
                assert sum(widest) <= allowed, (name, columns, block)
    with pytest.raises(drevo.EmitError, match="columns must be 1 or 2, not 3"):
        d.latex(columns=3)
    assert broken_sum(r"\sqrt{" + " + ".join(["a_{1}"] * 9) + "}", 90.0)[-1].endswith(")^{1/2}")


@pytest.mark.parametrize("engine", ["pdflatex", pytest.param("lualatex", marks=pytest.mark.nightly)])
def test_latex_sets_every_page_without_an_overfull_box(engine: str, tmp_path: Path) -> None:
    needed.require(engine)
    pages = [written(name, sequence) for name in ROBOTS for sequence in ("paper", "merged")]
    pages.append(drevo.write_out(drevo.load("three-link"), "lagrange_equations", symbols="all"))
    pages += [drevo.write_out(drevo.load("puma560"), "inverse_dynamics")]
    for columns in (1, 2):
        texts = [d.latex(columns) for d in pages]
        bodies = [t[t.index(r"\maketitle") : t.index(r"\end{document}")] for t in texts]
        text = texts[0][: texts[0].index(r"\maketitle")] + "\\clearpage\n".join(bodies) + "\\end{document}\n"
        (tmp_path / "page.tex").write_text(text, encoding="utf-8")
        command = [engine, "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=100)
        assert done.returncode == 0 and not re.search("Overfull|Missing character", done.stdout), done.stdout[
            -2000:
        ]


def test_pages_carry_a_font_of_mathematics() -> None:
    d = written("three-link", "paper")
    for page in (d.html(), d.text("html")):
        assert page.count('@font-face{font-family:"Drevo Math";src:url(data:font/woff2;base64,') == 1
        assert '.drevo math{font-family:"Drevo Math"' in page
