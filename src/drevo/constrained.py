"""Dynamics under constraints f(q, t) = 0: accelerations, reactions, the efforts for a motion, landings.

    M a + h = tau + Gamma^T N,   Gamma a + gamma = 0                                    Zaremba (2.17), (2.18)

M, h, Gamma and gamma are compiled; the small dense solve is NumPy's, in the coordinates y = L^T a, M = L L^T,
where a is the projection of Udwadia and Kalaba: a and Gamma^T N are unique for any set, N has the least norm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .constraint import Constraint, Contact, collect, labels
from .constraint_solve import RANK, Split, cholesky, pseudoinverse, times
from .constraint_terms import Terms, constraint_terms, oriented
from .errors import InputError, NumericsError
from .io.brief import brief
from .mechanics.configuration import slices
from .mechanics.trunk import refuse_gimbal_lock, trunk_pitch
from .model.description import Model

if TYPE_CHECKING:
    from .robot import Robot

Array = np.ndarray[Any, Any]
Contacts = Sequence[Contact | Mapping[str, Any]] | None

CONSISTENT = 1e-6  # of the largest right-hand side, at least 1: what dependent rows may disagree by (SI)
STRIDE = 0.5  # rad or m: the longest step of an assembly
STARTS, FURTHEST = 12, 1.5  # of an assembly: how often, and how far (rad or m, 1 sigma) it begins around q
FAR = 1e2  # rad or m: a Newton step that leads nowhere


@dataclass(frozen=True, kw_only=True, eq=False)
class OnRows:
    """rows: the names of contacts, constraints, then the robot's own loops; jacobian: their Gamma (..., m, nv)."""

    rows: tuple[str, ...]
    jacobian: Array


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class ConstrainedMotion(OnRows):
    """a (..., nv), N (..., m) acting on the robot, rank of Gamma, gamma (..., m).

    M a + h = tau + Gamma^T N and Gamma a + gamma = 0; with stabilisation the second holds for gamma plus its
    feedback. value and rate are f and f' of the state.
    """

    a: Array
    reactions: Array
    rank: Any
    gamma: Array
    value: Array
    rate: Array


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class ConstrainedEfforts(OnRows):
    """tau (..., nv), zero where nothing drives, and N (..., m): M a + h = tau + Gamma^T N."""

    tau: Array
    reactions: Array
    gamma: Array


@brief
@dataclass(frozen=True, kw_only=True, eq=False)
class Impact(OnRows):
    """Velocity after an impact (..., nv), impulses (..., m), rank of Gamma; M (v+ - v) = Gamma^T impulses."""

    v: Array
    impulses: Array
    rank: Any


def constrained_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    f_ext: Mapping[str, ArrayLike] | None = None,
    t: ArrayLike = 0.0,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
) -> ConstrainedMotion:
    """Accelerations and reactions under contacts and constraints; gravity is in.

    contacts: {"link", "point", "rows": 3 | 6}; rows 6 are force and moment about the point, world axes.
    stabilise (gamma1, gamma0): gamma + gamma1 f' + gamma0 f in place of gamma (Baumgarte), each a number, one
    per row, or a matrix. Dependent rows are allowed: rank says how many count, N has the least norm, a is
    unique. Raises NumericsError where rows contradict each other by more than 1e-6 of their size.
    """
    found = collect(robot.model, contacts, constraints)
    x, v, tau = _state(robot, q=q, v=v, tau=tau)
    refuse_gimbal_lock(robot.model, x)
    if stabilise is not None:
        found = oriented(robot, found, x)
    c = constraint_terms(robot, found, x, v, t)
    return accelerations(robot, x, v, tau, c, labels(found), f_ext, stabilise)


