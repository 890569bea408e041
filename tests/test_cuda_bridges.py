"""JAX and PyTorch on a GPU: one launch on their stream, by the driver that stands in (see test_cuda.py)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_cuda import ROBOT, Machine, library, machine  # noqa: F401  the fixtures

import drevo
from drevo import jax as jax_functions
from drevo import torch as torch_functions
from drevo.bridges.products import Products
from drevo.codegen.gpu import xla
from drevo.codegen.gpu import xla as llvm_xla
from drevo.codegen.gpu.cuda import THREADS
from drevo.errors import EmitError, InputError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.needs("gcc")


def products(who: str, dtype: str = "float64", quantity: str = "inverse_dynamics") -> Products:
    return Products(who, ROBOT, quantity, (), dtype, {})


def states(f: drevo.Function, count: int) -> list[Array]:
    rng = np.random.default_rng(count)
    return [rng.uniform(-1.0, 1.0, (count, *s)).astype(f.dtype) for _, s in f.inputs]


# -- XLA: its call frames, made by hand ----------------------------------------------------------------------

WORDS = ctypes.c_uint64
REFUSE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(WORDS))


class Frames:
    """What XLA hands to a handler: its context is 7, its stream 77."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.no_stream = 0
        self._calls = REFUSE(self._error), REFUSE(self._stream)
        self._api = (WORDS * 24)()
        self._api[0] = 192
        for at, call in zip((llvm_xla.ERROR_CREATE, llvm_xla.STREAM_GET), self._calls):
            self._api[at // 8] = ctypes.cast(call, ctypes.c_void_p).value or 0
        self._kept: list[Any] = []

    def _error(self, given: Any) -> int:
        self.said.append(ctypes.string_at(given[2]).decode())
        return 5

    def _stream(self, given: Any) -> int:
        assert given[0] == llvm_xla.STREAM and given[2] == 7
        given[3] = 77
        return self.no_stream

    def _buffer(self, x: Array) -> int:
        dims = (ctypes.c_int64 * max(1, x.ndim))(*x.shape)
        kind = llvm_xla.NUMBER["double" if x.dtype == np.float64 else "float"]
        made = (WORDS * 6)(48, 0, kind, x.ctypes.data, x.ndim, ctypes.addressof(dims))
        self._kept += [dims, made, x]
        return ctypes.addressof(made)

    def call(self, handler: Any, given: list[Array], results: list[Array]) -> int | None:
        frame = (WORDS * 21)()
        frame[0], frame[2], frame[3] = 168, ctypes.addressof(self._api), 7
        for at, arrays in ((5, given), (10, results)):
            places = (WORDS * len(arrays))(*map(self._buffer, arrays))
            frame[at], frame[at + 1], frame[at + 2] = 48, 0, len(arrays)
            frame[at + 4] = ctypes.addressof(places)
            self._kept.append(places)
        found: int | None = handler.function(ctypes.addressof(frame))
        return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_xla_launches_on_its_stream(machine: Machine, dtype: str) -> None:  # noqa: F811
    """As many blocks as are needed, on XLA's stream; nothing is pushed, nothing waits."""
    made = products("jax.function", dtype)
    same, frames = made.value, Frames()
    machine.computes(same)
    handler = xla.DeviceHandler(made.on_gpu(()), [0])
    for n in (1, THREADS, THREADS + 1, 0):
        x = states(same, n)
        out = np.zeros((n, 4), dtype)
        machine.calls()
        assert frames.call(handler, x, [out]) is None
        assert np.array_equal(out, same(*x))
        wanted = ["cuCtxGetDevice 0 0", f"cuLaunchKernel 77 {-(-n // THREADS)}"] if n else []
        assert machine.calls() == wanted


def test_what_xla_is_told(machine: Machine) -> None:  # noqa: F811
    """A failed launch by its name, an unknown device, arrays that do not fit, a stream that it does not give."""
    made, frames = products("jax.function"), Frames()
    same, handler = made.value, xla.DeviceHandler(made.on_gpu(()), [0])
    machine.computes(same)
    x, out = states(same, 3), np.zeros((3, 4))
    machine.refuse("cuLaunchKernel", 719)
    sentence = "inverse_dynamics: NVIDIA's driver refuses the launch: "
    assert frames.call(handler, x, [out]) == 5 and frames.said.pop() == f"{sentence}CUDA_ERROR_LAUNCH_FAILED"
    machine.refuse("cuCtxGetDevice", 201)
    assert frames.call(handler, x, [out]) == 5 and frames.said.pop() == f"{sentence}CUDA_ERROR_OTHER"
    machine.refuse("cuCtxGetDevice", 12345)
    assert frames.call(handler, x, [out]) == 5 and frames.said.pop() == f"{sentence}an error without a name"
    machine.refuse("", 0)
    for device, said in ((1, "was not among JAX's devices"), (99, "more than 16 GPUs")):
        machine.library.at(device)
        assert frames.call(handler, x, [out]) == 5 and said in frames.said.pop()
    machine.library.at(0)
    for wrong in ([x[0], x[1], x[2][:2]], [y.astype("f4") for y in x]):
        assert frames.call(handler, wrong, [out]) == 5 and "not of the type and the sizes" in frames.said.pop()
    frames.no_stream = 9
    assert frames.call(handler, x, [out]) == 9 and not frames.said and not out.any()


@pytest.fixture
def jax() -> Iterator[Any]:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@pytest.mark.needs("jax")
def test_jax_compiles_for_gpus(machine: Machine, jax: Any) -> None:  # noqa: F811
    """Values and derivatives become calls of the handlers, which JAX knows for that platform."""
    f = drevo.jax.function(ROBOT, "bias")
    x = states(drevo.compile(ROBOT, "bias"), 5)
    before = len(jax_functions._ON_GPU)
    for g, names in ((f, 1), (jax.grad(lambda *x: f(*x).sum()), 2)):
        text = jax.jit(g).trace(*x).lower(lowering_platforms=("cuda",)).as_text()
        assert "@drevo_bias_" in text and len(jax_functions._ON_GPU) >= before + names
    assert np.array_equal(f(*x), drevo.compile(ROBOT, "bias")(*x))  # on the CPU as ever


@pytest.mark.needs("jax")
def test_jax_without_a_gpu(jax: Any) -> None:
    f = drevo.jax.function(ROBOT, "gravity")
    with pytest.raises(EmitError, match="target 'cuda' needs"):
        jax.jit(f).trace(np.zeros(4)).lower(lowering_platforms=("cuda",))


# -- PyTorch -------------------------------------------------------------------------------------------------


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=77))
    return torch


