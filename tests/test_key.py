"""Compiled code is found by one key: edited sources, or an upgrade, are never served code of the old ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.codegen.runtime import cache, key, stream
from drevo.io import version

PACKAGE = Path(drevo.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    where = tmp_path / "src" / "drevo"
    shutil.copytree(PACKAGE, where, ignore=shutil.ignore_patterns("__pycache__"))
    return where


def test_every_module_is_in_the_key(copy: Path) -> None:
    def state() -> list[Any]:
        return sorted(key.files(str(copy)))

    modules = sorted(copy.rglob("*.py"))
    assert [x[0] for x in state()] == sorted(p.relative_to(copy).as_posix() for p in modules)
    was = state()
    for path in modules:
        seen = path.stat()
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))  # an edit that leaves the size
        later = state()
        assert later != was, path
        path.write_bytes(path.read_bytes() + b"\n")  # and one that leaves the time
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))
        was = state()
        assert was != later, path
    (copy / "newcomer.py").touch()
    assert len(state()) == len(was) + 1
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "x.pyc").touch()
    assert len(state()) == len(was) + 1


SCRIPT = """
import numpy as np, drevo
r, c = drevo.load("two-arm-planar"), drevo.constraint
x = c.point_on_plane(r.link_names[-1], (0.1, 0, 0), normal=(0, 1, 0))
f = r.constrained_dynamics(np.full(r.nq, 0.3), np.full(r.nv, 0.1), np.zeros(r.nv), constraints=[x])
print(float(f.gamma[0]))
"""
EDIT = """
_unedited = all_rows
def all_rows(constraints, k, t):
    rows = _unedited(constraints, k, t)
    return rows._replace(bias=[x + 1000.0 for x in rows.bias])
"""


def test_an_edit_serves_fresh_code(copy: Path, tmp_path: Path) -> None:
    env = dict(os.environ, PYTHONPATH=str(copy.parent), DREVO_CACHE_DIR=str(tmp_path / "cache"))

    def gamma() -> float:
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=60)
        return float(done.stdout)

    def entries() -> int:
        return len(list((tmp_path / "cache").rglob("*.bin")))

    before, made = gamma(), entries()
    assert made and gamma() == before and entries() == made
    with open(copy / "constrained" / "collection.py", "a", encoding="utf-8") as file:
        file.write(EDIT)
    assert gamma() == pytest.approx(before + 1000.0) and entries() > made


def test_an_edit_after_the_import_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = key.sources.__wrapped__
    assert fresh() == fresh()
    monkeypatch.setattr(version, "LOADED", 0.0)
    assert fresh() != fresh()


def test_everything_compiled_goes_by_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def noted(do: Any) -> Any:
        return lambda name, *rest: asked.append(name) or do(name, *rest)

    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(key, "sources", lambda: "THESE SOURCES")
    monkeypatch.setattr(cache, "read_entry", noted(cache.read_entry))
    monkeypatch.setattr(cache, "write_entry", noted(cache.write_entry))
    stream._loop.cache_clear()
    r = drevo.load("two-arm-planar")
    q = np.full(r.nq, 0.3)
    touch = {"link": r.link_names[-1], "point": (0.0, 0.0, 0.0), "rows": 3}
    chain = drevo.robots.rod_chain(n=70)
    z = np.zeros(chain.nq)
    ways = {
        "a quantity": lambda: r.mass_matrix(q),
        "a derivative": lambda: r.derivative("gravity", "q"),
        "a motion": lambda: r.simulate(q, q, duration=0.01, step=0.01),
        "contacts": lambda: r.constrained_dynamics(q, q, q, contacts=[touch]),
        "a loop over bodies": lambda: chain.bias(z, z),
        "a stream": lambda: drevo.stream(r, "gravity", samples=1000),
    }
    for name, way in ways.items():
        asked.clear()
        way()
        assert len(asked) > 1 and all("THESE SOURCES" in x for x in asked), name
