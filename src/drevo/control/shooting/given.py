"""Arguments of `optimise`, checked: limits, phases of contact, a first guess.

Limits of q and v as constraints, by a primal-dual interior point in the sweeps of a trajectory.

    d(x) = s > 0,   s z = mu,   mu -> 0

s and z are eliminated at every knot: a sweep sees the Hessian J^T (z / s) J and the slope
-J^T (mu / s - (z / s) r), r = d - s, beside those of the cost. Waechter and Biegler 2006, "On the implementation
of an interior-point filter line-search algorithm"; Vanroye and others 2023, "FATROP".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...constraint.kinds import Constraint
from ...constraint.prepared import Contacts, PreparedSet, prepared_set
from ...constraint.values import list_given
from ...errors import InputError, shown
from ...io.given import Array, numbers, whole
from ...mechanics.configuration import state
from ...mechanics.rotation import from_quaternion
from ...model.dynamics import Dynamics
from .problem import KnotArrays

WHO = "optimise"
MAX_SHOOTING_KNOTS = 1_000_000  # knots
UNBOUND = 1e100  # what a side without a limit has in its place


class MotionLimits(NamedTuple):
    """Lower and upper bounds, infinite where there is none: of all efforts, of q, of v."""

    tau: tuple[Array, Array]
    q: tuple[Array, Array]
    v: tuple[Array, Array]

    @property
    def of_states(self) -> bool:
        """True if anything but efforts has a limit."""
        return bool(np.isfinite(np.concatenate([*self.q, *self.v])).any())


def limits_given(robot: Dynamics, given: Any, driven: Sequence[int] = ()) -> MotionLimits:
    """limits={"tau": .., "q": .., "v": ..}: a number or (n,) for -x to x, or a tuple (lower, upper) of such.

    Efforts are those of all rates, or of the driven ones.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f'{WHO}: limits is {shown(given)}; give {{"tau": (lower, upper), "q": .., "v": ..}}')
    sizes = {"tau": robot.nv, "q": robot.nq, "v": robot.nv}
    for name in given or ():
        if name not in sizes:
            raise InputError(f'{WHO}: limits of {shown(name)} are not known; there are "tau", "q" and "v"')
    limits = MotionLimits(
        *(_pair(name, (given or {}).get(name), n, driven if name == "tau" else ()) for name, n in sizes.items())
    )
    turning = [i for j, sq, _ in robot.model.slices() if j.turns for i in range(sq.stop - 4, sq.stop)]
    for i in turning:
        if np.isfinite([limits.q[0][i], limits.q[1][i]]).any():
            raise InputError(f'{WHO}: limits of "q" bound q[{i}], a part of a quaternion; leave it infinite there')
    return limits


def _pair(name: str, given: Any, n: int, driven: Sequence[int] = ()) -> tuple[Array, Array]:
    """Both sides, (n,); given for n or for the driven ones alone."""
    title = f'{WHO}: limits of "{name}"'
    if given is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    if isinstance(given, tuple) and len(given) == 2:
        sides = [numbers(title, x) for x in given]
    else:
        size = numbers(title, given)
        sides = [*size] if size.shape in ((2, n), (2, len(driven))) else [-size, size]
    for k, x in enumerate(sides):
        if driven and x.shape == (len(driven),) != (n,):
            sides[k] = np.full(n, (-np.inf, np.inf)[k])
            sides[k][list(driven)] = x
        elif x.shape not in ((), (n,)):
            sizes = " or ".join(f"({m},)" for m in dict.fromkeys((n, len(driven) or n)))
            raise InputError(
                f"{title} has shape {x.shape}; it must be one number or {sizes}, or a tuple (lower, upper) of such"
            )
    low, high = (np.broadcast_to(x, n).astype(float) for x in sides)
    if np.isnan(low).any() or np.isnan(high).any():
        raise InputError(f"{title} holds NaN; leave a side without a limit infinite")
    wrong = np.flatnonzero(~(low < high))
    if wrong.size:
        k = wrong[0]
        raise InputError(f"{title} are reversed at index {k}: {low[k]:g} is not below {high[k]:g}")
    return low, high


def phases_given(
    robot: Dynamics, horizon: int, contacts: Any, constraints: Sequence[Constraint] | None
) -> tuple[tuple[int, PreparedSet], ...]:
    """contacts: one list for the whole horizon, or phases [(knots, list), ...], which must fill it."""
    items = list_given(f"{WHO}: contacts", contacts, '{"link": "foot", "point": (0, 0, 0), "rows": 3}')
    timed = [isinstance(x, (tuple, list)) and len(x) == 2 for x in items]
    if not items or not any(timed):
        return ((horizon, prepared_set(robot, contacts, constraints)),)
    if not all(timed):
        raise InputError(
            f"{WHO}: contacts mixes phases (knots, [contact, ...]) with contacts; give one or the other"
        )
    counts = [whole(f"{WHO}: knots of phase {k}", x[0]) for k, x in enumerate(items)]
    if sum(counts) != horizon:
        raise InputError(
            f"{WHO}: the phases of contacts take {sum(counts)} knots, the horizon has {horizon}; they must agree"
        )
    of_phases: list[Contacts] = [
        list_given(f"{WHO}: contacts of phase {k}", x[1], "contact") for k, x in enumerate(items)
    ]
    return tuple((n, prepared_set(robot, x, constraints)) for n, x in zip(counts, of_phases))


