"""Levels of processors, each run in a process of its own: the same bits wherever products and sums are fused."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from test_rolled import tree_of

import drevo
from drevo.codegen.llvm import module as emitted
from drevo.codegen.lower.lower import lower
from drevo.codegen.store import build, native, processor
from drevo.codegen.store.build import Spec
from drevo.compiler.recipe import Recipe

Array = np.ndarray[Any, Any]
WORK = """
import sys, numpy as np, drevo
from drevo.codegen.store import native
rng, found = np.random.default_rng(0), {"bytes": native.host().bytes}
b = drevo.Builder("walker")
full = {"mass": 1.0, "com": (0.1, 0.0, 0.05), "inertia": np.diag([0.01, 0.02, 0.02])}
b.body("base", joint="free", **full)
for k, side in enumerate((-1, 1)):
    b.body(f"hip{k}", "base", axis=(1, 0, 0), origin=(0, 0.1 * side, 0), **full)
    b.body(f"knee{k}", f"hip{k}", axis=(0, 1, 0), origin=(0.1, 0, -0.3), **full)
r = b.robot()
q, (v, a) = r.random(rng, 21), rng.normal(size=(2, 21, r.nv))
held = [{"link": f"knee{k}", "point": (0.01, 0.0, -0.3)} for k in (0, 1)]
many = drevo.compile(r, "inverse_dynamics", dtype="float32")
last = drevo.compile(r, "bias", layout="batch_last")
for rows, at in (("many", slice(None)), ("one", 3)):
    x = q[at], v[at], a[at]
    mine = {
        "tau": r.inverse_dynamics(*x), "a": r.forward_dynamics(*x), "moved": r.integrate(*x[:2]),
        "single": many(*x), "last": last(q[:4].T, v[:4].T), "A": r.linearise(*x).A,
        "held": r.constrained_dynamics(*x, contacts=held).a, "held A": r.linearise(*x, contacts=held).A,
    }
    found |= {f"{rows} {k}": y for k, y in mine.items()}
chain = drevo.robots.rod_chain(n=70)
x = rng.normal(size=(3, 21, 70))
found |= {"chain": chain.forward_dynamics(*x), "chain one": chain.inverse_dynamics(*x[:, 0])}
permute = "<8 x double> @llvm.x86.avx512.vpermi2var.pd.512(<8 x double> {}, <8 x i64> {}, <8 x double> {})"
try:
    native.compile_text(
        f"declare {permute.format('', '', '')}\\n"
        "define <8 x double> @f(<8 x double> %a, <8 x i64> %k) {\\n"
        f"  %r = call {permute.format('%a', '%k', '%a')}\\n  ret <8 x double> %r\\n}}"
    )
except drevo.DrevoError as error:
    found["refused"] = str(error)
