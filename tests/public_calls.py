"""The public face as a table: a right call of everything that a user may call."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import drevo
from drevo import control, dh, loads, streaming, walking
from drevo.constraint import values as constraint
from drevo.constraint.closing import hold
from drevo.model.description import JointDynamics, Shape
from drevo.model.quantities import CATALOGUE
from drevo.robot.topology import Topology
from drevo.simulate import Control, Event, Integrator, damping

Rng = np.random.Generator
SCALAR = "a function of scalars"  # gives what NumPy gives, nan of nan too, in the precision of its argument


class Call(NamedTuple):
    """One call, ready to be made or to be spoilt."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    given: dict[str, Any]

    def __call__(self) -> Any:
        return self.function(*self.args, **self.given)


@cache
def robot(name: str) -> drevo.Robot:
    """The robots of the calls: small ones, so that compiling takes no time."""
    if name == "tumbler":
        return tumbler()
    return drevo.load("biped", base="floating") if name == "walker" else drevo.load(name)


def tumbler() -> drevo.Robot:
    """A free body that carries a ball joint and a slide."""
    b = drevo.Builder("tumbler")
    full = {"mass": 1.0, "com": (0.1, 0.2, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    b.body("base", joint="free", **full)
    b.body("arm", parent="base", joint="spherical", origin=(0.0, 0.1, 0.3), **full)
    b.body("rod", parent="arm", joint="prismatic", axis=(1.0, 0.0, 0.0), **full)
    return b.robot()


def state(r: drevo.Robot, rng: Rng, batch: bool) -> dict[str, np.ndarray]:
    """q, v, a, tau, x: one state or three."""
    lead = (3,) if batch else ()
    rates = {s: rng.normal(size=(*lead, r.nv)) for s in ("v", "a", "tau", "x")}
    return {"q": r.random(rng, lead), **rates}


def call(function: Callable[..., Any], *args: Any, **given: Any) -> Call:
    owner = getattr(function, "__self__", None)
    at = "Robot." if isinstance(owner, drevo.Robot) else ""
    return Call(at + getattr(function, "__name__", repr(function)), function, args, given)


# -- right calls, by room ---------------------------------------------------------------------------------------


def quantities(rng: Rng) -> Iterator[Call]:
    """Every quantity of the catalogue, of one state or several."""
    r = robot(str(rng.choice(["three-link", "tumbler"])))
    for name, quantity in CATALOGUE.items():
        if name in ("operational_inertia", "operational_space"):
            continue  # these robots cannot move their hands in all six directions
        now = state(r, rng, bool(rng.integers(2)))
        options = {"link": r.link_names[-1]} if "link" in quantity.options else {}
        given = [now[s] for s in quantity.state]
        yield Call(f"Robot.{name}", getattr(r, name), tuple(given), options)
        if quantity.external:
            yield Call(f"Robot.{name}", getattr(r, name), tuple(given), {"f_ext": {r.link_names[-1]: np.ones(6)}})
    now = state(r, rng, True)
    yield call(r.integrate, now["q"], now["v"])
    yield call(r.difference, now["q"], now["q"][::-1])
    yield call(r.random, np.random.default_rng(1), 4)
    yield call(r.distance, now["q"])
    yield call(r.distance_jacobian, now["q"])
    yield call(drevo.compile, r, "mass_matrix", wrt=("q",))
    yield call(drevo.compile, r, "gravity")
    yield call(drevo.compile, r, "bias", layout="batch_last", dtype="float32", packed=False, parameters=["*.mass"])
    yield call(drevo.stream, r, "potential_energy", 100, seed=3)
    yield call(drevo.stream, r, ["bias", "gravity"], 10, seed=3, first=5, ranges={"v": 2.0}, threads=2)
    yield call(streaming.inputs, r, "bias", 5, seed=3)
    bias, columns = drevo.compile(r, "bias"), drevo.compile(r, "bias", layout="batch_last")
    yield Call("Function", bias, (now["q"], now["v"]), {"out": np.empty_like(now["v"]), "threads": 2})
    yield Call("Function of columns", columns, (now["q"].T, now["v"].T), {})
    weighed = drevo.compile(r, "mass_matrix", parameters=["*.mass"])
    yield Call("Function of parameters", weighed, (now["q"], np.ones(weighed.inputs[1][1])), {})
    steep = drevo.compile(r, "bias", wrt=("q", "v"))
    yield Call("Function of derivatives", steep, (now["q"], now["v"]), {})
    for f in (drevo.sin, drevo.cos, drevo.sqrt):
        yield Call(SCALAR, f, (0.5,), {})
    yield Call(SCALAR, drevo.where, (True, 1.0, 2.0), {})
    yield Call(SCALAR, drevo.minimum, (1.0, 2.0), {})
    yield Call(SCALAR, drevo.clip, (3.0, 1.0, 2.0), {})


def body(*args: Any, **given: Any) -> Any:
    """The body as a new builder takes it."""
    return drevo.Builder("b").body("a", mass=1.0, inertia=np.eye(3)).body(*args, **given).model()


def descriptions(rng: Rng) -> Iterator[Call]:
    """Robots from names, tables and Python."""
    yield call(drevo.load, "three-link", base="fixed", gravity=(0.0, 0.0, -9.81), strict=False)
    yield call(
        body, "link", parent="world", joint="revolute", axis=(0, 0, 1), origin=(0, 0, 0.3), rpy=(0.1, 0.2, 0.3),
        mass=2.0, com=(0, 0, 0.1), inertia=np.diag([1.0, 2.0, 2.5]), inertia_at="com",
    )  # fmt: skip
    row = {"theta": "q", "d": 0.1, "a": 1.0, "alpha": 0.5, "joint": "revolute", "mass": 1.0, "com": (0, 0, 0.1)}
    rows = [{k: x for k, x in row.items() if k != "theta"} for _ in range(2)]
    yield call(drevo.from_dh, rows, convention="standard")
    yield call(dh.table, robot("three-link"))
    yield call(drevo.robots.rod_chain, 3)
    yield call(drevo.robots.model, "biped", base="floating", gravity=(0.0, 0.0, -9.81))
    yield call(drevo.robots.stanford, inertia="symmetric")
    yield call(drevo.Builder, "c", gravity=(0.0, 0.0, -9.81), root="ground")
    two = drevo.Builder("d")
    solid = {"mass": 1.0, "inertia": np.eye(3)}
    two.body("a", **solid).body("b", parent="a", origin=(1.0, 0.0, 0.0), **solid)
    yield call(two.loop, "weld", "a", (0.0, 0.0, 0.0), "world", (0.0, 0.0, 0.0), rotation=np.eye(3))
    yield call(two.contact, "b", (1.0, 0.0, 0.0))
    yield call(
        body, "e", joint="helical", lead=0.1, limit=(-1.0, 1.0), mimic=("a_joint", 2.0, 0.1), mass=1.0,
        inertia=np.eye(3), axis2=(0, 1, 0),
        child_origin=(0.1, 0.0, 0.0), child_rotation=np.eye(3), joint_name="e_joint", rotation=np.eye(3),
        armature=0.1, damping=0.1, friction=0.1, stiffness=1.0, reference=0.1, gravcomp=0.5,
    )  # fmt: skip
    yield call(two.robot, strict=False)
    solid |= {"com": (0.1, 0.0, 0.0)}
    yield call(body, "f", rotor=(0.1, 50.0, (0, 0, 1)), elastic=(100.0, 0.1), **solid)
    yield call(body, "g", dynamics=JointDynamics(armature=0.1), **solid)
    crank = {"x": "0.1 * sin(q)", "yaw": "q"}
    yield call(body, "h", joint="custom", pose=crank, coordinates=1, **solid)
    r = robot("three-link")
    for ending in ("urdf", "xml", "sdf", "json", "toml"):
        yield call(r.save, folder() / f"r.{ending}", lossy=True)
    yield call(r.to_mujoco, lossy=True)
    yield call(r.to_pinocchio, lossy=True)
    yield call(dh.table, r, convention="modified")
    yield call(drevo.check, r)
    yield call(r.q_of, {r.joint_names[0]: 0.3})
    yield call(r.v_of, {r.joint_names[0]: 0.3})
    yield call(r.names_of, r.neutral())
    yield call(drevo.from_dh, dh.table(r))
    yield call(Topology.of, r.model)
    yield call(Topology, [0, 1, 1], ["base", "a", "b", "c"])
    yield call(r.topology.f, "link2")
    yield call(drevo.robots.puma560, inertia="general")


def constraints(rng: Rng) -> Iterator[Call]:
    """Contacts, loops, impacts."""
    r = robot("tumbler")
    now = state(r, rng, False)
    touch = [{"link": "rod", "point": (0.1, 0.0, 0.05), "rows": 3}]
    held = [constraint.point_on_plane("rod", (0.1, 0.0, 0.0), normal=(0.0, 0.0, 1.0))]
    q, v, tau, a = (now[s] for s in ("q", "v", "tau", "a"))
    yield call(r.constrained_dynamics, q, v, tau, contacts=touch, constraints=held, t=0.0)
    yield call(r.constrained_dynamics, q, 0.0 * v, tau, contacts=touch, stabilise=(10.0, 25.0))
    yield call(r.under, touch, held)
    yield call(r.under(touch).dynamics, q, v, tau)
    yield call(r.under(touch).impact, q, v, 0.5)
    yield call(r.under(touch).linearise, q, v, tau)
    yield call(r.under(touch).moved, points=[(0.0, 0.1, 0.2)])
    yield call(r.constrained_inverse_dynamics, q, 0.0 * v, 0.0 * a, contacts=[{**touch[0], "rows": 6}])
    yield call(r.constrained_inverse_dynamics, q, v, a, actuated=["base_joint", "arm_joint", "rod_joint"], t=0.0)
    yield call(r.impact, q, v, contacts=touch, restitution=0.5)
    yield call(hold, r, q, v, contacts=touch, t=0.0, tolerance=1e-10, steps=20)
    closed = robot("four-bar")
    yield call(closed.assemble, closed.neutral() + 0.01)
    yield call(constraint.contact, "rod", (0.0, 0.0, 1.0), rows=6)
    yield call(constraint.point_on_plane, "rod", (0, 0, 0), (0, 0, 1), offset=0.1, offset_rate=0.2)
    yield call(constraint.point_to_point, "rod", (0, 0, 0), "base", (0, 0, 1), rows=np.eye(3))
    yield call(constraint.weld, "rod", (0, 0, 0), "base", (0, 0, 1), rotation=np.eye(3))
    yield call(constraint.distance, "rod", (0, 0, 0), "base", (0, 0, 1), 1.0)
    yield call(constraint.gear, "rod_joint", "arm_joint", 2.0)
    yield call(constraint.pose_tracking, "rod", lambda t: np.eye(4).tolist(), (0.0, 0.0, 0.1))
    yield call(constraint.function, lambda pose, q, t: [q[0] - t], 1)


def motions(rng: Rng) -> Iterator[Call]:
    """Simulations under every kind of drive."""
    r = robot("three-link")
    now = state(r, rng, False)
    q, v = now["q"], now["v"]
    law = Control(lambda t, q, v: [-x for x in v])
    for tau in (None, 0.1 * now["tau"], damping(0.1), Control(drevo.control.pd(r, np.zeros(r.nq), 1.0, 0.1)), law):
        yield call(r.simulate, q, v, tau, duration=0.01, dt=1e-3, method="rk4", every=2)
    yield call(r.simulate, q, v, duration=0.01, method="dop853", rtol=1e-8, atol=1e-8)
    yield call(r.simulate, q, v, duration=0.01, events=[Event(lambda t, q, v: q[0] - 10.0)])
    yield call(Event, lambda t, q, v: q[0], terminal=True, direction=1, name="e")
    yield call(Control, lambda t, q, v: [-x for x in v])
    touch = [{"link": "rod", "point": (0.1, 0.0, 0.05), "rows": 3}]
    free = robot("tumbler")
    yield call(
        free.simulate, free.neutral(), duration=0.005, contacts=touch, stabilise=(20.0, 100.0), max_steps=99
    )
    table = r.simulate(q, v, duration=0.01)
    yield call(loads.Trajectory.simulated, table, np.zeros(r.nv))
    yield call(table.at, 0.005)
    yield Call("Table.energy", lambda: table.energy, (), {})
    yield call(table.save, folder() / "t.csv")
    heun = Integrator("heun", 2, ((0.0, 0.0), (1.0, 0.0)), (0.5, 0.5), "Heun 1900")
    yield call(r.simulate, q, v, duration=0.01, dt=1e-3, method=heun)
    yield call(
        Integrator, "heun", 2, ((0.0, 0.0), (1.0, 0.0)), (0.5, 0.5), "Heun 1900",
        q_rows=((0.0, 0.0), (1.0, 0.0)), q_weights=(0.5, 0.5), errors=((0.5, -0.5),),
    )  # fmt: skip
    yield call(damping, 0.1)
    goal = np.zeros(r.nq)
    yield call(drevo.control.pd, r, goal, 1.0, 0.1)
    yield call(drevo.control.pid, r, goal, 1.0, 0.1, 0.1, 5.0)
    yield call(drevo.control.computed_torque, r, goal, 1.0, 0.1)
    yield call(drevo.control.gravity_compensation, r, 0.1)
    link, more = r.link_names[-1], {"regularisation": 0.1, "posture": goal}
    yield call(drevo.control.operational_space, r, link, 1.0, 0.1, np.eye(4), "x y z rx ry rz", np.eye(3), **more)
    yield call(drevo.control.impedance, r, link, np.eye(2), 0.1, axes="x y", posture_stiffness=1.0, **more)
    yield call(drevo.control.admittance, r, link, 1.0, 0.1, 2.0, axes=["x", "y"], posture_damping=1.0, **more)
    yield call(
        drevo.control.hybrid,
        r,
        link,
        1.0,
        0.1,
        axes="x",
        force_axes="y",
        force=2.0,
        force_gain=0.5,
        force_damping=1.0,
    )
    motor = drevo.control.ElectricDrive(0.8, 2e-3, 0.06, gear=50.0, current=9.0)
    driven = drevo.control.DrivenRobot(r, {r.joint_names[0]: motor})
    yield call(driven.simulate, goal, goal, 1.0, duration=0.001)
    yield call(driven.linearise, goal, goal, [0.1], [1.0])
    yield call(drevo.control.HydraulicServo, 2e-4, 1.5e7, 2e-5, 1e-4)
    yield call(drevo.control.closed_loop, r, drevo.control.pd(r, goal, 1.0, 0.1), goal, goal, t=0.0, passive=False)


def controllers(rng: Rng) -> Iterator[Call]:
    """Linear models and laws upon them."""
    r = robot("three-link")
    q, rest, tau = r.random(rng), np.zeros(r.nv), rng.normal(size=r.nv)
    L = r.linearise(q, rest, r.gravity(q))
    yield call(r.linearise, q, rest, tau)
    yield call(r.linearise, q, rest, tau, actuated=r.joint_names)
    yield call(L.discretised, 0.01)
    yield call(L.modes)
    for model in (L, L.discretised(0.01)):
        yield call(control.lqr, model, np.eye(2 * r.nv), np.eye(r.nv))
    q = q + 0.01 * np.arange(5.0)[:, None]
    yield call(control.track, r, 0.01, q, 0.0 * q, 0.0 * q, np.eye(2 * r.nv), np.eye(r.nv))
    yield call(control.tracking_lqr, [L, L], 0.01, np.eye(2 * r.nv), np.eye(r.nv), final=np.eye(2 * r.nv))
    yield call(control.LinearModel, np.eye(2), np.ones((2, 1)), C=np.eye(2), D=np.zeros((2, 1)), dt=0.1)
    follow = control.track(r, 0.01, q, 0.0 * q, 0.0 * q, np.eye(2 * r.nv), np.eye(r.nv))
    yield Call("Tracker", follow, (0.01, q[0], rest), {})
    hand = constraint.point_on_plane(r.link_names[-1], (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))
    yield call(control.stabilise, r, hand, stiffness=25.0, damping=10.0, regularisation=0.1)
    yield Call("Stabiliser", kept(), (0.0, q, 0.0 * q), {})
    yield call(kept().rank, 0.0, q[0], rest)
    yield from more_controllers(r, L, rng)


def more_controllers(r: drevo.Robot, L: Any, rng: Rng) -> Iterator[Call]:
    """What linear models are asked, observers, equilibria, schedules, laws and what leaves of them."""
    n, m = 2 * r.nv, r.nv
    link, batch = r.link_names[-1], r.random(rng, 2)
    yield call(
        r.linearise, batch, 0.0 * batch, r.gravity(batch), f_ext={link: np.ones(6)}, t=0.0, passive=True,
        outputs=["q", "a", f"pose:{link}", f"velocity:{link}"],
    )  # fmt: skip
    Ld = L.discretised(0.01)
    for model in (L, Ld):
        yield call(control.kalman, model, np.eye(n), np.eye(n))
        yield call(control.lqg, model, np.eye(n), np.eye(m), np.eye(n), np.eye(n))
        yield call(control.controllability, model)
        yield call(control.observability, model)
        yield call(model.step_response, 0.2)
        yield call(model.to_scipy)
        yield call(model.poles)
    yield call(control.lqr, Ld, np.eye(n), np.eye(m), horizon=5, final=np.eye(n))
    yield call(control.observer, L, -np.linspace(4.0, 6.0, n))
    yield call(L.step_response, 0.2, samples=11)
    yield call(L.frequency_response, np.array([0.11, 1.3]))
    yield call(L.zeros, output=L.outputs[0], input=L.inputs[0])
    yield call(L.pole_zero_map, L.outputs[0], L.inputs[0])
    yield call(control.LinearModel.of, L.to_scipy())
    yield call(L.write_out, "model")
    yield call(control.trim, r, r.random(rng), actuated=r.joint_names, keep=[], tolerance=1e-8, steps=20)
    law = control.lqr(L, np.eye(n), np.eye(m))
    yield Call("Regulator", law, (0.0, L.q, np.zeros(m)), {})
    yield call(law.write_out, "law")
    made = planned()
    yield call(made.at, np.array([0.1]))
    yield call(made.law, np.array([0.1]))
    yield call(made.write_out)
    if rng.random() < 0.2:
        yield call(
            control.schedule, r, {"joint1": np.array([0.0, 0.1])}, np.eye(n), np.eye(m), q0=np.zeros(3), dt=0.1
        )
    held = [constraint.point_on_plane("rod", (0.1, 0.0, 0.0), normal=(0.0, 0.0, 1.0))]
    free = robot("tumbler")
    yield call(drevo.write_out, r, "mass_matrix", wrt=["q"])
    yield call(
        drevo.write_out, free, "constrained_dynamics", constraints=held, stabilise=(10.0, 25.0), passive=False
    )
    yield call(drevo.compile, r, "constrained_dynamics", wrt="v", constraints=[hinge(r)], check=True)
    yield call(drevo.compile, r, "gravity", wrt=("q", "q"), packed=True, budget=60.0)


def hinge(r: drevo.Robot) -> Any:
    return constraint.point_on_plane(r.link_names[-1], (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))


@cache
def planned() -> control.Schedule:
    r = robot("three-link")
    return control.schedule(r, {"joint1": [0.0, 0.1]}, np.eye(2 * r.nv), np.eye(r.nv))


@cache
def kept() -> control.Stabiliser:
    r = robot("three-link")
    hand = constraint.point_on_plane(r.link_names[-1], (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))
    return control.stabilise(r, hand, stiffness=25.0, damping=10.0)


def documents(rng: Rng) -> Iterator[Call]:
    """Written-out equations, conditions, judged formulas."""
    r = robot("three-link")
    yield call(drevo.write_out, r, "mass_matrix", formalism="auto", symbols="all")
    yield call(drevo.write_out, r, "mass_matrix", symbols=["*.mass"], sequence="merged")
    d = written()
    for way in ("latex", "markdown", "html", "python", "c", "cuda", "matlab"):
        yield call(getattr(d, way))
    yield call(d.evaluate, q=r.random(rng))
    yield call(drevo.conditions, r, constant="mass_matrix")
    yield call(found().compare, list(found().equations)[:2])
    yield call(drevo.conditions, robot("two-arm-planar"), zero=["H_42"])
    yield call(found().motion_of, r)
    yield call(found().realise, bodies=None, counterweights=True, reach=0.5)
    yield call(drevo.check_formulas, r, "H_33 = I_3^q")
    given = dict(mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3), R=np.eye(3), v=(1, 2, 3), omega=(1, 0, 0))
    yield call(drevo.rigid_body_energy, **given, mode="C")
    turning = dict(R=np.eye(3), angles=(0.0, 0.0, 0.0), rates=(1, 0, 0))
    yield call(drevo.rigid_body_energy, **given | turning, mode="A")
    yield call(d.sympy)
    yield call(d.save, folder() / "d.md")
    yield call(drevo.cite, d, "khalil", drevo.compile(r, "gravity"))
    longer = freed()
    yield call(drevo.conditions, robot("two-arm-spatial"), constant=["H_21"], free=["L_4", "m_*"])
    yield call(longer.compare, list(longer.equations)[:2])
    yield Call("PolynomialConditions.equations", lambda: longer.equations, (), {})


@cache
def written() -> drevo.Derivation:
    return drevo.write_out(robot("three-link"), "mass_matrix")


@cache
def folder() -> Path:
    """Where calls save what they make."""
    return Path(tempfile.mkdtemp())


@cache
def freed() -> Any:
    """Conditions with a length among what is free."""
    return drevo.conditions(robot("two-arm-spatial"), constant="mass_matrix", free=["L_4", "m_*", "d_*"])


@cache
def found() -> Any:
    return drevo.conditions(robot("three-link"), constant="mass_matrix")


def wing(rng: Rng) -> Iterator[Call]:
    """Loads, accuracy, walking."""
    r = robot("three-link")
    now = state(r, rng, False)
    last = r.link_names[-1]
    mass = loads.rod(1.0, (0, 0, 0), (0.5, 0, 0))
    span = loads.Span.between((0, 0, 0), (0.5, 0, 0))
    path = loads.Trajectory.through(r, np.array([np.zeros(3), np.ones(3)]), [0.0, 1.0], rows=11)
    yield call(loads.Trajectory.through, r, np.array([np.zeros(3), np.ones(3)]), [0.0, 1.0], rows=11)
    yield call(
        loads.section_loads, r, now["q"], now["v"], now["a"], last, [0.1, 0.2], span=span, distribution="auto"
    )
    yield call(loads.inertial_loads, r, now["q"], now["v"], now["a"])
    yield call(loads.drives, r, path)
    yield call(loads.envelope, r, path, last, 5, span=span)
    yield call(loads.accuracy, r, now["q"], last, point=(0.1, 0.0, 0.0), joint_errors=1e-4, stiffness=1e4)
    yield call(loads.beam, r, last, EA=1e6, GA=1e6, GJ=1e4, EIy=1e4, EIz=1e4, span=span)
    errors = loads.accuracy(
        r, now["q"], last, joint_errors=1e-4, frame_errors=(1e-4, 1e-4), error_distribution="normal"
    )
    yield call(errors.monte_carlo, 10, rng=np.random.default_rng(1))
    yield call(loads.envelope(r, path, last, 5, span=span).at, 0.5)
    yield call(loads.section_motion, r, now["q"], now["v"], now["a"], last, 0.1, span=span)
    yield call(loads.distribution, r.model, last, "box")
    yield call(loads.span_of, r.model, last, loads.distribution(r.model, last))
    yield call(loads.Trajectory, r, path.t, path.q, path.v, path.a)
    yield call(loads.Trajectory.of, r, path.t, path.q)
    yield call(loads.Span.between, (0, 0, 0), (0.5, 0, 0), y=(0, 1, 0), held=0.1)
    yield call(loads.rod, 1.0, (0, 0, 0), (0.5, 0, 0))
    yield call(loads.capsule, 1.0, 0.1, 0.2, at=(0.1, 0.0, 0.0), rotation=np.eye(3))
    yield call(loads.point, 1.0, (0, 0, 0))
    yield call(loads.box, 1.0, (0.1, 0.2, 0.3))
    yield call(loads.sphere, 1.0, 0.1)
    yield call(loads.cylinder, 1.0, 0.1, 0.2)
    yield call(mass.moved, np.eye(4), 1.0)
    diagram = loads.envelope(r, path, last, 5, span=span)
    for save, name in ((path.save, "p.csv"), (diagram.save, "e.csv"), (diagram.save_history, "h.csv")):
        yield call(save, folder() / name)
    path.save(folder() / "q.csv")
    yield call(loads.Trajectory.read, r, folder() / "q.csv", waypoints=False)
    yield call(loads.drives(r, path).save, folder() / "d.csv")


def gaits(rng: Rng) -> Iterator[Call]:
    """Walking: plans at every turn, and now and then a walk, which takes half a second."""
    biped = robot("walker")
    gait = {"length": 0.02, "lift": 0.01, "single": 0.2, "double": 0.2, "settle": 0.4, "dt": 0.04}
    feet = dict(walking.soles(biped))
    yield call(walking.Gait, "g", **gait)
    yield call(walking.soles, biped, feet)
    quick = walking.Gait("g", **gait)
    yield call(walking.plan, biped, 1, quick, feet=feet)
    yield call(walking.draw, walked(), "a step")
    yield Call("GaitPlan.friction", lambda: walked().plan.friction, (), {})
    yield call(walked().series, "tau")
    if rng.random() < 0.1:
        yield call(walking.walk, biped, 1, quick, feet=feet, gain=20.0, progress=None)
        yield call(walking.follow, walked().plan, gain=20.0, progress=None)
        yield call(walking.hop, biped, feet=feet)


@cache
def walked() -> walking.Walk:
    quick = walking.Gait("g", length=0.02, lift=0.01, single=0.2, double=0.2, settle=0.4, dt=0.04)
    return walking.walk(robot("walker"), 1, quick)


def two_links() -> drevo.Builder:
    """A builder that no call before has written to."""
    solid: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": np.eye(3)}
    return drevo.Builder("two").body("a", **solid).body("b", parent="a", origin=(1.0, 0.0, 0.0), **solid)


def described(method: str) -> Callable[..., Any]:
    """A method of a builder, and the robot that comes of it."""

    def made(*args: Any, **given: Any) -> Any:
        return getattr(two_links(), method)(*args, **given).model()

    made.__name__ = method
    return made


def swept(plan: Any, **given: Any) -> Any:
    """A sweep into a folder of its own."""
    return drevo.sweep.run(plan, tempfile.mkdtemp(), **given)


def tails(rng: Rng) -> Iterator[Call]:
    """What couples, what is compiled in other forms, what leaves."""
    r, now = robot("tumbler"), state(robot("tumbler"), rng, bool(rng.integers(2)))
    q, v, a = now["q"], now["v"], now["a"]
    ends = ["a", (0.0, 0.1, 0.0)], ["world", (0.4, 0.0, 0.0)]
    yield call(described("couple"), "b_joint", "a_joint", (0.1, 2.0))
    yield call(described("shaped"), "a", [Shape("box", (0.1, 0.2, 0.3))])
    yield call(
        described("tendon"), "t", [tuple(x) for x in ends], rest=0.3, stiffness=10.0, damping=0.1, lower=0.1
    )
    yield call(described("tendon"), "t", joints={"a_joint": 0.1, "b_joint": -0.2}, rest=(0.0, 0.1), friction=0.1)
    yield call(described("loop"), "revolute", "b", (1.0, 0.0, 0.0), "world", (0.0, 0.0, 0.0), axis_a=(0, 0, 1))
    yield call(constraint.joint_closure, "universal", "rod", (0, 0, 0), (1, 0, 0), "base", (0, 0, 1), (0, 1, 0))
    yield call(r.integrate_derivatives, q, v)
    yield call(r.difference_derivatives, q, q)
    yield call(r.neutral)
    yield call(r.rnea, q, v, a)
    arm = robot("puma560")
    yield call(arm.operational_inertia, np.array([0.1, -0.8, 0.3, 0.4, 0.7, 0.2]), link="link6", frame="local")
    for way, ending in ((r.to_json, "json"), (r.to_toml, "toml"), (robot("three-link").to_urdf, "urdf")):
        yield call(way, folder() / f"r.{ending}")
    yield call(written().text, "c")
    for name in ("biped", "four_bar", "rx90", "scara", "screw_arm", "three_link", "two_arm"):
        yield call(getattr(drevo.robots, name))
    back = drevo.compile(robot("three-link"), "gravity", product="value_and_vjp", tangents="joints")
    yield call(drevo.compile, robot("three-link"), "gravity", product="jvp", tangents="numbers", symmetric=False)
    yield Call("Function of products", back, (np.array([0.1, 0.2, 0.3]), rng.normal(size=3)), {})
    bent = drevo.compile(r, "forward_dynamics", passive=True, f_ext=["rod"], packed=True)
    yield Call("Function of wrenches", bent, (q, v, now["tau"], rng.normal(size=(*q.shape[:-1], 6))), {})
    plan = {"robot": "three-link", "quantity": "gravity", "samples": 50, "shard": 20, "measure": "absolute"}
    yield call(drevo.sweep.read_plan, plan)
    yield call(swept, plan, pool="serial", workers=1)
    if rng.random() < 0.3:
        yield call(
            drevo.export, robot("three-link"), "gravity", "cortex-m4f", dtype="float32", folder=folder(), name="g"
        )


ROOMS = (quantities, descriptions, constraints, motions, controllers, documents, wing, gaits, tails)

__all__ = ["ROOMS", "SCALAR", "Call", "Rng"]
