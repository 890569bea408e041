"""Laws that the algorithms obey on random trees of every kind of joint; no other system is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import oracles
import pytest
import strategies
import tolerances as tol
from reference import STEP, Reference, close, largest, robot_shown, slope, stepped

from drevo.algorithms import articulated_body
from drevo.algorithms.inverse_dynamics import joint_wrenches
from drevo.algorithms.kinematics import body_poses
from drevo.errors import DrevoError, NumericsError, TraceError
from drevo.graph.evaluate import evaluate
from drevo.mechanics.configuration import random, slices
from drevo.mechanics.tree import build_tree
from drevo.model.description import IDENTITY, ORIGIN, Inertial, Joint, Limit, Link, Mimic, Model
from drevo.robot import Robot
from drevo.trace import trace

Array = np.ndarray
FRAMES = ("local", "world", "local_world_aligned")


@dataclass
class Case:
    """A robot at a state; terms: the largest sum of |terms| in a joint force there."""

    model: Model
    drevo: Reference
    q: Array
    v: Array
    a: Array
    terms: float
    rng: np.random.Generator

    @property
    def link(self) -> str:
        return self.model.links[-1].name


def case(model: Model, seed: int = 0) -> Case:
    """A state of a robot."""
    q, v, a = strategies.state(model, seed)
    terms = oracles.pinocchio_of(model).terms(q, v, a)
    return Case(model, Reference(model), q, v, a, terms, np.random.default_rng(seed))


def on_trees(trees: list[Model]) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Makes a test of a law, run on every tree; a failure shows the robot."""

    def decorate(law: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            for seed, model in enumerate(trees):
                with robot_shown(model):
                    law(case(model, seed))

        test.__name__, test.__doc__, test.__module__ = law.__name__, law.__doc__, law.__module__
        return test

    return decorate


def moving(models: list[Model]) -> list[Model]:
    return [m for m in models if m.nv]


def mimicking(m: Model) -> bool:
    return any(j.mimic for j in m.joints)


KINDS = [strategies.all_kinds(base, seed) for base in ("fixed", "floating") for seed in range(2)]
TREES = KINDS + moving([strategies.robot(seed) for seed in range(2000, 2100)])
PLAIN = KINDS + moving([strategies.robot(seed, mimics=0.0) for seed in range(2100, 2160)])
FLOATING = moving(
    [strategies.robot(s, kinds=strategies.HINGED, base="floating", mimics=0.0) for s in range(2200, 2260)]
)
MIMIC = [
    m for m in (strategies.robot(s, strategies.SIMPLE, mimics=0.6) for s in range(2300, 2360)) if mimicking(m)
]


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
    columns = [c.drevo.inverse_dynamics(c.q, still, e, gravity=False) for e in np.eye(c.model.nv)]
    close("columns", np.stack(columns, -1), M, tol.SAME)


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
    slopes = [slope(c.drevo.potential_energy(stepped(c.model, c.q, e))) for e in np.eye(c.model.nv)]
    close("g", c.drevo.gravity(c.q), slopes, tol.COMPLEX_STEP, c.terms)


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
    f, _ = joint_wrenches(tree, c.q.tolist(), c.v.tolist(), c.a.tolist())
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
        dq = np.stack([slope(f(stepped(c.model, c.q, e), c.v, x)) for e in unit], -1)
        dv = np.stack([slope(f(c.q, c.v + 1j * STEP * e, x)) for e in unit], -1)
        tolerance = tol.COMPLEX_STEP if t else tol.solving(len(M), float(np.linalg.cond(M)))
        size = c.terms if t else c.terms / float(np.linalg.norm(M, 2))
        for name, got, wanted in (("by q", found[0], dq), ("by v", found[1], dv)):
            close(name, got, wanted, tolerance, max(size, largest(dq, dv)))
        close("M or M^-1", found[2], last, tolerance)


# -- inertial parameters ------------------------------------------------------------------------------------


def _with_bodies(model: Model, keep: Callable[[Link], Inertial | None]) -> Model:
    return replace(model, links=tuple(replace(l, inertial=keep(l)) for l in model.links))


@on_trees(TREES)
def test_joint_forces_are_linear_in_the_inertias(c: Case) -> None:
    """tau is the sum of what each link alone would need; twice the mass and moments, twice the share."""
    total = np.zeros(c.model.nv)
    for link in c.model.links:
        if link.inertial:
            alone = _with_bodies(c.model, lambda l, one=link: l.inertial if l is one else None)
            part = Reference(alone).inverse_dynamics(c.q, c.v, c.a)
            x = link.inertial
            twice = Inertial(2.0 * x.mass, x.com, tuple(tuple(2.0 * y for y in row) for row in x.tensor))
            double = Reference(_with_bodies(alone, lambda l, y=twice: y if l.inertial else None))
            assert np.array_equal(double.inverse_dynamics(c.q, c.v, c.a), 2.0 * part)
            total += part
    close("tau", total, c.drevo.inverse_dynamics(c.q, c.v, c.a), tol.SAME, c.terms)


@on_trees(TREES)
def test_mass_welded_to_the_ground_changes_nothing(c: Case) -> None:
    """The root, and links welded to it, may have any inertia: every joint force stays the same to the bit."""
    rng = np.random.default_rng(1)
    still = {c.model.root} | {l for l, f in c.drevo.tree.frames.items() if f.body < 0}
    heavy = Reference(_with_bodies(c.model, lambda l: strategies.inertial(rng) if l.name in still else l.inertial))
    assert np.array_equal(heavy.inverse_dynamics(c.q, c.v, c.a), c.drevo.inverse_dynamics(c.q, c.v, c.a))
    assert heavy.potential_energy(c.q) == c.drevo.potential_energy(c.q)
    assert np.array_equal(heavy.momentum(c.q, c.v), c.drevo.momentum(c.q, c.v))


@on_trees(TREES)
def test_a_link_split_into_two_welded_parts(c: Case) -> None:
    """Half of every link's mass and moments as a welded link, placed askew: the same joint forces."""
    links, joints = [], list(c.model.joints)
    for link in c.model.links:
        x = link.inertial
        if x is None:
            links.append(link)
            continue
        half = Inertial(0.5 * x.mass, x.com, tuple(tuple(0.5 * y for y in row) for row in x.tensor))
        R, p = strategies.rotation(c.rng), c.rng.normal(size=3)
        com, tensor = R.T @ (np.array(x.com) - p), R.T @ np.array(half.tensor) @ R
        other = Inertial(half.mass, strategies.vec(com), strategies.mat(tensor))
        links += [replace(link, inertial=half), Link(f"{link.name}+", other)]
        weld = Joint(f"{link.name}+", "fixed", link.name, f"{link.name}+", strategies.vec(p), strategies.mat(R))
        joints.append(weld)
    split = Reference(replace(c.model, links=tuple(links), joints=tuple(joints)))
    close(
        "tau",
        split.inverse_dynamics(c.q, c.v, c.a),
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        tol.SAME,
        c.terms,
    )
    close("M", split.mass_matrix(c.q), c.drevo.mass_matrix(c.q), tol.SAME)


# -- the same robot, told otherwise -------------------------------------------------------------------------


@on_trees(TREES)
def test_names_do_not_matter(c: Case) -> None:
    """Renamed links and joints: the same numbers to the bit."""
    name = {l.name: f"x{k}" for k, l in enumerate(reversed(c.model.links))}
    joint = {j.name: f"y{k}" for k, j in enumerate(reversed(c.model.joints))}
    joints = tuple(
        replace(
            j, name=joint[j.name], parent=name[j.parent], child=name[j.child],
            mimic=j.mimic and replace(j.mimic, joint=joint[j.mimic.joint]),
        )
        for j in c.model.joints
    )  # fmt: skip
    other = Reference(
        replace(c.model, links=tuple(replace(l, name=name[l.name]) for l in c.model.links), joints=joints)
    )
    assert np.array_equal(other.inverse_dynamics(c.q, c.v, c.a), c.drevo.inverse_dynamics(c.q, c.v, c.a))
    assert np.array_equal(other.mass_matrix(c.q), c.drevo.mass_matrix(c.q))


def _mapped(model: Model, other: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """Coordinates and rates of one robot in the order of another with the same joints."""
    at = {j.name: (q[sq], v[sv]) for j, sq, sv in slices(model)}
    parts = [at[j.name] for j, _, _ in slices(other)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


@on_trees(TREES)
def test_order_of_joints_only_permutes(c: Case) -> None:
    """Joints in another order, parents still first: the same joint forces and M, permuted."""
    waiting, known, joints = list(c.model.joints), {c.model.root}, []
    while waiting:
        ready = [j for j in waiting if j.parent in known]
        pick = ready[int(c.rng.integers(len(ready)))]
        waiting.remove(pick)
        known.add(pick.child)
        joints.append(pick)
    model = replace(c.model, joints=tuple(joints))
    other, size = Reference(model), c.model.nv
    q, v = _mapped(c.model, model, c.q, c.v)
    _, a = _mapped(c.model, model, c.q, c.a)
    _, order = _mapped(c.model, model, c.q, np.arange(size))
    close(
        "tau",
        other.inverse_dynamics(q, v, a),
        c.drevo.inverse_dynamics(c.q, c.v, c.a)[order],
        tol.SAME,
        c.terms,
    )
    close("M", other.mass_matrix(q), c.drevo.mass_matrix(c.q)[np.ix_(order, order)], tol.SAME)
    M = c.drevo.mass_matrix(c.q)
    back = other.forward_dynamics(q, v, np.zeros(size))
    t = tol.solving(size, float(np.linalg.cond(M)))
    close("a", back, c.drevo.forward_dynamics(c.q, c.v, np.zeros(size))[order], t, max(1.0, largest(back)))


@on_trees(TREES)
def test_fixed_joints_inserted(c: Case) -> None:
    """Each joint's placement as a weld of a massless link before it: the same joint forces and poses."""
    links, joints = list(c.model.links), []
    for j in c.model.joints:
        links.append(Link(f"{j.name}-"))
        joints.append(Joint(f"{j.name}-", "fixed", j.parent, f"{j.name}-", j.origin, j.rotation))
        joints.append(replace(j, parent=f"{j.name}-", origin=ORIGIN, rotation=IDENTITY))
    other = Reference(replace(c.model, links=tuple(links), joints=tuple(joints)))
    close(
        "tau",
        other.inverse_dynamics(c.q, c.v, c.a),
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        tol.SAME,
        c.terms,
    )
    close("pose", other.pose(c.q, link=c.link), c.drevo.pose(c.q, link=c.link), tol.SAME)


@on_trees(TREES)
def test_rigid_motion_of_the_world(c: Case) -> None:
    """The joints on the ground moved and turned together with gravity: the same joint forces."""
    R, p = strategies.rotation(c.rng), c.rng.normal(size=3)
    joints = tuple(
        replace(
            j,
            origin=strategies.vec(p + R @ np.array(j.origin)),
            rotation=strategies.mat(R @ np.array(j.rotation)),
        )
        if j.parent == c.model.root
        else j
        for j in c.model.joints
    )
    other = Reference(replace(c.model, joints=joints, gravity=strategies.vec(R @ np.array(c.model.gravity))))
    got, wanted = other.inverse_dynamics(c.q, c.v, c.a), c.drevo.inverse_dynamics(c.q, c.v, c.a)
    close("tau", got, wanted, tol.DYNAMICS, c.terms)


@on_trees(TREES)
def test_gravity_is_an_acceleration_of_the_base(c: Case) -> None:
    """On three slides that accelerate by -g, without gravity, the joints feel the same."""
    joints = [
        Joint(f"slide{k}", "prismatic", f"base{k}", f"base{k + 1}", axis=strategies.vec(np.eye(3)[k]))
        for k in range(3)
    ]
    links = [Link(f"base{k}") for k in range(3)]
    rest = tuple(replace(j, parent="base3") if j.parent == c.model.root else j for j in c.model.joints)
    body = Link("base3")
    model = Model("lifted", (*links, body, *c.model.links[1:]), (*joints, *rest), ORIGIN)
    q, v = np.concatenate([np.zeros(3), c.q]), np.concatenate([np.zeros(3), c.v])
    a = np.concatenate([-np.array(c.model.gravity), c.a])
    got = Reference(model).inverse_dynamics(q, v, a)[3:]
    close("tau", got, c.drevo.inverse_dynamics(c.q, c.v, c.a), tol.SAME, c.terms)


@on_trees(FLOATING)
def test_rerooted_floating_tree(c: Case) -> None:
    """Any link may be the root of a floating tree: energies, joint forces, and no wrench at the base."""
    into = {j.child: j for j in c.model.joints}
    new_root = c.model.links[int(c.rng.integers(1, len(c.model.links)))].name
    path, link = [], new_root
    while into[link].kind != "free":
        path.append(into[link])
        link = into[link].parent
    free = replace(into[link], child=new_root, origin=ORIGIN, rotation=IDENTITY)
    links, joints = list(c.model.links), [free]
    for j in path:
        R = np.array(j.rotation).T
        back, aux = -R @ np.array(j.origin), f"{j.name}~"
        links.append(Link(aux))
        joints.append(
            replace(
                j,
                parent=j.child,
                child=aux,
                origin=ORIGIN,
                rotation=IDENTITY,
                axis=strategies.vec(-np.array(j.axis)),
            )
        )
        joints.append(Joint(f"{j.name}~", "fixed", aux, j.parent, strategies.vec(back), strategies.mat(R)))
    turned = {j.name for j in path} | {free.name}
    model = replace(
        c.model, links=tuple(links), joints=(*joints, *(j for j in c.model.joints if j.name not in turned))
    )
    tau = np.concatenate([np.zeros(6), c.rng.normal(size=c.model.nv - 6)])
    a = c.drevo.forward_dynamics(c.q, c.v, tau)
    at = {"link": new_root, "frame": "local"}
    X = oracles.pin.SE3(c.drevo.pose(c.q, link=new_root))
    base = (
        oracles.pin.SE3ToXYZQUAT(X),
        c.drevo.velocity(c.q, c.v, **at),
        c.drevo.acceleration(c.q, c.v, a, **at, kind="spatial"),
    )
    q, v = _mapped(c.model, model, np.r_[base[0], c.q[7:]], np.r_[base[1], c.v[6:]])
    _, a2 = _mapped(c.model, model, c.q, np.r_[base[2], a[6:]])
    _, tau2 = _mapped(c.model, model, c.q, tau)
    other = Reference(model)
    size = oracles.pinocchio_of(model).terms(q, v, a2)
    close("tau", other.inverse_dynamics(q, v, a2), tau2, tol.DYNAMICS, max(size, c.terms))
    close("T", other.kinetic_energy(q, v), c.drevo.kinetic_energy(c.q, c.v), tol.DYNAMICS)
    V = c.drevo.potential_energy(c.q)
    close("V", other.potential_energy(q), V, tol.DYNAMICS, max(1.0, abs(V)))


@on_trees(PLAIN)
def test_a_locked_joint_is_a_weld(c: Case) -> None:
    """A joint at rest, replaced by a weld where it stands: the same forces in the others."""
    joints = list(c.model.joints)
    moves = [k for k, j in enumerate(joints) if j.nv]
    k = moves[int(c.rng.integers(len(moves)))]
    j = joints[k]
    X = np.linalg.inv(c.drevo.pose(c.q, link=j.parent)) @ c.drevo.pose(c.q, link=j.child)
    joints[k] = Joint(j.name, "fixed", j.parent, j.child, strategies.vec(X[:3, 3]), strategies.mat(X[:3, :3]))
    other = Reference(replace(c.model, joints=tuple(joints)))
    keep_q, keep = np.ones(c.model.nq, bool), np.ones(c.model.nv, bool)
    for i, sq, sv in slices(c.model):
        if i is j:
            keep_q[sq], keep[sv] = False, False
    got = other.inverse_dynamics(c.q[keep_q], c.v[keep], c.a[keep])
    wanted = c.drevo.inverse_dynamics(c.q, c.v * keep, c.a * keep)[keep]
    close("tau", got, wanted, tol.DYNAMICS, c.terms)


@on_trees(MIMIC)
def test_mimic_is_a_substitution_of_coordinates(c: Case) -> None:
    """With q_full = G q + g0: tau = G' tau_full, M = G' M_full G, the same for derivatives and Coriolis."""
    full = replace(c.model, joints=tuple(replace(j, mimic=None) for j in c.model.joints))
    at, offsets = {}, oracles.coordinates(c.model)
    G, shift = np.zeros((full.nv, c.model.nv)), np.zeros(full.nq)
    lift = np.zeros((full.nq, c.model.nq))
    for j, sq, sv in slices(full):
        iq, iv, factor, offset = offsets[j.name]
        at[j.name] = sq
        lift[sq, iq : iq + j.nq] = factor * np.eye(j.nq)
        G[sv, iv : iv + j.nv] = factor * np.eye(j.nv)
        shift[sq] = offset if j.nq == 1 else 0.0
    q, v, a = lift @ c.q + shift, G @ c.v, G @ c.a
    plain = Reference(full)
    close(
        "tau",
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        G.T @ plain.inverse_dynamics(q, v, a),
        tol.SAME,
        c.terms,
    )
    close("M", c.drevo.mass_matrix(c.q), G.T @ plain.mass_matrix(q) @ G, tol.SAME)
    C = G.T @ plain.coriolis_matrix(q, v) @ G
    close("C", c.drevo.coriolis_matrix(c.q, c.v), C, tol.DYNAMICS, max(c.terms, largest(C)))
    found, wanted = (
        x.inverse_dynamics_derivatives(*y) for x, y in ((c.drevo, (c.q, c.v, c.a)), (plain, (q, v, a)))
    )
    for x, y in zip(found, wanted):
        D = G.T @ y @ G
        close("derivatives", x, D, tol.DYNAMICS, max(c.terms, largest(D)))
    J = plain.jacobian(q, link=c.link) @ G
    close("jacobian", c.drevo.jacobian(c.q, link=c.link), J, tol.SAME, max(1.0, largest(J)))


# -- kinds of joints ----------------------------------------------------------------------------------------


def on_joint(kind: str, tail: int = 3, seed: int = 5, **changes: object) -> Model:
    """A joint of a kind, its body j1/l1, on the ground, with a random tree on it."""
    rng = np.random.default_rng(seed)
    model = strategies.robot(seed, strategies.HINGED, n=tail, base="fixed", welds=0.0, mimics=0.0)
    first = replace(strategies.joint(rng, "j0", kind, "world", "l0"), **changes)  # type: ignore[arg-type]
    rest = tuple(replace(j, parent="l0") if j.parent == "world" else j for j in model.joints)
    return replace(
        model,
        links=(Link("world"), Link("l0", strategies.inertial(rng)), *model.links[1:]),
        joints=(first, *rest),
    )


def chained(model: Model, steps: list[tuple[str, tuple[float, ...]]]) -> Model:
    """The first joint as a chain of plain ones with massless links between them."""
    first, *rest = model.joints
    names = ["world", *(f"between{k}" for k in range(len(steps) - 1)), first.child]
    chain = [
        Joint(f"step{k}", kind, names[k], names[k + 1], axis=strategies.vec(axis))
        for k, (kind, axis) in enumerate(steps)
    ]
    chain[0] = replace(chain[0], origin=first.origin, rotation=first.rotation)
    links = (model.links[0], *map(Link, names[1:-1]), *model.links[1:])
    return replace(model, links=links, joints=(*chain, *rest))


def as_chain(j: Joint) -> list[tuple[str, tuple[float, ...]]]:
    """What the contract says a joint of several axes is."""
    x, y = oracles.plane(j.axis)
    return {
        "universal": [("revolute", j.axis), ("revolute", j.axis2 or j.axis)],
        "cylindrical": [("prismatic", j.axis), ("revolute", j.axis)],
        "planar": [("prismatic", tuple(x)), ("prismatic", tuple(y)), ("revolute", j.axis)],
        "continuous": [("revolute", j.axis)],
    }[j.kind]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["universal", "cylindrical", "planar", "continuous"])
def test_a_joint_of_several_axes_is_a_chain(kind: str, seed: int) -> None:
    """universal = two hinges; cylindrical = slide, hinge; planar = slides x, y, hinge; same q and v."""
    model = on_joint(kind, seed=seed)
    one, chain = case(model, seed), Reference(chained(model, as_chain(model.joints[0])))
    _same(one, chain)


def test_a_screw_without_lead_is_a_hinge() -> None:
    """helical with lead 0 = revolute."""
    for seed in range(6):
        model = on_joint("helical", seed=seed, lead=0.0)
        hinge = replace(model.joints[0], kind="revolute")
        _same(case(model, seed), Reference(replace(model, joints=(hinge, *model.joints[1:]))))


def _same(c: Case, other: Reference) -> None:
    close(
        "tau",
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        other.inverse_dynamics(c.q, c.v, c.a),
        tol.SAME,
        c.terms,
    )
    close("M", c.drevo.mass_matrix(c.q), M := other.mass_matrix(c.q), tol.SAME)
    close("pose", c.drevo.pose(c.q, link=c.link), other.pose(c.q, link=c.link), tol.SAME)
    tau, size = (
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        max(largest(c.a), c.terms / float(np.linalg.norm(M, 2))),
    )
    t = tol.solving(len(M), float(np.linalg.cond(M)))
    close("a", other.forward_dynamics(c.q, c.v, tau), c.a, t, size)
    args = [x.tolist() for x in (c.q, c.v, tau)]
    close("a, articulated bodies", articulated_body.forward_dynamics(other.tree, *args), c.a, t, size)


def test_a_spherical_joint_is_three_hinges() -> None:
    """Off singularity: tau of three hinges = E' tau of the ball, with w = E v and its rate."""
    for seed in range(6):
        model = on_joint("spherical", seed=seed)
        hinges = chained(model, [("revolute", tuple(e)) for e in np.eye(3)])
        c, ball = case(hinges, seed), Reference(model)
        c.q[1] = 0.4 * math.sin(seed)
        at = {"link": "l0", "frame": "local"}
        E = c.drevo.jacobian(c.q, **at)[3:, :3]
        R = c.drevo.pose(c.q, link="l0")[:3, :3]
        R = np.array(model.joints[0].rotation).T @ R
        q = np.r_[oracles.pin.Quaternion(R).coeffs(), c.q[3:]]
        v = np.r_[c.drevo.velocity(c.q, c.v, **at)[3:], c.v[3:]]
        a = np.r_[c.drevo.acceleration(c.q, c.v, c.a, **at, kind="spatial")[3:], c.a[3:]]
        tau = ball.inverse_dynamics(q, v, a)
        wanted = np.r_[E.T @ tau[:3], tau[3:]]
        close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), wanted, tol.DYNAMICS, c.terms)


