"""Compiled functions as custom calls of XLA, the compiler behind JAX."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from ...errors import EmitError, InputError
from ..call.function import Function
from ..store import native
from ..store.build import DTYPES, Spec
from ..store.key import key
from ..store.memo import persisted
from .cuda import THREADS, CudaFunction
from .driver import driver
from .xla_entry import CALLED, DEVICES, FIELDS, PRINT, TABLE, VERSION, xla_launch_text, xla_text

_KEPT: list[object] = []  # programs of XLA point to handlers and drivers for as long as the process lives


@lru_cache(maxsize=1)
def require_known(folder: str, version: str) -> None:
    """Raises InputError unless the interface of a jaxlib, by the headers in a folder, is the one we speak."""
    try:
        text = (Path(folder) / "xla/ffi/api/c_api.h").read_text()
    except OSError:
        raise InputError(f"jaxlib {version} has no header of its interface for foreign functions") from None
    number = re.search(r"#define XLA_FFI_API_MAJOR (\d+)", text)
    unknown = [] if number and int(number[1]) == VERSION[0] else ["the version"]
    for name, fields in FIELDS.items():
        body = re.search(rf"struct {name} {{(.*?)\n}};", text, re.S)
        found = re.findall(r"(\w+)\)?;", re.sub(r"//.*", "", body[1])) if body else []
        if len(found) < len(fields) or any(x not in ("", y) for x, y in zip(fields, found)):
            unknown.append(name)
    if unknown:
        raise InputError(
            f"jaxlib {version} has another interface for foreign functions than the one this version of drevo "
            f"knows ({', '.join(unknown)}); install an older jaxlib or a newer drevo"
        )


class Handler:
    """The function of C that XLA calls; results are those of the Function to the bit."""

    def __init__(self, function: Function) -> None:
        m, code = function.manifest, function.code
        if code is None:
            raise EmitError(f"{function.name} has no machine code on this machine, so XLA cannot call it")
        sizes = [prod(shape) for _, shape in function.inputs]
        failed = (
            f"{function.name}: a result is not finite or a quaternion not of unit length; the same call with "
            "NumPy arrays says which"
        )
        scalar, outputs = DTYPES[function.spec.dtype], [shape for _, shape in function.outputs]
        ir = xla_text(sizes, outputs, scalar, (m.scratch, m.arena), failed)
        self.code, (self.function, self.table) = code, _loaded(ir, len(TABLE))
        memory = map(native.address_of, ("PyMem_RawMalloc", "PyMem_RawFree"))
        self.table[:] = [None, code.drive_address, *memory]
        _KEPT.append(self)

    def prepare_single(self) -> None:
        """Calls with one sample go to the code for one from now on, which is made at its first need."""
        if self.table[0] is None and self.code.has("single"):
            self.table[0] = self.code.find("single")


class DeviceHandler:
    """The function of C that XLA calls for a GPU: it launches the kernel on XLA's stream and waits for nothing."""

    def __init__(self, function: CudaFunction, devices: Iterable[int]) -> None:
        sizes, outputs = [prod(shape) for _, shape in function.inputs], [shape for _, shape in function.outputs]
        ir = xla_launch_text(sizes, outputs, DTYPES[function.spec.dtype], THREADS, function.name)
        called = [*map(driver().address, CALLED), native.address_of(PRINT)]
        self.function, table = _loaded(ir, len(called) + DEVICES)
        table[: len(called)] = called
        for k in filter(
            range(DEVICES).__contains__, devices
        ):  # of others the handler says that it knows no kernel
            table[len(called) + k] = function.kernel(k).handle
        _KEPT.append((self, function))


def _loaded(ir: str, words: int) -> tuple[Any, Any]:
    """The handler of a text, and its table of addresses."""
    loaded = native.Loaded(persisted(key(ir, Spec()), True, lambda: native.compile_text(ir)))
    table = (ctypes.c_void_p * words).from_address(loaded.address("addresses", data=True))
    _KEPT.append(loaded)
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(loaded.address("handler")), table
