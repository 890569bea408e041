"""Conditions for a constant matrix: the paper's example 3, degenerate geometry, numbers of independent origin."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import strategies
from telegin_cases import case, hinged, model_of

import drevo
from drevo.design import polynomial
from drevo.design.conditions import Conditions, conditions
from drevo.design.parameters import SNAP, Parameters
from drevo.design.polynomial import rational
from drevo.errors import InputError, NumericsError, TraceError
from drevo.mechanics.algorithms import inertia_matrix
from drevo.mechanics.spatial import RigidInertia, Sym, Vec
from drevo.mechanics.tree import Tree, build_tree
from drevo.model.description import Model
from drevo.model.loaders.solids import combined_inertia

PRINTED = [  # (17) - (22)
    "d_x4 = d_y4 = 0",
    "I_3^y - I_3^x = m_4*L_4^2", "I_4^y = I_4^x", "I_3^xy = I_4^xy = 0",
    "d_{x7} = d_{y7} = 0", "I_{6}^{y} - I_{6}^{x} = m_7 L_7^2", "I_7^y = I_7^x", "I_6^{xy} = I_7^{xy} = 0",
    "d_z2 + d_z3 + d_z4 = 0", "d_x3 = d_y3 = d_x2 = 0", "d_x5 = d_x6 = d_y6 = 0", "d_z5 + d_z6 + d_z7 = 0",
    "I_4^xz = I_4^yz = I_7^xz = I_7^yz = 0",
    "I_3^yz + L_4 d_z4 = 0", "I_3^xz = 0", "I_4^xz = I_4^yz = 0",
]  # fmt: skip
MISSING = ("I_6^xz = 0", "I_6^yz + L_7*d_z7 = 0")


@pytest.fixture(scope="module")
def two_arm() -> Model:
    return model_of(case("ex3_7dof_0")["bodies"])


@pytest.fixture(scope="module")
def found(two_arm: Model) -> Conditions:
    return conditions(two_arm, constant="mass_matrix")


def at_zero_offset(model: Model, links: tuple[str, ...]) -> Model:
    origin = (0.0, 0.0, 0.0)
    return replace(model, joints=tuple(replace(j, origin=origin) if j.child in links else j for j in model.joints))


def test_example_3_has_28_conditions(found: Conditions) -> None:
    assert len(found) == len(found.equations) == 28
    assert {"d_x4 = 0", "I_3^y - I_3^x - L_4^2*m_4 = 0", "I_3^yz + L_4*d_z4 = 0", "d_z2 + d_z3 + d_z4 = 0"} <= {
        *found.equations
    }
    assert {*MISSING} <= {*found.by_body["6"]}


def test_the_printed_conditions_fall_short(found: Conditions) -> None:
    c = found.compare(PRINTED)
    assert c.rank == 26 and c.missing == MISSING
    assert c.superfluous == ("I_4^xz = 0", "I_4^yz = 0")
    assert len(c.implied) == 28
    whole = found.compare([*PRINTED[:-1], *MISSING])
    assert whole.rank == 28 and whole.missing == () and whole.superfluous == ()


def test_own_text_is_accepted_back(found: Conditions) -> None:
    c = found.compare(found.equations)
    assert (c.rank, c.missing, c.superfluous) == (28, (), ()) and c.implied == found.equations


def test_a_condition_too_many_is_superfluous(found: Conditions) -> None:
    c = found.compare(["d_x4 = 0", "d_x1 = 0", "0.5*d_x4 = 0", "m_o4*L_4 = d_z2"])
    assert c.rank == 3 and c.implied == ("d_x4 = 0", "0.5*d_x4 = 0")
    assert c.superfluous == ("d_x1 = 0", "0.5*d_x4 = 0", "m_o4*L_4 = d_z2") and len(c.missing) == 27


@pytest.mark.parametrize(
    ("links", "count"),
    [(("link2", "link5"), 20), (("link4", "link7"), 28), (("link2", "link4", "link5", "link7"), 16)],
)
def test_degenerate_geometry(two_arm: Model, links: tuple[str, ...], count: int) -> None:
    assert len(conditions(at_zero_offset(two_arm, links), constant="mass_matrix")) == count


def test_elements_of_example_3(two_arm: Model) -> None:
    """The claims of the paper, element by element."""

    def texts(*names: str) -> set[str]:
        return {*conditions(two_arm, constant=list(names)).equations}

    assert texts("H_33") == {"d_x4 = 0", "d_y4 = 0"}
    assert len(texts("H_22")) == 2 + 4
    assert texts("H_42", "H_75") == {"I_4^xz = 0", "I_4^yz = 0", "I_7^xz = 0", "I_7^yz = 0"}
    assert texts("H_32") == {"I_3^xz = 0", "I_4^xz = 0", "I_4^yz = 0", "I_3^yz + L_4*d_z4 = 0"}
    assert len(texts("H_11", "H_32", "H_65")) == 28
    assert len(conditions(two_arm, constant="potential_energy")) == 8


def test_constant_matrix(found: Conditions) -> None:
    M = found.M
    assert M[3][2] == M[3][3] == "I_4^z" and M[2][2] == "I_3^z + I_4^z + L_4^2*m_4"
    assert M[1][0] == M[1][1] and M[3][1] == M[2][1] == M[6][4] == M[5][4] == M[5][2] == "0"
    assert len(found.motion) == 7 and not any("(q" in line for line in found.motion)
    assert found.motion[3] == "I_4^z*a_3 + I_4^z*a_4 = tau_4"


def test_what_varies_is_said(two_arm: Model) -> None:
    c = conditions(two_arm, constant=["H_33"])
    assert c.M[2][2] == "I_3^z + I_4^z + L_4^2*m_4" and c.M[1][1] == "H_22(q)"
    assert "h_3(q, v)" in c.motion[2] and "g_3(q)" in c.motion[2]


@pytest.mark.parametrize(("counterweights", "reach"), [(True, 0.5), (True, 1.0), (False, 0.5)])
def test_realised_robots_have_a_constant_matrix(found: Conditions, counterweights: bool, reach: float) -> None:
    model = found.realise(counterweights=counterweights, reach=reach).model
    tree, rng = build_tree(model), np.random.default_rng(0)
    poses = rng.uniform(-3.0, 3.0, (1000, 7))
    M = np.asarray([inertia_matrix.mass_matrix(tree, [float(x) for x in q]) for q in poses], float)
    assert np.max(np.ptp(M, axis=0)) < 1e-12
    for link, old in zip(model.links[1:], found.robot.links[1:]):
        assert link.inertial is not None and link.inertial.mass >= old.inertial.mass * (1 - 1e-12)
        moments = np.linalg.eigvalsh(np.asarray(link.inertial.tensor))
        assert moments[0] > 0.0 and moments[0] + moments[1] >= moments[2] * (1 - 1e-12)
    lines = found.motion_of(model)
    assert len(lines) == 7 and lines[3].endswith("= tau_4") and f"{M[0, 3, 3]:.12g}*a_4" in lines[3]


@pytest.mark.parametrize("proportions", [(1.0, 1.0, 1.0), (1.0, 1.0, 0.4)])
def test_counterweights_of_a_density(found: Conditions, proportions: tuple[float, ...]) -> None:
    """Boxes of it that do not meet, and the masses and moments of the model."""
    plain = found.robot if isinstance(found.robot, Model) else found.robot.model
    model = found.realise(reach=0.8, density=7850.0, proportions=proportions).model
    rng = np.random.default_rng(0)
    M = [drevo.Robot(model).mass_matrix(q) for q in rng.normal(size=(9, model.nv))]
    np.testing.assert_allclose(M, np.broadcast_to(M[0], np.shape(M)), atol=1e-9 * np.abs(M[0]).max())
    boxes = 0
    for link, before in zip(model.links, plain.links):
        added = link.shapes[len(before.shapes) :]
        boxes += len(added)
        if not added:
            continue
        sizes, places = np.array([s.size for s in added]), np.array([s.origin for s in added])
        turn = np.array(added[0].rotation)
        assert link.inertial is not None and before.inertial is not None
        volumes = sizes.prod(axis=1)
        assert link.inertial.mass - before.inertial.mass == pytest.approx(7850.0 * volumes.sum())
        np.testing.assert_allclose(sizes / sizes[:, :1], np.broadcast_to(np.array(proportions), sizes.shape))
        for k, (a, p) in enumerate(zip(sizes, places)):
            apart = np.abs((places[k + 1 :] - p) @ turn) - 0.5 * (sizes[k + 1 :] + a)
            assert np.all(apart.max(axis=1) >= -1e-12)
        parts = [(before.inertial.mass, before.inertial.com, before.inertial.tensor)]
        for volume, (x, y, z), p in zip(volumes, sizes**2 / 12.0, places):
            parts.append((7850.0 * volume, p, 7850.0 * volume * turn @ np.diag([y + z, x + z, x + y]) @ turn.T))
        np.testing.assert_allclose(link.inertial.tensor, combined_inertia(parts).tensor, rtol=1e-9, atol=1e-12)
    assert boxes > 10


def test_what_cannot_be_realised_is_said(found: Conditions) -> None:
    with pytest.raises(NumericsError, match="reach"):
        found.realise(bodies=["link4"])
    with pytest.raises(InputError, match="link9"):
        found.realise(bodies=["link9"])


def test_impossible_requests(two_arm: Model) -> None:
    with pytest.raises(TraceError, match=r"H_21 cannot vanish: .*constant term"):
        conditions(model_of(case("ex2_5dof_0")["bodies"]), zero=["H_21"])
    with pytest.raises(TraceError, match=r"coefficient of .*sin\(q_\d\)"):
        conditions(two_arm, constant="mass_matrix", free=["d_*"])
    with pytest.raises(InputError, match="H_99"):
        conditions(two_arm, constant=["H_99"])
    with pytest.raises(InputError, match="say what"):
        conditions(two_arm)
    with pytest.raises(InputError, match="foo"):
        conditions(two_arm, constant="mass_matrix", free=["foo"])
    with pytest.raises(TraceError, match="free"):
        conditions(strategies.all_kinds("floating"), constant="mass_matrix")


@pytest.mark.parametrize(
    "text",
    [
        "d_x4",
        "d_x4 = q",
        "d_x4 = = 0",
        "d_x4 = 1",
        "d_x4 = __import__('os')",
        "(" * 999,
        "d_x4 = sin(0)",
        "d_x4 = 1/0",
        "0/0 = 0",
    ],
)
def test_bad_conditions_are_refused(found: Conditions, text: str) -> None:
    with pytest.raises((InputError, TraceError)):
        found.compare([text])


def test_planar_offsets_along_no_axis() -> None:
    c = conditions(model_of(case("ex1_3link_0")["bodies"]), constant="mass_matrix")
    assert c.equations == ("d_x2 = 0", "d_y2 = 0", "d_x3 = 0", "d_y3 = 0")
    assert c.M[1][1] == "I_2^z + I_3^z + L_3^2*m_3"


def moved(tree: Tree, i: int, change: RigidInertia) -> Tree:
    return tree.replace(
        bodies=tuple(b._replace(inertia=b.inertia + change) if k == i else b for k, b in enumerate(tree.bodies))
    )


def numeric_map(model: Model, found: Conditions) -> tuple[np.ndarray, np.ndarray]:
    """M(q) - M(q0) over the inertial parameters of each body, and the conditions over the same."""
    tree, rng = build_tree(model), np.random.default_rng(0)
    poses = [[float(x) for x in q] for q in rng.uniform(-3, 3, (12, model.nq))]

    def matrices(t: Tree) -> np.ndarray:
        M = np.asarray([inertia_matrix.mass_matrix(t, q) for q in poses], float)
        return (M - M[0])[1:].ravel()

    changes = [RigidInertia(1.0, Vec(0.0, 0.0, 0.0), Sym(*[0.0] * 6))]
    changes += [RigidInertia(0.0, Vec(*e), Sym(*[0.0] * 6)) for e in np.eye(3).tolist()]
    changes += [RigidInertia(0.0, Vec(0.0, 0.0, 0.0), Sym(*e)) for e in np.eye(6).tolist()]
    trees = [moved(tree, i, change) for i in range(len(tree)) for change in changes]
    without, own = matrices(tree), np.asarray(found.parameters.values(tree))
    by_numbers = np.stack([matrices(t) - without for t in trees], axis=1)
    shifts = np.stack([np.asarray(found.parameters.values(t)) - own for t in trees], axis=1)
    return by_numbers, matrix_of(list(found.space.rows.values()), len(own)) @ shifts


def rank(rows: np.ndarray) -> int:
    s = np.linalg.svd(rows, compute_uv=False) if rows.size else np.zeros(1)
    return int(np.sum(s > 1e-9 * s[0])) if s[0] > 1e-9 else 0


@pytest.mark.parametrize("seed", strategies.seeds(6, 200))
def test_conditions_are_necessary_and_sufficient(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random hinged robots of 3 to 7 joints: their rows and those of the numbers span one space."""
    rng = np.random.default_rng(seed)
    model = hinged(rng, 3 + seed % 5, planar=seed % 3 == 0)
    monkeypatch.setattr("drevo.design.conditions._possible", lambda *a: None)  # bodies or not: the rank is asked
    found = conditions(model, constant="mass_matrix")
    by_numbers, by_conditions = numeric_map(model, found)
    N, C = (x / size if (size := np.abs(x).max(initial=0.0)) > 1e-9 else x for x in (by_numbers, by_conditions))
    assert rank(N) == rank(C) == rank(np.concatenate([N, C])) == len(found)


