"""Motion of, and load in, an arbitrary section of a link: the backward sweep of Zaremba's program package.

The piece beyond a section, of pseudo-inertia P, moves with the link: the acceleration of its point x is
b + B x with B = [eps]x + [omega]x [omega]x and b = a_O - g, all in link axes. With Y = [B b] P,

    force = integral (b + B x) dm = the last column of Y,   moment = integral x x (b + B x) dm = vee(Y - Y^T),

which is Theta V* + <V> Theta V - F_g about the link's origin. To it come the wrenches that the joints beyond the
section hand on, and the forces from outside are taken off. What remains is what the inboard piece exerts on the
outboard one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..constraint.solve import matvec
from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import NumericsError, warn_caller
from ..io.given import Array, finite, within_reach
from ..io.reprs import result
from ..mechanics.configuration import state
from ..model.description import Model
from ..model.draft import expect_robot, listed
from ..robot.compiling import compile
from ..robot.face import Robot
from .external import AppliedWrench, GivenForces, Surroundings
from .masses import Distribution, GivenDistribution, distribution, named, pseudo_inertia
from .span import PARALLEL_AXIS, Span, chosen, spread
from .stresses import Profile, Stresses, cross_matrix, stresses_of

Spanned = Span | Sequence[ArrayLike] | None
MAX_ACCELERATION = 1e150  # m/s^2 or rad/s^2, whose products with what a link may weigh are numbers
COMPONENTS = ("axial", "shear_y", "shear_z", "torsion", "bending_y", "bending_z")


@result
class SectionMotion:
    """Motion of a section's centre and axes: pose (..., 4, 4) world from section; velocity and classical
    acceleration (..., 6), linear first, world axes, gravity not in."""

    pose: Array
    velocity: Array
    acceleration: Array


@result
class SectionLoads(Pictured):
    """The wrench of the inboard piece on the outboard one at each section, (..., k, 6) N and N m, in section axes:
    axial force along x (negative is tension), shear forces along y and z, torsion about x, bending about y and z.

    static: what the same configuration carries at rest (gravity, f_ext, reactions). dynamic: total less static.
    """

    link: str
    s: Array
    span: Span
    distribution: Distribution
    total: Array
    static: Array

    @property
    def dynamic(self) -> Array:
        """The part that motion adds."""
        return np.asarray(self.total - self.static)

    def stresses(self, profile: Profile | str) -> Stresses:
        """Stresses by the loads in a link of a profile, such as `Profile.tube(0.08, 0.07)` or "tube:0.08,0.07"."""
        return stresses_of(self.link, self.s, self.total, profile)

    def figure(self) -> Figure:
        """Six panels over the link: what is carried at rest and in motion; of a batch the band of all."""
        panels = []
        for i, name in enumerate(COMPONENTS):
            rows = {
                part: x[..., i].reshape(-1, len(self.s))
                for part, x in (("total", self.total), ("static", self.static))
            }
            curves = [Curve(w, self.s, x.min(0), x.max(0) if len(x) > 1 else None) for w, x in rows.items()]
            unit = "N" if i < 3 else "N m"
            panels.append(Panel(f"{name.replace('_', ' ')}, {unit}", curves, unit=unit))
        return Figure(f"{self.link}: loads in its sections", panels, across=3, abscissa="s, m")


def section_motion(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    link: str,
    s: float,
    span: Spanned = None,
    distribution: GivenDistribution = "auto",
) -> SectionMotion:
    """Position, orientation, velocity and acceleration of the section s metres along a link's span.

    (1.9) with a = C (v* + omega x v + eps x c + omega x (omega x c)): the section's centre c, classical.
    """
    q, v, a = _states(robot, q, v, a)
    if pulling := [tendon.name for tendon in robot.model.tendons if tendon.segments and tendon.pulls]:
        without = f"loads in sections are without the pull of the tendons {listed(pulling)} on the links"
        warn_caller(without)
    cut = cut_link(robot.model, link, [s], span, distribution)
    T, V, A = _motion(robot, link)(q, v, a)
    R, c = T[..., :3, :3], cut.span.points(cut.s)[0]
    w, eps = V[..., 3:], A[..., 3:]
    pose = np.zeros((*q.shape[:-1], 4, 4))
    pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = R @ cut.span.rotation, T[..., :3, 3] + R @ c, 1.0
    with np.errstate(all="ignore"):
        arm = np.cross(w, c)
        velocity = (V[..., :3] + arm, w)
        acceleration = (A[..., :3] + np.cross(eps, c) + np.cross(w, arm), eps)
        turned = [np.concatenate([matvec(R, x) for x in parts], axis=-1) for parts in (velocity, acceleration)]
    return SectionMotion(pose, *(within_reach("section_motion", x, q=q, v=v, a=a) for x in turned))


def section_loads(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    link: str,
    s: ArrayLike,
    *,
    span: Spanned = None,
    distribution: GivenDistribution = "auto",
    f_ext: GivenForces = None,
    entry: ArrayLike | None = None,
    contacts: Contacts = None,
    constraints: Sequence[Constraint] | None = None,
    actuated: Sequence[str] | None = None,
    t: ArrayLike = 0.0,
) -> SectionLoads:
    """The static and dynamic load in sections of a link; q (..., nq), v, a (..., nv), s metres along its span.

    span: where the link is cut (`Span.between`, or two points in link axes), by default `drevo.loads.span_of`.
    distribution: where its mass is, see `drevo.loads.distribution`. f_ext: a list of `AppliedForce`, which say
    where they act; or {link: (..., 6)} force and moment on a link at its origin, world axes, which enters this
    link at `entry` (link axes), by default where its line of action passes the span; couples, and forces along the
    span, at its end. contacts, constraints, actuated, t: as constrained_inverse_dynamics; reactions act where they
    do.
    A child's joint, or a point mass, that lies in a section counts as outboard. Springs and dampers in joints turn
    links as drives do; the pull of spatial tendons on links is not in, and is warned about.
    Raises InputError (unknown link, a section outside it, no distribution), NumericsError.
    """
    q, v, a = _states(robot, q, v, a)
    cut = cut_link(robot.model, link, s, span, distribution)
    around = Surroundings(f_ext, contacts, constraints, actuated)
    place = None if entry is None else finite("entry", entry, (3,))
    total = _sweep(robot, q, v, a, cut, around.wrenches(robot, q, v, a, t), place)
    still = np.zeros_like(v)
    static = _sweep(robot, q, still, still, cut, around.wrenches(robot, q, still, still, t), place)
    return SectionLoads(link, cut.s, cut.span, cut.mass, total, static)


def inertial_loads(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> dict[str, Array]:
    """Link -> (..., 6): the inertial force -m a_c and moment -(J eps + omega x J omega) of every body with mass,
    at its centre of mass, world axes; gravity not in."""
    q, v, a = _states(robot, q, v, a)
    out = {}
    for link in robot.model.links:
        P = pseudo_inertia(link.inertial)
        if P.any():
            body = _Body.of(robot, q, v, a, link.name)
            f, n = _carried(body.moving(gravity=False), P[None])
            f, n = -f[..., 0, :], -n[..., 0, :]
            n = n - np.cross(P[:3, 3] / (P[3, 3] or 1.0), f)
            out[link.name] = np.concatenate([matvec(body.R, f), matvec(body.R, n)], axis=-1)
    return out


# -- the sweep ------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A link and its sections. parts: pseudo-inertia (k, 4, 4) of what the link has beyond each; less all of it
    before the parent's joint, where the load is minus that of the piece behind."""

    link: str
    span: Span
    mass: Distribution
    s: Array
    parts: Array

    def beyond(self, at: Array) -> Array:
        """The factor (..., k), 1, 0 or -1, by which what is at (...,) m along the span counts for each section."""
        edge = 1e-9 * (self.span.length + self.span.back)
        return np.asarray((at[..., None] >= self.s - edge).astype(float) - (self.s < self.span.held))


