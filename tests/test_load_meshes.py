"""Solids out of meshes: what a plane cuts off them, what they say about a link, files of solids."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from loads_cases import G, panda, refused

import drevo
from drevo import loads
from drevo.io.meshes import hull_faces
from drevo.loads.solids import CUBE, open_edges
from drevo.model.loaders.solids import of_triangles

Array = np.ndarray[Any, Any]
EXACT = 1e-13  # sums over some hundred triangles of size 1


def cloud(seed: int, count: int = 30) -> tuple[Array, Array]:
    """A convex body: points, and the faces of their hull."""
    points = np.random.default_rng(seed).normal((0.5, -0.2, 0.1), size=(count, 3))
    return points, hull_faces(points)


NAMED = """<robot name="r"><link name="base"/>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="arm.stl"/></geometry></visual>
<collision><geometry><mesh filename="package://arm/hull.stl"/></geometry></collision></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""
ASSET = """<mujoco><asset><mesh name="m" file="arm.stl"/></asset><worldbody><body name="arm"><joint type="hinge"/>
<inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>"""


def test_mesh_files_that_are_missing_are_told_once(tmp_path: Path) -> None:
    """Where inertias are given nothing is opened: the motion is right, and what touches or shows is not there."""
    (tmp_path / "r.urdf").write_text(NAMED)
    with pytest.warns(
        drevo.DrevoWarning, match="2 mesh files are not there, .*touches.*'arm.stl' of 'arm'"
    ) as seen:
        drevo.load(tmp_path / "r.urdf", strict=True)
    assert len(seen) == 1 and len(seen[0].message.problems) == 2
    (tmp_path / "r.xml").write_text(ASSET)
    with pytest.warns(drevo.DrevoWarning, match="1 mesh file is not there, .*'arm.stl' of 'arm'"):
        drevo.load(tmp_path / "r.xml")
    (tmp_path / "arm").mkdir()
    for file in ("arm.stl", "arm/hull.stl"):
        (tmp_path / file).write_bytes(b"solid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drevo.load(tmp_path / "r.urdf")
        drevo.load(tmp_path / "r.xml")
        drevo.load(NAMED)  # a text stands in no folder


def beyond_by_hull(points: Array, n: Array, h: float) -> tuple[Array, Array]:
    """The part of a convex body beyond a plane, as the hull of its corners there and of all crossings."""
    d = points @ n - h
    a, b = points[d >= 0][:, None], points[d < 0][None]
    da, db = d[d >= 0][:, None, None], d[d < 0][None, :, None]
    crossings = (a + da / (da - db) * (b - a)).reshape(-1, 3)
    found = np.concatenate([points[d >= 0], crossings])
    return found, hull_faces(found)


@pytest.mark.parametrize("seed", range(4))
def test_the_part_of_a_mesh_beyond_a_plane_is_that_of_its_hull(seed: int) -> None:
    """Volume, centre and inertia by another formula, over another surface, with the face of the cut."""
    points, faces = cloud(seed)
    solid = loads.mesh(3.0, points, faces if seed % 2 else faces[:, ::-1])  # inside out as well
    rng = np.random.default_rng(seed)
    n = rng.normal(size=3)
    n /= np.linalg.norm(n)
    low, high = solid.reach(n)
    assert (low, high) == pytest.approx((min(points @ n), max(points @ n)), rel=1e-14)
    h = np.linspace(low, high, 7)[1:-1]
    density = 3.0 / solid.volume()
    for P, at in zip(solid.beyond(n, h), h):
        p, f = beyond_by_hull(points, n, at)
        volume, centre, tensor = of_triangles(p[f])
        S = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
        assert P[3, 3] == pytest.approx(density * volume, rel=EXACT)
        assert np.abs(P[:3, 3] / P[3, 3] - centre).max() < 10 * EXACT
        assert np.abs(np.trace(S) * np.eye(3) - S - density * np.array(tensor)).max() < 100 * EXACT
    both = solid.beyond(n, h) + solid.beyond(-n, -h)
    assert np.abs(both - solid.whole()).max() < 100 * EXACT


def test_a_cube_of_triangles_is_a_box_also_when_stretched_and_mirrored() -> None:
    box = loads.box(2.0, (0.3, 0.5, 0.7), (0.1, 0.2, 0.3))
    corners = CUBE * (0.3, 0.5, 0.7) + (0.1, 0.2, 0.3)
    mesh = loads.mesh(2.0, corners.reshape(-1, 3), np.arange(36).reshape(12, 3))
    T = np.diag([-1.5, 0.8, 1.1, 1.0])
    n = np.array([0.6, 0.0, 0.8])
    for one, other in ((box, mesh), (box.moved(T, 1.0), mesh.moved(T, 1.0))):
        h = np.linspace(*one.reach(n), 9)
        assert np.abs(one.beyond(n, h) - other.beyond(n, h)).max() < EXACT
        assert one.volume() == pytest.approx(other.volume(), rel=1e-14)


def stl(path: Path, corners: Array) -> None:
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *x.ravel(), 0) for x in corners)
    path.write_bytes(bytes(80) + struct.pack("<I", len(corners)) + rows)


