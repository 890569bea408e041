"""Other systems, as far as one sees them from here: LLVM's loader, what Windows lacks, objects for its linker."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import needed
import pytest

import drevo
from drevo.codegen.entry import entry as llvm_entry
from drevo.codegen.entry.layout import ObjectLayout
from drevo.codegen.llvm import module as emitted
from drevo.codegen.lower.lower import lower
from drevo.codegen.store import build, native
from drevo.codegen.store.build import Spec
from drevo.compiler.recipe import Recipe

WORK = """
import numpy as np, drevo
from drevo.codegen.store import cache, image
r, rng = drevo.load("three-link"), np.random.default_rng(0)
q, v, a = rng.normal(size=(3, 40, 3))
f = {"link2": np.ones((40, 6)), "link3": np.ones((40, 6))}
out = np.empty_like(q)
found = [
    r.inverse_dynamics(q, v, a), r.inverse_dynamics(q[0], v[0].tolist(), a=a[0]), r.mass_matrix(q, threads=2),
    r.inverse_dynamics(q, v, a, f_ext=f, out=out), r.inverse_dynamics(q, v, a, f_ext=f), r.pose(q, "link3"),
    r.integrate(q, v),
]
try:
    r.inverse_dynamics(q * np.nan, v, a)
except drevo.NumericsError as error:
    found.append(np.frombuffer(str(error).encode(), np.uint8))
import hashlib
print(hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in found)).hexdigest())
print(drevo.compile(r, "bias").backend, image.supported(), len(list(cache.directory().glob("*.bin"))) > 5)
"""
WINDOWS = """
import ctypes, os, sys, types
import llvmlite.binding, numpy, xml.etree.ElementTree, importlib.metadata, multiprocessing, concurrent.futures
for name in ("register_at_fork", "sysconf", "getuid", "getgid", "uname", "fork", "O_DIRECTORY", "O_NOFOLLOW",
             "O_NONBLOCK", "O_CLOEXEC", "O_PATH", "sched_getaffinity", "fchmod"):
    if hasattr(os, name):
        delattr(os, name)
probe = ctypes.CFUNCTYPE(None)(lambda: None)
ctypes.WinDLL = lambda name: {"__chkstk": probe}
sys.platform = "win32"
"""


def said(code: str, folder: Path, **env: str) -> list[str]:
    """What a process of its own prints, with a cache of its own."""
    given = dict(os.environ, DREVO_CACHE_DIR=str(folder), **env)
    run = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.skipif(os.name != "posix", reason="nothing to compare with")
def test_the_same_bits_by_llvms_loader_and_without_posix(tmp_path: Path) -> None:
    """Cold and warm, with DREVO_LOADER=llvm, and where the operating system has none of what Windows lacks."""
    digest, *mine = said(WORK, tmp_path / "own")
    assert mine[::2] == ["native", "True"]
    for k in range(2):
        assert said(WORK, tmp_path / "llvm", DREVO_LOADER="llvm") == [digest, "native", "False", "True"], k
        assert said(WINDOWS + WORK, tmp_path / "windows") == [digest, "native", "False", "True"], k


def test_the_workflow_names_what_there_is() -> None:
    root = Path(__file__).parent.parent
    text = (root / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    named = re.findall(r"(?:tests/\w+\.py|\.ci/run)", text)
    assert named and all((root / name).exists() for name in named)
    assert {"test_dynamics.py", "test_laws.py"} <= set(needed.without("pinocchio"))
    assert not {"test_arguments.py", "test_platforms.py", "test_cache.py"} & set(needed.without("pinocchio"))


def undefined(obj: bytes) -> set[str]:
    """Symbols that a COFF object wants from outside."""
    _, _, _, at, count = struct.unpack_from("<HHIII", obj)
    names, table, k = set(), obj[at + 18 * count :], 0
    while k < count:
        raw, value, section, _, kind, more = struct.unpack_from("<8sIhHBB", obj, at + 18 * k)
        if section == 0 and kind == 2 and value == 0:
            far = struct.unpack("<II", raw)
            names.add((table[far[1] :] if far[0] == 0 else raw).split(b"\0")[0].decode())
        k += 1 + more
    return names


def test_objects_for_windows_name_nothing_that_is_not_given() -> None:
    """Kernels with large frames and their entry, by Microsoft's conventions: what LLVM's loader must find."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    program = Recipe(("forward_dynamics",)).program(drevo.robots.rod_chain(n=12).model)
    target = build.target_of(Spec())._replace(lanes=4, control="mxcsr", single=True)
    low = lower(program, fma=True)
    made = emitted.emit_parts(low, target, "rows")
    shape = llvm_entry.entry_shape(low.inputs, low.outputs, "double", True, True, made.scalar_scratch)
    texts = (llvm_entry.entry_text(shape, ObjectLayout()), *(text() for text in made.texts.values()))
    triple = "x86_64-pc-windows-msvc"
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu="haswell", opt=2, reloc="pic", codemodel="jitdefault"
    )
    for text in texts:
        wanted = undefined(machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{text}')))
        assert wanted <= {"__chkstk", "_fltused"}
    assert set(vars(native)) >= {"_windows_symbols"}
