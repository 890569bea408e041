"""Geoms as the search of `search` takes them, and its calls in stages of machine code."""

from __future__ import annotations

from collections.abc import Iterable

from ...codegen.llvm.ir import F64, I64, PTR, VOID, Value
from ...codegen.llvm.plain import add_plain
from ...codegen.llvm.stages import StageCalls
from ...mechanics.algorithms.proximity import PlacedGeom
from ...mechanics.scalar import Scalar
from ...model.contact import Geom
from .search import between_solids
from .simplex import BOX, CYLINDER, HULL, PLANE, POINT, SEGMENT

CORES = {"plane": PLANE, "sphere": POINT, "capsule": SEGMENT, "cylinder": CYLINDER, "box": BOX, "hull": HULL}
ROUND = ("sphere", "capsule")  # a ball about each of their points
PLACE = 12  # numbers of a placed geom: rotation by rows, position
RESULTS = 10  # numbers of a pair: distance, two points, normal
LANES_FUNCTION = "search_in_lanes"
NOWHERE = 1e300  # of a place: no geom is there


def sizes_of(geom: Geom) -> list[float]:
    """Three sizes of what is without the ball about its points, and the radius of that."""
    if geom.kind == "sphere":
        return [0.0, 0.0, 0.0, geom.size[0]]
    if geom.kind == "capsule":
        return [0.0, geom.size[1], 0.0, geom.size[0]]
    return [*geom.size, *[0.0] * (4 - len(geom.size))]


def placed_numbers(geom: PlacedGeom) -> list[Scalar]:
    """The numbers of a placed geom."""
    return [*(x for row in geom.R for x in row), *geom.p]


class PairSearch:
    """The search between pairs of geoms in a module: their tables, and a call for each."""

    def __init__(self, pairs: Iterable[tuple[Geom, Geom]]) -> None:
        self.pairs = [(a, b) for a, b in pairs]

    def write(self, c: StageCalls, k: int, at_a: Value, at_b: Value, out: Value) -> None:
        """Pair k in all lanes: from the blocks of two placed geoms into one of RESULTS."""
        a, b = self.pairs[k]
        m = c.f.module
        if LANES_FUNCTION not in m.functions:
            _add_lanes(c)
        counts = CORES[a.kind], len(a.points), CORES[b.kind], len(b.points)
        size = [*sizes_of(a), *sizes_of(b), a.radius + b.radius]
        tables = [
            c.table(I64, counts), c.table(F64, size), _points(c, a), _points(c, b),
        ]  # fmt: skip
        c.f.call(VOID, LANES_FUNCTION, *tables, at_a, at_b, out)


def _points(c: StageCalls, geom: Geom) -> Value:
    return c.table(F64, [x for point in geom.points for x in point] or [0.0])


def _add_lanes(c: StageCalls) -> None:
    """A function that searches lane by lane."""
    m, l = c.f.module, c.l
    name = add_plain(m, between_solids)
    given = dict.fromkeys(("which", "size", "points_a", "points_b", "at_a", "at_b", "out"), PTR)
    f = m.function(LANES_FUNCTION, VOID, given)
    a, b, found = f.alloca(F64, PLACE), f.alloca(F64, PLACE), f.alloca(F64, RESULTS)
    wide = l.scalar == F64
    for place in (a, b):
        with f.loop(PLACE, some=True) as k:
            place.at(k.i).store(f.const(F64, NOWHERE))
    with f.loop(l.lanes, some=True) as lane:
        changed = f.alloca(I64)
        changed.store(f.const(I64, 0))
        for block, place in ((f.at_a, a), (f.at_b, b)):
            with f.loop(PLACE, some=True) as k:
                x = block.at(k.i * l.lanes + lane.i, l.scalar).load(l.scalar)
                x = x if wide else x.cast("fpext", F64)
                changed.store(changed.load(I64) | place.at(k.i).load().differs(x).cast("zext", I64))
                place.at(k.i).store(x)
        with f.when(changed.load(I64).differs(0)):  # lanes beyond a batch are like the last one of it
            f.call(VOID, name, f.which, f.size, f.points_a, f.points_b, a, b, found)
        with f.loop(RESULTS, some=True) as k:
            x = found.at(k.i).load()
            f.out.at(k.i * l.lanes + lane.i, l.scalar).store(x if wide else x.cast("fptrunc", l.scalar))
    f.ret()
