"""A plant as a level-2 S-function of Simulink in C, and the MATLAB script that builds it into a model."""

from __future__ import annotations

from importlib.resources import files

from ..documents.languages.code import comment
from .equations import Plant


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
