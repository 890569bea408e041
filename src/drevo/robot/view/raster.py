"""A plain renderer: a robot as an array of pixels, without a display, by triangles from far to near."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...io.given import Array
from ...io.packages import package
from ...mechanics.configuration import neutral
from .figure import link_rows
from .mesh import MeshFiles, ball, coarser, revolved, triangles_of

PICTURE_FACES = 8_000  # of all meshes of a robot
SKY_COLOUR, FLOOR_COLOUR, TILE_EDGE_COLOUR = (247, 248, 250), (226, 230, 236), (203, 209, 218)
LINK_COLOURS = np.array([(52, 120, 150), (232, 150, 60), (110, 122, 140), (96, 160, 110), (170, 100, 140)], float)
LIGHT_DIRECTION = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
FIELD_OF_VIEW = 0.7  # rad, of the height
TILES = 12  # of the floor, to either side
PIXELS_PER_PIXEL = 2  # pixels that make one of the picture, along each side


class Renderer:
    """Pictures of a robot from a camera that looks at its middle from one side.

    ground: None for no floor, else what contacts know as ground. size: width and height in pixels.
    """

    def __init__(self, robot: Any, ground: Any = "plane", size: tuple[int, int] = (640, 480)) -> None:
        self.robot, self.ground, self.size = robot, ground, size
        self.rows, self.offsets = link_rows(robot.model)
        self.parts = self._parts()
        points = np.concatenate([x for x, _, _ in self._placed(neutral(robot.model))])
        self.extent = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0

    def picture(
        self, q: Array, azimuth: float = -0.9, elevation: float = 0.3, distance: float = 1.9,
        target: ArrayLike | None = None,
    ) -> Array:  # fmt: skip
        """(height, width, 3) of uint8. azimuth, elevation: rad, of the camera; distance: in sizes of the robot;
        target (3,): the point it looks at, m; without one the middle of the robot.
        """
        image, draw = package("PIL.Image", "a picture", "pillow"), package("PIL.ImageDraw", "a picture", "pillow")
        parts = self._placed(q)
        middle = np.mean([x.mean(0) for x, _, _ in parts], axis=0) if target is None else np.asarray(target, float)
        out = np.array(
            [np.cos(azimuth) * np.cos(elevation), np.sin(azimuth) * np.cos(elevation), np.sin(elevation)]
        )
        R = _looking(out)
        eye, width, height = middle + out * distance * self.extent, *(PIXELS_PER_PIXEL * x for x in self.size)
        focus = 0.5 * height / np.tan(0.5 * FIELD_OF_VIEW)
        canvas = image.new("RGB", (width, height), SKY_COLOUR)
        pen = draw.Draw(canvas)
        faces = [*self._floor(middle), *((x[f], c) for x, f, c in parts)]
        corners = np.concatenate([x for x, _ in faces])
        colours = np.concatenate([np.broadcast_to(c, (len(x), 3)) for x, c in faces])
        floor = sum(len(x) for x, _ in faces[: len(faces) - len(parts)])
        seen = (corners - eye) @ R.T  # to the right, upward, toward the viewer
        depth = -seen[..., 2]
        flat = np.stack(
            (0.5 * width + focus * seen[..., 0] / depth, 0.5 * height - focus * seen[..., 1] / depth), -1
        )
        shades = _shaded(corners, colours, out)
        order = np.argsort(-depth.mean(1))
        order = np.concatenate((order[order < floor], order[order >= floor]))  # the floor is below all else
        for k in order[(depth.min(1) > 1e-3 * self.extent)[order]]:
            colour = TILE_EDGE_COLOUR if k < floor else None
            pen.polygon([tuple(p) for p in flat[k].tolist()], fill=tuple(shades[k]), outline=colour)
        return np.asarray(canvas.resize(self.size, image.Resampling.BOX))

    def _parts(self) -> list[tuple[str, Array, Array, Array]]:
        """By shape its link, points and faces in axes of the link, and colour; bones where there are no shapes."""
        model, parts = self.robot.model, []
        meshes = MeshFiles(model)
        drawn = {link.name: meshes.drawn(link) for link in model.links}
        most = PICTURE_FACES // (sum(s.kind == "mesh" for x in drawn.values() for s in x) or 1)
        for k, (name, shapes) in enumerate(drawn.items()):
            for s in shapes:
                points, faces = triangles_of(s, meshes)
                points, faces = coarser(points, faces, most) if s.kind == "mesh" else (points, faces)
                placed = points @ np.array(s.rotation).T + s.origin
                parts.append((name, placed, faces, LINK_COLOURS[k % len(LINK_COLOURS)]))
        return parts or self._sticks()

    def _sticks(self) -> list[tuple[str, Array, Array, Array]]:
        """Rods from every link's frame to its joints, and balls at these, for robots without shapes."""
        model, parts = self.robot.model, []
        ends = [(j.parent, np.array(j.origin), k) for k, j in enumerate(model.joints) if j.kind != "free"]
        ends += [(x.name, np.array(x.inertial.com), k) for k, x in enumerate(model.links) if x.inertial]
        reach = max((float(np.linalg.norm(at)) for _, at, _ in ends), default=1.0) or 1.0
        for link, at, k in ends:
            colour, r, length = LINK_COLOURS[k % len(LINK_COLOURS)], 0.05 * reach, float(np.linalg.norm(at))
            points, faces = ball(1.4 * r)
            parts.append((link, points + at, faces, colour))
            if length > r:
                points, faces = revolved([(r, 0.0), (r, length)])
                parts.append((link, points @ _looking(at / length), faces, colour))
        return parts

    def _placed(self, q: Array) -> list[tuple[Array, Array, Array]]:
        """Points in the world, faces and colour of every part."""
        poses, parts = self.robot.poses(q), []
        for link, points, faces, colour in self.parts:
            row = self.rows[link]
            T = (poses[row] if row >= 0 else np.eye(4)) @ self.offsets[link]
            parts.append((points @ T[:3, :3].T + T[:3, 3], faces, colour))
        return parts

    def _floor(self, middle: Array) -> list[tuple[Array, Array]]:
        """Tiles of the ground around a place, as triangles pairwise, fixed in the world so that motion shows."""
        if self.ground is None:
            return []
        step = 0.25 * self.extent
        ends = np.arange(-TILES, TILES + 1) * step
        x, y = (np.round(middle[k] / step) * step + ends for k in range(2))
        z = np.array([[self._height(a, b) for b in y] for a in x])
        grid = np.stack((*np.meshgrid(x, y, indexing="ij"), z), -1)
        quads = np.stack((grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]), 2).reshape(-1, 4, 3)
        return [(np.concatenate((quads[:, :3], quads[:, [0, 2, 3]])), np.array(FLOOR_COLOUR, float))]

    def _height(self, x: float, y: float) -> float:
        return float(self.ground.slopes(x, y)[0]) if hasattr(self.ground, "slopes") else 0.0


def _looking(out: Array) -> Array:
    """Rows: to the right, upward, and `out`, of a camera that looks against `out`."""
    right = np.cross((0.0, 0.0, 1.0), out)
    size = float(np.linalg.norm(right))
    right = right / size if size > 1e-9 else np.array([1.0, 0.0, 0.0])
    return np.stack((right, np.cross(out, right), out))


def _shaded(corners: Array, colours: Array, out: Array) -> Any:
    """Colours of triangles (n, 3) in the light, both sides alike."""
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-300)[:, None]
    normals = np.where((normals @ out)[:, None] < 0.0, -normals, normals)
    bright = 0.45 + 0.55 * np.maximum(normals @ LIGHT_DIRECTION, 0.0)
    return np.clip(colours * bright[:, None] * 1.15, 0, 255).astype(np.uint8)
