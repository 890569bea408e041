"""The kinds of constraints f(q, t) = 0: a class each, with all that calls ask of it.

A new kind is a class here, or where its functions are, and a constructor in `values`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import InputError
from ..mechanics import configuration
from ..mechanics.algorithms import constraints as rows_of
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.passive import tendon_coupling
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import Mat, Vec
from ..model.description import Model, Tendon
from ..model.draft import did_you_mean
from ..model.rotations import plane_axes

Array = np.ndarray[Any, Any]
Triple = tuple[float, float, float]
RotationMatrix = tuple[Triple, Triple, Triple]


class Reaction(NamedTuple):
    """A force and a moment, world axes, on a link at a point of it, in link axes."""

    link: str
    point: Triple
    force: Any
    moment: Any


class Constraint:
    """A constraint: rows of one size, fields that are numbers, and the links or joints that it names.

    numeric: the fields that are numbers, in order; sets that differ in these alone share compiled code. word: how
    the kind is called in messages. on_arrays: they may be computed on arrays, by loops over the bodies.
    """

    __slots__ = ()
    numeric: ClassVar[tuple[str, ...]] = ()
    word: ClassVar[str] = ""
    on_arrays: ClassVar[bool] = True

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of its rows."""

    @abstractmethod
    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        """f, f', Gamma and gamma."""

    @property
    def links(self) -> tuple[str, ...]:
        """The links that it names."""
        return tuple(getattr(self, x) for x in ("link", "link_a", "link_b") if hasattr(self, x))

    @property
    def label(self) -> str:
        """A short name, for messages."""
        return f"{self.word}({', '.join(self.links)})"

    def require_names(self, model: Model) -> None:
        """Raises InputError where the robot lacks a link or joint that is named here."""
        links = [l.name for l in model.links]
        for link in self.links:
            if link not in links:
                kind = "contact" if self.word == "contact" else type(self).__name__
                raise InputError(
                    f"{kind}: link {link!r} is not in robot {model.name!r}{did_you_mean(str(link), links)}"
                )

    def traced(self, links: Collection[str], nq: int) -> Constraint:
        """The constraint with its functions as they are now."""
        return self

    # -- numbers --------------------------------------------------------------------------------------------

    @property
    def normals(self) -> tuple[Any, ...]:
        """Normals that `moved` may replace."""
        return ()

    @property
    def offsets(self) -> tuple[Any, ...]:
        """Offsets that `moved` may replace."""
        return ()

    @property
    def points(self) -> tuple[Any, ...]:
        """Points that `moved` may replace."""
        return tuple(getattr(self, x) for x in ("point", "point_a", "point_b") if hasattr(self, x))

    @property
    def open_numbers(self) -> int:
        """The count of numbers that are left to the configuration with which a call begins."""
        return 0

    def opened(self, k: Kinematics) -> list[Scalar]:
        """These numbers at a state."""
        return []

    def anchored(self, numbers: Iterator[Scalar]) -> Constraint:
        """The constraint with numbers in place of those it leaves open."""
        return self

    @property
    def turn(self) -> tuple[Any, str, str] | None:
        """A configuration that decides how two links stand to each other, and these links."""
        return None

    def turned(self, rotation: RotationMatrix) -> Constraint:
        """This constraint with a rotation that is fixed, in place of one taken from a configuration."""
        return self

    # -- what it does to links ------------------------------------------------------------------------------

    @property
    def held_point(self) -> tuple[str, Triple] | None:
        """A link and the point of it that is held, by 3 rows, or by 6 with its turn, where that is all."""
        return None

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction] | None:
        """The reactions Gamma^T N as forces on links; None where the constraint does not say where they act."""
        return None


def _flat(rows: Iterable[Iterable[Scalar]]) -> list[Scalar]:
    """Rows of scalars, one after the other."""
    return [x for row in rows for x in row]


def _matrix(numbers: Iterator[Scalar]) -> Any:
    return tuple(tuple(next(numbers) for _ in range(3)) for _ in range(3))


def _place(pose: Callable[[str], Array], link: str, point: Triple) -> Array:
    T = pose(link)
    return np.asarray(T[..., :3, :3] @ np.array(point) + T[..., :3, 3])


@dataclass(frozen=True, slots=True)
class _BetweenPoints(Constraint):
    """A constraint between a point of one link and one of another, pushed apart by a force and a moment."""

    link_a: str
    point_a: Triple
    link_b: str
    point_b: Triple

    def _pushed(self, pose: Callable[[str], Array], N: Array) -> tuple[Array, Array]:
        """Force and moment on the first."""
        return N[..., :3], np.zeros(3)

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        force, moment = self._pushed(pose, N)
        yield Reaction(self.link_a, self.point_a, force, moment)
        yield Reaction(self.link_b, self.point_b, -force, -moment)


