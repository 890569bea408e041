"""What touches, drives and steps, read out of files: against MuJoCo's compiled models, and written again."""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.model.contact import DEFAULT_FRICTION, Geom, JointSoftness
from drevo.model.description import Model
from drevo.model.loaders.solids import support_points
from drevo.model.loaders.writers import text_of, write_model
from drevo.model.rotations import matrix_of_quaternion

mujoco = pytest.importorskip("mujoco")
ConvexHull = pytest.importorskip("scipy.spatial").ConvexHull

FILE = """
<mujoco model="all">
  <compiler angle="degree" autolimits="true" settotalmass="7"/>
  <option timestep="0.004" integrator="implicitfast" cone="elliptic" impratio="4">
    <flag contact="disable"/></option>
  <default>
    <geom friction="0.9 0.4 0.2" solimp="0.5 0.8 0.01" condim="4" margin="0.01"/>
    <joint solreflimit="0.03 0.9" margin="0.02" damping="1"/>
    <motor ctrlrange="-2 3"/>
    <equality solref="0.05 1"/>
    <pair condim="6" gap="0.001"/>
    <default class="soft"><geom solref="-500 -20" solimp="0.6 0.7" priority="3" solmix="2"/></default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" pos="0 0 0.1" euler="5 0 0"/>
    <body name="free" pos="0.1 0.2 0.9" euler="10 20 30">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.2 0.3" friction="0.3" pos="0.1 0 0" contype="2" conaffinity="6"/>
      <geom type="sphere" size="0.1" contype="0" conaffinity="0"/>
      <body name="arm" pos="0.3 0 0" childclass="soft">
        <joint name="hinge" axis="0 1 0" range="-40 60" ref="12" solreffriction="0.1 1" frictionloss="0.1"/>
        <joint name="slide" type="slide" axis="1 0 0" range="-0.4 0.6" ref="0.2" margin="0"/>
        <geom name="bar" type="capsule" fromto="0 0 0 0.3 0.1 0" size="0.05"/>
        <geom name="drum" type="cylinder" size="0.05 0.1" gap="0.002" solimp="0.1 0.2 0.3 0.4 3"/>
        <geom name="egg" type="ellipsoid" size="0.05 0.1 0.1"/>
        <site name="tip" pos="0.3 0 0" size="0.01 0.02 0.03"/>
        <body name="ball" pos="0 0.4 0"><joint name="swivel" type="ball"/><geom name="foot" size="0.07"/></body>
      </body>
    </body>
  </worldbody>
  <contact>
    <pair geom1="foot" geom2="bar" friction="1 2 0.1" solref="0.1 1"/><exclude body1="free" body2="ball"/>
  </contact>
  <equality><joint joint1="hinge" joint2="slide" polycoef="0.1 2 0 0 0" solimp="0.7 0.8 0.1"/></equality>
  <actuator>
    <motor name="m" joint="hinge" gear="3"/>
    <position name="p" joint="hinge" kp="40" kv="2" forcerange="-5 6"/>
    <velocity name="v" joint="slide" kv="7"/>
    <general name="g" joint="slide" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm="4 5 6"/>
    <damper name="d" joint="slide" kv="2" ctrlrange="0 1"/>
    <muscle name="u" joint="hinge"/>
  </actuator>
  <sensor><jointpos joint="hinge"/><touch site="tip"/><gyro site="tip"/><clock/></sensor>
</mujoco>
"""


@pytest.fixture(scope="module")
def model() -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        return drevo.load(FILE).model


def compiled(text: str) -> Any:
    return mujoco.MjModel.from_xml_string(text)


def apart(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a, float) - np.asarray(b, float)).max(initial=0.0))


