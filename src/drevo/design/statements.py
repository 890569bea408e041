"""Telegin's statements as formulas of an element, without zero terms: what no single exchange mends.

Conditions under which formulas are judged: each is solved for one parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InputError
from . import expressions
from .exact import POLYNOMIAL_ZERO, Algebra, Polynomial, Relation, exponents, without_symbol
from .expressions import FormulaNode
from .slipped import terms_of
from .telegin_names import split_name
from .truth import Truth
from .vocabulary import sub_of

if TYPE_CHECKING:
    from .truth import Truth


def statement(truth: Truth, name: str) -> str:
    """The formula of an element by (1), (4), (7), (8) or (10) - (12); empty if none has it."""
    if truth.notation != "telegin":
        return ""
    base, sub, sup = split_name(name)
    b = truth.bodies(sub.lstrip("xyz"))
    if base == "d" and len(b) == 1:
        return _augmented(truth, b[0], sub[0])
    if base == "I" and sup == "d" and len(b) == 1:
        children = [j for j in _children(truth, b[0]) if _nonzero(truth, f"L_{sub_of(truth, [j])}")]
        return " + ".join([f"I_{sub}^q", *(f"m_{sub_of(truth, [j])}*L_{sub_of(truth, [j])}^2" for j in children)])
    if base == "m" and sup and len(b) == 2:
        return _projected(truth, b[0], b[1], sup)
    if base == "H" and len(b) == 2:
        j, i = max(b), min(b)
        if i not in truth.carrying(j):
            return "0"
        return _diagonal(truth, j) if i == j else _below(truth, j, i)
    return ""


def _children(truth: Truth, i: int) -> list[int]:
    return [j for j, b in enumerate(truth.tree.bodies) if b.parent == i]


def _values(truth: Truth, name: str) -> Any:
    x = truth(name)
    return None if x is None else np.atleast_1d(np.asarray(x, float))


def _nonzero(truth: Truth, name: str) -> bool:
    x = _values(truth, name)
    return x is not None and float(np.max(np.abs(x))) > 1e-13


def _augmented(truth: Truth, i: int, axis: str) -> str:
    number = sub_of(truth, [i])
    terms = [f"m_o{number}*{axis}_c{number}"] if _nonzero(truth, f"{axis}_c{number}") else []
    for j in _children(truth, i):
        cosine, n = f"{axis}_{sub_of(truth, [i, j])}^e", sub_of(truth, [j])
        if _nonzero(truth, cosine):
            terms.append(f"m_{n}*L_{n}*{cosine}")
    return " + ".join(terms) or "0"


def _projected(truth: Truth, j: int, i: int, letter: str) -> str:
    terms = []
    for a in "xyz":
        d, cosine = f"d_{a}{sub_of(truth, [j])}", f"{a}_{sub_of(truth, [j, i])}^{letter}"
        if _nonzero(truth, d) and _nonzero(truth, cosine):
            terms.append(f"{d}*{cosine}")
    terms += [f"m_{sub_of(truth, [k, i])}^{letter}" for k in _children(truth, j)]
    return " + ".join(terms) or "0"


def _along(truth: Truth, i: int) -> float:
    """+1 or -1 where the axis of i is its parent's or its opposite."""
    up = truth.tree.bodies[i].parent
    x = _values(truth, f"q_{sub_of(truth, [i, up])}^q") if up >= 0 else None
    return 0.0 if x is None or float(np.max(np.abs(np.abs(x) - 1.0))) > 1e-12 else float(np.sign(x[0]))


def _diagonal(truth: Truth, i: int) -> str:
    terms = [f"I_{sub_of(truth, [i])}^d"]
    for j in _children(truth, i):
        n = sub_of(truth, [j])
        if not _along(truth, j):
            return ""
        terms.append(f"H_{sub_of(truth, [j, j])}")
        if _nonzero(truth, f"L_{n}"):
            terms.append(f"2*L_{n}*m_{sub_of(truth, [j, j])}^e")
            e = f"e_{sub_of(truth, [j, i])}^q"
            if _nonzero(truth, e):
                terms.append(f"-2*L_{n}*{e}*m_{sub_of(truth, [j, i])}^q")
    return " + ".join(terms).replace("+ -", "- ")


