"""Conditions under which formulas are judged: each is solved for one parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import InputError
from . import expressions
from .exact import Algebra, Polynomial, Relation, without_symbol
from .truth import Truth

SOLVED_FIRST = (
    "I",
    "x",
    "y",
    "z",
    "m",
    "L",
    "kappa",
    "g",
)  # letters of the parameter that a condition is solved for


def conditions_of(text: str, truth: Truth, algebra: Algebra) -> tuple[Relation, ...]:
    """Relations in order; the ones before are used in those after."""
    out: list[Relation] = []
    for line in text.replace(";", "\n").replace(",", "\n").splitlines():
        if not line.strip():
            continue
        sides = expressions.read_formula(line)
        if len(sides) < 2:
            raise InputError(f"given {line.strip()!r} has no '='")
        values = [algebra.polynomial(_value(x, line, truth)) for x in sides]
        for side in values[:-1]:
            p = side - values[-1]
            for r in out:
                p = without_symbol(p, r).remainder
            if p:
                out.append(_solved(algebra.reduced(p), line, algebra))
    return tuple(out)


def _value(node: expressions.FormulaNode, line: str, truth: Truth) -> Any:
    def named(name: str) -> Any:
        x = truth(name)
        if x is None:
            raise InputError(f"given {line.strip()!r}: {name!r} is not in the paper's notation for this robot")
        return x

    return expressions.value(node, named, float)


def _solved(p: Polynomial, line: str, algebra: Algebra) -> Relation:
    """The condition as lead g + rest = 0, where lead is a sum of products of masses and lengths, never zero."""
    places = sorted({k for m in p for k, e in enumerate(m) if e}, key=lambda k: _rank(algebra.names[k]))
    if any(algebra.names[k].split("_")[0] in ("q", "v", "a", "c", "s", "tau", "u") for k in places):
        raise InputError(f"given {line.strip()!r} holds a coordinate; give conditions on parameters")
    for k in places:
        if max(m[k] for m in p) != 1:
            continue
        lead = {(*m[:k], 0, *m[k + 1 :]): x for m, x in p.terms() if m[k]}
        if set(m for m, x in p.terms()) == set((*m[:k], 1, *m[k + 1 :]) for m in lead) and _rank(
            algebra.names[k]
        ) in (4, 5):
            continue  # a mass or a length would vanish
        positive = len({x > 0 for x in lead.values()}) == 1
        kinds = {algebra.names[j].split("_")[0] for m in lead for j, e in enumerate(m) if e}
        if positive and kinds <= {"m", "L"}:
            rest = {m: x for m, x in p.terms() if not m[k]}
            return Relation(k, 1, algebra.ring.from_dict(lead), algebra.ring.from_dict(rest))
    raise InputError(
        f"given {line.strip()!r} cannot be fulfilled, or be solved for a parameter whose factor is never zero"
    )


def _rank(name: str) -> int:
    letter = name.split("_")[0]
    return SOLVED_FIRST.index(letter) if letter in SOLVED_FIRST else len(SOLVED_FIRST)


def fulfilled(draws: dict[str, Any], given: tuple[Relation, ...], algebra: Algebra) -> Mapping[str, Any]:
    """Samples of the parameters that the conditions are solved for."""
    out: dict[str, Any] = {}
    for r in reversed(given):
        values = {**draws, **out}
        out[algebra.names[r.place]] = -_sampled(r.rest, values, algebra) / _sampled(r.lead, values, algebra)
    return out


def _sampled(p: Polynomial, values: Mapping[str, Any], algebra: Algebra) -> Any:
    total: Any = 0.0
    for m, x in p.terms():
        term: Any = float(x)
        for k, e in enumerate(m):
            if e:
                term = term * np.asarray(values[algebra.names[k]]) ** e
        total = total + term
    return total
