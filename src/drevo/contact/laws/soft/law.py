"""The soft law over scalars: cost, force and Hessian of each group of constraint rows, and their parameters.

The acceleration is the least of a convex function,

    a* = argmin (a - a0)^T M (a - a0) / 2 + sum s_g(y_g),    y_g = J_g a - ref_g,

where a group g is one row or the rows of one contact, y its accelerations beyond the reference ref (aref), and
f = -grad s its forces. Todorov 2014, "Convex and analytically-invertible dynamics with contacts and constraints";
the parameters are those of MuJoCo's documentation, "Computation: constraint model".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, NamedTuple

from ....errors import InputError
from ....mechanics.scalar import Scalar, Vector, maximum, sqrt, where

LEAST_R = 1e-15  # of regularisers
LEAST_SLIP = 1e-300  # of |U| of a cone, where it is divided by


class Softness(NamedTuple):
    """The soft-law parameters of a row: solref, solimp and the margin from which its position counts.

    friction: the solref of the tangents of an elliptic cone, where it is not (0, 0).
    """

    solref: tuple[float, float]
    solimp: tuple[float, float, float, float, float]
    margin: float = 0.0
    friction: tuple[float, float] = (0.0, 0.0)

    def gains(self, step: float, tangent: bool = False) -> tuple[float, float]:
        """K in 1/s^2 and B in 1/s, of aref = -B u - K d x; the time constant is at least two steps."""
        a, b = self.friction if tangent and self.friction != (0.0, 0.0) else self.solref
        dw = _inside(self.solimp[1])
        if a <= 0.0:
            return -a / dw**2, -b / dw
        a = max(a, 2.0 * step)
        x = dw * a * b
        return 1.0 / (x * x), 2.0 / (dw * a)

    def impedance(self, x: Scalar) -> Scalar:
        """d of a row that is x (position less margin) from where it holds."""
        d0, dw, width, mid, power = self.solimp
        d0, dw, mid, power = _inside(d0), _inside(dw), _inside(mid), max(power, 1.0)
        if d0 == dw or width <= 1e-15:
            return 0.5 * (d0 + dw)
        x = maximum(x, -x) * (1.0 / width)
        if power == 1.0:
            y = x
        else:
            rising = _power(x, power) * (1.0 / mid ** (power - 1.0))
            falling = 1.0 - _power(1.0 - x, power) * (1.0 / (1.0 - mid) ** (power - 1.0))
            y = where(mid - x < 0.0, falling, rising)
        return where(x < 1.0, d0 + (dw - d0) * y, dw)


def _inside(x: float) -> float:
    return min(max(x, 1e-4), 0.9999)


def _power(x: Scalar, p: float) -> Scalar:
    """x^p by products and roots, which every scalar has: a root more for each binary digit of p below 1."""
    whole, rest = divmod(p, 1.0)
    out: Scalar = 1.0
    root = maximum(x, 0.0)
    while rest:
        digit, rest = divmod(2.0 * rest, 1.0)
        root = sqrt(root)
        out = out * root if digit else out
    for _ in range(int(whole)):
        out = out * x
    return out


def regulariser(d: Scalar, weight: Scalar) -> Scalar:
    """The regularisation R = (1 - d) / d w of a row by its impedance d, the inverse of its stiffness D."""
    return maximum((1.0 - d) / d * weight, LEAST_R)


class Answer(NamedTuple):
    """The answer of a group to y: its forces, the Hessian of s (rows of the lower triangle), and a number that
    says on which piece of s it is; on one piece s is quadratic, but `curved` is positive where it is not."""

    force: list[Scalar]
    hessian: list[list[Scalar]]
    piece: Scalar
    curved: Scalar = 0.0


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The law of a group of rows. size: rows of y. mu: friction of each tangent, numbers or symbols.

    mu0: friction of the cone of the regularised problem, mu[0] / sqrt(impratio). at_rates: the rows have a rate
    alone, no place. one_sided: nothing answers on the far side. coupled: the Hessian joins tangents.
    rolls_apart: tangents have gains of their own.
    """

    size: int = 1
    mu: tuple[Scalar, ...] = ()
    mu0: Scalar = 0.0
    at_rates: ClassVar[bool] = False
    one_sided: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    rolls_apart: ClassVar[bool] = False

    def answer(self, y: Vector, D: Vector) -> Answer:
        """Forces, Hessian and piece at y, of the stiffness D."""
        raise InputError(f"{type(self).__name__}: a law has answer(y, D), which gives forces and their Hessian")

    def diagonal(self, weight: Scalar) -> Scalar:
        """The estimate of the inverse inertia of the row by which the group is firm, by the weight of
        translations."""
        return weight

    def firm_row(self, B: Sequence[Vector]) -> Vector:
        """The row by which the group is firm."""
        return B[0]

    def stiffness(self, d: Scalar, diagonal: Scalar, impratio: float) -> list[Scalar]:
        """D of the rows."""
        return [1.0 / regulariser(d, diagonal)] * self.size


