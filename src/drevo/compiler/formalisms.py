"""The formalisms: one table of who gives which quantity, and the choice from it.

Equations that people read are chosen by their count, of all the ways that `candidates` finds worth tracing.
Compiled code is chosen by time: a pair of sine and cosine costs about as much as 40 other operations, so no angle
sums are made; and a cold start may not wait for a search. It runs the recursion of Khalil after the plain
preparations, all quantities of a list on the same trees, so that what they share is one node of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

from ..errors import TraceError, one_of
from ..mechanics.algorithms.explicit import NEEDS, explicit
from ..mechanics.algorithms.inertia_matrix import Factors, factorised, lower_rows
from ..mechanics.algorithms.inverse_dynamics import External
from ..mechanics.algorithms.passive import COASTING, coasts, with_forces
from ..mechanics.formalisms import khalil_derivatives, khalil_forward, khalil_matrix
from ..mechanics.letters import lettered
from ..mechanics.reduce import gauged, linear_rates
from ..mechanics.scalar import Matrix, Scalar, Vector
from ..mechanics.tree import Tree
from ..model.quantities import CATALOGUE
from .search import (
    DIRECTIONS,
    EFFORTS_SEARCH,
    MATRIX,
    MAX_NODES,
    OBJECTIVES,
    SWEEP,
    Compute,
    Preparation,
    Search,
    SearchedRecursion,
    by_articulated_form,
    by_inertia_matrix,
    traced_alone,
    wheeled,
)

MAX_DENSE_RATES = 200  # rates: beyond it an inertia matrix is no way to accelerations
SEARCHED = 64  # bodies: beyond it the plain preparations have to do
OTHERS = 16  # bodies: up to it the formalisms that were not made for few operations compete too
SPEED = "speed"  # of compiled code: what `candidates` is asked for beside the objectives of counts
MEETINGS = (0, 2)  # of Zaremba's columns and wrenches: at the root of a limb, or past its first joints
OPERATIONAL = ("operational_inertia", "inverse_operational_inertia", "operational_space")
IN_METRES, IN_A_UNIT = Preparation(frames=True, unit=False), Preparation(frames=True)  # a page of letters; numbers


def _always(tree: Tree, external: Sequence[str]) -> bool:
    return True


def _small(tree: Tree, external: Sequence[str]) -> bool:
    """Books of many operations."""
    return len(tree) <= OTHERS and not external


def _plane(tree: Tree, external: Sequence[str]) -> bool:
    from ..mechanics.formalisms.planar import flat

    return not external and flat(gauged(tree)) is not None


def _named_alone(tree: Tree, external: Sequence[str]) -> bool:
    """Books that are read, and never of the fewest operations."""
    return False


class Row(NamedTuple):
    """The entry of a quantity under a formalism: the function of that name in a module of drevo.mechanics.

    The module is imported when it is asked for. tried: on which trees, and under wrenches or not, where no
    formalism is named. prepare: what the tree goes through first. settings: arguments of the function, each set is
    tried. most: rates, beyond which it gives nothing. switches: of a Preparation that the function takes; the best
    one is searched. unit: it takes a tree in any unit of length. entry: the function's name, if it is another.
    """

    module: str
    tried: Callable[[Tree, Sequence[str]], bool] = _always
    prepare: Callable[[Tree], Tree] | None = None
    settings: Sequence[Mapping[str, Any]] = ({},)
    most: float = float("inf")
    switches: tuple[str, ...] = ()
    unit: bool = False
    entry: str = ""

    def compute(self, name: str) -> Compute:
        """The function."""
        found: Compute = getattr(import_module(f"..mechanics.{self.module}", __package__), self.entry or name)
        return found

    def plan(self, tree: Tree, external: Sequence[str]) -> Preparation:
        """The plain preparation for Khalil's recursion; without switches nothing brings rates back to metres."""
        unit = self.unit and not external and not (linear_rates(tree) and not self.switches)
        return Preparation(frames=True, unit=unit, wheels="kept", loaded=tuple(external))


