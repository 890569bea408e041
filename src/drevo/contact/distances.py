"""Distances between geoms of a robot, their nearest points and Jacobians, as compiled functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function
from ..codegen.graph.program import Program
from ..codegen.llvm.stages import StageCalls, Stages
from ..codegen.store.memo import memoised
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..errors import InputError, one_of, shown
from ..mechanics.algorithms.colliders import between
from ..mechanics.algorithms.kinematics import placed_bodies
from ..mechanics.spatial import Vec
from ..mechanics.tree import build_tree
from ..model.contact import Geom
from ..model.description import Model
from ..model.draft import model_of
from ..model.pairing import adjacent_links, as_ruled, touching_pairs, weld_bodies
from .convex.solids import DISTANCE_NUMBERS, PLACED_GEOM_NUMBERS, PairSearch, placed_numbers
from .laws.soft.couplings import Columns
from .laws.soft.stages import StageTracer
from .pairs import held_geom, with_ground

Array = np.ndarray[Any, Any]
GeomPairs = tuple[tuple[str, str], ...]
CLOSED_PAIRS = {("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule"), ("plane", "sphere")}
MAX_CLOSED_PAIRS = 100  # in straight-line code, which is compiled in seconds
POSTURES = 64  # random ones, in all of which a pair touches that is left out
AUTO = "auto"


class Distances(NamedTuple):
    """Distances of n pairs of geoms, by name: distance (..., n), m, negative where they are in each other; points
    (..., n, 2, 3) of both surfaces, m, and normal (..., n, 3), from the first to the second, in world axes."""

    pairs: GeomPairs
    distance: Array
    points: Array
    normal: Array


def distances(robot: Any, q: ArrayLike, pairs: Any = AUTO) -> Distances:
    """The distances between pairs of geoms, as `Robot.distance` has them."""
    chosen = chosen_pairs(robot, pairs)
    return Distances(chosen, *distance_function(robot, chosen)(q))


def distance_jacobians(robot: Any, q: ArrayLike, pairs: Any = AUTO) -> Array:
    """The derivatives of the distances by the rates, (..., n, nv), as `Robot.distance_jacobian` has them."""
    found: Array = distance_function(robot, chosen_pairs(robot, pairs), jacobian=True)(q)
    return found


def distance_function(robot: Any, pairs: GeomPairs, jacobian: bool = False) -> Function:
    """f(q) -> (distance, points, normal), or its Jacobian, for pairs of geoms by name."""
    name = "distance_jacobian" if jacobian else "distance"

    def make() -> Function:
        model = with_ground(model_of(robot, "distance"), None)
        return requested(robot, (name, pairs), lambda: _program(model, name, pairs))

    return memoised(robot, (name, pairs), make)


def _program(model: Model, name: str, pairs: GeomPairs) -> Program:
    geoms = {x.name: x for x in model.geoms}
    ruled = [as_ruled(geoms[a], geoms[b]) for a, b in pairs]
    if len(pairs) <= MAX_CLOSED_PAIRS and all((a.kind, b.kind) in CLOSED_PAIRS for a, b in ruled):
        return _closed(model, name, [(a, b, a.name == x) for (a, b), (x, _) in zip(ruled, pairs)])
    used = list(dict.fromkeys(x for pair in pairs for x in pair))
    tree = build_tree(model)
    n, nv = len(pairs), tree.nv
    shapes: dict[str, tuple[int, ...]] = {"distance": (n,), "points": (n, 2, 3), "normal": (n, 3)}
    if name != "distance":
        shapes = {"jacobian": (n, nv)}
    blocks = {"places": PLACED_GEOM_NUMBERS * len(used), "found": DISTANCE_NUMBERS * n}
    sizes = {"q": tree.nq, **blocks, **{k: int(np.prod(x)) for k, x in shapes.items()}}
    parts = {"place": _placing(model, sizes, [geoms[x] for x in used])}
    ends = [(used.index(a), used.index(b)) for a, b in pairs]
    bodies = [tuple(held_geom(tree, geoms[x]).body for x in pair) for pair in pairs]
    parts["tell"] = _telling(sizes, n) if name == "distance" else _moving(model, sizes, bodies)
    search = PairSearch((geoms[a], geoms[b]) for a, b in pairs)

    def calls(c: StageCalls) -> None:
        c.call("place")
        for k, (a, b) in enumerate(ends):
            search.distance(
                c,
                k,
                c.at("places", PLACED_GEOM_NUMBERS * a),
                c.at("places", PLACED_GEOM_NUMBERS * b),
                c.at("found", DISTANCE_NUMBERS * k),
            )
        c.call("tell")

    t = Tracer(name, model)
    t.state("q")
    for result, shape in shapes.items():
        t.output(result, [0.0] * sizes[result], shape)
    return replace(t.program(), stages=Stages(blocks, parts, calls))


def _closed(model: Model, name: str, pairs: Sequence[tuple[Geom, Geom, bool]]) -> Program:
    """Every pair in closed form; the last of each: True where its first geom is the first one of the results."""
    t = Tracer(name, model)
    (q,) = t.state("q")
    poses = placed_bodies(t.tree, q)
    columns, distance, points, normals, jacobian = Columns(t.tree, poses), [], [], [], []
    for a, b, same in pairs:
        ends = held_geom(t.tree, a), held_geom(t.tree, b)
        touch = between(*(x.at(poses) for x in ends))[0]
        n = touch.frame[0] if same else -touch.frame[0]
        first = touch.point - n * (0.5 * touch.dist)
        distance.append(touch.dist)
        points += [*first, *(first + n * touch.dist)]
        normals += [*n]
        moves = columns.relative(ends[not same].body, ends[same].body, first) if name != "distance" else {}
        jacobian += [n.dot(moves[k].v) if k in moves else 0.0 for k in range(t.tree.nv)]
    if name == "distance":
        t.output("distance", distance)
        t.output("points", points, (len(pairs), 2, 3))
        t.output("normal", normals, (len(pairs), 3))
    else:
        t.output("jacobian", jacobian, (len(pairs), t.tree.nv))
    return t.program()


def _placing(model: Model, sizes: dict[str, int], geoms: Sequence[Geom]) -> Program:
    """The stage that places the geoms."""
    t = Tracer("place", model)
    q = t.input("q", sizes["q"])
    for o in t.tree.owners():
        if o.nq > o.nv:
            t.require_unit(q[o.q + o.nq - 4 : o.q + o.nq])
    poses = placed_bodies(t.tree, q)
    t.output("places", [x for geom in geoms for x in placed_numbers(held_geom(t.tree, geom).at(poses))])
    return t.program()


def _telling(sizes: dict[str, int], n: int) -> Program:
    s = StageTracer("tell", sizes)
    rows = [s.read("found")[DISTANCE_NUMBERS * k : DISTANCE_NUMBERS * (k + 1)] for k in range(n)]
    s.write(distance=[x[0] for x in rows], points=[y for x in rows for y in x[1:7]],
            normal=[y for x in rows for y in x[7:]])  # fmt: skip
    return s.t.program()


def _moving(model: Model, sizes: dict[str, int], bodies: Sequence[tuple[int, ...]]) -> Program:
    """Along the normal how fast each rate moves the second geom at the nearest point as the first one sees it."""
    t = Tracer("tell", model)
    q, found = t.input("q", sizes["q"]), t.input("found", sizes["found"])
    columns = Columns(t.tree, placed_bodies(t.tree, q))
    out: list[Any] = []
    for k, (first, second) in enumerate(bodies):
        x = found[DISTANCE_NUMBERS * k : DISTANCE_NUMBERS * (k + 1)]
        n, point = Vec(*x[7:]), Vec(*x[1:4])
        moves = columns.relative(first, second, point)
        out += [n.dot(moves[r].v) if r in moves else 0.0 for r in range(t.tree.nv)]
    t.output("jacobian", out)
    return t.program()


# -- which pairs -------------------------------------------------------------------------------------------


def chosen_pairs(robot: Any, pairs: Any) -> GeomPairs:
    """Pairs of geoms by name; of links: all their geoms. InputError where there is none of a name."""
    if isinstance(pairs, str) and pairs == AUTO:
        return memoised(robot, ("pairs that may meet",), lambda: _auto(robot))
    model = with_ground(model_of(robot, "distance"), None)
    if not model.geoms:
        raise InputError(f"distance: robot {model.name!r} has no geoms; give its links collision shapes")
    geoms = {x.name: [x] for x in model.geoms}
    links: dict[str, list[Geom]] = {}
    for x in model.geoms:
        links.setdefault(x.link, []).append(x)
    out: list[tuple[str, str]] = []
    try:
        asked = [tuple(pair) for pair in pairs]
    except TypeError:
        asked = [()]
    for pair in asked:
        if len(pair) != 2 or not all(isinstance(x, str) for x in pair):
            raise InputError(
                f"distance: pairs are {AUTO!r}, or pairs of names of geoms or links, not {shown(pairs)}"
            )
        ends = [
            geoms.get(x) or links[one_of("distance: geom or link", x, [*geoms, *links], InputError)] for x in pair
        ]
        out += [_named(a, b) for a in ends[0] for b in ends[1]]
    return tuple(dict.fromkeys(out))


def _named(a: Geom, b: Geom) -> tuple[str, str]:
    if "hfield" in (a.kind, b.kind):
        raise InputError(
            f"distance: {a.name!r} or {b.name!r} is a height field, which is not convex; leave the pair out"
        )
    if a.kind == b.kind == "plane":
        raise InputError(
            f"distance: {a.name!r} and {b.name!r} are planes, which have no distance; leave the pair out"
        )
    first, second = (b, a) if b.kind == "plane" else (a, b)
    return first.name, second.name


def _auto(robot: Any) -> GeomPairs:
    """Pairs that may meet, but for those that touch in every posture."""
    model = with_ground(model_of(robot, "distance"), None)
    pairs = tuple(_named(a, b) for a, b in _candidates(model) if a.kind != "hfield")
    if not pairs:
        return ()
    rng = np.random.default_rng(0)
    q = np.array([robot.random(rng) for _ in range(POSTURES)])
    nearest = distance_function(robot, pairs)(q)[0]
    return tuple(pair for pair, most in zip(pairs, nearest.max(axis=0)) if most > 0.0)


def _candidates(model: Model) -> Iterator[tuple[Geom, Geom]]:
    """Yields what may touch by the bits of the file; where nothing of a robot may touch itself by them, as in
    URDF, geoms of links that are neither adjacent nor excluded."""
    if any(x.contype & y.conaffinity for x in model.geoms for y in model.geoms):
        for a, b, _ in touching_pairs(model):
            yield as_ruled(a, b)
        return
    welded, near = weld_bodies(model), adjacent_links(model)
    excluded = {frozenset((x.link_a, x.link_b)) for x in model.exclusions}
    for a, b in combinations(model.geoms, 2):
        one, two = welded[a.link], welded[b.link]
        if one != two and frozenset((one, two)) not in near and frozenset((a.link, b.link)) not in excluded:
            yield as_ruled(a, b)
