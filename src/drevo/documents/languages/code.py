"""Shared parts of the emitters of code: wrapping, the styles of names and numbers, entries of results."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..sequence.expression import Style, write_terms
from ..sequence.names import plain
from ..sequence.sequence import Result, Section, Sequence, SequenceInput

LINE_WIDTH = 100


def code_style(sequence: Sequence) -> Style:
    """Names as identifiers, numbers to the last digit."""
    return Style(name=sequence.identifiers.__getitem__, number=repr, turned=True)


def filled(items: Iterable[str], indent: str, last: str = "") -> list[str]:
    """Items with commas between them, as many on a line as fit."""
    lines, line = [], ""
    for item in items:
        if line and len(indent) + len(line) + len(item) + 2 > LINE_WIDTH:
            lines.append(indent + line.rstrip())
            line = ""
        line += f"{item}, "
    return [*lines, indent + line.rstrip().removesuffix(",") + last] if line else lines


def comment(text: str) -> str:
    """A line that ends no comment, continues no line and opens nothing, in any of the languages."""
    line = plain(text).replace("\\", "/")  # at first: it may make the end of a comment
    return re.sub(r"\?(?=\?)", "? ", line.replace("*/", "* /").replace("/*", "/ *")).rstrip()


def assignments(sections: tuple[Section, ...], style: Style, form: str, note: str) -> list[str]:
    """One line a statement: `form` takes name and right side, `note` a comment (titles, other names)."""
    lines = []
    for section in sections:
        lines.append(note.format(comment(section.title)))
        for s in section.statements:
            also = "  " + note.strip().format("= " + comment(", ".join(s.also))) if s.also else ""
            lines.append(form.format(style.name(s.name), write_terms(s.terms, style)) + also)
    return lines


def unpacked(sequence: Sequence, port: SequenceInput, form: str, first: int) -> list[tuple[str, str]]:
    """The names of the scalars of an argument, each with the text that reads it; summed angles lose whole turns.

    form: how an entry is written, of the array and its place; first: the number of an array's first place.
    """
    name = sequence.identifiers
    read = [form.format(name[port.name], k + first) for k in range(len(port.scalars))]
    turns = [t for t in sequence.turns if t.source == port.name]
    kept = {t.name: f"{sequence.periods[t.factor]}({read[t.place]})" for t in turns}
    plain = {s: read[k] for k, (s, used) in enumerate(zip(port.scalars, port.used)) if used}
    return [(name[s], text) for s, text in (plain | kept).items()]


def arguments_of(sequence: Sequence) -> list[str]:
    """Identifiers of what a function reads, in the order of the call."""
    constants = ["constants"] if sequence.symbols else []
    return [*(sequence.identifiers[p.name] for p in sequence.inputs), *constants]


def entries(result: Result, style: Style) -> list[str]:
    """The entries of a result, row-major."""
    return [write_terms((e,), style) for e in result.entries]
