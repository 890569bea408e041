"""Shared parts of the documents for people: numbers, results without repetitions, rows of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..codegen.graph.program import CONVENTION
from .about import About, Coordinate, meaning
from .letters import meanings
from .paper import ConstantsTable, constants_table, values_of
from .sequence.expression import Name, Number, Term
from .sequence.inline import names_in_terms
from .sequence.layout import entry_name
from .sequence.sequence import Result, Section, Sequence, Statement
from .vectors import legend_of

CITE = "Written out by Drevo, a compiler of closed-form equations of motion for tree-structured robots."
COUNTED = f"Counting: {CONVENTION}"
LINE = 8  # names of equal entries on a line


class Same(NamedTuple):
    """Entries of a result that are equal to one value, which may be one of the statements."""

    names: tuple[str, ...]
    value: Term


def rounded(digits: int, scientific: Callable[[str, str], str]) -> Callable[[float], str]:
    """A function that shows a number; `scientific` takes mantissa and exponent."""

    def show(x: float) -> str:
        mantissa, _, exponent = f"{x:.{digits}g}".partition("e")
        return scientific(mantissa, str(int(exponent))) if exponent else mantissa

    return show


def legend(sequence: Sequence, facts: About, name: Callable[[str], str], dots: str) -> list[tuple[str, str]]:
    """Every argument, such as q_1, ..., q_7, and every result, with what it is."""
    listed = [(list(map(name, p.scalars)), p.source) for p in sequence.inputs if p.scalars]
    lines = legend_of(facts.vectors)
    defined = {x for names, _ in lines for x in names}
    listed += [([name(r.name)], r.source) for r in sequence.results if r.name not in defined]
    if facts.vectors:
        return [(_shortened(x, dots), meaning(facts, source)) for x, source in listed] + [
            (_shortened(list(map(name, x)), dots), said) for x, said in lines
        ]
    names = [n for s in sequence.statements() for n in (s.name, *names_in_terms(s.terms))]
    for section in facts.inputs.sections if facts.inputs else ():
        names += [n for s in section.statements for n in (s.name, *names_in_terms(s.terms))]
    plain = {n for p in sequence.inputs for n in p.scalars} | {s.name for s in sequence.symbols}
    found = [(list(map(name, x)), said) for x, said in meanings(facts.paper, (n for n in names if n not in plain))]
    rows = [(_shortened(x, dots), meaning(facts, source)) for x, source in listed]
    return rows + [(_shortened(x, dots), said) for x, said in found]


def _shortened(names: list[str], dots: str) -> str:
    return ", ".join(names if len(names) <= 3 else [names[0], dots, names[-1]])


def symbols_of(sequence: Sequence) -> dict[str, str]:
    """The letters of parameters by their names in the robot."""
    return {s.parameter.name: s.name for s in sequence.symbols}


def input_rows(sequence: Sequence, facts: About) -> list[tuple[str, Coordinate]]:
    """Every scalar of the arguments, with the joint (or link) it belongs to."""
    return [x for p in sequence.inputs for x in zip(p.scalars, facts.coordinates.get(p.source, ()))]


def equal_entries(result: Result) -> list[Same]:
    """Entries without a statement of their own by value, up to LINE; of a symmetric matrix the lower triangle."""
    groups: dict[Term, list[str]] = {}
    symmetric = is_symmetric(result)
    for k, value in enumerate(result.entries):
        name = entry_name(result.source, result.shape, k)
        if symmetric and k % result.shape[1] > k // result.shape[1]:
            continue
        if value != Term(False, (Name(name),)):
            groups.setdefault(value, []).append(name)
    zero = Term(False, (Number(0.0),))
    ordered = sorted(groups.items(), key=lambda item: item[0] == zero)
    return [Same(tuple(n[k : k + LINE]), value) for value, n in ordered for k in range(0, len(n), LINE)]


def note_of(facts: About, names: Iterable[str]) -> str:
    """The note on the first of the names that has one, or "".

    Where every joint has one rate, an element H_ji of a mass matrix is the entry M_ji.
    """
    for name in names:
        if name in facts.notes:
            return facts.notes[name]
    if facts.quantity != "mass_matrix" or not all(n[2:].isdigit() for n in facts.notes):
        return ""
    found = {facts.notes.get("H_" + n[2:].replace("_", ""), "") for n in names if n.startswith("M_")}
    return found.pop() if len(found) == 1 else ""


def given(facts: About, section: Section) -> tuple[tuple[Statement, ...], ConstantsTable | None]:
    """The definitions in a section of inputs, and its values as a table; all as equations where it is no table."""
    values = facts.inputs.values if facts.inputs else {}
    defined = tuple(s for s in section.statements if s.name in values)
    table = constants_table(values_of(section, values) if defined else section)
    return (defined, table) if table is not None else (section.statements, None)


def is_symmetric(result: Result) -> bool:
    """A square matrix whose mirrored entries are the same values."""
    if len(result.shape) != 2 or result.shape[0] != result.shape[1] or result.shape[0] < 2:
        return False
    n = result.shape[0]
    return all(result.entries[i * n + j] == result.entries[j * n + i] for i in range(n) for j in range(i))
