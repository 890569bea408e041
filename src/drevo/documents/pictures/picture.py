"""Pictures of results: said once as panels of curves, drawn as SVG without a library, or by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from ...io.files import PICTURES, saving
from ...io.given import asked_methods
from ...io.packages import package
from ...io.reprs import result
from .plot import COLOURS, Curve, Panel, plot

HIGH, WIDE = 2.4, 4.6  # inches of a frame, one across and several


@result
class Figure:
    """Panels in rows of `across`, with a title and what stands along their abscissas."""

    title: str
    panels: Sequence[Panel]
    across: int = 1
    abscissa: str = ""
    shared: bool = False


@asked_methods
class Pictured:
    """A result that has a picture: gives `figure`, and has it as SVG, in notebooks, and from matplotlib."""

    def figure(self) -> Figure:
        """The figure that the picture shows: its title and panels."""
        raise NotImplementedError

    def svg(self) -> str:
        """The picture as SVG."""
        f = self.figure()
        return plot(f.title, f.panels, f.across, f.abscissa, f.shared)

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """The picture as a matplotlib.figure.Figure (drevo[view] has it), or saved where a path is given.

        path: FILE.svg, which needs no library, FILE.png or FILE.pdf. Raises InputError.
        """
        if path is None:
            return in_matplotlib(self.figure())
        with saving("a picture", path, PICTURES) as file:
            if (ending := file.suffix.lower()) == ".svg":
                file.write_text(self.svg(), encoding="utf-8")
            else:
                in_matplotlib(self.figure()).savefig(file, format=ending[1:])

    def _repr_html_(self) -> str:
        return self.svg()


def in_matplotlib(f: Figure) -> Any:
    """A matplotlib figure, of no backend: notebooks show it, and savefig writes it."""
    figures = package("matplotlib.figure", "plot", "matplotlib")
    rows = -(-len(f.panels) // f.across)
    size = (max(8.0, WIDE * f.across), HIGH * rows + 0.6)
    made = figures.Figure(figsize=size, layout="constrained")
    made.suptitle(f.title)
    grid = made.subplots(rows, f.across, squeeze=False, sharey=f.shared).ravel()
    for axes, panel in zip(grid, f.panels):
        _panel(axes, panel)
    for axes in grid[len(f.panels) :]:
        axes.remove()
    for axes in grid[: len(f.panels)][-f.across :]:
        axes.set_xlabel(f.abscissa)
    return made


def _panel(axes: Any, panel: Panel) -> None:
    axes.set_title(panel.title, fontsize="medium")
    axes.set_ylabel(panel.unit)
    for area in panel.areas:
        axes.fill(*np.asarray(area, float).T, color="0.5", alpha=0.15)
    for k, curve in enumerate(panel.curves):
        _curve(axes, curve, COLOURS[k % len(COLOURS)])
    if panel.log:
        axes.set_yscale("log")
    if panel.equal:
        axes.set_aspect("equal", adjustable="datalim")
    axes.grid(alpha=0.3)
    if len(panel.curves) > 1:
        axes.legend(fontsize="x-small", loc="best")


def _curve(axes: Any, curve: Curve, colour: str) -> None:
    x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
    if curve.high is None:
        axes.plot(x, y, color=colour, label=curve.name, marker="." if len(x) == 1 else None)
    else:
        axes.fill_between(x, y, np.asarray(curve.high, float), color=colour, alpha=0.25, label=curve.name)
