"""Sums over a stream of random samples that are made, computed and forgotten in the nearest cache."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import EmitError
from ..llvm import stream as text
from ..store import native
from ..store.build import Spec, target_of
from ..store.key import key
from ..store.memo import persisted
from .function import Function, address_of

Array = np.ndarray[Any, Any]
BLOCK_SAMPLES = 2**18  # samples of one call: milliseconds of work, and what the order of the sums rests on
_BLOCKS_AHEAD = 3  # blocks under way per thread
_MASK = 2**64 - 1


class RandomSource(NamedTuple):
    """Random source of the inputs. ranges: (scalars of all inputs, 2), least value and width; columns: where the
    quaternions begin, among the scalars of all inputs in the order of the call."""

    seed: int
    ranges: Array
    columns: tuple[int, ...]

    def inputs(self, first: int, count: int) -> Array:
        """The samples first, first + 1, ... as (scalars, count): what the kernel sees, from NumPy.

        The same bits, save of quaternions, whose sines are another library's: those agree to 1e-15.
        """
        n = len(self.ranges)
        k = (np.arange(first, first + count, dtype=np.uint64) * np.uint64(n))[None] + np.arange(
            n, dtype=np.uint64
        )[:, None]
        upper = splitmix(self.seed, k) >> np.uint64(12)
        one = (upper | np.uint64(0x3FF0000000000000)).view(np.float64) - 1.0
        x: Array = one * self.ranges[:, 1:] + self.ranges[:, :1]
        for c in self.columns:
            x[c : c + 4] = unit_quaternions(x[c : c + 3])
        return x


def splitmix(seed: int | Array, index: Array) -> Array:
    """Numbers `index` (uint64) of SplitMix64, uint64. seed: a number, or uint64."""
    start = np.uint64(seed & _MASK) if isinstance(seed, int) else seed
    z = (index + np.uint64(1)) * np.uint64(text.GAMMA) + start
    for shift, factor in zip(text.SHIFTS, (text.FIRST, text.SECOND)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(z ^ (z >> np.uint64(text.SHIFTS[2])))


def unit_quaternions(u: Array) -> Array:
    """Uniform unit quaternions from three numbers of [0, 1) (Shoemake 1992)."""
    a, b = np.sqrt(1.0 - u[0]), np.sqrt(u[0])
    s, t = u[1] * (2 * np.pi), u[2] * (2 * np.pi)
    return np.stack([a * np.sin(s), a * np.cos(s), b * np.sin(t), b * np.cos(t)])


@lru_cache(maxsize=1)
def _loop() -> native.Loaded:
    """The loop for this machine; one for all functions."""
    target = target_of(Spec())
    ir = text.stream_text(target.of(target.lanes), target.fma)
    return native.Loaded(persisted(key(ir, Spec()), True, lambda: native.compile_text(ir)))


class Worker:
    """A Function in batch-last layout and a source, ready for any number of threads."""

    def __init__(self, function: Function, source: RandomSource) -> None:
        if function.code is None:
            raise EmitError(f"{function.name} has no machine code on this machine, so it cannot be streamed")
        self.function, self.source, self.loop = function, source, _loop()
        self.lanes = target_of(Spec()).lanes
        self.sizes = [prod(shape) for _, shape in (*function.inputs, *function.outputs)]
        self.n_in = len(source.ranges)
        self.n_out = sum(self.sizes) - self.n_in
        self.ranges = np.ascontiguousarray(source.ranges, np.float64)
        self.columns = np.array(source.columns, np.int64)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)  # without the GIL
        self.call = kind(self.loop.address("stream"))

    def block(self, first: int, count: int) -> tuple[Array, bool]:
        """(results, SUMS) over samples first..first+count, and whether a check failed."""
        code = self.function.code
        assert code is not None
        rows = native.line_array((self.n_in + self.n_out) * text.SAMPLES_AT_A_TIME)
        rows[:] = 0.0  # what stands behind the last sample is computed too
        sums = native.line_array((self.n_out, text.SUMS, self.lanes))
        sums[:] = np.array([0.0, 0.0, np.inf, -np.inf])[:, None]
        arena = native.line_array(self.function.manifest.arena, np.uint8)
        at, stride = address_of(rows), 8 * text.SAMPLES_AT_A_TIME
        starts = np.cumsum([0, *self.sizes])[:-1]
        pointers = (at + stride * starts).astype(np.int64)
        strides = np.full(len(self.sizes), stride, np.int64)
        words = {
            "drive": code.drive_address, "seed": self.source.seed & _MASK, "inputs": self.n_in,
            "outputs": self.n_out, "ranges": address_of(self.ranges), "quaternions": len(self.columns),
            "columns": address_of(self.columns), "in": at, "out": at + stride * self.n_in,
            "pointers": address_of(pointers), "strides": address_of(strides), "arena": address_of(arena),
            "sums": address_of(sums),
        }  # fmt: skip
        job = np.array([words[name] for name in text.FIELDS], np.uint64)
        bad = self.call(address_of(job), first, count)
        total = sums[:, :2].sum(axis=2)
        least, most = sums[:, 2].min(axis=1), sums[:, 3].max(axis=1)
        return np.stack([total[:, 0], total[:, 1], least, most], axis=1), bool(bad)


def reduced(worker: Worker, first: int, samples: int, threads: int) -> Iterator[tuple[Array, bool, int, int]]:
    """Every block's sums, whether a check failed in it, its first sample and its size, in order.

    Blocks do not depend on the number of threads, and memory does not grow with the number of samples.
    """
    from concurrent.futures import Future, ThreadPoolExecutor

    parts = ((k, min(BLOCK_SAMPLES, first + samples - k)) for k in range(first, first + samples, BLOCK_SAMPLES))
    if threads == 1:
        for start, count in parts:
            yield *worker.block(start, count), start, count
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="drevo-stream") as pool:
        waiting: deque[tuple[Future[tuple[Array, bool]], int, int]] = deque()
        for start, count in parts:
            waiting.append((pool.submit(worker.block, start, count), start, count))
            if len(waiting) >= _BLOCKS_AHEAD * threads:
                job, *where = waiting.popleft()
                yield *job.result(), where[0], where[1]
        for job, begin, size in waiting:
            yield *job.result(), begin, size


def combined(kept: Array | None, new: Array) -> Array:
    """Sums of two parts of a stream."""
    if kept is None:
        return new
    return np.stack(
        [*(kept + new)[:, :2].T, np.minimum(kept[:, 2], new[:, 2]), np.maximum(kept[:, 3], new[:, 3])], axis=1
    )