np.savez(sys.argv[1], **found)
"""


def on_this_machine() -> list[str]:
    has = dict(llvm.get_host_cpu_features())
    return processor.runnable(llvm.get_process_triple().startswith(("aarch64", "arm64")), has)


@lru_cache
def results(level: str, folder: Path) -> dict[str, Array]:
    """What WORK finds with the code of a level."""
    given = dict(os.environ, DREVO_CACHE_DIR=str(folder / "cache"), DREVO_PROCESSOR=level)
    to = folder / f"{level}.npz"
    run = subprocess.run([sys.executable, "-c", WORK, str(to)], env=given, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    with np.load(to) as found:
        return dict(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("processors")


@pytest.mark.parametrize("level", [x for x in processor.LEVELS if x in on_this_machine()])
def test_every_level_that_this_machine_can_run(level: str, folder: Path) -> None:
    own, mine, what = results(on_this_machine()[0], folder), dict(results(level, folder)), processor.LEVELS[level]
    assert mine.pop("bytes") == what.bytes
    refused = str(mine.pop("refused", ""))
    assert refused == "" if "avx512f" in what.needs else "has no avx512f; make it for this machine" in refused
    fused = what.fma == processor.LEVELS[on_this_machine()[0]].fma
    for name, x in mine.items():
        y = own[name]
        assert x.dtype == y.dtype and np.isfinite(x).all()
        if fused:
            assert np.array_equal(x, y), name
        else:
            eps = np.finfo(x.dtype).eps
            assert np.abs(x - y).max() <= 1e5 * eps * np.abs(y).max(), name


def test_a_level_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    able = on_this_machine()
    lacking = next(x for x in processor.LEVELS if x not in able)
    for name, why in (("avx3", "is no level"), (lacking, "needs instructions that this processor lacks")):
        monkeypatch.setenv("DREVO_PROCESSOR", name)
        with pytest.raises(drevo.InputError, match=f"DREVO_PROCESSOR='{name}' {why}; it can run {able[0]}"):
            native.host.__wrapped__()


@pytest.mark.parametrize(
    ("called", "triple", "features", "lacking"),
    [
        ("i64 @llvm.aarch64.get.fpcr()", "x86_64-pc-linux-gnu", "+avx2", "aarch64"),
        ("void @llvm.x86.sse.stmxcsr(ptr)", "aarch64-unknown-linux-gnu", "+sse", "x86"),
        ("<8 x float> @llvm.x86.avx.round.ps.256(<8 x float>, i32)", "x86_64-pc-linux-gnu", "-avx", "avx"),
        ("<4 x i64> @llvm.x86.avx2.psad.bw(<32 x i8>, <32 x i8>)", "x86_64-pc-linux-gnu", "+avx", "avx2"),
        ("void @llvm.x86.sse.stmxcsr(ptr)", "x86_64-pc-linux-gnu", "", ""),
        ("<64 x double> @llvm.fma.v64f64(<64 x double>, <64 x double>, <64 x double>)", "arm64", "", ""),
    ],
)
def test_instructions_that_a_machine_lacks_are_refused_before_llvm_ends_the_process(
    called: str, triple: str, features: str, lacking: str
) -> None:
    module = llvm.parse_assembly(f"declare {called}")
    with pytest.raises(drevo.EmitError, match=f"has no {lacking};") if lacking else nullcontext():
        processor.require_instructions(module, triple, features)


def test_what_is_emitted_follows_the_machine_and_not_the_width_of_values() -> None:
    program = Recipe(("mass_matrix",)).program(drevo.load("two-arm-planar").model)
    for permutes in (False, True):
        target = emitted.Target(lanes=8, permutes=permutes)
        assert ("avx512" in emitted.emit(lower(program), target, "rows").ir) == permutes


# -- AArch64 ------------------------------------------------------------------------------------------------

DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
extern int32_t drive(void **, int64_t *, int64_t, void *, int64_t);
int main(int argc, char **argv) {
  int64_t ports = argc - 3, count = atoll(argv[1]), strides[16];
  void *at[16], *arena = aligned_alloc(64, atoll(argv[2]));
  for (int k = 0; k < ports; k++) {
    int64_t size = atoll(argv[3 + k]), in = size > 0;
    size = in ? size : -size;
    strides[k] = size * 8;
    at[k] = malloc(count * size * 8);
    if (in && fread(at[k], 8, count * size, stdin) != (size_t)(count * size)) return 2;
  }
  int bad = drive(at, strides, count, arena, count);
  for (int k = 0; k < ports; k++) {
    int64_t size = atoll(argv[3 + k]);
    if (size < 0) fwrite(at[k], 8, -size * count, stdout);
  }
  return bad;
}
"""


@pytest.mark.needs("aarch64-linux-gnu-gcc", "qemu-aarch64-static")
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_kernels_of_aarch64_in_an_emulator(quantity: str, tmp_path: Path) -> None:
    """Batches in NEON's registers by the driver that Python calls: all bits of this machine, where it fuses."""
    robot = drevo.Robot(tree_of(3, n=10))
    program = Recipe((quantity,)).program(robot.model)
    target = build.target_of(Spec())._replace(lanes=2, fma=True, control="fpcr", splat=True)
    low = lower(program, fma=True)
    text = emitted.emit(low, target, "rows")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu"
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small")
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{text.ir}')
    (tmp_path / "kernel.o").write_bytes(machine.emit_object(module))
    (tmp_path / "main.c").write_text(DRIVER)
    link = "aarch64-linux-gnu-gcc -static -O1 main.c kernel.o -o run"
    subprocess.run(link.split(), cwd=tmp_path, check=True)
    rng, count = np.random.default_rng(0), 9
    given = [robot.random(rng, count), *rng.normal(size=(len(low.inputs) - 1, count, robot.nv))]
    sizes = [x.shape[1] for x in given] + [-x.size for x in low.outputs]
    command = ["qemu-aarch64-static", "./run", str(count), str(text.arena.total + 64), *map(str, sizes)]
    run = subprocess.run(command, cwd=tmp_path, input=b"".join(x.tobytes() for x in given), capture_output=True)
    assert run.returncode == 0, run.stderr
    found, right = np.frombuffer(run.stdout), getattr(robot, quantity)(*given).ravel()
    if native.host().fma:
        assert np.array_equal(found, right)
    else:
        assert np.abs(found - right).max() <= 1e-11 * np.abs(right).max()