def test_a_free_joint_is_three_slides_and_a_ball() -> None:
    """Its linear rates are those of the slides in body axes; a = R'(slides'') - w x v."""
    for seed in range(6):
        model = on_joint("free", seed=seed)
        steps = [("prismatic", tuple(e)) for e in np.eye(3)] + [("spherical", (1.0, 0.0, 0.0))]
        slides, c = Reference(chained(model, steps)), case(model, seed)
        R = oracles.of_quaternion(c.q[3:7])
        v, a = c.v.copy(), c.a.copy()
        v[:3] = R @ c.v[:3]
        a[:3] = R @ (c.a[:3] + np.cross(c.v[3:6], c.v[:3]))
        tau = slides.inverse_dynamics(c.q, v, a)
        tau[:3] = R.T @ tau[:3]
        close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), tau, tol.SAME, c.terms)


POSES = {
    "revolute": ((0.0, 0.0, -1.0), [math.pi / 2], [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0]]),
    "prismatic": ((0.0, -1.0, 0.0), [0.3], [[1, 0, 0, 0], [0, 1, 0, -0.3], [0, 0, 1, 0]]),
    "helical": ((0.0, 0.0, -1.0), [math.pi / 2], [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, -0.05]]),
    "cylindrical": ((-1.0, 0.0, 0.0), [0.3, math.pi / 2], [[1, 0, 0, -0.3], [0, 0, 1, 0], [0, -1, 0, 0]]),
    "planar": ((0.0, 0.0, 1.0), [0.3, 0.4, math.pi / 2], [[0, -1, 0, 0.3], [1, 0, 0, 0.4], [0, 0, 1, 0]]),
    "universal": ((0.0, 0.0, 1.0), [math.pi / 2, math.pi / 2], [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]),
    "spherical": ((1.0, 0.0, 0.0), [0.0, 0.0, 1.0, 0.0], [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]),
    "free": (
        (1.0, 0.0, 0.0),
        [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0],
        [[1, 0, 0, 1], [0, -1, 0, 2], [0, 0, -1, 3]],
    ),
}


