"""What J^T w adds to inverse dynamics: time of value and product over time of the value, interleaved in one run.

python benchmarks/products.py [ROBOT ...]

One core. A batch is batch-last and packed, of three sizes that stay in cache, the fastest counts; one state is one
call with arrays and `out=`. "inertial": with the gradient by all masses, centres and inertias too.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DREVO_NUM_THREADS", "1")

import numpy as np

import drevo

sys.path.insert(0, str(Path(__file__).parent))
from contenders import CACHED, plain, timed
from robots import SUBJECTS, data_folder, plain_file

WINDOW, ROUNDS = 1e-4, 1500  # seconds; short, so that some are free of whatever else the machine does
WAYS: dict[str, dict[str, Any]] = {
    "value": {},
    "value and J^T w": {"product": "value_and_vjp"},
    "inertial": {"product": "value_and_vjp", "parameters": ["*.mass", "*.com.*", "*.inertia.*"]},
}


def loaded(name: str) -> drevo.Robot:
    """Of the benchmarks' robots, or the package's humanoid G1, or one of Drevo's own."""
    if name == "g1":
        return drevo.load(data_folder() / "g1_description/urdf/g1_29dof_rev_1_0.urdf", base="floating")
    found = next((s for s in SUBJECTS if s.name == name), None)
    return drevo.load(plain_file(found), base=found.base) if found else drevo.load(name)


def window(robot: drevo.Robot, f: Any, size: int) -> tuple[Any, int, int]:
    """A call on so many bytes, or on one state; how often it fits a window; its states."""
    rng, some = np.random.default_rng(0), [s for _, s in (*f.inputs, *f.outputs)]
    count = (size // (8 * sum(map(np.prod, some))) // 8 | 1) * 8 if size else 1
    rows = [robot.random(rng, count) if n == "q" else rng.normal(size=(count, *s)) for n, s in f.inputs]
    if "parameters" in dict(f.inputs):
        rows[[n for n, _ in f.inputs].index("parameters")][:] = [x for _, x in f.parameters]
    args = [np.ascontiguousarray(x.T) if size else x[0] for x in rows]
    out = plain(f(*args))
    call, work = f.fast or f, (*args, out)
    once = min(timed(lambda: call(*work)) for _ in range(9))
    return lambda n: timed(lambda: call(*work), n), max(1, int(WINDOW / once)), count


def measured(robot: drevo.Robot) -> dict[tuple[str, bool], float]:
    """Nanoseconds a state of each way, of a batch or of one state."""
    windows = []
    for way, options in WAYS.items():
        many = drevo.compile(robot, "inverse_dynamics", layout="batch_last", packed=True, **options)
        one = drevo.compile(robot, "inverse_dynamics", **options)
        windows += [((way, True), window(robot, many, size)) for size in CACHED]
        windows += [((way, False), window(robot, one, 0))]
    least = {key: float("inf") for key, _ in windows}
    for _ in range(ROUNDS):
        for key, (run, calls, states) in windows:
            least[key] = min(least[key], 1e9 * run(calls) / calls / states)
    return least


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore", drevo.DrevoWarning)
    print("| | operations | batch, ns (times the value) | one state, ns |\n|---|--:|--:|--:|")
    for name in sys.argv[1:] or ("panda", "puma560", "go2", "g1", "talos"):
        robot = loaded(name)
        least, own = measured(robot), 0
        for way, options in WAYS.items():
            counts = drevo.compile(robot, "inverse_dynamics", **options).counts
            total = counts["add"] + counts["mul"]
            own = own or total
            cells = [f"{least[way, k]:.1f} ({least[way, k] / least['value', k]:.2f})" for k in (True, False)]
            print(f"| {name}, {way} | {total} ({total / own:.2f}) | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
