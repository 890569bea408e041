"""Quaternions and axis rotations over any scalar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .scalar import Scalar, Vector, atan2, maximum, sqrt, where
from .spatial import EYE, Mat, Vec

NO_TURN = 1e-60  # of the square of a sine, where its root is taken
ZERO_DIFFERENCE = 1e-15  # of the largest term: below it a difference is a structural zero


def from_quaternion(x: Scalar, y: Scalar, z: Scalar, w: Scalar) -> Mat:
    """Rotation of a unit quaternion (x, y, z, w): 9 products, 12 sums after sharing."""
    x2, y2, z2 = x + x, y + y, z + z
    xx, yy, zz = x * x2, y * y2, z * z2
    xy, xz, yz = x * y2, x * z2, y * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Mat(
        Vec(1.0 - (yy + zz), xy - wz, xz + wy),
        Vec(xy + wz, 1.0 - (xx + zz), yz - wx),
        Vec(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def unit_quaternion(R: Mat) -> list[Scalar]:
    """Unit quaternion of R, up to the sign; of four ways the one dividing by the largest part (Shepperd 1978)."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    a, b, c, d, e, f = zy - yz, xz - zx, yx - xy, xy + yx, xz + zx, yz + zy
    best, size = [a, b, c, 1.0 + xx + yy + zz], 1.0 + xx + yy + zz  # each row 4 q_k q
    rows = ([1.0 + xx - yy - zz, d, e, a], [d, 1.0 - xx + yy - zz, f, b], [e, f, 1.0 - xx - yy + zz, c])
    for k, row in enumerate(rows):
        larger = size < row[k]
        best, size = [where(larger, y, x) for x, y in zip(best, row)], where(larger, row[k], size)
    over = 0.5 / sqrt(size)
    return [x * over for x in best]


def angle_and_axis(x: Vector) -> tuple[Scalar, Vec]:
    """The angle of a unit quaternion, 0 to pi, and its axis; the angle grows by axis . w with the angular
    velocity w, in the axes before or after. No axis where it does not turn."""
    u, flipped = Vec(*x[:3]), x[3] < 0.0
    sine = sqrt(maximum(u.dot(u), NO_TURN))
    over = where(flipped, -1.0, 1.0) / sine
    return 2.0 * atan2(sine, where(flipped, -x[3], x[3])), u * over


def joint_coordinate_rates(raw: Vector, unit: Vector, v: Vector) -> list[Scalar]:
    """dq/dt of one joint; unit: its coordinates, the quaternion made unit. A quaternion's rate is q w / 2."""
    if len(raw) == len(v):
        return list(v)
    x, y, z, s = (0.5 * e for e in raw[-4:])
    a, b, c = v[-3:]
    turning = [s * a + y * c - z * b, s * b + z * a - x * c, s * c + x * b - y * a, -(x * a + y * b + z * c)]
    if len(raw) == 4:
        return turning
    return [*(from_quaternion(*unit[-4:]) @ Vec(*v[:3])), *turning]


def axis_rotation(k: int, s: Scalar, c: Scalar) -> Mat:
    """Rotation about coordinate axis k."""
    i, j = (k + 1) % 3, (k + 2) % 3
    rows = [list(r) for r in EYE]
    rows[i][i], rows[i][j], rows[j][i], rows[j][j] = c, -s, s, c
    return Mat.of(rows)


def rodrigues(axis: Sequence[float], angle: float) -> Mat:
    """Rotation about a unit axis (numbers only)."""
    x, y, z = axis
    s, c = math.sin(angle), math.cos(angle)
    t = 1.0 - c
    return Mat.of(
        (
            (t * x * x + c, t * x * y - s * z, t * x * z + s * y),
            (t * x * y + s * z, t * y * y + c, t * y * z - s * x),
            (t * x * z - s * y, t * y * z + s * x, t * z * z + c),
        )
    )


def carrying(k: int, axis: Sequence[float]) -> Mat:
    """The shortest rotation that takes coordinate axis k to a unit vector (numbers only)."""
    e = [0.0, 0.0, 0.0]
    e[k] = 1.0
    c = axis[k]
    n = Vec(*e).cross(Vec(*axis))
    s = math.sqrt(n.dot(n))
    if s == 0.0:
        return EYE
    return rodrigues(n * (1.0 / s), math.atan2(s, c))


def snap_rotation(R: Mat, tolerance: float) -> Mat:
    """Entries within the tolerance of 0 or +-1 become exact, and the others such that R stays a rotation."""
    if R == EYE:
        return EYE

    def near(x: Scalar) -> Scalar:
        n = round(x) if isinstance(x, float) else x
        return float(n) if isinstance(n, int) and abs(x - n) <= tolerance else x

    S = Mat.of((near(x) for x in row) for row in R)
    if S == R:
        return R
    S = _orthonormal(_orthonormal(S))
    return S if _defect(S) <= 10.0 * ZERO_DIFFERENCE else R


def _orthonormal(R: Mat) -> Mat:
    """One Newton step R (3 - R^T R) / 2 towards a rotation, structural zeros kept."""
    D = Mat.of(((1.5 if i == j else 0.0) - 0.5 * x for j, x in enumerate(g)) for i, g in enumerate(R.T.mul(R)))
    return Mat.of((0.0 if old == 0.0 else new for old, new in zip(a, b)) for a, b in zip(R, R.mul(D)))


def _defect(R: Mat) -> float:
    """The largest entry of R^T R - 1."""
    return max(float(abs(x)) for row in R.T.mul(R) - EYE for x in row)
