"""The gallery of the docs: pictures of robots, each a link to its live page; made anew with the docs.

python tools/gallery.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

import drevo
from drevo import loads
from drevo.robot.view.raster import Renderer

PAGES = "live"  # the folder of the live pages, which Sphinx copies beside the others
HEAD = """# Gallery

Live pages, made when these docs were built: each is one file that draws its robot and computes by itself. Move the
sliders, let the robot go, choose a load that is drawn along the links ({doc}`how they are made </view>`).

```{raw} html
<style>.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:1.5rem}
.gallery figure{margin:0}.gallery img{width:100%;height:auto;border-radius:.5rem}</style>
<div class="gallery">
"""
CARD = """<figure><a href="../{file}"><img src="../{picture}" alt="{title}" width="480" height="360"></a>
<figcaption><a href="../{file}">{title}</a>: {about}; {size:.1f} MB</figcaption></figure>
"""
TAIL = "</div>\n```\n"


class Shown(NamedTuple):
    """A robot of the gallery, or None where its file is not installed."""

    name: str
    title: str
    about: str
    make: Callable[[], drevo.Robot | None]
    quantity: str = "inverse_dynamics"
    posture: Callable[[drevo.Robot], Any] = drevo.Robot.neutral


def two_link() -> drevo.Robot:
    """Two rods of 1 kg and 0.5 m that swing in a plane."""
    b = drevo.Builder("two-link")
    rod = {
        "axis": (0, 1, 0),
        "mass": 1.0,
        "com": (0, 0, 0.25),
        "inertia": [[1 / 48, 0, 0], [0, 1 / 48, 0], [0, 0, 0]],
    }
    b.body("upper", **rod)
    b.body("lower", "upper", origin=(0, 0, 0.5), **rod)
    return b.robot()


def installed(name: str, base: str = "fixed") -> drevo.Robot | None:
    """A robot of example-robot-data, where that is installed."""
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        return None
    found = next((str(f.locate()) for f in files if f.name == name), None)
    return drevo.load(found, base=base) if found else None


ROBOTS = (
    Shown("two-link", "A double pendulum", "two rods and all of its mass matrix", two_link, "mass_matrix",
          lambda robot: [0.6, 0.7]),
    Shown("puma560", "Puma 560", "the arm of most papers, by its published inertias", drevo.robots.puma560,
          posture=lambda robot: [0.3, -0.6, 0.3, 0.0, 0.4, 0.0]),
    Shown("panda", "Franka Panda", "an arm with its meshes", lambda: installed("panda.urdf"),
          posture=lambda robot: robot.q_of(panda_joint2=-0.5, panda_joint4=-2.2, panda_joint6=1.9)),
    Shown("go2", "Unitree Go2", "a quadruped on a free base", lambda: installed("go2.urdf", "floating")),
    Shown("biped", "A biped", "the walker of Kovalchuk's paper", lambda: drevo.load("biped", base="floating")),
    Shown("talos", "Talos", "a humanoid on a free base", lambda: installed("talos_reduced.urdf", "floating")),
    Shown("four-bar", "A four-bar linkage", "a closed loop", drevo.robots.four_bar,
          posture=lambda robot: robot.assemble([1.0, -1.0, 0.0], keep=["crank_joint"])),
)  # fmt: skip


def write(folder: Path) -> list[str]:
    """Writes index.md and the live pages, except those that are newer than all of Drevo; returns the names."""
    pages = folder / PAGES
    pages.mkdir(parents=True, exist_ok=True)
    cards = dict(_cards(pages))
    (folder / "index.md").write_text(HEAD + "".join(cards.values()) + TAIL, encoding="utf-8")
    return list(cards)


def _cards(pages: Path) -> Iterator[tuple[str, str]]:
    newest = max(x.stat().st_mtime for x in Path(drevo.__file__).parent.rglob("*") if x.suffix in (".py", ".js"))
    for x in ROBOTS:
        robot = x.make()
        if robot is None:
            print(f"gallery: without {x.title}, which example-robot-data has", file=sys.stderr)
            continue
        page, picture = pages / f"live-{x.name}.html", pages / f"live-{x.name}.png"
        if not page.exists() or page.stat().st_mtime < newest:
            robot.view(page, x.quantity, loads=() if robot.model.closed else loads.diagrams(robot))
        if not picture.exists() or picture.stat().st_mtime < newest:
            renderer = Renderer(robot, ground=None, size=(480, 360))
            Image.fromarray(renderer.picture(x.posture(robot), distance=1.6)).save(picture)
        about = f"{x.about}, {robot.nv} degrees of freedom"
        size = page.stat().st_size / 1e6
        yield (
            x.name,
            CARD.format(file=page.name, picture=picture.name, title=x.title, about=about, size=size),
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
