"""Closed-form inverse kinematics as users call it: the arm is recognised, its branches written as one program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...codegen.call.function import Function
from ...codegen.graph.program import Guard, Program
from ...compiler.trace import requested
from ...compiler.tracer import Tracer
from ...errors import InputError, TraceError, one_of
from ...io.given import asked, flag, number
from ...mechanics.configuration import neutral
from ...mechanics.scalar import Scalar, Vector, cos, sin, sqrt, where
from ...mechanics.spatial import EYE, Mat, Vec
from ...mechanics.tree import build_tree
from ...model.description import Model
from ...model.draft import did_you_mean, listed
from ..points import at_point
from .arm_angle import ARM_ANGLE, arm_angle_form
from .chain import REMEDY, Chain, RigidMotion, chain_of, held_chain
from .forms import ArmBranch, ChainForm, recognised
from .polish import polished
from .subproblems import JointAngle

REACHED_WITHIN = 1e-9  # m, rad: a branch that leaves more of the pose is not real
NO_ROTATION = 1e-6  # of R^T R - 1: a pose that is farther from a rotation is refused
ANY_ANGLE = 0.7391  # rad or m: of joints whose values are arguments, where the form is recognised
ROUGHNESS = (1e-10, 1e-7)  # m, rad: from which change of poses by aligned axes a branch takes one step, two steps
TRIED = 16  # configurations at which the form is compared with the robot of the file
MARKED = [
    "Rows of q are the branches. Where real is 0 the branch does not reach the pose, or not within the limits "
    "that are kept; its row is no solution then.",
]


class BranchRequest(NamedTuple):
    """A request for the branches of a link; given: coordinates by joint, None for arguments."""

    model: Model
    link: str
    given: tuple[tuple[str, float | None], ...]
    limits: bool

    @property
    def values(self) -> dict[str, float | None]:
        return dict(self.given)

    def function(self, robot: Any = None) -> Function:
        """The Function, as a pickle makes it again; robot: the one that keeps it."""
        of = self.model if robot is None else robot
        f = requested(of, ("closed_form", *self[1:]), partial(_program, self))
        f.recipe = partial(BranchRequest.function, self)
        return f


@asked
def closed_form(
    robot: Any, link: str, limits: bool = False, point: ArrayLike | None = None, **given: float | None
) -> Function:
    """The branches of a link's inverse kinematics as a Function of poses (..., 4, 4): see `Robot.closed_form`."""
    robot, link = at_point("closed_form", robot, link, point)
    return _request(robot.model, link, limits, given).function(robot)


def written_branches(
    model: Model, link: str | None = None, limits: bool = False, **given: float | None
) -> Program:
    """(T, joints that are given) -> q (branches, nq), and which branches are real, in every language."""
    return _program(_request(model, link, limits, given), marked=True)


def _request(model: Model, link: Any, limits: Any, given: dict[str, float | None]) -> BranchRequest:
    """The request that arguments make; InputError for those that do not fit."""
    one_of("closed_form: link", link, [x.name for x in model.links], InputError)
    names = [*(j.name for j in model.moving_joints if j.nq == 1), ARM_ANGLE]
    for name, x in given.items():
        if name not in names:
            raise InputError(
                f"closed_form: no joint {name!r} of one coordinate{did_you_mean(name, names)}; give joints by name"
            )
        if x is not None:
            given[name] = number(f"closed_form: {name}", x)
    return BranchRequest(model, link, tuple(given.items()), flag("closed_form: limits", limits))


def closed_form_of(wanted: BranchRequest, chain: Chain) -> tuple[ChainForm, int]:
    """The closed form of the chain, and the steps of Newton's that it needs as its axes are parallel or meet but
    nearly, in a file with few digits; TraceError with the reason where there is none."""
    moving = [s.joint for s in chain.screws]
    if not moving:
        raise TraceError(f"closed_form: link {wanted.link!r} does not move; name one that joints carry")
    numbers = {k: ANY_ANGLE if x is None else x for k, x in wanted.given if k in moving}
    aligned = held_chain(chain.aligned(), numbers)
    angle = _arm_angle(wanted, {k: ANY_ANGLE if x is None else x for k, x in wanted.given})
    if len(aligned.screws) > 6 and angle is None:
        raise TraceError(_too_many(wanted, chain, numbers))
    form = arm_angle_form(aligned.screws, angle) if angle else recognised(aligned.screws)
    if form is None and angle:
        raise TraceError(
            "closed_form: an arm angle closes seven joints of which the first and the last three have axes that "
            f"meet; those of link {wanted.link!r} do not; give a joint, or {REMEDY}"
        )
    if form is None:
        raise TraceError(_unknown(wanted, aligned))
    off = _misfit(held_chain(chain, numbers), aligned, form)
    return form, sum(off > x for x in ROUGHNESS)