_FORMALISM_ROWS = (
    ("newton_euler", "inverse_dynamics bias gravity inertia_product", Row("algorithms.inverse_dynamics")),
    ("newton_euler", "forward_dynamics", Row("algorithms.inertia_matrix", most=MAX_DENSE_RATES)),
    ("newton_euler", "mass_matrix inverse_mass_matrix", Row("algorithms.inertia_matrix")),
    ("newton_euler", "coriolis_matrix", Row("algorithms.derivatives")),
    ("newton_euler", "inverse_dynamics_derivatives forward_dynamics_derivatives",
     Row("algorithms.derivatives", _small)),
    ("newton_euler", "kinetic_energy potential_energy center_of_mass momentum", Row("algorithms.energy")),
    ("newton_euler", "pose poses jacobian velocity acceleration", Row("algorithms.kinematics")),
    ("newton_euler", "operational_inertia inverse_operational_inertia", Row("algorithms.task_space")),
    ("newton_euler", "center_of_mass_jacobian centroidal_momentum_matrix centroidal_momentum_bias jacobian_bias "
     "manipulability operational_space", Row("algorithms.task_space")),
    ("newton_euler", "joint_wrenches joint_power power_balance", Row("algorithms.inverse_dynamics")),
    ("newton_euler", "regressor", Row("algorithms.regressor")),
    ("newton_euler", "passive", Row("algorithms.passive")),
    ("khalil", "inverse_dynamics", Row("formalisms.khalil", switches=SWEEP, unit=True)),
    ("khalil", "bias gravity", Row("formalisms.khalil_forward", switches=SWEEP, unit=True)),
    ("khalil", "forward_dynamics",
     Row("formalisms.khalil_forward", switches=SWEEP + MATRIX, unit=True, most=MAX_DENSE_RATES)),
    ("khalil", "mass_matrix inverse_mass_matrix", Row("formalisms.khalil_matrix", switches=MATRIX, unit=True)),
    ("khalil", "inverse_dynamics_derivatives forward_dynamics_derivatives",
     Row("formalisms.khalil_derivatives", unit=True)),
    ("khalil", "inertia_product", Row("algorithms.inverse_dynamics")),  # on its gauged bodies
    ("khalil", "kinetic_energy", Row("algorithms.energy")),
    ("planar", "inverse_dynamics bias gravity mass_matrix inverse_mass_matrix forward_dynamics",
     Row("formalisms.planar", _plane, gauged)),
    ("articulated_body", "forward_dynamics", Row("algorithms.articulated_body", prepare=gauged)),
    ("vereshchagin", "forward_dynamics", Row("formalisms.vereshchagin", _small)),
    ("vereshchagin_planar", "forward_dynamics", Row("formalisms.vereshchagin_planar", _named_alone)),
    ("telegin", "mass_matrix kinetic_energy", Row("formalisms.telegin", _small)),
    ("telegin", "inverse_dynamics bias gravity coriolis_matrix potential_energy",
     Row("formalisms.telegin_lagrange", _small)),
    ("kovalchuk", "inverse_dynamics bias mass_matrix", Row("formalisms.kovalchuk", _small)),
    ("zaremba", "inverse_dynamics bias gravity mass_matrix coriolis_matrix",
     Row("formalisms.zaremba", _small, lettered(IN_METRES.prepare), [{"meeting": x} for x in MEETINGS])),
    *((p.split("_")[0], name, Row(f"formalisms.{p}", _named_alone, entry=f"{name}_lines")) for p, names in (
        ("zaremba_motion_page", "kinetic_energy velocity jacobian acceleration pose"),
        ("kovalchuk_motion_page", "velocity jacobian"), ("alyushin_page", "power_balance joint_power"),
    ) for name in names.split()),
    ("alyushin", "kinetic_energy", Row("formalisms.alyushin", _small)),
)  # fmt: skip
TABLE: dict[tuple[str, str], Row] = {(f, name): row for f, names, row in _FORMALISM_ROWS for name in names.split()}
PAPERS = ("telegin", "vereshchagin", "kovalchuk", "zaremba", "alyushin")
PAGES = {  # by vectors and matrices, as the papers write them
    "vereshchagin": "forward_dynamics",
    "kovalchuk": "inverse_dynamics bias mass_matrix",
    "zaremba": "inverse_dynamics bias gravity mass_matrix coriolis_matrix",
    "alyushin": "kinetic_energy power_balance joint_power",
}
FORMALISMS = tuple(dict.fromkeys(f for f, _ in TABLE))


class Candidate(NamedTuple):
    """Whose, the algorithm of every quantity, and what the tree goes through first."""

    formalism: str
    compute: Mapping[str, Compute]
    prepare: Callable[[Tree], Tree] | None = None


def page_of_paper(formalism: str, name: str) -> tuple[str, Compute]:
    """The paper that a quantity is written by, "auto" is the first that gives it, and its path line by line."""
    if one_of("formalism", formalism, ("auto", *FORMALISMS)) not in ("auto", *PAPERS):
        raise TraceError(f"sequence 'paper' is that of {', '.join(PAPERS)}, not of {formalism}")
    giving = [f for f in PAPERS if (f, name) in TABLE]
    chosen = giving[0] if formalism == "auto" and giving else formalism
    if chosen not in giving:
        ask = f": ask for formalism={giving[0]!r}" if giving else "none of the five papers: leave sequence out"
        raise TraceError(f"sequence 'paper': {name} is given by {', '.join(giving)}{ask}")
    row = TABLE[chosen, name]
    if name in PAGES.get(chosen, "").split() and not row.module.endswith("_page"):
        row = row._replace(module=f"formalisms.{chosen}_page")
    return chosen, row.compute(name)


