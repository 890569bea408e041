"""The inertial parameters of a tree in the paper's notation, and a tree whose inertias are those symbols.

Body i has the mass m_i of its subtree, the first moments d_xi, d_yi, d_zi of the augmented body, the moments of
inertia I_i^x, I_i^y, I_i^z about axes through the pole and the products I_i^xy, I_i^xz, I_i^yz with the sign +
(integral). Axes are those of the tree: the link's own where the joint axis is a coordinate axis.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

from ..errors import InputError, TraceError, shown
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import Mat, RigidInertia, Sym, Vec
from ..mechanics.tree import Tree, plain_tree
from ..mechanics.tree_indices import children_of
from ..model.description import Model
from ..model.rotations import quaternion_of
from .exact import EXPONENT_BITS, Algebra, Polynomial, exponents
from .polynomial import NUMBER, Form, Monomial, SparseRow, add_multiple, rational

# a condition is solved for the first of these
INTEGRAL_KINDS = ("xy", "xz", "yz", "dx", "dy", "dz", "y", "x", "z", "m")
LENGTH_POWER = {"m": 0, "dx": 1, "dy": 1, "dz": 1}  # power of a length in each; 2 for the rest
MAX_DENOMINATOR = 10**6  # a denominator that tells a reader nothing
SNAP = 1e-9  # rad, as in write_out
MAX_CONDITION_TERMS = 10**7  # of a polynomial of conditions: as many as there are


@dataclass(frozen=True, slots=True)
class InertialParameter:
    """One inertial parameter of a body (from 0)."""

    body: int
    kind: str
    name: str

    @property
    def length(self) -> int:
        return LENGTH_POWER.get(self.kind, 2)


def parameter_name(kind: str, number: str) -> str:
    """m_4, d_x3, I_3^yz."""
    if kind == "m":
        return f"m_{number}"
    return f"d_{kind[1]}{number}" if kind[0] == "d" else f"I_{number}^{kind}"


class Parameters:
    """Exact tree, parameters and lengths of a robot of hinges and slides."""

    def __init__(self, model: Model, symbols: Collection[int] = ()) -> None:
        """symbols: bodies whose offset keeps the letter L_i; its power stands at coordinate nq + i."""
        self.tree = plain_tree(model, "conditions", SNAP)
        for b in self.tree.bodies:
            if b.kind not in ("revolute", "prismatic"):
                raise TraceError(
                    f"joint {b.joint!r} is {b.kind}: conditions cover hinges and slides, whose inertia matrix is "
                    "a polynomial in sines, cosines and displacements"
                )
        self.letters = frozenset(symbols)
        n = len(self.tree)
        self.children = children_of(self.tree.parents)
        self.all = [
            InertialParameter(i, k, parameter_name(k, b.number))
            for k in INTEGRAL_KINDS
            for i, b in enumerate(self.tree.bodies)
        ]
        turns = [f"{letter}_{k}" for k in range(self.tree.nq + n) for letter in "qcs"]
        self.algebra = Algebra([*(p.name for p in self.all), *turns], 0, most=MAX_CONDITION_TERMS)
        self.index = {p.name: k for k, p in enumerate(self.all)}
        self.at = {(p.body, p.kind): k for k, p in enumerate(self.all)}
        self.offset = [self._offset(i, b.p, i in symbols) for i, b in enumerate(self.tree.bodies)]
        self.symbolic = self.tree.replace(
            bodies=tuple(
                b._replace(R=exact_rotation(b.R, self.algebra), p=self.offset[i], inertia=self._body(i))
                for i, b in enumerate(self.tree.bodies)
            ),
            gravity=Vec(*(self.algebra.exact(x) for x in self.tree.gravity)),
        )
        self.by_number = {b.number: i for i, b in enumerate(self.tree.bodies)}
        self.q: list[Scalar] = [self.algebra.symbol(f"q_{k}") for k in range(self.tree.nq)]

    def _offset(self, i: int, p: Vec, symbol: bool) -> Vec:
        if not symbol:
            return Vec(*(self.algebra.exact(rational(x)) for x in p))
        L = self.algebra.symbol(f"q_{self.tree.nq + i}")
        return Vec(*(L * self.algebra.exact(x) if x else 0.0 for x in unit_vector(p)))

    def symbol(self, i: int, kind: str) -> Scalar:
        return self.algebra.symbol(self.all[self.at[i, kind]].name)

    def sum_of(self, row: SparseRow) -> Scalar:
        """A linear form in the parameters as a scalar."""
        return self.algebra.scalar(Polynomial({1 << EXPONENT_BITS * k: x for k, x in row.items()}))

    def forms(self, x: Scalar) -> dict[Monomial, Form]:
        """Coefficients of a scalar by monomials in sines, cosines, displacements and lengths."""
        out: dict[Monomial, Form] = {}
        for m, c in self.algebra.polynomial(x).items():
            powers, known = exponents(m), len(self.all)
            own = [k for k, e in powers.items() for _ in range(e) if k < known]
            if len(own) > 1:
                raise TraceError("two inertial parameters are multiplied: the conditions are linear in them")
            turns: dict[int, list[int]] = {}
            for place in (k - known for k in powers if k >= known):
                turns.setdefault(place // 3, [0, 0])[place % 3 == 2] += powers[place + known]
            monomial = tuple((k, a, b) for k, (a, b) in turns.items())
            out.setdefault(monomial, {})[own[0] if own else NUMBER] = Fraction(c)
        return out

    def _body(self, i: int) -> RigidInertia:
        """Mass, first moment and second moments of the body alone, through its subtree's and augmented ones."""
        m: Scalar = self.symbol(i, "m")
        h: Vec = Vec(*(self.symbol(i, f"d{a}") for a in "xyz"))
        for j in self.children[i]:
            m = m - self.symbol(j, "m")
            h = h - self.offset[j] * self.symbol(j, "m")
        x, y, z = (self.symbol(i, a) for a in "xyz")
        second = [s * 0.5 for s in (y + z - x, z + x - y, x + y - z)]
        xy, xz, yz = (self.symbol(i, a) for a in ("xy", "xz", "yz"))
        return RigidInertia(m, h, Sym(second[0], xy, xz, second[1], yz, second[2]))

    def values(self, tree: Tree | None = None) -> list[float]:
        """The parameters of the robot (or of a tree like it), in order."""
        bodies = (tree or self.tree).bodies
        m = [b.inertia.m for b in bodies]
        for i in range(len(bodies) - 1, -1, -1):
            if bodies[i].parent >= 0:
                m[bodies[i].parent] += m[i]
        out = []
        for p in self.all:
            inertia = bodies[p.body].inertia
            if p.kind == "m":
                out.append(m[p.body])
            elif p.kind[0] == "d":
                a = "xyz".index(p.kind[1])
                out.append(inertia.h[a] + sum(m[j] * bodies[j].p[a] for j in self.children[p.body]))
            elif len(p.kind) == 1:
                out.append(getattr(inertia.J, 2 * p.kind))
            else:
                out.append(getattr(inertia.S, p.kind))
        return out

    def length(self, name: str) -> Fraction | None:
        """L_4 or x_23^e as the robot has it; None where there is no such body."""
        whole = re.fullmatch(r"L_(.+)", name)
        if whole and whole[1] in self.by_number:
            return rational(_size(self.tree.bodies[self.by_number[whole[1]]].p))
        part = re.fullmatch(r"([xyz])_(\d+?),?(\d+?)\^e", name) or re.fullmatch(r"([xyz])_(\d),?(\d+)\^e", name)
        if part and part[3] in self.by_number:
            i, axis = self.by_number[part[3]], "xyz".index(part[1])
            p = self.tree.bodies[i].p
            return unit_vector(p)[axis] if i in self.letters else rational(p[axis] / (_size(p) or 1.0))
        return None

    def element(self, label: object) -> tuple[int, int]:
        """Rates of an element named "H_32", or given by the numbers (3, 2)."""
        found = re.fullmatch(r"H_?\{?(\d)(\d)\}?|H_?\{?(\d+),(\d+)\}?", label) if isinstance(label, str) else None
        pair = tuple(x for x in found.groups() if x) if found else label
        if isinstance(pair, tuple) and len(pair) == 2 and all(str(x) in self.by_number for x in pair):
            r, c = (self.tree.bodies[self.by_number[str(x)]].v for x in pair)
            return max(r, c), min(r, c)
        raise InputError(
            f"element {shown(label)} is not in the matrix; elements are named H_11 .. "
            f"H_{self.tree.nv}{self.tree.nv}" + '; of gravity it is "potential_energy"' * (str(label) == "gravity")
        )

    def label(self, r: int, c: int) -> str:
        """H_32 of a pair of rates."""
        number = {b.v: b.number for b in self.tree.bodies}
        comma = "," if max(len(number[r]), len(number[c])) > 1 else ""
        return f"H_{number[r]}{comma}{number[c]}"

    def own_mass(self, i: int) -> SparseRow:
        """m_oi = m_i - sum of m_j over the children."""
        row: SparseRow = {self.at[i, "m"]: Fraction(1)}
        for j in self.children[i]:
            add_multiple(row, {self.at[j, "m"]: Fraction(1)}, Fraction(-1))
        return row


