"""An arm held upright by a linear regulator: linearised, its gain computed, its poles shown, then let go nearby.

python examples/regulator.py
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_continuous_are

import drevo


def main() -> None:
    robot = drevo.load("three-link")
    q, v = np.zeros(robot.nq), np.zeros(robot.nv)
    model = robot.linearise(q, v, robot.gravity(q))
    Q, R = np.eye(2 * robot.nv), np.eye(robot.nv)
    K = np.linalg.solve(R, model.B.T @ solve_continuous_are(model.A, model.B, Q, R))
    print("poles:", np.round(np.sort(np.linalg.eigvals(model.A - model.B @ K).real), 3))

    def tau(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return robot.gravity(np.zeros(robot.nq)) - K @ np.concatenate([q, v])

    table = robot.simulate(q + 0.01, v, duration=10.0, dt=1e-3, tau=tau)
    print(f"let go 0.01 rad off, it is off by {np.abs(table.q[-1]).max():.1e} rad after {table.t[-1]:g} s")


if __name__ == "__main__":
    main()
