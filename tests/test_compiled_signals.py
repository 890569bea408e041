"""Actuators and sensors of compiled MuJoCo models beside those of their files; what a compiler works out."""

from __future__ import annotations

import numpy as np
import pytest
from test_signals import ACTUATORS, MOTORS, PIDS, PULLED, READ, WORLD, beside, whole

import drevo
from drevo.model.loaders.mjcf.schema import schema
from drevo.model.loaders.mujoco_model import RENAMED

mujoco = pytest.importorskip("mujoco")


@pytest.mark.parametrize("actuators, sensors", [(ACTUATORS, PULLED), (PIDS, READ), (MOTORS, READ)])
def test_compiled_models_are_driven_and_read_as_their_files(actuators: str, sensors: str) -> None:
    beside(whole("", actuators=actuators, sensors=sensors), 6, "euler", compiled=True)


def test_of_compiled_models_is_noted_what_is_of_their_files() -> None:
    """Sensors, and cuts of a tendon's force; each kind of a sensor has its name in files."""
    kinds = {x.partition("_")[2].lower() for x in mujoco.mjtSensor.__members__}
    assert {RENAMED.get(x, x) for x in kinds} == set(schema().children["sensor"].children)
    odd = """<rangefinder site="rod" data="dist dir"/><framepos objtype="body" objname="a"/><clock/>
     <framepos objtype="xbody" objname="a" reftype="site" refname="rod"/><tendonactuatorfrc tendon="t"/>
     <framepos objtype="xbody" objname="a"/><gyro site="rod" delay=".1" nsample="3"/>"""
    bound = WORLD.replace('name="t"', 'name="t" actuatorfrcrange="-1 1"')
    drives = '<motor tendon="t"/><general site="rod"/><motor joint="a"/>'
    text = whole("", bound, drives, odd)
    file, model = drevo.load(text), drevo.load(mujoco.MjModel.from_xml_string(text))
    assert [x.kind for x in model.model.sensors] == ["framepos"] and len(model.model.actuators) == 1
    noted = [[x for x in robot.notes if "sensor not read" in x] for robot in (file, model)]
    assert noted[0] == noted[1] and "actuator not read: general (2)" in model.notes


RATIOS = """<position joint="a" kp="3" dampratio="1"/><position joint="b" dampratio=".5" gear="-2"/>
<position tendon="t" kp="2" dampratio=".7" gear="1.3"/><pid joint="b" kp="5" ki="2" dampratio="2"/>
<position tendon="s" kp="2" dampratio=".7" gear=".3" timeconst=".1"/><intvelocity joint="c" dampratio="2"/>
<general joint="a" gaintype="pid" dyntype="pid" biastype="affine" gainprm="3" dynprm=".1 4" biasprm="0 -3 .5"
 input="pos ff" ctrlrange="-1 1" ffrange="-.5 .5"/>
<general joint="a" gaintype="dcmotor" biastype="dcmotor" dyntype="dcmotor" actearly="true" gainprm="2 .5"
 dynprm=".1 0"/>"""


def test_ratios_of_damping_and_general_controllers_are_those_of_mujoco() -> None:
    """The inertia that a ratio is of is J M^-1 J^T inverted, where the file stands."""
    world = WORLD.replace('name="a" axis="0 1 0"', 'name="a" axis="0 1 0" ref="20"')
    text = whole("", world, RATIOS, READ)
    here = [x.bias for x in drevo.load(text).model.actuators]
    there = mujoco.MjModel.from_xml_string(text).actuator_biasprm[:, :3]
    assert np.allclose(here, there, rtol=1e-13, atol=1e-13)
    beside(text, 7, "euler")
