"""Motions and what they ask: trajectories from files and waypoints, envelopes, drives; the commands."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from loads_cases import LENGTH, MASS, TEXTBOOK, G, refused, rod
from typer.testing import CliRunner

import drevo
from drevo import loads
from drevo.cli.main import app

# -- trajectories ---------------------------------------------------------------------------------------------


def swing(rows: int = 101) -> loads.Trajectory:
    return loads.Trajectory.through(rod(), [[-0.5], [1.0], [0.2]], [0.0, 0.7, 1.1], rows)


def test_quintic_legs() -> None:
    x = swing()
    assert len(x) == 201
    for k in (0, 100, 200):
        assert np.abs([x.v[k, 0], x.a[k, 0]]).max() < 1e-12
    assert x.q[100, 0] == pytest.approx(1.0, abs=1e-15)
    filled = loads.Trajectory.of(x.robot, x.t[:101], x.q[:101])
    # fourth-order stencils on a quintic with steps of 7 ms: h^4 q^(5) / 20 at the ends, q^(5) = 720 * 1.5 / 0.7^5
    bound = 0.007**4 * 720 * 1.5 / 0.7**5
    assert np.abs(filled.v - x.v[:101]).max() < bound
    assert np.abs(filled.a - x.a[:101]).max() < 4 * bound / 0.007


def test_free_joint_between_waypoints() -> None:
    """v and a are those of q: by differences of order 8 on the manifold."""
    b = drevo.Builder("body")
    b.body("body", joint="free", mass=1.0, inertia=np.eye(3))
    robot = b.robot()
    stops = robot.random(np.random.default_rng(4), 2)
    x = loads.Trajectory.through(robot, stops, [0.0, 1.0], 1001)
    filled = loads.Trajectory.of(robot, x.t, x.q)
    assert np.abs(filled.v - x.v).max() < 1e-6
    assert np.abs(filled.a - x.a).max() < 1e-3


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_files_come_back(tmp_path: Path, ending: str) -> None:
    x = swing()
    x.save(tmp_path / f"x{ending}")
    back = loads.Trajectory.read(x.robot, tmp_path / f"x{ending}")
    assert all(np.array_equal(getattr(back, n), getattr(x, n)) for n in "tqva")


def test_a_simulation_is_a_trajectory(tmp_path: Path) -> None:
    robot = rod()
    table = robot.simulate([0.3], duration=0.5, every=5)
    x = loads.Trajectory.simulated(table)
    assert np.abs(robot.inverse_dynamics(x.q, x.v, x.a)).max() < 1e-12
    table.save(tmp_path / "fall.csv")
    read = loads.Trajectory.read(robot, tmp_path / "fall.csv")
    # stencils at the ends err by h^4 v^(5) / 5; v is some 7 rad/s at up to the third harmonic of 4.3 rad/s: 3e-5
    assert np.abs(read.a - x.a).max() < 3e-5
    driven = loads.Trajectory.simulated(robot.simulate([0.3], tau=[2.0], duration=0.1), [2.0])
    assert np.abs(robot.inverse_dynamics(driven.q, driven.v, driven.a) - 2.0).max() < 1e-12


# -- drives and envelopes ---------------------------------------------------------------------------------------


def test_drives() -> None:
    """tau = J a - m g l/2 cos q; the work of a cycle from rest to rest is the change of the potential energy."""
    x = swing(2001)
    found = loads.drives(x.robot, x)
    tau = MASS * LENGTH**2 / 3 * x.a[:, 0] - MASS * G * LENGTH / 2 * np.cos(x.q[:, 0])
    assert np.abs(found.effort[:, 0] - tau).max() < TEXTBOOK
    assert found.peak[0] == pytest.approx(np.abs(tau).max(), rel=1e-14)
    assert found.rms[0] == pytest.approx(np.sqrt(np.trapezoid(tau**2, x.t) / 1.1), rel=1e-14)
    rise = np.diff(x.robot.potential_energy(x.q[[0, -1]]))[0]
    assert found.energy.sum() == pytest.approx(rise, abs=1e-5)  # trapezoids: h^2 P'' / 12
    assert found.rows()[0]["limit"] is None


def still_of(robot: drevo.Robot) -> loads.Trajectory:
    none = np.zeros((1, robot.nv))
    return loads.Trajectory(robot, np.zeros(1), none, none, none)


def test_envelope(tmp_path: Path) -> None:
    x = swing()
    found = loads.envelope(x.robot, x, "rod", 5)
    each = loads.section_loads(x.robot, x.q, x.v, x.a, "rod", found.s).total
    assert np.array_equal(found.low, each.min(axis=0))
    assert np.array_equal(found.high, each.max(axis=0))
    assert np.array_equal(found.at(0.35), each[50])
    puma = drevo.load("puma560")
    between = loads.envelope(puma, still_of(puma), "link2", 5)
    assert len(between.s) == 5 + 3  # both sides of the joint that holds it
    case = next(c for c in found.cases() if c["component"] == "bending_y" and c["extreme"] == "largest")
    assert case["bending_y"] == each[..., 4].max()
    found.save(tmp_path / "rod.csv")
    rows = list(csv.DictReader((tmp_path / "rod.csv").read_text().splitlines()))
    assert [float(r["bending_y_largest"]) for r in rows] == found.high[:, 4].tolist()
    assert [float(r["x"]) for r in rows] == found.s.tolist()
    found.save_history(tmp_path / "history.csv")
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 1 + len(x) * 5
    for text in (found.svg(), loads.drives(x.robot, x).svg()):
        ElementTree.fromstring(text)
        assert "nan" not in text


# -- what is refused --------------------------------------------------------------------------------------------


def test_refused_trajectories(tmp_path: Path) -> None:
    robot = rod()

    def csv_of(text: str) -> str:
        (tmp_path / "x.csv").write_text(text)
        return refused(lambda: loads.Trajectory.read(robot, tmp_path / "x.csv"))

    assert "lacks the columns q:rod_joint" in csv_of("t,q:rod\n0,1\n")
    assert "has the unknown columns w" in csv_of("t,q:rod_joint,w\n0,1,2\n")
    assert "line 3: could not convert string to float: 'x'" in csv_of("t,q:rod_joint\n0,1\n1,x\n")
    assert "3 cells in line 2" in csv_of("t,q:rod_joint\n0,1,2\n")
    assert "q holds a value that is not finite: nan at index 1, 0" in csv_of(
        "t,q:rod_joint,v:rod_joint\n0,1,0\n1,nan,0\n"
    )
    text = csv_of("t,q:rod_joint\n0,1\n1,1\n1,1\n2,1\n3,1\n")
    assert "time does not rise from row 1 (1 s) to row 2 (1 s)" in text
    assert "5 rows or more to differentiate" in csv_of("t,q:rod_joint\n0,1\n1,1\n")
    assert "too unevenly" in csv_of("t,q:rod_joint\n0,1\n1,1\n2,1\n3,1\n1e200,1\n")
    (tmp_path / "x.csv").write_bytes(b"t,q\xff\n")
    assert "no readable .csv" in refused(lambda: loads.Trajectory.read(robot, tmp_path / "x.csv"))
    for broken in (b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)):
        (tmp_path / "x.npz").write_bytes(broken)
        found = refused(lambda: loads.Trajectory.read(robot, tmp_path / "x.npz"))
        assert "no readable .npz" in found or "lacks t and q" in found
    assert "read from a path, not None" in refused(lambda: loads.Trajectory.read(robot, None))  # type: ignore[arg-type]
    assert "does not exist" in refused(lambda: loads.Trajectory.read(robot, tmp_path / "none.csv"))
    np.savez(tmp_path / "x.npz", t=[0.0, 1.0])
    assert "lacks q" in refused(lambda: loads.Trajectory.read(robot, tmp_path / "x.npz"))
    assert "q has shape (2, 2)" in refused(lambda: loads.Trajectory(robot, [0, 1], np.ones((2, 2)), [[0]], [[0]]))


def test_a_trajectory_off_its_loop_is_refused() -> None:
    b = drevo.Builder("loop")
    for name in ("a", "b"):
        b.body(name, axis=(0, 0, 1), mass=1.0, com=(0.2, 0, 0), inertia=0.01 * np.eye(3))
    b.loop("point", "a", (0.4, 0, 0), "b", (0.4, 0, 0))
    robot = b.robot()
    still = loads.Trajectory(robot, [0.0, 0.5], [[0.1, 0.1], [0.1, 0.2]], np.zeros((2, 2)), np.zeros((2, 2)))
    for call in (lambda: loads.envelope(robot, still, "a"), lambda: loads.drives(robot, still)):
        text = refused(call)
        assert text.startswith("the trajectory violates its constraints: at t = 0.5 s it is 0.0")
        assert "point_to_point(a, b)" in text


# -- the command --------------------------------------------------------------------------------------------------


def command(*words: object) -> Any:
    return CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture
def stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "stops.csv"
    heads = ",".join(["t", *(f"q:joint{k}" for k in range(1, 7))])
    path.write_text(heads + "\n0,0,0,0,0,0,0\n1,1,-1,1,0.5,0.5,0.2\n2,0,0,0,0,0,0\n")
    return path


def test_command_loads(stops: Path) -> None:
    words = ["loads", "puma560", "--trajectory", stops, "--waypoints", "--link", "link2"]
    result = command(*words, "--plot", "-o", "link2.csv")
    drawn = command(*words, "-o", "link2.svg")
    assert result.exit_code == 0, result.output
    assert "held at s = 0 m" in result.stdout
    assert "+-----" in result.stdout and "saved link2.svg" in drawn.stdout
    assert ElementTree.fromstring(Path("link2.svg").read_text()).tag.endswith("svg")
    facts = json.loads(command(*words, "--json").stdout)
    rows = list(csv.DictReader(Path("link2.csv").read_text().splitlines()))
    assert [float(r["axial_least"]) for r in rows] == [x[0] for x in facts["least"]]
    assert [d["joint"] for d in facts["drives"]] == [f"joint{k}" for k in range(1, 7)]
    assert command("loads", "puma560", "--trajectory", stops, "--waypoints", "--plot").exit_code == 0
    span = ["--from", "0,0,0", "--to", "0.4,0,0"]
    assert "from (0, 0, 0) to (0.4, 0, 0)" in command(*words, *span).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--link", "link9"), "link 'link9' is not in robot 'puma560'"),
        (("--link", "link2", "--distribution", "shapes"), "no distribution by shapes"),
        (("--link", "link2", "--from", "0,0,0"), "give --from and --to"),
        (("--link", "link2", "-o", "x.txt"), "saved as .csv, .svg, .png or .pdf"),
    ],
)
def test_command_loads_refuses(stops: Path, words: tuple[str, ...], says: str) -> None:
    result = command("loads", "puma560", "--trajectory", stops, "--waypoints", *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_command_linearise(tmp_path: Path) -> None:
    """The chain that hangs has ten frequencies and no damping; upright it falls ten ways."""
    hang = ",".join(["-1.5707963267948966", *["0"] * 9])
    result = command("linearise", "rod-chain", "--q", hang, "-o", tmp_path / "x.npz")
    assert result.exit_code == 0, result.output
    assert "unstable motions: 0" in result.stdout
    robot = drevo.load("rod-chain")
    q = np.array([float(x) for x in hang.split(",")])
    with np.load(tmp_path / "x.npz") as saved:
        K = robot.inverse_dynamics_derivatives(q, np.zeros(10), np.zeros(10))[0]
        squares = np.linalg.eigvals(np.linalg.solve(robot.mass_matrix(q), K))
        found = np.sort(np.abs(saved["eigenvalues"].imag))[::2]
        assert np.abs(found - np.sort(np.sqrt(squares.real))).max() < 1e-9
    up = json.loads(command("linearise", "rod-chain", "--q", hang[1:], "--json").stdout)
    assert sum(re > 0 for re, _ in up["eigenvalues"]) == 10
    assert np.shape(up["B"]) == (20, 10)
    assert "saved as .npz" in command("linearise", "rod-chain", "-o", "x.csv").stderr
    for option in ("--q", "--v", "--tau"):
        assert (
            f"{option} has 2 numbers; this robot needs 10"
            in command("linearise", "rod-chain", option, "1,2").stderr
        )
