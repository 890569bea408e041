"""Large trees: every quantity that a loop can give, against the algorithms on numbers, laws and closed forms."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import strategies
from test_rolled import states
from tolerances import DYNAMICS

import drevo
import drevo.compiler.ways.rolled as module
from drevo.codegen.llvm.kernel import ANGLES_PER_TEST, Kernel
from drevo.codegen.llvm.ports import BEYOND
from drevo.codegen.lower.loops import BLOCK_BODIES, MIN_LONG_BODIES
from drevo.codegen.store import native
from drevo.codegen.store.build import Spec
from drevo.compiler.compile_cost import AFFORDABLE, operations
from drevo.compiler.formalisms import common_algorithm
from drevo.compiler.ways import rolled as rolled_loops
from drevo.compiler.ways.rolled import BLOCKED, Tables, prepare, rolled_function
from drevo.control import pd
from drevo.errors import TraceError
from drevo.mechanics.tree import build_tree
from drevo.model.description import Inertial, Joint, Link, Model
from drevo.robot.builder import Builder
from drevo.robot.face import Robot
from drevo.simulate import Control, damping, motion, simulate
from drevo.simulate.control import law_function

Array = np.ndarray[Any, Any]
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
WHOLE = (
    "gravity",
    "kinetic_energy",
    "potential_energy",
    "center_of_mass",
    "momentum",
    "poses",
    "mass_matrix",
    "coriolis_matrix",
)
COUNT = 11
FRAMES = ("local_world_aligned", "local", "world")


def chain(n: int, axes: tuple[tuple[float, float, float], ...] = AXES) -> Robot:
    """Equal bodies in a row, half a metre apart."""
    tensor = ((2e-3, 0.0, 0.0), (0.0, 3e-3, 0.0), (0.0, 0.0, 4e-3))
    body = Inertial(0.3, (0.2, 0.0, 0.0), tensor)
    links = [Link("world"), *(Link(f"l{i}", body) for i in range(n))]
    joints = [
        Joint(f"j{i}", "revolute", links[i].name, f"l{i}", (0.5, 0.0, 0.0), axis=axes[i % len(axes)])
        for i in range(n)
    ]
    return Robot(Model(f"chain-{n}", tuple(links), tuple(joints)))


def expected(model: Model, quantity: str, args: list[Array], options: dict[str, str]) -> Array:
    """The algorithm on arrays, samples first."""

    def stacked(x: Any) -> Array:
        if isinstance(x, (list, tuple)):
            return np.stack([stacked(y) for y in x])
        return np.broadcast_to(np.asarray(x, float), (COUNT,))

    return np.moveaxis(
        stacked(common_algorithm(quantity)(build_tree(model), *(list(x.T) for x in args), **options)), -1, 0
    )


def test_derivatives_of_inverse_dynamics() -> None:
    """Three matrices at once; joints of several freedoms among them."""
    model = strategies.robot(6, strategies.EVERY, 25, "floating", welds=0.1, mimics=0.0)
    args, quantity = states(model, COUNT, "inverse_dynamics_derivatives"), "inverse_dynamics_derivatives"
    f = rolled_function(model, quantity, Spec(), smallest=0)
    assert f is not None
    found, tree = f(*args), build_tree(model)
    for k in range(COUNT):
        right = common_algorithm(quantity)(tree, *(x[k].tolist() for x in args))
        alone = f(*(x[k] for x in args))
        for name, x, y, z in zip(found._fields, found, right, alone):
            assert np.abs(x[k] - y).max() <= DYNAMICS * np.abs(y).max(), name
            assert np.array_equal(x[k], z)


def compared(model: Model, quantity: str, **options: str) -> None:
    """Values, and the same bits alone, in a batch and over threads."""
    args = states(model, COUNT, quantity)
    f = rolled_function(model, quantity, Spec(), options=options, smallest=0)
    assert f is not None and f.how == "bodies"
    found, right = np.asarray(f(*args)), expected(model, quantity, args, options)
    assert found.shape == right.shape
    assert np.abs(found - right).max() <= DYNAMICS * np.abs(right).max(), (quantity, options)
    assert np.array_equal(found, [f(*(x[k] for x in args)) for k in range(COUNT)])
    many = [np.tile(x, (30, 1)) for x in args]
    assert np.array_equal(np.asarray(f(*many, threads=2)), np.tile(found, (30, *[1] * (found.ndim - 1))))


@pytest.mark.parametrize(
    ("n", "base", "kinds"), [(25, "floating", strategies.EVERY), (40, "fixed", ("revolute",))]
)
def test_quantities_of_all_bodies(n: int, base: str, kinds: tuple[str, ...]) -> None:
    model = strategies.robot(1, kinds, n, base, welds=0.1, mimics=0.0)
    for quantity in WHOLE:
        compared(model, quantity)
    for frame in FRAMES:
        compared(model, "joint_wrenches", frame=frame)


OF_LINK: tuple[tuple[str, dict[str, str]], ...] = (
    ("pose", {}),
    *(("jacobian", {"frame": frame}) for frame in FRAMES),
    ("velocity", {"frame": "local"}),
    ("velocity", {"frame": "world"}),
    ("acceleration", {"frame": "local_world_aligned", "kind": "classical"}),
    ("acceleration", {"frame": "world", "kind": "spatial"}),
)


@pytest.mark.parametrize("part", [slice(0, 4), slice(4, 8)])
def test_quantities_of_one_link(part: slice) -> None:
    """By the walk up its path: a link far out, one that is welded, and the root, which has no path."""
    model = strategies.robot(4, strategies.EVERY, 24, "floating", welds=0.15, mimics=0.0)
    welded = next(j.child for j in model.joints if j.kind == "fixed")
    for link in (model.links[-1].name, welded, model.root):
        for quantity, options in OF_LINK[part]:
            compared(model, quantity, link=link, **options)


def test_float32() -> None:
    model = strategies.robot(7, strategies.EVERY, 30, "floating", welds=0.1, mimics=0.0)
    for quantity in ("momentum", "mass_matrix"):
        args, f = states(model, COUNT, quantity), rolled_function(model, quantity, Spec("float32"), smallest=0)
        right = expected(model, quantity, args, {})
        assert f is not None and np.abs(np.asarray(f(*args)) - right).max() <= 2e-4 * np.abs(right).max()


def test_a_chain_of_three_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Public calls of a large robot trace one step per kind of joint, whatever the size and the link."""
    steps: list[str] = []
    make = module.rolled_program
    monkeypatch.setattr(
        rolled_loops, "rolled_program", lambda quantity, *x: steps.append(quantity) or make(quantity, *x)
    )
    n = 3000
    robot, rng = chain(n), np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, n)) / np.sqrt(n)
    T, V, c = robot.kinetic_energy(q, v), robot.potential_energy(q), robot.center_of_mass(q)
    assert np.isclose(V, 0.3 * n * 9.81 * c[2], rtol=1e-12)
    tau, h = robot.inverse_dynamics(q, v, a), robot.bias(q, v)
    M = robot.mass_matrix(q)
    assert np.array_equal(M, M.T) and np.isclose(T, 0.5 * v @ M @ v, rtol=1e-12)
    assert np.abs(M @ a + h - tau).max() <= 1e-12 * np.abs(tau).max()
    C = robot.coriolis_matrix(q, v)
    assert np.abs(C @ v + robot.gravity(q) - h).max() <= 1e-11 * np.abs(h).max()
    assert np.abs(robot.gravity(q) - robot.bias(q, 0 * v)).max() <= 1e-12 * np.abs(tau).max()
    poses = robot.poses(q)
    for k in (0, 1, 1234, n - 1):
        assert np.abs(robot.pose(q, f"l{k}") - poses[k]).max() <= 1e-12 * n
        J, J_v = robot.jacobian(q, f"l{k}"), robot.velocity(q, v, f"l{k}")
        assert np.abs(J @ v - J_v).max() <= 1e-12 * np.abs(J_v).max() + 1e-300
        assert not J[:, k + 1 :].any()
    links = J_v[None] * 0 + [robot.velocity(q, v, f"l{k}") for k in range(0, n, 100)]
    assert np.isfinite(links).all()
    assert len(steps) == len(set(steps)) <= 14  # a step for a quantity, none again for another link


