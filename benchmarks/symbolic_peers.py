"""Peers from PyPI that make equations: CasADi tracing the plain recursion, SymPy's Kane method on plane chains.

Each returns (products, sums) in the convention of Drevo's counts, or None where the package is not installed.
"""

from __future__ import annotations

from typing import Any

from drevo.compiler.formalisms import common_algorithm
from drevo.mechanics.tree import build_tree
from drevo.model.description import Model
from drevo.model.quantities import quantity


def casadi_counts(model: Model, name: str) -> tuple[int, int] | None:
    """CasADi's SX graph of the Newton-Euler recursion in body axes, Drevo's own source, after cse."""
    try:
        import casadi as ca
    except ImportError:
        return None
    if hasattr(ca.GlobalOptions, "setNumpyMode"):
        ca.GlobalOptions.setNumpyMode(1)
    tree = build_tree(model, snap=1e-9)
    sizes = {s: tree.nq if s == "q" else tree.nv for s in quantity(name).state}
    state = {s: ca.SX.sym(s, n) for s, n in sizes.items()}
    result = common_algorithm(name)(tree, *([x[i] for i in range(sizes[s])] for s, x in state.items()))
    flat = [x for row in result for x in (row if isinstance(row, list) else [row])]
    f = ca.Function("f", list(state.values()), [ca.cse(ca.vertcat(*flat))])
    kinds = [f.instruction_id(k) for k in range(f.n_instructions())]
    products = sum(k in (ca.OP_MUL, ca.OP_SQ) for k in kinds)
    return products, sum(k in (ca.OP_ADD, ca.OP_SUB, ca.OP_TWICE) for k in kinds)


def sympy_counts(links: int) -> tuple[int, int] | None:
    """M and forcing of a plane chain with general links by SymPy's Kane method, after SymPy's cse."""
    try:
        import sympy as sp
        import sympy.physics.mechanics as me
    except ImportError:
        return None
    kane, bodies, loads = _plane_chain(links, sp, me)
    kane.kanes_equations(bodies, loads)
    steps, results = sp.cse([kane.mass_matrix, kane.forcing])
    found = [expression for _, expression in steps] + [x for matrix in results for x in matrix]
    products = sum(_products(e, sp) for e in found)
    return products, sum(len(a.args) - 1 for e in found for a in e.atoms(sp.Add) | ({e} if e.is_Add else set()))


def _products(expression: Any, sp: Any) -> int:
    """Products of an expression: signs are free, a square is one."""
    total = 0
    for node in sp.preorder_traversal(expression):
        if node.is_Mul:
            total += len([f for f in node.args if f != -1]) - 1
        elif node.is_Pow and node.exp.is_Integer and node.exp > 1:
            total += int(node.exp) - 1
    return total


def _plane_chain(links: int, sp: Any, me: Any) -> tuple[Any, list[Any], list[Any]]:
    """Kane's method for hinged links in a vertical plane, centres of mass off the lines of the hinges."""
    q, u = me.dynamicsymbols(f"q:{links}"), me.dynamicsymbols(f"u:{links}")
    ground, pole = me.ReferenceFrame("N"), me.Point("O")
    pole.set_vel(ground, 0)
    frame, gravity, bodies, loads = ground, sp.Symbol("g"), [], []
    for i in range(links):
        m, x, y, inertia, length = sp.symbols(f"m{i} x{i} y{i} I{i} L{i}")
        child = frame.orientnew(f"B{i}", "Axis", (q[i], frame.z))
        child.set_ang_vel(frame, u[i] * frame.z)
        center = pole.locatenew(f"C{i}", x * child.x + y * child.y)
        center.v2pt_theory(pole, ground, child)
        bodies.append(me.RigidBody(f"b{i}", center, child, m, (me.inertia(child, 0, 0, inertia), center)))
        loads.append((center, -m * gravity * ground.y))
        tip = pole.locatenew(f"P{i}", length * child.x)
        tip.v2pt_theory(pole, ground, child)
        frame, pole = child, tip
    rates = [a.diff() - b for a, b in zip(q, u)]
    return me.KanesMethod(ground, q_ind=q, u_ind=u, kd_eqs=rates), bodies, loads
