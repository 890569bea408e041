"""Sequence -> Markdown with $ and $$ mathematics, for notebooks and repositories."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..about import About
from ..document import CITE, COUNTED
from ..sequence.names import plain
from ..sequence.sequence import Sequence
from .latex import Cells, Marks, beside_in_column, tex_body
from .tex_lines import PAGE


def markdown(sequence: Sequence, facts: About) -> str:
    """A document of its own."""
    by = f"Formalism: {escaped(facts.book)}. " if facts.formalism else ""
    head = [f"# {escaped(facts.title)}", "", f"{by}Operations: **{facts.totals}**.", "", escaped(COUNTED), ""]
    head += [escaped(facts.less_in_all) + ".", ""] if facts.less_in_all else []
    marks = Marks(
        escaped,
        "{:.10g}".format,
        _heading,
        _table,
        _aligned,
        lambda text: [text, ""],
        PAGE,
        beside_in_column,
        _vectors,
    )
    lines = [*head, *tex_body(sequence, facts, marks)]
    lines += [*_heading(0, "Assumptions"), *(f"* {escaped(a)}" for a in facts.assumptions), ""]
    lines += [*_heading(0, "Sources"), *(f"* {escaped(r)}" for r in (*facts.references, CITE))]
    return "\n".join([*lines, ""])


def escaped(text: str) -> str:
    """Any text, so that Markdown and HTML see nothing in it but text."""
    return re.sub(r"([\\`*_{}\[\]()#+!|<>~$&])", r"\\\1", plain(text))


def _table(head: Cells, rows: Iterable[Cells]) -> list[str]:
    """Titles and rows; a blank line ends it."""
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _heading(level: int, title: str) -> list[str]:
    return [f"##{'#' * level} {title}", ""]


def _vectors(lines: list[str]) -> list[str]:
    return ["$$", r"\begin{alignedat}{2}", " \\\\\n".join(lines), r"\end{alignedat}", "$$", ""]


def _aligned(lines: list[str]) -> list[str]:
    return ["$$", r"\begin{aligned}", " \\\\\n".join(lines), r"\end{aligned}", "$$", ""]
