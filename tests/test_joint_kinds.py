"""Each kind of joint: by chains of plain ones, by tables, by mimics and by its quaternion."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import oracles
import pytest
import strategies
import tolerances as tol
from law_cases import MIMIC, Case, case
from reference import Reference, close, largest, robot_shown

from drevo.errors import NumericsError, TraceError
from drevo.mechanics.algorithms import articulated_body
from drevo.mechanics.configuration import random
from drevo.mechanics.tree import build_tree
from drevo.model.description import Joint, Limit, Link, Mimic, Model
from drevo.robot.face import Robot

# -- kinds of joints ----------------------------------------------------------------------------------------


def on_joint(kind: str, tail: int = 3, seed: int = 5, **changes: object) -> Model:
    """A joint of a kind, its body j1/l1, on the ground, with a random tree on it."""
    rng = np.random.default_rng(seed)
    model = strategies.robot(seed, strategies.HINGED, n=tail, base="fixed", welds=0.0, mimics=0.0)
    first = replace(strategies.joint(rng, "j0", kind, "world", "l0"), **changes)  # type: ignore[arg-type]
    rest = tuple(replace(j, parent="l0") if j.parent == "world" else j for j in model.joints)
    return replace(
        model,
        links=(Link("world"), Link("l0", strategies.inertial(rng)), *model.links[1:]),
        joints=(first, *rest),
    )


def chained(model: Model, steps: list[tuple[str, tuple[float, ...]]]) -> Model:
    """The first joint as a chain of plain ones with massless links between them."""
    first, *rest = model.joints
    names = ["world", *(f"between{k}" for k in range(len(steps) - 1)), first.child]
    chain = [
        Joint(f"step{k}", kind, names[k], names[k + 1], axis=strategies.vec(axis))
        for k, (kind, axis) in enumerate(steps)
    ]
    chain[0] = replace(chain[0], origin=first.origin, rotation=first.rotation)
    links = (model.links[0], *map(Link, names[1:-1]), *model.links[1:])
    return replace(model, links=links, joints=(*chain, *rest))


def as_chain(j: Joint) -> list[tuple[str, tuple[float, ...]]]:
    """What the contract says a joint of several axes is."""
    x, y = oracles.plane(j.axis)
    return {
        "universal": [("revolute", j.axis), ("revolute", j.axis2 or j.axis)],
        "cylindrical": [("prismatic", j.axis), ("revolute", j.axis)],
        "planar": [("prismatic", tuple(x)), ("prismatic", tuple(y)), ("revolute", j.axis)],
        "continuous": [("revolute", j.axis)],
    }[j.kind]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["universal", "cylindrical", "planar", "continuous"])
def test_a_joint_of_several_axes_is_a_chain(kind: str, seed: int) -> None:
    """universal = two hinges; cylindrical = slide, hinge; planar = slides x, y, hinge; same q and v."""
    model = on_joint(kind, seed=seed)
    one, chain = case(model, seed), Reference(chained(model, as_chain(model.joints[0])))
    _same(one, chain)


@pytest.mark.parametrize("seed", range(6))
def test_a_screw_without_lead_is_a_hinge(seed: int) -> None:
    """helical with lead 0 = revolute."""
    model = on_joint("helical", seed=seed, lead=0.0)
    hinge = replace(model.joints[0], kind="revolute")
    _same(case(model, seed), Reference(replace(model, joints=(hinge, *model.joints[1:]))))


def _same(c: Case, other: Reference) -> None:
    close(
        "tau",
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        other.inverse_dynamics(c.q, c.v, c.a),
        tol.SAME,
        c.terms,
    )
    close("M", c.drevo.mass_matrix(c.q), M := other.mass_matrix(c.q), tol.SAME)
    close("pose", c.drevo.pose(c.q, link=c.link), other.pose(c.q, link=c.link), tol.SAME)
    tau, size = (
        c.drevo.inverse_dynamics(c.q, c.v, c.a),
        max(largest(c.a), c.terms / float(np.linalg.norm(M, 2))),
    )
    t = tol.solving(len(M), float(np.linalg.cond(M)))
    close("a", other.forward_dynamics(c.q, c.v, tau), c.a, t, size)
    args = [x.tolist() for x in (c.q, c.v, tau)]
    close("a, articulated bodies", articulated_body.forward_dynamics(other.tree, *args), c.a, t, size)


@pytest.mark.parametrize("seed", range(6))
def test_a_spherical_joint_is_three_hinges(seed: int) -> None:
    """Off singularity: tau of three hinges = E' tau of the ball, with w = E v and its rate."""
    model = on_joint("spherical", seed=seed)
    hinges = chained(model, [("revolute", tuple(e)) for e in np.eye(3)])
    c, ball = case(hinges, seed), Reference(model)
    c.q[1] = 0.4 * math.sin(seed)
    at = {"link": "l0", "frame": "local"}
    E = c.drevo.jacobian(c.q, **at)[3:, :3]
    R = c.drevo.pose(c.q, link="l0")[:3, :3]
    R = np.array(model.joints[0].rotation).T @ R
    q = np.r_[oracles.pin.Quaternion(R).coeffs(), c.q[3:]]
    v = np.r_[c.drevo.velocity(c.q, c.v, **at)[3:], c.v[3:]]
    a = np.r_[c.drevo.acceleration(c.q, c.v, c.a, **at, kind="spatial")[3:], c.a[3:]]
    tau = ball.inverse_dynamics(q, v, a)
    wanted = np.r_[E.T @ tau[:3], tau[3:]]
    close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), wanted, tol.DYNAMICS, c.terms)


