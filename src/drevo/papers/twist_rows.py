"""Zaremba's numbered formulas, from poses and columns of Jacobians of a chain of hinges and a slide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ..io.given import Array
from ..robot.face import Robot
from .rows import BY_DIFFERENCES, CheckedFormula, agreeing, central_differences, example, misprint, random_states
from .rows import relative_error as off


def angled(x: Any) -> Array:
    """<x> of three numbers, or of six, linear before angular: (1.6)."""
    if len(x) == 3:
        return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])
    zero = np.zeros((3, 3))
    return np.asarray(np.block([[angled(x[3:]), zero], [angled(x[:3]), angled(x[3:])]]))


class TwistsOfChain:
    """The paper's letters for a chain at one q: links and joints 1..n, 0 is the base."""

    def __init__(self, robot: Robot, q: Array) -> None:
        self.robot, self.x = robot, q
        self.joints = robot.model.moving_joints
        self.links = [self.joints[0].parent, *(j.child for j in self.joints)]
        self.n = len(self.joints)

    def f(self, i: int) -> Array:
        """The unit twist of joint i in the axes of link i."""
        axis = np.array(self.joints[i - 1].axis)
        slides = self.joints[i - 1].kind == "prismatic"
        return np.asarray(np.r_[axis, np.zeros(3)] if slides else np.r_[np.zeros(3), axis])

    def L(self, k: int, i: int) -> Array:
        """L_k^i: wrenches from the axes of link k to those of link i."""
        T = np.linalg.solve(self.robot.pose(self.x, self.links[i]), self.robot.pose(self.x, self.links[k]))
        C, O = T[:3, :3], T[:3, 3]
        return np.block([[C, np.zeros((3, 3))], [angled(O) @ C, C]])

    @cached_property
    def columns(self) -> list[Array]:
        """l_k^i of every link, (6, n)."""
        return [self.robot.jacobian(self.x, link, frame="local") for link in self.links]

    def column(self, k: int, i: int) -> Array:
        """(1.5): joint i in the axes of link k."""
        return np.asarray(self.columns[k][:, i - 1])

    def g(self, k: int, i: int) -> Array:
        """(1.5) for i >= k."""
        return np.asarray(self.L(k, i).T @ self.f(i)) if i >= k else np.zeros(6)

    def slope(self, k: int, i: int, *by: int) -> Array:
        """(1.16): derivative of l_k^i by coordinates whose numbers rise."""
        if any(not i < t <= k for t in by):
            return np.zeros(6)
        out = self.column(k, i)
        for t in by:
            out = angled(self.column(k, t)).T @ out
        return out

    def theta(self, k: int) -> Array:
        """(2.1): inertia of link k about its origin, (6, 6)."""
        body: Any = next(x.inertial for x in self.robot.model.links if x.name == self.links[k])
        m, r = body.mass, angled(np.array(body.com))
        return np.block([[m * np.eye(3), m * r.T], [m * r, np.array(body.tensor) + m * r @ r.T]])

    def theta_star(self, i: int, axes: int) -> Array:
        """(2.10), (2.12): inertia of links i to n, in other axes."""
        return sum(
            (self.L(k, axes) @ self.theta(k) @ self.L(k, axes).T for k in range(i, self.n + 1)), np.zeros((6, 6))
        )

    def christoffel(self, i: int, s: int, j: int, printed: bool = False) -> float:
        """(2.7), summed over links; printed: its last term as it stands."""
        total = 0.0
        for k in range(1, self.n + 1):
            l = {x: self.column(k, x) for x in (i, s, j)}
            d = {(x, y): self.slope(k, x, y) for x in (i, s, j) for y in (i, s, j)}
            T = self.theta(k)
            last = d[s, j] @ T @ d[i, i] if printed else l[s] @ T @ d[j, i]
            plus = l[i] @ T @ d[j, s] + d[i, s] @ T @ l[j] + d[s, j] @ T @ l[i] + l[s] @ T @ d[i, j]
            total += float(plus - d[s, i] @ T @ l[j] - last)
        return 0.5 * total


