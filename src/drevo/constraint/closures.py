"""Constraints that descriptions have: joints that close loops, and lengths of tendons."""

from __future__ import annotations

from dataclasses import dataclass

from ..mechanics.algorithms import constraints as rows_of
from ..mechanics.algorithms.constraints import ConstraintRows, Kinematics
from ..mechanics.algorithms.tendons import tendon_coupling
from ..mechanics.scalar import Scalar
from ..mechanics.spatial import Mat
from ..model.description import Tendon

Triple = tuple[float, float, float]
RotationMatrix = tuple[Triple, Triple, Triple]


class OnLinks:
    """The base of constraints that name links."""

    __slots__ = ()

    @property
    def links(self) -> tuple[str, ...]:
        """The links that it names."""
        return tuple(getattr(self, x) for x in ("link", "link_a", "link_b") if hasattr(self, x))


@dataclass(frozen=True, slots=True)
class JointClosure(OnLinks):
    """A joint that closes a loop; axes in those of their links, R_ab the axes of b in those of a."""

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


@dataclass(frozen=True, slots=True)
class TendonLength(OnLinks):
    """L of a tendon = c0 + c1 x + c2 x^2 + ..., x the L of another; c0 without one."""

    tendon: Tendon
    driver: Tendon | None
    coefficients: tuple[float, ...]
    size: int = 1

    def rows(self, k: Kinematics, t: Scalar) -> ConstraintRows:
        return tendon_coupling(k, self.tendon, self.driver, self.coefficients)
