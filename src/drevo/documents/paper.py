"""A written-out sequence as its paper prints it: one name for a value, constants in tables of bodies.

The equations of a Telegin sequence stand on constants (A_33, d_x3, I_2^d) that the inputs of the robot define in
the paper's own letters. Where parameters are symbols, the program computes the same constants from links and
joints: people read them as the paper defines them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from .about import About, Inputs
from .letters import LETTERS
from .sequence.expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from .sequence.inline import inlined, names_in_terms, reduced_sums
from .sequence.layout import entry_name
from .sequence.reading import read_statements
from .sequence.sequence import Result, Section, Sequence, Statement

CLOSE = 1e-9  # relative: a number of the equations is a constant's value
MERGED = "constants of the equations"
_ZERO_TERM = Term(False, (Number(0.0),))
_SUMMED = ("centrifugal", "coriolis", "gravity")  # gyroscopic terms are part of the first two
_NUMERIC_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "atan2": math.atan2,
}
_RATES_PATTERN = re.compile(r"Q_(\d+)\^(?:cf|c)")
_BODY_PATTERN = re.compile(r"([A-Za-z]+)_([a-z]*)(\d+(?:_\d+)?)([xyz]{0,2})((?:\^\w+)?)")


class ConstantsTable(NamedTuple):
    """Constants by body. columns: names without the number of a body; rows: the number, and a value or nothing."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Terms | None, ...]], ...]
    first: str = "body"  # the title of the numbers


class Renaming(NamedTuple):
    """New names for those of the program: the paper's, or for a component of an offset a product."""

    printed: Mapping[str, str]
    lengths: Mapping[str, tuple[bool, tuple[str, ...]]]


def as_printed(sequence: Sequence, facts: About) -> tuple[Sequence, About]:
    """The sequence and its facts for people, in its paper's notation where it has one."""
    if facts.paper not in LETTERS:
        return _named_once(reduced_sums(sequence)), facts
    if facts.inputs is None:
        return _in_letters(sequence, facts), facts
    values, sequence = _constants(sequence), inlined(sequence)
    inputs = facts.inputs
    known = {s.name for section in inputs.sections for s in section.statements}
    named = {s.name: (s.name, *s.also) for s in sequence.statements()}
    alias = {x: s.name for section in inputs.sections for s in section.statements if (x := _body_alone(s.terms))}
    given = alias | {n: next((x for x in also if x in known), n) for n, also in named.items()}
    printed = given | {n: x for n, also in named.items() if (x := next(filter(_is_printed, also), ""))}
    inputs = _without(inputs, {printed[s.name] for x in sequence.main for s in x.statements})
    known = {s.name for section in inputs.sections for s in section.statements}
    of_main = Renaming(printed, inputs.lengths)
    of_constants = of_main._replace(printed=given | {n: printed[n] for n in named if given[n] == n})
    elements, rest = list[Statement](), dict[Statement, float]()
    for s in (s for section in sequence.prologue for s in section.statements):
        name = given[s.name]
        if _is_printed(printed[s.name]):
            alone = Statement(printed[s.name], (Term(False, (Name(name),)),))
            elements.append(alone if name in known else _renamed(s, of_main))
        elif name not in known:
            rest[_renamed(s, of_constants)] = values[s.name]
    inputs = inputs._replace(
        sections=(*inputs.sections, Section(MERGED, tuple(rest))),
        values={**inputs.values, **{s.name: x for s, x in rest.items()}},
    )
    main = [Section(s.title, tuple(_renamed(x, of_main) for x in s.statements)) for s in sequence.main]
    main = [Section("elements that are constant", tuple(elements)), *main] if elements else main
    results = tuple(_result(r, of_main) for r in sequence.results)
    main = _by_rates(facts, main) + _law(facts, results)
    made = sequence._replace(prologue=(), main=tuple(main), results=results)
    read = {n for s in made.statements() for n in names_in_terms(s.terms)}
    read |= {n for r in results for n in names_in_terms(r.entries)}
    numbers = [] if made.symbols else [x for s in made.statements() for x in _numbers_in(s.terms)]
    inputs = _wanted(inputs, read, numbers)
    known |= inputs.values.keys()
    read |= {n for section in inputs.sections for s in section.statements for n in names_in_terms(s.terms)}
    made = made._replace(used=tuple(s.name in read - known for s in made.symbols))
    return made, replace(facts, inputs=inputs)


