"""FMUs and S-functions: their numbers are Drevo's, in FMPy and in a compiler of C with a stand-in for Simulink."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.control import computed_torque, lqr, pd, trim
from drevo.errors import EmitError, InputError, TraceError

Array = np.ndarray
FOLDER = Path(__file__).parent / "targets"
AT = [0.1, -0.8, 0.6, 0.2, 0.9, 0.3]
HELD = [0.1, -0.8, 0.6, 0.2]
SAME = 1e-12  # of the largest
SHORT = 0.1  # s


def simulated(file: Path, start: dict[str, float], output: list[str], **given: Any) -> Array:
    """(records, outputs) of FMPy at 0, 10, 20, ... ms."""
    from fmpy import simulate_fmu

    rows = simulate_fmu(
        str(file), start_values=start, stop_time=SHORT, output_interval=0.01, output=output, **given
    )
    return np.array([list(row)[1:] for row in rows])


def names(robot: Any, letter: str) -> list[str]:
    """FMI's names of q, v, tau or a."""
    kind = "q" if letter == "q" else "v"
    parts = [(joint, index) for joint, index in robot.model.freedoms(kind)]
    many = {j for j, _ in parts if sum(x == j for x, _ in parts) > 1}
    seen: dict[str, int] = {}
    for j, _ in parts:
        seen[j] = seen.get(j, 0) + 1
        yield f"{j}.{letter}[{seen[j]}]" if j in many else f"{j}.{letter}"


@pytest.mark.needs("fmpy", "gcc")
def test_the_arm_in_fmpy(tmp_path: Path) -> None:
    """Valid by the schema; co-simulation is rk4 of robot.simulate, derivatives are forward dynamics."""
    from fmpy.validation import validate_fmu

    robot = drevo.load("puma560")
    made = drevo.export(robot, "forward_dynamics", "fmu", folder=tmp_path, q0=AT)
    (file,) = made.files
    assert validate_fmu(str(file)) == []
    q, v, a, tau = ([*names(robot, x)] for x in ("q", "v", "a", "tau"))
    torques = np.linspace(-3.0, 4.0, 6)
    given = dict(zip(tau, torques))
    got = simulated(file, given, [*q, *v, *a], fmi_type="CoSimulation")
    wanted = robot.simulate(AT, np.zeros(6), torques, duration=SHORT, dt=1e-3)
    a_wanted = robot.forward_dynamics(wanted.q, wanted.v, torques)
    for k, x in enumerate((wanted.q, wanted.v, a_wanted)):
        assert np.abs(got[:, 6 * k : 6 * k + 6] - x[::10]).max() < SAME * np.abs(x).max()
    heavier = simulated(file, {**given, "link3.mass": 10.0}, [*q, *v, *a], fmi_type="CoSimulation")
    light = drevo.compile(robot, "forward_dynamics", parameters=["link3.mass"])
    wanted_a = light(heavier[:, :6], heavier[:, 6:12], torques, np.array([10.0]))
    assert np.abs(heavier[:, 12:] - wanted_a).max() < SAME * np.abs(wanted_a).max()


@pytest.mark.needs("fmpy", "gcc")
def test_model_exchange_of_any_joint(tmp_path: Path) -> None:
    """A free body with a ball, a slider and a screw on it: CVODE's solution is that of robot.simulate."""
    b = drevo.Builder("odd joints")
    b.body("a", joint="free", mass=2.0, com=(0.1, 0, 0), inertia=np.diag([0.3, 0.4, 0.5]))
    b.body("b", "a", joint="spherical", mass=1.0, com=(0, 0.2, 0), inertia=np.diag([0.1, 0.1, 0.05]))
    b.body("c", "b", joint="prismatic", axis=(1, 0, 0), mass=0.5, com=(0, 0, 0), inertia=np.eye(3) * 0.1)
    b.body("d", "a", joint="helical", axis=(0, 1, 0), lead=0.1, mass=0.5, com=(0.1, 0, 0), inertia=np.eye(3) * 0.1)
    robot = b.robot()
    rng = np.random.default_rng(0)
    q0, v0 = robot.random(rng), rng.normal(size=robot.nv)
    (file,) = drevo.export(robot, "forward_dynamics", "fmu", folder=tmp_path, q0=q0).files
    q, v = [*names(robot, "q")], [*names(robot, "v")]
    wanted = robot.simulate(q0, v0, duration=SHORT, dt=1e-3)
    for kind, close in (("ModelExchange", 1e-6), ("CoSimulation", 1e-9)):
        more = {"relative_tolerance": 1e-9} if kind == "ModelExchange" else {}
        got = simulated(file, dict(zip(v, v0)), [*q, *v], fmi_type=kind, **more)
        assert np.abs(got[-1, : robot.nq] - wanted.q[-1]).max() < close
        assert np.abs(got[-1, robot.nq :] - wanted.v[-1]).max() < 10 * close


