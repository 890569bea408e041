"""Task space: steps of task stacks beside mink's, operational space, closed forms, poses from anywhere, one core.

python benchmarks/task_space.py [COUNT]: COUNT problems each (10,000). A step is a FrameTask and a PostureTask
under a ConfigurationLimit, of an arm of six hinges; both solve the same problems in turn, and mink's terms judge
both. Poses are those of random configurations within the limits, reached to 1e-9 m and rad.
"""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import drevo
from drevo.tasks import ConfigurationLimit, FrameTask, PostureTask, VelocityLimit, compile_ik

DT = 0.01  # s
TOOLS = {"panda": "panda_hand", "ur5": "tool0", "kinova": "j2s6s200_end_effector", "baxter": "left_gripper",
         "talos_reduced": "gripper_right_base_link"}  # fmt: skip
LINK = """<body name="b{k}" pos="{x} 0 0"><joint name="j{k}" axis="{axis}" range="-2 2"/>
<geom type="sphere" size="0.05" pos="0.3 0 0" mass="1"/>{more}</body>"""


def arm(n: int = 6) -> drevo.Robot:
    """An arm of hinges about z, y and x in turn."""
    text = ""
    for k in reversed(range(n)):
        text = LINK.format(k=k, x=0.3 if k else 0.1, axis=("0 0 1", "0 1 0", "1 0 0")[k % 3], more=text)
    return drevo.load(f'<mujoco><compiler angle="radian"/><worldbody>{text}</worldbody></mujoco>')


def drawn(robot: drevo.Robot, count: int, seed: int) -> np.ndarray[Any, Any]:
    """Configurations within the limits, turns between -pi and pi."""
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    return np.random.default_rng(seed).uniform(low, high, (count, robot.nq))


def beside_mink(count: int) -> str:
    """Objectives and limits of both, judged by mink's terms, and times of single calls in turn."""
    import mink

    robot = arm()
    model = robot.to_mujoco().compile()
    frame = mink.FrameTask("b5", "body", 1.0, 0.5, lm_damping=1.0)
    posture, limits = mink.PostureTask(model, 1e-2), [mink.ConfigurationLimit(model)]
    posture.set_target(robot.neutral())
    ours = [FrameTask("b5", orientation_cost=0.5, lm_damping=1.0), PostureTask(1e-2)]
    f = compile_ik(robot, ours, DT, limits=[ConfigurationLimit()])
    q, home, data = drawn(robot, count, 5), robot.neutral(), mink.Configuration(model)
    goals = robot.pose(drawn(robot, count, 6), "b5")
    f(q[0], goals[0], home)
    excess, beyond, kkt, times = -np.inf, np.full(2, -np.inf), 0.0, np.zeros(2)
    for x, T in zip(q, goals):
        data.update(x)
        frame.set_target(mink.SE3.from_matrix(T))
        terms = mink.build_ik(data, [frame, posture], DT, limits=limits)
        begin = time.perf_counter()
        theirs = mink.solve_ik(data, [frame, posture], DT, "daqp", limits=limits) * DT
        between = time.perf_counter()
        step = f(x, T, home)
        times += between - begin, time.perf_counter() - between
        both = theirs, step.v * DT
        cost = [0.5 * y @ terms.P @ y + terms.q @ y for y in both]
        excess = max(excess, (cost[1] - cost[0]) / max(1e-300, abs(cost[0])))
        beyond = np.maximum(beyond, [(terms.G @ y - terms.h).max() for y in both])
        kkt = max(kkt, float(step.kkt.max()))
    each = 1e6 * times / count
    return (
        f"beside mink {version('mink')}: objective above its by {excess:.0e} of it at most, beyond limits "
        f"{beyond[1]:.0e} (mink {beyond[0]:.0e}), KKT {kkt:.0e}; a call {each[1]:.1f} us (mink {each[0]:.0f})"
    )


