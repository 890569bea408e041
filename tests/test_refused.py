"""More of what is refused by a sentence, room by room: files, names, systems, plans, solids, feet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_calls import robot
from typer.testing import CliRunner

import drevo
from drevo import constraint, control, loads, streaming, walking
from drevo.cli.main import app
from drevo.codegen.graph.node import Graph
from drevo.codegen.graph.ops import SQRT
from drevo.compiler.tracer import Tracer
from drevo.design.exact import Algebra
from drevo.design.expressions import read_formula
from drevo.design.formulas import check_formulas
from drevo.errors import DrevoError
from drevo.io.collada import read_collada
from drevo.io.xml import parse_number, parse_numbers
from drevo.loads.masses import fitted
from drevo.model.loaders.solids import of_triangles
from drevo.robot.topology import Topology
from drevo.simulate import Event, Integrator
from drevo.sweep import run as sweep
from drevo.walking.feet import legs

Q, REST, FULL, HALF = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.eye(6), np.eye(3)


def arm() -> drevo.Robot:
    return robot("three-link")


def row(**given: Any) -> drevo.Robot:
    return drevo.from_dh([{"mass": 1.0, "com": (0.1, 0, 0), "inertia": HALF, "a": 1.0, **given}])


def planned(**given: Any) -> Any:
    return control.optimise(arm(), lambda pose, q, v, tau, t: 0.0, Q, REST, 4, 0.01, **given)


def scheduled(grid: Any, **given: Any) -> Any:
    return control.schedule(arm(), grid, FULL, HALF, **given)


def moved(**given: Any) -> Any:
    return arm().simulate(Q, REST, **{"duration": 0.01, "dt": 1e-3, **given})


def erring(pose: Any, q: Any, t: Any) -> Any:
    return {}["q"]


def root_of(x: float) -> int:
    graph = Graph()
    return graph.unary(SQRT, graph.constant(x))


def regulator() -> Any:
    return control.lqr(arm().linearise(Q, REST, arm().gravity(Q)), FULL, HALF)


def system(module: str, **given: Any) -> Any:
    """What looks like a linear system of another package."""
    return type("System", (), {"__module__": module, **given})()


@cache
def biped() -> drevo.Robot:
    return drevo.load("biped", base="floating")


def feet(corners: Any = ((0, 0, 0), (1, 0, 0), (0, 1, 0)), names: tuple[str, ...] = ()) -> dict[str, Any]:
    return dict.fromkeys(names or tuple(walking.soles(biped())), corners)


FORM: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no number": (lambda: parse_number("1e999"), ValueError, "is too large"),
    "few numbers": (lambda: parse_numbers("1 2", 3), ValueError, "has 2 numbers, 3 needed"),
    "one number": (lambda: parse_numbers("1", 3), ValueError, "has 1 number, 3 needed"),
}
SAID: dict[str, tuple[Callable[[], object], str]] = {
    "another root": (lambda: read_collada(b"<a/>"), "its root is <a>, not <COLLADA>"),
    "a unit in words": (lambda: read_collada(b"<COLLADA><unit meter='x'/></COLLADA>"), "no Collada file that can"),
    "a key of M": (lambda: row(M={"xyz": (0, 0, 0), "at": 1}), "has the unknown key 'at'"),
    "a short M": (lambda: row(M=[HALF]), "a 4x4 matrix with the last row 0 0 0 1 or a pair"),
    "M in words": (lambda: row(M="here"), "a 4x4 matrix with the last row 0 0 0 1 or a pair"),
    "M scaled": (lambda: row(M=2.0 * np.eye(4)), "a 4x4 matrix with the last row 0 0 0 1 or a pair"),
    "a joint of no kind": (lambda: row(joint="ball"), "has the joint 'ball'; a DH row takes"),
    "names_of five": (lambda: arm().names_of(np.zeros(5)), r"names_of takes \(\.\.\., 3\) or \(\.\.\., 3\)"),
    "batches": (lambda: arm().q_of(joint1=np.zeros(2), joint2=np.zeros(3)), "dimensions do not broadcast"),
    "a place for two": (lambda: biped().q_of({biped().model.joints[0].name: 1.0}), "has 7 values"),
    "coordinates of a list": (lambda: arm().q_of([1.0]), "takes values by joint"),
    "names of links": (lambda: Topology([0, 1], names="ab"), "is 'ab'; give a list of 3"),
    "one name": (lambda: Topology([0, 1], names=["a"]), "has 1 entries, 3 needed"),
    "exported twice": (lambda: drevo.export(arm(), ["gravity"], "wasm", wrt="q"), "one name is needed here"),
    "a law by q": (lambda: drevo.export(regulator(), "law", "wasm", wrt="q"), "export of a"),
    "a step that is unknown": (
        lambda: control.LinearModel.of(system("control.x", dt=None)),
        "does not say its step; give it dt=0",
    ),
    "a step of SciPy": (
        lambda: control.LinearModel.of(system("scipy.x", dt=True, to_ss=None)),
        "give it dt= in seconds",
    ),
    "no system": (lambda: control.LinearModel.of(3), "takes a linear system of python-control or SciPy, not 3"),
    "q0 twice": (lambda: scheduled({"joint1": [0.0, 1.0]}, q0=np.zeros((2, 3))), r"q0 must be \(nq,\)"),
    "no such option": (lambda: scheduled({"joint1": [0.0, 1.0]}, speed=1), "takes no argument 'speed'"),
    "many nodes": (
        lambda: scheduled({f"joint{k}": np.arange(1e3) for k in (1, 2)}),
        "the grid has 1e.06 nodes, more than",
    ),
    "a grid of numbers": (lambda: scheduled([0.0]), "grid must be {joint: rising values}"),
    "falling": (lambda: scheduled({"joint1": [1.0, 0.0]}), "must be two or more, rising"),
    "not held": (lambda: scheduled({"joint1": [0.3, 1.0]}, actuated=[]), "schedule: at the node joint1 = 0.3: "),
    "limits": (lambda: planned(limits=3), 'limits is 3; give {"tau"'),
    "limits of a": (lambda: planned(limits={"a": 3}), "limits of 'a' are not known; there are \"tau\""),
    "limits NaN": (lambda: planned(limits={"q": np.nan}), "holds NaN; leave a side without a limit infinite"),
    "limits of two": (lambda: planned(limits={"q": np.ones((2, 2))}), "it must be one number or"),
    "limits reversed": (lambda: planned(limits={"v": (1.0, -1.0)}), "are reversed at index 0"),
    "mixed phases": (lambda: planned(contacts=[(2, []), {"link": "link3"}]), "contacts mixes phases"),
    "knots": (lambda: planned(contacts=[(2, [])]), "take 2 knots, the horizon has 4"),
    "long formula": (lambda: read_formula("+".join("a" * 3000)), "symbols in one line"),
    "sum on the left": (lambda: check_formulas(robot("three-link"), "a + b = 1"), "is not one name"),
    "no sign of equality": (lambda: check_formulas(robot("three-link"), "a + b"), "has no '='"),
    "an angle and a number": (
        lambda: (Algebra(["q_1", "c_1", "s_1"], 0).symbol("q_1") + 1.0).sin(),
        r"the sine of q_1 \+ 1 is no polynomial",
    ),
    "flat solids": (
        lambda: fitted("a", [loads.box(1.0, (1.0, 1.0, 0.0))], np.eye(4)),
        "are flat or thin where the inertia",
    ),
    "solids of a number": (lambda: loads.read_solids(3), "are read from a TOML file, not from 3"),
    "no solids": (lambda: loads.read_solids("none.toml"), "is no TOML that can be read"),
    "a turn that is none": (lambda: loads.box(1.0, (1, 1, 1), rotation=2.0 * HALF), "must be a 3x3 rotation"),
    "a flat mesh": (
        lambda: loads.mesh(1.0, [(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2), (0, 2, 1)]),
        "encloses no volume",
    ),
    "a span in words": (
        lambda: loads.section_loads(arm(), Q, REST, REST, "link1", [0.1], span="ab"),
        "span is 'ab'; give a Span",
    ),
    "a tube": (lambda: loads.Profile.named("tube:0.1"), "has not 2 lengths; write tube:0.1,0.1"),
    "a tube in words": (lambda: loads.Profile.named("tube:a,b"), "has not 2 lengths"),
    "ranges": (lambda: streaming.stream(arm(), "gravity", samples=8, ranges=3), "ranges is 3; give"),
    "layout": (lambda: streaming.stream(arm(), "gravity", samples=8, layout="rows"), "takes no 'layout'"),
    "feet of a number": (lambda: walking.soles(biped(), 3), "feet is 3; give {link: corners"),
    "a foot that is none": (lambda: legs(biped(), feet(names=("a", "b"))), "foot 'a' is not a link"),
    "two corners": (lambda: legs(biped(), feet(((0, 0, 0), (1, 0, 0)))), "this one has 2"),
    "following a word": (lambda: walking.follow("plan"), "follow takes a plan"),
    "tau of two": (lambda: moved(tau=np.zeros((2, 3))), "tau has 2 rows; 10 steps need as many"),
    "a law that errs": (lambda: moved(tau=lambda t, q, v: q + None), r"raised TypeError: .*; correct it"),
    "an event of two": (lambda: moved(events=[Event(lambda t, q, v: q, name="e")]), "must give one number"),
    "an event NaN": (
        lambda: moved(events=[Event(lambda t, q, v: np.nan, name="e")]),
        "event 'e' gave nan at t = 0 s",
    ),
    "no weights": (lambda: Integrator("i", 1, (), (), "a book"), "there are no weights; give one for each stage"),
    "rows that lack": (lambda: Integrator("i", 1, ((0.0,),), (0.5, 0.5), "a book"), "rows"),
    "the ground fails": (
        lambda: drevo.ground.function(lambda x, y: 1 / 0),
        r"the ground z\(x, y\) divides by zero",
    ),
    "an axis of nothing": (
        lambda: constraint.joint_closure("revolute", "link1", (0, 0, 0), (0, 0, 0), "link3", (0, 0, 0)),
        "axis_a is zero; give a direction",
    ),
    "driven twice": (lambda: control.trim(arm(), Q, actuated=["joint1", "joint1"]), "'joint1' is named twice"),
    "a constraint that errs": (
        lambda: arm().constrained_dynamics(Q, REST, REST, constraints=[constraint.function(erring, 1)]),
        "raised KeyError: 'q'; correct it",
    ),
    "a name of nothing": (lambda: drevo.export(arm(), "gravity", "wasm", name=3), "name must be text, not 3"),
    "a choice of nothing": (lambda: drevo.where(np.ones(3, bool), np.zeros(2), 0.0), "cannot choose"),
    "no order": (lambda: drevo.minimum("a", 1.0), "'a' and 1.0 cannot be compared"),
    "two rows": (lambda: row(M=(np.eye(2), np.zeros(3))), "has 2 rows, 3 needed"),
    "three of four": (lambda: drevo.load("puma560", gravity=(0, np.inf, 0)), "is not finite"),
    "no area": (lambda: of_triangles(np.zeros((1, 3, 3))), "its triangles have no area"),
    "a version": (
        lambda: drevo.load("<sdf version='a.1'><model name='m'/></sdf>"),
        "version of <sdf> on line 1: 'a' is not",
    ),
    "a program without a name": (lambda: Tracer("", arm().model), "a program's name must be text, not ''"),
    "the root of a negative": (
        lambda: root_of(-1.0),
        "square root of -1.0 while tracing",
    ),
    "no free base": (lambda: legs(arm()), "has no free base to walk with"),
}


@pytest.mark.parametrize("what", SAID)
def test_is_refused_in_a_sentence(what: str) -> None:
    call, sentence = SAID[what]
    with pytest.raises(DrevoError, match=sentence):
        call()


@pytest.mark.parametrize("what", FORM)
def test_numbers_of_files(what: str) -> None:
    call, kind, sentence = FORM[what]
    with pytest.raises(kind, match=sentence):
        call()


SOLIDS = {
    "[": "is no TOML",
    "a = 3": r"'a' is 3; give tables, \[\[a\]\]",
    "[[a]]\nkind = 'mesh'\nmass = 1\nfile = 3": "file is 3; name a mesh file",
    "[[a]]\nkind = 'box'\nmass = 1": "is missing 'size'",
}


@pytest.mark.parametrize("text", SOLIDS)
def test_files_of_solids(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(DrevoError, match=SOLIDS[text]):
        loads.read_solids(tmp_path / "s.toml")


PLANS: dict[str, tuple[Any, str]] = {
    "a number": (3, "is planned by a file or a dictionary, not by 3"),
    "no file": ("none.toml", "the plan 'none.toml': "),
    "no quantity": ({"robot": "puma560"}, "lacks 'quantity'"),
    "no samples": ({"samples": 0}, "samples"),
    "two counts": ({"method": "grid", "grid": {"q": [2, 2]}}, "grid of q has 2 counts; it needs 1 or 3"),
    "another argument": ({"method": "grid", "grid": {"q": [2], "w": [2]}}, "takes no 'w', which grid names"),
    "manipulability": ({"measure": "manipulability", "samples": 9}, "is a measure of a jacobian, not of gravity"),
}


@pytest.mark.parametrize("what", PLANS)
def test_plans_of_sweeps(what: str, tmp_path: Path) -> None:
    plan, sentence = PLANS[what]
    if isinstance(plan, dict) and "robot" not in plan:
        plan = {"robot": "three-link", "quantity": "gravity", **plan}
    with pytest.raises(DrevoError, match=sentence):
        sweep(plan, tmp_path / "out")


COMMANDS = {
    ("sweep",): "sweep needs a plan; `drevo sweep --example` prints one",
    ("walk", "biped", "--feet", "a=x"): "--feet 'a=x' is not LINK=x,y,z;x,y,z;x,y,z",
}


@pytest.mark.parametrize("words", COMMANDS)
def test_commands(words: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code and COMMANDS[words] in " ".join(found.output.split())
