"""Plots as SVG without a library: panels of curves and bands in a grid, in plain colours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...io.reprs import result
from .drawing import GOLD, INK, MARK, PAPER, RED, SOFT, dark, look

Array = np.ndarray[Any, Any]
Limits = tuple[float, float]

PAGE = 960.0  # pixels, all of them
LEFT, RIGHT, ABOVE, BELOW = 60.0, 14.0, 28.0, 24.0  # of a frame: its numbers and its title
HEAD, KEY, FOOT = 30.0, 18.0, 26.0
FRAME_HEIGHT, TALLEST_FRAME = 150.0, 300.0  # of a frame; of one with equal scales at most
PLOT_LETTER_WIDTH, APART = 6.2, 44.0  # of a key's entry: a letter, and all the rest
FINE = 0.25  # points nearer than this to the line between their neighbours are left out
FLAT = 1e-9  # N, N m, m, s: what varies less is rounding, and no curve
SPARE = 0.04  # of an ordinate's range is left free at each end

# told apart by eyes that see all colours and by the three kinds that do not: 26 or more in CIELAB
COLOURS = (MARK, GOLD, RED, "#4e0098", "#c743e9", "#b1abca", "#14c384")
PLOT_LOOKS = {
    "p-svg": {"fill": INK, "font-family": "system-ui,sans-serif", "font-size": "11"},
    "p-bg": {"fill": PAPER},
    "p-frame": {"fill": "none", "stroke": SOFT, "stroke-width": "1"},
    "p-grid": {"stroke": SOFT, "stroke-width": "0.5", "opacity": "0.35"},
    "p-zero": {"stroke": SOFT, "stroke-width": "1"},
    "p-area": {"fill": INK, "fill-opacity": "0.09"},
    **{f"p-line-{k}": {"fill": "none", "stroke": c, "stroke-width": "1.5"} for k, c in enumerate(COLOURS)},
    **{
        f"p-band-{k}": {"fill": c, "fill-opacity": "0.22", "stroke": c, "stroke-width": "1"}
        for k, c in enumerate(COLOURS)
    },
}
_look = partial(look, PLOT_LOOKS)


@result
class Curve:
    """A line through (x, y), or the band from y to high; a value that is not finite breaks it."""

    name: str
    x: ArrayLike
    y: ArrayLike
    high: ArrayLike | None = None

    def edges(self, log: bool) -> tuple[Array, ...]:
        """x, y and, of a band, high; ordinates as powers of ten if log."""
        rows = [np.asarray(v, float) for v in (self.x, self.y, self.high) if v is not None]
        return (rows[0], *(_powers(y) if log else y for y in rows[1:]))


def bars(name: str, heights: ArrayLike, first: float = 0.0) -> Curve:
    """Bars beside each other from `first` on, as a band that is broken between them."""
    y = np.repeat(np.asarray(heights, float), 3)
    x = np.concatenate([[first + k - 0.4, first + k + 0.4, np.nan] for k in range(len(y) // 3)])
    return Curve(name, x, 0.0 * y, y)


@result
class Panel:
    """Curves in a frame. areas: polygons (n, 2) shaded behind them. equal: one scale for both axes.

    log: powers of ten upwards. An ordinate that is neither equal nor log includes zero. unit: of the ordinate.
    """

    title: str
    curves: Sequence[Curve]
    areas: Sequence[ArrayLike] = ()
    equal: bool = False
    log: bool = False
    unit: str = ""

    def limits(self) -> tuple[Limits, Limits]:
        """The ranges of x and of y that it shows."""
        drawn = [c.edges(self.log) for c in self.curves]
        areas = [np.asarray(a, float) for a in self.areas]
        x = [*(d[0] for d in drawn), *(a[:, 0] for a in areas)]
        y = [*(v for d in drawn for v in d[1:]), *(a[:, 1] for a in areas)]
        return _range(x), _range([*y, np.zeros(0 if self.equal or self.log else 1)], SPARE)


@dataclass(frozen=True)
class _Frame:
    """Limits of a panel, and the pixels they take."""

    x: Limits
    y: Limits
    wide: float
    high: float

    def at(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Pixels (n, 2) of places, downward."""
        across = (np.asarray(x, float) - self.x[0]) / (self.x[1] - self.x[0]) * self.wide
        down = (self.y[1] - np.asarray(y, float)) / (self.y[1] - self.y[0]) * self.high
        return np.stack([across, down], axis=-1)


