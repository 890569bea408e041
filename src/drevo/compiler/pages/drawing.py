"""Drawings of a robot: poles, axes and centres at a slightly bent pose, and the direction of view.

The computation behind live pages: WebAssembly of programs, and the value of every statement of a sequence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import pi

from ...codegen.graph.program import Output, Program
from ...codegen.lower.lower import lower
from ...codegen.store.targets import MACHINES, MAX_STEPS, compiled_for
from ...documents.about import About
from ...documents.document import equal_entries
from ...documents.languages.html import Live, code_part, contents, page_body, page_head, page_parts
from ...documents.languages.html_style import HTML_SCRIPT
from ...documents.live import FUNCTION, SETTINGS, LiveFunction, LiveInput, data_of, document, scripts
from ...documents.pictures.drawing import Drawing, DrawnBody, Point, svg
from ...documents.sequence.layout import entry_name
from ...documents.sequence.sequence import Sequence as Written
from ...documents.sequence.sequence import write_sequence_with_edges
from ...errors import EmitError
from ...mechanics.algorithms.kinematics import Pose, body_poses
from ...mechanics.configuration import bounds, neutral
from ...mechanics.spatial import UNIT_VECS, Vec
from ...mechanics.tree import Tree, build_tree
from ...model.description import Model
from ...model.draft import model_of
from ...model.dynamics import Described

SNAP = 1e-9
MAX_DRAWN_BODIES = 40  # bodies: a drawing of more is a scribble
TURNING = ("revolute", "helical")
BENT = (0.3, -0.55, 0.45, 0.35)  # rad, by turns: hinges in a line would hide each other
EYE_ASIDE, EYE_ABOVE = 0.45, 0.3  # how far the eye stands to the right of the front and above it
STRAIGHT = 1e-9


def robot_svg(
    robot: Described | Model, q: list[float] | None = None, letters: Mapping[str, str] | None = None
) -> str:
    """An SVG drawing of a robot, slightly bent where no configuration is given; letters: see `drawing_of`."""
    return svg(drawing_of(robot, q, letters))


def drawing_of(
    robot: Described | Model, q: list[float] | None = None, letters: Mapping[str, str] | None = None
) -> Drawing:
    """The places that a drawing of a robot shows; letters: see Drawing, and with them q is neutral by default."""
    model = model_of(robot, "drawing")
    tree = build_tree(model, snap=SNAP)
    if q is None:
        q = _bent(tree, model) if letters is None else neutral(model).tolist()
    poses = body_poses(tree, q)
    axes = [_axis(tree, i, pose) for i, pose in enumerate(poses)]
    right, up = _view(tree, axes)
    masses, moments = augmented(tree)
    parts = []
    for i, (b, pose) in enumerate(zip(tree.bodies, poses)):
        own = _place(pose, b.inertia.h * (1.0 / b.inertia.m)) if b.inertia.m else None
        carries = masses[i] and i in tree.parents  # a body that carries nothing is its own augmented body
        star = _place(pose, moments[i] * (1.0 / masses[i])) if carries else None
        axis = axes[i]
        point = None if axis is None else _point(axis)
        frame = tuple(_point(pose.R @ e) for e in UNIT_VECS)
        legs = _legs(b.p, poses[b.parent]) if b.parent >= 0 else ()
        parts.append(DrawnBody(b.number, b.parent, _point(pose.p), b.kind, point, own, star, frame, legs))
    return Drawing(tuple(parts), _point(right), _point(up), _posture(tree, q), letters)


def _legs(offset: Vec, base: Pose) -> tuple[Point, ...]:
    """The places reached from the base's pole by the offset's parts along the base's axes, one after the other."""
    ends, at = [], Vec(0.0, 0.0, 0.0)
    for e, part in zip(UNIT_VECS, offset):
        if abs(part) > SNAP:
            at = at + e * part
            ends.append(_place(base, at))
    return tuple(ends)


