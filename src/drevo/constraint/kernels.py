"""Compiled programs for sets of constraints of one form: the terms of their motion, with the solve behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.graph.program import Program
from ..compiler.formalisms import fastest, framed_plan
from ..compiler.tracer import Tracer
from ..mechanics.algorithms.constraints import NO_ROWS, ConstraintRows, Kinematics
from ..mechanics.algorithms.inertia_matrix import SparseRows, elimination_order, lower_rows
from ..mechanics.algorithms.kinematics import body_poses
from ..mechanics.algorithms.passive import coasts, passive
from ..mechanics.formalisms import khalil_forward, khalil_matrix
from ..mechanics.formalisms.khalil_held import RecursionKinematics
from ..mechanics.scalar import Scalar, Vector, dot, is_zero
from ..mechanics.tree import Tree
from ..mechanics.tree_indices import ancestors
from ..model.description import Model
from .collection import all_rows
from .kinds import Constraint
from .numbers import Numbered, with_numbers
from .tail import SolveTail


class MotionTerms:
    """A program in the making: the state, the rows of a set, M; of any tree."""

    tree: Tree

    def __init__(self, t: Tracer, pattern: tuple[Constraint, ...], *state: str, turning: bool = True) -> None:
        """turning: rows of vectors may be along other axes than the world's."""
        self.t, self.turning, self.tree = t, turning, t.tree
        names = ("q", "v", *state)
        self.given = dict(zip(names, t.state(*names)))
        self.q, self.v = self.given["q"], self.given["v"]
        (self.time,) = t.input("t", 1)
        count = len(Numbered.of(pattern).numbers)
        self.found = with_numbers(pattern, t.input("numbers", count) if count else [])
        self.M = self.inertia()

    def inertia(self) -> SparseRows:
        """M."""
        return lower_rows(fastest(self.tree, ["mass_matrix"])["mass_matrix"](self.tree, self.q))

    def efforts_left(self, tau: Vector) -> tuple[list[Scalar], dict[int, Scalar]]:
        """tau - ID(q, v, start), and the accelerations to start from."""
        h = fastest(self.tree, ["bias"])["bias"](self.tree, self.q, self.v)
        return [x - y for x, y in zip(tau, h)], {}

    def rows(self, start: Mapping[int, Scalar] | None = None, v: Vector | None = None) -> ConstraintRows:
        """f, f', Gamma and gamma, or Gamma a + gamma of the accelerations to start from."""
        return all_rows(self.found, Kinematics(self.tree, self.q, self.v if v is None else v), self.time)

    def explicit(self) -> list[Scalar]:
        """f_t: f' at rest."""
        return self.rows(v=[0.0] * len(self.v)).rate

    def is_turned(self, c: Constraint) -> bool:
        """True if the rows of the constraint are, in threes, along the axes of the base."""
        return False

    def solved(
        self, force: Vector, gamma: Vector, sides: Sequence[Vector], start: Mapping[int, Scalar] | None = None,
        agree: bool = False, beside: Vector | None = None,
    ) -> Program:  # fmt: skip
        """M x = force + Gamma^T N, Gamma x + gamma = 0; the outputs are start + x and [N, rank, q, v].

        sides: what dependent rows must agree on; agree: on what they need too. beside: in place of q and v.
        """
        t, n, m = self.t, self.tree.nv, len(gamma)
        order, lower, M = self._structure()
        jacobian = self.rows().jacobian
        columns = [[row[v] for row in jacobian] for v in order]
        found = {i: x for i, x in (start or {}).items() if not is_zero(x)}
        sides = [side for side in sides if not all(map(is_zero, side))]
        forced = not all(map(is_zero, force))
        turned = self._turned_rows()
        tail = SolveTail(
            order, lower, touched_rows(columns, lower), m, tuple(found), len(sides), agree, forced, turned,
            self.tree.loose,
        )  # fmt: skip
        t.output("motion", [0.0] * n)
        t.output("held", [*[0.0] * (m + 1), *((*self.q, *self.v) if beside is None else beside)])
        t.output("force", [force[v] for v in order] if forced else [])
        t.output("gamma", gamma)
        t.output("start", [*found.values()])
        t.output("turn", [x for row in body_poses(self.tree, self.q)[0].R for x in row] if turned else [])
        t.output("sides", [x for side in sides for x in side])
        for k, first, last in tail.blocks:
            t.output(f"M_{k}_{first}", [M[k].get(j, 0.0) for j in range(first, last)])
        for i in tail.moving:
            t.output(f"rows_{i}", columns[i][slice(*tail.touched[i])])
        return t.program(tail=tail)

    def _structure(self) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], SparseRows]:
        """The order of elimination, where the factor of M has entries, and M in that order."""
        order = tuple(elimination_order(self.tree))
        place = {v: i for i, v in enumerate(order)}
        M: SparseRows = [{} for _ in order]
        for r, row in enumerate(self.M):
            for c, x in row.items():
                i, j = place[r], place[c]
                M[max(i, j)][min(i, j)] = x
        lower = [{j for j in row if j < k} for k, row in enumerate(M)]
        for k in range(len(order) - 1, -1, -1):
            for i in lower[k]:
                lower[i] |= {j for j in lower[k] if j < i}
        return order, tuple(tuple(sorted(row)) for row in lower), M

    def _turned_rows(self) -> tuple[int, ...]:
        out, at = list[int](), 0
        for c in self.found:
            out += range(at, at + c.size, 3) if self.is_turned(c) else ()
            at += c.size
        return tuple(out)


