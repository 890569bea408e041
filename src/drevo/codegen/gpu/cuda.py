"""Functions on a GPU: a sample a thread, PTX by LLVM, machine code and launch by NVIDIA's driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from ...errors import EmitError, InputError
from ..call.arguments import bind, lead_of
from ..store.build import DTYPES, FunctionFace, Manifest, Spec, lowered_as, manifest_as, parse_manifest
from ..store.key import key
from ..store.memo import persisted
from .device_arrays import DeviceArray, View, device_view
from .driver import LEGACY, DeviceKernel, driver

if TYPE_CHECKING:
    from ..graph.program import Program

THREADS = 128  # of a block
REGISTERS = 255  # of a thread, of 32 bits
KERNEL_NAME = "kernel"


def ptx_of(program: Program, spec: Spec) -> tuple[Manifest, bytes]:
    """The kernel as text for the driver; no driver is needed for that."""
    from ..store.targets import MACHINES, MAX_STEPS, compiled_for

    if program.tail is not None or program.stages is not None:
        raise EmitError(f"{program.name} is computed by loops, which target 'cuda' does not have yet")
    machine = MACHINES["ptx"]
    low = lowered_as(program, spec, machine.fused)
    if len(low.steps) > MAX_STEPS:
        raise EmitError(
            f"{program.name} has {len(low.steps)} steps, more than the {MAX_STEPS} of one kernel; take a product "
            "with derivatives (product='vjp') or the quantities that it is made of"
        )
    made = compiled_for(machine, low, DTYPES[spec.dtype], machine.fused, KERNEL_NAME, rows=spec.layout == "rows")
    return manifest_as(program, low, 0, 0, 1), made.data


def level_of(m: Manifest, dtype: str) -> int:
    """Chooses the optimisation level of the assembler: low where the registers do not hold the live values.

    There its scheduler, which knows nothing of our order, makes it spill up to four times as much, in up to twenty
    times as long.
    """
    registers = m.live[0] * (2 if dtype == "float64" else 1)
    return 3 if registers <= REGISTERS else 1


def obtain_cuda(
    request: str,
    make: Callable[[], Program],
    spec: Spec,
    cache: bool = True,
) -> CudaFunction:
    """The function of a program on the GPUs of this machine; EmitError where there is none.

    request: see `function.obtain`. The text is in the cache, and so is the machine code for every kind of device
    and driver.
    """
    driver()  # before anything is traced

    def text() -> bytes:
        manifest, ptx = ptx_of(make(), spec)
        return manifest.text().encode() + b"\n" + ptx

    name = key(f"cuda\n{request}", spec)
    manifest, ptx = persisted(name, cache, text).split(b"\n", 1)
    return CudaFunction(parse_manifest(manifest.decode()), spec, ptx, name if cache else "")


class CudaFunction(FunctionFace):
    """Compiled quantities on a GPU: `f(*inputs, out=None, stream=None)`.

    Inputs are arrays on one GPU (torch, CuPy, JAX, `DeviceArray`), in C order and of the function's dtype, of
    shapes (..., *shape) with the same leading dimensions, or (n, B) batch-last; so are results, a `DeviceArray`
    each where no `out` is given. The work is put on the caller's stream (a handle, or what torch and CuPy call a
    stream; None: the default stream) and nothing waits for it: results are there for what follows on that stream.
    Nothing is checked on the device: what is not finite stays so. Raises InputError, EmitError.
    """

    def __init__(self, manifest: Manifest, spec: Spec, ptx: bytes, name: str) -> None:
        super().__init__(manifest, spec)
        self.ptx, self._key = ptx, name
        self._kernels: dict[int, DeviceKernel] = {}
        self.kernel(0)

    def __repr__(self) -> str:
        return f"<CudaFunction {self._signature}>"

    def kernel(self, device: int) -> DeviceKernel:
        """The kernel on a device, with its registers and what it spills; loaded at the first call there."""
        if device not in self._kernels:
            d, level = driver(), level_of(self.manifest, self.spec.dtype)
            name = f"{self._key}\nsm {d.capability(device)}, driver {d.version}"
            image = persisted(name, bool(self._key), lambda: d.cubin(self.ptx, device, level))
            self._kernels[device] = d.kernel(image, KERNEL_NAME, device)
        return self._kernels[device]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stream = _stream(self.name, kwargs.pop("stream", None))
        if "threads" in kwargs:
            raise InputError(f"{self.name} runs on a GPU and takes no threads; it takes out and stream")
        call = bind(self.name, self.inputs, args, kwargs)
        given = [self._view(n, x, stream) for (n, _), x in zip(self.inputs, call.values)]
        lead = self._lead(given)
        rows, device = self.layout == "rows", given[0].device
        shapes = [(*lead, *s) if rows else (n, *lead) for (_, s), n in zip(self.outputs, self._sizes)]
        if call.out is None:
            made: list[Any] = [DeviceArray(s, self.dtype.name, device, stream) for s in shapes]
            results = [x.view for x in made]
        else:
            made, results = self._given(call.out, shapes, given, stream)
        self.launch([x.address for x in (*given, *results)], prod(lead), device, stream)
        return made[0] if len(made) == 1 else tuple(made)

    def launch(self, addresses: Sequence[int], samples: int, device: int, stream: int) -> None:
        """The kernel on arrays that a caller has checked: dense, of this dtype, arguments and then results."""
        kernel, d = self.kernel(device), driver()
        if samples:
            with d.on(device):
                d.launch(kernel, -(-samples // THREADS), THREADS, stream or LEGACY, [*addresses, samples])

    def _view(self, name: str, x: Any, stream: int) -> View:
        found = device_view(f"{self.name}: {name}", x, stream)
        if found.dtype != self.dtype:
            raise InputError(
                f"{self.name}: {name} holds {found.dtype}; this function was compiled for {self.dtype}"
            )
        return found

    def _lead(self, given: Sequence[View]) -> tuple[int, ...]:
        """Leading dimensions, the same for all, on one device."""
        leads = [lead_of(self.name, x, port, self.layout == "rows") for x, port in zip(given, self.inputs)]
        for what, found in (("leading (batch) dimensions", leads), ("devices", [x.device for x in given])):
            if any(x != found[0] for x in found):
                said = ", ".join(f"{p[0]} {x}" for p, x in zip(self.inputs, found))
                raise InputError(f"{self.name}: the {what} do not agree: {said}")
        return leads[0]

    def _given(
        self, out: Any, shapes: Sequence[tuple[int, ...]], given: Sequence[View], stream: int
    ) -> tuple[list[Any], list[View]]:
        """The caller's result arrays, and where they are."""
        several = [out] if len(shapes) == 1 else out
        if not isinstance(several, (list, tuple)) or len(several) != len(shapes):
            raise InputError(f"{self.name}: out must be {len(shapes)} arrays, in a list or tuple")
        taken = list(given)
        for x, shape in zip(several, shapes):
            found = self._view("out", x, stream)
            if found.shape != shape:
                raise InputError(f"{self.name}: out has shape {found.shape}; the result has shape {shape}")
            if found.read_only:
                raise InputError(f"{self.name}: out is read-only")
            if found.device != given[0].device:
                raise InputError(f"{self.name}: out is on device {found.device}, {given[0].device} has the inputs")
            if any(found.overlaps(y) for y in taken):
                raise InputError(f"{self.name}: out shares memory with an input or another result")
            taken.append(found)
        return list(several), taken[len(given) :]


def _stream(name: str, given: Any) -> int:
    """A stream as the driver's handle."""
    if given is None:
        return LEGACY
    if hasattr(given, "__cuda_stream__"):
        given = given.__cuda_stream__()[1]
    for own in ("cuda_stream", "ptr"):  # torch's, CuPy's
        given = getattr(given, own, given)
    try:
        return index(given) or LEGACY
    except TypeError:
        raise InputError(f"{name}: stream must be a stream or its handle, not {type(given).__name__}") from None
