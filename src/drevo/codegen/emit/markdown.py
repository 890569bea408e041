"""Sequence -> Markdown with $ and $$ mathematics, for notebooks and repositories."""

from __future__ import annotations

import re

from .about import About
from .document import CITE, InputRow, arguments, counted, input_sections, inputs, is_symmetric, results, spelled
from .expression import Style
from .latex import defined, latex_style, noted, same_lines
from .names import latex_name, plain
from .sequence import Result, Section, Sequence


def markdown(sequence: Sequence, facts: About) -> str:
    """A document of its own."""
    style = latex_style(facts.digits)
    by = f"Formalism: {escaped(facts.book)}. " if facts.formalism else ""
    lines = [f"# {escaped(facts.title)}", "", f"{by}Operations: **{facts.totals}**.", ""]
    lines += [escaped(counted(facts)), ""]
    lines += ["## Symbols", "", *_rows([*arguments(sequence, facts), *results(sequence, facts)])]
    lines += _inputs(sequence, facts)
    for given, values in input_sections(facts):
        rows = [defined(x, v, style) for x, v in zip(given.statements, values)]
        lines += [f"### {escaped(given.title)}", "", *_aligned(rows)]
    lines += _parameters(sequence, style)
    if sequence.prologue:
        lines += [
            "## Work on parameters alone",
            "",
            *(x for s in sequence.prologue for x in _section(s, style, facts)),
        ]
    lines += ["## Equations", "", *(x for s in sequence.main for x in _section(s, style, facts))]
    lines += [x for r in sequence.results for x in _result(r, style, facts)]
    return "\n".join([*lines, *_notes(facts), ""])


def escaped(text: str) -> str:
    """Any text, so that Markdown and HTML see nothing in it but text."""
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~$&])", r"\\\1", plain(text))


def _rows(rows: list[InputRow]) -> list[str]:
    named = [(spelled(latex_name, r.names, r"\dots"), r.meaning) for r in rows if r.names]
    body = [f"| ${names}$ | {escaped(text)} |" for names, text in named]
    return ["| symbol | meaning |", "|---|---|", *body, ""]


def _inputs(sequence: Sequence, facts: About) -> list[str]:
    cells = [(f"${latex_name(s)}$", *map(escaped, c)) for s, c in inputs(sequence, facts)]
    head = ["## Inputs", "", "| symbol | joint | number | kind | unit |", "|---|---|---|---|---|"]
    return [*head, *(f"| {' | '.join(row)} |" for row in cells), ""] if cells else []


def _parameters(sequence: Sequence, style: Style) -> list[str]:
    body = [f"| ${latex_name(s.name)}$ | {escaped(s.meaning)} | {s.unit} | {s.parameter.value:.10g} |"
            for s, used in zip(sequence.symbols, sequence.used) if used]  # fmt: skip
    head = ["## Parameters", "", "| symbol | meaning | unit | value |", "|---|---|---|---|"]
    return [*head, *body, ""] if body else []


def _aligned(lines: list[str]) -> list[str]:
    return ["$$", r"\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}", "$$", ""]


def _section(section: Section, style: Style, facts: About) -> list[str]:
    return [f"### {escaped(section.title)}", "", *_aligned([noted(s, style, facts) for s in section.statements])]


def _result(result: Result, style: Style, facts: About) -> list[str]:
    same = same_lines(result, style, facts)
    note = [f"${latex_name(result.name)}$ is symmetric.", ""] if is_symmetric(result) else []
    head = [f"### Result ${latex_name(result.name)}$", ""]
    return [*head, *note, *(_aligned(same) if same else [])] if note or same else []


def _notes(facts: About) -> list[str]:
    lines = []
    if facts.checks:
        rows = [f"| {escaped(what)} | {worst:.1e} | {n} |" for what, worst, n in facts.checks]
        lines += ["## Checks", "", "| compared with | worst difference | states |", "|---|---|---|", *rows, ""]
    lines += ["## Assumptions", "", *(f"* {escaped(a)}" for a in facts.assumptions), ""]
    return [*lines, "## Sources", "", *(f"* {escaped(r)}" for r in (*facts.references, CITE))]
