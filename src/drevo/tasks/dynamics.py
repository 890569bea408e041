"""Whole-body inverse dynamics: accelerations, contact forces and torques that serve a stack of tasks.

    min |W (J a + J' v + damping J v + stiffness e)|^2,  M a + h = tau + J_c^T f,  J_c a + J_c' v = -damping J_c v

over a and f, level by level, f within friction pyramids and tau within its limits. Sentis and Khatib 2005,
Synthesis of whole-body behaviors; Herzog et al. 2016, Momentum control with hierarchical inverse dynamics.
The matrices are one kernel; each level is a problem in the motions that its equalities leave, solved by qpsolvers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.graph.program import Program
from ..compiler.formalisms import common_algorithm
from ..compiler.trace import requested
from ..compiler.tracer import Tracer
from ..constraint.checks import driven_rates
from ..errors import InputError, NumericsError, one_of, shown
from ..io.given import Array, asked, finite, flag, leading, number, whole
from ..io.packages import package
from ..mechanics.algorithms.derivatives import displaced
from ..mechanics.jet import Jet, jet
from ..mechanics.scalar import Matrix, Scalar, Vector
from ..mechanics.spatial import Mat, Vec
from ..model.dynamics import Dynamics
from .kinds import (
    ComTask,
    DampingTask,
    FrameTask,
    JointVelocityTask,
    KinematicTask,
    ManipulabilityTask,
    Posed,
    PostureTask,
    RelativeFrameTask,
    jacobian_at,
    twist_at,
    unit_rows,
)
from .solve import CompiledStack, checked_stack
from .stack import StackProblem

LEAST_REGULARISATION = 1e-12
INDEPENDENT_SHARE = 1e-9  # of the largest singular value: rows below it say nothing new
CONTRADICTION = 1e-6  # of the size of the right side: what equalities that cannot hold together leave
SOLVER_TOLERANCES = (1e-10, 1e-8, 1e-6)  # m/s^2, N, N m: the first at which the solver ends
RATE_TASKS = (PostureTask, JointVelocityTask, DampingTask)


class GroundedPoint(NamedTuple):
    """A point of a link, m in its frame, that rests on ground of a unit normal and a friction coefficient."""

    link: str
    point: tuple[float, ...]
    normal: tuple[float, ...]
    friction: float


class IdStep(NamedTuple):
    """The result of whole-body inverse dynamics.

    a (..., nv); tau (..., nv), 0 of rates that nothing drives; forces (..., points, 3) on the robot, world axes,
    N; kkt (..., levels): the largest of what each level lacks of the conditions of Karush, Kuhn and Tucker.
    """

    a: Array
    tau: Array
    forces: Array
    kkt: Array


class BodyProblem(NamedTuple):
    """The numbers beside the matrices: driven rates, bounds of torques, sides of the pyramids, costs, gains."""

    driven: Array
    bounds: Array
    cones: Array
    costs: list[Array]
    gains: list[tuple[float, float]]
    levels: list[int]
    contact_damping: float
    regularisation: float
    solver: str


class BodyTerms(NamedTuple):
    """The matrices of a state: of the dynamics, of contact points, and of each task J, its bias and its error."""

    M: Array
    h: Array
    contact: Array
    contact_bias: Array
    tasks: list[tuple[Array, Array, Array]]


@asked
def solve_id(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, tasks: Sequence[KinematicTask],
    contacts: Sequence[Mapping[str, Any]] = (), targets: Any = (), stiffness: Any = 100.0, damping: Any = None,
    actuated: Sequence[str] | None = None, limits: bool = True, facets: int = 4, contact_damping: float = 20.0,
    regularisation: float = 1e-8, solver: str = "daqp",
) -> IdStep:  # fmt: skip
    """Accelerations, torques, contact forces that serve tasks at q (..., nq), v (..., nv): one state or a batch.

    Tasks are those of `solve_ik`, but ManipulabilityTask; their errors follow e'' + damping e' + stiffness e = 0,
    in 1/s and 1/s^2: numbers, or mappings by name of the task; damping is critical by default. contacts: {"link",
    "point": (3,) or (points, 3), m in the link's frame, "normal": (0, 0, 1), "friction": 0.8}: points that keep
    still, but for what contact_damping (1/s) slows down. The forces are within pyramids of so many facets that
    lie in the cones of friction. actuated: names of driven joints, by default all but a floating base; limits:
    torques are within `robot.max_effort`. regularisation: cost of all accelerations and forces squared. Passive
    forces of the file are left out. solver: one of qpsolvers' (extra `wbc`). Raises InputError; NumericsError
    where no forces and torques hold the contacts.
    """
    problem = checked_stack(robot, tasks, 1.0, (), (), 0.0, (), False)
    for task in problem.tasks:
        if isinstance(task, ManipulabilityTask):
            raise InputError("solve_id: a ManipulabilityTask has no acceleration; give a PostureTask in its place")
    points = _points(robot, contacts)
    terms = CompiledStack(problem, requested(
        robot, ("whole_body_terms", *problem.key(), points), lambda: _kernel(problem, points)
    ))  # fmt: skip
    x, u = finite("solve_id: q", q, (..., robot.nq)), finite("solve_id: v", v, (..., robot.nv))
    lead = leading("solve_id", q=x, v=u)
    numbers = _numbers(robot, problem, points, stiffness, damping, actuated, limits, facets, solver)
    numbers = numbers._replace(
        contact_damping=_positive("contact_damping", contact_damping),
        regularisation=max(_positive("regularisation", regularisation), LEAST_REGULARISATION),
    )
    every = terms.function(x, u, *terms.arranged(targets))
    lead = np.broadcast_shapes(lead, every[1].shape[:-1])
    flat = [np.broadcast_to(y, (*lead, *shape)).reshape(int(np.prod(lead)), *shape)
            for y, (_, shape) in zip((*every, u), (*terms.function.outputs, ("v", (robot.nv,))))]  # fmt: skip
    rows = [_solved(numbers, _terms(row[:-1]), row[-1], k) for k, row in enumerate(zip(*flat))]
    shapes = ((robot.nv,), (robot.nv,), (len(points), 3), (len(set(numbers.levels)),))
    return IdStep(*(np.array(y).reshape(*lead, *shape) for y, shape in zip(zip(*rows), shapes)))


# -- the matrices ------------------------------------------------------------------------------------------------


def _kernel(problem: StackProblem, points: Sequence[GroundedPoint]) -> Program:
    """(q, v, targets) -> M, h, J_c and J_c' v of all points, and J, J' v and e of every task."""
    t = Tracer("whole_body_terms", problem.model)
    q, v = t.state("q", "v")
    at, along = Posed(t.tree, problem.model, q, 1.0), _along(t, q, v)
    t.output("M", at.quantity("mass_matrix"), (t.tree.nv, t.tree.nv))
    t.output("h", common_algorithm("bias")(t.tree, q, v))
    fixed = [_point_rows(at, along, v, c) for c in points]
    t.output("contact_jacobian", [J for J, _ in fixed], (3 * len(points), t.tree.nv))
    t.output("contact_bias", [x for _, x in fixed])
    for task, name in zip(problem.tasks, problem.names):
        shape = task.target_shape(problem.model)
        target = [] if shape is None else t.input(f"target_{name}", int(np.prod(shape)))
        if shape is not None:
            t.inputs[-1] = t.inputs[-1]._replace(shape=shape)
        J, bias = _task_motion(task, at, along, v)
        error = [0.0] * len(J) if isinstance(task, JointVelocityTask) else task.rows(at, target).error
        wanted = list(target) if isinstance(task, JointVelocityTask) else [0.0] * len(J)
        t.output(f"J_{name}", J, (len(J), t.tree.nv))
        t.output(f"bias_{name}", bias)
        t.output(f"error_{name}", [error, wanted], (2, len(J)))
    return t.program()


def _along(t: Tracer, q: Vector, v: Vector) -> Posed:
    """The robot on its way at constant rates: coordinates with their derivatives by time."""
    assert t.model is not None
    out = displaced(t.tree, q, [Jet(0.0, x) for x in v], 2)
    for b in t.tree.owners():
        if b.nq == b.nv:
            out[b.q : b.q + b.nq] = [Jet(x, y) for x, y in zip(q[b.q : b.q + b.nq], v[b.v : b.v + b.nv])]
    return Posed(t.tree, t.model, out, 1.0)


def _task_motion(task: KinematicTask, at: Posed, along: Posed, v: Vector) -> tuple[Matrix, list[Scalar]]:
    """J and J' v of what the task moves: of frames the velocity in their own axes."""
    if isinstance(task, RATE_TASKS):
        return unit_rows(len(v)), [0.0] * len(v)
    if isinstance(task, ComTask):
        return at.quantity("center_of_mass_jacobian"), [jet(x).dd for x in along.quantity("center_of_mass")]
    assert isinstance(task, (FrameTask, RelativeFrameTask))
    more = {"relative_to": task.root} if isinstance(task, RelativeFrameTask) else {}
    options = {"link": task.link, "frame": "local", **more}
    moved = common_algorithm("velocity")(along.tree, along.q, v, **options)
    J, bias = at.quantity("jacobian", **options), [jet(x).d for x in moved]
    if task.point is not None:
        arm = Vec(*task.point)
        return jacobian_at(arm, J), twist_at(arm, bias)
    return J, bias


def _point_rows(at: Posed, along: Posed, v: Vector, c: GroundedPoint) -> tuple[Matrix, list[Scalar]]:
    """J of a point, world axes, and J' v."""
    options = {"link": c.link, "frame": "local_world_aligned"}

    def arm(posed: Posed) -> Vec:
        return Mat.of([row[:3] for row in posed.quantity("pose", link=c.link)[:3]]) @ Vec(*c.point)

    def moved(V: Vector, r: Vec) -> Vec:
        return Vec(*V[:3]) + Vec(*V[3:]).cross(r)

    r = arm(at)
    columns = [moved(column, r) for column in zip(*at.quantity("jacobian", **options))]
    V = common_algorithm("velocity")(along.tree, along.q, v, **options)
    return [list(row) for row in zip(*columns)], [jet(x).d for x in moved(V, arm(along))]


def _terms(row: Sequence[Array]) -> BodyTerms:
    tasks = [(row[k], row[k + 1], row[k + 2]) for k in range(4, len(row), 3)]
    return BodyTerms(row[0], row[1], row[2], row[3], tasks)


# -- the problem of a state --------------------------------------------------------------------------------------


def _solved(p: BodyProblem, t: BodyTerms, v: Array, state: int) -> tuple[Array, Array, Array, list[float]]:
    """a, tau, forces and KKT residuals of a state, from level to level."""
    n, rows = len(v), len(t.contact)
    passive, torques = ~p.driven, np.hstack([t.M, -t.contact.T])  # tau = torques x + h, x = (a, f)
    still = np.hstack([t.contact, np.zeros((rows, rows))])
    left = np.vstack([still, torques[passive]])
    slowed = -t.contact_bias - p.contact_damping * (t.contact @ v)
    if rows:  # points of a link that turns cannot all stand still: the nearest accelerations that they can have
        slowed = t.contact @ np.linalg.lstsq(t.contact, slowed, INDEPENDENT_SHARE)[0]
    right = np.concatenate([slowed, -t.h[passive]])
    x, Z = _kept(left, right, state)
    bounded = p.driven & np.isfinite(p.bounds)
    limits = np.vstack([torques[bounded], -torques[bounded]])
    G = np.vstack([np.hstack([np.zeros((len(p.cones), n)), p.cones]), limits])
    g = np.concatenate(
        [np.zeros(len(p.cones)), p.bounds[bounded] - t.h[bounded], p.bounds[bounded] + t.h[bounded]]
    )
    kkt = list[float]()
    for level in sorted(set(p.levels)):
        parts = [
            (W[:, None] * J, -W * (bias + damping * (J @ v - wanted) + stiffness * error))
            for (J, bias, (error, wanted)), W, (stiffness, damping), k in zip(t.tasks, p.costs, p.gains, p.levels)
            if k == level
        ]
        A = np.vstack([np.hstack([J, np.zeros((len(J), rows))]) for J, _ in parts])
        b = np.concatenate([y for _, y in parts])
        g = np.maximum(g, G @ x) if kkt else g  # what a level keeps to rounding, the next one keeps as well
        x, residual = _level(p, A, b, G, g, x, Z, state)
        kkt.append(residual)
        if level < max(p.levels):
            Z = Z @ _null(A @ Z)
    tau = np.where(p.driven, torques @ x + t.h, 0.0)
    return x[:n], tau, x[n:].reshape(-1, 3), kkt


def _kept(left: Array, right: Array, state: int) -> tuple[Array, Array]:
    """The x nearest to zero that fulfils equalities, and orthonormal directions along which they still hold."""
    U, s, Vt = np.linalg.svd(left, full_matrices=True)
    rank = int((s > INDEPENDENT_SHARE * s[0]).sum()) if len(s) and s[0] else 0
    x = Vt[:rank].T @ ((U[:, :rank].T @ right) / s[:rank])
    missed = np.abs(left @ x - right).max(initial=0.0)
    if missed > CONTRADICTION * max(1.0, np.abs(right).max(initial=0.0)):
        raise NumericsError(
            f"solve_id: state {state}: no accelerations and contact forces fulfil the equations of motion with "
            "the contacts at rest; choose contacts that the robot can keep, or more driven joints"
        )
    return x, Vt[rank:].T


def _null(A: Array) -> Array:
    """Orthonormal directions along which A x does not change."""
    _, s, Vt = np.linalg.svd(A, full_matrices=True)
    return np.asarray(Vt[int((s > INDEPENDENT_SHARE * max(s[0], 1e-300)).sum()) if len(s) else 0 :].T)


def _level(
    p: BodyProblem, A: Array, b: Array, G: Array, g: Array, x: Array, Z: Array, state: int
) -> tuple[Array, float]:
    """The x + Z y of least |A x - b|^2 + regularisation |x|^2 with G x <= g, and its KKT residual."""
    if not Z.shape[1]:
        return x, float(np.maximum(G @ x - g, 0.0).max(initial=0.0))
    moved = np.linalg.norm(G @ Z, axis=1) > INDEPENDENT_SHARE
    AZ, GZ, G, g = A @ Z, (G @ Z)[moved], G[moved], g[moved]
    P = AZ.T @ AZ + p.regularisation * np.eye(Z.shape[1])
    c = AZ.T @ (A @ x - b) + p.regularisation * (Z.T @ x)
    qp = package("qpsolvers", "solve_id", "drevo[wbc]")
    if not len(G):
        return x + Z @ np.linalg.solve(P, -c), 0.0
    for tolerance in SOLVER_TOLERANCES:
        ends = {"primal_tol": tolerance, "dual_tol": tolerance} if p.solver == "daqp" else {}
        solution = qp.solve_problem(qp.Problem(P, c, GZ, g - G @ x), solver=p.solver, **ends)
        if solution.found and solution.x is not None:
            break
    else:
        raise NumericsError(
            f"solve_id: state {state}: no forces within the friction pyramids and torques within their limits "
            "hold the contacts; move the robot over its contacts, allow more friction or torque, or fewer contacts"
        )
    y, z = solution.x, solution.z
    slope, slack = P @ y + c + GZ.T @ z, g - G @ x - GZ @ y
    size = max(1.0, np.abs(c).max())
    lacks = [np.abs(slope).max() / size, np.maximum(-slack, 0.0).max(), np.abs(z * slack).max() / size]
    return x + Z @ y, float(max(*lacks, np.maximum(-z, 0.0).max() / size))


# -- what is given -----------------------------------------------------------------------------------------------


def _points(robot: Dynamics, contacts: Sequence[Mapping[str, Any]]) -> tuple[GroundedPoint, ...]:
    """Contacts as points."""
    out = []
    several = isinstance(contacts, Iterable) and not isinstance(contacts, Mapping)
    for k, given in enumerate(contacts if several else [contacts]):
        title = f"solve_id: contacts[{k}]"
        if not isinstance(given, Mapping) or "link" not in given:
            raise InputError(f"{title} is {shown(given)}; give a mapping with link, and point, normal, friction")
        for key in given:
            one_of(title, key, ("link", "point", "normal", "friction"), InputError)
        link = one_of(f"{title}: link", given["link"], [x.name for x in robot.model.links], InputError)
        places = finite(f"{title}: point", given.get("point", (0.0, 0.0, 0.0)), (..., 3), InputError)
        normal = finite(f"{title}: normal", given.get("normal", (0.0, 0.0, 1.0)), (3,), InputError)
        length = float(np.linalg.norm(normal))
        if not length:
            raise InputError(f"{title}: normal has no length; give a direction away from the ground")
        friction = given.get("friction", 0.8)
        mu = _positive(f"contacts[{k}]: friction", friction)
        unit = tuple((normal / length).tolist())
        out += [GroundedPoint(link, tuple(x), unit, mu) for x in places.reshape(-1, 3).tolist()]
    return tuple(out)


def _cones(points: Sequence[GroundedPoint], facets: int) -> Array:
    """Rows G f <= 0 of pyramids inside the cones of friction, and of forces that do not pull."""
    places, out = range(len(points)), np.zeros((len(points), facets + 1, len(points), 3))
    angles = 2.0 * np.pi * (np.arange(facets) + 0.5) / facets
    normals = np.array([c.normal for c in points]).reshape(-1, 1, 3)
    inner = np.array([c.friction for c in points]).reshape(-1, 1, 1) * np.cos(np.pi / facets)
    sides = np.stack([np.cos(angles), np.sin(angles)], 1) @ np.linalg.svd(normals)[2][:, 1:] - inner * normals
    out[places, :, places] = np.concatenate([sides, -normals], 1)
    return out.reshape(len(points) * (facets + 1), 3 * len(points))


def _numbers(
    robot: Any, problem: StackProblem, points: Sequence[GroundedPoint], stiffness: Any, damping: Any,
    actuated: Any, limits: bool, facets: int, solver: str,
) -> BodyProblem:  # fmt: skip
    """The numbers of the problem, checked."""
    model, names = problem.model, problem.names
    kp = _by_task("stiffness", names, stiffness, 100.0)
    usual = [2.0 * np.sqrt(x) for x in kp]
    kd = usual if damping is None else [
        y if x is None else x for x, y in zip(_by_task("damping", names, damping, None), usual)
    ]  # fmt: skip
    known = package("qpsolvers", "solve_id", "drevo[wbc]").available_solvers
    return BodyProblem(
        driven_rates(model, actuated), np.where(flag("solve_id: limits", limits), robot.max_effort, np.inf),
        _cones(points, whole("solve_id: facets", facets, 3, 1000)),
        [np.array([x for _, x in task.costs(model)]) for task in problem.tasks], list(zip(kp, kd)),
        [task.priority for task in problem.tasks], 0.0, 0.0,
        one_of("solve_id: solver", solver, known, InputError),
    )  # fmt: skip


def _by_task(quantity: str, names: Sequence[str], given: Any, usual: Any) -> list[Any]:
    """A number for every task, from one, or by name."""
    by_name = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)
    for name in by_name:
        one_of(f"solve_id: {quantity}: task", name, names, InputError)
    return [_positive(f"{quantity} of {name}", by_name[name]) if name in by_name else usual for name in names]


def _positive(name: str, given: Any) -> float:
    return number(f"solve_id: {name}", given, "a number from 0 on", lambda x: 0.0 <= x < np.inf)
