"""Sequence -> LaTeX: aligned equations by section, with page breaks, a legend, counts and checks.

Sequence -> Markdown with $ and $$ mathematics, for notebooks and repositories.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ...errors import EmitError, shown
from .. import document
from ..about import About
from ..document import CITE, COUNTED
from ..paper import as_printed
from ..sequence.expression import Style, write_terms
from ..sequence.names import latex_name, latex_text, plain
from ..sequence.sequence import Result, Section, Sequence, Statement
from ..vectors import VectorSection, tex_line, tex_rows
from .tex_lines import COLUMN, GAP, PAGE_WIDTH, broken_sum, width

Cells = tuple[str, ...]
_PREAMBLE = r"""\documentclass[10pt%s]{article}
\ifdefined\directlua\else\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\fi
\usepackage{amsmath,longtable,textcomp}
\usepackage[margin=%s]{geometry}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\emergencystretch=3em
"""
_PREAMBLES = {1: _PREAMBLE % ("", "22mm"), 2: _PREAMBLE % (",twocolumn", "18mm") + "\\sloppy\n"}
SPACING = 12.5  # points between columns of a table
MAX_TABLE_ROWS = 40  # of a table that must not run over a column


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


def latex(sequence: Sequence, facts: About, columns: int = 1) -> str:
    """A document of its own, in one column or, as articles are set, in two. EmitError for other columns."""
    if isinstance(columns, bool) or not isinstance(columns, int) or columns not in _PREAMBLES:
        raise EmitError(f"latex: columns must be 1 or 2, not {shown(columns)}")
    style = latex_style(facts.digits)
    title = rf"\title{{{latex_text(facts.title)}}}"
    text = [_PREAMBLES[columns] + title, r"\author{}", r"\date{}", r"\begin{document}", r"\maketitle"]
    if facts.formalism:
        text.append(rf"Formalism: {latex_text(facts.book)}.")
    text += [rf"Operations: {latex_text(facts.totals)}.", "", latex_text(document.COUNTED), ""]
    text += [latex_text(facts.less_in_all) + ".", ""] if facts.less_in_all else []
    marks = Marks(
        latex_text,
        lambda x: f"${_value(x, style)}$",
        _heading,
        _table,
        _aligned,
        lambda text: [text],
        PAGE_WIDTH,
        beside_in_column,
    )
    if columns == 2:
        marks = marks._replace(table=_narrow_table, room=COLUMN, beside=_tagged)
    text += tex_body(sequence, facts, marks)
    text += [
        *_heading(0, "Assumptions"),
        r"\begin{itemize}",
        *(rf"\item {latex_text(a)}" for a in facts.assumptions),
    ]
    text += [r"\end{itemize}", *_heading(0, "Sources"), *(latex_text(r) + r" \\" for r in facts.references)]
    return "\n".join([*text, latex_text(document.CITE), r"\end{document}", ""])


def _heading(level: int, title: str) -> list[str]:
    return [rf"\{'sub' * level}section*{{{title}}}"]


def _table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """The second cell of prose breaks, the first of a comparison; numbers of bodies go on in a table below."""
    rows = [*rows]
    if head[0] not in ("body", "bodies"):
        share = 0.75 if len(head) == 2 else 0.5 if len(head) == 4 else 0.35
        prose = rf"lp{{{share}\textwidth}}" if head[0] == "symbol" else r"p{0.5\textwidth}l"
        titles = [rf"{' & '.join(head)} \\ \hline \endhead"] if len(head) > 2 else []
        return _long(prose + "l" * (len(head) - 2), titles, rows)
    out = []
    for part in _parts(head, rows, PAGE_WIDTH):
        titles = [rf"{' & '.join(head[k] for k in part)} \\ \hline \endhead"]
        out += _long("l" * len(part), titles, [tuple(r[k] for k in part) for r in rows])
    return out


def _long(columns: str, titles: list[str], rows: list[Cells]) -> list[str]:
    return [rf"\begin{{longtable}}[l]{{@{{}}{columns}@{{}}}}", *titles, *_rows(rows), r"\end{longtable}"]


def _rows(rows: Iterable[Cells]) -> list[str]:
    return [rf"{' & '.join(row)} \\" for row in rows]


def _parts(head: Cells, rows: list[Cells], room: float) -> list[list[int]]:
    """Columns that fit beside the first."""
    sizes = [max(width(c.strip("$")) for c in column) + SPACING for column in zip(head, *rows)]
    parts: list[list[int]] = [[0]]
    for k in range(1, len(head)):
        if len(parts[-1]) > 1 and sum(sizes[c] for c in (*parts[-1], k)) > room:
            parts.append([0])
        parts[-1].append(k)
    return parts


def _narrow_table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """Without page breaks, which two columns do not allow inside a table: of so many rows each."""
    rows, out = [*rows], list[str]()
    if head[0] in ("body", "bodies"):
        for part in _parts(head, rows, COLUMN):
            title = rf"{' & '.join(head[k] for k in part)} \\ \hline"
            out += _short("l" * len(part), title, [tuple(r[k] for k in part) for r in rows], MAX_TABLE_ROWS)
        return out
    first = 0.3 if head[0] == "symbol" else 0.62
    prose = rf"p{{{first}\columnwidth}}p{{{0.9 - first:.2f}\columnwidth}}"
    cells: list[Cells] = [
        (r[0].replace(", ", "$, $"), ", ".join(filter(None, r[1:]))) for r in rows
    ]  # names break as words do
    return _short(prose, "", cells, MAX_TABLE_ROWS // 3)


def _short(columns: str, title: str, rows: list[Cells], most: int) -> list[str]:
    out = []
    for k in range(0, len(rows), most):
        out += [rf"\noindent\begin{{tabular}}{{@{{}}{columns}@{{}}}}", *filter(None, [title])]
        out += [*_rows(rows[k : k + most]), r"\end{tabular}", r"\par\medskip"]
    return out


def _aligned(lines: list[str]) -> list[str]:
    return [r"\begin{align*}", " \\\\\n".join(lines), r"\end{align*}"]


class Marks(NamedTuple):
    """The markup of a document, by kind of part. text: escapes; heading: of level 0 or 1; table: titles and rows.

    room: the width of equations, points; beside: what is said beside one, if anything. vectors: aligned lines with
    a column of numbers.
    """

    text: Callable[[str], str]
    value: Callable[[float], str]
    heading: Callable[[int, str], list[str]]
    table: Callable[[Cells, Iterable[Cells]], list[str]]
    aligned: Callable[[list[str]], list[str]]
    sentence: Callable[[str], list[str]]
    room: float
    beside: Callable[[str], str]
    vectors: Callable[[list[str]], list[str]] = lambda lines: [
        r"\begin{alignat*}{2}",
        " \\\\\n".join(lines),
        r"\end{alignat*}",
    ]


def tex_body(sequence: Sequence, facts: About, m: Marks) -> list[str]:
    """A document between its head and its assumptions, its mathematics in LaTeX."""
    sequence, facts = as_printed(sequence, facts)
    style, text = latex_style(facts.digits), m.text

    def equations(sections: Iterable[Section]) -> Iterator[str]:
        for s in sections:
            yield from m.heading(1, text(s.title))
            yield from m.aligned(_equations(s.statements, style, facts, m))

    listed = document.legend(sequence, facts, lambda x: tex_line(x, {}), r"\dots")
    symbols = [(f"${names}$", text(said)) for names, said in listed]
    parts = [*m.heading(0, "Symbols"), *m.table(("symbol", "meaning"), symbols)]
    if rows := [(f"${latex_name(s)}$", *map(text, c)) for s, c in document.input_rows(sequence, facts)]:
        parts += [*m.heading(0, "Inputs"), *m.table(("symbol", "joint", "number", "kind", "unit"), rows)]
    given = [*_inputs(facts, style, m), *_parameters(sequence, m)]
    parts += [] if facts.inputs else given
    if facts.vectors:
        parts += m.heading(0, "Vectors and matrices")
        symbols_by_name = document.symbols_of(sequence)
        for written in (x for x in facts.vectors if x.printed):
            parts += m.heading(1, text(written.title[:1].upper() + written.title[1:]))
            parts += m.vectors(_vector_lines(written, symbols_by_name, m.room))
    if sequence.prologue:
        parts += [*m.heading(0, "Work on parameters alone"), *equations(sequence.prologue)]
    parts += [*m.heading(0, "Components" if facts.vectors else "Equations"), *equations(sequence.main)]
    for r in sequence.results:
        parts += _result(r, style, facts, m)
    parts += given if facts.inputs else []
    if facts.checks:
        compared = [(text(what), f"{worst:.1e}", str(n)) for what, worst, n in facts.checks]
        parts += [*m.heading(0, "Checks"), *m.table(("compared with", "worst difference", "states"), compared)]
    return parts


def _vector_lines(section: VectorSection, symbols: Mapping[str, str], room: float) -> list[str]:
    """name &= right side && (number), broken where it would leave the page."""
    rows = [*tex_rows(section, symbols)]
    ahead = max(width(left) for left, *_ in rows) + width("=")
    beside = max(width(rf"\text{{{equation}}}") for *_, equation in rows) + GAP
    out = []
    for left, right, equation in rows:
        first, *more = broken_sum(right, room - ahead - beside - width(r"\quad"))
        tag = rf" && \quad\text{{{equation}}}" if equation else ""
        out += [f"{left} &= {first}{tag}", *(rf"&\quad{x}" for x in more)]
    return out


def _parameters(sequence: Sequence, m: Marks) -> list[str]:
    used = [s for s, read in zip(sequence.symbols, sequence.used) if read]
    known = [(f"${latex_name(s.name)}$", *map(m.text, s[1:3]), m.value(s.parameter.value)) for s in used]
    head = ("symbol", "meaning", "unit", "value")
    return [*m.heading(0, "Parameters"), *m.table(head, known)] if known else []


def _inputs(facts: About, style: Style, m: Marks) -> list[str]:
    """The parameters of the robot: definitions, and values in tables of bodies."""
    lines: list[str] = []
    for section in facts.inputs.sections if facts.inputs else ():
        lines += m.heading(1, m.text(section.title))
        defined, table = document.given(facts, section)
        lines += m.aligned(_equations(defined, style, None, m)) if defined else []
        if table is not None:
            head = (table.first, *(f"${latex_name(c)}$" for c in table.columns))
            rows = ((n, *(f"${write_terms(x, style)}$" if x else "" for x in row)) for n, row in table.rows)
            lines += m.table(head, rows)
    return lines


def _result(result: Result, style: Style, facts: About, m: Marks) -> list[str]:
    """Symmetry, and the entries M_12 = M_21 and zeros as aligned lines of a few names each."""
    name, shown = f"${latex_name(result.name)}$", []
    said = m.sentence(f"{name} is symmetric.") if document.is_symmetric(result) else []
    for same in document.equal_entries(result):
        value = write_terms((same.value,), style)
        note = m.beside(document.note_of(facts, same.names))
        left = broken_sum(" = ".join(map(latex_name, same.names)), m.room - width(f"= {value}"), "=")
        shown += [f"{x} &" for x in left[:-1]] + [rf"{left[-1]} &= {value}{note}"]
    parts = [*said, *(m.aligned(shown) if shown else [])]
    return [*m.heading(1, f"Result {name}"), *parts] if parts else []


def _equations(statements: Iterable[Statement], style: Style, facts: About | None, m: Marks) -> list[str]:
    """name &= right side, broken where it would leave the page, with what is said beside it."""
    rows = []
    for s in statements:
        left = " = ".join([latex_name(s.name), *map(latex_name, s.also)])
        note = m.beside(document.note_of(facts, (s.name, *s.also))) if facts else ""
        rows.append((left, write_terms(s.terms, style), note))
    ahead = max(width(left) for left, *_ in rows) + width("=")
    beside = max(width(note) + GAP if "text" in note else 0.0 for *_, note in rows)
    room, out = m.room - ahead - beside - width(r"\quad"), []
    for left, right, note in rows:
        first, *more = broken_sum(right, room)
        out.append(" \\\\\n".join([rf"{left} &= {first}{note}", *(rf"&\quad{x}" for x in more)]))
    return out


def _value(x: float, style: Style) -> str:
    return ("-" if x < 0 else "") + style.number(abs(x))


def beside_in_column(note: str) -> str:
    """A note in a column of its own."""
    return rf" && \quad\text{{{latex_text(note)}}}" if note else ""


def _tagged(note: str) -> str:
    """A note at the edge of the column, below an equation that leaves no room."""
    return rf" \tag*{{\footnotesize {latex_text(note)}}}" if note else ""


def markdown(sequence: Sequence, facts: About) -> str:
    """A document of its own."""
    by = f"Formalism: {escaped(facts.book)}. " if facts.formalism else ""
    head = [f"# {escaped(facts.title)}", "", f"{by}Operations: **{facts.totals}**.", "", escaped(COUNTED), ""]
    head += [escaped(facts.less_in_all) + ".", ""] if facts.less_in_all else []
    marks = Marks(
        escaped,
        "{:.10g}".format,
        _markdown_heading,
        _markdown_table,
        _markdown_aligned,
        lambda text: [text, ""],
        PAGE_WIDTH,
        beside_in_column,
        _vectors,
    )
    lines = [*head, *tex_body(sequence, facts, marks)]
    lines += [*_markdown_heading(0, "Assumptions"), *(f"* {escaped(a)}" for a in facts.assumptions), ""]
    lines += [*_markdown_heading(0, "Sources"), *(f"* {escaped(r)}" for r in (*facts.references, CITE))]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Any text, so that Markdown and HTML see nothing in it but text."""
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~$&])", r"\\\1", plain(text))


def _markdown_table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """Titles and rows; a blank line ends it."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _markdown_heading(level: int, title: str) -> list[str]:
    return [f"##{'#' * level} {title}", ""]


def _vectors(lines: list[str]) -> list[str]:
    return ["$$", r"\begin{alignedat}{2}", " \\\\\n".join(lines), r"\end{alignedat}", "$$", ""]


def _markdown_aligned(lines: list[str]) -> list[str]:
    return ["$$", r"\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}", "$$", ""]
