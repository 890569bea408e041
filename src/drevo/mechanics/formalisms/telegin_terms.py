"""Formulas as lists of terms, so that their lengths can be compared before one is written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..scalar import Scalar, atan2, cos, is_constant, is_zero, sin, sqrt
from ..spatial import Mat, Sym, Vec

Product = tuple[Scalar, ...]
MERGED_BELOW = 1e-15


class Formula(NamedTuple):
    """A sum of products, and the statement of the paper that it follows."""

    how: str
    terms: list[Product]


def is_one(x: Scalar) -> bool:
    return isinstance(x, (float, int)) and abs(x) == 1


def length(terms: Sequence[Product]) -> int:
    """Additions and multiplications of a sum of products; work on constants alone is free."""
    operations, summands, constant = 0, 0, False
    for term in terms:
        if any(is_zero(x) for x in term):
            continue
        varying = [x for x in term if not is_constant(x)]
        if varying:
            scaled = any(is_constant(x) and not is_one(x) for x in term)
            operations += len(varying) - 1 + scaled
            summands += 1
        else:
            constant = True
    return operations + max(0, summands + constant - 1)


def shortest_formula(*terms: list[Product]) -> list[Product]:
    """The list with the fewest operations; the first of equals."""
    return min(terms, key=length)


def sum_of_products(terms: Sequence[Product]) -> Scalar:
    """The sum of the products: constants of a term first, constant terms gathered first."""
    constant: Scalar = 0.0
    varying: Scalar = 0.0
    for term in terms:
        if any(is_zero(x) for x in term):
            continue
        product: Scalar = 1.0
        for x in sorted(term, key=lambda x: not is_constant(x)):
            product = product * x
        if is_constant(product):
            constant = constant + product
        else:
            varying = varying + product
    return constant + varying


def bilinear(J: Sym, P: Sym, a: Vec, b: Vec, sign: float = 1.0) -> list[Product]:
    """a . I b: J holds the moments of inertia, P the products with the paper's sign (+ integral)."""
    return [
        (sign, J.xx, a.x, b.x), (sign, J.yy, a.y, b.y), (sign, J.zz, a.z, b.z),
        (-sign, P.xy, a.x, b.y), (-sign, P.xy, a.y, b.x), (-sign, P.xz, a.x, b.z),
        (-sign, P.xz, a.z, b.x), (-sign, P.yz, a.y, b.z), (-sign, P.yz, a.z, b.y),
    ]  # fmt: skip


def quadratic(J: Sym, P: Sym, a: Vec) -> list[Product]:
    """a . I a of a unit vector, summand of (6): one of the squares goes by a . a = 1, whichever is shortest."""
    moments = (J.xx, J.yy, J.zz)
    products: list[Product] = [(-2.0, P.xy, a.x, a.y), (-2.0, P.xz, a.x, a.z), (-2.0, P.yz, a.y, a.z)]
    plain: list[Product] = [(m, x, x) for m, x in zip(moments, a)]
    less = [
        [(moments[k], 1.0), *((moments[l] - moments[k], a[l], a[l]) for l in range(3) if l != k)]
        for k in (2, 1, 0)
    ]
    return shortest_formula(plain, *less) + products


# -- merged constants: a constant vector that is turned once, by an angle about a coordinate axis ---------------


class PlaneTurn(NamedTuple):
    """c v + s (v x axis) across the axis, for the run of hinges whose angles are summed; None: not turned."""

    v: Vec
    axis: int
    run: tuple[int, int] | None

    @property
    def plane(self) -> tuple[Scalar, Scalar]:
        return self.v[(self.axis + 1) % 3], self.v[(self.axis + 2) % 3]


AngleBetween = Callable[[int, int], Scalar]
Pair = tuple[Scalar, Scalar]
Letters = tuple[str, str]
Label = Callable[[Scalar, str], Scalar]
AXIS_PRODUCTS = ("P", "rho")  # of the products of inertia with the axis


