"""Bodies symmetric about their hinge: what their angle leaves out, and that nothing else changes."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
import tolerances as tol
from reference import Reference, close, largest, on_each
from strategies import HINGED, SIMPLE, joint, robot, seeds, state, vec

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.codegen.graph.program import Program
from drevo.compiler.compete import compete
from drevo.compiler.differentiate import derivative_program
from drevo.compiler.pages.symmetry import nearly_symmetric
from drevo.compiler.recipe import Recipe
from drevo.compiler.search import OBJECTIVES, Preparation
from drevo.mechanics.tree import build_tree
from drevo.mechanics.wheels import asymmetry, with_wheels
from drevo.model.description import Inertial, Joint, JointDynamics, Link, Mimic, Model
from drevo.model.quantities import quantity as found_quantity

CASES = json.loads((Path(__file__).parent / "data" / "symmetric-bodies.json").read_text())["robots"]
QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics")


def case(name: str) -> dict[str, Any]:
    return next(c for c in CASES if c["id"] == name)


def model_of(c: dict[str, Any]) -> Model:
    """A robot of the data, built by the public Builder."""
    b = drevo.Builder(c["id"], gravity=c["gravity"])
    for x in c["bodies"]:
        mimic = (f"{x['mimic'][0]}_joint", *x["mimic"][1:]) if "mimic" in x else None
        b.body(
            x["name"], x["parent"], x["joint"], x["axis"], x["origin"], x["rotation"], mass=x["mass"],
            com=x["com"], inertia=x["inertia"], lead=x.get("lead"), mimic=mimic,
        )  # fmt: skip
    return b.model()


@cache
def competed(name: str, quantity: str) -> Program:
    """The equations with the fewest operations, of a robot of the data or a drone of so many arm joints."""
    return compete(drone(int(name)) if name.isdigit() else model_of(case(name)), quantity).program


def read(program: Program) -> set[str]:
    """The inputs that a program's results depend on."""
    names = {n: f"{p.name}[{k}]" for p in program.inputs for k, n in enumerate(p.nodes)}
    return {names[n] for n in program.order() if n in names}


def coordinate(model: Model, link: str) -> str:
    at = next(sq.start for j, sq, _ in model.slices() if j.child == link)
    return f"q[{at}]"


@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
@pytest.mark.parametrize("c", CASES, ids=lambda c: c["id"])
def test_published_vectors(c: dict[str, Any]) -> None:
    """All states to 1e-12, searched and compiled; no angle of a cyclic body is read, nor by derivatives."""
    model = model_of(c)
    arguments = {k: np.array([s[k] for s in c["states"]]) for k in ("q", "v", "a", "tau")}
    unread = {coordinate(model, b) for b in c["cyclic"]}
    for name in QUANTITIES:
        expected = np.array([s[name] for s in c["states"]])
        for program in (competed(c["id"], name), Recipe((name,)).program(model)):
            (got,) = evaluate(program, arguments).values()
            close(name, got, expected, tol.VECTORS)
            assert not unread & read(program), name
    assert not unread & read(Recipe(("forward_dynamics_derivatives",)).program(model))
    assert not unread & read(derivative_program(model, found_quantity("mass_matrix"), ("q",), "theorems", {}))


@pytest.mark.parametrize("name", [c["id"] for c in CASES if "nearly" not in c["id"]])
def test_sines_of_cyclic_bodies_are_not_formed(name: str) -> None:
    """Of a screw the travel stays."""
    c = case(name)
    tree = Preparation(wheels="kept").prepare(build_tree(model_of(c)))
    links = {b.link for b in tree.bodies if b.kind in ("revolute", "helical")}
    assert not links & set(c.get("no_trig", c["cyclic"]))


# -- random trees -----------------------------------------------------------------------------------------------


