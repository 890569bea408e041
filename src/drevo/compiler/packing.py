"""Derivatives without what symmetry makes equal: which entries are kept, and where they belong in full arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ..codegen.graph.node import Expr
from ..codegen.runtime.function import Function
from ..codegen.runtime.scatter import Scattered
from ..errors import InputError
from ..mechanics.formalisms.zaremba import Entries
from ..mechanics.scalar import Scalar


def in_order(entries: Entries, rank: int, canonical: tuple[str, ...], wrt: tuple[str, ...]) -> Entries:
    """Axes from the canonical order (state order) to the caller's."""
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


def equal_keys(key: Sequence[Any], rank: int, wrt: Sequence[str], even: bool) -> list[tuple[Any, ...]]:
    """A key in every order that symmetry allows; its items may be arrays."""
    orders = [p for p in permutations(range(len(wrt))) if all(wrt[a] == s for a, s in zip(p, wrt))]
    heads = [tuple(key[:rank]), tuple(key[:rank])[::-1]] if even else [tuple(key[:rank])]
    return [(*head, *(key[rank + a] for a in p)) for head in heads for p in orders]


def leads(key: tuple[int, ...], rank: int, wrt: Sequence[str], even: bool) -> bool:
    """Whether a key is the greatest of those that symmetry makes equal to it: indices of equal names fall."""
    head, tail = key[:rank], key[rank:]
    last: dict[str, int] = {}
    for s, k in zip(wrt, tail):
        if k > last.get(s, k):
            return False
        last[s] = k
    return not even or head >= head[::-1]


def unpack(f: Function, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The full array (..., *shape) of what a packed derivative with one output gave, (..., number of entries)."""
    if not f.packed or f.layout != "rows" or len(f.outputs) > 1:
        raise InputError(f"unpack: {f.name} is no packed derivative in rows of one output")
    wrt, (even,), (shape,) = f.meta["wrt"], f.meta["even"], f.meta["shapes"]
    out = np.zeros((*np.shape(values)[:-1], *shape), np.asarray(values).dtype)
    for key in equal_keys(f.pattern, len(shape) - len(wrt), wrt, even):
        out[(..., *key)] = values
    return out


def scattered(inner: Function) -> Function:
    """The full arrays of a packed derivative: the kernel computes what differs, the rest is copied."""
    wrt, places = inner.meta["wrt"], []
    for pattern, even, shape in zip(inner.manifest.pattern or (), inner.meta["even"], inner.meta["shapes"]):
        keys = equal_keys([np.array(i, np.intp) for i in pattern], len(shape) - len(wrt), wrt, even)
        places.append([np.ravel_multi_index(key, shape) for key in keys])
    return Scattered(inner, inner.meta["shapes"], places)
