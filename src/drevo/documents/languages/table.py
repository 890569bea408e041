"""The one table of the languages that equations are written out in. A new one is a file beside this and a row."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...errors import EmitError, one_of

if TYPE_CHECKING:
    from ..about import About
    from ..sequence.sequence import Sequence


# name, which is that of the function that writes it -> endings of its files, its own first
LANGUAGES = {
    "latex": (".tex",),
    "markdown": (".md",),
    "html": (".html", ".htm"),
    "python": (".py",),
    "c": (".c", ".h"),
    "cuda": (".cu",),
    "matlab": (".m",),
}
MODULES_OF_LANGUAGES = {"markdown": "latex", "cuda": "c"}  # where it is not the language's own
BY_ENDING = {ending: name for name, endings in LANGUAGES.items() for ending in endings}


def text_in(language: str, sequence: Sequence, facts: About) -> str:
    """A sequence in a language of the table; its module is imported now. EmitError where there is none."""
    one_of("language", language, LANGUAGES, EmitError)
    module = import_module(f".{MODULES_OF_LANGUAGES.get(language, language)}", __package__)
    written: str = getattr(module, language)(sequence, facts)
    return written
