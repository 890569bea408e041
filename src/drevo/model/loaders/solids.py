"""Mass and inertia of the solids that bodies are modelled with: plain ones about their own centres, and meshes.

Meshes that touch, as a few support points of their convex hulls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from ...errors import ModelError
from ...io import meshes
from ...io.files import Files
from ...io.packages import package
from ..description import ORIGIN, Inertial, Mat3, Vec3
from ..draft import Draft
from ..rotations import add_vectors, shift_tensor

Array = np.ndarray[Any, Any]
SolidFormulas = dict[str, Callable[..., tuple[float, Vec3]]]
ZERO_TENSOR: Mat3 = (ORIGIN, ORIGIN, ORIGIN)
SHELL_GROWTH = 1e-6  # metres that an ellipsoid grows by to be a shell, as MuJoCo has it
LEAST_AREA = 1e-15
CHUNK_TRIANGLES = 100_000  # triangles at once
MOST_TURNS = 500  # of principal axes
PRINCIPAL_SHARE = 1e-7  # of the largest moment: a product of inertia that is none


class MassProperties(NamedTuple):
    """Volume (of a shell its area), centre, and tensor about it at density one, in the axes it is given in."""

    volume: float
    centre: Vec3
    tensor: Mat3


# --- plain solids, about their centres; round ones stand along z ------------------------------------------------


def solid(kind: str, size: tuple[float, ...], shell: bool = False) -> MassProperties:
    """A sphere (r), capsule or cylinder (r, half length), box or ellipsoid (half sizes), or its surface."""
    amount, moments = (_SHELLS if shell else _FULL)[kind](*size)
    return MassProperties(amount, ORIGIN, diagonal(moments))


def _ellipsoid(a: float, b: float, c: float) -> tuple[float, Vec3]:
    volume = 4 / 3 * pi * a * b * c
    return volume, _across(volume / 5, a, b, c)


def _box(a: float, b: float, c: float) -> tuple[float, Vec3]:
    volume = 8 * a * b * c
    return volume, _across(volume / 3, a, b, c)


def _across(k: float, a: float, b: float, c: float) -> Vec3:
    return (k * (b * b + c * c), k * (a * a + c * c), k * (a * a + b * b))


def _cylinder(r: float, half: float) -> tuple[float, Vec3]:
    volume = 2 * pi * r * r * half
    across = volume * (r * r / 4 + half * half / 3)
    return volume, (across, across, volume * r * r / 2)


def _capsule(r: float, half: float) -> tuple[float, Vec3]:
    volume, (across, _, along) = _cylinder(r, half)
    ends = 4 / 3 * pi * r**3
    across += ends * (2 / 5 * r * r + half * half + 3 / 4 * r * half)
    return volume + ends, (across, across, along + ends * 2 / 5 * r * r)


def _round_shell(r: float, half: float) -> tuple[float, Vec3]:
    """The mantle of a cylinder."""
    area = 4 * pi * r * half
    across = area * (r * r / 2 + half * half / 3)
    return area, (across, across, area * r * r)


def _cylinder_shell(r: float, half: float) -> tuple[float, Vec3]:
    area, (across, _, along) = _round_shell(r, half)
    disc = pi * r * r
    across += 2 * disc * (r * r / 4 + half * half)
    return area + 2 * disc, (across, across, along + disc * r * r)


def _capsule_shell(r: float, half: float) -> tuple[float, Vec3]:
    area, (across, _, along) = _round_shell(r, half)
    ends = 4 * pi * r * r
    across += ends * (2 / 3 * r * r + half * (half + r))
    return area + ends, (across, across, along + ends * 2 / 3 * r * r)


def _ellipsoid_shell(a: float, b: float, c: float) -> tuple[float, Vec3]:
    """The area by Thomsen's formula; the moments of what lies between it and one larger by THIN."""
    p = 1.6075
    area = 4 * pi * (((a * b) ** p + (b * c) ** p + (c * a) ** p) / 3) ** (1 / p)
    (inner, less), (outer, more) = (
        _ellipsoid(a, b, c),
        _ellipsoid(a + SHELL_GROWTH, b + SHELL_GROWTH, c + SHELL_GROWTH),
    )
    k = area / (outer - inner)
    return area, (k * (more[0] - less[0]), k * (more[1] - less[1]), k * (more[2] - less[2]))


