"""The configuration manifold over any scalar: exponential and logarithm of SO(3) and SE(3), and their Jacobians.

Quaternions are (x, y, z, w), tangent vectors body velocities, linear first. What depends on an angle t is a smooth
function of t^2 or of cos(t/2), so that values and derivatives are right at t = 0 too. Lynch and Park
2017, section 3.3.3; Sola, Deray and Atchuthan 2018, "A micro Lie theory", sections IV and appendix B, D.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .rotation import from_quaternion
from .scalar import Scalar, Vector, cos, sin, sqrt, where
from .spatial import EYE, Mat, Vec, outer, skew

SERIES_BELOW = 0.1  # rad^2: up to here short series are exact to the last bit
SERIES_TERMS = 6
NEVER_ZERO = 1e-30  # changes nothing where t^2 is not below NEAR, and nothing is divided by 0 where it is
_SINE = [(-0.25) ** k / (2 * math.factorial(2 * k + 1)) for k in range(SERIES_TERMS)]
_COSINE = [(-0.25) ** k / math.factorial(2 * k) for k in range(SERIES_TERMS)]
_CUBIC = [(-1.0) ** k / math.factorial(2 * k + 3) for k in range(SERIES_TERMS)]
_SQUARE_RATE = [-((-1.0) ** k) * (2 * k + 2) / math.factorial(2 * k + 4) for k in range(SERIES_TERMS)]
_CUBIC_RATE = [-((-1.0) ** k) * (2 * k + 2) / math.factorial(2 * k + 5) for k in range(SERIES_TERMS)]
# of y = 1 - cos h, h = t/2 from 0 to pi/2: h / sin h, k = (1 - h cot h) / t^2 and k' / t, by Chebyshev's points,
# to 4e-16
_HALF_ANGLE_SERIES = (1.0, 0.33333333333330945, 0.13333333333682526, 0.05714285694042784, 0.025396831596651948,
        0.011543895604776996, 0.00532944828305169, 0.0024737607111697374, 0.001251083869870826,
        0.00016421047913476515, 0.0017011133906985544, -0.003976427223224787, 0.009195329684833449,
        -0.01586170544127971, 0.02153400343586953, -0.022454256450108755, 0.01773831596916336,
        -0.01025927464062151, 0.004114940516850556, -0.001025639660813829, 0.00012117305831116537)  # fmt: skip
_COTANGENT = (0.08333333333333333, 0.011111111111110497, 0.0039682539683436055, 0.001622574950711924,
              0.0007027953063898233, 0.0003142906079486479, 0.00014347750561777246, 6.60677851725803e-05,
              3.3128287175585156e-05, 4.622379973496125e-06, 4.383582036542753e-05, -0.00010201311338900102,
              0.0002360918715217313, -0.00040719925817823467, 0.0005528514907096222, -0.0005764861626653217,
              0.00045542792209617665, -0.00026341511860504183, 0.00010566041416807489, -2.633745548558352e-05,
              3.1119960226532786e-06)  # fmt: skip
_COTANGENT_RATE = (0.002777777777777778, 0.0010582010582008087, 0.0004938271605303158, 0.00023836245846957949,
        0.00011655390090253213, 5.736620431849442e-05, 2.836036860551074e-05, 1.3908482304040972e-05,
        7.812402458360933e-06, -6.086171177155613e-07, 1.671143664060823e-05, -4.1914624349981355e-05,
        9.560467376172739e-05, -0.00016525014367112245, 0.00022400384153186502, -0.00023341679357162206,
        0.0001841606583075428, -0.00010637023098714479, 4.2584710845467535e-05, -1.0589485436494446e-05,
        1.2461616952204142e-06)  # fmt: skip

SparseMatrix = Mapping[tuple[int, int], Scalar]  # of a matrix, by row and column; what is not there is 0
Blocks = Sequence[Sequence["Mat | None"]]
Run = tuple[
    int, slice, slice
]  # how a part of q and of v moves: 7 a free joint, 4 a ball, 0 sums; see `Model.runs`


def _polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """By Estrin's scheme: pairs, then pairs of pairs, so that few operations wait for one another."""
    parts: list[Scalar] = list(coefficients)
    while len(parts) > 1:
        if len(parts) % 2:
            parts.append(0.0)
        parts = [a + b * x for a, b in zip(parts[::2], parts[1::2])]
        x = x * x
    return parts[0]


