"""Registers, spills and code of every quantity as a kernel of a Hopper (sm_90): tests/data/gpu-budgets.json.

    python tools/gpu_budgets.py [ROBOT ...]
    python tools/gpu_budgets.py --texts [ROBOT ...]

Needs ptxas on the path, or pip install nvidia-cuda-nvcc-cu12, and example-robot-data; no GPU. Rows that are there
stay: delete what is to be made again. With --texts the kernels are printed beside the readable CUDA texts of the
same quantities, compiled by NVRTC (pip install cuda-bindings nvidia-cuda-nvrtc-cu12), and no table is written.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import find_spec
from itertools import accumulate, product
from pathlib import Path
from typing import Any, NamedTuple

import drevo
from drevo.codegen.gpu.cuda import ptx_of
from drevo.codegen.lower.steps import makers, operands
from drevo.codegen.store.build import Spec, lowered_as
from drevo.compiler.pages.derivation import write_out_program
from drevo.compiler.recipe import Recipe
from drevo.errors import DrevoError
from drevo.model.quantities import CATALOGUE

TABLE = Path(__file__).parent.parent / "tests" / "data" / "gpu-budgets.json"
ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "go2": ("go2_description/urdf/go2.urdf", "floating"),
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "floating"),
}
DTYPES = ("float32", "float64")
VJP = "inverse_dynamics vjp"
QUANTITIES = [*CATALOGUE, VJP]
SECONDS = 600  # of the assembler; on a quiet machine the largest kernels take it one minute
ARCHITECTURE = "sm_90"


class Cost(NamedTuple):
    """Of a kernel: registers of a thread, bytes it spills (stores), bytes of code."""

    registers: int
    spilled: int
    code: int


def assembler() -> str | None:
    """ptxas: on the path, or of a package."""
    found = find_spec("nvidia") and find_spec("nvidia.cuda_nvcc")
    places = [Path(p) / "bin" for p in found.submodule_search_locations or ()] if found else []
    return shutil.which("ptxas") or next((w for p in places if (w := shutil.which("ptxas", path=p))), None)


def loaded(robot: str, folder: str | None = None) -> drevo.Robot:
    """folder: of the robots; None: that of the installed package."""
    name, base = ROBOTS[robot]
    if folder is None:
        folder = str(
            distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
        )
    return drevo.load(Path(folder) / name, base=base)


def program(robot: drevo.Robot, name: str) -> Any:
    quantity, *products = name.split()
    takes = CATALOGUE[quantity].options
    options = {"link": robot.moving_links[-1]} if "link" in takes else {}
    return Recipe.of(robot.model, quantity, product=products, options=options).program(robot.model)


REGISTERS = 255  # of a thread, of 32 bits


def most_alive(made: Any, spec: Spec) -> int:
    """The most values that are alive between two steps: inputs from their first use, constants never."""
    low = lowered_as(made, spec, True)
    first, last, alive = makers(low.steps), dict[int, int](), [0] * (len(low.steps) + 1)
    for k, step in enumerate(low.steps):
        for v in (e >> 1 for e in operands(step)):
            if v in first or v in low.where:
                first.setdefault(v, k)
                last[v] = k
    for v, k in last.items():
        alive[first[v]] += 1
        alive[k] -= 1
    return max(accumulate(alive))


def level_of(alive: int, dtype: str) -> int:
    """Chooses the optimisation level of the assembler: low where the registers do not hold the live values.

    There its scheduler, which knows nothing of our order, makes it spill up to four times as much, in up to twenty
    times as long.
    """
    return 3 if alive * (2 if dtype == "float64" else 1) <= REGISTERS else 1


def cost(made: Any, dtype: str, ptxas: str) -> Cost:
    """What the assembler says of a program's kernel, batch-last."""
    spec = Spec(dtype=dtype, layout="batch_last")
    _, text = ptx_of(made, spec)
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        source.write_bytes(text)
        words = [ptxas, "-v", f"-O{level_of(most_alive(made, spec), dtype)}", f"-arch={ARCHITECTURE}"]
        words += [str(source), "-o", str(binary)]
        told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS).stderr
        return _told(told, binary.read_bytes())


