"""Regulators along a trajectory: Riccati's recursion from its end back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..constrained.passive import acting_in
from ..errors import InputError
from ..io.given import Array, finite, leading, number, seconds
from ..io.reprs import result
from ..model.dynamics import Dynamics
from ..model.messages import expect_robot
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
    that dt. final: the weight of the last state, Q by default.
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
    if isinstance(models, LinearModel):
        steps = list(models.discretised(step) if models.dt is None else models)
    else:
        steps = [m.discretised(step) if m.dt is None else m for m in given]
    return riccati_steps(steps, Qm * step, Rm * step, P)[0]


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
    tau = np.asarray(robot.inverse_dynamics(x, u, w)) - acting_in(robot, x, u)
    models = linearise(robot, x[:-1], u[:-1], tau[:-1], actuated=actuated)
    driven = models.driven
    idle, most = np.abs(tau[:, ~driven]).max(initial=0.0), np.abs(tau).max(initial=0.0)
    if idle > UNDRIVEN * most:
        raise InputError(
            f"track: the motion asks {idle:.3g} of a joint without a drive (of all at most {most:.3g}); drive it "
            "too, or plan a motion that it makes by itself"
        )
    return Tracker(robot, step, x, u, tau, tracking_lqr(models, step, Q, R, final), driven)
