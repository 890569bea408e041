"""Signorini's and Coulomb's laws: blocks, sweeps, Newton's method, and motions that are known in closed form."""

from __future__ import annotations

import json
import math
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coulomb_cases import GROUND, on_plane, problem_of, touching_robot
from coulomb_on_arrays import StepResult, step, step_problem

import drevo
from drevo.contact.laws.exact.problem import TouchingRobot
from drevo.contact.laws.exact.solve import RESIDUAL_TOLERANCE, _followed, impulses, path_of
from drevo.mechanics.algorithms.boxes import Proximity
from drevo.mechanics.algorithms.coulomb import ContactBlock, ImpulseProblem, JointLaw, onto_cone, residual
from drevo.mechanics.algorithms.coulomb_interior import impulses_at
from drevo.mechanics.algorithms.coulomb_newton import (
    CARRIED_DAMPING,
    LEAST_DELTA,
    block_slopes,
    carried_step,
    carrier_factors,
    few_carriers,
    largest_speed,
    linearised,
)
from drevo.mechanics.algorithms.delassus import ContactSlot, MoreauStep
from drevo.mechanics.spatial import UNIT_VECS, Mat, Vec
from drevo.mechanics.tree import build_tree

Array = np.ndarray[Any, Any]
HARD = json.loads((Path(__file__).parent / "data" / "coulomb.json").read_text())
G = 9.81


def symmetric(lower: list[list[float]]) -> Array:
    n = len(lower)
    return np.array([[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)])


def stacked(cases: list[dict[str, Any]]) -> tuple[Array, Array, Array]:
    return (
        np.array([symmetric(c["G"]) for c in cases]),
        np.array([c["b"] for c in cases]),
        np.array([c["mu"] for c in cases]),
    )


# -- problems -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", HARD)
def test_impulses_of_known_problems(robot: str) -> None:
    """Made by another implementation, by sweeps; the impulses of a foot's several points are not unique."""
    cases = HARD[robot]
    delassus, b, mu = stacked(cases)
    found = impulses(problem_of(delassus, b, mu), tolerance=1e-12, first=1500 if robot == "talos" else 8)
    assert found.residual.max() <= 1e-12
    u = np.einsum("kij,jk->ki", delassus, found.lam) + b
    assert np.abs(u - [c["u"] for c in cases]).max() < 1e-9
    if robot != "talos":
        assert np.abs(found.lam.T - [c["lam"] for c in cases]).max() < 1e-9
    assert found.steps.max() <= 1


def random_blocks(count: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(count, 3, 4))
    return A @ A.transpose(0, 2, 1), rng.normal(size=(count, 3)), rng.uniform(0.0, 3.0, count)


def test_a_block_alone_is_solved_exactly_where_friction_jams_too() -> None:
    delassus, w, mu = random_blocks(500, 1)
    p = problem_of(delassus, w, mu[:, None])
    block, y = ContactBlock.of(p.G, 0), np.full(500, 0.5)
    for _ in range(8):
        lam, y = block.impulse(p.b, p.laws[0], y)
    jammed = mu * np.hypot(delassus[:, 0, 1], delassus[:, 0, 2]) > delassus[:, 0, 0]
    assert jammed.sum() > 50
    size = np.abs(lam).max(0) * np.trace(delassus, axis1=1, axis2=2)
    assert (residual(p, lam) / (1.0 + size)).max() < 1e-14


def test_a_block_of_a_plane_motion_has_a_tangent_without_inertia() -> None:
    """The third row and column are zeros, as of a robot in a plane."""
    A = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 0.0]])
    p = problem_of(A[None], np.array([[-1.0, 2.0, 0.0]]), np.array([[0.5]]))
    found = impulses(p, tolerance=1e-13)
    assert found.residual[0] < 1e-13 and found.lam[2, 0] == 0.0
    n, t = found.lam[:2, 0]
    assert math.isclose(t, -0.5 * n) and math.isclose(2.0 * n + 0.3 * t, 1.0)


