"""Regulators of linear models: at a state, and along a trajectory. SciPy solves Riccati's equation."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError
from ..io.given import Array, finite, leading, number, seconds
from ..io.packages import package
from ..io.reprs import result
from ..mechanics.acting import passive_on_arrays
from ..model.dynamics import Dynamics
from ..model.messages import expect_robot
from .linearise import Linearisation, linearise
from .model import LinearModel

UNSEEN = 1e-10  # of the largest: below it a rate or a singular value is rounding
EVEN = 1e-13  # the same of an eigenvalue of a weight
UNDRIVEN = 1e-6  # of the largest effort: what an idle joint may seem to need by rounding of a plan


@result
class Regulator:
    """tau = tau_0 - K dx (driven rates), the poles of the closed loop, and the cost dx^T P dx still to come.

    poles: eigenvalues s of a continuous model, z of a discrete one.
    """

    K: Array
    poles: Array
    P: Array


def lqr(model: LinearModel, Q: ArrayLike, R: ArrayLike) -> Regulator:
    """The linear-quadratic regulator of an infinite horizon.

    Of a continuous model it has the least integral of dx^T Q dx + du^T R du, of a discrete one the least sum.
    Q (states, states), R (inputs, inputs), their diagonals, or a number. With constraints it is the regulator of
    `.reduced`; K still takes the full (dq, dv). Raises InputError; NumericsError where no gain steadies the model.
    """
    if not isinstance(model, LinearModel):
        raise InputError(
            f"lqr: a linear model is needed, as robot.linearise(q, v, tau) gives one, not {type(model).__name__}"
        )
    Qm, Rm = weights("Q", Q, len(model.A)), weights("R", R, model.B.shape[1], definite=True)
    if not len(Rm):
        raise InputError(
            "lqr: the model has no inputs, so that there is nothing to regulate with; actuate a joint"
        )
    plain, T = model, np.eye(len(model.A))
    if isinstance(model, Linearisation):
        plain, T = model.reduced, model.basis
    K, P = riccati(plain, T.T @ Qm @ T, Rm)
    poles = np.linalg.eigvals(plain.A - plain.B @ K)
    if not plain.decays(poles):
        raise NumericsError(f"lqr: no gain steadies this model: {_obstacle(plain, T.T @ Qm @ T, T, model.states)}")
    back = np.linalg.pinv(T)
    return Regulator(K @ back, poles, back.T @ P @ back)


def riccati(model: LinearModel, Q: Array, R: Array) -> tuple[Array, Array]:
    """K and P of the algebraic Riccati equation of the model's own time; zero where it has no answer."""
    linalg = package("scipy.linalg", "a linear-quadratic regulator")
    A, B = model.A, model.B
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError, ValueError):
        if model.dt is None:
            P = linalg.solve_continuous_are(A, B, Q, R)
            K = np.linalg.solve(R, B.T @ P)
        else:
            P = linalg.solve_discrete_are(A, B, Q, R)
            K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        if np.isfinite(K).all() and np.isfinite(P).all():
            return K, P
    return np.zeros(B.shape[::-1]), np.zeros_like(A)


def _obstacle(model: LinearModel, Q: Array, basis: Array, names: Sequence[str]) -> str:
    """Why, by the test of Popov, Belevitch and Hautus: a motion that does not decay and that the inputs do not
    reach, or that is not weighted."""
    values, shapes = np.linalg.eig(model.A)
    size = max(1.0, float(np.abs(model.A).max(initial=0.0)))
    for k in np.argsort(-values.real if model.dt is None else -np.abs(values)):
        growth = values[k].real if model.dt is None else abs(values[k]) - 1.0
        if growth < -UNSEEN * size:
            break
        pencil = model.A - values[k] * np.eye(len(values))
        where = names[int(np.argmax(np.abs(basis @ shapes[:, k])))]
        said = f"motion of {where} with the eigenvalue {values[k]:.3g}"
        if _thin(np.hstack([pencil, model.B])):
            return f"the inputs do not reach the {said}, which does not decay; actuate another joint"
        if abs(growth) < UNSEEN * size and _thin(np.vstack([pencil, Q])):
            return f"Q gives no weight to the {said}, which neither decays nor grows; weigh every state"
    return "Riccati's equation has no answer in these numbers; bring Q and R closer together"


def _thin(pencil: Array) -> bool:
    """Whether a pencil has lost rank, or all but."""
    s = np.linalg.svd(pencil, compute_uv=False)
    return bool(s[-1] <= UNSEEN * s[0])


def tracking_lqr(
    models: Sequence[LinearModel], dt: float, Q: ArrayLike, R: ArrayLike, final: ArrayLike | None = None
) -> Array:
    """Gains (steps, inputs, states) of the regulator along a trajectory: Riccati's recursion from the end back.

    models: those at the steps, dt apart; continuous ones are discretised exactly, discrete ones have that dt.
    final: the weight of the last state, Q by default.
    """
    step = seconds("tracking_lqr: dt", dt)
    given = list(models) if isinstance(models, Sequence) else []
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
    gains = []
    for model in reversed(given):
        m = model.discretised(step) if model.dt is None else model
        BP = m.B.T @ P
        K = np.linalg.solve(Rm * step + BP @ m.B, BP @ m.A)
        P = Qm * step + m.A.T @ P @ (m.A - m.B @ K)
        P = 0.5 * (P + P.T)
        gains.append(K)
    return finite("tracking_lqr: Riccati's recursion", gains[::-1])


