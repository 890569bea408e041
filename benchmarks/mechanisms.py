"""What each mechanism of speed buys, and how many lines it takes: the table of docs/mechanisms.md.

    python benchmarks/mechanisms.py [ROW ...]    rows by their first words; the page is written where all are asked

A row has two processes, one with the mechanism and one without, each with a cache of its own. They work in turn,
and the least processor time of many windows counts, so that other work on the machine touches both alike.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DREVO_NUM_THREADS", "1")

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import report
from robots import SUBJECTS, plain_file

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src/drevo"
ROUNDS, WINDOW = 40, 2e-3  # windows of a row and side, seconds of the processor each
STARTS = 3  # processes of a row that is timed once in each
PANDA, GO2, TALOS = SUBJECTS
FEET = ("FL_foot", "FR_foot", "RL_foot", "RR_foot")

Work = tuple[Callable[[], Any], int]  # a call, and how many states it computes


class Row(NamedTuple):
    """work: a call with (True) or without the mechanism, and how many states; 0: timed once in a process."""

    mechanism: str
    on: str
    files: tuple[str, ...]
    called: str
    work: Callable[[bool], Work]
    unit: str = "ns"
    setting: tuple[str, str] = ("", "")  # of the environment, without it
    alone: bool = False  # there is no other way


def robot_of(subject: Any) -> Any:
    """A robot of the benchmarks, compiled anew."""
    import drevo

    return drevo.load(plain_file(subject), base=subject.base)


def states_of(robot: Any, count: int) -> list[Any]:
    """q, v, a at random."""
    rng = np.random.default_rng(0)
    return [robot.random(rng, count), *rng.normal(size=(2, count, robot.nv))]


def called(name: str, subject: Any, count: int) -> Work:
    """A method of a robot on one state (count 1) or on rows, into the same result."""
    robot = robot_of(subject)
    rows = states_of(robot, count)
    args = [x[0] for x in rows] if count == 1 else rows
    f = getattr(robot, name)
    out = f(*args)
    return lambda: f(*args, out=out), count


def native_calls(_: bool) -> Work:
    return called("inverse_dynamics", PANDA, 1)


def side_by_side(on: bool) -> Work:
    return called("inverse_dynamics", PANDA, 1024 if on else 1)


def past_caches(on: bool) -> Work:
    from drevo.codegen.llvm import driver, rows

    if not on:
        driver.BEYOND = rows.BEYOND = 1 << 60
    import drevo

    robot = robot_of(PANDA)
    q = states_of(robot, 40_000)[0]
    f = drevo.compile(robot, "poses")
    out = f(q)
    return lambda: f(q, out=out), len(q)


def dense_rows(on: bool) -> Work:
    """Without: rows of arrays that have one column more."""
    import drevo

    robot = robot_of(PANDA)
    rows = states_of(robot, 1024)
    if not on:
        wide = [np.zeros((1024, x.shape[1] + 1)) for x in rows]
        for w, x in zip(wide, rows):
            w[:, :-1] = x
        rows = [w[:, :-1] for w in wide]
    f = drevo.compile(robot, "inverse_dynamics")
    out = np.zeros((1024, robot.nv + (not on)))[:, : robot.nv]
    return lambda: f(*rows, out=out), 1024


def looped(on: bool) -> Work:
    """Compiling, of 61 bodies and of 60."""
    import drevo

    robot = drevo.robots.rod_chain(n=61 if on else 60)
    state = np.zeros((3, robot.nv))
    return lambda: robot.inverse_dynamics(*state), 0


def four_points(robot: Any) -> Any:
    return robot.under(contacts=[{"link": foot, "point": (0.0, 0.0, 0.0)} for foot in FEET])


def held_go2() -> tuple[Any, list[Any]]:
    """Go2 on four points, and a state with efforts."""
    robot = robot_of(GO2)
    return four_points(robot), [x[0] for x in states_of(robot, 1)]


def inverse_under(on: bool) -> Work:
    from drevo.constraint import inverse

    if not on:
        inverse.efforts_function = lambda *_: None
    held, (q, v, tau) = held_go2()
    a = held.dynamics(q, v, tau).a
    return lambda: held.inverse_dynamics(q, v, a), 1


def dynamics_under(_: bool) -> Work:
    held, (q, v, tau) = held_go2()
    return lambda: held.dynamics(q, v, tau).a, 1


def linear_under(on: bool) -> Work:
    """Compiling."""
    from drevo.control import linear_kernels

    if not on:
        linear_kernels._beside_columns = lambda *_: None
    held, (q, v, tau) = held_go2()
    held.dynamics(q, v, tau)
    return lambda: held.linearise(q, v, tau), 0


def streamed(on: bool) -> Work:
    import drevo
    from drevo import streaming

    robot, count = drevo.load("puma560"), 2**18

    def by_numpy() -> None:
        x = robot.inverse_dynamics(**streaming.inputs(robot, "inverse_dynamics", count, seed=7))
        x.sum(axis=0), (x * x).sum(axis=0), x.min(axis=0), x.max(axis=0)

    return (lambda: drevo.stream(robot, "inverse_dynamics", count, seed=7)) if on else by_numpy, count


def without_llvm(_: bool) -> Work:
    """Memory of a process: see `measured`."""
    import drevo

    robot = drevo.load("puma560")
    state = np.zeros((3, robot.nv))
    return lambda: robot.inverse_dynamics(*state), 0


ROWS = (
    Row("calls from Python straight to machine code", "inverse dynamics of a Panda, one state",
        ("codegen/entry/", "codegen/call/selftest.py"), "every Function", native_calls,
        setting=("DREVO_CALLS", "ctypes")),
    Row("straight-line kernels of many samples side by side",
        "the same, a state of 1,024 in rows; without, a state at a time",
        ("codegen/llvm/kernel.py", "codegen/llvm/driver.py", "codegen/llvm/rows.py"), "every Function of arrays",
        side_by_side),
    Row("results that no cache holds go past the caches", "poses of a Panda, a state of 40,000",
        ("codegen/llvm/driver.py", "codegen/llvm/rows.py"), "batches with results above 6 MB", past_caches),
    Row("rows that lie one after the other",
        "inverse dynamics of a Panda, a state of 1,024; without, rows of arrays with a column more",
        ("codegen/llvm/rows.py",), 'batches in C order; "past the caches" needs it', dense_rows),
    Row("loops over the bodies", "compiling inverse dynamics of a chain of 61 bodies, and of 60 straight",
        ("compiler/ways/rolled/", "codegen/llvm/bodies/", "codegen/call/rolled.py", "mechanics/body_table.py"),
        "trees above 60 bodies", looped, "s"),
    Row("constrained inverse dynamics in one function", "Go2 on four points, one state",
        ("constraint/inverse.py", "codegen/llvm/dense/ranked.py"),
        "`constrained_inverse_dynamics`, `held.inverse_dynamics`", inverse_under),
    Row("constrained dynamics with the rank decided in the kernel", "Go2 on four points, one state",
        ("constraint/tail.py", "codegen/llvm/tail.py", "codegen/llvm/dense/ranked.py"),
        "`constrained_dynamics`, `impact`, held motions", dynamics_under, alone=True),
    Row("contacts beside the columns of derivatives", "compiling a linear model of Go2 on four points",
        ("mechanics/formalisms/khalil_held.py",), "`held.linearise`", linear_under, "s"),
    Row("sums of streams in a compiled loop", "inverse dynamics of a Puma, a random state; without, by NumPy",
        ("codegen/llvm/stream.py", "codegen/call/stream.py"), "`drevo.stream`, sweeps", streamed),
    Row("objects loaded without LLVM", "memory of a warm process that loads a Puma and computes once",
        ("codegen/store/image.py",), "every warm start on Linux, x86-64", without_llvm, "MB",
        ("DREVO_LOADER", "llvm")),
)  # fmt: skip


def child(row: Row, on: bool) -> None:
    """One number a line of the input: nanoseconds of the processor a state, seconds once, or megabytes."""
    warnings.simplefilter("ignore")
    call, states = row.work(on)
    if not states:
        start = time.process_time()
        call()
        seconds = time.process_time() - start
        status = Path("/proc/self/status").read_text().splitlines()
        peak = next(x.split()[1] for x in status if x.startswith("VmRSS"))
        print(json.dumps(int(peak) / 1024 if row.unit == "MB" else seconds), flush=True)
        return
    call()
    start = time.process_time()
    call()
    calls = max(1, int(WINDOW / (time.process_time() - start)))
    for _ in sys.stdin:
        start = time.process_time()
        for _ in range(calls):
            call()
        print(json.dumps(1e9 * (time.process_time() - start) / calls / states), flush=True)


def measured(rows: Sequence[Row], row: Row, rounds: int) -> tuple[float, float]:
    """The least with the mechanism and without it; NaN where there is no other way. rows: those of the script that
    runs."""
    least = {True: float("inf"), False: float("nan") if row.alone else float("inf")}
    sides = [True] if row.alone else [True, False]
    with tempfile.TemporaryDirectory() as folder:

        def start(on: bool, again: int = 0) -> subprocess.Popen[str]:
            own = dict(os.environ, DREVO_CACHE_DIR=f"{folder}/{on}{again}")
            if not on and row.setting[0]:
                own[row.setting[0]] = row.setting[1]
            command = [sys.executable, sys.argv[0], "--child", str(rows.index(row)), str(int(on))]
            return subprocess.Popen(command, env=own, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        if row.unit != "ns":
            for again in range(STARTS):
                for on in sides:
                    for _ in range(1 + (row.unit == "MB")):  # memory is that of a warm start
                        found = float(start(on, again).communicate()[0])
                    least[on] = min(least[on], found)
            return least[True], least[False]
        children = {on: start(on) for on in sides}
        for _ in range(rounds):
            for on, process in children.items():
                assert process.stdin and process.stdout
                print(file=process.stdin, flush=True)
                least[on] = min(least[on], float(process.stdout.readline()))
        for process in children.values():
            process.communicate()
    return least[True], least[False]


def lines(files: Sequence[str]) -> int:
    """Lines of files and folders of the package, to tens."""
    paths = [p for f in files for p in ((SOURCE / f).rglob("*.py") if f.endswith("/") else [SOURCE / f])]
    return round(sum(len(p.read_text().splitlines()) for p in paths), -1)


def shown(x: float, unit: str) -> str:
    """A figure with its unit, to two digits below a hundred."""
    if x != x:
        return "no other way"
    if unit == "ns" and x >= 1000:
        x, unit = x / 1000, "µs"
    return f"{x:.0f} {unit}" if x >= 10 else f"{x:.1f} {unit}"


def named(files: Sequence[str]) -> str:
    return ", ".join(f"`{f}`" for f in files)


def write_table(
    rows: Sequence[Row], about: str, header: Sequence[str], cells: Callable[[Row, float, float], Sequence[object]],
    page: str, mark: str,
) -> int:  # fmt: skip
    """Measures the rows that the command line asks for, and prints them; all of them go into a page."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--child", nargs=2, type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.child:
        child(rows[options.child[0]], bool(options.child[1]))
        return 0
    from peers import machine

    text = [
        f"{machine()['cpu']}, {os.cpu_count()} cores, Python {machine()['python']}; {datetime.date.today()}.",
        "",
    ]
    text += header
    print("\n".join(text), flush=True)
    asked = [r for r in rows if not options.rows or any(r.mechanism.startswith(x) for x in options.rows)]
    for row in asked:
        text.append(f"| {' | '.join(map(str, cells(row, *measured(rows, row, options.rounds))))} |")
        print(text[-1], flush=True)
    if len(asked) == len(rows):
        report.insert(HERE.parent / page, mark, "\n".join(text))
    return 0


HEADER = ("| mechanism | with | without | on | lines | files | called by |", "|---|--:|--:|---|--:|---|---|")


def cells_of(row: Row, on: float, off: float) -> Sequence[object]:
    """A row of the table."""
    figures = (shown(x, row.unit) for x in (on, off))
    return row.mechanism, *figures, row.on, lines(row.files), named(row.files), row.called


if __name__ == "__main__":
    raise SystemExit(write_table(ROWS, __doc__ or "", HEADER, cells_of, "docs/mechanisms.md", "mechanisms"))
