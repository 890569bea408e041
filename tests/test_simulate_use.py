"""How `simulate` is used: events, records, tables, the command, what is refused."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from motions import G, released

import drevo
from drevo.errors import InputError, NumericsError
from drevo.robot.face import Robot
from drevo.simulate import METHODS, Control, Event, simulate
from drevo.simulate.integrators import RK4

# -- events, records ----------------------------------------------------------------------------------------


def _dropped() -> Robot:
    b = drevo.Builder("stone", gravity=(0.0, 0.0, -G))
    b.body("m", parent="world", joint="prismatic", axis=(0, 0, 1), mass=1.0, com=(0, 0, 0), inertia=np.eye(3))
    return b.robot()


@pytest.mark.parametrize("method", ["rk4", "gauss4", "dop853"])
@pytest.mark.parametrize("step", [0.013, 0.1])
def test_events(method: str, step: float) -> None:
    robot = _dropped()
    half = Event(lambda t, q, v: q[0] + 0.5, name="half way")
    floor = Event(lambda t, q, v: q[0] + 1.0, terminal=True, direction=-1, name="floor")
    never = Event(lambda t, q, v: q[0] + 0.7, direction=1, name="never")
    table = simulate(robot, [0.0], duration=2.0, dt=step, every=3, method=method, events=[floor, half, never])
    assert [e.name for e in table.events] == ["half way", "floor"]
    for event, fall in zip(table.events, (0.5, 1.0)):
        assert event.t == pytest.approx(np.sqrt(2.0 * fall / G), abs=1e-12)
        assert event.q[0] == pytest.approx(-fall, abs=1e-12)
    assert table.t[-1] == table.events[-1].t
    assert np.abs(table.q[:, 0] + 0.5 * G * table.t**2).max() < 1e-12


def test_times_of_records(chain: Robot) -> None:
    def times(**given: Any) -> Any:
        return simulate(chain, released(chain), **given).t

    assert times(duration=0.01, dt=0.001, every=4) == pytest.approx([0.0, 0.004, 0.008, 0.01])
    assert times(duration=0.0105, dt=0.004) == pytest.approx([0.0, 0.004, 0.008, 0.0105])
    assert times(duration=0.001, dt=0.004) == pytest.approx([0.0, 0.001])
    assert times(duration=0.05, dt=0.02, method="dop853") == pytest.approx([0.0, 0.02, 0.04, 0.05])
    assert times(duration=0.05, method="dop853")[-1] == 0.05


def test_the_last_shorter_step_and_records_do_not_change_the_motion(pendulum: Robot) -> None:
    fine = simulate(pendulum, [1.0, 0.5], duration=0.5, dt=1e-3)
    coarse = simulate(pendulum, [1.0, 0.5], duration=0.5, dt=1e-3, every=7)
    assert np.array_equal(coarse.q[1:-1], fine.q[7::7][: len(coarse) - 2])
    assert np.array_equal(coarse.q[-1], fine.q[-1])


def test_progress(chain: Robot) -> None:
    parts: list[float] = []
    simulate(chain, np.tile(released(chain), (300, 1)), duration=0.02, progress=parts.append)
    assert parts == sorted(parts)
    assert parts[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["rk4", "gauss6", "dop853"])
def test_the_state_at_any_time(method: str, pendulum: Robot) -> None:
    table = simulate(pendulum, [1.0, 0.5], duration=0.5, dt=1e-3, every=100, method=method, rtol=1e-12)
    exact = simulate(pendulum, [1.0, 0.5], duration=0.23456, method="dop853", rtol=1e-13)
    q, v = table.at(0.23456)
    assert np.abs(q - exact.q[-1]).max() < 1e-10
    assert np.abs(v - exact.v[-1]).max() < 1e-9
    assert np.array_equal(table.at(0.5)[0], table.q[-1])
    with pytest.raises(InputError, match="from 0 to"):
        table.at(0.6)
    again = pickle.loads(pickle.dumps(table))  # noqa: S301
    assert np.array_equal(again.q, table.q)
    with pytest.raises(InputError, match="pickle"):
        again.at(0.1)


# -- tables -------------------------------------------------------------------------------------------------


def test_tables_are_saved(tmp_path: Path, pendulum: Robot) -> None:
    table = simulate(pendulum, [0.3, 0.1], duration=0.05, every=5)
    table.save(tmp_path / "m.csv")
    lines = (tmp_path / "m.csv").read_text().splitlines()
    assert lines[0].startswith("t,q:")
    read = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    assert np.array_equal(read[:, 1:3], table.q)
    assert np.array_equal(read[:, 5], table.energy)
    table.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        assert np.array_equal(file["v"], table.v)
    with pytest.raises(InputError, match=r"\.npz, \.csv or \.parquet"):
        table.save(tmp_path / "m.xls")
    with pytest.raises(InputError, match="batch"):
        simulate(pendulum, np.zeros((2, 2)), duration=0.01).save(tmp_path / "b.csv")


def test_parquet_or_a_sentence(tmp_path: Path, pendulum: Robot) -> None:
    table = simulate(pendulum, [0.3, 0.1], duration=0.05, every=5)
    try:
        from pyarrow import parquet
    except ImportError:
        with pytest.raises(InputError, match="pyarrow"):
            table.save(tmp_path / "m.parquet")
        return
    table.save(tmp_path / "m.parquet")
    assert parquet.read_table(tmp_path / "m.parquet").column_names[0] == "t"


# -- refusals -----------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dt": -1e-3}, InputError, "dt is -0.001"),
    ({"duration": 0.0}, InputError, "duration is 0"),
    ({"duration": float("nan")}, InputError, "duration is nan"),
    ({"every": 0}, InputError, "every is 0"),
    ({"method": "rk5"}, InputError, "rk4"),
    ({"method": "dop853", "rtol": 0.0}, InputError, "rtol is 0"),
    ({"q0": np.zeros(3)}, InputError, r"q0 has shape \(3,\)"),
    ({"v0": np.zeros((2, 5))}, InputError, "v0 has shape"),
    ({"q0": np.zeros((2, 2)), "v0": np.zeros((3, 2))}, InputError, r"leading \(batch\) dimensions"),
    ({"tau": np.zeros(5)}, InputError, r"tau has shape \(5,\)"),
    ({"tau": np.zeros((3, 2))}, InputError, "tau has 3 rows; 100 steps"),
    ({"tau": np.zeros((100, 2)), "method": "dop853"}, InputError, "chooses its steps"),
    ({"tau": [np.nan, 0.0]}, NumericsError, "tau is not finite"),
    ({"tau": lambda t, q, v: np.zeros(7)}, InputError, "has shape"),
    ({"tau": Control(lambda t, q, v: [0.0])}, InputError, "gives 1 efforts"),
    ({"q0": [0.0, np.inf]}, NumericsError, "'lower_joint' is not finite at t = 0 s"),
    ({"q0": np.zeros((2, 2)), "events": [Event(lambda t, q, v: 1.0)]}, InputError, "events are of one motion"),
    ({"events": [Event(lambda t, q, v: np.nan, name="e")]}, NumericsError, "event 'e' gave nan at t = 0 s"),
]


@pytest.mark.parametrize(("given", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_bad_input(pendulum: Robot, given: dict[str, Any], error: type[Exception], text: str) -> None:
    q0 = given.get("q0", [0.1, 0.0])
    rest = {k: x for k, x in given.items() if k != "q0"}
    with pytest.raises(error, match=text):
        simulate(pendulum, q0, **{"duration": 0.1, **rest})


def test_quaternions_must_be_unit(tumbling: Robot) -> None:
    q0 = tumbling.neutral()
    q0[6] = 1.1
    with pytest.raises(NumericsError, match=r"q0: the quaternion of joint .* has length 1\.1"):
        simulate(tumbling, q0, duration=0.1)


@pytest.mark.parametrize("method", ["rk4", "gauss4", "dop853"])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_motion_that_explodes_names_time_and_joint(pendulum: Robot, method: str, compiled: bool) -> None:
    """A law that feeds the lower joint with the cube of its rate reaches infinity in finite time."""

    def law(t: Any, q: Any, v: Any) -> Any:
        return [0.0 * v[0], 50.0 * v[1] * v[1] * v[1]]

    tau = Control(law) if compiled else lambda t, q, v: np.array(law(t, q, v))
    with pytest.raises(NumericsError, match=r"t = [0-9.e-]+ s.*joint '(lower|upper)_joint'"):
        simulate(pendulum, [0.5, 0.5], [1.0, 2.0], tau, duration=3.0, dt=0.01, method=method)


def test_a_row_of_a_batch_that_explodes_is_named(pendulum: Robot) -> None:
    v0 = np.zeros((40, 2))
    v0[33] = 1e200
    with pytest.raises(NumericsError, match="row 33"):
        simulate(pendulum, np.zeros((40, 2)), v0, duration=0.1)


def test_methods_differ(pendulum: Robot) -> None:
    """The honest docstring of semi-implicit Euler: it does not keep energy where M depends on q."""
    worst = {
        m: simulate(pendulum, [2.0, 1.0], duration=5.0, dt=5e-3, method=m).energy_drift
        for m in ("semi_implicit_euler", "rk4", "gauss4")
    }
    assert worst["semi_implicit_euler"] > 100.0 * worst["rk4"]
    assert all(a.name != b.name for a, b in itertools.combinations(METHODS.values(), 2))
    assert "NOT symplectic" in METHODS["semi_implicit_euler"].reference
    assert METHODS["rk4"] is RK4


# -- the command --------------------------------------------------------------------------------------------


def test_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from drevo.cli.main import app

    path = tmp_path / "out.csv"
    run = CliRunner().invoke(
        app, ["simulate", "rod-chain", "--n", "10", "--duration", "1", "--plot", "-o", str(path)]
    )
    assert run.exit_code == 0, run.output
    assert "1000 steps of rk4" in run.output
    assert "* joint1" in run.output
    assert len(path.read_text().splitlines()) == 102
    facts = CliRunner().invoke(app, ["simulate", "rod-chain", "--duration", "0.5", "--method", "dop853", "--json"])
    assert json.loads(facts.output)["energy_drift"] < 1e-8
    for bad in (["--duration", "-1"], ["--q", "a,b"], ["--dt", "0"], ["--method", "euler9"]):
        assert CliRunner().invoke(app, ["simulate", "rod-chain", *bad]).exit_code == 2
    assert CliRunner().invoke(app, ["simulate", "biped", "--n", "3"]).exit_code == 2
