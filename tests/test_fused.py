"""Lists of quantities share their work and give what each gives alone; inertia in operational space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import close
from strategies import EVERY, robot, seeds, state
from tolerances import DYNAMICS, EPS, HOPELESS, solving

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.recipe import Recipe
from drevo.compiler.trace import trace
from drevo.errors import NumericsError, TraceError
from drevo.model.description import Model

LISTS = (
    ("mass_matrix", "bias"),
    ("inverse_dynamics", "mass_matrix", "gravity"),
    ("forward_dynamics", "mass_matrix", "bias"),
    ("forward_dynamics", "inverse_mass_matrix"),
    ("mass_matrix", "kinetic_energy", "center_of_mass", "potential_energy"),
    ("forward_dynamics", "forward_dynamics_derivatives"),
)


def program(model: Model, names: tuple[str, ...], **options: str) -> Any:
    return Recipe(names, options=options).program(model)


@pytest.mark.parametrize("names", LISTS, ids=" ".join)
@pytest.mark.parametrize("seed", seeds(3, 6))
def test_lists_agree_with_the_common_algorithms(names: tuple[str, ...], seed: int) -> None:
    model = robot(seed, kinds=EVERY)
    q, v, a = state(model, seed)
    fused, plain = program(model, names), trace(model, names)
    given = {"q": q, "v": v, "a": a, "tau": a}
    given = {p.name: given[p.name][None] for p in plain.inputs}
    M = evaluate(trace(model, "mass_matrix"), {"q": q[None]})["M"][0]
    cond = float(np.linalg.cond(M)) if len(M) else 1.0
    if cond > HOPELESS:
        return
    got, want = evaluate(fused, given), evaluate(plain, given)
    assert list(got) == list(want)
    for name in want:
        dynamic = any(n.startswith(("forward", "inverse_mass")) for n in names)
        close(f"fused {name}", got[name], want[name], max(solving(len(M), cond), 1e-9) if dynamic else DYNAMICS)


@pytest.mark.parametrize("names", LISTS[:4], ids=" ".join)
def test_work_is_shared(names: tuple[str, ...]) -> None:
    """A list needs no more operations than its members apart, one set of sines, and fewer than the common way."""
    model = drevo.load("puma560").model
    counted = [sum(program(model, x).counts[k] for k in ("add", "mul")) for x in (names, *((n,) for n in names))]
    common = sum(trace(model, names).counts[k] for k in ("add", "mul"))
    assert counted[0] <= sum(counted[1:]) and counted[0] < 0.85 * common
    assert program(model, names).counts["trig"] == max(program(model, (n,)).counts["trig"] for n in names)
    assert program(model, names).meta["formalism"] == "khalil"


def test_no_result_hides_another() -> None:
    names = ["poses", "kinetic_energy", "mass_matrix", "inverse_dynamics_derivatives"]
    arm, rng = drevo.load("stanford"), np.random.default_rng(0)
    f = drevo.compile(arm, names)
    q, v, a = rng.normal(size=(3, 6))
    got = f(q, v, a)
    alone = [
        arm.poses(q),
        arm.kinetic_energy(q, v),
        arm.mass_matrix(q),
        *arm.inverse_dynamics_derivatives(q, v, a),
    ]
    assert got._fields == (
        "poses", "kinetic_energy", "mass_matrix", "dtau_dq", "dtau_dv", "inverse_dynamics_derivatives_M",
    )  # fmt: skip
    for x, y, name in zip(got, alone, got._fields, strict=True):
        assert getattr(got, name) is x
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)


# -- operational space ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(3, 8))
@pytest.mark.parametrize("frame", ["local_world_aligned", "local", "world"])
def test_operational_inertia_against_dense_algebra(seed: int, frame: str) -> None:
    model = robot(seed, n=7, base="floating" if seed % 2 else "fixed", mimics=0.0, welds=0.0)
    link = model.links[-1].name
    q = state(model, seed)[0][None]
    options = {"link": link, "frame": frame}
    values = {
        n: evaluate(program(model, (n,), **options), {"q": q}) for n in ("inverse_operational_inertia", "jacobian")
    }
    A = values["inverse_operational_inertia"]["Lambdainv"][0]
    J = values["jacobian"]["J"][0]
    M = evaluate(trace(model, "mass_matrix"), {"q": q})["M"][0]
    want = J @ np.linalg.solve(M, J.T)
    close("J M^-1 J^T", A, want, solving(len(M), float(np.linalg.cond(M))))
    assert (A == A.T).all()
    if np.linalg.matrix_rank(J, tol=1e-3 * np.abs(J).max()) < 6:
        return
    L = evaluate(program(model, ("operational_inertia",), **options), {"q": q})["Lambda"][0]
    assert (L == L.T).all()
    assert np.abs(L @ want - np.eye(6)).max() <= 64 * 6 * EPS * np.linalg.cond(want) + 1e-9


def test_a_free_body_resists_with_its_own_inertia() -> None:
    """One rigid body: Lambda is its mass and, about the centre of mass, its inertia."""
    b = drevo.Builder("brick")
    b.body("brick", parent="world", joint="free", mass=2.0, com=(0, 0, 0), inertia=np.diag([0.1, 0.2, 0.25]))
    found = b.robot().operational_inertia(np.array([0.3, 0.1, 0.2, 0, 0, 0, 1.0]), "brick")
    assert np.allclose(found, np.diag([2, 2, 2, 0.1, 0.2, 0.25]), rtol=0, atol=1e-14)


def test_singular_tasks_are_refused() -> None:
    arm = drevo.load("puma560")
    rng = np.random.default_rng(0)
    q = arm.random(rng, 4)
    q[2] = 0.0  # the wrist stands straight
    with pytest.raises(NumericsError, match=r"in row 2 is nan: the task is singular there.*inverse_operational"):
        arm.operational_inertia(q, "link6")
    assert np.isfinite(arm.inverse_operational_inertia(q, "link6")).all()
    with pytest.raises(TraceError, match="'link5' cannot move in all six directions in any configuration"):
        arm.operational_inertia(q, "link5")
    with pytest.raises(TraceError, match="'link3' cannot move in all six"):
        drevo.load("three-link").operational_inertia(np.zeros(3), "link3")
