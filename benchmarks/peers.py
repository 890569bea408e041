"""Drevo against Pinocchio and MuJoCo, interleaved in one process, on one core.

Every figure is the least of many short windows: on a shared machine the least is what the code can do, and
interleaving gives every contender the same weather. Batches hold 100,000 random states in (B, n) arrays, of
which a peer's window takes a slice. Writes results.md, results.json and results.svg beside this file.

    python benchmarks/peers.py            measure
    python benchmarks/peers.py --check    measure the Panda only and fail below the promised factors
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
import pinocchio as pin

import drevo

sys.path.insert(0, str(Path(__file__).parent))
import report
from robots import SUBJECTS, Subject, plain_file, plain_urdf

HERE = Path(__file__).parent
STATES = 100_000
SLICE = 2_000  # states of one window of a peer
CACHED = 2**18  # bytes of a batch that stays in the cache
CALLS = 200  # calls of one window of single calls
ROUNDS = 25
QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
PROMISED = {"batch": 15.0, "call": 3.0}  # Panda inverse dynamics: batch against C++, one call against Python

Window = Callable[[int], tuple[float, int]]  # round -> seconds, evaluations


@dataclass(slots=True)
class Case:
    """One robot in every contender's form."""

    subject: Subject
    robot: Any
    model: Any
    data: Any
    mj_model: Any
    mj_data: Any
    state: dict[str, Any]
    windows: dict[tuple[str, str], Window] = field(default_factory=dict)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)


def main() -> int:
    """Measure, print, write; the exit code is 1 when --check finds a promise broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    start, results = time.perf_counter(), {}
    for subject in SUBJECTS[:1] if options.check else SUBJECTS:
        case = prepare(subject)
        compare(case)
        measure(case, options.rounds)
        results[subject.name] = figures(case)
        print(f"{subject.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.check:
        return check(results["panda"])
    document = {"machine": machine(), "results": results}
    (HERE / "results.json").write_text(json.dumps(document, indent=1) + "\n")
    (HERE / "results.md").write_text(report.markdown(document))
    (HERE / "results.svg").write_text(report.svg(document))
    report.insert(HERE.parent / "README.md", "bench", report.summary(document))
    print(report.markdown(document))
    return 0


def machine() -> dict[str, str]:
    """What the figures belong to."""
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line]
    return {
        "cpu": names[0] if names else platform.machine(),
        "python": platform.python_version(), "numpy": np.__version__, "drevo": drevo.__version__,
        "pinocchio": pin.__version__, "mujoco": mujoco.__version__,
    }  # fmt: skip


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


# --- contenders --------------------------------------------------------------------------------------------


def prepare(subject: Subject) -> Case:
    """Load the robot three times and draw the states."""
    path = plain_file(subject)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        robot = drevo.load(path, base=subject.base)
    free = (pin.JointModelFreeFlyer(),) if subject.base == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *free)
    mj_model = mujoco.MjModel.from_xml_string(plain_urdf(subject, mujoco=True))
    rng = np.random.default_rng(0)
    v, a = rng.normal(size=(2, STATES, robot.nv))
    state = {"q": robot.random(rng, STATES), "v": v, "a": a, "tau": 10.0 * a}
    case = Case(subject, robot, model, model.createData(), mj_model, mujoco.MjData(mj_model), state)
    for name in QUANTITIES:
        _enter_drevo(case, name)
        _enter_pinocchio(case, name)
        _enter_mujoco(case, name)
    return case


def _arguments(case: Case, name: str) -> list[Any]:
    names = {"inverse_dynamics": "q v a", "mass_matrix": "q", "forward_dynamics": "q v tau"}[name].split()
    return [case.state[key] for key in names]


def _enter_drevo(case: Case, name: str) -> None:
    rows, arguments = getattr(case.robot, name), _arguments(case, name)
    out = rows(*arguments)
    columns = drevo.compile(case.robot, name, layout="batch_last", packed=name == "mass_matrix")
    few = max(64, CACHED // (sum(x[0].nbytes for x in arguments) + out[0].nbytes) // 64 * 64)
    cached = [np.ascontiguousarray(x[:few].T) for x in arguments]
    cached_out = columns(*cached)
    one = [x[0].copy() for x in arguments]
    case.windows[name, "drevo batch"] = lambda k: (_timed(lambda: rows(*arguments, out=out)), STATES)
    case.windows[name, "drevo cached"] = lambda k: (
        _timed(lambda: columns(*cached, out=cached_out), 20), 20 * few)  # fmt: skip
    case.windows[name, "drevo call"] = lambda k: (_timed(lambda: rows(*one), CALLS), CALLS)


def _enter_pinocchio(case: Case, name: str) -> None:
    call = {"inverse_dynamics": pin.rnea, "mass_matrix": pin.crba, "forward_dynamics": pin.aba}[name]
    model, data, arguments = case.model, case.data, _arguments(case, name)
    one = [x[0].copy() for x in arguments]
    case.windows[name, "pin call"] = lambda k: (_timed(lambda: call(model, data, *one), CALLS), CALLS)
    case.windows[name, "pin loop"] = lambda k: _loop(lambda *s: call(model, data, *s), arguments, k)
    parallel = {"inverse_dynamics": pin.rneaInParallel, "forward_dynamics": pin.abaInParallel}.get(name)
    if parallel is None:
        return
    pool = pin.ModelPool(model, 1)
    out = np.zeros((model.nv, SLICE), order="F")

    def window(k: int) -> tuple[float, int]:
        columns = [x[_slice(k)].T for x in arguments]  # Fortran order: the same memory, no copy
        return _timed(lambda: parallel(1, pool, *columns, out)), SLICE

    case.windows[name, "pin C++"] = window


def _enter_mujoco(case: Case, name: str) -> None:
    """The stages that the quantity needs, called one by one on one state; M stays in MuJoCo's sparse form."""
    m, d, stages = case.mj_model, case.mj_data, _STAGES[name]
    order = [0, 1, 2, 6, 3, 4, 5, *range(7, case.robot.nq)] if case.subject.base == "floating" else slice(None)
    d.qpos, d.qvel, d.qacc = case.state["q"][0, order], case.state["v"][0], case.state["a"][0]
    case.windows[name, "mujoco call"] = lambda k: (_timed(lambda: stages(m, d), CALLS), CALLS)


