"""The choice of a way to compute a function; `ways` has the words and the sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ...model.description import Model
from . import (
    MAX_STRAIGHT_BODIES,
    MAX_STRAIGHT_BODIES_OF_M,
    MAX_STRAIGHT_DEPTH,
    MAX_STRAIGHT_JOINTS,
    MAX_STRAIGHT_OPERATIONS_OF_M,
)

if TYPE_CHECKING:
    from ...codegen.call.function import Function
    from ...codegen.store.build import Spec


class Wanted(Protocol):
    """The parts of a Recipe on which the choice depends."""

    @property
    def quantity(self) -> tuple[str, ...]: ...
    @property
    def formalism(self) -> str: ...
    @property
    def external(self) -> tuple[str, ...]: ...
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def passive(self) -> bool: ...
    @property
    def product(self) -> tuple[str, ...]: ...


PASSIVE_BY_BODIES = ("inverse_dynamics", "bias", "forward_dynamics")


def function_by_bodies(
    model: Model, recipe: Wanted, spec: Spec, extra: Callable[..., Any] | None, cache: bool
) -> Function | None:
    """The Function of a large tree as a loop over its bodies; None where that is not the way."""
    several = len(recipe.quantity) != 1 or bool(recipe.product)
    if len(model.joints) <= MAX_STRAIGHT_JOINTS or several or recipe.formalism not in ("auto", "newton_euler"):
        return None
    (name,) = recipe.quantity
    if recipe.passive and name not in PASSIVE_BY_BODIES:
        return None
    from .rolled import rolled_function  # late: it would slow every warm start

    return rolled_function(
        model, name, spec, external=recipe.external, options=recipe.options, extra=extra, cache=cache,
        smallest=_max_straight_bodies(model, name), passive=recipe.passive,
    )  # fmt: skip


def _max_straight_bodies(model: Model, quantity: str) -> int:
    from ..compile_cost import operations

    if quantity == "forward_dynamics" and _mean_depth(model) > MAX_STRAIGHT_DEPTH:
        return MAX_STRAIGHT_JOINTS
    if quantity == "mass_matrix":
        rough = operations(model, quantity) * (1.0 + _oblique(model))
        return MAX_STRAIGHT_BODIES_OF_M if rough < MAX_STRAIGHT_OPERATIONS_OF_M else MAX_STRAIGHT_BODIES
    return MAX_STRAIGHT_BODIES


def _oblique(model: Model) -> float:
    """The share of joints that turn their frames about no axis of coordinates: their pairs cost twice as much."""
    numbers = [(*j.axis, *j.rotation[0], *j.rotation[1], *j.rotation[2]) for j in model.joints]
    return sum(any(abs(y - round(y)) > 1e-6 for y in x) for x in numbers) / max(1, len(numbers))


def _mean_depth(model: Model) -> float:
    depth = {model.root: 0}
    for j in model.joints:
        depth[j.child] = depth[j.parent] + (j.kind != "fixed")
    return sum(depth.values()) / max(1, len(depth))
