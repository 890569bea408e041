"""What takes the inverse of M, of large trees by loops: against Pinocchio, the algorithms on numbers, and laws."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import strategies
from test_large import FRAMES, chain, compared
from test_rolled import rolled, states
from tolerances import DYNAMICS, EPS, inverting, solving

import drevo
from drevo.codegen.call import rolled as rolled_code
from drevo.codegen.store.build import Spec
from drevo.compiler.tracer import Tracer
from drevo.compiler.ways import rolled as rolled_loops
from drevo.compiler.ways.rolled import rolled_function
from drevo.errors import NumericsError, TraceError
from drevo.model.description import Model
from drevo.robot.face import Robot

LINK = ("inverse_operational_inertia", "operational_inertia")


def tree_of(seed: int, n: int = 30, kinds: tuple[str, ...] = strategies.EVERY, base: str = "floating") -> Model:
    return strategies.robot(seed, kinds, n, base, welds=0.1, mimics=0.0)


@pytest.mark.parametrize("seed", range(2))
def test_against_pinocchio(seed: int) -> None:
    """M^-1 and the derivatives of forward dynamics, every kind of joint and rates in any order."""
    model = tree_of(seed)
    oracle, quantity = oracles.pinocchio_of(model), "forward_dynamics_derivatives"
    args = states(model, 3, quantity)
    derivatives, inverse = rolled(model, quantity)(*args), rolled(model, "inverse_mass_matrix")(args[0])
    for k in range(3):
        right = oracle.forward_dynamics_derivatives(*(x[k] for x in args))
        cond = float(np.linalg.cond(oracle.mass_matrix(args[0][k])))
        for found, expected in zip(derivatives, right):
            assert np.abs(found[k] - expected).max() <= inverting(model.nv, cond) * np.abs(expected).max()
        assert np.abs(inverse[k] - right[2]).max() <= solving(model.nv, cond) * np.abs(right[2]).max()
        assert np.array_equal(inverse[k], inverse[k].T)


def test_one_or_many() -> None:
    """The same bits alone, in a batch and over threads, and the algorithm's numbers."""
    model = tree_of(1, 25, ("revolute",), "fixed")
    compared(model, "inverse_mass_matrix")


