"""The configuration manifold: neutral, random, integrate, difference, on arrays with leading batch dimensions.

Spherical joints hold a unit quaternion (x, y, z, w), free joints a position and one; their tangent vectors are
body velocities, so integrate is the exponential of SO(3) and of SE(3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import DrevoError, NumericsError
from ..io.given import Array, finite, leading
from ..model.description import Joint, Model

SMALL = 1e-4  # rad: below it the series to the sixth order are exact to the last bit
UNIT = 2e-6  # of |q|^2: how far a quaternion may be from unit length, as in compiled code
UNBOUNDED = 1e3  # rad or m: files write 1e16 where they mean that there is no limit


def neutral(model: Model) -> Array:
    """Zero coordinates and identity quaternions, (nq,)."""
    q = np.zeros(model.nq)
    for j, sq, _ in model.slices():
        if j.nq >= 4:
            q[sq.stop - 1] = 1.0
    return q


def random(model: Model, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Uniform configurations: inside limits (where those are within +-UNBOUNDED), else +-pi (angles) or +-1 m."""
    q = np.empty((*shape, model.nq))
    for j, sq, _ in model.slices():
        if j.nq >= 4:
            q[..., sq] = rng.uniform(-1.0, 1.0, (*shape, j.nq))
            x = rng.normal(size=(*shape, 4))
            q[..., sq.stop - 4 : sq.stop] = x / np.linalg.norm(x, axis=-1, keepdims=True)
        else:
            low, high = _bounds(j)
            q[..., sq] = rng.uniform(low, high, (*shape, j.nq))
    return q


def bounds(model: Model) -> Array:
    """Where `random` draws each coordinate from, (nq, 2): least and greatest; quaternions -1, 1."""
    rows = []
    for j, _, _ in model.slices():
        low, high = (-np.ones(j.nq), np.ones(j.nq)) if j.nq >= 4 else _bounds(j)
        rows.append(np.stack([low, high], axis=1))
    return np.concatenate(rows) if rows else np.zeros((0, 2))


def _bounds(j: Joint) -> tuple[Array, Array]:
    wide = {"prismatic": [1.0], "cylindrical": [1.0, math.pi], "planar": [1.0, 1.0, math.pi]}
    high = np.array(wide.get(j.kind, [math.pi] * j.nq))
    low = -high
    limit = j.limit
    if j.nq != 1 or limit is None or limit.lower is None or limit.upper is None:
        return low, high
    if -UNBOUNDED <= limit.lower < limit.upper <= UNBOUNDED:
        return np.array([limit.lower]), np.array([limit.upper])
    return low, high


def state(model: Model, who: str, **given: ArrayLike) -> list[Array]:
    """What a caller gives, checked: (..., nq) where the name begins with q, times (...,) for t, else (..., nv).

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
        wrong = np.abs(square - 1.0) > UNIT
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
    return _joined(model, q, dv, model.nq, lambda sq, sv: (sq, sv), lambda sq, sv: sq, _exp_free, _exp, np.add)


def difference(model: Model, q0: Array, q1: Array) -> Array:
    """dv with integrate(q0, dv) = q1 (shortest rotation)."""

    def plain(a: Array, b: Array) -> Array:
        return b - a

    return _joined(model, q0, q1, model.nv, lambda sq, sv: (sq, sq), lambda sq, sv: sv, _log_free, _log, plain)


def _joined(
    model: Model, a: Array, b: Array, size: int, read: Any, write: Any, free: Any, ball: Any, plain: Any
) -> Array:
    """Applies one of three rules to each run of coordinates. NumericsError where such numbers have no result."""
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    out = np.empty((*lead, size))
    rules: dict[int, Callable[[Array, Array], Array]] = {7: free, 4: ball}
    with np.errstate(over="ignore", invalid="ignore"):
        for rule, sq, sv in model.runs:
            ra, rb = read(sq, sv)
            out[..., write(sq, sv)] = rules.get(rule, plain)(a[..., ra], b[..., rb])
    if not np.isfinite(out).all():
        largest = max(float(np.abs(x).max(initial=0.0)) for x in (a, b))
        raise NumericsError(
            f"a motion of the size {largest:.3g} ends beyond the largest number; give a smaller one"
        )
    return out


def _cross(a: Array, b: Array) -> Array:
    """a x b of (..., 3); NumPy's own takes ten times as long on few vectors."""
    after, before = (1, 2, 0), (2, 0, 1)
    return np.asarray(
        np.take(a, after, -1) * np.take(b, before, -1) - np.take(a, before, -1) * np.take(b, after, -1)
    )


