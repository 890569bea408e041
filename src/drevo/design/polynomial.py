"""Exact scalars: polynomials in sines and cosines whose coefficients are linear forms of inertial parameters.

Normal form: products of c_k^a s_k^b with b in {0, 1}, by s^2 = 1 - c^2; different ones are independent functions.
The algorithms run over these numbers as they run over floats.

Exact linear algebra on sparse rows of fractions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from ..errors import TraceError
from ..mechanics.scalar import Scalar

Power = tuple[int, int, int]  # (coordinate, exponent of its cosine or of a slide itself, exponent of its sine)
Monomial = tuple[Power, ...]
Form = dict[int, Fraction]  # parameter -> coefficient; NUMBER is the part without parameters

UNIT_MONOMIAL: Monomial = ()
NUMBER = -1


def rational(x: float) -> Fraction:
    """The decimal that a person meant: 0.3 is 3/10, and so is 0.1 + 0.2."""
    short = float(f"{x:.12g}")
    return Fraction(repr(short if abs(x - short) <= 4e-16 * abs(x) else x))


def exact(x: float) -> Scalar:
    """A number as an exact scalar; 0 and +-1 stay floats, which the algorithms see through."""
    return float(x) if x in (0.0, 1.0, -1.0) else Poly({UNIT_MONOMIAL: {NUMBER: rational(x)}})


class Poly:
    """A sum over trigonometric monomials of linear forms. Whatever vanishes becomes the number 0.0."""

    __array_ufunc__ = None
    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, Form]) -> None:
        self.terms = terms

    @classmethod
    def parameter(cls, k: int) -> Poly:
        return cls({UNIT_MONOMIAL: {k: Fraction(1)}})

    def __add__(self, other: Poly | float) -> Scalar:
        terms = {m: dict(f) for m, f in self.terms.items()}
        for m, form in _of(other).terms.items():
            _accumulate(terms.setdefault(m, {}), form, Fraction(1))
        return _cleaned(terms)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly({m: {k: -x for k, x in f.items()} for m, f in self.terms.items()})

    def __sub__(self, other: Poly | float) -> Scalar:
        return self + (-other)

    def __rsub__(self, other: Poly | float) -> Scalar:
        return (-self) + other

    def __mul__(self, other: Poly | float) -> Scalar:
        terms: dict[Monomial, Form] = {}
        for m, f in self.terms.items():
            for n, g in _of(other).terms.items():
                form = _form_product(f, g)
                for monomial, sign in _product(m, n):
                    _accumulate(terms.setdefault(monomial, {}), form, Fraction(sign))
        return _cleaned(terms)

    __rmul__ = __mul__

    def __truediv__(self, other: Poly | float) -> Scalar:
        form = _of(other).terms
        if set(form) != {UNIT_MONOMIAL} or set(form[UNIT_MONOMIAL]) != {NUMBER}:
            raise TraceError("division by something that is not a number")
        return self * Poly({UNIT_MONOMIAL: {NUMBER: 1 / form[UNIT_MONOMIAL][NUMBER]}})

    def __repr__(self) -> str:
        return f"Poly({self.terms})"


def _of(x: Poly | float) -> Poly:
    return x if isinstance(x, Poly) else Poly({UNIT_MONOMIAL: {NUMBER: rational(float(x))}} if x else {})


def _accumulate(into: Form, form: Form, factor: Fraction) -> None:
    for k, x in form.items():
        into[k] = into.get(k, Fraction(0)) + factor * x


def _cleaned(terms: Mapping[Monomial, Form]) -> Scalar:
    kept = {m: {k: x for k, x in f.items() if x} for m, f in terms.items()}
    kept = {m: f for m, f in kept.items() if f}
    return Poly(kept) if kept else 0.0


def _form_product(f: Form, g: Form) -> Form:
    for a, b in ((f, g), (g, f)):
        if set(a) <= {NUMBER}:
            return {k: a.get(NUMBER, Fraction(0)) * x for k, x in b.items()}
    raise TraceError("two inertial parameters are multiplied: the conditions are linear in them")


def _product(m: Monomial, n: Monomial) -> list[tuple[Monomial, int]]:
    """Product of two monomials in normal form; s_k s_k = 1 - c_k^2 splits it."""
    powers: dict[int, list[int]] = {}
    for k, a, b in (*m, *n):
        total = powers.setdefault(k, [0, 0])
        total[0] += a
        total[1] += b
    out: list[tuple[dict[int, tuple[int, int]], int]] = [({}, 1)]
    for k in sorted(powers):
        a, b = powers[k]
        split = [((a, 0), 1), ((a + 2, 0), -1)] if b == 2 else [((a, b), 1)]
        out = [({**old, k: p}, sign * s) for old, sign in out for p, s in split]
    return [(tuple((k, a, b) for k, (a, b) in p.items() if a or b), sign) for p, sign in out]


class Angle:
    """A sum of joint angles with whole coefficients; its sine and cosine are expanded into single angles.

    NumPy's sine and cosine call the methods of that name.
    """

    __slots__ = ("turns",)

    def __init__(self, turns: Mapping[int, int]) -> None:
        self.turns = {k: n for k, n in turns.items() if n}

    def __mul__(self, factor: float) -> Angle:
        if factor != int(factor):
            raise TraceError(f"a joint follows another {factor} times: its sines are no polynomials")
        return Angle({k: n * int(factor) for k, n in self.turns.items()})

    __rmul__ = __mul__

    def __neg__(self) -> Angle:
        return self * -1.0

    def __add__(self, other: Angle | float) -> Angle:
        if not isinstance(other, Angle):
            if other != 0.0:
                raise TraceError(f"an angle with the constant part {other} is not covered here")
            return self
        keys = {*self.turns, *other.turns}
        return Angle({k: self.turns.get(k, 0) + other.turns.get(k, 0) for k in keys})

    __radd__ = __add__

    def _expanded(self) -> tuple[Scalar, Scalar]:
        s: Scalar = 0.0
        c: Scalar = 1.0
        for k, n in sorted(self.turns.items()):
            sk, ck = Poly({((k, 0, 1),): {NUMBER: Fraction(1)}}), Poly({((k, 1, 0),): {NUMBER: Fraction(1)}})
            for _ in range(abs(n)):
                turn = sk if n > 0 else -sk
                s, c = s * ck + c * turn, c * ck - s * turn
        return s, c

    def sin(self) -> Scalar:
        return self._expanded()[0]

    def cos(self) -> Scalar:
        return self._expanded()[1]


def slide(k: int) -> Poly:
    """The displacement of a sliding joint."""
    return Poly({((k, 1, 0),): {NUMBER: Fraction(1)}})


def forms(x: Scalar) -> dict[Monomial, Form]:
    """Coefficients by monomial."""
    return dict(_of(x).terms)


SparseRow = dict[int, Fraction]
CANCELLED = Fraction(1, 10**8)


class Space:
    """A row space in reduced echelon form; a row is solved for one of the columns in `first` if it has any."""

    def __init__(self, first: Collection[int] = ()) -> None:
        self.first = first
        self.rows: dict[int, SparseRow] = {}  # by pivot, each with 1 there

    def __len__(self) -> int:
        return len(self.rows)

    def reduced(self, row: SparseRow) -> SparseRow:
        """The row modulo the space."""
        out = dict(row)
        for pivot in [c for c in row if c in self.rows]:
            add_multiple(out, self.rows[pivot], -out[pivot])
        return out

    def add(self, row: SparseRow) -> int | None:
        """Takes a row in; its pivot, or None where the space holds it already."""
        rest = self.reduced(row)
        if not rest:
            return None
        pivot = min(rest, key=lambda c: (c not in self.first, c))
        scale = rest[pivot]
        rest = {c: x / scale for c, x in rest.items()}
        for other in self.rows.values():
            if pivot in other:
                add_multiple(other, rest, -other[pivot])
        self.rows[pivot] = rest
        return pivot

    def holds(self, row: SparseRow) -> bool:
        return not self.reduced(row)


def add_multiple(into: SparseRow, row: SparseRow, factor: Fraction) -> None:
    """into += factor * row; zeros leave, and what cancels as far as rounding lets it.

    Skew axes and offsets are rational to some 1e-12 only: what depends on another row in truth leaves that much.
    """
    for c, x in row.items():
        old = into.get(c, Fraction(0))
        value = old + factor * x
        if value and abs(value) > CANCELLED * abs(old):
            into[c] = value
        else:
            into.pop(c, None)


def space(rows: Iterable[SparseRow]) -> Space:
    """The row space of rows."""
    out = Space()
    for row in rows:
        out.add(row)
    return out


def rank(rows: Sequence[SparseRow]) -> int:
    """Number of independent rows."""
    return len(space(rows))
