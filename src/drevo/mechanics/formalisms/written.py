"""Vectors and matrices that are computed and written at once, so that a paper's line and its components agree.

A value holds its scalars and the words of the formula that gives them. Words are names in the grammar of documents
(omega_2, C_2^T), numbers, and the signs + - x ( ) < > [ & ; ]: < a > is the skew matrix of a, [ a & b ; c & d ] a
matrix by blocks. What is zero by structure is left out of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...errors import TraceError
from ..algorithms.inertia_matrix import Factors, lower_rows
from ..rotation import ZERO_DIFFERENCE
from ..scalar import Matrix, Scalar, Vector, is_zero
from ..spatial import ZERO, Mat, Sym, Vec, congruence
from ..tree import Tree, TreeBody

Words = tuple[str, ...]
SUM, CROSS, PRODUCT, ATOM = range(4)  # how firmly the parts of a formula hold together
AXES = "xyz"
RATE_PATTERN = re.compile(r"(.*?)((?:_t+)?)")  # a derivative by time: theta_2_t, theta_2_tt


@dataclass(frozen=True)
class Worded:
    """A matrix of scalars with the words of the formula that gives it."""

    rows: Matrix
    words: Words
    firm: int = ATOM

    @property
    def zero(self) -> bool:
        """Zero by structure."""
        return all(is_zero(x) for row in self.rows for x in row)

    @property
    def T(self) -> Worded:
        """The transpose."""
        rows = [list(column) for column in zip(*self.rows)]
        if len(self.words) == 1:
            return Worded(rows, self.words if self.words[0] in ("E", "1", "0") else (_transposed(self.words[0]),))
        if self.words[0] == "<" and self.words.index(">") == len(self.words) - 1:
            return Worded(rows, (*self.words[:-1], ">^T"))
        return Worded(rows, ("(", *self.words, ")^T"))

    def __add__(self, other: Worded) -> Worded:
        if self.zero or other.zero:
            return other if self.zero else self
        rows = [[x + y for x, y in zip(a, b)] for a, b in zip(self.rows, other.rows)]
        sign = () if other.words[0] == "-" else ("+",)
        return Worded(rows, (*self.words, *sign, *other.words), SUM)

    def __neg__(self) -> Worded:
        if self.zero:
            return self
        rows = [[-x for x in row] for row in self.rows]
        if self.words[0] == "-" and not {"+", "-"} & {*self.words[1:]}:  # of one term
            return Worded(rows, self.words[1:], CROSS if "x" in self.words else PRODUCT)
        return Worded(rows, ("-", *self.held(CROSS)), SUM)

    def __sub__(self, other: Worded) -> Worded:
        return self + -other

    def __matmul__(self, other: Worded) -> Worded:
        a, b = self.rows, other.rows
        if self.words[0] == "-" and not {"+", "-"} & {*self.words[1:]}:  # of one term
            return -(-self @ other)
        if other.words[0] == "-" and not {"+", "-"} & {*other.words[1:]}:
            return -(self @ -other)
        if len(a[0]) != len(b):
            (scale,), many = (a[0], b) if len(a) == len(a[0]) == 1 else (b[0], a)
            rows = [[scale * x for x in row] for row in many]
        else:
            rows = [[_dot(row, column) for column in zip(*b)] for row in a]
        if self.words == ("1",) or (self.words == ("E",) and len(b) > 1):
            return Worded(rows, other.words, other.firm)
        if other.words == ("1",) or (other.words == ("E",) and len(a) > 1):
            return Worded(rows, self.words, self.firm)
        square = len(a) == len(b) == len(b[0]) == 1 and self.words[-1:] == other.words
        if square and self.firm > CROSS and "^" not in self.words[-1]:
            return Worded(rows, (*self.words, "^2"), PRODUCT)
        return Worded(rows, (*self.held(PRODUCT), *other.held(PRODUCT)), PRODUCT)

    def cross(self, other: Worded) -> Worded:
        """The vector product of two columns of three."""
        x = [_dot(row, other.column) for row in _skew(self.column)]
        return Worded([[e] for e in x], (*self.held(PRODUCT), "x", *other.held(PRODUCT)), CROSS)

    @property
    def column(self) -> Vec:
        """Three rows as a vector."""
        return Vec(*(row[0] for row in self.rows))

    def skew(self) -> Worded:
        """< a >: of three rows the matrix of a x, of six, linear before angular, Zaremba's (1.6)."""
        if len(self.rows) == 3:
            return Worded(_skew(self.column), ("<", *self.words, ">"))
        linear, angular = (_skew(Vec(*(row[0] for row in part))) for part in (self.rows[:3], self.rows[3:]))
        rows = [[*row, 0.0, 0.0, 0.0] for row in angular]
        return Worded(rows + [[*a, *b] for a, b in zip(linear, angular)], ("<", *self.words, ">"))

    def inverse(self) -> Worded:
        """The inverse of a symmetric matrix."""
        n = len(self.rows)
        factors = Factors(lower_rows(self.rows), range(n))
        columns = [factors.solve([1.0 if k == j else 0.0 for k in range(n)]) for j in range(n)]
        return Worded([list(row) for row in zip(*columns)], (f"{self.words[0]}^-1",))

    def held(self, firm: int) -> Words:
        """The words, in parentheses where a factor of that firmness needs them."""
        return self.words if self.firm >= firm else ("(", *self.words, ")")


