"""Refusals of constrained dynamics, in sentences: sets that contradict themselves, motions, gains, names."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError, NumericsError, shown
from ..io.given import Array, finite, positive, whole
from ..mechanics.reframe import trunk_pitch
from ..model.description import Model
from ..model.draft import did_you_mean, listed
from ..model.dynamics import Dynamics
from .functions import short
from .solve import CONSISTENT_SHARE, RankSplit, factor_of, matvec
from .terms import ConstraintTerms, TermsAt
from .values import list_given

CLOSED_GAP = 1e-9  # m or rad: a gap that counts as closed where dependent rows are compared
LONGEST_CLOSING_STEP = 1e2  # rad or m: a Newton step that leads nowhere
RANK_TEST_STEP = 1e-3  # rad or m: how far a configuration is left to see whether its rank is lost there only
POLE_ROUNDING = 1e-12  # of the largest pole: a real part nearer to 0 is rounding


# -- dependent rows -----------------------------------------------------------------------------------------


def refuse_contradictions(
    robot: Dynamics, q: Array, v: Array, terms: TermsAt, c: ConstraintTerms, s: RankSplit, names: Sequence[str],
    fed_back: bool,
) -> None:  # fmt: skip
    """Dependent rows must ask for the same.

    Where they do not, the nearest state that keeps the constraints is sought: if they agree there, the state is
    off and not the set. Feedback is for such states; without it only the accelerations asked for must agree.
    """
    lost, over = _lost(s, c)
    if not any(x.any() for x in over.values()):
        return
    lead = c.value.shape[:-1]
    q, v = np.broadcast_to(q, (*lead, robot.nq)), np.broadcast_to(v, (*lead, robot.nv))
    contradictory = _disagree(robot, q, v, terms)
    if contradictory.any():
        contradictory &= _disagree(robot, newton_on_constraints(robot, q, terms, CLOSED_GAP)[0], v, terms)
    if contradictory.any():
        unit = next((u for u, x in over.items() if (x & contradictory).any()), "m")
        worst = np.abs(lost[unit]).max(axis=-1) * contradictory
        row = np.unravel_index(int(np.argmax(worst)), worst.shape)
        raise NumericsError(_contradiction(robot, q, v, terms, s, names, lost[unit], unit, row))
    if not fed_back and over["m/s^2"].any():
        raise NumericsError(_off(names, c, over["m/s^2"]))


def _disagree(robot: Dynamics, q: Array, v: Array, terms: TermsAt) -> Array:
    """True where dependent rows disagree at q with the rates next to v that keep them."""
    c = terms(q, np.zeros_like(v))
    s = RankSplit.of(factor_of(robot, q), c.jacobian)
    kept = s.solve(matvec(robot.mass_matrix(q), v), c.rate)[0]
    return np.asarray(np.any(list(_lost(s, terms(q, kept))[1].values()), axis=0))


def _lost(s: RankSplit, c: ConstraintTerms) -> tuple[dict[str, Array], dict[str, Array]]:
    """The parts of the terms that no motion meets, and where they are more than rounding, by unit."""
    sides = {"m": c.value, "m/s": c.rate, "m/s^2": c.gamma}
    lost = {unit: s.lost(x) for unit, x in sides.items()}
    return lost, {unit: _beyond(lost[unit], x) for unit, x in sides.items()}


def _beyond(left: Array, against: Array) -> Array:
    """True where a vector is more than the rounding of another."""
    size = np.maximum(1.0, np.max(np.abs(against), axis=-1, initial=0.0))
    return np.asarray(np.max(np.abs(left), axis=-1, initial=0.0) > CONSISTENT_SHARE * size)


def refuse_lost(
    robot: Dynamics, q: Array, v: Array, terms: TermsAt, s: RankSplit, names: Sequence[str], x: Array
) -> None:
    """Raises NumericsError where dependent rows ask for contradictory rates, whatever the state: of an impact."""
    lost = s.lost(x)
    over = _beyond(lost, x)
    if over.any():
        row = np.unravel_index(int(np.argmax(over)), over.shape)
        raise NumericsError(_contradiction(robot, q, v, terms, s, names, lost, "m/s", row))


def newton_on_constraints(
    robot: Dynamics, q: Array, terms: TermsAt, tolerance: float, steps: int = 30
) -> tuple[Array, ConstraintTerms]:
    """Newton's steps of least dq.M dq towards f = 0, of each row by itself, and the terms at rest there."""
    rest = np.zeros((*q.shape[:-1], robot.nv))
    c = terms(q, rest)
    for _ in range(steps):
        away = np.abs(c.value).max(axis=-1, initial=0.0) > tolerance
        if not away.any():
            break
        dq, _ = RankSplit.of(factor_of(robot, q), c.jacobian).solve(rest, c.value)
        away = away & (np.abs(dq).max(axis=-1, initial=0.0) <= LONGEST_CLOSING_STEP)
        if not away.any():
            break
        q = np.where(away[..., None], robot.integrate(q, np.where(away[..., None], dq, 0.0)), q)
        c = terms(q, rest)
    return q, c


