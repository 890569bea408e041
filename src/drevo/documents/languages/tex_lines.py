"""Widths of LaTeX mathematics, and lines of a sum that fit a width: no document runs over its column."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}_^]|.", re.DOTALL)
# points at 10 pt of Computer Modern, rounded up; signs with the spaces about them
_WIDTHS = {" ": 0.0, "+": 12.3, "-": 12.3, "=": 13.4, "(": 4.0, ")": 4.0, ",": 4.6, ".": 2.9, "/": 5.1, "M": 9.8,
           "m": 8.9, "H": 9.2, "W": 10.6, "w": 7.3, r"\,": 1.8, r"\quad": 10.1, r"\cdot": 7.3, r"\sin": 14.3,
           r"\cos": 14.3, r"\dots": 13.4, r"\sqrt": 8.6, r"\frac": 2.6, r"\ell": 4.3, r"\text": 0.0,
           r"\mathrm": 0.0, r"\operatorname": 3.6, r"\omega": 6.5, r"\Lambda": 7.0}  # fmt: skip
_FUNCTION_PATTERN = re.compile(r"(?:\\sin|\\cos|\\operatorname\{\w+\})$")
_ROOT = r"\sqrt{"
_FRACTION = r"\frac{"
SCRIPT = 0.74  # size of subscripts
PAGE_WIDTH, COLUMN = 470.0, 240.0  # of a page with margins of 22 mm, of a column of two with 18 mm
GAP = 22.0  # between an equation and what is said beside it


def width(tex: str) -> float:
    """Points that a formula takes, a little more rather than less."""
    return _Measure(tex).group()


class _Measure:
    """One pass over the tokens of a formula."""

    def __init__(self, tex: str) -> None:
        self.tokens = _TOKEN.findall(tex)
        self.at = 0

    def group(self) -> float:
        """Up to a closing brace, or the end."""
        total, scripts = 0.0, [0.0]
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token == "}":
                break
            if token in "_^":
                scripts.append(SCRIPT * self.argument() + 0.5)
                continue
            total, scripts = total + max(scripts), [0.0]
            total += self.group() if token == "{" else self.token(token)
        return total + max(scripts)

    def token(self, token: str) -> float:
        if token == r"\frac":
            return _WIDTHS[token] + max(self.argument(), self.argument())
        if token in _WIDTHS:
            return _WIDTHS[token]
        if len(token) > 2:
            return 6.6
        return 5.1 if token.isdigit() else 8.2 if token.isupper() else 5.9

    def argument(self) -> float:
        """Measures the argument of a command or a script: a group, or one token."""
        if self.at >= len(self.tokens):
            return 0.0
        self.at += 1
        token = self.tokens[self.at - 1]
        return self.group() if token == "{" else self.token(token)


def broken_sum(text: str, room: float, signs: str = "+-") -> list[str]:
    """A sum in lines no wider than the room: broken before its signs, else inside its products."""
    out = [""]
    for piece in (p for part in _apart(text, tuple(f" {x} " for x in signs)) for p in _fitting(part, room)):
        if out[-1] and width(out[-1] + piece) > room:
            out.append("")
        out[-1] += piece
    return out


def _fitting(piece: str, room: float) -> list[str]:
    """A piece that is wider than a line, between its factors."""
    if width(piece) <= room:
        return [piece]
    if (at := piece.find(_ROOT)) >= 0:  # nothing breaks under a root
        inside = next(_apart(piece[at + len(_ROOT) - 1 :], ("",)))[1:]
        whole = piece[:at] + f"({inside})^{{1/2}}" + piece[at + len(_ROOT) + len(inside) + 1 :]
        return [p for part in _apart(whole, (" + ", " - ")) for p in _fitting(part, room)]
    if (at := piece.find(_FRACTION)) >= 0:  # nor in a fraction
        top, under = _braced(piece, at + len(_FRACTION) - 1)
        if top != "{1}":
            after = at + len(_FRACTION) - 1 + len(top) + len(under)
            whole = piece[:at] + rf"\frac{{1}}{under}\,({top[1:-1]})" + piece[after:]
            return [p for part in _apart(whole, (" + ", " - ")) for p in _fitting(part, room)]
    first, *rest = _apart(piece, (r"\,",))
    if not rest:  # an argument longer than a line
        return [*_apart(piece, (" + ", " - "), arguments=True)]
    return [first, *(rf" \cdot {x[2:]}" for x in rest)]


def _braced(text: str, at: int) -> tuple[str, str]:
    """Two groups of braces that follow each other."""
    first = next(_apart(text[at:], ("",))) + "}"  # which cuts before the brace that closes
    return first, next(_apart(text[at + len(first) :], ("",))) + "}"


def _apart(text: str, marks: tuple[str, ...], arguments: bool = False) -> Iterator[str]:
    """Cut before marks where no brace is open, nor, but for arguments, the parenthesis of a function."""
    start = depth = 0
    calls: list[bool] = []  # of the open parentheses, which are a function's
    for k, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == "(":
            calls.append(bool(_FUNCTION_PATTERN.search(text, 0, k)) and not arguments)
        elif c == ")" and calls:
            calls.pop()
        if depth == 0 and k > start and not any(calls) and text.startswith(marks, k):
            yield text[start:k]
            start = k
    yield text[start:]
