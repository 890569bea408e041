"""Physics that files hold: read as the simulators read it, or named in one warning; never dropped in silence."""

from __future__ import annotations

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import drevo

BALL = '<geom size="0.1" pos="0.3 0.1 0.2"/>'


def mjcf(joints: str = '<joint name="j"/>', more: str = "", body: str = "") -> str:
    return f'<mujoco>{more}<worldbody><body name="a" {body}>{joints}{BALL}</body></worldbody></mujoco>'


def load(tmp_path: Path, text: str, name: str = "r.xml", **given: object) -> tuple[drevo.Robot, str]:
    """The robot, and what it was loaded with a warning about."""
    path = tmp_path / name
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = drevo.load(path, **given)  # type: ignore[arg-type]
    assert len(caught) <= 1 and all(w.category is drevo.DrevoWarning for w in caught)
    return robot, str(caught[0].message) if caught else ""


# --- gravity ------------------------------------------------------------------------------------------------


def test_gravity_that_a_flag_switches_off(tmp_path: Path) -> None:
    head = '<option gravity="0 0 -5"/><option><flag gravity="disable"/></option>'
    robot, said = load(tmp_path, mjcf(more=head))
    assert robot.model.gravity == (0.0, 0.0, 0.0) and not said
    enabled = head.replace("disable", "enable")
    assert load(tmp_path, mjcf(more=enabled))[0].model.gravity == (0.0, 0.0, -5.0)
    assert load(tmp_path, mjcf(more=head), gravity=(0, 0, -9.81))[0].model.gravity == (0.0, 0.0, -9.81)


WORLD = '<sdf version="1.9"><world name="w"><gravity>0 0 -3.7</gravity>%s</world></sdf>'
LINK = (
    '<link name="a"><inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial>'
)
TOML = 'drevo = 1\nname = "r"\ngravity = [0, 0, -1.6]\nlinks = [{name = "w"}]\n'


@pytest.mark.parametrize(
    "name, text, own",
    [
        ("r.xml", mjcf(more='<option gravity="1 2 3"/>'), (1.0, 2.0, 3.0)),
        ("r.xml", mjcf(), (0.0, 0.0, -9.81)),
        ("r.sdf", WORLD % f'<model name="m">{LINK}</link></model>', (0.0, 0.0, -3.7)),
        (
            "r.json",
            '{"drevo": 1, "name": "r", "gravity": [0, 0, -1.6], "links": [{"name": "w"}]}',
            (0.0, 0.0, -1.6),
        ),
        ("r.urdf", '<robot name="r"><link name="a"/></robot>', (0.0, 0.0, -9.81)),
    ],
)
def test_a_given_gravity_wins_also_when_it_is_the_usual_one(
    tmp_path: Path, name: str, text: str, own: object
) -> None:
    assert load(tmp_path, text, name)[0].model.gravity == own
    for given in ((0, 0, -9.81), [0, 0, 0], np.array([1, 2, 3]), np.float32([0, 0, -9.75])):
        assert load(tmp_path, text, name, gravity=given)[0].model.gravity == tuple(float(x) for x in given)


WRONG = (
    5,
    "abc",
    (0, 0),
    (float("nan"), 0, 0),
    (0, 0, "9"),
    None,
    [[0, 0, 1]] * 3,
    np.zeros((3, 1)),
    {1, 2, 3j},
    True,
)


@pytest.mark.parametrize("gravity", WRONG, ids=range(len(WRONG)))
def test_gravity_that_is_no_vector_is_refused_everywhere(gravity: object) -> None:
    rows = [{"mass": 1.0, "inertia": np.eye(3)}]
    calls = [
        lambda: drevo.load("puma560", gravity=gravity),  # type: ignore[arg-type]
        lambda: drevo.from_dh(rows, gravity=gravity),  # type: ignore[arg-type]
        lambda: drevo.Builder("r", gravity=gravity),
    ]
    for call in calls[2:] if gravity is None else calls:
        with pytest.raises(drevo.ModelError, match="gravity") as caught:
            call()
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


# --- where q counts from ------------------------------------------------------------------------------------

