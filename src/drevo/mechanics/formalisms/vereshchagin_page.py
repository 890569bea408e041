"""Vereshchagin's method of separate bodies as the slides write it, (1)-(21) with errata applied, line by line.

Accelerations w and forces are six numbers at the centre of mass in base axes, linear before angular.
"""

from __future__ import annotations

from typing import NamedTuple

from ..scalar import Scalar, Vector
from ..tree import Tree
from .written import EYE3, JointLines, Page, Worded, by_blocks, of_all, written_sum, zeros_of

CENTRE_TO_JOINT = "from the centre of mass of the first body to the joint of the second, base axes, m"


class CutBody(NamedTuple):
    """One body cut free: its turn, rate, centre of mass, and C, S, a', M, Q of (2), (4), (5)."""

    A: Worded
    omega: Worded
    r: Worded
    C: Worded
    S: Worded
    bias: Worded
    M: Worded
    Q: Worded


def forward_dynamics(tree: Tree, q: Vector, v: Vector, tau: Vector) -> list[Scalar]:
    """Accelerations, (nv,)."""
    page = Page(tree, "Vereshchagin")
    joints, n = of_all(page, q), len(tree)
    page.section("given")
    g = page.given("g", tree.gravity, "acceleration of gravity, base axes, m/s²")
    cut: list[CutBody] = []
    for j in joints:
        cut.append(_cut(page, j, cut, v, g))
    M, Q, U = [x.M for x in cut], [x.Q for x in cut], [zeros_of(1)] * n
    drives = [j.of("tau", tau) for j in joints]
    passed: list[tuple[Worded, Worded]] = [(zeros_of(6, 6), zeros_of(6))] * n
    for i in reversed(range(n)):
        page.link(joints[i].body, "inwards, body")
        behind = [(cut[c.i].C, *passed[c.i]) for c in joints if c.up == i]
        M[i], Q[i], U[i] = _inwards(page, joints[i], cut[i], behind)
        if joints[i].up >= 0:
            passed[i] = _passed(page, joints[i], cut[i], M[i], Q[i], U[i], drives[i])
    out: list[Scalar] = [0.0] * tree.nv
    w: list[Worded] = []
    for i, (j, x) in enumerate(zip(joints, cut)):
        page.link(j.body, "outwards, body")
        carried = x.C @ w[j.up] if j.up >= 0 else zeros_of(6)
        rest = x.S.T @ (Q[i] - M[i] @ (carried + x.bias)) + drives[i]
        a = page.define(f"a_{j.n}", U[i].inverse() @ rest, "(20)", "joint acceleration, rad/s² or m/s²")
        said = "acceleration of a centre of mass and angular one, m/s² and rad/s²"
        w.append(page.define(f"w_{j.n}", carried + x.S @ a + x.bias, "(4), (21)", said))
        number = "(16)" if any(c.up == i for c in joints) else "(1), (15)"
        said = "force and moment of a joint's reaction, N and N m"
        page.says(f"R_{j.n}", f"M_{j.n}^star w_{j.n} - Q_{j.n}^star", number, said)
        for k in range(j.body.nv):
            out[j.body.v + k] = a.rows[k][0] * (j.body.factor if j.body.nv == 1 else 1.0)
    return out


def _cut(page: Page, j: JointLines, cut: list[CutBody], v: Vector, g: Worded) -> CutBody:
    """(2), (5) and the accelerations that rates alone cause."""
    page.link(j.body, "kinematics of body")
    n, up = j.n, cut[j.up] if j.up >= 0 else None
    E = up.A if up else Worded(EYE3.rows, ("1",))
    A0 = page.define(f"B_{n}", E @ j.turned(), "", "turn of a joint's frame against the base, no unit")
    A = page.define(f"A_{n}", A0 @ j.turn(), "", "turn of a body against the base, no unit")
    turning, sliding = j.columns()
    c, J = j.centre()
    before = page.define(
        f"c_{j.p}_{n}",
        E @ (j.offset() - (up.r if up else zeros_of(3))) + A0 @ j.shift(),
        "",
        CENTRE_TO_JOINT,
    )
    after = page.define(f"c_{n}_{n}", -(A @ c), "", CENTRE_TO_JOINT)
    rho = page.define(f"rho_{n}", before - after, "", "from the centre of mass of a body's base to its own, m")
    e = page.define(f"e_{n}", A @ turning, "", "axes about which a joint turns, base axes, no unit")
    d = page.define(
        f"d_{n}", A @ sliding, "", "axes along which a joint shifts by a unit rate, base axes, m or no unit"
    )
    rate = j.of("v", v)
    base = up.omega if up else zeros_of(3)
    omega = page.define(f"omega_{n}", base + e @ rate, "", "angular velocity of a body, base axes, rad/s")
    C = page.define(
        f"C_{n}",
        by_blocks([[EYE3, -rho.skew()], [zeros_of(3, 3), EYE3]]),
        "(5)",
        "carries an acceleration from a body's base, no unit and m",
    )
    S = page.define(
        f"S_{n}",
        by_blocks([[d + after.skew() @ e], [e]]),
        "(25)",
        "joint map: motion by a unit rate of the joint, m and no unit",
    )
    bias = _by_rates(page, n, base, omega, before, after, e @ rate, d @ rate)
    M, Q = _inertia_and_force(page, j, A @ J @ A.T, omega, g)
    return CutBody(A, omega, c, C, S, bias, M, Q)


