"""Formulas as lists of terms, so that their lengths can be compared before one is written out.

Direction cosines for `telegin`: how the bodies of a tree see the vectors of those that carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..joints import Placement
from ..scalar import Scalar, Vector, atan2, cos, is_constant, is_zero, sin, sqrt
from ..spatial import Mat, Sym, Vec, rotate
from ..tree import Tree
from .telegin_planar import parallel

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


@dataclass(slots=True)
class Cosines:
    """Direction cosines of a tree: vectors of the bodies, seen from the bodies that they carry.

    Over a run of parallel axes a vector turns once, by the sum of the angles.
    """

    tree: Tree
    q: Vector
    X: Sequence[Placement]
    along: list[int] = field(init=False)  # +-1 where an axis is parallel to its parent's
    _seen: dict[tuple[str, int, int], Vec] = field(default_factory=dict)
    _angle: dict[tuple[int, int], Scalar] = field(default_factory=dict)
    _source: dict[tuple[str, int], tuple[int, Vec]] = field(default_factory=dict)
    _turn: dict[tuple[str, int, int], PlaneTurn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.along = [parallel(self.tree, i) for i in range(len(self.tree))]

    def define(self, letter: str, i: int, body: int, v: Vec) -> None:
        """Vector letter_i is fixed in a body, with these components there."""
        self._source[letter, i] = (body, v)

    def __call__(self, letter: str, i: int, j: int) -> Vec:
        """(x_ji, y_ji, z_ji) of the vector letter_i in body j."""
        key = (letter, i, j)
        if key not in self._seen:
            body, v = self._source[letter, i]
            self._seen[key] = v if body == j else self._turned(letter, i, j, body)
            for axis, x in zip("xyz", self._seen[key]):
                self._name(axis, letter, i, j, x)
        return self._seen[key]

    def _name(self, axis: str, letter: str, i: int, j: int, x: Scalar) -> None:
        """Names a direction cosine as the book does."""
        bodies = self.tree.bodies
        self.tree.named(x, f"{axis}_{bodies[j].number}{bodies[i].number}^{self.shown(letter, i)}")

    def shown(self, letter: str, i: int) -> str:
        """R for e where the offset moves, and e is all of it."""
        return "R" if letter == "e" and not all(is_constant(x) for x in self.X[i].p) else letter

    def _turned(self, letter: str, i: int, j: int, body: int) -> Vec:
        """An axis of body i in those of body j: one rotation for all parallel joints from `body` on."""
        b = self.tree.bodies[j]
        if b.kind != "revolute":
            return self.X[j].to_child(self(letter, i, b.parent))
        head, R = j, self._constant(j)
        while self.along[head] and self.tree.bodies[head].parent != body:
            head = self.tree.bodies[head].parent
            R = self._constant(head).mul(R)
        v = R.T @ self(letter, i, self.tree.bodies[head].parent)
        if all(is_zero(x) for k, x in enumerate(v) if k != b.axis):
            return v
        if all(is_constant(x) for x in v):
            self._turn[letter, i, j] = PlaneTurn(v, b.axis, (head, j))
        s, c = self._sine_cosine(head, j)
        return rotate(b.axis, -s, c, v)

    def turn(self, letter: str, i: int, j: int) -> PlaneTurn | None:
        """The vector letter_i in body j as a constant vector turned once or not at all; None if it is neither."""
        v = self(letter, i, j)
        return PlaneTurn(v, 0, None) if all(is_constant(x) for x in v) else self._turn.get((letter, i, j))

    def between(self, letter: str, i: int, j: int) -> int:
        """The body above the run of parallel axes that ends in j; -1 if that is not below the vector's own."""
        source, _ = self._source[letter, i]
        head = j
        while self.along[head] and self.tree.bodies[head].parent != source:
            head = self.tree.bodies[head].parent
        up = self.tree.bodies[head].parent
        return up if up != source else -1

    def _constant(self, j: int) -> Mat:
        """R of a joint; of parallel axes without the rounding that would hide it."""
        b = self.tree.bodies[j]
        if not self.along[j]:
            return b.R
        k, l = self.tree.bodies[b.parent].axis, b.axis
        rows = [[0.0 if (r == k) != (c == l) else x for c, x in enumerate(row)] for r, row in enumerate(b.R)]
        rows[k][l] = float(self.along[j])
        return Mat.of(rows)

    def angle(self, head: int, j: int) -> Scalar:
        """Sum of the angles from head to j about the axis of j."""
        if (head, j) not in self._angle:
            b = self.tree.bodies[j]
            own = self.q[b.q] * b.factor + b.phase
            above = 0.0 if head == j else self.angle(head, b.parent) * float(self.along[j])
            self._angle[head, j] = above + own
        return self._angle[head, j]

    def _sine_cosine(self, head: int, j: int) -> tuple[Scalar, Scalar]:
        angle = self.angle(head, j)
        s, c = sin(angle), cos(angle)
        names, k = [], j
        while True:
            b = self.tree.bodies[k]
            plain = b.factor == 1.0 and is_zero(b.phase) and (k == head or self.along[k] == 1)
            names.append(b.number if plain else "")
            if k == head:
                break
            k = b.parent
        if all(names):
            digits = ("," if any(len(n) > 1 for n in names) else "").join(reversed(names))
            self.tree.named(s, f"s_{digits}")
            self.tree.named(c, f"c_{digits}")
        return s, c
