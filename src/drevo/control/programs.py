"""Linear models and laws of control as programs: what they compute, over a graph, ready for every language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.graph.program import Program
from ..compiler.tracer import Tracer
from ..mechanics.scalar import dot
from .responses import Matrices

LISTED = 40  # outputs that a text names


def linear_program(m: Matrices, name: str, about: str, states: Sequence[str], units: Mapping[str, str]) -> Program:
    """dx (of a discrete model: the next x) and y, with inputs x and u."""
    t = Tracer(name)
    x, u = t.input("x", len(m.A)), t.input("u", m.B.shape[1])
    for out, left, right in (("dx" if m.dt is None else "next_x", m.A, m.B), ("y", m.C, m.D)):
        t.output(out, [dot(a, x) + dot(b, u) for a, b in zip(left.tolist(), right.tolist())])
    told = {"x": [(s, "", "state", units.get(s, "")) for s in states]}
    told["u"] = [(s, "", "input", units.get(s, "")) for s in m.inputs]
    when = "continuous" if m.dt is None else f"in steps of {m.dt:.9g} s"
    outputs = f"y, in this order: {', '.join(m.outputs)}." if len(m.outputs) <= LISTED else ""
    notes = [f"The model is {when}; x, u and y are deviations from the point it was made about.", outputs]
    return t.program(robot=about, quantity="linear_model", coordinates=told, assumptions=[*filter(None, notes)])
