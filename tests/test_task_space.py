"""Quantities of the task space and the balance of power, against dense algebra, Pinocchio and differences."""

import numpy as np
import pytest
from oracles import pinocchio_of
from strategies import robot as random_tree
from strategies import seeds, state
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app


def robot_of(seed: int) -> tuple[drevo.Robot, str]:
    model = random_tree(seed)
    return drevo.Robot(model), model.links[-1].name


def close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_rates_and_accelerations_by_the_matrices(seed: int) -> None:
    robot, link = robot_of(seed)
    q, v, a = state(robot.model, seed)
    A, b = robot.centroidal_momentum_matrix(q), robot.centroidal_momentum_bias(q, v)
    close(A @ v, robot.momentum(q, v), 1e-12)
    h = 1e-5
    ahead, behind = (robot.integrate(q, s * h * v) for s in (1.0, -1.0))
    moved = robot.center_of_mass(ahead) - robot.center_of_mass(behind)
    close(robot.center_of_mass_jacobian(q) @ v, moved / (2.0 * h), 1e-6)
    close(b, (robot.momentum(ahead, v) - robot.momentum(behind, v)) / (2.0 * h), 1e-6)
    for frame in ("local_world_aligned", "local", "world"):
        J, kind = robot.jacobian(q, link, frame), "classical" if frame == "local_world_aligned" else "spatial"
        bias = robot.acceleration(q, v, a, link, frame, kind) - J @ a
        close(robot.jacobian_bias(q, v, link, frame), bias, 1e-11)


@pytest.mark.parametrize("seed", seeds(4, 30))
def test_power_is_in_balance(seed: int) -> None:
    robot, _ = robot_of(seed)
    q, v, a = state(robot.model, seed)
    drives, kinetic, potential = robot.power_balance(q, v, a)
    scale = np.abs(drives).sum() + np.abs(kinetic).sum() + np.abs(potential).sum()
    assert abs(drives.sum() - kinetic.sum() - potential.sum()) <= 1e-12 * max(1.0, scale)
    close(drives, robot.inverse_dynamics(q, v, a) * v, 1e-11)
    power = robot.joint_power(q, v, a)
    wrenches = robot.joint_wrenches(q, v, a)
    rates = np.stack([robot.velocity(q, v, link) for link in robot.moving_links])
    close(power, (wrenches * rates).sum(-1), 1e-11)


@pytest.mark.parametrize("axes", [None, "x y z", "z rx", "rz"])
@pytest.mark.parametrize(("name", "link"), [("panda", "panda_hand"), ("go1", "FR_calf"), ("biped", "right_foot")])
def test_khatib_against_products_by_pinocchio(name: str, link: str, axes: str | None) -> None:
    robot = drevo.load(name, base="fixed" if name == "panda" else "floating")
    oracle = pinocchio_of(robot.model)
    rng = np.random.default_rng(3)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    rows = list(range(6)) if axes is None else [("x", "y", "z", "rx", "ry", "rz").index(x) for x in axes.split()]
    M = oracle.mass_matrix(q)
    J = robot.jacobian(q, link)[rows]
    inverse = np.linalg.inv(M)
    Lambda = np.linalg.inv(J @ inverse @ J.T)
    found = robot.operational_space(link, q, v, axes=axes)
    scale = np.linalg.cond(J @ inverse @ J.T)
    close(found.Lambda, Lambda, 1e-15 * max(1e4, scale))
    close(found.Jbar, inverse @ J.T @ Lambda, 1e-15 * max(1e4, scale))
    close(found.N @ found.Jbar, np.zeros_like(found.Jbar), 1e-15 * max(1e4, scale))
    gravity, bias = robot.gravity(q), robot.bias(q, v)
    close(found.p, Lambda @ J @ inverse @ gravity, 1e-15 * max(1e4, scale))
    close(found.mu, Lambda @ (J @ inverse @ (bias - gravity) - found.Jdot_v), 1e-15 * max(1e4, scale))
    close(found.pose, robot.pose(q, link), 1e-14)
    damped = robot.operational_space(link, q, v, axes=axes, damping=0.3)
    close(damped.Lambda, np.linalg.inv(J @ inverse @ J.T + 0.09 * np.eye(len(rows))), 1e-10)


def test_a_joint_force_makes_the_link_accelerate_as_khatib_says() -> None:
    robot = drevo.load("panda")
    rng = np.random.default_rng(5)
    q, v, wanted = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=3)
    o = robot.operational_space("panda_hand", q, v, axes="x y rz")
    free = rng.normal(size=robot.nv)
    tau = o.J.T @ (o.Lambda @ wanted + o.mu + o.p) + o.N.T @ free
    a = robot.forward_dynamics(q, v, tau)
    close(o.J @ a + o.Jdot_v, wanted, 1e-9)