@pytest.mark.parametrize("kind", POSES)
def test_pose_of_one_joint(kind: str) -> None:
    """Coordinates of every kind move the link as the contract's table says; lead is per revolution."""
    axis, q, X = POSES[kind]
    second = (1.0, 0.0, 0.0) if kind == "universal" else None
    joint = Joint("j", kind, "world", "a", axis=axis, axis2=second, lead=0.2)
    model = Model("one", (Link("world"), Link("a", strategies.inertial(np.random.default_rng(0)))), (joint,))
    close("pose", Reference(model).pose(q, link="a"), [*X, [0, 0, 0, 1]], tol.SAME, 1.0)


def test_opposite_axes_are_opposite_coordinates() -> None:
    """A hinge, slide or screw (same lead) about -a at q stands where the one about a does at -q."""
    for kind in ("revolute", "prismatic", "helical"):
        for seed in range(8):
            model = on_joint(kind, seed=seed)
            first = model.joints[0]
            back = replace(first, axis=strategies.vec(-np.array(first.axis)))
            c, other = case(model, seed), Reference(replace(model, joints=(back, *model.joints[1:])))
            turn = np.r_[-1.0, np.ones(model.nv - 1)]
            q, v, a = c.q * turn, c.v * turn, c.a * turn
            got = other.inverse_dynamics(q, v, a) * turn
            close("tau", got, c.drevo.inverse_dynamics(c.q, c.v, c.a), tol.SAME, c.terms)
            close("pose", other.pose(q, link=c.link), c.drevo.pose(c.q, link=c.link), tol.SAME)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_two_joints_mimic_one_across_branches(kind: str) -> None:
    """Two mimics of one driver, below it and on another branch: M = G' M_full G, offsets included."""
    rng = np.random.default_rng(3)
    links = (Link("world"), *(Link(n, strategies.inertial(rng)) for n in "abcd"))
    joints = [
        strategies.joint(rng, f"j{n}", kind, p, n)
        for p, n in (("world", "a"), ("a", "b"), ("world", "c"), ("c", "d"))
    ]
    joints[1] = replace(joints[1], mimic=Mimic("ja", -1.5, 0.7))
    joints[3] = replace(joints[3], mimic=Mimic("ja", 0.5, -0.2))
    model = Model("mimics", links, tuple(joints))
    full = Reference(replace(model, joints=tuple(replace(j, mimic=None) for j in joints)))
    G = np.array([[1.0, 0.0], [-1.5, 0.0], [0.0, 1.0], [0.5, 0.0]])
    c = case(model)
    q = G @ c.q + [0.0, 0.7, 0.0, -0.2]
    with robot_shown(model):
        close("M", c.drevo.mass_matrix(c.q), G.T @ full.mass_matrix(q) @ G, tol.SAME)
        wanted = G.T @ full.inverse_dynamics(q, G @ c.v, G @ c.a)
        close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), wanted, tol.SAME, c.terms)
        tau = c.drevo.inverse_dynamics(c.q, c.v, c.a)
        close("a", c.drevo.forward_dynamics(c.q, c.v, tau), c.a, tol.solving(2, 1e3))
        assert c.drevo.mass_matrix(c.q)[0, 1] != 0.0  # the mimic couples the branches


