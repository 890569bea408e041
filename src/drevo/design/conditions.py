"""Conditions on the parameters under which elements of the inertia matrix, or the potential energy, are constant.

Every element is a sum over independent functions of the coordinates (polynomial.py), its coefficients linear in
the inertial parameters. The coefficients that must vanish, reduced by exact elimination, are the necessary and
sufficient conditions. Telegin 2025, example 3, asks for them.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..errors import InputError, TraceError, shown
from ..io.given import asked, flag
from ..io.reprs import brief_list
from ..mechanics.algorithms.energy import potential_energy
from ..mechanics.formalisms.telegin import elements
from ..mechanics.scalar import Scalar
from ..mechanics.tree import plain_tree
from ..model.description import Model
from ..model.draft import model_of
from ..robot.face import Robot
from . import expressions
from .free_lengths import (
    Comparison,
    PolynomialConditions,
    lengths_of,
    polynomial_conditions,
    sides_of,
    snapped_to_known,
    texts,
)
from .parameters import SNAP, Coefficients, Parameters
from .polynomial import NUMBER, UNIT_MONOMIAL, Form, Monomial, Space, SparseRow, space

CONSTANT = ("mass_matrix", "potential_energy")
EQUAL_COEFFICIENTS = 1e-12


@dataclass(frozen=True, slots=True)
class Demand:
    """One coefficient that must vanish: of a monomial in an element."""

    element: str
    monomial: Monomial
    row: SparseRow
    wholly: bool = False  # the element must vanish, its constant term too

    def what(self, parameters: Parameters) -> str:
        """The coefficient in words."""
        return f"the coefficient of {monomial_text(parameters, self.monomial)} in {self.element}"


def monomial_text(parameters: Parameters, m: Monomial) -> str:
    """c_2^2*s_3 as cos(q_2)^2*sin(q_3); of a slide q_2^2."""
    turns = {b.q for b in parameters.tree.bodies if b.kind == "revolute"}
    parts = []
    for k, a, b in m:
        name = f"cos(q_{k + 1})" if k in turns else f"q_{k + 1}"
        parts += [name + (f"^{a}" if a > 1 else "")] if a else []
        parts += [f"sin(q_{k + 1})"] if b else []
    return "*".join(parts) or "1 (the constant term)"


@dataclass(slots=True, eq=False)
class Conditions:
    """Irredundant conditions, grouped by the body they concern, and what remains under them."""

    robot: Any
    parameters: Parameters
    demands: list[Demand]
    constants: dict[tuple[int, int], Form]  # constant terms of the elements
    space: Space
    free: frozenset[int]
    gravity_remains: tuple[int, ...] = ()
    _names: Coefficients = field(init=False)

    def __post_init__(self) -> None:
        self._names = Coefficients(self.parameters)

    def __len__(self) -> int:
        return len(self.space)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Conditions):
            return NotImplemented
        mine, others = ((c.equations, c.gravity_remains, c.free) for c in (self, other))
        return mine == others

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join(f"body {body}: {'; '.join(rows)}" for body, rows in self.by_body.items())

    def __repr__(self) -> str:
        return brief_list("conditions", self.equations)

    @property
    def equations(self) -> tuple[str, ...]:
        """The conditions as text, body by body; `compare` takes the same text."""
        return tuple(self.text(row) + " = 0" for _, row in self._ordered())

    @property
    def by_body(self) -> dict[str, tuple[str, ...]]:
        """Conditions by the number of the body they concern."""
        out: dict[str, tuple[str, ...]] = {}
        for pivot, row in self._ordered():
            number = self.parameters.tree.bodies[self.parameters.all[pivot].body].number
            out[number] = (*out.get(number, ()), self.text(row) + " = 0")
        return out

    def _ordered(self) -> list[tuple[int, SparseRow]]:
        return sorted(self.space.rows.items(), key=lambda r: (self.parameters.all[r[0]].body, r[0]))

    def text(self, row: Form) -> str:
        """A linear form in the paper's notation."""
        known = self.parameters.all
        total = max((known[k].length for k in row if k != NUMBER), default=0)
        total = max(total, 2) if not self.space.rows.values() or row not in self.space.rows.values() else total
        out = ""
        for k in sorted(row, key=lambda k: (known[k].body, k) if k != NUMBER else (10**9, 0)):
            x = row[k]
            sign = "-" if x < 0 else "+"
            size = self._names.text(abs(x), total - known[k].length, known[k].body) if k != NUMBER else str(abs(x))
            if size.startswith("-"):  # a length component along minus an axis
                sign, size = ("+" if sign == "-" else "-"), size[1:]
            name = known[k].name if k != NUMBER else ""
            term = "*".join(t for t in (size if size != "1" or not name else "", name) if t)
            out += f" {sign} {term}" if out else (f"-{term}" if sign == "-" else term)
        return out or "0"

    @property
    def M(self) -> list[list[str]]:
        """The matrix under the conditions, entries as text; elements that still vary say so."""
        n = self.parameters.tree.nv
        out = [["0"] * n for _ in range(n)]
        varying = self._varying
        for (r, c), form in self.constants.items():
            value = f"{self.parameters.label(r, c)}(q)" if (r, c) in varying else self.text(self._remaining(form))
            out[r][c] = out[c][r] = value
        return out

    def _remaining(self, form: Form) -> Form:
        """A form under the conditions, with the fewest parameters that elimination in either way leaves."""
        return min((form, self.space.reduced(form)), key=len) if not self.space.holds(form) else {}

    @property
    def _varying(self) -> set[tuple[int, int]]:
        out = set()
        for d in self.demands:
            if d.monomial != UNIT_MONOMIAL and d.element.startswith("H_") and not self.space.holds(d.row):
                out.add(self.parameters.element(d.element))
        return out

    @property
    def motion(self) -> tuple[str, ...]:
        """The equations of motion under the conditions: linear with constant coefficients where M is constant."""
        return self._motion(self.M)

    def motion_of(self, robot: Robot | Model) -> tuple[str, ...]:
        """The equations of motion with the numbers of a robot that meets the conditions."""
        tree = plain_tree(model_of(robot, "motion_of"), "motion_of", SNAP)
        values = self.parameters.values(tree)
        rows = self.M
        for (r, c), form in self.constants.items():
            if rows[r][c] != "0" and (r, c) not in self._varying:
                number = sum(float(x) * values[k] for k, x in form.items())
                rows[r][c] = rows[c][r] = f"{number:.12g}"
        return self._motion(rows)

    def _motion(self, rows: list[list[str]]) -> tuple[str, ...]:
        lines, moving = [], any("(q)" in x for row in rows for x in row)
        for r, row in enumerate(rows):
            terms = [f"({x})*a_{c + 1}" if " " in x else f"{x}*a_{c + 1}" for c, x in enumerate(row) if x != "0"]
            terms += [f"h_{r + 1}(q, v)"] if moving else []
            terms += [f"g_{r + 1}(q)"] if r in self.gravity_remains else []
            lines.append(f"{' + '.join(terms) or '0'} = tau_{r + 1}")
        return tuple(lines)

    # -- given equations ------------------------------------------------------------------------------------

    def compare(self, equations: Sequence[str]) -> Comparison:
        """Finds given equations ("d_x4 = d_y4 = 0", "I_3^y - I_3^x = m_4*L_4^2") that the conditions contain."""
        given = Space()
        implied, superfluous = [], []
        for text in texts("compare", equations):
            for name, row in self._read(text):
                needed = self.space.holds(row)
                fresh = given.add(row) is not None
                if needed:
                    implied.append(name)
                if not (needed and fresh):
                    superfluous.append(name)
        missing, known = [], space(given.rows.values())
        for _, row in self._ordered():
            if known.add(row) is not None:
                missing.append(self.text(row) + " = 0")
        return Comparison(len(given), tuple(implied), tuple(missing), tuple(superfluous))

    def _read(self, text: str) -> list[tuple[str, SparseRow]]:
        """The rows of a chain of equalities, each with its own text."""
        sides, exact = sides_of(text), self.parameters.algebra.exact
        try:
            values = [expressions.value(s, self._name, lambda t: exact(Fraction(t))) for s in sides]
        except ZeroDivisionError:
            raise InputError(f"condition {shown(text.strip())} divides by zero") from None
        last = expressions.formula_text(sides[-1])
        out = []
        known = {abs(c) for row in self.space.rows.values() for c in row.values()}
        for side, x in zip(sides[:-1], values):
            row = self.parameters.forms(x - values[-1]).get(UNIT_MONOMIAL, {})
            row = {k: snapped_to_known(c, known) for k, c in row.items()}
            if NUMBER in row:
                raise InputError(f"condition {shown(text.strip())} has a term without inertial parameters")
            out.append((f"{expressions.formula_text(side)} = {last}", row))
        return out

    def _name(self, name: str) -> Scalar:
        known = self.parameters
        if name in known.index:
            return known.algebra.symbol(name)
        body = known.by_number.get(re.sub(r"^[A-Za-z]+_o?", "", name), -1)
        if name.startswith("m_o") and body >= 0:
            return known.sum_of(known.own_mass(body))
        length = known.length(name)
        if length is not None:
            return known.algebra.exact(length)
        raise InputError(
            f"condition: {name!r} is no parameter here; there are m_4, m_o4, d_x3, I_3^x, I_3^yz, L_4 and x_23^e, "
            f"with the bodies {', '.join(known.by_number)}"
        )

    def realise(
        self, bodies: Sequence[str] | None = None, counterweights: bool = True, reach: float = 0.5,
        density: float | None = None, proportions: Sequence[float] = (1.0, 1.0, 1.0),
    ) -> Robot:  # fmt: skip
        """A robot that meets the conditions, by the least added mass; see `drevo.design.realise`."""
        from .realise import realise

        model = model_of(self.robot, "realise")
        given = bodies, counterweights, reach, density, proportions
        return realise(model, self.parameters, self.space, *given)


