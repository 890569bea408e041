"""Compiled functions that take model scalars as arguments, against robots rebuilt with the new values."""

from __future__ import annotations

import os
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import strategies
from rebuilt import rebuilt
from reference import Reference, close, robot_shown

import drevo
from drevo import robots
from drevo.codegen.call.function import Spec, obtain
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.program import Input, Output, Parameter, Program
from drevo.compiler.formalisms import formalisms_giving
from drevo.compiler.trace import trace
from drevo.errors import InputError, TraceError
from drevo.mechanics.configuration import random
from drevo.model.description import Model
from drevo.model.quantities import CATALOGUE

TREES = 200 if "DREVO_TREES" in os.environ else 5  # all of them every night
TOGETHER = ("mass_matrix", "inverse_dynamics", "forward_dynamics", "gravity", "kinetic_energy", "center_of_mass")
DERIVED = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
STATE = {"q": 0, "v": 1, "a": 2, "tau": 2}
ROWS = 3


def subset(model: Model, rng: np.random.Generator, kind: int) -> list[str]:
    """Patterns and names of every kind, by number."""
    every = [p.name for p in trace(model, "mass_matrix", parameters=["*"], compiled=True).parameters]
    patterns: list[list[str]] = [
        ["*"],
        *([p] for p in ("*.mass", "*.com.*", "*.inertia.*", "*.origin.*", "gravity")),
    ]
    patterns = [p for p in patterns if p == ["*"] or any(_hits(p[0], x) for x in every)]
    one = [str(rng.choice(every))]
    half = [x for x in every if rng.random() < 0.5] or one
    link = [one[0].split(".")[0]]
    return (*patterns, one, half, link)[kind % (len(patterns) + 3)]


def _hits(pattern: str, name: str) -> bool:
    return pattern.strip("*.") in name.split(".")


def compare(model: Model, parameters: list[str], wanted: Any, seed: int = 0, **how: Any) -> None:
    """Every row has parameters of its own, within a few per cent of the model's."""
    rng = np.random.default_rng(seed)
    f = drevo.compile(model, wanted, parameters=parameters, cache=False, **how)
    q = np.array([random(model, rng) for _ in range(ROWS)])
    v, a = rng.normal(size=(2, ROWS, model.nv))
    x = np.array([p for _, p in f.parameters]) * (1.0 + 0.03 * rng.uniform(-1.0, 1.0, (ROWS, len(f.parameters))))
    state = [(q, v, a)[STATE[n]] for n, _ in f.inputs[:-1]]
    got = f(*state, x)
    names = [wanted] if isinstance(wanted, str) else wanted
    for r in range(ROWS):
        other = Reference(rebuilt(model, dict(zip((n for n, _ in f.parameters), x[r]))))
        expected: list[Any] = []
        for n in names:
            found = other.compute(n, *((q, v, a)[STATE[s]][r] for s in CATALOGUE[n].state))
            expected += list(found) if isinstance(found, tuple) else [found]
        least = 1e-6 * max(float(np.max(np.abs(x))) for x in expected)  # of what all but vanishes
        for (n, _), mine, its in zip(f.outputs, got if isinstance(got, tuple) else [got], expected):
            close(f"{n} with parameters", mine[r], its, 1e-9, max(least, float(np.max(np.abs(its)))))


@pytest.mark.parametrize("seed", range(TREES))
def test_parameters_of_random_trees(seed: int) -> None:
    """A function of some of the parameters gives what a robot rebuilt with their values gives."""
    model = strategies.robot(seed, n=2 + seed % 5)
    if not model.nv:
        return
    with robot_shown(model):
        kinds = range(9) if TREES > 100 else (seed, seed + 5)
        for kind in kinds:
            compare(model, subset(model, np.random.default_rng(seed + kind), kind), TOGETHER, seed)
        compare(model, subset(model, np.random.default_rng(seed), 7), DERIVED[seed % 2], seed)


@pytest.mark.parametrize("name", sorted(robots.EMBEDDED))
def test_parameters_of_embedded_robots(name: str) -> None:
    """The same on every embedded robot."""
    model = robots.model(name)
    rng = np.random.default_rng(1)
    for kind in range(9) if TREES > 100 else (len(name) % 9,):
        compare(model, subset(model, rng, kind), ("mass_matrix", "inverse_dynamics"))


