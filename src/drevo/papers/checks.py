"""Formulas of the five papers, computed and compared; misprints with what they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..control.drives import DrivenRobot, ElectricDrive, HydraulicServo
from ..design.conditions import conditions
from ..design.formulas import check_formulas
from ..dh import from_dh, table
from ..io.given import Array
from ..mechanics.scalar import sin
from ..robot.builder import Builder
from ..robot.face import Robot
from ..robot.writing import write_out
from ..robots import model
from .bodies_rows import slides_numbered, trees_numbered
from .cloud_rows import energies_numbered
from .misprints import kovalchuk_bias, kovalchuk_mass_matrix
from .motions import alyushin_rows, zaremba_rows
from .program import separate_bodies_program
from .rows import (
    SAMPLED_STATES,
    CheckedFormula,
    agreeing,
    example,
    misprint,
    random_states,
    relative_error,
)
from .telegin_rows import telegin_numbered
from .twist_rows import twists_numbered
from .whole_rows import chains_whole, slides_whole, telegin_whole, trees_whole

CONDITIONS = {
    "H_33": 2,
    "H_22": 6,
    "H_55": 6,
    "H_66": 2,
    "H_11": 20,
    "H_21": 10,
    "H_42": 2,
    "H_75": 2,
    "H_32": 4,
    "H_65": 4,
}  # of example 3, those that the paper leaves out among them


def _single_support() -> Iterator[CheckedFormula]:
    """The biped with its foot as the base: the same kinetic energy after the map of coordinates."""
    biped = Robot(model("biped", "floating"))
    foot = biped.rerooted("right_foot")
    q, v = random_states(biped, 2)
    both = [(biped.kinetic_energy(*x), foot.kinetic_energy(*foot.map(*x))) for x in zip(q, v)]
    yield agreeing(
        "single support, from the foot",
        "robot.rerooted('right_foot')",
        "kinetic energy",
        relative_error(*zip(*both)),
    )


def _telegin() -> Iterator[CheckedFormula]:
    yield from _single_support()
    robot = example("two-arm-spatial")
    (q,) = random_states(robot, 1)
    energy = [
        [robot.kinetic_energy(q, np.tile(a, (SAMPLED_STATES, 1))) for a in (e, d, e + d)]
        for e in np.eye(robot.nv)
        for d in np.eye(robot.nv)
    ]
    M = np.array([c - a - b for a, b, c in energy]).reshape(robot.nv, robot.nv, SAMPLED_STATES)
    yield agreeing(
        "H_ij",
        "robot.mass_matrix(q)",
        "kinetic energy of pairs of rates",
        relative_error(M, robot.mass_matrix(q).T),
    )
    printed = "H_55 = I_3^q\nm_32^e = d_x3*s_23\nm_54^e = d_x5*s_45"  # of example 2
    judged = check_formulas(example("two-arm-planar"), printed)
    for slip in judged.wrong:
        call = f"check_formulas: {slip.suggestion}"
        yield misprint(f"example 2 as printed: {slip.printed}", call, "the element itself", float(slip.error))
    for quantity, formula in (("lagrange_equations", "Lagrange's equations, by kinds of terms"),):
        d = write_out(example("three-link"), quantity, symbols="all")
        for against, worst, _ in d.checks:
            yield agreeing(formula, f"write_out(three-link, {quantity!r})", against, worst)
    written = write_out(example("three-link"), "mass_matrix", symbols="all", formalism="telegin", sequence="paper")
    doubled = written.python().count("= 2.0*") + written.python().count("+ 2.0*")
    for sums, products, says in ((9, 7, ""), (11, 5, " where 2 x is x + x")):
        moved = doubled if says else 0
        off = abs(written.counts["add"] + moved - sums) + abs(written.counts["mul"] - moved - products)
        yield agreeing(
            f"example 1: {sums} additions, {products} products{says}",
            "write_out(three-link, sequence='paper').counts",
            "the paper's count",
            off,
        )
    yield from _conditions()


def _conditions() -> Iterator[CheckedFormula]:
    """(17)-(22): what example 3 needs for constant elements."""
    robot = example("two-arm-spatial")
    for element, count in CONDITIONS.items():
        asked: Any = conditions(robot, constant=[element])
        same = asked.realise()
        H = same.mass_matrix(random_states(same, 1)[0])
        row, column = (int(x) - 1 for x in element[2:])
        spread = float(np.ptp(H[:, row, column])) / float(np.abs(H).max())
        yield agreeing(
            f"(17)-(22): {element} constant, {count} conditions",
            f"conditions(robot, constant=[{element!r}])",
            "its realisation at random q",
            spread + abs(len(asked.equations) - count),
        )
    printed = "H_55 = I_5^y + I_6^x + m_7*L_7^2"
    without: Any = conditions(robot, constant=["H_55"])
    constant = without.realise()
    for slip in check_formulas(constant, printed).wrong:
        yield misprint("example 3: H_55 as printed, without I_7^x", "check_formulas", "the element", slip.error)


def _vereshchagin() -> Iterator[CheckedFormula]:
    for title in ("rod-chain", "two-arm-spatial"):
        robot = example(title)
        q, v, tau = random_states(robot, 3)
        rest = tau - robot.bias(q, v)
        want = np.linalg.solve(robot.mass_matrix(q), rest[..., None])[..., 0]
        yield agreeing(
            "(17)-(21): accelerations, tips to base and back",
            f"{title}: robot.forward_dynamics(q, v, tau)",
            "M^-1 (tau - h)",
            relative_error(robot.forward_dynamics(q, v, tau), want),
            1e-7,
        )
    robot = example("two-arm-spatial")
    q, v, a = random_states(robot, 3)
    wrenches, tau = robot.joint_wrenches(q, v, a), robot.inverse_dynamics(q, v, a)
    axis = robot.jacobian(q, robot.link_names[-1])[..., 3:, -1]
    yield agreeing(
        "(1): R_k",
        "robot.joint_wrenches(q, v, a)",
        "S^T R = tau of the last joint",
        relative_error(np.sum(wrenches[..., -1, 3:] * axis, -1), tau[..., -1]),
    )
    moved = robot.with_base_motion(lambda t: [sin(t), 0.0, t * t])
    at = moved.inverse_dynamics(q, v, a, 0.3)
    yield agreeing(
        "body 0 with a given motion",
        "robot.with_base_motion(position)",
        "forward dynamics on it",
        relative_error(moved.forward_dynamics(q, v, at, 0.3), a),
        1e-7,
    )
    yield from _slides()


def _slides() -> Iterator[CheckedFormula]:
    """The slides' program, right and with its formulas as they stand on the slides."""
    robot = example("rod-chain")
    q, v, tau = random_states(robot, 3)
    want = robot.forward_dynamics(q, v, tau)
    text = separate_bodies_program(robot, "python")["program.py"]
    slips = {
        "(18) as printed, with a plus": ("Qk[p] = Qk[p] - C.T", "Qk[p] = Qk[p] + C.T"),
        "(20) as printed, without the drives": ("iUk[k] * (e[k] + S @", "iUk[k] * (S @"),
        "(27) as printed, c in link axes": ("before = A0 @ (", "before = np.eye(2) @ ("),
        "(28) as printed, c in link axes": (
            "return before, A[k] @ Model.own",
            "return before, np.eye(2) @ Model.own",
        ),
    }
    call = "papers.separate_bodies_program(robot)"
    error = relative_error(_accelerations(text, q, v, tau), want)
    yield agreeing("(22)-(28) in the plane", call, "robot.forward_dynamics", error, 1e-7)
    for formula, (right, wrong) in slips.items():
        yield misprint(
            formula,
            call,
            "robot.forward_dynamics",
            relative_error(_accelerations(text.replace(right, wrong), q, v, tau), want),
        )


