"""Laws of control that are compiled into the motion: written over scalars, traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.call.function import Function, Spec
from ..codegen.graph.node import Expr, Graph
from ..compiler.trace import requested
from ..compiler.tracer import TracedFunction, Tracer
from ..constraint.functions import call_traced
from ..errors import InputError
from ..io.given import finite
from ..mechanics.scalar import Scalar, Vector
from ..model.description import Model
from ..model.dynamics import Described

ControlLaw = Callable[[Scalar, Vector, Vector], Vector]


@dataclass(frozen=True)
class Control:
    """Joint efforts as a law(t, q, v) over scalars, nv of them, compiled together with the dynamics.

    The law may use + - * / **, abs, drevo.sin, cos and sqrt. It is traced once, so that it cannot branch on the
    state: drevo.where(condition, a, b), minimum, maximum and clip choose between values, by conditions such as
    (q[0] > 0) & (v[0] < 1). A law of drevo.control.stabilise may be given as it is. Raises InputError.
    """

    law: ControlLaw

    def __post_init__(self) -> None:
        if isinstance(self.law, Control) or not callable(self.law):
            raise InputError(
                f"Control: a function law(t, q, v) of scalars is needed, not {type(self.law).__name__}; constant "
                "efforts and a Control are given to simulate as they are"
            )
        if getattr(self.law, "arrays_only", False):
            raise InputError(
                f"Control: a {type(self.law).__name__} looks its gains up by the time, which cannot be compiled: "
                "give it to simulate as it is, tau=law"
            )
        law = getattr(self.law, "over_scalars", self.law)
        object.__setattr__(self, "law", law)

    def __call__(self, t: Scalar, q: Vector, v: Vector) -> Vector:
        return self.law(t, q, v)

    def reason(self, t: float, q: Any, v: Any) -> str:
        """Why the law has no efforts at a state, as far as it can tell; or ""."""
        reason = getattr(getattr(self.law, "__self__", None), "reason", None)
        return reason(t, q, v) if reason else ""

    def traced(self, graph: Graph, t: Expr, q: Sequence[Expr], v: Sequence[Expr]) -> list[Scalar]:
        """The law on nodes of a graph; InputError where it is no law over scalars."""

        def efforts() -> list[Scalar]:
            values = list(self.law(t, q, v))
            for x in values:
                graph.edge(x)
            return values

        try:
            efforts_given: list[Scalar] = call_traced("the control law", efforts)
        except InputError as error:
            plain = "; anything else is a plain function tau(t, q, v) of arrays" * ("traced" in str(error))
            raise InputError(f"{error}{plain}") from error
        if len(efforts_given) != len(v):
            raise InputError(f"the control law gives {len(efforts_given)} efforts for {len(v)} freedoms")
        return efforts_given


def beyond_law(tau: object, t: float, q: Any) -> str:
    """The target that a law, or Control, of constraints cannot reach, as far as is found from q (nq,); or ""."""
    law = getattr(tau, "law", tau)
    reach = getattr(getattr(law, "__self__", law), "out_of_reach", None)
    return reach(t, q) if reach else ""


def damping(coefficients: float | Sequence[float]) -> Control:
    """tau = -d v, N m s/rad or N s/m: one number for all joints, or nv of them."""

    def law(t: Scalar, q: Vector, v: Vector) -> Vector:
        return [-d * x for d, x in zip(_each("coefficients", coefficients, len(v)), v)]

    return Control(law)


def traced_law(model: Model, control: Control) -> TracedFunction:
    """The law of (t, q, v) as it is now."""
    t = Tracer("law")
    (time,), q, v = t.input("t", 1), t.input("q", model.nq), t.input("v", model.nv)
    t.output("tau", control.traced(t.graph, time, q, v))
    return TracedFunction(t.program())


def law_function(robot: Described, control: Control) -> Function:
    """A law by itself as machine code, tau of (t, q, v): for motions that are not compiled in one piece."""
    law = traced_law(robot.model, control)
    spec = Spec(check=False, single=False)
    return requested(robot, ("law", law), lambda: law.program, spec=spec, shared=True)


def _each(name: str, value: float | Sequence[float], n: int) -> list[float]:
    """n finite numbers, from one for all or from n."""
    numbers = finite(name, value, error=InputError)
    if numbers.shape not in ((), (n,)):
        raise InputError(f"{name}: {numbers.size} numbers for {n} freedoms; give one, or {n}")
    return [float(x) for x in np.broadcast_to(numbers, (n,))]
