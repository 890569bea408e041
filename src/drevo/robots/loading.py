"""load: a robot from a file, by the name of an embedded one, or by the name of one that a package holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import MissingFileError, ModelError, nearest, shown
from ..io.given import asked
from ..model import values
from ..model.description import Model
from ..model.loaders import is_path, load_model
from ..robot.face import Robot


@asked
def load(
    source: Any,
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    strict: bool = False,
    roots: Sequence[str | os.PathLike[str]] = (),
    model: str = "",
    hulls: int = 0,
    loops: str | os.PathLike[str] | None = None,
) -> Robot:
    """A Robot from a description (.urdf .xml .mjcf .sdf .world .toml .json) or by name.

    source: a path, XML as text, an open file, a mujoco.MjSpec or MjModel, a pinocchio.Model, or a name: that of an
    embedded robot ("puma560"), or of one that an installed package holds ("panda"): `example-robot-data` or
    `robot_descriptions`; nothing is imported or downloaded.
    base: "fixed", "floating" (a free joint before the root) or "trunk" (three prismatic, three revolute).
    gravity: m/s^2, world axes; by default the file's or the embedded robot's, (0, 0, -9.81) where it has none.
    roots: folders whose files the description may name (<include>, meshes that weigh); by default the package or
    project that its file is part of, else its own folder and the folders beside it. Links do not lead out.
    model: the name of one of several models in a file.
    hulls: meshes that collide touch by at most so many corners of their convex hulls (extra `design` or scipy); by
    default they do not touch, which the notes say.
    loops: a .toml or .json file with the loops, couplings and tendons that the robot's own has no words for.
    What cannot be computed is refused with ModelError; what is doubtful, or acts on the motion and is not read,
    loads with one DrevoWarning per file, and is refused with strict=True. Missing mesh files are named there.
    """
    given: dict[str, Any] = {
        "base": base,
        "gravity": gravity,
        "strict": strict,
        "roots": roots,
        "model": model,
        "hulls": hulls,
        "loops": loops,
    }
    if not is_path(source):
        return Robot(load_model(source, **given))
    file = file_or_model(source, base, gravity)
    if isinstance(file, Model):
        if loops is not None:
            raise ModelError(f"loops stand beside a file, and {source!r} is embedded; give Builder.loop or a file")
        return Robot(file)
    name = file
    try:
        return Robot(load_model(name, **given))
    except ModelError as error:
        if os.path.lexists(name):
            if error.problems:
                error.args = (
                    f"{error}; what can be mended is, by drevo check {name} --fix -o NEW",
                    *error.args[1:],
                )
            raise
        raise MissingFileError(f"{error}{_elsewhere(Path(name).stem)}") from None


def file_or_model(source: Any, base: str = "fixed", gravity: Sequence[float] | None = None) -> str | Model:
    """The path of the file that a path or a name stands for, or the Model of an embedded robot."""
    name = values.path(source)
    if isinstance(source, str) and not Path(name).suffix and os.sep not in name and not os.path.lexists(name):
        from .. import robots

        return robots.model(name, base, gravity) if name in robots.EMBEDDED else _installed(name)
    return name


def _elsewhere(name: str) -> str:
    """A hint, for a file that does not exist, from where its robot may be had; or ""."""
    from ..io import installed
    from . import EMBEDDED

    try:
        if name in EMBEDDED or installed.find(name):
            return f"; drevo.load({name!r}) knows one of this name"
    except ModelError:
        return ""
    return "" if installed.names() else f"; {installed.GET}"


def _installed(name: str) -> str:
    """The path of a robot that a package holds."""
    from ..io import installed
    from . import EMBEDDED

    path = installed.find(name)
    if path is None:
        others = installed.names()
        near = nearest(name.lower(), [*EMBEDDED, *others])
        hint = f"; did you mean {near!r}?" if near else ""
        more = "" if others else f"; {installed.GET}"
        raise MissingFileError(
            f"{shown(name)} is neither a file nor a known robot; embedded are {', '.join(EMBEDDED)}{more}{hint}"
        )
    return str(path)
