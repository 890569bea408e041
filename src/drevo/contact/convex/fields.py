"""A height field and a convex solid: under the solid's bounds each triangle of the grid is the top of a prism, and
every prism that the solid is in has a place of contact.

A field is its heights, row by row along x, over a rectangle about its origin, down to its base. Heights stand
where a hull has its points, the numbers of columns and rows where it has its graph. Prisms are in MuJoCo's order.
Functions run in Python, and as machine code by `codegen.llvm.plain`.
"""

from __future__ import annotations

from ...codegen.lower.plain_values import Floats, Integers, Part, floats, integers
from ...mechanics.spatial import Mat, Vec
from .clipping import put_place
from .faces import axis_of
from .search import separation
from .simplex import GRAPH_A, GRAPH_B, HULL, corner_of, put_corner, support_point

MAX_FIELD_PLACES = 50  # of a pair; MuJoCo's
PRISM_CORNERS = 6  # of a prism
LEAST_SLOPE = 1e-30  # of a ray, in cells a metre


def extent(which: Integers, size: Floats, points: Floats, R: Mat, p: Vec, d: Vec) -> float:
    """The coordinate along a direction of the end of a solid."""
    local, number = R.T @ d, integers(1)
    number[0] = 0
    graph = Part(which, which[GRAPH_B])
    end = support_point(which[2], size, points, which[3], graph, local, number)
    return float(d.dot(p) + local.dot(end) + size[3])


def add_column(prism: Floats, x: float, y: float, z: float) -> None:
    """Puts a corner and the base under it in the place of the oldest."""
    for k in range(2):
        put_corner(prism, k, corner_of(prism, k + 1))
        put_corner(prism, k + 3, corner_of(prism, k + 4))
    put_corner(prism, 2, Vec(x, y, prism[2]))
    put_corner(prism, 5, Vec(x, y, z))


def places_in_field(
    which: Integers, sizes: Floats, heights: Floats, points: Floats, R: Mat, p: Vec, margin: float, out: Floats
) -> int:
    """Enters the places where a solid touches a field, in the field's axes; gives how many. sizes: half the sides
    of the rectangle and the depth of the base, then those of the solid."""
    size, grid, count = Part(sizes, 4), Part(which, which[GRAPH_A]), 0
    columns = grid[0]
    least = -extent(which, size, points, R, p, Vec(0.0, 0.0, -1.0)) - margin
    first, last, step = integers(2), integers(2), floats(2)
    for k in range(2):
        cells, d = grid[k] - 1, axis_of(k)
        step[k] = 2.0 * sizes[k] / float(cells)
        first[k] = max(0, int((sizes[k] - extent(which, size, points, R, p, -d) - margin) / step[k]))
        last[k] = min(cells, int((sizes[k] + extent(which, size, points, R, p, d) + margin) / step[k]) + 1)
    prism, near, kinds = floats(3 * PRISM_CORNERS), floats(7), integers(GRAPH_B + 2)
    numbers, feature = integers(6), floats(18)
    kinds[0] = HULL
    kinds[1] = PRISM_CORNERS
    kinds[2] = which[2]
    kinds[3] = which[3]
    kinds[GRAPH_A] = GRAPH_B + 1  # of neither hull
    kinds[GRAPH_B] = GRAPH_B + 1
    kinds[GRAPH_B + 1] = 0
    for k in range(3):
        prism[3 * k + 2] = -sizes[2]
    for row in range(first[1], last[1]):
        for k in range(2 * (last[0] - first[0] + 1)):
            column, above = first[0] + k // 2, row + 1 - k % 2
            x, y = float(column) * step[0] - sizes[0], float(above) * step[1] - sizes[1]
            add_column(prism, x, y, heights[above * columns + column])
            top = max(max(prism[11], prism[14]), prism[17])
            if k > 1 and top > least and count < MAX_FIELD_PLACES:
                separation(kinds, sizes, prism, points, R, p, margin, near, numbers, feature)
                if near[0] <= margin:
                    n = corner_of(Part(near, 4), 0)
                    put_place(out, count, near[0], corner_of(Part(near, 1), 0) + n * (0.5 * near[0]), n)
                    count = count + 1
    return count


def ray_to_field(sizes: Floats, grid: Integers, heights: Floats, start: Vec, way: Vec, most: float) -> float:
    """The length of a ray from above a field, along a way of length one, to where it meets it; at most `most`.

    Amanatides, Woo 1987, "A fast voxel traversal algorithm for ray tracing".
    """
    columns, rows = grid[0], grid[1]
    x, y = start.x / sizes[0] * 0.5 + 0.5, start.y / sizes[1] * 0.5 + 0.5
    x, y = x * float(columns - 1), y * float(rows - 1)
    u, v = 0.5 * way.x / sizes[0] * float(columns - 1), 0.5 * way.y / sizes[1] * float(rows - 1)  # in cells
    u, v = u if abs(u) > LEAST_SLOPE else LEAST_SLOPE, v if abs(v) > LEAST_SLOPE else LEAST_SLOPE
    across, along = (float(columns - 1) - x) / u, (float(rows - 1) - y) / v
    begin = max(0.0, max(min(-x / u, across), min(-y / v, along)))
    end = min(most, min(max(-x / u, across), max(-y / v, along)))
    column = int(max(0.0, min(float(columns - 2), x + begin * u)))
    row = int(max(0.0, min(float(rows - 2), y + begin * v)))
    while begin < end and column >= 0 and row >= 0 and column < columns - 1 and row < rows - 1:
        right = (float(column + (1 if u > 0.0 else 0)) - x) / u
        ahead = (float(row + (1 if v > 0.0 else 0)) - y) / v
        after, first, met = min(right, ahead), row * columns + column, most
        low, high = heights[first], heights[first + columns + 1]
        for k in range(2):  # the triangle along x, and the one along y
            corner = heights[first + (1 if k == 0 else columns)]
            slope, rise = corner - low if k == 0 else high - corner, high - corner if k == 0 else corner - low
            over = start.z - low - slope * (x - float(column)) - rise * (y - float(row))
            fall = slope * u + rise * v - way.z
            t = over / fall if abs(fall) > 0.0 else most
            side = (x - float(column) + t * u) - (y - float(row) + t * v)
            if t >= begin and t <= after and (side >= 0.0 if k == 0 else side <= 0.0):
                met = min(met, t)
        if met < most:
            return met
        if right < ahead:
            column = column + (1 if u > 0.0 else -1)
        else:
            row = row + (1 if v > 0.0 else -1)
        begin = after
    return most
