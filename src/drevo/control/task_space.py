"""Controllers in task space: operational space, impedance, admittance, hybrid force and motion.

With J the Jacobian of a link along the chosen axes, x its coordinates and Lambda = (J M^-1 J^T)^-1,

    tau = tau_p + J^T (Lambda (x'' - x_p'') + F),  tau_p = M a_p + h,  x_p'' = J a_p + J' v

gives the link the acceleration x'' where nothing pushes it, and the motions that the task leaves free the
acceleration a_p: Khatib 1987, A unified approach for motion and force control of robot manipulators, (33) to (51),
with N^T tau_0 of tau_0 = M a_p written out. tau_p is inverse dynamics at a_p, x_p'' what the link does then: no
matrix is multiplied by a_p. The axes are chosen before Lambda is formed, which is so the inertia along these axes
alone. Rates that nothing drives, as those of a free base, are eliminated first: M, tau_p and J are then those of
the driven ones (Umetani, Yoshida 1989, Resolved motion rate control with generalized Jacobian matrix).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..compiler.formalisms import common_algorithm, fastest
from ..compiler.pages.telegin_inputs import with_coordinates
from ..compiler.tracer import Tracer
from ..io.given import Array, finite, leading, number
from ..io.reprs import brief
from ..mechanics.algorithms.inertia_matrix import Factors, factorised, lower_rows
from ..mechanics.algorithms.task_space import inverted, solved, weighed
from ..mechanics.jet import Jet, jet
from ..mechanics.manifold import log_ball
from ..mechanics.rotation import unit_quaternion
from ..mechanics.scalar import Matrix, Scalar, Vector, dot
from ..mechanics.spatial import EYE, Mat, Vec
from ..mechanics.tree import Tree, build_tree
from ..model.dynamics import Dynamics
from ..model.quantities import TASK_AXES
from .law import Law, deviation, efforts_of

PoseReference = ArrayLike | Callable[[Any], Any]
SIX_ZEROS = (0.0,) * 6
GainRows = tuple[tuple[float, ...], ...]  # of a matrix


class TaskGoal(NamedTuple):
    """A pose, and its velocity and acceleration (6,), linear first, world axes."""

    p: Vec
    R: Mat
    rate: Vector
    acceleration: Vector


class TaskState(NamedTuple):
    """Errors e and e' of a link along the axes of motion, and the acceleration a of the reference there.

    V: its velocity (6,), wrench: measured on it (6,), world axes; t: the time, s.
    """

    t: Scalar
    e: list[Scalar]
    de: list[Scalar]
    a: list[Scalar]
    V: Vector
    wrench: Vector


class DrivenTask(NamedTuple):
    """Driven rates and a link under M a + efforts = tau, x'' = J a + rate, a beyond given accelerations."""

    factors: Factors  # of M
    efforts: Vector
    J: Matrix  # along all six axes
    rate: Vector


@brief
@dataclass(frozen=True)
class TaskSpaceLaw(Law):
    """A law for a link along some axes: operational space, x'' + damping x' + stiffness x = 0 of the errors.

    rotation: columns are the axes in the world. reference: a pose, a point, or a function of time. posture: a
    configuration (nq,), or () where the joints left free are only damped. driven: (nv,) of bool.
    """

    robot: Dynamics
    link: str
    axes: tuple[str, ...]
    stiffness: GainRows
    damping: GainRows
    reference: Any
    rotation: Mat
    posture: tuple[float, ...]
    posture_stiffness: float
    posture_damping: float
    regularisation: float
    driven: tuple[bool, ...]

    @property
    def controlled_axes(self) -> tuple[str, ...]:
        """The axes along which the link is accelerated as is wanted."""
        return self.axes

    # -- what is wanted -----------------------------------------------------------------------------------------

    def goal(self, t: Scalar) -> TaskGoal:
        """The reference at a time; derivatives of a pose that is a function are taken."""
        if not callable(self.reference):
            return TaskGoal(*_pose_parts(self.reference), SIX_ZEROS, SIX_ZEROS)
        given = self.reference(t)
        if isinstance(given, tuple) and len(given) == 3 and np.ndim(given[0]):
            pose, rate, acceleration = given
            return TaskGoal(*_pose_parts(pose), list(rate), list(acceleration))
        p, R = _pose_parts(self.reference(Jet(t, 1.0)))
        x = [jet(y) for y in p]
        (R0, R1, R2) = (Mat.of([[getattr(jet(y), k) for y in row] for row in R]) for k in ("x", "d", "dd"))
        turning = _vector_of(R1.mul(R0.T)), _vector_of(R2.mul(R0.T) + R1.mul(R1.T))
        rates = ([*(getattr(y, k) for y in x), *w] for k, w in zip(("d", "dd"), turning))
        return TaskGoal(Vec(*(y.x for y in x)), R0, *rates)

    def along(self, x: Vector, axes: Sequence[str]) -> list[Scalar]:
        """The parts along some axes of linear and angular components in world axes."""
        back = self.rotation.T
        turned = [*(back @ Vec(*x[:3])), *(back @ Vec(*x[3:]))]
        return [turned[TASK_AXES.index(name)] for name in axes]

    def state(self, t: Scalar, T: Matrix, V: Vector, wrench: Vector) -> TaskState:
        """The state of the task at a pose and a velocity.

        The error of the orientation is the logarithm of SO(3), up to half a turn and there too.
        """
        goal, R = self.goal(t), Mat.of([row[:3] for row in T[:3]])
        turn: Vector = [0.0] * 3
        if any(name in TASK_AXES[3:] for name in self.axes):
            turn = list(R @ Vec(*log_ball(unit_quaternion(R), unit_quaternion(goal.R))))
        off = [*(goal.p - Vec(*(row[3] for row in T[:3]))), *turn]
        late = [x - y for x, y in zip(goal.rate, V)]
        e, de, a = (self.along(x, self.axes) for x in (off, late, goal.acceleration))
        return TaskState(t, e, de, a, V, wrench)

    # -- what it takes ------------------------------------------------------------------------------------------

    def commanded(self, x: TaskState) -> tuple[list[Scalar], list[Scalar]]:
        """Accelerations and forces along the controlled axes."""
        return [a + y for a, y in zip(x.a, self.restoring(x))], [0.0] * len(x.a)

    def restoring(self, x: TaskState) -> list[Scalar]:
        """stiffness e + damping e'."""
        return [dot(k, x.e) + dot(d, x.de) for k, d in zip(self.stiffness, self.damping)]

    def over_scalars(self, t: Scalar, q: Vector, v: Vector, wrench: Vector = SIX_ZEROS) -> list[Scalar]:
        """nv efforts; wrench: what a sensor finds on the link, force and moment at its origin, world axes."""
        tree = build_tree(self.robot.model)
        T = common_algorithm("pose")(tree, q, link=self.link)
        V = common_algorithm("velocity")(tree, q, v, link=self.link, frame="local_world_aligned")
        x = driven_task(tree, q, v, self._posture_rates(q, v), self.link, self.driven)
        a, F = self.commanded(self.state(t, T, V, wrench))
        names = self.controlled_axes
        J = [list(row) for row in zip(*(self.along(column, names) for column in zip(*x.J)))]
        A = weighed(x.factors, J)
        for k, row in enumerate(A):
            row[k] = row[k] + self.regularisation**2
        needed = [u - w for u, w in zip(a, self.along(x.rate, names))]
        force = [x + f for x, f in zip(solved(A, needed, self.link), F)]  # Lambda needed + F
        pushed = self.compensated(x.J, wrench)
        tau = [u + dot(column, force) - y for u, column, y in zip(x.efforts, zip(*J), pushed)]
        return efforts_of(self.driven, tau)

    def compensated(self, J: Matrix, wrench: Vector) -> list[Scalar]:
        """The part of the measured wrench that the joints take away."""
        return [0.0] * len(J[0])

    def _posture_rates(self, q: Vector, v: Vector) -> list[Scalar]:
        """a_p; 0 of rates that nothing drives."""
        off: Vector = [0.0] * len(v)
        if self.posture:
            off = deviation(self.robot.model, self.posture, q)
        wanted = [-(self.posture_stiffness * x + self.posture_damping * u) for x, u in zip(off, v)]
        return [x if some else 0.0 for x, some in zip(wanted, self.driven)]

    # -- the law as code ----------------------------------------------------------------------------------------

    senses = False  # whether it takes a measured wrench

    def program(self, name: str = "law") -> Program:
        """(t, q, v) -> tau; (t, q, v, wrench) -> tau where it senses."""
        t = Tracer(name, self.robot.model)
        (time,), (q, v) = t.input("t", 1), t.state("q", "v")
        more = [t.input("wrench", 6)] if self.senses else []
        t.output("tau", self.over_scalars(time, q, v, *more))
        return with_coordinates(t.program(robot=self.robot.name, quantity=name), self.robot.model)

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike, wrench: ArrayLike = SIX_ZEROS) -> Array:
        """Efforts (..., nv). wrench (..., 6): measured on the link, by laws that sense; N and N m."""
        if not self.senses:
            return super().__call__(t, q, v)
        time, force = number("law: t", t), finite("law: wrench", wrench, (..., 6))
        x, u = finite("law: q", q, (..., self.robot.nq)), finite("law: v", v, (..., self.robot.nv))
        leading("law", q=x, v=u, wrench=force)
        return np.asarray(self.function(np.array([time]), x, u, force))


