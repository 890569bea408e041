"""PyTorch on a GPU: one launch on its stream, by the module that stands in for CuPy (see test_cuda.py)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from standin_cupy import Standin
from test_cuda import ROBOT, standin  # noqa: F401  the fixture

import drevo
from drevo import torch as torch_functions
from drevo.bridges.products import Products
from drevo.codegen.gpu.cuda import THREADS
from drevo.errors import InputError

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.needs("gcc")


def products(who: str, dtype: str = "float64", quantity: str = "inverse_dynamics") -> Products:
    return Products(who, ROBOT, quantity, (), dtype, {})


def states(f: drevo.Function, count: int) -> list[Array]:
    rng = np.random.default_rng(count)
    return [rng.uniform(-1.0, 1.0, (count, *s)).astype(f.dtype) for _, s in f.inputs]


# -- PyTorch -------------------------------------------------------------------------------------------------


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=77))
    return torch


@pytest.mark.needs("torch")
@pytest.mark.parametrize("kinds", [(), ("vjp",)])
def test_torch_launches_on_its_stream(standin: Standin, torch: Any, kinds: tuple[str, ...]) -> None:  # noqa: F811
    """What runs for tensors of a GPU, with tensors of the CPU, where a Function of this processor computes."""
    made = products("torch.function", quantity="bias")
    rules, same = torch_functions._Rules(made, kinds), made.function(kinds)
    standin.computes(same)
    for n in (0, 1, THREADS + 1):
        x = states(same, n)
        given = [torch.from_numpy(np.asfortranarray(y)) for y in x]  # made dense first
        found, wanted = rules.launch(*given), same(*x)
        for y, z in zip(found if len(rules.shapes) > 1 else [found], wanted if kinds else [wanted]):
            assert np.array_equal(y, z)
        assert standin.launches == ([(77, -(-n // THREADS), THREADS)] if n else [])
        standin.launches.clear()


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
