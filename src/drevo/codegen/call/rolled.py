"""Rolled code in this process: one object for all models with the same kinds of joints, its data beside it.

A second, small object holds the Python entry, whose checks know the sizes; it calls the first.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet, WeakValueDictionary

import numpy as np

from ..entry.layout import ObjectLayout
from ..lower.loops import MAX_TILED_RESULTS, MIN_LONG_BODIES, MODEL_WORDS, Rolled
from ..store import native
from ..store.build import DTYPES, Built, Manifest, Spec, parse_manifest, target_of
from ..store.key import key
from ..store.memo import persisted
from .function import Extra, Function

if TYPE_CHECKING:
    from .diagnose import Weakest

Array = np.ndarray[Any, Any]
_STEPS = {  # of one body, by its time, where it is not _USUAL_STEPS: for estimates
    "inverse_dynamics": 105, "bias": 100, "inertia_product": 80, "forward_dynamics": 400, "pivots": 400,
}  # fmt: skip
_USUAL_STEPS = 60
_LOCKED = MODEL_WORDS.index("lock")  # the word that who is in `single` sets
_LOOPS: WeakValueDictionary[str, native.Code] = WeakValueDictionary()  # one in memory for all links of a robot


class Data(NamedTuple):
    """A model's tables: the ground's slot, numbers and integers per body and row, the scalars of all slots.

    first, way: the body and the freedom where a walk begins. kept: bodies with a child in a later block.
    """

    ground: Array
    numbers: Array
    integers: Array
    slots: int
    first: int
    way: int = -1
    kept: int = 0


class Sizes(NamedTuple):
    """Sizes of a model that the compiled entry must know.

    blocked: scalars of state of a tile, in place of those of one sample, where its sweeps go by blocks.
    slots: scalars of state of all bodies and the ground. loads: links that take a wrench. more: scalars beside.
    """

    quantity: str
    arguments: tuple[str, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    nq: int
    nv: int
    bodies: int
    slots: int
    loads: tuple[str, ...] = ()
    tiled: bool = True
    more: int = 0
    blocked: int = 0

    @property
    def ports(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        state = tuple((a, (self.nq if a == "q" else self.nv,)) for a in self.arguments)
        return state + tuple((f"f_ext:{link}", (6,)) for link in self.loads)

    @property
    def state(self) -> int:
        """Scalars of one sample's state: the slots, sines and cosines, wrenches, what else is asked for."""
        return self.slots + 2 * self.nq + 6 * len(self.loads) + self.more

    @property
    def lengths(self) -> list[int]:
        """Scalars of every result."""
        return [prod(shape) for _, shape in self.results]

    @property
    def alone(self) -> bool:
        """True if a batch runs sample by sample: a tile would leave the cache."""
        long = self.bodies >= MIN_LONG_BODIES and not self.blocked
        return not self.tiled or long or sum(self.lengths) > MAX_TILED_RESULTS

    def arena(self, lanes: int, item: int) -> int:
        """Bytes of the batch kernel's working memory."""
        if self.alone:
            return 64 + item * self.state
        tiles = sum(self.nq if a == "q" else self.nv for a in self.arguments) + sum(self.lengths)
        return 64 + item * lanes * (tiles + (self.blocked or self.state) + max(self.lengths))


