"""Joints by formula: against chains, reparametrised joints, and a four-bar knee against the loop that it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import ModelError, NumericsError, Robot, TraceError, constraint
from drevo.compiler.formalisms import common_algorithm, formalisms_giving
from drevo.mechanics.algorithms.constraints import Kinematics
from drevo.mechanics.tree import build_tree
from drevo.model.quantities import CATALOGUE, OPTION_DEFAULTS

INERTIA = np.diag([0.3, 0.4, 0.2]) + 0.02
BODY: dict[str, Any] = {"mass": 1.5, "com": (0.3, 0.2, 0.1), "inertia": INERTIA}
PLACED: dict[str, Any] = {"origin": (0.1, -0.2, 0.3), "rpy": (0.5, 0.2, -0.4), **BODY}


def close(a: Any, b: Any, size: float = 1e-13) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert np.abs(a - b).max(initial=0.0) <= size * max(1.0, np.abs(b).max(initial=0.0))


def arm(joint: Any, floating: bool = True) -> Robot:
    """A hinge, the joint in question and a hinge on it; or a floating base before them and a hinge beside it."""
    b = drevo.Builder("arm")
    if floating:
        b.body("base", joint="free", **BODY)
    b.body("l1", "base" if floating else None, axis=(0, 1, 0), **PLACED)
    b.body("l2", "l1", **joint, **PLACED)
    b.body("l3", "l2", axis=(1, 0, 0), armature=0.3, **PLACED)
    if floating:
        b.body("l4", "l1", axis=(0.6, 0, 0.8), **PLACED)
    return b.robot()


def state(robot: Robot, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return robot.random(rng=rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


OPTIONS = {"link": "l3", "frame": "local_world_aligned", "kind": "classical", "axes": "x rz", "damping": 0.1}
OPTIONS["terms"] = OPTION_DEFAULTS["terms"]


def every_quantity(robot: Robot, of: Any) -> Any:
    """of(quantity, state, options) for all there are."""
    q, v, a = state(robot)
    given = {"q": q, "v": v, "a": a, "tau": a, "x": v}
    for name, x in CATALOGUE.items():
        if name != "passive" and (robot.nv > 5 or name != "operational_inertia"):
            options = {k: OPTIONS[k] for k in x.options if k in OPTIONS}
            found = of(name, [given[s] for s in x.state], options)
            yield from ((f"{name} {k}", y) for k, y in enumerate(found if len(x.outputs) > 1 else (found,)))


PLAIN = [
    ({"yaw": "q"}, {"joint": "revolute"}),
    ({"z": "q"}, {"joint": "prismatic"}),
    ({"z": "0.1 * q / (2 * pi)", "yaw": "q"}, {"joint": "helical", "lead": 0.1}),
    (lambda q: {"z": q[0], "yaw": q[1]}, {"joint": "cylindrical"}),
    ({"yaw": "q1", "pitch": "q2"}, {"joint": "universal", "axis2": (0, 1, 0)}),
]


def by_formula(pose: Any, kind: Any, **more: Any) -> Robot:
    two = kind["joint"] in ("cylindrical", "universal")
    return arm({"pose": pose, "joint": "custom", "coordinates": 1 + two}, **more)


@pytest.mark.parametrize("pose, kind", PLAIN)
def test_a_plain_joint_by_formula_is_the_plain_joint(pose: Any, kind: Any) -> None:
    one, other = by_formula(pose, kind), arm(kind)

    def plain(robot: Robot) -> Any:
        tree = build_tree(robot.model)
        return every_quantity(
            other, lambda name, x, o: common_algorithm(name)(tree, *([float(z) for z in y] for y in x), **o)
        )

    for (name, x), (_, y) in zip(plain(one), plain(other), strict=True):
        close(np.array(x, float), np.array(y, float), 1e-11 if name != "mass_matrix 0" else 1e-14)


def test_every_quantity_is_compiled() -> None:
    robot = by_formula(*PLAIN[2], floating=False)
    tree = build_tree(robot.model)
    found = every_quantity(robot, lambda name, x, o: drevo.compile(robot, name, **o)(*x))
    wanted = every_quantity(robot, lambda name, x, o: common_algorithm(name)(tree, *map(list, x), **o))
    for (_, x), (_, y) in zip(found, wanted, strict=True):
        close(x, np.array(y, float), 1e-11)


# -- any pose of three coordinates, pulled back by hand from the chain of its steps -----------------------------

A = np.array(
    [[0.3, -0.1, 0.2], [0.1, 0.4, 0.0], [0.2, 0.1, -0.3], [1.0, 0.3, -0.2], [0.2, 0.8, 0.1], [0.1, -0.3, 0.9]]
)
B = np.array(
    [[0.7, 0.2, -0.5], [0.3, -0.6, 0.4], [0.5, 0.1, 0.8], [0.2, 0.9, 0.3], [-0.4, 0.3, 0.6], [0.6, -0.2, 0.1]]
)
C = np.array([0.2, 0.3, 0.1, 0.5, 0.4, 0.3])
STEPS = ("x", "y", "z", "yaw", "pitch", "roll")
AXES = np.vstack([np.eye(3), np.eye(3)[::-1]])


def pose(q: Any) -> dict[str, Any]:
    """A q + C sin(B q)."""
    return {
        step: sum(a * x for a, x in zip(A[i], q)) + C[i] * drevo.sin(sum(b * x for b, x in zip(B[i], q)))
        for i, step in enumerate(STEPS)
    }


def curled() -> Robot:
    return arm({"joint": "custom", "pose": pose, "coordinates": 3}, floating=False)


def chained() -> Any:
    """The same as a chain of six plain joints, for plain algorithms on numbers of any kind."""
    b = drevo.Builder("chain")
    b.body("l1", axis=(0, 1, 0), **PLACED)
    parent = "l1"
    for i, axis in enumerate(AXES):
        place = {k: PLACED[k] for k in ("origin", "rpy")} if i == 0 else {}
        last = BODY if i == 5 else {}
        name = "l2" if i == 5 else f"step{i}"
        b.body(name, parent, "prismatic" if i < 3 else "revolute", axis, **place, **last)
        parent = name
    b.body("l3", "l2", axis=(1, 0, 0), armature=0.3, **PLACED)
    return build_tree(b.model())


def pulled(q: Any) -> tuple[Any, Any, Any]:
    """q of the chain, F, and v -> dF/dt v."""
    x, turn = q[1:4], B @ q[1:4]
    G = A + (C * np.cos(turn))[:, None] * B
    F = np.zeros((8, 5), q.dtype)
    F[0, 0] = F[7, 4] = 1.0
    F[1:7, 1:4] = G
    at = np.concatenate([q[:1], A @ x + C * np.sin(turn), q[4:]])
    return at, F, lambda v: np.concatenate([[0.0], -C * np.sin(turn) * (B @ v[1:4]) ** 2, [0.0]])


def efforts_by_hand(q: Any, v: Any, a: Any) -> Any:
    at, F, drift = pulled(q)
    given = ([complex(y) for y in x] for x in (at, F @ v, F @ a + drift(v)))
    return F.T @ np.array(common_algorithm("inverse_dynamics")(chained(), *given))


def by_complex_step(f: Any, x: Any) -> Any:
    h = 1e-30
    return np.stack([f(x + 1j * h * e).imag / h for e in np.eye(len(x))], -1)


@pytest.mark.slow
def test_any_pose_is_pulled_back_from_its_chain() -> None:
    robot = curled()
    q, v, a = state(robot)
    at, F, _ = pulled(q)
    M = F.T @ np.array(common_algorithm("mass_matrix")(chained(), list(at))) @ F
    close(robot.mass_matrix(q), M)
    zero = np.zeros(5)
    tau = robot.inverse_dynamics(q, v, a)
    close(tau, efforts_by_hand(q, v, a).real)
    close(robot.bias(q, v), efforts_by_hand(q, v, zero).real)
    close(robot.forward_dynamics(q, v, tau), a, 1e-10)
    close(robot.pose(q, "l3"), np.array(common_algorithm("pose")(chained(), list(at), "l3"), float))
    dq, dv, found = robot.inverse_dynamics_derivatives(q, v, a)
    by_q = by_complex_step(lambda x: efforts_by_hand(x, v, a), q)
    by_v = by_complex_step(lambda x: efforts_by_hand(q, x, a), v)
    close(dq, by_q, 1e-12)
    close(dv, by_v, 1e-12)
    close(found, M)
    ddq, ddv, inverse = robot.forward_dynamics_derivatives(q, v, tau)
    close(M @ ddq, -by_q, 1e-10)
    close(M @ ddv, -by_v, 1e-10)
    close(inverse @ M, np.eye(5), 1e-11)


def slope(f: Any, x: Any, h: float = 1e-3) -> Any:
    """By central differences of the fourth order."""
    steps = h * np.eye(len(x))
    return np.stack([(8 * (f(x + e) - f(x - e)) - f(x + 2 * e) + f(x - 2 * e)) / (12 * h) for e in steps], -1)


def test_derivatives_of_any_order() -> None:
    robot = one({"x": "0.2 * sin(q1) * q2", "z": "0.1 * q2**2", "pitch": "q1 + 0.3 * q2"}, coordinates=2)
    q, v, a = state(robot)
    once = drevo.compile(robot, "inverse_dynamics", wrt=("q",))
    close(once(q, v, a), robot.inverse_dynamics_derivatives(q, v, a)[0], 1e-12)
    by_q = drevo.compile(robot, "bias", wrt=("q",))
    twice = drevo.compile(robot, "bias", wrt=("q", "q"))
    close(twice(q, v), slope(lambda x: by_q(x, v), q), 1e-9)
    close(drevo.compile(robot, "bias", wrt=("q", "q", "q"))(q, v), slope(lambda x: twice(x, v), q), 1e-9)
    jerk = np.array([0.4, -0.7])
    dtau = drevo.compile(robot, "inverse_dynamics", wrt=("t",))(q, v, a, jerk)
    dq, dv, M = robot.inverse_dynamics_derivatives(q, v, a)
    close(dtau, dq @ v + dv @ a + M @ jerk, 1e-12)


def test_the_coriolis_matrix_is_of_the_christoffel_symbols() -> None:
    robot = knee(bars=False)
    q, v = np.array([0.3, 0.6]), np.array([0.5, -0.8])
    dM, found = drevo.compile(robot, "mass_matrix", wrt=("q",))(q), robot.coriolis_matrix(q, v)
    symbols = 0.5 * (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0))
    close(found, np.einsum("ijk,k->ij", symbols, v), 1e-12)
    close(found @ v + robot.gravity(q), robot.bias(q, v), 1e-12)


def test_the_motion_of_links() -> None:
    robot = curled()
    q, v, a = state(robot)
    J = robot.jacobian(q, "l3", frame="world")
    h = 1e-5
    close(J @ v, robot.velocity(q, v, "l3", frame="world"), 1e-13)
    J1, J0 = (robot.jacobian(q + s * h * v, "l3", frame="world") for s in (1, -1))
    spatial = robot.acceleration(q, v, a, "l3", frame="world", kind="spatial")
    close(J @ a + (J1 - J0) @ v / (2 * h), spatial, 1e-8)
    T1, T0 = (robot.pose(q + s * h * v, "l3")[:3, 3] for s in (1, -1))
    close(robot.velocity(q, v, "l3")[:3], (T1 - T0) / (2 * h), 1e-8)


@pytest.mark.parametrize("name", ["mass_matrix", "forward_dynamics", "bias", "pose", "coriolis_matrix"])
def test_written_out(name: str) -> None:
    d = drevo.write_out(knee(bars=False), name, **({"link": "shank"} if name == "pose" else {}))
    assert d.checks[0][1] < 1e-12
    assert "gamma_{2a}" in d.latex() and "gamma_i is the coordinate of a step" in d.markdown().replace("\\", "")


# -- a four-bar knee: its coupler by formula, and as the loop that it is -----------------------------------------

UP, DOWN = np.array([0.02, 0.0, -0.40]), np.array([-0.015, 0.0, -0.41])  # where the bars hang on the thigh
FIRST, SECOND, WIDTH = 0.035, 0.03, 0.025  # lengths of the bars, and between their ends on the shank
SHANK = {
    "x": f"{UP[0]} - {FIRST} * sin(q)",
    "z": f"{UP[2]} - {FIRST} * cos(q)",
    "ux": f"{DOWN[0]} - x",  # from the end of the first bar to the root of the second
    "uz": f"{DOWN[2]} - z",
    "r": "ux**2 + uz**2",
    "k": f"({WIDTH**2 - SECOND**2} + r) / (2 * r)",
    "h": f"sqrt({WIDTH**2} / r - k**2)",
    "dx": "k * ux + h * uz",  # to the end of the second
    "dz": "k * uz - h * ux",
}
THIGH: dict[str, Any] = {"mass": 3.0, "com": (0.01, 0.0, -0.2), "inertia": np.diag([0.1, 0.11, 0.02])}
LEG: dict[str, Any] = {"mass": 2.0, "com": (0.02, 0.0, -0.25), "inertia": np.diag([0.05, 0.06, 0.01])}
BAR: dict[str, Any] = {"mass": 0.1, "com": (0.0, 0.0, -0.017), "inertia": np.diag([2e-5, 2e-5, 1e-6])}
Y = (0, 1, 0)


def knee(bars: bool = True) -> Robot:
    """The coupler and the second bar follow the first bar; without bars the coupler has the coordinate."""
    b = drevo.Builder("knee")
    b.body("thigh", axis=Y, **THIGH)
    shank = {**SHANK, "pitch": "atan2(dz, -dx)"}
    if not bars:
        b.body("shank", "thigh", "custom", pose=shank, limit=(0.0, 1.1), **LEG)
        return b.robot()
    b.body("bar1", "thigh", axis=Y, origin=UP, limit=(0.0, 1.1), **BAR)
    b.body("shank", "thigh", "custom", pose=shank, mimic="bar1_joint", **LEG)
    turn = {**{f"c{k}": x for k, x in SHANK.items() if k in "xz"}}
    second = {k: x for k, x in SHANK.items() if k not in "xz"}
    second = {k: x.replace("- x", "- cx").replace("- z", "- cz") for k, x in second.items()}
    b.body("bar2", "thigh", "custom", origin=DOWN, mimic="bar1_joint", **BAR,
           pose={**turn, **second, "pitch": "atan2(ux - dx, uz - dz)"})  # fmt: skip
    return b.robot()


def looped() -> Robot:
    b = drevo.Builder("looped")
    b.body("thigh", axis=Y, **THIGH)
    b.body("bar1", "thigh", axis=Y, origin=UP, **BAR)
    b.body("shank", "bar1", axis=Y, origin=(0, 0, -FIRST), **LEG)
    b.body("bar2", "thigh", axis=Y, origin=DOWN, **BAR)
    return b.robot()


PIN = drevo.constraint.point_to_point(
    "shank", (-WIDTH, 0, 0), "bar2", (0, 0, -SECOND), rows=((1, 0, 0), (0, 0, 1))
)


class Closed:
    """The loop-closed knee at (thigh, bar1), real or complex, by plain algorithms and Newton's method."""

    def __init__(self, y: Any, v: Any) -> None:
        self.tree = build_tree(looped().model)
        q = np.concatenate([y, self.start(y.real)]).astype(y.dtype)
        for _ in range(3):
            rows = self.rows(q, np.zeros(4))
            J = np.array(rows.jacobian)
            q[2:] -= np.linalg.solve(J[:, 2:], np.array(rows.value))
        J = np.array(self.rows(q, np.zeros(4)).jacobian)
        back = -np.linalg.solve(J[:, 2:], J[:, :2])
        self.T = np.vstack([np.eye(2), back])
        rates = self.T @ v
        gamma = np.array(self.rows(q, rates).bias)
        M = np.array(common_algorithm("mass_matrix")(self.tree, list(q)))
        h = np.array(common_algorithm("bias")(self.tree, list(q), list(rates)))
        carried = np.concatenate([[0.0, 0.0], -np.linalg.solve(J[:, 2:], gamma)])
        self.q, self.M, self.h = q, self.T.T @ M @ self.T, self.T.T @ (h + M @ carried)

    def rows(self, q: Any, v: Any) -> Any:
        return PIN.rows(Kinematics(self.tree, list(q), list(v)), 0.0)

    def start(self, y: Any) -> Any:
        """The angles of shank and second bar, of the branch that the formula takes."""
        robot = knee()
        turn = [robot.pose(y, link)[:3, :3] for link in ("shank", "bar1", "bar2", "thigh")]
        angle = [np.arctan2(R[0, 2], R[0, 0]) for R in turn]
        return np.array([angle[0] - angle[1], angle[2] - angle[3]])