def _size(p: Vec) -> float:
    return max(map(abs, p)) if sum(1 for x in p if x) == 1 else math.hypot(*p)


def unit_vector(p: Vec) -> list[Fraction]:
    """The direction of an offset: the nearest with rational components whose squares sum up to one exactly.

    By stereographic projection from the pole that is farthest from it.
    """
    size = _size(p)
    last = max(range(3), key=lambda k: abs(p[k]))
    sign = 1 if p[last] > 0 else -1
    flat = [Fraction(x / (size + abs(p[last]))).limit_denominator(10**7) if k != last else Fraction(0)
            for k, x in enumerate(p)]  # fmt: skip
    square = sum((x * x for x in flat), Fraction(0))
    return [2 * x / (1 + square) if k != last else sign * (1 - square) / (1 + square) for k, x in enumerate(flat)]


def exact_rotation(R: Mat, algebra: Algebra) -> Mat:
    """Quarter turns as they are; any other rotation as the nearest one with rational entries, as scalars."""
    if all(x in (0.0, 1.0, -1.0) for row in R for x in row):
        return R
    x, y, z, w = (Fraction(t).limit_denominator(10**7) for t in quaternion_of(R))
    n = w * w + x * x + y * y + z * z
    rows = (
        (w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )
    return Mat.of((algebra.exact(t / n) for t in row) for row in rows)


@dataclass(frozen=True, slots=True)
class Length:
    """A length of the robot as people name it: its value, and whose offset it is."""

    name: str
    value: Fraction
    body: int


def lengths(parameters: Parameters) -> list[Length]:
    """L_4, or the components L_3*x_23^e, L_3*y_23^e of an offset along no axis; positive."""
    out = []
    for j, b in enumerate(parameters.tree.bodies):
        if b.parent < 0:
            continue
        nonzero = [(a, rational(x)) for a, x in zip("xyz", b.p) if x]
        up = parameters.tree.bodies[b.parent].number
        for a, x in nonzero:
            name = f"L_{b.number}" if len(nonzero) == 1 else f"L_{b.number}*{a}_{up}{b.number}^e"
            out.append(Length(name, abs(x) if len(nonzero) == 1 else x, j))
    return out


def directions(parameters: Parameters) -> list[tuple[str, Fraction]]:
    """x_23^e, y_23^e of the free lengths' offsets that lie along no axis."""
    out = []
    for j in sorted(parameters.letters):
        b = parameters.tree.bodies[j]
        u, up = unit_vector(b.p), parameters.tree.bodies[b.parent].number
        out += [(f"{a}_{up}{b.number}^e", x) for a, x in zip("xyz", u) if x and abs(x) != 1]
    return out


def _product(l: Length, r: Length) -> Length:
    return Length(f"{l.name}^2" if l is r and "*" not in l.name else f"{l.name}*{r.name}", l.value * r.value, 0)


class Coefficients:
    """Numbers as people write them: products of the robot's lengths where they are that; not of free lengths."""

    def __init__(self, parameters: Parameters) -> None:
        self.known = [x for x in lengths(parameters) if x.body not in parameters.letters]
        bodies = [b for i, b in enumerate(parameters.tree.bodies) if b.parent >= 0 and i not in parameters.letters]
        self.squares = [(sum(rational(x) ** 2 for x in b.p), f"L_{b.number}^2") for b in bodies if any(b.p)]
        single = [Length(name, x, 0) for name, x in directions(parameters)]
        pairs = [_product(l, r) for k, l in enumerate(single) for r in single[k:]]
        self.directions = [Length("", Fraction(1), 0), *single, *pairs]

    def text(self, x: Fraction, power: int, body: int) -> str:
        """`power` lengths are expected in it; those of the parameter's own body are tried first."""
        for along in self.directions:
            for factor, name in self._candidates(power, body):
                ratio = x / (factor * along.value)
                if ratio.denominator <= 2 and abs(ratio.numerator) <= 4:
                    times = "" if abs(ratio) == 1 else str(abs(ratio))
                    return ("-" if ratio < 0 else "") + (
                        "*".join(t for t in (times, name, along.name) if t) or "1"
                    )
        return str(x) if x.denominator == 1 else _decimal(x)

    def _candidates(self, power: int, body: int) -> list[tuple[Fraction, str]]:
        ordered = sorted(self.known, key=lambda l: l.body != body)
        if power == 1:
            return [(l.value, l.name) for l in ordered]
        if power == 2:
            pairs = [(l, r) for k, l in enumerate(ordered) for r in ordered[k:]]
            pairs.sort(key=lambda t: (t[0].body != body) + (t[1].body != body))
            whole = [(Fraction(x), name) for x, name in self.squares]
            return [(t.value, t.name) for t in (_product(l, r) for l, r in pairs)] + whole
        return [(Fraction(1), "")]


def _decimal(x: Fraction) -> str:
    """A finite decimal where there is a short one, or where the fraction is long; else the fraction."""
    short = repr(float(x))
    return short if Fraction(short) == x or x.denominator > MAX_DENOMINATOR else f"{x.numerator}/{x.denominator}"
