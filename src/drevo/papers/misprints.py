"""Formulas of the papers in NumPy, as corrected and as printed, for what a misprint changes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..dh import table
from ..io.given import Array
from ..mechanics.tree import build_tree
from ..robot.face import Robot


class LinkAtRest(NamedTuple):
    """A link at one q, in its own axes: pose in the axes of its parent, columns of its joint, mass, inertia.

    turn (3, 3): from the main axes of the parent to its auxiliary ones, which carry the joint.
    """

    parent: int
    R: Array
    p: Array
    columns: list[Array]
    first_rate: int
    m: float
    c: Array
    J: Array
    turn: Array


class LinkAccelerations(NamedTuple):
    """Angular velocities, accelerations and those of the origins, (n, 3), in link axes."""

    w: Array
    e: Array
    a: Array


def kovalchuk_bias(robot: Robot, q: Array, v: Array, slip: str = "") -> Array:
    """H by the recursion in link axes, (nv,): base to tips omega, eps, a, tips to base f_i, M_i.

    slip: "lever", the moment of phi about the joint of the first child; "turn", J eps + omega x J omega not turned
    into the axes of the parent; "fork", phi counted once for each child; "auxiliary", omega of the parent read in
    the axes of its auxiliary frame.
    """
    links = _links(robot, q)
    swept = _to_tips(links, v, 0.0 * v, -np.array(robot.model.gravity), slip)
    return _to_base(links, swept, robot.nv, slip)


def kovalchuk_mass_matrix(robot: Robot, q: Array, slip: str = "") -> Array:
    """I by unit accelerations, (nv, nv).

    slip: "column", acceleration, mass and inertia of the link of the column for those of the link of the row.
    """
    links, still = _links(robot, q), np.zeros(robot.nv)
    out = np.zeros((robot.nv, robot.nv))
    for i, link in enumerate(links):
        for rate in range(link.first_rate, link.first_rate + len(link.columns)):
            swept = _to_tips(links, still, np.eye(robot.nv)[rate], np.zeros(3), "")
            out[:, rate] = _to_base(links, swept, robot.nv, "", i if slip == "column" else None)
    return out


def _links(robot: Robot, q: Array) -> list[LinkAtRest]:
    """The moving links, parents first."""
    tree, dh = build_tree(robot.model), table(robot)
    moving = {joint.name: joint.child for joint in robot.model.joints}
    rows = {row["joint_name"]: row for row in dh.rows}
    out = []
    for b, placed in zip(tree.bodies, tree.placements(q.tolist())):
        columns = [np.array([*s.w, *s.v], float) * b.factor for s in tree.motion_subspace(b)]
        m, h = float(b.inertia.m), np.array(list(b.inertia.h), float)
        J = np.array(b.inertia.shifted(-b.inertia.h * (1.0 / m) if m else -b.inertia.h).J.mat, float)
        turn = np.eye(3)
        if b.parent >= 0 and "M" in rows.get(b.joint, {}):
            F = dh.frames[moving[tree.bodies[b.parent].joint]][1][:3, :3]
            turn = F.T @ np.asarray(rows[b.joint]["M"])[:3, :3].T @ F
        R = np.array([list(row) for row in placed.rotation], float)
        p = np.array(list(placed.p), float)
        out.append(LinkAtRest(b.parent, R, p, columns, b.v, m, h / m if m else 0.0 * h, J, turn))
    return out


def _to_tips(links: list[LinkAtRest], v: Array, a: Array, base: Array, slip: str) -> LinkAccelerations:
    """omega, eps, a of all links; base (3,): the acceleration of the base less gravity."""
    out = LinkAccelerations(*np.zeros((3, len(links), 3)))
    for i, x in enumerate(links):
        still = np.zeros(3), np.zeros(3), base
        w0, e0, a0 = (y[x.parent] for y in out) if x.parent >= 0 else still
        rate = sum(s * v[x.first_rate + k] for k, s in enumerate(x.columns))
        gain = sum(s * a[x.first_rate + k] for k, s in enumerate(x.columns))
        spin = x.R.T @ w0
        seen = x.R.T @ (x.turn @ w0) if slip == "auxiliary" else spin
        out.w[i] = spin + rate[:3]
        out.e[i] = x.R.T @ e0 + np.cross(spin, rate[:3]) + gain[:3]
        out.a[i] = x.R.T @ (a0 + np.cross(e0, x.p) + np.cross(w0, np.cross(w0, x.p)))
        out.a[i] += 2.0 * np.cross(seen, rate[3:]) + np.cross(rate[:3], rate[3:]) + gain[3:]
    return out


def _to_base(
    links: list[LinkAtRest], s: LinkAccelerations, nv: int, slip: str, column: int | None = None
) -> Array:
    """Efforts of the joints, (nv,), from forces f_i and moments M_i."""
    n = len(links)
    f, M, tau = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(nv)
    for i in range(n - 1, -1, -1):
        x, j = links[i], i if column is None else column
        m, c, J = links[j].m, links[j].c, links[j].J
        children = [y for y in links if y.parent == i]
        phi = m * (s.a[j] + np.cross(s.e[j], c) + np.cross(s.w[j], np.cross(s.w[j], c)))
        inner = J @ s.e[j] + np.cross(s.w[j], J @ s.w[j])
        lever = c - children[0].p if slip == "lever" and children else c
        f[i] += phi * (len(children) if slip == "fork" else 1)
        M[i] += np.cross(lever, phi) + (x.R.T @ inner if slip == "turn" else inner)
        for k, axis in enumerate(x.columns):
            tau[x.first_rate + k] += axis[:3] @ M[i] + axis[3:] @ f[i]
        if x.parent >= 0:
            f[x.parent] += x.R @ f[i]
            M[x.parent] += x.R @ M[i] + np.cross(x.p, x.R @ f[i])
    return tau


def power_of_rotation(J: Array, angles: Array, rates: Array, accelerations: Array, slip: str = "") -> float:
    """W_k of a body that turns about x, then y, then z, J (3, 3) about its centre of mass at angles of 0, W.

    slip: "polar", sum of J^i w_i e_i less the rate of the products' part, which leaves the rates of polar moments
    out; "printed", that with J^y for J^x.
    """

    def at(t: float) -> tuple[Array, Array]:
        """w and the moments in observer axes."""
        x = angles + rates * t + 0.5 * accelerations * t * t
        turns = [_turn(k, float(x[k])) for k in range(3)]
        u = rates + accelerations * t
        w = u[2] * np.eye(3)[2] + turns[2] @ (u[1] * np.eye(3)[1] + turns[1] @ (u[0] * np.eye(3)[0]))
        R = turns[2] @ turns[1] @ turns[0]
        return w, R @ J @ R.T

    def products(t: float) -> float:
        w, moments = at(t)
        return float(-w @ (moments - np.diag(np.diag(moments))) @ w / 2.0)

    step = 1e-5
    w, moments = at(0.0)
    e = (at(step)[0] - at(-step)[0]) / (2.0 * step)
    if not slip:
        return float(w @ moments @ e)
    polar = np.diag(moments)[[1, 1, 2] if slip == "printed" else [0, 1, 2]]
    return float(np.sum(polar * w * e)) - (products(step) - products(-step)) / (2.0 * step)


def _turn(axis: int, angle: float) -> Array:
    """Rotation about a coordinate axis."""
    c, s, out = np.cos(angle), np.sin(angle), np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s
    return out


def torque_of_gravity(robot: Robot, q: Array, step: float, printed: bool = False) -> Array:
    """Derivative of g = -sum l^T F by q, (nv, nv), in link axes by central differences.

    printed: F as it stands, so that l alone is differentiated, Zaremba's (4.2).
    """

    bodies = [x for x in robot.model.links[1:] if x.inertial]

    def forces(x: Array) -> list[Array]:
        out = []
        for link in bodies:
            inertial = link.inertial
            assert inertial is not None
            force = inertial.mass * robot.pose(x, link.name)[:3, :3].T @ np.array(robot.model.gravity)
            out.append(np.r_[force, np.cross(inertial.com, force)])
        return out

    held = forces(q)

    def torque(x: Array) -> Array:
        at = held if printed else forces(x)
        moments = [robot.jacobian(x, link.name, frame="local").T @ F for link, F in zip(bodies, at)]
        return np.asarray(-np.sum(moments, 0))

    steps = step * np.eye(robot.nv)
    return np.stack([(torque(q + h) - torque(q - h)) / (2.0 * step) for h in steps], -1)
