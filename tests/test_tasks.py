"""Stacks of tasks: against plain algebra, mink, and the laws that limits, priorities and equalities obey."""

from __future__ import annotations

import numpy as np
import pytest

import drevo
from drevo.mechanics.tree import build_tree
from drevo.tasks import (
    AccelerationLimit,
    CollisionLimit,
    ComTask,
    ConfigurationLimit,
    DampingTask,
    FrameTask,
    JointVelocityTask,
    ManipulabilityTask,
    PostureTask,
    RelativeFrameTask,
    VelocityLimit,
    compile_ik,
    solve_ik,
)
from drevo.tasks.kinds import Posed

DT = 0.01
MODEL = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>{}</worldbody></mujoco>"""
LINK = """<body name="b{k}" pos="{x} 0 0"><joint name="j{k}" type="hinge" axis="{axis}" range="-{limit} {limit}"/>
<geom name="g{k}" type="sphere" size="0.05" pos="0.3 0 0" mass="1" contype="1" conaffinity="1"/>{more}</body>"""


def chain(n: int, base: str = "", axes=("0 0 1", "0 1 0", "1 0 0"), limit=2) -> drevo.Robot:
    """An arm of n hinges about axes in turn, on a free body where base is "free"."""
    text = ""
    for k in reversed(range(n)):
        text = LINK.format(k=k, x=0.3 if k else 0.1, axis=axes[k % len(axes)], limit=limit, more=text)
    if base:
        text = (
            f'<body name="trunk"><freejoint/><geom type="box" size=".1 .1 .1" mass="3" contype="0"/>{text}</body>'
        )
    return drevo.load(MODEL.format(text))


def states(robot, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([robot.random(rng) for _ in range(count)])


def logarithm(T0, T1):
    """log(T0^-1 T1) by the matrix logarithm."""
    from scipy.linalg import logm

    x = np.real(logm(np.linalg.inv(T0) @ T1))
    return np.array([*x[:3, 3], x[2, 1], x[0, 2], x[1, 0]])


def frame_terms(robot, link, q, T):
    """Error and its Jacobian by central differences."""
    error = logarithm(T, robot.pose(q, link))
    J, h = np.zeros((6, robot.nv)), 1e-6
    for k in range(robot.nv):
        d = np.eye(robot.nv)[k] * h
        ends = [logarithm(T, robot.pose(robot.integrate(q, s * d), link)) for s in (1, -1)]
        J[:, k] = (ends[0] - ends[1]) / (2 * h)
    return J, error


@pytest.mark.parametrize("base", ["", "free"])
def test_a_stack_is_the_weighted_least_squares_solution(base):
    robot = chain(4, base)
    qs = states(robot, 5)
    targets = robot.pose(robot.integrate(qs, 0.2 * np.random.default_rng(1).normal(size=(5, robot.nv))), "b3")
    com = robot.center_of_mass(qs) + 0.05
    tasks = [
        FrameTask("b3", position_cost=2.0, orientation_cost=(0.5, 0.0, 0.3), gain=0.7, lm_damping=0.1),
        ComTask(0.4), PostureTask(0.1), DampingTask(0.2), JointVelocityTask(0.3),
    ]  # fmt: skip
    rates = np.full(robot.nv, 0.2)
    found = solve_ik(robot, qs, tasks, DT, targets={"b3": targets, "center_of_mass": com, "jointvelocity": rates})
    home = robot.neutral()
    free = np.zeros(robot.nv)
    free[-4:] = 1.0  # tasks of joints leave a floating base alone
    for q, T, c, v in zip(qs, targets, com, found.v):
        J, e = frame_terms(robot, "b3", q, T)
        W = np.array([2.0, 2.0, 2.0, 0.5, 0.0, 0.3])
        rows = [
            (W[:, None] * J, -0.7 * W * e),
            (0.4 * robot.center_of_mass_jacobian(q), -0.4 * (robot.center_of_mass(q) - c)),
        ]
        rows += [(np.sqrt(0.1) * np.linalg.norm(0.7 * W * e) * np.eye(robot.nv), 0.0 * rates)]
        rows += [
            (0.1 * np.diag(free), -0.1 * free * robot.difference(home, q)),
            (0.2 * np.diag(free), 0.0 * rates),
        ]
        rows += [(0.3 * np.diag(free), 0.3 * free * rates * DT)]
        A, b = (np.concatenate(x) for x in zip(*rows))
        assert np.allclose(v * DT, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-7)
    assert found.kkt.max() < 1e-12


def test_a_relative_frame_and_manipulability():
    robot = chain(5)
    q = states(robot, 1)[0]
    T = robot.pose(q + 0.1, "b4", relative_to="b1")
    for _ in range(20):
        q = q + DT * solve_ik(robot, q, [RelativeFrameTask("b4", "b1"), DampingTask(1e-3)], DT, targets=[T]).v
    assert np.allclose(robot.pose(q, "b4", relative_to="b1"), T, atol=1e-6)
    more = solve_ik(robot, q, [ManipulabilityTask("b4", rate=0.01, axes="x y z"), DampingTask(1e-3)], DT).v
    for axes in ("xyz", ["x", "y", "z"]):  # as robot.manipulability takes them
        assert ManipulabilityTask("b4", rate=0.01, axes=axes) == ManipulabilityTask("b4", rate=0.01, axes="x y z")
    before, after = (float(robot.manipulability(x, "b4", axes="x y z")) for x in (q, q + DT * more))
    assert after - before == pytest.approx(0.01 * DT, rel=0.05)


def test_priorities_are_strict():
    robot = chain(7)
    qs = states(robot, 6, 2)
    tasks = [
        FrameTask("b6", orientation_cost=0.0),
        FrameTask("b3", orientation_cost=0.0, position_cost=(1.0, 1.0, 0.0), priority=1, name="elbow"),
        PostureTask(1.0, priority=2),
    ]
    T = robot.pose(qs + 0.1, "b6")
    elbow = robot.pose(qs - 0.1, "b3")
    found = solve_ik(robot, qs, tasks, DT, targets=[T, elbow])
    home = robot.neutral()
    for q, goals, v in zip(qs, zip(T, elbow), found.v):
        x, N = np.zeros(7), np.eye(7)
        stack = [
            (*(y[:k] for y in frame_terms(robot, link, q, goal)),)
            for link, goal, k in (("b6", goals[0], 3), ("b3", goals[1], 2))
        ]
        for J, e in [*stack, (np.eye(7), robot.difference(home, q))]:
            P = np.linalg.pinv(J @ N, rcond=1e-6)
            x = x + N @ P @ (-e - J @ x)
            N = N @ (np.eye(7) - P @ (J @ N))
        assert np.allclose(v * DT, x, atol=2e-5), abs(v * DT - x).max()
    assert found.kkt.shape == (6, 3) and found.kkt.max() < 1e-9
    limited = solve_ik(robot, qs, tasks, DT, limits=[VelocityLimit(2.0)], targets=[T, elbow])
    alone = solve_ik(robot, qs, tasks[:1], DT, limits=[VelocityLimit(2.0)], targets=[T])
    J = np.array([frame_terms(robot, "b6", q, goal)[0][:3] for q, goal in zip(qs, T)])
    assert np.allclose(np.einsum("bij,bj->bi", J, limited.v - alone.v), 0.0, atol=1e-5)  # J by differences
    assert abs(limited.v).max() <= 2.0 and limited.kkt.max() < 1e-9


def lacking(A, b, E, x, end):
    """The least that multipliers leave of the slope of |A x - b|^2 / 2 where E x is kept, by a linear program."""
    from scipy.optimize import linprog

    slope, one = A.T @ (A @ x - b), np.ones((len(x), 1))
    size = max(np.abs(slope).max(), 1e-12)  # x within 1e-2: less is rounding
    M = np.hstack([E.T, np.eye(len(x))[:, x >= end], -np.eye(len(x))[:, x <= -end]])
    signs = [(None, None)] * len(E) + [(0, None)] * (M.shape[1] - len(E) + 1)
    ends = np.r_[-slope, slope] / size
    found = linprog(np.r_[np.zeros(M.shape[1]), 1.0], np.block([[M, -one], [-M, -one]]), ends, bounds=signs)
    assert found.status == 0
    return size * found.fun


@pytest.mark.parametrize("last", [PostureTask(1.0, priority=2), ComTask(priority=2)], ids=["posture", "com"])
def test_three_levels_under_saturated_limits_are_each_solved(last):
    """Where many rates are at their limits, rows of earlier levels depend on one another on what is left free."""
    robot, rng = chain(10, "free"), np.random.default_rng(5)
    tasks = [FrameTask("b9"), FrameTask("b4", priority=1), last]
    qs = states(robot, 150, 3)
    near = robot.integrate(qs, np.repeat([[0.003], [0.01], [0.1]], 50, 0) * rng.normal(size=(150, robot.nv)))
    targets = [
        robot.pose(near, "b9"), robot.pose(near, "b4"),
        near if isinstance(last, PostureTask) else robot.center_of_mass(near),
    ]  # fmt: skip
    limits, end = [VelocityLimit(0.5)], 0.5 * DT
    found = compile_ik(robot, tasks, DT, limits=limits)(qs, *targets)
    assert found.kkt.max() < 1e-11 and (np.abs(found.v) == 0.5).mean() > 0.4
    assert (np.abs(found.active) <= 1.0).all()
    each = [compile_ik(robot, tasks[:k], DT, limits=limits)(qs, *targets[:k]).v * DT for k in (1, 2)]
    each.append(found.v * DT)
    for i in range(0, 150, 5):
        at = Posed(build_tree(robot.model), robot.model, qs[i].tolist(), DT)
        E = np.zeros((0, robot.nv))
        for x, task, target in zip(each, tasks, targets):
            rows = task.rows(at, np.ravel(target[i]).tolist())
            costs = np.array([cost for _, cost in task.costs(robot.model)])
            A, b = costs[:, None] * np.array(rows.J, float), -costs * np.array(rows.error, float)
            assert np.abs(A @ (each[-1][i] - x[i])).max() < 1e-12  # what it has found is kept
            assert lacking(A, b, E, x[i], end) < 1e-9
            E = np.vstack([E, A])


def test_later_levels_keep_off_what_earlier_ones_do():
    robot = chain(3, axes=("0 0 1",), limit=3)
    limits = [CollisionLimit([("b0", "b2")], distance=0.02), VelocityLimit(2.0)]
    tasks, q = [FrameTask("b1"), PostureTask(priority=1)], np.array([0.0, 1.2, 1.0])
    goal, folded = robot.pose(q, "b1"), np.array([0.0, 1.2, 3.0])
    for _ in range(150):
        found = solve_ik(robot, q, tasks, DT, limits=limits, targets=[goal, folded])
        q = q + DT * found.v
        assert found.kkt.max() < 1e-8 and np.abs(robot.pose(q, "b1") - goal).max() < 1e-6
    first, last = (robot.pose(q, link) @ [0.3, 0, 0, 1] for link in ("b0", "b2"))
    assert np.linalg.norm(last - first) == pytest.approx(0.12, abs=1e-3)


@pytest.mark.parametrize("base", ["", "free"])
def test_limits_are_kept_exactly(base):
    robot = chain(6, base)
    qs = states(robot, 2000, 3)
    T = robot.pose(states(robot, 2000, 4), "b5")
    f = compile_ik(
        robot, [FrameTask("b5"), PostureTask(0.01)], DT, limits=[ConfigurationLimit(), VelocityLimit(3.0)]
    )
    found = f(qs, T)
    assert (abs(found.v) <= 3.0).all()
    assert found.kkt.max() < 1e-9
    q1 = robot.integrate(qs, DT * found.v)[:, -6:]
    assert (q1 <= robot.upper[-6:]).all() and (q1 >= robot.lower[-6:]).all()
    one = f(qs[7], T[7])
    assert np.array_equal(one.v, found.v[7])
    again = compile_ik(
        robot,
        [FrameTask("b5"), PostureTask(0.01)],
        DT,
        limits=[ConfigurationLimit(), VelocityLimit(3.0)],
        warm=True,
    )
    assert np.allclose(again(qs, [T], active=found.active).v, found.v, atol=1e-9)


def test_a_warm_start_from_the_active_set_ends_in_one_round(monkeypatch):
    robot = chain(6)
    qs, goals = states(robot, 200, 3), robot.pose(states(robot, 200, 4), "b5")
    tasks, limits = [FrameTask("b5"), PostureTask(0.01)], [ConfigurationLimit(), VelocityLimit(1.0)]
    found = compile_ik(robot, tasks, DT, limits=limits)(qs, goals)
    assert (found.active != 0.0).mean() > 0.5
    monkeypatch.setattr("drevo.tasks.quadratic.MAX_PIVOTINGS", 1)
    again = compile_ik(drevo.Robot(robot.model), tasks, DT, limits=limits, warm=True)
    once = again(qs, goals, active=found.active)
    assert np.array_equal(once.active, found.active) and once.kkt.max() < 1e-9
    assert again(qs, goals).kkt.max() > 1e-9  # none is given: one round is not enough


def test_from_outside_it_comes_back_at_the_velocity_limit():
    robot = chain(3)
    q = np.array([2.5, -3.0, 0.0])
    limits = [ConfigurationLimit(), VelocityLimit(1.5)]
    for _ in range(200):
        found = solve_ik(
            robot, q, [FrameTask("b2")], DT, limits=limits, targets=[robot.pose([3.0, -3.0, 1.0], "b2")]
        )
        outside = (q > 2.0 + 0.02) | (q < -2.0 - 0.02)
        assert (np.sign(found.v) == -np.sign(q))[outside].all() and (abs(found.v[outside]) == 1.5).all()
        q = q + DT * found.v
    assert (abs(q) <= 2.0 + 1e-12).all()


def test_acceleration_limits_brake_in_time():
    robot = chain(2)
    limits = [ConfigurationLimit(1.0), VelocityLimit(10.0), AccelerationLimit(4.0)]
    q, v, speeds = np.zeros(2), np.zeros(2), []
    for _ in range(400):
        found = solve_ik(
            robot, q, [PostureTask(1.0)], DT, limits=limits, targets=[np.array([5.0, -5.0])], before=v
        )
        assert (abs(found.v - v) <= 4.0 * DT * (1 + 1e-9)).all() and not found.overrun.any()
        q, v = q + DT * found.v, found.v
        assert (abs(q) <= 2.0 + 1e-12).all()
        speeds.append(v[0])
    assert q == pytest.approx([2.0, -2.0], abs=1e-3)
    turns = np.sign(np.diff(speeds)[abs(np.diff(speeds)) > 1e-9])
    assert (np.diff(turns) != 0).sum() <= 2  # faster, then slower, and no more


def test_what_cannot_brake_before_its_limit_says_so():
    robot = chain(2)
    limits = [ConfigurationLimit(1.0), AccelerationLimit(4.0)]
    q, v = np.array([1.9, -1.9]), np.array([3.0, -0.5])  # 3 m/s need 1.1 rad, 0.5 need 0.03
    step = solve_ik(robot, q, [DampingTask(1.0)], DT, limits=limits, before=v)
    assert step.v[0] == pytest.approx(3.0 - 4.0 * DT) and step.overrun[0] == pytest.approx(2.96 - 0.87, abs=0.01)
    assert step.overrun[1] == 0.0
    plain = solve_ik(robot, q, [DampingTask(1.0)], DT, limits=limits[:1])
    assert plain.overrun is None


def test_collisions_are_kept_off():
    robot = chain(3, axes=("0 0 1",), limit=3)
    q = np.array([0.0, 1.2, 1.0])
    limits = [CollisionLimit([("b0", "b2")], distance=0.02), VelocityLimit(2.0), ConfigurationLimit()]
    still = [PostureTask(1.0)]
    folded = np.array([0.0, 1.2, 3.0])  # the last ball is in the first

    def gap(q):
        places = [robot.pose(q, link) @ [0.3, 0, 0, 1] for link in ("b0", "b2")]
        return np.linalg.norm(places[1] - places[0]) - 0.1

    assert gap(folded) < 0.0
    for _ in range(300):
        found = solve_ik(robot, q, still, DT, limits=limits, targets=[folded])
        q = q + DT * found.v
        assert gap(q) > 0.02 - 1e-3 and found.kkt.max() < 1e-8
    assert gap(q) == pytest.approx(0.02, abs=1e-3)


def test_equalities_and_loops_hold():
    robot = chain(4)
    gear = drevo.constraint.gear("j1", "j3", 2.0)
    q = np.array([0.1, 0.4, 0.2, 0.2])
    for _ in range(30):
        found = solve_ik(
            robot, q, [FrameTask("b3")], DT, equalities=gear, limits=VelocityLimit(1.0),
            targets=[robot.pose([0.5, 0.8, -0.2, 0.4], "b3")],
        )  # fmt: skip
        q = q + DT * found.v
        assert abs(q[1] - 2.0 * q[3]) < 1e-9 and found.kkt.max() < 1e-9
    both = [FrameTask("b3", orientation_cost=0.0)]
    held = solve_ik(robot, q, [PostureTask(1.0)], DT, equalities=both, targets={"b3": robot.pose(q, "b3")})
    J = robot.jacobian(q, "b3")[:3]
    assert np.allclose(J @ held.v, 0.0, atol=1e-9)


def test_costs_are_parameters_and_nothing_is_compiled_twice():
    robot = chain(3)
    q, T = states(robot, 1)[0], robot.pose(np.zeros(3), "b2")
    f = compile_ik(robot, [FrameTask("b2", name="hand"), PostureTask(0.1)], DT, parameters=["hand.position_cost"])
    assert [name for name, _ in f.function.parameters] == ["hand.position_cost"]
    other = solve_ik(robot, q, [FrameTask("b2", position_cost=3.0), PostureTask(0.1)], DT, targets=[T])
    assert np.allclose(f(q, [T], parameters=np.array([3.0])).v, other.v, rtol=1e-9, atol=1e-9)


def test_errors_are_one_sentence():
    robot = chain(3)
    for call in (
        lambda: solve_ik(robot, np.zeros(3), [FrameTask("hand")], DT),
        lambda: solve_ik(robot, np.zeros(3), [FrameTask("b2")], DT),
        lambda: solve_ik(robot, np.zeros(3), [], DT),
        lambda: solve_ik(robot, np.zeros(3), [FrameTask("b2")], 0.0, targets=[np.eye(4)]),
        lambda: solve_ik(robot, np.zeros(3), [FrameTask("b2")], DT, targets={"hand": np.eye(4)}),
        lambda: solve_ik(robot, np.zeros(3), [FrameTask("b2", position_cost=-1.0)], DT, targets=[np.eye(4)]),
        lambda: solve_ik(robot, np.zeros(3), [PostureTask()], DT, limits=[CollisionLimit([("b0", "x")])]),
        lambda: compile_ik(robot, [FrameTask("b2")], DT, limits=[VelocityLimit({"x": 1.0})]),
        lambda: FrameTask("b2", gain=2.0),
    ):  # fmt: skip
        with pytest.raises(drevo.DrevoError) as error:
            call()
        assert "\n" not in str(error.value)


def test_the_step_of_mink():
    mink, mujoco = pytest.importorskip("mink"), pytest.importorskip("mujoco")
    pytest.importorskip("daqp")
    robot = chain(6)
    spec = robot.to_mujoco()
    model = spec.compile()
    data = mink.Configuration(model)
    ours = [FrameTask("b5", position_cost=1.0, orientation_cost=0.5, lm_damping=1.0), PostureTask(1e-2)]
    f = compile_ik(robot, ours, DT, limits=[ConfigurationLimit()])
    theirs = [mink.FrameTask("b5", "body", 1.0, 0.5, lm_damping=1.0), mink.PostureTask(model, 1e-2)]
    for q, goal in zip(states(robot, 20, 5), states(robot, 20, 6)):
        data.update(q)
        T = robot.pose(goal, "b5")
        theirs[0].set_target(mink.SE3.from_matrix(T))
        theirs[1].set_target(robot.neutral())
        problem = mink.build_ik(data, theirs, DT, limits=[mink.ConfigurationLimit(model)])
        x = f(q, T).v * DT
        best = mink.solve_ik(data, theirs, DT, "daqp", limits=[mink.ConfigurationLimit(model)]) * DT
        cost = [0.5 * y @ problem.P @ y + problem.q @ y for y in (x, best)]
        assert cost[0] <= cost[1] + 1e-9 * abs(cost[1]) and (problem.G @ x <= problem.h + 1e-12).all()
    assert mujoco.__version__


ALTERED = [{"gain": 0.5}, {"lm_damping": 0.3}, {"orientation_cost": 0.3}, {"orientation_cost": (1.0, 0.5, 0.2)}]


@pytest.mark.parametrize("altered", ALTERED, ids=str)
def test_numbers_that_are_no_inputs_are_in_the_key(altered):
    """A function with one cost as an input is another one where another number of a task differs."""
    robot = chain(6)
    q, T = states(robot, 1, 5)[0], robot.pose(states(robot, 1, 6)[0], "b5")
    stacks = [[FrameTask("b5", **({"lm_damping": 0.1} | x)), PostureTask(0.1)] for x in ({}, altered)]
    names = ["b5.position_cost"]
    with_input = [compile_ik(robot, s, DT, parameters=names)(q, [T], parameters=[1.0]).v for s in stacks]
    without = [compile_ik(robot, s, DT)(q, T, robot.neutral()).v for s in stacks]
    assert np.allclose(with_input, without, rtol=1e-9, atol=1e-9)
    assert np.abs(without[0] - without[1]).max() > 1e-3


def test_equalities_that_differ_in_their_gain_are_others():
    robot = chain(6)
    q = states(robot, 1, 5)[0]
    T = robot.pose(robot.integrate(q, 0.05 * np.ones(6)), "b5")
    J, error = frame_terms(robot, "b5", q, T)
    for gain in (1.0, 0.5):
        held = FrameTask("b5", orientation_cost=0.0, gain=gain)
        v = solve_ik(robot, q, [PostureTask(1e-3)], DT, equalities=[held], targets={"b5": T}).v
        assert np.allclose(J[:3] @ v, -gain * error[:3] / DT, atol=1e-6)  # of differences


BOXES = """<mujoco><worldbody><geom name="table" type="box" pos="0 0 -.4" size=".5 .5 .05"/><body name="arm">
<joint name="a" axis="0 1 0"/><geom name="tool" type="box" size=".05 .05 .2" mass="1"/>
<geom name="tip" type="sphere" pos="0 0 -.25" size=".02"/></body></worldbody></mujoco>"""


def test_pairs_that_a_limit_cannot_keep_apart_are_told():
    robot = drevo.load(BOXES)
    with pytest.warns(drevo.DrevoWarning, match=r"not kept apart, .*table"):
        compile_ik(robot, [PostureTask()], DT, limits=[CollisionLimit()])
    with pytest.raises(drevo.InputError, match=r"no closed form: 'tool' and 'table'"):
        compile_ik(robot, [PostureTask()], DT, limits=[CollisionLimit([("tool", "table")])])


LINK_OF_URDF = """<link name="l{k}"><collision><origin xyz="0.25 0 0"/><geometry><sphere radius="0.05"/></geometry>
</collision><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT_OF_URDF = """<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{n}"/><axis xyz="0 0 1"/>
<origin xyz="0.3 0 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>"""


