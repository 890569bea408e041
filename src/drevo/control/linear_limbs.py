"""Linear models of one state of a robot with limbs that are alike: what is traced of one runs for all at once."""

from __future__ import annotations

from collections.abc import Sequence

from ..codegen.graph.program import Program
from ..compiler.limbs import LimbState
from ..compiler.tracer import Tracer
from ..constrained.constraint import Constraint, Contact
from ..constrained.numbers import Numbered, pattern_of, with_numbers
from ..mechanics.acting import FORCES, Acting, passive_forces, slopes
from ..mechanics.formalisms import khalil_derivatives
from ..mechanics.formalisms.khalil_held import HeldPoint, HeldSlopes, held_slopes
from ..mechanics.scalar import Vector
from ..mechanics.spatial import Vec
from ..model.description import Model
from .columns import ModelColumns, beyond_motion

Places = list[tuple[int, ...]]


def free_limbs(model: Model, driven: Sequence[int], acts: bool, short: bool = False) -> Program | None:
    """What `linear_kernels.free_program` computes; None where no limbs are alike."""
    found = _limbs(model, acts)
    if found is None:
        return None
    state, acting = found
    q, v, tau = state.arguments("q", "v", "tau")
    force = [x + p for x, p in zip(tau, passive_forces(acting, state.tree.nv, q, v))]
    a, dq, dv, f = khalil_derivatives.before_solving(state.tree, q, v, force)
    u = state.vector(v, state.v)
    point = [*state.vector(a, state.v), *state.vector(q, state.q), *u, *state.vector(tau, state.v)]
    changes = [state.matrix(A) for A in beyond_motion(slopes(acting, q, v), dq, dv)]
    made: Program | None = ModelColumns(state, driven, short).program(model, u, changes, state.factors(f), point)
    return made


def held_limbs(
    model: Model, pattern: tuple[Constraint, ...], driven: Sequence[int], acts: bool, short: bool = False
) -> Program | None:
    """The same of `linear_kernels.held_program`, where each limb has one contact and these are alike."""
    found = _limbs(model, acts, [link for c in pattern for link in c.links])
    order = _by_limb(found[0], pattern) if found else []
    if found is None or not order:
        return None
    state, acting = found
    first = pattern[order[0]]
    m = first.size * len(pattern)
    rows, past = _among(order, first.size), m + 1 + model.nq
    a = state.argument("motion", state.v)
    held = state.argument("held", [*rows, (m,), *_behind(state.q, m + 1), *_behind(state.v, past)])
    N, q, v = held[: first.size], held[first.size + 1 : -state.tree.nv], held[-state.tree.nv :]
    tau = state.argument("tau", state.v)
    state.argument("t", [(0,)])
    count = len(Numbered.of([first]).numbers)
    (c,) = with_numbers([first], state.argument("numbers", _among(order, count)) if count else [])
    assert isinstance(c, Contact)
    frame = state.frame([pattern[k].links[0] for k in order])
    point = HeldPoint(frame.body, frame.p + frame.R @ Vec(*c.point), c.size)
    h = held_slopes(state.tree, q, v, a, [point], N)
    whole = HeldSlopes(
        [], [], state.factors(h.factors), state.matrix(h.jacobian, rows),
        (state.matrix(h.slopes[0], rows), state.matrix(h.slopes[1], rows)), state.vector(h.sizes, rows),
        tuple(range(0, m, 3)) if h.turned else (), h.turn,
    )  # fmt: skip
    u = state.vector(v, state.v)
    point_of: Vector = [*state.vector(a, state.v), *state.vector(N, rows), *state.vector(q, state.q), *u]
    changes = [state.matrix(A) for A in beyond_motion(slopes(acting, q, v), h.dq, h.dv)]
    made: Program | None = ModelColumns(state, driven, short).program(
        model, u, changes, whole.factors, [*point_of, *state.vector(tau, state.v)], whole
    )
    return made


def _limbs(model: Model, acts: bool, links: Sequence[str] = ()) -> tuple[LimbState, tuple[Acting, ...]] | None:
    """What is declared, and the passive forces."""
    state = LimbState.of(Tracer("linearise", model, acting=acts), links)
    acting = None if state is None else _acting(state)
    return None if state is None or acting is None else (state, acting)


def _acting(state: LimbState) -> tuple[Acting, ...] | None:
    """The passive forces, those of all limbs as one; None where they are not alike, or not of joints alone."""
    tree, found = state.whole, list[Acting]()
    of = {f.v: f for f in tree.acting}
    if tree.tendons is not None or tree.lift is not None or len(of) < len(tree.acting):
        return None
    for k, rates in enumerate(state.v):
        same = [of[r] for r in rates if r in of]
        if not same:
            continue
        if len(same) < len(rates) or len({(f.kind, f.n, f.ratio, f.shift, f.rest) for f in same}) > 1:
            return None
        numbers = state.numbers([tuple(getattr(f, x) for x in FORCES) for f in same])
        at = next(i for i, p in enumerate(state.q) if same[0].q in p)
        found.append(same[0]._replace(q=at, v=k, **dict(zip(FORCES, numbers))))
    return tuple(found)


def _by_limb(state: LimbState, pattern: Sequence[Constraint]) -> list[int]:
    """Which contact is upon which limb; empty where they are not one each, alike and at the same body."""
    if not all(isinstance(c, Contact) for c in pattern) or len(pattern) != state.count:
        return []
    bodies = [state.whole.frames[c.links[0]].body for c in pattern]
    order = [[k for k, b in enumerate(bodies) if b in run] for run in state.limbs]
    if any(len(found) != 1 for found in order):
        return []
    alike = {
        (bodies[k] - run[0], pattern[k].size, Numbered.of(pattern_of([pattern[k]])).signature[0][2:])
        for (k,), run in zip(order, state.limbs)
    }
    return [k for (k,) in order] if len(alike) == 1 else []


def _among(order: Sequence[int], count: int) -> Places:
    """Where numbers stand of which every contact has so many: by number, of the limbs."""
    return [tuple(k * count + i for k in order) for i in range(count)]


def _behind(places: Sequence[Sequence[int]], first: int) -> Places:
    return [tuple(first + k for k in p) for p in places]