def accelerations(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    c: Terms,
    names: tuple[str, ...],
    f_ext: Mapping[str, ArrayLike] | None = None,
    stabilise: tuple[ArrayLike, ArrayLike] | None = None,
) -> ConstrainedMotion:
    """The same under constraints whose terms are known, and their rows' names."""
    gamma = c.gamma
    if stabilise is not None:
        gamma = gamma + _gain(stabilise[0], c.rate) + _gain(stabilise[1], c.value)
    h = robot.bias(q, v, f_ext=f_ext) if f_ext else robot.bias(q, v)
    s = Split.of(cholesky(robot, q), c.jacobian)
    refuse_contradictions(s, names, {"m": c.value, "m/s": c.rate, "m/s^2": c.gamma})
    a, N = s.solve(tau - h, gamma)
    return ConstrainedMotion(
        a=a, reactions=N, rank=s.rank, jacobian=c.jacobian, gamma=c.gamma, rows=names, value=c.value, rate=c.rate
    )


def constrained_inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    t: ArrayLike = 0.0,
    f_ext: Mapping[str, ArrayLike] | None = None,
) -> ConstrainedEfforts:
    """Efforts and reactions of a motion that keeps the constraints; gravity is in.

    actuated: names of the driven joints; by default all but a floating base or trunk. Where drives and
    constraints share the load in many ways, the efforts are the least (2-norm), and among equal ones N is.
    Raises NumericsError where the motion violates the constraints or cannot be driven.
    """
    found = collect(robot.model, contacts, constraints)
    x, v, a = _state(robot, q=q, v=v, a=a)
    driven = driven_rates(robot.model, actuated)
    c = constraint_terms(robot, found, x, v, t)
    _refuse_violation(times(c.jacobian, a), c.gamma, labels(found))
    b = robot.inverse_dynamics(x, v, a, f_ext=f_ext) if f_ext else robot.inverse_dynamics(x, v, a)
    GT = np.swapaxes(c.jacobian, -1, -2)
    idle, free = GT[..., ~driven, :], GT[..., driven, :]
    size = np.linalg.norm(GT, axis=(-1, -2))
    back = pseudoinverse(idle, size)
    N = times(back, b[..., ~driven])
    _refuse_undriven(robot.model, ~driven, b[..., ~driven] - times(idle, N), b)
    rest = np.eye(GT.shape[-1]) - back @ idle  # what may still change without moving the idle joints
    N = N + times(pseudoinverse(free @ rest, size), b[..., driven] - times(free, N))
    tau = b - times(GT, N)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau=tau, reactions=N, rows=labels(found), jacobian=c.jacobian, gamma=c.gamma)


def impact(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    restitution: float = 0.0,
    t: ArrayLike = 0.0,
) -> Impact:
    """The velocity after the constraints strike: v projected by M, f' after = -restitution f' before."""
    found = collect(robot.model, contacts, constraints)
    x, v = _state(robot, q=q, v=v)
    refuse_gimbal_lock(robot.model, x)
    c = constraint_terms(robot, found, x, v, t)
    explicit = c.rate - times(c.jacobian, v)  # f_t
    s = Split.of(cholesky(robot, x), c.jacobian)
    refuse_contradictions(s, labels(found), {"m/s": explicit})
    after, impulses = s.solve(times(robot.mass_matrix(x), v), explicit + restitution * c.rate)
    return Impact(v=after, impulses=impulses, rank=s.rank, rows=labels(found), jacobian=c.jacobian)


def hold(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    t: ArrayLike = 0.0,
    tolerance: float = 1e-12,
    steps: int = 30,
) -> tuple[Array, Array]:
    """The state nearest by M that keeps the constraints: f(q, t) = 0 to the tolerance, and f' = 0.

    Newton steps of least dq.M dq, for drift and for small gaps. Raises NumericsError where they do not close.
    """
    found = collect(robot.model, contacts, constraints)
    x, v = _state(robot, q=q, v=v)
    found = oriented(robot, found, x)

    def terms(q: Array, v: Array) -> Terms:
        return constraint_terms(robot, found, q, v, t)

    return closed(robot, x, v, terms, labels(found), tolerance, steps)


