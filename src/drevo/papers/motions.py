"""Formulas of Alyushin and Zaremba, computed and compared; misprints with what they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..constraint import point_on_plane
from ..io.given import Array
from ..loads import Span, accuracy, rod, section_loads
from ..mechanics.formalisms.alyushin import kinetic_energy, rigid_body_energy
from ..mechanics.scalar import sin
from ..mechanics.tree import build_tree
from ..particles import link_particles, sliding, superposed, turning
from ..robot.builder import Builder
from ..robot.compiling import compile
from ..robot.face import Robot
from ..robots import rod_chain
from .misprints import power_of_rotation, torque_of_gravity
from .rows import (
    BY_DIFFERENCES,
    DIFFERENCE_STEP,
    SAMPLED_STATES,
    CheckedFormula,
    agreeing,
    central_differences,
    example,
    misprint,
    random_states,
    relative_error,
)


def alyushin_rows() -> Iterator[CheckedFormula]:
    robot = example("screw-arm")
    q, v, a = random_states(robot, 3)
    turns = robot.pose(q, robot.link_names[-1])[..., :3, :3]
    yield agreeing(
        "(44), (46): det = 1", "robot.pose(q, link)", "det(dx/dX) = 1", relative_error(np.linalg.det(turns), 1.0)
    )
    want = 0.5 * np.einsum("...i,...ij,...j", v, robot.mass_matrix(q), v)
    yield agreeing(
        "(40): energy of a robot",
        "robot.kinetic_energy(q, v)",
        "v M v / 2",
        relative_error(robot.kinetic_energy(q, v), want),
    )
    power = np.sum(robot.inverse_dynamics(q, v, a) * v, -1)
    rates = _energy_rate(robot, q, v, a)
    yield agreeing(
        "W_e = W_k + W_p",
        "robot.inverse_dynamics(q, v, a) v",
        "differences of the energy",
        relative_error(power, rates),
        BY_DIFFERENCES,
    )
    box = np.diag([0.0417, 0.1417, 0.1667])
    turned = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    energy = rigid_body_energy(10.0, np.zeros(3), box, turned, np.zeros(3), np.array([0.0, 0.0, 3.0]), mode="C")
    said = "constant polar moments, a box turned by 90 degrees"
    off = energy.error / energy.exact
    yield misprint("(28), (37): polar moments constant", "rigid_body_energy(..., mode='C')", said, off)
    yield from _modes_and_powers(robot, q, v, a)


def _modes_and_powers(robot: Robot, q: Array, v: Array, a: Array) -> Iterator[CheckedFormula]:
    """Superposition, poles, (40) with constant polar moments, and the balance of powers."""
    want = robot.kinetic_energy(q, v)
    yield from _superposition()
    yield from _poles()
    yield from _powers_of_a_box()
    yield from _products()
    for mode in "ABC":
        off = [
            relative_error(kinetic_energy(build_tree(robot.model), x.tolist(), y.tolist(), mode), z)
            for x, y, z in zip(q, v, want)
        ]
        yield misprint(
            f"(40) in mode {mode}, polar moments constant",
            f"write_out(mode={mode!r})",
            "v M v / 2, largest",
            max(off),
        )
    drives, kinetic, potential = robot.power_balance(q, v, a)
    yield agreeing(
        "W_e = W_k + W_p of all links",
        "robot.power_balance(q, v, a)",
        "power of the drives",
        relative_error((kinetic + potential).sum(-1), drives.sum(-1)),
    )
    through = robot.joint_power(q, v, a)[:, -1]
    yield agreeing(
        "(W_e)_B",
        "robot.joint_power(q, v, a)",
        "W_k + W_p of the last link",
        relative_error(through, (kinetic + potential)[:, -1]),
    )
    yield misprint(
        "(W_e)_B taken for the power of drive 3",
        "robot.power_balance(q, v, a).P",
        "power through the joint",
        relative_error(drives[:, -1], through),
    )


def _superposition() -> Iterator[CheckedFormula]:
    """(3)-(9), (41)-(47): of the screw arm by three rotations and a translation."""
    robot, rng = example("screw-arm"), np.random.default_rng(2)
    alpha, t = rng.normal(size=(SAMPLED_STATES, 3)), rng.uniform(size=SAMPLED_STATES)
    path: list[Callable[[Any], Any]] = [lambda t: 0.4 * t, lambda t: sin(2.0 * t), lambda t: 3.0 * t * t]
    screw = turning((1, 0, 0), path[2], (0.5, 0, 0.6)), sliding((1, 0, 0), lambda t: path[2](t) * (0.05 / np.pi))
    arm, column = turning((0, 1, 0), path[1], (0, 0, 0.6)), turning((0, 0, 1), path[0])
    whole = superposed(*screw, arm, column)
    of_robot = link_particles(robot, "link3", lambda t: [f(t) for f in path])
    for formula, call in (
        ("(44), (46)", "position"),
        ("(45), (47)", "velocity"),
        ("accelerations", "acceleration"),
    ):
        error = relative_error(getattr(whole, call)(alpha, t), getattr(of_robot, call)(alpha, t))
        yield agreeing(
            f"(7), {formula}: {call} of particles",
            f"particles.superposed(...).{call}(alpha, t)",
            "the robot's link",
            error,
        )
    yield agreeing(
        "det(dx/dalpha) = 1",
        "particles.superposed(...).determinant(alpha, t)",
        "1",
        relative_error(whole.determinant(alpha, t), 1.0),
    )
    inner = superposed(*screw, arm)
    x = inner.position(alpha, t)
    F = column.gradient(x, t)
    plain = column.acceleration(x, t) + np.einsum("...ij,...j", F, inner.acceleration(alpha, t))
    yield misprint(
        "accelerations of superposed motions added",
        "particles.superposed(...).acceleration",
        "with 2 omega x F v",
        relative_error(plain, whole.acceleration(alpha, t)),
    )
    standing: Any = sum(motion.velocity(whole.position(alpha, t), t) for motion in (*screw, arm, column))
    yield misprint(
        "(18), (19): velocities about axes that stand still added",
        "particles.superposed(...).velocity",
        "(47)",
        relative_error(standing, whole.velocity(alpha, t)),
    )


def _poles() -> Iterator[CheckedFormula]:
    """(15), (39): any pole, with the cross term."""
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    com, v, w, pole = rng.normal(size=(4, 3))
    box = np.diag([0.4, 0.5, 0.6])
    energy = rigid_body_energy(2.0, com, box, turn, v, w, pole=pole)
    center = v + np.cross(w, turn @ (com - pole))
    exact = rigid_body_energy(2.0, com, box, turn, center, w)
    yield agreeing(
        "(10)-(16), (30), (39): pole P, with the cross term",
        "rigid_body_energy(..., pole=)",
        "Koenig's theorem",
        relative_error(float(energy), float(exact)),
    )
    yield misprint(
        "(39) as printed, without m v_P (omega x r_PC)",
        "rigid_body_energy(..., pole=)",
        "with it",
        abs(energy.cross) / float(exact),
    )


def _powers_of_a_box() -> Iterator[CheckedFormula]:
    """W_k of a box that turns about three axes: current moments, constant structure, and the slip in print."""
    box, state = np.diag([5.0, 17.0, 20.0]) / 120.0, ([40.0, 30.0, 20.0], [1.0, 2.0, 3.0], [0.5, -1.0, 2.0])
    angles, rates, accelerations = np.radians(state[0]), np.array(state[1]), np.array(state[2])
    exact = power_of_rotation(box, angles, rates, accelerations)
    b = Builder("box")
    b.body("z", axis=(0, 0, 1))
    b.body("y", "z", axis=(0, 1, 0))
    b.body("x", "y", axis=(1, 0, 0), mass=10.0, com=(0.0, 0.0, 0.0), inertia=box)
    robot = b.robot()
    drives, _, _ = robot.power_balance(angles[::-1], rates[::-1], accelerations[::-1])
    call = "robot.power_balance(q, v, a)"
    yield agreeing(
        "W_k = w J e, current moments", call, "a box about three axes", relative_error(exact, drives.sum())
    )
    for slip, formula in (
        ("polar", "W_k as printed, polar moments constant, J^x mended"),
        ("printed", "W_k as printed: J^y for J^x"),
    ):
        wrong = power_of_rotation(box, angles, rates, accelerations, slip)
        yield misprint(formula, call, "w J e", relative_error(wrong, exact))


def _products() -> Iterator[CheckedFormula]:
    """(33): the largest product of inertia over all angles."""
    first, second, mixed = 0.4, 0.1, 0.2  # kg m^2
    angle = np.linspace(0.0, np.pi, 100_001)
    largest = np.abs(0.5 * np.sin(2 * angle) * (first - second) + np.cos(2 * angle) * mixed).max()
    right = np.hypot((first - second) / 2.0, mixed)
    said = "(33) at all angles"
    error = relative_error(right, largest)
    yield agreeing("largest I_xy = sqrt(((I_x - I_y)/2)^2 + I_xy^2)", "(33)", said, error, BY_DIFFERENCES)
    wrong = relative_error((first - second) / 2.0, largest)
    yield misprint("largest I_xy as printed: (I_x - I_y)/2", "(33)", said, wrong)


def _energy_rate(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    """Rate of kinetic and potential energy along a motion, by differences."""
    ends = []
    for h in (DIFFERENCE_STEP, -DIFFERENCE_STEP):
        q1 = robot.integrate(q, h * v + 0.5 * h * h * a)
        ends.append(robot.kinetic_energy(q1, v + h * a) + robot.potential_energy(q1))
    return np.asarray((ends[0] - ends[1]) / (2.0 * DIFFERENCE_STEP))


def zaremba_rows() -> Iterator[CheckedFormula]:
    robot = example("screw-arm")
    q, v = random_states(robot, 2)
    slope = robot.derivative("mass_matrix", ("q",))(q)
    yield agreeing(
        "theorems 1 and 3, (2.11)",
        "robot.derivative('mass_matrix', ('q',))",
        "differences of M",
        relative_error(slope, central_differences(robot.mass_matrix, q)),
        BY_DIFFERENCES,
    )
    C = np.einsum("...ij,...j", robot.coriolis_matrix(q, v), v)
    yield agreeing(
        "(2.14), (2.15): products of rates",
        "robot.coriolis_matrix(q, v) v",
        "h - g",
        relative_error(C, robot.bias(q, v) - robot.gravity(q)),
    )
    yield from _columns(robot, q[0])
    yield from _derivatives(robot, q, v, slope)
    yield from _program()


def _columns(robot: Robot, q: Array) -> Iterator[CheckedFormula]:
    """Theorem 2, and what twists are not: gradients."""
    near, last = robot.link_names[1], robot.link_names[-1]

    def column(x: Array, link: str, k: int) -> Array:
        """g_1^k: the twist of a joint in the axes of the first link, about its origin."""
        return np.asarray(robot.jacobian(x, link, relative_to=near, frame="world")[:, k])

    g, between = column(q, last, -1), column(q, robot.link_names[-2], -2)
    first = robot.jacobian(q, near, frame="local")[:, 0]
    slopes = central_differences(lambda x: column(x, last, -1), q)
    call = "robot.jacobian(q, link, relative_to=other)"
    error = relative_error(_bracket(between, g), slopes[:, 1])
    yield agreeing("theorem 2, (1.22), k < t", call, "differences of g_k^i", error, BY_DIFFERENCES)
    off = float(np.abs(_bracket(first, g) - slopes[:, 0]).max() / np.abs(slopes[:, 1]).max())
    yield misprint(
        "(1.21) as printed: k = t_1 allowed, where g_k^i is constant", call, "differences of g_k^i", off
    )
    bent = central_differences(lambda x: robot.jacobian(x, last, frame="local"), q)
    yield misprint(
        "after (2.17): columns l_n^i taken for a gradient",
        "robot.jacobian(q, link, frame='local')",
        "equal second derivatives",
        relative_error(bent, bent.swapaxes(1, 2)),
    )


def _bracket(a: Array, b: Array) -> Array:
    """<a> b of twists: linear, angular."""
    return np.asarray(np.r_[np.cross(a[3:], b[:3]) + np.cross(a[:3], b[3:]), np.cross(a[3:], b[3:])])


def _program() -> Iterator[CheckedFormula]:
    """The program of the last section: loads in sections of a rod that spins, accuracy of the tip of two rods."""
    rate, density, length = 7.0, 2.0, 0.6  # rad/s, kg/m, m
    b, mass = Builder("spun"), density * length
    inertia = np.diag([0.0, 1.0, 1.0]) * mass * length**2 / 12.0
    b.body("rod", axis=(0, 0, 1), mass=mass, com=(length / 2, 0.0, 0.0), inertia=inertia)
    whole, s, still = Span.between((0, 0, 0), (length, 0, 0)), np.linspace(0.1, 0.5, 5), np.zeros(1)
    thin = [rod(mass, (0, 0, 0), (length, 0, 0))]
    at = section_loads(b.robot(), still, still + rate, still, "rod", s, span=whole, distribution=thin)
    pull = 0.5 * density * rate**2 * (length**2 - s**2)
    yield agreeing(
        "loads in sections",
        "loads.section_loads(robot, q, v, a, link, s)",
        "a rod that spins, by hand",
        relative_error(at.dynamic[:, 0], -pull),
    )
    chain = rod_chain(2)
    angles, tolerance, bar = np.array([0.3, 0.5]), np.array([1e-3, 2e-3]), 0.5  # rad, rad, m
    tip = (bar, 0.0, 0.0)
    error = accuracy(chain, angles, chain.link_names[-1], point=tip, joint_errors=tolerance)
    x, y = bar * np.cos(np.cumsum(angles)), bar * np.sin(np.cumsum(angles))
    by_hand = np.array([[-y.sum(), -y[1]], [x.sum(), x[1]]])
    call = "loads.accuracy(robot, q, link, joint_errors=)"
    worst = relative_error(error.worst[:2], np.abs(by_hand) @ tolerance)
    yield agreeing("accuracy: worst case of two rods", call, "sum |column| tolerance, by hand", worst)
    spread = np.sqrt(by_hand**2 @ tolerance**2 / 3.0)
    off = relative_error(error.deviation[:2], spread)
    yield agreeing("accuracy: standard deviation of two rods", call, "J Sigma J^T, by hand", off)


def _derivatives(robot: Robot, q: Array, v: Array, slope: Array) -> Iterator[CheckedFormula]:
    """Theorem 3 once more, and the Christoffel symbols."""
    for order in (2, 3):
        before, found = (compile(robot, "mass_matrix", wrt=("q",) * k) for k in (order - 1, order))
        yield agreeing(
            f"theorem 3, order {order}",
            f"compile(robot, 'mass_matrix', wrt=('q',) * {order})",
            f"differences of order {order - 1}",
            relative_error(found(q), central_differences(before, q)),
            BY_DIFFERENCES,
        )
    twice = np.einsum(
        "...ijk,...j,...k->...i", 0.5 * (slope + slope.swapaxes(-1, -2) - slope.swapaxes(-1, -3)), v, v
    )
    yield agreeing(
        "(2.13)-(2.15): symbols of Christoffel",
        "Christoffel symbols of the derivative",
        "h - g",
        relative_error(twice, robot.bias(q, v) - robot.gravity(q)),
    )
    yield from _linear(robot, q[0], v[0])


def _linear(robot: Robot, q: Array, v: Array) -> Iterator[CheckedFormula]:
    """(2.17)-(2.19), (3.5), (4.1), (4.2), under a plane that moves."""
    link, gains, tau = robot.link_names[-1], (8.0, 25.0), np.ones(robot.nv)
    height, rate = float(robot.pose(q, link)[2, 3]), float(robot.velocity(q, v, link)[2])

    def plane(offset: float, offset_rate: float, offset_acceleration: float = 0.0) -> Any:
        """The last link's origin at a height that changes."""
        moves = {"offset_rate": offset_rate, "offset_acceleration": offset_acceleration}
        return point_on_plane(link, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), offset=offset, **moves)

    held = robot.constrained_dynamics(q, v, tau, constraints=[plane(height, rate, 0.7)], t=0.0)
    lift = robot.acceleration(q, v, held.a, link)[2]
    call = "robot.constrained_dynamics(constraints=)"
    yield agreeing("(2.16)-(2.19): f(q, t) = 0", call, "acceleration of the plane", abs(lift - 0.7))
    wrong = robot.constrained_dynamics(q, v, tau, constraints=[plane(height, rate, rate)], t=0.0)
    off = relative_error(wrong.reactions, held.reactions)
    yield misprint("(2.18) as printed: f_t for its rate", call, "N of the plane that moves", off)
    fed = robot.constrained_dynamics(q, v, tau, constraints=[plane(height - 0.1, rate - 0.2)], stabilise=gains)
    lift = robot.acceleration(q, v, fed.a, link)[2]
    yield agreeing(
        "(3.1)-(3.5): f'' + G1 f' + G0 f = 0",
        "robot.constrained_dynamics(stabilise=)",
        "f, f', f'' of the point",
        abs(lift + gains[0] * 0.2 + gains[1] * 0.1),
    )
    yield _linear_held(robot, q, v, tau, [plane(height, 0.0)])
    yield from _linear_model(robot, q, v, tau)


