"""Memory by name and straight-line stages over it: the data from which `codegen.llvm` writes loops.

A block is memory with a name, a size and a stride; a Place is a part of a block. A stage is a lowered program
each of whose ports is a block or a Place. `llvm.stages` calls stages of a tile until every lane has what it
wants; `llvm.bodies` calls them for every body of a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .lower import Lowered

CHOSEN_BLOCK = "here"  # the block that each call of a stage chooses


class Place(str):
    """The name of a port that is a part of a block: of the block `block` by its number, from entry `first` on."""

    block: str
    first: int
    number: int

    def __new__(cls, block: str, first: int = 0, number: int = 0, name: str = "") -> Place:
        place = super().__new__(cls, name or f"{block}[{first}]")
        place.block, place.first, place.number = block, first, number
        return place

    def __getnewargs__(self) -> tuple[str, int, int, str]:  # type: ignore[override]
        return self.block, self.first, self.number, str(self)

    @property
    def home(self) -> tuple[str, int]:
        """The block, by name and number."""
        return self.block, self.number


def port_place(port: str) -> Place:
    """The place of a port, which is a whole block where it says no more."""
    return port if isinstance(port, Place) else Place(port)


def homes(stages: Iterable[Lowered]) -> list[tuple[str, int]]:
    """The blocks that some stages read or write, each once."""
    return list(dict.fromkeys(port_place(p.name).home for s in stages for p in (*s.inputs, *s.outputs)))


class BlockLayout:
    """Named blocks one after the other in one memory: where each begins, and where the last ends, in entries."""

    def __init__(self, sizes: Mapping[str, int], first: int = 0) -> None:
        self.starts, self.end = dict[str, int](), first
        for name, size in sizes.items():
            self.starts[name] = self.end
            self.end += size


class FieldLayout(NamedTuple):
    """Named fields of 8 bytes each, one after the other: doubles, integers, and else addresses."""

    names: tuple[str, ...]
    doubles: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()

    def place(self, field: str) -> int:
        """The number of fields before one."""
        return self.names.index(field)


# -- loops over the bodies of a tree --------------------------------------------------------------------------

BLOCK_BODIES = 256  # bodies of a block, a power of two: their slots in all lanes stay in the second cache
MIN_LONG_BODIES = (
    2048  # bodies from which a batch runs sample by sample: the state of a tile would leave the cache
)
MAX_TILED_RESULTS = 2**16  # scalars of the results up to which it goes in tiles: matrices of 256 freedoms
SOLVE_LANES = 16  # columns side by side of a TreeSolve, for which there is room

# per body, i32; parent and own: first scalar of the slot; up: number of the parent, or -1; kept: its number among
# the bodies with a child in a later block, or -1
BODY_INTEGERS = ("kind", "parent", "own", "q", "v", "up", "kept")
MODEL_WORDS = (  # behind the model pointer; sizes of the results; alone: 1 where a batch runs sample by sample;
    # first, way: the body and the freedom where a walk up begins;
    # kept: how many bodies have a child in a later block
    "ground", "table", "integers", "bodies", "rows", "nq", "nv", "state", "lock", "slots", "loads", "first",
    "alone", "way", "size0", "size1", "size2", "kept",
)  # fmt: skip


class BodyLoop(NamedTuple):
    """One sweep; `steps` by kind of body, stages over these blocks:

    "table", the numbers of the body; "own", "parent", "ground", slots of the state; "sines", "cosines", of q;
    "arg", by its number; "out" from its start; "result", the last at the body's v, "rates", the first at its q;
    "row" of a matrix, at v; in a loop over pairs "upper", the slot of the other, and "pair", "mirror" of the
    results (v, v); "more", a vector beside the state, at v; "gains", seven numbers of every rate.

    over: "bodies"; "rows", which follow them in the tables (loads, links, freedoms); "path", from the body `first`
    up to the ground; "way", from the freedom `way`; "first", that body alone; "once". fresh: the ground's slot is
    set before it. inner: of every row with itself and those on its way up.
    """

    backward: bool
    steps: tuple[Lowered, ...]
    over: str = "bodies"
    fresh: bool = True
    inner: Lowered | None = None


class TreeSolve(NamedTuple):
    """Sweeps over all freedoms, inwards and outwards, for the columns of an array, in place.

    Blocks of its stages: "shared", the slot; "here" and "above", what moves along the tree; "entry", the row of
    the array. array: "out0", .. or "more". matrix: (nv, nv), else one column. unit: it is the identity before
    and symmetric after, which halves the work.
    """

    array: str
    inwards: Lowered | None
    outwards: Lowered | None
    matrix: bool = False
    unit: bool = False


def solve_scratch(nv: int) -> int:
    """Scalars of the state behind all else: a vector of the freedoms, then six for each in lanes."""
    return nv + 6 * SOLVE_LANES * (nv + 1)


class Rolled(NamedTuple):
    """All sweeps of a quantity. ground: scalars of slot 0; table: numbers per body.

    turning: sines and cosines of all q are formed before the sweeps, many at once, into the end of the state.
    loaded: external wrenches, six numbers each, are a last argument, gathered after the sines and cosines.
    tiled: batches go many lanes at a time; without, sample by sample, and half as much code is made.
    results: scalars of each, 0 where that depends on the model. zeroed: what no step writes is 0. slot: of a body
    whose sweeps go by blocks, see `by_blocks`; else 0.
    """

    loops: tuple[BodyLoop | TreeSolve, ...]
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
        """Names of the results."""
        return [f"out{i}" for i in range(len(self.results))]

    @property
    def given(self) -> list[str]:
        """Names of the arguments of a kernel; the wrenches, one after the other, are the last."""
        return [f"arg{i}" for i in range(len(self.arguments) + self.loaded)]


# y, e: state and what its update rounded off; Y, K, Z: stage, rates, new rates; P: state put on its constraints;
# gap: what is left of them in units of CLOSED; watch: what must stay below 1 as long as they are independent;
# rows: SAMPLE_NUMBERS of each sample while something is iterated, see `llvm.motion`
_MOTION_NAMES = (
    "q", "v", "e_q", "e_v", "Y_q", "Y_v", "K_q", "K_v", "Z_q", "Z_v", "a_q", "a_v", "b_q", "b_v", "c",
    "tau", "tau_step", "t", "t0", "h", "k", "stages", "sweeps", "count", "every", "records",
    "to_q", "to_v", "to_q_step", "to_v_step", "pad_q", "pad_v", "n_q", "n_v", "quaternions", "quaternion_count",
    "size_q", "size_v", "rows", "arena", "strides", "pointers", "scratch", "status", "best", "code",
    "rtol", "atol", "t_end", "to_t", "e_5", "e_3", "rejected",
    "given", "P_q", "P_v", "gap", "watch", "size_gap", "size_watch",
)  # fmt: skip
_DOUBLES = ("t0", "h", "rtol", "atol", "t_end")
_INTEGERS = (
    "tau_step", "k", "stages", "sweeps", "count", "every", "records", "to_q_step", "to_v_step", "pad_q", "pad_v",
    "n_q", "n_v", "quaternion_count", "size_q", "size_v", "code", "rejected", "size_gap", "size_watch",
)  # fmt: skip

MOTION_STATE = FieldLayout(_MOTION_NAMES, _DOUBLES, _INTEGERS)

SAMPLE_NUMBERS, SAMPLE_DONE = 2, -1.0  # numbers of a sample; the first of them where it is done
# codes of a motion that stopped
NOT_FINITE, UNSETTLED, TOO_SMALL, DEPENDENT, OPEN = 1, 2, 3, 4, 5

SETTLED = 1e-10  # of the largest rate: below it an iteration that no longer gains has converged
SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0  # of the choice of the next step
FIRST_STEP = 1e-3  # s: the first guess of a step
MIN_STEP_ULPS = 64.0  # units of the last place of t: below it a step is none
COMPILED_ORDER = 8  # the exponent 1/8 is three square roots; methods of other orders go on in Python
