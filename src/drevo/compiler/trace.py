"""From a model, a quantity and a choice of symbols to a Program."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.program import Guard, Input, Output, Parameter, Program
from ..errors import TraceError
from ..mechanics.algorithms import derivatives as d
from ..mechanics.algorithms import energy as e
from ..mechanics.algorithms import forward_dynamics as fd
from ..mechanics.algorithms import inertia_matrix as im
from ..mechanics.algorithms import inverse_dynamics as idyn
from ..mechanics.algorithms import kinematics as kin
from ..mechanics.algorithms import operational, reactions
from ..mechanics.tree import TINY, Context, Tree, build_tree, carried_inertia
from ..model.description import Model
from ..model.quantities import CATALOGUE, Quantity, names_of, options_of, quantity

Compute = Callable[..., Any]

COMPUTE: dict[str, Compute] = {
    "inverse_dynamics": idyn.inverse_dynamics,
    "forward_dynamics": fd.forward_dynamics,
    "mass_matrix": im.mass_matrix,
    "inertia_product": idyn.inertia_product,
    "inverse_mass_matrix": fd.inverse_mass_matrix,
    "bias": idyn.bias,
    "gravity": idyn.gravity,
    "coriolis_matrix": d.coriolis_matrix,
    "kinetic_energy": e.kinetic_energy,
    "potential_energy": e.potential_energy,
    "center_of_mass": e.center_of_mass,
    "momentum": e.momentum,
    "pose": kin.pose,
    "poses": kin.poses,
    "jacobian": kin.jacobian,
    "operational_inertia": operational.operational_inertia,
    "inverse_operational_inertia": operational.inverse_operational_inertia,
    "velocity": kin.velocity,
    "acceleration": kin.acceleration,
    "joint_wrenches": reactions.joint_wrenches,
    "inverse_dynamics_derivatives": d.inverse_dynamics_derivatives,
    "forward_dynamics_derivatives": d.forward_dynamics_derivatives,
}


class GraphContext(Context):
    """Keeps the names and sections that an algorithm gives on its way."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.labels: dict[int, list[tuple[str, int]]] = {}
        self.sections: list[tuple[int, str]] = []
        self.guards: list[Guard] = []
        self.notes: dict[str, str] = {}  # what an algorithm says beside a name: "H_33": "statement 3, (8)"

    def name(self, label: str, x: Any) -> None:
        if isinstance(x, Expr):
            self.labels.setdefault(x.edge >> 1, []).append((label, x.edge & 1))

    def guard(self, pivot: Any, scale: Any, joint: str) -> None:
        if isinstance(pivot, Expr) and not (isinstance(scale, Expr) and scale.edge == pivot.edge):
            self.guards.append(Guard(pivot.edge, self.graph.edge(scale), joint))

    def section(self, title: str) -> None:
        self.sections.append((len(self.graph), title))


@dataclass(slots=True)
class Symbols:
    """Which numbers of the model stay symbols. shared: equal lengths are one symbol, whatever their signs."""

    graph: Graph
    patterns: tuple[str, ...]
    shared: bool = True
    made: dict[str, Parameter] = field(default_factory=dict)
    lengths: dict[float, Expr] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)

    def value(self, name: str, number: float) -> Any:
        hits = {p for p in self.patterns if f"{name}.".startswith(f"{p}.") or fnmatch.fnmatchcase(name, p)}
        self.matched |= hits
        if not hits:
            return number
        length = self.shared and ".origin." in name
        size = abs(number) if length else number
        symbol = self.lengths.get(size) if length else None
        if symbol is None:
            symbol = self.graph.parameter(name)
            self.made[name] = Parameter(name, symbol.edge >> 1, size)
        if length:
            self.lengths[size] = symbol
        return symbol if size == number else -symbol

    def check(self) -> None:
        """Every pattern must have met a parameter."""
        for p in self.patterns:
            if p not in self.matched and p != "*":
                raise TraceError(
                    f"parameter {p!r} names nothing that is not zero in this robot; names are like "
                    "'LINK.mass', 'LINK.com.x', 'LINK.inertia.xy', 'JOINT.origin.z', 'gravity.z', or '*'"
                )