def _without(inputs: Inputs, names: set[str]) -> Inputs:
    """The inputs without what the equations define, as it moves."""
    left = [Section(x.title, tuple(s for s in x.statements if s.name not in names)) for x in inputs.sections]
    values = {n: x for n, x in inputs.values.items() if n not in names}
    return inputs._replace(sections=tuple(x for x in left if x.statements), values=values)


def _by_rates(facts: About, sections: list[Section]) -> list[Section]:
    """Lagrange's equations with every coefficient named by the rates that it multiplies, h_21,3 of v_2 v_1 in Q_3.

    Coefficients that are equal are one value of the program: where the other name is read, it is defined first.
    """
    known = {s.name for x in sections for s in x.statements}
    if facts.quantity != "lagrange_equations":
        return sections
    out = []
    for section in sections:
        rows = list[Statement]()
        for s in section.statements:
            found = _RATES_PATTERN.fullmatch(s.name)
            equal: dict[str, Term] = {}
            terms = tuple(_rated(t, found[1], equal) for t in s.terms) if found else s.terms
            rows += [Statement(n, (t,)) for n, t in equal.items() if n not in known]
            rows.append(s._replace(terms=terms))
            known |= equal.keys()
        out.append(Section(section.title, tuple(rows)))
    return out


def _rated(t: Term, equation: str, equal: dict[str, Term]) -> Term:
    """A term of an equation with its coefficient's own name; equal: by that, what it is among the program's."""
    *numbers, last = t.factors
    if isinstance(last, Group) and all(isinstance(f, Number) for f in numbers):
        inner = (_rated(x.flipped() if t.negative else x, equation, equal) for x in last.terms)
        return Term(False, (*numbers, Group(tuple(inner))), t.over)
    names = [f.text for f in t.factors if isinstance(f, Name)]
    rates = sorted((int(n[2:]) for n in names if n.startswith("v_")), reverse=True)
    (own, *more) = [n for n in names if n.startswith("h_")] or [""]
    if not own or more or len(rates) != 2:
        return t
    name = f"h_{rates[0]}{rates[1]}_{equation}"
    if name == own:
        return t
    equal[name] = Term(t.negative, (Name(own),))
    return Term(False, tuple(Name(name) if f == Name(own) else f for f in t.factors), t.over)


def _law(facts: About, results: tuple[Result, ...]) -> list[Section]:
    """Lagrange's equations as they are used: H a, centrifugal and Coriolis terms and gravity are tau."""
    if facts.quantity != "lagrange_equations":
        return []
    H, *parts = results
    n, out = H.shape[0], []
    for i in range(n):
        row = H.entries[i * n : (i + 1) * n]
        terms = [
            t._replace(factors=(*t.factors, Name(f"a_{j + 1}"))) for j, t in enumerate(row) if t != _ZERO_TERM
        ]
        terms += [p.entries[i] for p in parts if p.source in _SUMMED and p.entries[i] != _ZERO_TERM]
        out.append(Statement(f"tau_{i + 1}", tuple(terms)))
    return [Section("equations of motion: inertia, centrifugal, Coriolis and gravity terms", tuple(out))]


def _constants(sequence: Sequence) -> Mapping[str, float]:
    """The values of the work on parameters alone."""
    states = [[0.0] * len(p.scalars) for p in sequence.inputs]
    parameters = [s.parameter.value for s in sequence.symbols]
    return read_statements(sequence._replace(main=()), states, parameters, _NUMERIC_FUNCTIONS)