def two_bodies() -> Model:
    """Two hinges on parallel axes."""
    b = drevo.Builder("two")
    inertia = np.diag([0.1, 0.2, 0.25])
    b.body("a", parent="world", joint="revolute", axis=(0, 0, 1), mass=1.0, com=(0.1, 0.2, 0.3), inertia=inertia)
    b.body("w", parent="a", joint="revolute", axis=(0, 0, 1), origin=(0.1, 0, 0.2), mass=2.0,
           com=(0.2, 0.1, 0.05), inertia=inertia)  # fmt: skip
    model: Model = b.robot().model
    return model


@pytest.mark.parametrize("quantity", ["mass_matrix", "inverse_dynamics", "forward_dynamics"])
def test_parameters_by_every_formalism(quantity: str) -> None:
    """Phases and amplitudes made of parameters: every formalism, one parameter and all."""
    for formalism in ("auto", *formalisms_giving(quantity)):
        for parameters in (["w.mass"], ["*"]):
            compare(two_bodies(), parameters, quantity, formalism=formalism)


@pytest.mark.parametrize("how", [{"layout": "batch_last"}, {"dtype": "float32"}, {"packed": True}])
def test_parameters_in_every_layout(how: dict[str, Any]) -> None:
    """The issue's own robot at its known value, by every kind of function and call."""
    f = drevo.compile(two_bodies(), "mass_matrix", parameters=["w.mass"], formalism="khalil", cache=False, **how)
    for batch in (0, 1, 3, 17):
        q, x = np.array([0.4, 0.7]), np.array([3.0])
        if batch:
            q, x = (np.tile(y, (batch, 1)).astype(f.dtype) for y in (q, x))
        got = f(q.T, x.T).T if how.get("layout") == "batch_last" else f(q, x)
        first = np.asarray(got).reshape(max(1, batch), -1)[-1][0]
        assert abs(first - 0.783128) < 2e-6


@pytest.mark.parametrize("state", [False, True])
def test_every_operation_of_the_graph_has_code(state: bool) -> None:
    """Angles in all four quadrants and on the axes, single and in batches, both precisions."""
    g = Graph()
    y, x = ((g.input if state else g.parameter)(name) for name in "yx")
    ports = (Input("p", (2,), (y.edge >> 1, x.edge >> 1)),) if state else ()
    made = () if state else (Parameter("y", y.edge >> 1, 1.0), Parameter("x", x.edge >> 1, 1.0))
    p = Program("angle", g, ports, made, (Output("angle", (1,), (y.atan2(x).edge,)),))
    grid = [0.0, 1.0, -1.0, 0.3, -2.5, 1e-8, -1e-8, 7e5, 1e-300]
    pairs = np.array([(y, x) for y in grid for x in grid])
    for dtype, tolerance in (("float64", 5e-16), ("float32", 4e-7)):
        f = obtain("angles", lambda: p, Spec(dtype=dtype, parameters=not state), cache=False)
        given = pairs.astype(dtype)
        expected = np.arctan2(given[:, 0].astype(float), given[:, 1].astype(float))
        assert np.max(np.abs(f(given).ravel() - expected)) < tolerance
        assert np.array_equal([f(x).ravel()[0] for x in given], f(given).ravel())


def test_lengths_of_a_compiled_function_are_their_own() -> None:
    """Each joint has its own, with its sign, however many are equal."""
    b = drevo.Builder("arm")
    for k, x in enumerate((0.3, -0.3, 0.3)):
        b.body(f"l{k}", parent=f"l{k - 1}" if k else "world", joint="revolute", axis=(0, 1, 0), origin=(x, 0, 0.3),
               mass=1.0, com=(0.1, 0, 0.2), inertia=np.eye(3) * 0.1)  # fmt: skip
    model = b.robot().model
    f = drevo.compile(model, "mass_matrix", parameters=["*.origin.*"])
    assert len(f.parameters) == 6 and dict(f.parameters)["l1_joint.origin.x"] == -0.3
    compare(model, ["*.origin.*"], "mass_matrix")
    compare(model, ["l1_joint.origin.x", "l2_joint.origin.x"], "inverse_dynamics")
    zero = np.array([x for _, x in f.parameters]) * 0.0
    expected = Reference(rebuilt(model, {n: 0.0 for n, _ in f.parameters})).mass_matrix(np.ones(3))
    close("mass matrix at length 0", f(np.ones(3), zero), expected, 1e-12)


