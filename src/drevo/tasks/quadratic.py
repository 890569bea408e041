"""A box-constrained quadratic program with rows, in machine code: block principal pivoting in lanes.

    min 1/2 x^T H x + c^T x,   low <= x <= high,   E x = e,   G x <= h

Judice and Pires 1994, "A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems": every entry is free or at a bound, every row holds or not; all that the solution
contradicts changes at once. Where that no longer lessens it, all that is pulled off its bound is let go, and what
is farthest beyond its own is held; where much is contradicted and there are no rows, entries take the states to
which sweeps of Gauss and Seidel have come, which go on from round to round. After many rounds single entries
change, the last one first (Murty), so that it ends. Rows are met in the sense of least squares where they cannot
be met, by the pivot -PROXIMAL of the quasi-definite matrix

    [H  G^T      ]
    [G  -PROXIMAL]        (Vanderbei 1995, "Symmetric quasidefinite matrices"),

and exactly where they can, by refinement, which is the proximal method of multipliers. Of many inequalities few
hold at once: the farthest ones first, gathered lane by lane into places of the matrix; where they are too many,
all are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import reduce
from typing import Any

from ..codegen.graph.program import Program
from ..codegen.llvm.dense.tile import DenseCode, MatrixTile
from ..codegen.llvm.stages import StageCalls
from ..compiler.tracer import Tracer
from ..contact.packing import of
from ..mechanics.scalar import Scalar, Vector, accumulate, is_zero, maximum, minimum, where
from .level import (
    PROXIMAL,
    LevelData,
    LevelReader,
    MatrixEntries,
    along,
    factorised_entries,
    is_for_good,
    largest_of,
    products_of,
    substituted,
    swept,
    weighted_sum_of_rows,
)

MAX_PIVOTINGS = 500  # rounds of the active set; a few, but for one in a thousand of ill-posed stacks
BLOCK_TRIALS = 2  # rounds that need not lessen what is contradicted, while all of it changes
SWEEPS_A_ROUND = 6  # of a round that has not lessened it, where at least MANY_CONTRADICTED are contradicted
MANY_CONTRADICTED = 6
SWEEPING_TRIALS = 10  # such rounds that end in sweeps
MAX_TRIALS = 20  # such rounds, before entries change one by one
HOLDING_WEIGHT = 1e30  # on the diagonal of what is at a bound, and of rows that do not hold
FAR_SHARE = 0.5  # of the farthest of many rows: what is missed by less does not hold yet
NO_COUNT = 1e6  # more than there are entries
BOUND_TOLERANCE = 1e-12  # of multipliers and of values beyond bounds, relative to the slopes and the ranges
MAX_STRAIGHT_PRODUCTS = 4000  # of a factorisation in straight-line code; beyond it loops are faster
MAX_WORKING_ROWS = 4  # places in the matrix of a round for inequalities that hold
DAMPING_MARGIN = 1e3  # a multiplier that holds for good is so many times what damping may have pulled


class LevelSolver:
    """The stages of a level, and the calls of them. name: of the level; blocks that all levels share: "terms", "x"
    (n,), "state" (n,) -1, 0 or 1, "holds" (m,) 0 or 1, "lam" (m,), "sides" (m,), "low", "high" (n,), "going",
    "kkt". State and holds are twice as large for what later levels never let go.
    """

    first = True
    proximal = PROXIMAL  # the pivot of rows
    refinements = 2  # of a solution with rows
    trials = MAX_TRIALS

    def __init__(
        self, name: str, n: int, data: LevelData, bounds: Sequence[tuple[bool, bool]], sizes: Mapping[str, int],
        followed: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.n, self.m, self.data, self.bounds = name, n, len(data.rows), data, bounds
        self.sizes, self.followed = dict(sizes), followed
        self.one_sided = [r for r, equal in enumerate(data.equal) if not equal]
        self.pivots = any(low or high for low, high in bounds) or bool(self.one_sided)
        self.selects = len(self.one_sided) > MAX_WORKING_ROWS
        self.bounded_first = self.first and self.selects and any(map(any, bounds))
        self.straight = not self.selects and products_of(set(data.H), data.rows, n) <= MAX_STRAIGHT_PRODUCTS
        self.sweeps = self.first and not self.m and sum(map(any, bounds)) >= MANY_CONTRADICTED
        self.parts: dict[str, Program] = {}
        size = n + self.m
        loops = {f"{name}K": size * size} | {f"{name}{x}": size for x in ("way", "line", "inverse")}
        self.blocks = {} if self.straight else loops
        self.blocks |= {"swept": n, "lost": 1} if self.sweeps else {}
        self.blocks |= {"crowded": 1, "missed": 1} if self.selects else {}
        self.sizes |= self.blocks
        if self.straight:
            self._whole()
        else:
            self._fill()
            if self.m:
                self._refine()
            self._judge_alone()
        if self.selects:
            self._count()
            self._whole()
            if self.bounded_first:
                self._whole("within", [])
                self._miss()
        if self.sweeps:
            self._sweep()
        if self.pivots:
            t, level = self._stage("measure")
            self._measure(level, self.read("x"), self.read("lam")[: self.m])
            self.parts[f"{name}measure"] = t.program()

    # -- stages -----------------------------------------------------------------------------------------------

    def _stage(self, name: str) -> tuple[Tracer, LevelReader]:
        """Begins a straight-line stage of the solver, which reads and writes its memory by name."""
        t = Tracer(f"{self.name}{name}")
        self._read: dict[str, list[Scalar]] = {}
        self._t = t
        d, terms = self.data, self.read("terms")
        sides = [self.read("sides")[r] if x is None else of(terms, x) for r, x in enumerate(d.sides)]
        rows = [{j: of(terms, x) for j, x in row.items()} for row in d.rows]
        return t, LevelReader({k: of(terms, x) for k, x in d.H.items()}, [of(terms, x) for x in d.c], rows, sides)

    def read(self, block: str) -> list[Scalar]:
        """The values of a block, in the stage of now."""
        if block not in self._read:
            self._read[block] = list(self._t.input(block, self.sizes[block]))
        return self._read[block]

    def _slope(self, level: LevelReader) -> list[Scalar]:
        """c, less what equalities give: H has their squares."""
        c = list(level.c)
        for row, side, equal in zip(level.rows, level.sides, self.data.equal):
            if equal:
                for j, value in row.items():
                    c[j] = c[j] - value * side
        return c

    def _held(self) -> list[Scalar]:
        """1 for entries at a bound, else 0."""
        return [where(s * s > 0.5, 1.0, 0.0) if any(b) else 0.0 for s, b in zip(self.read("state"), self.bounds)]

    def _start(self) -> list[Scalar]:
        """Entries at a bound are there, others at 0."""
        out: list[Scalar] = []
        ends = zip(self.read("state"), self.read("low"), self.read("high"), self.bounds)
        for s, low, high, (has_low, has_high) in ends:
            x: Scalar = 0.0
            x = where(s > 0.5, high, x) if has_high else x
            out.append(where(s < -0.5, low, x) if has_low else x)
        return out

    def _on(self) -> list[Scalar]:
        """1 for rows that hold, else 0."""
        return [1.0 if equal else self._holding(r) for r, equal in enumerate(self.data.equal)]

    def _holding(self, r: int) -> Scalar:
        return where(self.read("holds")[r] > 0.5, 1.0, 0.0)

    def _matrix(self, level: LevelReader, held_rows: Vector) -> MatrixEntries:
        A: MatrixEntries = dict(level.H)
        for i, held in enumerate(self._held()):
            if not is_zero(held):
                accumulate(A, (i, i), held * HOLDING_WEIGHT)
        for r, (row, on) in enumerate(zip(level.rows, held_rows)):
            A |= {(self.n + r, j): x for j, x in row.items()}
            A[self.n + r, self.n + r] = (
                -self.proximal if isinstance(on, float) else -self.proximal - HOLDING_WEIGHT * (1.0 - on)
            )
        return A

    def _residual(
        self, level: LevelReader, slope: Vector, x: Vector, lam: Vector, held_rows: Vector
    ) -> list[Scalar]:
        """The residual of the equations at x: of free entries, then of rows that hold. slope: where x is 0."""
        force = level.pushed([a + b for a, b in zip(level.times(x), slope)], lam)
        first = [-(g * (1.0 - held)) for g, held in zip(force, self._held())]
        return first + [on * (side - along(row, x)) for row, side, on in zip(level.rows, level.sides, held_rows)]

    def _whole(self, name: str = "round", inequalities: Sequence[int] | None = None) -> None:
        """A round in one stage; of many inequalities those that hold are in its matrix, while they are few."""
        t, level = self._stage(name)
        slope = self._slope(level)
        inequalities = self.one_sided if inequalities is None else inequalities
        chosen: list[dict[int, Scalar]] = [{r: 1.0} for r in range(self.m) if r not in self.one_sided]
        chosen += self._working(inequalities) if self.selects else [{r: 1.0} for r in inequalities]
        on = self._on()
        few = level._replace(
            rows=[weighted_sum_of_rows(weights, level.rows) for weights in chosen],
            sides=[along(weights, level.sides) for weights in chosen],
        )
        held_rows = [along(weights, on) for weights in chosen]
        x, lam = self._start(), [0.0] * len(chosen)
        factors = factorised_entries(self._matrix(few, held_rows), self.n, len(chosen))
        for _ in range(1 + (self.refinements if self.m else 0)):
            step = substituted(*factors, self._residual(few, slope, x, lam, held_rows))
            free = [1.0 - held for held in self._held()]
            x = [a + f * b for a, f, b in zip(x, free, step)]
            lam = [a + on * b for a, on, b in zip(lam, held_rows, step[self.n :])]
        shares = [{k: weights[r] for k, weights in enumerate(chosen) if r in weights} for r in range(self.m)]
        self._judge(level, x, [along(share, lam) for share in shares], inequalities)
        self.parts[f"{self.name}{name}"] = t.program()

    def _working(self, inequalities: Sequence[int]) -> list[dict[int, Scalar]]:
        """Places for inequalities that hold: for each the weights, 0 or 1, of the rows."""
        places: list[dict[int, Scalar]] = [{} for _ in range(min(MAX_WORKING_ROWS, len(inequalities)))]
        before: Scalar = 0.0
        for r in inequalities:
            on = self._holding(r)
            for k, place in enumerate(places):
                place[r] = where(abs(before - k) < 0.5, on, 0.0)
            before = before + on
        return places

    def _count(self) -> None:
        """Above 0 where more inequalities hold than a round has places for."""
        t, _ = self._stage("count")
        count: Scalar = -(MAX_WORKING_ROWS + 0.5)
        for r in self.one_sided:
            count = count + self._holding(r)
        t.output("crowded", [count])
        self.parts[f"{self.name}count"] = t.program()

    def _miss(self) -> None:
        """Above 0 where what is found within the bounds misses an inequality."""
        t, level = self._stage("miss")
        over = [along(level.rows[r], self.read("x")) - level.sides[r] for r in self.one_sided]
        t.output("missed", [reduce(maximum, over) - BOUND_TOLERANCE])
        self.parts[f"{self.name}miss"] = t.program()

    def _fill(self) -> None:
        """The matrix and the first right side, for the loops."""
        t, level = self._stage("fill")
        size, A = self.n + self.m, self._matrix(level, self._on())
        lower = {(max(k), min(k)): x for k, x in A.items()}
        t.output(f"{self.name}K", [lower.get((i, j), 0.0) for i in range(size) for j in range(size)])
        x, lam = self._start(), [0.0] * self.m
        self._write(x=x, lam=lam)
        t.output(f"{self.name}way", self._residual(level, self._slope(level), x, lam, self._on()))
        self.parts[f"{self.name}fill"] = t.program()

    def _advanced(self) -> tuple[list[Scalar], list[Scalar]]:
        way = self.read(f"{self.name}way")
        x = [a + (1.0 - held) * b for a, held, b in zip(self.read("x"), self._held(), way)]
        return x, [a + on * b for a, on, b in zip(self.read("lam"), self._on(), way[self.n :])]

    def _refine(self) -> None:
        t, level = self._stage("refine")
        x, lam = self._advanced()
        self._write(x=x, lam=lam)
        t.output(f"{self.name}way", self._residual(level, self._slope(level), x, lam, self._on()))
        self.parts[f"{self.name}refine"] = t.program()

    def _judge_alone(self) -> None:
        t, level = self._stage("judge")
        self._judge(level, *self._advanced(), self.one_sided)
        self.parts[f"{self.name}judge"] = t.program()

    def _write(self, **values: Sequence[Scalar]) -> None:
        for block, x in values.items():
            more = self.read(block)[len(x) :] if len(x) < self.sizes[block] else []
            self._t.output(block, [*x, *more])

    # -- the active set ---------------------------------------------------------------------------------------

    def _judge(self, level: LevelReader, x: list[Scalar], lam: list[Scalar], inequalities: Sequence[int]) -> None:
        """Changes what a solution contradicts; measures a solution that nothing bounds."""
        if self.pivots:
            self._change(inequalities, *self._contradictions(level, x, lam, inequalities))
            self._write(x=x, lam=lam)
        else:
            self._measure(level, x, lam)

    def _contradictions(
        self, level: LevelReader, x: list[Scalar], lam: list[Scalar], inequalities: Sequence[int]
    ) -> tuple[list[Scalar], ...]:
        """Three lists, of bounded entries, then inequalities: the way beyond, 1 to let go, the next state."""
        slope = self._slope(level)
        force = level.pushed([a + b for a, b in zip(level.times(x), slope)], lam)
        largest = largest_of(slope)
        judged = []
        for k, bounded in enumerate(self.bounds):
            if any(bounded):
                slack = BOUND_TOLERANCE * (largest + abs(level.H.get((k, k), 0.0) * x[k]))
                judged.append(self._judged(k, x[k], force[k], slack))
        for r in inequalities:
            on = self.read("holds")[r] > 0.5
            over = along(level.rows[r], x) - level.sides[r]
            beyond = where(on, 0.0, where(over > BOUND_TOLERANCE, over, 0.0))
            freed = where(on, where(lam[r] < -(BOUND_TOLERANCE * largest), 1.0, 0.0), 0.0)
            freed = freed if self.first else where(is_for_good(self.read("holds")[r]), 0.0, freed)
            judged.append((beyond, freed, where(on, 0.0, 1.0)))
        return tuple(map(list, zip(*judged)))

    def _judged(self, k: int, x: Scalar, force: Scalar, slack: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The way of a free entry beyond its bounds; 1 where one at a bound is to be let go; its state then."""
        (has_low, has_high), s = self.bounds[k], self.read("state")[k]
        beyond: Scalar = 0.0
        state: Scalar = 0.0
        if has_high:
            high = self.read("high")[k]
            above = x > high + BOUND_TOLERANCE * (1e-3 + abs(high))
            beyond, state = where(above, x - high, beyond), where(above, 1.0, state)
        if has_low:
            low = self.read("low")[k]
            below = x < low - BOUND_TOLERANCE * (1e-3 + abs(low))
            beyond, state = where(below, low - x, beyond), where(below, -1.0, state)
        pulled = where(force * s > slack, 1.0, 0.0)  # at the lower one the slope must be positive
        pulled = pulled if self.first else where(is_for_good(s), 0.0, pulled)
        held = s * s > 0.5
        return where(held, 0.0, beyond), where(held, pulled, 0.0), where(held, 0.0, state)

    def _change(
        self,
        inequalities: Sequence[int],
        beyond: Sequence[Scalar],
        freed: Sequence[Scalar],
        after: Sequence[Scalar],
    ) -> None:
        """The next states, unless nothing is contradicted."""
        t, farthest = self._t, largest_of(beyond)
        wrong = [where(x > 0.0, 1.0, y) for x, y in zip(beyond, freed)]
        count: Scalar = 0.0
        for x in wrong:
            count = count + x
        least, tries = self.read("least")[0], self.read("tries")[0]
        better = count < least - 0.5
        left = where(better, float(MAX_TRIALS), maximum(tries - 1.0, 0.0))
        together = left > MAX_TRIALS - BLOCK_TRIALS - 0.5
        t.output("least", [where(better, count, least)])
        t.output("tries", [left])
        t.output("going", [where(count > 0.5, 1.0, 0.0)])
        block, rows = list(wrong), slice(len(beyond) - len(inequalities), None)
        if self.selects:  # few of the rows that are missed hold in the end
            near = FAR_SHARE * largest_of(beyond[rows])
            block[rows] = [where(x > 0.0, where(x < near, 0.0, 1.0), y) for x, y in zip(beyond[rows], wrong[rows])]
        later: Scalar = 0.0  # contradictions among the entries behind this one
        takes: list[Scalar] = []
        for x, y, chosen in zip(reversed(beyond), reversed(wrong), reversed(block)):
            some = where(x > 0.0, where(x < farthest, 0.0, 1.0), y)
            alone = where(later > 0.5, 0.0, y)
            takes.insert(0, where(together, chosen, where(left > 0.5, some, alone)))
            later = later + y
        state, holds = list(self.read("state")), list(self.read("holds"))
        limited = [k for k, b in enumerate(self.bounds) if any(b)]
        for k, take, new in zip(limited, takes, after):
            state[k] = where(take > 0.5, new, state[k])
        for r, take, new in zip(inequalities, takes[len(limited) :], after[len(limited) :]):
            holds[r] = where(take > 0.5, new, holds[r])
        t.output("state", state)
        if self.sweeps:
            much = (count > MANY_CONTRADICTED - 0.5) & (left > MAX_TRIALS - SWEEPING_TRIALS - 0.5)
            t.output("lost", [where(better, 0.0, where(much, 1.0, 0.0))])
        if inequalities:
            t.output("holds", holds)

    def _sweep(self) -> None:
        """A sweep of the lanes that are lost."""
        t, level = self._stage("sweep")
        y, state, lost = self.read("swept"), self.read("state"), self.read("lost")[0] > 0.5
        ends = [(self.read("low")[k] if a else None, self.read("high")[k] if b else None)
                for k, (a, b) in enumerate(self.bounds)]  # fmt: skip
        for block, old, new in zip(
            ("swept", "state"), (y, state), swept(level, self._slope(level), y, state, ends)
        ):
            t.output(block, [where(lost, b, a) for a, b in zip(old, new)])
        self.parts[f"{self.name}sweep"] = t.program()

    def _measure(self, level: LevelReader, x: list[Scalar], lam: list[Scalar]) -> None:
        """x within its bounds, and how far it is from the conditions of Karush, Kuhn and Tucker."""
        within: list[Scalar] = []
        for k, (y, (has_low, has_high)) in enumerate(zip(x, self.bounds)):
            y = maximum(y, self.read("low")[k]) if has_low else y
            within.append(where(y > self.read("high")[k], self.read("high")[k], y) if has_high else y)
        slope = self._slope(level)
        force, gaps = level.pushed([a + b for a, b in zip(level.times(within), slope)], lam), []
        for k, (push, (has_low, has_high)) in enumerate(zip(force, self.bounds)):
            if has_low:
                push = where(within[k] > self.read("low")[k], push, minimum(push, 0.0))
            if has_high:
                push = where(within[k] < self.read("high")[k], push, maximum(push, 0.0))
            gaps.append(push if self.first else where(is_for_good(self.read("state")[k]), 0.0, push))
        for row, side, equal in zip(level.rows, level.sides, self.data.equal):
            over = along(row, within) - side
            gaps.append(over if equal else maximum(over, 0.0))
        if self.followed:  # what has a multiplier holds in every solution of the level
            damping = of(self.read("terms"), self.data.damping)
            least = BOUND_TOLERANCE * largest_of(slope) + DAMPING_MARGIN * damping * largest_of(within)
            self._write(
                state=[where(f * s < -least, 2.0 * s, s) for f, s in zip(force, self.read("state"))],
                holds=[where(y * on > least, 2.0 * on, on) for y, on in zip(lam, self.read("holds"))],
            )
        self._write(x=within, lam=lam)
        self._t.output(f"{self.name}kkt", [largest_of(gaps)])

    # -- calls ------------------------------------------------------------------------------------------------

    def write(self, c: StageCalls) -> None:
        """Rounds until no lane contradicts its state; at first within bounds alone where rows are many."""
        if not self.pivots:
            self._round(c)
            return
        rounds: Any = nullcontext()
        if self.bounded_first:
            self._until_right(c, lambda: c.call(f"{self.name}within"))
            c.call(f"{self.name}miss")
            rounds = c.f.when(c.some_above("missed"))
        with rounds:
            self._until_right(c, lambda: self._round(c))
        c.call(f"{self.name}measure")

    def _until_right(self, c: StageCalls, write_round: Callable[[], None]) -> None:
        """Writes the rounds of pivoting, repeated until every lane is right or has had its trials."""
        c.fill(NO_COUNT, "least", 0, 1)
        c.fill(float(self.trials), "tries", 0, 1)
        if self.sweeps:
            c.fill(0.0, "swept", 0, self.n)
        with c.f.loop(MAX_PIVOTINGS, some=True) as loop:
            write_round()
            if self.sweeps:
                with c.f.when(c.some_above("lost")), c.f.loop(SWEEPS_A_ROUND, some=True):
                    c.call(f"{self.name}sweep")
            loop.leave(~c.some_above("going"))

    def _round(self, c: StageCalls) -> None:
        if self.straight:
            c.call(f"{self.name}round")
            return
        if not self.selects:
            self._looped(c)
            return
        c.call(f"{self.name}count")
        crowded = c.some_above("crowded")
        with c.f.when(~crowded):
            c.call(f"{self.name}round")
        with c.f.when(crowded):
            self._looped(c)

    def _looped(self, c: StageCalls) -> None:
        name, size = self.name, self.n + self.m
        dense, K = DenseCode(c.f.module, c.l, samples=True), MatrixTile(c.at(f"{name}K"), size, size, size)
        c.call(f"{name}fill")
        dense.ldl(c.f, K, c.at(f"{name}line"), c.at(f"{name}inverse"))
        dense.substitute(c.f, K, c.at(f"{name}inverse"), c.at(f"{name}way"))
        for _ in range(self.refinements if self.m else 0):
            c.call(f"{name}refine")
            dense.substitute(c.f, K, c.at(f"{name}inverse"), c.at(f"{name}way"))
        c.call(f"{name}judge")
