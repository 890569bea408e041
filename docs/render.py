"""Draws the figures of the docs: python docs/render.py [NAME ...], as `loops-drift`; all without a name.

Those of loads, drives and accuracy are what the code on their pages saves.
"""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import drevo
from drevo.compiler.pages.drawing import robot_svg as mechanism
from drevo.constraint.closing import hold
from drevo.documents.pictures.plot import Curve, Panel, plot
from drevo.papers.figure import index_figure
from drevo.papers.together import growth_with_bodies
from drevo.robot.view.raster import Renderer
from drevo.simulate import Control, simulate
from drevo.walking import GAITS, draw, follow, hop, walk

HERE = Path(__file__).parent
Array = np.ndarray[Any, Any]

RODS, SECONDS, STEP, FRAME = 10, 8.0, 1e-4, 0.04
SCALE, CENTER = 240.0, (260.0, 30.0)
ARM_FRAMES = 80
TRAIL = 14  # frames that the tip leaves behind
INK, GREEN, GREY = "#1b2a33", "#0b7a5c", "#9aa5ab"
WAYS: dict[str, tuple[float, float] | None] = {
    "neither": (1e-9, 1e-9),  # gains that do nothing in 100 s
    "Baumgarte, gains 20 and 100": (20.0, 100.0),
    "projection": None,
}


# -- the chain of Yudintsev's slides, animated -----------------------------------------------------------------


def chain() -> str:
    """Ten rods that fall for eight seconds."""
    robot = drevo.robots.rod_chain(RODS)
    start = np.array([-0.25, *[0.0] * (RODS - 1)])
    moved = simulate(robot, start, duration=SECONDS, dt=STEP, every=round(FRAME / STEP))
    lowest = float(robot.potential_energy(np.array([-np.pi / 2, *[0.0] * (RODS - 1)])))
    return picture(joints(moved.q[:-1]), float(np.ptp(moved.energy)) / abs(lowest))


def joints(frames: Array) -> Array:
    """Points of the picture, (frames, rods + 1, 2)."""
    angles = np.cumsum(frames, axis=-1)
    steps = np.stack([np.cos(angles), -np.sin(angles)], -1) / RODS * SCALE
    start = np.broadcast_to(np.array(CENTER), (len(frames), 1, 2))
    return np.concatenate([start, start + np.cumsum(steps, axis=1)], axis=1)


def picture(points: Array, drift: float) -> str:
    """The animation, looping."""
    count = len(points)
    trails = [points[np.maximum(0, np.arange(k - TRAIL, k + 1)), -1] for k in range(count)]
    dots = "".join(
        f'<circle r="4" cx="{points[0, k, 0]:.0f}" cy="{points[0, k, 1]:.0f}" fill="#fff" stroke="#0b7a5c" '
        f'stroke-width="2">{_animate("cx", points[:, k, 0])}'
        f"{_animate('cy', points[:, k, 1])}</circle>"
        for k in range(RODS + 1)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 320" font-family="system-ui,sans-serif">'
        '<rect width="520" height="320" fill="#fff"/>'
        f'<path d="M{CENTER[0] - 40} {CENTER[1]}h80" stroke="#888" stroke-width="3"/>'
        f'<polyline fill="none" stroke="#c98a1b" stroke-width="2" opacity=".6">{_along(trails)}</polyline>'
        '<polyline fill="none" stroke="#0b7a5c" stroke-width="5" stroke-linecap="round" '
        f'stroke-linejoin="round" points="{_line(points[0])}">{_along(list(points))}</polyline>{dots}'
        f'<text x="12" y="308" font-size="12" fill="#444">{RODS} rods, {SECONDS:g} s; the energy drifts by '
        f"{drift:.0e} of its scale</text></svg>\n"
    )


def _animate(name: str, values: Array) -> str:
    text = ";".join(f"{x:.0f}" for x in values)
    return f'<animate attributeName="{name}" dur="{SECONDS:g}s" repeatCount="indefinite" values="{text}"/>'


