"""Every failure a user can cause, as one sentence: which element, which rule, which values, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

FEW = 6  # names that are listed beside the one that was probably meant


class DrevoError(Exception):
    """The base of everything that Drevo raises on purpose; `problems` holds all where the text counts some."""

    problems: tuple[str, ...] = ()


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


def one_of(
    what: str, value: Any, names: Iterable[str], error: type[DrevoError] = TraceError, hint: str = ""
) -> str:
    """`value`, if it is one of the names; otherwise the error says which was probably meant, or all there are."""
    known = list(names)
    if isinstance(value, str) and value in known:
        return value
    import re
    from difflib import get_close_matches

    near = get_close_matches(value[:80], known, 1) if isinstance(value, str) else []
    there = f"there are {', '.join(known[:40])}{', ...' * (len(known) > 40)}"
    if near:
        there = f"{there}; " * (len(known) <= FEW) + f"did you mean {near[0]!r}?"
    shown = " ".join(re.sub(r" at 0x\w+", "", repr(value)).split())
    said = shown if len(shown) <= 80 else f"{shown[:77]}..."
    raise error(f"{what} {said} is not known{hint}; {there}")
