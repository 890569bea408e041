"""What a pool of a sweep costs between shards: the time that its workers wait for the next one.

    python benchmarks/sweep.py [SHARDS]

A Panda's inverse dynamics, shards of about a second. A worker that computes a shard notes when it begins and ends;
what lies between is the pool's. A cluster is started before, with as many processors as workers.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import drevo
from drevo.sweep.run import rows_of
from drevo.sweep.shards import run_shard

SECONDS, SHARDS, WORKERS = 1.0, 10, (1, 2)
Row = dict[str, Any]


def planned(shard: int) -> Any:
    given = {
        "robot": "panda",
        "quantity": "inverse_dynamics",
        "samples": 1000 * shard,
        "shard": shard,
        "locate": True,
    }
    return drevo.sweep.read_plan(given)


def timed(plan: Any, folder: str, number: int) -> Row:
    """A shard, with the process that computed it and when."""
    began = time.time()
    run_shard(plan, number, folder)
    return {"process": os.getpid(), "began": began, "ended": time.time()}


def waits(rows: list[Row]) -> tuple[list[float], float]:
    """Seconds between the shards of each worker, and those in them."""
    found, busy = list[float](), 0.0
    for process in {row["process"] for row in rows}:
        own = sorted((row for row in rows if row["process"] == process), key=lambda row: row["began"])
        found += [b["began"] - a["ended"] for a, b in pairwise(own)]
        busy += sum(row["ended"] - row["began"] for row in own[:-1])
    return found, busy


def main(shards: int = SHARDS) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/shards")
        timed(planned(1000), folder, 0)  # compiled
        row = timed(planned(100_000), folder, 1)
        plan = planned(int(SECONDS * 100_000 / (row["ended"] - row["began"])))
        print(f"shards of {plan.shard} samples, load of the machine {os.getloadavg()[0]:.1f}")
        for workers in WORKERS:
            for pool in ("serial", "joblib", "ray") if workers == 1 else ("joblib", "ray"):
                todo = range((shards + 1) * workers)  # of the first a worker still loads its code
                rows = list(rows_of(pool, partial(timed, plan, folder), todo, workers))[workers:]
                found, busy = waits(rows)
                print(
                    f"{pool:7s} {workers} workers: {1e3 * np.median(found):6.2f} ms between shards, at most "
                    f"{1e3 * max(found):6.1f}; {100 * sum(found) / (sum(found) + busy):.2f} % of the time"
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
