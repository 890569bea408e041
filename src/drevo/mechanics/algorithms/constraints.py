"""Constraints f(q, t) = 0: value, rate, Jacobian and bias, as rows over scalars.

f' = Gamma v + f_t and f'' = Gamma a + gamma, Zaremba (2.18); gamma = Gamma' v + (f_t)' with both total
derivatives. Columns are those of the tangent space, vectors in world axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...model.rotations import plane_axes
from ..jet import Jet, jet, jet_along
from ..joints import NO_MOTION, Motion, Placement
from ..scalar import Context, Matrix, Scalar, Vector, sqrt
from ..spatial import EYE, ZERO, Mat, Vec
from ..tree import Tree
from ..tree_indices import ancestors
from .explicit import Explicit
from .kinematics import WORLD_POSE, Pose, pose, step_acceleration, step_velocity

MatrixRow = list[Scalar]


class ConstraintRows(NamedTuple):
    """f, f', Gamma and gamma of a few rows."""

    value: MatrixRow
    rate: MatrixRow
    jacobian: list[MatrixRow]
    bias: MatrixRow

    def __add__(self, o: ConstraintRows) -> ConstraintRows:  # type: ignore[override]
        return ConstraintRows(*(mine + theirs for mine, theirs in zip(self, o)))


NO_ROWS = ConstraintRows([], [], [], [])


class Track(NamedTuple):
    """A vector that depends on q: itself, its rate, its second derivative at a = 0, and d rate / d v."""

    x: Vec
    d: Vec
    dd: Vec
    columns: list[Vec]

    def __sub__(self, o: Track) -> Track:
        columns = [a - b for a, b in zip(self.columns, o.columns)]
        return Track(self.x - o.x, self.d - o.d, self.dd - o.dd, columns)

    def dot(self, o: Track) -> ConstraintRows:
        """The scalar product with another vector as a row."""
        columns = [a.dot(o.x) + self.x.dot(b) for a, b in zip(self.columns, o.columns)]
        rate = self.d.dot(o.x) + self.x.dot(o.d)
        bias = self.dd.dot(o.x) + 2.0 * self.d.dot(o.d) + self.x.dot(o.dd)
        return ConstraintRows([self.x.dot(o.x)], [rate], [columns], [bias])

    def rows(self) -> ConstraintRows:
        """The vector's three components as rows."""
        return ConstraintRows(list(self.x), list(self.d), [list(r) for r in zip(*self.columns)], list(self.dd))


