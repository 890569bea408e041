"""Arrays, functions and robots that went through pickle, and processes that were forked at a bad moment."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from program_cases import bits, make, state

import drevo
from drevo.codegen.store import native

# -- arrays whose dtype is equal to NumPy's own, but another object ----------------------------------------


def dressed(x: np.ndarray, tmp_path: Path) -> dict[str, np.ndarray]:
    """The same numbers with a dtype of their own."""
    own = pickle.loads(pickle.dumps(x.dtype))  # noqa: S301
    wide = np.zeros((2 * x.shape[0], x.shape[1] + 3), x.dtype).view(own)
    wide[::2, 1:-2] = x
    frozen = x.view(own)
    frozen.flags.writeable = False
    odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(own).reshape(x.shape)
    odd[...] = x
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
    np.save(file, x)
    return {
        "pickle": pickle.loads(pickle.dumps(x)),  # noqa: S301
        "newbyteorder": x.astype(x.dtype.newbyteorder("=")),
        "metadata": x.astype(np.dtype(x.dtype, metadata={"unit": "rad"})),
        "strided": wide[::2, 1:-2], "frozen": frozen, "unaligned": odd, "fortran": np.asfortranarray(x).view(own),
        "subclass": x.view(own).view(np.recarray), "mapped": np.load(file, mmap_mode="r"),
        "swapped": pickle.loads(pickle.dumps(x.astype(x.dtype.newbyteorder()))),  # noqa: S301
    }  # fmt: skip


def parts(found: object) -> list[bytes]:
    return [bits(x) for x in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_a_dtype_of_its_own(dtype: str, layout: str, tmp_path: Path) -> None:
    for kind, samples in (("arm", np.random.default_rng(0).normal(size=(2, 20, 9))), ("every", state(20))):
        f = make(kind, dtype=dtype, layout=layout)
        given = [x.astype(dtype) if layout == "rows" else x.T.astype(dtype).copy() for x in samples]
        want, single = f(*given), f(*(x[0] if layout == "rows" else x[:, 0] for x in given))
        clothes = [dressed(x, tmp_path) for x in given]
        for name in clothes[0]:
            q, v = (c[name] for c in clothes)
            for got in (f(q, v), f(given[0], v), f(q=q, v=v)):
                assert parts(got) == parts(want), name
            one = f(*(x[0] if layout == "rows" else x[:, 0] for x in (q, v)))
            assert parts(one) == parts(single), name


def test_out_and_empty_with_a_dtype_of_its_own() -> None:
    f, own = make("arm"), pickle.loads(pickle.dumps(np.dtype(float)))  # noqa: S301
    x = np.random.default_rng(0).normal(size=(4, 9)).view(own)
    out = np.zeros((4, 9)).view(own)
    assert f(x, x, out=out) is out and bits(out) == bits(f(x, x)) and f(x, x, out) is out
    assert f(np.zeros((0, 9)).view(own), np.zeros((0, 9)).view(own)).shape == (0, 9)
    with pytest.raises(drevo.InputError, match="v has shape"):
        f(x, x[:, 1:])


# -- worker processes --------------------------------------------------------------------------------------


@cache
def robot() -> drevo.Robot:
    return drevo.load("two-arm-planar")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this platform")
    r, rng = robot(), np.random.default_rng(0)
    q = [*rng.normal(size=(3, r.nq)), rng.normal(size=(5, r.nq))]
    small = drevo.compile(r, "mass_matrix", dtype="float32", layout="batch_last")
    turned = [np.ascontiguousarray(x.T, np.float32) for x in q]
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.map(r.mass_matrix, q), pool.map(small, turned), pool.map(r.integrate, [])
    assert [bits(x) for x in found[0]] == [bits(r.mass_matrix(x)) for x in q]
    assert [bits(x) for x in found[1]] == [bits(small(x)) for x in turned]


def test_methods_pickle() -> None:
    r = robot()
    q = np.full(r.nq, 0.25)
    want = r.mass_matrix(q)  # now a builtin
    for x in (r.mass_matrix, drevo.load("two-arm-planar").mass_matrix, drevo.compile(r, "mass_matrix")):
        again = pickle.loads(pickle.dumps(x))  # noqa: S301
        assert bits(again(q)) == bits(want) and not isinstance(again, np.ndarray)


def test_processes_that_a_pickle_goes_to_compile_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    sent = pickle.dumps(drevo.compile(drevo.load("two-arm-planar"), "bias"))

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled anew")

    monkeypatch.setattr(native, "compile_text", refuse)
    f = pickle.loads(sent)  # noqa: S301
    x = np.zeros((9, *f.inputs[0][1]))
    assert bits(f(x, x)[0]) == bits(f(x[0], x[0]))


# -- forks while another thread compiles -------------------------------------------------------------------

FORKS = """
import os, signal, sys, threading, time
import numpy as np, drevo

moment = sys.argv[1]
first, second = drevo.load("two-arm-planar"), drevo.load("three-link")
busy = threading.Event()

def work():
    if moment == "import":
        busy.set()  # the late imports of a first call begin now
        first.simulate(np.zeros(first.nq), duration=0.01, dt=0.01)
        return
    from drevo.codegen.store import native
    emit = native.compile_text
    def compile_text(*given):
        busy.set()
        return emit(*given)
    native.compile_text = compile_text
    for _ in range(3):
        drevo.compile(first, "forward_dynamics_derivatives", cache=False)

thread = threading.Thread(target=work)
thread.start()
busy.wait()
for pause in (0.0, 0.01, 0.04, 0.1):
    time.sleep(pause)
    if not (child := os.fork()):
        signal.alarm(30)  # ends a child that hangs
        second.simulate(np.zeros(3), duration=0.01, dt=0.01)
        drevo.compile(second, "mass_matrix", cache=False)(np.zeros(3))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "a child hung"
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.parametrize("moment", ["import", "llvm"])
def test_a_fork_while_another_thread_compiles(moment: str, tmp_path: Path) -> None:
    env = dict(os.environ, DREVO_CACHE_DIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", FORKS, moment], env=env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