URDF = """<robot name="beam"><link name="base"/><link name="bar"><inertial><origin xyz="0.3 0 0"/><mass value="6"/>
<inertia ixx="{x}" iyy="{y}" izz="{y}" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0.3 0 0"/><geometry><mesh filename="{file}" scale="1 0.1 0.1"/></geometry></collision>
</link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="bar"/><axis xyz="0 1 0"/>
<limit effort="1" velocity="1" lower="-3" upper="3"/></joint></robot>"""


@pytest.fixture(scope="module")
def bar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bar of 1 x 0.1 x 0.1 m and 6 kg, held 0.2 m from its end: its mesh, one that is open, a broken one."""
    folder = tmp_path_factory.mktemp("bar")
    stl(folder / "cube.stl", CUBE)
    stl(folder / "open.stl", CUBE[:-1])
    (folder / "broken.stl").write_bytes(b"none")
    x, y = 6 / 12 * 0.02, 6 / 12 * 1.01
    for name in ("cube", "open", "broken"):
        (folder / f"{name}.urdf").write_text(URDF.format(x=x, y=y, file=f"{name}.stl"))
    (folder / "heavy.urdf").write_text(URDF.format(x=x, y=2 * y, file="cube.stl"))
    return folder


def test_the_mesh_of_a_link_carries_its_mass_from_the_joint_to_both_ends(bar: Path) -> None:
    """s = 0 at the joint; the piece behind it is a cantilever of 0.2 m the other way."""
    robot = drevo.load(str(bar / "cube.urdf"))
    mass = loads.distribution(robot.model, "bar")
    assert mass.about == "collision shapes (cube.stl)"
    assert mass.density == pytest.approx(600.0, rel=1e-12)
    assert mass.moved == pytest.approx(0.0, abs=1e-7)
    span = loads.span_of(robot.model, "bar", mass)
    assert (span.back, span.held, span.length) == pytest.approx((0.2, 0.0, 0.8))
    s = np.array([-0.1, 0.0, 0.3])
    found = loads.section_loads(robot, [0.0], [0.0], [0.0], "bar", s).total
    assert np.allclose(np.abs(found[:, 2]), 6 * G * np.array([0.1, 0.8, 0.5]), rtol=1e-7)
    assert np.allclose(np.abs(found[:, 4]), 6 * G * np.array([0.1, 0.8, 0.5]) ** 2 / 2, rtol=1e-7)


def test_the_bar_agrees_and_what_does_not_is_said(bar: Path) -> None:
    (found,) = loads.consistency(drevo.load(str(bar / "cube.urdf"))).links
    assert found.agrees
    assert (found.centre, found.inertia) == pytest.approx((0.0, 0.0), abs=1e-7)
    (open_,) = loads.consistency(drevo.load(str(bar / "open.urdf"))).links
    assert open_.about == "collision shapes (open.stl, open at 3 of 18 edges: its hull)"
    assert open_.agrees
    (broken,) = loads.consistency(drevo.load(str(bar / "broken.urdf"))).links
    assert "mesh 'broken.stl' cannot be read" in broken.fault
    (heavy,) = loads.consistency(drevo.load(str(bar / "heavy.urdf"))).links
    assert not heavy.agrees
    assert heavy.inertia == pytest.approx(0.5, rel=1e-6)
    model = drevo.load(str(bar / "broken.urdf")).model
    assert loads.distribution(model, "bar").about == "uniform box"
    assert "cannot be read" in refused(lambda: loads.distribution(model, "bar", "shapes"))
    assert "link 'bar' is not" in refused(lambda: loads.distribution(panda().model, "bar"))


SOLIDS = """[[bar]]
kind = "mesh"
mass = 6.0
file = "cube.stl"
scale = [1.0, 0.1, 0.1]
at = [0.3, 0.0, 0.0]
"""


@pytest.mark.parametrize(("text", "words"), [
    (SOLIDS.replace("mesh", "mash"), "kind.*did you mean 'mesh'"),
    (SOLIDS.replace("cube", "cub"), "cub.stl' does not exist"),
    (SOLIDS.replace("scale", "size"), "size"),
    (SOLIDS + "[[base]]\nkind = 'rod'\nmass = 1\n", "rod"),
    ("bar = 1", "give tables, ..bar.."),
    ("bar = [", "is no TOML"),
    (SOLIDS.replace("cube", "open"), "the mesh is open at 3 of its 18 edges"),
])  # fmt: skip
def test_solids_from_a_file(bar: Path, text: str, words: str) -> None:
    file = bar / "solids.toml"
    file.write_text(SOLIDS)
    robot, state = drevo.load(str(bar / "cube.urdf")), ([0.1], [0.2], [0.3])
    stated = loads.section_loads(robot, *state, "bar", [0.1, 0.5], distribution=loads.read_solids(file))
    assert stated.distribution.about == "as stated"
    assert np.allclose(stated.total, loads.section_loads(robot, *state, "bar", [0.1, 0.5]).total, atol=1e-5)
    file.write_text(text)
    with pytest.raises(drevo.DrevoError, match=words):
        loads.read_solids(file)


def test_edges_are_counted_by_the_turn_of_their_triangles() -> None:
    points, faces = cloud(3)
    assert open_edges(points, faces) == (0, 3 * len(faces) // 2)
    faces[0] = faces[0, ::-1]
    assert open_edges(points, faces)[0] == 3
    assert "open at 3 of its" in refused(lambda: loads.mesh(1.0, points, faces))
    assert "names a point" in refused(lambda: loads.mesh(1.0, points, faces + 9))
