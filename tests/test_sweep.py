"""Sweeps: the same bits for any pool, after any interruption; laws of the sampling; refusals."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.errors import InputError

PLAN = {"robot": "puma560", "quantity": "gravity", "samples": 5000, "shard": 700, "seed": 3, "locate": True}


def result(folder: Path) -> bytes:
    return (folder / "result.npz").read_bytes()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sweep by one process, at one go."""
    folder = tmp_path_factory.mktemp("alone")
    drevo.sweep.run(PLAN, folder)
    return folder


def test_results_are_those_of_numpy(alone: Path) -> None:
    x = drevo.streaming.inputs(drevo.load("puma560"), "gravity", 5000, seed=3)
    g = drevo.load("puma560").gravity(x["q"])
    with np.load(alone / "result.npz") as found:
        assert np.array_equal(found["min"], g.min(0)) and np.array_equal(found["at_max"], g.argmax(0))
        assert np.allclose(found["mean"], g.mean(0), rtol=1e-12, atol=1e-15)
        assert np.allclose(found["std"], g.std(0), rtol=1e-9, atol=1e-12)
        assert found["samples"] == 5000


def test_threads_of_an_executor_give_the_same_bits(alone: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        drevo.sweep.run(PLAN, tmp_path, pool=pool, workers=3)
    assert result(tmp_path) == result(alone)


@pytest.mark.needs("joblib")
@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_processes_give_the_same_bits(alone: Path, tmp_path: Path, workers: int) -> None:
    drevo.sweep.run(PLAN, tmp_path, pool="joblib", workers=workers)
    assert result(tmp_path) == result(alone)


@pytest.mark.needs("ray")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(alone: Path, tmp_path: Path, workers: int) -> None:
    """A real cluster of Ray on this machine, in a process of its own."""
    script = (
        "import sys, json, drevo\n"
        "drevo.sweep.run(json.loads(sys.argv[1]), sys.argv[2], pool='ray', workers=int(sys.argv[3]))\n"
    )
    words = [sys.executable, "-c", script, json.dumps(PLAN), str(tmp_path), str(workers)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert result(tmp_path) == result(alone)


def test_killed_again_and_again_it_ends_alike(alone: Path, tmp_path: Path) -> None:
    """Six processes are killed at random; what they left is kept, a torn line and a torn shard are not."""
    (tmp_path / "plan.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in PLAN.items()))
    words = [sys.executable, "-m", "drevo", "sweep", str(tmp_path / "plan.toml"), "-o", str(tmp_path / "out")]
    draw = random.Random(0)
    for _ in range(6):
        resume = ["--resume"] if (tmp_path / "out/manifest.jsonl").exists() else []
        process = subprocess.Popen([*words, *resume], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0.2, 0.8))
        process.send_signal(signal.SIGKILL)
        process.wait()
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    if (out / "manifest.jsonl").exists():
        with open(out / "manifest.jsonl", "a") as file:
            file.write('{"shard": 2, "fi')
        for shard in sorted((out / "shards").glob("*.npz"))[:1]:
            shard.write_bytes(shard.read_bytes()[:-1])
    again = ["--resume"] if (out / "manifest.jsonl").exists() else []
    done = subprocess.run([*words, *again], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert result(out) == result(alone) and "5000 samples" in done.stdout


def test_a_shard_is_the_same_twice(alone: Path, tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    plan = drevo.sweep.read_plan(PLAN)
    first, second = (drevo.sweep.run_shard(plan, 3, tmp_path) for _ in range(2))
    rows = [json.loads(x) for x in (alone / "manifest.jsonl").read_text().splitlines()]
    assert first == second == next(r for r in rows if r.get("shard") == 3)


def test_methods_and_measures(tmp_path: Path) -> None:
    robot = drevo.load("scara")
    grid = drevo.sweep.run(
        {"robot": robot, "quantity": "gravity", "method": "grid", "grid": {"q": [1, 3, 2, 1]}}, tmp_path / "grid"
    )
    assert grid.samples == 6
    q = np.random.default_rng(0).uniform(-1, 1, (50, 4))
    np.save(tmp_path / "q.npy", q)
    np.savetxt(tmp_path / "q.csv", q, delimiter=",", fmt="%.17g")
    for ending in ("npy", "csv"):
        plan = {"robot": robot, "quantity": "pose", "options": {"link": "link4"}, "method": "table",
                "table": str(tmp_path / f"q.{ending}"), "shard": 20,
                "histogram": {"entries": [3, 7], "lower": [-2, -2], "upper": [2, 2], "bins": [4, 5]}}  # fmt: skip
        made = drevo.sweep.run(plan, tmp_path / ending)
        T = robot.pose(q, "link4")
        assert made.histogram is not None and made.histogram.shape == (4, 5) and made.histogram.sum() == 50
        assert np.array_equal(made.max["T"], T.max(0))
    plan = {"robot": robot, "quantity": "jacobian", "options": {"link": "link4"}, "samples": 40,
            "measure": "manipulability"}  # fmt: skip
    assert drevo.sweep.run(plan, tmp_path / "m").max["manipulability"].shape == ()


@pytest.mark.parametrize(
    "change, said",
    [
        ({"quantity": "gravty"}, "did you mean 'gravity'"),
        ({"samples": 0}, "sweep: samples is 0"),
        ({"method": "grid"}, "sweep: method 'grid' needs 'grid'"),
        ({"grid": {"q": 3}}, "takes no 'grid'"),
        ({"sample": 3}, "the plan's key.*did you mean 'samples'"),
        ({"ranges": {"w": 1}}, "takes no 'w'"),
        ({"measure": "manipulability"}, "a measure of a jacobian"),
        ({"histogram": {"entries": [9], "lower": [0], "upper": [1], "bins": [3]}}, "entry 9 of 6"),
    ],
)
def test_plans_that_are_refused(change: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(drevo.DrevoError, match=said):
        drevo.sweep.run(PLAN | change, tmp_path)


def test_folders_that_are_refused(alone: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds a sweep; go on"):
        drevo.sweep.run(PLAN, alone)
    with pytest.raises(InputError, match="holds a sweep of another plan"):
        drevo.sweep.run(PLAN | {"seed": 4}, alone, resume=True)
    with pytest.raises(InputError, match=r"sweep: pool.*'ray'"):
        drevo.sweep.run(PLAN, tmp_path, pool="rays")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is no folder to write to"):
        drevo.sweep.run(PLAN, tmp_path / "file")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/manifest.jsonl").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="a pipe or a device"):
        drevo.sweep.run(PLAN, tmp_path / "out", resume=True)


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, sync = [4], os.fsync

    def full(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"cannot be written: No space left"):
        drevo.sweep.run(PLAN, tmp_path)
    assert not list((tmp_path / "shards").glob("*.part"))
    left[0] = 10**6
    drevo.sweep.run(PLAN, tmp_path, resume=True)


def test_the_example_runs(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(drevo.sweep.EXAMPLE.replace("1_000_000", "1000"))
    made = drevo.sweep.run(tmp_path / "plan.toml", tmp_path / "out")
    assert made.samples == 1000 and made.max["tau"].shape == (6,)


def test_plans_are_told_apart_to_the_last_bit(tmp_path: Path) -> None:
    """Arrays that print alike, also with few digits or more than a thousand numbers, are other plans."""
    a, b = np.full(6, 1.0), np.full(6, 1.0 + 2**-52)
    long = np.zeros(3000)
    other = long.copy()
    other[1500] = 1.0
    given = [{"q": a}, {"q": b}, {"q": (-a, a)}, {"q": (-a, b)}, {"x": long}, {"x": other}, {"x": [a]}]
    plans = [{k: x} for k in ("ranges", "options") for x in [*given, {"q": a.astype("f4")}]]
    with np.printoptions(precision=3):
        assert len({drevo.sweep.read_plan(PLAN | x).digest for x in plans}) == len(plans)
        same = drevo.sweep.read_plan(PLAN | {"ranges": {"q": (-a, a)}}).digest
    assert same == drevo.sweep.read_plan(PLAN | {"ranges": {"q": (-a, a.copy())}}).digest
    few = PLAN | {"samples": 700}
    first = drevo.sweep.run(few | {"ranges": {"q": (-a, a)}}, tmp_path / "a")
    second = drevo.sweep.run(few | {"ranges": {"q": (-a, a + 1e-9)}}, tmp_path / "b")
    assert not np.array_equal(first.mean["g"], second.mean["g"])
    with pytest.raises(InputError, match="another plan"):
        drevo.sweep.run(few | {"ranges": {"q": (-a, a + 1e-9)}}, tmp_path / "a", resume=True)
    with pytest.raises(InputError, match="the plan holds <object"):
        drevo.sweep.run(PLAN | {"options": {"x": object()}}, tmp_path / "c")


@pytest.fixture
def copied(alone: Path, tmp_path: Path) -> Path:
    shutil.copytree(alone, tmp_path / "out")
    return tmp_path / "out"


def relisted(folder: Path, k: int, **changed: object) -> None:
    """The manifest, whose row of shard k has other values."""
    file = folder / "manifest.jsonl"
    rows = [json.loads(x) for x in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(r | changed if r.get("shard") == k else r) + "\n" for r in rows))


def swapped(folder: Path) -> None:
    """Shard 2 under the name and in the row of shard 1."""
    data = (folder / "shards/00000002.npz").read_bytes()
    (folder / "shards/00000001.npz").write_bytes(data)
    relisted(folder, 1, sha256=hashlib.sha256(data).hexdigest())


def foreign(folder: Path) -> None:
    np.savez(folder / "shards/00000001.npz", x=np.zeros(3))
    relisted(folder, 1, sha256=hashlib.sha256((folder / "shards/00000001.npz").read_bytes()).hexdigest())


def no_archive(folder: Path) -> None:
    (folder / "shards/00000001.npz").write_bytes(b"PK\3\4")
    relisted(folder, 1, sha256=hashlib.sha256(b"PK\3\4").hexdigest())


def test_a_pipe_in_the_place_of_a_shard_is_one_sentence(copied: Path) -> None:
    (copied / "shards/00000001.npz").unlink()
    os.mkfifo(copied / "shards/00000001.npz")
    with (
        pytest.warns(drevo.DrevoWarning),
        pytest.raises(InputError, match=r"00000001.npz' is a folder, pipe or dev"),
    ):
        drevo.sweep.run(PLAN, copied, resume=True)


@pytest.mark.parametrize(
    "damage, said",
    [
        (swapped, "is not shard 1 of this plan"),
        (foreign, "is not shard 1 of this plan"),
        (no_archive, "is no readable .npz"),
        (lambda folder: relisted(folder, 1, sha256=3), "is not the one that was computed"),
        (lambda folder: (folder / "shards/00000001.npz").unlink(), "No such file"),
        (lambda folder: shutil.rmtree(folder / "shards"), "No such file"),
    ],
)
def test_a_damaged_shard_is_computed_again(damage: Callable, said: str, alone: Path, copied: Path) -> None:
    damage(copied)
    with pytest.warns(drevo.DrevoWarning, match=rf"00000\d.npz.*{said}.*it is computed again"):
        drevo.sweep.run(PLAN, copied, resume=True)
    assert result(copied) == result(alone)


@pytest.mark.parametrize(
    "line",
    [
        '{"shard": [1]}',
        '{"shard": 99, "sha256": ""}',
        '{"shard": true}',
        '"x"',
        "[" * 10**5,
        "\0\xff",
        "{}",
        '{"shard": -1}',
    ],
)
def test_damaged_lines_of_a_manifest_cost_their_shards_only(line: str, alone: Path, copied: Path) -> None:
    file = copied / "manifest.jsonl"
    head, _, *rest = file.read_text().splitlines()
    file.write_text("\n".join([head, line, *rest]))
    drevo.sweep.run(PLAN, copied, resume=True)
    assert result(copied) == result(alone)


def test_an_interruption_keeps_what_was_done_and_a_manifest_that_is_whole(alone: Path, tmp_path: Path) -> None:
    """Wherever the manifest is torn behind its first line, no shard is computed again."""

    def stop(done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drevo.sweep.run(PLAN, tmp_path, progress=stop)
    (line,) = (tmp_path / "manifest.jsonl").read_text().splitlines()
    assert json.loads(line)["shards"] == 8 and len(list((tmp_path / "shards").iterdir())) == 4
    computed = list[int]()
    drevo.sweep.run(PLAN, tmp_path, resume=True, progress=lambda done, total: computed.append(done))
    assert computed == [5, 6, 7, 8] and result(tmp_path) == result(alone)
    whole = (tmp_path / "manifest.jsonl").read_bytes()
    assert whole == (alone / "manifest.jsonl").read_bytes()
    for end in range(len(line), len(whole), 37):
        (tmp_path / "manifest.jsonl").write_bytes(whole[:end])
        drevo.sweep.run(PLAN, tmp_path, resume=True, progress=stop)
    assert result(tmp_path) == result(alone)


def test_a_shard_that_is_changed_is_computed_again_without_its_digest_too(alone: Path, copied: Path) -> None:
    file = copied / "manifest.jsonl"
    file.write_text(file.read_text().splitlines()[0] + "\n")
    shard = copied / "shards/00000002.npz"
    data, start = bytearray(shard.read_bytes()), 0
    for place in range(0, len(data), 61):
        data[place] ^= 255
        shard.write_bytes(data)
        data[place] ^= 255
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            drevo.sweep.run(PLAN, copied, resume=True)
        start += len(told)
        assert result(copied) == result(alone)
        file.write_text(file.read_text().splitlines()[0] + "\n")
    assert start > 10


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"shard": 0}', "\n" * 5])
def test_a_manifest_without_its_plan_is_one_sentence(text: str, copied: Path) -> None:
    (copied / "manifest.jsonl").write_text(text)
    with pytest.raises(InputError, match=r"manifest.jsonl' is damaged.*name another folder, or delete"):
        drevo.sweep.run(PLAN, copied, resume=True)


def test_a_shard_that_changes_while_it_is_joined_is_one_sentence(tmp_path: Path) -> None:
    def spoil(done: int, total: int) -> None:
        if done == total:
            (tmp_path / "shards/00000003.npz").write_bytes(b"")

    with pytest.raises(InputError, match=r"00000003.npz.*go on by resume"):
        drevo.sweep.run(PLAN, tmp_path, progress=spoil)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_tables_that_are_no_plain_files_are_refused(ending: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe.{ending}")
    (tmp_path / f"folder.{ending}").mkdir()
    (tmp_path / f"short.{ending}").write_bytes(b"\x93NUMPY\1\0")
    for name in ("pipe", "folder", "short", "none"):
        plan = {
            "robot": "scara",
            "quantity": "gravity",
            "method": "table",
            "table": str(tmp_path / f"{name}.{ending}"),
        }
        with pytest.raises(InputError, match=f"sweep: table '.*{name}.{ending}'"):
            drevo.sweep.run(plan, tmp_path / "out")
