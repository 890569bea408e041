"""What acts in a joint: rotors are on the diagonal of M in every formalism, the rest is passive."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from reference import as_text

import drevo
from drevo import DrevoWarning, ModelError, Robot
from drevo.compiler.formalisms import formalisms_giving
from drevo.mechanics.acting import FRICTION_WIDTH, acting, passive_forces
from drevo.model.description import JointDynamics
from drevo.model.quantities import CATALOGUE

KINDS = ("revolute", "prismatic", "revolute", "helical", "revolute")
ARMATURE = np.array([0.4, 0.7, 0.2, 0.05, 0.9])
MJCF = """<mujoco><worldbody><body name="a" pos="0 0 1">
<joint name="j" type="hinge" axis="0 1 0" armature="0.5" damping="0.3" stiffness="2" springref="30" ref="10"/>
<geom type="box" size=".1 .2 .3" pos=".1 0 .2"/>
<body name="b" pos=".3 0 .2"><joint type="slide" axis="1 0 0" armature="0.2" damping="0.1" stiffness="5"
springref="0.3"/><geom type="sphere" size=".1"/>
<body name="c" pos="0 .1 .4"><joint type="ball" armature="0.05" damping="0.02"/>
<geom type="capsule" size=".05 .1" pos="0.1 0 .1"/></body></body></body></worldbody></mujoco>"""


def arm(armature: Any = ARMATURE, **more: Any) -> Robot:
    b = drevo.Builder("arm")
    for i, kind in enumerate(KINDS):
        b.body(
            f"l{i}", None if i == 0 else "l1" if i == 3 else f"l{i - 1}", kind, [(0, 0, 1), (0.6, 0.8, 0)][i % 2],
            (0.1 * i, 0.3, -0.2), rpy=(0.2 * i, 0.1, 0.4), mass=1.0 + i, com=(0.1, 0.2, 0.05 * i),
            inertia=np.diag([0.3, 0.35, 0.4]), lead=0.2, armature=armature[i], **more,
        )  # fmt: skip
    return b.robot()


def state(robot: Robot, count: int = 3) -> Any:
    return np.random.default_rng(0).normal(size=(count, robot.nv))


def close(a: Any, b: Any, size: float = 1e-13) -> None:
    assert np.abs(np.asarray(a) - b).max() <= size * max(1.0, np.abs(b).max())


@pytest.mark.parametrize("formalism", [f for f in formalisms_giving("mass_matrix") if "planar" not in f])
def test_rotors_stand_on_the_diagonal_of_M_in_every_formalism(formalism: str) -> None:
    bare, geared = (drevo.compile(arm(x), "mass_matrix", formalism=formalism) for x in (np.zeros(5), ARMATURE))
    (q,) = state(arm(), 1)
    close(geared(q), bare(q) + np.diag(ARMATURE))


@pytest.mark.parametrize("formalism", [f for f in formalisms_giving("inverse_dynamics") if "planar" not in f])
def test_rotors_take_their_share_of_tau(formalism: str) -> None:
    bare, geared = (
        drevo.compile(arm(x), "inverse_dynamics", formalism=formalism) for x in (np.zeros(5), ARMATURE)
    )
    q, v, a = state(arm())
    close(geared(q, v, a), bare(q, v, a) + ARMATURE * a)


@pytest.mark.parametrize("formalism", [f for f in formalisms_giving("forward_dynamics") if "planar" not in f])
def test_accelerations_feel_the_rotors(formalism: str) -> None:
    robot = arm()
    q, v, a = state(robot)
    close(drevo.compile(robot, "forward_dynamics", formalism=formalism)(q, v, robot.inverse_dynamics(q, v, a)), a)


@pytest.mark.parametrize("name", ["mass_matrix", "inverse_dynamics", "forward_dynamics"])
def test_rotors_of_a_plane_robot(name: str) -> None:
    b = drevo.Builder("plane")
    for i in range(3):
        b.body(f"l{i}", None if i == 0 else "l0", axis=(0, 1, 0), origin=(0.5, 0, 0), mass=1.0, com=(0.3, 0, 0.1),
               armature=0.2 + 0.1 * i)  # fmt: skip
    robot, given = b.robot(), state(arm())[:, :3]
    given = given[:1] if name == "mass_matrix" else given
    planar, plain = (drevo.compile(robot, name, formalism=f) for f in ("planar", "newton_euler"))
    close(planar(*given), plain(*given))


def test_all_that_rests_on_M_has_the_rotors() -> None:
    bare, robot = arm(np.zeros(5)), arm()
    q, v, a = state(robot)
    M, one = bare.mass_matrix(q) + np.diag(ARMATURE), np.eye(5)
    tau = robot.inverse_dynamics(q, v, a)
    close(robot.inverse_mass_matrix(q) @ M, one)
    close(robot.inertia_product(q, a), M @ a)
    close(robot.bias(q, v), bare.bias(q, v))
    for formalism in formalisms_giving("kinetic_energy"):
        close(drevo.compile(robot, "kinetic_energy", formalism=formalism)(q, v), 0.5 * v @ M @ v)
    dq, dv, found = robot.inverse_dynamics_derivatives(q, v, a)
    close(found, M)
    ddq, ddv, Minv = robot.forward_dynamics_derivatives(q, v, tau)
    close(ddq, -np.linalg.solve(M, dq), 1e-11)
    close(ddv, -np.linalg.solve(M, dv), 1e-11)
    J = robot.jacobian(q, "l4")
    close(robot.inverse_operational_inertia(q, "l4"), J @ Minv @ J.T)
    for name in ("mass_matrix", "inverse_dynamics", "forward_dynamics"):
        given = {"mass_matrix": (q,), "inverse_dynamics": (q, v, a), "forward_dynamics": (q, v, tau)}[name]
        close(drevo.write_out(robot, name).evaluate(*given), drevo.compile(robot, name)(*given))


def test_a_floating_base_with_rotors() -> None:
    """A rotor of a free joint is as a mass without weight that does not turn: A dv/dt + w x A v."""
    b = drevo.Builder("dog")
    b.body("base", joint="free", mass=3.0, com=(0.1, 0, 0), inertia=np.diag([0.2, 0.3, 0.4]), armature=0.3)
    for i in range(3):
        b.body(
            f"leg{i}", "base", axis=(0, 1, 0), origin=(0.2, 0.1 * i, 0), mass=1.0, com=(0, 0, -0.2), armature=0.1
        )
    robot = b.robot()
    bare = Robot(replace(robot.model, joints=tuple(replace(j, dynamics=None) for j in robot.model.joints)))
    rng = np.random.default_rng(1)
    q, v, a = robot.random(rng=rng), rng.normal(size=9), rng.normal(size=9)
    rotors, turned = np.diag([0.3] * 6 + [0.1] * 3), np.r_[0.3 * np.cross(v[3:6], v[:3]), np.zeros(6)]
    M = bare.mass_matrix(q) + rotors
    close(robot.mass_matrix(q), M)
    tau = robot.inverse_dynamics(q, v, a)
    for formalism in ("auto", "newton_euler"):
        of = partial(drevo.compile, robot, formalism=formalism)
        close(of("inverse_dynamics")(q, v, a), bare.inverse_dynamics(q, v, a) + rotors @ a + turned)
        close(of("bias")(q, v), bare.bias(q, v) + turned)
    more = np.zeros((9, 9))
    more[:3, :3] = np.cross(0.3 * v[3:6], np.eye(3)).T
    close(robot.coriolis_matrix(q, v), bare.coriolis_matrix(q, v) + more)
    for formalism in ("khalil", "newton_euler", "articulated_body"):
        close(drevo.compile(robot, "forward_dynamics", formalism=formalism)(q, v, tau), a, 1e-11)
    close(drevo.write_out(robot, "inverse_dynamics").evaluate(q, v, a), tau)
    for name, x in (("inverse_dynamics", a), ("forward_dynamics", tau)):
        by_q, by_v, _ = drevo.compile(robot, f"{name}_derivatives")(q, v, x)
        f = drevo.compile(robot, name)
        close(by_v, central(lambda d, f=f, x=x: f(q, v + d, x)), 1e-7)
        close(by_q, central(lambda d, f=f, x=x: f(robot.integrate(q, d), v, x)), 1e-7)
    found = robot.simulate(q, v, duration=0.1, dt=1e-3)
    energy = robot.kinetic_energy(found.q, found.v) + robot.potential_energy(found.q)
    close(energy, np.full(len(energy), energy[0]), 1e-9)


def central(f: Any, size: int = 9) -> Any:
    """Central differences of f(d) about d = 0."""
    return np.stack([(f(d) - f(-d)) / 2e-6 for d in 1e-6 * np.eye(size)], -1)


def test_pinocchio_has_the_same_armature(tmp_path: Any) -> None:
    path = tmp_path / "puma.urdf"
    path.write_text(as_text(drevo.load("puma560").model).replace('"revolute"', '"continuous"'))
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    model.armature = np.linspace(0.1, 0.6, 6)  # an angle is (cos, sin) there
    given = drevo.load(str(path)).model
    joints = tuple(
        replace(j, dynamics=JointDynamics(armature=float(x))) for j, x in zip(given.moving_joints, model.armature)
    )
    fixed = {j.name: j for j in joints}
    robot = Robot(replace(given, joints=tuple(fixed.get(j.name, j) for j in given.joints)))
    q, v, a = np.random.default_rng(2).normal(size=(3, 6))
    at = np.stack([np.cos(q), np.sin(q)], axis=1).ravel()
    M = pin.crba(model, data, at)
    close(robot.mass_matrix(q), np.triu(M) + np.triu(M, 1).T, 1e-12)
    close(robot.inverse_dynamics(q, v, a), pin.rnea(model, data, at, v, a), 1e-12)
    close(robot.forward_dynamics(q, v, a), pin.aba(model, data, at, v, a), 1e-11)


def test_a_mimic_joint_brings_its_rotor_through_the_gear() -> None:
    b = drevo.Builder("gear")
    b.body("a", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    b.body("b", "a", mass=0.5, inertia=0.1 * np.eye(3), mimic=("a_joint", 5.0), armature=0.2)
    M = b.robot().mass_matrix(np.zeros(1))[0, 0]
    b = drevo.Builder("gear")
    b.body("a", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    b.body("b", "a", mass=0.5, inertia=0.1 * np.eye(3), mimic=("a_joint", 5.0))
    assert pytest.approx(b.robot().mass_matrix(np.zeros(1))[0, 0] + 25.0 * 0.2, rel=1e-15) == M


def test_armature_may_be_an_input() -> None:
    f = drevo.compile(arm(), "mass_matrix", parameters=["*.armature"])
    (q,) = state(arm(), 1)
    given = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert [name for name, _ in f.parameters] == [f"l{i}_joint.armature" for i in range(5)]
    close(f(q, given), arm(np.zeros(5)).mass_matrix(q) + np.diag(given))


def test_a_rotor_resists_where_a_link_has_no_mass() -> None:
    b = drevo.Builder("light")
    b.body("a", mass=1.0, com=(0.1, 0, 0))
    b.body("b", "a", axis=(0, 1, 0), armature=0.3)
    robot = b.robot()
    assert robot.mass_matrix(np.zeros(2))[1, 1] == pytest.approx(0.3, rel=1e-15)
    close(robot.forward_dynamics(np.zeros(2), np.zeros(2), np.array([0.0, 0.6])), [0.0, 2.0])


def test_few_operations_more() -> None:
    """Numbers fold: the diagonal takes at most a sum each, tau a sum and a product."""
    bare = drevo.load("three-link")
    geared = Robot(
        replace(bare.model, joints=tuple(replace(j, dynamics=JointDynamics(0.1 + k)) for k, j in
                                         enumerate(bare.model.joints)))
    )  # fmt: skip
    most = {"mass_matrix": (3, 0), "inverse_dynamics": (3, 3), "forward_dynamics": (6, 3), "bias": (0, 0)}
    for name, (adds, muls) in most.items():
        a, b = (drevo.write_out(r, name).counts for r in (bare, geared))
        assert b["add"] <= a["add"] + adds and b["mul"] <= a["mul"] + muls, name


# -- passive forces ----------------------------------------------------------------------------------------------


def acting_arm() -> Robot:
    return arm(damping=0.3, friction=0.2, stiffness=4.0, reference=0.1)


def test_passive_forces_are_in_where_they_are_asked_for() -> None:
    robot, free = acting_arm(), arm()
    q, v, a = state(robot)
    p = robot.passive(q, v)
    np.testing.assert_allclose(p, -0.3 * v - 0.2 * v / np.hypot(v, FRICTION_WIDTH) - 4.0 * (q - 0.1), rtol=1e-14)
    tau = robot.inverse_dynamics(q, v, a, passive=True)
    close(tau, free.inverse_dynamics(q, v, a) - p)
    close(robot.inverse_dynamics(q, v, a), free.inverse_dynamics(q, v, a))
    close(robot.bias(q, v, passive=True), free.bias(q, v) - p)
    close(robot.forward_dynamics(q, v, tau, passive=True), a)
    f_ext = {"l3": np.arange(6.0)}
    close(robot.inverse_dynamics(q, v, a, f_ext=f_ext, passive=True),
          free.inverse_dynamics(q, v, a, f_ext=f_ext) - p)  # fmt: skip
    close(drevo.write_out(robot, "inverse_dynamics", passive=True).evaluate(q, v, a), tau)
    with pytest.raises(drevo.TraceError, match="mass_matrix has no place for passive forces"):
        drevo.compile(robot, "mass_matrix", passive=True)


def test_derivatives_have_them_too() -> None:
    robot, h = acting_arm(), 1e-6
    q, v, a = state(robot)
    tau = robot.inverse_dynamics(q, v, a, passive=True)
    steps = h * np.eye(5)

    def slope(f: Any) -> Any:
        return np.stack([(f(d) - f(-d)) / (2.0 * h) for d in steps], -1)

    for name, x in (("inverse_dynamics", a), ("forward_dynamics", tau)):
        by_q, by_v, _ = drevo.compile(robot, f"{name}_derivatives", passive=True)(q, v, x)
        f = partial(getattr(robot, name), passive=True)
        close(by_q, slope(lambda d, f=f, x=x: f(q + d, v, x)), 1e-7)
        close(by_v, slope(lambda d, f=f, x=x: f(q, v + d, x)), 1e-7)
    L = robot.linearise(q, v, tau)
    by_q, by_v, _ = drevo.compile(robot, "forward_dynamics_derivatives", passive=True)(q, v, tau)
    close(L.A[5:], np.hstack([by_q, by_v]), 1e-11)
    close(L.a, a, 1e-11)
    close(robot.linearise(q, v, tau, passive=False).A, arm().linearise(q, v, tau).A)


def test_a_motion_has_them_unless_told_otherwise() -> None:
    b = drevo.Builder("oscillator")
    b.body(
        "a", joint="prismatic", axis=(1, 0, 0), mass=1.5, armature=0.5, damping=0.4, stiffness=8.0, reference=0.2
    )
    robot = b.robot()
    found = robot.simulate([0.5], [0.0], duration=1.0, dt=1e-3)
    d, w = 0.1, np.sqrt(4.0 - 0.01)  # 2 x'' + 0.4 x' + 8 (x - 0.2) = 0
    exact = 0.2 + 0.3 * np.exp(-d * found.t) * (np.cos(w * found.t) + d / w * np.sin(w * found.t))
    close(found.q[:, 0], exact, 1e-12)
    by_law = robot.simulate([0.5], [0.0], lambda t, q, v: np.zeros(1), duration=0.1, dt=1e-3)
    close(by_law.q, found.q[:101], 1e-14)
    assert robot.simulate([0.5], [0.0], duration=0.1, passive=False).q[-1] == 0.5


def test_a_dead_weight_on_a_large_chain_is_damped() -> None:
    b = drevo.Builder("rope")
    for i in range(70):
        b.body(f"l{i}", f"l{i - 1}" if i else None, axis=(0, 1, 0), origin=(0, 0, -0.1 * (i > 0)), mass=0.1,
               com=(0, 0, -0.05), damping=1e-4)  # fmt: skip
    robot, q, v = b.robot(), np.zeros(70), np.full(70, 0.1)
    tau = -1e-4 * v
    close(robot.forward_dynamics(q, v, np.zeros(70), passive=True), robot.forward_dynamics(q, v, tau), 1e-9)
    found = robot.simulate(q, v, duration=2e-3)
    close(found.v[1], robot.simulate(q, v, lambda t, q, v: -1e-4 * v, duration=2e-3, passive=False).v[1], 1e-12)


# -- files -------------------------------------------------------------------------------------------------------


def test_mujoco_has_the_same_inertia_and_passive_forces(tmp_path: Any) -> None:
    path = tmp_path / "three.xml"
    path.write_text(MJCF)
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = drevo.load(str(path))
    rng = np.random.default_rng(0)
    q, v = robot.random(rng=rng), rng.normal(size=5)
    data.qpos[:], data.qvel[:] = [*q[:2], q[5], *q[2:5]], v
    mujoco.mj_forward(model, data)
    M = np.zeros((5, 5))
    mujoco.mj_fullM(model, data, M)
    close(robot.mass_matrix(q), M)
    close(robot.passive(q, v), data.qfrc_passive)
    tau = robot.inverse_dynamics(q, v, data.qacc, passive=True)
    close(tau, np.zeros(5), 1e-11)
    close(robot.forward_dynamics(q, v, tau, passive=True), data.qacc, 1e-11)
    assert robot.armature.tolist() == model.dof_armature.tolist()
    assert robot.damping.tolist() == [0.3, 0.1, 0.02, 0.02, 0.02]


RARE = """<mujoco><option gravity="0.3 -0.2 -9.81"><flag contact="disable"/></option><worldbody>
<body name="a" pos="0.3 0.2 1" quat="0.5 0.5 -0.5 0.5">
<joint name="f" type="free" armature="0.4" stiffness="2 0.5 0.25" damping="0.3 0.2 0.1"/>
<geom type="box" size=".1 .2 .3" pos=".1 0 .2"/>
<body name="b" pos=".3 0 .2" gravcomp="0.7">
<joint name="h" type="hinge" axis="0 1 0" stiffness="3 2 1" springref="20" damping="0.1 0.3 0.2"/>
<geom type="sphere" size=".1" pos="0.2 0.1 0"/>
<body name="c" pos="0 .1 .4" gravcomp="1"><joint name="s" type="ball" stiffness="1.5 0.2 0.4" damping="0.02"/>
<geom type="capsule" size=".05 .1" pos="0.1 0 .1"/></body></body></body></worldbody></mujoco>"""


def test_mujoco_has_the_same_rare_forces() -> None:
    """Free and ball springs, polynomials in dampers and springs, compensated weights, rotors of a free joint."""
    model, robot = mujoco.MjModel.from_xml_string(RARE), drevo.load(RARE)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    for _ in range(3):
        q, v = robot.random(rng=rng), rng.normal(size=10)
        R = robot.pose(q, "a")[:3, :3]
        data.qpos[:] = np.r_[q[:3], q[6], q[3:6], q[7], q[11], q[8:11]]
        data.qvel[:] = np.r_[R @ v[:3], v[3:]]
        mujoco.mj_forward(model, data)
        p = np.r_[R.T @ data.qfrc_passive[:3], data.qfrc_passive[3:]]
        close(robot.passive(q, v), p, 1e-12)
        a = np.r_[R.T @ data.qacc[:3] - np.cross(v[3:6], v[:3]), data.qacc[3:]]  # of the rates in the body's axes
        close(robot.forward_dynamics(q, v, np.zeros(10), passive=True), a, 1e-10)
        close(robot.inverse_dynamics(q, v, a, passive=True), np.zeros(10), 1e-10)


def test_rare_forces_are_saved(tmp_path: Any) -> None:
    robot, rng = drevo.load(RARE), np.random.default_rng(2)
    q, v = robot.random(rng=rng), rng.normal(size=10)
    for suffix in ("xml", "toml", "json"):
        robot.save(tmp_path / f"rare.{suffix}")
        close(drevo.load(tmp_path / f"rare.{suffix}").passive(q, v), robot.passive(q, v), 1e-14)
    close(drevo.load(robot.to_mujoco().compile()).passive(q, v), robot.passive(q, v), 1e-13)
    with pytest.raises(ModelError, match=r"the quadratic damping of 'f'.* the compensated weight of 'b'"):
        robot.save(tmp_path / "rare.urdf")


def test_derivatives_of_rare_forces() -> None:
    robot, rng, rest = drevo.load(RARE), np.random.default_rng(1), np.zeros(10)
    q, v = robot.random(rng=rng), rng.normal(size=10)
    f = partial(robot.forward_dynamics, passive=True)
    by_q, by_v, _ = drevo.compile(robot, "forward_dynamics_derivatives", passive=True)(q, v, rest)
    close(robot.linearise(q, v, rest).A[10:], np.hstack([by_q, by_v]), 1e-10)
    close(by_v, central(lambda d: f(q, v + d, rest), 10), 1e-7)
    close(by_q, central(lambda d: f(robot.integrate(q, d), v, rest), 10), 1e-7)
    still = robot.neutral()  # where the spring of the ball is at rest
    by_q, _, _ = drevo.compile(robot, "inverse_dynamics_derivatives", passive=True)(still, rest, rest)
    f = partial(robot.inverse_dynamics, passive=True)
    close(by_q, central(lambda d: f(robot.integrate(still, d), rest, rest), 10), 1e-7)


def test_a_knee_by_formula_has_its_weight_compensated() -> None:
    b = drevo.Builder("knee")
    b.body("thigh", axis=(0, 1, 0), mass=3.0, com=(0, 0, -0.2), inertia=np.eye(3))
    b.body(
        "shank",
        "thigh",
        "custom",
        pose={"x": "0.1 * sin(q)", "pitch": "q"},
        mass=2.0,
        com=(0, 0.1, -0.2),
        gravcomp=0.5,
    )
    robot, q, still = b.robot(), np.array([0.3, 0.4]), np.zeros(2)
    alone = Robot(
        replace(
            robot.model,
            links=tuple(replace(x, inertial=None) if x.name == "thigh" else x for x in robot.model.links),
        )
    )
    close(robot.passive(q, still), 0.5 * alone.gravity(q))
    by_q = drevo.compile(robot, "inverse_dynamics_derivatives", passive=True)(q, still, still)[0]
    close(by_q, central(lambda d: robot.inverse_dynamics(q + d, still, still, passive=True), 2), 1e-8)


def test_dry_friction_is_smooth_and_grows_to_its_size() -> None:
    b = drevo.Builder("block")
    b.body("a", joint="prismatic", mass=1.0, friction=0.5)
    forces = acting(b.model())
    f = [passive_forces(forces, 1, [0.0], [v])[0] for v in (0.0, FRICTION_WIDTH, 1e6, -1e6)]
    np.testing.assert_allclose(f, [0.0, -0.5 / np.sqrt(2.0), -0.5, 0.5], rtol=1e-14)


@pytest.mark.parametrize("suffix", ["urdf", "json", "toml"])
def test_saved_and_read_again(tmp_path: Any, suffix: str) -> None:
    robot = arm(damping=0.1, friction=0.2, stiffness=3.0, reference=0.4)
    path = tmp_path / f"arm.{suffix}"
    robot.save(str(path))
    again = drevo.load(str(path))
    for name in ("armature", "damping", "friction", "stiffness", "reference"):
        np.testing.assert_array_equal(getattr(again, name), getattr(robot, name))
        assert getattr(robot, name).any()


def test_urdf_and_sdf_name_them_their_own_way(tmp_path: Any) -> None:
    urdf = (
        '<robot name="r"><link name="w"/><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="revolute"><parent link="w"/><child link="a"/>'
        '<axis xyz="0 0 1"/><dynamics damping="0.7" friction="0.2"/>'
        '<limit lower="-1" upper="2" velocity="3" effort="4"/></joint></robot>'
    )  # fmt: skip
    path = tmp_path / "r.urdf"
    path.write_text(urdf)
    robot = drevo.load(str(path))
    found = [x.item() for x in (robot.damping, robot.friction, robot.lower, robot.upper, robot.max_velocity,
                                robot.max_effort)]  # fmt: skip
    assert found == [0.7, 0.2, -1.0, 2.0, 3.0, 4.0]
    sdf = (
        '<sdf version="1.9"><model name="r"><link name="a"><inertial><mass>1</mass>'
        "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>"
        '<joint name="j" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz><dynamics>'
        "<damping>0.7</damping><friction>0.2</friction><spring_stiffness>5</spring_stiffness>"
        "<spring_reference>0.3</spring_reference></dynamics></axis></joint></model></sdf>"
    )
    path = tmp_path / "r.sdf"
    path.write_text(sdf)
    robot = drevo.load(str(path))
    assert [x.item() for x in (robot.damping, robot.friction, robot.stiffness, robot.reference)] == [
        0.7,
        0.2,
        5,
        0.3,
    ]


def test_what_is_wrong_is_said() -> None:
    def one(**given: Any) -> Robot:
        b = drevo.Builder("r")
        b.body("a", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3), **given)
        return b.robot()

    with pytest.raises(ModelError, match=r"joint 'a_joint' of body 'a' has the negative armature -1"):
        one(armature=-1.0)
    with pytest.raises(ModelError, match="damping nan is not finite"):
        one(damping=float("nan"))
    with pytest.raises(ModelError, match="both dynamics and friction are given"):
        one(friction=1.0, dynamics=JointDynamics(damping=1.0))
    with pytest.warns(DrevoWarning, match="negative damping -1, which drives it"):
        one(damping=-1.0)
    assert one(damping=-0.0).model.joints[0].dynamics is None


# -- rotors that turn in space ---------------------------------------------------------------------------------

J, GEAR, SPIN = 2e-3, 30.0, np.array([0.6, 0.0, 0.8])
MASS, COM = 0.4, (0.1, 0.05, 0.2)  # of the rotor; its centre, which is that of the link
ROTOR = 1.5e-3 * np.eye(3) + (J - 1.5e-3) * np.outer(SPIN, SPIN)
ARM: dict[str, Any] = {"axis": (0, 1, 0), "origin": (0.3, 0, 0.1), "rpy": (0.2, 0.1, 0), "mass": 1.5,
                       "com": (0.2, 0.1, 0.1), "inertia": 0.1 * np.eye(3)}  # fmt: skip


def turning(rotor: dict[str, Any] | None = None, **more: Any) -> Robot:
    """A floating link with a rotor in it, and the arm that it drives; the rotor as such, or as a link."""
    whole, b = np.diag([0.3, 0.25, 0.2]) + 0.03, drevo.Builder("gyro")
    held = {"mass": 2.0, "inertia": whole} if rotor is None else {"mass": 2.0 - MASS, "inertia": whole - ROTOR}
    b.body("base", joint="free", com=COM, **held)
    if rotor is not None and not rotor:
        b.body("rotor", "base", axis=SPIN, origin=COM, mass=MASS, inertia=ROTOR)
    b.body("arm", "base", **ARM, **more, **({"rotor": (J, GEAR, 2.0 * SPIN)} if rotor is None else {}))
    b.body(
        "hand", "arm", axis=(1, 0, 0), origin=(0.4, 0, 0), mass=0.5, com=(0.1, 0.1, 0), inertia=0.05 * np.eye(3)
    )
    if rotor:
        b.body("rotor", "base", axis=SPIN, origin=COM, mass=MASS, inertia=ROTOR, **rotor)
    return b.robot()


FELT = "mass_matrix bias inverse_dynamics kinetic_energy potential_energy momentum coriolis_matrix inertia_product"


@pytest.mark.parametrize("name", [*FELT.split(), "forward_dynamics", "inverse_dynamics_derivatives",
                                  "forward_dynamics_derivatives"])  # fmt: skip
def test_a_rotor_is_a_link_that_turns_about_its_axis(name: str) -> None:
    one, other, rng = turning(), turning({"mimic": ("arm_joint", GEAR)}), np.random.default_rng(0)
    q, v, a = one.random(rng=rng), rng.normal(size=8), rng.normal(size=8)
    given = {"q": q, "v": v, "a": a, "tau": a, "x": v}
    state = [given[s] for s in CATALOGUE[name].state]
    x, y = (drevo.compile(r, name)(*state) for r in (one, other))
    for u, w in zip(x if isinstance(x, tuple) else (x,), y if isinstance(y, tuple) else (y,)):
        close(u, w, 1e-11 if "forward" in name else 1e-12)
    assert [*one.moving_links] == ["base", "arm", "hand"]


def test_rotors_in_every_formalism_and_as_inputs() -> None:
    robot, rng = turning(), np.random.default_rng(0)
    q, v, a = robot.random(rng=rng), rng.normal(size=8), rng.normal(size=8)
    tau = robot.inverse_dynamics(q, v, a)
    for formalism in ("newton_euler", "khalil"):
        close(drevo.compile(robot, "inverse_dynamics", formalism=formalism)(q, v, a), tau)
        close(drevo.compile(robot, "forward_dynamics", formalism=formalism)(q, v, tau), a, 1e-11)
    close(drevo.write_out(robot, "mass_matrix").evaluate(q), robot.mass_matrix(q))
    f = drevo.compile(robot, "inverse_dynamics", parameters=["*.rotor"])
    close(f(q, v, a, [2.0 * J]) - tau, tau - f(q, v, a, [0.0]), 1e-12)
    assert robot.armature.tolist() == [0.0] * 6 + [pytest.approx(J * GEAR**2), 0.0]


def test_a_rotor_without_an_axis_or_on_the_ground_is_armature() -> None:
    body: dict[str, Any] = {"axis": (0, 1, 0), "mass": 1.0, "com": (0.1, 0, 0.2)}
    plain = drevo.Builder("r").body("a", **body, armature=J * GEAR**2).robot()
    for rotor in ((J, GEAR), (J, GEAR, (1, 0, 0))):
        robot = drevo.Builder("r").body("a", **body, rotor=rotor).robot()
        close(robot.inverse_dynamics([0.3], [0.5], [0.7]), plain.inverse_dynamics([0.3], [0.5], [0.7]))


def test_the_full_model_of_an_elastic_joint() -> None:
    """Spong 1987 leaves out that rotors turn in space; with an axis they do, as a rotor and an arm apart."""
    robot, apart, rng = turning(elastic=(500.0, 0.1)), turning({}), np.random.default_rng(0)
    assert robot.joint_names == ("base_joint", "arm_motor", "arm_joint", "hand_joint")
    T = np.eye(9)
    T[6:8, 6:8] = [[GEAR, 0.0], [1.0, 1.0]]  # rotor and arm, of motor and deflection
    q, v, a = robot.random(rng=rng), rng.normal(size=9), rng.normal(size=9)
    x = np.r_[q[:7], T[6:, 6:] @ q[7:]]
    close(robot.mass_matrix(q), T.T @ apart.mass_matrix(x) @ T)
    close(robot.inverse_dynamics(q, v, a), T.T @ apart.inverse_dynamics(x, T @ v, T @ a), 1e-12)
    close(robot.passive(q, v)[6:8], [0.0, -500.0 * q[8] - 0.1 * v[7]])


def test_rotors_are_saved_and_judged(tmp_path: Any) -> None:
    robot = turning()
    q, v = robot.random(rng=np.random.default_rng(3)), np.ones(8)
    for suffix in ("toml", "json"):
        robot.save(tmp_path / f"r.{suffix}")
        close(drevo.load(tmp_path / f"r.{suffix}").bias(q, v), robot.bias(q, v), 1e-15)
    with pytest.raises(ModelError, match="the spinning rotor of 'arm_joint'"):
        robot.save(tmp_path / "r.urdf")
    for rotor, sentence in (
        ((-1.0, 2.0), "joint 'arm_joint' of body 'arm' has a rotor of the negative inertia -1"),
        ((1.0, 0.0), "joint 'arm_joint' of body 'arm' has the gear ratio 0; give how often"),
        ((1.0, 2.0, (0, 0, 0)), "has the zero axis .0 0 0. for its rotor"),
        ((1.0,), "rotor is .inertia, gear ratio., or with an axis besides"),
        ((1.0, float("nan")), "rotor nan is not finite"),
    ):
        with pytest.raises(ModelError, match=sentence):
            drevo.Builder("r").body("arm", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3), rotor=rotor).robot()
    with pytest.raises(ModelError, match="of type spherical has a rotor, which is of joints with one rate"):
        drevo.Builder("r").body("arm", joint="spherical", mass=1.0, inertia=np.eye(3), rotor=(1.0, 2.0)).robot()


# -- elastic joints ----------------------------------------------------------------------------------------------


def test_an_elastic_joint_swings_at_the_frequency_of_its_closed_form() -> None:
    """I q'' = -k (q - m), B m'' = k (q - m): w^2 = k (1/I + 1/B); q = m + deflection. Spong 1987."""
    link, motor, k = 0.3, 0.05, 40.0
    b = drevo.Builder("series", gravity=(0, 0, 0))
    robot = b.body("a", mass=1.0, inertia=np.diag([0.2, 0.2, link]), armature=motor, elastic=(k, 0.0)).robot()
    assert robot.joint_names == ("a_motor", "a_joint")
    L = robot.linearise(np.zeros(2), np.zeros(2), np.zeros(2), actuated=["a_motor"])
    w = np.sqrt(k * (1.0 / link + 1.0 / motor))
    assert np.abs(np.linalg.eigvals(L.A)).max() == pytest.approx(w, rel=1e-12)
    found = robot.simulate([0.0, 0.1], [0.0, 0.0], duration=0.2, dt=1e-4, every=100)
    swing = 0.1 * np.cos(w * found.t)
    close(found.q[:, 1], swing, 1e-10)
    close(found.q[:, 0], link / (link + motor) * (0.1 - swing), 1e-10)  # I (m + d)' + B m' stays 0


def test_a_stiff_elastic_joint_is_the_rigid_one() -> None:
    def made(**given: Any) -> Robot:
        b = drevo.Builder("two")
        b.body("a", axis=(0, 1, 0), mass=1.0, com=(0.2, 0, 0), inertia=0.1 * np.eye(3), armature=0.1, **given)
        b.body("b", "a", axis=(0, 1, 0), origin=(0.5, 0, 0), mass=0.5, com=(0.1, 0, 0.1), inertia=0.1 * np.eye(3))
        return b.robot()

    rigid, elastic = made(), made(elastic=(1e9, 0.0))
    np.testing.assert_allclose(elastic.pose([0.2, 0.1, 0.4], "b"), rigid.pose([0.3, 0.4], "b"), atol=1e-15)
    M, N = elastic.mass_matrix([0.3, 0.0, 0.4]), rigid.mass_matrix([0.3, 0.4])
    close(M[np.ix_([0, 2], [0, 2])], N)  # a motor that takes the link along
    assert M[0, 0] - M[1, 1] == pytest.approx(0.1, rel=1e-13)  # the deflection leaves the motor where it is


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"elastic": (1.0,), "armature": 1.0}, r"elastic is \(stiffness, damping\)"),
        ({"elastic": (0.0, 1.0), "armature": 1.0}, r"elastic is \(stiffness, damping\)"),
        ({"elastic": (1.0, 0.0)}, "an elastic joint has one freedom and a motor; give armature="),
        ({"elastic": (1.0, 0.0), "armature": 1.0, "joint": "spherical"}, "an elastic joint has one freedom"),
    ],
)
def test_what_is_no_elastic_joint(given: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        drevo.Builder("r").body("a", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3), **given)


# -- large trees ------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", [("revolute",), ("revolute", "prismatic", "spherical", "helical")])
def test_loops_over_the_bodies_have_the_rotors(kinds: tuple[str, ...]) -> None:
    def tree(geared: float) -> Robot:
        rng, b = np.random.default_rng(0), drevo.Builder("large")
        for i in range(64):
            axis = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (0.6, 0, 0.8)][rng.integers(4)]
            b.body(
                f"l{i}", f"l{rng.integers(max(0, i - 4), i)}" if i else None, kinds[i % len(kinds)], axis,
                0.3 * rng.normal(size=3), mass=1.0 + rng.random(), com=0.1 * rng.normal(size=3),
                inertia=0.2 * np.eye(3), armature=geared * (0.1 + rng.random()), lead=0.1,
            )  # fmt: skip
        return b.robot()

    robot, bare = tree(1.0), tree(0.0)
    rng = np.random.default_rng(1)
    q = robot.random(rng=rng)
    v, a = rng.normal(size=(2, robot.nv))
    M = bare.mass_matrix(q) + np.diag(robot.armature)
    close(robot.mass_matrix(q), M)
    tau = robot.inverse_dynamics(q, v, a)
    close(tau, bare.inverse_dynamics(q, v, a) + robot.armature * a)
    close(robot.inertia_product(q, a), M @ a)
    close(robot.forward_dynamics(q, v, tau), a, 1e-11)
    close(robot.kinetic_energy(q, v), 0.5 * v @ M @ v)
    close(robot.inverse_mass_matrix(q) @ M, np.eye(robot.nv), 1e-11)
    by_q, by_v, found = robot.inverse_dynamics_derivatives(q, v, a)
    close(found, M)
    ddq, ddv, _ = robot.forward_dynamics_derivatives(q, v, tau)
    close(ddq, -np.linalg.solve(M, by_q), 1e-10)
    close(ddv, -np.linalg.solve(M, by_v), 1e-10)
    J = robot.jacobian(q, "l63")
    close(robot.inverse_operational_inertia(q, "l63"), J @ np.linalg.solve(M, J.T), 1e-12)
