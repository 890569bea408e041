"""First derivatives beside the U-form recursion: against Pinocchio and the plain recursion, in fewer operations
than tracing and differentiating; their machine code: several functions, one sample or many, results in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import oracles
import pytest
import strategies
import tolerances as tol
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import largest

import drevo
from drevo.codegen.graph.node import Expr, Graph
from drevo.codegen.graph.program import Output, Program
from drevo.codegen.llvm import module as llvm
from drevo.codegen.lower import split
from drevo.compiler.differentiate import by_graph
from drevo.compiler.recipe import Recipe
from drevo.compiler.search import Preparation
from drevo.compiler.trace import trace
from drevo.errors import InputError
from drevo.mechanics.algorithms import derivatives as plain
from drevo.mechanics.algorithms.inverse_dynamics import inverse_dynamics
from drevo.mechanics.formalisms import khalil_derivatives
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Model
from drevo.model.quantities import quantity

Array = np.ndarray
ID, FD = "inverse_dynamics_derivatives", "forward_dynamics_derivatives"
FILES = {
    "panda": ("panda.urdf", "fixed"),
    "talos": ("talos_reduced.urdf", "floating"),
    "go2": ("go2.urdf", "floating"),
}


def published(name: str) -> tuple[Model, str]:
    """A robot of the package example-robot-data, and its file."""
    file, base = FILES[name]
    (path,) = [str(f.locate()) for f in metadata.files("example-robot-data") or () if f.name == file]
    return drevo.load(path, base=base).model, path


def prepared(model: Model) -> Tree:
    """What the compiler prepares."""
    return Preparation(frames=True, unit=False).prepare(build_tree(model))


def on_floats(f: Callable[..., Any], tree: Tree, state: Sequence[Array]) -> list[Array]:
    return [np.array(x, float) for x in f(tree, *(x.tolist() for x in state))]


def worst(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    """The largest difference, relative to the largest value of its matrix."""
    return max((apart(x, y) / max(1e-300, largest(y)) for x, y in zip(found, wanted)), default=0.0)


def apart(x: Array, y: Array) -> float:
    return float(np.max(np.abs(x - y), initial=0.0))


# -- the recursion ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "talos"])
def test_published_robots_agree_with_pinocchio(name: str) -> None:
    """computeRNEADerivatives and computeABADerivatives, to 1e-9 of the largest entry."""
    model, path = published(name)
    oracle, tree = oracles.pinocchio_of_urdf(path, model, FILES[name][1]), prepared(model)
    for seed in range(3):
        q, v, a = strategies.state(model, seed)
        dq, dv, M = on_floats(khalil_derivatives.inverse_dynamics_derivatives, tree, (q, v, a))
        assert worst((dq, dv), oracle.inverse_dynamics_derivatives(q, v, a)) <= tol.DERIVATIVES
        assert worst((M,), (oracle.mass_matrix(q),)) <= tol.DYNAMICS
        tau = oracle.inverse_dynamics(q, v, a)
        found = on_floats(khalil_derivatives.forward_dynamics_derivatives, tree, (q, v, tau))
        assert worst(found, oracle.forward_dynamics_derivatives(q, v, tau)) <= tol.DERIVATIVES


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000))
def test_any_tree_agrees_with_the_plain_recursion(seed: int) -> None:
    """Every kind of joint, mimics, branches: on the gauged tree and on the tree as it is; then M da = -dtau."""
    model = strategies.robot(seed)
    q, v, a = strategies.state(model, seed)
    tree = build_tree(model)
    dq, dv, M = wanted = on_floats(plain.inverse_dynamics_derivatives, tree, (q, v, a))
    size = max(map(largest, wanted))  # one of them may vanish
    for way in (tree, prepared(model)):
        found = on_floats(khalil_derivatives.inverse_dynamics_derivatives, way, (q, v, a))
        assert max(map(apart, found, wanted)) <= tol.DERIVATIVES * size
    cond = float(np.linalg.cond(M)) if M.size else 1.0
    if cond > 1e8:
        return
    tau = np.array(inverse_dynamics(tree, q.tolist(), v.tolist(), a.tolist()), float)
    found = on_floats(khalil_derivatives.forward_dynamics_derivatives, prepared(model), (q, v, tau))
    back = (-dq, -dv, np.eye(len(M)))
    assert max(apart(M @ x, y) for x, y in zip(found, back)) <= tol.inverting(len(M), cond) * max(1.0, size)


def test_nothing_that_moves() -> None:
    """No rates: empty matrices."""
    tree = prepared(strategies.robot(0, kinds=("fixed",), base="fixed"))
    empty = (np.empty(0),) * 3
    for f in (khalil_derivatives.inverse_dynamics_derivatives, khalil_derivatives.forward_dynamics_derivatives):
        assert all(x.size == 0 for x in on_floats(f, tree, empty))


# -- operations ---------------------------------------------------------------------------------------------


def total(program: Program) -> int:
    return sum(program.counts[k] for k in ("add", "mul", "div"))


def by_differentiation(model: Model, name: str, wrt: Sequence[str]) -> int:
    """Operations of the derivatives of a traced recursion, taken on its graph, all in one program."""
    tree, x = prepared(model), quantity(name)
    g = Graph()
    state = {s: [g.input(f"{s}[{i}]") for i in range(tree.nq if s == "q" else tree.nv)] for s in x.state}
    outputs = []
    for s in wrt:
        (entries,) = by_graph(tree, x, state, (s,), {})
        edges = tuple(e.edge for e in entries.values() if isinstance(e, Expr))
        outputs.append(Output(s, (len(edges),), edges))
    return total(Program(name, g, (), (), tuple(outputs)))


@pytest.mark.counts
@pytest.mark.parametrize("name", ["panda", pytest.param("talos", marks=pytest.mark.nightly)])
def test_fewer_operations_than_trace_and_differentiation(name: str) -> None:
    """d inverse holds M as well; the recursion of the graph is on the same gauged tree."""
    model, _ = published(name)
    program = trace(
        model, ID, compute=khalil_derivatives.inverse_dynamics_derivatives, prepare=lambda t: prepared(model)
    )
    assert total(program) < 0.7 * by_differentiation(model, "inverse_dynamics", ("q", "v", "a"))


@pytest.mark.counts
@pytest.mark.parametrize(
    "name, inverse, forward", [("panda", 3273, 5483), ("go2", 5277, 15975), ("talos", 21427, 87774)]
)
def test_operations_of_the_compiled_derivatives(name: str, inverse: int, forward: int) -> None:
    """Golden: they may only fall."""
    model, _ = published(name)
    assert total(Recipe((ID,)).program(model)) <= inverse
    assert total(Recipe((FD,)).program(model)) <= forward


# -- machine code -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walker() -> Model:
    """A free base with two equal legs of three joints and one of two."""
    b = drevo.Builder("walker")
    b.body(
        "base", parent="world", joint="free", mass=5.0, com=(0.01, 0.02, 0.03), inertia=np.diag([0.1, 0.2, 0.25])
    )
    for leg, joints in enumerate((3, 3, 2)):
        parent = "base"
        for k in range(joints):
            name = f"leg{leg}_{k}"
            b.body(name, parent=parent, joint="revolute", axis=(0, 1, 0) if k else (1, 0, 0),
                   origin=(0.2 - 0.2 * leg, 0.05 * (leg - 1), -0.1 * (k + 1)), mass=1.0 + 0.1 * k,
                   com=(0.01, 0.02, -0.1), inertia=np.diag([0.01, 0.012, 0.004]))  # fmt: skip
            parent = name
    return b.robot().model


@pytest.fixture(scope="module")
def small() -> Any:
    """Several functions and kernels of lanes only, of a program that is small enough to compile quickly."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr(llvm, "SINGLE", 100)
        m.setattr(split, "ONE_FUNCTION", 100)
        m.setattr(split, "MAX_FUNCTION_STEPS", 100)
        yield


