"""Pages that compute by themselves: sliders, every value beside its formula, drawings; one file without a network.

What computes are WebAssembly functions of programs, embedded. A page without a robot has formulas and sliders;
with one it draws the figure too, by three.js. `tools/web.py` makes three.min.js and math.woff2.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from ...codegen.lower.lower import Lowered
from ..export_texts import wasm_loader
from ..languages.html_style import CSS

PLACE = Path(__file__).parent


class LiveFunction(NamedTuple):
    """A WebAssembly module that exports `function`, and how it is called."""

    code: bytes
    low: Lowered


class LiveInput(NamedTuple):
    """An argument that sliders set: its values at first and their ranges, one of each for every number."""

    value: list[float]
    low: Sequence[float]
    high: Sequence[float]


SETTINGS = (
    '<div class="bar"><button id="reset">Reset</button><button id="random">Random</button>'
    '<label><input type="checkbox" id="digits">all 17 digits</label></div>'
)
FUNCTION = "f"  # the name of the export of every module


@cache
def part(name: str) -> str:
    """A file beside this one; of a font its base64."""
    file = PLACE / name
    if file.suffix == ".woff2":
        return base64.b64encode(file.read_bytes()).decode()
    return file.read_text(encoding="utf-8")


def style() -> str:
    """The look of a live page."""
    return page_style() + part("page.css")


def page_style() -> str:
    """The look of any page, with the font of its formulas."""
    face = '@font-face{font-family:"Drevo Math";src:url(data:font/woff2;base64,%s) format("woff2")}'
    return face % part("math.woff2") + CSS


def data_of(
    functions: Mapping[str, LiveFunction],
    inputs: Mapping[str, LiveInput],
    units: Sequence[tuple[str, Sequence[int]]],
    **more: Any,
) -> dict[str, Any]:
    """The data that a page's script reads. units: inputs with the places of quaternions, which are kept unit."""
    return {
        "functions": {
            name: {
                "wasm": base64.b64encode(f.code).decode(),
                "inputs": [p.name for p in f.low.inputs],
                "outputs": [(p.name, p.size) for p in f.low.outputs],
            }
            for name, f in functions.items()
        },
        "inputs": {name: x._asdict() for name, x in inputs.items()},
        "units": units,
        **more,
    }


def scripts(data: Mapping[str, Any], functions: Mapping[str, LiveFunction], robot: bool) -> str:
    """The scripts of a page: its data, what computes (which needs no document), what shows."""
    texts = {name: wasm_loader(FUNCTION, f.low, "double", 1) for name, f in functions.items()}
    loaders = (
        f"LOADERS.{name}=(()=>{{{text.replace('export ', '')}\nreturn load}})();" for name, text in texts.items()
    )
    shown = ["page.js", *(["panels.js", "figure.js", "handle.js", "loads.js"] if robot else [])]
    core = "\n".join(["const LOADERS={};", *loaders, part("core.js"), part("reach.js") * robot])
    views = (
        "openPanels(page);openFigure(page);if(core.functions.wrenches)openLoads(page);"
        "if(core.functions.motion)openSwing(page);" * robot
    )
    start = (
        "openCore(JSON.parse(byId('data').textContent)).then(core=>{const page=window.drevo=openPage(core);"
        f"{views}page.ready=performance.now()}});"
    )
    held = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<script type="application/json" id="data">{held}</script>\n'
        + (f"<script>{part('three.min.js')}</script>\n" if robot else "")
        + f'<script id="core">{core}</script>\n<script>{"".join(map(part, shown))}{start}</script>'
    )


def document(title: str, body: str, tail: str, kind: str = "") -> str:
    """The whole page. kind: a class of the body beside `drevo`."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<style>{style()}</style></head>\n<body class="drevo {kind}">{body}\n{tail}</body></html>\n'
    )


def slider(name: str, place: int, x: LiveInput, label: str = "", unit: str = "") -> str:
    """A slider and a box for one number of an input. label: what screen readers say, by default name and place."""
    low, high, at = x.low[place], x.high[place], x.value[place]
    shown = f"<small>{escape(unit)}</small>" if unit else ""
    called = f'aria-label="{escape(label or f"{name} {place + 1}")}"'
    return (
        f'<div class="slide"><input type="range" {called} data-input="{escape(name)}" data-place="{place}" '
        f'min="{low!r}" max="{high!r}" step="any" value="{at!r}">'
        f'<input class="box" inputmode="decimal" {called} value="{at:.5g}">{shown}</div>'
    )