def _below(truth: Truth, j: int, i: int) -> str:
    path = truth.carrying(j)
    k = path[path.index(i) - 1]
    if _along(truth, k) <= 0.0:
        return ""
    index, L = sub_of(truth, [j, k]), f"L_{sub_of(truth, [k])}"
    terms = [f"H_{index}"]
    if _nonzero(truth, L):
        cosine = f"q_{index}^q"
        one = _values(truth, cosine)
        whole = one is not None and np.allclose(one, 1.0)
        terms.append(f"{L}*m_{index}^e" if whole else f"{L}*{cosine}*m_{index}^e")
        if _nonzero(truth, f"q_{index}^e"):
            terms.append(f"-{L}*q_{index}^e*m_{index}^q")
    return " + ".join(terms).replace("+ -", "- ")


# -- a formula beside its statement --------------------------------------------------------------------------

Powers = tuple[tuple[str, int], ...]  # names with their powers
SignedTerm = tuple[Powers, int, FormulaNode]


def with_statement(node: FormulaNode, true: str) -> Iterator[tuple[float, FormulaNode]]:
    """The formula with the one term of the statement that it lacks, and how unlikely that slip is."""
    listed, wanted = _signed(node), _signed(expressions.read_formula(true)[0]) if true else []
    missing = [t for t in wanted if not _among(t, listed)]
    if len(wanted) < 2 or len(missing) != 1:
        return
    (powers, sign, term) = missing[0]
    cosines = any(split_name(n)[0] in "xyzqe" for n, _ in powers)  # they are for the author to write out
    for others, old, x in (t for t in listed if not cosines and not _among(t, wanted)):
        part = set(others) < set(powers)
        yield (
            1.2 if part else 2.0,
            expressions.replaced(node, x, term if sign == old else FormulaNode("neg", None, (term,))),
        )
    yield 1.2, FormulaNode("+" if sign > 0 else "-", None, (node, term))


def _signed(node: FormulaNode) -> list[SignedTerm]:
    """The terms with their signs, and their factors in one order."""
    return [(_factors_of(x), sign, x) for sign, x in terms_of(node)]


def _factors_of(node: FormulaNode) -> Powers:
    if node.kind == "*":
        return tuple(sorted((*_factors_of(node.parts[0]), *_factors_of(node.parts[1]))))
    if node.kind == "^":
        return ((expressions.formula_text(node.parts[0]), int(node.value)),)
    return ((expressions.formula_text(node), 1),)


def _among(term: SignedTerm, listed: list[SignedTerm]) -> bool:
    return any(term[:2] == x[:2] for x in listed)


# letters of the parameter that a condition is solved for
SOLVED_FIRST = ("I", "x", "y", "z", "m", "L", "kappa", "g")


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
    places = sorted({k for m in p for k in exponents(m)}, key=lambda k: _rank(algebra.names[k]))
    if any(algebra.names[k].split("_")[0] in ("q", "v", "a", "c", "s", "tau", "u") for k in places):
        raise InputError(f"given {line.strip()!r} holds a coordinate; give conditions on parameters")
    for k in places:
        if p.degree(k) != 1:
            continue
        lead, rest = p.powers(k)[1], p.powers(k).get(0, POLYNOMIAL_ZERO)
        if not rest and _rank(algebra.names[k]) in (4, 5):
            continue  # a mass or a length would vanish
        positive = len({x > 0 for x in lead.values()}) == 1
        kinds = {algebra.names[j].split("_")[0] for m in lead for j in exponents(m)}
        if positive and kinds <= {"m", "L"}:
            return Relation(k, 1, lead, rest)
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
        for k, e in m.items():
            term = term * np.asarray(values[algebra.names[k]]) ** e
        total = total + term
    return total