class Kinematics:
    """Poses, velocities and accelerations of the bodies at one state, shared by all rows; of bias unless a is
    given."""

    def __init__(self, tree: Tree, q: Vector, v: Vector, a: Vector | None = None) -> None:
        self.tree, self.q, self.v, self.a = tree, q, v, a
        self.parents = tree.parents
        self.explicit = Explicit(tree, q) if tree.formulas else None
        X, rates, rates2 = self._joints()
        still = NO_MOTION
        self.poses: list[Pose] = []
        self.velocity: list[Motion] = []
        self.acceleration: list[Motion] = []
        for i, b in enumerate(tree.bodies):
            p = b.parent
            m, a = (self.velocity[p], self.acceleration[p]) if p >= 0 else (still, still)
            self.poses.append((self.poses[p] if p >= 0 else WORLD_POSE).then(X[i]))
            self.velocity.append(step_velocity(X[i], m, rates[i]))
            self.acceleration.append(step_acceleration(X[i], m, a, rates[i], rates2[i]))

    def _joints(self) -> tuple[list[Placement], list[Motion], list[Motion]]:
        """Placements, rates and the rates of the rates."""
        tree, e = self.tree, self.explicit
        if e is None:
            rates2 = tree.rates(self.a) if self.a is not None else [NO_MOTION] * len(tree)
            return tree.placements(self.q), tree.rates(self.v), rates2
        bias = e.accelerations(self.v, [0.0] * tree.nv if self.a is None else self.a)
        return e.tree.placements(e.expanded_q), e.tree.rates(e.rates(self.v)), e.tree.rates(bias)

    def pose(self, link: str) -> Pose:
        at = self.tree.frames[link]
        return (self.poses[at.body] if at.body >= 0 else WORLD_POSE).compose(at.R, at.p)

    def point(self, link: str, r: Vector) -> Track:
        """A point fixed in a link: position, velocity, bias acceleration."""
        i = self.tree.frames[link].body
        here = self.pose(link)
        x = here.p + here.R @ Vec(*r)
        if i < 0:
            return Track(x, ZERO, ZERO, [ZERO] * self.tree.nv)
        at, m, a = self.poses[i], self.velocity[i], self.acceleration[i]
        arm = self.tree.frames[link].p + self.tree.frames[link].R @ Vec(*r)
        dd = a.v + a.w.cross(arm) + m.w.cross(m.w.cross(arm))
        columns = self._columns(i, lambda pose, s: pose.R @ s.v + (pose.R @ s.w).cross(x - pose.p))
        return Track(x, at.R @ (m.v + m.w.cross(arm)), at.R @ dd, columns)

    def direction(self, link: str, axis: Vector) -> Track:
        """A direction fixed in a link."""
        return self.point(link, axis) - self.point(link, ZERO)

    def turning(self, link: str) -> Track:
        """Angular velocity of a link as the rate of a track; the orientation itself is no vector."""
        i = self.tree.frames[link].body
        if i < 0:
            return Track(ZERO, ZERO, ZERO, [ZERO] * self.tree.nv)
        R = self.poses[i].R
        columns = self._columns(i, lambda pose, s: pose.R @ s.w)
        return Track(ZERO, R @ self.velocity[i].w, R @ self.acceleration[i].w, columns)

    def _columns(self, body: int, column: Callable[[Pose, Motion], Vec]) -> list[Vec]:
        e = self.explicit
        out = [ZERO] * (e.tree if e else self.tree).nv
        for i in ancestors(self.parents, body):
            b = self.tree.bodies[i]
            for k, s in enumerate(self.tree.motion_subspace(b)):
                out[b.v + k] = out[b.v + k] + column(self.poses[i], s) * b.factor
        return [Vec(*x) for x in zip(*map(e.fold, zip(*out)))] if e else out


def contact(
    k: Kinematics, link: str, point: Vector, rows: int, anchor: Vector | None, rotation: Mat | None
) -> ConstraintRows:
    """Three rows: velocity of the point; six: and angular velocity. Without an anchor f is taken as met."""
    track = k.point(link, point)
    place = track.x - Vec(*anchor) if anchor is not None else ZERO
    out = track._replace(x=place).rows()
    if rows == 3:
        return out
    turn = k.turning(link)
    error = rotation_error(k.pose(link).R, rotation, EYE) if rotation is not None else ZERO
    return out + turn._replace(x=error).rows()


def point_on_plane(
    k: Kinematics,
    t: Scalar,
    link: str,
    point: Vector,
    normal: tuple[Vec, Vec],
    offset: tuple[Scalar, Scalar, Scalar],
) -> ConstraintRows:
    """f = (n0 + n1 t) . p - (d0 + d1 t + d2 t^2 / 2); gamma has both f_tq v = n1 . p' terms."""
    track = k.point(link, point)
    (n0, n1), (d0, d1, d2) = normal, offset
    n = n0 + n1 * t
    value = n.dot(track.x) - (d0 + d1 * t + 0.5 * d2 * (t * t))
    rate = n.dot(track.d) + n1.dot(track.x) - (d1 + d2 * t)
    bias = n.dot(track.dd) + 2.0 * n1.dot(track.d) - d2
    return ConstraintRows([value], [rate], [[n.dot(c) for c in track.columns]], [bias])


def point_to_point(
    k: Kinematics, link_a: str, point_a: Vector, link_b: str, point_b: Vector, W: Sequence[Vector] | None
) -> ConstraintRows:
    """f = W (r_a - r_b)."""
    rows = (k.point(link_a, point_a) - k.point(link_b, point_b)).rows()
    return rows if W is None else weighted_rows(W, rows)


