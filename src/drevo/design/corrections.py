"""The correction of a wrong formula: one index, symbol, number or sign exchanged, else the statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

import numpy as np

from . import expressions
from .expressions import FormulaNode
from .formula_values import LETTERS, Array, Values, split_name

Judge = Callable[[FormulaNode], bool]  # whether an expression has the true value
COMBINATIONS = 200  # of symbols that have the same value
COSINES = 24  # names tried as constants of a*c + b*s
Powers = tuple[tuple[str, int], ...]  # names with their powers


def suggestion_for(values: Values, own: Mapping[str, Array], name: str, node: FormulaNode, right: Judge) -> str:
    """The mended right side, or an empty text. The likeliest slips first: a sign, a term, an index."""
    leaves = [x for x in expressions.leaves(node) if x.kind == "name"]
    others = [n for n in (*own, *_symbols(values)) if n != name]
    true = statement(values, name)
    stages: list[Iterator[FormulaNode]] = [
        _signs(node),
        _one_term(node, true),
        (_exchanged(node, x, n) for x in leaves for n in _indices(values, x.value) if n != name),
        (_exchanged(node, x, n) for x in leaves for n in _letters(values, x.value) if n != name),
        _numbers(node),
        _without(node),
        (FormulaNode(op, None, (node, _leaf(n))) for n in others for op in "+-"),
        _factors(node, sorted((n for n in others if _nonzero(values, n, own)), key=_rarity)),
        _projections(values, own, name, node, leaves),
        (_exchanged(node, x, n) for x in leaves for n in others),
    ]
    for stage in stages:
        for candidate in stage:
            if right(candidate):
                return expressions.formula_text(expressions.simplified(candidate))
    return _by_statement(values, own, name, right)


def _one_term(node: FormulaNode, true: str) -> Iterator[FormulaNode]:
    """The formula with the one term of the statement that it lacks, instead of one that is not in it."""
    listed, wanted = _terms_of(node), _terms_of(expressions.read_formula(true)[0]) if true else []
    missing = [t for t in wanted if not _among(t, listed)]
    if len(wanted) < 2 or len(missing) != 1 or any(split_name(n)[0] in "xyzqe" for n, _ in missing[0][0]):
        return  # a cosine is for the author to write out
    (_, sign, term) = missing[0]
    for _, old, x in (t for t in listed if not _among(t, wanted)):
        yield expressions.replaced(node, x, term if sign == old else FormulaNode("neg", None, (term,)))
    yield FormulaNode("+" if sign > 0 else "-", None, (node, term))


def _terms_of(node: FormulaNode, sign: int = 1) -> list[tuple[Powers, int, FormulaNode]]:
    """The summands with their signs, and their factors in one order."""
    if node.kind in "+-" and len(node.parts) == 2:
        second = sign if node.kind == "+" else -sign
        return [*_terms_of(node.parts[0], sign), *_terms_of(node.parts[1], second)]
    if node.kind == "neg":
        return _terms_of(node.parts[0], -sign)
    return [(_factors_of(node), sign, node)]


def _factors_of(node: FormulaNode) -> Powers:
    if node.kind == "*":
        return tuple(sorted((*_factors_of(node.parts[0]), *_factors_of(node.parts[1]))))
    if node.kind == "^":
        return ((expressions.formula_text(node.parts[0]), int(node.value)),)
    return ((expressions.formula_text(node), 1),)


def _among(term: tuple[Powers, int, FormulaNode], listed: list[tuple[Powers, int, FormulaNode]]) -> bool:
    return any(term[:2] == x[:2] for x in listed)


def _without(node: FormulaNode) -> Iterator[FormulaNode]:
    """One summand or factor less."""
    for x in expressions.nodes(node):
        if len(x.parts) == 2 and x.kind in "+-*":
            yield expressions.replaced(node, x, x.parts[0])
            second = FormulaNode("neg", None, (x.parts[1],)) if x.kind == "-" else x.parts[1]
            yield expressions.replaced(node, x, second)


def _rarity(name: str) -> int:
    """Sines and cosines are what is left out most, direction cosines least."""
    base, _, sup = split_name(name)
    return 0 if base in ("s", "c") else 2 if base in LETTERS and sup else 1


def _factors(node: FormulaNode, names: Sequence[str]) -> Iterator[FormulaNode]:
    """One factor more."""
    for x in expressions.leaves(node):
        yield from (expressions.replaced(node, x, FormulaNode("*", None, (x, _leaf(n)))) for n in names)


def _by_statement(values: Values, own: Mapping[str, Array], name: str, right: Judge) -> str:
    """The statement's own formula, a direction cosine in it written out where it is a*c + b*s."""
    found = statement(values, name)
    if not found:
        return ""
    node = expressions.read_formula(found)[0]
    leaves = [x for x in expressions.leaves(node) if x.kind == "name" and split_name(x.value)[0] in "xyz"]
    for candidate in _projections(values, own, name, node, leaves):
        if right(candidate):
            return expressions.formula_text(expressions.simplified(candidate))
    return found if right(node) else ""


