"""Controllers in task space as users make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.formalisms import common_algorithm
from ..constraint.checks import driven_rates
from ..constraint.functions import call_traced
from ..errors import InputError, one_of, shown
from ..io.given import Array, finite, number, rotations
from ..kinematics.points import at_point
from ..mechanics.configuration import neutral, random, require_unit_quaternions
from ..mechanics.spatial import Mat
from ..mechanics.tree import build_tree
from ..model.draft import did_you_mean, expect_robot, names_in
from ..model.dynamics import Dynamics
from ..model.quantities import TASK_AXES
from .task_space import AdmittanceLaw, GainRows, HybridLaw, ImpedanceLaw, PoseReference, TaskSpaceLaw, driven_task

POSTURE_DAMPING = 5.0  # 1/s, of the joints that a task leaves free
MOBILE_SHARE = 1e-9  # of the largest singular value: below it is no motion


def operational_space(
    robot: Dynamics, link: str, stiffness: ArrayLike, damping: ArrayLike, reference: PoseReference | None = None,
    axes: str | Sequence[str] | None = None,
    rotation: ArrayLike | None = None, posture: ArrayLike | None = None, posture_stiffness: float = 0.0,
    posture_damping: float = POSTURE_DAMPING, regularisation: float = 0.0,
    actuated: Sequence[str] | None = None, point: ArrayLike | None = None,
) -> TaskSpaceLaw:  # fmt: skip
    """The law under which the errors of a link follow e'' + damping e' + stiffness e = 0 along each axis.

    stiffness (1/s^2), damping (1/s): a number, one for each axis, or a matrix. reference: a pose (4, 4), a point
    (3,) where no axis turns, or a function of time that gives one, or (pose, velocity (6,), acceleration (6,)); by
    default the pose at the neutral configuration. Errors are in world axes, linear first, of the orientation the
    logarithm of SO(3). axes: some of "x y z rx ry rz", by default all; they are the columns of rotation (3, 3), by
    default the world's. posture (nq,), posture_stiffness (1/s^2), posture_damping (1/s): motions that the task
    leaves free follow a = - posture_damping v - posture_stiffness (q - posture). regularisation: added squared to
    the diagonal of J M^-1 J^T, for singular postures. actuated: driven joints, by default all but a free base.
    point (3,): of the link, m, in its frame, in the place of its origin, as `robot.pose` has it.
    It is called as tau(t, q, v), simulated, compiled by drevo.simulate.Control, exported by its c(). Raises
    InputError.
    """
    free, rest = (posture, posture_stiffness, posture_damping), (regularisation, actuated, point)
    given = _task("operational_space", robot, link, stiffness, damping, reference, axes, rotation, free, *rest)
    return TaskSpaceLaw(**given)


def impedance(
    robot: Dynamics, link: str, stiffness: ArrayLike, damping: ArrayLike, reference: PoseReference | None = None,
    axes: str | Sequence[str] | None = None,
    rotation: ArrayLike | None = None, posture: ArrayLike | None = None, posture_stiffness: float = 0.0,
    posture_damping: float = POSTURE_DAMPING, regularisation: float = 0.0,
    actuated: Sequence[str] | None = None, point: ArrayLike | None = None,
) -> ImpedanceLaw:  # fmt: skip
    """The law under which a link pushed by a force F moves as Lambda e'' + damping e' + stiffness e = F.

    stiffness in N/m and N m/rad, damping in N s/m and N m s/rad; Lambda is the inertia that the robot has along
    the axes, so that nothing has to be measured. All other arguments are as of operational_space. Raises
    InputError.
    """
    free, rest = (posture, posture_stiffness, posture_damping), (regularisation, actuated, point)
    given = _task("impedance", robot, link, stiffness, damping, reference, axes, rotation, free, *rest)
    return ImpedanceLaw(**given)


def admittance(
    robot: Dynamics, link: str, stiffness: ArrayLike, damping: ArrayLike, inertia: ArrayLike = 1.0,
    reference: PoseReference | None = None, axes: str | Sequence[str] | None = None,
    rotation: ArrayLike | None = None, posture: ArrayLike | None = None, posture_stiffness: float = 0.0,
    posture_damping: float = POSTURE_DAMPING, regularisation: float = 0.0,
    actuated: Sequence[str] | None = None, point: ArrayLike | None = None,
) -> AdmittanceLaw:  # fmt: skip
    """The law under which a link moves as inertia e'' + damping e' + stiffness e = F of a measured force F.

    It is called as tau(t, q, v, wrench), wrench (6,) what acts on the link at its origin, or point, world axes.
    inertia in kg and kg m^2: a number, one for each axis, or a matrix. All other arguments are as of impedance.
    Raises InputError.
    """
    free, rest = (posture, posture_stiffness, posture_damping), (regularisation, actuated, point)
    given = _task("admittance", robot, link, stiffness, damping, reference, axes, rotation, free, *rest)
    M = np.array(_gains("admittance: inertia", inertia, len(given["axes"])))
    if np.linalg.eigvalsh(M).min() <= 0.0:
        raise InputError(f"admittance: inertia is {shown(inertia)}; it must be above 0 along every axis")
    return AdmittanceLaw(**given, compliance=_rows(np.linalg.inv(M)))


def hybrid(
    robot: Dynamics, link: str, stiffness: ArrayLike, damping: ArrayLike, reference: PoseReference | None = None,
    *, force_axes: str | Sequence[str], force: ArrayLike | Callable[[Any], Any],
    axes: str | Sequence[str] | None = None, force_gain: float = 0.0, force_damping: float = 0.0,
    rotation: ArrayLike | None = None, posture: ArrayLike | None = None, posture_stiffness: float = 0.0,
    posture_damping: float = POSTURE_DAMPING, regularisation: float = 0.0,
    actuated: Sequence[str] | None = None, point: ArrayLike | None = None,
) -> HybridLaw:  # fmt: skip
    """The law that moves a link along some axes as operational_space does, and presses along the others.

    force_axes: where it presses, such as "z"; force: how much, N and N m, what the link exerts; one number for
    each, or a function of time. axes: of motion, by default all others. force_gain: times the force that a sensor
    finds missing, which is added; the law is then called as tau(t, q, v, wrench), see admittance. force_damping
    (1/s): of motions along the axes of force. In contact motion and force do not disturb each other. All other
    arguments are as of operational_space. Raises InputError.
    """
    pressed = _axes("hybrid: force_axes", force_axes)
    chosen = tuple(x for x in TASK_AXES if x not in pressed) if axes is None else _axes("hybrid: axes", axes)
    if both := set(chosen) & set(pressed):
        raise InputError(f"hybrid: {min(both)!r} is an axis of motion and one of force; it can be one of them")
    free, rest = (posture, posture_stiffness, posture_damping), (regularisation, actuated, point)
    given = _task("hybrid", robot, link, stiffness, damping, reference, chosen, rotation, free, *rest, pressed)
    if not callable(force):
        force = _numbers("hybrid: force", force, len(pressed))
    else:
        _try_force(force, len(pressed))
    gains = _positive("hybrid: force_gain", force_gain), _positive("hybrid: force_damping", force_damping)
    return HybridLaw(**given, force_axes=pressed, force=force, force_gain=gains[0], force_damping=gains[1])


def _task(
    name: str, robot: Dynamics, link: str, stiffness: ArrayLike, damping: ArrayLike, reference: Any, axes: Any,
    rotation: ArrayLike | None, free: tuple[ArrayLike | None, float, float], regularisation: float,
    actuated: Sequence[str] | None, point: ArrayLike | None, also: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """The fields of a law, checked; also: axes that are controlled too."""
    expect_robot(robot, name)
    robot, link = at_point(name, robot, link, point)
    model = robot.model
    if model.closed:
        raise InputError(f"{name}: robot {robot.name!r} has loops, which have more joints than motions; use track")
    names = [x.name for x in model.links]
    if not isinstance(link, str) or link not in names:
        raise InputError(f"{name}: no link {shown(link)}{did_you_mean(str(link), names)}")
    chosen = TASK_AXES if axes is None else _axes(f"{name}: axes", axes)
    driven = driven_rates(model, actuated, f"{name}: actuated")
    posture, posture_stiffness, posture_damping = free
    turned = np.eye(3) if rotation is None else rotations(f"{name}: rotation", rotation)
    law = {
        "robot": robot, "link": link, "axes": chosen, "driven": tuple(map(bool, driven)),
        "stiffness": _gains(f"{name}: stiffness", stiffness, len(chosen)),
        "damping": _gains(f"{name}: damping", damping, len(chosen)),
        "reference": _reference(name, robot, link, chosen, reference),
        "rotation": Mat.of(turned.tolist()), "posture": _posture(name, robot, posture),
        "posture_stiffness": _positive(f"{name}: posture_stiffness", posture_stiffness),
        "posture_damping": _positive(f"{name}: posture_damping", posture_damping),
        "regularisation": _positive(f"{name}: regularisation", regularisation),
    }  # fmt: skip
    if not law["regularisation"]:
        _require_mobile(name, TaskSpaceLaw(**law), (*chosen, *also))
    _try_reference(name, TaskSpaceLaw(**law))
    return law


def _require_mobile(name: str, law: TaskSpaceLaw, axes: Sequence[str]) -> None:
    """InputError where the driven joints cannot move the link along the axes, in any posture."""
    model = law.robot.model
    q = random(model, np.random.default_rng(0), ()).tolist()
    still = [0.0] * model.nv
    J = driven_task(build_tree(model), q, still, still, law.link, law.driven).J
    motions = np.reshape([law.along(column, axes) for column in zip(*J)], (-1, len(axes)))
    s = np.linalg.svd(motions, compute_uv=False)
    rank = int((s > MOBILE_SHARE * s[0]).sum()) if s.any() else 0
    if rank < len(axes):
        raise InputError(
            f"{name}: link {law.link!r} cannot move along all of {' '.join(axes)}: its driven joints give {rank} "
            "motions; choose axes along which it moves, or give regularisation"
        )


def _try_reference(name: str, law: TaskSpaceLaw) -> None:
    """InputError where a reference that is a function fails, when the law is made."""
    goal = call_traced(f"{name}: reference", lambda: law.goal(0.0))
    sizes = len(goal.rate), len(goal.acceleration)
    if sizes != (6, 6):
        raise InputError(f"{name}: reference: velocity and acceleration have {sizes} numbers; each has 6")


def _try_force(force: Callable[[Any], Any], axes: int) -> None:
    """InputError where a force that is a function of time fails, when the law is made."""
    size = call_traced("hybrid: force", lambda: len(force(0.0)))
    if size != axes:
        raise InputError(f"hybrid: force gives {size} numbers for {axes} axes")


def _reference(name: str, robot: Dynamics, link: str, axes: Sequence[str], given: Any) -> Any:
    """A function, or rows of a pose, or a point."""
    if callable(given):
        return given
    if given is None:
        q = robot.model.initial or neutral(robot.model)
        pose = common_algorithm("pose")(build_tree(robot.model), list(map(float, q)), link=link)
        return tuple(tuple(map(float, row)) for row in pose)
    title = f"{name}: reference"
    if np.shape(given) == (3,):
        if any(x in TASK_AXES[3:] for x in axes):
            raise InputError(f"{title} is a point, and the axes turn; give a pose (4, 4), or axes='x y z'")
        return tuple(finite(title, given, (3,), InputError).tolist())
    T = finite(title, given, (4, 4), InputError)
    rotations(title, T[:3, :3])
    return _rows(T)


def _posture(name: str, robot: Dynamics, given: ArrayLike | None) -> tuple[float, ...]:
    if given is None:
        return ()
    q = finite(f"{name}: posture", given, (robot.nq,), InputError)
    require_unit_quaternions(robot.model, f"{name}: posture", q, InputError)
    return tuple(q.tolist())


def _axes(title: str, given: Any) -> tuple[str, ...]:
    """Some of the six axes, each once, from text or a list."""
    names = given.replace(",", " ").split() if isinstance(given, str) else names_in(given, title)
    if not names or len(set(names)) < len(names):
        raise InputError(f"{title} are some of {', '.join(TASK_AXES)}, each once, not {shown(given)}")
    return tuple(one_of(title, x, TASK_AXES, InputError) for x in names)


def _gains(title: str, given: ArrayLike, n: int) -> GainRows:
    """A matrix, from a number, the diagonal, or all of it; no motion along it gains energy by it."""
    x = finite(title, given, error=InputError)
    if x.shape not in ((), (n,), (n, n)):
        raise InputError(f"{title} has shape {x.shape}; give a number, {n} of them, or a matrix ({n}, {n})")
    A = x if x.ndim == 2 else np.diag(np.broadcast_to(x, (n,)))
    unit = A / (np.abs(A).max() or 1.0)
    if np.linalg.eigvalsh(unit + unit.T).min() < -1e-12:
        raise InputError(f"{title} must be 0 or more along every axis, not {shown(given)}")
    return _rows(A)


def _numbers(title: str, given: ArrayLike, n: int) -> tuple[float, ...]:
    x = finite(title, given, error=InputError)
    if x.shape not in ((), (n,)):
        raise InputError(f"{title} has shape {x.shape}; give a number, or {n} of them")
    return tuple(np.broadcast_to(x, (n,)).tolist())


def _rows(x: Array) -> GainRows:
    return tuple(map(tuple, x.tolist()))


def _positive(name: str, x: float) -> float:
    return number(name, x, "a number from 0 on", lambda y: 0.0 <= y < np.inf)
