"""Every failure a user can cause, as one sentence: which element, which rule, which values, what to do."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable
from reprlib import Repr
from typing import Any

FEW = 6  # names that are listed beside the one that was probably meant
ALIKE = 0.6  # of difflib's ratio, which finds what may be meant; few slips decide
LONG = 80  # characters of a value in a sentence
_ADDRESS = re.compile(r"( object)? at 0x[0-9A-Fa-f]+")
_LINES = re.compile(r"\s*\n(?!  - )\s*")  # those of a list of problems stay
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_WORD = re.compile(r"\S{200,}")
_REPR = Repr()  # of the first elements only: the rest may be millions
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = _REPR.maxset = 30
_REPR.maxstring = _REPR.maxother = 200


def printable(text: str) -> str:
    """A text whose control characters, line feeds aside, are told and not sent to a terminal."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class DrevoError(Exception):
    """The base of everything that Drevo raises on purpose; `problems` holds all where the text counts some.

    Its text is on one line, apart from a list of problems, without addresses in memory, and with words that can be
    read: of a name without end both ends are shown.
    """

    problems: tuple[str, ...] = ()

    def __init__(self, text: str = "", *more: Any) -> None:
        plain = printable(_LINES.sub(" ", _ADDRESS.sub("", str(text))))
        super().__init__(_WORD.sub(lambda word: f"{word[0][:LONG]}...{word[0][-LONG:]}", plain), *more)


class ModelError(DrevoError):
    """A robot description that cannot be computed or is ambiguous."""


class TraceError(DrevoError):
    """A quantity, formalism or parameter that this robot cannot give."""


class EmitError(DrevoError):
    """A target that cannot express the program, or a compiler that failed."""


class NumericsError(DrevoError):
    """Numbers that have no answer: a non-unit quaternion, a singular matrix, a value that is not finite."""


class InputError(DrevoError):
    """Arguments of the wrong shape, type or name."""


class DrevoWarning(UserWarning):
    """A description that can be computed but is doubtful, or acts in ways that are not read.

    One per file, naming the elements; `problems` holds all of them where the text counts some.
    """

    problems: tuple[str, ...] = ()


def warn_caller(told: str | DrevoWarning) -> None:
    """A DrevoWarning at the line of the first caller outside of this package, however deep it is seen here."""
    here, level, frame = os.path.dirname(__file__), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        level, frame = level + 1, frame.f_back
    warnings.warn(DrevoWarning(printable(told)) if isinstance(told, str) else told, stacklevel=level)


def nearest(name: str, known: Iterable[str]) -> str:
    """The public name that was probably meant: one that is spelt nearly so, or has it as a word; "" for none."""
    from difflib import get_close_matches

    public = [other for other in known if not other.startswith("_")]
    close = get_close_matches(name[:LONG], public, 3, ALIKE)
    close = [other for other in close if name in other or _slips(name, other)]
    return next(iter(close or [other for other in public if name in other.split("_")]), "")


def _slips(name: str, other: str) -> bool:
    """Few letters are wrong, missing, too many or exchanged: at most a third (Damerau 1964)."""
    rows: list[list[int]] = [[*range(len(other) + 1)]]
    for i, a in enumerate(name[:LONG], 1):
        row = [i]
        for j, b in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == name[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1] <= (max(len(name), len(other)) + 1) // 3


def one_of(
    what: str, value: Any, names: Iterable[str], error: type[DrevoError] = TraceError, hint: str = ""
) -> str:
    """`value`, if it is one of the names; otherwise the error says which was probably meant, or all there are."""
    known = list(names)
    if isinstance(value, str) and value in known:
        return value
    near = nearest(value, known) if isinstance(value, str) else ""
    there = f"there are {', '.join(known[:40])}{', ...' * (len(known) > 40)}"
    if near:
        there = f"{there}; " * (len(known) <= FEW) + f"did you mean {near!r}?"
    raise error(f"{what} {shown(value)} is not known{hint}; {there}")


def shown(value: object) -> str:
    """A value as a sentence shows it: on one line, without its address, cut."""
    try:
        text = " ".join(_ADDRESS.sub("", _REPR.repr(value)).split())
    except Exception:  # an integer of a million digits, or a foreign object
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONG else text[: LONG - 3] + "..."
