"""Formulas with one slip of writing undone: an exponent, a bracket."""

from __future__ import annotations

from collections.abc import Iterator

from . import expressions
from .expressions import FormulaNode

EXPONENTS = (1, 2, 3)


def other_exponents(node: FormulaNode) -> Iterator[FormulaNode]:
    """One power with another exponent."""
    for x in expressions.nodes(node):
        if x.kind == "^":
            yield from (
                expressions.replaced(node, x, FormulaNode("^", k, x.parts) if k > 1 else x.parts[0])
                for k in EXPONENTS
                if k != x.value
            )


def with_brackets(node: FormulaNode) -> Iterator[FormulaNode]:
    """Brackets around two neighbours of a sum: a b + c as a (b + c), a + b c as (a + b) c."""
    for x in expressions.nodes(node):
        if x.kind not in ("+", "-") or len(x.parts) != 2:
            continue
        head, (sign, term) = _last_term(x.parts[0])
        kind = x.kind if sign > 0 else {"+": "-", "-": "+"}[x.kind]
        last = x.parts[1]
        for outer, inner in _split(term):
            bracket = FormulaNode("*", None, (outer, FormulaNode(kind, None, (inner, last))))
            yield expressions.replaced(node, x, _joined(head, sign, bracket))
        for inner, outer in _split(last):
            bracket = FormulaNode("*", None, (FormulaNode(kind, None, (term, inner)), outer))
            yield expressions.replaced(node, x, _joined(head, sign, bracket))
            bracket = FormulaNode("*", None, (FormulaNode(x.kind, None, (term, inner)), outer))
            yield expressions.replaced(node, x, _joined(head, sign, bracket))


def _last_term(node: FormulaNode) -> tuple[FormulaNode | None, tuple[int, FormulaNode]]:
    """A sum without its last term, and that term with its sign."""
    if node.kind in ("+", "-") and len(node.parts) == 2:
        return node.parts[0], (1 if node.kind == "+" else -1, node.parts[1])
    if node.kind == "neg":
        return None, (-1, node.parts[0])
    return None, (1, node)


def _joined(head: FormulaNode | None, sign: int, term: FormulaNode) -> FormulaNode:
    """A sum with a last term."""
    if head is None:
        return term if sign > 0 else FormulaNode("neg", None, (term,))
    return FormulaNode("+" if sign > 0 else "-", None, (head, term))


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
