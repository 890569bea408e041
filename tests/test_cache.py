"""The cache may be deleted, truncated, flipped, full, read-only or shared: results are the same, only slower."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from drevo.codegen.call.function import Function, Spec, obtain
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Program
from drevo.codegen.store import cache
from drevo.codegen.store.build import parse_manifest
from drevo.codegen.store.key import key as full_key

X = np.random.default_rng(0).normal(size=(20, 2))
SPEC = Spec()


def program(scale: float = 2.0) -> Program:
    g = Graph()
    a, b = g.input("a"), g.input("b")
    port = Input("x", (2,), (a.edge >> 1, b.edge >> 1))
    return Program("small", g, (port,), (), (Output("y", (2,), (g.edge(scale * a * b), g.edge(a.sin() + b))),))


def want(scale: float = 2.0) -> np.ndarray:
    return np.stack([scale * X[:, 0] * X[:, 1], np.sin(X[:, 0]) + X[:, 1]], axis=1)


class Maker:
    """Counts how often the program had to be made."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Program:
        self.calls += 1
        return program()


def fetch(key: str = "key", make: Maker | None = None) -> Function:
    f = obtain(key, make or Maker(), SPEC)
    np.testing.assert_allclose(f(X), want(), rtol=0, atol=1e-15)
    return f


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / f"objects-{cache.CACHE_FORMAT}"


def entry(folder: Path) -> Path:
    """The only one."""
    (path,) = folder.glob("*.bin")
    return path


def kept(folder: Path, key: str = "key", spec: Spec = SPEC, part: str = "") -> Path:
    """Where a function is kept, or the object of a part of it."""
    return folder / f"{cache.digest(full_key(key, spec) + part).hex()}.bin"


def test_warm_means_not_made(folder: Path) -> None:
    make = Maker()
    cold, warm = fetch(make=make), fetch(make=make)
    assert make.calls == 1 and warm.backend == "native"
    assert cold.manifest == warm.manifest and cold(X).tobytes() == warm(X).tobytes()
    assert folder.stat().st_mode & 0o777 == 0o700 and kept(folder).stat().st_mode & 0o077 == 0


def test_manifest_survives_text() -> None:
    f = fetch()
    assert parse_manifest(f.manifest.text()) == f.manifest


def test_another_question_is_another_entry(folder: Path) -> None:
    fetch("a"), fetch("b"), obtain("a", program, Spec(check=False)), obtain("a", program, SPEC, cache=False)
    found = set(folder.glob("*.bin"))
    assert {kept(folder, "a"), kept(folder, "b"), kept(folder, "a", Spec(check=False))} <= found
    assert cache.clear() == len(found) and cache.clear() == 0


