"""The formalisms by name, and the competition between them.

`compete` traces a quantity by every formalism that gives it for this robot and keeps the one with the fewest
operations; the ranking says what the others needed. A formalism that cannot is left out, or refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from ..codegen.graph import regroup
from ..codegen.graph.program import Program
from ..errors import TraceError, one_of
from ..mechanics.algorithms import articulated_body
from ..mechanics.formalisms import (
    alyushin,
    khalil_derivatives,
    kovalchuk,
    planar,
    telegin_lagrange,
    vereshchagin,
    zaremba,
)
from ..mechanics.formalisms.khalil_forward import deep
from ..mechanics.reduce import gauged, linear_rates
from ..mechanics.scalar import Vector
from ..mechanics.tree import TINY, Tree, build_tree
from ..model.description import Model
from ..model.quantities import CATALOGUE, names_of
from .search import (
    NODES,
    OBJECTIVES,
    Counts,
    Preparation,
    Search,
    by_articulated_form,
    by_inertia_matrix,
    traced_alone,
)
from .trace import COMPUTE, trace

Compute = Callable[..., Any]
Prepare = Callable[[Tree], Tree]
Price = Callable[[Counts], int]
DENSE = 200  # rates: beyond it an inertia matrix is no way to accelerations
SEARCHED = 64  # bodies: beyond it the plain preparations have to do
OTHERS = 16  # bodies: up to it the formalisms that were not made for few operations compete too

_PLANAR: dict[str, Compute] = {
    "inverse_dynamics": planar.inverse_dynamics,
    "bias": planar.bias,
    "gravity": planar.gravity,
    "mass_matrix": planar.mass_matrix,
    "inverse_mass_matrix": planar.inverse_mass_matrix,
    "forward_dynamics": planar.forward_dynamics,
}
_KOVALCHUK: dict[str, Compute] = {
    "inverse_dynamics": kovalchuk.inverse_dynamics,
    "bias": kovalchuk.bias,
    "mass_matrix": kovalchuk.mass_matrix,
}
_ZAREMBA: dict[str, Compute] = {
    "inverse_dynamics": zaremba.inverse_dynamics,
    "bias": zaremba.bias,
    "gravity": zaremba.gravity,
    "mass_matrix": zaremba.mass_matrix,
    "coriolis_matrix": zaremba.coriolis_matrix,
}
_GAUGED = tuple(n for n, x in CATALOGUE.items() if x.invariant)

FORMALISMS: dict[str, Mapping[str, Compute]] = {
    "newton_euler": COMPUTE,
    "khalil": {n: COMPUTE[n] for n in _GAUGED},  # replaced by its own recursion where it has one
    "planar": _PLANAR,
    "articulated_body": {"forward_dynamics": articulated_body.forward_dynamics},
    "vereshchagin": {"forward_dynamics": vereshchagin.forward_dynamics},
    "telegin": telegin_lagrange.TELEGIN,
    "kovalchuk": _KOVALCHUK,
    "zaremba": _ZAREMBA,
    "alyushin": {"kinetic_energy": alyushin.kinetic_energy},
}
REGROUPED = ("auto", "khalil")  # the formalisms of the papers are written out as they are
REGROUP = 40_000  # nodes: beyond it regrouping takes longer than all the rest, for one operation in a hundred
CLOSE = 1.05  # times the best price: what may win by regrouping
LEAN = ("khalil", "planar", "newton_euler", "articulated_body")


class Variant(NamedTuple):
    """One way to a quantity: whose, by what, after what; options are what the search settled."""

    formalism: str
    compute: Compute
    prepare: Prepare | None = None


class RankedProgram(NamedTuple):
    """A program that competes: its price, and its place among those tried, which decides between equals."""

    price: int
    at: int
    formalism: str
    program: Program


class Competition(NamedTuple):
    """Who won, its program, and the price and counts of every formalism, the best first."""

    winner: str
    program: Program
    ranking: tuple[tuple[str, int, dict[str, int]], ...]


def compete(
    model: Model,
    quantity: str,
    objective: str = "add+mul",
    *,
    formalism: str = "auto",
    parameters: Sequence[str] = (),
    compiled: bool = False,
    external: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    snap: float = TINY,
    passive: bool = False,
) -> Competition:
    """The program of a quantity with the fewest operations, by one formalism or, "auto", by the best of all.

    objective: "mul" | "add+mul" | "fma" | "add+mul+trig". Plans are found on the robot's numbers and hold for
    symbols too.
    """
    (name,) = names_of(quantity)
    price = price_of(objective)
    tried: list[RankedProgram] = []
    refused: TraceError | None = None
    for v in candidates(model, name, objective, formalism, external, snap):
        try:
            program = trace(
                model, name, parameters=parameters, compiled=compiled, external=external, compute=v.compute,
                prepare=v.prepare, snap=snap, options=options, passive=passive, meta={"formalism": v.formalism},
            )  # fmt: skip
        except TraceError as error:
            if formalism != "auto" or v.formalism == "newton_euler":
                raise
            refused = error
            continue
        tried.append(RankedProgram(price(program.counts), len(tried), v.formalism, program))
    if not tried:
        raise refused or TraceError(f"no formalism gives {name} for robot {model.name!r}")
    if formalism in REGROUPED:
        near = CLOSE * min(t[0] for t in tried)
        tried = [_tightened(t, price) if t[0] <= near else t for t in tried]
    tried.sort(key=lambda t: t[:2])
    best = {f: (f, p, program.counts) for p, _, f, program in reversed(tried)}
    ranking = tuple(sorted(best.values(), key=lambda r: r[1]))
    _, _, winner, program = tried[0]
    about = {**program.meta, "objective": objective, "ranking": tuple((f, p) for f, p, _ in ranking)}
    return Competition(winner, replace(program, meta=about), ranking)


def _tightened(entry: RankedProgram, price: Price) -> RankedProgram:
    """With the sums of its program regrouped, as often as it saves something."""
    while len(entry.program.order()) <= REGROUP:
        program = regroup.regrouped(entry.program)
        now = price(program.counts)
        if now >= entry.price:
            break
        entry = entry._replace(price=now, program=program)
    return entry


def price_of(objective: str) -> Price:
    """What a program costs under an objective."""
    return OBJECTIVES[one_of("objective", objective, OBJECTIVES)]


def formalisms_giving(name: str) -> list[str]:
    """The formalisms that give a quantity."""
    return [f for f, given in FORMALISMS.items() if name in given]


def candidates(
    model: Model,
    name: str,
    objective: str = "add+mul",
    formalism: str = "auto",
    external: Sequence[str] = (),
    snap: float = TINY,
) -> list[Variant]:
    """The ways to a quantity that are worth tracing for this robot, or the one of a named formalism."""
    if one_of("formalism", formalism, ("auto", *FORMALISMS)) != "auto":
        if name not in FORMALISMS[formalism]:
            raise TraceError(
                f"formalism {formalism!r} does not give {name}; these do: {', '.join(formalisms_giving(name))}"
            )
        takes = "external" in signature(FORMALISMS[formalism][name]).parameters
        if external and not takes:
            raise TraceError(f"formalism {formalism!r} takes no external wrenches; 'khalil' does")
    tree = build_tree(model, snap=snap)
    chosen = [formalism]
    if formalism == "auto":
        chosen = [f for f in formalisms_giving(name) if _worth(f, name, tree, bool(external))]
    return [v for f in chosen for v in _variants(f, tree, name, objective, bool(external))]


def _worth(formalism: str, name: str, tree: Tree, external: bool) -> bool:
    """Not to be tried: books of many operations on large trees, planes without external wrenches elsewhere."""
    if formalism == "planar":
        return not external and planar.flat(gauged(tree)) is not None
    lean = formalism in LEAN and not (formalism == "newton_euler" and name in khalil_derivatives.COMPUTE)
    return lean or (len(tree) <= OTHERS and not external)


def _variants(formalism: str, tree: Tree, name: str, objective: str, external: bool) -> Iterator[Variant]:
    if formalism == "khalil":
        yield from _khalil(tree, name, objective, external)
        return
    dense = formalism == "newton_euler" and name == "forward_dynamics"
    if dense and tree.nv > DENSE:
        return
    if formalism == "zaremba":
        for depth in zaremba.MEETINGS:
            yield Variant(formalism, partial(_ZAREMBA[name], meeting=depth), Preparation(frames=True).prepare)
        return
    prepare = gauged if formalism in ("planar", "articulated_body") else None
    yield Variant(formalism, FORMALISMS[formalism][name], prepare)


def _khalil(tree: Tree, name: str, objective: str, external: bool) -> Iterator[Variant]:
    """The recursion under the best plan; quantities without one take the common algorithm on the gauged tree."""
    if name == "forward_dynamics":
        if tree.nv <= DENSE:
            yield from _accelerations(tree, objective, external)
    elif name in ("inverse_dynamics", "bias", "gravity", "mass_matrix", "inverse_mass_matrix"):
        plan = plan_of(tree, name, objective, external)
        yield Variant("khalil", _run(name, plan), plan.prepare)
    else:
        own = khalil_derivatives.COMPUTE.get(name)
        plan = Preparation(frames=True, unit=own is not None and not linear_rates(tree))
        yield Variant("khalil", own or COMPUTE[name], plan.prepare)


def plan_of(tree: Tree, name: str, objective: str, external: bool, budget: int = NODES) -> Preparation:
    """The plan of fewest operations for a quantity of a tree of numbers."""
    if len(tree) > SEARCHED or not tree.bodies:
        return Preparation(frames=True, unit=not external)
    plain = Preparation(frames=True, unit=not external)
    limit = traced_alone(plain.prepare(tree), "inverse_dynamics", {}).counts["trig"]
    searched = "mass_matrix" if name == "inverse_mass_matrix" else name
    return Search(tree, searched, price_of(objective), budget, limit, not external).best()


def _run(name: str, plan: Preparation) -> Compute:
    from .search import COMPUTE as OWN

    def compute(tree: Tree, *state: Vector, **extra: Any) -> Any:
        return OWN[name](tree, *state, **extra, **plan.options(name))

    return compute


def _accelerations(tree: Tree, objective: str, external: bool) -> Iterator[Variant]:
    """Bias and inertia matrix each after its own preparation; their trigonometry must be shared."""
    h = plan_of(tree, "loads", objective, external, NODES // 2)
    if len({b.v for b in tree.bodies}) == len(tree):  # articulated bodies cannot carry a shared coordinate
        yield Variant("khalil", by_articulated_form(h))
    if deep(tree):
        return
    M = plan_of(tree, "mass_matrix", objective, external, NODES // 2)
    same = h._replace(holders=(), meeting=M.meeting, sums=M.sums, carried=M.carried)
    for matrix in dict.fromkeys((M, same)):
        yield Variant("khalil", by_inertia_matrix(h, matrix))


__all__ = [
    "FORMALISMS",
    "Competition",
    "Variant",
    "candidates",
    "compete",
    "formalisms_giving",
    "plan_of",
]
