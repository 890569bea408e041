"""500 random trees of every kind of joint against Pinocchio and MuJoCo; some of them compiled."""

from __future__ import annotations

import os

import numpy as np
import oracles
import pytest
import strategies
import tolerances as tol
from reference import Reference, close, largest, robot_shown

from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.recipe import Recipe
from drevo.mechanics.configuration import integrate, random
from drevo.model.description import Model
from drevo.robot.face import Robot

TREES = int(os.environ.get("DREVO_TREES", "300"))  # 10,000 every night


def tree(seed: int) -> Model:
    """Every tenth has up to 30 joints, the others up to 8."""
    return strategies.robot(seed, n=20 + seed % 11 if seed % 10 == 9 else None)


@pytest.mark.parametrize("seed", range(TREES))
def test_random_trees(seed: int) -> None:
    """Every quantity of a random tree is what Pinocchio and MuJoCo say."""
    model = tree(seed)
    if model.nv:
        with robot_shown(model):
            _compare(model, seed)


def _compare(model: Model, seed: int) -> None:
    drevo = Reference(model)
    pinocchio, mujoco = oracles.pinocchio_of(model), oracles.mujoco_of(model)
    q, v, a = strategies.state(model, seed)
    terms = pinocchio.terms(q, v, a)
    M = pinocchio.mass_matrix(q)
    tau = pinocchio.inverse_dynamics(q, v, a)
    got = drevo.inverse_dynamics(q, v, a), drevo.mass_matrix(q)
    for name, oracle in (("pinocchio", pinocchio), ("mujoco", mujoco)):
        close(f"inverse dynamics, {name}", got[0], oracle.inverse_dynamics(q, v, a), tol.DYNAMICS, terms)
        close(f"mass matrix, {name}", got[1], oracle.mass_matrix(q), tol.DYNAMICS)
    _compare_forward(drevo, (pinocchio, mujoco), q, v, tau, M, max(largest(a), terms / np.linalg.norm(M, 2)))
    _compare_kinematics(drevo, pinocchio, mujoco, q, v, a)
    _compare_derivatives(drevo, pinocchio, mujoco, (q, v, a), terms, moves=model.nv <= 12 and seed % 5 == 0)
    _compare_scalars(drevo, pinocchio, q, v, terms)


def _compare_forward(
    drevo: Reference, oracle: tuple, q: np.ndarray, v: np.ndarray, tau: np.ndarray, M: np.ndarray, size: float
) -> None:
    """Errors of M^-1 x are relative to the largest acceleration that the terms of x could give."""
    n, cond = len(M), float(np.linalg.cond(M))
    got = drevo.forward_dynamics(q, v, tau)
    for name, x in zip(("pinocchio", "mujoco"), oracle):
        close(f"forward dynamics, {name}", got, x.forward_dynamics(q, v, tau), tol.solving(n, cond), size)
    names = ("da_dq", "da_dv", "inverse of M")
    found, wanted = (
        drevo.forward_dynamics_derivatives(q, v, tau),
        oracle[0].forward_dynamics_derivatives(q, v, tau),
    )
    for name, x, y in zip(names, found, wanted):
        close(name, x, y, tol.inverting(n, cond), largest(y) if y is wanted[2] else max(largest(y), size))


def _compare_kinematics(
    drevo: Reference,
    pinocchio: oracles.Pinocchio,
    mujoco: oracles.MuJoCo,
    q: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
) -> None:
    links = [l.name for l in drevo.model.links]
    poses = (pinocchio.poses(q), mujoco.poses(q))
    for link in links:
        X = drevo.pose(q, link=link)
        for found in poses:
            if link in found:
                close(f"pose of {link}", X, found[link], tol.KINEMATICS)
    link = links[-1]
    J = drevo.jacobian(q, link=link)
    close("jacobian, mujoco", J, mujoco.jacobian(q, link), tol.KINEMATICS, max(1.0, largest(J)))
    for frame in oracles.FRAMES:
        at = {"link": link, "frame": frame}
        J, V = drevo.jacobian(q, **at), drevo.velocity(q, v, **at)
        size = largest(v) * largest(J)
        close(f"jacobian, {frame}", J, pinocchio.jacobian(q, **at), tol.KINEMATICS, max(1.0, largest(J)))
        close(f"velocity, {frame}", V, pinocchio.velocity(q, v, **at), tol.KINEMATICS, max(1.0, size))
        for kind in ("classical", "spatial"):
            A = drevo.acceleration(q, v, a, **at, kind=kind)
            wanted = pinocchio.acceleration(q, v, a, **at, kind=kind)
            close(f"{kind} acceleration, {frame}", A, wanted, tol.ACCELERATIONS, max(1.0, largest(A), size))


