"""The configuration manifold: neutral, random, integrate, difference, on arrays with leading batch dimensions.

Spherical joints hold a unit quaternion (x, y, z, w), free joints a position and one; their tangent vectors are
body velocities, so integrate is the exponential of SO(3) and of SE(3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DrevoError, NumericsError
from ..io.given import Array, finite, leading
from ..model.description import Joint, Model
from ..model.references import random_range
from . import manifold

MOTIONS = ("integrate", "difference", "integrate_derivatives", "difference_derivatives")
UNIT_SLACK = 2e-6  # of |q|^2: how far a quaternion may be from unit length, as in compiled code


def neutral(model: Model) -> Array:
    """Zero coordinates and identity quaternions, (nq,)."""
    q = np.zeros(model.nq)
    for _, turning in quaternion_parts(model):
        q[turning.stop - 1] = 1.0
    return q


def random(
    model: Model, rng: np.random.Generator, shape: tuple[int, ...] = (), within: tuple[Array, Array] | None = None
) -> Array:
    """Uniform configurations: inside limits (see `random_range`), else +-pi (angles) or +-1 m.

    within: least values and widths of the ranges, where they are known.
    """
    low, width = within or ranges(model)
    q = np.empty((*shape, model.nq))
    # of one configuration, neighbours are drawn at once: the same numbers, sooner
    parts = (
        [(j.turns, sq) for j, sq, _ in model.slices()] if shape else [(rule > 0, sq) for rule, sq, _ in model.runs]
    )
    for turns, sq in parts:
        q[..., sq] = rng.random((*shape, sq.stop - sq.start))
        if turns:
            x = rng.normal(size=(*shape, 4))
            q[..., sq.stop - 4 : sq.stop] = x / np.sqrt((x * x).sum(-1, keepdims=True))
    return q * width + low


def ranges(model: Model) -> tuple[Array, Array]:
    """Ranges in which `random` draws coordinates: least values and widths, (nq,) each; 0 and 1 of quaternions."""
    low, high = bounds(model)
    width = high - low
    for _, turning in quaternion_parts(model):
        low[turning], width[turning] = 0.0, 1.0
    return low, width


def quaternion_parts(model: Model) -> list[tuple[str, slice]]:
    """The joints that have one, and where it stands in q."""
    return [(j.name, slice(sq.stop - 4, sq.stop)) for j, sq, _ in model.slices() if j.turns]


def bounds(model: Model) -> Array:
    """The bounds between which `random` draws each coordinate, (2, nq): least and greatest; quaternions -1, 1."""
    rows = [np.zeros((2, 0))]
    for j, _, _ in model.slices():
        low, high = (-np.ones(j.nq), np.ones(j.nq)) if j.turns else _bounds(j)
        rows.append(np.stack([low, high]))
    return np.concatenate(rows, axis=1)


def _bounds(j: Joint) -> tuple[Array, Array]:
    wide = {"prismatic": [1.0], "cylindrical": [1.0, math.pi], "planar": [1.0, 1.0, math.pi]}
    high = np.array(wide.get(j.kind, [math.pi] * j.nq))
    if j.nq == 1 or j.formula:  # which has the same limits for each
        low, high = (np.full(j.nq, x) for x in random_range(j.limit, high[0]))
        return low, high
    return -high, high


def state(model: Model, who: str, **given: ArrayLike) -> list[Array]:
    """Checks what a caller gives: (..., nq) where the name begins with q, times (...,) for t, else (..., nv).

    Real, finite, quaternions of unit length, leading dimensions that broadcast; the arrays are not copied where
    that is not needed. Raises InputError, NumericsError with the argument's name.
    """
    out = []
    for name, x in given.items():
        size = model.nq if name[0] == "q" else model.nv
        array = finite(f"{who}: {name}", x, None if name == "t" else (..., size))
        if name[0] == "q":
            require_unit_quaternions(model, f"{who}: {name}", array)
        out.append(array)
    leading(who, **{name: x[..., None] if name == "t" else x for name, x in zip(given, out)})
    return out


def require_unit_quaternions(model: Model, what: str, q: Array, error: type[DrevoError] = NumericsError) -> None:
    """An error for the first that is not of unit length."""
    for rule, sq, _ in model.runs:
        if not rule:
            continue
        with np.errstate(over="ignore"):
            square = np.sum(q[..., sq.stop - 4 : sq.stop] ** 2, -1)
        wrong = np.abs(square - 1.0) > UNIT_SLACK
        if wrong.any():
            at = int(wrong.argmax())
            where = f" in row {at}" if wrong.ndim else ""
            name = next(j.name for j, part, _ in model.slices() if part == sq)
            raise error(
                f"{what}: the quaternion of joint {name!r}{where} has length {math.sqrt(square.flat[at]):.9g}; "
                "it must be 1 to 1e-6: normalise it"
            )


def integrate(model: Model, q: Array, dv: Array) -> Array:
    """q (+) dv: the configuration reached from q by moving along dv for unit time."""
    return _joined(model, manifold.JOINT_EXPS, q, dv, [(sq, sv, sq) for _, sq, sv in model.runs], model.nq)


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """dv with integrate(q0, dv) = q1 (shortest rotation)."""
    return _joined(model, manifold.JOINT_LOGS, q0, q1, [(sq, sq, sv) for _, sq, sv in model.runs], model.nv)


def integrate_derivatives(model: Model, q: Array, dv: Array) -> tuple[Array, ...]:
    """The Jacobians of integrate by q and by dv, on the tangent space."""
    with _silent():
        found = manifold.exponential_rates(model.runs, (), _columns(dv))
    return _spread(found, _lead(q, dv), model.nv, (q, dv))


def difference_derivatives(model: Model, q0: Array, q1: Array) -> tuple[Array, ...]:
    """The Jacobians of difference by q0 and by q1, on the tangent space."""
    with _silent():
        found = manifold.logarithm_rates(model.runs, _columns(q0), _columns(q1))
    return _spread(found, _lead(q0, q1), model.nv, (q0, q1))


def _joined(
    model: Model, rules: Any, a: Array, b: Array, parts: Sequence[tuple[slice, slice, slice]], size: int
) -> Array:
    """Each run of coordinates by its rule, those of sums all at once."""
    out = np.empty((*_lead(a, b), size))
    with _silent():
        for (rule, _, _), (of_a, of_b, to) in zip(model.runs, parts):
            x, y = a[..., of_a], b[..., of_b]
            if rule:
                for k, z in enumerate(rules[rule](_columns(x), _columns(y))):
                    out[..., to.start + k] = z
            else:
                out[..., to] = rules[0]([x], [y])[0]
    return _finite(out, a, b)


def _silent() -> Any:
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def _columns(x: Array) -> list[Array]:
    """The entries of vectors, as scalars."""
    return list(np.moveaxis(x, -1, 0))


def _lead(a: Array, b: Array) -> tuple[int, ...]:
    """The leading dimensions of two arrays of vectors, broadcast."""
    return np.broadcast_shapes(a.shape[:-1], b.shape[:-1])


def _spread(
    found: Sequence[manifold.SparseMatrix], lead: tuple[int, ...], nv: int, given: Sequence[Array]
) -> tuple[Array, ...]:
    """Entries as full matrices, (*lead, nv, nv)."""
    made = [np.zeros((*lead, nv, nv)) for _ in found]
    for out, entries in zip(made, found):
        for (i, j), x in entries.items():
            out[..., i, j] = x
        _finite(out, *given)
    return tuple(made)


def _finite(out: Array, *given: Array) -> Array:
    """NumericsError where such numbers have no result."""
    if not np.isfinite(out).all():
        largest = max(float(np.abs(x).max(initial=0.0)) for x in given)
        raise NumericsError(
            f"a motion of the size {largest:.3g} ends beyond the largest number; give a smaller one"
        )
    return out
