"""Legends: every symbol that stands in a line of a page stands there once, with a unit, and means one thing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import strategies

import drevo
from drevo.compiler.formalisms import TABLE
from drevo.compiler.pages.derivation import Derivation
from drevo.documents.document import COMPONENTS_MEANING, equal_entries, explained_symbols
from drevo.documents.paper import as_printed
from drevo.documents.sequence.inline import names_in_terms
from drevo.documents.sequence.names import parts
from drevo.documents.vectors import LINE_SIGNS, names_in_lines
from drevo.errors import TraceError
from drevo.model.quantities import CATALOGUE

UNIT = re.compile(r"\b(no unit|kg|m|N|J|W|rad|s|units)\b")
ROBOTS = ("three-link", "screw-arm", "rods", "random")
DERIVATIVES = {"inverse_dynamics_derivatives", "forward_dynamics_derivatives"}
ASKED = sorted({(f, q) for f, q in TABLE if q not in DERIVATIVES})
DERIVED = [
    ("mass_matrix", "q"),
    ("mass_matrix", "q,q"),
    ("gravity", "q"),
    ("inverse_dynamics", "q"),
    ("bias", "v"),
]


@cache
def robot(name: str) -> drevo.Robot:
    """Chains, a screw, slides and branches."""
    if name == "random":
        return drevo.Robot(strategies.robot(6, n=4))
    return drevo.robots.rod_chain(2) if name == "rods" else drevo.load(name)


def form(word: str) -> tuple[str, str, str]:
    """A symbol but for its numbers and axes: a_2x^c and a_3y^c look alike, a_2 and a_2,1 do not."""
    base, below, above = parts(word)
    return base, re.sub(r"[xyz]", "x", re.sub(r"\d", "#", below)), re.sub(r"\d+", "#", above)


def standing(page: Any, facts: Any) -> set[str]:
    """Names that stand in lines, tables and results."""
    lines = [s for section in (facts.inputs.sections if facts.inputs else ()) for s in section.statements]
    names = {n for s in (*lines, *page.statements()) for n in (s.name, *names_in_terms(s.terms))}
    names |= names_in_lines(facts.vectors)
    for r in page.results:
        names |= {*names_in_terms(r.entries), *(n for same in equal_entries(r) for n in same.names)}
    return names


def require_legend(d: Derivation) -> None:
    page, facts = as_printed(d.sequence, d.about)
    rows = explained_symbols(page, facts)
    listed = [x for symbols, _ in rows for x in symbols]
    parameters = [s.name for s, used in zip(page.symbols, page.used) if used]
    names, stand = [x[0] for x in listed if len(x) == 1], standing(page, facts)
    signs = {x for x in stand if any(re.fullmatch(pattern, x) for pattern, *_ in LINE_SIGNS)}
    assert sorted(stand - {*names, *parameters, *signs}) == []  # none without a meaning
    assert [x for x, n in Counter([*names, *parameters]).items() if n > 1] == []  # none with two
    free = {x for p in page.inputs for x in (p.source, *p.scalars)} | {r.name for r in page.results}
    assert sorted({*names} - stand - free) == []  # none unused
    assert [said for _, said in rows if not UNIT.search(said)] == []
    assert len({said for _, said in rows}) == len(rows)
    meanings = defaultdict(set)
    for symbols, said in rows:
        for x in symbols:
            meanings[form(x[0])].add(said if said != COMPONENTS_MEANING else form(x[0]))
    assert {k: x for k, x in meanings.items() if len(x) > 1} == {}


def pages(name: str, quantity: str, **how: Any) -> Iterator[Derivation]:
    made = robot(name)
    options = {"link": made.link_names[-1]} if quantity in CATALOGUE and CATALOGUE[quantity].options else {}
    for symbols in (None, "all"):
        for sequence in (None, "paper"):
            if symbols and sequence is None and {"wrt", "constraints"} & {*how}:
                continue  # such pages are of numbers
            try:
                yield drevo.write_out(made, quantity, symbols=symbols, sequence=sequence, **how, **options)
            except (TraceError, drevo.InputError):
                continue  # a formalism that does not cover this


@pytest.mark.parametrize(("formalism", "quantity"), ASKED)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_symbol_once(name: str, formalism: str, quantity: str) -> None:
    for d in pages(name, quantity, formalism=formalism):
        require_legend(d)


@pytest.mark.parametrize(("quantity", "wrt"), DERIVED)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_symbol_of_derivatives(name: str, quantity: str, wrt: str) -> None:
    for d in pages(name, quantity, wrt=wrt):
        require_legend(d)


@pytest.mark.parametrize("formalism", ["auto", "kovalchuk", "zaremba"])
@pytest.mark.parametrize("name", ROBOTS)
def test_every_symbol_of_constrained_motion(name: str, formalism: str) -> None:
    place = robot(name).moving_links[-1], (0.2, 0.1, 0.1), (0.3, 1.0, 0.2)
    plane = drevo.constraint.point_on_plane(*place, normal_rate=(0.1, 0.2, 0.3), offset=0.2)
    for d in pages(name, "constrained_dynamics", constraints=[plane], formalism=formalism):
        require_legend(d)


def test_every_symbol_of_a_machine_on_a_trunk() -> None:
    """Eighteen joints, of which six are the trunk: matrices too wide for their entries, blocks."""
    walker = drevo.load("biped", base="trunk")
    require_legend(drevo.write_out(walker, "inverse_dynamics", formalism="kovalchuk", sequence="paper"))
    contact = {"link": walker.link_names[-1], "point": (0.1, 0.0, 0.0)}
    d = drevo.write_out(
        walker, "constrained_dynamics", contacts=[contact], symbols="all", formalism="kovalchuk", sequence="paper"
    )
    require_legend(d)
    assert r"I_{I,I} & I_{R,I}^{T}" in d.markdown()
