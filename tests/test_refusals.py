"""What is refused, or doubted, by a sentence that no other test asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_calls import robot

import drevo
from drevo import control, loads
from drevo.errors import DrevoError, DrevoWarning
from drevo.io.meshes import hull_faces, read_mesh, triples

SOLID: dict[str, Any] = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": np.eye(3)}
AT = (0.0, 0.0, 0.0)


def pair(**given: Any) -> drevo.Builder:
    """Two hinges; `given` goes to the second body."""
    return (
        drevo.Builder("pair").body("a", **SOLID).body("b", parent="a", origin=(1.0, 0.0, 0.0), **(SOLID | given))
    )


def table() -> Any:
    return robot("three-link").simulate(np.zeros(3), duration=0.01, dt=1e-3)


def plant(dt: float | None = None) -> control.LinearModel:
    """An oscillator of 2 rad/s without damping, two outputs of one input."""
    return control.LinearModel(np.array([[0.0, 1.0], [-4.0, 0.0]]), np.array([[0.0], [1.0]]), dt=dt)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: pair().loop("rod", "a", AT, "world", AT).robot(), "a rod has a positive one"),
    (lambda: pair().loop("prismatic", "a", AT, "world", AT, axis_a=(1, 0, 0), axis_b=(1, 0, 0)).robot(),
     "keeps an orientation, which nobody gives"),
    (lambda: pair().loop("revolute", "a", AT, "world", AT).robot(), "has no axis_a; give it a direction"),
    (lambda: pair().couple("b_joint", "c_joint", (0.0, 1.0)).robot(), "a coupling names the joint 'c_joint'"),
    (lambda: pair().tendon("t", joints={"c_joint": 1.0}).robot(),
     "names the joint 'c_joint', which does not exist"),
    (lambda: pair(rotor=(-0.1, 50.0, (0, 0, 1))).robot(), "has a rotor of the negative inertia -0.1"),
    (lambda: pair(rotor=(0.1, 0.0, (0, 0, 1))).robot(), "has the gear ratio 0"),
    (lambda: pair(rotor=(0.1, 50.0, (0, 0, 0))).robot(), r"has the zero axis \(0 0 0\) for its rotor"),
    (lambda: pair(joint="cylindrical", rotor=(0.1, 50.0, (0, 0, 1))).robot(), "which is of joints with one rate"),
    (lambda: pair(armature=-0.1).robot(), "has the negative armature -0.1"),
    (lambda: triples("1 2", float), "its vertex is no list of triples"),
    (lambda: triples("1 2 nan", float), "its vertices or faces are none, or not finite"),
    (lambda: hull_faces(np.zeros((2_000_000, 3))), "it is the hull of 2000000 points"),
    (lambda: plant().frequency_response([0.0]), "frequencies must be a list of numbers above 0, rad/s$"),
    (lambda: plant(0.1).frequency_response([99.0]), r"above 0, rad/s, up to pi / dt = 31.4159"),
    (lambda: plant().frequency_response([2.0]), "2 rad/s is a natural frequency without damping"),
    (lambda: plant().zeros(), "the model has 2 outputs and 1 inputs"),
    (lambda: plant().zeros(output="z"), "zeros: output 'z' is none of the model's"),
    (lambda: control.LinearModel([[900.0]], [[1.0]]).step_response(9.0), "the model grows beyond all numbers"),
    (lambda: plant().step_response(1.0, samples=9_000_000), "step_response: "),
    (lambda: loads.Trajectory.read(robot("three-link"), "x.txt"), "is read from .npz or .csv, not 'x.txt'"),
    (lambda: loads.Trajectory.read(robot("three-link"), "none.csv"), "'none.csv' does not exist"),
    (lambda: loads.Trajectory.through(robot("three-link"), np.zeros((1, 3)), [0.0]), "2 waypoints or more, not 1"),
    (lambda: loads.Trajectory.simulated("table"), "takes the table that simulate gives, not 'table'"),
    (lambda: loads.Trajectory.simulated(table(), np.zeros((4, 3))), r"tau has shape \(4, 3\)"),
    (lambda: loads.distribution(robot("three-link").model, "link1", "ball"), "'ball'"),
    (lambda: loads.distribution(robot("three-link").model, "link1", [3]), "is one of auto, shapes"),
    (lambda: loads.distribution(robot("three-link").model, "link1", [loads.box(0.1, (0.1, 0.1, 0.1))]),
     "the solids stated for link 'link1' have the mass 0.1 kg"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=[f"{k}" for k in range(len(REFUSED))])
def test_is_refused_in_a_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(DrevoError, match=sentence):
        call()


def test_doubts_are_warnings() -> None:
    for give, sentence in (
        (lambda: pair(damping=-0.1).robot(), "negative damping -0.1"),
        (lambda: pair().tendon("t", joints={"a_joint": 1.0}, stiffness=-1.0).robot(), "negative stiffness -1"),
    ):
        with pytest.warns(DrevoWarning, match=sentence):
            give()


BESIDE: list[tuple[str, str, str]] = [
    ("a.txt", "", "ends in '.txt'; give .toml or .json"),
    ("a.json", "{", "loops: the file .*a.json"),
    ("a.json", '{"drevo": 1, "links": []}', "holds 'links'; beside a robot stand lists of loops, couplings"),
    ("a.json", '{"drevo": 1, "loops": {}}', "holds 'loops'; beside a robot"),
]


@pytest.mark.parametrize(("name", "text", "sentence"), BESIDE, ids=["ending", "broken", "links", "table"])
def test_files_beside_a_robot(name: str, text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    pair().robot().save(tmp_path / "r.urdf")
    with pytest.raises(DrevoError, match=sentence):
        drevo.load(tmp_path / "r.urdf", loops=tmp_path / name)


LEFT: list[tuple[Callable[[], drevo.Builder], str]] = [
    (
        lambda: pair().loop("cylindrical", "b", AT, "world", AT, axis_a=(0, 0, 1), axis_b=(0, 0, 1)),
        "its loops of the",
    ),
    (lambda: pair().loop("weld", "b", AT, "world", AT), "the orientations of 1 welds, which nobody gives"),
    (lambda: pair().couple("b_joint", "a_joint", (0.0, 1.0, 0.0, 0.0, 0.0, 0.2)), "of a degree above 4"),
]


@pytest.mark.parametrize(("made", "sentence"), LEFT, ids=["revolute", "weld", "couple"])
def test_what_mjcf_cannot_say_is_named(made: Callable[[], drevo.Builder], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DrevoError, match=sentence):
        made().robot().save(tmp_path / "a.xml")


MESHES: list[tuple[str, bytes, str]] = [
    ("obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2\n", "a face with 2 corners"),
    ("obj", b"v 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "a row of fewer than 3 numbers"),
    ("obj", b"v 0 0 x\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "something that is no number"),
    ("msh", b"\xff\xff\xff\xff" * 4, "for the counts"),
]


@pytest.mark.parametrize(("kind", "data", "sentence"), MESHES, ids=["corners", "short", "letters", "counts"])
def test_meshes_that_are_none(kind: str, data: bytes, sentence: str) -> None:
    with pytest.raises(DrevoError, match=sentence):
        read_mesh(data, kind)


def test_points_may_have_weights_and_quadrangles_are_cut_along_the_shorter_diagonal() -> None:
    """v x y z w; of a kite the two triangles that share its short diagonal."""
    points, faces = read_mesh(b"v 0 0 0 1\nv 1 1 0 1\nv 3 0 0 1\nv 1 -1 0 1\nf 1 2 3 4\n", "obj")
    assert faces is not None and points.shape == (4, 3) and len(faces) == 2
    assert all({1, 3} <= set(face) for face in faces.tolist())