def _contradiction(
    robot: Dynamics, q: Array, v: Array, terms: TermsAt, s: RankSplit, names: Sequence[str], lost: Array,
    unit: str, row: Any,
) -> str:  # fmt: skip
    """A sentence on the rows that no motion meets, and on whether it is so at this configuration only."""
    left = lost[row]
    size = np.abs(left).max()
    order = sorted(range(len(left)), key=lambda i: -float(f"{abs(left[i]):.3g}"))
    said = ", ".join(f"{names[i]} by {abs(left[i]):.3g} {unit}" for i in order[:6] if abs(left[i]) > 1e-3 * size)
    where = f" in row {int(row[0])} of the batch" if row else ""
    step = RANK_TEST_STEP * np.random.default_rng(0).uniform(-1.0, 1.0, robot.nv)
    near = robot.integrate(q, step)
    ranks = [np.asarray(x.rank)[row] for x in (s, RankSplit.of(factor_of(robot, near), terms(near, v).jacobian))]
    if ranks[1] > ranks[0]:
        return (
            f"the constraints lose rank at this configuration{where}, {ranks[0]} for {ranks[1]} beside it: no "
            f"motion meets {said}; leave the configuration, or drop the row"
        )
    return f"the constraints contradict each other{where}: no motion meets {said}; drop or correct one of them"


def _off(names: Sequence[str], c: ConstraintTerms, over: Array) -> str:
    """A state that does not keep its constraints, where rows that depend on each other do not agree."""
    row = np.unravel_index(int(np.argmax(over)), over.shape)
    gap, rate = np.abs(c.value[row]), np.abs(c.rate[row])
    parts = [f"{names[int(gap.argmax())]} is off by {gap.max():.3g} m or rad"] if gap.any() else []
    parts += [f"{names[int(rate.argmax())]} moves at {rate.max():.3g} m/s or rad/s"] if rate.any() else []
    said = " and ".join(parts)
    where = f" in row {int(row[0])} of the batch" if row else ""
    return (
        f"the state does not keep its constraints{where}: {said}, and rows that depend on each other then ask for "
        "accelerations that no motion has; begin at drevo.constraint.hold(robot, q, v), or give stabilise="
    )


# -- motions that are given ---------------------------------------------------------------------------------


def refuse_violation(given: Array, gamma: Array, names: Sequence[str]) -> None:
    """Accelerations must keep the constraints."""
    left = given + gamma
    at = _worst(left, gamma)
    if at is not None:
        where = f" in row {at[0]} of the batch" if len(at) > 1 else ""
        raise NumericsError(
            f"the motion violates the constraints{where}: {names[at[-1]]} gets the acceleration "
            f"{left[at]:.3g} instead of 0; give accelerations with Gamma a + gamma = 0"
        )


def refuse_undriven(model: Model, idle: Array, left: Array, b: Array) -> None:
    """Raises NumericsError if joints without a drive are left with a force that nothing carries."""
    at = _worst(left, b)
    if at is not None:
        owner = [joint for joint, _ in model.freedoms()]
        name = [n for n, free in zip(owner, idle) if free][at[-1]]
        where = f" in row {at[0]} of the batch" if len(at) > 1 else ""
        raise NumericsError(
            f"the motion cannot be driven{where}: joint {name!r} is not actuated and needs "
            f"{left[at]:.3g} N m or N that no contact or constraint can carry; actuate it or add one"
        )


def _worst(left: Array, against: Array) -> tuple[int, ...] | None:
    """The index of the largest number that is more than rounding; None if there is none."""
    size = np.maximum(1.0, np.max(np.abs(against), axis=-1, initial=0.0))
    over = np.abs(left) > CONSISTENT_SHARE * size[..., None]
    if not np.any(over):
        return None
    return tuple(int(k) for k in np.unravel_index(np.argmax(np.where(over, np.abs(left), 0.0)), left.shape))


# -- arguments ----------------------------------------------------------------------------------------------


