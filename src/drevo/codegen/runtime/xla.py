"""Compiled functions as custom calls of XLA, the compiler behind JAX."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from math import prod
from pathlib import Path

from ...errors import EmitError, InputError
from ..emit.llvm_xla import FIELDS, TABLE, VERSION, xla_text
from . import native
from .build import DTYPES, Spec
from .function import Function
from .key import key
from .memo import persisted

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
        found = re.findall(r"(\w+);", re.sub(r"//.*", "", body[1])) if body else []
        if tuple(found[: len(fields)]) != fields:
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
        loaded = native.Loaded(persisted(key(ir, Spec()), True, lambda: native.compile_text(ir)))
        table = loaded.address("addresses", data=True)
        self.code, self.table = code, (ctypes.c_void_p * len(TABLE)).from_address(table)
        memory = map(native.address_of, ("PyMem_RawMalloc", "PyMem_RawFree"))
        self.table[:] = [None, code.drive_address, *memory]
        self.function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(loaded.address("handler"))
        _KEPT.extend((loaded, self))

    def prepare_single(self) -> None:
        """Calls with one sample go to the code for one from now on, which is made at its first need."""
        if self.table[0] is None and self.code.has("single"):
            self.table[0] = self.code.find("single")