@dataclass(frozen=True, slots=True)
class Contact(Constraint):
    """A point (3 rows: force) or a foot (6 rows: force, then moment about the point) held at rest."""

    numeric = ("point", "anchor", "rotation")
    word = "contact"
    link: str
    point: Triple
    size: int = 3
    anchor: Triple | None = None
    rotation: RotationMatrix | None = None

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        turn = None if self.rotation is None else Mat.of(self.rotation)
        return rows_of.contact(k, self.link, self.point, self.size, self.anchor, turn)

    @property
    def open_numbers(self) -> int:
        return 3 * (self.anchor is None) + 9 * self._turns_openly

    @property
    def _turns_openly(self) -> bool:
        return self.size == 6 and self.rotation is None

    def opened(self, k: Kinematics) -> list[Scalar]:
        if not self.open_numbers:
            return []
        at = k.pose(self.link)
        place = [] if self.anchor else list(at.p + at.R @ Vec(*self.point))
        return [*place, *(_flat(at.R) if self._turns_openly else ())]

    def anchored(self, numbers: Iterator[Scalar]) -> Contact:
        """The contact with its anchor and rotation taken from the numbers, where they were left open."""
        anchor: Any = self.anchor or tuple(next(numbers) for _ in range(3))
        return replace(self, anchor=anchor, rotation=_matrix(numbers) if self._turns_openly else self.rotation)

    @property
    def held_point(self) -> tuple[str, Triple]:
        return self.link, self.point

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        yield Reaction(self.link, self.point, N[..., :3], N[..., 3:] if self.size == 6 else np.zeros(3))


@dataclass(frozen=True, slots=True)
class PointOnPlane(Constraint):
    """(n0 + n1 t) . p = d0 + d1 t + d2 t^2 / 2."""

    numeric = ("point", "normal", "offset")
    word = "point_on_plane"
    link: str
    point: Triple
    normal: tuple[Triple, Triple]
    offset: Triple
    size: int = 1

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        n0, n1 = self.normal
        return rows_of.point_on_plane(k, t, self.link, self.point, (Vec(*n0), Vec(*n1)), self.offset)

    @property
    def normals(self) -> tuple[Any, ...]:
        return self.normal[:1]

    @property
    def offsets(self) -> tuple[Any, ...]:
        return self.offset[:1]

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        n0, n1 = (np.array(x) for x in self.normal)
        yield Reaction(self.link, self.point, N * (n0 + n1 * t[..., None]), np.zeros(3))


@dataclass(frozen=True, slots=True)
class PointToPoint(_BetweenPoints):
    """W (r_a - r_b) = 0; W is the identity unless given."""

    numeric = ("point_a", "point_b", "W")
    word = "point_to_point"
    W: tuple[Triple, ...] | None = None

    @property
    def size(self) -> int:
        return 3 if self.W is None else len(self.W)

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        return rows_of.point_to_point(k, self.link_a, self.point_a, self.link_b, self.point_b, self.W)

    def _pushed(self, pose: Callable[[str], Array], N: Array) -> tuple[Array, Array]:
        """Force and moment on the first link, at its point."""
        return N[..., :3] if self.W is None else N @ np.array(self.W), np.zeros(3)


@dataclass(frozen=True, slots=True)
class Weld(_BetweenPoints):
    """r_a = r_b and R_a R_ab = R_b. R_ab may be given, or be that of a configuration `at`, or be left open."""

    numeric = ("point_a", "point_b", "rotation", "at")
    word = "weld"
    rotation: RotationMatrix | None = None
    at: tuple[float, ...] | None = None
    size: int = 6

    @property
    def turn(self) -> tuple[Any, str, str] | None:
        return (self.at, self.link_a, self.link_b) if self.at is not None else None

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        turn = None if self.rotation is None else Mat.of(self.rotation)
        if self.at is not None:
            turn = rows_of.orientation(k.tree, self.at, *self.links)
        return rows_of.weld(k, self.link_a, self.point_a, self.link_b, self.point_b, turn)

    @property
    def open_numbers(self) -> int:
        return 9 * (self.rotation is None and self.at is None)

    def opened(self, k: Kinematics) -> list[Scalar]:
        a, b = (k.pose(link).R for link in self.links)
        return _flat(a.T.mul(b)) if self.open_numbers else []

    def anchored(self, numbers: Iterator[Scalar]) -> Weld:
        return replace(self, rotation=_matrix(numbers)) if self.open_numbers else self

    def turned(self, rotation: RotationMatrix) -> Weld:
        return replace(self, rotation=rotation, at=None)

    def require_names(self, model: Model) -> None:
        Constraint.require_names(self, model)
        if self.at is not None:
            configuration.state(model, f"{self.label}: at", q=self.at)

    def _pushed(self, pose: Callable[[str], Array], N: Array) -> tuple[Array, Array]:
        """Force and moment on the first link, at its point."""
        return N[..., :3], N[..., 3:]


