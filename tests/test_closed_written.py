"""Closed forms on paper and in other languages; pickles and copies; the nearest branch along a path."""

from __future__ import annotations

import copy
import ctypes
import json
import pickle
import subprocess
from typing import Any

import numpy as np
import pytest
from closed_cases import arm, link_of
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app


def poses_of(robot: drevo.Robot, count: int, far: int) -> Any:
    """Poses of random configurations, the first ones moved out of reach."""
    q = np.random.default_rng(5).uniform(-2.5, 2.5, (count, robot.nq))
    T = robot.pose(q, link_of(robot))
    T[:far, 0, 3] += 10.0
    return T


def agree(q: Any, real: Any, branches: Any, tolerance: float) -> None:
    """Marked branches are those of the compiled function, and no others."""
    assert np.array_equal(np.asarray(real) > 0.5, np.isfinite(branches[..., 0]))
    q = np.where(np.asarray(real)[..., None] > 0.5, q, np.nan)
    np.testing.assert_allclose(q, branches, atol=tolerance)


@pytest.mark.parametrize("name, given", [("puma560", {}), ("ur10e", {}), ("scara", {}), ("iiwa", {"j3": 0.4})])
def test_written_out_branches_are_those_of_the_function(name: str, given: Any) -> None:
    robot = arm(name)
    link, T = link_of(robot), poses_of(robot, 40, 5)
    d = drevo.write_out(robot, "inverse_kinematics", link=link, given=given)
    branches = robot.closed_form(link, **given)(T)
    agree(*d.evaluate(T.reshape(-1, 16)), branches, 1e-9)
    scope: dict[str, Any] = {}
    exec(d.python(), scope)
    for k in (0, 20):
        agree(*scope["inverse_kinematics"](T[k].ravel().tolist()), branches[k], 1e-9)
    for text in (d.latex(), d.markdown(), d.html(), d.matlab(), d.cuda()):
        assert "within 1e-9 m and rad" in text or "within 1e\\-9 m and rad" in text


@pytest.mark.needs("gcc")
def test_c_has_all_branches_and_which_are_real(tmp_path) -> None:
    robot = arm("ur10e")
    T = poses_of(robot, 20, 4)
    (file,) = drevo.export(robot, "inverse_kinematics", "c", link="tool", folder=tmp_path).files
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "f.so", file, "-lm"], check=True)
    f = ctypes.CDLL(str(tmp_path / "f.so")).inverse_kinematics
    q, real = np.empty((8, 6)), np.empty(8)
    for pose, branches in zip(T, robot.closed_form("tool")(T)):
        f(*(np.ascontiguousarray(x).ctypes.data_as(ctypes.c_void_p) for x in (pose, q, real)))
        agree(q, real, branches, 1e-9)


def test_a_c_file_has_the_name_that_is_given(tmp_path) -> None:
    robot = arm("ur10e")
    (file,) = drevo.export(robot, "gravity", "c", name="torque_at_rest", folder=tmp_path).files
    assert file.name == "torque_at_rest.c" and "void torque_at_rest(" in file.read_text()
    (file,) = drevo.export(robot, "gravity", "c", folder=tmp_path).files
    assert "void gravity(" in file.read_text()


@pytest.mark.needs("octave")
def test_octave_runs_the_page(tmp_path) -> None:
    robot = arm("scara")
    T = poses_of(robot, 2, 1)
    drevo.write_out(robot, "inverse_kinematics", link="tool").save(tmp_path / "inverse_kinematics.m")
    for pose, branches in zip(T, robot.closed_form("tool")(T)):
        rows = ";".join(" ".join(map(repr, row)) for row in pose.tolist())
        call = f"[q, real] = inverse_kinematics(reshape([{rows}]', 16, 1)); disp(jsonencode({{q, real}}))"
        run = subprocess.run(["octave", "-q", "--eval", call], cwd=tmp_path, check=True, capture_output=True)
        q, real = json.loads(run.stdout)
        agree(q, real, branches, 1e-9)


