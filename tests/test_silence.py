"""A file that loads without a warning moves as in MuJoCo: random settings, and what may switch them off."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
from reference import Reference

import drevo
from drevo.codegen.graph.evaluate import evaluate
from drevo.compiler.recipe import Recipe
from drevo.model.description import Model

JOINTS = ("", 'type="slide"', 'type="ball"', 'type="free"', 'pos="0.1 0 0.2" axis="1 2 3"')
OF_JOINTS = (
    *('armature="0.3"', 'damping="2"', 'stiffness="3"', 'springref="20"', 'frictionloss="0.4"', 'ref="15"'),
    *('springdamper="0.1 1"', 'stiffness="0"', 'actuatorgravcomp="true"', 'margin="0.1"', 'armature="0"'),
)
OPTIONS = (
    *('<option density="100"/>', '<option viscosity="3"/>', '<option wind="1 2 3"/>'),
    '<option gravity="1 2 -3"/>',
    *(
        f'<option><flag {flag}="disable"/></option>'
        for flag in ("gravity", "spring", "damper", "equality", "constraint", "actuation", "frictionloss")
    ),
    '<option><flag spring="disable" damper="disable"/></option>',
    '<compiler alignfree="true"/>',
    '<compiler angle="radian"/>',
)
MORE = (
    '<equality><weld body1="a" %s/></equality>',
    '<equality><connect body1="a" anchor="1 1 1" %s/></equality>',
    '<tendon><fixed name="t" %s><joint joint="j" coef="1"/></fixed></tendon>',
    *(f'<actuator><{tag} joint="j" %s/></actuator>' for tag in ("motor", "position", "velocity", "general")),
    '<actuator><cylinder joint="j" %s/></actuator>',
)
OF_MORE = (
    *("", 'active="false"', 'active="true"', 'stiffness="3"', 'damping="2"', 'armature="1"', 'frictionloss="1"'),
    *('range="-5 -3"', 'gear="0"', 'gear="3"', 'kp="0"', 'kp="5"', 'kv="2"', 'bias="1 0 0"', 'ctrlrange="1 2"'),
    *('ctrlrange="-1 1"', 'ctrlrange="1 2" ctrllimited="false"', 'gainprm="5"', 'springlength="0.5"'),
    *('biastype="affine"', 'biastype="affine" biasprm="0 -3 0"', 'biasprm="0 -3 0"', 'dyntype="integrator"'),
)
GEOM = '<geom type="box" size="0.1 0.2 0.3" pos="0.3 0.1 0.2" contype="0" conaffinity="0" %s/>'


def robot(rng: random.Random) -> str:
    """A body with one joint, some settings, perhaps a second body."""
    joint = f'<joint name="j" {rng.choice(JOINTS)} {rng.choice(("", "", rng.choice(OF_JOINTS)))}/>'
    joint = rng.choice((joint, joint, joint, '<freejoint name="j"/>'))
    head = "".join(rng.sample(OPTIONS, rng.choice((0, 0, 1, 2))))
    head += rng.choice(("", "", f"<default><joint {rng.choice(OF_JOINTS)}/></default>"))
    head += rng.choice(("", rng.choice(MORE) % rng.choice(OF_MORE)))
    body = rng.choice(("", "", 'gravcomp="0"', 'gravcomp="0.5"'))
    child = rng.choice(("", f'<body name="b" pos="0.3 0 0"><joint name="k" axis="0 1 0"/>{GEOM % ""}</body>'))
    geom = GEOM % rng.choice(("", "", 'fluidshape="ellipsoid"', 'friction="2 1 1"', 'group="2"'))
    return f'<mujoco>{head}<worldbody><body name="a" {body}>{joint}{geom}{child}</body></worldbody></mujoco>'


def test_silence_means_that_all_of_the_physics_is_read(tmp_path: Path) -> None:
    rng, compared = random.Random(12), 0
    while compared < 40:
        text = robot(rng)
        try:
            theirs = mujoco.MjModel.from_xml_string(text)
        except ValueError:  # settings that contradict each other
            continue
        if "<fixed" in text and theirs.jnt_type[0] < mujoco.mjtJoint.mjJNT_SLIDE:  # refused since MuJoCo 4
            continue
        (tmp_path / "r.xml").write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours = drevo.load(tmp_path / "r.xml")
        if not caught:
            same_acceleration(text, theirs, ours, np.random.default_rng(compared))
            compared += 1


def without_friction(model: Model) -> Model:
    bare = [replace(j, dynamics=replace(j.dynamics, friction=0.0)) if j.dynamics else j for j in model.joints]
    return replace(model, joints=tuple(bare))


def same_acceleration(text: str, theirs: mujoco.MjModel, ours: drevo.Robot, rng: np.random.Generator) -> None:
    """With the efforts that actuators exert at control 0; a free body at rest, since the two count its velocity in
    other axes."""
    theirs.dof_frictionloss[:] = 0.0  # exact there, smooth here
    ours = drevo.Robot(without_friction(ours.model))
    data, free = mujoco.MjData(theirs), theirs.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    data.qpos = 0.3 * rng.normal(size=theirs.nq)
    data.qvel = rng.normal(size=theirs.nv) * (not free)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    mujoco.mj_forward(theirs, data)
    q, turn = data.qpos.copy(), np.eye(theirs.nv)
    if free or theirs.jnt_type[0] == mujoco.mjtJoint.mjJNT_BALL:
        k = 3 if free else 0
        q[k : k + 4] = np.roll(q[k : k + 4], -1)  # wxyz to xyzw
    if free:
        turn[:3, :3] = Reference(ours.model).pose(q, link="a")[:3, :3]
    program = Recipe(("forward_dynamics",), passive=True).program(ours.model)
    a = turn @ evaluate(program, {"q": q, "v": data.qvel, "tau": data.qfrc_actuator})["a"]
    assert np.allclose(a, data.qacc, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(data.qacc).max())), text
