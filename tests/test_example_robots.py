"""Every URDF of the package example-robot-data, fixed and floating, against Pinocchio's reading of it."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import oracles
import pytest
import tolerances as tol
from reference import Reference, close, largest

import drevo
from drevo.errors import DrevoWarning, ModelError
from drevo.mechanics.configuration import random
from drevo.model.description import Model
from drevo.robot.face import Robot

PACKAGE = distribution("example-robot-data")
ROBOTS = {
    str(f).split("/robots/", 1)[1]: Path(str(PACKAGE.locate_file(f)))
    for f in PACKAGE.files or ()
    if str(f).endswith(".urdf")
}
# file -> why it cannot be computed, and what the message must name
REFUSED = {
    "alex_description/urdf/alex_psyonic_hands.urdf": ("mimic", "'ring_q1', which does not exist"),
    "romeo_description/urdf/romeo.urdf": (
        "massless",
        "joint 'RHand' (line 1451) of type revolute moves only links",
    ),
    "romeo_description/urdf/romeo_laas_small.urdf": (
        "moments",
        "'RHipPitch_link' (line 430) has a negative princip",
    ),
    "tiago_description/robots/tiago.urdf": ("moments", "link 'base_antenna_right_link' (line"),
    "tiago_description/robots/tiago_dual.urdf": ("moments", "link 'base_antenna_right_link' (line"),
    "tiago_description/robots/tiago_no_hand.urdf": ("moments", "link 'base_antenna_right_link' (line"),
    "ur_description/urdf/ur3.urdf": ("empty", "the robot has no link"),
}
LOADED = sorted(set(ROBOTS) - set(REFUSED))
BASES = ("fixed", "floating")
BY_NIGHT = ("alex_description", "centauro_description", "human_description", "tiago_pro_description")  # large ones


@cache
def load(name: str, base: str = "fixed") -> Robot:
    """The robot, read once; its warning is another test's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrevoWarning)
        return drevo.load(ROBOTS[name], base=base)