def test_the_projection_is_the_nearest_point_of_the_cone() -> None:
    rng = np.random.default_rng(2)
    x, mu = rng.normal(size=(3, 300)), rng.uniform(0.1, 2.0, 300)
    p = np.array(onto_cone(x, mu))
    away = x - p  # normal to the cone: in its polar, and at right angles to p
    assert np.abs((away * p).sum(0)).max() < 1e-14
    assert (np.hypot(p[1], p[2]) - mu * p[0]).max() < 1e-14
    assert (mu * np.hypot(away[1], away[2]) + away[0]).max() < 1e-14


@pytest.mark.parametrize(
    ("w", "law", "u"),
    [
        (2.0, JointLaw(0, 0.0, upper=1.5), 1.5),
        (2.0, JointLaw(0, 0.25), 1.0),  # G = 4: friction takes 1 of it
        (0.5, JointLaw(0, 0.25), 0.0),
        (-3.0, JointLaw(0, 0.25, -0.5), -0.5),
        (-0.2, JointLaw(0, 0.25, 0.1), 0.1),
    ],
)
def test_bounds_and_dry_friction_of_a_joint(w: float, law: JointLaw, u: float) -> None:
    p = ImpulseProblem([[4.0]], [w], [law])
    found = impulses(p)
    assert found.residual[0] < 1e-15 and math.isclose(w + 4.0 * found.lam[0, 0], u, abs_tol=1e-15)


def test_painleve_rod() -> None:
    """A rod of half-length 1 m at atan 1.2 slides at 1 m/s into the jam, mu = 2: it stops by an impulse along the
    ground, though it was only touching; the other way, and with mu = 1, it slides on."""
    x, z = math.cos(math.atan(1.2)), math.sin(math.atan(1.2))
    over = 3.0  # 1 / I
    A = np.array(
        [[1.0 + over * x * x, over * x * z, 0.0], [over * x * z, 1.0 + over * z * z, 0.0], [0.0, 0.0, 1.0]]
    )
    towards, away = [-G * 1e-3, 1.0, 0.0], [-G * 1e-3, -1.0, 0.0]
    p = problem_of(np.array([A] * 4), np.array([towards, away] * 2), np.array([[2.0], [2.0], [1.0], [1.0]]))
    found = impulses(p, tolerance=1e-13)
    assert A[0, 0] - 2.0 * A[0, 1] < -0.7 and found.residual.max() < 1e-13
    u = np.einsum("ij,jk->ki", A, found.lam) + np.array([towards, away] * 2)
    assert np.allclose(found.lam[:2, 0], [0.375647, -0.560995], atol=1e-6) and np.abs(u[0]).max() < 1e-13
    assert np.allclose(found.lam[:2, 1], [0.001894, 0.003787], atol=1e-6) and np.isclose(
        u[1, 1], -0.986713, atol=1e-6
    )
    assert (np.abs(u[2:, 1]) > 0.9).all() and np.abs(u[1:, 0]).max() < 1e-13


def test_impulses_take_energy_away() -> None:
    """lam . (u + u before) / 2 <= 0 of problems without gaps."""
    for robot in HARD:
        delassus, b, mu = stacked(HARD[robot])
        found = impulses(problem_of(delassus, b, mu))
        after = np.einsum("kij,jk->ki", delassus, found.lam) + b
        assert (np.einsum("jk,kj->k", found.lam, after + b) <= 1e-9).all()


# -- motions --------------------------------------------------------------------------------------------------


def block(gravity: tuple[float, float, float], **joint: Any) -> drevo.Robot:
    """A mass that slides along x and z, without turning."""
    b = drevo.Builder("block", gravity=gravity)
    b.body("carrier", joint="prismatic", axis=(1.0, 0.0, 0.0), **joint)
    return b.body("block", "carrier", "prismatic", axis=(0.0, 0.0, 1.0), mass=1.0).robot()


def ball(**about: Any) -> drevo.Robot:
    tensor = np.eye(3) * 0.4 * 0.1**2
    return drevo.Builder("ball").body("ball", joint="free", mass=1.0, inertia=tensor, **about).robot()


