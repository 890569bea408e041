"""Functions on a GPU: kernels within budgets, and the way to their launch, by a driver that stands in."""

from __future__ import annotations

import ctypes
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import needed
import numpy as np
import pytest
from test_emit import SHIM, compiled, pointers

import drevo
from drevo.codegen.gpu import driver as drivers
from drevo.codegen.gpu.cuda import THREADS
from drevo.codegen.gpu.device_arrays import DeviceArray, to_device
from drevo.codegen.llvm.module import ptx_text
from drevo.codegen.llvm.ports import Target
from drevo.codegen.store import native
from drevo.codegen.store.build import DTYPES, lowered_as
from drevo.compiler.pages.derivation import write_out_program
from drevo.errors import EmitError, InputError

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import gpu
import gpu_budgets

Array = np.ndarray[Any, Any]
ROBOT = drevo.load("scara")
ANSWER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint, ctypes.c_uint, ctypes.c_uint64
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = Path(__file__).parent / "targets" / "libcuda.c"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(path), str(source)], check=True)
    return path


class Machine:
    """The driver that stands in, with a kernel that is a Function of this processor."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.calls.restype = library.compiled.restype = ctypes.c_char_p

    def computes(self, f: drevo.Function) -> None:
        """Pointers to arrays and to n in the order of the kernel, each in its own cell."""
        sizes = [int(np.prod(s)) for _, s in (*f.inputs, *f.outputs)]
        scalar = ctypes.c_double if f.dtype == np.float64 else ctypes.c_float

        def answer(cells: Any, blocks: int, threads: int, stream: int) -> int:
            *places, n = (ctypes.c_uint64.from_address(cells[k]).value for k in range(len(sizes) + 1))
            assert (blocks - 1) * threads < n <= blocks * threads
            flat = [np.ctypeslib.as_array((scalar * (n * k)).from_address(p)) for k, p in zip(sizes, places)]
            rows = f.layout == "rows"
            shaped = [x.reshape((n, k) if rows else (k, n)) for x, k in zip(flat, sizes)]
            found = f(*shaped[: len(f.inputs)])
            for x, y in zip(shaped[len(f.inputs) :], found if len(f.outputs) > 1 else (found,)):
                x[...] = y.reshape(x.shape)
            return 0

        self._kept = ANSWER(answer)
        self.library.answers(self._kept)

    def refuse(self, name: str, code: int) -> None:
        self.library.refuse(name.encode(), code)

    def calls(self) -> list[str]:
        """What was called since the last time."""
        found = self.library.calls().decode().splitlines()
        self.library.forget()
        return found


@pytest.fixture
def machine(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.setattr(drivers, "CUDA_LIBRARIES", (str(library),))
    drivers.driver.cache_clear()
    found = Machine(ctypes.CDLL(str(library)))
    found.library.have(1)
    found.library.lies(0)
    found.refuse("", 0)
    found.calls()
    yield found
    drivers.driver.cache_clear()


class Lent:
    """An array of another library on the device of that driver: by DLPack or by the other protocol."""

    def __init__(self, x: Array, way: str, **more: Any) -> None:
        self.x, self.asked = x, list[Any]()
        if way == "dlpack":
            self.__dlpack__ = self._dlpack  # type: ignore[misc]
        else:
            address = x.__array_interface__["data"][0]
            self.__cuda_array_interface__ = {
                "shape": x.shape, "typestr": x.dtype.str, "data": (address, not x.flags.writeable),
                "strides": x.strides, "version": 3, "stream": None, **more,
            }  # fmt: skip

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def _dlpack(self, *, stream: int, max_version: Any) -> Any:
        self.asked.append(stream)
        return self.x.__dlpack__(max_version=max_version)


def made(machine: Machine, quantity: str = "inverse_dynamics", **options: Any) -> tuple[Any, drevo.Function]:
    """On the device, and the same on the processor."""
    f = drevo.compile(ROBOT, quantity, target="cuda", **options)
    same = drevo.compile(ROBOT, quantity, **options)
    machine.computes(same)
    return f, same


def states(f: Any, lead: tuple[int, ...]) -> list[Array]:
    rng, rows = np.random.default_rng(0), f.layout == "rows"
    return [rng.uniform(-1, 1, (*lead, *s) if rows else (*s, *lead)).astype(f.dtype) for _, s in f.inputs]


pytestmark = pytest.mark.needs("gcc")
LONG = pytest.mark.nightly


@pytest.mark.parametrize("way", ["dlpack", "interface"])
@pytest.mark.parametrize("layout, dtype", [("rows", "float64"), ("batch_last", "float32")])
def test_a_call(machine: Machine, way: str, layout: str, dtype: str) -> None:
    """One launch on the caller's stream, of as many blocks as are needed, and nothing that waits."""
    f, same = made(machine, layout=layout, dtype=dtype)
    for n in (1, THREADS, THREADS + 1):
        given = [Lent(x, way) for x in states(f, (n,))]
        out = Lent(np.zeros((n, 4) if layout == "rows" else (4, n), dtype), way)
        machine.calls()
        assert f(*given, out=out, stream=SimpleNamespace(cuda_stream=77)) is out
        assert np.array_equal(out.x, same(*(x.x for x in given)))
        names = [c.split()[0] for c in machine.calls() if not c.startswith("cuPointer")]
        assert names == ["cuCtxPushCurrent_v2", "cuLaunchKernel", "cuCtxPopCurrent_v2"]
        assert way != "dlpack" or all(x.asked == [77] for x in (*given, out))


