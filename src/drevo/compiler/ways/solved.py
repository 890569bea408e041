"""Derivatives of forward dynamics of one state: -M^-1 times the columns that the recursion leaves, eight of them
side by side."""

from __future__ import annotations

from ...codegen.graph.program import Program
from ...codegen.llvm.dense.inverse import InverseTail
from ...mechanics.algorithms.inertia_matrix import Factors
from ...model.description import Model
from ..formalisms import unsolved_derivatives
from ..tracer import Tracer
from . import MIN_SOLVED_FREEDOMS


def _inverse_tail(t: Tracer, f: Factors) -> InverseTail:
    """The factors as hidden results, and the solve that reads them."""
    lower = tuple(tuple(sorted(row)) for row in f.L)
    t.output("L", [row[j] for row, at in zip(f.L, lower) for j in at])
    t.output("E", [-x for x in f.inverse])
    return InverseTail(tuple(f.order), lower)


def solved_program(model: Model) -> Program | None:
    """dtau/dq and dtau/dv at the accelerations, -1, and the factors of M; None for small robots."""
    if model.nv < MIN_SOLVED_FREEDOMS:
        return None
    t = Tracer("forward_dynamics_derivatives", model)
    _, dq, dv, f = unsolved_derivatives(t.tree, *t.state("q", "v", "tau"))
    one = [[-float(r == c) for c in range(model.nv)] for r in range(model.nv)]
    for name, x in (("dq", dq), ("dv", dv), ("one", one)):
        t.output(name, x)
    return t.program(named=True, tail=_inverse_tail(t, f))