def resting(robot: drevo.Robot, mu: float, radius: float, stepping: MoreauStep) -> TouchingRobot:
    """Its last link touches the ground by a sphere about its origin."""
    tree = build_tree(robot.model)
    return touching_robot(
        robot.model, [on_plane(tree, robot.model.links[-1].name, (0.0, 0.0, 0.0), mu, radius)], stepping
    )


def moved(
    m: TouchingRobot, q: list[float], v: list[float], steps: int, tolerance: float = RESIDUAL_TOLERANCE
) -> list[StepResult]:
    """All steps of a motion."""
    x, u, out = np.array([q]), np.array([v]), list[StepResult]()
    for _ in range(steps):
        out.append(step(m, x, u, np.zeros_like(u), tolerance))
        x, u = out[-1].q, out[-1].v
    assert max(s.residual.max() for s in out) <= tolerance
    return out


@pytest.mark.parametrize(("excess", "speed"), [(-1e-9, 8.774330595e-10), (1e-9, 0.0), (-0.2, 0.17548661487418352)])
def test_a_block_slides_at_exactly_the_tangent(excess: float, speed: float) -> None:
    """0.1 s on a slope of 1 : 2: v = g (sin - mu cos) t, or not at all."""
    a = math.atan(0.5)
    robot = block((G * math.sin(a), 0.0, -G * math.cos(a)))
    m = resting(robot, 0.5 + excess, 0.0, MoreauStep(1e-3))
    last = moved(m, [0.0, 0.0], [0.0, 0.0], 100, 1e-15)[-1]
    assert abs(last.v[0, 0] - speed) < 1e-13 and abs(last.v[0, 1]) < 1e-15
    assert math.isclose(last.forces[0, 0, 2], G * math.cos(a), rel_tol=1e-12)


def test_a_sliding_ball_begins_to_roll_at_five_sevenths() -> None:
    """v = v0 - mu g t until t = 2 v0 / (7 mu g)."""
    m = resting(ball(), 0.2, 0.1, MoreauStep(1e-3))
    path = moved(m, [0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], 160, 1e-12)
    speed, spin = (np.array([np.linalg.norm(s.v[0, part]) for s in path]) for part in (slice(3), slice(3, 6)))
    rolls = 1 + int((np.abs(speed - 0.1 * spin) < 1e-9).argmax())
    assert rolls == math.ceil(2.0 / (7.0 * 0.2 * G) * 1e3)
    assert abs(speed[-1] - 5.0 / 7.0) < 1e-11


def test_a_bouncing_ball_is_right_to_first_order() -> None:
    """Heights 0.8^2 and 0.8^4 of a fall from 1 m; the error goes with the step."""
    errors = []
    for h in (8e-3, 2e-3):
        m = resting(block((0.0, 0.0, -G)), 0.5, 0.0, MoreauStep(h, restitution=0.8))
        z = np.array([s.q[0, 1] for s in moved(m, [0.0, 1.0], [0.0, 0.0], round(1.6 / h))])
        peaks = z[1:-1][(z[1:-1] > z[:-2]) & (z[1:-1] >= z[2:])]
        errors.append(np.abs(peaks[:2] - [0.64, 0.4096]))
    assert (errors[1] < 4e-3).all() and (errors[1] < 0.4 * errors[0]).all()


def test_dry_friction_stops_a_sled_and_holds_it() -> None:
    """1 m/s against 2 N: it stops after 0.5 s and 0.25 m, and stays under a push of less."""
    m = touching_robot(block((0.0, 0.0, 0.0), friction=2.0).model, [], MoreauStep(1e-3))
    x, u = np.zeros((1, 2)), np.array([[1.0, 0.0]])
    for k in range(600):
        s = step(m, x, u, np.array([[1.9 if k > 520 else 0.0, 0.0]]))
        x, u = s.q, s.v
    assert u[0, 0] == 0.0 and abs(x[0, 0] - 0.25) < 1e-3