@pytest.mark.parametrize("seed", range(2))
def test_a_four_bar_knee_is_the_loop(seed: int) -> None:
    robot, rng = knee(), np.random.default_rng(seed)
    q, v, a = np.array([rng.normal(), rng.uniform(0.1, 1.05)]), rng.normal(size=2), rng.normal(size=2)
    loop = Closed(q, v)
    close(robot.mass_matrix(q), loop.M, 1e-13)
    close(robot.bias(q, v), loop.h, 1e-13)
    close(robot.pose(q, "shank"), looped().pose(loop.q.real, "shank"), 1e-13)
    dq, dv, _ = robot.inverse_dynamics_derivatives(q, v, a)

    def efforts(y: Any, u: Any) -> Any:
        loop = Closed(y, u)
        return loop.M @ a + loop.h

    close(dq, by_complex_step(lambda y: efforts(y, v), q), 1e-12)
    close(dv, by_complex_step(lambda u: efforts(q + 0j, u), v), 1e-12)
    dM = drevo.compile(robot, "mass_matrix", wrt=("q",))(q)
    close(dM, by_complex_step(lambda y: Closed(y, v).M, q), 1e-12)
    rest = np.zeros(4)
    close(robot.forward_dynamics(q, v, rest[:2]),
          looped().constrained_dynamics(loop.q, loop.T @ v, rest, constraints=[PIN]).a[:2], 1e-11)  # fmt: skip