@dataclass(frozen=True, slots=True)
class Distance(_BetweenPoints):
    """|r_a - r_b| = length; the reaction is the force that pushes the points apart."""

    numeric = ("point_a", "point_b", "length")
    word = "distance"
    length: float
    size: int = 1

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        try:
            return rows_of.distance(k, self.link_a, self.point_a, self.link_b, self.point_b, self.length)
        except ZeroDivisionError:
            raise InputError(f"{self.label}: the two points are at one place whatever the joints do") from None

    def _pushed(self, pose: Callable[[str], Array], N: Array) -> tuple[Array, Array]:
        apart = _place(pose, self.link_a, self.point_a) - _place(pose, self.link_b, self.point_b)
        return N * apart / np.linalg.norm(apart, axis=-1, keepdims=True), np.zeros(3)


@dataclass(frozen=True, slots=True)
class Gear(Constraint):
    """q_a = offset + ratio q_b + higher[0] q_b^2 + ...; q_a = offset where there is no joint_b."""

    numeric = ("ratio", "offset", "higher")
    word = "gear"
    joint_a: str
    joint_b: str
    ratio: float
    offset: float = 0.0
    higher: tuple[float, ...] = ()
    size: int = 1

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        return rows_of.gear(k, self.joint_a, self.joint_b, self.ratio, self.offset, self.higher)

    @property
    def label(self) -> str:
        return f"gear({self.joint_a}, {self.joint_b})"

    @property
    def offsets(self) -> tuple[Any, ...]:
        return (self.offset,)

    def require_names(self, model: Model) -> None:
        joints = {j.name: j.nv for j in model.joints}
        for name in (self.joint_a, self.joint_b) if self.joint_b else (self.joint_a,):
            if not isinstance(name, str) or name not in joints:
                raise InputError(
                    f"gear: joint {name!r} is not in robot {model.name!r}{did_you_mean(str(name), joints)}"
                )
            if joints[name] != 1:
                raise InputError(f"gear: joint {name!r} has {joints[name]} freedoms; a gear couples joints of one")

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        """None: it acts between joints, not from outside."""
        return ()


@dataclass(frozen=True, slots=True)
class JointClosure(Constraint):
    """A joint that closes a loop; axes in those of their links, R_ab the axes of b in those of a."""

    numeric = ("point_a", "point_b", "rotation")
    kind: str
    link_a: str
    point_a: Triple
    axis_a: Triple
    link_b: str
    point_b: Triple
    axis_b: Triple
    rotation: RotationMatrix | None = None

    @property
    def size(self) -> int:
        return 4 if self.kind in ("cylindrical", "universal") else 5

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        turn = None if self.rotation is None else Mat.of(self.rotation)
        ends = (self.link_a, self.point_a, self.axis_a), (self.link_b, self.point_b, self.axis_b)
        return rows_of.joint_closure(k, self.kind, ends, turn)

    @property
    def label(self) -> str:
        return f"{self.kind}({', '.join(self.links)})"

    def reactions(self, pose: Callable[[str], Array], t: Array, N: Array) -> Iterable[Reaction]:
        """Forces N e of a row e . (r_a - r_b), moments N e x n of a row e . n."""
        Ra, Rb = (pose(link)[..., :3, :3] for link in self.links)
        a, n = Ra @ np.array(self.axis_a), Rb @ np.array(self.axis_b)
        e = [Ra @ np.array(axis) for axis in plane_axes(self.axis_a)]
        apart = _place(pose, self.link_a, self.point_a) - _place(pose, self.link_b, self.point_b)
        if self.kind == "universal":
            moment = N[..., 3:] * np.cross(a, n)
        elif self.kind == "prismatic":
            moment = N[..., 2:]
        else:
            moment = N[..., -2:-1] * np.cross(e[0], n) + N[..., -1:] * np.cross(e[1], n)
        turns_with_a = self.kind in ("prismatic", "cylindrical")
        force = N[..., :1] * e[0] + N[..., 1:2] * e[1] if turns_with_a else N[..., :3]
        yield Reaction(self.link_a, self.point_a, force, moment - np.cross(apart, force) * turns_with_a)
        yield Reaction(self.link_b, self.point_b, -force, -moment)


@dataclass(frozen=True, slots=True)
class TendonLength(Constraint):
    """L of a tendon = c0 + c1 x + c2 x^2 + ..., x the L of another; c0 without one."""

    numeric = ("coefficients",)
    on_arrays = False
    tendon: Tendon
    driver: Tendon | None
    coefficients: tuple[float, ...]
    size: int = 1

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        return tendon_coupling(k, self.tendon, self.driver, self.coefficients)

    @property
    def label(self) -> str:
        return f"tendon({', '.join(t.name for t in (self.tendon, self.driver) if t)})"
