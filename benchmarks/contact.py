"""Steps of robots that touch: the soft law compiled, and MuJoCo's C by its `rollout`, interleaved on one core.

The robots are gymnasium's MuJoCo v5 tasks, from the files of that package (`pip install gymnasium`). States are
out of random motions, controls are random and held over a window. MuJoCo has the options of the file: its stock
solver, which stops at 1e-8. The least of several short windows counts. Writes contact.md and contact.json here.

    python benchmarks/contact.py
"""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout

import drevo

HERE = Path(__file__).parent
FILES = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
TASKS = {"hopper": 20, "walker2d_v5": 20, "half_cheetah": 20, "ant": 12, "humanoid": 6}  # how many times MuJoCo
BATCH, WINDOWS, STATES, STEPS = 2048, 40, 32, 4
Array = np.ndarray[Any, Any]


def states(m: Any, count: int) -> tuple[Array, Array, Array]:
    """Positions, velocities and controls of random motions, of which every third state is kept."""
    rng, d, out = np.random.default_rng(0), mujoco.MjData(m), []
    for k in range(3 * count):
        if k % 300 == 0:
            mujoco.mj_resetData(m, d)
            d.qvel[:] = rng.normal(0.0, 0.5, m.nv)
        if k % 10 == 0:
            d.ctrl[:] = rng.uniform(*m.actuator_ctrlrange.T)
        mujoco.mj_step(m, d)
        if k % 3 == 0:
            out.append((d.qpos.copy(), d.qvel.copy(), d.ctrl.copy()))
    q, v, u = (np.array(x) for x in zip(*out))
    return q, v, u


def as_ours(m: Any, q: Array, v: Array, u: Array) -> tuple[Array, Array, Array]:
    """Of Drevo's conventions; efforts of motors, which is what these robots have."""
    q, v, gear = q.copy(), v.copy(), np.zeros((m.nu, m.nv))
    for i, (joint, _) in enumerate(m.actuator_trnid):
        gear[i, m.jnt_dofadr[joint]] = m.actuator_gear[i, 0]
    for j in np.flatnonzero(m.jnt_type == 0):
        k, at = m.jnt_qposadr[j] + 3, m.jnt_dofadr[j]
        turn = np.zeros(9)
        for row in range(len(q)):
            mujoco.mju_quat2Mat(turn, q[row, k : k + 4])
            v[row, at : at + 3] = turn.reshape(3, 3).T @ v[row, at : at + 3]
        q[:, k : k + 4] = np.roll(q[:, k : k + 4], -1, axis=1)
    return q, v, u @ gear


def seconds(call: Any) -> float:
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def measure(name: str) -> dict[str, float]:
    """us a step of both, and how many times one is the other."""
    path = str(FILES / f"{name}.xml")
    m: Any = mujoco.MjModel.from_xml_path(path)
    robot = drevo.load(path)
    rk4 = m.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    step = drevo.compile(robot, "step", dt=m.opt.timestep, ground=None, method="rk4" if rk4 else "euler")
    q, v, u = states(m, BATCH)
    given = as_ours(m, q, v, u)
    out = step(*given)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    starts, d = np.zeros((STATES, mujoco.mj_stateSize(m, full))), mujoco.MjData(m)
    for k in range(STATES):
        d.qpos[:], d.qvel[:] = q[k * BATCH // STATES], v[k * BATCH // STATES]
        mujoco.mj_getState(m, d, starts[k], full)
    controls = np.repeat(u[:: BATCH // STATES][:, None], STEPS, axis=1)
    ours, theirs, data = [], [], [mujoco.MjData(m)]
    with rollout.Rollout(nthread=0) as c:
        for _ in range(WINDOWS):
            ours.append(seconds(lambda: step(*given, out=out)) / BATCH)
            theirs.append(seconds(lambda: c.rollout(m, data, starts, controls)) / (STATES * STEPS))
    return {"drevo": min(ours) * 1e6, "mujoco": min(theirs) * 1e6, "times": min(theirs) / min(ours)}


def main() -> None:
    warnings.simplefilter("ignore")
    found = {name: measure(name) for name in TASKS}
    rows = ["| task | Drevo, us a step | MuJoCo | times | aim |", "|---|---|---|---|---|"]
    for name, x in found.items():
        rows.append(f"| {name} | {x['drevo']:.2f} | {x['mujoco']:.1f} | {x['times']:.0f} | {TASKS[name]} |")
    text = "\n".join([f"MuJoCo {mujoco.__version__}, one core, batches of {BATCH}.", "", *rows, ""])
    (HERE / "contact.md").write_text(text, encoding="utf-8")
    (HERE / "contact.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