def test_articulated_bodies_refuse_mimic_joints() -> None:
    """A coordinate of several joints couples branches, and the refusal names both joints."""
    with pytest.raises(TraceError, match=r"shares the coordinate of joint .* \(mimic\)"):
        articulated_body.forward_dynamics(build_tree(MIMIC[0]), *([0.1] * 9,) * 3)


# -- quaternions --------------------------------------------------------------------------------------------


@on_trees([m for m in TREES if m.nq > m.nv])
def test_the_sign_of_a_quaternion_is_nothing(c: Case) -> None:
    """q and -q are the same rotation: the same joint forces, M and poses, to the bit."""
    q = c.q.copy()
    for j, sq, _ in slices(c.model):
        if j.nq >= 4:
            q[sq.stop - 4 : sq.stop] *= -1.0
    assert np.array_equal(c.drevo.inverse_dynamics(q, c.v, c.a), c.drevo.inverse_dynamics(c.q, c.v, c.a))
    assert np.array_equal(c.drevo.mass_matrix(q), c.drevo.mass_matrix(c.q))
    assert np.array_equal(c.drevo.pose(q, link=c.link), c.drevo.pose(c.q, link=c.link))


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_a_quaternion_off_the_sphere_is_refused(kind: str) -> None:
    """A quaternion is unit to 1e-6, or NumericsError names the row."""
    model = on_joint(kind)
    robot, rng = Robot(model), np.random.default_rng(0)
    q = random(model, rng, (5,))
    v = np.zeros((5, model.nv))
    q[3] *= 1.0 + 3e-7
    robot.bias(q, v)
    end = 4 if kind == "spherical" else 7
    q[3, end - 4 : end] *= 1.0 + 1e-5
    with pytest.raises(NumericsError, match="row 3"):
        robot.bias(q, v)


