"""URDF: the corpus of bad and odd files, each with its sentence; published robots; big and hostile files."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import files
from pathlib import Path

import pytest
import work
from reference import as_text
from robot_texts import parse_urdf

from drevo.errors import DrevoWarning, ModelError
from drevo.io import xml
from drevo.model.loaders import load_model

DATA = Path(__file__).parent / "data" / "urdf-cases"
CASES = json.loads((DATA / "cases.json").read_text())["cases"]
GENERATED = "(generated) chain of 3000 links"
INERTIAL = '<inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>'

SENTENCES = {
    "empty.urdf": "the file is empty",
    "truncated.urdf": "line 1: the XML is malformed or cut off (unclosed token)",
    "no_links.urdf": "the robot has no link; it needs at least one",
    "dup_link.urdf": "link 'l1' is defined 2 times (lines 1, 1); names must be unique",
    "dup_joint.urdf": "joint 'j1' is defined 2 times (lines 1, 1); names must be unique",
    "missing_parent.urdf": "joint 'j1' (line 1) names the parent link 'ghost', which does not exist",
    "self_loop.urdf": "joint 'j2' (line 1) connects link 'l1' to itself",
    "cycle.urdf": "the links form a cycle, 'l1' -> 'l2' -> 'l1' (closed by joint 'j0' (line 1))",
    "two_roots.urdf": "the links 'b', 'x' have no parent, and a robot has one root",
    "two_parents.urdf": "link 'l2' (line 1) has 2 parents, 'b' (by joint 'j2' (line 1)) and 'l1'",
    "zero_axis.urdf": "joint 'j1' (line 1) has the zero axis (0 0 0)",
    "nan_mass.urdf": "link 'l1' (line 1): value of <mass> on line 1: 'nan' is not finite",
    "inf_mass.urdf": "link 'l1' (line 1): value of <mass> on line 1: 'inf' is not finite",
    "neg_mass.urdf": "link 'l1' (line 1) has the negative mass -1 kg",
    "zero_mass_leaf.urdf": "joint 'j1' (line 1) of type revolute moves only links without mass ('l1')",
    "no_inertial_leaf.urdf": "joint 'j1' (line 1) of type revolute moves only links without mass ('l1')",
    "bad_triangle.urdf": "link 'l1' (line 1): the principal moments of inertia 0.01, 0.01, 1 kg m^2 break",
    "neg_inertia.urdf": "link 'l1' (line 1) has a negative principal moment of inertia (-0.01, 0.01, 0.01 kg m^2)",
    "text_mass.urdf": "link 'l1' (line 1): value of <mass> on line 1: '1,5' is not a number (the decimal",
    "short_xyz.urdf": "joint 'j1' (line 1): xyz of <origin> on line 1: '0 0' has 2 numbers, 3 needed",
    "nan_xyz.urdf": "joint 'j1' (line 1): xyz of <origin> on line 1: 'nan' is not finite",
    "huge_xyz.urdf": "joint 'j1' (line 1): xyz of <origin> on line 1: 1e+308 is beyond 1e+06",
    "unknown_joint.urdf": "joint 'j1' (line 1) has the unknown type 'screwy' (did you mean 'screw'?)",
    "swapped_limit.urdf": "joint 'j1' (line 1): the limits are crossed (lower 1 > upper -1)",
    "mimic_cycle.urdf": "the joints 'j1', 'j2' mimic one another in a circle",
    "mimic_ghost.urdf": "joint 'j1' (line 1) mimics joint 'nope', which does not exist",
    "deep_xml_50k.urdf": "line 1: elements are nested deeper than 10000",
    "billion_laughs.urdf": "the file has a DTD (DOCTYPE, entity declarations)",
    "billion_laughs_text.urdf": "the file has a DTD (DOCTYPE, entity declarations)",
    "quadratic.urdf": "the file has a DTD (DOCTYPE, entity declarations)",
    "xxe_file.urdf": "the file has a DTD (DOCTYPE, entity declarations)",
    "indef_inertia.urdf": "link 'a' (line 1) has a negative principal moment of inertia (-0.04, 0.01, 0.06",
    "no_inertial.urdf": "joint 'j' (line 1) of type revolute moves only links without mass ('a')",
    "typo_child.urdf": "joint 'j' (line 1) names the child link 'aa', which does not exist (did you mean 'a'?)",
    "loop.urdf": "link 'b' (line 1) has 2 parents, 'a' (by joint 'j2' (line 1)) and 'base' (by",
    "vec2.urdf": "link 'a' (line 1): xyz of <origin> on line 1: '0 .1' has 2 numbers, 3 needed",
    "malformed_xml.urdf": "line 1: the XML is malformed or cut off",
    "unknown_type.urdf": "joint 'j' (line 1) is a screw without a lead",
}
AXIS = '<axis xyz="0 0 1"/>'


def robot(body: str) -> bytes:
    """A robot with a base "b" and whatever else the test needs."""
    return f'<robot name="r"><link name="b"/>{body}</robot>'.encode()


def link(name: str) -> str:
    return f'<link name="{name}">{INERTIAL}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", more: str = AXIS) -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{more}</joint>'


def chain(n: int) -> bytes:
    origin = '<origin xyz="0 0 .1"/><axis xyz="0 1 0"/>'
    links = "".join(link(f"l{i}") for i in range(n))
    joints = "".join(joint(f"j{i}", f"l{i - 1}" if i else "b", f"l{i}", more=origin) for i in range(n))
    return robot(links + joints)


def outcome(load: object, *args: object, **options: object) -> tuple[str, str]:
    """(load | warn | refuse, the message)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            load(*args, **options)  # type: ignore[operator]
        except ModelError as error:
            return "refuse", str(error)
    assert len(caught) <= 1 and all(w.category is DrevoWarning for w in caught)
    return ("warn", str(caught[0].message)) if caught else ("load", "")