def _accelerations(text: str, q: Array, v: Array, tau: Array) -> Array:
    """Accelerations by the text of the slides' program."""
    space: dict[str, Any] = {"__name__": "program"}
    exec(text, space)
    return np.stack([space["dqdt"](0.0, np.r_[x, y], z)[len(x) :] for x, y, z in zip(q, v, tau)])


def _drives() -> Iterator[CheckedFormula]:
    """Drives of a wheel: the speed without load, and where a blocked one comes to rest."""
    b = Builder("wheel", gravity=(0.0, 0.0, 0.0))
    b.body("wheel", joint_name="axle", mass=1.0, inertia=np.diag([0.01] * 3))
    motor = ElectricDrive(0.8, 2e-3, 0.06, gear=50.0)
    servo = HydraulicServo(flow=2e-4, supply=1.5e7, displacement=2e-5, volume=1e-4, leak=1e-12)
    turning = DrivenRobot(b.robot(), {"axle": motor}).simulate([0.0], command=6.0, duration=0.5)
    speed = turning.v[-1, 0], 6.0 / (motor.constant * motor.gear)
    yield agreeing(
        "electric drives", "control.DrivenRobot", "speed without load u / (n k)", relative_error(*speed)
    )
    z = np.zeros(2)
    for _ in range(5000):
        z = z + 2e-5 * np.array(servo.rates(z.tolist(), 0.5, 0.0))
    flows = servo.passed(z.tolist()), servo.leak * z[1]
    yield agreeing(
        "electro-hydraulic servos", "control.HydraulicServo", "flow of a blocked one leaks", relative_error(*flows)
    )


