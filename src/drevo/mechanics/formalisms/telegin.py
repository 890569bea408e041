"""Inertia matrices in direction cosines. Telegin 2025, DOI 10.14529/ctcr250203; formulas by their numbers there.

a_ji^b = a_j . b_i: the base letter takes the first subscript, the superscript the second. The pole of a body is
the origin of its frame, I_i its inertia about the pole, d_i the first moment of the augmented body, m_i the mass
of its subtree, m_ji^b the projection of its first moment on b_i, L_i e_i the offset from the parent's pole.
Where the paper has i - 1 stands the parent of i. H_ji is 0 unless i carries j.

Merged (the default): constants at one sum of angles become an amplitude and a phase, A cos + B sin = R cos(angle
- phase); the shifts m_k L_k^2 belong to the inertia of the augmented body.

Beyond the paper: sliding, screw and free joints, with one motion column (w, v) for each rate:
H_ji = w_j . (Gamma_j w_i + m_j x u_i) + v_j . (m_j u_i + w_i x m_j), u_i = v_i + w_i x R_ij.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..joints import Motion, Placement
from ..scalar import Matrix, Scalar, Vector, accumulate, is_constant, is_negative, is_zero, sqrt
from ..spatial import UNIT_VECS, Mat, Sym, Vec
from ..tree import Tree
from ..tree_indices import ancestors, children_of, subtree_ends
from .telegin_planar import is_planar, planar_elements
from .telegin_terms import (
    Cosines,
    Formula,
    Product,
    bilinear,
    length,
    linear,
    quadratic,
    sum_of_products,
    turned_form,
)

RateIndex = tuple[int, int]  # (body, which of its columns)


def split(p: Vec) -> tuple[Scalar, Vec]:
    """L and e of an offset L e; of an offset that is not constant, 1 and the offset itself."""
    nonzero = [k for k in range(3) if not is_zero(p[k])]
    if not nonzero:
        return 0.0, p
    if len(nonzero) == 1:
        k = nonzero[0]
        return (-p[k], -UNIT_VECS[k]) if is_negative(p[k]) else (p[k], UNIT_VECS[k])
    if not all(is_constant(x) for x in p):
        return 1.0, p
    L = sqrt(p.dot(p))
    return L, Vec(*(0.0 if is_zero(x) else x / L for x in p))


class Elements:
    """The elements H_ji of a tree and what they are written through, each made once and named."""

    def __init__(
        self, tree: Tree, q: Vector, record: dict[str, str], merge: bool = False, special: bool = False
    ) -> None:
        """special: the statement that says less comes first, as in the paper, not the shortest formula."""
        self.tree, self.q, self.record, self.merge, self.special = tree, q, record, merge, special
        self.bodies = tree.bodies
        self.children = children_of(tree.parents)
        self.end = subtree_ends(tree.parents)
        self.X = _placements(tree, q)
        self.see = Cosines(tree, q, self.X)
        self.columns = [_columns(tree, i) for i in range(len(tree))]
        self.mass: list[Scalar] = [b.inertia.m for b in tree.bodies]
        self.d = [b.inertia.h for b in tree.bodies]
        self.L: list[Scalar] = [0.0] * len(tree)
        self.H: dict[tuple[RateIndex, RateIndex], Scalar] = {}
        self._projection: dict[tuple[int, str, int], Scalar] = {}
        self._shifts: dict[int, Scalar] = {}
        self._inertia: dict[int, tuple[Sym, Sym]] = {}
        self._define()

    def _define(self) -> None:
        """Poles, offsets and axes, then (1) from the leaves."""
        for i, b in enumerate(self.bodies):
            p = self.X[i].p
            if b.parent >= 0:
                self.L[i], e = split(p)
                self.see.define("e", i, b.parent, e)
                self.see.define("R", i, b.parent, p)
            for axis, unit in zip("xyz", UNIT_VECS):
                self.see.define(axis, i, i, unit)
            for k, column in enumerate(self.columns[i]):
                self.see.define(_letter("q", k), i, i, column.w)
                self.see.define(_letter("v", k), i, i, column.v)
        for i in range(len(self.bodies) - 1, -1, -1):
            up = self.bodies[i].parent
            self._name(i)
            for axis, x in zip("xyz", self.d[i]):
                self.tree.named(x, f"d_{axis}{self.number(i)}")
            if up >= 0:
                self.mass[up] = self.mass[up] + self.mass[i]
                self.d[up] = self.d[up] + self.X[i].p * self.mass[i]  # (1)

    def _name(self, i: int) -> None:
        """The constants of a body whose subtree is complete."""
        n, (J, S) = self.number(i), (self.bodies[i].inertia.J, self.bodies[i].inertia.S)
        self.tree.named(self.mass[i], f"m_{n}")
        for axes, x in zip(("x", "y", "z", "xy", "xz", "yz"), (J.xx, J.yy, J.zz, S.xy, S.xz, S.yz)):
            self.tree.named(x, f"I_{n}^{axes}")
        for label, x in ((f"I_x{n}^y", S.xx - S.yy), (f"I_z{n}^x", S.zz - S.xx), (f"I_z{n}^y", S.zz - S.yy)):
            self.tree.named(x, label)

    # -- projections and direction cosines ------------------------------------------------------------------

    def number(self, i: int) -> str:
        return self.bodies[i].number

    def m(self, j: int, letter: str, i: int) -> Scalar:
        """m_ji^letter, (4)."""
        key = (j, letter, i)
        if key not in self._projection:
            value = sum_of_products(self._projected(j, letter, i))
            pair = str(self.number(j)), str(self.number(i))
            comma = "," if any(x.isdigit() and len(x) > 1 for x in pair) else ""
            label = f"m_{comma.join(pair)}^{self.see.shown(letter, i)}"
            self._projection[key] = self.tree.named(value, label)
        return self._projection[key]

    def _projected(self, j: int, letter: str, i: int) -> list[Product]:
        """(4); merged: one sine or cosine for a vector that is turned once, else by the body above the run,

        m_ji^b = m_jg^x x_gi^b + m_jg^y y_gi^b + m_jg^z z_gi^b.
        """
        a = self.see(letter, i, j)
        turn = self.see.turn(letter, i, j) if self.merge else None
        g = self.see.between(letter, i, j) if self.merge and turn is None and self._hinged_below(i) else -1
        if g >= 0:
            return [(self.m(j, axis, g), x) for axis, x in zip("xyz", self.see(letter, i, g)) if not is_zero(x)]
        below: list[Product] = [(self.m(k, letter, i),) for k in self.children[j]]
        if turn is not None and turn.run is not None and all(is_constant(x) for x in self.d[j]):
            return linear(self.d[j], turn, self.see.angle, self._label(j)) + below
        return [(x, y) for x, y in zip(self.d[j], a)] + below

    def dot(self, a: str, j: int, b: str, i: int) -> Scalar:
        """a_ji^b = a_j . b_i, j the carried body."""
        body = self.bodies[j].parent if a in "eR" else j
        return self.see(a, j, body).dot(self.see(b, i, body))

    def shifts(self, i: int) -> Scalar:
        """J_i^o, (3)."""
        if i not in self._shifts:
            terms: list[Product] = []
            for j in self.children[i]:
                terms += [(self.mass[j], self.dot("R", j, "R", j)), (2.0, self.L[j], self.me(j, j))]
                terms.append((self.shifts(j),))
            self._shifts[i] = self.tree.named(sum_of_products(terms), f"J_{self.number(i)}^o")
        return self._shifts[i]

    def me(self, j: int, i: int) -> Scalar:
        """m_ji^e; 0 where L_i = 0 and e_i is nothing."""
        return 0.0 if is_zero(self.L[i]) else self.m(j, "e", i)

    # -- Gamma_j(a, b): the composite inertia of subtree j between two axes ------------------------------------

    def gamma(self, j: int, a: str, ia: int, b: str, ib: int) -> list[Product]:
        """J_ji^s + J_j^o a.b - sum over the descendants k of L_k [e.a (m_k L_k e.b + m_k.b) + e.b m_k.a]."""
        same = a == b and ia == ib
        if self.merge:
            return self._merged_gamma(j, a, ia, b, ib, same)
        terms: list[Product] = []
        for k in range(j, self.end[j]):
            body, x, y = self.bodies[k].inertia, self.see(a, ia, k), self.see(b, ib, k)
            terms += quadratic(body.J, body.S, x) if same else bilinear(body.J, body.S, x, y)
        cosine = 1.0 if same else self.see(a, ia, j).dot(self.see(b, ib, j))
        terms.append((self.shifts(j), cosine))
        for k in range(j + 1, self.end[j]):
            terms += self._less(k, a, ia, b, ib, same)
        return terms

    def _merged_gamma(self, j: int, a: str, ia: int, b: str, ib: int, same: bool) -> list[Product]:
        """Gamma_j(a, b) over augmented bodies: m_k L_k^2 (1 - e e^T) belongs to the inertia of the parent of k."""
        terms: list[Product] = []
        for k in range(j, self.end[j]):
            J, P = self._augmented(k)
            x, y = self.see.turn(a, ia, k), self.see.turn(b, ib, k)
            if x and y and (x.run == y.run or None in (x.run, y.run)) and all(is_constant(t) for t in (*J, *P)):
                terms += turned_form(J, P, x, y, self.see.angle, self._label(k))
            elif same:
                terms += quadratic(J, P, self.see(a, ia, k))
            else:
                terms += bilinear(J, P, self.see(a, ia, k), self.see(b, ib, k))
        cosine = 1.0 if same else self.see(a, ia, j).dot(self.see(b, ib, j))
        for k in range(j + 1, self.end[j]):
            if is_zero(self.L[k]):
                continue
            L, ea, eb = self.L[k], self.dot("e", k, a, ia), self.dot("e", k, b, ib)
            terms.append((2.0, L, cosine, 0.0 if is_zero(cosine) else self.m(k, "e", k)))
            for e, letter, i in ((ea, b, ib), (eb, a, ia)):
                terms.append((-1.0, L, e, 0.0 if is_zero(e) else self.m(k, letter, i)))
        return terms

    def _augmented(self, k: int) -> tuple[Sym, Sym]:
        """Moments and products of inertia of augmented body k about its pole."""
        if k not in self._inertia:
            J, P = self.bodies[k].inertia.J, self.bodies[k].inertia.S
            for c in self.children[k]:
                (x, y, z), m = self.X[c].p, self.mass[c]
                moved = Sym(m * x * x, m * x * y, m * x * z, m * y * y, m * y * z, m * z * z)
                J, P = J + moved.turned(), P + moved
            for axis, x in zip("xyz", (J.xx, J.yy, J.zz)):
                self.tree.named(x, f"I_{self.number(k)}^d{axis}")
            self._inertia[k] = (J, P)
        return self._inertia[k]

    def _label(self, i: int) -> Callable[[Scalar, str], Scalar]:
        """Names for a body's own constants, by a letter."""
        return lambda x, letter: self.tree.named(x, f"{letter}_{self.number(i)}")

    def _less(self, k: int, a: str, ia: int, b: str, ib: int, same: bool) -> list[Product]:
        if is_zero(self.L[k]):
            return []
        L, ea, eb = self.L[k], self.dot("e", k, a, ia), self.dot("e", k, b, ib)
        terms: list[Product] = [(-1.0, L, L, self.mass[k], ea, eb)]
        if same:
            return [*terms, (-2.0, L, ea, self.m(k, a, ia))]
        return [*terms, (-1.0, L, ea, self.m(k, b, ib)), (-1.0, L, eb, self.m(k, a, ia))]

    # -- the statements -------------------------------------------------------------------------------------

    def hinge(self, i: int) -> bool:
        return self.bodies[i].kind == "revolute"

    def statement_1(self, j: int, i: int) -> Formula:
        """(5) on the diagonal, (2) below it."""
        terms = self.gamma(j, "q", j, "q", i)
        if i == j:
            return Formula("statement 1, (5)", terms)
        for k in self._between(j, i):
            if not is_zero(self.L[k]):
                terms.append((self.L[k], self.dot("q", j, "q", i), self.m(j, "e", k)))
                terms.append((-1.0, self.L[k], self.m(j, "q", i), self.see("q", j, j).dot(self.see("e", k, j))))
        return Formula("statement 1, (2)", terms)

    def _between(self, j: int, i: int) -> list[int]:
        """j and its ancestors below i."""
        out = []
        for k in ancestors(self.tree.parents, j):
            if k == i:
                break
            out.append(k)
        return out

    def statement_2(self, j: int, i: int) -> Formula | None:
        """(7): H_{j,p} from H_{j,i} where the axes of i and its parent p are parallel."""
        below = self._between(j, i)[-1]
        sign = float(self._facing(below) * self._facing(i)) * self.see.along[below]
        if not sign:
            return None
        terms: list[Product] = [(sign, self.H[(j, 0), (below, 0)])]
        if not is_zero(self.L[below]):
            k, L = below, self.L[below]
            terms.append((sign, L, self.dot("q", j, "q", k), self.m(j, "e", k)))
            along = self.see("q", j, j).dot(self.see("e", k, j))
            if not is_zero(along):
                terms.append((-sign, L, along, self.m(j, "q", k)))
        return Formula("statement 2, (7)" if sign > 0 else "statement 2, (7), antiparallel", terms)

    def statement_3(self, i: int) -> Formula | None:
        """(8), and its split form where only some of the children are parallel."""
        kids = self.children[i]
        if not any(self.see.along[j] for j in kids):
            return None
        body = self.bodies[i].inertia
        constant = quadratic(body.J, body.S, self.see("q", i, i))
        terms: list[Product] = []
        for j in kids:
            if self.see.along[j]:
                terms.append((self.H[(j, 0), (j, 0)],))
            else:
                terms += self.gamma(j, "q", i, "q", i)
            if not is_zero(L := self.L[j]):
                e = self.dot("e", j, "q", i)
                constant += [(self.mass[j], self.dot("R", j, "R", j)), (-1.0, self.mass[j], L, L, e, e)]
                terms.append((2.0, L, self.m(j, "e", j)))
                terms += [] if is_zero(e) else [(-2.0, L, e, self.m(j, "q", i))]
        augmented = self.tree.named(sum_of_products(constant), f"I_{self.number(i)}^d")
        whole = all(self.see.along[j] for j in kids)
        return Formula("statement 3, (8)" if whole else "statement 3, split form", [(augmented,), *terms])

    def _facing(self, i: int) -> int:
        """-1 where the hinge turns about minus its coordinate axis."""
        return -1 if self.bodies[i].factor < 0 else 1

    def beyond(self, j: int, l: int, i: int, k: int) -> Formula:
        """Any joints: the columns (w, v) of rate l of body j and rate k of body i."""
        w, v = _letter("q", l), _letter("v", l)
        a, b = self.columns[j][l], self.columns[i][k]
        turn, slide = self.see(_letter("q", k), i, j), self.see(_letter("v", k), i, j)
        u, back = slide, self._between(j, i)
        for r in back:
            u = u + turn.cross(self.see("R", r, j))
        terms: list[Product] = []
        first = Vec(*(self.m(j, axis, j) for axis in "xyz"))
        if not a.w.zero:
            if not b.w.zero:
                same = (j, l) == (i, k) and self.hinge(j)
                terms += self.gamma(j, w, j, _letter("q", k), i) if not same else self.gamma(j, w, j, w, j)
            terms += [(1.0, x, y) for x, y in zip(self.see(w, j, j).cross(first), u)]
        if not a.v.zero:
            x = self.see(v, j, j)
            terms += [(self.mass[j], s, t) for s, t in zip(x, u)]
            terms += [(s, t) for s, t in zip(x.cross(turn), first)]
        return Formula("beyond the paper", terms)

    # -- the choice -----------------------------------------------------------------------------------------

    def candidates(self, j: int, l: int, i: int, k: int) -> list[Formula]:
        """The statements that hold for an element, those that say less first."""
        if not all(self.hinge(r) for r in (j, i)) or not self._hinged_below(i):
            return [self.beyond(j, l, i, k)]
        special = self.statement_3(j) if i == j else self.statement_2(j, i)
        general = self.statement_1(j, i)
        return [general] if special is None else [special, general]

    def _hinged_below(self, i: int) -> bool:
        return all(self.hinge(k) for k in range(i + 1, self.end[i]))

    def write(self, j: int) -> None:
        """The row of body j: its diagonal first, then its ancestors up to the root."""
        self.tree.section(j)
        for l in range(len(self.columns[j])):
            for i in ancestors(self.tree.parents, j):
                for k in range(len(self.columns[i])):
                    if i < j or k <= l:
                        self._element(j, l, i, k)

    def _element(self, j: int, l: int, i: int, k: int) -> None:
        formulas = self.candidates(j, l, i, k)
        best = formulas[0] if self.special else min(formulas, key=lambda f: length(f.terms))
        label = f"H_{self._index(j, l)}{self._index(i, k)}"
        self.record[label] = best.how
        self.H[(j, l), (i, k)] = self.tree.named(sum_of_products(best.terms), label)

    def _index(self, i: int, k: int) -> str:
        return self.number(i) + ("abcdef"[k] if len(self.columns[i]) > 1 else "")