def test_what_is_launched(machine: Machine) -> None:
    """The stream and the blocks; the text is for the driver; registers are told."""
    f, _ = made(machine, cache=False)
    assert b".entry kernel(" in machine.library.compiled() and f.kernel(0).registers == 64
    x = [Lent(a, "dlpack") for a in states(f, (3, 100))]
    machine.calls()
    found = f(*x, stream=55)
    assert isinstance(found, DeviceArray) and found.shape == (3, 100, 4)
    assert f"cuLaunchKernel 55 {-(-300 // THREADS)}" in machine.calls()
    f(*(Lent(a, "dlpack") for a in states(f, ())))
    assert f"cuLaunchKernel {drivers.LEGACY} 1" in machine.calls()
    assert f(*(Lent(a, "dlpack") for a in states(f, (0,)))).shape == (0, 4)
    assert not [c for c in machine.calls() if "Launch" in c or "Synchronize" in c]


def test_another_stream_is_waited_for_on_the_device(machine: Machine) -> None:
    f, _ = made(machine, "gravity")
    (q,) = states(f, (5,))
    machine.calls()
    f(Lent(q, "interface", stream=99), stream=55)
    said = machine.calls()
    assert (
        said.index("cuEventRecord 3 99") < said.index("cuStreamWaitEvent 55 3") < said.index("cuLaunchKernel 55 1")
    )
    f(Lent(q, "interface", stream=55), stream=55)
    assert not [c for c in machine.calls() if "Event" in c]


def test_the_second_device_has_a_kernel_and_a_context_of_its_own(machine: Machine) -> None:
    """Arrays that lie there are computed there; those that lie on two devices are refused."""
    machine.library.have(2)
    f, same = made(machine, "bias")
    q, v = states(f, (3,))
    machine.library.lies(1)
    machine.calls()
    found = f(Lent(q, "interface"), Lent(v, "interface"))
    assert np.array_equal(found.to_host(), same(q, v)) and found.device == 1
    said = machine.calls()
    assert "cuModuleLoadDataEx 0 0" in said and f"cuLaunchKernel {drivers.LEGACY} 1" in said
    assert {c for c in said if "PushCurrent" in c} == {"cuCtxPushCurrent_v2 1071 0"}
    with pytest.raises(InputError, match="the devices do not agree: q 0, v 1"):
        f(Lent(q, "dlpack"), Lent(v, "interface"))


def test_arrays_of_our_own(machine: Machine) -> None:
    """There and back, by DLPack to others, and given back once nobody has them."""
    f, same = made(machine, "terms") if "terms" in drevo.model.quantities.CATALOGUE else made(machine)
    x = states(f, (6,))
    here = [to_device(a) for a in x]
    found = f(*here)
    found, wanted = (found, same(*x)) if isinstance(found, tuple) else ((found,), (same(*x),))
    for a, b in zip(found, wanted):
        assert np.array_equal(a.to_host(), b)
    before = machine.library.given_back()
    lent = here[0].__dlpack__(stream=55)
    assert "cuStreamWaitEvent 55 3" in machine.calls()
    del here
    assert machine.library.given_back() == before + len(x) - 1
    del lent
    assert machine.library.given_back() == before + len(x)


