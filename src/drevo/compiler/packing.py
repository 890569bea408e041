"""Derivatives without what symmetry makes equal: which entries are kept, and where they belong in full arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..codegen.call.function import Function
from ..codegen.graph.node import Expr
from ..codegen.store.build import Built
from ..errors import InputError
from ..mechanics.formalisms.zaremba import Entries
from ..mechanics.scalar import Scalar

CHUNK_PLACES = 1_000_000  # places that are looked at together


def in_order(entries: Entries, rank: int, canonical: tuple[str, ...], wrt: tuple[str, ...]) -> Entries:
    """Axes from the canonical order (state order) to the caller's."""
    if canonical == wrt:
        return entries
    free = list(range(len(canonical)))
    at = [free.pop(next(i for i, k in enumerate(free) if canonical[k] == s)) for s in wrt]
    return {(*k[:rank], *(k[rank + i] for i in at)): x for k, x in entries.items()}


def is_even(entries: Entries, shape: Sequence[int]) -> bool:
    """Symmetric in the quantity's own two axes."""

    def same(x: Scalar, y: Scalar) -> bool:
        if isinstance(x, Expr) or isinstance(y, Expr):
            return isinstance(x, Expr) and isinstance(y, Expr) and x.edge == y.edge
        return bool(x == y)

    square = len(shape) == 2 and shape[0] == shape[1]
    return square and all(same(x, entries.get((k[1], k[0], *k[2:]), 0.0)) for k, x in entries.items())


def row_major(key: Sequence[int], shape: Sequence[int]) -> int:
    """The place of an entry in an array."""
    at = 0
    for k, size in zip(key, shape):
        at = at * size + k
    return at


def falling(key: tuple[int, ...], rank: int, wrt: Sequence[str]) -> tuple[int, ...]:
    """The canonical one of the keys that the order of wrt makes equal: indices of equal names fall."""
    of = {s: sorted((k for r, k in zip(wrt, key[rank:]) if r == s)) for s in set(wrt)}
    return (*key[:rank], *(of[s].pop() for s in wrt))


def full_places(
    pattern: Sequence[Any], shape: Sequence[int], wrt: Sequence[str], even: bool
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Flat places of a full array, and which of the stored entries stands at each; all other places hold zeros."""
    kept = np.ravel_multi_index([np.asarray(i, np.intp) for i in pattern], tuple(shape))
    by_place, rank, total = np.argsort(kept), len(shape) - len(wrt), prod(shape)
    kept, found = kept[by_place], []
    for start in range(0, total if len(kept) else 0, CHUNK_PLACES):
        index = np.array(np.unravel_index(np.arange(start, min(start + CHUNK_PLACES, total)), tuple(shape)))
        for s in set(wrt):
            axes = [rank + i for i, name in enumerate(wrt) if name == s]
            index[axes] = -np.sort(-index[axes], axis=0)
        if even:
            index[:2] = -np.sort(-index[:2], axis=0)
        flat = np.ravel_multi_index(list(index), tuple(shape))
        at = np.minimum(np.searchsorted(kept, flat), len(kept) - 1)
        hit = kept[at] == flat
        found.append((start + np.flatnonzero(hit), by_place[at[hit]]))
    places, sources = zip(*found) if found else ([np.zeros(0, np.intp)], [np.zeros(0, np.intp)])
    return np.concatenate(places), np.concatenate(sources)


def unpack(f: Function, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The full array (..., *shape) of what a packed derivative with one output gave, (..., number of entries)."""
    if not f.packed or f.layout != "rows" or len(f.outputs) > 1:
        raise InputError(f"unpack: {f.name} is no packed derivative in rows of one output")
    wrt, (even,), (shape,), x = f.meta["wrt"], f.meta["even"], f.meta["shapes"], np.asarray(values)
    places, sources = full_places(f.pattern, shape, wrt, even)
    out = np.zeros((*x.shape[:-1], prod(shape)), x.dtype)
    out[..., places] = x[..., sources]
    return out.reshape(*x.shape[:-1], *shape)


def scattered(inner: Function) -> Function:
    """The full arrays of a packed derivative: the kernel computes what differs, the rest is copied."""
    meta = inner.meta
    given = zip(inner.manifest.pattern or (), meta["shapes"], meta["even"])
    return Scattered(
        inner, meta["shapes"], [full_places(pattern, shape, meta["wrt"], even) for pattern, shape, even in given]
    )


Array = np.ndarray[Any, Any]


class Scattered(Function):
    """Results of full shape. places: by output, flat indices, and which of the packed entries stands at each."""

    def __init__(
        self, inner: Function, shapes: Sequence[Sequence[int]], places: Sequence[tuple[Array, Array]]
    ) -> None:
        outputs = tuple((name, tuple(shape)) for (name, _), shape in zip(inner.outputs, shapes))
        self.inner, self.places = inner, places
        super().__init__(
            Built(inner.manifest._replace(outputs=outputs, pattern=None), None), inner.spec, None, inner._weakest
        )
        self.packed = False

    @property
    def backend(self) -> str:
        """The backend of the packed function."""
        return self.inner.backend

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array], count: int, threads: int) -> bool:
        rows = self.layout == "rows"
        sizes = [shape[-1] for _, shape in self.inner.outputs]
        given = [np.empty((count, n) if rows else (n, count), self.dtype) for n in sizes]
        bad = self.inner._run(inputs, given, count, threads)
        for x, out, (places, sources) in zip(given, outputs, self.places):
            out[...] = 0.0
            out[(slice(None), places) if rows else places] = x[:, sources] if rows else x[sources]
        return bad
