"""Hulls of meshes on planes, on each other and on capsules: faces, places, steps and derivatives as in MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contact_cases import as_ours
from test_touching_solids import GEOMS, SCENE, STEP_DIGITS

import drevo
from drevo.contact.convex.hulls import hull_tables

pytestmark = pytest.mark.needs("mujoco")
Array = np.ndarray[Any, Any]

HEXAGON = [(0.09 * np.cos(a), 0.09 * np.sin(a), z) for z in (-0.06, 0.06) for a in np.arange(6) * np.pi / 3]
BRICK = [(x, y, z) for x in (-0.09, 0.09) for y in (-0.08, 0.08) for z in (-0.06, 0.06)]
WEDGE = [(-0.1, y, z) for y in (-0.08, 0.08) for z in (-0.05, 0.05)] + [(0.1, y, -0.05) for y in (-0.08, 0.08)]
STONE = np.random.default_rng(0).normal(size=(250, 3))
STONE *= np.array((0.1, 0.08, 0.045)) / np.linalg.norm(STONE, axis=1)[:, None]
MESHES = "".join(
    f'<mesh name="{name}" vertex="{" ".join(f"{x:.6f}" for point in points for x in point)}"/>'
    for name, points in (("prism", HEXAGON), ("wedge", WEDGE), ("brick", BRICK), ("stone", STONE))
)


@pytest.mark.parametrize(
    "kinds, near",
    [
        (("prism", "box"), 1e-12),
        (("wedge", "prism"), 1e-12),
        (("wedge", "wedge"), 1e-12),
        (("prism", "pill"), 1e-5),
        (("stone", "prism"), 1e-7),
        (("stone", "stone"), 1e-7),
    ],
)
def test_steps_of_hulls_are_those_of_mujoco(kinds: tuple[str, str], near: float) -> None:
    """Any way round, and nearly face to face; of capsules on their sides MuJoCo's search ends less near, and the
    products of inertia of a stone count in MuJoCo from 1e-7 of its moments on."""
    import mujoco

    hulls = {x: f'<geom type="mesh" mesh="{x}"/>' for x in ("prism", "wedge", "stone")}
    bodies = "".join(f"<body><freejoint/>{(hulls | GEOMS)[x]}</body>" for x in kinds)
    text = SCENE.format(bodies=bodies).replace("<worldbody>", f"<asset>{MESHES}</asset><worldbody>", 1)
    text = text.format(option='ccd_tolerance="1e-12" ccd_iterations="200" tolerance="0"', floor="", condim=3)
    m: Any = mujoco.MjModel.from_xml_string(text)
    robot, d, rng = drevo.load(text, hulls=999), mujoco.MjData(m), np.random.default_rng(2)
    step, apart = drevo.compile(robot, "step", dt=0.002, ground=None), list[float]()
    for k in range(300):
        d.qpos[:] = [
            0,
            0,
            1,
            *rng.normal(size=4),
            *rng.uniform(-0.03, 0.03, 2),
            rng.uniform(1.09, 1.14),
            *rng.normal(size=4),
        ]
        if k % 2:
            d.qpos[3:7], d.qpos[10:14] = ([1, *rng.uniform(-0.02, 0.02, 3)] for _ in range(2))
        mujoco.mj_normalizeQuat(m, d.qpos)
        d.qvel[:] = 0.0
        q = d.qpos.copy()
        mujoco.mj_step(m, d)
        if d.ncon:
            theirs = as_ours(m, d.qpos, d.qvel)[1]
            apart.append(float(np.abs(step(*as_ours(m, q, np.zeros(12), np.zeros(12)))[1] - theirs).max()))
    assert len(apart) > 100 and np.mean(np.array(apart) < near) > 0.98


@pytest.mark.parametrize("placed", ["", 'scale="2 2 1"', 'refquat="1 .3 .2 .1" refpos="1 2 3"', 'scale="-1 1 1"'])
@pytest.mark.parametrize("shape", ["prism", "wedge", "stone"])
def test_faces_of_meshes_are_those_that_mujoco_compiles(shape: str, placed: str) -> None:
    """By their corners, and in its order; a stone has triangles that nearly lie in a plane."""
    import mujoco

    text = f'<mujoco><asset>{MESHES}</asset><worldbody><body><geom type="mesh" mesh="{shape}"/></body></worldbody>'
    text = text.replace(f'name="{shape}"', f'name="{shape}" {placed}') + "</mujoco>"
    m: Any = mujoco.MjModel.from_xml_string(text)
    at = m.mesh_polyadr[m.geom_dataid[0]] + np.arange(m.mesh_polynum[m.geom_dataid[0]])
    ends = zip(m.mesh_polyvertadr[at], m.mesh_polyvertnum[at])
    theirs = [tuple(m.mesh_polyvert[first : first + count].tolist()) for first, count in ends]
    (geom,) = drevo.load(text, hulls=999).model.geoms
    assert list(geom.faces) == theirs and (shape != "stone" or any(len(face) > 3 for face in theirs))
    normals = np.array(hull_tables(geom.points, geom.faces)[0])
    tilt = np.abs(normals - m.mesh_polynormal[at]).max()  # of faces of some mm, by points that are rounded
    assert tilt < 1e-5


@pytest.mark.parametrize("shape", ["prism", "wedge"])
def test_a_hull_touches_a_plane_where_mujoco_has_it(shape: str) -> None:
    """At four corners of a hexagon, and whatever falls on it."""
    import mujoco

    text = SCENE.format(bodies=f'<body pos="0 0 .12"><freejoint/><geom type="mesh" mesh="{shape}"/></body>')
    text = text.replace("<worldbody>", f"<asset>{MESHES}</asset><worldbody>", 1)
    m: Any = mujoco.MjModel.from_xml_string(text.format(option='tolerance="0"', floor="", condim=3))
    d, rng, places = mujoco.MjData(m), np.random.default_rng(3), set[int]()
    robot = drevo.load(text.format(option="", floor="", condim=3), hulls=64)
    step = drevo.compile(robot, "step", dt=0.002, ground=None)
    for k in range(400):
        if k % 100 == 0:
            mujoco.mj_resetData(m, d)
            d.qpos[3:7], d.qvel[:] = rng.normal(size=4), rng.normal(size=6) * 0.3
            mujoco.mj_normalizeQuat(m, d.qpos)
        before = as_ours(m, d.qpos.copy(), d.qvel.copy(), np.zeros(6))
        mujoco.mj_step(m, d)
        places.add(d.ncon)
        theirs = as_ours(m, d.qpos, d.qvel)[1]
        assert np.abs(step(*before).v1 - theirs).max() < 1e-12 * max(1.0, np.abs(theirs).max())
    assert 1 in places and max(places) > 2


def test_derivatives_of_a_hull_on_a_plane_are_those_of_mujoco() -> None:
    """Its differences of 1e-6, good to the square of their share in the 1 mm over which contacts grow stiff, from
    rates along the world's axes to those of the body. Of a regular hexagon four corners tie with others."""
    import mujoco

    text = SCENE.format(bodies='<body pos="0 0 .06"><freejoint/><geom type="mesh" mesh="prism"/></body>')
    text = text.replace("<worldbody>", f"<asset>{MESHES}</asset><worldbody>", 1)
    m: Any = mujoco.MjModel.from_xml_string(text.format(option='tolerance="0"', floor="", condim=3))
    robot, d, rng = (
        drevo.load(text.format(option="", floor=""), hulls=64),
        mujoco.MjData(m),
        np.random.default_rng(5),
    )
    step, jacobian = (drevo.compile(robot, "step", dt=0.002, ground=None, product=x) for x in ((), "jacobian"))
    A = np.zeros((12, 12))

    def carried() -> Array:
        """The rates of MuJoCo's tangents by ours: v along the world's axes is R v."""
        R, L = d.xmat[1].reshape(3, 3), np.eye(12)
        L[:3, :3] = L[6:9, 6:9] = R
        L[6:9, 3:6] = np.cross(d.qvel[:3], R, axisb=0, axisc=0) * -1.0
        return L

    for _ in range(40):
        d.qpos[:] = [0, 0, 0.059 + 5e-4 * rng.random(), 1, *rng.uniform(-5e-3, 5e-3, 3)]
        mujoco.mj_normalizeQuat(m, d.qpos)
        d.qvel[:] = rng.normal(size=6) * 0.1
        mujoco.mj_forward(m, d)
        before, found = carried(), np.concatenate(jacobian(*as_ours(m, d.qpos, d.qvel, np.zeros(6)))[:2], 1)
        mujoco.mjd_transitionFD(m, d, 1e-6, 1, A, None, None, None)
        after = step(*as_ours(m, d.qpos, d.qvel, np.zeros(6))).v1
        mujoco.mj_step(m, d)
        assert np.abs(after - as_ours(m, d.qpos, d.qvel)[1]).max() < STEP_DIGITS
        mujoco.mj_kinematics(m, d)
        theirs = np.linalg.solve(carried(), A @ before)
        assert np.abs(found - theirs).max() < 1e-5 * np.abs(theirs).max()


def test_a_capsule_lies_on_a_hull_at_two_places() -> None:
    """On a hull that stands on four corners: of six a plane has four at a time, as in MuJoCo, where none rests."""
    bodies = (
        '<body pos="0 0 .06"><freejoint/><geom type="mesh" mesh="brick"/></body>'
        '<body pos="0 0 .17" euler="0 90 0"><freejoint/><geom type="capsule" size=".05 .06"/></body>'
    )
    text = SCENE.format(bodies=bodies).replace("<worldbody>", f"<asset>{MESHES}</asset><worldbody>", 1)
    robot = drevo.load(text.format(option="", floor=""), hulls=16)
    step = drevo.compile(robot, "step", dt=0.002, ground=None, repeat=500)
    found = step(np.array(robot.model.initial), np.zeros(12), np.zeros(12))
    assert np.abs(found.v1).max() < 1e-6
    on_hull = abs(found.forces[-2:, 2])
    assert np.allclose(on_hull, on_hull.sum() / 2, rtol=1e-6) and (on_hull > 1.0).all()
