"""Rows -J dq <= gain (d - distance) of places that stay apart, each in a stage that runs where it may be met.

Spheres about both geoms are a cheap lower bound of d. Where speeds are bounded, so is what one step moves a geom
against the other: by the speed of every joint between them times the way along the links from it to the farthest
point of the geom. Rows that no rates within the bounds can meet are left empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from ..codegen.graph.program import Program
from ..codegen.llvm.stages import StageCalls
from ..codegen.lower.loops import Place
from ..compiler.tracer import Tracer
from ..contact.laws.soft.couplings import Columns
from ..contact.pairs import ContactCandidate
from ..mechanics.algorithms.kinematics import Pose, placed_bodies
from ..mechanics.scalar import Scalar, is_zero
from ..mechanics.spatial import Mat, Vec
from .kinds import Posed
from .level import LevelData

FRAME_NUMBERS = 12  # of a body: rotation by rows, position
ALWAYS_NEAR = -1.0
FAR_SIDE = 1.0  # m: of a row that is empty


class ApartRows:
    """The rows of places, each with a distance that it keeps and a gain. speed: bounds of rates, rad/s, m/s."""

    def __init__(
        self, at: Posed, places: Sequence[tuple[ContactCandidate, float, float]], speed: Sequence[float]
    ) -> None:
        self.at, self.places, self.speed = at, places, speed
        self.poses = placed_bodies(at.tree, at.q)
        self.columns = Columns(at.tree, self.poses)
        self.bodies = sorted({i for c, _, _ in places for body in c.bodies for i in self.columns.chain(body)})
        self.pairs = [list(x) for _, x in groupby(places, lambda place: (place[0].geoms, *place[1:]))]
        self.near = [self._near(*pair[0]) for pair in self.pairs]
        self.rows: list[dict[int, tuple[int, int]]] = []
        self.sides: list[tuple[int, int]] = []
        self.parts: dict[str, Program] = {}
        self.spans: list[tuple[int, int]] = []  # of the values of a pair in "terms"

    def values(self) -> dict[str, list[Scalar]]:
        """The results of the first stage: poses of bodies, and which pairs are near."""
        frames = [x for i in self.bodies for row in (*self.poses[i].R, self.poses[i].p) for x in row]
        return {"frames": frames, "near": self.near}

    def _near(self, c: ContactCandidate, distance: float, gain: float) -> Scalar:
        """Negative where rates within their bounds may meet the row."""
        bound, most = c.near(self.poses), self._most(c)
        return gain * (bound - distance) - most if bound is not None and most < math.inf else ALWAYS_NEAR

    def _most(self, c: ContactCandidate) -> float:
        """The farthest that one step moves one geom against the other, m."""
        tree, X, total = self.at.tree, self.at.tree.placements(self.at.q), 0.0
        chains = [self.columns.chain(body) for body in c.bodies]
        for solid, own, other in zip(c.solids, chains, reversed(chains)):
            arm = math.inf if solid.geom.kind == "plane" else math.hypot(*solid.p) + solid.geom.radius
            for i in sorted(own - other, reverse=True):
                b = tree.bodies[i]
                for k, s in enumerate(tree.motion_subspace(b), b.v):
                    moved = math.hypot(*s.v) + (math.hypot(*s.w) * arm if any(s.w) else 0.0)
                    total += abs(b.factor) * self.speed[k] * self.at.dt * moved
                arm += math.hypot(*X[i].p) if all(isinstance(x, float) for x in X[i].p) else math.inf
        return total

    def put(self, first: int) -> int:
        """Gives the rows their places in the block "terms", from `first` on; how many values they have."""
        for n, pair in enumerate(self.pairs):
            t, out = Tracer(f"apart{n}"), list[Scalar]()
            numbers = t.input("frames", FRAME_NUMBERS * len(self.bodies))
            poses = dict(self.poses)
            for k, i in enumerate(self.bodies):
                x = [Vec(*numbers[j : j + 3]) for j in range(FRAME_NUMBERS * k, FRAME_NUMBERS * (k + 1), 3)]
                poses[i] = Pose(Mat(*x[:3]), x[3])
            columns, begin = Columns(self.at.tree, poses), first
            for c, distance, gain in pair:
                touch = c.touch(poses)
                moved = columns.relative(*c.bodies, touch.point)
                row = {k: -touch.frame[0].dot(m.v) for k, m in moved.items()}
                row = {k: x for k, x in row.items() if not is_zero(x)}
                self.rows.append({k: (first + j, 0) for j, k in enumerate(row)})
                self.sides.append((first + len(row), 0))
                out += [*row.values(), gain * (touch.dist - distance)]
                first += len(row) + 1
            t.output(Place("terms", begin), out)
            self.parts[f"apart{n}"] = t.program()
            self.spans.append((begin, first - begin))
        return first

    def added(self, level: LevelData, at: int, first: bool) -> LevelData:
        """A level with the rows behind its first `at`; later levels than the first have sides of their own."""
        sides = self.sides if first else [None] * len(self.rows)
        return level._replace(
            rows=[*level.rows[:at], *self.rows, *level.rows[at:]],
            sides=[*level.sides[:at], *sides, *level.sides[at:]],
            equal=[*level.equal[:at], *[False] * len(self.rows), *level.equal[at:]],
        )

    def write(self, c: StageCalls) -> None:
        """The calls: every pair that is near in some lane."""
        for n, (first, count) in enumerate(self.spans):
            near = c.some_below("near", n)
            with c.f.when(near):
                c.call(f"apart{n}")
            with c.f.when(~near):
                c.fill(0.0, "terms", first, count)
                for k, _ in self.sides:
                    if first <= k < first + count:
                        c.fill(FAR_SIDE, "terms", k, 1)
