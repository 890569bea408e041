"""Tests that the C-level entry answers as the plain way does: once in a process, before it is relied on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Protocol

import numpy as np

from ...errors import InputError, warn_caller
from ..store.build import Manifest
from .arguments import NamedShape

CallArguments = tuple[tuple[Any, ...], dict[str, Any]]
CALL_METHODS = ("native", "ctypes")
passed: dict[str, bool] = {}  # the answers, of calls with one sample ("single"), a batch ("drive")


class Tested(Protocol):
    """The attributes of a Function that the test uses."""

    manifest: Manifest
    inputs: tuple[NamedShape, ...]
    outputs: tuple[NamedShape, ...]
    dtype: np.dtype[Any]
    layout: str

    def general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


def wanted() -> str:
    """The way of calls: DREVO_CALLS, "native" (the entry, where its self-test passes) or "ctypes" (without it)."""
    method = os.environ.get("DREVO_CALLS") or CALL_METHODS[0]
    if method not in CALL_METHODS:
        raise InputError(f"DREVO_CALLS={method!r} is none of {', '.join(CALL_METHODS)}")
    return method


def trusted(function: Tested, entry: Callable[..., Any], part: str) -> bool:
    """True if the entry and `function.general` give the same bits and the same refusals, in all kinds of calls
    that a part of the code answers."""
    if part not in passed:
        cases = {"single": singles, "drive": batches}[part](function)
        passed[part] = all(same(function, entry, *case) for case in cases)
        if not passed[part]:
            warn_caller(
                "compiled functions are called by way of ctypes, some microseconds slower: on this interpreter "
                "their own entry did not pass its self-test"
            )
    return passed[part]


def cases(function: Tested) -> Iterator[CallArguments]:
    """Calls that the entry takes itself, and calls that it must hand on. Results go to fresh arrays."""
    yield from singles(function)
    yield from batches(function)


def singles(function: Tested) -> Iterator[CallArguments]:
    """Those with one sample."""
    one = _state(function)
    yield one, {}
    yield one, {"threads": 1}
    yield tuple(x[:-1] for x in one if x.ndim), {}
    yield tuple(x.astype(np.longdouble) for x in one), {}
    yield from _into_outs(function, one, ())


def batches(function: Tested) -> Iterator[CallArguments]:
    one, count = _state(function), 3
    axis = 0 if function.layout == "rows" else -1
    many = tuple(np.repeat(np.expand_dims(x, axis), 2 * count, axis) for x in one)
    apart = tuple(x[::2] if axis == 0 else x[..., :count] for x in many)
    yield apart, {}
    if len(one) > 1:
        yield (one[:1] + apart[1:], {})
    yield tuple(np.asfortranarray(x) for x in apart), {}
    yield from _into_outs(function, apart, (count,))


def _into_outs(function: Tested, given: tuple[Any, ...], lead: tuple[int, ...]) -> Iterator[CallArguments]:
    rows = function.layout == "rows"
    tails = [s if rows else (prod(s),) for _, s in function.outputs]
    shapes = [(*lead, *s) if rows else (*s, *lead) for s in tails]
    outs = [tuple(np.zeros(s, function.dtype) for s in shapes) for _ in range(2)]
    outs[1][-1].flags.writeable = False
    outs.append(outs[0][:1] * len(shapes))  # one array for all results
    for out in outs:
        yield given, {"out": out[0] if len(shapes) == 1 else out}


def _state(function: Tested) -> tuple[Any, ...]:
    """One sample: unit quaternions, numbers that differ, or all bodies of a step would be in each other."""
    flat = [(0.25 + 0.5 * np.arange(prod(s))).astype(function.dtype) for _, s in function.inputs]
    for i, columns in function.manifest.units:
        flat[i][list(columns)] = 0.5
    shapes = [s if function.layout == "rows" else x.shape for x, (_, s) in zip(flat, function.inputs)]
    return tuple(x.reshape(s) for x, s in zip(flat, shapes))


def same(function: Tested, entry: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    plain = _answer(lambda *a, **k: function.general(a, k), args, kwargs)
    return bool(_answer(entry, args, kwargs) == plain)


def _answer(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Everything that a caller can see of a call."""
    try:
        found = call(*args, **kwargs)
    except Exception as error:  # whatever an entry gone wrong may raise
        return type(error), str(error)
    parts = [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
    return type(found).__name__, [(x.shape, x.dtype, x.tobytes()) for x in parts]
