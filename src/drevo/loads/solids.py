"""Uniform solids and what a plane cuts off them, exactly: the mass distribution of a link.

A solid is the affine image of a unit one (cube, ball, cylinder, capsule, closed mesh). What of it lies beyond a
plane is known by its pseudo-inertia P = integral of [x; 1] [x; 1]^T dm (4x4: moments, mass), which
an affine map x -> T x turns into T P T^T. Rods and points are solids without width.

Closed surfaces of triangles: the exact integrals over the part of their inside that lies beyond a plane.

By the theorem of Gauss, the integral of t^a y^b z^c over a body is that of y^(b+1) / (b+1) t^a z^c n_y over its
surface. The face that a cut across t leaves has n_y = 0 and need not be made: triangles beyond the plane count in
full, those that it crosses with the part beyond (after Mirtich 1996, Fast and accurate computation of polyhedral
mass properties, J. of Graphics Tools 1(2)).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..io.given import Array, finite, number
from ..io.reprs import result
from ..robot.view.mesh import BOX, CORNERS

PAIRS = 2_000_000  # of a triangle and a plane at once
MESH_STEPS = 2**20  # steps along the longest side of a mesh: corners within one are the same


def part_beyond(corners: Array, normal: Array, offsets: Array) -> Array:
    """Pseudo-inertia (k, 4, 4) at density 1 of what triangles (n, 3, 3) enclose where normal . x >= offset."""
    size = float(np.linalg.norm(normal))
    R = _across(normal / size)
    X = np.ones((*corners.shape[:2], 4))
    X[..., :3] = corners @ R.T
    flux, h = _flux(X).reshape(-1, 16), offsets / size
    P = np.zeros((len(h), 16))
    for first in range(0, len(h), step := max(1, PAIRS // len(X))):
        rows = slice(first, first + step)
        d = X[None, :, :, 0] - h[rows, None, None]
        inside = (d >= 0.0).sum(axis=2)
        P[rows] = (inside >= 2) @ flux
        k, i = np.nonzero((inside == 1) | (inside == 2))
        one = inside[k, i] == 1
        odd = np.argmax((d[k, i] >= 0.0) == one[:, None], axis=1)  # the corner that stands alone on its side
        o, a, b = ((X[i, (odd + j) % 3], d[k, i, (odd + j) % 3]) for j in range(3))
        tips = _flux(np.stack([o[0], _cut(*o, *a), _cut(*o, *b)], axis=1)).reshape(-1, 16)
        np.add.at(P, k + first, np.where(one, 1.0, -1.0)[:, None] * tips)
    turn = np.eye(4)
    turn[:3, :3] = R.T
    return np.asarray(turn @ (P.reshape(-1, 4, 4) / _POWERS) @ turn.T)


def open_edges(points: Array, faces: Array) -> tuple[int, int]:
    """Counts the edges that are not shared by two triangles that turn the same way, and all edges."""
    low, size = points.min(0), float(np.ptp(points, axis=0).max()) or 1.0
    x, y, z = np.rint((points - low) * (MESH_STEPS / size)).astype(np.int64).T
    f = np.unique((x << 42) | (y << 21) | z, return_inverse=True)[1].ravel()[faces]
    f = f[(f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 2] != f[:, 0])]
    ends = np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]])
    _, edge = np.unique((ends.min(1) << 32) | ends.max(1), return_inverse=True)
    turns = np.bincount(edge.ravel(), np.where(ends[:, 0] < ends[:, 1], 1, -1))
    return int(np.count_nonzero(turns)), len(turns)


# By which power of y an entry was raised too far
_POWERS = 1.0 + (np.arange(4) == 1)[:, None] + (np.arange(4) == 1)[None, :]


def _flux(X: Array) -> Array:
    """Integral of y x x^T n_y over triangles of homogeneous corners (m, 3, 4), (m, 4, 4)."""
    (t1, _, z1, _), (t2, _, z2, _) = (np.moveaxis(X[:, j] - X[:, 0], -1, 0) for j in (1, 2))
    y, S = X[..., 1], X.sum(axis=1)
    r = np.einsum("mi,mia->ma", y, X)
    mixed = S[:, :, None] * r[:, None, :]
    flux = y.sum(axis=1)[:, None, None] * (S[:, :, None] * S[:, None, :] + np.swapaxes(X, 1, 2) @ X)
    flux += mixed + np.swapaxes(mixed, 1, 2) + 2.0 * np.swapaxes(X * y[..., None], 1, 2) @ X
    return np.asarray((z1 * t2 - t1 * z2)[:, None, None] / 120.0 * flux)


def _cut(o: Array, do: Array, x: Array, dx: Array) -> Array:
    """The intersection of a plane and the line from o to x, on either side of it at the distances do and dx."""
    return np.asarray(o + (do / (do - dx))[:, None] * (x - o))


def _across(u: Array) -> Array:
    """Rows: a unit vector and two across it."""
    y = np.cross(u, np.eye(3)[int(np.argmin(np.abs(u)))])
    y /= np.linalg.norm(y)
    return np.stack([u, y, np.cross(u, y)])


THIN_CAPSULE = 1e-9  # of its length: a capsule's ends are lost beside it
NODES = 48  # of Gauss and Legendre for a round solid: all it integrates is analytic between the breakpoints


@result
class Solid:
    """A uniform solid of a mass [kg]: the image of its unit solid under `affine` (4x4), in link axes, metres.

    Unit solids stand about the origin: a cube of side 1; a ball of radius 1; a cylinder of radius 1 and length 1
    along z; a capsule of radius 1 with a straight part of 2 `half` along z; of a mesh the triangles `corners`
    (n, 3, 3) themselves.
    """

    kind: str
    mass: float
    affine: Array
    half: float = 0.5
    corners: Array | None = None

    def moved(self, T: Array, mass: float) -> Solid:
        """The solid under another affine map T (4, 4), with another mass."""
        return Solid(self.kind, _mass(mass), finite("moved: T", T, (4, 4)) @ self.affine, self.half, self.corners)

    @property
    def _triangles(self) -> Array | None:
        """The unit solid's, of a solid with flat faces alone."""
        return CUBE if self.kind == "cube" else self.corners

    def volume(self) -> float:
        """The volume of the solid, m^3."""
        unit = {"ball": 4 / 3 * np.pi, "cylinder": np.pi, "capsule": _capsule_volume(self.half)}.get(self.kind)
        unit = _volume(self._triangles) if self._triangles is not None else unit
        return float(unit * abs(np.linalg.det(self.affine[:3, :3])))

    def beyond(self, normal: Array, offsets: Array) -> Array:
        """Pseudo-inertia (k, 4, 4) of the part where normal . x >= offset, for k offsets."""
        A, b = self.affine[:3, :3], self.affine[:3, 3]
        m, h = A.T @ normal, np.asarray(offsets, float) - normal @ b
        if np.linalg.norm(m) <= 1e-14 * np.linalg.norm(A):  # all of it lies in one plane of the pencil
            part = np.where(h <= 0.0, 1.0, 0.0)[:, None, None] * self._unit(np.array([0.0, 0.0, 1.0]), -_FAR)
        else:
            part = self._unit(m, h)
        return np.asarray(self.mass * (self.affine @ part @ self.affine.T))

    def whole(self) -> Array:
        """Pseudo-inertia (4, 4) of all of it."""
        return np.asarray(
            self.mass * (self.affine @ self._unit(np.array([0.0, 0.0, 1.0]), -_FAR)[0] @ self.affine.T)
        )

    def reach(self, direction: Array) -> tuple[float, float]:
        """The least and the largest direction . x."""
        m = self.affine[:3, :3].T @ direction
        middle = float(direction @ self.affine[:3, 3])
        if self._triangles is not None:
            ends = self._triangles @ m
            return middle + float(ends.min()), middle + float(ends.max())
        if self.kind == "cylinder":
            far = float(np.hypot(m[0], m[1]) + abs(m[2]) / 2)
        else:
            far = float(np.linalg.norm(m)) + (self.half * abs(float(m[2])) if self.kind == "capsule" else 0.0)
        return middle - far, middle + far

    def _unit(self, m: Array, h: Array) -> Array:
        if self._triangles is not None:
            return part_beyond(self._triangles, m, h) / _volume(self._triangles)
        if self.kind == "ball":
            return _ball(m, h)
        return _round(m, h, self.half, self.kind == "capsule")


