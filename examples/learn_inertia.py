"""A Panda's masses, centres and inertias learned from torques, by PyTorch: every step is a robot that can exist.

pip install drevo[torch] example-robot-data
"""

from __future__ import annotations

import time

import numpy as np
import torch

import drevo

STATES, STEPS = 4096, 400


def main() -> None:
    torch.manual_seed(0)
    robot = drevo.load("panda")
    rng = np.random.default_rng(0)
    q = robot.random(rng, STATES)
    v, a = rng.normal(size=(2, STATES, robot.nv))
    measured = torch.from_numpy(robot.inverse_dynamics(q, v, a))
    state = [torch.from_numpy(x) for x in (q, v, a)]

    learned = drevo.torch.Inertias(robot)
    f = drevo.torch.function(learned.robot, "inverse_dynamics", parameters=learned.names)
    with torch.no_grad():  # a first guess: sizes some 20 % off, centres some 2 cm
        learned.logarithms += torch.tensor([0.1] * 4 + [0.02] * 6) * torch.randn_like(learned.logarithms)
    scale = measured.std(0)
    until = {"max_iter": STEPS // 4, "tolerance_grad": 0, "tolerance_change": 0}
    optimiser = torch.optim.LBFGS(learned.parameters(), history_size=50, line_search_fn="strong_wolfe", **until)

    def loss() -> torch.Tensor:
        return (((f(*state, learned()) - measured) / scale) ** 2).mean()

    def slope() -> torch.Tensor:
        optimiser.zero_grad()
        (value := loss()).backward()
        return value

    start = time.perf_counter()
    for k in range(0, STEPS + 1, STEPS // 4):
        print(f"step {k}: torques off by {100 * loss().item() ** 0.5:.4f} % of their spread")
        if k < STEPS:
            optimiser.step(slope)
    took = time.perf_counter() - start
    print(f"{STEPS} steps on {STATES} states, {len(learned.names)} parameters: {took:.1f} s")


if __name__ == "__main__":
    main()
