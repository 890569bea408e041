"""Files made of one scene by setting one attribute of MuJoCo's schema, and what the two libraries make of them.

python tests/schema_files.py [share of the files]
"""

from __future__ import annotations

import sys
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import drevo
from drevo.model.description import same_description
from drevo.model.loaders import schema
from drevo.model.loaders.schema import Node, parsed

Array = np.ndarray[Any, Any]
STEPS = 3
SAME = 1e-10  # of a motion
# MuJoCo's own search ends sooner or later by these, and mocap bodies and keys are moved by who runs it
UNMEASURED = ("search", "posed")
# with some words MuJoCo makes these so large that it does not end
ENDLESS = ("compiler/lengthrange", "size", "asset/hfield", "asset/texture", "body/flexcomp", "deformable")

SCENE = """<mujoco>
<compiler autolimits="true"/>
<option timestep="0.004"><flag/></option>
<size memory="1M"/><statistic/><visual/>
<default><mesh/><joint/><geom/><site/><pair/><equality/><tendon/><general/><default class="c"/></default>
<asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .3 0 0 0 .1"/></asset>
<worldbody>
 <geom name="floor" type="plane" size="5 5 .1"/><site name="w" pos="0 0 2"/>
 <body name="a" pos="0 0 .6" gravcomp=".1"><joint name="free" type="free" damping=".1 .2 .3"/>
  <geom name="trunk" type="box" size=".2 .1 .05" group="1"/><site name="sa" pos=".1 0 .1"/>
  <body name="b" pos=".25 0 0"><joint name="j" axis="0 1 0" damping=".2 .1 .1" stiffness="3 1 2" range="-60 40"
    springref="5" armature=".01" frictionloss=".05" ref="3"/>
   <geom name="leg" type="capsule" size=".04 .2" pos="0 0 -.2"/><site name="sb" pos="0 0 -.3"/>
   <frame name="f" pos="0 0 -.4"><body name="foot"><joint name="k" type="slide" range="-.1 .1" damping="1"/>
    <geom name="sole" size=".06" mass=".3"/></body></frame></body>
  <body name="c" pos="-.25 0 0"><joint name="ball" type="ball" damping=".1 .1" stiffness="1 .5" range="0 80"/>
   <geom name="arm" type="cylinder" size=".03 .2" pos="0 0 -.2"/>
   <body name="claw" pos="0 0 -.42"><inertial pos="0 0 .01" mass=".2" diaginertia=".001 .002 .002"/>
    <geom name="tip" type="ellipsoid" size=".04 .05 .06"/><geom type="mesh" mesh="m" name="hook"/></body></body>
 </body>
 <body name="d" pos="1 0 .3" childclass="c"><joint name="p" axis="1 0 0"/><geom name="bar" size=".05 .3"
   type="capsule"/><site name="sd" pos="0 0 .3"/></body>
 <body name="e" pos="1 .5 .09"><freejoint name="loose"/><geom name="stone" size=".1"/></body>
</worldbody>
<contact><pair name="pp" geom1="bar" geom2="trunk"/><exclude body1="a" body2="foot"/></contact>
<tendon><fixed name="t" damping=".1 .1" stiffness="1" springlength=".05" range="-.5 1.5" frictionloss=".02">
  <joint joint="j" coef="1"/><joint joint="p" coef="-.5"/></fixed>
 <spatial name="u" stiffness="5" damping=".3" springlength=".2 .4"><site site="w"/><site site="sb"/>
  <pulley divisor="2"/><site site="sa"/><site site="sd"/></spatial></tendon>
<equality><connect name="q1" body1="foot" body2="claw" anchor="0 .1 0"/>
 <weld name="q2" body1="e" body2="d" active="false"/>
 <joint name="q3" joint1="k" joint2="p" polycoef="0 .1 .2 0 0"/>
 <tendon name="q4" tendon1="t" tendon2="u" active="false"/></equality>
<actuator><general name="A0" joint="j" gear="2"/><motor name="A1" joint="k"/><position name="A2" joint="p" kp="3"/>
 <velocity name="A3" joint="j" kv=".3"/><damper name="A4" joint="j" kv=".4" ctrlrange="0 1"/>
 <intvelocity name="A5" joint="p" actrange="-1 1"/><cylinder name="A6" joint="k"/>
 <muscle name="A7" tendon="t" lengthrange="0 1"/>
 <adhesion name="A8" body="foot" ctrlrange="0 1"/></actuator>
<sensor/><custom/><keyframe/>
</mujoco>"""
WORDS = (
    *("0", "1", "2", "-1", "0.3", ".02", "1 0", ".2 .5", "-.3 .4", ".1 .2 .3", "0 0 1", "0 1 0 0", ".9 .1 .2 .1"),
    *(".8 .9 .01", ".1 .2 .3 .4 .5", "1 .5 .01 .02 .03", ".1 .2 .3 .1 .2 .3", "1 0 0 0 1 0", "0 0 0 .1 .1 .4"),
    *(".9 .95 .01 .5 2", "1 1 0 0 0 0 0", "1 .1 0 0 0 0 0 0 0 0", "true", "false", "auto", "enable", "disable"),
    *(
        "j",
        "p",
        "a",
        "b",
        "foot",
        "w",
        "sa",
        "sb",
        "trunk",
        "sole",
        "t",
        "u",
        "c",
        "main",
        "free",
        "hinge",
        "slide",
    ),
    *(
        "ball",
        "sphere",
        "box",
        "capsule",
        "plane",
        "none",
        "ellipsoid",
        "affine",
        "muscle",
        "integrator",
        "filter",
    ),
    *(
        "Euler",
        "RK4",
        "implicit",
        "implicitfast",
        "discrete",
        "pyramidal",
        "elliptic",
        "PGS",
        "CG",
        "radian",
        "xyz",
    ),
    *("CG", "xyz", "ZYX", "shell", "convex", "exact", "vel", "pos", "x"),
)


