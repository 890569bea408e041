"""Exports of plants: an FMU, or the source of an S-function and the script that builds it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ..compiler.export import Exported
from ..control.law import Law
from ..documents.languages.code import comment
from ..documents.sequence.names import identifier
from ..errors import EmitError, InputError, shown
from ..io.files import write_whole
from ..io.given import finite, flag
from ..mechanics.configuration import neutral, require_unit_quaternions
from ..model.draft import model_of, names_in
from .equations import MASSES, Plant, plant_of
from .fmu import fmu

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


def s_function(plant: Plant, name: str) -> str:
    """The source of the S-function; the file must be called NAME.c."""
    wrapper = files(__package__).joinpath("sfunction.c").read_text(encoding="utf-8")
    return f"#define S_FUNCTION_NAME {name}\n{plant.c}{wrapper}"


def build_script(plant: Plant, name: str) -> str:
    """MATLAB: compiles the S-function and puts it into a new model, with the names and units of its numbers."""
    states = plant.of("state")
    half = sum(".q" in x.name for x in states)
    ports = {"input 1": plant.of("input"), "output 1": states[:half], "output 2": states[half:]}
    ports |= {"output 3": plant.of("control")} if plant.of("control") else {}
    lines = [f"% Builds the S-function {name} of robot {comment(plant.robot)}, and a model with it as a block."]
    for port, variables in ports.items():
        lines += [f"% {port}:", *(f"%   {comment(x.name)}, {comment(x.unit)}" for x in variables)]
    lines += [
        "parameters = [  % of the block; [] for these numbers too",
        *(f"    {x.start!r}  % {comment(x.name)}, {comment(x.unit)}" for x in plant.of("parameter")),
        "];",
        "start = [  % the state at the beginning: q, then v",
        *(f"    {x.start!r}  % {comment(x.name)}, {comment(x.unit)}" for x in states),
        "];",
        f"mex('{name}.c');",
        f"model = new_system('{name}_model');",
        f"block = add_block('simulink/User-Defined Functions/S-Function', '{name}_model/{name}');",
        f"set_param(block, 'FunctionName', '{name}', 'Parameters', 'parameters, start');",
        "open_system(model);",
    ]
    return "\n".join(lines) + "\n"
