"""Chains of 10 to 100,000 bodies: Drevo's rolled form beside Pinocchio and MuJoCo, interleaved in one process.

One core, one state at a time, and for Drevo also batches; the least of many short windows counts, as in
peers.py. Pinocchio's Data holds four tensors of n^3 numbers, 32 GB for 1,000 bodies, which its dynamics never
reads: where memory does not hold them, all contenders of that length run in a process that folds blocks of
1 GB and more onto 256 MB (folded.c, made by the machine's C compiler; without one Pinocchio's place stays
empty). Writes chains.md and chains.json beside this file.

    python benchmarks/chains.py           measure
    python benchmarks/chains.py --check   n up to 1,000; fails where a peer is faster
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
import pinocchio as pin

import drevo
from drevo.codegen.store.build import Spec
from drevo.compiler.ways.rolled import rolled_function
from drevo.model.description import Inertial, Joint, Link, Model

HERE = Path(__file__).parent
SIZES = (10, 100, 400, 1_000, 10_000, 100_000)
PEERS_TO = 1_000  # MuJoCo keeps M, n^2 / 2 numbers for a chain
WINDOW = 0.01  # seconds of one window
BATCH = 256  # states of a batch
QUANTITIES = ("inverse_dynamics", "forward_dynamics")
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
MASS, LENGTH, MOMENTS = 0.3, 0.05, (2e-3, 3e-3, 4e-3)  # of every body
CENTRE = (0.02, 0.01, -0.015)
FOLDED = "CHAINS_FOLDED"  # set in the process that folds large blocks

Case = dict[str, Callable[[], Any]]


def main() -> int:
    """Measure, print, write; 1 when --check finds a peer that is faster."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", type=int, help="print the rows of one length as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(chain(options.only, options.rounds)))
        return 0
    rows = []
    for n in SIZES[:4] if options.check else SIZES:
        rows += chain(n, options.rounds) if fits(n) else folded(n, options.rounds)
        print(markdown(rows[-2:]).splitlines()[-2:], file=sys.stderr)
    print(markdown(rows))
    if options.check:
        return check(rows)
    (HERE / "chains.md").write_text(markdown(rows))
    (HERE / "chains.json").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


# --- the chain in every contender's form -------------------------------------------------------------------


def chain_model(n: int) -> Model:
    """n equal bodies, axes x, y, z, x, ..."""
    tensor = tuple(tuple(MOMENTS[i] if i == j else 0.0 for j in range(3)) for i in range(3))
    body: Any = Inertial(MASS, CENTRE, tensor)  # type: ignore[arg-type]
    links = [Link("world"), *(Link(f"l{i}", body) for i in range(n))]
    joints = [
        Joint(f"j{i}", "revolute", links[i].name, f"l{i}", (LENGTH if i else 0.0, 0.0, 0.0), axis=AXES[i % 3])
        for i in range(n)
    ]
    return Model(f"chain-{n}", tuple(links), tuple(joints))


@lru_cache(maxsize=1)
def chain_pin(n: int) -> tuple[Any, Any]:
    """The same for Pinocchio, with its data: a minute's work for 1,000 bodies."""
    model, kinds = pin.Model(), (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)
    inertia, parent = pin.Inertia(MASS, np.array(CENTRE), np.diag(MOMENTS)), 0
    for i in range(n):
        at = pin.SE3(np.eye(3), np.array([LENGTH if i else 0.0, 0.0, 0.0]))
        parent = model.addJoint(parent, kinds[i % 3](), at, f"j{i}")
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model, model.createData()


def chain_mujoco(n: int) -> Any:
    """The same for MuJoCo."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for i in range(n):
        body = body.add_body(pos=[LENGTH if i else 0.0, 0.0, 0.0], mass=MASS, ipos=CENTRE, inertia=MOMENTS,
                             explicitinertial=True)  # fmt: skip
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=AXES[i % 3])
    return spec.compile()


def obtained(model: Model, quantity: str) -> tuple[Any, float]:
    """Drevo's function, made anew, and the seconds that took, the least of three times."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        found = rolled_function(model, quantity, Spec(), cache=False)
        if found is None:
            found = drevo.compile(model, quantity, cache=False)
        found.prepare()  # what computes one state, and a batch
        seconds.append(time.perf_counter() - start)
    return found, min(seconds)


# --- measuring ---------------------------------------------------------------------------------------------


