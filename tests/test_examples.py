"""Every example runs, and says what it promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
RUNS = {  # name -> arguments, what the last lines must hold
    "equations.py": (["."], ("written: arm.md", "written: arm.c", "@article{khalil1987")),
    "learn_inertia.py": ([], ("parameters: ",)),
    "learn_to_run.py": (["--seeds", "0", "--steps", "10000", "--episodes", "1"], ("in MuJoCo", "1 seeds in ")),
    "learn_to_turn.py": (
        ["--steps", "10000", "--episodes", "1"],
        ("learned in ", "and in MuJoCo ", "10 steps of 4 ms"),
    ),
    "learn_to_walk.py": (["--steps", "5000"], ("learned in ", "16 robots, 5 s: ")),
    "optimise_trajectory.py": ([], ("rounds of 1000 steps",)),
    "quadruped_step.py": ([], ("converged after", "the foot went 9.")),
    "reach.py": ([], ("converged after", "model-predictive control")),
    "regulator.py": ([], ("poles: [-", "rad after 10 s")),
    "streaming.py": (["puma560", "--samples", "1e5"], ("1e+05 times inverse_dynamics",)),
    "swing_up.py": ([], ("swung up in 2.0 s",)),
    "swing.py": (["0.5"], ("501 states by rk4", "@article{udwadia1992")),
}


def test_every_example_is_run() -> None:
    assert {p.name for p in FOLDER.glob("*.py")} == {*RUNS}


NEEDS = {
    "learn_inertia.py": ("torch",),
    "learn_to_run.py": ("torch",),
    "learn_to_turn.py": ("torch", "gymnasium_robotics"),
    "learn_to_walk.py": ("torch", "stable_baselines3"),
    "optimise_trajectory.py": ("jax",),
    "swing_up.py": ("casadi",),
}
LONG = {"quadruped_step.py"}  # compiles for 20 s


def marks(name: str) -> list[pytest.MarkDecorator]:
    needs = [pytest.mark.needs(*NEEDS[name])] if name in NEEDS else []
    return [*needs, *([pytest.mark.nightly] if name in LONG else [])]


MARKED = [pytest.param(n, marks=marks(n)) for n in RUNS]


@pytest.mark.parametrize("name", MARKED)
def test_example_runs(name: str, tmp_path: Path) -> None:
    words, wanted = RUNS[name]
    src = str(FOLDER.parent / "src")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [src, os.environ.get("PYTHONPATH", "")])))
    done = subprocess.run(
        [sys.executable, str(FOLDER / name), *words], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert all(x in done.stdout for x in wanted), done.stdout
