"""Rows of what the papers tell besides numbered formulas: examples, machines that walk, refusals, the chain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import ground
from ..constraint import point_on_plane
from ..control import stabilise
from ..design.conditions import conditions
from ..design.formulas import check_formulas
from ..errors import DrevoError
from ..loads import section_motion
from ..mechanics.scalar import where
from ..robot.builder import Builder
from ..robot.face import Robot
from ..robot.writing import write_out
from ..robots import model
from ..walking import Gait, OrientationSensor, adapt, plan
from .rows import BY_DIFFERENCES, CheckedFormula, agreeing, example, random_states, relative_error

SECTION_5 = """H_33 = I_3^d + I_4^z + 2*L_4*m_44^e; m_44^e = d_x4*s_4 + d_y4*c_4; I_3^d = I_3^z + m_4*L_4^2
J_3^o = m_4*L_4^2 + 2*L_4*m_44^e; H_42 = -I_4^xz*s_34 - I_4^yz*c_34; H_21 = H_22 + L_2*m_21^x
m_31^x = d_x3*c_2*c_3 - d_y3*c_2*s_3 + d_z3*s_2 + m_41^x; H_43 = H_44 + L_4*m_44^e
m_21^x = d_x2*c_2 + d_z2*s_2 + m_31^x; H_75 = -I_7^xz*s_67 - I_7^yz*c_67; H_51 = H_55 - L_5*m_51^x
H_65 = -I_6^xz*s_6 - (I_6^yz + L_7*d_z7)*c_6 + H_75; I_z4^x = I_4^x - I_4^z"""  # of example 3
CAREFUL_GAIT = Gait("careful", length=0.2, lift=0.07, single=1.2, double=0.9, settle=1.6, dt=0.02, height=0.86)


def telegin_whole() -> Iterator[CheckedFormula]:
    """Letters of section 5, seven linear equations, the plane that leans, lengths that are free, figures."""
    robot: Any = example("two-arm-spatial")
    judged = check_formulas(robot, SECTION_5.replace("; ", "\n"))
    left = sum(row.verdict != "proved" for row in judged)
    said = "J^s, J^o, m^xi and elements of example 3"
    yield agreeing("section 5", "check_formulas(robot, text)", "lines that are not proved", left, says=said)
    asked: Any = conditions(robot, constant="mass_matrix")
    M = asked.realise().mass_matrix(random_states(robot, 1)[0])
    error = float(np.ptp(M, axis=0).max()) / float(np.abs(M).max()) + abs(len(asked.motion) - 7)
    call = "conditions(robot, constant='mass_matrix').motion, .realise()"
    yield agreeing("section 5", call, "M of a realisation at random q", error, says="seven linear equations")
    plane, lean = example("two-arm-planar"), np.radians(30.0)
    (q,) = random_states(plane, 1)
    steep, leaning = (
        Robot(replace(plane.model, gravity=g))
        for g in ((0.0, -9.81, 0.0), (0.0, -9.81 * np.sin(lean), -9.81 * np.cos(lean)))
    )
    error = relative_error(leaning.gravity(q), np.sin(lean) * steep.gravity(q))
    yield agreeing("section 2", "robot.gravity(q)", "sin q of the upright", error, says="a plane inclined by q")
    free: Any = conditions(example("three-link"), constant=["H_22"], free=["L_2", "L_3"])
    error = float({case.zero for case in free.cases()} != {(), ("L_3",)})
    call = "conditions(robot, constant=['H_22'], free=['L_2', 'L_3']).cases()"
    yield agreeing("beyond", call, "L_3 = 0, or balanced bodies", error, says="lengths among the unknowns")
    for name in ("three-link", "two-arm-planar", "two-arm-spatial"):
        drawn, n = example(name).draw(letters={}).svg, example(name).nv
        letters = ((x, k) for x, first in (("O", 1), ("q", 1), ("x", 1), ("y", 1)) for k in range(first, n + 1))
        error = float(sum(re.search(rf">{x}<tspan[^>]*>{k}<", drawn) is None for x, k in letters))
        said = "poles, axes, crosses, stars, letters q_i, L_i, A, B, x_i, y_i"
        call = f"drevo.load({name!r}).draw(letters={{}})"
        yield agreeing("figures 1-3", call, "letters that are not drawn", error, says=said)
    q, v, tau = (x[0] for x in random_states(robot, 3))
    H = np.asarray(write_out(robot, "mass_matrix", formalism="telegin").evaluate(q=q))
    held = robot.constrained_dynamics(q, v, tau, contacts=[{"link": "link4", "point": (0.1, 0.2, 0.3), "rows": 3}])
    error = relative_error(H @ held.a, tau - robot.bias(q, v) + held.jacobian.T @ held.reactions)
    call = "robot.constrained_dynamics(contacts=)"
    yield agreeing("conclusion", call, "H a + h = tau + J' R by his H", error, says="end bodies that are held")
    trunk = write_out(Robot(model("biped", base="trunk")), "mass_matrix", formalism="telegin")
    call = "write_out(biped, 'mass_matrix', formalism='telegin')"
    yield agreeing("abstract", call, trunk.checks[0][0], trunk.checks[0][1], says="a walking machine in flight")


def slides_whole() -> Iterator[CheckedFormula]:
    """The chain of ten rods: the motion by the program's equations, and its energy."""
    from scipy.integrate import solve_ivp

    robot = example("rod-chain")
    start = np.r_[-1.0, np.zeros(19)]

    def rates(t: float, x: Any) -> Any:
        return np.r_[x[10:], robot.forward_dynamics(x[:10], x[10:], np.zeros(10))]

    by_scipy = solve_ivp(rates, (0.0, 1.0), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    run = robot.simulate(start[:10], start[10:], duration=1.0, method="dop853", rtol=1e-11)
    got = np.r_[run.q[-1], run.v[-1]]
    call = "robot.simulate(q0, v0, duration=1.0)"
    error = relative_error(got, by_scipy)
    yield agreeing("the example", call, "SciPy's DOP853", error, 1e-7, says="ten rods, q_1 = -1 rad")
    energy = [
        float(robot.kinetic_energy(*x) + robot.potential_energy(x[0]))
        for x in ((start[:10], start[10:]), (run.q[-1], run.v[-1]))
    ]
    yield agreeing(
        "the example", call, "energy at the start", relative_error(*energy), BY_DIFFERENCES, says="its energy"
    )

    b = Builder("every joint")
    more: dict[str, Any] = {"universal": {"axis2": (0.0, 1.0, 0.0)}, "helical": {"lead": 0.1}}
    for kind in ("spherical", "universal", "planar", "cylindrical", "helical", "prismatic"):
        box: Any = {"mass": 1.0, "com": (0.1, 0.2, 0.1), "inertia": np.diag([0.2, 0.3, 0.25])}
        b.body(kind, joint=kind, **box, **more.get(kind, {}))
    d = write_out(b.robot(), "forward_dynamics", formalism="vereshchagin")
    call = "write_out(robot, 'forward_dynamics', formalism='vereshchagin')"
    yield agreeing("(1)-(21)", call, d.checks[0][0], d.checks[0][1], says="spherical, universal, all other joints")


def _refused(call: Callable[[], Any]) -> float:
    """0 if it is refused in one sentence, else 1."""
    try:
        call()
    except DrevoError as refusal:
        return float("\n" in str(refusal))
    return 1.0


def trees_whole() -> Iterator[CheckedFormula]:
    """The trunk where it is singular, more supports than are needed, ground that differs from the forecast."""
    biped = Robot(model("biped", base="trunk"))
    q, v, tau = (x[0] for x in random_states(biped, 3))
    q = 0.2 * q
    q[4] = np.pi / 2.0
    error = _refused(lambda: biped.forward_dynamics(q, v, tau))
    yield agreeing(
        "the trunk",
        "robot.forward_dynamics",
        "refused where its fifth angle is 90 degrees",
        error,
        says="singular poses",
    )
    q[4], tau[:6], v = 0.1, 0.0, 0.0 * v
    soles = ("left_foot", "right_foot")
    few = biped.constrained_dynamics(
        q, v, tau, contacts=[{"link": x, "point": (0.0, 0.0, 0.0), "rows": 6} for x in soles]
    )
    corners = [(x, y, 0.0) for x in (-0.1, 0.1) for y in (-0.05, 0.05)]
    many = biped.constrained_dynamics(
        q, v, tau, contacts=[{"link": x, "point": p, "rows": 3} for x in soles for p in corners]
    )
    error = relative_error(many.a, few.a) + abs(many.rank - 12)
    call = "robot.constrained_dynamics(contacts=)"
    yield agreeing(
        "block system",
        call,
        "12 rows that say the same",
        error,
        BY_DIFFERENCES,
        says="24 rows of supports, rank 12",
    )
    rough = ground.function(lambda x, y: where(x > 0.22, -0.02 + 0.05 * (x - 0.22), 0.0 * x))
    sensor = OrientationSensor(
        noise=0.005, bias=(0.005, -0.005, 0.0), delay=0.02, rate_noise=0.01, rate_bias=(0.01, 0.0, 0.0)
    )
    walked = adapt(plan(Robot(model("biped", base="floating")), steps=1, gait=CAREFUL_GAIT), rough, sensor)
    error = float(walked.fell is not None)
    said = "walking, an orientation sensor, ground that differs from the forecast"
    yield agreeing("the last section", "walking.adapt(plan, ground, sensor)", "a fall", error, says=said)


def chains_whole() -> Iterator[CheckedFormula]:
    """Constraints that contradict or repeat each other, laws with fewer rows and more than joints, sections."""
    robot = example("screw-arm")
    q, v, a = (x[0] for x in random_states(robot, 3))
    link, zero = robot.link_names[-1], (0.0, 0.0, 0.0)
    place, speed = robot.pose(q, link)[:3, 3], robot.velocity(q, v, link)[:3]

    def plane(axis: int, acceleration: float = 0.0) -> Any:
        normal = tuple(np.eye(3)[axis])
        return point_on_plane(link, zero, normal, offset=float(place[axis]), offset_rate=float(speed[axis]),
                              offset_acceleration=acceleration)  # fmt: skip

    call = "robot.constrained_dynamics(constraints=)"
    error = _refused(lambda: robot.constrained_dynamics(q, v, a, constraints=[plane(2), plane(2, 1.0)]))
    yield agreeing("(2.16)", call, "refused in one sentence", error, says="constraints that contradict each other")
    once, twice = (robot.constrained_dynamics(q, v, a, constraints=[plane(2)] * k) for k in (1, 2))
    error = relative_error(twice.a, once.a) + abs(twice.rank - 1)
    yield agreeing(
        "(2.16)", call, "the rows that are independent", error, BY_DIFFERENCES, says="rows that repeat others"
    )
    for rows in ([plane(2)], [plane(k) for k in (0, 1, 2)]):
        law: Any = stabilise(robot, rows, damping=8.0, stiffness=25.0)
        lift = robot.acceleration(q, v, robot.forward_dynamics(q, v, law(0.0, q, v)), link)[:3]
        want = [0.0] * len(rows)
        got = [lift[2]] if len(rows) == 1 else lift
        yield agreeing(
            "(3.1)-(3.5)",
            "control.stabilise(robot, constraints, damping=, stiffness=)",
            "acceleration of a point that is where it should be",
            float(np.abs(np.subtract(got, want)).max()),
            says=f"m = {len(rows)}, n = 3",
        )
    at = section_motion(robot, q, v, a, "link2", 0.1)
    place = robot.pose(q, "link2")[:3, :3].T @ (at.pose[:3, 3] - robot.pose(q, "link2")[:3, 3])
    error = relative_error(at.velocity[:3], robot.velocity(q, v, "link2", point=place)[:3])
    yield agreeing(
        "the program",
        "loads.section_motion(robot, q, v, a, link, s)",
        "velocity of a point of the link",
        error,
        says="motion of a section",
    )