class ImpedanceLaw(TaskSpaceLaw):
    """Lambda x'' + damping x' + stiffness x = F of the errors x under a force F on the link.

    Stiffness in N/m and N m/rad, damping in N s/m and N m s/rad. Hogan 1985, Impedance control, part 2.
    """

    def commanded(self, x: TaskState) -> tuple[list[Scalar], list[Scalar]]:
        """The acceleration of the reference, and the forces of springs and dampers."""
        return x.a, self.restoring(x)


@brief
@dataclass(frozen=True)
class AdmittanceLaw(TaskSpaceLaw):
    """inertia x'' + damping x' + stiffness x = F of a measured force F. compliance: inertia^-1."""

    compliance: GainRows = ()
    senses = True

    def commanded(self, x: TaskState) -> tuple[list[Scalar], list[Scalar]]:
        """Accelerations that the measured force, springs and dampers give to the wanted inertia."""
        force = [y + f for y, f in zip(self.restoring(x), self.along(x.wrench, self.axes))]
        return [a + dot(row, force) for a, row in zip(x.a, self.compliance)], [0.0] * len(x.a)

    def compensated(self, J: Matrix, wrench: Vector) -> list[Scalar]:
        """J^T of the measured wrench, all six axes."""
        return [dot(column, wrench) for column in zip(*J)]


