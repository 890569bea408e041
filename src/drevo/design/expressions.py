"""A small language of formulas in the paper's notation: read, evaluated, printed; nothing is executed.

Names: letters, then _subscript and ^superscript, plain or in braces: d_x3, m_32^e, I_3^yz, I_{3}^{yz}, c_23.
A superscript of digits is a power. Products may be written with *, a dot, a space or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..documents.sequence.names import GREEK
from ..errors import InputError
from ..mechanics.scalar import atan2

TRIG_FUNCTIONS = ("sin", "cos")
FORMULA_FUNCTIONS = {"sin": 1, "cos": 1, "sqrt": 1, "atan2": 2}  # with the number of their arguments
MAX_PARENTHESES = 100  # of parentheses in one another
MAX_CHARACTERS, MAX_SYMBOLS = 20_000, 400  # what one formula may be: its tree is walked by recursion
_SUB = r"_(?:\{[^{}]*\}|[A-Za-z]?\d+(?:,\d+)*(?:[xyz]{1,2}(?![A-Za-z_]))?|[A-Za-z]+)"
_SUP = r"\^(?:\{[^{}]*\}|[A-Za-z]+\d?(?![A-Za-z0-9])|[A-Za-z]+)"
EXPRESSION_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|\.\d+)|(?P<op>\*\*|[-+*/^()=,])"
    rf"|(?P<name>[A-Za-z]+(?:\d+|{_SUB})?(?:{_SUP})?(?:{_SUB})?))"
)


@dataclass(frozen=True, slots=True)
class FormulaNode:
    """An expression: kind is number, name, one of + - * / ^ neg, or a function; `at` tells equal leaves apart."""

    kind: str
    value: Any = None
    parts: tuple[FormulaNode, ...] = ()
    at: int = -1


def plain_text(text: str) -> str:
    """A line of a page in LaTeX without its markup: \\omega_{2z}, {r_{3x}^{c}}^{2}, what is said beside it."""
    text = re.sub(r"\\quad\s*\\text\{[^{}]*\}", "", text)
    text = re.sub(r"(\d)\s*\\cdot\s*10\^\{(-?\d+)\}", r"\1e\2", text.replace("−", "-"))
    text = re.sub(r"\\(left|right|quad|qquad|;|!)|&", "", text).replace("\\cdot", "*")
    text = re.sub(r"\\(?:mathbf|mathrm|operatorname)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\(?:var)?(?=(sin|cos|ell|" + "|".join(GREEK) + r")(?![a-z]))", "", text)
    text = grouped(re.sub(r"\\sqrt\s*(?=\{)", "sqrt", fractions_in_line(text)))
    return re.sub(r"\)\^\{(\d+)\}", r")^\1", text.replace(")^{1/2}", ")^0.5"))


def group(text: str, at: int) -> int:
    """The end of the braces that open at a place; -1 where nothing closes them."""
    depth = 0
    for k in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[k], 0)
        if not depth:
            return k + 1
    return -1


def grouped(text: str) -> str:
    """Braces that are no index's as parentheses."""
    at = 0
    while opens := re.compile(r"(?<![_^])\{").search(text, at):
        at, end = opens.start(), group(text, opens.start())
        if end < 0:
            break
        inside = text[at + 1 : end - 1]
        text = f"{text[:at]}({inside}){text[end:]}"
    return text


def formula_tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) of every token."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"formula {text[:40]!r}...: longer than {MAX_CHARACTERS} characters")
    text = plain_text(text)
    text = text.replace("·", "*").replace("$", "").replace("\\,", " ").replace("\\times", "*")
    out: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        m = EXPRESSION_TOKEN.match(text, at)
        if m is None:
            raise InputError(f"formula {text.strip()!r}: {text[at:].strip()[:12]!r} cannot be read")
        kind = str(m.lastgroup)
        out += _named(m.group(kind)) if kind == "name" else [(kind, m.group(kind))]
        at = m.end()
        if len(out) > MAX_SYMBOLS:
            raise InputError(
                f"formula {text.strip()[:40]!r}...: more than {MAX_SYMBOLS} symbols in one line; name its parts"
            )
    return out


def fractions_in_line(text: str) -> str:
    """LaTeX's \\frac{a}{b} as ((a)/(b)), one in another too."""
    while fractions := [*re.finditer(r"\\d?frac\s*(?=\{)", text)]:
        at, top = fractions[-1].start(), fractions[-1].end()
        middle = group(text, top)
        below = middle + len(text[middle:]) - len(text[middle:].lstrip()) if middle > 0 else -1
        end = group(text, below) if below > 0 and text[below : below + 1] == "{" else -1
        if end < 0:
            break
        over = f"(({text[top + 1 : middle - 1]})/({text[below + 1 : end - 1]}))"
        text = text[:at] + over + text[end:]
    if "frac" in text:
        raise InputError(f"formula {text.strip()!r}: \\frac takes two groups in braces")
    return text


