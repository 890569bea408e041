"""What an object looks like in a shell, and whether it can be copied, compared and sent to another process."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import control, dh, loads
from drevo.compiler.pages.derivation import Derivation
from drevo.constraint import values as constraint
from drevo.walking import STATIC

LONGEST = 240  # characters that a shell shows on two lines
TOUCH = [{"link": "link6", "point": (0.0, 0.0, 0.0), "rows": 3}]


def robot(name: str = "puma560") -> Any:
    return drevo.load(name)


def state(name: str = "puma560") -> tuple[Any, Any, Any]:
    r = robot(name)
    return r, r.neutral() + 0.3, np.full(r.nv, 0.1)


def linear() -> Any:
    r, q, v = state()
    return r.linearise(q, 0 * v, r.gravity(q))


def moved() -> Any:
    r, q, _ = state()
    return r.simulate(q, duration=0.01)


def derived(**options: Any) -> Derivation:
    return drevo.write_out(robot("three-link"), "mass_matrix", **options)


OBJECTS: dict[str, Callable[[], Any]] = {
    "robot": robot,
    "model": lambda: robot().model,
    "link": lambda: robot().model.links[1],
    "joint": lambda: robot().model.joints[1],
    "function": lambda: drevo.compile(robot(), "mass_matrix"),
    "derivation": derived,
    "symbolic derivation": lambda: derived(symbols="all"),
    "lagrange": lambda: drevo.write_out(robot("three-link"), "lagrange_equations"),
    "program": lambda: derived().program,
    "graph": lambda: derived().program.graph,
    "about": lambda: derived().about,
    "topology": lambda: robot().topology,
    "builder": lambda: drevo.Builder("arm"),
    "table": moved,
    "linear model": linear,
    "reduced": lambda: linear().reduced,
    "modes": lambda: linear().reduced.modes(),
    "regulator": lambda: control.lqr(linear(), np.ones(12), np.ones(6)),
    "observer": lambda: control.kalman(linear(), np.ones(12), np.ones(12)),
    "lqg": lambda: control.lqg(linear(), np.ones(12), np.ones(6), np.ones(12), np.ones(12)),
    "trim": lambda: control.trim(robot("three-link"), np.full(3, 0.3)),
    "conditions": lambda: drevo.conditions(robot("three-link"), constant="mass_matrix"),
    "with lengths": lambda: drevo.conditions(
        robot("three-link"), constant="mass_matrix", free=["d_*", "I_*", "L_2"]
    ),
    "comparison": lambda: drevo.conditions(robot("three-link"), constant="mass_matrix").compare(["d_x3 = 0"]),
    "judgement": lambda: drevo.check_formulas(robot("three-link"), "H_33 = I_3^d + 1"),
    "dynamics": lambda: robot().constrained_dynamics(*state()[1:], state()[2], contacts=TOUCH),
    "efforts": lambda: robot().constrained_inverse_dynamics(*state()[1:], state()[2]),
    "impact": lambda: robot().impact(*state()[1:], contacts=TOUCH),
    "plane": lambda: constraint.point_on_plane("link6", (0, 0, 0), normal=(0, 0, 1)),
    "points": lambda: constraint.point_to_point("link6", (0, 0, 0), "link2", (0, 0, 1)),
    "weld": lambda: constraint.weld("link6", (0, 0, 0), "link2", (0, 0, 1)),
    "parameters": lambda: dh.table(robot()),
    "statistics": lambda: drevo.stream(robot("three-link"), "mass_matrix", 10),
    "solid": lambda: loads.sphere(1.0, 0.1),
    "accuracy": lambda: loads.accuracy(robot(), state()[1], "link6", joint_errors=1e-3),
    "walk": lambda: STATIC,
}


@pytest.mark.parametrize("what", [w for w in OBJECTS if w != "robot"])  # which shows its tree: test_comfort
def test_a_shell_shows_one_line(what: str) -> None:
    text = repr(OBJECTS[what]())
    assert "\n" not in text and 3 < len(text) <= LONGEST, text
    assert " object at 0x" not in text


@pytest.mark.parametrize("what", OBJECTS)
def test_objects_can_be_compared_copied_and_hashed(what: str) -> None:
    x = OBJECTS[what]()
    assert x == x and (x != x) is False and x != 3
    assert isinstance(copy.copy(x) == x, bool)
    if what not in ("conditions", "with lengths", "about"):  # they hold lists
        assert isinstance(hash(x), int)


@pytest.mark.parametrize("what", [w for w in OBJECTS if w != "builder"])
def test_objects_travel_to_other_processes(what: str) -> None:
    x = OBJECTS[what]()
    assert repr(pickle.loads(pickle.dumps(x))) == repr(x)  # noqa: S301


def test_derivations_are_equal_where_their_texts_are() -> None:
    d = derived(symbols="all")
    again = pickle.loads(pickle.dumps(d))  # noqa: S301
    assert d == again == copy.deepcopy(d) == derived(symbols="all") and hash(d) == hash(again)
    assert again.python() == d.python() and again.latex() == d.latex() and again.html() == d.html()
    q = np.array([0.1, 0.2, 0.3])
    heavier = {"link1.mass": 3.0}
    assert (again.evaluate(q=q, parameters=heavier) == d.evaluate(q, parameters=heavier)).all()
    assert d != derived() and d != derived(symbols="*.mass") and len({d, again}) == 1
    assert repr(d).startswith("<Derivation of mass matrix of three-link by ")


def test_what_is_not_at_its_default_is_told() -> None:
    """Cache keys are made of it."""
    joint = robot().model.joints[0]
    assert "mimic" not in repr(joint) and "lead" not in repr(joint)
    for change in (
        {"lead": 1e-300},
        {"lead": -0.0},
        {"child_origin": (0.0, 0.0, 1.0)},
        {"axis": (1.0, 0.0, -0.0)},
    ):
        assert repr(replace(joint, **change)) != repr(joint)