@pytest.mark.parametrize("name", [name for name in CASES if name != GENERATED])
def test_corpus(name: str) -> None:
    case = CASES[name]
    got, message = outcome(load_model, DATA / name)
    assert got == case["expect"], message
    assert not case["names_one_of"] or any(word in message for word in case["names_one_of"])
    assert SENTENCES.get(name, "") in message
    assert got == "load" or name in message
    strict, message = outcome(load_model, DATA / name, strict=True)
    assert strict == ("refuse" if got == "warn" else got)
    assert got != "warn" or SENTENCES[name] in message


def test_every_refusal_has_its_sentence() -> None:
    assert {name for name, case in CASES.items() if case["expect"] != "load"} == set(SENTENCES)


def test_a_long_chain_loads() -> None:
    assert parse_urdf(chain(3000)).nv == 3000


def test_work_on_long_chains_is_linear() -> None:
    def reading(n: int) -> Callable[[], object]:
        text = chain(n)
        return lambda: parse_urdf(text)

    work.linear(reading, 200)


# --- published robots ------------------------------------------------------

REFUSED = {  # what is wrong with each was looked at by hand
    "alex_psyonic_hands.urdf": "mimics joint 'index_q1', which does not exist (did you mean 'Left_index_q1'?)",
    "romeo.urdf": "joint 'LHand' (line 1443) of type revolute moves only links without mass ('LFinger11Link'",
    "romeo_laas_small.urdf": "link 'body' (line 327) has a negative principal moment of inertia (-0.0213468,",
    "tiago.urdf": "link 'base_antenna_left_link' (line 175) has a negative principal moment of inertia (-3.5",
    "tiago_dual.urdf": "link 'base_antenna_left_link' (line 175) has a negative principal moment of inertia",
    "tiago_no_hand.urdf": "link 'base_antenna_left_link' (line 176) has a negative principal moment of inertia",
    "ur3.urdf": "the robot has no link",
}
DOUBTED = {  # how many doubtful elements
    "allegro_left_hand.urdf": 4,
    "allegro_right_hand.urdf": 4,
    "anymal-kinova.urdf": 1,
    "anymal_b_simple_description/robots/anymal.urdf": 1,
    "anymal_c_simple_description/urdf/anymal.urdf": 5,
    "b1-z1.urdf": 1,
    "b1.urdf": 1,
    "bolt.urdf": 2,
    "go1.urdf": 1,
    "hyq_no_sensors.urdf": 5,
    "pr2.urdf": 2,
    "romeo_small.urdf": 2,
}


def published() -> list[Path]:
    """The URDF files that the package example-robot-data brought."""
    found = [Path(str(file.locate())) for file in files("example-robot-data") or () if file.suffix == ".urdf"]
    return sorted(path.resolve() for path in found)