def steps(name: str, count: int) -> str:
    """Time of a step in a batch, with no limits and with those of configuration and velocity."""
    robot, link = drevo.load(name), TOOLS[name]
    q, home = drawn(robot, count, 0), robot.neutral()
    goals, homes = robot.pose(drawn(robot, count, 1), link), np.tile(home, (count, 1))
    tasks = [FrameTask(link), PostureTask(1e-2)]
    out = []
    for limits in ([], [ConfigurationLimit(), VelocityLimit()]):
        f = compile_ik(robot, tasks, DT, limits=limits)
        spent = []
        for _ in range(5):
            begin = time.perf_counter()
            f(q, goals, homes)
            spent.append(time.perf_counter() - begin)
        out.append(1e9 * min(spent) / count)
    return f"{name}: a step in a batch {out[0]:.0f} ns, under limits {out[1]:.0f} ns"


def operational(name: str, count: int = 4096) -> str:
    """Time of Khatib's terms and of a law of operational space, of as many states as a learner has robots."""
    robot, link = drevo.load(name), TOOLS[name]
    q, v = drawn(robot, count, 0), np.zeros((count, robot.nv))
    law = drevo.control.operational_space(robot, link, 100.0, 20.0)
    out = []
    for f in (lambda: robot.operational_space(link, q, v), lambda: law(0.0, q, v)):
        spent = []
        for _ in range(9):
            begin = time.perf_counter()
            f()
            spent.append(time.perf_counter() - begin)
        out.append(1e9 * min(spent) / count)
    return f"{name}: operational space of {count}, {out[0]:.0f} ns each with all matrices, the law {out[1]:.0f} ns"


def anywhere(name: str, count: int) -> str:
    """Share of reachable poses that are reached within the limits, and how many a second."""
    robot, link = drevo.load(name), TOOLS[name]
    poses = robot.pose(drawn(robot, count, 0), link)
    robot.inverse_kinematics(link, poses[:10])
    begin = time.process_time()
    x = robot.inverse_kinematics(link, poses)
    spent = time.process_time() - begin
    error = np.abs(robot.pose(x.q, link) - poses).max((1, 2))[x.success].max()
    kept = ((x.q >= robot.lower) & (x.q <= robot.upper)).all()
    return (
        f"{name}: {100.0 * x.success.mean():.3f} % of {count}, {count / spent:,.0f} a second, "
        f"{x.iterations.mean():.0f} steps each, error {error:.0e}, limits {'kept' if kept else 'NOT KEPT'}"
    )


def closed(name: str, link: str, **given: float) -> str:
    """Time of all branches of a pose in a batch that stays in the cache, and of one call."""
    robot, count = drevo.load(name), 1024
    f = robot.closed_form(link, **given)
    poses = robot.pose(drawn(robot, count, 2), link)
    q, spent = f(poses), []
    for _ in range(200):
        begin = time.perf_counter()
        f(poses, out=q)
        spent.append(time.perf_counter() - begin)
    f(poses[0])
    begin = time.perf_counter()
    for pose in poses:
        f(pose)
    one = 1e6 * (time.perf_counter() - begin) / count
    real = np.isfinite(q).all(-1)
    error = np.abs(robot.pose(q[real], link) - np.repeat(poses[:, None], q.shape[1], 1)[real]).max()
    return (
        f"{name}: {q.shape[1]} branches in closed form in a batch {1e9 * min(spent) / count:.0f} ns, one call "
        f"{one:.2f} us, error {error:.0e}"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(beside_mink(count) if find_spec("mink") else "mink is not installed")
    for name in ("panda", "talos_reduced"):
        print(steps(name, count))
    print(operational("panda"))
    for name, link, given in (
        ("ur5", "tool0", {}),
        ("puma560", "link6", {}),
        ("panda", "panda_hand", {"panda_joint7": 0.4}),
    ):
        print(closed(name, link, **given))
    for name in TOOLS:
        print(anywhere(name, count))


if __name__ == "__main__":
    main()
