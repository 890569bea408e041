"""Derivatives of places of contact that have been searched for: how they move with their solids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..codegen.graph.node import Graph
from ..codegen.graph.program import Input
from ..compiler.tracer import nodes_of, unknowns
from ..mechanics.scalar import Scalar, dot
from ..mechanics.spatial import Mat, Vec
from .convex.clipping import PLACE_NUMBERS
from .convex.solids import DUAL_NUMBERS, PLACED_GEOM_NUMBERS
from .sweeps import StepSweep

PLACED_BLOCK = "placed"


def moved_place(
    now: Sequence[Sequence[Scalar]], before: Sequence[Sequence[Scalar]], derivatives: Sequence[Scalar]
) -> list[Scalar]:
    """Distance, point and normal of a place, of first order in how far two solids are from where they were before.

    A place goes with the first solid, and by the derivatives with what the second moves beside that.
    """
    (turn, way), (turn_b, way_b) = map(_moved, now, before)
    p, p_b = (Vec(*x[9:12]) for x in before)
    moves = [*(turn_b - turn), *(way_b - way - turn.cross(p_b - p))]
    x, *n = (derivatives[DUAL_NUMBERS * k : DUAL_NUMBERS * (k + 1)] for k in range(PLACE_NUMBERS))
    dist, *rest = (y[0] + dot(y[1:], moves) for y in (x, *n))
    point, normal = Vec(*(y[0] for y in n[:3])), Vec(*(y[0] for y in n[3:]))
    return [dist, *(Vec(*rest[:3]) + way + turn.cross(point - p)), *(Vec(*rest[3:]) + turn.cross(normal))]


def _moved(now: Sequence[Scalar], before: Sequence[Scalar]) -> tuple[Vec, Vec]:
    """A small turn, and a way."""
    R, S = (Mat(Vec(*x[:3]), Vec(*x[3:6]), Vec(*x[6:9])) for x in (now, before))
    return Vec(R.z.dot(S.y), R.x.dot(S.z), R.y.dot(S.x)), Vec(*now[9:12]) - Vec(*before[9:12])


def derivatives_block(block: str) -> str:
    """The block of the derivatives of places in a block."""
    return f"{block}_derivatives"


def place_sweep(
    name: str, places: Mapping[int, tuple[int, int]], block: str, sizes: dict[str, int], slot: int | None = None
) -> StepSweep:
    """From where solids are to the places of contact between them, in a block; declares that of its derivatives.

    places: by number, where the numbers of both solids begin. Others, a hull's corners on a plane, need none.
    """
    g, many = Graph(), PLACE_NUMBERS * DUAL_NUMBERS
    ends, source = dict[int, Scalar](enumerate([0.0] * sizes[block])), derivatives_block(block)
    sizes[source] = DUAL_NUMBERS * sizes[block]
    before, now = (unknowns(g, x, sizes[PLACED_BLOCK]) for x in (PLACED_BLOCK, "now"))
    derivatives = unknowns(g, source, sizes[source])
    for k, at in places.items():
        a, b = ([x[i : i + PLACED_GEOM_NUMBERS] for i in at] for x in (now, before))
        moved = moved_place(a, b, derivatives[many * k : many * (k + 1)])
        ends |= {PLACE_NUMBERS * k + i: x for i, x in enumerate(moved)}
    reads = [Input(x, (len(y),), nodes_of(y)) for x, y in ((PLACED_BLOCK, before), (source, derivatives))]
    return StepSweep(name, g, reads, {PLACED_BLOCK: now}, {block: ends}, slot=slot)
