"""NVIDIA's driver by ctypes: devices, kernels from PTX, their launch, memory. Its errors are told by their names.

Nothing here waits for the device but `synchronise` and what is named after it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import EmitError

CUDA_LIBRARIES = ("nvcuda.dll",) if sys.platform == "win32" else ("libcuda.so.1", "libcuda.so")
ELSE = "target='cpu' runs everywhere"
NO_DEVICE, OLDER = 100, 222  # of the driver's errors: no device; a text that is newer than the driver
LEGACY = 1  # the handle of the default stream, which other libraries number so too
_LOG = 4096  # bytes of the compiler's complaint
_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int, "u": ctypes.c_uint, "n": ctypes.c_size_t, "d": ctypes.c_uint64}
# arguments: pointers and handles, int, unsigned, size_t, addresses on the device. Results of all are an error or 0
CALLS = {
    "cuInit": "u", "cuDriverGetVersion": "p", "cuDeviceGetCount": "p", "cuDeviceGet": "pi",
    "cuDeviceGetAttribute": "pii", "cuDevicePrimaryCtxRetain": "pi", "cuCtxPushCurrent_v2": "p",
    "cuCtxPopCurrent_v2": "p", "cuCtxGetDevice": "p", "cuLinkCreate_v2": "uppp",
    "cuLinkAddData_v2": "pipnpupp", "cuLinkComplete": "ppp", "cuLinkDestroy": "p",
    "cuModuleLoadDataEx": "ppupp", "cuModuleGetFunction": "ppp", "cuFuncGetAttribute": "pip",
    "cuLaunchKernel": "puuuuuuuppp", "cuMemAllocAsync": "pnp", "cuMemFreeAsync": "dp",
    "cuMemcpyHtoDAsync_v2": "dpnp", "cuMemcpyDtoHAsync_v2": "pdnp", "cuPointerGetAttribute": "pid",
    "cuEventCreate": "pu", "cuEventRecord": "pp", "cuEventDestroy_v2": "p", "cuStreamWaitEvent": "ppu",
    "cuEventSynchronize": "p", "cuEventElapsedTime": "ppp", "cuMemcpyDtoDAsync_v2": "ddnp",
    "cuDeviceGetName": "pii", "cuStreamSynchronize": "p", "cuGetErrorName": "ip", "cuGetErrorString": "ip",
}  # fmt: skip
_MAJOR, _MINOR = 75, 76  # attributes of a device: its compute capability
_REGISTERS, _LOCAL = 4, 3  # attributes of a kernel: registers and bytes of local memory of a thread
_ORDINAL = 9  # attribute of an address: which device has it
_NO_TIMING = 2  # of events
_PTX, _ERROR_LOG, _ERROR_LOG_SIZE, _LEVEL = 1, 5, 6, 7  # of the compiler: what it is given, where it complains


class DeviceKernel(NamedTuple):
    """A function on a device. registers, spilled: of a thread; the second in bytes of its local memory."""

    handle: int
    registers: int
    spilled: int


class Driver:
    """The calls. Raises EmitError, which names the call and the driver's error."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._calls: dict[str, Any] = {}
        for name, kinds in CALLS.items():
            try:
                call = getattr(library, name)
            except AttributeError:
                raise EmitError(f"NVIDIA's driver is older than CUDA 11.2: it has no {name}; {ELSE}") from None
            call.argtypes, call.restype = [_TYPES[k] for k in kinds], ctypes.c_int
            self._calls[name] = call
        failed = self._calls["cuInit"](0)
        if failed == NO_DEVICE or (not failed and not self.number("cuDeviceGetCount")):
            raise EmitError(f"target 'cuda' needs a GPU of NVIDIA's, and the driver finds none; {ELSE}")
        if failed:
            raise EmitError(f"NVIDIA's driver does not start: {self.named(failed)}; {ELSE}")
        self.version = self.number("cuDriverGetVersion")
        self.count = self.number("cuDeviceGetCount")

    def call(self, name: str, *args: Any) -> None:
        failed = self._calls[name](*args)
        if failed:
            raise EmitError(f"CUDA: {name} failed: {self.named(failed)}")

    def address(self, name: str) -> int:
        """The address of a driver function, for machine code."""
        return ctypes.cast(self._calls[name], ctypes.c_void_p).value or 0

    def named(self, failed: int) -> str:
        """An error as the driver names and explains it."""
        found = []
        for name in ("cuGetErrorName", "cuGetErrorString"):
            text = ctypes.c_char_p()
            if not self._calls[name](failed, ctypes.byref(text)) and text.value:
                found.append(text.value.decode(errors="replace"))
        return ", ".join(found) or f"error {failed}"

    def number(self, name: str, *args: Any) -> int:
        """Calls a driver function and gives the int that it stores through its first argument."""
        found = ctypes.c_int()
        self.call(name, ctypes.byref(found), *args)
        return found.value

    def handle(self, name: str, *args: Any) -> int:
        """The handle or address that a driver call puts where its first argument points to."""
        found = ctypes.c_void_p()
        self.call(name, ctypes.byref(found), *args)
        return found.value or 0

    # -- devices and kernels --------------------------------------------------------------------------------

    @lru_cache(maxsize=64)  # noqa: B019  one driver a process
    def context(self, device: int) -> int:
        """The primary context, which torch, JAX and CuPy work in too."""
        return self.handle("cuDevicePrimaryCtxRetain", self.number("cuDeviceGet", device))

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """In the context of a device."""
        self.call("cuCtxPushCurrent_v2", self.context(device))
        try:
            yield
        finally:
            self.handle("cuCtxPopCurrent_v2")

    def capability(self, device: int) -> int:
        """Ten times the compute capability."""
        handle = self.number("cuDeviceGet", device)
        major, minor = (self.number("cuDeviceGetAttribute", x, handle) for x in (_MAJOR, _MINOR))
        return 10 * major + minor

    def title(self, device: int) -> str:
        """The name of a device."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.number("cuDeviceGet", device))
        return text.value.decode(errors="replace")

    def device_of(self, address: int) -> int:
        """The number of the device that owns an address."""
        return self.number("cuPointerGetAttribute", _ORDINAL, address)

    def cubin(self, ptx: bytes, device: int, level: int) -> bytes:
        """Machine code of a device, by the compiler in the driver. level: of its optimisations."""
        log = ctypes.create_string_buffer(_LOG)
        options = (ctypes.c_int * 3)(_ERROR_LOG, _ERROR_LOG_SIZE, _LEVEL)
        values = (ctypes.c_void_p * 3)(ctypes.addressof(log), _LOG, level)
        state, data, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        with self.on(device):
            self.call("cuLinkCreate_v2", 3, options, values, ctypes.byref(state))
            try:
                for name, *args in (
                    ("cuLinkAddData_v2", _PTX, ptx + b"\0", len(ptx) + 1, b"drevo", 0, None, None),
                    ("cuLinkComplete", ctypes.byref(data), ctypes.byref(size)),
                ):
                    failed = self._calls[name](state, *args)
                    if failed:
                        raise EmitError(self._refused(failed, log.value.decode(errors="replace")))
                return ctypes.string_at(data.value or 0, size.value)  # a copy: the state owns it
            finally:
                self.call("cuLinkDestroy", state)

    def _refused(self, failed: int, log: str) -> str:
        if failed == OLDER:
            return f"NVIDIA's driver (CUDA {self.version // 1000}) is too old for PTX 7.0: install a newer one"
        return f"NVIDIA's driver does not compile the kernel: {self.named(failed)} {log.strip()}"

    def kernel(self, image: bytes, name: str, device: int) -> DeviceKernel:
        """A kernel of a cubin; it stays loaded, since launched work may still read it."""
        with self.on(device):
            module = self.handle("cuModuleLoadDataEx", image, 0, None, None)
            handle = self.handle("cuModuleGetFunction", module, name.encode())
            seen = (self.number("cuFuncGetAttribute", x, handle) for x in (_REGISTERS, _LOCAL))
            return DeviceKernel(handle, *seen)

    # -- work on a stream, in the context of its device -----------------------------------------------------

    def launch(self, kernel: DeviceKernel, blocks: int, threads: int, stream: int, words: list[int]) -> None:
        """words: the arguments, of 64 bits each."""
        cells = (ctypes.c_uint64 * len(words))(*words)
        first = ctypes.addressof(cells)
        places = (ctypes.c_void_p * len(words))(*range(first, first + 8 * len(words), 8))
        self.call("cuLaunchKernel", kernel.handle, blocks, 1, 1, threads, 1, 1, 0, stream, places, None)

    def follow(self, stream: int, other: int) -> None:
        """Makes later work on a stream wait, on the device, for the work that another stream has so far."""
        event = self.handle("cuEventCreate", _NO_TIMING)
        self.call("cuEventRecord", event, other)
        self.call("cuStreamWaitEvent", stream, event, 0)
        self.call("cuEventDestroy_v2", event)  # the driver keeps it until it has happened

    def elapsed(self, first: int, last: int) -> float:
        """Milliseconds between two events that have happened."""
        found = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(found), first, last)
        return found.value

    def synchronise(self, stream: int) -> None:
        self.call("cuStreamSynchronize", stream)


@lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver of this machine; EmitError where there is none, or no device."""
    for name in CUDA_LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return Driver(library)
    raise EmitError(
        f"target 'cuda' needs NVIDIA's driver, and this machine has none ({CUDA_LIBRARIES[0]} is not found); "
        f"{ELSE}"
    )
