"""Conditions with lengths among the unknowns: polynomials, "L_2*d_x2 = 0"; ideals by SymPy's Groebner bases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, shown
from ..io.packages import package
from ..io.reprs import brief, brief_list
from ..mechanics.tree import build_tree
from ..model.description import Model
from ..robot.face import Robot
from . import expressions
from .parameters import SNAP, Coefficients, Parameters
from .polynomial import UNIT_MONOMIAL, Form, Monomial, Space, SparseRow

STATIC_MOMENT = re.compile(r"\bd_[xyz](\d+)")
EQUAL_COEFFICIENTS = 1e-12  # of a coefficient: printed numbers are rounded
Unknown = tuple[Monomial, int]  # powers of lengths, parameter


def lengths_of(model: Model, names: Sequence[str]) -> frozenset[int]:
    """The bodies of lengths "L_2", which keep the direction that their offset has."""
    bodies = {b.number: (i, b) for i, b in enumerate(build_tree(model, snap=SNAP).bodies)}
    out = set()
    for name in names:
        i, b = bodies.get(name[2:], (-1, None))
        if b is None or b.parent < 0 or not any(b.p):
            raise InputError(
                f"free: {name!r} is no length that can be solved for: it must be the offset of a body from its "
                "parent and not be zero"
            )
        out.add(i)
    return frozenset(out)


class Case(NamedTuple):
    """Lengths that are zero, and the conditions that are left; other lengths may have any value."""

    zero: tuple[str, ...]
    conditions: tuple[str, ...]

    @property
    def meaning(self) -> str:
        """The case as a mechanism, in a sentence."""
        lengths = " = ".join([*self.zero, "0"])
        places = f"{lengths}: these joints stand at the origins of their links" if self.zero else "any lengths"
        balanced = [text for text in self.conditions if "I_" not in text]
        bodies = sorted({x for text in balanced for x in STATIC_MOMENT.findall(text)}, key=int)
        masses = f"; balanced static moments: of augmented bodies {', '.join(bodies)}" if bodies else ""
        return f"{places}{masses}"


@brief
@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing given equations with the conditions. Texts, as given or as found.

    rank: independent given equations. implied: given ones that the conditions contain. missing: conditions that
    do not follow from the given equations. superfluous: given ones that the conditions do not ask for, or that
    follow from the given equations before them.
    """

    rank: int
    implied: tuple[str, ...]
    missing: tuple[str, ...]
    superfluous: tuple[str, ...]


def texts(name: str, given: object) -> list[str]:
    """One text, or several, as a list."""
    single = isinstance(given, (str, memoryview)) or not np.iterable(given)
    listed: list[Any] = [given] if single else list(given)  # type: ignore[call-overload]
    for x in listed:
        if not isinstance(x, str):
            raise InputError(f"{name}: {shown(x)} is no text; give one or a list of them")
    return listed


def sides_of(text: str) -> list[expressions.FormulaNode]:
    """The sides of an equation among parameters."""
    sides = expressions.read_formula(text)
    if len(sides) < 2:
        raise InputError(f"condition {shown(text.strip())} has no '='")
    if any(x.kind in expressions.FORMULA_FUNCTIONS for s in sides for x in expressions.nodes(s)):
        raise InputError(f"condition {shown(text.strip())}: sines and cosines have no place among parameters")
    return sides


def snapped_to_known(x: Fraction, known: Iterable[Fraction]) -> Fraction:
    """A coefficient that rounding of printed numbers moved is the one that stands in the conditions."""
    for c in known:
        if abs(abs(x) - c) <= EQUAL_COEFFICIENTS * c:
            return c if x > 0 else -c
    return x