def _by_rates(
    page: Page,
    n: str,
    base: Worded,
    omega: Worded,
    before: Worded,
    after: Worded,
    turning: Worded,
    sliding: Worded,
) -> Worded:
    """(27), (28): a' of a body with the angular velocity omega on a base that turns by its own."""
    alpha = page.define(f"alpha_{n}", base.cross(turning), "", "angular acceleration by rates alone, rad/s²")
    linear = base.cross(base.cross(before)) - omega.cross(omega.cross(after)) - alpha.cross(after)
    linear = linear + (base + omega).cross(sliding)
    linear = page.define(f"b_{n}", linear, "", "acceleration of a centre of mass by rates alone, m/s²")
    return page.define(
        f"a_{n}^prime",
        by_blocks([[linear], [alpha]]),
        "(27), (28)",
        "acceleration of a body by rates alone, its base at rest, m/s² and rad/s²",
    )


def _inertia_and_force(page: Page, j: JointLines, J: Worded, omega: Worded, g: Worded) -> tuple[Worded, Worded]:
    """(2), and Q of (1)."""
    n = j.n
    m = j.mass()
    turned = page.define(f"J_{n}", J, "", "inertia about the centre of mass, base axes, kg m²", True)
    M = page.define(
        f"M_{n}",
        by_blocks([[m @ EYE3, zeros_of(3, 3)], [zeros_of(3, 3), turned]]),
        "(2)",
        "inertia of a body, kg and kg m²",
    )
    Q = page.define(
        f"Q_{n}",
        by_blocks([[m @ g], [-omega.cross(turned @ omega)]]),
        "(1)",
        "active force and moment on a body, N and N m",
    )
    return M, Q


def _inwards(
    page: Page, j: JointLines, own: CutBody, behind: list[tuple[Worded, Worded, Worded]]
) -> tuple[Worded, Worded, Worded]:
    """(12), (17)-(19): M*, Q* and U of a body from what those behind it pass."""
    n, said = j.n, "a body with all that it carries"
    inertia = written_sum((C.T @ N @ C for C, N, _ in behind), own.M)
    force = own.Q - written_sum((C.T @ G for C, _, G in behind), zeros_of(6))
    whole = page.define(
        f"M_{n}^star", inertia, "(17)", f"inertia of {said}, their drives given, kg, kg m, kg m²", True
    )
    forced = page.define(f"Q_{n}^star", force, "(18)", f"force and moment on {said}, N and N m")
    felt = own.S.T @ whole @ own.S
    if j.body.nv == 1:
        felt = felt + j.rotor()
    return (
        whole,
        forced,
        page.define(f"U_{n}", felt, "(12), (19)", "inertia that a joint feels, kg m² or kg", True),
    )


def _passed(
    page: Page,
    j: JointLines,
    own: CutBody,
    M: Worded,
    Q: Worded,
    U: Worded,
    drive: Worded,
) -> tuple[Worded, Worded]:
    """The parts of (17) and (18) that stand between C^T and C: what a body passes to its base."""
    S, bias = own.S, own.bias
    inertia = M - M @ S @ U.inverse() @ S.T @ M
    effort = S.T @ (Q - M @ bias) + drive
    force = M @ (S @ U.inverse() @ effort + bias) - Q
    return (
        page.define(f"N_{j.n}", inertia, "(17)", "inertia that a body passes to its base, kg, kg m, kg m²", True),
        page.define(
            f"G_{j.n}", force, "(18)", "force and moment that a body takes from its base, joints free, N and N m"
        ),
    )
