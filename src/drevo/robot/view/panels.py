"""Panels beside the robot in a window: matrices as colours, bars, a pose, counts; arrays and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from ...io.given import Array

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
    made: Array = image.astype(np.uint8)
    return made


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
