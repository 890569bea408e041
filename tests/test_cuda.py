"""Functions on a GPU: kernels within budgets, and the way to their launch, by a module that stands in for CuPy."""

from __future__ import annotations

import ctypes
import json
import pickle
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import needed
import numpy as np
import pytest
from standin_cupy import Standin
from test_emit import SHIM, compiled, pointers

import drevo
from drevo.codegen.gpu.cuda import THREADS
from drevo.codegen.llvm.module import ptx_text
from drevo.codegen.llvm.ports import Target
from drevo.codegen.store import native
from drevo.codegen.store.build import DTYPES, lowered_as
from drevo.compiler.pages.derivation import write_out_program
from drevo.errors import EmitError, InputError

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import gpu_budgets

Array = np.ndarray[Any, Any]
ROBOT = drevo.load("scara")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Standin:
    found = Standin()
    monkeypatch.setitem(sys.modules, "cupy", found.module_object)
    return found


def made(standin: Standin, quantity: str = "inverse_dynamics", **options: Any) -> tuple[Any, drevo.Function]:
    """On the device, and the same on the processor."""
    f = drevo.compile(ROBOT, quantity, target="cuda", **options)
    same = drevo.compile(ROBOT, quantity, **options)
    standin.computes(same)
    return f, same


def states(f: Any, lead: tuple[int, ...]) -> list[Any]:
    rng, rows = np.random.default_rng(0), f.layout == "rows"
    found = [rng.uniform(-1, 1, (*lead, *s) if rows else (*s, *lead)).astype(f.dtype) for _, s in f.inputs]
    return [Standin.of(x) for x in found]


LONG = pytest.mark.nightly


@pytest.mark.parametrize("layout, dtype", [("rows", "float64"), ("batch_last", "float32")])
def test_a_call(standin: Standin, layout: str, dtype: str) -> None:
    """One launch on the caller's stream, of as many blocks as are needed; results are the processor's."""
    f, same = made(standin, layout=layout, dtype=dtype)
    for n in (1, THREADS, THREADS + 1):
        x = states(f, (n,))
        out = Standin.of(np.zeros((n, 4) if layout == "rows" else (4, n), dtype))
        assert f(*x, out=out, stream=SimpleNamespace(cuda_stream=77)) is out
        assert np.array_equal(out, same(*x)) and np.array_equal(f(*x), out)
        assert standin.launches[-2:] == [(77, -(-n // THREADS), THREADS), (0, -(-n // THREADS), THREADS)]
    assert b".entry kernel(" in standin.texts[0] and standin.texts[0].endswith(b"\0")


def test_leading_dimensions(standin: Standin) -> None:
    f, _ = made(standin, cache=False)
    assert f(*states(f, (3, 100))).shape == (3, 100, 4) and f(*states(f, ())).shape == (4,)
    assert f(*states(f, (0,))).shape == (0, 4)
    assert [blocks for _, blocks, _ in standin.launches] == [-(-300 // THREADS), 1]
    again = pickle.loads(pickle.dumps(f))  # noqa: S301
    assert repr(again) == repr(f)


def test_several_results(standin: Standin) -> None:
    f, same = made(standin, ("mass_matrix", "bias"))
    x = states(f, (5,))
    for found, wanted in zip(f(*x), same(*x)):
        assert np.array_equal(found, wanted)


def test_arguments_that_are_refused(standin: Standin) -> None:
    f, _ = made(standin)
    x = states(f, (3,))
    q, v, a = x
    far = q.copy()
    far.at = 1
    for given, more, said in (
        ((np.asarray(q), v, a), {}, "q must be an array on a GPU.*ndarray"),
        ((1.0, v, a), {}, "q must be an array on a GPU.*float"),
        ((q.astype("f4"), v, a), {}, "q holds float32; this function was compiled for float64"),
        ((q[:, :3], v, a), {}, r"q has shape \(3, 3\)"),
        ((q[:2], v, a), {}, "leading .batch. dimensions do not agree: q .2,., v .3,."),
        ((far, v, a), {}, "the devices do not agree: q 1, v 0"),
        (x, {"threads": 2}, "takes no threads"),
        (x, {"stream": "a"}, "stream must be a stream or its handle, not str"),
        (x, {"out": Standin.of(np.zeros((2, 4)))}, "out has shape"),
        (x, {"out": Standin.of(np.zeros((4, 3))).T}, "out must be contiguous"),
        (x, {"out": q}, "out shares memory with an input"),
    ):
        with pytest.raises(InputError, match=said):
            f(*given, **more)


def test_machines_without_a_gpu(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise RuntimeError("cudaErrorNoDevice")

    monkeypatch.setattr(standin.module_object.cuda, "Device", none)
    with pytest.raises(EmitError, match="CuPy finds none: cudaErrorNoDevice; target='cpu' runs everywhere"):
        drevo.compile(ROBOT, "gravity", target="cuda")
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EmitError, match=r"needs the package cupy-cuda12x.*target='cpu' runs everywhere"):
        drevo.compile(ROBOT, "gravity", target="cuda")
    with pytest.raises(EmitError, match="compile: target"):
        drevo.compile(ROBOT, "gravity", target="cud")


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
    q, n, threads = np.asarray(*states(f, (7,))), 7, 3
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