def _posture(tree: Tree, q: list[float]) -> tuple[str, ...]:
    """The turned coordinates, by the joint each belongs to."""
    joints = {b.q: b.joint for b in reversed([*tree.owners()]) if b.kind in TURNING}  # not those that follow it
    turned = [f"q_{k + 1} = {q[k]:g} rad ({joints[k]})" for k in sorted(joints) if q[k]]
    return (*turned, *(["others neutral"] if turned and len(turned) < len(q) else []))


def augmented(tree: Tree) -> tuple[list[float], list[Vec]]:
    """m_i of the subtrees and d_i of the augmented bodies, (1)."""
    masses, moments = [b.inertia.m for b in tree.bodies], [b.inertia.h for b in tree.bodies]
    for i in range(len(tree) - 1, -1, -1):
        up = tree.bodies[i].parent
        if up >= 0:
            masses[up] += masses[i]
            moments[up] = moments[up] + tree.bodies[i].p * masses[i]
    return masses, moments


def _bent(tree: Tree, model: Model) -> list[float]:
    q = [float(x) for x in neutral(model)]
    middle = bounds(model).mean(0).tolist()
    for k, b in enumerate(tree.owners()):
        if b.kind in TURNING:
            q[b.q] = BENT[k % len(BENT)]
        elif b.nq == b.nv:  # a formula may have no value at zero
            q[b.q : b.q + b.nq] = middle[b.q : b.q + b.nq] if b.kind == "custom" else [0.0] * b.nq
    return q


def _axis(tree: Tree, i: int, pose: Pose) -> Vec | None:
    b = tree.bodies[i]
    if b.kind not in ("revolute", "helical", "prismatic"):
        return None
    return pose.R @ (UNIT_VECS[b.axis] * (-1.0 if b.factor < 0 else 1.0))


def _view(tree: Tree, axes: list[Vec | None]) -> tuple[Vec, Vec]:
    """Right and up: along the axes of a mechanism in a plane, else from above and aside, gravity down."""
    down = tree.gravity
    hinges = [a for a in axes if a is not None]
    flat = bool(hinges) and all(_length(a.cross(hinges[0])) < STRAIGHT for a in hinges)
    up = UNIT_VECS[2] if down.zero else down * (-1.0 / _length(down))
    if not flat:
        return seen_from(_across(up), up)
    normal = hinges[0] if sum(hinges[0]) > 0.0 else -hinges[0]
    if abs(up.dot(normal)) > 0.9:
        up = _across(normal)
    up = _unit(up - normal * up.dot(normal))
    return up.cross(normal), up


def seen_from(front: Vec, up: Vec) -> tuple[Vec, Vec]:
    """Right and up from aside and above of a front that is across up, or of its back."""
    front = -front if sum(up.cross(front)) < 0.0 else front  # the coordinate axis across it to the right
    eye = _unit(front + up.cross(front) * EYE_ASIDE + up * EYE_ABOVE)
    right = _unit(up.cross(eye))
    return right, eye.cross(right)


def _across(up: Vec) -> Vec:
    """The coordinate axis to look along: z before y before x, whichever is across."""
    return _unit(min((UNIT_VECS[k] for k in (1, 2, 0)), key=lambda e: abs(e.dot(up)) - 0.1 * e.z))


def _length(v: Vec) -> float:
    return math.sqrt(v.dot(v))


def _unit(v: Vec) -> Vec:
    return v * (1.0 / _length(v))


def _place(pose: Pose, r: Vec) -> Point:
    return _point(pose.p + pose.R @ r)


def _point(v: Vec) -> Point:
    return float(v.x), float(v.y), float(v.z)


SLIDER_RATE, SLIDER_ACCELERATION = 3.0, 10.0  # how far sliders of rates and accelerations go, in rad and m
INPUT_LIMITS = {"v": SLIDER_RATE, "a": SLIDER_ACCELERATION, "tau": 100.0, "f_ext": 100.0}
QUICK = 20_000  # steps: browsers put code in order themselves, but take 50,000 variables of a function at most
PROMPT_STEPS = 6_000  # steps that are compiled in about a second
AT_FIRST = 0.5  # where sliders stand: at zero little is to be seen


