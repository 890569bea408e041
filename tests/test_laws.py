"""Laws that the algorithms obey on random trees of every kind of joint; no other system is asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import strategies
import tolerances as tol
from law_cases import FLOATING, FRAMES, PLAIN, TREES, Case, on_trees
from reference import STEP, Reference, close, largest, slope, stepped

from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.trace import trace
from drevo.errors import DrevoError, TraceError
from drevo.mechanics.algorithms import articulated_body
from drevo.mechanics.algorithms.inverse_dynamics import body_wrenches
from drevo.mechanics.algorithms.kinematics import body_poses
from drevo.model.description import ORIGIN, Joint, Link, Mimic, Model
from drevo.robot.face import Robot

# -- M, C, g and energies -----------------------------------------------------------------------------------


@on_trees(TREES)
def test_mass_matrix_is_symmetric_and_positive(c: Case) -> None:
    """M is exactly symmetric, and its eigenvalues are positive."""
    M = c.drevo.mass_matrix(c.q)
    assert np.array_equal(M, M.T)
    assert np.linalg.eigvalsh(M)[0] > 0.0


@on_trees(TREES)
def test_kinetic_energy_is_half_v_M_v(c: Case) -> None:
    """T, summed over the bodies, is v'Mv/2."""
    close("T", c.drevo.kinetic_energy(c.q, c.v), 0.5 * c.v @ c.drevo.mass_matrix(c.q) @ c.v, tol.SAME)


@on_trees(TREES)
def test_columns_of_M_are_inverse_dynamics_of_unit_accelerations(c: Case) -> None:
    """M e_i = inverse dynamics at rest, without gravity, for a = e_i."""
    still, M = np.zeros(c.model.nv), c.drevo.mass_matrix(c.q)
    columns = c.drevo.inverse_dynamics(c.q, still, np.eye(c.model.nv), gravity=False).T
    close("columns", columns, M, tol.SAME)


@on_trees(TREES)
def test_inverse_mass_matrix(c: Case) -> None:
    """M^-1 M = 1."""
    M = c.drevo.mass_matrix(c.q)
    t = tol.solving(len(M), float(np.linalg.cond(M)))
    close("product", c.drevo.inverse_mass_matrix(c.q) @ M, np.eye(len(M)), t)


@on_trees(TREES)
def test_rate_of_M_less_twice_C_is_skew(c: Case) -> None:
    """dM/dt - 2 C is skew, and C v = h - g."""
    C, h, g = c.drevo.coriolis_matrix(c.q, c.v), c.drevo.bias(c.q, c.v), c.drevo.gravity(c.q)
    rate = slope(c.drevo.mass_matrix(stepped(c.model, c.q, c.v)))
    N = rate - 2.0 * C
    close("N + N'", N + N.T, np.zeros_like(N), tol.RATES, max(1.0, largest(rate, C)))
    close("C v", C @ c.v, h - g, tol.DYNAMICS, c.terms + largest(C) * largest(c.v))


@on_trees(TREES)
def test_gravity_is_the_slope_of_potential_energy(c: Case) -> None:
    """g = dV/dq on the tangent space."""
    ways = np.stack([stepped(c.model, c.q, e) for e in np.eye(c.model.nv)])
    close("g", c.drevo.gravity(c.q), slope(c.drevo.potential_energy(ways)), tol.COMPLEX_STEP, c.terms)


@on_trees(TREES)
def test_power_is_the_rate_of_energy(c: Case) -> None:
    """tau . v = d(T + V)/dt along the motion."""
    q, v = stepped(c.model, c.q, c.v), c.v + 1j * STEP * c.a
    rate = slope(c.drevo.kinetic_energy(q, v) + c.drevo.potential_energy(q))
    power = c.drevo.inverse_dynamics(c.q, c.v, c.a) @ c.v
    close("power", power, rate, tol.RATES, c.terms * float(np.sum(np.abs(c.v))))


@on_trees(TREES)
def test_bias_is_even_in_v(c: Case) -> None:
    """Time reversal: h(q, -v) = h(q, v), to the bit."""
    assert np.array_equal(c.drevo.bias(c.q, c.v), c.drevo.bias(c.q, -c.v))


# -- forward dynamics ---------------------------------------------------------------------------------------


@on_trees(TREES)
def test_forward_dynamics_undoes_inverse(c: Case) -> None:
    """Inverse dynamics of forward dynamics gives the joint forces back."""
    tau = c.rng.normal(size=c.model.nv)
    back = c.drevo.inverse_dynamics(c.q, c.v, c.drevo.forward_dynamics(c.q, c.v, tau))
    M = c.drevo.mass_matrix(c.q)
    t = tol.solving(len(M), float(np.linalg.cond(M)))
    close("tau", back, tau, t, max(c.terms, largest(tau)))