def _linear_held(robot: Robot, q: Array, v: Array, tau: Array, held: list[Any]) -> CheckedFormula:
    """(4.1), (4.2) of a system with constraints: accelerations and dN."""
    model = robot.linearise(q, v, tau, constraints=held, passive=False, outputs=("a", "reactions"))

    def answer(q: Array, v: Array) -> Array:
        result = robot.constrained_dynamics(q, v, tau, constraints=held)
        return np.concatenate([result.a, result.reactions])

    by_q = central_differences(lambda x: answer(x, v), q)
    by_v = central_differences(lambda x: answer(q, x), v)
    return agreeing(
        "(4.1), (4.2), (2.17): linear model under a constraint, dN among its outputs",
        "robot.linearise(constraints=, outputs=('a', 'reactions'))",
        "differences of accelerations and reactions",
        relative_error(model.C, np.concatenate([by_q, by_v], -1)),
        BY_DIFFERENCES,
    )


def _linear_model(robot: Robot, q: Array, v: Array, tau: Array) -> Iterator[CheckedFormula]:
    """(4.1), (4.2), and what their misprints change."""
    A = robot.linearise(q, v, tau, passive=False).A
    n = robot.nv
    by_q = central_differences(lambda x: robot.forward_dynamics(x, v, tau), q)
    by_v = central_differences(lambda x: robot.forward_dynamics(q, x, tau), v)
    yield agreeing(
        "(4.1), (4.2): linear model",
        "robot.linearise(q, v, tau).A",
        "differences of the accelerations",
        relative_error(A[n:], np.concatenate([by_q, by_v], -1)),
        BY_DIFFERENCES,
    )
    rates = central_differences(lambda x: robot.bias(q, x), v)
    half = 0.5 * robot.inverse_dynamics_derivatives(q, v, 0.0 * v)[1]
    yield misprint(
        "(4.2), second, as printed: 1/2",
        "robot.inverse_dynamics_derivatives",
        "differences of h",
        relative_error(half, rates),
    )
    whole = central_differences(robot.gravity, q)
    yield agreeing(
        "(4.2), third",
        "robot.derivative('gravity', ('q',))",
        "l^T F and its derivative",
        relative_error(torque_of_gravity(robot, q, DIFFERENCE_STEP), whole),
        BY_DIFFERENCES,
    )
    yield misprint(
        "(4.2), third, as printed: l alone is differentiated",
        "robot.derivative('gravity', ('q',))",
        "stiffness of gravity",
        relative_error(torque_of_gravity(robot, q, DIFFERENCE_STEP, printed=True), whole),
    )
