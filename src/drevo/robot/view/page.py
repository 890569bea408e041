"""A robot as one page that computes by itself: drawn, with sliders, panels, a motion and equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ...compiler.pages.drawing import configuration_input, live_function, live_inputs, live_units, live_values
from ...compiler.pages.write_out import quantity_equations, uncollected
from ...compiler.products import program as motion_on
from ...compiler.recipe import Recipe
from ...documents.languages.html import Live, code_part, page_body, page_head, page_parts
from ...documents.languages.html_style import HTML_SCRIPT
from ...documents.live import SETTINGS, LiveFunction, LiveInput, data_of, document, scripts, slider
from ...errors import DrevoError, InputError, warn_caller
from ...io.files import saving
from ...mechanics.configuration import neutral, state
from ...model.description import Model
from ...model.draft import model_of
from ...model.dynamics import Described
from ...model.quantities import EquationOptions
from .figure import figure_of
from .mesh import MeshFiles
from .panels import DIAGRAM_KINDS, LinkSections, checked_tables, page_tables

if TYPE_CHECKING:
    from typing_extensions import Unpack

PAGE_QUANTITIES = ("poses", "mass_matrix", "gravity", "kinetic_energy", "potential_energy", "center_of_mass")
PAGE_LAYERS = {
    "shapes": ("geometry", True),
    "figure": ("joints and links", True),
    "frames": ("frames", False),
    "masses": ("centres of mass", True),
    "ellipsoids": ("inertia ellipsoids", False),
    "contacts": ("contact points", True),
}
HANDLE_KINDS = {
    "position": "moves it",
    "pose": "moves it, direction kept",
    "direction": "turns it",
    "": "hidden",
}
SLIDER_UNITS = {"q": ("rad", "m"), "v": ("rad/s", "m/s"), "a": ("rad/s²", "m/s²"), "tau": ("N m", "N")}


def export_page(
    robot: Described | Model,
    path: str | PathLike[str],
    quantity: str = "inverse_dynamics",
    q: ArrayLike | None = None,
    loads: Sequence[LinkSections] = (),
    **options: Unpack[EquationOptions],
) -> Path:
    """Writes the live page of a robot: see `drevo.Robot.view`."""
    model = model_of(robot, "view")
    with saving("a live page", path, (".html", ".htm")) as file:
        file.write_text(live_robot(model, quantity, q, "", loads, **options), encoding="utf-8", newline="\n")
    return Path(path)


@uncollected()
def live_robot(
    model: Model,
    quantity: str = "inverse_dynamics",
    q: ArrayLike | None = None,
    before: str = "",
    loads: Sequence[LinkSections] = (),
    **options: Unpack[EquationOptions],
) -> str:
    """The text of the page. before: HTML that stands above the panels. loads: of `drevo.loads.diagrams`."""
    start = neutral(model) if q is None else state(model, "view", q=q)[0]
    if start.ndim != 1:
        raise InputError(f"view: q must be one configuration, ({model.nq},), not {start.shape}")
    derivation = quantity_equations(model, quantity, **options)
    sequence, values, slots = live_values(derivation.program)
    functions, notes = _functions(model)
    if tables := checked_tables(model, loads) if len(functions["state"].low.outputs) > 1 else ():
        functions["wrenches"] = live_function(_program(model, ("joint_wrenches",)))
    meshes = MeshFiles(model)
    inputs = live_inputs(derivation.program, model)
    inputs["q"] = configuration_input(model, start.tolist())
    for name in ("v", "a"):
        zeros = [0.0] * model.nv
        inputs.setdefault(name, LiveInput(zeros, [-1.0] * model.nv, [1.0] * model.nv))
    moving = [p.name for p in derivation.program.inputs]
    facts = derivation.about
    data = data_of(
        {"values": values, **functions}, inputs, live_units(derivation.program),
        robot=model.name, figure=figure_of(model, meshes), coordinates=_plotted(model),
        loads=page_tables(model, tables), gravity=model.gravity,
        passive=any(j.dynamics and j.dynamics.passive for j in model.joints), walls=_walls(model),
        rates=rates_of(model), floating=_floating(model),
    )  # fmt: skip
    if missing := meshes.told():
        warn_caller(missing)
    parts = page_parts(sequence, facts, Live(slots, {}), robot=True)
    panels = _panels(model, functions, notes) + _loads() * bool(tables)
    body = (
        f"<aside>{_head(model)}{_figure(model)}{_sliders(model, inputs, moving)}</aside>\n<main>{SETTINGS}{before}"
        f"{panels}{page_head(facts)}{page_body([*parts, code_part(sequence, facts)])}</main>"
    )
    tail = f"{scripts(data, {'values': values, **functions}, True)}<script>{HTML_SCRIPT}</script>"
    return document(f"{model.name}: {facts.quantity.replace('_', ' ')}", body, tail, "robot")


def _functions(model: Model) -> tuple[dict[str, LiveFunction], list[str]]:
    """The functions that the panels compute, and notes why some of them are not there."""
    notes = []
    try:
        functions = {"state": live_function(_program(model, PAGE_QUANTITIES))}
    except DrevoError as error:
        program = _program(model, ("poses",))
        poses = program.outputs[0]._replace(name="poses")
        return {"state": live_function(replace(program, outputs=(poses,)))}, [f"No dynamics here: {error}."]
    if model.closed:
        return functions, ["The closed loops of this robot are open here: its links move as those of the tree."]
    try:
        functions["motion"] = live_function(_program(model, ("forward_dynamics",), passive=True))
        if any(j.turns for j in model.moving_joints):
            functions["integrate"] = live_function(motion_on(model, "integrate"))
    except DrevoError as error:
        functions.pop("motion", None)
        notes.append(f"No motion here: {error}.")
    return functions, notes


def _program(model: Model, quantities: Sequence[str], passive: bool = False) -> Any:
    return Recipe.of(model, quantities, passive=passive, options={}).program(model)


def _plotted(model: Model) -> list[dict[str, Any]]:
    """Coordinates that are drawn over time: not those of a quaternion."""
    plotted, units = [], model.units_of("rad", "m", kind="q")
    for j, sq, _ in model.slices():
        plain = range(sq.start, sq.stop - 4 * j.turns)
        names = [j.name if j.nq == 1 else f"{j.name}[{k - sq.start}]" for k in plain]
        plotted += [{"name": name, "q": k, "unit": units[k]} for name, k in zip(names, plain)]
    return plotted


def _walls(model: Model) -> list[tuple[int, int, float, float]]:
    """Place in q and in v of what has limits, and these."""
    walls = []
    for j, sq, sv in model.slices():
        if j.nq == 1 and j.limit and j.limit.lower is not None and j.limit.upper is not None:
            walls.append((sq.start, sv.start, j.limit.lower, j.limit.upper))
    return walls


def _floating(model: Model) -> list[int]:
    """Places in v of free joints, which a handle leaves where they are."""
    return [k for j, _, sv in model.slices() if j.kind == "free" for k in range(sv.start, sv.stop)]


def rates_of(model: Model) -> list[tuple[str, str]]:
    """Name and unit of what each rate moves."""
    names = [joint + index for joint, index in model.freedoms()]
    return list(zip(names, model.units_of("rad", "m")))


def _head(model: Model) -> str:
    """The robot: its name, how it can move, its mass."""
    size = f"{model.nv} degrees of freedom, {len(model.links)} links, {model.total_mass:.4g} kg"
    return f"<header><h1>{escape(model.name)}</h1><p>{size}</p></header>"


def _links(model: Model, name: str, label: str) -> str:
    """A list of the links to choose one from, at first the last."""
    last = len(model.links) - 1
    options = "".join(
        f'<option value="{k}"{" selected" * (k == last)}>{escape(link.name)}</option>'
        for k, link in enumerate(model.links)
    )
    return f'<select id="{name}" aria-label="{label}">{options}</select>'


def _figure(model: Model) -> str:
    kinds = "".join(f'<option value="{kind}">{said}</option>' for kind, said in HANDLE_KINDS.items())
    handle = f"handle on {_links(model, 'handle', 'link of the handle')}"
    boxes = "".join(
        f'<label><input type="checkbox" id="show-{name}"{" checked" * on}>{said}</label>'
        for name, (said, on) in PAGE_LAYERS.items()
    )
    return (
        '<canvas id="figure" role="img" aria-label="the robot; drag turns, double click fits">'
        f'</canvas><div class="bar">{boxes}<button id="picture">Picture</button></div>'
        f'<div class="bar"><span>{handle}</span><select id="handle-kind" aria-label="what the handle moves">'
        f'{kinds}</select><span class="note" id="handle-note" role="status"></span></div>'
    )


def _sliders(model: Model, inputs: dict[str, LiveInput], moving: Sequence[str]) -> str:
    """A slider for every number of q, then of v and a where the formulas take them."""
    tables = []
    for name in [x for x in ("q", "v", "a", "tau") if x in moving or x == "q"]:
        kind = "q" if name == "q" else "v"
        joints, units = model.freedoms(kind), model.units_of(*SLIDER_UNITS[name], kind=kind)
        rows = "".join(
            f"<tr><td><math><msub><mi>{'τ' if name == 'tau' else name}</mi><mn>{k + 1}</mn></msub></math></td>"
            f"<td>{escape(joint)}{escape(index)}</td>"
            f"<td>{slider(name, k, inputs[name], f'{name} of {joint}{index}', unit)}</td></tr>"
            for k, ((joint, index), unit) in enumerate(zip(joints, units))
        )
        tables.append(f"<table>{rows}</table>")
    return f'<div class="sliders">{"<hr>".join(tables)}</div>'


def _panels(model: Model, functions: dict[str, LiveFunction], notes: Sequence[str]) -> str:
    panels = [
        f'<section><h2>Pose</h2><div class="bar">{_links(model, "link", "link")}</div>'
        '<table id="pose" tabindex="0"></table><p class="note">R | p, world from link, m</p></section>'
    ]
    if len(functions["state"].low.outputs) > 1:
        panels += [
            '<section><h2>Mass matrix</h2><canvas id="heat" role="img"'
            ' aria-label="the mass matrix by colour; the entry under the pointer is shown below"></canvas>'
            '<p class="note" id="entry">six decades by depth of colour; red is negative</p></section>',
            f'<section id="gravity"><h2>Gravity</h2>{_bars(model)}'
            '<p class="note">what holds it at rest</p>'
            '<p class="note">Energies: <span id="energy"></span><br>'
            'Centre of mass, m: <span id="mass"></span></p></section>',
        ]
    said = "".join(f'<p class="note">{escape(x)}</p>' for x in notes)
    return f'{said}<div class="panels">{"".join(panels)}</div>{_swing() if "motion" in functions else ""}'


def _loads() -> str:
    kinds = "".join(f'<option value="{kind}">{text}</option>' for kind, (text, _) in DIAGRAM_KINDS.items())
    return (
        '<section id="along"><h2>Loads in the links</h2><div class="bar"><select id="loads" aria-label="loads">'
        f'<option value="">nothing</option>{kinds}</select></div><p class="note" id="load-note"></p>'
        '<div class="rows" tabindex="0"><table id="load-rows"></table></div></section>'
    )


def _bars(model: Model) -> str:
    rows = "".join(
        f'<tr><td title="{escape(joint)}">{escape(joint)}{escape(index)}</td>'
        f'<td class="lane"><div data-bar></div></td><td class="n"></td><td class="u">{unit}</td></tr>'
        for (joint, index), unit in zip(model.freedoms(), model.units_of(*SLIDER_UNITS["tau"]))
    )
    return f'<div class="rows" tabindex="0"><table>{rows}</table></div>'


def _swing() -> str:
    return (
        '<section><h2>Motion</h2><div class="bar"><button id="swing">Let go</button>'
        '<button id="play">Play</button><input type="range" id="time" min="0" max="0" value="0" aria-label="time">'
        '<label>for <input type="number" id="seconds" value="3" min="0.1" max="20" step="any"> s</label>'
        '<label><input type="checkbox" id="walls" checked>walls at the limits</label>'
        '<span class="note" id="drift"></span></div>'
        '<canvas class="plot" id="angles" role="img" aria-label="coordinates over time"></canvas>'
        '<canvas class="plot" id="energies" role="img" aria-label="energies over time"></canvas>'
        '<p class="note">From rest where it stands, without efforts, with what acts in the joints; a wall is a '
        "damped spring of 10 Hz, whose energy is not drawn; steps of 1 ms, fourth order.</p></section>"
    )
