"""Functions on a GPU: a sample a thread, PTX by LLVM; arrays, streams, the driver and the launch by CuPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import EmitError, InputError
from ...io.packages import package
from ..call.arguments import bind, lead_of
from ..store.build import DTYPES, FunctionFace, Manifest, Spec, lowered_as, manifest_as, parse_manifest
from ..store.key import key
from ..store.memo import persisted

if TYPE_CHECKING:
    from ..graph.program import Program

THREADS = 128  # of a block
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


def gpu_arrays() -> Any:
    """The module CuPy. Raises EmitError where it is missing, or finds no GPU."""
    try:
        cupy = package("cupy", "target 'cuda'", "cupy-cuda12x")
    except InputError as error:
        raise EmitError(f"{error}; target='cpu' runs everywhere") from None
    try:
        cupy.cuda.Device().use()
    except Exception as error:
        raise EmitError(
            f"target 'cuda' needs a GPU of NVIDIA's, and CuPy finds none: {error}; target='cpu' runs everywhere"
        ) from None
    return cupy


def obtain_cuda(request: str, make: Callable[[], Program], spec: Spec, cache: bool = True) -> CudaFunction:
    """The function of a program on the GPUs of this machine; EmitError where there is none.

    request: see `function.obtain`. The text is in the cache; the driver keeps the machine code in its own.
    """
    gpu_arrays()  # before anything is traced

    def text() -> bytes:
        manifest, ptx = ptx_of(make(), spec)
        return manifest.text().encode() + b"\n" + ptx

    manifest, ptx = persisted(key(f"cuda\n{request}", spec), cache, text).split(b"\n", 1)
    return CudaFunction(parse_manifest(manifest.decode()), spec, ptx)


class CudaFunction(FunctionFace):
    """Compiled quantities on a GPU: `f(*inputs, out=None, stream=None)`.

    Inputs are arrays on one GPU (CuPy, torch, JAX, whatever speaks DLPack), of the function's dtype, of shapes
    (..., *shape) with the same leading dimensions, or (n, B) batch-last; so are results, CuPy's arrays where no
    `out` (in C order) is given. The work is put on the caller's stream (a handle, or what torch and CuPy call a
    stream; None: CuPy's current one) and nothing waits for it: results are there for what follows on that stream.
    Nothing is checked on the device: what is not finite stays so. Raises InputError, EmitError.
    """

    def __init__(self, manifest: Manifest, spec: Spec, ptx: bytes) -> None:
        super().__init__(manifest, spec)
        self.ptx, self.cupy = ptx, gpu_arrays()
        self._kernels: dict[int, Any] = {}
        self.kernel()

    def __repr__(self) -> str:
        return f"<CudaFunction {self._signature}>"

    def kernel(self) -> Any:
        """The kernel on the current device, loaded at the first call there."""
        device = self.cupy.cuda.Device().id
        if device not in self._kernels:
            module = self.cupy.cuda.function.Module()
            module.load(self.ptx + b"\0")
            self._kernels[device] = module.get_function(KERNEL_NAME)
        return self._kernels[device]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        stream = _stream(self.name, kwargs.pop("stream", None))
        if "threads" in kwargs:
            raise InputError(f"{self.name} runs on a GPU and takes no threads; it takes out and stream")
        call = bind(self.name, self.inputs, args, kwargs)
        cuda = self.cupy.cuda
        with cuda.ExternalStream(stream) if stream else nullcontext():
            given = [self._array(n, x) for (n, _), x in zip(self.inputs, call.values)]
            lead = self._lead(given)
            with given[0].device:
                given = [self.cupy.ascontiguousarray(x) for x in given]
                results = self._results(call.out, lead, given)
                if samples := prod(lead):
                    blocks = -(-samples // THREADS)
                    self.kernel()((blocks,), (THREADS,), (*given, *results, np.int64(samples)))
        made = [call.out] if len(results) == 1 else call.out
        made = results if call.out is None else made
        return made[0] if len(results) == 1 else tuple(made)

    def _array(self, name: str, x: Any) -> Any:
        """An argument as CuPy's array, which shares its memory."""
        try:
            found = x if isinstance(x, self.cupy.ndarray) else self.cupy.from_dlpack(x)
        except Exception as error:
            raise InputError(
                f"{self.name}: {name} must be an array on a GPU, with DLPack, not {type(x).__name__} ({error}); "
                "target='cpu' takes those in the memory of the processor"
            ) from error
        if found.dtype != self.dtype:
            raise InputError(
                f"{self.name}: {name} holds {found.dtype}; this function was compiled for {self.dtype}"
            )
        return found

    def _lead(self, given: Sequence[Any]) -> tuple[int, ...]:
        """Leading dimensions, the same for all, on one device."""
        leads = [lead_of(self.name, x, port, self.layout == "rows") for x, port in zip(given, self.inputs)]
        for what, found in (
            ("leading (batch) dimensions", leads),
            ("devices", [x.device.id for x in given]),
        ):
            if any(x != found[0] for x in found):
                said = ", ".join(f"{p[0]} {x}" for p, x in zip(self.inputs, found))
                raise InputError(f"{self.name}: the {what} do not agree: {said}")
        return leads[0]

    def _results(self, out: Any, lead: tuple[int, ...], given: Sequence[Any]) -> list[Any]:
        """New arrays, or the caller's."""
        rows = self.layout == "rows"
        shapes = [(*lead, *s) if rows else (n, *lead) for (_, s), n in zip(self.outputs, self._sizes)]
        if out is None:
            return [self.cupy.empty(s, self.dtype) for s in shapes]
        several = [out] if len(shapes) == 1 else out
        if not isinstance(several, (list, tuple)) or len(several) != len(shapes):
            raise InputError(f"{self.name}: out must be {len(shapes)} arrays, in a list or tuple")
        found = [self._array("out", x) for x in several]
        for k, (x, shape) in enumerate(zip(found, shapes)):
            if x.shape != shape:
                raise InputError(f"{self.name}: out has shape {x.shape}; the result has shape {shape}")
            if not x.flags.c_contiguous:
                raise InputError(f"{self.name}: out must be contiguous, in C order")
            if any(self.cupy.may_share_memory(x, y) for y in (*given, *found[:k])):
                raise InputError(f"{self.name}: out shares memory with an input or another result")
        return found


def _stream(name: str, given: Any) -> int:
    """A stream as the driver's handle; 0 where none is given."""
    for own in ("cuda_stream", "ptr"):  # torch's, CuPy's
        given = getattr(given, own, given)
    try:
        return 0 if given is None else index(given)
    except TypeError:
        raise InputError(f"{name}: stream must be a stream or its handle, not {type(given).__name__}") from None
