"""The stages of a step that loops over its pairs of solids: one for a kind of pair, and one for a law of rows."""

from __future__ import annotations

from typing import Any, NamedTuple

from ....codegen.graph.node import Expr
from ....codegen.llvm.ir import I64, Value
from ....mechanics.algorithms.boxes import PlacedGeom
from ....mechanics.algorithms.colliders import between, found_place
from ....mechanics.algorithms.kinematics import Poses
from ....mechanics.scalar import Scalar, Vector
from ....mechanics.spatial import Mat, Vec
from ....model.contact import GEOM_SIZES
from ...convex.clipping import PLACE_NUMBERS
from ...convex.solids import PLACED_GEOM_NUMBERS, half_sides, placed_block, radius_of
from ...packing import Packed
from .couplings import Columns
from .layout import PackedRows, SlotLayout
from .stages import Evaluation, Slot, StageTracer, declare_dynamics

MAX_GEOM_SIZES = 3  # of a geom
PAIR_NUMBERS = (
    2 * MAX_GEOM_SIZES + 2
)  # with the inverse weight and the margin; a reach, and half the sides of boxes, follow
PAIR_FIELDS = (
    "block", "stride", "rates", "first", "slot", "a", "b", "numbers", "forces", "crosses", "search", "law",
)  # fmt: skip


class PairRow:
    """The numbers of a pair in a loop over those of its kind; index: its row."""

    def __init__(self, row: Value, index: Value) -> None:
        self.row, self.index = row, index

    def __getattr__(self, field: str) -> Value:
        return self.row.at(PAIR_FIELDS.index(field), I64).load(I64)


class PairKind(NamedTuple):
    """Pairs that have code in common: by the kinds of both geoms, the place, the law of their rows."""

    kinds: tuple[str, str]
    place: int
    searched: bool
    law: int


