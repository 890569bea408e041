"""Linear models of a robot's motion as compiled functions: all their numbers in one array.

    [[A B] (2 n, 2 n + k), [R S] (m, 2 n + k), a (n), N (m), q, v, tau]

R and S are the changes of the reactions N; without constraints there are none of them. Under constraints the
motion at the state comes first, from the function of constrained dynamics.

Linear models of a robot as values. What is asked for later is computed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function
from ..codegen.graph.derivative import partial as derivatives
from ..codegen.graph.program import Program
from ..compiler.differentiate import at_zero
from ..compiler.formalisms import derived_tree, fastest, unsolved_derivatives
from ..compiler.trace import requested
from ..compiler.tracer import Tracer, unknowns
from ..constraint.collection import all_rows
from ..constraint.kinds import Constraint
from ..constraint.numbers import Numbered, settled, with_numbers
from ..constraint.prepared import PreparedSet, SolvedMotion
from ..constraint.terms import compiled_set
from ..errors import NumericsError
from ..io.given import Array
from ..io.reprs import result
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.algorithms.derivatives import displaced, variables
from ..mechanics.algorithms.inertia_matrix import SingularError, factorised, lower_rows
from ..mechanics.algorithms.passive import passive, passive_slopes
from ..mechanics.formalisms.khalil_held import HeldPoint, HeldSlopes, held_slopes
from ..mechanics.scalar import Matrix, Scalar, Vector, dot
from ..mechanics.spatial import Vec
from ..mechanics.tree import Tree
from ..model.description import Model
from ..model.dynamics import Dynamics
from .columns import ModelColumns, beyond_motion
from .model import LinearModel


def free_program(model: Model, driven: Sequence[int], acts: bool, short: bool = False) -> Program:
    """The program of the linear model of a robot without constraints, with inputs q, v, tau; acts: with the
    passive forces of its joints; short: see ShortTail."""
    t = Tracer("linearise", model, acting=acts)
    q, v, tau = t.state("q", "v", "tau")
    force = [x + p for x, p in zip(tau, passive(t.tree, q, v))] if acts else tau
    a, dq, dv, f = unsolved_derivatives(t.tree, q, v, force)
    return ModelColumns(t, driven, short).program(
        model, v, beyond_motion(passive_slopes(t.tree, q, v) if acts else (), dq, dv), f, [*a, *q, *v, *tau]
    )


def held_program(
    model: Model, pattern: tuple[Constraint, ...], driven: Sequence[int], acts: bool, short: bool = False
) -> Program:
    """Under constraints, with inputs a and [N, rank, q, v] of constrained dynamics, tau, the time, the numbers."""
    t = Tracer("linearise", model, acting=acts)
    n, m = model.nv, sum(c.size for c in pattern)
    a, given = t.input("motion", n), t.input("held", m + 1 + model.nq + n)
    N, q, v = given[:m], given[m + 1 : -n], given[-n:]
    (tau, (time,)), count = (t.input("tau", n), t.input("t", 1)), len(Numbered.of(pattern).numbers)
    constraints = with_numbers(pattern, t.input("numbers", count) if count else [])
    held = _beside_columns(t.tree, constraints, q, v, a, N) or _of_rows(t, constraints, q, v, a, N, time)
    slopes = beyond_motion(passive_slopes(t.tree, q, v) if acts else (), held.dq, held.dv)
    return ModelColumns(t, driven, short).program(model, v, slopes, held.factors, [*a, *N, *q, *v, *tau], held)


def _beside_columns(
    tree: Tree, constraints: Sequence[Constraint], q: Vector, v: Vector, a: Vector, N: Vector
) -> HeldSlopes | None:
    """The terms that contacts of moving links add to the recursion of the derivatives."""
    derived = derived_tree(tree, [link for c in constraints for link in c.links])
    if derived is None:
        return None
    points = []
    for c in constraints:
        frame = derived.frames[c.held_point[0]] if c.held_point else None
        if not c.held_point or not frame or frame.body < 0:
            return None
        points.append(HeldPoint(frame.body, frame.p + frame.R @ Vec(*c.held_point[1]), c.size))
    return held_slopes(derived, q, v, a, points, N)


def _of_rows(
    t: Tracer, constraints: Sequence[Constraint], q: Vector, v: Vector, a: Vector, N: Vector, time: Scalar
) -> HeldSlopes:
    """Derivatives of the inverse dynamics under any constraints, by differentiating their rows."""
    tree, n = t.tree, t.tree.nv
    d = unknowns(t.graph, "d", n)
    by = variables(tree, q, d)
    rows = all_rows(constraints, Kinematics(tree, displaced(tree, q, d, 1), v), time)

    def at_state(block: Sequence[Vector]) -> Matrix:
        flat = at_zero([x for row in block for x in row], d)
        return [flat[k : k + n] for k in range(0, len(flat), n)]

    jacobian = at_state(rows.jacobian)
    hessians = [at_state(derivatives(row, by)) for row in rows.jacobian]
    second = at_state(derivatives([dot(row, a) + b for row, b in zip(rows.jacobian, rows.bias)], by))
    slopes = second, at_state(derivatives(rows.bias, v))
    dq, dv, M = fastest(tree, ["inverse_dynamics_derivatives"])["inverse_dynamics_derivatives"](tree, q, v, a)
    for push, hessian in zip(N, hessians):
        dq = [[x - push * y for x, y in zip(row, more)] for row, more in zip(dq, hessian)]
    sizes = [dot(row, row) + sum(dot(x, x) for x in more) for row, more in zip(jacobian, hessians)]
    return HeldSlopes(dq, dv, factorised(tree, lower_rows(M)), jacobian, slopes, sizes)


@dataclass(frozen=True, eq=False)
class LinearKernels:
    """Computes the linear models of a robot under constraints of one form; raises NumericsError for states that it
    is not certain of. given: any set of the form."""

    given: PreparedSet
    driven: tuple[int, ...]
    acts: bool
    short: bool = False

    @staticmethod
    def of(s: PreparedSet, driven: Array, acts: bool, short: bool = False) -> LinearKernels:
        """short: of a model only how accelerations change, see ShortTail."""
        return LinearKernels(s, tuple(np.flatnonzero(driven).tolist()), acts and has_passive(s.robot.model), short)

    def _made(self, name: str, program: Callable[..., Program], *options: Any) -> Callable[..., Any]:
        model, how = self.given.robot.model, (*options, self.driven, self.acts, self.short)
        f: Function = requested(self.given.robot, (name, *how), partial(program, model, *how))
        return f.fast or f

    @cached_property
    def free(self) -> Callable[..., Array]:
        return self._made("linearise", free_program)

    @cached_property
    def motion(self) -> Callable[..., SolvedMotion]:
        form = self.given.form
        return form.fed("passive") if self.acts else form.motion

    @cached_property
    def held(self) -> Callable[..., Array]:
        return self._made("linearise held", held_program, self.given.form.pattern)

    @cached_property
    def possible(self) -> bool:
        """True if `held` can be made: not where rows depend on each other wherever the robot is."""
        try:
            return bool(self.held)
        except SingularError:
            return False

    def certain(self, given: PreparedSet, q: Array, v: Array, tau: Array, time: Array) -> bool:
        """True if the rows of a set are independent at these states."""
        if not given.size:
            return True
        _, held = self.motion(q, v, tau, time, *given.numbers)
        return bool(np.all(held[..., given.size] == given.size)) and self.possible

    @property
    def tried(self) -> bool:
        """True if the functions are known to exist, as they are after their first use."""
        return not self.given.size or bool(self.__dict__.get("possible"))

    def found(self, given: PreparedSet, q: Any, v: Any, tau: Any, time: Array) -> Array:
        """The numbers of the models under a set."""
        if not given.size:
            numbers: Array = self.free(q, v, tau)
            return numbers
        a, held = self.motion(q, v, tau, time, *given.numbers)
        slopes: Array = self.held(a, held, tau, time, *given.numbers)
        return slopes


# -- derivatives of the constraints, compiled --------------------------------------------------------------


def constraint_derivatives(
    robot: Dynamics, constraints: tuple[Constraint, ...], q: Array, v: Array, a: Array, N: Array, t: ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """d(Gamma^T N)/dq, d(Gamma a + gamma)/dq, dgamma/dv and df'/dq."""
    n = robot.nv
    if not constraints:
        return np.zeros((n, n)), np.zeros((0, n)), np.zeros((0, n)), np.zeros((0, n))
    result: Mapping[int, Array] = derivatives_of_constraints(robot, constraints)(q, v, a, N, np.reshape(t, 1))
    return result[0], result[1], result[2], result[3]


