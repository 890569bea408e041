"""simulate refuses what would never end or cannot be meant, in a sentence; a law is compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from drevo.errors import InputError, NumericsError
from drevo.robot.face import Robot
from drevo.robots import rod_chain
from drevo.simulate import METHODS, Control, Event, Integrator, damping, motion, simulate


@pytest.fixture(scope="module")
def chain() -> Robot:
    return rod_chain(3)


def half(*_: object) -> float:
    return 0.5


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "too many steps": ({"duration": 1e8}, r"1e\+11 of them, more than max_steps=10000000"),
    "no step at all": ({"dt": 1e-300}, "max_steps"),
    "too many records": ({"method": "dop853", "dt": 1e-9}, "max_steps=100000"),
    "rtol below doubles": ({"method": "dop853", "rtol": 1e-20}, "rtol is 1e-20; .* from 1e-14"),
    "max_steps": ({"max_steps": 0}, "max_steps is 0; it must be a whole number from 1"),
    "a function for an event": ({"events": [half]}, r"Event\(function"),
    "one event": ({"events": 3}, "events holds int"),
    "every": ({"every": 2.5}, "every is 2.5; it must be a whole number"),
    "duration": ({"duration": "1"}, "duration is '1'; it must be a positive number of seconds"),
    "a subnormal duration": ({"duration": 1e-320, "method": "dop853"}, "duration is .* seconds from 2.2"),
    "a subnormal dt": ({"dt": 1e-320}, "dt is .* seconds from 2.2"),
    "no duration": ({"duration": None}, "duration is None"),
    "complex duration": ({"duration": 1j}, "duration is 1j"),
    "dt nan": ({"dt": float("nan")}, "dt is nan"),
    "a ragged dt": ({"dt": [[1.0], [1.0, 2.0]]}, "dt is"),
    "constraints as an array": ({"constraints": np.zeros(3)}, "constraints"),
    "dt negative": ({"dt": -1e-3}, "dt is -0.001"),
    "method": ({"method": "euler"}, "method 'euler' is not known"),
    "method in a list": ({"method": ["rk4"]}, "method .* is not known"),
    "progress": ({"progress": 3}, "progress"),
    "size": ({"q0": [0.0, 0.0]}, r"q0 has shape \(2,\)"),
    "complex state": ({"q0": np.full(3, 1j)}, "q0 must hold real numbers"),
    "efforts": ({"tau": lambda t, q, v: "x"}, "must hold real numbers"),
    "a law that branches": ({"tau": Control(lambda t, q, v: [1.0 if x > 0 else 0.0 for x in q])}, "law"),
    "a law of a wrong size": ({"tau": Control(lambda t, q, v: [q[0]])}, "1 efforts for 3 freedoms"),
    "damping": ({"tau": damping(float("nan"))}, "coefficients holds a value that is not finite: nan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(chain: Robot, case: str) -> None:
    given, sentence = WRONG[case]
    given = {"q0": np.full(3, 0.1), "duration": 0.01, **given}
    with pytest.raises(InputError, match=sentence):
        simulate(chain, given.pop("q0"), **given)


def test_memory_that_cannot_be_had(chain: Robot) -> None:
    """A hundred million robots, given without memory of their own, are refused before they are copied."""
    with pytest.raises(InputError, match=r"records of 600000000 numbers need .* GB"):
        simulate(chain, np.broadcast_to(np.zeros(3), (10**8, 3)), duration=1.0)


def test_an_adaptive_motion_ends_at_its_bound(chain: Robot) -> None:
    with pytest.raises(NumericsError, match=r"max_steps=20 at t = .* s of 100 s: loosen rtol=1e-09"):
        simulate(chain, np.full(3, 0.1), duration=100.0, method="dop853", max_steps=20)
    assert simulate(chain, np.full(3, 0.1), duration=0.1, method="dop853").steps < 20


def test_a_speed_that_overflows_is_named(chain: Robot) -> None:
    with pytest.raises(NumericsError, match=r"overflows at t = 0 s: joint 'joint1' moves at 1e\+200"):
        simulate(chain, np.zeros(3), np.full(3, 1e200), duration=0.01)


def test_events_and_integrators_are_checked() -> None:
    with pytest.raises(InputError, match="direction is 7; it must be a whole number from -1 to 1"):
        Event(half, direction=7)
    for weights in ((float("nan"),), ("x",), ()):
        with pytest.raises(InputError, match="integrator 'own'"):
            Integrator("own", 1, ((0.0,),) if weights else (), weights, "")
    for given, words in (
        ({"rows": None}, "rows must hold real numbers"), ({"rows": ((0.0, 1.0),)}, "rows has shape"),
        ({"rows": ()}, "1 weights need 1 rows of 1 numbers"), ({"errors": 2.5}, "errors has shape"),
        ({"name": 1.0}, "name is 1.0; it must be text"), ({"name": 2000 * "q"}, "text of at most 100"),
        ({"reference": None}, "reference is None; it must be text"), ({"order": 1.5}, "order is 1.5"),
        ({"errors": [[1.0]] * 3}, "2 errors at most"), ({"q_weights": (1.0, 2.0)}, "q_weights has shape"),
    ):  # fmt: skip
        right = {"name": "own", "order": 1, "rows": ((0.0,),), "weights": (1.0,), "reference": ""}
        with pytest.raises(InputError, match=words):
            Integrator(**right | given)
    assert Integrator("own", 1, np.zeros((1, 1)), [1], "").rows == ((0.0,),)
    for name in (1.0, 2000 * "q"):
        with pytest.raises(InputError, match=r"event: name is .*; it must be text of at most 100 characters"):
            Event(half, name=name)


def test_a_table_that_cannot_be_written(chain: Robot) -> None:
    with pytest.raises(InputError, match="a table cannot be saved as"):
        simulate(chain, np.zeros(3), duration=0.002).save("/no such folder/x.npz")


def test_a_law_is_known_by_what_it_traces_to(chain: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the docs write it, tau=damping(0.1) is a new object at every call; it is made once."""
    made = []
    make = motion.machine_code
    monkeypatch.setattr(motion, "machine_code", lambda *x: made.append(x) or make(*x))
    tables = [simulate(chain, np.full(3, 0.1), duration=0.01, tau=damping(0.1)) for _ in range(3)]
    law = Control(lambda t, q, v: [-0.1 * x for x in v])
    tables.append(simulate(chain, np.full(3, 0.1), duration=0.01, tau=law))
    assert len(made) == 1 and all(np.array_equal(x.q, tables[0].q) for x in tables)
    other = simulate(chain, np.full(3, 0.1), duration=0.01, tau=damping(0.2))
    assert len(made) == 2 and not np.array_equal(other.q, tables[0].q)


