"""MuJoCo's pass after the soft law (`noslip_iterations`): friction is made firm while normal forces stay.

Sweeps go over dry friction, then over the tangents of contacts one after another: each takes the force that
stops its slip, as far as it may be. Accelerations follow at once, a += M^-1 J' df. A state rests once a sweep
gains less than a tolerance times the trace of M. Sweeps are not run to their end, so that the order of contacts
matters; it is MuJoCo's but for the corners of a box and pairs that a file lists. What moves apart rests apart
there, and together here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import mul
from typing import Any

from ..mechanics.algorithms.inertia_matrix import Factors
from ..mechanics.scalar import Scalar, Vector, clip, dot, eliminated, maximum, minimum, sqrt, where
from .laws.soft.law import DryFriction, Pyramid
from .laws.soft.stages import Evaluation, PackedRows, SlotLayout, StageTracer
from .packing import of

LEAST_NOSLIP_FORCE = 1e-15  # along the normal, and of what a tangent moves: below it there is no friction
LEAST_TANGENT_RESPONSE = 1e-10  # what a tangent of an elliptic cone moves is no less
MAX_CONE_STEPS = 20  # steps for the multiplier of a cone
CONE_TOLERANCE = 1e-10  # where they end; of a determinant or a pivot; of what a cone may lose
MAX_DETERMINANT_SIZE = 3  # tangents, up to which the determinant counts


class NoSlip:
    """Adds the stages of the pass to those of an evaluation; a slot's block ends with M^-1 B' of its tangents, and
    with their bounds."""

    def __init__(self, e: Evaluation) -> None:
        self.e, self.nv = e, e.nv
        self.held = [x for x in e.rows if isinstance(x.group, DryFriction)]
        self.ends = [e.sizes[f"slot_{k}"] for k in range(len(e.contacts))]
        for k, x in enumerate(e.contacts):
            e.sizes[f"slot_{k}"] += (x.group.size - 1) * (e.nv + 1)
        n = len(self.held)
        e.sizes |= {"held": max(1, n), "moved": max(1, n * e.nv), "gain": 1, "slipping": 1}
        self.order = slot_order(e)
        for name, write in {"slip_begin": self._begin, "slip_rows": self._rows, "slip_end": self._end}.items():
            self.add(name, write)
        for k in e.kinds:
            for stage, write_slot in {"ready": self._ready, "slip": self._slip}.items():
                self.add(f"{stage}_{k}", partial(write_slot, x=e.contacts[k], at=e.records[k], end=self.ends[k]))

    def add(self, name: str, write: Any) -> None:
        s = StageTracer(name, self.e.sizes)
        write(s)
        self.e.parts[name] = s.t.program()

    def _responses(self, s: StageTracer, rows: Sequence[tuple[Sequence[int], Sequence[Scalar]]]) -> list[Scalar]:
        """M^-1 J' of rows, given by rates and entries."""
        M, out = Factors(self.e.inertia(s), self.e.order), list[Scalar]()
        for rates, row in rows:
            full: list[Scalar] = [0.0] * self.nv
            for r, x in zip(rates, row):
                full[r] = x
            out += M.solve(full)
        return out

    def _begin(self, s: StageTracer) -> None:
        """Forces of dry friction, what each moves, and f^2 / D / 2 of all rows of joints."""
        main, a, gain = s.read("main"), s.read("a"), 0.0
        held = list[Scalar]()
        for x in self.e.rows:
            force, D = self.e.newton._answer(x, main, a).force[0], of(main, x.D[0])
            gain = gain + 0.5 * force * force / where(D > 0.0, D, 1.0)
            held += [force] if isinstance(x.group, DryFriction) else []
        rows = [(x.rates, [of(main, y) for y in x.B[0]]) for x in self.held]
        s.write(held=held or [0.0], moved=self._responses(s, rows) or [0.0], gain=gain, slipping=1.0)

    def _ready(self, s: StageTracer, x: PackedRows, at: SlotLayout, end: int) -> None:
        """Writes M^-1 J' of the tangents of a slot and their bounds, and adds f^2 / D / 2 to the gain."""
        block, m = s.here(0, at.S), x.group.size
        y, f, D, law = s.here(at.y, m), s.here(at.f, m), [of(block, d) for d in x.D], x.law(block)
        rows = [(x.rates, [of(block, b) for b in row]) for row in x.B[1:]]
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
            s.write_here({end: [*self._responses(s, rows), *bounds]})

    def _rows(self, s: StageTracer) -> None:
        """A sweep over dry friction."""
        main, held, moved = s.read("main"), list(s.read("held")), s.read("moved")
        state = _Moving(s)
        for k, x in enumerate(self.held):
            row, Z = [of(main, y) for y in x.B[0]], moved[k * self.nv : (k + 1) * self.nv]
            slip = dot(row, [state.a[r] for r in x.rates]) - of(main, x.ref[0])
            stiff = maximum(dot(row, [Z[r] for r in x.rates]), LEAST_NOSLIP_FORCE)
            assert isinstance(x.group, DryFriction)
            new = clip(held[k] - slip / stiff, -x.group.bound, x.group.bound)
            held[k] = state.push(held[k], new, slip, stiff, x.rates, row, Z)
        s.write(held=held or [0.0])
        state.write()

    def _slip(self, s: StageTracer, x: PackedRows, at: SlotLayout, end: int) -> None:
        """A sweep over the tangents of a slot."""
        block, n, nv = s.here(0, at.S), x.group.size - 1, self.nv
        if not n:
            return
        told, f, law = s.here(end, n * (nv + 1)), list(s.here(at.f, n + 1)), x.law(block)
        B, ref = [[of(block, b) for b in row] for row in x.B[1:]], [of(block, y) for y in x.ref[1:]]
        Z, bounds, state = [told[nv * k : nv * k + nv] for k in range(n)], told[nv * n :], _Moving(s)

        def slips() -> list[Scalar]:
            return [dot(row, [state.a[r] for r in x.rates]) - y for row, y in zip(B, ref)]

        A = [[dot(row, [z[r] for r in x.rates]) for z in Z] for row in B]
        if isinstance(law, Pyramid):
            for k in range(n):
                slip, bound = slips()[k], bounds[k]
                moves = 4.0 * law.mu[k] * law.mu[k] * A[k][k] > LEAST_NOSLIP_FORCE
                free = f[k + 1] - slip / where(moves, A[k][k], 1.0)
                new = where(moves, minimum(maximum(free, -bound), bound), 0.0)
                f[k + 1] = state.push(f[k + 1], new, slip, A[k][k], x.rates, B[k], Z[k])
        else:
            slip, old = slips(), f[1:]
            for k in range(n):
                A[k][k] = maximum(A[k][k], LEAST_TANGENT_RESPONSE)
            rest = [y - dot(row, old) for y, row in zip(slip, A)]
            new_all = within_cone(A, rest, law.mu, f[0])
            change = [x - y for x, y in zip(new_all, old)]
            loses = dot(change, [0.5 * dot(row, change) + y for row, y in zip(A, slip)]) > CONE_TOLERANCE
            new_all = [where(loses, y, x) for x, y in zip(new_all, old)]
            for k, new in enumerate(new_all):  # slips as they are along the way: the gain of all is the same
                now = slip[k] + dot(A[k][:k], [f[j + 1] - old[j] for j in range(k)])
                f[k + 1] = state.push(f[k + 1], new, now, A[k][k], x.rates, B[k], Z[k])
        s.write_here({at.f: f})
        state.write()

    def _end(self, s: StageTracer) -> None:
        """Ends the pass for the states whose sweep gained less than the tolerance."""
        inertia = sum((row[k] for k, row in enumerate(self.e.inertia(s))), 0.0)
        least = inertia * self.e.problem.model.stepping.noslip_tolerance
        less = where(s.number("gain") < least, 0.0, 1.0)
        s.write(slipping=where(s.number("slipping") > 0.0, less, 0.0), gain=0.0)


class _Moving:
    """Accelerations, efforts of rows and the gain, as forces change."""

    def __init__(self, s: StageTracer) -> None:
        self.s, self.a, self.r = s, list(s.read("a")), list(s.read("r"))
        self.gain, self.going = s.number("gain"), s.number("slipping") > 0.0

    def push(
        self, old: Scalar, new: Scalar, slip: Scalar, stiff: Scalar, rates: Sequence[int], row: Vector, Z: Vector
    ) -> Scalar:
        """The force after a change, of states that go on."""
        change = where(self.going, new - old, 0.0)
        self.gain = self.gain - (0.5 * change * change * stiff + change * slip)
        self.a = [x + change * z for x, z in zip(self.a, Z)]
        for r, b in zip(rates, row):
            self.r[r] = self.r[r] + change * b
        return old + change

    def write(self) -> None:
        self.s.write(a=self.a, r=self.r, gain=self.gain)


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
    """Slots by the pairs of their links, as MuJoCo's contacts are."""
    place = {link.name: k for k, link in enumerate(e.problem.model.links)}

    def links(k: int) -> tuple[int, ...]:
        return tuple(sorted(place[name] for name in e.problem.slots[k].links))

    return sorted(range(len(e.problem.slots)), key=links)