def test_a_straight_chain_in_closed_form() -> None:
    """All axes alike, straight, one speed: every body turns about the base with its sum of speeds."""
    n = 100
    robot = chain(n, (AXES[2],))
    v = np.zeros(n)
    v[0] = 2.0
    q = np.zeros(n)
    x = 0.5 * np.arange(1, n + 1) + 0.2  # of the centres of mass
    about = 0.5 * 4.0 * (n * 4e-3 + 0.3 * ((x - 0.5) ** 2).sum())
    assert np.isclose(robot.kinetic_energy(q, v), about, rtol=1e-13)
    assert np.allclose(robot.center_of_mass(q), (x.mean(), 0.0, 0.0), rtol=1e-13)
    assert np.allclose(robot.pose(q, f"l{n - 1}")[:3, 3], (0.5 * n, 0.0, 0.0), rtol=1e-13)
    J = robot.jacobian(q, f"l{n - 1}")
    assert np.allclose(J[1], 0.5 * np.arange(n - 1, -1, -1), rtol=1e-13) and (J[5] == 1.0).all()
    acceleration = robot.acceleration(q, v, 0 * v, f"l{n - 1}")
    assert np.allclose(acceleration[:3], (-4.0 * 0.5 * (n - 1), 0.0, 0.0), rtol=1e-13)


