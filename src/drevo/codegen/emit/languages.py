"""The one table of the languages that equations are written out in. A new one is a file beside this and a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ...errors import EmitError, one_of

if TYPE_CHECKING:
    from .about import About
    from .sequence import Sequence


class Language(NamedTuple):
    """The ending of its files first; others are understood too. module: whose function of the same name writes."""

    module: str
    endings: tuple[str, ...]


LANGUAGES: dict[str, Language] = {
    "latex": Language("latex", (".tex",)),
    "markdown": Language("markdown", (".md",)),
    "html": Language("html", (".html", ".htm")),
    "python": Language("python", (".py",)),
    "c": Language("c", (".c", ".h")),
    "cuda": Language("cuda", (".cu",)),
    "matlab": Language("matlab", (".m",)),
}
BY_ENDING = {ending: name for name, row in LANGUAGES.items() for ending in row.endings}


def text_in(language: str, sequence: Sequence, facts: About) -> str:
    """A sequence in a language of the table; its module is imported now. EmitError where there is none."""
    row = LANGUAGES[one_of("language", language, LANGUAGES, EmitError)]
    written: str = getattr(import_module(f".{row.module}", __package__), language)(sequence, facts)
    return written
