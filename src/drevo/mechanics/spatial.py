"""Vectors, rotations and body inertias over any scalar; parts are named, so six numbers have no order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .scalar import Scalar, is_zero


class Vec(NamedTuple):
    """Three scalars."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, o: Vec) -> Vec:  # type: ignore[override]
        return Vec(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vec) -> Vec:
        return Vec(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vec:
        return Vec(self.x * s, self.y * s, self.z * s)

    def __rmul__(self, s: Scalar) -> Vec:
        return Vec(self.x * s, self.y * s, self.z * s)

    def cross(self, o: Vec) -> Vec:
        return Vec(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)

    def dot(self, o: Vec) -> Scalar:
        return self.x * o.x + self.y * o.y + self.z * o.z

    @property
    def zero(self) -> bool:
        """All three are structural zeros."""
        return is_zero(self.x) and is_zero(self.y) and is_zero(self.z)


ZERO = Vec(0.0, 0.0, 0.0)
UNIT_VECS = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))


class Mat(NamedTuple):
    """Three rows."""

    x: Vec
    y: Vec
    z: Vec

    @classmethod
    def of(cls, rows: Iterable[Iterable[Scalar]]) -> Mat:
        return cls(*(Vec(*row) for row in rows))

    @property
    def T(self) -> Mat:
        a, b, c = self
        return Mat(Vec(a.x, b.x, c.x), Vec(a.y, b.y, c.y), Vec(a.z, b.z, c.z))

    def __add__(self, o: Mat) -> Mat:  # type: ignore[override]
        return Mat(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Mat) -> Mat:
        return Mat(self.x - o.x, self.y - o.y, self.z - o.z)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def mul(self, o: Mat) -> Mat:
        """Matrix product."""
        t = o.T
        return Mat(*(Vec(r.dot(t.x), r.dot(t.y), r.dot(t.z)) for r in self))


def outer(a: Vec, b: Vec) -> Mat:
    """a b^T."""
    return Mat(b * a.x, b * a.y, b * a.z)


EYE = Mat(*UNIT_VECS)


def skew(v: Vec) -> Mat:
    """[v]x, so that [v]x w = v x w."""
    return Mat(Vec(0.0, -v.z, v.y), Vec(v.z, 0.0, -v.x), Vec(-v.y, v.x, 0.0))


def rotate(k: int, s: Scalar, c: Scalar, v: Vec) -> Vec:
    """Rotation of v about coordinate axis k by the angle with sine s and cosine c: 4 products, 2 sums."""
    i, j = (k + 1) % 3, (k + 2) % 3
    out = list(v)
    out[i] = c * v[i] - s * v[j]
    out[j] = s * v[i] + c * v[j]
    return Vec(*out)


