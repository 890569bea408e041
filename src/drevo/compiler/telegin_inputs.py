"""The inputs of a robot in the manner of Telegin 2025: poles, offsets, axes, static moments, merged constants.

Zeros are left out, as the paper leaves them out. In a plane only what moves in it enters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..codegen.emit.about import Coordinate, Inputs
from ..codegen.emit.expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from ..codegen.emit.sequence import Section, Statement
from ..codegen.graph.program import Program
from ..mechanics.formalisms.telegin import split
from ..mechanics.formalisms.telegin_planar import is_planar, parallel
from ..mechanics.spatial import IDENTITY, UNIT, Vec
from ..mechanics.tree import Tree, TreeBody, build_tree
from ..mechanics.tree_indices import ancestors, children_of, subtree_ends
from ..model.description import Model
from .drawing import MOST, SNAP, augmented, drawing_of

AXES = "xyz"
TURNING = ("revolute", "helical", "prismatic")


TURN, SHIFT = ("angle", "rad"), ("displacement", "m")
PLACE = tuple((f"position {x}", "m") for x in AXES)
SPIN = tuple((f"angular velocity {x}", "rad") for x in AXES)
QUATERNION = tuple((f"quaternion {x}", "") for x in "xyzw")
PARTS = {  # what the coordinates of a joint are, with their units
    "prismatic": (SHIFT,),
    "cylindrical": (SHIFT, TURN),
    "universal": (("angle about axis", "rad"), ("angle about axis2", "rad")),
    "planar": (*PLACE[:2], TURN),
    "spherical": QUATERNION,
    "free": (*PLACE, *QUATERNION),
}
RATES = {"spherical": SPIN, "free": (*((f"velocity {x}", "m") for x in AXES), *SPIN)}  # where they are others
PER = {"q": "", "v": "/s", "a": "/s²", "x": "/s²"}
WRENCH = tuple((f"{what} {x}", unit) for what, unit in (("force", "N"), ("moment", "N m")) for x in AXES)


def coordinates(program: Program, model: Model) -> dict[str, tuple[Coordinate, ...]]:
    """What every scalar of the inputs is: its joint (or link), kind and unit, in their order."""
    tree = build_tree(model, snap=SNAP)
    return {p.name: tuple(_coordinates(p.name, model, tree)) for p in program.inputs}


def _coordinates(source: str, model: Model, tree: Tree) -> Iterator[Coordinate]:
    if source.startswith("f_ext:"):
        yield from (Coordinate(source[6:], "", what, unit) for what, unit in WRENCH)
        return
    numbers = {j.name: [b.number for b in tree.bodies if b.joint == j.name] for j in model.moving_joints}
    for joint in model.moving_joints:
        number = " ".join(numbers[joint.name])
        parts = [("coordinate", "")] * joint.nq if joint.formula else PARTS.get(joint.kind, (TURN,))
        for what, unit in parts if source == "q" else RATES.get(joint.kind, parts):
            if source == "tau":
                yield Coordinate(
                    joint.name, number, f"{joint.kind}, {_effort(what)}", "N" if unit == "m" else "N m"
                )
            else:
                yield Coordinate(
                    joint.name, number, f"{joint.kind}, {_rate(what, source)}", unit + PER.get(source, "")
                )


def _rate(what: str, source: str) -> str:
    """ "angle" of q is "rate of angle" of v; an angular velocity stays one, and has an acceleration."""
    if "velocity" in what:
        return what if source == "v" else what.replace("velocity", "acceleration")
    words = {"q": "", "v": "rate of ", "a": "acceleration of ", "x": "rate or acceleration of "}
    return words.get(source, "") + what


def _effort(what: str) -> str:
    """The force or moment along or about it."""
    turning = "ang" in what
    which = what.rsplit(" ", 1)[-1] if what[-1] in AXES or "axis" in what else ""
    return f"{'moment' if turning else 'force'} {which}".strip()


def described(program: Program, model: Model) -> Program:
    """The program with what a document of it shows of the robot: joints, a drawing, and by Telegin the inputs."""
    meta: dict[str, object] = {**program.meta, "coordinates": coordinates(program, model)}
    if not 0 < len(model.moving_joints) <= MOST:
        return replace(program, meta=meta)
    meta["drawing"] = drawing_of(model)
    tree = build_tree(model, snap=SNAP)
    numbers = {b.link: b.number for b in tree.bodies}
    numbers.update((b.joint, b.number) for b in tree.bodies if b.joint not in numbers)
    meta["numbers"] = numbers
    if program.meta.get("formalism") == "telegin":
        meta["inputs"] = inputs_of(tree)
    return replace(program, meta=meta)


def with_coordinates(program: Program, model: Model) -> Program:
    """The program with what the states among its inputs are; rows that it has itself stay."""
    own = program.meta.get("coordinates", {})
    states = [p.name for p in program.inputs if p.name in (*PER, "tau") or p.name.startswith("f_ext:")]
    rows = {name: row for name, row in coordinates(program, model).items() if name in states}
    return replace(
        program, meta={**program.meta, "coordinates": {**rows, **(own if isinstance(own, dict) else {})}}
    )


def inputs_of(tree: Tree) -> Inputs:
    """The sections of inputs, and the values of what they define."""
    found = _Inputs(tree)
    sections = [
        ("poles, offsets and axes, those of a turned body as at q = 0, m", found.geometry()),
        ("masses, centres of mass and inertias about the poles, kg, m, kg m²", found.bodies()),
        ("subtrees and static moments of the augmented bodies, kg, kg m, kg m²", found.moments()),
        ("merged constants, A cos + B sin = R cos(angle - phase), kg m²", found.merged()),
    ]
    made = [Section(title, tuple(rows)) for title, rows in sections]
    return Inputs(tuple(s for s in made if s.statements), found.values, found.lengths())


class _Inputs:
    """A tree of numbers and the values met on the way."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.children = children_of(tree.parents)
        end = subtree_ends(tree.parents)
        roots = [i for i, b in enumerate(tree.bodies) if b.parent < 0]
        self.planar = {i for r in roots if is_planar(tree, range(r, end[r])) for i in range(r, end[r])}
        self.m, self.d = augmented(tree)
        self.L = [split(b.p) if b.parent >= 0 else (0.0, b.p) for b in tree.bodies]
        self.values: dict[str, float] = {}

    def n(self, i: int) -> str:
        return self.tree.bodies[i].number

    def pair(self, i: int, j: int) -> str:
        """The subscripts i and j, apart where one has two digits."""
        a, b = self.n(i), self.n(j)
        return f"{a}{b}" if len(a + b) == 2 else f"{a}_{b}"

    # -- geometry -------------------------------------------------------------------------------------------

    def geometry(self) -> Iterator[Statement]:
        """L_i, e_i in the base's axes, the body's axes at q = 0 where they are turned, and the joint's axis."""
        for i, b in enumerate(self.tree.bodies):
            base = self.n(b.parent) if b.parent >= 0 else "0"
            L, e = self.L[i]
            if L:
                yield Statement(f"L_{b.number}", _number(L))
                yield Statement(f"e_{b.number}", _vector(e, base))
            if b.R != IDENTITY:
                for k, axis in enumerate(AXES):
                    yield Statement(f"{axis}_{b.number}", _vector(b.R @ UNIT[k], base))
            if b.kind in TURNING:
                own = UNIT[b.axis] * (-1.0 if b.factor < 0 else 1.0)
                yield Statement(f"q_{b.number}", _vector(own, b.number))

    def lengths(self) -> dict[str, tuple[bool, tuple[str, ...]]]:
        """Components of offsets as products: R_3x is L_3 x_23^e, or plus or minus L_3."""
        out = {}
        for j, b in enumerate(self.tree.bodies):
            for a in range(3) if b.parent >= 0 else ():
                if b.p[a]:
                    negative, cosine = self._cosine(b.parent, j, a)
                    names = tuple(f.text for f in cosine if isinstance(f, Name))
                    out[f"R_{b.number}{AXES[a]}"] = (negative, (f"L_{b.number}", *names))
        return out

    # -- bodies ---------------------------------------------------------------------------------------------

    def across(self, i: int) -> list[int]:
        """The components that enter: those in the plane, or all."""
        k = self.tree.bodies[i].axis
        return [a for a in range(3) if i not in self.planar or a != k]

    def bodies(self) -> Iterator[Statement]:
        """m_oi, the centre of mass, moments and products of inertia about the pole, what is not zero."""
        for i, b in enumerate(self.tree.bodies):
            if b.inertia.m:
                yield Statement(f"m_o{b.number}", _number(b.inertia.m))
                for a in self.across(i):
                    yield from _nonzero(f"{AXES[a]}_c{b.number}", b.inertia.h[a] / b.inertia.m)
            yield from self._inertias(i, b)

    def _inertias(self, i: int, b: TreeBody) -> Iterator[Statement]:
        J, S, n = b.inertia.J, b.inertia.S, b.number
        if i in self.planar:
            yield from _nonzero(f"I_{n}^q", J.mat[b.axis][b.axis])
            return
        for axis, x in zip(AXES, (J.xx, J.yy, J.zz)):
            yield from _nonzero(f"I_{n}^{axis}", x)
        for axes, x in (("xy", S.xy), ("xz", S.xz), ("yz", S.yz)):
            yield from _nonzero(f"I_{n}^{axes}", x)

    def moments(self) -> Iterator[Statement]:
        """m_i, d_i by (1) and, in a plane, I_i^d; leaves first."""
        for i in range(len(self.tree) - 1, -1, -1):
            n, own = self.n(i), self.tree.bodies[i].inertia
            masses = [Name(f"m_o{n}")] if own.m else []
            masses += [Name(f"m_{self.n(j)}") for j in self.children[i] if self.m[j]]
            yield from self._defined(f"m_{n}", tuple(Term(False, (x,)) for x in masses), self.m[i])
            for a in self.across(i):
                yield from self._defined(f"d_{AXES[a]}{n}", self._moment(i, a), self.d[i][a])
            if i in self.planar:
                yield from self._augmented(i)
            else:
                yield from self._differences(i)

    def _differences(self, i: int) -> Iterator[Statement]:
        """I_zi^x = I_i^x - I_i^z and the like."""
        n, J = self.n(i), self.tree.bodies[i].inertia.J
        moments = dict(zip(AXES, (J.xx, J.yy, J.zz)))
        for less, axis in (("x", "y"), ("z", "x"), ("z", "y")):
            terms = Term(False, (Name(f"I_{n}^{axis}"),)), Term(True, (Name(f"I_{n}^{less}"),))
            yield from self._defined(f"I_{less}{n}^{axis}", terms, moments[axis] - moments[less])

    def _moment(self, i: int, a: int) -> Terms:
        """m_oi x_ci + sum of m_j L_j x_ij^e over the children."""
        own, terms = self.tree.bodies[i].inertia, []
        if own.h[a]:
            terms.append(Term(False, (Name(f"m_o{self.n(i)}"), Name(f"{AXES[a]}_c{self.n(i)}"))))
        for j in self.children[i]:
            L, e = self.L[j]
            if L and e[a] and self.m[j]:
                negative, cosine = self._cosine(i, j, a)
                terms.append(Term(negative, (Name(f"m_{self.n(j)}"), Name(f"L_{self.n(j)}"), *cosine)))
        return tuple(terms)

    def _cosine(self, i: int, j: int, a: int) -> tuple[bool, tuple[Factor, ...]]:
        """Sign and name of x_ij^e, which is left out where it is 1 or -1."""
        x = self.L[j][1][a]
        return (x < 0, ()) if abs(x) == 1.0 else (False, (Name(f"{AXES[a]}_{self.pair(i, j)}^e"),))

    def _augmented(self, i: int) -> Iterator[Statement]:
        """I_i^d = I_i^q + sum of m_j L_j^2 over the children."""
        b = self.tree.bodies[i]
        value, terms = b.inertia.J.mat[b.axis][b.axis], [Term(False, (Name(f"I_{b.number}^q"),))]
        for j in self.children[i]:
            L = self.L[j][0]
            if L and self.m[j]:
                value += self.m[j] * L * L
                terms.append(Term(False, (Name(f"m_{self.n(j)}"), *[Name(f"L_{self.n(j)}")] * 2)))
        yield from self._defined(f"I_{b.number}^d", tuple(terms), value)

    def _defined(self, name: str, terms: Terms, value: float) -> Iterator[Statement]:
        if terms:
            self.values[name] = float(value)
            yield Statement(name, terms)

    # -- merged constants -----------------------------------------------------------------------------------

    def merged(self) -> Iterator[Statement]:
        """A_ji and B_ji at the cosine and sine of the angles from i to j, and their amplitude; plain planes only.

        L_i d_j . e_i = A_ji cos + B_ji sin, A = L_i (d_xj x^e + d_yj y^e), B = L_i (d_xj y^e - d_yj x^e), and of
        one angle with the directions beta_i of e_i and delta_j of d_j: R_ji cos(angle + delta_j - beta_i).
        """
        for j in sorted(self.planar):
            x, y = self._axes(j)
            if self.tree.bodies[j].parent >= 0:
                base, e = self.n(self.tree.bodies[j].parent), self.L[j][1]
                below, above = (f"{AXES[a]}_{base}{self.n(j)}^e" for a in (x, y))
                yield from self._direction(f"beta_{self.n(j)}", e[x], e[y], below, above)
            d, names = self.d[j], [f"d_{AXES[a]}{self.n(j)}" for a in (x, y)]
            yield from self._direction(f"delta_{self.n(j)}", d[x], d[y], *names)
            for i in ancestors(self.tree.parents, j):
                if self.tree.bodies[i].parent >= 0 and self.L[i][0] and self._plain(i, j):
                    yield from self._pair(i, j)

    def _axes(self, j: int) -> tuple[int, int]:
        """The body's own axes in the plane."""
        k = self.tree.bodies[j].axis
        return (k + 1) % 3, (k + 2) % 3

    def _direction(self, name: str, x: float, y: float, below: str, above: str) -> Iterator[Statement]:
        if x and y:
            call = FunctionCall("atan2", (Term(False, (Name(above),)),), (Term(False, (Name(below),)),))
            yield from self._defined(name, (Term(False, (call,)),), math.atan2(y, x))

    def _plain(self, i: int, j: int) -> bool:
        """Frames parallel at q = 0 and axes alike, so that no constant turn enters."""
        path = [k for k in ancestors(self.tree.parents, j) if k >= i]
        turned = any(self.tree.bodies[k].R != IDENTITY or self.tree.bodies[k].phase for k in path)
        facing = all(parallel(self.tree, k) == 1 and self.tree.bodies[k].factor == 1.0 for k in path)
        return facing and not turned

    def _pair(self, i: int, j: int) -> Iterator[Statement]:
        (L, e), d, (x, y) = self.L[i], self.d[j], self._axes(j)
        first = self._products(i, j, ((d, x, x, 1.0), (d, y, y, 1.0)))
        second = self._products(i, j, ((d, x, y, 1.0), (d, y, x, -1.0)))
        A, B, name = L * (d[x] * e[x] + d[y] * e[y]), L * (d[x] * e[y] - d[y] * e[x]), self.pair(j, i)
        yield from self._defined(f"A_{name}", first, A)
        yield from self._defined(f"B_{name}", second, B)
        if (e[x] and e[y] and (d[x] or d[y])) or (d[x] and d[y]):
            yield from self._amplitude(i, j, name)

    def _amplitude(self, i: int, j: int, name: str) -> Iterator[Statement]:
        """R_ji = L_i |d_j|, with the signs of what lies along one axis."""
        (L, e), d, axes = self.L[i], self.d[j], self._axes(j)
        along = [e[a] for a in axes if e[a]]
        own = [(f"d_{AXES[a]}{self.n(j)}", d[a]) for a in axes if d[a]]
        squares = tuple(Term(False, (Name(n),) * 2) for n, _ in own)
        size = Name(own[0][0]) if len(own) == 1 else FunctionCall("sqrt", squares)
        sign = -1.0 if len(along) == 1 and along[0] < 0 else 1.0
        value = own[0][1] if len(own) == 1 else math.hypot(*(x for _, x in own))
        made = Term(sign < 0, (Name(f"L_{self.n(i)}"), size))
        yield from self._defined(f"R_{name}", (made,), sign * L * value)

    def _products(self, i: int, j: int, parts: tuple[tuple[Vec, int, int, float], ...]) -> Terms:
        """L_i times a sum of d_j e_i."""
        up, terms = self.tree.bodies[i].parent, []
        for d, a, c, sign in parts:
            if d[a] and self.L[i][1][c]:
                negative, cosine = self._cosine(up, i, c)
                terms.append(Term(negative != (sign < 0), (Name(f"d_{AXES[a]}{self.n(j)}"), *cosine)))
        L = Name(f"L_{self.n(i)}")
        if len(terms) < 2:
            return tuple(Term(t.negative, (L, *t.factors)) for t in terms)
        return (Term(False, (L, Group(tuple(terms)))),)


def _vector(v: Vec, axes: str) -> Terms:
    """A vector through the axes of a body."""
    out = []
    for axis, x in zip(AXES, v):
        if x:
            size: tuple[Factor, ...] = () if abs(x) == 1.0 else (Number(abs(float(x))),)
            out.append(Term(x < 0, (*size, Name(f"{axis}_{axes}"))))
    return tuple(out)


def _number(x: float) -> Terms:
    return (Term(x < 0, (Number(abs(float(x))),)),)


def _nonzero(name: str, x: float) -> Iterator[Statement]:
    if x:
        yield Statement(name, _number(x))