@pytest.mark.parametrize("lanes", [pytest.param(2, marks=pytest.mark.nightly), 4])
def test_narrower_machines_compute_the_same_bits(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many columns go side by side, and however many are left over."""
    model, quantity = tree_of(3, 27, ("revolute",)), "forward_dynamics_derivatives"
    args, found, host = states(model, 2, quantity), [], rolled_code.target_of(Spec())
    for target in (host, host._replace(lanes=lanes)):
        monkeypatch.setattr(rolled_code, "target_of", lambda spec, target=target: target)
        f = rolled_function(model, quantity, Spec(), smallest=0, cache=False)
        assert f is not None
        rolled_code._LOOPS.clear()  # the loops of the other width are not these
        found.append(f(*args))
    assert all(np.array_equal(x, y) for x, y in zip(*found))


def test_float32() -> None:
    model = tree_of(1, 25, ("revolute",), "fixed")
    q = states(model, 3, "inverse_mass_matrix")[0]
    single, double = (rolled(model, "inverse_mass_matrix", dtype=x)(q) for x in ("float32", "float64"))
    cond = np.linalg.cond(double).max()
    assert single.dtype == np.float32 and np.abs(single - double).max() <= 1e-6 * cond * np.abs(double).max()


def test_inertia_of_a_link() -> None:
    """J M^-1 J^T by the walk up, and its inverse: a link far out, a welded one, the root, which nothing moves."""
    model = tree_of(4, 24)
    q = states(model, 3, "jacobian")[0]
    inverse = rolled(model, "inverse_mass_matrix")(q)
    welded = next(j.child for j in model.joints if j.kind == "fixed")
    for link in (model.links[-1].name, welded, model.root):
        for frame in FRAMES if link != welded else FRAMES[:1]:
            J, A = (
                rolled_function(model, x, Spec(), options={"link": link, "frame": frame}, smallest=0)
                for x in ("jacobian", LINK[0])
            )
            assert J is not None and A is not None
            right = np.einsum("bij,bjk,blk->bil", J(q), inverse, J(q))
            assert np.abs(A(q) - right).max() <= DYNAMICS * np.abs(right).max(initial=0.0), (link, frame)
    options = {"link": model.links[-1].name, "frame": "local"}
    A, L = (rolled_function(model, x, Spec(), options=options, smallest=0) for x in LINK)
    assert A is not None and L is not None
    assert np.abs(L(q) @ A(q) - np.eye(6)).max() <= 64 * EPS * np.linalg.cond(A(q)).max()


def test_a_link_that_cannot_move_in_all_directions() -> None:
    flat, few = chain(80, ((0.0, 0.0, 1.0),)), chain(80)
    assert np.linalg.matrix_rank(flat.inverse_operational_inertia(np.ones(80), "l79")) == 3
    with pytest.raises(NumericsError, match="cannot move in all six directions"):
        flat.operational_inertia(np.ones(80), "l79")
    with pytest.raises(TraceError, match="link 'l4' cannot move in all six directions"):
        few.operational_inertia(np.ones(80), "l4")


def test_of_three_thousand_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """One trace a quantity, whatever the link; M^-1 against the sweeps for one right-hand side."""
    steps: list[str] = []
    make = rolled_loops.rolled_program
    monkeypatch.setattr(
        rolled_loops, "rolled_program", lambda quantity, *x: steps.append(quantity) or make(quantity, *x)
    )
    n = 3000
    robot, rng = chain(n), np.random.default_rng(0)
    q, v, x = rng.normal(size=(3, n)) / np.sqrt(n)
    inverse = robot.inverse_mass_matrix(q)
    assert np.array_equal(inverse, inverse.T)
    free = robot.forward_dynamics(q, 0 * v, x) - robot.forward_dynamics(q, 0 * v, 0 * v)
    size = np.abs(inverse).sum(1).max() * np.abs(x).max()
    assert np.abs(inverse @ x - free).max() <= n * EPS * size
    for link in ("l2999", "l1500"):
        J, A = robot.jacobian(q, link), robot.inverse_operational_inertia(q, link)
        right = J @ inverse @ J.T
        size = (np.abs(J) @ np.abs(inverse) @ np.abs(J).T).max()
        assert np.abs(A - right).max() <= n * EPS * size
        assert np.abs(robot.operational_inertia(q, link) @ A - np.eye(6)).max() <= 64 * EPS * np.linalg.cond(A)
    assert len(steps) == len(set(steps))


def test_results_that_no_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot(chain(500).model)
    monkeypatch.setattr(rolled_loops, "lent", lambda: 1e6)
    with pytest.raises(TraceError, match=r"inverse_mass_matrix of 'chain-500' has 2.5e\+05 entries, 0.002 GB"):
        robot.inverse_mass_matrix(np.zeros(500))
    assert robot.inverse_operational_inertia(np.zeros(500), "l499").shape == (6, 6)


def test_linear_models() -> None:
    """Of a large tree by loops, which factor no matrix; the same as from derivatives of inverse dynamics."""
    robot = Robot(tree_of(2, 70, ("revolute",), "fixed"))
    q, v, tau = (x[0] for x in states(robot.model, 1, "forward_dynamics"))
    found = robot.linearise(q, v, tau)
    dq, dv, M = robot.inverse_dynamics_derivatives(q, v, found.a)
    tolerance, n = inverting(robot.nv, float(np.linalg.cond(M))), robot.nv
    right = -np.linalg.solve(M, np.hstack([dq, dv, -np.eye(n)[:, found.driven]]))
    for x, y in zip(
        np.split(np.hstack([found.A[n:], found.B[n:]]), [n, 2 * n], 1), np.split(right, [n, 2 * n], 1)
    ):
        assert np.abs(x - y).max() <= tolerance * np.abs(y).max()


REFUSED = {
    "pages of equations": lambda r: drevo.write_out(r, "inverse_dynamics"),
    "lagrange_equations .* pages": lambda r: drevo.write_out(r, "lagrange_equations"),
    "take differences of it along": lambda r: drevo.compile(r, "inverse_dynamics", wrt="t"),
    "second derivatives of constraints on 'l2999'": lambda r: r.linearise(
        *np.zeros((3, 3000)), contacts=[{"link": "l2999", "point": (0.0, 0.0, 0.0)}]
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_would_take_minutes_is_refused(sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is traced."""
    monkeypatch.setattr(Tracer, "__init__", None)
    with pytest.raises(TraceError, match=f"(?s){sentence}"):
        REFUSED[sentence](chain(3000))