def test_free_boxes_do_not_meet() -> None:
    """Sixty bodies on the ground by themselves: the matrix has their blocks and nothing else."""
    tensor = ((0.1, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.3))
    links = [Link("world"), *(Link(f"b{i}", Inertial(1.0 + i, (0.1, 0.2, 0.3), tensor)) for i in range(60))]
    joints = [Joint(f"j{i}", "free", "world", f"b{i}") for i in range(60)]
    robot = Robot(Model("boxes", tuple(links), tuple(joints)))
    assert drevo.compile(robot, "mass_matrix").how == "bodies"
    M = robot.mass_matrix(robot.random(np.random.default_rng(0)))
    blocks = M.reshape(60, 6, 60, 6).transpose(0, 2, 1, 3)
    assert not blocks[~np.eye(60, dtype=bool)].any()
    assert np.allclose([np.trace(blocks[i, i][:3, :3]) for i in range(60)], 3.0 * (1.0 + np.arange(60)))
    assert np.allclose(blocks[7, 7], blocks[7, 7].T)


def test_short_inertia_matrices_are_written_out() -> None:
    """Up to 80 bodies where branches are short: faster than the loop. Long chains, and long limbs with axes in any
    direction, which have no kernel for one state written out, are loops from 61 on: two to three times faster."""
    fingers = Builder("fingers").body("palm", joint="free", mass=1.0, inertia=np.eye(3))
    for k, part in itertools.product(range(35), ("near", "far")):
        parent = "palm" if part == "near" else f"near{k}"
        fingers.body(f"{part}{k}", parent=parent, origin=(0.1, 0.01 * k, 0.0), mass=1.0, inertia=np.eye(3))
    limbs = Robot(strategies.robot(1, ("revolute",), 75, welds=0.0, mimics=0.0))
    assert drevo.compile(fingers.robot(), "mass_matrix").how == "straight"
    for robot in (limbs, chain(75)):
        assert drevo.compile(robot, "mass_matrix").how == "bodies"


def test_what_has_no_loop_is_refused_with_its_cost() -> None:
    """Within a second, before anything is traced; small robots and separate branches are not touched."""
    robot = chain(3000)
    for quantity in ("inverse_mass_matrix", "forward_dynamics_derivatives"):
        with pytest.raises(TraceError, match=r"about .*e\+1. operations written out, .* of compiling"):
            drevo.compile(robot, quantity, layout="batch_last")
    with pytest.raises(TraceError, match="in rows, without parameters"):
        drevo.compile(robot, "mass_matrix", layout="batch_last")
    assert operations(chain(24).model, "inverse_dynamics_derivatives") < AFFORDABLE / 20


