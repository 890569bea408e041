"""A robot as a file, and as the models of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..io.given import asked_methods
from ..model.description import Model

if TYPE_CHECKING:
    from os import PathLike


@asked_methods
class AsFiles:
    """Texts and models that a robot gives: URDF, MJCF, SDF, TOML, JSON, and models of MuJoCo and Pinocchio."""

    model: Model

    def save(self, path: str | PathLike[str], lossy: bool = False) -> str:
        """The robot as a file that `drevo.load` reads, .urdf, .xml (MJCF), .sdf, .toml or .json; returns the text.

        Joints that a format lacks are chains there (JOINT_1, JOINT_2 over massless links), mimic joints are
        equalities in MJCF. What acts on the motion and cannot be said is refused with ModelError, or left out with
        lossy=True; one DrevoWarning lists all that is left out. The text is loaded again before it is kept: M x,
        bias and passive forces at 100 states must agree to 1e-12. The file carries their digest.
        """
        from .saving import save

        return save(self.model, path, lossy)

    def to_urdf(self, path: str | PathLike[str] | None = None) -> str:
        """The robot as URDF text, with a path what `save` keeps there."""
        return self._text(".urdf") if path is None else self.save(path)

    def to_toml(self, path: str | PathLike[str] | None = None) -> str:
        """The robot as TOML text, every number exact, with a path what `save` keeps there."""
        return self._text(".toml") if path is None else self.save(path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The robot as JSON text, every number exact, with a path what `save` keeps there."""
        return self._text(".json") if path is None else self.save(path)

    def _text(self, suffix: str) -> str:
        from .saving import as_text

        return as_text(self.model, suffix)

    def to_mujoco(self, lossy: bool = False) -> Any:
        """The robot as a mujoco.MjSpec that compiles, joints by their names; refusals and `lossy` as in `save`."""
        from .saving import to_mujoco

        return to_mujoco(self.model, lossy)

    def to_pinocchio(self, lossy: bool = False) -> Any:
        """The robot as a pinocchio.Model with armature, damping, friction, gravity and a frame for every link.

        Joints stand depth first, those of several coordinates as chains (JOINT_1, ...); angles are one number.
        Springs and closed loops are refused, or with lossy=True left out with one DrevoWarning.
        """
        from .saving import to_pinocchio

        return to_pinocchio(self.model, lossy)
