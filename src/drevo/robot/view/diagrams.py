"""Diagrams of loads along links, drawn on the robot: what sections carry at rest, from tables made beforehand.

Of a section the table has the mass and the first moment of what the link itself has beyond it, and which joints
stand beyond it; what hangs on these hands on the wrench of its joint. All of it is of the robot at rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...io.given import Array
from ...model.description import Model
from .figure import link_rows

KINDS = {"N": ("axial force N", "N"), "Q": ("shear Q", "N"), "T": ("torsion T", "N m"), "M": ("bending M", "N m")}
REACH = 0.16  # of the robot's size: the longest ordinate


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
    found = tuple(tables) if isinstance(tables, (tuple, list)) else (None,)
    if not all(isinstance(t, LinkSections) and t.link in names for t in found):
        raise InputError("view: loads is what drevo.loads.diagrams makes of the same robot")
    return found


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
