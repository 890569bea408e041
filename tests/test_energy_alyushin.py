"""Alyushin: energies of a rigid body, exact and as printed; the screw robot; power."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import strategies
from kovalchuk_cases import DATA, Array, rx, ry, rz, worst
from page_reader import READERS
from rebuilt import rebuilt

import drevo
from drevo.mechanics.algorithms.energy import kinetic_energy
from drevo.mechanics.algorithms.inverse_dynamics import joint_wrenches
from drevo.mechanics.formalisms import alyushin as al
from drevo.mechanics.formalisms.alyushin import rigid_body_energy
from drevo.mechanics.tree import build_tree
from drevo.papers.together import slide_and_screw
from drevo.robot.face import Robot

BODIES: list[dict[str, Any]] = DATA["rigid_bodies"]
SCREW: dict[str, Any] = DATA["screw_robot"]
P = SCREW["parameters"]
ENERGY = 1e-12
BOX = np.diag([10 / 12 * (0.2**2 + 0.1**2), 10 / 12 * (0.4**2 + 0.1**2), 10 / 12 * (0.4**2 + 0.2**2)])


def turn(angles: Any) -> Array:
    """R = Rz Ry Rx."""
    return np.asarray(rz(angles[2]) @ ry(angles[1]) @ rx(angles[0]))


def rates_to_omega(angles: Any, rates: Any) -> Array:
    """omega = z' e_z + y' Rz e_y + x' Rz Ry e_x."""
    Rz, Ry = rz(angles[2]), ry(angles[1])
    return np.asarray(np.array([0, 0, rates[2]]) + Rz[:, 1] * rates[1] + (Rz @ Ry)[:, 0] * rates[0])


@pytest.mark.parametrize("case", BODIES, ids=lambda c: str(c["name"]))
def test_exact_energy(case: dict[str, Any]) -> None:
    """At the centre of mass, at a pole with the cross term."""
    x, out = case["input"], case["output"]
    J, R, w = x["J_C0"], np.array(out["R"]), out["omega"]
    assert worst(turn(x["theta_xyz"]), R) <= 1e-14
    E = rigid_body_energy(x["m"], (0, 0, 0), J, R, x["v_C"], w)
    assert worst(E, out["E_k"]) <= ENERGY and worst(E.rotation, out["E_rot"]) <= ENERGY and E.error == 0.0
    arm = x["pole_from_C_in_initial_axes"]
    at_pole = rigid_body_energy(x["m"], (0, 0, 0), J, R, out["v_P"], w, pole=arm)
    assert worst(at_pole, out["E_k"]) <= ENERGY and worst(at_pole.cross, out["cross_term"]) <= ENERGY
    assert worst(at_pole.translation + at_pole.rotation, out["eq39_current"]) <= ENERGY


@pytest.mark.parametrize("case", BODIES, ids=lambda c: str(c["name"]))
def test_modes_of_the_paper(case: dict[str, Any]) -> None:
    """A, B, C to their printed figures, and the error that each makes."""
    x, out = case["input"], case["output"]
    for mode, expected in out["paper_modes_E_rot"].items():
        E = rigid_body_energy(
            x["m"], (0, 0, 0), x["J_C0"], out["R"], x["v_C"], out["omega"],
            mode=mode, angles=x["theta_xyz"], rates=x["theta_dot_xyz"],
        )  # fmt: skip
        assert worst(E.rotation, expected) <= ENERGY
        assert worst(E.error, expected - out["E_rot"]) <= ENERGY and worst(E.exact, out["E_k"]) <= ENERGY
        assert "not exact" in repr(E)