def laws(robot: Any) -> list[Any]:
    held = trim(robot, np.array(HELD))
    model = robot.linearise(held.q, np.zeros(4), held.tau)
    return [
        lqr(model, 1.0, 1.0),
        pd(robot, HELD, 10.0, 0.5),
        computed_torque(robot, lambda t: [0.1 * drevo.sin(3.0 * t) + x for x in HELD], 100.0, 20.0),
    ]


@pytest.mark.needs("fmpy", "gcc")
@pytest.mark.parametrize("which", range(3))
def test_a_controller_inside(which: int, tmp_path: Path) -> None:
    robot = drevo.load("scara")
    law = laws(robot)[which]
    start = np.array(HELD) + 0.05
    (file,) = drevo.export(law, "held", "fmu", folder=tmp_path, q0=start).files
    assert file.name == "scara_held.fmu"
    names_of = [*names(robot, "q"), *(f"{j}.control" for j in robot.joint_names)]
    got = simulated(file, {}, names_of, fmi_type="CoSimulation")
    wanted = robot.simulate(start, np.zeros(4), law, duration=SHORT, dt=1e-3)
    assert np.abs(got[:, :4] - wanted.q[::10]).max() < SAME * 3
    torques = [law(0.01 * k, x, u) for k, (x, u) in enumerate(zip(wanted.q[::10], wanted.v[::10]))]
    assert np.abs(got[:, 4:] - torques).max() < 1e-10 * np.abs(torques).max()


@pytest.mark.needs("fmpy", "gcc")
def test_states_are_kept_and_refusals_said(tmp_path: Path) -> None:
    """An instance by itself: a kept state, one in bytes, a reset; what cannot be set is an error."""
    from fmpy import extract, read_model_description
    from fmpy.fmi1 import FMICallException
    from fmpy.fmi3 import FMU3Slave

    (file,) = drevo.export(drevo.load("scara"), "forward_dynamics", "fmu", folder=tmp_path).files
    about = read_model_description(str(file))
    at = {x.name: x.valueReference for x in about.modelVariables}
    fmu = FMU3Slave(
        guid=about.guid, unzipDirectory=extract(str(file), str(tmp_path / "x")), modelIdentifier="scara",
        instanceName="one",
    )  # fmt: skip
    fmu.instantiate()
    fmu.enterInitializationMode(startTime=0.0)
    fmu.exitInitializationMode()
    drop = [at["joint3.q"]]
    fmu.doStep(0.0, 0.1)
    kept, first = fmu.getFMUState(), fmu.getFloat64(drop)
    data = fmu.serializeFMUState(kept)
    fmu.doStep(0.1, 0.1)
    second = fmu.getFloat64(drop)
    for state in (kept, fmu.deserializeFMUState(data)):
        fmu.setFMUState(state)
        assert fmu.getFloat64(drop) == first
        fmu.doStep(0.1, 0.1)
        assert fmu.getFloat64(drop) == second
        fmu.freeFMUState(state)
    for name, value in (("joint1.a", 1.0), ("joint1.tau", np.nan), ("integrator_step", 0.0)):
        with pytest.raises(FMICallException):
            fmu.setFloat64([at[name]], [value])
    fmu.reset()
    assert fmu.getFloat64(drop) == [0.0]
    fmu.terminate()
    fmu.freeInstance()


