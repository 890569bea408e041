"""A robot whose body 0 moves as functions of time say, against the same robot on a free base that is moved so."""

import cmath
import math
from collections.abc import Callable
from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation
from strategies import robot as random_tree
from strategies import seeds

import drevo
from drevo.model.base import with_base
from drevo.model.description import Inertial
from drevo.robots import model

RNG = np.random.default_rng(5)
ROBOTS = ("three-link", "two-arm-spatial", "screw-arm", "biped")


def position(t):
    return [0.3 * drevo.sin(3.0 * t), 0.2 * t * t - 0.4 * t, 0.1 * drevo.cos(t) * t]


def orientation(t):
    return [0.4 * t, 0.7 * drevo.cos(2.0 * t), 1.3 * drevo.sin(t) - 0.2]


def base_motion(t):
    """R, p, and the velocity and acceleration of a free joint, its own axes; by complex steps from formulas."""

    def twist(z):
        roll, pitch = 0.4 * z, 0.7 * cmath.cos(2.0 * z)
        rates = 0.4, -1.4 * cmath.sin(2.0 * z), 1.3 * cmath.cos(z)
        R = matrix(roll, pitch, 1.3 * cmath.sin(z) - 0.2)
        world = np.array([0.9 * cmath.cos(3.0 * z), 0.4 * z - 0.4, 0.1 * cmath.cos(z) - 0.1 * z * cmath.sin(z)])
        s, c = cmath.sin(roll), cmath.cos(roll)
        turn = [rates[0] - rates[2] * cmath.sin(pitch), rates[1] * c + rates[2] * cmath.cos(pitch) * s,
                rates[2] * cmath.cos(pitch) * c - rates[1] * s]  # fmt: skip
        return np.array([*(R.T @ world), *turn])

    h = 1e-30
    R = matrix(0.4 * t, 0.7 * math.cos(2.0 * t), 1.3 * math.sin(t) - 0.2).real
    p = np.array([0.3 * math.sin(3.0 * t), 0.2 * t * t - 0.4 * t, 0.1 * math.cos(t) * t])
    return R, p, twist(t).real, twist(t + 1j * h).imag / h


def matrix(roll, pitch, yaw):
    def about(axis, angle):
        s, c = cmath.sin(angle), cmath.cos(angle)
        i, j = (axis + 1) % 3, (axis + 2) % 3
        R = np.eye(3, dtype=complex)
        R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
        return R

    return about(2, yaw) @ about(1, pitch) @ about(0, roll)


def free_state(t, q, v, a):
    """The state of the robot on a free base."""
    R, p, twist, rate = base_motion(t)
    return np.r_[p, Rotation.from_matrix(R).as_quat(), q], np.r_[twist, v], np.r_[rate, a]


def both(description):
    """The robot on a base with mass, and the same on a free one."""
    root, *links = description.links
    solid = replace(
        root, inertial=Inertial(3.0, (0.1, 0.2, -0.1), ((0.3, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, 0.5)))
    )
    description = replace(description, links=(solid, *links))
    return drevo.Robot(description), drevo.Robot(with_base(description, "floating"))


def near(got, want, tolerance=1e-12):
    want = np.asarray(want)
    assert np.abs(np.asarray(got) - want).max() <= tolerance * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_quantities_are_those_of_a_free_base_that_is_moved_so(name: str) -> None:
    robot, free = both(model(name))
    moved = robot.with_base_motion(position, orientation)
    link = robot.link_names[-1]
    for t in (0.0, 0.6, -1.3):
        q, v, a = robot.random(RNG), RNG.normal(size=robot.nv), RNG.normal(size=robot.nv)
        q1, v1, a1 = free_state(t, q, v, a)
        tau = free.inverse_dynamics(q1, v1, a1)[6:]
        near(moved.inverse_dynamics(q, v, a, t), tau)
        near(moved.bias(q, v, t), free.inverse_dynamics(q1, v1, np.r_[a1[:6], 0.0 * a])[6:])
        near(moved.gravity(q, t=t), free.gravity(q1)[6:])
        near(moved.mass_matrix(q, t), free.mass_matrix(q1)[6:, 6:])
        near(moved.forward_dynamics(q, v, tau, t), a, 1e-10)
        near(moved.inverse_mass_matrix(q, t), np.linalg.inv(free.mass_matrix(q1)[6:, 6:]), 1e-9)
        near(moved.kinetic_energy(q, v, t), free.kinetic_energy(q1, v1))
        near(moved.potential_energy(q, t), free.potential_energy(q1))
        near(moved.pose(q, t, link=link), free.pose(q1, link))
        near(moved.velocity(q, v, t, link=link), free.velocity(q1, v1, link))
        near(moved.acceleration(q, v, a, t, link=link), free.acceleration(q1, v1, a1, link))
        near(moved.jacobian(q, t, link=link), free.jacobian(q1, link)[:, 6:])
        push = {link: np.arange(6.0)}
        near(moved.bias(q, v, t, f_ext=push), free.inverse_dynamics(
            q1, v1, np.r_[a1[:6], 0.0 * a], f_ext=push)[6:])  # fmt: skip


