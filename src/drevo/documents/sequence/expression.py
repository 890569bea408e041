"""Expressions on the right of a written-out statement, and the one loop that prints them in any notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Name(NamedTuple):
    """A value that has a name. turned: that of the same angle less whole turns, where it is another."""

    text: str
    turned: str = ""


class Number(NamedTuple):
    """A constant, never negative: its sign belongs to the term."""

    value: float


class Group(NamedTuple):
    """A sum inside a product."""

    terms: Terms


class FunctionCall(NamedTuple):
    """sin, cos or sqrt of a sum; atan2, when and unless of two."""

    function: str
    terms: Terms
    second: Terms = ()


Factor = Name | Number | Group | FunctionCall


class Term(NamedTuple):
    """A signed product, divided by the factors in `over`."""

    negative: bool
    factors: tuple[Factor, ...]
    over: tuple[Factor, ...] = ()

    def flipped(self) -> Term:
        return Term(not self.negative, self.factors, self.over)


Terms = tuple[Term, ...]


class Style(NamedTuple):
    """A notation: how names, numbers, products, quotients, calls and parentheses look.

    collect: equal neighbours of a sum are shown once, x + x as 2 x, and x x as a square (for people only:
    what is counted and computed stays x + x).
    turned: whether angles that lost whole turns go by their own name, which is what computes.
    """

    name: Callable[[str], str]
    number: Callable[[float], str]
    times: str = "*"
    plus: str = " + "
    minus: str = " - "
    negate: str = "-"
    divide: Callable[[str, list[str]], str] = lambda top, under: "/".join([top, *under])
    call: Callable[[str, str], str] = lambda function, argument: f"{function}({argument})"
    group: Callable[[str], str] = lambda text: f"({text})"
    square: Callable[[str], str] | None = None
    collect: bool = False
    turned: bool = False


def write_terms(terms: Terms, style: Style) -> str:
    """A sum in a notation. Nesting is bounded by the length that a statement may have, so it may recurse."""
    return "".join(signed_terms(terms, style)) or style.number(0.0)


def signed_terms(terms: Terms, style: Style) -> list[str]:
    """The signed terms of a sum in a notation, apart, so that long sums can be broken between them."""
    out: list[str] = []
    k = 0
    while k < len(terms):
        term, repeats = terms[k], 1
        while style.collect and k + repeats < len(terms) and terms[k + repeats] == term:
            repeats += 1
        sign = style.minus if term.negative else style.plus
        if not out:
            sign = style.negate if term.negative else ""
        times = style.number(float(repeats)) + style.times if repeats > 1 else ""
        out.append(sign + times + _product(term, style))
        k += repeats
    return out


def _product(term: Term, style: Style) -> str:
    single = len(term.factors) == 1
    factors = [_factor(f, style, single and bool(term.over) and style.collect) for f in term.factors]
    if style.square is not None:
        factors = _squares(factors, style.square)
    top = style.times.join(factors)
    return style.divide(top, [_factor(f, style, False) for f in term.over]) if term.over else top


def _squares(factors: list[str], square: Callable[[str], str]) -> list[str]:
    out: list[str] = []
    for f in factors:
        if out and out[-1] == f:
            out[-1] = square(f)
        else:
            out.append(f)
    return out


def _factor(factor: Factor, style: Style, bare: bool) -> str:
    if isinstance(factor, Name):
        return style.name(factor.turned if style.turned and factor.turned else factor.text)
    if isinstance(factor, Number):
        return style.number(factor.value)
    if isinstance(factor, FunctionCall):
        arguments = [write_terms(x, style) for x in (factor.terms, factor.second) if x]
        return style.call(factor.function, ", ".join(arguments))
    inside = write_terms(factor.terms, style)
    return inside if bare else style.group(inside)
