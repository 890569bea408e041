"""Every element and attribute of MJCF, URDF and SDF has a verdict: read, named where it acts, or a reason."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import schema_files
from schema_files import LAWS, SCENE, differing, silent

import drevo
from drevo.model.loaders import schema
from drevo.model.loaders.schema import NAMED, Node, parsed

FOLDER = Path(schema.__file__).parent
TABLES = ("mjcf/schema.txt", "sdf/schema.txt", "urdf.txt")
BESIDE = {"body/frame", "body/replicate"}  # MuJoCo's printed schema leaves them out


def nodes_of(table: str) -> dict[str, Node]:
    return parsed((FOLDER / table).read_text("utf-8"))


def loaded(text: str, name: str = "") -> tuple[drevo.Robot, str]:
    """The robot of a text, and what its one warning says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = drevo.load(text)
    assert len(caught) <= 1
    return robot, str(caught[0].message) if caught else ""


# --- the tables -------------------------------------------------------------------------------------------------


def printed_schema() -> dict[str, set[str]]:
    """The attributes of every element of the installed MuJoCo, by paths."""
    import mujoco

    out: dict[str, set[str]] = {}
    above: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        begin = re.match(r"^( {0,15})(?:\(world\))?([a-z_]+) \(.\) ?(.*)", line)
        if begin:
            above = [*above[: len(begin[1]) // 3], begin[2]]
        out.setdefault("/".join(above[1:]) or "mujoco", set()).update((begin[3] if begin else line).split())
    return out


@pytest.mark.needs("mujoco")
def test_every_attribute_of_the_installed_mujoco_has_a_verdict_and_no_other_has() -> None:
    theirs, ours = printed_schema(), nodes_of("mjcf/schema.txt")
    newer = {path: set(node.verdicts) - node.older for path, node in ours.items() if path not in BESIDE}
    assert {path: x for path, x in newer.items() if x or not ours[path].older} == theirs
    assert len(theirs) > 150 and sum(map(len, theirs.values())) > 1500


@pytest.mark.parametrize("table", TABLES)
def test_verdicts_are_read_named_or_a_written_reason(table: str) -> None:
    text = (FOLDER / table).read_text("utf-8")
    reasons = set(re.findall(r"^reason (\w+): \S", text, re.M))
    used = {verdict for node in nodes_of(table).values() for verdict in node.verdicts.values()}
    assert used == reasons | {"read", NAMED} and len(re.findall("^reason ", text, re.M)) == len(reasons)


@pytest.mark.parametrize("table", TABLES)
def test_the_guide_lists_what_is_named(table: str) -> None:
    """In a line of the format: `element`: `attribute`, ... for all that the table names, and for nothing else."""
    guide = (Path(__file__).parents[1] / "docs" / "robots.md").read_text("utf-8")
    line = next(
        x for x in guide.splitlines() if x.startswith(f"| {table.split('/')[0].split('.')[0].upper()} named |")
    )
    told = {
        (element, word)
        for element, words in re.findall(r"`<(\w+)>`: ((?:`[^`<]+`(?:, )?)+)", line)
        for word in re.findall(r"`([^`]+)`", words)
    }
    ours = {
        (path.rsplit("/", 1)[-1], name.lstrip("."))
        for path, node in nodes_of(table).items()
        for name, verdict in node.verdicts.items()
        if verdict == NAMED and name not in node.older and not path.startswith("default/")
    }
    assert told == ours


# --- MJCF: what the schema does not have ------------------------------------------------------------------------

ARM = """<mujoco>{head}<worldbody><body name="a" {body}><joint name="j" {joint}/><geom name="g" pos=".3 0 .1"
 size=".1" {geom}/></body></worldbody>{more}</mujoco>"""


def arm(**parts: str) -> str:
    return ARM.format(**{"head": "", "body": "", "joint": "", "geom": "", "more": ""} | parts)


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"joint": 'nonsense="3"'}, ["'nonsense'", "<joint> on line 1"]),
        ({"joint": 'dampin="3"'}, ["did you mean 'damping'?"]),
        ({"geom": 'dencity="3"'}, ["did you mean 'density'?"]),
        ({"head": "<opton/>"}, ["<opton>", "did you mean 'option'?"]),
        ({"head": '<option gravty="0 0 0"/>'}, ["did you mean 'gravity'?"]),
        ({"head": '<default><joint name="x"/></default>'}, ["no attribute 'name'"]),
        ({"head": '<default><default class="c"><goem/></default></default>'}, ["<goem>", "did you mean 'geom'?"]),
        ({"more": '<actuator><motor joint="j" kp="1"/></actuator>'}, ["<motor>", "'kp'"]),
    ],
)
def test_what_no_schema_has_is_refused(parts: dict[str, str], words: list[str]) -> None:
    with pytest.raises(drevo.ModelError) as caught:
        drevo.load(arm(**parts))
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"joint": 'springyield="1" stiffness="2"'}, "springyield of joint 'j'"),
        ({"head": '<default><joint springyield="1"/></default>'}, "springyield of joint 'j'"),
        (
            {"joint": 'actuatorgravcomp="true"', "body": 'gravcomp="1"'},
            "actuatorgravcomp without actuators of joint 'j'",
        ),
        (
            {
                "joint": 'actuatorgravcomp="true" actuatorfrcrange="-1 1"',
                "body": 'gravcomp="1"',
                "more": '<actuator><motor joint="j"/></actuator>',
            },
            "actuatorgravcomp within an actuatorfrcrange of joint 'j'",
        ),
        ({"geom": 'adhesion="3"'}, "adhesion of geom 'g'"),
        ({"head": '<option><flag sleep="enable"/></option>'}, "sleep of flag on line 1"),
        ({"head": '<option actuatorgroupdisable="1 2"/>'}, "actuatorgroupdisable of option"),
        ({"more": '<actuator><motor joint="j" delay=".1" nsample="3"/></actuator>'}, "delay of motor on line 2"),
        ({"joint": 'actuatorfrcrange="-1 2"'}, "an actuatorfrcrange that is not symmetric of joint 'j'"),
        ({"joint": 'type="ball" range="0 20" margin="1"'}, "a margin wider than the range of joint 'j'"),
        ({"geom": 'gap="-1"'}, "a negative gap of geom 'g'"),
        (
            {"more": '<tendon><fixed name="t" springyield="1"><joint joint="j" coef="1"/></fixed></tendon>'},
            "springyield of fixed 't'",
        ),
        ({"head": '<option integrator="discrete"/>'}, "integrator 'discrete' of <option>"),
    ],
)
def test_what_acts_and_is_not_read_is_named(parts: dict[str, str], words: str) -> None:
    assert words in loaded(arm(**parts))[1]
    with pytest.raises(drevo.ModelError):
        drevo.load(arm(**parts), strict=True)


