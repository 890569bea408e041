"""Steps of robots that touch: the soft law compiled, and MuJoCo's C by its `rollout`, interleaved on one core.

The robots are gymnasium's MuJoCo v5 tasks, from the files of that package (`pip install gymnasium`). States are
out of random motions, controls are random and held over a window. MuJoCo has the options of the file: its stock
solver, which stops at 1e-8. The least of several short windows counts. Steps and their Jacobians of an arm of
seven joints on one contact, of Go1 on four feet and of Talos on eight points, from example-robot-data, stand
beside the forward dynamics of the same robot in the same windows, and so do steps of Talos that holds itself on
bent legs after a push. Writes contact.md and contact.json here, and the tables into docs/contact.md.

    python benchmarks/contact.py
"""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout
from report import insert

import drevo
from drevo.contact.pairs import contact_candidates
from drevo.mechanics.algorithms.kinematics import placed_bodies
from drevo.mechanics.tree import build_tree
from drevo.model.contact import Geom
from drevo.robot.face import Robot

HERE = Path(__file__).parent
FILES = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
TASKS = {"hopper": 20, "walker2d_v5": 20, "half_cheetah": 20, "ant": 12, "humanoid": 6}  # how many times MuJoCo
BATCH, WINDOWS, STATES, STEPS = 2048, 40, 32, 4
FEW = 64  # states of derivatives
SOLE = [(x, y, 0.0) for x in (0.1, -0.1) for y in (0.06, -0.06)]
POINTS: dict[str, tuple[dict[str, list[tuple[float, float, float]]], str]] = {
    "panda": ({"panda_hand": [(0.0, 0.0, 0.1)]}, "fixed"),
    "go1": ({f"{leg}_foot": [(0.0, 0.0, -0.02)] for leg in ("FR", "FL", "RR", "RL")}, "floating"),
    "talos_reduced": ({f"{side}_sole_link": SOLE for side in ("left", "right")}, "floating"),
}
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
    before = time.process_time()
    call()
    return time.process_time() - before


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


def on_points(name: str, links: dict[str, list[tuple[float, float, float]]], base: str) -> Robot:
    """A robot of example-robot-data that touches the ground by points of its links, without limits and friction of
    joints, its fingers held."""
    model = drevo.load(name, base=base).model

    def plain(joint: Any) -> Any:
        held = {"kind": "fixed", "mimic": None} if "finger" in joint.name else {}
        return replace(joint, limit=None, dynamics=None, **held)

    points = [(link, at) for link, places in links.items() for at in places]
    geoms = tuple(Geom(f"p{k}", link, "sphere", (0.0,), at, contype=0) for k, (link, at) in enumerate(points))
    none: dict[str, Any] = dict.fromkeys(
        ("pairs", "softness", "keyframes", "sensors", "couplings", "actuators"), ()
    )
    return Robot(replace(model, joints=tuple(map(plain, model.joints)), geoms=geoms, initial=(), **none))


def scattered(robot: Robot) -> tuple[Array, ...]:
    """States at random whose lowest point is 1 mm deep, and efforts."""
    rng = np.random.default_rng(0)
    q = robot.integrate(robot.neutral(), rng.normal(0.0, 0.1, (FEW, robot.nv)))
    if robot.nq == robot.nv:
        q[:, 1] += 2.4  # the hand below what the arm stands on
    else:
        lower(robot, q, 1e-3)
    return q, *rng.normal(0.0, 0.3, (2, FEW, robot.nv))


def lower(robot: Robot, q: Array, depth: float) -> None:
    tree, found = build_tree(robot.model), contact_candidates(robot.model, "plane")
    for row in q:
        poses = placed_bodies(tree, list(row))
        row[2] -= min(float(x.touch(poses).dist) for x in found) + depth


