"""The correction of a wrong formula: the likeliest slips whose undoing gives the true value in every sample.

Each part of the formula has the value that it ought to have, by solving for it; tables of all symbols and of their
products by values say at once which symbol, product, sign or number has that value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from . import expressions
from .expressions import FormulaNode
from .slipped import (
    leaf,
    number_node,
    other_angles,
    other_exponents,
    product_of,
    sum_of,
    terms_of,
    with_brackets,
    with_number,
)  # fmt: skip
from .statements import statement, with_statement
from .telegin_names import COORDINATE_LETTERS, split_name
from .truth import FORMULA_SAMPLES, Truth
from .vocabulary import CLOSE, SymbolProducts, Symbols, exchanged, vocabulary

Array = np.ndarray[Any, Any]
CONFUSED_FACTORS = (2.0, 0.5, 4.0, 0.25, 3.0, 1.0 / 3.0, 1.5, 2.0 / 3.0)  # factors that are confused
COSINES = 24  # symbols tried as constants of a*c + b*s
ONE_SLIP = 2.0  # a mend that costs less is one slip of a few letters: no long product is looked for
TIE = 0.02  # between costs of mends of which none is likelier


class FormulaPart(NamedTuple):
    """A part of a formula, its value and the value that would make the formula right."""

    node: FormulaNode
    above: FormulaNode | None
    value: Array
    need: Array


Mend = tuple[float, FormulaNode]  # the cost of a slip, and the formula with it undone


class Corrections:
    """Mends of formulas of one text, with its symbols and names of its own."""

    def __init__(self, truth: Truth, number_cost: float = 0.0) -> None:
        """number_cost: of a wrong number besides, where the samples have the robot's own numbers."""
        self.truth, self.number_cost = truth, number_cost
        self.begin()

    def begin(self) -> None:
        """No name is defined yet. unsure: how far one may be off by the digits that are printed."""
        self.defined: dict[str, Array] = {}
        self.unsure: dict[str, Array] = {}
        self._table: tuple[list[str], Symbols] | None = None
        self._turned: tuple[list[tuple[str, str]], Symbols] | None = None

    def define(self, name: str, node: FormulaNode) -> None:
        """The text has one more name."""
        self.defined[name], off = self.of(node), self.doubt(node)
        self.unsure |= {name: off} if np.any(off) else {}
        self._table = self._turned = None

    def largest(self, base: str) -> float:
        """The largest value over the samples of the symbols with a letter, 0 where there is none."""
        rows = [np.abs(x).max() for n, x in self._vocabulary.items() if split_name(n)[0] == base]
        return float(max(filter(np.isfinite, rows), default=0.0))

    # -- values ----------------------------------------------------------------------------------------------

    def value(self, name: str) -> Array | None:
        """The values of a symbol or of a name that the text defines."""
        x = self.defined.get(name)
        x = self.truth(name) if x is None else x
        if x is None or isinstance(x, np.ndarray):
            return x
        return np.full(FORMULA_SAMPLES, float(x))

    def of(self, node: FormulaNode) -> Array:
        """The values of an expression; not finite where it has none."""

        def named(name: str) -> Any:
            x = self.value(name)
            return np.full(FORMULA_SAMPLES, np.nan) if x is None else x

        with np.errstate(all="ignore"):
            x = expressions.value(node, named, lambda t: np.full(FORMULA_SAMPLES, float(t)))
        return np.full(FORMULA_SAMPLES, x) if np.ndim(x) == 0 else np.asarray(x, float)

    def doubt(self, node: FormulaNode) -> Array:
        """Half of the last printed digits, as they put an expression and what the text defines off."""
        value, total = self.of(node), np.full(FORMULA_SAMPLES, expressions.doubt(node, self.of))
        for name in {str(x.value) for x in expressions.leaves(node) if x.kind == "name"} & self.unsure.keys():
            known = self.defined[name]
            self.defined[name] = known + self.unsure[name]
            total = total + np.abs(self.of(node) - value)
            self.defined[name] = known
        return total

    @cached_property
    def _vocabulary(self) -> dict[str, Array]:
        unwritten = {"qd", *self.truth.aliases}
        names = [n for n in dict.fromkeys(vocabulary(self.truth)) if n.partition("_")[0] not in unwritten]
        return {n: x for n in names if (x := self.value(n)) is not None}

    @property
    def table(self) -> tuple[list[str], Symbols]:
        """All symbols but those that vanish, and their values."""
        if self._table is None:
            known = {**self._vocabulary, **self.defined}
            rows = {n: x for n, x in known.items() if np.all(np.isfinite(x)) and np.any(x)}
            self._table = list(rows), Symbols(np.asarray(list(rows.values())).reshape(-1, FORMULA_SAMPLES))
        return self._table

    # -- projections ------------------------------------------------------------------------------------------

    def turns_of(self, need: Array) -> Iterator[FormulaNode]:
        """Sums a*c + b*s of one angle that have a value."""
        pairs, table = self._turned_constants()
        if not pairs or not np.all(np.isfinite(need)):
            return
        for sign in (1.0, -1.0):
            for k, l, same in table.matches(sign * (need - table.values)):
                (a, t), (b, u) = pairs[k], pairs[l]
                if same > 0.0 and u[1:] == t[1:] and u != t and b != a and (t[0] == "c" or sign < 0):
                    yield FormulaNode("+" if sign > 0 else "-", None, (product_of([a, t]), product_of([b, u])))

    def _turned_constants(self) -> tuple[list[tuple[str, str]], Symbols]:
        """Products of a cosine of direction, or a constant of the author's, with a sine or cosine of an angle."""
        if self._turned is None:
            names, table = self.table
            row = dict(zip(names, table.values))
            constants = [
                n for n in self.defined if n in row and np.all(np.abs(row[n]) <= 1.0) and n[:2] not in ("s_", "c_")
            ]
            directions = [n for n in names if re.fullmatch(r"[xyz]_[\d,]+\^e", n) and n in self.truth.given_names]
            turns = [n for n in names if n.startswith(("s_", "c_"))]
            pairs = [(a, t) for a in [*constants, *directions][:COSINES] for t in turns]
            values = np.asarray([row[a] * row[t] for a, t in pairs]).reshape(-1, FORMULA_SAMPLES)
            self._turned = (pairs, Symbols(values))
        return self._turned


