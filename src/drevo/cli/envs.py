"""drevo envs: environments to learn in, and how fast they are here."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from .common import Json, guarded, option, print_json, print_table, progress

ACTIONS = ("list", "bench")
TASK_WINDOWS = 5


@guarded
def envs(
    action: Annotated[str, typer.Argument(metavar="list|bench", help="What to do.")] = "list",
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Environments; by default all.")
    ] = None,
    num_envs: Annotated[int, option("How many environments run side by side.", min=1)] = 1024,
    threads: Annotated[int, option("Threads of the compiled step.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """List the environments, or measure how many steps a second they take, MuJoCo's C beside them."""
    from ..envs import GOALS, SUITE, TASKS
    from ..errors import InputError, one_of

    one_of("drevo envs: what to do", action, ACTIONS, InputError)
    chosen = tuple(names or TASKS)
    if action == "list":
        print("\n".join(names or (*TASKS, *GOALS, *SUITE)))
        return
    rows = []
    with progress(len(chosen), "measuring") as step:
        for name in chosen:
            step(name)
            rows.append(measure_environment(name, num_envs, threads))
    if as_json:
        print_json({"num_envs": num_envs, "threads": threads, "rows": rows})
        return
    cells = [
        (
            r["name"], f"{r['steps_per_s'] / 1e6:.3f}", f"{100 * r['wrapper']:.0f}",
            *(f"{r['mujoco_per_s'] / 1e6:.4f} {r['steps_per_s'] / r['mujoco_per_s']:.1f}".split()
              if r["mujoco_per_s"] else ("", "")),
        )
        for r in rows
    ]  # fmt: skip
    columns = ("environment", "million steps a s", "wrapper %", "MuJoCo, one core", "times")
    print_table(f"{num_envs} environments, {threads} thread{'s' * (threads > 1)}", columns, cells)


def measure_environment(name: str, num_envs: int, threads: int) -> dict[str, Any]:
    """Steps of an action a second, and by turns those of MuJoCo on one core; the share that is not compiled
    code, of the median step: a step that the machine interrupts is none."""
    import mujoco
    import numpy as np

    from ..envs import make

    env = make(name, num_envs, threads)
    env.reset(seed=0)
    rng, space = np.random.default_rng(0), env.single_action_space
    actions = rng.uniform(space.low, space.high, (20, num_envs, *space.shape)).astype(np.float32)
    theirs = _theirs(env)
    data: Any = mujoco.MjData(theirs) if theirs else None

    clock, steps = (
        [0.0],
        list[tuple[float, float]](),
    )  # seconds of steps, and those of them outside of compiled code
    env.f = _clocked(env.f, clock)

    def ours() -> None:
        for action in actions:
            clock[0] = 0.0
            whole = _seconds(partial(env.step, action))
            steps.append((whole, whole - clock[0]))

    def mujocos() -> None:
        for action in actions[:, :5].reshape(-1, *space.shape) if data else ():
            data.ctrl[:] = action
            mujoco.mj_step(theirs, data, nstep=env.task.skip)

    ours()
    least, other = float("inf"), float("inf")
    steps.clear()
    for _ in range(TASK_WINDOWS):
        least, other = min(least, _seconds(ours)), min(other, _seconds(mujocos))
    whole, outside = np.median(steps, axis=0)
    return {
        "name": name,
        "steps_per_s": len(actions) * num_envs / least,
        "wrapper": float(outside / whole),
        "mujoco_per_s": 5 * len(actions) / other if theirs else None,
    }


def _theirs(env: Any) -> Any:
    """MuJoCo's model of the same file; None for tasks of our own."""
    import mujoco

    from ..envs.simulation import asset

    source = env.task.source
    return mujoco.MjModel.from_xml_path(str(asset(source))) if isinstance(source, str) else None


def _clocked(f: Callable[..., Any], clock: list[float]) -> Callable[..., Any]:
    """Wraps a callable so that the seconds of each call are added to a clock."""

    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        result = f(*args, **kwargs)
        clock[0] += time.perf_counter() - start
        return result

    return call


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start
