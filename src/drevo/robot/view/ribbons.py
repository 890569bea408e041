"""Diagrams of loads in a window: hatched along every link, a choice of what it shows, a table of the largest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...io.given import Array
from . import panels
from .diagrams import KINDS, REACH, LinkSections, loads_at, ordinates
from .scene import SceneRobot

COLOUR = (179, 69, 44)
NOTHING = "nothing"


class Ribbons:
    """The diagrams of the loads at rest along the links, in a window."""

    def __init__(
        self, server: Any, scene: SceneRobot, tables: Sequence[LinkSections], changed: Callable[[], None]
    ):
        gui, self.scene, self.tables = server.gui, scene, tables
        labels = {NOTHING: "", **{text: kind for kind, (text, _) in KINDS.items()}}
        choice = gui.add_dropdown("along the links", tuple(labels), initial_value=NOTHING)
        self.on = ""

        def chosen(event: Any) -> None:
            self.on = labels[event.target.value]
            changed()

        choice.on_update(chosen)
        self.text = gui.add_html("")
        names = [link.name for link in scene.model.links]
        thick = {"thickness": scene.size / 300, "visible": False}
        self.nodes = [
            server.scene.add_line_segments(
                f"/links/{names.index(t.link)}/loads", _hatched(t.places, t.places), COLOUR, **thick
            )
            for t in tables
        ]

    def show(self, wrenches: Mapping[str, Array], gravity: Array) -> None:
        """The diagrams at the poses of the scene; wrenches (6,) in the joints of links, world axes."""
        for node in self.nodes:
            node.visible = bool(self.on)
        if not self.on:
            self.text.content = ""
            return
        found = [ordinates(loads_at(t, self.scene.places, wrenches, gravity), self.on) for t in self.tables]
        largest = [float(y[np.abs(y).argmax()]) for y, _ in found]
        most, (text, unit) = max(map(abs, largest)), KINDS[self.on]
        scale = REACH * self.scene.size / (most or 1.0)
        for t, node, (_, to) in zip(self.tables, self.nodes, found):
            node.points = _hatched(t.places, t.places + scale * to @ t.axes[:, 1:].T)
        self.text.content = (
            f"<p style='font-size:.8rem'>{text}, {unit}: the largest of each link, at rest where it stands. The "
            f"longest ordinate is {most:.4g} {unit}.</p>"
            + panels.bar_table([t.link for t in self.tables], np.array(largest), most)
        )


def _hatched(places: Array, ends: Array) -> Array:
    """Ordinates and the line through their ends, as segments (2 k - 1, 2, 3)."""
    edge, ordinate = np.stack([ends[:-1], ends[1:]], axis=1), np.stack([places, ends], axis=1)
    return np.concatenate([edge, ordinate]).astype(np.float32)
