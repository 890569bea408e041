"""Closed loops and contacts in motion: assembly, drift, feedback, reactions, batches."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from motions import double_pendulum, free_body
from oracles import pinocchio_of
from scipy.integrate import solve_ivp

import drevo
from drevo.constraint import prepared
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.constraint.dynamics import constrained_dynamics
from drevo.robot.face import Robot
from drevo.robots import four_bar, stewart, two_arm
from drevo.simulate import Control, Table, motion, simulate

Array = Any
POSITION, RATE, ENERGY = 1e-10, 1e-9, 1e-6  # m or rad, per second, of the largest kinetic energy
FREEDOMS = {"four-bar": 1, "stewart": 6, "two-arm": 6}
END = (0.0, 0.0, -1.0)  # of the lower rod of the double pendulum
SHIPPED: dict[str, Callable[[], Robot]] = {"four-bar": four_bar, "stewart": stewart, "two-arm": two_arm}


def test_states_are_put_on_loops_by_machine_code_as_on_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few times on arrays, then by machine code: the same to the rounding of Newton's last step."""
    monkeypatch.setattr(prepared, "CLOSINGS_ON_ARRAYS", 1)
    robot, rng = four_bar(), np.random.default_rng(1)
    at, given = (
        robot.assemble(robot.neutral()),
        {"contacts": [{"link": robot.link_names[-1], "point": (0.1, 0, 0)}]},
    )
    hold(robot, at, np.zeros(robot.nv), **given)  # contacts are where q has them, beside the loop
    for lead in ((), (3,)):
        q = robot.integrate(at, 1e-2 * rng.normal(size=(*lead, robot.nv)))
        v, fresh = rng.normal(size=(*lead, robot.nv)), Robot(robot.model)
        for x, y in (*zip(hold(fresh, q, v, **given), hold(robot, q, v, **given)),
                     (Robot(robot.model).assemble(q, **given), robot.assemble(q, **given))):  # fmt: skip
            np.testing.assert_allclose(x, y, rtol=0.0, atol=1e-11)


def sprung(robot: Robot, k: float = 1000.0) -> tuple[Control, Callable[[Array], Array]]:
    """Springs on every joint that is not free, and their energy."""
    hinges = [(i, j) for i, j in _places(robot) if j is not None]

    def law(t: Any, q: Any, v: Any) -> list[Any]:
        efforts = [0.0] * robot.nv
        for i, j in hinges:
            efforts[j] = -k * q[i]
        return efforts

    return Control(law), lambda q: 0.5 * k * sum(q[..., i] ** 2 for i, _ in hinges)


def _places(robot: Robot) -> list[tuple[int, int]]:
    out, iq, iv = [], 0, 0
    for j in robot.model.moving_joints:
        if j.kind != "free":
            out += [(iq + n, iv + n) for n in range(j.nv)]
        iq, iv = iq + j.nq, iv + j.nv
    return out


def kicked(robot: Robot, seed: int = 0, size: float = 0.3) -> tuple[Array, Array]:
    """The closed robot with rates that keep its loops."""
    v = size * np.random.default_rng(seed).normal(size=robot.nv)
    return hold(robot, robot.neutral(), v)


# -- assembled --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots_are_closed_where_they_are_neutral(name: str) -> None:
    robot = SHIPPED[name]()
    q, v = robot.neutral(), np.zeros(robot.nv)
    got = constrained_dynamics(robot, q, v, v)
    assert np.abs(got.value).max() <= 4e-16
    assert robot.nv - got.rank == FREEDOMS[name]
    assert drevo.load(name).model == robot.model


