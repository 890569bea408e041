"""The correction of a wrong formula: the cheapest single slip whose undoing gives the true value in every sample.

Each part of the formula has the value that it ought to have, by solving for it; a table of all symbols by their
values says at once which symbol, product, sign or number has that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from . import expressions
from .expressions import FormulaNode
from .slipped import other_exponents, with_brackets
from .statements import statement, with_statement
from .telegin_names import COORDINATE_LETTERS, split_name
from .truth import FORMULA_SAMPLES, Truth
from .vocabulary import CLOSE, agree, exchanged, vocabulary

Array = np.ndarray[Any, Any]
CONFUSED_FACTORS = (2.0, 0.5, 4.0, 0.25, 3.0, 1.0 / 3.0, 1.5, 2.0 / 3.0)  # factors that are confused
MAX_FACTORS = 60  # symbols of which products of three are formed
COSINES = 24  # symbols tried as constants of a*c + b*s


class FormulaPart(NamedTuple):
    """A part of a formula, its value and the value that would make the formula right."""

    node: FormulaNode
    above: FormulaNode | None
    value: Array
    need: Array


class Symbols:
    """Symbols by their values in the samples."""

    def __init__(self, names: Sequence[str], values: Array) -> None:
        """names (n,), values (n, FORMULA_SAMPLES)."""
        self.names, self.values = names, values
        order = np.argsort(values[:, 0], kind="stable")
        self.order, self.sorted = order, values[order, 0]

    def with_value(self, x: Array) -> list[int]:
        """Places of the symbols that have a value in all samples."""
        if not np.all(np.isfinite(x)):
            return []
        width = CLOSE * abs(float(x[0])) + 1e-300
        low, high = np.searchsorted(self.sorted, [float(x[0]) - width, float(x[0]) + width])
        return [int(k) for k in self.order[low:high] if agree(self.values[k], x)]


class Corrections:
    """Mends of formulas of one text, with its symbols and names of its own."""

    def __init__(self, truth: Truth, defined: dict[str, Array], number_cost: float = 0.0) -> None:
        """number_cost: of a wrong number besides, where the samples have the robot's own numbers."""
        self.truth, self.defined, self.number_cost = truth, defined, number_cost
        self._symbols: Symbols | None = None
        self._turned: tuple[list[tuple[str, str]], Symbols] | None = None
        self._products: dict[int, tuple[list[str], Symbols, Array]] = {}

    def forget(self) -> None:
        """The text has one more name."""
        self._symbols = None
        self._turned = None
        self._products.clear()

    def largest_element(self) -> float:
        """The largest element of the inertia matrix over the samples."""
        names = [f"H_{n}{n}" if len(n) == 1 else f"H_{n},{n}" for n in self.truth.number]
        return max(float(np.max(np.abs(np.asarray(self.truth(n), float)))) for n in names)

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

    @property
    def symbols(self) -> Symbols:
        """All symbols but those that vanish."""
        if self._symbols is None:
            names = [n for n in dict.fromkeys((*self.defined, *vocabulary(self.truth))) if not n.startswith("qd_")]
            rows = {
                n: x for n in names if (x := self.value(n)) is not None and np.all(np.isfinite(x)) and np.any(x)
            }
            self._symbols = Symbols(list(rows), np.asarray(list(rows.values())).reshape(-1, FORMULA_SAMPLES))
        return self._symbols

    # -- the search ------------------------------------------------------------------------------------------

    def mend(self, name: str, node: FormulaNode, limit: float = np.inf) -> tuple[float, FormulaNode] | None:
        """The cost of the likeliest slip, and the formula with it undone; None where there is none."""
        true = self.value(name)
        assert true is not None
        best: tuple[float, FormulaNode] | None = None
        for source in (self._candidates(name, node, true), self._last_resort(name)):
            for cost, candidate in source:
                if cost < limit and (best is None or cost < best[0]) and near(self.of(candidate), true):
                    best = (cost, candidate)
            if best is not None:
                break
        return best

    def _candidates(self, name: str, node: FormulaNode, true: Array) -> Iterator[tuple[float, FormulaNode]]:
        context = {str(x.value) for x in expressions.leaves(node) if x.kind == "name"} | set(self.defined)
        for part in self._parts(node, None, true):
            for cost, new in self._edits(name, part, context):
                yield cost, expressions.simplified(expressions.replaced(node, part.node, new))
        yield from ((0.85, x) for x in other_exponents(node))
        yield from ((1.3, x) for x in with_brackets(node))
        yield from ((1.4, x) for x in _swapped(node))
        yield from ((1.1, x) for x in _turned_signs(node))
        yield from ((2.0, x) for x in with_statement(node, statement(self.truth, name)))

    def _last_resort(self, name: str) -> Iterator[tuple[float, FormulaNode]]:
        """The statement of the paper, for what no single slip explains."""
        if text := statement(self.truth, name):
            node = expressions.read_formula(text)[0]
            yield 9.0, node
            for part in self._parts(node, None, self.of(node)):
                yield from ((8.0, expressions.replaced(node, part.node, x)) for x in self._projections(name, part))

    def _parts(self, node: FormulaNode, above: FormulaNode | None, need: Array) -> Iterator[FormulaPart]:
        """The parts from the whole to the leaves, each with the value that it ought to have."""
        value = self.of(node)
        yield FormulaPart(node, above, value, need)
        with np.errstate(all="ignore"):
            if node.kind == "neg":
                yield from self._parts(node.parts[0], node, -need)
            elif node.kind == "^":
                base = self.of(node.parts[0])
                root = np.sign(base) * np.abs(need) ** (1.0 / node.value)
                yield from self._parts(node.parts[0], node, root)
            elif len(node.parts) == 2:
                a, b = node.parts
                x, y = self.of(a), self.of(b)
                for part, wanted in zip(node.parts, _solved(node.kind, x, y, need)):
                    yield from self._parts(part, node, wanted)

    def _edits(self, name: str, part: FormulaPart, context: set[str]) -> Iterator[tuple[float, FormulaNode]]:
        node, value, need = part.node, part.value, part.need
        if not np.all(np.isfinite(need)):
            return
        if near(-value, need):
            yield 0.8, FormulaNode("neg", None, (node,))
        if node.kind == "name":
            yield from self._other_names(name, part, context)
        if node.kind == "number" and np.ptp(need) <= CLOSE * abs(need[0]) and _is_short(float(need[0])):
            yield 0.85 + self.number_cost, number_node(float(need[0]))
        if len(node.parts) == 2 and node.kind in "+-*/":
            a, b = node.parts
            yield from ((1.7, x) for x in (a, b, FormulaNode("neg", None, (b,))) if near(self.of(x), need))
        if node.kind == "^" and near(self.of(node.parts[0]), need):
            yield 1.5, node.parts[0]
        yield from self._other_squares(name, part, context)
        in_product = part.above is not None and part.above.kind in "*/^"
        if node.kind == "name" and near(value**2, need):
            yield 1.5, FormulaNode("^", 2, (node,))
        if not in_product and node.kind not in "+-":
            yield from self._more_factors(node, value, need, context)
        if part.above is None or part.above.kind not in ("+", "-", "neg"):
            yield from self._more_terms(name, part, context)

    def _other_squares(
        self, name: str, part: FormulaPart, context: set[str]
    ) -> Iterator[tuple[float, FormulaNode]]:
        """The square of another symbol, whose sign the square does not tell."""
        if part.node.kind != "^" or part.node.parts[0].kind != "name" or part.node.value != 2:
            return
        old = str(part.node.parts[0].value)
        for k in Symbols(self.symbols.names, self.symbols.values**2).with_value(part.need):
            new = self.symbols.names[k]
            if new != name:
                yield self.distance(old, new, context, name), FormulaNode("^", 2, (leaf(new),))

    def _other_names(self, name: str, part: FormulaPart, context: set[str]) -> Iterator[tuple[float, FormulaNode]]:
        old = str(part.node.value)
        for k in self.symbols.with_value(part.need):
            new = self.symbols.names[k]
            if new not in (name, old):
                yield self.distance(old, new, context, name), leaf(new)
        for x in self._projections(name, part):
            known = all(str(y.value) in context or str(y.value)[0] in "sc" for y in expressions.leaves(x))
            yield 3.2 if known else 4.0, x

    def _more_factors(
        self, node: FormulaNode, value: Array, need: Array, context: set[str]
    ) -> Iterator[tuple[float, FormulaNode]]:
        with np.errstate(all="ignore"):
            ratio = need / value
        if not np.all(np.isfinite(ratio)):
            return
        for x in CONFUSED_FACTORS:
            if near(np.full(FORMULA_SAMPLES, x), ratio):
                yield (0.85 if x in (2.0, 0.5) else 1.5) + self.number_cost, _with_number(node, x)
        for k in self.symbols.with_value(ratio):
            new = self.symbols.names[k]
            yield 2.0 + self.rarity(new, context), FormulaNode("*", None, (node, leaf(new)))
        for turn in self._turns_of(ratio):
            yield 3.0, FormulaNode("*", None, (node, turn))

    def _more_terms(self, name: str, part: FormulaPart, context: set[str]) -> Iterator[tuple[float, FormulaNode]]:
        """A term less: a symbol, or a product of two or three, with a number."""
        rest = part.need - part.value
        size = float(np.max(np.abs(part.need))) + float(np.max(np.abs(part.value)))
        if np.max(np.abs(rest)) <= CLOSE * size:
            return
        for count in (1, 2, 3):
            names, table, places = self._product_table(count, context)
            hits = [(x, k) for x in (1.0, -1.0, 2.0, -2.0, 0.5, -0.5) for k in table.with_value(rest / x)]
            for x, k in hits:
                factors = [names[i] for i in places[k]]
                if name in factors:
                    continue
                cost = 1.6 + 0.4 * count + sum(self.rarity(n, context) + _far(n, context, name) for n in factors)
                term = product_of(factors, abs(x))
                yield cost + (abs(x) != 1.0) * 0.3, FormulaNode("+" if x > 0 else "-", None, (part.node, term))
            if hits and count == 1:
                return

    def _factor_names(self, count: int, context: set[str]) -> list[str]:
        names = [n for n in self.symbols.names if count == 1 or not re.match(r"[qva]_\d+$", n)]
        if count < 3:
            return names
        plain = [n for n in names if self.rarity(n, context) <= 1.0 and not n.startswith(("H_", "M_"))]
        return sorted(plain, key=lambda n: n not in context)[:MAX_FACTORS]

    def _product_table(self, count: int, context: set[str]) -> tuple[list[str], Symbols, Array]:
        if count not in self._products:
            names = self._factor_names(count, context)
            index = {n: k for k, n in enumerate(self.symbols.names)}
            rows = self.symbols.values[[index[n] for n in names]] if names else np.zeros((0, FORMULA_SAMPLES))
            places = np.stack([x.ravel() for x in np.indices((len(names),) * count)], axis=1)
            places = places[np.all(np.diff(places, axis=1) >= 0, axis=1)]
            values = np.prod(rows[places], axis=1) if len(places) else np.zeros((0, FORMULA_SAMPLES))
            self._products[count] = (names, Symbols([""] * len(places), values), places)
        return self._products[count]

    def _projections(self, name: str, part: FormulaPart) -> Iterator[FormulaNode]:
        """A sine, cosine or direction cosine for a*c + b*s of one angle: a projection on an axis of no frame."""
        if part.node.kind != "name" or split_name(str(part.node.value))[0] not in ("s", "c", "x", "y", "z"):
            return
        yield from self._turns_of(part.need)

    def _turns_of(self, need: Array) -> Iterator[FormulaNode]:
        """Sums a*c + b*s of one angle that have a value."""
        pairs, table = self._turned_constants()
        if not pairs or not np.all(np.isfinite(need)):
            return
        for sign in (1.0, -1.0):
            rest = sign * (need - table.values)
            low = np.searchsorted(table.sorted, rest[:, 0] - CLOSE * np.abs(rest[:, 0]))
            high = np.searchsorted(table.sorted, rest[:, 0] + CLOSE * np.abs(rest[:, 0]))
            for k in np.flatnonzero(high > low):
                a, t = pairs[k]
                for l in table.with_value(rest[k]):
                    b, u = pairs[l]
                    if u[1:] == t[1:] and u != t and b != a and (t[0] == "c" or sign < 0):
                        yield FormulaNode("+" if sign > 0 else "-", None, (product_of([a, t]), product_of([b, u])))

    def _turned_constants(self) -> tuple[list[tuple[str, str]], Symbols]:
        """Products of a cosine of direction, or a constant of the author's, with a sine or cosine of an angle."""
        if self._turned is None:
            constants = [
                n for n, x in self.defined.items() if np.all(np.abs(x) <= 1.0) and not n.startswith(("s_", "c_"))
            ]
            directions = [
                n
                for n in self.symbols.names
                if re.fullmatch(r"[xyz]_[\d,]+\^e", n) and n in self.truth.given_names
            ]
            turns = [n for n in self.symbols.names if n.startswith(("s_", "c_"))]
            pairs = [(a, t) for a in [*constants, *directions][:COSINES] for t in turns]
            values = np.asarray([self.of(leaf(a)) * self.of(leaf(t)) for a, t in pairs]).reshape(
                -1, FORMULA_SAMPLES
            )
            self._turned = (pairs, Symbols([""] * len(pairs), values))
        return self._turned

    # -- which slips are likely ------------------------------------------------------------------------------

    def distance(self, old: str, new: str, context: set[str], name: str) -> float:
        """The distance of a symbol from another: an index, a letter, everything."""
        (base, sub, sup), (base_2, sub_2, sup_2) = split_name(old), split_name(new)
        letters, letters_2 = (re.sub(r"[\d,]", "", s) for s in (sub, sub_2))
        bodies, bodies_2 = (re.sub(r"[^\d,]", "", s) for s in (sub, sub_2))
        changes = (base != base_2) + (letters != letters_2) + (bodies != bodies_2) + (sup != sup_2)
        cost = 0.9 * changes + 0.1 * (bodies != bodies_2 and len(bodies) != len(bodies_2))
        if bodies != bodies_2 and len(bodies) == len(bodies_2) > 1:
            cost += 0.1 * (sum(a != b for a, b in zip(bodies, bodies_2)) - 1)
        cost += self.rarity(new, context) * 0.5 * (changes > 1 or sup == "")
        if (
            base_2 in COORDINATE_LETTERS
            and sup_2
            and base != base_2
            and new not in context
            and not (base in COORDINATE_LETTERS and sup)
        ):
            cost += 3.0  # a direction cosine is for the author to write out
        return cost - 0.15 * (new in context) + _far(new, context, name)

    def rarity(self, name: str, context: set[str]) -> float:
        """Symbols of the formula and sines are what is left out most, direction cosines and angles least."""
        base, _, sup = split_name(name)
        if name in context:
            return 0.0
        if base in ("s", "c") or (base in COORDINATE_LETTERS and sup and name in self.truth.given_names):
            return 0.2
        if (base in COORDINATE_LETTERS and sup) or base == "q":
            return 1.5
        if base == "m" and sup and sup != "e":
            return 1.2
        return 0.9 if base == "J" or sup in ("s", "o") else 0.5


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


