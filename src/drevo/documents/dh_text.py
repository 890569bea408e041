"""Denavit-Hartenberg tables for people: text, Markdown, LaTeX. Rows are mappings as `drevo.from_dh` takes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from .languages.latex import escaped
from .sequence.names import latex_text

TableRow = Mapping[str, Any]
MATRICES = {
    "standard": "A = Rz(theta) Tz(d) Tx(a) Rx(alpha)",
    "modified": "A = Rx(alpha) Tx(a) Rz(theta) Tz(d)",
}
TITLES = ("row", "link", "parent", "joint", "theta", "d", "a", "alpha")
DH_SYMBOLS = {"theta": r"$\theta$", "d": "$d$", "a": "$a$", "alpha": r"$\alpha$"}


def text_table(rows: Sequence[TableRow], convention: str) -> str:
    """Aligned columns."""
    grid = [TITLES, *(_cells(row, k) for k, row in enumerate(rows, 1))]
    wide = [max(len(line[c]) for line in grid) for c in range(len(TITLES))]
    lines = ["  ".join(x.ljust(w) for x, w in zip(line, wide)).rstrip() for line in grid]
    return (
        "\n".join([f"{convention} convention, {MATRICES[convention]}; rad, m", "", *lines, *_frames(rows)]) + "\n"
    )


def markdown_table(rows: Sequence[TableRow], convention: str) -> str:
    """A table, then the auxiliary frames."""
    out = [f"{convention} convention, `{MATRICES[convention]}`; rad, m", "", f"| {' | '.join(TITLES)} |"]
    out.append("|" + "---|" * len(TITLES))
    out += [f"| {' | '.join(map(_markdown, _cells(row, k)))} |" for k, row in enumerate(rows, 1)]
    return "\n".join([*out, *(f"{line}  " if line else "" for line in _frames(rows))]) + "\n"


def html_table(rows: Sequence[TableRow], convention: str) -> str:
    """An HTML table for notebooks, then the auxiliary frames."""
    head = "".join(f"<th>{title}</th>" for title in TITLES)
    lines = ("".join(f"<td>{escape(x)}</td>" for x in _cells(row, k)) for k, row in enumerate(rows, 1))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    said = f"{convention} convention, {MATRICES[convention]}; rad, m"
    frames = "<br>".join(map(escape, filter(None, _frames(rows))))
    return f"<p>{escape(said)}</p><table><tr>{head}</tr>{body}</table><p>{frames}</p>"


def latex_table(rows: Sequence[TableRow], convention: str) -> str:
    """A tabular, then the auxiliary frames as matrices."""
    head = " & ".join(DH_SYMBOLS.get(t, t) for t in TITLES)
    out = [f"% {convention} convention, {MATRICES[convention]}; rad, m"]
    out += [r"\begin{tabular}{" + "r" + "l" * (len(TITLES) - 1) + "}", r"\toprule", head + r" \\", r"\midrule"]
    for k, row in enumerate(rows, 1):
        cells = [*map(latex_text, _cells(row, k)[:4]), *_cells(row, k, _tex)[4:]]
        out.append(" & ".join(cells) + r" \\")
    out += [r"\bottomrule", r"\end{tabular}"]
    for k, row in enumerate(rows, 1):
        if "M" in row:
            lines = r" \\ ".join(" & ".join(f"{x:.10g}" for x in line) for line in row["M"])
            matrix = r"\begin{bmatrix}" + lines + r"\end{bmatrix}"
            out += ["", rf"$M_{{{row['parent']},{k}}} = {matrix}$"]
    return "\n".join(out) + "\n"


def _markdown(text: str) -> str:
    """Text for Markdown; a line below inside of a word means nothing there."""
    return re.sub(r"(?<=\w)\\_(?=\w)", "_", escaped(text))


def _cells(row: TableRow, k: int, angle: Callable[[float], str] | None = None) -> list[str]:
    """The row's cells; its coordinate stands in theta or d."""
    shown = angle or _angle
    q = f"q{k}" if angle is None else f"$q_{{{k}}}$"
    kind = row["joint"]
    theta, d = shown(row["theta"]), f"{row['d']:.10g}"
    if kind in ("revolute", "helical"):
        theta = _plus(q, theta)
    if kind in ("prismatic", "helical"):
        per = f"{row['lead']:.6g} " if kind == "helical" else ""
        turn = r"/$2\pi$" if angle else "/2pi"
        d = _plus(f"{per}{q}{turn}" if kind == "helical" else q, d)
    parent = f"{row['parent']} by M" if "M" in row else str(row["parent"])
    return [str(k), str(row["name"]), parent, kind, theta, d, f"{row['a']:.10g}", shown(row["alpha"])]


def _plus(q: str, x: str) -> str:
    if x == "0":
        return q
    return f"{q} - {x[1:]}" if x.startswith("-") else f"{q} + {x}"


def _angle(x: float) -> str:
    """Parts of pi up to twelfths by name, other angles as numbers."""
    for n in (1, 2, 3, 4, 6, 12):
        k = round(n * x / math.pi)
        if abs(x - k * math.pi / n) <= 1e-12:
            over = f"/{n}" if n > 1 else ""
            size = "" if abs(k) == 1 else str(abs(k))
            return f"{'-' if k < 0 else ''}{size}pi{over}" if k else "0"
    return f"{x:.10g}"


def _tex(x: float) -> str:
    named = _angle(x)
    return f"${named}$".replace("pi", r"\pi") if "pi" in named else named


def _frames(rows: Sequence[TableRow]) -> list[str]:
    """A line for each auxiliary frame: rows of its rotation, and its origin."""
    out = []
    for k, row in enumerate(rows, 1):
        if "M" in row:
            turn = "; ".join(" ".join(f"{x:.10g}" for x in line[:3]) for line in row["M"][:3])
            at = " ".join(f"{line[3]:.10g}" for line in row["M"][:3])
            out.append(f"M of row {k} in the frame of row {row['parent']}: [{turn}], origin ({at})")
    return ["", *out] if out else []