def _letter(letter: str, k: int) -> str:
    """q of the only or first column, then qb, qc, ..."""
    return letter + ("", "b", "c", "d", "e", "f")[k]


def _columns(tree: Tree, i: int) -> list[Motion]:
    """The joint's columns, about the axis as the robot has it (the tree's may be its opposite)."""
    b = tree.bodies[i]
    sign = -1.0 if b.factor < 0 else 1.0
    return [Motion(c.w * sign, c.v * sign) for c in tree.motion_subspace(b)]


def _placements(tree: Tree, q: Vector) -> list[Placement]:
    """Placements; a tree of hinges alone needs their constant parts only."""
    if all(b.kind == "revolute" for b in tree.bodies):
        unit = Mat(*UNIT_VECS)
        return [Placement(b.R, -2, 0.0, 1.0, unit, b.p) for b in tree.bodies]
    return tree.placements(q)


# -- quantities ---------------------------------------------------------------------------------------------


def elements(
    tree: Tree, q: Vector, sequence: str = "merged", record: dict[str, str] | None = None
) -> dict[tuple[int, int], Scalar]:
    """H_ji by rates (row, column), row >= column; absent: 0. `record`: which statement gave each element."""
    notes: dict[str, str] = getattr(tree.context, "notes", {}) if record is None else record
    end = subtree_ends(tree.parents)
    roots = [i for i, b in enumerate(tree.bodies) if b.parent < 0]
    found: dict[tuple[RateIndex, RateIndex], Scalar] = {}
    general: Elements | None = None
    for r in roots:
        if is_planar(tree, range(r, end[r])):
            planar = planar_elements(tree, q, range(r, end[r]), sequence, notes)
            facing = [-1.0 if b.factor < 0 else 1.0 for b in tree.bodies]
            found.update({((j, 0), (i, 0)): x * (facing[j] * facing[i]) for (j, i), x in planar.items()})
            continue
        general = general or Elements(tree, q, notes, sequence == "merged", sequence == "paper")
        for j in range(end[r] - 1, r - 1, -1):
            general.write(j)
    if general is not None:
        found.update(general.H)
    return _by_rates(tree, found)


