"""The accuracy of a robot's tool: worst case and covariance from the errors of joints, frames, drives, links.

    delta = sum over joints l^i dq_i + frames L^iT eps_i - drives l^i Q_i / k_i - sections L^sT C_s W_s
    worst case |sag| + sum |column| tolerance,        covariance J Sigma J^T

to first order, at a point of a link, linear then angular, world axes. Drives and links that give way shift the
tool by an amount that is known, the sag; tolerances spread it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel, bars
from ..errors import InputError, NumericsError, one_of, shown
from ..io.given import Array, finite, generator, number, numbers, whole
from ..io.reprs import result
from ..mechanics.configuration import state
from ..model.description import Joint
from ..model.draft import did_you_mean, expect_robot, model_of
from ..model.quantities import TASK_AXES
from ..robot.face import Robot
from .external import Surroundings
from .masses import GivenDistribution, named
from .masses import distribution as distribution_of
from .sections import Spanned, section_loads, section_motion
from .span import chosen
from .stresses import pose_of_twist, rotation_vector

ERROR_DISTRIBUTIONS = {"uniform": np.sqrt(3.0), "normal": 3.0}  # tolerance over standard deviation
LEAST_STIFFNESS = 1e-100  # N or N m^2: what is softer gives way beyond all numbers
MAX_TOOL_SAMPLES = 100_000_000  # samples


@result
class Spring:
    """An elastic section of a link: the outboard piece moves relative to the inboard one by -C W; the compliance
    C (6, 6) takes force and moment to translation [m] and rotation [rad] in section axes, at s metres along the
    link's span."""

    link: str
    s: float
    compliance: Array
    span: Spanned = None
    distribution: GivenDistribution = "auto"


@result
class Accuracy(Pictured):
    """Errors of a tool point (..., 6): linear m, angular rad, world axes.

    sources: names of the columns of jacobian (..., 6, m). tolerance and sigma (m,): half-width and standard
    deviation of each. sag (..., 6): where drives and sections that give way bring the tool.
    """

    link: str
    sources: tuple[str, ...]
    jacobian: Array
    tolerance: Array
    sag: Array
    error_distribution: str
    chain: _Chain = field(repr=False)

    @property
    def sigma(self) -> Array:
        """Standard deviation of each source (m,)."""
        return np.asarray(self.tolerance / ERROR_DISTRIBUTIONS[self.error_distribution])

    @property
    def worst(self) -> Array:
        """|sag| + sum |column| tolerance (..., 6): no error within the tolerances is larger, to first order."""
        return np.asarray(np.abs(self.sag) + np.abs(self.jacobian) @ self.tolerance)

    @property
    def covariance(self) -> Array:
        """J Sigma J^T (..., 6, 6) about the sag."""
        J = self.jacobian * self.sigma
        return np.asarray(J @ np.swapaxes(J, -1, -2))

    @property
    def deviation(self) -> Array:
        """Standard deviation of each component (..., 6)."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1)))

    def shares(self) -> dict[str, Array]:
        """Source -> its part of the variance of the tool's position (...), the largest first; they add up to 1."""
        parts = ((self.jacobian[..., :3, :] * self.sigma) ** 2).sum(axis=-2)
        whole = np.maximum(parts.sum(axis=-1, keepdims=True), 1e-300)
        part = parts / whole
        order = np.argsort(-part.mean(axis=tuple(range(part.ndim - 1))))
        return {self.sources[k]: part[..., k][()] for k in order}

    def figure(self) -> Figure:
        """Worst case and deviation of every component, and the sources of the variance; of one configuration."""
        if self.sag.ndim != 1:
            raise InputError("a picture is of one configuration, and this accuracy of a batch: take one row")
        shares = list(self.shares().items())[:12]
        panels = [
            Panel(f"{kind}, {unit}: worst case, deviation", [
                bars("worst case", self.worst[part]), bars("deviation", self.deviation[part])], unit=unit)
            for kind, unit, part in (("position", "m", slice(3)), ("orientation", "rad", slice(3, 6)))
        ]  # fmt: skip
        sources = [bars(name, [100.0 * float(x)], first=k) for k, (name, x) in enumerate(shares)]
        if sources:
            panels.append(Panel("where the position's variance comes from, %", sources, unit="%"))
        return Figure(f"{self.link}: accuracy of the tool", panels, abscissa="x, y, z; sources")

    def monte_carlo(self, count: int = 10_000, rng: np.random.Generator | None = None) -> MonteCarlo:
        """Samples errors without linearising: `count` robots with drawn errors, each one's kinematics in full.

        Uniform errors lie within the tolerances; normal ones have them as three standard deviations.
        """
        if self.sag.ndim != 1:
            raise InputError("monte_carlo is of one configuration, and this accuracy of a batch: take one row")
        whole("monte_carlo: count", count, 2, MAX_TOOL_SAMPLES)
        draw = np.random.default_rng() if rng is None else generator("monte_carlo: rng", rng)
        shape = (count, len(self.sources))
        unit = (
            draw.uniform(-1.0, 1.0, shape)
            if self.error_distribution == "uniform"
            else draw.normal(0.0, 1 / ERROR_DISTRIBUTIONS["normal"], shape)
        )
        return MonteCarlo(self.chain.errors(unit * self.tolerance))


