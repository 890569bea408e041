"""Robots that eight threads share: every public method, the collector at every allocation, memory that is checked.

No thread ends the process, sees the numbers of another, or leaves memory behind.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo

SCRIPT = Path(__file__).with_name("many_threads.py")
GROWS = 10.0  # MB by which the memory in use differs between rounds


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")
@pytest.mark.parametrize(
    ("seconds", "robots"),
    [(4, ["three-link"]), pytest.param(600, ["biped", "puma560", "three-link"], marks=pytest.mark.nightly)],
)
def test_every_method_of_shared_robots(seconds: int, robots: list[str]) -> None:
    env = dict(os.environ, PYTHONMALLOC="debug", OMP_NUM_THREADS="1")
    call = [sys.executable, "-X", "dev", str(SCRIPT), str(seconds), *robots]
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=300 + 2 * seconds, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == [] and found["kinds"] > 100 and found["calls"] > 100
    used, quarter = found["MB"], len(found["MB"]) // 4
    if quarter > 1:  # a short run only begins
        assert np.median(used[-quarter:]) < np.median(used[quarter : 2 * quarter]) + GROWS, used


def test_the_builtin_of_a_call_with_forces_is_given_back() -> None:
    """A call with f_ext holds the builtin of its links while it runs, and no longer; others may replace it."""
    robot, x = drevo.load("three-link"), np.full(3, 0.3)
    link = robot.link_names[-1]
    want = robot.inverse_dynamics(x, x, x, f_ext={link: np.ones(6)})
    known: dict[str, Any] = getattr(drevo.compile(robot, "inverse_dynamics").extra, "known")  # noqa: B009
    before = sys.getrefcount(known[link])
    for _ in range(100):
        assert np.array_equal(robot.inverse_dynamics(x, x, x, f_ext={link: np.ones(6)}), want)
    after = sys.getrefcount(known[link])
    assert after == before


def test_threads_continue_from_one_solution() -> None:
    """`again` works in the memory of the planner that made the solution: one thread at a time."""
    robot = drevo.load("three-link")
    solved = drevo.control.optimise(
        robot,
        lambda pose, q, v, tau, t: sum(x * x for x in (*q, *v, *tau)),
        [0.3, 0.1, 0.2],
        np.zeros(3),
        60,
        0.01,
    )
    starts = np.random.default_rng(0).normal(0.0, 0.2, (16, 3))
    want = [solved.again(q, np.zeros(3), iterations=3).tau for q in starts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda q: solved.again(q, np.zeros(3), iterations=3).tau, list(starts) * 4))
    assert all(np.array_equal(x, y) for x, y in zip(found, want * 4))


def test_a_solution_keeps_its_machine_code() -> None:
    """What a robot has made may be let go, and of two threads that make it one's is; a planner holds its own."""
    robot, zero = drevo.load("three-link"), np.zeros(3)
    solved = drevo.control.optimise(
        robot,
        lambda pose, q, v, tau, t: sum(x * x for x in (*q, *v, *tau)),
        [0.3, 0.1, 0.2],
        zero,
        5,
        0.01,
        iterations=2,
    )
    want = solved.again(np.ones(3), zero, iterations=3).tau
    robot.__dict__["_made"].clear()
    gc.collect()
    assert np.array_equal(solved.again(np.ones(3), zero, iterations=3).tau, want)
