"""Exact scalars: polynomials over the rationals in parameters, sines and cosines, and proofs that one vanishes.

A sine is a symbol s with s^2 = 1 - c^2, the reciprocal of a polynomial U one with u U = 1. Differences that are
zero by these relations are zero for every pose and parameter; cofactors of the relations are the certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import TraceError
from ..io.packages import package
from .polynomial import rational

Polynomial = Any  # of sympy.polys.rings
MAX_TERMS = 6_000  # of a polynomial: about a second of arithmetic


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


def polynomial_ring(names: Sequence[str]) -> Any:
    """SymPy's ring of polynomials over the rationals."""
    package("sympy", "check_formulas", "drevo[design]")
    from sympy import QQ
    from sympy.polys.orderings import lex
    from sympy.polys.rings import PolyRing

    return PolyRing(names, QQ, lex)


class Algebra:
    """A ring of polynomials with sines, unit directions and reciprocals."""

    def __init__(self, names: Sequence[str], reciprocals: int) -> None:
        """names: the symbols; of c_k and s_k both belong to the angle q_k."""
        self.names = [*(f"u_{k + 1}" for k in range(reciprocals)), *names]
        self.ring: Any = polynomial_ring(self.names)
        self.place = {name: k for k, name in enumerate(self.names)}
        self.free = [self.place[f"u_{k + 1}"] for k in range(reciprocals)]
        self.squares: dict[int, Relation] = {}
        self.turns: dict[int, tuple[int, int]] = {}  # place of an angle: those of its cosine and sine
        self.reciprocals: list[Relation] = []
        self.reducing = True  # off where a difference is wanted before any relation is used
        for name, k in self.place.items():
            if name.startswith("s_") and f"c{name[1:]}" in self.place:
                cosine = self.ring.gens[self.place[f"c{name[1:]}"]]
                self.square(name, cosine**2 - 1)
                self.turns[self.place[f"q{name[1:]}"]] = (self.place[f"c{name[1:]}"], k)

    def square(self, name: str, rest: Polynomial) -> None:
        """A symbol whose square is -rest."""
        k = self.place[name]
        self.squares[k] = Relation(k, 2, self.ring.one, rest)

    def symbol(self, name: str) -> Exact:
        """A symbol as a scalar."""
        return Exact(self, self.ring.gens[self.place[name]])

    def number(self, x: Fraction | float | int) -> Polynomial:
        """A number as a polynomial."""
        f = x if isinstance(x, (Fraction, int)) else rational(float(x))
        return self.ring.ground_new(self.ring.domain(f.numerator, f.denominator))

    def polynomial(self, x: Any) -> Polynomial:
        """The polynomial of a scalar of this ring or of a number."""
        return x.p if isinstance(x, Exact) else self.number(x)

    def scalar(self, p: Polynomial) -> Any:
        """A polynomial as a scalar; zero is the number 0.0, which algorithms see through."""
        if len(p) > MAX_TERMS:
            raise TooLarge(f"a polynomial of {len(p)} terms is too large for an exact proof (at most {MAX_TERMS})")
        return Exact(self, p) if p else 0.0

    def reduced(self, p: Polynomial) -> Polynomial:
        """The normal form: no square of a sine."""
        if not self.reducing:
            return p
        for k, relation in self.squares.items():
            if any(m[k] > 1 for m in p):
                p = without_symbol(p, relation).remainder
        return p

    def reciprocal(self, p: Polynomial) -> Polynomial:
        """1 / p: a symbol of its own, unless p is a number."""
        if p.is_ground:
            return self.ring.ground_new(1 / p.coeff(1))
        size = p.LC
        p = p.mul_ground(1 / size)
        for r in self.reciprocals:
            if r.lead == p:
                return self.ring.gens[r.place].mul_ground(1 / size)
        if not self.free:
            raise TooLarge("more divisors than an exact proof takes")
        k = self.free.pop()  # later ones stand before those that their divisors hold
        self.reciprocals.append(Relation(k, 1, p, self.ring.ground_new(-1)))
        return self.ring.gens[k].mul_ground(1 / size)

    def vanishing(self, p: Polynomial, given: Iterable[Relation] = ()) -> tuple[Polynomial, list[EliminationStep]]:
        """The remainder of a polynomial by conditions, reciprocals and squares, and the steps to it."""
        steps: list[EliminationStep] = []
        relations = [*reversed(self.reciprocals), *given, *self.squares.values()]
        for r in [*self.squares.values(), *relations]:
            if not any(m[r.place] >= r.step for m in p):
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
    ring, zero, one = p.ring, p.ring.zero, p.ring.one
    parts: dict[int, dict[Any, Any]] = {}  # by the power of g^step
    for m, x in p.terms():
        high, low = divmod(m[r.place], r.step)
        parts.setdefault(high, {})[(*m[: r.place], low, *m[r.place + 1 :])] = x
    degree = max(parts, default=0)
    g = ring.gens[r.place] ** r.step
    plain = r.lead == one
    powers, opposite = [one], [one]  # of A and of -B
    for _ in range(degree):
        powers.append(powers[-1] * r.lead)
        opposite.append(-(opposite[-1] * r.rest))
    remainder, cofactor = zero, zero
    for j, terms in parts.items():
        a = ring.from_dict(terms)
        a = a if plain else a * powers[degree - j]
        remainder += a * opposite[j]
        lifted = one
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
        if len(self.p) * len(other.p) > 40 * MAX_TERMS:
            raise TooLarge(f"a product of {len(self.p)} by {len(other.p)} terms is too large for an exact proof")
        return self.algebra.scalar(self.algebra.reduced(self.p * other.p))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self * Exact(self.algebra, self.algebra.reciprocal(self.algebra.polynomial(other)))

    def __rtruediv__(self, other: Any) -> Any:
        return Exact(self.algebra, self.algebra.reciprocal(self.p)) * other

    def __repr__(self) -> str:
        return f"Exact({self.p})"

    def sin(self) -> Any:
        """The sine of a sum of angles, expanded."""
        return self._turned()[0]

    def cos(self) -> Any:
        """The cosine of a sum of angles, expanded."""
        return self._turned()[1]

    def _turned(self) -> tuple[Any, Any]:
        algebra, s, c = self.algebra, 0.0, 1.0
        for m, x in sorted(self.p.terms()):
            k = next((k for k in algebra.turns if m[k] == 1 and sum(m) == 1), None)
            if k is None or x.denominator != 1 or abs(x) > 9:
                raise TraceError(f"the sine of {self.p} is no polynomial in sines and cosines of joint angles")
            cosine, sine = (Exact(algebra, algebra.ring.gens[j]) for j in algebra.turns[k])
            for _ in range(abs(int(x))):
                turn = sine if x > 0 else -sine
                s, c = turn * c + cosine * s, cosine * c - turn * s
        return s, c


def polynomial_text(p: Polynomial, names: Sequence[str]) -> str:
    """A polynomial in the notation of formulas: 2*L_3*m_o3 - (I_3^x)^2 + 1/2."""
    terms = []
    for m, x in p.terms():
        factors = [_power(names[k], e) for k, e in enumerate(m) if e]
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
        term = Fraction(int(x.numerator), int(x.denominator))
        for k, e in enumerate(m):
            if e:
                term *= at[k] ** e
        total += term
    return total