def cut_link(model: Model, link: str, s: ArrayLike, span: Spanned, given: GivenDistribution) -> Cut:
    """The sections of a link, ready for any state; s: where, or how many."""
    mass = distribution(model, link, given)
    line = chosen(model, link, mass, span)
    at = line.sections(link, spread(model, link, line, s) if isinstance(s, int) else s)
    parts = mass.beyond(line.direction, line.start @ line.direction + at)
    whole = pseudo_inertia(named(model, link).inertial)
    return Cut(link, line, mass, at, np.where((at < line.held)[:, None, None], parts - whole, parts))


@dataclass(frozen=True, eq=False)
class _Body:
    """Motion of a link: pose R, p; angular velocity, angular and classical linear acceleration in link axes."""

    R: Array
    p: Array
    w: Array
    eps: Array
    linear: Array
    gravity: Array

    @staticmethod
    def of(robot: Robot, q: Array, v: Array, a: Array, link: str) -> _Body:
        T, V, A = _motion(robot, link)(q, v, a)
        return _Body(
            T[..., :3, :3], T[..., :3, 3], V[..., 3:], A[..., 3:], A[..., :3], np.array(robot.model.gravity)
        )

    def moving(self, gravity: bool = True) -> Array:
        """[B b], (..., 3, 4): the acceleration b + B x of a point x, less gravity."""
        out = np.empty((*self.w.shape[:-1], 3, 4))
        W = cross_matrix(self.w)
        with np.errstate(over="ignore", invalid="ignore"):
            out[..., :3] = cross_matrix(self.eps) + W @ W
        out[..., 3] = self.linear - (_back(self.R, self.gravity) if gravity else 0.0)
        if not (np.abs(out) < MAX_ACCELERATION).all():
            raise NumericsError(
                f"a link accelerates by more than {MAX_ACCELERATION:g}: the motion is too fast to have loads"
            )
        return out

    def local(self, wrench: Array) -> tuple[Array, Array]:
        """Force and moment of a wrench in world axes, in link axes."""
        return _back(self.R, wrench[..., :3]), _back(self.R, wrench[..., 3:])


