"""The points that a link reaches: configurations within the limits, drawn at random, and where they lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..documents.pictures.picture import Figure, Pictured
from ..documents.pictures.plot import Curve, Panel
from ..errors import InputError, one_of
from ..io.files import saving
from ..io.given import Array, asked, finite, whole
from ..io.reprs import result

BANDS_ACROSS = 60  # of a picture: bands from the lowest to the highest point of each
CONFIGURATIONS_AT_A_TIME = 20_000  # configurations at a time


@result
class Workspace(Pictured):
    """Points (n, 3) of a link, m in the world, of configurations q (n, nq) within the limits of the file."""

    robot: str
    link: str
    points: Array
    q: Array

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The least and the largest x, y, z, distance from the world's origin and from its vertical axis, m."""
        x, y, z = self.points.T
        rows = {"x": x, "y": y, "z": z, "from the origin": np.linalg.norm(self.points, axis=1),
                "from the z axis": np.hypot(x, y)}  # fmt: skip
        return {name: (float(row.min()), float(row.max())) for name, row in rows.items()}

    def figure(self) -> Figure:
        """From the side, by the distance from the z axis, and from above."""
        x, y, z = self.points.T
        side, above = (_band(*pair) for pair in ((np.hypot(x, y), z), (x, y)))
        panels = [Panel("side: z over the distance from the z axis", [side], equal=True, unit="m"),
                  Panel("above: y over x", [above], equal=True, unit="m")]  # fmt: skip
        return Figure(f"Points that {self.link} of {self.robot} reaches", panels, across=2, abscissa="m")

    def save(self, path: str | Path) -> Path:
        """Writes the points as CSV."""
        with saving("points", path, (".csv",)) as file:
            np.savetxt(file, self.points, delimiter=",", header="x,y,z", comments="", fmt="%.9g")
        return Path(path)


def _band(x: Array, y: Array) -> Curve:
    """From the lowest to the highest y of each column of x; broken where there is none."""
    edges = np.linspace(x.min(), x.max() + 1e-9, BANDS_ACROSS + 1)
    column = np.clip(np.searchsorted(edges, x, "right") - 1, 0, BANDS_ACROSS - 1)
    low, high = np.full(BANDS_ACROSS, np.inf), np.full(BANDS_ACROSS, -np.inf)
    np.minimum.at(low, column, y)
    np.maximum.at(high, column, y)
    filled = np.isfinite(low)
    return Curve(
        "reached", (edges[1:] + edges[:-1]) / 2.0, np.where(filled, low, np.nan), np.where(filled, high, np.nan)
    )


@asked
def reachable_points(
    robot: Any, link: str, samples: int = 100_000, seed: int = 0, point: Any = (0.0, 0.0, 0.0)
) -> Workspace:
    """The points that a link reaches in so many random configurations within the limits of the file.

    point: m, in the link's frame. Turning joints without limits turn once. Raises InputError where the link does
    not move.
    """
    one_of("workspace: link", link, robot.link_names, InputError)
    count, rng = whole("workspace: samples", samples, 1), np.random.default_rng(whole("workspace: seed", seed, 0))
    tip = finite("workspace: point", point, (3,), InputError)
    q = robot.random(rng, count)
    poses = (
        robot.pose(q[k : k + CONFIGURATIONS_AT_A_TIME], link) for k in range(0, count, CONFIGURATIONS_AT_A_TIME)
    )
    points = np.concatenate([T[:, :3, :3] @ tip + T[:, :3, 3] for T in poses])
    if np.ptp(points, axis=0).max() < 1e-12 and count > 1:
        raise InputError(f"workspace: the point of link {link!r} does not move; name a link that joints carry")
    return Workspace(robot.name, link, points, q)
