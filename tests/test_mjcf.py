"""MJCF as MuJoCo's compiler means it: geoms, meshes, settings, copies, attached models, included files."""

from __future__ import annotations

import os
import struct
import sys
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import drevo
from drevo.errors import ModelError
from drevo.io import files, meshes, xml
from drevo.model.description import Model
from drevo.model.loaders import load_model, mjcf, solids
from drevo.model.validation import finish

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from agreement import compared, states


def read(text: str) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return finish(mjcf.draft_of(xml.parse(text.encode())))


def agree(ours: Model, theirs: mujoco.MjModel, axes: float = 1e-12, near: float = 1e-12) -> None:
    """Masses, centres, principal moments to `near`; tensors to `axes`: MuJoCo finds those of meshes to 1e-8."""
    links = {link.name: link.inertial for link in ours.links}
    for i in range(1, theirs.nbody):
        body, turn = links[theirs.body(i).name], np.zeros(9)
        assert body is not None or not theirs.body_mass[i]
        if body is None:
            continue
        mujoco.mju_quat2Mat(turn, theirs.body_iquat[i])
        turn = turn.reshape(3, 3)
        tensor, size = np.array(body.tensor), theirs.body_inertia[i].max()
        assert body.mass == pytest.approx(theirs.body_mass[i], rel=1e-12)
        assert np.allclose(body.com, theirs.body_ipos[i], rtol=0.0, atol=1e-12)
        moments = np.sort(theirs.body_inertia[i])
        assert np.allclose(np.linalg.eigvalsh(tensor), moments, rtol=0.0, atol=near * size)
        assert np.allclose(turn * theirs.body_inertia[i] @ turn.T, tensor, rtol=0.0, atol=axes * size)


def body(inside: str, head: str = "", name: str = "a") -> str:
    return f'<mujoco>{head}<worldbody><body name="{name}"><joint/>{inside}</body></worldbody></mujoco>'


# --- geoms -------------------------------------------------------------------------------------------------

SOLIDS = {"sphere": ".3", "capsule": ".1 .4", "cylinder": ".2 .1", "box": ".1 .2 .4", "ellipsoid": ".1 .3 .2"}


@pytest.mark.parametrize("shell", ["false", "true"])
@pytest.mark.parametrize("kind", SOLIDS)
def test_solids_and_their_shells(kind: str, shell: str) -> None:
    geom = f'<geom type="{kind}" size="{SOLIDS[kind]}" shellinertia="{shell}" pos=".1 .2 .3" euler="10 20 30" %s/>'
    for amount in ("", 'mass="2"', 'density="70"'):
        text = body(geom % amount + '<geom size=".1" mass="1"/>')
        agree(read(text), mujoco.MjModel.from_xml_string(text), 1e-9, 1e-10 if shell == "true" else 1e-12)