def formalisms_giving(name: str) -> list[str]:
    """The formalisms that give a quantity."""
    return [f for f, given in TABLE if given == name]


def common_algorithm(name: str) -> Compute:
    """The common algorithm of a quantity."""
    plain = _plain_algorithm(name)

    def run(tree: Tree, *state: Any, **options: Any) -> Any:
        if tree.formulas and name != "passive":
            parts = {need: common_algorithm(need) for need in NEEDS.get(name, (name,))}
            return explicit(name, parts)(tree, *state, **options)
        return _coasting(name, tree, plain)(tree, *state, **options)

    return run


def _plain_algorithm(name: str) -> Compute:
    """The common algorithm of a quantity for trees without joints by formula and rotors of free joints."""
    return TABLE["newton_euler", name].compute(name)


def _coasting(name: str, tree: Tree, compute: Compute) -> Compute:
    """With what the rotors of free joints feel."""
    return with_forces(name, compute, COASTING) if coasts(tree) else compute


def fastest(tree: Tree, names: Sequence[str], external: Sequence[str] = ()) -> Mapping[str, Compute]:
    """The algorithms that compiled code runs for these quantities."""
    return candidates(tree, names, external=external)[0].compute


def candidates(
    tree: Tree, names: Sequence[str], formalism: str = "auto", external: Sequence[str] = (), purpose: str = SPEED
) -> list[Candidate]:
    """The ways to quantities of a tree that are worth tracing: one for speed, else of one quantity any number.

    formalism: whose, or "auto". purpose: "speed", or the objective by which the fewest operations are counted.
    """
    if tree.formulas:
        return _by_formula(tree, names, formalism, external, purpose)
    if coasts(tree):
        return [
            x._replace(compute={name: _coasting(name, tree, f) for name, f in x.compute.items()})
            for x in _plain_candidates(tree, names, formalism, external, purpose)
        ]
    return _plain_candidates(tree, names, formalism, external, purpose)


def _plain_candidates(
    tree: Tree, names: Sequence[str], formalism: str, external: Sequence[str], purpose: str
) -> list[Candidate]:
    """The candidates to trace for trees without joints by formula and rotors of free joints."""
    if purpose == SPEED and formalism == "auto":
        return [_compiled(tree, names, external)]
    if purpose == SPEED and formalism == "newton_euler":
        return [Candidate(formalism, {name: _plain_algorithm(name) for name in names})]
    if len(names) != 1:
        raise TraceError(f"formalism {formalism!r} gives one quantity at a time, not {', '.join(names)}")
    chosen = [formalism]
    if one_of("formalism", formalism, ("auto", *FORMALISMS)) == "auto":
        chosen = [f for f in formalisms_giving(names[0]) if TABLE[f, names[0]].tried(tree, external)]
    else:
        _require_given(formalism, names[0], external)
    found = [x for f in chosen for x in _candidates(f, tree, names[0], external, purpose)]
    if formalism == "auto":
        found = [x._replace(prepare=lettered(IN_A_UNIT.prepare)) if x.formalism == "zaremba" else x for x in found]
    return found


def _by_formula(
    tree: Tree, names: Sequence[str], formalism: str, external: Sequence[str], purpose: str
) -> list[Candidate]:
    """The ways on a tree with joints by formula, from those of what is needed on the expanded tree."""
    wanted = [name for name in names if name != "passive"]  # which is of the joints' own coordinates
    needs = list(dict.fromkeys(x for name in wanted for x in NEEDS.get(name, (name,))))
    if purpose == SPEED and formalism in ("auto", "newton_euler"):
        ways = [(x.formalism, x.compute) for x in candidates(tree.expanded, needs, formalism, external, purpose)]
    else:
        ways = list(_each_need(tree.expanded, needs, formalism, external, purpose))
    rest = {name: common_algorithm(name) for name in names if name not in wanted}
    return [Candidate(f, {name: explicit(name, parts) for name in wanted} | rest) for f, parts in ways]