def expected(path: Path, table: dict[str, object]) -> object:
    return next((value for name, value in table.items() if str(path).endswith("/" + name)), None)


def test_all_published_robots_are_found() -> None:
    assert len(published()) >= 60


@pytest.mark.parametrize("base", ["fixed", "floating", "trunk"])
@pytest.mark.parametrize("path", published(), ids=lambda path: "/".join(path.parts[-3:]))
def test_published(path: Path, base: str) -> None:
    got, message = outcome(load_model, path, base=base)
    sentence, doubts = expected(path, REFUSED), expected(path, DOUBTED)
    if sentence:
        assert got == "refuse" and str(sentence) in message
    else:
        assert got == ("warn" if doubts else "load"), message
        assert (f": {doubts} doubtful element" in message) == bool(doubts)
        assert ("changes the dynamics and is not read" in message) == (path.stem == "pr2")  # turnGravityOff


@pytest.mark.filterwarnings("ignore::drevo.errors.DrevoWarning")
@pytest.mark.parametrize("path", published()[::4], ids=lambda path: path.stem)
def test_written_and_read_again(path: Path) -> None:
    if expected(path, REFUSED):
        return
    model = load_model(path)
    again = parse_urdf(as_text(model).encode())
    assert [j.name for j in again.joints] == [j.name for j in model.joints]
    for a, b in zip(again.joints, model.joints, strict=True):
        assert replace(a, line=0, axis=b.axis, rotation=b.rotation, kind=b.kind, limit=b.limit) == replace(
            b, line=0
        )
        assert a.axis == pytest.approx(b.axis, abs=1e-15)
        for row, other in zip(a.rotation, b.rotation, strict=True):
            assert row == pytest.approx(other, abs=1e-15)
    assert [(k.name, k.inertial) for k in again.links] == [(k.name, k.inertial) for k in model.links]


# --- what the loader reads -------------------------------------------------


def test_joints_are_depth_first_whatever_the_order_of_the_file() -> None:
    links = [link(name) for name in "acde"]
    joints = [joint("c", "a", "c"), joint("d", "b", "d"), joint("a", "b", "a"), joint("e", "a", "e")]
    model = parse_urdf(robot("".join(joints[:2] + links + joints[2:])))
    assert [j.name for j in model.joints] == ["d", "a", "c", "e"]
    assert [k.name for k in model.links] == ["b", "d", "a", "c", "e"]


def test_defaults_are_those_of_urdf() -> None:
    (j,) = parse_urdf(robot(link("a") + joint("j", "b", "a", more=""))).joints
    assert (j.axis, j.origin, j.limit) == ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), None)


def test_extensions() -> None:
    body = "".join(link(name) for name in "abcdef")
    body += joint("s", "b", "a", "screw", '<axis xyz="0 2 0"/><lead value="0.02"/>').replace('"b"', '"b"')
    body += joint("u", "a", "c", "universal", '<axis xyz="1 0 0"/><axis2 xyz="0 3 0"/>')
    body += joint("p", "c", "d", "ball") + joint("c", "d", "e", "cylindrical") + joint("f", "e", "f", "floating")
    model = parse_urdf(robot(body).replace(b'<link name="b"/>', b"", 1))
    assert [j.kind for j in model.joints] == ["helical", "universal", "spherical", "cylindrical", "free"]
    assert model.joints[0].lead == 0.02 and model.joints[0].axis == (0.0, 1.0, 0.0)
    assert model.joints[1].axis2 == (0.0, 1.0, 0.0)


def test_shapes_are_kept_and_meshes_never_opened() -> None:
    mesh = '<visual><geometry><mesh filename="file:///no/such.stl" scale="2 2 2"/></geometry></visual>'
    solid = '<collision><origin xyz="1 2 3"/><geometry><cylinder radius=".1" length="2"/></geometry></collision>'
    body = f'<link name="a">{INERTIAL}{mesh}{solid}</link>' + joint("j", "b", "a")
    shapes = parse_urdf(robot(body)).links[1].shapes
    assert (shapes[0].kind, shapes[0].uri, shapes[0].size) == ("mesh", "file:///no/such.stl", (2.0, 2.0, 2.0))
    assert (shapes[1].size, shapes[1].origin, shapes[1].role) == ((0.1, 2.0), (1.0, 2.0, 3.0), "collision")


