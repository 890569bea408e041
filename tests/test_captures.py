"""A function of the user's is what it is when something is made of it: whatever it reads beside its arguments, no
code of another one is served for it, in a process or out of the cache."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import constraint, ground
from drevo.codegen.store import memo
from drevo.codegen.store.key import key_text, request
from drevo.compiler.tracer import Tracer
from drevo.constraint import collection
from drevo.constraint.numbers import Numbered
from drevo.contact.step import StepRequest
from drevo.control.shooting.cost import Cost
from drevo.envs.simulation import TaskRobot
from drevo.envs.tasks import Outcome, Task
from drevo.envs.traced import traced_task
from drevo.ground import ground_of
from drevo.simulate.control import traced_law

Number = Callable[[], float]
GAIN = 1.0


class Holder:
    """Something with an attribute."""

    gain = 1.0

    def method(self) -> float:
        return self.gain


def captured(k: float) -> Iterator[Number]:
    """Functions that give k, each of which holds it in another way."""
    global GAIN
    held, cell, holder = {"k": [k]}, np.array([0.0, k]), Holder()

    def closure() -> float:
        return k

    def default(x: float = k) -> float:
        return x

    def by_global() -> float:
        return GAIN

    def nested() -> float:
        return (lambda: closure())()

    GAIN, Holder.gain = k, k
    yield from (closure, default, by_global, nested, lambda: held["k"][0], lambda: float(cell[1]))
    yield from (holder.method, functools.partial(default, k), lambda: holder.gain, lambda: Holder.gain)


@pytest.fixture(scope="module")
def robot() -> drevo.Robot:
    return drevo.load("two-arm-planar")


def test_a_constraint_is_its_function_as_it_is_now(robot: drevo.Robot) -> None:
    q, zero = np.linspace(0.2, 0.5, robot.nq), np.zeros(robot.nv)
    kept: dict[int, Any] = {}
    for k in (1.0, 2.0, np.nextafter(2.0, 3.0), 1.0):
        for n, give in enumerate(captured(k)):
            fresh = constraint.function(lambda pose, q, t, give=give: [give() * q[0] * q[0] + q[1]], 1)
            kept.setdefault(n, fresh)
            found = robot.constrained_dynamics(q, zero, zero, constraints=[fresh])
            assert found.jacobian[0, 0] == 2.0 * k * q[0], (n, k)
    again = [robot.constrained_dynamics(q, zero, zero, constraints=[kept[n]]).jacobian[0, 0] for n in (2, 8, 9)]
    Holder.gain = globals()["GAIN"] = 7.0  # of the same constraints
    later = [robot.constrained_dynamics(q, zero, zero, constraints=[kept[n]]).jacobian[0, 0] for n in (2, 9)]
    assert again == [2.0 * q[0]] * 3 and later == pytest.approx([14.0 * q[0]] * 2, rel=1e-15)


def test_a_tracked_pose_is_its_program_as_it_is_now() -> None:
    arm = drevo.load("puma560")
    q, zero, link = np.linspace(0.2, 0.5, 6), np.zeros(6), arm.link_names[-1]
    for k in (1.0, 3.0):
        for give in captured(k):

            def program(t: Any, give: Number = give) -> list[list[Any]]:
                return [
                    [1.0, 0.0, 0.0, give() * t * t],
                    [0.0, 1.0, 0.0, 0.0],
                    [0.0, 0.0, 1.0, 0.0],
                    [0, 0, 0, 1.0],
                ]

            found = arm.constrained_dynamics(q, zero, zero, constraints=[constraint.pose_tracking(link, program)])
            assert found.gamma[0] == -2.0 * k


def test_a_law_is_traced_once_for_its_key_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, calls = drevo.load("three-link"), [0.0]

    def law(t: Any, q: Any, v: Any) -> list[Any]:
        calls[0] += 1.0
        return [calls[0] * x for x in q]

    monkeypatch.setenv("DREVO_CACHE_DIR", "")
    q = np.full(3, 0.1)
    for _ in range(2):
        before = calls[0]
        moved = robot.simulate(q, np.zeros(3), drevo.simulate.Control(law), duration=1e-3, dt=1e-3)
        used = (moved.v[1] - drevo_step(robot, q, before + 1.0)) / np.abs(moved.v[1]).max()
        assert np.abs(used).max() < 1e-3


def drevo_step(robot: drevo.Robot, q: np.ndarray[Any, Any], k: float) -> np.ndarray[Any, Any]:
    """The rates after 1 ms from rest with efforts k q."""
    found: np.ndarray[Any, Any] = 1e-3 * robot.forward_dynamics(q, np.zeros(3), k * q)
    return found


SCRIPT = """
import sys, numpy as np, drevo
from drevo import constraint, ground
first, k = map(float, sys.argv[1:3])
held = [first]
arm = drevo.load("two-arm-planar")
q, zero = np.full(arm.nq, 0.5), np.zeros(arm.nv)
c = constraint.function(lambda pose, q, t: [held[0] * q[0] * q[0]], 1)
ball = drevo.load(sys.argv[3])
floor = ground.function(lambda x, y: held[0] + 0.0 * x, friction=lambda x, y: held[0] + 0.0 * x)
held[0] = k
print(arm.constrained_dynamics(q, zero, zero, constraints=[c]).jacobian[0, 0])
f = drevo.compile(ball, "step", dt=1e-3, ground=floor, law="coulomb")
q = ball.neutral()
q[2] = 0.1 + k - 1e-6
print(f(q, np.r_[1.0, np.zeros(5)], np.zeros(6))[2][0].tolist())
"""


def test_processes_that_share_a_cache_share_no_captured_value(tmp_path: Path) -> None:
    env, ball = dict(os.environ, DREVO_CACHE_DIR=str(tmp_path / "cache")), tmp_path / "ball.xml"
    geom = '<geom type="sphere" size="0.1" mass="1"/>'
    ball.write_text(f"<mujoco><worldbody><body><freejoint/>{geom}</body></worldbody></mujoco>", encoding="utf-8")

    def run(first: float, k: float) -> list[str]:
        given = [sys.executable, "-c", SCRIPT, str(first), str(k), str(ball)]
        done = subprocess.run(given, env=env, capture_output=True, text=True, timeout=300, check=True)
        return done.stdout.split("\n")

    changed, plain = run(0.25, 0.5), run(0.25, 0.25)
    assert changed == run(0.5, 0.5) and float(changed[0]) == 0.5 and float(plain[0]) == 0.25
    (x, _, z), (x1, _, z1) = literal_eval(changed[1]), literal_eval(plain[1])
    assert z > 1.0 and x / z == pytest.approx(-0.5, rel=1e-6) and x1 / z1 == pytest.approx(-0.25, rel=1e-6)


def test_a_changed_reward_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium")
    from drevo.envs import TASKS

    name = "InvertedPendulum-v5"
    task = TASKS[name]
    for k in (1.0, 2.5):

        def judge(m: Any, n: Any, k: float = k) -> Outcome:
            return Outcome(k + 0.0 * m.q[0], 0.0, {"gain": k})

        monkeypatch.setitem(TASKS, name, replace(task, judge=judge, observe=lambda m, k=k: [k * x for x in m.q]))
        env = drevo.envs.make(name, num_envs=2)
        env.reset(seed=0)
        seen, reward, *_, infos = env.step(np.zeros((2, 1)))
        assert (reward == k).all() and (infos["gain"] == k).all()
        assert np.allclose(seen, k * env.q, rtol=1e-12) and seen.shape == (2, 2)


def test_functions_that_come_and_go_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "MOST_KEPT", 6)
    robot = drevo.load("three-link")
    q, zero = np.full(3, 0.3), np.zeros(3)
    for k in range(6):
        held = constraint.function(lambda pose, q, t, k=k: [k * q[0]], 1)
        assert robot.constrained_dynamics(q, zero, zero, constraints=[held]).jacobian[0, 0] == k
        assert len(robot.__dict__["_made"]) <= 6
    assert robot.mass_matrix(q).shape == (3, 3)


# -- many pairs, by their keys alone ---------------------------------------------------------------------------


def constraint_key(robot: drevo.Robot, give: Number) -> object:
    """By what a robot remembers a set of constraints, and by what the cache does."""
    c = constraint.function(lambda pose, q, t: [give() * q[0] + pose(robot.link_names[1])[0][3]], 1)
    return keys_of_set(robot, c)


def tracking_key(robot: drevo.Robot, give: Number) -> object:
    """Of a pose that moves along x."""

    def program(t: Any) -> list[list[Any]]:
        return [[1.0, 0.0, 0.0, give() * t], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]

    return keys_of_set(robot, constraint.pose_tracking(robot.link_names[-1], program))


def keys_of_set(robot: drevo.Robot, c: Any) -> object:
    found = collection.collect(robot.model, None, [c])
    return Numbered.of(found).signature, key_text(found)


def ground_key(robot: drevo.Robot, give: Number) -> str:
    return key_text(StepRequest("soft", "euler", 1e-3, ground_of(ground.function(lambda x, y: give() * x))))


def friction_key(robot: drevo.Robot, give: Number) -> str:
    made = ground.function(lambda x, y: 0.0 * x, friction=lambda x, y: abs(give()) + x * x)
    return key_text(StepRequest("coulomb", "moreau", 1e-3, ground_of(made)))


def law_key(robot: drevo.Robot, give: Number) -> str:
    return key_text(traced_law(robot.model, drevo.simulate.Control(lambda t, q, v: [give() * x for x in v])))


def option_key(robot: drevo.Robot, give: Number) -> str:
    return request(robot.model, StepRequest("soft", "euler", 1e-3, "plane", friction=give()))


def field_key(robot: drevo.Robot, give: Number) -> str:
    last = robot.model.joints[-1]
    return request(replace(robot.model, joints=(*robot.model.joints[:-1], replace(last, lead=give()))), "bias")


def reward_key(robot: drevo.Robot, give: Number) -> str:
    def judge(m: Any, n: Any) -> Outcome:
        return Outcome(give() * m.q[0], 0.0, {})

    task = Task(lambda: robot, 1, 10, lambda m: m.q, judge, {})
    return key_text(traced_task(task, TaskRobot(task), {}))


def cost_key(robot: drevo.Robot, give: Number) -> str:
    t = Tracer("cost", robot.model)
    q, v, tau = t.state("q", "v", "tau")
    t.output("cost", Cost(lambda pose, q, v, tau, t: give() * q[0] * q[0]).value(t.tree, q, v, tau))
    return key_text(t.program())


WAYS: tuple[Callable[[drevo.Robot, Number], object], ...] = (
    constraint_key, tracking_key, ground_key, friction_key, law_key, option_key, field_key, reward_key, cost_key,
)  # fmt: skip


def check_pairs(robot: drevo.Robot, pairs: int, seed: int = 0) -> int:
    """How many pairs of requests that differ in one value were told apart, and equal ones were not."""
    rng, count = np.random.default_rng(seed), 0
    while count < pairs:
        k = float(rng.normal())
        other = float(np.nextafter(k, 9.0) if rng.random() < 0.5 else rng.normal())
        if abs(k) == abs(other):
            continue
        for way in WAYS:
            texts = [[way(robot, give) for give in captured(x)] for x in (k, other)]
            assert all(len(set(x)) == 1 for x in texts), (way.__name__, k)
            assert texts[0][0] != texts[1][0], (way.__name__, k, other)
            count += len(texts[0])
    return count


def test_pairs_that_differ_in_one_value_share_no_key() -> None:
    assert check_pairs(drevo.load("three-link"), 700) >= 700


@pytest.mark.nightly
def test_many_pairs_that_differ_in_one_value_share_no_key() -> None:
    assert check_pairs(drevo.load("three-link"), 200_000, 1) >= 200_000