# -- numbers and symbols ------------------------------------------------------------------------------------


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


LENGTHS = {"prismatic": [0], "cylindrical": [0], "planar": [0, 1], "free": [0, 1, 2]}


@on_trees([m for m in TREES if not mimicking(m)])
def test_units(c: Case) -> None:
    """Lengths times 2, masses times 4, times times 8: joint forces scale by their dimensions, to the bit."""
    L, M, T = 2.0, 4.0, 8.0
    k = M * L * L

    def body(x: Inertial | None) -> Inertial | None:
        return x and Inertial(
            M * x.mass, strategies.vec(L * np.array(x.com)), strategies.mat(k * np.array(x.tensor))
        )

    joints = tuple(
        replace(j, origin=strategies.vec(L * np.array(j.origin)), lead=L * j.lead) for j in c.model.joints
    )
    gravity = strategies.vec(np.array(c.model.gravity) * L / T**2)
    scaled = Reference(replace(_with_bodies(c.model, lambda l: body(l.inertial)), joints=joints, gravity=gravity))
    sq, sv = np.ones(c.model.nq), np.ones(c.model.nv)
    for j, at_q, at_v in slices(c.model):
        for i in LENGTHS.get(j.kind, []):
            sq[at_q.start + i] = sv[at_v.start + i] = L
    got = scaled.inverse_dynamics(c.q * sq, c.v * sv / T, c.a * sv / T**2)
    assert np.array_equal(got, c.drevo.inverse_dynamics(c.q, c.v, c.a) * k / T**2 / sv)