class RolledCode(native.Code):
    """The entry's code, with the loops it calls and the model's data."""

    def __init__(self, entry: bytes, loops: native.Code, data: Data, dtype: str, sizes: Sizes) -> None:
        super().__init__(entry)
        self.loops = loops
        ground, numbers = (np.ascontiguousarray(x, dtype) for x in (data.ground, data.numbers))
        state = np.zeros(sizes.state + 16, dtype)
        start = -(-state.ctypes.data // 64) * 64
        words = [ground.ctypes.data, numbers.ctypes.data, data.integers.ctypes.data, sizes.bodies]
        words += [len(data.integers) - sizes.bodies, sizes.nq, sizes.nv, start, 0, sizes.slots, len(sizes.loads)]
        model = np.array(
            [
                *words,
                data.first,
                sizes.alone,
                data.way,
                *sizes.lengths,
                *[0] * (3 - len(sizes.results)),
                data.kept,
            ],
            np.int64,
        )
        self.data = (ground, numbers, data.integers, state, model)
        _ALIVE.add(self)
        at = self.address("rolled", data=True)
        find = self.loops.address
        (ctypes.c_int64 * 3).from_address(at)[:] = [find("single"), find("batch"), model.ctypes.data]


def _unlock() -> None:
    """In the child of a fork nobody is in `single` who would open its lock."""
    for code in _ALIVE:
        code.data[-1][_LOCKED] = 0


_ALIVE: WeakSet[RolledCode] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def loops_of(
    request: str,
    make: Callable[[], Rolled],
    spec: Spec,
    cache: bool,
    blocked: Callable[[Rolled], Rolled] | None = None,
) -> native.Code:
    """The code of the loops; `make` is called only where it is not in the cache. blocked: for a tile."""
    name = key(request, spec)
    found = _LOOPS.get(name)
    if found is None:
        found = _LOOPS[name] = native.Code(persisted(name, cache, lambda: _loops(make(), spec, blocked)))
    return found


def function_of(
    sizes: Sizes,
    make: Callable[[], Rolled],
    data: Data,
    spec: Spec,
    *,
    request: str,
    meta: dict[str, Any],
    units: tuple[tuple[int, tuple[int, ...]], ...] = (),
    extra: Extra | None = None,
    weakest: Weakest | None = None,
    cache: bool = True,
    blocked: Callable[[Rolled], Rolled] | None = None,
) -> Function:
    """The Function of a model's data; `make` is called only where the code of its kinds is not in the cache."""
    loops = loops_of(request, make, spec, cache, blocked if sizes.blocked else None)
    shape = f"{request}\nentry {sizes._replace(loads=('',) * len(sizes.loads))}"
    entry = persisted(key(shape, spec), cache, lambda: _entry(sizes, spec))
    code = RolledCode(entry, loops, data, spec.dtype, sizes)
    return Function(Built(_manifest(sizes, spec, meta, units), code), spec, extra, weakest)


def _loops(rolled: Rolled, spec: Spec, blocked: Callable[[Rolled], Rolled] | None) -> bytes:
    from ..llvm.bodies.rolled_driver import emit_rolled

    return native.compile_text(emit_rolled(rolled, target_of(spec), blocked and blocked(rolled)))


def _entry(sizes: Sizes, spec: Spec) -> bytes:
    """The Python entry of the unrolled form, before functions that only pass on."""
    from ..entry.entry import add_python_entry, entry_shape
    from ..llvm.bodies.rolled_driver import add_forwards
    from ..llvm.driver import add_single
    from ..llvm.ir import Module

    m, ports = Module(), len(sizes.ports) + len(sizes.results)
    add_forwards(m, len(sizes.arguments), len(sizes.loads), len(sizes.results))
    add_single(m, ports, target_of(spec), 0)
    shape = entry_shape(sizes.ports, sizes.results, DTYPES[spec.dtype], True, True, 0)
    add_python_entry(m, shape, native.layout() or ObjectLayout())
    return native.compile_text(m.text())


def _manifest(
    sizes: Sizes, spec: Spec, meta: dict[str, Any], units: tuple[tuple[int, tuple[int, ...]], ...]
) -> Manifest:
    target = target_of(spec)
    arena = sizes.arena(target.lanes, target.of(1).size)
    steps = sizes.bodies * _STEPS.get(sizes.quantity, _USUAL_STEPS) + sum(sizes.lengths)
    fresh = Manifest(
        sizes.quantity, sizes.ports, sizes.results, None, units, {}, steps, arena,
        0, target.lanes, (), meta,
    )  # fmt: skip
    return parse_manifest(fresh.text())
