"""Named fields in memory, as values of a function: of a state, of a model, of a row of its tables.

A model is data: a table of numbers and a table of integers per body. State lies body by body in slots of any
size; slot 0 is the ground, set afresh before every loop.
"""

from __future__ import annotations

from ..lower.loops import BODY_INTEGERS, MODEL_WORDS, FieldLayout
from .ir import F64, I32, I64, PTR, IRFunction, Value


class Fields:
    """The fields of a function's argument `state`, as values: read once, at its start. `at`: where one stands."""

    _f: IRFunction
    _layout: FieldLayout

    def __init__(self, f: IRFunction, layout: FieldLayout) -> None:
        self.__dict__.update(_f=f, _layout=layout)

    def __getattr__(self, field: str) -> Value:
        kind = F64 if field in self._layout.doubles else I64 if field in self._layout.integers else PTR
        value: Value = self._f.let(kind, f"load {kind}, ptr {self.at(field).text}", first=True)
        self.__dict__[field] = value
        return value

    def at(self, field: str) -> Value:
        """The address of a field."""
        if field not in self._layout.names:
            raise AttributeError(field)
        place = f"getelementptr i64, ptr {self._f.state.text}, i64 {self._layout.place(field)}"
        return self._f.let(PTR, place, first=True)


def word(f: IRFunction, name: str, kind: str = I64) -> Value:
    """A word behind the pointer `model` of a function."""
    return f.model.at(MODEL_WORDS.index(name), I64).load(kind)


def row_of(f: IRFunction, integers: Value, i: Value) -> dict[str, Value]:
    """The integers of a row of the tables."""
    at = integers.at(i, f"[{len(BODY_INTEGERS)} x i32]")
    casts = {name: "sext" if name in ("up", "kept") else "zext" for name in BODY_INTEGERS}
    return {name: at.at(k, I32).load(I32).cast(cast, I64) for k, (name, cast) in enumerate(casts.items())}
