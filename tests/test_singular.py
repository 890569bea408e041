"""Accelerations near a configuration where M is singular: right to some digits, or the joint is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import strategies
from reference import on_each

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.formalisms import formalisms_giving
from drevo.compiler.recipe import Recipe
from drevo.constraint import values as constraint
from drevo.errors import NumericsError
from drevo.mechanics.configuration import random
from drevo.model.description import Model

ANGLES = (0.3, 1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-12)
INVERSE = (
    "forward_dynamics",
    "inverse_mass_matrix",
    "forward_dynamics_derivatives",
    "inverse_operational_inertia",
)


def wrist(links: int = 0, first: str = "z") -> drevo.Robot:
    """Three axes through one point, the first two bodies without mass, and some links that hang on the third."""
    b = drevo.Builder("wrist", gravity=(0, 0, -9.81))
    b.body("a", joint="revolute", axis={"x": (1, 0, 0), "z": (0, 0, 1)}[first])
    b.body("b", parent="a", joint="revolute", axis=(0, 1, 0))
    solid: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.02, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    b.body("c", parent="b", joint="revolute", axis=(0, 0, 1), **solid)
    for k in range(links):
        b.body(
            f"d{k}",
            parent=f"d{k - 1}" if k else "c",
            joint="revolute",
            axis=(0, 1, 0),
            origin=(0.3, 0, 0),
            **solid,
        )
    return b.robot()


def state(f: Any, nq: int, angle: float) -> list[np.ndarray]:
    given = {"q": np.full(nq, 0.3), "v": np.full(nq, 0.1), "tau": np.ones(nq), "parameters": np.ones(1)}
    given["q"][1] = angle
    return [given[n].astype(f.dtype) for n, _ in f.inputs]


@pytest.mark.parametrize("quantity", INVERSE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_near_a_singular_configuration(quantity: str, dtype: str) -> None:
    """By every formalism, for one state and in a batch: at least a digit is right, or the joint is named."""
    robot = wrist()
    options = {"link": "c", "frame": "local"} if "operational" in quantity else {}
    plain = Recipe((quantity,), formalism="newton_euler", options=options).program(robot.model)
    for formalism in ("auto", *(f for f in formalisms_giving(quantity) if "planar" not in f)):
        f = drevo.compile(robot, quantity, formalism=formalism, dtype=dtype, cache=False, **options)
        refused = []
        for angle in ANGLES:
            args = state(f, 3, angle)
            rows = [np.tile(x, (5, 1)) for x in args]
            rows[0][:3, 1] = 0.5
            try:
                got = f(*args)
                f(*rows)
            except NumericsError as error:
                refused.append(angle)
                assert "'a_joint'" in str(error) and "singular" in str(error)
                with pytest.raises(NumericsError, match=r"'a_joint' in row 3"):
                    f(*rows)
                continue
            precisely = {n: x.astype(np.longdouble) for (n, _), x in zip(f.inputs, args)}
            precise = evaluate(plain, precisely, dtype=np.longdouble)
            for mine, right in zip(got if isinstance(got, tuple) else [got], precise.values()):
                assert np.max(np.abs(mine - right)) < 0.1 * np.max(np.abs(right)), (formalism, angle)
        assert refused[-3:] == [1e-8, 1e-9, 1e-12] and (len(refused) < 5 or dtype == "float32")


def turned(words: str, seed: int = 5, links: int = 0) -> drevo.Robot:
    """Slides P and hinges R along x, y and z through one point, all bodies but the last without mass, their frames
    turned at random."""
    b, frame, rng, joints = (
        drevo.Builder("turned", gravity=(0, 0, -9.81)),
        np.eye(3),
        np.random.default_rng(seed),
        words.split(),
    )
    for k, (kind, axis) in enumerate(joints):
        own, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        own *= np.linalg.det(own)
        last = {"mass": 1.0, "com": own.T @ (0.1, 0.02, 0.3), "inertia": own.T @ np.diag([0.1, 0.2, 0.25]) @ own}
        b.body(
            f"b{k}", parent=f"b{k - 1}" if k else "world", joint={"P": "prismatic", "R": "revolute"}[kind],
            axis=own["xyz".index(axis)], rotation=frame.T @ own, **(last if k == len(joints) - 1 else {}),
        )  # fmt: skip
        frame = own
    for k in range(links):
        b.body(
            f"d{k}", parent=f"d{k - 1}" if k else f"b{len(joints) - 1}", origin=(0.3, 0, 0), axis=(0, 1, 0),
            mass=1.0, inertia=np.diag([0.1, 0.2, 0.25]),
        )  # fmt: skip
    return b.robot()


def at(robot: drevo.Robot, angle: float) -> list[np.ndarray]:
    """A state with all hinges of the bodies without mass at one angle."""
    q = np.array([angle if j.kind == "revolute" and j.child[0] == "b" else 0.3 for j in robot.model.joints])
    return [q, np.full(robot.nv, 0.1), np.ones(robot.nv)]


@pytest.mark.parametrize(
    "words, dtype",
    [("Py Rx Px Rz Px", "float64"), ("Py Rx Px Rz Px", "float32"), ("Rx Py Rz Py Rx Py", "float64")],
)
def test_singularities_that_multiply(words: str, dtype: str) -> None:
    """Two or three joints that others turn into one another: each pivot is far from lost, all digits are."""
    robot = turned(words)
    plain = Recipe(("forward_dynamics",), formalism="newton_euler").program(robot.model)
    for formalism in ("auto", *(f for f in formalisms_giving("forward_dynamics") if "planar" not in f)):
        f = drevo.compile(robot, "forward_dynamics", formalism=formalism, dtype=dtype, cache=False)
        refused = []
        for angle in (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5):
            args = [x.astype(dtype) for x in at(robot, angle)]
            try:
                got = f(*args)
            except NumericsError as error:
                refused.append(angle)
                assert "singular" in str(error) and ", beside '" in str(error)
                continue
            precise = {n: x.astype(np.longdouble) for (n, _), x in zip(f.inputs, args)}
            (right,) = evaluate(plain, precise, dtype=np.longdouble).values()
            assert np.max(np.abs(got - right)) < 0.1 * np.max(np.abs(right)), (formalism, angle)
        assert refused[-2:] == [1e-4, 1e-5] and 0.1 not in refused


@pytest.mark.parametrize("links", [0, pytest.param(70, marks=pytest.mark.slow)])
def test_calls_where_singularities_multiply(links: int) -> None:
    """All that solves with M names the joint: kernels, loops over the bodies, dense solves, motions."""
    robot, held = turned("Py Rx Px Rz Px", links=links), [constraint.point_on_plane("b4", (0, 0, 0), (0, 1, 0))]
    calls: list[Any] = [robot.inverse_mass_matrix, robot.forward_dynamics, robot.forward_dynamics_derivatives]
    calls.append(lambda *x: robot.inverse_operational_inertia(x[0], "b4"))
    calls.append(lambda *x: robot.constrained_dynamics(*x, constraints=held).a)
    calls.append(lambda *x: robot.simulate(*x, duration=2e-9, dt=1e-9).v)
    for call in calls:
        first = call is calls[0]
        call(*at(robot, 1e-2)[: 1 if first else 3])
        with pytest.raises(NumericsError, match="'b0_joint'"):
            call(*at(robot, 1e-5)[: 1 if first else 3])


@pytest.mark.parametrize("count", [2, 30])
@pytest.mark.parametrize("formalism", ["auto", "articulated_body"])
def test_singularities_behind_a_body_do_not_multiply(count: int, formalism: str) -> None:
    """Wrists one behind the other and side by side, with a body of its own inertia between."""
    b = drevo.Builder("wrists", gravity=(0, 0, -9.81))
    solid: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.02, 0.3), "inertia": np.diag([0.1, 0.2, 0.25])}
    for w in range(count):
        parent = f"c{(w - 1) // 2}" if w else "world"
        b.body(f"a{w}", parent=parent, axis=(0, 0, 1), origin=(0.3, 0.1, 0.2))
        b.body(f"b{w}", parent=f"a{w}", axis=(0, 1, 0)).body(f"c{w}", parent=f"b{w}", axis=(0, 0, 1), **solid)
    robot, rng = b.robot(), np.random.default_rng(1)
    f = drevo.compile(robot, "forward_dynamics", formalism=formalism if count == 2 else "auto", cache=False)
    q, v, tau = np.tile([0.3, 1e-5, 0.4], count), *rng.normal(size=(2, robot.nv))
    a = f(q, 0.1 * v, tau)
    left = robot.inverse_dynamics(q, 0.1 * v, a) - tau
    sizes = np.abs(robot.mass_matrix(q)) @ np.abs(a)
    assert np.all(np.abs(left) < 1e-13 * robot.nv * sizes)  # backward stable
    assert np.abs(robot.constrained_dynamics(q, 0.1 * v, tau).a - a).max() < 1e-4 * np.abs(a).max()


@pytest.mark.parametrize("how", [{"layout": "batch_last"}, {"packed": True}, {"parameters": ["c.mass"]}])
def test_singular_in_every_layout(how: dict[str, Any]) -> None:
    """Other ways to ask for the same."""
    f = drevo.compile(wrist(), "inverse_mass_matrix", cache=False, **how)
    for angle, batch in ((0.3, 0), (1e-9, 0), (0.3, 9), (1e-9, 9)):
        args = state(f, 3, angle)
        if batch:
            args = [np.tile(x, (batch, 1)) for x in args]
            args = [np.ascontiguousarray(x.T) for x in args] if how.get("layout") else args
        if angle == 0.3:
            f(*args)
            continue
        with pytest.raises(NumericsError, match="'a_joint'"):
            f(*args)
    unchecked = drevo.compile(wrist(), "inverse_mass_matrix", check=False, cache=False)
    assert np.isfinite(unchecked(*state(unchecked, 3, 1e-9))).all()


def test_rolled_near_a_singular_configuration() -> None:
    """A loop over the bodies tests its pivots too."""
    f = wrist(70).forward_dynamics
    x = [np.full((7, 73), 0.3), np.full((7, 73), 0.1), np.ones((7, 73))]
    x[0][3, 1] = 1e-5
    assert np.isfinite(f(*x)).all() and np.isfinite(f(*(y[3] for y in x))).all()
    x[0][4, 1] = 1e-9
    with pytest.raises(NumericsError, match=r"'a_joint' in row 4"):
        f(*x)
    with pytest.raises(NumericsError, match="'a_joint'"):
        f(*(y[4] for y in x))


def test_derivatives_near_a_singular_configuration() -> None:
    """Derivatives of accelerations by the graph and by the recursion."""
    for wrt in (("q",), ("tau",)):
        d = drevo.compile(wrist(), "forward_dynamics", wrt=wrt)
        assert np.isfinite(d(*state(d, 3, 1e-4))).all()
        with pytest.raises(NumericsError, match="'a_joint'"):
            d(*state(d, 3, 1e-9))


def test_constrained_near_a_singular_configuration() -> None:
    """The small dense solve refuses the same configurations."""
    robot, held = wrist(2), [constraint.point_on_plane("d1", (0, 0, 0), normal=(0, 1, 0))]
    q, v, tau = np.full(5, 0.3), np.zeros(5), np.zeros(5)
    assert np.isfinite(robot.constrained_dynamics(q, v, tau, constraints=held).a).all()
    q[1] = 1e-9
    with pytest.raises(NumericsError, match="'a_joint'"):
        robot.constrained_dynamics(q, v, tau, constraints=held)


@pytest.mark.parametrize("links", [0, 70])
@pytest.mark.parametrize("how", ["compiled", "constrained", "law", "adaptive"])
def test_motion_near_a_singular_configuration(links: int, how: str) -> None:
    """Motions stop where accelerations have no digit, and name the joint: one, a batch, a loop over the bodies."""
    robot = wrist(links)
    q = np.full((3, robot.nq), 0.3)
    q[1, 1] = 1e-5
    rest: dict[str, Any] = {"dt": 1e-6, "duration": 2e-6}
    tau = None if how != "law" else lambda t, q, v: -1e-9 * v
    if how == "constrained":
        if links:
            return  # its parts are compiled, and tested above
        rest["constraints"] = [constraint.point_on_plane("c", (0.1, 0, 0), normal=(0, 1, 0))]
        rest["stabilise"] = (20.0, 100.0)
    if how == "adaptive":
        rest = {"duration": 1e-9, "rtol": 1e-3, "atol": 1.0}
    assert np.isfinite(robot.simulate(q, 0.0 * q, tau, **rest).v).all()
    q[1, 1] = 1e-9
    with pytest.raises(NumericsError, match="'a_joint'"):
        robot.simulate(q, 0.0 * q, tau, **rest)
    with pytest.raises(NumericsError, match="'a_joint'"):
        robot.simulate(q[1], 0.0 * q[1], tau, **rest)


def test_assembly_at_a_singular_configuration() -> None:
    """M only measures what is near there, so a start where it is singular is one like others."""
    robot, held = wrist(), [constraint.point_on_plane("c", (0.1, 0, 0.3), normal=(1, 0, 0))]
    for angle in (1e-9, 0.0):
        found = robot.assemble([0.3, angle, 0.2], constraints=held)
        assert abs((robot.pose(found, "c") @ [0.1, 0, 0.3, 1])[0]) < 1e-12
    with pytest.raises(NumericsError, match="1e\\+300"):
        flying().assemble([1e300, 0, 0, 0, 0, 0, 1], constraints=held)


def flying() -> drevo.Robot:
    """A free body."""
    b = drevo.Builder("flying")
    b.body("c", joint="free", mass=1.0, inertia=np.eye(3))
    return b.robot()


@pytest.mark.slow
def test_sound_robots_are_never_refused() -> None:
    """Random trees, thin bodies, light hands on heavy arms, long chains: all have accelerations."""
    b = drevo.Builder("thin")
    for k, m in enumerate((1e3, 1.0, 1e-3, 1e-6)):
        b.body(f"l{k}", parent=f"l{k - 1}" if k else "world", axis=(0, 0, 1) if k % 2 else (1, 0, 0),
               origin=(0, 0, 0.5), mass=m, com=(0, 0, 0.25), inertia=m * np.diag([0.02, 0.02, 1e-4]))  # fmt: skip
    models = [b.robot().model, drevo.load("rod-chain").model, *(strategies.robot(s, n=6) for s in range(4))]

    def check(model: Model, _: int) -> None:
        for dtype in ("float64", "float32"):
            f = drevo.compile(model, "forward_dynamics", dtype=dtype)
            rng = np.random.default_rng(0)
            q = np.array([random(model, rng) for _ in range(20)])
            assert np.isfinite(f(q, *rng.normal(size=(2, 20, model.nv)))).all()

    on_each(models, check)


def test_guards_are_no_operations() -> None:
    """What is counted and written is the quantity alone."""
    model = wrist(2).model
    f = drevo.compile(model, "forward_dynamics")
    program = Recipe(("forward_dynamics",)).program(model)
    assert len(program.guards) >= 3 and f.counts == program.counts
    reached = program.graph.live(program.output_edges)
    assert (
        program.order() == reached and not drevo.write_out(drevo.Robot(model), "forward_dynamics").program.guards
    )
