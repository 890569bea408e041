"""A plot of what `peers.py` found, without a plotting library: nanoseconds an evaluation on a logarithmic axis."""

from __future__ import annotations

import math
from typing import Any

from report import LABELS, ROBOTS, SIX, best, cells_of

BARS = (
    ("drevo", "Drevo, batch", "#0b7a5c"),
    ("mujoco", "MuJoCo C", "#c98a1b"),
    ("pin", "Pinocchio C++", "#5a6f9c"),
)
LEFT, WIDTH, BAR = 190, 480, 12


def svg(document: dict[str, Any]) -> str:
    """Bars of the section "cache"; shorter is faster."""
    cells = cells_of(document)
    rows = [(f"{r}, {LABELS[q]}", cells["cache", r, q]) for r in ROBOTS for q in SIX if ("cache", r, q) in cells]
    figures = [[(who, _figure(row, who)) for who, *_ in BARS] for _, row in rows]
    known = [x for row in figures for _, x in row if math.isfinite(x)]
    low, high = math.floor(math.log10(0.8 * min(known))), math.ceil(math.log10(max(known)))
    step = BAR * len(BARS) + 10
    bottom = 50 + step * len(rows)
    parts = [_text(LEFT, 20, "nanoseconds an evaluation, one core, in cache (shorter is faster)", "start", 14)]
    parts += [_key(LEFT + 130 * k, 38, label, color) for k, (_, label, color) in enumerate(BARS)]
    for power in range(low, high + 1):
        x = LEFT + WIDTH * (power - low) / (high - low)
        parts.append(f'<path d="M{x:.1f} 48V{bottom}" stroke="#ccc"/>')
        parts.append(_text(x, bottom + 16, f"{10**power:g}", "middle", 12))
    for k, ((label, _), row) in enumerate(zip(rows, figures)):
        y = 54 + step * k
        parts.append(_text(LEFT - 8, y + 24, label, "end", 12))
        for n, (_, ns) in enumerate(row):
            if math.isfinite(ns):
                length = WIDTH * (math.log10(ns) - low) / (high - low)
                parts += _bar(y + n * BAR, length, BARS[n][2], f"{ns:.0f}")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 50} {bottom + 24}" '
    style = 'font-family="system-ui,sans-serif" fill="#222">'
    paper = f'<rect width="{LEFT + WIDTH + 50}" height="{bottom + 24}" fill="#fff"/>'
    return head + style + paper + "\n".join(parts) + "</svg>\n"


def _figure(row: dict[str, float], who: str) -> float:
    return row.get("drevo", math.nan) if who == "drevo" else best(row, who)


def _bar(y: float, length: float, color: str, words: str) -> list[str]:
    bar = f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR - 1}" fill="{color}"/>'
    return [bar, _text(LEFT + length + 4, y + 10, words, "start", 10)]


def _text(x: float, y: float, text: str, anchor: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}">{text}</text>'


def _key(x: float, y: float, label: str, color: str) -> str:
    box = f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{color}"/>'
    return box + _text(x + 14, y, label, "start", 12)
