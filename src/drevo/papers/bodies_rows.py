"""Numbered formulas of the slides and of Kovalchuk: bodies one by one, from motions and reactions of links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..io.given import Array
from ..robot.face import Robot
from ..robots import model
from .rows import CheckedFormula, agreeing, example, misprint, random_states, relative_error


class SeparateBody(NamedTuple):
    """A body of the slides about its centre of mass, base axes, linear parts before angular ones.

    M (6, 6), Q (6,), R (6,): what its base exerts on it; C (6, 6), S (6,), rest (6,) of a = C a' + S q'' + rest.
    """

    M: Array
    Q: Array
    R: Array
    C: Array
    S: Array
    rest: Array
    a: Array


def _skew(x: Array) -> Array:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def separate_body(robot: Robot, q: Array, v: Array, a: Array, link: str, base: str) -> SeparateBody:
    """A body on its base at one state."""
    inertials = {x.name: x.inertial for x in robot.model.links}
    one, other = (inertials[name] for name in (link, base))
    assert one is not None and other is not None
    T = robot.pose(q, link)
    arm = T[:3, :3] @ one.com
    rho = T[:3, 3] + arm - (robot.pose(q, base) @ [*other.com, 1.0])[:3]
    J = T[:3, :3] @ np.array(one.tensor) @ T[:3, :3].T
    w = robot.velocity(q, v, link)[3:]
    M = np.block([[one.mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), J]])
    Q = np.r_[one.mass * np.array(robot.model.gravity), -np.cross(w, J @ w)]
    at = [x.child for x in robot.model.moving_joints].index(link)
    F, moment = np.split(robot.joint_wrenches(q, v, a)[at], 2)
    C = np.block([[np.eye(3), -_skew(rho)], [np.zeros((3, 3)), np.eye(3)]])
    S = robot.jacobian(q, link, point=one.com)[:, at]

    def moved(x: Array) -> tuple[Array, Array]:
        motions = ((link, one), (base, other))
        mine, under = (robot.acceleration(q, v, x, name, point=body.com) for name, body in motions)
        return mine, under

    still, under = moved(0.0 * a)
    return SeparateBody(M, Q, np.r_[F, moment - np.cross(arm, F)], C, S, still - C @ under, moved(a)[0])


def slides_numbered() -> Iterator[CheckedFormula]:
    """(1)-(16), (22), (26): the last body of an arm, and the one before it."""
    robot = example("two-arm-spatial")
    q, v, a = (x[0] for x in random_states(robot, 3))
    links = robot.link_names[2:5]
    last, before = (separate_body(robot, q, v, a, links[k], links[k - 1]) for k in (2, 1))
    tau = robot.inverse_dynamics(q, v, a)[3]
    scale = float(np.abs(last.R).max())
    rest = last.Q - last.M @ (last.C @ before.a + last.rest)
    call, through = "robot.acceleration(q, v, a, link, point=com)", "robot.joint_wrenches(q, v, a)"
    U = last.S @ last.M @ last.S
    forward = "robot.forward_dynamics(q, v, tau)"
    motion = last.C @ before.a + last.S * a[3] + last.rest
    on_base = before.Q + before.R - last.C.T @ last.R
    rows: tuple[tuple[str, str, str, Any, Any], ...] = (
        ("(1), (15)", "M a = Q + R of the last body", through, last.M @ last.a, last.Q + last.R),
        ("(3), (16)", "M a = Q + R + R* of its base, R* = -C' R", through, before.M @ before.a, on_base),
        ("(4), (14)", "a = C a' + S q'' + rest", call, motion, last.a),
        ("(6), (7)", "S' M a = S' (Q + R)", through, last.S @ last.M @ motion, last.S @ (last.Q + last.R)),
        ("(8), (10)", "q'' = U^-1 S' (Q + R - M (C a' + rest))", through, last.S @ (rest + last.R) / U, a[3]),
        ("(9)", "S' R = tau, 0 without a drive", through, last.S @ last.R, tau),
        ("(11), (13)", "q'' = U^-1 (S' (Q - M (C a' + rest)) + tau)", forward, (last.S @ rest + tau) / U, a[3]),
        ("(12)", "U = S' M S of the last body", "robot.mass_matrix(q)", U, robot.mass_matrix(q)[3, 3]),
    )
    for formula, says, of, got, want in rows:
        yield agreeing(formula, of, "the other side, at random states", relative_error(got, want), says=says)
    slips = (
        ("(3)", "R* with a plus", before.M @ before.a - (before.Q + before.R + last.C.T @ last.R)),
        ("(6)", "S' M a = Q + R, for S' (Q + R)", last.S @ last.M @ last.a - last.Q - last.R),
        ("(9)", "S' R = 0 of a joint with a drive", last.S @ last.R),
    )
    for formula, says, off in slips:
        yield misprint(formula, through, "0", float(np.abs(off).max()) / scale, says=says)
    yield from _in_the_plane()


def _in_the_plane() -> Iterator[CheckedFormula]:
    """(22)-(28) of two rods, term by term."""
    robot = example("two-arm-planar")
    q, v, a = (x[0] for x in random_states(robot, 3))
    links = robot.link_names[1:4]
    b = separate_body(robot, q, v, a, links[2], links[1])
    under = robot.acceleration(q, v, a, links[1], point=robot.model.links[2].inertial.com)  # type: ignore[union-attr]
    plane = [0, 1, 5]
    joint = robot.pose(q, links[2])[:2, 3]
    ends = [(robot.pose(q, x) @ [*y.inertial.com, 1.0])[:2] for x, y in zip(links[1:], robot.model.links[2:4])]  # type: ignore[union-attr]
    before, outer = joint - ends[0], joint - ends[1]  # A_{k-1} c_{k-1,k} and A_k c_kk
    back = np.array([[0.0, 1.0], [-1.0, 0.0]])
    rates = [robot.velocity(q, v, x)[5] for x in links[1:]]
    C = np.array(
        [[1.0, 0.0, *(back @ (outer - before))[:1]], [0.0, 1.0, *(back @ (outer - before))[1:]], [0.0, 0.0, 1.0]]
    )
    S = np.r_[back @ outer, 1.0]
    relative = rates[1] - rates[0]
    rest = np.r_[-before * rates[0] ** 2 + outer * (rates[0] ** 2 + 2.0 * relative * rates[0] + relative**2), 0.0]
    call, against = "papers.separate_bodies_program(robot)", "robot.acceleration, robot.jacobian"
    for formula, says, got, want in (
        ("(22)", "C_k: acceleration of the base carried over", C, b.C[np.ix_(plane, plane)]),
        ("(23), (26)", "a = C a' + S q'' + rest", C @ under[plane] + S * a[2] + rest, b.a[plane]),
        ("(24), (25)", "S_k: acceleration of the joint alone", S, b.S[plane]),
        ("(27), (28)", "a'_k: acceleration of rates alone, c in base axes", rest, b.rest[plane]),
    ):
        yield agreeing(formula, call, against, relative_error(got, want), says=says)


def trees_numbered() -> Iterator[CheckedFormula]:
    """Kovalchuk's (4), (5) and what follows them, base axes; index functions; a trunk that cannot turn."""
    robot = Robot(model("biped", base="trunk"))
    q, v, a = (x[0] for x in random_states(robot, 3))
    q = 0.3 * q
    joints = robot.model.moving_joints
    still = np.zeros(3)
    base = (still, still, still, still)
    motions = {joints[0].parent: base}
    at = {joints[0].parent: still}
    got, want = [], []
    for k, j in enumerate(joints):
        w0, e0, v0, a0 = motions[j.parent]
        T = robot.pose(q, j.child)
        z, r = T[:3, :3] @ np.array(j.axis), T[:3, 3] - at[j.parent]
        turning = float(j.kind != "prismatic")
        w, e = w0 + turning * z * v[k], e0 + turning * (z * a[k] + np.cross(w0, z) * v[k])
        slip = (1.0 - turning) * z
        speed = v0 + np.cross(w0, r) + slip * v[k]
        gain = a0 + np.cross(e0, r) + np.cross(w0, np.cross(w0, r)) + slip * a[k] + 2.0 * np.cross(w0, slip * v[k])
        motions[j.child], at[j.child] = (w, e, speed, gain), T[:3, 3]
        V, A = robot.velocity(q, v, j.child), robot.acceleration(q, v, a, j.child)
        got.append((w, e, speed, gain))
        want.append((V[3:], A[3:], V[:3], A[:3]))
    call = "robot.velocity(q, v, link), robot.acceleration(q, v, a, link)"
    for k, (formula, says) in enumerate((
        ("(4)", "omega_i of every link, base axes"), ("after (4)", "eps_i of every link, base axes"),
        ("(5)", "v_i,j of every link, base axes"), ("after (5)", "a_i,j of every link, base axes"),
    )):  # fmt: skip
        error = relative_error([x[k] for x in got], [x[k] for x in want])
        yield agreeing(formula, call, "the recursion of the paper", error, says=says)
    yield from _index_functions(robot)