def _each_need(
    tree: Tree, needs: Sequence[str], formalism: str, external: Sequence[str], purpose: str
) -> Iterator[tuple[str, Mapping[str, Compute]]]:
    """The ways of every formalism that gives all of some quantities, each with the first of the others."""
    loaded = {name: external if CATALOGUE[name].external else () for name in needs}
    chosen = [formalism]
    if one_of("formalism", formalism, ("auto", *FORMALISMS)) == "auto":
        rows = {f: [TABLE.get((f, name)) for name in needs] for f in FORMALISMS}
        chosen = [f for f, own in rows.items() if all(r and r.tried(tree, external) for r in own)]
    for f in chosen:
        found = {name: candidates(tree, [name], f, loaded[name], purpose) for name in needs}
        for k in range(max(map(len, found.values()), default=1)):
            if all(found.values()):
                yield f, {name: _prepared(c[min(k, len(c) - 1)], name) for name, c in found.items()}


def _prepared(c: Candidate, name: str) -> Compute:
    """A candidate's algorithm with what the tree goes through first."""
    prepare, compute = c.prepare, c.compute[name]
    return (
        compute if prepare is None else lambda tree, *state, **options: compute(prepare(tree), *state, **options)
    )


def _require_given(formalism: str, name: str, external: Sequence[str]) -> None:
    if (formalism, name) not in TABLE:
        raise TraceError(
            f"formalism {formalism!r} does not give {name}; these do: {', '.join(formalisms_giving(name))}"
        )
    if external and "external" not in signature(TABLE[formalism, name].compute(name)).parameters:
        able = [
            f for f in formalisms_giving(name) if "external" in signature(TABLE[f, name].compute(name)).parameters
        ]
        hint = f"; these do: {', '.join(able)}" if able else ""
        raise TraceError(f"{name} by formalism {formalism!r} takes no external wrenches{hint}")


def _candidates(
    formalism: str, tree: Tree, name: str, external: Sequence[str], purpose: str
) -> Iterator[Candidate]:
    row = TABLE[formalism, name]
    if tree.nv > row.most:
        return
    if formalism != "khalil":
        for given in row.settings:
            yield Candidate(formalism, {name: partial(row.compute(name), **given)}, row.prepare)
    elif name == "forward_dynamics":
        for compute in _accelerations(tree, external, purpose):
            yield Candidate(formalism, {name: compute})
    else:
        plans = best_plans(tree, name, external, purpose) if row.switches else [row.plan(tree, external)]
        for plan in plans:
            compute = partial(row.compute(name), **plan.options(row.switches))
            yield Candidate(formalism, {name: compute}, plan.prepare)


# -- the fewest operations --------------------------------------------------------------------------------------


def searched_recursion(name: str) -> SearchedRecursion:
    """The recursion that the search traces for a quantity."""
    row = TABLE["khalil", name]
    return SearchedRecursion(name, row.compute(name), CATALOGUE[name].state, row.switches)


def best_plans(
    tree: Tree, name: str, external: Sequence[str], objective: str, budget: int = MAX_NODES, wheels: str = "kept"
) -> list[Preparation]:
    """The preparations of fewest operations for a quantity of a tree of numbers, before regrouping."""
    start = Preparation(frames=True, unit=not external, wheels=wheels, loaded=tuple(external))
    if len(tree) > SEARCHED or not tree.bodies:
        return [start]
    turning = start._replace(wheels="").prepare(tree)
    trig = traced_alone(turning, searched_recursion("inverse_dynamics"), {}).counts["trig"]
    alike = {"inverse_mass_matrix": "mass_matrix"}.get(name, name)
    run = {x.name: x for x in (EFFORTS_SEARCH, DIRECTIONS)}.get(name) or searched_recursion(alike)
    return Search(tree, run, OBJECTIVES[objective], start, budget, trig).best()


