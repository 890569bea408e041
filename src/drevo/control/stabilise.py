"""Control that makes a robot keep f(q, t) = 0 and return to it: Zaremba (3.1)-(3.5), corrected.

    tau = h - M { Gamma^+ (gamma + G1 f' + G0 f) - (1 - Gamma^+ Gamma) v }                                  (3.1)

Gamma^+ is the Moore-Penrose inverse, so any number of rows is allowed. Where Gamma has full row rank the outputs
obey f'' + G1 f' + G0 f = 0 (3.5); redundant rows need scalar gains for it, and the free motion is v's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..constrained import RANK, _held, constraint_terms
from ..constraint import Constraint, collect
from ..errors import InputError

if TYPE_CHECKING:
    from ..robot import Robot

Array = np.ndarray[Any, Any]
Law = Callable[[float, Array, Array], Array]
Free = Callable[[float, Array, Array], ArrayLike]


def stabilise(
    robot: Robot,
    constraint: Constraint | Sequence[Constraint],
    gamma0: ArrayLike,
    gamma1: ArrayLike,
    v: ArrayLike | Free | None = None,
) -> Law:
    """The control law tau = law(t, q, v) of (3.1): all joints driven, leading batch dimensions allowed.

    gamma0, gamma1: numbers, one per row, or matrices; f'' + gamma1 f' + gamma0 f = 0 must die out.
    v: accelerations wished for, (nv,) or a callable (t, q, v); the constraint keeps what it needs of them.
    f = q - q_p(t) gives the computed torque. Raises InputError.
    """
    given = list(constraint) if isinstance(constraint, Sequence) else [constraint]
    if not given:
        raise InputError("stabilise: there is no constraint; give at least one")
    if robot.model.loops:
        raise InputError(f"stabilise: robot {robot.name!r} has loops; the law (3.1) is for open trees")
    found = collect(robot.model, None, given)
    m = sum(c.size for c in found)
    G0, G1 = gain("gamma0", gamma0, m), gain("gamma1", gamma1, m)
    refuse_unstable(G0, G1)

    def law(t: float, q: Array, velocity: Array) -> Array:
        x, u = np.asarray(q, float), np.asarray(velocity, float)
        c = constraint_terms(robot, _held(robot, found, x), x, u, t)
        wished = np.zeros(robot.nv) if v is None else np.asarray(v(t, x, u) if callable(v) else v, float)
        feedback = c.gamma + _times(G1, c.rate) + _times(G0, c.value)
        back = np.linalg.pinv(c.jacobian, rcond=RANK)
        a = wished - _times(back, feedback + _times(c.jacobian, wished))  # (3.3)
        return np.asarray(robot.inverse_dynamics(x, u, a))

    return law


def gain(name: str, given: ArrayLike, m: int) -> Array:
    """A gain as a matrix (m, m)."""
    g = np.asarray(given, float)
    if g.ndim < 2 and g.shape in ((), (m,)):
        return np.diag(np.broadcast_to(g, (m,)))
    if g.shape != (m, m):
        raise InputError(f"stabilise: {name} has shape {g.shape}; {m} rows take a number, ({m},) or ({m}, {m})")
    return g


def refuse_unstable(G0: Array, G1: Array) -> None:
    """[[0, 1], [-G0, -G1]] must be Hurwitz."""
    m = len(G0)
    poles = np.linalg.eigvals(np.block([[np.zeros((m, m)), np.eye(m)], [-G0, -G1]]))
    worst = poles[np.argmax(poles.real)]
    if not worst.real < 0.0:
        raise InputError(
            f"stabilise: the gains are not Hurwitz: f'' + gamma1 f' + gamma0 f = 0 has the pole {worst:.3g}, "
            "which does not decay; take both gains positive definite"
        )


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


__all__ = ["Law", "gain", "refuse_unstable", "stabilise"]
