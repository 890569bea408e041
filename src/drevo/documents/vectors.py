"""The lines of a paper by vectors and matrices, as its author writes them: LaTeX, MathML, and their legend.

A line is words: names in the grammar of documents, numbers, and signs; @NAME is a parameter of the robot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .sequence.names import latex_name, mathml_name

Words = tuple[str, ...]
TURN_PATTERN = re.compile(r"Rot_([xyz])")
NUMBER_PATTERN = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?|\d+[a-f]")  # 2b: the second body of joint 2
TEX = {
    "+": " + ", "-": " - ", "x": r" \times ", "(": "(", ")": ")", ")^T": ")^{T}", "<": r"\langle ",
    ">": r"\rangle ", ">^T": r"\rangle^{T} ", "[": r"\begin{bmatrix}", "&": " & ", ";": r" \\ ", 
    "^2": "^{2}", "]": r"\end{bmatrix}", "sum": r"\textstyle\sum ", "sin": r"\sin", "cos": r"\cos",
}  # fmt: skip
MATHML = {
    "+": "<mo>+</mo>", "-": "<mo>−</mo>", "x": "<mo>×</mo>", "(": "<mo>(</mo>", ")": "<mo>)</mo>",
    ")^T": "<msup><mo>)</mo><mi>T</mi></msup>", "<": "<mo>⟨</mo>", ">": "<mo>⟩</mo>",
    ">^T": "<msup><mo>⟩</mo><mi>T</mi></msup>", "^2": "<msup><mrow/><mn>2</mn></msup>",
    "[": "<mrow><mo>[</mo><mtable><mtr><mtd>", "&": "</mtd><mtd>", ";": "</mtd></mtr><mtr><mtd>",
    "]": "</mtd></mtr></mtable><mo>]</mo></mrow>", "sum": "<mo>∑</mo>",
    "sin": "<mi>sin</mi>", "cos": "<mi>cos</mi>",
}  # fmt: skip
LINE_SIGNS = (  # a pattern of words, how a legend shows them where it is not by themselves, and what they mean
    (r"Rot_[xyz]", (), "turn about that axis by the angle in parentheses, 3 x 3, no unit"),
    (r"Rot_\d+", (), "turn by the joint's own coordinates, 3 x 3, no unit"),
    (r"e_[xyz]", (), "unit vector along that axis, no unit"),
    (r"E", (), "unit matrix, no unit"),
    (r"G", (), "G (a; b) = (b; a): linear and angular parts in the other order, 6 x 6, no unit"),
    (
        "<",
        ("<", "a", ">"),
        "of three numbers the matrix of the vector product, <a> b = a x b; of six, a = (v; w), by blocks (<w>, 0; "
        "<v>, <w>); in the units of a",
    ),
    (r"f", ("f", "(", "i", ")"), "number of the link that carries link i, 0 for the base, no unit"),
    (r"ns", ("ns", "(", "i", ")"), "place of link i among those that its parent carries, no unit"),
)
INDEX_FUNCTIONS = {"f", "ns", "sin", "cos"}
OPENING = {"(", "<", "[", "&", ";"}
UNSIGNED = {"(", "<", "[", "sum", "sin", "cos"}  # a product goes on with them


class VectorLine(NamedTuple):
    """A line of a paper: left and right side, number of the equation, and the meaning of the left side.

    Without a right side it is a meaning alone, of what parameters or components define.
    """

    left: Words
    right: Words
    equation: str
    meaning: str


class VectorSection(NamedTuple):
    """Lines under one title."""

    title: str
    lines: tuple[VectorLine, ...]

    @property
    def printed(self) -> tuple[VectorLine, ...]:
        """Lines that are more than a meaning."""
        return tuple(x for x in self.lines if x.right)


def sections_of(lines: object) -> tuple[VectorSection, ...]:
    """The sections of what a program says of itself; a line without words is a title."""
    out: list[tuple[str, list[VectorLine]]] = []
    for left, right, equation, meaning in lines if isinstance(lines, tuple) else ():
        if not left:
            out.append((meaning, []))
        else:
            out[-1][1].append(VectorLine(left, right, equation, meaning))
    return tuple(VectorSection(title, tuple(rows)) for title, rows in out if rows)


def names_in_lines(sections: Iterable[VectorSection]) -> set[str]:
    """Names that stand in lines, without parameters of the robot; C_2^T and U_2^-1 are C_2 and U_2."""
    words = (w for s in sections for x in s.lines for w in (*x.left, *x.right))
    names = (w for w in words if w not in TEX and w[0] != "@" and not NUMBER_PATTERN.fullmatch(w))
    return {re.sub(r"\^(-1|T)$|(\^.*)T$", r"\2", w) for w in names}


def legend_of(sections: Sequence[VectorSection]) -> list[tuple[list[Words], str]]:
    """Names with what they mean, in order of appearance, then the signs that lines use."""
    listed: dict[str, list[Words]] = {}
    for line in (x for s in sections for x in s.lines if x.meaning):
        names = listed.setdefault(line.meaning, [])
        if line.left not in names:
            names.append(line.left)
    read = {w for s in sections for x in s.lines for w in (*x.left, *x.right)}
    signs: dict[str, list[Words]] = {}
    for pattern, shown, said in LINE_SIGNS:
        used = sorted(w for w in read if re.fullmatch(pattern, w))
        if used:
            signs.setdefault(said, []).extend([shown] if shown else [(w,) for w in used])
    return [(names, said) for said, names in (*listed.items(), *signs.items())]


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
        apart = before in signs and before not in (")", ")^T", ">", ">^T", "]", "^2")
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
    for x in section.printed:
        yield tex_line(x.left, symbols), tex_line(x.right, symbols), x.equation