class Sym(NamedTuple):
    """A symmetric 3x3 matrix."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    @classmethod
    def of(cls, m: Mat) -> Sym:
        return cls(m.x.x, m.x.y, m.x.z, m.y.y, m.y.z, m.z.z)

    @property
    def mat(self) -> Mat:
        return Mat(Vec(self.xx, self.xy, self.xz), Vec(self.xy, self.yy, self.yz), Vec(self.xz, self.yz, self.zz))

    def __add__(self, o: Sym) -> Sym:  # type: ignore[override]
        return Sym(*(a + b for a, b in zip(self, o)))

    def __sub__(self, o: Sym) -> Sym:
        return Sym(*(a - b for a, b in zip(self, o)))

    def __matmul__(self, v: Vec) -> Vec:
        return self.mat @ v

    @property
    def trace(self) -> Scalar:
        return self.xx + self.yy + self.zz

    def turned(self) -> Sym:
        """tr(S) 1 - S: from second moments to rotational inertia."""
        return Sym(self.yy + self.zz, -self.xy, -self.xz, self.xx + self.zz, -self.yz, self.xx + self.yy)


SYM_ZERO = Sym(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def congruence(r: Mat, s: Sym) -> Sym:
    """R S R^T, upper triangle."""
    rows = [s @ row for row in r]  # S r_i: rows of R S
    return Sym(
        r.x.dot(rows[0]), r.x.dot(rows[1]), r.x.dot(rows[2]), r.y.dot(rows[1]), r.y.dot(rows[2]), r.z.dot(rows[2])
    )


def rotated(k: int, s: Scalar, c: Scalar, S: Sym) -> Sym:
    """Q S Q^T about e_k with 8 products: kappa = s (S_xx - S_yy) + 2 c S_xy turns the block of x and y."""
    x, y = (k + 1) % 3, (k + 2) % 3
    m = [list(row) for row in S.mat]
    kappa = s * (m[x][x] - m[y][y]) + c * (m[x][y] + m[x][y])
    sigma = s * kappa
    side = rotate(k, s, c, Vec(*m[k]))
    m[x][x], m[y][y] = m[x][x] - sigma, m[y][y] + sigma
    m[x][y] = m[y][x] = c * kappa - m[x][y]
    for a in (x, y):
        m[a][k] = m[k][a] = side[a]
    return Sym.of(Mat.of(m))


def rotated_mat(k: int, s: Scalar, c: Scalar, B: Mat) -> Mat:
    """Q B Q^T about e_k with 12 products: the skew part of the block of x and y stays, kappa turns the rest."""
    x, y = (k + 1) % 3, (k + 2) % 3
    m = [list(row) for row in B]
    kappa = s * (m[x][x] - m[y][y]) + c * (m[x][y] + m[y][x])
    sigma, shared = s * kappa, c * kappa
    row, column = rotate(k, s, c, Vec(*m[k])), rotate(k, s, c, Vec(m[0][k], m[1][k], m[2][k]))
    m[x][x], m[y][y] = m[x][x] - sigma, m[y][y] + sigma
    m[x][y], m[y][x] = shared - m[y][x], shared - m[x][y]
    for a in (x, y):
        m[k][a], m[a][k] = row[a], column[a]
    return Mat.of(m)


def outer_sum(p: Vec, g: Vec) -> Sym:
    """p g^T + g p^T."""
    return Sym(
        2.0 * (p.x * g.x),
        p.x * g.y + p.y * g.x,
        p.x * g.z + p.z * g.x,
        2.0 * (p.y * g.y),
        p.y * g.z + p.z * g.y,
        2.0 * (p.z * g.z),
    )


class RigidInertia(NamedTuple):
    """Mass, first moment h = m c and second moments S = integral of r r^T dm, about a body frame's origin."""

    m: Scalar
    h: Vec
    S: Sym

    @property
    def J(self) -> Sym:
        """Rotational inertia about the origin."""
        return self.S.turned()

    def __add__(self, o: RigidInertia) -> RigidInertia:  # type: ignore[override]
        return RigidInertia(self.m + o.m, self.h + o.h, self.S + o.S)

    def moved(self, r: Mat, p: Vec) -> RigidInertia:
        """Transforms the inertia to a frame in which this one stands at (r, p)."""
        return self.turned(r).shifted(p)

    def turned(self, r: Mat) -> RigidInertia:
        return RigidInertia(self.m, r @ self.h, congruence(r, self.S))

    def shifted(self, p: Vec) -> RigidInertia:
        """S + p g^T + g p^T with g = h + m p / 2; spec fewest operations, section 7, step 3."""
        if p.zero:
            return self
        g = self.h + p * (0.5 * self.m)
        return RigidInertia(self.m, self.h + p * self.m, self.S + outer_sum(p, g))


ZERO_INERTIA = RigidInertia(0.0, ZERO, SYM_ZERO)


def inertia_of(mass: Scalar, com: Vec, tensor: Sym) -> RigidInertia:
    """From mass, centre of mass and inertia tensor about it."""
    half = 0.5 * tensor.trace
    central = Sym(half - tensor.xx, -tensor.xy, -tensor.xz, half - tensor.yy, -tensor.yz, half - tensor.zz)
    h = com * mass
    return RigidInertia(
        mass, h, central + Sym(com.x * h.x, com.x * h.y, com.x * h.z, com.y * h.y, com.y * h.z, com.z * h.z)
    )
