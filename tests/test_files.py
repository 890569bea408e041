"""Files and names as people and attackers give them: one sentence, bounded work, and back again as they were."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from robot_texts import from_json, from_toml
from test_builder import everything

import drevo
from drevo.io import installed, xml
from drevo.model.loaders import load_model, native
from drevo.model.rotations import apply

INERTIAL = '<inertial><mass value="%s"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
ARM = (
    '<robot name="r"><link name="b"/><link name="a">%s</link><joint name="j" type="revolute">'
    '<parent link="b"/><child link="a"/><axis xyz="0 0 1"/>%s</joint></robot>'
)
PLAIN = ARM % (INERTIAL % 1, "")


def refusal(source: object, **given: object) -> drevo.ModelError:
    with pytest.raises(drevo.ModelError) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        drevo.load(source, **given)  # type: ignore[arg-type]
    return caught.value


def doubted(path: Path) -> str:
    with pytest.warns(drevo.DrevoWarning) as caught:
        drevo.load(path)
    return str(caught[0].message)


# --- what is given for a file -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", [None, 3, b"", b"x.urdf", ["x.urdf"], "", " ", "a\0b", "a" * 5000 + ".urdf", True]
)
def test_what_is_no_path_is_refused_in_a_sentence(source: object) -> None:
    assert str(refusal(source)).startswith("a robot is named by the path of its file or by its name, not by ")
    assert len(str(refusal(source))) < 200


def test_a_folder_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(PLAIN)
    assert str(refusal(tmp_path)) == f"{tmp_path}: a directory with 'arm.urdf'; name a robot file"


def test_a_file_that_does_not_exist_names_the_closest(tmp_path: Path) -> None:
    (tmp_path / "panda.urdf").write_text(PLAIN)
    assert f"did you mean {str(tmp_path / 'panda.urdf')!r}" in str(refusal(tmp_path / "pnda.urdf"))
    assert f"there is no folder {str(tmp_path / 'x')!r}" in str(refusal(tmp_path / "x" / "arm.urdf"))
    assert "drevo.load('puma560') knows one of this name" in str(refusal(Path("puma560.urdf")))
    assert "there is no such file" in str(refusal(Path("robot")))


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a pipe"])
def test_a_path_that_would_block_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r.urdf"
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "p.urdf")
        path = tmp_path / "p.urdf"
        if kind != "pipe":
            (tmp_path / "l.urdf").symlink_to(path)
            path = tmp_path / "l.urdf"
    assert "not a file but a pipe or a device" in str(refusal(path))


TOUCHING = {  # each file names another, which is opened
    "r.urdf": """<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
      ixz="0" iyz="0"/></inertial><visual><geometry><mesh filename="{}"/></geometry></visual>
      <collision><geometry><mesh filename="{}"/></geometry></collision></link></robot>""",
    "r.xml": """<mujoco><asset><mesh name="m" file="{}"/></asset><worldbody><body><freejoint/>
      <geom type="mesh" mesh="m"/></body></worldbody></mujoco>""",
    "i.xml": """<mujoco><include file="{}"/></mujoco>""",
    "r.sdf": """<sdf version="1.9"><model name="m"><link name="a"><inertial auto="true"/><collision name="c">
      <geometry><mesh><uri>{}</uri></mesh></geometry></collision></link></model></sdf>""",
}


@pytest.mark.filterwarnings("ignore::drevo.DrevoWarning")
@pytest.mark.parametrize("name", TOUCHING)
@pytest.mark.parametrize("ending", ["stl", "obj", "msh", "dae"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_a_description_names_is_a_plain_file(tmp_path: Path, name: str, ending: str, kind: str) -> None:
    """Where it waits, an alarm ends the process of the test."""
    place = tmp_path / f"x.{ending}"
    {"pipe": os.mkfifo, "folder": os.mkdir, "device": lambda p: p.symlink_to("/dev/zero")}[kind](place)
    (tmp_path / name).write_text(TOUCHING[name].replace("{}", place.name))
    signal.alarm(60)
    for use in (drevo.load, drevo.check, lambda p: drevo.load(p).view(tmp_path / "page.html")):
        try:
            use(tmp_path / name)
        except drevo.DrevoError as error:
            assert "\n" not in str(error)
    signal.alarm(0)


@pytest.mark.parametrize("suffix", [".urdf", ".json", ".toml"])
def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    with path.open("wb") as file:
        file.truncate(2**31)  # sparse: no block is written
    assert "2147483648 bytes" in str(refusal(path))


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["panda", "Panda", "go2", "talos", "talos_reduced", "ur5", "anymal", "double-pendulum"]
)
@pytest.mark.filterwarnings("ignore::drevo.errors.DrevoWarning")
def test_robots_of_installed_packages_by_name(name: str) -> None:
    assert drevo.load(name).nv > 0
    assert drevo.load(name, gravity=(0, 0, -1)).model.gravity == (0.0, 0.0, -1.0)


def test_the_embedded_robot_wins_and_a_file_beside_wins_over_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "find", lambda name: pytest.fail("asked the packages"))
    assert drevo.load("puma560").nv == 6
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panda").write_text("")
    assert "a robot file ends in" in str(refusal("panda"))


def test_a_name_that_nobody_knows_says_where_robots_may_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "did you mean 'panda'?" in str(refusal("pandda"))
    assert "did you mean 'puma560'?" in str(refusal("pumma560"))
    assert "name one of" in str(refusal("tiago-x").args[0].replace("neither", "name one of"))

    def nothing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installed, "distribution", nothing)
    for source in ("panda", "go2.urdf"):
        assert "pip install example-robot-data" in str(refusal(source))


DESCRIPTION = """
from os import getenv as _getenv
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache
raise SystemExit("executed")
REPOSITORY_PATH: str = _clone_to_cache("some-repository", commit=_getenv("X", None))
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "robots", "bot")
URDF_PATH: str = _path.join(
    PACKAGE_PATH, "urdf", "bot.urdf")