@on_trees(PLAIN)
def test_articulated_bodies_solve_with_M(c: Case) -> None:
    """The O(n) articulated-body algorithm gives M^-1 (tau - h), with external wrenches too."""
    tau, wrench = c.rng.normal(size=c.model.nv), c.rng.normal(size=6)
    args = [x.tolist() for x in (c.q, c.v, tau)]
    got = articulated_body.forward_dynamics(c.drevo.tree, *args, {c.link: wrench.tolist()})
    wanted = c.drevo.forward_dynamics(c.q, c.v, tau, f_ext={c.link: wrench})
    M = c.drevo.mass_matrix(c.q)
    size = max(largest(wanted), (c.terms + largest(tau, wrench)) / float(np.linalg.norm(M, 2)))
    close("a", got, wanted, tol.solving(len(M), float(np.linalg.cond(M))), size)


# -- kinematics and forces ----------------------------------------------------------------------------------


@on_trees(TREES)
def test_jacobian_times_v_is_the_velocity(c: Case) -> None:
    """J v is the velocity of every link, in each frame."""
    for link in (l.name for l in c.model.links):
        for frame in FRAMES:
            J = c.drevo.jacobian(c.q, link=link, frame=frame)
            V = c.drevo.velocity(c.q, c.v, link=link, frame=frame)
            close(
                f"velocity of {link}, {frame}",
                J @ c.v,
                V,
                tol.KINEMATICS,
                max(1.0, largest(J) * largest(c.v)),
            )


@on_trees(TREES)
def test_velocity_and_acceleration_are_rates(c: Case) -> None:
    """velocity = d(pose)/dt; classical acceleration = d(velocity)/dt in world axes, spatial in local ones."""
    q, v = stepped(c.model, c.q, c.v), c.v + 1j * STEP * c.a
    X, rate = c.drevo.pose(c.q, link=c.link), slope(c.drevo.pose(q, link=c.link))
    W = rate[:3, :3] @ X[:3, :3].T
    V = c.drevo.velocity(c.q, c.v, link=c.link)
    size = max(1.0, largest(V))
    close("velocity", V, [*rate[:3, 3], W[2, 1], W[0, 2], W[1, 0]], tol.COMPLEX_STEP, size)
    for frame, kind in (("local_world_aligned", "classical"), ("local", "spatial")):
        wanted = slope(c.drevo.velocity(q, v, link=c.link, frame=frame))
        got = c.drevo.acceleration(c.q, c.v, c.a, link=c.link, frame=frame, kind=kind)
        close(f"{kind} acceleration", got, wanted, tol.COMPLEX_STEP, max(size**2, largest(wanted)))


@on_trees(TREES)
def test_virtual_work(c: Case) -> None:
    """A wrench on a link (force first, at its origin, world axes) takes J' f off the joint forces."""
    wrenches = {l.name: c.rng.normal(size=6) for l in c.model.links[1:]}
    with_f = c.drevo.inverse_dynamics(c.q, c.v, c.a, f_ext=wrenches)
    jacobians = {link: c.drevo.jacobian(c.q, link=link) for link in wrenches}
    work = sum(jacobians[link].T @ f for link, f in wrenches.items())
    size = c.terms + sum(largest(J) for J in jacobians.values())
    close("work", c.drevo.inverse_dynamics(c.q, c.v, c.a) - with_f, work, tol.SAME, size)


@on_trees(TREES)
def test_ground_carries_the_rate_of_momentum(c: Case) -> None:
    """Wrenches of the joints on the ground sum to dp/dt - m g, and dL/dt about the centre of mass."""
    q, v = stepped(c.model, c.q, c.v), c.v + 1j * STEP * c.a
    rate, tree = slope(c.drevo.momentum(q, v)), c.drevo.tree
    f, _ = body_wrenches(tree, c.q.tolist(), c.v.tolist(), c.a.tolist())
    center, total = c.drevo.center_of_mass(c.q), np.zeros(6)
    for b, pose, w in zip(tree.bodies, body_poses(tree, c.q.tolist()), f):
        if b.parent < 0:
            force, moment = np.array(pose.R @ w.f), np.array(pose.R @ w.n)
            total += [*force, *(moment + np.cross(np.array(pose.p) - center, force))]
    mass = sum(l.inertial.mass for l in c.model.links if l.inertial and tree.frames[l.name].body >= 0)
    rate[:3] -= mass * np.array(c.model.gravity)
    close("wrench", total, rate, tol.DYNAMICS, max(c.terms, largest(rate)))