def _along(lines: list[Array]) -> str:
    text = ";".join(_line(line) for line in lines)
    return f'<animate attributeName="points" dur="{SECONDS:g}s" repeatCount="indefinite" values="{text}"/>'


def _line(points: Array) -> str:
    return " ".join(f"{x:.0f},{y:.0f}" for x, y in points)


# -- robots with closed loops ------------------------------------------------------------------------------------


def point(robot: drevo.Robot, q: Array, link: str, at: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
    """A point of a link in the world."""
    pose = robot.pose(q, link)
    return np.asarray(pose[..., :3, :3] @ np.array(at) + pose[..., :3, 3])


def four_bar() -> list[str]:
    """The linkage, and the way of the middle of its coupler through one turn."""
    robot = drevo.robots.four_bar()
    turn = np.zeros((73, 3))
    for k in range(1, 73):  # each from its neighbour, so that it bends the same way all round
        turn[k] = robot.assemble(turn[k - 1] + [np.pi / 36, -np.pi / 36, 0.0], keep=["crank_joint"])
    q = turn[8]
    joints = [point(robot, q, n) for n in ("crank", "coupler")]
    joints += [point(robot, q, "rocker", (-0.1, 0.0, 0.5)), point(robot, q, "rocker")]
    flat = [(30 + 250 * p[0], 190 - 250 * p[2]) for p in joints]
    way = [(30 + 250 * p[0], 190 - 250 * p[2]) for p in point(robot, turn, "coupler", (0.25, 0.0, 0.15))]
    return [line(way, GREEN, 1.5, "4 3"), line(flat, INK, 5), *dots(flat)]


def seen(p: Array, x: float, y: float, scale: float) -> tuple[float, float]:
    """A point in an oblique view from the front left."""
    return x + scale * (p[1] + 0.35 * p[0]), y - scale * (p[2] + 0.22 * p[0])


def stewart() -> list[str]:
    """The platform, raised and tilted, with its legs closed."""
    robot = drevo.robots.stewart()
    q = robot.neutral()
    q[:7] = 0.05, -0.08, 0.1, *np.array([0.1, -0.05, 0.15, 1.0]) / np.linalg.norm([0.1, -0.05, 0.15, 1.0])
    q = robot.assemble(q, keep=["platform_joint"])
    round_it = (2, 1, 4, 3, 6, 5)
    feet = [point(robot, q, f"leg{k}_lower") for k in round_it]
    heads = [point(robot, q, f"leg{k}_upper") for k in round_it]

    def view(points: Iterable[Array]) -> list[tuple[float, float]]:
        return [seen(p, 390, 205, 115) for p in points]

    legs = [line(view((a, b)), INK, 4) for a, b in zip(feet, heads)]
    rings = line(view([*feet, feet[0]]), GREY, 2), line(view([*heads, heads[0]]), GREEN, 5)
    return [rings[0], *legs, rings[1], *dots(view([*feet, *heads]))]


def two_arm() -> list[str]:
    """Both arms and the box between the hands."""
    robot = drevo.robots.two_arm()
    q, out = robot.neutral(), []

    def view(points: Iterable[Array]) -> list[tuple[float, float]]:
        return [seen(p, 610, 330, 260) for p in points]

    for side, s in (("left", 1.0), ("right", -1.0)):
        names = ("shoulder", "forearm", "hand")
        chain = [point(robot, q, f"{side}_{n}") for n in names]
        chain.append(point(robot, q, f"{side}_hand", (0.1, -0.1 * s, 0.0)))
        out += [line(view(chain), INK, 5), *dots(view(chain))]
    round_it = ((-0.1, -0.15), (-0.1, 0.15), (0.1, 0.15), (0.1, -0.15))
    corners = [(x, y, z) for z in (-0.05, 0.05) for x, y in round_it]
    box = view(point(robot, q, "box", c) for c in corners)
    sides = [line([*box[k : k + 4], box[k]], GREEN, 2.5) for k in (0, 4)]
    return [*out, *sides, *(line([box[k], box[k + 4]], GREEN, 2.5) for k in range(4))]


# -- how well 100 s keep closed loops ---------------------------------------------------------------------------


def springs(t: Any, q: Any, v: Any) -> list[Any]:
    """1 kN/m in every leg of the Stewart platform."""
    efforts: list[Any] = [0.0] * 24
    for k in range(6):
        efforts[8 + 3 * k] = -1000.0 * q[9 + 3 * k]
    return efforts


def drift(name: str) -> Panel:
    """The largest gap of each second."""
    robot = drevo.load(name)
    law = None if name == "four-bar" else Control(springs)
    v0 = np.zeros(robot.nv) if law is None else np.r_[0.3, -0.2, 0.1, 0.5, 0.4, -0.6, np.zeros(18)]
    q0, v0 = hold(robot, robot.neutral(), v0)
    seconds, curves = np.arange(100) + 0.5, []
    for way, stabilise in WAYS.items():
        table = simulate(robot, q0, v0, law, duration=100.0, dt=1e-3, every=20, stabilise=stabilise)
        gaps = np.abs(table.gaps[0]).max(axis=1)[1:].reshape(100, 50).max(axis=1)
        curves.append(Curve(way, seconds, np.maximum(gaps, 1e-16)))
    return Panel(f"{name}: largest gap of each second, m", curves, log=True)


# -- SVG --------------------------------------------------------------------------------------------------------


def line(points: Sequence[tuple[float, float]], color: str, width: float, dash: str = "") -> str:
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    more = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{d}" fill="none" stroke="{color}" stroke-width="{width}" stroke-linejoin="round"{more}/>'


def dots(points: Iterable[tuple[float, float]]) -> list[str]:
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#fff" stroke="{INK}" stroke-width="2"/>' for x, y in points
    ]


