"""Tasks of differential inverse kinematics: an error e(q), its Jacobian J and costs, minimised as |W (J dq + gain
e)|^2.

The words and the conventions are those of pink and mink: errors are tangent vectors, of a frame the logarithm of
SE(3) in the axes of the link, linear part first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.formalisms import common_algorithm
from ..errors import InputError, shown
from ..io.given import finite, number, numbers, short_text, whole
from ..mechanics.algorithms.derivatives import displaced
from ..mechanics.configuration import neutral
from ..mechanics.jet import Jet, jet
from ..mechanics.manifold import logarithm, logarithm_rates
from ..mechanics.rotation import unit_quaternion
from ..mechanics.scalar import Matrix, Scalar, Vector
from ..mechanics.spatial import Mat, Vec
from ..mechanics.tree import Tree
from ..model.description import Model
from ..model.quantities import TASK_AXES, task_axes

WHOLE_FRAME = ((7, slice(0, 7), slice(0, 6)),)  # a pose as a free joint moves
FRAME_AT_REST = [0.0] * 6 + [1.0]


class TaskRows(NamedTuple):
    """Jacobian J (k, nv) and error e (k,) of a task, J dq + gain e = 0 where it is fulfilled."""

    J: Matrix
    error: list[Scalar]


class Posed(NamedTuple):
    """A robot at a configuration, ready for tasks. dt: s."""

    tree: Tree
    model: Model
    q: Vector
    dt: float

    def quantity(self, name: str, **options: Any) -> Any:
        """A quantity of the catalogue at q."""
        return common_algorithm(name)(self.tree, self.q, **options)


@dataclass(frozen=True, kw_only=True)
class KinematicTask:
    """A task of a stack. gain: the share of the error that one step takes, 0 to 1. lm_damping: times the squared
    weighted error it is added to the diagonal (Levenberg and Marquardt). priority: 0 first; a task never disturbs
    one of a lower number, and tasks of one number are weighed by their costs. name: by which targets, costs and
    gains are given; its link's name by default.
    """

    gain: float = 1.0
    lm_damping: float = 0.0
    priority: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        title = type(self).__name__
        number(f"{title}: gain", self.gain, "a number from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        number(f"{title}: lm_damping", self.lm_damping, "a number from 0 on", lambda x: 0.0 <= x < np.inf)
        whole(f"{title}: priority", self.priority, 0, use=": 0 is the first")
        short_text(f"{title}: name", self.name)

    @property
    def default_name(self) -> str:
        """The name where none is given."""
        return {"ComTask": "center_of_mass"}.get(
            type(self).__name__, type(self).__name__.removesuffix("Task").lower()
        )

    def target_shape(self, model: Model) -> tuple[int, ...] | None:
        """The shape of a target, None where the task has none."""
        return None

    def default_target(self, model: Model) -> Any:
        """The target where none is given, None where one must be."""
        return None

    def costs(self, model: Model) -> list[tuple[str, float]]:
        """Name and cost of every row; rows of one name have one cost."""
        raise NotImplementedError

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """Jacobian and error at a configuration, not yet weighted."""
        raise NotImplementedError

    def links(self) -> tuple[str, ...]:
        """The links that it names."""
        return ()


def costs_of(name: str, given: ArrayLike, count: int) -> tuple[float, ...]:
    """Costs from one number, or from so many."""
    x = numbers(name, given)
    if x.shape not in ((), (1,), (count,)) or not ((x >= 0.0) & (x < np.inf)).all():
        raise InputError(f"{name} is {shown(given)}; it must be a number from 0 on, or {count} of them")
    return tuple(float(y) for y in np.broadcast_to(x, (count,)))


def frame_costs(position: ArrayLike, orientation: ArrayLike) -> list[tuple[str, float]]:
    """Costs of the six rows of a frame; a number stands for three rows, and has one name."""
    out = []
    for name, given, axes in (
        ("position_cost", position, TASK_AXES[:3]),
        ("orientation_cost", orientation, TASK_AXES[3:]),
    ):
        values = costs_of(name, given, 3)
        out += [(name if np.ndim(given) == 0 else f"{name}.{a}", x) for a, x in zip(axes, values)]
    return out


def frame_rows(T: Matrix, J: Matrix, target: Vector) -> TaskRows:
    """log(T_target^-1 T), (6,), and its Jacobian, from that of the frame's origin in the axes of T."""
    (goal, o), (R, p) = (
        (Mat.of([row[:3] for row in X]), Vec(*(row[3] for row in X)))
        for X in ([target[4 * k : 4 * k + 4] for k in range(3)], T[:3])
    )
    seen = [*(goal.T @ (p - o)), *unit_quaternion(goal.T.mul(R))]
    by = logarithm_rates(WHOLE_FRAME, FRAME_AT_REST, seen)[1]
    A, B = (Mat.of([[by[i, c + k] for k in range(3)] for i in range(3)]).mul(R.T) for c in (0, 3))
    columns = [(Vec(*column[:3]), Vec(*column[3:])) for column in zip(*J)]
    rows = zip(*([*(A @ v + B @ w), *(A @ w)] for v, w in columns))
    return TaskRows(list(map(list, rows)), logarithm(WHOLE_FRAME, FRAME_AT_REST, seen))