def _exchanged(node: FormulaNode, old: FormulaNode, name: str) -> FormulaNode:
    return expressions.replaced(node, old, _leaf(name))


def _leaf(name: str) -> FormulaNode:
    return FormulaNode("name", name)


def _sub(values: Values, bodies: Sequence[int]) -> str:
    names = [values.tree.bodies[i].number for i in bodies]
    return ("," if any(len(n) > 1 for n in names) and len(names) > 1 else "").join(names)


def _chains(values: Values) -> list[str]:
    """Indices of sums of angles: pieces of the paths to the root."""
    out = []
    for j in range(len(values.tree)):
        path = values.carrying(j)
        out += [_sub(values, path[:k][::-1]) for k in range(1, len(path) + 1)]
    return out


def _indices(values: Values, name: str) -> Iterator[str]:
    """Names of a symbol with the indices of other bodies."""
    base, sub, sup = split_name(name)
    letter = sub[:1] if sub[:1].isalpha() else ""
    one = [_sub(values, [i]) for i in range(len(values.tree))]
    n = range(len(values.tree))
    two = [_sub(values, [j, i]) for j in n for i in (values.carrying(j) if base in "Hm" else n)]
    count = len(values.bodies(sub[len(letter) :]))
    subs = _chains(values) if base in ("s", "c") else one if count == 1 else two if count == 2 else []
    for other in subs:
        if letter + other != sub:
            yield base + "_" + letter + other + (f"^{sup}" if sup else "")


def exchanged_equals(values: Values, varied: Values, node: FormulaNode) -> Iterator[FormulaNode]:
    """A formula with symbols exchanged for others of the same values on the robot, but not on the varied one.

    One symbol wherever it stands, then two, then three.
    """
    names = dict.fromkeys(str(x.value) for x in expressions.leaves(node) if x.kind == "name")
    choices = {n: others for n in names if (others := _equals(values, varied, n))}
    sets = (c for k in (1, 2, 3) for c in combinations(choices, k))
    chosen = (zip(olds, news) for olds in sets for news in product(*map(choices.__getitem__, olds)))
    for pairs in islice(chosen, COMBINATIONS):
        yield _renamed(node, dict(pairs))


def _renamed(node: FormulaNode, names: Mapping[str, str]) -> FormulaNode:
    """A formula with other symbols."""
    value = names.get(str(node.value), node.value) if node.kind == "name" else node.value
    return FormulaNode(node.kind, value, tuple(_renamed(x, names) for x in node.parts), node.at)


def _equals(values: Values, varied: Values, name: str) -> list[str]:
    """The symbols of other bodies, or other letters, that only happen to have the values of a symbol."""
    own, moved = values(name), varied(name)
    if own is None or moved is None or not np.any(own):
        return []
    found = []
    for other in dict.fromkeys((*_indices(values, name), *_letters(values, name))):
        x, y = values(other), varied(other)
        if x is not None and y is not None and np.allclose(x, own, rtol=1e-12) and not np.allclose(y, moved):
            found.append(other)
    return found