class Equality(RowGroup):
    """One row that is held from both sides."""

    __slots__ = ()

    def answer(self, y: Vector, D: Vector) -> Answer:
        return Answer([-(D[0] * y[0])], [[D[0]]], 0.0)


class OneSided(RowGroup):
    """One row that pushes and does not pull."""

    __slots__ = ()
    one_sided = True

    def answer(self, y: Vector, D: Vector) -> Answer:
        k = where(y[0] < 0.0, D[0], 0.0)
        return Answer([-(k * y[0])], [[k]], where(y[0] < 0.0, 1.0, 0.0))


@dataclass(frozen=True, slots=True)
class DryFriction(RowGroup):
    """One rate that is held up to a bound, N or N m."""

    bound: float = 0.0
    at_rates = True

    def answer(self, y: Vector, D: Vector) -> Answer:
        force = -(D[0] * y[0])
        over, under = force - self.bound, -force - self.bound
        held = where(over > 0.0, self.bound, where(under > 0.0, -self.bound, force))
        piece = where(over > 0.0, 1.0, where(under > 0.0, 2.0, 0.0))
        return Answer([held], [[where(over > 0.0, 0.0, where(under > 0.0, 0.0, D[0]))]], piece)


class Pyramid(RowGroup):
    """Edges y_0 +- mu_k y_k, each with one-sided springs of one stiffness."""

    __slots__ = ()

    def diagonal(self, weight: Scalar) -> Scalar:
        return weight + self.mu[0] * self.mu[0] * weight

    def firm_row(self, B: Sequence[Vector]) -> Vector:
        return [x + self.mu[0] * y for x, y in zip(*B[:2])]

    def stiffness(self, d: Scalar, diagonal: Scalar, impratio: float) -> list[Scalar]:
        return [1.0 / maximum(2.0 * (self.mu0 * self.mu0) * regulariser(d, diagonal), LEAST_R)]

    def answer(self, y: Vector, D: Vector) -> Answer:
        n, (first, *rest) = self.size, y
        force: list[Scalar] = [0.0] * n
        S: list[list[Scalar]] = [[0.0] * (k + 1) for k in range(n)]
        piece: Scalar = 0.0
        for k, (m, t) in enumerate(zip(self.mu, rest), 1):
            plus, minus = first + m * t, first - m * t
            a, b = where(plus < 0.0, D[0], 0.0), where(minus < 0.0, D[0], 0.0)
            fa, fb = a * plus, b * minus
            force[0], force[k] = force[0] - (fa + fb), m * (fb - fa)
            S[0][0], S[k][0], S[k][k] = S[0][0] + (a + b), m * (a - b), m * m * (a + b)
            piece = piece + (
                where(plus < 0.0, 4.0 ** (k - 1), 0.0) + where(minus < 0.0, 2.0 * 4.0 ** (k - 1), 0.0)
            )
        return Answer(force, S, piece)


