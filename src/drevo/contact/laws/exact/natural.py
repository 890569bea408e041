"""Newton's method on the natural map of the exact law in loops over places, for states that multipliers leave.

Of a place with the force f, the acceleration y = J a - c that is too much, and y^ = y + mu |y_t| n the map is

    F = (f - P_K(f - rho y^)) / rho,      its slopes B by y and L by f,      M a = rhs + J' f.

A step is that of `coulomb_newton`, as accelerations: z of the rates, d of the forces, delta B for rows that depend
on each other,

    (M + J' N J) z = -e - J' g,      d = -(g + N J z),      N = K^-1 B,  g = K^-1 F,  K = L + delta B

with e = M a - rhs - J' f, which rounding leaves.

The slip makes N skew, and the slope of its size has every value within the unit circle where nothing slips.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....codegen.llvm.ir import I64, Value
from ....codegen.llvm.stages import StageCalls
from ....mechanics.algorithms.coulomb import DIVISION_GUARD
from ....mechanics.algorithms.coulomb_newton import CARRIED_DAMPING, MIN_DECREASE, block_solved
from ....mechanics.scalar import Matrix, Scalar, Vector, dot, maximum, sqrt, where
from ...packing import of
from ..soft.factor_loops import sum_of_values
from ..soft.law import RowGroup
from ..soft.layout import PackedRows, SlotLayout
from ..soft.newton import symmetric_of
from ..soft.pair_loops import Touching
from ..soft.stages import StageTracer
from .solve import DAMPING_FALL, DAMPING_RISE, MAX_HALVINGS, RESIDUAL_TOLERANCE

MAX_MAP_STEPS = 40  # of Newton's method before multipliers are moved again
LEAST_SHIFT = 1e-9  # of delta over the inverse weight
FIRMNESS = 30.0  # of rho, over the inverse weight of a place
MAP_BLOCKS = ("trying", "missed", "square", "largest", "damping", "share", "tried", "open")  # a number each


class Missed(NamedTuple):
    """F and its slopes, by y and by f."""

    F: list[Scalar]
    by_y: Matrix
    by_f: Matrix


def missed(group: RowGroup, y: Vector, f: Vector, weight: Scalar) -> list[Scalar]:
    """F with rho = 1 / weight."""
    shifted = [u - weight * z for u, z in zip(slipping(group, y), f)]
    kept = group.answer(shifted, [1.0 / weight] * group.size).force
    return [(z - x) * weight for z, x in zip(f, kept)]


def slipping(group: RowGroup, y: Vector) -> list[Scalar]:
    """y^ of a contact with friction."""
    return [y[0] + group.mu0 * sqrt(dot(y[1:], y[1:])), *y[1:]] if group.mu else list(y)


def _slopes(x: PackedRows, y: Vector, f: Vector, weight: Scalar) -> Missed:
    group, m = x.group, x.group.size
    shifted = [u - weight * z for u, z in zip(slipping(group, y), f)]
    answer = group.answer(shifted, [1.0 / weight] * m)
    D = [[weight * z for z in row] for row in symmetric_of(x, iter([z for row in answer.hessian for z in row]))]
    turned = [1.0]
    if group.mu:
        over = group.mu0 / maximum(sqrt(dot(y[1:], y[1:])), DIVISION_GUARD)
        turned += [u * over for u in y[1:]]
    by_y = [[d[0] * turned[k] + (d[k] if k else 0.0) for k in range(m)] for d in D]
    by_f = [[weight * ((1.0 if i == k else 0.0) - z) for k, z in enumerate(row)] for i, row in enumerate(D)]
    return Missed([(z - p) * weight for z, p in zip(f, answer.force)], by_y, by_f)


class JointMiss(NamedTuple):
    """A row of a joint: J, y, f, its inverse weight."""

    x: PackedRows
    J: list[Scalar]
    y: Scalar
    f: Scalar
    weight: Scalar


class Kept(NamedTuple):
    """The places of the numbers of a contact in its block: f and J a of this method, d or g, and N."""

    f: int
    y: int
    d: int
    N: int
    end: int


def kept_from(first: int, m: int) -> Kept:
    return Kept(first, first + m, first + 2 * m, first + 3 * m, first + 3 * m + m * m)


class NaturalMap:
    """The stages and the calls, beside those of multipliers."""

    def __init__(self, loops: Any) -> None:
        self.loops, self.e = loops, loops.e
        e, self.n = self.e, self.e.nv
        count = max(1, len(e.rows))
        e.sizes |= dict.fromkeys(MAP_BLOCKS, 1) | {
            "map_A": self.n**2,
            "map_a": self.n,
            "map_e": self.n,
            "map_z": self.n,
        }
        e.sizes |= {f"map_{name}": count for name in ("rows_f", "rows_d", "rows_N")}
        once = {
            "map_begin": self._begin, "map": self._measure, "map_decide": self._decide, "map_slopes": self._linear,
            "map_step": self._step, "map_trial": self._trial, "map_accept": self._accept,
            "map_advance": self._advance, "map_end": self._end,
        }  # fmt: skip
        e.add(once)
        at_place = {
            "map_begin": self._begin_at, "map": self._measure_at, "map_slopes": self._linear_at,
            "map_step": self._step_at, "map_trial": self._trial_at, "map_advance": self._advance_at,
            "map_end": self._end_at,
        }  # fmt: skip
        e.add_by_slot(at_place)

    # -- calls ----------------------------------------------------------------------------------------------

    def write(self, c: StageCalls, touching: Touching) -> None:
        """Steps of the states that go on; those that fulfil the law then have its accelerations and forces."""
        self._both(c, "map_begin", touching)
        with c.f.loop(MAX_MAP_STEPS, some=True) as loop:
            self._measured(c, touching)
            loop.leave(~c.some_above("trying"))
            self._solved(c, touching)
            c.call("map_step")
            self._each(c, "map_step", touching)
            with c.f.loop(MAX_HALVINGS + 1, some=True) as halves:
                self._both(c, "map_trial", touching)
                c.call("map_accept")
                halves.leave(~c.some_above("open"))
            self._both(c, "map_advance", touching)
        self._measured(c, touching)
        self._both(c, "map_end", touching)

    def _measured(self, c: StageCalls, touching: Touching) -> None:
        """Writes J a of places, e, and by how much the law is missed."""
        c.call("map")
        for kind in self.e.alike:
            at = self.kept(kind.law)
            with self.loops.places(c, kind, touching) as (pair, block, _):
                self.loops.gather(c, kind, pair, block, "map_a", at.y)
                c.call(f"map_{kind.law}", block)
                self.loops.scatter(c, kind, pair, block, "map_e", at.f)
        c.call("map_decide")

    def _both(self, c: StageCalls, stage: str, touching: Touching) -> None:
        c.call(stage)
        self._each(c, stage, touching)

    def _each(self, c: StageCalls, stage: str, touching: Touching) -> None:
        self.loops.each(c, stage, touching)

    def _solved(self, c: StageCalls, touching: Touching) -> None:
        """Writes z, and J z of places."""
        f, n, o, A, z = c.f, self.n, self.loops, c.at("map_A"), c.at("map_z")
        with f.loop(n * n, some=True) as i:
            o.put(c, A, i.i, f.zero(c.l.type))
        c.call("map_slopes")
        for kind in self.e.alike:
            at, m = self.kept(kind.law), self.e.contacts[kind.law].group.size
            with o.places(c, kind, touching) as (pair, block, _):
                c.call(f"map_slopes_{kind.law}", block)
                self._matrix(c, pair, block, at, self.e.records[kind.law].end, m)
                o.scatter(c, kind, pair, block, "map_z", at.d)
        self._eliminate(c, A, z)
        for kind in self.e.alike:
            with o.places(c, kind, touching) as (pair, block, _):
                o.gather(c, kind, pair, block, "map_z", self.e.records[kind.law].z)

    def kept(self, k: int) -> Kept:
        at, m = self.e.records[k], self.e.contacts[k].group.size
        return kept_from(at.slip + m + 2, m)

    def _matrix(self, c: StageCalls, pair: Any, block: Value, at: Kept, rows: int, m: int) -> None:
        """A += J' N J of a place."""
        o, rates = self.loops, self.loops.table(c, "rates").at(pair.first, I64)
        N = [[o.load(c, block, at.N + m * p + q) for q in range(m)] for p in range(m)]
        with c.f.loop(pair.rates) as i:
            first = rates.at(i.i, I64).load(I64) * self.n
            column = [o.load(c, block, i.i * m + (rows + p)) for p in range(m)]
            turned = [sum_of_values(column[p] * N[p][q] for p in range(m)) for q in range(m)]
            with c.f.loop(pair.rates) as j:
                entry = o.part(c, c.at("map_A"), first + rates.at(j.i, I64).load(I64))
                more = sum_of_values(turned[q] * o.load(c, block, j.i * m + (rows + q)) for q in range(m))
                entry.store(entry.load(c.l.type, c.l.bytes) + more, c.l.bytes)

    def _eliminate(self, c: StageCalls, A: Value, z: Value) -> None:
        """z = A^-1 z from the last rate on, so that what is zero mostly stays; rows that are zero are passed over.

        The symmetric part of A is positive definite: no pivot is chosen.
        """
        f, n, load, put = c.f, self.n, self.loops.load, self.loops.put
        with f.loop(n, some=True) as step:
            k = f.value(n - 1) - step.i
            over, side = f.const(c.l.type, 1.0) / load(c, A, k * (n + 1)), load(c, z, k)
            with f.loop(k) as i:
                x = load(c, A, i.i * n + k)
                with f.when(c.any(x.differs(0.0))):
                    share = x * over
                    with f.loop(k) as j:
                        put(c, A, i.i * n + j.i, load(c, A, i.i * n + j.i) - share * load(c, A, k * n + j.i))
                    put(c, z, i.i, load(c, z, i.i) - share * side)
        with f.loop(n, some=True) as i:
            with f.loop(i.i, carry={"left": load(c, z, i.i)}) as j:
                j.left = j.left - load(c, A, i.i * n + j.i) * load(c, z, j.i)
            put(c, z, i.i, j.left / load(c, A, i.i * (n + 1)))

    # -- stages of a state, with the rows of joints -----------------------------------------------------------

    def _rows(self, s: StageTracer, share: Scalar = 0.0) -> list[JointMiss]:
        """The rows of joints after a share of a step."""
        main, a, out = s.read("main"), s.read("map_a"), list[JointMiss]()
        if not isinstance(share, float):
            a = [x + share * y for x, y in zip(a, s.read("map_z"))]
        for k, x in enumerate(self.e.rows):
            J = [of(main, y) for y in x.B[0]]
            f, weight = s.read("map_rows_f")[k], self.loops.weight_of(of(main, x.D[0]))
            out.append(JointMiss(x, J, dot(J, [a[r] for r in x.rates]) - s.read("c")[k], f, weight))
        return out

    def _begin(self, s: StageTracer) -> None:
        a = s.read("a")
        s.write(map_a=a, trying=s.number("going"), damping=1.0)
        s.write(map_rows_f=[self.e.newton.answer(s, k, a).force[0] for k in range(len(self.e.rows))] or [0.0])

    def _measure(self, s: StageTracer) -> None:
        """The part of joints in how far the law is missed, in |F|^2, in the largest acceleration by a force; e."""
        far, square, most = list[Scalar]((0.0, 0.0, DIVISION_GUARD))
        e = [x - y for x, y in zip(self.e.times(self.e.inertia(s), s.read("map_a")), self.e.efforts(s))]
        for x, J, y, f, weight in self._rows(s):
            far = maximum(far, abs(missed(x.group, [y], [f], weight)[0]))
            (F,) = missed(x.group, [y], [f], weight * (1.0 / FIRMNESS))
            square, most = square + F * F, maximum(most, weight * abs(f))
            for r, u in zip(x.rates, J):
                e[r] = e[r] - u * f
        s.write(missed=far, square=square, largest=most, map_e=e)

    def _decide(self, s: StageTracer) -> None:
        far = s.number("missed")
        for k, (x, row) in enumerate(zip(s.read("map_e"), self.e.inertia(s))):
            far = maximum(far, abs(x) / row[k])
        on = where(far * self.e.problem.step > RESIDUAL_TOLERANCE, where(s.number("going") > 0.0, 1.0, 0.0), 0.0)
        s.write(missed=far, trying=on, share=where(on > 0.0, 2.0, 0.0), open=on)

    def _linear(self, s: StageTracer) -> None:
        """A = M + J' N J and z = -e - J' g of joints."""
        A, side, N, g = dict[int, Scalar](), [-x for x in s.read("map_e")], list[Scalar](), list[Scalar]()
        for r, row in enumerate(self.e.inertia(s)):
            for k, z in row.items():
                A[self.n * r + k] = A[self.n * k + r] = z
        part = self._part(s)
        for x, J, y, f, weight in self._rows(s):
            at = _slopes(x, [y], [f], weight * (1.0 / FIRMNESS))
            over = 1.0 / (at.by_f[0][0] + part * weight * at.by_y[0][0])
            N.append(at.by_y[0][0] * over)
            g.append(at.F[0] * over)
            for r, u in zip(x.rates, J):
                side[r] = side[r] - u * g[-1]
                for q, w in zip(x.rates, J):
                    A[self.n * r + q] = A.get(self.n * r + q, 0.0) + u * N[-1] * w
        s.write_some("map_A", A)
        s.write(map_z=side, map_rows_N=N or [0.0], map_rows_d=g or [0.0])

    def _part(self, s: StageTracer) -> Scalar:
        """delta over the inverse weight."""
        size = sqrt(s.number("square")) / s.number("largest")
        return CARRIED_DAMPING * s.number("damping") * size + LEAST_SHIFT

    def _step(self, s: StageTracer) -> None:
        z, out = s.read("map_z"), list[Scalar]()
        for (x, J, *_), N, g in zip(self._rows(s), s.read("map_rows_N"), s.read("map_rows_d")):
            out.append(-(g + N * dot(J, [z[r] for r in x.rates])))
        s.write(map_rows_d=out or [0.0])

    def _trial(self, s: StageTracer) -> None:
        """Half the share of before, and the part of joints in |F|^2 there.

        Of the map beside which the step is taken, with delta: so forces within a body may grow where nothing else
        changes, until something slips.
        """
        share = where(s.number("open") > 0.0, 0.5 * s.number("share"), s.number("share"))
        tried: Scalar = 0.0
        for (x, _, y, f, weight), d in zip(self._rows(s, share), s.read("map_rows_d")):
            near = y + share * (self._part(s) * weight * d)
            (F,) = missed(x.group, [near], [f + share * d], weight * (1.0 / FIRMNESS))
            tried = tried + F * F
        s.write(share=share, tried=tried)

    def _accept(self, s: StageTracer) -> None:
        share, square, tried = s.number("share"), s.number("square"), s.number("tried")
        falls = where(tried < square * (1.0 - MIN_DECREASE * share), 1.0, 0.0)
        s.write(open=where(s.number("open") > 0.0, 1.0 - falls, 0.0))

    def _advance(self, s: StageTracer) -> None:
        """The accelerations and the forces of joints after the share that is good; damping by it."""
        share = where(s.number("open") > 0.0, 0.0, s.number("share"))
        fall = where(share > 0.75, DAMPING_FALL, where(share > 0.0, 1.0, DAMPING_RISE))
        s.write(share=share, damping=s.number("damping") * fall)
        for name, step in (("map_a", "map_z"), ("map_rows_f", "map_rows_d")):
            s.write(**{name: [x + share * y for x, y in zip(s.read(name), s.read(step))]})

    def _end(self, s: StageTracer) -> None:
        """Accelerations and wanted ones of the states that are solved, which go on no more."""
        far, going, wanted = s.number("missed") * self.e.problem.step, s.number("going"), list(s.read("wanted"))
        solved = where(far < RESIDUAL_TOLERANCE, going, 0.0)
        for k, (x, _, y, f, _) in enumerate(self._rows(s)):
            moved = y + s.read("c")[k] + f / of(s.read("main"), x.D[0])
            wanted[k] = where(solved > 0.0, moved, wanted[k])
        s.write(trying=solved, going=where(solved > 0.0, 0.0, going), wanted=wanted)
        s.write(last=where(solved > 0.0, far, s.number("last")))
        s.write(a=[where(solved > 0.0, x, y) for x, y in zip(s.read("map_a"), s.read("a"))])

    # -- stages of a place ------------------------------------------------------------------------------------

    def _here(
        self, s: StageTracer, x: PackedRows, at: SlotLayout
    ) -> tuple[Kept, list[Scalar], list[Scalar], Scalar]:
        """Gives where a place keeps its numbers, y, f, and its inverse weight."""
        m = x.group.size
        kept = kept_from(at.slip + m + 2, m)
        y = [u - c for u, c in zip(s.here(kept.y, m), s.here(at.slip, m))]
        return kept, y, list(s.here(kept.f, m)), s.here(at.slip + m, 1)[0]

    def _begin_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        kept, touches = kept_from(at.slip + x.group.size + 2, x.group.size), s.here(at.gap, 1)[0] < 0.0
        s.write_here({kept.f: [where(touches, z, 0.0) for z in s.here(at.f, x.group.size)]})

    def _measure_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        _, y, f, weight = self._here(s, x, at)
        touches, far, most = s.here(at.gap, 1)[0] < 0.0, s.number("missed"), s.number("largest")
        for z in missed(x.group, y, f, weight):
            far = maximum(far, abs(z))
        for z in f:
            most = maximum(most, weight * abs(z))
        F = missed(x.group, y, f, weight * (1.0 / FIRMNESS))
        s.write(missed=where(touches, far, s.number("missed")), largest=most)
        s.write(square=s.number("square") + where(touches, dot(F, F), 0.0))

    def _linear_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """N and g of a place."""
        kept, y, f, weight = self._here(s, x, at)
        touches, delta = s.here(at.gap, 1)[0] < 0.0, self._part(s) * weight
        slopes = _slopes(x, y, f, weight * (1.0 / FIRMNESS))
        K = [[u + delta * w for u, w in zip(*rows)] for rows in zip(slopes.by_f, slopes.by_y)]
        *columns, g = block_solved(K, [*zip(*slopes.by_y), slopes.F])
        N = [where(touches, column[p], 0.0) for p in range(x.group.size) for column in columns]
        s.write_here({kept.d: [where(touches, u, 0.0) for u in g], kept.N: N})

    def _step_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        m, (kept, *_) = x.group.size, self._here(s, x, at)
        N, z = s.here(kept.N, m * m), s.here(at.z, m)
        s.write_here({kept.d: [-(g + dot(N[m * p : m * p + m], z)) for p, g in enumerate(s.here(kept.d, m))]})

    def _trial_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        kept, y, f, weight = self._here(s, x, at)
        m, share, touches = x.group.size, s.number("share"), s.here(at.gap, 1)[0] < 0.0
        near, d = self._part(s) * weight, s.here(kept.d, m)
        y = [u + share * (w + near * z) for u, w, z in zip(y, s.here(at.z, m), d)]
        f = [u + share * z for u, z in zip(f, d)]
        F = missed(x.group, y, f, weight * (1.0 / FIRMNESS))
        s.write(tried=s.number("tried") + where(touches, dot(F, F), 0.0))

    def _advance_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        m, share, (kept, _, f, _) = x.group.size, s.number("share"), self._here(s, x, at)
        s.write_here({kept.f: [u + share * w for u, w in zip(f, s.here(kept.d, m))]})

    def _end_at(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Forces of the states that are solved, as multipliers of the first D, which round least."""
        _, y, f, _ = self._here(s, x, at)
        m, block, solved = x.group.size, s.here(0, at.S), s.number("trying") > 0.0
        moved = [u + c for u, c in zip(y, s.here(at.slip, m))]
        kept = self.loops.held(s, x, at, moved, f)
        parts = {0: (kept, (*x.ref, *x.D)), at.f: (f, None), at.y: ([u - c for u, c in zip(moved, kept)], None)}
        for k, (new, packed) in parts.items():
            old = [of(block, z) for z in packed] if packed else s.here(k, m)
            s.write_here({k: [where(solved, u, w) for u, w in zip(new, old)]})
