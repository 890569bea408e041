"""load: a robot from a file or by the name of an embedded one."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path

from .errors import ModelError
from .model.loaders import load_model
from .robot import Robot


def load(
    source: str | os.PathLike[str],
    base: str = "fixed",
    gravity: Sequence[float] | None = None,
    strict: bool = False,
) -> Robot:
    """A Robot from a description (.urdf .xml .mjcf .toml .json) or by the name of an embedded robot.

    base: "fixed", "floating" (a free joint before the root) or "trunk" (three prismatic, three revolute).
    gravity: m/s^2, world axes; by default (0, 0, -9.81) for files and each embedded robot's own.
    What cannot be computed is refused with ModelError; what is doubtful loads with one DrevoWarning per file,
    and is refused with strict=True.
    """
    name = os.fspath(source)
    if not Path(name).suffix and os.sep not in name and not Path(name).exists():
        return _embedded(name, base, gravity)
    g = (0.0, 0.0, -9.81) if gravity is None else (float(gravity[0]), float(gravity[1]), float(gravity[2]))
    return Robot(load_model(name, base=base, gravity=g, strict=strict))


def _embedded(name: str, base: str, gravity: Sequence[float] | None) -> Robot:
    from dataclasses import replace

    from . import robots
    from .model.base import with_base

    if name not in robots.EMBEDDED:
        near = difflib.get_close_matches(name, robots.EMBEDDED, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(robots.EMBEDDED)
        raise ModelError(f"{name!r} is neither a file nor an embedded robot{hint}; embedded are {known}")
    model = robots.model(name)
    if gravity is not None:
        model = replace(model, gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2])))
    return Robot(with_base(model, base))
