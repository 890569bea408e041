"""A Function whose results are those of a packed one, each in all its places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..store.build import Built
from .function import Function

Array = np.ndarray[Any, Any]


class Scattered(Function):
    """Results of full shape. places: by output, flat indices, and which of the packed entries stands at each."""

    def __init__(
        self, inner: Function, shapes: Sequence[Sequence[int]], places: Sequence[tuple[Array, Array]]
    ) -> None:
        outputs = tuple((name, tuple(shape)) for (name, _), shape in zip(inner.outputs, shapes))
        self.inner, self.places = inner, places
        super().__init__(
            Built(inner.manifest._replace(outputs=outputs, pattern=None), None), inner.spec, None, inner._weakest
        )
        self.packed = False

    @property
    def backend(self) -> str:
        """The backend of the packed function."""
        return self.inner.backend

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array], count: int, threads: int) -> bool:
        rows = self.layout == "rows"
        sizes = [shape[-1] for _, shape in self.inner.outputs]
        given = [np.empty((count, n) if rows else (n, count), self.dtype) for n in sizes]
        bad = self.inner._run(inputs, given, count, threads)
        for x, out, (places, sources) in zip(given, outputs, self.places):
            out[...] = 0.0
            out[(slice(None), places) if rows else places] = x[:, sources] if rows else x[sources]
        return bad
