"""Regulators of linear models: at a state, and along a trajectory. SciPy solves Riccati's equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError
from ..io.brief import brief
from ..io.packages import package
from .linearise import Linearisation, LinearModel, linearise

if TYPE_CHECKING:
    from ..robot import Robot

Array = np.ndarray[Any, Any]


UNDRIVEN = 1e-6  # of the largest effort: what an idle joint may seem to need by rounding of a plan


@brief
@dataclass(frozen=True, eq=False)
class Regulator:
    """tau = tau_0 - K dx (driven rates), the poles of the closed loop, and the cost dx^T P dx still to come."""

    K: Array
    poles: Array
    P: Array


def lqr(model: Linearisation | LinearModel, Q: ArrayLike, R: ArrayLike) -> Regulator:
    """The linear-quadratic regulator of an infinite horizon: least integral of dx^T Q dx + du^T R du.

    Q (2 nv, 2 nv), R (driven, driven), or their diagonals. With constraints it is the regulator of `.reduced`;
    K still takes the full (dq, dv). Raises NumericsError where the drives cannot steady the robot.
    """
    solve = package("scipy.linalg", "a linear-quadratic regulator").solve_continuous_are
    Qm, Rm = weights("Q", Q, len(model.A)), weights("R", R, model.B.shape[1])
    plain: LinearModel = model
    T = np.eye(len(model.A))
    if isinstance(model, Linearisation):
        plain, T = model.reduced, model.reduced.basis
    try:
        P = solve(plain.A, plain.B, T.T @ Qm @ T, Rm)
        K = np.linalg.solve(Rm, plain.B.T @ P)
        poles = np.linalg.eigvals(plain.A - plain.B @ K)
    except (np.linalg.LinAlgError, ValueError):
        poles = np.zeros(1)
    if not np.max(poles.real, initial=-np.inf) < 0.0:
        raise NumericsError(
            "lqr: no gain steadies this model: an undamped motion is beyond the drives, or Q leaves it unweighted"
            "; drive more joints, or weigh every state"
        )
    back = np.linalg.pinv(T)
    return Regulator(K @ back, poles, back.T @ P @ back)


def tracking_lqr(
    models: Sequence[LinearModel], dt: float, Q: ArrayLike, R: ArrayLike, final: ArrayLike | None = None
) -> Array:
    """Gains (steps, driven, 2 nv) of the regulator along a trajectory: Riccati's recursion from the end back.

    models: the linearisations at the steps, dt apart, each discretised exactly. final: the weight of the last
    state, Q by default.
    """
    Qm, Rm = weights("Q", Q, len(models[0].A)), weights("R", R, models[0].B.shape[1])
    P = Qm if final is None else weights("final", final, len(Qm))
    gains = []
    for model in reversed(models):
        step = model.discretised(dt)
        BP = step.B.T @ P
        K = np.linalg.solve(Rm * dt + BP @ step.B, BP @ step.A)
        P = Qm * dt + step.A.T @ P @ (step.A - step.B @ K)
        P = 0.5 * (P + P.T)
        gains.append(K)
    return np.array(gains[::-1])


def weights(name: str, given: ArrayLike, size: int) -> Array:
    """A weight as a matrix, from its diagonal, one number or itself."""
    x = np.asarray(given, float)
    if x.ndim < 2 and x.shape in ((), (size,)):
        return np.diag(np.broadcast_to(x, (size,)))
    if x.shape != (size, size):
        raise InputError(
            f"lqr: {name} has shape {x.shape}; it must be ({size}, {size}), or its diagonal ({size},)"
        )
    return x


@brief
@dataclass(frozen=True, eq=False)
class Tracker:
    """tau = tau_p - K (dq, dv) along a trajectory: a law (t, q, v) for `simulate`, batches allowed.

    Between the samples the motion and its efforts are interpolated, the gains held; after the last one both stay.
    """

    robot: Robot
    dt: float
    q: Array
    v: Array
    tau: Array
    K: Array
    driven: Array

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        place = min(max(float(t) / self.dt, 0.0), len(self.q) - 1.0)
        k = min(int(place), len(self.K) - 1)
        s = place - k
        way = self.robot.difference(self.q[k], self.q[k + 1])
        wanted = self.robot.integrate(self.q[k], s * way)
        speed, effort = (x[k] + s * (x[k + 1] - x[k]) for x in (self.v, self.tau))
        off = np.concatenate([self.robot.difference(wanted, q), np.asarray(v, float) - speed], -1)
        out = np.array(np.broadcast_to(effort, (*off.shape[:-1], self.robot.nv)))
        out[..., self.driven] -= off @ self.K[k].T
        return out


def track(
    robot: Robot,
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
    x, u, w = (np.asarray(given, float) for given in (q, v, a))
    for name, given, size in (("q", x, robot.nq), ("v", u, robot.nv), ("a", w, robot.nv)):
        if given.ndim != 2 or given.shape != (len(x), size) or len(x) < 2:
            raise InputError(f"track: {name} has shape {given.shape}; it must be (N, {size}) with N at least 2")
    if not dt > 0.0:
        raise InputError(f"track: dt is {dt}; the samples must be some positive time apart")
    tau = np.asarray(robot.inverse_dynamics(x, u, w))
    models = [linearise(robot, *state, actuated=actuated) for state in zip(x[:-1], u[:-1], tau[:-1])]
    driven = models[0].driven
    idle, most = np.abs(tau[:, ~driven]).max(initial=0.0), np.abs(tau).max()
    if idle > UNDRIVEN * most:
        raise InputError(
            f"track: the motion asks {idle:.3g} of a joint without a drive (of all at most {most:.3g}); drive it "
            "too, or plan a motion that it makes by itself"
        )
    return Tracker(robot, dt, x, u, tau, tracking_lqr(models, dt, Q, R, final), driven)


__all__ = ["Regulator", "Tracker", "lqr", "track", "tracking_lqr", "weights"]
