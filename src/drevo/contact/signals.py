"""Controls and sensors of a step: what its actuators do, and what is read of the evaluation that begins it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.graph.node import Expr
from ..codegen.graph.program import Input, Parameter, Program
from ..codegen.graph.rebuild import part_of_graph
from ..codegen.llvm.ir import I8, I64
from ..codegen.llvm.stages import StageCalls
from ..compiler.tracer import Tracer, nodes_of, unknowns
from ..errors import InputError
from ..mechanics.algorithms.actuators import Actuation, activated, actuation, control_ranges
from ..mechanics.algorithms.constraints import Kinematics
from ..mechanics.algorithms.sensors import (
    NOTHING_NEAR,
    Readings,
    felt_of_place,
    felt_zones,
    ray_of,
    ray_to_solids,
    reading_size,
)
from ..mechanics.scalar import Scalar, Vector, where
from ..mechanics.spatial import Vec
from ..model.contact import Geom, Sensor
from ..model.description import Model
from ..model.loaders.primitives import half_lengths

ACTIVATION = "activation"  # block of the activations at an evaluation
EVALUATION_INPUTS = ("Q", "V", "tau", "ctrl", ACTIVATION)  # inputs of an evaluation
TOUCHED = 9  # numbers of a place that is felt: point, the way out of the link, force on it, in world axes
TOUCH_NUMBERS = 6  # of a place: its point and its normal


def driven_by(
    t: Tracer, model: Model, sizes: dict[str, int], controls: bool, step: float
) -> tuple[list[Expr], list[Expr], list[Scalar], Actuation | None]:
    """Q, V and the efforts of an evaluation, inputs of its stage, or those of actuators and what else these do."""
    q, v = t.input("Q", t.tree.nq), t.input("V", t.tree.nv)
    if not controls:
        return q, v, list(t.input("tau", t.tree.nv)), None
    count = len(activated(model))
    sizes |= {"ctrl": len(control_ranges(model)), "act": count, "act1": count, ACTIVATION: count}
    given = [t.input(name, sizes[name]) if sizes[name] else [] for name in ("ctrl", ACTIVATION)]
    drives = actuation(model, q, v, given[0], given[1], step, t.tree)
    return q, v, drives.efforts, drives


def drives_of(controls: bool, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The arguments of a step after q and v."""
    return tuple(name for name in ("ctrl", "act") if sizes[name]) if controls else ("tau",)


def sensors_named(model: Model, names: Sequence[str]) -> tuple[Sensor, ...]:
    """The sensors of these names, in their order."""
    known = {x.name: x for x in model.sensors}
    return tuple(known[name] for name in names)


def reading_slices(model: Model, names: Sequence[str]) -> dict[str, slice]:
    """By sensor, in the order of the names, where its readings stand in `sensordata`."""
    sensors, out, end = sensors_named(model, names), dict[str, slice](), 0
    for x in sensors:
        out[x.name] = slice(end, end := end + reading_size(x))
    return out


