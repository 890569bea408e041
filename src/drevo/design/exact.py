"""Exact scalars: polynomials over the rationals in parameters, sines and cosines, and proofs that one vanishes.

A sine is a symbol s with s^2 = 1 - c^2, the reciprocal of a polynomial U one with u U = 1. Differences that are
zero by these relations are zero for every pose and parameter; cofactors of the relations are the certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import prod
from operator import or_
from typing import Any, NamedTuple

from ..errors import TraceError
from .polynomial import rational

Coefficient = Any  # a whole number or a fraction
MAX_TERMS = 6_000  # of a polynomial: about a second of arithmetic
EXPONENT_BITS = 16  # of a symbol in a monomial; the highest stays free
EXPONENT_MASK = (1 << EXPONENT_BITS) - 1


class Polynomial(dict[int, Coefficient]):
    """Coefficients by monomials; a monomial holds the exponents of the symbols side by side in one integer."""

    def __add__(self, other: Polynomial) -> Polynomial:
        out = Polynomial(self)
        for m, x in other.items():
            total = out.get(m, 0) + x
            if total:
                out[m] = total
            else:
                del out[m]
        return out

    def __neg__(self) -> Polynomial:
        return Polynomial({m: -x for m, x in self.items()})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        out: dict[int, Coefficient] = {}
        for m, x in self.items():
            for n, y in other.items():
                out[m + n] = out.get(m + n, 0) + x * y
        return Polynomial({m: x.numerator if x.denominator == 1 else x for m, x in out.items() if x})

    def __pow__(self, exponent: int) -> Polynomial:
        out = POLYNOMIAL_ONE
        for _ in range(exponent):
            out = out * self
        return out

    def degree(self, place: int) -> int:
        """The highest power of a symbol."""
        return max((exponent(m, place) for m in self), default=0)

    def powers(self, place: int, step: int = 1) -> dict[int, Polynomial]:
        """The coefficients of the powers of a symbol's power, by exponents."""
        out: dict[int, Polynomial] = {}
        for m, x in self.items():
            high = exponent(m, place) // step
            out.setdefault(high, Polynomial())[m - (high * step << EXPONENT_BITS * place)] = x
        return out

    def terms(self) -> list[tuple[dict[int, int], Coefficient]]:
        """Exponents by symbols, and coefficients; the highest powers of the first symbols first."""
        split = [(exponents(m), x) for m, x in self.items()]
        return sorted(split, key=lambda t: [*((k, -e) for k, e in t[0].items()), (len(t[0]) + 2**30, 0)])


def exponent(monomial: int, place: int) -> int:
    """The power of one symbol."""
    return monomial >> EXPONENT_BITS * place & EXPONENT_MASK


def exponents(monomial: int) -> dict[int, int]:
    """The powers of the symbols that stand in a monomial, by their places."""
    out, place = {}, 0
    while monomial:
        if e := monomial & EXPONENT_MASK:
            out[place] = e
        monomial, place = monomial >> EXPONENT_BITS, place + 1
    return out


def gen(place: int, power: int = 1) -> Polynomial:
    """A power of a symbol."""
    return Polynomial({power << EXPONENT_BITS * place: 1})


def constant(x: Coefficient) -> Polynomial:
    """A number as a polynomial."""
    return Polynomial({0: x.numerator if x.denominator == 1 else x} if x else {})


POLYNOMIAL_ZERO, POLYNOMIAL_ONE = Polynomial(), constant(1)


class TooLarge(TraceError):
    """A polynomial has more terms than are worth an exact proof."""


class Relation(NamedTuple):
    """lead g^step + rest = 0 with a symbol g (by its place), where lead does not vanish."""

    place: int
    step: int
    lead: Polynomial
    rest: Polynomial


class EliminationStep(NamedTuple):
    """factor p = remainder + cofactor (lead g^step + rest)."""

    relation: Relation
    factor: Polynomial
    cofactor: Polynomial