def test_parameters_and_wrenches() -> None:
    """Wrenches go between the state and the parameters, however many there are of either."""
    model = two_bodies()
    robot = drevo.Robot(model)
    f = drevo.compile(robot, "inverse_dynamics", parameters=["w.com", "w.inertia"])
    q, v, a, w = np.random.default_rng(0).normal(size=(4, 2)), *(np.ones(2),) * 2, np.arange(6.0)
    x = 1.1 * np.array([p for _, p in f.parameters])
    other = drevo.Robot(rebuilt(model, dict(zip((n for n, _ in f.parameters), x))))
    expected = other.inverse_dynamics(q, v, a, f_ext={"w": w})
    assert len(x) == 6
    close("wrenches", f(q, v, a, x, f_ext={"w": w}), expected, 1e-12)
    close("wrenches by name", f(q=q, v=v, a=a, parameters=x, f_ext={"w": w}), expected, 1e-12)
    close("no wrench", f(q, v, a, x, f_ext=None), other.inverse_dynamics(q, v, a), 1e-12)


def test_names_with_brackets_are_names() -> None:
    """A name is taken as it stands before it is taken as a pattern."""
    b = drevo.Builder("odd")
    b.body("link[0]", parent="world", joint="revolute", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    robot = b.robot()
    assert drevo.compile(robot, "mass_matrix", parameters=["link[0].mass"]).parameters == (("link[0].mass", 1.0),)
    with pytest.raises(TraceError, match="names nothing"):
        drevo.compile(robot, "mass_matrix", parameters=["link[1].mass"])


@pytest.mark.parametrize("quantity", ["mass_matrix", "inverse_dynamics"])
@pytest.mark.parametrize("seed", range(2))
def test_written_out_with_some_symbols(quantity: str, seed: int) -> None:
    """A page with part of the parameters as symbols, at other values than the robot's own."""
    model = strategies.robot(seed + 40, n=3, mimics=0.0)
    rng = np.random.default_rng(seed)
    q, v, a = strategies.state(model, seed)
    for kind in (1, 2, 6):
        names = subset(model, rng, kind)
        d = drevo.write_out(drevo.Robot(model), quantity, symbols=names)
        x = {p.name: p.value * (1.0 + 0.05 * rng.random()) for p in d.program.parameters}
        given = {"q": q, "v": v, "a": a}
        state = {s: given[s] for s in CATALOGUE[quantity].state}
        expected = Reference(rebuilt(model, x)).compute(quantity, *state.values())
        close("page with symbols", d.evaluate(**state, parameters=x), expected, 1e-9)


# -- their order -----------------------------------------------------------------------------------------------


def expected_order(model: Model, asked: list[str], known: list[str]) -> list[str]:
    """Names as a list of names and patterns of links' parameters tells them."""
    out: list[str] = []
    for pattern in asked:
        for link in model.links:
            mine = [x for x in known if x.rpartition(".")[0] == link.name and fnmatchcase(x, pattern)]
            out += [x for x in mine if x not in out]
    return out


@pytest.mark.parametrize("seed", range(40 if TREES > 100 else 6))
def test_values_stand_in_the_order_of_the_list(seed: int) -> None:
    """Of random trees whose links stand in any order, against robots rebuilt with the values, by name."""
    rng = np.random.default_rng(seed)
    model = strategies.robot(seed, n=3 + seed % 4)
    first, *rest = model.links
    model = replace(model, links=(first, *(rest[k] for k in rng.permutation(len(rest)))))
    if not model.nv:
        return
    known = [p.name for p in trace(model, "mass_matrix", parameters=["*.mass"], compiled=True).parameters]
    some = [str(x) for x in rng.permutation(known)[: int(rng.integers(1, len(known) + 1))]]
    for asked in (some, [*some, "*.mass"], ["*.mass"], [f"{some[0][0]}*.mass", "*.mass"]):
        names = expected_order(model, asked, known)
        for how in ({}, {"product": "jvp"}, {"product": "vjp"}):
            f = drevo.compile(model, "gravity", parameters=asked, cache=False, **how)
            assert [name for name, _ in f.parameters] == names, (asked, how)
        compare(model, asked, "inverse_dynamics", seed)


def test_a_mapping_names_the_values(seed: int = 3) -> None:
    """At the call, in every layout; others are the robot's own, and names that are none are refused."""
    robot = drevo.load("puma560")
    q = np.random.default_rng(seed).normal(size=(4, 6))
    names = ["link6.mass", "link2.com.x", "link3.mass"]
    f = drevo.compile(robot, "gravity", parameters=names)
    assert [name for name, _ in f.parameters] == names
    own = dict(f.parameters)
    masses = np.linspace(1.0, 2.0, 4)
    row = np.stack([masses, np.full(4, own["link2.com.x"]), np.full(4, 3.0)], -1)
    by_name = f(q, {"link3.mass": 3.0, "link6.mass": masses})
    assert (by_name == f(q, row)).all() and (f(q, parameters={}) == f(q, list(own.values()))).all()
    columns = drevo.compile(robot, "gravity", parameters=names, layout="batch_last")
    assert (columns(q.T, {"link3.mass": 3.0, "link6.mass": masses}) == by_name.T).all()
    product = drevo.compile(robot, "gravity", parameters=names, product="vjp")
    w = np.ones((4, 6))
    for x, y in zip(product(q, {"link3.mass": 3.0, "link6.mass": masses}, w), product(q, row, w)):
        assert (x == y).all()
    with pytest.raises(InputError, match=r"'link7\.mass' is none of its parameters.*did you mean"):
        f(q, {"link7.mass": 1.0})
    with pytest.raises(InputError, match="shapes of its parameters do not agree"):
        f(q, {"link3.mass": np.ones(3), "link6.mass": masses})


def test_steps_take_values_in_the_order_of_the_list(tmp_path: Path) -> None:
    """Of the model, of friction and of the ground, mixed, under both laws."""
    ball = '<geom name="{}" type="sphere" size="0.1" mass="{}"/>'
    inner = f'<body name="b" pos="0 0 1"><joint axis="0 1 0"/>{ball.format("h", 2)}</body>'
    outer = f'<body name="a"><freejoint/>{ball.format("g", 1)}{inner}</body>'
    path = tmp_path / "two.xml"
    path.write_text(f"<mujoco><worldbody>{outer}</worldbody></mujoco>", encoding="utf-8")
    robot = drevo.load(path)
    floor = drevo.ground.function(lambda x, y, slope: slope * x, parameters={"slope": 0.1})
    for law in ("soft", "coulomb"):
        for asked in (["b.mass", "ground", "a.mass", "friction"], ["friction", "a.mass", "b.mass", "ground"]):
            f = drevo.compile(robot, "step", dt=1e-3, ground=floor, law=law, parameters=asked)
            assert [name for name, _ in f.parameters] == [x.replace("ground", "ground.slope") for x in asked]
            own = dict(f.parameters)
            assert (own["a.mass"], own["b.mass"], own["ground.slope"]) == (1.0, 2.0, 0.1)
            q, v = robot.neutral(), np.linspace(-0.3, 0.3, robot.nv)
            q[2] = 0.099
            usual = drevo.compile(robot, "step", dt=1e-3, ground=floor, law=law)(q, v, 0.0 * v)
            for given in (list(own.values()), {"a.mass": 1.0}):
                for x, y in zip(f(q, v, 0.0 * v, given), usual):
                    assert np.allclose(x, y, rtol=1e-9, atol=1e-9)
            other = f(q, v, 0.0 * v, {"ground.slope": 0.3})
            assert not np.allclose(other[2], usual[2]) and np.isfinite(other[1]).all()


@pytest.mark.parametrize("system", ["casadi", "jax", "torch"])
def test_functions_of_other_systems_take_values_in_the_order_of_the_list(system: str) -> None:
    other: Any = pytest.importorskip(system)
    robot, names = drevo.load("three-link"), ["link3.mass", "link1.mass"]
    f = drevo.compile(robot, "gravity", parameters=names)
    q, x, named = np.array([0.1, 0.2, 0.3]), np.array([5.0, 7.0]), {"link1.mass": 7.0}
    if system == "casadi":
        assert np.allclose(other.DM(drevo.casadi.function(robot, "gravity", names)(q, x)).full().ravel(), f(q, x))
        return
    if system == "jax":
        before = other.config.jax_enable_x64
        other.config.update("jax_enable_x64", True)
    try:
        g = (drevo.jax if system == "jax" else drevo.torch).function(robot, "gravity", names)
        assert g.parameters == f.parameters
        array = np.asarray if system == "jax" else other.tensor
        assert (np.asarray(g(array(q), array(x))) == f(q, x)).all()
        assert (np.asarray(g(array(q), {name: array(k) for name, k in named.items()})) == f(q, named)).all()
    finally:
        if system == "jax":
            other.config.update("jax_enable_x64", before)