def test_unknown_tags_are_noted_and_silent() -> None:
    body = link("a") + joint("j", "b", "a", more='<dynamics damping="0"/><odd/>') + "<gazebo/><gazebo/>"
    assert outcome(parse_urdf, robot(body)) == ("load", "")
    assert parse_urdf(robot(body)).notes == ("tags not used: gazebo (2), odd (1)",)


@pytest.mark.parametrize(
    "text, says",
    [
        (link("a").replace("</link>", INERTIAL + "</link>") + joint("j", "b", "a"), "<inertial> is given 2 times"),
        (
            link("a") + joint("j", "b", "a", more='<origin xyz="1 0 0"/><origin/>'),
            "<origin> is given 2 times (lines 1, 1)",
        ),
        (link("a").replace(' ixy="0"', "") + joint("j", "b", "a"), "lacks ixy, taken as zero"),
        (
            link("a")
            + joint("j", "b", "a")
            + '<link name="w"><inertial><mass value="0"/><inertia ixx="1" iyy="1" '
            'izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>' + joint("x", "a", "w", "fixed"),
            "link 'w' (line 1) has an inertia tensor (1, 1, 1 kg m^2) but no mass",
        ),
    ],
)
def test_doubtful(text: str, says: str) -> None:
    got, message = outcome(parse_urdf, robot(text))
    assert got == "warn" and says in message
    assert outcome(parse_urdf, robot(text), strict=True)[0] == "refuse"


@pytest.mark.parametrize(
    "text, says",
    [
        ('<link name="a"><inertial/></link>' + joint("j", "b", "a"), "<mass> on line 1 has no value"),
        (link("a") + joint("j", "b", "a", more='<parent link="a"/>'), "names 2 parent links, 'b' and 'a'"),
        (link("a") + '<joint name="j" type="revolute"><parent link="b"/></joint>', "names no child link"),
        (link("a").replace(' name="a"', ""), "<link> on line 1 has no name"),
        ('<xacro:macro name="m"/>', "is xacro"),
        (link("a") + joint("j", "b", "a", "floating", '<mimic joint="k"/>'), "of type free cannot mimic 'k'"),
        (link("a") + joint("j", "b", "a", more='<mimic joint="j"/>'), "joint 'j' mimics itself"),
        (
            link("a")
            + link("c")
            + joint("f", "b", "a", "fixed")
            + joint("j", "a", "c", more='<mimic joint="f"/>'),
            "does not have just one coordinate to follow",
        ),
        (link("a") + joint("j", "b", "a", "universal", '<axis2 xyz="2 0 0"/>'), "universal and has parallel axes"),
        (link("a") + joint("j", "b", "a", "universal"), "universal and has no axis2"),
        (link("a") + joint("j", "b", "a", more="<mimic/>"), "<mimic> on line 1 names no joint"),
        (link("a") + joint("j", "b", "a", more='<origin quat_xyzw="1 0 0 1"/>'), "is not of length one"),
    ],
)
def test_refused(text: str, says: str) -> None:
    got, message = outcome(parse_urdf, robot(text))
    assert got == "refuse" and says in message


def test_all_problems_are_in_one_error() -> None:
    text = link("a") + link("a") + joint("j", "b", "a", "odd") + joint("k", "x", "y")
    _, message = outcome(parse_urdf, robot(text), source="r.urdf")
    assert message.startswith("r.urdf: 4 problems:")
    assert all(word in message for word in ("'a' is defined 2 times", "'odd'", "'x'", "'y'"))


def test_chains_of_mimic_lead_to_the_driver() -> None:
    body = link("a") + link("c") + link("d") + joint("j", "b", "a")
    body += joint("m", "a", "c", more='<mimic joint="n" multiplier="3" offset="1"/>')
    body += joint("n", "c", "d", more='<mimic joint="j" multiplier="2" offset="0.5"/>')
    model = parse_urdf(robot(body))
    assert model.nv == 1
    mimic = model.joints[1].mimic
    assert mimic and (mimic.joint, mimic.multiplier, mimic.offset) == ("j", 6.0, 2.5)


# --- hostile and broken XML ------------------------------------------------


