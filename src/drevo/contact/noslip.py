"""MuJoCo's pass after the soft law (`noslip_iterations`): friction is made firm while normal forces stay.

Sweeps go over dry friction, then over the tangents of contacts one after another: each takes the force that
stops its slip, as far as it may be. Accelerations follow at once, a += M^-1 J' df. A state rests once a sweep
gains less than a tolerance times the trace of M. Sweeps are not run to their end, so that the order of contacts
matters; it is MuJoCo's but for pairs that a file lists. What moves apart rests apart there, and together here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import mul

from ..codegen.llvm.ir import I8, Value
from ..codegen.llvm.stages import StageCalls
from ..mechanics.scalar import Scalar, Vector, clip, dot, eliminated, maximum, minimum, sqrt, where
from .laws.soft.factor_loops import FactorLoops, fixed_shape, plus_product
from .laws.soft.law import DryFriction, Pyramid
from .laws.soft.layout import PackedRows, SlotLayout, slip_numbers
from .laws.soft.stages import Evaluation, StageTracer
from .packing import of

LEAST_NOSLIP_FORCE = 1e-15  # along the normal, and of what a tangent moves: below it there is no friction
LEAST_TANGENT_RESPONSE = 1e-10  # what a tangent of an elliptic cone moves is no less
MAX_CONE_STEPS = 20  # steps for the multiplier of a cone
CONE_TOLERANCE = 1e-10  # where they end; of a determinant or a pivot; of what a cone may lose
MAX_DETERMINANT_SIZE = 3  # tangents, up to which the determinant counts


class NoSlip:
    """Adds the stages of the pass to those of an evaluation.

    Tangents of a slot, and rows of dry friction, one by one, keep a record in its block or in "held": rows T over
    all rates, Z = M^-1 T', A = T Z', and of each its slip, the change of its force and its bound.
    """

    def __init__(self, e: Evaluation) -> None:
        self.e, self.nv = e, e.nv
        self.held = [x for x in e.rows if isinstance(x.group, DryFriction)]
        self.stride = slip_numbers(1, self.nv) + 2  # with the force, and the slip that is wanted
        e.sizes |= {"held": max(1, len(self.held) * self.stride), "gain": 1, "slipping": 1}
        self.order = slot_order(e)
        e.add({"slip_begin": self._begin, "hold": self._hold, "slip_end": self._end})
        e.add_by_slot({"ready": self._ready, "slip": self._slip})

    def _begin(self, s: StageTracer) -> None:
        """Records of dry friction, and f^2 / D / 2 of all rows of joints."""
        main, a, gain, records = s.read("main"), s.read("a"), 0.0, list[Scalar]()
        for k, x in enumerate(self.e.rows):
            force, D = self.e.newton.answer(s, k, a).force[0], of(main, x.D[0])
            gain = gain + 0.5 * force * force / where(D > 0.0, D, 1.0)
            if isinstance(x.group, DryFriction):
                row = _dense(x.rates, [of(main, y) for y in x.B[0]], self.nv)
                records += [*row, *[0.0] * (self.nv + 3), x.group.bound, force, of(main, x.ref[0])]
        s.write(held=records or [0.0], gain=gain, slipping=1.0)

    def _ready(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """Writes the tangents of a slot, unless loops do, and their bounds; adds f^2 / D / 2 to the gain."""
        block, m = s.here(0, at.S), x.group.size
        y, f, D, law = s.here(at.y, m), s.here(at.f, m), [of(block, d) for d in x.D], x.law(block)
        gain, bounds = s.number("gain"), [f[0]] * (m - 1)
        if isinstance(law, Pyramid):
            bounds = []
            for mu, t in zip(law.mu, y[1:]):
                edges = [-(D[0] * minimum(y[0] + sign * (mu * t), 0.0)) for sign in (1.0, -1.0)]
                gain = gain + 0.5 * dot(edges, edges) / where(D[0] > 0.0, D[0], 1.0)
                bounds.append(mu * (edges[0] + edges[1]))
        else:
            for force, d in zip(f, D):
                gain = gain + 0.5 * force * force / where(d > 0.0, d, 1.0)
        s.write(gain=gain)
        if m > 1:
            s.write_here({at.slip + slip_numbers(m - 1, self.nv) - (m - 1): bounds})
            for k, row in enumerate(x.B[1:]):
                s.write_here({at.slip + k * self.nv: _dense(x.rates, [of(block, b) for b in row], self.nv)})

    def _hold(self, s: StageTracer) -> None:
        """The change of a force of dry friction, by its record."""
        moved, rate, _, bound, force, ref = s.here(2 * self.nv, 6)
        slip, stiff = rate - ref, maximum(moved, LEAST_NOSLIP_FORCE)
        change = _going(s, clip(force - slip / stiff, -bound, bound) - force)
        s.write(gain=s.number("gain") - (0.5 * change * change * stiff + change * slip))
        s.write_here({2 * self.nv + 2: change, 2 * self.nv + 4: force + change})

    def _slip(self, s: StageTracer, x: PackedRows, at: SlotLayout) -> None:
        """The changes of the tangents of a slot."""
        block, n, first = s.here(0, at.S), x.group.size - 1, at.slip + 2 * self.nv * (x.group.size - 1)
        if not n:
            return
        numbers, f, law = s.here(first, n * (n + 3)), s.here(at.f, n + 1), x.law(block)
        A: list[list[Scalar]] = [[*numbers[n * k :][:n]] for k in range(n)]
        slip = [y - of(block, z) for y, z in zip(numbers[n * n :], x.ref[1:])]
        bounds, old, changes, gain = numbers[n * (n + 2) :], f[1:], list[Scalar](), s.number("gain")
        if not isinstance(law, Pyramid):
            for k in range(n):
                A[k][k] = maximum(A[k][k], LEAST_TANGENT_RESPONSE)
            rest = [y - dot(row, old) for y, row in zip(slip, A)]
            change = [x - y for x, y in zip(within_cone(A, rest, law.mu, f[0]), old)]
            loses = dot(change, [0.5 * dot(row, change) + y for row, y in zip(A, slip)]) > CONE_TOLERANCE
            change = [where(loses, 0.0, y) for y in change]
        for k in range(n):
            now = slip[k] + dot(A[k][:k], changes)  # slips as they are along the way
            if isinstance(law, Pyramid):
                moves = 4.0 * law.mu[k] * law.mu[k] * A[k][k] > LEAST_NOSLIP_FORCE
                free = old[k] - now / where(moves, A[k][k], 1.0)
                new = where(moves, minimum(maximum(free, -bounds[k]), bounds[k]), 0.0)
                changes.append(_going(s, new - old[k]))
            else:
                changes.append(_going(s, change[k]))
            gain = gain - (0.5 * changes[k] * changes[k] * A[k][k] + changes[k] * now)
        s.write(gain=gain)
        s.write_here({at.f + 1: [x + y for x, y in zip(old, changes)], first + n * (n + 1): changes})

    def _end(self, s: StageTracer) -> None:
        """Ends the pass for the states whose sweep gained less than the tolerance."""
        inertia = sum((row[k] for k, row in enumerate(self.e.inertia(s))), 0.0)
        least = inertia * self.e.problem.model.stepping.noslip_tolerance
        less = where(s.number("gain") < least, 0.0, 1.0)
        s.write(slipping=where(s.number("slipping") > 0.0, less, 0.0), gain=0.0)


def _dense(rates: Sequence[int], row: Sequence[Scalar], nv: int) -> list[Scalar]:
    """A row over all rates."""
    entries = dict(zip(rates, row))
    return [entries.get(k, 0.0) for k in range(nv)]


def _going(s: StageTracer, change: Scalar) -> Scalar:
    """A change, of states that go on."""
    return where(s.number("slipping") > 0.0, change, 0.0)


class SlipCalls:
    """The calls of the pass; `each` calls a function for the slots that touch, in order, with a slot of their kind
    and the address of a block."""

    def __init__(self, c: StageCalls, e: Evaluation, each: Callable[[Callable[[int, Value], None]], None]) -> None:
        self.c, self.e, self.nv, self.each = c, e, e.nv, each
        self.factors = FactorLoops(c, fixed_shape(c, e.newton.within), e.order)

    def write(self) -> None:
        c, f = self.c, self.c.f
        self.factors.factorise()
        c.call("slip_begin")
        with self.held() as record:
            self._respond(record, 1)
        self.each(self._ready)
        with f.loop(self.e.problem.model.stepping.noslip, some=True) as loop:
            with self.held() as record:
                self._change(record, 1, "hold", record)
            self.each(self._slip)
            c.call("slip_end")
            loop.leave(~c.some_above("slipping"))

    @contextmanager
    def held(self) -> Iterator[Value]:
        """The address of each record of dry friction."""
        with self.c.f.loop(len(self.e.noslip.held)) as i:
            yield self._at(self.c.at("held"), i.i * self.e.noslip.stride)

    def _ready(self, k: int, block: Value) -> None:
        self.c.call(f"ready_{k}", block)
        self._respond(self._at(block, self.e.records[k].slip), self.e.contacts[k].group.size - 1)

    def _slip(self, k: int, block: Value) -> None:
        at, n = self._at(block, self.e.records[k].slip), self.e.contacts[k].group.size - 1
        if n:
            self._change(at, n, f"slip_{k}", block)

    def _at(self, base: Value, k: Value | int) -> Value:
        return base.at(k * self.c.l.bytes, I8)

    def _products(self, left: Value, right: Value, n: int) -> list[Value]:
        """Products of a vector with n others that stand one after another."""
        f, l, none = self.c.f, self.c.l, self.c.f.zero(self.c.l.type)
        with f.loop(self.nv, some=True, carry={f"s{j}": none for j in range(n)}) as r:
            x = self._at(left, r.i).load(l.type, l.bytes)
            for j in range(n):
                y = self._at(right, r.i + j * self.nv).load(l.type, l.bytes)
                setattr(r, f"s{j}", plus_product(self.c, getattr(r, f"s{j}"), x, y))
        return [getattr(r, f"s{j}") for j in range(n)]

    def _respond(self, T: Value, n: int) -> None:
        """Z and A of n tangents."""
        Z, A = self._at(T, n * self.nv), self._at(T, 2 * n * self.nv)
        with self.c.f.loop(n) as i:
            self.factors.solve(self._at(T, i.i * self.nv), self._at(Z, i.i * self.nv))
        with self.c.f.loop(n) as i:
            for j, x in enumerate(self._products(self._at(T, i.i * self.nv), Z, n)):
                self._at(A, i.i * n + j).store(x, self.c.l.bytes)

    def _change(self, T: Value, n: int, stage: str, block: Value) -> None:
        """Slips of n tangents, the stage that says how their forces change, and a and r after it."""
        c, l, a, r = self.c, self.c.l, self.c.at("a"), self.c.at("r")
        slip = self._at(T, n * (2 * self.nv + n))
        for j, x in enumerate(self._products(a, T, n)):
            self._at(slip, j).store(x, l.bytes)
        c.call(stage, block)
        changes = [self._at(slip, n + j).load(l.type, l.bytes) for j in range(n)]
        with c.f.loop(self.nv, some=True) as i:
            for vector, first in ((r, 0), (a, n)):
                x = self._at(vector, i.i).load(l.type, l.bytes)
                for j, change in enumerate(changes):
                    y = self._at(T, i.i + (first + j) * self.nv).load(l.type, l.bytes)
                    x = plus_product(c, x, change, y)
                self._at(vector, i.i).store(x, l.bytes)


def within_cone(A: Sequence[Vector], b: Vector, mu: Sequence[Scalar], normal: Scalar) -> list[Scalar]:
    """The least of x A x / 2 + b x where |x / mu| is at most the normal force.

    Newton's method for the multiplier ends where MuJoCo's does, converged or not, and gives up like that on a
    matrix that is singular, as in a plane, by its determinant or its least pivot.
    """
    n = range(len(b))
    scaled = [[mu[i] * A[i][j] * mu[j] for j in n] for i in n]
    side = [-(mu[i] * b[i]) for i in n]

    def shifted(more: Scalar) -> list[list[Scalar]]:
        return [[x + more if i == j else x for j, x in enumerate(row)] for i, row in enumerate(scaled)]

    more: Scalar = 0.0
    going: Scalar = 1.0
    x: list[Scalar] = []
    for _ in range(MAX_CONE_STEPS):
        x = eliminated(shifted(more), side)
        over = dot(x, x) - normal * normal
        delta = 0.5 * over / maximum(dot(x, eliminated(shifted(more), x)), LEAST_NOSLIP_FORCE * LEAST_NOSLIP_FORCE)
        going = where(going > 0.0, where(over < CONE_TOLERANCE, 0.0, where(delta < CONE_TOLERANCE, 0.0, 1.0)), 0.0)
        more = more + where(going > 0.0, delta, 0.0)
    matrix = shifted(0.0)
    eliminated(matrix, side)
    pivots: list[Scalar] = [1.0 / matrix[k][k] for k in n]
    least = reduce(mul if len(b) <= MAX_DETERMINANT_SIZE else minimum, pivots)
    share = where(more > 0.0, normal / sqrt(maximum(dot(x, x), LEAST_NOSLIP_FORCE)), 1.0)
    lost = where(normal < LEAST_NOSLIP_FORCE, 1.0, where(least < CONE_TOLERANCE, 1.0, 0.0)) > 0.0
    return [where(lost, 0.0, m * (share * y)) for m, y in zip(mu, x)]


def slot_order(e: Evaluation) -> list[int]:
    """Slots by the pairs of their links, then of their geoms, as MuJoCo's contacts are."""
    place = {link.name: k for k, link in enumerate(e.problem.model.links)}
    number = {geom.name: k for k, geom in enumerate(e.problem.model.geoms)}

    def pair(k: int) -> tuple[list[int], list[int]]:
        slot = e.problem.slots[k]
        return sorted(place[x] for x in slot.links), [number[x.geom.name] for x in slot.held or ()]

    return sorted(range(len(e.problem.slots)), key=pair)
