"""A four-bar linkage falls and swings: the loop is kept by projection, the energy tells how well.

python examples/swing.py [SECONDS]
"""

from __future__ import annotations

import sys

import numpy as np

import drevo


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    robot = drevo.load("four-bar")
    q = robot.assemble(robot.neutral())
    table = robot.simulate(q, np.zeros(robot.nv), duration=seconds, dt=1e-3)
    print(f"{len(table)} states by {table.method}, {table.steps} steps")
    moving = robot.kinetic_energy(table.q, table.v).max()
    print(f"the energy drifts by {np.abs(table.drift).max():.1e} J, of motion it has up to {moving:.1e} J")
    print(drevo.cite(table))


if __name__ == "__main__":
    main()
