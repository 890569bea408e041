"""Signorini's law and Coulomb's, exactly: one block, a sweep over all, the residual.

Of blocks i with impulses lam and velocities u = G lam + b, the normal first and then two tangents:

    K_mu  contains  lam   _|_   u + mu |u_t| n   in  the dual of K_mu            De Saxce and Feng 1998
    joints: lower <= u <= upper, and dry friction, one row each

A block alone is solved exactly; one after another they are Gauss and Seidel's sweeps: Jean 1999, "The non-smooth
contact dynamics method"; Acary and Brogliato 2008, 13.4, 13.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

from ..scalar import Matrix, Scalar, Vector, clip, dot, maximum, minimum, sqrt, where

MIN_STIFFNESS = 1e-14  # of the trace of a block: what is less stiff is no direction in which it moves
DIVISION_GUARD = 1e-30  # is added where nothing may be divided by 0
IMPULSE_ROUNDING = 2.0**-52  # of what an impulse changes
INNER = 2  # Newton's steps of a block in each sweep; more of them save no sweep


class ContactLaw(NamedTuple):
    """Three rows from `at` on: normal, tangent, tangent; bound: the friction mu."""

    at: int
    bound: Scalar

    def eased(self) -> ContactLaw:
        return self

    @property
    def rows(self) -> range:
        return range(self.at, self.at + 3)


class JointLaw(NamedTuple):
    """One row: the bound of the impulse of dry friction, and bounds of the velocity."""

    at: int
    bound: Scalar
    lower: Scalar = -inf
    upper: Scalar = inf

    def eased(self) -> JointLaw:
        """Bounds between which the joint may rest."""
        return self._replace(lower=minimum(self.lower, 0.0), upper=maximum(self.upper, 0.0))

    @property
    def rows(self) -> range:
        return range(self.at, self.at + 1)


RowLaw = ContactLaw | JointLaw


class Carriers(NamedTuple):
    """G = P S P': points of one foot move as it does. rows: P, by row its entries; S of what carries them."""

    rows: Sequence[Mapping[int, Scalar]]
    S: Matrix


class ImpulseProblem(NamedTuple):
    """u = G lam + b, G symmetric, and the law of every row. carriers: where G is known to be of less rank. u: at
    the impulses that are looked at, where it is known. push: by row how fast a contact has to part."""

    G: Matrix
    b: Vector
    laws: Sequence[RowLaw]
    carriers: Carriers | None = None
    u: Vector | None = None
    push: Mapping[int, Scalar] = {}

    def eased(self) -> ImpulseProblem:
        """Relaxes the problem: nothing has to part or to go back within its bounds, so rest is always allowed."""
        b = [x + self.push[k] if k in self.push else x for k, x in enumerate(self.b)]
        return self._replace(b=b, push={}, laws=[law.eased() for law in self.laws])

    def parts(self) -> Scalar:
        """The largest speed at which a contact has to part or a joint to go back; 0 where none has to."""
        most: Scalar = 0.0
        joints = [x for law in self.laws if isinstance(law, JointLaw) for x in (law.lower, -law.upper)]
        for x in (*self.push.values(), *joints):
            most = maximum(most, x)
        return most

    def velocity(self, lam: Vector, rows: Sequence[int]) -> list[Scalar]:
        """u of some rows."""
        if self.u is not None:
            return [self.u[r] for r in rows]
        return [self.b[r] + dot(self.G[r], lam) for r in rows]

    def trace(self, law: RowLaw) -> Scalar:
        """Mean of the diagonal of a block: what an impulse changes."""
        total: Scalar = DIVISION_GUARD
        for r in law.rows:
            total = total + self.G[r][r]
        return total * (1.0 / len(law.rows))