def weights(name: str, given: ArrayLike, size: int, definite: bool = False) -> Array:
    """A weight as a symmetric matrix, from its diagonal, one number or itself; definite: no direction is free."""
    x = finite(f"lqr: {name}", given)
    if x.ndim < 2 and x.shape in ((), (1,), (size,)):
        x = np.diag(np.broadcast_to(x, (size,)))
    if x.shape != (size, size):
        raise InputError(
            f"lqr: {name} has shape {x.shape}; it must be ({size}, {size}), or its diagonal ({size},)"
        )
    uneven = np.abs(x - x.T)
    if uneven.max(initial=0.0) > UNSEEN * np.abs(x).max(initial=0.0):
        i, j = np.unravel_index(int(uneven.argmax()), x.shape)
        raise InputError(
            f"lqr: {name} is not symmetric, {name}[{i}, {j}] is {x[i, j]:g} and {name}[{j}, {i}] {x[j, i]:g}; "
            f"give ({name} + {name}.T) / 2"
        )
    x = 0.5 * x + 0.5 * x.T
    scale = np.sqrt(np.where(np.diag(x) > 0.0, np.diag(x), 1.0)) if definite else np.ones(size)
    least = np.linalg.eigvalsh(x / scale / scale[:, None]).min(initial=np.inf)
    if definite and not least > EVEN:
        raise InputError(
            f"lqr: {name} must be positive definite, its least eigenvalue is {np.linalg.eigvalsh(x)[0]:.3g}; give "
            "every input a cost above 0"
        )
    if least < -EVEN * np.abs(x).max(initial=0.0):
        raise InputError(
            f"lqr: {name} must not be negative, its least eigenvalue is {least:.3g}; give every state a weight of "
            "0 or more"
        )
    return x


@result
class Tracker:
    """tau = tau_p - K (dq, dv) along a trajectory: a law (t, q, v) for `simulate`, batches allowed.

    Between the samples the motion and its efforts are interpolated, the gains held; after the last one both stay.
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
        time = number("track: t", t)
        x, u = finite("track: q", q, (..., self.robot.nq)), finite("track: v", v, (..., self.robot.nv))
        place = min(max(time / self.dt, 0.0), len(self.q) - 1.0)
        k = min(int(place), len(self.K) - 1)
        s = place - k
        displacement = self.robot.difference(self.q[k], self.q[k + 1])
        wanted = self.robot.integrate(self.q[k], s * displacement)
        speed, effort = (x[k] + s * (x[k + 1] - x[k]) for x in (self.v, self.tau))
        gap, late = self.robot.difference(wanted, x), u - speed
        lead = leading("track", q=gap, v=late)
        off = np.concatenate([np.broadcast_to(y, (*lead, y.shape[-1])) for y in (gap, late)], -1)
        out = np.array(np.broadcast_to(effort, (*off.shape[:-1], self.robot.nv)))
        out[..., self.driven] -= off @ self.K[k].T
        return out


def track(
    robot: Dynamics,
    dt: float,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    final: ArrayLike | None = None,
    actuated: Sequence[str] | None = None,
) -> Tracker:
    """The time-varying regulator along a motion sampled every dt seconds: q (N, nq), v and a (N, nv).

    The efforts of the motion come from inverse dynamics; joints without a drive must need none. Q, R, final: see
    tracking_lqr. Raises InputError.
    """
    expect_robot(robot, "track")
    step = seconds("track: dt", dt)
    x, u, w = (finite(f"track: {name}", given) for name, given in (("q", q), ("v", v), ("a", a)))
    for name, given, size in (("q", x, robot.nq), ("v", u, robot.nv), ("a", w, robot.nv)):
        if given.ndim != 2 or given.shape != (len(x), size) or len(x) < 2:
            raise InputError(f"track: {name} has shape {given.shape}; it must be (N, {size}) with N at least 2")
    tau = np.asarray(robot.inverse_dynamics(x, u, w)) - passive_on_arrays(robot.model)(x, u)
    models = [linearise(robot, *state, actuated=actuated) for state in zip(x[:-1], u[:-1], tau[:-1])]
    driven = models[0].driven
    idle, most = np.abs(tau[:, ~driven]).max(initial=0.0), np.abs(tau).max(initial=0.0)
    if idle > UNDRIVEN * most:
        raise InputError(
            f"track: the motion asks {idle:.3g} of a joint without a drive (of all at most {most:.3g}); drive it "
            "too, or plan a motion that it makes by itself"
        )
    return Tracker(robot, step, x, u, tau, tracking_lqr(models, step, Q, R, final), driven)
