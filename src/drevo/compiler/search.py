"""Search for the fewest operations: the recursion of Khalil under every preparation of the tree, by true counts.

A `Plan` says how to prepare a tree and how to run the recursion. `search` starts from the plain preparations,
then tries the moves of body frames and the holders of pole masses one at a time and keeps what lowers the
price. A limb is tried alone, with the way to the ground: what other limbs cost does not depend on it. Its
effort is bounded in nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..codegen.graph import levers
from ..codegen.graph.node import Expr
from ..codegen.graph.program import Program
from ..mechanics.formalisms import khalil_forward
from ..mechanics.formalisms.khalil_matrix import direction_rows, parallel_runs
from ..mechanics.reduce import gauged, leaf_phase, length_unit
from ..mechanics.reframe import Move, apply_move, moves_at, reframed, resolve, settle_frames
from ..mechanics.scalar import Scalar, Vector, is_zero
from ..mechanics.spatial import Vec
from ..mechanics.tree import Tree
from ..mechanics.tree_indices import ancestors, children_of, subtree_ends
from ..mechanics.wheels import locked, restricted, with_wheels, without_last_wheels
from .tracer import Tracer

Compute = Callable[..., Any]
LIMB = 14  # bodies: larger subtrees are not searched move by move
MAX_NODES = 150_000  # traced in one search

Price = Callable[[Program], int]


def _sums_and_products(program: Program) -> int:
    counts = program.counts
    return counts["add"] + counts["mul"] + counts["div"]


def _products(program: Program) -> int:
    """Additions break ties."""
    counts = program.counts
    return 1000 * (counts["mul"] + counts["div"]) + counts["add"]


def _with_sines(program: Program) -> int:
    """A pair of sine and cosine is some 40 operations."""
    return _sums_and_products(program) + program.counts["angle_sums"] + 20 * program.counts["trig"]


OBJECTIVES: dict[str, Price] = {
    "mul": _products,
    "add+mul": _sums_and_products,
    "fma": lambda program: program.instructions,
    "add+mul+trig": _with_sines,
}


class SearchedRecursion(NamedTuple):
    """A recursion of Khalil's to search: its function, state, and the switches of a Preparation that it takes."""

    name: str
    compute: Compute
    state: tuple[str, ...]
    switches: tuple[str, ...]


def bias_efforts(tree: Tree, q: Vector, v: Vector, tau: Vector, a: Vector, parallel: bool = True) -> list[Scalar]:
    """The recursion's part of forward dynamics, with the last sum of its accelerations."""
    rest, chosen = khalil_forward.remaining_efforts(tree, q, v, tau, parallel=parallel)
    return [*rest, *(x + chosen.get(i, 0.0) for i, x in enumerate(a))]


def matrix_to_solve(
    tree: Tree, q: Vector, tau: Vector, a: Vector, absolute: Sequence[int] = (), **how: Any
) -> list[Scalar]:
    """The inertia matrix of forward dynamics, with the sums that lead to its rates and back."""
    runs = parallel_runs(tree, absolute)
    rows = runs.with_rotors(direction_rows(runs, q, **how))
    return [x for row in rows for x in row.values()] + runs.efforts(tau) + runs.rates(a)


SWEEP = ("parallel",)
MATRIX = ("carried", "meeting", "sums", "absolute")
EFFORTS_SEARCH = SearchedRecursion("efforts", bias_efforts, ("q", "v", "tau", "a"), SWEEP)
DIRECTIONS = SearchedRecursion("directions", matrix_to_solve, ("q", "tau", "a"), MATRIX)
WITHOUT_LEVER: dict[str, dict[str, Any]] = {  # what a plan loses with a lever of codegen/graph/levers.py
    "frames": {"frames": False, "moves": ()},
    "holders": {"holders": ()},
    "phase": {"phase": False},
    "unit": {"unit": False},
    "parallel": {"parallel": False, "sums": False},
    "meeting": {"meeting": 0, "carried": False},
    "sigma": {"gauge": "yy", "holders": ()},
    "wheels": {"wheels": ""},
    "absolute": {"absolute": ()},
}