@pytest.mark.parametrize(
    ("angles", "rates", "exact", "errors"),
    [
        ((0, 0, 0), (1, 2, 3), 1.054167, (0, 0, 0)),
        ((0, 30, 20), (0, 2, 3), 0.892708, (15.8, 5.3, 16.3)),
        ((0, 60, 20), (0, 2, 3), 0.611458, (69.0, 53.8, 65.6)),
        ((0, 90, 0), (0, 0, 3), 0.187500, (300, 300, 300)),
        ((40, 30, 20), (1, 2, 3), 0.772874, (39.5, 3.2, 16.7)),
        ((40, 60, 20), (1, 2, 3), 0.496146, (117, 23.7, 43.5)),
    ],
)
def test_table_of_errors(angles: Any, rates: Any, exact: float, errors: Any) -> None:
    """The box of spec 7.3: what constant polar moments cost."""
    th = np.radians(angles)
    w = rates_to_omega(th, rates)
    for mode, percent in zip("ABC", errors):
        E = rigid_body_energy(10, (0, 0, 0), BOX, turn(th), (0, 0, 0), w, mode=mode, angles=th, rates=rates)
        assert abs(E.exact - exact) <= 5e-7
        assert abs(100 * E.error / E.exact - percent) <= (0.5 if percent > 100 else 0.06)


def test_any_pole_gives_the_same() -> None:
    """(T4) at random poles, centre of mass away from the frame's origin."""
    rng = np.random.default_rng(0)
    R, w, v, com = turn(rng.normal(size=3)), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3)
    E = rigid_body_energy(2.0, com, BOX, R, v, w)
    for _ in range(10):
        pole = rng.normal(size=3)
        at = v + np.cross(w, R @ (pole - com))
        assert worst(rigid_body_energy(2.0, com, BOX, R, at, w, pole=pole), E) <= ENERGY


@cache
def screw() -> drevo.Robot:
    """The worked example: revolute z, revolute y at A, screw along x at B, load clamped to link 3."""
    b = drevo.Builder("screw", gravity=(0, 0, -P["g"]))
    poles = {"link1": (0, 0, 0), "link2": (0, 0, P["H"]), "link3": (P["L1"], 0, P["H"])}
    poles["load"] = poles["link3"]
    joints = {
        "link1": ("revolute", (0, 0, 1)),
        "link2": ("revolute", (0, 1, 0)),
        "link3": ("helical", (1, 0, 0)),
    }
    parent, at = "world", np.zeros(3)
    for name, pole in poles.items():
        kind, axis = joints.get(name, ("fixed", (1, 0, 0)))
        com = np.array(P[name]["C"]) - pole
        origin = np.array(pole) - at
        b.body(name, parent, kind, axis, origin, mass=P[name]["m"], com=com, inertia=P[name]["J"],
               lead=P["h"] if kind == "helical" else None)  # fmt: skip
        parent, at = name, np.array(pole)
    return b.robot()


@pytest.mark.parametrize("case", SCREW["states"])
def test_screw_robot(case: dict[str, Any]) -> None:
    """M, energies, G, efforts and powers of the eleven states."""
    r, out = screw(), case["output"]
    q, v, a = (case["input"][k] for k in ("q", "qd", "qdd"))
    assert worst(r.mass_matrix(q), out["M"]) <= 1e-11
    assert worst(r.kinetic_energy(q, v), out["T"]) <= ENERGY
    assert worst(r.potential_energy(q), out["V"]) <= ENERGY
    assert worst(r.gravity(q), out["G"]) <= 1e-11 and worst(r.inverse_dynamics(q, v, a), out["tau"]) <= 1e-11
    drives, kinetic, potential = r.power_balance(q, v, a)
    assert worst(drives, out["drive_power"]) <= 1e-11
    assert worst(kinetic, out["W_k_links"]) <= 1e-11 and worst(potential, out["W_p_links"]) <= 1e-11
    assert abs(sum(drives) - sum(kinetic) - sum(potential)) <= 1e-11 * max(1.0, abs(sum(drives)))