def twist_at(arm: Vec, twist: Vector) -> list[Scalar]:
    """A velocity, linear first, of a point that is an arm away from the origin: v + w x r."""
    v, w = Vec(*twist[:3]), Vec(*twist[3:])
    return [*(v + w.cross(arm)), *w]


def jacobian_at(arm: Vec, J: Matrix) -> Matrix:
    """The Jacobian of a point that is an arm away from the origin, by columns v + w x r."""
    return [list(row) for row in zip(*(twist_at(arm, column) for column in zip(*J)))]


def moved_to_point(point: Sequence[float] | None, T: Matrix, J: Matrix) -> tuple[Matrix, Matrix]:
    """Pose and Jacobian (axes of T's base) of a point of the link, m in its frame; None for the origin."""
    if point is None:
        return T, J
    arm = Mat.of([row[:3] for row in T[:3]]) @ Vec(*point)
    return [[*row[:3], row[3] + x] for row, x in zip(T[:3], arm)], jacobian_at(arm, J)


class _OfFrame(KinematicTask):
    """A task with the six rows of a frame: its costs, and the point (3,) of its link that is meant."""

    position_cost: ArrayLike
    orientation_cost: ArrayLike
    point: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.point is not None:
            place = finite(f"{type(self).__name__}: point", self.point, (3,), InputError)
            object.__setattr__(self, "point", tuple(place.tolist()))

    def target_shape(self, model: Model) -> tuple[int, ...]:
        """A pose."""
        return (4, 4)

    def costs(self, model: Model) -> list[tuple[str, float]]:
        """Costs of x, y, z and the turns about them."""
        return frame_costs(self.position_cost, self.orientation_cost)


@dataclass(frozen=True)
class FrameTask(_OfFrame):
    """Brings a link to a pose, target (4, 4). Costs in 1/m and 1/rad: a number, or one for each axis of the
    link. point (3,): of the link, m, in its frame, in the place of its origin."""

    link: str
    position_cost: ArrayLike = 1.0
    orientation_cost: ArrayLike = 1.0
    point: Any = None

    @property
    def default_name(self) -> str:
        """The link's name."""
        return self.link

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """log(T_target^-1 T) and its Jacobian."""
        T = at.quantity("pose", link=self.link)
        J = at.quantity("jacobian", link=self.link, frame="local_world_aligned")
        return frame_rows(*moved_to_point(self.point, T, J), target)

    def links(self) -> tuple[str, ...]:
        """The link of the task."""
        return (self.link,)


@dataclass(frozen=True)
class RelativeFrameTask(_OfFrame):
    """Brings a link to a pose in the frame of another, target (4, 4). Costs and point (3,) as of FrameTask."""

    link: str
    root: str
    position_cost: ArrayLike = 1.0
    orientation_cost: ArrayLike = 1.0
    point: Any = None

    @property
    def default_name(self) -> str:
        """Both links."""
        return f"{self.link}/{self.root}"

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """log(T_target^-1 T) of the pose in the root, and its Jacobian."""
        options = {"link": self.link, "relative_to": self.root}
        J = at.quantity("jacobian", frame="local_world_aligned", **options)
        return frame_rows(*moved_to_point(self.point, at.quantity("pose", **options), J), target)

    def links(self) -> tuple[str, ...]:
        """Both."""
        return self.link, self.root


@dataclass(frozen=True)
class ComTask(KinematicTask):
    """Brings the centre of mass to a point of the world, target (3,), m. cost in 1/m: a number, or one for each
    axis."""

    cost: ArrayLike = 1.0

    def target_shape(self, model: Model) -> tuple[int, ...]:
        """A point."""
        return (3,)

    def costs(self, model: Model) -> list[tuple[str, float]]:
        """Costs of x, y and z."""
        return frame_costs(self.cost, 0.0)[:3]

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """The centre of mass less its target, and its Jacobian."""
        center = at.quantity("center_of_mass")
        return TaskRows(at.quantity("center_of_mass_jacobian"), [x - y for x, y in zip(center, target)])


