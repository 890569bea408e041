"""Sequence -> SymPy expressions. SymPy is an extra, imported on use."""

from __future__ import annotations

import math
from typing import Any

from ...codegen.graph.ops import FUNCTIONS
from ...errors import EmitError
from .reading import read_sequence
from .sequence import Sequence

FRACTIONS = (1, 2, 3, 4, 6, 8, 12)  # denominators of numbers that are written exactly
MOST = 100  # their largest value, of 1 or of pi
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
            if 0 < k <= MOST * n and abs(x - k * part / n) <= ROUNDING * x:
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