def symmetric_inertial(rng: np.random.Generator, axis: Any) -> Inertial:
    """A body symmetric about the axis through its frame's origin."""
    e, (across, along) = np.array(axis), rng.uniform(0.01, 0.05, 2)
    tensor = across * np.eye(3) + (min(along, 1.9 * across) - across) * np.outer(e, e)
    return Inertial(float(rng.uniform(0.2, 2.0)), vec(e * rng.normal() * 0.1), tuple(map(vec, tensor)))  # type: ignore[arg-type]


def wheeled(seed: int) -> Model:
    """A random robot with symmetric bodies, some on others, on screws, with rotors, or driven by another joint."""
    rng = np.random.default_rng(seed + 77)
    model = robot(seed, kinds=(HINGED, SIMPLE)[seed % 2], n=int(rng.integers(1, 6)), mimics=0.0)
    links, joints = list(model.links), list(model.joints)
    first = 2 if joints and joints[0].kind == "free" else 1
    for k in range(int(rng.integers(1, 4))):
        name, parent = f"w{k}", links[int(rng.integers(min(first, len(links) - 1), len(links)))].name
        kind = "helical" if rng.random() < 0.1 else "revolute"
        j = replace(joint(rng, f"wj{k}", kind, parent, name), dynamics=_rotor(rng))
        if k and rng.random() < 0.2 and joints[-1].nq == 1:  # by the joint before
            j = replace(j, mimic=Mimic(joints[-1].name, float(rng.uniform(-2.0, 2.0)), 0.3), dynamics=None)
        links.append(Link(name, symmetric_inertial(rng, j.axis)))
        joints.append(j)
        if rng.random() < 0.3:  # coaxial, on the wheel
            links.append(Link(f"{name}r", symmetric_inertial(rng, j.axis)))
            at = vec(np.array(j.axis) * 0.1)
            joints.append(Joint(f"wj{k}r", "revolute", name, f"{name}r", at, axis=vec(-np.array(j.axis))))
    return replace(model, name=f"wheeled-{seed}", links=tuple(links), joints=tuple(joints))


def _rotor(rng: np.random.Generator) -> JointDynamics | None:
    return JointDynamics(armature=float(rng.uniform(0.01, 0.1))) if rng.random() < 0.3 else None


def rotors(model: Model) -> np.ndarray:
    """Their inertias by rate: what the oracles know nothing of."""
    return np.array([j.dynamics.armature if j.dynamics else 0.0 for j in model.moving_joints for _ in range(j.nv)])


def _compare(model: Model, seed: int) -> None:
    """Equations that were searched for and those that are compiled, against Pinocchio and MuJoCo."""
    pin, mj, I = oracles.pinocchio_of(model), oracles.mujoco_of(model), rotors(model)
    q, v, a = state(model, seed)
    M = pin.mass_matrix(q) + np.diag(I)
    terms, tau = pin.terms(q, v, a), pin.inverse_dynamics(q, v, a) + I * a
    size, cond = max(largest(a), terms / np.linalg.norm(M, 2)), float(np.linalg.cond(M))
    close("inverse dynamics", tau, mj.inverse_dynamics(q, v, a) + I * a, tol.DYNAMICS, terms)
    arguments = {"q": q, "v": v, "a": a, "tau": tau}
    for made in (_searched, _compiled):
        (got,) = evaluate(made(model, "inverse_dynamics"), arguments).values()
        close("inverse dynamics", got, tau, tol.DYNAMICS, terms)
        (got,) = evaluate(made(model, "mass_matrix"), arguments).values()
        close("mass matrix", got, M, tol.DYNAMICS)
        (got,) = evaluate(made(model, "forward_dynamics"), arguments).values()
        close("forward dynamics", got, a, tol.solving(model.nv, cond), size)
    dq, dv, _ = evaluate(_compiled(model, "inverse_dynamics_derivatives"), arguments).values()
    for x, y in zip((dq, dv), pin.inverse_dynamics_derivatives(q, v, a)):
        close("derivatives", x, y, tol.DERIVATIVES, max(terms, largest(y)))
    found = evaluate(_compiled(model, "forward_dynamics_derivatives"), arguments).values()
    for x, y in zip(found, Reference(model).forward_dynamics_derivatives(q, v, tau)):
        close("derivatives of accelerations", x, y, tol.inverting(model.nv, cond), max(largest(y), size))