def wheeled(tree: Tree, loaded: Sequence[str]) -> Tree:
    """The tree with its symmetric bodies as wheels; itself where there are none, or that lever is off."""
    return tree if "wheels" in levers.off() else with_wheels(tree, loaded)


class Preparation(NamedTuple):
    """frames: body frames by estimate first; moves: then these; holders: see reduce.gauged.

    parallel: runs of parallel axes in the recursion; carried, meeting, sums, absolute: see khalil_matrix. hoisted:
    work on parameters alone is done once, so leaf phases may be made of them.
    wheels: bodies symmetric about their hinge do not turn: "kept"; "locked", see mechanics.wheels; "apart", left
    to be accelerated afterwards. loaded: links that turn all the same.
    """

    frames: bool = False
    moves: tuple[Move, ...] = ()
    holders: tuple[tuple[int, int], ...] = ()
    gauge: str = "sigma"
    phase: bool = True
    unit: bool = True
    parallel: bool = True
    carried: bool = False
    meeting: int = 0
    sums: bool = True
    absolute: tuple[int, ...] = ()
    hoisted: bool = True
    wheels: str = ""
    loaded: tuple[str, ...] = ()

    def allowed(self) -> Preparation:
        """The plan without the levers that are switched off."""
        off = levers.off()
        return (
            self._replace(**{k: x for name in off for k, x in WITHOUT_LEVER.get(name, {}).items()})
            if off
            else self
        )

    def framed(self, tree: Tree) -> Tree:
        """The tree with its frames moved, before the gauge that counts."""
        self = self.allowed()
        tree = wheeled(tree, self.loaded) if self.wheels else tree
        tree = reframed(gauged(tree)) if self.frames else gauged(tree)
        if self.moves:
            tree = settle_frames(tree)
        for m in self.moves:
            tree = apply_move(tree, m)
        return tree

    def reduced(self, tree: Tree) -> Tree:
        """The framed tree with its inertias gauged, leaf phases and unit of length."""
        self = self.allowed()
        tree = without_last_wheels(tree) if self.wheels == "apart" else tree
        tree = locked(tree) if self.wheels == "locked" else tree
        tree = gauged(tree, self.gauge, self.holders)
        tree = leaf_phase(tree, self.hoisted) if self.phase else tree
        return length_unit(tree) if self.unit else tree

    def prepare(self, tree: Tree) -> Tree:
        """All of it."""
        return self.reduced(self.framed(tree))

    def options(self, switches: Sequence[str]) -> dict[str, Any]:
        """The keyword arguments of a recursion with these switches."""
        self = self.allowed()
        return {name: getattr(self, name) for name in switches}


def by_inertia_matrix(h: Preparation, M: Preparation) -> Compute:
    """Forward dynamics with one plan for the bias and one for the inertia matrix."""
    h, M = h.allowed(), M.allowed()

    def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector, external: Any = None) -> list[Scalar]:
        return khalil_forward.forward_dynamics(
            h.prepare(tree), q, v, tau, external, h.parallel, matrix=M.prepare(tree), **M.options(MATRIX)
        )

    return forward_dynamics


def by_articulated_form(h: Preparation) -> Compute:
    """Forward dynamics with articulated bodies after the bias, in the bias' own frames."""
    h = h.allowed()
    light = h._replace(holders=(), unit=False, wheels=h.wheels and "apart")

    def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector, external: Any = None) -> list[Scalar]:
        return khalil_forward.by_articulated_bodies(
            h.prepare(tree), q, v, tau, external, h.parallel, light.prepare(tree)
        )

    return forward_dynamics


def traced_alone(tree: Tree, run: SearchedRecursion, options: Mapping[str, Any]) -> Program:
    """A nameless program of a prepared tree, for its counts."""
    t = Tracer(run.name)
    t.tree = tree
    result = run.compute(tree, *t.state(*run.state), **options)
    rows = result if isinstance(result[0], list) else [result]
    t.output(run.name, [x for row in rows for x in row if isinstance(x, Expr)])
    return t.program()


LimbSignature = tuple[Any, ...]