def _arm_angle(wanted: BranchRequest, values: Mapping[str, Scalar]) -> JointAngle | None:
    """The angle of the arm's plane, if it is given and is no joint."""
    if ARM_ANGLE not in values or any(j.name == ARM_ANGLE for j in wanted.model.joints):
        return None
    return JointAngle(sin(values[ARM_ANGLE]), cos(values[ARM_ANGLE]))


def _misfit(chain: Chain, aligned: Chain, form: ChainForm) -> float:
    """The largest difference, m and rad, of branches of a form from poses of the chain as it is in the file."""
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (TRIED, len(chain.screws))).T
    pose, worst = aligned.pose([s.displacement(q) for s, q in zip(aligned.screws, drawn)]), list[float]()
    for x, left in form.branches(aligned.screws, aligned.frame(pose)):
        q = [s.coordinate(y) for s, y in zip(aligned.screws, x)]
        at = chain.pose([s.displacement(y) for s, y in zip(chain.screws, q)])
        parts = [left, *(pose.p - at.p), *(x for row in pose.R - at.R for x in row)]
        off = np.array(np.broadcast_arrays(drawn[0], *parts)[1:])
        worst += np.abs(off[1:, off[0] < REACHED_WITHIN**2]).max(0).tolist()
    return max(worst, default=np.inf)


def _too_many(wanted: BranchRequest, chain: Chain, numbers: Mapping[str, float]) -> str:
    free = [s.joint for s in chain.screws if s.joint not in numbers]
    closing = [
        name for name in free if recognised(held_chain(chain.aligned(), {**numbers, name: ANY_ANGLE}).screws)
    ] if len(free) == 7 else []  # fmt: skip
    remedy = f"no joint that is given closes it; {REMEDY}"
    if closing:
        call = f"closed_form({wanted.link!r}, {closing[0]}=0.5)"
        remedy = f"give the coordinate of one of {listed(closing, 7)}, as in {call}"
    elif len(free) > 7:
        remedy = f"give the coordinates of all but six of them, such as those of a torso or a hand, or {REMEDY}"
    many = f"{len(free)} joints move link {wanted.link!r}, more than a pose determines"
    return f"closed_form: {many}: {remedy}"


def _unknown(wanted: BranchRequest, chain: Chain) -> str:
    """The sentence that says why no closed form of the link is known."""
    names = [s.joint for s in chain.screws]
    return (
        f"closed_form: no closed form is known of link {wanted.link!r}: of its joints {listed(names)} neither the "
        "last three nor the first three have axes that meet in a point, and no three in a row, the second to the "
        f"fourth from either end, are parallel; {REMEDY}"
    )


# -- the program -------------------------------------------------------------------------------------------------


class HeldArm(NamedTuple):
    """A chain without the joints that are given: with aligned axes, and as the file has it.

    rest: q of the joints that the branches do not change. steps: of Newton's, from the one to the other.
    """

    form: ChainForm
    aligned: Chain
    exact: Chain
    rest: list[Scalar]
    steps: int

    def branches(self, pose: RigidMotion) -> Iterator[ArmBranch]:
        """The displacements of every branch, and what it leaves of the pose."""
        for branch in self.form.branches(self.aligned.screws, self.aligned.frame(pose)):
            x = branch.displacements
            yield polished(self.exact, self.aligned, x, pose, self.steps) if self.steps else branch


