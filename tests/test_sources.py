"""What drevo.load takes beside paths: XML as text, open files, models in memory; robots of kinematics alone."""

from __future__ import annotations

import io
import subprocess
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import drevo
from drevo.errors import DrevoWarning, ModelError
from drevo.io.meshes import find_mesh
from drevo.mechanics.algorithms.inverse_dynamics import inverse_dynamics
from drevo.mechanics.algorithms.kinematics import pose
from drevo.mechanics.tree import build_tree
from drevo.model.loaders import load_model, mujoco_model

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from agreement import compared

MJCF = """<mujoco model="m"><compiler angle="radian" eulerseq="zyx"/><option gravity="1 0 -5"/><worldbody>
<body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3" pos=".1 0 0"/>
 <body name="b" pos=".1 .2 .3" euler=".1 .2 .3"><joint name="j" axis="1 2 0" pos=".1 0 .2" ref=".4" range="-1 2"/>
  <joint name="k" type="slide" axis="0 1 1" armature="0.3"/><geom size=".1" pos=".2 0 .1"/>
  <body name="c" pos=".3 0 0"><joint name="l" type="ball" pos="0 .1 0"/><geom type="capsule" size=".05 .1"/></body>
 </body></body></worldbody></mujoco>"""
URDF = """<robot name="u"><link name="b"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="b"/><child link="a"/></joint></robot>"""


# --- text and open files -------------------------------------------------------------------------------------


