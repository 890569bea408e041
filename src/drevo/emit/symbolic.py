"""Sequence -> SymPy expressions. SymPy is an extra, imported on use."""

from __future__ import annotations

from typing import Any

from ..errors import EmitError
from .reading import read
from .sequence import Sequence


def sympy(sequence: Sequence) -> dict[str, Any]:
    """Every result as a matrix (a scalar as an expression) of q_1, v_1, ... and the symbols of the parameters.

    All statements are substituted into the results, so this is for robots of a few joints.
    """
    try:
        import sympy as sp
    except ImportError as e:
        raise EmitError("sympy() needs the package sympy: pip install sympy") from e
    name = sequence.identifiers
    functions = {"sin": sp.sin, "cos": sp.cos, "sqrt": sp.sqrt, "atan2": sp.atan2}
    arguments = [[sp.Symbol(name[s]) for s in p.scalars] for p in sequence.inputs]
    values = read(sequence, arguments, [sp.Symbol(name[s.name]) for s in sequence.symbols], functions)
    return {r.source: _shaped(sp, x, r.shape) for r, x in zip(sequence.results, values)}


def _shaped(sp: Any, entries: list[Any], shape: tuple[int, ...]) -> Any:
    """A matrix where there is one, a scalar, or nested lists."""
    if not shape:
        return entries[0]
    if len(shape) <= 2 and entries:
        return sp.Matrix(*shape, entries) if len(shape) == 2 else sp.Matrix(entries)
    for size in reversed(shape[1:]):
        entries = [entries[k : k + size] for k in range(0, len(entries), size)] if size else []
    return entries
