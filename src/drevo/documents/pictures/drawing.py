"""A drawing of a mechanism as SVG: links between poles, joint axes, centres of mass, augmented centres.

It knows no robots: a Drawing is places and directions in space, and how one looks at them.

Colours of drawings: plain attributes, which every reader of SVG knows; a style sheet only for dark pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from math import dist, hypot
from typing import NamedTuple

from ..sequence.names import plain

INK, SOFT, PAPER, MARK = "#1b2430", "#5b6776", "#ffffff", "#0b6e6e"
GOLD, RED = "#c98a1b", "#b3452c"
_DARK = {INK: "#e3e8ee", SOFT: "#93a1b1", PAPER: "#12171d", MARK: "#5cc8c2"}

Looks = Mapping[str, Mapping[str, str]]  # kinds of elements, each with its attributes


def look(looks: Looks, kind: str) -> str:
    """The class and the attributes of a kind of elements."""
    return f'class="{kind}"' + "".join(f' {name}="{value}"' for name, value in looks[kind].items())


def dark(looks: Looks) -> str:
    """The style rules that change colours where the reader's page is dark."""
    rules = [
        f".{kind}{{{name}:{_DARK[value]}}}"
        for kind, attributes in looks.items()
        for name, value in attributes.items()
        if value in _DARK
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


Point = tuple[float, float, float]
Flat = tuple[float, float]

WIDTH, MARGIN, LEGEND_HEIGHT = 560.0, 46.0, 34.0
TALLEST = 460.0
ARROW, STUB = 34.0, 26.0  # pixels: half an axis' arrow; the least length of a last link
FRAME_ARROW, TURN_RADIUS = 32.0, 17.0  # pixels: an axis of a body; the radius of the arrow of an angle
LEAST_LENGTH = 1e-9  # metres: of what gets a letter
TOWARDS = 0.25  # an axis whose projection is shorter than this is drawn as a dot
LABEL_TOP = 10.0  # pixels from above to a label
FARTHER = 12.0  # what a label pays to stand twice as far away, where poles are crowded with letters
SHARED_CIRCLE_PIXELS = 5.0  # pixels: poles nearer than this share a circle and a label
AROUND = ((1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1), (1, 0), (-1, 0), (0, 1))

FONT = 'font-family="Georgia,Times New Roman,serif" font-size="13" font-style="italic" text-anchor="middle"'
KEY_STYLE = {
    "font-family": "system-ui,sans-serif",
    "font-size": "12",
    "font-style": "normal",
    "text-anchor": "start",
}
LETTER, LINE = 6.4, 18.0  # pixels of the key: of a letter, from line to line
LOOKS = {
    "m-bg": {"fill": PAPER},
    "m-text": {"fill": INK},
    "m-c": {"fill": RED, "font-size": "11"},
    "m-d": {"fill": "#a87212", "font-size": "11"},
    "m-key": {"fill": SOFT, **KEY_STYLE},
    "m-link": {"stroke": INK, "stroke-width": "4", "stroke-linecap": "round"},
    "m-arm": {"stroke": SOFT, "stroke-width": "1", "stroke-dasharray": "2 3"},
    "m-pole": {"fill": PAPER, "stroke": INK, "stroke-width": "2"},
    "m-dot": {"fill": MARK},
    "m-axis": {"fill": "none", "stroke": MARK, "stroke-width": "1.6"},
    "m-axis-text": {"fill": MARK},
    "m-mass": {"stroke": RED, "stroke-width": "1.8"},
    "m-star": {"fill": GOLD},
    "m-ground": {"stroke": SOFT, "stroke-width": "1.4"},
    "m-leg": {"stroke": SOFT, "stroke-width": "1", "stroke-dasharray": "6 3"},
    "m-frame": {"fill": "none", "stroke": SOFT, "stroke-width": "1"},
    "m-frame-text": {"fill": SOFT},
}
_look = partial(look, LOOKS)


class DrawnBody(NamedTuple):
    """A body: its number, its base (-1: the ground), pole, joint, centres of mass; places in world axes, metres.

    axis: None where the joint has none. center, augmented: None of a body without mass.
    frame: its own axes. legs: the offset from the base's pole to its own, a place after each axis of the base.
    """

    number: str
    parent: int
    pole: Point
    kind: str
    axis: Point | None
    center: Point | None
    augmented: Point | None
    frame: tuple[Point, ...] = ()
    legs: tuple[Point, ...] = ()


class Drawing(NamedTuple):
    """The bodies, bases first, and the directions in space that go right and up on the page.

    posture: the coordinates there, such as "q_1 = 0.3 rad (hip)", "others neutral".
    letters: None, or the drawing has L_i, q_i, axes x_i, y_i, z_i and the parts A, B of offsets along no axis,
    under other names where there are some: {"O_2": "A"}.
    stubs: links that are cut off, each with its name, where it begins and where it ends.
    """

    parts: tuple[DrawnBody, ...]
    right: Point
    up: Point
    posture: tuple[str, ...] = ()
    letters: Mapping[str, str] | None = None
    stubs: tuple[tuple[str, Point, Point], ...] = ()

    def flat(self, v: Point) -> Flat:
        """Orthographic projection, up being positive."""
        return _dot(v, self.right), _dot(v, self.up)

    def towards(self, v: Point) -> bool:
        """True where a direction points out of the page."""
        (a, b, c), (d, e, f) = self.right, self.up
        return _dot(v, (b * f - c * e, c * d - a * f, a * e - b * d)) > 0.0


@dataclass(slots=True)
class _Canvas:
    """Pixels of one drawing, and what is in the way of labels."""

    drawing: Drawing
    scale: float = 1.0
    origin: Flat = (0.0, 0.0)
    height: float = 0.0
    lines: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    taken: list[Flat] = field(default_factory=list)

    def __post_init__(self) -> None:
        """The scale at which all places fit."""
        flat = [self.drawing.flat(p) for p in _places(self.drawing)] or [(0.0, 0.0)]
        (left, right), (low, high) = ((min(c), max(c)) for c in zip(*flat))
        room = (WIDTH - 2 * MARGIN, TALLEST - 2 * MARGIN)
        size = max((right - left) / room[0], (high - low) / room[1])
        self.scale = 1.0 / size if size > 0.0 else 1.0
        self.height = (high - low) * self.scale + 2 * MARGIN
        self.origin = (WIDTH / 2 - self.scale * (left + right) / 2, MARGIN + self.scale * high)

    def at(self, p: Point) -> Flat:
        x, y = self.drawing.flat(p)
        return self.origin[0] + self.scale * x, self.origin[1] - self.scale * y

    def line(self, style: str, a: Flat, b: Flat) -> None:
        self.lines.append(_line(style, a, b))
        n = max(2, int(hypot(b[0] - a[0], b[1] - a[1]) / 8))
        self.taken += [(a[0] + (b[0] - a[0]) * k / n, a[1] + (b[1] - a[1]) * k / n) for k in range(n + 1)]

    def mark(self, text: str, at: Flat) -> None:
        self.marks.append(text)
        self.taken += [at] * 3

    def label(self, at: Flat, base: str, subs: Sequence[str], style: str = "m-text", reach: float = 13.0) -> str:
        """A label beside a place, where it is least in the way; returns its text."""
        names = [f"{base}_{sub}".rstrip("_") if base else sub for sub in subs]
        parts = [(self.drawing.letters or {}).get(name, name).partition("_") for name in names]
        if not base:
            parts = [(",".join(subs), "", "")]
        widths = [(9.5 if base else 5.5 * len(letter), 5.5 * len(sub)) for letter, _, sub in parts]
        half = (sum(a + b for a, b in widths) + 4.0 * (len(parts) - 1)) / 2
        spots = [
            (at[0] + dx * (half + far * reach - 7.0), at[1] + dy * far * reach, FARTHER * (far - 1.0))
            for far in ((1.0,) if self.drawing.letters is None else (1.0, 1.5, 2.0))
            for dx, dy in AROUND
        ]
        inside = [p for p in spots if half < p[0] < WIDTH - half and p[1] > LABEL_TOP]
        x, y, _ = min(inside or spots, key=lambda p: self._crowd(p[:2], half) + p[2])
        self.taken += [(x + half * k / 2, y + k) for k in range(-2, 3)] * 2  # indices hang lower
        x, y = x - half, y + 4
        for (letter, _, sub), (wide, more) in zip(parts, widths):
            # each at its own place: readers differ on what follows on in a text that is centred
            text = f'<text {_look(style)} text-anchor="start" x="{x:.1f}" y="{y:.1f}">{escape(letter)}'
            small = (
                f'<tspan x="{x + wide:.1f}" y="{y + 3:.1f}" font-size="10">{escape(sub)}</tspan>' if sub else ""
            )
            self.marks.append(f"{text}{small}</text>")
            x += wide + more + 4.0
        return " ".join("_".join(filter(None, (letter, sub))) for letter, _, sub in parts)

    def _crowd(self, p: Flat, half: float) -> float:
        near = (max(abs(x - p[0]) - half, 0.0) + abs(y - p[1]) for x, y in self.taken)
        return sum(max(0.0, 13.0 - d) for d in near)


def svg(drawing: Drawing) -> str:
    """The drawing, with a key and the posture that it shows."""
    c = _Canvas(drawing)
    for part in drawing.parts:
        _link(c, part)
    for _, start, end in drawing.stubs:
        c.line("m-link", c.at(start), c.at(end))
    for group in _joints(c):
        _joint(c, group)
    for part in drawing.parts:
        _centers(c, part)
    sizes = _letters(c) if drawing.letters is not None else []
    for group in _joints(c):
        c.label(c.at(group[0].pole), "O", [p.number for p in group], reach=16.0)
    for part in drawing.parts:
        for style, place in (("m-c", part.center), ("m-d", part.augmented)):
            if place is not None:
                c.label(c.at(place), "", [part.number], style, 10.0)
    for name, _, end in drawing.stubs:
        c.label(c.at(end), "", [name])
    said = [*_listed("", sizes), *_listed("drawn at ", drawing.posture or ("its neutral posture",))]
    height = c.height + LEGEND_HEIGHT + LINE * len(said)
    texts = "".join(_words(20.0, c.height + LEGEND_HEIGHT + LINE * k, line) for k, line in enumerate(said))
    return (
        f'<svg class="m-svg" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'width="{WIDTH:.0f}" height="{height:.0f}" {FONT} role="img" aria-label="drawing of the mechanism">'
        f'{dark(LOOKS)}<rect {_look("m-bg")} width="{WIDTH:.0f}" height="{height:.0f}"/>'
        f"{''.join(c.lines)}{''.join(c.marks)}{_legend(drawing, c.height + 12.0)}{texts}</svg>\n"
    )


def _listed(head: str, items: Sequence[str]) -> list[str]:
    """Lines of items after a head, as long as fit; none without items."""
    lines = [head] if items else []
    for item in items:
        if len(lines[-1]) + len(item) > (WIDTH - 2 * 20.0) / LETTER:
            lines.append("")
        lines[-1] += f"{item}, "
    return [line.removesuffix(", ") + "," * (k + 1 < len(lines)) for k, line in enumerate(lines)]


def _words(x: float, y: float, text: str) -> str:
    return f'<text {_look("m-key")} x="{x:.0f}" y="{y + 4:.1f}">{escape(plain(text))}</text>'


def _places(drawing: Drawing) -> Iterator[Point]:
    yield from (end for *_, end in drawing.stubs)
    for part in drawing.parts:
        yield from (p for p in (part.pole, part.center, part.augmented) if p is not None)


def _link(c: _Canvas, part: DrawnBody) -> None:
    """The line from the base's pole; the stub of a last link; what ties a centre of mass to its pole."""
    pole = c.at(part.pole)
    if part.parent < 0 and not c.drawing.stubs:
        _ground(c, pole)
    elif part.parent >= 0:
        c.line("m-link", c.at(c.drawing.parts[part.parent].pole), pole)
    if part.center is None:
        return
    center = c.at(part.center)
    last = not any(c.drawing.parts[p.parent] is part for p in c.drawing.parts if p.parent >= 0)
    length = hypot(center[0] - pole[0], center[1] - pole[1])
    if last and length > 1.0:
        k = max(min(1.25, 1.0 + STUB / length), STUB / length)
        c.line("m-link", pole, (pole[0] + k * (center[0] - pole[0]), pole[1] + k * (center[1] - pole[1])))
    elif length > 1.0:
        c.line("m-arm", pole, center)


def _ground(c: _Canvas, at: Flat) -> None:
    x, y = at[0], at[1] + 15.0
    c.line("m-ground", (x - 20, y), (x + 20, y))
    c.line("m-ground", (x, y), at)
    c.lines += [_line("m-ground", (x + k, y), (x + k - 6, y + 6)) for k in range(-14, 21, 7)]


def _joints(c: _Canvas) -> list[list[DrawnBody]]:
    """Parts by pole on the page."""
    groups: list[list[DrawnBody]] = []
    for part in c.drawing.parts:
        x, y = c.at(part.pole)
        for group in groups:
            u, v = c.at(group[0].pole)
            if hypot(x - u, y - v) < SHARED_CIRCLE_PIXELS:
                group.append(part)
                break
        else:
            groups.append([part])
    return groups


def _joint(c: _Canvas, group: list[DrawnBody]) -> None:
    x, y = at = c.at(group[0].pole)
    dot = False
    for axis in dict.fromkeys(p.axis for p in group if p.axis is not None):
        dx, dy = c.drawing.flat(axis)
        if hypot(dx, dy) < TOWARDS:
            dot = True
            continue
        tip, tail = (x + ARROW * dx, y - ARROW * dy), (x - ARROW * dx * 0.6, y + ARROW * dy * 0.6)
        c.line("m-axis", tail, tip)
        c.lines.append(_arrowhead(tip, (dx, -dy)))
    slides = all(p.kind == "prismatic" for p in group)
    shape = (f'<rect {_look("m-pole")} x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12"/>' if slides
             else f'<circle {_look("m-pole")} cx="{x:.1f}" cy="{y:.1f}" r="6"/>')  # fmt: skip
    c.mark(shape + (f'<circle {_look("m-dot")} cx="{x:.1f}" cy="{y:.1f}" r="2"/>' if dot else ""), at)


def _letters(c: _Canvas) -> list[str]:
    """L_i along offsets, their parts, q_i at axes, axes of bodies; returns what lengths they are."""
    labels: list[tuple[Flat, str, list[str], str]] = []  # after all lines, which they keep away from
    sizes: list[str] = []
    for group in _joints(c):
        labels += [*_angles(c, group), *_frames(c, group)]
    offsets = _offsets(c)
    for part in c.drawing.parts:
        start = c.drawing.parts[part.parent].pole if part.parent >= 0 else part.pole
        length = dist(start, part.pole)
        if length > LEAST_LENGTH:
            name = c.label(_middle(c.at(start), c.at(part.pole)), "L", [part.number])
            sizes.append(f"{name} = {length:.3g} m")
    parts = {c.label(at, letter, [number]): length for at, letter, number, length in offsets}
    for at, letter, numbers, style in labels:
        c.label(at, letter, numbers, style, 10.0)
    return sizes + [f"{name} = {length:.3g} m" for name, length in parts.items()]


def _offsets(c: _Canvas) -> list[tuple[Flat, str, str, float]]:
    """The parts of offsets along no axis of their base, A and B; by body where there are several pairs."""
    steps = {}
    for part in c.drawing.parts:
        if part.parent >= 0 and len(part.legs) > 1:
            ends = (c.drawing.parts[part.parent].pole, *part.legs)
            steps[part.number] = [(c.at(a), c.at(b), dist(a, b)) for a, b in zip(ends, part.legs)]
    several = len({_rounded([length for *_, length in legs]) for legs in steps.values()}) > 1
    labels = {}
    for number, legs in steps.items():
        for letter, (a, b, length) in zip("ABC", legs):
            if _rounded((*a, *b)) not in labels:
                c.line("m-leg", a, b)
                labels[_rounded((*a, *b))] = (_middle(a, b), letter, number if several else "", length)
    return [*labels.values()]


def _angles(c: _Canvas, group: list[DrawnBody]) -> Iterator[tuple[Flat, str, list[str], str]]:
    """Labels q_i, at the tips of axes, and at arrows round those that point to the reader."""
    x, y = c.at(group[0].pole)
    turns: dict[bool, list[str]] = {}
    for part in group:
        if part.axis is None:
            continue
        dx, dy = c.drawing.flat(part.axis)
        if hypot(dx, dy) < TOWARDS:
            turns.setdefault(c.drawing.towards(part.axis), []).append(part.number)
        else:
            yield (x + ARROW * dx, y - ARROW * dy), "q", [part.number], "m-axis-text"
    for left, numbers in turns.items():
        ends = ((x + TURN_RADIUS, y), (x, y - TURN_RADIUS))
        (a, b), (u, v) = ends if left else ends[::-1]
        arc = f"M{a:.1f} {b:.1f}A{TURN_RADIUS:g} {TURN_RADIUS:g} 0 0 {int(not left)} {u:.1f} {v:.1f}"
        c.lines += [
            f'<path {_look("m-axis")} d="{arc}"/>',
            _arrowhead((u, v), (-1.0, 0.0) if left else (0.0, 1.0)),
        ]
        at = (x + 0.8 * TURN_RADIUS, y - 0.8 * TURN_RADIUS)
        c.taken += [ends[0], at, ends[1]]
        yield at, "q", numbers, "m-axis-text"


def _frames(c: _Canvas, group: list[DrawnBody]) -> Iterator[tuple[Flat, str, list[str], str]]:
    """The axes of bodies, those of a pole that are parallel as one."""
    x, y = c.at(group[0].pole)
    for k, letter in enumerate("xyz"):
        along: dict[tuple[float, ...], list[str]] = {}
        for part in group:
            for axis in part.frame[k : k + 1]:
                along.setdefault(_rounded(c.drawing.flat(axis)), []).append(part.number)
        for (dx, dy), numbers in along.items():
            if hypot(dx, dy) >= TOWARDS:
                tip = (x + FRAME_ARROW * dx, y - FRAME_ARROW * dy)
                c.line("m-frame", (x, y), tip)
                c.lines.append(_arrowhead(tip, (dx, -dy), "m-frame"))
                yield tip, letter, numbers, "m-frame-text"


def _middle(a: Flat, b: Flat) -> Flat:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def _arrowhead(tip: Flat, along: Flat, style: str = "m-axis") -> str:
    n = hypot(*along)
    (x, y), (u, v) = tip, (along[0] / n, along[1] / n)
    back = [(x - 7 * u + s * 3.4 * v, y - 7 * v - s * 3.4 * u) for s in (1, -1)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in (back[0], tip, back[1]))
    return f'<polyline {_look(style)} points="{points}"/>'


def _centers(c: _Canvas, part: DrawnBody) -> None:
    if part.augmented is not None:
        at = c.at(part.augmented)
        c.mark(_star(at), at)
    if part.center is not None:
        at = c.at(part.center)
        c.mark(_cross(at), at)


def _cross(at: Flat) -> str:
    x, y = at
    return _line("m-mass", (x - 5, y - 5), (x + 5, y + 5)) + _line("m-mass", (x - 5, y + 5), (x + 5, y - 5))


def _star(at: Flat) -> str:
    outer = ((0.0, -7.0), (6.66, -2.16), (4.11, 5.66), (-4.11, 5.66), (-6.66, -2.16))
    inner = ((1.65, -2.27), (2.66, 0.87), (0.0, 2.8), (-2.66, 0.87), (-1.65, -2.27))
    points = " ".join(f"{at[0] + x:.1f},{at[1] + y:.1f}" for pair in zip(outer, inner) for x, y in pair)
    return f'<polygon {_look("m-star")} points="{points}"/>'


def _line(style: str, a: Flat, b: Flat) -> str:
    return f'<line {_look(style)} x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"/>'


def _legend(drawing: Drawing, y: float) -> str:
    """The legend of a drawing: its signs with their meanings, at height y."""
    pole = "".join(
        f'<circle {_look(kind)} cx="30" cy="{y:.1f}" r="{r}"/>' for kind, r in (("m-pole", 6), ("m-dot", 2))
    )
    axis = _line("m-axis", (150, y), (176, y)) + _arrowhead((176, y), (1.0, 0.0))
    words = (
        (42, "pole, axis to you"),
        (184, "joint axis"),
        (284, "centre of mass"),
    )
    texts = "".join(_words(x, y, text) for x, text in words)
    if any(part.augmented is not None for part in drawing.parts):
        texts = _star((398, y)) + texts + _words(410, y, "of the augmented body")
    return pole + axis + _cross((272, y)) + texts


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(x, 9) + 0.0 for x in values)


def _dot(a: Point, b: Point) -> float:
    return sum(x * y for x, y in zip(a, b))