def chain(n: int, rounds: int) -> list[dict[str, Any]]:
    """Both quantities of one chain."""
    model, rng = chain_model(n), np.random.default_rng(0)
    many = min(BATCH, max(8, 1_000_000 // n))
    states = rng.uniform(-1.0, 1.0, (3, many, n)) / np.sqrt(n)
    out = []
    for quantity in QUANTITIES:
        function, seconds = obtained(model, quantity)
        one, room, rooms = [x[0].copy() for x in states], np.empty(n), np.empty((many, n))
        call = function.fast or function
        case: Case = {
            "drevo": lambda c=call, x=one, o=room: c(*x, out=o),  # type: ignore[misc]
            "drevo batch": lambda c=call, o=rooms: c(*states, out=o),  # type: ignore[misc]
        }
        if n <= PEERS_TO:
            case |= peers(n, quantity, one)
            same(quantity, case)
        best = measure(case, rounds if n < 10_000 else max(3, rounds // 3))
        best["drevo batch"] /= many
        ns = {k: round(x / n * 1e9, 1) for k, x in best.items()}
        out.append({"n": n, "quantity": quantity, "seconds": round(seconds, 3), "ns a body": ns})
    return out


def peers(n: int, quantity: str, one: list[Any]) -> Case:
    """One call of each peer on one state; MuJoCo's stages on its own data."""
    inverse, m = quantity == "inverse_dynamics", chain_mujoco(n)
    d = mujoco.MjData(m)
    d.qpos, d.qvel = one[0], one[1]
    given = d.qacc if inverse else d.qfrc_applied
    given[:] = one[2]
    stages = _inverse if inverse else _forward
    case: Case = {"mujoco": lambda: stages(m, d)}
    if fits(n) or FOLDED in os.environ:
        (model, data), algorithm = chain_pin(n), pin.rnea if inverse else pin.aba
        case["pinocchio"] = lambda: algorithm(model, data, *one)
    return case


def fits(n: int) -> bool:
    """Pinocchio is not asked, or memory holds its tensors and the copy that Python makes of them."""
    return n > PEERS_TO or 80.0 * n**3 < os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def folded(n: int, rounds: int) -> list[dict[str, Any]]:
    """The same in a process whose large blocks share their memory; without a C compiler, without Pinocchio."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return chain(n, rounds)
    with tempfile.TemporaryDirectory() as room:
        library = str(Path(room) / "folded.so")
        made = [compiler, "-O2", "-shared", "-fPIC", "-o", library, str(HERE / "folded.c"), "-ldl"]
        subprocess.run(made, check=True)
        command = [sys.executable, __file__, "--only", str(n), "--rounds", str(rounds)]
        given = {**os.environ, "LD_PRELOAD": library, FOLDED: "1"}
        text = subprocess.run(command, env=given, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def _inverse(m: Any, d: Any) -> Any:
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_comVel(m, d)
    mujoco.mj_rne(m, d, 1, d.qfrc_inverse)
    return d.qfrc_inverse


def _forward(m: Any, d: Any) -> Any:
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    mujoco.mj_makeM(m, d) if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb(m, d)
    mujoco.mj_factorM(m, d)
    mujoco.mj_comVel(m, d)
    mujoco.mj_rne(m, d, 0, d.qfrc_bias)
    mujoco.mj_solveM(m, d, d.qacc.reshape(1, -1), (d.qfrc_applied - d.qfrc_bias).reshape(1, -1))
    return d.qacc


def same(quantity: str, case: Case) -> None:
    """All contenders give the same numbers, or no speed is compared."""
    right = np.array(case["drevo"]())
    for name in [x for x in case if not x.startswith("drevo")]:
        worst = float(np.abs(np.array(case[name]()) - right).max() / np.abs(right).max())
        if not worst < 1e-6:
            raise SystemExit(f"{quantity}: Drevo and {name} differ by {worst:.1e}; no speed is compared")


def measure(case: Case, rounds: int) -> dict[str, float]:
    """Seconds of one call: windows of all contenders in turn, the least of each."""
    repeats = {name: max(1, int(WINDOW / _timed(call, 2))) for name, call in case.items()}
    best = dict.fromkeys(case, np.inf)
    for _ in range(rounds):
        for name, call in case.items():
            best[name] = min(best[name], _timed(call, repeats[name]))
    return best


def _timed(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


# --- reporting ---------------------------------------------------------------------------------------------


def markdown(rows: list[dict[str, Any]]) -> str:
    """A table of nanoseconds a body."""
    names = ("drevo", "pinocchio", "mujoco", "drevo batch")
    out = ["Nanoseconds a body of one evaluation on one core; a batch is counted per sample.", ""]
    out += [f"| quantity | bodies | made in, s | {' | '.join(names)} |", "|---|---" + "|---" * 5 + "|"]
    for row in rows:
        cells = [str(row["ns a body"].get(x, "")) for x in names]
        title = row["quantity"].replace("_", " ")
        out.append(f"| {title} | {row['n']:,} | {row['seconds']:.2f} | {' | '.join(cells)} |")
    return "\n".join([*out, ""])


def check(rows: list[dict[str, Any]]) -> int:
    """Whether Drevo is the fastest everywhere."""
    faster = []
    for row in rows:
        ns, title = row["ns a body"], f"{row['quantity']}, {row['n']} bodies"
        faster += [f"{title}: {x} is faster" for x in ns if ns[x] < ns["drevo"] and x != "drevo batch"]
    print("\n".join(faster) or "Drevo is the fastest everywhere")
    return int(bool(faster))


if __name__ == "__main__":
    sys.exit(main())