def test_a_robot_that_meets_them_has_them(found: Conditions) -> None:
    """The synthesised vectors satisfy every condition, the published ones all but the missing two."""
    for name, broken in (("ex3_7dof_6", 0), ("ex3_7dof_16", 2)):
        values = found.parameters.values(build_tree(model_of(case(name)["bodies"])))
        off = [sum(float(x) * values[k] for k, x in row.items()) for row in lengths_of(found, name)]
        assert sum(abs(x) > 1e-9 for x in off) == broken, case(name)["params"]


def lengths_of(found: Conditions, name: str) -> list[polynomial.SparseRow]:
    """The conditions with the lengths of another case."""
    return list(conditions(model_of(case(name)["bodies"]), constant="mass_matrix").space.rows.values())


def test_free_lengths_make_the_conditions_polynomial(two_arm: Model) -> None:
    """All the degenerate cases at once: where a length is zero its conditions fall away."""
    c = conditions(two_arm, constant="mass_matrix", free=["L_2", "L_4", "L_5", "L_7"])
    assert {"L_2*d_x2 = 0", "L_4*d_x4 = 0", "L_2*d_x4 = 0", "I_3^y - I_3^x - L_4^2*m_4 = 0"} <= {*c.equations}
    assert len(c) == 32 and "L_2*d_z2 + L_2*d_z3 + L_2*d_z4 = 0" in c.equations
    small = conditions(model_of(case("ex1_3link_0")["bodies"]), constant="mass_matrix", free=["L_2"])
    assert {*small.equations} == {"L_2*d_x2 = 0", "L_2*d_y2 = 0", "d_x3 = 0", "d_y3 = 0"}
    found = small.compare(["L_2^2*d_x2 = 0", "d_x3 = d_y3 = 0", "d_y2 = 0"])
    assert found.missing == ("L_2*d_x2 = 0",) and found.superfluous == ("d_y2 = 0",) and found.rank == 4
    with pytest.raises(InputError, match="L_3"):
        conditions(two_arm, constant="mass_matrix", free=["L_3"])


