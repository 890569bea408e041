"""All symbols of a notation for a robot, and those that only its numbers make equal.

Symbols and products of a few of them are found by their values in all samples. Units of formulas: kilograms,
metres and seconds, read off the polynomials of their symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations, combinations_with_replacement, islice
from typing import Any

import numpy as np

from ..errors import TraceError
from . import expressions
from .exact import Algebra, Polynomial, exponents
from .expressions import FORMULA_FUNCTIONS, FormulaNode, formula_text
from .telegin_names import COORDINATE_LETTERS, split_name
from .truth import Truth

Array = np.ndarray[Any, Any]
MAX_IN_PAIRS, MAX_IN_TRIPLES, MAX_SQUARED = 140, 36, 24  # symbols of which products are formed, the likeliest
MAX_FOUND = 200  # ways of writing a product: the first have the likeliest symbols
PRODUCT_NUMBERS = (1.0, 2.0, 0.5)  # numbers before a product
CLOSE = 1e-9  # of two values, of the larger one


def agree(x: Any, y: Any) -> bool:
    """Equal values in all samples, but for rounding."""
    return bool(np.all(np.abs(x - y) <= CLOSE * np.maximum(np.abs(x), np.abs(y))))


def exchanged(node: FormulaNode, names: Mapping[int, str]) -> FormulaNode:
    """A formula with other symbols at places of the text."""
    value = names.get(node.at, node.value) if node.kind == "name" else node.value
    return FormulaNode(node.kind, value, tuple(exchanged(x, names) for x in node.parts), node.at)


def sub_of(truth: Truth, bodies: Sequence[int]) -> str:
    """The subscript of a list of bodies: 32, or 10,3."""
    names = [truth.tree.bodies[i].number for i in bodies]
    return ("," if any(len(n) > 1 for n in names) and len(names) > 1 else "").join(names)


def chains(truth: Truth) -> list[str]:
    """Indices of sums of angles: pieces of the paths to the root."""
    out = []
    for j in range(len(truth.tree)):
        path = truth.carrying(j)
        out += [sub_of(truth, path[:k][::-1]) for k in range(1, len(path) + 1)]
    return out


def vocabulary(truth: Truth) -> Iterator[str]:
    """All symbols of a notation for a robot."""
    yield from (f"{t}_{c}" for c in chains(truth) for t in "sc")
    yield from truth.given_names
    if truth.notation != "telegin":
        yield from truth.everything()
        return
    n = range(len(truth.tree))
    pairs = [sub_of(truth, [j, i]) for j in n for i in truth.carrying(j)]
    for i in (sub_of(truth, [k]) for k in n):
        yield from (f"L_{i}", f"m_{i}", f"I_{i}^q", f"I_{i}^d", f"J_{i}^o", f"J_{i}^s")
        yield from (f"d_{a}{i}" for a in "xyz")
        yield from (f"I_z{i}^{a}" for a in "xy")
    yield from (f"H_{p}" for p in pairs)
    yield from (f"m_{p}^{a}" for p in pairs for a in COORDINATE_LETTERS)
    yield from (f"{a}_{p}^{b}" for p in pairs for a in COORDINATE_LETTERS for b in COORDINATE_LETTERS)


def renamings(truth: Truth, numbers: Truth, node: FormulaNode) -> Iterator[FormulaNode]:
    """The formula with up to three symbols exchanged, wherever they stand, for others of the same numbers."""
    names = dict.fromkeys(str(x.value) for x in expressions.leaves(node) if x.kind == "name")
    choices = {n: others for n in names if (others := _equal(truth, numbers, n))}
    for count in (1, 2, 3):
        for olds in combinations(choices, count):
            for k in range(max(len(choices[o]) for o in olds)):
                table = {o: choices[o][min(k, len(choices[o]) - 1)] for o in olds}
                at = {x.at: table[str(x.value)] for x in expressions.leaves(node) if str(x.value) in table}
                yield exchanged(node, at)


def _equal(truth: Truth, numbers: Truth, name: str) -> list[str]:
    """Symbols of the same letters whose values on the robot are the same by its numbers only."""
    base, sub, sup = split_name(name)
    letters = re.sub(r"[\d,]", "", sub)
    x, moved = numbers(name), truth(name)
    if x is None or moved is None or not np.any(x):
        return []
    out = []
    for other in vocabulary(truth):
        base_2, sub_2, sup_2 = split_name(other)
        kin = (base_2, sup_2) == (base, sup) or (base_2, sub_2) == (base, sub)
        if other == name or not kin or re.sub(r"[\d,]", "", sub_2) != letters:
            continue
        y, other_moved = numbers(other), truth(other)
        if (
            y is not None
            and agree(np.asarray(x, float), np.asarray(y, float))
            and not agree(np.asarray(moved, float), np.asarray(other_moved, float))
        ):
            out.append(other)
    return out


class Symbols:
    """Rows of values, one of each symbol, product or whatever is looked for."""

    def __init__(self, values: Array) -> None:
        """values (n, samples)."""
        self.values = values
        sizes = np.abs(values[:, 0])
        self.order = np.argsort(sizes, kind="stable")
        self.sizes = sizes[self.order]

    def matches(self, wanted: Array) -> Iterator[tuple[int, int, float]]:
        """Places of wanted rows (m, samples), of rows of the table that have their values, and their sign."""
        first = np.abs(wanted[:, 0])
        low = np.searchsorted(self.sizes, first * (1.0 - CLOSE) - 1e-300)
        most = first * (1.0 + CLOSE) + 1e-300
        for k in np.flatnonzero(np.append(self.sizes, np.inf)[low] <= most):
            for l in self.order[low[k] : np.searchsorted(self.sizes, most[k], "right")]:
                sign = 1.0 if self.values[l, 0] * wanted[k, 0] > 0.0 else -1.0
                if agree(sign * self.values[l], wanted[k]):
                    yield int(k), int(l), sign

    def with_value(self, x: Array) -> list[int]:
        """Places of the rows that have a value in all samples."""
        return [l for _, l, sign in self.matches(x[None, :]) if sign > 0.0]


class SymbolProducts:
    """Products of up to five symbols, a square counted as one; of many factors only those of likely symbols."""

    def __init__(self, names: Sequence[str], values: Array) -> None:
        """names (n,), the likeliest first, values (n, samples)."""
        self.names, self.values = names, values

    def _table(self, count: int, most: int) -> tuple[list[tuple[int, ...]], Array, Symbols]:
        """Symbols and squares, which of them each product has, and the products."""
        units: list[tuple[int, ...]] = [(k,) for k in range(min(most, len(self.names)))]
        units += [(k, k) for k in range(min(MAX_SQUARED, most // 2, len(self.names)))]
        rows = np.array([np.prod(self.values[list(u)], axis=0) for u in units]).reshape(-1, self.values.shape[1])
        places = _choices(len(units), count)
        return units, places, Symbols(np.prod(rows[places], axis=1))

    def _named(self, *parts: tuple[list[tuple[int, ...]], Array, int]) -> tuple[str, ...]:
        found = sorted(k for units, places, row in parts for u in places[row] for k in units[u])
        return tuple(self.names[k] for k in found)

    @cached_property
    def tables(self) -> list[tuple[list[tuple[int, ...]], Array, Symbols]]:
        """Products of one, two and three."""
        sizes = (len(self.names), MAX_IN_PAIRS, MAX_IN_TRIPLES)
        return [self._table(count, most) for count, most in enumerate(sizes, 1)]

    def few(self, x: Array) -> Iterator[tuple[float, tuple[str, ...]]]:
        """Numbers and factors of the products of one or two that have a value."""
        for size in PRODUCT_NUMBERS:
            for units, places, table in self.tables[:2]:
                for _, l, sign in table.matches(x[None, :] / size):
                    yield sign * size, self._named((units, places, l))

    def many(self, x: Array) -> Iterator[tuple[float, tuple[str, ...]]]:
        """Numbers and factors of the products of three to five: of one, two or three times one of two."""
        *second, pairs = self.tables[1]
        for *first, table in (self._table(1, MAX_IN_PAIRS), *self.tables[1:]):
            for size in PRODUCT_NUMBERS:
                with np.errstate(all="ignore"):
                    rest = x / size / table.values[table.order]  # in order, they are looked up faster
                for k, l, sign in islice(pairs.matches(rest), MAX_FOUND):
                    yield sign * size, self._named((*first, int(table.order[k])), (*second, l))  # type: ignore[arg-type]


@lru_cache(maxsize=16)
def _choices(n: int, count: int) -> Array:
    """Choices of so many of n, with repetition and in order: (rows, count)."""
    return np.array(list(combinations_with_replacement(range(n), count)), int).reshape(-1, count)


Unit = tuple[int, int, int]  # powers of kg, m, s
NO_UNIT: Unit = (0, 0, 0)
OF_LETTERS: dict[str, Unit] = {"m": (1, 0, 0), "x": (0, 1, 0), "y": (0, 1, 0), "z": (0, 1, 0), "L": (0, 1, 0),
                               "ell": (0, 1, 0), "I": (1, 2, 0), "g": (0, 1, -2)}  # fmt: skip
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
    if node.kind in FORMULA_FUNCTIONS:
        return None if node.kind == "sqrt" else NO_UNIT
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
    for k, e in exponents(max(p)).items():
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
