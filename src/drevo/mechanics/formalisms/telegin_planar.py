"""Planar trees: all axes of a tree parallel. Telegin 2025, section 5 (statement 4) and what is below its counts.

In the plane a vector is a complex number, an offset L_i e_i is P_i, the first moment d_j of an augmented body is
D_j, and L_i m_ji^e is a sum of u_ji = L_i d_j . e_i = Re(conj(P_i) exp(i angle) D_j) over the subtree of j.
Three sequences of the same elements:

* paper: (10) and (11) with merged constants, as the paper counts;
* reuse: the same sines and cosines, every element built on others;
* merged: besides, one sine or cosine per u_ji: amplitude times a cosine of the angle with a phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..scalar import Scalar, Vector, atan2, cos, is_zero, sin, sqrt
from ..spatial import UNIT_VECS, Vec
from ..tree import Tree, TreeBody
from ..tree_indices import ancestors, children_of

Pair = tuple[Scalar, Scalar]
PARALLEL_AXES = 1e-12


def parallel(tree: Tree, i: int) -> int:
    """+1 or -1 if the axis of a hinge is that of its parent's hinge or its opposite, else 0."""
    b, up = tree.bodies[i], tree.bodies[i].parent
    if up < 0 or b.kind != "revolute" or tree.bodies[up].kind != "revolute":
        return 0
    column = b.R @ UNIT_VECS[b.axis]
    along, rest = column[tree.bodies[up].axis], [x for k, x in enumerate(column) if k != tree.bodies[up].axis]
    if not all(isinstance(x, (float, int)) and abs(x) < PARALLEL_AXES for x in rest):
        return 0
    return 1 if along > 0 else -1


def is_planar(tree: Tree, bodies: Sequence[int]) -> bool:
    """All hinges of the bodies (root first) are parallel."""
    root, *rest = bodies
    return tree.bodies[root].kind == "revolute" and all(parallel(tree, i) for i in rest)


def _side_by_side(a: str, b: str) -> str:
    """Two subscripts, apart where one has two digits."""
    return f"{a}{b}" if len(a + b) == 2 else f"{a}_{b}"