"""


def test_descriptions_are_read_as_text_and_found_where_they_were_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "robot_descriptions"
    info = tmp_path / "site" / "robot_descriptions-9.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    (package / "bot_description.py").write_text(DESCRIPTION)
    table = 'REPOSITORIES = {"some-repository": Repository(url="u", commit="c", cache_path="folder")}'
    (package / "_repositories.py").write_text(table)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: robot_descriptions\nVersion: 9\n")
    (info / "RECORD").write_text(
        "robot_descriptions/bot_description.py,,\nrobot_descriptions/_repositories.py,,\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    for name in ("bot", "bot_description", "Bot"):
        assert "python -m robot_descriptions pull bot_description" in str(refusal(name))
    folder = tmp_path / "cache" / "folder" / "robots" / "bot" / "urdf"
    folder.mkdir(parents=True)
    (folder / "bot.urdf").write_text(PLAIN)
    assert drevo.load("bot").nv == 1 and "robot_descriptions" not in sys.modules


# --- small print --------------------------------------------------------------------------------------------


def test_white_space_before_the_declaration_is_warned_about(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    for before in (b"\n", b" \r\n\n", b"\xef\xbb\xbf\n"):
        path.write_bytes(before + b'<?xml version="1.0" encoding="utf-8"?>\n' + PLAIN.encode())
        assert "white space before <?xml" in doubted(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert load_model(path).links[1].line == before.count(b"\n") + 2
    assert "white space" in str(refusal(path, strict=True))


@pytest.mark.parametrize("value", ["nan", "NaN", "-nan", " +NAN "])
@pytest.mark.parametrize("attribute", ["lower", "upper", "velocity", "effort"])
def test_a_limit_that_is_nan_is_refused(tmp_path: Path, attribute: str, value: str) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM % (INERTIAL % 1, f'<limit {attribute}="{value}"/>'))
    assert f"{attribute} of <limit> on line 1 is nan" in str(refusal(path))


@pytest.mark.parametrize("mass", ["-0.0", "-0", "0", "-1e-400"])
def test_a_mass_of_zero_of_either_sign_is_doubted_beside_an_inertia(tmp_path: Path, mass: str) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(ARM % (INERTIAL % mass, ""))
    assert "has an inertia tensor (1, 1, 1 kg m^2) but no mass" in doubted(path)
    with pytest.warns(drevo.DrevoWarning, match="but no mass"):
        drevo.Builder().body("b", mass=float(mass), inertia=np.eye(3)).robot()


@pytest.mark.parametrize("static", ["1", "true", " True "])
def test_a_static_model_cannot_move(tmp_path: Path, static: str) -> None:
    path, link = tmp_path / "r.sdf", f"<link name='a'>{SDF_INERTIAL}</link>"
    still = f'<model name="floor"><static>{static}</static>{link}</model>'
    path.write_text(f'<sdf version="1.9">{still}</sdf>')
    assert "0 models that can move ('floor' is static)" in str(refusal(path))
    path.write_text(f'<sdf version="1.9"><world name="w">{still}<model name="m">{link}</model></world></sdf>')
    assert drevo.load(path).name == "m"


SDF_INERTIAL = "<inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial>"


def test_no_sentence_names_line_0(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    world = '<worldbody><body name="world"><geom size="1"/></body></worldbody>'
    for text in ('<compiler inertiagrouprange="x"/>' + world, world, '<option gravity="a"/>' + world):
        path.write_text(f"<mujoco>\n\n{text}</mujoco>")
        assert "line 0" not in str(refusal(path)) and "lines 0" not in str(refusal(path))
        assert "line 3" in str(refusal(path))


def test_many_problems_are_counted_and_all_are_in_the_attribute(tmp_path: Path) -> None:
    links = "".join(f'<link name="l{i}"><inertial/></link>' for i in range(50))
    (tmp_path / "r.urdf").write_text(f'<robot name="r">{links}</robot>')
    error = refusal(tmp_path / "r.urdf")
    assert "201 problems" in str(error) and "and 191 more" in str(error)
    assert len(error.problems) == 201 and "'l49'" in error.problems[-2] and len(str(error)) < 1500


def test_toml_is_read_by_tomli_where_python_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    monkeypatch.setattr(native, "sys", SimpleNamespace(version_info=(3, 10, 13)))
    monkeypatch.setitem(sys.modules, "tomli", reader)
    assert from_toml(native.to_toml(everything().model())) == everything().model()


def test_half_a_surrogate_pair_is_no_name() -> None:
    for text in ('{"drevo": 1, "name": "\\ud800"}', '{"drevo": 1, "name": "r", "links": [{"name": "\\udc00"}]}'):
        with pytest.raises(drevo.ModelError, match="half of a surrogate pair") as caught:
            from_json(text)
        str(caught.value).encode()
    with pytest.raises(drevo.ModelError, match="half of a surrogate pair"):
        drevo.Builder("\ud800")


# --- and back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@pytest.mark.parametrize("name", ["puma560", "biped", "screw-arm", "stewart", "two-arm-spatial", "everything"])
def test_own_formats_keep_every_number(tmp_path: Path, name: str, suffix: str) -> None:
    robot = everything().robot() if name == "everything" else drevo.load(name)
    path = tmp_path / f"r{suffix}"
    assert robot.save(path) == path.read_text(encoding="utf-8")
    assert replace(drevo.load(path).model, source="") == replace(robot.model, source="")


# --- bombs: counted where work can be counted ---------------------------------------------------------------


def mjcf(body: str, head: str = "") -> bytes:
    return f"<mujoco>{head}<worldbody>{body}</worldbody></mujoco>".encode()


def load_bytes(data: bytes, suffix: str, tmp_path: Path) -> str:
    """How it ended, without the list of problems."""
    path = tmp_path / f"r{suffix}"
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", drevo.DrevoWarning)
        try:
            drevo.load(path)
        except drevo.ModelError as error:
            return str(error)
    return ""


def calls(work: Callable[[], object]) -> int:
    """How many Python functions are entered."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