class MendSearch:
    """The search for one-slip corrections of a formula. axis_free: its symbols, with x for every axis."""

    def __init__(self, c: Corrections, name: str, node: FormulaNode) -> None:
        true = c.value(name)
        assert true is not None
        self.c, self.name, self.node, self.true = c, name, node, true
        self.names, self.symbols = c.table
        self.context = {str(x.value) for x in expressions.leaves(node) if x.kind == "name"} | set(c.defined)
        self.shapes = {_shape(n, axis) for n in self.context for axis in (r"\g<0>", "x")}
        self.axis_free = {re.sub("[xyz]", "x", n) for n in self.context if re.search("_.*[xyz]", n)}
        given = {*c.truth.given_names, *c.defined}
        self.step = split_name(name)[0] not in c.truth.results  # of the paper's algorithm
        simple = {n for n in self.context if n in given or n[:2] in ("s_", "c_") or _shape(n) == _shape(name)}
        self.plain = not self.step and simple == self.context  # a result by parameters and coordinates
        self.digits = set("".join(re.findall(r"\d", " ".join((*self.context, name)))))
        self.rarity = lru_cache(None)(self._rarity)
        self.other = {n for n in self.names if n != name and _letters(n) == _letters(name)}  # H_12 for H_21

    def mends(self, limit: float = np.inf, usable: Callable[[FormulaNode], bool] = lambda _: True) -> list[Mend]:
        """The likeliest slips undone, equally likely ones all; none that costs the limit or is not usable."""
        found: dict[str, Mend] = {}
        best = limit
        first = self._single()
        for source in (first, self._long(), self._last_resort()):
            for cost, x in source:
                if cost >= best + TIE or not near(self.c.of(x), self.true):
                    continue
                new = expressions.simplified(x)
                text = expressions.formula_text(new)
                if (text not in found or cost < found[text][0]) and usable(new):
                    found[text] = (cost, new)
                    best = min(best, cost)
            if best <= ONE_SLIP or (found and source is not first):
                break
        return sorted((x for x in found.values() if x[0] < best + TIE), key=lambda x: x[0])

    def _single(self) -> Iterator[Mend]:
        node = self.node
        if not np.any(self.true):
            yield 1.0, number_node(0.0)
        for part in self._parts(node, None, self.true):
            if np.all(np.isfinite(part.need)):
                for cost, new in chain(self._edits(part), self._sums(part)):
                    yield cost, expressions.replaced(node, part.node, new)
        yield from ((0.85, x) for x in other_exponents(node))
        yield from ((0.95, x) for x in other_angles(node, list(self.c.truth.number)))
        yield from with_statement(node, statement(self.c.truth, self.name))
        yield from ((1.3, x) for x in with_brackets(node))
        yield from ((1.4, x) for x in _swapped(node))

    def _long(self) -> Iterator[Mend]:
        """Products of three to five symbols that are left out."""
        for part in self._parts(self.node, None, self.true):
            if np.all(np.isfinite(part.need)):
                for new in chain(self._more_factors(part, True), self._more_terms(part, True)):
                    yield new[0], expressions.replaced(self.node, part.node, new[1])

    def _last_resort(self) -> Iterator[Mend]:
        """The statement of the paper, for what no single slip explains."""
        if text := statement(self.c.truth, self.name):
            node = expressions.read_formula(text)[0]
            yield 9.0, node
            for part in self._parts(node, None, self.c.of(node)):
                yield from ((8.0, expressions.replaced(node, part.node, x)) for x in self._projections(part))

    def _parts(self, node: FormulaNode, above: FormulaNode | None, need: Array) -> Iterator[FormulaPart]:
        """The parts from the whole to the leaves, each with the value that it ought to have."""
        value = self.c.of(node)
        yield FormulaPart(node, above, value, need)
        with np.errstate(all="ignore"):
            if node.kind == "neg":
                yield from self._parts(node.parts[0], node, -need)
            elif node.kind == "^":
                base = self.c.of(node.parts[0])
                root = np.sign(base) * np.abs(need) ** (1.0 / node.value)
                yield from self._parts(node.parts[0], node, root)
            elif len(node.parts) == 2:
                a, b = node.parts
                x, y = self.c.of(a), self.c.of(b)
                for part, wanted in zip(node.parts, _solved(node.kind, x, y, need)):
                    yield from self._parts(part, node, wanted)

    def _edits(self, part: FormulaPart) -> Iterator[Mend]:
        node, value, need = part.node, part.value, part.need
        if near(-value, need):
            yield 0.8, FormulaNode("neg", None, (node,))
        if node.kind == "name":
            yield from self._other_names(part)
        if node.kind == "number" and np.ptp(need) <= CLOSE * abs(need[0]) and _is_short(float(need[0])):
            yield 0.85 + self.c.number_cost, number_node(float(need[0]))
        if len(node.parts) == 2 and node.kind in "+-*/":
            a, b = node.parts
            yield from ((1.7, x) for x in (a, b, FormulaNode("neg", None, (b,))) if near(self.c.of(x), need))
        if node.kind == "^" and near(self.c.of(node.parts[0]), need):
            yield 1.5, node.parts[0]
        yield from self._other_squares(part)
        if node.kind == "name" and near(value**2, need):
            yield 1.0, FormulaNode("^", 2, (node,))
        yield from self._more_factors(part)

    def _other_squares(self, part: FormulaPart) -> Iterator[Mend]:
        """The square of another symbol, whose sign the square does not tell."""
        if part.node.kind != "^" or part.node.parts[0].kind != "name" or part.node.value != 2:
            return
        for k in Symbols(self.symbols.values**2).with_value(part.need):
            if self.names[k] != self.name:
                cost = self.distance(str(part.node.parts[0].value), self.names[k])
                yield cost, FormulaNode("^", 2, (leaf(self.names[k]),))

    def _other_names(self, part: FormulaPart) -> Iterator[Mend]:
        old = str(part.node.value)
        for k in self.symbols.with_value(part.need):
            new = self.names[k]
            if new not in (self.name, old) and not (part.node is self.node and new in self.other):
                cost, whole = (
                    self.distance(old, new),
                    self.node in (part.node, FormulaNode("neg", None, (part.node,))),
                )
                yield cost + 0.9 * (whole and cost > 1.5), leaf(new)
        for x in self._projections(part):
            known = all(str(y.value) in self.context or str(y.value)[0] in "sc" for y in expressions.leaves(x))
            yield 3.2 if known else 4.6, x

    def _projections(self, part: FormulaPart) -> Iterator[FormulaNode]:
        """A sine, cosine or direction cosine for a*c + b*s of one angle: a projection on an axis of no frame."""
        if part.node.kind == "name" and split_name(str(part.node.value))[0] in ("s", "c", "x", "y", "z"):
            yield from self.c.turns_of(part.need)

    def _more_factors(self, part: FormulaPart, long: bool = False) -> Iterator[Mend]:
        """A product with what is left out of it: a number, symbols, a projection."""
        node = part.node
        if (part.above is not None and part.above.kind in "*/^") or node.kind in ("+", "-", "neg"):
            return
        with np.errstate(all="ignore"):
            ratio = part.need / part.value
        if not np.all(np.isfinite(ratio)):
            return
        for x in CONFUSED_FACTORS if not long else ():
            if near(np.full(FORMULA_SAMPLES, x), ratio):
                yield (0.85 if x in (2.0, 0.5) else 1.5) + self.c.number_cost, with_number(node, x)
        for x, factors in self.products.many(ratio) if long else self.products.few(ratio):
            new = FormulaNode("*", None, (node, product_of(factors)))
            yield 0.1 + 0.3 * (x < 0.0) + self._cost(x, factors), with_number(new, x)
        for turn in self.c.turns_of(ratio) if not long else ():
            yield 3.0, FormulaNode("*", None, (node, turn))

    def _more_terms(self, part: FormulaPart, long: bool = False) -> Iterator[Mend]:
        """A sum with a term that is left out of it."""
        if part.above is not None and (part.above.kind in ("+", "-", "neg") or part.node.kind not in "+-neg"):
            return
        rest = part.need - part.value
        if near(part.need, part.value):
            return
        for x, factors in self.products.many(rest) if long else self.products.few(rest):
            if self.name not in factors and not (part.node is self.node and set(factors) <= self.other):
                term = product_of(factors, abs(x))
                yield (
                    0.2 + 0.03 * (x < 0.0) + self._cost(x, factors),
                    FormulaNode("+" if x > 0 else "-", None, (part.node, term)),
                )

    def _sums(self, part: FormulaPart) -> Iterator[Mend]:
        """A sum with a term more, with two terms in each other's place, with a factor before some of its terms."""
        yield from self._more_terms(part)
        if part.node.kind not in "+-" or (part.above is not None and part.above.kind in ("+", "-", "neg")):
            return
        terms = terms_of(part.node)
        values = [sign * self.c.of(x) for sign, x in terms]
        for i, j in combinations(range(len(terms)), 2):
            if near(part.value - 2.0 * (values[i] + values[j]), part.need):
                yield 1.1, sum_of([(-s if k in (i, j) else s, x) for k, (s, x) in enumerate(terms)])
            run = sum(values[i : j + 1])
            with np.errstate(all="ignore"):
                ratio = (part.need - part.value + run) / run
            for size, factors in self.products.few(ratio) if np.all(np.isfinite(ratio)) else ():
                bracket = FormulaNode("*", None, (product_of(factors, abs(size)), sum_of(terms[i : j + 1])))
                new = sum_of([*terms[:i], (1 if size > 0 else -1, bracket), *terms[j + 1 :]])
                yield 0.3 + self._cost(size, factors), new

    # -- which slips are likely ------------------------------------------------------------------------------

    @cached_property
    def products(self) -> SymbolProducts:
        """Products of symbols, of the formula's own first; not of elements and joint coordinates."""
        rank = {n: self.rarity(n) for n in self.names}
        rank = {n: x + 0.4 * (self._unknown(n) > 0) for n, x in rank.items()}
        order = sorted((k for k, n in enumerate(self.names) if n != self.name and not n.startswith("q_")),
                       key=lambda k: (rank[self.names[k]], k))  # fmt: skip
        return SymbolProducts([self.names[k] for k in order], self.symbols.values[order])

    def _above(self, name: str) -> float:
        """Cost of an element above the diagonal, H_12: papers write those below."""
        base, sub, _ = split_name(name)
        return 0.01 * (base in self.c.truth.results and sub[:1] < sub[1:2] and sub.isdigit())

    def _unknown(self, name: str) -> int:
        """Bodies of a symbol that the formula does not speak of."""
        return len(set(re.findall(r"\d", name)) - self.digits)

    def _cost(self, x: float, factors: Sequence[str]) -> float:
        """The cost of a product that is left out."""
        different = set(factors)
        return 1.5 + 0.2 * len(different) + sum(map(self.rarity, different)) + 0.2 * (abs(x) != 1.0)

    def distance(self, old: str, new: str) -> float:
        """The distance of a symbol from another: an index, a letter, everything."""
        (base, sub, sup), (base_2, sub_2, sup_2) = split_name(old), split_name(new)
        letters, letters_2 = (re.sub(r"[\d,]", "", s) for s in (sub, sub_2))
        bodies, bodies_2 = (re.sub(r"[^\d,]", "", s) for s in (sub, sub_2))
        changes = (base != base_2) + (letters != letters_2) + (bodies != bodies_2) + (sup != sup_2)
        cost = (
            0.9 * (min(changes, 2) if new in self.context else changes)
            + 0.2 * (changes > 1)
            + 0.1 * (bodies != bodies_2 and len(bodies) != len(bodies_2))
        )
        if bodies != bodies_2 and len(bodies) == len(bodies_2) > 1:
            cost += 0.1 * (sum(a != b for a, b in zip(bodies, bodies_2)) - 1)
        cost += self.rarity(new) * 0.5 * (changes > 1 or sup == "")
        if (
            base_2 in COORDINATE_LETTERS
            and sup_2
            and base != base_2
            and new not in self.context
            and not (base in COORDINATE_LETTERS and sup)
        ):
            cost += 3.0  # a direction cosine is for the author to write out
        return cost - 0.15 * (new in self.context) + self._above(new)

    def _rarity(self, name: str) -> float:
        """Cost of a symbol that is left out: least of those like the formula's own, then parameters, others."""
        if name in self.context:
            return 0.0
        base, sub, sup = split_name(name)
        far = (0.05 if base in ("s", "c") else 0.15) * self._unknown(name) + 0.004 * len(name) + self._above(name)
        if re.sub("[xyz]", "x", name) in self.axis_free:
            return far + 0.05
        if base in ("s", "c"):
            return far + 0.2
        if name in self.c.truth.given_names:
            carries = base == "m" and sub[:1] == "o" and f"L_{sub[1:]}" in self.context
            return far + (0.8 if carries else 0.12)  # a length goes with all the mass that it carries, m_i
        if _shape(name) in self.shapes or _shape(name, "x") in self.shapes:
            return far + 0.15
        if (base in COORDINATE_LETTERS and sup) or base == "q":
            return far + 1.5
        if base == "m" and sup and sup != "e":
            return far + 1.2
        own = name in self.c.truth.recorder.values
        far += 0.03 * (sup != "") + 0.05 * (not own)
        if (own and self.step) or (self.c.truth.notation == "telegin" and base in "dH"):
            return far + 0.25
        return far + (0.9 if base == "J" or sup in ("s", "o") else 1.1 if self.plain else 0.5)