@pytest.mark.parametrize(
    "parts",
    [
        {"joint": 'springyield="0" actuatorgravcomp="false"', "geom": 'adhesion="0.0"'},
        {"head": '<default><joint springyield="1"/></default>', "joint": 'springyield="0"'},
        {"head": '<default><tendon springyield="1"/></default>'},  # of no tendon
        {"joint": 'actuatorgravcomp="true"'},  # of weights that nothing compensates
        {"head": '<option iterations="3" solver="PGS"><flag warmstart="disable" override="disable"/></option>'},
        {"head": '<compiler fusestatic="true"/><size nkey="3"/><visual><map zfar="3"/></visual>'},
    ],
)
def test_what_changes_nothing_is_not_named(parts: dict[str, str]) -> None:
    drevo.load(arm(**parts), strict=True)


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("kind", ["hinge", "slide", "ball", "free"])
def test_weights_that_actuators_compensate_move_as_in_mujoco(kind: str) -> None:
    """Of the joints of two bodies, one compensated by half, one has its actuators do so."""
    text = f"""<mujoco><worldbody><body name="a" pos="0 0 1" gravcomp=".5">
     <joint name="j" type="{kind}" actuatorgravcomp="true"/><geom pos=".3 0 .1" size=".1"/><body name="b"
     gravcomp=".3"><joint name="k" axis="0 1 0"/><geom pos=".2 .1 0" size=".1" contype="0"/></body></body>
     </worldbody><actuator><motor joint="k"/></actuator></mujoco>"""
    there = schema_files.motion(text)
    assert there is not None
    q, v = schema_files.steps(drevo.load(text, strict=True), there)
    assert np.abs(q - there.q).max() < 1e-12 and np.abs(v - there.v).max() < 1e-12 * max(1.0, np.abs(v).max())


