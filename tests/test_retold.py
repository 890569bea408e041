"""The same robot told otherwise, on random trees: other inertias, names, orders, frames, units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import strategies
import tolerances as tol
from law_cases import FLOATING, MIMIC, PLAIN, TREES, Case, mimicking, on_trees, with_bodies
from reference import Reference, close, largest

from drevo.model.description import IDENTITY, ORIGIN, Inertial, Joint, Link, Model

Array = np.ndarray


# -- inertial parameters ------------------------------------------------------------------------------------


@on_trees(TREES)
def test_joint_forces_are_linear_in_the_inertias(c: Case) -> None:
    """tau is the sum of what each link alone would need; twice the mass and moments, twice the share."""
    total = np.zeros(c.model.nv)
    for link in c.model.links:
        if link.inertial:
            alone = with_bodies(c.model, lambda l, one=link: l.inertial if l is one else None)
            part = Reference(alone).inverse_dynamics(c.q, c.v, c.a)
            x = link.inertial
            twice = Inertial(2.0 * x.mass, x.com, tuple(tuple(2.0 * y for y in row) for row in x.tensor))
            double = Reference(with_bodies(alone, lambda l, y=twice: y if l.inertial else None))
            assert np.array_equal(double.inverse_dynamics(c.q, c.v, c.a), 2.0 * part)
            total += part
    close("tau", total, c.drevo.inverse_dynamics(c.q, c.v, c.a), tol.SAME, c.terms)


@on_trees(TREES)
def test_mass_welded_to_the_ground_changes_nothing(c: Case) -> None:
    """The root, and links welded to it, may have any inertia: every joint force stays the same to the bit."""
    rng = np.random.default_rng(1)
    still = {c.model.root} | {l for l, f in c.drevo.tree.frames.items() if f.body < 0}
    heavy = Reference(with_bodies(c.model, lambda l: strategies.inertial(rng) if l.name in still else l.inertial))
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
    at = {j.name: (q[sq], v[sv]) for j, sq, sv in model.slices()}
    parts = [at[j.name] for j, _, _ in other.slices()]
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
    for i, sq, sv in c.model.slices():
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
    for j, sq, sv in full.slices():
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


# -- other signs and units -----------------------------------------------------------------------------------


@on_trees([m for m in TREES if m.nq > m.nv])
def test_the_sign_of_a_quaternion_is_nothing(c: Case) -> None:
    """q and -q are the same rotation: the same joint forces, M and poses, to the bit."""
    q = c.q.copy()
    for j, sq, _ in c.model.slices():
        if j.nq >= 4:
            q[sq.stop - 4 : sq.stop] *= -1.0
    assert np.array_equal(c.drevo.inverse_dynamics(q, c.v, c.a), c.drevo.inverse_dynamics(c.q, c.v, c.a))
    assert np.array_equal(c.drevo.mass_matrix(q), c.drevo.mass_matrix(c.q))
    assert np.array_equal(c.drevo.pose(q, link=c.link), c.drevo.pose(c.q, link=c.link))


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
    scaled = Reference(replace(with_bodies(c.model, lambda l: body(l.inertial)), joints=joints, gravity=gravity))
    sq, sv = np.ones(c.model.nq), np.ones(c.model.nv)
    for j, at_q, at_v in c.model.slices():
        for i in LENGTHS.get(j.kind, []):
            sq[at_q.start + i] = sv[at_v.start + i] = L
    got = scaled.inverse_dynamics(c.q * sq, c.v * sv / T, c.a * sv / T**2)
    assert np.array_equal(got, c.drevo.inverse_dynamics(c.q, c.v, c.a) * k / T**2 / sv)