def _searched(model: Model, name: str) -> Program:
    return compete(model, name, formalism="khalil").program


def _compiled(model: Model, name: str) -> Program:
    return Recipe((name,)).program(model)


@pytest.mark.parametrize("first", seeds(1, 105))
def test_random_trees_with_symmetric_bodies(first: int) -> None:
    on_each([wheeled(seed) for seed in range(2 * first, 2 * first + 2)], _compare)


def test_random_trees_have_every_kind_of_wheel() -> None:
    found = [with_wheels(build_tree(wheeled(seed))) for seed in range(30)]
    wheels = [(t, b) for t in found for b in t.bodies if b.kind == "wheel"]
    assert len(wheels) > 50 and any(t.bodies[b.parent].kind == "wheel" for t, b in wheels)
    assert any(len({b.v for b in t.bodies}) < len(t) for t in found)  # driven, and sliders of screws


# -- what stays -------------------------------------------------------------------------------------------------


def test_a_wrench_on_a_wheel_turns_with_it() -> None:
    """The body that feels it turns; others do not."""
    model, rng = model_of(case("rover-four-wheels")), np.random.default_rng(0)
    q, v, a = state(model, 1)
    f = {"w1": rng.normal(size=6), "base": rng.normal(size=6)}
    arguments = {"q": q, "v": v, "a": a, **{f"f_ext:{k}": x for k, x in f.items()}}
    for program in (
        compete(model, "inverse_dynamics", external=[*f]).program,
        Recipe(("inverse_dynamics",), external=tuple(f)).program(model),
    ):
        (got,) = evaluate(program, arguments).values()
        close("inverse dynamics", got, Reference(model).inverse_dynamics(q, v, a, f_ext=f), tol.DYNAMICS)
        assert {"q[8]"} == read(program) & {"q[7]", "q[8]", "q[9]", "q[10]"}


def test_parameters_may_break_the_symmetry() -> None:
    """Every parameter that is an argument of compiled code may take any value."""
    model = model_of(case("rover-four-wheels"))
    f = drevo.compile(model, "inverse_dynamics", parameters=["w0.inertia"])
    links = [
        replace(l, inertial=replace(l.inertial, tensor=((0.01, 0, 0), (0, 0.02, 0), (0, 0, 0.013))))
        if l.name == "w0" and l.inertial else l for l in model.links
    ]  # fmt: skip
    q, v, a = state(model, 2)
    expected = Reference(replace(model, links=tuple(links))).inverse_dynamics(q, v, a)
    close("inverse dynamics", f(q, v, a, np.array([0.01, 0.02, 0.013])), expected, tol.DYNAMICS)


def test_a_steering_fork_is_no_wheel() -> None:
    """The spin of its wheel turns with it, however well it is balanced."""
    tree = with_wheels(build_tree(model_of(case("steered-wheels"))))
    assert {b.link for b in tree.bodies if b.kind == "wheel"} == {"w0", "w1"}


@pytest.mark.filterwarnings("ignore:.*doubtful")
def test_what_is_nearly_symmetric_is_so_when_asked() -> None:
    """By an asymmetry or by name, with the change of M as a row of checks; the numbers are those of the change."""
    model = model_of(case("rover-nearly-symmetric"))
    tree = build_tree(model)
    assert {b.link for b in with_wheels(tree).bodies if b.kind == "wheel"} == {"w3"}
    assert {*nearly_symmetric(model)} == {"w0", "w1", "w2"} and asymmetry(tree.bodies[4]) == 0.0
    q, v, a = state(model, 0)
    for asked, sines in (("auto", 6), (False, 8), (1e-6, 6), (1e-5, 0), (["w1", "w2"], 2), ("w0", 4)):
        few = sines < 6
        with pytest.warns(drevo.DrevoWarning, match="as asked") if few else nullcontext():
            d = drevo.write_out(model, "inverse_dynamics", formalism="khalil", symmetric=asked)
        assert d.counts["trig"] == sines and len(d.checks) == 1 + few
        assert all(0.0 < worst < 1e-6 for _, worst, _ in d.checks[1:])
        close("inverse dynamics", d.evaluate(q, v, a), Reference(model).inverse_dynamics(q, v, a), 1e-5)
    f = drevo.compile(drevo.Robot(model), "inverse_dynamics", symmetric=False)
    assert f.counts["trig"] == 8 and pickle.loads(pickle.dumps(f)).counts["trig"] == 8  # noqa: S301


