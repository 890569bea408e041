"""The rolled form against the same algorithms on numbers, and against itself: lanes, threads, cache, bad input."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import strategies
from reference import on_each
from tolerances import DYNAMICS

from drevo.codegen.call import rolled as rolled_code
from drevo.codegen.call.function import Function
from drevo.codegen.call.rolled import _LOCKED
from drevo.codegen.lower.loops import MODEL_WORDS
from drevo.codegen.store import cache
from drevo.codegen.store.build import Spec
from drevo.compiler.formalisms import common_algorithm
from drevo.compiler.ways.rolled import Tables, kinds_of, rolled_function
from drevo.compiler.ways.rolled.tables import MAX_CODED_KINDS
from drevo.errors import InputError, ModelError, NumericsError
from drevo.mechanics.algorithms.inertia_matrix import forward_dynamics
from drevo.mechanics.algorithms.inverse_dynamics import bias, inertia_product, inverse_dynamics
from drevo.mechanics.body_table import body_table
from drevo.mechanics.configuration import random
from drevo.mechanics.tree import build_tree
from drevo.model.description import Inertial, Joint, Link, Model, Vec3
from drevo.model.quantities import CATALOGUE
from drevo.robot.face import Robot
from drevo.robots import rod_chain
from drevo.robots.loading import load

ALGORITHM = {
    "inverse_dynamics": inverse_dynamics,
    "bias": bias,
    "inertia_product": inertia_product,
    "forward_dynamics": forward_dynamics,
}
LOOSE = {**dict.fromkeys(ALGORITHM, DYNAMICS), "joint_wrenches": DYNAMICS, "forward_dynamics": 1e-8}


def rolled(model: Model, quantity: str, **options: object) -> Function:
    """The rolled function, whatever the size."""
    found = rolled_function(model, quantity, Spec(**options), smallest=0)  # type: ignore[arg-type]
    assert found is not None
    return found


def tree_of(seed: int, kinds: tuple[str, ...] = strategies.EVERY, base: str = "fixed", n: int = 30) -> Model:
    return strategies.robot(seed, kinds, n, base, welds=0.1, mimics=0.0)


def states(model: Model, count: int, quantity: str) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    q = np.array([random(model, rng) for _ in range(count)])
    rates = rng.normal(size=(len(CATALOGUE[quantity].state) - 1, count, model.nv))
    return [q, *rates]


def expected(
    model: Model, quantity: str, args: list[np.ndarray], pulls: dict[str, np.ndarray] | None = None
) -> np.ndarray:
    """All samples at once, on arrays."""
    columns = [list(x.T) for x in args]
    extra = {"external": {k: list(x.T) for k, x in pulls.items()}} if pulls else {}
    found = common_algorithm(quantity)(build_tree(model), *columns, **extra)
    if quantity == "joint_wrenches":
        return np.moveaxis(np.array([[np.broadcast_to(x, len(args[0])) for x in row] for row in found]), -1, 0)
    return np.stack([np.broadcast_to(x, len(args[0])) for x in found], -1)


@pytest.mark.parametrize("quantity", ALGORITHM)
@pytest.mark.parametrize(("base", "kinds"), [
    *(("fixed", x) for x in (("revolute",), ("prismatic",), ("helical",), strategies.EVERY)),
    ("floating", strategies.EVERY),
])  # fmt: skip
@pytest.mark.parametrize("seed", strategies.seeds(1, 2))
def test_same_as_the_algorithm(quantity: str, kinds: tuple[str, ...], base: str, seed: int) -> None:
    model = tree_of(seed, kinds, base)
    args = states(model, 11, quantity)
    found, right = rolled(model, quantity)(*args), expected(model, quantity, args)
    assert np.abs(found - right).max() <= LOOSE[quantity] * np.abs(right).max()


@pytest.mark.parametrize("quantity", ALGORITHM)
def test_same_bits_in_every_lane_and_thread(quantity: str) -> None:
    model = tree_of(3, base="floating")
    f, args = rolled(model, quantity), states(model, 301, quantity)
    right = np.array([f(*(x[k] for x in args)) for k in range(301)])
    for count in (1, 7, 8, 9, 301):
        assert np.array_equal(f(*(x[:count] for x in args)), right[:count])
    many = [np.tile(x, (20, 1)) for x in args]  # enough for threads to be worth their start
    assert np.array_equal(f(*many, threads=2), np.tile(right, (20, 1)))
    out = np.empty((301, 2 * model.nv))[:, ::2]
    assert f(*(x.tolist() for x in args), out=out) is out and np.array_equal(out, right)
    assert np.array_equal(f(args[0].reshape(7, 43, -1), *(x[0] for x in args[1:]))[0, 0], right[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_fork_while_another_thread_computes_one_sample() -> None:
    """The state of one sample is locked while it is used; in a child nobody would open it."""
    assert MODEL_WORDS.index("lock") == _LOCKED
    f = rolled(tree_of(0), "gravity")
    (q,) = states(tree_of(0), 1, "gravity")
    f.code.data[-1][_LOCKED] = 1  # type: ignore[union-attr]  # as that thread would
    if not (child := os.fork()):
        signal.alarm(20)
        f(q[0])
        os._exit(0)
    f.code.data[-1][_LOCKED] = 0  # type: ignore[union-attr]
    assert os.waitpid(child, 0)[1] == 0


def test_float32() -> None:
    model = tree_of(5)
    args = states(model, 20, "inverse_dynamics")
    found = rolled(model, "inverse_dynamics", dtype="float32")(*args)
    right = expected(model, "inverse_dynamics", args)
    assert found.dtype == np.float32 and np.abs(found - right).max() <= 2e-4 * np.abs(right).max()


def test_long_chain_takes_samples_one_by_one() -> None:
    model = tree_of(1, ("revolute", "prismatic"), n=2600)
    f, args = rolled(model, "inverse_dynamics"), states(model, 3, "inverse_dynamics")
    found = f(*args)
    assert np.array_equal(found, [f(*(x[k] for x in args)) for k in range(3)])
    right = expected(model, "inverse_dynamics", args)
    assert np.abs(found - right).max() <= 1e-10 * np.abs(right).max()


def test_code_is_kept_by_kinds_not_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from drevo.compiler.ways import rolled as module

    rolled(rod_chain(40).model, "inverse_dynamics")

    def never(*_: object) -> None:
        raise AssertionError("traced again")

    if cache.directory() is not None:
        monkeypatch.setattr(module, "rolled_program", never)
    model = rod_chain(50).model
    args = states(model, 3, "inverse_dynamics")
    right = expected(model, "inverse_dynamics", args)
    assert np.abs(rolled(model, "inverse_dynamics")(*args) - right).max() <= DYNAMICS * np.abs(right).max()


def test_bad_input_is_named() -> None:
    model = tree_of(4, base="floating")
    f, (q, v, a) = rolled(model, "inverse_dynamics"), states(model, 9, "inverse_dynamics")
    with pytest.raises(InputError, match="v has shape"):
        f(q, v[:, :-1], a)
    v[5, 2] = np.nan
    for rows in (slice(None), slice(5, 6)):
        with pytest.raises(NumericsError, match=r"v\[2\].* is nan"):
            f(q[rows], v[rows], a[rows])
    v[5, 2], q[2, 3:7] = 0.0, (1.0, 1.0, 0.0, 0.0)
    with pytest.raises(NumericsError, match=r"quaternion q\[3:7\] in row 2"):
        f(q, v, a)


def test_left_to_straight_line_code() -> None:
    small, mimics = tree_of(0, n=20), strategies.robot(0, ("revolute",), 80, "fixed", 0.0, 0.5)
    assert rolled_function(small, "inverse_dynamics", Spec()) is None
    assert rolled_function(mimics, "inverse_dynamics", Spec()) is None
    large = tree_of(0, n=100)
    assert rolled_function(large, "inverse_dynamics", Spec(layout="batch_last")) is None
    assert rolled_function(large, "inverse_dynamics", Spec()) is not None


@pytest.mark.parametrize("quantity", ["inverse_dynamics", "bias", "forward_dynamics", "joint_wrenches"])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_wrenches_in_world_axes(quantity: str, base: str) -> None:
    """On several links, welded ones among them, the root of no effect: as the algorithm has it."""
    model = tree_of(6, ("revolute", "prismatic", "spherical"), base)
    args, rng = states(model, 21, quantity), np.random.default_rng(3)
    welded = next(j.child for j in model.joints if j.kind == "fixed")
    links = [model.root, model.links[5].name, model.links[-1].name, welded]
    pulls = {k: rng.normal(size=(21, 6)) for k in links}
    options = {"frame": "local_world_aligned"} if quantity == "joint_wrenches" else {}
    f = rolled_function(model, quantity, Spec(), external=links, options=options, smallest=0)
    assert f is not None and [n for n, _ in f.inputs[-4:]] == [f"f_ext:{k}" for k in links]
    found, right = f(*args, *pulls.values()), expected(model, quantity, args, pulls)
    assert np.abs(found - right).max() <= LOOSE[quantity] * np.abs(right).max()
    for k in (0, 20):
        one = f(*(x[k] for x in args), *(x[k] for x in pulls.values()))
        assert np.array_equal(one, found[k])
    still = f(*args, *(x[3] for x in pulls.values()))  # the same wrenches for every row
    assert np.array_equal(still[3], found[3])


def test_wrenches_by_name() -> None:
    """f_ext of a large robot goes through the loop too, and a long chain sample by sample."""
    r = Robot(tree_of(2, ("revolute",), n=2150))
    args, links = states(r.model, 2, "inverse_dynamics"), (r.link_names[1500], r.link_names[-1])
    pulls = {k: np.array([1.0, -2.0, 3.0, 0.5, 0.1, -0.7]) for k in links}
    found = r.inverse_dynamics(*args, f_ext=pulls)
    right = expected(r.model, "inverse_dynamics", args, {k: np.tile(x, (2, 1)) for k, x in pulls.items()})
    assert np.abs(found - right).max() <= 1e-10 * np.abs(right).max()


def test_inertia_product_is_linear_and_symmetric() -> None:
    """x . M y = y . M x, M (x + y) = M x + M y, and x . M x > 0, for a floating tree."""
    model = tree_of(8, base="floating", n=60)
    f = rolled(model, "inertia_product")
    q, x = states(model, 6, "inertia_product")
    y = np.roll(x, 1, axis=0)
    Mx, My, size = f(q, x), f(q, y), np.abs(f(q, x)).max() * np.abs(x).max() * model.nv
    assert np.abs((y * Mx).sum(1) - (x * My).sum(1)).max() <= DYNAMICS * size
    assert np.abs(f(q, x + y) - Mx - My).max() <= DYNAMICS * np.abs(Mx).max()
    assert ((x * Mx).sum(1) > 0).all()


@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
def test_inertia_product_of_small_robots() -> None:
    """Straight-line code: M(q) x, for an arm and a floating tree with mimic joints."""
    for model in (load("puma560").model, strategies.robot(5, strategies.EVERY, 9, "floating", 0.2, 0.3)):
        r, (q, x) = Robot(model), states(model, 10, "inertia_product")
        right = np.einsum("bij,bj->bi", r.mass_matrix(q), x)
        assert np.abs(r.inertia_product(q, x) - right).max() <= DYNAMICS * np.abs(right).max()


def test_columns_are_those_of_the_tree() -> None:
    """Robots of welds and joints of one step go straight to arrays; the same numbers as by way of the tree."""
    kinds, seen, eps = ("revolute", "prismatic", "helical", "spherical"), [], np.finfo(float).eps

    def check(model: Model, _: int) -> None:
        columns, tree = body_table(model), build_tree(model)
        exact = all(j.axis == coordinate(j.axis) and j.kind != "fixed" for j in model.joints)
        for b in tree.bodies:
            i = columns.links.index(b.link)
            row = [*b.R.x, *b.R.y, *b.R.z, *b.p, b.inertia.m, *b.inertia.h, *b.inertia.S, b.pitch, b.factor]
            size = np.abs(columns.numbers[i]).max()
            assert np.abs(columns.numbers[i] - row).max() <= (4 if exact else 30) * eps * size
            assert not exact or [x == 0.0 for x in columns.numbers[i]] == [x == 0.0 for x in row]
            assert (columns.q[i], columns.v[i], columns.axis[i]) == (b.q, b.v, b.axis)
            parent = columns.parent[i]
            assert (columns.links[parent] if parent >= 0 else "") == (
                tree.bodies[b.parent].link if b.parent >= 0 else ""
            )
            seen.append(b.link)
        for link, frame in tree.frames.items():
            found = columns.frame(link)
            assert (columns.links[found.body] if found.body >= 0 else "") == (
                tree.bodies[frame.body].link if frame.body >= 0 else ""
            )
            assert np.abs(np.array(found.R) - np.array(frame.R)).max() <= 8 * eps
            assert np.abs(np.array(found.p) - np.array(frame.p)).max() <= 30 * eps

    bases = ("fixed", "floating")
    models = [strategies.robot(s, kinds, 30, bases[s % 2], welds=0.0, mimics=0.0) for s in range(8)]
    straight = [[replace(j, axis=coordinate(j.axis)) for j in m.joints] for m in models]
    tilted = [strategies.robot(s, kinds, 30, bases[s % 2], welds=0.3, mimics=0.0) for s in range(8)]
    on_each([replace(m, joints=tuple(joints)) for m, joints in zip(models, straight)] + tilted, check)
    assert len(seen) > 300


@pytest.mark.parametrize("seed", range(3))
def test_many_kinds_of_joints_share_code(seed: int) -> None:
    """Five kinds about three axes, in parallel frames or not, would be 22 steps: axes along z serve for all."""
    model = tree_of(seed, base="floating", n=200)
    assert len(kinds_of(body_table(model))[0]) > MAX_CODED_KINDS >= len(Tables(model).kinds)


def coordinate(axis: Vec3) -> Vec3:
    """The nearest coordinate axis, of the same sense."""
    k = int(np.abs(axis).argmax())
    return strategies.vec(np.eye(3)[k] * np.copysign(1.0, axis[k]))


def chain_with(kinds: list[str], axes: list[tuple[float, float, float]], masses: list[float]) -> Model:
    """A chain of these joints in line; a body without mass has no inertia either."""
    tensor = ((0.01, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, 0.03))
    links = [Link("world")] + [
        Link(f"l{i}", Inertial(m, (0.1, 0.02, 0.03), tensor) if m else None) for i, m in enumerate(masses)
    ]
    joints = [
        Joint(f"j{i}", k, links[i].name, f"l{i}", (0.1, 0.0, 0.0), axis=axes[i]) for i, k in enumerate(kinds)
    ]
    return Model("chain", tuple(links), tuple(joints))


def test_singular_mass_matrix_is_found_in_the_loop() -> None:
    """Two slides along one line with nothing between them, hidden among a hundred sound joints."""
    n = 100
    axes = [((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[i % 3] for i in range(n)]
    kinds, masses = ["revolute"] * n, [1.0] * n
    sound = chain_with(kinds, axes, masses)
    assert rolled(sound, "forward_dynamics")(*np.zeros((3, n))).shape == (n,)
    kinds[50:52], axes[50:52], masses[50] = ["prismatic"] * 2, [(0.0, 1.0, 0.0)] * 2, 0.0
    with pytest.raises(ModelError, match=r"singular for every configuration at joint 'j5[01]'"):
        rolled(chain_with(kinds, axes, masses), "forward_dynamics")
    assert rolled(chain_with(kinds, axes, masses), "inverse_dynamics") is not None
    masses[50] = 1e-9
    assert rolled(chain_with(kinds, axes, masses), "forward_dynamics") is not None


def test_long_chains_are_not_taken_for_singular() -> None:
    """What one joint moves of 3,000 bodies is 1e10 times what it moves alone."""
    n = 3000
    axes = [((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[i % 3] for i in range(n)]
    assert rolled(chain_with(["revolute"] * n, axes, [1.0] * n), "forward_dynamics") is not None


@pytest.mark.parametrize("lanes", [2, 4])
@pytest.mark.parametrize("external", [False, True])
def test_narrower_machines_compute_the_same_bits(
    lanes: int, external: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrenches of six numbers go in blocks of two where a vector has no more."""
    model = tree_of(3)
    links = [x.name for x in model.links[1:4]] if external else []
    args = states(model, 7, "inverse_dynamics")
    args += list(np.random.default_rng(8).normal(size=(len(links), 7, 6)))
    found, host = [], rolled_code.target_of(Spec())
    for target in (host, host._replace(lanes=lanes)):
        monkeypatch.setattr(rolled_code, "target_of", lambda spec, target=target: target)
        f = rolled_function(model, "inverse_dynamics", Spec(), external=links, smallest=0, cache=False)
        assert f is not None
        rolled_code._LOOPS.clear()  # the loops of the other width are not these
        found.append(f(*args))
    assert np.array_equal(*found)
