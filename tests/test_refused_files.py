"""What files of robots say and is refused or left out, told in a sentence."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo.io import meshes
from drevo.io.given import numbers
from drevo.io.meshes import read_mesh
from drevo.model.loaders.native import to_json

SLIDE = '<joint name="j" type="slide" range="-1 1"/>'
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
URDF = (
    '<robot name="r"><link name="b"/><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
    'ixy="0" ixz="0" iyz="0"/></inertial>%s</link><joint name="j" type="revolute"><parent link="b"/>'
    '<child link="a"/>%s<axis xyz="0 0 1"/><limit lower="-inf" upper="1" effort="1" velocity="1"/></joint></robot>'
)


def mjcf(body: str = SLIDE + INERTIAL, more: str = "", head: str = "") -> str:
    return (
        f'<mujoco>{head}<worldbody><site name="w"/><body name="a"><site name="s" pos="0 0 1"/>{body}</body>'
        f"</worldbody>{more}</mujoco>"
    )


def acted(inside: str) -> str:
    return mjcf(more=f"<actuator>{inside}</actuator>")


def pulled(inside: str) -> str:
    return mjcf(more=f"<tendon>{inside}</tendon>")


def sdf(inside: str, axis: str = "", version: str = "1.9") -> str:
    mass = "<inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.2</iyy><izz>.15</izz></inertia></inertial>"
    return (
        f'<sdf version="{version}"><model name="m"><link name="a">{mass}</link><joint name="j" type="revolute">'
        f"<parent>world</parent><child>a</child><axis><xyz>0 0 1</xyz>{axis}</axis></joint>{inside}</model></sdf>"
    )


def said(source: Any) -> str:
    """The refusal, or all that is warned about and noted."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            robot = drevo.load(source)
        except drevo.DrevoError as error:
            return str(error)
    return " ".join([*(str(w.message) for w in caught), *robot.notes])


def quiet(source: Any) -> drevo.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return drevo.load(source)


