"""Delassus matrix G: velocities at contacts and in joints by the impulses lam there, u = G lam + b.

    v+ = vf + M^-1 J' lam,   vf = v + h M^-1 (tau + p - bias),   G = J M^-1 J',   b = J vf + closing speeds

with M that of the robot and h times its linear damping, so that dampers act at the step's end. With M = L' D L and
Y = J L^-1 it is G = Y D^-1 Y': every row is solved half, over the branch it touches, and of many points of a foot
the six of its motion. Delassus 1917; Moreau 1988, "Unilateral contact and dry friction in finite freedom
dynamics"; Jean 1999.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from ..manifold import RotationVector, multiply
from ..rotation import angle_and_axis, from_quaternion
from ..scalar import Matrix, Scalar, Vector, accumulate, dot, is_zero, maximum, minimum, sqrt, where
from ..spatial import UNIT_VECS, Vec
from ..tree import Tree
from ..tree_indices import ancestors
from .boxes import Proximity
from .coulomb import Carriers, ContactLaw, ImpulseProblem, JointLaw, RowLaw
from .inertia_matrix import Factors, SparseRows, elimination_order, guard_pivots, mass_matrix_rows
from .inverse_dynamics import inverse_dynamics
from .kinematics import Poses, placed_bodies
from .passive import passive

MIN_SHARED_PLACES = 3  # places of two bodies, from which on their motion has fewer rows than they


class ContactSlot(NamedTuple):
    """A place where bodies a and b (-1 the ground) may touch. touch: from the poses of all bodies. mu: the
    coefficient of friction, or what gives it at x, y. by: geoms that decide it, with that of each."""

    bodies: tuple[int, int]
    touch: Callable[..., Proximity]
    mu: Scalar | Callable[[Scalar, Scalar], Scalar]
    by: tuple[tuple[str, float], ...] = ()

    def law(self, at: int, a: Proximity) -> ContactLaw:
        """The contact law of the rows from `at` on, with the friction at the point of contact."""
        return ContactLaw(at, self.mu(a.point.x, a.point.y) if callable(self.mu) else self.mu)


class JointBounds(NamedTuple):
    """A rate with bounds of its coordinate, or dry friction, N m or N; ball: three rates and the quaternion from q
    on, whose angle is bounded. axis: of the world, along which a free joint rubs whose rates and q begin there."""

    rate: int
    q: int
    lower: float
    upper: float
    friction: Scalar
    ball: bool = False
    axis: int | None = None

    def coordinate(self, q: Vector) -> tuple[Scalar, dict[int, Scalar]]:
        """The bounded coordinate, and its time derivative by rates: {rate: factor}."""
        if self.axis is not None:
            R = from_quaternion(*q[self.q + 3 : self.q + 7])
            return q[self.q + self.axis], {self.rate + i: R[self.axis][i] for i in range(3)}
        if not self.ball:
            return q[self.q], {self.rate: 1.0}
        angle, axis = angle_and_axis(q[self.q : self.q + 4])
        return angle, {self.rate + k: x for k, x in enumerate(axis)}


@dataclass(frozen=True)
class MoreauStep:
    """h: the step, s. restitution: of normal velocities. A penetration beyond `slop` (m) goes by the part `pull` a
    step, where nothing bounces, but not faster than `recovery` (m/s): it moves bodies, and leaves no velocity."""

    h: Scalar
    restitution: Scalar = 0.0
    pull: float = 0.2
    slop: float = 1e-4
    recovery: float = 1.0

    @property
    def splits(self) -> bool:
        """True where velocities after a step lack what takes penetrations back, as they do without bounces."""
        return bool(self.restitution == 0.0)


class FreeMotion(NamedTuple):
    """The velocities of a step without impulses, and what impulses change of them.

    rows: Y = J L^-1, over the order of elimination. touches: of the slots. bounds: of joints that have no row how
    rates change what is bounded, and between which speeds it may.
    """

    problem: ImpulseProblem
    vf: list[Scalar]
    factors: Factors
    rows: Matrix
    touches: list[Proximity]
    bounds: list[tuple[dict[int, Scalar], Scalar, Scalar]]

    def pushed(self, lam: Vector) -> list[Scalar]:
        """v+ = vf + M^-1 J' lam."""
        y = [dot(column, lam) for column in zip(*self.rows)] if self.rows else [0.0 * x for x in self.vf]
        return [a + b for a, b in zip(self.vf, self.factors.solve_lower(y))]