def test_text_and_open_files_are_what_the_file_is(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    wanted = drevo.load(path).model.joints
    with open(path) as text, open(path, "rb") as data:
        found = [URDF, f" {URDF}", URDF.encode(), io.StringIO(URDF), io.BytesIO(URDF.encode()), text, data]
        assert all(drevo.load(source).model.joints == wanted for source in found)
    toml = io.StringIO('drevo = 1\nname = "r"\nlinks = [{name = "w"}]\n')
    assert (
        drevo.load(toml).model.name == "r"
        and drevo.load(
            io.BytesIO(b'{"drevo": 1, "name": "s", "links": []}'.replace(b"[]", b'[{"name": "w"}]'))
        ).model.name
        == "s"
    )


def test_an_open_file_includes_what_stands_beside_it(tmp_path: Path) -> None:
    (tmp_path / "part.xml").write_text('<mujoco><worldbody><body name="p"/></worldbody></mujoco>')
    (tmp_path / "r.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    with open(tmp_path / "r.xml") as file:
        assert drevo.load(file).link_names == ("world", "p")
    text = (tmp_path / "r.xml").read_text()
    assert drevo.load(text, roots=[tmp_path]).link_names == ("world", "p")
    with pytest.raises(ModelError, match=r"the text: <include> on line 1: .* a text stands in no folder"):
        drevo.load(text)


class Broken:
    name = "broken.urdf"

    def read(self, count: int) -> Any:
        return 3


@pytest.mark.parametrize(
    "source, says",
    [
        ("<robot", "the text: line 1: the XML is malformed"),
        (b"\xff<robot/>", "a robot is named by"),
        (io.StringIO(""), "the StringIO"),
        (Broken(), "broken.urdf: cannot be read"),
        (io.BytesIO(b"<" + bytes(9 * 2**20)), "more than 8388608 bytes"),
        (object(), "a robot is named by the path of its file or by its name, not by"),
    ],
    ids=["cut", "bytes", "empty", "broken", "large", "object"],
)
def test_sources_that_are_refused(source: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        drevo.load(source)


def test_xacro_is_expanded_by_xacrodoc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where a file's name says that it is xacro, which is a program; here xacrodoc is a stand-in."""

    class XacroDoc(str):
        @classmethod
        def from_file(cls, path: str) -> XacroDoc:
            return cls(Path(path).read_text().replace("${kind}", "continuous"))

        def to_urdf_string(self) -> str:
            if "${" in self:
                raise RuntimeError("undefined\nname")
            return str(self)

    path = tmp_path / "r.urdf.xacro"
    path.write_text(URDF.replace("continuous", "${kind}"))
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    with pytest.raises(drevo.InputError, match=r"needs the package xacrodoc, .*: pip install xacrodoc"):
        drevo.load(path)
    monkeypatch.setitem(sys.modules, "xacrodoc", types.SimpleNamespace(XacroDoc=XacroDoc))
    assert drevo.load(path).joint_names == ("j",)
    path.write_text(URDF.replace("continuous", "${type}"))
    with pytest.raises(ModelError, match="xacro cannot expand it: undefined name"):
        drevo.load(path)


def test_meshes_in_packages(tmp_path: Path) -> None:
    mesh = tmp_path / "arm" / "meshes" / "a.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_text("solid")
    for where in ("package://arm", "$(find arm)", "$(find-pkg-share arm)", "file://$(find-pkg-share arm)"):
        assert find_mesh(f"{where}/meshes/a.stl", str(tmp_path / "arm" / "urdf")) == str(mesh)
    assert find_mesh("$(find-pkg-share leg)/meshes/a.stl", str(tmp_path / "arm")) is None


def test_packages_of_ros_2_in_xacro(tmp_path: Path) -> None:
    """By the name that ROS 2 has for finding them; includes and meshes."""
    pytest.importorskip("xacrodoc")
    (tmp_path / "package.xml").write_text("<package><name>arm</name></package>")
    (tmp_path / "more.xacro").write_text(
        '<robot xmlns:xacro="x"><xacro:property name="kind" value="continuous"/></robot>'
    )
    path = tmp_path / "urdf" / "r.urdf.xacro"
    path.parent.mkdir()
    include = '<xacro:include filename="$(find-pkg-share arm)/more.xacro"/>'
    text = URDF.replace("continuous", "${kind}").replace(">", f' xmlns:xacro="x">{include}', 1)
    path.write_text(text)
    assert drevo.load(path).joint_names == ("j",)


def test_one_of_several_models_by_name() -> None:
    inertia = "<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia>"
    link = f'<link name="%s"><inertial><mass>1</mass>{inertia}</inertial></link>'
    models = "".join(f'<model name="{name}">{link % name}</model>' for name in "abc")
    text = f'<sdf version="1.9"><world name="w"><gravity>0 0 -2</gravity>{models}</world></sdf>'
    assert (
        drevo.load(text, model="b").link_names == ("b",) and drevo.load(text, model="b").model.gravity[2] == -2.0
    )
    with pytest.raises(ModelError, match=r"3 models that can move; .* there are 'a', 'b', 'c'"):
        drevo.load(text)
    with pytest.raises(ModelError, match="0 models 'd'; it has 'a', 'b', 'c'"):
        drevo.load(text, model="d")
    with pytest.raises(ModelError, match="there is no model 'x' in it, but 'u'"):
        drevo.load(URDF, model="x")


# --- models in memory ---------------------------------------------------------------------------------------


def test_a_model_of_mujoco() -> None:
    theirs, spec = mujoco.MjModel.from_xml_string(MJCF), mujoco.MjSpec.from_string(MJCF)
    for source in (theirs, spec):
        ours, file = drevo.load(source).model, drevo.load(MJCF).model
        assert (ours.name, ours.gravity) == ("m", (1.0, 0.0, -5.0)) and compared(ours, theirs) < 1e-12
        assert [j.name for j in ours.moving_joints][1:] == [j.name for j in file.moving_joints][1:]
        assert [j.dynamics for j in ours.moving_joints][1:] == [j.dynamics for j in file.moving_joints][1:]
        limits = [[(j.limit.lower, j.limit.upper) for j in m.joints if j.limit] for m in (ours, file)]
        assert np.allclose(*limits)


ACTING = """<mujoco><option density="1.2"><flag spring="disable"/></option><worldbody><body name="a" gravcomp="1">
<joint name="j" damping="1" frictionloss="2" stiffness="3"/><geom size="1"/><site name="s"/></body></worldbody>
<equality><joint name="e" joint1="j"/></equality>
<tendon><fixed name="f" stiffness="2" damping="3"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><position name="p" site="s"/><motor name="n" joint="j"/></actuator></mujoco>"""


def test_what_acts_in_a_model_of_mujoco_is_named_as_in_its_file() -> None:
    said = []
    for source in (ACTING, mujoco.MjModel.from_xml_string(ACTING)):
        with pytest.warns(DrevoWarning) as caught:
            drevo.load(source)
        said.append(str(caught[0].message))
    for words in said:
        assert all(word in words for word in ("density", "'p'"))
        assert "'n'" not in words and "stiffness" not in words and "'f'" not in words


LOOPED = """<mujoco><worldbody><site name="w" pos="0 0 2"/>
<body name="a" pos="0 0 1" euler="10 20 30"><joint name="i"/><geom size="1"/>
 <body pos="1 0 0" euler="0 0 40"><joint name="j"/><geom size="1"/>
  <site name="s" pos="1 2 3" euler="9 8 7"/></body>
</body><body name="c"><joint/><geom size="1"/></body></worldbody><equality><connect body1="c" anchor="1 2 3"/>
<weld body1="a" body2="c" anchor=".1 .2 .3"/><joint joint1="i" joint2="j" polycoef="1 2 3 4 5"/>
<joint joint1="j"/><weld site1="w" site2="s" torquescale="3"/><connect site1="s" site2="w"/></equality></mujoco>"""


def test_loops_of_a_model_of_mujoco_are_those_of_its_file() -> None:
    assert mujoco.mjtObj.mjOBJ_SITE == mujoco_model.SITE_OBJECT
    file, model = load_model(LOOPED), load_model(mujoco.MjModel.from_xml_string(LOOPED))
    names = dict(zip([link.name for link in model.links], [link.name for link in file.links]))
    assert len(file.loops) == len(model.loops) == 4 and file.couplings == model.couplings
    for one, two in zip(file.loops, model.loops):
        assert (one.kind, one.link_a, one.link_b) == (two.kind, names[two.link_a], names[two.link_b])
        places = [np.hstack([x.point_a, x.point_b, np.ravel(x.rotation or ())]) for x in (one, two)]
        assert np.allclose(*places, atol=1e-12) and one.torquescale == two.torquescale


def test_explicit_pairs_of_a_model_of_mujoco_are_those_of_its_file() -> None:
    balls = "".join(
        f'<body pos="{k} 0 1"><freejoint/><geom name="{name}" size=".1" contype="0" conaffinity="0"/></body>'
        for k, name in enumerate("abc")
    )
    pairs = """<pair geom1="a" geom2="b" condim="1" margin=".01" gap=".004" solref=".03 .9"/>
     <pair geom1="a" geom2="c" condim="6" friction=".5 .6 .01 .002 .003" solimp=".8 .9 .01 .4 2"
      solreffriction=".1 1"/>"""
    text = f"<mujoco><worldbody>{balls}</worldbody><contact>{pairs}</contact></mujoco>"
    assert drevo.load(mujoco.MjModel.from_xml_string(text)).model.pairs == drevo.load(text).model.pairs
    nameless = drevo.load(mujoco.MjModel.from_xml_string(text.replace(' name="b"', "").replace('"b"', '"c"')))
    assert len(nameless.model.pairs) == 2 and not nameless.notes


def test_meshes_of_a_model_of_mujoco_are_told_of_and_keyframes_read() -> None:
    text = """<mujoco><asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
     <body name="a"><freejoint/><geom name="g" type="mesh" mesh="m"/></body></worldbody>
     <keyframe><key name="up" qpos="1 2 3 0 1 0 0"/><key/></keyframe></mujoco>"""
    file, model = drevo.load(text), drevo.load(mujoco.MjModel.from_xml_string(text))
    assert file.notes == model.notes and "mesh geoms 'g'" in model.notes[0]
    assert not any(link.shapes for link in model.model.links)
    assert model.keyframes["up"].tolist() == file.keyframes["up"].tolist() == [1, 2, 3, 1, 0, 0, 0]


def test_meshes_of_a_model_of_mujoco_touch_by_their_hulls() -> None:
    """As those of its file, to the single precision in which MuJoCo keeps points."""
    text = """<mujoco><asset><mesh name="m" vertex="0 0 0 .2 0 0 0 .1 0 0 0 .3 .1 .1 .1"/></asset><worldbody>
     <geom type="plane" size="1 1 1"/><body pos="0 0 .05"><freejoint/><geom type="mesh" mesh="m"/></body>
     <body pos=".1 .1 .3"><freejoint/><geom type="mesh" mesh="m" quat="1 2 3 4"/>
     <geom type="mesh" mesh="m" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    file, model = drevo.load(text, hulls=64), drevo.load(mujoco.MjModel.from_xml_string(text), hulls=64)
    ends = []
    for robot in (file, model):
        hulls = [g for g in robot.model.geoms if g.kind == "hull"]
        ends.append([np.array(g.points) @ np.array(g.rotation).T + g.origin for g in hulls])
    assert len(ends[0]) == len(ends[1]) == 2
    for a, b in zip(*ends):
        assert np.abs(a[:, None] - b).max(2).min(1).max() < 1e-7 and len(a) == len(b) == 5
    q = np.tile(file.model.initial, (20, 1))
    q = file.integrate(q, np.random.default_rng(0).normal(size=(20, 12)) * 0.05)
    v = np.zeros((20, 12))
    ours, theirs = (drevo.compile(x, "step", dt=0.002, ground=None)(q, v, v) for x in (file, model))
    assert np.abs(ours.forces).max() > 1.0 and np.abs(ours.v1 - theirs.v1).max() < 1e-4


def test_a_model_of_pinocchio() -> None:
    rng = np.random.default_rng(2)
    model, parent = pin.Model(), 0
    kinds = [pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelPY(), pin.JointModelSpherical()]
    kinds += [pin.JointModelRevoluteUnaligned(np.array([0.6, 0.0, 0.8])), pin.JointModelTranslation()]
    kinds += [pin.JointModelPrismaticUnaligned(np.array([0.0, 0.6, 0.8])), pin.JointModelSphericalZYX()]
    for k, kind in enumerate(kinds):
        joint = model.addJoint(parent, kind, pin.SE3.Random(), f"j{k}")
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
        model.addFrame(pin.Frame(f"b{k}", joint, 0, pin.SE3.Identity(), pin.FrameType.BODY))
        parent = joint if k % 3 else parent
    model.armature = np.repeat(rng.uniform(size=len(kinds)), [kind.nv for kind in kinds])
    model.addFrame(pin.Frame("tool", parent, 0, pin.SE3.Random(), pin.FrameType.BODY))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DrevoWarning)  # random inertias
        ours, data = load_model(model), model.createData()
    q, v, a = (
        pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)),
        *rng.normal(size=(2, model.nv)),
    )
    assert (ours.nq, ours.nv) == (model.nq, model.nv)
    tree, q0 = build_tree(ours), [float(x) for x in q]
    tau = inverse_dynamics(tree, q0, list(v), list(a))
    assert np.allclose(tau, pin.rnea(model, data, q, v, a), rtol=1e-11, atol=1e-11)
    pin.framesForwardKinematics(model, data, q)
    for name in ("b3", "b7", "tool"):
        assert np.allclose(pose(tree, q0, name), data.oMf[model.getFrameId(name)].homogeneous, atol=1e-12)


def test_joints_of_pinocchio_that_are_refused_or_continuous() -> None:
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "j")
    model.appendBodyToJoint(joint, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity())
    assert load_model(model).joints[0].kind == "continuous"
    model.addJoint(joint, pin.JointModelHX(0.1), pin.SE3.Identity(), "h")
    with pytest.raises(ModelError, match="joint 'h' of Pinocchio's type HX is not read"):
        drevo.load(model)


def test_nothing_is_imported_for_what_is_no_model() -> None:
    code = f"import sys, drevo; drevo.load({URDF!r}); sys.exit(len({{'mujoco', 'pinocchio'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loading_imports_what_it_needs_alone() -> None:
    """Constraints, documents and what compiles come with the first call that wants them."""
    late = (
        "constraint",
        "documents",
        "compiler",
        "codegen.llvm",
        "codegen.lower",
        "contact",
        "simulate",
        "control",
    )
    code = f"import sys, drevo; drevo.load({URDF!r}); print(*(x for x in sys.modules if x.startswith('drevo.')))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert [x for x in loaded if x.removeprefix("drevo.").startswith(late)] == []
    assert len(loaded) < 110


def test_the_package_shows_public_names_alone() -> None:
    public = {*drevo.__all__, *drevo._MODULES}
    assert {name for name in dir(drevo) if not name.startswith("__")} == public


# --- kinematics alone ------------------------------------------------------------------------------------------

BARE = """<robot name="k"><link name="b"/><link name="a"/><link name="c"/>
<joint name="i" type="revolute"><parent link="b"/><child link="a"/><origin xyz="0 0 1"/>
 <axis xyz="0 0 1"/></joint>
<joint name="j" type="prismatic"><parent link="a"/><child link="c"/><origin xyz="1 0 0"/>
 <axis xyz="0 1 0"/></joint>
</robot>"""


def test_a_robot_without_inertias_has_kinematics() -> None:
    with pytest.warns(DrevoWarning, match="no link has an <inertial>: there are poses, velocities and Jacobians"):
        robot = drevo.load(BARE)
    q, v = np.array([0.3, 0.5]), np.array([1.0, 2.0])
    J = robot.jacobian(q, "c")
    x, y = np.cos(0.3) - 0.5 * np.sin(0.3), np.sin(0.3) + 0.5 * np.cos(0.3)
    assert np.allclose(robot.pose(q, "c")[:3, 3], (x, y, 1.0))
    assert np.allclose(J[:3, 0], (-y, x, 0.0))
    assert drevo.write_out(robot, "pose", link="c").counts["trig"] == 2
    calls = [
        lambda: robot.mass_matrix(q),
        lambda: robot.inverse_dynamics(q, v, v),
        lambda: robot.forward_dynamics(q, v, v),
        lambda: robot.center_of_mass(q),
        lambda: drevo.compile(robot, "bias", wrt=("q",)),
        lambda: drevo.write_out(robot, "gravity"),
        lambda: robot.simulate(q, v, duration=0.1, dt=0.01),
        lambda: robot.linearise(q, v, v),
        lambda: robot.constrained_dynamics(q, v, v),
    ]
    for call in calls:
        with pytest.raises(ModelError, match=r"no link has a mass, which .* needs; give the links <inertial>"):
            call()
    with pytest.raises(ModelError, match=r"no link has an <inertial>.*strict"):
        drevo.load(BARE, strict=True)
    with pytest.raises(ModelError, match="moves only links without mass"):  # a lone joint of nothing is a slip
        drevo.load(BARE.partition('<joint name="j"')[0].replace('<link name="c"/>', "") + "</robot>")


def test_the_world_as_a_parent_that_is_not_defined() -> None:
    text = URDF.replace('<link name="b"/>', "").replace('link="b"', 'link="world"')
    with pytest.warns(
        DrevoWarning, match="names the parent link 'world', which is not defined and taken as the gr"
    ):
        assert drevo.load(text).link_names == ("world", "a")