# -- motion -------------------------------------------------------------------------------------------------


@pytest.fixture
def unrolled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Motions that were traced in one piece."""
    traced: list[str] = []
    make = motion.motion_program
    monkeypatch.setattr("drevo.simulate.motion.motion_program", lambda m, *x: traced.append(m.name) or make(m, *x))
    return traced


def test_a_law_over_many_freedoms_is_one_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second kernel, for one sample, was half of the work; robots share what depends on no robot."""
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    made: list[int] = []
    add = Kernel.add
    monkeypatch.setattr(Kernel, "add", lambda self, m: made.append(self.l.lanes) or add(self, m))
    q, v = np.ones(300), np.full(300, 2.0)
    for axes in (AXES, AXES[:1]):
        robot = chain(300, axes)
        law = law_function(robot, Control(pd(robot, np.full(300, 0.5), 3.0, 2.0, gravity=False)))
        assert np.array_equal(law(np.zeros(1), q, v), np.full(300, -5.5))
        assert np.array_equal(
            law(np.zeros((9, 1)), np.tile(q, (9, 1)), np.tile(v, (9, 1))), np.full((9, 300), -5.5)
        )
    assert len(made) == 1


@pytest.mark.parametrize("method", ["rk4", "dop853", "gauss4"])
def test_motion_of_a_large_tree(method: str, unrolled: list[str]) -> None:
    """Over the loops as with a law of Python's, one and in a batch; held efforts, quaternions, energy."""
    model = strategies.robot(11, ("revolute",), 70, "floating", welds=0.1, mimics=0.0)
    robot, rng = Robot(model), np.random.default_rng(4)
    q, v, tau = robot.random(rng), 0.1 * rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    given: dict[str, Any] = {"duration": 0.01, "dt": 2e-3, "method": method}
    moved, slow = simulate(robot, q, v, tau, **given), simulate(robot, q, v, lambda *_: tau, **given)
    assert np.abs(moved.q - slow.q).max() <= 1e-12 and np.abs(moved.v - slow.v).max() <= 1e-11
    batch = simulate(robot, np.tile(q, (9, 1)), v, tau, **given)
    assert np.abs(batch.q[:, 4] - moved.q).max() <= 1e-12 and np.array_equal(batch.q[:, 4], batch.q[:, 8])
    free = simulate(robot, q, v, **given)
    assert free.energy_drift <= 1e-6 * abs(free.energy[0]) and not unrolled


def test_sines_of_many_sums_are_reduced_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Registers hold few: one test of 3,000 angles takes LLVM seconds. Large angles are right in each."""
    texts: list[str] = []
    compiled = native.compile_text
    monkeypatch.setattr(native, "compile_text", lambda ir: texts.append(ir) or compiled(ir))
    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    law = law_function(chain(300), Control(lambda t, q, v: [drevo.sin(x + 2.0 * t) for x in q]))
    q = np.linspace(-1e9, 1e9, 300)
    found = law(np.array([1e3]), q, np.zeros(300))
    exact = [float(mpmath.sin(mpmath.mpf(x) + 2000)) for x in q.tolist()]
    assert np.abs(found - exact).max() < 1e-15
    blocks = re.split(r"\n\S+:\n|\ndefine ", "\n".join(texts))
    assert 0 < max(len(re.findall(r"= phi <", x)) for x in blocks) <= ANGLES_PER_TEST


def test_laws_and_constraints_of_a_large_tree(unrolled: list[str]) -> None:
    robot = chain(80)
    q = np.full(80, 0.01)
    given: dict[str, Any] = {"duration": 4e-3, "dt": 1e-3}
    compiled, plain = (
        simulate(robot, q, tau=tau, **given) for tau in (damping(0.1), lambda t, q, v: -0.1 * np.asarray(v))
    )
    assert np.abs(compiled.v - plain.v).max() <= 1e-13 * np.abs(plain.v).max()
    timed = simulate(robot, q, tau=Control(lambda t, q, v: [t * x for x in q]), **given)
    assert not np.array_equal(timed.v, compiled.v)
    foot = simulate(robot, q, contacts=[{"link": "l79", "point": (0.0, 0.0, 0.0)}], **given)
    assert foot.constraint_drift <= 1e-10 and not unrolled


def test_results_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices of megabytes go over a stage, rows that lie apart do not, and what is left over goes straight."""
    robot = Robot(strategies.robot(5, ("revolute",), 70, "fixed", welds=0.0, mimics=0.0))
    n = robot.nv
    q = np.random.default_rng(0).normal(size=(203, n))
    assert 203 * n * n * 8 > BEYOND
    M, apart = robot.mass_matrix(q), np.empty((203, n, n + 1))
    assert np.array_equal(robot.mass_matrix(q, out=apart[:, :, :n]), M)
    assert np.array_equal(M[::50], [robot.mass_matrix(x) for x in q[::50]])
    assert np.array_equal(M[195:], robot.mass_matrix(q[195:]))


