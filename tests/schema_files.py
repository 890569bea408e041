"""Files made of a scene by setting one attribute of MuJoCo's schema, and what the two libraries make of them.

python tests/schema_files.py [silent | motions] [share of the files]
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import tempfile
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import drevo
from drevo.envs.simulation import drevo_state, mujoco_state
from drevo.model.loaders import schema
from drevo.model.loaders.mjcf.defaults import PARAMETERS
from drevo.model.loaders.schema import Node, parsed

Array = np.ndarray[Any, Any]
STEPS = 3
CONTROL = 0.4  # of every actuator
SAME = 1e-10  # of two motions of MuJoCo
CLOSE = 1e-9  # of a motion here and there
MAX_SECONDS = 1.0, 10.0  # that MuJoCo may take for a file: after others, some of which leave it stuck, and alone
MAX_BYTES = 3 << 30
METHODS = ("euler", "rk4", "implicit", "implicitfast")  # by MuJoCo's numbers of integrators
ACTUATED = re.compile(r"^compiler/lengthrange |tendon.* actuatorfrc")  # what acts by actuators that are not read
# MuJoCo's own search ends sooner or later by these, and mocap bodies and keys are moved by who runs it
UNMEASURED = ("search", "posed")


def written(scene: str) -> str:
    """The text that ElementTree writes again, so that lines have the numbers that they have in the files."""
    return ET.tostring(ET.fromstring(scene), encoding="unicode")


SCENE = written("""<mujoco>
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
</mujoco>""")
LAWS = written("""<mujoco>
<compiler autolimits="true"/>
<option timestep="0.004"><flag/></option>
<default><joint/><geom/><site/><equality/><tendon/><general/><motor/><position/><velocity/><default class="c"/>
</default>
<worldbody>
 <geom name="floor" type="plane" size="5 5 .1"/><site name="w" pos="0 0 2"/>
 <body name="a" pos="0 0 .098"><joint name="free" type="free" damping=".1 .2"/>
  <geom name="trunk" size=".1"/><site name="sa" pos=".1 0 .1"/>
  <body name="b" pos=".1 0 .05"><joint name="j" axis="0 1 0" damping=".2 .1 .1" stiffness="3 1 2" range="-60 1"
    springref="5" armature=".01" frictionloss=".05"/>
   <geom name="leg" type="capsule" size=".04" fromto=".1 0 -.11 .3 .05 -.112"/>
   <site name="sb" pos=".3 0 0"/></body></body>
 <body name="c" pos="0 1 1" childclass="c"><joint name="ball" type="ball" damping=".1 .1" stiffness="1 .5"
   range="0 20" frictionloss=".01"/>
   <geom name="arm" type="capsule" size=".03 .2" pos="0 0 -.2"/><site name="sc" pos="0 0 -.4"/></body>
 <body name="d" pos="1 0 1" gravcomp=".1"><joint name="p" type="slide" axis="1 0 0" range="-.1 .001" damping="1"
   frictionloss=".1"/>
   <geom name="bar" size=".05"/><site name="sd" pos="0 0 .1"/>
  <body name="e" pos="0 0 .2"><joint name="h" axis="0 1 0" stiffness="1"/>
    <geom name="end" size=".05" pos=".1 0 .1"/></body></body>
 <body name="g" pos="1.2 0 1.2"><joint name="i" axis="0 1 0"/><geom name="far" size=".05" pos=".1 0 .1"/></body>
</worldbody>
<tendon><fixed name="t" damping=".1 .1" stiffness="1" springlength=".05" frictionloss=".02" range="-1 0.001">
  <joint joint="p" coef="1"/><joint joint="h" coef="-.5"/></fixed>
 <spatial name="u" stiffness="5" damping=".3" springlength=".2 .4"><site site="w"/><site site="sc"/>
  <pulley divisor="2"/><site site="sc"/><site site="sd"/></spatial></tendon>
<equality><connect name="q1" body1="e" body2="g" anchor=".1 0 .1"/>
 <joint name="q3" joint1="h" joint2="p" polycoef="0 .1 .2 0 0"/></equality>
<actuator><general name="A0" joint="j" gear="2"/><motor name="A1" joint="p"/><position name="A2" joint="h" kp="3"/>
 <velocity name="A3" joint="j" kv=".3"/></actuator>
