"""Global inverse kinematics: from poses to configurations within limits, by steps in lanes and many starts.

A batch is solved in rounds: what has converged leaves it, what is stuck begins anew at the next point of a
low-discrepancy sequence, and the lanes are filled with what is left. Arms with a closed form take one of its
branches within the limits; what has none begins anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.call.function import Function, Spec
from ..codegen.store.memo import memoised
from ..compiler.trace import requested
from ..contact.distances import chosen_pairs, distance_function
from ..errors import InputError, one_of, shown
from ..io.given import Array, asked, finite, flag, number, rotations, whole
from ..mechanics.configuration import ranges, require_unit_quaternions
from ..mechanics.tree import build_tree
from ..model.draft import did_you_mean, names_in
from .points import at_point
from .reaching import CENTER_OF_MASS, FULL_BATCH, REACHED, STEPS_A_CALL, PoseTargets, reach_program

MAX_ROUNDS = 16  # of STEPS_A_CALL steps from one start
STUCK_SHARE = 0.7  # of the residual that a round must take away, but for the first
SAME_POSTURE = 1e-5  # rad or m: nearer ones are one


class Reached(NamedTuple):
    """Configurations that reach poses, each (...,) as the poses are.

    q (..., nq): solutions, or the best that was found. success: within the tolerance and the limits, and free of
    the collisions to avoid. residual (..., 2): m and rad. iterations: steps of all starts. reason: "", or why it
    failed.
    """

    q: Array
    success: Array
    residual: Array
    iterations: Array
    reason: Any


@asked
def inverse_kinematics(
    robot: Any, link: str | Sequence[str], poses: ArrayLike, q0: ArrayLike | None = None, limits: bool = True,
    seeds: ArrayLike | int | None = None, attempts: int = 100, tolerance: float = 1e-9, avoid: Any = None,
    all: bool = False, reach: str | Sequence[str] = "pose", point: ArrayLike | None = None,
) -> Reached | list[Reached]:  # fmt: skip
    """Configurations that bring a link to poses (..., 4, 4): q, success, residual, iterations, reason.

    link: one, or several, whose poses are (..., links, 4, 4); "center_of_mass" for the centre of mass. reach:
    "pose", "position", "orientation" or "pointing", the z axis alone; one for each link where they differ.
    q0 (..., nq): the first start, from which the nearest solution is mostly found. limits: within those of the
    file. seeds: (starts, nq) of later starts, or the number of the first point of the sequence that they are
    drawn from. attempts: starts for a pose. tolerance: m and rad. avoid: "auto", or pairs of geoms or links that
    must not touch. all: a list of the distinct solutions of every pose found. point (3,):
    of one link, m, in its frame, in the place of its origin. Raises InputError.
    """
    robot, link = at_point("inverse_kinematics", robot, link, point)
    links = names_in(link, "inverse_kinematics: link")
    kinds = names_in(reach, "inverse_kinematics: reach")
    kinds = kinds * len(links) if len(kinds) == 1 else kinds
    tolerance = number(
        "inverse_kinematics: tolerance", tolerance, "a positive number up to 1e9", lambda x: 0.0 < x <= 1e9
    )
    attempts = whole("inverse_kinematics: attempts", attempts, 1)
    goal = _goals(robot, links, kinds, poses)
    lower, upper = _bounds(robot, flag("inverse_kinematics: limits", limits))
    target = PoseTargets(robot.model, links, kinds, tuple(lower.tolist()), tuple(upper.tolist()), tolerance)
    f = requested(robot, ("reach", *target[1:]), lambda: reach_program(target), spec=Spec())
    search = PoseSearch(robot, f, target, _starts(robot, target, seeds), _gaps(robot, avoid))
    lead = goal.shape[:-3]
    flat = goal.reshape(-1, len(links), 4, 4)
    if flag("inverse_kinematics: all", all):
        return [search.distinct(x, attempts) for x in flat]
    first, residual = None, None
    if q0 is not None:
        first = np.broadcast_to(_states(robot, "q0", q0), (*lead, robot.nq)).reshape(-1, robot.nq)
    elif seeds is None and list(kinds) == ["pose"]:
        first, residual = _first_branches(robot, target, flat[:, 0], search.starts)
    return _shaped(search.run(flat, first, attempts, residual), lead)


def _shaped(x: Reached, lead: tuple[int, ...]) -> Reached:
    """Results in the shape of the poses."""
    q, success, residual, iterations, reason = x
    reasons = np.array(reason, object).reshape(lead)
    return Reached(
        q.reshape(*lead, q.shape[-1]), success.reshape(lead)[()], residual.reshape(*lead, 2),
        iterations.reshape(lead)[()], reasons[()],
    )  # fmt: skip


class PoseSearch:
    """The rounds of a batch."""

    def __init__(self, robot: Any, f: Function, reach: PoseTargets, starts: Any, gaps: Function | None) -> None:
        self.robot, self.f, self.reach, self.starts, self.gaps = robot, f, reach, starts, gaps

    def run(self, goals: Array, first: Array | None, attempts: int, known: Array | None = None) -> Reached:
        """One solution of each; known: what the first starts leave, m and rad, where they are solutions."""
        n, most = len(goals), self.reach.tolerance
        best = self.starts(np.arange(n)) if first is None else np.array(first)
        residual = np.full((n, 2), np.inf) if known is None or self.gaps is not None else known
        least, iterations, tried = np.maximum(*residual.T), np.zeros(n, int), np.ones(n, int)
        done = least <= most
        left = np.flatnonzero(~done)  # the pose of each row
        q, rounds, before = best.take(left, 0), np.zeros(len(left), int), np.full(len(left), np.inf)
        while len(left):
            q, now = self.f(q, goals.take(left, 0))
            size, hit = np.maximum(*now.T), np.zeros(len(left), bool)
            np.add.at(iterations, left, STEPS_A_CALL)
            rounds += 1
            solved = size <= most
            if self.gaps is not None and solved.any():
                hit[solved] = (self.gaps(q[solved])[0] < 0.0).any(-1)
                solved &= ~hit
                rows = left[hit]
                best[rows], residual[rows], least[rows] = q[hit], np.inf, most
            stuck = ~solved & ((size > STUCK_SHARE * before) & (rounds > 1) | (rounds >= MAX_ROUNDS) | hit)
            better = np.flatnonzero((solved | stuck) & ~hit & (size < least[left]))
            better = better[np.argsort(-size[better])]  # the last one stays
            rows = left[better]
            best[rows], residual[rows], least[rows] = q[better], now[better], size[better]
            done[left[solved]] = True
            going = ~(stuck | done[left])
            again, number = self._again(left[stuck & ~done[left]], len(left), tried, attempts)
            left, q = (
                np.concatenate([left[going], again]),
                np.concatenate([q[going], self.starts(again + n * number)]),
            )
            rounds = np.concatenate([rounds[going], 0 * again])
            before = np.concatenate([size[going], np.full(len(again), np.inf)])
        return self._result(best, residual, iterations, goals, attempts)

    @staticmethod
    def _again(stuck: Array, rows: int, tried: Array, attempts: int) -> tuple[Array, Array]:
        """Poses that begin anew, and the numbers of their starts: of few rows each in several lanes at once."""
        poses, times = np.unique(stuck, return_counts=True)
        times = np.minimum(times * max(1, FULL_BATCH // rows), attempts - tried[poses])
        again = np.repeat(poses, times)
        number = tried[again] + np.arange(len(again)) - np.repeat(np.cumsum(times) - times, times)
        tried[poses] += times
        return again, number

    def _result(self, q: Array, residual: Array, iterations: Array, goals: Array, attempts: int) -> Reached:
        missing: Array = np.asarray(residual[:, 0] == np.inf)
        if missing.any():  # all that reached them touches
            residual[missing] = self.f(q[missing], goals[missing])[1]
        success: Array = np.less_equal(np.maximum(*residual.T), self.reach.tolerance) & ~missing
        hit = "every configuration that reaches it touches; leave pairs out of avoid, or give more attempts"
        reasons = [""] * len(q)
        for k in np.flatnonzero(~success):
            left = f"{residual[k, 0]:.3g} m and {residual[k, 1]:.3g} rad are left"
            far = f"not reached from {attempts} starts: {left}; it may be out of reach within the limits"
            reasons[k] = hit if missing[k] else far
        return Reached(q, success, residual, iterations, reasons)

    def distinct(self, goal: Array, starts: int) -> Reached:
        """All solutions of one pose that so many starts find."""
        x = self.run(np.repeat(goal[None], starts, 0), None, 1)
        kept: list[int] = []
        for k in np.flatnonzero(x.success):
            apart = [np.abs(self.robot.difference(x.q[i], x.q[k])) for i in kept]
            turns = [np.minimum(d % (2 * np.pi), -d % (2 * np.pi)) if self._whole_turns else d for d in apart]
            if not any(d.max() < SAME_POSTURE for d in turns):
                kept.append(int(k))
        return Reached(
            x.q[kept], x.success[kept], x.residual[kept], x.iterations[kept], [x.reason[k] for k in kept]
        )

    @property
    def _whole_turns(self) -> bool:
        """True where whole turns are the same posture: no joint slides."""
        return self.reach.model.nq == self.reach.model.nv and {j.kind for j in self.reach.model.moving_joints} <= {
            "revolute", "continuous",
        }  # fmt: skip


# -- what is given ------------------------------------------------------------------------------------------------


def _goals(robot: Any, links: Sequence[str], kinds: Sequence[str], poses: ArrayLike) -> Array:
    """Checked poses, (..., links, 4, 4)."""
    for name in links:
        if name != CENTER_OF_MASS and name not in robot.link_names:
            raise InputError(f"inverse_kinematics: no link {name!r}{did_you_mean(name, robot.link_names)}")
    if len(kinds) != len(links):
        raise InputError(f"inverse_kinematics: reach has {len(kinds)} words for {len(links)} links")
    for kind in kinds:
        one_of("inverse_kinematics: reach", kind, REACHED, InputError)
    bodies = memoised(
        robot, "body of link", lambda: {k: x.body for k, x in build_tree(robot.model).frames.items()}
    )
    for name in links:
        if name != CENTER_OF_MASS and bodies[name] < 0:
            raise InputError(f"inverse_kinematics: link {name!r} does not move; name one that joints carry")
    T = finite("inverse_kinematics: poses", poses, (..., 4, 4), InputError)
    if len(links) == 1:
        T = T[..., None, :, :]
    if T.ndim < 3 or T.shape[-3] != len(links):
        raise InputError(f"inverse_kinematics: poses has shape {T.shape}; it must be (..., {len(links)}, 4, 4)")
    rotations("inverse_kinematics: a pose", T[..., :3, :3])
    return T


def _bounds(robot: Any, limits: bool) -> tuple[Array, Array]:
    lower, upper = (
        (robot.lower, robot.upper) if limits else (np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf))
    )
    for k in np.flatnonzero(lower > upper):
        name = next(j.name for j, sq, _ in robot.model.slices() if sq.start <= k < sq.stop)
        raise InputError(
            f"inverse_kinematics: limits of joint {name!r} cross: {lower[k]:g} and {upper[k]:g}; give limits=False"
        )
    return lower, upper


def _states(robot: Any, name: str, given: ArrayLike) -> Array:
    x = finite(f"inverse_kinematics: {name}", given, (..., robot.nq), InputError)
    require_unit_quaternions(robot.model, f"inverse_kinematics: {name}", x, InputError)
    return x


def _starts(robot: Any, reach: PoseTargets, seeds: ArrayLike | int | None) -> Any:
    """A function of numbers: starts from those given, or from Roberts' additive recurrence within the limits."""
    low, width = ranges(robot.model)
    quaternions = [slice(sq.stop - 4, sq.stop) for j, sq, _ in robot.model.slices() if j.turns]
    if seeds is not None and not isinstance(seeds, (int, np.integer)):
        rows = np.atleast_2d(_states(robot, "seeds", seeds))
        return lambda k: np.clip(rows[k % len(rows)], reach.lower, reach.upper)
    first = 0 if seeds is None else whole("inverse_kinematics: seeds", seeds, 0)
    root = 2.0
    for _ in range(64):
        root = (1.0 + root) ** (1.0 / (robot.nq + 1.0))
    shares = root ** -np.arange(1.0, robot.nq + 1.0)

    def starts(k: Array) -> Array:
        x = 0.5 + shares * (np.asarray(k)[:, None] + 1.0 + first)
        x = low + width * (x - np.floor(x))
        for part in quaternions:
            ball = 2.0 * x[:, part] - 1.0
            x[:, part] = ball / np.linalg.norm(ball, axis=-1, keepdims=True)
        return np.clip(x, reach.lower, reach.upper)

    return starts


def _first_branches(robot: Any, target: PoseTargets, poses: Array, starts: Any) -> tuple[Array, Array | None]:
    """Branches of a closed form that reach poses within the limits, with what they leave of them, m and rad;
    starts, with infinities, where there are none."""
    from .closed.first_branch import sweep_of

    limits = bool(np.isfinite([target.lower, target.upper]).any())
    sweep = memoised(robot, ("sweep", *target[1:5]), lambda: sweep_of(robot, target.links[0], limits))
    if sweep is None:
        return starts(np.arange(len(poses))), None
    q, residual = sweep.run(poses)
    rest = np.flatnonzero(residual[:, 0] == np.inf)
    q[rest] = starts(rest)
    return np.clip(q, target.lower, target.upper), residual


def _gaps(robot: Any, avoid: Any) -> Function | None:
    """The compiled distances of the pairs that must not touch, m."""
    if avoid is None:
        return None
    pairs = chosen_pairs(robot, avoid)
    if not pairs:
        raise InputError(
            f"inverse_kinematics: avoid is {shown(avoid)}, and no pair of geoms of this robot may touch"
        )
    return distance_function(robot, pairs)