SETTINGS = [
    'inertiafromgeom="true"',
    'inertiafromgeom="true" inertiagrouprange="1 2"',
    'inertiafromgeom="auto" inertiagrouprange="0 0"',
    'boundmass="3" boundinertia="0.5"',
    'boundmass="3" balanceinertia="true"',
    'balanceinertia="true" settotalmass="12"',
    'settotalmass="0.5" boundmass="2"',
    'fusestatic="true" boundmass="3"',
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_compiler(setting: str) -> None:
    """<inertial> beside geoms of two groups, a body of geoms, one with little mass, one without any."""
    inertial = '<inertial pos=".1 .2 .3" mass="2" diaginertia=".1 .2 .25" euler="10 20 30"/>'
    text = f"""<mujoco><compiler {setting}/><worldbody><geom size="1"/>
    <body name="a"><joint/>{inertial}<geom size=".1" group="1"/><geom type="box" size=".1 .2 .3" group="0"/>
     <body name="b"><joint axis="1 0 0"/><geom type="box" size=".01 .02 .03" pos=".3 0 0" euler="0 0 20"/>
      <geom size=".1" pos="0 .2 0" group="2"/></body>
     <body name="c"><joint/><inertial pos="0 .1 0" mass="1" diaginertia=".1 .2 .29"/></body></body>
    </worldbody></mujoco>"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = mujoco.MjModel.from_xml_string(text), read(text)
    agree(ours, theirs, 1e-9)
    assert compared(ours, theirs) < 1e-9


@pytest.mark.parametrize("rule", ["auto", "false"])
def test_what_weighs_nothing_is_bounded_at_its_place_in_its_parent(rule: str) -> None:
    text = f"""<mujoco><compiler boundmass=".1" boundinertia=".2" inertiafromgeom="{rule}"/><worldbody>
    <frame pos="1 2 3"><body name="a" pos=".1 .2 .3" euler="0 20 0"><joint/><geom size=".1" mass="0"/>
     <body name="b" pos="0 .4 0"><joint axis="1 0 0"/></body></body></frame></worldbody></mujoco>"""
    agree(read(text), mujoco.MjModel.from_xml_string(text), 1e-9)


# --- meshes ------------------------------------------------------------------------------------------------

rng = np.random.default_rng(4)
POINTS = (rng.normal(size=(9, 3)) * (0.1, 0.2, 0.3) + (0.1, 0.0, 0.2)).astype(np.float32)
FACES = meshes.hull_faces(POINTS.astype(float))
TRIANGLES = POINTS[FACES]


def stl() -> bytes:
    rows = b"".join(struct.pack("<12fH", *np.zeros(3), *t.ravel(), 0) for t in TRIANGLES)
    return bytes(80) + struct.pack("<I", len(TRIANGLES)) + rows


def text_stl() -> bytes:
    corners = ["".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in t.tolist()) for t in TRIANGLES]
    facets = [f"facet normal 0 0 0\nouter loop\n{c}endloop\nendfacet\n" for c in corners]
    return ("solid s\n" + "".join(facets) + "endsolid").encode()


def obj(plain: bool = False) -> bytes:
    """MuJoCo wants all corners written alike, and normals where they are named."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in POINTS.tolist()]
    if plain:
        return "\n".join([*lines, *(f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES.tolist())]).encode()
    lines += [f"f {a + 1}/1/1 {b + 1}// {c - len(POINTS)}" for a, b, c in FACES.tolist()]
    return "\n".join(["# a comment", "vn 0 0 1", "vt 0 0", "o one", *lines, "o two", "f 1 2 3"]).encode()


def msh() -> bytes:
    head = struct.pack("<4i", len(POINTS), 0, len(POINTS), len(FACES))
    return head + POINTS.tobytes() + bytes(8 * len(POINTS)) + FACES.astype("<i4").tobytes()


def test_meshes_of_every_type_are_the_same(tmp_path: Path) -> None:
    found = [
        meshes.read_mesh(data, kind)
        for data, kind in ((stl(), "stl"), (text_stl(), "stl"), (obj(), "obj"), (msh(), "msh"))
    ]
    for points, faces in found:
        assert faces is not None and np.array_equal(points[faces], TRIANGLES)


@pytest.mark.parametrize("rule", ["legacy", "exact", "convex", "shell"])
@pytest.mark.parametrize("more", ["", 'scale=".5 -2 1" refpos=".1 .2 .3" refquat="1 .2 .3 .4"'])
def test_meshes_weigh_what_they_weigh_in_mujoco(tmp_path: Path, rule: str, more: str) -> None:
    if rule == "exact" and "-2" in more and int(mujoco.__version__.partition(".")[0]) < 4:
        pytest.skip("MuJoCo 3 refuses meshes that a scale turns inside out")
    for name, data in (("a.stl", stl()), ("b.obj", obj(plain=True)), ("c.msh", msh())):
        (tmp_path / "m").mkdir(exist_ok=True)
        (tmp_path / "m" / name).write_bytes(data)
        asset = f'<compiler meshdir="m"/><asset><mesh file="{name}" inertia="{rule}" {more}/></asset>'
        geoms = f'<geom type="mesh" mesh="{name[0]}" pos=".1 .2 .3" euler="10 20 30"/>'
        (tmp_path / "r.xml").write_text(body(geoms, asset))
        agree(load_model(tmp_path / "r.xml"), mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml")), 1e-7)


@pytest.mark.parametrize("kind", SOLIDS)
def test_solids_fitted_to_meshes(kind: str) -> None:
    numbers = " ".join(repr(x) for x in POINTS.ravel().tolist())
    geom = f'<geom type="{kind}" mesh="m" fitscale="1.2" pos=".1 .2 .3" euler="10 20 30" mass="2"/>'
    text = body(
        geom, f'<default><mesh scale="2 2 1"/></default><asset><mesh name="m" vertex="{numbers}"/></asset>'
    )
    agree(read(text), mujoco.MjModel.from_xml_string(text), 1e-7)


def test_what_triangles_enclose() -> None:
    """A box of twelve triangles, apart from the origin, is the box; turned inward it has no volume to have."""
    unit = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    corners = unit[meshes.hull_faces(unit)] * (0.1, 0.2, 0.3) + (1.0, 2.0, 3.0)
    for rule, shell in (("exact", False), ("legacy", False), ("shell", True)):
        found, plain = solids.of_triangles(corners, rule), solids.solid("box", (0.1, 0.2, 0.3), shell)
        assert np.allclose(found.volume, plain.volume, rtol=1e-13) and np.allclose(
            found.centre, (1, 2, 3), rtol=1e-13
        )
        assert np.allclose(found.tensor, plain.tensor, atol=1e-14)
    with pytest.raises(ModelError, match="its volume is negative"):
        solids.of_triangles(corners[:, ::-1], "exact")


@pytest.mark.parametrize(
    "mesh, says",
    [
        ('file="none.stl"', "the file 'none.stl' does not exist in"),
        ('file="bad.stl"', "the mesh file is no STL, or cut off"),
        ('file="bad.obj"', "has no points"),
        ('file="far.obj"', "points that do not exist"),
        ('file="r.xml"', "a mesh file of the type 'xml' is not read"),
        ('file="/etc/passwd" content_type="model/obj"', "stands outside of"),
        ('vertex="0 0 0 1 0 0 0 1 0 1 1 0"', "no convex hull"),
        ('vertex="0 0 0 1 0 0 0 1 0 0 0 1" inertia="odd"', "inertia='odd' is none of"),
        ('builtin="sphere"', "made by builtin, which is not read"),
        ('vertex="0 0 0 1 0 x"', "no list of triples"),
    ],
)
def test_meshes_that_are_refused(tmp_path: Path, mesh: str, says: str) -> None:
    (tmp_path / "bad.stl").write_bytes(stl()[:-7])
    (tmp_path / "bad.obj").write_bytes(b"v 1 2 3\nf 1 1 1")
    (tmp_path / "far.obj").write_bytes(b"v 1 2 3\nv 1 2 3\nv 1 2 3\nf 1 2 999")
    (tmp_path / "r.xml").write_text(
        body('<geom type="mesh" mesh="m"/>', f'<asset><mesh name="m" {mesh}/></asset>')
    )
    with pytest.raises(ModelError, match="<geom> on line 1: the mesh 'm'.*" + says) as caught:
        load_model(tmp_path / "r.xml")
    assert "\n" not in str(caught.value)


def test_a_mesh_that_nothing_weighs_is_never_opened(tmp_path: Path) -> None:
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    head = '<asset><mesh name="m" file="/none.stl"/></asset>'
    (tmp_path / "r.xml").write_text(body(inertial + '<geom type="mesh" mesh="m"/>', head))
    assert load_model(tmp_path / "r.xml").links[1].shapes[0].uri == "m"


def test_a_damper_that_holds_a_slide_is_no_slip() -> None:
    """gymnasium_robotics holds its base by dampers of 1e11 N s/m."""
    dynamics = read(body('<geom size=".1"/>').replace("<joint/>", '<joint damping="1e+11"/>')).joints[0].dynamics
    assert dynamics and dynamics.damping == 1e11


# --- copies and attached models -------------------------------------------------------------------------------

REPLICATED = """<mujoco><worldbody><replicate count="3" offset=".1 0 .2" euler="10 20 30" sep="-">
 <frame pos="0 .1 0"><body name="a" pos=".1 0 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/>
  <replicate count="11" offset="0 .1 0"><geom size=".02"/><site name="s"/></replicate>
  <replicate count="2" euler="0 0 90"><body name="b" pos=".2 0 0"><joint/><geom size=".1"/></body></replicate>
 </body>
 </frame></replicate><replicate count="0"><body name="none"/></replicate></worldbody></mujoco>"""
CHILD = """<mujoco model="child"><compiler angle="radian" inertiagrouprange="1 1"/><option gravity="9 9 9"/>
<default><geom density="50" group="1"/><default class="k"><joint axis="0 1 0"/></default></default>
<worldbody><geom size="1"/><body name="x" pos=".1 .2 .3" euler="0 0 1" childclass="k"><joint name="j"/>
 <geom size=".1" pos=".1 0 0"/><geom size=".3" group="0"/><body name="y"><joint/><geom size=".1"/></body></body>
</worldbody></mujoco>"""
ATTACHED = """<mujoco><compiler angle="degree"/><asset><model name="m" file="c/child.xml"/></asset><worldbody>
<body name="p" euler="0 10 0"><joint/><geom size=".1"/><attach model="m" body="x" prefix="l_"/>
 <frame pos="0 0 1"><attach model="m" body="x" prefix="r_"/></frame></body>
<replicate count="2" offset="1 0 0"><attach model="m" prefix="w_"/></replicate></worldbody></mujoco>"""


def test_copies() -> None:
    ours, theirs = read(REPLICATED), mujoco.MjModel.from_xml_string(REPLICATED)
    assert [link.name for link in ours.links] == [theirs.body(i).name for i in range(theirs.nbody)]
    agree(ours, theirs)
    assert compared(ours, theirs) < 1e-12


def test_attached_models_keep_their_own_settings(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "child.xml").write_text(CHILD)
    (tmp_path / "r.xml").write_text(ATTACHED)
    ours, theirs = load_model(tmp_path / "r.xml"), mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    assert [link.name for link in ours.links] == [theirs.body(i).name for i in range(theirs.nbody)]
    assert "l_j" in [joint.name for joint in ours.joints] and ours.gravity == (0.0, 0.0, -9.81)
    agree(ours, theirs)
    assert compared(ours, theirs) < 1e-12
    (tmp_path / "r.xml").write_text(ATTACHED.replace('body="x"', 'body="z"'))
    with pytest.raises(ModelError, match="<attach> on line 2 names the body 'z'"):
        load_model(tmp_path / "r.xml")
    (tmp_path / "c" / "child.xml").write_text(ATTACHED.replace("c/child", "child"))
    with pytest.raises(ModelError, match="attached more than 8 deep"):
        load_model(tmp_path / "r.xml")


HELD = """<mujoco model="held"><default><equality solref=".03 1"/></default>%s<worldbody>
<site name="w" pos="0 0 2"/><body name="a"><joint name="i"/><geom name="a" size=".1"/><site name="a"/>
<body name="b" pos=".3 0 0"><joint name="j"/><geom name="b" size=".1"/></body></body>
<body name="c"><joint name="k"/><geom name="c" size=".1"/><site name="c" pos=".1 0 0"/>%s</body></worldbody>
<tendon><fixed name="t" range="0 1"><joint joint="i" coef="1"/><joint joint="j" coef="2"/></fixed>
<spatial name="u"><site site="a"/><site site="c"/></spatial>
<fixed name="v"><joint joint="k" coef="3"/></fixed></tendon>
<equality><joint joint1="i" joint2="j"/><joint joint1="i" joint2="k"/><connect body1="a" anchor="0 0 0"/>
<weld body1="a" body2="world"/><tendon tendon1="t"/><connect site1="a" site2="w"/></equality>
<contact><exclude body1="a" body2="b"/><exclude body1="a" body2="c"/><pair geom1="a" geom2="b"/></contact>
<actuator><motor name="m" joint="i"/><motor name="o" joint="k"/></actuator></mujoco>"""
HOLDERS = (
    '<attach model="m" prefix="p_"/>',
    '<attach model="m" body="a" prefix="p_"/><frame pos="1 0 0"><attach model="m" body="a" prefix="q_"/></frame>',
    '<replicate count="2" offset="0 0 1"><attach model="m" body="c" prefix="p_"/></replicate>',
    '<replicate count="2" offset="0 0 1"><body name="e"><joint name="e"/><geom size=".1"/></body></replicate>',
)


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_holds_copies_is_copied(holder: str, tmp_path: Path) -> None:
    """Of a whole model, of two bodies of one, of a model in a model, and of copies in the file itself."""
    inner = '<asset><model name="n" file="n.xml"/></asset>', '<attach model="n" body="a" prefix="n_"/>'
    (tmp_path / "n.xml").write_text((HELD % ("", "")).replace('"c"', '"d"').replace('"k"', '"l"'))
    (tmp_path / "m.xml").write_text(HELD % inner)
    own = '<tendon><fixed name="f"><joint joint="e" coef="1"/></fixed></tendon>' if 'name="e"' in holder else ""
    file = tmp_path / "r.xml"
    file.write_text(
        '<mujoco><compiler autolimits="false"/><asset><model name="m" file="m.xml"/></asset><worldbody>'
        f"<frame>{holder}</frame></worldbody>{own}</mujoco>"
    )
    ours, theirs = load_model(file), load_model(mujoco.MjModel.from_xml_path(str(file)))
    for part in ("tendons", "couplings", "tendon_couplings", "loops", "exclusions", "pairs", "actuators"):
        seen, wanted = (sorted(map(repr, getattr(x, part))) for x in (ours, theirs))
        assert seen == wanted
    assert ours.tendons


KEYS = """<mujoco><worldbody><body name="a"><joint name="i"/><geom size=".1"/>
 <body name="b"><joint type="ball"/><geom size=".1"/></body></body>
<body name="c"><freejoint/><geom size=".1"/></body></worldbody><keyframe>%s</keyframe></mujoco>"""


def test_keyframes_are_configurations_by_name(tmp_path: Path) -> None:
    good = (
        '<key name="home" qpos="1 2 0 0 0 3 4 5 .6 0 .8 0"/><key qpos="0 1 0 0 0 0 0 0 1 0 0 0"/><key name="t"/>'
    )
    theirs = mujoco.MjModel.from_xml_string(KEYS % good)
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 0)
    mujoco.mj_normalizeQuat(theirs, data.qpos)
    robot = drevo.load(KEYS % good)
    assert list(robot.keyframes) == ["home", "key 1"]
    assert np.allclose(robot.keyframes["home"], states(theirs, data)[0])
    robot.save(tmp_path / "r.json")
    assert drevo.load(tmp_path / "r.json").model.keyframes == robot.model.keyframes
    floating = drevo.load(KEYS % good, base="floating")
    assert floating.keyframes["home"].shape == (floating.nq,) and floating.keyframes["home"][6] == 1.0
    for bad, says in (('name="k" qpos="1 2"', "2 numbers, q has 12"), (f'qpos="{"0 " * 12}"', "length zero")):
        with pytest.warns(drevo.DrevoWarning, match=says):
            assert drevo.load(KEYS % f"<key {bad}/>").keyframes == {}


# --- included files ----------------------------------------------------------------------------------------------

INCLUDED = {
    "r.xml": '<mujoco><include file="parts/head.xml"/><worldbody><include file="parts/arm.xml"/></worldbody>'
    "</mujoco>",
    "parts/head.xml": '<mujocoinclude><compiler angle="radian"/><include file="more.xml"/></mujocoinclude>',
    "parts/more.xml": '<mujoco><default><geom density="10"/></default></mujoco>',
    "parts/arm.xml": '<mujocoinclude><body name="a"><joint/>\n<include file="geoms.xml"/></body></mujocoinclude>',
    "parts/geoms.xml": '<mujocoinclude><geom size=".1" pos="1 0 0" euler="0 0 1"/></mujocoinclude>',
}


def written(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "r.xml"


def test_included_files_stand_where_they_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, INCLUDED)
    agree(load_model(path), mujoco.MjModel.from_xml_path(str(path)))
    written(tmp_path, {"parts/geoms.xml": '<mujocoinclude>\n<geom size="-1"/></mujocoinclude>'})
    with pytest.raises(ModelError, match=r"<geom> on line 2 of geoms\.xml has a size that is not positive"):
        load_model(path)


@pytest.mark.parametrize(
    "part, says",
    [
        ('<mujoco><include file="r.xml"/></mujoco>', "'r.xml' includes itself"),
        ('<mujoco><include file="parts/more.xml"/></mujoco>', "'parts/more.xml' includes itself"),
        ('<mujoco><include file="none.xml"/></mujoco>', "the file 'none.xml' does not exist"),
        ("<mujoco><include/></mujoco>", "names no file"),
        ('<mujoco><include file="../../out.xml"/></mujoco>', "stands outside of .* declare its folder"),
        ('<mujoco><include file="/etc/passwd"/></mujoco>', "'/etc/passwd' stands outside of"),
        ('<mujoco><include file="link.xml"/></mujoco>', "'link.xml' stands outside of"),
        ('<mujoco><include file="parts"/></mujoco>', "cannot be read|not a file"),
        ("<robot/>", "begins with <robot>; <mujoco> or <mujocoinclude> is needed"),
        ("<mujoco>", "'more.xml': line 1.*malformed"),
    ],
)
def test_includes_that_are_refused(tmp_path: Path, part: str, says: str) -> None:
    path = written(tmp_path / "in", INCLUDED | {"parts/more.xml": part})
    (tmp_path / "out.xml").write_text("<mujoco/>")
    (tmp_path / "in" / "link.xml").symlink_to(tmp_path / "out.xml")
    with pytest.raises(ModelError, match="<include> on line 1.*" + says) as caught:
        load_model(path)
    assert "\n" not in str(caught.value) and "root:" not in str(caught.value)


def test_folders_that_are_declared(tmp_path: Path) -> None:
    """A file of the folder above is read where that is declared, or where a package holds both."""
    path = written(tmp_path / "in", {"r.xml": '<mujoco><include file="../out.xml"/></mujoco>'})
    (tmp_path / "out.xml").write_text("<mujoco/>")
    with pytest.raises(ModelError, match="stands outside of"):
        load_model(path)
    load_model(path, roots=[tmp_path])
    with pytest.raises(ModelError, match="stands outside of"):
        load_model(path, roots=[tmp_path / "in"])
    (tmp_path / "package.xml").write_text("<package/>")
    load_model(path)


def test_a_folder_beside_is_read(tmp_path: Path) -> None:
    texts = {"robots/r.xml": '<mujoco><include file="../scene/s.xml"/></mujoco>', "scene/s.xml": "<mujoco/>"}
    written(tmp_path, texts)
    load_model(tmp_path / "robots" / "r.xml")
    os.chmod(tmp_path, 0o777)  # a folder that is everybody's
    with pytest.raises(ModelError, match="stands outside of"):
        load_model(tmp_path / "robots" / "r.xml")


def test_bombs_of_includes_and_copies_are_refused_at_once(tmp_path: Path) -> None:
    ten = {f"{k}.xml": "<mujoco>" + f'<include file="{k + 1}.xml"/>' * 10 + "</mujoco>" for k in range(1, 9)}
    path = written(tmp_path, {"r.xml": '<mujoco><include file="1.xml"/></mujoco>', **ten, "9.xml": "<mujoco/>"})
    nested = '<geom size="1"/>'
    for _ in range(9):
        nested = f'<replicate count="10">{nested}</replicate>'
    with pytest.raises(ModelError, match="more than 2000 files"):
        load_model(path)
    path.write_text(body(nested))
    with pytest.raises(ModelError, match="more than 20000 elements <frame>"):
        load_model(path)
    path.write_text(body('<replicate count="1e9"><geom size="1"/></replicate>'))
    with pytest.raises(ModelError, match="beyond 200000"):
        load_model(path)


def test_bytes_of_all_files_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_TOTAL", 300)
    with pytest.raises(ModelError, match="bytes, more than"):
        load_model(written(tmp_path, INCLUDED | {"parts/more.xml": f"<mujoco>{' ' * 250}</mujoco>"}))


ALIGNED = """<mujoco><compiler alignfree="{}"/><worldbody><body name="a" pos="1 2 3" euler="10 20 30">
  <joint name="f" type="free"/>{}<frame euler="0 30 0"><site name="s" pos=".1 0 .2"/></frame></body></worldbody>
  <equality><connect body1="a" body2="world" anchor=".1 .2 .3"/></equality></mujoco>"""
BLOCK = '<geom name="g" type="box" size=".1 .2 .3" pos=".3 .1 0" euler="40 0 0"/>'


@pytest.mark.parametrize(
    "body",
    [
        BLOCK,
        BLOCK + '<geom type="capsule" size=".1 .2" pos="0 .4 0"/>',
        BLOCK + '<inertial pos=".1 .2 .3" mass="1" fullinertia="1 2 2.5 .1 .2 .3"/>',
        BLOCK + '<inertial pos=".1 .2 .3" quat="1 2 3 4" mass="1" diaginertia="1 2 2.5"/>',
    ],
)
def test_free_bodies_are_aligned_with_their_inertia(body: str) -> None:
    """To 1e-8, where MuJoCo ends its search for principal axes."""
    for way in ("true", "false"):
        text = ALIGNED.format(way, body)
        theirs, robot = mujoco.MjModel.from_xml_string(text), drevo.load(text)
        assert compared(robot.model, theirs) < 1e-8
        data, start = mujoco.MjData(theirs), np.array(robot.model.initial)
        mujoco.mj_forward(theirs, data)
        q, geom, loop = states(theirs, data)[0], robot.model.geoms[0], robot.model.loops[0]
        assert np.abs(start[:3] - q[:3]).max() < 1e-8 and abs(abs(start[3:] @ q[3:]) - 1.0) < 1e-8
        assert np.abs(np.array(geom.origin) - theirs.geom_pos[0]).max() < 1e-8
        pose = robot.pose(start, "a")
        assert np.abs(pose[:3, :3] @ loop.point_a + pose[:3, 3] - loop.point_b).max() < 1e-8
    hung = ALIGNED.format(
        "true", BLOCK + '<body name="b"><geom size=".1"/></body>'
    )  # where nothing hangs on it alone
    assert drevo.load(hung).model.links == drevo.load(hung.replace('"true"', '"false"')).model.links
