"""Sequence -> LaTeX: aligned equations by section, with page breaks, a legend, counts and checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from . import document
from .about import About
from .expression import Style, signed_terms, write_terms
from .names import latex_name, latex_text
from .paper import as_printed
from .sequence import Result, Section, Sequence, Statement

Cells = tuple[str, ...]
LINE = 86  # visible characters of an equation on a line
_PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amsmath,booktabs,longtable,textcomp}
\usepackage[margin=22mm]{geometry}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
"""


def latex_style(digits: int) -> Style:
    """Thin spaces for products, fractions, rounded numbers."""
    return Style(
        name=latex_name,
        number=document.rounded(digits, lambda m, e: rf"{m}\cdot 10^{{{e}}}"),
        times=r"\,",
        divide=lambda top, under: rf"\frac{{{top}}}{{{' '.join(under)}}}",
        call=_called,
        square=lambda f: f"{f}^{{2}}" if "^" not in f else f"{{{f}}}^{{2}}",
        collect=True,
    )


def _called(function: str, argument: str) -> str:
    if function == "sqrt":
        return rf"\sqrt{{{argument}}}"
    if function not in ("sin", "cos"):
        return rf"\operatorname{{{function}}}({argument})"
    return rf"\{function} {argument}" if _single(argument) else rf"\{function}({argument})"


def _single(text: str) -> bool:
    return " + " not in text and " - " not in text and not text.startswith("-") and r"\," not in text


def latex(sequence: Sequence, facts: About) -> str:
    """A document of its own."""
    style = latex_style(facts.digits)
    title = rf"\title{{{latex_text(facts.title)}}}"
    lines = [_PREAMBLE + title, r"\author{}", r"\date{}", r"\begin{document}", r"\maketitle"]
    if facts.formalism:
        lines.append(rf"Formalism: {latex_text(facts.book)}.")
    lines += [rf"Operations: {latex_text(facts.totals)}.", "", latex_text(document.COUNTED), ""]
    lines += [latex_text(facts.less_in_all) + ".", ""] if facts.less_in_all else []
    marks = Marks(latex_text, lambda x: f"${_value(x, style)}$", _heading, _table, _aligned, lambda text: [text])
    lines += tex_body(sequence, facts, marks)
    lines += [
        *_heading(0, "Assumptions"),
        r"\begin{itemize}",
        *(rf"\item {latex_text(a)}" for a in facts.assumptions),
    ]
    lines += [r"\end{itemize}", *_heading(0, "Sources"), *(latex_text(r) + r" \\" for r in facts.references)]
    return "\n".join([*lines, latex_text(document.CITE), r"\end{document}", ""])


def _heading(level: int, title: str) -> list[str]:
    return [rf"\{'sub' * level}section*{{{title}}}"]


def _table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """What is compared is prose, which breaks; that a symbol has a meaning goes without saying."""
    columns = ("l" if head[0] in ("symbol", "body", "bodies") else r"p{0.6\textwidth}") + "l" * (len(head) - 1)
    titles = [rf"{' & '.join(head)} \\ \midrule \endhead"] if len(head) > 2 else []
    lines = [rf"{' & '.join(row)} \\" for row in rows]
    return [rf"\begin{{longtable}}[l]{{@{{}}{columns}@{{}}}}", *titles, *lines, r"\end{longtable}"]


def _aligned(lines: list[str]) -> list[str]:
    return [r"\begin{align*}", " \\\\\n".join(lines), r"\end{align*}"]


class Marks(NamedTuple):
    """How a document marks its parts. text: escapes; heading: of level 0 or 1; table: titles and rows."""

    text: Callable[[str], str]
    value: Callable[[float], str]
    heading: Callable[[int, str], list[str]]
    table: Callable[[Cells, Iterable[Cells]], list[str]]
    aligned: Callable[[list[str]], list[str]]
    sentence: Callable[[str], list[str]]