def _inverse(m: Any, d: Any) -> None:
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_comVel(m, d)
    mujoco.mj_rne(m, d, 1, d.qfrc_inverse)


def _matrix(m: Any, d: Any) -> None:
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_makeM(m, d) if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb(m, d)


def _forward(m: Any, d: Any) -> None:
    _matrix(m, d)
    mujoco.mj_factorM(m, d)
    mujoco.mj_comVel(m, d)
    mujoco.mj_rne(m, d, 0, d.qfrc_bias)
    mujoco.mj_solveM(m, d, d.qacc.reshape(1, -1), d.qfrc_bias.reshape(1, -1))


_STAGES = {"inverse_dynamics": _inverse, "mass_matrix": _matrix, "forward_dynamics": _forward}
_STAGE_COUNT = {"inverse_dynamics": 4, "mass_matrix": 3, "forward_dynamics": 7}


# --- measuring ---------------------------------------------------------------------------------------------


def _timed(call: Callable[[], Any], repeats: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - start


def _slice(k: int) -> slice:
    at = (k * SLICE) % STATES
    return slice(at, at + SLICE)


def _loop(call: Callable[..., Any], arguments: list[Any], k: int) -> tuple[float, int]:
    rows = list(zip(*(x[_slice(k)] for x in arguments)))
    start = time.perf_counter()
    for row in rows:
        call(*row)
    return time.perf_counter() - start, len(rows)


def measure(case: Case, rounds: int) -> None:
    """One window of every contender in turn, `rounds` times; the least counts."""
    for k in range(rounds):
        for key, window in case.windows.items():
            seconds, count = window(k)
            case.seconds[key] = min(case.seconds.get(key, np.inf), seconds / count)


def overheads() -> dict[str, float]:
    """What a call from Python costs by itself: pin's functions on one joint, an empty stage of MuJoCo."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    data, x = model.createData(), np.zeros(1)
    m = mujoco.MjModel.from_xml_string("<mujoco/>")
    d = mujoco.MjData(m)
    calls: dict[str, Callable[[], Any]] = {
        "inverse_dynamics": lambda: pin.rnea(model, data, x, x, x),
        "mass_matrix": lambda: pin.crba(model, data, x),
        "forward_dynamics": lambda: pin.aba(model, data, x, x, x),
        "mujoco": lambda: mujoco.mj_fwdActuation(m, d),
    }
    return {name: min(_timed(call, CALLS) for _ in range(3 * ROUNDS)) / CALLS for name, call in calls.items()}


def figures(case: Case) -> dict[str, Any]:
    """Nanoseconds per evaluation by quantity and contender; also less the overhead of the calls."""
    extra, out = overheads(), {}
    for name in QUANTITIES:
        row = {who: seconds * 1e9 for (what, who), seconds in case.seconds.items() if what == name}
        row["pin corrected"] = min(row["pin loop"], row["pin call"]) - extra[name] * 1e9
        row["mujoco corrected"] = row["mujoco call"] - _STAGE_COUNT[name] * extra["mujoco"] * 1e9
        out[name] = {who: round(value, 1) for who, value in row.items()}
    return {"nv": case.robot.nv, "base": case.subject.base, "ns": out}


def compare(case: Case) -> None:
    """The contenders compute the same thing: Drevo and Pinocchio on one state, joints by name."""
    q, v = (case.state[key][0] for key in "qv")
    offset = 7 if case.subject.base == "floating" else 0
    names = list(case.model.names)[2 if offset else 1 :]
    own = [n for n in case.robot.joint_names if n in names]
    where = [own.index(n) for n in names]
    pq = np.concatenate([q[:offset], q[offset:][where]])
    pv = np.concatenate([v[: offset and 6], v[offset and 6 :][where]])
    theirs = pin.rnea(case.model, case.data, pq, pv, 0.0 * pv)
    ours = case.robot.bias(q, v)
    ours = np.concatenate([ours[: offset and 6], ours[offset and 6 :][where]])
    worst = float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))
    if not worst < 1e-10:
        raise SystemExit(f"{case.subject.name}: Drevo and Pinocchio differ by {worst:.1e}; no speed is compared")


def check(panda: dict[str, Any]) -> int:
    """Whether the promises hold."""
    row = panda["ns"]["inverse_dynamics"]
    got = {"batch": row["pin C++"] / row["drevo batch"], "call": row["pin call"] / row["drevo call"]}
    for name, factor in got.items():
        word = "holds" if factor >= PROMISED[name] else "BROKEN"
        print(f"panda inverse dynamics, {name}: {factor:.1f} times pin, promised {PROMISED[name]:g}: {word}")
    return int(any(got[name] < PROMISED[name] for name in PROMISED))


if __name__ == "__main__":
    sys.exit(main())
