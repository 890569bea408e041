"""Sequence -> LaTeX: aligned equations by section, with page breaks, a legend, counts and checks."""

from __future__ import annotations

import re

from .about import About
from .document import (
    CITE,
    InputRow,
    arguments,
    counted,
    equal_entries,
    input_sections,
    inputs,
    is_symmetric,
    note_of,
    results,
    rounded,
    spelled,
)
from .expression import Style, pieces, write
from .names import latex_name, latex_text
from .sequence import Result, Section, Sequence, Statement

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
        number=rounded(digits, lambda m, e: rf"{m}\cdot 10^{{{e}}}"),
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
    title = latex_text(facts.title)
    lines = [_PREAMBLE + rf"\title{{{title}}}", r"\author{}", r"\date{}", r"\begin{document}", r"\maketitle"]
    if facts.formalism:
        lines.append(rf"Formalism: {latex_text(facts.book)}.")
    lines += [rf"Operations: {latex_text(facts.totals)}.", "", latex_text(counted(facts)), ""]
    lines.append(r"\section*{Symbols}")
    lines += _rows([*arguments(sequence, facts), *results(sequence, facts)])
    lines += _inputs(sequence, facts)
    for given, values in input_sections(facts):
        lines += _aligned(given, [defined(x, v, style) for x, v in zip(given.statements, values)])
    lines += _parameters(sequence, style)
    if sequence.prologue:
        lines.append(r"\section*{Work on parameters alone}")
        lines += [x for s in sequence.prologue for x in _section(s, style, facts)]
    lines.append(r"\section*{Equations}")
    lines += [x for s in sequence.main for x in _section(s, style, facts)]
    lines += [x for r in sequence.results for x in _result(r, style, facts)]
    lines += _notes(facts)
    return "\n".join([*lines, r"\end{document}", ""])


def _rows(rows: list[InputRow]) -> list[str]:
    body = [rf"${_names(r)}$ & {latex_text(r.meaning)} \\" for r in rows if r.names]
    return [r"\begin{longtable}[l]{@{}ll@{}}", *body, r"\end{longtable}"] if body else []


def _inputs(sequence: Sequence, facts: About) -> list[str]:
    rows = [rf"${latex_name(s)}$ & {' & '.join(map(latex_text, c))} \\" for s, c in inputs(sequence, facts)]
    head = r"symbol & joint & number & kind & unit \\ \midrule \endhead"
    table = [r"\begin{longtable}[l]{@{}lllll@{}}", head, *rows, r"\end{longtable}"]
    return [r"\section*{Inputs}", *table] if rows else []


def _names(row: InputRow) -> str:
    return spelled(latex_name, row.names, r"\dots")


def _parameters(sequence: Sequence, style: Style) -> list[str]:
    used = [s for s, u in zip(sequence.symbols, sequence.used) if u]
    if not used:
        return []
    head = r"symbol & meaning & unit & value \\ \midrule \endhead"
    body = [
        rf"${latex_name(s.name)}$ & {latex_text(s.meaning)} & {latex_text(s.unit)}"
        rf" & ${_value(s.parameter.value, style)}$ \\"
        for s in used
    ]
    return [r"\section*{Parameters}", r"\begin{longtable}[l]{@{}llll@{}}", head, *body, r"\end{longtable}"]


def _value(x: float, style: Style) -> str:
    return ("-" if x < 0 else "") + style.number(abs(x))


def _section(section: Section, style: Style, facts: About) -> list[str]:
    return _aligned(section, [noted(s, style, facts) for s in section.statements])


def _aligned(section: Section, lines: list[str]) -> list[str]:
    return [
        rf"\subsection*{{{latex_text(section.title)}}}",
        r"\begin{align*}",
        " \\\\\n".join(lines),
        r"\end{align*}",
    ]


def noted(s: Statement, style: Style, facts: About) -> str:
    """An equation with what is said beside it."""
    return equation(s, style, note_of(facts, (s.name, *s.also)))


def equation(s: Statement, style: Style, note: str = "") -> str:
    """name &= right side, broken between terms where it would leave the page."""
    names = [latex_name(s.name), *map(latex_name, s.also)]
    return rf"{' = '.join(names)} &= {broken(pieces(s.terms, style))}{beside(note)}"


def defined(s: Statement, value: float | None, style: Style) -> str:
    """A definition with its value."""
    return equation(s, style) + ("" if value is None else f" = {_value(value, style)}")


def beside(note: str) -> str:
    """A note in a column of its own."""
    return rf" && \quad\text{{{latex_text(note)}}}" if note else ""


def broken(terms: list[str]) -> str:
    """Terms of a sum with line breaks between them."""
    text, length = "", 0
    for term in terms:
        size = len(re.sub(r"\\[a-zA-Z]+|[{}_^\\]", "", term))
        if length and length + size > LINE:
            text, length = text + " \\\\\n&\\quad", 0
        text, length = text + term, length + size
    return text


def same_lines(result: Result, style: Style, facts: About) -> list[str]:
    """M_12 = M_21 and the zeros, as aligned lines of a few names each."""
    lines = []
    for same in equal_entries(result):
        names = " = ".join(map(latex_name, same.names))
        lines.append(f"{names} &= {write((same.value,), style)}{beside(note_of(facts, same.names))}")
    return lines


def _result(result: Result, style: Style, facts: About) -> list[str]:
    lines = [rf"${latex_name(result.name)}$ is symmetric."] if is_symmetric(result) else []
    same = same_lines(result, style, facts)
    aligned = [r"\begin{align*}", " \\\\\n".join(same), r"\end{align*}"] if same else []
    return [rf"\subsection*{{Result ${latex_name(result.name)}$}}", *lines, *aligned] if lines or aligned else []


def _notes(facts: About) -> list[str]:
    lines = []
    if facts.checks:
        rows = [rf"{latex_text(what)} & {worst:.1e} & {n} \\" for what, worst, n in facts.checks]
        lines += [r"\section*{Checks}", r"\begin{longtable}[l]{@{}p{0.6\textwidth}ll@{}}"]
        lines += [r"compared with & worst difference & states \\ \midrule \endhead", *rows, r"\end{longtable}"]
    lines += [r"\section*{Assumptions}", r"\begin{itemize}"]
    lines += [*(rf"\item {latex_text(a)}" for a in facts.assumptions), r"\end{itemize}"]
    lines += [r"\section*{Sources}", *(latex_text(r) + r" \\" for r in facts.references), latex_text(CITE)]
    return lines