def _named(text: str) -> list[tuple[str, str]]:
    """A name; digits that end its superscript are a power: x_32^{q2}, L_3^{2}."""
    if text in FORMULA_FUNCTIONS:
        return [("name", text)]
    name = normal(text)
    split = re.fullmatch(r"(.*?)\^([A-Za-z]*)(\d)", name)
    if split is None:
        return [("name", name)]
    base, letters, digit = split.groups()
    return [("name", base + (f"^{letters}" if letters else "")), ("op", "^"), ("number", digit)]


def left_name(text: str) -> str:
    """The left side of a line, as a name."""
    left = plain_text(text.partition("=")[0]).strip()
    return normal(left) if re.match(r"[A-Za-z]+\d*(?![^_^])", left) else ""


def normal(name: str) -> str:
    """m_{32}^{e} and m^{e}_{32} as m_32^e."""
    name = name.replace("{", "").replace("}", "").replace(" ", "")
    base = re.split(r"[_^]", name)[0]
    sub = re.search(r"_([^_^]*)", name)
    base, digits = re.fullmatch(r"([A-Za-z]+)(\d*)", base).groups()  # type: ignore[union-attr]
    if digits and sub is None:
        return normal(f"{base}_{digits}{name[len(base) + len(digits) :]}")
    sup = re.search(r"\^([^_^]*)", name)
    return base + (f"_{sub.group(1)}" if sub else "") + (f"^{sup.group(1)}" if sup else "")


class _Reader:
    """Recursive descent over tokens; the depth is bounded by the parentheses."""

    def __init__(self, text: str, indexed: Callable[[str], bool]) -> None:
        self.text, self.tokens, self.at, self.depth = text, formula_tokens(text), 0, 0
        self.indexed = indexed

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def wrong(self) -> InputError:
        return InputError(f"formula {self.text.strip()!r}: {self.peek()[1] or 'its end'!r} is out of place")

    def sum(self) -> FormulaNode:
        sign = self.peek()[1]
        if sign in ("+", "-"):
            self.take()
        node = self.product()
        if sign == "-":
            node = FormulaNode("neg", parts=(node,))
        while self.peek()[1] in ("+", "-"):
            op = self.take()[1]
            node = FormulaNode(op, parts=(node, self.product()))
        return node

    def product(self) -> FormulaNode:
        node = self.power()
        while True:
            kind, text = self.peek()
            if text in ("*", "/"):
                self.take()
                node = FormulaNode(text, parts=(node, self.power()))
            elif kind in ("name", "number") or text == "(":
                node = FormulaNode("*", parts=(node, self.power()))
            else:
                return node

    def power(self) -> FormulaNode:
        node = self.atom()
        if self.peek()[1] in ("^", "**"):
            self.take()
            kind, text = self.take() if self.peek()[0] == "number" else ("", "")
            if kind == "number" and node.kind == "name" and self.indexed(f"{node.value}^{text}"):
                return FormulaNode("name", f"{node.value}^{text}", at=node.at)
            if text == "0.5":
                return FormulaNode("sqrt", parts=(node,))
            if kind != "number" or text not in ("1", "2", "3", "4"):
                raise self.wrong()
            node = FormulaNode("^", int(text), (node,))
        return node

    def atom(self) -> FormulaNode:
        kind, text = self.peek()
        if kind == "number":
            return FormulaNode("number", text, at=self.take() and self.at)
        if text in FORMULA_FUNCTIONS:
            self.take()
            return FormulaNode(text, parts=self.arguments(FORMULA_FUNCTIONS[text]))
        if kind == "name":
            return FormulaNode("name", text, at=self.take() and self.at)
        if text == "(":
            return self.inside(1)[0]
        raise self.wrong()

    def arguments(self, count: int) -> tuple[FormulaNode, ...]:
        """Arguments of a function: in parentheses, or one name, or one atan2."""
        text = self.peek()[1]
        if text == "(":
            return self.inside(count)
        if count > 1 or self.peek()[0] != "name" or FORMULA_FUNCTIONS.get(text, 2) == 1:
            raise self.wrong()
        return (self.atom(),)

    def inside(self, count: int) -> tuple[FormulaNode, ...]:
        """So many sums in parentheses."""
        if self.depth >= MAX_PARENTHESES:
            raise self.wrong()
        self.depth += 1
        parts = []
        for k in range(count):
            if self.peek()[1] != ("," if k else "("):
                raise self.wrong()
            self.take()
            parts.append(self.sum())
        if self.peek()[1] != ")":
            raise self.wrong()
        self.take()
        self.depth -= 1
        return tuple(parts)