def free_motion(
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    slots: Sequence[ContactSlot],
    joints: Sequence[JointBounds],
    s: MoreauStep,
    checked: Sequence[JointBounds] = (),
) -> FreeMotion:
    """The problem of a step. checked: joints whose bounds have no rows, but are told."""
    poses = placed_bodies(tree, q)
    f = _damped_factors(tree, q, s.h)
    force = [t - x + p for t, x, p in zip(tau, fixed_axes_bias(tree, q, v), without_friction(tree, q, v))]
    half = f.solve_transposed([s.h * x for x in force])
    vf = [a + b for a, b in zip(v, f.solve_lower(half))]
    touches = [x.touch(poses) for x in slots]
    J, P = carried_rows(tree, poses, slots, touches)
    for x in joints:
        row = x.coordinate(q)[1]
        P.append({len(J): 1.0})
        J.append([row.get(k, 0.0) for k in range(tree.nv)])
    G, Y, S = _delassus(f, J, P)
    before, b = ([_along(row, u) for row in P] for u in ([dot(row, x) for row in J] for x in (v, vf)))
    laws, push = list[RowLaw](), dict[int, Scalar]()
    for slot, a in zip(slots, touches):
        at = 3 * len(laws)
        closing = closing_speed(a.dist, before[at], s)
        b[at], push[at] = b[at] + closing, maximum(-closing, 0.0)
        b[at : at + 3] = a.slipping(b[at : at + 3])
        laws.append(slot.law(at, a))
    laws += [joint_law(x, 3 * len(slots) + k, q, v, s) for k, x in enumerate(joints)]
    told = [(x.coordinate(q)[1], joint_law(x, 0, q, v, s)) for x in checked]
    bounds = [(row, law.lower, law.upper) for row, law in told]
    return FreeMotion(ImpulseProblem(G, b, laws, Carriers(P, S), push=push), vf, f, Y, touches, bounds)


def impact_problem(
    tree: Tree, q: Vector, v: Vector, slots: Sequence[ContactSlot], restitution: Scalar
) -> FreeMotion:
    """The impulse problem of an impact: impulses at slots that close change v at once."""
    poses = placed_bodies(tree, q)
    f, touches = _damped_factors(tree, q, 0.0), [x.touch(poses) for x in slots]
    J, P = carried_rows(tree, poses, slots, touches)
    G, Y, S = _delassus(f, J, P)
    b = [_along(row, [dot(x, v) for x in J]) for row in P]
    for k, a in zip(range(0, len(b), 3), touches):
        b[k] = b[k] + restitution * minimum(b[k], 0.0)
        b[k : k + 3] = a.slipping(b[k : k + 3])
    laws = [x.law(3 * k, a) for k, (x, a) in enumerate(zip(slots, touches))]
    return FreeMotion(ImpulseProblem(G, b, laws, Carriers(P, S)), list(v), f, Y, touches, [])


RowSums = list[dict[int, Scalar]]  # of rows: of which carried rows they are sums


def _delassus(f: Factors, J: Matrix, P: RowSums) -> tuple[Matrix, Matrix, Matrix]:
    """G = P S P', P Y and S = Y D^-1 Y' of Y = J L^-1."""
    Y = [f.solve_transposed(row) for row in J]
    weighed = [[y * e for y, e in zip(row, f.inverse)] for row in Y]
    S = _symmetric([[dot(weighed[i], Y[j]) for j in range(i + 1)] for i in range(len(Y))])
    PS = [[_along(row, column) for column in S] for row in P]
    G = _symmetric([[_along(P[j], PS[i]) for j in range(i + 1)] for i in range(len(P))])
    return G, [[_along(row, column) for column in zip(*Y)] for row in P], S


def _symmetric(lower: Matrix) -> Matrix:
    """The whole matrix from its lower triangle."""
    n = range(len(lower))
    return [[lower[max(i, j)][min(i, j)] for j in n] for i in n]


def _along(row: Mapping[int, Scalar], x: Vector) -> Scalar:
    """The dot product of a sparse row with a dense vector x, over what carries the row."""
    return dot(list(row.values()), [x[k] for k in row])


def damped_mass_matrix(tree: Tree, q: Vector, h: Scalar) -> SparseRows:
    """The mass matrix of the robot plus h times its linear damping."""
    M = mass_matrix_rows(tree, q)
    for a in tree.acting:
        for k in range(a.v, a.v + a.n):
            accumulate(M[k], k, h * (a.ratio * a.ratio * a.damping))
    return M


def _damped_factors(tree: Tree, q: Vector, h: Scalar) -> Factors:
    f = Factors(damped_mass_matrix(tree, q, h), elimination_order(tree))
    guard_pivots(tree, f, f.order, f.diagonal, [0.0] * len(f.order))
    return f