def live_function(program: Program) -> LiveFunction:
    """The program as a module of WebAssembly with one function. EmitError where it is too long for one."""
    low = lower(replace(program, guards=()), parameters=bool(program.parameters), fma=False)
    if len(low.steps) > MAX_STEPS:
        raise EmitError(f"{program.name} has {len(low.steps)} steps, more than the {MAX_STEPS} of a live page")
    effort = 0 if len(low.steps) <= QUICK else 2
    made = compiled_for(MACHINES["wasm"], low, "double", False, FUNCTION, alone=True, effort=effort)
    return LiveFunction(made.data, low)


def live_values(program: Program) -> tuple[Written, LiveFunction, dict[str, int]]:
    """The sequence, what computes all its values, and where among them that of a statement or an entry stands."""
    sequence, edges = write_sequence_with_edges(program)
    own = {o.name: o for o in program.outputs}
    for result in sequence.results:
        entries = [entry_name(result.source, result.shape, k) for k in range(len(result.entries))]
        found = dict(zip(entries, own[result.source].edges))
        edges |= {same.names[0]: found[same.names[0]] for same in equal_entries(result)}
    values = Output("values", (len(edges),), tuple(edges.values()))
    function = live_function(replace(program, outputs=(values,)))
    return sequence, function, {name: k for k, name in enumerate(edges)}


def live_page(program: Program, facts: About) -> str | None:
    """A page of equations with sliders and the value of every line; None where that would take long."""
    if len(program.order()) > PROMPT_STEPS:
        return None
    sequence, values, slots = live_values(program)
    inputs, functions = live_inputs(program), {"values": values}
    slots |= {x: slots[s.name] for s in sequence.statements() for x in s.also}  # in a paper's notation
    parts = [*page_parts(sequence, facts, Live(slots, inputs)), code_part(sequence, facts)]
    data = data_of(functions, inputs, live_units(program), robot=facts.robot)
    body = f"{contents(parts)}\n<main>{page_head(facts)}{SETTINGS}\n{page_body(parts)}</main>"
    return document(facts.title, body, f"{scripts(data, functions, False)}<script>{HTML_SCRIPT}</script>")


def live_inputs(program: Program, model: Model | None = None) -> dict[str, LiveInput]:
    """Sliders for the arguments: q of a model inside its limits, else as far as such numbers mostly go."""
    found = {p.name: _ranged(p.name, p.size, AT_FIRST * (model is None)) for p in program.inputs}
    for name, places in live_units(program):
        for k in places:
            found[name].value[k] = float(k == places[3])
    if model is not None and "q" in found:
        found["q"] = configuration_input(model, found["q"].value)
    if program.parameters:
        values = [x.value for x in program.parameters]
        far = [abs(x) or 1.0 for x in values]
        low, high = zip(*((x - y, x + y) for x, y in zip(values, far)))
        found["parameters"] = LiveInput(values, low, high)
    return found


def live_units(program: Program) -> list[tuple[str, tuple[int, ...]]]:
    """Inputs with the places of quaternions among them."""
    places = {n: (p.name, k) for p in program.inputs for k, n in enumerate(p.nodes)}
    return [(places[u[0]][0], tuple(places[n][1] for n in u)) for u in program.units]


def configuration_input(model: Model, start: Sequence[float]) -> LiveInput:
    """Sliders of q, which begin at `start`, or at the limit where that is beyond it."""
    low, high = bounds(model).tolist()
    return LiveInput([min(max(x, a), b) for x, a, b in zip(start, low, high)], low, high)


def _ranged(name: str, size: int, start: float) -> LiveInput:
    far = INPUT_LIMITS.get(name.partition(":")[0], pi)
    return LiveInput([start] * size, [-far] * size, [far] * size)