def text(x: float, y: float, words: str, anchor: str = "middle", color: str = INK) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def page(width: int, high: int, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {high}" font-family="system-ui,sans-serif"'
    )
    return f'{head} font-size="13"><rect width="{width}" height="{high}" fill="#fff"/>{"".join(parts)}</svg>\n'


# -- an arm that moves, on the home page ----------------------------------------------------------------------


def arm() -> bytes:
    """A Panda whose hand goes along a figure of eight, by the closed form of its inverse kinematics."""
    robot, link, redundant = drevo.load("panda"), "panda_hand_tcp", "panda_joint7"
    start = robot.q_of(panda_joint2=-0.5, panda_joint4=-2.2, panda_joint6=1.9, panda_joint7=0.8)
    poses = np.repeat(robot.pose(start, link)[None], ARM_FRAMES, 0)
    turn = np.linspace(0.0, 2.0 * np.pi, ARM_FRAMES, endpoint=False)
    poses[:, 1, 3] += 0.32 * np.sin(turn)
    poses[:, 2, 3] += 0.16 * np.sin(2.0 * turn)
    motion = robot.inverse_kinematics_path(link, poses, start, **{redundant: 0.8})
    assert np.abs(robot.pose(motion, link) - poses).max() < 1e-12
    camera = {"azimuth": -0.5, "elevation": 0.25, "distance": 1.2, "target": (0.2, 0.0, 0.42)}
    return film(robot, motion, (600, 420), 50, **camera)


def standing() -> bytes:
    """A Go1 that stands by its regulator under four pushes, by the lines of the page."""
    words = (HERE / "control.md").read_text(encoding="utf-8").partition("### Standing on a ground")[2]
    code, scope = re.findall(r"^```python\n(.*?)^```", words, re.MULTILINE | re.DOTALL)[0], dict[str, Any]()
    with redirect_stdout(None):
        exec("from drevo.control import *; from drevo.simulate import Control; import drevo, numpy as np", scope)
        exec(compile(code, "control.md", "exec"), scope)
    motion = np.concatenate([scope["motion"].q[:50:2, k] for k in range(4)])
    camera = {"azimuth": 0.7, "elevation": 0.2, "distance": 1.25, "target": (0.0, 0.0, 0.17)}
    return film(scope["go1"], motion, (480, 320), 40, **camera)