def states(model: Model, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """q inside the limits, v and a of order one."""
    rng = np.random.default_rng(11)
    return [(random(model, rng), rng.normal(size=model.nv), rng.normal(size=model.nv)) for _ in range(count)]


def test_the_package_is_the_known_one() -> None:
    """The package holds 69 URDF files, and those known to be refused are among them."""
    assert len(ROBOTS) == 69
    assert set(REFUSED) <= set(ROBOTS)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_with_the_cause(name: str) -> None:
    """The message names the element, and the file does hold the fault that it names."""
    cause, words = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        drevo.load(ROBOTS[name])
    assert words in str(caught.value)
    root = ElementTree.parse(ROBOTS[name]).getroot()
    joints = {j.get("name"): j for j in root.findall("joint")}
    if cause == "empty":
        assert not root.findall("link")
    elif cause == "mimic":
        assert "ring_q1" not in joints
    else:
        link = words.split("'")[1] if cause == "moments" else joints["RHand"].find("child").get("link")
        inertial = next(l for l in root.findall("link") if l.get("name") == link).find("inertial")
        if cause == "massless":
            assert float(inertial.find("mass").get("value")) == 0.0
        else:
            assert np.linalg.eigvalsh(_tensor(inertial.find("inertia")))[0] < 0.0


@pytest.mark.parametrize("name", LOADED)
def test_doubtful_inertias_are_named(name: str) -> None:
    """Every link whose moments break the triangle inequality by more than printed digits is in the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DrevoWarning)
        drevo.load(ROBOTS[name])
    said = "".join(str(w.message) for w in caught)
    assert len(caught) <= 1
    for link in ElementTree.parse(ROBOTS[name]).getroot().findall("link"):
        inertia = link.find("inertial/inertia")
        if inertia is not None:
            low, middle, high = np.linalg.eigvalsh(_tensor(inertia))
            broken = low + middle < high * (1.0 - 1e-8) - 1e-15  # iCub has point masses with moments of 1e-18
            assert not broken or f"link {link.get('name')!r}" in said


def _tensor(inertia: ElementTree.Element) -> list[list[float]]:
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (float(inertia.get(k, "0")) for k in keys)
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def often(name: str, base: str) -> bool:
    """Every package's first file on one of the two bases is compiled by day, of large robots iCub, PR2 and Talos;
    everything by night."""
    packages = sorted({n.split("/")[0] for n in LOADED})
    package = name.split("/")[0]
    first = name == next(n for n in LOADED if n.split("/")[0] == package)
    return first and base == BASES[packages.index(package) % 2] and package not in BY_NIGHT


COMPILED_CASES = [
    pytest.param(n, b, marks=[] if often(n, b) else pytest.mark.nightly) for n in LOADED for b in BASES
]


@pytest.mark.parametrize(("name", "base"), COMPILED_CASES)
def test_dynamics(name: str, base: str) -> None:
    """Compiled inverse dynamics, mass matrix and forward dynamics are Pinocchio's."""
    robot = load(name, base)
    model = robot.model
    oracle = oracles.pinocchio_of_urdf(ROBOTS[name], model, base)
    assert (robot.nv, len(robot.link_names)) == (oracle.nv, _links(name) + (base == "floating"))
    trials = states(model, 3)
    q, v, a = (np.stack(x) for x in zip(*trials))
    tau, M = robot.inverse_dynamics(q, v, a), robot.mass_matrix(q)
    back = robot.forward_dynamics(q, v, tau)
    for k, state in enumerate(trials):
        terms, wanted = oracle.terms(*state), oracle.mass_matrix(state[0])
        close("inverse dynamics", tau[k], oracle.inverse_dynamics(*state), tol.DYNAMICS, terms)
        close("mass matrix", M[k], wanted, tol.DYNAMICS)
        if model.nv:
            size, t = _accelerations(wanted, state[2], terms)
            close("forward dynamics of inverse", back[k], state[2], t, size)
            close("forward dynamics", back[k], oracle.forward_dynamics(*state[:2], tau[k]), t, size)


def _links(name: str) -> int:
    return len(ElementTree.parse(ROBOTS[name]).getroot().findall("link"))


def _accelerations(M: np.ndarray, a: np.ndarray, terms: float) -> tuple[float, float]:
    """Size and tolerance of what is solved with M."""
    cond = float(np.linalg.cond(M))
    assert cond < tol.HOPELESS
    return max(largest(a), terms / float(np.linalg.norm(M, 2))), tol.solving(len(M), cond)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", LOADED)
def test_kinematics_and_derivatives(name: str, base: str) -> None:
    """The same on numbers; poses of all links, Jacobians, derivatives of inverse and forward dynamics."""
    model = load(name, base).model
    plain, oracle = Reference(model), oracles.pinocchio_of_urdf(ROBOTS[name], model, base)
    ((q, v, a),) = states(model, 1)
    poses = oracle.poses(q)
    for link in poses.keys() - {"universe"}:
        close(f"pose of {link}", plain.pose(q, link=link), poses[link], tol.KINEMATICS)
    for link in [l.name for l in model.links][1 :: max(1, len(model.links) // 6)]:
        for frame in oracles.FRAMES:
            J = oracle.jacobian(q, link, frame)
            got = plain.jacobian(q, link=link, frame=frame)
            close(f"jacobian of {link}, {frame}", got, J, tol.KINEMATICS, max(1.0, largest(J)))
    if not model.nv:
        return
    terms, M = oracle.terms(q, v, a), oracle.mass_matrix(q)
    tau = oracle.inverse_dynamics(q, v, a)
    size, t = _accelerations(M, a, terms)
    close("inverse dynamics", plain.inverse_dynamics(q, v, a), tau, tol.DYNAMICS, terms)
    close("mass matrix", plain.mass_matrix(q), M, tol.DYNAMICS)
    close("forward dynamics", plain.forward_dynamics(q, v, tau), oracle.forward_dynamics(q, v, tau), t, size)
    for x, y in zip(plain.inverse_dynamics_derivatives(q, v, a), oracle.inverse_dynamics_derivatives(q, v, a)):
        close("derivatives of inverse dynamics", x, y, tol.DERIVATIVES, max(terms, largest(y)))
    t = tol.inverting(model.nv, float(np.linalg.cond(M)))
    wanted = oracle.forward_dynamics_derivatives(q, v, tau)
    for x, y in zip(plain.forward_dynamics_derivatives(q, v, tau), wanted):
        close(
            "derivatives of forward dynamics",
            x,
            y,
            t,
            largest(y) if y is wanted[2] else max(size, largest(y)),
        )


COMPILED = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "bolt_description/robots/bolt.urdf",
)


@pytest.mark.parametrize("name", [n for n in COMPILED if n in ROBOTS])
def test_compiled_kinematics_and_derivatives(name: str) -> None:
    """The same through machine code on some arms and legs."""
    robot = load(name)
    oracle = oracles.pinocchio_of_urdf(ROBOTS[name], robot.model)
    for q, v, a in states(robot.model, 3):
        terms, M = oracle.terms(q, v, a), oracle.mass_matrix(q)
        for link in robot.link_names[-1:]:
            J = oracle.jacobian(q, link)
            close("pose", robot.pose(q, link), oracle.pose(q, link), tol.KINEMATICS)
            close("jacobian", robot.jacobian(q, link), J, tol.KINEMATICS, max(1.0, largest(J)))
        for x, y in zip(robot.inverse_dynamics_derivatives(q, v, a), oracle.inverse_dynamics_derivatives(q, v, a)):
            close("derivatives of inverse dynamics", x, y, tol.DERIVATIVES, max(terms, largest(y)))
        tau, (size, _) = oracle.inverse_dynamics(q, v, a), _accelerations(M, a, terms)
        t = tol.inverting(robot.nv, float(np.linalg.cond(M)))
        for x, y in zip(
            robot.forward_dynamics_derivatives(q, v, tau), oracle.forward_dynamics_derivatives(q, v, tau)
        ):
            close("derivatives of forward dynamics", x, y, t, max(size, largest(y)))


# Pinocchio refuses Talos: a joint of its grippers mimics one that Pinocchio adds later
LATER = ("talos_data/robots/talos_full_v2.urdf", "talos_data/robots/talos_full_v2_box.urdf")
MIMICKING = [n for n in LOADED if n not in LATER and "<mimic" in ROBOTS[n].read_text(errors="ignore")]


@pytest.mark.parametrize("name", MIMICKING)
def test_mimic_as_pinocchio_does_it(name: str) -> None:
    """Mimic joints by Pinocchio's own mimic=True give the same inverse dynamics and mass matrix."""
    model = load(name).model
    plain = Reference(model)
    theirs, ours = (oracles.pinocchio_of_urdf(ROBOTS[name], model, mimic=m) for m in (True, False))
    for q, v, a in states(model, 3):
        terms = ours.terms(q, v, a)
        close(
            "inverse dynamics",
            plain.inverse_dynamics(q, v, a),
            theirs.inverse_dynamics(q, v, a),
            tol.DYNAMICS,
            terms,
        )
        close("mass matrix", plain.mass_matrix(q), theirs.mass_matrix(q), tol.DYNAMICS)


def test_trunk() -> None:
    """On a trunk of six plain joints: the same as Pinocchio on the same six joints."""
    robot = load("panda_description/urdf/panda.urdf", "trunk")
    oracle = oracles.pinocchio_of(robot.model)
    for q, v, a in states(robot.model, 3):
        wanted = oracle.inverse_dynamics(q, v, a)
        close("inverse dynamics", robot.inverse_dynamics(q, v, a), wanted, tol.DYNAMICS, oracle.terms(q, v, a))
        close("mass matrix", robot.mass_matrix(q), oracle.mass_matrix(q), tol.DYNAMICS)