def multiply(a: Array, b: Array) -> Array:
    """Quaternion product, (x, y, z, w)."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.concatenate([aw * bv + bw * av + _cross(av, bv), aw * bw - np.sum(av * bv, -1, keepdims=True)], -1)


def rotate_by_quaternion(q: Array, v: Array) -> Array:
    """Vectors turned by unit quaternions."""
    t = 2.0 * _cross(q[..., :3], v)
    return np.asarray(v + q[..., 3:] * t + _cross(q[..., :3], t))


def _conjugate(q: Array) -> Array:
    return np.asarray(q * np.array([-1.0, -1.0, -1.0, 1.0]))


def _exp(q: Array, w: Array) -> Array:
    """q times the quaternion of the rotation vector w; renormalised, so it never drifts."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    scale = 0.5 * np.sinc(angle / (2.0 * np.pi))
    step = np.concatenate([w * scale, np.cos(0.5 * angle)], -1)
    out = multiply(q, step)
    return np.asarray(out / np.linalg.norm(out, axis=-1, keepdims=True))


def _log(q0: Array, q1: Array) -> Array:
    """Rotation vector from q0 to q1 in the axes of q0, angle at most pi."""
    d = multiply(_conjugate(q0), q1)
    d = np.where(d[..., 3:] < 0.0, -d, d)
    s = np.linalg.norm(d[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(s, d[..., 3:])
    small = s < SMALL
    factor = np.where(small, 2.0 + s * s / 3.0, angle / np.where(small, 1.0, s))
    return np.asarray(d[..., :3] * factor)


def _coefficients(angle: Array) -> tuple[Array, Array]:
    """(1 - cos t) / t^2 and (t - sin t) / t^3."""
    small = angle < 0.1
    t = np.where(small, 1.0, angle)
    t2 = angle * angle
    b = np.where(small, 0.5 - t2 / 24 + t2**2 / 720 - t2**3 / 40320, (1.0 - np.cos(t)) / t**2)
    c = np.where(small, 1 / 6 - t2 / 120 + t2**2 / 5040 - t2**3 / 362880, (t - np.sin(t)) / t**3)
    return b, c


def _exp_free(x: Array, m: Array) -> Array:
    """Position and quaternion after the body twist (linear, angular); Lynch and Park 2017, section 3.3.3."""
    v, w = m[..., :3], m[..., 3:]
    b, c = _coefficients(np.linalg.norm(w, axis=-1, keepdims=True))
    wv = _cross(w, v)
    shift = v + b * wv + c * _cross(w, wv)
    p = x[..., :3] + rotate_by_quaternion(x[..., 3:], shift)
    turned = _exp(x[..., 3:], w)
    lead = np.broadcast_shapes(p.shape[:-1], turned.shape[:-1])
    return np.concatenate([np.broadcast_to(p, (*lead, 3)), np.broadcast_to(turned, (*lead, 4))], -1)


def _log_free(x0: Array, x1: Array) -> Array:
    """The body twist from x0 to x1: the inverse of _exp_free."""
    w = _log(x0[..., 3:], x1[..., 3:])
    shift = rotate_by_quaternion(_conjugate(x0[..., 3:]), x1[..., :3] - x0[..., :3])
    t = np.linalg.norm(w, axis=-1, keepdims=True)
    b, c = _coefficients(t)
    # V^-1 = 1 - [w]/2 + k [w]^2, k = (1 - (sin t / t) / (2 b)) / t^2
    a = 1.0 - t * t * c  # sin t / t
    small = t < 0.1
    series = 1 / 12 + t**2 / 720 + t**4 / 30240
    k = np.where(small, series, (1.0 - a / (2.0 * b)) / np.where(small, 1.0, t * t))
    wv = _cross(w, shift)
    return np.concatenate([shift - 0.5 * wv + k * _cross(w, wv), w], -1)
