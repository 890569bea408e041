"""The true values of everything that a formula in the paper's notation may name, at several poses at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import TraceError
from ..mechanics.algorithms.inertia_matrix import mass_matrix
from ..mechanics.spatial import RigidInertia, Sym, Vec
from ..mechanics.tree import Tree, plain_tree
from ..mechanics.tree_indices import ancestors, children_of, subtree_ends
from ..model.description import Model
from .parameters import SNAP

Array = np.ndarray[Any, Any]

POSES = 9
LETTERS = "xyzqe"
AXES = "xyz"


def split_name(name: str) -> tuple[str, str, str]:
    """Base, subscript, superscript."""
    m = re.fullmatch(r"([A-Za-z]+)(?:_([^^]*))?(?:\^(.*))?", name)
    return (m[1], m[2] or "", m[3] or "") if m else (name, "", "")


def varied_tree(tree: Tree, rng: np.random.Generator) -> Tree:
    """A tree with other masses, lengths, moments; equal ones no longer are."""

    def other(numbers: Iterable[float]) -> list[float]:
        return [float(x) * rng.uniform(0.6, 1.4) for x in numbers]

    def inertia(P: RigidInertia) -> RigidInertia:
        x, y, z, xy, xz, yz = other((P.J.xx, P.J.yy, P.J.zz, P.S.xy, P.S.xz, P.S.yz))
        S = Sym(0.5 * (y + z - x), xy, xz, 0.5 * (z + x - y), yz, 0.5 * (x + y - z))
        m, *h = other((P.m, *P.h))
        return RigidInertia(m, Vec(*h), S)

    return tree.replace(
        bodies=tuple(b._replace(p=Vec(*other(b.p)), inertia=inertia(b.inertia)) for b in tree.bodies)
    )


class Values:
    """Every symbol as an array over poses (POSES,), computed from vectors in the world, not by the formulas.

    varied: of a robot whose parameters are others, each by a factor of its own; what is zero stays.
    """

    def __init__(self, model: Model, seed: int = 0, varied: bool = False) -> None:
        self.name, self.tree = model.name, plain_tree(model, "check_formulas", SNAP)
        if varied:
            self.tree = varied_tree(self.tree, np.random.default_rng(seed))
        for b in self.tree.bodies:
            if b.kind != "revolute":
                raise TraceError(
                    f"joint {b.joint!r} is {b.kind}: printed formulas are checked for hinged trees only"
                )
        n = len(self.tree)
        rng = np.random.default_rng(seed)
        self.q = rng.uniform(-3.0, 3.0, (POSES, self.tree.nq))
        self.number = {b.number: i for i, b in enumerate(self.tree.bodies)}
        self.children, self.end = children_of(self.tree.parents), subtree_ends(self.tree.parents)
        self.R, self.p = np.zeros((n, POSES, 3, 3)), np.zeros((n, POSES, 3))
        for k, q in enumerate(self.q):
            self._place(k, [float(x) for x in q])
        self.M = np.asarray([mass_matrix(self.tree, [float(x) for x in q]) for q in self.q], float)
        self.m_own = np.asarray([float(b.inertia.m) for b in self.tree.bodies])
        self.h = np.asarray([b.inertia.h for b in self.tree.bodies], float)
        self.J = np.asarray([b.inertia.J.mat for b in self.tree.bodies], float)
        self.axis = np.zeros((n, 3))
        for i, b in enumerate(self.tree.bodies):
            self.axis[i, b.axis] = -1.0 if b.factor < 0 else 1.0
        self.m = np.asarray([self.m_own[i : self.end[i]].sum() for i in range(n)])
        self.offset = np.asarray([b.p if b.parent >= 0 else (0.0, 0.0, 0.0) for b in self.tree.bodies], float)
        self.L = np.linalg.norm(self.offset, axis=1)
        self.d = np.asarray(
            [
                self.h[i] + sum((self.m[j] * self.offset[j] for j in self.children[i]), np.zeros(3))
                for i in range(n)
            ]
        )
        self._known: dict[str, Array | None] = {}

    def _place(self, k: int, q: list[float]) -> None:
        for i, (b, x) in enumerate(zip(self.tree.bodies, self.tree.placements(q))):
            R, p = np.asarray(x.rotation, float), np.asarray(x.p, float)
            if b.parent >= 0:
                p = self.p[b.parent, k] + self.R[b.parent, k] @ p
                R = self.R[b.parent, k] @ R
            self.R[i, k], self.p[i, k] = R, p

    # -- vectors in the world, (POSES, 3) -------------------------------------------------------------------

    def vector(self, letter: str, i: int) -> Array:
        """x_i, y_i, z_i, the axis q_i or the offset's direction e_i."""
        if letter in "xyz":
            return self.R[i, :, :, "xyz".index(letter)]
        if letter == "q":
            return np.asarray(self.R[i] @ self.axis[i])
        up = self.tree.bodies[i].parent
        e = self.offset[i] / self.L[i] if self.L[i] else np.zeros(3)
        return self.R[up] @ e if up >= 0 else np.zeros((POSES, 3))

    def moment(self, j: int) -> Array:
        """First moment of the subtree of j about its pole."""
        total = np.zeros((POSES, 3))
        for k in range(j, self.end[j]):
            total += self.R[k] @ self.h[k] + self.m_own[k] * (self.p[k] - self.p[j])
        return total

    # -- symbols by their names -----------------------------------------------------------------------------

    def __call__(self, name: str) -> Array | None:
        """The values of a symbol; None for a name that the notation does not have."""
        if name not in self._known:
            base, sub, sup = split_name(name)
            found = self._find(base, sub, sup)
            self._known[name] = None if found is None else np.broadcast_to(np.asarray(found, float), (POSES,))
        return self._known[name]

    def bodies(self, sub: str) -> list[int]:
        """32 or 10,3 as bodies; empty where it is no list of bodies."""
        names = sub.split(",") if "," in sub else [sub] if sub in self.number else list(sub)
        return [self.number[x] for x in names] if names and all(x in self.number for x in names) else []

    def absent(self, name: str) -> bool:
        """Written like a symbol of the notation, of a body that there is not; an element H is always one."""
        base, sub, _ = split_name(name)
        number = re.sub(r"^[a-z]*", "", sub)
        return base in (*"HscqLmdIJ", *LETTERS) and number.isdigit() and (base == "H" or not self.bodies(number))

    def _find(self, base: str, sub: str, sup: str) -> Any:
        rules: dict[str, Callable[[str, str], Any]] = {
            "H": self._element, "s": self._sine, "c": self._cosine, "q": self._angle, "L": self._length,
            "m": self._mass, "d": self._first, "I": self._inertia, "J": self._composite,
        }  # fmt: skip
        if base in rules:
            found = rules[base](sub, sup)
            if found is not None:
                return found
        if base in LETTERS and base in ("x", "y", "z") and sub[:1] == "c" and not sup:
            one = self.bodies(sub[1:])
            massive = len(one) == 1 and self.m_own[one[0]]
            return self.h[one[0], "xyz".index(base)] / self.m_own[one[0]] if massive else None
        if base in LETTERS and sup in LETTERS and sup and len(self.bodies(sub)) == 2:
            j, i = self.bodies(sub)
            return np.einsum("ki,ki->k", self.vector(base, j), self.vector(sup, i))
        return None

    def _element(self, sub: str, sup: str) -> Any:
        b = self.bodies(sub)
        return None if sup or len(b) != 2 else self.M[:, self.tree.bodies[b[0]].v, self.tree.bodies[b[1]].v]

    def _sum(self, sub: str, sup: str) -> Any:
        b = self.bodies(sub)
        return None if sup or not b else sum(self.q[:, self.tree.bodies[i].q] for i in b)

    def _sine(self, sub: str, sup: str) -> Any:
        angle = self._sum(sub, sup)
        return None if angle is None else np.sin(angle)

    def _cosine(self, sub: str, sup: str) -> Any:
        angle = self._sum(sub, sup)
        return None if angle is None else np.cos(angle)

    def _angle(self, sub: str, sup: str) -> Any:
        return self._sum(sub, sup) if len(self.bodies(sub)) == 1 else None

    def _length(self, sub: str, sup: str) -> Any:
        b = self.bodies(sub)
        return self.L[b[0]] if len(b) == 1 and not sup else None

    def _mass(self, sub: str, sup: str) -> Any:
        """m_oi, m_i, m_ji^b."""
        own, b = sub[:1] == "o", self.bodies(sub.lstrip("o"))
        if len(b) == 1 and not sup:
            return self.m_own[b[0]] if own else self.m[b[0]]
        if len(b) == 2 and sup and sup in LETTERS and not own:
            return np.einsum("ki,ki->k", self.moment(b[0]), self.vector(sup, b[1]))
        return None

    def _first(self, sub: str, sup: str) -> Any:
        b = self.bodies(sub[1:])
        return (
            self.d[b[0], "xyz".index(sub[0])] if sub[:1] in ("x", "y", "z") and len(b) == 1 and not sup else None
        )

    def _inertia(self, sub: str, sup: str) -> Any:
        """I_i^x, I_i^xy with the sign +, I_i^q, I_i^d; I_zi^x = I_i^x - I_i^z, I_xi^y = I_i^y - I_i^x."""
        if sub[:1] in AXES and sub[1:] and sup in AXES and sup:
            one, k, l = self.bodies(sub[1:]), AXES.index(sup), AXES.index(sub[0])
            return self.J[one[0], k, k] - self.J[one[0], l, l] if len(one) == 1 else None
        b = self.bodies(sub)
        if len(b) != 1 or not sup:
            return None
        i, axes = b[0], ["xyz".find(a) for a in sup]
        if min(axes) >= 0 and len(axes) <= 2:
            return self.J[i, axes[0], axes[0]] if len(axes) == 1 else -self.J[i, axes[0], axes[1]]
        own = self.axis[i] @ self.J[i] @ self.axis[i]
        if sup == "q":
            return own
        shifted = sum(
            self.m[j] * (self.L[j] ** 2 - (self.offset[j] @ self.axis[i]) ** 2) for j in self.children[i]
        )
        return own + shifted if sup == "d" else None

    def _composite(self, sub: str, sup: str) -> Any:
        """J_i^o, J_i^s, J_ji^s, J_kji."""
        b = self.bodies(sub)
        if sup == "o" and len(b) == 1:
            return sum(
                self.m[k] * self.L[k] ** 2
                + 2.0 * self.L[k] * np.einsum("ki,ki->k", self.moment(k), self.vector("e", k))
                for k in range(b[0] + 1, self.end[b[0]])
            )
        if sup == "s" and len(b) in (1, 2):
            return sum(self._between(k, b[0], b[-1]) for k in range(b[0], self.end[b[0]]))
        return self._between(*b) if not sup and len(b) == 3 else None

    def _between(self, k: int, j: int, i: int) -> Array:
        a, b = (np.einsum("kji,kj->ki", self.R[k], self.vector("q", x)) for x in (j, i))
        return np.asarray(np.einsum("ki,ij,kj->k", a, self.J[k], b))

    def carrying(self, j: int) -> list[int]:
        """j and its ancestors."""
        return list(ancestors(self.tree.parents, j))
