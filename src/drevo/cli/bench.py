"""drevo bench: how fast this robot's functions are on this machine, on one core."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from .common import (
    MAX_BATCH,
    Base,
    Json,
    RobotName,
    guarded,
    load_robot,
    option,
    print_json,
    print_table,
    progress,
    said,
)

if TYPE_CHECKING:
    from ..robot.face import Robot

TIMED_QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics", "bias", "inverse_dynamics_derivatives")
KERNEL_WINDOWS = 7


@guarded
def bench(
    robot: RobotName = "puma560",
    base: Base = "fixed",
    states: Annotated[int, option("How many states a batch has.", min=1, max=MAX_BATCH)] = 100_000,
    as_json: Json = False,
) -> None:
    """Measure how fast the main functions run here: preparing them, one call, and a batch, on one core."""
    loaded = load_robot(robot, base)
    rows = measure(loaded, states)
    if as_json:
        print_json({"robot": robot, "base": base, "states": states, "threads": 1, "rows": rows})
        return
    cells = [(r["quantity"], f"{r['build_s'] * 1e3:.0f}", f"{r['call_ns']:.0f}", f"{r['state_ns']:.1f}",
              f"{1e3 / r['state_ns']:.1f}") for r in rows]  # fmt: skip
    columns = ("quantity", "build ms", "one call ns", "ns a state", "million a s")
    print_table(f"{loaded.name}, one core, batches of {states:,} states", columns, cells)


def measure(robot: Robot, states: int) -> list[dict[str, Any]]:
    """Build time (with the cache as it is), time of one call, time per state in a batch."""
    import numpy as np

    from ..errors import DrevoError

    rng, rows = np.random.default_rng(0), []
    q = robot.random(rng, states)
    v, a = rng.normal(size=(2, states, robot.nv))
    state = {"q": q, "v": v, "a": a, "tau": a}
    with progress(len(TIMED_QUANTITIES), "measuring") as step:
        for name in TIMED_QUANTITIES:
            step(name)
            try:
                rows.append(_measure_one(robot, name, state))
            except DrevoError as error:
                print(f"{name} is left out: {said(error)}", file=sys.stderr)
    return rows


def _measure_one(robot: Robot, name: str, state: dict[str, Any]) -> dict[str, Any]:
    from ..model.quantities import quantity

    many = [state[s] for s in quantity(name).state]
    one = [x[0].copy() for x in many]
    start = time.perf_counter()
    function = getattr(robot, name)
    function(*one)
    built = time.perf_counter() - start
    out = function(*many)
    batch = shortest_time(lambda: function(*many, out=out), 1)
    return {"quantity": name, "build_s": built, "call_ns": shortest_time(lambda: function(*one), 300) * 1e9,
            "state_ns": batch / len(many[0]) * 1e9}  # fmt: skip


def shortest_time(call: Callable[[], Any], repeats: int, windows: int = KERNEL_WINDOWS) -> float:
    """Seconds per call, the least of several windows: what the machine can do when nothing disturbs it."""
    best = float("inf")
    for _ in range(windows):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        best = min(best, (time.perf_counter() - start) / repeats)
    return best
