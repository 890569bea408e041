"""Reads a written page as a person would: its parameters, its equations, and from these its results."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from drevo.compiler.pages.derivation import Derivation
from drevo.documents.sequence.layout import entry_name
from drevo.documents.sequence.names import latex_name, mathml_name
from drevo.documents.sequence.sequence import Result

FUNCTIONS: dict[str, Callable[..., float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "sqrt": math.sqrt,
    "atan2": math.atan2,
    "when": lambda c, x: x if c > 0 else 0.0,
    "unless": lambda c, x: x if c <= 0 else 0.0,
}
DERIVATIVE = r"(\partial"  # the name of an entry of a derivative begins so
COMMANDS = ("frac", "sqrt", "operatorname", "sin", "cos", "cdot", "quad", ",")


def braced(text: str, at: int) -> int:
    """The end of the braces that open at a place."""
    depth = 0
    for k in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[k], 0) if text[k - 1] != "\\" else 0
        if not depth:
            return k + 1
    raise AssertionError(text[at:])


class Reader:
    """One right side in LaTeX as a Python expression of `at(NAME)`."""

    def __init__(self, text: str, defined: set[str]) -> None:
        self.text, self.at, self.defined = text.replace(r"\quad", " "), 0, defined

    def rest(self) -> str:
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1
        return self.text[self.at :]

    def takes(self, token: str) -> bool:
        if self.rest().startswith(token):
            self.at += len(token)
            return True
        return False

    def sum(self) -> str:
        out = "-" if self.takes("-") else ""
        out += self.product()
        while self.rest()[:1] in ("+", "-"):
            out += self.text[self.at]
            self.at += 1
            out += self.product()
        return out

    def product(self) -> str:
        out = [self.power()]
        while self.takes(r"\,") or self.takes(r"\cdot") or (self.rest() and self.rest()[0] not in "+-),}="):
            out.append(self.power())
        return "*".join(out)

    def power(self) -> str:
        out = self.factor()
        while self.takes("^"):
            end = braced(self.text, self.at)
            out = f"({out})**({self.text[self.at + 1 : end - 1]})"
            self.at = end
        return out

    def inside(self) -> str:
        """Of braces, as a sum."""
        end = braced(self.text, self.at)
        inner = Reader(self.text[self.at + 1 : end - 1], self.defined)
        self.at = end
        return f"({inner.whole()})"

    def whole(self) -> str:
        out = self.sum()
        assert not self.rest(), (self.text, self.rest())
        return out

    def factor(self) -> str:
        if number := re.match(r"\d+(\.\d+)?", self.rest()):
            self.at += number.end()
            return number[0]
        if not self.rest().startswith(DERIVATIVE) and self.takes("("):
            parts = [self.sum()]
            while self.takes(","):
                parts.append(self.sum())
            assert self.takes(")"), self.text
            return f"({', '.join(parts)})"
        if self.rest().startswith("{"):
            return self.inside()
        if self.takes(r"\frac"):
            return f"({self.inside()}/{self.inside()})"
        if self.takes(r"\sqrt"):
            return f"sqrt{self.inside()}"
        if self.takes(r"\operatorname"):
            end = braced(self.text, self.at)
            name, self.at = self.text[self.at + 1 : end - 1], end
            return name + self.factor()
        for name in ("sin", "cos"):
            if self.takes("\\" + name):
                return f"{name}({self.factor()})"
        return self.name()

    def name(self) -> str:
        start = self.at
        found = re.match(r"\(\\partial[^)]*\)|\\(?:mathrm|text)(?=\{)|\\[A-Za-z]+|[A-Za-z]", self.rest())
        assert found, (self.text, self.rest())
        self.at += found.end()
        if found[0] in (r"\mathrm", r"\text"):
            self.at = braced(self.text, self.at)
        ends = [self.at]
        for mark in "_^":
            if self.text.startswith(mark + "{", self.at):
                self.at = braced(self.text, self.at + 1)
                ends.append(self.at)
        if self.text[start : self.at] not in self.defined and self.text[start : self.at].endswith("^{2}"):
            self.at = ends[-2]  # no name: a square
        return f"at({self.text[start : self.at]!r})"


def read_mathml(x: ET.Element) -> str:
    """The right side of an equation of MathML as a Python expression."""
    parts, out, k = [*x], "", 0
    while k < len(parts):
        part, text = parts[k], (parts[k].text or "").strip()
        after = bool(out) and out[-1] not in "(+-*,/"
        if part.tag == "mo":
            out += {"−": "-", "·": "*", "=": ""}.get(text, text)
        elif part.tag == "mi" and text in FUNCTIONS:
            k += 1
            k += parts[k].tag == "mspace"
            inner = read_one(parts[k])
            out += ("*" if after else "") + text + (inner if inner.startswith("(") else f"({inner})")
        elif part.tag != "mspace":
            out += ("*" if after else "") + read_one(part)
        k += 1
    return out


def read_one(x: ET.Element) -> str:
    """One element."""
    if x.tag == "mn":
        return (x.text or "").replace("−", "-")
    if x.tag == "mrow":
        inner = read_mathml(x)
        closed = inner.startswith("(") and balanced(inner)
        return inner if closed else f"({inner})"
    if x.tag == "msqrt":
        return f"sqrt({read_mathml(x)})"
    if x.tag == "mfrac":
        return f"({read_one(x[0])}/{read_one(x[1])})"
    if x.tag == "msup" and x[1].tag == "mn":
        return f"({read_one(x[0])})**({read_one(x[1])})"
    if x.tag == "msubsup" and x[2].tag == "mn":
        return f"at({f'<msub>{key(x[0])}{key(x[1])}</msub>'!r})**2"
    return f"at({key(x)!r})"


def balanced(text: str) -> bool:
    """Whether the first parenthesis closes last."""
    depth = 0
    for k, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if not depth:
            return k == len(text) - 1
    return False


def key(x: ET.Element) -> str:
    """A name of MathML, in one line."""
    return ET.tostring(x, encoding="unicode").removesuffix(x.tail or "")


@dataclass
class Page:
    """The symbols of parameters in their order, and right sides by the names that they define."""

    parameters: list[str]
    equations: dict[str, str]
    shown: Callable[[str], str]
    products: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def results(self, d: Derivation, state: Mapping[str, Any], values: Mapping[str, float]) -> list[list[float]]:
        """Every result at a state and at values of the robot's parameters."""
        known = {self.shown(s): x for p in d.sequence.inputs for s, x in zip(p.scalars, state[p.source])}
        known |= dict(zip(self.parameters, values.values()))
        code = {name: compile(text, name, "eval") for name, text in self.equations.items()}

        def at(name: str) -> float:
            if name not in known:
                assert name in code, f"{name} is not defined on the page"
                known[name] = eval(code[name], {**FUNCTIONS, "at": at})  # noqa: S307
            return known[name]

        def entry(r: Result, k: int) -> float:
            n = r.shape[-1] if r.shape else 1
            places = [k, k % n * n + k // n] if len(r.shape) == 2 and r.shape[0] == n else [k]
            names = [
                self.shown(entry_name(x, r.shape, p)) for x in (r.source, *"H"[: r.source == "M"]) for p in places
            ]
            return at(next((x for x in names if x in code or x in known), names[0]))

        return [[entry(r, k) for k in range(len(r.entries))] for r in d.sequence.results]


def _page(rows: list[str], parameters: list[str]) -> Page:
    """Aligned rows of LaTeX."""
    sides: list[tuple[list[str], str]] = []
    for row in rows:
        row = re.sub(r" && \\quad\\text\{.*|\s*\\tag\*?\{.*", "", row)
        left, _, right = row.partition("&")
        if left.strip() and "=" in right:
            sides.append(
                ([*filter(None, map(str.strip, left.split(" = ")))], right.strip().removeprefix("=").strip())
            )
        elif left.strip():  # a list of equal names goes on
            sides.append(([*map(str.strip, left.split(" = "))], "..."))
        else:
            names, before = sides[-1]
            sides[-1] = (names, f"{before} {right.strip().removeprefix(chr(92) + 'quad')}")
    for k in range(len(sides) - 2, -1, -1):
        if sides[k][1] == "...":
            sides[k] = (sides[k][0], sides[k + 1][1])
    equations: dict[str, str] = {}
    defined = {n for names, _ in sides for n in names} | {*parameters}
    for names, right in sides:
        for name in names:
            name = name.strip(" =")
            read = Reader(right, defined).whole()
            first, _, second = name.partition(r"\,")
            target = second or first
            assert target not in equations, f"{target} is defined twice"
            equations[target] = f"({read})/at({first!r})" if second else read
    return Page(parameters, equations, latex_name)


def read_markdown(text: str) -> Page:
    """A Markdown document."""
    blocks = re.findall(r"\$\$\n\\begin\{aligned\}\n(.*?)\n\\end\{aligned\}\n\$\$", text, re.DOTALL)
    table = re.search(r"## Parameters\n\n(.*?)\n\n", text, re.DOTALL)
    rows = table[1].splitlines()[2:] if table else []
    return _page([r for b in blocks for r in b.split(" \\\\\n")], [r.split("|")[1].strip(" $") for r in rows])


def read_latex(text: str) -> Page:
    """A LaTeX document."""
    blocks = re.findall(r"\\begin\{align\*\}\n(.*?)\n\\end\{align\*\}", text, re.DOTALL)
    table = re.search(r"\\section\*\{Parameters\}(.*?)\\end\{longtable\}", text, re.DOTALL)
    rows = [x for x in table[1].splitlines() if x.startswith("$")] if table else []
    return _page([r for b in blocks for r in b.split(" \\\\\n")], [r.split(" & ")[0].strip("$") for r in rows])


def read_html(text: str) -> Page:
    """An HTML page."""
    text = text[: text.index('<section id="code">')]
    found = re.search(r'<section id="parameters">(.*?)</section>', text, re.DOTALL)
    names = re.findall(r"<tr><td><math>(.*?)</math></td>", found[1]) if found else []
    equations: dict[str, str] = {}
    for table in re.findall(r'<table class="eq[^"]*">(.*?)</table>', text, re.DOTALL):
        for left, right in re.findall(
            r"<tr><td><math>(.*?)</math></td><td><math>(.*?)</math></td>", table, re.DOTALL
        ):
            read = read_mathml(ET.fromstring(f"<x>{unescape_entities(right)}</x>"))
            for name in unescape_entities(left).split("<mo>=</mo>"):
                parts = [*ET.fromstring(f"<x>{name}</x>")]
                if parts[0].tag == "mrow":
                    first, second = map(key, parts[0])
                    equations[second] = f"({read})/at({first!r})"
                else:
                    equations[key(parts[0])] = read
    return Page([_key(n) for n in names], equations, lambda name: _key(mathml_name(name)))


def _key(text: str) -> str:
    """A name of MathML as an element has it."""
    return key(ET.fromstring(unescape_entities(text)))


def unescape_entities(text: str) -> str:
    """Text without HTML's own entities, which XML does not know."""
    return re.sub(r"&(?!amp;|lt;|gt;)\w+;", lambda m: unescape(m[0]), text)


READERS = {"markdown": read_markdown, "latex": read_latex, "html": read_html}