@on_trees([replace(m, gravity=ORIGIN) for m in FLOATING])
def test_momentum_of_a_free_system_is_constant(c: Case) -> None:
    """Without gravity and base wrench, joint forces change neither linear nor angular momentum."""
    tau = np.concatenate([np.zeros(6), c.rng.normal(size=c.model.nv - 6)])
    a = c.drevo.forward_dynamics(c.q, c.v, tau)
    rate = slope(c.drevo.momentum(stepped(c.model, c.q, c.v), c.v + 1j * STEP * a))
    M = c.drevo.mass_matrix(c.q)
    size = max(c.terms, largest(M) * largest(a))
    close("rate", rate, np.zeros(6), tol.solving(len(M), float(np.linalg.cond(M))), size)


# -- derivatives --------------------------------------------------------------------------------------------


@on_trees(TREES)
def test_derivatives_are_complex_steps(c: Case) -> None:
    """Derivatives of inverse and forward dynamics by q (tangent) and v, and the returned M and M^-1."""
    tau = c.drevo.inverse_dynamics(c.q, c.v, c.a)
    M = c.drevo.mass_matrix(c.q)
    unit = np.eye(c.model.nv)
    ways = np.stack([stepped(c.model, c.q, e) for e in unit])
    for f, x, found, last, t in (
        (c.drevo.inverse_dynamics, c.a, c.drevo.inverse_dynamics_derivatives(c.q, c.v, c.a), M, 1.0),
        (
            c.drevo.forward_dynamics,
            tau,
            c.drevo.forward_dynamics_derivatives(c.q, c.v, tau),
            np.linalg.inv(M),
            0.0,
        ),
    ):
        dq = slope(f(ways, c.v, x)).T
        dv = slope(f(c.q, c.v + 1j * STEP * unit, x)).T
        tolerance = tol.COMPLEX_STEP if t else tol.solving(len(M), float(np.linalg.cond(M)))
        size = c.terms if t else c.terms / float(np.linalg.norm(M, 2))
        for name, got, wanted in (("by q", found[0], dq), ("by v", found[1], dv)):
            close(name, got, wanted, tolerance, max(size, largest(dq, dv)))
        close("M or M^-1", found[2], last, tolerance)


# -- symbols, and what has no answer ---------------------------------------------------------------------------


@on_trees(TREES[::3])
def test_symbols_then_numbers(c: Case) -> None:
    """Traced with every parameter a symbol, then evaluated: the same as traced, or computed, with numbers."""
    args = {"q": c.q, "v": c.v, "a": c.a}
    wanted = c.drevo.inverse_dynamics(c.q, c.v, c.a)
    for parameters in ((), ("*",)):
        program = trace(c.model, ("inverse_dynamics", "mass_matrix"), parameters=parameters)
        found = evaluate(program, args)
        close("tau", found["tau"], wanted, tol.SAME, c.terms)
        close("M", found["M"], c.drevo.mass_matrix(c.q), tol.SAME)


def test_a_structurally_singular_mass_matrix_is_refused() -> None:
    """Nothing that moves, or a mimic that undoes its driver's turn: a sentence, never a division by zero."""
    zero = replace(strategies.inertial(np.random.default_rng(0)), com=(0.1, 0.0, 0.0), tensor=((0.0,) * 3,) * 3)
    hinge = Joint("a", "revolute", "world", "a", axis=(0.0, 0.0, 1.0))
    back = replace(hinge, name="b", parent="a", child="b", mimic=Mimic("a", -1.0, 0.3))
    light = Model("light", (Link("world"), Link("a")), (hinge,))
    still = Model("still", (Link("world"), Link("a"), Link("b", zero)), (hinge, back))
    for model, why in ((light, "no link has a mass"), (still, "singular for every configuration")):
        with pytest.raises(DrevoError, match=why):
            Robot(model).forward_dynamics([0.1], [0.0], [1.0])


def test_without_moving_mass_there_is_no_centre_of_mass() -> None:
    """A robot that cannot move, or moves nothing, has momentum zero and a refusal, not a division by zero."""
    still = Reference(Model("still", (Link("world"), Link("a")), (Joint("j", "fixed", "world", "a"),)))
    assert np.array_equal(still.momentum(np.zeros(0), np.zeros(0)), np.zeros(6))
    assert still.mass_matrix(np.zeros(0)).size == 0 and still.potential_energy(np.zeros(0)) == 0.0
    with pytest.raises(TraceError, match="no mass, so they have no centre of mass"):
        still.center_of_mass(np.zeros(0))