def standing(robot: Robot) -> tuple[Array, ...]:
    """States of Talos on both feet, 60 ms and less after pushes, and the efforts by which it holds itself."""
    rng, nv = np.random.default_rng(1), robot.nv
    home, at = robot.neutral(), {joint.name: sq.start for joint, sq, _ in robot.model.slices()}
    for side in ("left", "right"):
        for joint, angle in ((3, -0.4), (4, 0.8), (5, -0.4)):
            home[at[f"leg_{side}_{joint}_joint"]] = angle
    q = home[None].repeat(FEW // 2, 0)
    lower(robot, q, 0.0)
    home, v, kept = q.copy(), rng.normal(0.0, 0.1, (len(q), nv)) * np.where(np.arange(nv) < 6, 0.2, 1.0), []
    step = drevo.compile(robot, "step", dt=1e-3, law="coulomb", friction=0.7)
    for k in range(60):
        wanted = -64.0 * robot.difference(home, q) - 16.0 * v
        tau = robot.inverse_dynamics(q, v, wanted)
        J = np.concatenate([robot.jacobian(q, link=link) for link in POINTS["talos_reduced"][0]], axis=1)
        push = np.linalg.pinv(J[..., :6].swapaxes(1, 2)) @ tau[:, :6, None]
        tau -= (J.swapaxes(1, 2) @ push)[..., 0]
        if k in (29, 59):
            kept.append((q, v, tau))
        q, v, *_ = step(q, v, tau)
    q, v, tau = (np.concatenate(x) for x in zip(*kept))
    q[:, 2] -= 1e-4  # as deep as both laws leave it
    return q, v, tau


def rates(name: str, law: str, given: tuple[Array, ...], derivative: bool = True) -> dict[str, float]:
    """us of forward dynamics, of a step and of its Jacobian, of states that touch."""
    robot, how = on_points(name, *POINTS[name]), {"dt": 1e-3, "law": law, "friction": 0.7}
    calls = {
        "forward dynamics": drevo.compile(robot, "forward_dynamics"),
        "step": drevo.compile(robot, "step", **how),
    }
    if derivative:
        calls["jacobian"] = drevo.compile(robot, "step", product="jacobian", **how)
    out, least = {k: f(*given) for k, f in calls.items()}, dict.fromkeys(calls, np.inf)
    for _ in range(8 * WINDOWS):
        for k, f in calls.items():
            f(*given, out=out[k])  # what ran before has left other things in the caches
            least[k] = min(least[k], seconds(partial(f, *given, out=out[k])) / FEW * 1e6)
    return least | {"times": least["step"] / least["forward dynamics"]}


def tables(found: dict[str, dict[str, float]], touched: dict[str, dict[str, float]]) -> str:
    rows = ["| task | Drevo, us a step | MuJoCo | times | aim |", "|---|---|---|---|---|"]
    for name, x in found.items():
        rows.append(f"| {name} | {x['drevo']:.2f} | {x['mujoco']:.1f} | {x['times']:.0f} | {TASKS[name]} |")
    heads = ("forward dynamics", "step", "jacobian")
    rows += ["", f"| us a state, batches of {FEW} | {' | '.join(heads)} | a step in forward dynamics |"]
    rows.append("|---|---|---|---|---|")
    for name, x in touched.items():
        cells = [f"{x[k]:.2f}" if k in x else "" for k in heads]
        rows.append(f"| {name} | {' | '.join(cells)} | {x['times']:.1f} |")
    return "\n".join([f"MuJoCo {mujoco.__version__}, one core of {processor()}, batches of {BATCH}.", "", *rows])


def processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    return next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "this machine")


def main() -> None:
    warnings.simplefilter("ignore")
    touched, laws = {}, ("soft", "coulomb")
    for name in POINTS:
        given = scattered(on_points(name, *POINTS[name]))
        touched |= {f"{name}, {law}": rates(name, law, given) for law in laws}
    given = standing(on_points(name, *POINTS[name]))
    touched |= {f"{name} stands, {law}": rates(name, law, given, derivative=False) for law in laws}
    found = {name: measure(name) for name in TASKS}
    text = tables(found, touched)
    (HERE / "contact.md").write_text(text + "\n", encoding="utf-8")
    (HERE / "contact.json").write_text(json.dumps(found | touched, indent=1) + "\n", encoding="utf-8")
    insert(HERE.parent / "docs/contact.md", "steps", text)
    print(text)


if __name__ == "__main__":
    main()
