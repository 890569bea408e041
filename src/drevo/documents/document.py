"""Shared parts of the documents for people: numbers, results without repetitions, rows of the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..codegen.graph.program import CONVENTION
from .about import About, Coordinate, meaning
from .letters import meanings
from .paper import ConstantsTable, constants_table, values_of
from .sequence.expression import Name, Number, Term
from .sequence.inline import names_in_terms
from .sequence.layout import entry_name
from .sequence.sequence import Result, Section, Sequence, Statement
from .vectors import Words, legend_of, names_in_lines

CITE = "Written out by Drevo, a compiler of closed-form equations of motion for tree-structured robots."
COUNTED = f"Counting: {CONVENTION}"
COMPONENTS_MEANING = (
    "components of the vectors and matrices above, in their units: x, y, z along axes; numbers after the last "
    "comma by row, and by row and column"
)
TURNING_UNITS = {  # units of what belongs to joints, and those of hinges alone
    "rad or m": "rad",
    "rad/s or m/s": "rad/s",
    "rad/s² or m/s²": "rad/s²",
    "N m or N": "N m",
    "kg m², kg m or kg": "kg m²",
    "N m s, N s or kg/s": "N m s",
    "1/(kg m²), 1/(kg m) or 1/kg": "1/(kg m²)",
}
NAMES_PER_LINE = 8  # names of equal entries on a line


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


def legend(sequence: Sequence, facts: About, show: Callable[[Words], str], dots: str) -> list[tuple[str, str]]:
    """The rows of a legend for people: of many symbols the first and the last, of an array the array alone."""
    rows = ((x[:1] if _entries(x) else x, said) for x, said in explained_symbols(sequence, facts))
    return [(_shortened([*map(show, x)], dots), said) for x, said in rows]


def _entries(symbols: list[Words]) -> bool:
    """True if the first stands for the others: M for M_11, M_21."""
    return all(x[0].startswith(f"{symbols[0][0]}_") for x in symbols[1:])


def explained_symbols(sequence: Sequence, facts: About) -> list[tuple[list[Words], str]]:
    """Every symbol of a page that is no parameter, once, with what it is."""
    lines = [s for section in facts.inputs.sections for s in section.statements] if facts.inputs else []
    lines += sequence.statements()
    ordered = [n for s in lines for n in (s.name, *names_in_terms(s.terms))]
    in_vectors = names_in_lines(facts.vectors)
    read, rows = {*ordered, *in_vectors}, list[tuple[list[Words], str]]()
    taken: set[Words] = {(s.name,) for s in sequence.symbols}
    hinged = {x.unit for x in facts.coordinates.get("q", ())} == {"rad"}

    def explain(symbols: Iterable[Words], said: str) -> None:
        if left := [x for x in dict.fromkeys(symbols) if x not in taken]:
            taken.update(left)
            for either, turning in TURNING_UNITS.items() if hinged else ():
                said = said.removesuffix(either) + turning if said.endswith(either) else said
            rows.append((left, said))

    for p in sequence.inputs:
        whole = [(p.source,)] if p.source in in_vectors else []
        explain([*whole, *((x,) for x in p.scalars)], meaning(facts, p.source))
    for r in sequence.results:
        entries = [entry_name(r.source, r.shape, k) for k in range(len(r.entries))]
        listed = {n for same in equal_entries(r) for n in same.names}
        explain([(r.name,), *((x,) for x in entries if x in read or x in listed)], meaning(facts, r.source))
    for names, said in legend_of(facts.vectors):
        explain(names, said)
    wholes = {x[0] for names, _ in rows for x in names if len(x) == 1}
    if facts.vectors:
        explain(((n,) for n in (*ordered, *sorted(in_vectors)) if wholes & {*_wholes(n)}), COMPONENTS_MEANING)
    for named, said in meanings(facts.paper, (n for n in ordered if (n,) not in taken)):
        explain(((n,) for n in named), said)
    return rows


def _wholes(name: str) -> Iterator[str]:
    """Names of the vector or matrix that a name may be a component of: omega_2 of omega_2x, L_2^1 of L_2_61^1."""
    base, mark, above = name.partition("^")
    for ending in (r"[xyz]{1,2}", r"_\d{1,2}", r"_\d+_\d+"):
        yield re.sub(rf"{ending}(?=(_t+)?$)", "", base) + mark + above


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
    return [
        Same(tuple(n[k : k + NAMES_PER_LINE]), value)
        for value, n in ordered
        for k in range(0, len(n), NAMES_PER_LINE)
    ]


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
