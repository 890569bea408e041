"""Conditions with lengths among the unknowns: polynomials, "L_2*d_x2 = 0"; ideals by SymPy's Groebner bases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..errors import InputError
from ..io.brief import brief, several
from ..mechanics.tree import build_tree
from ..model.description import Model
from . import expressions
from .linear import Row, Space
from .parameters import SNAP, Parameters
from .polynomial import ONE, Form, Monomial, rational

Column = tuple[Monomial, int]  # powers of lengths, parameter


def lengths_of(model: Model, names: Sequence[str]) -> frozenset[int]:
    """The bodies of lengths "L_2"; each must be along a coordinate axis of the parent."""
    bodies = {b.number: (i, b) for i, b in enumerate(build_tree(model, snap=SNAP).bodies)}
    out = set()
    for name in names:
        i, b = bodies.get(name[2:], (-1, None))
        if b is None or b.parent < 0 or sum(1 for x in b.p if x) != 1:
            raise InputError(
                f"free: {name!r} is no length that can be solved for: its offset must lie along one axis of its "
                "parent and not be zero"
            )
        out.add(i)
    return frozenset(out)


@brief
@dataclass(frozen=True, slots=True)
class Comparison:
    """What given equations are worth against the conditions. Texts, as given or as found.

    rank: independent given equations. implied: given ones that the conditions contain. missing: conditions that
    do not follow from the given equations. superfluous: given ones that the conditions do not ask for, or that
    follow from the given equations before them.
    """

    rank: int
    implied: tuple[str, ...]
    missing: tuple[str, ...]
    superfluous: tuple[str, ...]


@dataclass(slots=True)
class PolynomialConditions:
    """Conditions of which each is linear in the inertial parameters, with powers of the free lengths."""

    parameters: Parameters
    columns: list[Column]
    rows: list[Row]
    _symbols: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return "\n".join(self.equations)

    def __repr__(self) -> str:
        return several("conditions", self.equations)

    @property
    def equations(self) -> tuple[str, ...]:
        """The conditions as text."""
        return tuple(f"{self._text(row)} = 0" for row in self.rows)

    def _text(self, row: Row) -> str:
        out = ""
        for c in sorted(row, key=lambda c: (self.parameters.all[self.columns[c][1]].body, self.columns[c])):
            powers, k = self.columns[c]
            size = [] if abs(row[c]) == 1 else [str(abs(row[c]))]
            name = "*".join([*size, *self._letters(powers), self.parameters.all[k].name])
            sign = "-" if row[c] < 0 else "+"
            out += f" {sign} {name}" if out else (f"-{name}" if sign == "-" else name)
        return out

    def _letters(self, powers: Monomial) -> list[str]:
        first, bodies = self.parameters.tree.nq, self.parameters.tree.bodies
        return [f"L_{bodies[k - first].number}" + (f"^{a}" if a > 1 else "") for k, a, _ in powers]

    def compare(self, equations: Sequence[str]) -> Comparison:
        """Which of the given equations follow from the conditions, and which conditions they leave out."""
        own = [self._polynomial(x) for x in self.equations]
        given: list[Any] = []
        implied, superfluous, rank = [], [], 0
        for text in [equations] if isinstance(equations, str) else equations:
            for name, p in self._read(text):
                needed, fresh = self._follows(p, own), not self._follows(p, given)
                implied += [name] if needed else []
                superfluous += [name] if not (needed and fresh) else []
                rank += fresh
                given.append(p)
        missing = []
        for name, p in zip(self.equations, own):
            if not self._follows(p, given):
                missing.append(name)
                given.append(p)
        return Comparison(rank, tuple(implied), tuple(missing), tuple(superfluous))

    def _follows(self, p: Any, ideal: Sequence[Any]) -> bool:
        import sympy

        letters = sorted(set().union(*(x.free_symbols for x in (p, *ideal))), key=str)
        if p == 0 or not ideal or not letters:
            return bool(p == 0)
        return bool(sympy.groebner(ideal, *letters, order="grevlex").contains(p))

    def _read(self, text: str) -> list[tuple[str, Any]]:
        sides = expressions.read(text)
        if len(sides) < 2:
            raise InputError(f"condition {text.strip()!r} has no '='")
        values = [self._value(s) for s in sides]
        last = expressions.text(sides[-1])
        return [(f"{expressions.text(s)} = {last}", (x - values[-1]).expand()) for s, x in zip(sides[:-1], values)]

    def _polynomial(self, text: str) -> Any:
        return self._read(text)[0][1]

    def _value(self, node: expressions.Node) -> Any:
        import sympy

        return sympy.sympify(expressions.value(node, self._named, lambda t: sympy.Rational(str(Fraction(t)))))

    def _named(self, name: str) -> Any:
        import sympy

        free = {x for powers, _ in self.columns for x in self._letters(powers)}
        if name in self.parameters.index or name in free:
            return self._symbols.setdefault(name, sympy.Symbol(name))
        body = self.parameters.by_number.get(re.sub(r"^L_", "", name), -1)
        if body < 0:
            raise InputError(f"condition: {name!r} is neither an inertial parameter nor a length here")
        (length,) = [abs(x) for x in self.parameters.tree.bodies[body].p if x] or [0.0]
        return sympy.Rational(str(rational(length))) if length else sympy.Integer(0)


def polynomial_conditions(
    parameters: Parameters, demands: Sequence[tuple[str, Monomial, Form, bool]]
) -> PolynomialConditions:
    """One polynomial for each function of the coordinates in each element, reduced over the rationals, then in
    the ideal. demands: (element, monomial, form, whether the constant term must vanish too).
    """
    nq = parameters.tree.nq
    gathered: dict[tuple[str, Monomial], dict[Column, Fraction]] = {}
    for element, monomial, form, wholly in demands:
        motion = tuple(p for p in monomial if p[0] < nq)
        powers = tuple(p for p in monomial if p[0] >= nq)
        if motion != ONE or wholly:
            row = gathered.setdefault((element, motion), {})
            for k, x in form.items():
                row[powers, k] = row.get((powers, k), Fraction(0)) + x
    columns = sorted({c for row in gathered.values() for c in row}, key=lambda c: (len(c[0]), c[1], c[0]))
    at = {c: k for k, c in enumerate(columns)}
    found = Space()
    for row in gathered.values():
        found.add({at[c]: x for c, x in row.items()})
    return _irredundant(PolynomialConditions(parameters, columns, list(found.rows.values())))


def _irredundant(conditions: PolynomialConditions) -> PolynomialConditions:
    """Simple ones first; what is in the ideal of those before it goes."""

    def degree(row: Row) -> tuple[int, int]:
        return max(sum(a for _, a, _ in conditions.columns[c][0]) for c in row), len(row)

    kept: list[Row] = []
    ideal: list[Any] = []
    for row in sorted(conditions.rows, key=degree):
        p = conditions._polynomial(conditions._text(row) + " = 0")
        if not conditions._follows(p, ideal):
            kept.append(row)
            ideal.append(p)
    body = [min(conditions.parameters.all[conditions.columns[c][1]].body for c in row) for row in kept]
    order = sorted(range(len(kept)), key=lambda k: body[k])
    return PolynomialConditions(conditions.parameters, conditions.columns, [kept[k] for k in order])


__all__ = ["Comparison", "PolynomialConditions", "lengths_of", "polynomial_conditions"]