def fixed_axes_bias(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """The bias, efforts less M a, where the rates of a free joint's origin are along axes that stand still.

    So a step changes the velocity of the body, and its turning alone the axes: see `moved`. Rotors feel M a only.
    """
    return inverse_dynamics(tree.replace(armature={}), q, v, [-x for x in _carried(tree, v)])


def _carried(tree: Tree, v: Vector) -> list[Scalar]:
    """w x v of free joints: what accelerations in their axes lack to be those along fixed ones."""
    out: list[Scalar] = [0.0] * tree.nv
    for o in tree.owners():
        if o.kind == "free":
            out[o.v : o.v + 3] = Vec(*v[o.v + 3 : o.v + 6]).cross(Vec(*v[o.v : o.v + 3]))
    return out


def moved(tree: Tree, q: Vector, v: Vector, h: Scalar, kept: Vector) -> tuple[list[Scalar], list[Scalar]]:
    """q after a step at the rates v, and the rates `kept`, both of which are along the axes before it."""
    q1: list[Scalar] = [0.0] * tree.nq
    v1 = list(kept)
    for o in tree.owners():
        if o.nq == o.nv:
            for k in range(o.nq):
                q1[o.q + k] = q[o.q + k] + h * v[o.v + k]
            continue
        at, w = o.q + o.nq - 4, Vec(*v[o.v + o.nv - 3 : o.v + o.nv])
        q1[at : at + 4] = turned(q[at : at + 4], w * h)
        if o.kind == "free":
            R, linear = from_quaternion(*q[at : at + 4]), slice(o.v, o.v + 3)
            q1[o.q : o.q + 3] = Vec(*q[o.q : o.q + 3]) + R @ Vec(*v[linear]) * h
            v1[linear] = from_quaternion(*q1[at : at + 4]).T @ (R @ Vec(*kept[linear]))
    return q1, v1


def turned(x: Vector, w: Vec) -> list[Scalar]:
    """A quaternion turned by a rotation vector in its own axes, made unit."""
    new = multiply(x, RotationVector.of(w).quaternion)
    over = 1.0 / sqrt(dot(new, new))
    return [y * over for y in new]


def without_friction(tree: Tree, q: Vector, v: Vector) -> list[Scalar]:
    """Passive efforts in the joints, less their dry friction, which is a law."""
    return passive(tree.replace(acting=tuple(a._replace(friction=0.0) for a in tree.acting)), q, v)


def carried_rows(
    tree: Tree, poses: Poses, slots: Sequence[ContactSlot], touches: Sequence[Proximity]
) -> tuple[Matrix, RowSums]:
    """Rows J by v, and of which of them the velocities at the contacts are sums: those of the second body less the
    first at the point, along normal and tangents. Bodies that may touch at three places and more give the six of
    their motion."""
    J, P, carriers = list[list[Scalar]](), RowSums(), dict[tuple[int, int], int]()
    pairs = [x.bodies for x in slots]
    for bodies, a in zip(pairs, touches):
        if pairs.count(bodies) < MIN_SHARED_PLACES:
            P += [{len(J) + i: 1.0} for i in range(3)]
            J += contact_rows(tree, poses, bodies, a)
            continue
        centre = poses[max(bodies)].p
        if bodies not in carriers:
            carriers[bodies] = len(J)
            J += _relative(tree, poses, bodies, centre, UNIT_VECS)
        at = carriers[bodies]
        for axis in a.frame:
            parts = (*axis, *(a.point - centre).cross(axis))
            P.append({at + k: x for k, x in enumerate(parts) if not is_zero(x)})
    return J, P


def contact_rows(tree: Tree, poses: Poses, bodies: tuple[int, int], a: Proximity) -> Matrix:
    """The velocity of the second body less that of the first at the point, along normal and tangents, by v."""
    return _relative(tree, poses, bodies, a.point, a.frame)[:3]


def _relative(tree: Tree, poses: Poses, bodies: tuple[int, int], point: Vec, axes: Iterable[Vec]) -> Matrix:
    """Jacobian, along axes, of the second body's velocity at a point and angular velocity, seen from the first."""
    directions = tuple(axes)
    rows: Matrix = [[0.0] * tree.nv for _ in range(2 * len(directions))]
    for body, sign in zip(bodies, (-1.0, 1.0)):
        for i in ancestors(tree.parents, body):
            b, here = tree.bodies[i], poses[i]
            for k, column in enumerate(tree.motion_subspace(b), b.v):
                turns = here.R @ column.w
                moves = here.R @ column.v + turns.cross(point - here.p)
                parts = [axis.dot(x) for x in (moves, turns) for axis in directions]
                for row, x in zip(rows, parts):
                    row[k] = row[k] + (sign * b.factor) * x
    return rows


def closing_speed(gap: Scalar, before: Scalar, s: MoreauStep) -> Scalar:
    """Speed added to a normal velocity that is then not to be negative: the gap may close, a penetration goes.

    With restitution what would close its gap in this step at the speed that it has bounces.
    """
    opened = gap * (1.0 / s.h)
    if s.restitution == 0.0:
        gone = maximum(minimum(gap + s.slop, 0.0) * (s.pull * (1.0 / s.h)), -s.recovery)
        return where(gap > 0.0, opened, gone)
    approach = minimum(before, 0.0)
    return where(gap + s.h * approach > 0.0, opened, s.restitution * approach)


def joint_law(x: JointBounds, at: int, q: Vector, v: Vector, s: MoreauStep) -> JointLaw:
    """Bounds of the velocity, from those of the coordinate."""
    here, row = x.coordinate(q)
    speed = dot(list(row.values()), [v[k] for k in row])
    lower = -closing_speed(here - x.lower, speed, s) if x.lower > -inf else x.lower
    upper = closing_speed(x.upper - here, -speed, s) if x.upper < inf else x.upper
    return JointLaw(at, s.h * x.friction, lower, maximum(lower, upper) if x.lower > -inf else upper)
