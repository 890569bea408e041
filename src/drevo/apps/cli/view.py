"""drevo view: a robot to look at, as a live page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from .common import Base, RobotName, guarded, load_robot, numbers_in, option


@guarded
def view(
    robot: RobotName,
    export: Annotated[
        Path, option("The live page to write, .html: one file that needs no network.", "-e", "--export")
    ],
    quantity: Annotated[str, option("Whose equations stand on the page.")] = "inverse_dynamics",
    link: Annotated[str, option("The link, for quantities of one link such as pose and jacobian.")] = "",
    q: Annotated[str | None, option("Where the robot stands at first: numbers with commas between them.")] = None,
    base: Base = "fixed",
) -> None:
    """Draw a robot on a page with sliders, its matrices, a motion and equations that show their values."""
    found = load_robot(robot, base)
    options: dict[str, Any] = {"link": link} if link else {}
    page = found.view(export, quantity, numbers_in("--q", q, found.nq), **options)
    print(f"{page}: {page.stat().st_size / 1e6:.1f} MB; open it in a browser")
