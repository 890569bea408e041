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
from drevo.compiler.pages.derivation import Derivation
from drevo.documents.languages.tex_lines import COLUMN, PAGE_WIDTH, broken_sum, width
from drevo.documents.letters import meanings
from drevo.documents.paper import as_printed
from drevo.documents.sequence.expression import FunctionCall, Group, Name, Number, Terms
from drevo.documents.sequence.inline import GENERATED, names_in_terms

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


def evaluated(d: Derivation, state: dict[str, Any]) -> tuple[dict[str, float], list[str], set[str]]:
    """The values of all names of a page, what it defines, and what its lines read."""
    page, facts = as_printed(d.sequence, d.about)
    known = {n: float(x) for p in page.inputs for n, x in zip(p.scalars, state[p.source])}
    known |= {f"a_{k + 1}": 0.0 for k in range(len(page.inputs[0].scalars))} if "a" not in state else {}
    known |= {s.name: s.parameter.value for s, used in zip(page.symbols, page.used) if used}
    values = facts.inputs.values if facts.inputs else {}
    rows = [s for x in (facts.inputs.sections if facts.inputs else ()) for s in x.statements]
    lines = [*(s for s in rows if s.name in values or not any(names_in_terms(s.terms))), *page.statements()]
    for s in lines:
        assert not s.also
        known[s.name] = value(s.terms, known)
        if s.name in values:  # the number in a table
            assert known[s.name] == pytest.approx(values[s.name], rel=1e-13)
    read = {n for s in lines for n in names_in_terms(s.terms)} | {n for s in rows for n in names_in_terms(s.terms)}
    read |= {n for r in page.results for n in names_in_terms(r.entries)}
    return known, [s.name for s in lines], read


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", ROBOTS)
def test_the_page_defines_all_that_it_reads_once_and_is_right(name: str, sequence: str) -> None:
    robot = drevo.load(name)
    d = written(name, sequence)
    page, _ = as_printed(d.sequence, d.about)
    q = np.random.default_rng(0).uniform(-3, 3, robot.nq)
    known, defined, read = evaluated(d, {"q": q})
    assert len(defined) == len(set(defined)) and not {"L", "e", "q", "x", "y", "z"} & set(defined)
    (H,) = page.results
    assert set(defined) <= read
    got = np.array([value((t,), known) for t in H.entries]).reshape(H.shape)
    np.testing.assert_allclose(got, robot.mass_matrix(q), rtol=0, atol=1e-13 * np.abs(got).max())
    assert not any(GENERATED.fullmatch(n) for n in defined)
    assert not re.search(r"M_\d", d.markdown())


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
    """Defined once by lines that are true; nothing unused; a meaning for each letter."""
    robot = drevo.load(name)
    d = drevo.write_out(robot, quantity, formalism=formalism, symbols="all")
    page, _ = as_printed(d.sequence, d.about)
    rng = np.random.default_rng(1)
    state = {p.source: rng.uniform(-2, 2, len(p.scalars)) for p in page.inputs}
    known, made, read = evaluated(d, state)
    arguments = {n for p in page.inputs for n in p.scalars} | {f"a_{k + 1}" for k in range(robot.nv)}
    arguments |= {s.name for s, used in zip(page.symbols, page.used) if used}
    assert len(made) == len({*made}) and {*made} <= read | {n for n in made if n[:4] == "tau_"}
    explained = {n for names, _ in meanings(formalism, (*made, *read)) for n in names}
    assert sum(bool(GENERATED.fullmatch(n)) for n in made) <= len(made) / 3  # the rest has the paper's letters
    assert (read | {*made}) - explained <= arguments
    for r in page.results:
        got = np.array([value((t,), known) for t in r.entries]).reshape(r.shape)
        found = d.evaluate(**state)
        results = found if isinstance(found, tuple) else (found,)
        want = dict(zip((x.source for x in d.sequence.results), results))[
            "M" if r.source == "H" and "H" not in {x.source for x in d.sequence.results} else r.source
        ]
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
    q, v, a = np.random.default_rng(2).uniform(-2, 2, (3, 3))
    known, *_ = evaluated(d, {"q": q, "v": v})
    got = [
        known[f"tau_{k}"] + sum(known[f"H_{max(k, j)}{min(k, j)}"] * a[j - 1] for j in (1, 2, 3))
        for k in (1, 2, 3)
    ]
    tau = drevo.load("three-link").inverse_dynamics(q, v, a)
    np.testing.assert_allclose(got, tau, rtol=0, atol=1e-12 * np.abs(tau).max())


def test_coefficients_of_lagrange_bear_the_rates_that_they_multiply() -> None:
    """h_31,2 stands beside v_3 v_1 in the second equation, and is twice [31, 2]."""
    robot = drevo.load("three-link")
    d = drevo.write_out(robot, "lagrange_equations", symbols="all")
    q, step = np.random.default_rng(3).uniform(-2, 2, 3), 1e-5
    known, names, _ = evaluated(d, {"q": q, "v": np.zeros(3)})
    D = [(robot.mass_matrix(q + step * e) - robot.mass_matrix(q - step * e)) / (2 * step) for e in np.eye(3)]
    for name in (n for n in names if n.startswith("h_")):
        j, k, i = (int(x) - 1 for x in name.replace("_", "")[1:])
        assert known[name] == pytest.approx(D[k][i, j] + D[j][i, k] - D[i][j, k], abs=1e-8), name
    for line in (x for x in d.markdown().splitlines() if re.match(r"Q_\{\d\}\^\{cf?\} &=", x)):
        equation = line[3]
        for j, k in re.findall(r"v_\{(\d)\}(?:\^\{2\}|\\,v_\{(\d)\})", line):
            one, other = sorted((j, k or j), reverse=True)
            assert f"h_{{{one}{other},{equation}}}" in line, line


def test_the_page_of_the_first_example_is_as_printed() -> None:
    """Paper's sequence of three links: H_32 = H_33 + L_3 m_33^e and the rest; I_2 is the paper's merged I."""
    text = written("three-link", "paper").latex()
    printed = (
        r"H_{33} &= I_{3}^{q}", r"H_{32} &= H_{33} + L_{3}\,m_{33}^{e}", r"I_{2} &= I_{2}^{d} + I_{3}^{q}",
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
    room = {1: PAGE_WIDTH, 2: COLUMN}
    for name in ROBOTS:
        d = written(name, "merged")
        for columns, allowed in room.items():
            for block in re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end", d.latex(columns), re.DOTALL):
                rows = [re.sub(r" \\tag.*", "", row).split("&") for row in block.split(" \\\\\n")]
                widest = [max(width(x) for x in column) for column in zip_longest(*rows, fillvalue="")]
                assert sum(widest) <= allowed, (name, columns, block)
    with pytest.raises(drevo.EmitError, match="columns must be 1 or 2, not 3"):
        d.latex(columns=3)
    assert broken_sum(r"b - \cos(a + b + c)", 80.0) == ["b", r" - \cos(a + b + c)"]
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
