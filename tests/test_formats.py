"""The other formats: Drevo's own, MJCF, and how a file's format is found."""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest
from robot_texts import from_json, from_toml

import drevo
from drevo.errors import ModelError
from drevo.io import xml
from drevo.model.description import Mimic, Model
from drevo.model.loaders import load_model, mjcf, sdf
from drevo.model.rotations import from_axis_angle, from_rpy, matrix_of_quaternion
from drevo.model.validation import finish

MINIMAL = '{"drevo": 1, "name": "r", "links": [{"name": "w"}%s], "joints": [%s]}'


# --- Drevo's own -----------------------------------------------------------


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "not valid JSON"),
        ("[]", "not a Drevo robot"),
        ("{}", "not a Drevo robot"),
        ("[" * 100_000, "nested too deeply"),
        ('{"drevo": 1, "drevo": 1}', "a key is given twice"),
        ('{"drevo": 1, "name": "r", "links": 1}', "links is not a list"),
        ('{"drevo": 1, "links": []}', "the robot: it has no 'name'"),
        (MINIMAL % (', {"name": "a", "mass": 1}', ""), r"links\[1\] \(a\): it has the unknown key 'mass'"),
        (
            MINIMAL % (', {"name": "a", "inertial": {"mass": NaN}}', ""),
            r"links\[1\] \(a\): inertial: mass: nan is not",
        ),
        (MINIMAL % (', {"name": "a", "inertial": {"mass": 1e999}}', ""), "inf is not finite"),
        (MINIMAL % (', {"name": "a", "inertial": {"mass": "1"}}', ""), "'1' is not a number"),
        (MINIMAL % (', {"name": "a", "inertial": {"mass": 1' + "0" * 5000 + "}}", ""), "."),
        (
            MINIMAL % ("", '{"name": "j", "kind": "revolute", "parent": "w"}'),
            r"joints\[0\] \(j\): it has no 'child'",
        ),
        (MINIMAL % ("", '{"name": "j", "kind": "odd", "parent": "w", "child": "a"}'), "unknown type 'odd'"),
        (MINIMAL % ("", "3"), r"joints\[0\]: it is not a table"),
    ],
)
def test_json_refused(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        from_json(text)


def test_toml_refused() -> None:
    for text in ("drevo = 1\nname = ", "a" + ".a" * 100_000 + " = 1", "a = " + "[" * 10_000, "\xff"):
        with pytest.raises(ModelError):
            from_toml(text.encode("latin-1"))


def test_a_file_keeps_its_gravity_unless_another_is_given(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text('{"drevo": 1, "name": "r", "gravity": [0, -9.81, 0], "links": [{"name": "w"}]}')
    assert load_model(path).gravity == (0.0, -9.81, 0.0)
    assert load_model(path, gravity=(0, 0, 0)).gravity == (0.0, 0.0, 0.0)


# --- finding the format ----------------------------------------------------


@pytest.mark.parametrize(
    "name, text, says",
    [
        ("r.xml", "<svg/>", "the root element is <svg> on line 1; <robot> or <mujoco> or <sdf> is needed"),
        ("r.yaml", "<robot/>", "a robot file ends in .urdf"),
        ("r", "<robot/>", "this one in 'nothing'"),
        ("r.mjcf", "<robot/>", "the robot has no link"),
    ],
)
def test_formats_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match=says) as caught:
        load_model(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.urdf", tmp_path, "/dev/zero.urdf", "a\0b.urdf"):
        with pytest.raises(ModelError):
            load_model(path)
    for gravity in (5, "abc", (0, 0), (float("nan"), 0, 0), (0, 0, None), [[1, 2, 3]], {}, (0, 0, 1e300)):
        with pytest.raises(ModelError, match=r"^gravity is three numbers, .*, such as"):
            load_model(tmp_path / "none.urdf", gravity=gravity)


# --- MJCF ------------------------------------------------------------------

SCENE = """<mujoco model="t"><compiler angle="%s" eulerseq="%s"/><option gravity="0 1 -9"/>
<default><geom density="500"/><joint axis="0 1 0"/>
 <default class="a"><geom type="capsule" size=".05 .2"/>
  <default class="b"><joint type="slide"/></default></default></default>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="f" pos="0 0 1" euler="10 20 30"><freejoint/>
 <geom type="box" size=".1 .2 .3" euler="10 -20 40" pos=".1 .2 .3"/><geom class="a" fromto="0 0 0 .3 .2 .1"/>
 <body name="g" childclass="a" pos=".1 .2 .3" axisangle="1 2 3 40">
  <joint name="g1" pos=".1 .2 .3" range="-30 40"/><joint class="b" name="g2"/><joint type="ball" pos="0.3 .1 0"/>
  <geom zaxis="1 1 0" pos=".1 0 0"/><geom type="cylinder" size=".1 .3" xyaxes="1 1 0 0 1 1"/>
  <body name="h" quat=".5 .5 .1 .2"><joint name="h1"/>
   <geom type="ellipsoid" size=".1 .2 .3" mass="3" euler="5 6 7"/><geom type="sphere" size=".2" pos="1 2 3"/>
  </body>
 </body>
 <body name="w" pos="1 0 0"><inertial pos="1 2 3" mass="2" euler="10 20 30" diaginertia=".1 .2 .15"/></body>
 <body name="w2" pos="1 0 0"><joint type="hinge" name="x"/>
  <inertial pos="1 2 3" mass="2" fullinertia=".3 .2 .25 .01 .02 .03"/></body>
</body></worldbody></mujoco>"""


def read(text: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return finish(mjcf.draft_of(xml.parse(text.encode())))


def poses(model: Model, q: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found, k = {model.root: (np.eye(3), np.zeros(3))}, 0
    for j in model.joints:
        turn, place = found[j.parent]
        place, turn = place + turn @ np.array(j.origin), turn @ np.array(j.rotation)
        x, k = q[k : k + j.nq], k + j.nq
        if j.kind in ("free", "prismatic"):
            place = place + turn @ (x[:3] if j.kind == "free" else np.array(j.axis) * x[0])
        if j.kind in ("free", "spherical"):
            turn = turn @ np.array(matrix_of_quaternion(*x[-4:]))
        elif j.kind == "revolute":
            turn = turn @ np.array(from_axis_angle(j.axis, x[0]))
        found[j.child] = turn @ np.array(j.child_rotation), place + turn @ np.array(j.child_origin)
    return found


@pytest.mark.parametrize("angle", ["degree", "radian"])
@pytest.mark.parametrize("eulerseq", ["xyz", "ZYX", "zxz", "XYz"])
def test_mjcf_agrees_with_mujoco(angle: str, eulerseq: str) -> None:
    """Poses, masses and inertias of every body at a random configuration."""
    text = SCENE % (angle, eulerseq)
    theirs, ours = mujoco.MjModel.from_xml_string(text), read(text)
    data, q = mujoco.MjData(theirs), np.random.default_rng(1).normal(size=theirs.nq)
    mujoco.mj_normalizeQuat(theirs, q)
    data.qpos = q
    mujoco.mj_kinematics(theirs, data)
    q, k = q.copy(), 0
    for j in ours.moving_joints:
        k += j.nq
        if j.nq >= 4:
            q[k - 4 : k] = np.roll(q[k - 4 : k], -1)  # wxyz to xyzw
    found, links = poses(ours, q), {link.name: link for link in ours.links}
    for i in range(1, theirs.nbody):
        name = theirs.body(i).name
        (turn, place), body = found[name], links[name].inertial
        assert body and np.allclose(place, data.xpos[i]) and np.allclose(turn, data.xmat[i].reshape(3, 3))
        axes = data.ximat[i].reshape(3, 3)
        tensor = axes @ np.diag(theirs.body_inertia[i]) @ axes.T
        assert np.isclose(body.mass, theirs.body_mass[i]) and np.allclose(place + turn @ body.com, data.xipos[i])
        assert np.allclose(turn @ np.array(body.tensor) @ turn.T, tensor, rtol=1e-10, atol=1e-13)
    assert ours.gravity == (0.0, 1.0, -9.0)
    limit = ours.joints[1].limit
    assert limit and np.allclose([limit.lower, limit.upper], theirs.jnt_range[1])


def scene(body: str, head: str = "") -> str:
    return f'<mujoco>{head}<worldbody><body name="a">{body}</body></worldbody></mujoco>'


BALL = '<geom size="0.1" pos="1 0 0"/>'


def test_mjcf_notes_what_it_does_not_model() -> None:
    model = read(scene("<joint/>" + BALL, "<actuator><motor/><motor/></actuator><contact><pair/></contact>"))
    assert model.notes == (
        "actuator not read: motor (2)",
        "left out of contact: pairs of geoms that are not read '-'",
    )
    assert [j.name for j in model.joints] == ["a_joint"] and [k.name for k in model.links] == ["world", "a"]


def test_a_body_that_cannot_move_needs_no_inertia(tmp_path: Path) -> None:
    """A pedestal of meshes, and what is welded to it; on a base that moves it is asked for again."""
    mesh = '<geom type="mesh" mesh="m"/>'
    arm = f'<body name="arm"><joint/>{BALL}</body>'
    plate = f'<body name="plate">{mesh}{arm}</body>'
    text = f'<mujoco><worldbody><body name="p">{mesh}{plate}</body></worldbody></mujoco>'
    (file := tmp_path / "r.xml").write_text(text)
    assert drevo.load(file).nv == 1
    with pytest.raises(ModelError, match=r"2 problems:\n.*'p' .*its <geom> on line 1: the mesh 'm'.*\n.*'plate'"):
        drevo.load(file, base="floating")
    file.write_text(text.replace("<joint/>", "").replace(f'"plate">{mesh}', f'"plate"><joint/>{mesh}'))
    with pytest.raises(ModelError, match=r"body 'plate' .*: its <geom> on line 1: the mesh 'm'"):
        drevo.load(file)


@pytest.mark.parametrize(
    "text, says",
    [
        (scene('<joint type="odd"/>' + BALL), "unknown type 'odd'"),
        (scene('<joint class="odd"/>' + BALL), "unknown class 'odd'"),
        (scene('<joint axis="0 0 0"/>' + BALL), "joint 'a_joint' .* has the zero axis"),
        (scene('<joint/><geom type="mesh" mesh="m"/>'), "the mesh 'm', which no <asset> has"),
        (scene("<joint/><geom/>"), "has 0 sizes, 1 needed"),
        (scene(BALL + '<geom size="1" mass="-1"/>'), "<geom> on line 1 has the negative mass -1"),
        (scene(BALL + '<geom size="1" density="-2"/>'), "<geom> on line 1 has the negative density -2"),
        (scene('<joint/><geom size="-1"/>'), "a size that is not positive"),
        (
            scene("<joint/>" + BALL + '<body><freejoint/><geom size="1"/></body>'),
            "a free joint, which may only be",
        ),
        (scene("<joint/>"), "moves only links without mass"),
        (scene("<composite/>"), "<composite> on line 1 makes bodies by rules of its own"),
        (scene("<flexcomp/>"), "<flexcomp> on line 1 makes bodies by rules of its own"),
        (scene("<joint/>" + BALL, '<include file="x"/>'), "names the file 'x', but a text stands in no folder"),
        (scene(BALL, '<compiler coordinate="global"/>'), "coordinate='global' is not read"),
        (scene(BALL, '<compiler inertiafromgeom="yes"/>'), "inertiafromgeom='yes' is none of auto, true, false"),
        (scene(BALL, '<compiler eulerseq="abc"/>'), "eulerseq='abc'"),
        (scene(BALL.replace("/>", ' quat="0 0 0 0"/>')), "quat of <geom> on line 1 has no direction"),
        (scene('<inertial mass="1"/>'), "has no pos; add it"),
    ],
)
def test_mjcf_refused(text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        read(text)


# --- SDF -------------------------------------------------------------------

MASS = "<inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.15</izz></inertia></inertial>"


def sdf_scene(body: str, version: str = "1.9") -> Model:
    root = xml.parse(f'<sdf version="{version}"><model name="m">{body}</model></sdf>'.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return finish(sdf.draft_of(root))


def test_sdf_poses_are_relative_to_named_frames() -> None:
    """Two links placed in the model, a joint placed in its child: the links stand where the file puts them."""
    model = sdf_scene(
        f'<link name="a">{MASS}</link><link name="b">{MASS}<pose degrees="true">1 2 3 10 20 30</pose></link>'
        f'<link name="c">{MASS}<pose relative_to="f">0 0 1 0 0 0</pose></link>'
        '<frame name="f" attached_to="b"><pose>1 0 0 0 0 0.5</pose></frame>'
        '<joint name="j" type="revolute"><parent>a</parent><child>b</child><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose>'
        '<axis><xyz expressed_in="__model__">0 0 1</xyz><limit><lower>-1</lower><upper>inf</upper></limit></axis>'
        "</joint>"
        '<joint name="k" type="prismatic"><parent>b</parent><child>c</child><axis><xyz>0 2 0</xyz></axis></joint>'
    )
    assert [j.name for j in model.moving_joints] == ["j", "k"] and model.root == "a"
    found = poses(model, np.zeros(2))
    turn = from_rpy(*np.radians([10, 20, 30]).tolist())
    assert np.allclose(found["b"][1], (1, 2, 3)) and np.allclose(found["b"][0], turn)
    at_f = np.array((1, 2, 3)) + np.array(turn) @ (1, 0, 0)
    assert np.allclose(found["c"][1], at_f + np.array(turn) @ (0, 0, 1))
    moved = poses(model, np.array([0.7, 0.0]))  # about the model's z, through the anchor of j
    anchor = np.array((1, 2, 3)) + np.array(turn) @ (0.1, 0.2, 0.3)
    spin = np.array(from_axis_angle((0, 0, 1), 0.7))
    assert np.allclose(moved["b"][1], anchor + spin @ ((1, 2, 3) - anchor)) and np.allclose(
        moved["b"][0], spin @ turn
    )
    limit = model.joints[0].limit
    assert limit and (limit.lower, limit.upper) == (-1.0, None)


def test_sdf_kinds() -> None:
    links = "".join(f'<link name="{name}">{MASS}</link>' for name in "abcde")

    def joint(name: str, kind: str, parent: str, child: str, more: str = "") -> str:
        ends = f"<parent>{parent}</parent><child>{child}</child>"
        return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>'

    model = sdf_scene(
        links
        + joint("w", "fixed", "world", "a")
        + joint("s", "screw", "a", "b", "<screw_thread_pitch>0.02</screw_thread_pitch>")
        + joint("o", "screw", "b", "c", "<thread_pitch>-6.283185307179586</thread_pitch>")
        + joint("u", "universal", "c", "d", "<axis2><xyz>1 0 0</xyz></axis2>")
        + joint("r", "revolute", "d", "e", '<axis><mimic joint="s"><multiplier>2</multiplier></mimic></axis>')
    )
    assert [(j.name, j.kind, j.lead) for j in model.joints[1:4]] == [
        ("s", "helical", 0.02),
        ("o", "helical", 1.0),
        ("u", "universal", 0.0),
    ]
    assert (model.root, model.nv, model.joints[4].mimic) == ("world", 4, Mimic("s", 2.0))


@pytest.mark.parametrize(
    "body, says",
    [
        ("<include/>", "<include> on line 1: names no file"),
        ("", "the robot has no link"),
        ('<link name="a"/>', "link 'a' .* has no <inertial>, taken as 1 kg"),
        ('<link name="a"><inertial/></link>', "<inertial> on line 1 has no <mass>"),
        (f'<link name="a">{MASS}<pose relative_to="x"/></link>', "the frame 'x', .* does not exist"),
        (f'<link name="a">{MASS}<pose relative_to="a"/></link>', "the frame 'a', .* refers to itself"),
        (
            f'<link name="a">{MASS}<pose>1 2</pose></link>',
            "value of <pose> on line 1: '1 2' has 2 numbers, 6 needed",
        ),
        (f'<link name="a">{MASS}</link><joint name="j" type="ball"/>', "names no parent link"),
    ],
)
def test_sdf_refused(body: str, says: str) -> None:
    root = xml.parse(f'<sdf version="1.9"><model name="m">{body}</model></sdf>'.encode())
    with pytest.raises(ModelError, match=says):
        finish(sdf.draft_of(root), strict=True)


FLAT = (
    '<link name="base">%(mass)s</link><frame name="f"><pose>1 2 3 0.1 0.2 0.3</pose></frame>'
    '<link name="arm::a">%(mass)s<pose relative_to="g"/></link>'
    '<frame name="g"><pose relative_to="f">0 0 1 0 0.5 0</pose></frame>'
    '<link name="arm::b">%(mass)s<pose relative_to="g">0.1 0.2 0.3 0.4 0.5 0.6</pose></link>'
    '<joint name="arm::j" type="revolute"><parent>arm::a</parent><child>arm::b</child><axis>'
    '<xyz expressed_in="g">0 1 0</xyz></axis></joint><joint name="k" type="revolute"><parent>base</parent>'
    "<child>arm::a</child><axis><xyz>0 0 1</xyz></axis></joint>"
)
ARM = (
    '<link name="a">%(mass)s</link><link name="b">%(mass)s<pose>0.1 0.2 0.3 0.4 0.5 0.6</pose></link>'
    '<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis>'
    '<xyz expressed_in="__model__">0 1 0</xyz></axis></joint>'
)
AROUND = (
    '<link name="base">%(mass)s</link><frame name="f"><pose>1 2 3 0.1 0.2 0.3</pose></frame>%(arm)s'
    '<joint name="k" type="revolute"><parent>base</parent><child>%(before)sa</child>'
    "<axis><xyz>0 0 1</xyz></axis></joint>"
)


def test_nested_and_included_models_are_flat_ones(tmp_path: Path) -> None:
    arm, pose = ARM % {"mass": MASS}, '<pose relative_to="f">0 0 1 0 0.5 0</pose>'
    (tmp_path / "arms" / "left").mkdir(parents=True)
    (tmp_path / "arms" / "left" / "model.sdf").write_text(
        f'<sdf version="1.9"><model name="x">{arm}</model></sdf>'
    )
    include = f"<include%s><uri>model://left</uri><name>arm</name>{pose}</include>"
    flat = sdf_scene(FLAT % {"mass": MASS})
    wanted = poses(flat, np.array([0.3, 0.7]))
    for held, before in (
        (f'<model name="arm">{pose}{arm}</model>', "arm::"),
        (include % "", "arm::"),
        (include % ' merge="true"', ""),
    ):
        body = AROUND % {"mass": MASS, "arm": held, "before": before}
        path = tmp_path / "arms" / "r.sdf"
        path.write_text(f'<sdf version="1.9"><model name="m">{body}</model></sdf>')
        model = load_model(path)
        assert [j.name for j in model.moving_joints] == ["k", f"{before}j"]
        found = poses(model, np.array([0.3, 0.7]))
        for name in ("base", "arm::a", "arm::b"):
            for one, two in zip(found[name if name == "base" else before + name[5:]], wanted[name]):
                assert np.allclose(one, two, atol=1e-14)
    path.write_text(path.read_text().replace("model://left", "model://../../right"))
    with pytest.raises(ModelError, match=r"<include> on line 1: the file .* stands outside"):
        load_model(path)


def test_what_a_world_includes_may_be_missing(tmp_path: Path) -> None:
    model = f'<model name="m"><link name="a">{MASS}</link></model>'
    ground = "<include><uri>model://ground</uri></include>"
    path = tmp_path / "r.world"
    path.write_text(f'<sdf version="1.9"><world name="w">{ground}{model}</world></sdf>')
    assert "not found, and left out: <include> on line 1" in load_model(path).notes[0]
    path.write_text(f'<sdf version="1.9"><world name="w">{ground}</world></sdf>')
    with pytest.raises(ModelError, match="<include> on line 1: the file 'ground' does not exist"):
        load_model(path)
    (tmp_path / "ground").mkdir()
    (tmp_path / "ground" / "model.sdf").write_text(f'<sdf version="1.9"><model name="m">{ground}</model></sdf>')
    with pytest.raises(ModelError, match="more than 16 deep"):
        load_model(path)