def _letters(values: Values, name: str) -> Iterator[str]:
    """Names of a symbol with another letter, its bodies kept: s and c, d_x and d_y, I^x and I^y, x^e and x^q."""
    base, sub, sup = split_name(name)
    tail = f"^{sup}" if sup else ""
    if base in ("s", "c"):
        yield ("c" if base == "s" else "s") + f"_{sub}"
    if sub[:1] in LETTERS and sub[:1]:
        yield from (f"{base}_{a}{sub[1:]}{tail}" for a in "xyz" if a != sub[0])
    if base in LETTERS:
        yield from (f"{a}_{sub}{tail}" for a in LETTERS if a != base)
    if base == "m" and not sup:
        yield f"m_{sub[1:]}" if sub[:1] == "o" else f"m_o{sub}"
    if sup:
        yield from (f"{base}_{sub}^{a}" for a in (*"xyzqedso", "xy", "xz", "yz") if a != sup)


def _signs(node: FormulaNode) -> Iterator[FormulaNode]:
    """One plus for a minus, or the other way."""
    for x in expressions.nodes(node):
        if x.kind in "+-" and len(x.parts) == 2:
            yield expressions.replaced(node, x, FormulaNode("-" if x.kind == "+" else "+", None, x.parts))
        elif x.kind == "neg":
            yield expressions.replaced(node, x, x.parts[0])
    yield FormulaNode("neg", None, (node,))


def _numbers(node: FormulaNode) -> Iterator[FormulaNode]:
    """One number for another, a factor 2 more or less, a square more or less."""
    for x in expressions.leaves(node):
        if x.kind == "number":
            yield from (
                expressions.replaced(node, x, FormulaNode("number", t)) for t in ("1", "2", "0", "0.5", "4", "3")
            )
        else:
            yield expressions.replaced(node, x, FormulaNode("*", None, (FormulaNode("number", "2"), x)))
            yield expressions.replaced(node, x, FormulaNode("^", 2, (x,)))
    yield from (expressions.replaced(node, x, x.parts[0]) for x in expressions.nodes(node) if x.kind == "^")


def _projections(
    values: Values, own: Mapping[str, Array], name: str, node: FormulaNode, leaves: Sequence[FormulaNode]
) -> Iterator[FormulaNode]:
    """A sine or cosine for a*c + b*s of the same angle: a projection on an axis that is not a frame's."""
    constants = [n for n, x in own.items() if np.ptp(x) < 1e-12 and abs(x[0]) <= 1.0]
    bodies = values.bodies(split_name(name)[1])[-1:] or range(len(values.tree))
    for i in bodies:
        up = values.tree.bodies[i].parent
        if up >= 0:
            constants += [f"{a}_{_sub(values, [up, i])}^e" for a in "xyz"]
    constants = [n for n in dict.fromkeys(constants) if _nonzero(values, n, own)][:COSINES]
    for x in leaves:
        base, sub, _ = split_name(x.value)
        if base not in ("s", "c", "x", "y", "z"):
            continue
        for index in sorted(_chains(values), key=lambda c: c != sub):
            for (a, b), sign, turned in product(product(constants, repeat=2), "+-", (False, True)):
                first, second = (f"c_{index}", f"s_{index}") if not turned else (f"s_{index}", f"c_{index}")
                yield expressions.replaced(node, x, FormulaNode(sign, None, (_times(a, first), _times(b, second))))


def _times(a: str, b: str) -> FormulaNode:
    return FormulaNode("*", None, (_leaf(a), _leaf(b)))


def _symbols(values: Values) -> Iterator[str]:
    """All symbols of one and of two bodies."""
    n = range(len(values.tree))
    pairs = [_sub(values, [j, i]) for j in n for i in values.carrying(j)]
    for i in (_sub(values, [k]) for k in n):
        yield from (f"L_{i}", f"m_{i}", f"m_o{i}", f"I_{i}^q", f"I_{i}^d", f"J_{i}^o", f"J_{i}^s")
        yield from (f"d_{a}{i}" for a in "xyz")
        yield from (f"{a}_c{i}" for a in "xyz")
        yield from (f"I_{i}^{a}" for a in ("x", "y", "z", "xy", "xz", "yz"))
    yield from (f"H_{p}" for p in pairs)
    yield from (f"m_{p}^{a}" for p in pairs for a in LETTERS)
    yield from (f"{a}_{p}^{b}" for p in pairs for a in LETTERS for b in LETTERS)
    yield from (f"{t}_{c}" for c in _chains(values) for t in "sc")