class RotationVector(NamedTuple):
    """A rotation vector w = t e and what is formed of it. x: t^2; near: whether it is below NEAR; over: 1 / t.

    s, c: sin(t/2) / t and cos(t/2), so that (s w, c) is its quaternion.
    """

    w: Vec
    x: Scalar
    near: Any
    over: Scalar
    s: Scalar
    c: Scalar

    @classmethod
    def of(cls, w: Vec) -> RotationVector:
        x = w.dot(w)
        near, t = x < SERIES_BELOW, sqrt(x + NEVER_ZERO)
        over = 1.0 / t
        s = where(near, _polynomial(x, _SINE), sin(0.5 * t) * over)
        return cls(w, x, near, over, s, where(near, _polynomial(x, _COSINE), cos(0.5 * t)))

    @property
    def quaternion(self) -> list[Scalar]:
        return [*(self.w * self.s), self.c]

    @property
    def linear(self) -> Scalar:
        """a = sin t / t."""
        return 2.0 * (self.s * self.c)

    @property
    def square(self) -> Scalar:
        """b = (1 - cos t) / t^2."""
        return 2.0 * (self.s * self.s)

    @property
    def cubic(self) -> Scalar:
        """c = (t - sin t) / t^3."""
        return self._chosen(_CUBIC, 1.0 - self.linear)

    @property
    def square_rate(self) -> Scalar:
        """b' / t."""
        return self._chosen(_SQUARE_RATE, self.linear - 2.0 * self.square)

    @property
    def cubic_rate(self) -> Scalar:
        """c' / t."""
        return self._chosen(_CUBIC_RATE, self.square - 3.0 * self.cubic)

    def _chosen(self, near: Sequence[float], far: Scalar) -> Scalar:
        """A series, or beyond it far / t^2."""
        return where(self.near, _polynomial(self.x, near), far * (self.over * self.over))


def multiply(a: Vector, b: Vector) -> list[Scalar]:
    """Quaternion product."""
    u, w = Vec(*a[:3]), Vec(*b[:3])
    return [*(w * a[3] + u * b[3] + u.cross(w)), a[3] * b[3] - u.dot(w)]


def conjugate(q: Vector) -> list[Scalar]:
    return [*(-Vec(*q[:3])), q[3]]


def _united(q: Vector) -> list[Scalar]:
    """Scales a quaternion to unit length where 1e-6 are lacking: 1 / |q| as a series in |q|^2 - 1."""
    e = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + (q[3] * q[3] - 1.0)
    size = 1.0 + e * _polynomial(e, (-0.5, 0.375, -0.3125))
    return [x * size for x in q]


# -- motions of one joint -----------------------------------------------------------------------------------


def exp_ball(q: Vector, w: Vector) -> list[Scalar]:
    """q times the quaternion of the rotation vector w."""
    return multiply(_united(q), RotationVector.of(Vec(*w)).quaternion)


def log_ball(q0: Vector, q1: Vector) -> list[Scalar]:
    """The rotation vector from q0 to q1 in the axes of q0, angle at most pi."""
    return list(_log(q0, q1)[0])


def _log(q0: Vector, q1: Vector) -> tuple[Vec, Scalar]:
    """The rotation vector of the shorter way, t e, and 1 - cos(t/2)."""
    d = multiply(conjugate(_united(q0)), _united(q1))
    y = 1.0 - abs(d[3])
    half = where(d[3] < 0.0, -2.0, 2.0) * _polynomial(y, _HALF_ANGLE_SERIES)
    return Vec(*d[:3]) * half, y


def exp_free(q: Vector, m: Vector) -> list[Scalar]:
    """Position and quaternion after the body twist m."""
    R, turn = from_quaternion(*q[3:]), RotationVector.of(Vec(*m[3:]))
    shift = _shift(R @ Vec(*m[:3]), R @ turn.w, turn)
    return [*(Vec(*q[:3]) + shift), *multiply(_united(q[3:]), turn.quaternion)]


def _shift(v: Vec, w: Vec, turn: RotationVector) -> Vec:
    """V v = v + b w x v + c w x (w x v): where the twist (v, w) takes the origin; in any axes."""
    u = w.cross(v)
    V: Vec = v + u * turn.square + w.cross(u) * turn.cubic
    return V


def log_free(q0: Vector, q1: Vector) -> list[Scalar]:
    """The body twist from q0 to q1: V^-1 = 1 - [w] / 2 + k [w]^2, k = (1 - (t/2) cot(t/2)) / t^2."""
    w, y = _log(q0[3:], q1[3:])
    shift = _apart(q0, q1)
    u = w.cross(shift)
    return [*(shift - u * 0.5 + w.cross(u) * _polynomial(y, _COTANGENT)), *w]


def _apart(q0: Vector, q1: Vector) -> Vec:
    """The position of q1 as q0 sees it."""
    seen: Vec = from_quaternion(*q0[3:]).T @ (Vec(*q1[:3]) - Vec(*q0[:3]))
    return seen


JointMap = Callable[[Vector, Vector], list[Scalar]]
JOINT_EXPS: dict[int, JointMap] = {7: exp_free, 4: exp_ball, 0: lambda q, v: [x + y for x, y in zip(q, v)]}
JOINT_LOGS: dict[int, JointMap] = {7: log_free, 4: log_ball, 0: lambda q0, q1: [y - x for x, y in zip(q0, q1)]}