def test_pairs_of_a_limit_are_those_of_distance():
    """A URDF has no bits of contact: links that are neither adjacent nor excluded."""
    links = [LINK_OF_URDF.format(k=k) for k in range(4)]
    joints = [JOINT_OF_URDF.format(k=k, n=k + 1) for k in range(3)]
    robot = drevo.load(f"<robot name='arm'>{''.join(links + joints)}</robot>")
    q = np.array([0.2, 2.4, 2.4])
    pairs = robot.distance(q).pairs
    assert len(pairs) == 3
    limits = [CollisionLimit(distance=0.01), VelocityLimit(1.0)]
    f = compile_ik(robot, [PostureTask(1.0)], DT, limits=limits)
    for _ in range(200):
        step = f(q, np.array([3.0, 3.0, 3.0]))
        q = q + DT * step.v
        assert step.active.shape == (3 + 3,) and robot.distance(q).distance.min() > 0.01 - 1e-3
    assert robot.distance(q).distance.min() < 0.02


@pytest.mark.parametrize("weight", [0.3, 0.01])
def test_a_robot_whose_matrix_is_factorised_by_loops(weight):
    """Thirty degrees of freedom under bounds, mostly at them, against SciPy's bounded least squares."""
    from scipy.optimize import lsq_linear

    robot = chain(24, "free")
    qs, speed = states(robot, 8), 2.0
    T = robot.pose(states(robot, 8, 1), "b23")
    found = solve_ik(
        robot, qs, [FrameTask("b23"), PostureTask(weight)], DT, limits=[VelocityLimit(speed)], targets={"b23": T}
    )
    home = robot.neutral()
    for q, goal, v in zip(qs, T, found.v):
        J, e = frame_terms(robot, "b23", q, goal)
        joints = weight * np.eye(robot.nv)[6:]
        rows, sides = np.vstack((J, joints)), -np.concatenate((e, weight * robot.difference(home, q)[6:]))
        best = lsq_linear(rows, sides, (-speed * DT, speed * DT), method="bvls", tol=1e-14).x

        def cost(x, rows=rows, sides=sides):
            return float(((rows @ x - sides) ** 2).sum())

        assert np.abs(v).max() <= speed and cost(DT * v) <= cost(best) * (1.0 + 1e-7)
    assert found.kkt.max() < 1e-12 and (found.active != 0).mean() > 0.5


