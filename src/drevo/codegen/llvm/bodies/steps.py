"""Parts of rolled code: sweeps over the rows of a table, and the step of one row as LLVM text.

A model is data: a table of numbers and a table of integers per body. State lies body by body in slots of any
size; slot 0 is the ground, set afresh before every loop.
"""

from __future__ import annotations

from typing import NamedTuple

from ...lower.lower import Lowered
from ...lower.split import split_functions
from ..ir import I8, I32, I64, IRFunction, Value
from ..kernel import FunctionBody, Kernel
from ..math import Lanes
from ..ports import Address, Ports
from ..target import Target

# per body, i32; parent and own: first scalar of the slot; up: number of the parent, or -1; kept: its number among
# the bodies with a child in a later block, or -1
INTEGERS = ("kind", "parent", "own", "q", "v", "up", "kept")
MODEL = (  # words behind the model pointer; sizes of the results; alone: 1 where a batch runs sample by sample;
    # first, way: the body and the freedom where a walk up begins;
    # kept: how many bodies have a child in a later block
    "ground", "table", "integers", "bodies", "rows", "nq", "nv", "state", "lock", "slots", "loads", "first",
    "alone", "way", "size0", "size1", "size2", "kept",
)  # fmt: skip
_STATE = ("own", "parent", "ground", "here", "above")
_SHARED = ("table", "shared")  # by all lanes


class Place(NamedTuple):
    """Place of a port of a step: its base, and its first scalar there.

    base: "table"; "own", "parent" or "ground", the slots; "sines", "cosines", of q; "arg0", ..; "out0", .. from
    its start; "result", the last at the body's v, "rates", the first at its q; "row0", .. of a matrix, at v; in a
    loop over pairs "upper", the slot of the other, and "pair0", "mirror0", .. of the results (v, v); "more", a
    vector beside the state, at v; "gains", seven numbers of every rate. Of a Solve: "shared", the slot; "here" and
    "above", what moves along the tree; "entry", the row of the array.
    """

    base: str
    offset: int = 0


class BodyStep(NamedTuple):
    """The work on one body of one kind in one loop."""

    low: Lowered
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


class BodyLoop(NamedTuple):
    """One sweep; `steps` by kind.

    over: "bodies"; "rows", which follow them in the tables (loads, links, freedoms); "path", from the body `first`
    up to the ground; "way", from the freedom `way`; "first", that body alone; "once". fresh: the ground's slot is
    set before it. inner: of every row with itself and those on its way up.
    """

    backward: bool
    steps: tuple[BodyStep, ...]
    over: str = "bodies"
    fresh: bool = True
    inner: BodyStep | None = None


class Solve(NamedTuple):
    """Sweeps over all freedoms, inwards and outwards, for the columns of an array, in place.

    array: "out0", .. or "more". matrix: (nv, nv), else one column. unit: it is the identity before and symmetric
    after, which halves the work.
    """

    array: str
    inwards: BodyStep | None
    outwards: BodyStep | None
    matrix: bool = False
    unit: bool = False


class Rolled(NamedTuple):
    """All sweeps of a quantity. ground: scalars of slot 0; table: numbers per body.

    turning: sines and cosines of all q are formed before the sweeps, many at once, into the end of the state.
    loaded: external wrenches, six numbers each, are a last argument, gathered after the sines and cosines.
    tiled: batches go many lanes at a time; without, sample by sample, and half as much code is made.
    results: scalars of each, 0 where that depends on the model. zeroed: what no step writes is 0. slot: of a body
    whose sweeps go by blocks, see `by_blocks`; else 0.
    """

    loops: tuple[BodyLoop | Solve, ...]
    arguments: tuple[str, ...]
    ground: int
    table: int
    turning: bool = True
    loaded: bool = False
    tiled: bool = True
    results: tuple[int, ...] = (0,)
    zeroed: bool = False
    slot: int = 0

    @property
    def outs(self) -> list[str]:
        return [f"out{i}" for i in range(len(self.results))]


def word(f: IRFunction, name: str, kind: str = I64) -> Value:
    """A word behind the pointer `model` of a function."""
    return f.model.at(MODEL.index(name), I64).load(kind)


def argument_names(rolled: Rolled) -> list[str]:
    """The arguments of a kernel; the wrenches, one after the other, are the last."""
    return [f"arg{i}" for i in range(len(rolled.arguments) + rolled.loaded)]


# -- the work on one row --------------------------------------------------------------------------------------


def row_of(f: IRFunction, integers: Value, i: Value) -> dict[str, Value]:
    """The integers of a row of the tables."""
    at = integers.at(i, f"[{len(INTEGERS)} x i32]")
    casts = {name: "sext" if name in ("up", "kept") else "zext" for name in INTEGERS}
    return {name: at.at(k, I32).load(I32).cast(cast, I64) for k, (name, cast) in enumerate(casts.items())}


def write_step(
    f: IRFunction,
    step: BodyStep,
    target: Target,
    l: Lanes,
    bases: dict[str, Value],
    ground: dict[int, str] | None = None,
) -> None:
    """The step with its places counted from these addresses.

    ground: the ground's slot in registers, by place: names of the values before, and then of those after.
    Only results are tested: what is not finite in a state reaches them.
    """
    low = step.low
    kernel = Kernel(low, target, split_functions(low, len(low.steps)), _step_ports(step, l, bases, ground))
    kernel.ends = {
        v for v, ports in kernel.sinks.items() if any(step.outputs[i].base not in _STATE for i, _, _ in ports)
    }
    FunctionBody(kernel, f, stem=f.fresh("step") + "_").write(low.steps)


def _step_ports(step: BodyStep, l: Lanes, bases: dict[str, Value], ground: dict[int, str] | None) -> Ports:
    """The ports of a step: the addresses that the places of its inputs and outputs stand for."""

    before = None if ground is None else dict(ground)

    def address(p: Place, ground: dict[int, str] | None) -> Address:
        if p.base == "ground" and ground is not None:
            return Address("", p.offset, registers=ground)
        size = l.size if p.base in _SHARED else l.bytes
        shared = p.base in _SHARED and l.lanes > 1
        return Address(bases[p.base].at(p.offset * size, I8).text, shared=shared)

    inputs, outputs = [address(p, before) for p in step.inputs], [address(p, ground) for p in step.outputs]
    return Ports(l, inputs, outputs, {}, l.size if "entry" in bases else l.bytes, True)  # a row of any length
