"""What is compiled for a robot is made once, and goes when the robot goes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.codegen.store import build
from drevo.constraint.kinds import Contact
from drevo.control import linearise


def used(robot: drevo.Robot) -> None:
    """Calls of every room that compiles something of its own for a robot."""
    zero = np.zeros(robot.nv)
    link = robot.link_names[-1]
    robot.pose(robot.neutral(), link)
    robot.inverse_dynamics(robot.neutral(), zero, zero, f_ext={link: np.zeros(6)})
    linearise(robot, robot.neutral() + 0.3, zero, zero, contacts=[Contact(link, (0.0, 0.0, 0.1))])
    drevo.simulate.simulate(robot, robot.neutral(), duration=0.01, dt=0.01)


def test_a_second_use_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = drevo.load("three-link")
    used(robot)
    asked: list[object] = []
    for name in ("build", "_unpack"):
        monkeypatch.setattr(build, name, lambda *given: asked.append(given))
    used(robot)
    assert not asked


def test_a_robot_goes_with_all_that_was_made_for_it() -> None:
    robot = drevo.load("three-link")
    used(robot)
    gone = weakref.ref(robot)
    del robot
    gc.collect()
    assert gone() is None


ENDS = """
import gc, numpy as np, drevo
gc.disable()
for k in range(3):
    f = drevo.compile(drevo.load("three-link"), "gravity")
    f(np.zeros(3))
    circle = [f.fast.__self__, f.fast, f]  # emptied in this order, before the builtin ends
    circle.append(circle)
    del f, circle
    gc.collect()
"""


def test_a_builtin_ends_after_what_it_belongs_to() -> None:
    """The interpreter reads its definition then; where the C library can, it overwrites what is freed."""
    env = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "255", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    subprocess.run([sys.executable, "-c", ENDS], env=os.environ | env, check=True)


LAST = """
import builtins, os, threading, time, numpy as np, drevo
from drevo.codegen.store.memo import LOCK

class Late:
    f, zero, write = drevo.compile(drevo.load("three-link"), "gravity", cache=False), np.zeros(3), os.write

    def __del__(self):
        try:
            self.f(self.zero)  # its first call, which would compile
        except RuntimeError as error:
            self.write(1, str(error).encode())

def held():
    with LOCK:
        begun.set()
        time.sleep(600)

builtins.late, begun = Late(), threading.Event()  # these end last
threading.Thread(target=held, daemon=True).start()
begun.wait()
"""


def test_a_process_ends_though_a_thread_compiles() -> None:
    """Threads that end with the interpreter leave no lock: what finalizers call waits for none."""
    done = subprocess.run([sys.executable, "-c", LAST], timeout=100, capture_output=True, text=True, check=True)
    assert "nothing more is compiled" in done.stdout


def test_a_linear_model_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later robot of the same description takes it from the cache, wherever the constraints' points are."""
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))

    def model_at(x: float) -> np.ndarray:
        robot = drevo.load("three-link")
        q, zero = robot.neutral() + 0.3, np.zeros(robot.nv)
        contact = Contact(robot.link_names[-1], (x, 0.0, 0.1))
        return linearise(robot, q, zero, zero, contacts=[contact]).A

    first = model_at(0.1)
    with monkeypatch.context() as patch:
        patch.setattr(import_module("drevo.control.linear_kernels"), "held_program", None)
        np.testing.assert_array_equal(model_at(0.1), first)
        assert not np.array_equal(model_at(0.2), first)