def tex_body(sequence: Sequence, facts: About, m: Marks) -> list[str]:
    """A document between its head and its assumptions, its mathematics in LaTeX."""
    sequence, facts = as_printed(sequence, facts)
    style, text = latex_style(facts.digits), m.text

    def equations(sections: Iterable[Section]) -> Iterator[str]:
        for s in sections:
            yield from m.heading(1, text(s.title))
            yield from m.aligned([noted(x, style, facts) for x in s.statements])

    listed = document.legend(sequence, facts, latex_name, r"\dots")
    symbols = [(f"${names}$", text(said)) for names, said in listed]
    lines = [*m.heading(0, "Symbols"), *m.table(("symbol", "meaning"), symbols)]
    if rows := [(f"${latex_name(s)}$", *map(text, c)) for s, c in document.input_rows(sequence, facts)]:
        lines += [*m.heading(0, "Inputs"), *m.table(("symbol", "joint", "number", "kind", "unit"), rows)]
    given = [*_inputs(facts, style, m), *_parameters(sequence, m)]
    lines += [] if facts.inputs else given
    if sequence.prologue:
        lines += [*m.heading(0, "Work on parameters alone"), *equations(sequence.prologue)]
    lines += [*m.heading(0, "Equations"), *equations(sequence.main)]
    for r in sequence.results:
        lines += _result(r, style, facts, m)
    lines += given if facts.inputs else []
    if facts.checks:
        compared = [(text(what), f"{worst:.1e}", str(n)) for what, worst, n in facts.checks]
        lines += [*m.heading(0, "Checks"), *m.table(("compared with", "worst difference", "states"), compared)]
    return lines


def _parameters(sequence: Sequence, m: Marks) -> list[str]:
    used = [s for s, read in zip(sequence.symbols, sequence.used) if read]
    known = [(f"${latex_name(s.name)}$", *map(m.text, s[1:3]), m.value(s.parameter.value)) for s in used]
    head = ("symbol", "meaning", "unit", "value")
    return [*m.heading(0, "Parameters"), *m.table(head, known)] if known else []


def _inputs(facts: About, style: Style, m: Marks) -> list[str]:
    """What the robot is given by: definitions, and values in tables of bodies."""
    lines: list[str] = []
    for section in facts.inputs.sections if facts.inputs else ():
        lines += m.heading(1, m.text(section.title))
        defined, table = document.given(facts, section)
        lines += m.aligned([_equation(s, style) for s in defined]) if defined else []
        if table is not None:
            head = (table.first, *(f"${latex_name(c)}$" for c in table.columns))
            rows = ((n, *(f"${write_terms(x, style)}$" if x else "" for x in row)) for n, row in table.rows)
            lines += m.table(head, rows)
    return lines


def _result(result: Result, style: Style, facts: About, m: Marks) -> list[str]:
    """Symmetry, and the entries M_12 = M_21 and zeros as aligned lines of a few names each."""
    name, lines = f"${latex_name(result.name)}$", []
    said = m.sentence(f"{name} is symmetric.") if document.is_symmetric(result) else []
    for same in document.equal_entries(result):
        names = " = ".join(map(latex_name, same.names))
        lines.append(
            f"{names} &= {write_terms((same.value,), style)}{_beside(document.note_of(facts, same.names))}"
        )
    parts = [*said, *(m.aligned(lines) if lines else [])]
    return [*m.heading(1, f"Result {name}"), *parts] if parts else []


def noted(s: Statement, style: Style, facts: About) -> str:
    """An equation with what is said beside it."""
    return _equation(s, style) + _beside(document.note_of(facts, (s.name, *s.also)))


def _equation(s: Statement, style: Style) -> str:
    """name &= right side, broken between terms where it would leave the page."""
    names = [latex_name(s.name), *map(latex_name, s.also)]
    return rf"{' = '.join(names)} &= {_broken(signed_terms(s.terms, style))}"


def _value(x: float, style: Style) -> str:
    return ("-" if x < 0 else "") + style.number(abs(x))


def _beside(note: str) -> str:
    """A note in a column of its own."""
    return rf" && \quad\text{{{latex_text(note)}}}" if note else ""


def _broken(terms: list[str]) -> str:
    """Terms of a sum with line breaks between them."""
    text, length = "", 0
    for term in terms:
        size = len(re.sub(r"\\[a-zA-Z]+|[{}_^\\]", "", term))
        if length and length + size > LINE:
            text, length = text + " \\\\\n&\\quad", 0
        text, length = text + term, length + size
    return text