def test_a_knee_swings_as_its_loop_does() -> None:
    """Frequencies about a state of rest, of the linear model by formula and of the loop's reduced one."""
    robot, q, still = knee(), np.array([0.0, 0.5]), np.zeros(2)
    own = robot.linearise(q, still, robot.gravity(q)).modes().frequencies
    at = Closed(q, still).q
    tau = np.concatenate([robot.gravity(q), still])  # drives of thigh and first bar alone
    loop = looped().linearise(at, np.zeros(4), tau, constraints=[PIN])
    close(loop.a, np.zeros(4), 1e-10)
    close(own, loop.reduced.modes().frequencies, 1e-10)


def test_a_knee_without_bars_has_its_own_coordinate() -> None:
    own, q, v = knee(bars=False), np.array([0.3, 0.6]), np.array([0.5, -0.8])
    light = replace(knee().model, links=tuple(replace(x, inertial=None) if "bar" in x.name else x
                                              for x in knee().model.links))  # fmt: skip
    other = Robot(light)
    close(own.mass_matrix(q), other.mass_matrix(q), 1e-14)
    close(own.bias(q, v), other.bias(q, v), 1e-14)


def test_the_motion_of_a_knee_keeps_its_energy() -> None:
    robot = knee()
    found = robot.simulate([0.4, 0.6], [0.0, 0.0], duration=0.3, dt=1e-4, every=100)
    loop = Closed(np.array([0.4, 0.6]), np.zeros(2))
    other = looped().simulate(loop.q, np.zeros(4), duration=0.3, dt=1e-4, every=100, constraints=[PIN])
    close(found.q, other.q[:, :2], 1e-10)
    energy = robot.kinetic_energy(found.q, found.v) + robot.potential_energy(found.q)
    close(energy, np.full(len(energy), energy[0]), 1e-11)