def refuse_redundant(phases: Sequence[tuple[int, PreparedSet]], q: Array, v: Array) -> None:
    """The step of a knot eliminates the rows of what holds, which must be independent."""
    for k, (_, given) in enumerate(phases):
        if not given.found:
            continue
        if not given.form.compiled:
            raise InputError(f"{WHO}: phase {k} has {given.size} rows, which are too many to compile; give fewer")
        _, held = given.form.motion(q, v, np.zeros_like(v), np.zeros(1), *given.numbers)
        rank, m = int(held[given.size]), given.size
        if rank < m:
            raise InputError(
                f"{WHO}: the contacts and constraints of phase {k} depend on each other: {rank} of {m} rows are "
                "independent at q0; leave out those that follow from others"
            )


class Guess(NamedTuple):
    """States (N + 1, n) and efforts (N, nv) to begin with; None: from the start and what holds it still."""

    q: Array | None
    v: Array | None
    tau: Array | None


def guess_given(robot: Dynamics, horizon: int, given: ArrayLike | Mapping[str, ArrayLike] | None) -> Guess:
    """guess={"q": (N + 1, nq), "v": (N + 1, nv), "tau": (N, nv)}, any of them, or efforts alone."""
    if given is None:
        return Guess(None, None, None)
    parts: Mapping[str, Any] = given if isinstance(given, Mapping) else {"tau": given}
    sizes = {"q": (horizon + 1, robot.nq), "v": (horizon + 1, robot.nv), "tau": (horizon, robot.nv)}
    for name, x in parts.items():
        if name not in sizes:
            raise InputError(f'{WHO}: guess has {shown(name)}; it may have "q", "v" and "tau"')
        numbers(f'{WHO}: guess of "{name}"', x, sizes[name])
    arrays = {name: state(robot.model, f"{WHO}: guess", **{name: x})[0] for name, x in parts.items()}
    return Guess(arrays.get("q"), arrays.get("v"), arrays.get("tau"))


FIRST_BARRIER, WARM, LAST, LOWER = (
    1e-2,
    1e-4,
    1e-8,
    0.1,
)  # mu times the number of limits, of 1 + |cost|: cold, beside a solution, at the end; how it falls
NEAR_COMPLEMENTARITY = 10.0  # times mu: complementarity and slope that are good enough to lower it
MAX_SLACK_SHARE = 0.995  # of a slack may go in one step
LEAST_SLACK = 1e-2  # rad, m or their rates: slacks begin no smaller
BAND = 1e10  # within which s z / mu is kept


