"""What live pages compute with: WebAssembly of programs, and the value of every statement of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..codegen.emit.document import equal_entries
from ..codegen.emit.layout import entry_name
from ..codegen.emit.live import FUNCTION, LiveFunction, LiveInput
from ..codegen.emit.lower import lower
from ..codegen.emit.sequence import Sequence as Written
from ..codegen.emit.sequence import write_sequence_with_edges
from ..codegen.graph.program import Output, Program
from ..codegen.runtime.targets import MACHINES, compiled_for
from ..errors import EmitError
from ..mechanics.configuration import bounds
from ..model.description import Model
from .export import LONGEST

RATE, ACCELERATION = 3.0, 10.0  # how far sliders of rates and accelerations go, in rad and m
REACH = {"v": RATE, "a": ACCELERATION, "tau": 100.0, "f_ext": 100.0}


def live_function(program: Program) -> LiveFunction:
    """The program as a module of WebAssembly with one function. EmitError where it is too long for one."""
    low = lower(replace(program, guards=(), across=None), parameters=bool(program.parameters), fma=False)
    if len(low.steps) > LONGEST:
        raise EmitError(f"{program.name} has {len(low.steps)} steps, more than the {LONGEST} of a live page")
    made = compiled_for(MACHINES["wasm"], low, "double", False, FUNCTION, alone=True)
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


def live_inputs(program: Program, model: Model | None = None) -> dict[str, LiveInput]:
    """Sliders for the arguments: q of a model inside its limits, else as far as such numbers mostly go."""
    found = {p.name: _ranged(p.name, p.size) for p in program.inputs}
    for name, places in live_units(program):
        found[name].value[places[3]] = 1.0
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


def _ranged(name: str, size: int) -> LiveInput:
    far = REACH.get(name.partition(":")[0], 3.14159265)
    return LiveInput([0.0] * size, [-far] * size, [far] * size)