class EllipticCone(RowGroup):
    """The regularised cone: quadratic below, its square distance between, nothing above."""

    __slots__ = ()
    coupled = True
    rolls_apart = True

    def stiffness(self, d: Scalar, diagonal: Scalar, impratio: float) -> list[Scalar]:
        R = regulariser(d, diagonal)
        R1 = R * (1.0 / impratio)
        first = self.mu[0] * self.mu[0]
        return [1.0 / R, *(1.0 / (R1 * (first / (m * m))) for m in self.mu)]

    def answer(self, y: Vector, D: Vector) -> Answer:
        n, e = self.size, (self.mu0, *self.mu)
        U = [c * x for c, x in zip(e, y)]
        N, T = U[0], sqrt(sum((u * u for u in U[1:]), 0.0))
        over = 1.0 / maximum(T, LEAST_SLIP)
        t = [u * over for u in U[1:]]
        m = self.mu0
        top, bottom = N - m * T, m * N + T  # above: top >= 0; below: bottom <= 0
        Dm = D[0] * (1.0 / (m * m * (1.0 + m * m)))
        middle = [-(Dm * top * m), *(Dm * top * (m * e[k + 1]) * t[k] for k in range(n - 1))]

        def pick(above: Scalar, between: Scalar, below: Scalar) -> Scalar:
            return where(bottom > 0.0, where(top < 0.0, between, above), where(N < 0.0, below, above))

        force = [pick(0.0, f, -(d * x)) for f, d, x in zip(middle, D, y)]
        S: list[list[Scalar]] = []
        slope = m * N * over
        for r in range(n):
            row: list[Scalar] = []
            for c in range(r + 1):
                if r == 0:
                    between: Scalar = 1.0
                elif c == 0:
                    between = -(m * t[r - 1])
                else:
                    between = slope * (t[r - 1] * t[c - 1]) + ((m * m - slope) if r == c else 0.0)
                row.append(pick(0.0, Dm * (e[r] * e[c]) * between, D[r] if r == c else 0.0))
            S.append(row)
        return Answer(force, S, pick(0.0, 2.0, 1.0), pick(0.0, 1.0, 0.0))


CONE_LAWS: dict[str, type[RowGroup]] = {"pyramidal": Pyramid, "elliptic": EllipticCone}
PENALTY_LAWS: dict[str, type[RowGroup]] = {}  # of contacts, beside MuJoCo's: see docs/new-contact-law.md


def contact_group(law: str, cone: str, size: int, mu: tuple[float, ...], impratio: float) -> RowGroup:
    """The group of a contact: of a law by name, or of MuJoCo's by the cone of a file."""
    kind = PENALTY_LAWS.get(law, CONE_LAWS[cone] if mu else OneSided)
    return kind(size, mu, mu[0] / impratio**0.5 if mu else 0.0)


LAW_SIZES = (1, 3, 6)  # rows of a contact at which an added law is tried
_SLOPE_STEP, _SLOPE_SHARE = 1e-6, 1e-4  # of differences, and how far they may be from the Hessian, of the largest


def require_slope(title: str, group: RowGroup) -> None:
    """Raises InputError where a group's Hessian is not minus the slope of its forces, tried at some y."""
    rng, n = Random(0), group.size
    D = [float(x) for x in group.stiffness(0.9, group.diagonal(2.0), 1.0)]

    def answer(y: Vector) -> Answer:
        given = group.answer(y, D)
        if len(given.force) != n or [len(row) for row in given.hessian] != list(range(1, n + 1)):
            raise InputError(
                f"{title} gives {n} rows {len(given.force)} forces and {len(given.hessian)} rows of a Hessian; "
                "give a force for each row, and the lower triangle"
            )
        return given

    for _ in range(20):
        y = [rng.gauss(0.0, 0.3) for _ in range(n)]
        now = answer(y)
        for k in range(n):
            ends = [answer([x + s * (i == k) for i, x in enumerate(y)]) for s in (_SLOPE_STEP, -_SLOPE_STEP)]
            for i in range(n):
                slope = (ends[1].force[i] - ends[0].force[i]) / (2.0 * _SLOPE_STEP)
                wanted = now.hessian[max(i, k)][min(i, k)]
                same = ends[0].piece == ends[1].piece  # across a kink there is no slope
                if same and not abs(slope - wanted) <= _SLOPE_SHARE * max(1.0, abs(slope), abs(wanted), *D):
                    raise InputError(
                        f"{title}: the force of row {i} falls by {slope:.6g} a unit of y[{k}] at y = "
                        f"{[round(x, 3) for x in y]}, and its Hessian says {wanted:.6g}; give minus the slope"
                    )
