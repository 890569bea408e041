"""Sweeps: the same bits for any pool, after any interruption; laws of the sampling; refusals."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.apps.sweep.sampling import _permuted
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


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 1000])
def test_a_hypercube_has_every_part_once(size: int) -> None:
    index = np.arange(size, dtype=np.uint64)
    found = _permuted(index, size, 7, 1)
    assert sorted(found) == list(range(size))
    assert size < 16 or not np.array_equal(found, _permuted(index, size, 7, 2))


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
            "measure": "manipulability", "method": "latin_hypercube"}  # fmt: skip
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
