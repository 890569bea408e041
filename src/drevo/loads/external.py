"""Forces from outside on the links: stated wrenches, and the reactions of contacts, constraints and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraint.collection import acting_in, collect, labels
from ..constraint.inverse import constrained_inverse_dynamics
from ..constraint.kinds import Constraint
from ..constraint.prepared import Contacts
from ..constraint.results import ConstrainedEfforts
from ..constraint.terms import constraint_terms
from ..errors import InputError, NumericsError, shown
from ..io.given import Array, finite
from ..io.reprs import result
from ..model.description import Inertial, Link
from ..robot.face import Robot
from .masses import named

CONSTRAINT_MISS = 1e-6  # m, rad and their rates: how far a motion may be from its constraints


@result
class AppliedForce:
    """A force N (..., 3), world axes, at a point of a link, m in link axes; moment N m: a couple beside it."""

    link: str
    force: ArrayLike
    at: ArrayLike = (0.0, 0.0, 0.0)
    moment: ArrayLike = (0.0, 0.0, 0.0)

    def entry(self, robot: Robot, q: Array) -> AppliedWrench:
        """As a wrench about the link's origin."""
        owner = f"of the AppliedForce on link {self.link!r}"
        named(robot.model, self.link)
        force, moment = (finite(f"{x} {owner}", getattr(self, x), (..., 3)) for x in ("force", "moment"))
        return _entry(robot, self.link, finite(f"at {owner}", self.at, (3,)).tolist(), q, force, moment)


GivenForces = Mapping[str, ArrayLike] | Sequence[AppliedForce] | None


@dataclass(frozen=True)
class Surroundings:
    """External forces, contacts and constraints on a robot, and the joints that drive it.

    f_ext: {link: (..., 6)} force and moment on the link at its origin, world axes, or a list of `AppliedForce`.
    contacts, constraints, actuated: as `constrained_inverse_dynamics` takes them; the robot's own loops are always
    among them. passive: with the dampers, dry friction and springs in the joints, the tendons, the weights that
    are compensated.
    """

    f_ext: GivenForces = None
    contacts: Contacts = None
    constraints: Sequence[Constraint] | None = None
    actuated: Sequence[str] | None = None
    passive: bool = True

    def found(self, robot: Robot) -> tuple[Constraint, ...]:
        """Contacts, constraints and loops, every name checked."""
        return collect(robot.model, self.contacts, self.constraints)

    def forces(self, robot: Robot, q: Array) -> list[AppliedWrench]:
        """f_ext as wrenches about the origins of links, those of a list with their places."""
        if isinstance(self.f_ext, Mapping):
            return [AppliedWrench(link, None, _wrench(robot, link, w)) for link, w in self.f_ext.items()]
        given: Any = () if self.f_ext is None else self.f_ext
        listed = list(given) if isinstance(given, (list, tuple)) else [given]
        for x in listed:
            if not isinstance(x, AppliedForce):
                raise InputError(f"f_ext is {{link: wrench}} or a list of loads.AppliedForce, not {shown(x)}")
        return [x.entry(robot, q) for x in listed]

    def wrench_on(self, robot: Robot, q: Array) -> dict[str, Array] | None:
        """{link: (..., 6)} of all of them."""
        total: dict[str, Array] = {}
        for x in self.forces(robot, q):
            total[x.link] = total.get(x.link, 0.0) + x.wrench
        return total or None

    def efforts(self, robot: Robot, q: Array, v: Array, a: Array, t: ArrayLike = 0.0) -> Array:
        """Drive efforts (..., nv) of a motion."""
        if self.found(robot):
            return np.asarray(self._constrained(robot, q, v, a, t).tau)
        tau: Array = robot.inverse_dynamics(q, v, a, f_ext=self.wrench_on(robot, q)) - acting_in(
            robot, q, v, self.passive
        )
        return tau

    def wrenches(self, robot: Robot, q: Array, v: Array, a: Array, t: ArrayLike = 0.0) -> list[AppliedWrench]:
        """Every force on a link, with where it enters (None where that was not said)."""
        out = self.forces(robot, q)
        out += [_lifted(robot, link, q) for link in robot.model.links if link.gravcomp and self.passive]
        constraints = self.found(robot)
        if not constraints:
            return out
        N = self._constrained(robot, q, v, a, t).reactions
        at = 0
        for c in constraints:
            out += _reaction(robot, c, q, np.asarray(t, float), N[..., at : at + c.size])
            at += c.size
        return out

    def require_kept(self, robot: Robot, q: Array, v: Array, t: Array) -> None:
        """InputError where a motion (n, ...) is off its constraints or leaves them."""
        constraints = self.found(robot)
        if not constraints:
            return
        terms = constraint_terms(robot, constraints, q, v, t)
        for x, fault in ((terms.value, "m or rad off"), (terms.rate, "m/s or rad/s away from")):
            k, i = np.unravel_index(int(np.argmax(np.abs(x))), x.shape)
            if abs(x[k, i]) > CONSTRAINT_MISS:
                raise InputError(
                    f"the trajectory violates its constraints: at t = {t[k]:.6g} s it is {abs(x[k, i]):.3g} "
                    f"{fault} {labels(constraints)[int(i)]}; put it right with drevo.constraint.hold"
                )

    def _constrained(self, robot: Robot, q: Array, v: Array, a: Array, t: ArrayLike) -> ConstrainedEfforts:
        f_ext = self.wrench_on(robot, q)
        try:
            return constrained_inverse_dynamics(
                robot, q, v, a, contacts=self.contacts, constraints=self.constraints, actuated=self.actuated, t=t,
                f_ext=f_ext, passive=self.passive,
            )  # fmt: skip
        except NumericsError as error:
            if v.any() or a.any():
                raise
            raise NumericsError(f"the static load, of the same posture at rest: {error}") from None


@dataclass(frozen=True, eq=False)
class AppliedWrench:
    """A wrench (..., 6) on a link about its origin, world axes, that enters at `place` in link axes."""

    link: str
    place: Array | None
    wrench: Array


def _wrench(robot: Robot, link: str, w: ArrayLike) -> Array:
    named(robot.model, link)
    return finite(f"f_ext of link {link!r}", w, (..., 6))


def _lifted(robot: Robot, link: Link, q: Array) -> AppliedWrench:
    """The force at a link's centre of mass that takes a part of its weight away."""
    body = link.inertial or Inertial()
    force = -link.gravcomp * body.mass * np.array(robot.model.gravity)
    return _entry(robot, link.name, body.com, q, np.broadcast_to(force, (*q.shape[:-1], 3)), np.zeros(3))


def _reaction(robot: Robot, c: Constraint, q: Array, t: Array, N: Array) -> Iterator[AppliedWrench]:
    """Gamma^T N of one constraint as wrenches on its links."""
    wrench = c.reactions(lambda link: robot.pose(q, link), t, N)
    if wrench is None:
        raise InputError(
            f"loads in a section: {labels([c])[0]} does not say on which link and where its reaction acts; use "
            "point_to_point, weld, distance, point_on_plane or a contact in its place"
        )
    for x in wrench:
        yield _entry(robot, x.link, x.point, q, x.force, x.moment)


def _entry(
    robot: Robot, link: str, point: Sequence[float], q: Array, force: Array, moment: Array
) -> AppliedWrench:
    arm = robot.pose(q, link)[..., :3, :3] @ np.array(point)
    turn = moment + np.cross(arm, force)
    return AppliedWrench(
        link, np.array(point), np.concatenate([np.broadcast_to(force, turn.shape), turn], axis=-1)
    )