TEXTS = {
    "a gain of muscles": (acted('<general joint="j" gaintype="muscle"/>'), "actuator not read: general (1)"),
    "a ratio of the damping of no spring": (
        acted('<general joint="j" gainprm="-1" biastype="affine" biasprm="0 1 1"/>'), "general on line 1"
    ),
    "a joint that is none": (acted('<motor joint="k"/>'), "the joint 'k' does not exist"),
    "a gear of nothing": (acted('<motor joint="j" gear="0"/>'), "has the gear 0 and drives nothing"),
    "a pulley": (
        pulled('<spatial name="t"><site site="w"/><pulley divisor="-1"/><site site="s"/></spatial>'),
        "divisor on line 1 is -1; give a positive one",
    ),
    "cubes": (
        pulled('<fixed name="t" stiffness="1 2 3"><joint joint="j"/></fixed>'), "powers of stiffness and damping"
    ),
    "a range": (pulled('<fixed name="t" range="0 1" limited="true"><joint joint="j" coef="0"/></fixed>'), "range"),
    "coupled tendons": (mjcf(more='<equality><tendon tendon1="t"/></equality>'), "'t' is no tendon of the file"),
    "fitted to a box": (
        mjcf(
            SLIDE + '<geom type="box" mesh="m"/>',
            head='<compiler fitaabb="true"/><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
        ),
        "fitaabb fits a solid to the box of a mesh",
    ),
    "a hull that is cut": (
        mjcf(
            SLIDE + '<geom type="mesh" mesh="m"/>',
            head='<asset><mesh name="m" maxhullvert="5" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>',
        ),
        "a convex hull cut by maxhullvert",
    ),
    "no root of a robot": ("<table/>", "table"),
    "two turns": (URDF % ("", '<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>'), "has both rpy and quat_xyzw"),
    "a long name": ((URDF % ("", "")).replace('name="j"', f'name="{"j" * 2000}"'), "has a name longer than 256"),
    "a link without a name": ((URDF % ("", "")).replace('<link name="b"/>', "<link/>"), "has no name"),
    "a frame without a name": (sdf("<link/>"), "has no name; give it one"),
    "a link called world": (sdf('<link name="world"/>'), "world"),
    "a ratio of zero": (
        sdf(
            '<joint name="g" type="gearbox"><parent>world</parent><child>a</child><gearbox_ratio>0</gearbox_ratio>'
            "<gearbox_reference_body>a</gearbox_reference_body><axis><xyz>0 0 1</xyz></axis></joint>"
        ),
        "g",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TEXTS)
def test_is_told_in_a_sentence(what: str) -> None:
    text, sentence = TEXTS[what]
    assert sentence in said(text)


def test_names_of_actuators_and_inherited_ranges() -> None:
    """A name is made where there is none, another one where it is taken; a share of the joint's range."""
    robot = quiet(
        acted('<motor name="j_position" joint="j"/><position joint="j" inheritrange=".5"/>'
              '<velocity joint="j"/><damper joint="j"/>')
    )  # fmt: skip
    names = [x.name for x in robot.model.actuators]
    assert names == ["j_position", "j_position_", "j_velocity", "j_damper"]
    assert robot.model.actuators[1].control_range == (-0.5, 0.5)


def test_a_bound_that_is_infinite_is_none() -> None:
    limit = drevo.load(URDF % ("", "")).model.joints[0].limit
    assert limit and limit.lower is None and limit.upper == 1.0


def test_axes_of_old_files_are_those_of_the_model() -> None:
    """<use_parent_model_frame>, and all of before version 1.5."""
    old = drevo.load(sdf("", "<use_parent_model_frame>1</use_parent_model_frame>", "1.4"))
    assert old.model.joints[0].axis == (0.0, 0.0, 1.0)


ATTACHED = '<mujoco><asset><model name="m" file="m.xml"/></asset><worldbody/></mujoco>'
PARTS = {
    "another root": ("<robot/>", ATTACHED, "begins with <robot>; <mujoco> is needed"),
    "no xml": ("<", '<mujoco><include file="m.xml"/></mujoco>', "<include> on line 1, 'm.xml'"),
}


@pytest.mark.parametrize("what", PARTS)
def test_parts_of_files(what: str, tmp_path: Path) -> None:
    part, whole, sentence = PARTS[what]
    (tmp_path / "m.xml").write_text(part)
    (tmp_path / "r.xml").write_text(whole)
    with pytest.raises(drevo.ModelError, match=sentence):
        drevo.load(tmp_path / "r.xml")


def changed(*path: Any, value: Any) -> str:
    """The three-link arm as JSON, one value of it another."""
    whole = json.loads(to_json(drevo.load("three-link").model))
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(whole)


OWN = [
    (("links",), 3, "is not a list"),
    (("joints", 0, "kind"), "ball-ish", "ball-ish"),
    (("stepping",), {"disabled": "contact"}, "disabled"),
    (("sensors",), [{"name": "a", "kind": "touch", "size": 1}], "size"),
    (("geoms",), [{"name": "a", "link": "link1", "kind": "sphere", "size": [0.1], "condim": 2.5}], "whole number"),
    (("joints", 0, "formula"), [["a"]], "formula"),
]


@pytest.mark.parametrize(("path", "value", "sentence"), OWN, ids=[".".join(map(str, row[0])) for row in OWN])
def test_values_of_own_files(path: tuple[Any, ...], value: Any, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(changed(*path, value=value))
    with pytest.raises(drevo.ModelError, match=sentence):
        drevo.load(tmp_path / "r.json")


def test_a_mesh_is_found_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the file or above it, in any case of letters; two of one name are none."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "Part.STL").touch()
    assert meshes.find_moved("package://x/part.stl", str(tmp_path / "a")) == str(tmp_path / "a" / "Part.STL")
    assert meshes.find_moved("none.stl", str(tmp_path / "a")) is None
    (tmp_path / "a" / "b").mkdir()
    (tmp_path / "a" / "b" / "part.stl").touch()
    assert meshes.find_moved("part.stl", str(tmp_path / "a")) is None
    monkeypatch.setattr(meshes, "MOST_FILES", 1)
    assert meshes.find_moved("part.stl", str(tmp_path / "a")) is None


STL = b"solid a\n facet normal 0 0 1\n outer loop\n vertex 0 0 0\n vertex 1 0 0\n endloop\n endfacet\nendsolid a\n"


def test_triangles_of_two_corners() -> None:
    with pytest.raises(drevo.DrevoError, match="vertices that make no triangles"):
        read_mesh(STL, "stl")


def test_masked_numbers() -> None:
    with pytest.raises(drevo.InputError, match="some are masked; fill them, or leave them out"):
        numbers("x", np.ma.masked_array([1.0, 2.0], [True, False]))
