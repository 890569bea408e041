"""Draws the house of Drevo, docs/house.svg, from its imports: floors from the roof down, and who stands on whom.

python tools/house.py
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Iterator
from functools import cache, lru_cache
from html import escape
from pathlib import Path

from drevo.documents.pictures.drawing import GOLD, INK, MARK, PAPER, RED, SOFT, dark, look

ROOT = Path(__file__).parents[1]
SOURCES, FILE = ROOT / "src" / "drevo", ROOT / "docs" / "house.svg"

WIDE, FLOOR, ROOF, MARGIN = 560.0, 54.0, 70.0, 20.0  # pixels: the house; a floor's height; the roof's
CELL = 27.0  # a column of the table of imports
LETTERS = 92  # of a line about a room
FONT = 'font-family="system-ui,sans-serif" font-size="11"'
LOOKS = {
    "h-bg": {"fill": PAPER},
    "h-wall": {"fill": "none", "stroke": INK, "stroke-width": "1.6"},
    "h-name": {"fill": INK, "font-size": "14", "font-weight": "bold"},
    "h-inside": {"fill": MARK},
    "h-text": {"fill": SOFT},
    "h-line": {"stroke": SOFT, "stroke-width": "0.5"},
    "h-self": {"fill": GOLD},
    "h-down": {"fill": MARK},
    "h-up": {"fill": RED},
}
Imports = dict[str, set[str]]


def layers() -> list[str]:
    """The rooms from the roof down, as the contract of the linter lists them."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    floors = ast.literal_eval(text.split('name = "rooms"')[1].split("layers = ")[1].split("\n")[0])
    return [room for floor in floors for room in floor.split(" | ")]


@lru_cache(maxsize=1)
def imports() -> Imports:
    """Which room imports which, at the top of a file, late in a function, or for types."""
    rooms = layers()
    found: Imports = {room: set() for room in rooms}
    for room in rooms:
        for file in [SOURCES / f"{room}.py", *(SOURCES / room).rglob("*.py")]:
            if file.exists():
                package = ("drevo", *file.relative_to(SOURCES).parts[:-1])
                found[room] |= {name[1] for name in _imported(parsed(file), package) if name[0] == "drevo"}
    return {room: (found[room] & set(rooms)) - {room} for room in rooms}


@cache
def parsed(file: Path) -> ast.Module:
    """What a file holds."""
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    """All that a file holds, of any depth."""
    return list(ast.walk(tree))


def _imported(tree: ast.Module, package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Full names of what a file imports, at least of two parts."""
    for x in nodes(tree):
        if isinstance(x, ast.ImportFrom):
            start = package[: len(package) - x.level + 1] if x.level else ()
            yield from ((*start, *(x.module or a.name).split("."), a.name) for a in x.names)
        elif isinstance(x, ast.Import):
            yield from ((*a.name.split("."), "") for a in x.names)


def svg() -> str:
    """A floor for each room; beside it a mark for each room that it imports, which must be further down."""
    rooms, found = layers(), imports()
    width, height = WIDE + 3 * MARGIN + CELL * len(rooms), ROOF + FLOOR * len(rooms) + 2 * MARGIN
    parts = [_roof(), *(_floor(k, room) for k, room in enumerate(rooms))]
    parts += [x for k, room in enumerate(rooms) for x in _row(k, room, rooms, found[room])]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" {FONT} role="img" aria-label="rooms of Drevo and what they import">{dark(LOOKS)}\n'
        f'<rect {look(LOOKS, "h-bg")} width="{width:.0f}" height="{height:.0f}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _roof() -> str:
    left, right, top = MARGIN, MARGIN + WIDE, MARGIN
    points = f"{left:.0f},{top + ROOF:.0f} {(left + right) / 2:.0f},{top:.0f} {right:.0f},{top + ROOF:.0f}"
    return (
        f'<polygon {look(LOOKS, "h-wall")} points="{points}"/>'
        + _text("h-name", (left + right) / 2 - 20.0, top + ROOF - 24.0, "drevo")
        + _text("h-text", (left + right) / 2 - 86.0, top + ROOF - 8.0, "a floor imports only what is below it")
    )


def _floor(k: int, room: str) -> str:
    x, y = MARGIN, MARGIN + ROOF + FLOOR * k
    wall = f'<rect {look(LOOKS, "h-wall")} x="{x:.0f}" y="{y:.0f}" width="{WIDE:.0f}" height="{FLOOR:.0f}"/>'
    inside = sorted(p.parent.name for p in (SOURCES / room).glob("*/__init__.py"))
    lines = textwrap.wrap(_about(room), LETTERS)[:2]
    texts = [_text("h-text", x + 10.0, y + 33.0 + 14.0 * i, line) for i, line in enumerate(lines)]
    names = _text("h-name", x + 10.0, y + 18.0, room) + _text("h-inside", x + 110.0, y + 18.0, ", ".join(inside))
    return wall + names + "".join(texts)


def _about(room: str) -> str:
    """What a room says about itself: the first paragraph of its docstring."""
    folder = SOURCES / room / "__init__.py"
    file = folder if folder.exists() else SOURCES / f"{room}.py"
    return (ast.get_docstring(parsed(file)) or "").split("\n\n")[0]


def _row(k: int, room: str, rooms: list[str], imported: set[str]) -> Iterator[str]:
    """The row of a room in the table of imports."""
    left, y = 2 * MARGIN + WIDE, MARGIN + ROOF + FLOOR * (k + 0.5)
    x, end = left + CELL * (k + 0.5), left + CELL * len(rooms)
    yield f'<line {look(LOOKS, "h-line")} x1="{left:.0f}" y1="{y:.0f}" x2="{end:.0f}" y2="{y:.0f}"/>'
    place = f"translate({x + 4:.1f} {MARGIN + ROOF - 4:.0f}) rotate(-60)"
    yield f'<text {look(LOOKS, "h-text")} transform="{place}">{room}</text>'
    yield _mark("h-self", x, y, 4, room)
    for j, other in enumerate(rooms):
        if other in imported:
            kind = "h-down" if j > k else "h-up"
            yield _mark(kind, left + CELL * (j + 0.5), y, 6, f"{room} imports {other}")


def _mark(kind: str, x: float, y: float, radius: int, title: str) -> str:
    at = f'cx="{x:.1f}" cy="{y:.0f}" r="{radius}"'
    return f"<circle {look(LOOKS, kind)} {at}><title>{title}</title></circle>"


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text {look(LOOKS, kind)} x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


if __name__ == "__main__":
    FILE.write_text(svg(), encoding="utf-8")
    sys.stdout.write(f"{FILE.relative_to(ROOT)}\n")
