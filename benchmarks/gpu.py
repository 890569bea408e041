"""Kernels on a GPU of NVIDIA's, checked, beside the floor that its memory sets; writes gpu.md beside this file.

    python benchmarks/gpu.py [FOLDER OF ROBOTS]

Needs a GPU and its driver. The folder is that of the package example-robot-data, for machines without it. Every
launch is of fresh inputs, far more than the caches hold; events on the stream take the time; the floor is what a
copy of as many bytes takes there. Then small batches, of which a thread a sample fills but a part of a GPU.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from datetime import date
from itertools import cycle
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import drevo
from drevo.codegen.gpu.cuda import gpu_arrays

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
import gpu_budgets

ROWS = [(r, q) for r in gpu_budgets.ROBOTS for q in ("inverse_dynamics", "mass_matrix", "forward_dynamics")]
ROWS += [("panda", gpu_budgets.VJP), ("g1", gpu_budgets.VJP)]
SMALL = [(r, q) for r in ("go2", "g1", "talos") for q in ("inverse_dynamics", "forward_dynamics", gpu_budgets.VJP)]
SMALL_BATCHES = (1024, 4096, 16384)  # samples
RESULTS = Path(__file__).parent / "gpu.md"
BYTES, SETS, LAUNCHES, ROUNDS = 400e6, 3, 9, 5
CHECKED = 2000
REGISTERS, LOCAL_BYTES = 4, 3  # CUDA's numbers of a kernel's attributes
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def milliseconds(work: Callable[[], object]) -> float:
    """Of one of LAUNCHES, on the device: the least of some rounds."""
    cuda, found = gpu_arrays().cuda, []
    first, last = cuda.Event(), cuda.Event()
    for _ in range(ROUNDS):
        first.record()
        for _ in range(LAUNCHES):
            work()
        last.record()
        last.synchronize()
        found.append(cuda.get_elapsed_time(first, last) / LAUNCHES)
    return float(min(found))


def inputs(robot: drevo.Robot, f: Any, count: int, seed: int) -> list[np.ndarray[Any, Any]]:
    """Batch-last, in the function's dtype."""
    rng = np.random.default_rng(seed)
    made = [rng.random((prod(s), count), f.dtype) * 2 - 1 for _, s in f.inputs]
    if robot.nq > robot.nv:
        made[0][3:7] /= np.linalg.norm(made[0][3:7], axis=0)
    return made


def worst(robot: drevo.Robot, f: Any, same: drevo.Function) -> float:
    """Of some states, the difference from this processor in double, relative to a state's largest result."""
    x = inputs(robot, f, CHECKED, 1)
    wanted, found = same(*(a.astype("float64") for a in x)), f(*map(gpu_arrays().asarray, x))
    pairs = zip(found, wanted) if isinstance(found, tuple) else [(found, wanted)]
    return max(
        float(np.max(np.abs(a.get() - b).max(axis=0) / np.abs(b).max(axis=0).clip(1e-30))) for a, b in pairs
    )


def row(name: str, quantity: str, dtype: str, folder: str | None, size: float = BYTES, count: int = 0) -> str:
    """One line of the table, of a batch of `count` samples, else of `size` bytes."""
    robot, (wanted, *product) = gpu_budgets.loaded(name, folder), quantity.split()
    given: dict[str, Any] = {"product": product, "layout": "batch_last"}
    f: Any = drevo.compile(robot, wanted, target="cuda", dtype=dtype, **given)
    off = worst(robot, f, drevo.compile(robot, wanted, check=False, **given))
    each = f.dtype.itemsize * sum(prod(s) for _, s in (*f.inputs, *f.outputs))
    count = count or max(128, int(size / each) // 128 * 128)
    sets = cycle([[*map(gpu_arrays().asarray, inputs(robot, f, count, k))] for k in range(SETS)])
    outs = [gpu_arrays().empty((prod(s), count), dtype) for _, s in f.outputs]
    out: Any = outs[0] if len(outs) == 1 else outs
    took = milliseconds(lambda: f(*next(sets), out=out))
    floor = copied(count * each)
    attribute, rate = gpu_arrays().cuda.driver.funcGetAttribute, count / took * 1e3
    registers, spilled = (attribute(k, f.kernel().ptr) for k in (REGISTERS, LOCAL_BYTES))
    right = "" if off <= TOLERANCE[dtype] else " (!)"
    return (
        f"| {name} | {quantity} | {dtype} | {count} | {registers} | {spilled} | {off:.1e}{right} "
        f"| {took / count * 1e6:.4f} | {floor / count * 1e6:.4f} | {rate / 1e9:.3f} |"
    )


def copied(total: int) -> float:
    """Milliseconds in which the device reads and writes that many bytes together."""
    a, b = (gpu_arrays().empty((total // 8,), "float32") for _ in range(2))
    return milliseconds(lambda: b.data.copy_from_device_async(a.data, total // 2))


def main(folder: str | None = None, size: float = BYTES) -> None:
    cuda = gpu_arrays().cuda
    title, version = cuda.runtime.getDeviceProperties(0)["name"].decode(), cuda.runtime.driverGetVersion()
    sm = cuda.Device().compute_capability
    about = f"{title}, sm {sm}, CUDA {version / 1000:g}, {platform.machine()}, {date.today()}"
    lines = [
        "# Kernels on a GPU", "", f"{about}. One sample a thread, batch-last, fresh inputs on the device.", "",
        "| robot | quantity | dtype | batch | registers | spilled B | worst difference | ns a sample | floor ns "
        "| G/s |", "|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    asked = [(*x, dtype, folder, size, 0) for x in ROWS for dtype in gpu_budgets.DTYPES]
    asked += [(*x, "float32", folder, size, count) for x in SMALL for count in SMALL_BATCHES]
    for given in asked:
        lines.append(row(*given))
        print(lines[-1], flush=True)
        RESULTS.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main(*sys.argv[1:])