@pytest.mark.parametrize("tau", [None, np.zeros(3), lambda t, q, v: np.zeros(3)])
def test_an_empty_batch_is_an_empty_table(chain: Robot, tau: Any) -> None:
    assert simulate(chain, np.zeros((0, 3)), tau=tau, duration=0.002).q.shape == (3, 0, 3)
    for method in METHODS:
        assert simulate(chain, np.zeros((0, 3)), tau=tau, duration=0.002, method=method).q.shape[1:] == (0, 3)


def test_a_controller_that_diverges_is_told_by_the_fastest_joint(chain: Robot) -> None:
    given: dict[str, Any] = {"duration": 1.0, "dt": 0.001, "ground": "plane", "law": "soft"}
    with pytest.raises(NumericsError, match=r"the motion overflows: joint '.*' moves at .*a smaller dt"):
        chain.simulate(np.zeros(3), np.ones(3), lambda t, q, v: 1e6 * v, **given)
    with pytest.raises(NumericsError, match=r"tau\[0\] is nan"):
        chain.simulate(np.zeros(3), np.ones(3), lambda t, q, v: np.nan * v, **given)
    with pytest.raises(InputError, match=r"not as 'motion.png'; .plot\(path\) saves a picture"):
        chain.simulate(np.zeros(3), duration=0.01).save("motion.png")
