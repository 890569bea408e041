"""Functions for other processors: linked with C, run in emulators and in node, compared bit by bit."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tolerances as tol
from reference import largest

import drevo
from drevo.codegen.store import native
from drevo.errors import EmitError, InputError

Array = np.ndarray
STATES = 20
FOLDER = Path(__file__).parent / "targets"
BARE = (
    "-nostdlib -DSTACK=0x20040000 -Wl,--section-start=.vectors=0 -Wl,-Ttext=0x400 -Wl,-Tbss=0x20000000 "
    "-Wl,-Tdata=0x20010000 -Wl,-e,vectors -Wl,--build-id=none"
)
RUN = {
    "aarch64": ("aarch64-linux-gnu-gcc -static", "qemu-aarch64-static ./run"),
    "riscv64": ("riscv64-linux-gnu-gcc -static", "qemu-riscv64-static ./run"),
    "cortex-m4f": (
        f"arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 {BARE}",
        "qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel run",
    ),
    "cortex-m7": (
        f"arm-none-eabi-gcc -mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-d16 {BARE}",
        "qemu-system-arm -M mps2-an500 -nographic -semihosting -kernel run",
    ),
    "windows": ("x86_64-w64-mingw32-gcc", "wine ./run.exe"),
}
PROGRAMS = [
    pytest.param(t, d, marks=pytest.mark.needs(line.split()[0], run.split()[0]))
    for t, (line, run) in RUN.items()
    for d in ("float32", "float64")
]


def states(robot: drevo.Robot, f: drevo.Function, dtype: str) -> list[Array]:
    """Arguments that a float32 holds."""
    rng = np.random.default_rng(0)
    x = [robot.random(rng, STATES) if n == "q" else rng.uniform(-1, 1, (STATES, *s)) for n, s in f.inputs]
    return [a.astype(np.float32).astype(dtype) for a in x]


def emulated(folder: Path, target: str, made: Any, inputs: list[Array], size: int) -> Array:
    """The results of the object under qemu."""
    line, run = RUN[target]
    wide, scalar = made.dtype == "float64", "double" if made.dtype == "float64" else "float"
    data = [f'#include "{made.name}.h"', f"#define N {STATES}", f"#define OUT {size}", f"typedef {scalar} REAL;"]
    data += [f"typedef unsigned {'long long' if wide else 'int'} WORD;"]
    for k, a in enumerate(inputs):
        numbers = ", ".join(float(x).hex() for x in a.ravel())
        data += [f"static const REAL in{k}[] = {{{numbers}}};"]
    given = ", ".join(f"in{k} + {a.shape[1]} * i" for k, a in enumerate(inputs))
    data += [f"#define CALL {made.name}({given}, out)", ""]
    (folder / "data.h").write_text("\n".join(data))
    bare = target.startswith("cortex")
    shutil.copy(FOLDER / ("bare.c" if bare else "driver.c"), folder / "driver.c")
    built = [*line.split(), "-O2", "-o", "run", "driver.c", made.files[0].name, *(["-lgcc"] if bare else [])]
    subprocess.run(built, cwd=folder, check=True, capture_output=True)
    got = subprocess.run(run.split(), cwd=folder, capture_output=True, text=True, timeout=100)
    words = [int(w, 16) for w in (got.stdout or got.stderr).split()]  # semihosting writes to the second
    return np.array(words, np.uint64 if wide else np.uint32).view(made.dtype).reshape(STATES, size)


@pytest.mark.parametrize("target, dtype", PROGRAMS)
def test_objects_run_on_emulated_processors(target: str, dtype: str, tmp_path: Path) -> None:
    """All bits of this machine where both fuse products and sums, else to rounding; float32 to 2e-6."""
    robot = drevo.load("puma560")
    made = drevo.export(robot, "inverse_dynamics", target, dtype=dtype, folder=tmp_path)
    f = drevo.compile(robot, "inverse_dynamics", dtype=dtype)
    x = states(robot, f, dtype)
    wanted, found = f(*x), emulated(tmp_path, target, made, x, robot.nv)
    if target != "cortex-m4f" and native.host().fma:
        assert np.array_equal(found, wanted)
    assert largest(found - wanted) <= (2e-6 if dtype == "float32" else tol.SAME) * largest(wanted)
    if dtype == "float32":
        assert made.size < 12_000 and made.instructions < 2_000


@pytest.mark.needs("node")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_webassembly_in_node(dtype: str, tmp_path: Path) -> None:
    """One sample, rows and columns of a batch give the same bits, and they are Drevo's to rounding."""
    robot = drevo.load("puma560")
    made = drevo.export(robot, "mass_matrix", "wasm", dtype=dtype, folder=tmp_path, name="m")
    f = drevo.compile(robot, "mass_matrix", dtype=dtype)
    (q,) = states(robot, f, dtype)
    (tmp_path / "try.mjs").write_text(f"""
import {{readFile}} from 'node:fs/promises';
import {{load}} from './m.mjs';
const q = {json.dumps(q.tolist())}, bytes = await readFile(new URL('./m.wasm', import.meta.url));
const m = await load(bytes, {STATES}), c = await load(bytes, {STATES - 1}), one = [];
for (const x of q) {{ m.inputs[0].set(x); m.run(); one.push(Array.from(m.outputs[0].slice(0, 36))); }}
m.inputs[0].set(q.flat());
m.batch({STATES});
q.slice(0, {STATES - 1}).forEach((x, i) => x.forEach((y, k) => {{ c.inputs[0][k * c.rows + i] = y; }}));
c.columns({STATES - 1});
const columns = q.slice(1).map((_, i) => Array.from({{length: 36}}, (_, k) => c.outputs[0][k * c.rows + i]));
console.log(JSON.stringify([one, Array.from(m.outputs[0].slice(0, 36 * {STATES})), columns]));
""")
    got = subprocess.run(["node", "try.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    one, rows, columns = (np.array(x) for x in json.loads(got.stdout))
    assert np.array_equal(rows.reshape(one.shape), one) and np.array_equal(columns, one[:-1])
    wanted = f(q).reshape(STATES, 36)
    assert largest(one - wanted) <= (2e-6 if dtype == "float32" else tol.SAME) * largest(wanted)
    subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, check=True)
    assert made.files[0].stat().st_size == made.size < 20_000


@pytest.mark.needs("gcc")
def test_the_example_is_c_that_compiles(tmp_path: Path) -> None:
    """Header and example of an object that another system links: with every warning an error."""
    drevo.export(
        drevo.load("scara"), "pose", "windows", folder=tmp_path, link="link3", name="tool", parameters="*"
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c"]
    subprocess.run(["gcc", *flags, "main.c"], cwd=tmp_path, check=True)
    assert (tmp_path / "tool.obj").read_bytes()[:2] == b"\x64\x86"  # COFF, x86-64
    drevo.export(drevo.load("scara"), "bias", "macos", folder=tmp_path)
    assert (tmp_path / "scara_bias.o").read_bytes()[:8] == b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01"  # Mach-O, arm64


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ptx_names_its_arguments(dtype: str, tmp_path: Path) -> None:
    made = drevo.export(drevo.load("puma560"), "forward_dynamics", "ptx", dtype=dtype, folder=tmp_path, name="fd")
    text = made.files[0].read_text()
    assert re.search(r"\.visible \.entry fd\(", text) and text.count(".param .u64") == 5
    assert "call" not in text and (".f32" if dtype == "float32" else ".f64") in text


def test_the_same_file_whatever_was_compiled_before(tmp_path: Path) -> None:
    robot = drevo.load("scara")
    first = drevo.export(robot, "bias", "aarch64", folder=tmp_path / "a").files[0].read_bytes()
    drevo.compile(robot, "gravity", cache=False)
    assert drevo.export(robot, "bias", "aarch64", folder=tmp_path / "b").files[0].read_bytes() == first


def test_refusals(tmp_path: Path) -> None:
    robot = drevo.load("scara")
    with pytest.raises(EmitError, match=r"export: target.*did you mean 'cortex-m4f'\?"):
        drevo.export(robot, "bias", "cortex-m4", folder=tmp_path)
    with pytest.raises(InputError, match="export: dtype"):
        drevo.export(robot, "bias", "wasm", dtype="float16", folder=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is no folder to write to"):
        drevo.export(robot, "bias", "wasm", folder=tmp_path / "file")


@pytest.mark.needs("ptxas")
@pytest.mark.parametrize("dtype, most", [("float32", 96), ("float64", 168)])
def test_ptx_is_what_the_assembler_takes(dtype: str, most: int, tmp_path: Path) -> None:
    """Registers of a Hopper, and nothing spilled: 255 are all there are."""
    made = drevo.export(drevo.load("puma560"), "inverse_dynamics", "ptx", dtype=dtype, folder=tmp_path)
    words = ["ptxas", "-v", "-arch=sm_90", str(made.files[0]), "-o", str(tmp_path / "cubin")]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores" in told
    assert int(re.search(r"Used (\d+) registers", told)[1]) <= most  # type: ignore[index]


@pytest.mark.needs("g++", "casadi")
def test_a_plugin_of_ros2_fills_its_interface(tmp_path: Path) -> None:
    """Compiled against the interface's functions, with the headers of Eigen that come with CasADi."""
    import casadi

    from drevo.ros2 import ros2_package

    robot = drevo.load("puma560")
    files = ros2_package(robot, tmp_path)
    assert [f.name for f in files] == ["package.xml", "CMakeLists.txt", "plugin.xml", "plugin.cpp", "README.md"]
    eigen = Path(casadi.__file__).parent / "include" / "eigen3"
    flags = [
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        f"-DJOINTS={robot.nv}",
        "-I",
        str(FOLDER / "ros2"),
        "-isystem",
        str(eigen),
    ]
    words = ["g++", *flags, str(files[3]), str(FOLDER / "ros2/main.cpp"), "-o", str(tmp_path / "run")]
    built = subprocess.run(words, capture_output=True, text=True)
    assert built.returncode == 0 and "warning" not in built.stderr, built.stderr[:2000]
    told = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True).stdout.split()
    i = np.arange(robot.nv)
    q, v, a, w = 0.1 * (i + 1), 0.2 - 0.3 * i, 1.0 + i, 1.0 - 0.5 * np.arange(6)
    M, g = robot.mass_matrix(q), robot.gravity(q)
    pushed = robot.jacobian(q, robot.link_names[-1]).T @ w
    rubbed = robot.damping * v + robot.friction * np.sign(v)
    wanted = [M.ravel(), robot.bias(q, v) - g, g, rubbed, pushed, robot.inverse_dynamics(q, v, a) + pushed]
    assert largest(np.array(told, float) - np.concatenate(wanted)) <= tol.SAME * largest(np.concatenate(wanted))
    with pytest.raises(InputError, match="one number for each joint"):
        ros2_package(drevo.load("biped", base="floating"), tmp_path)