def _kovalchuk() -> Iterator[CheckedFormula]:
    yield from _drives()
    robot = example("two-arm-spatial")
    q, v, a = random_states(robot, 3)
    want = np.einsum("...ij,...j", robot.mass_matrix(q), a) + robot.bias(q, v)
    yield agreeing(
        "I a + H = tau",
        "robot.inverse_dynamics(q, v, a)",
        "M a + h",
        relative_error(robot.inverse_dynamics(q, v, a), want),
    )
    contacts = [{"link": robot.link_names[-1], "point": (0.1, 0.0, 0.0), "rows": 3}]
    for k in range(2):
        held = robot.constrained_dynamics(q[k], v[k], a[k], contacts=contacts)
        left = robot.mass_matrix(q[k]) @ held.a + robot.bias(q[k], v[k]) - held.jacobian.T @ held.reactions
        yield agreeing(
            "block system, first row",
            "robot.constrained_dynamics",
            "M a + H - J^T R = tau",
            relative_error(left, a[k]),
        )
        yield agreeing(
            "block system, second row",
            "robot.constrained_dynamics",
            "J a + P = 0",
            relative_error(held.jacobian @ held.a, -held.gamma),
            1e-8,
        )
    yield from _trees_of_links(robot, q, v)


def _trees_of_links(robot: Robot, q: Array, v: Array) -> Iterator[CheckedFormula]:
    """(1)-(3), H, the trunk, and the recursion in link axes."""
    again = from_dh(table(robot))
    link = robot.link_names[-1]
    yield agreeing(
        "(1)-(3): T = T M A",
        "dh.from_dh(dh.table(robot))",
        "robot.pose",
        relative_error(again.pose(q, link), robot.pose(q, link)),
    )
    yield agreeing(
        "H",
        "robot.bias(q, v)",
        "inverse dynamics at a = 0",
        relative_error(robot.bias(q, v), robot.inverse_dynamics(q, v, 0.0 * v)),
    )
    yield from _trunk()
    yield from _link_axes()