def test_webassembly_is_exported(tmp_path) -> None:
    robot = arm("puma560")
    made = drevo.export(robot, "inverse_kinematics", "wasm", link="link6", folder=tmp_path)
    assert [f.suffix for f in made.files] == [".wasm", ".mjs", ".mjs"] and made.size > 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("panda_joint7", "void inverse_kinematics(const double *T, const double *panda_joint7,"),
        ("panda_joint7=0.4", "void inverse_kinematics(const double *T, double *out_q,"),
        ("panda_joint7=far", "no list such as joint7=0.4"),
        ("joint7=0.4", "no joint 'joint7'"),
    ],
)
def test_joints_are_given_on_the_command_line(given: str, said: str) -> None:
    words = ["write-out", "panda", "inverse_kinematics", "--link", "panda_hand", "--given", given, "--to", "c"]
    done = CliRunner().invoke(app, words)
    assert said in done.output and (done.exit_code == 0) == said.startswith("void")


def test_what_has_no_closed_form_is_not_written() -> None:
    with pytest.raises(drevo.DrevoError, match="7 joints move link"):
        drevo.write_out(drevo.load("panda"), "inverse_kinematics", link="panda_link8")
    with pytest.raises(drevo.DrevoError, match="takes no 'wrt'"):
        drevo.write_out(drevo.load("puma560"), "inverse_kinematics", link="link6", wrt=("q",))
    with pytest.raises(drevo.DrevoError, match="closed_form: link"):
        drevo.write_out(drevo.load("puma560"), "inverse_kinematics")


def test_pickles_and_copies_compute_the_same() -> None:
    robot = arm("puma560")
    f, T = robot.closed_form("link6", limits=True), poses_of(robot, 10, 2)
    for other in (pickle.loads(pickle.dumps(f)), copy.copy(f), copy.deepcopy(f)):  # noqa: S301
        assert np.array_equal(other(T), f(T), equal_nan=True)


def test_a_path_goes_from_branch_to_branch() -> None:
    """A closed curve in joint space that turns the base once and a half comes back as it was."""
    robot = arm("ur10e")
    s = np.linspace(0.0, 1.0, 200)[:, None]
    q = np.array([0.2, -1.0, 1.2, 0.4, 1.0, 0.3]) + s * [3 * np.pi, 0.3, -0.4, 0.5, 0.2, -2.0]
    poses = robot.pose(q, "tool")
    np.testing.assert_allclose(robot.inverse_kinematics_path("tool", poses, q[0]), q, atol=1e-9)
    panda = drevo.load("panda")
    mid = (panda.lower + panda.upper) / 2.0
    ends = np.stack([mid + 0.1, mid - 0.25])
    ends[:, 6:] = 0.4, 0.01
    q = ends[0] + s * (ends[1] - ends[0])
    poses = panda.pose(q, "panda_link8")
    path = panda.inverse_kinematics_path("panda_link8", poses, q[0], limits=True, panda_joint7=0.4)
    np.testing.assert_allclose(path, q, atol=1e-8)


def test_a_path_that_cannot_go_on_says_where() -> None:
    robot = arm("puma560")
    q = np.linspace([0.3, -0.5, 0.4, 0.2, 0.6, 0.1], [0.5, -0.3, 0.2, 0.4, 0.8, 0.3], 30)
    poses = robot.pose(q, "link6")
    broken = poses.copy()
    broken[17, 0, 3] += 3.0
    with pytest.raises(drevo.NumericsError, match="no branch is real at pose 17"):
        robot.inverse_kinematics_path("link6", broken, q[0])
    with pytest.raises(
        drevo.NumericsError, match=r"no branch is near at pose 5: joint 'joint[0-9]' would move by"
    ):
        robot.inverse_kinematics_path("link6", np.concatenate([poses[:5], poses[25:]]), q[0], jump=0.05)
    with pytest.raises(drevo.NumericsError, match=r"q0 is not a configuration of poses\[0\]"):
        robot.inverse_kinematics_path("link6", poses, q[0] + 0.7)
    with pytest.raises(drevo.InputError, match=r"^inverse_kinematics_path: link 'hand'"):
        robot.inverse_kinematics_path("hand", poses, q[0])
    with pytest.raises(drevo.DrevoError, match="jump is"):
        robot.inverse_kinematics_path("link6", poses, q[0], jump=0.0)