def test_a_limit_stops_and_bounces() -> None:
    for restitution, speed in ((0.0, 0.0), (0.5, -0.5)):
        m = touching_robot(block((0.0, 0.0, 0.0), limit=(-1.0, 0.1)).model, [], MoreauStep(1e-3, restitution))
        path = moved(m, [0.0, 0.0], [1.0, 0.0], 150)
        assert math.isclose(path[-1].v[0, 0], speed, abs_tol=1e-12)
        assert max(s.q[0, 0] for s in path) <= 0.1 + 1e-12


def test_dampers_are_implicit() -> None:
    """v+ = v / (1 + h d / m), however long the step."""
    m = touching_robot(block((0.0, 0.0, 0.0), damping=1e4).model, [], MoreauStep(1e-2))
    assert math.isclose(moved(m, [0.0, 0.0], [1.0, 0.0], 1)[0].v[0, 0], 1.0 / 101.0, rel_tol=1e-12)


def boxes(count: int, half: float) -> tuple[drevo.Robot, list[ContactSlot]]:
    """Boxes of 1 kg on top of one another, four corners an interface."""
    b = drevo.Builder("boxes")
    for k in range(count):
        b.body(f"box{k}", parent="world", joint="free", mass=1.0, inertia=np.eye(3) * (2.0 / 3.0) * half * half)
    slots = []
    for k in range(count):
        for x in (half, -half):
            for y in (half, -half):
                slots.append(
                    ContactSlot((k - 1, k), lambda poses, k=k, x=x, y=y: corner(poses, k, Vec(x, y, -half)), 0.5)
                )
    return b.robot(), slots


def corner(poses: Any, k: int, at: Vec) -> Proximity:
    """Of a box on the top of the one below, or on the ground."""
    low, x = poses[k - 1], poses[k].p + poses[k].R @ at
    n, t, o = (low.R @ e for e in (UNIT_VECS[2], UNIT_VECS[0], UNIT_VECS[1]))
    top = -at.z if k else 0.0
    return Proximity(n.dot(x - low.p) - top, x, Mat(n, t, o))


def test_three_boxes_stay_where_they_are() -> None:
    robot, slots = boxes(3, 0.1)
    m = touching_robot(robot.model, slots, MoreauStep(2e-3))
    q = np.concatenate([[0.0, 0.0, 0.1 + 0.2 * k, 0.0, 0.0, 0.0, 1.0] for k in range(3)])
    path = moved(m, list(q), [0.0] * 18, 3)
    assert np.abs(path[-1].q - q).max() < 1e-10
    weights = path[-1].forces[0, :, 2].reshape(3, 4).sum(1)
    assert np.allclose(weights, G * np.array([3.0, 2.0, 1.0]), atol=1e-5)


def test_energy_of_a_tumbling_box_never_rises() -> None:
    """Its corners hit the ground; without gravity nothing else changes its energy."""
    b = drevo.Builder("box", gravity=(0.0, 0.0, 0.0))
    robot = b.body("box", joint="free", mass=1.0, inertia=np.diag([0.002, 0.003, 0.004])).robot()
    tree = build_tree(robot.model)
    corners = [(x, y, z) for x in (0.1, -0.1) for y in (0.05, -0.05) for z in (0.05, -0.05)]
    m = touching_robot(robot.model, [on_plane(tree, "box", c, 0.4) for c in corners], MoreauStep(1e-3, pull=0.0))
    q = [0.0, 0.0, 0.16, *np.array([0.2, 0.3, 0.1, 0.9]) / np.linalg.norm([0.2, 0.3, 0.1, 0.9])]
    path = moved(m, q, [0.5, 0.2, -1.5, 3.0, -2.0, 4.0], 100)
    assert any((s.forces[0, :, 2] > 0.0).any() for s in path)
    energy = np.array([robot.kinetic_energy(s.q[0], s.v[0]) for s in path])
    free = np.abs(np.diff(energy[:5])).max()  # of a step in the air, where a body spins on
    assert (np.diff(energy) < 10.0 * free + 1e-9).all() and energy[-1] < 0.9 * energy[0]