class Algebra:
    """Symbols of polynomials with sines, unit directions and reciprocals."""

    def __init__(self, names: Sequence[str], reciprocals: int, most: int = MAX_TERMS) -> None:
        """names: the symbols; of c_k and s_k both belong to the angle q_k. most: terms of a polynomial."""
        self.most = most
        self.names = [*(f"u_{k + 1}" for k in range(reciprocals)), *names]
        self.place = {name: k for k, name in enumerate(self.names)}
        self.free = [self.place[f"u_{k + 1}"] for k in range(reciprocals)]
        self.squares: dict[int, Relation] = {}
        self.turns: dict[int, tuple[int, int]] = {}  # place of an angle: those of its cosine and sine
        self.reciprocals: list[Relation] = []
        self.highest = sum(1 << EXPONENT_BITS * (k + 1) - 1 for k in range(len(self.names)))
        self.squared = 0  # the bits of exponents above one of the symbols in `squares`
        self.reducing = True  # off where a difference is wanted before any relation is used
        for name, k in self.place.items():
            if name.startswith("s_") and f"c{name[1:]}" in self.place:
                self.square(name, gen(self.place[f"c{name[1:]}"], 2) - POLYNOMIAL_ONE)
                self.turns[self.place[f"q{name[1:]}"]] = (self.place[f"c{name[1:]}"], k)

    def square(self, name: str, rest: Polynomial) -> None:
        """A symbol whose square is -rest."""
        k = self.place[name]
        self.squares[k] = Relation(k, 2, POLYNOMIAL_ONE, rest)
        self.squared |= (EXPONENT_MASK - 1) << EXPONENT_BITS * k

    def symbol(self, name: str) -> Exact:
        """A symbol as a scalar."""
        return Exact(self, gen(self.place[name]))

    def number(self, x: Fraction | float | int) -> Polynomial:
        """A number as a polynomial."""
        return constant(x if isinstance(x, (Fraction, int)) else rational(float(x)))

    def polynomial(self, x: Any) -> Polynomial:
        """The polynomial of a scalar of this ring or of a number."""
        return x.p if isinstance(x, Exact) else self.number(x)

    def scalar(self, p: Polynomial) -> Any:
        """A polynomial as a scalar; zero is the number 0.0, which algorithms see through."""
        if len(p) > self.most:
            raise TooLarge(f"a polynomial of {len(p)} terms is too large for an exact proof (at most {self.most})")
        return Exact(self, p) if p else 0.0

    def exact(self, x: Fraction | float) -> Any:
        """A number as a scalar; 0 and +-1 stay floats, which the algorithms see through."""
        return float(x) if x in (0, 1, -1) else self.scalar(self.number(x))

    def reduced(self, p: Polynomial) -> Polynomial:
        """The normal form: no square of a sine."""
        found = reduce(or_, p, 0)
        if found & self.highest:
            raise TooLarge("a power is too high for an exact proof")
        found &= self.squared if self.reducing else 0
        for k, relation in self.squares.items() if found else ():
            if exponent(found, k):
                p = without_symbol(p, relation).remainder
        return p

    def reciprocal(self, p: Polynomial) -> Polynomial:
        """1 / p: a symbol of its own, unless p is a number."""
        if not p:
            raise ZeroDivisionError("a reciprocal of zero")
        size = Fraction(p[max(p)])
        if not any(p):
            return constant(1 / size)
        p = p * constant(1 / size)
        for r in self.reciprocals:
            if r.lead == p:
                return gen(r.place) * constant(1 / size)
        if not self.free:
            raise TooLarge("more divisions by what is no number than exact arithmetic takes")
        k = self.free.pop()  # later ones stand before those that their divisors hold
        self.reciprocals.append(Relation(k, 1, p, -POLYNOMIAL_ONE))
        return gen(k) * constant(1 / size)

    def vanishing(self, p: Polynomial, given: Iterable[Relation] = ()) -> tuple[Polynomial, list[EliminationStep]]:
        """The remainder of a polynomial by conditions, reciprocals and squares, and the steps to it."""
        steps: list[EliminationStep] = []
        relations = [*reversed(self.reciprocals), *given, *self.squares.values()]
        for r in [*self.squares.values(), *relations]:
            if p.degree(r.place) < r.step:
                continue
            part = without_symbol(p, r)
            p = part.remainder
            steps.append(EliminationStep(r, part.factor, part.cofactor))
            if len(p) > MAX_TERMS:
                raise TooLarge(f"a polynomial of {len(p)} terms is too large for an exact proof")
        return p, steps


class Elimination(NamedTuple):
    """factor p = remainder + cofactor relation."""

    remainder: Polynomial
    factor: Polynomial
    cofactor: Polynomial