# -- Jacobians of one joint, of body rates by body rates ------------------------------------------------------


def _rates_ball(w: Vec) -> tuple[Mat, Mat]:
    """Jacobians of q exp(w): by q, R^T, and by w, J = 1 - b [w] + c [w]^2."""
    turn, W = RotationVector.of(w), skew(w)
    J = EYE + _times(W, -turn.square) + _times(W.mul(W), turn.cubic)
    return from_quaternion(*turn.quaternion).T, J


def _coupling(v: Vec, w: Vec) -> Mat:
    """d(V v) / dw in the axes after the turn: B of J = [[J_ball, B], [0, J_ball]]."""
    turn, W = RotationVector.of(w), skew(w)
    u = w.cross(v)
    by_w = _times(skew(v), -turn.square) + _times(skew(u) + W.mul(skew(v)), -turn.cubic)
    by_t = outer(u, w * turn.square_rate) + outer(w.cross(u), w * turn.cubic_rate)
    return from_quaternion(*turn.quaternion).T.mul(by_w + by_t)


def _times(A: Mat, s: Scalar) -> Mat:
    return Mat(A.x * s, A.y * s, A.z * s)


def _exp_rates(rule: int, dv: Vector) -> tuple[Blocks, Blocks]:
    """Jacobians of q (+) dv by q and by dv."""
    v, w = Vec(*dv[:3]), Vec(*dv[-3:])
    R, J = _rates_ball(w)
    if rule == 4:
        return [[R]], [[J]]
    p = _shift(v, w, RotationVector.of(w))
    return [[R, _times(R.mul(skew(p)), -1.0)], [None, R]], [[J, _coupling(v, w)], [None, J]]


def _log_rates(rule: int, q0: Vector, q1: Vector) -> Blocks:
    """Jacobian of log(q0^-1 q1) by q1: A = 1 + [w] / 2 + k [w]^2 of w, and G A of V^-1 r, with G its rate by w."""
    w, y = _log(q0[-4:], q1[-4:])
    W, k = skew(w), _polynomial(y, _COTANGENT)
    A = EYE + _times(W, 0.5) + _times(W.mul(W), k)
    if rule == 4:
        return [[A]]
    r = _apart(q0, q1)
    u, P = w.cross(r), skew(r)
    by_w = _times(P, 0.5) + _times(skew(u) + W.mul(P), -k)
    by_t = outer(w.cross(u), w * _polynomial(y, _COTANGENT_RATE))
    return [[A, (by_w + by_t).mul(A)], [None, A]]


# -- all joints -----------------------------------------------------------------------------------------------


def exponential(runs: Sequence[Run], q: Vector, dv: Vector) -> list[Scalar]:
    """q (+) dv."""
    return [x for rule, sq, sv in runs for x in JOINT_EXPS[rule](q[sq], dv[sv])]


def logarithm(runs: Sequence[Run], q0: Vector, q1: Vector) -> list[Scalar]:
    """dv with q0 (+) dv = q1, by the shortest rotations."""
    return [x for rule, sq, _ in runs for x in JOINT_LOGS[rule](q0[sq], q1[sq])]


def exponential_rates(runs: Sequence[Run], q: Vector, dv: Vector) -> list[SparseMatrix]:
    """The Jacobians of q (+) dv: by q and by dv; they are the same at every q."""
    by_q, by_v = dict[tuple[int, int], Scalar](), dict[tuple[int, int], Scalar]()
    for rule, _, sv in runs:
        blocks = _exp_rates(rule, dv[sv]) if rule else (None, None)
        for out, x in zip((by_q, by_v), blocks):
            _put(out, sv, x, 1.0)
    return [by_q, by_v]


def logarithm_rates(runs: Sequence[Run], q0: Vector, q1: Vector) -> list[SparseMatrix]:
    """The Jacobians of the tangent vector from q0 to q1: by q0 and by q1."""
    by_0, by_1 = dict[tuple[int, int], Scalar](), dict[tuple[int, int], Scalar]()
    for rule, sq, sv in runs:
        ends = q0[sq], q1[sq]
        for out, sign, (a, b) in ((by_0, -1.0, ends[::-1]), (by_1, 1.0, ends)):
            _put(out, sv, _log_rates(rule, a, b) if rule else None, sign)
    return [by_0, by_1]


def _put(out: dict[tuple[int, int], Scalar], at: slice, blocks: Blocks | None, sign: float) -> None:
    """Blocks of three rows and columns on the diagonal, times a sign; the unit matrix if there are none."""
    if blocks is None:
        out.update(((k, k), sign) for k in range(at.start, at.stop))
    for r, row in enumerate(blocks or ()):
        for c, block in enumerate(row):
            for i, line in enumerate(block or ()):
                for j, x in enumerate(line):
                    out[at.start + 3 * r + i, at.start + 3 * c + j] = sign * x
