"""Regulators along a trajectory: Riccati's recursion from its end back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..codegen.graph.program import Program
from ..compiler.pages.telegin_inputs import with_coordinates
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..constraint.collection import acting_in
from ..constraint.dynamics import Contacts
from ..constraint.inverse import constrained_inverse_dynamics
from ..constraint.kinds import Constraint
from ..constraint.prepared import prepared_set
from ..errors import DrevoError, InputError, NumericsError
from ..io.given import Array, finite, leading, number, seconds
from ..io.reprs import result
from ..mechanics.manifold import exponential, logarithm
from ..mechanics.scalar import dot
from ..model.description import Model
from ..model.draft import expect_robot
from ..model.dynamics import Dynamics
from .law import HasProgram, efforts_of
from .linear_kernels import Linearisation
from .linearise import linearise
from .model import LinearModel
from .regulate import riccati_steps, weights

UNDRIVEN = 1e-6  # of the largest effort: what an idle joint may seem to need by rounding of a plan


def tracking_lqr(
    models: Sequence[LinearModel] | LinearModel,
    dt: float,
    Q: ArrayLike,
    R: ArrayLike,
    final: ArrayLike | None = None,
) -> Array:
    """Gains (steps, inputs, states) of the regulator along a trajectory: Riccati's recursion from the end back.

    models: those at the steps, or a batch, dt apart; continuous ones are discretised exactly, discrete ones have
    that dt. Under constraints the regulator is one of the motions that they leave. final: the weight of the last
    state, Q by default.
    """
    step = seconds("tracking_lqr: dt", dt)
    given = list(models) if isinstance(models, (list, tuple, LinearModel)) else []
    if not given or not all(isinstance(m, LinearModel) for m in given):
        raise InputError("tracking_lqr: models must be a list of linear models, one for each step")
    if any(m.A.shape != given[0].A.shape or m.B.shape != given[0].B.shape for m in given):
        raise InputError("tracking_lqr: the models must have the same states and inputs at every step")
    if {m.dt for m in given} not in ({None}, {step}):
        raise InputError(
            f"tracking_lqr: dt is {step:g} s, of the models {', '.join(sorted({str(m.dt) for m in given}))}; give "
            "continuous models (None), or discrete ones of that step"
        )
    Qm, Rm = weights("Q", Q, len(given[0].A)), weights("R", R, given[0].B.shape[1], definite=True)
    P = Qm if final is None else weights("final", final, len(Qm))
    bases = [m.basis if isinstance(m, Linearisation) else np.eye(len(m.A)) for m in given]
    if isinstance(models, LinearModel):
        steps = list(models.discretised(step) if models.dt is None else models)
    else:
        steps = [m.discretised(step) if m.dt is None else m for m in given]
    return _gains(steps, [*bases, bases[-1]], Qm * step, Rm * step, P)


def _gains(steps: Sequence[LinearModel], bases: Sequence[Array], Q: Array, R: Array, final: Array) -> Array:
    """Gains along steps between states whose motions have these bases (2 nv, motions), one more than there are
    steps."""
    back = [np.linalg.pinv(T) for T in bases]
    plain = [_Step(b @ m.A @ T, b @ m.B) for m, T, b in zip(steps, bases, back[1:])]
    weighted = [T.T @ Q @ T for T in bases[:-1]]
    K = riccati_steps(plain, weighted, R, bases[-1].T @ final @ bases[-1])[0]
    return np.stack([k @ b for k, b in zip(K, back)])


class _Step(NamedTuple):
    """dx of the next step is A dx + B du."""

    A: Array
    B: Array


@result
class Tracker(HasProgram):
    """tau = tau_p - K (dq, dv) along a trajectory: a law (t, q, v) for `simulate`, batches allowed.

    Between the samples the motion and its efforts are interpolated, the gains held; after the last one both stay.
    The law is one compiled kernel of a robot, which takes a row of `rows` at every call; `c()` is the kernel with
    its table as one C function without allocation.
    """

    robot: Dynamics
    dt: float
    q: Array
    v: Array
    tau: Array
    K: Array
    driven: Array
    arrays_only = True  # for drevo.simulate.Control

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        if type(t) is float and t - t == 0.0:
            with suppress(DrevoError):  # said below
                return self._at(t, q, v)
        time = number("track: t", t)
        x, u = finite("track: q", q, (..., self.robot.nq)), finite("track: v", v, (..., self.robot.nv))
        leading("track", q=x, v=u)
        return self._at(time, x, u)

    def _at(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        place, last = t / self.dt, len(self.rows)
        place = 0.0 if place < 0.0 else float(last) if place > last else place
        k = min(int(place), last - 1)
        return np.asarray(self.function(self.rows[k], np.array([place - k]), q, v))

    @cached_property
    def rows(self) -> Array:
        """The numbers that the control law takes at each step, (steps, numbers): q, its displacement to the next
        sample, v and tau with their changes, K row by row."""
        parts = [
            self.q[:-1], self.robot.difference(self.q[:-1], self.q[1:]), self.v[:-1], np.diff(self.v, axis=0),
            self.tau[:-1], np.diff(self.tau, axis=0), self.K.reshape(len(self.K), -1),
        ]  # fmt: skip
        return np.ascontiguousarray(np.hstack(parts))

    @cached_property
    def function(self) -> Function:
        """(row, s, q, v) -> tau as machine code; s: how far between two samples, 0 to 1."""
        driven = tuple(map(bool, self.driven))
        return requested(self.robot, ("tracking law", driven), self.program, spec=Spec())

    def program(self, name: str = "law") -> Program:
        """(row, s, q, v) -> tau of one row of `rows`."""
        return tracking_program(self.robot.model, self.driven, name)

    def c(self, name: str | None = None) -> str:
        """C99 of law and table: void NAME(const double *t, const double *q, const double *v, double *out)."""
        name = "law" if name is None else name
        inner = f"{name}_between"
        text = self.write_out(inner).c().replace(f"void {inner}(", f"static void {inner}(")
        table = ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in self.rows.tolist())
        n, width = self.rows.shape
        return f"""{text}