_FAR = np.array([1e9])
NOT_NEGATIVE = "finite and not negative", lambda x: 0.0 <= x < np.inf


# -- the solids that people name --------------------------------------------------------------------------


def point(mass: float, at: ArrayLike) -> Solid:
    """A point mass, kg, at a point (3,) m."""
    return Solid("ball", _mass(mass), _placed(at, None, (0.0, 0.0, 0.0)))


def rod(mass: float, start: ArrayLike, end: ArrayLike) -> Solid:
    """A uniform thin rod, kg, from one point (3,) m to another."""
    a, b = finite("start of a rod", start, (3,)), finite("end of a rod", end, (3,))
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.outer(b - a, (1.0, 0.0, 0.0)), (a + b) / 2
    return Solid("cube", _mass(mass), T)


def box(mass: float, size: ArrayLike, at: ArrayLike = (0.0, 0.0, 0.0), rotation: ArrayLike | None = None) -> Solid:
    """A uniform box of a mass, kg, and sizes (3,) m about its centre `at` (3,) m; rotation (3, 3): its axes."""
    return Solid("cube", _mass(mass), _placed(at, rotation, finite("size of a solid", size, (3,))))


def sphere(mass: float, radius: float, at: ArrayLike = (0.0, 0.0, 0.0)) -> Solid:
    """A ball, kg, about its centre `at` (3,) m."""
    return Solid("ball", _mass(mass), _placed(at, None, (radius,) * 3))