def test_exact_numbers() -> None:
    assert rational(0.3) == Fraction(3, 10) == rational(0.1 + 0.2)
    known = Parameters(model_of(case("ex1_3link_0")["bodies"]))
    both = known.q[0] - known.q[1] * 2.0
    s, c = both.sin(), both.cos()
    assert known.forms(s * s + c * c) == {(): {-1: Fraction(1)}}
    assert known.forms(s) and s - s == 0.0
    with pytest.raises(TraceError, match="are multiplied"):
        known.forms(known.symbol(0, "m") * known.symbol(1, "m"))
    assert polynomial.rank([{0: Fraction(1), 1: Fraction(2)}, {0: Fraction(2), 1: Fraction(4)}, {}]) == 1


@pytest.mark.parametrize("free", [["L_2"], ["L_4"], ["L_5"], ["L_7"], ["L_2", "L_5"], ["L_2", "L_4", "L_7"]])
def test_lengths_that_are_kept_stand_by_their_names(two_arm: Model, free: list[str]) -> None:
    """Any subset of the lengths may be free: the others are numbers, and are printed and read as lengths."""
    c = conditions(two_arm, constant="mass_matrix", free=free)
    kept = {f"L_{k}" for k in (2, 4, 5, 7)} - {*free}
    assert not any("/" in x or "." in x for x in c.equations)
    assert all(x in " ".join(c.equations) for x in kept & {"L_4", "L_7"})
    verdict = c.compare(c.equations)
    assert verdict.rank == len(c) and not verdict.missing and not verdict.superfluous
    assert not c.compare(conditions(two_arm, constant="mass_matrix").equations).missing  # the robot's own lengths