def limb_signature(tree: Tree) -> LimbSignature:
    """The features that decide the operation counts of a limb; the mirror image of a limb has the same."""
    out = []
    for b in tree.bodies:
        sizes = [f"{abs(x):.9g}" for x in (*b.p, *(x for row in b.R for x in row))]
        zeros = [is_zero(x) for x in (b.inertia.m, *b.inertia.h, *b.inertia.S)]
        out.append((b.parent, b.kind, b.axis, *sizes, *zeros))
    return tuple(out)


def _both(p: Vec, h: Vec) -> list[int]:
    """The components that two vectors have."""
    return [c for c in range(3) if not is_zero(p[c]) and not is_zero(h[c])]


class Limb(NamedTuple):
    """A body, and the bodies among which its frame is tried: the way to the ground and its subtree."""

    body: int
    kept: tuple[int, ...]

    def local(self, holders: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Holders in the limb's own numbering."""
        place = {j: n for n, j in enumerate(self.kept)}
        return tuple((place[j], c) for j, c in holders if j in place)

    def here(self, m: Move) -> Move:
        """A move in the limb's own numbering."""
        bodies = m.how != "own"
        return Move(self.kept.index(m.body), m.how, self.kept.index(m.which) if bodies else m.which)

    def back(self, m: Move) -> Move:
        """And back in the tree's."""
        return Move(self.kept[m.body], m.how, self.kept[m.which] if m.how != "own" else m.which)


@dataclass(slots=True)
class Search:
    """One search on a tree of numbers: the price of plans, the nodes spent so far."""

    tree: Tree
    run: SearchedRecursion
    price: Price
    start: Preparation  # what every plan has: wheels, loads, and a unit of length or none
    budget: int = MAX_NODES
    trig: int | None = None  # no plan may call more
    seen: dict[LimbSignature, Any] = field(default_factory=dict)  # what was settled on a limb like this one
    frames: dict[tuple[str, bool, tuple[Move, ...]], Tree] = field(default_factory=dict)

    def best(self) -> list[Preparation]:
        """The cheapest plans found: one for every way with symmetric bodies and runs of parallel axes."""
        return list(dict.fromkeys(self.best_from(way) for way in self.ways()))

    def ways(self) -> Iterator[Preparation]:
        """The ways to treat symmetric bodies and runs of parallel axes, where there are any."""
        start, wheels = self.start, self.start.wheels
        yield start
        fixed = self.run in (EFFORTS_SEARCH, DIRECTIONS) or wheels == "apart"
        if not fixed and wheeled(self.tree, start.loaded) is not self.tree:
            yield start._replace(wheels="")
            if self.sweeps:
                yield start._replace(wheels="locked")
        runs = parallel_runs(settle_frames(self.framed(start)))
        if not self.sweeps and self.small and runs.after:
            yield start._replace(absolute=tuple(runs.tree.bodies[j].v for j in runs.after))

    def best_from(self, way: Preparation) -> Preparation:
        """The cheapest plan found from a way."""
        plan = self.cheapest(self.starts(way))
        for _ in range(2 if self.small else 1):
            before = plan
            plan = self.with_moves(plan)
            plan = self.with_holders(plan)
            if plan == before:
                break
        return self.cheapest(self.switches(plan))

    @property
    def sweeps(self) -> bool:
        """True if the recursion is a sweep over the bodies, and no matrix."""
        return self.run.switches == SWEEP

    @property
    def small(self) -> bool:
        return len(self.tree) <= LIMB

    def starts(self, way: Preparation) -> Iterator[Preparation]:
        """The plain preparations; large trees take the estimated frames."""
        free = any(b.kind == "free" for b in self.tree.bodies)
        units = (True, False) if way.unit else (False,)
        plain = self.sweeps or free
        for frames in (False, True) if self.small else (True,):
            for unit in units:
                for meeting in (0,) if plain or (unit is False and not self.small) else (0, 2, 3):
                    yield way._replace(frames=frames, unit=unit, meeting=meeting)

    def switches(self, plan: Preparation) -> Iterator[Preparation]:
        """The ways to run a plan, one switch at a time from it."""
        yield plan
        if self.sweeps:
            yield plan._replace(parallel=False)
        else:
            yield plan._replace(sums=False)
        if not self.small:
            return
        yield plan._replace(phase=not plan.phase)
        yield plan._replace(gauge="yy", holders=())
        if not self.sweeps:
            for meeting in range(5):
                for carried in (False, True):
                    yield plan._replace(meeting=meeting, carried=carried)

    def cheapest(self, plans: Iterable[Preparation]) -> Preparation:
        """The best of plans, the first of equals."""
        first, *others = plans
        if not others:
            return first
        return min((self.cost(p, self.framed(p)), n, p) for n, p in enumerate((first, *others)))[2]

    def framed(self, plan: Preparation) -> Tree:
        """The searched tree in a plan's frames, made once."""
        key = (plan.wheels, plan.frames, plan.moves)
        if key not in self.frames:
            self.frames[key] = plan.framed(self.tree)
        return self.frames[key]

    def cost(self, plan: Preparation, framed: Tree) -> int:
        """The price of a plan on a framed tree, or on a limb of it."""
        program = traced_alone(plan.reduced(framed), self.run, plan.options(self.run.switches))
        self.budget -= len(program.graph)
        return self.price(program) + (10**9 if self.trig is not None and program.counts["trig"] > self.trig else 0)

    def limbs(self, tree: Tree) -> Iterator[Limb]:
        """For every body with a small subtree, while the budget lasts."""
        parents, ends = tree.parents, subtree_ends(tree.parents)
        for i in range(len(parents)):
            kept = tuple(sorted({*ancestors(parents, i), *range(i, ends[i])}))
            if len(kept) <= LIMB and self.budget > 0:
                yield Limb(i, kept)

    def with_moves(self, plan: Preparation) -> Preparation:
        """Moves of body frames that lower the price of their limb, tried in the order of the bodies."""
        tree, moves = settle_frames(self.framed(plan)), list(plan.moves)
        for limb in self.limbs(tree):
            own, part = plan._replace(holders=limb.local(plan.holders)), restricted(tree, limb.kept)
            key = (limb.kept.index(limb.body), own.wheels, own.absolute, own.holders, limb_signature(part))
            if key not in self.seen:
                self.seen[key] = self.moves_of(own, part, key[0])
            for m in self.seen[key]:
                moves.append(limb.back(m))
                tree = apply_move(tree, moves[-1])
        return plan._replace(moves=tuple(moves))

    def moves_of(self, plan: Preparation, tree: Tree, i: int) -> list[Move]:
        """The moves of body i that pay on a limb, one after another. On large trees only slides are tried."""
        out, least = [], None
        for m in list(moves_at(tree, i, children_of(tree.parents)[i])):
            if resolve(tree, m) is None or not (self.small or m.how in ("own", "child")):
                continue
            least = self.cost(plan, tree) if least is None else least
            after = apply_move(tree, m)
            price = self.cost(plan, after)
            if price < least:
                out.append(m)
                tree, least = after, price
        return out

    def with_holders(self, plan: Preparation) -> Preparation:
        """Bodies that take a pole mass so that a component of their parent's h vanishes."""
        if not self.sweeps:
            return plan
        tree = self.framed(plan)
        plain = gauged(tree, plan.gauge, plan.holders)
        for limb in self.limbs(tree):
            b = tree.bodies[limb.body]
            if b.parent < 0 or b.kind != "revolute" or any(j == limb.body for j, _ in plan.holders):
                continue
            useful = _both(b.p, plain.bodies[b.parent].inertia.h)
            own, part = plan._replace(holders=limb.local(plan.holders)), restricted(tree, limb.kept)
            key = ("h", limb.kept.index(limb.body), own.wheels, own.holders, tuple(useful), limb_signature(part))
            if useful and key not in self.seen:
                self.seen[key] = self.holder_of(own, part, limb.kept.index(limb.body), useful)
            if useful and self.seen[key] is not None:
                plan = plan._replace(holders=(*plan.holders, (limb.body, self.seen[key])))
        return plan

    def holder_of(self, plan: Preparation, tree: Tree, i: int, useful: Sequence[int]) -> int | None:
        """The component that body i should take from its parent's h, if any pays."""
        least, chosen = self.cost(plan, tree), None
        for c in useful:
            price = self.cost(plan._replace(holders=(*plan.holders, (i, c))), tree)
            if price < least:
                least, chosen = price, c
        return chosen
