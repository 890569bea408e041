"""A repr of one line for objects that hold much: arrays and long values by their sizes, the rest as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # in typing from Python 3.11 on, for type checkers only

    def dataclass_transform(**_: object) -> object:
        return lambda decorated: decorated


C = TypeVar("C", bound=type)
MAX_VALUE_CHARACTERS = 40  # characters of a value that is shown as it is
MAX_FIELDS_CHARACTERS = 160  # characters of the fields


def brief(cls: C) -> C:
    """Gives a dataclass the repr `<Name: matrix[6, 6], name='...', count=3>`; fields that are empty are left out.

    Not for classes whose repr is part of a cache key.
    """
    shown = [f.name for f in fields(cls) if f.repr and not f.name.startswith("_")]

    def line(self: Any) -> str:
        return f"<{type(self).__name__}: {brief_fields((name, getattr(self, name)) for name in shown)}>"

    cls.__repr__ = line  # type: ignore[assignment]
    return cls


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def result(cls: C) -> C:
    """A frozen dataclass of arrays: compared by identity, with the repr of `brief`."""
    return brief(dataclass(frozen=True, eq=False)(cls))  # type: ignore[return-value]


def concise(cls: C) -> C:
    """Gives a dataclass the repr `Name(field=value, ...)` of all fields that are not at their defaults."""
    defaults = {f.name: repr(f.default) for f in fields(cls)}

    def line(self: Any) -> str:
        texts = ((name, repr(getattr(self, name))) for name in defaults)
        return f"{type(self).__name__}({', '.join(f'{n}={x}' for n, x in texts if x != defaults[n])})"

    cls.__repr__ = line  # type: ignore[assignment]
    return cls


def brief_fields(values: Iterable[tuple[str, Any]]) -> str:
    """`A[6, 6], name='...'`: names with their values, as many as fit on a line."""
    text = ""
    for part in (_one(name, x) for name, x in values if not _empty(x)):
        if len(text) + len(part) > MAX_FIELDS_CHARACTERS:
            return f"{text}, ..."
        text += f", {part}" if text else part
    return text


def brief_list(noun: str, texts: Sequence[str], shown: int = 3) -> str:
    """`<7 conditions: a = 0; b = 0; c = 0; ...>`."""
    return f"<{len(texts)} {noun}: {'; '.join([*texts[:shown], *(['...'] if len(texts) > shown else [])])}>"


def _empty(x: Any) -> bool:
    return x is None or (isinstance(x, Collection) and not hasattr(x, "shape") and not len(x))


def _one(name: str, x: Any) -> str:
    shape = getattr(x, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{name}{list(shape)}"
    if isinstance(x, float) or shape == ():
        return f"{name}={x:.6g}"
    text = repr(x)
    if len(text) <= MAX_VALUE_CHARACTERS and "\n" not in text:
        return f"{name}={text}"
    if "\n" in text and isinstance(getattr(x, "name", None), str):  # a robot, whose repr is its tree
        return f"{name}={x.name!r}"
    if isinstance(x, str):
        return f"{name}={x[: MAX_VALUE_CHARACTERS - 3]!r}..."
    return f"{name}[{len(x)}]" if isinstance(x, Collection) else f"{name}={type(x).__name__}"
