"""Constrained dynamics and their derivatives as programs: for texts, other processors and derivatives.

Rows that are independent at a configuration are eliminated by the Schur complement (2.19); the reactions of least
norm are N = C (C^T C)^-1 N_k, where Gamma = C Gamma_k expresses all rows by those that are kept. A derivative
solves the same equations for the changes, Zaremba (4.1) and the linearised (2.18); higher ones differentiate this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial as given_first
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..codegen.graph.derivative import partial
from ..codegen.graph.program import Program
from ..compiler.compile_cost import require_affordable, require_linearisable
from ..compiler.differentiate import differentiated, put
from ..compiler.formalisms import fastest
from ..compiler.packing import falling
from ..compiler.trace import requested, trace
from ..compiler.tracer import Tracer, unknowns
from ..errors import InputError, NumericsError, TraceError, one_of
from ..io.given import asked, flag
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.derivatives import displaced, variables
from ..mechanics.algorithms.inertia_matrix import Factors, factorised
from ..mechanics.algorithms.passive import passive as passive_forces
from ..mechanics.algorithms.schur import Schur
from ..mechanics.configuration import neutral, state
from ..mechanics.formalisms.constrained_page import PAPER_LETTERS, constrained_lines
from ..mechanics.scalar import Scalar, Vector, dot, is_zero
from ..mechanics.tree import Tree
from ..model.description import Model
from ..model.draft import axes_in, expect_robot
from ..model.dynamics import Dynamics
from ..model.quantities import Quantity
from ..model.regularity import require_masses
from .checks import feedback
from .closing import assemble
from .collection import all_rows, collect, labels
from .kinds import Constraint
from .prepared import Contacts
from .solve import factor_of, independent_rows
from .terms import constraint_terms

QUANTITY = "constrained_dynamics"
PROGRAM_VARIABLES = ("q", "v", "tau")
LEAST_SINE_SQUARE = 1e-10  # squared sine below which a row follows from the others
COMPARED_DISTANCE = (
    0.1  # rad or m: how far from neutral the configuration is where rows are compared, if none is given
)


@dataclass(frozen=True)
class Constrained:
    """Constraints of a program, and the rows of them that are independent; feedback: damping, stiffness by row."""

    model: Model
    found: tuple[Constraint, ...]
    kept: tuple[int, ...]
    feedback: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    passive: bool = False

    @staticmethod
    @given_first(asked, name=QUANTITY)
    def of(
        robot: Dynamics, contacts: Contacts = None, constraints: Sequence[Constraint] | None = None,
        stabilise: tuple[ArrayLike, ArrayLike] | None = None, passive: bool = False, at: ArrayLike | None = None,
    ) -> Constrained:  # fmt: skip
        """at: a configuration on the constraints, away from dead points, at which rows are compared."""
        expect_robot(robot, QUANTITY)
        require_masses(robot.model, QUANTITY)
        collected = collect(robot.model, contacts, constraints)
        require_affordable(robot.model, ["inverse_mass_matrix"])
        size, gains = sum(c.size for c in collected), None
        if stabilise is not None:
            given = feedback(stabilise, size)
            if any(g.ndim == 2 for g in given):
                raise InputError(f"{QUANTITY}: stabilise takes numbers here, or one for each row, no matrix")
            gains = tuple(given[0].tolist()), tuple(given[1].tolist())
        kept = _independent(robot, collected, contacts, constraints, at)
        return Constrained(robot.model, collected, kept, gains, flag(f"{QUANTITY}: passive", passive))

    def program(self, wrt: tuple[str, ...] = (), name: str = "") -> Program:
        """a and N of (q, v, tau, t), or their derivatives, one more axis for each name in wrt."""
        if wrt:
            require_linearisable(self.model, [link for c in self.found for link in c.links])
        power = str(len(wrt)) if len(wrt) > 1 else ""
        title = "_".join([f"d{power}{QUANTITY}", *(f"d{s}" for s in wrt)]) if wrt else QUANTITY
        t = Tracer(name or title, self.model, acting=self.passive)
        (q, v, tau), (time,) = t.state(*PROGRAM_VARIABLES), t.input("t", 1)
        m, n = sum(c.size for c in self.found), self.model.nv
        if not wrt:
            a, N = self.solved(t.tree, q, v, tau, time)[:2]
            t.output("a", a)
            t.output("N", N)
        else:
            d = unknowns(t.graph, "d", n)
            rows = self.slopes(t.tree, q, v, tau, time, d, wrt[0])
            by = {"q": variables(t.tree, q, q), "v": v, "tau": tau}
            derivatives = differentiated(rows, by, wrt[:1], wrt[1:])
            rows = {falling(k, 1, wrt): x for k, x in derivatives.items()}
            axes = (n,) * len(wrt)
            for out, first, size in (("a", 0, n), ("N", n, m)):
                every = (falling((first + k[0], *k[1:]), 1, wrt) for k in product(range(size), *map(range, axes)))
                entries = [rows.get(k, 0.0) for k in every]
                t.output(f"d{power}{out}", entries, (size, *axes))
        order = f"Reactions, in this order: {', '.join(labels(self.found))}."
        about = f"derivative of {QUANTITY} by {', '.join(wrt)}" if wrt else QUANTITY
        program = t.program(quantity=about, formalism="newton_euler", wrt=wrt, assumptions=[order] if m else [])
        return _timeless(program)

    def page(self, formalism: str, **how: Any) -> Program:
        """a and N of (q, v, tau, t) line by line, in the letters of Kovalchuk or Zaremba; how: of `trace`."""
        paper = one_of(f"{QUANTITY}: formalism", formalism, ("auto", *PAPER_LETTERS)).replace("auto", "zaremba")
        rows = sum(c.size for c in self.found)
        if not 0 < rows == len(self.kept) or self.feedback or self.passive:
            raise TraceError(
                f"{QUANTITY} in the letters of a paper takes contacts or constraints with independent rows and "
                f"no stabilise or passive; given are {rows} rows, of which {len(self.kept)} are independent"
            )

        def compute(tree: Tree, q: Vector, v: Vector, tau: Vector, t: Vector) -> object:
            return constrained_lines(paper, tree, q, v, tau, all_rows(self.found, Kinematics(tree, q, v), t[0]))

        outputs = (("a", ("nv",)), (PAPER_LETTERS[paper].reaction, (rows,)))
        x = Quantity(QUANTITY, (*PROGRAM_VARIABLES, "t"), outputs, "a, and reactions of the constraints")
        order = f"Reactions, in this order: {', '.join(labels(self.found))}."
        meta = {"formalism": paper, "assumptions": (order,)}
        return _timeless(trace(self.model, x, compute=compute, meta=meta, **how))

    # -- the equations ------------------------------------------------------------------------------------------

    def solved(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, t: Scalar
    ) -> tuple[list[Scalar], list[Scalar], Schur, ConstraintRows]:
        """a, N of least norm, what solves for them, and all rows."""
        rows = all_rows(self.found, Kinematics(tree, q, v), t)
        compute = fastest(tree, ["mass_matrix", "bias"])
        M, h = compute["mass_matrix"](tree, q), compute["bias"](tree, q, v)
        lower = [{c: x for c, x in enumerate(row[: r + 1]) if not is_zero(x)} for r, row in enumerate(M)]
        schur = Schur(factorised(tree, lower), [rows.jacobian[k] for k in self.kept])
        push = passive_forces(tree, q, v) if self.passive else [0.0] * len(tau)
        gamma = self._gamma(rows)
        a, N = schur.accelerations([x + p - y for x, p, y in zip(tau, push, h)], [gamma[k] for k in self.kept])
        return a, self._spread(rows)(N), schur, rows

    def _gamma(self, rows: ConstraintRows) -> list[Scalar]:
        """gamma, with its feedback."""
        if self.feedback is None:
            return list(rows.bias)
        g1, g0 = self.feedback
        return [x + a * y + b * z for x, a, y, b, z in zip(rows.bias, g1, rows.rate, g0, rows.value)]

    def _spread(self, rows: ConstraintRows) -> Any:
        """From the reactions of the rows that are kept to those of all rows, of the least norm."""
        kept, all_of_them = self.kept, range(len(rows.value))
        dropped = [k for k in all_of_them if k not in kept]
        if not dropped:
            return lambda N: list(N)
        G = [rows.jacobian[k] for k in kept]
        gram = Factors([{j: dot(G[i], G[j]) for j in range(i + 1)} for i in range(len(G))], range(len(G)))
        C = [gram.solve([dot(g, rows.jacobian[k]) for g in G]) for k in dropped]
        columns = list(zip(*C))
        H = [{j: dot(x, columns[j]) + float(i == j) for j in range(i + 1)} for i, x in enumerate(columns)]
        shared = Factors(H, range(len(G)))

        def spread(N: Vector) -> list[Scalar]:
            least = shared.solve(N)
            of = dict(zip(kept, least)) | {k: dot(c, least) for k, c in zip(dropped, C)}
            return [of[k] for k in all_of_them]

        return spread

    def slopes(
        self, tree: Tree, q: Vector, v: Vector, tau: Vector, t: Scalar, d: Sequence[Any], by: str
    ) -> dict[tuple[int, ...], Scalar]:
        """(row of a, then of N; column): the derivatives by q on the tangent space, v or tau."""
        n, m = len(v), len(self.kept)
        if m < sum(c.size for c in self.found):
            raise TraceError(
                f"the derivative of {QUANTITY}: rows of the constraints depend on each other, so that the "
                "reactions are a choice and have no derivative; leave the dependent rows out"
            )
        a, N, schur, _ = self.solved(tree, q, v, tau, t)
        changes: list[tuple[Vector, Vector]] = [([float(i == k) for i in range(n)], [0.0] * m) for k in range(n)]
        if by != "tau":
            changes = self._changes(tree, q, v, t, a, N, d, by)
        out: dict[tuple[int, ...], Scalar] = {}
        for k, (force, gamma) in enumerate(changes):
            da, dN = schur.accelerations(force, gamma)
            out |= {(i, k): x for i, x in enumerate([*da, *dN]) if not is_zero(x)}
        return out

    def _changes(
        self, tree: Tree, q: Vector, v: Vector, t: Scalar, a: Vector, N: Vector, d: Sequence[Any], by: str
    ) -> list[tuple[Vector, Vector]]:
        """By column the changes of the forces at the joints and of Gamma a + gamma at these a, N: (4.1), (2.18)"""
        graph, n = d[0].graph, len(v)
        held = unknowns(graph, "a", n), unknowns(graph, "N", len(N))
        moved = displaced(tree, q, d, 1) if by == "q" else q
        rows = all_rows(self.found, Kinematics(tree, moved, v), t)
        variable = variables(tree, q, d) if by == "q" else v
        load = [dot(column, held[1]) for column in zip(*rows.jacobian)] or [0.0] * n
        load = [x + p for x, p in zip(load, passive_forces(tree, moved, v))] if self.passive else load
        motion = [dot(row, held[0]) + g for row, g in zip(rows.jacobian, self._gamma(rows))]
        entries = [x for row in (*partial(load, variable), *partial(motion, variable)) for x in row]
        known = dict(zip((x.edge >> 1 for x in (*held[0], *held[1], *d)), (*a, *N, *(0.0 for _ in d))))
        flat = put(graph, dict(enumerate(entries)), known)
        table = [[flat.get(i * n + k, 0.0) for k in range(n)] for i in range(n + len(motion))]
        slope = fastest(tree, ["inverse_dynamics_derivatives"])["inverse_dynamics_derivatives"]
        dID = slope(tree, q, v, a)["qv".index(by)]
        return [
            ([table[i][k] - dID[i][k] for i in range(n)], [table[n + i][k] for i in range(len(motion))])
            for k in range(n)
        ]


@asked
def constrained_derivative(
    robot: Dynamics, wrt: str | Sequence[str], *, dtype: str = "float64", layout: str = "rows",
    packed: bool = False, check: bool = True, contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None, stabilise: tuple[ArrayLike, ArrayLike] | None = None,
    passive: bool = False, at: ArrayLike | None = None,
) -> Function:  # fmt: skip
    """The derivatives of accelerations and reactions as a Function (q, v, tau[, t]) -> (da, dN).

    wrt: "q" (on the tangent space), "v" or "tau", or several of them: one more axis (nv) for each. The
    rest as of `write_out`. Raises InputError; TraceError where rows of
    the constraints depend on each other.
    """
    axes = constrained_axes(robot, wrt)
    constrained = Constrained.of(robot, contacts, constraints, stabilise, passive, at)
    spec = Spec(dtype=dtype, layout=layout, packed=packed, check=check)
    asked = ("derivative", constrained.found, constrained.kept, constrained.feedback, constrained.passive, axes)
    return requested(robot, asked, given_first(constrained.program, axes), spec=spec)


def _timeless(program: Program) -> Program:
    """The program without the time among its inputs, if nothing reads it."""
    read = {*program.order()}
    return replace(program, inputs=tuple(p for p in program.inputs if p.name != "t" or read & {*p.nodes}))


def constrained_axes(robot: Dynamics, wrt: str | Sequence[str]) -> tuple[str, ...]:
    """The variables to differentiate by, checked."""
    expect_robot(robot, QUANTITY)
    axes = axes_in(wrt, f"derivative of {QUANTITY}: wrt")
    for s in axes or ("",):
        if s not in PROGRAM_VARIABLES:
            raise InputError(f"derivative of {QUANTITY}: wrt holds {s!r}; it takes {', '.join(PROGRAM_VARIABLES)}")
    if axes.count("q") > 1 and any(j.nq != j.nv for j in robot.model.moving_joints):
        raise InputError(
            f"derivative of {QUANTITY}: of robots with ball or free joints there is one derivative by q"
        )
    return axes


def _independent(
    robot: Dynamics, found: tuple[Constraint, ...], contacts: Contacts, constraints: Sequence[Constraint] | None,
    at: ArrayLike | None,
) -> tuple[int, ...]:  # fmt: skip
    """The rows that are independent at a configuration, by default one beside neutral on the constraints."""
    if not found:
        return ()
    if at is None:
        step = COMPARED_DISTANCE * np.random.default_rng(0).uniform(-1.0, 1.0, robot.nv)
        try:
            near = robot.integrate(neutral(robot.model), step)
            q = assemble(robot, near, contacts=contacts, constraints=constraints)
        except NumericsError as error:
            raise NumericsError(
                f"{QUANTITY}: which rows are independent? give at=, a configuration: {error}"
            ) from None
    else:
        (q,) = state(robot.model, QUANTITY, q=at)
        if q.ndim != 1:
            raise InputError(f"{QUANTITY}: at has shape {q.shape}; it must be ({robot.nq},), one configuration")
    jacobian = constraint_terms(robot, found, q, np.zeros(robot.nv)).jacobian
    chosen = independent_rows(factor_of(robot, q).inwards(jacobian), LEAST_SINE_SQUARE)
    return tuple(np.flatnonzero(chosen).tolist())