@pytest.mark.parametrize("case", SCREW["states"])
def test_screw_robot_links(case: dict[str, Any]) -> None:
    """Energies link by link, the wrench's power into link 3, and what the paper's own formulas give."""
    r, out = screw(), case["output"]
    q, v, a = (case["input"][k] for k in ("q", "qd", "qdd"))
    m, C = [P["link1"]["m"], P["link2"]["m"], P["link3"]["m"] + P["load"]["m"]], out["p_C_links"]
    assert worst([P["g"] * mass * c[2] for mass, c in zip(m, C)], out["V_links"]) <= ENERGY
    angles = [(0, 0, q[0]), (0, q[1], q[0]), (q[2], q[1], q[0])]
    rates = [(0, 0, v[0]), (0, v[1], v[0]), (v[2], v[1], v[0])]
    J = [np.array(P["link1"]["J"]), np.array(P["link2"]["J"]), together()]
    common = [
        (m[i], (0, 0, 0), J[i], turn(angles[i]), out["v_C_links"][i], out["omega_links"][i]) for i in range(3)
    ]
    assert worst([rigid_body_energy(*c) for c in common], out["T_links"]) <= ENERGY
    for i, w in enumerate(out["omega_links"]):
        assert worst(rates_to_omega(angles[i], rates[i]), w) <= 1e-12
        assert worst(r.velocity(q, v, f"link{i + 1}")[3:], w) <= 1e-12
    literal = rigid_body_energy(*common[2], mode="A", angles=angles[2], rates=rates[2])
    assert worst(literal, out["paper40A_T3"]) <= ENERGY
    w3 = np.array(joint_wrenches(build_tree(r.model), q, v, a))[2]
    power = w3 @ r.velocity(q, v, "link3")
    assert worst(power, out["wrench_power_into_link3"]) <= 1e-11


def together() -> Array:
    """Inertia of link 3 and its load about their common centre of mass."""
    parts = [P["link3"], P["load"]]
    m = sum(p["m"] for p in parts)
    C = sum(p["m"] * np.array(p["C"]) for p in parts) / m
    J = np.zeros((3, 3))
    for p in parts:
        r = np.array(p["C"]) - C
        J += np.array(p["J"]) + p["m"] * (r @ r * np.eye(3) - np.outer(r, r))
    return J


@pytest.mark.parametrize("case", SCREW["states"])
def test_printed_formulas_at_a_pole(case: dict[str, Any]) -> None:
    """(34) of link 2 about A, (39) of link 3 about B: literal, and with current moments."""
    out = case["output"]
    q, v = case["input"]["q"], case["input"]["qd"]
    A = np.array([0, 0, P["H"]])
    com2 = np.array(P["link2"]["C"]) - A
    angles2, rates2 = (0, q[1], q[0]), (0, v[1], v[0])
    E2 = rigid_body_energy(
        P["link2"]["m"], com2, P["link2"]["J"], turn(angles2), (0, 0, 0), out["omega_links"][1],
        pole=(0, 0, 0), mode="A", angles=angles2, rates=rates2,
    )  # fmt: skip
    assert worst(E2, out["paper34_T2"]) <= ENERGY and worst(E2.exact, out["T_links"][1]) <= ENERGY
    m3 = P["link3"]["m"] + P["load"]["m"]
    com3 = (P["link3"]["m"] * np.array(P["link3"]["C"]) + P["load"]["m"] * np.array(P["load"]["C"])) / m3
    com3 = com3 - [P["L1"], 0, P["H"]]
    angles3, rates3 = (q[2], q[1], q[0]), (v[2], v[1], v[0])
    R, w = turn(angles3), np.array(out["omega_links"][2])
    v_B = np.array(out["v_C_links"][2]) - np.cross(w, R @ com3)
    given: tuple[Any, ...] = (m3, com3, together(), R, v_B, w)
    literal = rigid_body_energy(*given, pole=(0, 0, 0), mode="A", angles=angles3, rates=rates3)
    assert worst(literal, out["paper39A_T3"]) <= ENERGY
    exact = rigid_body_energy(*given, pole=(0, 0, 0))
    assert worst(exact.cross, out["cross_term_T3"]) <= ENERGY
    assert worst(exact.translation + exact.rotation, out["eq39_current_moments_no_cross_T3"]) <= ENERGY


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mode": "D"}, "mode 'D' is not known"),
        ({"mode": "A"}, "rates is needed"),
        ({"mode": "B"}, "angles is needed"),
        ({"R": np.ones((3, 3))}, "R is no rotation"),
        ({"R": np.diag([1.0, 1e200, 1.0])}, "R is no rotation"),
        ({"v": (1e200, 0, 0)}, "the energy is beyond all numbers"),
        ({"v": (1, 2)}, "v has shape"),
        ({"mass": -1.0}, "mass is -1"),
        ({"inertia": [[1, 2, 0], [0, 1, 0], [0, 0, 1]]}, "not symmetric"),
    ],
)
def test_refused(change: dict[str, Any], words: str) -> None:
    """One sentence each."""
    given: dict[str, Any] = {
        "mass": 1.0, "com": (0, 0, 0), "inertia": BOX, "R": np.eye(3), "v": (0, 0, 0), "omega": (0, 0, 1),
    }  # fmt: skip
    with pytest.raises(drevo.DrevoError, match=words):
        rigid_body_energy(**{**given, **change})