def _transposed(word: str) -> str:
    return f"{word}T" if "^" in word else f"{word}^T"


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """A sum of products without the zeros, as a line of the book has it."""
    terms = [x * y for x, y in zip(a, b) if not (is_zero(x) or is_zero(y))]
    total: Scalar = sum(terms[1:], terms[0]) if terms else 0.0
    numbers = [abs(x) for x in terms if isinstance(x, float)]
    noise = ZERO_DIFFERENCE * sum(numbers) if len(numbers) == len(terms) else 0.0
    return 0.0 if isinstance(total, float) and abs(total) <= noise else total


def _skew(v: Vec) -> Matrix:
    return [[0.0, -v.z, v.y], [v.z, 0.0, -v.x], [-v.y, v.x, 0.0]]


def written_scalar(x: Scalar, word: str) -> Worded:
    """One number by its name."""
    return Worded([[x]], (word,))


def written_number(x: float) -> Worded:
    """A plain number."""
    return Worded([[x]], (f"{x:.6g}",)) if x >= 0 else -written_number(-x)


ONE, HALF = Worded([[1.0]], ("1",)), Worded([[0.5]], ("0.5",))
EYE3 = Worded([[float(i == j) for j in range(3)] for i in range(3)], ("E",))
SWAP = Worded([[float(abs(i - j) == 3) for j in range(6)] for i in range(6)], ("G",))


def zeros_of(rows: int, columns: int = 1) -> Worded:
    """The zero of a shape."""
    return Worded([[0.0] * columns for _ in range(rows)], ("0",))


def unit_column(k: int) -> Worded:
    """The unit vector of an axis."""
    return Worded([[float(i == k)] for i in range(3)], (f"e_{AXES[k]}",))


def by_blocks(rows: Sequence[Sequence[Worded]]) -> Worded:
    """A matrix by blocks."""
    numbers: Matrix = []
    words: list[str] = ["["]
    for k, row in enumerate(rows):
        numbers += [[x for part in line for x in part] for line in zip(*(b.rows for b in row))]
        words += [";"] * (k > 0)
        for j, b in enumerate(row):
            words += ["&"] * (j > 0) + [*(("0",) if b.zero else b.words)]
    return Worded(numbers, (*words, "]"))


def written_sum(parts: Iterable[Worded], start: Worded) -> Worded:
    """A sum."""
    for x in parts:
        start = start + x
    return start


def combination(parts: Iterable[tuple[float, Worded]]) -> Worded:
    """A sum of numbers times values, those of equal words once, a number that all have in common before it."""
    listed: dict[Words, tuple[float, Worded]] = {}
    for size, x in parts:
        if not x.zero:
            listed[x.words] = listed.get(x.words, (0.0, x))[0] + size, x
    kept = [(size, x) for size, x in listed.values() if size]
    kept.sort(key=lambda row: row[0] < 0.0)
    common = abs(kept[0][0]) if len({abs(size) for size, _ in kept}) == 1 else 1.0
    value = zeros_of(1)
    for size, x in kept:
        one = x if abs(size) == common else written_number(abs(size) / common) @ x
        value = value + (one if size > 0 else -one)
    return value if common == 1.0 else written_number(common) @ value


def central(tree: Tree, i: int) -> tuple[Vec, Sym]:
    """The centre of mass of a body and the inertia about it: a link's own where it is the whole body."""
    P = tree.bodies[i].inertia
    links = [(x, tree.central[name]) for name, x in tree.frames.items() if x.body == i and name in tree.central]
    if len(links) == 1:
        frame, (c, J) = links[0]
        return frame.R @ c + frame.p, congruence(frame.R, J)
    c = ZERO if is_zero(P.m) else P.h * (1.0 / P.m)
    return c, P.shifted(-c).J


