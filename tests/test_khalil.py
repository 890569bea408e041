"""Fewest operations: counts that may only fall, and every reduced program against its unreduced twin."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import work
from robot_texts import parse_urdf
from strategies import inertial, robot, seeds, state
from tolerances import solving

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.ops import ADD, DIV, MUL
from drevo.codegen.graph.program import Program
from drevo.codegen.lower.lower import lower
from drevo.codegen.lower.steps import FMA
from drevo.compiler.compete import compete
from drevo.compiler.formalisms import candidates, common_algorithm, searched_recursion
from drevo.compiler.search import OBJECTIVES, Preparation, traced_alone
from drevo.compiler.trace import trace
from drevo.errors import TraceError
from drevo.mechanics.formalisms import khalil_forward, khalil_matrix, planar
from drevo.mechanics.reduce import gauged
from drevo.mechanics.tree import build_tree
from drevo.model.description import Inertial, Joint, JointDynamics, Link, Model

# Modified DH rows alpha (degrees), a, d; "q": prismatic. Inertias: all ten parameters, nonzero and unrelated.
ROWS: dict[str, list[tuple[int, float, float | str]]] = {
    "puma560": [(0, 0, 0), (-90, 0, 0), (0, 0.4318, 0.15005), (-90, 0.0203, 0.4331), (90, 0, 0), (-90, 0, 0)],
    "rx90": [(0, 0, 0), (90, 0, 0), (0, 0.45, 0), (-90, 0, 0.45), (90, 0, 0), (-90, 0, 0)],
    "ur5": [(0, 0, 0.0892), (90, 0, 0), (0, 0.425, 0), (0, 0.392, 0.1093), (90, 0, 0.0947), (-90, 0, 0)],
    "stanford": [(0, 0, 0), (-90, 0, 0.1524), (90, 0, "q"), (0, 0, 0), (-90, 0, 0), (90, 0, 0)],
    "panda": [(0, 0, 0), (-90, 0, 0), (90, 0, 0.316), (90, 0.0825, 0), (-90, -0.0825, 0.384), (90, 0, 0),
              (90, 0.088, 0)],
    "iiwa7": [(0, 0, 0), (-90, 0, 0), (90, 0, 0.42), (90, 0, 0), (-90, 0, 0.4), (-90, 0, 0), (90, 0, 0)],
    "planar3": [(0, 0, 0), (0, 0.5, 0), (0, 0.4, 0)],
}  # fmt: skip
# Links with diagonal second moments and, by link, these first moments and products.
SYMMETRIC = {"rx90": "z|x z xz|y|z|y|z", "stanford": "z|z|z|z|y|z", "puma560": "z|x z xz|y z yz|z||z"}
# The usual zeros of the Puma: mass, centre of mass, central moments of inertia.
USUAL: list[tuple[float, tuple[float, float, float], tuple[float, float, float]]] = [
    (0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.35)),
    (17.4, (0.068, 0.006, -0.016), (0.13, 0.524, 0.539)),
    (4.8, (0.0, -0.07, 0.014), (0.066, 0.0125, 0.086)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
]
# add + mul (+ div for forward dynamics), by robot: inverse dynamics, mass matrix, forward dynamics, bias, gravity.
GOLDEN = {
    "puma560": (433, 214, 728, 397, 54),
    "puma560 usual": (270, 119, 432, 234, 32),
    "puma560 symmetric": (278, 140, 489, 247, 32),
    "rx90": (408, 177, 673, 376, 54),
    "rx90 symmetric": (226, 110, 419, 202, 30),
    "ur5": (417, 189, 677, 367, 48),
    "stanford": (383, 164, 632, 357, 40),
    "stanford symmetric": (204, 99, 395, 186, 18),
    "panda": (523, 295, 983, 503, 83),
    "iiwa7": (498, 253, 916, 478, 83),
    "planar3": (48, 11, 61, 25, 5),
}
QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics", "bias", "gravity")
TRIG = {"puma560": 12, "rx90": 12, "ur5": 14, "stanford": 8, "panda": 12, "iiwa7": 12, "planar3": 9}
# Published humanoids and quadrupeds: inverse dynamics, mass matrix, forward dynamics.
URDFS = {
    ("talos_reduced.urdf", "fixed"): (2657, 1930, 5724),
    ("talos_reduced.urdf", "floating"): (3296, 2997, 7561),
    ("g1_29dof_rev_1_0.urdf", "floating"): (3124, 3219, 7279),
    ("solo12.urdf", "floating"): (1047, 484, 2301),
    ("anymal.urdf", "floating"): (1261, 526, 2553),
}
SNAP = 1e-9  # published files round pi / 2 at the twelfth digit


def symmetric(rng: np.random.Generator, pattern: str) -> Inertial:
    """A body whose second moments about the link's origin are diagonal but for the products named."""
    names = pattern.split()
    h = np.array([rng.normal() * 0.2 if a in names else 0.0 for a in "xyz"])
    m, S = float(rng.uniform(0.5, 3.0)), np.diag(rng.uniform(0.2, 0.4, 3))
    for name in names:
        if len(name) == 2:
            a, b = ("xyz".index(x) for x in name)
            S[a, b] = S[b, a] = rng.normal() * 0.05
    C = S - np.outer(h, h) / m
    I = np.trace(C) * np.eye(3) - C
    return Inertial(m, tuple(h / m), tuple(tuple(float(x) for x in row) for row in I))  # type: ignore[arg-type]


