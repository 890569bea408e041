"""How a model's faults are said: which element, and all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from drevo.errors import ModelError
from drevo.model.description import Joint, Link

MOST_PROBLEMS = 100


def at(thing: Link | Joint, noun: str = "") -> str:
    """What a sentence calls an element: its kind, name and line."""
    noun = noun or ("link" if isinstance(thing, Link) else "joint")
    return f"{noun} {thing.name!r}" + (f" (line {thing.line})" if thing.line else "")


def listed(names: Iterable[str], most: int = 6) -> str:
    """Names in quotes, a long list cut short."""
    return cut([repr(name) for name in names], most)


def cut(parts: Sequence[str], most: int = 6, glue: str = ", ") -> str:
    """The parts in a row, a long row cut short."""
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return glue.join(parts[:most]) + more


def meant(name: str, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing; bounded, since the search is quadratic."""
    known = [other for other in known if len(other) <= 64]
    close = get_close_matches(name, known, n=1) if len(known) <= 200 and len(name) <= 64 else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def refuse(where: str, problems: Sequence[str]) -> None:
    """Raise one ModelError that holds every problem; nothing where there is none."""
    if not problems:
        return
    if len(problems) == 1:
        raise ModelError(f"{where}: {problems[0]}")
    shown = list(problems[:MOST_PROBLEMS])
    if len(problems) > MOST_PROBLEMS:
        shown.append(f"and {len(problems) - MOST_PROBLEMS} more")
    raise ModelError(f"{where}: {len(problems)} problems:\n  - " + "\n  - ".join(shown))
