"""The slides' program as text: run by Octave and by Python, against Drevo's accelerations and motions."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from test_vereshchagin_planar import plane_tree

import drevo
from drevo.papers.program import separate_bodies_program
from drevo.robots import rod_chain

CHAIN = json.loads((Path(__file__).parent / "data" / "yudintsev-chain.json").read_text())


def cart():
    """A slide with a tree on it: two hinges, one against the other's axis, and a slide on an arm."""
    b = drevo.Builder("cart", gravity=(0.0, -9.81, 0.0))
    box = np.diag([0.1, 0.2, 0.3])
    b.body("cart", joint="prismatic", axis=(1.0, 0.5, 0.0), mass=2.0, com=(0.1, 0.0, 0.0), inertia=box)
    b.body("arm", "cart", axis=(0, 0, 1), origin=(0.1, 0.2, 0), mass=1.0, com=(0.2, 0.1, 0.0), inertia=box)
    b.body(
        "tool",
        "arm",
        joint="prismatic",
        axis=(0, 1, 0),
        origin=(0.4, 0, 0),
        mass=0.5,
        com=(0.0, 0.3, 0),
        inertia=box,
    )
    b.body("back", "cart", axis=(0, 0, -1), origin=(-0.1, 0.2, 0), mass=1.5, com=(-0.2, 0.1, 0.0), inertia=box)
    return b.robot()


def python_program(robot, **given):
    space = {"__name__": "program"}
    exec(compile(separate_bodies_program(robot, "python", **given)["program.py"], "program.py", "exec"), space)
    return space


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_python_gives_the_accelerations(seed) -> None:
    robot = cart() if seed is None else drevo.Robot(plane_tree(seed))
    program = python_program(robot)
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, robot.nv))
    want = robot.forward_dynamics(q, v, tau)
    got = program["dqdt"](0.0, np.r_[q, v], tau)
    assert np.array_equal(got[: robot.nv], v)
    assert np.abs(got[robot.nv :] - want).max() < 1e-11 * np.abs(want).max()
    still = program["energy"](np.r_[0.0 * q, 0.0 * v])
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q) - robot.potential_energy(0.0 * q)
    assert abs(program["energy"](np.r_[q, v]) - still - energy) < 1e-10 * max(1.0, abs(energy))


def test_the_slides_chain_falls_as_the_reference() -> None:
    robot = rod_chain(10)
    program = python_program(robot, q=[-1.0, *[0.0] * 9])
    start = np.array([*CHAIN["q"][0], *CHAIN["qd"][0]])
    t = [x for x in CHAIN["t"] if x <= 0.5]
    motion = solve_ivp(program["dqdt"], (0.0, 0.5), start, "DOP853", t, rtol=1e-11, atol=1e-13).y
    assert np.abs(motion[:10].T - np.array(CHAIN["q"])[: len(t)]).max() < 1e-9
    assert abs(program["energy"](motion[:, -1]) - program["energy"](start)) < 1e-9


@pytest.mark.skipif(not shutil.which("octave"), reason="Octave is not installed")
@pytest.mark.parametrize("name", ["cart", "chain"])
def test_octave_gives_the_accelerations(name: str, tmp_path: Path) -> None:
    robot = cart() if name == "cart" else rod_chain(4)
    files = separate_bodies_program(robot, "matlab", q=[0.1] * robot.nq, duration=0.2)
    assert {"main.m", "dqdt.m", "getCk.m", "getSk.m", "getWprim.m", "getMkQkiUk.m", "getA.m"} <= set(files)
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    rng = np.random.default_rng(4)
    q, v, tau = rng.normal(size=(3, robot.nv))
    rows = ["; ".join(map(repr, x.tolist())) for x in (np.r_[q, v], tau)]
    ask = f"x = [{rows[0]}]; tau = [{rows[1]}]; printf('%.17g\\n', [dqdt(0, x, tau); energy(x)])"
    command = ["octave", "--no-gui", "--quiet", "--no-init-file", "--eval", ask]
    run = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    numbers = np.array([float(x) for x in run.stdout.split()])
    want = np.r_[v, robot.forward_dynamics(q, v, tau)]
    assert np.abs(numbers[:-1] - want).max() < 1e-11 * np.abs(want).max()
    program = python_program(robot)
    assert abs(numbers[-1] - program["energy"](np.r_[q, v])) < 1e-11 * max(1.0, abs(numbers[-1]))


def test_what_it_does_not_take_is_said() -> None:
    with pytest.raises(drevo.DrevoError, match="takes every joint"):
        separate_bodies_program(drevo.load("screw-arm"))
    with pytest.raises(drevo.DrevoError, match="language"):
        separate_bodies_program(cart(), "fortran")
    with pytest.raises(drevo.DrevoError, match="shape"):
        separate_bodies_program(cart(), q=[0.0])
