"""Calls with lists in place of arrays: what reads them without Python, see `llvm_lists`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..emit.llvm_lists import lists_text
from ..emit.objects import LISTED, MOST, ObjectLayout
from . import native, selftest
from .build import Spec
from .key import key
from .memo import persisted

LISTS = (list, tuple)


def list_reader(
    function: selftest.Tested, fast: Callable[..., Any], slow: Callable[..., Any]
) -> Callable[..., Any] | None:
    """The builtin that fast, a function's entry, may call where it has called slow, Python's; None where there are
    none."""
    layout, rows = native.layout(), function.layout == "rows"
    sizes = [prod(s) if len(s) == 1 or not rows else -1 for _, s in function.inputs]
    callable_from_c = hasattr(ctypes.pythonapi, "PyObject_Vectorcall")  # not only what Python has written
    if layout is None or layout.base != 16 or not callable_from_c or len(sizes) > MOST:
        return None
    dtype, table = function.dtype, np.array(sizes, np.int64)
    filled = [np.empty(max(0, n), dtype) for n in sizes]
    words = {
        "slow": id(slow), "fast": id(fast), "ndarray": id(np.ndarray), "dtype": id(dtype),
        "list": id(list), "tuple": id(tuple), "float": id(float), "int": id(int),
        "count": len(sizes), "sizes": table.ctypes.data,
    }  # fmt: skip
    code = native.Loaded(_object(dtype.itemsize, layout))
    code.fill([*(words[x] if x in words else native.address_of(x) for x in LISTED), *map(id, filled)])
    reader = native.callable_of(code, function, function.manifest.name, "", slow, table, *filled)
    return reader if selftest.trusted(function, reader, "lists") else None


@lru_cache
def _object(size: int, layout: ObjectLayout) -> bytes:
    """The same for all functions of such numbers."""
    text = lists_text(size, layout)
    return persisted(key(text, Spec()), True, lambda: native.compile_text(text))
