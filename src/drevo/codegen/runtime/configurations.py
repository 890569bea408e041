"""Robots' `neutral` and `random` as builtins, see `llvm_configurations`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...io.given import FLOAT
from ..emit.llvm_configurations import configurations_text
from ..emit.objects import DRAWN, ObjectLayout, spares_after
from . import native, selftest
from .build import Spec
from .key import key
from .memo import persisted

Array = np.ndarray[Any, Any]
_NAMES = ("bit_generator", "lock", "acquire", "release", "capsule")
_DRAWN = ("generator", "random_standard_uniform_fill", "random_standard_normal_fill")
_KIND = ctypes.create_string_buffer(b"BitGenerator")  # what NumPy calls its capsules


def configuration_entry(
    owner: Any, slow: Callable[..., Any], low: Array, width: Array, runs: Sequence[tuple[int, bool]]
) -> Callable[..., Any] | None:
    """The builtin of slow's name, "neutral" or "random", None where there are none; slow, a plain function, takes
    the calls that it does not. owner: by whose `fast` it is pickled.

    low, width: (nq,); of "random" a number u of [0, 1) becomes low + width u, of "neutral" low is the result.
    runs: lengths of neighbouring coordinates, and whether the last four of them are a quaternion.
    """
    layout, name = native.layout(), slow.__name__
    if layout is None or layout.base != 16 or selftest.wanted() != "native":
        return None
    drawn = _drawn() if name == "random" else dict.fromkeys(_DRAWN, 0)
    if drawn is None:
        return None
    table, kept = np.array(runs, np.int64).reshape(-1, 2), [np.ascontiguousarray(x, float) for x in (low, width)]
    texts = [sys.intern(x) for x in _NAMES]
    words = drawn | dict(zip(_NAMES, map(id, texts))) | {
        "slow": id(slow), "ndarray": id(np.ndarray), "dtype": id(FLOAT), "kind": ctypes.addressof(_KIND),
        "nq": len(low), "count": len(table), "runs": table.ctypes.data, "low": kept[0].ctypes.data,
        "width": kept[1].ctypes.data,
    }  # fmt: skip
    code = native.Loaded(_object(name, layout))
    spares = [np.empty(len(low)) for _ in spares_after(0, [8], layout)[0][0]]
    found = [*(words[x] if x in words else native.address_of(x) for x in DRAWN), *map(id, spares)]
    code.fill(found)
    takes = "rng=None, shape=()" if name == "random" else ""
    return native.callable_of(
        code, owner, name, f"{name}({takes})\n--\n\n{slow.__doc__}", slow, table, *kept, *texts, *spares
    )


@lru_cache(maxsize=1)
def _drawn() -> dict[str, int] | None:
    """NumPy's generators, and the addresses of the functions by which they draw, which its documentation has
    callers find so; None where it hides them."""
    generator = np.random.Generator
    try:
        library = ctypes.CDLL(sys.modules[generator.__module__].__file__)
        fills = [ctypes.cast(library[x], ctypes.c_void_p).value or 0 for x in _DRAWN[1:]]
    except (AttributeError, KeyError, OSError, TypeError):
        return None
    return dict(zip(_DRAWN, (id(generator), *fills)))


@lru_cache
def _object(name: str, layout: ObjectLayout) -> bytes:
    """The same for all robots."""
    text = configurations_text(name, layout)
    return persisted(key(text, Spec()), True, lambda: native.compile_text(text))