# -- the formalism: energies of robots ----------------------------------------------------------------------


def screw_energy(q: Any, v: Any, mode: str | None) -> float:
    """By the single bodies: exact, or in a mode with the angles and rates of each link, at the centres of mass."""
    r = drevo.load("screw-arm")
    total = 0.0
    angles = [(0, 0, q[0]), (0, q[1], q[0]), (q[2], q[1], q[0])]
    rates = [(0, 0, v[0]), (0, v[1], v[0]), (v[2], v[1], v[0])]
    bodies = [(P["link1"]["m"], P["link1"]["J"], P["link1"]["C"], (0, 0, 0)),
              (P["link2"]["m"], P["link2"]["J"], P["link2"]["C"], (0, 0, P["H"]))]  # fmt: skip
    m3 = P["link3"]["m"] + P["load"]["m"]
    C3 = (P["link3"]["m"] * np.array(P["link3"]["C"]) + P["load"]["m"] * np.array(P["load"]["C"])) / m3
    bodies.append((m3, together(), C3, (P["L1"], 0, P["H"])))
    for i, (m, J, C, pole) in enumerate(bodies):
        w, R = rates_to_omega(angles[i], rates[i]), turn(angles[i])
        V = r.velocity(q, v, f"link{i + 1}")[:3] + np.cross(w, R @ (np.array(C) - pole))
        total += rigid_body_energy(m, (0, 0, 0), J, R, V, w, mode=mode, angles=angles[i], rates=rates[i])
    return total


@pytest.mark.parametrize("mode", [None, *"ABC"])
def test_formalism_is_the_sum_of_the_bodies(mode: str | None) -> None:
    """kinetic_energy(tree) of the screw robot in every mode; without one it is the kinetic energy."""
    r, rng = drevo.load("screw-arm"), np.random.default_rng(4)
    tree = build_tree(r.model)
    for _ in range(5):
        q, v = rng.normal(size=(2, 3)).tolist()
        found = al.kinetic_energy(tree, q, v, mode)
        assert worst(found, screw_energy(q, v, mode)) <= ENERGY
        if mode is None:
            assert worst(found, r.kinetic_energy(q, v)) <= ENERGY


@pytest.mark.parametrize("seed", range(8))
def test_formalism_is_exact_for_random_robots(seed: int) -> None:
    """Without a mode: trees of every joint, against the plain recursion."""
    model = strategies.robot(seed, strategies.EVERY, 8, "floating" if seed % 2 else "fixed", 0.2, 0.2)
    q, v, _ = strategies.state(model, seed)
    tree = build_tree(model)
    right = kinetic_energy(tree, q.tolist(), v.tolist())
    assert worst(al.kinetic_energy(tree, q.tolist(), v.tolist()), right) <= ENERGY * max(1.0, abs(right))


def test_formalism_is_exact_when_written_out() -> None:
    d = drevo.write_out(drevo.load("screw-arm"), "kinetic_energy", formalism="alyushin")
    assert d.formalism == "alyushin" and d.checks[0][1] <= ENERGY
    right = screw_energy([0.1, 0.2, 0.3], [1, 2, 3], None)
    assert worst(d.evaluate(q=[0.1, 0.2, 0.3], v=[1.0, 2.0, 3.0]), right) <= ENERGY


