"""Pictures of an environment: by the plain renderer, or in a window of the browser."""

from __future__ import annotations

from typing import Any

from ..io.given import Array
from ..robot.view.raster import Renderer

RENDER_MODES = ("rgb_array", "human")


class Picture:
    """The robot of an environment as it is drawn."""

    def __init__(self, robot: Any, ground: Any) -> None:
        self.robot, self.renderer = robot, Renderer(robot, ground)
        self.window: Any = None

    def shown(self, q: Array, window: bool) -> Array | None:
        """A picture, or None where a window shows it."""
        if not window:
            return self.renderer.picture(q)
        if self.window is None:
            self.window = self.robot.view(q)
        self.window.q = q
        return None

    def close(self) -> None:
        if self.window is not None:
            self.window.close()
