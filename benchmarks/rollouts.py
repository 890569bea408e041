"""How many times as fast as MuJoCo's C a step of the soft law is, on one thread: the sentences of docs/contact.md.

    python benchmarks/rollouts.py FILE.xml ... [blocks]    blocks: twenty on a plane, which need no file

64 states of a random motion of MuJoCo's, without actuators, sensors and controls in either. `mujoco.rollout`
takes a step from each, warm-started as in that motion; Drevo takes them cold, 16 times over in a batch of 1,024.
Processor time of one process, the least of --rounds windows in turn.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mujoco
import numpy as np
from mujoco import rollout

import drevo
from drevo.envs.simulation import drevo_state
from drevo.model.loaders.solids import MOST_SUPPORTS

STATES, COPIES, WINDOW = 64, 16, 4e-3  # WINDOW: seconds of a window, or one call
METHODS = {0: "euler", 1: "rk4", 2: "implicitfast", 3: "implicitfast"}
Array = np.ndarray[Any, Any]


def blocks() -> str:
    """Two layers of ten blocks, 8 to 10 cm and 0.3 kg, which fall a centimetre."""
    places = [(0.13 * (k % 5), 0.13 * (k // 5 % 2), 0.06 + 0.11 * (k // 10)) for k in range(20)]
    rng = np.random.default_rng(0)
    bodies = "".join(
        f'<body pos="{x + rng.uniform(-0.02, 0.02)} {y + rng.uniform(-0.02, 0.02)} {z}"><freejoint/>'
        '<geom type="box" size=".05 .04 .05" mass=".3"/></body>'
        for x, y, z in places
    )
    return (
        '<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="9 9 1"/>'
        f"{bodies}</worldbody></mujoco>"
    )


def motion(m: Any) -> tuple[Array, Array, Array]:
    """Positions, velocities and warm starts: each 25 steps under other controls, four motions from the start."""
    rng, d, found = np.random.default_rng(0), mujoco.MjData(m), []
    for k in range(STATES):
        if k % 16 == 0:
            mujoco.mj_resetData(m, d)
            if m.nkey:
                mujoco.mj_resetDataKeyframe(m, d, 0)
            if k % 32 == 0 and k:
                d.qvel[:] = rng.normal(size=m.nv)
        most = np.where(m.actuator_ctrllimited, np.minimum(1.0, abs(m.actuator_ctrlrange).max(1)), 1.0)
        d.ctrl[:] = rng.uniform(-1.0, 1.0, m.nu) * most
        mujoco.mj_step(m, d, nstep=25)
        if not np.isfinite(d.qpos).all() or abs(d.qvel).max() > 1e4:
            mujoco.mj_resetData(m, d)
        found.append((d.qpos.copy(), d.qvel.copy(), d.qacc_warmstart.copy()))
    q, v, warm = (np.array(x) for x in zip(*found))
    return q, v, warm


def seconds(call: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def row(name: str, rounds: int) -> str:
    """One line of the table."""
    text = blocks() if name == "blocks" else ""
    m: Any = mujoco.MjModel.from_xml_string(text) if text else mujoco.MjModel.from_xml_path(name)
    q, v, warm = motion(m)
    m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION | mujoco.mjtDisableBit.mjDSBL_SENSOR
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    d, starts, touching = mujoco.MjData(m), np.zeros((STATES, mujoco.mj_stateSize(m, full))), 0
    for k in range(STATES):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:] = q[k], v[k]
        mujoco.mj_getState(m, d, starts[k], full)
        mujoco.mj_forward(m, d)
        touching += d.ncon

    robot = drevo.load(text or name, hulls=MOST_SUPPORTS)
    begin = time.process_time()
    step = drevo.compile(robot, "step", dt=m.opt.timestep, ground=None, method=METHODS[int(m.opt.integrator)])
    ours = [np.array(x, float) for x in zip(*(drevo_state(robot.model, a, b) for a, b in zip(q, v)))]
    given = [*(np.tile(x, (COPIES, 1)) for x in ours), np.zeros((STATES * COPIES, robot.nv))]
    out = step(*given, threads=1)
    prepared = time.process_time() - begin
    with rollout.Rollout(nthread=0) as pool:
        calls = (
            lambda: step(*given, threads=1, out=out),
            lambda: pool.rollout(m, [d], starts, nstep=1, initial_warmstart=warm),
        )
        counts = [max(1, int(WINDOW / seconds(call, 1))) for call in calls]
        least = [np.inf, np.inf]
        for _ in range(rounds):
            least = [min(x, seconds(call, n)) for x, call, n in zip(least, calls, counts)]
    a, b = 1e6 * least[0] / STATES / COPIES, 1e6 * least[1] / STATES
    label = os.path.splitext(os.path.basename(name))[0]
    places = out.forces.shape[-2]
    return f"| {label} | {touching / STATES:.0f} of {places} | {a:.2f} | {b:.1f} | {b / a:.1f} | {prepared:.0f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"MuJoCo {mujoco.__version__}, one thread.\n")
    print("| model | MuJoCo's contacts, places here | Drevo, us a step | MuJoCo | times | prepared, s |")
    print("|---|---|--:|--:|--:|--:|")
    for name in options.files:
        print(row(name, options.rounds), flush=True)


if __name__ == "__main__":
    main()
