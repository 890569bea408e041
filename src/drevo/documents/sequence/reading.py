"""A sequence read as it stands: on numbers, arrays over samples, or symbols.

Sequence -> SymPy expressions. SymPy is an extra, imported on use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...codegen.graph.ops import FUNCTIONS
from ...errors import EmitError
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


FRACTIONS = (1, 2, 3, 4, 6, 8, 12)  # denominators of numbers that are written exactly
MAX_FRACTION = 100  # their largest value, of 1 or of pi
ROUNDING = 4e-16  # relative


def sympy(sequence: Sequence) -> dict[str, Any]:
    """Every result as a matrix (a scalar as an expression) of q_1, v_1, ... and the symbols of the parameters.

    Whole numbers, halves, thirds and the like, and parts of pi are exact. All statements are substituted into the
    results, so this is for robots of a few joints.
    """
    try:
        import sympy as sp
    except ImportError as e:
        raise EmitError("sympy() needs the package sympy: pip install sympy") from e
    name = sequence.identifiers
    functions = {name: getattr(sp, name) for name in ("sin", "cos", "atan2", *FUNCTIONS.values())}
    functions["when"] = lambda c, x: sp.Piecewise((x, c > 0), (0, True))
    functions["unless"] = lambda c, x: sp.Piecewise((0, c > 0), (x, True))
    arguments = [[sp.Symbol(name[s]) for s in p.scalars] for p in sequence.inputs]
    values = read_sequence(
        sequence, arguments, [sp.Symbol(name[s.name]) for s in sequence.symbols], functions, _exact
    )
    return {r.source: _shaped(sp, [_whole(x) for x in v], r.shape) for r, v in zip(sequence.results, values)}


def _exact(x: float) -> Any:
    """The number that a person would write: a fraction of small parts, a part of pi, a short decimal over 2 pi."""
    import sympy as sp

    for part, of in ((1.0, sp.Integer(1)), (math.pi, sp.pi)):
        for n in FRACTIONS:
            k = round(x / part * n)
            if 0 < k <= MAX_FRACTION * n and abs(x - k * part / n) <= ROUNDING * x:
                return sp.Rational(k, n) * of
    short = f"{2 * math.pi * x:.6g}"  # the advance of a screw for a radian
    if abs(2 * math.pi * x - float(short)) <= ROUNDING * 2 * math.pi * x:
        return sp.Rational(short) / (2 * sp.pi)
    return sp.Float(x)


def _whole(x: Any) -> Any:
    """Whole numbers instead of 1.0 and 0.0, which products and sums of decimals leave."""
    import sympy as sp

    found = sp.sympify(x)
    return found.xreplace({f: sp.Integer(int(f)) for f in found.atoms(sp.Float) if f == int(f)})


def _shaped(sp: Any, entries: list[Any], shape: tuple[int, ...]) -> Any:
    """A matrix where there is one, a scalar, or nested lists."""
    if not shape:
        return entries[0]
    if len(shape) <= 2 and entries:
        return sp.Matrix(*shape, entries) if len(shape) == 2 else sp.Matrix(entries)
    for size in reversed(shape[1:]):
        entries = [entries[k : k + size] for k in range(0, len(entries), size)] if size else []
    return entries