@pytest.mark.parametrize("seed", range(6))
def test_a_free_joint_is_three_slides_and_a_ball(seed: int) -> None:
    """Its linear rates are those of the slides in body axes; a = R'(slides'') - w x v."""
    model = on_joint("free", seed=seed)
    steps = [("prismatic", tuple(e)) for e in np.eye(3)] + [("spherical", (1.0, 0.0, 0.0))]
    slides, c = Reference(chained(model, steps)), case(model, seed)
    R = oracles.of_quaternion(c.q[3:7])
    v, a = c.v.copy(), c.a.copy()
    v[:3] = R @ c.v[:3]
    a[:3] = R @ (c.a[:3] + np.cross(c.v[3:6], c.v[:3]))
    tau = slides.inverse_dynamics(c.q, v, a)
    tau[:3] = R.T @ tau[:3]
    close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), tau, tol.SAME, c.terms)


POSES = {
    "revolute": ((0.0, 0.0, -1.0), [math.pi / 2], [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0]]),
    "prismatic": ((0.0, -1.0, 0.0), [0.3], [[1, 0, 0, 0], [0, 1, 0, -0.3], [0, 0, 1, 0]]),
    "helical": ((0.0, 0.0, -1.0), [math.pi / 2], [[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, -0.05]]),
    "cylindrical": ((-1.0, 0.0, 0.0), [0.3, math.pi / 2], [[1, 0, 0, -0.3], [0, 0, 1, 0], [0, -1, 0, 0]]),
    "planar": ((0.0, 0.0, 1.0), [0.3, 0.4, math.pi / 2], [[0, -1, 0, 0.3], [1, 0, 0, 0.4], [0, 0, 1, 0]]),
    "universal": ((0.0, 0.0, 1.0), [math.pi / 2, math.pi / 2], [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]]),
    "spherical": ((1.0, 0.0, 0.0), [0.0, 0.0, 1.0, 0.0], [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0]]),
    "free": (
        (1.0, 0.0, 0.0),
        [1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0],
        [[1, 0, 0, 1], [0, -1, 0, 2], [0, 0, -1, 3]],
    ),
}


