"""Controllers in task space: closed loops as asked for; motion and force stay apart."""

import numpy as np
import pytest

import drevo
from drevo import constraint, control
from drevo.control.task_space import TaskSpaceLaw
from drevo.simulate import Control

ARM = drevo.load("puma560")
Q = np.array([0.2, 0.5, -0.3, 0.1, 0.4, 0.3])
REST = np.zeros(6)
TOOL = "link6"
EXACT = 1e-9  # of the gains that are asked for


def under(law: TaskSpaceLaw, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """da of a robot at rest under a law, by dq and dv."""
    A = control.closed_loop(law.robot, law, q, passive=False).A
    n = law.robot.nv
    return A[n:, :n], A[n:, n:]


def test_the_closed_loop_has_the_stiffness_and_damping_asked_for() -> None:
    K, D = np.diag([400.0, 300, 200, 30, 20, 10]), np.diag([40.0, 35, 30, 3, 2, 1])
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    J, M, pose = ARM.jacobian(Q, TOOL), ARM.mass_matrix(Q), ARM.pose(Q, TOOL)
    for stiffness, damping in ((K, D), (turned @ K @ turned.T, turned @ D @ turned.T)):
        by_q, by_v = under(control.impedance(ARM, TOOL, stiffness, damping, reference=pose), Q)
        assert np.abs(M @ by_q + J.T @ stiffness @ J).max() < EXACT * 400.0
        assert np.abs(M @ by_v + J.T @ damping @ J).max() < EXACT * 40.0
    by_q, by_v = under(control.operational_space(ARM, TOOL, np.diag(K), np.diag(D), reference=pose), Q)
    assert np.abs(J @ by_q + K @ J).max() < EXACT * 400.0 and np.abs(J @ by_v + D @ J).max() < EXACT * 40.0
    inertia = np.diag([3.0, 3, 3, 0.2, 0.2, 0.2])
    by_q, by_v = under(control.admittance(ARM, TOOL, K, D, inertia, reference=pose), Q)
    assert np.abs(inertia @ J @ by_q + K @ J).max() < EXACT * 400.0


@pytest.mark.parametrize(("name", "link", "axes"), [
    ("panda", "panda_hand", "x y z rx ry rz"), ("panda", "panda_hand", "z rx"), ("scara", "link4", "x y z rz"),
    ("three-link", "link3", "x y"), ("two-arm-planar", "link4", "y"),
])  # fmt: skip
def test_partial_axes_and_few_joints(name: str, link: str, axes: str) -> None:
    """The inertia is that along the chosen axes alone: errors there follow their equation, whatever else moves."""
    robot = drevo.load(name)
    rng = np.random.default_rng(4)
    q, v, goal = *rng.uniform(-0.6, 0.6, (2, robot.nv)), rng.uniform(-0.6, 0.6, robot.nv)
    rows = [["x", "y", "z", "rx", "ry", "rz"].index(x) for x in axes.split()]
    pose = robot.pose(q, link)
    pose[:3, 3] = robot.pose(goal, link)[:3, 3]
    law = control.operational_space(robot, link, 100.0, 20.0, reference=pose, axes=axes, posture=goal)
    a = robot.forward_dynamics(q, v, law(0.0, q, v))
    o = robot.operational_space(link, q, v, axes=axes)
    e = np.r_[pose[:3, 3] - robot.pose(q, link)[:3, 3], np.zeros(3)][rows]
    expected = 100.0 * e - 20.0 * o.J @ v
    assert np.abs(o.J @ a + o.Jdot_v - expected).max() < 1e-8 * np.abs(expected).max()
    left = robot.forward_dynamics(q, v, robot.bias(q, v) + o.N.T @ robot.mass_matrix(q) @ (-5.0 * v))
    tau = o.J.T @ (o.Lambda @ expected + o.mu + o.p) + o.N.T @ (robot.bias(q, v) - 5.0 * robot.mass_matrix(q) @ v)
    assert np.isfinite(left).all() and np.abs(law(0.0, q, v) - tau).max() < 1e-8 * np.abs(tau).max()


@pytest.mark.filterwarnings("ignore:.*doubtful")
def test_a_free_base_is_not_driven_and_the_hand_still_goes_where_it_is_sent() -> None:
    robot = drevo.load("go1", base="floating")
    rng = np.random.default_rng(1)
    q, v, link = robot.integrate(robot.random(rng), np.zeros(robot.nv)), rng.normal(size=robot.nv), "FR_calf"
    law = control.operational_space(robot, link, 50.0, 10.0, reference=lambda t: [t, 0.2, 0.3], axes="x y z")
    tau = law(0.4, q, v)
    assert not tau[:6].any()
    a = robot.forward_dynamics(q, v, tau)
    found = (robot.jacobian(q, link) @ a + robot.jacobian_bias(q, v, link))[:3]
    e, rate = np.array([0.4, 0.2, 0.3]) - robot.pose(q, link)[:3, 3], robot.velocity(q, v, link)[:3]
    expected = 50.0 * e + 10.0 * (np.array([1.0, 0, 0]) - rate)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(a).max()
    every = [j.name for j in robot.model.moving_joints]
    wholly = control.operational_space(robot, link, 50.0, 10.0, actuated=every)
    assert wholly(0.0, q, v)[:6].any()


@pytest.mark.parametrize("rate", [0.0, 1.5])
def test_motion_and_force_do_not_disturb_each_other_on_a_wall(rate: float) -> None:
    """The wall is rigid: the force is the one asked for and the other axes follow theirs."""
    q = np.array([0.3, -0.8, 0.4, 0.2, 0.7, -0.1])
    wall = constraint.point_on_plane(TOOL, (0.0, 0.0, 0.0), normal=(0.0, 0.0, 1.0), offset=ARM.pose(q, TOOL)[2, 3])
    held = ARM.under(constraints=[wall])
    q, v = held.hold(q, rate * np.array([0.3, -0.2, 0.5, 0.1, 0.2, 0.3]))
    pressing = {"force_axes": "z", "force": -25.0}
    path = lambda t: _sliding(t, ARM.pose(q, TOOL))  # noqa: E731
    law = control.hybrid(ARM, TOOL, 80.0, 15.0, path, force_damping=9.0, **pressing)
    found = held.dynamics(q, v, law(0.3, q, v))
    assert np.abs(found.reactions - 25.0).max() < 1e-8  # on the robot, along the normal
    goal, late = law.goal(0.3), ARM.velocity(q, v, TOOL)
    a = ARM.jacobian(q, TOOL) @ found.a + ARM.jacobian_bias(q, v, TOOL)
    e = np.array(goal.p)[:2] - ARM.pose(q, TOOL)[:2, 3]
    expected = np.array(goal.acceleration[:2]) + 80.0 * e + 15.0 * (np.array(goal.rate[:2]) - late[:2])
    assert np.abs(a[:2] - expected).max() < 1e-8 * np.abs(a).max()
    short = law(0.3, q, v, [0.0, 0, 20.0, 0, 0, 0]) - law(0.3, q, v)
    assert np.abs(short).max() < 1e-9  # no gain, no feedback
    fed = control.hybrid(ARM, TOOL, 80.0, 15.0, force_gain=2.0, **pressing)
    more = fed(0.0, q, v, [0.0, 0, 20.0, 0, 0, 0]) - fed(0.0, q, v, [0.0, 0, 25.0, 0, 0, 0])
    assert np.abs(more - ARM.jacobian(q, TOOL)[2] * 2.0 * -5.0).max() < 1e-8


def _sliding(t, pose):
    """A pose that moves along x and y."""
    rows = [list(map(float, row)) for row in pose]
    rows[0][3] = rows[0][3] + 0.1 * drevo.sin(2.0 * t)
    rows[1][3] = rows[1][3] + 0.05 * t
    return rows


def test_an_admitted_force_moves_the_link_as_the_inertia_asked_for() -> None:
    wrench = np.array([3.0, -2.0, 5.0, 0.2, 0.1, -0.3])
    law = control.admittance(ARM, TOOL, 0.0, 10.0, 2.5, reference=ARM.pose(Q, TOOL))
    v = np.array([0.3, -0.2, 0.5, 0.1, 0.2, 0.3])
    a = ARM.forward_dynamics(Q, v, law(0.0, Q, v, wrench), f_ext={TOOL: wrench})
    found = ARM.jacobian(Q, TOOL) @ a + ARM.jacobian_bias(Q, v, TOOL)
    assert np.abs(2.5 * found + 10.0 * ARM.velocity(Q, v, TOOL) - wrench).max() < 1e-9 * np.abs(a).max()


@pytest.mark.parametrize("angle", [1e-9, 1.0, 3.1, np.pi, -np.pi, np.nextafter(np.pi, 4.0), 4.0])
def test_errors_of_orientation_are_the_logarithm_up_to_half_a_turn(angle: float) -> None:
    from scipy.spatial.transform import Rotation

    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    pose = ARM.pose(Q, TOOL)
    law = control.operational_space(ARM, TOOL, 1.0, 0.0, reference=pose)
    off = pose.copy()
    off[:3, :3] = Rotation.from_rotvec(-angle * axis).as_matrix() @ pose[:3, :3]
    e = np.array(law.state(0.0, off.tolist(), [0.0] * 6, [0.0] * 6).e[3:])
    expected = (Rotation.from_matrix(pose[:3, :3]) * Rotation.from_matrix(off[:3, :3]).inv()).as_rotvec()
    assert abs(np.linalg.norm(e) - np.linalg.norm(expected)) < 1e-14
    assert min(np.abs(e - expected).max(), np.abs(e + expected).max() if abs(angle) > 3.14 else 1.0) < 1e-13


def test_derivatives_of_a_pose_that_moves_are_taken() -> None:
    def turning(t):
        c, s = drevo.cos(0.7 * t * t), drevo.sin(0.7 * t * t)
        return [[c, -s, 0.0, 0.1 * t], [s, c, 0.0, 0.2], [0.0, 0.0, 1.0, 0.3 * drevo.sin(t)], [0.0, 0.0, 0.0, 1.0]]

    goal = control.operational_space(ARM, TOOL, 1.0, 1.0, reference=turning).goal(0.9)
    assert np.allclose(goal.rate, [0.1, 0, 0.3 * np.cos(0.9), 0, 0, 1.4 * 0.9], atol=1e-14)
    assert np.allclose(goal.acceleration, [0, 0, -0.3 * np.sin(0.9), 0, 0, 1.4], atol=1e-14)


@pytest.mark.parametrize("compiled", [False, True])
def test_it_reaches_a_pose_and_rests_there(compiled: bool) -> None:
    robot = drevo.load("panda")
    rng = np.random.default_rng(7)
    middle = 0.5 * (robot.lower + robot.upper)
    q, goal = middle + 0.2, robot.pose(middle + rng.uniform(-0.3, 0.3, robot.nq), "panda_hand")
    law = control.operational_space(robot, "panda_hand", 100.0, 20.0, reference=goal, posture_damping=8.0)
    motion = robot.simulate(
        q, tau=Control(law) if compiled else law, duration=2.0, dt=2e-3 if compiled else 1e-2, passive=False
    )
    assert np.abs(robot.pose(motion.q[-1], "panda_hand") - goal).max() < 1e-6
    assert np.abs(motion.v[-1]).max() < 1e-3


BALL = """<mujoco><worldbody><geom type="plane" size="5 5 1" friction="0"/><body pos="0 0 .5">
<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
<geom type="sphere" size=".1" mass="2" friction="0.0"/></body></worldbody></mujoco>"""


def test_a_tool_presses_on_a_ground() -> None:
    robot = drevo.load(BALL)
    link = robot.link_names[-1]
    pressing = {"axes": "x", "force_axes": "z", "force": -30.0, "force_damping": 8.0}
    law = control.hybrid(robot, link, 50.0, 14.0, lambda t: [0.3, 0.0, 0.0], **pressing)
    for tau in (law, Control(law)):
        motion = robot.simulate([0.0, -0.399], tau=tau, duration=1.5, dt=1e-3, ground=None, law="soft")
        assert abs(motion.q[-1, 0] - 0.3) < 1e-3
        assert motion.contact_forces[-1][:, 2].sum() == pytest.approx(30.0, rel=1e-3)  # the weight is compensated


def test_laws_as_code_are_what_is_called() -> None:
    for law in (
        control.impedance(ARM, TOOL, 100.0, 10.0), control.admittance(ARM, TOOL, 100.0, 10.0),
        control.hybrid(ARM, TOOL, 100.0, 10.0, force_axes="z", force=[3.0], force_gain=0.5),
    ):  # fmt: skip
        v, wrench = 0.1 * Q, np.arange(6.0)
        space: dict = {}
        exec(law.python("tau_of"), space)
        given = [[0.3], Q, v] + [wrench] * law.senses
        found = space["tau_of"](*given)
        assert np.abs(np.ravel(found) - law(0.3, Q, v, wrench)).max() < 1e-10
        assert ("const double *wrench" in law.c()) == law.senses


def test_a_law_is_exported_for_another_processor(tmp_path) -> None:
    law = control.impedance(ARM, TOOL, 100.0, 10.0)
    files = drevo.export(law, "reach", "cortex-m7", folder=tmp_path).files
    assert any(file.suffix == ".o" and file.stat().st_size for file in files)


def test_what_cannot_be_is_said_at_once() -> None:
    three = drevo.load("three-link")
    with pytest.raises(drevo.InputError, match="all of x y z rx ry rz: its driven joints give 3"):
        control.impedance(three, "link3", 1.0, 1.0)
    with pytest.raises(drevo.InputError, match="no link 'link7'"):
        control.impedance(ARM, "link7", 1.0, 1.0)
    for options, said in (
        ({"axes": "x q"}, "axes"), ({"axes": "x x"}, "each once"), ({"reference": np.ones((4, 4))}, "no rotation"),
        ({"reference": [0.0, 0.0, 0.0]}, "is a point"), ({"rotation": 2.0 * np.eye(3)}, "no rotation"),
        ({"reference": lambda t: t}, "reference cannot be traced"), ({"actuated": ["x"]}, "no moving joint"),
        ({"regularisation": -1.0}, "from 0 on"), ({"posture": [0.0]}, "shape"),
    ):  # fmt: skip
        with pytest.raises(drevo.InputError, match=said):
            control.operational_space(ARM, TOOL, 1.0, 1.0, **options)
    with pytest.raises(drevo.InputError, match="0 or more along every axis"):
        control.impedance(ARM, TOOL, -1.0, 1.0)
    with pytest.raises(drevo.InputError, match="above 0 along every axis"):
        control.admittance(ARM, TOOL, 1.0, 1.0, 0.0)
    with pytest.raises(drevo.InputError, match="is an axis of motion and one of force"):
        control.hybrid(ARM, TOOL, 1.0, 1.0, force_axes="z", force=1.0, axes="x z")
    for force, said in (
        (lambda t: t.x, "force raised AttributeError"),
        (lambda t: [t, t], "2 numbers for 1"),
    ):
        with pytest.raises(drevo.InputError, match=said):
            control.hybrid(ARM, TOOL, 1.0, 1.0, force_axes="z", force=force)
    with pytest.raises(drevo.NumericsError):  # the wrist is singular there
        control.operational_space(ARM, TOOL, 1.0, 1.0)(0.0, REST, REST)
    near = control.operational_space(ARM, TOOL, 1.0, 1.0, regularisation=0.01)(0.0, REST, REST)
    assert np.isfinite(near).all()