def trace(
    model: Model,
    name: str | Sequence[str] | Quantity,
    *,
    parameters: Sequence[str] = (),
    compiled: bool = False,
    external: Sequence[str] = (),
    compute: Compute | Mapping[str, Compute] | None = None,
    prepare: Callable[[Tree], Tree] | None = None,
    snap: float = TINY,
    options: Mapping[str, Any] | None = None,
    meta: Mapping[str, object] | None = None,
) -> Program:
    """The program of one quantity, or of several that share their work.

    parameters: names or patterns of model scalars that stay symbols ("*" is all of them).
    compiled: for machine code each of them is its own, sign and all, and pivots of M are guarded; else, as on a
    page, equal lengths are one symbol.
    external: links with a wrench (force, moment at the link's origin, world axes) as an input "f_ext:LINK".
    compute, prepare: a formalism's own algorithm (or those of some of the quantities, by name) and what it does
    to the tree before.
    """
    wanted = [name] if isinstance(name, Quantity) else [quantity(n) for n in names_of(name)]
    graph = Graph()
    context, symbols = GraphContext(graph), Symbols(graph, tuple(parameters), not compiled)
    tree = build_tree(model, symbols.value if parameters else _number, context, snap)
    symbols.check()
    if compiled:
        tree = tree.but(carried=carried_inertia(tree))
    if prepare is not None:
        tree = prepare(tree)
    inputs, state = _inputs(graph, tree, wanted)
    forces = _forces(graph, wanted, external, tree, inputs)
    listed = [x.name for x in wanted if x.name in CATALOGUE]
    chosen = options_of(listed, options or {}, tree.frames) if listed else {}
    outputs: list[tuple[Quantity, Output]] = []
    own = compute if isinstance(compute, Mapping) else {x.name: compute for x in wanted if compute}
    for x in wanted:
        extra: dict[str, Any] = {k: chosen[k] for k in x.options}
        if forces:
            extra["external"] = forces
        result = (own.get(x.name) or COMPUTE[x.name])(tree, *(state[s] for s in x.state), **extra)
        outputs += [(x, o) for o in _outputs(graph, tree, x, result)]
    title = "_".join(x.name for x in wanted)
    about: dict[str, object] = {
        "robot": model.name,
        "quantity": title,
        "formalism": "newton_euler",
        **(meta or {}),
    }
    if context.notes:
        about["notes"] = dict(context.notes)
    labels = {n: tuple(names) for n, names in context.labels.items()}
    made = tuple(symbols.made.values())
    return Program(
        title,
        graph,
        tuple(inputs),
        made,
        _told_apart(outputs),
        labels,
        tuple(context.sections),
        _units(tree, state),
        tuple(context.guards) if compiled else (),
        about,
    )


def _units(tree: Tree, state: Mapping[str, Sequence[Expr]]) -> tuple[tuple[int, ...], ...]:
    """The INPUT nodes of every quaternion in q."""
    starts = [b.q + b.nq - 4 for b in tree.bodies if b.nq >= 4]
    return tuple(tuple(x.edge >> 1 for x in state["q"][k : k + 4]) for k in starts) if "q" in state else ()


def _number(name: str, number: float) -> float:
    return number


def _inputs(graph: Graph, tree: Tree, wanted: Sequence[Quantity]) -> tuple[list[Input], dict[str, list[Expr]]]:
    """State inputs in call order; sizes nq for q, nv for the rest."""
    inputs, state = [], {}
    for s in dict.fromkeys(s for x in wanted for s in x.state):
        size = tree.nq if s == "q" else tree.nv
        state[s] = [graph.input(f"{s}[{i}]") for i in range(size)]
        inputs.append(Input(s, (size,), tuple(x.edge >> 1 for x in state[s])))
    return inputs, state


def _forces(
    graph: Graph, wanted: Sequence[Quantity], external: Sequence[str], tree: Tree, inputs: list[Input]
) -> dict[str, list[Expr]]:
    forces = {}
    for link in external:
        if link not in tree.frames:
            raise TraceError(f"f_ext: link {link!r} is not in the robot; links are {', '.join(tree.frames)}")
        if not all(x.external for x in wanted):
            raise TraceError(f"{wanted[0].name} takes no external wrenches")
        forces[link] = [graph.input(f"f_ext:{link}[{i}]") for i in range(6)]
        inputs.append(Input(f"f_ext:{link}", (6,), tuple(x.edge >> 1 for x in forces[link])))
    return forces


def _outputs(graph: Graph, tree: Tree, x: Quantity, result: Any) -> list[Output]:
    many = result if len(x.outputs) > 1 else (result,)
    out = []
    for (name, shape), value in zip(x.outputs, many):
        known = {"nv": tree.nv, "links": len(kin.moving_links(tree))}
        sizes = tuple(known[s] if isinstance(s, str) else s for s in shape)
        out.append(Output(name, sizes, tuple(graph.edge(s) for s in _flat(value, len(sizes)))))
    return out


def _told_apart(outputs: Sequence[tuple[Quantity, Output]]) -> tuple[Output, ...]:
    """Outputs of one name, as T of poses and of the kinetic energy, are named after their quantities."""
    often = Counter(o.name for _, o in outputs)
    return tuple(
        o if often[o.name] == 1 else o._replace(name=x.name if len(x.outputs) == 1 else f"{x.name}_{o.name}")
        for x, o in outputs
    )


def _flat(value: Any, depth: int) -> list[Any]:
    if depth == 0:
        return [value]
    return [s for row in value for s in _flat(row, depth - 1)]


__all__ = ["CATALOGUE", "COMPUTE", "GraphContext", "Symbols", "quantity", "trace"]