@pytest.mark.parametrize("name", ["solreflimit", "solreffriction"])
def test_a_solref_of_two_kinds_is_refused_of_tendons_too(name: str) -> None:
    more = f'<tendon><fixed name="t" {name}="1 0" range="0 1"><joint joint="j" coef="1"/></fixed></tendon>'
    with pytest.raises(drevo.ModelError, match="tendon 't' has solref 1 0; both are positive, or both are not"):
        drevo.load(arm(more=more))


# --- MJCF: default classes merge as in MuJoCo -------------------------------------------------------------------

PARTLY = [
    ("joint", 'damping="1 2 3"', 'damping="5"'),
    ("joint", 'stiffness="1 2 3"', 'stiffness="5 1"'),
    ("geom", 'type="box" size=".1 .2 .3"', 'size=".5"'),
]


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("tag, usual, given", PARTLY)
def test_a_default_keeps_the_numbers_that_are_not_given(tag: str, usual: str, given: str) -> None:
    """Accelerations are MuJoCo's, with springs and dampers in."""
    import mujoco

    text = arm(head=f"<default><{tag} {usual}/></default>", **{tag: given}).replace(
        'size=".1" ', "", tag == "geom"
    )
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    data.qpos[0], data.qvel[0] = 0.4, -2.0
    mujoco.mj_forward(m, data)
    robot = drevo.load(text)
    a = robot.forward_dynamics(data.qpos, data.qvel, [0.0], passive=True)
    assert np.allclose(a, data.qacc, rtol=1e-12)


ACTUATED = """<mujoco>{0}<worldbody><body><joint name="j" range="-1 2"/><geom size=".1"/></body></worldbody>
<actuator>{1}</actuator></mujoco>"""
DEFAULTS = (
    *('<general gainprm="400"/>', '<general gaintype="affine" gainprm="1 2 -3"/>', '<motor gear="3"/>'),
    *('<general gainprm="4 1 2" biasprm="3 4 -5" biastype="affine"/>', '<velocity kv="6"/>'),
    *('<position kp="5" kv="2" ctrlrange="0 1"/>', '<damper kv="4" ctrlrange="0 1"/>'),
    *('<position kp="9" kv="1"/><general gainprm="2"/>', '<position kp="9"/><velocity kv="3"/>'),
)
ELEMENTS = (
    *('<general joint="j" {}/>', '<general joint="j" gainprm="5" {}/>', '<motor joint="j" {}/>'),
    *('<position joint="j" {}/>', '<position joint="j" kv="8" {}/>', '<velocity joint="j" {}/>'),
    '<damper joint="j" ctrlrange="0 2" {}/>',
)


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("element", ELEMENTS)
def test_actuators_inherit_from_defaults_of_any_kind_as_in_mujoco(element: str) -> None:
    import mujoco

    for usual in DEFAULTS:
        for inner in ("", *DEFAULTS):
            held = f'<default class="s">{inner}</default>' if inner else ""
            which = 'class="s"' if inner else ""
            text = ACTUATED.format(f"<default>{usual}{held}</default>", element.format(which))
            try:
                m = mujoco.MjModel.from_xml_string(text)
            except ValueError:  # a damper that pushes
                continue
            (mine,) = loaded(text)[0].model.actuators
            gain = m.actuator_gainprm[0][:3] * np.array([1, *[m.actuator_gaintype[0] == 1] * 2])
            bias = m.actuator_biasprm[0][:3] * (m.actuator_biastype[0] == 1)
            assert (mine.gain, mine.bias) == (tuple(gain), tuple(bias)), text
            held_range = tuple(m.actuator_ctrlrange[0]) if m.actuator_ctrllimited[0] else None
            assert (mine.gear, mine.control_range) == (m.actuator_gear[0][0], held_range), text