@pytest.mark.parametrize("kind", POSES)
def test_pose_of_one_joint(kind: str) -> None:
    """Coordinates of every kind move the link as the contract's table says; lead is per revolution."""
    axis, q, X = POSES[kind]
    second = (1.0, 0.0, 0.0) if kind == "universal" else None
    joint = Joint("j", kind, "world", "a", axis=axis, axis2=second, lead=0.2)
    model = Model("one", (Link("world"), Link("a", strategies.inertial(np.random.default_rng(0)))), (joint,))
    close("pose", Reference(model).pose(q, link="a"), [*X, [0, 0, 0, 1]], tol.SAME, 1.0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_opposite_axes_are_opposite_coordinates(kind: str, seed: int) -> None:
    """A hinge, slide or screw (same lead) about -a at q stands where the one about a does at -q."""
    model = on_joint(kind, seed=seed)
    first = model.joints[0]
    back = replace(first, axis=strategies.vec(-np.array(first.axis)))
    c, other = case(model, seed), Reference(replace(model, joints=(back, *model.joints[1:])))
    turn = np.r_[-1.0, np.ones(model.nv - 1)]
    q, v, a = c.q * turn, c.v * turn, c.a * turn
    got = other.inverse_dynamics(q, v, a) * turn
    close("tau", got, c.drevo.inverse_dynamics(c.q, c.v, c.a), tol.SAME, c.terms)
    close("pose", other.pose(q, link=c.link), c.drevo.pose(c.q, link=c.link), tol.SAME)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_two_joints_mimic_one_across_branches(kind: str) -> None:
    """Two mimics of one driver, below it and on another branch: M = G' M_full G, offsets included."""
    rng = np.random.default_rng(3)
    links = (Link("world"), *(Link(n, strategies.inertial(rng)) for n in "abcd"))
    joints = [
        strategies.joint(rng, f"j{n}", kind, p, n)
        for p, n in (("world", "a"), ("a", "b"), ("world", "c"), ("c", "d"))
    ]
    joints[1] = replace(joints[1], mimic=Mimic("ja", -1.5, 0.7))
    joints[3] = replace(joints[3], mimic=Mimic("ja", 0.5, -0.2))
    model = Model("mimics", links, tuple(joints))
    full = Reference(replace(model, joints=tuple(replace(j, mimic=None) for j in joints)))
    G = np.array([[1.0, 0.0], [-1.5, 0.0], [0.0, 1.0], [0.5, 0.0]])
    c = case(model)
    q = G @ c.q + [0.0, 0.7, 0.0, -0.2]
    with robot_shown(model):
        close("M", c.drevo.mass_matrix(c.q), G.T @ full.mass_matrix(q) @ G, tol.SAME)
        wanted = G.T @ full.inverse_dynamics(q, G @ c.v, G @ c.a)
        close("tau", c.drevo.inverse_dynamics(c.q, c.v, c.a), wanted, tol.SAME, c.terms)
        tau = c.drevo.inverse_dynamics(c.q, c.v, c.a)
        close("a", c.drevo.forward_dynamics(c.q, c.v, tau), c.a, tol.solving(2, 1e3))
        assert c.drevo.mass_matrix(c.q)[0, 1] != 0.0  # the mimic couples the branches


def test_articulated_bodies_refuse_mimic_joints() -> None:
    """A coordinate of several joints couples branches, and the refusal names both joints."""
    with pytest.raises(TraceError, match=r"shares the coordinate of joint .* \(mimic\)"):
        articulated_body.forward_dynamics(build_tree(MIMIC[0]), *([0.1] * 9,) * 3)


# -- coordinates: quaternions, limits ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_a_quaternion_off_the_sphere_is_refused(kind: str) -> None:
    """A quaternion is unit to 1e-6, or NumericsError names the row."""
    model = on_joint(kind)
    robot, rng = Robot(model), np.random.default_rng(0)
    q = random(model, rng, (5,))
    v = np.zeros((5, model.nv))
    q[3] *= 1.0 + 3e-7
    robot.bias(q, v)
    end = 4 if kind == "spherical" else 7
    q[3, end - 4 : end] *= 1.0 + 1e-5
    with pytest.raises(NumericsError, match="row 3"):
        robot.bias(q, v)


def test_limits_of_1e16_are_none() -> None:
    """Files write such limits where they mean none; random angles stay where sines are exact."""
    joint = Joint("j", "revolute", "world", "a", limit=Limit(-1e16, 1e16))
    model = Model("rotor", (Link("world"), Link("a", strategies.inertial(np.random.default_rng(0)))), (joint,))
    assert np.max(np.abs(random(model, np.random.default_rng(0), (100,)))) <= math.pi
