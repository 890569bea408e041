"""Inverse kinematics as a method of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from ..io.given import asked_methods


@asked_methods
class InverseKinematics:
    """Configurations from poses."""

    _method: Any

    def inverse_kinematics(
        self, link: str | Sequence[str], poses: ArrayLike, q0: ArrayLike | None = None, limits: bool = True,
        seeds: ArrayLike | int | None = None, attempts: int = 100, tolerance: float = 1e-9, avoid: Any = None,
        all: bool = False, reach: str | Sequence[str] = "pose",
    ) -> Any:  # fmt: skip
        """Configurations that bring a link to poses (..., 4, 4): q, success, residual, iterations and reason.

        Several links and "center_of_mass" take poses (..., links, 4, 4). reach: "pose", "position", "orientation"
        or "pointing", the z axis alone. q0 (..., nq): the first start; seeds: (starts, nq) of later ones.
        attempts: starts for a pose. tolerance: m and rad. avoid: "auto", or pairs of geoms or links that must
        not touch. all: a list of the distinct solutions of every pose. Raises InputError.
        """
        from ..kinematics.inverse import inverse_kinematics

        return self._method(inverse_kinematics)(
            link, poses, q0, limits, seeds, attempts, tolerance, avoid, all, reach
        )
