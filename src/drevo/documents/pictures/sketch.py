"""A figure in characters, for terminals."""

from __future__ import annotations

import numpy as np

from .picture import Figure
from .plot import Curve, Panel

SKETCH_WIDTH, SKETCH_HEIGHT = 72, 12  # characters of a panel
CURVE_MARKS = "*o+x"  # of the curves of a panel, the first over the others


def sketch(figure: Figure, panels: int = 1) -> str:
    """The first panels of a figure in characters, of each as many curves as there are marks."""
    drawn = [line for panel in figure.panels[:panels] for line in _panel(panel, figure.abscissa)]
    left = len(figure.panels) - panels
    return "\n".join([*drawn, *([f"{left} more panels are in a picture, -o FILE.svg"] if left > 0 else [])])


def _panel(panel: Panel, abscissa: str) -> list[str]:
    curves = list(zip(CURVE_MARKS, panel.curves))
    marks, points = [mark for mark, _ in curves], [curve.edges(panel.log)[:2] for _, curve in curves]
    (left, right), (low, high) = _range([x for x, _ in points]), _range([y for _, y in points])
    grid = [[" "] * SKETCH_WIDTH for _ in range(SKETCH_HEIGHT)]
    for mark, (x, y) in reversed(list(zip(marks, points))):
        columns = np.linspace(left, right, SKETCH_WIDTH)
        for column, value in enumerate(np.interp(columns, x, y, np.nan, np.nan)):
            if np.isfinite(value):
                grid[round((high - value) / (high - low) * (SKETCH_HEIGHT - 1))][column] = mark
    edges = {0: high, SKETCH_HEIGHT - 1: low}
    rows = [
        f"{f'{edges[k]:.3g}' if k in edges else '':>10} |{''.join(row)}".rstrip() for k, row in enumerate(grid)
    ]
    axis = f"{f'{left:.4g}':<{SKETCH_WIDTH // 2}}{f'{right:.4g} {abscissa}':>{SKETCH_WIDTH // 2}}"
    unit = f", {panel.unit}" if panel.unit and not panel.title.endswith(f", {panel.unit}") else ""
    return [
        panel.title + unit + (", powers of ten" if panel.log else ""),
        *rows,
        f"{'':10} +{'-' * SKETCH_WIDTH}",
        f"{'':12}{axis}",
        f"{'':12}{_legend([(mark, curve) for mark, curve in curves], len(panel.curves))}",
    ]


def _legend(curves: list[tuple[str, Curve]], count: int) -> str:
    more = f"   and {count - len(curves)} more" if count > len(curves) else ""
    return "   ".join(f"{mark} {curve.name}" for mark, curve in curves) + more


def _range(rows: list[np.ndarray]) -> tuple[float, float]:
    """Least and greatest finite value; a little apart where they are equal."""
    values = np.concatenate(rows)[np.isfinite(np.concatenate(rows))] if rows else np.zeros(1)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)