@pytest.mark.parametrize("more, joints", [('jointinparent="k"', ["k"]), ('tendon="t"', [""]), ('site="s"', [])])
def test_of_two_transmissions_an_actuator_has_the_one_of_mujoco(more: str, joints: list[str]) -> None:
    text = """<mujoco><worldbody><body name="b"><joint name="j"/><joint name="k" axis="1 0 0"/><geom size=".1"/>
     <site name="s"/></body></worldbody><tendon><fixed name="t"><joint joint="k" coef="1"/></fixed></tendon>
     <actuator><motor joint="j" {}/></actuator></mujoco>"""
    model = drevo.load(text.format(more)).model
    assert [x.joint for x in model.actuators] == joints and bool(model.notes) == (not joints)


# --- URDF and SDF -----------------------------------------------------------------------------------------------

URDF = """<robot name="r"><link name="b"/><link name="a"><inertial>{inertial}<origin xyz="0 0 .1" {origin}/>
<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>{link}</link>
<joint name="j" type="revolute"><parent link="b"/><child link="a"/><limit lower="-1" upper="1" effort="1"
velocity="1" {limit}/>{joint}</joint>{robot}</robot>"""
SDF = """<sdf version="1.9"><model name="m"><link name="b"/><link name="a"><inertial><mass>1</mass>{inertial}
<inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>{link}</link><joint name="j" type="revolute">
<parent>b</parent><child>a</child><axis><xyz>0 0 1</xyz><limit>{limit}</limit>{axis}</axis>{joint}</joint>
</model></sdf>"""


@pytest.mark.parametrize(
    "place, text, words",
    [
        ("origin", 'rpi="0 0 1"', ["<origin>", "'rpi' (did you mean 'rpy'?)"]),
        ("limit", 'lowr="-2"', ["'lowr' (did you mean 'lower'?)"]),
        ("inertial", '<mas value="2"/>', ["<mas>", "did you mean 'mass'?"]),
        ("joint", '<dynamics dampin="3"/>', ["did you mean 'damping'?"]),
        ("joint", '<dynamcs damping="3"/>', ["did you mean 'dynamics'?"]),
        ("link", '<inertail><mass value="1"/></inertail>', ["did you mean 'inertial'?"]),
        ("link", '<collision><geometry><box siz="1 1 1" size="1 1 1"/></geometry></collision>', ["'size'"]),
        ("joint", '<dynamics rotor_inertia="3"/>', ["rotor_inertia of joint 'j'"]),
    ],
)
def test_numbers_under_unknown_names_are_doubted_in_urdf(place: str, text: str, words: list[str]) -> None:
    parts = dict.fromkeys(("inertial", "origin", "link", "limit", "joint", "robot"), "") | {place: text}
    said = loaded(URDF.format(**parts))[1]
    assert all(word in said for word in words), said


