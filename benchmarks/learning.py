"""A loss on joint torques and its gradient in PyTorch and JAX: Drevo beside adam and frax, in one run, one thread.

python benchmarks/learning.py [STATES]     (pip install drevo[torch,jax] adam-robotics frax example-robot-data)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_ENABLE_X64"] = "1"

import jax
import numpy as np
import torch

import drevo

ROUNDS = 15
GRAVITY = torch.tensor([0.0, 0.0, -9.81, 0.0, 0.0, 0.0], dtype=torch.float64)
STATES = int(sys.argv[1]) if len(sys.argv) > 1 else 4096


def compared(contenders: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds of the fastest of some rounds, in turn."""
    for f in contenders.values():
        f()
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(ROUNDS):
        for name, f in contenders.items():
            start = time.perf_counter()
            f()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def told(task: str, best: dict[str, float]) -> None:
    own, *others = best.items()
    print(f"{task}, {STATES} states: {own[0]} {1e9 * own[1] / STATES:.0f} ns a state")
    for name, t in others:
        print(f"  {name} {1e9 * t / STATES:.0f} ns, {t / own[1]:.0f} times as long")


def in_torch() -> None:
    """Bias forces and their gradient by positions and rates; adam's robot is Drevo's, written as URDF."""
    from adam.pytorch import KinDynComputationsBatch

    torch.set_num_threads(1)
    robot = drevo.load("ur5")
    file = "ur5_for_adam.urdf"
    robot.save(file, lossy=True)
    peer = KinDynComputationsBatch(file, list(robot.joint_names), dtype=torch.float64, gravity=GRAVITY)
    os.remove(file)
    rng = np.random.default_rng(0)
    q, v = torch.from_numpy(robot.random(rng, STATES)), torch.from_numpy(rng.normal(size=(STATES, robot.nv)))
    base = torch.eye(4, dtype=torch.float64).expand(STATES, 4, 4)
    still = torch.zeros(STATES, 6, dtype=torch.float64)
    f = drevo.torch.function(robot, "bias")

    def of_peer(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return peer.bias_force(base, q, still, v)[:, 6:].reshape(STATES, -1)

    apart = (of_peer(q, v) - f(q, v)).abs().max() / f(q, v).abs().max()
    print(f"adam agrees to {apart:.1e}")

    def slope(of: Callable[..., torch.Tensor]) -> Callable[[], object]:
        def run() -> object:
            x, y = q.clone().requires_grad_(), v.clone().requires_grad_()
            return torch.autograd.grad((of(x, y) ** 2).mean(), (x, y))

        return run

    told("PyTorch, bias forces and gradient", compared({"drevo": slope(f), "adam": slope(of_peer)}))


def in_jax() -> None:
    """Inverse dynamics and gradient by q, v, a; frax brings a Panda of its own, with seven joints."""
    import frax

    peer, robot = frax.load_panda(), drevo.load("panda")
    f = drevo.jax.function(robot, "inverse_dynamics")
    rng = np.random.default_rng(0)
    state = [jax.numpy.asarray(x) for x in (robot.random(rng, STATES), *rng.normal(size=(2, STATES, robot.nv)))]
    short = [x[:, : peer.num_joints] for x in state]

    def slope(of: Callable[..., jax.Array]) -> Callable[..., object]:
        return jax.jit(jax.value_and_grad(lambda q, v, a: (of(q, v, a) ** 2).mean(), (0, 1, 2)))

    gravity = jax.numpy.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    own, other = slope(f), slope(jax.vmap(lambda q, v, a: peer.rnea(q, v, a, gravity, None)))
    told("JAX, inverse dynamics and gradient", compared({
        "drevo": lambda: jax.block_until_ready(own(*state)), "frax": lambda: jax.block_until_ready(other(*short)),
    }))  # fmt: skip


if __name__ == "__main__":
    in_torch()
    in_jax()