def held_arm(
    wanted: BranchRequest, values: Mapping[str, Scalar], known: tuple[ChainForm, int] | None = None
) -> HeldArm:
    """The arm of a request whose given joints have values; TraceError with the reason where no form is known."""
    chain = chain_of(build_tree(wanted.model), wanted.link)
    form, steps = known or closed_form_of(wanted, chain)
    moving = {s.joint for s in chain.screws}
    given = {k: x for k, x in values.items() if k in moving}
    if angle := _arm_angle(wanted, values):
        form = arm_angle_form(chain.aligned().screws, angle) or form
    aligned, exact = held_chain(chain.aligned(), given), held_chain(chain, given)
    return HeldArm(form, aligned, exact, _others(wanted, values), steps)


def branch_inputs(t: Tracer, wanted: BranchRequest, name: str) -> tuple[Vector, dict[str, Scalar]]:
    """The inputs of a request: a pose, and the joints whose values are arguments, with those of all given."""
    T = t.input(name, 16)
    t.inputs[-1] = t.inputs[-1]._replace(shape=(4, 4))
    values: dict[str, Scalar] = dict(wanted.values)
    for joint, x in wanted.given:
        if x is None:
            (values[joint],) = t.input(joint, 1)
            t.inputs[-1] = t.inputs[-1]._replace(shape=())
    return T, values


def _program(wanted: BranchRequest, marked: bool = False) -> Program:
    """(poses, joints that are given) -> q (branches, nq), NaN where a branch is not real; marked: with 1 or 0."""
    t = Tracer("inverse_kinematics" if marked else "closed_form", wanted.model)
    T, values = branch_inputs(t, wanted, "T" if marked else "poses")
    pose, whole = rotation_mended(T)
    arm = held_arm(wanted, values)
    missing = sqrt(-1.0 - T[3] * T[3])  # no number
    bounds = branch_bounds(wanted)
    rows, marks = list[list[Scalar]](), list[Scalar]()
    for branch in arm.branches(pose):
        q = list(arm.rest)
        real = branch.left < REACHED_WITHIN * REACHED_WITHIN * whole
        for screw, displacement in zip(arm.aligned.screws, branch.displacements):
            low, high = bounds.get(screw.q, (-np.inf, np.inf))
            q[screw.q] = y = screw.coordinate(displacement, low, high)
            real = real & (y >= low) & (y <= high) if screw.q in bounds else real
        rows.append(q if marked else [where(real, y, missing) for y in q])
        marks.append(where(real, 1.0, 0.0))
    t.output("q", rows, (len(rows), wanted.model.nq))
    if marked:
        t.output("real", marks)
        return t.program(quantity="inverse_kinematics", assumptions=MARKED)
    t.context.guards.append(Guard(whole.edge, t.graph.edge(1.0), ""))
    guard = f"poses{{row}} is no pose: its rotation is more than {NO_ROTATION:g} from orthonormal; normalise it"
    return t.program(partial=("q",), guard=guard)


def branch_bounds(wanted: BranchRequest) -> dict[int, tuple[float, float]]:
    """Limits by coordinate, of joints that have some; none where they are not asked for."""
    slices = [(j.limit, sq.start) for j, sq, _ in wanted.model.slices() if wanted.limits and j.limit]
    least = [(k, x.lower, x.upper) for x, k in slices if x is not None]
    return {k: (-np.inf if a is None else a, np.inf if b is None else b) for k, a, b in least}


def _others(wanted: BranchRequest, values: Mapping[str, Scalar]) -> list[Scalar]:
    """q of the joints that the branches do not change: given, or neutral."""
    q: list[Scalar] = neutral(wanted.model).tolist()
    for joint, sq, _ in wanted.model.slices():
        if joint.name in values:
            q[sq.start] = values[joint.name]
    return q


def rotation_mended(T: Vector) -> tuple[RigidMotion, Scalar]:
    """A pose (16,) whose rotation is orthonormal but for the square of what it was (one Newton step), and a
    number that is 1 for a rotation and 0 at the end of what is allowed."""
    rows = [T[4 * k : 4 * k + 4] for k in range(3)]
    R = Mat.of(row[:3] for row in rows)
    off = R.T.mul(R) - EYE
    total: Scalar = 0.0
    for row in off:
        total = total + row.dot(row)
    determinant = R.x.cross(R.y).dot(R.z)
    right = where(determinant > 0.0, 1.0, -1.0)
    mended = R - Mat.of([0.5 * x for x in row] for row in R.mul(off))
    return RigidMotion(mended, Vec(*(row[3] for row in rows))), right - total * (1.0 / NO_ROTATION**2)