@pytest.mark.parametrize(
    "place, text",
    [
        (
            "robot",
            '<gazebo reference="a"><mu1>0.3</mu1><foo>3</foo></gazebo><ros2_control><x>1</x></ros2_control>',
        ),
        ("robot", '<transmission name="t"><type>x</type><joint name="j"/></transmission><foo value="3"/>'),
        ("joint", '<safety_controller k_velocity="3"/><hardwareInterface>1</hardwareInterface>'),
        ("link", '<sensor update_rate="3"/><visual name="v"><geometry><sphere radius="1"/></geometry></visual>'),
    ],
)
def test_extensions_of_urdf_are_noted_only(place: str, text: str) -> None:
    parts = dict.fromkeys(("inertial", "origin", "link", "limit", "joint", "robot"), "") | {place: text}
    drevo.load(URDF.format(**parts), strict=True)


@pytest.mark.parametrize(
    "place, text, words",
    [
        ("limit", "<stiffness>3</stiffness>", ["stiffness of joint 'j'"]),
        ("limit", "<lowr>-2</lowr>", ["<lowr>", "did you mean 'lower'?"]),
        ("axis", "<initial_position>.3</initial_position>", ["initial_position of joint 'j'"]),
        ("axis", "<dynamics><dampng>3</dampng></dynamics>", ["did you mean 'damping'?"]),
        ("joint", "<axes2><xyz>1 0 0</xyz></axes2>", ["did you mean 'axis2'?"]),
        ("inertial", "<poses>0 0 1 0 0 0</poses>", ["did you mean 'pose'?"]),
        ("link", "<velocity_decay><linear>1</linear></velocity_decay>", ["velocity_decay of link 'a'"]),
        ("link", '<pose relativ_to="1">0 0 0 0 0 0</pose>', ["did you mean 'relative_to'?"]),
    ],
)
def test_numbers_under_unknown_names_are_doubted_in_sdf(place: str, text: str, words: list[str]) -> None:
    parts = dict.fromkeys(("inertial", "link", "limit", "axis", "joint"), "") | {place: text}
    said = loaded(SDF.format(**parts))[1]
    assert all(word in said for word in words), said


# --- what changes MuJoCo's motion is read or named --------------------------------------------------------------

SHARES = [0.01, pytest.param(1.0, marks=pytest.mark.nightly)]


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("share", SHARES)
def test_nothing_that_changes_the_motion_of_mujoco_passes_in_silence(share: float) -> None:
    """One attribute at a time, with every word that MuJoCo takes for it: either the description changes too, or
    something more is said."""
    nodes, scene = schema_files.tables(), schema_files.read(SCENE)
    assert scene is not None
    made = list(schema_files.files(SCENE, share))
    assert not [said for x in made if (said := silent(x, nodes[x.path].verdicts[x.name], scene))]
    assert sum(x.moved for x in made) > 5 and len(made) > 40


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize("share", SHARES)
def test_what_is_read_moves_as_in_mujoco(share: float) -> None:
    """Files of laws that both libraries have: three steps, to 1e-9, where no more is said than of the scene."""
    scene = schema_files.read(LAWS)
    assert scene is not None
    far = [x for made in schema_files.files(LAWS, share) if (x := differing(made, scene)) is not None]
    assert not list(filter(None, far)) and len(far) > 10


@pytest.mark.needs("mujoco")
@pytest.mark.parametrize(
    "path, name, value",
    [
        ("default/joint", "frictionloss", "1"),  # of a free joint along the axes of the world
        ("body/joint", "springdamper", ".2 .5"),  # of a free joint: from where it stands
        ("body/joint", "actuatorfrcrange", "1 0"),  # no range
        ("body/joint", "actuatorfrcrange", "-.2 .2"),
    ],
)
def test_laws_of_joints_are_those_of_mujoco(path: str, name: str, value: str) -> None:
    scene, still = schema_files.read(LAWS), schema_files.motion(LAWS)
    assert scene is not None and still is not None
    for text in schema_files.with_attribute(LAWS, path, name, value):
        made = schema_files.Made(path, "", name, value, text, schema_files.motion(text), True)
        assert not differing(made, scene)
