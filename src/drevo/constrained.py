"""Dynamics under constraints f(q, t) = 0: accelerations, reactions, the efforts for a motion, landings.

    M a + h = tau + Gamma^T N,   Gamma a + gamma = 0                                    Zaremba (2.17), (2.18)

M, h, Gamma and gamma are compiled; the small dense solve is NumPy's, in the coordinates y = L^T a, M = L L^T,
where a is the projection of Udwadia and Kalaba: a and Gamma^T N are unique for any set, N has the least norm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from .algorithms.constraints import Kinematics
from .constraint import Constraint, Contact, PoseTracking, Traced, Weld, all_rows, collect, labels
from .errors import InputError, NumericsError
from .graph.node import Graph
from .graph.program import Input, Output, Program
from .mechanics.configuration import slices
from .mechanics.tree import build_tree
from .model.description import Model

if TYPE_CHECKING:
    from .robot import Robot
    from .runtime.function import Function

Array = np.ndarray[Any, Any]
Contacts = Sequence[Contact | Mapping[str, Any]] | None

RANK = 1e-10  # of the largest singular value of Gamma L^-T: below it a direction counts as lost
CONSISTENT = 1e-6  # of the largest right-hand side, at least 1: what dependent rows may disagree by (SI)
LOCK = 1e-6  # |cos pitch| of a trunk: below it yaw and roll are the same axis to 6 digits
TRUNK = (
    ("prismatic", (0.0, 0.0, 1.0)), ("prismatic", (0.0, 1.0, 0.0)), ("prismatic", (1.0, 0.0, 0.0)),
    ("revolute", (0.0, 0.0, 1.0)), ("revolute", (0.0, 1.0, 0.0)), ("revolute", (1.0, 0.0, 0.0)),
)  # fmt: skip


class Terms(NamedTuple):
    """f, f', Gamma and gamma of a set at a state."""

    value: Array
    rate: Array
    jacobian: Array
    gamma: Array


@dataclass(frozen=True)
class ConstrainedMotion:
    """a (..., nv), N (..., m) acting on the robot, rank of Gamma, Gamma (..., m, nv), gamma (..., m).

    M a + h = tau + Gamma^T N and Gamma a + gamma = 0; with stabilisation the second holds for gamma plus its
    feedback. rows names the rows: contacts, constraints, then the robot's own loops. value and rate are f and
    f' of the state.
    """

    a: Array
    reactions: Array
    rank: Any
    jacobian: Array
    gamma: Array
    rows: tuple[str, ...]
    value: Array
    rate: Array


@dataclass(frozen=True)
class ConstrainedEfforts:
    """tau (..., nv), zero where nothing drives, and N (..., m): M a + h = tau + Gamma^T N."""

    tau: Array
    reactions: Array
    rows: tuple[str, ...]
    jacobian: Array
    gamma: Array


@dataclass(frozen=True)
class Impact:
    """Velocity after an impact (..., nv), impulses (..., m), rank of Gamma; M (v+ - v) = Gamma^T impulses."""

    v: Array
    impulses: Array
    rank: Any
    rows: tuple[str, ...]


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
        found = _held(robot, found, x)
    c = constraint_terms(robot, found, x, v, t)
    gamma = c.gamma
    if stabilise is not None:
        gamma = gamma + _gain(stabilise[0], c.rate) + _gain(stabilise[1], c.value)
    h = robot.bias(x, v, f_ext=f_ext) if f_ext else robot.bias(x, v)
    s = _Split.of(robot, x, c.jacobian)
    _refuse_contradictions(s, labels(found), {"m": c.value, "m/s": c.rate, "m/s^2": c.gamma})
    a, N = s.solve(tau - h, gamma)
    return ConstrainedMotion(a, N, s.rank, c.jacobian, c.gamma, labels(found), c.value, c.rate)


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
    driven = _driven(robot.model, actuated)
    c = constraint_terms(robot, found, x, v, t)
    _refuse_violation(_times(c.jacobian, a), c.gamma, labels(found))
    b = robot.inverse_dynamics(x, v, a, f_ext=f_ext) if f_ext else robot.inverse_dynamics(x, v, a)
    GT = np.swapaxes(c.jacobian, -1, -2)
    idle, free = GT[..., ~driven, :], GT[..., driven, :]
    size = np.linalg.norm(GT, axis=(-1, -2))
    back = _pinv(idle, size)
    N = _times(back, b[..., ~driven])
    _refuse_undriven(robot.model, ~driven, b[..., ~driven] - _times(idle, N), b)
    rest = np.eye(GT.shape[-1]) - back @ idle  # what may still change without moving the idle joints
    N = N + _times(_pinv(free @ rest, size), b[..., driven] - _times(free, N))
    tau = b - _times(GT, N)
    tau[..., ~driven] = 0.0
    return ConstrainedEfforts(tau, N, labels(found), c.jacobian, c.gamma)


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
    explicit = c.rate - _times(c.jacobian, v)  # f_t
    s = _Split.of(robot, x, c.jacobian)
    _refuse_contradictions(s, labels(found), {"m/s": explicit})
    after, impulses = s.solve(_times(robot.mass_matrix(x), v), explicit + restitution * c.rate)
    return Impact(after, impulses, s.rank, labels(found))


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
    found = _held(robot, found, x)
    for _ in range(steps):
        c = constraint_terms(robot, found, x, v, t)
        if np.max(np.abs(c.value), initial=0.0) <= tolerance:
            break
        dq, _ = _Split.of(robot, x, c.jacobian).solve(np.zeros(robot.nv), c.value)
        x = robot.integrate(x, dq)
    c = constraint_terms(robot, found, x, v, t)
    if not np.max(np.abs(c.value), initial=0.0) <= tolerance:
        *_, i = np.unravel_index(int(np.argmax(np.abs(c.value))), c.value.shape)
        raise NumericsError(
            f"the constraints cannot be met from here: after {steps} steps {labels(found)[int(i)]} "
            f"is still off by {np.max(np.abs(c.value)):.3g}; start closer, or correct the constraint"
        )
    s = _Split.of(robot, x, c.jacobian)
    return x, s.solve(_times(robot.mass_matrix(x), v), c.rate - _times(c.jacobian, v))[0]


