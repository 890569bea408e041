"""The one place where inputs, outputs and names of a Program are declared while an algorithm runs over nodes.

To which branch of the tree each input of a program belongs: machine code puts its steps in order by it.

Functions of users over scalars as graphs: each is called once; its graph is what runs and what is keyed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ..codegen.graph.evaluate import evaluate_edges
from ..codegen.graph.node import Expr, Graph
from ..codegen.graph.ops import BY_NAME, CHOICE, FUNCTIONS, WHEN
from ..codegen.graph.program import Guard, Input, Output, Parameter, Program
from ..errors import InputError, TraceError, shown
from ..mechanics.acting import number_itself
from ..mechanics.algorithms.passive import with_tendons
from ..mechanics.body_table import table_of
from ..mechanics.letters import body_numbers
from ..mechanics.loose import carried_inertia, loose_rates
from ..mechanics.rotation import ZERO_DIFFERENCE
from ..mechanics.scalar import Context, Scalar, Vector, atan2, cos, named_function, sin, sqrt, where
from ..mechanics.tree import Tree, build_tree
from ..mechanics.wheels import equal_moments
from ..model.description import Model
from ..model.draft import did_you_mean


class GraphContext(Context):
    """Keeps the names and sections that an algorithm gives on its way."""

    def __init__(self, graph: Graph, in_metres: bool = False) -> None:
        self.graph, self.in_metres = graph, in_metres
        self.assumed: dict[str, None] = {}
        self.labels: dict[int, list[tuple[str, int]]] = {}
        self.sections: list[tuple[int, str]] = []
        self.guards: list[Guard] = []
        self.notes: dict[str, str] = {}  # what an algorithm says beside a name: "H_33": "statement 3, (8)"
        self.lines: list[tuple[Sequence[str], Sequence[str], str, str]] = []  # of a paper, by vectors and matrices
        self.parameters: Mapping[str, Parameter] = {}

    def name(self, label: str, x: Any) -> None:
        if isinstance(x, Expr):
            self.labels.setdefault(x.edge >> 1, []).append((label, x.edge & 1))

    def guard(self, pivot: Any, scale: Any, joint: str) -> None:
        if isinstance(pivot, Expr) and not (isinstance(scale, Expr) and scale.edge == pivot.edge):
            self.guards.append(Guard(pivot.edge, self.graph.edge(scale), joint))

    def assume(self, sentence: str) -> None:
        self.assumed[sentence] = None

    def line(self, left: Sequence[str], right: Sequence[str], equation: str, meaning: str) -> None:
        self.lines.append((left, right, equation, meaning))

    def mark(self, x: Any) -> str:
        at = x.edge if isinstance(x, Expr) else -1
        known = (p.name for p in self.parameters.values() if p.node == at >> 1)
        return next((f"{'-' * (at & 1)}@{name}" for name in known), "")

    def section(self, title: str) -> None:
        self.sections.append((len(self.graph), title))


def names_parameter(pattern: str, name: str) -> bool:
    """True if `pattern` fits the name of a parameter: it is the name, the beginning of it, or a pattern."""
    return f"{name}.".startswith(f"{pattern}.") or fnmatch.fnmatchcase(name, pattern)


OF_LINKS = ("mass", "com", "inertia", "gravcomp", "pose")  # parameters of links; all others are of a joint


def parameters_in_order(made: Iterable[Parameter], patterns: Sequence[str], model: Model) -> tuple[Parameter, ...]:
    """Parameters in the order of the list that names them; those of one pattern as their links stand in the model.

    A joint stands where its child does; what is of neither comes first, in the order of its making.
    """
    links = {link.name: k for k, link in enumerate(model.links)}
    joints = {joint.name: links[joint.child] for joint in model.joints}

    def place(x: Parameter) -> tuple[int, int]:
        first = next((k for k, p in enumerate(patterns) if names_parameter(p, x.name)), len(patterns))
        parts = x.name.split(".")
        for k in range(len(parts) - 1, 0, -1):  # names may hold points
            known, owner = links if parts[k] in OF_LINKS else joints, ".".join(parts[:k])
            if owner in known:
                return first, known[owner]
        return first, -1

    return tuple(sorted(made, key=place))


@dataclass(slots=True)
class ParameterSymbols:
    """The numbers of the model that stay symbols, each a parameter of its own.

    merge: equal lengths are one symbol, whatever their signs. twins: parameters that are another one, for the
    symmetry of their link. merged: by name, what a parameter was taken for.
    """

    graph: Graph
    patterns: tuple[str, ...]
    merge: bool = False
    twins: Mapping[str, str] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    made: dict[str, Parameter] = field(default_factory=dict)
    lengths: dict[float, Expr] = field(default_factory=dict)
    matched: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def value(self, name: str, number: float) -> Any:
        hits = self.wanted(name)
        self.matched |= hits
        self.known.add(name)
        if not hits:
            return number
        if self.twins.get(name) in self.made:
            self.merged[name] = self.twins[name]
            return Expr(self.graph, 2 * self.made[self.twins[name]].node)
        if name in self.made:  # of another tree of the same robot
            known = self.graph.expr(2 * self.made[name].node)
            return known if self.made[name].value == number else -known
        length = self.merge and ".origin." in name
        size = abs(number) if length else number
        symbol = self.lengths.get(size) if length else None
        if symbol is None:
            symbol = self.graph.parameter(name, size < 0)
            self.made[name] = Parameter(name, symbol.edge >> 1, size, self.meaning(name))
        elif length:
            sign = "" if size == number else "-"
            self.merged[name] = sign + next(p.name for p in self.made.values() if p.node == symbol.edge >> 1)
        if length:
            self.lengths[size] = symbol
        return symbol if size == number else -symbol

    def own(self, name: str, number: float) -> Any:
        """The symbol of a number that is one, else the number."""
        return self.graph.expr(2 * self.made[name].node) if name in self.made else number

    def wanted(self, name: str) -> set[str]:
        """The patterns that a name fits."""
        return {p for p in self.patterns if names_parameter(p, name)}

    def meaning(self, name: str) -> str:
        """The meaning of a symbol that stands for two inertia entries; empty for any other."""
        for other, one in self.twins.items():
            if one == name:
                link, _, entries = name.rsplit(".", 2)
                both = f"entries {entries} and {other.rsplit('.', 1)[1]}, equal about its joint's axis"
                return f"inertia tensor of {link} about its centre of mass, {both}"
        return ""

    def check(self) -> None:
        """Every pattern must have met a parameter."""
        for p in self.patterns:
            if p not in self.matched and p != "*":
                hint = did_you_mean(p, self.known)
                raise TraceError(
                    f"parameter {p!r} names nothing that is not zero in this robot{hint}; names are like "
                    "'LINK.mass', 'LINK.com.x', 'LINK.inertia.xy', 'JOINT.origin.z', 'gravity.z', or '*'"
                )


class Tracer:
    """A Program in the making.

        t = Tracer("power", model)
        q, v, tau = t.state("q", "v", "tau")
        t.output("P", [dot(tau, v)])
        return t.program()

    `graph` holds the expressions, `tree` is the model ready for algorithms, its constants numbers or, of the
    parameters that a pattern names, symbols. Inputs and outputs stand in the order of their declaration.
    """

    tree: Tree

    def __init__(
        self,
        name: str,
        model: Model | None = None,
        *,
        parameters: Sequence[str] = (),
        compiled: bool = True,
        snap: float = ZERO_DIFFERENCE,
        prepare: Callable[[Tree], Tree] | None = None,
        acting: bool = False,
        merge_equal: bool = False,
    ) -> None:
        """compiled: for machine code, where pivots of M are guarded. prepare: what is done to the tree before all
        else. acting: the tree has the forces that act in its joints. merge_equal: parameters that are equal by
        value are one symbol, lengths and moments of symmetric links."""
        if not isinstance(name, str) or not name:
            raise InputError(f"a program's name must be text, not {shown(name)}")
        self.name, self.compiled, self.model = name, compiled, model
        self.listed: Sequence[str] = parameters  # the order of symbols, others that are made later among them
        self.graph = Graph()
        self.context = GraphContext(self.graph, in_metres=bool(parameters) and not compiled)
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.units: list[tuple[int, ...]] = []
        self.about: dict[str, object] = {}
        self.symbols = ParameterSymbols(self.graph, tuple(parameters), merge_equal)
        self.context.parameters = self.symbols.made
        if model is not None:
            if parameters and merge_equal:
                self.symbols.twins = equal_moments(build_tree(model, snap=snap), model)
            self.about["robot"] = model.name
            tree = build_tree(
                model, self.symbols.value if parameters else number_itself, self.context, snap, acting
            )
            self.symbols.check()
            if compiled and not tree.formulas:
                loose = loose_rates(table_of(build_tree(model) if parameters else tree))
                tree = tree.replace(carried=carried_inertia(tree), loose=loose)
            if tree.formulas:
                self.about["by_formula"] = [f.owner.joint for f in tree.formulas]
            tree = with_tendons(tree, model) if acting else tree
            self.tree = prepare(tree) if prepare else tree

    def input(self, name: str, size: int) -> list[Expr]:
        """A vector argument."""
        found = unknowns(self.graph, name, size)
        self.inputs.append(Input(name, (size,), nodes_of(found)))
        return found

    def state(self, *names: str) -> list[list[Expr]]:
        """Arguments of the tree's sizes: nq of "q", whose quaternions must be unit, 1 of "t", nv of any other."""
        found = [self.input(name, {"q": self.tree.nq, "t": 1}.get(name, self.tree.nv)) for name in names]
        for q in (x for name, x in zip(names, found) if name == "q"):
            for b in self.tree.owners():
                if b.nq != b.nv:
                    self.require_unit(q[b.q + b.nq - 4 : b.q + b.nq])
        return found

    def require_unit(self, quaternion: Sequence[Expr]) -> None:
        """Four inputs that must be a unit quaternion."""
        self.units.append(nodes_of(quaternion))

    def output(
        self, name: str, values: Any, shape: tuple[int, ...] | None = None, places: Sequence[int] | None = None
    ) -> None:
        """A result: a scalar, or its scalars row by row, nested or not; shape: (n,) if not given; places: see
        Output."""
        edges = tuple(self.graph.edge(x) for x in scalars_in(values))
        at = None if places is None else tuple(places)
        self.outputs.append(Output(name, (len(edges),) if shape is None else shape, edges, at))

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those that stayed symbols, in the order of the list that names them."""
        made = self.symbols.made.values()
        return tuple(made) if self.model is None else parameters_in_order(made, self.listed, self.model)

    def program(self, *, named: bool = False, tail: Any = None, **about: object) -> Program:
        """named: with the names and sections that the algorithms gave.
        tail: of machine code, what goes on where the steps end.

        about: what an artifact should say about itself beside the robot's name.
        """
        labels = {n: tuple(names) for n, names in self.context.labels.items()} if named else {}
        if self.symbols.patterns and self.model is not None:
            about = {"numbers": body_numbers(self.tree, self.model), **about}
        return Program(
            self.name,
            self.graph,
            tuple(self.inputs),
            self.parameters,
            tuple(self.outputs),
            labels,
            tuple(self.context.sections) if named else (),
            tuple(self.units),
            tuple(self.context.guards) if self.compiled else (),
            self.about | about,
            tail=tail,
        )


def unknowns(graph: Graph, name: str, size: int) -> list[Expr]:
    """NAME[0], NAME[1], ..: inputs of a graph."""
    return [unknown(graph, f"{name}[{i}]") for i in range(size)]


def unknown(graph: Graph, name: str) -> Expr:
    """One of them."""
    return graph.input(name)


def nodes_of(values: Iterable[Expr]) -> tuple[int, ...]:
    return tuple(x.edge >> 1 for x in values)


def scalars_in(value: Any) -> Iterator[Any]:
    """Scalars of nested lists."""
    if isinstance(value, (str, Mapping)):
        raise InputError(f"a {type(value).__name__} stands where a list of numbers must")
    if hasattr(value, "__iter__"):
        for row in value:
            yield from scalars_in(row)
    else:
        yield value


_MEANING: dict[int, Any] = {op: named_function(name) for op, name in FUNCTIONS.items()}
_MEANING |= {BY_NAME["sin"]: sin, BY_NAME["cos"]: cos, BY_NAME["sqrt"]: sqrt, BY_NAME["atan2"]: atan2}
_MEANING |= {
    op: lambda c, x, op=op: where(c > 0.0, *((x, 0.0) if op == WHEN else (0.0, x))) for op in CHOICE
}  # fmt: skip


class TracedFunction:
    """A function over scalars as the graph of one call of it; it computes the same on scalars of every kind.

    What the function read beside its arguments is in the graph, and so in `digest`: equal graphs are equal.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.digest, self.__name__ = program, program.digest, program.name

    def __call__(self, *given: Vector) -> list[Sequence[Scalar]]:
        """The scalars of each output, from those of each input."""
        p = self.program
        leaves = {n: x for port, values in zip(p.inputs, given) for n, x in zip(port.nodes, values, strict=True)}
        found = iter(evaluate_edges(p.graph, p.output_edges, leaves, float, _MEANING))
        return [list(islice(found, len(o.edges))) for o in p.outputs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedFunction) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)