# -- against another implementation ---------------------------------------------------------------------------


def test_the_problem_of_a_quadruped_is_that_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    robot = drevo.load("go1", base="floating")
    tree = build_tree(robot.model)
    feet = [link.name for link in robot.model.links if link.name.endswith("_foot")]
    m = touching_robot(
        robot.model, [on_plane(tree, f, (0.0, 0.0, 0.0), 0.6) for f in feet], MoreauStep(1e-3), limits=False
    )
    rng = np.random.default_rng(3)
    q, v, tau = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    free = step_problem(m, q[None], v[None], tau[None])
    model = robot.to_pinocchio()
    data = model.createData()
    M = pin.crba(model, data, q) + 1e-3 * np.diag(robot.damping)
    M = np.triu(M) + np.triu(M, 1).T
    vf = np.concatenate([np.cross(v[3:6], v[:3]) * 1e-3, np.zeros(robot.nv - 3)])  # along fixed axes
    vf += v + 1e-3 * np.linalg.solve(M, tau - robot.damping * v - pin.nonLinearEffects(model, data, q, v))
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    J = np.vstack([midway(pin, model, data, model.getFrameId(f)) for f in feet])
    gaps = np.array([float(a.dist[0]) for a in free.touches])
    shift = np.where(gaps > 0.0, gaps * 1e3, np.maximum(0.2e3 * np.minimum(gaps + 1e-4, 0.0), -1.0))
    b = J @ vf
    b[::3] += shift
    rows = np.vstack([J, np.eye(robot.nv)[6:]])  # and dry friction in every joint
    b = np.concatenate([b, vf[6:]])
    assert np.abs(np.array(free.problem.G)[..., 0] - rows @ np.linalg.solve(M, rows.T)).max() < 1e-10
    assert np.abs(np.array(free.problem.b)[..., 0] - b).max() < 1e-11 * np.abs(b).max()


@cache
def on_soles() -> tuple[ImpulseProblem, Array]:
    """Talos on the corners of both soles, in wild states, 24 rows of rank 12; mu."""
    robot = drevo.load("talos", base="floating")
    tree, rng, count = build_tree(robot.model), np.random.default_rng(4), 100
    soles = [tree.frames[f"{side}_sole_link"] for side in ("left", "right")]
    corners = [(f.body, f.p + f.R @ Vec(x, y, 0.0)) for f in soles for x in (0.1, -0.1) for y in (0.06, -0.06)]
    mu = [rng.uniform(0.3, 1.0, count) for _ in corners]
    slots = [ContactSlot((-1, at[0]), partial(closed, *at), m) for at, m in zip(corners, mu)]
    m = TouchingRobot(robot.model, tuple(slots), (), MoreauStep(1e-3))
    dq = rng.uniform(-0.3, 0.3, (count, robot.nv))
    dq[:, 3:6] *= 0.7
    tau = 20.0 * rng.normal(size=(count, robot.nv)) * (np.arange(robot.nv) > 5)
    v = rng.normal(size=(count, robot.nv))
    return step_problem(m, robot.integrate(robot.neutral(), dq), v, tau).problem, np.array(mu)


def test_feet_on_several_points_each_converge_by_newtons_method() -> None:
    """Sweeps alone leave 5 % open."""
    problem, mu = on_soles()
    found, count = impulses(problem), mu.shape[1]
    assert found.residual.max() <= RESIDUAL_TOLERANCE
    assert np.median(found.steps) <= 5
    u = np.array(problem.velocity(list(found.lam), range(24))).reshape(8, 3, count)
    lam = found.lam.reshape(8, 3, count)
    size = np.abs(lam).max()
    assert (u[:, 0] >= -2e-9).all() and (np.abs(u[:, 0] * lam[:, 0]) < 1e-8 * size).all()
    assert (np.hypot(lam[:, 1], lam[:, 2]) <= mu * lam[:, 0] + 1e-8 * size).all()


