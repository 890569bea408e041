"""Panels beside the robot in a window: matrices as colours, bars, a pose, counts; arrays and HTML.

Diagrams of loads in a window: hatched along every link, a choice of what it shows, a table of the largest.

Diagrams of loads along links, drawn on the robot: what sections carry at rest, from tables made beforehand.

Of a section the table has the mass and the first moment of what the link itself has beyond it, and which joints
stand beyond it; what hangs on these hands on the wrench of its joint. All of it is of the robot at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ...errors import InputError
from ...io.given import Array
from ...model.description import Model
from .figure import SceneRobot, link_rows

DECADES = 6.0  # of a matrix that its colours tell apart
PAPER, POSITIVE, NEGATIVE = (np.array(x, float) for x in ((246, 248, 250), (11, 122, 117), (179, 69, 44)))
PIXELS = 360


def heat(M: Array) -> Array:
    """A square matrix as an image, (h, w, 3) of uint8: depth of colour by decades, red where negative."""
    size = np.abs(M)
    top = float(size.max(initial=0.0)) or 1.0
    with np.errstate(divide="ignore"):
        share = np.where(size > 0.0, np.clip(1.0 + np.log10(size / top) / DECADES, 0.06, 1.0), 0.0)
    ink = np.where(M[..., None] < 0.0, NEGATIVE, POSITIVE)
    image = PAPER + share[..., None] * (ink - PAPER)
    each = max(2, PIXELS // max(1, len(M)))
    image = image.repeat(each, 0).repeat(each, 1)
    image[::each], image[:, ::each] = 255.0, 255.0
    pixels: Array = image.astype(np.uint8)
    return pixels


def bar_table(names: Sequence[str], values: Array, most: float) -> str:
    """Numbers as bars about zero."""
    rows = []
    for name, y in zip(names, values):
        part = 50.0 * min(1.0, abs(y) / most) if most else 0.0
        left = 50.0 - part if y < 0 else 50.0
        lane = (
            '<div style="position:relative;height:.9em;width:7rem;border-left:1px solid #8884">'
            f'<div style="position:absolute;height:100%;left:{left:.2f}%;width:{part:.2f}%;background:#0b7a75">'
            "</div></div>"
        )
        rows.append((escape(name), lane, f"{y:.4g}"))
    return lines(rows)


def lines(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells; the last of them stand to the right."""
    cell = '<td style="padding:0 .5rem 0 0;text-align:{}">{}</td>'
    body = "".join(
        "<tr>" + "".join(cell.format("left" if k == 0 else "right", x) for k, x in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<table style="font-size:.8rem;font-variant-numeric:tabular-nums">{body}</table>'


def pose_table(T: Array) -> str:
    """R | p of a pose (4, 4)."""
    return lines([[f"{x:.4f}" for x in row] for row in T[:3]])


def counted(functions: Iterable[Any]) -> str:
    """Operations of compiled functions."""
    rows: list[tuple[str, ...]] = [("", "mul", "add", "trig")]
    for f in functions:
        c = f.counts
        rows.append((escape(f.name.replace("_", " ")), *(str(c.get(k, "")) for k in ("mul", "add", "trig"))))
    return lines(rows)


def manipulability_ellipsoid(J: Array) -> tuple[float, Array, Array]:
    """Manipulability sqrt det J J^T of the linear rows (3, nv) of a Jacobian, and the half axes (3,) and axes of
    the ellipsoid of velocities that rates of length 1 make."""
    square, axes = np.linalg.eigh(J @ J.T)
    half = np.sqrt(np.maximum(square, 0.0))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    return float(half.prod()), half, axes


DIAGRAM_KINDS = {
    "N": ("axial force N", "N"),
    "Q": ("shear Q", "N"),
    "T": ("torsion T", "N m"),
    "M": ("bending M", "N m"),
}
ORDINATE = 0.16  # of the robot's size: the longest ordinate


@dataclass(frozen=True, eq=False)
class LinkSections:
    """Sections of one link, in its axes. places (k, 3) m, axes (3, 3): centres; x along the span, y, z as columns.
    parts (k, 4): mass kg and first moment kg m beyond them. children: those that hang on the link, each with (k,)
    1 where its joint is beyond a section, less 1 where sections carry the piece behind the joint."""

    link: str
    places: Array
    axes: Array
    parts: Array
    children: Mapping[str, Array]


def checked_tables(model: Model, tables: Sequence[LinkSections]) -> tuple[LinkSections, ...]:
    """The tables, of this robot."""
    names = {link.name for link in model.links}
    given_tables = tuple(tables) if isinstance(tables, (tuple, list)) else (None,)
    if not all(isinstance(t, LinkSections) and t.link in names for t in given_tables):
        raise InputError("view: loads is what drevo.loads.diagrams makes of the same robot")
    return given_tables


def loads_at(s: LinkSections, poses: Mapping[str, Array], wrenches: Mapping[str, Array], gravity: Array) -> Array:
    """Loads (k, 6) in section axes, as `drevo.loads.section_loads` has them; poses (4, 4) of links, world axes."""
    T = poses[s.link]
    weight = T[:3, :3].T @ gravity
    force, moment = -s.parts[:, :1] * weight, -np.cross(s.parts[:, 1:], weight)
    for child, beyond in s.children.items():
        W, arm = wrenches[child], poses[child][:3, 3] - T[:3, 3]
        f, n = T[:3, :3].T @ W[:3], T[:3, :3].T @ (W[3:] + np.cross(arm, W[:3]))
        force, moment = force + beyond[:, None] * f, moment + beyond[:, None] * n
    return np.hstack([force @ s.axes, (moment - np.cross(s.places, force)) @ s.axes])


def ordinates(loads: Array, kind: str) -> tuple[Array, Array]:
    """Values (k,) of N (tension is positive), Q, T or M, and to where they are drawn (k, 2), y and z: N along y,
    T along z, Q the way it acts, M on the side that it stretches."""
    F, Vy, Vz, T, My, Mz = loads.T
    zero = np.zeros_like(F)
    values, to = {
        "N": (-F, (-F, zero)), "T": (T, (zero, T)), "Q": (np.hypot(Vy, Vz), (Vy, Vz)),
        "M": (np.hypot(My, Mz), (Mz, -My)),
    }[kind]  # fmt: skip
    return values, np.stack(to, axis=-1)


def page_tables(model: Model, tables: Sequence[LinkSections]) -> list[dict[str, Any]]:
    """The tables as a page takes them."""
    rows, numbers = link_rows(model)[0], {link.name: k for k, link in enumerate(model.links)}
    return [
        {
            "link": numbers[s.link], "places": s.places.tolist(), "axes": s.axes.tolist(),
            "parts": s.parts.tolist(), "children": [
                {"row": rows[c], "link": numbers[c], "beyond": x.tolist()} for c, x in s.children.items()
            ],
        }
        for s in tables
    ]  # fmt: skip


COLOUR = (179, 69, 44)
NOTHING = "nothing"


class Ribbons:
    """The diagrams of the loads at rest along the links, in a window."""

    def __init__(
        self, server: Any, scene: SceneRobot, tables: Sequence[LinkSections], changed: Callable[[], None]
    ):
        gui, self.scene, self.tables = server.gui, scene, tables
        labels = {NOTHING: "", **{text: kind for kind, (text, _) in DIAGRAM_KINDS.items()}}
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
        drawn = [ordinates(loads_at(t, self.scene.places, wrenches, gravity), self.on) for t in self.tables]
        largest = [float(y[np.abs(y).argmax()]) for y, _ in drawn]
        most, (text, unit) = max(map(abs, largest)), DIAGRAM_KINDS[self.on]
        scale = ORDINATE * self.scene.size / (most or 1.0)
        for t, node, (_, to) in zip(self.tables, self.nodes, drawn):
            node.points = _hatched(t.places, t.places + scale * to @ t.axes[:, 1:].T)
        self.text.content = (
            f"<p style='font-size:.8rem'>{text}, {unit}: the largest of each link, at rest where it stands. The "
            f"longest ordinate is {most:.4g} {unit}.</p>"
            + bar_table([t.link for t in self.tables], np.array(largest), most)
        )


def _hatched(places: Array, ends: Array) -> Array:
    """Ordinates and the line through their ends, as segments (2 k - 1, 2, 3)."""
    edge, ordinate = np.stack([ends[:-1], ends[1:]], axis=1), np.stack([places, ends], axis=1)
    return np.concatenate([edge, ordinate]).astype(np.float32)