@asked
def conditions(
    robot: Robot | Model,
    constant: str | Sequence[Any] | None = None,
    zero: Sequence[Any] = (),
    diagonal: bool = False,
    free: Sequence[str] | None = None,
) -> Conditions | PolynomialConditions:
    """The exact necessary and sufficient conditions on the inertial parameters.

    constant: "mass_matrix", "potential_energy" (or both), elements such as "H_21" or (2, 1). zero: elements that
    must vanish. diagonal: all elements beside the diagonal must vanish. free: parameters to solve for, by name
    or pattern ("d_*", "I_3^*"); by default all inertial ones, the robot's lengths being kept. A placement that is
    no quarter turn is taken as the nearest rotation with rational entries. With lengths such as "L_2" among the
    free, these and all inertial parameters are, and the conditions are polynomials.
    """
    model = model_of(robot, "conditions")
    free = None if free is None else texts("free", free)
    letters = [x for x in free or () if x.startswith("L_")]
    parameters = Parameters(model, lengths_of(model, letters))
    solved = _free(parameters, None if free is None else [x for x in free if x not in letters])
    H = {key: parameters.forms(x) for key, x in elements(parameters.symbolic, parameters.q, "paper").items()}
    V = parameters.forms(potential_energy(parameters.symbolic, parameters.q))
    varied, vanish = _wanted(parameters, constant, zero, diagonal)
    demands = _demands(parameters, H, V, varied, vanish)
    if letters:
        at_its_lengths = partial(conditions, robot, constant, zero, diagonal)
        listed = [(d.element, d.monomial, d.row, d.wholly) for d in demands]
        return polynomial_conditions(parameters, listed, at_its_lengths)
    _possible(parameters, demands)
    found = _solve(parameters, demands, solved)
    _possible(parameters, [Demand("the matrix", UNIT_MONOMIAL, row) for row in found.rows.values()])
    constants = {key: f.get(UNIT_MONOMIAL, {}) for key, f in H.items()}
    turning = {k for m, f in V.items() if not found.holds(f) for k, *_ in m}
    rates = tuple(sorted({b.v for b in parameters.tree.bodies if b.q in turning}))
    return Conditions(robot, parameters, demands + _others(parameters, H), constants, found, solved, rates)