# -- the formulas of the paper, for an element that no single exchange mends ---------------------------------


def statement(values: Values, name: str) -> str:
    """The formula of an element by (1), (4), (7), (8) or (10) - (12), without zero terms; empty if none has it."""
    base, sub, sup = split_name(name)
    b = values.bodies(sub.lstrip("xyz"))
    if base == "d" and len(b) == 1:
        return _augmented(values, b[0], sub[0])
    if base == "I" and sup == "d" and len(b) == 1:
        rest = [f"m_{_sub(values, [j])}*L_{_sub(values, [j])}^2" for j in values.children[b[0]] if values.L[j]]
        return " + ".join([f"I_{sub}^q", *rest])
    if base == "m" and sup and len(b) == 2:
        return _projected(values, b[0], b[1], sup)
    if base == "H" and len(b) == 2:
        j, i = max(b), min(b)
        if i not in values.carrying(j):
            return "0"
        return _diagonal(values, j) if i == j else _below(values, j, i)
    return ""


def _nonzero(values: Values, name: str, own: Mapping[str, Array] | None = None) -> bool:
    x = own[name] if own and name in own else values(name)
    return x is not None and float(np.max(np.abs(x))) > 1e-13


def _augmented(values: Values, i: int, axis: str) -> str:
    number = _sub(values, [i])
    terms = [f"m_o{number}*{axis}_c{number}"] if _nonzero(values, f"{axis}_c{number}") else []
    for j in values.children[i]:
        cosine = f"{axis}_{_sub(values, [i, j])}^e"
        if _nonzero(values, cosine):
            terms.append(f"m_{_sub(values, [j])}*L_{_sub(values, [j])}*{cosine}")
    return " + ".join(terms) or "0"


def _projected(values: Values, j: int, i: int, letter: str) -> str:
    terms = []
    for a in "xyz":
        d, cosine = f"d_{a}{_sub(values, [j])}", f"{a}_{_sub(values, [j, i])}^{letter}"
        if _nonzero(values, d) and _nonzero(values, cosine):
            terms.append(f"{d}*{cosine}")
    terms += [f"m_{_sub(values, [k, i])}^{letter}" for k in values.children[j]]
    return " + ".join(terms) or "0"


def _along(values: Values, i: int) -> float:
    """+1 or -1 where the axis of i is its parent's or its opposite."""
    x = values(f"q_{_sub(values, [i, values.tree.bodies[i].parent])}^q")
    return 0.0 if x is None or float(np.max(np.abs(np.abs(x) - 1.0))) > 1e-12 else float(np.sign(x[0]))


def _diagonal(values: Values, i: int) -> str:
    terms = [f"I_{_sub(values, [i])}^d"]
    for j in values.children[i]:
        if not _along(values, j):
            return ""
        terms.append(f"H_{_sub(values, [j, j])}")
        if values.L[j]:
            terms.append(f"2*L_{_sub(values, [j])}*m_{_sub(values, [j, j])}^e")
            e = f"e_{_sub(values, [j, i])}^q"
            if _nonzero(values, e):
                terms.append(f"-2*L_{_sub(values, [j])}*{e}*m_{_sub(values, [j, i])}^q")
    return " + ".join(terms).replace("+ -", "- ")


def _below(values: Values, j: int, i: int) -> str:
    path = values.carrying(j)
    k = path[path.index(i) - 1]
    if _along(values, k) <= 0.0:
        return ""
    index, L = _sub(values, [j, k]), f"L_{_sub(values, [k])}"
    terms = [f"H_{index}"]
    if values.L[k]:
        cosine = f"q_{index}^q"
        one = values(cosine)
        terms.append(
            f"{L}*m_{index}^e" if one is not None and np.allclose(one, 1.0) else f"{L}*{cosine}*m_{index}^e"
        )
        if _nonzero(values, f"q_{index}^e"):
            terms.append(f"-{L}*q_{index}^e*m_{index}^q")
    return " + ".join(terms).replace("+ -", "- ")