def _box_shell(a: float, b: float, c: float) -> tuple[float, Vec3]:
    """Three pairs of rectangles, by the second moments of their places."""
    x, y, z = 8 * b * c, 8 * a * c, 8 * a * b
    xx, yy, zz = a * a * (x + (y + z) / 3), b * b * (y + (x + z) / 3), c * c * (z + (x + y) / 3)
    return x + y + z, (yy + zz, xx + zz, xx + yy)


_FULL: SolidFormulas = {
    "sphere": lambda r: _ellipsoid(r, r, r),
    "capsule": _capsule,
    "cylinder": _cylinder,
    "box": _box,
    "ellipsoid": _ellipsoid,
}
_SHELLS: SolidFormulas = {
    "sphere": lambda r: _capsule_shell(r, 0.0),
    "capsule": _capsule_shell,
    "cylinder": _cylinder_shell,
    "box": _box_shell,
    "ellipsoid": _ellipsoid_shell,
}


def diagonal(values: Vec3) -> Mat3:
    """The tensor with these moments on its own axes."""
    x, y, z = values
    return ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z))


# --- meshes ---------------------------------------------------------------------------------------------------


def of_triangles(corners: Array, rule: str = "exact") -> MassProperties:
    """Mass properties at density 1 of the solid in triangles (m, 3, 3), tetrahedra on each.

    `shell`: of their area; `legacy`: no volume is negative. Apex of the tetrahedra is the centre of the area,
    then the centre of mass: where the surface is closed and turned outward, it has no say.
    """
    b, c = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    middle, normal = corners.mean(1), b[:, [1, 2, 0]] * c[:, [2, 0, 1]] - b[:, [2, 0, 1]] * c[:, [1, 2, 0]]
    area = np.linalg.norm(normal, axis=1) / 2
    if area.sum() < LEAST_AREA:
        raise ModelError("its triangles have no area")
    centre = area @ middle / area.sum()
    share = area if rule == "shell" else _pyramids(middle - centre, normal, rule)
    if share.sum() < LEAST_AREA:
        raise ModelError(
            "its volume is negative, its triangles are turned inward; turn them, or set inertia='legacy'"
            if share.sum() < 0.0
            else "it has no volume; set inertia='shell'"
        )
    if rule != "shell":
        centre = share @ (0.75 * middle + 0.25 * centre) / share.sum()
        share = _pyramids(middle - centre, normal, rule)
    moments = np.zeros((3, 3))
    for k in range(0, len(corners), CHUNK_TRIANGLES):
        x = corners[k : k + CHUNK_TRIANGLES] - centre
        points = np.concatenate([x, x.sum(1, keepdims=True)], 1)  # each corner, and their sum
        weighted = points * share[k : k + CHUNK_TRIANGLES, None, None]
        moments += weighted.reshape(-1, 3).T @ points.reshape(-1, 3)
    moments /= 12.0 if rule == "shell" else 20.0
    tensor = np.trace(moments) * np.eye(3) - moments
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = tensor.tolist()
    x, y, z = centre.tolist()
    return MassProperties(float(share.sum()), (x, y, z), ((xx, xy, xz), (yx, yy, yz), (zx, zy, zz)))


def _pyramids(middle: Array, normal: Array, rule: str) -> Array:
    volume: Array = (middle * normal).sum(1) / 6.0
    return np.abs(volume) if rule == "legacy" else volume


def principal_axes(tensor: Mat3) -> Mat3:
    """Axes, as columns, about which the moments fall, turned out of those of the tensor by Jacobi's method: pairs
    whose product of inertia is the largest, until that is small. Its end and its order are MuJoCo's, which keeps
    points of meshes along these axes."""
    A, R = np.array(tensor), np.eye(3)
    for _ in range(MOST_TURNS):
        D = R.T @ A @ R
        i, j = max(((0, 1), (0, 2), (1, 2)), key=lambda at: (abs(D[at]), at))
        if abs(D[i, j]) <= PRINCIPAL_SHARE * np.abs(D.diagonal()).max():
            break
        tau = (D[j, j] - D[i, i]) / (2.0 * D[i, j])
        t = 1.0 / (abs(tau) + sqrt(1.0 + tau * tau))
        c = 1.0 / sqrt(1.0 + t * t)
        half = t * c / sqrt(2.0 + 2.0 * c)
        R = R @ _turn(3 - i - j, half if (tau < 0.0) != (j - i == 2) else -half)
    moments = D.diagonal().tolist()
    for k in (0, 1, 0):
        if moments[k] < moments[k + 1]:
            moments[k], moments[k + 1] = moments[k + 1], moments[k]
            R = R @ _turn((k + 2) % 3, sqrt(0.5))
    x, y, z = R.tolist()
    return (x[0], x[1], x[2]), (y[0], y[1], y[2]), (z[0], z[1], z[2])


