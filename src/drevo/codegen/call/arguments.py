"""A caller's arguments brought into the form that compiled code takes: (B, n) or, batch-last, (n, B) arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import InputError, shown
from ...io.given import numbers, whole
from ...model.draft import did_you_mean

Array = np.ndarray[Any, Any]
NamedShape = tuple[str, tuple[int, ...]]


class BoundCall(NamedTuple):
    """The arguments of one call: values in the order of the inputs, and what to do with the result."""

    values: tuple[Any, ...]
    out: Any
    threads: int


def bind(name: str, inputs: Sequence[NamedShape], args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundCall:
    """Positional, keyword, then out and threads; InputError for anything left over or missing."""
    if not kwargs and len(args) == len(inputs):
        return BoundCall(tuple(args), None, 1)
    names = [n for n, _ in inputs]
    usage = f"{name}({', '.join([*names, 'out=None', 'threads=1'])})"
    order = [*names, "out", "threads"]
    if len(args) > len(order):
        raise InputError(f"{usage} takes at most {len(order)} arguments, {len(args)} were given")
    given = dict(zip(order, args))
    for key, value in kwargs.items():
        if key not in order:
            raise InputError(f"{usage} takes no argument {key!r}")
        if key in given:
            raise InputError(f"{usage} was given {key!r} twice")
        given[key] = value
    missing = [n for n in names if n not in given]
    if missing:
        raise InputError(f"{usage} is missing {', '.join(repr(n) for n in missing)}")
    threads = whole(f"{name}: threads", given.get("threads", 1))
    return BoundCall(tuple(given[n] for n in names), given.get("out"), threads)


def by_name(
    name: str, known: Sequence[tuple[str, float]], given: Mapping[str, Any], stack: Callable[[list[Any]], Any]
) -> Any:
    """Parameters that a caller gives by name, in the order of the function's; others have the robot's values.

    stack: makes one array of one number, or array over the batch, for each.
    """
    own = dict(known)
    for key in given:
        if key not in own:
            hint = did_you_mean(str(key), own)
            raise InputError(f"{name}: {shown(key)} is none of its parameters{hint}; f.parameters names them")
    return stack([given.get(key, value) for key, value in known])


@contextmanager
def in_memory(name: str) -> Iterator[None]:
    """A batch that no memory holds is refused in a sentence."""
    try:
        yield
    except (MemoryError, ValueError, OverflowError) as error:  # NumPy has them all for arrays that are too large
        said = str(error)
        too_large = any(x in said for x in ("too big", "too large", "dimension exceeded"))
        if not isinstance(error, MemoryError) and not too_large:
            raise
        said = said or "not enough is left"
        raise InputError(f"{name}: there is no memory for this batch, compute it in parts: {said}") from None


class Batch(NamedTuple):
    """Inputs of equal batch size, as 2-D arrays with unit stride along the sample (rows) or the batch."""

    arrays: tuple[Array, ...]
    lead: tuple[int, ...]  # leading dimensions of the results
    samples: int


def gather(
    name: str, inputs: Sequence[NamedShape], values: Sequence[Any], dtype: np.dtype[Any], rows: bool
) -> Batch:
    """Checks shapes and broadcasts leading dimensions."""
    found = [numbers(f"{name}: {n}", x, dtype=dtype) for x, (n, _) in zip(values, inputs)]
    leads = [lead_of(name, x, port, rows) for x, port in zip(found, inputs)]
    lead = _common(name, inputs, leads)
    count = prod(lead)
    shape = _row_matrix if rows else _column_matrix
    return Batch(tuple(shape(x, p[1], lead, count) for x, p in zip(found, inputs)), lead, count)


def lead_of(name: str, x: Any, port: NamedShape, rows: bool) -> tuple[int, ...]:
    """Leading dimensions of an array, by its shape; InputError where that is none of the port's."""
    label, shape = port
    k = len(shape)
    if rows:
        if x.ndim >= k and x.shape[x.ndim - k :] == shape:
            return tuple(x.shape[: x.ndim - k])
        tail = ", ".join(str(s) for s in shape)
        raise InputError(f"{name}: {label} has shape {x.shape}; it must be (..., {tail})")
    if x.ndim in (1, 2) and x.shape[0] == prod(shape):
        return tuple(x.shape[1:])
    raise InputError(f"{name}: {label} has shape {x.shape}; in batch-last layout it must be ({prod(shape)}, B)")


def _common(name: str, inputs: Sequence[NamedShape], leads: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    if all(x == leads[0] for x in leads):
        return leads[0] if leads else ()
    try:
        return np.broadcast_shapes(*leads)
    except ValueError:
        said = ", ".join(f"{p[0]} {lead}" for p, lead in zip(inputs, leads))
        raise InputError(f"{name}: the leading (batch) dimensions do not agree: {said}") from None


def _row_matrix(x: Array, shape: tuple[int, ...], lead: tuple[int, ...], count: int) -> Array:
    """(count, n) with unit last stride; a single sample is repeated by a zero stride."""
    n, k = prod(shape), len(shape)
    if x.ndim == k and lead:
        flat = np.ascontiguousarray(x).reshape(1, n)
        return np.broadcast_to(flat, (count, n))
    if x.shape != lead + shape:
        x = np.broadcast_to(x, lead + shape)
    x = x.reshape(count, n)
    return x if n <= 1 or x.strides[1] == x.itemsize else np.ascontiguousarray(x)


def _column_matrix(x: Array, shape: tuple[int, ...], lead: tuple[int, ...], count: int) -> Array:
    """(n, count) with unit last stride."""
    n = prod(shape)
    x = x.reshape(n, 1) if x.ndim == 1 else x
    if x.shape[1] != count:
        x = np.broadcast_to(x, (n, count))
    return x if count <= 1 or x.strides[1] == x.itemsize else np.ascontiguousarray(x)


def distinct(name: str, outs: Sequence[Any]) -> None:
    """Two results cannot share memory."""
    for k, x in enumerate(outs):
        if any(np.may_share_memory(x, y) for y in outs[:k]):
            raise InputError(f"{name}: two of the arrays in out overlap")


def check_out(name: str, out: Any, shape: tuple[int, ...]) -> None:
    """A caller's result array must be writable floats of the right shape."""
    if not isinstance(out, np.ndarray):
        raise InputError(f"{name}: out must be a NumPy array, not {type(out).__name__}")
    if out.dtype.kind != "f":
        raise InputError(f"{name}: out must hold floating-point numbers, it holds {out.dtype}")
    if out.shape != shape:
        raise InputError(f"{name}: out has shape {out.shape}; the result has shape {shape}")
    if not out.flags.writeable:
        raise InputError(f"{name}: out is read-only")
