"""Steps of Levenberg and Marquardt towards poses, in lanes: the compiled part of global inverse kinematics.

The damping is a share of the squared error (Chan and Lawrence 1988; Sugihara 2011, "Solvability-unconcerned
inverse kinematics by the Levenberg-Marquardt method"): no step is ever taken back, and convergence is quadratic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..codegen.graph.program import Program
from ..codegen.llvm.stages import StageCalls, Stages
from ..compiler.formalisms import common_algorithm
from ..compiler.tracer import Tracer
from ..mechanics.manifold import exponential, log_ball
from ..mechanics.rotation import unit_quaternion
from ..mechanics.scalar import (
    Matrix,
    Scalar,
    Vector,
    clip,
    dot,
    eliminated,
    is_zero,
    maximum,
    minimum,
    sqrt,
    where,
)
from ..mechanics.spatial import Mat, Vec
from ..model.description import Model

CENTER_OF_MASS = "center_of_mass"  # in the place of a link
REACHED = ("pose", "position", "orientation", "pointing")
STEPS_A_CALL = 4
FULL_BATCH = 512  # rows: below it a call costs more than the work of its lanes
DAMPING_SHARE = 3e-2  # of the squared error
LEAST_DAMPING = 1e-16
LONGEST_STEP = 0.7  # rad or m, of a coordinate


class PoseTargets(NamedTuple):
    """The targets: by each one its link, or the centre of mass, and one of REACHED, pointing of the z axis.

    lower, upper: limits of the coordinates. tolerance: m, rad; within it a lane rests.
    """

    model: Model
    links: tuple[str, ...]
    kinds: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    tolerance: float


class TargetError(NamedTuple):
    """Rows of a target: what is left (k,), their Jacobian (k, nv), and the squares of its lengths and angles."""

    rows: list[Scalar]
    J: Matrix
    length: Scalar
    angle: Scalar


def reach_program(reach: PoseTargets) -> Program:
    """(q, poses) -> (q, residual): at most STEPS_A_CALL steps; residual: m, rad, the largest of all targets."""
    k, nq = len(reach.links), reach.model.nq
    t = Tracer("inverse_kinematics", reach.model)
    t.input("q0", nq)
    t.input("poses", 16 * k)
    t.inputs[-1] = t.inputs[-1]._replace(shape=(k, 4, 4))
    t.output("q", [0.0] * nq)
    t.output("residual", [0.0, 0.0])
    parts = {"begin": _begin(k, nq), "step": _step(reach), "end": _end(reach)}
    return replace(t.program(), stages=Stages({"at": nq, "goal": 7 * k, "going": 1}, parts, _write))


def _write(c: StageCalls) -> None:
    c.call("begin")
    with c.f.loop(STEPS_A_CALL, some=True) as loop:
        c.call("step")
        loop.leave(~c.some_above("going"))
    c.call("end")


def _begin(k: int, nq: int) -> Program:
    """Quaternions of the goals."""
    t = Tracer("begin")
    q, T = t.input("q0", nq), t.input("poses", 16 * k)
    goal: list[Scalar] = []
    for first in range(0, 16 * k, 16):
        rows = [T[first + 4 * i : first + 4 * i + 4] for i in range(3)]
        goal += [*(row[3] for row in rows), *unit_quaternion(Mat.of([row[:3] for row in rows]))]
    t.output("goal", goal)
    t.output("at", q)
    return t.program()


def _errors(t: Tracer, reach: PoseTargets) -> tuple[list[Scalar], list[TargetError]]:
    q, goal = t.input("at", reach.model.nq), t.input("goal", 7 * len(reach.links))
    pairs = zip(reach.links, reach.kinds)
    return q, [_error(t, q, link, kind, goal[7 * k : 7 * k + 7]) for k, (link, kind) in enumerate(pairs)]


def _error(t: Tracer, q: Vector, link: str, kind: str, goal: Vector) -> TargetError:
    """The error of one target in the axes of the world; of pointing in those of its link."""
    if link == CENTER_OF_MASS:
        left = Vec(*goal[:3]) - Vec(*common_algorithm("center_of_mass")(t.tree, q))
        return TargetError(list(left), common_algorithm("center_of_mass_jacobian")(t.tree, q), left.dot(left), 0.0)
    T = common_algorithm("pose")(t.tree, q, link=link)
    frame = "local" if kind == "pointing" else "local_world_aligned"
    J = common_algorithm("jacobian")(t.tree, q, link=link, frame=frame)
    R, p = Mat.of([row[:3] for row in T[:3]]), Vec(*(row[3] for row in T[:3]))
    left = Vec(*goal[:3]) - p
    turn = R @ Vec(*log_ball(unit_quaternion(R), goal[3:])) if kind != "position" else left
    if kind == "pointing":
        return _pointing(R, goal[3:], J)
    if kind == "pose":
        return TargetError([*left, *turn], J, left.dot(left), turn.dot(turn))
    if kind == "position":
        return TargetError(list(left), J[:3], left.dot(left), 0.0)
    return TargetError(list(turn), J[3:], 0.0, turn.dot(turn))


def _pointing(R: Mat, goal: Vector, J: Matrix) -> TargetError:
    """The turn about x and y that brings the z axis of a link to that of the goal."""
    x, y, z, w = goal
    wanted = R.T @ Vec(2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y))
    far = where(wanted.z < 0.0, 1.0 / sqrt(maximum(wanted.x * wanted.x + wanted.y * wanted.y, 1e-12)), 1.0)
    rows = [-(wanted.y * far), wanted.x * far]
    return TargetError(rows, J[3:5], 0.0, dot(rows, rows))


def _step(reach: PoseTargets) -> Program:
    t = Tracer("step", reach.model)
    q, errors = _errors(t, reach)
    e = [x for part in errors for x in part.rows]
    J = [list(row) for part in errors for row in part.J]
    going = _open(errors, reach.tolerance)
    numbers = _numbers(reach.model)
    pull = [dot(column, e) for column in zip(*J)]
    for k, at in numbers.items():  # what a limit holds
        if reach.lower[at] > -float("inf") or reach.upper[at] < float("inf"):
            stuck = where(pull[k] > 0.0, q[at] - reach.upper[at], reach.lower[at] - q[at])
            for row in J:
                row[k] = row[k] if is_zero(row[k]) else where(stuck < 0.0, row[k], 0.0)
    square = dot(e, e)
    dq = damped_step(J, e, square * DAMPING_SHARE + LEAST_DAMPING)
    largest: Scalar = LONGEST_STEP
    for x in dq:
        largest = maximum(largest, where(x < 0.0, -x, x))
    share = where(going > 0.5, LONGEST_STEP / largest, 0.0)
    moved = exponential(reach.model.runs, q, [x * share for x in dq])
    for at in numbers.values():
        moved[at] = (
            minimum(maximum(moved[at], reach.lower[at]), reach.upper[at]) if _limited(reach, at) else moved[at]
        )
    t.output("at", moved)
    t.output("going", [going])
    return replace(t.program(), units=())


def _limited(reach: PoseTargets, at: int) -> bool:
    return reach.lower[at] > -float("inf") or reach.upper[at] < float("inf")


def _numbers(model: Model) -> dict[int, int]:
    """By rate the coordinate that it changes, of joints without quaternions."""
    return {sv.start + k: sq.start + k for j, sq, sv in model.slices() if j.nq == j.nv for k in range(j.nv)}


def _open(errors: Sequence[TargetError], tolerance: float) -> Scalar:
    """1 where something is beyond a tenth of the tolerance."""
    worst: Scalar = 0.0
    for part in errors:
        worst = maximum(worst, maximum(part.length, part.angle))
    return where(worst > (0.1 * tolerance) ** 2, 1.0, 0.0)


def damped_step(J: Matrix, e: Vector, damping: Scalar) -> list[Scalar]:
    """The least |J dq - e|^2 + damping |dq|^2, by the smaller of two matrices."""
    m, n = len(J), len(J[0])
    if m <= n:
        A = [[dot(a, b) + (damping if i == k else 0.0) for k, b in enumerate(J)] for i, a in enumerate(J)]
        y = eliminated(A, e)
        return [dot(column, y) for column in zip(*J)]
    columns = list(zip(*J))
    A = [[dot(a, b) + (damping if i == k else 0.0) for k, b in enumerate(columns)] for i, a in enumerate(columns)]
    return eliminated(A, [dot(column, e) for column in columns])


def _end(reach: PoseTargets) -> Program:
    """The program that ends a search: q, and the worst residual of the targets in m and rad."""
    t = Tracer("end", reach.model)
    q, errors = _errors(t, reach)
    worst: list[Scalar] = [0.0, 0.0]
    for part in errors:
        worst = [maximum(x, y) for x, y in zip(worst, (part.length, part.angle))]
    t.output("q", [clip(x, -1e300, 1e300) for x in q])
    t.output("residual", [x if is_zero(x) else sqrt(x) for x in worst])
    return replace(t.program(), units=())