def _motion(robot: Robot, link: str) -> Callable[..., Any]:
    """Pose, velocity and acceleration of a link in its own axes, compiled together, once per robot."""
    names = ("pose", "velocity", "acceleration")
    return compile(robot, names, link=link, frame="local")


class _AttachedLoad(NamedTuple):
    """Load that a joint of the link carries: its place, welded bodies' P in link axes, their links with origins in
    link axes, and the links beyond that move."""

    place: Array
    P: Array
    welded: dict[str, Array]
    moving: list[str]


def _sweep(
    robot: Robot, q: Array, v: Array, a: Array, cut: Cut, entries: Sequence[AppliedWrench], place: Array | None
) -> Array:
    """Loads (..., k, 6) in section axes: own mass beyond, then what hangs beyond, less what is held inboard."""
    body, span = _Body.of(robot, q, v, a, cut.link), cut.span
    moving = body.moving()
    force, moment = _carried(moving, cut.parts)
    for at, f, n in _attached_loads(robot, q, v, a, cut.link, body, moving, entries, place):
        along = _entered(span, f, n) if at is None else np.asarray(span.along(at))
        beyond = cut.beyond(along)[..., None]
        force = force + beyond * f[..., None, :]
        moment = moment + beyond * n[..., None, :]
    moment = moment - np.cross(span.points(cut.s), force)
    return np.concatenate([force @ span.rotation, moment @ span.rotation], axis=-1)


