"""Limbs that are alike, side by side: which are found, and one state's derivatives of robots that have some."""

import math
from functools import cache

import numpy as np
import pytest

import drevo
from drevo.compiler import limb_products
from drevo.compiler.compile import make_program, recipe_of
from drevo.compiler.limbs import limbs_program
from drevo.mechanics.algorithms import derivatives
from drevo.mechanics.limbs import alike_limbs
from drevo.mechanics.tree import build_tree

EPS = np.finfo(float).eps
INVERSE, FORWARD = "inverse_dynamics_derivatives", "forward_dynamics_derivatives"


def limbed(count, joints, base="free", spread=1.0, more=0):
    """A trunk with limbs all around, of other numbers each; more: joints of one limb behind those of the rest."""
    rng = np.random.default_rng(count)
    b = drevo.Builder("limbed")

    def body(name, parent, joint, **given):
        A = rng.uniform(-2e-3, 2e-3, size=(3, 3))
        inertia = A + A.T + 0.03 * np.eye(3)
        b.body(
            name, parent, joint, mass=rng.uniform(0.5, 2), com=0.1 * rng.normal(size=3), inertia=inertia, **given
        )

    if base == "free":
        body("trunk", "world", "free")
    else:
        body("pillar", "world", "revolute")
        body("trunk", "pillar", "revolute", axis=(0, 1, 0), origin=(0, 0, 0.3))
    for k in range(count):
        parent, turn = "trunk", 2 * math.pi * k / count
        for j, joint in enumerate(joints + ("revolute",) * (more if k == 0 else 0)):
            place = {"origin": (0.1 + 0.01 * spread * k, 0.02 * j, 0)}
            if not j:
                place = {"origin": (0.2 * math.cos(turn), 0.2 * math.sin(turn), 0), "rpy": (0, 0, turn)}
            axis = {} if joint in ("spherical", "free") else {"axis": ((0, 0, 1), (0, 1, 0))[j > 0]}
            body(f"limb{k}_{j}", parent, joint, **place, **axis)
            parent = f"limb{k}_{j}"
    body("head", "trunk", "revolute", axis=(0, 1, 0), origin=(0.3, 0, 0.1))
    return b.robot()


ROBOTS = {
    "hexapod": (6, ("revolute",) * 3),
    "hand": (3, ("revolute", "revolute", "prismatic"), "fixed"),
    "balls": (4, ("spherical", "revolute"), "fixed"),
}


@cache
def robot_of(name):
    return limbed(*ROBOTS[name])