class Page:
    """Writes the lines of a paper for a tree, and names the components of what they define."""

    def __init__(self, tree: Tree, paper: str) -> None:
        self.tree, self.context = tree, tree.context
        seen: set[int] = set()
        for b in tree.bodies:
            if b.v in seen:
                raise TraceError(
                    f"joint {b.joint!r} shares the coordinate of another (mimic), which the page in the letters "
                    f"of {paper} does not cover: leave sequence out"
                )
            seen.add(b.v)

    def section(self, title: str) -> None:
        """Begins a title, for components too."""
        self.context.section(title)
        self.context.line((), (), "", title)

    def link(self, b: TreeBody, title: str = "link") -> None:
        """A section about one body."""
        self.section(f"{title} {b.number} ({b.link})")

    def says(self, left: str, right: str, equation: str = "", meaning: str = "") -> None:
        """A line in words alone, separated by spaces."""
        self.context.line(tuple(left.split()), tuple(right.split()), equation, meaning)

    def define(
        self, name: str, value: Worded, equation: str = "", meaning: str = "", symmetric: bool = False
    ) -> Worded:
        """A line that defines a name; its components get theirs."""
        rows = value.rows
        if symmetric:
            rows = [[rows[max(i, j)][min(i, j)] for j in range(len(rows))] for i in range(len(rows))]
        words = ("0",) if value.zero else value.words
        self.context.line((name,), words, equation, meaning)
        if value.zero:
            return Worded(rows, ("0",))
        for i, row in enumerate(rows):
            for j, x in enumerate(row):
                self.context.name(component(name, len(rows), len(row), i, j), x)
        return Worded(rows, (name,))

    def given(self, name: str, x: Vec | Sym | Mat | Scalar, meaning: str, equation: str = "") -> Worded:
        """Parameters of the robot or numbers under one name."""
        rows = _rows(x)
        if all(is_zero(e) for row in rows for e in row):
            return Worded(rows, ("0",))
        if all(isinstance(e, float) for row in rows for e in row) and rows == EYE3.rows:
            return EYE3
        if not isinstance(x, (Vec, Sym, Mat)) and (mark := self.context.mark(x))[:1] == "@":
            return Worded(rows, (mark,))

        def place(i: int, j: int) -> tuple[int, int]:
            return (min(i, j), max(i, j)) if isinstance(x, Sym) else (i, j)

        names = [
            [self.entry(component(name, len(rows), len(r), *place(i, j)), e) for j, e in enumerate(r)]
            for i, r in enumerate(rows)
        ]
        words: list[str] = []
        for i, row in enumerate(names):
            words += [";"] * (i > 0)
            for j, parts in enumerate(row):
                words += ["&"] * (j > 0) + [*parts]
        whole = words if len(rows) == 1 else ["[", *words, "]"]
        self.context.line((name,), () if whole == [name] else tuple(whole), equation, meaning)
        return Worded(rows, (name,))

    def entry(self, label: str, x: Scalar) -> Words:
        """A number, a parameter's mark, or the name of a component that other lines define."""
        if isinstance(x, (int, float)):
            return ("-", f"{-x:.6g}") if x < 0 else (f"{abs(x):.6g}",)
        mark = self.context.mark(x)
        if mark:
            return ("-", mark[1:]) if mark[0] == "-" else (mark,)
        self.context.name(label, x)
        return (label,)

    def coordinate(self, b: TreeBody, letter: str, x: Vector) -> Worded:
        """A joint's own scalar: that of its coordinate, turned round where the axis is."""
        value = written_scalar(x[b.q if letter == "q" else b.v], f"{letter}_{b.v + 1}")
        return value if b.factor == 1.0 else written_number(float(b.factor)) @ value


def element_name(letter: str, size: int, row: str, column: str) -> str:
    """An element of a matrix by the numbers of its joints: a_21, and a_2_11 where there are ten joints or more."""
    return f"{letter}_{row}{'_' * (size > 9)}{column}"


def component(name: str, rows: int, columns: int, i: int, j: int) -> str:
    """omega_2, 1 of 3 rows -> omega_2x; theta_2_t -> theta_2x_t; Q_2, 4 of 6 -> Q_2_4; a scalar is its own."""
    if rows == columns == 1:
        return name
    base, hat, above = name.partition("^")
    base, rate = RATE_PATTERN.fullmatch(base).groups()  # type: ignore[union-attr]
    if rows == 3 and columns in (1, 3):
        place = AXES[i] + (AXES[j] if columns == 3 else "")
    else:
        place = f"_{i + 1}" + (f"{j + 1}" if columns > 1 else "")
    return f"{base}{'' if '_' in base else '_'}{place}{rate}{hat}{above}"


def _rows(x: Vec | Sym | Mat | Scalar) -> Matrix:
    if isinstance(x, Vec):
        return [[e] for e in x]
    if isinstance(x, (Sym, Mat)):
        return [list(row) for row in (x.mat if isinstance(x, Sym) else x)]
    return [[x]]


