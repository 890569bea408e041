"""Exports of plants: an FMU, or the source of an S-function and the script that builds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ..compiler.export import Exported
from ..control.law import Law
from ..documents.sequence.names import identifier
from ..errors import EmitError, InputError, shown
from ..io.files import write_whole
from ..io.given import finite, flag
from ..mechanics.configuration import neutral, require_unit_quaternions
from ..model.draft import model_of, names_in
from .equations import MASSES, plant_of
from .fmu import fmu
from .simulink import build_script, s_function

PLANT_TARGETS = ("fmu", "simulink")
FORWARD_DYNAMICS = "forward_dynamics"


def export_plant(
    holder: Any,
    quantity: object,
    target: str,
    *,
    folder: str | Path = ".",
    name: str = "",
    parameters: str | Sequence[str] = (),
    passive: bool = True,
    q0: ArrayLike | None = None,
    dtype: str = "float64",
) -> Exported:
    """A robot as a plant, with the controller inside where `holder` is a law of one: see `drevo.export`."""
    law = holder if isinstance(holder, Law) else None
    if law is None and quantity != FORWARD_DYNAMICS:
        raise EmitError(
            f"export: {target} holds a robot that moves, {FORWARD_DYNAMICS!r}, or one with its controller (a "
            f"law of drevo.control such as lqr), not {shown(quantity)}"
        )
    if dtype != "float64":
        raise InputError(f"export: {target} computes in float64, not {shown(dtype)}")
    robot = holder if law is None else law.robot
    model = model_of(robot, "export")
    if getattr(getattr(law, "model", None), "dt", None) is not None:
        raise InputError(
            f"export: {target} is continuous, this controller is for steps of dt; design it without dt"
        )
    q = neutral(model) if q0 is None else finite("export: q0", q0, (model.nq,), error=InputError)
    require_unit_quaternions(model, "export: q0", q, InputError)
    named = names_in(parameters, "export: parameters") if parameters else MASSES
    plant = plant_of(model, law, named, q.tolist(), flag("export: passive", passive))
    called = identifier(name or (model.name if law is None else f"{model.name}_{quantity}")).lower()
    place = Path(folder)
    contents: dict[str, str | bytes]
    if target == "fmu":
        content, link = fmu(plant, called)
        contents = {f"{called}.fmu": content}
    else:
        link = f"in MATLAB: build_{called}"
        contents = {f"{called}.c": s_function(plant, called), f"build_{called}.m": build_script(plant, called)}
    files = tuple(write_whole("export", place / file, content) for file, content in contents.items())
    return Exported(called, target, dtype, files, 0, 0, 0, link)