@pytest.mark.parametrize("terms", ["Lambda mu p", "N", ["J", "Jbar"], ("pose", "Jdot_v"), "p, mu"])
def test_terms_that_are_wanted_are_those_of_all(terms: str | list[str] | tuple[str, ...]) -> None:
    robot = drevo.load("panda")
    rng = np.random.default_rng(6)
    q, v = robot.random(rng, (4,)), rng.normal(size=(4, robot.nv))
    every = robot.operational_space("panda_hand", q, v, axes="x y z")
    some = robot.operational_space("panda_hand", q, v, axes="x y z", terms=terms)
    names = terms.replace(",", " ").split() if isinstance(terms, str) else terms
    for name, x in some._asdict().items():
        assert (x is None) == (name not in names)
        if x is not None:
            close(x, getattr(every, name), 1e-12)
    again = robot.operational_space("panda_hand", q, 2.0 * v, axes="x y z", terms=terms, out=some)
    assert all(getattr(again, name) is getattr(some, name) for name in names)


def test_the_derivative_of_a_term() -> None:
    robot, h = drevo.load("puma560"), 1e-6
    q, v = np.full(6, 0.4), np.zeros(6)
    found = robot.derivative("operational_space", ("q",), link="link6", axes="x y z", terms="Lambda")(q, v)
    for k, e in enumerate(h * np.eye(6)):
        high, low = (
            robot.operational_space("link6", x, v, axes="x y z", terms="Lambda").Lambda for x in (q + e, q - e)
        )
        close((high - low) / (2.0 * h), found[..., k], 1e-6)


def test_manipulability_and_its_gradient() -> None:
    robot = drevo.load("panda")
    q = np.random.default_rng(2).uniform(-1.0, 1.0, robot.nq)
    J = robot.jacobian(q, "panda_hand")
    assert abs(robot.manipulability(q, "panda_hand") - np.sqrt(np.linalg.det(J @ J.T))) < 1e-13
    three = drevo.load("three-link")
    J = three.jacobian(q[:3], "link3")
    J = J[:, np.abs(J).sum(0) > 0]
    assert abs(three.manipulability(q[:3], "link3") ** 2 - np.linalg.det(J.T @ J)) < 1e-13
    gradient = robot.derivative("manipulability", ("q",), link="panda_hand")(q)
    h = 1e-6
    for k, e in enumerate(h * np.eye(robot.nq)):
        slope = (robot.manipulability(q + e, "panda_hand") - robot.manipulability(q - e, "panda_hand")) / (2.0 * h)
        assert abs(slope - gradient[k]) < 1e-8


def test_axes_and_damping_are_judged() -> None:
    robot = drevo.load("puma560")
    q, v = np.full(6, 0.3), np.zeros(6)
    for axes in (["x", "rz"], ("x", "rz")):
        assert np.array_equal(
            robot.operational_space("link6", q, v, axes=axes).mu,
            robot.operational_space("link6", q, v, axes="x rz").mu,
        )
        assert robot.manipulability(q, "link6", axes=axes) == robot.manipulability(q, "link6", axes="x rz")
    for axes, said in (("x w", "'w' is not known"), ("", "each once"), (["x", "x"], "each once")):
        with pytest.raises(drevo.TraceError, match=said):
            robot.operational_space("link6", q, v, axes=axes)
    for terms, said in (("mu w", "'w' is not known"), ("", "each once"), (3, "terms are some of pose")):
        with pytest.raises(drevo.TraceError, match=said):
            robot.operational_space("link6", q, v, terms=terms)
    with pytest.raises(drevo.InputError, match="out is what an earlier call gave"):
        robot.operational_space("link6", q, v, out=3)  # type: ignore[arg-type]
    with pytest.raises(drevo.TraceError, match="from 0 on"):
        robot.operational_space("link6", q, v, damping=-1.0)
    with pytest.raises(drevo.TraceError, match="cannot move along all 6 axes: 3 rates move it; choose axes"):
        robot.operational_space("link3", q, v)
    with pytest.raises(drevo.NumericsError):  # the wrist is singular there
        robot.operational_space("link6", np.zeros(6), v)
    assert np.isfinite(robot.operational_space("link6", np.zeros(6), v, damping=0.01).Lambda).all()


def test_axes_are_a_text_or_a_list_of_names() -> None:
    robot = drevo.load("puma560")
    q, v = np.full(6, 0.3), np.full(6, 0.2)
    for axes in ("x,y", "xy", ["x", "y"], ("x", "y")):
        found = robot.operational_space("link6", q, v, axes=axes)
        close(found.Lambda, robot.operational_space("link6", q, v, axes="x y").Lambda, 0.0)
        assert robot.manipulability(q, "link6", axes=axes) == robot.manipulability(q, "link6", axes="x y")


@pytest.mark.parametrize("axes", ["x y", "x,y", "xy"])
def test_the_command_names_every_row_of_the_axes(axes: str) -> None:
    words = ["compute", "puma560", "operational_space", "--link", "link6", "--axes", axes, "--q", "joint3=0.3"]
    done = CliRunner().invoke(app, words)
    rows = [line.split()[0] for line in done.output.splitlines() if line.split()]
    assert done.exit_code == 0 and rows.count("x") == rows.count("y") > 1, done.output