@pytest.mark.parametrize(("places", "speed"), [(4, 30.0), (1, 30.0), (4, 4.0)])
def test_many_pairs_that_stay_apart_against_daqp(places, speed, monkeypatch):
    """The least change of posture that keeps all apart; also where more rows hold than a round has places for, and
    where most are too far apart for one step."""
    qpsolvers = pytest.importorskip("qpsolvers")
    pytest.importorskip("daqp")
    monkeypatch.setattr("drevo.tasks.quadratic.MAX_WORKING_ROWS", places)
    robot, distance = chain(7), 0.44
    pairs = [(f"g{i}", f"g{j}") for i in range(7) for j in range(i + 2, 7)]
    limits = [CollisionLimit(pairs, distance=distance, gain=0.85), ConfigurationLimit(), VelocityLimit(speed)]
    step = compile_ik(robot, [PostureTask(1.0)], DT, limits=limits)
    q = states(robot, 500, 11)
    goal = states(robot, 500, 12)
    found, apart = step(q, goal), robot.distance(q, pairs).distance - distance
    J = robot.distance_jacobian(q, pairs)
    held, compared = found.active[:, robot.nv :].sum(1), 0
    for k in range(len(q)):
        low, high = 0.95 * (robot.lower - q[k]), 0.95 * (robot.upper - q[k])
        low, high = np.clip(low, -speed * DT, speed * DT), np.clip(high, -speed * DT, speed * DT)
        best = qpsolvers.solve_qp(
            np.eye(7), q[k] - goal[k], -J[k], 0.85 * apart[k], lb=low, ub=high, solver="daqp", primal_tol=1e-10
        )
        if best is not None:  # feasible
            compared += 1
            assert np.abs(found.v[k] * DT - best).max() <= 1e-8 and found.kkt[k].max() <= 1e-8
    assert compared > 50 and held.max() > 2