@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_and_mujoco_agree(name: str) -> None:
    robot, free = both(model(name))
    moved = robot.with_base_motion(position, orientation)
    q, v, a = RNG.normal(size=(3, moved.nv))
    t = 0.8
    tau = moved.inverse_dynamics(q, v, a, t)
    if name != "screw-arm":
        theirs = free.to_pinocchio()
        data = theirs.createData()
        q1, v1, a1 = free_state(t, q, v, a)
        order = [theirs.joints[theirs.getJointId(j)].idx_v for j in moved.joint_names]
        full = pin.neutral(theirs), np.zeros(theirs.nv), np.zeros(theirs.nv)
        for x, y, lead in zip(full, (q1, v1, a1), (7, 6, 6)):
            x[:lead] = y[:lead]
            x[[k + lead - 6 for k in order]] = y[lead:]
        near(tau, pin.rnea(theirs, data, *full)[order])
        m = free.to_mujoco().compile()
        d = mujoco.MjData(m)
        R, p, twist, rate = base_motion(t)
        world = R @ twist[:3], R @ (rate[:3] + np.cross(twist[3:], twist[:3]))
        places = [m.joint(j).dofadr[0] for j in moved.joint_names]
        d.qpos[:7] = [*p, *Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]]]
        d.qvel[:6], d.qacc[:6] = [*world[0], *twist[3:]], [*world[1], *rate[3:]]
        d.qpos[[k + 1 for k in places]], d.qvel[places], d.qacc[places] = q, v, a
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        mujoco.mj_inverse(m, d)
        near(tau, (d.qfrc_inverse + d.qfrc_passive)[places])


@pytest.mark.parametrize("seed", seeds(5, 50))
def test_random_trees(seed: int) -> None:
    kinds = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "fixed")
    robot, free = both(random_tree(seed, kinds))
    moved, t = robot.with_base_motion(position, orientation), 0.9
    q, v, a = robot.random(RNG), RNG.normal(size=robot.nv), RNG.normal(size=robot.nv)
    tau = free.inverse_dynamics(*free_state(t, q, v, a))[6:]
    near(moved.inverse_dynamics(q, v, a, t), tau)
    near(robot.mass_matrix(q) @ (moved.forward_dynamics(q, v, tau, t) - a), 0.0 * a, 1e-9)


def test_a_floating_robot_gives_up_its_base() -> None:
    floating = drevo.load("biped", base="floating")
    moved = floating.with_base_motion(position, orientation)
    fixed = drevo.load("biped").with_base_motion(position, orientation)
    assert moved.joint_names == fixed.joint_names and moved.nv == fixed.nv
    q, v, a = RNG.normal(size=(3, moved.nv))
    near(moved.inverse_dynamics(q, v, a, 0.4), fixed.inverse_dynamics(q, v, a, 0.4))
    trunk = drevo.load("biped", base="trunk").with_base_motion(position, orientation)
    near(trunk.inverse_dynamics(q, v, a, 0.4), fixed.inverse_dynamics(q, v, a, 0.4))


def test_motions_are_those_of_the_accelerations() -> None:
    moved = drevo.load("three-link").with_base_motion(position, orientation)
    q, v = np.array([0.3, -0.2, 0.5]), np.zeros(3)
    law = drevo.simulate.Control(lambda t, q, v: [-0.5 * x + drevo.sin(t) for x in v])
    table = moved.simulate(q, v, law, t0=0.2, duration=1.0, method="dop853", rtol=1e-11, dt=0.5)

    def rate(t, x):
        tau = -0.5 * x[3:] + math.sin(t)
        return np.r_[x[3:], moved.forward_dynamics(x[:3], x[3:], tau, t)]

    want = solve_ivp(rate, (0.2, 1.2), np.r_[q, v], "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    near(np.r_[table.q[-1], table.v[-1]], want, 1e-8)
    assert table.t[0] == 0.2 and table.q.shape == (3, 3)
    near(table.energy[-1], moved.kinetic_energy(table.q[-1], table.v[-1], 1.2)
         + moved.potential_energy(table.q[-1], 1.2))  # fmt: skip
    near(table.at(0.7)[0], table.q[1], 1e-9)
    by_python = moved.simulate(q, v, lambda t, q, v: -0.5 * v + math.sin(t), t0=0.2, duration=0.02)
    near(by_python.q[-1], moved.simulate(q, v, law, t0=0.2, duration=0.02).q[-1])
    near(table.efforts[-1], -0.5 * table.v[-1] + math.sin(1.2))


def test_a_point_that_stays_on_a_plane_of_the_world() -> None:
    moved = drevo.load("three-link").with_base_motion(lambda t: [0.02 * (1.0 - drevo.cos(5.0 * t)), 0.0, 0.1 * t])
    link, q = moved.link_names[-1], np.array([0.4, 0.6, -0.3])
    place = moved.pose(q, link=link)[0, 3]
    plane = drevo.constraint.point_on_plane(link, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), offset=place)
    table = moved.simulate(q, duration=0.3, constraints=[plane])
    places = moved.pose(table.q, table.t, link=link)[..., 0, 3]
    assert np.abs(places - place).max() < 1e-9 and table.reactions.shape == (301, 1)


