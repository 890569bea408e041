"""Inverse kinematics as a method of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..io.given import Array, asked_methods

if TYPE_CHECKING:
    from ..codegen.call.function import Function


@asked_methods
class InverseKinematics:
    """Configurations from poses."""

    _method: Any

    def inverse_kinematics(
        self, link: str | Sequence[str], poses: ArrayLike, q0: ArrayLike | None = None, limits: bool = True,
        seeds: ArrayLike | int | None = None, attempts: int = 100, tolerance: float = 1e-9, avoid: Any = None,
        all: bool = False, reach: str | Sequence[str] = "pose", point: ArrayLike | None = None,
    ) -> Any:  # fmt: skip
        """Configurations that bring a link to poses (..., 4, 4): q, success, residual, iterations and reason.

        Several links and "center_of_mass" take poses (..., links, 4, 4). reach: "pose", "position", "orientation"
        or "pointing", the z axis alone. q0 (..., nq): the first start; seeds: (starts, nq) of later ones.
        attempts: starts for a pose. tolerance: m and rad. avoid: "auto", or pairs of geoms or links that must
        not touch. all: a list of the distinct solutions of every pose. point (3,): of one link, m, in its
        frame, as `pose` has it. Raises InputError.
        """
        from ..kinematics.inverse import inverse_kinematics

        return self._method(inverse_kinematics)(
            link, poses, q0, limits, seeds, attempts, tolerance, avoid, all, reach, point
        )

    def closed_form(
        self, link: str, limits: bool = False, point: ArrayLike | None = None, **given: float | None
    ) -> Function:
        """A Function from poses (..., 4, 4) of a link to all configurations (..., branches, nq), in closed form.

        Rows of branches that are not real are NaN: those that come no nearer than 1e-9 m and rad. Angles are from
        -pi to pi; limits: True moves them by a whole turn into the limits of the file, and rows that remain
        outside are NaN. given: coordinates of joints by name, or arm_angle, which leave six to be solved for; None
        makes one an argument of the Function after the poses. At singular poses branches coincide, and an angle
        that is free is what the limit gives. Joints that do not move the link are neutral. point (3,): of the
        link, m, in its frame, as `pose` has it. Raises DrevoError with the reason where no closed form is known,
        InputError.
        """
        from ..kinematics.closed.closed_form import closed_form

        f: Function = self._method(closed_form)(link, limits, point, **given)
        return f

    def workspace(
        self, link: str, samples: int = 100_000, seed: int = 0, point: ArrayLike = (0.0, 0.0, 0.0)
    ) -> Any:
        """Points (n, 3) that a link reaches in random configurations within the limits: points, q, ranges().

        point (3,): of the link, m, in its frame. Raises InputError where the link does not move.
        """
        from ..kinematics.workspace import reachable_points

        return reachable_points(self, link, samples, seed, point)

    def inverse_kinematics_path(
        self, link: str, poses: ArrayLike, q0: ArrayLike, limits: bool = False, jump: float = 0.5,
        point: ArrayLike | None = None, **given: float | None,
    ) -> Array:  # fmt: skip
        """Configurations (n, nq) along poses (n, 4, 4), each the closed-form branch nearest to the one before.

        q0 (nq,): where it begins. Turning joints go on beyond half a turn; limits: True keeps all within those of
        the file. jump: the farthest that a coordinate may move between two poses, rad or m. point, given:
        as of `closed_form`. Raises NumericsError that names the pose where no branch is real, or none is near.
        """
        from ..kinematics.closed.path import branch_path
        from ..kinematics.points import at_point

        robot, frame = at_point("inverse_kinematics_path", self, link, point)
        return branch_path(robot, frame, poses, q0, limits, jump, **given)
