"""Units of formulas: kilograms, metres and seconds, read off the polynomials of their symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import TraceError
from .exact import Algebra, Polynomial
from .expressions import FUNCTIONS, FormulaNode, formula_text
from .truth import Truth

Unit = tuple[int, int, int]  # powers of kg, m, s
NO_UNIT: Unit = (0, 0, 0)
OF_LETTERS: dict[str, Unit] = {"m": (1, 0, 0), "x": (0, 1, 0), "y": (0, 1, 0), "z": (0, 1, 0), "L": (0, 1, 0),
                               "kappa": (0, 1, 0), "I": (1, 2, 0), "g": (0, 1, -2)}  # fmt: skip
OF_HINGES: dict[str, Unit] = {"q": NO_UNIT, "v": (0, 0, -1), "a": (0, 0, -2), "tau": (1, 2, -2)}
OF_SLIDES: dict[str, Unit] = {"q": (0, 1, 0), "v": (0, 1, -1), "a": (0, 1, -2), "tau": (1, 1, -2)}


class UnitsDiffer(TraceError):
    """Two terms of a sum, or two sides, have different units."""


def unit_of(node: FormulaNode, named: Callable[[str], Any], algebra: Algebra, truth: Truth) -> Unit | None:
    """The unit of an expression; None for what is zero, which has any."""
    if node.kind == "number":
        return NO_UNIT if float(node.value) else None
    if node.kind == "name":
        return of_polynomial(algebra.polynomial(named(str(node.value))), algebra, truth)
    units = [unit_of(x, named, algebra, truth) for x in node.parts]
    if node.kind in FUNCTIONS:
        return NO_UNIT
    if node.kind == "neg":
        return units[0]
    if node.kind == "^":
        return None if units[0] is None else _times(NO_UNIT, units[0], int(node.value))
    first, second = units
    if node.kind in "+-":
        if first is not None and second is not None and first != second:
            a, b = (formula_text(x) for x in node.parts)
            raise UnitsDiffer(f"{a} has {unit_text(first)}, {b} has {unit_text(second)}")
        return second if first is None else first
    if first is None or second is None:
        return None
    return _times(first, second, 1 if node.kind == "*" else -1)


def _times(a: Unit, b: Unit, power: int) -> Unit:
    return (a[0] + power * b[0], a[1] + power * b[1], a[2] + power * b[2])


def of_polynomial(p: Polynomial, algebra: Algebra, truth: Truth) -> Unit | None:
    """The unit of a polynomial: that of any of its terms."""
    if not p:
        return None
    unit = NO_UNIT
    for k, e in enumerate(next(iter(p))):
        if e:
            unit = _times(unit, _of_symbol(k, algebra, truth), e)
    return unit


def _of_symbol(k: int, algebra: Algebra, truth: Truth) -> Unit:
    name = algebra.names[k]
    letter, _, sub = name.partition("_")
    if letter == "u":
        lead = next(r.lead for r in algebra.reciprocals if r.place == k)
        return _times(NO_UNIT, of_polynomial(lead, algebra, truth) or NO_UNIT, -1)
    if letter in ("c", "s") or name.endswith("^e"):
        return NO_UNIT
    number = sub.removeprefix("a") if letter == "I" and sub.startswith("a") else sub
    slide = number in truth.number and truth.tree.bodies[truth.number[number]].kind == "prismatic"
    if letter in OF_HINGES:
        return (OF_SLIDES if slide else OF_HINGES)[letter]
    if letter == "I" and sub.startswith("a") and slide:
        return (1, 0, 0)
    return OF_LETTERS.get(letter, NO_UNIT)


def unit_text(unit: Unit) -> str:
    """kg m^2/s^2, or "no unit"."""
    parts = [n if e == 1 else f"{n}^{e}" for n, e in zip(("kg", "m", "s"), unit) if e]
    return " ".join(parts) or "no unit"