def _trunk() -> Iterator[CheckedFormula]:
    """A body that floats on a trunk of six joints without drives."""
    biped = Robot(model("biped", base="trunk"))
    q, v, a = random_states(biped, 3)
    tau = biped.inverse_dynamics(0.3 * q, v, a)
    tau[:, :6] = 0.0
    a = biped.forward_dynamics(0.3 * q, v, tau)
    wrenches = biped.joint_wrenches(0.3 * q, v, a)[:, :6]
    scale = float(np.abs(biped.joint_wrenches(0.3 * q, v, a)).max())
    yield agreeing(
        "the trunk: six efforts zero",
        "robot.joint_wrenches(q, v, a)",
        "zero wrenches in its joints",
        float(np.abs(wrenches).max()) / scale,
    )


def _link_axes() -> Iterator[CheckedFormula]:
    """The recursion in link axes, corrected and as printed."""
    for slip, formula in MISPRINTED.items():
        wrong = [relative_error(kovalchuk_bias(r, x, y, slip), r.bias(x, y)) for r, x, y in _trees()]
        right = max(relative_error(kovalchuk_bias(r, x, y), r.bias(x, y)) for r, x, y in _trees())
        if slip == "lever":
            yield agreeing("f_i, M_i in link axes", "robot.bias(q, v)", "the recursion as corrected", right)
        yield misprint(formula, "robot.bias(q, v)", "the recursion as printed, largest", max(wrong))
    for slip, formula in (("", "I by unit accelerations in link axes"), ("column", PRINTED_COLUMN)):
        off = [relative_error(kovalchuk_mass_matrix(r, x, slip), r.mass_matrix(x)) for r, x, _ in _trees()]
        judge = misprint if slip else agreeing
        yield judge(formula, "robot.mass_matrix(q)", "the recursion, largest", max(off))


PRINTED_COLUMN = "I as printed: a_c, m, J of link i, the column's, for those of link j"
MISPRINTED = {
    "lever": "M_i as printed: c x phi for (l + c) x phi",
    "turn": "M_i as printed: J eps + omega x J omega is not turned",
    "fork": "f_i as printed: phi inside the sum over children",
    "auxiliary": "a_ij as printed: omega of f(i) in the axes of its auxiliary frame",
}


def _trees() -> Iterator[tuple[Robot, Array, Array]]:
    """Robots of hinges, slides and screws, and states of each."""
    for robot in (*map(example, ("three-link", "two-arm-spatial", "biped", "screw-arm")), _forked()):
        q, v = random_states(robot, 2)
        yield from ((robot, x, y) for x, y in zip(q, v))


def _forked() -> Robot:
    """A hinge on a hinge, and on that a hinge and a slide across it: the slide's frame is an auxiliary one."""
    b, box = Builder("forked"), np.diag([0.02, 0.03, 0.04])
    b.body("column", axis=(0, 0, 1), mass=3.0, com=(0.05, 0.0, 0.2), inertia=box)
    b.body("arm", "column", axis=(0, 1, 0), origin=(0.1, 0.0, 0.4), mass=1.0, com=(0.2, 0.01, 0.0), inertia=box)
    b.body("hand", "arm", axis=(1, 0, 0), origin=(0.3, 0.0, 0.0), mass=0.5, com=(0.0, 0.1, 0.1), inertia=box)
    b.body("slide", "arm", joint="prismatic", axis=(0.36, 0.48, 0.8), origin=(0.2, 0.1, 0.0), mass=0.8,
           com=(0.0, 0.1, 0.02), inertia=box)  # fmt: skip
    return b.robot()


CHECKS: dict[str, tuple[Callable[[], Iterator[CheckedFormula]], ...]] = {
    "telegin": (telegin_numbered, telegin_whole, _telegin),
    "vereshchagin": (slides_numbered, slides_whole, _vereshchagin),
    "kovalchuk": (trees_numbered, trees_whole, _kovalchuk),
    "alyushin": (energies_numbered, alyushin_rows),
    "zaremba": (twists_numbered, chains_whole, zaremba_rows),
}