# -- what a user gives and gets ----------------------------------------------------------------------------------


def one(given: Any, **more: Any) -> Robot:
    return drevo.Builder("r").body("a", joint="custom", pose=given, **BODY, **more).robot()


@pytest.mark.parametrize(
    "given, sentence",
    [
        (None, "is custom and has no formula; give its pose"),
        ({"x": "q +"}, "has the formula x = 'q [+]': it is not a formula"),
        ({"x": "foo * q"}, "'foo' is not known there; known are q, pi, sin"),
        ({"x": "d * q", "d": "2"}, "'d' is not known there"),
        ({"x": "q.real"}, "it has more than numbers, names"),
        ({"x": "__import__('os')"}, "'__import__' is no function here"),
        ({"x": "q**0.5"}, "a power is a whole number from 1 to 16"),
        ({"x": "q if q > 0 else 0"}, "it branches; write where"),
        ({"x": "where(q, 1, 2)"}, "where chooses by a comparison"),
        ({"x": "sin(q, q)"}, "sin takes 1 argument"),
        ({"x": "1e999 * q"}, "'inf' is no finite number"),
        ({"x": "+".join("q" * 300)}, "nested more than 100 deep"),
        ({"x": "(" * 300 + "q" + ")" * 300}, "it is not a formula"),
        ({"x": "q" * 5000}, "longer than 4000 characters"),
        ({"x": "0.1"}, "has a formula in which q moves nothing"),
        ({"pi": "3", "x": "pi * q"}, "has a formula for 'pi', which is taken or no name"),
        ({"x": "sqrt(1 - q**2)"}, "has a formula without a value at q = -3.04; give it limits"),
        ({"x": "q / 0"}, "has a formula without a value"),
        ({"x": float("nan")}, "x of its pose nan is not finite"),
        (3, "pose is {name: formula}"),
        (lambda q: {"x": q[0] if q[0] > 0 else 0.0}, "its pose cannot be traced: a traced value has no truth"),
        (lambda q: {"x": math.sin(q[0])}, "its pose cannot be traced: a traced value is no float"),
        (lambda q: {"x": q[3]}, "its pose raised IndexError"),
        (lambda q: [q[0]], "the function of its pose gives {name: value}"),
    ],
)
def test_what_is_no_formula_is_one_sentence(given: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence.replace("(", r"\(").replace("{", r"\{")):
        one(given)