def differences(model: Model, theirs: Any) -> dict[str, float]:
    """How far what was read is from what MuJoCo compiled, by what it is."""
    touching = [g for g in range(theirs.ngeom) if theirs.geom_contype[g] or theirs.geom_conaffinity[g]]
    assert [theirs.body(theirs.geom_bodyid[g]).name for g in touching] == [geom.link for geom in model.geoms]
    found: dict[str, float] = {}

    def note(what: str, a: Any, b: Any) -> None:
        found[what] = max(found.get(what, 0.0), apart(a, b))

    names = ("friction", "solref", "solimp", "margin", "gap", "priority", "solmix", "condim")
    for g, geom in zip(touching, model.geoms, strict=True):
        note("size", theirs.geom_size[g][: len(geom.size)], geom.size)
        note("place", theirs.geom_pos[g], geom.origin)
        w, *v = theirs.geom_quat[g]
        note("turn", matrix_of_quaternion(*v, w), geom.rotation)
        for name in names:
            note(name, getattr(theirs, f"geom_{name}")[g], getattr(geom, name))
        note("bits", (theirs.geom_contype[g], theirs.geom_conaffinity[g]), (geom.contype, geom.conaffinity))
    soft = {x.joint: x for x in model.softness}
    for j in range(theirs.njnt):
        x = soft.get(theirs.joint(j).name, JointSoftness(""))
        dof = theirs.jnt_dofadr[j]
        note("limits", (*theirs.jnt_solref[j], *theirs.jnt_solimp[j]), (*x.limit_solref, *x.limit_solimp))
        note("joint margin", theirs.jnt_margin[j], x.limit_margin)
        note("dry", (*theirs.dof_solref[dof], *theirs.dof_solimp[dof]), (*x.friction_solref, *x.friction_solimp))
    for i, x in enumerate(model.actuators):
        note("gear", theirs.actuator_gear[i, 0], x.gear)
        if not x.muscle:  # whose numbers are a law of their own
            note("law", (theirs.actuator_gainprm[i, :3], theirs.actuator_biasprm[i, :3]), (x.gain, x.bias))
        for what, key in (("control", "ctrl"), ("force", "force")):
            limited, bounds = getattr(theirs, f"actuator_{key}limited")[i], getattr(x, f"{what}_range")
            assert bool(limited) == (bounds is not None)
            note(what, getattr(theirs, f"actuator_{key}range")[i] if limited else 0.0, bounds or 0.0)
    for i, pair in enumerate(model.pairs):
        note("pair", theirs.pair_friction[i], pair.friction)
        note("pair", (theirs.pair_dim[i], theirs.pair_gap[i]), (pair.condim, pair.gap))
    q0 = theirs.qpos0.copy()
    for j in range(theirs.njnt):
        if theirs.jnt_type[j] < 2:
            end = theirs.jnt_qposadr[j] + (7, 4)[theirs.jnt_type[j]]
            q0[end - 4 : end] = np.roll(q0[end - 4 : end], -1)
    note("initial", q0, model.initial)
    return found


def test_what_is_read_is_what_mujoco_compiles(model: Model) -> None:
    found = differences(model, compiled(FILE))
    assert max(found.values()) < 1e-12, found
    assert (model.stepping.dt, model.stepping.integrator) == (0.004, "implicitfast")
    assert (model.stepping.cone, model.stepping.impratio, model.stepping.disabled) == (
        "elliptic",
        4.0,
        ("contact",),
    )
    assert [x.kind for x in model.sensors] == ["jointpos", "touch", "gyro"]
    assert model.sensors[1].size == (0.01, 0.02, 0.03)
    assert sum(link.inertial.mass for link in model.links if link.inertial) == pytest.approx(7.0, rel=1e-14)


