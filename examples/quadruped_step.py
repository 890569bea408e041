"""A Go2 lifts a foot, carries it 10 cm on and puts it down: phases of contact, and the impact that ends it.

pip install example-robot-data
"""

from __future__ import annotations

from typing import Any

import numpy as np

import drevo
from drevo.control import optimise

FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
STAND, SWING, DT, AHEAD, HIGH = 10, 30, 0.01, 0.1, 0.06
BEND = [0.0, 0.8, -1.5] * 4


def main() -> None:
    robot = drevo.load("go2", base="floating")
    q0 = robot.neutral()
    q0[7:] = BEND
    q0[2] -= robot.pose(q0, FEET[0])[2, 3]
    start = robot.pose(q0, FEET[0])[:3, 3]
    marks = {link: robot.pose(q0, link)[:3, 3] for link in ("base", "FL_hip", "RR_hip")}

    def away(pose: Any, link: str, point: Any) -> Any:
        return sum((row[3] - x) ** 2 for row, x in zip(pose(link), point))

    def cost(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
        s = (t - STAND * DT) / (SWING * DT)
        point = start[0] + AHEAD * s, start[1], start[2] + HIGH * drevo.sin(np.pi * s)
        foot = drevo.where((s > 0.0) & (s < 1.0), 500.0, 0.0) * away(pose, FEET[0], point)
        bent = sum((x - y) ** 2 for x, y in zip(q[7:], BEND))
        effort = 5e-4 * sum(x * x for x in tau) + 0.05 * sum(x * x for x in v)
        return foot + 50.0 * sum(away(pose, *mark) for mark in marks.items()) + 0.05 * bent + effort

    def end(pose: Any, q: Any, v: Any) -> Any:
        foot = 500.0 * away(pose, FEET[0], (start[0] + AHEAD, start[1], start[2]))
        return foot + 50.0 * sum(away(pose, *mark) for mark in marks.items()) + 0.5 * sum(x * x for x in v)

    def held(*feet: str) -> list[dict[str, Any]]:
        return [{"link": foot, "point": (0, 0, 0), "rows": 3} for foot in feet]

    phases = [(STAND, held(*FEET)), (SWING, held(*FEET[1:])), (STAND, held(*FEET))]
    limits = {"tau": robot.max_effort}
    step = optimise(robot, cost, q0, np.zeros(18), 2 * STAND + SWING, DT, limits, end, contacts=phases)
    moved = robot.pose(step.q[-1], FEET[0])[:3, 3] - start
    print(f"{step.reason} after {step.iterations} iterations, cost {step.cost:.4f}")
    print(f"the foot went {100 * moved[0]:.1f} cm on; at most {np.abs(step.tau).max():.1f} N m")


if __name__ == "__main__":
    main()
