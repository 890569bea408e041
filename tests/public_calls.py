"""The public face as a table: a right call of everything that a user may call, and what else may be passed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import drevo
from drevo import control
from drevo.apps import loads, walking
from drevo.constrained import constraint
from drevo.model.quantities import CATALOGUE
from drevo.robot import dh
from drevo.simulate import Control, Event, damping, pd

Rng = np.random.Generator


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
    return drevo.load(name)


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
        if name == "operational_inertia":
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
    yield call(r.derivative, "mass_matrix", ("q",))
    yield call(r.function, "gravity")
    yield call(drevo.compile, r, "bias", layout="batch_last", dtype="float32", packed=False, parameters=["*.mass"])
    yield call(drevo.stream, r, "potential_energy", 100, seed=3)


def descriptions(rng: Rng) -> Iterator[Call]:
    """Robots from names, tables and Python."""
    yield call(drevo.load, "three-link", base="fixed", gravity=(0.0, 0.0, -9.81), strict=False)
    b = drevo.Builder("b")
    yield call(
        b.body, "link", parent="world", joint="revolute", axis=(0, 0, 1), origin=(0, 0, 0.3), rpy=(0.1, 0.2, 0.3),
        mass=2.0, com=(0, 0, 0.1), inertia=np.diag([1.0, 2.0, 2.5]), inertia_at="com",
    )  # fmt: skip
    row = {"theta": "q", "d": 0.1, "a": 1.0, "alpha": 0.5, "joint": "revolute", "mass": 1.0, "com": (0, 0, 0.1)}
    rows = [{k: x for k, x in row.items() if k != "theta"} for _ in range(2)]
    yield call(drevo.from_dh, rows, convention="standard")
    yield call(dh.table, robot("three-link"))
    yield call(drevo.robots.rod_chain, 3)
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
    yield call(r.constrained_inverse_dynamics, q, 0.0 * v, 0.0 * a, contacts=touch)
    yield call(r.impact, q, v, contacts=touch, restitution=0.5)
    closed = robot("four-bar")
    yield call(closed.assemble, closed.neutral() + 0.01)
    yield call(constraint.contact, "rod", (0.0, 0.0, 1.0), rows=6)
    yield call(constraint.point_on_plane, "rod", (0, 0, 0), (0, 0, 1), offset=0.1, offset_rate=0.2)
    yield call(constraint.point_to_point, "rod", (0, 0, 0), "base", (0, 0, 1), rows=np.eye(3))
    yield call(constraint.weld, "rod", (0, 0, 0), "base", (0, 0, 1), rotation=np.eye(3))
    yield call(constraint.distance, "rod", (0, 0, 0), "base", (0, 0, 1), 1.0)
    yield call(constraint.gear, "rod_joint", "arm_joint", 2.0)
    yield call(constraint.function, lambda pose, q, t: [q[0] - t], 1)


def motions(rng: Rng) -> Iterator[Call]:
    """Simulations under every kind of drive."""
    r = robot("three-link")
    now = state(r, rng, False)
    q, v = now["q"], now["v"]
    law = Control(lambda t, q, v: [-x for x in v])
    for tau in (None, 0.1 * now["tau"], damping(0.1), pd(np.zeros(r.nq), 1.0, 0.1), law):
        yield call(r.simulate, q, v, tau, duration=0.01, step=1e-3, method="rk4", every=2)
    yield call(r.simulate, q, v, duration=0.01, method="dop853", rtol=1e-8, atol=1e-8)
    yield call(r.simulate, q, v, duration=0.01, events=[Event(lambda t, q, v: q[0] - 10.0)])
    table = r.simulate(q, v, duration=0.01)
    yield call(table.at, 0.005)
    yield Call("Table.energy", lambda: table.energy, (), {})
    yield call(damping, 0.1)
    yield call(pd, np.zeros(r.nq), 1.0, 0.1)


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
    hand = constraint.point_on_plane(r.link_names[-1], (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))
    yield call(control.stabilise, r, hand, 25.0, 10.0)


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
    yield call(drevo.check_formulas, r, "H_33 = I_3^q")
    given = dict(mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3), R=np.eye(3), v=(1, 2, 3), omega=(1, 0, 0))
    yield call(drevo.rigid_body_energy, **given, mode="A")


@cache
def written() -> drevo.Derivation:
    return drevo.write_out(robot("three-link"), "mass_matrix")


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
    yield call(loads.point, 1.0, (0, 0, 0))
    yield call(loads.box, 1.0, (0.1, 0.2, 0.3))
    yield call(loads.sphere, 1.0, 0.1)
    yield call(loads.cylinder, 1.0, 0.1, 0.2)
    yield call(mass.moved, np.eye(4), 1.0)
    yield call(walking.plan, robot("biped"), 2)
    yield call(walking.soles, robot("biped"))


ROOMS = (quantities, descriptions, constraints, motions, controllers, documents, wing)

# -- what else people pass ----------------------------------------------------------------------------------------

_VALUES: tuple[Any, ...] = (
    None, "", "x", "link1", "joint1", b"q", "\ud800", "q" * 2000, True, 0, 1, -1, 2**70, 0.0, -0.0, 1e-320, 1e300,
    -1e9, 2.5, 1j, float("nan"), float("inf"), np.float32(1.0), (), [], {}, set(), [None], ["a"], [[]], {"a": 1},
    {"link1": [1, 2]}, object(), int, print, lambda *x: x[0], range(3), slice(3),
    np.array([]), np.array(None), np.array("a"), np.zeros(0), np.full(3, np.nan), np.zeros((3, 0)), np.eye(3),
    np.eye(4), np.ones(3) * 1j, np.ones(3, int), np.ones(3, "datetime64[s]"),
    np.ma.masked_array(np.ones(3), [1, 0, 0]),
)  # fmt: skip


def of_array(x: np.ndarray, rng: Rng) -> Any:
    """An array that somebody could take for x."""
    spoilt = x.astype(float).copy()
    if spoilt.size:
        spoilt.flat[rng.integers(spoilt.size)] = rng.choice([np.nan, np.inf, 1e200, 1e12, 0.0])
    ways = [
        x.tolist(), x.astype(np.float32), x.astype(complex), x + 1j, x.astype(object), x.astype(str), x[..., :-1],
        np.append(x, 1.0), x[None], x.T, x[..., ::-1], -x, 1e8 * x, 0.0 * x, spoilt, np.asfortranarray(x),
        x.astype(">f8"), x.view(np.recarray) if x.ndim else x, np.broadcast_to(x, (2, *x.shape)), 
        memoryview(x.copy()),
    ]  # fmt: skip
    return ways[rng.integers(len(ways))]


def spoilt(c: Call, rng: Rng) -> Call:
    """The call with one argument, or two, of another kind."""
    args, given = list(c.args), dict(c.given)
    places: list[Any] = [*range(len(args)), *given]
    for _ in range(1 + (rng.random() < 0.2)):
        if not places:
            return c
        at = places[rng.integers(len(places))]
        old = args[at] if isinstance(at, int) else given[at]
        if isinstance(old, np.ndarray) and old.dtype.kind == "f" and rng.random() < 0.7:
            new = of_array(old, rng)
        else:
            new = _VALUES[rng.integers(len(_VALUES))]
        if isinstance(at, int):
            args[at] = new
        else:
            given[at] = new
    return Call(c.name, c.function, tuple(args), given)


# -- what comes back ----------------------------------------------------------------------------------------------


def numbers(x: Any, depth: int = 0) -> Iterator[np.ndarray]:
    """The arrays and numbers in a result."""
    if isinstance(x, (float, complex, np.ndarray, np.generic)):
        if np.asarray(x).dtype.kind in "fc":
            yield np.asarray(x)
    elif depth > 3:
        return
    elif isinstance(x, Mapping):
        for value in x.values():
            yield from numbers(value, depth + 1)
    elif isinstance(x, (tuple, list)):
        for value in x:
            yield from numbers(value, depth + 1)
    elif dataclasses.is_dataclass(x) and not isinstance(x, type):
        for field in dataclasses.fields(x):
            yield from numbers(getattr(x, field.name, None), depth + 1)


__all__ = ["ROOMS", "Call", "numbers", "spoilt"]