def closed(
    robot: Robot,
    q: Array,
    v: Array,
    terms: Callable[[Array, Array], Terms],
    names: Sequence[str],
    tolerance: float = 1e-12,
    steps: int = 30,
) -> tuple[Array, Array]:
    """The same under constraints given by their terms at (q, v)."""
    for _ in range(steps):
        c = terms(q, v)
        if np.max(np.abs(c.value), initial=0.0) <= tolerance:
            break
        dq, _ = Split.of(cholesky(robot, q), c.jacobian).solve(np.zeros(robot.nv), c.value)
        if np.abs(dq).max() > FAR:
            break
        q = robot.integrate(q, dq)
    c = terms(q, v)
    if not np.max(np.abs(c.value), initial=0.0) <= tolerance:
        raise NumericsError(
            f"the constraints cannot be met from here: after Newton's steps {_worst(names, c.value)}; "
            "start closer, or correct the constraint"
        )
    s = Split.of(cholesky(robot, q), c.jacobian)
    return q, s.solve(times(robot.mass_matrix(q), v), c.rate - times(c.jacobian, v))[0]


def assemble(
    robot: Robot,
    q: ArrayLike,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    keep: Sequence[str] = (),
    t: float = 0.0,
    tolerance: float = 1e-12,
    steps: int = 100,
) -> Array:
    """A configuration that closes the loops and constraints, found from q (..., nq), which may be far off.

    keep: names of joints that stay where they are. Newton steps of least dq.M dq, shortened until the gap
    falls; where that gets stuck, again from around q, further and further. Raises NumericsError where none closes.
    """
    found = collect(robot.model, contacts, constraints)
    (x,) = _state(robot, q=q)
    free = ~driven_rates(robot.model, keep, "keep")
    rows = x.reshape(-1, robot.nq)
    done = [_assembled(robot, oriented(robot, found, row), row, free, t, tolerance, steps) for row in rows]
    return np.array(done).reshape(x.shape)


def _assembled(
    robot: Robot, found: tuple[Constraint, ...], q: Array, free: Array, t: float, tolerance: float, steps: int
) -> Array:
    rng, best = np.random.default_rng(0), np.inf
    told = ""
    for spread in np.linspace(0.0, FURTHEST, STARTS):
        start = robot.integrate(q, np.where(free, spread * rng.normal(size=robot.nv), 0.0))
        near, gap = _nearer(robot, found, start, free, t, tolerance, steps)
        size = np.abs(gap).max(initial=0.0)
        if size <= tolerance:
            return near
        if size < best:
            best, told = size, _worst(labels(found), gap)
    raise NumericsError(
        f"robot {robot.name!r} cannot be assembled from here: at best {told} where no small motion brings it "
        f"closer, from {STARTS} starts; begin at another configuration, keep fewer joints, or correct lengths"
    )


def _nearer(
    robot: Robot, found: tuple[Constraint, ...], q: Array, free: Array, t: float, tolerance: float, steps: int
) -> tuple[Array, Array]:
    """Where Newton's shortened steps end, and the gap there."""
    rest = np.zeros(robot.nv)
    c = constraint_terms(robot, found, q, rest, t)
    for _ in range(steps):
        if np.abs(c.value).max(initial=0.0) <= tolerance:
            break
        L = np.linalg.cholesky(robot.mass_matrix(q)[np.ix_(free, free)])
        dq = rest.copy()
        dq[free] = Split.of(L, c.jacobian[:, free]).solve(rest[free], c.value)[0]
        dq *= min(1.0, STRIDE / np.abs(dq).max(initial=STRIDE))
        for part in 0.5 ** np.arange(12):
            trial = robot.integrate(q, part * dq)
            then = constraint_terms(robot, found, trial, rest, t)
            if np.linalg.norm(then.value) < np.linalg.norm(c.value):
                break
        else:
            break
        q, c = trial, then
    return q, c.value


def _worst(names: Sequence[str], value: Array) -> str:
    """The row that is off the most, and by how much."""
    *_, i = np.unravel_index(int(np.argmax(np.abs(value))), value.shape)
    return f"{names[int(i)]} is still off by {np.max(np.abs(value)):.3g}"


# -- what is refused ---------------------------------------------------------------------------------------


def _gain(gain: ArrayLike, x: Array) -> Array:
    g = np.asarray(gain, float)
    return times(g, x) if g.ndim == 2 else np.asarray(g * x)