static const double {name}_rows[{n}][{width}] = {{
{table}
}};

void {name}(const double *t, const double *q, const double *v, double *out)
{{
    double place = t[0] / {self.dt!r};
    int k;
    if (!(place > 0.0)) {{
        place = 0.0;
    }} else if (place > {n}.0) {{
        place = {n}.0;
    }}
    k = place < {n}.0 ? (int)place : {n - 1};
    place -= k;
    {inner}({name}_rows[k], &place, q, v, out);
}}
"""


def tracking_program(model: Model, driven: Array, name: str) -> Program:
    """tau_k + s dtau - K (q (-) (q_k (+) s d), v - v_k - s dv) of a row [q_k, d, v_k, dv, tau_k, dtau, K]."""
    t, n, m = Tracer(name, model), model.nv, int(np.sum(driven))
    sizes = (model.nq, n, n, n, n, n, 2 * n * m)
    row, (s,), (q, v) = t.input("row", sum(sizes)), t.input("s", 1), t.state("q", "v")
    ends = np.cumsum(sizes).tolist()
    held, moved, rate, faster, tau, more, K = (row[end - k : end] for k, end in zip(sizes, ends))
    wanted = exponential(model.runs, held, [s * x for x in moved])
    off = [*logarithm(model.runs, wanted, q), *(x - y - s * z for x, y, z in zip(v, rate, faster))]
    back = efforts_of(driven, [dot(K[2 * n * i : 2 * n * (i + 1)], off) for i in range(m)])
    t.output("tau", [x + s * y - z for x, y, z in zip(tau, more, back)])
    return with_coordinates(t.program(robot=model.name, quantity=name), model)


def track(
    robot: Dynamics,
    dt: float,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    final: ArrayLike | None = None,
    *,
    actuated: Sequence[str] | None = None,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
) -> Tracker:
    """The time-varying regulator along a motion sampled every dt seconds from t = 0: q (N, nq), v and a (N, nv).

    The efforts of the motion come from inverse dynamics; joints without a drive must need none. Under constraints
    and contacts, which the motion must keep, they are the least, and the regulator is one of the motions left.
    Q, R, final: see tracking_lqr. Raises InputError; NumericsError where the motion does not keep the constraints.
    """
    expect_robot(robot, "track")
    step = seconds("track: dt", dt)
    x, u, w = (finite(f"track: {name}", given) for name, given in (("q", q), ("v", v), ("a", a)))
    for name, given, size in (("q", x, robot.nq), ("v", u, robot.nv), ("a", w, robot.nv)):
        if given.ndim != 2 or given.shape != (len(x), size) or len(x) < 2:
            raise InputError(f"track: {name} has shape {given.shape}; it must be (N, {size}) with N at least 2")
    under: dict[str, Any] = {"constraints": constraints, "contacts": contacts, "t": step * np.arange(len(x))}
    held = bool(prepared_set(robot, contacts, constraints).found)
    tau = _efforts(robot, x, u, w, actuated, under) if held else robot.inverse_dynamics(x, u, w)
    tau = np.asarray(tau) - (0.0 if held else acting_in(robot, x, u))
    models = linearise(robot, x, u, tau, actuated=actuated, **under)
    idle, most = np.abs(tau[:, ~models.driven]).max(initial=0.0), np.abs(tau).max(initial=0.0)
    if idle > UNDRIVEN * most:
        raise InputError(
            f"track: the motion asks {idle:.3g} of a joint without a drive (of all at most {most:.3g}); drive it "
            "too, or plan a motion that it makes by itself"
        )
    Qm, Rm = weights("Q", Q, 2 * robot.nv), weights("R", R, models.B.shape[-1], definite=True)
    P = Qm if final is None else weights("final", final, len(Qm))
    if held and models.off:
        raise NumericsError(f"track: {models.off}")
    steps = list(models[:-1].discretised(step))
    K = _gains(steps, list(models.basis), Qm * step, Rm * step, P)
    return Tracker(robot, step, x, u, tau, K, models.driven)


def _efforts(robot: Dynamics, q: Array, v: Array, a: Array, actuated: Any, under: dict[str, Any]) -> Array:
    """The least efforts of a motion under constraints."""
    try:
        return constrained_inverse_dynamics(robot, q, v, a, actuated=actuated, passive=True, **under).tau
    except NumericsError as error:
        raise NumericsError(f"track: the motion and its constraints do not agree: {error}") from None