@pytest.mark.parametrize("name", SHIPPED)
def test_accelerations_of_shipped_robots_against_pinocchio(name: str) -> None:
    """Its own loop constraints between joints, in states that keep them."""
    robot = SHIPPED[name]()
    (q, v), tau = kicked(robot, 1, 1.0), 0.1 * np.arange(robot.nv)
    p = pinocchio_of(robot.model)
    held, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in robot.model.loops:
        kind = pin.ContactType.CONTACT_6D if loop.kind == "weld" else pin.ContactType.CONTACT_3D
        ends = []
        for link, at in ((loop.link_a, loop.point_a), (loop.link_b, loop.point_b)):
            frame = p.model.frames[p.model.getFrameId(link)]
            ends += [frame.parentJoint, frame.placement * pin.SE3(np.eye(3), np.array(at))]
        held.append(pin.RigidConstraintModel(kind, p.model, *ends, pin.LOCAL))
        data.append(held[len(held) - 1].createData())
    pin.initConstraintDynamics(p.model, p.data, held, data)
    settings, effort = pin.ProximalSettings(1e-12, 1e-12, 200), np.linalg.solve(p.G.T, tau)
    a = pin.constraintDynamics(p.model, p.data, p.configuration(q), p.G @ v, effort, held, data, settings)
    mine = constrained_dynamics(robot, q, v, tau).a
    assert np.abs(p.G.T @ a - mine).max() <= 1e-10 * np.abs(mine).max()


def test_a_four_bar_is_assembled_for_every_crank_angle() -> None:
    """The crank stays where it was put; the others meet, whichever way they bend."""
    robot = four_bar()
    q = np.zeros((24, 3))
    q[:, 0] = np.linspace(-np.pi, np.pi, 24)
    closed = robot.assemble(q, keep=["crank_joint"])
    assert np.array_equal(closed[:, 0], q[:, 0])
    ends = [tip(robot, closed, *x) for x in (("coupler", (0.5, 0.0, 0.3)), ("rocker", (-0.1, 0.0, 0.5)))]
    assert np.abs(ends[0] - ends[1]).max() <= 1e-12


def tip(robot: Robot, q: Array, link: str, point: Array) -> Array:
    pose = robot.pose(q, link)
    return pose[..., :3, :3] @ np.array(point) + pose[..., :3, 3]


def test_a_platform_is_assembled_around_its_pose() -> None:
    """Legs that reach the platform where it was put: their lengths are the distances."""
    robot = stewart()
    q = robot.neutral()
    q[:3] = 0.1, -0.05, 0.12
    q[3:7] = np.array([0.1, -0.07, 0.2, 1.0]) / np.linalg.norm([0.1, -0.07, 0.2, 1.0])
    q = robot.assemble(q, keep=["platform_joint"])
    for k, loop in enumerate(robot.model.loops):
        foot = np.array(next(j for j in robot.model.joints if j.child == f"leg{k + 1}_lower").origin)
        first = next(j for j in robot.model.joints if j.child == f"leg{k + 1}_upper").origin[2]
        head = tip(robot, q, "platform", loop.point_b)
        assert first + q[7 + 3 * k + 2] == pytest.approx(np.linalg.norm(head - foot), abs=1e-12)


def test_what_cannot_be_assembled() -> None:
    rope = constraint.distance("crank", (0.0, 0.0, 0.2), "world", (0.0, 0.0, 0.0), 0.3)
    with pytest.raises(drevo.NumericsError, match=r"cannot be assembled from here.*distance\(crank, world\)"):
        four_bar().assemble([0.1, 0.0, 0.0], constraints=[rope])
    with pytest.raises(drevo.InputError, match="keep: 'crank' is no moving joint"):
        four_bar().assemble([0.1, 0.0, 0.0], keep=["crank"])


# -- drift ------------------------------------------------------------------------------------------------


def drift_of(name: str, seconds: float, method: str, step: float) -> tuple[Table, float]:
    """A motion of a shipped robot, and how far its energy went of the largest kinetic energy."""
    robot = SHIPPED[name]()
    if name == "four-bar":
        table = simulate(robot, robot.neutral(), duration=seconds, dt=step, every=10, method=method)
        stored: Any = 0.0
    else:
        law, energy = sprung(robot)
        table = simulate(robot, *kicked(robot), law, duration=seconds, dt=step, every=10, method=method)
        stored = energy(table.q)
    total = table.energy + stored
    return table, float(np.abs(total - total[0]).max() / robot.kinetic_energy(table.q, table.v).max())


