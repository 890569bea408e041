"""What is wrong with what acts in joints, in files: one sentence with the element and its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import drevo

BODY = '<inertial pos="0 0 -.1" mass="1" diaginertia=".1 .1 .1"/>'
MASS = "<mass value='1'/><origin xyz='0.1 0 0'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"
INERTIA = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"


def mjcf(joint: str, rest: str = "") -> str:
    text = f'<joint name="j" axis="0 1 0" {joint}/>'
    return f'<mujoco>\n<worldbody>\n<body name="b">{BODY}\n{text}\n</body></worldbody>\n{rest}</mujoco>'


def urdf(inside: str, beside: str = "") -> str:
    links = f'<link name="a"/><link name="b"><inertial>{MASS}</inertial></link>'
    ends = '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/>'
    joint = f'<joint name="j" type="continuous">{ends}\n{inside}</joint>'
    return f'<robot name="r" xmlns:drake="d">{links}\n{joint}\n{beside}</robot>'


def sdf(inside: str, more: str = "") -> str:
    link = f"<link name='b'><inertial><mass>1</mass><pose>.1 0 0 0 0 0</pose>{INERTIA}</inertial></link>"
    joint = "<joint name='j' type='revolute'><parent>world</parent><child>b</child>"
    axis = f"<axis><xyz>0 1 0</xyz>{inside}</axis></joint>"
    return f"<sdf version='1.9'><model name='m'>{link}\n{joint}{more}{axis}</model></sdf>"


TRANSMISSION = "<transmission name='t'><joint name='%s'/><actuator name='m'>%s</actuator></transmission>"
ROTOR = "<drake:rotor_inertia value='0.1'/>"
REFUSED = {
    mjcf('armature="-1"'): "joint 'j' (line 4) has the negative armature -1",
    urdf('<dynamics armature="-0.5"/>'): "joint 'j' (line 2) has the negative armature -0.5",
    sdf("", "<drake:rotor_inertia>-1</drake:rotor_inertia>"): "joint 'j' (line 2) has the negative armature -1",
    sdf("", "<drake:rotor_inertia>1</drake:rotor_inertia><drake:gear_ratio>0</drake:gear_ratio>"):
        "joint 'j' (line 2): the gear ratio is 0",
    mjcf('frictionloss="nan"'): "joint 'j' (line 4): frictionloss of <joint> on line 4: 'nan' is not finite",
    urdf("", TRANSMISSION % ("x", ROTOR)): "transmission 't' (line 4): the joint 'x' does not exist",
    urdf("", TRANSMISSION % ("j", ROTOR + "<mechanicalReduction>0</mechanicalReduction>")):
        "transmission 't' (line 4): the gear ratio is 0",
    mjcf("", '<tendon>\n<spatial name="t"><site site="x"/><site site="x"/></spatial></tendon>'):
        "spatial 't' (line 7): the site 'x' on line 7 does not exist",
    mjcf("", '<tendon>\n<fixed name="t"><joint joint="x" coef="1"/></fixed></tendon>'):
        "fixed 't' (line 7): 'x' on line 7 is no hinge or slide of the file",
}  # fmt: skip
WARNED = {
    mjcf('damping="-0"'): "joint 'j' (line 4) has the damping -0, taken as 0",
    urdf('<dynamics damping="-0.0"/>'): "joint 'j' (line 2) has the damping -0, taken as 0",
    sdf("<dynamics><damping>-0</damping></dynamics>"): "joint 'j' (line 2) has the damping -0, taken as 0",
    urdf("", '<dynamics friction="1"/>'): "<dynamics> on line 4 stands in <robot> and acts on nothing",
    urdf("", TRANSMISSION % ("j", "<mechanicalReduction>0</mechanicalReduction>")):
        "transmission 't' (line 4): the gear ratio is 0",
    mjcf("", '<actuator>\n<motor name="m" joint="j" gear="0"/></actuator>'):
        "motor 'm' (line 7) has the gear 0 and drives nothing",
    mjcf("", '<actuator>\n<motor joint="x"/></actuator>'): "motor on line 7: the joint 'x' does not exist",
}  # fmt: skip


@pytest.mark.parametrize(("text", "says"), REFUSED.items())
def test_it_is_refused(text: str, says: str) -> None:
    with pytest.raises(drevo.ModelError, match=re.escape(says)):
        drevo.load(text)


@pytest.mark.parametrize(("text", "says"), WARNED.items())
def test_it_is_doubtful(text: str, says: str) -> None:
    with pytest.warns(drevo.DrevoWarning, match=re.escape(says)):
        assert drevo.load(text).nv == 1
    with pytest.raises(drevo.ModelError, match=re.escape(says)):
        drevo.load(text, strict=True)


def test_folders_and_files_that_include_themselves(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text('<mujoco>\n<include file="b.xml"/>\n</mujoco>')
    (tmp_path / "b.xml").write_text('<mujoco>\n\n<include file="a.xml"/>\n</mujoco>')
    with pytest.raises(drevo.ModelError, match=r"<include> on line 3 of b.xml: 'a.xml' includes itself"):
        drevo.load(tmp_path / "a.xml")
    with pytest.raises(drevo.ModelError, match=r"a directory with 'a.xml', 'b.xml'; name a robot file"):
        drevo.load(tmp_path)
