"""What touches, drives and measures as data of a Model: kept by Drevo's own files, and judged."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from robot_texts import from_json, from_toml, parse_urdf

import drevo
from drevo.model.base import with_base
from drevo.model.contact import Actuator, ContactPair, DCMotor, Geom, JointSoftness, Sensor, Stepping
from drevo.model.description import Model
from drevo.model.loaders import native
from drevo.model.loaders.urdf_writer import to_urdf

MOTOR = DCMotor(0.1, 2.0, current_rate=30.0, ambient=300.0, stribeck=0.1)
DRIVE = Actuator("drive", "joint1", inputs=("voltage",), motor=MOTOR)


@pytest.fixture(scope="module")
def model() -> Model:
    plain = drevo.load("three-link").model
    last, joint = plain.links[-1].name, plain.joints[-1].name
    return replace(
        plain,
        source="",
        notes=("left out of contact: pairs of the kinds sphere-hull ('ball' and 'stone')",),
        geoms=(
            Geom(
                "floor",
                plain.root,
                "plane",
                friction=(0.7, 0.1, 0.2),
                condim=4,
                surface=(1.0, 0.0, 0.0, 0.0, 0.0, 2.0),
            ),
            Geom("ball", last, "sphere", (0.1,), (0.1, 0.2, 0.3), solref=(-100.0, -3.0), priority=2, contype=5),
            Geom("stone", last, "hull", points=((0.0, 0.0, 0.1), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0))),
        ),
        pairs=(ContactPair("ball", "stone", condim=6, friction=(1.0, 0.5, 0.1, 0.2, 0.3), margin=0.01),),
        softness=(JointSoftness(joint, limit_margin=0.1, friction_solimp=(0.8, 0.9, 0.01, 0.5, 1.0)),),
        actuators=(Actuator("motor", joint, 2.0, (3.0, 0.0, 0.0), (0.0, -3.0, -0.1), (-1.0, 1.0)), DRIVE),
        sensors=(Sensor("touch", "touch", link=last, size=(0.1, 0.1, 0.1)),),
        stepping=Stepping(
            0.01,
            "RK4",
            "elliptic",
            10.0,
            ("contact",),
            enabled=("diagexact",),
            noslip=3,
            override=(0.01, 0.03, 0.8, 0.5, 0.7, 0.01, 0.4, 3.0, 0.2, 0.3, 0.01, 0.02, 0.03),
        ),
        initial=(0.1, 0.2, 0.3),
    )


def test_own_files_keep_all(model: Model) -> None:
    assert from_json(native.to_json(model)) == model
    assert from_toml(native.to_toml(model)) == model
    assert pickle.loads(pickle.dumps(model)) == model  # noqa: S301


def test_urdf_keeps_what_touches_in_elements_of_its_own(model: Model) -> None:
    again = parse_urdf("\n".join(to_urdf(model).lines).encode())
    for key in ("geoms", "pairs", "softness", "actuators", "sensors"):
        assert getattr(again, key) == getattr(model, key)


def test_a_base_goes_before_the_initial_configuration(model: Model) -> None:
    assert with_base(model, "floating", kinematic=True).initial == (0.0,) * 6 + (1.0, 0.1, 0.2, 0.3)


NODES = tuple((x, y, 0.1) for y in (-1.0, 0.0, 1.0) for x in (-1.0, 1.0))  # of a height field
LOW = (-1.0, -1.0, -0.2)
BALL = Geom("a", "link1", "sphere", (0.1,))
WRONG = {
    "friction is zero or positive": {"geoms": (Geom("a", "link1", "sphere", (0.1,), friction=(-1.0, 0.0, 0.0)),)},
    "which does not exist": {"geoms": (Geom("a", "link9", "sphere", (0.1,)),)},
    "2 needed": {"geoms": (Geom("a", "link1", "capsule", (0.1,)),)},
    "sizes are positive": {"geoms": (Geom("a", "link1", "box", (0.1, 0.0, 0.1)),)},
    "unknown kind": {"geoms": (Geom("a", "link1", "cone", (0.1,)),)},
    "without points": {"geoms": (Geom("a", "link1", "hull"),)},
    "no grid over its sides": {"geoms": (Geom("a", "link1", "hfield", (1.0, 1.0, 0.1), points=NODES[:5]),)},
    "no grid over": {"geoms": (Geom("a", "link1", "hfield", (1.0, 1.0, 0.1), points=NODES[:2]),)},
    "no grid": {"geoms": (Geom("a", "link1", "hfield", (2.0, 1.0, 0.1), points=NODES),)},
    "all above its base": {"geoms": (Geom("a", "link1", "hfield", (1.0, 1.0, 0.1), points=(LOW, *NODES[1:])),)},
    "surface velocity of 2 numbers": {"geoms": (Geom("a", "link1", "sphere", (0.1,), surface=(1.0, 0.0)),)},
    "-1 sweeps of noslip": {"stepping": Stepping(noslip=-1)},
    "an override of 2 numbers": {"stepping": Stepping(override=(0.0, 1.0))},
    "override that has the friction": {"stepping": Stepping(override=(0.0, 0.02, 1.0) + (0.5,) * 5 + (-1.0,) * 5)},
    "condim 2": {"geoms": (Geom("a", "link1", "sphere", (0.1,), condim=2),)},
    "both are positive": {"geoms": (Geom("a", "link1", "sphere", (0.1,), solref=(0.02, -1.0)),)},
    "given more than once": {"geoms": (Geom("a", "link1", "sphere", (0.1,)),) * 2},
    "names the geom 'b'": {"pairs": (ContactPair("b", "b"),)},
    "names the joint 'x'": {"actuators": (Actuator("a", "x"),)},
    "which is none": {"actuators": (Actuator("a", "joint1", control_range=(1.0, 1.0)),)},
    "the constant -1 N m/A": {"actuators": (Actuator("a", "joint1", motor=DCMotor(-1.0, 1.0)),)},
    "the time constant -1 s": {"actuators": (Actuator("a", "joint1", motor=DCMotor(1.0, 1.0, -1.0)),)},
    "and capacity 0 J/K": {"actuators": (replace(DRIVE, motor=DCMotor(1.0, 1.0, thermal_resistance=3.0)),)},
    "LuGre's friction 9 0 0 0 0": {"actuators": (replace(DRIVE, motor=DCMotor(1.0, 1.0, bristle_stiffness=9.0)),)},
    "unknown kind 'smell'": {"sensors": (Sensor("a", "smell", link="link1"),)},
    "the time step 0 s": {"stepping": Stepping(0.0)},
    "the integrator 'euler'": {"stepping": Stepping(integrator="euler")},
    "the cone 'round'": {"stepping": Stepping(cone="round")},
    "2 numbers, q has 3": {"initial": (0.0, 0.0)},
    "negative solmix -1": {"geoms": (replace(BALL, solmix=-1.0),)},
    "negative contype or conaffinity": {"geoms": (replace(BALL, contype=-1),)},
    "has condim 5": {"geoms": (BALL,), "pairs": (ContactPair("a", "a", condim=5),)},
    "has 1 coefficients of friction; a pair has 5": {
        "geoms": (BALL,),
        "pairs": (ContactPair("a", "a", friction=(1.0,)),),
    },
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(sentence: str) -> None:
    plain = drevo.load("three-link").model
    with pytest.raises(drevo.ModelError, match=sentence) as refusal:
        from_json(native.to_json(replace(plain, **WRONG[sentence])))
    assert len(refusal.value.problems) == 1
