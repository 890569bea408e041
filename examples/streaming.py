"""A billion inverse dynamics: random states made inside the compiled loop, results summed, memory flat.

    python examples/streaming.py [ROBOT] [--quantity inverse_dynamics] [--samples 1e9] [--threads 2]

ROBOT is a file (a Panda's URDF, say) or the name of an embedded robot.
"""

from __future__ import annotations

import argparse
import os
import resource
import time

import numpy as np

import drevo


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("robot", nargs="?", default="puma560")
    words.add_argument("--quantity", default="inverse_dynamics")
    words.add_argument("--samples", type=float, default=1e9)
    words.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    words.add_argument("--seed", type=int, default=0)
    given = words.parse_args()
    robot, samples = drevo.load(given.robot), int(given.samples)
    drevo.stream(robot, given.quantity, 1000)  # compiles, or reads the cache

    wall, cpu = time.perf_counter(), time.process_time()
    found = drevo.stream(robot, given.quantity, samples, seed=given.seed, threads=given.threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu

    print(f"{robot.name}: {samples:.3g} times {given.quantity} in {wall:.2f} s on {given.threads} threads")
    print(f"{cpu / samples * 1e9:.1f} ns of a core each, inputs and sums included")
    print(
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most"
    )  # ru_maxrss: KiB on Linux
    np.set_printoptions(precision=4, suppress=True, linewidth=110)
    for name in ("mean", "std", "min", "max"):
        print(f"{name:>5}", getattr(found, name))


if __name__ == "__main__":
    main()