class ContactBlock(NamedTuple):
    """A contact's block G_ii, prepared once: S = G_tt - g_tn g_tn' / G_nn by its axes, Q = [[c, -s], [s, c]].

    over: 1 / G_nn; stiff, soft: the eigenvalues of S, and one over each; across: Q' g_tn.
    """

    over: Scalar
    c: Scalar
    s: Scalar
    stiff: tuple[Scalar, Scalar]
    soft: tuple[Scalar, Scalar]
    across: tuple[Scalar, Scalar]
    scale: Scalar

    @classmethod
    def of(cls, G: Matrix, at: int) -> ContactBlock:
        n, t, o = at, at + 1, at + 2
        floor = MIN_STIFFNESS * (G[n][n] + G[t][t] + G[o][o] + DIVISION_GUARD)
        over = 1.0 / maximum(G[n][n], floor)
        x, y = G[t][n], G[o][n]
        a, d, e = G[t][t] - x * x * over, G[o][o] - y * y * over, G[o][t] - x * y * over
        mean, half = 0.5 * (a + d), 0.5 * (a - d)
        size = sqrt(half * half + e * e + floor * floor * DIVISION_GUARD)
        cosine = clip(half / size, -1.0, 1.0)  # of twice the angle
        long = sqrt(0.5 + 0.5 * abs(cosine))
        short = 0.5 * (e / size) / long
        side = where(e < 0.0, -1.0, 1.0)
        c, s = where(cosine < 0.0, abs(short), long), where(cosine < 0.0, side * long, short)
        stiff = maximum(mean + size, floor), maximum(mean - size, floor)
        soft = 1.0 / stiff[0], 1.0 / stiff[1]
        return cls(over, c, s, stiff, soft, (c * x + s * y, c * y - s * x), maximum(mean, floor))

    def impulse(self, w: Vector, law: RowLaw, y: Scalar) -> tuple[list[Scalar], Scalar]:
        """lam with u = G_ii lam + w under the law, and y, where its search ended; y: where it begins, in (0, 1).

        Sliding is lam_t = -(S + g)^-1 r with g = scale y / (1 - y); y is where |lam_t| = mu lam_n.
        """
        mu = law.bound
        t, o = self.c * w[1] + self.s * w[2], self.c * w[2] - self.s * w[1]
        r = t - self.across[0] * w[0] * self.over, o - self.across[1] * w[0] * self.over
        stuck = -(r[0] * self.soft[0]), -(r[1] * self.soft[1])
        held = self._normal(w[0], stuck)
        room = mu * held
        sticks = where(room < 0.0, -1.0, room * room - stuck[0] * stuck[0] - stuck[1] * stuck[1])
        low: Scalar = 0.0
        high: Scalar = 1.0
        for _ in range(INNER):
            slides, step = self._newton(w[0], r, mu, y)
            low, high = where(slides, y, low), where(slides, high, y)
            middle = 0.5 * (low + high)
            y = where(step < low, middle, where(step > high, middle, step))
        x, z = self._tangents(r, y)[:2]
        normal = maximum(self._normal(w[0], (x, z)), 0.0)
        onto = mu * normal / maximum(sqrt(x * x + z * z), DIVISION_GUARD)
        stays = sticks < 0.0
        x, z, normal = (
            where(stays, x * onto, stuck[0]),
            where(stays, z * onto, stuck[1]),
            where(stays, normal, held),
        )
        lam = [normal, self.c * x - self.s * z, self.s * x + self.c * z]
        return [where(w[0] < 0.0, part, 0.0) for part in lam], y

    def _normal(self, w: Scalar, tangents: Sequence[Scalar]) -> Scalar:
        """lam_n by which nothing moves along the normal."""
        return -((w + self.across[0] * tangents[0] + self.across[1] * tangents[1]) * self.over)

    def _tangents(self, r: Sequence[Scalar], y: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """lam_t at y along the axes of S, and one over each of (1 - y) S + y scale."""
        a, part = 1.0 - y, self.scale * y
        d, e = self.stiff[0] * a + part, self.stiff[1] * a + part
        both = 1.0 / (d * e)
        d, e = e * both, d * both
        return -(r[0] * a * d), -(r[1] * a * e), d, e

    def _newton(self, w: Scalar, r: Sequence[Scalar], mu: Scalar, y: Scalar) -> tuple[Any, Scalar]:
        """A Newton step: True if |lam_t| is above mu lam_n at y, and the y where its tangent has no more of it."""
        x, z, d, e = self._tangents(r, y)
        square, k = x * x + z * z, self.across
        size, room = sqrt(square), mu * self._normal(w, (x, z))
        dx, dz = r[0] * self.scale * (d * d), r[1] * self.scale * (e * e)
        slope = x * dx + z * dz + mu * ((k[0] * dx + k[1] * dz) * self.over) * size
        excess = square - room * size  # one number for both, or the bracket would lose a root by its rounding
        return excess > 0.0, y - excess / where(abs(slope) > DIVISION_GUARD, slope, DIVISION_GUARD)


class JointBlock(NamedTuple):
    """1 / G_ii and G_ii of a joint's row."""

    over: Scalar
    G: Scalar

    @classmethod
    def of(cls, G: Matrix, at: int) -> JointBlock:
        return cls(1.0 / (G[at][at] + DIVISION_GUARD), G[at][at])

    def impulse(self, w: Vector, law: RowLaw, y: Scalar = 0.0) -> tuple[list[Scalar], Scalar]:
        """By what friction leaves of w, and what its bounds leave of that; y is not needed."""
        assert isinstance(law, JointLaw)
        held = self.G * law.bound
        u = clip(w[0] - clip(w[0], -held, held), law.lower, law.upper)
        return [(u - w[0]) * self.over], y


Block = ContactBlock | JointBlock


def blocks(p: ImpulseProblem) -> list[Block]:
    """The prepared block G_ii of every law."""
    return [(ContactBlock if isinstance(x, ContactLaw) else JointBlock).of(p.G, x.at) for x in p.laws]


def gauss_seidel(
    p: ImpulseProblem, prepared: Sequence[Block], lam: Vector, search: Vector
) -> tuple[list[Scalar], list[Scalar], Scalar]:
    """Every block once, each with what those before it have become: lam, where the search of every block ended,
    and the most that an impulse has changed a velocity, m/s."""
    lam, search, change = list(lam), list(search), 0.0
    for k, (law, block) in enumerate(zip(p.laws, prepared)):
        at, after = law.rows.start, law.rows.stop
        w = [p.b[r] + dot(p.G[r][:at], lam[:at]) + dot(p.G[r][after:], lam[after:]) for r in law.rows]
        found, search[k] = block.impulse(w, law, search[k])
        for r, x in zip(law.rows, found):
            change = maximum(change, abs(x - lam[r]) * p.trace(law))
            lam[r] = x
    return lam, search, change


def parted(p: ImpulseProblem, before: Vector, lam: Vector) -> tuple[list[Scalar], Scalar]:
    """A sweep that adds to impulses `before`, without friction, what parts contacts and takes joints back within
    their bounds; lam: with what is added already. Also the most that it has changed a velocity, m/s."""
    lam, change = list(lam), 0.0
    for law in p.laws:
        r = law.at
        u, own, over = p.b[r] + dot(p.G[r], lam), p.G[r][r], 1.0 / (p.G[r][r] + DIVISION_GUARD)
        if isinstance(law, ContactLaw):
            new = maximum(lam[r] - u * over, before[r])
        else:
            free = u - own * (lam[r] - before[r])
            new = before[r] + (clip(free, law.lower, law.upper) - free) * over
        change, lam[r] = maximum(change, abs(new - lam[r]) * own), new
    return lam, change


# -- how far from the law ---------------------------------------------------------------------------------------


def onto_cone(x: Vector, mu: Scalar) -> list[Scalar]:
    """The point of K_mu next to x."""
    size = sqrt(x[1] * x[1] + x[2] * x[2])
    inside, outside = size <= mu * x[0], mu * size <= -x[0]
    normal = (x[0] + mu * size) / (1.0 + mu * mu)
    share = mu * normal / maximum(size, DIVISION_GUARD)
    near = [normal, x[1] * share, x[2] * share]
    return [where(inside, a, where(outside, 0.0, b)) for a, b in zip(x, near)]


def natural_map(p: ImpulseProblem, lam: Vector, stiff: Scalar = 1.0) -> list[Scalar]:
    """(lam - P(lam - rho u^)) / rho of all rows, m/s, 1 / rho the mean diagonal of the block times `stiff`.

    It is 0 where all laws hold. P is the projection on the cone, u^ = u + mu |u_t| n; a joint takes what its block
    says.
    """
    out: list[Scalar] = []
    for law in p.laws:
        u, mean = p.velocity(lam, law.rows), p.trace(law) * stiff
        rho = 1.0 / mean
        own = [lam[r] for r in law.rows]
        if isinstance(law, ContactLaw):
            u[0] = u[0] + law.bound * sqrt(u[1] * u[1] + u[2] * u[2])
            kept = onto_cone([x - rho * y for x, y in zip(own, u)], law.bound)
        else:
            kept, _ = JointBlock(rho, mean).impulse([u[0] - mean * own[0]], law)
        out += [(x - y) * mean for x, y in zip(own, kept)]
    return out


def residual(p: ImpulseProblem, lam: Vector) -> Scalar:
    """The largest |natural map| of a block, m/s, but no less than what rounding leaves unknown of its velocity."""
    found, most = natural_map(p, lam), 0.0
    for law in p.laws:
        x, unknown = found[law.at : law.rows.stop], IMPULSE_ROUNDING * p.trace(law) * abs(lam[law.at])
        most = maximum(most, maximum(sqrt(dot(x, x)), unknown))
    return most