class StateLimits:
    """The barriers of a trajectory. sides: of every limited number the lower one, then the upper ones."""

    def __init__(self, x: KnotArrays, limits: MotionLimits) -> None:
        self.x, model = x, x.task.robot.model
        nq, n, N = model.nq, model.nv, len(x.u)
        rate_of, self.free = {nq + i: n + i for i in range(n)}, dict[int, tuple[int, int, int]]()
        for j, sq, sv in model.slices():
            for i in range(3 if j.nq == 7 else 0 if j.turns else j.nq):
                rate_of[sq.start + i] = sv.start + i
                if j.nq == 7:  # its place is in world axes, its displacement in the body's
                    self.free[sq.start + i] = sq.start + 3, sv.start, i
        sides = [np.concatenate([q, v]) for q, v in zip(limits.q, limits.v)]
        bounded = [np.flatnonzero(np.abs(side) < UNBOUND) for side in sides]
        self.source = np.concatenate(bounded)
        self.bound = np.concatenate([side[i] for side, i in zip(sides, bounded)])
        self.sign = np.repeat([1.0, -1.0], [len(i) for i in bounded])
        self.rate = np.array([rate_of[i] for i in self.source.tolist()], np.intp)
        self.size = len(self.source)
        turned = np.isin(self.source, list(self.free))
        self.turned: list[int] = np.flatnonzero(turned).tolist()
        every = np.arange(self.size)
        self.plain = [every[(self.sign == x) & ~turned] for x in (1.0, -1.0)]  # no rate is in one of them twice
        self.s, self.z, self.d, self.step = (np.ones((N, self.size)) for _ in range(4))
        self.mu, self.least = 1.0, 0.0

    # -- where it stands --------------------------------------------------------------------------------------

    def distance(self, q: Array, v: Array) -> Array:
        """d: how far the numbers are within their limits, (..., sides)."""
        distances: Array = self.sign * (np.concatenate([q, v], -1)[..., self.source] - self.bound)
        return distances

    @property
    def open(self) -> float:
        """The sum of |r|."""
        return float(np.abs(self.d - self.s).sum())

    def begin(self, cost: float, kept: Array | None = None) -> None:
        """At the trajectory of now, of this cost; kept: the multipliers of a solution nearby."""
        size = (1.0 + abs(cost)) / (len(self.s) * self.size)
        self.mu, self.least = FIRST_BARRIER * size, LAST * size
        self.d = self.distance(self.x.q[1:], self.x.v[1:])
        self.s = np.maximum(self.d, LEAST_SLACK)
        self.z = self.mu / self.s
        if kept is not None:
            self.mu, self.z = WARM * size, kept[1:].copy()
            self.s = np.maximum(self.d, self.mu / self.z)  # away from the edge, or no step is long
        self._banded()

    @property
    def multipliers(self) -> Array:
        """z at every knot, (N + 1, sides); the first row is nobody's."""
        return np.concatenate([np.ones((1, self.size)), self.z])

    # -- a sweep ----------------------------------------------------------------------------------------------

    def add(self) -> None:
        """The barriers go into the expansions of the cost."""
        weight = self.z / self.s
        push = self.sign * (self.mu / self.s - weight * (self.d - self.s))
        last = 2 * self.x.v.shape[1]
        for plain in self.plain:
            at = self.rate[plain]
            self.x.xx[1:, at, at] += weight[:-1, plain]
            self.x.final[at, at] += weight[-1, plain]
            self.x.xx[1:, at, last] -= push[:-1, plain]
            self.x.final[at, last] -= push[-1, plain]
        for i, first, row in self._turned():
            square, slope = weight[:, i, None, None] * row[:, :, None] * row[:, None], push[:, i, None] * row
            at3 = slice(first, first + 3)
            self.x.xx[1:, at3, at3] += square[:-1]
            self.x.final[at3, at3] += square[-1]
            self.x.xx[1:, at3, last] -= slope[:-1]
            self.x.final[at3, last] -= slope[-1]

    def _turned(self) -> list[tuple[int, int, Array]]:
        """Limited positions of free joints: side, first rate, the position's derivative by the rates (N, 3)."""
        out = []
        for i in self.turned:
            at, first, axis = self.free[int(self.source[i])]
            rows = from_quaternion(*self.x.q[1:, at : at + 4].T)
            out.append((i, first, np.stack([np.asarray(y) for y in (rows.x, rows.y, rows.z)[axis]], -1)))
        return out

    def predict(self, path: Array) -> float:
        """The slacks' step along a predicted one (N, 2 nv); what the slope of cost and barriers has beyond that of
        the expansions."""
        moved, r = self.sign * path[:, self.rate], self.d - self.s
        for i, first, row in self._turned():
            moved[:, i] = self.sign[i] * (row * path[:, first : first + 3]).sum(-1)
        self.step = moved + r
        return -float((r * (self.z * moved + self.mu) / self.s).sum())

    @property
    def length(self) -> float:
        """The longest step that leaves the slacks positive, at most 1."""
        return _longest(self.s, self.step)

    def tried(self, q: Array, v: Array, alpha: Array) -> tuple[Array, Array, Array, Array]:
        """Slacks and d of trajectories in lanes (N, lanes, ..), then barriers and |r| by lane."""
        d = self.distance(q, v)
        # what is inside has d for its slack
        s = np.where(
            d > (1.0 - MAX_SLACK_SHARE) * self.s[:, None], d, self.s[:, None] + alpha[:, None] * self.step[:, None]
        )
        return s, d, -self.mu * np.einsum("nls->l", np.log(s)), np.einsum("nls->l", np.abs(d - s))

    @property
    def steepest(self) -> float:
        """The weight of |r| beside cost and barriers: above every multiplier."""
        return 2.0 * float(self.z.max())

    @property
    def barrier(self) -> float:
        return -self.mu * float(np.log(self.s).sum())

    def take(self, s: Array, d: Array) -> None:
        """Slacks and d of the step that was taken; the multipliers move on."""
        change = self.mu / self.s - self.z - self.z / self.s * self.step
        self.z = self.z + _longest(self.z, change) * change
        self.s, self.d = s, d
        self._banded()

    def _banded(self) -> None:
        self.z = np.clip(self.z, self.mu / (BAND * self.s), BAND * self.mu / self.s)

    # -- how hard it pushes -----------------------------------------------------------------------------------

    def off(self) -> float:
        """The largest distance of s z from mu."""
        return float(np.abs(self.s * self.z - self.mu).max())

    @property
    def settled(self) -> bool:
        """True if the barrier parameter mu has reached its least value."""
        return self.mu <= self.least

    def harden(self) -> None:
        """The next mu, at a trajectory that has nothing left to gain with this one."""
        self.step = np.zeros_like(self.s)
        self.take(self.s, self.d)
        self.mu = max(self.least, self.mu * LOWER)

    def lower(self, slope: float) -> None:
        """The next mu, where this one has done its work. slope: what was left of it after the last step."""
        while not self.settled and max(self.off(), slope) <= NEAR_COMPLEMENTARITY * self.mu:
            self.mu = max(self.least, self.mu * LOWER)


def _longest(x: Array, step: Array) -> float:
    """The share of a step, at most 1, that positive numbers may go along it."""
    return min(1.0, MAX_SLACK_SHARE / max(float((-step / x).max()), MAX_SLACK_SHARE))