</mujoco>""")
NUMBERS = """0|1|2|-1|0.3|.02|1 0|.2 .5|-.3 .4|.1 .2 .3|0 0 1|0 1 0 0|.9 .1 .2 .1|.8 .9 .01|.1 .2 .3 .4 .5|
1 .5 .01 .02 .03|.1 .2 .3 .1 .2 .3|1 0 0 0 1 0|0 0 0 .1 .1 .4|.9 .95 .01 .5 2|1 1 0 0 0 0 0|1 .1 0 0 0 0 0 0 0 0"""
KINDS = """true false auto enable disable j p a b foot w sa sb trunk sole t u c main free hinge slide ball sphere
box capsule plane none ellipsoid affine muscle integrator filter Euler RK4 implicit implicitfast discrete pyramidal
elliptic PGS CG radian xyz ZYX shell convex exact vel pos x"""
WORDS = (*NUMBERS.replace("\n", "").split("|"), *KINDS.split())


class Motion(NamedTuple):
    """Where MuJoCo begins, and where it is after some steps."""

    q0: Array
    v0: Array
    q: Array
    v: Array
    dt: float
    integrator: int
    steady: bool  # it did not begin anew, as it does from what is not finite

    def same(self, other: Motion) -> bool:
        pairs = zip((self.q, self.v), (other.q, other.v))
        return all(x.shape == y.shape and np.allclose(x, y, rtol=SAME, atol=SAME) for x, y in pairs)


class Made(NamedTuple):
    """A file that MuJoCo takes: what is set in it, its motion (None where MuJoCo does not end), and whether that
    differs from the scene's."""

    path: str
    label: str  # of the element
    name: str
    value: str
    text: str
    motion: Motion | None
    moved: bool

    def __str__(self) -> str:
        return f"<{self.path}> {self.label} {self.name}={self.value!r}"


# --- MuJoCo -----------------------------------------------------------------------------------------------------


def motion(text: str) -> Motion | None:
    """Some steps of a file by an exact search; None where MuJoCo takes no such file."""
    import mujoco

    try:
        m: Any = mujoco.MjModel.from_xml_string(text)
    except (ValueError, RuntimeError):
        return None
    if m.opt.integrator:  # a step here is told efforts, which the stages of others would change
        m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION.value
    m.opt.solver, m.opt.tolerance, m.opt.iterations, m.opt.ls_iterations = 2, 0.0, 100, 100
    d = mujoco.MjData(m)
    d.qvel[:] = np.random.default_rng(3).normal(0.0, 0.5, m.nv)
    d.ctrl[:] = CONTROL
    start = d.qpos.copy(), d.qvel.copy()
    mujoco.mj_step(m, d, STEPS)
    steady = d.time > (STEPS - 0.5) * m.opt.timestep
    return Motion(*start, d.qpos.copy(), d.qvel.copy(), m.opt.timestep, int(m.opt.integrator), steady)


def serve(pipe: Any) -> None:
    """A process that answers texts by motions, in bounded memory and in silence."""
    import resource

    import mujoco  # noqa: F401  # before memory is bounded

    os.chdir(tempfile.mkdtemp())  # MuJoCo writes a log
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    while True:
        pipe.send(motion(pipe.recv()))


class Worker:
    """MuJoCo in a process of its own, begun anew after a file with which it does not end."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=serve, args=(inner,), daemon=True)
        self.process.start()
        inner.close()

    def motion(self, text: str) -> Motion | None:
        """TimeoutError where it does not end within its time and memory, nor in a new process."""
        for seconds in MAX_SECONDS:
            try:
                self.pipe.send(text)
                if self.pipe.poll(seconds):
                    found: Motion | None = self.pipe.recv()
                    return found
            except (EOFError, ConnectionError):
                pass
            self.close()
            self.start()
        raise TimeoutError

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


# --- files ------------------------------------------------------------------------------------------------------


def tables() -> dict[str, Node]:
    """The elements of MJCF by paths, with the verdicts of their attributes."""
    return parsed((Path(schema.__file__).parent / "mjcf" / "schema.txt").read_text("utf-8"))


def elements_at(root: ET.Element, path: str) -> list[ET.Element]:
    """The elements of a path, or one put below the first that may hold it."""
    above, _, tag = path.rpartition("/")
    if path == "mujoco":
        return [root]
    if path == "body":
        return list(root.iter("body"))
    holders = elements_at(root, above) if above else [root]
    found = [x for holder in holders for x in holder if x.tag == tag]
    return found or [ET.SubElement(holders[0], tag)]


def with_attribute(scene: str, path: str, name: str, value: str) -> Iterator[str]:
    """The scene with an attribute of one of the elements of a path after the other."""
    root = ET.fromstring(scene)
    for element in elements_at(root, path):
        before = dict(element.attrib)
        element.set(name, value)
        yield ET.tostring(root, encoding="unicode")
        element.attrib.clear()
        element.attrib.update(before)


def files(scene: str, share: float = 1.0, seed: int = 0) -> Iterator[Made]:
    """The files that MuJoCo takes, of a share of all."""
    worker = Worker()
    still = worker.motion(scene)
    assert still is not None
    for *what, text in texts(scene, share, seed):
        try:
            found = worker.motion(text)
        except TimeoutError:
            yield Made(*what, text, None, False)
            continue
        if found is not None:
            yield Made(*what, text, found, not found.same(still))
    worker.close()


def texts(scene: str, share: float, seed: int) -> Iterator[tuple[str, ...]]:
    """Every attribute of the schema with every word, on every element of its kind: what is set, and the file."""
    rng = np.random.default_rng(seed)
    for path, node in tables().items():
        root = ET.fromstring(scene)
        for element in elements_at(root, path):
            label = element.get("name", "")
            for name in sorted(set(node.verdicts) - node.older - {"name", "file"}):
                before = element.get(name)
                for value in WORDS:
                    if value != before and rng.random() < share:
                        element.set(name, value)
                        yield path, label, name, value, ET.tostring(root, encoding="unicode")
                element.attrib.pop(name, None)
                if before is not None:
                    element.set(name, before)


# --- what becomes of them ---------------------------------------------------------------------------------------


class Read(NamedTuple):
    """A robot of a file, and all that is said about it."""

    robot: drevo.Robot
    said: str
    notes: str

    def more(self, scene: Read) -> bool:
        """Whether something else is said than of the scene."""
        return (self.said, self.notes) != (scene.said, scene.notes)


def read(text: str) -> Read | None:
    """None where it is refused."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            robot = drevo.load(text)
        except drevo.DrevoError:
            return None
    said = "; ".join(p for w in caught for p in getattr(w.message, "problems", ()))
    return Read(robot, said, "; ".join(robot.model.notes))