@pytest.mark.parametrize(("n", "alone"), [(70, False), (250, False), (300, True), (1000, True)])
def test_matrices_in_tiles(n: int, alone: bool) -> None:
    """Batches of matrices go many lanes at a time as long as a tile of results stays in the caches."""
    sizes, *_ = prepare(Tables.of(chain(n).model), "mass_matrix", (), {})
    assert sizes.alone == alone
    q = np.random.default_rng(0).normal(size=(5, n))
    robot = chain(n)
    assert np.array_equal(robot.mass_matrix(q), [robot.mass_matrix(x) for x in q])


def test_armature_of_a_free_base_coasts_on_in_large_trees() -> None:
    """h has w x A v for the linear rates of a free joint with armature, which the loops do not know."""
    b, size = drevo.Builder("free chain"), 0.7
    full = {"mass": 1.0, "com": (0.1, 0.0, 0.05), "inertia": np.diag([0.01, 0.02, 0.02])}
    b.body("base", joint="free", armature=size, **full)
    for k in range(65):
        b.body(
            f"l{k}", parent=f"l{k - 1}" if k else "base", axis=(0, k % 2, 1 - k % 2), origin=(0.1, 0, 0.1), **full
        )
    robot, rng = b.robot(), np.random.default_rng(0)
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    plain = drevo.compile(robot, "bias", formalism="khalil")(q, v)
    assert np.max(np.abs(robot.bias(q, v) - plain)) <= DYNAMICS * np.max(np.abs(plain))
    tau = rng.normal(size=robot.nv)
    a = robot.forward_dynamics(q, v, tau)
    back = drevo.compile(robot, "inverse_dynamics", formalism="khalil")(q, v, a)
    assert np.max(np.abs(back - tau)) <= 1e-9 * max(1.0, np.max(np.abs(plain)))


@pytest.mark.parametrize("bushy", [False, True])
def test_tiles_of_long_trees_go_block_by_block(bushy: bool) -> None:
    """The same bits as sample by sample, however many bodies have children in later blocks."""
    robot, rng = chain(MIN_LONG_BODIES + 30), np.random.default_rng(0)
    if bushy:
        up = [int(rng.integers(max(0, i - 2), i + 1)) if i % 9 else i // 2 for i in range(robot.nv)]
        joints = tuple(replace(j, parent=robot.model.links[k].name) for j, k in zip(robot.model.joints, up))
        robot = Robot(replace(robot.model, joints=joints))
    kept = Tables.of(robot.model).kept().max() + 1
    assert kept > 200 if bushy else kept == (MIN_LONG_BODIES + 30) // BLOCK_BODIES
    for quantity in BLOCKED:
        args = states(robot.model, 9, quantity)
        f = rolled_function(robot.model, quantity, Spec())
        assert f is not None
        assert np.array_equal(f(*args), [f(*(x[k] for x in args)) for k in range(9)])
