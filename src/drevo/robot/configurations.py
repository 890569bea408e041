"""What `robot.neutral` and `robot.random` are: builtins, and behind them NumPy's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..codegen.runtime.arguments import in_memory
from ..codegen.runtime.configurations import configuration_entry
from ..errors import InputError, shown
from ..io.asked import asked
from ..io.given import Array, generator
from ..mechanics import configuration
from ..model.description import Model


class Configurations:
    """`method`: that of a robot of the model; `fast`: the builtin, or None."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name
        low, width = within = configuration.ranges(model)

        def random(rng: np.random.Generator | None = None, shape: int | tuple[int, ...] = ()) -> Array:
            """Random configurations, (*shape, nq): inside finite limits, else +-pi or +-1 m."""
            rng = np.random.default_rng() if rng is None else rng
            generator("random: rng", rng, "; how many is said by shape=")
            sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
            if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
                raise InputError(f"random: shape must be whole numbers from 0, not {shown(shape)}")
            with in_memory("random"):
                return configuration.random(model, rng, tuple(map(int, sizes)), within)

        def neutral() -> Array:
            """Zero coordinates and identity quaternions, (nq,)."""
            return configuration.neutral(model)

        slow = asked(neutral if name == "neutral" else random)
        runs = [(sq.stop - sq.start, rule > 0) for rule, sq, _ in model.runs]
        low = configuration.neutral(model) if name == "neutral" else low
        self.fast = configuration_entry(self, slow, low, width, runs)
        self.method: Callable[..., Any] = self.fast or slow

    def __reduce__(self) -> tuple[Any, ...]:
        return Configurations, (self.model, self.name)
