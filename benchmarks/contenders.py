"""What is measured: windows, each a few milliseconds of one contender at one task.

Sections: "cache", tiles that stay in cache, batch last and packed; "scalar", one state at a time less what the
call costs; "memory", 100,000 states in (B, n) arrays; "call", one call from Python; "other", other peers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice, repeat
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from cases import FEW, QUANTITIES, STATES, Array, Case, function, null
from inner_loops import Child

CACHED = (2**15, 2**16, 2**18)  # bytes of a batch and its results: the first cache, parts of a second
# the best serves: the peers write the results of each state over those of the one before, in the first cache
BATCHES = 16  # of fresh states, taken in turn
WINDOW = 1.5e-3  # seconds of a window, roughly
SCALAR = {"panda": QUANTITIES, "go2": QUANTITIES[1:4:2], "talos": QUANTITIES[1:4:2]}
SLICE = 2_000  # states of a peer's window in the section "memory"

Window = Callable[[int], tuple[float, int]]  # round -> seconds, evaluations


class Key(NamedTuple):
    """Which cell of which table."""

    section: str
    robot: str
    quantity: str
    who: str


Windows = dict[Key, Window]


def timed(call: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of some calls."""
    start = clock()
    for _ in repeat(None, repeats):
        call()
    return clock() - start


def plain(result: Any) -> Any:
    """A result as `out=` takes it fastest: an array, or a plain tuple of them."""
    return tuple(result) if isinstance(result, tuple) else result


# --- in cache ----------------------------------------------------------------------------------------------