@pytest.mark.parametrize("seed", strategies.seeds(4, 20))
def test_free_lengths_of_random_robots(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the robot's own length put in for the free one, they are the linear conditions; what they print is
    what they read. An oblique offset's direction is rational to 1e-13 only: there the spaces agree to rounding."""
    monkeypatch.setattr("drevo.design.conditions._possible", lambda *a: None)
    model = hinged(np.random.default_rng(seed), 3, planar=seed % 2 == 0)
    plain = conditions(model, constant="mass_matrix")
    for body in (1, 2):
        b = build_tree(model, snap=SNAP).bodies[body]
        offset, name = b.p, f"L_{body + 1}"
        if b.parent < 0 or not any(offset):
            with pytest.raises(InputError, match="no length that can be solved for"):
                conditions(model, constant="mass_matrix", free=[name])
            continue
        c = conditions(model, constant="mass_matrix", free=[name])
        verdict = c.compare(c.equations)
        assert verdict.rank == len(c) and not verdict.missing and not verdict.superfluous
        length = c.parameters.length(name)
        found = polynomial.Space()
        for row in c.rows:
            put: polynomial.SparseRow = {}
            for column, x in row.items():
                powers, k = c.columns[column]
                polynomial.add_multiple(put, {k: x * length ** sum(a for _, a, _ in powers)}, Fraction(1))
            assert plain.space.holds(put) or sum(1 for x in offset if x) > 1
            found.add(put)
        assert len(found) == len(plain)
        both = matrix_of([*found.rows.values(), *plain.space.rows.values()], len(c.parameters.all))
        assert np.linalg.matrix_rank(both, 1e-9) == len(plain)


def matrix_of(rows: list[polynomial.SparseRow], width: int) -> np.ndarray:
    """The forms as rows of unit length."""
    out = np.zeros((len(rows), width))
    for line, row in zip(out, rows):
        for k, x in row.items():
            line[k] = float(x)
    return out / np.linalg.norm(out, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ["three-link", "two-arm-planar", "two-arm-spatial"])
def test_every_subset_of_the_lengths_may_be_free(name: str) -> None:
    robot = drevo.load(name)
    bodies = [b for b in build_tree(robot.model).bodies if b.parent >= 0 and any(b.p)]
    names = [f"L_{b.number}" for b in bodies]
    for size in range(1, len(names) + 1):
        for free in combinations(names, size):
            c = conditions(robot, constant="mass_matrix", free=list(free))
            verdict = c.compare(c.equations)
            assert verdict.rank == len(c) and not verdict.missing and not verdict.superfluous, free


def test_a_slide_is_named_as_a_displacement() -> None:
    b, inertia = drevo.Builder("slides"), 0.1 * np.eye(3)
    b.body("arm", joint="revolute", axis=(0, 0, 1), mass=1.0, com=(0.1, 0.0, 0.0), inertia=inertia)
    b.body("rod", parent="arm", joint="prismatic", axis=(1, 0, 0), mass=1.0, inertia=inertia)
    with pytest.raises(TraceError, match=r"coefficient of q_2\^2 in H_11 is made of masses"):
        conditions(b.robot(), constant="mass_matrix")


WRONG = [
    (dict(constant="mass_matrix", free=5), "free: 5 is no text"),
    (dict(constant="mass_matrix", free=["L_2", "nonsense"]), "'nonsense' names no inertial parameter"),
    (dict(constant="mass_matrix", free=["L_99"]), "'L_99' is no length"),
    (dict(constant="mass_matrix", free=["L_x"]), "'L_x' is no length"),
    (dict(constant="mass_matrix", free=[None]), "free: None is no text"),
    (dict(constant=5), "constant is 5; give a name"),
    (dict(constant=[None]), "element None is not in the matrix"),
    (dict(constant="banana"), "element 'banana' is not in the matrix"),
    (dict(constant="gravity"), 'of gravity it is "potential_energy"'),
    (dict(zero=7), "zero is 7"),
    (dict(zero="H_99"), "element 'H_99' is not in the matrix"),
]


@pytest.mark.parametrize(("asked", "words"), WRONG)
def test_wrong_requests_are_answered_in_a_sentence(two_arm: Model, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        conditions(two_arm, **asked)


def test_wrong_arguments_of_conditions(found: Conditions, two_arm: Model) -> None:
    with pytest.raises(InputError, match=r"takes a robot, as drevo.load gives it, not 'puma560'"):
        conditions("puma560", constant="mass_matrix")
    for given in (5, [5], None):
        with pytest.raises(InputError, match=r"compare: .* is no text"):
            found.compare(given)
    c = conditions(two_arm, constant="mass_matrix", free=["L_4", "L_7"])
    for text in ("d_x4", "d_x4 = sin(0)", "d_x4 = 1/0", "0/0 = 0", "d_x4/d_x3 = 0", "foo = 0", "q"):
        with pytest.raises(InputError):
            c.compare([text])
    assert c.compare(["d_x2/2 = 0"]).implied == ("d_x2/2 = 0",)


@pytest.mark.parametrize(("asked", "words"), [
    (dict(reach=0.0), "reach is 0.0; it must be a positive number of metres"), (dict(reach="1"), "reach is '1'"),
    (dict(density=-1.0), "density is -1"), (dict(density=1e3, counterweights=False), "density is that of"),
    (dict(proportions=(1.0, 0.0, 1.0)), "must be above 0"), (dict(proportions=(1.0,)), "proportions"),
    (dict(reach=float("nan")), "reach is nan"), (dict(bodies=[5.0]), "bodies: 5.0 is no text"),
    (dict(bodies=7), "bodies: 7 is no text"), (dict(bodies="link9"), "'link9' is no moving link"),
])  # fmt: skip
def test_wrong_arguments_of_realise(found: Conditions, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        found.realise(**asked)


@pytest.mark.parametrize("name", ["scipy", "sympy"])
def test_packages_that_are_absent(
    found: Conditions, two_arm: Model, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [m for m in sys.modules if m.split(".")[0] == name] + [name]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        InputError, match=rf"package ({name}|drevo\[design\]), which is not installed: pip install"
    ):
        found.realise() if name == "scipy" else conditions(two_arm, constant="mass_matrix", free="L_4")


def test_cases_of_free_lengths() -> None:
    """L d = 0 splits: each case is realised, and its element is constant for any other length."""
    chain = drevo.load("three-link")
    asked = conditions(chain, constant=["H_22"], free=["L_2", "L_3"])
    cases = asked.cases()
    assert cases[0].zero == () and any(x.zero == ("L_3",) and not x.conditions for x in cases)
    for x in cases:
        assert all(not set(x.zero) & set(text.split("*")) for text in x.conditions) and x.meaning
    H = asked.realise(reach=0.8).mass_matrix(np.random.default_rng(0).normal(size=(20, 3)))[:, 1, 1]
    assert np.ptp(H) <= 1e-9 * np.abs(H).max()  # its lengths are kept
    more = conditions(drevo.load("two-arm-spatial"), constant=["H_33", "H_22"], free=["L_4"]).cases()
    sizes = [len(x.conditions) for x in more]
    assert sizes[0] == max(sizes) and {x.zero for x in more} <= {(), ("L_4",)}
