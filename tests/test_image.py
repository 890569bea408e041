"""Objects loaded without LLVM: the same bits as with it, nothing but ValueError for what is no object of ours."""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.codegen.call.function import Function
from drevo.codegen.store import image, native
from drevo.codegen.store.build import Built, Objects, Spec, build
from drevo.compiler.recipe import Recipe
from drevo.errors import EmitError

pytestmark = pytest.mark.skipif(not image.supported(), reason="only for Linux on x86-64")


def built(**options: Any) -> tuple[Any, Objects, Spec]:
    spec = Spec(**options)
    program = Recipe(("mass_matrix", "bias")).program(drevo.load("puma560").model)
    return *build(program, spec), spec


def flat(f: Function) -> bytes:
    """The results of a batch and of one sample."""
    q, v = np.random.default_rng(0).normal(size=(2, 6, 21)).astype(f.dtype)
    batch = (q, v) if f.layout == "batch_last" else (q.T.copy(), v.T.copy())
    one = [x[:, 3].copy() for x in (q, v)]
    return b"".join(x.tobytes() for x in (*f(*batch), *f(*one)))


OPTIONS: list[dict[str, Any]] = [{}, {"dtype": "float32"}, {"layout": "batch_last", "packed": True}]


def digests() -> list[str]:
    """Of the results with all of OPTIONS."""
    found = []
    for options in OPTIONS:
        manifest, objects, spec = built(**options)
        f = Function(Built(manifest, objects.code()), spec)
        found += [f.backend, hashlib.sha256(flat(f)).hexdigest()]
    return found


def test_the_same_bits_as_through_llvm(tmp_path: Any) -> None:
    """In a process of its own: the code is made for one loader or for the other."""
    env = dict(os.environ, DREVO_CACHE_DIR=str(tmp_path), DREVO_LOADER="llvm")
    code = "from test_image import digests, image; print(image.supported(), *digests())"
    theirs = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=os.path.dirname(__file__), capture_output=True, text=True
    )
    mine = digests()
    assert mine[::2] == ["native"] * len(OPTIONS)
    assert theirs.stdout.split() == ["False", *mine], theirs.stderr


def test_an_object_of_a_kind_that_is_not_known_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's loader does not get it: what was made for ours has 32-bit distances, which its places may exceed."""
    manifest, objects, spec = built()
    monkeypatch.setattr(image, "_BY_TABLE", ())
    with pytest.raises(EmitError, match="LLVM's object cannot be loaded"):
        Function(Built(manifest, objects.code()), spec)


def test_a_warm_start_does_not_load_llvm(tmp_path: Any) -> None:
    code = (
        "import sys, numpy as np, drevo; r = drevo.load('three-link'); z = np.zeros(3);"
        "r.inverse_dynamics(z, z, z); print('llvmlite.binding' in sys.modules)"
    )
    env = dict(os.environ, DREVO_CACHE_DIR=str(tmp_path))
    said = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout for _ in "ab"
    ]
    assert said == ["True\n", "False\n"]


def test_code_cannot_be_written() -> None:
    _, objects, _ = built()
    loaded = image.Image(objects.entry)
    at = loaded.address("entry")
    with open("/proc/self/maps", encoding="ascii") as maps:
        spans = [line.split()[:2] for line in maps]
    (mode,) = [m for span, m in spans if int(span.split("-")[0], 16) <= at < int(span.split("-")[1], 16)]
    assert mode.startswith("r-x")
    assert loaded.address("table") and not loaded.address("nothing of this name")


def test_what_is_no_object_is_refused() -> None:
    """Cut, flipped and random bytes: ValueError (or an image that nobody runs), never a crash."""
    _, (obj, *_), _ = built()
    rng = random.Random(0)
    broken = [b"", b"\x7fELF", obj[:63], obj[:64], bytes(200), rng.randbytes(5000)]
    broken += [obj[: rng.randrange(len(obj))] for _ in range(100)]
    head = len(obj) - 4000  # sections, symbols, relocations stand at the end, the header in front
    for _ in range(400):
        data = bytearray(obj)
        for _ in range(rng.randrange(1, 4)):
            at = rng.choice([rng.randrange(64), rng.randrange(head, len(obj))])
            data[at] = rng.randrange(256)
        broken.append(bytes(data))
    refused = 0
    for data in broken:
        try:
            image.Image(data)
        except (OSError, ValueError):
            refused += 1
    assert refused >= 106


def test_memory_is_given_back() -> None:
    _, (obj, *_), _ = built()
    with open("/proc/self/maps", encoding="ascii") as maps:
        before = len(maps.readlines())
    for _ in range(50):
        image.Image(obj)
    with open("/proc/self/maps", encoding="ascii") as maps:
        assert len(maps.readlines()) <= before + 10


def test_calls_of_c_go_through_jumps() -> None:
    """What fills and copies is libc's, gigabytes away; other names are refused."""
    text = """target triple = "x86_64-unknown-linux-gnu"
    declare ptr @{name}(ptr, i32, i64)
    define ptr @fill(ptr %p, i64 %n) {{
      %r = call ptr @{name}(ptr %p, i32 7, i64 %n)
      ret ptr %r
    }}"""
    loaded = image.Image(native.compile_text(text.format(name="memset")))
    room = (ctypes.c_uint8 * 8)()
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded.address("fill"))(room, 5)
    assert list(room) == [7] * 5 + [0] * 3
    with pytest.raises(ValueError, match="a symbol from outside"):
        image.Image(native.compile_text(text.format(name="strange")))
