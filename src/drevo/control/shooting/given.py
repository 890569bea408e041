"""Arguments of `optimise`, checked: limits, phases of contact, a first guess."""

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
from ...model.dynamics import Dynamics

WHO = "optimise"
MOST = 1_000_000  # knots
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


def limits_given(robot: Dynamics, given: Any) -> MotionLimits:
    """limits={"tau": .., "q": .., "v": ..}: a number or (n,) for -x to x, or a pair (lower, upper) of such."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f'{WHO}: limits is {shown(given)}; give {{"tau": (lower, upper), "q": .., "v": ..}}')
    sizes = {"tau": robot.nv, "q": robot.nq, "v": robot.nv}
    for name in given or ():
        if name not in sizes:
            raise InputError(f'{WHO}: limits of {shown(name)} are not known; there are "tau", "q" and "v"')
    found = MotionLimits(*(_pair(name, (given or {}).get(name), n) for name, n in sizes.items()))
    turning = [i for j, sq, _ in robot.model.slices() if j.turns for i in range(sq.stop - 4, sq.stop)]
    for i in turning:
        if np.isfinite([found.q[0][i], found.q[1][i]]).any():
            raise InputError(f'{WHO}: limits of "q" bound q[{i}], a part of a quaternion; leave it infinite there')
    return found


def _pair(name: str, given: Any, n: int) -> tuple[Array, Array]:
    """Both sides, (n,)."""
    what = f'{WHO}: limits of "{name}"'
    if given is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    array = isinstance(given, np.ndarray) and not (given.ndim == 2 and len(given) == 2)
    if not array and isinstance(given, (tuple, list, np.ndarray)) and len(given) == 2:
        sides = [numbers(what, x) for x in given]
    else:
        sides = [-(size := numbers(what, given)), size]
    for x in sides:
        if x.shape not in ((), (n,)):
            raise InputError(f"{what} has shape {x.shape}; it must be one number or ({n},), or a pair of such")
    low, high = (np.broadcast_to(x, n).astype(float) for x in sides)
    if np.isnan(low).any() or np.isnan(high).any():
        raise InputError(f"{what} holds NaN; leave a side without a limit infinite")
    wrong = np.flatnonzero(~(low < high))
    if wrong.size:
        k = wrong[0]
        raise InputError(f"{what} are reversed at index {k}: {low[k]:g} is not below {high[k]:g}")
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
    made: list[Contacts] = [
        list_given(f"{WHO}: contacts of phase {k}", x[1], "contact") for k, x in enumerate(items)
    ]
    return tuple((n, prepared_set(robot, x, constraints)) for n, x in zip(counts, made))


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
    found = {name: state(robot.model, f"{WHO}: guess", **{name: x})[0] for name, x in parts.items()}
    return Guess(found.get("q"), found.get("v"), found.get("tau"))