def _by_rates(tree: Tree, found: Mapping[tuple[RateIndex, RateIndex], Scalar]) -> dict[tuple[int, int], Scalar]:
    """Over q's own order; bodies driven by one coordinate add up."""
    out: dict[tuple[int, int], Scalar] = {}
    for ((j, l), (i, k)), x in found.items():
        a, b = tree.bodies[j], tree.bodies[i]
        r, c = a.v + l, b.v + k
        x = x * (abs(a.factor) * abs(b.factor))
        if r == c and (j, l) != (i, k):
            x = x + x
        key = (max(r, c), min(r, c))
        out[key] = out[key] + x if key in out else x
    for k, x in tree.armature.items():
        accumulate(out, (k, k), x)
    return out


def mass_matrix(tree: Tree, q: Vector, sequence: str = "merged", record: dict[str, str] | None = None) -> Matrix:
    """M(q), (nv, nv), kg m^2: each element by the statement that gives its shortest formula.

    sequence: of planar trees, "paper" | "reuse" | "merged".
    """
    M: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]
    for (r, c), x in elements(tree, q, sequence, record).items():
        M[r][c] = M[c][r] = x
    return M


def kinetic_energy(tree: Tree, q: Vector, v: Vector, sequence: str = "merged") -> Scalar:
    """T = 1/2 sum H_ii v_i^2 + sum H_ij v_i v_j over i < j, J."""
    half: Scalar = 0.0
    mixed: Scalar = 0.0
    H = elements(tree, q, sequence)
    for (r, c), x in sorted(H.items()):
        if r == c:
            half = half + x * (v[r] * v[r])
        else:
            mixed = mixed + x * (v[r] * v[c])
    return 0.5 * half + mixed


SEQUENCES: dict[str, Callable[..., Any]] = {
    x: partial(mass_matrix, sequence=x) for x in ("paper", "reuse", "merged")
}
META = {"paper": {"formalism": "telegin", "doubling": "mul"}}  # the paper writes 2x as a product
