"""One state by JAX and by PyTorch: Drevo's inverse dynamics beside the framework's own arithmetic, in one run.

python benchmarks/frameworks.py     (pip install drevo[torch,jax]; either framework may be missing)

Under JAX both are jitted, the peer is sin(q) v + a; in PyTorch nothing wants gradients, the peer is v + a.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np

import drevo

ROUNDS, CALLS = 60, 2000
ROBOTS = ("puma560", "ur5", "talos")
State = tuple[np.ndarray[Any, Any], ...]


def seconds(f: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        f()
    return (time.perf_counter() - start) / CALLS


def told(what: str, own: Callable[[], object], peer: Callable[[], object]) -> None:
    """The fastest of some rounds of calls, in turn."""
    own(), peer()
    best = np.min([(seconds(own), seconds(peer)) for _ in range(ROUNDS)], axis=0) * 1e6
    print(f"{what:24} drevo {best[0]:6.2f} us, plain operator {best[1]:6.2f} us, ratio {best[0] / best[1]:.2f}")


def in_jax(robot: drevo.Robot, state: State) -> None:
    import jax

    q, v, a = x = [jax.numpy.asarray(y) for y in state]
    own = jax.jit(drevo.jax.function(robot, "inverse_dynamics"))
    peer = jax.jit(lambda q, v, a: jax.numpy.sin(q[-len(v) :]) * v + a)
    told(f"JAX, {robot.model.name}", lambda: own(*x), lambda: peer(q, v, a))


def in_torch(robot: drevo.Robot, state: State) -> None:
    import torch

    _, v, a = x = [torch.from_numpy(y) for y in state]
    own = drevo.torch.function(robot, "inverse_dynamics")
    told(f"PyTorch, {robot.model.name}", lambda: own(*x), lambda: v + a)


def main() -> None:
    rng = np.random.default_rng(0)
    for name in ROBOTS:
        robot = drevo.load(name)
        state = robot.random(rng), *rng.normal(size=(2, robot.nv))
        for framework, run in (("jax", in_jax), ("torch", in_torch)):
            if find_spec(framework):
                run(robot, state)


if __name__ == "__main__":
    main()
