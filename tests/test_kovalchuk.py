"""Kovalchuk, Kulakov, Semenov: every number of the cases, by the paper's recursions and Drevo's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from kovalchuk_base import efforts_base, motion_base, wrenches_base
from kovalchuk_cases import (
    NAMES,
    TREES,
    Array,
    after,
    contact_point,
    f_ext,
    loads,
    mechanism,
    pose_of,
    robot,
    rx,
    worst,
)
from reference import Reference

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.trace import trace
from drevo.constraint.dynamics import constrained_dynamics
from drevo.constraint.inverse import constrained_inverse_dynamics
from drevo.mechanics.algorithms.inertia_matrix import forward_dynamics, mass_matrix
from drevo.mechanics.algorithms.inverse_dynamics import inverse_dynamics, joint_wrenches
from drevo.mechanics.algorithms.kinematics import moving_links
from drevo.mechanics.formalisms import kovalchuk as k
from drevo.mechanics.tree import build_tree

POSITION, DYNAMICS, SOLVED, ENERGY = 1e-13, 1e-11, 1e-9, 1e-12
cases = pytest.mark.parametrize("case", TREES, ids=NAMES)
FLOATING = [c for c in TREES if "quaternion_form" in c["output"]]
CONTACTS = [c for c in TREES if "constraints" in c["input"]]


def state(case: dict[str, Any]) -> list[list[float]]:
    return [case["input"][x] for x in ("q", "qd", "qdd")]


@cache
def made(name: str) -> drevo.Robot:
    return robot(TREES[NAMES.index(name)])


COMPILED = [NAMES[0], NAMES[-1], "biped_right_foot", "floating_tree8"]


def computed(case: dict[str, Any]) -> list[Any]:
    """The robot on numbers, and in machine code where that is tried."""
    r = made(case["name"])
    return [Reference(r.model), r] if case["name"] in COMPILED else [Reference(r.model)]


def pick(out: list[Any], name: str) -> list[Any]:
    return [l[name] for l in out]


@cases
def test_poses(case: dict[str, Any]) -> None:
    """A, T, joint axes, frames, arms: the paper's and Drevo's."""
    out = case["output"]["links"]
    s = motion_base(mechanism(case), *state(case))
    A = [np.block([[np.array(x.A_R), np.array(x.A_p)[:, None]], [np.array([[0, 0, 0, 1.0]])]]) for x in s]
    T = [np.block([[np.array(x.R), np.array(x.p)[:, None]], [np.array([[0, 0, 0, 1.0]])]]) for x in s]
    assert worst(A, pick(out, "A")) <= POSITION and worst(T, pick(out, "T")) <= POSITION
    assert worst([x.z for x in s], pick(out, "z_joint")) <= POSITION
    assert worst([np.array(x.R).T @ x.l_main for x in s], pick(out, "l_c_main")) <= POSITION
    for x, o in zip(s, out):
        assert worst([np.array(x.R).T @ l for l in x.l], o["l_c"]) <= POSITION
        frames = [np.array(x.p) + l - np.array(x.l_main) for l in np.array(x.l)]
        assert worst(frames, o["p_frames"]) <= POSITION
    r, q = made(case["name"]), np.array(case["input"]["q"])
    for l, o in zip(case["input"]["links"], out):
        R, p = after(l)
        here = pose_of(r, q, f"link{l['link']}")
        assert worst(here[:3, :3] @ R, np.array(o["T"])[:3, :3]) <= POSITION
        assert worst(here[:3, :3] @ p + here[:3, 3], o["p"]) <= POSITION
        assert worst(here[:3, :3] @ (p + R @ l["c"]) + here[:3, 3], o["p_com"]) <= POSITION


@cases
def test_motion(case: dict[str, Any]) -> None:
    """omega, epsilon, v_ij, a_ij, a_c in both axes."""
    mech, out = mechanism(case), case["output"]["links"]
    base, link = motion_base(mech, *state(case)), k.link_motion(mech, *state(case))
    for name, field in (("omega", "w"), ("epsilon", "e"), ("v", "v_main"), ("a", "a_main"), ("a_com", "a_c")):
        assert worst([getattr(x, field) for x in base], pick(out, name)) <= DYNAMICS
        assert worst([getattr(x, field) for x in link], pick(out, f"{name}_c")) <= DYNAMICS
    assert worst([x.v_c for x in base], pick(out, "v_com")) <= DYNAMICS
    for x, y, o in zip(base, link, out):
        assert worst(x.v, o["v_frames"]) <= DYNAMICS and worst(x.a, o["a_frames"]) <= DYNAMICS
        assert worst([np.array(y.R) @ a for a in y.a], o["a_frames"]) <= DYNAMICS


@cases
def test_forces_and_moments(case: dict[str, Any]) -> None:
    """f and M of a link on its parent, in base axes and in those of the auxiliary frame."""
    mech, out, load = mechanism(case), case["output"]["links"], loads(case)
    base = wrenches_base(mech, motion_base(mech, *state(case)), load)
    aux = k.link_wrenches(mech, k.link_motion(mech, *state(case)), load)
    for got, suffix in ((base, "base"), (aux, "aux")):
        assert worst([w.f for w in got], pick(out, f"f_{suffix}")) <= DYNAMICS
        assert worst([w.M for w in got], pick(out, f"M_{suffix}")) <= DYNAMICS


@cases
def test_joint_wrenches(case: dict[str, Any]) -> None:
    """Parent on link about the link's moved frame is minus the paper's, shifted along the joint."""
    r, q = made(case["name"]), np.array(case["input"]["q"])
    tree, external = build_tree(r.model), f_ext(case, np.array(case["input"]["q"]), r)
    world = np.array(joint_wrenches(tree, *state(case), "local_world_aligned", external))
    local = np.array(joint_wrenches(tree, *state(case), "local", external))
    assert moving_links(tree) == list(r.link_names[1:])
    for l, o, got, own in zip(case["input"]["links"], case["output"]["links"], world, local):
        here = pose_of(r, q, f"link{l['link']}")
        paper = case["output"]["links"][l["parent"] - 1]["p_frames"] if l["parent"] else None
        at = np.array(paper[case["output"]["index"]["ns"][l["link"] - 1] - 1] if paper else l["M"]["xyz"])
        f, M = -np.array(o["f_base"]), -np.array(o["M_base"])
        expected = np.concatenate([f, M - np.cross(here[:3, 3] - at, f)])
        assert worst(got, expected) <= DYNAMICS
        assert worst(own, np.concatenate([here[:3, :3].T @ got[:3], here[:3, :3].T @ got[3:]])) <= DYNAMICS


@cases
def test_inertia_matrix(case: dict[str, Any]) -> None:
    """M by unit accelerations and compiled, symmetric, with exact zeros between branches."""
    expected, q = np.array(case["output"]["M"]), case["input"]["q"]
    D = np.array(case["output"]["index"]["D"])
    r = made(case["name"])
    tree = build_tree(r.model)
    compiled = [r.mass_matrix(q)] if case["name"] in COMPILED else []
    for M in (k.unit_accelerations(mechanism(case), q), k.mass_matrix(tree, q), mass_matrix(tree, q), *compiled):
        assert worst(M, expected) <= DYNAMICS
        assert np.all(np.array(M)[(D + D.T) == 0] == 0.0)


@cases
def test_efforts(case: dict[str, Any]) -> None:
    """tau, H and G: the recursions in both axes on DH frames and on the tree, and compiled."""
    mech, (q, qd, qdd), load, out = mechanism(case), state(case), loads(case), case["output"]
    still = [0.0] * len(q)
    for effort in (efforts_base, k.link_efforts):
        assert worst(effort(mech, q, qd, qdd, load), out["inverse_dynamics"]["tau"]) <= DYNAMICS
        assert worst(effort(mech, q, qd, still, load), out["H"]) <= DYNAMICS
        assert worst(effort(mech, q, still, still), out["G"]) <= DYNAMICS
    r = made(case["name"])
    tree, external = build_tree(r.model), f_ext(case, np.array(q), r)
    assert worst(k.inverse_dynamics(tree, q, qd, qdd, external), out["inverse_dynamics"]["tau"]) <= DYNAMICS
    for r in computed(case):
        assert worst(r.inverse_dynamics(q, qd, qdd, f_ext=external), out["inverse_dynamics"]["tau"]) <= DYNAMICS
    plain = [inverse_dynamics(tree, q, qd, still, external), inverse_dynamics(tree, q, still, still)]
    assert worst(plain[0], out["H"]) <= DYNAMICS and worst(plain[1], out["G"]) <= DYNAMICS


@cases
def test_forward_dynamics_and_energies(case: dict[str, Any]) -> None:
    """Accelerations for given efforts; kinetic and potential energy."""
    (q, qd, _), out, r = state(case), case["output"], made(case["name"])
    tau = out["forward_dynamics"]["tau"]
    external = f_ext(case, np.array(q), r)
    for r in computed(case):
        assert worst(r.forward_dynamics(q, qd, tau, f_ext=external), out["forward_dynamics"]["qdd"]) <= SOLVED
        assert worst(r.kinetic_energy(q, qd), out["T"]) <= ENERGY
        assert worst(r.potential_energy(q), out["V"]) <= ENERGY


@pytest.mark.parametrize("case", CONTACTS, ids=lambda c: str(c["name"]))
def test_contacts(case: dict[str, Any]) -> None:
    """J, P, R and accelerations with point and foot contacts; inverse dynamics gives the efforts back."""
    (q, qd, _), r = state(case), made(case["name"])
    expected = case["output"]["constrained_forward_dynamics"]
    got = constrained_dynamics(
        r, q, qd, expected["tau"], contacts=contacts_of(case, lambda c: contact_point(case, c)),
        f_ext=f_ext(case, np.array(q), r),
    )  # fmt: skip
    check_constrained(got, expected)
    back = constrained_inverse_dynamics(
        r,
        q,
        qd,
        got.a,
        contacts=contacts_of(case, lambda c: contact_point(case, c)),
        f_ext=f_ext(case, np.array(q), r),
    )
    plain = Reference(r.model)
    residual = plain.mass_matrix(q) @ got.a + plain.bias(q, qd, f_ext=f_ext(case, np.array(q), r)) - back.tau
    assert worst(residual, got.jacobian.T @ back.reactions) <= SOLVED
    assert np.all(back.tau[:6] == 0.0) or not case["input"]["floating_trunk"] or r.joint_names[0] != "trunk_1"


def contacts_of(case: dict[str, Any], point: Any) -> list[dict[str, Any]]:
    given = case["input"]["constraints"]
    return [{"link": f"link{c['link']}", "point": point(c), "rows": c["rows"]} for c in given]


def check_constrained(got: Any, expected: dict[str, Any]) -> None:
    assert worst(got.jacobian, expected["J"]) <= DYNAMICS
    assert worst(got.gamma, expected["P"]) <= DYNAMICS
    assert worst(got.reactions, expected["R"]) <= SOLVED
    assert worst(got.a, expected["qdd"]) <= SOLVED
    assert got.rank == len(expected["P"])


@pytest.mark.parametrize("case", FLOATING, ids=lambda c: str(c["name"]))
def test_quaternion_base(case: dict[str, Any]) -> None:
    """The same motion with link 6 on a free joint: M_q, H_q, tau_q, accelerations, reactions."""
    form, r = case["output"]["quaternion_form"], robot(case, first=6)
    x, y, z, w = form["quaternion_wxyz"][1:] + form["quaternion_wxyz"][:1]
    q = np.concatenate([form["position"], [x, y, z, w], case["input"]["q"][6:]])
    R = pose_of(r, q, "link6")[:3, :3]
    B = np.eye(r.nv)  # nu = B v: base axes from body axes
    B[:3, :3] = B[3:6, 3:6] = R
    nu, dot = np.array(form["nu"]), np.array(form["nu_dot"])
    v = B.T @ nu
    external = quaternion_loads(case, q, r)
    tree, loaded = build_tree(r.model), {"external": external}
    M, x, speed = np.array(mass_matrix(tree, q.tolist())), q.tolist(), v.tolist()
    assert worst(B @ M @ B.T, form["M_q"]) <= DYNAMICS
    tau = inverse_dynamics(tree, x, speed, to_body(B, nu, dot).tolist(), **loaded)
    assert worst(B @ np.array(tau), form["tau_q"]) <= DYNAMICS
    # nu' = 0 is no zero rate of body velocities, which still turn
    H = inverse_dynamics(tree, x, speed, to_body(B, nu, np.zeros(r.nv)).tolist(), **loaded)
    assert worst(B @ np.array(H), form["H_q"]) <= DYNAMICS
    forward = form["forward_dynamics"]
    a = forward_dynamics(tree, x, speed, (B.T @ forward["tau_q"]).tolist(), **loaded)
    assert worst(from_body(B, nu, np.array(a)), forward["nu_dot"]) <= SOLVED
    if "constrained_forward_dynamics" in form:
        expected = form["constrained_forward_dynamics"]
        tau = case["output"]["constrained_forward_dynamics"]["tau"]  # the trunk's six are zero
        got = constrained_dynamics(
            r, q, v, tau, contacts=contacts_of(case, lambda c: contact_point(case, c)), f_ext=external
        )
        assert worst(got.jacobian @ B.T, expected["J_q"]) <= DYNAMICS
        assert worst(from_body(B, nu, got.a), expected["nu_dot"]) <= SOLVED
        assert worst(got.reactions, expected["R"]) <= SOLVED


def to_body(B: Array, nu: Array, dot: Array) -> Array:
    """Rates of body velocities: R^T (classical acceleration - omega x v) for the base."""
    a = dot.copy()
    a[:3] -= np.cross(nu[3:6], nu[:3])
    return np.asarray(B.T @ a)


def from_body(B: Array, nu: Array, a: Array) -> Array:
    dot = B @ a
    dot[:3] += np.cross(nu[3:6], nu[:3])
    return np.asarray(dot)


def quaternion_loads(case: dict[str, Any], q: Array, r: drevo.Robot) -> dict[str, Array]:
    out = {}
    for e in case["input"].get("external", []):
        l = case["input"]["links"][e["link"] - 1]
        R, p = after(l) if e["link"] != 6 else (np.eye(3), np.zeros(3))
        arm = pose_of(r, q, f"link{e['link']}")[:3, :3] @ (p + R @ np.array(l["c"]))
        out[f"link{e['link']}"] = np.concatenate([e["F"], np.array(e["M"]) + np.cross(arm, e["F"])])
    return out


def test_traced() -> None:
    """The same source gives the program: the paper's recursions written out."""
    case = TREES[NAMES.index("fixed_tree6")]
    r, (q, qd, qdd) = made("fixed_tree6"), state(case)
    state_of = {"q": np.array(q), "v": np.array(qd), "a": np.array(qdd)}
    for name, compute in (("inverse_dynamics", k.inverse_dynamics), ("mass_matrix", k.mass_matrix)):
        program = trace(r.model, name, compute=compute)
        (got,) = evaluate(program, state_of).values()
        assert (
            worst(got, getattr(r, name)(*[state_of[s] for s in ("q", "v", "a")[: len(program.inputs)]]))
            <= DYNAMICS
        )
    zeros = np.array(case["output"]["index"]["D"])
    structural = [
        program.graph.expr(e) == 0.0 for e in program.outputs[0].edges if program.graph.level[e >> 1] == 0
    ]
    assert sum(structural) >= np.sum((zeros + zeros.T) == 0)


