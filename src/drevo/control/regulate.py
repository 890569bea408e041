"""Regulators of linear models about a state. SciPy solves Riccati's equation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError
from ..io.given import Array, finite, whole
from ..io.packages import package
from ..io.reprs import result
from ..mechanics.scalar import Scalar, Vector, dot
from ..model.dynamics import Dynamics
from .law import Law, deviation, efforts_of
from .linear_kernels import Linearisation
from .model import LinearModel, single

UNSEEN = 1e-10  # of the largest: below it a rate or a singular value is rounding
EVEN = 1e-13  # the same of an eigenvalue of a weight
RESTING = 1e-6  # of the largest effort, or 1: rates and accelerations of an equilibrium
MAX_HORIZON_KNOTS = 1_000_000  # knots of a horizon


class LinearStep(Protocol):
    """dx of the next step is A dx + B du."""

    @property
    def A(self) -> Array: ...
    @property
    def B(self) -> Array: ...


class Obstacles(NamedTuple):
    """Messages for a Riccati equation that has no stabilising solution; {}: the motion."""

    unreached: str
    unweighted: str
    lost: str


UNMOVED = Obstacles(
    "the inputs do not reach the {}, which does not decay; actuate another joint",
    "Q gives no weight to the {}, which neither decays nor grows; weigh every state",
    "Riccati's equation has no answer in these numbers; bring Q and R closer together",
)


@result
class Regulator(Law):
    """tau = tau_0 - K dx (driven rates), the poles of the closed loop, and the cost dx^T P dx still to come.

    poles: eigenvalues s of a continuous model, z of a discrete one. Of a finite horizon K (steps, inputs, states)
    and P (steps + 1, states, states), with the poles of the first step. Made of robot.linearise it is a law
    tau = law(t, q, v) about its state, a discrete one with efforts that are held over each step; the state must be
    an equilibrium (drevo.control.trim finds one).
    """

    K: Array
    poles: Array
    P: Array
    model: LinearModel = field(repr=False)

    @property
    def robot(self) -> Dynamics:  # type: ignore[override]
        """The robot that the model was made of. InputError where it was made of matrices."""
        return self.point.robot

    @cached_property
    def point(self) -> Linearisation:
        """The linear model at an equilibrium; InputError where there is none."""
        L = self.model
        if not isinstance(L, Linearisation):
            raise InputError(
                "lqr: a law needs the model that robot.linearise(q, v, tau) gives, not its .reduced, which lqr "
                "takes by itself, nor matrices alone: of these there are K and poles"
            )
        if self.K.ndim > 2:
            raise InputError(
                "lqr: the gains of a finite horizon are for each step in turn; take drevo.control.track"
            )
        size = max(1.0, float(np.abs(L.tau).max(initial=0.0)))
        for fault, x, unit in (("moves at", L.v, "/s"), ("is accelerated at", L.a, "/s^2")):
            if np.abs(x).max(initial=0.0) > RESTING * size:
                k = int(np.abs(x).argmax())
                joint = L.robot.model.freedoms()[k][0]
                raise NumericsError(
                    f"lqr: the state of the model is no equilibrium, joint {joint!r} {fault} {abs(x[k]):.3g} (rad "
                    f"or m){unit}; take one that drevo.control.trim(robot, q) finds"
                )
        return L

    def over_scalars(self, t: Scalar, q: Vector, v: Vector) -> list[Scalar]:
        """tau_0 - K (q less q_0, v)."""
        L = self.point
        off = [*deviation(L.robot.model, L.q.tolist(), q), *v]
        rows = zip(L.tau[L.driven].tolist(), self.K.tolist())
        return efforts_of(L.driven, [held - dot(row, off) for held, row in rows])


def lqr(
    model: LinearModel, Q: ArrayLike, R: ArrayLike, horizon: int | None = None, final: ArrayLike | None = None
) -> Regulator:
    """The linear-quadratic regulator.

    Of a continuous model it has the least integral of dx^T Q dx + du^T R du, of a discrete one the least sum.
    Q (states, states), R (inputs, inputs), their diagonals, or a number. horizon: how many knots of a discrete
    model count, None for ever; then final weighs the last state, Q by default. With constraints it is the
    regulator of `.reduced`; K still takes the full (dq, dv). Raises InputError; NumericsError where no gain
    steadies the model.
    """
    single("lqr", model)
    if not model.B.shape[1]:
        raise InputError(
            "lqr: the model has no inputs, so that there is nothing to regulate with; actuate a joint"
        )
    Qm, Rm = weights("Q", Q, len(model.A)), weights("R", R, model.B.shape[1], definite=True)
    plain, T = model, np.eye(len(model.A))
    if isinstance(model, Linearisation):
        plain, T = model.reduced, model.basis
    back = np.linalg.pinv(T)
    if horizon is not None or final is not None:
        Pm = Qm if final is None else weights("final", final, len(Qm))
        K, P = _horizon(plain, T.T @ Qm @ T, Rm, T.T @ Pm @ T, horizon)
        return Regulator(K @ back, np.linalg.eigvals(plain.A - plain.B @ K[0]), back.T @ P @ back, model)
    K, P = riccati(plain, T.T @ Qm @ T, Rm)
    poles = np.linalg.eigvals(plain.A - plain.B @ K)
    if not plain.decays(poles):
        said = obstacle(plain, T.T @ Qm @ T, T, model.states, UNMOVED)
        raise NumericsError(f"lqr: no gain steadies this model: {said}")
    return Regulator(K @ back, poles, back.T @ P @ back, model)


def _horizon(model: LinearModel, Q: Array, R: Array, final: Array, steps: Any) -> tuple[Array, Array]:
    """Gains and costs of so many steps of a discrete model."""
    if model.dt is None:
        raise InputError("lqr: a horizon counts the knots of a discrete model; take model.discretised(dt)")
    count = whole("lqr: horizon", steps, 1, MAX_HORIZON_KNOTS, ": the knots that count")
    return riccati_steps([model] * count, [Q] * count, R, final)


def riccati_steps(models: Sequence[LinearStep], Q: Sequence[Array], R: Array, final: Array) -> tuple[Array, Array]:
    """Riccati's recursion from the end back: gains (steps, inputs, states), costs (steps + 1, states, states)."""
    P, gains, costs = final, list[Array](), [final]
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
        for m, weight in zip(reversed(models), reversed(Q)):
            BP = m.B.T @ P
            K = np.linalg.solve(R + BP @ m.B, BP @ m.A)
            P = weight + m.A.T @ P @ (m.A - m.B @ K)
            P = 0.5 * (P + P.T)
            gains.append(K)
            costs.append(P)
        if np.isfinite(gains).all() and np.isfinite(costs).all():
            return np.array(gains[::-1]), np.array(costs[::-1])
    largest = max(float(np.abs(x).max(initial=0.0)) for x in (*Q, R, final))
    raise NumericsError(
        f"Riccati's recursion has lost all digits after {len(gains)} of {len(models)} steps from the end: the "
        f"weights reach up to {largest:.3g}; bring Q, R and final nearer to one another"
    )


