"""The passive forces of any robot, in the place of efforts: dampers, dry friction, springs, tendons."""

from __future__ import annotations

from collections.abc import Callable

from ..codegen.store.memo import memoised
from ..compiler.compile import Options, compile_quantity
from ..compiler.ways.rolled import is_large
from ..io.given import Array
from ..mechanics.acting import has_passive
from ..mechanics.algorithms.passive import passive_on_arrays
from ..model.description import Model
from ..model.dynamics import Dynamics


def acting_in(robot: Dynamics, q: Array, v: Array, wanted: bool = True) -> Array | float:
    """The passive forces in joints and tendons, (..., nv), or 0 where there are none or they are not wanted."""
    if not wanted or not has_passive(robot.model):
        return 0.0
    return memoised(robot, "acting_in", lambda: _made(robot.model))(q, v)


def _made(model: Model) -> Callable[[Array, Array], Array]:
    """Machine code where joints are many; of few the arithmetic is done sooner than compiled."""
    return (
        compile_quantity(model, "passive", Options(check=False)) if is_large(model) else passive_on_arrays(model)
    )