@pytest.mark.parametrize("mode", "ABC")
def test_modes_are_written_out_with_their_error(mode: str) -> None:
    """Labelled in every text; the errors at the sample states are printed beside the exact values."""
    r = drevo.load("screw-arm")
    d = drevo.write_out(r, "kinetic_energy", formalism="alyushin", mode=mode)
    assert "not exact" in d.formalism and d.checks[0][1] <= ENERGY and d.checks[1][1] > 0.01
    for text in (d.markdown(), d.latex(), d.html(), d.python(), d.c()):
        assert "not exact" in text.lower()
    lines = re.findall(r"At q = \((.*?)\), v = \((.*?)\): mode . gives (\S+) J, exact is (\S+) J, error (\S+) J",
                       d.markdown().replace("\\", ""))  # fmt: skip
    assert len(lines) == 5
    for q, v, found, exact, error in lines:
        assert abs(float(found) - float(exact) - float(error)) <= 2e-3 * abs(float(exact))
        state = [[float(x) for x in part.split(",")] for part in (q, v)]
        assert abs(r.kinetic_energy(*state) - float(exact)) <= 2e-3 * float(exact)
        assert abs(screw_energy(*state, mode) - float(found)) <= 2e-3 * abs(float(exact))


@pytest.mark.parametrize("mode", "ABC")
@pytest.mark.parametrize("name", ["screw-arm", "two-arm-spatial", "slide-and-screw"])
def test_modes_by_the_paper_read_back(name: str, mode: str) -> None:
    """Lines of the paper; components of every format with other parameters are those of that robot."""
    model = (slide_and_screw() if name == "slide-and-screw" else drevo.load(name)).model
    d = drevo.write_out(model, "kinetic_energy", mode=mode, sequence="paper", symbols="all")
    assert d.checks[0][1] <= ENERGY and "not exact" in d.formalism
    rng = np.random.default_rng(1)
    values = {n: x * rng.uniform(0.6, 1.4) for n, x in d.parameters.items()}
    q, v = rng.normal(size=(2, model.nv)).tolist()
    right = al.kinetic_energy(build_tree(rebuilt(model, values)), q, v, mode)
    for language, read in READERS.items():
        text = replace(d, digits=17).text(language)
        ((got,),) = read(text).results(d, {"q": q, "v": v}, values)
        assert worst(got, right) <= ENERGY * abs(right), language
    page = d.markdown()
    assert r"\theta_{2,t}" in page and "(31), (32)" in page and page.count("| $T$ |") == 1
    assert (r"\sin(2\,\theta_{2" in page) == (mode in "AB")


def test_a_sequence_that_no_mode_has() -> None:
    with pytest.raises(drevo.TraceError, match="sequence 'merged' belongs to mass_matrix by telegin"):
        drevo.write_out(drevo.load("screw-arm"), "kinetic_energy", mode="A", sequence="merged")


@pytest.mark.parametrize("quantity", ["power_balance", "joint_power"])
def test_powers_are_written_out(quantity: str) -> None:
    """Of the screw arm and of a tree, with the drives' rotors left out as by the call."""
    for robot in (drevo.load("screw-arm"), slide_and_screw()):
        d = drevo.write_out(robot, quantity, formalism="alyushin", sequence="paper", symbols="all")
        assert d.checks[0][1] <= ENERGY
        assert r"W_{2}^{k} &= m_{2}\,v_{2}^{CT}\,a_{2}^{C}" in d.markdown()
    for robot in (drevo.load("biped", base="floating"), Robot(strategies.all_kinds("floating"))):
        d = drevo.write_out(robot, quantity, formalism="alyushin")  # joints of several coordinates, one free
        assert d.checks[0][1] <= ENERGY


def test_modes_refused() -> None:
    """A joint that turns about no observer axis at q = 0; an unknown mode; another quantity."""
    b = drevo.Builder("skew")
    b.body("arm", axis=(0, 1, 1), mass=1.0, inertia=BOX)
    with pytest.raises(drevo.TraceError, match=r"joint 'arm_joint' .revolute. does not turn about one of them"):
        drevo.write_out(b.robot(), "kinetic_energy", formalism="alyushin", mode="A")
    assert drevo.write_out(b.robot(), "kinetic_energy", formalism="alyushin", mode="C").checks[0][1] <= ENERGY
    with pytest.raises(drevo.InputError, match="mode 'D' is not known"):
        drevo.write_out(b.robot(), "kinetic_energy", mode="D")
    with pytest.raises(drevo.TraceError, match="belongs to kinetic_energy by alyushin, not to mass_matrix"):
        drevo.write_out(b.robot(), "mass_matrix", mode="A")