def refuse_contradictions(s: Split, names: Sequence[str], sides: Mapping[str, Array]) -> None:
    """Dependent rows must ask for the same; the sentence names those that do not, and by how much."""
    for unit, x in sides.items():
        left = s.lost(x)
        size = np.maximum(1.0, np.max(np.abs(x), axis=-1, initial=0.0))
        worst = np.max(np.abs(left), axis=-1, initial=0.0) / size
        if np.any(worst > CONSISTENT):
            at = np.unravel_index(int(np.argmax(worst)), worst.shape)
            guilty = [i for i in np.argsort(-np.abs(left[at])) if abs(left[at][i]) > CONSISTENT * size[at]]
            told = ", ".join(f"{names[i]} by {abs(left[at][i]):.3g} {unit}" for i in guilty[:6])
            where = f" in row {int(at[0])} of the batch" if at else ""
            raise NumericsError(
                f"the constraints contradict each other{where}: no motion meets {told}; "
                "drop or correct one of them"
            )


def _refuse_violation(given: Array, gamma: Array, names: Sequence[str]) -> None:
    left = given + gamma
    size = np.maximum(1.0, np.max(np.abs(gamma), axis=-1, initial=0.0))
    over = np.abs(left) > CONSISTENT * size[..., None]
    if np.any(over):
        *at, i = (int(k) for k in np.unravel_index(np.argmax(np.where(over, np.abs(left), 0.0)), left.shape))
        where = f" in row {at[0]} of the batch" if at else ""
        raise NumericsError(
            f"the motion violates the constraints{where}: {names[i]} gets the acceleration "
            f"{left[(*at, i)]:.3g} instead of 0; give accelerations with Gamma a + gamma = 0"
        )


def _refuse_undriven(model: Model, idle: Array, left: Array, b: Array) -> None:
    size = np.maximum(1.0, np.max(np.abs(b), axis=-1, initial=0.0))
    over = np.abs(left) > CONSISTENT * size[..., None]
    if np.any(over):
        *at, i = (int(k) for k in np.unravel_index(np.argmax(np.where(over, np.abs(left), 0.0)), left.shape))
        owner = [j.name for j, _, sv in slices(model) for _ in range(sv.start, sv.stop)]
        name = [n for n, free in zip(owner, idle) if free][i]
        where = f" in row {at[0]} of the batch" if at else ""
        raise NumericsError(
            f"the motion cannot be driven{where}: joint {name!r} is not actuated and needs "
            f"{left[(*at, i)]:.3g} N m or N that no contact or constraint can carry; actuate it or add one"
        )


# -- arguments ---------------------------------------------------------------------------------------------


def _state(robot: Robot, **given: ArrayLike) -> list[Array]:
    """Arrays of the right size that are finite."""
    out = []
    for name, x in given.items():
        array, size = np.asarray(x, float), robot.nq if name == "q" else robot.nv
        if array.ndim == 0 or array.shape[-1] != size:
            raise InputError(f"{name} has shape {array.shape}; its last dimension must be {size}")
        if not np.all(np.isfinite(array)):
            raise NumericsError(f"{name} holds a value that is not finite")
        out.append(array)
    return out


def driven_rates(model: Model, actuated: Sequence[str] | None, what: str = "actuated") -> Array:
    """Which rates have a drive: those of the joints named, by default of all but a floating base or trunk."""
    names = [j.name for j in model.moving_joints]
    for name in actuated or ():
        if name not in names:
            raise InputError(f"{what}: {name!r} is no moving joint; there are {', '.join(names)}")
    if actuated is None:
        trunk = trunk_pitch(model) is not None
        base = {j.name for i, j in enumerate(model.joints) if j.parent == model.root and j.kind == "free"}
        base |= {j.name for j in model.joints[:6]} if trunk else set()
        actuated = [n for n in names if n not in base]
    out = np.zeros(model.nv, bool)
    for j, _, sv in slices(model):
        out[sv] = j.name in actuated
    return out


__all__ = [
    "RANK",
    "ConstrainedEfforts",
    "ConstrainedMotion",
    "Contacts",
    "Impact",
    "accelerations",
    "assemble",
    "closed",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "constraint_terms",
    "driven_rates",
    "hold",
    "impact",
    "refuse_contradictions",
]
