"""Other processors: what the back ends of LLVM, all of them in llvmlite, make of a program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from ...errors import EmitError
from ..llvm.module import portable_text, ptx_text
from ..llvm.ports import Target
from ..lower.lower import Lowered
from . import native
from .image import loaded_size, wasm_module, with_any_floats
from .memo import LOCK
from .processor import require_instructions

MAX_STEPS = 60_000  # steps in one function: register allocation takes a minute
_LINKED = MappingProxyType({"reloc": "pic", "codemodel": "small"})
# cycles of the Cortex-M4, from its technical reference manual; without stalls. Others: 1
_M4 = {"vfma": 3, "vfms": 3, "vfnma": 3, "vfnms": 3, "vldr": 2, "vstr": 2, "vdiv": 14, "vsqrt": 14}


class Machine(NamedTuple):
    """A processor as LLVM names it. fused: multiply-adds pay there. integer: the type of numbers of samples.

    wide: bytes of a vector, for many samples at once; 0: none. cycles: of instructions by their names; None:
    unknown. link: how an object is linked with the example.
    """

    triple: str
    cpu: str = ""
    features: str = ""
    fused: bool = True
    integer: str = "i64"
    wide: int = 0
    ending: str = ".o"
    options: Mapping[str, Any] = _LINKED
    cycles: Mapping[str, int] | None = None
    link: str = "cc -O2 main.c {object} -o main"


_THUMB = "thumbv7em-none-eabihf"
_ARM_LINK_COMMAND = "arm-none-eabi-gcc -O2 {} main.c {{object}} -o main.elf --specs=rdimon.specs"
MACHINES = {
    "cortex-m4f": Machine(
        _THUMB, "cortex-m4", fused=False, integer="i32", options={}, cycles=_M4,
        link=_ARM_LINK_COMMAND.format("-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    ),
    "cortex-m7": Machine(
        _THUMB, "cortex-m7", integer="i32", options={},
        link=_ARM_LINK_COMMAND.format("-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-d16"),
    ),
    "aarch64": Machine("aarch64-unknown-linux-gnu", link="aarch64-linux-gnu-gcc -O2 main.c {object} -o main"),
    "riscv64": Machine(
        "riscv64-unknown-linux-gnu", features="+m,+a,+f,+d,+c",
        link="riscv64-linux-gnu-gcc -O2 main.c {object} -o main",
    ),
    "wasm": Machine(
        "wasm32-unknown-unknown", features="+simd128", fused=False, integer="i32", wide=16, ending=".wasm",
        options={}, link="node main.mjs",
    ),
    "windows": Machine(
        "x86_64-pc-windows-msvc", "x86-64-v3", ending=".obj", link="cl /O2 main.c {object}",
        options={"codemodel": "small"},
    ),
    "macos": Machine("arm64-apple-macosx11.0", "apple-m1", link="clang -O2 main.c {object} -o main"),
    "ptx": Machine("nvptx64-nvidia-cuda", "sm_70", "+ptx70", ending=".ptx", options={}, link="cuModuleLoadData"),
}  # fmt: skip


class Compiled(NamedTuple):
    """A file for another processor. size: bytes of code and constants; instructions, cycles: of one call of the
    function of one sample, which has no branch but for large angles; 0: not known."""

    data: bytes
    size: int
    instructions: int
    cycles: int


def compiled_for(
    machine: Machine,
    low: Lowered,
    scalar: str,
    fused: bool,
    name: str,
    alone: bool = False,
    effort: int = 2,
    rows: bool = False,
) -> Compiled:
    """The lowered program as a file of that machine. alone: the function of one sample, without those of many.

    effort: of LLVM's back end, 0 to 2. rows: of PTX, arrays (n, size) in place of (size, n).
    """
    lanes = 1 if alone else max(1, machine.wide // (8 if scalar == "double" else 4))
    target = Target(scalar, lanes, fused, splat=True, check=False, prefetch=False)
    if machine.ending == ".ptx":
        text = ptx_text(low, target, name, rows)
    else:
        text = portable_text(low, target, name, machine.integer, alone)
    with LOCK:
        native.keep_order()
        listing, obj = _built(machine, text, effort)
    if machine.ending == ".ptx":
        return Compiled(listing.encode(), len(listing), 0, 0)
    found = _instructions(listing, name)
    known = machine.cycles if "bl" not in found else None  # a library's functions have branches
    cycles = sum(known.get(x, 1) for x in found) if known else 0
    if machine.ending == ".wasm":
        names = [name, *([] if alone else [f"{name}_batch"]), *([f"{name}_columns"] if lanes > 1 else [])]
        obj = wasm_module(obj, names)
        return Compiled(obj, len(obj), 0, 0)
    return Compiled(with_any_floats(obj), loaded_size(obj), len(found), cycles)


def _built(machine: Machine, text: str, effort: int) -> tuple[str, bytes]:
    """Assembly and object code; calls inlined, variables in registers, nothing else: the graph is folded."""
    import llvmlite.binding as llvm

    try:
        made, run = _backend(machine.triple, machine.cpu, machine.features, effort, tuple(machine.options.items()))
        module = llvm.parse_assembly(f'target triple = "{machine.triple}"\n{text}')
        module.verify()
        require_instructions(module, machine.triple, machine.features)
        run(module)
        wanted = machine.ending != ".wasm"  # of which nobody counts instructions
        listing = str(made.emit_assembly(module)) if wanted else ""
        return listing, b"" if machine.ending == ".ptx" else bytes(made.emit_object(module))
    except RuntimeError as error:
        raise EmitError(f"LLVM refused the code for {machine.triple}: {error}") from error


@lru_cache
def _backend(triple: str, cpu: str, features: str, effort: int, options: Any) -> tuple[Any, Callable[[Any], None]]:
    """LLVM's machine for a processor, and what inlines calls."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    made = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=effort, **dict(options)
    )
    return made, native.inliner(made)


def _instructions(listing: str, name: str) -> list[str]:
    """Names of the instructions of a function, in an assembly listing."""
    body = re.search(rf"^_?{name}:(.*?)^\s*\.?(?:Lfunc_end|size|seh_endproc|cfi_endproc)", listing, re.S | re.M)
    lines = body[1].splitlines() if body else []
    return [m[1].split(".")[0] for x in lines if (m := re.match(r"\t([a-z][\w.]*)", x))]
