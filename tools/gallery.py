"""The gallery of the docs: drawings of robots, each a link to its live page; made anew with the docs.

python tools/gallery.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import drevo
from drevo import loads

PAGES = "live"  # the folder of the live pages, which Sphinx copies beside the others
HEAD = """# Gallery

Live pages, made when these docs were built: each is one file that draws its robot and computes by itself. Move the
sliders, let the robot go, choose a load that is drawn along the links ({doc}`how they are made </view>`).

```{raw} html
<style>.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(17rem,1fr));gap:1.5rem}
.gallery figure{margin:0}.gallery svg{width:100%;height:auto}</style>
<div class="gallery">
"""
CARD = """<figure><a href="../{file}">{svg}</a>
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
    Shown("two-link", "A double pendulum", "two rods and all of its mass matrix", two_link, "mass_matrix"),
    Shown("puma560", "Puma 560", "the arm of most papers, by its published inertias", drevo.robots.puma560),
    Shown("panda", "Franka Panda", "an arm with its meshes", lambda: installed("panda.urdf")),
    Shown("go2", "Unitree Go2", "a quadruped on a free base", lambda: installed("go2.urdf", "floating")),
    Shown("biped", "A biped", "the walker of Kovalchuk's paper", lambda: drevo.load("biped", base="floating")),
    Shown("talos", "Talos", "a humanoid of 38 freedoms", lambda: installed("talos_reduced.urdf", "floating")),
    Shown("four-bar", "A four-bar linkage", "its tree, with the loop opened", drevo.robots.four_bar),
)


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
        page = pages / f"live-{x.name}.html"
        if not page.exists() or page.stat().st_mtime < newest:
            robot.view(page, x.quantity, loads=() if robot.model.closed else loads.diagrams(robot))
        svg = robot.draw().svg.replace("\n", " ")
        about = f"{x.about}, {robot.nv} freedoms" if "freedoms" not in x.about else x.about
        yield (
            x.name,
            CARD.format(file=page.name, svg=svg, title=x.title, about=about, size=page.stat().st_size / 1e6),
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