def test_trunk_wrench_vanishes() -> None:
    """With free accelerations the massless trunk carries nothing."""
    case = TREES[NAMES.index("floating_tree8")]
    r, (q, qd, _) = made("floating_tree8"), state(case)
    tau = np.concatenate([np.zeros(6), np.ones(r.nv - 6)])
    a = r.forward_dynamics(q, qd, tau)
    w = np.array(joint_wrenches(build_tree(r.model), q, qd, a.tolist()))
    assert np.max(np.abs(w[:6])) <= 1e-9


def test_only_joints_of_one_freedom() -> None:
    """A spherical joint is named."""
    b = drevo.Builder("ball")
    b.body("a", joint="spherical", mass=1.0, inertia=np.eye(3))
    with pytest.raises(drevo.TraceError, match="'a_joint' is spherical"):
        k.mass_matrix(build_tree(b.robot().model), [0, 0, 0, 1.0])


def test_several_steps_and_mimic() -> None:
    """Joints of several steps and mimic joints agree with Drevo's own recursion."""
    rng = np.random.default_rng(3)
    b = drevo.Builder("mixed")
    for i, (kind, extra) in enumerate(
        [("planar", {}), ("universal", {"axis2": (0, 1, 0)}), ("cylindrical", {}), ("revolute", {})]
    ):
        b.body(
            f"l{i}", f"l{i - 1}" if i else "world", kind, np.eye(3)[0 if i == 1 else 2], rng.normal(size=3),
            rx(i), mass=1.0 + i, com=rng.normal(size=3), inertia=np.diag([1.0, 1.2, 1.4]), **extra,
        )  # fmt: skip
    b.body(
        "m",
        "l3",
        "revolute",
        (0, 1, 0),
        (0.1, 0, 0),
        mass=1.0,
        com=(0.2, 0.1, 0),
        mimic=("l3_joint", -0.5, 0.3),
    )
    r = b.robot()
    tree, q, v, a = build_tree(r.model), *rng.normal(size=(3, r.nv)).tolist()
    assert worst(k.mass_matrix(tree, q), r.mass_matrix(q)) <= DYNAMICS
    assert worst(k.inverse_dynamics(tree, q, v, a), r.inverse_dynamics(q, v, a)) <= DYNAMICS
    assert moving_links(tree) == ["l0", "l1", "l2", "l3", "m"]
    assert np.array(joint_wrenches(tree, q, v, a)).shape == (5, 6)
