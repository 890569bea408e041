"""The lines of a paper by vectors and matrices, as its author writes them: LaTeX, MathML, and their legend.

A line is words: names in the grammar of documents, numbers, and signs; @NAME is a parameter of the robot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from .sequence.names import latex_name, mathml_name

Words = tuple[str, ...]
TURN_PATTERN = re.compile(r"Rot_([xyz])")
NUMBER_PATTERN = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")
TEX = {
    "+": " + ", "-": " - ", "x": r" \times ", "(": "(", ")": ")", ")^T": ")^{T}", "<": r"\langle ",
    ">": r"\rangle ", ">^T": r"\rangle^{T} ", "[": r"\begin{bmatrix}", "&": " & ", ";": r" \\ ", 
    "]": r"\end{bmatrix}", "sum": r"\textstyle\sum ", "sin": r"\sin", "cos": r"\cos",
}  # fmt: skip
MATHML = {
    "+": "<mo>+</mo>", "-": "<mo>−</mo>", "x": "<mo>×</mo>", "(": "<mo>(</mo>", ")": "<mo>)</mo>",
    ")^T": "<msup><mo>)</mo><mi>T</mi></msup>", "<": "<mo>⟨</mo>", ">": "<mo>⟩</mo>",
    ">^T": "<msup><mo>⟩</mo><mi>T</mi></msup>",
    "[": "<mrow><mo>[</mo><mtable><mtr><mtd>", "&": "</mtd><mtd>", ";": "</mtd></mtr><mtr><mtd>",
    "]": "</mtd></mtr></mtable><mo>]</mo></mrow>", "sum": "<mo>∑</mo>",
    "sin": "<mi>sin</mi>", "cos": "<mi>cos</mi>",
}  # fmt: skip
INDEX_FUNCTIONS = {"f", "ns", "sin", "cos"}
OPENING = {"(", "<", "[", "&", ";"}
UNSIGNED = {"(", "<", "[", "sum", "sin", "cos"}  # a product goes on with them


class VectorLine(NamedTuple):
    """A line of a paper: left and right side, number of the equation, and the meaning of the left side."""

    left: Words
    right: Words
    equation: str
    meaning: str


class VectorSection(NamedTuple):
    """Lines under one title."""

    title: str
    lines: tuple[VectorLine, ...]


def sections_of(lines: object) -> tuple[VectorSection, ...]:
    """The sections of what a program says of itself; a line without words is a title."""
    out: list[tuple[str, list[VectorLine]]] = []
    for left, right, equation, meaning in lines if isinstance(lines, tuple) else ():
        if not left:
            out.append((meaning, []))
        else:
            out[-1][1].append(VectorLine(left, right, equation, meaning))
    return tuple(VectorSection(title, tuple(rows)) for title, rows in out if rows)


def legend_of(sections: Iterable[VectorSection]) -> list[tuple[list[str], str]]:
    """Names with what they mean, in order of appearance."""
    listed: dict[str, list[str]] = {}
    for line in (x for s in sections for x in s.lines if x.meaning):
        names = listed.setdefault(line.meaning, [])
        if len(line.left) == 1 and line.left[0] not in names:
            names.append(line.left[0])
    return [(names, said) for said, names in listed.items() if names]


def tex_line(words: Words, symbols: Mapping[str, str]) -> str:
    """Words as LaTeX; symbols: the names of parameters."""
    return _written(
        words, symbols, TEX, latex_name, lambda x: rf"\operatorname{{Rot}}_{{{x}}}", r"\,", str
    ).strip()


def mathml_line(words: Words, symbols: Mapping[str, str]) -> str:
    """Words as MathML."""
    return _written(
        words, symbols, MATHML, mathml_name, lambda x: f"<msub><mi>Rot</mi><mi>{x}</mi></msub>",
        '<mspace width=".17em"/>', lambda x: f"<mn>{x}</mn>",
    )  # fmt: skip


def _written(
    words: Words,
    symbols: Mapping[str, str],
    signs: Mapping[str, str],
    name: Callable[[str], str],
    turn: Callable[[str], str],
    space: str,
    number: Callable[[str], str],
) -> str:
    out, before = "", "+"
    for word in words:
        apart = before in signs and before not in (")", ")^T", ">", ">^T", "]")
        sign = word in signs and word not in UNSIGNED
        opens_argument = word == "(" and (before in INDEX_FUNCTIONS or TURN_PATTERN.fullmatch(before))
        if out and not (apart or sign or opens_argument):
            out += space
        if word == "-" and (not out or before in OPENING):
            out += signs["-"].strip()
        elif word in signs:
            out += signs[word]
        elif found := TURN_PATTERN.fullmatch(word):
            out += turn(found[1])
        elif NUMBER_PATTERN.fullmatch(word):
            out += number(word)
        else:
            out += name(symbols.get(word[1:], word[1:]) if word[0] == "@" else word)
        before = word
    return out


def tex_rows(section: VectorSection, symbols: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Left side, right side and equation of every line, as LaTeX."""
    for x in section.lines:
        yield tex_line(x.left, symbols), tex_line(x.right, symbols), x.equation