@result
class MonteCarlo(Pictured):
    """Errors (count, 6) of drawn robots: position, and rotation vector from the wanted orientation; world axes."""

    errors: Array

    def figure(self) -> Figure:
        """Histograms of the errors of every component."""
        panels = []
        for k, name in enumerate(("x", "y", "z", "rx", "ry", "rz")):
            counts, edges = np.histogram(self.errors[:, k], bins=min(60, max(5, len(self.errors) // 50)))
            x, y = np.repeat(edges, 2)[1:-1], np.repeat(counts, 2)
            panels.append(
                Panel(f"{name}, {'m' if k < 3 else 'rad'}", [Curve("drawn", x, 0.0 * y, y)], unit="robots")
            )
        return Figure(f"errors of {len(self.errors)} drawn robots", panels, across=3, abscissa="error, m or rad")

    @property
    def mean(self) -> Array:
        """Mean error (6,)."""
        return np.asarray(self.errors.mean(axis=0))

    @property
    def covariance(self) -> Array:
        """Sample covariance (6, 6)."""
        return np.asarray(np.cov(self.errors, rowvar=False))

    @property
    def worst(self) -> Array:
        """The largest |error| of each component that was drawn (6,)."""
        return np.asarray(np.abs(self.errors).max(axis=0))


def accuracy(
    robot: Robot,
    q: ArrayLike,
    link: str,
    *,
    point: ArrayLike = (0.0, 0.0, 0.0),
    joint_errors: float | ArrayLike | Mapping[str, ArrayLike] = 0.0,
    frame_errors: Sequence[ArrayLike] | Mapping[str, Sequence[ArrayLike]] | None = None,
    stiffness: float | ArrayLike | Mapping[str, ArrayLike] | None = None,
    springs: Sequence[Spring] = (),
    f_ext: Mapping[str, ArrayLike] | None = None,
    error_distribution: str = "uniform",
) -> Accuracy:
    """Errors of a point of a link (link axes, m) at configurations q (..., nq), at rest under gravity and f_ext.

    joint_errors: tolerance of each rate, rad or m: one number, (nv,), or {joint: tolerance}.
    frame_errors: tolerances (translation m, rotation rad), each a number or three, of the placement of every
    joint's frame, fixed joints too, or {joint: ...}; axes of the frame as it stands on the parent.
    stiffness: of the drives, N m/rad or N/m, one number, (nv,), or {joint: k}; others are rigid.
    springs: sections that give way (`Spring`, `beam`).
    error_distribution: what a tolerance means: "uniform" within it, or "normal" with three standard deviations.
    Raises InputError (unknown names, a robot with loops), NumericsError.
    """
    one_of("accuracy: error_distribution", error_distribution, ERROR_DISTRIBUTIONS, InputError)
    expect_robot(robot, "accuracy")
    if robot.model.closed:
        raise InputError(f"accuracy is of open chains, and robot {robot.name!r} has loops; open them first")
    (x,) = state(robot.model, "accuracy", q=q)
    named(robot.model, link)
    Surroundings(f_ext).wrench_on(robot, x)  # names what does not fit, also where nothing gives way
    frames, give = _frames(robot, link, frame_errors), _per_rate(robot, "stiffness", stiffness, np.inf)
    chain = _Chain(robot, x, link, finite("point", point, (3,)), frames, _springs(springs), f_ext, give)
    tolerance = [*_per_rate(robot, "joint_errors", joint_errors, 0.0)]
    tolerance += [y for _, six in chain.frames for y in six]
    J = np.concatenate([chain.jacobian(), chain.frame_columns()], axis=-1)
    names = _sources(robot, chain)
    keep = [k for k, tol in enumerate(tolerance) if tol > 0.0]
    chain.kept[:] = keep
    tolerances = np.array(tolerance)[keep]
    return Accuracy(
        link, tuple(names[k] for k in keep), J[..., keep], tolerances, chain.sag(), error_distribution, chain
    )


def beam(
    robot: Robot,
    link: str,
    *,
    EA: float = np.inf,
    GA: float = np.inf,
    GJ: float = np.inf,
    EIy: float = np.inf,
    EIz: float = np.inf,
    count: int = 8,
    span: Spanned = None,
    distribution: GivenDistribution = "auto",
) -> list[Spring]:
    """A link as a beam of constant section, from where it is held: springs at Gauss and Legendre's points.

    EA N: axial, GA N: shear (with its coefficient), GJ N m^2: torsion, EIy, EIz N m^2: bending about y and z of
    the section. Exact while the loads along the span are polynomials of degree 2 count - 2 or less.
    """
    model = model_of(robot, "beam")
    named(model, link)
    rule = f"a positive number from {LEAST_STIFFNESS:g}, or inf where it is rigid"
    given = {"EA": EA, "GA": GA, "GJ": GJ, "EIy": EIy, "EIz": EIz}
    label = f"beam of link {link!r}"
    axial, shear, *rest = (
        number(f"{label}: {k}", x, rule, lambda y: y >= LEAST_STIFFNESS) for k, x in given.items()
    )
    whole(f"{label}: count", count, 1, 100)
    line = chosen(model, link, distribution_of(model, link, distribution), span)
    x, w = np.polynomial.legendre.leggauss(count)
    half = (line.length - line.held) / 2
    C = np.diag(1.0 / np.array([axial, shear, shear, *rest]))
    return [
        Spring(link, float(line.held + half * (1 + a)), C * b * half, line, distribution) for a, b in zip(x, w)
    ]


# -- the chain from the ground to the tool -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Chain:
    """The kinematic chain between the ground and the tool at q, and the loads on it."""

    robot: Robot
    q: Array
    link: str
    point: Array
    frames: tuple[tuple[Joint, Array], ...]  # joints from the ground to the link, tolerances (6,)
    springs: tuple[Spring, ...]
    f_ext: Mapping[str, ArrayLike] | None
    stiffness: Array
    kept: list[int] = field(default_factory=list)  # sources with a tolerance, of rates and then frames

    def tool(self) -> Array:
        """The tool point in world axes (..., 3)."""
        T = self.robot.pose(self.q, self.link)
        return np.asarray(T[..., :3, :3] @ self.point + T[..., :3, 3])

    def jacobian(self) -> Array:
        """(..., 6, nv) of the tool point."""
        J = np.array(self.robot.jacobian(self.q, self.link))
        arm = self.tool() - self.robot.pose(self.q, self.link)[..., :3, 3]
        J[..., :3, :] += np.cross(J[..., 3:, :], arm[..., :, None], axis=-2)
        return J

    def frame_columns(self) -> Array:
        """(..., 6, 6 frames): twists of the joints' frames on their parents, seen at the tool point."""
        blocks = [np.zeros((*self.q.shape[:-1], 6, 0))]
        for joint, _ in self.frames:
            T = self.robot.pose(self.q, joint.parent) @ _placement(joint)
            blocks.append(self._carried(T))
        return np.concatenate(blocks, axis=-1)

    def _carried(self, T: Array) -> Array:
        """(..., 6, 6): a twist in the axes of a frame T, about its origin, as one at the tool in world axes."""
        R, arm = T[..., :3, :3], self.tool() - T[..., :3, 3]
        out = np.zeros((*T.shape[:-2], 6, 6))
        out[..., :3, :3] = out[..., 3:, 3:] = R
        out[..., :3, 3:] = np.cross(R, arm[..., :, None], axis=-2)
        return out

    def sag(self) -> Array:
        """The twist of the tool by drives and sections that give way, (..., 6)."""
        out = (self.jacobian() @ self.give()[..., None])[..., 0]
        still = np.zeros((*self.q.shape[:-1], self.robot.nv))
        for spring, twist in self.bends():
            at = section_motion(
                self.robot, self.q, still, still, spring.link, spring.s, spring.span, spring.distribution
            )
            out = out + (self._carried(at.pose) @ twist[..., None])[..., 0]
        return np.asarray(out)

    def give(self) -> Array:
        """dq = -Q / k of the drives, (..., nv): Q holds the robot at rest, the sag goes the other way."""
        still = np.zeros((*self.q.shape[:-1], self.robot.nv))
        if not np.isfinite(self.stiffness).any():
            return still
        return np.asarray(-Surroundings(self.f_ext).efforts(self.robot, self.q, still, still) / self.stiffness)

    def bends(self) -> list[tuple[Spring, Array]]:
        """Every spring between the ground and the tool, and its twist -C W in section axes."""
        out = []
        still = np.zeros((*self.q.shape[:-1], self.robot.nv))
        for x in self.springs:
            C = finite(f"the compliance of the spring in link {x.link!r}", x.compliance, (6, 6))
            loads = section_loads(self.robot, self.q, still, still, x.link, x.s, span=x.span,
                                  distribution=x.distribution, f_ext=self.f_ext)  # fmt: skip
            if self._beyond(x.link, loads.s[0], loads.span.along):
                out.append((x, -(loads.total[..., 0, :] @ C.T)))
        return out

    def _beyond(self, link: str, s: float, along: Any) -> bool:
        """True if the tool is outboard of a section."""
        path = [joint for joint, _ in self.frames]
        if link == self.link:
            return bool(along(self.point) >= s)
        on = [joint for joint in path if joint.parent == link]
        return bool(on) and bool(along(on[0].origin) >= s - 1e-9)

    # -- in full, for drawn errors -----------------------------------------------------------------------------

    def errors(self, drawn: Array) -> Array:
        """(count, 6) for errors of the kept sources (count, m)."""
        every = np.zeros((len(drawn), self.robot.nv + 6 * len(self.frames)))
        every[:, self.kept] = drawn
        q = self.robot.integrate(self.q, every[:, : self.robot.nv] + self.give())
        bends = self.bends()
        T = self._bent(bends, self._first())
        for k, (joint, _) in enumerate(self.frames):
            at, P = self.robot.nv + 6 * k, _placement(joint)
            relative = np.linalg.inv(self.robot.pose(q, joint.parent)) @ self.robot.pose(q, joint.child)
            T = T @ P @ pose_of_twist(every[:, at : at + 6]) @ (np.linalg.inv(P) @ relative)
            T = T @ self._bent(bends, joint.child)
        wanted = self.robot.pose(self.q, self.link)
        place = T[:, :3, :3] @ self.point + T[:, :3, 3] - self.tool()
        return np.concatenate([place, rotation_vector(T[:, :3, :3] @ wanted[:3, :3].T)], axis=-1)

    def _first(self) -> str:
        return self.frames[0][0].parent if self.frames else self.link

    def _bent(self, bends: Sequence[tuple[Spring, Array]], link: str) -> Array:
        """The displacement (4, 4) by a link's springs of everything beyond them, the innermost first."""
        T = np.eye(4)
        still = np.zeros(self.robot.nv)
        for x, twist in sorted((b for b in bends if b[0].link == link), key=lambda b: b[0].s):
            world = section_motion(self.robot, self.q, still, still, link, x.s, x.span, x.distribution).pose
            X = np.linalg.inv(self.robot.pose(self.q, link)) @ world
            T = T @ X @ pose_of_twist(twist[None])[0] @ np.linalg.inv(X)
        return T


# -- arguments ------------------------------------------------------------------------------------------------


def _frames(
    robot: Robot, link: str, given: Sequence[ArrayLike] | Mapping[str, Sequence[ArrayLike]] | None
) -> tuple[tuple[Joint, Array], ...]:
    """The joints from the ground to the link with the tolerances (6,) of their frames."""
    joints = {j.child: j for j in robot.model.joints}
    path: list[Joint] = []
    while link in joints:
        path.append(joints[link])
        link = joints[link].parent
    if isinstance(given, Mapping):
        _require_joints(robot, "frame_errors", given, [j.name for j in robot.model.joints])
        return tuple((j, _six(j.name, given[j.name]) if j.name in given else np.zeros(6)) for j in reversed(path))
    return tuple((j, np.zeros(6) if given is None else _six(j.name, given)) for j in reversed(path))


def _springs(given: Any) -> tuple[Spring, ...]:
    listed = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    for x in listed:
        if not isinstance(x, Spring):
            raise InputError(f"springs: {shown(x)} is no Spring; give a list of them, as beam does")
    return listed


def _six(joint: str, pair: Sequence[ArrayLike]) -> Array:
    try:
        move, turn = pair
        parts = [np.broadcast_to(numbers(f"frame_errors of joint {joint!r}", x), (3,)) for x in (move, turn)]
    except (TypeError, ValueError):
        raise InputError(
            f"frame_errors of joint {joint!r} is {shown(pair)}; give (translation, rotation), each a number or "
            "three"
        ) from None
    return _tolerances(f"frame_errors of joint {joint!r}", np.concatenate(parts))


def _per_rate(robot: Robot, name: str, given: Any, other: float) -> Array:
    """One number for each rate."""
    out = np.full(robot.nv, other)
    if given is None:
        return out
    if isinstance(given, Mapping):
        _require_joints(robot, name, given, robot.joint_names)
        for joint, _, sv in robot.model.slices():
            if joint.name in given:
                x = numbers(f"{name} of joint {joint.name!r}", given[joint.name])
                if x.shape not in ((), (sv.stop - sv.start,)):
                    raise InputError(f"{name} of joint {joint.name!r} has shape {x.shape}; give one number")
                out[sv] = x
    else:
        x = numbers(name, given)
        if x.shape not in ((), (robot.nv,)):
            raise InputError(f"{name} has shape {x.shape}; give one number, ({robot.nv},), or {{joint: number}}")
        out[:] = x
    if name == "stiffness":
        if not (out >= LEAST_STIFFNESS).all():
            least = out[~(out >= LEAST_STIFFNESS)][0]
            raise InputError(
                f"stiffness holds {least:g}; a drive's stiffness is positive, from {LEAST_STIFFNESS:g}"
            )
        return out
    return _tolerances(name, out)


def _tolerances(name: str, x: Array) -> Array:
    if not (np.isfinite(x) & (x >= 0.0)).all():
        raise NumericsError(
            f"{name} holds {x[~(np.isfinite(x) & (x >= 0.0))][0]:g}; tolerances are finite and not negative"
        )
    return x


def _require_joints(robot: Robot, name: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for joint in given:
        if joint not in known:
            hint = did_you_mean(str(joint), known) or f"; there are {', '.join(known)}"
            raise InputError(f"{name}: joint {joint!r} is not in robot {robot.name!r}{hint}")


def _sources(robot: Robot, chain: _Chain) -> list[str]:
    """Names of the errors: one for each rate, then six for each frame."""
    rates = [f"q:{joint}{i}" for joint, i in robot.model.freedoms()]
    return rates + [f"frame:{joint.name}.{axis}" for joint, _ in chain.frames for axis in TASK_AXES]


def _placement(joint: Joint) -> Array:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = joint.rotation, joint.origin
    return T
