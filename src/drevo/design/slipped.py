"""Formulas with one slip of writing undone: an exponent, a bracket, an angle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import expressions
from .expressions import FormulaNode

EXPONENTS = (1, 2, 3)
SignedTerms = list[tuple[int, FormulaNode]]


def leaf(name: str) -> FormulaNode:
    """A symbol as an expression."""
    return FormulaNode("name", name)


def number_node(x: float) -> FormulaNode:
    """A number as an expression: whole, or a short decimal."""
    return FormulaNode("number", str(round(x)) if abs(x - round(x)) < 1e-9 else f"{x:.12g}")


def product_of(names: Sequence[str], number: float = 1.0) -> FormulaNode:
    """A number times symbols, equal ones as powers."""
    nodes = [] if number == 1.0 else [number_node(number)]
    for n in dict.fromkeys(names):
        power = list(names).count(n)
        nodes.append(leaf(n) if power == 1 else FormulaNode("^", power, (leaf(n),)))
    return _product(nodes)


def with_number(node: FormulaNode, x: float) -> FormulaNode:
    """A product with another number in front."""
    if x < 0:
        return FormulaNode("neg", None, (with_number(node, -x),))
    if node.kind == "neg":
        return FormulaNode("neg", None, (with_number(node.parts[0], x),))
    if node.kind == "*":
        return FormulaNode("*", None, (with_number(node.parts[0], x), node.parts[1]))
    if node.kind == "number":
        return number_node(float(node.value) * x)
    return FormulaNode("*", None, (number_node(x), node)) if x != 1.0 else node


def other_exponents(node: FormulaNode) -> Iterator[FormulaNode]:
    """One power with another exponent."""
    for x in expressions.nodes(node):
        if x.kind == "^":
            yield from (
                expressions.replaced(node, x, FormulaNode("^", k, x.parts) if k > 1 else x.parts[0])
                for k in EXPONENTS
                if k != x.value
            )


def other_angles(node: FormulaNode, numbers: Sequence[str]) -> Iterator[FormulaNode]:
    """One sine or cosine that is the other, or of an angle more, less, of another joint or with another sign."""
    for x in expressions.nodes(node):
        if x.kind not in expressions.TRIG_FUNCTIONS:
            continue
        other = "sin" if x.kind == "cos" else "cos"
        yield expressions.replaced(node, x, FormulaNode(other, None, x.parts))
        terms = terms_of(x.parts[0])
        sums = [[*terms[:k], (-s, y), *terms[k + 1 :]] for k, (s, y) in enumerate(terms)]
        sums += [[*terms[:k], *terms[k + 1 :]] for k in range(len(terms)) if len(terms) > 1]
        for q in (leaf(f"q_{n}") for n in numbers):
            sums += [[*terms, (1, q)], [*terms, (-1, q)]]
            sums += [[*terms[:k], (s, q), *terms[k + 1 :]] for k, (s, _) in enumerate(terms)]
        yield from (expressions.replaced(node, x.parts[0], sum_of(t)) for t in sums)


def with_brackets(node: FormulaNode) -> Iterator[FormulaNode]:
    """Brackets around two neighbours of a sum: a b + c as a (b + c), a + b c as (a + b) c."""
    for x in expressions.nodes(node):
        if x.kind not in ("+", "-") or len(x.parts) != 2:
            continue
        *head, (sign, term) = terms_of(x.parts[0])
        kind = x.kind if sign > 0 else {"+": "-", "-": "+"}[x.kind]
        last = x.parts[1]
        found = [(outer, FormulaNode(kind, None, (inner, last))) for outer, inner in _split(term)]
        for inner, outer in _split(last):
            found += [(FormulaNode(k, None, (term, inner)), outer) for k in dict.fromkeys((kind, x.kind))]
        for factors in found:
            bracket = FormulaNode("*", None, factors)
            yield expressions.replaced(node, x, sum_of([*head, (sign, bracket)]))


def terms_of(node: FormulaNode, sign: int = 1) -> SignedTerms:
    """The terms of a sum with their signs."""
    if node.kind in ("+", "-") and len(node.parts) == 2:
        second = sign if node.kind == "+" else -sign
        return [*terms_of(node.parts[0], sign), *terms_of(node.parts[1], second)]
    return terms_of(node.parts[0], -sign) if node.kind == "neg" else [(sign, node)]


def sum_of(terms: SignedTerms) -> FormulaNode:
    """Terms with their signs as a sum."""
    (sign, out), *others = terms
    out = out if sign > 0 else FormulaNode("neg", None, (out,))
    for sign, x in others:
        out = FormulaNode("+" if sign > 0 else "-", None, (out, x))
    return out


def _split(node: FormulaNode) -> Iterator[tuple[FormulaNode, FormulaNode]]:
    """A product as two products, at every place."""
    factors = _factors(node)
    for k in range(1, len(factors)):
        yield _product(factors[:k]), _product(factors[k:])


def _factors(node: FormulaNode) -> list[FormulaNode]:
    return [y for x in node.parts for y in _factors(x)] if node.kind == "*" else [node]


def _product(factors: list[FormulaNode]) -> FormulaNode:
    out = factors[0]
    for x in factors[1:]:
        out = FormulaNode("*", None, (out, x))
    return out
