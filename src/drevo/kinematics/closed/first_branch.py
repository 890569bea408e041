"""A configuration within the limits by a closed form: where inverse kinematics from anywhere begins.

Limits are judged on sines and cosines, so that only the angles of the branch that is taken are computed. A seventh
joint is swept: value after value, until a branch is within the limits.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...codegen.call.function import Function
from ...codegen.graph.program import Program
from ...compiler.trace import requested
from ...compiler.tracer import Tracer
from ...errors import TraceError
from ...io.given import Array
from ...mechanics.configuration import random, ranges
from ...mechanics.loose import GOLDEN_FRACTION
from ...mechanics.scalar import Scalar, sqrt, where
from ...mechanics.tree import build_tree
from ..reaching import FULL_BATCH
from .chain import RigidMotion, chain_of
from .closed_form import (
    REACHED_WITHIN,
    BranchRequest,
    HeldArm,
    branch_bounds,
    branch_inputs,
    closed_form_of,
    held_arm,
    rotation_mended,
)
from .polish import flipped, small_turn
from .subproblems import JointAngle

MAX_VALUES = 64  # of a joint that is swept
TRIED_POSES, TRIED_VALUES = 64, 2  # by which the joint to be swept is chosen


class BranchSweep(NamedTuple):
    """The first branch of a link as a Function of poses and of the joint that is swept, if there is one.

    values (n, 1 or 0): of that joint, in the order in which they are tried.
    """

    function: Function
    values: Array

    def run(self, poses: Array) -> tuple[Array, Array]:
        """The first branch (n, nq) of poses (n, 4, 4), and its residual (n, 2), m and rad.

        Where there is none the residual is infinite and q is not set.
        """
        n, k = len(poses), 0
        q, residual, left = np.empty((n, *self.function.outputs[0][1])), np.full((n, 2), np.inf), np.arange(n)
        while len(left) and k < len(self.values):  # of few poses several values at once
            values = self.values[k : k + max(1, FULL_BATCH // len(left))]
            m = len(values)
            k += m
            repeated = poses if m == 1 else poses.repeat(m, 0)
            x, rest = self.function(repeated, *np.tile(values.T, len(left)))
            real = np.equal(rest[:, 0], rest[:, 0]).reshape(-1, m)
            some = real.any(-1)
            reached, lost = np.flatnonzero(some), np.flatnonzero(~some)
            at, rows = reached * m + real.argmax(-1)[reached], left[reached]
            q[rows], residual[rows] = x.take(at, 0), rest.take(at, 0)
            left, poses = left[lost], poses.take(lost, 0)
        return q, residual


def sweep_of(robot: Any, link: str, limits: bool) -> BranchSweep | None:
    """The sweep of a link, of the joint that finds branches soonest; None where no closed form is known."""
    sweeps = list[tuple[float, BranchRequest, Array]]()
    low, width = ranges(robot.model)
    with suppress(TraceError):
        screws = chain_of(build_tree(robot.model), link).screws
        for given in [[s] for s in screws] if len(screws) == 7 else [[]]:
            request = BranchRequest(robot.model, link, tuple((s.joint, None) for s in given), limits)
            share = GOLDEN_FRACTION * np.arange(1, 1 + (MAX_VALUES if given else 1))[:, None] % 1.0
            values = (low + width * share)[:, [s.q for s in given]]
            with suppress(TraceError):
                sweeps.append((_share_reached(request, values), request, values))
    if not sweeps:
        return None
    _, request, values = max(sweeps, key=lambda x: x[0])
    return BranchSweep(requested(robot, ("first_branch", *request[1:]), partial(_program, request)), values)


def _share_reached(wanted: BranchRequest, values: Array) -> float:
    """The share of poses of drawn configurations for which the first values have a branch, on arrays."""
    q = random(wanted.model, np.random.default_rng(0), (TRIED_POSES,))
    chain = chain_of(build_tree(wanted.model), wanted.link)
    pose, form = chain.pose([s.displacement(q[:, s.q]) for s in chain.screws]), closed_form_of(wanted, chain)
    missed = np.ones(TRIED_POSES, bool)
    for value in values[:TRIED_VALUES]:
        given = {joint: np.full(TRIED_POSES, x) for (joint, _), x in zip(wanted.given, value)}
        missed &= ~chosen_branch(held_arm(wanted, given, form), wanted, pose, 1.0)[2]
    return 1.0 - float(missed.mean())


def _program(wanted: BranchRequest) -> Program:
    """(poses, the joint that is swept) -> q (nq), and what it leaves of the pose (2), m and rad: NaN of none."""
    t = Tracer("first_branch", wanted.model)
    T, values = branch_inputs(t, wanted, "poses")
    pose, whole = rotation_mended(T)
    q, rest, real = chosen_branch(held_arm(wanted, values), wanted, pose, whole)
    t.output("q", q)
    t.output("residual", [where(real, x, sqrt(-1.0 - T[3] * T[3])) for x in rest])
    return t.program(partial=("residual",))


def chosen_branch(
    arm: HeldArm, wanted: BranchRequest, pose: RigidMotion, whole: Scalar
) -> tuple[list[Scalar], list[Scalar], Any]:
    """q of a branch within the limits, what it leaves of the pose in m and rad, and whether there is one."""
    bounds, screws, chosen, some = branch_bounds(wanted), arm.aligned.screws, None, 0.0
    for x, left in arm.branches(pose):
        real = left < REACHED_WITHIN * REACHED_WITHIN * whole
        for screw, displacement in zip(screws, x):
            if screw.q in bounds:
                real = real & screw.is_within(displacement, *bounds[screw.q])
        chosen = tuple(
            JointAngle(*(where(real, a, b) for a, b in zip(new, old))) if isinstance(new, JointAngle)
            else where(real, new, old) for new, old in zip(x, chosen or x)
        )  # fmt: skip
        some = where(real, 1.0, some)
    assert chosen is not None
    real, q = some > 0.5, list(arm.rest)
    for screw, displacement in zip(screws, chosen):
        low, high = bounds.get(screw.q, (-np.inf, np.inf))
        q[screw.q] = y = screw.coordinate(displacement, low, high)
        real = real & (y >= low) & (y <= high) if screw.q in bounds else real
    at = arm.exact.pose(flipped(arm.exact, arm.aligned, chosen))
    return q, [sqrt(e.dot(e)) for e in (pose.p - at.p, small_turn(at.R, pose.R))], real