def text_cost(made: Any, dtype: str) -> Cost:
    """The same of a program's readable text, compiled by NVRTC."""
    from cuda.bindings import nvrtc

    def called(what: str, *given: Any) -> Any:
        failed, *found = getattr(nvrtc, what)(*given)
        if failed.value:
            raise RuntimeError(f"{what}: {failed.name}\n{log() if what == 'nvrtcCompileProgram' else ''}")
        return found[0] if found else None

    def log() -> str:
        room = b" " * called("nvrtcGetProgramLogSize", source)
        called("nvrtcGetProgramLog", source, room)
        return room.decode()

    text = write_out_program(made).cuda(dtype)
    kernels = text.split('extern "C" __global__')
    source = called("nvrtcCreateProgram", 'extern "C" __global__'.join(kernels[::2]).encode(), b"k.cu", 0, [], [])
    options = [f"--gpu-architecture={ARCHITECTURE}".encode(), b"--ptxas-options=-v"]
    called("nvrtcCompileProgram", source, len(options), options)
    binary = b" " * called("nvrtcGetCUBINSize", source)
    called("nvrtcGetCUBIN", source, binary)
    return _told(log(), binary)


def _told(log: str, binary: bytes) -> Cost:
    """What the assembler said of one kernel, and its code."""
    registers, spilled = re.search(r"Used (\d+) registers", log), re.search(r"(\d+) bytes spill stores", log)
    assert registers and spilled, log
    code = sum(size for name, size in _sections(binary) if name.startswith(".text."))
    return Cost(int(registers[1]), int(spilled[1]), code)


def _sections(elf: bytes) -> Iterator[tuple[str, int]]:
    """Names and sizes, of a file of 64 bits."""
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<3H", elf, 0x3A)
    heads = [struct.unpack_from("<II4Q", elf, start + k * size) for k in range(count)]
    for head in heads:
        at = heads[names][4] + head[0]
        yield elf[at : elf.index(b"\0", at)].decode(), head[5]


def refused(error: Exception) -> str:
    return f"the assembler takes more than {SECONDS} s" if not isinstance(error, DrevoError) else str(error)


def main(robots: list[str]) -> None:
    ptxas = assembler()
    if ptxas is None:
        sys.exit("ptxas is not there: pip install nvidia-cuda-nvcc-cu12")
    if robots[:1] == ["--texts"]:
        beside_texts(robots[1:] or ["panda"], ptxas)
        return
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name in robots or ROBOTS:
        robot, rows = loaded(name), table.setdefault(name, {})
        for quantity in QUANTITIES:
            if quantity in rows:
                continue
            row: dict[str, Any] = {}
            try:
                made = program(robot, quantity)
                for dtype in DTYPES:
                    row[dtype] = cost(made, dtype, ptxas)
            except (DrevoError, subprocess.TimeoutExpired) as error:
                row["refused"] = refused(error)
            rows[quantity] = row
            print(name, quantity, row, flush=True)
            TABLE.write_text(_text(table))


def beside_texts(robots: list[str], ptxas: str) -> None:
    """Registers, spills and bytes of code: of the kernel, of the text."""
    for name, quantity in product(robots, (*CATALOGUE, VJP)):
        try:
            made = program(loaded(name), quantity)
            for dtype in DTYPES:
                print(name, quantity, dtype, *cost(made, dtype, ptxas), "|", *text_cost(made, dtype), flush=True)
        except DrevoError as error:
            print(name, quantity, refused(error))


def _text(table: dict[str, Any]) -> str:
    """One line a quantity."""
    robots = []
    for name, rows in table.items():
        lines = ",\n".join(f"  {json.dumps(quantity)}: {json.dumps(row)}" for quantity, row in rows.items())
        robots.append(f"{json.dumps(name)}: {{\n{lines}\n}}")
    return "{\n" + ",\n".join(robots) + "\n}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
