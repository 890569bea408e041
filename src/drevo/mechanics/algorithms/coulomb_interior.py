"""Impulses by an interior point, for what sweeps leave: rows that depend on each other do not trouble it.

With mu |u_t| as it was a step before, the law of De Saxce is that of a convex problem on cones, of which the path
lam o u^ = t e is followed to t = 0: Nesterov and Todd 1998, "Primal-dual interior-point methods for self-scaled
cones", with Mehrotra's prediction; Acary, Armand, Nguyen and Shpakovych 2023, "Second-order cone programming for
frictional contact mechanics using interior point algorithm". A step is (G + D) d lam = side, D by blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from ..scalar import Matrix, Scalar, Vector, dot, maximum, minimum, sqrt
from .coulomb import DIVISION_GUARD, ContactLaw, ImpulseProblem, JointLaw, RowLaw
from .coulomb_newton import largest_speed

MIN_CONE_FRICTION = 1e-3  # of the cone that is followed: one without width has no inside
STEP_TO_EDGE = 0.99  # of the way to the edge of a cone is gone
LAG = 0.1  # of the square of what mu |u_t| is off, over G: the path is followed no faster
CONE_EDGE = 1e-14  # of the square of its height: what is nearer to the edge of a cone is on it
MIN_DIAGONAL = 1e-13  # of the mean diagonal of a block: D is no less


class Way(NamedTuple):
    """A step of a block: the change of its numbers, 1 / the share of it that leads to the edge, what is curved."""

    change: list[Scalar]
    over: Scalar
    curved: list[Scalar]


class ConeBarrier(NamedTuple):
    """The barrier of a contact: x = (mu lam_n, lam_t) and y = (u_n / mu + |u_t|, u_t), inside the circular cone.

    there: u + mu |y_t| n; w, eta: of W = W' with W x = W^-1 y = z, which maps the cone on itself; size: det z.
    """

    mu: Scalar
    x: list[Scalar]
    y: list[Scalar]
    there: list[Scalar]
    w: list[Scalar]
    eta: Scalar
    size: Scalar
    z: list[Scalar]

    @property
    def off(self) -> Scalar:
        """The largest difference between u + mu |y_t| n, its normal component over mu, and y."""
        return maximum(
            abs(self.there[0] / self.mu - self.y[0]),
            maximum(abs(self.there[1] - self.y[1]), abs(self.there[2] - self.y[2])),
        )

    @staticmethod
    def start(law: RowLaw, trace: Scalar, speed: Scalar) -> list[Scalar]:
        return [speed / trace, 0.0, 0.0, speed, 0.0, 0.0]

    @staticmethod
    def impulse(law: RowLaw, state: Vector) -> list[Scalar]:
        return [state[0] / maximum(law.bound, MIN_CONE_FRICTION), *state[1:3]]

    @classmethod
    def of(cls, law: RowLaw, state: Vector, u: Vector) -> ConeBarrier:
        mu, x, y = maximum(law.bound, MIN_CONE_FRICTION), list(state[:3]), list(state[3:])
        there = [u[0] + mu * sqrt(y[1] * y[1] + y[2] * y[2]), *u[1:]]
        a, b = (sqrt(maximum(v[0] * v[0] - v[1] * v[1] - v[2] * v[2], DIVISION_GUARD)) for v in (x, y))
        p, r = [v / a for v in x], [v / b for v in y]
        half = 0.5 / sqrt(0.5 + 0.5 * dot(p, r))
        w = [half * (r[0] + p[0]), half * (r[1] - p[1]), half * (r[2] - p[2])]
        found = cls(mu, x, y, there, w, sqrt(b / a), a * b, [])
        return found._replace(z=found.turned(x))

    @classmethod
    def known(cls, law: RowLaw, state: Vector, numbers: Vector) -> ConeBarrier:
        n, mu = list(numbers), maximum(law.bound, MIN_CONE_FRICTION)
        return cls(mu, list(state[:3]), list(state[3:]), n[:3], n[3:6], n[6], n[7], n[8:])

    def numbers(self) -> list[Scalar]:
        return [*self.there, *self.w, self.eta, self.size, *self.z]

    def turned(self, x: Vector) -> list[Scalar]:
        """W x."""
        w = self.w
        side = w[1] * x[1] + w[2] * x[2]
        along = x[0] + side / (1.0 + w[0])
        return [self.eta * (w[0] * x[0] + side), *(self.eta * (y + along * v) for y, v in zip(x[1:], w[1:]))]

    def firmness(self, trace: Scalar) -> Matrix:
        """D, lower triangle: W W by lam."""
        square, s = self.eta * self.eta, (self.mu, 1.0, 1.0)
        own = [[2.0 * self.w[i] * self.w[j] for j in range(i + 1)] for i in range(3)]
        for i, x in enumerate((-1.0, 1.0, 1.0)):
            own[i][i] = own[i][i] + x
        D = [[square * (s[i] * s[j]) * x for j, x in enumerate(row)] for i, row in enumerate(own)]
        for i in range(3):
            D[i][i] = D[i][i] + MIN_DIAGONAL * trace
        return D

    def side(self, aim: Scalar = 0.0, curved: Sequence[Scalar] = ()) -> list[Scalar]:
        """The right-hand side of a step that aims at t, with what a prediction has found curved."""
        if not curved:
            return [-x for x in self.there]
        more = self.turned(self._bent(aim, curved))
        more[0] = more[0] * self.mu
        return [x - y for x, y in zip(more, self.there)]

    def way(self, change: Vector, aim: Scalar = 0.0, curved: Sequence[Scalar] = ()) -> Way:
        """From d lam of such a step."""
        dx = [self.mu * change[0], *change[1:]]
        both = [-x for x in self.z]
        if curved:
            both = [x + y for x, y in zip(both, self._bent(aim, curved))]
        a = self.turned(dx)
        b = [x - y for x, y in zip(both, a)]
        over = maximum(self._over(a), self._over(b))
        bent = [dot(a, b), a[0] * b[1] + b[0] * a[1], a[0] * b[2] + b[0] * a[2]]
        return Way([*dx, *self.turned(b)], over, bent)

    @staticmethod
    def inside(state: Vector) -> Scalar:
        """Above 0 where a point is inside by more than rounding."""
        x, y = (
            (v[0] * v[0] * (1.0 - CONE_EDGE) - v[1] * v[1] - v[2] * v[2], v[0]) for v in (state[:3], state[3:])
        )
        return minimum(minimum(*x), minimum(*y))

    def gap(self, way: Way | None = None, share: Scalar = 0.0) -> Scalar:
        """x y, here or after a share of a way."""
        x, y = self.x, self.y
        if way:
            x, y = ([a + share * b for a, b in zip(v, d)] for v, d in ((x, way.change[:3]), (y, way.change[3:])))
        return dot(x, y)

    def _bent(self, aim: Scalar, curved: Sequence[Scalar]) -> list[Scalar]:
        """The c for which z o c is t e less what is curved."""
        z, r = self.z, [aim - curved[0], -curved[1], -curved[2]]
        first = (z[0] * r[0] - z[1] * r[1] - z[2] * r[2]) / self.size
        over = 1.0 / z[0]
        return [first, *((b - first * a) * over for a, b in zip(z[1:], r[1:]))]

    def _over(self, d: Vector) -> Scalar:
        """1 / the share of d that leads z to the edge; below 0 it never does."""
        root = 1.0 / sqrt(self.size)
        z = [x * root for x in self.z]
        inner = z[0] * d[0] - z[1] * d[1] - z[2] * d[2]
        along = (inner + d[0]) / (1.0 + z[0])
        side = [b - along * a for a, b in zip(z[1:], d[1:])]
        return root * (sqrt(dot(side, side)) - inner)


class RowBarrier(NamedTuple):
    """The barrier of a joint's row: friction between its bounds with what pushes from each, and the bounds of u.

    pairs: numbers that stay above 0 and those that their products with make t. lam, u: of friction; of the row.
    signs: of the impulses of bounds; far: how much u is beyond what their numbers say.
    """

    pairs: list[tuple[Scalar, Scalar]]
    u: Scalar
    friction: bool
    signs: list[float]
    far: list[Scalar]

    @property
    def off(self) -> Scalar:
        return 0.0

    @staticmethod
    def parts(law: RowLaw) -> tuple[bool, list[tuple[float, Scalar]]]:
        """True if the law has friction; the sign and the value of every bound of u."""
        assert isinstance(law, JointLaw)
        bounds = [(s, x) for s, x in ((1.0, law.lower), (-1.0, law.upper))
                  if not (isinstance(x, float) and abs(x) == inf)]  # fmt: skip
        return not (isinstance(law.bound, float) and law.bound == 0.0), bounds

    @classmethod
    def start(cls, law: RowLaw, trace: Scalar, speed: Scalar) -> list[Scalar]:
        friction, bounds = cls.parts(law)
        return [*([0.0 * speed, speed, speed] if friction else []), *([speed / trace, speed] * len(bounds))]

    @classmethod
    def impulse(cls, law: RowLaw, state: Vector) -> list[Scalar]:
        friction, bounds = cls.parts(law)
        pushes = [s * x for (s, _), x in zip(bounds, state[3 * friction :: 2])]
        return [sum(pushes, state[0] if friction else 0.0)]

    @classmethod
    def of(cls, law: RowLaw, state: Vector, u: Vector) -> RowBarrier:
        return cls.known(law, state, u)

    @classmethod
    def known(cls, law: RowLaw, state: Vector, numbers: Vector) -> RowBarrier:
        friction, bounds = cls.parts(law)
        u, eta = numbers[0], maximum(law.bound, DIVISION_GUARD)
        pairs = [(eta - state[0], state[1]), (eta + state[0], state[2])] if friction else []
        rest = state[3 * friction :]
        pairs += list(zip(rest[::2], rest[1::2]))
        far = [s * (u - x) - y for (s, x), y in zip(bounds, rest[1::2])]
        return cls(pairs, u, friction, [s for s, _ in bounds], far)

    def numbers(self) -> list[Scalar]:
        return [self.u]

    def _answer(self, aim: Scalar) -> tuple[Scalar, Scalar]:
        """K and c of d lam = c - K du."""
        K: Scalar = 0.0
        c: Scalar = 0.0
        if self.friction:
            (s, p), (t, m) = self.pairs[:2]
            K = 1.0 / (m / t + p / s)
            c = K * (aim / t - aim / s - self.u)
        for sign, far, (x, y) in zip(self.signs, self.far, self.pairs[2 * self.friction :]):
            K, c = K + x / y, c + sign * (aim / y - x - x / y * far)
        return K, c

    def firmness(self, trace: Scalar) -> Matrix:
        return [[1.0 / self._answer(0.0)[0] + MIN_DIAGONAL * trace]]

    def side(self, aim: Scalar = 0.0, curved: Sequence[Scalar] = ()) -> list[Scalar]:
        K, c = self._answer(aim)
        return [c / K]

    def way(self, change: Vector, aim: Scalar = 0.0, curved: Sequence[Scalar] = ()) -> Way:
        K, c = self._answer(aim)
        du = (c - change[0]) / K
        out: list[Scalar] = []
        steps: list[tuple[Scalar, Scalar]] = []
        if self.friction:
            (s, p), (t, m) = self.pairs[:2]
            d = (aim / t - aim / s - self.u - du) / (m / t + p / s)
            steps = [(-d, (aim + p * d) / s - p), (d, (aim - m * d) / t - m)]
            out = [d, steps[0][1], steps[1][1]]
        for sign, far, (x, y) in zip(self.signs, self.far, self.pairs[2 * self.friction :]):
            dy = sign * du + far
            steps.append(((aim - x * dy) / y - x, dy))
            out += steps[-1]
        over: Scalar = 0.0
        for pair, step in zip(self.pairs, steps):
            for x, dx in zip(pair, step):
                over = maximum(over, -dx / x)
        return Way(out, over, [])

    @staticmethod
    def inside(state: Vector) -> Scalar:
        return 1.0

    def gap(self, way: Way | None = None, share: Scalar = 0.0) -> Scalar:
        steps = [(0.0, 0.0)] * len(self.pairs)
        if way and self.friction:
            d, p, m = way.change[:3]
            steps = [(-d, p), (d, m)]
        if way:
            rest = way.change[3 * self.friction :]
            steps = [*steps[: 2 * self.friction], *zip(rest[::2], rest[1::2])]
        return sum(((x + share * a) * (y + share * b) for (x, y), (a, b) in zip(self.pairs, steps)), 0.0)


BlockBarrier = ConeBarrier | RowBarrier
TOLD = {ConeBarrier: 11, RowBarrier: 1}  # how many numbers a block leaves to the stages of a step


def kind(law: RowLaw) -> type[ConeBarrier] | type[RowBarrier]:
    """The class of barrier that a law has."""
    return ConeBarrier if isinstance(law, ContactLaw) else RowBarrier


def pairs(p: ImpulseProblem) -> int:
    """The number of complementarity products whose sum is the gap."""
    return sum(1 if isinstance(x, ContactLaw) else 2 * RowBarrier.parts(x)[0] + len(RowBarrier.parts(x)[1])
               for x in p.laws)  # fmt: skip


def begun(p: ImpulseProblem) -> list[list[Scalar]]:
    """The numbers of all blocks where the path is begun."""
    speed = largest_speed(p)
    return [kind(x).start(x, p.trace(x), speed) for x in p.laws]


def impulses_at(p: ImpulseProblem, state: Sequence[Vector]) -> list[Scalar]:
    """lam."""
    return [y for law, x in zip(p.laws, state) for y in kind(law).impulse(law, x)]


def barriers(p: ImpulseProblem, state: Sequence[Vector]) -> list[BlockBarrier]:
    """The barriers of all blocks, contacts and joint rows, at a point of the path."""
    lam = impulses_at(p, state)
    return [kind(law).of(law, x, p.velocity(lam, law.rows)) for law, x in zip(p.laws, state)]


def aimed(p: ImpulseProblem, found: Sequence[BlockBarrier], change: Vector) -> tuple[Scalar, list[list[Scalar]]]:
    """At which t a step aims, and what is curved, by the step d lam that aims at 0."""
    ways = [x.way(list(change[law.at : law.rows.stop])) for law, x in zip(p.laws, found)]
    share = gone(ways, 1.0)
    gap, then = _sum(x.gap() for x in found), _sum(x.gap(w, share) for x, w in zip(found, ways))
    left = minimum(maximum(then / (gap + DIVISION_GUARD), 0.0), 1.0)
    mean, slow = gap * (1.0 / max(1, pairs(p))), 0.0
    for law, x in zip(p.laws, found):
        slow = maximum(slow, x.off * x.off / p.trace(law))
    return maximum(left * left * left * mean, minimum(LAG * slow, mean)), [w.curved for w in ways]


def gone(ways: Sequence[Way], inside: float = STEP_TO_EDGE) -> Scalar:
    """The share of a step that is gone."""
    over: Scalar = inside
    for w in ways:
        over = maximum(over, w.over)
    return inside / over


def stepped(
    p: ImpulseProblem, state: Sequence[Vector], found: Sequence[BlockBarrier], change: Vector, aim: Scalar,
    curved: Sequence[Sequence[Scalar]],
) -> tuple[list[list[Scalar]], Scalar]:  # fmt: skip
    """The numbers of all blocks after a step d lam, and whether they are inside yet: above 0."""
    ways = [x.way(list(change[law.at : law.rows.stop]), aim, c) for law, x, c in zip(p.laws, found, curved)]
    share, most = gone(ways), 1.0
    new = [[a + share * b for a, b in zip(x, w.change)] for x, w in zip(state, ways)]
    for law, x in zip(p.laws, new):
        most = minimum(most, kind(law).inside(x))
    return new, most


def _sum(values: Iterator[Scalar]) -> Scalar:
    return sum(values, 0.0)