class _OfRates(KinematicTask):
    """A task with a row for every rate; a number stands for all rates but those of a floating base."""

    cost: ArrayLike

    def costs(self, model: Model) -> list[tuple[str, float]]:
        """One for each rate."""
        given = numbers(f"{type(self).__name__}: cost", self.cost)
        if given.ndim:
            return [(f"cost.{k}", x) for k, x in enumerate(costs_of("cost", given, model.nv))]
        (value,) = costs_of("cost", given, 1)
        floating = [k for j, _, sv in model.slices() if j.nq == 7 for k in range(sv.start, sv.stop)]
        return [("cost", 0.0 if k in floating else value) for k in range(model.nv)]


def unit_rows(n: int) -> Matrix:
    """The unit matrix."""
    return [[1.0 if i == k else 0.0 for k in range(n)] for i in range(n)]


@dataclass(frozen=True)
class PostureTask(_OfRates):
    """Draws joints to a configuration, target (nq,), by default the robot's neutral one. cost in 1/rad or 1/m."""

    cost: ArrayLike = 1.0

    def target_shape(self, model: Model) -> tuple[int, ...]:
        """A configuration."""
        return (model.nq,)

    def default_target(self, model: Model) -> Any:
        """The configuration of the file, or the neutral one."""
        return np.array(model.initial) if model.initial else neutral(model)

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """q less the target on the tangent space."""
        runs, n = at.model.runs, at.model.nv
        error = logarithm(runs, target, at.q)
        J = unit_rows(n)
        for (i, k), x in logarithm_rates(runs, target, at.q)[1].items():
            J[i][k] = x
        return TaskRows(J, error)


@dataclass(frozen=True)
class JointVelocityTask(_OfRates):
    """Draws the rates of joints to given ones, target (nv,), rad/s or m/s. cost in s/rad or s/m, times dt."""

    cost: ArrayLike = 1.0

    def target_shape(self, model: Model) -> tuple[int, ...]:
        """Rates."""
        return (model.nv,)

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """dq - v dt."""
        return TaskRows(unit_rows(at.model.nv), [-(at.dt * x) for x in target])


@dataclass(frozen=True)
class DampingTask(_OfRates):
    """Keeps joints at rest, as far as other tasks leave them free. cost in 1/rad or 1/m."""

    cost: ArrayLike = 1.0

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """dq itself."""
        return TaskRows(unit_rows(at.model.nv), [0.0] * at.model.nv)


@dataclass(frozen=True)
class ManipulabilityTask(KinematicTask):
    """Raises sqrt(det(J J^T)) of a link at a rate, in its units per second: away from singular postures.

    axes: of the link's own frame, as of `robot.manipulability`.
    """

    link: str
    cost: float = 1.0
    rate: float = 0.1
    axes: str | Sequence[str] = " ".join(TASK_AXES)

    def __post_init__(self) -> None:
        super().__post_init__()
        number("ManipulabilityTask: rate", self.rate)
        object.__setattr__(self, "axes", " ".join(task_axes("ManipulabilityTask", self.axes)))

    @property
    def default_name(self) -> str:
        """A name with the link."""
        return f"manipulability/{self.link}"

    def costs(self, model: Model) -> list[tuple[str, float]]:
        """The cost of its one row."""
        return [("cost", costs_of("ManipulabilityTask: cost", self.cost, 1)[0])]

    def rows(self, at: Posed, target: Vector) -> TaskRows:
        """The gradient of the manipulability, along each rate, and what it lacks."""
        tree = at.tree
        numbers_of = {b.v + k: b.q + k for b in tree.owners() if b.nq == b.nv for k in range(b.nv)}

        def slope(k: int) -> Scalar:
            step: list[Any] = [0.0] * at.model.nv
            step[k] = Jet(0.0, 1.0)
            q = displaced(tree, at.q, step, 1)
            if k in numbers_of:
                q[numbers_of[k]] = Jet(q[numbers_of[k]], 1.0)
            moved = Posed(tree, at.model, q, at.dt)
            return jet(moved.quantity("manipulability", link=self.link, frame="local", axes=self.axes)).d

        return TaskRows([[slope(k) for k in range(at.model.nv)]], [-(at.dt * self.rate)])

    def links(self) -> tuple[str, ...]:
        """The link of the task."""
        return (self.link,)
