"""Compiled programs for sets of constraints of one form: the terms of their motion, with the solve behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..codegen.graph.program import Program
from ..compiler.formalisms import fastest
from ..compiler.tracer import Tracer
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.inertia_matrix import SparseRows, elimination_order, lower_rows
from ..mechanics.algorithms.passive import passive
from ..mechanics.scalar import Scalar, Vector, dot, is_zero
from ..model.description import Model
from .collection import all_rows
from .kinds import Constraint
from .numbers import Numbered, with_numbers
from .tail import SolveTail


class MotionTerms:
    """A program in the making: the state, and the rows of a set."""

    def __init__(
        self, name: str, model: Model, pattern: tuple[Constraint, ...], *state: str, acting: bool = False
    ) -> None:
        self.t = t = Tracer(name, model, acting=acting)
        self.tree, names = t.tree, ("q", "v", *state)
        self.given = dict(zip(names, t.state(*names)))
        self.q, self.v = self.given["q"], self.given["v"]
        (self.time,) = t.input("t", 1)
        count = len(Numbered.of(pattern).numbers)
        self.found = with_numbers(pattern, t.input("numbers", count) if count else [])

    def efforts_left(self, tau: Vector) -> list[Scalar]:
        """tau - h(q, v)."""
        h = fastest(self.tree, ["bias"])["bias"](self.tree, self.q, self.v)
        return [x - y for x, y in zip(tau, h)]

    def rows(self, v: Vector | None = None) -> ConstraintRows:
        """f, f', Gamma and gamma."""
        return all_rows(self.found, Kinematics(self.tree, self.q, self.v if v is None else v), self.time)

    def explicit(self) -> list[Scalar]:
        """f_t: f' at rest."""
        return self.rows([0.0] * len(self.v)).rate

    def solved(
        self, force: Vector, gamma: Vector, sides: Sequence[Vector], start: Vector = (),
        agree: bool = False, beside: Vector | None = None,
    ) -> Program:  # fmt: skip
        """M x = force + Gamma^T N, Gamma x + gamma = 0; the outputs are start + x and [N, rank, q, v].

        sides: what dependent rows must agree on; agree: on what they need too. beside: in place of q and v.
        """
        t, n, m = self.t, self.tree.nv, len(gamma)
        order, lower, M = self._structure()
        jacobian = self.rows().jacobian
        columns = [[row[v] for row in jacobian] for v in order]
        sides = [side for side in sides if not all(map(is_zero, side))]
        forced = not all(map(is_zero, force))
        tail = SolveTail(
            order, lower, touched_rows(columns, lower), m, bool(start), len(sides), agree, forced, self.tree.loose
        )  # fmt: skip
        t.output("motion", [0.0] * n)
        t.output("held", [*[0.0] * (m + 1), *((*self.q, *self.v) if beside is None else beside)])
        t.output("force", [force[v] for v in order] if forced else [])
        t.output("gamma", gamma)
        t.output("start", [start[v] for v in order] if start else [])
        t.output("sides", [x for side in sides for x in side])
        t.output("M", [M[k].get(j, 0.0) for k, row in enumerate(lower) for j in (*row, k)])
        t.output("rows", touched_entries(columns, tail.touched))
        return t.program(tail=tail)

    def _structure(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], SparseRows]:
        """The order of elimination, where the factor of M has entries, and M in that order."""
        order = tuple(elimination_order(self.tree))
        place = {v: i for i, v in enumerate(order)}
        M: SparseRows = [{} for _ in order]
        inertia = lower_rows(fastest(self.tree, ["mass_matrix"])["mass_matrix"](self.tree, self.q))
        for r, row in enumerate(inertia):
            for c, x in row.items():
                i, j = place[r], place[c]
                M[max(i, j)][min(i, j)] = x
        lower = [{j for j in row if j < k} for k, row in enumerate(M)]
        for k in range(len(order) - 1, -1, -1):
            for i in lower[k]:
                lower[i] |= {j for j in lower[k] if j < i}
        return order, tuple(tuple(sorted(row)) for row in lower), M


def touched_entries(columns: Sequence[Vector], touched: Sequence[tuple[int, int]]) -> list[Scalar]:
    """The entries of the rows that each rate moves, rate by rate."""
    return [x for column, ends in zip(columns, touched) for x in column[slice(*ends)]]


def touched_rows(columns: Sequence[Vector], lower: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """By rate, from the first to the last row that it moves, or that a half solve hands to it."""
    touched = [{r for r, x in enumerate(column) if not is_zero(x)} for column in columns]
    for i in range(len(touched) - 1, -1, -1):
        for j in lower[i]:
            touched[j] |= touched[i]
    return tuple((min(rows), max(rows) + 1) if rows else (0, 0) for rows in touched)


def accelerations_program(model: Model, pattern: tuple[Constraint, ...], fed: str = "") -> Program:
    """Accelerations under constraints; fed: "rows" or "matrices" where gains of a feedback are inputs too, or
    "passive" where the forces that act in the joints do."""
    acting = fed == "passive"
    fed = "" if acting else fed
    x = MotionTerms("constrained_dynamics", model, pattern, "tau", acting=acting)
    tau = x.given["tau"]
    if acting:
        tau = [y + p for y, p in zip(tau, passive(x.t.tree, x.q, x.v))]
    force, rows = x.efforts_left(tau), x.rows()
    gamma, sides = list(rows.bias), [rows.value, x.explicit()]
    if fed:
        gamma, sides = _fed_back(x.t, rows, fed), [*sides, rows.bias]
    return x.solved(force, gamma, sides, agree=not fed)


def _fed_back(t: Tracer, rows: ConstraintRows, fed: str) -> list[Scalar]:
    """gamma + damping f' + stiffness f."""
    m = len(rows.value)
    out: list[Any] = list(rows.bias)
    for name, x in (("damping", rows.rate), ("stiffness", rows.value)):
        if fed == "rows":
            out = [y + g * z for y, g, z in zip(out, t.input(name, m), x)]
        else:
            g = t.input(name, m * m)
            out = [y + dot(g[r * m : (r + 1) * m], x) for r, y in enumerate(out)]
    return out


def impact_program(model: Model, pattern: tuple[Constraint, ...]) -> Program:
    """Velocities after an impact, v + x with M x = Gamma^T N: f' after, f' + Gamma x, is -restitution f' before.

    f_t is what rates are asked for at rest.
    """
    x = MotionTerms("impact", model, pattern)
    (e,) = x.t.input("restitution", 1)
    gamma = [rate + e * rate for rate in x.rows().rate]
    return x.solved([0.0] * len(x.v), gamma, [x.explicit()], x.v)


def correction_program(model: Model, pattern: tuple[Constraint, ...]) -> Program:
    """Newton's step to f = 0, x with M x = Gamma^T N and f + Gamma x = 0, of least x.M x; f is told too."""
    x = MotionTerms("correction", model, pattern)
    gap = x.rows().value
    return x.solved([0.0] * len(x.v), gap, [], beside=gap)