def _accelerations(tree: Tree, external: Sequence[str], objective: str) -> Iterator[Compute]:
    """Bias and inertia matrix each after its own preparation; their trigonometry must be shared."""
    turned = wheeled(tree, external)
    for wheels in ("",) if turned is tree else ("", "kept"):
        made = turned if wheels else tree
        (h,) = best_plans(tree, EFFORTS_SEARCH.name, external, objective, MAX_NODES // 2, wheels)
        if not khalil_forward.shared_rates(made):  # which articulated bodies cannot carry
            yield by_articulated_form(h)
        if khalil_forward.deep(made):
            continue
        for M in best_plans(tree, DIRECTIONS.name, external, objective, MAX_NODES // 2, wheels and "apart"):
            same = M._replace(frames=h.frames, moves=h.moves, gauge=h.gauge, phase=h.phase, unit=h.unit)
            for matrix in dict.fromkeys((M, same)):
                yield by_inertia_matrix(h, matrix)


# -- the least time ---------------------------------------------------------------------------------------------


class _Prepared:
    """A tree under several preparations, each made once for a trace."""

    def __init__(self) -> None:
        self.trees: dict[Preparation, Tree] = {}

    def run(self, plan: Preparation, compute: Compute, switches: Sequence[str] = ()) -> Compute:
        """An algorithm on the tree that a plan prepares."""

        def on(tree: Tree, *state: Any, **extra: Any) -> Any:
            if plan not in self.trees:
                self.trees[plan] = plan.prepare(tree)
            return compute(self.trees[plan], *state, **extra, **plan.options(switches))

        return on


def _compiled(tree: Tree, names: Sequence[str], external: Sequence[str]) -> Candidate:
    """The algorithm of Khalil where there is one, else the common algorithm."""
    prepared, found, own = _Prepared(), {name: _plain_algorithm(name) for name in names}, False
    for name in names:
        row = TABLE.get(("khalil", "mass_matrix" if name in OPERATIONAL else name))
        if row is None:
            continue
        own, plan = True, row.plan(tree, external)._replace(parallel=False, sums=False, hoisted=False)
        if name in OPERATIONAL:
            rows = prepared.run(plan, khalil_matrix.mass_matrix_rows, MATRIX)
            if name == "operational_space":
                forces = [prepared.run(plan, TABLE["khalil", x].compute(x), SWEEP) for x in ("bias", "gravity")]
                found[name] = partial(_task_space, found[name], rows, forces)
            else:
                found[name] = partial(_operational, found[name], rows)
        elif name != "forward_dynamics":
            found[name] = prepared.run(plan, row.compute(name), row.switches)
        elif "forward_dynamics_derivatives" in names:  # which have the common algorithm's factors
            found[name] = prepared.run(plan._replace(unit=False), found[name])
        else:
            found[name] = _forward(tree, names, plan, prepared)
    return Candidate("khalil" if own else "newton_euler", found)


def _forward(tree: Tree, names: Sequence[str], plan: Preparation, prepared: _Prepared) -> Compute:
    """Accelerations, from what the list has for them."""
    if khalil_forward.deep(wheeled(tree, plan.loaded)) and "mass_matrix" not in names:
        return by_articulated_form(plan)
    if "bias" in names:
        return prepared.run(plan, _from_bias, MATRIX)
    return by_inertia_matrix(plan, plan if "mass_matrix" in names else plan._replace(wheels="apart"))


def _from_bias(
    tree: Tree, q: Vector, v: Vector, tau: Vector, external: External | None = None, **how: Any
) -> list[Scalar]:
    h = khalil_forward.bias(tree, q, v, external, parallel=False)
    factors = factorised(tree, khalil_matrix.mass_matrix_rows(tree, q, **how))
    return factors.solve([t - x for t, x in zip(tau, h)])


def unsolved_derivatives(
    tree: Tree, q: Vector, v: Vector, tau: Vector
) -> tuple[list[Scalar], Matrix, Matrix, Factors]:
    """a, dtau/dq and dtau/dv at it, and the factors of M, for code that solves for many columns at once."""
    made = derived_tree(tree)
    if made is not None:
        return khalil_derivatives.before_solving(made, q, v, tau)
    compute = fastest(tree, ["forward_dynamics", "inverse_dynamics_derivatives"])
    a = compute["forward_dynamics"](tree, q, v, tau)
    dq, dv, M = compute["inverse_dynamics_derivatives"](tree, q, v, a)
    return a, dq, dv, factorised(tree, lower_rows(M))


def derived_tree(tree: Tree, loaded: Sequence[str] = ()) -> Tree | None:
    """The tree for the recursion of derivatives; None if it cannot take this. loaded: links that forces act on."""
    if tree.formulas or coasts(tree):
        return None
    plan = TABLE["khalil", "forward_dynamics_derivatives"].plan(tree, loaded)
    return plan._replace(parallel=False, sums=False, hoisted=False).prepare(tree)


def _task_space(
    compute: Compute, rows: Compute, forces: Sequence[Compute], tree: Tree, q: Vector, v: Vector, **how: Any
) -> Any:
    """Equations of a link in its own place, by the inertia matrix and the forces of the prepared tree."""
    bias, gravity = forces
    return compute(tree, q, v, **how, rows=rows(tree, q), forces=(bias(tree, q, v), gravity(tree, q)))


def _operational(compute: Compute, rows: Compute, tree: Tree, q: Vector, link: str, frame: str) -> Any:
    """Inertia of a link in its own place, by the inertia matrix of the prepared tree."""
    return compute(tree, q, link, frame, rows(tree, q))
