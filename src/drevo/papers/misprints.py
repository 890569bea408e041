"""Formulas of the papers in NumPy, as corrected and as printed, for what a misprint changes."""

from __future__ import annotations

import numpy as np

from ..io.given import Array
from ..mechanics.tree import build_tree
from ..robot.face import Robot


def kovalchuk_bias(robot: Robot, q: Array, v: Array, slip: str = "") -> Array:
    """H by the recursion in link axes, (nv,): base to tips omega, eps, a, tips to base f_i, M_i.

    slip: "lever", the moment of phi about the joint of the first child; "turn", J eps + omega x J omega not turned
    into the axes of the parent; "fork", phi counted once for each child.
    """
    tree = build_tree(robot.model)
    n, columns, places = len(tree), [], []
    for b, placed in zip(tree.bodies, tree.placements(q.tolist())):
        places.append((np.array([list(row) for row in placed.rotation], float), np.array(list(placed.p), float)))
        columns.append([np.array([*s.w, *s.v], float) * b.factor for s in tree.motion_subspace(b)])
    w, e, a = (np.zeros((n, 3)) for _ in range(3))
    for i, b in enumerate(tree.bodies):
        R, p = places[i]
        up = b.parent
        w0, e0, a0 = (
            (w[up], e[up], a[up]) if up >= 0 else (np.zeros(3), np.zeros(3), -np.array(list(tree.gravity)))
        )
        rate = sum(s * v[b.v + k] for k, s in enumerate(columns[i]))
        spin, slide = R.T @ w0, rate[3:]
        w[i] = spin + rate[:3]
        e[i] = R.T @ e0 + np.cross(spin, rate[:3])
        a[i] = R.T @ (a0 + np.cross(e0, p) + np.cross(w0, np.cross(w0, p))) + 2.0 * np.cross(spin, slide)
        a[i] += np.cross(rate[:3], slide)
    f, M, tau = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(robot.nv)
    for i in range(n - 1, -1, -1):
        b = tree.bodies[i]
        R, p = places[i]
        children = [k for k in range(n) if tree.bodies[k].parent == i]
        m, h = float(b.inertia.m), np.array(list(b.inertia.h), float)
        c = h / m if m else 0.0 * h
        S = np.array(b.inertia.shifted(-b.inertia.h * (1.0 / m) if m else -b.inertia.h).J.mat, float)
        phi = m * (a[i] + np.cross(e[i], c) + np.cross(w[i], np.cross(w[i], c)))
        inner = S @ e[i] + np.cross(w[i], S @ w[i])
        lever = c - places[children[0]][1] if slip == "lever" and children else c
        f[i] += phi * (len(children) if slip == "fork" else 1)
        M[i] += np.cross(lever, phi) + (R.T @ inner if slip == "turn" else inner)
        for k, s in enumerate(columns[i]):
            tau[b.v + k] += s[:3] @ M[i] + s[3:] @ f[i]
        if b.parent >= 0:
            f[b.parent] += R @ f[i]
            M[b.parent] += R @ M[i] + np.cross(p, R @ f[i])
    return tau


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