class Made(NamedTuple):
    """A file that MuJoCo takes: what was set in it, and whether its motion differs from that of the scene."""

    path: str
    name: str
    value: str
    text: str
    moved: bool


def tables() -> dict[str, Node]:
    """The elements of MJCF by paths, with the verdicts of their attributes."""
    return parsed((Path(schema.__file__).parent / "mjcf" / "schema.txt").read_text("utf-8"))


def motion(text: str) -> Array | None:
    """Where MuJoCo moves the scene within some steps; None where it takes no such file."""
    import mujoco

    try:
        m = mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError):
        return None
    data, rng = mujoco.MjData(m), np.random.default_rng(3)
    data.qvel[:] = rng.normal(0.0, 1.0, m.nv)
    data.ctrl[:] = 0.4
    for _ in range(STEPS):
        mujoco.mj_step(m, data)
    found: Array = np.concatenate([data.qpos, data.qvel])
    return found


def elements_at(root: ET.Element, path: str) -> list[tuple[ET.Element, bool]]:
    """The elements of a path, or one put below each that may hold it; and whether it stood there before."""
    above, _, tag = path.rpartition("/")
    if path == "mujoco":
        return [(root, True)]
    holders = [x for x, _ in elements_at(root, above) if above] if above else [root]
    if path == "body":
        return [(x, True) for x in root.iter("body")]
    found = [(x, True) for holder in holders for x in holder if x.tag == tag]
    if found or not holders:
        return found
    return [(ET.SubElement(holders[0], tag), False)]


def files(share: float = 1.0, seed: int = 0) -> Iterator[Made]:
    """Every attribute of the schema with every word that MuJoCo takes for it, on every element of its kind."""
    still, rng = motion(SCENE), np.random.default_rng(seed)
    assert still is not None
    for path, node in tables().items():
        if path.startswith(ENDLESS):
            continue
        root = ET.fromstring(SCENE)
        for element, _ in elements_at(root, path):
            for name in sorted(set(node.verdicts) - node.older - {"name", "file"}):
                before = element.get(name)
                for value in WORDS:
                    if rng.random() >= share or value == before:
                        continue
                    element.set(name, value)
                    text = ET.tostring(root, encoding="unicode")
                    moves = motion(text)
                    if moves is not None:
                        far = moves.shape != still.shape or not np.allclose(moves, still, rtol=SAME, atol=SAME)
                        yield Made(path, name, value, text, far)
                element.attrib.pop(name, None)
                if before is not None:
                    element.set(name, before)


class Read(NamedTuple):
    """What a file becomes here: its description, and all that is said about it."""

    model: Any
    said: str
    notes: str


def read(text: str) -> Read | None:
    """None where it is refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = drevo.load(text).model
        except drevo.DrevoError:
            return None
    told = "; ".join(p for w in caught for p in getattr(w.message, "problems", ()))
    return Read(model, told, "; ".join(model.notes))


def silent(made: Made, verdict: str, scene: Read) -> str:
    """What is wrong: a file that moves otherwise in MuJoCo, and is the scene itself here without a word."""
    if not made.moved or verdict in UNMEASURED:
        return ""
    found = read(made.text)
    if found is None or found.said != scene.said or found.notes != scene.notes:
        return ""
    if not same_description(found.model, scene.model):
        return ""
    tag = made.path.rsplit("/", 1)[-1]
    if verdict in ("whole", "moot") and (f"{tag} (" in found.notes or f"{tag} '" in found.said):
        return ""
    return f"<{made.path}> {made.name}={made.value!r} ({verdict}) acts in silence"


def main(share: float) -> None:
    nodes, scene, count, wrong = tables(), read(SCENE), Counter[str](), Counter[str]()
    assert scene is not None
    for made in files(share):
        count["files"] += 1
        count["moved"] += made.moved
        verdict = nodes[made.path].verdicts[made.name]
        if said := silent(made, verdict, scene):
            wrong[said] += 1
            print(said, flush=True)
        count[verdict] += 1
    print(dict(count), "silent:", sum(wrong.values()))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