def derivatives_of_constraints(robot: Dynamics, constraints: tuple[Constraint, ...]) -> Callable[..., Any]:
    """Compiles `constraint_derivatives` as a function of (q, v, a, N, t), for all sets of this form."""
    settled_set = settled(robot.model, constraints)
    f = compiled_set("constraint derivatives", curvature_program, robot, settled_set)
    given = np.array(Numbered.of(settled_set).numbers, float)
    return lambda *state: f(*state, given)


def curvature_program(model: Model, pattern: tuple[Constraint, ...]) -> Program:
    """The derivatives that (4.1) and the linearised (2.18) need, with inputs q, v, a, N, t and the numbers."""
    t, n, m = Tracer("constraint_derivatives", model), model.nv, sum(c.size for c in pattern)
    q, v, a = t.state("q", "v", "a")
    N, (time,) = t.input("N", m), t.input("t", 1)
    constraints = with_numbers(pattern, t.input("numbers", len(Numbered.of(pattern).numbers)))
    d = unknowns(t.graph, "d", n)
    rows = all_rows(constraints, Kinematics(t.tree, displaced(t.tree, q, d, 1), v), time)
    by = variables(t.tree, q, d)
    load = [dot(column, N) for column in zip(*rows.jacobian)]
    second = [dot(row, a) + b for row, b in zip(rows.jacobian, rows.bias)]
    parts = (
        ("hessian", n, derivatives(load, by)),
        ("second_q", m, derivatives(second, by)),
        ("second_v", m, derivatives(rows.bias, v)),
        ("rate_q", m, derivatives(rows.rate, by)),
    )
    for name, k, block in parts:
        t.output(name, at_zero([x for row in block for x in row], d), (k, n))
    return t.program(quantity="constraint derivatives", formalism="graph")


