"""A Panda reaches for a point within its torques and speeds, then follows it by model-predictive control.

pip install example-robot-data
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import drevo
from drevo.control import optimise

KNOTS, DT = 100, 0.01


def cost(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    """Near a point that goes round, slowly and with little effort."""
    point = 0.45, 0.2 * drevo.sin(t), 0.5 + 0.1 * drevo.cos(t)
    near = sum((row[3] - x) ** 2 for row, x in zip(pose("panda_hand"), point))
    return (
        10.0 * near + 1e-2 * sum(x * x for x in v) + 1e-5 * sum(x * x for x in tau) + 1e-3 * sum(x * x for x in q)
    )


def main() -> None:
    panda = drevo.load("panda")
    limits = {"tau": panda.max_effort, "v": panda.max_velocity}
    plan = optimise(panda, cost, [0, -0.5, 0, -2.0, 0, 1.5, 0.7, 0.02], np.zeros(8), KNOTS, DT, limits)
    hand = panda.pose(plan.q[-1], "panda_hand")[:3, 3]
    print(f"{plan.reason} after {plan.iterations} iterations, cost {plan.cost:.4f}, the hand at {hand.round(3)}")
    least = np.inf
    for _ in range(200):  # two seconds, a knot at a time: the robot does what the first knot says
        shifted = plan.shifted()
        start = time.perf_counter()
        plan = shifted.again(shifted.q[0], shifted.v[0])
        least = min(least, time.perf_counter() - start)
    print(f"model-predictive control: {1e6 * least:.0f} us a plan of {KNOTS} knots, at {plan.t0:.2f} s")


if __name__ == "__main__":
    main()
