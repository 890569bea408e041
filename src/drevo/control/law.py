"""Laws of control as values: efforts of (t, q, v) over scalars, computed, compiled and written out.

Linear models and laws of control as programs: what they compute, over a graph, ready for every language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..codegen.call.method import graph_among
from ..codegen.graph.program import Program
from ..compiler.pages.derivation import Derivation, write_out_program
from ..compiler.pages.telegin_inputs import with_coordinates
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..io.given import Array, asked_methods, finite, leading, number
from ..mechanics.rotation import from_quaternion
from ..mechanics.scalar import Scalar, Vector, dot, where
from ..mechanics.spatial import Vec
from ..model.description import Model
from ..model.dynamics import Dynamics
from .responses import Matrices


@asked_methods
class HasProgram:
    """An object with a program, to be written out and counted; its own `program` says of which arguments."""

    def program(self, name: str = "law") -> Program:
        """The program that computes the results from the inputs; name: of the function."""
        raise NotImplementedError

    def write_out(self, name: str | None = None) -> Derivation:
        """The program as equations and code."""
        return write_out_program(self.program() if name is None else self.program(name))

    @property
    def counts(self) -> dict[str, int]:
        """The operations of one call, the most that it can take."""
        return self.write_out().counts

    def c(self, name: str | None = None) -> str:
        """C99: one void function of pointers to the arguments, then to the results, without allocation."""
        return self.write_out(name).c()

    def python(self, name: str | None = None) -> str:
        """A Python module of straight-line scalar assignments."""
        return self.write_out(name).python()

    def latex(self, name: str | None = None) -> str:
        """A LaTeX document of the equations."""
        return self.write_out(name).latex()


class Law(HasProgram):
    """tau = law(t, q, v), leading batch dimensions allowed; `over_scalars` is the same on any kind of scalar.

    `robot.simulate(q, v, law)` calls it, `drevo.simulate.Control(law)` compiles it into the motion; `c()` gives
    one C function without allocation, which takes the operations of `counts` at every call.
    """

    robot: Dynamics

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        """nv efforts."""
        raise NotImplementedError

    def program(self, name: str = "law") -> Program:
        """(t, q, v) -> tau."""
        t = Tracer(name, self.robot.model)
        (time,), (q, v) = t.input("t", 1), t.state("q", "v")
        t.output("tau", self.over_scalars(time, q, v))
        return with_coordinates(t.program(robot=self.robot.name, quantity=name), self.robot.model)

    @cached_property
    def function(self) -> Function:
        """(t, q, v) -> tau as machine code."""
        return requested(self.robot.model, ("law",), self.program, spec=Spec(), lasting=False)

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Efforts (..., nv); inside a law of one's own that is traced, those of its values."""
        if graph_among((q, v)):
            return np.array(self.over_scalars(t, list(q), list(v)), object)  # type: ignore[arg-type]
        time = number("law: t", t)
        x, u = finite("law: q", q, (..., self.robot.nq)), finite("law: v", v, (..., self.robot.nv))
        leading("law", q=x, v=u)
        return np.asarray(self.function(np.array([time]), x, u))


def deviation(model: Model, q0: Vector, q: Vector) -> list[Scalar]:
    """q less q0 on the tangent space of q0, in its axes, exact to first order; (nv,) over scalars.

    Of a rotation by an angle about an axis it is 2 sin(angle / 2) times the axis, the shorter way round.
    """
    out: list[Scalar] = []
    for j, sq, _ in model.slices():
        a, b = list(q0[sq]), list(q[sq])
        if j.nq < 4:
            out += [y - x for x, y in zip(a, b)]
            continue
        if j.nq == 7:
            out += from_quaternion(*a[3:]).T @ (Vec(*b[:3]) - Vec(*a[:3]))
        out += _turn(a[-4:], b[-4:])
    return out


def _turn(a: Vector, b: Vector) -> list[Scalar]:
    """Twice the vector part of conj(a) b, with the sign of its scalar part."""
    u, w = Vec(*a[:3]), Vec(*b[:3])
    part, whole = w * a[3] - u * b[3] - u.cross(w), a[3] * b[3] + u.dot(w)
    return [where(whole > 0.0, 2.0 * x, -2.0 * x) for x in part]


def efforts_of(driven: Any, values: Vector) -> list[Scalar]:
    """nv efforts, of which the driven ones are these."""
    left = iter(values)
    return [next(left) if x else 0.0 for x in driven]


LISTED = 40  # outputs that a text names


def linear_program(m: Matrices, name: str, about: str, states: Sequence[str], units: Mapping[str, str]) -> Program:
    """dx (of a discrete model: the next x) and y, with inputs x and u."""
    t = Tracer(name)
    x, u = t.input("x", len(m.A)), t.input("u", m.B.shape[1])
    for out, left, right in (("dx" if m.dt is None else "next_x", m.A, m.B), ("y", m.C, m.D)):
        t.output(out, [dot(a, x) + dot(b, u) for a, b in zip(left.tolist(), right.tolist())])
    ports = {"x": [(s, "", "state", units.get(s, "")) for s in states]}
    ports["u"] = [(s, "", "input", units.get(s, "")) for s in m.inputs]
    when = "continuous" if m.dt is None else f"in steps of {m.dt:.9g} s"
    outputs = f"y, in this order: {', '.join(m.outputs)}." if len(m.outputs) <= LISTED else ""
    notes = [f"The model is {when}; x, u and y are deviations from the point it was made about.", outputs]
    return t.program(robot=about, quantity="linear_model", coordinates=ports, assumptions=[*filter(None, notes)])
