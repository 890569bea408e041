"""Arrays on a GPU, other libraries' and Drevo's own, by DLPack and by __cuda_array_interface__ (version 3).

No call waits for the device, but `DeviceArray.to_host`. Where another stream than ours has work to do on an array,
ours waits for it there, by an event.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...errors import DrevoError, InputError
from .driver import LEGACY, Driver, driver

_CUDA = 2  # DLPack's number of the kind of device
_FLOATS = {4: "float32", 8: "float64"}
_READ_ONLY = 1  # a flag of DLPack's


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_FORMS: dict[bytes, Any] = {b"dltensor": _Managed, b"dltensor_versioned": _Versioned}
_P, _S = ctypes.c_void_p, ctypes.c_char_p
# functions of our own: what hangs at ctypes.pythonapi may be typed anew by any other package
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _P, _S, _P)(("PyCapsule_New", ctypes.pythonapi))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, _P, _S)(("PyCapsule_IsValid", ctypes.pythonapi))
_address = ctypes.PYFUNCTYPE(_P, _P, _S)(("PyCapsule_GetPointer", ctypes.pythonapi))


class View(NamedTuple):
    """An array on a device: address, shape, dtype and device, in C order."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    device: int
    read_only: bool

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def end(self) -> int:
        return self.address + prod(self.shape) * np.dtype(self.dtype).itemsize

    def overlaps(self, other: View) -> bool:
        return self.address < other.end and other.address < self.end


def device_view(what: str, x: Any, stream: int) -> View:
    """Another library's array; `stream` may read it from here on. Raises InputError: `what` names the array."""
    try:
        kind = x.__dlpack_device__()[0] if hasattr(x, "__dlpack_device__") else _CUDA
        if kind == _CUDA and hasattr(x, "__dlpack__"):
            return _of_capsule(what, _lent(x, stream))
        if kind == _CUDA and hasattr(x, "__cuda_array_interface__"):
            return _of_interface(what, x.__cuda_array_interface__, stream)
    except DrevoError:
        raise
    except Exception as error:
        raise InputError(f"{what}: {type(x).__name__} does not lend its memory: {error}") from error
    raise InputError(
        f"{what} must be an array on a GPU, with DLPack or __cuda_array_interface__, not {type(x).__name__}; "
        "target='cpu' takes those in the memory of the processor"
    )


def _lent(x: Any, stream: int) -> Any:
    try:
        return x.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # older than DLPack 1.0
        return x.__dlpack__(stream=stream)


def _of_capsule(what: str, capsule: Any) -> View:
    """The capsule is not taken over: it gives its memory back when it goes, and the array has it still."""
    name = next((n for n in _FORMS if _valid(id(capsule), n)), None)
    if name is None:
        raise InputError(f"{what}: what __dlpack__ gives is no tensor of DLPack")
    made = _FORMS[name].from_address(_address(id(capsule), name))
    t = made.tensor
    shape = tuple(t.shape[: t.ndim])
    size = t.bits // 8
    strides = tuple(size * s for s in t.strides[: t.ndim]) if t.strides else None
    kind = f"<f{size}" if t.code == 2 and t.lanes == 1 else f"code {t.code} of {t.bits} bits"
    only = name == b"dltensor_versioned" and bool(made.flags & _READ_ONLY)
    return _checked(what, (t.data or 0) + t.offset, shape, kind, strides, t.ordinal, only)


def _of_interface(what: str, given: Any, stream: int) -> View:
    address, only = given["data"]
    shape = tuple(given["shape"])
    device = driver().device_of(address) if prod(shape) else 0
    found = _checked(what, address, shape, given["typestr"], given.get("strides"), device, only)
    other = given.get("stream")
    if other is not None and other != stream:
        with driver().on(device):
            driver().follow(stream, other)
    return found