def general(rng: np.random.Generator) -> Inertial:
    """A body whose ten parameters are nonzero and unrelated."""
    while True:
        body = inertial(rng)
        if all(body.com) and all(x for row in body.tensor for x in row):
            return body


def bodies(name: str, kind: str) -> list[Inertial]:
    rng = np.random.default_rng(1)
    if kind == "usual":
        return [Inertial(m, c, ((x, 0.0, 0.0), (0.0, y, 0.0), (0.0, 0.0, z))) for m, c, (x, y, z) in USUAL]
    if kind == "symmetric":
        return [symmetric(rng, p) for p in SYMMETRIC[name].split("|")]
    return [general(rng) for _ in ROWS[name]]


@functools.cache
def arm(title: str) -> Model:
    """A robot of the table: its name, and "symmetric" or "usual" where its inertias are not general."""
    name, kind = (*title.split(), "general")[:2]
    links, joints = [Link("world")], []
    for i, ((alpha, a, d), body) in enumerate(zip(ROWS[name], bodies(name, kind))):
        c, s = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][alpha // 90 % 4]
        slide, d = d == "q", 0.0 if isinstance(d, str) else d
        R = ((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c))
        links.append(Link(f"l{i + 1}", body))
        joints.append(Joint(f"j{i + 1}", "prismatic" if slide else "revolute", links[i].name, links[-1].name,
                            (a, -d * s, d * c), R, (0.0, 0.0, 1.0)))  # fmt: skip
    gravity = (0.0, -9.81, 0.0) if name == "planar3" else (0.0, 0.0, -9.81)
    return Model(title, tuple(links), tuple(joints), gravity)


def daily(every: Iterable[Any], *few: Any) -> list[Any]:
    """For parametrize: a few by day, all of them by night."""
    return [
        pytest.param(*(x if isinstance(x, tuple) else (x,)), marks=[] if x in few else pytest.mark.nightly)
        for x in every
    ]


def operations(program: Program) -> int:
    return OBJECTIVES["add+mul"](program)


def states(model: Model, count: int) -> dict[str, np.ndarray]:
    rows = [state(model, seed) for seed in range(count)]
    q, v, a = (np.stack(x) for x in zip(*rows))
    return {"q": q, "v": v, "a": a, "tau": a}


def difference(program: Program, twin: Program, arguments: dict[str, Any]) -> float:
    """The worst difference of the first outputs over the states, relative to the largest value."""
    (x, *_), (y, *_) = (list(evaluate(p, arguments).values()) for p in (program, twin))
    return float(np.max(np.abs(x - y), initial=0.0) / max(np.max(np.abs(y), initial=0.0), 1e-300))


def conditioning(model: Model, q: np.ndarray, snap: float = 1e-15) -> float:
    M = evaluate(trace(model, "mass_matrix", snap=snap), {"q": q})["M"]
    return float(np.max(np.linalg.cond(M)))


# -- counts ------------------------------------------------------------------------------------------------


@pytest.mark.counts
@pytest.mark.parametrize(
    "title", [x if x == "puma560" else pytest.param(x, marks=pytest.mark.slow) for x in GOLDEN]
)
def test_arms_reach_their_counts_and_equal_their_twins(title: str) -> None:
    """Counts of five quantities, trig calls of the table at most, 1,000 states within 1e-11."""
    model = arm(title)
    arguments = states(model, 1000)
    for quantity, expected in zip(QUANTITIES, GOLDEN[title]):
        program = compete(model, quantity).program
        assert operations(program) <= expected, quantity
        assert program.counts["trig"] <= TRIG[title.split()[0]]
        allowed = 1e-11
        if quantity == "forward_dynamics":
            allowed = solving(model.nv, conditioning(model, arguments["q"]))
        assert difference(program, trace(model, quantity), arguments) <= allowed, quantity


# operations of the first three quantities with every parameter a symbol
IN_METRES = {
    "puma560": (438, 223, 740),
    "rx90": (418, 191, 694),
    "ur5": (422, 195, 686),
    "stanford": (385, 164, 632),
    "panda": (533, 311, 1007),
    "iiwa7": (503, 263, 931),
    "planar3": (48, 11, 61),
}


@pytest.mark.counts
@pytest.mark.parametrize("title", daily([t for t in GOLDEN if " " not in t], "puma560", "stanford", "planar3"))
def test_symbols_cost_little_more_than_numbers(title: str) -> None:
    """All lengths, masses and inertias symbolic, in metres, where numbers have a unit that saves products."""
    model = arm(title)
    for quantity, expected in zip(QUANTITIES[:3], IN_METRES[title]):
        program = compete(model, quantity, parameters=["*"]).program
        assert operations(program) <= expected
        assert difference(program, trace(model, quantity), states(model, 5)) <= 1e-11


def published(name: str, base: str) -> Model:
    """A robot of the package example-robot-data, by its file."""
    listed = metadata.files("example-robot-data") or ()
    found = sorted(str(f.locate()) for f in listed if f.name == name and "anymal_c" not in str(f))
    assert found, f"example-robot-data has no {name}"
    return parse_urdf(Path(found[0]).read_bytes(), base=base)


@pytest.mark.counts
@pytest.mark.parametrize(("name", "base"), daily(URDFS, ("solo12.urdf", "floating")))
def test_published_robots_reach_their_counts(name: str, base: str) -> None:
    model = published(name, base)
    arguments = states(model, 20)
    for quantity, expected in zip(QUANTITIES, URDFS[name, base]):
        program = compete(model, quantity, snap=SNAP).program
        twin = trace(model, quantity, snap=SNAP)
        assert operations(program) <= expected, quantity
        allowed = 1e-11
        if quantity == "forward_dynamics":
            allowed = solving(model.nv, conditioning(model, arguments["q"], SNAP))
        assert difference(program, twin, arguments) <= allowed


def test_objectives_choose_by_their_own_price() -> None:
    """Fewest products where these are dear, no sums of angles where sines are."""
    model = arm("puma560")
    by = {o: compete(model, "inverse_dynamics", o).program for o in OBJECTIVES}
    assert by["mul"].counts["mul"] <= by["add+mul"].counts["mul"]
    assert all(OBJECTIVES[o](by[o]) <= OBJECTIVES[o](by[p]) for o in OBJECTIVES for p in OBJECTIVES)
    with pytest.raises(TraceError, match="objective"):
        compete(model, "inverse_dynamics", "div")


# -- correctness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(15, 60))
def test_random_trees_equal_their_twins(seed: int) -> None:
    """Every kind of joint, tilted placements, branches, welds, mimic joints, ground and free bases."""
    model = robot(seed)
    arguments = states(model, 3)
    for quantity in ("inverse_dynamics", "mass_matrix", ("gravity", "forward_dynamics", "bias")[seed % 3]):
        program = compete(model, quantity, formalism="khalil").program
        allowed = 1e-11
        if quantity == "forward_dynamics" and model.nv:
            allowed = solving(model.nv, conditioning(model, arguments["q"]))
        assert difference(program, trace(model, quantity), arguments) <= allowed, quantity


SWITCHES = [
    Preparation(
        frames=frames,
        gauge=gauge,
        phase=phase,
        unit=unit,
        parallel=on,
        sums=on,
        carried=carried,
        meeting=meeting,
        absolute=tuple(range(9)) if on else (),
    )
    for frames, gauge, phase, unit, on, carried, meeting in [
        (False, "sigma", False, False, False, False, 0),
        (False, "yy", True, False, True, True, 1),
        (False, "sigma", False, True, True, True, 2),
        (True, "yy", False, True, False, False, 3),
        (True, "sigma", True, True, True, False, 2),
        (True, "sigma", True, True, False, True, 5),
    ]
]


@pytest.mark.parametrize("plan", SWITCHES, ids=str)
@pytest.mark.parametrize("title", ["puma560", "stanford", "planar3", "tree"])
def test_every_switch_leaves_the_values(plan: Preparation, title: str) -> None:
    """Each preparation and each way of running alone gives the numbers of the plain algorithm."""
    model = robot(12, n=7, mimics=0.0) if title == "tree" else arm(title)
    for quantity in ("inverse_dynamics", "mass_matrix"):
        run = searched_recursion(quantity)
        options = plan.options(run.switches)
        program = trace(model, quantity, compute=functools.partial(run.compute, **options), prepare=plan.prepare)
        assert difference(program, trace(model, quantity), states(model, 5)) <= 1e-11


def parallel_branches(seed: int) -> Model:
    """Runs of parallel hinges of either sense that branch, end, and carry others; with rotors."""
    rng, turns = np.random.default_rng(seed), (1.0, -1.0)
    links, joints = [Link("world")], []
    for i in range(7):
        links.append(Link(f"l{i}", general(rng)))
        parent = links[int(rng.integers(max(0, i - 2), i + 1))].name
        kind = "prismatic" if rng.random() < 0.1 else "revolute"
        axis = (0.0, float(rng.choice(turns)), 0.0) if rng.random() < 0.8 else (0.0, 0.0, 1.0)
        rotor = JointDynamics(armature=0.2) if rng.random() < 0.4 else None
        origin = tuple(float(x) for x in rng.normal(size=3))
        joints.append(Joint(f"j{i}", kind, parent, f"l{i}", origin, axis=axis, dynamics=rotor))
    return Model(f"branches-{seed}", tuple(links), tuple(joints))


@pytest.mark.parametrize("seed", range(6))
def test_absolute_rates_along_branching_runs(seed: int) -> None:
    """M, its inverse and accelerations over the sums of rates are the plain ones, in every choice of sums."""
    model = parallel_branches(seed)
    tree, (q, v, a) = build_tree(model), (x.tolist() for x in state(model, seed))
    M = np.array(common_algorithm("mass_matrix")(tree, q))
    tau = common_algorithm("inverse_dynamics")(tree, q, v, a)
    for absolute in (tuple(range(7)), (0, 3), (1, 2, 4)):
        for meeting in (0, 2):
            found = khalil_matrix.mass_matrix(tree, q, meeting=meeting, absolute=absolute)
            assert np.allclose(found, M, rtol=0, atol=1e-13 * np.max(M))
        inverse = np.array(khalil_matrix.inverse_mass_matrix(tree, q, absolute=absolute))
        assert np.max(np.abs(inverse @ M - np.eye(7))) < 1e-12 * np.linalg.cond(M)
        again = khalil_forward.forward_dynamics(tree, q, v, tau, absolute=absolute)
        assert np.max(np.abs(np.array(again) - a)) < solving(7, float(np.linalg.cond(M)))


def test_external_wrenches_come_through_the_reduction() -> None:
    model = robot(3, n=6, base="floating", mimics=0.0)
    link = model.links[-1].name
    arguments = {**states(model, 4), f"f_ext:{link}": np.random.default_rng(0).normal(size=(4, 6))}
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        program = compete(model, quantity, external=[link]).program
        assert difference(program, trace(model, quantity, external=[link]), arguments) <= 1e-9


def test_gauge_leaves_seven_numbers_a_hinge() -> None:
    """Second moment, first moment along the axis and mass are structural zeros; nothing is written as x - x."""
    for b in gauged(build_tree(arm("panda"))).bodies:
        S, h = b.inertia.S, b.inertia.h
        assert (S.zz, h.z, b.inertia.m) == (0.0, 0.0, 0.0)


@pytest.mark.counts  # what the lever does
def test_leaf_keeps_one_component_of_its_moment() -> None:
    tree = Preparation().prepare(build_tree(arm("puma560")))
    assert tree.bodies[-1].inertia.h.y == 0.0 and tree.bodies[-1].phase != 0.0


@pytest.mark.parametrize("seed", range(8))
def test_chosen_accelerations_come_back(seed: int) -> None:
    """A free base in free fall, hinges and slides whose accelerations the recursion chose: the same motion."""
    model = robot(seed, ("revolute", "prismatic", "universal"), n=6, base="floating", mimics=0.0)
    arguments = states(model, 4)
    program = compete(model, "forward_dynamics", formalism="khalil").program
    allowed = solving(model.nv, conditioning(model, arguments["q"]))
    assert difference(program, trace(model, "forward_dynamics"), arguments) <= allowed


def test_energy_and_derivatives_are_given_on_the_gauged_tree() -> None:
    model = arm("rx90")
    for quantity in ("kinetic_energy", "inverse_dynamics_derivatives", "inverse_mass_matrix"):
        program = compete(model, quantity, formalism="khalil").program
        twin = trace(model, quantity)
        assert difference(program, twin, states(model, 5)) <= 1e-9
        assert operations(program) < operations(twin)


# -- the competition ---------------------------------------------------------------------------------------


def test_ranking_names_winner_and_runners_up() -> None:
    result = compete(arm("planar3"), "inverse_dynamics")
    names = [name for name, _, _ in result.ranking]
    prices = [price for _, price, _ in result.ranking]
    assert result.winner == names[0] == "planar" and {"khalil", "newton_euler"} <= set(names)
    assert prices == sorted(prices) and result.program.meta["formalism"] == "planar"


def test_what_does_less_in_all_is_named() -> None:
    """Telegin's sequence has the fewest sums and products of two arms' matrix, and twice the sines of others."""
    program = compete(drevo.load("two-arm-spatial").model, "mass_matrix").program
    assert program.meta["formalism"] == "telegin"
    assert "12 sines and cosines and 2 sums of angles: less in all" in program.meta["less_in_all"]
    assert not compete(arm("puma560"), "bias", formalism="khalil").program.meta["less_in_all"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_instructions_are_those_of_the_emitter(objective: str) -> None:
    program = compete(arm("puma560"), "inverse_dynamics", objective).program
    steps = [s for s in lower(program).steps if s[0] in (ADD, MUL, DIV, FMA)]
    assert program.instructions == len(steps) - program.counts["angle_sums"]


def test_refusals_name_joint_and_formalisms() -> None:
    model = arm("stanford")
    with pytest.raises(TraceError, match=r"j3.*khalil and newton_euler"):
        compete(model, "inverse_dynamics", formalism="planar")
    with pytest.raises(TraceError, match="newton_euler"):
        compete(model, "pose", formalism="khalil", options={"link": "l6"})
    with pytest.raises(TraceError, match="there are auto"):
        candidates(build_tree(model), ["bias"], "lagrange")


def test_plane_of_branches_and_turned_zeros() -> None:
    """A planar tree with branches, offsets and first moments in all directions of the plane."""
    rng = np.random.default_rng(5)
    links, joints = [Link("world")], []
    for i, parent in enumerate((0, 1, 2, 2, 1)):
        links.append(Link(f"l{i + 1}", inertial(rng)))
        origin = tuple(float(x) for x in rng.normal(size=3))
        joints.append(
            Joint(f"j{i + 1}", "revolute", links[parent].name, links[-1].name, origin, axis=(0.0, 0.0, 1.0))
        )
    model = Model("plane", tuple(links), tuple(joints), gravity=(3.0, -9.0, 1.0))
    for quantity in (*QUANTITIES, "inverse_mass_matrix"):
        program = compete(model, quantity, formalism="planar").program
        assert difference(program, trace(model, quantity), states(model, 5)) <= 1e-10
    assert planar.flat(gauged(build_tree(arm("puma560")))) is None


def test_long_chain_needs_no_recursion() -> None:
    """1,000 hinges: one trace out and back, linear in the number of bodies."""
    body = Inertial(1.0, (0.5, 0.1, 0.2), ((0.1, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.3)))
    links = (Link("world"), *(Link(f"l{i}", body) for i in range(1000)))
    joints = tuple(
        Joint(
            f"j{i}", "revolute", links[i].name, links[i + 1].name, (1.0, 0.0, 0.0), axis=(0.0, i % 2, 1.0 - i % 2)
        )
        for i in range(1000)
    )
    tree = Preparation(frames=False).prepare(build_tree(Model("chain", links, joints)))
    program = traced_alone(tree, searched_recursion("inverse_dynamics"), {})
    assert operations(program) < 120 * 1000


def test_search_on_a_humanoid_is_bounded() -> None:
    """One quantity of a 32-joint humanoid: what is traced in all, search and regrouping included."""
    model = published("talos_reduced.urdf", "fixed")
    assert work.nodes(lambda: compete(model, "inverse_dynamics", snap=SNAP)) < 60_000
