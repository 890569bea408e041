"""Arrays and named tuples of the functions that `plain` translates."""

from __future__ import annotations

import inspect
import sys
from typing import Any


class Floats:
    """An array of floats, as an annotation."""

    def __getitem__(self, k: int) -> Any:
        raise NotImplementedError

    def __setitem__(self, k: int, x: Any) -> None:
        raise NotImplementedError


class Integers(Floats):
    """An array of integers, as an annotation."""


class Part(Integers):
    """The part of an array, of floats too, from an index on: the array itself, not a copy."""

    def __init__(self, array: Any, first: int) -> None:
        self.array, self.first = array, first

    def __getitem__(self, k: int) -> Any:
        return self.array[self.first + k]

    def __setitem__(self, k: int, x: Any) -> None:
        self.array[self.first + k] = x


def floats(count: int) -> Any:
    """A new array; in machine code on the stack, with any numbers, made once for a call."""
    return [0.0] * count


def integers(count: int) -> Any:
    """A new array likewise, of integers."""
    return [0] * count


def is_named_tuple(kind: Any) -> bool:
    """True for a class of named tuples."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _members(kind: Any) -> list[Any]:
    """The named tuple that every field of one is, or None for a float."""
    space = sys.modules[kind.__module__].__dict__
    notes = inspect.get_annotations(kind)
    found = (space.get(str(getattr(notes[x], "__forward_arg__", notes[x]))) for x in kind._fields)
    return [x if is_named_tuple(x) else None for x in found]


def count_floats(kind: Any) -> int:
    """The number of floats in a named tuple."""
    return sum(count_floats(x) if x else 1 for x in _members(kind))


def tuple_of_floats(kind: Any, values: list[Any]) -> Any:
    """A named tuple of these floats, which are taken from the front."""
    return kind(*(tuple_of_floats(x, values) if x else values.pop(0) for x in _members(kind)))


def floats_of(x: Any) -> list[Any]:
    """The floats of a named tuple, or what else it is, alone."""
    return [y for part in x for y in floats_of(part)] if isinstance(x, tuple) else [x]