@pytest.mark.filterwarnings("ignore:.*doubtful")
def test_what_cannot_be_symmetric_is_refused() -> None:
    rover, forked = model_of(case("rover-nearly-symmetric")), model_of(case("steered-wheels"))
    for model, asked, told in (
        (rover, "w9", "there is no link 'w9'"),
        (rover, "base", "'base' cannot be"),
        (forked, ["s0"], "'s0' cannot be"),
        (rover, 2.0, "an asymmetry from"),
        (rover, None, "an asymmetry from"),
    ):
        with pytest.raises(drevo.InputError, match=told):
            drevo.write_out(model, "mass_matrix", symmetric=asked)


# -- counts -----------------------------------------------------------------------------------------------------

# inverse dynamics, mass matrix, forward dynamics; sines and cosines of the first; drones by the joints of an arm
COUNTS = {
    "rover-four-wheels": (124, 0, 153, 0),
    "steered-wheels": (333, 71, 552, 4),
    "puma-symmetric-flange": (357, 152, 558, 10),
    "carrier-planets-coaxial": (105, 16, 115, 4),
    "screw-and-mimic": (47, 12, 60, 2),
    "0": (129, 0, 158, 0),
    "4": (511, 197, 992, 8),
}


def drone(joints: int) -> Model:
    """A base with four rotors and an arm of general bodies."""
    b = drevo.Builder("drone")
    b.body("base", None, "free", mass=8.0, com=(0.1, 0.02, 0.05), inertia=BASE)
    for k, (x, y, s) in enumerate(((0.3, 0.3, 1), (-0.3, 0.3, -1), (-0.3, -0.3, 1), (0.3, -0.3, -1))):
        b.body(f"r{k}", "base", axis=(0, 0, s), origin=(x, y, 0.1), mass=0.1, com=(0, 0, 0.02), inertia=ROTOR)
    rng, up = np.random.default_rng(3), "base"
    for k in range(joints):
        S = rng.normal(size=(3, 3)) * 0.2
        S = S @ S.T + 0.002 * np.eye(3)
        b.body(
            f"l{k}", up, axis=ARM[k][0], origin=ARM[k][1], mass=rng.uniform(0.3, 3.0),
            com=rng.normal(size=3) * 0.2, inertia=np.trace(S) * np.eye(3) - S,
        )  # fmt: skip
        up = f"l{k}"
    return b.model()


BASE = ((0.4, 0.01, 0.02), (0.01, 0.5, 0.03), (0.02, 0.03, 0.6))
ROTOR = np.diag([0.001, 0.001, 0.002])
ARM = [((0, 0, 1), (0, 0, -0.1)), ((0, 1, 0), (0, 0, -0.2)), ((0, 1, 0), (0.3, 0, 0)), ((1, 0, 0), (0.25, 0, 0))]


@pytest.mark.counts
@pytest.mark.parametrize("name", COUNTS)
def test_symmetric_bodies_reach_their_counts(name: str) -> None:
    *sizes, trig = COUNTS[name]
    programs = [competed(name, x) for x in QUANTITIES]
    assert all(OBJECTIVES["add+mul"](p) <= n for p, n in zip(programs, sizes))
    assert programs[0].counts["trig"] <= trig