def twists_numbered() -> Iterator[CheckedFormula]:
    """(1.1)-(1.23), (2.1)-(2.16): those that have no row of their own elsewhere."""
    robot = example("stanford")
    q, v, a = (x[0] for x in random_states(robot, 3))
    c = TwistsOfChain(robot, q)
    yield from _kinematics(c, v, a)
    yield from _columns(c)
    yield from _second_kind(c)
    yield from _dynamics(c, v)


def _kinematics(c: TwistsOfChain, v: Array, a: Array) -> Iterator[CheckedFormula]:
    """(1.1), (1.2), (1.8), (1.9): turns, twists of the last link and their rates."""
    r, n, tip = c.robot, c.n, c.links[-1]
    first = r.pose(c.x, c.links[1])[:3, :3]
    turn, angle = first @ r.pose(0.0 * c.x, c.links[1])[:3, :3].T, float(c.x[0])
    K = angled(first @ c.f(1)[3:])
    plain = np.eye(3) + (1.0 - np.cos(angle)) * K @ K
    call, against = "robot.pose(q, link)", "the turn of the first hinge"
    said = "a turn by its axis and angle"
    yield agreeing("(1.1)", call, against, off(plain + np.sin(angle) * K, turn), says=said)
    said = "sin alpha alpha <e>, for sin alpha <e>"
    yield misprint("(1.1)", call, against, off(plain + np.sin(angle) * angle * K, turn), says=said)
    columns = [c.column(n, i) for i in range(1, n + 1)]
    V = sum(l * x for l, x in zip(columns, v))
    turning = [angled(l) * x for l, x in zip(columns, v)]
    Phi = [sum(turning[i:], np.zeros((6, 6))) for i in range(1, n + 1)]
    gain = sum(l * x for l, x in zip(columns, a))
    rates, printed = (
        sum((P.T if turned else P) @ l * x for P, l, x in zip(Phi, columns, v)) for turned in (True, False)
    )
    call = "robot.acceleration(q, v, a, link, frame='local', kind='spatial')"
    local = r.acceleration(c.x, v, a, tip, frame="local", kind="spatial")
    twist = r.velocity(c.x, v, tip, frame="local")
    yield agreeing(
        "(1.2), (1.9)", "robot.velocity(frame='local')", "the link's twist", off(V, twist), says="V = sum of l q'"
    )
    said = "V'* = sum of l q'' + Phi' l q'"
    yield agreeing("(1.2), (1.9)", call, "rate of the link's twist", off(gain + rates, local), says=said)
    said = "Phi l q', for Phi' l q'"
    yield misprint("(1.2)", call, "rate of the link's twist", off(gain + printed, local), says=said)
    yield agreeing("(1.8)", call, "<V>", off(Phi[0] + turning[0], angled(V)), says="Phi = sum of <l> q'")
    yield from _relative(c, v)


def _relative(c: TwistsOfChain, v: Array) -> Iterator[CheckedFormula]:
    """(1.3)-(1.7), (1.10), (1.11): twists of one link against another, and their matrices."""
    r, n, tip, (near, far) = c.robot, c.n, c.links[-1], (c.links[2], c.links[5])

    def back(rates: Array) -> Array:
        """V of link 2 against link 5."""
        return np.asarray(r.velocity(c.x, rates, near, relative_to=far, frame="local"))

    forth = r.velocity(c.x, v, far, relative_to=near, frame="local")
    by_g = -sum((c.g(2, i) * v[i - 1] for i in range(3, 6)), np.zeros(6))
    unit = [r.velocity(c.x, e, tip, frame="local") for e in np.eye(n)]
    x, y = np.random.default_rng(7).normal(size=(2, 6))
    bracket, carried = angled(x) @ angled(y) - angled(y) @ angled(x), c.L(5, 2)
    call = "robot.velocity(q, v, link, relative_to=other, frame='local')"
    for formula, says, got, want in (
        ("(1.3)", "V of one link against another, and back", -carried.T @ back(v), forth),
        ("(1.4), (1.9)", "V for k < j, by g", by_g, back(v)),
        ("(1.5)", "l = L' f, g = L' f", [c.L(n, i).T @ c.f(i) for i in range(1, n + 1)], c.columns[n].T),
        ("(1.6)", "<f>' f = 0", angled(x).T @ x + 1.0, np.ones(6)),
        ("(1.7)", "<a> <b> - <b> <a> = -< <a>' b >", bracket, -angled(angled(x).T @ y)),
        ("(1.7)", "<L' f> = L^-1 <f> L", angled(carried.T @ x), np.linalg.solve(carried, angled(x) @ carried)),
        ("(1.10)", "l is the derivative of V by q'", unit, c.columns[n].T),
        ("(1.11)", "g is minus the derivative of V by q', k < j", [-back(e) for e in np.eye(n)[2:5]],
         [c.g(2, i) for i in (3, 4, 5)]),
    ):  # fmt: skip
        yield agreeing(formula, call, "twists of links", off(got, want), says=says)


