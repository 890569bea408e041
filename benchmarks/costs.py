"""What comes before the first number: compile times, memory, cold starts; each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cases import Case

ALL = ["pose", "inverse_dynamics", "mass_matrix", "forward_dynamics",
       "inverse_dynamics_derivatives", "forward_dynamics_derivatives"]  # fmt: skip
COMPILES = (
    ("panda", ALL), ("go2", ALL), ("talos", ALL[1:2] + ALL[3:4]), ("talos", ALL[4:5]), ("talos", ALL[5:]),
)  # fmt: skip
STARTS = 7

COMPILE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import drevo, numpy as np
path, base, names = sys.argv[1], sys.argv[2], sys.argv[3].split()
robot = drevo.load(path, base=base)
drevo.compile(drevo.load("puma560"), "gravity", cache=False)  # imports, LLVM
batch = {"q": np.repeat(robot.neutral()[:, None], 8, 1)}
start = time.process_time()
for name in names:
    options = {"link": robot.link_names[-1]} if name == "pose" else {}
    f = drevo.compile(robot, name, layout="batch_last", packed=True, cache=False, **options)
    f(*(batch.get(x, np.zeros((*size, 8))) for x, size in f.inputs))  # machine code is made at the first call
seconds = time.process_time() - start
peak = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([seconds, int(peak[0]) / 1024]))
"""
FIRST = """
import sys, drevo, numpy as np, warnings
warnings.simplefilter("ignore")
robot = drevo.load(sys.argv[1])
x = np.zeros(robot.nv)
robot.inverse_dynamics(x, x, x)
"""
PIN = """
import sys, numpy as np, pinocchio as pin
model = pin.buildModelFromUrdf(sys.argv[1])
x = np.zeros(model.nv)
pin.rnea(model, model.createData(), x, x, x)
"""


def compiles(cases: dict[str, Case]) -> list[dict[str, Any]]:
    """Seconds of the processor and megabytes of some compilations and first batches, nothing cached; the lesser of
    two."""
    rows = []
    for robot, names in COMPILES:
        case = cases[robot]
        given = [str(case.path), case.subject.base, " ".join(names)]
        runs = [json.loads(_run(COMPILE, *given)) for _ in range(2)]
        rows.append({"robot": robot, "quantities": names, "seconds": min(r[0] for r in runs), "MB": runs[0][1]})
    return rows


def cold_starts(case: Case) -> dict[str, float]:
    """Seconds from the start of a process to the first inverse dynamics of the Panda; the least of some.

    "..., processor": what of them the processor was at work, which a busy machine does not stretch.
    """
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="drevo-bench-") as warm:
        _run(FIRST, str(case.path), cache=warm)
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory(prefix="drevo-bench-") as empty:
                runs = {
                    "python": ("", None), "numpy": ("import numpy", None), "pin": (PIN, None),
                    "drevo, empty cache": (FIRST, empty), "drevo, warm cache": (FIRST, warm),
                }  # fmt: skip
                for name, (script, cache) in runs.items():
                    start, work = time.perf_counter(), _work()
                    _run(script, str(case.path), cache=cache)
                    spent = {name: time.perf_counter() - start, f"{name}, processor": _work() - work}
                    best.update({k: min(best.get(k, 1e9), x) for k, x in spent.items()})
    return best


def _work() -> float:
    """Seconds that the processor has spent on children."""
    times = os.times()
    return times.children_user + times.children_system


def _run(script: str, *given: str, cache: str | Path | None = None) -> str:
    env = dict(os.environ)
    if cache is not None:
        env["DREVO_CACHE_DIR"] = str(cache)
    return subprocess.run(
        [sys.executable, "-c", script, *given], env=env, check=True, capture_output=True, text=True
    ).stdout