def _turn(k: int, half: float) -> Array:
    """The rotation about an axis of coordinates, by the sine of half its angle."""
    R, i, j = np.eye(3), (k + 1) % 3, (k + 2) % 3
    R[i, i] = R[j, j] = 1.0 - 2.0 * half * half
    R[j, i] = 2.0 * half * sqrt(1.0 - half * half)
    R[i, j] = -R[j, i]
    return R


# --- several as one ----------------------------------------------------------------------------------------------


def combined_inertia(parts: Iterable[tuple[float, Vec3, Mat3]]) -> Inertial:
    """One body of several (mass, centre, tensor about it), all in the same axes."""
    parts = list(parts)
    mass = sum(m for m, _, _ in parts)
    if mass == 0.0:
        return Inertial()
    cx, cy, cz = (sum(m * c[k] for m, c, _ in parts) / mass for k in range(3))
    total = ZERO_TENSOR
    for m, c, tensor in parts:
        away = shift_tensor(tensor, m, (c[0] - cx, c[1] - cy, c[2] - cz))
        total = (add_vectors(total[0], away[0]), add_vectors(total[1], away[1]), add_vectors(total[2], away[2]))
    return Inertial(mass, (cx, cy, cz), total)


LEAST_POINTS, MOST_SUPPORTS = 4, 100_000  # of a mesh that touches
SINGLY = 64  # of so many corners one more at a time is chosen, of more as many times that


def support_points(points: Array, most: int) -> tuple[tuple[Vec3, ...], int, float]:
    """At most so many corners of the convex hull, how many it has, and how far it stands out of theirs, m.

    The corner that stands out most is added again and again, of large hulls several at once. ModelError for
    points in a plane.
    """
    corners = points[np.unique(meshes.hull_faces(points))]
    if len(corners) <= most:
        return _tuples(corners), len(corners), 0.0
    chosen = _spread(corners)
    while True:
        out = _standing_out(corners[chosen], corners)
        if len(chosen) >= most or out.max() <= 0.0:
            return _tuples(corners[chosen]), len(corners), float(max(out.max(), 0.0))
        count = min(max(len(chosen) // SINGLY, 1), most - len(chosen))
        chosen += [int(k) for k in np.argsort(-out, kind="stable")[:count] if out[k] > 0.0]


def _tuples(points: Array) -> tuple[Vec3, ...]:
    return tuple((float(x), float(y), float(z)) for x, y, z in points)


def _spread(corners: Array) -> list[int]:
    """Four corners that enclose a volume: each as far as may be from the point, line and plane of those before."""
    first = int(((corners - corners.mean(0)) ** 2).sum(1).argmax())
    way = corners - corners[first]
    second = int((way**2).sum(1).argmax())
    across = np.cross(way, way[second])
    third = int((across**2).sum(1).argmax())
    fourth = int(np.abs(way @ across[third]).argmax())
    return [first, second, third, fourth]


def _standing_out(chosen: Array, corners: Array) -> Array:
    """The distance by which corners stand out of the hull of some of them; negative inside."""
    spatial = package("scipy.spatial", "a mesh that touches", "scipy")
    planes = spatial.ConvexHull(chosen, qhull_options="Qt QJ").equations
    heights: Array = (corners @ planes[:, :3].T + planes[:, 3]).max(1)
    return heights


def hull_of(draft: Draft, files: Files, label: str, points: Array) -> tuple[Vec3, ...]:
    """The support points of a mesh, which the notes tell of."""
    support, corners, out = support_points(points, files.hulls)
    draft.notes.append(
        f"{label} touches by {len(support)} of the {corners} corners of its convex hull, which stands out by up "
        f"to {1000.0 * out:.3g} mm"
    )
    return support


def check_hulls(count: object) -> int:
    """Checks the number of support points that a mesh may have; 0 where meshes do not touch."""
    if (
        isinstance(count, bool)
        or not isinstance(count, int)
        or (count and not LEAST_POINTS <= count <= MOST_SUPPORTS)
    ):
        raise ModelError(
            f"hulls is 0, or from {LEAST_POINTS} to {MOST_SUPPORTS} support points of each mesh, not {count!r}"
        )
    return count
