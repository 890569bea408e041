"""The words of a model behind its pointer, and the integers of a row of its tables.

A model is data: a table of numbers and a table of integers per body. State lies body by body in slots of any
size; slot 0 is the ground, set afresh before every loop.
"""

from __future__ import annotations

from ...lower.loops import BODY_INTEGERS, MODEL_WORDS
from ..ir import I32, I64, IRFunction, Value


def word(f: IRFunction, name: str, kind: str = I64) -> Value:
    """A word behind the pointer `model` of a function."""
    return f.model.at(MODEL_WORDS.index(name), I64).load(kind)


def row_of(f: IRFunction, integers: Value, i: Value) -> dict[str, Value]:
    """The integers of a row of the tables."""
    at = integers.at(i, f"[{len(BODY_INTEGERS)} x i32]")
    casts = {name: "sext" if name in ("up", "kept") else "zext" for name in BODY_INTEGERS}
    return {name: at.at(k, I32).load(I32).cast(cast, I64) for k, (name, cast) in enumerate(casts.items())}