def test_coordinates_that_repeat_one_another() -> None:
    with pytest.raises(ModelError, match="of 2 coordinates that moves it in 1 independent ways; leave 1 out"):
        one({"x": "q1 + q2", "y": "sin(q1 + q2)"}, coordinates=2)
    with pytest.raises(ModelError, match="coordinates is a whole number from 1 to 6, not 7"):
        one({"x": "q1"}, coordinates=7)
    with pytest.raises(ModelError, match="is revolute and has a formula; make it custom"):
        drevo.Builder("r").body("a", pose={"x": "q"}, **BODY).robot()


def test_where_a_formula_ends_or_stands_still() -> None:
    crank = one({"x": "cos(q)"})
    with pytest.raises(NumericsError, match="singular to working precision at joint 'a_joint'"):
        crank.forward_dynamics([0.0], [1.0], [0.0])
    bounded = one({"x": "sqrt(1 - q**2)"}, limit=(-0.9, 0.9))
    with pytest.raises(NumericsError, match=r"in row 1 is nan: .*or the formula of joint 'a_joint' has no value"):
        bounded.mass_matrix([[0.1], [1.5]])


def test_saved_and_loaded_again(tmp_path: Any) -> None:
    for robot in (knee(), curled()):
        q, v, a = state(robot)
        for suffix in ("toml", "json"):
            robot.save(tmp_path / f"r.{suffix}")
            close(
                drevo.load(tmp_path / f"r.{suffix}").inverse_dynamics(q, v, a),
                robot.inverse_dynamics(q, v, a),
                0.0,
            )
        for suffix in ("urdf", "xml", "sdf"):
            with pytest.raises(ModelError, match="is by formula, which TOML and JSON hold and no other format"):
                robot.save(tmp_path / f"r.{suffix}")
    with pytest.raises(ModelError, match=r"joints\[1\] .*pose: it is not a list of"):
        (tmp_path / "r.json").write_text((tmp_path / "r.json").read_text().replace('[["t', '["x", ["t', 1))
        drevo.load(tmp_path / "r.json")


