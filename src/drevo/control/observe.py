"""Observers: states from outputs. Kalman's filter, given poles, and the two of LQG together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError
from ..io.given import Array
from ..io.packages import package
from ..io.reprs import result
from .linear_kernels import Linearisation
from .model import LinearModel, single
from .regulate import Obstacles, lqr, obstacle, riccati, weights

UNSEEN_OBSTACLES = Obstacles(
    "the outputs do not tell of the {}, which does not decay; give out more of the state",
    "W does not disturb the {}, which neither decays nor grows; disturb every state",
    "Riccati's equation has no answer in these numbers; bring W and V closer together",
)


@result
class Observer:
    """L (states, outputs) of e' = A e + B u + L (y - C e - D u), or with a step of e(k + 1) of the same.

    poles: of the error of the estimate e. P: the covariance of that error (discrete: before the outputs are
    read), None of given poles. estimator: the observer as a linear model of inputs u and y, whose outputs are e;
    under constraints its own states are those of `.reduced`.
    """

    L: Array
    poles: Array
    P: Array | None
    estimator: LinearModel


def kalman(model: LinearModel, W: ArrayLike, V: ArrayLike) -> Observer:
    """Kalman's filter in the steady state.

    W: covariance of what disturbs x' or x(k + 1), (states, states); V: of what disturbs the outputs; both may be
    diagonals, or a number. Under constraints it is the filter of `.reduced`. Raises InputError; NumericsError
    where the outputs do not tell of a motion that does not decay.
    """
    single("kalman", model)
    Wm = weights("W", W, len(model.A), who="kalman")
    Vm = weights("V", V, len(model.C), definite=True, who="kalman")
    if not len(Vm):
        raise InputError("kalman: the model has no outputs, so that nothing tells of its state")
    plain, T = (model.reduced, model.basis) if isinstance(model, Linearisation) else (model, np.eye(len(model.A)))
    back = np.linalg.pinv(T)
    Wm = back @ Wm @ back.T
    dual = LinearModel(plain.A.T, plain.C.T, dt=plain.dt)
    K, P = riccati(dual, Wm, Vm)
    poles = np.linalg.eigvals(plain.A - K.T @ plain.C)
    if not plain.decays(poles):
        raise NumericsError(
            f"kalman: no gain steadies the estimate: {obstacle(dual, Wm, T, model.states, UNSEEN_OBSTACLES)}"
        )
    return Observer(T @ K.T, poles, T @ P @ T.T, _estimator(model, plain, T, K.T))


def observer(model: LinearModel, poles: ArrayLike) -> Observer:
    """The observer whose error has these poles, as many as states (of `.reduced` under constraints): s or z.

    Complex ones in pairs; as many equal ones at most as outputs. Raises InputError, NumericsError.
    """
    single("observer", model)
    plain, T = (model.reduced, model.basis) if isinstance(model, Linearisation) else (model, np.eye(len(model.A)))
    try:
        wanted = np.asarray(poles, complex)
    except (TypeError, ValueError):
        wanted = np.zeros(())
    if wanted.shape != (len(plain.A),) or not np.isfinite(wanted).all():
        raise InputError(f"observer: poles must be {len(plain.A)} finite numbers, one for each state")
    if not plain.decays(wanted):
        where = "left of the axis" if plain.dt is None else "within the unit circle"
        raise InputError(f"observer: with these poles the error does not decay; give ones {where}")
    place = package("scipy.signal", "an observer of given poles").place_poles
    with np.errstate(all="ignore"):
        try:
            gain = np.asarray(place(plain.A.T, plain.C.T, wanted).gain_matrix).T
        except ValueError as error:
            raise InputError(f"observer: these poles cannot be had: {error}") from None
    error_poles = np.linalg.eigvals(plain.A - gain @ plain.C)
    if not np.isfinite(gain).all() or not plain.decays(error_poles):
        raise NumericsError(
            "observer: the outputs do not tell of all states; drevo.control.observability says which"
        )
    return Observer(T @ gain, error_poles, None, _estimator(model, plain, T, gain))


def lqg(model: LinearModel, Q: ArrayLike, R: ArrayLike, W: ArrayLike, V: ArrayLike) -> LinearModel:
    """The regulator on the estimate of Kalman's filter: a linear model from the outputs of `model` to its inputs.

    Q, R: see lqr; W, V: see kalman. Its states are the estimate; deviations from the point of `model` throughout.
    Raises InputError, NumericsError.
    """
    regulator, seen = lqr(model, Q, R), kalman(model, W, V)
    e = seen.estimator
    K = regulator.K @ e.C
    L, B = e.B[:, model.B.shape[1] :], e.B[:, : model.B.shape[1]]
    units = {name: unit for name, unit in model.units.items() if name in (*model.outputs, *model.inputs)}
    return LinearModel(e.A - B @ K, L, -K, None, e.dt, e.states, model.outputs, model.inputs, units)  # type: ignore[arg-type]


def _estimator(model: LinearModel, plain: LinearModel, T: Array, L: Array) -> LinearModel:
    """e' = (A - L C) e + (B - L D) u + L y; the estimate of the full state comes out."""
    seen = {x: f"{x}.seen" for x in plain.states}
    read = [f"{x}.read" if x in model.inputs else x for x in plain.outputs]
    return LinearModel(
        plain.A - L @ plain.C,
        np.hstack([plain.B - L @ plain.D, L]),
        T,
        None,  # type: ignore[arg-type]
        plain.dt,
        tuple(seen.values()),
        (*plain.inputs, *read),
        tuple(f"{x}.estimate" for x in model.states),
        {**model.units, **{f"{x}.estimate": unit for x, unit in model.units.items()}},
    )