@pytest.mark.parametrize("seconds", [2.0, pytest.param(100.0, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SHIPPED)
def test_drift(name: str, seconds: float) -> None:
    """No drift at any length: the motion is put back on its loops after each step."""
    table, energy = drift_of(name, seconds, "rk4" if name == "four-bar" else "gauss4", 1e-3)
    assert table.constraint_drift <= POSITION
    assert table.constraint_rate_drift <= RATE
    assert energy <= ENERGY


@pytest.mark.parametrize(("method", "order", "h"), [("rk4", 4, 5e-3), ("gauss4", 4, 5e-3), ("gauss6", 6, 1e-2)])
def test_projection_keeps_the_order(method: str, order: int, h: float) -> None:
    """Or exceeds it: what is put right is of the size of a step's error."""
    robot = four_bar()

    def end(**given: Any) -> Array:
        return simulate(robot, np.zeros(3), duration=0.8, every=1000, **given).q[-1]

    exact = end(method="dop853", rtol=1e-12)
    errors = [np.abs(end(method=method, dt=x) - exact).max() for x in (h, h / 2)]
    assert np.log2(errors[0] / errors[1]) >= order - 0.25, errors


def test_a_weld_does_not_close_the_wrong_way_round() -> None:
    """From nearly half a turn away the box comes back, and is not taken for closed there."""
    robot = two_arm()
    q = robot.neutral()
    q[15:19] = np.array([0.999, 0.0, 0.01, 0.045]) / np.linalg.norm([0.999, 0.0, 0.01, 0.045])
    arms = [j.name for j in robot.model.moving_joints if j.kind != "free"]
    closed = robot.assemble(q, keep=arms)
    assert np.abs(robot.difference(robot.neutral(), closed)).max() <= 1e-11


def test_a_four_bar_is_a_pendulum_of_one_coordinate() -> None:
    """m(x) x'' + m'(x) x'^2 / 2 + U'(x) = 0 of the crank, its links placed by the meeting of two circles."""
    D, C, masses = np.array([0.6, 0.0]), np.array([0.5, 0.3]), (1.0, 2.0, 2.0)
    b, c, g = np.hypot(*C), np.hypot(0.1, 0.5), 9.81

    def ends(x: Any) -> tuple[Array, Array]:
        """Crank tip and meeting point; x is the angle about +y from the z axis."""
        B = np.array([0.2 * np.sin(x), 0.2 * np.cos(x)])
        r = D - B
        square = r @ r
        along = (b * b - c * c + square) / (2 * square)
        height = np.sqrt(b * b / square - along * along)
        return B, B + along * r + height * np.array([-r[1], r[0]])

    def rods(x: Any) -> list[tuple[Any, Any, Any]]:
        B, E = ends(x)
        zero = 0.0 * B
        return [(m, p, q) for m, (p, q) in zip(masses, ((zero, B), (B, E), (D + zero, E)))]

    def inertia(x: float) -> Any:
        """Of a rod whose ends have the speeds s and e: m (s.s + s.e + e.e) / 3."""
        h, total = 1e-30, 0.0
        for m, p, q in rods(x + 1j * h):
            s, e = p.imag / h, q.imag / h
            total = total + m * (s @ s + s @ e + e @ e) / 3
        return total

    def potential(x: Any) -> Any:
        return sum(m * g * (p[1] + q[1]) / 2 for m, p, q in rods(x))

    def rates(t: float, y: Array) -> Array:
        h = 1e-6
        m, slope = inertia(y[0]), (inertia(y[0] + h) - inertia(y[0] - h)) / (2 * h)
        return np.array([y[1], -(slope * y[1] ** 2 / 2 + potential(y[0] + 1e-30j).imag / 1e-30) / m])

    times = np.linspace(0.0, 1.0, 11)
    want = solve_ivp(rates, (0.0, 1.0), [0.0, 0.0], "DOP853", times, rtol=1e-10, atol=1e-10).y[0]
    table = simulate(four_bar(), np.zeros(3), duration=1.0, dt=0.1, method="dop853", rtol=1e-10)
    assert np.abs(table.q[:, 0]).max() > 1.0
    assert np.abs(table.q[:, 0] - want).max() <= 1e-7  # differences of the inertia with step 1e-6


# -- machine code against Python ----------------------------------------------------------------------------


def in_python(law: Control) -> Any:
    return lambda t, q, v: np.array([np.broadcast_to(x, v.shape[:-1]) for x in law(t, q.T, v.T)], float).T


@pytest.mark.parametrize("stabilise", [None, (40.0, 400.0)])
@pytest.mark.parametrize(
    ("name", "method"),
    [("four-bar", "rk4"), ("four-bar", "gauss4"), ("four-bar", "dop853"), ("stewart", "rk4"), ("two-arm", "rk4")],
)
def test_compiled_equals_least_norm(name: str, method: str, stabilise: Any) -> None:
    """A law that is compiled takes independent rows and LDL^T; one of Python's takes all, and an SVD."""
    robot = SHIPPED[name]()
    law, _ = sprung(robot)
    q0, v0 = kicked(robot)
    ends = []
    for tau in (law, in_python(law)):
        given = {"duration": 0.03, "dt": 5e-3, "method": method, "stabilise": stabilise, "rtol": 1e-11}
        ends.append(simulate(robot, q0, v0, tau, **given))
    for a, b in ((x.q[-1], y.q[-1]) for x, y in [ends]):
        assert np.abs(a - b).max() <= 1e-9
    scale = np.abs(ends[1].reactions).max()
    assert np.abs(ends[0].reactions - ends[1].reactions).max() <= 1e-7 * scale


def test_a_batch_is_its_rows() -> None:
    """Also of contacts, each held where its own point was, and of rows that depend on each other."""
    robot = free_body("box", gravity=(0.0, 0.0, -9.81))
    q0 = robot.random(np.random.default_rng(0), (2, 5))
    for rows in (3, 6):
        contacts = [{"link": "body", "point": (0.3, 0.1, 0.2), "rows": rows}] * 2
        table = simulate(robot, q0, duration=0.2, every=100, contacts=contacts)
        assert table.constraint_drift <= 1e-14
        alone = simulate(robot, q0[1, 4], duration=0.2, every=100, contacts=contacts)
        assert np.abs(alone.q - table.q[:, 1, 4]).max() <= 1e-13
        assert np.abs(alone.reactions - table.reactions[:, 1, 4]).max() <= 1e-10
        assert alone.reactions.shape == (3, 2 * rows)
        given = {"duration": 0.02, "dt": 5e-3, "contacts": contacts}
        by_python = simulate(robot, q0, tau=lambda t, q, v: np.zeros(v.shape), **given)
        assert np.abs(by_python.q - simulate(robot, q0, **given).q).max() <= 1e-12
    held = simulate(robot, q0, duration=0.2, contacts=contacts)
    assert np.abs(held.q[-1] - q0).max() <= 1e-14  # six rows hold everything


@pytest.mark.parametrize("given", [{}, {"stabilise": (20.0, 100.0)}, {"tau": lambda t, q, v: -v}])
def test_an_empty_batch_stays_empty(given: dict[str, Any]) -> None:
    robot = four_bar()
    table = simulate(robot, np.zeros((0, robot.nq)), duration=0.01, **given)
    assert table.q.shape == (11, 0, 3) and table.reactions.shape == (11, 0, 3)
    assert table.energy_drift == table.constraint_drift == 0.0
    q = np.zeros((0, robot.nq))
    touch = [{"link": robot.link_names[-1], "point": (0.1, 0.0, 0.0), "rows": 6}]
    assert hold(robot, q, q)[1].shape == hold(robot, q, q, contacts=touch)[1].shape == (0, robot.nv)


def test_a_pendulum_held_by_a_contact() -> None:
    """A free body whose corner is held in place is a pendulum: the contact keeps, and so does the energy."""
    robot = free_body("hanging", gravity=(0.0, 0.0, -9.81))
    q0, contacts = robot.neutral(), [{"link": "body", "point": (0.3, 0.2, 0.4), "rows": 3}]
    for method, step in (("rk4", 2e-3), ("dop853", 0.1)):
        table = simulate(robot, q0, duration=0.5, dt=step, method=method, contacts=contacts, rtol=1e-9)
        assert table.constraint_drift <= POSITION
        assert table.energy_drift <= 1e-6
        assert np.abs(table.q[-1] - q0).max() > 0.05


# -- constraints of time ------------------------------------------------------------------------------------


def circling(pose: Any, q: Any, t: Any) -> list[Any]:
    """The tip of the lower rod on a circle of 0.3 m about (0.9, -1.0), twice in a second."""
    T, angle = pose("lower"), 12.0 * t
    x, z = T[0][3] - T[0][2], T[2][3] - T[2][2]
    return [x - 0.9 - 0.3 * drevo.cos(angle), z + 1.0 - 0.3 * drevo.sin(angle)]


def rising(t: Any) -> Any:
    return [[1.0, 0.0, 0.0, 0.2 * t], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5 * t * t], [0.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize("method", ["rk4", "gauss6", "dop853"])
def test_driven_by_time(method: str) -> None:
    """Rows that leave no freedom: the motion is the programme, and gravity's work is the drives'."""
    robot = double_pendulum()
    follow = [constraint.function(circling, 2)]
    q0, v0 = hold(robot, robot.assemble([-0.5, -0.9], constraints=follow), [0.0, 0.0], constraints=follow)
    table = simulate(robot, q0, v0, duration=0.5, dt=2e-3, method=method, constraints=follow)
    end = tip(robot, table.q, "lower", END)
    angle = 12.0 * table.t
    want = np.stack([0.9 + 0.3 * np.cos(angle), 0.0 * angle, -1.0 + 0.3 * np.sin(angle)], -1)
    assert np.abs(end - want).max() <= 1e-12
    assert table.constraint_rate_drift <= RATE


def test_pose_tracking_of_a_box() -> None:
    robot = free_body("lifted", gravity=(0.0, 0.0, -9.81))
    track = [constraint.pose_tracking("body", rising)]
    q0, v0 = hold(robot, robot.neutral(), np.zeros(6), constraints=track)
    table = simulate(robot, q0, v0, duration=1.0, dt=5e-3, constraints=track)
    assert np.abs(table.q[-1, :3] - [0.2, 0.0, 0.5]).max() <= 1e-12
    assert table.reactions[-1, 2] == pytest.approx(1.5 * (9.81 + 1.0), abs=1e-9)


# -- feedback ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
def test_baumgarte_closes_a_gap_as_its_equation_says(compiled: bool) -> None:
    """f'' + 2 k f' + k^2 f = 0 from a gap at rest: f = f0 (1 + k t) exp(-k t)."""
    robot, k = double_pendulum(), 20.0
    shelf = [constraint.point_on_plane("lower", END, normal=(0.0, 0.0, 1.0), offset=-1.5)]
    tau = None if compiled else lambda t, q, v: np.zeros(2)
    q0 = robot.assemble([0.4, 0.9], constraints=shelf)
    q0[0] += 0.01
    table = simulate(robot, q0, tau=tau, duration=0.3, dt=2e-3, constraints=shelf, stabilise=(2 * k, k * k))
    f = table.gaps[0][:, 0]
    assert abs(f[0]) > 1e-3
    assert np.abs(f - f[0] * (1.0 + k * table.t) * np.exp(-k * table.t)).max() <= 1e-7 * abs(f[0])


@pytest.mark.parametrize("gains", [None, (20.0, 100.0)])
def test_numbers_are_inputs_of_a_motion(gains: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other points, zeros among them, normals, offsets and gains compile nothing, and each motion is that of the
    engine in Python."""
    robot, still = double_pendulum(), lambda t, q, v: np.zeros(2)
    made, make = [], motion.machine_code
    monkeypatch.setattr(motion, "machine_code", lambda *x: made.append(x) or make(*x))
    for k, (point, normal, offset) in enumerate(
        [(END, (0.0, 0.0, 1.0), -1.5), ((0.1, 0.0, -0.9), (0.3, 0.2, 1.0), -1.4), (END, (0.0, 0.0, 2.0), -3.1)]
    ):
        shelf = [constraint.point_on_plane("lower", point, normal, offset=offset, offset_acceleration=0.1 * k)]
        q0 = robot.assemble([0.4, 0.9], constraints=shelf)
        q0[0] += 0.01 if gains else 0.0
        fed = gains and {"stabilise": (gains[0] + k, gains[1] - k)}
        given: dict[str, Any] = {"duration": 0.02, "constraints": shelf, **(fed or {})}
        table, python = simulate(robot, q0, **given), simulate(robot, q0, tau=still, **given)
        assert np.abs(table.q - python.q).max() <= 1e-12 and np.abs(table.v - python.v).max() <= 1e-11  # of CLOSED
    assert len(made) == 1


# -- what the table tells -----------------------------------------------------------------------------------


def test_grips_carry_the_box() -> None:
    """The two welds give the box its momentum: force = m (a - g), by differences of its momentum."""
    robot = two_arm()
    law, _ = sprung(robot, 50.0)
    table = simulate(robot, *kicked(robot), law, duration=0.05, dt=2e-4, method="gauss4")
    assert table.rows[:6] == tuple(f"weld(left_hand, box)[{k}]" for k in range(6))
    pose = robot.pose(table.q, "box")
    momentum = 3.0 * robot.velocity(table.q, table.v, "box")[:, :3]
    force = -table.reactions[:, 0:3] - table.reactions[:, 6:9]  # rows are hand less box: N acts on the hand
    rate = (momentum[2:] - momentum[:-2]) / 4e-4
    assert np.abs(rate - force[1:-1] - [0.0, 0.0, -3.0 * 9.81]).max() <= 1e-4 * np.abs(force).max()
    assert np.abs(pose[-1, :3, 3] - pose[0, :3, 3]).max() > 1e-3


def test_between_records_and_on_disk(tmp_path: Path) -> None:
    robot = four_bar()
    table = simulate(robot, np.zeros(3), duration=0.5, dt=1e-3, every=100)
    q, v = table.at(0.2345)
    assert np.abs(constrained_dynamics(robot, q, v, np.zeros(3)).value).max() <= 1e-14
    exact = simulate(robot, np.zeros(3), duration=0.2345, method="dop853", rtol=1e-12)
    assert np.abs(q - exact.q[-1]).max() <= 1e-8
    table.save(tmp_path / "m.csv")
    assert 'N:point_to_point(coupler, rocker)[2]"' in (tmp_path / "m.csv").read_text().splitlines()[0]
    table.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        assert np.array_equal(file["reactions"], table.reactions)
    again = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert np.array_equal(again.reactions, table.reactions)


def test_efforts_by_step_are_held() -> None:
    """Compiled under constraints too: the same as a law of time that is constant over each step."""
    robot, rng = four_bar(), np.random.default_rng(4)
    tau = rng.normal(size=(50, 3))
    held = simulate(robot, np.zeros(3), tau=tau, duration=0.05)
    assert held.constraint_drift <= POSITION
    half = simulate(robot, np.zeros(3), tau=tau[:25], duration=0.025)
    assert np.array_equal(half.q, held.q[:26])
    k = 30
    at = constrained_dynamics(robot, held.q[k], held.v[k], tau[k])
    assert np.abs(at.reactions - held.reactions[k]).max() <= 1e-9


# -- refusals ---------------------------------------------------------------------------------------------


def test_a_motion_begins_on_its_constraints() -> None:
    robot = double_pendulum()
    shelf = constraint.point_on_plane("lower", END, normal=(0.0, 0.0, 1.0), offset=-1.5)
    with pytest.raises(drevo.InputError, match=r"q0 is .* away from point_on_plane\(lower\)\[0\];.*assemble"):
        simulate(robot, [0.1, 0.1], duration=0.1, constraints=[shelf])
    q0 = robot.assemble([0.4, 0.9], constraints=[shelf])
    with pytest.raises(drevo.InputError, match=r"v0 is .* away from .* in row 1;.*hold"):
        simulate(robot, [q0, q0], [[0.0, 0.0], [0.0, 1.0]], duration=0.1, constraints=[shelf])


def test_contradictions_are_named() -> None:
    robot = double_pendulum()
    shelves = [constraint.point_on_plane("lower", END, normal=(0.0, 0.0, 1.0), offset=x) for x in (-1.5, -1.6)]
    with pytest.raises(drevo.NumericsError, match=r"contradict each other: no motion meets .* by 0\.05 m"):
        simulate(robot, [0.4, 0.9], duration=0.1, constraints=shelves)


@pytest.mark.parametrize("method", ["rk4", "gauss4", "dop853"])
def test_the_end_of_what_constraints_allow(method: str) -> None:
    """A plane that pulls the tip of an arm out: at full stretch, after 2 s, no motion follows it."""
    robot = double_pendulum()
    pull = [constraint.point_on_plane("lower", END, normal=(0, 0, -1), offset=1.5, offset_rate=0.25)]
    q0, v0 = hold(robot, robot.assemble([0.4, 0.9], constraints=pull), [0.0, 0.0], constraints=pull)
    told = r"at t = (1\.99\d*|2|2\.00\d*) s the constraints .*plane\(lower\)\[0\]"
    with pytest.raises(drevo.NumericsError, match=told):
        simulate(robot, q0, v0, duration=3.0, method=method, constraints=pull)


def test_rank_lost_in_flight() -> None:
    """Two arms fall alike until both are straight, where no hand can move along them."""
    robot = two_arm()
    told = r"at t = 0\.[0-9]+ s the constraints lose rank: weld\(left_hand, box\)\[\d\] has lost"
    with pytest.raises(drevo.NumericsError, match=told):
        simulate(robot, robot.neutral(), duration=1.0, method="dop853", rtol=1e-10)


def test_rank_gained_in_flight() -> None:
    """A row that follows from another, or from none, at the start, to the third order, and then no longer."""
    robot = double_pendulum()
    alone = [constraint.function(lambda pose, q, t: [q[0] * q[0] * q[0]], 1)]
    with pytest.raises(drevo.NumericsError, match=r"constraints gain rank: function\(<lambda>\)\[0\] .* off by"):
        simulate(robot, [0.0, 0.0], [1.0, 0.0], duration=1.0, constraints=alone)
    still = np.zeros((12, 2))
    with pytest.raises(drevo.NumericsError, match=r"in row 9 of the batch the constraints gain rank"):
        simulate(robot, still, np.eye(12)[:, [9, 0]] * [1.0, 0.0], duration=1.0, constraints=alone)
    rows = [
        constraint.function(lambda pose, q, t: [q[1]], 1),
        constraint.function(lambda pose, q, t: [q[1] + q[0] * q[0] * q[0]], 1),
    ]
    with pytest.raises(drevo.NumericsError, match=r"constraints gain rank: function\(<lambda>\)#2\[0\] .* off by"):
        simulate(robot, [0.0, 0.0], [1.0, 0.0], duration=1.0, constraints=rows)


def test_gains_are_checked() -> None:
    robot = four_bar()
    two = [1.0, 2.0, 3.0]
    for gains in ((1.0, -1.0), (0.0, 1.0), (1.0, 0.0), (two, [1.0, 0.0, 1.0])):  # one rule, whoever is asked
        for ask in (
            lambda given: simulate(robot, np.zeros(3), duration=0.1, stabilise=given),
            lambda given: robot.constrained_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), stabilise=given),
        ):
            with pytest.raises(
                drevo.InputError, match=r"has the pole .* which does not decay; take both positive"
            ):
                ask(gains)
    with pytest.raises(drevo.InputError, match="one for each of the 3 rows"):
        simulate(robot, np.zeros(3), duration=0.1, stabilise=([1.0, 2.0], 1.0))
    with pytest.raises(drevo.InputError, match="no contacts"):
        simulate(double_pendulum(), np.zeros(2), duration=0.1, stabilise=(1.0, 1.0))


def test_command() -> None:
    from typer.testing import CliRunner

    from drevo.cli.main import app

    run = CliRunner().invoke(app, ["simulate", "four-bar", "--duration", "0.2"])
    assert run.exit_code == 0, run.output
    assert "constraints" in run.output