@pytest.mark.needs("gcc")
def test_the_source_is_plain_c(tmp_path: Path) -> None:
    """With every warning an error, and the archive is the same when it is made again."""
    (file,) = drevo.export(drevo.load("scara"), "forward_dynamics", "fmu", folder=tmp_path).files
    with zipfile.ZipFile(file) as archive:
        archive.extract("sources/scara.c", tmp_path)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fPIC", "-c", "-o", "scara.o"]
    subprocess.run(["gcc", *flags, "sources/scara.c"], cwd=tmp_path, check=True)
    (again,) = drevo.export(drevo.load("scara"), "forward_dynamics", "fmu", folder=tmp_path / "again").files
    assert again.read_bytes() == file.read_bytes()


def test_without_a_compiler_it_holds_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_: None)
    made = drevo.export(drevo.load("scara"), "forward_dynamics", "fmu", folder=tmp_path, name="arm")
    with zipfile.ZipFile(made.files[0]) as archive:
        assert sorted(archive.namelist()) == [
            "modelDescription.xml", "sources/arm.c", "sources/buildDescription.xml"
        ]  # fmt: skip
    assert "no C compiler" in str(made)


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("controlled", [False, True])
def test_the_s_function(controlled: bool, tmp_path: Path) -> None:
    """Against a stand-in for simstruc.h: sizes, outputs and derivatives; the masses of the block's parameter."""
    robot = drevo.load("scara")
    what = pd(robot, HELD, 100.0, 20.0) if controlled else robot
    start = np.array(HELD) + 0.1
    quantity = "held" if controlled else "forward_dynamics"
    source, script = drevo.export(what, quantity, "simulink", folder=tmp_path, q0=start).files
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{FOLDER}", "-o", "run"]
    subprocess.run(["gcc", *flags, source.name, "-lm"], cwd=tmp_path, check=True)
    torques = np.linspace(-3.0, 4.0, 4)
    rest = np.zeros(4)
    law = what(0.0, start, rest) if controlled else rest
    masses = [f"link{k}.mass" for k in range(1, 5)]
    f = drevo.compile(robot, "forward_dynamics", parameters=masses)
    own = np.array([link.inertial.mass for link in robot.model.links[1:]])
    for factor in (1, 2):
        text = " ".join(map(repr, torques.tolist()))
        run = subprocess.run(
            ["./run", str(factor)], cwd=tmp_path, input=text, check=True, capture_output=True, text=True
        )
        sizes, *numbers = run.stdout.splitlines()
        assert sizes == f"8 4 {3 if controlled else 2} 1 0"
        a = f(start, rest, torques + law, factor * own)
        wanted = np.concatenate([start, rest, *([law] if controlled else []), rest, a])
        assert np.abs(np.array(numbers, float) - wanted).max() < SAME * np.abs(wanted).max()
    refused = subprocess.run(["./run", "x"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 1 and "state at the start" in refused.stdout
    text = script.read_text()
    assert f"mex('{source.name}');" in text and "joint1.tau, N m" in text


def test_refusals(tmp_path: Path) -> None:
    robot = drevo.load("scara")
    for what, quantity, given, words in (
        (robot, "gravity", {}, "a robot that moves"),
        (robot, "forward_dynamics", {"dtype": "float32"}, "float64"),
        (robot, "forward_dynamics", {"wrt": "q"}, "takes no 'wrt'"),
        (robot, "forward_dynamics", {"q0": [0.0]}, "q0"),
        (robot, "forward_dynamics", {"parameters": ["mass9"]}, "names nothing"),
    ):  # fmt: skip
        with pytest.raises((EmitError, InputError, TraceError), match=words):
            drevo.export(what, quantity, "fmu", folder=tmp_path, **given)
    held = trim(robot, np.zeros(4))
    law = lqr(robot.linearise(held.q, np.zeros(4), held.tau).discretised(0.01), 1.0, 1.0)
    with pytest.raises(InputError, match="design it without dt"):
        drevo.export(law, "held", "simulink", folder=tmp_path)
    assert not [*tmp_path.iterdir()]