def _compare_derivatives(
    drevo: Reference,
    pinocchio: oracles.Pinocchio,
    mujoco: oracles.MuJoCo,
    state: tuple,
    terms: float,
    moves: bool,
) -> None:
    dq, dv, M = drevo.inverse_dynamics_derivatives(*state)
    close("M of the derivatives", M, drevo.mass_matrix(state[0]), tol.DYNAMICS)
    for x, y, name in zip((dq, dv), pinocchio.inverse_dynamics_derivatives(*state), ("dtau_dq", "dtau_dv")):
        close(f"{name}, pinocchio", x, y, tol.DERIVATIVES, max(terms, largest(y)))
    if not moves:
        return

    def moved(q: np.ndarray, d: np.ndarray) -> np.ndarray:
        return integrate(drevo.model, q, d)

    for x, y in zip((dq, dv), mujoco.inverse_dynamics_derivatives(*state, moved)):
        close("derivatives, mujoco", x, y, tol.DIFFERENCES, max(terms, largest(y)))


def _compare_scalars(
    drevo: Reference, pinocchio: oracles.Pinocchio, q: np.ndarray, v: np.ndarray, terms: float
) -> None:
    none = np.zeros_like(v)
    close("bias", drevo.bias(q, v), pinocchio.bias(q, v), tol.DYNAMICS, pinocchio.terms(q, v, none))
    close("gravity", drevo.gravity(q), pinocchio.gravity(q), tol.DYNAMICS, pinocchio.terms(q, none, none))
    C = pinocchio.coriolis_matrix(q, v)
    close("coriolis matrix", drevo.coriolis_matrix(q, v), C, tol.DYNAMICS, max(terms, largest(C)))
    close("kinetic energy", drevo.kinetic_energy(q, v), pinocchio.kinetic_energy(q, v), tol.DYNAMICS)
    V, c, h = pinocchio.potential_energy(q), pinocchio.center_of_mass(q), pinocchio.momentum(q, v)
    weight = pinocchio.weight * max(1.0, largest(c))
    close("potential energy", drevo.potential_energy(q), V, tol.DYNAMICS, max(weight, abs(V)))
    close("centre of mass", drevo.center_of_mass(q), c, tol.DYNAMICS, max(1.0, largest(c)))
    close("momentum", drevo.momentum(q, v), h, tol.DYNAMICS)