@lru_cache(maxsize=4096)
def _shape(name: str, axis: str = r"\g<0>") -> str:
    """A symbol without its numbers; its axes as one letter, if that is given."""
    base, sub, sup = split_name(name)
    sub, sup = re.sub("[0-9,]", "", sub), re.sub("[0-9]+", "1", sup)
    return f"{base}_{re.sub('[xyz]', axis, sub)}^{re.sub('[xyz]', axis, sup)}"


def _letters(name: str) -> tuple[str, list[str]]:
    """The shape of a symbol, and its numbers in order of size."""
    return _shape(name), sorted(re.findall(r"\d+", name) if "," in name else re.findall(r"\d", name))


def _is_short(x: float) -> bool:
    """A number that a person prints in a formula."""
    return abs(x) <= 12.0 and any(abs(x * k - round(x * k)) < CLOSE for k in (1, 2, 3))


def _solved(kind: str, x: Array, y: Array, need: Array) -> tuple[Array, Array]:
    """The values that each of two operands ought to have, the other one given."""
    if kind == "+":
        return need - y, need - x
    if kind == "-":
        return need + y, x - need
    return (need / y, need / x) if kind == "*" else (need * y, x / need)


def near(x: Array, y: Array) -> bool:
    """Equal values, of the largest one."""
    scale = max(float(np.max(np.abs(x))), float(np.max(np.abs(y))), 1e-300)
    return bool(np.all(np.isfinite(x)) and np.max(np.abs(x - y)) <= CLOSE * scale)


def _swapped(node: FormulaNode) -> Iterator[FormulaNode]:
    """Two symbols in each other's place, one where each stands."""
    names = [x for x in expressions.leaves(node) if x.kind == "name"]
    for a, b in combinations(names, 2):
        if a.value != b.value:
            yield exchanged(node, {a.at: str(b.value), b.at: str(a.value)})
