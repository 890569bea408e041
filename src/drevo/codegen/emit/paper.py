"""A written-out sequence as its paper prints it: one name for a value, constants in tables of bodies.

The equations of a Telegin sequence stand on constants (A_33, d_x3, I_2^d) that the inputs of the robot define in
the paper's own letters. Where parameters are symbols, the program computes the same constants from links and
joints: for people these are left out, and what is defined is what the equations read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from .about import About, Inputs
from .expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from .sequence import Section, Sequence, Statement

CLOSE = 1e-9  # relative: a number of the equations is a constant's value
_BODY = re.compile(r"([A-Za-z]+)_([a-z]*)(\d+(?:_\d+)?)((?:\^\w+)?)")


class ConstantsTable(NamedTuple):
    """Constants by body. columns: names without the number of a body; rows: the number, and a value or nothing."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Terms | None, ...]], ...]
    first: str = "body"  # the title of the numbers


class Renaming(NamedTuple):
    """What stands for a name of the program: the paper's, or of an offset's component a product."""

    printed: Mapping[str, str]
    lengths: Mapping[str, tuple[bool, tuple[str, ...]]]


def as_printed(sequence: Sequence, facts: About) -> tuple[Sequence, About]:
    """The sequence and its facts for people; unchanged where they are in no paper's notation."""
    if facts.inputs is None or facts.quantity != "mass_matrix":
        return sequence, facts
    known = {s.name for section in facts.inputs.sections for s in section.statements}
    printed = {s.name: _printed(s, known) for s in sequence.statements()}
    names = Renaming(printed, facts.inputs.lengths)
    moved: list[Statement] = []
    prologue = [_kept(section, names, known, moved) for section in sequence.prologue]
    main = [Section(s.title, tuple(_renamed(x, names) for x in s.statements)) for s in sequence.main]
    constant = [Section("elements that are constant", tuple(moved))] if moved else []
    prologue = [*constant, *_read(prologue, main)]
    results = tuple(r._replace(name="H", source="H", entries=_in(r.entries, names)) for r in sequence.results)
    made = sequence._replace(prologue=tuple(prologue), main=tuple(main), results=results)
    read = {n for s in made.statements() for n in names_in_terms(s.terms)}
    numbers = [x for s in made.statements() for x in _numbers_in(s.terms)]
    used = (used and s.name in read - known for s, used in zip(made.symbols, made.used))
    made = made._replace(used=tuple(used))
    return made, replace(facts, inputs=_wanted(facts.inputs, read, numbers))


def _printed(s: Statement, known: set[str]) -> str:
    """The name of a value in the paper: an element H_ji, or what the inputs define."""
    named = (s.name, *s.also)
    elements = [n for n in named if n.startswith("H_")]
    return next(iter([*elements, *(n for n in named if n in known)]), s.name)


def _kept(section: Section, names: Renaming, known: set[str], moved: list[Statement]) -> Section:
    """What the inputs do not define; a constant element goes among the equations, as I_3^q where it is that."""
    kept = []
    for s in section.statements:
        given = next((n for n in (s.name, *s.also) if n in known), "")
        if given and names.printed[s.name] != given:
            moved.append(Statement(names.printed[s.name], (Term(False, (Name(given),)),)))
        elif not given:
            kept.append(_renamed(s, names))
    return Section(section.title, tuple(kept))


def _renamed(s: Statement, names: Renaming) -> Statement:
    return s._replace(name=names.printed[s.name], terms=_in(s.terms, names), also=())


def _in(terms: Terms, names: Renaming) -> Terms:
    """With other names."""
    return tuple(_term(t, names) for t in terms)


def _term(t: Term, names: Renaming) -> Term:
    negative, factors = t.negative, list[Factor]()
    for f in t.factors:
        minus, renamed = _factors(f, names)
        negative ^= minus
        factors += renamed
    over = tuple(x for f in t.over for x in _factors(f, names)[1])
    return Term(negative, tuple(factors), over)


def _factors(f: Factor, names: Renaming) -> tuple[bool, tuple[Factor, ...]]:
    """Whether minus comes out of a factor, and what stands for it."""
    if isinstance(f, Name):
        if f.text in names.lengths:
            minus, product = names.lengths[f.text]
            return minus, tuple(map(Name, product))
        return False, (Name(names.printed.get(f.text, f.text), f.turned),)
    if isinstance(f, Group):
        return False, (Group(_in(f.terms, names)),)
    if isinstance(f, FunctionCall):
        return False, (FunctionCall(f.function, _in(f.terms, names), _in(f.second, names)),)
    return False, (f,)


def names_in_terms(terms: Terms) -> Iterator[str]:
    """All names, also those in groups and calls."""
    for t in terms:
        for f in (*t.factors, *t.over):
            if isinstance(f, Name):
                yield f.text
            elif isinstance(f, Group):
                yield from names_in_terms(f.terms)
            elif isinstance(f, FunctionCall):
                yield from (*names_in_terms(f.terms), *names_in_terms(f.second))


def _numbers_in(terms: Terms) -> Iterator[float]:
    for t in terms:
        for f in (*t.factors, *t.over):
            if isinstance(f, Number):
                yield f.value
            elif isinstance(f, (Group, FunctionCall)):
                yield from _numbers_in(f.terms)


def _read(prologue: Iterable[Section], main: Iterable[Section]) -> Iterator[Section]:
    """Sections with the statements that something reads, the later ones first."""
    read = {n for s in main for x in s.statements for n in names_in_terms(x.terms)}
    out: list[Section] = []
    for section in reversed([*prologue]):
        kept = []
        for s in reversed(section.statements):
            if s.name in read or s.name.startswith("H_"):
                read.update(names_in_terms(s.terms))
                kept.append(s)
        if kept:
            out.append(Section(section.title, tuple(reversed(kept))))
    return reversed(out)


def _wanted(inputs: Inputs, read: set[str], numbers: list[float]) -> Inputs:
    """The inputs, of their definitions those that the equations, or what these read, name or hold as numbers."""
    read = {*read, *(n for n, x in inputs.values.items() if any(abs(abs(x) - y) <= CLOSE * y for y in numbers))}
    out: list[Section] = []
    for section in reversed(inputs.sections):
        kept = []
        for s in reversed(section.statements):
            if s.name not in inputs.values or s.name in read:
                read.update(names_in_terms(s.terms))
                kept.append(s)
        if kept:
            out.append(Section(section.title, tuple(reversed(kept))))
    return Inputs(tuple(reversed(out)), inputs.values)


def values_of(section: Section, values: Mapping[str, float]) -> Section:
    """What a section defines, by its values alone."""
    known = [s for s in section.statements if s.name in values]
    numbers = [(Term(values[s.name] < 0, (Number(abs(values[s.name])),)),) for s in known]
    return Section(section.title, tuple(Statement(s.name, x) for s, x in zip(known, numbers)))


def constants_table(section: Section) -> ConstantsTable | None:
    """The section as a table of bodies, where every name is a letter with one body's number and a plain value."""
    cells: dict[str, dict[str, Terms]] = {}
    columns: list[str] = []
    for s in section.statements:
        found = _BODY.fullmatch(s.name)
        if found is None:
            return None
        column = found[1] + (f"_{found[2]}" if found[2] else "") + found[4]
        columns += [column] if column not in columns else []
        cells.setdefault(found[3], {})[column] = s.terms
    ordered = sorted(cells, key=lambda n: (len(n), n))
    rows = tuple((n, tuple(cells[n].get(c) for c in columns)) for n in ordered)
    return ConstantsTable(tuple(columns), rows, "bodies" if "A" in columns or "B" in columns else "body")