def cylinder(
    mass: float, radius: float, length: float, at: ArrayLike = (0.0, 0.0, 0.0), rotation: ArrayLike | None = None
) -> Solid:
    """A cylinder, kg, along its own z about its centre `at` (3,) m; rotation (3, 3): its axes."""
    return Solid("cylinder", _mass(mass), _placed(at, rotation, (radius, radius, length)))


def capsule(
    mass: float, radius: float, length: float, at: ArrayLike = (0.0, 0.0, 0.0), rotation: ArrayLike | None = None
) -> Solid:
    """A cylinder of `length`, m, along its own z with a half ball on each end; the rest as in `cylinder`."""
    radius = number("the radius of a capsule", radius, *NOT_NEGATIVE)
    length = number("the length of a capsule", length, *NOT_NEGATIVE)
    if radius <= THIN_CAPSULE * length:
        return cylinder(mass, radius, length, at, rotation)
    half = length / (2.0 * radius)
    return Solid("capsule", _mass(mass), _placed(at, rotation, (radius,) * 3), half)


def mesh(
    mass: float,
    points: ArrayLike,
    faces: ArrayLike,
    at: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike | None = None,
) -> Solid:
    """The solid inside a closed mesh, kg: points (n, 3) m, faces (m, 3) of their numbers, all turned outward or
    all inward; at, rotation: where its own axes stand. InputError where it is open or encloses nothing."""
    p, f = finite("points of a mesh", points, (..., 3)), np.asarray(faces)
    if p.ndim != 2 or f.ndim != 2 or f.shape[1:] != (3,) or f.dtype.kind not in "iu" or not len(f):
        raise InputError("a mesh has points (n, 3) and faces (m, 3) of whole numbers")
    if f.min() < 0 or f.max() >= len(p):
        raise InputError(f"a face of the mesh names a point that is not among its {len(p)}")
    open_, every = open_edges(p, f)
    if open_:
        raise InputError(
            f"the mesh is open at {open_} of its {every} edges and has no inside; close it, or its hull"
        )
    middle = p.mean(axis=0)
    corners = (p - middle)[f]
    volume = _volume(corners)
    if abs(volume) <= THIN_CAPSULE * float(np.ptp(p, axis=0).max()) ** 3:
        raise InputError("the mesh encloses no volume; give another")
    turn = np.eye(4)
    turn[:3, 3] = middle
    return Solid("mesh", _mass(mass), _placed(at, rotation, (1.0,) * 3) @ turn, 0.5,
                 corners if volume > 0.0 else corners[:, ::-1])  # fmt: skip


def _volume(corners: Array) -> float:
    return float((corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])).sum()) / 6.0


def total_pseudo_inertia(solids: Sequence[Solid]) -> Array:
    """Pseudo-inertia (4, 4) of several solids together."""
    return sum((x.whole() for x in solids), np.zeros((4, 4)))


def _placed(at: ArrayLike, rotation: ArrayLike | None, size: Iterable[Any]) -> Array:
    """The affine map (4, 4) from a unit solid to one of these sizes, turned, at a place; checked."""
    T, sizes = np.eye(4), [number("size of a solid", x, *NOT_NEGATIVE) for x in size]
    turn = np.eye(3) if rotation is None else finite("the rotation of a solid", rotation, (3, 3))
    if np.abs(turn).max() > 2.0 or not np.allclose(turn @ turn.T, np.eye(3), atol=1e-6):  # 1e200 has no square
        raise InputError("the rotation of a solid must be a 3x3 rotation matrix")
    T[:3, :3], T[:3, 3] = turn * sizes, finite("at of a solid", at, (3,))
    return T


def _mass(mass: float) -> float:
    return number("the mass of a solid", mass, *NOT_NEGATIVE)


# -- unit solids of unit mass beyond m . x >= h ---------------------------------------------------------------

CUBE = CORNERS[BOX]  # triangles, turned outward