@pytest.mark.parametrize("layout, packed", [("rows", False), ("batch_last", True), ("batch_last", False)])
def test_machine_code_of_several_functions(walker: Model, small: None, layout: str, packed: bool) -> None:
    """The same bits for a few samples, full tiles and a remainder, in either layout; and the right ones."""
    f = drevo.compile(walker, FD, layout=layout, packed=packed, cache=False)
    states = [strategies.state(walker, seed) for seed in range(19)]
    columns = [np.array(x) for x in zip(*states)]
    tree = prepared(walker)
    for B in (1, 3, 8, 19):
        given_ = [x[:B] if layout == "rows" else np.ascontiguousarray(x[:B].T) for x in columns]
        found = f(*given_)
        dense = [
            x if layout == "rows" else _dense(x, f.pattern and f.pattern[k], walker.nv)
            for k, x in enumerate(found)
        ]
        for b in range(0, B, 3):
            wanted = on_floats(khalil_derivatives.forward_dynamics_derivatives, tree, states[b])
            assert worst([x[b] for x in dense], wanted) <= 1e-11
        one = f(*(x[0] if layout == "rows" else np.ascontiguousarray(x[:, 0]) for x in given_))
        assert all(np.array_equal(x, y[0] if layout == "rows" else y[:, 0]) for x, y in zip(one, found))


