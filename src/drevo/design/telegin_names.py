"""Telegin's symbols by their definitions: direction cosines, first moments of subtrees, moments about poles."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..mechanics.scalar import Scalar, is_zero
from ..mechanics.spatial import UNIT_VECS, ZERO, Mat, Vec
from ..mechanics.tree import Tree
from ..mechanics.tree_indices import children_of, subtree_ends

COORDINATE_LETTERS = "xyzqe"
AXES = "xyz"


def split_name(name: str) -> tuple[str, str, str]:
    """Base, subscript, superscript."""
    m = re.fullmatch(r"([A-Za-z]+)(?:_([^^]*))?(?:\^(.*))?", name)
    return (m[1], m[2] or "", m[3] or "") if m else (name, "", "")


class TreeOfScalars(Protocol):
    """A tree of scalars with its coordinates, the symbols of its parameters, and its bodies by numbers."""

    tree: Tree
    numeric: Tree
    state: Any
    given_names: dict[str, Scalar]

    def bodies(self, sub: str) -> list[int]: ...

    def carrying(self, j: int) -> list[int]: ...


class TeleginNames:
    """The rules by which a name is a value; vectors in the axes of a body, seen from others by relative turns."""

    def __init__(self, truth: TreeOfScalars) -> None:
        self.truth, self.tree = truth, truth.tree
        self.bodies = truth.bodies
        n = len(self.tree)
        self.children, self.end = children_of(self.tree.parents), subtree_ends(self.tree.parents)
        self.turn = [x.rotation for x in self.tree.placements(truth.state.q)]
        self.m: list[Scalar] = [b.inertia.m for b in self.tree.bodies]
        for i in range(n - 1, -1, -1):
            if (up := self.tree.bodies[i].parent) >= 0:
                self.m[up] = self.m[up] + self.m[i]
        self.known: dict[tuple[str, int, int], object] = {}

    # -- vectors ---------------------------------------------------------------------------------------------

    def seen(self, j: int, i: int, u: Vec) -> Vec:
        """A vector in the axes of body j (-1 the ground), in those of body i."""
        meeting = (
            next((k for k in self.truth.carrying(j) if i >= 0 and k in self.truth.carrying(i)), -1)
            if j >= 0
            else -1
        )
        while j != meeting:
            u, j = self.turn[j] @ u, self.tree.bodies[j].parent
        path = [k for k in (self.truth.carrying(i) if i >= 0 else []) if k > meeting]
        for k in reversed(path):
            u = self.turn[k].T @ u
        return u

    def vector(self, letter: str, i: int) -> tuple[int, Vec]:
        """x_i, y_i, z_i, the axis q_i or the offset's direction e_i, and the body whose axes it stands in."""
        b = self.tree.bodies[i]
        if letter in AXES:
            return i, UNIT_VECS[AXES.index(letter)]
        if letter == "q":
            return i, UNIT_VECS[b.axis] * (-1.0 if b.factor < 0 else 1.0)
        return b.parent, self.direction(i)

    def direction(self, i: int) -> Vec:
        """e_i in the axes of the base."""
        b, number = self.tree.bodies[i], self.truth.given_names
        if b.parent < 0 or b.p.zero:
            return ZERO
        up = self.tree.bodies[b.parent].number
        comma = "," if max(len(up), len(b.number)) > 1 else ""
        names = [f"{a}_{up}{comma}{b.number}^e" for a in AXES]
        if any(n in number for n in names):
            return Vec(*(number.get(n, 0.0) for n in names))
        plain = self.truth.numeric.bodies[i].p
        return Vec(*(0.0 if is_zero(x) else float(np.sign(y)) for x, y in zip(b.p, plain)))

    def length(self, i: int) -> Scalar:
        """L_i."""
        return self.truth.given_names.get(f"L_{self.tree.bodies[i].number}", 0.0)

    def moment(self, j: int) -> Vec:
        """The first moment of the subtree of j about its pole, in the axes of j."""
        key = ("moment", j, j)
        if key not in self.known:
            total = self.tree.bodies[j].inertia.h
            for k in self.children[j]:
                total = total + self.turn[k] @ self.moment(k) + self.tree.bodies[k].p * self.m[k]
            self.known[key] = total
        return self.known[key]  # type: ignore[return-value]

    def product(self, j: int, u: Vec, letter: str, i: int) -> Scalar:
        """A vector in the axes of j times a vector of body i."""
        body, w = self.vector(letter, i)
        if body < 0:
            return self.seen(j, -1, u).dot(w)
        return self.seen(j, body, u).dot(w) if body <= j else u.dot(self.seen(body, j, w))

    # -- symbols by their names -----------------------------------------------------------------------------

    def symbol(self, name: str) -> Scalar | None:
        """The value of a symbol; None for a name that the notation does not have."""
        base, sub, sup = split_name(name)
        rules: dict[str, Callable[[str, str], Scalar | None]] = {
            "L": self._length, "m": self._mass, "d": self._first, "I": self._inertia, "J": self._composite,
            "R": self._offset,
        }  # fmt: skip
        if base in rules and (value := rules[base](sub, sup)) is not None:
            return value
        if base in AXES and sub[:1] == "c" and not sup and len(self.bodies(sub[1:])) == 1:
            massive = not is_zero(self.tree.bodies[self.bodies(sub[1:])[0]].inertia.m)
            return self.truth.given_names.get(name, 0.0) if massive else None
        if base in COORDINATE_LETTERS and sup in COORDINATE_LETTERS and sup and len(self.bodies(sub)) == 2:
            j, i = self.bodies(sub)
            body, u = self.vector(base, j)
            return self.product(body, u, sup, i)
        return None

    def _length(self, sub: str, sup: str) -> Scalar | None:
        b = self.bodies(sub)
        return self.length(b[0]) if len(b) == 1 and not sup else None

    def _offset(self, sub: str, sup: str) -> Scalar | None:
        """R_2y, a component of an offset in the axes of the base."""
        b = self.bodies(sub[:-1])
        if len(b) != 1 or sub[-1] not in AXES or sup:
            return None
        return self.tree.bodies[b[0]].p[AXES.index(sub[-1])]

    def _mass(self, sub: str, sup: str) -> Scalar | None:
        """m_oi, m_i, m_ji^b."""
        alone, b = sub[:1] == "o", self.bodies(sub.lstrip("o"))
        if len(b) == 1 and not sup:
            return self.tree.bodies[b[0]].inertia.m if alone else self.m[b[0]]
        if len(b) == 2 and sup and sup in COORDINATE_LETTERS and not alone:
            return self.product(b[0], self.moment(b[0]), sup, b[1])
        return None

    def _first(self, sub: str, sup: str) -> Scalar | None:
        b = self.bodies(sub[1:])
        if sub[:1] not in AXES or not sub or len(b) != 1 or sup:
            return None
        d = self.tree.bodies[b[0]].inertia.h
        for k in self.children[b[0]]:
            d = d + self.tree.bodies[k].p * self.m[k]
        return d[AXES.index(sub[0])]

    def tensor(self, i: int) -> Mat:
        """The inertia tensor of a body about its pole."""
        return self.tree.bodies[i].inertia.J.mat

    def _inertia(self, sub: str, sup: str) -> Scalar | None:
        """I_i^x, I_i^xy with the sign +, I_i^q, I_i^d; I_zi^x = I_i^x - I_i^z, I_xi^y = I_i^y - I_i^x."""
        if sub[:1] in AXES and sub[1:] and sup in AXES and sup:
            one, k, l = self.bodies(sub[1:]), AXES.index(sup), AXES.index(sub[0])
            return self.tensor(one[0])[k][k] - self.tensor(one[0])[l][l] if len(one) == 1 else None
        b = self.bodies(sub)
        if len(b) != 1 or not sup:
            return self._central(self.bodies(sub[:-2]), sub[-2:]) if not sup else None
        i, axes = b[0], [AXES.find(a) for a in sup]
        if min(axes) >= 0 and len(axes) <= 2:
            x = self.tensor(i)[axes[0]][axes[-1]]
            return x if len(axes) == 1 else -x
        _, u = self.vector("q", i)
        about = u.dot(self.tensor(i) @ u)
        if sup == "q":
            return about
        if sup != "d":
            return None
        for k in self.children[i]:
            p = self.tree.bodies[k].p
            about = about + self.m[k] * (p.dot(p) - p.dot(u) * p.dot(u))
        return about

    def _central(self, b: list[int], axes: str) -> Scalar | None:
        """I_2xy, of the tensor about the centre of mass."""
        if len(b) != 1 or not {*axes} <= {*AXES} or len(axes) != 2:
            return None
        body = self.tree.bodies[b[0]]
        com = Vec(*(self.truth.given_names.get(f"{a}_c{body.number}", 0.0) for a in AXES))
        return body.inertia.shifted(com * -1.0).J.mat[AXES.index(axes[0])][AXES.index(axes[1])]

    def _composite(self, sub: str, sup: str) -> Scalar | None:
        """J_i^o, J_i^s, J_ji^s, J_kji."""
        b = self.bodies(sub)
        if sup == "o" and len(b) == 1:
            total: Scalar = 0.0
            for k in range(b[0] + 1, self.end[b[0]]):
                p = self.tree.bodies[k].p
                total = total + self.m[k] * p.dot(p) + 2.0 * (self.turn[k] @ self.moment(k)).dot(p)
            return total
        if sup == "s" and len(b) in (1, 2):
            total = 0.0
            for k in range(b[0], self.end[b[0]]):
                total = total + self._between(k, b[0], b[-1])
            return total
        return self._between(*b) if not sup and len(b) == 3 else None

    def _between(self, k: int, j: int, i: int) -> Scalar:
        """The tensor of body k between the axes of joints j and i."""
        (jb, ju), (ib, iu) = self.vector("q", j), self.vector("q", i)
        return self.seen(jb, k, ju).dot(self.tensor(k) @ self.seen(ib, k, iu))