def _attached_loads(
    robot: Robot,
    q: Array,
    v: Array,
    a: Array,
    link: str,
    body: _Body,
    moving: Array,
    entries: Sequence[AppliedWrench],
    place: Array | None,
) -> Iterator[tuple[Array | None, Array, Array]]:
    """Place, force and moment about the link's origin, link axes, of every joint and outside force of a link.

    None: where the force's line of action passes.
    """
    hung = attached(robot.model, link)
    W, rows = _joint_wrenches(robot, q, v, a, entries) if any(x.moving for x in hung) else (np.zeros(0), {})
    for x in hung:
        f, n = (y[..., 0, :] for y in _carried(moving, x.P[None]))
        for child in x.moving:
            arm = robot.pose(q, child)[..., :3, 3] - body.p
            w = W[..., rows[child], :]
            fc, nc = body.local(w)
            f, n = f + fc, n + nc + np.cross(_back(body.R, arm), fc)
        for e in entries:
            if e.link in x.welded:
                fe, ne = body.local(e.wrench)
                f, n = f - fe, n - ne - np.cross(x.welded[e.link], fe)
        yield x.place, f, n
    for e in entries:
        if e.link == link:
            fe, ne = body.local(e.wrench)
            yield place if e.place is None else e.place, -fe, -ne


def _joint_wrenches(
    robot: Robot, q: Array, v: Array, a: Array, entries: Sequence[AppliedWrench]
) -> tuple[Array, dict[str, int]]:
    """The wrenches on the moving links, and in which row each is."""
    forces: dict[str, Array] = {}
    for e in entries:
        forces[e.link] = forces.get(e.link, np.zeros(6)) + e.wrench
    W = robot.joint_wrenches(q, v, a, f_ext=forces)
    return W, {link: k for k, link in enumerate(robot.moving_links)}


def attached(model: Model, link: str) -> list[_AttachedLoad]:
    """The loads that hang on each of a link's joints."""
    out = []
    for joint in model.joints:
        if joint.parent != link:
            continue
        hung = _AttachedLoad(np.array(joint.origin), np.zeros((4, 4)), {}, [])
        waiting = [(joint, np.eye(4))]
        while waiting:
            j, T = waiting.pop()
            if j.kind != "fixed":
                hung.moving.append(j.child)
                continue
            step = np.eye(4)
            step[:3, :3], step[:3, 3] = j.rotation, j.origin
            X = T @ step
            hung.welded[j.child] = X[:3, 3]
            hung.P[...] += X @ pseudo_inertia(named(model, j.child).inertial) @ X.T
            waiting += [(k, X) for k in model.joints if k.parent == j.child]
        out.append(hung)
    return out


def _entered(span: Span, f: Array, n: Array) -> Array:
    """s (...,) where a wrench about the link's origin passes the span the nearest; of couples, and of forces along
    the span, its end."""
    d, size = span.direction, (f * f).sum(axis=-1)
    axis = np.cross(f, n) - size[..., None] * span.start  # from the span's start to the line of action, times f^2
    across = size - (f @ d) ** 2
    known = across > PARALLEL_AXIS * size
    along = ((axis @ d) - (f @ d) * (axis * f).sum(axis=-1) / np.where(known, size, 1.0)) / np.where(
        known, across, 1.0
    )
    return np.asarray(np.where(known, np.clip(along, -span.back, span.length), span.length))


def _carried(moving: Array, P: Array) -> tuple[Array, Array]:
    """Force and moment about the origin, (..., k, 3) each, that moving [B b] asks of parts P (k, 4, 4)."""
    Y = moving[..., None, :, :] @ P
    moment = np.stack([Y[..., i, j] - Y[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=-1)
    return Y[..., 3], moment


def _back(R: Array, x: Array) -> Array:
    """Vectors in axes of the world told in those of a frame: R^T x."""
    return matvec(np.swapaxes(R, -1, -2), x)


def _states(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """q, v, a with the same leading dimensions, finite."""
    expect_robot(robot, "a section")
    given = state(robot.model, "loads in a section", q=q, v=v, a=a)
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    Q, V, A = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in given)
    return Q, V, A