def silent(made: Made, verdict: str, scene: Read) -> str:
    """What is wrong: a file that moves otherwise in MuJoCo, and is the scene itself here without a word."""
    if not made.moved or verdict in UNMEASURED:
        return ""
    found = read(made.text)
    if found is None or found.more(scene) or not found.robot.model.same_as(scene.robot.model):
        return ""
    tag = made.path.rsplit("/", 1)[-1]
    driving = tag in PARAMETERS and made.path.startswith("default/")
    tags = PARAMETERS if driving or ACTUATED.search(f"{made.path} {made.name}") else (tag,)
    left_out = (f"{made.label!r}", f"{tag} geoms", *(f"{x} (" for x in tags))
    if any(x in found.notes for x in left_out):
        return ""
    if verdict in ("whole", "moot") and f"{tag} '" in found.said:
        return ""
    return f"{made} ({verdict}) acts in silence"


def steps(robot: drevo.Robot, there: Motion) -> tuple[Array, Array]:
    """Where the steps of a robot end that begins where MuJoCo does, in MuJoCo's coordinates."""
    driven = bool(robot.model.actuators) and not there.integrator
    step = drevo.compile(robot, "step", dt=there.dt, method=METHODS[there.integrator], controls=driven)
    given = np.full(len(robot.model.actuators), CONTROL) if driven else np.zeros(robot.nv)
    act = np.zeros(sum(x.dynamics != "none" for x in robot.model.actuators if driven))
    state = tuple(np.array(x, float) for x in drevo_state(robot.model, list(there.q0), list(there.v0)))
    for _ in range(STEPS):
        after = step(*state, given, *([act] if act.size else []))
        state, act = after[:2], getattr(after, "act1", act)
    q, v = (np.array(x, float) for x in mujoco_state(robot.model, *map(list, state)))
    return q, v


def differing(made: Made, scene: Read) -> str | None:
    """How a file of which no more is said than of the scene moves otherwise than in MuJoCo; None: not compared."""
    found, there = read(made.text), made.motion
    if found is None or found.more(scene) or there is None or not there.steady:
        return None
    if not made.moved and found.robot.model.same_as(scene.robot.model):
        return None
    if len(there.q) != found.robot.nq or len(there.v) != found.robot.nv:
        return f"{made}: {found.robot.nv} rates, {len(there.v)} in MuJoCo"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            q, v = steps(found.robot, there)
        except drevo.DrevoError:
            return None
    if any(issubclass(w.category, drevo.DrevoWarning) for w in caught):
        return None
    far = max(np.abs(q - there.q).max(), np.abs(v - there.v).max())
    return "" if far < CLOSE * max(1.0, np.abs(there.v).max()) else f"{made}: {far:.1e} apart"


def main(what: str = "silent", share: str = "1.0") -> None:
    text = SCENE if what == "silent" else LAWS
    nodes, scene, count, wrong = tables(), read(text), Counter[str](), 0
    assert scene is not None
    for made in files(text, float(share)):
        count["files"] += 1
        count["moved"] += made.moved
        if made.motion is None:
            count["unfinished"] += 1
            print(f"{made} is not finished", flush=True)
        elif what == "silent":
            said: str | None = silent(made, nodes[made.path].verdicts[made.name], scene)
        else:
            said = differing(made, scene)
            count["compared"] += said is not None
        if made.motion is not None and said:
            wrong += 1
            print(said, flush=True)
    print(dict(count), f"{what}:", wrong)


if __name__ == "__main__":
    main(*sys.argv[1:])
