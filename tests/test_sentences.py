"""What people get wrong, each answered by one sentence: calls that ended in a traceback or in nonsense."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_calls import robot

import drevo
from drevo import constraint, control, dh
from drevo.robot.topology import Topology
from drevo.simulate import Control

Q, REST, HALF, FULL = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.eye(3), np.eye(6)
SOLID: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": np.eye(3)}
PLANE = constraint.point_on_plane("link3", (0.1, 0.2, 0.0), normal=(1.0, 0.0, 0.0))


def arm() -> drevo.Robot:
    return robot("three-link")


@cache
def linear() -> control.LinearModel:
    return arm().linearise(Q, REST, arm().gravity(Q))


def tracker() -> Any:
    path = Q + 0.01 * np.arange(5.0)[:, None]
    return control.track(arm(), 0.01, path, 0.0 * path, 0.0 * path, FULL, HALF)


def held(**given: Any) -> Any:
    return arm().constrained_dynamics(Q, REST, REST, **{"constraints": [PLANE], **given})


def traced(f: Callable[..., Any]) -> Any:
    return held(constraints=[constraint.function(f, 1)])


def moved(tau: Any = None, **given: Any) -> Any:
    return arm().simulate(Q, REST, tau, **{"duration": 0.01, **given})


def mimicking(mimic: Any) -> Any:
    return drevo.Builder("b").body("a", **SOLID).body("c", parent="a", mimic=mimic, **SOLID).robot()


def without_drives() -> control.LinearModel:
    return arm().linearise(Q, REST, arm().gravity(Q), actuated=[])


SAID: dict[str, tuple[Callable[[], object], str]] = {
    "load(None)": (lambda: drevo.load(None), "path of its file or by its name, not by None"),
    "load(3)": (lambda: drevo.load(3), "not by 3"),
    "load(b'')": (lambda: drevo.load(b""), "not by b''"),
    "load([..])": (lambda: drevo.load(["a"]), r"not by \['a'\]"),
    "gravity=5": (lambda: drevo.load("puma560", gravity=5), "gravity is three numbers.*: 5 is"),
    "gravity='abc'": (lambda: drevo.load("puma560", gravity="abc"), "gravity is three numbers.*: 'abc' is"),
    "gravity=(0, 0)": (lambda: drevo.load("puma560", gravity=(0, 0)), "has 2 numbers, 3 needed"),
    "write_out of a name": (lambda: drevo.write_out("puma560", "gravity"), "make one with drevo.load"),
    "function(None)": (lambda: drevo.compile(arm(), None), "quantity None is not known"),
    "parameters=[1]": (lambda: drevo.compile(arm(), "gravity", parameters=[1]), r"list of names, not \[1\]"),
    "pose(q, array)": (lambda: arm().pose(Q, HALF), "link must be the name of a link, not array"),
    "pose(q, memory)": (lambda: arm().pose(Q, link=memoryview(Q.copy())), "the name of a link, not <memory"),
    "pose(q)": (lambda: arm().pose(Q), "pose is of one link: say which by link="),
    "random(5)": (lambda: arm().random(5), "how many is said by shape="),
    "random(rng=5)": (lambda: arm().random(rng=5), "rng must be a generator"),
    "2^64 samples": (lambda: arm().random(None, 2**64), "no memory for this batch"),
    "integrate(q, 'x')": (lambda: arm().integrate(Q, "x"), "dv must hold real numbers"),
    "evaluate of text": (lambda: drevo.write_out(arm(), "gravity").evaluate(q="x"), "q must hold real numbers"),
    "evaluate of an object": (lambda: drevo.write_out(arm(), "gravity").evaluate(q=object()), "type object"),
    "rows that are numbers": (lambda: drevo.from_dh([1, 2]), "row 1 is 1; a row is"),
    "a table that is text": (lambda: drevo.from_dh("abc"), "a DH table is a list of rows"),
    "a table without rows": (lambda: drevo.from_dh([]), "the DH table has no rows"),
    "mimic=3": (lambda: mimicking(3), r"mimic is a joint's name, or \(name, multiplier, offset\)"),
    "mimic of four": (lambda: mimicking(("a_joint", 1, 2, 3)), "mimic is a joint's name"),
    "contacts=5": (lambda: held(contacts=5), "contacts is 5; it must be a list"),
    "stabilise=10.": (lambda: held(stabilise=10.0), r"is 10.0; it must be a pair \(damping, stiffness\)"),
    "gains of a wrong size": (lambda: held(stabilise=([1, 2], 3)), r"damping has shape \(2,\)"),
    "a constraint that branches": (
        lambda: traced(lambda pose, q, t: [q[0] if q[0] > 0 else -q[0]]), r"write drevo.where\("
    ),
    "a constraint by math.sin": (lambda: traced(lambda pose, q, t: [math.sin(q[0])]), "take drevo.sin"),
    "a constraint that is a scalar": (lambda: traced(lambda pose, q, t: q[0]), r"return \[value, ...\]"),
    "a constraint of no link": (lambda: traced(lambda pose, q, t: [pose("lnk2")[0][3]]), "did you mean 'link2'"),
    "lqr without drives": (lambda: control.lqr(without_drives(), FULL, HALF), "no inputs.*actuate a joint"),
    "lqr of a robot": (lambda: control.lqr(arm(), FULL, HALF), "a linear model is needed, .* not Robot"),
    "R = 0": (lambda: control.lqr(linear(), FULL, 0.0 * HALF), "R must be positive definite"),
    "R < 0": (lambda: control.lqr(linear(), FULL, -HALF), "R must be positive definite.* -1"),
    "Q < 0": (lambda: control.lqr(linear(), -FULL, HALF), "Q must not be negative"),
    "Q = nan": (lambda: control.lqr(linear(), np.nan * FULL, HALF), "Q holds a value that is not finite"),
    "R = nan": (lambda: control.lqr(linear(), FULL, np.nan * HALF), "R holds a value that is not finite"),
    "Control(track(..))": (lambda: Control(tracker()), "give it to simulate as it is, tau=law"),
    "derivative by 2": (
        lambda: drevo.compile(arm(), "bias", wrt=2), "wrt must be a name or a list of names, not 2"
    ),
    "derivatives of a list": (
        lambda: drevo.compile(arm(), ["bias"], wrt="q"), r"quantity \['bias'\] is not known"
    ),
    "derivative of a pose": (
        lambda: drevo.compile(arm(), "pose", wrt="q"), "pose is of one link: say which by link="
    ),
    "write_out of a list": (lambda: drevo.write_out(arm(), ["bias"]), "one quantity by its name"),
    "actuated='joint1'": (
        lambda: arm().linearise(Q, REST, REST, actuated="joint1"), r"must be a list: actuated=\['joint1'"
    ),
    "a function for an event": (lambda: moved(events=[len]), r"events=\[drevo.simulate.Event\("),
    "every=2.5": (lambda: moved(every=2.5), "every is 2.5; it must be a whole number"),
    "duration='1'": (lambda: moved(duration="1"), "duration is '1'; it must be a positive number of seconds"),
    "a motion with contacts=5": (lambda: moved(contacts=5), "contacts is 5; it must be a list"),
    "a law with if": (lambda: moved(Control(lambda t, q, v: [1.0 if q[0] > 0 else 0.0] * 3)), r"drevo.where\("),
    "a law with np.clip": (lambda: moved(Control(lambda t, q, v: list(np.clip(q, -1, 1)))), "drevo.clip in place"),
    "dh.table of a name": (lambda: dh.table("puma560"), "takes a robot, as drevo.load gives it"),
    "Topology(['a'])": (lambda: Topology(["a"]), "link 1 has the parent 'a'; give its number"),
    "t.f('pelvis')": (lambda: arm().topology.f("pelvis"), "link 'pelvis' is not in the tree"),
    "a folder that is missing": (lambda: arm().to_json("no/such/x.json"), "there is no folder 'no/such'"),
    "a document's folder": (lambda: drevo.write_out(arm(), "gravity").save("no/x.md"), "there is no folder 'no'"),
    "an ending that is unknown": (lambda: drevo.write_out(arm(), "gravity").save("x.xyz"), "saved as .tex, .md,"),
    "a huge velocity": (lambda: arm().bias(Q, np.full(3, 1e200)), r"v\[0\] is as large as 1e\+200"),
    "H_99": (lambda: drevo.check_formulas(arm(), "H_99 = I_3^q"), "'H_99' is not in robot 'three-link'"),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_one_sentence(what: str) -> None:
    call, sentence = SAID[what]
    with pytest.raises(drevo.DrevoError, match=sentence) as e:
        call()
    assert "\n" not in str(e.value) and len(str(e.value)) < 700


def test_half_a_character(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(arm().to_json().replace('"three-link"', '"\\ud800"', 1))
    with pytest.raises(drevo.ModelError, match="half of a surrogate pair"):
        drevo.load(file)


def test_suggestions_are_public_and_near_in_meaning() -> None:
    robot = drevo.load("scara")
    with pytest.raises(AttributeError, match="a Robot has no 'limits'") as caught:
        robot.limits  # noqa: B018
    assert "'_" not in str(caught.value)
    for name in [x.strip("_") for x in dir(robot)] + ["limits", "frictions", "mass", "qpos", "cachd", "models"]:
        try:
            getattr(robot, name)
        except AttributeError as error:
            assert "did you mean '_" not in str(error)
    with pytest.raises(drevo.InputError, match="friction is of a motion on a ground: give ground="):
        robot.simulate(robot.neutral(), duration=0.1, friction=1.0)
    with pytest.raises(drevo.InputError, match="did you mean 'duration'"):
        robot.simulate(robot.neutral(), durations=1.0)