def read_formula(text: str, indexed: Callable[[str], bool] = lambda name: False) -> list[FormulaNode]:
    """The sides of a chain of equalities, in order; indexed: whether a name with digits above is one."""
    reader = _Reader(text, indexed)
    sides = [reader.sum()]
    while reader.peek()[1] == "=":
        reader.take()
        sides.append(reader.sum())
    if reader.peek()[0] != "end":
        raise reader.wrong()
    return sides


_APPLY: dict[str, Callable[..., Any]] = {"sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "atan2": atan2}


def value(node: FormulaNode, name: Callable[[str], Any], number: Callable[[str], Any]) -> Any:
    """The value of an expression over anything that has + - * /."""
    if node.kind == "number":
        return number(node.value)
    if node.kind == "name":
        return name(node.value)
    x = [value(p, name, number) for p in node.parts]
    if node.kind == "neg":
        return -x[0]
    if node.kind in FORMULA_FUNCTIONS:
        return _APPLY[node.kind](*x)
    if node.kind == "^":
        out = x[0]
        for _ in range(node.value - 1):
            out = out * x[0]
        return out
    a, b = x
    return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[node.kind]()


def nodes(node: FormulaNode) -> Iterator[FormulaNode]:
    """All parts, the whole first."""
    yield node
    for p in node.parts:
        yield from nodes(p)


def leaves(node: FormulaNode) -> Iterator[FormulaNode]:
    """Numbers and names, left to right."""
    if not node.parts:
        yield node
    for p in node.parts:
        yield from leaves(p)


def replaced(node: FormulaNode, old: FormulaNode, new: FormulaNode) -> FormulaNode:
    """The expression with one part exchanged."""
    if node is old:
        return new
    return FormulaNode(node.kind, node.value, tuple(replaced(p, old, new) for p in node.parts), node.at)


def simplified(node: FormulaNode) -> FormulaNode:
    """Without factors one, summands zero, double signs."""
    parts = tuple(simplified(p) for p in node.parts)
    node = FormulaNode(node.kind, node.value, parts, node.at)
    if node.kind == "neg":
        (x,) = parts
        return x.parts[0] if x.kind == "neg" else x if _is(x, 0) else node
    if node.kind == "^":
        return parts[0] if node.value == 1 else node
    return _simplified_pair(node, *parts) if len(parts) == 2 else node


def _simplified_pair(node: FormulaNode, a: FormulaNode, b: FormulaNode) -> FormulaNode:
    if node.kind in "+-":
        if b.kind == "neg":
            return FormulaNode("-" if node.kind == "+" else "+", None, (a, b.parts[0]))
        if _is(a, 0):
            return b if node.kind == "+" else FormulaNode("neg", None, (b,))
        return a if _is(b, 0) else node
    if node.kind == "*" and (_is(a, 0) or _is(b, 0)):
        return FormulaNode("number", "0")
    if _is(b, 1):
        return a
    return b if node.kind == "*" and _is(a, 1) else node


def _is(node: FormulaNode, number: int) -> bool:
    return node.kind == "number" and float(node.value) == number


_OPERATOR_RANK = {"+": 1, "-": 1, "neg": 1, "*": 2, "/": 2, "^": 3}


def formula_text(node: FormulaNode, above: int = 0) -> str:
    """The expression in the notation that `read` takes."""
    if not node.parts:
        return str(node.value)
    if node.kind in FORMULA_FUNCTIONS:
        return f"{node.kind}({', '.join(map(formula_text, node.parts))})"
    rank = _OPERATOR_RANK[node.kind]
    if node.kind == "neg":
        out = "-" + formula_text(node.parts[0], 2)
    elif node.kind == "^":
        out = f"{formula_text(node.parts[0], 4)}^{node.value}"
    else:
        space = " " if rank == 1 else ""
        tight = rank + (node.kind in "-/")
        out = f"{formula_text(node.parts[0], rank)}{space}{node.kind}{space}{formula_text(node.parts[1], tight)}"
    return f"({out})" if rank < above else out


ROUNDED_DIGITS, PRINTED_DIGITS = 3, 6  # a number of as many may be rounded; those that pages print, less zeros


def half_a_digit(text: str) -> float:
    """Half of the last digit of a decimal, of six at least; nothing for a short one, meant as it stands."""
    digits = re.sub(r"[eE].*|\.", "", text).lstrip("0")
    if len(digits) < ROUNDED_DIGITS or "." not in text:
        return 0.0
    return float(0.5 * 10.0 ** (np.floor(np.log10(float(text))) + 1 - max(PRINTED_DIGITS, len(digits))))


def doubt(node: FormulaNode, value_of: Callable[[FormulaNode], Any]) -> Any:
    """Half of the last digits that numbers are printed with, as they put the value of an expression off."""
    exact, total = value_of(node), 0.0
    for x in leaves(node):
        if x.kind == "number" and (off := half_a_digit(str(x.value))):
            other = replaced(node, x, FormulaNode("number", repr(float(x.value) + off)))
            total = total + np.abs(value_of(other) - exact)
    return total
