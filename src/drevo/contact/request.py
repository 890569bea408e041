"""The request for a step: its options as they were checked."""

from __future__ import annotations

from dataclasses import dataclass

from ..ground import Uneven


@dataclass(frozen=True)
class StepRequest:
    """The options of `contact.step.compile_step`, checked; with the model all that a step's program depends on."""

    law: str
    method: str
    dt: float
    ground: Uneven | str | None
    repeat: int = 1
    friction: float | None = None
    restitution: float = 0.0
    touching: tuple[str, ...] | None = None
    last: bool = False
    product: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    numbers: bool = False  # tangents of q in products are of size nq