class SensorStages:
    """The stages that read sensors after an evaluation, over its graph: "feel0", .. add up what links feel of the
    places that press, "sense" writes "sensordata".

    sizes, parts: of the evaluation. ends: of each place, in its order, both links. state: Q, V and accelerations
    along the axes of free bodies, over inputs of the graph and of `more`.
    """

    def __init__(
        self, t: Tracer, model: Model, sensors: tuple[Sensor, ...], sizes: dict[str, int],
        parts: dict[str, Program], ends: Sequence[tuple[str, ...]], state: tuple[Vector, Vector, Vector],
        more: Sequence[Input], efforts: Vector, symbols: tuple[Parameter, ...],
    ) -> None:  # fmt: skip
        self.t, self.sizes, self.parts, self.symbols = t, sizes, parts, symbols
        self.inputs, self.ends = [*(x for x in t.inputs if x.name in EVALUATION_INPUTS), *more], ends
        moving, self.zones, inputs = Kinematics(t.tree, *state), felt_zones(model, sensors), list[Input]()
        felt = dict[str, Vector]()
        for k, (link, zone) in enumerate(self.zones.items()):
            (touched,), (before,) = self._given({"touched": TOUCHED}), self._given({f"felt{k}": len(zone) + 6})
            at, out, force = (Vec(*touched[1][j : j + 3]) for j in (0, 3, 6))
            share = felt_of_place(moving, zone, at, out, force)
            self._add(f"feel{k}", {f"felt{k}": [x + y for x, y in zip(before[1], share)]}, [touched[0], before[0]])
            inputs.append(before[0])
            felt[link] = before[1]
        lengths = {x.name: _ray(model, moving, x) for x in sensors if x.kind == "rangefinder"}
        read = Readings(model, sensors, moving, felt, efforts, lengths).read
        self._add("sense", {"sensordata": [y for x in sensors for y in read(x)]}, inputs)

    def _given(self, sizes: Mapping[str, int]) -> list[tuple[Input, list[Expr]]]:
        """Inputs of blocks of these names."""
        self.sizes |= sizes
        values = {name: unknowns(self.t.graph, name, n) for name, n in sizes.items()}
        return [(Input(name, (len(x),), nodes_of(x)), x) for name, x in values.items()]

    def _add(self, name: str, results: Mapping[str, Vector], more: Sequence[Input]) -> None:
        edges: dict[str, Any] = {k: [self.t.graph.edge(y) for y in x] for k, x in results.items()}
        self.sizes |= {k: len(x) for k, x in edges.items()}
        self.parts[name] = part_of_graph(name, self.t.graph, (*self.inputs, *more), edges, self.symbols)

    def write(self, c: StageCalls) -> None:
        """The calls."""
        for k, link in enumerate(self.zones):
            c.fill(0.0, f"felt{k}", 0, self.sizes[f"felt{k}"])
            for end, sign in enumerate((-1.0, 1.0)):
                if places := [i for i, links in enumerate(self.ends) if links[end] == link]:
                    _write_places(c, f"feel{k}", places, sign)
        c.call("sense")


def _write_places(c: StageCalls, stage: str, places: Sequence[int], sign: float) -> None:
    """A stage for every place that presses in some lane; sign: of the force on the second link."""
    l, table = c.l, c.table(I64, places)
    with c.f.loop(len(places), some=True) as loop:
        at = table.at(loop.i, I64).load(I64) * (3 * l.bytes)
        force, touch = c.at("forces").at(at, I8), c.at("touches").at(at * 2, I8)
        x, y, z = (force.at(j * l.bytes, I8).load(l.type, l.bytes) for j in range(3))
        with c.f.when(c.any(x * x + y * y + z * z > 0.0)):
            given = [touch.at(j * l.bytes, I8).load(l.type, l.bytes) for j in range(TOUCH_NUMBERS)]
            turned = *(n * -sign for n in given[3:]), x * sign, y * sign, z * sign
            for j, number in enumerate((*given[:3], *turned)):
                c.at("touched", j).store(number, l.bytes)
            c.call(stage)


def _ray(model: Model, moving: Kinematics, sensor: Sensor) -> Scalar:
    """The length along z of a sensor to geoms and visual shapes that are not on its link; -1 to nothing."""
    seen = [x for x in model.geoms if x.link != sensor.link]
    for link in model.links:
        shown = (x for x in link.shapes if x.role == "visual" and link.name != sensor.link)
        seen += [Geom("", link.name, x.kind, half_lengths(x), x.origin, x.rotation) for x in shown]
    if odd := sorted({x.kind for x in seen if x.kind in ("mesh", "hull", "hfield")}):
        raise InputError(
            f"step: sensor {sensor.name!r} of {model.name!r} is a rangefinder among things of the kinds "
            f"{', '.join(odd)}, which rays do not meet; leave it out of sensors"
        )
    least = ray_to_solids(moving, seen, *ray_of(moving, sensor))
    return where(least < NOTHING_NEAR, least, -1.0)