def test_compiled_models_say_the_same() -> None:
    """An MjModel in memory; of what touches, all but explicit pairs."""
    theirs = compiled(FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        found = drevo.load(theirs).model
    apart_by = differences(found, theirs)
    assert max(apart_by.values()) < 1e-12, apart_by
    assert [x.name for x in found.actuators] == [
        "m",
        "p",
        "v",
        "g",
        "d",
        "u",
    ]  # the muscle's lengths are known there
    assert (found.stepping.dt, found.stepping.integrator, found.stepping.cone) == (
        0.004,
        "implicitfast",
        "elliptic",
    )


def test_what_is_left_out_is_told(model: Model) -> None:
    assert "actuator not read: muscle (1)" in model.notes
    assert "sensor not read: clock (1)" in model.notes


def test_mjcf_goes_round(model: Model) -> None:
    """What is written is what was read, to the rounding of orientations, and MuJoCo compiles it alike."""
    text = text_of(write_model(model, ".xml"), ".xml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        again = drevo.load(text).model
    found = differences(again, compiled(text))
    assert max(found.values()) < 1e-12, found
    for f in fields(Model):
        if f.name in ("geoms", "initial"):
            continue
        if f.name in ("pairs", "softness", "actuators", "stepping", "exclusions"):
            assert getattr(again, f.name) == getattr(model, f.name)
    assert apart(again.initial, model.initial) < 1e-15
    for a, b in zip(again.geoms, model.geoms, strict=True):
        assert (a.name, a.link, a.kind, a.friction, a.solimp) == (b.name, b.link, b.kind, b.friction, b.solimp)
    (x,), (y,) = again.couplings, model.couplings
    assert (x.joint, x.driver, x.solref, x.solimp) == (y.joint, y.driver, y.solref, y.solimp)
    assert apart(x.coefficients, y.coefficients) < 1e-15


URDF = """
<robot name="box"><link name="base"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></collision>
<collision><geometry><mesh filename="x.stl"/></geometry></collision>
<visual><geometry><sphere radius="1"/></geometry></visual></link>
<gazebo reference="base"><mu1>0.4</mu1></gazebo></robot>
"""
SDF = """
<sdf version="1.9"><model name="ball"><link name="base"><inertial><mass>1</mass>
<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>
<collision name="c"><geometry><capsule><radius>0.1</radius><length>0.4</length></capsule></geometry>
<surface><friction><ode><mu>0.7</mu></ode></friction></surface></collision></link></model></sdf>
"""


def test_collision_shapes_of_urdf_and_sdf_touch() -> None:
    box = drevo.load(URDF, base="floating").model
    assert box.geoms == (
        Geom("base_collision0", "base", "box", (0.5, 1.0, 1.5), (0.0, 0.0, 1.0),
             friction=(0.4, *DEFAULT_FRICTION[1:]), conaffinity=0),
    )  # fmt: skip
    assert "left out of contact: mesh shapes of 'base'" in box.notes
    ball = drevo.load(SDF, base="floating").model
    assert [(g.kind, g.size, g.friction[0]) for g in ball.geoms] == [("capsule", (0.1, 0.2), 0.7)]


@pytest.mark.parametrize("suffix", [".urdf", ".sdf"])
def test_geoms_go_round_through_urdf_and_sdf(suffix: str, tmp_path: Path) -> None:
    ball = drevo.load(SDF, base="floating")
    ball.save(tmp_path / f"r{suffix}")
    assert drevo.load(tmp_path / f"r{suffix}").model.geoms == ball.model.geoms


def test_a_geom_of_negative_friction_is_refused() -> None:
    with pytest.raises(drevo.ModelError, match="friction is zero or positive"):
        drevo.load(FILE.replace('friction="0.3"', 'friction="-0.3"'))


def bunch(count: int) -> np.ndarray[Any, Any]:
    """Points on an ellipsoid, and some inside."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 3))
    x *= np.array([0.3, 0.2, 0.1]) / np.linalg.norm(x, axis=1, keepdims=True)
    return np.concatenate((x, 0.5 * x))


def test_hulls_have_the_corners_that_stand_out_most() -> None:
    """More corners come nearer; all of them are the hull; what is said to stand out does, and no more."""
    points, left = bunch(200), []
    for most in (4, 8, 16, 64, 300):
        found, corners, out = support_points(points, most)
        assert corners == 200 and len(found) == min(most, 200)
        planes = ConvexHull(np.array(found)).equations
        assert abs((points @ planes[:, :3].T + planes[:, 3]).max() - out) < 1e-9
        left.append(out)
    assert left == sorted(left, reverse=True) and left[-1] == 0.0 and left[2] < 0.04


def test_meshes_touch_where_they_are_asked_to(tmp_path: Path) -> None:
    vertices = " ".join(f"{x:.6f}" for x in bunch(60).ravel())
    text = f"""<mujoco><asset><mesh name="egg" vertex="{vertices}" scale="2 2 2"/></asset><worldbody>
    <body name="a"><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <geom name="g" type="mesh" mesh="egg" pos="0 0 1"/></body></worldbody></mujoco>"""
    plain, touching = drevo.load(text), drevo.load(text, hulls=12)
    assert plain.model.geoms == () and "left out of contact: mesh geoms 'g'" in plain.notes
    (geom,) = touching.model.geoms
    assert geom.kind == "hull" and len(geom.points) == 12 and not geom.faces
    where = np.array(geom.points) @ np.array(geom.rotation).T + geom.origin  # its axes are those of inertia
    of_file = 2.0 * np.array(vertices.split(), np.float32).astype(float).reshape(-1, 3) + [0.0, 0.0, 1.0]
    assert max(np.abs(of_file - x).max(axis=1).min() for x in where) < 1e-12
    assert 0.5 < max(where[:, 0]) <= 0.6
    assert any("g touches by 12 of the 60 corners" in note for note in touching.notes)
    for wrong in (3, -1, True, "all"):
        with pytest.raises(drevo.ModelError, match="hulls is 0, or from 4"):
            drevo.load(text, hulls=wrong)  # type: ignore[arg-type]


def test_hulls_of_urdf_come_from_their_files(tmp_path: Path) -> None:
    """A binary STL beside the file, scaled; one that is missing is told."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], "<f4")
    faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6),
             (0, 6, 4), (1, 5, 7), (1, 7, 3)]  # fmt: skip
    rows = b"".join(np.zeros(3, "<f4").tobytes() + corners[list(f)].tobytes() + b"\0\0" for f in faces)
    (tmp_path / "cube.stl").write_bytes(bytes(80) + np.array([12], "<u4").tobytes() + rows)
    text = URDF.replace('filename="x.stl"', 'filename="cube.stl" scale="0.1 0.2 0.3"')
    (tmp_path / "r.urdf").write_text(text)
    found = drevo.load(tmp_path / "r.urdf", base="floating", hulls=8).model.geoms
    assert [geom.kind for geom in found] == ["box", "hull"] and found[1].friction[0] == 0.4
    assert np.ptp(np.array(found[1].points), axis=0) == pytest.approx([0.1, 0.2, 0.3])
    (tmp_path / "cube.stl").unlink()
    missing = drevo.load(tmp_path / "r.urdf", base="floating", hulls=8)
    assert len(missing.model.geoms) == 1 and any("cube.stl' does not exist" in note for note in missing.notes)