def turned_product(
    a: Pair, v: Pair, angle: Scalar, named: Label, letters: Letters, twice: bool = False
) -> list[Product]:
    """(a . v) cos + (a x v) sin of an angle or its double: a vector a on one that turns, constants both.

    Where all of it is there, one product with a phase: along an axis, v leaves |a| and the direction of a, whose
    names begin with the letters.
    """
    a, v = _unless_rounding(a), _unless_rounding(v)
    if not any(is_zero(x) for x in a) and any(is_zero(x) for x in v):
        size, phase = (named(x, letter) for x, letter in zip((_length(a), atan2(a[1], a[0])), letters))
        shifted = angle + phase
        whole = shifted + angle if twice else shifted
        return [(v[0], size, cos(whole))] if is_zero(v[1]) else [(v[1], size, sin(whole))]
    A, B = _unless_rounding((a[0] * v[0] + a[1] * v[1], a[0] * v[1] - a[1] * v[0]))
    if is_zero(A) and is_zero(B):
        return []
    if not is_zero(A) and not is_zero(B):
        shifted = angle - atan2(B, A)
        return [(_length((A, B)), cos(shifted + angle if twice else shifted))]
    s, c = sin(angle), cos(angle)
    if not twice:
        return [(A, c), (B, s)]
    return [(A,), (-2.0, A, s, s)] if is_zero(B) else [(2.0, B, s, c)]


def _length(v: Pair) -> Scalar:
    return sqrt(v[0] * v[0] + v[1] * v[1])


def _unless_rounding(v: Pair) -> Pair:
    """Without a number that is what rounding left beside the other."""
    if not all(isinstance(x, (float, int)) for x in v):
        return v
    x, y = (0.0 if abs(x) < MERGED_BELOW * abs(y) else x for x, y in (v, v[::-1]))
    return x, y


def linear(
    d: Vec, x: PlaneTurn, angle: AngleBetween, named: Label, letters: Letters = ("D", "delta")
) -> list[Product]:
    """d . x for a constant d."""
    assert x.run is not None
    k = x.axis
    across = d[(k + 1) % 3], d[(k + 2) % 3]
    return [(d[k] * x.v[k],), *turned_product(across, x.plane, angle(*x.run), named, letters)]


def turned_form(J: Sym, P: Sym, x: PlaneTurn, y: PlaneTurn, angle: AngleBetween, named: Label) -> list[Product]:
    """x . I y of vectors turned together, or of one that is turned and one that is not."""
    tensor = Mat.of(((J.xx, -P.xy, -P.xz), (-P.xy, J.yy, -P.yz), (-P.xz, -P.yz, J.zz)))
    if x.run is None or y.run is None:
        if x.run is None and y.run is None:
            return [(x.v.dot(tensor @ y.v),)]
        still, moving = (x, y) if x.run is None else (y, x)
        return linear(tensor @ still.v, moving, angle, named, AXIS_PRODUCTS)
    k, i, j = x.axis, (x.axis + 1) % 3, (x.axis + 2) % 3
    (xi, xj), (yi, yj), theta = x.plane, y.plane, angle(*x.run)
    along, across = x.v[k], y.v[k]
    # x_i + i x_j and y_i + i y_j turn by -theta each; their product U + i V by -2 theta
    U, V = xi * yi - xj * yj, xi * yj + xj * yi
    mean, half, mixed = 0.5 * (tensor[i][i] + tensor[j][j]), 0.5 * (tensor[i][i] - tensor[j][j]), tensor[i][j]
    constant = tensor[k][k] * (along * across) + mean * (xi * yi + xj * yj)
    first = along * yi + across * xi, along * yj + across * xj
    once = turned_product((tensor[k][i], tensor[k][j]), first, theta, named, AXIS_PRODUCTS)
    return [(constant,), *once, *turned_product((half, mixed), (U, V), theta, named, ("S", "sigma"), True)]