def _wanted(
    parameters: Parameters, constant: str | Sequence[Any] | None, zero: Sequence[Any], diagonal: bool
) -> tuple[set[object], set[object]]:
    """Elements that must be constant ("V" is the potential energy), and those that must vanish."""
    asked = _elements("constant", constant)
    n = parameters.tree.nv
    varied: set[object] = set()
    for x in asked:
        if isinstance(x, str) and x == "mass_matrix":
            varied |= {(r, c) for r in range(n) for c in range(r + 1)}
        elif isinstance(x, str) and x == "potential_energy":
            varied.add("V")
        else:
            varied.add(parameters.element(x))
    vanish: set[object] = {parameters.element(x) for x in _elements("zero", zero)}
    if flag("conditions: diagonal", diagonal):
        vanish |= {(r, c) for r in range(n) for c in range(r)}
    if not varied | vanish:
        raise InputError(
            f"conditions: say what must be constant ({', '.join(CONSTANT)} or elements) or zero, by "
            'constant="mass_matrix" or --constant mass_matrix on the command line'
        )
    return varied, vanish


def _elements(name: str, given: object) -> list[object]:
    """The labels that were asked for, as a list: none, one or several."""
    if given is None or isinstance(given, str):
        return [] if given is None else [given]
    if not np.iterable(given):
        raise InputError(f"conditions: {name} is {shown(given)}; give a name such as 'H_21', or a list of them")
    return list(given)