def _result(r: Result, names: Renaming) -> Result:
    """Elements of a mass matrix are H_ji, where rates have the numbers of bodies."""
    entries = _in(r.entries, names)
    if r.source != "M":
        return r._replace(entries=entries)
    lower = [(t.factors[0], k) for k, t in enumerate(entries) if k % r.shape[0] <= k // r.shape[0]]
    own = ((f.text, entry_name("H", r.shape, k)) for f, k in lower if isinstance(f, Name))
    name = source = "H" if all(text == name for text, name in own if text.startswith("H_")) else "M"
    return r._replace(name=name, source=source, entries=entries)


def _in_letters(sequence: Sequence, facts: About) -> Sequence:
    """One name for each value; what is made of parameters alone comes first, by its definitions.

    Parameters that only a line by vectors holds are read too.
    """
    made = inlined(sequence)
    prologue, main = ([_plain(s) for s in part] for part in (made.prologue, made.main))
    made = made._replace(prologue=tuple(prologue), main=tuple(main))
    read = {n for s in made.statements() for n in names_in_terms(s.terms)}
    read |= {n for r in made.results for n in names_in_terms(r.entries)}
    marks = {w for x in facts.vectors for line in x.lines for w in line.right if w[0] == "@"}
    used = (f"@{s.parameter.name}" in marks or (u and s.name in read) for s, u in zip(made.symbols, made.used))
    return made._replace(used=tuple(used))


def _named_once(sequence: Sequence) -> Sequence:
    """No name for two values: further names that another line bears are left out."""
    taken = Counter(n for s in sequence.statements() for n in (s.name, *s.also))

    def section(x: Section) -> Section:
        alone = (s._replace(also=tuple(n for n in s.also if taken[n] == 1)) for s in x.statements)
        return Section(x.title, tuple(alone))

    prologue, main = (tuple(map(section, part)) for part in (sequence.prologue, sequence.main))
    return sequence._replace(prologue=prologue, main=main)


def _plain(section: Section) -> Section:
    """A section without further names."""
    return Section(section.title, tuple(s._replace(also=()) for s in section.statements))


def _is_printed(name: str) -> bool:
    """True if a further name of a result is the paper's letter for it: an element, or a term of an equation."""
    return name.startswith(("H_", "Q_"))


def _body_alone(terms: Terms) -> str:
    """m_o7 of a subtree that is one body: m_7 = m_o7."""
    names = [*names_in_terms(terms)]
    return names[0] if len(names) == len(terms) == 1 and names[0].startswith("m_o") else ""


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
    """The factors that replace a factor, after a flag that is True if a minus comes out of it."""
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


def _numbers_in(terms: Terms) -> Iterator[float]:
    for t in terms:
        for f in (*t.factors, *t.over):
            if isinstance(f, Number):
                yield f.value
            elif isinstance(f, (Group, FunctionCall)):
                yield from _numbers_in(f.terms)


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
    """A section with its definitions by their values."""
    numbers = {n: (Term(x < 0, (Number(abs(x)),)),) for n, x in values.items()}
    return Section(
        section.title, tuple(Statement(s.name, numbers.get(s.name, s.terms)) for s in section.statements)
    )


def constants_table(section: Section) -> ConstantsTable | None:
    """The section as a table of bodies, where every name is a letter with one body's number and a plain value."""
    cells: dict[str, dict[str, Terms]] = {}
    columns: list[str] = []
    for s in section.statements:
        found = _BODY_PATTERN.fullmatch(s.name)
        if found is None:
            return None
        axes = found[2] + found[4]
        column = found[1] + (f"_{axes}" if axes else "") + found[5]
        columns += [column] if column not in columns else []
        cells.setdefault(found[3], {})[column] = s.terms
    ordered = sorted(cells, key=lambda n: (len(n), n))
    rows = tuple((n, tuple(cells[n].get(c) for c in columns)) for n in ordered)
    return ConstantsTable(tuple(columns), rows, "bodies" if "A" in columns or "B" in columns else "body")