@pytest.mark.parametrize("seed", range(3000, 3000 + (TREES // 5 if TREES > 500 else 40)))
def test_programs_as_compiled(seed: int) -> None:
    """The program that is compiled, whatever it does to frames, inertias and units, is right."""
    model = tree(seed)
    if model.nv:
        with robot_shown(model):
            _compare_programs(model, seed)


def _compare_programs(model: Model, seed: int) -> None:
    oracle = oracles.pinocchio_of(model)
    q, v, a = strategies.state(model, seed)
    tau, M, terms = oracle.inverse_dynamics(q, v, a), oracle.mass_matrix(q), oracle.terms(q, v, a)
    cond, none = float(np.linalg.cond(M)), np.zeros_like(v)
    size = max(largest(a), terms / float(np.linalg.norm(M, 2)))
    for name, expected, tolerance, scale in (
        ("inverse_dynamics", tau, tol.DYNAMICS, terms),
        ("mass_matrix", M, tol.DYNAMICS, largest(M)),
        ("forward_dynamics", a, tol.solving(len(M), cond), size),
        ("bias", oracle.bias(q, v), tol.DYNAMICS, oracle.terms(q, v, none)),
        ("gravity", oracle.gravity(q), tol.DYNAMICS, oracle.terms(q, none, none)),
    ):
        program = Recipe((name,)).program(model)
        (found,) = evaluate(program, {"q": q, "v": v, "a": a, "tau": tau}).values()
        close(f"{name}, as compiled", found, expected, tolerance, scale)


COMPILED = [strategies.robot(s, n=1 + s % 5) for s in range(1000, 1024 if TREES > 500 else 1012)]
KINDS = [strategies.all_kinds("fixed"), strategies.all_kinds("floating")]


@pytest.mark.parametrize("model", [m for m in COMPILED + KINDS if m.nv], ids=lambda m: m.name)
def test_compiled_trees(model: Model) -> None:
    """Machine code gives, for a batch of states, what Pinocchio gives for each."""
    robot, oracle, rng = Robot(model), oracles.pinocchio_of(model), np.random.default_rng(5)
    B = 11
    q = random(model, rng, (B,))
    v, a = rng.normal(size=(2, B, model.nv))
    tau, M = robot.inverse_dynamics(q, v, a), robot.mass_matrix(q)
    back = robot.forward_dynamics(q, v, tau)
    with robot_shown(model):
        for k in range(B):
            terms, X = oracle.terms(q[k], v[k], a[k]), oracle.mass_matrix(q[k])
            close("inverse dynamics", tau[k], oracle.inverse_dynamics(q[k], v[k], a[k]), tol.DYNAMICS, terms)
            close("mass matrix", M[k], X, tol.DYNAMICS)
            size = max(largest(a[k]), terms / np.linalg.norm(X, 2))
            close("forward dynamics", back[k], a[k], tol.solving(model.nv, np.linalg.cond(X)), size)


@pytest.mark.parametrize("model", [m for m in COMPILED if m.nv][:6], ids=lambda m: m.name)
def test_compiled_with_wrenches(model: Model) -> None:
    """f_ext on every link, one state or a batch: J' f less in inverse dynamics, the same in forward dynamics."""
    robot, oracle, rng = Robot(model), oracles.pinocchio_of(model), np.random.default_rng(6)
    B = 3
    q, links = random(model, rng, (B,)), [l.name for l in model.links[1:]]
    v, a = rng.normal(size=(2, B, model.nv))
    f = {link: rng.normal(size=(B, 6)) for link in links}
    tau = robot.inverse_dynamics(q, v, a, f_ext=f)
    back = robot.forward_dynamics(q, v, tau, f_ext=f)
    with robot_shown(model):
        for k in range(B):
            J = {link: oracle.jacobian(q[k], link) for link in links}
            work = sum(J[link].T @ f[link][k] for link in links)
            terms, M = oracle.terms(q[k], v[k], a[k]), oracle.mass_matrix(q[k])
            size = terms + sum(map(largest, J.values()))
            wanted = oracle.inverse_dynamics(q[k], v[k], a[k]) - work
            close("inverse dynamics with wrenches", tau[k], wanted, tol.DYNAMICS, size)
            one = robot.inverse_dynamics(q[k], v[k], a[k], f_ext={link: f[link][k] for link in links})
            assert np.array_equal(one, tau[k])
            size = max(largest(a[k]), size / float(np.linalg.norm(M, 2)))
            close("forward dynamics with wrenches", back[k], a[k], tol.solving(len(M), np.linalg.cond(M)), size)


@pytest.mark.parametrize("model", [m for m in COMPILED if 0 < m.nv <= 6][:5] + KINDS[:1], ids=lambda m: m.name)
def test_compiled_derivatives_and_kinematics(model: Model) -> None:
    """Machine code gives Pinocchio's derivatives, pose and Jacobian of the last link."""
    robot, oracle = Robot(model), oracles.pinocchio_of(model)
    q, v, a = strategies.state(model, 9)
    terms, link = oracle.terms(q, v, a), model.links[-1].name
    with robot_shown(model):
        found = robot.inverse_dynamics_derivatives(q, v, a)
        for x, y in zip(found, (*oracle.inverse_dynamics_derivatives(q, v, a), oracle.mass_matrix(q))):
            close("derivatives of inverse dynamics", x, y, tol.DERIVATIVES, max(terms, largest(y)))
        close("pose", robot.pose(q, link), oracle.pose(q, link), tol.KINEMATICS)
        J = oracle.jacobian(q, link)
        close("jacobian", robot.jacobian(q, link), J, tol.KINEMATICS, max(1.0, largest(J)))
        V, A = oracle.velocity(q, v, link), oracle.acceleration(q, v, a, link)
        close("velocity", robot.velocity(q, v, link), V, tol.KINEMATICS, max(1.0, largest(V), largest(J)))
        close("acceleration", robot.acceleration(q, v, a, link), A, tol.ACCELERATIONS, max(1.0, largest(A)))
        if model.nv <= 6:
            tau, M = oracle.inverse_dynamics(q, v, a), oracle.mass_matrix(q)
            size = max(largest(a), terms / np.linalg.norm(M, 2))
            wanted = oracle.forward_dynamics_derivatives(q, v, tau)
            for x, y in zip(robot.forward_dynamics_derivatives(q, v, tau), wanted):
                cond = float(np.linalg.cond(M))
                close(
                    "derivatives of forward dynamics",
                    x,
                    y,
                    tol.inverting(model.nv, cond),
                    max(size, largest(y)),
                )
