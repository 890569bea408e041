"""Proofs and refutations of formulas: a difference that vanishes, or a point where it does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from . import expressions
from .exact import (
    POLYNOMIAL_ONE,
    POLYNOMIAL_ZERO,
    Algebra,
    EliminationStep,
    Polynomial,
    Relation,
    constant,
    exponents,  # fmt: skip
    gen,
    polynomial_text,
    values_at,
)
from .expressions import FormulaNode
from .parameters import unit_vector
from .polynomial import rational
from .truth import Truth, is_parameter

SHOWN_TERMS = 12  # of a polynomial in a printed proof
HALF_TANGENTS = ("1/2", "1/3", "2/3", "3/4", "1/4", "2/5", "3/5", "4/5", "1/5", "5/6")  # of half the angles


@dataclass(frozen=True, slots=True)
class Proof:
    """A certificate: factor * (name - formula) is the sum of cofactors times relations that are zero.

    definitions: the polynomials of the formula's symbols, by name, in parameters, sines and cosines. parts: pairs
    of a relation and its cofactor. `holds` multiplies all out again.
    """

    name: str
    formula: str
    definitions: Mapping[str, str]
    factor: str
    parts: tuple[tuple[str, str], ...]
    symbols: tuple[str, ...]
    difference: str  # as it stands before the relations are used

    def holds(self) -> bool:
        """True if factor * difference less the cofactors times their relations is zero, term by term."""
        places = {name: k for k, name in enumerate(self.symbols)}
        rest = polynomial_of(self.factor, places) * polynomial_of(self.difference, places)
        for relation, cofactor in self.parts:
            rest -= polynomial_of(relation, places) * polynomial_of(cofactor, places)
        known = {name: polynomial_of(text, places) for name, text in self.definitions.items()}
        side = _plain_value(self.formula, known)
        return not rest and (side is None or known[self.name] - side == polynomial_of(self.difference, places))

    def __str__(self) -> str:
        lines = [f"{name} = {_short(text)}" for name, text in self.definitions.items() if name != text]
        factor = "" if self.factor == "1" else f"({_short(self.factor)})*"
        right = " + ".join(f"({_short(c)})*({r})" for r, c in self.parts) or "0, term by term"
        lines.append(f"{factor}({self.name} - ({self.formula})) = {right}")
        return "\n".join(lines + (["each relation in brackets is zero"] if self.parts else []))


def _short(text: str) -> str:
    terms = re.split(r" (?=[+-] )", text)
    more = f" + ... ({len(terms)} terms)" if len(terms) > SHOWN_TERMS else ""
    return " ".join(terms[:SHOWN_TERMS]) + more


def polynomial_of(text: str, places: Mapping[str, int]) -> Polynomial:
    """A polynomial as `polynomial_text` writes it."""
    total = POLYNOMIAL_ZERO
    for term in re.split(r" (?=[+-] )", text.strip()):
        sign, body = (-1, term[2:]) if term.startswith("- ") else (1, term.removeprefix("+ "))
        sign, body = (-1, body[1:]) if body.startswith("-") else (sign, body)
        body, _, below = body.partition("/")
        p = constant(Fraction(sign, int(below or 1)))
        for factor in body.split("*"):
            m = re.fullmatch(r"\((.*)\)\^(\d+)|(.*[^\d].*)\^(\d+)", factor)
            name, power = ((m[1] or m[3]), int(m[2] or m[4])) if m and factor not in places else (factor, 1)
            p = p * (gen(places[name], power) if name in places else constant(int(name)))
        total += p
    return total


def _plain_value(formula: str, known: Mapping[str, Polynomial]) -> Polynomial | None:
    """The formula by its definitions; None where it divides or takes sines, which the difference has done."""
    node = expressions.read_formula(formula)[0]
    if any(x.kind in ("/", *expressions.FORMULA_FUNCTIONS) for x in expressions.nodes(node)):
        return None
    if any(x.kind == "name" and str(x.value) not in known for x in expressions.leaves(node)):
        return None
    side: Polynomial = expressions.value(node, lambda n: known[n], lambda t: constant(Fraction(t)))
    return side


def proof_of(
    name: str,
    node: FormulaNode,
    algebra: Algebra,
    exact: Callable[[FormulaNode], Any],
    named: Callable[[str], Any],
    given: tuple[Relation, ...],
) -> Proof:
    """The certificate of a formula that holds: its difference before any relation is used, and the cofactors."""
    algebra.reducing = False
    try:
        raw = algebra.polynomial(named(name)) - algebra.polynomial(exact(node))
    finally:
        algebra.reducing = True
    rest, steps = algebra.vanishing(raw, given)
    assert not rest

    def text(p: Polynomial) -> str:
        return polynomial_text(p, algebra.names)

    factor, parts = POLYNOMIAL_ONE, []
    for k, s in enumerate(steps):
        later = POLYNOMIAL_ONE
        for t in steps[k + 1 :]:
            later = later * t.factor
        parts.append((text(_relation(s)), text(s.cofactor * later)))
        factor = factor * s.factor
    names = dict.fromkeys([name, *(str(x.value) for x in expressions.leaves(node) if x.kind == "name")])
    definitions = {n: text(algebra.polynomial(named(n))) for n in names}
    return Proof(name, expressions.formula_text(node), definitions, text(factor), tuple(parts),
                 tuple(algebra.names), text(raw))  # fmt: skip


def _relation(s: EliminationStep) -> Polynomial:
    return s.relation.lead * gen(s.relation.place, s.relation.step) + s.relation.rest


def counterexample(
    name: str, true: Polynomial, printed: Polynomial, algebra: Algebra, truth: Truth, given: tuple[Relation, ...]
) -> str:
    """A rational point at which the two sides differ, in words; empty where none of the tried ones does."""
    difference = true - printed
    for varied in (1, 2, 3, 4, 5, 0):
        at = rational_point(algebra, truth, varied, given)
        off = values_at(difference, at) if at is not None else Fraction(0)
        if at is not None and off:
            places = sorted({k for p in (true, printed) for m in p for k in exponents(m)})
            point = ", ".join(f"{algebra.names[k]} = {at[k]}" for k in places)
            left, right = values_at(true, at), values_at(printed, at)
            return (f"at {point}: {name} is {float(left):.9g}, the formula gives {float(right):.9g}; "
                    f"the difference is {off} exactly")  # fmt: skip
    return ""


def rational_point(
    algebra: Algebra, truth: Truth, varied: int, given: tuple[Relation, ...]
) -> dict[int, Fraction] | None:
    """Numbers of all symbols: the robot's (varied = 0), rounded ones or others; Pythagorean angles."""
    at: dict[int, Fraction] = {}
    for k, n in enumerate(algebra.names):
        number = truth.numbers.get(n)
        if number is not None and not n.endswith("^e"):
            factor = 1 + Fraction((max(varied - 1, 0) * (7 * k + 3)) % 11, 10)
            short = Fraction(f"{number:.2g}") if varied else rational(number)
            at[k] = short * factor if is_parameter(n) else Fraction(k % 5 + 1 + varied)
    for j, (angle, (cosine, sine)) in enumerate(algebra.turns.items()):
        t = Fraction(HALF_TANGENTS[(j + 3 * varied) % len(HALF_TANGENTS)])
        at[angle], at[cosine], at[sine] = t, (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    _directions(at, algebra, truth)
    for r in [*reversed(given), *algebra.reciprocals]:
        lead = values_at(r.lead, at)
        if not lead:
            return None
        at[r.place] = -values_at(r.rest, at) / lead
    return at


def _directions(at: dict[int, Fraction], algebra: Algebra, truth: Truth) -> None:
    """Exactly unit directions near the robot's."""
    for b in truth.numeric.bodies:
        for n, k in algebra.place.items():
            if n.endswith("^e") and truth.owner_of_direction(n) == b.number:
                at[k] = unit_vector(b.p)["xyz".index(n[0])]


def at_the_numbers(p: Polynomial, algebra: Algebra, truth: Truth, given: tuple[Relation, ...]) -> Polynomial:
    """A polynomial with the robot's numbers for its parameters; sines, cosines, rates stay symbols."""
    at = rational_point(algebra, truth, 0, given)
    if at is None:
        return p
    kept = {k for pair in algebra.turns.values() for k in pair} | {k for k, n in enumerate(algebra.names)
            if n in truth.numbers and not is_parameter(n)}  # fmt: skip
    out = POLYNOMIAL_ZERO
    for m, x in p.terms():
        term = constant(prod((at[k] ** e for k, e in m.items() if k not in kept), start=x))
        out += prod((gen(k, e) for k, e in m.items() if k in kept), start=term)
    return out