def _along(c: TwistsOfChain, f: Callable[[TwistsOfChain], Array]) -> Array:
    """Derivatives of a function of q by differences, last axis."""
    return central_differences(lambda q: f(TwistsOfChain(c.robot, q)), c.x)


def _columns(c: TwistsOfChain) -> Iterator[CheckedFormula]:
    """(1.12)-(1.18): theorem 1."""
    n, call = c.n, "compile(robot, 'jacobian', wrt='q')"
    slopes = _along(c, lambda x: x.column(n, 2))
    first = np.stack([c.slope(n, 2, t) for t in range(1, n + 1)], -1)
    error = off(first, slopes)
    yield agreeing(
        "(1.12), (1.14)", call, "differences of l", error, BY_DIFFERENCES, says="derivative of l by one coordinate"
    )
    L = _along(c, lambda x: x.L(4, 3))[..., 3]
    error = off(c.L(4, 3) @ angled(c.f(4)), L)
    yield agreeing(
        "(1.13)",
        "robot.pose(q, link, relative_to=other)",
        "differences of L",
        error,
        BY_DIFFERENCES,
        says="derivative of L_t^(t-1)",
    )
    for by in ((3, 4), (4, 4), (3, 4, 6)):
        slopes = _along(c, lambda x: x.slope(n, 2, *by[:-1]))[..., by[-1] - 1]  # noqa: B023
        error = off(c.slope(n, 2, *by), slopes)
        yield agreeing(
            "(1.15)-(1.18)",
            call,
            "differences of the order before",
            error,
            BY_DIFFERENCES,
            says=f"theorem 1, by {by}",
        )


def _second_kind(c: TwistsOfChain) -> Iterator[CheckedFormula]:
    """(1.19)-(1.23): theorem 2."""
    call = "robot.jacobian(q, link, relative_to=other)"
    back = _along(c, lambda x: x.L(3, 4))[..., 3]
    error = off(-angled(c.f(4)) @ c.L(3, 4), back)
    yield agreeing(
        "(1.19), (1.20)",
        "robot.pose(q, link, relative_to=other)",
        "differences of L",
        error,
        BY_DIFFERENCES,
        says="derivative of L_(t-1)^t",
    )
    slopes = _along(c, lambda x: x.g(2, 6))
    once = [-angled(c.g(2, t)).T @ c.g(2, 6) for t in (3, 4, 5)]
    yield agreeing(
        "(1.23)",
        call,
        "differences of g",
        off(once, slopes[:, 2:5].T),
        BY_DIFFERENCES,
        says="derivative of g by one coordinate",
    )
    first = lambda x: -angled(x.g(2, 5)).T @ x.g(2, 6)  # noqa: E731
    twice = angled(c.g(2, 4)).T @ angled(c.g(2, 5)).T @ c.g(2, 6)
    error = off(twice, _along(c, first)[:, 3])
    yield agreeing(
        "(1.21), (1.22)",
        call,
        "differences of the order before",
        error,
        BY_DIFFERENCES,
        says="theorem 2, second order, k < t_1",
    )


