"""Products of derivatives with vectors: J x and J^T w against the matrices, each other and complex steps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import strategies
import tolerances as tol
from reference import largest

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.products import product_program
from drevo.compiler.recipe import Recipe
from drevo.errors import InputError, NumericsError
from drevo.mechanics.tree import build_tree
from drevo.model.quantities import CATALOGUE

Array = np.ndarray
MATRICES = {"inverse_dynamics": ("q", "v", "a"), "forward_dynamics": ("q", "v", "tau")}
INERTIAL = ("*.mass", "*.com.*", "*.inertia.*")


def every_kind() -> drevo.Robot:
    """A joint of every kind on a free base: tangents that are not changes of q."""
    return drevo.Robot(strategies.all_kinds("floating"))


@pytest.fixture(scope="module", params=["puma560", "free base"])
def robot(request: pytest.FixtureRequest) -> drevo.Robot:
    if request.param == "free base":
        return drevo.Robot(strategies.robot(3, strategies.EVERY, 4, "floating", welds=0.0))
    return drevo.load(request.param)


def drawn(
    f: drevo.Function, robot: drevo.Robot, rng: np.random.Generator, lead: tuple[int, ...] = ()
) -> list[Array]:
    """Arguments of a Function."""
    return [
        robot.random(rng, *lead) if name == "q" else rng.uniform(-1.0, 1.0, (*lead, *shape))
        for name, shape in f.inputs
    ]


@pytest.mark.parametrize("quantity", MATRICES)
def test_products_are_those_of_the_matrices(robot: drevo.Robot, quantity: str) -> None:
    """Against the recursions of first order, which share nothing with the sweeps."""
    rng = np.random.default_rng(0)
    back = drevo.compile(robot, quantity, product="value_and_vjp")
    along = drevo.compile(robot, quantity, product="value_and_jvp")
    *state, w = drawn(back, robot, rng, (7,))
    x = rng.uniform(-1.0, 1.0, (3, 7, robot.nv))
    J = drevo.compile(robot, f"{quantity}_derivatives")(*state)
    value, *cotangents = back(*state, w)
    again, tangent = along(*state, *x)
    assert np.array_equal(value, again)
    assert largest(value - getattr(robot, quantity)(*state)) <= tol.SAME * largest(value)
    for found, matrix in zip(cotangents, J):
        wanted = np.einsum("bij,bi->bj", matrix, w)
        assert largest(found - wanted) <= tol.DYNAMICS * largest(matrix)
    wanted = sum(np.einsum("bij,bj->bi", m, y) for m, y in zip(J, x))
    assert largest(tangent - wanted) <= tol.DYNAMICS * max(map(largest, J))


@pytest.mark.slow
@pytest.mark.parametrize("quantity", CATALOGUE)
def test_both_sweeps_are_of_one_derivative(quantity: str) -> None:
    """w . (J x) = (J^T w) . x for every quantity: forward and reverse mode share no order of work."""
    robot, rng = every_kind(), np.random.default_rng(1)
    options = {"link": "l9"} if "link" in CATALOGUE[quantity].options else {}
    program = Recipe((quantity,), options={**options, **_defaults(quantity)}).program(robot.model)
    tree = build_tree(robot.model)
    n = len(program.inputs)
    back, along = (product_program(program, tree, (k,)) for k in ("vjp", "jvp"))
    at = {x.name: robot.random(rng) if x.name == "q" else rng.uniform(-1.0, 1.0, x.shape) for x in program.inputs}
    w = {x.name: rng.uniform(-1.0, 1.0, x.shape) for x in back.inputs[n:]}
    x = {y.name: rng.uniform(-1.0, 1.0, y.shape) for y in along.inputs[n:]}
    left, right = evaluate(along, {**at, **x}), evaluate(back, {**at, **w})
    terms = [w[f"{o.name}_bar"] * left[f"{o.name}_dot"] for o in program.outputs]
    others = [right[f"{i.name}_bar"] * x[f"{i.name}_dot"] for i in program.inputs]
    size = max(sum(np.abs(t).sum() for t in both) for both in (terms, others))
    assert abs(sum(t.sum() for t in terms) - sum(t.sum() for t in others)) <= tol.DYNAMICS * size


@pytest.mark.parametrize("limbs", [3, 1])
def test_one_state_is_a_row_of_a_batch(limbs: int) -> None:
    """Of derivatives too, which compute one state in another way."""
    b, rng = (
        drevo.Builder("limbs").body("base", joint="free", mass=2.0, inertia=np.eye(3)),
        np.random.default_rng(7),
    )
    for k in range(3):
        b.body(f"limb{k}", "base" if limbs > 1 or not k else f"limb{k - 1}", origin=(k, 1.0, 0.0), mass=1.0 + k,
               com=(0.1, 0.0, 0.2), inertia=np.eye(3))  # fmt: skip
    robot = b.robot()
    f = drevo.compile(robot, "inverse_dynamics_derivatives", product="vjp")
    args = drawn(f, robot, rng, (9,))
    for many, one in zip(f(*args), f(*(x[2] for x in args))):
        assert largest(many[2] - one) <= tol.SAME * max(1.0, largest(many))


def _defaults(quantity: str) -> dict[str, str]:
    return {k: v for k, v in (("frame", "local"), ("kind", "spatial")) if k in CATALOGUE[quantity].options}


@pytest.mark.parametrize("seed", range(6))
def test_complex_steps_on_random_trees(seed: int) -> None:
    """d(w . tau) by every inertial parameter and every hinge, and second derivatives times a vector."""
    rng = np.random.default_rng(seed)
    model = strategies.robot(seed, strategies.SIMPLE, 4, base="fixed")
    tree = build_tree(model)
    program = Recipe(("inverse_dynamics",), parameters=INERTIAL).program(model)
    values = {p.name: p.value for p in program.parameters}
    back = product_program(program, tree, ("vjp",))
    at = {x.name: rng.uniform(-1.0, 1.0, x.shape) for x in program.inputs}
    at["parameters"] = np.array([*values.values()])
    at["tau_bar"] = rng.uniform(-1.0, 1.0, tree.nv)
    found = evaluate(back, at)
    step = 1e-30
    for name in ("q", "v", "a", "parameters"):
        moved = at[name] + step * 1j * np.eye(len(at[name]))  # each way is a row
        put = dict(zip(values, moved.T)) if name == "parameters" else values
        every = {**at, "q": np.tile(at["q"], (len(moved), 1)), name: moved}
        wanted = (evaluate(program, every, put, np.complex128)["tau"].imag / step) @ at["tau_bar"]
        assert largest(found[f"{name}_bar"] - wanted) <= tol.COMPLEX_STEP * (1.0 + largest(found[f"{name}_bar"]))
    second = product_program(Recipe(("inverse_dynamics",)).program(model), tree, ("vjp", "jvp"))
    plain = product_program(Recipe(("inverse_dynamics",)).program(model), tree, ("vjp",))
    x = {i.name: rng.uniform(-1.0, 1.0, i.shape) for i in second.inputs if i.name.endswith("_dot")}
    made = evaluate(second, {**at, **x})
    moved = {i.name: at[i.name] + step * 1j * x[f"{i.name}_dot"] for i in plain.inputs}
    for name, value in evaluate(plain, moved, None, np.complex128).items():
        wanted = value.imag / step
        assert largest(made[f"{name}_dot"] - wanted) <= tol.COMPLEX_STEP * (1.0 + largest(wanted))


def test_parameters_stand_between_the_state_and_the_cotangents() -> None:
    """A batch of masses, each sample its own, against robots whose mass is changed; forces on links likewise."""
    robot, rng = drevo.load("puma560"), np.random.default_rng(2)
    f = drevo.compile(robot, "inverse_dynamics", product="vjp", parameters=["*.mass"], f_ext=["link3"])
    assert [n for n, _ in f.inputs] == ["q", "v", "a", "f_ext:link3", "parameters", "tau_bar"]
    assert [n for n, _ in f.outputs] == ["q_bar", "v_bar", "a_bar", "f_ext:link3_bar", "parameters_bar"]
    plain = drevo.compile(robot, "inverse_dynamics", parameters=["*.mass"], f_ext=["link3"])
    args = drawn(f, robot, rng, (5,))
    args[4] = np.abs(args[4]) + 0.5
    *state, p, w = args
    made = f(*args)
    for k in range(p.shape[1]):  # tau is linear in each mass by itself: a difference is exact
        e = np.eye(p.shape[1])[k]
        wanted = ((plain(*state, p + e) - plain(*state, p)) * w).sum(1)
        assert largest(made[4][:, k] - wanted) <= 100 * tol.SAME * max(1.0, largest(wanted))
    for k in range(6):
        moved = [*state[:3], state[3] + np.eye(6)[k]]
        wanted = ((plain(*moved, p) - plain(*state, p)) * w).sum(1)
        assert largest(made[3][:, k] - wanted) <= 100 * tol.SAME * max(1.0, largest(wanted))


def test_layouts_types_and_pickles() -> None:
    robot = drevo.Robot(strategies.robot(4, n=3, base="floating", welds=0.0))
    rng = np.random.default_rng(3)
    f = drevo.compile(robot, "forward_dynamics", product="vjp")
    args = drawn(f, robot, rng, (33,))
    wanted = f(*args)
    last = drevo.compile(robot, "forward_dynamics", product="vjp", layout="batch_last")
    for x, y in zip(last(*(np.ascontiguousarray(a.T) for a in args)), wanted):
        assert np.array_equal(x.T, y)
    again = pickle.loads(pickle.dumps(f))  # noqa: S301
    for x, y in zip(again(*args), wanted):
        assert np.array_equal(x, y)
    for x, y in zip(f(*(a[4] for a in args)), wanted):
        assert largest(x - y[4]) <= tol.SAME * largest(y)
    single = drevo.compile(robot, "forward_dynamics", product="vjp", dtype="float32")
    for x, y in zip(single(*(a.astype(np.float32) for a in args)), wanted):
        assert x.dtype == np.float32 and largest(x - y) <= 1e-4 * largest(y)


def test_a_product_costs_a_few_functions() -> None:
    """Inverse dynamics of Puma with J^T w or J x: 2.4 times its operations each; 3.35 with all parameters."""
    model = drevo.load("puma560").model

    def work(parameters: tuple[str, ...], kinds: tuple[str, ...]) -> int:
        program = Recipe(("inverse_dynamics",), parameters=parameters, product=kinds).program(model)
        return sum(program.counts[k] for k in ("add", "mul", "div"))

    once = work((), ())
    assert work((), ("value_and_vjp",)) <= 2.4 * once
    assert work((), ("value_and_jvp",)) <= 2.4 * once
    assert work(INERTIAL, ("value_and_vjp",)) <= 3.35 * once


def test_refusals() -> None:
    robot = drevo.load("puma560")
    with pytest.raises(InputError, match=r"compile: product.*did you mean 'vjp'\?"):
        drevo.compile(robot, "bias", product="vpj")
    with pytest.raises(InputError, match="compile: product must be a name"):
        drevo.compile(robot, "bias", product=3)  # type: ignore[arg-type]
    f = drevo.compile(robot, "bias", product="vjp")
    with pytest.raises(InputError, match=r"bias_vjp.* is missing 'h_bar'"):
        f(np.zeros(6), np.zeros(6))
    with pytest.raises(NumericsError, match=r"bias_vjp: h_bar\[1\]"):
        f(np.zeros(6), np.zeros(6), np.array([0, np.nan, 0, 0, 0, 0]))
