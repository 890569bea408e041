"""Motions: a chain of ten rods and double pendulums, by Drevo, NumPy, SciPy and MuJoCo, interleaved on one core.

The chain is the one of `drevo simulate rod-chain`; the right-hand side by hand is in absolute angles, as a person
would write it with NumPy arrays. The pendulums are points of 1 kg on rods of 1 m. The least of several windows
counts. Writes simulation.md and simulation.json beside this file.

    python benchmarks/simulation.py           measure
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
from mujoco import rollout
from scipy.integrate import solve_ivp

import drevo
from drevo.simulate import simulate

HERE = Path(__file__).parent
G, RODS, STEP = 9.81, 10, 1e-3
BATCH, STEPS = 4096, 100  # double pendulums, steps of each
Array = np.ndarray[Any, Any]
PENDULUM = """<mujoco><option timestep="0.001" integrator="{}" gravity="0 0 -9.81">
<flag contact="disable"/></option>
<worldbody><body><joint axis="0 1 0"/><inertial pos="0 0 -1" mass="1" diaginertia="1e-9 1e-9 1e-9"/>
<body pos="0 0 -1"><joint axis="0 1 0"/><inertial pos="0 0 -1" mass="1" diaginertia="1e-9 1e-9 1e-9"/></body>
</body></worldbody></mujoco>"""


def rates(y: Array) -> Array:
    """The chain by hand: a_ij (theta'' cos + theta'^2 sin) = -mu g l (n - i + 1/2) cos theta_i."""
    apart = y[:RODS, None] - y[None, :RODS]
    omega = y[RODS:]
    right = -LOAD * np.cos(y[:RODS]) - (WEIGHT * np.sin(apart)) @ (omega * omega)
    return np.concatenate([omega, np.linalg.solve(WEIGHT * np.cos(apart), right)])


_I = np.arange(1, RODS + 1)
_L, _MU = 1.0 / RODS, 10.0 / RODS
LOAD = _MU * G * _L * (RODS - _I + 0.5)
WEIGHT = _MU * _L * _L * (RODS - np.maximum.outer(_I, _I) + np.where(np.equal.outer(_I, _I), 1 / 3, 0.5))
START = np.concatenate([-np.ones(RODS), np.zeros(RODS)])


def by_hand(seconds: float) -> Array:
    """RK4 at 1 ms on NumPy arrays."""
    y, h = START, STEP
    for _ in range(round(seconds / h)):
        k1 = rates(y)
        k2 = rates(y + 0.5 * h * k1)
        k3 = rates(y + 0.5 * h * k2)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rates(y + h * k3))
    return y


def chain() -> dict[str, tuple[Callable[[], Any], float]]:
    """name -> work and the seconds of motion in it."""
    robot = drevo.load("rod-chain")
    q0 = np.zeros(RODS)
    q0[0] = -1.0
    last = simulate(robot, q0, duration=0.2, dt=STEP, every=200).q[-1]
    assert np.abs(np.cumsum(last) - by_hand(0.2)[:RODS]).max() < 1e-12
    return {
        "Drevo, RK4 at 1 ms": (lambda: simulate(robot, q0, duration=10.0, dt=STEP, every=100), 10.0),
        "NumPy by hand, RK4 at 1 ms": (lambda: by_hand(0.2), 0.2),
        "NumPy by hand, SciPy's RK45 at rtol 1e-12": (
            lambda: solve_ivp(lambda _, y: rates(y), (0.0, 0.2), START, rtol=1e-12, atol=1e-12), 0.2),
        "Drevo, DOP853 at rtol 1e-12": (
            lambda: simulate(robot, q0, duration=10.0, dt=0.1, method="dop853", rtol=1e-12), 10.0),
    }  # fmt: skip


def pendulums() -> dict[str, tuple[Callable[[], Any], float]]:
    """name -> work and the steps of one pendulum in it, for both methods of both."""
    b = drevo.Builder("double", gravity=(0.0, 0.0, -G))
    for name, parent, z in (("upper", "world", 0.0), ("lower", "upper", -1.0)):
        b.body(
            name, parent, axis=(0, 1, 0), origin=(0, 0, z), mass=1.0, com=(0, 0, -1.0), inertia=np.eye(3) * 1e-9
        )
    robot = b.robot()
    q0 = np.random.default_rng(0).normal(size=(BATCH, 2))
    out: dict[str, tuple[Callable[[], Any], float]] = {}
    for method, theirs in (("semi_implicit_euler", "Euler"), ("rk4", "RK4")):
        model = mujoco.MjModel.from_xml_string(PENDULUM.format(theirs))
        states = np.concatenate([np.zeros((BATCH, 1)), q0, np.zeros((BATCH, 2))], 1)
        data = [mujoco.MjData(model)]
        run = simulate(robot, q0, duration=STEPS * STEP, dt=STEP, every=STEPS, method=method)
        seen, _ = rollout.rollout(model, data, states, nstep=STEPS)
        assert np.abs(seen[:, -1, 1:3] - run.q[-1]).max() < 1e-9, method

        def ours(method: str = method) -> Any:
            return simulate(robot, q0, duration=STEPS * STEP, dt=STEP, every=STEPS, method=method)

        def others(model: Any = model, states: Array = states, data: list[Any] = data) -> Any:
            return rollout.rollout(model, data, states, nstep=STEPS)

        out[f"Drevo, {theirs}"] = ours, BATCH * STEPS
        out[f"MuJoCo rollout, {theirs}"] = others, BATCH * STEPS
    return out


def least(work: dict[str, tuple[Callable[[], Any], float]], rounds: int) -> dict[str, float]:
    """Seconds of computing per unit of each, the least of interleaved rounds."""
    best = dict.fromkeys(work, float("inf"))
    for _ in range(rounds):
        for name, (run, units) in work.items():
            begin = time.process_time()
            run()
            best[name] = min(best[name], (time.process_time() - begin) / units)
    return best


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    rods, pairs = least(chain(), options.rounds), least(pendulums(), options.rounds)
    ours = rods["Drevo, RK4 at 1 ms"]
    found = [
        ("chain: NumPy by hand, RK4", rods["NumPy by hand, RK4 at 1 ms"] / ours),
        ("chain: SciPy's RK45", rods["NumPy by hand, SciPy's RK45 at rtol 1e-12"] / ours),
        *((f"pendulums: MuJoCo rollout, {m}", pairs[f"MuJoCo rollout, {m}"] / pairs[f"Drevo, {m}"])
          for m in ("Euler", "RK4")),
    ]  # fmt: skip
    lines = [
        "# Motions", "", "One core. Ten rods: ms of computing for 10 s of motion. Double pendulums, "
        f"{BATCH} at once: ns a step of one.", "", "| | |", "|---|--:|",
        *(f"| {name} | {10e3 * x:.2f} ms |" for name, x in rods.items()),
        *(f"| {name} | {1e9 * x:.1f} ns |" for name, x in pairs.items()),
        "", "| peer / Drevo | ratio |", "|---|--:|",
        *(f"| {name} | {ratio:.0f} |" for name, ratio in found),
    ]  # fmt: skip
    print("\n".join(lines))
    (HERE / "simulation.md").write_text("\n".join(lines) + "\n")
    (HERE / "simulation.json").write_text(json.dumps({"chain": rods, "pendulums": pairs}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