def test_rotors_dampers_and_springs_are_of_the_coordinates() -> None:
    robot = one({"x": "0.1 * sin(q)", "yaw": "2 * q"}, armature=0.5, damping=0.3, stiffness=2.0, reference=0.2)
    bare = one({"x": "0.1 * sin(q)", "yaw": "2 * q"})
    q, v = np.array([0.4]), np.array([1.5])
    close(robot.mass_matrix(q), bare.mass_matrix(q) + 0.5)
    close(robot.bias(q, v), bare.bias(q, v))
    close(robot.passive(q, v), -0.3 * v - 2.0 * (q - 0.2))
    close(robot.forward_dynamics(q, v, [1.0], passive=True),
          (1.0 + robot.passive(q, v) - bare.bias(q, v)) / robot.mass_matrix(q)[0])  # fmt: skip


def test_what_covers_no_formulas_says_so() -> None:
    robot = one({"x": "q"})
    for ask in (lambda: drevo.conditions(robot, constant="mass_matrix"),
                lambda: drevo.write_out(robot, "lagrange_equations"),
                lambda: drevo.write_out(robot, "mass_matrix", sequence="paper")):  # fmt: skip
        with pytest.raises(TraceError, match="joint 'a_joint' is by formula, which it does not cover"):
            ask()
    q, v, a = state(knee())
    with pytest.raises(TraceError, match="some follow here from others by formula"):
        drevo.write_out(knee(), "inverse_dynamics", formalism="telegin")
    for f in set(formalisms_giving("inverse_dynamics")) - {"planar", "telegin"}:
        close(drevo.write_out(knee(), "inverse_dynamics", formalism=f).evaluate(q, v, a),
              knee().inverse_dynamics(q, v, a), 1e-12)  # fmt: skip


