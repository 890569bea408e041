"""Limbs side by side in the warps of a GPU: the kernel itself on this processor, in threads of Python."""

from __future__ import annotations

import ctypes
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_cuda import LONG, Lent, Machine, gpu_budgets, library, machine  # noqa: F401  the fixtures
from test_emit import pointers

import drevo
from drevo.codegen.emit.llvm_target import Target
from drevo.codegen.emit.llvm_warps import BARRIER, LANES, THREAD, best_shares, warps_text
from drevo.codegen.runtime import native
from drevo.codegen.runtime.build import DTYPES, lowered_as
from drevo.compiler.compile import make_program, recipe_of
from drevo.compiler.limbs import warps_of
from drevo.errors import EmitError

Array = np.ndarray[Any, Any]
ROBOT = drevo.load("biped", base="floating")
TRIED = (0, 1, LANES - 1)  # lanes
CALL = ctypes.CFUNCTYPE(ctypes.c_int32)


def on_this_processor(text: str) -> native.Loaded:
    """The kernel with its places and its barrier asked of functions: of which block and thread a call is."""
    plain = text.replace("ptx_kernel void", "void").replace("addrspacecast ptr @shared", "bitcast ptr @shared")
    plain = re.sub(r" addrspace\(3\)", "", plain).replace(
        "addrspacecast ptr @shared to ptr", "bitcast ptr @shared to ptr"
    )
    plain += "@asked = global [3 x ptr] zeroinitializer\n"
    for k, (kind, name) in enumerate(
        (("i32", f"{THREAD}.ctaid.x"), ("i32", f"{THREAD}.tid.x"), ("void", BARRIER))
    ):
        body = f"%p = load ptr, ptr getelementptr (ptr, ptr @asked, i64 {k})\n %x = call i32 %p()\n"
        body += " ret i32 %x" if kind == "i32" else " ret void"
        plain = re.sub(
            rf"declare {kind} @{re.escape(name)}\(\)", f"define {kind} @asked{k}() {{\n {body}\n}}", plain
        )
        plain = plain.replace(f"@{name}()", f"@asked{k}()")
    return native.Loaded(native.compile_text(plain))


def launched(loaded: native.Loaded, warps: int, arrays: list[Array], n: int) -> None:
    """Every block in turn; of a block some lanes, one at a time, its warps together."""
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays), ctypes.c_int64)(loaded.address("kernel"))
    own, barrier = threading.local(), threading.Barrier(warps, timeout=60)
    answers: list[Callable[[], int]] = [lambda: own.block, lambda: own.thread, lambda: bool(barrier.wait()) * 0]
    kept = [CALL(x) for x in answers]
    table = (ctypes.c_void_p * 3).from_address(loaded.address("asked", data=True))
    table[:] = [ctypes.cast(x, ctypes.c_void_p).value for x in kept]

    def run(block: int, thread: int) -> None:
        own.block, own.thread = block, thread
        kernel(*pointers(*arrays), n)

    for block in range(-(-n // LANES)):
        for lane in TRIED:
            together = [threading.Thread(target=run, args=(block, lane + LANES * w)) for w in range(warps)]
            for x in together:
                x.start()
            for x in together:
                x.join()


PRODUCT = "inverse_dynamics vjp"


def program(robot: drevo.Robot, name: str) -> Any:
    quantity, *product = name.split()
    return make_program(robot.model, **recipe_of(robot.model, quantity, (), "auto", (), False, product, {}))


def states(robot: drevo.Robot, f: drevo.Function, count: int) -> list[Array]:
    rng = np.random.default_rng(count)
    made = [robot.random(rng, count) if n == "q" else rng.uniform(-1, 1, (count, *s)) for n, s in f.inputs]
    return [np.ascontiguousarray(x if f.layout == "rows" else x.T, f.dtype) for x in made]


def same_bits(name: str, quantity: str, layout: str, dtype: str, barriers: bool = True) -> bool:
    """Whether the kernel gives what this processor's function gives; one state has an angle of many turns, which a
    branch takes away."""
    robot = ROBOT if name == "biped" else gpu_budgets.loaded(name)
    wanted, *product = quantity.split()
    f = drevo.compile(robot, wanted, product=product, layout=layout, dtype=dtype)
    target = Target(DTYPES[dtype], 1, native.host().fma, check=False, prefetch=False)
    low = lowered_as(program(robot, quantity), f.spec, target.fma)
    shares = best_shares(low, warps_of(robot.model), f.dtype.itemsize, 1.0)
    assert shares is not None and len(shares.warps) > 1 and shares.longest < len(low.steps)
    text = warps_text(low, target, "kernel", shares, layout == "rows")
    text = text if barriers else text.replace(f"  call void @{BARRIER}()\n", "")
    n, rows = LANES + 2, layout == "rows"
    given = states(robot, f, n)
    (given[0] if rows else given[0].T)[1, 8] = 100.5
    made = f(*given) if len(f.outputs) > 1 else (f(*given),)
    found = [np.zeros_like(y) for y in made]
    launched(on_this_processor(text), len(shares.warps), [*given, *found], n)
    tried = [k for k in range(n) if k % LANES in TRIED]
    pairs = [(x, y) if rows else (x.T, y.T) for x, y in zip(found, made)]
    return all(np.array_equal(x[tried], y[tried]) for x, y in pairs)


CASES = [
    ("biped", "inverse_dynamics", "rows", "float32"), ("biped", "forward_dynamics", "batch_last", "float64"),
    ("biped", "mass_matrix", "rows", "float64"), ("biped", PRODUCT, "batch_last", "float32"),
    ("biped", "poses", "rows", "float64"),
]  # fmt: skip
CASES += [(r, q, "batch_last", "float32") for r in ("go2", "g1", "talos") for q in ("forward_dynamics", PRODUCT)]


@pytest.mark.parametrize("case", [pytest.param(x, marks=LONG if k > 4 else ()) for k, x in enumerate(CASES)])
def test_limbs_have_the_bits_of_the_whole(case: tuple[str, ...]) -> None:
    """A batch that is no multiple of a warp; barriers, shared memory and all."""
    assert same_bits(*case)


def test_without_barriers_the_bits_are_others() -> None:
    assert not same_bits("biped", "forward_dynamics", "rows", "float64", barriers=False)


def test_a_call_limb_by_limb(machine: Machine) -> None:  # noqa: F811
    """As many threads a block as the warps need, LANES samples each; it is pickled, and is that already."""
    same = drevo.compile(ROBOT, "forward_dynamics")
    f = drevo.compile(ROBOT, "forward_dynamics", target="cuda").by_limbs()
    machine.computes(same, warps=f.warps)
    again = pickle.loads(pickle.dumps(f))  # noqa: S301
    for n in (1, LANES, LANES + 1):
        x = states(ROBOT, same, n)
        machine.calls()
        for g in (f, again):
            assert f.warps > 1 and np.array_equal(g(*(Lent(y, "dlpack") for y in x)).to_host(), same(*x))
        assert machine.calls().count(f"cuLaunchKernel 1 {-(-n // LANES)}") == 2
    with pytest.raises(EmitError, match="limb by limb already"):
        f.by_limbs()
    with pytest.raises(
        EmitError, match="gravity is not computed limb by limb: the limbs, if there are any, share"
    ):
        drevo.compile(drevo.load("scara"), "gravity", target="cuda").by_limbs()