def state_of(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random(rng), *rng.normal(size=(2, robot.nv))


@pytest.mark.parametrize("name", ROBOTS)
def test_alike_limbs_are_found(name):
    tree = build_tree(robot_of(name).model)
    count, joints, *_ = ROBOTS[name]
    (limbs,) = alike_limbs(tree)
    assert len(limbs) == count
    assert {len(x) for x in limbs} == {len(joints)}
    assert {tree.bodies[i].link for x in limbs for i in x} == {b.link for b in tree.bodies if "limb" in b.link}


def test_limbs_with_another_number_of_joints_or_a_shared_rate_stand_apart():
    longer = build_tree(limbed(4, ("revolute",) * 2, more=1).model)
    assert {longer.bodies[x[0]].link for x in alike_limbs(longer)[0]} == {"limb1_0", "limb2_0", "limb3_0"}
    b = drevo.Builder("driven")
    b.body("trunk", joint="free", mass=1.0, inertia=np.eye(3))
    for k in range(4):
        mimic = "limb0_joint" if k == 1 else None
        b.body(f"limb{k}", "trunk", origin=(k, 0, 0), mass=1.0, inertia=np.eye(3), mimic=mimic)
    driven = build_tree(b.robot().model)
    assert {driven.bodies[x[0]].link for x in alike_limbs(driven)[0]} == {"limb2", "limb3"}


def test_few_limbs_are_no_gain():
    assert limbs_program(drevo.load("two-arm-planar").model, INVERSE) is None


def humanoid():
    """Two legs on a base, two arms and a head on its torso."""
    rng, b = np.random.default_rng(3), drevo.Builder("humanoid")

    def limb(stem, parent, count):
        for k in range(count):
            inertia = np.diag(rng.uniform(0.02, 0.03, 3))
            given = {"axis": np.eye(3)[k % 3], "origin": rng.uniform(0.05, 0.2, 3), "inertia": inertia}
            above = f"{stem}{k - 1}" if k else parent
            b.body(f"{stem}{k}", above, mass=rng.uniform(1, 2), com=0.1 * rng.normal(size=3), **given)

    b.body("base", "world", "free", mass=3.0, com=(0.0, 0.1, 0.0), inertia=0.1 * np.eye(3))
    limb("torso", "base", 2)
    for stem, parent, count in (("left leg", "base", 3), ("right leg", "base", 3), ("left arm", "torso1", 4),
                                ("right arm", "torso1", 4), ("head", "torso1", 1)):  # fmt: skip
        limb(stem, parent, count)
    return b.robot()


def test_pairs_of_arms_and_of_legs_are_two_groups():
    tree = build_tree(humanoid().model)
    found = [[tree.bodies[x[0]].link for x in limbs] for limbs in alike_limbs(tree)]
    assert found == [["left arm0", "right arm0"], ["left leg0", "right leg0"]]


@pytest.mark.parametrize(
    "name, product", [("hexapod", "vjp"), ("balls", "value_and_vjp"), ("humanoid", "value_and_vjp")]
)
def test_one_state_of_a_product_is_that_of_a_batch(name, product, monkeypatch):
    """Inverse dynamics with J^T w, limbs side by side, to rounding: eps for each of the nv sums of an entry."""
    monkeypatch.setattr(limb_products, "LONG", 0)
    robot = humanoid() if name == "humanoid" else robot_of(name)
    rng = np.random.default_rng(1)
    program = make_program(robot.model, ("inverse_dynamics",), (), "auto", (), {}, product=[product])
    joined = program.across(True)
    assert joined.limbs.count == (2 if name == "humanoid" else ROBOTS[name][0])
    assert len(joined.order()) < len(program.order())
    f = drevo.compile(robot, "inverse_dynamics", product=product, cache=name != "humanoid")  # no part of a key
    args = [robot.random(rng, 9) if n == "q" else rng.normal(size=(9, *s)) for n, s in f.inputs]
    for many, one in zip(f(*args), f(*(x[4] for x in args))):
        assert np.abs(many[4] - one).max() <= 16 * robot.nv * EPS * np.abs(many[4]).max()
    args[2][4, -2] = math.nan
    with pytest.raises(drevo.NumericsError):
        f(*(x[4] for x in args))


@pytest.mark.parametrize("quantity", [INVERSE, FORWARD])
@pytest.mark.parametrize("name", ROBOTS)
def test_one_state_agrees_with_the_plain_recursion(name, quantity):
    """To rounding: eps for each of the nv sums of an entry, through the condition of M where it is solved."""
    robot = robot_of(name)
    q, v, a = state_of(robot)
    f = robot.function(quantity)
    n, margin = robot.nv, 512
    room = [np.full(n * n + 2 * margin, 7.25) for _ in range(3)]
    out = tuple(x[margin:-margin].reshape(n, n) for x in room)
    f(q, v, a, out=out)
    assert all((x[:margin] == 7.25).all() and (x[-margin:] == 7.25).all() for x in room)  # nothing beside them
    tree = build_tree(robot.model)
    expected = getattr(derivatives, quantity)(tree, list(q), list(v), list(a))
    M = robot.mass_matrix(q)
    condition = 1.0 if quantity == INVERSE else np.linalg.cond(M)
    for found, wanted in zip(out, map(np.array, expected)):
        assert np.abs(found - wanted).max() <= 16 * n * EPS * condition * np.abs(wanted).max()


@pytest.mark.parametrize("quantity", [INVERSE, FORWARD])
def test_what_is_not_finite_in_one_limb_is_refused(quantity):
    robot = robot_of("hexapod")
    f = robot.function(quantity)
    for place in (0, robot.nv - 2, 9):
        q, v, a = state_of(robot)
        v[place] = math.nan
        with pytest.raises(drevo.NumericsError):
            f(q, v, a)
    q, v, a = state_of(robot)
    q[9] = 1e300  # an angle without a sine
    with pytest.raises(drevo.NumericsError):
        f(q, v, a)


def test_a_ball_joint_of_one_limb_must_be_a_rotation():
    robot = robot_of("balls")
    f = robot.function(INVERSE)
    q, v, a = state_of(robot)
    f(q, v, a)
    q[2 + 5 * 2 : 6 + 5 * 2] *= 1.01
    with pytest.raises(drevo.DrevoError):
        f(q, v, a)


def test_large_angles_of_limbs_keep_their_digits():
    robot = robot_of("hand")
    q, v, a = state_of(robot)
    turned = q.copy()
    turned[2] += 2 * math.pi * 1e5
    f = robot.function(INVERSE)
    for x, y in zip(f(q, v, a), f(turned, v, a)):
        assert np.abs(x - y).max() <= 1e-9 * np.abs(x).max()  # what the sum of q and turns has lost


def test_machine_code_of_limbs_is_short():
    """The steps of one limb, not of six."""
    model = robot_of("hexapod").model
    alone = limbs_program(model, INVERSE)
    recipe = recipe_of(model, INVERSE, (), "auto", (), False, (), {})
    whole = make_program(model, **recipe)
    assert alone is not None
    assert len(alone.order()) < 0.4 * len(whole.order())