def _index_functions(robot: Robot) -> Iterator[CheckedFormula]:
    """Each of the paper's functions, followed along the parents."""
    t = robot.topology
    slides = {j.child for j in robot.model.joints if j.kind in ("prismatic", "fixed")}
    n = range(1, len(t.parent))
    lines = {i: [i] for i in n}
    for i in n:
        while lines[i][-1]:
            lines[i].append(int(t.parent[lines[i][-1]]))
    inside = {i: [k for k in n if i in lines[k]] for i in n}
    wrong = {
        "f, Gamma: parent and children": sum([*t.Gamma(i)] != [k for k in n if t.f(k) == i] for i in n),
        "dg+: number of children": sum(t.dg(i) != len(t.Gamma(i)) for i in n),
        "s, ns: the k-th child and its place": sum(t.s(t.f(i), t.ns(i)) != i for i in n if t.f(i)),
        "nan, an: number of ancestors, the j-th from the root": sum(
            t.an(i, j + 1) != k for i in n for j, k in enumerate(reversed([x for x in lines[i][1:] if x]))),
        "D: reachable links": sum(bool(t.D[i][k]) != (k in lines[i]) for i in n for k in n),
        "Dnum, Dnum_k: order of a tree and of a subtree, depth first": sum(
            t.Dnum(k) != t.Dnum(i) + at for i in n for at, k in enumerate(t.subtree(i))),
        "L: all links": sum({*t.subtree(i)} != {*inside[i]} for i in n),
        "sigma: hinge or slide": sum(t.sigma(i) != (t.names[i] not in slides) for i in n),
    }  # fmt: skip
    for says, count in wrong.items():
        yield agreeing("index functions", "robot.topology", "parents, followed", float(count), says=says)