def driven_rates(model: Model, actuated: Sequence[str] | None, title: str = "actuated") -> Array:
    """A mask of driven rates: those of the joints named, by default of all but a floating base or trunk."""
    names = [j.name for j in model.moving_joints]
    wanted = list_given(title, actuated, repr(names[0]) if names else "a joint")
    for k, name in enumerate(wanted):
        if not isinstance(name, str) or name not in names:
            hint = did_you_mean(name, names) if isinstance(name, str) else ""
            raise InputError(f"{title}: {shown(name)} is no moving joint{hint}; there are {listed(names, 40)}")
        if name in wanted[:k]:
            raise InputError(f"{title}: {name!r} is named twice; name each driven joint once")
    if actuated is None:
        trunk = trunk_pitch(model) is not None
        base = {j.name for i, j in enumerate(model.joints) if j.parent == model.root and j.kind == "free"}
        base |= {j.name for j in model.joints[:6]} if trunk else set()
        wanted = [n for n in names if n not in base]
    out = np.zeros(model.nv, bool)
    for j, _, sv in model.slices():
        out[sv] = j.name in wanted
    return out


def feedback(stabilise: Any, rows: int) -> tuple[Array, Array]:
    """(damping, stiffness) by row, or both as matrices; f'' + damping f' + stiffness f = 0 must die out."""
    try:
        damping, stiffness = stabilise
    except (TypeError, ValueError):
        raise InputError(
            f"stabilise is {short(stabilise)}; it must be a pair (damping, stiffness), such as (20.0, 100.0)"
        ) from None
    try:
        return _feedback_known(damping, stiffness, rows)
    except TypeError:  # arrays are not looked up
        return _feedback(damping, stiffness, rows)


def _feedback(damping: Any, stiffness: Any, rows: int) -> tuple[Array, Array]:
    g1, g0 = gain("stabilise: damping", damping, rows), gain("stabilise: stiffness", stiffness, rows)
    if g1.ndim == 2 or g0.ndim == 2:
        g1, g0 = square(g1, rows), square(g0, rows)
    else:
        g1, g0 = (np.full(rows, g) for g in (g1, g0))
    refuse_unstable(g1, g0)
    return g1, g0


_feedback_known: Callable[..., tuple[Array, Array]] = lru_cache(typed=True)(_feedback)


def refuse_unstable(G1: Array, G0: Array) -> None:
    """[[0, 1], [-G0, -G1]] must be Hurwitz, so that the constraint's error dies out; see `poles`."""
    roots = poles(G1, G0)
    worst = roots[np.argmax(roots.real)] if len(roots) else complex(-1.0)
    if not worst.real < -POLE_ROUNDING * np.abs(roots).max(initial=0.0):
        raise InputError(
            f"stabilise: with these gains f'' + damping f' + stiffness f = 0 has the pole {worst:.3g}, which does "
            "not decay; take both positive (matrices positive definite), such as (20.0, 100.0)"
        )


def gain(title: str, given: ArrayLike, rows: int) -> Array:
    """A number, one per row, or a matrix."""
    g = finite(title, given)
    if g.shape not in ((), (rows,), (rows, rows)):
        raise InputError(
            f"{title} has shape {g.shape}; it is a number, one for each of the {rows} rows, or a matrix "
            f"({rows}, {rows})"
        )
    return g


def square(g: Array, rows: int) -> Array:
    """A gain as a matrix."""
    return g if g.ndim == 2 else np.diag(np.broadcast_to(g, (rows,)))


def poles(G1: Array, G0: Array) -> Array:
    """The poles of f'' + G1 f' + G0 f = 0, both matrices (m, m), or both a number or one for each row."""
    if G0.ndim == 2:
        m = len(G0)
        return np.asarray(np.linalg.eigvals(np.block([[np.zeros((m, m)), np.eye(m)], [-G0, -G1]])))
    roots = list[complex]()
    for g1, g0 in {(float(x), float(y)) for x, y in np.broadcast(G1, G0)}:
        half, size = 0.5 * g1, cmath.sqrt(g0)
        root = cmath.sqrt(half - size) * cmath.sqrt(half + size)  # whose square may overflow
        far = -half - root if half >= 0.0 else -half + root
        roots += [far, g0 / far if far else far]  # their product is g0
    return np.array(roots)


def limits(title: str, tolerance: Any, steps: Any) -> tuple[float, int]:
    """Those of an iteration."""
    return positive(f"{title}: tolerance", tolerance), whole(f"{title}: steps", steps)
