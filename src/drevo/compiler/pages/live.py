"""The computation behind live pages: WebAssembly of programs, and the value of every statement of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import pi

from ...codegen.graph.program import Output, Program
from ...codegen.lower.lower import lower
from ...codegen.store.targets import LONGEST, MACHINES, compiled_for
from ...documents.about import About
from ...documents.document import equal_entries
from ...documents.languages.html import Live, code_part, contents, page_body, page_head, page_parts
from ...documents.languages.html_style import SCRIPT
from ...documents.live import FUNCTION, SETTINGS, LiveFunction, LiveInput, data_of, document, scripts
from ...documents.sequence.layout import entry_name
from ...documents.sequence.sequence import Sequence as Written
from ...documents.sequence.sequence import write_sequence_with_edges
from ...errors import EmitError
from ...mechanics.configuration import bounds
from ...model.description import Model

RATE, ACCELERATION = 3.0, 10.0  # how far sliders of rates and accelerations go, in rad and m
REACH = {"v": RATE, "a": ACCELERATION, "tau": 100.0, "f_ext": 100.0}
QUICK = 20_000  # steps: browsers put code in order themselves, but take 50,000 variables of a function at most
PROMPT = 6_000  # steps that are compiled in about a second
AT_FIRST = 0.5  # where sliders stand: at zero little is to be seen


def live_function(program: Program) -> LiveFunction:
    """The program as a module of WebAssembly with one function. EmitError where it is too long for one."""
    low = lower(replace(program, guards=(), across=None), parameters=bool(program.parameters), fma=False)
    if len(low.steps) > LONGEST:
        raise EmitError(f"{program.name} has {len(low.steps)} steps, more than the {LONGEST} of a live page")
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
    if len(program.order()) > PROMPT:
        return None
    sequence, values, slots = live_values(program)
    inputs, functions = live_inputs(program), {"values": values}
    slots |= {x: slots[s.name] for s in sequence.statements() for x in s.also}  # in a paper's notation
    parts = [*page_parts(sequence, facts, Live(slots, inputs)), code_part(sequence, facts)]
    data = data_of(functions, inputs, live_units(program), robot=facts.robot)
    body = f"{contents(parts)}\n<main>{page_head(facts)}{SETTINGS}\n{page_body(parts)}</main>"
    return document(facts.title, body, f"{scripts(data, functions, False)}<script>{SCRIPT}</script>")


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
    far = REACH.get(name.partition(":")[0], pi)
    return LiveInput([start] * size, [-far] * size, [far] * size)