class LoopedEvaluation(Evaluation):
    """The first stages of a step that loops over its pairs."""

    looped = True

    def _slots(self, poses: Poses, columns: Columns, v: Vector) -> None:
        slots, graph = self.problem.slots, self.t.graph
        used = dict.fromkeys(x for s in slots for x in s.held or ())
        self.placed = {x: k for k, x in enumerate(used)}
        self.contacts, self.records, self.kinds = list[PackedRows](), list[SlotLayout](), list[int]()
        self.alike: dict[PairKind, list[int]] = {}
        self.signs: list[list[float]] = []
        laws: list[Any] = []
        for s in slots:
            law = s.group, s.soft._replace(margin=0.0)
            if law not in laws:
                laws.append(law)
                self.kinds.append(len(self.contacts))
            self._add_slot(s, columns, self.kinds[laws.index(law)])
        self.places = [sum(s.most for s in slots[:k]) for k in range(len(slots) + 1)]
        of_geoms, self.geom_numbers = placed_block(used, poses)
        placed = [graph.edge(y) for y in of_geoms]
        numbers = [y for alike in self.alike.values() for k in alike for y in self.numbers_of(k)]
        self.by_lane = any(isinstance(y, Expr) for y in numbers)  # else they are a table
        by_rate = {r: (*m.w, *m.v, *p) for part in columns.parts for r, m, p in part}
        motions = [graph.edge(x) for r in range(self.nv) for x in by_rate[r]]
        self.sizes |= {"pair": 2 * PLACED_GEOM_NUMBERS + PAIR_NUMBERS, "near": 1}
        more = {"numbers": [graph.edge(y) for y in numbers]} if self.by_lane else {}
        declare_dynamics(self, {"placed": placed, "columns": motions} | more | self.more_blocks())
        for kind, alike in self.alike.items():
            self._add(f"place_{self.name_of(kind)}", kind, alike[0])
        for k in self.kinds:
            self._rows_of(k)

    def more_blocks(self) -> dict[str, list[int]]:
        """Blocks that the stage of the dynamics writes beside its own, as edges."""
        return {}

    def _add_slot(self, s: Slot, columns: Columns, law: int) -> None:
        assert s.held
        m, k = s.group.size, len(self.contacts)
        a, b = columns.chain(s.bodies[0]), columns.chain(s.bodies[1])
        signs = {r: 1.0 if i in b else -1.0 for i in sorted(a ^ b) for r, _, _ in columns.parts[i]}
        stiff = len(s.group.stiffness(0.5, 1.0, self.problem.impratio))
        places: list[Packed] = [(i, 0) for i in range(m + stiff + 9)]
        ref, D, axes = places[:m], places[m : m + stiff], places[m + stiff :]
        rates = tuple(sorted(signs))
        self.contacts.append(PackedRows(s.group, rates, [], ref, D, axes))
        self.signs.append([signs[r] for r in rates])
        self.records.append(self._layout(law, m + stiff + 9, m))
        self.sizes[f"slot_{k}"] = self.records[k].end + m * len(rates)
        kind = PairKind((s.held[0].geom.kind, s.held[1].geom.kind), s.place, bool(s.solids), law)
        self.alike.setdefault(kind, []).append(k)

    def name_of(self, kind: PairKind) -> str:
        """A name for the stages of a kind."""
        return str(list(self.alike).index(kind))

    def _add(self, name: str, kind: PairKind, k: int) -> None:
        """The stage that takes two placed geoms and gives distance, point and frame."""
        s, at = StageTracer(name, self.sizes), self.records[k]
        a, b = (self._geom(s.read("pair"), kind, i) for i in (0, 1))
        if kind.searched:
            proximity = found_place(a, b, s.here(at.place, PLACE_NUMBERS))
        else:
            proximity = between(a, b)[kind.place]
        s.write_here({
            at.place: [proximity.dist, *proximity.point],
            at.gap: proximity.dist - s.read("pair")[-1],
            axes_at(self.contacts[k]): [x for row in proximity.frame for x in row],
        })  # fmt: skip
        self.parts[name] = s.t.program()

    def _geom(self, numbers: Vector, kind: PairKind, i: int) -> PlacedGeom:
        at, size = (
            numbers[PLACED_GEOM_NUMBERS * i : PLACED_GEOM_NUMBERS * (i + 1)],
            numbers[2 * PLACED_GEOM_NUMBERS + MAX_GEOM_SIZES * i :][:MAX_GEOM_SIZES],
        )
        R, p = Mat.of([at[0:3], at[3:6], at[6:9]]), Vec(*at[9:])
        size = size[: GEOM_SIZES[kind.kinds[i]]]
        return PlacedGeom(kind.kinds[i], tuple(size), R, p, ordered=self.problem.model.stepping.noslip > 0)

    def _rows_of(self, k: int) -> None:
        """The stage that says what the rows of a law want at their velocities, and how firm they are."""
        s, at, slot = StageTracer("rows", self.sizes), self.records[k], self.problem.slots[k]
        weight, gap = s.read("pair")[-2], s.here(at.gap, 1)[0]
        ref, D = self.wanted(slot._replace(weight=(weight, weight)), gap, s.here(at.y, slot.group.size))
        s.write_here({0: [*ref, *D]})
        self.parts[f"rows_{k}"] = s.t.program()

    def numbers_of(self, k: int) -> list[Scalar]:
        """Sizes of both geoms of a slot, its inverse weight, its margin, and the reach of spheres about both."""
        s, out = self.problem.slots[k], list[Scalar]()
        reach: Scalar = s.soft.margin
        for x in s.held or ():
            reach = reach + radius_of(x.geom)
            out += [*x.geom.size, *[0.0] * MAX_GEOM_SIZES][:MAX_GEOM_SIZES]
        return [*out, s.weight[0], s.soft.margin, reach, *(y for x in s.held or () for y in half_sides(x.geom))]


def axes_at(x: PackedRows) -> int:
    """The offset in a slot's block of the axes of its contact."""
    first = x.axes[0]
    assert not isinstance(first, float)
    return first[0]