def _checked(
    what: str,
    address: int,
    shape: tuple[int, ...],
    kind: str,
    strides: Any,
    device: int,
    read_only: bool,
) -> View:
    dtype = {f"<f{n}": name for n, name in _FLOATS.items()}.get(kind)
    if dtype is None:
        raise InputError(f"{what} holds {kind}; it must hold float32 or float64")
    step = np.dtype(dtype).itemsize
    for size, stride in zip(reversed(shape), reversed(strides or ())):
        if size > 1 and stride != step and 0 not in shape:
            raise InputError(f"{what} must be contiguous, in C order; give a contiguous copy")
        step *= size
    return View(address, shape, dtype, device, read_only)


# -- our own ------------------------------------------------------------------------------------------------


class DeviceArray:
    """Memory of a GPU in C order, that a stream works on; it is given back on that stream.

    `torch.from_dlpack`, `cupy.asarray` and `jax.dlpack.from_dlpack` take it without a copy.
    """

    def __init__(self, shape: tuple[int, ...], dtype: str, device: int = 0, stream: int = LEGACY) -> None:
        self.shape, self.dtype, self.device, self.stream = shape, np.dtype(dtype), device, stream
        self.size, self.address = prod(shape), 0
        self._driver: Driver = driver()
        if self.size:
            with self._driver.on(device):
                self.address = self._driver.handle("cuMemAllocAsync", self.size * self.dtype.itemsize, stream)

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            try:
                with self._driver.on(self.device):
                    self._driver.call("cuMemFreeAsync", self.address, self.stream)
            except (DrevoError, TypeError):  # the stream, the context or the interpreter has gone before
                pass

    def __repr__(self) -> str:
        return f"<DeviceArray {list(self.shape)}, {self.dtype}, device {self.device}>"

    @property
    def view(self) -> View:
        return View(self.address, self.shape, self.dtype.name, self.device, False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None,
            "version": 3, "stream": self.stream,
        }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """stream: the consumer's, which may work on it from there on; -1: it sees to that itself."""
        theirs = LEGACY if stream is None else stream
        if theirs not in (-1, self.stream):
            with self._driver.on(self.device):
                self._driver.follow(theirs, self.stream)
        shape = (ctypes.c_int64 * max(1, len(self.shape)))(*self.shape)
        tensor = _Tensor(
            self.address, _CUDA, self.device, len(self.shape), 2, 8 * self.dtype.itemsize, 1,
            ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64)), None, 0,
        )  # fmt: skip
        made = _Managed(tensor, None, ctypes.cast(_DELETER, ctypes.c_void_p))
        _LENT[ctypes.addressof(made)] = made, shape, self
        return _capsule(ctypes.addressof(made), b"dltensor", ctypes.cast(_DESTRUCTOR, ctypes.c_void_p))

    def to_host(self) -> np.ndarray[Any, Any]:
        """A copy in the memory of the processor. It waits for the stream."""
        found = np.empty(self.shape, self.dtype)
        with self._driver.on(self.device):
            if self.size:
                where = found.ctypes.data
                self._driver.call("cuMemcpyDtoHAsync_v2", where, self.address, found.nbytes, self.stream)
            self._driver.synchronise(self.stream)
        return found


def to_device(x: Any, dtype: str = "float64", device: int = 0, stream: int = LEGACY) -> DeviceArray:
    """A copy of an array on a GPU. It waits for the copy, since the processor's array may change after it."""
    given = np.ascontiguousarray(x, dtype)
    made = DeviceArray(np.shape(x), dtype, device, stream)
    with made._driver.on(device):
        if made.size:
            where = given.ctypes.data
            made._driver.call("cuMemcpyHtoDAsync_v2", made.address, where, given.nbytes, stream)
        made._driver.synchronise(stream)
    return made


_LENT: dict[int, tuple[object, ...]] = {}  # what a consumer holds, by the address of its description


def _returned(made: int) -> None:
    _LENT.pop(made, None)


def _dropped(capsule: int) -> None:
    """Releases what a DLPack capsule lends if it still has its first name, so that nobody has taken it over."""
    if _valid(capsule, b"dltensor"):
        _LENT.pop(_address(capsule, b"dltensor"), None)


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_returned)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_dropped)