class JointLines:
    """Lines that every paper needs of the joint that carries a body: number, parent, placement and turn."""

    def __init__(self, page: Page, i: int, q: Vector) -> None:
        b = self.body = page.tree.bodies[i]
        self.i, self.up, self.n = i, b.parent, b.number
        self.p = page.tree.bodies[b.parent].number if b.parent >= 0 else "0"
        self.placement = page.tree.placements(q)[i]
        self.page = page
        self.q = page.coordinate(b, "q", q) if b.nv == 1 else None

    def of(self, letter: str, x: Vector) -> Worded:
        """Rates, accelerations or efforts of the joint as a column."""
        b = self.body
        if b.nv == 1:
            return self.page.coordinate(b, letter, x)
        names = " ; ".join(f"{letter}_{b.v + k + 1}" for k in range(b.nv))
        self.page.says(
            f"{letter}_{self.n}^J",
            f"[ {names} ]",
            "",
            "rates, accelerations or efforts of a joint of several coordinates, in their units",
        )
        return Worded([[x[b.v + k]] for k in range(b.nv)], (f"{letter}_{self.n}^J",))

    def offset(self) -> Worded:
        """From the parent's origin to the joint's, parent's axes."""
        said = "offset of a joint from the origin of the body that it stands on, in that body's axes, m"
        return self.page.given(f"o_{self.n}", self.body.p, said)

    def turned(self) -> Worded:
        """The constant turn of the joint's frame in the parent."""
        return self.page.given(
            f"P_{self.n}^o", self.body.R, "turn of a joint's frame against its parent's at q = 0, no unit"
        )

    def turn(self) -> Worded:
        """The joint's own turn."""
        b, Q = self.body, [list(row) for row in self.placement.Q]
        if b.kind in ("revolute", "helical"):
            assert self.q is not None
            return Worded(Q, (f"Rot_{AXES[b.axis]}", "(", *self.q.words, ")"))
        return Worded(Q, (f"Rot_{self.n}",)) if b.nv > 1 else EYE3

    def lead(self) -> Worded:
        """Metres by a radian of a screw."""
        return self.page.given(f"chi_{self.n}", self.body.pitch, "way of a screw along its axis by a radian, m")

    def shift(self) -> Worded:
        """The joint's own displacement, in its axes."""
        b, e = self.body, unit_column(self.body.axis)
        if b.kind == "prismatic":
            assert self.q is not None
            return e @ self.q
        if b.kind == "helical":
            assert self.q is not None
            return e @ (self.lead() @ self.q)
        moved = [[x] for x in b.R.T @ (self.placement.p - b.p)] if b.kind == "free" else [[0.0]] * 3
        return Worded(moved, (f"d_{self.n}",))

    def columns(self) -> tuple[Worded, Worded]:
        """Angular and linear columns of the joint in its moved axes."""
        b = self.body
        e, none = unit_column(b.axis), zeros_of(3, b.nv)
        if b.kind == "revolute":
            return e, none
        if b.kind == "prismatic":
            return none, e
        if b.kind == "helical":
            return e, e @ self.lead()
        if b.kind == "spherical":
            return EYE3, none
        half = zeros_of(3, 3)
        return by_blocks([[half, EYE3]]), by_blocks([[EYE3, half]])

    def mass(self) -> Worded:
        """The mass of the body."""
        return self.page.given(
            f"m_{self.n}^b", self.body.inertia.m, "mass of a body with what is welded to it, kg"
        )

    def centre(self) -> tuple[Worded, Worded]:
        """The centre of mass in the body's axes, and the inertia about it."""
        c, J = central(self.page.tree, self.i)
        said = "centre of mass of a body, in its axes, m"
        return self.page.given(f"r_{self.n}^c", c, said), self.page.given(
            f"J_{self.n}^c", J, "inertia of a body about its centre of mass, in its axes, kg m²"
        )

    def rotor(self, k: int = 0) -> Worded:
        """The inertia of a rotor on the joint."""
        x = self.page.tree.armature.get(self.body.v + k, 0.0)
        return self.page.given(f"J_{self.n}^r", x, "inertia of a joint's rotor, kg m² or kg")


def of_all(page: Page, q: Vector) -> list[JointLines]:
    """The joints of a tree."""
    return [JointLines(page, i, q) for i in range(len(page.tree))]


def refuse_many(page: Page, paper: str) -> None:
    """TraceError where a joint has several freedoms."""
    for b in page.tree.bodies:
        if b.nv > 1:
            raise TraceError(
                f"joint {b.joint!r} is {b.kind}: {paper} has joints of one freedom; load with base='trunk'"
            )
