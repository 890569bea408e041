"""Inverse dynamics with J^T w of one state of a robot with limbs that are alike: one is traced and swept back."""

from __future__ import annotations

from ..codegen.graph.derivative import cotangents
from ..codegen.graph.program import Program
from ..mechanics.formalisms.khalil import inverse_dynamics
from ..model.description import Model
from .limbs import FEWEST, LimbState
from .products import number_rates
from .tracer import Tracer, unknowns

LONG = 3_000  # nodes; the code of fewer lies in the nearest cache, and two limbs in place of one gain little


def limbs_vjp(model: Model, value: bool, nodes: int) -> Program | None:
    """[tau,] and the cotangents of q, v, a; None where too few limbs are alike.

    nodes: of the equations of a batch.
    """
    state = LimbState.of(Tracer("inverse_dynamics", model), fewest=2 if nodes > LONG else FEWEST)
    if state is None:
        return None
    q, v, a = state.arguments("q", "v", "a")
    tau = inverse_dynamics(state.tree, q, v, a, parallel=False)
    if value:
        state.output("tau", state.vector(tau, state.v))
    tau_bar = state.argument("tau_bar", state.v)
    flat = cotangents([state.t.graph.expr(state.t.graph.edge(x)) for x in tau], tau_bar, [*q, *v, *a], state)
    d = unknowns(state.t.graph, "d", state.tree.nv)
    found = {"q": cotangents(number_rates(state.tree, q, d), flat[: len(q)], d)}
    found |= {"v": flat[len(q) : len(q) + len(v)], "a": flat[len(q) + len(v) :]}
    for name, values in found.items():
        state.output(f"{name}_bar", state.vector(values, state.v))
    return state.program()