def plot(title: str, panels: Sequence[Panel], across: int = 1, abscissa: str = "", shared: bool = False) -> str:
    """Panels in rows of `across`; shared: one ordinate for all. Panels of the same curves have one key."""
    names = [tuple(c.name for c in p.curves) for p in panels]
    one = len(set(names)) == 1
    above = ABOVE + (0.0 if one else KEY)
    frames = _frames(panels, PAGE / across - LEFT - RIGHT, shared)
    y, parts = HEAD, []
    for first in range(0, len(panels), across):
        row = range(first, min(first + across, len(panels)))
        for k in row:
            x = LEFT + (k - first) * PAGE / across
            key = "" if one else _key(names[k], -14.0)
            drawn = _panel(panels[k], frames[k], above - 14.0) + key
            parts.append(f'<g transform="translate({x:.1f} {y + above:.1f})">{drawn}</g>')
        y += above + max(frames[k].high for k in row) + BELOW
    if one or abscissa:
        y += FOOT
        parts.append(f'<text x="{PAGE - RIGHT:.0f}" y="{y - 10:.1f}" text-anchor="end">{escape(abscissa)}</text>')
        parts.append(f'<g transform="translate({LEFT:.0f} {y - 14:.1f})">{_key(names[0] if one else (), 0.0)}</g>')
    return (
        f'<svg {_look("p-svg")} xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {PAGE:.0f} {y:.0f}" '
        f'width="{PAGE:.0f}" height="{y:.0f}" role="img" aria-label="{escape(title)}">{dark(PLOT_LOOKS)}'
        f'<rect {_look("p-bg")} width="{PAGE:.0f}" height="{y:.0f}"/>'
        f'<text font-size="14" x="{LEFT:.0f}" y="20">{escape(title)}</text>{"".join(parts)}</svg>\n'
    )


def _frames(panels: Sequence[Panel], wide: float, shared: bool) -> list[_Frame]:
    limits = [p.limits() for p in panels]
    if shared:
        low, high = min(y[0] for _, y in limits), max(y[1] for _, y in limits)
        limits = [(x, (low, high)) for x, _ in limits]
    return [
        _equal(x, y, wide) if p.equal else _Frame(x, y, wide, FRAME_HEIGHT) for p, (x, y) in zip(panels, limits)
    ]


def _equal(x: Limits, y: Limits, wide: float) -> _Frame:
    """One scale for both, around the same middle."""
    scale = max((x[1] - x[0]) / wide, (y[1] - y[0]) / TALLEST_FRAME)
    high = max(FRAME_HEIGHT / 2, (y[1] - y[0]) / scale)
    (x0, x1), (y0, y1) = (
        (sum(a) / 2 - scale * n / 2, sum(a) / 2 + scale * n / 2) for a, n in ((x, wide), (y, high))
    )
    return _Frame((x0, x1), (y0, y1), wide, high)


def _panel(panel: Panel, f: _Frame, title: float) -> str:
    parts = [f'<text x="0" y="{-title:.0f}" font-weight="600">{escape(panel.title)}</text>']
    parts += [f'<polygon {_look("p-area")} points="{_text(f.at(*np.asarray(a, float).T))}"/>' for a in panel.areas]
    parts += _numbers(f, panel.log)
    for k, curve in enumerate(panel.curves):
        colour = k % len(COLOURS)
        for x, *edges in _pieces(curve.edges(panel.log)):
            low, *high = (_thinned(f.at(x, y)) for y in edges)
            if high:
                parts.append(
                    f'<polygon {_look(f"p-band-{colour}")} points="{_text(low)} {_text(high[0][::-1])}"/>'
                )
            else:
                parts.append(f'<polyline {_look(f"p-line-{colour}")} points="{_text(low)}"/>')
    parts.append(f'<rect {_look("p-frame")} width="{f.wide:.1f}" height="{f.high:.1f}"/>')
    return "".join(parts)


