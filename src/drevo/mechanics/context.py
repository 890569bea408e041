"""The hooks by which an algorithm names what it computes."""

from __future__ import annotations

from collections.abc import Sequence

from .scalar import Scalar


class Context:
    """The hooks of tracing in an algorithm: names, sections, guards, assumptions. On numbers they do nothing."""

    in_metres = False  # lengths keep their unit, for people read their symbols

    def name(self, label: str, x: Scalar) -> None: ...

    def section(self, title: str) -> None: ...

    def guard(self, pivot: Scalar, scale: Scalar, joint: str) -> None: ...

    def assume(self, sentence: str) -> None: ...

    def line(self, left: Sequence[str], right: Sequence[str], equation: str, meaning: str) -> None: ...

    def mark(self, x: Scalar) -> str:
        """@NAME of a parameter that stays a symbol, with its sign; empty for anything else."""
        return ""
