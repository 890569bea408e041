"""Rotation matrices as nested tuples, the few that descriptions are written with."""

from __future__ import annotations

from math import atan2, cos, hypot, sin, sqrt

from .description import IDENTITY, ORIGIN, Mat3, Vec3

FramePose = tuple[Vec3, Mat3]  # origin, rotation
IDENTITY_POSE: FramePose = (ORIGIN, IDENTITY)


def matmul(a: Mat3, b: Mat3) -> Mat3:
    """The product a b."""
    columns = transpose(b)
    return (apply(columns, a[0]), apply(columns, a[1]), apply(columns, a[2]))


def transpose(a: Mat3) -> Mat3:
    """The transpose."""
    return tuple(zip(*a, strict=True))  # type: ignore[return-value]


def apply(a: Mat3, v: Vec3) -> Vec3:
    """The vector a v."""
    (a0, a1, a2), (b0, b1, b2), (c0, c1, c2) = a
    x, y, z = v  # 0.0 first: a sum is never -0.0
    return (0.0 + a0 * x + a1 * y + a2 * z, 0.0 + b0 * x + b1 * y + b2 * z, 0.0 + c0 * x + c1 * y + c2 * z)


def add_vectors(a: Vec3, b: Vec3) -> Vec3:
    """The sum of two vectors."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def turn_tensor(rotation: Mat3, tensor: Mat3) -> Mat3:
    """A tensor given in the columns of `rotation`, in the axes that these columns are written in."""
    return symmetric(matmul(matmul(rotation, tensor), transpose(rotation)))


def symmetric(t: Mat3) -> Mat3:
    """The symmetric part: exactly symmetric, whatever rounding left."""
    xy, xz, yz = (t[0][1] + t[1][0]) / 2, (t[0][2] + t[2][0]) / 2, (t[1][2] + t[2][1]) / 2
    return ((t[0][0], xy, xz), (xy, t[1][1], yz), (xz, yz, t[2][2]))


def shift_tensor(tensor: Mat3, mass: float, r: Vec3) -> Mat3:
    """The tensor about a point at distance r from the centre of mass (Steiner); a negative mass goes back."""
    x, y, z = r
    m = mass
    steiner = (
        (m * (y * y + z * z), -m * x * y, -m * x * z),
        (-m * x * y, m * (x * x + z * z), -m * y * z),
        (-m * x * z, -m * y * z, m * (x * x + y * y)),
    )
    return tuple(add_vectors(a, b) for a, b in zip(tensor, steiner, strict=True))  # type: ignore[return-value]


def from_rpy(roll: float, pitch: float, yaw: float) -> Mat3:
    """Rz(yaw) Ry(pitch) Rx(roll): fixed axes x, y, z, as in URDF."""
    cr, sr, cp, sp, cy, sy = cos(roll), sin(roll), cos(pitch), sin(pitch), cos(yaw), sin(yaw)
    return (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )


def to_rpy(r: Mat3) -> Vec3:
    """Angles with from_rpy(*to_rpy(r)) = r; the roll is what the yaw leaves, so that both may be steep."""
    yaw = atan2(r[1][0], r[0][0])
    c, s = cos(yaw), sin(yaw)
    roll = atan2(s * r[0][2] - c * r[1][2], c * r[1][1] - s * r[0][1])
    return (roll, atan2(-r[2][0], hypot(r[0][0], r[1][0])), yaw)


def matrix_of_quaternion(x: float, y: float, z: float, w: float) -> Mat3:
    """The rotation of a quaternion of any length but zero."""
    n = hypot(x, y, z, w)
    x, y, z, w = x / n, y / n, z / n, w / n
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )


def pose_of_quaternion(q: tuple[float, ...]) -> FramePose:
    """The pose of a free body at x y z and a quaternion x y z w."""
    return (q[0], q[1], q[2]), matrix_of_quaternion(*q[3:])


def quaternion_of(r: Mat3) -> tuple[float, float, float, float]:
    """The unit quaternion x, y, z, w of a rotation, by its largest part: Shepperd 1978."""
    trace = r[0][0] + r[1][1] + r[2][2]
    i = max(range(4), key=lambda k: trace if k == 3 else r[k][k])
    j, k = (i + 1) % 3, (i + 2) % 3
    if i == 3:
        q = [r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1], 1.0 + trace]
    else:
        q = [0.0, 0.0, 0.0, r[k][j] - r[j][k]]
        q[i], q[j], q[k] = 1.0 + 2.0 * r[i][i] - trace, r[j][i] + r[i][j], r[k][i] + r[i][k]
    x, y, z, w = (part / hypot(*q) for part in q)
    return x, y, z, w


def from_axis_angle(axis: Vec3, angle: float) -> Mat3:
    """The turn by `angle` about `axis` (of any length but zero)."""
    n, s = hypot(*axis), sin(angle / 2)
    return matrix_of_quaternion(axis[0] / n * s, axis[1] / n * s, axis[2] / n * s, cos(angle / 2))


def from_z_to(axis: Vec3) -> Mat3:
    """The smallest turn that carries z into `axis`."""
    n = hypot(*axis)
    x, y, z = axis[0] / n, axis[1] / n, axis[2] / n
    if hypot(x, y) < 1e-12:
        return matrix_of_quaternion(0.0, 0.0, 0.0, 1.0) if z > 0 else matrix_of_quaternion(1.0, 0.0, 0.0, 0.0)
    return from_axis_angle((-y, x, 0.0), atan2(hypot(x, y), z))


def unit(v: Vec3) -> Vec3:
    """v at length one; a vector that already is one, to rounding, is left as it is."""
    n = hypot(*v)
    return v if abs(n - 1.0) < 4e-16 else (v[0] / n, v[1] / n, v[2] / n)


def plane_axes(normal: Vec3) -> tuple[Vec3, Vec3]:
    """The x and y axes of a planar joint: right-handed with the normal.

    For a coordinate axis +-e_k, x = e_(k+1); otherwise the projection of e_(k+1), k the largest component.
    """
    k = (max(range(3), key=lambda i: abs(normal[i])) + 1) % 3
    a, b, c = normal
    x, y, z = ((i == k) - component * normal[k] for i, component in enumerate(normal))
    n = 1.0 / sqrt(x * x + y * y + z * z)
    x, y, z = x * n, y * n, z * n
    return (x, y, z), (b * z - c * y, c * x - a * z, a * y - b * x)


def compose(a: FramePose, b: FramePose) -> FramePose:
    """The placement b, given in the frame that a places, outside of it."""
    if IDENTITY_POSE in (a, b):
        return a if b == IDENTITY_POSE else b
    return add_vectors(a[0], apply(a[1], b[0])), b[1] if a[1] == IDENTITY else matmul(a[1], b[1])


def inverse_pose(a: FramePose) -> FramePose:
    """The placement that undoes a."""
    if a == IDENTITY_POSE:
        return a
    back = transpose(a[1])
    x, y, z = apply(back, a[0])
    return (-x, -y, -z), back
