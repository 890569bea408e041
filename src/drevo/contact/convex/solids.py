"""Geoms as the search of `search` takes them, and its calls in stages of machine code."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...codegen.llvm.ir import F64, I1, I8, I64, PTR, VOID, IRFunction, Value, like
from ...codegen.llvm.plain import add_plain
from ...codegen.llvm.stages import StageCalls
from ...mechanics.algorithms.boxes import NO_PLACE, PlacedGeom
from ...mechanics.scalar import Scalar, dot, maximum, sqrt
from ...mechanics.spatial import Vec
from ...model.contact import Geom
from .clipping import MAX_PLACES, PLACE_NUMBERS
from .fields import MAX_FIELD_PLACES
from .hulls import hull_tables
from .places import MAX_OTHER_PLACES, places_beside, places_between
from .search import between_solids
from .simplex import BOX, CYLINDER, ELLIPSOID, FIELD, HULL, PLANE, POINT, SEGMENT

CORES = {
    "plane": PLANE, "sphere": POINT, "capsule": SEGMENT, "cylinder": CYLINDER, "box": BOX, "ellipsoid": ELLIPSOID,
    "hull": HULL, "hfield": FIELD,
}  # fmt: skip
ROUND = ("sphere", "capsule")  # a ball about each of their points
PLACED_GEOM_NUMBERS = 12  # numbers of a placed geom: rotation by rows, position
CORE_NUMBERS = 4  # three sizes of what is without the ball about its points, and the radius of that
SIZED_GEOM_NUMBERS = PLACED_GEOM_NUMBERS + CORE_NUMBERS + 1  # where sizes are symbols: with these, and its radius
CORE_PLACES = {"sphere": (3,), "capsule": (3, 1)}  # of sizes of a geom among those of its core; else the first
PAIR_INTEGERS, PAIR_SIZES = 9, 10  # of a pair in the tables of the search
DISTANCE_NUMBERS = 10  # numbers of a pair: distance, two points, normal
LANES_FUNCTION, PLACES_FUNCTION, DERIVATIVES_FUNCTION = (
    "search_in_lanes",
    "places_in_lanes",
    "place_derivatives_in_lanes",
)
MOVES = 6  # of a solid: turns and ways along the world's axes
DUAL_NUMBERS, DUAL_LANES = 1 + MOVES, 8  # a number and its derivatives by these, and where they stand
DUAL = f"<{DUAL_LANES} x {F64}>"
BOX_ROOM = 1e-6  # of the sides of boxes about geoms, more than single precision takes from points
NOWHERE = 1e300  # of a place: no geom is there


def sizes_of(geom: Geom) -> list[Scalar]:
    """Three sizes of what is without the ball about its points, and the radius of that."""
    out: list[Scalar] = [0.0] * CORE_NUMBERS
    for k, x in zip(CORE_PLACES.get(geom.kind, range(3)), geom.size):
        out[k] = x
    return out


def is_sized(geom: Geom) -> bool:
    """True if some size of a geom is a symbol."""
    return not all(isinstance(x, (float, int)) for x in geom.size)


def radius_of(geom: Geom) -> Scalar:
    """`Geom.radius`, of symbols too."""
    if not is_sized(geom):
        return geom.radius
    if geom.kind in ("capsule", "ellipsoid"):
        return reduce(operator.add if geom.kind == "capsule" else maximum, geom.size)
    return sqrt(dot(geom.size, geom.size))


def placed_numbers(placed: PlacedGeom, sized: Geom | None = None) -> list[Scalar]:
    """The numbers of a placed geom; of one whose sizes are symbols those of its core and its radius too."""
    sizes = [*sizes_of(sized), radius_of(sized)] if sized else []
    return [*(x for row in placed.R for x in row), *placed.p, *sizes]


def placed_block(solids: Iterable[Any], poses: Any) -> tuple[list[Scalar], int]:
    """The numbers of geoms that bodies carry, and how many each has: with sizes if one of all is a symbol."""
    solids = tuple(solids)
    sized = any(is_sized(x.geom) for x in solids)
    numbers = [y for x in solids for y in placed_numbers(x.at(poses), x.geom if sized else None)]
    return numbers, SIZED_GEOM_NUMBERS if sized else PLACED_GEOM_NUMBERS


class PairSearch:
    """The search between pairs of geoms in a module, whose tables it reads by the number of a pair.

    margins: how far apart places of contact may be, of each pair. Where sizes are symbols, blocks of placed geoms
    have them beside where these stand.
    """

    def __init__(self, pairs: Iterable[tuple[Geom, Geom]], margins: Sequence[float] = ()) -> None:
        self.points, begins, graphs = [0.0], dict[Geom, tuple[int, int]](), [0]
        pairs, self.sizes = tuple(pairs), list[float]()
        self.sized = any(map(is_sized, (x for pair in pairs for x in pair)))
        self.rows = list[int]()
        for geom in (x for pair in pairs for x in pair):
            if geom not in begins:
                begins[geom] = (len(self.points), len(graphs)) if geom.points else (0, 0)
                points, graph = _tables_of(geom)
                self.points += points
                graphs += graph
        for k, (a, b) in enumerate(pairs):
            behind = PAIR_INTEGERS * (len(pairs) - k)
            self.rows += [CORES[a.kind], len(a.points), CORES[b.kind], len(b.points)]
            self.rows += [behind + begins[a][1], behind + begins[b][1], begins[a][0], begins[b][0]]
            self.rows += [searched_places(a, b)]
            numbers = [0.0] * 9 if self.sized else [*sizes_of(a), *sizes_of(b), a.radius + b.radius]
            self.sizes += [*numbers, margins[k] if margins else 0.0]
        self.rows += graphs

    def _tables(self, c: StageCalls, k: Value | int, dual: bool = False) -> tuple[Value, ...]:
        """Kinds, numbers of points and graphs of pair k, its sizes, the points of both, its most places. dual:
        numbers with derivatives."""
        row, kind = c.table(I64, self.rows).at(k * PAIR_INTEGERS, I64), DUAL if dual else F64
        sizes, points = (c.table(F64, _duals(x) if dual else x) for x in (self.sizes, self.points))
        ends = (points.at(row.at(field, I64).load(I64), kind) for field in (6, 7))
        return row, sizes.at(k * PAIR_SIZES, kind), *ends, row.at(8, I64).load(I64)

    def distance(self, c: StageCalls, k: Value | int, at_a: Value, at_b: Value, out: Value) -> None:
        """The distance of pair k in all lanes: from the blocks of two placed geoms into one of RESULTS."""
        if LANES_FUNCTION not in c.f.module.functions:
            _add_lanes(c)
        c.f.call(VOID, LANES_FUNCTION, *self._tables(c, k)[:4], at_a, at_b, out)

    def derivatives(self, c: StageCalls, k: int, at_a: Value, at_b: Value, near: Value, out: Value) -> None:
        """Writes the places of pair k likewise, each with the derivatives of its numbers by six of a motion of the
        second solid as of `places_beside`, number by number."""
        if DERIVATIVES_FUNCTION not in c.f.module.functions:
            _add_places(c, False, True)
        *tables, most = self._tables(c, k, True)
        moves = c.table(F64, [float(i == j + 1) for j in range(MOVES) for i in range(DUAL_LANES)])
        stride = c.f.value(PLACE_NUMBERS * DUAL_NUMBERS * c.l.bytes)
        c.f.call(I64, DERIVATIVES_FUNCTION, *tables, at_a, at_b, near, out, stride, most, moves)

    def places(
        self, c: StageCalls, k: Value | int, at_a: Value, at_b: Value, near: Value, out: Value, stride: Value | int
    ) -> Value:
        """The most places of pair k in a lane where `near` is negative; each lane's are written, every `stride`
        bytes from `out` on, as distance, point and normal; what is none is NO_PLACE away."""
        if PLACES_FUNCTION not in c.f.module.functions:
            _add_places(c, self.sized)
        *tables, most = self._tables(c, k)
        return c.f.call(I64, PLACES_FUNCTION, *tables, at_a, at_b, near, out, c.f.value(stride), most)


def _tables_of(geom: Geom) -> tuple[Sequence[float], Sequence[int]]:
    """Floats and integers of a geom: points and graph of a hull; heights, columns and rows of a height field."""
    if geom.kind == "hfield":
        return [z for _, _, z in geom.points], (geom.columns, len(geom.points) // geom.columns)
    normals, graph = hull_tables(geom.points, geom.faces) if geom.kind == "hull" else ((), ())
    corners = np.array(geom.points, np.float32 if geom.faces else float).astype(float)
    return [*corners.ravel().tolist(), *(x for n in normals for x in n)], graph


def half_sides(geom: Geom) -> list[Scalar]:
    """Half the sides of a box about the origin of a geom, along its axes, that holds it with some room."""
    r, s, t = [*geom.size, 0.0, 0.0, 0.0][:3]
    x: Sequence[Scalar] = {"sphere": (r, r, r), "capsule": (r, r, r + s), "cylinder": (r, r, s)}.get(
        geom.kind, (r, s, t)
    )
    if geom.points and geom.kind == "hull":
        x = [max(abs(point[k]) for point in geom.points) for k in range(3)]
    return [y * (1.0 + BOX_ROOM) for y in x]


def boxes_parted(
    c: StageCalls, first: Sequence[Value], second: Sequence[Value], sides: Sequence[Value], margin: Value
) -> Value:
    """True in lanes where a side of one of two placed boxes parts them by more than the margin.

    sides: half of those of both.

    Gottschalk, Lin and Manocha 1996, OBBTree: 6 of the 15 axes.
    """
    f, way = c.f, Vec(*second[9:]) - Vec(*first[9:])
    axes = [[Vec(*x[k:9:3]) for k in range(3)] for x in (first, second)]

    def size(x: Any) -> Any:
        return f.select(x < 0.0, -x, x)

    met = [[size(a.dot(b)) for b in axes[1]] for a in axes[0]]
    parted = f.const(like(c.l.type, I1), "zeroinitializer" if c.l.lanes > 1 else "false")
    for k in range(3):
        for m, turned in enumerate((met[k], [row[k] for row in met])):
            x, y, z = (t * side for t, side in zip(turned, sides[3 - 3 * m : 6 - 3 * m]))
            parted = parted | (size(way.dot(axes[m][k])) > x + y + z + sides[3 * m + k] + margin)
    return parted


def searched_places(a: Geom, b: Geom) -> int:
    """The most places that the search finds between two solids."""
    first, second = a.kind, b.kind
    if first == "hfield":  # prisms under the second, whichever way it is turned
        cells = a.columns - 1, len(a.points) // a.columns - 1
        under = cells if is_sized(b) else [min(n, int(b.radius * n / half) + 2) for n, half in zip(cells, a.size)]
        return min(2 * under[0] * under[1], MAX_FIELD_PLACES)
    if first == second == "box":
        return MAX_PLACES
    if {first, second} == {"capsule", "hull"}:
        return 2
    if (first, second) == ("plane", "hull"):
        return MAX_OTHER_PLACES
    return MAX_OTHER_PLACES if {first, second} <= {"cylinder", "box", "hull"} else 1


def _add_lanes(c: StageCalls) -> None:
    """A function that searches lane by lane for distances."""
    given = dict.fromkeys(("which", "size", "points_a", "points_b", "at_a", "at_b", "out"), PTR)
    f = c.f.module.function(LANES_FUNCTION, VOID, given)
    name, result = add_plain(c.f.module, between_solids), f.alloca(F64, DISTANCE_NUMBERS)
    solids = _Solids(c, f)
    with f.loop(c.l.lanes, some=True) as lane:
        with f.when(solids.read(lane.i).differs(0)):  # lanes beyond a batch are like the last one of it
            f.call(VOID, name, f.which, f.size, f.points_a, f.points_b, solids.a, solids.b, result)
        with f.loop(DISTANCE_NUMBERS, some=True) as k:
            solids.put(f.out, k.i, lane.i, result.at(k.i).load())
    f.ret()


def _duals(x: Sequence[float]) -> list[float]:
    """Numbers that do not change."""
    return np.pad(np.array(x)[:, None], ((0, 0), (0, DUAL_LANES - 1))).ravel().tolist()


def _add_places(c: StageCalls, sized: bool, dual: bool = False) -> None:
    """A function that searches lane by lane for places; sized: with the sizes of each; dual: with derivatives."""
    pointers = ("which", "size", "points_a", "points_b", "at_a", "at_b", "near", "out")
    f = c.f.module.function(
        DERIVATIVES_FUNCTION if dual else PLACES_FUNCTION, I64,
        dict.fromkeys(pointers, PTR) | dict.fromkeys(("stride", "most"), I64) | ({"moves": PTR} if dual else {}),
    )  # fmt: skip
    kind, many = (DUAL, DUAL_NUMBERS) if dual else (F64, 1)
    name = add_plain(c.f.module, places_beside if dual else places_between, number=kind)
    result = f.alloca(kind, 1 + MAX_FIELD_PLACES * PLACE_NUMBERS)
    solids, count = _Solids(c, f, sized, kind), f.alloca(I64)
    count.store(f.const(I64, 0))
    with f.loop(f.most, some=True) as place:
        none = f.out.at(place.i * f.stride, I8)
        for at, number in enumerate((NO_PLACE, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)):
            for m in range(many):
                empty = f.const(c.l.type, 0.0 if m else number)
                none.at((at * many + m) * c.l.bytes, I8).store(empty, c.l.bytes)
    with f.loop(c.l.lanes, some=True) as lane, f.when(f.near.at(lane.i, c.l.scalar).load(c.l.scalar) < 0.0):
        with f.when(solids.read(lane.i).differs(0)):
            size = solids.sizes(f.size) if sized else f.size
            moves = [f.moves] if dual else []
            f.call(VOID, name, f.which, size, f.points_a, f.points_b, solids.a, solids.b, *moves, result)
        places = f.let(I64, f"fptosi double {result.load().text} to i64")
        places = f.select(places < f.most, places, f.most)
        count.store(f.select(places > count.load(I64), places, count.load(I64)))
        with f.loop(places) as place, f.loop(PLACE_NUMBERS, some=True) as k:
            entry = result.at(place.i * PLACE_NUMBERS + k.i + 1, kind)
            for m in range(many):
                solids.put(f.out.at(place.i * f.stride, I8), k.i * many + m, lane.i, entry.at(m).load())
    f.ret(count.load(I64))


class _Solids:
    """Two placed solids of one lane, as 12 numbers each on the stack of a function under construction, and where
    they are sized those of their sizes."""

    def __init__(self, c: StageCalls, f: IRFunction, sized: bool = False, kind: str = F64) -> None:
        self.f, self.l, self.many = f, c.l, SIZED_GEOM_NUMBERS if sized else PLACED_GEOM_NUMBERS
        self.kind = kind
        self.a, self.b, self.changed = f.alloca(kind, self.many), f.alloca(kind, self.many), f.alloca(I64)
        self.size = f.alloca(F64, PAIR_SIZES) if sized else self.a
        for place in (self.a, self.b):  # whatever is read first differs
            if kind != F64:
                with f.loop(self.many, some=True) as k:
                    place.at(k.i, kind).store(f.zero(kind), 8)
            place.store(f.const(F64, NOWHERE))

    def read(self, lane: Value) -> Value:
        """Reads those of a lane; not 0 where they are not those that were read before."""
        f, l, changed = self.f, self.l, self.changed
        changed.store(f.const(I64, 0))
        for block, place in ((f.at_a, self.a), (f.at_b, self.b)):
            with f.loop(self.many, some=True) as k:
                x = block.at(k.i * l.lanes + lane, l.scalar).load(l.scalar)
                x = x if l.scalar == F64 else x.cast("fpext", F64)
                changed.store(changed.load(I64) | place.at(k.i, self.kind).load().differs(x).cast("zext", I64))
                place.at(k.i, self.kind).store(x)
        return changed.load(I64)

    def sizes(self, table: Value) -> Value:
        """The sizes of both, in the order of the table that has the margin of the pair."""
        f, first, radius = self.f, PLACED_GEOM_NUMBERS, SIZED_GEOM_NUMBERS - 1
        for solid, place in ((self.a, 0), (self.b, CORE_NUMBERS)):
            with f.loop(CORE_NUMBERS, some=True) as k:
                self.size.at(k.i + place).store(solid.at(k.i + first).load())
        self.size.at(2 * CORE_NUMBERS).store(self.a.at(radius).load() + self.b.at(radius).load())
        self.size.at(PAIR_SIZES - 1).store(table.at(PAIR_SIZES - 1).load())
        return self.size

    def put(self, out: Value, k: Value, lane: Value, x: Value) -> None:
        """Stores value k of a lane."""
        l = self.l
        out.at(k * l.lanes + lane, l.scalar).store(x if l.scalar == F64 else x.cast("fptrunc", l.scalar))