BODY = '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>'
CLASS = '<default class="c"><joint damping="1"/></default>'
GEOM = '<geom size="1" pos="1 2 3" euler="1 2 3"/>'
LINK = b'<link name="%d"/>'
GROWING: dict[str, Callable[[int], tuple[bytes, str]]] = {
    "classes": lambda n: (mjcf(BODY, "<default>" + CLASS * n + "</default>"), ".xml"),
    "geoms": lambda n: (mjcf("<body><joint/>" + GEOM * n + "</body>"), ".xml"),
    "unnamed bodies": lambda n: (mjcf(BODY * n), ".xml"),
    "bodies without mass": lambda n: (mjcf("<body><joint/></body>" * n), ".xml"),
    "joints of one body": lambda n: (mjcf("<body>" + "<joint/>" * n + '<geom size="1"/></body>'), ".xml"),
    "nested bodies": lambda n: (mjcf(BODY.removesuffix("</body>") * n + "</body>" * n), ".xml"),
    "nested frames": lambda n: (mjcf('<frame pos="1 2 3">' * n + BODY + "</frame>" * n), ".xml"),
    "actuators": lambda n: (mjcf(BODY, "<actuator>" + "<position/>" * n + "</actuator>"), ".xml"),
    "links": lambda n: (b'<robot name="r">' + b"".join(LINK % i for i in range(n)) + b"</robot>", ".urdf"),
    "inline tables": lambda n: (b"drevo = 1\nnotes = [" + b"{a = 1}," * n + b"]", ".toml"),
    "rows": lambda n: (json.dumps({"drevo": 1, "name": "r", "links": [{"name": "a"}] * n}).encode(), ".json"),
}


