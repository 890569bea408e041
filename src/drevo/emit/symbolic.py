"""Sequence -> SymPy expressions. SymPy is an extra, imported on use."""

from __future__ import annotations

from typing import Any

from ..errors import EmitError
from .python import functions
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
    space = {"sin": sp.sin, "cos": sp.cos, "sqrt": sp.sqrt, "atan2": sp.atan2, "__builtins__": {}}
    exec(compile(functions(sequence, [""]), f"<{name[sequence.function]}>", "exec"), space)  # our own text
    arguments: list[Any] = [[sp.Symbol(name[s]) for s in p.scalars] for p in sequence.inputs]
    if sequence.symbols:
        arguments.append(space["prologue"]([sp.Symbol(name[s.name]) for s in sequence.symbols]))
    value = space[name[sequence.function]](*arguments)
    values = [value] if len(sequence.results) == 1 else value
    return {
        r.source: (sp.Matrix(v) if len(r.shape) in (1, 2) and 0 not in r.shape else v)
        for r, v in zip(sequence.results, values)
    }