DAMAGE = {
    "empty": lambda x: b"",
    "cut in the head": lambda x: x[:20],
    "cut in the middle": lambda x: x[: len(x) // 2],
    "one byte short": lambda x: x[:-1],
    "one byte more": lambda x: x + b"\0",
    "wrong magic": lambda x: b"D" * 8 + x[8:],
    "future version": lambda x: x[:8] + b"\x63" + x[9:],
    "another key": lambda x: x[:12] + bytes(32) + x[44:],
    "garbage": lambda x: os.urandom(5000),
    "zeros": lambda x: bytes(len(x)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_a_miss(kind: str, folder: Path) -> None:
    """Of a function, and of the object of a batch."""
    fetch()
    for path in (kept(folder), kept(folder, part="\ndrive")):
        whole = path.read_bytes()
        path.write_bytes(DAMAGE[kind](whole))
        make = Maker()
        fetch(make=make)
        assert make.calls == 1 and path.read_bytes()[:44] == whole[:44]


def test_every_kind_of_flip_is_found(folder: Path) -> None:
    assert cache.write_entry("k", os.urandom(3000))
    path = entry(folder)
    whole = path.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(whole), 300):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        assert cache.read_entry("k") is None and not path.exists()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        assert cache.read_entry("k") is None


def test_swapped_payloads(folder: Path) -> None:
    cache.write_entry("a", b"1")
    cache.write_entry("b", b"2")
    paths = [folder / f"{cache.digest(k).hex()}.bin" for k in "ab"]
    data = [p.read_bytes() for p in paths]
    for p, d in zip(paths, reversed(data)):
        p.write_bytes(d)
    assert cache.read_entry("a") is None and cache.read_entry("b") is None


def test_a_payload_that_is_no_code(folder: Path) -> None:
    for payload in (b"", b"\xff" * 8, (5).to_bytes(8, "little") + b"[1,2]", (2).to_bytes(8, "little") + b"{}abc"):
        cache.write_entry(full_key("key", SPEC), payload)
        make = Maker()
        fetch(make=make)
        assert make.calls == 1


def test_not_private_is_not_used(folder: Path) -> None:
    fetch()
    folder.chmod(0o755)
    make = Maker()
    fetch(make=make)
    assert make.calls == 1 and cache.directory() is None
    folder.chmod(0o700)
    moved = folder.with_name("elsewhere")
    folder.rename(moved)
    folder.symlink_to(moved)
    assert cache.directory() is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners and modes are POSIX")
def test_parents_that_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = tmp_path / "shared"
    where = outer / "mine" / "cache"
    monkeypatch.setenv("DREVO_CACHE_DIR", str(where))
    where.mkdir(parents=True)
    for mode, used in ((0o755, True), (0o777, False), (0o1777, True), (0o757, False), (0o711, True)):
        outer.chmod(mode)
        assert (cache.directory() is not None) == used, oct(mode)
        assert cache.write_entry("k", b"x") == used and (cache.read_entry("k") == b"x") == used, oct(mode)
    linked = tmp_path / "linked"
    linked.symlink_to(where)
    monkeypatch.setenv("DREVO_CACHE_DIR", str(linked))
    assert cache.read_entry("k") == b"x"
    outer.chmod(0o777)
    assert cache.read_entry("k") is None
    outer.chmod(0o755)
    if os.getuid() == 0:
        os.chown(outer, 12345, -1)
        assert cache.read_entry("k") is None and cache.directory() is None


def test_what_was_not_written_here_is_not_read(folder: Path, tmp_path: Path) -> None:
    """Links, pipes, and files that another user owns or may write."""
    assert cache.write_entry("k", b"good")
    path = entry(folder)
    good = path.read_bytes()
    path.unlink()
    other = tmp_path / "other.bin"
    other.write_bytes(good)
    other.chmod(0o600)
    path.symlink_to(other)
    assert cache.read_entry("k") is None
    path.unlink()
    os.mkfifo(path)  # does not block
    assert cache.read_entry("k") is None
    path.unlink()
    shutil.copy(other, path)
    assert cache.read_entry("k") == b"good"
    path.chmod(0o622)
    assert cache.read_entry("k") is None
    if os.getuid() == 0:
        path.chmod(0o600)
        os.chown(path, 12345, -1)
        assert cache.read_entry("k") is None


def test_without_owners_and_modes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setattr(cache, "_ON_WINDOWS", True)
    make = Maker()
    fetch(make=make), fetch(make=make)
    assert make.calls == 1 and cache.writable() == folder and cache.clear() >= 1


def test_no_place_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    for bad in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nowhere", "bad\0name"):
        monkeypatch.setattr(cache, "base_directory", lambda bad=bad: Path(bad))
        assert cache.directory() is None and cache.read_entry("k") is None and not cache.write_entry("k", b"x")
        fetch()
        assert cache.clear() == 0


def test_deleted_between_calls(folder: Path) -> None:
    fetch()
    shutil.rmtree(folder)
    make = Maker()
    fetch(make=make)
    assert make.calls == 1 and kept(folder).exists()


@pytest.mark.parametrize("name", ["fsync", "replace", "fdopen"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_disk_errors(name: str, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        if name == "fdopen":
            os.close(args[0])  # type: ignore[arg-type]
        raise OSError(code, "no")

    monkeypatch.setattr(cache.os, name, fail)
    fetch()
    monkeypatch.undo()
    assert not list(folder.glob("*")) if folder.exists() else True


def test_unreadable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch()

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(cache.os, "open", fail)
    assert cache.read_entry(full_key("key", SPEC)) is None


def test_orphans_and_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_entry("old", bytes(1000))
    old, orphan, young = entry(folder), folder / "tmp-dead", folder / "tmp-busy"
    for path in (orphan, young):
        path.write_bytes(b"x")
    past = time.time() - 2 * 3600
    os.utime(orphan, (past, past))
    os.utime(old, (past, past))
    monkeypatch.setattr(cache, "MAX_CACHE_BYTES", 1500)
    cache.write_entry("new", bytes(1000))
    assert not orphan.exists() and young.exists() and not old.exists() and cache.read_entry("new") == bytes(1000)
    monkeypatch.setattr(cache, "LARGEST", 500)
    assert not cache.write_entry("huge", bytes(1000))


def test_where_it_lives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DREVO_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.base_directory() == tmp_path / "drevo"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.base_directory() == Path.home() / ".cache" / "drevo"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.base_directory() == Path.home() / "Library" / "Caches" / "drevo"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache.base_directory() == tmp_path / "drevo" / "cache"


WORKER = """
import sys; sys.path.insert(0, sys.argv[1])
import test_cache as t
for key in "abcd":
    for _ in range(3):
        t.fetch(key)
"""


def test_many_processes_at_once(folder: Path) -> None:
    here = str(Path(__file__).parent)
    jobs = [subprocess.Popen([sys.executable, "-c", WORKER, here]) for _ in range(4)]
    assert [j.wait(timeout=60) for j in jobs] == [0] * 4
    assert all(kept(folder, key, part=part).exists() for key in "abcd" for part in ("", "\ndrive"))
    assert not list(folder.glob("tmp-*"))


def test_a_warm_process_emits_nothing() -> None:
    fetch()
    text = WORKER.splitlines()[1] + (
        "\nimport test_cache as t\nm = t.Maker(); t.fetch('key', m); assert m.calls == 0\n"
        "assert 'drevo.compiler.trace' not in sys.modules and 'drevo.codegen.llvm.module' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", text, str(Path(__file__).parent)], timeout=60)
    assert done.returncode == 0