def _dense(x: Array, pattern: Any, nv: int) -> Array:
    """(size, B) as (B, nv, nv); a packed symmetric matrix holds its lower triangle."""
    if pattern is None:
        return np.moveaxis(x.reshape(nv, nv, -1), -1, 0)
    out = np.zeros((x.shape[1], nv, nv))
    out[:, pattern[0], pattern[1]] = x.T
    if all(r >= c for r, c in zip(*pattern)):
        out[:, pattern[1], pattern[0]] = x.T
    return out


@pytest.mark.parametrize("layout", ["rows", "batch_last"])
def test_several_results_in_place(walker: Model, layout: str) -> None:
    """A tuple of arrays is filled by the builtin; whatever is wrong with one of them is a sentence."""
    f = drevo.compile(walker, ("mass_matrix", "bias"), layout=layout)
    rows, B, n = layout == "rows", 9, walker.nv
    q, v, _ = (np.array(x) for x in zip(*(strategies.state(walker, k) for k in range(B))))
    state = [x if rows else np.ascontiguousarray(x.T) for x in (q, v)]
    outs = (np.empty((B, n, n)), np.empty((B, n))) if rows else (np.empty((n * n, B)), np.empty((n, B)))
    assert f.fast is not None
    found = f.fast(*state, out=outs)
    assert all(x is y for x, y in zip(found, outs))
    assert found._fields == ("M", "h")
    for x, y in zip(found, f(*state)):
        assert np.array_equal(x, y)
    listed = f(*state, out=list(outs))
    assert all(x is y for x, y in zip(listed, outs))
    shared = np.empty(outs[0].size + outs[1].size - 1)
    overlap = shared[: outs[0].size].reshape(outs[0].shape), shared[outs[0].size - 1 :].reshape(outs[1].shape)
    for wrong, said in (
        (overlap, "overlap"),
        (outs[:1], "2 arrays"),
        ((outs[0], outs[1][:-1]), "shape"),
        ((outs[0], None), "NumPy array"),
        (np.empty(3), "2 arrays"),
    ):
        with pytest.raises(InputError, match=said):
            f(*state, out=wrong)
    over_input = (outs[0], state[1])  # v itself: the right result through a copy
    expected = f(*state)[1]
    assert np.array_equal(f(*state, out=over_input)[1], expected)


def test_runs_of_few_steps_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of 40 steps that read crossing values again and again, for all widths of a batch."""
    robot, rng = drevo.load("puma560"), np.random.default_rng(4)
    wanted = drevo.compile(robot, "inverse_dynamics", product="value_and_vjp")
    args = [rng.normal(size=(19, *s)) for _, s in wanted.inputs]
    for name, value in (("ONE_FUNCTION", 100), ("MAX_FUNCTION_STEPS", 40)):
        monkeypatch.setattr(split, name, value)
    found = drevo.compile(robot, "inverse_dynamics", product="value_and_vjp", cache=False)
    for x, y in zip(found(*args), wanted(*args)):
        assert np.array_equal(x, y)
