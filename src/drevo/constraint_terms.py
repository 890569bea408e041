"""f, f', Gamma and gamma of a set of constraints, compiled once for a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from .algorithms.constraints import Kinematics
from .constraint import Constraint, Weld, all_rows, is_lasting
from .graph.node import Graph
from .graph.program import Input, Output, Program
from .mechanics.tree import build_tree
from .model.description import Model

if TYPE_CHECKING:
    from .robot import Robot
    from .runtime.function import Function

Array = np.ndarray[Any, Any]


_MADE: WeakKeyDictionary[Any, dict[tuple[Constraint, ...], Function]] = WeakKeyDictionary()
_HELD: WeakKeyDictionary[Any, dict[Weld, Weld]] = WeakKeyDictionary()


class Terms(NamedTuple):
    """f, f', Gamma and gamma of a set at a state."""

    value: Array
    rate: Array
    jacobian: Array
    gamma: Array


def constraint_terms(
    robot: Robot, found: tuple[Constraint, ...], q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0
) -> Terms:
    """f, f', Gamma (..., m, nv) and gamma (..., m) of constraints that `constraint.collect` has checked."""
    time = np.asarray(t, float)[..., None]
    if found:
        return Terms(*constraint_function(robot, found)(q, v, time))
    lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    none = np.zeros((*lead, 0))
    return Terms(none, none, np.zeros((*lead, 0, robot.nv)), none)


def numeric_terms(model: Model, found: tuple[Constraint, ...], q: Array, v: Array, t: Array) -> Terms:
    """The same without compiling; the numbers of the constraints may be arrays over the samples (n,) too.

    q (n, nq), v (n, nv), t (n,).
    """
    if not found:
        none = np.zeros((len(q), 0))
        return Terms(none, none, np.zeros((len(q), 0, model.nv)), none)
    rows = all_rows(found, Kinematics(build_tree(model), list(q.T), list(v.T)), t)

    def filled(values: Sequence[Any]) -> Array:
        return np.stack([np.broadcast_to(np.asarray(x, float), (len(q),)) for x in values], -1)

    jacobian = np.stack([filled(row) for row in rows.jacobian], -2)
    return Terms(filled(rows.value), filled(rows.rate), jacobian, filled(rows.bias))


def constraint_function(robot: Robot, found: tuple[Constraint, ...]) -> Function:
    """The compiled function of a set, made once per robot."""
    from .runtime.function import Spec, obtain
    from .runtime.key import request

    made = _MADE.setdefault(robot, {})
    if found not in made:
        spec = Spec(dtype="float64", layout="rows", packed=False, parameters=False, check=True)
        made[found] = obtain(
            request(robot.model, "constraints", found),
            lambda: constraint_program(robot.model, found),
            spec,
            cache=all(map(is_lasting, found)),
        )
    return made[found]


def constraint_program(model: Model, found: tuple[Constraint, ...]) -> Program:
    """The program of f, f', Gamma and gamma with inputs q, v and t."""
    graph, tree = Graph(), build_tree(model)
    sizes = {"q": model.nq, "v": model.nv, "t": 1}
    state = {s: [graph.input(f"{s}[{i}]") for i in range(n)] for s, n in sizes.items()}
    inputs = tuple(Input(s, (n,), tuple(x.edge >> 1 for x in state[s])) for s, n in sizes.items())
    rows = all_rows(found, Kinematics(tree, state["q"], state["v"]), state["t"][0])
    m = len(rows.value)
    jacobian = [x for row in rows.jacobian for x in row]
    parts = (("f", rows.value), ("rate", rows.rate), ("jacobian", jacobian), ("gamma", rows.bias))
    shapes = {"jacobian": (m, model.nv)}
    outputs = tuple(
        Output(name, shapes.get(name, (m,)), tuple(graph.edge(x) for x in values)) for name, values in parts
    )
    starts = [b.q + b.nq - 4 for b in tree.bodies if b.nq >= 4]
    units = tuple(tuple(x.edge >> 1 for x in state["q"][k : k + 4]) for k in starts)
    about = {"robot": model.name, "quantity": "constraints", "formalism": "newton_euler"}
    return Program("constraints", graph, inputs, (), outputs, {}, (), units, about)


def oriented(robot: Robot, found: tuple[Constraint, ...], q: Array) -> tuple[Constraint, ...]:
    """Welds without a rotation get the one they had at first use."""
    memory = _HELD.setdefault(robot, {})
    out: list[Constraint] = []
    for c in found:
        if isinstance(c, Weld) and c.rotation is None:
            if c not in memory:
                first = q.reshape(-1, robot.nq)[0]
                Ra, Rb = (robot.pose(first, link)[:3, :3] for link in (c.link_a, c.link_b))
                turn = tuple(tuple(float(x) for x in row) for row in Ra.T @ Rb)
                memory[c] = Weld(c.link_a, c.point_a, c.link_b, c.point_b, turn)  # type: ignore[arg-type]
            c = memory[c]
        out.append(c)
    return tuple(out)


__all__ = ["Terms", "constraint_function", "constraint_program", "constraint_terms", "numeric_terms", "oriented"]