def _ball(m: Array, h: Array) -> Array:
    """Pseudo-inertias (n, 4, 4) of the parts of a unit ball, of mass 1, beyond planes m x = h."""
    size = float(np.linalg.norm(m))
    u, t = m / size, np.clip(h / size, -1.0, 1.0)
    mass = 0.75 * (2 / 3 - t + t**3 / 3)
    along = 0.75 * (2 / 15 - t**3 / 3 + t**5 / 5)
    across = 0.1875 * (8 / 15 - t + 2 / 3 * t**3 - t**5 / 5)
    uu = np.outer(u, u)
    P = np.zeros((len(h), 4, 4))
    P[:, :3, :3] = along[:, None, None] * uu + across[:, None, None] * (np.eye(3) - uu)
    P[:, :3, 3] = P[:, 3, :3] = (0.1875 * (1.0 - t * t) ** 2)[:, None] * u
    P[:, 3, 3] = mass
    return P


def _capsule_volume(half: float) -> float:
    return 2.0 * np.pi * half + 4 / 3 * np.pi


_ANGLES, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_ANGLES, _WEIGHTS = np.pi / 2 * _ANGLES, np.pi / 2 * _WEIGHTS


def _round(m: Array, h: Array, half: float, caps: bool) -> Array:
    """Cylinder or capsule: discs along z, each cut by a chord; Gauss and Legendre between the breakpoints.

    z = middle + reach sin(angle) makes the square roots at both ends of a piece analytic.
    """
    mu, size = float(np.hypot(m[0], m[1])), float(np.linalg.norm(m))
    mu, mz, h = mu / size, float(m[2]) / size, h / size
    top = half + (1.0 if caps else 0.0)
    edges = np.sort(np.clip(_breakpoints(mu, mz, h, half, caps), -top, top), axis=1)
    P = np.zeros((len(h), 4, 4))
    for low, high in pairwise(edges.T):
        middle, reach = (low + high)[:, None] / 2, (high - low)[:, None] / 2
        z = middle + reach * np.sin(_ANGLES)
        w = reach * np.cos(_ANGLES) * _WEIGHTS
        r = np.sqrt(np.maximum(0.0, 1.0 - np.maximum(0.0, np.abs(z) - half) ** 2))
        P += _discs(z, w, r, h[:, None] - mz * z, mu)
    P /= _capsule_volume(half) if caps else 2.0 * np.pi * half
    turn = np.eye(4)
    if mu > 0.0:
        cos, sin = m[:2] / np.hypot(m[0], m[1])
        turn[:2, :2] = [[cos, -sin], [sin, cos]]
    return np.asarray(turn @ P @ turn.T)


def _breakpoints(mu: float, mz: float, h: Array, half: float, caps: bool) -> Array:
    """Heights between which the chord of the plane is an analytic function of z, (k, count)."""
    inner = [np.full_like(h, x) for x in (-half, half)]
    if mz != 0.0:
        with np.errstate(over="ignore"):
            inner += [np.clip((h + s * mu) / mz, -1e9, 1e9) for s in (-1.0, 1.0)]
    inner = [np.clip(x, -half, half) for x in inner]
    ends = []
    for side in (-1.0, 1.0) if caps else ():
        d = h - mz * side * half
        root = mu * np.sqrt(np.maximum(0.0, 1.0 - d * d))
        ups = (np.ones_like(h), *(side * (mz * d + s * root) for s in (-1.0, 1.0)))  # above the cap's foot
        ends += [side * (half + np.maximum(0.0, x)) for x in ups]
    return np.stack([*inner, *ends], axis=1)


def _discs(z: Array, w: Array, r: Array, h: Array, mu: float) -> Array:
    """Sum of w times the pseudo-inertia of discs of radius r at heights z, where mu x >= h."""
    reach = mu * r
    c = np.where(h <= 0.0, -1.0, 1.0)
    c = np.clip(np.divide(h, reach, out=c, where=reach > np.abs(h)), -1.0, 1.0)
    f = np.arccos(c)
    area = w * r**2 * (f - np.sin(2 * f) / 2)
    x = w * r**3 * (2 / 3) * np.sin(f) ** 3
    xx = w * r**4 * (f / 4 - np.sin(4 * f) / 16)
    yy = w * r**4 * (f / 4 - np.sin(2 * f) / 6 + np.sin(4 * f) / 48)
    P = np.zeros((len(z), 4, 4))
    for (i, j), values in {(0, 0): xx, (1, 1): yy, (2, 2): area * z * z, (3, 3): area, (0, 2): x * z, (0, 3): x,
                           (2, 3): area * z}.items():  # fmt: skip
        P[:, i, j] = P[:, j, i] = values.sum(axis=1)
    return P