def cached(case: Case, quantity: str, **spec: Any) -> Window:
    """Drevo on batches of (n, B) arrays that stay in cache, with out=; every window has another size or batch."""
    f = function(case, quantity, layout="batch_last", packed=True, **spec)
    rows = case.arguments(quantity)
    sizes = [_cached(f, rows, size) for size in CACHED]
    return lambda k: sizes[k % len(sizes)](k // len(sizes))


def _cached(f: Any, rows: list[Array], size: int) -> Window:
    """Batches that fill `size` bytes with their results."""
    one = [np.ascontiguousarray(x[:8].T, dtype=f.dtype) for x in rows]
    made = f(*one)
    made = made if isinstance(made, tuple) else (made,)
    each = sum(x.nbytes for x in (*one, *made)) // 8
    few = (size // each // 8 | 1) * 8  # an odd number of vectors: rows do not fall on the same lines
    batches = []
    for k in range(BATCHES):
        part = slice(k * few % (STATES - few), k * few % (STATES - few) + few)
        batches.append([np.ascontiguousarray(x[part].T, dtype=f.dtype) for x in rows])
    out = plain(f(*batches[0]))

    def ready(k: int) -> Callable[[], Any]:
        return partial(f.fast or f, *batches[k % BATCHES], out)

    repeats = max(1, int(WINDOW / min(timed(ready(1)) for _ in range(9))))

    def window(k: int) -> tuple[float, int]:
        call = ready(k)
        call()  # into the cache
        return timed(call, repeats), repeats * few

    return window


def narrow(case: Case) -> Windows:
    """Single precision beside double, sixteen lanes beside eight."""
    quantities = ("inverse_dynamics", "forward_dynamics")
    name = case.subject.name
    return {Key("cache", name, x, "drevo float32"): cached(case, x, dtype="float32") for x in quantities}


def looped(child: Child, quantity: str) -> Window:
    """A child's inner loop over its states."""
    count = 1
    while min(child.seconds(quantity, 0, count) for _ in range(5)) < WINDOW:
        count *= 2

    def window(k: int) -> tuple[float, int]:
        child.seconds(quantity, 0, FEW)  # into the cache
        return child.seconds(quantity, k * count % FEW, count), count

    return window


def in_cache(case: Case, children: dict[str, Child]) -> Windows:
    """The whole table for one robot."""
    out: Windows = {}
    for quantity in QUANTITIES:
        out[Key("cache", case.subject.name, quantity, "drevo")] = cached(case, quantity)
        for who, child in children.items():
            for name in _variants(quantity, who):
                key = Key("cache", case.subject.name, quantity, who + name.removeprefix(quantity))
                out[key] = looped(child, name)
    return out


def _variants(quantity: str, who: str) -> list[str]:
    """The forms in which a peer offers a quantity; the best counts. MuJoCo has no derivatives."""
    if who.startswith("mujoco"):
        return [quantity] if not quantity.endswith("derivatives") else []
    local = quantity in ("mass_matrix", "forward_dynamics")
    return [quantity, f"{quantity}_local"] if local else [quantity]


# --- one state at a time -----------------------------------------------------------------------------------


def single(call: Callable[..., Any], rows: list[Array], before: tuple[Any, ...] = (), out: Any = None) -> Window:
    """Calls on one state after another; `before` stands before the state's arrays, `out` after them."""
    after = () if out is None else (out,)
    states = [(*before, *(x[k].copy() for x in rows), *after) for k in range(FEW)]

    once = min(timed(lambda: call(*states[0])) for _ in range(9))
    calls = max(8, int(WINDOW / once))

    def window(k: int) -> tuple[float, int]:
        for state in islice(states, calls):
            call(*state)  # into the cache
        start = time.perf_counter()
        for state in islice(cycle(states), calls):
            call(*state)
        return time.perf_counter() - start, calls

    return window


def scalar(case: Case, quantities: tuple[str, ...] = QUANTITIES) -> Windows:
    """Drevo's kernel for one state: a call, and the same call of a function that computes nothing."""
    out: Windows = {}
    for quantity in quantities:
        f = function(case, quantity, packed=True)
        empty, rows = null(f), case.arguments(quantity)
        for who, g in (("drevo", f), ("nothing", empty)):
            room = g(*(x[0] for x in rows))
            out[Key("scalar", case.subject.name, quantity, who)] = single(g.fast or g, rows, out=plain(room))
    return out


def calls(case: Case) -> Windows:
    """What a user of Python sees, Drevo and Pinocchio."""
    out: Windows = {}
    name, data = case.subject.name, case.model.createData()
    peers = {
        "pose": pin.forwardKinematics, "inverse_dynamics": pin.rnea, "mass_matrix": pin.crba,
        "forward_dynamics": pin.aba, "inverse_dynamics_derivatives": pin.computeRNEADerivatives,
        "forward_dynamics_derivatives": pin.computeABADerivatives,
    }  # fmt: skip
    for quantity, peer in peers.items():
        f, rows = function(case, quantity), case.arguments(quantity)
        room = plain(f(*(x[0] for x in rows)))
        out[Key("call", name, quantity, "drevo")] = single(f.fast or f, rows)
        out[Key("call", name, quantity, "drevo out=")] = single(f.fast or f, rows, out=room)
        theirs = case.arguments(quantity, own=False)
        out[Key("call", name, quantity, "pin")] = single(peer, theirs, before=(case.model, data))
    return out


# --- from memory -------------------------------------------------------------------------------------------


def from_memory(case: Case, threads: int, children: dict[str, Child]) -> Windows:
    """100,000 states in ordinary arrays; a peer's window takes a slice of them, another each time."""
    out: Windows = {}
    name = case.subject.name
    parallel = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}
    for quantity in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        f, rows = function(case, quantity, packed=quantity == "mass_matrix"), case.arguments(quantity)
        room = f(*rows)
        for n in sorted({1, threads}):
            key = Key("memory", name, quantity, f"drevo {n}")
            out[key] = _batch(lambda f=f, rows=rows, room=room, n=n: _run(f, rows, room, n), n)
            if quantity in parallel:
                key = Key("memory", name, quantity, f"pin {n}")
                out[key] = _in_parallel(case, parallel[quantity], case.arguments(quantity, own=False), n)
        loops = [(who, x) for who, x in children.items() if who.startswith("pin") and quantity == "mass_matrix"]
        for who, child in loops:  # Pinocchio has no parallel form of it
            for variant in _variants(quantity, "pin"):
                key = Key("memory", name, quantity, f"pin 1 {who[4:]}{variant.removeprefix(quantity)}")
                out[key] = looped(child, variant)
    return out


def _run(f: Any, rows: list[Array], room: Any, threads: int) -> Any:
    return f(*rows, out=room) if threads == 1 else f(*rows, out=room, threads=threads)


def _batch(call: Callable[[], Any], threads: int) -> Window:
    """Long windows: of one thread its own time counts, which neither other work nor waiting workers lengthen."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    return lambda k: (timed(call, clock=clock), STATES)


def _in_parallel(case: Case, call: Any, rows: list[Array], threads: int) -> Window:
    pool, few = pin.ModelPool(case.model, threads), SLICE * threads
    out = np.zeros((case.model.nv, few), order="F")

    def window(k: int) -> tuple[float, int]:
        at = k * few % (STATES - few)
        columns = [x[at : at + few].T for x in rows]  # Fortran order: the same memory, no copy
        return timed(lambda: call(threads, pool, *columns, out)), few

    return window
