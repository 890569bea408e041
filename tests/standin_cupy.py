"""CuPy on a machine without a GPU: its arrays are NumPy's, and a kernel is a Function of this processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import drevo


class Device:
    """A device by its number."""

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def use(self) -> None:
        pass

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class GpuArray(np.ndarray[Any, Any]):
    """An array that says on which device it lies."""

    at = 0

    @property
    def device(self) -> Any:
        return Device(self.at)

    def get(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


class Standin:
    """The module, and what was called on it: launches as (stream, blocks, threads)."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, int]] = []
        self.texts: list[bytes] = []
        self.answer: Callable[..., Any] | None = None
        self.streams, self.clock = [0], 0.0
        m = ModuleType("cupy")
        m.ndarray, m.asarray, m.from_dlpack = GpuArray, self.of, self.lent  # type: ignore[attr-defined]
        m.empty = lambda shape, dtype: np.empty(shape, dtype).view(GpuArray)  # type: ignore[attr-defined]
        m.ascontiguousarray = lambda x: np.ascontiguousarray(x).reshape(x.shape).view(GpuArray)  # type: ignore[attr-defined]
        m.may_share_memory = np.may_share_memory  # type: ignore[attr-defined]
        m.cuda = SimpleNamespace(  # type: ignore[attr-defined]
            Device=Device, ExternalStream=self.on_stream, function=SimpleNamespace(Module=self.module),
        )  # fmt: skip
        self.module_object = m

    @staticmethod
    def of(x: Any) -> GpuArray:
        return np.array(x).view(GpuArray)

    @staticmethod
    def lent(x: Any) -> GpuArray:
        if not hasattr(x, "__dlpack__") or type(x) is np.ndarray:
            raise TypeError("no array of the device")
        return np.from_dlpack(x).view(GpuArray)

    @contextmanager
    def on_stream(self, handle: int) -> Iterator[None]:
        self.streams.append(handle)
        yield
        self.streams.pop()

    def module(self) -> Any:
        return SimpleNamespace(load=self.texts.append, get_function=lambda name: self.launch)

    def launch(self, blocks: tuple[int], threads: tuple[int], given: tuple[Any, ...]) -> None:
        """Computes what the kernel should, into the last arrays; the last number is how many samples there are."""
        self.launches.append((self.streams[-1], blocks[0], threads[0]))
        *arrays, n = given
        assert self.answer is not None and (blocks[0] - 1) * threads[0] < n <= blocks[0] * threads[0]
        self.answer(arrays, int(n))

    def computes(self, f: drevo.Function) -> None:
        """The next launches are of this Function."""
        sizes = [int(np.prod(s)) for _, s in (*f.inputs, *f.outputs)]

        def answer(arrays: list[Any], n: int) -> None:
            rows = f.layout == "rows"
            shaped = [x.reshape((n, k) if rows else (k, n)) for k, x in zip(sizes, arrays)]
            found = f(*map(np.asarray, shaped[: len(f.inputs)]))
            for x, y in zip(shaped[len(f.inputs) :], found if len(f.outputs) > 1 else (found,)):
                x[...] = np.reshape(y, x.shape)

        self.answer = answer