def test_arrays_are_joined_by_a_spline() -> None:
    robot, times = drevo.load("three-link"), np.linspace(0.0, 1.0, 12)
    rows = np.stack([np.sin(3.0 * times), times**2, np.cos(times)], -1)
    moved = robot.with_base_motion(rows, (0.1, 0.2, 0.3), times)
    spline = CubicSpline(times, rows)
    for t in (0.05, 0.5, 0.93):
        at = moved.clocked.velocity(*moved.state(t, np.zeros(3), np.zeros(3)), moved.moving_links[0])
        near(at[:3], spline(t, 1))
        pushed = robot.with_base_motion(lambda s, t=t: [spline(t)[k] + (s - t) * spline(t, 1)[k]
                 + 0.5 * (s - t) ** 2 * spline(t, 2)[k] for k in range(3)], (0.1, 0.2, 0.3))  # fmt: skip
        q, v, a = RNG.normal(size=(3, 3))
        near(moved.inverse_dynamics(q, v, a, t), pushed.inverse_dynamics(q, v, a, t), 1e-11)


def test_batches_names_and_compiled_code() -> None:
    moved = drevo.load("puma560").with_base_motion(position)
    q, v, a, t = RNG.normal(size=(5, 6)), RNG.normal(size=(5, 6)), RNG.normal(size=6), np.linspace(0.0, 1.0, 5)
    many = moved.inverse_dynamics(q, v, a=a, t=t)
    near(many, [moved.inverse_dynamics(*row) for row in zip(q, v, [a] * 5, t)])
    f = drevo.compile(moved.clocked, "inverse_dynamics")
    near(f(*moved.state(t, q, v, a))[..., 1:], many)
    balance = moved.power_balance(q[0], v[0], a, 0.3)
    total = balance.Wk.sum() + balance.Wp.sum()
    assert balance.P.shape == (6,) and balance.Wk.shape == (7,) and math.isfinite(total)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"position": lambda t: [t, 1.0]}, "three numbers"),
        ({"position": lambda t: t}, "three numbers"),
        ({"position": (1.0, 2.0)}, "three numbers"),
        ({"orientation": lambda t: [t]}, r"\[roll, pitch, yaw\]"),
        ({"position": (1.0, 2.0, 3.0)}, "does not depend on the time"),
        ({"position": lambda t: [t, math.sqrt(t), 0.0]}, "traced"),
        ({"position": np.zeros((5, 3))}, "times"),
        ({"position": np.zeros((5, 3)), "times": [0.0, 1.0, 1.0, 2.0, 3.0]}, "rise"),
        ({"position": [0.0, 0.0, math.nan]}, "finite"),
        ({"orientation": "up"}, "orientation"),
    ],
)
def test_what_cannot_be_is_said(given, sentence) -> None:
    with pytest.raises(drevo.DrevoError, match=sentence):
        drevo.load("three-link").with_base_motion(**given)


def test_calls_that_do_not_fit_are_said() -> None:
    moved = drevo.Robot(model("three-link")).with_base_motion(position)
    with pytest.raises(drevo.DrevoError, match="takes q, v, a, t"):
        moved.inverse_dynamics(np.zeros(3), np.zeros(3))
    with pytest.raises(drevo.DrevoError, match="q"):
        moved.mass_matrix(np.zeros(4))
    with pytest.raises(drevo.DrevoError, match="quantity"):
        moved.nonsense()
    nq = moved.nq
    q = np.zeros((4, nq))
    for call, sentence in (
        (lambda: moved.bias(q, 0.0 * q[:, : moved.nv], np.zeros(3)), r"do not agree: t \(3,\), q \(4,\)"),
        (lambda: moved.simulate(q, np.zeros((2, moved.nv)), duration=0.01), r"do not agree: q \(4,\), v \(2,\)"),
        (lambda: moved.simulate(q[0], foo=1, duration=0.01), "takes no argument 'foo'"),
        (lambda: moved.bias(q[0], np.zeros(moved.nv), np.nan), "t holds a value that is not finite"),
        (lambda: moved.simulate(q[0], duration=0.01).at("soon"), "at: t is 'soon'"),
    ):
        with pytest.raises(drevo.DrevoError, match=sentence):
            call()


@pytest.mark.parametrize("call", [drevo.write_out, drevo.compile])
def test_what_takes_a_robot_names_the_clocked_one(call: Callable[..., object]) -> None:
    """A page and compiled code are of `.clocked`; by a paper's own path the message says to leave that out."""
    moved = drevo.load("three-link").with_base_motion(position)
    with pytest.raises(drevo.DrevoError, match=r"give its \.clocked"):
        call(moved, "inverse_dynamics")
    assert call(moved.clocked, "inverse_dynamics")
    with pytest.raises(drevo.DrevoError, match="leave sequence out"):
        drevo.write_out(moved.clocked, "inverse_dynamics", formalism="zaremba", sequence="paper")