def _dynamics(c: TwistsOfChain, v: Array) -> Iterator[CheckedFormula]:
    """(2.1)-(2.16)."""
    r, n, every = c.robot, c.n, range(1, c.n + 1)
    M, call = r.mass_matrix(c.x), "write_out(robot, ..., formalism='zaremba', sequence='paper')"
    A = [[sum(c.column(k, i) @ c.theta(k) @ c.column(k, j) for k in every) for j in every] for i in every]
    stars = [np.zeros((6, 6)), *(c.theta_star(i, i) for i in every)]

    def element(i: int, j: int, second: int) -> float:
        """(2.9) with the unit twist of a joint in its second term."""
        return float(c.f(i) @ stars[i] @ c.column(i, j) if j <= i else c.column(j, i) @ stars[j] @ c.f(second))

    by_stars = [[element(i, j, j) for j in every] for i in every]
    printed = [[element(i, j, i) for j in every] for i in every]
    down = [r.pose(c.x, link)[:3, :3].T @ np.array(r.model.gravity) for link in c.links]
    F = [c.theta(k)[:, :3] @ down[k] if k else np.zeros(6) for k in range(n + 1)]
    f_g = [sum(c.column(k, i) @ F[k] for k in range(i, n + 1)) for i in every]
    moment = [[c.christoffel(i, s, j) for s in every for j in every] for i in every]
    pairs = np.outer(v, v).ravel()
    as_printed = [[c.christoffel(i, s, j, True) for s in every for j in every] for i in every]
    h = r.bias(c.x, v) - r.gravity(c.x)
    slope = _along(c, lambda x: x.theta_star(2, 2))
    by_11 = angled(c.g(2, 4)) @ c.theta_star(4, 2)
    by_11 = by_11 + by_11.T
    slip = angled(c.g(2, 4)) @ stars[2]
    third = _along(c, lambda x: _order_2(x))[..., 2]
    carried = c.L(4, 2) @ stars[4] @ c.L(4, 2).T
    for formula, says, got, want, limit in (
        ("(2.1)", "kinetic energy", 0.5 * v @ np.array(A) @ v, r.kinetic_energy(c.x, v), 1e-9),
        ("(2.3), (2.4), (2.8)", "work of gravity: f_g", f_g, -r.gravity(c.x), 1e-9),
        ("(2.5), (2.7)", "products of rates, by all links", np.array(moment) @ pairs, h, 1e-9),
        ("(2.6)", "a_ij, by all links", A, M, 1e-9),
        ("(2.9), (2.10)", "a_ij, by Theta*", by_stars, M, 1e-9),
        ("(2.11)", "theorem 3: derivative of Theta*", by_11, slope[..., 3], BY_DIFFERENCES),
        ("(2.12)", "Theta* of a part in other axes", c.theta_star(4, 2), carried, 1e-9),
        ("(2.13)", "second derivative of Theta*", _order_2_again(c), third, BY_DIFFERENCES),
        ("(2.14), (2.15)", "A q'' + b = Q", M @ v + r.bias(c.x, v), r.inverse_dynamics(c.x, v, v), 1e-9),
    ):
        yield agreeing(formula, call, "the robot's own quantities, differences", off(got, want), limit, says=says)
    for formula, says, wrong, right in (
        ("(2.7)", "last term (l^s)^j Theta (l^i)^i, for l^s Theta (l^j)^i", np.array(as_printed) @ pairs, h),
        ("(2.9)", "f^i in the second term, for f^j", printed, M),
        ("(2.11)", "Theta_i^i* on the right, for Theta_i^s*", slip + slip.T, slope[..., 3]),
    ):  # fmt: skip
        yield misprint(formula, call, "the robot's own quantities", off(wrong, right), says=says)


def _order_2(c: TwistsOfChain) -> Array:
    """(Theta_2^2*)^4 by (2.11)."""
    half = angled(c.g(2, 4)) @ c.theta_star(4, 2)
    return np.asarray(half + half.T)


def _order_2_again(c: TwistsOfChain) -> Array:
    """(2.13): its derivative by q_3, coordinates in the order of falling numbers."""
    half = angled(c.g(2, 3)) @ _order_2(c)
    return np.asarray(half + half.T)