def weighted_rows(W: Sequence[Vector], rows: ConstraintRows) -> ConstraintRows:
    """W times rows."""

    def times(w: Vector, x: Vector) -> Scalar:
        total: Scalar = 0.0
        for a, b in zip(w, x):
            total = total + a * b
        return total

    columns = list(zip(*rows.jacobian))
    jacobian = [[times(w, c) for c in columns] for w in W]
    vectors = ([times(w, x) for w in W] for x in (rows.value, rows.rate, rows.bias))
    value, rate, bias = vectors
    return ConstraintRows(value, rate, jacobian, bias)


def weld(
    k: Kinematics, link_a: str, point_a: Vector, link_b: str, point_b: Vector, rotation: Mat | None
) -> ConstraintRows:
    """r_a - r_b, then omega_a - omega_b."""
    return point_to_point(k, link_a, point_a, link_b, point_b, None) + _turned_alike(k, link_a, link_b, rotation)


def _turned_alike(k: Kinematics, link_a: str, link_b: str, rotation: Mat | None) -> ConstraintRows:
    turn = k.turning(link_a) - k.turning(link_b)
    error = ZERO if rotation is None else rotation_error(k.pose(link_a).R, k.pose(link_b).R, rotation)
    return turn._replace(x=error).rows()


def joint_closure(
    k: Kinematics,
    kind: str,
    ends: tuple[tuple[str, Vector, Vector], tuple[str, Vector, Vector]],
    rotation: Mat | None,
) -> ConstraintRows:
    """Constraint rows of a joint between two ends (link, point, axis): the quantities that it holds.

    universal: r_a - r_b, and the angle between the axes, which `rotation` says or is a right one; revolute:
    r_a - r_b, and the axis of b across that of a; prismatic: r_b - r_a across the axis of a, and no turning;
    cylindrical: both across.
    """
    (link_a, point_a, axis_a), (link_b, point_b, axis_b) = ends
    apart = k.point(link_a, point_a) - k.point(link_b, point_b)
    if kind == "universal":
        cosine = Vec(*axis_a).dot(rotation @ Vec(*axis_b)) if rotation else 0.0
        (value,), *rest = k.direction(link_a, axis_a).dot(k.direction(link_b, axis_b))
        return apart.rows() + ConstraintRows([value - cosine], *rest)
    x, y, z = axis_a
    across = [k.direction(link_a, e) for e in plane_axes((x, y, z))]
    placed = apart.rows() if kind == "revolute" else across[0].dot(apart) + across[1].dot(apart)
    if kind == "prismatic":
        return placed + _turned_alike(k, link_a, link_b, rotation)
    axis = k.direction(link_b, axis_b)
    return placed + across[0].dot(axis) + across[1].dot(axis)


def orientation(tree: Tree, q: Vector, link_a: str, link_b: str) -> Mat:
    """The axes of b in those of a at a configuration."""
    Ra, Rb = (Mat.of(row[:3] for row in pose(_silent(tree), q, link)[:3]) for link in (link_a, link_b))
    return Ra.T.mul(Rb)


def rotation_error(Ra: Mat, Rb: Mat, rotation: Mat) -> Vec:
    """2 n tan(angle / 2) of R_a R_ab R_b^T: to second order the turn whose rate is omega_a - omega_b.

    Its sine would vanish at half a turn too, and a loop close the wrong way round.
    """
    E = Ra.mul(rotation).mul(Rb.T)
    turn: Vec = skew_part(E) * (4.0 / (1.0 + E.x.x + E.y.y + E.z.z))
    return turn


PoseProgram = Callable[[Scalar], Sequence[Vector]]  # time -> 4x4 pose


def pose_tracking(k: Kinematics, t: Scalar, link: str, point: Vector, program: PoseProgram) -> ConstraintRows:
    """A frame of a link follows p(t), R(t) at the level of the twist, not of six parameters (Z21).

    p' - p_t, then omega - vee(R_t' R_t^T); gamma from their rates. The value is the gap that feedback closes.
    """
    T = [[jet(x) for x in row] for row in program(Jet(t, 1.0))][:3]
    R, dR, ddR = (Mat.of([getattr(x, d) for x in row[:3]] for row in T) for d in ("x", "d", "dd"))
    p, dp, ddp = (Vec(*(getattr(row[3], d) for row in T)) for d in ("x", "d", "dd"))
    place, turn = k.point(link, point), k.turning(link)
    place = place._replace(x=place.x - p, d=place.d - dp, dd=place.dd - ddp)
    w, e = skew_part(dR.mul(R.T)), skew_part(ddR.mul(R.T))  # R'' R^T = [e]x + [w]x [w]x
    error = rotation_error(k.pose(link).R, R, EYE)
    return place.rows() + Track(error, turn.d - w, turn.dd - e, turn.columns).rows()