def _demands(
    parameters: Parameters,
    H: dict[tuple[int, int], dict[Monomial, Form]],
    V: dict[Monomial, Form],
    varied: set[object],
    vanish: set[object],
) -> list[Demand]:
    out = []
    for key, form in H.items():
        for m, row in form.items():
            if (key in varied and m != UNIT_MONOMIAL) or key in vanish:
                out.append(Demand(parameters.label(*key), m, row, key in vanish))
    if "V" in varied:
        out += [Demand("the potential energy", m, row) for m, row in V.items() if m != UNIT_MONOMIAL]
    return out


def _others(parameters: Parameters, H: dict[tuple[int, int], dict[Monomial, Form]]) -> list[Demand]:
    """Coefficients that nobody asked to vanish: they tell which elements still vary."""
    return [
        Demand(parameters.label(*key), m, row)
        for key, f in H.items()
        for m, row in f.items()
        if m != UNIT_MONOMIAL
    ]


def _possible(parameters: Parameters, demands: Sequence[Demand]) -> None:
    """A sum of masses and moments of inertia, all with one sign, vanishes for no body."""
    for d in demands:
        known = [parameters.all[k] for k in d.row]
        if all(p.kind in tuple("xyzm") for p in known) and len({x > 0 for x in d.row.values()}) == 1:
            names = ", ".join(p.name for p in known)
            how = "vanish" if d.wholly else "be constant"
            why = (
                d.what(parameters)
                if d.monomial != UNIT_MONOMIAL or d.wholly
                else "a sum that the conditions ask to vanish"
            )
            raise TraceError(
                f"{d.element} cannot {how}: {why} is made of masses and moments of inertia with one sign "
                f"({names}), which no bodies bring to zero"
            )


def _free(parameters: Parameters, free: Sequence[str] | None) -> frozenset[int]:
    if free is None:
        return frozenset(range(len(parameters.all)))
    out: set[int] = set()
    for pattern in free:
        hits = {k for name, k in parameters.index.items() if fnmatch.fnmatchcase(name, pattern)}
        if not hits:
            raise InputError(
                f"free: {pattern!r} names no inertial parameter; there are names like m_2, d_x2, I_2^x, I_2^xy "
                "(lengths are kept)"
            )
        out |= hits
    return frozenset(out)


def _solve(parameters: Parameters, demands: Sequence[Demand], free: frozenset[int]) -> Space:
    """Solved for free parameters first; what holds fixed ones only must hold by the robot's numbers."""
    values = parameters.values()
    found, fixed = Space(free), Space(free)
    for d in demands:
        pivot = found.add(d.row)
        if pivot is not None and pivot not in free:
            row = found.rows[pivot]
            size = sum(abs(float(x) * values[k]) for k, x in row.items())
            if abs(sum(float(x) * values[k] for k, x in row.items())) > EQUAL_COEFFICIENTS * size:
                raise TraceError(
                    f"no choice of the free parameters makes {d.what(parameters)} vanish, with "
                    f"{', '.join(parameters.all[k].name for k in row)} as the robot has them"
                )
            fixed.add(row)
    for pivot in fixed.rows:
        found.rows.pop(pivot, None)
    return found
