"""Newton's method for the minimum of the soft law's cost, in stages: gradient, Hessian, step, line search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from operator import sub

from ....mechanics.algorithms.inertia_matrix import Factors
from ....mechanics.scalar import Scalar, Vector, dot, is_zero, where
from ...packing import of
from .factor_loops import triangle
from .law import Answer
from .layout import PackedRows, SlotLayout
from .stages import Evaluation, StageTracer

MAX_STRAIGHT_FACTOR_PRODUCTS = 3000  # of a factorisation of M; with more, steps that loop solve in loops
MAX_NEWTON_STEPS, MAX_SEARCH_STEPS = 40, 20  # of the method and of a search at most
LAST_STEP_SHARE = 1e-11  # of the accelerations, in the norm of energy: below it a step is the last
SLOPE_ROUNDING = 1e-9  # of the first slope: what rounding may make of a slope of zero
ENDING_SLOPE_SHARE = 0.1  # of the first slope: below it a search has ended
SCALAR_BLOCKS = (
    "crosses", "changed", "live", "alpha", "low", "high", "slope", "slope2", "slope0", "quad", "lin", "open",
)  # fmt: skip


class Newton:
    """Adds the stages to those of an evaluation.

    a: the accelerations; r = M a - rhs; g: the gradient; p: the step. H is kept by the elimination order of M,
    with the entries of M and of rates that meet in a contact.
    """

    def __init__(self, e: Evaluation) -> None:
        self.e, self.n = e, e.nv
        e.sizes |= {"a": self.n, "r": self.n, "g": self.n, "p": self.n, **dict.fromkeys(SCALAR_BLOCKS, 1)}
        e.sizes |= {"pieces": max(1, len(e.rows)), "stiff": max(1, sum(x.group.size**2 for x in e.rows))}
        self.place = {v: i for i, v in enumerate(e.order)}
        self.within = within = self._fill(())
        every = self.every = self._fill(e.contacts)
        e.crossing = [self._pairs(x) - self._all(within) != set() for x in e.contacts]
        self.pattern = [{j: triangle(i) + j for j in row} for i, row in enumerate(every)]
        e.sizes["H"] = triangle(self.n)
        products = sum(len(row) * (len(row) + 1) // 2 for row in within)
        self.solves_in_loops = e.looped and products > MAX_STRAIGHT_FACTOR_PRODUCTS
        once = {
            "start": self._start, "gradient": self._gradient, "finish": self._finish, "aim": self._aim,
            "slope": self._slope, "trial": self._trial,
        }  # fmt: skip
        e.add(once | {"inertia": partial(self._inertia, rows=within if e.looped else every)})
        e.sizes["x"] = self.n
        of_slot = {"touch": self._touch, "bend": self._bend}
        if not e.looped:
            of_slot |= {"hessian": self._hessian, "along": self._along}
            if any(e.crossing):
                e.add({"solve_crossing": partial(self._solve_crossing, rows=every)})
        if not self.solves_in_loops:
            e.add({"solve": lambda s: s.write(p=self._step(s, within))})
        e.add_by_slot(of_slot)

    def _pairs(self, x: PackedRows) -> set[tuple[int, int]]:
        """The entries of H that a group has, by the order of elimination."""
        at = sorted(self.place[r] for r in x.rates)
        return {(i, j) for i in at for j in at if j <= i}

    @staticmethod
    def _all(rows: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
        return {(i, j) for i, row in enumerate(rows) for j in row}

    def _fill(self, contacts: Iterable[PackedRows]) -> list[list[int]]:
        """By row of H where entries are: those of M, of rows of joints and of contacts, and what fills in."""
        joined = {(r, c) for r, row in enumerate(self.e.M) for c in row} | self.e.slopes.keys()
        M = {(self.place[r], self.place[c]) for r, c in joined}
        met = {(max(pair), min(pair)) for pair in M}.union(*(self._pairs(x) for x in (*contacts, *self.e.rows)))
        rows: list[set[int]] = [{j for i, j in met if i == k} for k in range(self.n)]
        for i in range(self.n - 1, -1, -1):
            for j in rows[i] - {i}:
                rows[j] |= {k for k in rows[i] if k <= j}
        return [sorted(row) for row in rows]

    def entry(self, r: int, c: int) -> int:
        i, j = self.place[r], self.place[c]
        return self.pattern[max(i, j)][min(i, j)]

    # -- gradient and Hessian -------------------------------------------------------------------------------

    def _start(self, s: StageTracer) -> None:
        """From the accelerations without contact; loops solve for them."""
        if self.solves_in_loops:
            return s.write(g=[-x for x in self.e.efforts(s)])
        s.write(a=Factors(self.e.inertia(s), self.e.order).solve(self.e.efforts(s)))

    def _gradient(self, s: StageTracer) -> None:
        """r, and g of M and of the rows of joints."""
        a, changed = s.read("a"), where(s.number("alpha") < 1.0, 1.0, 0.0)
        r = [x - y for x, y in zip(self.e.times(self.e.inertia(s), a), self.e.efforts(s))]
        g, pieces, stiff = list(r), [], list[Scalar]()
        for k, (x, old) in enumerate(zip(self.e.rows, s.read("pieces"))):
            answer = self.answer(s, k, a)
            _add_forces(g, x, x.B, answer, s.read("main"))
            changed = changed + abs(answer.piece - old) + answer.curved
            pieces.append(answer.piece)
            stiff += [y for row in answer.hessian for y in row]
        s.write(r=r, g=g, changed=changed, pieces=pieces or [0.0], stiff=stiff or [0.0])

    def answer(self, s: StageTracer, k: int, a: Vector) -> Answer:
        """Forces and Hessian of row k, of a joint or the like, at the accelerations a."""
        x, block = self.e.rows[k], s.read("main")
        moved = [dot([of(block, y) for y in row], [a[r] for r in x.rates]) for row in x.B]
        y = [w - z for w, z in zip(moved, self.e.wanted_of(s, k))]
        return x.law(block).answer(y, [of(block, d) for d in x.D])

    def _touch(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Forces of a slot at a, and its part of g. A lane goes on for its own contacts only, not for those of the
        lanes beside it."""
        block = s.here(0, at.S)
        moved = s.here(at.y, x.group.size) if self.e.looped else self._moved(s, x, block)
        y = [u - of(block, z) for u, z in zip(moved, x.ref)]
        answer = x.law(block).answer(y, [of(block, d) for d in x.D])
        changed = abs(answer.piece - s.here(at.piece, 1)[0]) + answer.curved
        s.write(changed=s.number("changed") + where(s.here(at.gap, 1)[0] < 0.0, changed, 0.0))
        stiff = [z for row in answer.hessian for z in row]
        s.write_here({at.S: stiff, at.f: answer.force, at.y: y, at.piece: answer.piece})
        if not self.e.looped:
            g = list(s.read("g"))
            _add_forces(g, x, x.B, answer, block)
            s.write_some("g", {r: g[r] for r in x.rates})

    @staticmethod
    def _moved(s: StageTracer, x: PackedRows, block: Vector) -> list[Scalar]:
        a = s.read("a")
        return [dot([of(block, b) for b in row], [a[r] for r in x.rates]) for row in x.B]

    def _finish(self, s: StageTracer) -> None:
        """Keeps live only the lanes that have changed."""
        s.write(live=where(s.number("changed") > 0.0, s.number("live"), 0.0))

    def _inertia(self, s: StageTracer, rows: Sequence[Sequence[int]]) -> None:
        """H of M and of the rows of joints, in these entries."""
        H: list[Scalar] = [0.0] * self.e.sizes["H"]
        for r, row in enumerate(self.e.inertia(s)):
            for c, m in row.items():
                H[self.entry(r, c)] = m
        stiff = iter(s.read("stiff"))
        for x in self.e.rows:
            S = symmetric_of(x, stiff)
            for at, y in self._squared(x, s.read("main"), S).items():
                H[at] = H[at] + y
        s.write_some("H", {k: H[k] for k in (self.pattern[i][j] for i, row in enumerate(rows) for j in row)})

    def _hessian(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """H += B^T S B."""
        m, H = x.group.size, s.read("H")
        S = symmetric_of(x, iter(s.here(at.S, m * (m + 1) // 2)))
        s.write_some("H", {k: H[k] + y for k, y in self._squared(x, s.here(0, at.S), S).items()})

    def _squared(self, x: PackedRows, block: Vector, S: Sequence[Vector]) -> dict[int, Scalar]:
        """B^T S B, by places in H."""
        columns = [[of(block, row[i]) for row in x.B] for i in range(len(x.rates))]
        turned = [[dot(row, column) for row in S] for column in columns]
        out: dict[int, Scalar] = {}
        for i, r in enumerate(x.rates):
            for j, c in enumerate(x.rates[: i + 1]):
                y = dot(columns[i], turned[j])
                if not is_zero(y):
                    out[self.entry(r, c)] = y
        return out

    # -- the step -------------------------------------------------------------------------------------------

    def _step(self, s: StageTracer, rows: Sequence[Sequence[int]]) -> list[Scalar]:
        """p = -H^-1 g, of these entries; y / D rounds by itself, as it does in loops, since it is made behind the
        products that are subtracted."""
        L = self.factors(s, rows)
        p: list[Scalar] = [0.0] * self.n
        for i, y in enumerate(L.solve_transposed(s.read("g"))):
            less = [x * p[self.e.order[j]] for j, x in L.L[i].items()]
            p[self.e.order[i]] = reduce(sub, less, y * L.inverse[i])
        return [-x for x in p]

    def _solve_crossing(self, s: StageTracer, rows: Sequence[Sequence[int]]) -> None:
        """With all entries, which round in another order: for lanes that need them."""
        crosses = s.number("crosses") > 0.0
        s.write(p=[where(crosses, x, y) for x, y in zip(self._step(s, rows), s.read("p"))])

    def _aim(self, s: StageTracer) -> None:
        """Slopes along the step, and whether it is the last."""
        g, a, r, p, live = s.read("g"), s.read("a"), s.read("r"), s.read("p"), s.number("live")
        slope0, energy = dot(g, p), dot(a, [x + y for x, y in zip(r, self.e.efforts(s))])
        last = energy * (LAST_STEP_SHARE * LAST_STEP_SHARE) + slope0 > 0.0
        s.write(slope0=slope0, quad=dot(p, self.e.times(self.e.inertia(s), p)), lin=dot(r, p))
        s.write(live=where(last, 0.0, live), alpha=where(live > 0.0, 1.0, 0.0), low=0.0, high=1.0)

    def factors(self, s: StageTracer, rows: Sequence[Sequence[int]]) -> Factors:
        """Factorises the Hessian H, taken with the entries in these rows alone."""
        H, matrix = s.read("H"), list[dict[int, Scalar]]({} for _ in range(self.n))
        for i, row in enumerate(rows):
            for j in row:
                x, y = self.e.order[i], self.e.order[j]
                matrix[max(x, y)][min(x, y)] = H[self.pattern[i][j]]
        return Factors(matrix, self.e.order)

    def _along(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """z = B p of a slot."""
        block, p = s.here(0, at.S), s.read("p")
        s.write_here({at.z: [dot([of(block, b) for b in row], [p[r] for r in x.rates]) for row in x.B]})

    def _slope(self, s: StageTracer) -> None:
        """The slope at alpha and its rate, of M and of the rows of joints."""
        a, p, alpha, block = s.read("a"), s.read("p"), s.number("alpha"), s.read("main")
        slope, slope2 = s.number("lin") + alpha * s.number("quad"), s.number("quad")
        there = [x + alpha * y for x, y in zip(a, p)]
        for k, x in enumerate(self.e.rows):
            z = [dot([of(block, b) for b in row], [p[r] for r in x.rates]) for row in x.B]
            slope, slope2 = _sloped(slope, slope2, self.answer(s, k, there), z)
        s.write(slope=slope, slope2=slope2)

    def _bend(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """The part of a slot."""
        m, alpha = x.group.size, s.number("alpha")
        y, z = s.here(at.y, m), s.here(at.z, m)
        block = s.here(0, at.S)
        answer = x.law(block).answer([u + alpha * w for u, w in zip(y, z)], [of(block, d) for d in x.D])
        slope, slope2 = _sloped(s.number("slope"), s.number("slope2"), answer, z)
        s.write(slope=slope, slope2=slope2)

    def _trial(self, s: StageTracer) -> None:
        """The next point to try: the root of the slope by Newton's method, between bounds that close in on it.

        All of a step is taken where the function falls to its end.
        """
        slope, alpha, first = s.number("slope"), s.number("alpha"), -s.number("slope0")
        low, high, live = s.number("low"), s.number("high"), s.number("live")
        falls = where(1.0 - alpha > 0.0, where(slope + ENDING_SLOPE_SHARE * first > 0.0, 1.0, 0.0), 1.0)
        fits = where(slope - SLOPE_ROUNDING * first > 0.0, 0.0, falls)
        low, high = where(slope > 0.0, low, alpha), where(slope > 0.0, alpha, high)
        middle, trial = 0.5 * (low + high), alpha - slope / s.number("slope2")
        inside = where(trial - low > 0.0, where(high - trial > 0.0, trial, middle), middle)
        on = where(live > 0.0, where(fits > 0.0, 0.0, 1.0), 0.0)
        s.write(alpha=where(on > 0.0, inside, alpha), low=low, high=high, open=on)


def _add_forces(
    g: list[Scalar], x: PackedRows, B: Sequence[Sequence[object]], answer: Answer, block: Vector
) -> None:
    """g -= B^T f."""
    for i, rate in enumerate(x.rates):
        g[rate] = g[rate] - dot([of(block, row[i]) for row in x.B], answer.force)


def symmetric_of(x: PackedRows, packed: object) -> list[list[Scalar]]:
    """S of a group from its lower triangle; of pyramids tangents do not meet."""
    m, full = x.group.size, x.group.coupled
    S: list[list[Scalar]] = [[0.0] * m for _ in range(m)]
    for r in range(m):
        for c in range(r + 1):
            y = next(packed)  # type: ignore[call-overload]
            if full or c in (0, r):
                S[r][c] = S[c][r] = y
    return S


def _sloped(slope: Scalar, slope2: Scalar, answer: Answer, z: Vector) -> tuple[Scalar, Scalar]:
    """Both with what a group adds: -f z and z S z."""
    for r, row in enumerate(answer.hessian):
        for c, x in enumerate(row):
            part = x * (z[r] * z[c])
            slope2 = slope2 + (part if r == c else part + part)
    return slope - dot(answer.force, z), slope2