new, assign = object.__new__, object.__setattr__


class Source(Protocol):
    """The source of the fields of a linear model."""

    def fields_with(self, name: str, numbers: Array, time: Array) -> dict[str, Any]:
        """One of them, and others that come with it."""
        ...


@result
class Reduced(LinearModel):
    """The model on the motions that the constraints leave: dx = basis z, which is also its output. About rest it
    is exact; in motion the basis itself turns, and its rate is not in A."""

    basis: Array = field(kw_only=True)


@result
class Linearisation(LinearModel):
    """A (2 nv, 2 nv) and B (2 nv, driven rates) of the state (dq, dv); about q, v, tau, with accelerations a and
    reactions N there. A batch of states has leading dimensions in all of them.

    rank, condition: of the constraints, how many motions they take, and how well. reactions_state,
    reactions_input: dN = reactions_state dx + reactions_input dtau. driven: which rates the columns of B belong
    to, (nv,) of bool. basis: see `reduced`. off: why the state is none of the constraints' own, or "".
    The model is x' = drift + A dx + B dtau: `drift` says by how much the state is not one of rest.
    """

    robot: Dynamics = field(kw_only=True, repr=False)
    q: Array = field(kw_only=True)
    v: Array = field(kw_only=True)
    tau: Array = field(kw_only=True)
    a: Array = field(kw_only=True)
    reactions: Array = field(kw_only=True)
    reactions_state: Array = field(kw_only=True)
    reactions_input: Array = field(kw_only=True)
    driven: Array = field(kw_only=True)
    rank: Any = field(kw_only=True)
    condition: Any = field(kw_only=True)
    basis: Array = field(kw_only=True)
    off: str = field(default="", kw_only=True, repr=False)

    __slots__ = ("_numbers", "_source", "_time")  # where fields are taken from, see `later`
    shared: ClassVar[tuple[str, ...]] = ("driven",)

    @staticmethod
    def later(source: Source, numbers: Array, time: Array) -> Linearisation:
        """A linear model whose fields are taken from what was found when they are first asked for."""
        model: Linearisation = new(Linearisation)
        assign(model, "_source", source)
        assign(model, "_numbers", numbers)
        assign(model, "_time", time)
        return model

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def drift(self) -> Array:
        """The rate of the state where the model is made, (..., 2 nv): v, then a; zeros at an equilibrium."""
        return np.concatenate([self.v, self.a], -1)

    @cached_property
    def reduced(self) -> Reduced:
        """The model on the motions that the constraints leave; without constraints its basis is the identity.

        Raises NumericsError where the state does not keep the constraints.
        """
        if self.off:
            raise NumericsError(f"reduced: {self.off}")
        T, back = self.basis, np.linalg.pinv(self.basis)
        names = rate_names([(f"motion{i + 1}", "") for i in range(T.shape[-1] // 2)], "qv")
        return Reduced(
            back @ self.A @ T,
            back @ self.B,
            self.C @ T,
            self.D,
            self.dt,
            names,
            self.inputs,
            self.outputs,
            self.units,
            basis=T,
        )


class _Later:
    """A field of a `Linearisation.later`; what an instance has already goes before it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: object = None) -> Any:
        source = getattr(model, "_source", None)
        if source is None:
            raise AttributeError(self.name)
        model.__dict__.update(source.fields_with(self.name, model._numbers, model._time))
        return model.__dict__[self.name]


for _name in [f.name for f in fields(Linearisation)]:
    setattr(Linearisation, _name, _Later(_name))


def rate_names(freedoms: Sequence[tuple[str, str]], parts: Sequence[str]) -> tuple[str, ...]:
    """joint.part[i] of all freedoms."""
    return tuple(f"{joint}.{part}{index}" for part in parts for joint, index in freedoms)
