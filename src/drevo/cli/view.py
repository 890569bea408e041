"""drevo view: a robot to look at, in a window or as a live page."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from .common import STATE, Base, Json, RobotName, guarded, load_robot, option, print_json, vector_in

if TYPE_CHECKING:
    from ..robot.face import Robot
    from ..robot.view.panels import LinkSections


@guarded
def view(
    robot: RobotName,
    export: Annotated[
        Path | None,
        option(
            "A live page to write instead, .html, which needs no network; a drawing, .svg; or a picture, .png.",
            "-o",
            "--output",
            "-e",
            "--export",
        ),
    ] = None,
    quantity: Annotated[str, option("Whose equations stand on the page.")] = "inverse_dynamics",
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    q: Annotated[str | None, option(f"Where the robot stands at first, rad or m: {STATE}neutral.")] = None,
    port: Annotated[int, option("The port of the window; 0 is any that is free.")] = 0,
    browser: Annotated[bool, option("Open the browser too.", "--open")] = False,
    base: Base = "fixed",
    as_json: Json = False,
) -> None:
    """Show a robot: sliders, matrices, motions, in the browser of this machine; or a page with its equations."""
    from ..io.files import ready

    arm = load_robot(robot, base)
    start = vector_in(arm, "q", q)
    if export is not None:
        ready("a robot to look at", export, (".html", ".htm", ".svg", ".png"))
    else:
        window = arm.view(q=start, port=port, loads=_loads(arm))
        said = json.dumps({"address": window.address}) if as_json else f"{arm.name} is shown at {window.address}"
        print(said if as_json else f"{said}\nCtrl+C ends it", flush=True)
        if browser:
            webbrowser.open(window.address)
        return window.wait()
    drawn = export.suffix.lower() in (".svg", ".png")
    if drawn:
        page = _drawn(arm, start, export)
    else:
        options: dict[str, Any] = {"link": link} if link else {}
        page = arm.view(export, quantity, q=start, loads=_loads(arm), **options)
    if as_json:
        print_json({"file": str(page), "bytes": page.stat().st_size})
    else:
        print(page if drawn else f"{page}: {page.stat().st_size / 1e6:.1f} MB; open it in a browser")
    if browser:
        webbrowser.open(page.resolve().as_uri())


def _loads(robot: Robot) -> Sequence[LinkSections]:
    """Load diagrams to draw along the links, of open robots; empty for robots with closed loops."""
    from ..loads import diagrams

    return () if robot.model.closed else diagrams(robot)


def _drawn(robot: Robot, q: Any, path: Path) -> Path:
    """A drawing as SVG, or the picture of the plain renderer."""
    if path.suffix.lower() == ".svg":
        return robot.draw(q).save(path)
    from ..io.files import saving
    from ..io.packages import package
    from ..robot.view.raster import Renderer

    pixels = Renderer(robot, ground=None, size=(1200, 900)).picture(q, distance=1.4)
    with saving("a picture", path, (".png",)) as file:
        package("PIL.Image", "a picture", "pillow").fromarray(pixels).save(file, format="png")
    return path