@dataclass(slots=True, eq=False)
class PolynomialConditions:
    """Conditions of which each is linear in the inertial parameters, with powers of the free lengths."""

    parameters: Parameters
    columns: list[Unknown]
    rows: list[SparseRow]
    at_its_lengths: Callable[[], Any]  # the conditions with the lengths that the robot has

    def realise(self, *how: Any, **named: Any) -> Robot:
        """A robot that meets the conditions and keeps its lengths; arguments are those of `Conditions.realise`."""
        realised: Robot = self.at_its_lengths().realise(*how, **named)
        return realised

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.equations == other.equations if isinstance(other, PolynomialConditions) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join(self.equations)

    def __repr__(self) -> str:
        return brief_list("conditions", self.equations)

    @property
    def equations(self) -> tuple[str, ...]:
        """The conditions as text."""
        return tuple(f"{self._text(row)} = 0" for row in self.rows)

    def _text(self, row: SparseRow) -> str:
        known, names = self.parameters.all, Coefficients(self.parameters)
        lengths = {c: known[self.columns[c][1]].length + sum(a for _, a, _ in self.columns[c][0]) for c in row}
        out = ""
        for c in sorted(row, key=lambda c: (known[self.columns[c][1]].body, self.columns[c])):
            powers, k = self.columns[c]
            size = names.text(abs(row[c]), max(lengths.values()) - lengths[c], known[k].body)
            negative = (row[c] < 0) != size.startswith("-")  # a length component may be along minus an axis
            size = size.removeprefix("-")
            name = "*".join([*([] if size == "1" else [size]), *self._letters(powers), known[k].name])
            sign = "-" if negative else "+"
            out += f" {sign} {name}" if out else (f"-{name}" if negative else name)
        return out

    def _letters(self, powers: Monomial) -> list[str]:
        return [f"{self._letter(k)}^{a}" if a > 1 else self._letter(k) for k, a, _ in powers]

    def _letter(self, k: int) -> str:
        return f"L_{self.parameters.tree.bodies[k - self.parameters.tree.nq].number}"

    def cases(self) -> tuple[Case, ...]:
        """The conditions by which free lengths are zero: those that hold then, without factors that are not.

        A case with a length at zero is listed where it leaves fewer other conditions than those with fewer zeros.
        """
        polynomials = [self.polynomial(row) for row in self.rows]
        known = {x.name for x in self.parameters.all}
        lengths = sorted({x for p in polynomials for x in p.free_symbols if str(x) not in known}, key=str)
        listed: list[tuple[frozenset[Any], frozenset[Any]]] = []
        for n in range(len(lengths) + 1):
            for zero in map(frozenset, combinations(lengths, n)):
                rest = frozenset(_without_lengths(p, zero, set(lengths)) for p in polynomials) - {0}
                if 1 not in rest and all(len(rest) < len(other) for smaller, other in listed if smaller <= zero):
                    listed.append((zero, rest))
        return tuple(
            Case(tuple(sorted(map(str, zero))), tuple(sorted(f"{p} = 0".replace("**", "^") for p in rest)))
            for zero, rest in listed
        )

    def compare(self, equations: Sequence[str]) -> Comparison:
        """Compares given equations with the conditions: those that follow, and conditions that they leave out."""
        own = [self.polynomial(row) for row in self.rows]
        given: list[Any] = []
        implied, superfluous, rank = [], [], 0
        for text in texts("compare", equations):
            for name, p in self._read(text):
                needed, fresh = in_ideal(p, own), not in_ideal(p, given)
                implied += [name] if needed else []
                superfluous += [name] if not (needed and fresh) else []
                rank += fresh
                given.append(p)
        missing = []
        for name, p in zip(self.equations, own):
            if not in_ideal(p, given):
                missing.append(name)
                given.append(p)
        return Comparison(rank, tuple(implied), tuple(missing), tuple(superfluous))

    def polynomial(self, row: SparseRow) -> Any:
        """A condition in SymPy's terms."""
        out = _sympy().Integer(0)
        for c, x in row.items():
            powers, k = self.columns[c]
            letters = [_sympy().Symbol(self._letter(l)) ** a for l, a, _ in powers]
            out += _sympy().Mul(_exact(x), *letters, _sympy().Symbol(self.parameters.all[k].name))
        return out

    def _read(self, text: str) -> list[tuple[str, Any]]:
        """The polynomials of a chain of equalities, each with its own text."""
        sides = sides_of(text)
        values = [
            _sympy().sympify(expressions.value(s, self._named, lambda t: _exact(Fraction(t)))) for s in sides
        ]
        last, known = expressions.formula_text(sides[-1]), {abs(c) for row in self.rows for c in row.values()}
        out = []
        for side, x in zip(sides[:-1], values):
            p = _sympy().together(x - values[-1])
            numerator, below = _sympy().fraction(p)
            if p.has(_sympy().zoo, _sympy().nan, _sympy().oo) or below.free_symbols:
                raise InputError(f"condition {shown(text.strip())} divides by zero or by a parameter")
            terms = (numerator / below).expand().as_coefficients_dict()
            p = _sympy().Add(
                *(_exact(snapped_to_known(Fraction(int(c.p), int(c.q)), known)) * m for m, c in terms.items())
            )
            out.append((f"{expressions.formula_text(side)} = {last}", p))
        return out

    def _named(self, name: str) -> Any:
        if name in self.parameters.index or name in map(self._letter, self._free):
            return _sympy().Symbol(name)
        length = self.parameters.length(name)
        if length is None:
            raise InputError(f"condition: {name!r} is neither an inertial parameter nor a length here")
        return _exact(length)

    @property
    def _free(self) -> list[int]:
        return [self.parameters.tree.nq + i for i in self.parameters.letters]