def test_a_step_in_the_freedoms_of_two_feet_is_that_of_all_rows() -> None:
    """Of (F_u (G + delta) + F_lam) x = -F; 1e-16 over the least delta, over the largest impulse, is 1e-9."""
    problem, mu = on_soles()
    p, lam = problem, impulses(problem, tolerance=0.3).lam
    assert p.carriers and len(p.carriers.S) == 12 and few_carriers(p)
    c = carrier_factors(p.carriers)
    way, du, square = carried_step(p, c, list(lam), 1.0)
    F, J = linearised(p, list(lam))
    count = mu.shape[1]
    wide = np.array([[x + np.zeros(count) for x in row] for row in J]).transpose(2, 0, 1)
    part = CARRIED_DAMPING * np.sqrt(square) / largest_speed(p) + LEAST_DELTA
    for law in p.laws:
        by_u = np.array([[x + np.zeros(count) for x in row] for row in block_slopes(p, law, list(lam))[0]])
        wide[:, law.at : law.at + 3, law.at : law.at + 3] += (part * p.trace(law) * by_u).transpose(2, 0, 1)
    wanted = np.linalg.solve(wide, -np.array(F).T[..., None])[..., 0].T
    assert np.abs(np.array(way) - wanted).max() < 1e-8 * np.abs(wanted).max()
    moved = np.einsum("ijk,jk->ik", np.array(p.G), wanted)
    assert np.abs(np.array(du) - moved).max() < 1e-8 * np.abs(moved).max()


def test_the_interior_point_alone_holds_feet_and_joints() -> None:
    """A rigid foot of four points, of random coupling, and joints with dry friction, with bounds of their
    rates and with both; what slides settles slowly, and Newton's method finishes it."""
    rng, count = np.random.default_rng(7), 60
    corners = np.array([[x, y, 0.0] for x in (0.1, -0.1) for y in (0.06, -0.06)])
    arms = np.array([np.hstack([np.eye(3)[[2, 1, 0]], np.cross(np.eye(3)[[2, 1, 0]], -r)]) for r in corners])
    foot = arms.reshape(12, 6)
    B = np.zeros((18, 12))
    B[:12, :6], B[12:, 6:] = foot, np.eye(6)
    root = rng.normal(size=(count, 12, 16))
    delassus = np.einsum("ij,kjl,kml,nm->kin", B, root, root, B)
    b, mu = rng.normal(size=(count, 18)), np.full((count, 6), 0.6)
    p = problem_of(delassus, b, mu)
    none = -math.inf
    bounds = [
        (0.02, none, math.inf),
        (0.03, -0.1, math.inf),
        (0.0, none, 0.2),
        (0.0, -0.1, 0.1),
        (0.01, -0.1, 0.1),
    ]
    joints = [JointLaw(12 + k, *x) for k, x in enumerate([*bounds, (0.05, none, math.inf)])]
    p = p._replace(laws=[*p.laws[:4], *joints])
    path, used = _followed(p, path_of(p, count), 40, RESIDUAL_TOLERANCE)
    left = residual(p, impulses_at(p, path))
    assert (left < 1e-3).all() and np.median(left) < 1e-4 and left.min() <= RESIDUAL_TOLERANCE and used.min() < 20
    assert (impulses(p).residual <= RESIDUAL_TOLERANCE).mean() > 0.95
    assert {len(x) for x in path} == {6, 3, 5, 2, 4, 7}


def closed(body: int, at: Vec, poses: Any) -> Proximity:
    """A point of a body that touches a level ground wherever it is."""
    return Proximity(0.0, poses[body].p + poses[body].R @ at, GROUND)


def midway(pin: Any, model: Any, data: Any, foot: int) -> Array:
    """Along z, y and -x, of the point of a foot's body midway between its origin and the ground below."""
    J = pin.getFrameJacobian(model, data, foot, pin.LOCAL_WORLD_ALIGNED)
    down = np.array([0.0, 0.0, -0.5 * data.oMf[foot].translation[2]])
    return np.array((J[:3] - pin.skew(down) @ J[3:])[[2, 1, 0]] * [[1.0], [1.0], [-1.0]])