class FramedTerms(MotionTerms):
    """A program in the making, its tree in frames that the recursions of M, the efforts and points share."""

    def inertia(self) -> SparseRows:
        self.tree = framed_plan(self.tree).prepare(self.tree)
        return khalil_matrix.mass_matrix_rows(self.tree, self.q, sums=False)

    def efforts_left(self, tau: Vector) -> tuple[list[Scalar], dict[int, Scalar]]:
        return khalil_forward.remaining_efforts(self.tree, self.q, self.v, tau, parallel=False)

    def rows(self, start: Mapping[int, Scalar] | None = None, v: Vector | None = None) -> ConstraintRows:
        u, total = self.v if v is None else v, NO_ROWS
        made = {
            at_base: RecursionKinematics(self.tree, self.q, u, bool(start), at_base)
            for at_base in {self.is_turned(c) for c in self.found}
        }
        for c in self.found:
            k = made[self.is_turned(c)]
            rows = self._seen(c).rows(k, self.time)
            if start and not c.on_points:
                moved = [dot([row[i] for i in start], [*start.values()]) for row in rows.jacobian]
                rows = rows._replace(bias=[x + y for x, y in zip(rows.bias, moved)])
            total = total + rows
        return total

    def _seen(self, c: Constraint) -> Constraint:
        """A contact as seen from the base, where the columns of the base's own rates are zeros and ones."""
        return c.seen_from(*body_poses(self.tree, self.q)[0]) if self.is_turned(c) else c

    def is_turned(self, c: Constraint) -> bool:
        if not self.turning or c.held_point is None:
            return False
        body, base = self.tree.frames[c.held_point[0]].body, self.tree.bodies[0]
        return base.kind == "free" and base.parent < 0 and 0 in ancestors(self.tree.parents, body)


def touched_rows(columns: Sequence[Vector], lower: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    """By rate, from the first to the last row that it moves, or that a half solve hands to it."""
    found = [{r for r, x in enumerate(column) if not is_zero(x)} for column in columns]
    for i in range(len(found) - 1, -1, -1):
        for j in lower[i]:
            found[j] |= found[i]
    return tuple((min(rows), max(rows) + 1) if rows else (0, 0) for rows in found)


def motion_terms(
    name: str, model: Model, pattern: tuple[Constraint, ...], *state: str, turning: bool = True,
    acting: bool = False,
) -> MotionTerms:  # fmt: skip
    t = Tracer(name, model, acting=acting)
    kind = MotionTerms if t.tree.formulas or coasts(t.tree) else FramedTerms
    return kind(t, pattern, *state, turning=turning)


def accelerations_program(model: Model, pattern: tuple[Constraint, ...], fed: str = "") -> Program:
    """Accelerations under constraints; fed: "rows" or "matrices" where gains of a feedback are inputs too, or
    "passive" where the forces that act in the joints do."""
    acting = fed == "passive"
    fed = "" if acting else fed
    # gains are those of given rows
    x = motion_terms("constrained_dynamics", model, pattern, "tau", turning=not fed, acting=acting)
    tau = x.given["tau"]
    if acting:
        tau = [y + p for y, p in zip(tau, passive(x.t.tree, x.q, x.v))]
    force, start = x.efforts_left(tau)
    rows = x.rows(start)
    gamma, sides = list(rows.bias), [rows.value, x.explicit()]
    if fed:
        gamma, sides = _fed_back(x.t, rows, fed), [*sides, rows.bias]
    return x.solved(force, gamma, sides, start, not fed)


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
    x = motion_terms("impact", model, pattern)
    (e,) = x.t.input("restitution", 1)
    gamma = [rate + e * rate for rate in x.rows().rate]
    return x.solved([0.0] * len(x.v), gamma, [x.explicit()], dict(enumerate(x.v)))


def correction_program(model: Model, pattern: tuple[Constraint, ...]) -> Program:
    """Newton's step to f = 0, x with M x = Gamma^T N and f + Gamma x = 0, of least x.M x; f is told too."""
    x = motion_terms("correction", model, pattern, turning=False)  # f is of given rows
    gap = x.rows().value
    return x.solved([0.0] * len(x.v), gap, [], beside=gap)