def without_symbol(p: Polynomial, r: Relation) -> Elimination:
    """A polynomial in which g^step stands nowhere: with A g^step = -B, A^d g^(step d) = (-B)^d."""
    parts = p.powers(r.place, r.step)
    degree = max(parts, default=0)
    g = gen(r.place, r.step)
    plain = r.lead == POLYNOMIAL_ONE
    powers, opposite = [POLYNOMIAL_ONE], [POLYNOMIAL_ONE]  # of A and of -B
    for _ in range(degree):
        powers.append(powers[-1] * r.lead)
        opposite.append(-(opposite[-1] * r.rest))
    remainder, cofactor = POLYNOMIAL_ZERO, POLYNOMIAL_ZERO
    for j, a in parts.items():
        a = a if plain else a * powers[degree - j]
        remainder += a * opposite[j]
        lifted = POLYNOMIAL_ONE
        for i in range(j):
            cofactor += a * lifted * opposite[j - 1 - i]
            lifted = lifted * g if plain else lifted * g * r.lead
    return Elimination(remainder, powers[degree], cofactor)


class Exact:
    """A polynomial as a scalar, on which the algorithms run as they run on floats."""

    __slots__ = ("algebra", "p")

    def __init__(self, algebra: Algebra, p: Polynomial) -> None:
        self.algebra, self.p = algebra, p

    def __add__(self, other: Any) -> Any:
        return self.algebra.scalar(self.p + self.algebra.polynomial(other))

    __radd__ = __add__

    def __neg__(self) -> Exact:
        return Exact(self.algebra, -self.p)

    def __sub__(self, other: Any) -> Any:
        return self.algebra.scalar(self.p - self.algebra.polynomial(other))

    def __rsub__(self, other: Any) -> Any:
        return self.algebra.scalar(self.algebra.polynomial(other) - self.p)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Exact):
            return self.algebra.scalar(self.p * self.algebra.number(other)) if other else 0.0
        if len(self.p) * len(other.p) > 40 * self.algebra.most:
            raise TooLarge(f"a product of {len(self.p)} by {len(other.p)} terms is too large for an exact proof")
        return self.algebra.scalar(self.algebra.reduced(self.p * other.p))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * Exact(self.algebra, self.algebra.reciprocal(self.algebra.polynomial(other)))

    def __rtruediv__(self, other: Any) -> Any:
        return Exact(self.algebra, self.algebra.reciprocal(self.p)) * other

    def __repr__(self) -> str:
        return f"Exact({polynomial_text(self.p, self.algebra.names)})"

    def sin(self) -> Any:
        """The sine of a sum of angles, expanded."""
        return self._turned()[0]

    def cos(self) -> Any:
        """The cosine of a sum of angles, expanded."""
        return self._turned()[1]

    def sqrt(self) -> Any:
        """None is a polynomial."""
        raise TraceError("a square root has no exact value")

    def by_angle(self, y: Any, x: Any) -> Any:
        """No angle of a vector is a polynomial."""
        raise TraceError("atan2 has no exact value")

    def _turned(self) -> tuple[Any, Any]:
        algebra, s, c = self.algebra, 0.0, 1.0
        for m, x in reversed(self.p.terms()):
            k = next(iter(m), None)
            if m != {k: 1} or k not in algebra.turns or x.denominator != 1 or abs(x) > 9:
                text = polynomial_text(self.p, algebra.names)
                raise TraceError(f"the sine of {text} is no polynomial in sines and cosines of joint angles")
            cosine, sine = (Exact(algebra, gen(j)) for j in algebra.turns[k])
            for _ in range(abs(int(x))):
                turn = sine if x > 0 else -sine
                s, c = turn * c + cosine * s, cosine * c - turn * s
        return s, c


def polynomial_text(p: Polynomial, names: Sequence[str]) -> str:
    """A polynomial in the notation of formulas: 2*L_3*m_o3 - (I_3^x)^2 + 1/2."""
    terms = []
    for m, x in p.terms():
        factors = [_power(names[k], e) for k, e in m.items()]
        size = abs(x)
        number = [] if size == 1 and factors else [str(size.numerator)]
        text = "*".join([*number, *factors]) + (f"/{size.denominator}" if size.denominator != 1 else "")
        terms.append(("- " if x < 0 else "+ ") + text)
    text = " ".join(terms) or "0"
    return text[2:] if text.startswith("+ ") else f"-{text[2:]}" if text.startswith("- ") else text


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"({name})^{exponent}" if "^" in name else f"{name}^{exponent}"


def values_at(p: Polynomial, at: Mapping[int, Fraction]) -> Fraction:
    """The value of a polynomial at a rational point."""
    total = Fraction(0)
    for m, x in p.terms():
        total += prod((at[k] ** e for k, e in m.items()), start=x)
    return total