def complex_product(a: Pair, b: Pair) -> Pair:
    """Product of complex numbers."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


class Polar(NamedTuple):
    """amplitude * exp(i (phase + quarter pi / 2)); a vector along a coordinate axis has no phase."""

    amplitude: Scalar
    phase: Scalar
    quarter: int

    @classmethod
    def of(cls, z: Pair) -> Polar:
        x, y = z
        if is_zero(y):
            return cls(x, 0.0, 0)
        if is_zero(x):
            return cls(y, 0.0, 1)
        return cls(sqrt(x * x + y * y), atan2(y, x), 0)


@dataclass(slots=True)
class Plane:
    """One planar tree: constants of section 5 and the products u_ji, each made once."""

    tree: Tree
    q: Vector
    bodies: Sequence[int]
    merge: bool
    record: dict[str, str]
    children: list[list[int]] = field(init=False)
    facing: dict[int, int] = field(default_factory=dict)  # +-1: body axis along or against the normal
    mass: dict[int, Scalar] = field(default_factory=dict)
    offset: dict[int, Pair] = field(default_factory=dict)  # L_i e_i in the parent
    turn: dict[int, Pair] = field(default_factory=dict)  # constant part of a joint's rotation
    moment: dict[int, Pair] = field(default_factory=dict)  # d_i, (14)
    inertia: dict[int, Scalar] = field(default_factory=dict)  # I_i^d
    H: dict[tuple[int, int], Scalar] = field(default_factory=dict)
    _product: dict[tuple[int, int], Scalar] = field(default_factory=dict)
    _shift: dict[tuple[int, int], Scalar] = field(default_factory=dict)
    _angle: dict[tuple[int, int], Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.children = children_of(self.tree.parents)
        for i in self.bodies:
            self._place(i, self.tree.bodies[i])
        for i in reversed(self.bodies):
            self._gather(i, self.tree.bodies[i])

    def name(self, i: int) -> str:
        return self.tree.bodies[i].number

    def _flat(self, i: int, v: Vec) -> Pair:
        """A vector of body i in the plane, its basis turning positively about the common normal."""
        k = self.tree.bodies[i].axis
        y = v[(k + 2) % 3]
        return v[(k + 1) % 3], y if self.facing[i] > 0 else -y

    def _place(self, i: int, b: TreeBody) -> None:
        root = b.parent not in self.facing
        self.facing[i] = 1 if root else self.facing[b.parent] * parallel(self.tree, i)
        if root:
            self.turn[i], self.offset[i] = (1.0, 0.0), (0.0, 0.0)  # L_1, e_1 and R_1 never enter H
            return
        own = self._flat(b.parent, b.R @ UNIT_VECS[(b.axis + 1) % 3])
        phase = self.facing[i] * b.phase
        self.turn[i] = complex_product(own, (cos(phase), sin(phase)))
        self.offset[i] = self._flat(b.parent, b.p)

    def _gather(self, i: int, b: TreeBody) -> None:
        """(14) and I_i^d = I_i^q + sum m_j L_j^2 over the children."""
        k = b.axis
        S = b.inertia.S.mat
        self.mass[i] = b.inertia.m
        x, y = self._flat(i, b.inertia.h)
        total = S[(k + 1) % 3][(k + 1) % 3] + S[(k + 2) % 3][(k + 2) % 3]
        self.tree.named(total, f"I_{b.number}^q")
        for j in self.children[i]:
            px, py = self.offset[j]
            self.mass[i] = self.mass[i] + self.mass[j]
            x, y = x + self.mass[j] * px, y + self.mass[j] * py
            total = total + self.mass[j] * (px * px + py * py)
        self.tree.named(self.mass[i], f"m_{b.number}")
        first, second = (f"d_{'xyz'[(k + r) % 3]}{b.number}" for r in (1, 2))
        self.moment[i] = self.tree.named(x, first), y
        self.tree.named(y if self.facing[i] > 0 else -y, second)
        self.inertia[i] = self.tree.named(total, f"I_{b.number}^d") if self.children[i] else total

    # -- products -------------------------------------------------------------------------------------------

    def path(self, i: int, j: int) -> list[int]:
        """The bodies from i down to j."""
        out = [j]
        while out[-1] != i:
            out.append(self.tree.bodies[out[-1]].parent)
        return out[::-1]

    def own_angle(self, i: int) -> Scalar:
        b = self.tree.bodies[i]
        return self.q[b.q] * (self.facing[i] * b.factor)

    def product(self, j: int, i: int) -> Scalar:
        """u_ji = L_i d_j . e_i."""
        if (j, i) not in self._product:
            self._product[j, i] = self._merged(j, i) if self.merge else self._apart(j, i)
        return self._product[j, i]

    def _apart(self, j: int, i: int) -> Scalar:
        """C cos + S sin of the summed angle; C and S are merged constants."""
        z = complex_product((self.offset[i][0], -self.offset[i][1]), self.moment[j])
        angle: Scalar = 0.0
        for k in self.path(i, j):
            z, angle = complex_product(z, self.turn[k]), angle + self.own_angle(k)
        s, c = (0.0 if is_zero(z[1]) else sin(angle)), (0.0 if is_zero(z[0]) else cos(angle))
        number = self._number(i, j)
        if number:
            self.tree.named(s, f"s_{number}")
            self.tree.named(c, f"c_{number}")
        pair = _side_by_side(self.name(j), self.name(i))
        return self.tree.named(z[0], f"A_{pair}") * c + self.tree.named(-z[1], f"B_{pair}") * s

    def _number(self, i: int, j: int) -> str:
        """23 for q_2 + q_3; empty where some angle enters with another sign or factor."""
        path = self.path(i, j)
        if any(self.facing[k] * self.tree.bodies[k].factor != 1.0 for k in path):
            return ""
        names = [self.name(k) for k in path]
        return "".join(names) if all(len(n) == 1 for n in names) else ",".join(names)

    def _merged(self, j: int, i: int) -> Scalar:
        """amplitude * cos(angle + phase): the phase of e_i goes with the first angle, so that sums are shared."""
        p, d = Polar.of(self.offset[i]), Polar.of(self.moment[j])
        quarter = d.quarter - p.quarter + sum(Polar.of(self.turn[k]).quarter for k in self.path(i, j))
        amplitude = p.amplitude * d.amplitude
        for k in self.path(i, j):
            amplitude = amplitude * Polar.of(self.turn[k]).amplitude  # 1, or -1 for a half turn
        if is_zero(amplitude):
            return 0.0
        turned = not (is_zero(p.phase) and is_zero(d.phase))
        pair = _side_by_side(self.name(j), self.name(i))
        if turned:
            self.tree.named(d.phase if self.facing[j] > 0 else -d.phase, f"delta_{self.name(j)}")
            self.tree.named(amplitude, f"R_{pair}")
        angle = self._summed(j, i) + d.phase
        signed = -amplitude if quarter % 4 in (1, 2) else amplitude
        if not turned:
            self.tree.named(signed, f"B_{pair}" if quarter % 2 else f"A_{pair}")
        return signed * (sin(angle) if quarter % 2 else cos(angle))

    def _summed(self, j: int, i: int) -> Scalar:
        """q_i + ... + q_j less the phase of e_i, made from the top so that longer sums reuse shorter ones."""
        if (j, i) not in self._angle:
            phase, up = Polar.of(self.offset[i]).phase, self.tree.bodies[i].parent
            self.tree.named(phase if self.facing[up] > 0 else -phase, f"beta_{self.name(i)}")
            above = -phase if j == i else self._summed(self.tree.bodies[j].parent, i)
            self._angle[j, i] = above + Polar.of(self.turn[j]).phase + self.own_angle(j)
        return self._angle[j, i]

    def shift(self, j: int, i: int) -> Scalar:
        """L_i m_ji^e, (12): u_ji and the shifts of the children of j."""
        if (j, i) not in self._shift:
            below = self.product(j, i)
            for k in self.children[j]:
                below = below + self.shift(k, i)
            label = (
                f"Lm_{_side_by_side(self.name(j), self.name(i))}^e"  # read as L_i m_ji^e: the constants are merged
            )
            self._shift[j, i] = self.tree.named(below, label)
        return self._shift[j, i]

    # -- elements -------------------------------------------------------------------------------------------

    def element(self, j: int, i: int, value: Scalar, how: str) -> None:
        """Enters H_ji under its name in the book, and how it was found."""
        label = f"H_{self.name(j)}{self.name(i)}"
        self.record[label] = how
        self.H[j, i] = self.tree.named(value, label)

    def upwards(self, j: int) -> list[tuple[int, int]]:
        """Pairs (ancestor a, child of a on the way to j), from the parent of j to the root."""
        path = [k for k in ancestors(self.tree.parents, j) if k in self.facing]
        return list(zip(path[1:], path))

    def paper(self) -> None:
        """(10) on the diagonal, (11) from it to the root."""
        for i in reversed(self.bodies):
            self.tree.section(i)
            constant, total = self.inertia[i], 0.0
            for j in self.children[i]:
                if self.children[j]:
                    total = total + self.H[j, j]
                else:
                    constant = constant + self.H[j, j]
            twice: Scalar = 0.0
            for j in self.children[i]:
                twice = twice + self.shift(j, j)
            if self.children[i]:
                self.tree.named(constant, f"I_{self.name(i)}")
            self.element(i, i, total + 2.0 * twice + constant, "statement 4, (10)")
            for a, below in self.upwards(i):
                self.element(i, a, self.H[i, below] + self.shift(i, below), "statement 4, (11)")

    def reuse(self) -> None:
        """Every element on others: with p_i = I_i^d + sum L_j m_jj^e over the children,

        H_ii = sum H_ji + p_i, which spares the doubling of (10). Above leaves of leaves, where all H_jj of the
        grandchildren j are constant, g_i = sum_j H_jr + u_ii gives H_ir = g_i + p_i and H_rr = 2 sum g_i + I_r.
        """
        for i in reversed(self.bodies):
            self.tree.section(i)
            if self._doubled(i):
                self._by_doubling(i)
            else:
                total: Scalar = self._half(i)
                for j in self.children[i]:
                    total = total + self.H[j, i]
                self.element(i, i, total, "statement 4, (10) with (11)")
            for a, below in self.upwards(i):
                if below == i and self._doubled(a):
                    self.element(i, a, self._sum_above(i, a) + self._half(i), "statement 4, (11) by reuse")
                else:
                    self.element(i, a, self.H[i, below] + self.shift(i, below), "statement 4, (11)")

    def _doubled(self, r: int) -> bool:
        grandchildren = [j for i in self.children[r] for j in self.children[i]]
        worth = grandchildren or len(self.children[r]) > 1  # above one leaf nothing is spared
        return bool(worth) and not any(self.children[j] for j in grandchildren)

    def _half(self, i: int) -> Scalar:
        """p_i = I_i^d + sum L_j m_jj^e over the children."""
        total = self.inertia[i]
        for j in self.children[i]:
            total = total + self.shift(j, j)
        return self.tree.named(total, f"p_{self.name(i)}")

    def _sum_above(self, i: int, r: int) -> Scalar:
        """g_i = sum of H_jr over the children of i, plus u_ii."""
        total = self.product(i, i)
        for j in self.children[i]:
            total = total + self.H[j, r]
        return self.tree.named(total, f"g_{self.name(i)}")

    def _by_doubling(self, r: int) -> None:
        """H_rr = 2 sum g_i + I_r, I_r = I_r^d + sum (I_i^d - sum I_j^d)."""
        constant, total = self.inertia[r], 0.0
        for i in self.children[r]:
            constant = constant + self.inertia[i]
            for j in self.children[i]:
                constant = constant - self.inertia[j]
            total = total + self._sum_above(i, r)
        self.tree.named(constant, f"I_{self.name(r)}")
        self.element(r, r, 2.0 * total + constant, "statement 4, (10) by reuse")


def planar_elements(
    tree: Tree, q: Vector, bodies: Sequence[int], sequence: str, record: dict[str, str]
) -> dict[tuple[int, int], Scalar]:
    """H_ji of one planar tree about the common normal turned into each body's own axis."""
    plane = Plane(tree, q, bodies, sequence == "merged", record)
    if sequence == "paper":
        plane.paper()
    else:
        plane.reuse()
    return {(j, i): x * float(plane.facing[j] * plane.facing[i]) for (j, i), x in plane.H.items()}