def test_a_structurally_singular_mass_matrix_is_refused() -> None:
    """Nothing that moves, or a mimic that undoes its driver's turn: a sentence, never a division by zero."""
    zero = replace(strategies.inertial(np.random.default_rng(0)), com=(0.1, 0.0, 0.0), tensor=((0.0,) * 3,) * 3)
    hinge = Joint("a", "revolute", "world", "a", axis=(0.0, 0.0, 1.0))
    back = replace(hinge, name="b", parent="a", child="b", mimic=Mimic("a", -1.0, 0.3))
    light = Model("light", (Link("world"), Link("a")), (hinge,))
    still = Model("still", (Link("world"), Link("a"), Link("b", zero)), (hinge, back))
    for model in (light, still):
        with pytest.raises(DrevoError, match="singular for every configuration"):
            Robot(model).forward_dynamics([0.1], [0.0], [1.0])


def test_without_moving_mass_there_is_no_centre_of_mass() -> None:
    """A robot that cannot move, or moves nothing, has momentum zero and a refusal, not a division by zero."""
    still = Reference(Model("still", (Link("world"), Link("a")), (Joint("j", "fixed", "world", "a"),)))
    assert np.array_equal(still.momentum(np.zeros(0), np.zeros(0)), np.zeros(6))
    assert still.mass_matrix(np.zeros(0)).size == 0 and still.potential_energy(np.zeros(0)) == 0.0
    with pytest.raises(TraceError, match="no mass, so they have no centre of mass"):
        still.center_of_mass(np.zeros(0))


def test_limits_of_1e16_are_none() -> None:
    """Files write such limits where they mean none; random angles stay where sines are exact."""
    joint = Joint("j", "revolute", "world", "a", limit=Limit(-1e16, 1e16))
    model = Model("rotor", (Link("world"), Link("a", strategies.inertial(np.random.default_rng(0)))), (joint,))
    assert np.max(np.abs(random(model, np.random.default_rng(0), (100,)))) <= math.pi