def test_the_cache_has_the_machine_code(machine: Machine) -> None:
    f, _ = made(machine)
    machine.calls()
    again = pickle.loads(pickle.dumps(f))  # noqa: S301
    assert not [c for c in machine.calls() if "Link" in c] and repr(again) == repr(f)
    drevo.compile(ROBOT, "inverse_dynamics", target="cuda", cache=False)
    assert [c for c in machine.calls() if "LinkComplete" in c]


def test_errors_have_their_names(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    f, _ = made(machine)
    x = [Lent(a, "dlpack") for a in states(f, (2,))]
    machine.refuse("cuLaunchKernel", 719)
    with pytest.raises(EmitError, match="cuLaunchKernel failed: CUDA_ERROR_LAUNCH_FAILED, unspecified launch"):
        f(*x)
    for call, code, said in (
        ("cuLinkAddData_v2", 222, "too old for PTX 7.0"),
        ("cuLinkComplete", 218, "does not compile the kernel: CUDA_ERROR_OTHER, other line 7: no"),
        ("cuModuleLoadDataEx", 209, "cuModuleLoadDataEx failed: CUDA_ERROR_OTHER"),
    ):
        machine.refuse(call, code)
        with pytest.raises(EmitError, match=said):
            drevo.compile(ROBOT, "gravity", target="cuda", cache=False)
    for call, code, said in (
        ("cuInit", 100, "the driver finds none"),
        ("cuInit", 803, "does not start: CUDA_ERROR"),
    ):
        drivers.driver.cache_clear()
        machine.refuse(call, code)
        with pytest.raises(EmitError, match=said):
            drevo.compile(ROBOT, "gravity", target="cuda")
    drivers.driver.cache_clear()
    machine.refuse("", 0)
    machine.library.have(0)
    with pytest.raises(EmitError, match="the driver finds none; target='cpu' runs everywhere"):
        drevo.compile(ROBOT, "gravity", target="cuda")
    monkeypatch.setattr(drivers, "CUDA_LIBRARIES", ("libno-such-driver.so",))
    with pytest.raises(EmitError, match="needs NVIDIA's driver, and this machine has none"):
        drevo.compile(ROBOT, "gravity", target="cuda")
    with pytest.raises(EmitError, match="compile: target"):
        drevo.compile(ROBOT, "gravity", target="cud")


def test_arguments_that_are_refused(machine: Machine) -> None:
    f, _ = made(machine)
    q, v, a = states(f, (3,))
    x = [Lent(y, "dlpack") for y in (q, v, a)]
    fixed = np.zeros((3, 4))
    fixed.flags.writeable = False
    for given, more, said in (
        ((q, x[1], x[2]), {}, "q must be an array on a GPU.*ndarray"),
        ((1.0, x[1], x[2]), {}, "q must be an array on a GPU.*float"),
        (
            (Lent(q.astype("f4"), "dlpack"), x[1], x[2]),
            {},
            "q holds float32; this function was compiled for float64",
        ),
        ((Lent(q.astype("i8"), "dlpack"), x[1], x[2]), {}, "q holds code 0 of 64 bits"),
        ((Lent(np.asfortranarray(q), "interface"), x[1], x[2]), {}, "q must be contiguous"),
        ((Lent(q[:, :3].copy(), "dlpack"), x[1], x[2]), {}, r"q has shape \(3, 3\)"),
        ((Lent(q[:2], "dlpack"), x[1], x[2]), {}, "leading .batch. dimensions do not agree: q .2,., v .3,."),
        (x, {"threads": 2}, "takes no threads"),
        (x, {"stream": "a"}, "stream must be a stream or its handle, not str"),
        (x, {"out": Lent(np.zeros((2, 4)), "dlpack")}, "out has shape"),
        (x, {"out": Lent(fixed, "interface")}, "out is read-only"),
        (x, {"out": x[0]}, "out shares memory with an input"),
    ):
        with pytest.raises(InputError, match=said):
            f(*given, **more)


def test_the_benchmark_runs(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the driver that stands in, whose every launch takes 2 ms / LAUNCHES."""
    monkeypatch.setattr(gpu_budgets, "loaded", lambda name, folder=None: ROBOT)
    machine.computes(drevo.compile(ROBOT, "inverse_dynamics", layout="batch_last"))
    cells = gpu.row("panda", "inverse_dynamics", "float64", None, size=1e5).split(" | ")
    count = int(cells[3])
    assert float(cells[6]) == 0.0 and float(cells[7]) == pytest.approx(2e6 / gpu.LAUNCHES / count, rel=1e-3)
    assert drivers.driver().title(0) == "Stand-in" and cells[-1] == "5 |"


def test_the_whole_benchmark_runs(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Large batches, and small ones."""
    biped, made = drevo.load("biped", base="floating"), drevo.compile

    def compiled(robot: drevo.Robot, quantity: str, **options: Any) -> Any:
        f = made(robot, quantity, **options)
        if options.get("target") != "cuda":
            return f
        machine.computes(made(robot, quantity, **{**options, "target": "cpu"}))
        return f

    monkeypatch.setattr(drevo, "compile", compiled)
    monkeypatch.setattr(gpu_budgets, "loaded", lambda name, folder=None: biped)
    monkeypatch.setattr(gpu_budgets, "DTYPES", ("float32",))
    for name, value in {
        "ROWS": [("g1", "mass_matrix")], "SMALL": [("g1", "mass_matrix")], "SMALL_BATCHES": (96,), "CHECKED": 40,
        "RESULTS": tmp_path / "gpu.md",
    }.items():  # fmt: skip
        monkeypatch.setattr(gpu, name, value)
    gpu.main(size=1e4)
    table = (tmp_path / "gpu.md").read_text()
    assert table.count("| g1 |") == 2
    assert "(!)" not in table and table.count("| 96 |") == 1


PLACES = ("ctaid", "ntid", "tid")  # which block, threads of a block, which of them


@pytest.mark.parametrize("layout, dtype", [("rows", "float32"), ("batch_last", "float64")])
def test_the_kernel_itself_on_this_processor(layout: str, dtype: str) -> None:
    """LLVM's text of the kernel, a thread after the other: what it reads and writes, and where it stops."""
    f = drevo.compile(ROBOT, "mass_matrix", layout=layout, dtype=dtype)
    program, spec = gpu_budgets.program(ROBOT, "mass_matrix"), f.spec
    target = Target(DTYPES[dtype], 1, native.host().fma, check=False, prefetch=False)
    text = ptx_text(lowered_as(program, spec, target.fma), target, "kernel", layout == "rows")
    text = text.replace("ptx_kernel void", "void") + "@places = global [3 x i32] zeroinitializer\n"
    for k, x in enumerate(PLACES):
        name = f"@llvm.nvvm.read.ptx.sreg.{x}.x()"
        body = f"%p = getelementptr i32, ptr @places, i64 {k}\n %x = load i32, ptr %p\n ret i32 %x"
        text = re.sub(rf"declare i32 {re.escape(name)}.*", f"define i32 @{x}() {{\n {body}\n}}", text)
        text = text.replace(name, f"@{x}()")
    loaded = native.Loaded(native.compile_text(text))
    places = (ctypes.c_int32 * 3).from_address(loaded.address("places", data=True))
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64)(loaded.address("kernel"))
    (q,), n, threads = states(f, (7,)), 7, 3
    out = np.full_like(f(q), np.nan)
    for block in range(-(-n // threads)):
        for thread in range(threads):
            places[:] = block, threads, thread
            kernel(*pointers(q, out), n)
    assert np.array_equal(out, f(q))


# -- the kernels: what the assembler says of them, and their text on this processor -----------------------

ROOM = 1.1  # of a budget: another assembler, another order of its own
BUDGETS = json.loads(gpu_budgets.TABLE.read_text()) if gpu_budgets.TABLE.exists() else {}
QUICK = [("panda", q) for q in ("inverse_dynamics", "mass_matrix", "inverse_dynamics vjp")]


@pytest.mark.parametrize(
    "name, quantity",
    [pytest.param(r, q, marks=() if (r, q) in QUICK else LONG) for r in BUDGETS for q in BUDGETS[r]],
)
def test_kernels_stay_within_their_budgets(name: str, quantity: str) -> None:
    """Registers, spills and bytes of code on a Hopper; python tools/gpu_budgets.py makes the table."""
    ptxas = gpu_budgets.assembler()
    if ptxas is None:
        needed.require("ptxas")
    row, dtypes = BUDGETS[name][quantity], ("float32",) if (name, quantity) in QUICK else gpu_budgets.DTYPES
    if "refused" in row:
        pytest.skip(row["refused"])
    robot = gpu_budgets.loaded(name)
    program = gpu_budgets.program(robot, quantity)
    for dtype in dtypes:
        found, most = gpu_budgets.cost(program, dtype, ptxas), gpu_budgets.Cost(*row[dtype])
        assert found.registers <= min(255, ROOM * most.registers), dtype
        assert found.spilled <= ROOM * most.spilled and found.code <= ROOM * most.code, dtype


@pytest.mark.parametrize(
    "quantity", [pytest.param(q, marks=() if q == "gravity" else LONG) for q in BUDGETS.get("panda", ())]
)
def test_nvrtc_compiles_the_readable_text(quantity: str) -> None:
    """In both types, for a Hopper, without a GPU; it may not need more registers than there are."""
    needed.require("cuda")
    program = gpu_budgets.program(gpu_budgets.loaded("panda"), quantity)
    for dtype in gpu_budgets.DTYPES:
        assert gpu_budgets.text_cost(program, dtype).registers <= 255


STATES = 2000
TEXTS = [("panda", "inverse_dynamics", ()), ("panda", "mass_matrix", ()), ("panda", "forward_dynamics", LONG)]
TEXTS += [(r, q, LONG) for r in ("go2", "g1", "talos") for q in ("inverse_dynamics", "mass_matrix")]
MATHS = "using std::sqrt; using std::fabs; using std::rint;\n"


@pytest.mark.needs("g++")
@pytest.mark.parametrize("name, quantity", [pytest.param(r, q, marks=m) for r, q, m in TEXTS])
def test_the_text_on_this_processor(name: str, quantity: str, tmp_path: Path) -> None:
    """In double to 1e-13 of a state's largest result, in float to 2e-6; accelerations by their largest terms."""
    robot = gpu_budgets.loaded(name)
    f = drevo.compile(robot, quantity, layout="batch_last")
    d = write_out_program(gpu_budgets.program(robot, quantity))
    rng = np.random.default_rng(1)
    x = [robot.random(rng, STATES) if n == "q" else rng.uniform(-1, 1, (STATES, *s)) for n, s in f.inputs]
    for dtype, most in (("float64", 1e-13), ("float32", 2e-6)):
        given = [np.ascontiguousarray(a.T, dtype) for a in x]
        q, *rates = (a.astype("float64") for a in given)
        wanted = f(unit(robot, q), *rates)
        (folder := tmp_path / dtype).mkdir()
        library = compiled(SHIM + MATHS + d.cuda(dtype), folder, "-Wall -Werror -O1", ".cpp")
        out = np.empty(wanted.shape, dtype)
        getattr(library, f"{d.program.name}_batch_last")(*pointers(*given, out), ctypes.c_longlong(STATES))
        size = solved(robot, q, *rates) if quantity == "forward_dynamics" else np.abs(wanted)
        worst = np.max(np.abs(out - wanted), axis=0) / np.max(size, axis=0)
        assert np.max(worst) <= most, dtype
    with pytest.raises(EmitError, match="cuda: dtype"):
        d.cuda("float16")


def solved(robot: drevo.Robot, q: Array, v: Array, tau: Array) -> Array:
    """The sizes of what accelerations are sums of, |M^-1| (|tau| + |h|): they may cancel."""
    forces = np.abs(tau) + np.abs(robot.bias(q.T, v.T).T)
    return np.einsum("nij,jn->in", np.abs(robot.inverse_mass_matrix(q.T)), forces)


def unit(robot: drevo.Robot, q: Array) -> Array:
    """Quaternions of floats, made unit in double; the kernels take them as they are, to 1e-7."""
    if robot.nq != robot.nv:
        q[3:7] /= np.linalg.norm(q[3:7], axis=0)
    return q