def _numbers(f: _Frame, log: bool) -> Iterator[str]:
    """Lines at round numbers, and the numbers."""
    for y in _ticks(*f.y, max(2, round(f.high / 28))):
        if log and y != round(y):
            continue
        _, v = f.at(f.x[0], y)
        yield f'<path {_look("p-grid" if y or log else "p-zero")} d="M0 {v:.1f}h{f.wide:.1f}"/>'
        yield f'<text x="-5" y="{v + 4:.1f}" text-anchor="end">{10.0**y if log else y:.4g}</text>'
    for x in _ticks(*f.x, max(3, round(f.wide / 80))):
        u, _ = f.at(x, f.y[0])
        yield f'<path {_look("p-grid")} d="M{u:.1f} 0v{f.high:.1f}"/>'
        yield f'<text x="{u:.1f}" y="{f.high + 14:.1f}" text-anchor="middle">{x:.4g}</text>'


def _ticks(low: float, high: float, count: int) -> list[float]:
    """At most about `count` numbers of 1, 2 or 5 times a power of ten apart."""
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    gap = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * (1 - 1e-9))
    return [k * gap for k in range(math.ceil(low / gap - 1e-9), math.floor(high / gap + 1e-9) + 1)]


def _key(names: Sequence[str], y: float) -> str:
    out, x = "", 0.0
    for k, name in enumerate(names):
        out += f'<rect {_look(f"p-band-{k % len(COLOURS)}")} x="{x:.0f}" y="{y - 3:.0f}" width="22" height="7"/>'
        out += f'<text x="{x + 28:.0f}" y="{y + 4:.0f}">{escape(name)}</text>'
        x += APART + PLOT_LETTER_WIDTH * len(name)
    return out


def _range(values: Sequence[Array], margin: float = 0.0) -> Limits:
    """Limits of what is finite, with a part of it as room; never empty."""
    every = np.concatenate([np.zeros(0), *values])
    found = every[np.isfinite(every)]
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 0.0)
    if high - low <= FLAT:
        return low - 1.0, high + 1.0
    return low - margin * (high - low), high + margin * (high - low)


def _powers(y: Array) -> Array:
    """log10; of what is not positive nothing."""
    return np.log10(y, where=y > 0.0, out=np.full(y.shape, np.nan))


def _pieces(edges: Sequence[Array]) -> Iterator[list[Array]]:
    """The stretches where all are finite."""
    known = np.isfinite(np.stack(edges)).all(axis=0)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    for a, b in ends.reshape(-1, 2).tolist():
        yield [e[a:b] for e in edges]


def _thinned(points: Array) -> Array:
    """Without the points that the line between those kept passes by within FINE (Douglas and Peucker)."""
    kept, ranges = {0, len(points) - 1}, [(0, len(points) - 1)]
    while ranges:
        a, b = ranges.pop()
        off = _off(points[a + 1 : b], points[a], points[b])
        if len(off) and off.max() > FINE:
            k = a + 1 + int(off.argmax())
            kept.add(k)
            ranges += [(a, k), (k, b)]
    out: Array = points[sorted(kept)]
    return out


def _off(points: Array, a: Array, b: Array) -> Array:
    """Distances from the line through a and b, or from a where they are one."""
    along, away = b - a, points - a
    size = math.hypot(*along)
    across = np.abs(away[:, 0] * along[1] - away[:, 1] * along[0])
    return np.asarray(across / size if size > 0.0 else np.hypot(*away.T))


def _text(points: Array) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist())
