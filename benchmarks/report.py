"""What `peers.py` found, as a Markdown table and a plot without a plotting library."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

LABELS = {
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "forward_dynamics": "forward dynamics",
}
NOTES = (
    "Drevo's batches fill all of M; batch last in cache holds its lower triangle, without structural zeros. "
    "Pinocchio: `rneaInParallel` and `abaInParallel` with one thread on the same memory; `crba` (upper "
    "triangle) is called from Python, less what a call costs on a one-joint model. MuJoCo: the stages of the "
    "quantity, called on one state from Python, less an empty call for each; its M stays sparse."
)
BARS = (
    ("drevo batch", "Drevo", "#0b7a5c"),
    ("mujoco", "MuJoCo", "#c98a1b"),
    ("pin", "Pinocchio C++", "#5a6f9c"),
)


def best_of(row: dict[str, float]) -> dict[str, float]:
    """Each contender's best figure for a batch on one core."""
    return {
        "drevo batch": row["drevo batch"],
        "pin": row.get("pin C++", row["pin corrected"]),
        "mujoco": row["mujoco corrected"],
    }


def markdown(document: dict[str, Any]) -> str:
    """The tables, with what they mean."""
    lines = [
        "# Speed on one core",
        "",
        "Made by `make bench`: interleaved in one process, least of many short windows, nanoseconds.",
        ", ".join(f"{k} {v}".removeprefix("cpu ") for k, v in document["machine"].items()) + ".",
        "",
        "![The same as bars](results.svg)",
        "",
        "## 100,000 random states in (B, n) arrays, ns a state",
        "",
        "| robot | quantity | Drevo | batch last, in cache | Pinocchio C++ | MuJoCo C | times Pinocchio "
        "| times MuJoCo |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for robot, found in document["results"].items():
        for name, row in found["ns"].items():
            best = best_of(row)
            own = best["drevo batch"]
            who = f"{robot} ({found['base']}, {found['nv']})"
            peers = (best["pin"], best["mujoco"])
            cells = [f"{own:.1f}", f"{row['drevo cached']:.1f}", *(f"{x:.0f}" for x in peers)]
            lines.append("| " + " | ".join([who, LABELS[name], *cells, *(f"{x / own:.1f}" for x in peers)]) + " |")
    lines += [
        "",
        NOTES,
        "",
        "## One call from Python, ns",
        "",
        "| robot | quantity | Drevo | Pinocchio | times |",
        "|---|---|--:|--:|--:|",
    ]
    for robot, found in document["results"].items():
        for name, row in found["ns"].items():
            own, peer = row["drevo call"], row["pin call"]
            lines.append(f"| {robot} | {LABELS[name]} | {own:.0f} | {peer:.0f} | {peer / own:.1f} |")
    return "\n".join(lines) + "\n"


def svg(document: dict[str, Any]) -> str:
    """Bars on a logarithmic axis: nanoseconds a state of a batch, one core."""
    rows = [
        (f"{robot}, {LABELS[name]}", best_of(row))
        for robot, found in document["results"].items()
        for name, row in found["ns"].items()
    ]
    low = math.floor(math.log10(min(min(best.values()) for _, best in rows)))
    high = math.ceil(math.log10(max(max(best.values()) for _, best in rows)))
    left, width, step, bar = 190, 480, 46, 12
    bottom = 50 + step * len(rows)
    parts = [_text(left, 20, "nanoseconds a state, 100,000 states, one core (shorter is faster)", "start", 14)]
    parts += [_key(left + 130 * k, 38, label, color) for k, (_, label, color) in enumerate(BARS)]
    for power in range(low, high + 1):
        x = left + width * (power - low) / (high - low)
        parts.append(f'<path d="M{x:.1f} 48V{bottom}" stroke="#ccc"/>')
        parts.append(_text(x, bottom + 16, f"{10**power:g}", "middle", 12))
    for k, (label, best) in enumerate(rows):
        y = 54 + step * k
        parts.append(_text(left - 8, y + 24, label, "end", 12))
        for n, (who, _, color) in enumerate(BARS):
            length = width * (math.log10(best[who]) - low) / (high - low)
            top = y + n * bar
            parts.append(f'<rect x="{left}" y="{top}" width="{length:.1f}" height="{bar - 1}" fill="{color}"/>')
            parts.append(_text(left + length + 4, top + 10, f"{best[who]:.0f}", "start", 10))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 50} {bottom + 24}" '
    style = 'font-family="system-ui,sans-serif" fill="#222">'
    paper = f'<rect width="{left + width + 50}" height="{bottom + 24}" fill="#fff"/>'
    return head + style + paper + "\n".join(parts) + "</svg>\n"


def _text(x: float, y: float, text: str, anchor: str, size: int) -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="{size}">{text}</text>'


def _key(x: float, y: float, label: str, color: str) -> str:
    box = f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{color}"/>'
    return box + _text(x + 14, y, label, "start", 12)


def summary(document: dict[str, Any]) -> str:
    """What the README shows."""
    lines = [
        "| robot | quantity | Drevo | Pinocchio | MuJoCo | one call: Drevo | Pinocchio |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for robot, found in document["results"].items():
        for name, row in found["ns"].items():
            best = best_of(row)
            peers = f"{best['pin']:.0f} | {best['mujoco']:.0f}"
            calls = f"**{row['drevo call']:.0f}** | {row['pin call']:.0f}"
            lines.append(f"| {robot} | {LABELS[name]} | **{best['drevo batch']:.0f}** | {peers} | {calls} |")
    return "\n".join(lines)


def insert(page: Path, marker: str, text: str) -> None:
    """Put a text between <!-- marker --> and <!-- /marker --> of a page."""
    old = page.read_text(encoding="utf-8")
    start, end = f"<!-- {marker} -->\n", f"\n<!-- /{marker} -->"
    before, rest = old.split(start)
    page.write_text(before + start + text + end + rest.split(end)[1], encoding="utf-8")
