"""Newton's steps from the branch of an arm with aligned axes to that of the arm as its file has it."""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanics.scalar import Scalar
from ...mechanics.spatial import ZERO, Mat, Vec
from ..reaching import damped_step
from .arms import Displacements
from .chain import Chain, Displacement, RigidMotion, opposite
from .forms import ArmBranch
from .subproblems import JointAngle

LEAST_SQUARE = 1e-13  # damping: below it a direction is singular, and no step is taken along it


def polished(chain: Chain, aligned: Chain, x: Displacements, pose: RigidMotion, steps: int) -> ArmBranch:
    """The branch of a chain, from displacements of an aligned one; what is left is that of the whole pose."""
    x = flipped(chain, aligned, x)
    for _ in range(steps):
        x = _nearer(chain, x, pose)
    return ArmBranch(flipped(chain, aligned, x), _rest(chain.pose(x), pose))


def flipped(chain: Chain, aligned: Chain, x: Displacements) -> Displacements:
    """Displacements of a chain as those of its aligned one, and the other way round: some axes are opposite."""
    pairs = zip(chain.screws, aligned.screws, x)
    return tuple(opposite(d) if a.factor != b.factor else d for a, b, d in pairs)


def _nearer(chain: Chain, x: Displacements, pose: RigidMotion) -> Displacements:
    """Displacements after a damped step."""
    at, columns = _velocities(chain, x)
    e = [*(pose.p - at.p), *small_turn(at.R, pose.R)]
    step = damped_step([list(row) for row in zip(*columns)], e, LEAST_SQUARE)
    return tuple(_moved(d, by) for d, by in zip(x, step))


def small_turn(R: Mat, goal: Mat) -> Vec:
    """The turn that takes one rotation to another near it, but for its cube."""
    turn: Vec = ZERO
    for a, b in zip(R.T, goal.T):
        turn = turn + a.cross(b)
    return turn * 0.5


def _velocities(chain: Chain, x: Displacements) -> tuple[RigidMotion, list[list[Scalar]]]:
    """The pose, and the columns of its Jacobian: of the point of the link, then its angular velocity."""
    at, lines = chain.base, list[tuple[bool, Vec, Vec]]()
    for screw, displacement in zip(chain.screws, x):
        lines.append((screw.slides, at.R @ screw.axis, at @ screw.point))
        at = at.then(screw.exponential(displacement))
    at = at.then(chain.tool)
    return at, [[*h, 0.0, 0.0, 0.0] if slides else [*h.cross(at.p - o), *h] for slides, h, o in lines]


def _moved(x: Displacement, by: Scalar) -> Displacement:
    """A displacement, moved by a step whose cube is nothing."""
    return x.then(JointAngle(by, 1.0 - 0.5 * (by * by))) if isinstance(x, JointAngle) else x + by


def _rest(at: RigidMotion, pose: RigidMotion) -> Scalar:
    vectors: Sequence[Vec] = [at.p - pose.p, *(at.R - pose.R)]
    total: Scalar = 0.0
    for v in vectors:
        total = total + v.dot(v)
    return total