@brief
@dataclass(frozen=True)
class HybridLaw(TaskSpaceLaw):
    """Motion along some axes, force along others, in one Lambda of all: neither disturbs the other in contact.

    Raibert, Craig 1981, Hybrid position/force control of manipulators; Khatib 1987, (51). force: numbers, or a
    function of time.
    """

    force_axes: tuple[str, ...] = ()
    force: Any = ()
    force_gain: float = 0.0
    force_damping: float = 0.0
    senses = True

    @property
    def controlled_axes(self) -> tuple[str, ...]:
        """Those of motion, then those of force."""
        return (*self.axes, *self.force_axes)

    def commanded(self, x: TaskState) -> tuple[list[Scalar], list[Scalar]]:
        """Accelerations along the axes of motion; along the others dampers, and the force with what it lacks."""
        moved, still = super().commanded(x)
        slowed = [-(self.force_damping * rate) for rate in self.along(x.V, self.force_axes)]
        wanted = self.force(x.t) if callable(self.force) else self.force
        pressed = self.along(x.wrench, self.force_axes)  # what the link feels is the opposite of its force
        force = [f + self.force_gain * (f + y) for f, y in zip(wanted, pressed)]
        return [*moved, *slowed], [*still, *force]


def driven_task(tree: Tree, q: Vector, v: Vector, a: Vector, link: str, driven: Sequence[bool]) -> DrivenTask:
    """The dynamics of the driven rates beyond accelerations a, and of a link: the other rates are eliminated."""
    compute = fastest(tree, ("mass_matrix", "inverse_dynamics"))
    M, efforts = compute["mass_matrix"](tree, q), compute["inverse_dynamics"](tree, q, v, a)
    options = {"link": link, "frame": "local_world_aligned"}
    J = common_algorithm("jacobian")(tree, q, **options)
    rate = common_algorithm("acceleration")(tree, q, v, a, kind="classical", **options)
    if all(driven):
        return DrivenTask(factorised(tree, lower_rows(M)), efforts, J, rate)
    passive, active = ([k for k, x in enumerate(driven) if bool(x) is some] for some in (False, True))
    least = inverted([[M[i][k] for k in passive] for i in passive], link)
    moved = [[dot(row, [M[i][k] for i in passive]) for row in least] for k in active]  # of M_pp^-1 M_pa, columns
    fallen = [dot(row, [efforts[i] for i in passive]) for row in least]
    schur = [
        [M[i][k] - dot([M[i][j] for j in passive], column) for k, column in zip(active, moved)] for i in active
    ]  # fmt: skip
    left = [efforts[i] - dot([M[i][j] for j in passive], fallen) for i in active]
    by_passive = [[row[j] for j in passive] for row in J]
    reduced = [[row[k] - dot(p, column) for k, column in zip(active, moved)] for row, p in zip(J, by_passive)]
    late = [x - dot(p, fallen) for x, p in zip(rate, by_passive)]
    return DrivenTask(Factors(lower_rows(schur), range(len(active))), left, reduced, late)


def _pose_parts(pose: Any) -> tuple[Vec, Mat]:
    """The point and the rotation of a pose (4, 4), or of a point alone."""
    if len(pose) == 3 and not np.ndim(pose[0]):
        return Vec(*pose), EYE
    rows = [list(row) for row in pose]
    return Vec(*(row[3] for row in rows[:3])), Mat.of([row[:3] for row in rows[:3]])


def _vector_of(W: Mat) -> list[Scalar]:
    """w of the part of W that is the skew matrix of w."""
    return [0.5 * (W.z.y - W.y.z), 0.5 * (W.x.z - W.z.x), 0.5 * (W.y.x - W.x.y)]