# -- the solve ---------------------------------------------------------------------------------------------


class _Split(NamedTuple):
    """Gamma L^-T = U diag(s) V^T with M = L L^T; inverse holds 1 / s of the kept directions, else 0."""

    L: Array
    U: Array
    inverse: Array
    V: Array

    @classmethod
    def of(cls, robot: Robot, q: Array, jacobian: Array) -> _Split:
        L = _cholesky(robot, q)
        weighted = np.swapaxes(np.linalg.solve(L, np.swapaxes(jacobian, -1, -2)), -1, -2)
        if not weighted.shape[-2] or not weighted.shape[-1]:
            lead, m, n = weighted.shape[:-2], *weighted.shape[-2:]
            return cls(L, np.zeros((*lead, m, 0)), np.zeros((*lead, 0)), np.zeros((*lead, n, 0)))
        U, s, Vt = np.linalg.svd(weighted, full_matrices=False)
        keep = s > RANK * s[..., :1]
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=keep)
        return cls(L, U, inverse, np.swapaxes(Vt, -1, -2))

    @property
    def rank(self) -> Any:
        kept = np.count_nonzero(self.inverse, axis=-1)
        return int(kept) if np.ndim(kept) == 0 else kept

    def solve(self, force: Array, gamma: Array) -> tuple[Array, Array]:
        """a and least-norm N: y = y0 + V s^-1 U^T need, N = U s^-2 U^T need, need = -(gamma + Gamma a0)."""
        y0 = _lower(self.L, force)
        wanted = -_times(np.swapaxes(self.U, -1, -2), gamma) * self.inverse
        held = np.where(self.inverse > 0.0, _times(np.swapaxes(self.V, -1, -2), y0), 0.0)
        share = wanted - held
        y = y0 + _times(self.V, share)
        a = _lower(np.swapaxes(self.L, -1, -2), y)
        return a, _times(self.U, self.inverse * share)

    def lost(self, x: Array) -> Array:
        """The part of a right-hand side that no motion can meet."""
        kept = np.where(self.inverse > 0.0, _times(np.swapaxes(self.U, -1, -2), x), 0.0)
        return x - _times(self.U, kept)


def _times(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def _lower(L: Array, x: Array) -> Array:
    return np.asarray(np.linalg.solve(L, x[..., None])[..., 0])


def _pinv(A: Array, size: Array) -> Array:
    """Moore-Penrose inverse; singular values below RANK of `size` are rounding, even if all are."""
    if not A.shape[-1] or not A.shape[-2]:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > RANK * size[..., None])
    return np.asarray((np.swapaxes(Vt, -1, -2) * inverse[..., None, :]) @ np.swapaxes(U, -1, -2))


def _cholesky(robot: Robot, q: Array) -> Array:
    try:
        return np.linalg.cholesky(robot.mass_matrix(q))
    except np.linalg.LinAlgError:
        raise NumericsError(
            f"robot {robot.name!r}: the mass matrix is not positive definite at this configuration, so the "
            "motion is not determined; give the bodies mass, or leave the singular configuration"
        ) from None


def _gain(gain: ArrayLike, x: Array) -> Array:
    g = np.asarray(gain, float)
    return _times(g, x) if g.ndim == 2 else np.asarray(g * x)


# -- what is refused ---------------------------------------------------------------------------------------


def _refuse_contradictions(s: _Split, names: Sequence[str], sides: Mapping[str, Array]) -> None:
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


def trunk_pitch(model: Model) -> int | None:
    """Index in q of the pitch of a trunk (joints z, y, x, yaw, pitch, roll before the root), or None."""
    first = model.joints[:6]
    if tuple((j.kind, j.axis) for j in first) != TRUNK or not first[0].name.startswith("trunk_1"):
        return None
    return 4


