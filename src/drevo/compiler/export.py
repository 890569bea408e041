"""Functions for other processors: object files, WebAssembly and PTX, with what is needed to call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..codegen.graph.program import Program
from ..codegen.lower.lower import Lowered, lower
from ..codegen.lower.steps import largest_angle
from ..codegen.store.build import DTYPES
from ..codegen.store.targets import MACHINES, MAX_STEPS, Compiled, Machine, compiled_for
from ..documents.export_texts import c_example, c_header, wasm_example, wasm_loader
from ..documents.languages.table import text_in
from ..documents.sequence.names import identifier
from ..errors import EmitError, InputError, one_of, shown
from ..io.files import write_whole
from ..io.packages import VERSION
from ..mechanics.configuration import neutral
from ..model.description import Model
from ..model.draft import model_of
from ..model.dynamics import Described
from ..model.quantities import LinkOptions
from .pages.derivation import Derivation
from .recipe import Recipe

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True, slots=True)
class Exported:
    """Files written, and what a call costs: bytes of code with its constants, instructions, cycles; 0: unknown.

    link: how the files are used.
    """

    name: str
    target: str
    dtype: str
    files: tuple[Path, ...]
    size: int
    instructions: int
    cycles: int
    link: str

    def __str__(self) -> str:
        told = [f"{self.name} for {self.target}, {self.dtype}"]
        if self.size:
            told[0] += f": {self.size} bytes of code and constants"
        if self.instructions:
            told.append(f"{self.instructions} instructions a call")
        if self.cycles:
            told.append(f"{self.cycles} cycles without stalls")
        files = ", ".join(str(f) for f in self.files)
        return f"{', '.join(told)}\n{files}\n{self.link}"


def export_quantity(
    robot: Described | Model,
    quantity: str | Sequence[str],
    target: str,
    *,
    dtype: str = "float64",
    folder: str | Path = ".",
    name: str = "",
    parameters: str | Sequence[str] = (),
    formalism: str = "auto",
    f_ext: str | Sequence[str] = (),
    passive: bool = False,
    product: str | Sequence[str] = (),
    **options: Unpack[LinkOptions],
) -> Exported:
    """A quantity for another processor: see `drevo.export`. The options are those of `compile`."""
    model = model_of(robot, "export")
    _machine(target)
    recipe = Recipe.of(
        model, quantity, parameters=parameters, formalism=formalism, external=f_ext, passive=passive,
        product=product, options=options,
    )  # fmt: skip
    called = _name(name) or "_".join([model.name, *recipe.quantity])
    last = recipe.takes_parameters
    return export_program(
        recipe.program(model), target, called, model, dtype=dtype, folder=folder, parameters=last
    )


def export_c(derivation: Derivation, name: str, folder: str | Path = ".", function: str = "") -> Exported:
    """One C file of equations that are written out; function: its name, by default that of the derivation."""
    called, sequence = identifier(_name(name)).lower(), derivation.sequence
    if function:
        sequence = sequence._replace(identifiers={**sequence.identifiers, sequence.function: called})
    file = write_whole("export", _folder(folder) / f"{called}.c", text_in("c", sequence, derivation.about))
    counts = f"{derivation.program.name}, at every call {derivation.about.totals}"
    return Exported(called, "c", "float64", (file,), 0, 0, 0, counts)


def _machine(target: str) -> Machine:
    known = ("c", "fmu", "simulink", *MACHINES)  # the first three are taken care of before
    return MACHINES[one_of("export: target", target, known, EmitError)]


def export_program(
    program: Program,
    target: str,
    name: str,
    model: Model | None = None,
    *,
    dtype: str = "float64",
    folder: str | Path = ".",
    parameters: bool = False,
) -> Exported:
    """Exports a program for another processor. model: its robot, if any; parameters: are they an argument?"""
    machine, place = _machine(target), _folder(folder)
    scalar = DTYPES[one_of("export: dtype", dtype, DTYPES, InputError)]
    called = identifier(_name(name)).lower()
    low = lower(program, parameters=parameters, fma=machine.fused)
    if len(low.steps) > MAX_STEPS:
        raise EmitError(
            f"export: {program.name} has {len(low.steps)} steps, more than the {MAX_STEPS} of one function; "
            "export the quantities that it is made of"
        )
    made = compiled_for(machine, low, scalar, machine.fused, called)
    state = [_state(model, p.name, p.size, dict(p=[x.value for x in program.parameters])) for p in low.inputs]
    whose = str(program.meta.get("robot", "a program"))
    texts = _texts(called, target, low, scalar, state, _about(whose, program.name, target, scalar, made))
    contents: dict[str, bytes | str] = {f"{called}{machine.ending}": made.data, **texts}
    files = tuple(write_whole("export", place / name, content) for name, content in contents.items())
    link = machine.link.format(object=f"{called}{machine.ending}")
    return Exported(called, target, dtype, files, made.size, made.instructions, made.cycles, link)


def _name(given: object) -> str:
    if not isinstance(given, str):
        raise InputError(f"export: name must be text, not {shown(given)}")
    return given


def _folder(given: str | Path) -> Path:
    try:
        place = Path(given)
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"export: {str(given)!r} is no folder to write to: {error}") from None
    return place


def _state(model: Model | None, name: str, size: int, known: dict[str, list[float]]) -> list[float]:
    """The values of one input in the example that goes with an export."""
    if name == "q" and model is not None and model.nq == size:
        return [float(x) for x in neutral(model)]
    return known["p"] if name == "parameters" else [0.1] * size


def _about(robot: str, quantity: str, target: str, scalar: str, made: Compiled) -> list[str]:
    fused = MACHINES[target].fused
    told = [f"{quantity} of {robot}, for {target}; drevo {VERSION}"]
    if made.instructions:
        told.append(f"{made.size} bytes of code and constants, {made.instructions} instructions a call")
    if made.cycles:
        told.append(f"{made.cycles} cycles without stalls, from the table of the processor's manual")
    return [*told, f"SI units; angles up to {largest_angle(scalar, fused):.3g} rad, beyond it NaN"]


def _texts(
    name: str, target: str, low: Lowered, scalar: str, state: Sequence[Sequence[float]], about: Sequence[str]
) -> dict[str, str]:
    """The text files that go with the object, by name: a header or loader, and an example; none for PTX."""
    machine = MACHINES[target]
    if target == "ptx":
        return {}
    if target == "wasm":
        lanes = machine.wide // (8 if scalar == "double" else 4)
        return {f"{name}.mjs": wasm_loader(name, low, scalar, lanes), "main.mjs": wasm_example(name, low, state)}
    count = "int32_t" if machine.integer == "i32" else "int64_t"
    return {f"{name}.h": c_header(name, low, scalar, count, about), "main.c": c_example(name, low, scalar, state)}
