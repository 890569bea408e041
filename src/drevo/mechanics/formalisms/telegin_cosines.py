"""Direction cosines for `telegin`: how the bodies of a tree see the vectors of those that carry them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..joints import Placement
from ..scalar import Scalar, Vector, cos, is_constant, is_zero, sin
from ..spatial import Mat, Vec, rotate
from ..tree import Tree
from .telegin_planar import parallel
from .telegin_terms import PlaneTurn


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
        bodies = self.tree.bodies
        self.tree.named(x, f"{axis}_{bodies[j].number}{bodies[i].number}^{self.shown(letter, i)}")

    def shown(self, letter: str, i: int) -> str:
        """R for e where the offset moves, and e is all of it."""
        return "R" if letter == "e" and not all(is_constant(x) for x in self.X[i].p) else letter

    def _turned(self, letter: str, i: int, j: int, body: int) -> Vec:
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
