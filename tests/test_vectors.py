"""Published mechanisms, computed elsewhere in 40 to 60 digits, rebuilt with Builder.

data/telegin.json: mass matrices of hinged trees; data/zaremba.json: every quantity of trees of hinges and slides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tolerances as tol
from reference import Reference, close, largest, slope, stepped

from drevo.mechanics.algorithms.inverse_dynamics import body_wrenches
from drevo.robot.builder import Builder
from drevo.robot.face import Robot

DATA = Path(__file__).parent / "data"
TELEGIN = json.loads((DATA / "telegin.json").read_text())
ZAREMBA = json.loads((DATA / "zaremba.json").read_text())["mechanisms"]
CASES = [case for cases in TELEGIN["examples"].values() for case in cases] + TELEGIN["trees"]

Case = dict[str, Any]


def telegin_robot(case: Case) -> Robot:
    """Hinges on axes fixed in the bodies; all frames are parallel at q = 0."""
    b = Builder(case["id"])
    for k, body in enumerate(case["bodies"], 1):
        parent = f"link{body['parent']}" if body["parent"] else "world"
        b.body(
            f"link{k}", parent, axis=body["axis"], origin=body["offset"], mass=body["mass"], com=body["com"],
            inertia=body["inertia_pole"], inertia_at="joint",
        )  # fmt: skip
    return b.robot()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_telegin(case: Case) -> None:
    """The mass matrix is the published one; exactly symmetric, exactly zero across branches."""
    M, H = telegin_robot(case).mass_matrix(np.array(case["q"])), np.array(case["H"])
    close("mass matrix", M, H, tol.VECTORS)
    assert np.array_equal(M, M.T)
    assert np.all(M[_unrelated([body["parent"] for body in case["bodies"]])] == 0.0)


def _unrelated(parents: list[int]) -> np.ndarray:
    """Pairs of bodies on different branches; parents count from 1."""
    above: list[set[int]] = []
    for i, p in enumerate(parents):
        above.append({i} | (above[p - 1] if p else set()))
    return np.array([[i not in b and j not in a for j, b in enumerate(above)] for i, a in enumerate(above)])


def about(k: int, angle: float) -> np.ndarray:
    """Rotation about a coordinate axis."""
    R, (i, j) = np.eye(3), ((k + 1) % 3, (k + 2) % 3)
    R[i, i] = R[j, j] = np.cos(angle)
    R[j, i] = np.sin(angle)
    R[i, j] = -R[j, i]
    return R


def zaremba_robot(case: Case) -> Robot:
    """Cardan angles and an offset place each body; the point of the section is a welded link of its own."""
    b = Builder(case["name"], gravity=case["gravity"])
    for i, body in enumerate(case["bodies"]):
        R = np.linalg.multi_dot([about(k, angle) for k, angle in enumerate(body["theta"])])
        b.body(
            f"body{i}", f"body{body['parent']}" if body["parent"] >= 0 else "world",
            {"R": "revolute", "P": "prismatic"}[body["type"]], np.eye(3)[body["axis"]], body["offset"], R,
            mass=body["mass"], com=body["com"], inertia=body["inertia_com"],
        )  # fmt: skip
    section = case["section"]
    b.body("section", f"body{section['body']}", "fixed", origin=section["point"])
    return b.robot()


@pytest.fixture(scope="module", params=ZAREMBA, ids=lambda c: c["name"])
def mechanism(request: pytest.FixtureRequest) -> tuple[Case, Robot]:
    """A case and its robot, compiled once."""
    return request.param, zaremba_robot(request.param)


def state(case: Case) -> tuple[np.ndarray, ...]:
    """q, qd, qdd, tau."""
    return tuple(np.array(case[k]) for k in ("q", "qd", "qdd", "tau"))


def test_zaremba_dynamics(mechanism: tuple[Case, Robot]) -> None:
    """M, bias, gravity, forward and inverse dynamics, energies, on numbers and compiled: the published ones."""
    case, robot = mechanism
    q, v, a, tau = state(case)
    size = largest(case["tau_inverse"], case["bias"])
    solved = max(tol.VECTORS, tol.EPS * float(np.linalg.cond(case["M"])))
    V = case["potential_energy"]
    for r in (Reference(robot.model), *([robot] if robot.nv <= 4 else [])):
        close("mass matrix", r.mass_matrix(q), case["M"], tol.VECTORS)
        close("bias", r.bias(q, v), case["bias"], tol.VECTORS, size)
        close("gravity", r.gravity(q), case["gravity_torque"], tol.VECTORS, size)
        close("inverse dynamics", r.inverse_dynamics(q, v, a), case["tau_inverse"], tol.VECTORS, size)
        close("forward dynamics", r.forward_dynamics(q, v, tau), case["qdd_forward"], solved)
        close("kinetic energy", r.kinetic_energy(q, v), case["kinetic_energy"], tol.VECTORS)
        close("potential energy", r.potential_energy(q), V, tol.VECTORS, max(1.0, abs(V)))


def test_zaremba_derivatives(mechanism: tuple[Case, Robot]) -> None:
    """Derivatives of inverse dynamics by q and qd, and of M by q."""
    case, robot = mechanism
    q, v, a, _ = state(case)
    dq, dv, M = robot.inverse_dynamics_derivatives(q, v, a)
    close("dtau_dq", dq, case["dID_dq"], tol.VECTORS)
    close("dtau_dv", dv, case["dID_dqd"], tol.VECTORS, largest(case["dID_dqd"], case["dID_dq"]))
    close("M", M, case["M"], tol.VECTORS)
    plain = Reference(robot.model)
    steps = [slope(plain.mass_matrix(stepped(robot.model, q, e))) for e in np.eye(len(q))]
    close("dM/dq", np.stack(steps, -1), case["dM_dq"], tol.VECTORS)


def test_zaremba_section(mechanism: tuple[Case, Robot]) -> None:
    """Pose, velocity and classical acceleration of a point of a body, in base axes."""
    case, robot = mechanism
    (q, v, a, _), s = state(case), case["section"]
    X = robot.pose(q, "section")
    close("position", X[:3, 3], s["p"], tol.VECTORS, max(1.0, largest(s["p"])))
    close("rotation", X[:3, :3], s["R"], tol.VECTORS)
    close("velocity", robot.velocity(q, v, "section"), s["v"] + s["omega"], tol.VECTORS)
    close("acceleration", robot.acceleration(q, v, a, "section"), s["a"] + s["epsilon"], tol.VECTORS)


def test_zaremba_joint_wrenches(mechanism: tuple[Case, Robot]) -> None:
    """What each parent exerts on its body, about the body's origin in body axes."""
    case, robot = mechanism
    q, v, a, _ = state(case)
    tree = Reference(robot.model).tree
    found, _ = body_wrenches(tree, q.tolist(), v.tolist(), a.tolist())
    by_link = {b.link: [*f.f, *f.n] for b, f in zip(tree.bodies, found)}
    got = [by_link[f"body{i}"] for i in range(len(q))]
    close("wrenches", got, case["joint_wrench"], tol.VECTORS)