def leaf(name: str) -> FormulaNode:
    """A symbol as an expression."""
    return FormulaNode("name", name)


def number_node(x: float) -> FormulaNode:
    """A number as an expression: whole, or a short decimal."""
    return FormulaNode("number", str(round(x)) if abs(x - round(x)) < CLOSE else f"{x:.12g}")


def product_of(names: Sequence[str], number: float = 1.0) -> FormulaNode:
    """A number times symbols, equal ones as powers."""
    nodes = [] if number == 1.0 else [number_node(number)]
    for n in dict.fromkeys(names):
        power = list(names).count(n)
        nodes.append(leaf(n) if power == 1 else FormulaNode("^", power, (leaf(n),)))
    out = nodes[0]
    for x in nodes[1:]:
        out = FormulaNode("*", None, (out, x))
    return out


def _with_number(node: FormulaNode, x: float) -> FormulaNode:
    """A product with another number in front."""
    if node.kind == "neg":
        return FormulaNode("neg", None, (_with_number(node.parts[0], x),))
    if node.kind == "*":
        return FormulaNode("*", None, (_with_number(node.parts[0], x), node.parts[1]))
    if node.kind == "number":
        return number_node(float(node.value) * x)
    return FormulaNode("*", None, (number_node(x), node))


# -- which slips are likely ----------------------------------------------------------------------------------


def _far(new: str, context: set[str], name: str) -> float:
    """Bodies that the formula does not speak of make a symbol less likely."""
    known = set("".join(re.findall(r"\d", " ".join((*context, name)))))
    return 0.05 * len(set(re.findall(r"\d", new)) - known)


def _swapped(node: FormulaNode) -> Iterator[FormulaNode]:
    """Two symbols in each other's place, one where each stands."""
    names = [x for x in expressions.leaves(node) if x.kind == "name"]
    for a, b in combinations(names, 2):
        if a.value != b.value:
            yield exchanged(node, {a.at: str(b.value), b.at: str(a.value)})


def _turned_signs(node: FormulaNode) -> Iterator[FormulaNode]:
    """One plus for a minus inside a sine."""
    for x in expressions.nodes(node):
        for y in expressions.nodes(x) if x.kind in expressions.TRIG_FUNCTIONS else ():
            if y.kind in "+-" and len(y.parts) == 2:
                yield expressions.replaced(node, y, FormulaNode("-" if y.kind == "+" else "+", None, y.parts))
