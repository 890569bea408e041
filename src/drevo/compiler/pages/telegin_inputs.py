"""The inputs of a robot in the manner of Telegin 2025: poles, offsets, axes, static moments, merged constants.

Zeros are left out, as the paper leaves them out. In a plane only what moves in it enters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...codegen.graph.node import Expr
from ...codegen.graph.ops import MUL
from ...codegen.graph.program import Program
from ...documents.about import Coordinate, Inputs
from ...documents.sequence.expression import Factor, FunctionCall, Group, Name, Number, Term, Terms
from ...documents.sequence.inline import inlined
from ...documents.sequence.names import Names
from ...documents.sequence.sequence import Section, Statement, write_sequence
from ...documents.sequence.symbols import symbols
from ...mechanics.formalisms.telegin import split
from ...mechanics.formalisms.telegin_planar import is_planar, parallel
from ...mechanics.letters import body_numbers
from ...mechanics.rotation import ZERO_DIFFERENCE
from ...mechanics.scalar import Scalar, is_zero
from ...mechanics.spatial import EYE, UNIT_VECS, Vec
from ...mechanics.tree import Tree, TreeBody, build_tree
from ...mechanics.tree_indices import ancestors, children_of, subtree_ends
from ...model.description import Model
from ..tracer import Tracer
from .drawing import MAX_DRAWN_BODIES, SNAP, augmented, drawing_of

AXES = "xyz"
SINGLE_AXIS_JOINTS = ("revolute", "helical", "prismatic")


TURN, SHIFT = ("angle", "rad"), ("displacement", "m")
POSITION_LABELS = tuple((f"position {x}", "m") for x in AXES)
SPIN = tuple((f"angular velocity {x}", "rad") for x in AXES)
QUATERNION = tuple((f"quaternion {x}", "") for x in "xyzw")
COORDINATE_LABELS = {  # what the coordinates of a joint are, with their units
    "prismatic": (SHIFT,),
    "cylindrical": (SHIFT, TURN),
    "universal": (("angle about axis", "rad"), ("angle about axis2", "rad")),
    "planar": (*POSITION_LABELS[:2], TURN),
    "spherical": QUATERNION,
    "free": (*POSITION_LABELS, *QUATERNION),
}
RATE_LABELS = {
    "spherical": SPIN,
    "free": (*((f"velocity {x}", "m") for x in AXES), *SPIN),
}  # where they are others
PER = {"q": "", "v": "/s", "a": "/s²", "x": "/s²"}
WRENCH = tuple((f"{what} {x}", unit) for what, unit in (("force", "N"), ("moment", "N m")) for x in AXES)


def coordinates(program: Program, model: Model) -> dict[str, tuple[Coordinate, ...]]:
    """Describes every scalar of the inputs: its joint (or link), kind and unit, in their order."""
    tree = build_tree(model, snap=SNAP)
    return {p.name: tuple(coordinates_of(p.name, model, tree)) for p in program.inputs}


def coordinates_of(source: str, model: Model, tree: Tree) -> Iterator[Coordinate]:
    """Describes every scalar of "q", "v", "a", "tau", "t" or "f_ext:LINK"."""
    if source == "t":
        yield Coordinate("", "", "time", "s")
        return
    if source.startswith("f_ext:"):
        yield from (Coordinate(source[6:], "", what, unit) for what, unit in WRENCH)
        return
    numbers = {j.name: [b.number for b in tree.bodies if b.joint == j.name] for j in model.moving_joints}
    for joint in model.moving_joints:
        number = " ".join(numbers[joint.name])
        parts = [("coordinate", "")] * joint.nq if joint.formula else COORDINATE_LABELS.get(joint.kind, (TURN,))
        for what, unit in parts if source == "q" else RATE_LABELS.get(joint.kind, parts):
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


def described(
    program: Program, model: Model, parameters: Sequence[str] = (), merge_equal: bool = False, paper: bool = False
) -> Program:
    """The program with what its document shows of a robot: joints, drawing (a paper's), Telegin's inputs."""
    meta: dict[str, object] = {**program.meta, "coordinates": coordinates(program, model)}
    if not 0 < len(model.moving_joints) <= MAX_DRAWN_BODIES:
        return replace(program, meta=meta)
    meta["drawing"] = drawing_of(model, letters={} if paper else None)
    tree = build_tree(model, snap=SNAP)
    meta["numbers"] = numbers = body_numbers(tree, model)
    if program.meta.get("formalism") == "telegin":
        meta["inputs"] = inputs_of(tree)
        if parameters:
            symbolic = Tracer("inputs", model, parameters=parameters, snap=SNAP, merge_equal=merge_equal)
            meta["inputs"] = symbolic_inputs(tree, symbolic, numbers)
    return replace(program, meta=meta)


def with_coordinates(program: Program, model: Model) -> Program:
    """The program with what the states among its inputs are; rows that it has itself stay."""
    own = program.meta.get("coordinates", {})
    states = [p.name for p in program.inputs if p.name in (*PER, "tau", "t") or p.name.startswith("f_ext:")]
    rows = {name: row for name, row in coordinates(program, model).items() if name in states}
    return replace(
        program, meta={**program.meta, "coordinates": {**rows, **(own if isinstance(own, dict) else {})}}
    )


def inputs_of(tree: Tree) -> Inputs:
    """The sections of inputs, and the values of what they define."""
    return _inputs(_Inputs(tree, tree))


def _inputs(found: _Inputs) -> Inputs:
    sections = [
        ("poles, offsets and axes, those of a turned body as at q = 0, m", found.geometry()),
        ("masses, centres of mass and inertias about the poles, kg, m, kg m²", found.bodies()),
        ("subtrees and static moments of the augmented bodies, kg, kg m, kg m²", found.moments()),
        ("merged constants, A cos + B sin = R cos(angle - phase), kg m²", found.merged()),
    ]
    made = [Section(title, tuple(rows)) for title, rows in sections]
    return Inputs(tuple(s for s in made if s.statements), found.values, found.lengths())


def symbolic_inputs(tree: Tree, t: Tracer, numbers: Mapping[str, str]) -> Inputs:
    """The sections where parameters are symbols: what stands on them is defined by them."""
    found = _Inputs(tree, t.tree)
    for _ in range(2):  # a parameter that differs from the letter of its body takes another name
        reserved = frozenset(found.stated)
        meta = {"inputs": Inputs((), {}, reserved=reserved), "numbers": numbers}
        named = replace(t.program(), meta=meta)
        found = _Inputs(tree, t.tree, {s.parameter.node: s.name for s in symbols(named, Names())})
        inputs = _inputs(found)
    for name, x in found.stated.items():
        t.output(name, [x], ())
    made = inlined(write_sequence(replace(t.program(), meta=meta)), whole=True)
    terms = {s.name: s.terms for s in made.statements()}
    by_name = {r.source: terms.get(r.source, r.entries) for r in made.results}
    sections = tuple(
        Section(x.title, tuple(s._replace(terms=by_name.get(s.name, s.terms)) for s in x.statements))
        for x in inputs.sections
    )
    return inputs._replace(sections=sections, reserved=reserved)


class _Inputs:
    """A tree of numbers and the values met on the way.

    shape: the tree with symbols, which says what is zero; known: letters by the parameters that they are.
    stated: by name, what is defined by parameters.
    """

    def __init__(self, tree: Tree, shape: Tree, known: Mapping[int, str] | None = None) -> None:
        self.tree, self.shape, self.known = tree, shape, known or {}
        self.stated: dict[str, Expr] = {}
        self.children = children_of(tree.parents)
        end = subtree_ends(tree.parents)
        roots = [i for i, b in enumerate(tree.bodies) if b.parent < 0]
        self.planar = {i for r in roots if is_planar(tree, range(r, end[r])) for i in range(r, end[r])}
        self.facing: dict[int, int] = {}  # +-1 against the root of a plane
        for i in sorted(self.planar):
            self.facing[i] = self.facing.get(tree.bodies[i].parent, 1) * (parallel(tree, i) or 1)
        self.m, self.d = augmented(tree)
        self.p = [self._offset(b) for b in tree.bodies]
        self.L = [split(p) for p in self.p]
        self.values: dict[str, float] = {}

    def _offset(self, b: TreeBody) -> Vec:
        """From the pole of the base; of a plane, in it."""
        flat = b.parent in self.planar
        axis = self.tree.bodies[b.parent].axis
        return Vec(*(0.0 if b.parent < 0 or (flat and a == axis) else x for a, x in enumerate(b.p)))

    def letter(self, name: str, x: Scalar, number: float) -> Iterator[Statement]:
        """A letter of the paper: a number, or what it is made of."""
        if not isinstance(x, Expr):
            yield Statement(name, _number(number))
        elif x.edge & 1 or self.known.get(x.edge >> 1) != name:
            self.stated[name] = x
            self.values[name] = float(number)
            yield Statement(name, ())

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
            if self.moving(i):
                for a, x in enumerate(self.shape.bodies[i].p):
                    if not is_zero(x):
                        yield from self.letter(f"{AXES[a]}_{self.pair(b.parent, i)}^R", x, b.p[a])
            elif self.L[i][0]:
                yield from self._pole(i, base)
            if b.R != EYE:
                for k, axis in enumerate(AXES):
                    yield Statement(f"{axis}_{b.number}", _vector(b.R @ UNIT_VECS[k], base))
            if b.kind in SINGLE_AXIS_JOINTS:
                own = UNIT_VECS[b.axis] * (-1.0 if b.factor < 0 else 1.0)
                yield Statement(f"q_{b.number}", _vector(own, b.number))

    def moving(self, i: int) -> bool:
        """True if the offset of a body changes with its joint: no L e of its own, but components R at q = 0."""
        b = self.tree.bodies[i]
        return b.parent >= 0 and b.kind not in ("revolute", "spherical")

    def _pole(self, i: int, base: str) -> Iterator[Statement]:
        """L_i and e_i; of an offset along no axis by its cosines where they are not numbers."""
        (L, e), n = self.L[i], self.n(i)
        size, along = split(Vec(*(x if y else 0.0 for x, y in zip(self.shape.bodies[i].p, self.p[i]))))
        yield from self.letter(f"L_{n}", size, L)
        if not any(isinstance(x, Expr) for x in along):
            yield Statement(f"e_{n}", _vector(e, base))
            return
        for a, x in enumerate(along):
            if e[a]:
                yield from self.letter(f"{AXES[a]}_{self.pair(self.tree.bodies[i].parent, i)}^e", x, e[a])
        cosines = [self._cosine(self.tree.bodies[i].parent, i, a) for a in range(3) if e[a]]
        axes = [f"{AXES[a]}_{base}" for a in range(3) if e[a]]
        terms = (Term(minus, (*cosine, Name(axis))) for (minus, cosine), axis in zip(cosines, axes))
        yield Statement(f"e_{n}", tuple(terms))

    def lengths(self) -> dict[str, tuple[bool, tuple[str, ...]]]:
        """Components of offsets as products: R_3x is L_3 x_23^e, or plus or minus L_3."""
        out: dict[str, tuple[bool, tuple[str, ...]]] = {}
        for j, b in enumerate(self.tree.bodies):
            for a, x in enumerate(self.shape.bodies[j].p if b.parent >= 0 else ()):
                name = self.known.get(x.edge >> 1) if isinstance(x, Expr) and self.p[j][a] else None
                if name is not None and name not in out and not self.moving(j):
                    negative, cosine = self._cosine(b.parent, j, a)
                    names = tuple(f.text for f in cosine if isinstance(f, Name))
                    out[name] = (negative != bool(x.edge & 1), (f"L_{b.number}", *names))
        return out

    # -- bodies ---------------------------------------------------------------------------------------------

    def across(self, i: int) -> list[int]:
        """The components that enter: those in the plane, or all."""
        k = self.tree.bodies[i].axis
        return [a for a in range(3) if i not in self.planar or a != k]

    def bodies(self) -> Iterator[Statement]:
        """m_oi, the centre of mass, moments and products of inertia about the pole, what is not zero."""
        for i, b in enumerate(self.tree.bodies):
            P = self.shape.bodies[i].inertia
            if b.inertia.m:
                yield from self.letter(f"m_o{b.number}", P.m, b.inertia.m)
                for a in self.across(i):
                    if not is_zero(P.h[a]):
                        own, at = _quotient(P.h[a], P.m), b.inertia.h[a] / b.inertia.m
                        yield from self.letter(f"{AXES[a]}_c{b.number}", own, at)
            yield from self._inertias(i, b)

    def _inertias(self, i: int, b: TreeBody) -> Iterator[Statement]:
        P, Q, n = b.inertia, self.shape.bodies[i].inertia, b.number
        moments = [(f"I_{n}^{a}", Q.J.mat[k][k], P.J.mat[k][k]) for k, a in enumerate(AXES)]
        if i in self.planar:
            moments = [(f"I_{n}^q", *moments[b.axis][1:])]
        else:
            moments += [(f"I_{n}^{a}", getattr(Q.S, a), getattr(P.S, a)) for a in ("xy", "xz", "yz")]
        for name, x, number in moments:
            if not is_zero(x):
                yield from self.letter(name, x, number)

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
        terms = list[Term]()
        if not is_zero(self.shape.bodies[i].inertia.h[a]):
            terms.append(Term(False, (Name(f"m_o{self.n(i)}"), Name(f"{AXES[a]}_c{self.n(i)}"))))
        for j in self.children[i]:
            L, e = self.L[j]
            if self.moving(j) and not is_zero(self.shape.bodies[j].p[a]) and self.m[j]:
                terms.append(Term(False, (Name(f"m_{self.n(j)}"), Name(f"{AXES[a]}_{self.pair(i, j)}^R"))))
            elif L and e[a] and self.m[j]:
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
            d, names = self.moved(j), [f"d_{AXES[a]}{self.n(j)}" for a in (x, y)]
            yield from self._direction(f"delta_{self.n(j)}", d[x], d[y], *names)
            for i in ancestors(self.tree.parents, j):
                if self.tree.bodies[i].parent >= 0 and self.L[i][0] and self._plain(i, j):
                    yield from self._pair(i, j)

    def moved(self, j: int) -> Vec:
        """d_j; what is zero by its numbers alone is tiny instead, for letters may change it."""
        return Vec(*(x or (ZERO_DIFFERENCE if self._moment(j, a) else 0.0) for a, x in enumerate(self.d[j])))

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
        turned = any(self.tree.bodies[k].R != EYE or self.tree.bodies[k].phase for k in path)
        above = self.tree.bodies[i].parent
        facing = all(self.facing[k] == 1 for k in (above, *path)) and all(
            self.tree.bodies[k].factor == 1.0 for k in path
        )
        return facing and not turned

    def _pair(self, i: int, j: int) -> Iterator[Statement]:
        (L, e), d, (x, y) = self.L[i], self.moved(j), self._axes(j)
        first = self._products(i, j, ((d, x, x, 1.0), (d, y, y, 1.0)))
        second = self._products(i, j, ((d, x, y, 1.0), (d, y, x, -1.0)))
        A, B, name = L * (d[x] * e[x] + d[y] * e[y]), L * (d[x] * e[y] - d[y] * e[x]), self.pair(j, i)
        yield from self._defined(f"A_{name}", first, A)
        yield from self._defined(f"B_{name}", second, B)
        if (e[x] and e[y] and (d[x] or d[y])) or (d[x] and d[y]):
            yield from self._amplitude(i, j, name)

    def _amplitude(self, i: int, j: int, name: str) -> Iterator[Statement]:
        """R_ji = L_i |d_j|, with the signs of what lies along one axis."""
        (L, e), d, axes = self.L[i], self.moved(j), self._axes(j)
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


def _quotient(x: Scalar, y: Scalar) -> Scalar:
    """x / y, of a product with y the other factor."""
    if isinstance(x, Expr) and isinstance(y, Expr) and x.graph.op[x.edge >> 1] == MUL:
        pair = x.graph.a[x.edge >> 1], x.graph.b[x.edge >> 1]
        if y.edge in pair:
            return Expr(x.graph, pair[pair[0] == y.edge] ^ (x.edge & 1))
    return x / y


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