def skew_part(E: Mat) -> Vec:
    """The vector of (E - E^T) / 2."""
    return Vec(E.z.y - E.y.z, E.x.z - E.z.x, E.y.x - E.x.y) * 0.5


def distance(
    k: Kinematics, link_a: str, point_a: Vector, link_b: str, point_b: Vector, length: Scalar
) -> ConstraintRows:
    """f = |r_a - r_b| - length; N is the force that pushes the points apart."""
    r = k.point(link_a, point_a) - k.point(link_b, point_b)
    size = sqrt(r.x.dot(r.x))
    n = r.x * (1.0 / size)
    along_n = n.dot(r.d)
    bias = n.dot(r.dd) + (r.d.dot(r.d) - along_n * along_n) / size
    return ConstraintRows([size - length], [along_n], [[n.dot(c) for c in r.columns]], [bias])


def gear(
    k: Kinematics, joint_a: str, joint_b: str, ratio: Scalar, offset: Scalar, higher: Sequence[Scalar] = ()
) -> ConstraintRows:
    """f = q_a - offset - ratio q_b - higher[0] q_b^2 - .., for joints of one freedom; q_a - offset without b."""
    a, b = (next((x for x in k.tree.owners() if x.joint == name), None) for name in (joint_a, joint_b))
    assert a is not None  # the names were checked
    jacobian: MatrixRow = [0.0] * k.tree.nv
    jacobian[a.v] = 1.0
    if b is None:
        return ConstraintRows([k.q[a.q] - offset], [k.v[a.v]], [jacobian], [0.0])
    x, slope, curvature = k.q[b.q], ratio, 0.0
    value, power = k.q[a.q] - ratio * x - offset, 1.0  # power: x^n
    for n, c in enumerate(higher):
        curvature = curvature + (n + 2) * (n + 1) * c * power
        power = power * x
        slope = slope + (n + 2) * c * power
        value = value - c * power * x
    jacobian[b.v] = -slope
    return ConstraintRows([value], [k.v[a.v] - slope * k.v[b.v]], [jacobian], [-curvature * (k.v[b.v] * k.v[b.v])])


ConstraintFunction = Callable[[Callable[[str], Matrix], Vector, Scalar], Vector]


def function(k: Kinematics, t: Scalar, f: ConstraintFunction) -> ConstraintRows:
    """Rows of f(pose, q, t), differentiated along v for f' and gamma and along every column for Gamma."""
    path = [jet(x) for x in _followed(k, k.v, Jet(t, 1.0), f)]
    unit = [[1.0 if i == c else 0.0 for i in range(k.tree.nv)] for c in range(k.tree.nv)]
    columns = [[jet(x).d for x in _followed(k, e, Jet(t), f)] for e in unit]
    jacobian = [[column[r] for column in columns] for r in range(len(path))]
    return ConstraintRows([x.x for x in path], [x.d for x in path], jacobian, [x.dd for x in path])


def _followed(k: Kinematics, v: Vector, t: Jet, f: ConstraintFunction) -> Vector:
    """f on the path that leaves q with constant rates v."""
    q: list[Scalar] = list(k.q)
    for b in k.tree.owners():
        q[b.q : b.q + b.nq] = jet_along(k.q[b.q : b.q + b.nq], b.kind, v[b.v : b.v + b.nv])
    silent = _silent(k.tree)
    return f(lambda link: pose(silent, q, link), q, t)


def _silent(tree: Tree) -> Tree:
    """A copy of the tree without names and sections of a derivation."""
    return tree.replace(context=Context())