def _without_lengths(p: Any, zero: frozenset[Any], lengths: set[Any]) -> Any:
    """A condition with lengths at zero, without factors that are lengths and without its number."""
    _, factors = _sympy().factor_list(p.subs(dict.fromkeys(zero, 0)))
    left = [x for x, _ in factors if not x.free_symbols <= lengths]
    if not left and p.subs(dict.fromkeys(zero, 0)) != 0:
        return _sympy().Integer(1)  # it asks for a length at zero
    return _sympy().Mul(*left) if left else _sympy().Integer(0)


def _sympy() -> Any:
    return package("sympy", "conditions with free lengths", "drevo[design]")


def _exact(x: Fraction) -> Any:
    return _sympy().Rational(x.numerator, x.denominator)


def in_ideal(p: Any, ideal: Sequence[Any]) -> bool:
    """True if the polynomial p is in the ideal. Generators that share no inertial parameter with p, nor with one
    that does, say nothing about it: they vanish where their own parameters do."""
    if p == 0:
        return True
    near = set(_bodily(p)[0])
    chosen: list[Any] = []
    waiting = {x: _bodily(x) for x in ideal}
    while meeting := [x for x, (own, apart) in waiting.items() if apart or not own.isdisjoint(near)]:
        chosen += meeting
        for x in meeting:
            near |= waiting.pop(x)[0]
    letters = sorted(set().union(p.free_symbols, *(x.free_symbols for x in chosen)), key=str)
    if not chosen or not letters:
        return any(x.is_number and x != 0 for x in chosen)
    return bool(_sympy().groebner(chosen, *letters, order="grevlex", domain=_sympy().QQ).contains(p))


@lru_cache(maxsize=4096)
def _bodily(p: Any) -> tuple[frozenset[Any], bool]:
    """The inertial parameters of a polynomial, and whether some of it is left where they vanish."""
    found = frozenset(s for s in p.free_symbols if not s.name.startswith("L_"))
    return found, p.subs(dict.fromkeys(found, 0)) != 0


def polynomial_conditions(
    parameters: Parameters, demands: Sequence[tuple[str, Monomial, Form, bool]], at_its_lengths: Callable[[], Any]
) -> PolynomialConditions:
    """One polynomial for each function of the coordinates in each element, reduced over the rationals, then in
    the ideal. demands: (element, monomial, form, whether the constant term must vanish too).
    """
    nq = parameters.tree.nq
    gathered: dict[tuple[str, Monomial], dict[Unknown, Fraction]] = {}
    for element, monomial, form, wholly in demands:
        motion = tuple(p for p in monomial if p[0] < nq)
        powers = tuple(p for p in monomial if p[0] >= nq)
        if motion != UNIT_MONOMIAL or wholly:
            row = gathered.setdefault((element, motion), {})
            for k, x in form.items():
                row[powers, k] = row.get((powers, k), Fraction(0)) + x
    columns = sorted({c for row in gathered.values() for c in row}, key=lambda c: (len(c[0]), c[1], c[0]))
    at = {c: k for k, c in enumerate(columns)}
    found = Space()
    for row in gathered.values():
        found.add({at[c]: x for c, x in row.items()})
    return _irredundant(PolynomialConditions(parameters, columns, list(found.rows.values()), at_its_lengths))


def _irredundant(conditions: PolynomialConditions) -> PolynomialConditions:
    """Simple ones first; what is in the ideal of those before it goes."""

    def degree(row: SparseRow) -> tuple[int, int]:
        return max(sum(a for _, a, _ in conditions.columns[c][0]) for c in row), len(row)

    kept: list[SparseRow] = []
    ideal: list[Any] = []
    for row in sorted(conditions.rows, key=degree):
        p = conditions.polynomial(row)
        if not in_ideal(p, ideal):
            kept.append(row)
            ideal.append(p)
    body = [min(conditions.parameters.all[conditions.columns[c][1]].body for c in row) for row in kept]
    order = sorted(range(len(kept)), key=lambda k: body[k])
    return replace(conditions, rows=[kept[k] for k in order])
