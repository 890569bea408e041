"""Programs that are none, requests that contradict themselves, words that are not known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from program_checks import legal
from public_calls import robot

import drevo
from drevo.codegen.call import selftest
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.ops import ADD
from drevo.codegen.graph.program import Program
from drevo.codegen.store.image import loaded_size
from drevo.compiler.packing import unpack
from drevo.compiler.tracer import Tracer
from drevo.errors import DrevoError, InputError, TraceError
from drevo.model.description import JointDynamics

Q = np.array([0.1, 0.2, 0.3])
SOLID: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": np.eye(3)}


def arm() -> drevo.Robot:
    return robot("three-link")


def built(**given: Any) -> drevo.Builder:
    return drevo.Builder("b").body("a", **(SOLID | given))


def by(*wrt: str, quantity: str = "gravity", **given: Any) -> Any:
    return drevo.compile(arm(), quantity, wrt=wrt, **given)


SAID: dict[str, tuple[Callable[[], object], str]] = {
    "time and q": (lambda: by("t", "q"), "'t' goes along a motion and stands alone"),
    "a way through time": (lambda: by("t", method="graph"), "there is one method, the series"),
    "time of efforts": (lambda: by("t", quantity="forward_dynamics"), "by t"),
    "no theorem": (lambda: by("q", quantity="kinetic_energy", method="theorems"), "no theorem gives it"),
    "not packed": (lambda: unpack(by("q"), np.zeros(9)), "is no packed derivative in rows of one output"),
    "a step of a model": (lambda: drevo.compile(arm().model, "step"), "a step is one of a Robot"),
    "a step in single": (
        lambda: drevo.compile(arm(), "step", dt=1e-3, dtype="float32"),
        "a step takes no option 'dtype'; it takes dt, ground, law, .*, controls, sensors, check",
    ),
    "a step without store": (lambda: drevo.compile(arm(), "step", dt=1e-3, cache=False), "no option 'cache'"),
    "a step by q": (lambda: drevo.compile(arm(), "step", dt=1e-3, wrt="q"), "a step takes no option 'wrt'"),
    "a quantity with dt": (
        lambda: drevo.compile(arm(), "gravity", dt=1e-3), "a quantity takes no option 'dt'; it takes dtype, target"
    ),
    "a misspelt one": (lambda: drevo.compile(arm(), "gravity", passivee=True), "did you mean 'passive'"),
    "a formalism that is no name": (
        lambda: drevo.compile(arm(), "gravity", formalism=np.ones(2)), "formalism is array.* must be text"
    ),
    "a target that is no name": (
        lambda: drevo.export(arm(), "gravity", np.ones(2)), "export: target is array.* must be text"
    ),
    "a dtype that is no name": (
        lambda: drevo.export(arm(), "gravity", "c", dtype=np.ones(2)), "export: dtype is array.* must be text"
    ),
    "letters of a number": (lambda: arm().draw(letters=2.0), "letters is 2.0; it must be a mapping"),
    "columns of a list": (lambda: drevo.write_out(arm(), "gravity").latex([2]), "columns must be 1 or 2, not"),
    "a notation of numbers": (
        lambda: drevo.check_formulas(arm(), "H_33 = J_3", notation=np.ones(2)), "notation array.* is not known"
    ),
    "conditions of a number": (
        lambda: drevo.check_formulas(arm(), "H_33 = J_3", given=np.ones(2)), "given is array.*; it is text"
    ),
    "gravity of an array": (
        lambda: drevo.control.pd(arm(), Q, 1.0, 1.0, gravity=np.ones(2)), "gravity is array.* True or False"
    ),
    "a task of a number": (
        lambda: drevo.tasks.solve_ik(arm(), Q, [drevo.tasks.FrameTask(np.nan)], 0.01, targets=[np.eye(4)]),
        "FrameTask: no link nan",
    ),
    "tasks of a number": (lambda: drevo.tasks.solve_ik(arm(), Q, 2.0, 0.01), "tasks: 2.0 is none of drevo.tasks"),
    "a rate of text": (
        lambda: drevo.tasks.ManipulabilityTask("link3", rate="fast"), "rate is 'fast'; it must be a finite number"
    ),
    "axes of a number": (lambda: drevo.tasks.ManipulabilityTask("link3", axes=2.0), "axes are some of x, y, z"),
    "a tolerance of kilometres": (
        lambda: arm().inverse_kinematics("link3", np.eye(4), tolerance=1e308), "tolerance is 1e\\+308; it must be"
    ),
    "all of an array": (
        lambda: arm().inverse_kinematics("link3", np.eye(4), all=np.ones(2)), "all is array.* True or False"
    ),
    "stiffness that rounds to nothing": (
        lambda: drevo.control.impedance(arm(), "link3", -1e308, 1.0, axes="x y"), "stiffness must be 0 or more"
    ),
    "a law of no joints": (
        lambda: drevo.control.impedance(arm(), "link3", 1.0, 1.0, axes="x", actuated=[]), "joints give 0 motions"
    ),
    "a task's name of an array": (
        lambda: drevo.tasks.FrameTask("link3", name=np.ones(2)), "FrameTask: name is array.* must be text"
    ),
    "passive slopes": (
        lambda: by("q", passive=True), "a derivative takes no option 'passive'; it takes method, dtype, .*budget"
    ),
    "slopes on a GPU": (lambda: by("q", target="cuda"), "a derivative takes no option 'target'"),
    "packed slopes of reactions": (
        lambda: by("q", quantity="constrained_dynamics", method="graph"),
        "a derivative of constrained_dynamics takes no option 'method'; it takes dtype, .*, contacts, constraints",
    ),
    "shares of a list": (lambda: built().tendon("t", joints=[1.0]), "joints is a mapping of names"),
    "dynamics twice": (lambda: built(dynamics=JointDynamics(), damping=1.0), "both dynamics"),
    "dynamics of a number": (lambda: built(dynamics=3), "dynamics is a drevo.model.description.J"),
    "a rotor of one": (lambda: built(rotor=(1.0,)), r"rotor is \(inertia, gear ratio\)"),
    "two tendons": (
        lambda: built().tendon("t", joints={"a_joint": 1.0}).tendon("t"), "'t' already exists; names must be"
    ),
    "a path of a word": (lambda: built().tendon("t", path="ab"), "path is a list of"),
    "a window with a link": (lambda: arm().view(link="link1"), "takes q, port and loads, not 'link'"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_is_refused_in_a_sentence(what: str) -> None:
    call, sentence = SAID[what]
    with pytest.raises(DrevoError, match=sentence):
        call()


def test_calls_are_of_a_known_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREVO_CALLS", "magic")
    with pytest.raises(InputError, match="DREVO_CALLS='magic' is none of native, ctypes"):
        selftest.wanted()


def test_levers_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DREVO_WITHOUT", "magic")
    with pytest.raises(TraceError, match="DREVO_WITHOUT names 'magic', which is no lever; levers are"):
        drevo.write_out(arm(), "gravity")


def small() -> Program:
    """y = (x1 + x2) x1, 3."""
    t = Tracer("small")
    x = t.input("x", 2)
    t.output("y", [(x[0] + x[1]) * x[0], x[0] - x[0] + 3.0])
    return t.program()


def broken(p: Program, change: Callable[[Graph, int], None]) -> Program:
    """With another word about its last sum."""
    n = max(n for n in p.order() if p.graph.op[n] == ADD)
    change(p.graph, n)
    return p


def later(g: Graph, n: int) -> None:
    g.a[n] = 2 * n + 2


def negative(g: Graph, n: int) -> None:
    g.a[n] |= 1


def level(g: Graph, n: int) -> None:
    g.level[n] += 7


ILLEGAL = [
    (later, "uses one that is made after it"),
    (negative, "leads with a negative term"),
    (level, "has level"),
]


@pytest.mark.parametrize(("change", "sentence"), ILLEGAL, ids=["later", "negative", "level"])
def test_programs_that_are_none(change: Callable[[Graph, int], None], sentence: str) -> None:
    program = small()
    legal(program)
    with pytest.raises(TraceError, match=sentence):
        legal(broken(program, change))


def test_numbers_meet_at_once_what_they_would_in_code() -> None:
    """Constants, the same on both sides, whole powers."""
    t = Tracer("f")
    (x,) = t.input("x", 1)
    g = x.graph
    one, two = g.constant(1.0), g.constant(2.0)
    assert g.atan2(one, two) == math.atan2(1.0, 2.0)
    assert x**0 == 1.0 and (x**-2).edge == (1.0 / x**2).edge and x + 0 is x and x * 0 == 0.0
    with pytest.raises(TypeError):
        x**0.5


def test_sizes_of_what_is_no_elf() -> None:
    assert loaded_size(b"\0asm....") == 8