def refuse_gimbal_lock(model: Model, q: Array) -> None:
    """NumericsError where a trunk's pitch is at +-90 degrees: yaw and roll are one axis, M is singular."""
    pitch = trunk_pitch(model)
    if pitch is None:
        return
    angle = np.asarray(q)[..., pitch]
    locked = np.abs(np.cos(angle)) < LOCK
    if np.any(locked):
        k = int(np.argmax(locked))
        where = f" in row {k} of the batch" if angle.ndim else ""
        raise NumericsError(
            f"the trunk of robot {model.name!r} is in gimbal lock{where}: joint {model.joints[pitch].name!r} "
            f"(pitch) is {float(angle.flat[k]):.9g} rad, where yaw and roll turn about the same axis; load "
            "with base='floating'"
        )


# -- Gamma and gamma, compiled -----------------------------------------------------------------------------

_MADE: WeakKeyDictionary[Any, dict[tuple[Constraint, ...], Function]] = WeakKeyDictionary()
_HELD: WeakKeyDictionary[Any, dict[Weld, Weld]] = WeakKeyDictionary()


def constraint_terms(
    robot: Robot, found: tuple[Constraint, ...], q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0
) -> Terms:
    """f, f', Gamma (..., m, nv) and gamma (..., m) of constraints that `constraint.collect` has checked."""
    time = np.asarray(t, float)[..., None]
    if found:
        return Terms(*constraint_function(robot, found)(q, v, time))
    lead = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    none = np.zeros((*lead, 0))
    return Terms(none, none, np.zeros((*lead, 0, robot.nv)), none)


def constraint_function(robot: Robot, found: tuple[Constraint, ...]) -> Function:
    """The compiled function of a set, made once per robot."""
    from .compiler import digest, stamp
    from .runtime.function import Spec, obtain

    made = _MADE.setdefault(robot, {})
    if found not in made:
        traced = any(
            isinstance(c, (PoseTracking, Traced)) for c in found
        )  # a Python function has no name that lasts
        key = "\n".join([stamp(), digest(robot.model), "constraints", repr(found)])
        spec = Spec(dtype="float64", layout="rows", packed=False, parameters=False, check=True)
        made[found] = obtain(key, lambda: constraint_program(robot.model, found), spec, cache=not traced)
    return made[found]


def constraint_program(model: Model, found: tuple[Constraint, ...]) -> Program:
    """The program of f, f', Gamma and gamma with inputs q, v and t."""
    graph, tree = Graph(), build_tree(model)
    sizes = {"q": model.nq, "v": model.nv, "t": 1}
    state = {s: [graph.input(f"{s}[{i}]") for i in range(n)] for s, n in sizes.items()}
    inputs = tuple(Input(s, (n,), tuple(x.edge >> 1 for x in state[s])) for s, n in sizes.items())
    rows = all_rows(found, Kinematics(tree, state["q"], state["v"]), state["t"][0])
    m = len(rows.value)
    jacobian = [x for row in rows.jacobian for x in row]
    parts = (("f", rows.value), ("rate", rows.rate), ("jacobian", jacobian), ("gamma", rows.bias))
    shapes = {"jacobian": (m, model.nv)}
    outputs = tuple(
        Output(name, shapes.get(name, (m,)), tuple(graph.edge(x) for x in values)) for name, values in parts
    )
    starts = [b.q + b.nq - 4 for b in tree.bodies if b.nq >= 4]
    units = tuple(tuple(x.edge >> 1 for x in state["q"][k : k + 4]) for k in starts)
    about = {"robot": model.name, "quantity": "constraints", "formalism": "newton_euler"}
    return Program("constraints", graph, inputs, (), outputs, {}, (), units, about)


def _held(robot: Robot, found: tuple[Constraint, ...], q: Array) -> tuple[Constraint, ...]:
    """Welds without a rotation get the one they had at first use."""
    memory = _HELD.setdefault(robot, {})
    out: list[Constraint] = []
    for c in found:
        if isinstance(c, Weld) and c.rotation is None:
            if c not in memory:
                first = q.reshape(-1, robot.nq)[0]
                Ra, Rb = (robot.pose(first, link)[:3, :3] for link in (c.link_a, c.link_b))
                turn = tuple(tuple(float(x) for x in row) for row in Ra.T @ Rb)
                memory[c] = Weld(c.link_a, c.point_a, c.link_b, c.point_b, turn)  # type: ignore[arg-type]
            c = memory[c]
        out.append(c)
    return tuple(out)


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


def _driven(model: Model, actuated: Sequence[str] | None) -> Array:
    """Which rates have a drive."""
    names = [j.name for j in model.moving_joints]
    for name in actuated or ():
        if name not in names:
            raise InputError(f"actuated: {name!r} is no moving joint; there are {', '.join(names)}")
    if actuated is None:
        trunk = trunk_pitch(model) is not None
        base = {j.name for i, j in enumerate(model.joints) if j.parent == model.root and j.kind == "free"}
        base |= {j.name for j in model.joints[:6]} if trunk else set()
        actuated = [n for n in names if n not in base]
    out = np.zeros(model.nv, bool)
    for j, _, sv in slices(model):
        out[sv] = j.name in actuated
    return out
