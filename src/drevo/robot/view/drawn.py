"""A robot as a drawing of poles, axes and centres of mass: SVG."""

from __future__ import annotations

import tempfile
import webbrowser
from os import PathLike
from pathlib import Path

from numpy.typing import ArrayLike

from ...compiler.pages.drawing import robot_svg
from ...errors import InputError
from ...io.files import saving
from ...mechanics.configuration import state
from ...model.description import Model

ENDING = ".svg"


class Drawn:
    """SVG text: `svg`. Notebooks show it, `save` writes it, `show` opens it in the viewer of this machine."""

    def __init__(self, model: Model, q: ArrayLike | None = None) -> None:
        given = None if q is None else state(model, "draw", q=q)[0]
        if given is not None and given.shape != (model.nq,):
            raise InputError(f"draw: q must be one configuration, ({model.nq},), not {given.shape}")
        self.name = model.name
        self.svg = robot_svg(model, None if given is None else given.tolist())

    def __repr__(self) -> str:
        return f"<Drawing of {self.name!r}: {len(self.svg)} characters of SVG; show() opens it>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Writes the drawing to an .svg file and returns its path."""
        with saving("a drawing", path, (ENDING,)) as file:
            file.write_text(self.svg, encoding="utf-8", newline="\n")
        return Path(path)

    def show(self) -> Path:
        """Opens the drawing in the viewer of this machine, from a file of its own; returns its path."""
        file = self.save(Path(tempfile.mkdtemp(prefix="drevo-")) / f"robot{ENDING}")
        webbrowser.open(file.as_uri())
        return file