REFERENCES = """<mujoco><compiler angle="%s"/><default><joint ref="0.3"/></default><worldbody>
<body name="a" pos="0 0 1" euler="0.1 0.2 0.3"><joint name="j" axis="1 2 0" pos="0.1 0 0.2" range="-1 2"/>
 <joint name="k" type="slide" axis="0 0 2" ref="-0.2" range="-1 0.5"/><joint name="l" axis="0 1 0" ref="0"/>
 <geom size="0.1" pos="0.1 0.2 0.3"/>
 <body name="b" pos="0.2 0 0"><joint name="s" type="ball" ref="9"/><geom type="box" size=".1 .2 .3"/>
  <body name="c" pos="0.2 0.1 0"><joint name="m" pos="0 0.1 0" ref="1.5"/><geom size=".1" pos=".1 0 .1"/></body>
 </body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("angle", ["degree", "radian"])
def test_q_counts_from_the_reference_as_in_mujoco(tmp_path: Path, angle: str) -> None:
    theirs = mujoco.MjModel.from_xml_string(REFERENCES % angle)
    robot, said = load(tmp_path, REFERENCES % angle)
    assert not said
    data, rng = mujoco.MjData(theirs), np.random.default_rng(3)
    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    q = data.qpos.copy()
    q[3:7] = np.roll(q[3:7], -1)  # wxyz to xyzw
    for name in "abc":
        pose = robot.pose(q, name)
        assert np.allclose(pose[:3, 3], data.body(name).xpos, atol=1e-13)
        assert np.allclose(pose[:3, :3], data.body(name).xmat.reshape(3, 3), atol=1e-13)
    assert np.allclose(robot.bias(q, data.qvel), data.qfrc_bias, atol=1e-12)
    bounds = [(j.limit.lower, j.limit.upper) for j in robot.model.moving_joints[:2] if j.limit]
    assert np.allclose(bounds, theirs.jnt_range[:2])


FRAMES = """<mujoco><default><default class="s"><geom size=".1"/></default></default><worldbody>
<frame pos="0 0 1" euler="10 20 30"><body name="a" pos=".1 .2 .3" euler="30 20 10">
 <frame pos="1 0 0" euler="0 0 40">
  <joint name="j" pos="0 .1 .2" axis="1 0 0"/><geom size=".1" pos=".1 0 0"/>
  <frame childclass="s" quat="1 1 0 0"><geom pos="0 .3 0"/><joint name="k" type="slide" axis="0 0 1" ref=".1"/>
   <body name="b" pos="0 0 .2"><joint name="l" type="ball" pos=".1 0 0"/><geom type="box" size=".1 .2 .3"/></body>
  </frame></frame></body></frame></worldbody></mujoco>"""


def test_frames_place_what_they_hold(tmp_path: Path) -> None:
    theirs = mujoco.MjModel.from_xml_string(FRAMES)
    robot, _ = load(tmp_path, FRAMES, strict=True)
    data, rng = mujoco.MjData(theirs), np.random.default_rng(5)
    data.qpos, data.qvel = rng.normal(size=theirs.nq), rng.normal(size=theirs.nv)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    q = data.qpos.copy()
    q[2:6] = np.roll(q[2:6], -1)  # wxyz to xyzw
    assert robot.joint_names == ("j", "k", "l")
    for name in "ab":
        assert np.allclose(robot.pose(q, name)[:3, 3], data.body(name).xpos, atol=1e-13)
    assert np.allclose(robot.bias(q, data.qvel), data.qfrc_bias, atol=1e-11)


# --- what is not read ---------------------------------------------------------------------------------------

JOINTED = '<joint name="j"/>'
MJCF = [
    (mjcf(more='<option density="1.2" wind="1 0 0"/>'), ["density, wind of <option> (line 1)"]),
    (mjcf(more='<option viscosity="1"/>').replace("<geom", '<geom fluidshape="ellipsoid"'), ["viscosity"]),
    (mjcf(more='<tendon><spatial name="t" stiffness="1"><geom/></spatial></tendon>'), ["around geoms of spatial"]),
    (
        mjcf(more='<default><tendon range="0 1"/></default><tendon><spatial name="t"><geom/></spatial></tendon>'),
        ["the tendon around geoms of spatial 't'"],
    ),
    (
        mjcf(JOINTED, '<tendon><fixed name="t" armature="1"><joint joint="j" coef="1"/></fixed></tendon>'),
        ["armature of fixed 't'"],
    ),
    (
        mjcf(more='<actuator><position name="p" site="s"/></actuator>'),
        ["force without control of position 'p'"],
    ),
    (mjcf(more='<actuator><velocity name="p" site="s"/></actuator>'), ["velocity 'p'"]),
    (mjcf(more='<actuator><general name="g" biastype="affine" biasprm="0 -1"/></actuator>'), ["general 'g'"]),
    (mjcf(more='<actuator><motor name="m" ctrlrange="1 2"/></actuator>'), ["motor 'm'"]),
    (
        mjcf(more='<actuator><motor name="m" armature="1"/><muscle name="n"/></actuator>'),
        ["armature of motor", "'n'"],
    ),
    (
        mjcf(more='<default><general biastype="affine" biasprm="1"/></default><actuator><general/></actuator>'),
        ["general"],
    ),
    (mjcf().replace("</body>", '<plugin plugin="mujoco.elasticity.cable"/></body>'), ["plugin of body 'a'"]),
    (mjcf(more='<deformable><flex name="f"/></deformable>'), ["flex of flex 'f'"]),
]


@pytest.mark.parametrize("text, words", MJCF, ids=lambda x: x[0][:30] if isinstance(x, list) else "")
def test_mjcf_physics_that_is_not_read_is_named(tmp_path: Path, text: str, words: list[str]) -> None:
    _, said = load(tmp_path, text)
    assert "this changes the dynamics and is not read (strict=True refuses): " in said
    assert all(word in said for word in words), said
    with pytest.raises(drevo.ModelError, match="not read, though it changes the dynamics"):
        load(tmp_path, text, strict=True)


NOTHING = [
    mjcf('<joint armature="0" damping="0.0" frictionloss="0" stiffness="-0e5" springref="3" ref="0"/>'),
    mjcf("<freejoint/>", '<default><joint armature="1" damping="1"/></default>'),  # has no defaults, as in MuJoCo
    mjcf("<freejoint/>", '<compiler alignfree="false"/>'),
    mjcf('<freejoint align="true"/>').replace(
        "</body>", '<body name="b"/></body>'
    ),  # only of bodies without children
    mjcf(more='<option wind="1 2 3" density="0"/>').replace("<geom", '<geom fluidshape="ellipsoid"'),
    mjcf(more='<equality><weld body1="a" active="false"/></equality>'),
    mjcf(more='<option><flag equality="disable"/></option><equality><weld body1="a"/></equality>'),
    mjcf(more='<option><flag constraint="disable"/></option><equality><weld body1="a"/></equality>'),
    mjcf(more='<tendon><spatial name="t" stiffness="0" limited="false" range="0 1"><geom/></spatial></tendon>'),
    mjcf(more='<actuator><motor gear="100" ctrlrange="-1 1"/><general gainprm="3"/><position kp="0"/></actuator>'),
    mjcf(more='<actuator><motor ctrlrange="1 2" ctrllimited="false"/><position gear="0"/><adhesion/></actuator>'),
    mjcf(more='<option><flag actuation="disable"/></option><actuator><position joint="j"/></actuator>'),
    mjcf(body='gravcomp="1"', more='<option gravity="0 0 0"/>'),
    mjcf('<joint damping="1" stiffness="1"/>', '<option><flag spring="disable" damper="disable"/></option>'),
    mjcf(more="<contact><pair/><exclude body1='a' body2='world'/></contact><sensor><touch/></sensor>"),
]


@pytest.mark.parametrize("text", NOTHING)
def test_values_that_change_nothing_do_not_warn(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text, strict=True)[1] == ""


URDF = (
    '<robot name="r"><link name="b"/><link name="a"><inertial><mass value="1"/>'
    '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    '<joint name="j" type="revolute"><parent link="b"/><child link="a"/>%s</joint>'
    "%s</robot>"
)
SDF = '<sdf version="1.9"><model name="m"><link name="b"/>%s%s</link>%s</model></sdf>'
AXIS = '<joint name="j" type="revolute"><parent>b</parent><child>a</child><axis><xyz>0 0 1</xyz>%s</axis></joint>'


@pytest.mark.parametrize(
    "name, text, word",
    [
        (
            "r.urdf",
            URDF % ("", '<gazebo reference="j"><springStiffness>3</springStiffness></gazebo>'),
            "gazebo 'j'",
        ),
        ("r.urdf", URDF % ("", '<gazebo reference="a"><gravity>0</gravity></gazebo>'), "gravity of gazebo 'a'"),
        ("r.urdf", URDF % ("", '<drake:revolute_spring name="l"/>'), "revolute_spring"),
        ("r.sdf", SDF % (LINK, "<gravity>false</gravity>", AXIS % ""), "gravity of link 'a'"),
        ("r.sdf", SDF % (LINK, "<kinematic>1</kinematic>", AXIS % ""), "kinematic of link 'a'"),
        (
            "r.sdf",
            SDF % (LINK, "<velocity_decay><linear>1</linear></velocity_decay>", AXIS % ""),
            "velocity_decay of link 'a'",
        ),
    ],
)
def test_urdf_and_sdf_physics_that_is_not_read_is_named(tmp_path: Path, name: str, text: str, word: str) -> None:
    _, said = load(tmp_path, text, name)
    assert said.count("changes the dynamics") == 1 and word in said
    with pytest.raises(drevo.ModelError, match="refused because strict=True"):
        load(tmp_path, text, name, strict=True)


def test_many_elements_are_counted_and_all_are_in_the_attribute(tmp_path: Path) -> None:
    body = "".join(f'<body name="b{i}"><joint/><plugin plugin="p"/>{BALL}</body>' for i in range(60))
    (tmp_path / "r.xml").write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.warns(drevo.DrevoWarning, match=r"plugin of bodies 'b0', .*'b11' and 48 more") as caught:
        drevo.load(tmp_path / "r.xml")
    warning = caught[0].message
    assert isinstance(warning, drevo.DrevoWarning) and len(str(warning)) < 600
    assert len(warning.problems) == 1 and "'b59'" in warning.problems[0]