def film(robot: drevo.Robot, motion: Any, size: tuple[int, int], duration: int, **camera: Any) -> bytes:
    """States as an animated picture; duration: of each, ms."""
    from PIL import Image

    renderer = Renderer(robot, size=size)
    frames = [Image.fromarray(renderer.picture(q, **camera)) for q in motion]
    out = io.BytesIO()
    frames[0].save(
        out, "webp", save_all=True, append_images=frames[1:], duration=duration, loop=0, quality=45, method=6
    )
    return out.getvalue()


# -- all figures ------------------------------------------------------------------------------------------------


def loops() -> str:
    """The robots with closed loops."""
    names = [text(x, 260, n) for x, n in ((110, "four-bar"), (390, "stewart"), (665, "two-arm"))]
    return page(780, 275, [*four_bar(), *stewart(), *two_arm(), *names])


def loops_drift() -> str:
    """Gaps over 100 s by the ways to keep them."""
    return plot("gaps of closed loops", [drift("four-bar"), drift("stewart")], 2, "seconds", shared=True)


def biped(gait: str, title: str = "", **given: Any) -> str:
    """Six steps, as `drevo walk biped -o walk.svg` draws them."""
    robot = drevo.load("biped", base="floating")
    return draw(walk(robot, 6, GAITS[gait], **given), title or f"{robot.name}: 6 steps, {gait} gait")


def biped_hop() -> str:
    """The hop of the page."""
    return draw(follow(hop(drevo.load("biped", base="floating")), gain=8.0), "biped: a hop")


@cache
def saved(page: str) -> dict[str, str]:
    """What the Python blocks of a page save, by name."""
    code = re.findall(
        r"^```python\n(.*?)^```", (HERE / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as room, redirect_stdout(None):
        os.chdir(room)
        try:
            exec(compile("\n".join(code), page, "exec"), {"__name__": "docs"})
            return {p.name: p.read_text(encoding="utf-8") for p in Path(room).glob("*.svg")}
        finally:
            os.chdir(here)


FIGURES: dict[str, Callable[[], str]] = {
    "chain": chain,
    "loops": loops,
    "loops-drift": loops_drift,
    "biped-dynamic": lambda: biped("dynamic"),
    "biped-static": lambda: biped("static"),
    "biped-hop": biped_hop,
    "biped-push": lambda: biped("dynamic", "biped: a push of 4 N s to the left, it stands", push=(0.0, 4.0)),
    "biped-patch": lambda: biped("dynamic", "biped: a place of friction 0.2, it falls", patch=0.2),
    "loads-panda": lambda: saved("loads.md")["loads-panda.svg"],
    "drives-panda": lambda: saved("loads.md")["drives-panda.svg"],
    "accuracy-puma": lambda: saved("accuracy.md")["accuracy-puma.svg"],
    "telegin-three-link": lambda: mechanism(drevo.load("three-link"), letters={}),
    "telegin-two-arm-planar": lambda: mechanism(drevo.load("two-arm-planar"), letters={}),
    "telegin-two-arm-spatial": lambda: mechanism(drevo.load("two-arm-spatial"), letters={}),
    "kovalchuk-figure-1": lambda: index_figure(drevo.load("biped", base="trunk"), "pelvis"),
    "together-growth": lambda: growth_with_bodies()[1],
}


FILMS: dict[str, Callable[[], bytes]] = {"arm": arm, "standing": standing}


def main(names: Sequence[str]) -> None:
    for name in names or (*FIGURES, *FILMS):
        target = HERE / f"{name}.{'webp' if name in FILMS else 'svg'}"
        target.write_bytes(FILMS[name]() if name in FILMS else FIGURES[name]().encode())
        print(f"{target.name}: {target.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(sys.argv[1:])