@pytest.mark.parametrize("name", GROWING)
def test_work_grows_with_the_size_of_the_file(tmp_path: Path, name: str) -> None:
    few, many = (calls(lambda n=n: load_bytes(*GROWING[name](n), tmp_path)) for n in (300, 1200))
    assert many < 5.0 * few + 2000


def test_classes_share_what_they_do_not_change() -> None:
    """3,000 tags inherited by 9,000 classes: what is not read is not kept, and nothing is copied."""
    from drevo.model.loaders.mjcf.defaults import Classes, read_defaults

    tags = "".join(f'<t{i} a="1"/>' for i in range(3000))
    top = f'<default><joint damping="1"/>{tags}' + "".join(f'<default class="c{i}"/>' for i in range(9000))
    root = xml.parse(mjcf("", top + "</default>"))
    classes: Classes = {"main": {}}
    read_defaults(classes, root.all("default")[0])
    assert len(classes) == 9001 and all(found.keys() == {"joint"} for found in classes.values())
    assert all(found["joint"] is classes["main"]["joint"] for found in classes.values())


CLASSES = "<default>%s</default>"


@pytest.mark.parametrize(
    "data, suffix, says",
    [
        (mjcf("<body/>" * 20_001), ".xml", "more than 20000 elements <body>"),
        (mjcf("<body>" + "<geom/>" * 30_001 + "</body>"), ".xml", "more than 30000 elements <geom>"),
        (mjcf("", CLASSES % "".join(f'<default class="{i}"/>' for i in range(10_001))), ".xml", "10000 default"),
        (b"drevo = 1\na = [" + b"1," * 500_000 + b"]", ".toml", "more than 500000 values"),
        (b"drevo = 1\n" + b"[[links]]\n" * 300_000, ".toml", "more than 500000 values"),
        (b'drevo = 1\na = "' + b"\\n" * 600_000 + b'"', ".toml", "more than 500000 values"),
        (b"drevo = 1\na = " + b"1" * 6_000_000, ".toml", "thousands of digits"),
        (b'{"drevo": 1, "name": "r", "links": [' + b"0," * 1_000_000 + b"0]}", ".json", "1000001 links"),
        (
            b'{"drevo": 1, "links": [{"name": "a", "shapes": [' + b"{}," * 200_000 + b"{}]}]}",
            ".json",
            "150000 objects",
        ),
        (
            b'{"drevo": 1, "name": "r", "gravity": [' + b"1," * 1_000_000 + b"1]}",
            ".json",
            "1000001 numbers, 3 needed",
        ),
    ],
    ids=["bodies", "geoms", "classes", "array", "tables", "escapes", "digits", "rows", "objects", "numbers"],
)
def test_what_would_take_minutes_is_refused_at_once(tmp_path: Path, data: bytes, suffix: str, says: str) -> None:
    assert says in load_bytes(data, suffix, tmp_path)


def test_rotations_add_in_one_order() -> None:
    assert apply(((1.0, 2.0, 3.0), (0.0, -0.0, 0.0), (0.1, 0.2, 0.3)), (1.0, 1.0, 1.0)) == (
        6.0,
        0.0,
        0.1 + 0.2 + 0.3,
    )
    assert str(apply(((-0.0,) * 3,) * 3, (1.0, 1.0, 1.0))[0]) == "0.0"  # type: ignore[arg-type]