@pytest.mark.needs("torch")
@pytest.mark.parametrize("kinds", [(), ("vjp",)])
def test_torch_launches_on_its_stream(machine: Machine, torch: Any, kinds: tuple[str, ...]) -> None:  # noqa: F811
    """What runs for tensors of a GPU, with tensors of the CPU, where the driver that stands in computes."""
    made = products("torch.function", quantity="bias")
    rules, same = torch_functions._Rules(made, kinds), made.function(kinds)
    machine.computes(same)
    for n in (0, 1, THREADS + 1):
        x = states(same, n)
        given = [torch.from_numpy(np.asfortranarray(y)) for y in x]  # made dense first
        made.on_gpu(kinds)
        machine.calls()
        found, wanted = rules.launch(*given), same(*x)
        for y, z in zip(found if len(rules.shapes) > 1 else [found], wanted if kinds else [wanted]):
            assert np.array_equal(y, z)
        launch = [f"cuLaunchKernel 77 {-(-n // THREADS)}"] if n else []
        assert [c for c in machine.calls() if not c.startswith("cuCtxP")] == launch


class Place(SimpleNamespace):
    """A tensor that lies somewhere."""

    def is_complex(self) -> bool:
        return False

    def __str__(self) -> str:
        return str(self.type)


@pytest.mark.needs("torch")
def test_where_tensors_lie(torch: Any) -> None:
    """The operator has a kernel for GPUs; other devices, and several at once, are one sentence."""
    made = products("torch.function", quantity="gravity")
    torch_functions._operators(made, ())
    (name,) = [x for x in torch_functions._DEFINED if x.startswith("gravity")][-1:]
    for key in ("CPU", "CUDA"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"drevo::{name}", key)
    for kinds, said in (
        (("xpu",), "lies on xpu; the function runs on"),
        (("cpu", "cuda"), "lie on cpu and cuda; put"),
    ):
        tensors = [Place(device=Place(type=x)) for x in kinds]
        with pytest.raises(InputError, match=said):
            torch_functions._converted(made, tensors)
