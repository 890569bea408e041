"""A sequence read as it stands: on numbers, arrays over samples, or symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .expression import Factor, FunctionCall, Group, Name, Number, Terms
from .sequence import Sequence


def read_sequence(
    sequence: Sequence,
    arguments: Iterable[Iterable[Any]],
    parameters: Iterable[Any],
    functions: Mapping[str, Callable[..., Any]],
    number: Callable[[float], Any] | None = None,
) -> list[list[Any]]:
    """The entries of every result, row-major; the arguments are those of `read_statements`."""
    reader = _read(sequence, arguments, parameters, functions, number)
    return [[reader.total((entry,)) for entry in r.entries] for r in sequence.results]


def read_statements(
    sequence: Sequence,
    arguments: Iterable[Iterable[Any]],
    parameters: Iterable[Any],
    functions: Mapping[str, Callable[..., Any]],
) -> Mapping[str, Any]:
    """The value of every name.

    arguments: per state argument its scalars; parameters: a value per symbol; functions: sin, cos, sqrt, atan2;
    "turned" for numbers, of an angle and its factor: the angle less whole turns.
    """
    return _read(sequence, arguments, parameters, functions, None).known


def _read(
    sequence: Sequence,
    arguments: Iterable[Iterable[Any]],
    parameters: Iterable[Any],
    functions: Mapping[str, Callable[..., Any]],
    number: Callable[[float], Any] | None,
) -> _Reader:
    """number: what a constant becomes; itself by default."""
    known: dict[str, Any] = {}
    for port, scalars in zip(sequence.inputs, arguments):
        known.update(zip(port.scalars, scalars))
    known.update(zip([s.name for s in sequence.symbols], parameters))
    if turned := functions.get("turned"):
        known.update({t.name: turned(known[t.scalar], t.factor) for t in sequence.turns})
    reader = _Reader(known, functions, number)
    for s in sequence.statements():
        known[s.name] = reader.total(s.terms)
    return reader


class _Reader:
    """Works from left to right, as every notation does."""

    def __init__(
        self,
        known: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        number: Callable[[float], Any] | None,
    ) -> None:
        self.known, self.functions, self.number = known, functions, number

    def total(self, terms: Terms) -> Any:
        total: Any = None
        for negative, factors, over in terms:
            x = self.factor(factors[0])
            for f in factors[1:]:
                x = x * self.factor(f)
            for f in over:
                x = x / self.factor(f)
            if total is None:
                total = -x if negative else x
            else:
                total = total - x if negative else total + x
        return total

    def factor(self, factor: Factor) -> Any:
        if isinstance(factor, Name):
            return self.known[factor.turned if factor.turned in self.known else factor.text]
        if isinstance(factor, Group):
            return self.total(factor.terms)
        if isinstance(factor, Number):
            return self.number(factor.value) if self.number else factor.value
        assert isinstance(factor, FunctionCall)
        arguments = [self.total(x) for x in (factor.terms, factor.second) if x]
        return self.functions[factor.function](*arguments)