@pytest.mark.parametrize(
    "data, says",
    [
        (b"<a>" * 10_001 + b"</a>" * 10_001, "nested deeper than 10000"),
        (b"<a>" + b"<b/>" * 200_001 + b"</a>", "more than 200000 elements"),
        (b"<a " + b" ".join(b'x%d=""' % i for i in range(257)) + b"/>", "<a> has 257 attributes"),
        (b'<a x="' + b"y" * 4097 + b'"/>', "x of <a> has 4097 characters"),
        (b"<" + b"a" * 257 + b"/>", "longer than 256"),
        (b"<a>" + b" " * xml.MAX_XML_BYTES + b"</a>", "more than 8388608 bytes"),
        (b'<a x="1"\n x="2"/>', "line 2: the XML is malformed or cut off (duplicate attribute)"),
        (b"<a>\n<b>\n</a>", "line 3: the XML is malformed"),
        (b"<a>\n\xff</a>", "line 2: the file is not in UTF-8"),
        ("<a/>".encode("utf-16"), "the file is not in UTF-8"),
        ('<?xml version="1.0" encoding="latin-1"?><a>\u00e9</a>'.encode(), "declares latin-1"),
        (b"<!DOCTYPE a><a/>", "DOCTYPE"),
        (b"\x00", "malformed"),
    ],
)
def test_xml_limits(data: bytes, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        xml.parse(data)
    assert says in str(caught.value)


def test_a_long_attribute_or_text_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole files are fed: in pieces, a long token would be scanned anew with every piece."""
    fed: list[int] = []

    class Parser:
        def __init__(self, encoding: str) -> None:
            self.__dict__["real"] = made(encoding)

        def __setattr__(self, name: str, x: object) -> None:
            setattr(self.real, name, x)

        def __getattr__(self, name: str) -> object:
            return getattr(self.real, name)

        def Parse(self, data: bytes, last: bool) -> object:
            fed.append(len(data))
            return self.real.Parse(data, last)

    made = xml.expat.ParserCreate
    monkeypatch.setattr(xml.expat, "ParserCreate", Parser)
    text, attribute = b"<a>" + b"x\n" * 4_000_000 + b"</a>", b'<a x="' + b"y" * 8_000_000 + b'"/>'
    assert work.lines(lambda: xml.parse(text)) < 100_000
    with pytest.raises(ModelError):
        xml.parse(attribute)
    assert fed == [len(text), len(attribute)]


def test_elements_know_their_lines_and_text() -> None:
    root = xml.parse(b'\xef\xbb\xbf<?xml version="1.0" encoding="UTF-8"?>\n<a>\n <b c="1"> t </b></a>')
    assert (root.line, root.children[0].line, root.children[0].text) == (2, 3, "t")
    assert [element.tag for element in root.walk()] == ["a", "b"]


@pytest.mark.parametrize("text", ["1", "-1.5", "+.5", "1.", "1e3", "1E-3", " 2 "])
def test_numbers(text: str) -> None:
    assert xml.parse_number(text) == float(text)


@pytest.mark.parametrize(
    "text", ["", "1,5", "0x10", "1_0", "nan", "inf", "1e999", "\u0661", "1 2", "1d0", "--1", "."]
)
def test_not_numbers(text: str) -> None:
    with pytest.raises(ValueError):
        xml.parse_number(text)


@pytest.mark.parametrize(
    "data, says",
    [
        (lambda n: robot(link("a") * n), "link 'a' is defined 8000 times (lines 1, 1, 1, 1, 1, 1 and 7994 more)"),
        (lambda n: robot("".join(joint(f"j{i}", f"x{i}", f"y{i}") for i in range(n))), "and 15990 more"),
        (
            lambda n: robot(link("a") + "".join(joint(f"j{i}", "b", "a") for i in range(n))),
            "link 'a' (line 1) has 8000 parents",
        ),
        (
            lambda n: robot(
                link("a")
                + joint("j", "b", "a")
                + "".join(f'<link name="l{i}"/>' + joint(f"j{i}", "b", f"l{i}") for i in range(n))
            ),
            "8000 problems",
        ),
    ],
    ids=["links", "ends", "parents", "limbs"],
)
def test_many_problems_take_linear_work_and_a_short_message(data: Callable[[int], bytes], says: str) -> None:
    got, message = outcome(parse_urdf, data(8000))
    assert got == "refuse" and says in message and len(message) < 50_000
    work.linear(lambda n: partial(outcome, parse_urdf, data(n)), 200)