def riccati(model: LinearModel, Q: Array, R: Array) -> tuple[Array, Array]:
    """K and P of the algebraic Riccati equation of the model's own time; zero where it has no answer."""
    linalg = package("scipy.linalg", "a linear-quadratic regulator")
    A, B = model.A, model.B
    unsolved = np.linalg.LinAlgError, linalg.LinAlgWarning, ValueError
    with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(*unsolved):
        warnings.simplefilter("error", linalg.LinAlgWarning)
        if model.dt is None:
            P = linalg.solve_continuous_are(A, B, Q, R)
            K = np.linalg.solve(R, B.T @ P)
        else:
            P = linalg.solve_discrete_are(A, B, Q, R)
            K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        if np.isfinite(K).all() and np.isfinite(P).all():
            return K, P
    return np.zeros(B.shape[::-1]), np.zeros_like(A)


def obstacle(model: LinearModel, Q: Array, basis: Array, names: Sequence[str], words: Obstacles) -> str:
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
            return words.unreached.format(said)
        if abs(growth) < UNSEEN * size and _thin(np.vstack([pencil, Q])):
            return words.unweighted.format(said)
    return words.lost


def _thin(pencil: Array) -> bool:
    """True if a pencil has lost rank, or almost."""
    s = np.linalg.svd(pencil, compute_uv=False)
    return bool(s[-1] <= UNSEEN * s[0])


def weights(name: str, given: ArrayLike, size: int, definite: bool = False, who: str = "lqr") -> Array:
    """A weight as a symmetric matrix, from its diagonal, one number or itself; definite: no direction is free."""
    x = finite(f"{who}: {name}", given)
    if x.ndim < 2 and x.shape in ((), (1,), (size,)):
        x = np.diag(np.broadcast_to(x, (size,)))
    if x.shape != (size, size):
        raise InputError(
            f"{who}: {name} has shape {x.shape}; it must be ({size}, {size}), or its diagonal ({size},)"
        )
    uneven = np.abs(x - x.T)
    if uneven.max(initial=0.0) > UNSEEN * np.abs(x).max(initial=0.0):
        i, j = np.unravel_index(int(uneven.argmax()), x.shape)
        raise InputError(
            f"{who}: {name} is not symmetric, {name}[{i}, {j}] is {x[i, j]:g} and {name}[{j}, {i}] {x[j, i]:g}; "
            f"give ({name} + {name}.T) / 2"
        )
    x = 0.5 * x + 0.5 * x.T
    scale = np.sqrt(np.where(np.diag(x) > 0.0, np.diag(x), 1.0)) if definite else np.ones(size)
    least = np.linalg.eigvalsh(x / scale / scale[:, None]).min(initial=np.inf)
    if definite and not least > EVEN:
        raise InputError(
            f"{who}: {name} must be positive definite, its least eigenvalue is {np.linalg.eigvalsh(x)[0]:.3g}; "
            "give each of them more than 0"
        )
    if least < -EVEN * np.abs(x).max(initial=0.0):
        raise InputError(
            f"{who}: {name} must not be negative, its least eigenvalue is {least:.3g}; give every state 0 or more"
        )
    return x
