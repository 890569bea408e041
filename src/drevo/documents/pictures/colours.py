"""Colours of drawings: plain attributes, which every reader of SVG knows; a style sheet only for dark pages."""

from __future__ import annotations

from collections.abc import Mapping

INK, SOFT, PAPER, MARK = "#1b2430", "#5b6776", "#ffffff", "#0b6e6e"
GOLD, RED = "#c98a1b", "#b3452c"
_DARK = {INK: "#e3e8ee", SOFT: "#93a1b1", PAPER: "#12171d", MARK: "#5cc8c2"}

Looks = Mapping[str, Mapping[str, str]]  # kinds of elements, each with its attributes


def look(looks: Looks, kind: str) -> str:
    """The class and the attributes of a kind of elements."""
    return f'class="{kind}"' + "".join(f' {name}="{value}"' for name, value in looks[kind].items())


def dark(looks: Looks) -> str:
    """The style rules that change colours where the reader's page is dark."""
    rules = [
        f".{kind}{{{name}:{_DARK[value]}}}"
        for kind, attributes in looks.items()
        for name, value in attributes.items()
        if value in _DARK
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