def test_constraints_take_formulas() -> None:
    """A point of the shank on a line: by the rows of a constraint, and by a function of its pose."""
    robot = knee(bars=False)
    q, v, tau = np.array([0.3, 0.6]), np.array([0.5, -0.8]), np.array([0.2, 0.1])
    plane = constraint.point_on_plane("shank", (0.1, 0, -0.3), normal=(0.6, 0, 0.8))
    same = constraint.function(lambda pose, q, t: [0.6 * (T := pose("shank"))[0][3] + 0.8 * T[2][3] + sum(
        n * (0.1 * T[i][0] - 0.3 * T[i][2]) for n, i in ((0.6, 0), (0.8, 2)))], 1)  # fmt: skip
    one, other = (robot.constrained_dynamics(q, v, tau, constraints=[c]) for c in (plane, same))
    close(one.a, other.a, 1e-12)
    close(one.jacobian, other.jacobian, 1e-12)
    close(robot.mass_matrix(q) @ one.a + robot.bias(q, v), tau + one.jacobian.T @ one.reactions, 1e-12)
    geared = constraint.gear("shank_joint", "thigh_joint", 2.0)
    a = robot.constrained_dynamics([0.3, 0.6], [0.5, 1.0], tau, constraints=[geared]).a
    close(a[1], 2.0 * a[0])


def test_six_coordinates_and_products() -> None:
    """As many coordinates as a free joint has rates, none of them a quaternion's."""
    robot = one({s: f"q{i + 1} + 0.1 * sin(q{(i + 1) % 6 + 1})" for i, s in enumerate(STEPS)}, coordinates=6)
    q, v, a = (0.4 * x for x in np.random.default_rng(1).normal(size=(3, 6)))
    close(robot.integrate(q, v), q + v)
    close(robot.difference(q, q + v), v)
    close(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a, 1e-11)
    four = one({s: f"q{i + 1}" for i, s in enumerate(STEPS[:4])}, coordinates=4)
    x = four.simulate(q[:4], v[:4], duration=0.01, dt=1e-3).q[-1]
    close(x, q[:4] + 0.01 * v[:4], 1e-2)
    M, h = four.mass_matrix(q[:4]), drevo.compile(four, "bias", product="vjp")
    back = h(q[:4], v[:4], np.ones(4))
    close(back[0], np.ones(4) @ drevo.compile(four, "bias", wrt=("q",))(q[:4], v[:4]), 1e-12)
    assert M.shape == (4, 4)


def test_a_long_chain_with_a_formula_is_no_loop_over_plain_bodies() -> None:
    def chain(**middle: Any) -> Robot:
        b = drevo.Builder("chain")
        for i in range(64):
            given = middle if i == 3 else {"joint": "revolute", "axis": Y}
            b.body(f"l{i}", f"l{i - 1}" if i else None, origin=(0, 0, 0.1), **given, **BODY)
        return b.robot()

    x = np.full(64, 0.1)
    one, other = chain(joint="custom", pose={"pitch": "q"}), chain(joint="revolute", axis=Y)
    close(one.inverse_dynamics(x, x, x), other.inverse_dynamics(x, x, x), 1e-12)
