"""Drevo against its peers, interleaved in one tree of processes.

Every figure is the least of many short windows: on a shared machine the least is what the code can do, and
interleaving gives every contender the same weather; the medians stand beside it in results.json. Writes
results.md, results.json and results.svg beside this file.

    python benchmarks/peers.py                     measure
    python benchmarks/peers.py --others PYTHON     also the peers that live in another interpreter
    python benchmarks/peers.py --check             measure less; fail where a ratio of this processor fell
    python benchmarks/peers.py --record            keep the ratios of this processor, in records/
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
import pinocchio as pin

import drevo

sys.path.insert(0, str(Path(__file__).parent))
import contenders
import costs
import peers_other
import plot
import report
from cases import Case, function, mujoco_child, pin_child, prepare
from contenders import Key, Windows
from inner_loops import Child, build
from peak import fma_peak
from robots import SUBJECTS

HERE = Path(__file__).parent
ROUNDS = 60
CHECK_ROUNDS = 25
TOLERANCE = (
    0.2  # a ratio may fall by this part of the recorded one: two runs on a shared machine differ by up to 18 %
)
START = time.perf_counter()
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> int:
    """Measure, print, write; the exit code is 1 when --check finds a ratio that has fallen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", action="store_true", help="keep the ratios of this processor for --check")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--others", metavar="PYTHON", help="an interpreter with frax, adam, mjx, drake")
    parser.add_argument("--into", type=Path, default=HERE, help="where the results go")
    options = parser.parse_args()
    programs = build()
    cases = {s.name: prepare(s) for s in SUBJECTS}
    say("loaded")
    brief = options.check or options.record
    document = measured(cases, programs, options.rounds or (CHECK_ROUNDS if brief else ROUNDS))
    if brief:
        now = report.ratios(document)
        if document["load"] > CORES / 2:  # nobody can say what threads gain
            now = {name: x for name, x in now.items() if "threads" not in name}
        return record(document, now) if options.record else check(now, recorded_ratios())
    recorded = json.loads((HERE / "results.json").read_text())
    document["costs"] = costs.compiles(cases)
    document["starts"] = costs.cold_starts(cases["panda"])
    say("compile times and cold starts")
    document["others"] = peers_other.measured(cases, options.others) or recorded.get("others", {})
    write(document, options.into)
    print(report.markdown(document))
    return 0


def say(what: str) -> None:
    """A line of progress."""
    print(f"{time.perf_counter() - START:5.0f} s  {what}", file=sys.stderr, flush=True)


def measured(cases: dict[str, Case], programs: dict[str, Path | str], rounds: int) -> dict[str, Any]:
    """All tables that one process tree can measure, as a document."""
    cells: list[dict[str, Any]] = []
    for name, case in cases.items():
        children = open_children(case, programs)
        windows = contenders.in_cache(case, children)
        windows |= contenders.scalar(case, contenders.SCALAR[name])
        windows |= contenders.narrow(case)
        windows |= contenders.calls(case)
        cells += interleaved(windows, rounds)
        cells += interleaved(contenders.from_memory(case, CORES, children), max(5, rounds // 4))
        for child in children.values():
            child.close()
        say(name)
    return {
        "machine": machine(), "load": round(os.getloadavg()[0], 1),
        "date": datetime.date.today().isoformat(), "rounds": rounds, "cores": CORES,
        "missing": {who: why for who, why in programs.items() if isinstance(why, str)},
        "peak": fma_peak(8), "flops": flops(cases), "cells": cells,
    }  # fmt: skip


def open_children(case: Case, programs: dict[str, Path | str]) -> dict[str, Child]:
    """The inner loops that could be built, for one robot."""
    found = {who: path for who, path in programs.items() if isinstance(path, Path)}
    return {who: (mujoco_child if "mujoco" in who else pin_child)(case, path) for who, path in found.items()}


def interleaved(windows: Windows, rounds: int) -> list[dict[str, Any]]:
    """One window of every contender in turn, `rounds` times: least and median nanoseconds per evaluation."""
    seen: dict[Key, list[float]] = {key: [] for key in windows}
    for k in range(rounds):
        for key, window in windows.items():
            seconds, count = window(k)
            seen[key].append(seconds / count * 1e9)
    return [
        {**key._asdict(), "ns": round(min(x), 2), "median": round(statistics.median(x), 2)}
        for key, x in seen.items()
    ]


def flops(cases: dict[str, Case]) -> dict[str, int]:
    """Floating-point operations of a kernel by robot: products, sums, and 36 for each pair of sine and cosine."""
    counts = {name: function(case, "forward_dynamics").counts for name, case in cases.items()}
    return {name: c["mul"] + c["add"] + c["div"] + 18 * c["trig"] for name, c in counts.items()}


def machine() -> dict[str, str]:
    """What the figures belong to."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    known = dict(reversed([tuple(map(str.strip, line.split(":", 1))) for line in lines if ":" in line]))
    cpu = " ".join(f"{known.get(k, '')}" for k in ("model name", "cpu family", "model")) or platform.machine()
    return {
        "cpu": cpu, "python": platform.python_version(), "numpy": np.__version__, "drevo": drevo.__version__,
        "pinocchio": pin.__version__, "mujoco": mujoco.__version__,
    }  # fmt: skip


def record_file() -> Path:
    """Where the ratios of this processor are kept: on another one they are others."""
    return HERE / "records" / (re.sub(r"[^a-z0-9]+", "-", machine()["cpu"].lower()).strip("-") + ".json")


def record(document: dict[str, Any], now: dict[str, float]) -> int:
    """Keeps the ratios of a processor."""
    kept = {k: document[k] for k in ("machine", "date", "rounds", "load")}
    ratios = {name: round(x, 3) for name, x in now.items()}
    record_file().parent.mkdir(exist_ok=True)
    record_file().write_text(json.dumps({**kept, "ratios": ratios}, indent=1) + "\n")
    print(f"{len(ratios)} ratios in {record_file().relative_to(HERE.parent)}")
    return 0


def recorded_ratios() -> dict[str, float]:
    """Those of this processor; none where nothing is recorded for it."""
    if record_file().exists():
        found: dict[str, float] = json.loads(record_file().read_text())["ratios"]
        return found
    print(f"nothing is recorded for {machine()['cpu']}: `make bench-record` on a state that is known to be fast")
    return {}


def check(now: dict[str, float], then: dict[str, float]) -> int:
    """Whether every ratio is at least (1 - TOLERANCE) of the recorded one."""
    fallen = {k: (now[k], r) for k, r in then.items() if k in now and now[k] < (1 - TOLERANCE) * r}
    for name, (got, recorded) in fallen.items():
        print(f"{name}: {got:.2f} times its peer, recorded {recorded:.2f}: SLOWER")
    shared = len(now.keys() & then.keys())
    print(f"{shared - len(fallen)} of {shared} ratios hold within {TOLERANCE:.0%}")
    return int(bool(fallen) or not shared)


def write(document: dict[str, Any], into: Path) -> None:
    """The three files, and the tables that the pages quote."""
    into.mkdir(parents=True, exist_ok=True)
    (into / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    (into / "results.md").write_text(report.markdown(document))
    (into / "results.svg").write_text(plot.svg(document))
    if into == HERE:
        report.insert(HERE.parent / "README.md", "bench", report.summary(document))
        report.insert(HERE.parent / "docs" / "speed.md", "cache", report.page(document))


if __name__ == "__main__":
    sys.exit(main())
