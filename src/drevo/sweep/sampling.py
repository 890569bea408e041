"""The samples of a sweep: each is a function of its number alone, so that any worker makes the same.

Arguments lie side by side, scalars by samples. Random numbers are those of `drevo.stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from math import prod
from typing import Any

import numpy as np

from ..codegen.call.function import Function
from ..codegen.call.stream import RandomSource, splitmix, unit_quaternions
from ..errors import InputError
from ..io.given import finite
from .plan import Plan, table_bytes

Array = np.ndarray[Any, Any]
Sampler = Callable[[int, int], Array]  # first, count -> (scalars, count)
ROUNDS = (
    4  # of a Feistel network: three make a permutation that nobody tells from a random one (Luby, Rackoff 1988)
)


def sampler_of(plan: Plan, function: Function, source: RandomSource) -> tuple[int, Sampler]:
    """The number of samples, and the function that makes them."""
    if plan.method == "random":
        return plan.samples, source.inputs
    if plan.method == "latin_hypercube":
        return plan.samples, lambda first, count: _stratified(source, plan.samples, first, count)
    if plan.method == "grid":
        counts = _grid_counts(plan, function, source)
        return prod(counts), lambda first, count: _gridded(source, counts, first, count)
    rows = _rows(plan.table, len(source.ranges))
    return len(rows), lambda first, count: np.ascontiguousarray(rows[first : first + count].T)


def _stratified(source: RandomSource, samples: int, first: int, count: int) -> Array:
    """A Latin hypercube (McKay, Beckman, Conover 1979): every scalar once in each of as many equal parts."""
    n = len(source.ranges)
    index = np.arange(first, first + count, dtype=np.uint64)
    within = RandomSource(source.seed, np.tile([0.0, 1.0], (n, 1)), ()).inputs(first, count)
    x = np.stack([(_permuted(index, samples, source.seed, d) + within[d]) / samples for d in range(n)])
    x = x * source.ranges[:, 1:] + source.ranges[:, :1]
    for c in source.columns:
        x[c : c + 4] = unit_quaternions(x[c : c + 3])
    return x


def _permuted(index: Array, size: int, seed: int, stream: int) -> Array:
    """A permutation of 0 .. size - 1 for every stream: a Feistel network, again where it leads outside."""
    half = max(1, (max(1, size - 1).bit_length() + 1) // 2)
    mask, shift = np.uint64(2**half - 1), np.uint64(half)
    out = index.copy()
    todo = np.ones(len(out), bool)
    while todo.any():
        left, right = out[todo] >> shift, out[todo] & mask
        for r in range(ROUNDS):
            key = (stream * ROUNDS + r) * 2**32
            left, right = right, left ^ (splitmix(seed, right + np.uint64(key)) & mask)
        out[todo] = (left << shift) | right
        todo[todo] = out[todo] >= size
    return out.astype(float)


def _grid_counts(plan: Plan, function: Function, source: RandomSource) -> list[int]:
    """The number of grid values of each scalar."""
    if source.columns:
        raise InputError("sweep: a grid has no place for quaternions; take method 'random' or 'table'")
    counts: list[int] = []
    given = dict(plan.grid)
    for name, shape in function.inputs:
        own, size = given.pop(name, (1,)), prod(shape)
        if len(own) not in (1, size):
            raise InputError(f"sweep: grid of {name} has {len(own)} counts; it needs 1 or {size}")
        counts += own * size if len(own) == 1 else own
    if given:
        raise InputError(f"sweep: {function.name} takes no {next(iter(given))!r}, which grid names")
    return counts


def _gridded(source: RandomSource, counts: Sequence[int], first: int, count: int) -> Array:
    """The last scalar runs fastest; one value lies in the middle of its range, more from end to end."""
    index, rows = np.arange(first, first + count), []
    for n, (least, width) in zip(reversed(counts), source.ranges[::-1]):
        index, k = np.divmod(index, n)
        rows.append(least + width * (k / (n - 1) if n > 1 else np.full(count, 0.5)))
    return np.stack(rows[::-1])


def _rows(path: str, size: int) -> Array:
    data = BytesIO(table_bytes(path))
    try:
        rows = np.load(data) if path.endswith(".npy") else np.loadtxt(data, delimiter=",", ndmin=2)
    except (ValueError, EOFError, MemoryError) as error:
        raise InputError(f"sweep: table {path!r} cannot be read: {error}") from None
    return finite(f"sweep: table {path!r}", rows, (None, size), InputError)
